/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault scripts (docs/faults.md): what an application sees of each action, whichever link its
 * packets take, and what the log says of it. Both ends are of this process, so `sent` and
 * `received` both apply.
 */
#include "lib.h"

#include <arpa/inet.h>
#include <unistd.h>

static char log_name[64], script_name[64];

/* Before the device is opened. */
static void __attribute__((constructor)) names_make(void)
{
	snprintf(log_name, sizeof(log_name), "/tmp/faults.%d.log", (int)getpid());
	snprintf(script_name, sizeof(script_name), "/tmp/faults.%d.fault", (int)getpid());
	fclose(fopen(script_name, "w"));
	setenv("VERBATIM_LOG", log_name, 1);
	setenv("VERBATIM_FAULTS", script_name, 1);
}

static void __attribute__((destructor)) files_remove(void)
{
	unlink(log_name);
	unlink(script_name);
}

static void script_write(const char *script)
{
	FILE *file = fopen(script_name, "w");

	assert_non_null(file);
	fputs(script, file);
	fclose(file);
	assert_int_equal(truncate(log_name, 0), 0);
}

/* A test of a pair, *p, under a script. */
#define fault_test(f, script, ...)                                                                \
	static void f##_with(struct vt_pair *p);                                                  \
	static int f##_setup(void **state)                                                        \
	{                                                                                         \
		script_write(script);                                                             \
		return vt_setup(state);                                                           \
	}                                                                                         \
	vt_case(f, f##_setup, vt_teardown, NULL)                                                  \
	{                                                                                         \
		struct vt_pair p;                                                                 \
                                                                                                  \
		vt_pair_open(&p, &(struct vt_options){ __VA_ARGS__ });                            \
		f##_with(&p);                                                                     \
		vt_pair_close(&p);                                                                \
	}                                                                                         \
	static void f##_with(struct vt_pair *p)

/* A line of the log has both; it may come a little later, by a thread of the library's. */
static void logged(const char *rule, const char *what)
{
	uint64_t end = vt_now_ms() + VT_WAIT_MS;
	char line[1024];

	do {
		FILE *file = fopen(log_name, "r");
		bool found = false;

		while (file && !found && fgets(line, sizeof(line), file))
			found = strstr(line, rule) && strstr(line, what);
		if (file)
			fclose(file);
		if (found)
			return;
		vt_sleep_ms(5);
	} while (vt_now_ms() < end);
	fail_msg("nothing logged with %s and %s", rule, what);
}

/* The packet is lost or comes twice, and the transport sees to it. */
static void exchanges_are_whole(struct vt_pair *p, const char *what)
{
	for (unsigned i = 0; i < 8; i++)
		vt_exchange(&p->a, &p->b);
	vt_expect_none(p->b.cq);
	logged(".fault:1: ", what);
	logged(".fault:1: ", vt_by_udp() ? "by the wire" : "by shared memory");
}

/* --- what the transport mends --- */

fault_test(a_packet_that_is_dropped_is_sent_again, "sent send nth=3 -> drop")
{
	exchanges_are_whole(p, "dropped: sent RC_SEND_ONLY");
}

fault_test(also_if_its_receiver_drops_it, "received send every=2 -> drop")
{
	exchanges_are_whole(p, "dropped: received RC_SEND_ONLY");
}

fault_test(an_ack_that_is_dropped_is_given_again, "received ack nth=2 -> drop")
{
	exchanges_are_whole(p, "dropped: received RC_ACK");
}

fault_test(what_comes_twice_is_taken_once, "sent -> duplicate")
{
	exchanges_are_whole(p, "duplicated: sent RC_SEND_ONLY");
}

fault_test(a_damaged_packet_is_dropped,
	   "sent send nth=2 -> corrupt\nreceived send nth=4 -> corrupt")
{
	exchanges_are_whole(p, "corrupted: sent RC_SEND_ONLY");
	logged(".fault:2: ", "corrupted: received RC_SEND_ONLY");
}

/* All are delayed, and so are those that are sent again meanwhile. */
fault_test(a_delayed_packet_comes_later, "sent send -> delay 60ms", .timeout = 20)
{
	uint64_t begin = vt_now_ms();

	vt_exchange(&p->a, &p->b);
	assert_true(vt_now_ms() - begin >= 60);
	logged(".fault:1: ", "delayed: sent RC_SEND_ONLY");
}

fault_test(a_nak_for_a_sequence_has_it_sent_again,
	   "received send nth=2 -> nak sequence\nsent send nth=4 -> nak sequence")
{
	exchanges_are_whole(p, "refused: received RC_SEND_ONLY");
	logged(".fault:2: ", "refused: sent RC_SEND_ONLY");
}

fault_test(a_slow_receiver_is_waited_for,
	   "received send nth=2 -> nak rnr\nsent send nth=5 -> nak rnr")
{
	exchanges_are_whole(p, "refused: received RC_SEND_ONLY");
}

/* --- what the application sees --- */

fault_test(half_of_a_message_is_short, "sent send nth=1 -> truncate")
{
	struct vt_wr w;

	vt_recv(&p->b, 5);
	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 64);
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	assert_int_equal(vt_expect(p->b.cq, 5, IBV_WC_SUCCESS).byte_len, 32);
	logged(".fault:1: ", "truncated: sent RC_SEND_ONLY");
}

fault_test(half_of_a_write_is_refused, "received write nth=1 -> truncate")
{
	struct ibv_wc wc = vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 64, IBV_WC_REM_INV_REQ_ERR);

	assert_int_equal(wc.vendor_err, 0x20);
	vt_event_acked(IBV_EVENT_QP_REQ_ERR);
}

fault_test(silence_exhausts_the_retries, "received write -> silence", .timeout = 8,
	   .retry_cnt = 1)
{
	struct ibv_wc wc = vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 64, IBV_WC_RETRY_EXC_ERR);

	assert_int_equal(wc.vendor_err, 0x10);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_RTS);
	logged(".fault:1: ", "silence after: received RC_WRITE_ONLY");
}

fault_test(silence_ends_in_time, "sent write nth=1 -> silence all for 30ms")
{
	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 64, IBV_WC_SUCCESS);
	logged(".fault:1: ", "that is over");
}

fault_test(one_way_loss_exhausts_the_retries, "sent ack -> drop", .timeout = 8, .retry_cnt = 1)
{
	vt_recv(&p->b, 3);
	vt_send(&p->a, &p->b, 4);
	vt_expect(p->a.cq, 4, IBV_WC_RETRY_EXC_ERR);
}

fault_test(a_receiver_that_stays_slow, "received send -> nak rnr", .rnr_retry = 2)
{
	vt_recv(&p->b, 3);
	vt_send(&p->a, &p->b, 4);
	assert_int_equal(vt_expect(p->a.cq, 4, IBV_WC_RNR_RETRY_EXC_ERR).vendor_err, 0x12);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_RTS);
}

fault_test(a_sender_hears_that_too, "sent send -> nak rnr", .rnr_retry = 1)
{
	vt_recv(&p->b, 3);
	vt_send(&p->a, &p->b, 4);
	vt_expect(p->a.cq, 4, IBV_WC_RNR_RETRY_EXC_ERR);
}

/*
 * The responder that refuses fails itself, as any does. Where only its peer hears of a refusal, it
 * knows of nothing (event DEVICE_FATAL stands for none).
 */
static void refused(struct vt_pair *p, enum ibv_wc_status status, enum ibv_event_type event)
{
	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 64, status);
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_ERR);
	if (event == IBV_EVENT_DEVICE_FATAL) {
		assert_int_equal(vt_state(p->b.qp), IBV_QPS_RTS);
		vt_no_event();
		logged("RDMA WRITE", ".fault:1 has met this QP");
		return;
	}
	vt_event_acked(event);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_ERR);
	logged("code 0x", "by rule faults.");
}

fault_test(an_invalid_request, "received write -> nak invalid")
{
	refused(p, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

fault_test(a_wrong_rkey, "received write -> nak access")
{
	refused(p, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

fault_test(a_peer_that_cannot, "received write -> nak operation")
{
	refused(p, IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL);
}

fault_test(an_invalid_request_says_our_side, "sent write -> nak invalid")
{
	refused(p, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_DEVICE_FATAL);
}

fault_test(a_wrong_rkey_says_our_side, "sent write -> nak access")
{
	refused(p, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_DEVICE_FATAL);
}

fault_test(a_peer_that_cannot_says_our_side, "sent write -> nak operation")
{
	refused(p, IBV_WC_REM_OP_ERR, IBV_EVENT_DEVICE_FATAL);
}

fault_test(a_refusal_comes_in_its_turn, "received send nth=20 -> nak access")
{
	for (unsigned i = 0; i < 20; i++)
		vt_recv(&p->b, i);
	for (unsigned i = 0; i < 20; i++)
		vt_send(&p->a, &p->b, i);
	for (unsigned i = 0; i < 19; i++) {
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		vt_expect(p->b.cq, i, IBV_WC_SUCCESS);
	}
	vt_expect(p->a.cq, 19, IBV_WC_REM_ACCESS_ERR);
	vt_expect(p->b.cq, 19, IBV_WC_WR_FLUSH_ERR);
	vt_event_acked(IBV_EVENT_QP_ACCESS_ERR);
}

fault_test(a_qp_fails_with_its_event, "received write -> fail", .timeout = 8, .retry_cnt = 1)
{
	vt_recv(&p->b, 3);
	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 64, IBV_WC_RETRY_EXC_ERR);
	vt_expect(p->b.cq, 3, IBV_WC_WR_FLUSH_ERR);
	vt_event_acked(IBV_EVENT_QP_FATAL);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_ERR);
	logged("flushed", "by rule faults.");
}

fault_test(or_without, "sent write -> fail quietly")
{
	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 64, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_ERR);
	vt_no_event();
}

static enum ibv_port_state port_state(void)
{
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(vt.ctx, 1, &port), 0);
	return port.state;
}

fault_test(the_port_goes_down_and_comes_back, "sent write nth=1 -> port down for 50ms")
{
	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 64, IBV_WC_SUCCESS);
	vt_event_acked(IBV_EVENT_PORT_ERR);
	vt_event_acked(IBV_EVENT_PORT_ACTIVE);
	assert_int_equal(port_state(), IBV_PORT_ACTIVE);
	logged("port 1: IBV_EVENT_PORT_ERR: ", "it is down");
	logged("port 1: IBV_EVENT_PORT_ACTIVE: ", "it is up");
}

fault_test(a_port_that_stays_down, "sent write -> port down", .timeout = 8, .retry_cnt = 1)
{
	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 64, IBV_WC_RETRY_EXC_ERR);
	vt_event_acked(IBV_EVENT_PORT_ERR);
	assert_int_equal(port_state(), IBV_PORT_DOWN);
}

fault_test(a_gid_moves, "sent write -> gid 0 10.9.9.9\nsent write -> gid 1 gone", .timeout = 8,
	   .retry_cnt = 1)
{
	static const uint8_t moved[16] = { [10] = 0xff, 0xff, 10, 9, 9, 9 };
	union ibv_gid gid;

	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 64,
	      vt.gid_index == 0 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
	vt_event_acked(IBV_EVENT_GID_CHANGE);
	logged("port 1: IBV_EVENT_GID_CHANGE: ", "its table of GIDs changed");
	assert_int_equal(ibv_query_gid(vt.ctx, 1, 0, &gid), 0);
	assert_memory_equal(gid.raw, moved, sizeof(moved));
}

fault_test(the_device_fails, "sent write nth=2 -> device fatal")
{
	struct ibv_async_event event;
	struct vt_wr w;

	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 64, IBV_WC_SUCCESS);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 64);
	vt_post(&p->a, &w);
	event = vt_event(IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	vt_refused(EIO, ibv_alloc_pd(vt.ctx));
	logged(".fault:1: ", "the device fails");
	logged("the device: IBV_EVENT_DEVICE_FATAL: ", "calls fail with EIO");
}

/* --- which packets --- */

fault_test(conditions_choose, "sent write size>=128 peer=127.0.0.1 state=rts -> nak access\n"
			      "sent write size<=127 peer=10.1.2.3 -> nak access\n"
			      "sent qp=0x1 -> nak access\nsent until=0s -> nak access")
{
	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 64, IBV_WC_SUCCESS);
	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 128, IBV_WC_REM_ACCESS_ERR);
}

/* A READ's answer is a packet, too; and what would be direct goes by packets. */
fault_test(reads_and_atomics_are_met, "received response nth=1 -> drop\nsent atomic nth=1 -> drop")
{
	vt_do(IBV_WR_RDMA_READ, &p->a, &p->b, 64, IBV_WC_SUCCESS);
	vt_do(IBV_WR_ATOMIC_FETCH_AND_ADD, &p->a, &p->b, 8, IBV_WC_SUCCESS);
	logged(".fault:1: ", "RC_READ_RESP_ONLY");
	logged(".fault:2: ", "RC_FETCH_ADD");
}

fault_test(datagrams_are_lost, "sent UD_SEND_ONLY nth=1 -> drop", .type = IBV_QPT_UD)
{
	vt_recv(&p->b, 1);
	vt_send(&p->a, &p->b, 2);
	vt_expect(p->a.cq, 2, IBV_WC_SUCCESS);
	vt_expect_none(p->b.cq);
	vt_send(&p->a, &p->b, 3);
	vt_expect(p->a.cq, 3, IBV_WC_SUCCESS);
	vt_expect(p->b.cq, 1, IBV_WC_SUCCESS);
	logged(".fault:1: ", "QPN 0x");
}

fault_test(large_messages_pass, "# no rule", .bytes = 1 << 20)
{
	vt_fill(p->a.buf, 1 << 20, 7);
	vt_recv(&p->b, 1);
	vt_do(IBV_WR_SEND, &p->a, &p->b, 1 << 20, IBV_WC_SUCCESS);
	vt_expect(p->b.cq, 1, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p->b.buf, 1 << 20, 7));
	vt_do(IBV_WR_RDMA_READ, &p->b, &p->a, 1 << 20, IBV_WC_SUCCESS);
}

int main(void)
{
	return vt_main();
}
