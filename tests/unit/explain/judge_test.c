/* SPDX-License-Identifier: BSD-2-Clause */
/* What is found in exchanges of packets, and in good ones nothing. */
#include "base/check.h"
#include "captures.h"
#include "explain/judge.h"
#include "group.h"

/* Client 10.0.0.1, QPN 0x11, and server 10.0.0.2, QPN 0x22. */
enum { CLIENT = 1, SERVER = 2, CLIENT_QPN = 0x11, SERVER_QPN = 0x22, RKEY = 0x1234 };
#define SENT "client (pid 5), QPN 0x11, wr_id 0x7"

static struct capture capture, other;
static struct vb_story story;

/* From where: the direction and comment are those of the client's capture. */
static void request(struct vb_pkt pkt)
{
	pkt.dqpn = SERVER_QPN;
	capture_add(&capture, &pkt, CLIENT, SERVER, 0, CAPTURE_OUT, SENT);
}

static void answer(uint32_t psn, uint8_t syndrome)
{
	const struct vb_pkt pkt = { .opcode = VB_OP_RC_ACK, .dqpn = CLIENT_QPN, .psn = psn,
				    .aeth = { .syndrome = syndrome } };

	capture_add(&capture, &pkt, SERVER, CLIENT, 0, CAPTURE_IN, NULL);
}

static void send(uint32_t psn)
{
	request((struct vb_pkt){ .opcode = VB_OP_RC_SEND_ONLY, .psn = psn, .payload_bytes = 64 });
}

static void write_at(uint32_t psn, uint64_t va)
{
	request((struct vb_pkt){ .opcode = VB_OP_RC_WRITE_ONLY, .psn = psn, .payload_bytes = 64,
				 .reth = { va, RKEY, 64 } });
}

static void judge(void)
{
	assert_true(vb_story_begin(&story));
	assert_true(vb_story_add(&story, "a", capture.octets, capture.bytes));
	if (other.bytes)
		assert_true(vb_story_add(&story, "b", other.octets, other.bytes));
	vb_judge(&story);
	assert_false(story.no_memory);
}

static int begin(void **state)
{
	capture_begin(&capture);
	memset(&other, 0, sizeof(other));
	return 0;
}

static int end(void **state)
{
	vb_story_end(&story);
	return 0;
}

#define EXCHANGE(name) TEST_BETWEEN(name, begin, end)

static void assert_none(void)
{
	if (story.troubles.count)
		fail_msg("%s: %s", vb_trouble_words[story.trouble[0].kind].name,
			 story.trouble[0].words);
}

/* The first one, and that its words have these. */
static void assert_first(enum vb_trouble_kind kind, const char *words)
{
	assert_true(story.troubles.count);
	assert_string_equal(vb_trouble_words[story.trouble[0].kind].name,
			    vb_trouble_words[kind].name);
	if (!strstr(story.trouble[0].words, words))
		fail_msg("'%s' has no '%s'", story.trouble[0].words, words);
}

EXCHANGE(a_good_exchange_has_no_trouble)
{
	for (uint32_t psn = 0xfffffe; psn != 0x1000003; psn++) {
		send(psn & 0xffffff);
		answer(psn & 0xffffff, vb_aeth_ack(31));
	}
	capture_end(&capture);
	judge();
	assert_none();
	assert_int_equal(story.halves.count, 2);
	assert_int_equal(story.half[0].peer, 1);
	assert_int_equal(vb_judge_summary(&story, 0).packets, 10);
	assert_int_equal(vb_judge_summary(&story, 0).octets, 5 * 64);
}

/* A READ has as many PSNs as its answers. */
EXCHANGE(a_read_is_answered_by_several_packets)
{
	request((struct vb_pkt){ .opcode = VB_OP_RC_READ_REQ, .psn = 5, .reth = { 0, 1, 2500 } });
	for (uint32_t i = 0; i < 3; i++) {
		const struct vb_pkt pkt = {
			.opcode = (uint8_t)(VB_OP_RC_READ_RESP_FIRST + i), .dqpn = CLIENT_QPN,
			.psn = 5 + i, .payload_bytes = i == 2 ? 452 : 1024,
			.aeth = { .syndrome = vb_aeth_ack(31) } };

		capture_add(&capture, &pkt, SERVER, CLIENT, 0, CAPTURE_IN, NULL);
	}
	send(8);
	answer(8, vb_aeth_ack(31));
	capture_end(&capture);
	judge();
	assert_none();
}

EXCHANGE(a_refused_access_names_its_request)
{
	write_at(5, 0x10000);
	answer(5, vb_aeth_ack(31));
	write_at(6, 0x10040);
	answer(6, vb_aeth_nak(VB_NAK_ACCESS));
	capture_end(&capture);
	judge();
	assert_first(VB_TROUBLE_ACCESS, "RDMA WRITE of 64 octets at 0x10040 by rkey 0x1234 "
					"(PSN 0x6, wr_id 0x7)");
	assert_first(VB_TROUBLE_ACCESS, "1 accesses were allowed before, from 0x10000 to 0x10040: "
					"this one goes beyond that");
	assert_int_equal(story.troubles.count, 1);
}

EXCHANGE(a_key_that_was_good_was_withdrawn)
{
	write_at(5, 0x10000);
	answer(5, vb_aeth_ack(31));
	write_at(6, 0x10000);
	answer(6, vb_aeth_nak(VB_NAK_ACCESS));
	judge();
	assert_first(VB_TROUBLE_ACCESS, "so the region was deregistered since");
}

EXCHANGE(each_nak_has_its_name)
{
	static const struct {
		uint8_t syndrome;
		enum vb_trouble_kind kind;
	} naks[] = {
		{ 0x61, VB_TROUBLE_INVALID }, { 0x62, VB_TROUBLE_ACCESS },
		{ 0x63, VB_TROUBLE_OPERATION }, { 0x64, VB_TROUBLE_NAK }, { 0x7f, VB_TROUBLE_NAK },
		{ 0x40, VB_TROUBLE_NAK },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(naks); i++) {
		begin(state);
		send(5);
		answer(5, naks[i].syndrome);
		judge();
		assert_first(naks[i].kind, "SEND of 64 octets (PSN 0x5");
		vb_story_end(&story);
	}
	assert_true(vb_story_begin(&story));
}

EXCHANGE(a_receiver_that_is_never_ready_is_given_up)
{
	for (int i = 0; i < 3; i++) {
		send(5);
		answer(5, vb_aeth_rnr(1));
	}
	capture_end(&capture);
	judge();
	assert_first(VB_TROUBLE_RNR_END, "3 RNR NAKs, the last with a wait of 10 us, to SEND");
	assert_int_equal(story.troubles.count, 1);
}

EXCHANGE(a_receiver_that_is_ready_later_was_waited_for)
{
	send(5);
	answer(5, vb_aeth_rnr(1));
	send(5);
	answer(5, vb_aeth_ack(31));
	capture_end(&capture);
	judge();
	assert_first(VB_TROUBLE_RNR, "In the end all went on");
	assert_int_equal(story.troubles.count, 1);
}

EXCHANGE(a_silent_peer_is_told_from_one_that_never_spoke)
{
	send(5);
	answer(5, vb_aeth_ack(31));
	for (int i = 0; i < 8; i++)
		send(6);
	judge();
	assert_first(VB_TROUBLE_SILENT, "was sent 8 times within 7 ms and never answered. The peer "
					"had answered 1 time before");
	vb_story_end(&story);
	begin(state);
	for (int i = 0; i < 8; i++)
		send(6);
	judge();
	assert_first(VB_TROUBLE_SILENT, "The peer never answered at all");
}

EXCHANGE(one_open_request_at_the_end_is_a_note)
{
	send(5);
	answer(5, vb_aeth_ack(31));
	send(6);
	judge();
	assert_int_equal(story.troubles.count, 2);
	assert_first(VB_TROUBLE_OPEN, "was sent once and not answered");
	assert_int_equal(vb_trouble_words[VB_TROUBLE_OPEN].weight, VB_WEIGHT_NOTE);
}

EXCHANGE(a_gap_at_the_responder_is_a_loss)
{
	static const uint32_t psns[] = { 5, 7, 6, 7 };

	for (unsigned i = 0; i < VB_ARRAY_LEN(psns); i++) {
		const struct vb_pkt pkt = { .opcode = VB_OP_RC_SEND_ONLY, .dqpn = SERVER_QPN,
					    .psn = psns[i] };
		const struct vb_pkt nak = { .opcode = VB_OP_RC_ACK, .dqpn = CLIENT_QPN, .psn = 6,
					    .aeth = { .syndrome = vb_aeth_nak(VB_NAK_PSN) } };

		capture_add(&capture, &pkt, CLIENT, SERVER, 0, CAPTURE_IN, NULL);
		if (i == 1)
			capture_add(&capture, &nak, SERVER, CLIENT, 0, CAPTURE_OUT, NULL);
	}
	judge();
	assert_first(VB_TROUBLE_LOST, "1 packet had not come when later ones did");
}

/* --- captures of others, joined by nothing but PSNs --- */

static struct vb_pkt packet(uint32_t psn)
{
	return (struct vb_pkt){ .opcode = VB_OP_RC_SEND_ONLY, .dqpn = SERVER_QPN, .psn = psn,
				.payload_bytes = 8 };
}

static struct vb_pkt ack(uint32_t psn)
{
	return (struct vb_pkt){ .opcode = VB_OP_RC_ACK, .dqpn = CLIENT_QPN, .psn = psn,
				.aeth = { .syndrome = vb_aeth_ack(31) } };
}

/* A request passes here. */
static void passes(struct capture *c, uint32_t psn)
{
	const struct vb_pkt pkt = packet(psn);

	capture_add(c, &pkt, CLIENT, SERVER, 0, 0, NULL);
}

static void passes_back(struct capture *c, uint32_t psn)
{
	const struct vb_pkt pkt = ack(psn);

	capture_add(c, &pkt, SERVER, CLIENT, 0, 0, NULL);
}

static void plain_begin(void)
{
	capture_begin_plain(&capture);
	capture_begin_plain(&other);
}

/* PSN 2 does not come to the server; does the client send it again? */
static void both_ends(bool again)
{
	plain_begin();
	for (uint32_t i = 0; i < 5; i++) {
		passes(&capture, i);
		other.ns = capture.ns;
		if (i != 2)
			passes(&other, i);
	}
	for (uint32_t i = 2; again && i < 5; i++) {
		passes(&capture, i);
		other.ns = capture.ns;
		passes(&other, i);
	}
	passes_back(&other, 4);
	capture.ns = other.ns;
	passes_back(&capture, 4);
	judge();
	assert_int_equal(story.half[0].peer, 1);
}

EXCHANGE(both_ends_without_directions_show_what_was_lost)
{
	both_ends(true);
	assert_first(VB_TROUBLE_LOST, "1 of 8 packets did not come, the first of PSN 0x2");
}

/* A responder acknowledges nothing that it has not (IBTA 9.7.5): the capture is not whole. */
EXCHANGE(what_is_acknowledged_at_once_was_lost_by_the_capture)
{
	both_ends(false);
	assert_int_equal(story.troubles.count, 1);
	assert_first(VB_TROUBLE_CAPTURE_LOST, "1 packet was acknowledged and not sent again");
	vb_story_end(&story);
	plain_begin();
	other.bytes = 0;
	for (uint32_t i = 0; i < 9; i++)
		if (i < 3 || i > 5)
			passes(&capture, i);
	passes_back(&capture, 8);
	judge();
	assert_int_equal(story.troubles.count, 1);
	assert_first(VB_TROUBLE_CAPTURE_LOST, "3 packets were acknowledged and not sent again");
}

EXCHANGE(a_packet_may_pass_several_interfaces)
{
	capture_interface(&capture, "br0");
	capture_interface(&capture, "eth0");
	for (uint32_t i = 0; i < 5; i++) {
		for (capture.interface = 0; capture.interface < 3; capture.interface++)
			passes(&capture, i);
		for (capture.interface = 3; capture.interface-- > 0;)
			passes_back(&capture, i);
	}
	capture_end(&capture);
	judge();
	assert_none();
	assert_int_equal(vb_judge_summary(&story, 0).packets, 10);
}

/* One host sees a request again, and its answer before that: whether that came is not known. */
EXCHANGE(on_the_way_a_late_answer_is_not_called_lost)
{
	plain_begin();
	other.bytes = 0;
	passes(&capture, 1);
	passes_back(&capture, 1);
	passes(&capture, 1);
	passes_back(&capture, 1);
	judge();
	assert_first(VB_TROUBLE_AGAIN, "lost on its way back, or too late");
}

/* Both captures have it, but the server's NIC does not, and says so. */
EXCHANGE(what_is_lost_behind_the_captures_is_a_loss)
{
	struct vb_pkt nak = ack(1);

	nak.aeth.syndrome = vb_aeth_nak(VB_NAK_PSN);
	plain_begin();
	for (uint32_t i = 0; i < 3; i++)
		passes(&capture, i);
	capture_add(&capture, &nak, SERVER, CLIENT, 0, 0, NULL);
	for (uint32_t i = 1; i < 3; i++)
		passes(&capture, i);
	passes_back(&capture, 2);
	memcpy(&other, &capture, sizeof(other));
	judge();
	assert_first(VB_TROUBLE_LOST, "though they were sent: lost behind this capture");
}

/* Whoever repeats two READs at once goes back to the first. */
EXCHANGE(requests_that_are_repeated_soon_are_no_duplicates)
{
	static const uint32_t psns[] = { 1, 2, 1, 2 };

	plain_begin();
	other.bytes = 0;
	for (unsigned i = 0; i < VB_ARRAY_LEN(psns); i++) {
		capture.ns -= i ? CAPTURE_STEP_NS - 1000 : 0;
		passes(&capture, psns[i]);
	}
	passes_back(&capture, 2);
	judge();
	assert_int_equal(story.troubles.count, 1);
	assert_first(VB_TROUBLE_AGAIN, "2 packets were sent again");
}

EXCHANGE(packets_of_one_piece_are_told_apart)
{
	struct vb_pkt pkt[5];

	plain_begin();
	other.bytes = 0;
	for (uint32_t i = 0; i < VB_ARRAY_LEN(pkt); i++)
		pkt[i] = packet(i);
	pkt[4].payload_bytes = 4;
	capture_add_merged(&capture, pkt, VB_ARRAY_LEN(pkt), CLIENT, SERVER, 0, 0, NULL);
	for (uint32_t i = 0; i < VB_ARRAY_LEN(pkt); i++)
		pkt[i] = ack(i);
	capture_add_merged(&capture, pkt, VB_ARRAY_LEN(pkt), SERVER, CLIENT, 0, 0, NULL);
	judge();
	assert_none();
	assert_int_equal(vb_judge_summary(&story, 0).packets, 10);
	assert_int_equal(vb_judge_summary(&story, 0).octets, 36);
}

EXCHANGE(one_direction_alone_may_be_the_captures_fault)
{
	plain_begin();
	other.bytes = 0;
	for (uint32_t i = 0; i < 5; i++)
		passes(&capture, i);
	judge();
	assert_int_equal(story.troubles.count, 1);
	assert_first(VB_TROUBLE_OPEN, "or the capture has one direction only");
}

/* As tcpdump -s has them: 28 octets of IP and UDP, 12 of the BTH, 16 of the RETH. */
EXCHANGE(headers_that_were_cut_are_no_damage)
{
	static const uint32_t snaps[] = { 30, 40, 50 };

	for (unsigned i = 0; i < VB_ARRAY_LEN(snaps); i++) {
		begin(state);
		capture.snap_bytes = snaps[i];
		write_at(5, 0x1000);
		answer(5, vb_aeth_ack(31));
		capture_end(&capture);
		judge();
		assert_int_equal(story.troubles.count, 1);
		assert_first(VB_TROUBLE_CUT, "");
		assert_int_equal(story.halves.count, snaps[i] < 40 ? 0 : 2);
		if (i + 1 < VB_ARRAY_LEN(snaps))
			vb_story_end(&story);
	}
}

EXCHANGE(marks_and_cnps_are_congestion)
{
	struct vb_pkt pkt = { .opcode = VB_OP_RC_SEND_ONLY, .dqpn = SERVER_QPN, .psn = 5 };
	const struct vb_pkt cnp = { .opcode = VB_OP_CNP, .dqpn = CLIENT_QPN };

	capture_add(&capture, &pkt, CLIENT, SERVER, 3, CAPTURE_IN, NULL);
	judge();
	assert_first(VB_TROUBLE_CONGESTED, "1 of 1 packet");
	vb_story_end(&story);
	begin(state);
	send(5);
	capture_add(&capture, &cnp, SERVER, CLIENT, 0, CAPTURE_IN, NULL);
	answer(5, vb_aeth_ack(31));
	judge();
	assert_first(VB_TROUBLE_CONGESTED, "1 CNP");
	assert_int_equal(story.halves.count, 2);
}

EXCHANGE(partitions_and_path_mtus_have_to_agree)
{
	const struct vb_pkt ack = { .opcode = VB_OP_RC_ACK, .dqpn = CLIENT_QPN, .psn = 5,
				    .aeth = { .syndrome = vb_aeth_ack(31) }, .pkey = 0x8001 };
	const struct vb_pkt back = { .opcode = VB_OP_RC_SEND_FIRST, .dqpn = CLIENT_QPN, .psn = 9,
				     .payload_bytes = 256, .pkey = 0x8001 };

	request((struct vb_pkt){ .opcode = VB_OP_RC_SEND_FIRST, .psn = 5, .payload_bytes = 1024 });
	capture_add(&capture, &ack, SERVER, CLIENT, 0, CAPTURE_IN, NULL);
	capture_add(&capture, &back, SERVER, CLIENT, 0, CAPTURE_IN, NULL);
	judge();
	assert_first(VB_TROUBLE_PKEY, "with P_Key 0xffff, the other with 0x8001: two partitions");
	assert_int_equal(story.trouble[1].kind, VB_TROUBLE_MTU);
	assert_non_null(strstr(story.trouble[1].words, "up to 1024 octets"));
}

EXCHANGE(drops_have_the_words_of_their_reason)
{
	const struct vb_pkt pkt = { .opcode = VB_OP_UD_SEND_ONLY, .dqpn = SERVER_QPN, .psn = 5,
				    .sqpn = CLIENT_QPN, .qkey = 0x77, .payload_bytes = 8 };

	for (int i = 0; i < 3; i++)
		capture_add(&capture, &pkt, CLIENT, SERVER, 0, CAPTURE_IN,
			    "server (pid 7), QPN 0x22, dropped: drop_qkey");
	judge();
	assert_first(VB_TROUBLE_QKEY, "came with Q_Key 0x77");
	assert_int_equal(story.trouble[0].count, 3);
}

EXCHANGE(messages_of_uc_that_are_lost_are_counted)
{
	static const uint32_t psns[] = { 5, 6, 9, 10 };

	for (unsigned i = 0; i < VB_ARRAY_LEN(psns); i++) {
		const struct vb_pkt pkt = { .opcode = VB_OP_UC_SEND_ONLY, .dqpn = SERVER_QPN,
					    .psn = psns[i] };

		capture_add(&capture, &pkt, CLIENT, SERVER, 0, CAPTURE_IN, NULL);
	}
	judge();
	assert_first(VB_TROUBLE_UC_LOST, "2 packets are missing, the first before PSN 0x9");
}

/* What is damaged says so by its ICRC, and is not counted as come. */
EXCHANGE(damage_is_no_loss)
{
	const struct vb_pkt pkt = { .opcode = VB_OP_RC_SEND_ONLY, .dqpn = SERVER_QPN,
				    .payload_bytes = 8 };
	uint32_t at;

	for (uint32_t psn = 5; psn < 8; psn++) {
		struct vb_pkt one = pkt;

		one.psn = psn;
		at = capture.bytes;
		capture_add(&capture, &one, CLIENT, SERVER, 0, CAPTURE_IN, NULL);
		/* A packet lies 28 octets behind the block's beginning; then its payload. */
		if (psn == 6)
			capture.octets[at + 28 + CAPTURE_HEADERS_BYTES + VB_BTH_BYTES] ^= 1;
	}
	judge();
	assert_first(VB_TROUBLE_ICRC, "1 of 3 packets, the first of PSN 0x6");
	for (uint32_t i = 0; i < story.troubles.count; i++)
		assert_int_not_equal(story.trouble[i].kind, VB_TROUBLE_LOST);
}
