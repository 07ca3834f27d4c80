/* SPDX-License-Identifier: BSD-2-Clause */
#include "raw.h"

#include <arpa/inet.h>

#include "told.h"

/*
 * Work queues, tables of them, and QPs that spread over them what they receive: which queue a frame
 * goes to is computed here once more, bit by bit, as Microsoft's "RSS Hashing Functions" has it.
 */

enum { QUEUES = 8, KEY = 40, IP_AT = RAW_HEADER, OWN_SLOTS = 64 };

static const uint8_t key[KEY] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

#define IPV4_FIELDS (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4)
#define IPV6_FIELDS (IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6)
#define UDP_FIELDS (IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)
#define TCP_FIELDS (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP)

/* Who sends, and who receives in a context of its own. */
struct spread {
	struct raw_end a;
	struct raw_end b; /* its QP has no queues */
	struct ibv_cq *cq[QUEUES];
	struct ibv_wq *wq[QUEUES];
	struct ibv_rwq_ind_table *table;
	uint32_t flags; /* of the queues */
};

static struct ibv_wq_init_attr wq_attr(struct spread *s, unsigned i)
{
	return (struct ibv_wq_init_attr){.wq_context = s,
					 .wq_type = IBV_WQT_RQ,
					 .max_wr = 16,
					 .max_sge = 2,
					 .pd = s->b.pd,
					 .cq = s->cq[i],
					 .comp_mask = IBV_WQ_INIT_ATTR_FLAGS,
					 .create_flags = s->flags};
}

static int wq_to(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state};

	return ibv_modify_wq(wq, &attr);
}

static int wq_post(struct spread *s, unsigned queue, unsigned slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)raw_at(&s->b, slot),
			      .length = RAW_SLOT_BYTES,
			      .lkey = s->b.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
	int rc = ibv_post_wq_recv(s->wq[queue], &wr, &bad);

	assert_ptr_equal(bad, rc ? &wr : NULL);
	return rc;
}

static void spread_open(struct spread *s, uint32_t flags)
{
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 3, .ind_tbl = s->wq};
	struct raw_options opt = {.state = IBV_QPS_UNKNOWN};

	raw_needed();
	*s = (struct spread){.flags = flags};
	raw_open(&s->a, NULL);
	raw_open(&s->b, &opt);
	assert_int_equal(ibv_destroy_qp(s->b.qp), 0);
	s->b.qp = NULL;
	for (unsigned i = 0; i < QUEUES; i++) {
		struct ibv_wq_init_attr init;

		s->cq[i] = vt_made(ibv_create_cq(s->b.ctx, 32, NULL, NULL, 0));
		init = wq_attr(s, i);
		s->wq[i] = vt_made(ibv_create_wq(s->b.ctx, &init));
		assert_int_equal(wq_to(s->wq[i], IBV_WQS_RDY), 0);
	}
	s->table = vt_made(ibv_create_rwq_ind_table(s->b.ctx, &attr));
}

static struct ibv_qp_init_attr_ex qp_attr(struct spread *s, uint64_t fields)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = s->b.pd,
		.rwq_ind_tbl = s->table,
		.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				 .rx_hash_key_len = KEY,
				 .rx_hash_key = (uint8_t *)key,
				 .rx_hash_fields_mask = fields},
	};
}

/* The QP, and a rule that gives it what is for raw_mac[1]. */
static void listen_with(struct spread *s, struct ibv_qp_init_attr_ex *attr)
{
	s->b.qp = vt_made(ibv_create_qp_ex(s->b.ctx, attr));
	raw_listen(&s->b, raw_mac[1]);
}

static void listen_to(struct spread *s, uint64_t fields)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(s, fields);

	listen_with(s, &attr);
}

static void listen_end(struct spread *s)
{
	while (s->b.flows)
		assert_int_equal(ibv_destroy_flow(s->b.flow[--s->b.flows]), 0);
	assert_int_equal(ibv_destroy_qp(s->b.qp), 0);
	s->b.qp = NULL;
}

static void spread_close(struct spread *s)
{
	if (s->b.qp)
		listen_end(s);
	assert_int_equal(ibv_destroy_rwq_ind_table(s->table), 0);
	for (unsigned i = 0; i < QUEUES; i++) {
		assert_int_equal(ibv_destroy_wq(s->wq[i]), 0);
		assert_int_equal(ibv_destroy_cq(s->cq[i]), 0);
	}
	assert_int_equal(ibv_dereg_mr(s->b.mr), 0);
	assert_int_equal(ibv_destroy_cq(s->b.cq), 0);
	assert_int_equal(ibv_dealloc_pd(s->b.pd), 0);
	assert_int_equal(ibv_close_device(s->b.ctx), 0);
	free(s->b.buf);
	raw_close(&s->a);
}

#define spread_test(f, ...)                                                                       \
	vt_with(vt_test, f, struct spread, s, spread_open(&s, __VA_ARGS__), spread_close(&s))

static void expect_refused(struct spread *s, struct ibv_qp_init_attr_ex *attr, int error)
{
	vt_refused(error, ibv_create_qp_ex(s->b.ctx, attr));
}

/* --- frames, and their hashes --- */

struct flow {
	bool v6;
	uint8_t proto;
	uint8_t src[16], dst[16];
	uint8_t l4[8]; /* the beginning of what is behind IP: ports, or an SPI */
};

static struct flow flow_of(const char *src, const char *dst, uint8_t proto, unsigned sport,
			   unsigned dport)
{
	struct flow flow = {.v6 = strchr(src, ':'), .proto = proto};
	int family = flow.v6 ? AF_INET6 : AF_INET;

	assert_int_equal(inet_pton(family, src, flow.src), 1);
	assert_int_equal(inet_pton(family, dst, flow.dst), 1);
	raw_put16(flow.l4, sport);
	raw_put16(flow.l4 + 2, dport);
	return flow;
}

/* An Ethernet header and what is in it; the octets. */
static uint32_t flow_write(const struct flow *flow, uint8_t *frame)
{
	uint32_t head = flow->v6 ? 40 : 20, bytes = 60;
	uint8_t *ip = frame + IP_AT;

	memcpy(frame, raw_mac[1], RAW_MAC);
	memcpy(frame + RAW_MAC, raw_mac[0], RAW_MAC);
	raw_put16(frame + 12, flow->v6 ? 0x86dd : 0x0800);
	memset(ip, 0, head + bytes);
	if (flow->v6) {
		ip[0] = 0x60;
		raw_put16(ip + 4, bytes);
		ip[6] = flow->proto;
		memcpy(ip + 8, flow->src, 16);
		memcpy(ip + 24, flow->dst, 16);
	} else {
		ip[0] = 0x45;
		raw_put16(ip + 2, head + bytes);
		ip[9] = flow->proto;
		memcpy(ip + 12, flow->src, 4);
		memcpy(ip + 16, flow->dst, 4);
	}
	memcpy(ip + head, flow->l4, sizeof(flow->l4));
	if (flow->proto == IPPROTO_TCP)
		ip[head + 12] = 0x50;
	return IP_AT + head + bytes;
}

static uint32_t toeplitz(const uint8_t *with, const uint8_t *input, unsigned bytes)
{
	uint32_t hash = 0;

	for (unsigned bit = 0; bit < bytes * 8; bit++) {
		if (!(input[bit / 8] & 0x80 >> bit % 8))
			continue;
		for (unsigned k = 0; k < 32; k++)
			hash ^= (uint32_t)(with[(bit + k) / 8] >> (7 - (bit + k) % 8) & 1)
				<< (31 - k);
	}
	return hash;
}

static uint32_t flow_hash(const struct flow *flow, uint64_t fields, const uint8_t *with)
{
	bool tcp = flow->proto == IPPROTO_TCP, udp = flow->proto == IPPROTO_UDP;
	unsigned address = flow->v6 ? 16 : 4, bytes = 0;
	uint8_t input[64];

#define TAKE(wanted, from, count)                           \
	do {                                                \
		if (fields & (wanted)) {                    \
			memcpy(input + bytes, from, count); \
			bytes += count;                     \
		}                                           \
	} while (0)
	TAKE(flow->v6 ? IBV_RX_HASH_SRC_IPV6 : IBV_RX_HASH_SRC_IPV4, flow->src, address);
	TAKE(flow->v6 ? IBV_RX_HASH_DST_IPV6 : IBV_RX_HASH_DST_IPV4, flow->dst, address);
	TAKE(tcp ? IBV_RX_HASH_SRC_PORT_TCP : udp ? IBV_RX_HASH_SRC_PORT_UDP : 0, flow->l4, 2);
	TAKE(tcp ? IBV_RX_HASH_DST_PORT_TCP : udp ? IBV_RX_HASH_DST_PORT_UDP : 0, flow->l4 + 2, 2);
	TAKE(flow->proto == IPPROTO_ESP ? IBV_RX_HASH_IPSEC_SPI : 0, flow->l4, 4);
	return toeplitz(with, input, bytes);
}

/* Send what stands in a's buffer; it must come out of this queue, and of no other. */
static void expect_queue(struct spread *s, uint32_t bytes, uint32_t queue)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < QUEUES; i++)
		assert_int_equal(wq_post(s, i, i), 0);
	raw_send(&s->a, OWN_SLOTS, bytes);
	wc = vt_expect(s->cq[queue], queue, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, bytes);
	assert_int_equal(wc.qp_num, s->wq[queue]->wq_num);
	assert_memory_equal(raw_at(&s->b, queue), raw_at(&s->a, OWN_SLOTS), bytes);
	for (unsigned i = 0; i < QUEUES; i++) {
		assert_int_equal(ibv_poll_cq(s->cq[i], 1, &wc), 0);
		/* Others' requests are forgotten, for the next frame. */
		assert_int_equal(wq_to(s->wq[i], IBV_WQS_RESET), 0);
		assert_int_equal(wq_to(s->wq[i], IBV_WQS_RDY), 0);
	}
}

static void expect_flow(struct spread *s, const struct flow *flow, uint64_t fields)
{
	uint32_t bytes = flow_write(flow, raw_at(&s->a, OWN_SLOTS));

	expect_queue(s, bytes, flow_hash(flow, fields, key) % QUEUES);
}

/* --- tests --- */

/* create_ex: "Indirection table to be associated with the QP" */
/* create_ex: "RX hash configuration to be used" */
spread_test(frames_go_where_the_published_hashes_say, 0)
{
	static const struct {
		const char *src, *dst;
		uint16_t sport, dport;
		uint32_t addresses, all;
	} rows[] = {
		{"66.9.149.187", "161.142.100.80", 2794, 1766, 0x323e8fc2, 0x51ccc178},
		{"199.92.111.2", "65.69.140.83", 14230, 4739, 0xd718262a, 0xc626b0ea},
		{"24.19.198.95", "12.22.207.184", 12898, 38024, 0xd2d0a5de, 0x5c2b394a},
		{"38.27.205.30", "209.142.163.6", 48228, 2217, 0x82989176, 0xafc7327f},
		{"153.39.163.191", "202.188.127.2", 44251, 1303, 0x5d1809c5, 0x10e828a2},
		{"3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, 0x2cc18cd5, 0x40207d3d},
		{"3ffe:501:8::260:97ff:fe40:efab", "ff02::1", 14230, 4739, 0x0f0c461c, 0xdde51bbf},
		{"3ffe:1900:4545:3:200:f8ff:fe21:67cf", "fe80::200:f8ff:fe21:67cf", 44251, 38024,
		 0x4b61e985, 0x02d1feef},
	};

	for (unsigned i = 0; i < 4 * VT_COUNT(rows); i++) {
		bool all = i & 1, tcp = i & 2;
		struct flow flow =
			flow_of(rows[i / 4].src, rows[i / 4].dst, tcp ? IPPROTO_TCP : IPPROTO_UDP,
				rows[i / 4].sport, rows[i / 4].dport);
		uint64_t fields = flow.v6 ? IPV6_FIELDS : IPV4_FIELDS;

		if (all)
			fields |= tcp ? TCP_FIELDS : UDP_FIELDS;
		assert_int_equal(flow_hash(&flow, fields, key),
				 all ? rows[i / 4].all : rows[i / 4].addresses);
		listen_to(s, fields);
		expect_flow(s, &flow, fields);
		listen_end(s);
	}
}

/* create_ex: "RX fields that should participate in the hashing, use enum ibv_rx_hash_fields" */
spread_test(each_field_counts_and_no_other, 0)
{
	static const struct {
		uint64_t field;
		bool v6;
		uint8_t proto;
	} rows[] = {
		{IBV_RX_HASH_SRC_IPV4, false, IPPROTO_UDP},
		{IBV_RX_HASH_DST_IPV4, false, IPPROTO_TCP},
		{IBV_RX_HASH_SRC_IPV6, true, IPPROTO_UDP},
		{IBV_RX_HASH_DST_IPV6, true, IPPROTO_TCP},
		{IBV_RX_HASH_SRC_PORT_TCP, false, IPPROTO_TCP},
		{IBV_RX_HASH_DST_PORT_TCP, true, IPPROTO_TCP},
		{IBV_RX_HASH_SRC_PORT_UDP, true, IPPROTO_UDP},
		{IBV_RX_HASH_DST_PORT_UDP, false, IPPROTO_UDP},
		{IBV_RX_HASH_IPSEC_SPI, true, IPPROTO_ESP},
		{IBV_RX_HASH_IPSEC_SPI, false, IPPROTO_ESP},
	};

	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		struct flow flow = rows[i].v6 ? flow_of("fd00::1:2", "fd00::3:4", 0, 5, 6)
					      : flow_of("10.1.2.3", "10.4.5.6", 0, 5, 6);
		unsigned moved = 0, last = rows[i].v6 ? 15 : 3;

		flow.proto = rows[i].proto;
		listen_to(s, rows[i].field);
		/* One thing after the other is changed: only the field's own octets matter. */
		for (unsigned change = 0; change < 4; change++) {
			uint32_t before = flow_hash(&flow, rows[i].field, key);
			uint8_t *at[] = {&flow.src[last], &flow.dst[last], &flow.l4[1],
					 &flow.l4[3]};

			*at[change] ^= 0x55;
			expect_flow(s, &flow, rows[i].field);
			moved += before != flow_hash(&flow, rows[i].field, key);
		}
		assert_int_equal(moved, rows[i].field == IBV_RX_HASH_IPSEC_SPI ? 2 : 1);
		listen_end(s);
	}
}

/* create_ex: "RX hash function, use enum ibv_rx_hash_function_flags" */
spread_test(there_is_one_hash_function, 0)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_device_attr_ex device;

	assert_int_equal(ibv_query_device_ex(s->b.ctx, NULL, &device), 0);
	assert_int_equal(device.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
	for (unsigned function = 0; function < 256; function++) {
		attr = qp_attr(s, IPV4_FIELDS);
		attr.rx_hash_conf.rx_hash_function = (uint8_t)function;
		if (function != IBV_RX_HASH_FUNC_TOEPLITZ)
			expect_refused(s, &attr, EOPNOTSUPP);
	}
}

/* create_ex: "RX hash key length" */
spread_test(a_key_has_40_octets, 0)
{
	uint8_t long_key[256] = {0};
	struct ibv_qp_init_attr_ex attr;

	for (unsigned bytes = 0; bytes < sizeof(long_key); bytes++) {
		attr = qp_attr(s, IPV4_FIELDS);
		attr.rx_hash_conf.rx_hash_key = long_key;
		attr.rx_hash_conf.rx_hash_key_len = (uint8_t)bytes;
		if (bytes != KEY)
			expect_refused(s, &attr, EINVAL);
	}
	attr = qp_attr(s, IPV4_FIELDS);
	attr.rx_hash_conf.rx_hash_key = NULL;
	expect_refused(s, &attr, EINVAL);
}

/* create_ex: "RX hash key data" */
spread_test(every_octet_of_the_key_counts, 0)
{
	struct flow flow = flow_of("fd00::ffff:ffff:ffff:ffff", "fd00::ffff:ffff:ffff:ffff",
				   IPPROTO_UDP, 0xffff, 0xffff);
	uint64_t fields = IPV6_FIELDS | UDP_FIELDS;

	for (unsigned i = 0; i < KEY; i += 3) {
		struct ibv_qp_init_attr_ex attr = qp_attr(s, fields);
		uint8_t other[KEY], kept[KEY];
		uint32_t bytes;

		memcpy(other, key, KEY);
		other[i] ^= 0x11;
		memcpy(kept, other, KEY);
		attr.rx_hash_conf.rx_hash_key = other;
		listen_with(s, &attr);
		memset(other, 0, KEY); /* the caller's again */
		bytes = flow_write(&flow, raw_at(&s->a, OWN_SLOTS));
		expect_queue(s, bytes, flow_hash(&flow, fields, kept) % QUEUES);
		listen_end(s);
	}
}

/* VXLAN in UDP over IPv4, with that packet in it. */
static uint32_t tunnel_write(const struct flow *inner, uint8_t *frame)
{
	struct flow outer = flow_of("10.9.8.7", "10.7.8.9", IPPROTO_UDP, 77, 4789);
	uint32_t inside;

	flow_write(&outer, frame);
	memset(frame + 42, 0, 8);
	frame[42] = 8;
	inside = flow_write(inner, frame + 50);
	raw_put16(frame + IP_AT + 2, 36 + inside);
	raw_put16(frame + 38, 16 + inside);
	return 50 + inside;
}

/* create_ex: "When using tunneling protocol, e.g. VXLAN, then we have an inner" */
/*
 * create_ex: "For applying RSS on the inner packet, then the following field should be set with one
 * of the L3/L4 fields."
 */
spread_test(inner_packets_are_hashed_if_that_is_asked, 0)
{
	static const uint64_t of_inner = IPV4_FIELDS | TCP_FIELDS;
	struct flow outer = flow_of("10.9.8.7", "10.7.8.9", IPPROTO_UDP, 77, 4789);
	struct ibv_qp_init_attr_ex attr;

	/* By itself it says nothing. */
	attr = qp_attr(s, IBV_RX_HASH_INNER);
	expect_refused(s, &attr, EINVAL);
	for (unsigned i = 0; i < 8; i++) {
		struct flow inner =
			flow_of("192.168.1.1", "192.168.1.2", IPPROTO_TCP, 1000 + i, 80);
		uint32_t bytes;

		listen_to(s, of_inner | IBV_RX_HASH_INNER);
		bytes = tunnel_write(&inner, raw_at(&s->a, OWN_SLOTS));
		expect_queue(s, bytes, flow_hash(&inner, of_inner, key) % QUEUES);
		/* No tunnel: nothing to hash. */
		bytes = flow_write(&inner, raw_at(&s->a, OWN_SLOTS));
		expect_queue(s, bytes, 0);
		listen_end(s);
		/* Without it, what is outside counts. */
		listen_to(s, IPV4_FIELDS | UDP_FIELDS);
		bytes = tunnel_write(&inner, raw_at(&s->a, OWN_SLOTS));
		expect_queue(s, bytes, flow_hash(&outer, IPV4_FIELDS | UDP_FIELDS, key) % QUEUES);
		listen_end(s);
	}
}

spread_test(fields_that_no_packet_has_together_are_refused, 0)
{
	static const uint64_t masks[] = {
		IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_SRC_IPV6,
		IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_UDP,
		IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_IPSEC_SPI,
		IPV4_FIELDS | IPV6_FIELDS | TCP_FIELDS | UDP_FIELDS,
		0,
	};
	struct ibv_qp_init_attr_ex attr;

	for (unsigned i = 0; i < VT_COUNT(masks); i++) {
		attr = qp_attr(s, masks[i]);
		expect_refused(s, &attr, EINVAL);
	}
	attr = qp_attr(s, IPV4_FIELDS | 1 << 20);
	expect_refused(s, &attr, EOPNOTSUPP);
}

/* ibv_create_rwq_ind_table(3): it is for ibv_create_qp_ex(), and has no queues beside. */
spread_test(such_a_qp_has_nothing_else, 0)
{
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_recv_wr recv = {.num_sge = 0}, *bad_recv;
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now;

	attr = qp_attr(s, IPV4_FIELDS);
	attr.send_cq = attr.recv_cq = s->cq[0];
	expect_refused(s, &attr, EINVAL);
	attr = qp_attr(s, IPV4_FIELDS);
	attr.cap.max_recv_wr = 4;
	expect_refused(s, &attr, EINVAL);
	attr = qp_attr(s, IPV4_FIELDS);
	attr.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_IND_TABLE;
	expect_refused(s, &attr, EINVAL);
	attr = qp_attr(s, IPV4_FIELDS);
	attr.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_RX_HASH;
	expect_refused(s, &attr, EINVAL);
	listen_to(s, IPV4_FIELDS);
	assert_int_equal(ibv_post_send(s->b.qp, &send, &bad_send), EINVAL);
	assert_int_equal(ibv_post_recv(s->b.qp, &recv, &bad_recv), EINVAL);
	assert_int_equal(raw_climb(s->b.qp, IBV_QPS_RTS), EOPNOTSUPP);
	assert_int_equal(ibv_query_qp(s->b.qp, &now, IBV_QP_STATE, &init), EOPNOTSUPP);
}

/* ibv_destroy_wq(3), ibv_destroy_rwq_ind_table(3) */
spread_test(what_is_in_use_stays, 0)
{
	listen_to(s, IPV4_FIELDS);
	assert_int_equal(ibv_destroy_rwq_ind_table(s->table), EBUSY);
	for (unsigned i = 0; i < QUEUES; i++) {
		assert_int_equal(ibv_destroy_wq(s->wq[i]), EBUSY);
		assert_int_equal(ibv_destroy_cq(s->cq[i]), EBUSY);
	}
	assert_int_equal(ibv_dealloc_pd(s->b.pd), EBUSY);
}

/* ibv_create_wq(3) */
spread_test(a_queue_is_made_as_it_was_asked, 0)
{
	struct ibv_device_attr_ex device;
	struct ibv_wq_init_attr attr;
	struct ibv_wq *wq;

	assert_int_equal(ibv_query_device_ex(s->b.ctx, NULL, &device), 0);
	assert_true(device.max_wq_type_rq > QUEUES);
	assert_int_equal(device.rss_caps.supported_qpts, 1 << IBV_QPT_RAW_PACKET);
	attr = wq_attr(s, 0);
	wq = vt_made(ibv_create_wq(s->b.ctx, &attr));
	assert_int_equal(attr.max_wr, 16);
	assert_int_equal(attr.max_sge, 2);
	assert_ptr_equal(wq->wq_context, s);
	assert_ptr_equal(wq->context, s->b.ctx);
	assert_ptr_equal(wq->pd, s->b.pd);
	assert_ptr_equal(wq->cq, s->cq[0]);
	assert_int_equal(wq->state, IBV_WQS_RESET);
	assert_int_equal(wq->wq_type, IBV_WQT_RQ);
	assert_int_equal(ibv_destroy_wq(wq), 0);
	attr.create_flags = IBV_WQ_FLAGS_RESERVED;
	vt_refused(EOPNOTSUPP, ibv_create_wq(s->b.ctx, &attr));
	attr = wq_attr(s, 0);
	attr.max_wr = (uint32_t)device.orig_attr.max_qp_wr + 1;
	vt_refused(EINVAL, ibv_create_wq(s->b.ctx, &attr));
	attr = wq_attr(s, 0);
	attr.pd = vt.pd; /* of another context */
	vt_refused(EINVAL, ibv_create_wq(s->b.ctx, &attr));
}

/* ibv_create_rwq_ind_table(3) */
spread_test(a_table_has_a_power_of_two_of_places, 0)
{
	struct ibv_wq *places[1 << 12];
	struct ibv_rwq_ind_table_init_attr attr = {.ind_tbl = places};
	struct ibv_device_attr_ex device;

	assert_int_equal(ibv_query_device_ex(s->b.ctx, NULL, &device), 0);
	for (unsigned i = 0; i < 1 << 12; i++)
		places[i] = s->wq[i % QUEUES];
	for (uint32_t log = 0; log <= 12; log++) {
		struct ibv_rwq_ind_table *table;

		attr.log_ind_tbl_size = log;
		table = ibv_create_rwq_ind_table(s->b.ctx, &attr);
		if (1u << log > device.rss_caps.max_rwq_indirection_table_size) {
			assert_null(table);
			assert_int_equal(errno, EINVAL);
		} else {
			assert_non_null(table);
			assert_int_equal(ibv_destroy_rwq_ind_table(table), 0);
		}
	}
	vt_refused(EINVAL, ibv_create_rwq_ind_table(vt.ctx, &attr));
	attr.log_ind_tbl_size = 0;
	attr.comp_mask = IBV_CREATE_IND_TABLE_RESERVED;
	vt_refused(EOPNOTSUPP, ibv_create_rwq_ind_table(s->b.ctx, &attr));
}

/* ibv_modify_wq(3) */
spread_test(states_follow_each_other, 0)
{
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
				   .wq_state = IBV_WQS_ERR,
				   .curr_wq_state = IBV_WQS_RESET};

	assert_int_equal(ibv_modify_wq(s->wq[0], &attr), EINVAL);
	assert_int_equal(wq_to(s->wq[0], IBV_WQS_UNKNOWN), EINVAL);
	assert_int_equal(wq_post(s, 0, 3), 0);
	attr.curr_wq_state = IBV_WQS_RDY;
	assert_int_equal(ibv_modify_wq(s->wq[0], &attr), 0);
	assert_int_equal(s->wq[0]->state, IBV_WQS_ERR);
	vt_expect(s->cq[0], 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wq_post(s, 0, 4), 0);
	vt_expect(s->cq[0], 4, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wq_to(s->wq[0], IBV_WQS_RDY), EINVAL);
	assert_int_equal(wq_to(s->wq[0], IBV_WQS_RESET), 0);
	assert_int_equal(wq_to(s->wq[0], IBV_WQS_ERR), EINVAL);
	assert_int_equal(wq_post(s, 0, 5), EINVAL);
	attr = (struct ibv_wq_attr){.attr_mask = IBV_WQ_ATTR_FLAGS,
				    .flags_mask = IBV_WQ_FLAGS_SCATTER_FCS};
	assert_int_equal(ibv_modify_wq(s->wq[0], &attr), EOPNOTSUPP);
	attr.attr_mask = IBV_WQ_ATTR_RESERVED;
	assert_int_equal(ibv_modify_wq(s->wq[0], &attr), EINVAL);
}

/* ibv_create_wq(3): the tag is gone, the check sequence there; ibv_modify_wq(3): no longer. */
spread_test(flags_of_queues_are_obeyed, IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS |
						IBV_WQ_FLAGS_PCI_WRITE_END_PADDING)
{
	struct ibv_wq_attr keep = {.attr_mask = IBV_WQ_ATTR_FLAGS,
				   .flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING};
	uint8_t *sent, *got;

	listen_to(s, IPV4_FIELDS);
	sent = raw_frame(&s->a, OWN_SLOTS, raw_mac[1], raw_mac[0], 100, 3);
	got = raw_at(&s->b, 0);
	raw_put16(sent + 12, 0x8100);
	assert_int_equal(wq_post(s, 0, 0), 0);
	raw_send(&s->a, OWN_SLOTS, 100);
	assert_int_equal(vt_expect(s->cq[0], 0, IBV_WC_SUCCESS).byte_len, 100);
	assert_memory_equal(got, sent, 12);
	assert_memory_equal(got + 12, sent + 16, 84);
	assert_int_equal(ibv_modify_wq(s->wq[0], &keep), 0);
	assert_int_equal(wq_post(s, 0, 0), 0);
	raw_send(&s->a, OWN_SLOTS, 100);
	assert_int_equal(vt_expect(s->cq[0], 0, IBV_WC_SUCCESS).byte_len, 104);
	assert_memory_equal(got, sent, 100);
	assert_true(got[100] | got[101] | got[102] | got[103]);
}

/* ibv_create_wq(3): "Packets won't be dropped immediately if no WQEs" */
spread_test(a_frame_waits_for_a_request_if_that_is_asked, IBV_WQ_FLAGS_DELAY_DROP)
{
	struct ibv_wc wc;

	listen_to(s, IPV4_FIELDS);
	for (unsigned i = 0; i < 5; i++) {
		raw_frame(&s->a, OWN_SLOTS, raw_mac[1], raw_mac[0], 100 + i, i);
		raw_send(&s->a, OWN_SLOTS, 100 + i);
	}
	assert_false(vt_poll_ms(s->cq[0], &wc, VT_QUIET_MS));
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(wq_post(s, 0, i), 0);
		assert_int_equal(vt_expect(s->cq[0], i, IBV_WC_SUCCESS).byte_len, 100 + i);
		assert_true(vt_is_filled(raw_at(&s->b, i) + RAW_HEADER, 86 + i, i));
	}
}

spread_test(without_a_request_it_is_lost, 0)
{
	struct ibv_wc wc;

	listen_to(s, IPV4_FIELDS);
	raw_frame(&s->a, OWN_SLOTS, raw_mac[1], raw_mac[0], 100, 1);
	raw_send(&s->a, OWN_SLOTS, 100);
	assert_false(vt_poll_ms(s->cq[0], &wc, VT_QUIET_MS));
	assert_int_equal(wq_post(s, 0, 1), 0);
	assert_false(vt_poll_ms(s->cq[0], &wc, VT_QUIET_MS));
}

/* ibv_get_async_event(3): IBV_EVENT_WQ_FATAL. It has to be acknowledged before the queue goes. */
spread_test(a_queue_whose_cq_overran_tells_it, 0)
{
	struct ibv_async_event event;
	struct ibv_wq_init_attr attr;
	unsigned both = 0;

	log_skip();
	assert_int_equal(ibv_destroy_rwq_ind_table(s->table), 0);
	assert_int_equal(ibv_destroy_wq(s->wq[0]), 0);
	assert_int_equal(ibv_destroy_cq(s->cq[0]), 0);
	s->cq[0] = ibv_create_cq(s->b.ctx, 1, NULL, NULL, 0);
	attr = wq_attr(s, 0);
	s->wq[0] = ibv_create_wq(s->b.ctx, &attr);
	assert_int_equal(wq_to(s->wq[0], IBV_WQS_RDY), 0);
	s->table = ibv_create_rwq_ind_table(s->b.ctx,
					   &(struct ibv_rwq_ind_table_init_attr){.log_ind_tbl_size =
											 3,
										 .ind_tbl = s->wq});
	listen_to(s, IPV4_FIELDS);
	raw_frame(&s->a, OWN_SLOTS, raw_mac[1], raw_mac[0], 100, 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(wq_post(s, 0, i), 0);
		raw_send(&s->a, OWN_SLOTS, 100);
	}
	while (both != 3) {
		assert_true(vt_readable(s->b.ctx->async_fd, VT_WAIT_MS));
		assert_int_equal(ibv_get_async_event(s->b.ctx, &event), 0);
		if (event.event_type == IBV_EVENT_CQ_ERR) {
			assert_ptr_equal(event.element.cq, s->cq[0]);
			both |= 1;
		} else {
			assert_int_equal(event.event_type, IBV_EVENT_WQ_FATAL);
			assert_ptr_equal(event.element.wq, s->wq[0]);
			both |= 2;
		}
		ibv_ack_async_event(&event);
	}
	assert_int_equal(s->wq[0]->state, IBV_WQS_ERR);
	logged(text("WQ 0x%x: IBV_EVENT_WQ_FATAL: ", s->wq[0]->wq_num), "the receive queue failed",
	       NULL);
}
