/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <dlfcn.h>
#include <netdb.h>

#include "skip.h"

/*
 * Each call where there is no memory: -1 and ENOMEM, and all is as it was. The thread that calls is
 * refused memory from one allocation on; which one, goes from the first to the last that the call
 * makes.
 */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CAN_REFUSE = false };
static int left;
#else
enum { CAN_REFUSE = true };
static _Thread_local int left = -1; /* so many are given yet; negative: any number */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static bool is_refused(void)
{
	if (left > 0)
		left--;
	else if (left == 0)
		errno = ENOMEM;
	return left == 0 && errno == ENOMEM;
}

void *malloc(size_t bytes)
{
	return is_refused() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return is_refused() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	return is_refused() ? NULL : __libc_realloc(memory, bytes);
}
#endif

enum stage { NEW, BOUND, RESOLVED, ROUTED, DATAGRAMS };

struct trial {
	const char *call;
	enum stage stage;
	int (*does)(struct rdma_cm_id *id);
	void (*undoes)(struct rdma_cm_id *id); /* what it has made; NULL: it goes with the id */
	int also; /* another errno than ENOMEM: pthread_create(3) has only EAGAIN */
};

/* --- the calls --- */

static struct rdma_event_channel *made_channel;
static struct rdma_cm_id *made_id;
static struct ibv_context **made_list;
static struct rdma_addrinfo *made_info;

static int channel_create(struct rdma_cm_id *id)
{
	made_channel = rdma_create_event_channel();
	return made_channel ? 0 : -1;
}

static void channel_destroy(struct rdma_cm_id *id)
{
	rdma_destroy_event_channel(made_channel);
}

static int id_create(struct rdma_cm_id *id)
{
	return rdma_create_id(id->channel, &made_id, NULL, RDMA_PS_TCP);
}

static int id_create_alone(struct rdma_cm_id *id)
{
	return rdma_create_id(NULL, &made_id, NULL, RDMA_PS_TCP);
}

static void id_destroy(struct rdma_cm_id *id)
{
	ct_works(rdma_destroy_id(made_id));
}

static int devices_get(struct rdma_cm_id *id)
{
	made_list = rdma_get_devices(NULL);
	return made_list ? 0 : -1;
}

static void devices_free(struct rdma_cm_id *id)
{
	rdma_free_devices(made_list);
}

static int migrate(struct rdma_cm_id *id)
{
	return rdma_migrate_id(id, NULL);
}

static int bind_(struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, ct_addr(0));
}

static int resolve(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, ct_addr(7471), CT_RESOLVE_MS);
}

static int route(struct rdma_cm_id *id)
{
	return rdma_resolve_route(id, CT_RESOLVE_MS);
}

static int connect_(struct rdma_cm_id *id)
{
	return rdma_connect(id, NULL);
}

static int listen_(struct rdma_cm_id *id)
{
	return rdma_listen(id, 1);
}

static int qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = ct_qp_attr();

	attr.qp_type = id->qp_type;
	return rdma_create_qp(id, NULL, &attr);
}

static void qp_destroy(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
}

static int srq(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };

	return rdma_create_srq(id, NULL, &attr);
}

static void srq_destroy(struct rdma_cm_id *id)
{
	rdma_destroy_srq(id);
}

static int join(struct rdma_cm_id *id)
{
	return rdma_join_multicast(id, ct_addr_of("239.1.2.3", 0), NULL);
}

static int ep(struct rdma_cm_id *id)
{
	struct rdma_addrinfo info = { .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC,
				      .ai_dst_addr = ct_addr(7471), .ai_connect = (void *)"yes",
				      .ai_dst_len = sizeof(struct sockaddr_in6),
				      .ai_connect_len = 3 };
	struct ibv_qp_init_attr attr = ct_qp_attr();

	return rdma_create_ep(&made_id, &info, NULL, &attr);
}

static int ep_passive(struct rdma_cm_id *id)
{
	struct rdma_addrinfo info = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP,
				      .ai_qp_type = IBV_QPT_RC, .ai_src_addr = ct_addr(7471),
				      .ai_src_len = sizeof(struct sockaddr_in6) };
	struct ibv_qp_init_attr attr = ct_qp_attr();

	return rdma_create_ep(&made_id, &info, NULL, &attr);
}

static void ep_destroy(struct rdma_cm_id *id)
{
	rdma_destroy_ep(made_id);
}

/* It has codes of its own for that. */
static int names(struct rdma_cm_id *id)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST };
	int rc = rdma_getaddrinfo(ct_ip(), "7471", &hints, &made_info);

	if (rc != EAI_MEMORY && rc != EAI_SYSTEM)
		return rc;
	errno = ENOMEM;
	return -1;
}

static void names_free(struct rdma_cm_id *id)
{
	rdma_freeaddrinfo(made_info);
}

static int event_write(struct rdma_cm_id *id)
{
	int (*write)(struct rdma_cm_id *, int, int, uint64_t);

	*(void **)&write = dlsym(RTLD_DEFAULT, "rdma_write_cm_event");
	return write(id, 18, 0, 0);
}

static int names_begin(struct rdma_cm_id *id)
{
	int (*begin)(struct rdma_cm_id *, const char *, const char *, const void *);

	*(void **)&begin = dlsym(RTLD_DEFAULT, "rdma_resolve_addrinfo");
	return begin(id, ct_ip(), "7471", NULL);
}

static void event_await(struct rdma_cm_id *id)
{
	ct_pass(id->channel, (enum rdma_cm_event_type)16);
}

/* clang-format off */
static const struct trial trials[] = {
	{ "rdma_create_event_channel", NEW, channel_create, channel_destroy },
	{ "rdma_create_id", NEW, id_create, id_destroy },
	{ "rdma_create_id without a channel", NEW, id_create_alone, id_destroy },
	{ "rdma_get_devices", NEW, devices_get, devices_free },
	{ "rdma_migrate_id", NEW, migrate },
	{ "rdma_bind_addr", NEW, bind_ },
	{ "rdma_resolve_addr", NEW, resolve },
	{ "rdma_resolve_addr, bound", BOUND, resolve },
	{ "rdma_resolve_route", RESOLVED, route },
	{ "rdma_connect", ROUTED, connect_ },
	{ "rdma_connect of datagrams", DATAGRAMS, connect_ },
	{ "rdma_listen", BOUND, listen_ },
	{ "rdma_create_qp", ROUTED, qp, qp_destroy },
	{ "rdma_create_qp of datagrams", DATAGRAMS, qp, qp_destroy },
	{ "rdma_create_srq", ROUTED, srq, srq_destroy },
	{ "rdma_join_multicast", DATAGRAMS, join },
	{ "rdma_create_ep", NEW, ep, ep_destroy },
	{ "rdma_create_ep, passive", NEW, ep_passive, ep_destroy },
	{ "rdma_getaddrinfo", NEW, names, names_free },
	{ "rdma_write_cm_event", NEW, event_write },
	{ "rdma_resolve_addrinfo", NEW, names_begin, event_await, EAGAIN },
};
/* clang-format on */

static struct rdma_cm_id *id_at(enum stage stage, struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;

	if (stage == ROUTED || stage == DATAGRAMS)
		return ct_client(channel, stage == ROUTED ? RDMA_PS_TCP : RDMA_PS_UDP, 7471);
	id = ct_id(channel, RDMA_PS_TCP);
	if (stage == BOUND)
		ct_works(bind_(id));
	if (stage == RESOLVED) {
		ct_works(resolve(id));
		ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	}
	return id;
}

/* With so many allocations. True: they were enough. */
static bool try(const struct trial *trial, struct rdma_cm_id *id, int allocations)
{
	struct rdma_cm_id before = *id;
	int rc, err;

	errno = 0;
	left = allocations;
	rc = trial->does(id);
	err = errno;
	left = -1;
	if (rc == 0)
		return true;
	if (rc != -1 || (err != ENOMEM && err != trial->also))
		fail_msg("%s after %d: %d, %s", trial->call, allocations, rc, strerror(err));
	if (memcmp(id, &before, sizeof(before)))
		fail_msg("%s after %d: the id has changed", trial->call, allocations);
	if (ct_readable(id->channel->fd, 0))
		fail_msg("%s after %d: an event has come", trial->call, allocations);
	return false;
}

/* The same id is tried again and again, until it works. */
static void without_memory_nothing_changes(void **state)
{
	if (!CAN_REFUSE)
		SKIP("a sanitizer has malloc(3) to itself");
	for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
		struct rdma_event_channel *channel = ct_channel();
		struct rdma_cm_id *id = id_at(trials[i].stage, channel);
		int allocations = 0;

		while (!try(&trials[i], id, allocations))
			allocations++;
		if (!allocations)
			fail_msg("%s needs no memory", trials[i].call);
		if (trials[i].undoes)
			trials[i].undoes(id);
		ct_works(rdma_destroy_id(id));
		rdma_destroy_event_channel(channel);
	}
}

int main(void)
{
	const struct CMUnitTest memory[] = {
		cmocka_unit_test(without_memory_nothing_changes),
	};

	return ct_main(memory);
}
