/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_VERBS_WAYS_H
#define TESTS_VERBS_WAYS_H

/*
 * Two paths for those who test migration: the primary one can be taken away, an address of its
 * own; the alternate one is the loopback address. After lib.h and netns.h; ALT_TIMEOUT is the
 * includer's.
 */

#define PRIMARY "10.77.0.1"
#define THIRD "10.77.0.2"

struct way {
	int index;
	union ibv_gid gid;
};

static struct way primary, alt;

static inline struct way way_of(const char *ipv4)
{
	struct way way = { .gid.raw = { [10] = 0xff, [11] = 0xff } };

	assert_int_equal(inet_pton(AF_INET, ipv4, way.gid.raw + 12), 1);
	way.index = vt_gid_index(way.gid.raw);
	return way;
}

static inline void ways_open(void **state)
{
	assert_true(netns_address_add("lo:1", PRIMARY));
	vt_setup(state);
	primary = way_of(PRIMARY);
	alt = (struct way){ .index = vt.gid_index, .gid = vt.gid };
	vt.gid_index = primary.index;
	vt.gid = primary.gid;
}

static inline int ways_close(void **state)
{
	netns_interface_down("lo:1");
	return vt_teardown(state);
}

/* Where something is to get lost, or addresses are to count: not between two processes' memory. */
static char *link_before;

static inline void wire_begin(void)
{
	const char *link = getenv("VERBATIM_LINK");

	link_before = link ? strdup(link) : NULL;
	setenv("VERBATIM_LINK", "udp", 1);
}

static inline void wire_end(void)
{
	if (link_before)
		setenv("VERBATIM_LINK", link_before, 1);
	else
		unsetenv("VERBATIM_LINK");
	free(link_before);
}

/* The includer's: ways_open(), ways_close(), and what is its own. */
static int setup(void **state);
static int teardown(void **state);

static int setup_wire(void **state)
{
	wire_begin();
	return setup(state);
}

static int teardown_wire(void **state)
{
	wire_end();
	return teardown(state);
}

#define migrate_test(f) vt_case(f, setup, teardown, NULL)
#define wire_test(f) vt_case(f, setup_wire, teardown_wire, NULL)

/* --- attributes --- */

static inline struct ibv_ah_attr av(const struct way *way)
{
	return (struct ibv_ah_attr){
		.grh = { .dgid = way->gid, .sgid_index = (uint8_t)way->index, .hop_limit = 1 },
		.is_global = 1,
		.port_num = 1,
	};
}

static inline struct ibv_qp_attr with_alt(const struct way *way)
{
	return (struct ibv_qp_attr){
		.alt_ah_attr = av(way), .alt_port_num = 1, .alt_timeout = ALT_TIMEOUT,
		.path_mig_state = IBV_MIG_REARM,
	};
}

static inline int set_state(struct ibv_qp *qp, enum ibv_mig_state to)
{
	struct ibv_qp_attr attr = { .path_mig_state = to };

	return ibv_modify_qp(qp, &attr, IBV_QP_PATH_MIG_STATE);
}

static inline void rearm(struct ibv_qp *qp, const struct way *way)
{
	struct ibv_qp_attr attr = with_alt(way);

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE), 0);
}

static inline void expect_way(struct ibv_qp *qp, const struct way *way)
{
	struct ibv_qp_attr attr = vt_query(qp, -1);

	assert_int_equal(attr.ah_attr.grh.sgid_index, way->index);
	assert_memory_equal(&attr.ah_attr.grh.dgid, &way->gid, sizeof(way->gid));
}

static void spoil_port0(struct ibv_qp_attr *a) { a->alt_port_num = 0; }
static void spoil_port2(struct ibv_qp_attr *a) { a->alt_port_num = 2; }
static void spoil_av_port(struct ibv_qp_attr *a) { a->alt_ah_attr.port_num = 2; }
static void spoil_pkey(struct ibv_qp_attr *a) { a->alt_pkey_index = 1; }
static void spoil_timeout(struct ibv_qp_attr *a) { a->alt_timeout = 32; }
static void spoil_gid(struct ibv_qp_attr *a) { a->alt_ah_attr.grh.sgid_index = 255; }
static void spoil_grh(struct ibv_qp_attr *a) { a->alt_ah_attr.is_global = 0; }
static void spoil_dgid(struct ibv_qp_attr *a) { memset(&a->alt_ah_attr.grh.dgid, 0, 16); }
static void spoil_state(struct ibv_qp_attr *a) { a->path_mig_state = IBV_MIG_ARMED; }
static void spoil_state3(struct ibv_qp_attr *a) { a->path_mig_state = 3; }

/* And nothing of them is kept. */
static inline void expect_wrong_paths_refused(struct ibv_qp *qp)
{
	static void (*const spoil[])(struct ibv_qp_attr *) = {
		spoil_port0, spoil_port2, spoil_av_port, spoil_pkey, spoil_timeout, spoil_gid,
		spoil_grh, spoil_dgid, spoil_state, spoil_state3,
	};

	for (unsigned i = 0; i < VT_COUNT(spoil); i++) {
		struct ibv_qp_attr attr = with_alt(&alt), before = vt_query(qp, -1), after;

		spoil[i](&attr);
		assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE),
				 EINVAL);
		after = vt_query(qp, -1);
		assert_memory_equal(&before, &after, sizeof(before));
	}
}

/* Of a QP; that addresses have changed is somebody else's business. */
static inline struct ibv_async_event qp_event(void)
{
	struct ibv_async_event event;

	do {
		if (!vt_readable(vt.ctx->async_fd, VT_WAIT_MS))
			fail_msg("no event");
		assert_int_equal(ibv_get_async_event(vt.ctx, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_GID_CHANGE);
	return event;
}

#endif
