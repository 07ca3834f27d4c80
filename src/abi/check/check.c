/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/check/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "abi/check/events.h"
#include "abi/check/objects.h"
#include "abi/check/pages.h"
#include "abi/check/queues.h"
#include "abi/check/requests.h"
#include "base/check.h"
#include "base/path.h"
#include "base/refusal.h"
#include "nic/control/nic.h"
#include "run/process/log.h"
#include "run/process/report.h"

static bool is_on;
static pthread_once_t once = PTHREAD_ONCE_INIT;

bool vb_check_is_on(void)
{
	return is_on;
}

void vb_check_is_ours(const void *object)
{
	vb_check_lock();
	vb_check_own(object);
	vb_check_unlock();
}

/* A program that asks for what there may not be is no flaw. */
static void refused(const char *words, int error)
{
	if (error != EOPNOTSUPP && error != ENOSYS)
		vb_flaw_say(VB_FLAW_REFUSED, vb_check_here(), "%s (%s)", words,
			    strerrorname_np(error));
}

/* --- a fork: the child's NIC is another, and has no objects yet --- */

static void before_fork(void)
{
	vb_check_lock();
}

static void in_parent(void)
{
	vb_check_unlock();
}

static void in_child(void)
{
	vb_check_objects_forget();
	vb_flaws_forget();
}

/* [poison:|pages:]FILE */
static void begin(void)
{
	static const char poison[] = "poison:", pages[] = "pages:";
	const char *text = secure_getenv("VERBATIM_CHECK");

	if (!text || !*text)
		return;
	vb_checker.poison = !strncmp(text, poison, strlen(poison));
	vb_checker.pages = !strncmp(text, pages, strlen(pages));
	text += vb_checker.poison ? strlen(poison) : vb_checker.pages ? strlen(pages) : 0;
	if (!vb_flaws_open(text))
		return;
	is_on = true;
	vb_refusals_want(true);
	vb_report_listen(refused);
	vb_check_objects_watch();
	if (vb_checker.pages)
		vb_check_pages_begin();
	pthread_atfork(before_fork, in_parent, in_child);
}

void vb_check_open(void)
{
	pthread_once(&once, begin);
}

static void __attribute__((destructor)) end(void)
{
	if (!is_on)
		return;
	vb_check_lock();
	vb_check_pages_say();
	vb_check_queues_left();
	vb_check_events_left();
	vb_check_objects_leaked();
	vb_check_unlock();
	vb_flaws_end();
}

/* --- changes of QPs and regions --- */

void vb_check_modifies(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const void *site = vb_check_here();
	struct vb_check_object *o;

	vb_check_lock();
	o = vb_check_find(VB_KNOWN_QP, qp);
	if (o && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		vb_check_queues_end(o, site, "it was reset");
	if (o && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR)
		vb_check_look_at(&o->recv);
	vb_check_unlock();
}

static bool is_loopback(const uint8_t gid[VB_GID_BYTES])
{
	static const uint8_t one[VB_GID_BYTES] = { [VB_GID_BYTES - 1] = 1 };

	return vb_gid_is_ipv4(gid) ? gid[12] == 127 : !memcmp(gid, one, sizeof(one));
}

static void gid_look(const struct ibv_qp *qp, const struct ibv_ah_attr *av, const void *site)
{
	struct vb_gid_entry entry;
	bool ours, theirs;

	if (vb_nic_gid_get(vb_ctx_of(qp->context)->nic, av->grh.sgid_index, &entry))
		return;
	ours = is_loopback(entry.gid);
	theirs = is_loopback(av->grh.dgid.raw);
	if (ours != theirs)
		vb_flaw_say(VB_FLAW_GID, site,
			    "QPN 0x%x: sgid_index %u is %s address, and the peer's GID is %s",
			    qp->qp_num, av->grh.sgid_index, ours ? "a loopback" : "no loopback",
			    theirs ? "one" : "none");
}

static void mtu_look(const struct vb_check_object *o, const void *site)
{
	const struct vb_qp *qp = o->object;
	const struct vb_check_object *other = vb_check_qp(qp->attr.dest_qp_num);
	const struct vb_qp *peer = other ? other->object : NULL;

	if (!peer || peer->attr.dest_qp_num != qp->ibv.qp.qp_num || !peer->attr.path_mtu ||
	    !qp->attr.path_mtu || peer->attr.path_mtu == qp->attr.path_mtu)
		return;
	vb_flaw_say(VB_FLAW_MTU, site, "QPN 0x%x has path_mtu %u, and its peer, QPN 0x%x, %u",
		    qp->ibv.qp.qp_num, 128u << qp->attr.path_mtu, peer->ibv.qp.qp_num,
		    128u << peer->attr.path_mtu);
}

void vb_check_modified(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const void *site = vb_check_here();
	struct vb_check_object *o;

	vb_check_lock();
	o = vb_check_find(VB_KNOWN_QP, qp);
	if (o && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		vb_check_queues_forget(o);
	if (o && !o->ours && (mask & IBV_QP_AV) && vb_qp_is(o->object, VB_CONNECTS))
		gid_look(qp, &attr->ah_attr, site);
	if (o && !o->ours && (mask & IBV_QP_PATH_MTU))
		mtu_look(o, site);
	vb_check_unlock();
}

void vb_check_keep(void *memory)
{
	static void *kept[256];
	static unsigned next;
	void *oldest;

	vb_check_lock();
	oldest = kept[next];
	kept[next] = memory;
	next = (next + 1) % VB_ARRAY_LEN(kept);
	vb_check_unlock();
	free(oldest);
}

void vb_check_rereg(struct ibv_mr *mr, bool done)
{
	const void *site = vb_check_here();
	struct vb_check_object *o;

	vb_check_lock();
	o = vb_check_find(VB_KNOWN_MR, mr);
	if (o && done)
		vb_check_region_read(o);
	else if (o)
		vb_check_region_ends(mr, site, "changed");
	vb_check_unlock();
}
