/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/pace.h"

#include <errno.h>

#include "base/check.h"
#include "base/refusal.h"

/* An octet takes this many ns, divided by the rate in kbit/s. */
#define OCTET_NS_KBPS 8000000ull

/* A queue that is too long already is to get no bursts. */
#define CONGESTED_BURST_NS 100000u

static uint64_t takes_ns(const struct vb_pace *pace, uint64_t bytes)
{
	return bytes * OCTET_NS_KBPS / pace->rate_kbps;
}

int vb_pace_check(uint32_t rate_kbps)
{
	if (!rate_kbps || (rate_kbps >= VB_RATE_KBPS_MIN && rate_kbps <= VB_RATE_KBPS_MAX))
		return 0;
	return vb_refuse(EINVAL, "rate_limit is %u kb/s; it may be 0, or %u to %u", rate_kbps,
			 (unsigned)VB_RATE_KBPS_MIN, (unsigned)VB_RATE_KBPS_MAX);
}

static void rate_set(struct vb_qp *qp, uint32_t rate_kbps)
{
	qp->send.pace.rate_kbps = rate_kbps;
	qp->send.paced = rate_kbps;
}

/* The application's rate, which is at most what congestion allows. */
static void rate_choose(struct vb_qp *qp)
{
	struct vb_pace *pace = &qp->send.pace;
	uint32_t least;

	rate_set(qp, pace->asked_kbps);
	pace->burst_ns = pace->asked_kbps && pace->asked_bytes ?
				 takes_ns(pace, pace->asked_bytes) :
				 VB_PACE_BURST_NS;
	if (!qp->congestion.line_kbps)
		return;
	least = vb_dcqcn_rate(&qp->congestion, pace->now_ns);
	if (!qp->congestion.line_kbps || (pace->asked_kbps && pace->asked_kbps <= least))
		return;
	rate_set(qp, least);
	pace->burst_ns = CONGESTED_BURST_NS;
}

void vb_pace_set(struct vb_qp *qp, uint32_t rate_kbps, uint32_t burst_bytes)
{
	qp->send.pace = (struct vb_pace){
		.asked_kbps = rate_kbps,
		.asked_bytes = burst_bytes,
		.now_ns = vb_nic_now_ns(qp->nic),
	};
	rate_choose(qp);
}

void vb_pace_cut(struct vb_qp *qp)
{
	struct vb_pace *pace = &qp->send.pace;

	pace->now_ns = vb_nic_now_ns(qp->nic);
	vb_dcqcn_cut(&qp->congestion, qp->nic->host.line_kbps, pace->now_ns);
	rate_choose(qp);
}

/*
 * due_ns is when everything sent would have left at the rate. A QP that is a whole burst ahead of
 * it waits until it is only half a burst ahead: waking for each packet would cost more than the
 * packet.
 */
bool vb_pace_waits(struct vb_qp *qp)
{
	struct vb_pace *pace = &qp->send.pace;

	pace->now_ns = vb_nic_now_ns(qp->nic);
	if (qp->congestion.line_kbps)
		rate_choose(qp);
	if (!qp->send.paced)
		return false;
	if (pace->due_ns > pace->now_ns + pace->burst_ns)
		pace->until_ns = pace->due_ns - pace->burst_ns / 2;
	if (pace->now_ns >= pace->until_ns)
		return false;
	vb_timer_arm(qp->nic, qp, pace->until_ns);
	return true;
}

void vb_pace_charge(struct vb_qp *qp, uint32_t bytes)
{
	struct vb_pace *pace = &qp->send.pace;

	if (qp->congestion.line_kbps)
		vb_dcqcn_sent(&qp->congestion, bytes);
	pace->due_ns = vb_max_u64(pace->due_ns, pace->now_ns) + takes_ns(pace, bytes);
}
