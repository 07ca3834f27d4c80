/* SPDX-License-Identifier: BSD-2-Clause */

/* rdma_resolve_addrinfo(3): rdma_getaddrinfo(3), which may take its time, in a thread of ours. */

#include "abi/rdmacm/lookup.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "abi/rdmacm/addrinfo.h"
#include "abi/rdmacm/channel.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/id.h"
#include "abi/rdmacm/newer.h"
#include "run/process/signals.h"

/* What is asked: copies, since the caller's may go. */
struct vb_cma_lookup {
	struct vb_cma_id *id; /* who asks; NULL: it has gone. Locked */
	char *node, *service;
	struct rdma_addrinfo *hints;
};

static void lookup_free(struct vb_cma_lookup *lookup)
{
	rdma_freeaddrinfo(lookup->hints);
	free(lookup->service);
	free(lookup->node);
	free(lookup);
}

static struct vb_cma_lookup *lookup_make(struct vb_cma_id *id, const char *node,
					 const char *service, const struct rdma_addrinfo *hints)
{
	struct vb_cma_lookup *lookup = calloc(1, sizeof(*lookup));

	if (!lookup)
		return NULL;
	lookup->id = id;
	lookup->node = node ? strdup(node) : NULL;
	lookup->service = service ? strdup(service) : NULL;
	lookup->hints = hints ? vb_cma_info_copy(hints) : NULL;
	if ((!node || lookup->node) && (!service || lookup->service) && (!hints || lookup->hints))
		return lookup;
	lookup_free(lookup);
	return NULL;
}

void vb_cma_lookup_forget(struct vb_cma_id *id)
{
	if (id->lookup)
		id->lookup->id = NULL;
	id->lookup = NULL;
}

static void *lookup_run(void *arg)
{
	struct vb_cma_lookup *lookup = arg;
	struct rdma_addrinfo *found = NULL;
	int rc = rdma_getaddrinfo(lookup->node, lookup->service, lookup->hints, &found);
	struct vb_cma_id *id;

	vb_cma_lock();
	id = lookup->id;
	if (id) {
		rdma_freeaddrinfo(id->found);
		id->found = found;
		found = NULL;
		id->lookup = NULL;
		vb_cma_tell(id, (enum rdma_cm_event_type)(rc ? VB_CMA_EVENT_ADDRINFO_ERROR
							     : VB_CMA_EVENT_ADDRINFO_RESOLVED), rc);
	}
	vb_cma_unlock();
	rdma_freeaddrinfo(found);
	lookup_free(lookup);
	return NULL;
}

static int thread_start(struct vb_cma_lookup *lookup)
{
	sigset_t before;
	pthread_t thread;
	int rc;

	vb_signals_defer(&before);
	rc = pthread_create(&thread, NULL, lookup_run, lookup);
	vb_signals_restore(&before);
	if (!rc)
		pthread_detach(thread);
	return rc;
}

static int lookup_begin(struct vb_cma_id *id, struct vb_cma_lookup *lookup)
{
	int rc;

	vb_cma_lock();
	rc = id->lookup ? EBUSY : 0;
	if (!rc)
		id->lookup = lookup;
	vb_cma_unlock();
	if (rc)
		return rc;
	rc = thread_start(lookup);
	if (!rc)
		return 0;
	vb_cma_lock();
	id->lookup = NULL;
	vb_cma_unlock();
	return rc;
}

/* Ethernet has no subnet administrator to ask for services. */
static int asked_check(const struct vb_cma_id *id, const char *node, const char *service,
		       const struct rdma_addrinfo *hints)
{
	int flags = hints ? hints->ai_flags : 0;

	if ((flags & VB_RAI_SA) && (flags & VB_RAI_DNS))
		return EINVAL;
	if (flags & VB_RAI_SA)
		return node || !service || !id->pub.verbs ? EINVAL : EOPNOTSUPP;
	return node || service || hints ? 0 : EINVAL;
}

int rdma_resolve_addrinfo(struct rdma_cm_id *pub, const char *node, const char *service,
			  const struct rdma_addrinfo *hints)
{
	struct vb_cma_id *id = vb_cma_of(pub);
	struct vb_cma_lookup *lookup;
	int rc = asked_check(id, node, service, hints);

	if (rc)
		return vb_cma_result(rc);
	lookup = lookup_make(id, node, service, hints);
	if (!lookup)
		return vb_cma_result(ENOMEM);
	if (lookup->hints)
		lookup->hints->ai_flags &= ~VB_RAI_DNS; /* it is what there is */
	rc = lookup_begin(id, lookup);
	if (rc) {
		lookup_free(lookup);
		return vb_cma_result(rc);
	}
	return vb_cma_complete(id);
}

int rdma_query_addrinfo(struct rdma_cm_id *pub, struct rdma_addrinfo **info)
{
	struct vb_cma_id *id = vb_cma_of(pub);
	struct rdma_addrinfo *copy = NULL;
	int rc;

	if (!info)
		return vb_cma_result(EINVAL);
	vb_cma_lock();
	rc = id->found ? 0 : ENODATA;
	if (!rc) {
		copy = vb_cma_info_copy(id->found);
		rc = copy ? 0 : ENOMEM;
	}
	vb_cma_unlock();
	if (!rc)
		*info = copy;
	return vb_cma_result(rc);
}
