/* SPDX-License-Identifier: BSD-2-Clause */
/* CNPs: sent where a marked packet came, heeded where they come from the QP's peer. */
#include "packets.h"

#include "nic/data/pace.h"
#include "nic/way/congestion.h"

enum { LINE_KBPS = 1000000, PAYLOAD = 64 };

static struct {
	uint8_t octets[VB_PKT_HEADER_BYTES_MAX + PAYLOAD + VB_ICRC_BYTES];
	struct vb_pkt cnp;
	unsigned cnps, right;
} ends;

static int host_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	if (vb_pkt_parse(&ends.cnp, burst->iov[0].iov_base, burst->iov[0].iov_len) != VB_PARSE_OK ||
	    ends.cnp.opcode != VB_OP_CNP)
		return 0;
	ends.cnps++;
	ends.right += burst_right(burst);
	assert_memory_equal(burst->path.dst, peer_gid, VB_GID_BYTES);
	return 0;
}

static int begin_connected(void **state)
{
	int rc = begin(state);

	memset(&ends, 0, sizeof(ends));
	fix.nic->host.wire.tx = host_tx;
	fix.nic->host.line_kbps = LINE_KBPS;
	connect_as(IBV_QPT_RC);
	return rc;
}

#define CONNECTED(name) TEST_BETWEEN(name, begin_connected, end)

static void marked_comes(uint8_t opcode, const uint8_t from[VB_GID_BYTES])
{
	const struct vb_pkt pkt = packet_for(fix.qp, opcode, 0x100);
	const uint8_t payload[PAYLOAD] = { 0 };
	struct vb_frame frame =
		packet_seal(ends.octets, &pkt, payload, PAYLOAD, from, own_gid);

	frame.path.tclass = 3;
	assert_true(vb_nic_rx_try(fix.nic));
	vb_congestion_tell(fix.nic, &frame);
	vb_nic_rx_drop(fix.nic);
}

static void cnp_comes(const uint8_t from[VB_GID_BYTES])
{
	const struct vb_pkt pkt = packet_for(fix.qp, VB_OP_CNP, 0);
	const struct vb_frame frame = packet_seal(ends.octets, &pkt, NULL, 0, from, own_gid);

	frames_come(&frame, 1);
}

static uint64_t count_of(enum vb_stat stat)
{
	return fix.nic->stats.count[stat];
}

CONNECTED(a_marked_packet_is_told_of_once_in_a_period)
{
	uint64_t period = vb_dcqcn_period_ns(LINE_KBPS);

	fake_ns = 1000 * period;
	marked_comes(VB_OP_RC_SEND_ONLY, peer_gid);
	assert_int_equal(ends.cnps, 1);
	assert_int_equal(ends.right, 1);
	assert_int_equal(ends.cnp.dqpn, 0x77);
	assert_true(ends.cnp.becn);
	fake_ns += period - 1;
	marked_comes(VB_OP_RC_SEND_ONLY, peer_gid);
	assert_int_equal(ends.cnps, 1);
	fake_ns++;
	marked_comes(VB_OP_RC_SEND_ONLY, peer_gid);
	assert_int_equal(ends.cnps, 2);
	assert_int_equal(count_of(VB_STAT_CNPS_SENT), 2);
}

CONNECTED(a_strangers_marks_are_told_to_nobody)
{
	static const uint8_t stranger[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 9 };

	fake_ns = 1000000000;
	marked_comes(VB_OP_RC_SEND_ONLY, stranger);
	assert_int_equal(ends.cnps, 0);
}

CONNECTED(a_cnp_of_the_peer_slows_the_qp_down)
{
	cnp_comes(peer_gid);
	assert_int_equal(count_of(VB_STAT_CNPS_SEEN), 1);
	assert_true(fix.qp->send.paced);
	assert_int_equal(fix.qp->send.pace.rate_kbps, LINE_KBPS / 2);
	/* It is forgotten with the connection. */
	assert_int_equal(set_state(fix.qp, IBV_QPS_RESET), 0);
	assert_false(fix.qp->send.paced);
	bring(fix.qp, IBV_QPS_RTS);
	assert_false(fix.qp->send.paced);
}

CONNECTED(a_strangers_cnp_does_nothing)
{
	static const uint8_t stranger[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 9 };

	cnp_comes(stranger);
	assert_int_equal(count_of(VB_STAT_CNPS_SEEN), 0);
	assert_int_equal(count_of(VB_STAT_DROP_STRANGER), 1);
	assert_false(fix.qp->send.paced);
}

CONNECTED(without_a_line_nothing_is_heeded)
{
	fix.nic->host.line_kbps = 0;
	fake_ns = 1000000000;
	cnp_comes(peer_gid);
	marked_comes(VB_OP_RC_SEND_ONLY, peer_gid);
	assert_int_equal(ends.cnps, 0);
	assert_false(fix.qp->send.paced);
}

/* The application's limit is back when congestion is over. */
CONNECTED(the_lower_rate_counts)
{
	vb_lock_take(&fix.qp->lock);
	vb_pace_set(fix.qp, LINE_KBPS / 4, 0);
	vb_pace_cut(fix.qp);
	assert_int_equal(fix.qp->send.pace.rate_kbps, LINE_KBPS / 4);
	vb_pace_cut(fix.qp);
	vb_pace_cut(fix.qp);
	assert_int_equal(fix.qp->send.pace.rate_kbps, LINE_KBPS / 8);
	fake_ns += 10000000000;
	vb_pace_waits(fix.qp);
	assert_int_equal(fix.qp->send.pace.rate_kbps, LINE_KBPS / 4);
	vb_pace_set(fix.qp, 0, 0);
	assert_false(fix.qp->send.paced);
	vb_lock_drop(&fix.qp->lock);
}
