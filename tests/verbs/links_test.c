/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <unistd.h>

/*
 * Which way packets go: by themselves through shared memory within a host, or as VERBATIM_LINK and
 * the other settings of either process have it (docs/settings.md). The counters in each process's
 * log tell which way they went.
 */

#define FAULT "VERBATIM_FAULT=dup=1%"
#define PCAP  "VERBATIM_PCAP=/dev/null"
#define UDP   "VERBATIM_LINK=udp"
#define SHM   "VERBATIM_LINK=shm"

enum { SETTINGS_MAX = 2, LOGS = 2 }; /* our log, and the peer's */

static char log_name[LOGS][32] = { "/tmp/vb-links-XXXXXX", "/tmp/vb-links-XXXXXX" };

/* --- settings of this process --- */

static const char *const names[] = { "VERBATIM_LINK", "VERBATIM_FAULT", "VERBATIM_PCAP" };

/* This process's, and logs that are empty. */
static void settings_set(const char *const *settings)
{
	for (unsigned i = 0; i < VT_COUNT(names); i++)
		unsetenv(names[i]);
	for (int i = 0; i < SETTINGS_MAX && settings[i]; i++)
		assert_int_equal(putenv((char *)settings[i]), 0);
	for (int i = 0; i < LOGS; i++)
		assert_int_equal(truncate(log_name[i], 0), 0);
}

static int teardown(void **state)
{
	for (unsigned i = 0; i < VT_COUNT(names); i++)
		unsetenv(names[i]);
	return 0;
}

#define link_test(f) vt_case(f, NULL, teardown, NULL)

/* A peer with these settings and no others, whatever this process has. */
static struct vp *start(const char *const *settings)
{
	static const char *const none[] = { "VERBATIM_LINK=", "VERBATIM_FAULT=", "VERBATIM_PCAP=" };
	char to_log[sizeof(log_name[1]) + 16];
	const char *env[SETTINGS_MAX + 5] = { to_log };
	int n = 1;

	snprintf(to_log, sizeof(to_log), "VERBATIM_LOG=%s", log_name[1]);
	for (int i = 0; i < SETTINGS_MAX && settings[i]; i++)
		env[n++] = settings[i];
	for (int i = 0; i < 3; i++)
		env[n++] = none[i];
	return vp_start(env);
}

/* --- who talks to whom how --- */

/* What is set here and there, and whether memory is shared then. */
static const struct {
	const char *here[SETTINGS_MAX], *there[SETTINGS_MAX];
	bool shared;
} rows[] = {
	{ { NULL }, { NULL }, true },
	{ { SHM }, { NULL }, true },
	{ { NULL }, { SHM }, true },
	{ { SHM }, { SHM }, true },
	{ { UDP }, { NULL }, false },
	{ { NULL }, { UDP }, false },
	{ { UDP }, { UDP }, false },
	{ { FAULT }, { NULL }, false },
	{ { NULL }, { FAULT }, false },
	{ { PCAP }, { NULL }, false },
	{ { NULL }, { PCAP }, false },
	{ { FAULT, SHM }, { NULL }, true },
	{ { PCAP, SHM }, { PCAP, SHM }, true },
	{ { FAULT, UDP }, { NULL }, false },
};

static void expect_way(int log, bool shared)
{
	assert_int_equal(vt_counted(log_name[log], "rx_shared_memory_frames") > 0, shared);
	assert_int_equal(vt_counted(log_name[log], "tx_frames") > 0, !shared);
	assert_int_equal(vt_counted(log_name[log], "rx_frames") > 0, !shared);
}

link_test(each_side_has_a_say)
{
	struct vp_pair p;

	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		struct vp *peer;

		settings_set(rows[i].here);
		vt_setup(NULL);
		peer = start(rows[i].there);
		for (int type = 0; type < 2; type++) {
			struct vt_options opt = { .type = vt_types[type] };

			vp_pair_open(&p, peer, &opt);
			vp_exchange(&p, 1000, i);
			vp_pair_close(&p);
		}
		vp_end(peer);
		assert_int_equal(vt_teardown(NULL), 0);
		expect_way(0, rows[i].shared);
		expect_way(1, rows[i].shared);
	}
}

link_test(datagrams_go_the_same_way)
{
	struct vt_options opt = { .type = IBV_QPT_UD };
	struct vp_pair p;

	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		struct vp *peer;

		settings_set(rows[i].here);
		vt_setup(NULL);
		peer = start(rows[i].there);
		vp_pair_open(&p, peer, &opt);
		vp_recv(&p, 7, 0, 4096);
		vt_send(&p.a, &p.b, 1);
		vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
		vp_expect(&p, 7, IBV_WC_SUCCESS);
		vp_pair_close(&p);
		vp_end(peer);
		assert_int_equal(vt_teardown(NULL), 0);
		assert_int_equal(vt_counted(log_name[1], "rx_shared_memory_frames"),
				 rows[i].shared);
		assert_int_equal(vt_counted(log_name[0], "tx_frames") > 0, !rows[i].shared);
	}
}

/* Between QPs of one process it is no different. */
link_test(a_process_with_itself)
{
	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		bool shared = rows[i].shared || !rows[i].here[0];
		struct vt_pair p;

		settings_set(rows[i].here);
		vt_setup(NULL);
		vt_pair_open(&p, NULL);
		vt_exchange(&p.a, &p.b);
		vt_pair_close(&p);
		assert_int_equal(vt_teardown(NULL), 0);
		expect_way(0, shared);
	}
}

/* --- what is not there --- */

/* An address that leads to this host, and is not in its GID table: not known to be ours. */
static const union ibv_gid elsewhere = {
	.raw = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2 },
};

static int connect_to(struct vt_end *end, const struct vt_options *opt, const union ibv_gid *gid,
		      uint32_t qpn)
{
	struct ibv_qp_attr attr;
	int mask;

	vt_climb(end->qp, opt, IBV_QPS_INIT, 0);
	mask = vt_attr(&attr, opt, IBV_QPS_RTR, qpn);
	attr.ah_attr.grh.dgid = *gid;
	return ibv_modify_qp(end->qp, &attr, mask);
}

static struct ibv_ah *address(const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = vt_address(gid);

	return ibv_create_ah(vt.pd, &attr);
}

/* By itself the NIC tries the wire; told to use shared memory it refuses what that cannot reach. */
link_test(shm_refuses_what_it_cannot_reach)
{
	static const char *const settings[2][SETTINGS_MAX] = { { NULL }, { SHM } };
	static const char *const udp[SETTINGS_MAX] = { UDP };

	for (int shm = 0; shm < 2; shm++) {
		int wanted = shm ? ENETUNREACH : 0;
		struct ibv_ah *ah;
		struct vp *peer;

		settings_set(settings[shm]);
		vt_setup(NULL);
		peer = start(udp);
		for (int type = 0; type < 2; type++) {
			struct vt_options opt = { .type = vt_types[type] };
			struct vt_end end[3];
			struct vp_pair p;

			vp_pair_make(&p, peer, &opt);
			for (int i = 0; i < 3; i++)
				vt_end_open(&end[i], &opt);
			/* Another host's address, nobody's slot, somebody who will not. */
			assert_int_equal(connect_to(&end[0], &opt, &elsewhere,
						    end[0].qp->qp_num), wanted);
			assert_int_equal(connect_to(&end[1], &opt, &vt.gid, 1000u << 14), wanted);
			assert_int_equal(connect_to(&end[2], &opt, &vt.gid, p.far_qp.qp_num),
					 wanted);
			for (int i = 0; i < 3; i++) {
				assert_int_equal(vt_state(end[i].qp),
						 shm ? IBV_QPS_INIT : IBV_QPS_RTR);
				vt_end_close(&end[i]);
			}
			vp_pair_close(&p);
		}
		ah = address(&elsewhere);
		if (!ah)
			assert_int_equal(errno, ENETUNREACH);
		assert_int_equal(ah == NULL, shm);
		if (ah)
			assert_int_equal(ibv_destroy_ah(ah), 0);
		vp_end(peer);
		assert_int_equal(vt_teardown(NULL), 0);
	}
}

/* A datagram to somebody whom only the wire would reach is lost, as datagrams are. */
link_test(shm_sends_no_datagram_by_the_wire)
{
	static const char *const shm[SETTINGS_MAX] = { SHM }, *const udp[SETTINGS_MAX] = { UDP };
	struct vt_options opt = { .type = IBV_QPT_UD };
	struct vp_pair p;
	struct vp *peer;

	settings_set(shm);
	vt_setup(NULL);
	peer = start(udp);
	vp_pair_open(&p, peer, &opt);
	vp_recv(&p, 7, 0, 4096);
	for (uint64_t i = 0; i < 60; i++) {
		vt_send(&p.a, &p.b, i);
		vt_expect(p.a.cq, i, IBV_WC_SUCCESS);
	}
	vp_expect_none(&p);
	vp_pair_close(&p);
	vp_end(peer);
	assert_int_equal(vt_teardown(NULL), 0);
	assert_int_equal(vt_counted(log_name[0], "tx_frames"), 0);
	assert_int_equal(vt_counted(log_name[0], "tx_link_error"), 60);
}

link_test(no_other_link_is_known)
{
	static const char *const wrong[] = { "VERBATIM_LINK=tcp", "VERBATIM_LINK=UDP",
					     "VERBATIM_LINK=shm,udp", "VERBATIM_LINK= shm" };
	struct ibv_device **list = vt_made(ibv_get_device_list(NULL));

	for (unsigned i = 0; i < VT_COUNT(wrong); i++) {
		const char *settings[SETTINGS_MAX] = { wrong[i] };

		settings_set(settings);
		vt_refused(EINVAL, ibv_open_device(list[0]));
	}
	ibv_free_device_list(list);
}

/* Settings are those of the first open: a device in use is not changed under anybody's hands. */
link_test(settings_are_read_when_the_device_is_opened_first)
{
	static const char *const none[SETTINGS_MAX], *const udp[SETTINGS_MAX] = { UDP };
	struct vt first;
	struct vt_pair p;

	settings_set(none);
	vt_setup(NULL);
	first = vt;
	settings_set(udp);
	vt_setup(NULL);
	vt_pair_open(&p, NULL);
	vt_recv(&p.b, 2);
	vt_send(&p.a, &p.b, 1);
	vt_expect(p.b.cq, 2, IBV_WC_SUCCESS);
	vt_pair_close(&p);
	assert_int_equal(vt_teardown(NULL), 0);
	vt = first;
	assert_int_equal(vt_teardown(NULL), 0);
	expect_way(0, true);
}

static int logs_make(void)
{
	for (int i = 0; i < LOGS; i++) {
		int fd = mkstemp(log_name[i]);

		if (fd < 0)
			return errno;
		close(fd);
	}
	return setenv("VERBATIM_LOG", log_name[0], 1);
}

int main(int argc, char **argv)
{
	bool is_peer = argc > 1;
	int status = is_peer ? 0 : logs_make();

	if (status == 0)
		status = vp_main(argc);
	for (int i = 0; i < LOGS && !is_peer; i++)
		unlink(log_name[i]);
	return status;
}
