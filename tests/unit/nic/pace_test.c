/* SPDX-License-Identifier: BSD-2-Clause */
/* Rate limits in virtual time: how much leaves until when, to the octet. */
#include "nic_fixture.h"

#include "nic/data/pace.h"

enum { RATE_KBPS = 8000, FRAME = 12 + 1000 + 4, MESSAGES = 8 };

static struct {
	uint64_t octets;
} ends;

/* Questions to the peer's NIC, how far it has come, are not the QP's. */
static int host_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	if (burst->frame_bytes != FRAME)
		return 0;
	fix.sent += burst->frames;
	ends.octets += (burst->frames - 1u) * burst->frame_bytes + burst->last_bytes;
	return 0;
}

static int begin_connected(void **state)
{
	int rc = begin(state);

	memset(&ends, 0, sizeof(ends));
	fix.nic->host.wire.tx = host_tx;
	connect_as(IBV_QPT_UC);
	return rc;
}

#define CONNECTED(name) TEST_BETWEEN(name, begin_connected, end)

static void post(unsigned count)
{
	static uint8_t data[1000];
	static struct vb_mr *mr;
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = sizeof(data) };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	assert_int_equal(vb_mr_reg(fix.pd, data, sizeof(data), (uintptr_t)data, 0, &mr), 0);
	sge.lkey = mr->ibv.lkey;
	while (count--)
		assert_int_equal(vb_qp_post_send(fix.qp, &wr, &bad), 0);
	/* What is queued would need it: this test looks at what has left only. */
	while (fix.qp->req.pos.next != fix.qp->req.tail) {
		assert_true(vb_nic_deadline_ns(fix.nic) != UINT64_MAX);
		fake_ns = vb_max_u64(fake_ns, vb_nic_deadline_ns(fix.nic));
		vb_nic_turn(fix.nic);
	}
	assert_int_equal(vb_mr_dereg(mr), 0);
	while (vb_cq_poll(fix.cq, 1, &wc))
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* At 8 Mbit/s an octet takes a microsecond. Half a burst may be regained before anything leaves. */
CONNECTED(the_rate_is_kept)
{
	uint64_t begin_ns = fake_ns;

	vb_pace_set(fix.qp, RATE_KBPS, 0);
	post(MESSAGES);
	assert_int_equal(ends.octets, MESSAGES * FRAME);
	assert_true(fake_ns - begin_ns >=
		    (MESSAGES - 1) * FRAME * 1000ull - VB_PACE_BURST_NS);
	assert_true(fake_ns - begin_ns <= MESSAGES * FRAME * 1000ull);
}

/* A larger burst leaves at once, and is paid for afterwards. */
CONNECTED(a_burst_is_what_was_asked_for)
{
	uint64_t begin_ns = fake_ns;

	vb_pace_set(fix.qp, RATE_KBPS, 5 * FRAME);
	post(5);
	assert_int_equal(fake_ns, begin_ns);
	post(3);
	assert_true(fake_ns - begin_ns >= 2 * FRAME * 1000ull);
}

/* Who has rested has not saved up more than a burst. */
CONNECTED(rest_is_no_credit)
{
	uint64_t begin_ns;

	vb_pace_set(fix.qp, RATE_KBPS, 2 * FRAME);
	post(1);
	fake_ns += 1000000000;
	begin_ns = fake_ns;
	post(MESSAGES);
	assert_true(fake_ns - begin_ns >= (MESSAGES - 3) * FRAME * 1000ull);
}

CONNECTED(without_a_limit_nothing_waits)
{
	uint64_t begin_ns = fake_ns;

	vb_pace_set(fix.qp, RATE_KBPS, 0);
	vb_pace_set(fix.qp, 0, 0);
	post(MESSAGES);
	assert_int_equal(fake_ns, begin_ns);
	assert_false(fix.qp->send.paced);
}

CONNECTED(rates_have_bounds)
{
	assert_int_equal(vb_pace_check(0), 0);
	assert_int_equal(vb_pace_check(VB_RATE_KBPS_MIN), 0);
	assert_int_equal(vb_pace_check(VB_RATE_KBPS_MAX), 0);
	assert_int_equal(vb_pace_check(VB_RATE_KBPS_MIN - 1), EINVAL);
	assert_int_equal(vb_pace_check(VB_RATE_KBPS_MAX + 1), EINVAL);
}
