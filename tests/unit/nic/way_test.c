/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which way, while the host does not know yet: it says EINPROGRESS, and answers when the test says
 * so. Here the fixture's wire delivers, or loses what it is told to.
 */
#include "pair_fixture.h"

#include "nic/core/export.h"
#include "nic/way/receive.h"
#include "nic/way/way.h"
#include "wire/icrc.h"

enum { FRAMES_MAX = 256, WIRE_BYTES_MAX = 8192, ASKED = EINPROGRESS, LONG_NS = 1000000000 };

/* --- the wire --- */

static struct {
	struct vb_path path;
	uint16_t slot, id;
	uint32_t bytes;
	uint8_t data[WIRE_BYTES_MAX];
} wire[FRAMES_MAX];
static unsigned wire_n, wire_lost, wire_loses;

static void wire_put(const struct vb_burst *burst, uint16_t id, const uint8_t *data, uint32_t bytes)
{
	if (wire_loses) {
		wire_loses--;
		wire_lost++;
		return;
	}
	assert_true(wire_n < FRAMES_MAX && bytes <= WIRE_BYTES_MAX);
	wire[wire_n].path = burst->path;
	wire[wire_n].slot = burst->slot;
	wire[wire_n].id = id;
	wire[wire_n].bytes = bytes;
	memcpy(wire[wire_n++].data, data, bytes);
}

static int wire_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	static uint8_t all[1 << 17];
	uint32_t at = 0;

	((struct side *)arg)->sent += burst->frames;
	for (uint32_t i = 0; i < burst->iovcnt; i++) {
		assert_true(at + burst->iov[i].iov_len <= sizeof(all));
		memcpy(all + at, burst->iov[i].iov_base, burst->iov[i].iov_len);
		at += (uint32_t)burst->iov[i].iov_len;
	}
	for (uint16_t i = 0; i < burst->frames; i++)
		wire_put(burst, i, all + i * burst->frame_bytes,
			 i + 1 == burst->frames ? burst->last_bytes : burst->frame_bytes);
	return 0;
}

static unsigned wire_deliver(void)
{
	unsigned n = wire_n;
	static typeof(wire[0]) now[FRAMES_MAX];

	memcpy(now, wire, n * sizeof(wire[0]));
	wire_n = 0;
	for (unsigned i = 0; i < n; i++) {
		struct side *to = side_of_slot(now[i].slot);
		struct vb_frame frame = { .path = now[i].path, .data = now[i].data,
					  .bytes = now[i].bytes, .id_hint = now[i].id };

		assert_non_null(to);
		assert_true(vb_nic_rx_try(to->nic));
		vb_nic_rx(to->nic, &frame, 1);
		vb_nic_rx_drop(to->nic);
	}
	return n;
}

/* Until nobody has anything to do; and so after a while in which every clock has rung. */
static void run(void)
{
	for (unsigned quiet = 0; quiet < 3;)
		quiet = wire_deliver() + poll_all() ? 0 : quiet + 1;
}

static void run_long(void)
{
	run();
	for (unsigned i = 0; i < 40; i++) {
		fake_ns += 10000000;
		for (unsigned k = 0; k < sides; k++)
			vb_nic_turn(side[k].nic);
		run();
	}
}

static int begin(void **state)
{
	wire_n = wire_lost = wire_loses = 0;
	lanes_begin(state);
	for (unsigned i = 0; i < 2; i++)
		side[i].nic->host.wire.tx = wire_tx;
	return 0;
}

#define WAY(name) TEST_BETWEEN(name, begin, lanes_end)

/* --- asking --- */

/* Whoever wants to reach it has to wait for the answer. */
static void unknown(unsigned to)
{
	side[to].refuses = ASKED;
}

/* The answer has come to side `from`: there is a ring, or what rc says. */
static void answered(unsigned from, int rc)
{
	unsigned to = 1 - from;

	side[to].refuses = rc;
	if (!rc)
		assert_int_equal(lanes_reach(&side[from], side[from].slot, side[to].slot), 0);
	vb_peer_answered(side[from].nic, side[from].slot, side[to].slot, rc);
}

/* --- RC and UC --- */

/* side 1 has a ring to side 0, which has none back: the two decide differently. */
static void pair_apart(enum ibv_qp_type type)
{
	pair_create(type);
	unknown(1);
	qp_connect(a, b);
	assert_null(a->to.peer);
	assert_non_null(b->to.peer);
}

static void fill(struct side *s, uint32_t bytes, uint8_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		s->mem[i] = (uint8_t)(i * 7 + seed);
}

static void assert_filled(const struct side *s, uint32_t at, uint32_t bytes, uint8_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(s->mem[at + i], (uint8_t)(i * 7 + seed));
}

enum { BYTES = 100000, AT = 300000 };

static void send_over(unsigned from, struct vb_qp *by, struct vb_qp *to, uint64_t wr_id)
{
	struct side *s = &side[from], *r = &side[1 - from];

	fill(s, BYTES, (uint8_t)wr_id);
	memset(r->mem + AT, 0, BYTES);
	qp_recv(r, to, wr_id, AT, BYTES);
	assert_int_equal(qp_send(s, by, wr_id, BYTES), 0);
	run_long();
	assert_wc(s->cq, wr_id, IBV_WC_SUCCESS);
	assert_wc(r->cq, wr_id, IBV_WC_SUCCESS);
	assert_filled(r, AT, BYTES, (uint8_t)wr_id);
}

WAY(rc_goes_by_the_wire_where_nobody_answers)
{
	pair_create(IBV_QPT_RC);
	side[0].refuses = side[1].refuses = ASKED;
	qp_connect(a, b);
	send_over(0, a, b, 1);
	send_over(1, b, a, 2);
	assert_true(side[0].sent && side[1].sent);
	/* It has begun, and stays where it is. */
	answered(0, 0);
	answered(1, 0);
	assert_true(!a->to.peer && !b->to.peer);
	send_over(0, a, b, 3);
	pair_drop();
}

/* The one that has the ring sends first: it is asked for all of that by the wire. */
WAY(one_with_a_ring_follows_to_the_wire)
{
	pair_apart(IBV_QPT_RC);
	send_over(1, b, a, 1);
	assert_null(b->to.peer);
	send_over(0, a, b, 2);
	send_over(1, b, a, 3);
	pair_drop();
}

/* The one that goes by the wire sends first. */
WAY(one_with_a_ring_hears_the_wire_at_first)
{
	pair_apart(IBV_QPT_RC);
	send_over(0, a, b, 1);
	assert_null(b->to.peer);
	send_over(1, b, a, 2);
	pair_drop();
}

/* Both at once, and the word that it is by the wire gets lost a few times. */
WAY(what_tells_it_may_get_lost)
{
	pair_apart(IBV_QPT_RC);
	wire_loses = 3;
	qp_recv(&side[0], a, 1, AT, BYTES);
	qp_recv(&side[1], b, 2, AT, BYTES);
	assert_int_equal(qp_send(&side[1], b, 1, BYTES), 0);
	assert_int_equal(qp_send(&side[1], b, 3, 10), 0);
	run();
	assert_int_equal(qp_send(&side[0], a, 2, BYTES), 0);
	run_long();
	assert_int_equal(wire_lost, 3);
	qp_recv(&side[0], a, 3, AT, BYTES);
	run_long();
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_wc wc;

		for (unsigned k = 0; k < 3; k++) {
			assert_int_equal(vb_cq_poll(side[i].cq, 1, &wc), 1);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		}
	}
	pair_drop();
}

/* As long as nothing has happened, the ring is taken when it is known. */
WAY(an_answer_in_time_makes_it_a_ring)
{
	pair_create(IBV_QPT_RC);
	unknown(1);
	qp_connect(a, b);
	assert_null(a->to.peer);
	answered(0, 0);
	assert_non_null(a->to.peer);
	send_over(0, a, b, 1);
	send_over(1, b, a, 2);
	assert_int_equal(side[0].sent + side[1].sent, 0);
	pair_drop();
}

/* ... also before it has got to RTS. */
WAY(an_answer_in_rtr_makes_it_a_ring)
{
	pair_create(IBV_QPT_RC);
	unknown(1);
	assert_int_equal(qp_step(a, IBV_QPS_INIT, 0), 0);
	assert_int_equal(qp_step(a, IBV_QPS_RTR, b->ibv.qp.qp_num), 0);
	answered(0, 0);
	assert_non_null(a->to.peer);
	assert_int_equal(qp_step(a, IBV_QPS_RTS, b->ibv.qp.qp_num), 0);
	qp_ready(b, a->ibv.qp.qp_num);
	send_over(0, a, b, 1);
	send_over(1, b, a, 2);
	assert_int_equal(side[0].sent + side[1].sent, 0);
	pair_drop();
}

/* Who has used a ring hears nothing from the wire, whatever the peer's export says. */
WAY(a_ring_in_use_is_not_left)
{
	pair_create(IBV_QPT_RC);
	qp_connect(a, b);
	send_over(0, a, b, 1);
	assert_true(!vb_export_says_wire(side[0].nic->export, a->ibv.qp.qp_num,
					 b->ibv.qp.qp_num));
	side[0].nic->export->qp[0][a->ibv.qp.qp_num & (VB_INDICES - 1)].wire_qpn =
		a->ibv.qp.qp_num;
	side[0].nic->export->qp[0][a->ibv.qp.qp_num & (VB_INDICES - 1)].wire_dqpn =
		b->ibv.qp.qp_num;
	assert_true(vb_export_says_wire(side[0].nic->export, a->ibv.qp.qp_num,
					b->ibv.qp.qp_num));
	vb_lock_take(&b->lock);
	assert_false(vb_way_heeds_wire(&(struct vb_batch){ .nic = side[1].nic }, b));
	vb_lock_drop(&b->lock);
	assert_non_null(b->to.peer);
	send_over(1, b, a, 2);
	pair_drop();
}

/* What the export says is taken back with the connection. */
WAY(the_export_says_how_it_is)
{
	uint32_t qpn;

	pair_apart(IBV_QPT_RC);
	qpn = a->ibv.qp.qp_num;
	assert_true(vb_export_says_wire(side[0].nic->export, qpn, b->ibv.qp.qp_num));
	assert_false(vb_export_says_wire(side[0].nic->export, qpn, b->ibv.qp.qp_num + 1));
	assert_false(vb_export_says_wire(side[1].nic->export, b->ibv.qp.qp_num, qpn));
	assert_int_equal(qp_step(a, IBV_QPS_RESET, 0), 0);
	assert_false(vb_export_says_wire(side[0].nic->export, qpn, b->ibv.qp.qp_num));
	pair_drop();
}

WAY(uc_hears_both_ways)
{
	pair_apart(IBV_QPT_UC);
	send_over(0, a, b, 1);
	send_over(1, b, a, 2);
	send_over(0, a, b, 3);
	send_over(1, b, a, 4);
	assert_non_null(b->to.peer);
	pair_drop();
}

/* --- datagrams --- */

static int begin_ud(void **state)
{
	begin(state);
	datagrams_make();
	unknown(1);
	return 0;
}

#define WAY_UD(name) TEST_BETWEEN(name, begin_ud, ud_end)

static void send_one(uint64_t wr_id)
{
	assert_int_equal(datagram(wr_id, 100, b->ibv.qp.qp_num), 0);
}

WAY_UD(datagrams_wait_for_the_answer)
{
	for (uint64_t i = 0; i < 3; i++)
		qp_recv(&side[1], b, i, AT, 1000);
	for (uint64_t i = 0; i < 3; i++)
		send_one(i);
	/* Asked once for all of them. */
	assert_int_equal(side[0].reaches, 1);
	run();
	assert_no_wc(side[0].cq);
	answered(0, 0);
	run();
	for (uint64_t i = 0; i < 3; i++) {
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
		assert_wc(side[1].cq, i, IBV_WC_SUCCESS);
	}
	assert_int_equal(side[0].sent, 0);
}

WAY_UD(datagrams_do_not_wait_for_long)
{
	for (uint64_t i = 0; i < 4; i++)
		qp_recv(&side[1], b, i, AT, 1000);
	send_one(0);
	fake_ns += 50000000;
	vb_nic_turn(side[0].nic);
	run();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 0, IBV_WC_SUCCESS);
	/* From then on, at once; and it is not asked again. */
	for (uint64_t i = 1; i < 3; i++) {
		send_one(i);
		run();
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
		assert_wc(side[1].cq, i, IBV_WC_SUCCESS);
	}
	assert_int_equal(side[0].sent, 3);
	assert_int_equal(side[0].reaches, 1);
	answered(0, 0);
	send_one(3);
	run();
	assert_wc(side[0].cq, 3, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(side[0].sent, 3);
}

/* An answer that says no; after a while it is asked again. */
WAY_UD(who_refuses_is_left_alone)
{
	for (uint64_t i = 0; i < 3; i++)
		qp_recv(&side[1], b, i, AT, 1000);
	send_one(0);
	answered(0, ETIMEDOUT);
	run();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	send_one(1);
	assert_int_equal(side[0].sent, 2);
	assert_int_equal(side[0].reaches, 1);
	fake_ns += LONG_NS;
	side[1].refuses = ASKED;
	send_one(2);
	assert_int_equal(side[0].sent, 2);
	assert_int_equal(side[0].reaches, 2);
	answered(0, EOPNOTSUPP);
	assert_int_equal(side[0].sent, 3);
	run();
}

/* A QP that waits is destroyed; the answer finds nobody. */
WAY(one_that_waits_may_go)
{
	datagrams_make();
	unknown(1);
	send_one(0);
	datagrams_drop();
	answered(0, 0);
}

static void await_in_vain(void *arg, uint16_t own_slot, uint16_t slot)
{
	fake_ns += 40000000;
}

/* A program that has posted need not wait for the completion before it destroys the QP, or ends. */
static void what_was_posted_leaves_first(bool all)
{
	side[0].peers.await = await_in_vain;
	qp_recv(&side[1], b, 0, AT, 1000);
	send_one(0);
	assert_int_equal(side[0].sent, 0);
	if (all)
		vb_ways_finish(side[0].nic);
	else
		vb_way_finish(a);
	assert_int_equal(side[0].sent, 1);
	run();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 0, IBV_WC_SUCCESS);
}

WAY_UD(what_was_posted_leaves_before_the_qp)
{
	what_was_posted_leaves_first(false);
}

WAY_UD(what_was_posted_leaves_before_the_process)
{
	what_was_posted_leaves_first(true);
}

/* --- leasing --- */

static int lease_slowly(void *arg, uint16_t *slot, uint32_t *next_index)
{
	struct side *s = arg;

	/* Whoever destroys, binds or draws a key meanwhile is not held up. */
	assert_true(vb_lock_try(&s->nic->lock));
	vb_lock_drop(&s->nic->lock);
	*slot = 77;
	*next_index = 5;
	return 0;
}

WAY(nobody_is_held_up_by_a_lease)
{
	struct vb_qp *qp[2];

	qp[0] = qp_make(&side[0], IBV_QPT_RC);
	side[0].nic->host.wire.lease = lease_slowly;
	/* As if all of the first were in use. */
	atomic_load(&side[0].nic->leased.slot[0])->count += VB_INDICES_USED;
	qp[1] = qp_make(&side[0], IBV_QPT_RC);
	assert_int_equal(qp[1]->ibv.qp.qp_num >> VB_INDEX_BITS, 77);
	atomic_load(&side[0].nic->leased.slot[0])->count -= VB_INDICES_USED;
	drop_qp(qp[1]);
	drop_qp(qp[0]);
}
