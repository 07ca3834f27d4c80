/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VERBS_MCAST_H
#define VB_TESTS_VERBS_MCAST_H

/*
 * What the tests of multicast share. Over IPv4 all of it is on loopback; with VT_IPV6 in the
 * environment on a cable, because the kernel has no way to a group of IPv6 on loopback. Its other
 * end is here too, but without an address, or else what goes out here would come in there.
 */

#include <arpa/inet.h>
#include <net/if.h>

#include "lib.h"

enum { QPN_GROUP = 0xffffff, GRH_BYTES = 40, PORT = 4791, HOPS = 5, SLICE = 2048 };

/* Beside vt.gid: where messages to groups come from. */
static int source_index;
static union ibv_gid source;

static inline bool is_ipv6(void)
{
	return getenv("VT_IPV6");
}

static inline union ibv_gid group_of(unsigned n)
{
	union ibv_gid ipv4 = { .raw = { [10] = 0xff, [11] = 0xff, 239, 79, n >> 8, n & 255 } };
	union ibv_gid ipv6 = { .raw = { 0xff, 0x0e, [12] = 79, [14] = n >> 8, [15] = n & 255 } };

	return is_ipv6() ? ipv6 : ipv4;
}

/* The GID table is read anew on the way. */
static inline bool find_gid(const char *text, union ibv_gid *gid, int *index)
{
	union ibv_gid wanted = { .raw = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET6, text, wanted.raw) != 1)
		assert_int_equal(inet_pton(AF_INET, text, wanted.raw + 12), 1);
	for (*index = 0; *index < 256; ++*index) {
		assert_int_equal(ibv_query_gid(vt.ctx, 1, *index, gid), 0);
		if (!memcmp(gid->raw, wanted.raw, sizeof(wanted.raw)))
			return true;
	}
	return false;
}

static inline struct ibv_ah *try_ah(const union ibv_gid *to, int sgid_index, uint8_t hops)
{
	struct ibv_ah_attr attr = {
		.grh = { .dgid = *to, .sgid_index = (uint8_t)sgid_index, .hop_limit = hops },
		.is_global = 1,
		.port_num = 1,
	};

	return ibv_create_ah(vt.pd, &attr);
}

/* An interface that has just come up has no route to groups for a moment. */
static inline void await_way_out(void)
{
	union ibv_gid gid = group_of(0);
	struct ibv_ah *ah;

	for (int ms = 0; !(ah = try_ah(&gid, source_index, 1)); ms++) {
		assert_in_range(ms, 0, VT_WAIT_MS);
		vt_sleep_ms(1);
	}
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static inline int setup(void **state)
{
	vt_setup(state);
	if (is_ipv6() && !if_nametoindex("vb0"))
		assert_int_equal(system("ip link add vb0 type veth peer name vb1 && "
					"ip link set vb1 addrgenmode none up && "
					"ip addr add fd79::1/64 dev vb0 nodad && "
					"ip link set vb0 up"), 0);
	assert_true(find_gid(is_ipv6() ? "fd79::1" : "127.0.0.1", &source, &source_index));
	await_way_out();
	return 0;
}

#define mcast_test(f) vt_case(f, setup, vt_teardown, NULL)

/* --- members and messages --- */

static inline void member_open(struct vt_end *end)
{
	struct vt_options opt = { .type = IBV_QPT_UD };

	vt_end_open(end, &opt);
	vt_climb(end->qp, &opt, IBV_QPS_RTS, 0);
}

static inline void blocking_open(struct vt_end *end)
{
	struct vt_options opt = { .type = IBV_QPT_UD };
	struct ibv_qp_init_attr_ex init = {
		.cap = { 16, 16, 1, 1, 0 },
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = vt.pd,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
	};

	vt_end_open(end, &opt);
	assert_int_equal(ibv_destroy_qp(end->qp), 0);
	init.send_cq = init.recv_cq = end->cq;
	end->qp = vt_made(ibv_create_qp_ex(vt.ctx, &init));
	vt_climb(end->qp, &opt, IBV_QPS_RTS, 0);
}

static inline int attach(struct vt_end *end, unsigned n)
{
	union ibv_gid gid = group_of(n);

	return ibv_attach_mcast(end->qp, &gid, 0xc000);
}

static inline int detach(struct vt_end *end, unsigned n)
{
	union ibv_gid gid = group_of(n);

	return ibv_detach_mcast(end->qp, &gid, 0xc000);
}

static inline void message(struct vt_wr *w, struct vt_end *from, struct ibv_ah *ah, uint32_t bytes)
{
	vt_wr(w, IBV_WR_SEND, from, from, bytes);
	w->wr.wr.ud.ah = ah;
	w->wr.wr.ud.remote_qpn = QPN_GROUP;
}

/* It leaves, whoever there is to hear it. */
static inline void cast(struct vt_end *from, unsigned n, uint32_t bytes)
{
	union ibv_gid gid = group_of(n);
	struct ibv_ah *ah = vt_made(try_ah(&gid, source_index, HOPS));
	struct vt_wr w;

	message(&w, from, ah, bytes);
	vt_done(from, &w, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static inline void listen_at(struct vt_end *end, unsigned slice)
{
	assert_int_equal(vt_recv_at(end, 100 + slice, SLICE * slice, SLICE), 0);
}

/* The destination GID that the receiver is told stands in the header, of either shape. */
static inline void assert_header(const uint8_t *header, const union ibv_gid *from,
				 const union ibv_gid *to)
{
	if (is_ipv6()) {
		assert_memory_equal(header + 8, from->raw, 16);
		assert_memory_equal(header + 24, to->raw, 16);
		assert_int_equal(header[7], HOPS);
		return;
	}
	assert_memory_equal(header + 32, from->raw + 12, 4);
	assert_memory_equal(header + 36, to->raw + 12, 4);
	assert_int_equal(header[28], HOPS);
}

static inline void expect_copy(struct vt_end *end, unsigned slice, const struct vt_end *from,
			       unsigned n, uint32_t bytes)
{
	struct ibv_wc wc = vt_expect(end->cq, 100 + slice, IBV_WC_SUCCESS);
	const uint8_t *at = end->buf + SLICE * slice;
	union ibv_gid gid = group_of(n);

	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, GRH_BYTES + bytes);
	assert_true(wc.wc_flags & IBV_WC_GRH);
	assert_int_equal(wc.qp_num, end->qp->qp_num);
	assert_int_equal(wc.src_qp, from->qp->qp_num);
	assert_header(at, &source, &gid);
	assert_memory_equal(at + GRH_BYTES, from->buf, bytes);
}

/* Is the interface a member, as the kernel tells? */
static inline bool has_joined(const char *interface, unsigned n)
{
	FILE *file = fopen(is_ipv6() ? "/proc/net/igmp6" : "/proc/net/igmp", "r");
	union ibv_gid gid = group_of(n);
	char line[256], wanted[40], current[32] = "";
	bool found = false;

	assert_non_null(file);
	for (int i = 0; i < 16; i++)
		snprintf(wanted + 2 * i, 3, "%02x", gid.raw[i]);
	if (!is_ipv6()) /* as a number of this machine's */
		snprintf(wanted, sizeof(wanted), "%02X%02X%02X%02X", gid.raw[15], gid.raw[14],
			 gid.raw[13], gid.raw[12]);
	while (fgets(line, sizeof(line), file)) {
		if (is_ipv6() || line[0] != '\t')
			sscanf(line, "%*d %31s", current);
		found |= !strcmp(current, interface) && strstr(line, wanted);
	}
	fclose(file);
	return found;
}

#endif
