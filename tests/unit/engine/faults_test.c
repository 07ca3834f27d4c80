/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * IBA 9.9.3: what a responder does about each fault, on each service. The rows say the class; what
 * a class means stands in one place.
 */
#include "resp_fixture.h"

#define A VB_FAULT_A
#define B VB_FAULT_B
#define C VB_FAULT_C
#define D VB_FAULT_D
#define J VB_FAULT_J
#define NONE VB_FAULT_NONE

/* What comes, what the host finds, and of which class that is: acknowledged, UC, UD. */
struct row {
	const char *what;
	enum vb_kind kind;
	unsigned pos, extra;
	uint32_t payload, dma;
	struct {
		enum vb_verdict check, write, recv, invalidate, atomic;
		unsigned no_access; /* the QP does not allow this */
		bool within;	    /* a SEND has begun */
		bool ahead;	    /* the packet before it is missing */
		bool no_recv, no_room, no_resources;
		uint64_t askew;
	} on;
	enum vb_fault_class acked, uc, ud;
	enum vb_nak code;
	enum ibv_wc_status recv; /* how the request ends that it takes; SUCCESS: it takes none */
};

#define FIRST VB_P_FIRST
#define LAST  VB_P_LAST
#define ONLY  VB_P_ONLY
#define IMM   VB_H_IMM
#define INV   VB_H_IETH
#define REQ   VB_NAK_INVALID_REQ

/* clang-format off */
static const struct row rows[] = {
	{ "a bad local key", VB_K_SEND, ONLY, 0, 8, 0, { .recv = VB_BAD_RECV_SGE }, A, A, A,
	  VB_NAK_OP, IBV_WC_LOC_PROT_ERR },
	{ "a bad local key behind the first packet", VB_K_SEND, LAST, 0, 8, 0,
	  { .recv = VB_BAD_RECV_SGE, .within = true }, A, A, NONE, VB_NAK_OP, IBV_WC_LOC_PROT_ERR },
	{ "memory that is gone", VB_K_WRITE, ONLY, 0, 8, 8, { .write = VB_BAD_MEMORY }, A, D, NONE,
	  VB_NAK_OP },
	{ "memory that is gone, with a request", VB_K_WRITE, ONLY, IMM, 8, 8,
	  { .write = VB_BAD_MEMORY }, A, D, NONE, VB_NAK_OP, IBV_WC_LOC_PROT_ERR },
	{ "memory that is gone under an atomic", VB_K_FETCH_ADD, ONLY, 0, 0, 0,
	  { .atomic = VB_BAD_MEMORY }, A, NONE, NONE, VB_NAK_OP },
	{ "a PSN ahead of its turn", VB_K_SEND, ONLY, 0, 8, 0, { .ahead = true }, B, NONE, NONE,
	  VB_NAK_PSN },
	{ "no receive request", VB_K_SEND, ONLY, 0, 8, 0, { .no_recv = true }, B, D, D },
	{ "no receive request for immediate data", VB_K_WRITE, ONLY, IMM, 8, 8,
	  { .no_recv = true }, B, D, NONE },
	{ "no receive request, and a key that is none", VB_K_WRITE, ONLY, IMM, 8, 8,
	  { .no_recv = true, .check = VB_BAD_ACCESS }, B, D, NONE },
	{ "a beginning within a message", VB_K_WRITE, ONLY, 0, 8, 8, { .within = true }, C, NONE,
	  NONE, REQ, IBV_WC_REM_INV_REQ_ERR },
	{ "an end without a beginning", VB_K_SEND, LAST, 0, 8, 0, { .ahead = false }, C, D, NONE,
	  REQ },
	{ "another's end", VB_K_WRITE, LAST, 0, 8, 0, { .within = true }, C, D, NONE, REQ,
	  IBV_WC_REM_INV_REQ_ERR },
	{ "a packet longer than the MTU", VB_K_SEND, ONLY, 0, MTU + 1, 0, { .ahead = false }, C, D,
	  D, REQ, IBV_WC_REM_INV_REQ_ERR },
	{ "a first packet that is not full", VB_K_SEND, FIRST, 0, 5, 0, { .ahead = false }, C, D,
	  NONE, REQ, IBV_WC_REM_INV_REQ_ERR },
	{ "another length than was said", VB_K_WRITE, ONLY, 0, 8, 9, { .ahead = false }, C, D, NONE,
	  REQ },
	{ "the same with immediate data", VB_K_WRITE, ONLY, IMM, 8, 9, { .ahead = false }, C, D,
	  NONE, REQ, IBV_WC_REM_INV_REQ_ERR },
	{ "more than the request holds", VB_K_SEND, ONLY, 0, 8, 0,
	  { .recv = VB_TOO_LONG, .no_room = true }, C, D, D, REQ, IBV_WC_LOC_LEN_ERR },
	{ "more than the request holds, late", VB_K_SEND, LAST, 0, 8, 0,
	  { .recv = VB_TOO_LONG, .within = true }, C, D, NONE, REQ, IBV_WC_LOC_LEN_ERR },
	{ "a key that is none", VB_K_WRITE, ONLY, 0, 8, 8, { .check = VB_BAD_ACCESS }, C, D, NONE,
	  VB_NAK_ACCESS },
	{ "a key that is none, with a request", VB_K_WRITE, ONLY, IMM, 8, 8,
	  { .check = VB_BAD_ACCESS }, C, D, NONE, VB_NAK_ACCESS, IBV_WC_LOC_ACCESS_ERR },
	{ "a key that is none, of several packets", VB_K_WRITE, FIRST, 0, MTU, MTU + 1,
	  { .check = VB_BAD_ACCESS }, C, D, NONE, VB_NAK_ACCESS },
	{ "a right that the QP does not give", VB_K_WRITE, ONLY, IMM, 8, 8,
	  { .no_access = IBV_ACCESS_REMOTE_WRITE }, C, D, NONE, VB_NAK_ACCESS,
	  IBV_WC_LOC_ACCESS_ERR },
	{ "a READ of a key that is none", VB_K_READ_REQ, ONLY, 0, 0, 8, { .check = VB_BAD_ACCESS },
	  C, NONE, NONE, VB_NAK_ACCESS },
	{ "an atomic of a key that is none", VB_K_CMP_SWP, ONLY, 0, 0, 0,
	  { .atomic = VB_BAD_ACCESS }, C, NONE, NONE, VB_NAK_ACCESS },
	{ "an atomic off its boundary", VB_K_CMP_SWP, ONLY, 0, 0, 0, { .askew = 4 }, C, NONE, NONE,
	  REQ },
	{ "too many READs", VB_K_READ_REQ, ONLY, 0, 0, 8, { .no_resources = true }, C, NONE, NONE,
	  REQ },
	{ "a key that is not the peer's", VB_K_SEND, ONLY, INV, 8, 0,
	  { .invalidate = VB_BAD_INVALIDATE }, J, NONE, NONE, REQ, IBV_WC_LOC_ACCESS_ERR },
	{ "the same at the end", VB_K_SEND, LAST, INV, 8, 0,
	  { .invalidate = VB_BAD_INVALIDATE, .within = true }, J, NONE, NONE, REQ,
	  IBV_WC_LOC_ACCESS_ERR },
};
/* clang-format on */

static bool ends_the_qp(enum vb_fault_class class)
{
	return class == A || class == C || class == J;
}

static void check_answer(const struct row *row, enum vb_fault_class class)
{
	struct vb_pkt pkt = { .opcode = 0xff };
	bool data;

	if (!vb_transport_acks(resp.transport) || (class != A && class != B && class != C)) {
		assert_silent();
		return;
	}
	assert_true(vb_rc_response(&resp, &pkt, &data));
	assert_int_equal(pkt.psn, resp.epsn);
	assert_int_equal(pkt.aeth.syndrome, class == B && !row->on.ahead ? vb_aeth_rnr(9)
								   : vb_aeth_nak(row->code));
	assert_silent();
}

/* What is said of each class in 9.9.3, and no more. */
static void check(const struct row *row, enum vb_fault_class class, struct vb_resp_result result)
{
	static const enum vb_resp_outcome outcomes[] = {
		[A] = VB_RESP_FAILED,  [B] = VB_RESP_OWES,   [C] = VB_RESP_FAILED,
		[D] = VB_RESP_DROPPED, [J] = VB_RESP_FAILED,
	};
	bool takes = ends_the_qp(class) && row->recv != IBV_WC_SUCCESS;

	assert_int_equal(result.outcome, outcomes[class]);
	assert_int_equal(resp.broken, ends_the_qp(class));
	check_answer(row, class);
	assert_int_equal(fake.recv_done_count, takes);
	if (takes)
		assert_int_equal(fake.recv_done[0].status, row->recv);
	assert_int_equal(resp.msn, 0);
}

static void arrange(const struct row *row)
{
	fake.remote_check = row->on.check;
	fake.remote_write = row->on.write;
	fake.remote_atomic = row->on.atomic;
	fake.recv_write = row->on.recv;
	fake.invalidate = row->on.invalidate;
	fake.no_room = row->on.no_room;
	fake.recv_posted = row->on.no_recv ? 0 : 1;
	resp.access &= ~row->on.no_access;
	if (row->on.no_resources)
		resp.resources_max = 0;
}

/* Class D: nothing is lost by it, and the next message has the only receive request. */
static void check_it_goes_on(enum vb_transport transport, uint32_t psn)
{
	uint8_t only = vb_op_find(transport, VB_K_SEND, ONLY, 0);

	fake.recv_write = VB_OK;
	fake.no_room = false;
	fake.recv_posted = 1;
	assert_result(request(only, psn, 3, 0), VB_RESP_NOTHING, VB_OK);
	assert_int_equal(fake.recv_done_count, 1);
	assert_int_equal(fake.recv_done[0].wr_id, 0);
	assert_int_equal(fake.recv_done[0].status, IBV_WC_SUCCESS);
}

static void walk(enum vb_transport transport, const struct row *row, enum vb_fault_class class)
{
	uint32_t psn = EPSN;
	struct vb_pkt pkt;

	begin(NULL);
	resp.transport = transport;
	fake.recv_posted = 1;
	if (row->on.within)
		request(vb_op_find(transport, VB_K_SEND, FIRST, 0), psn++, MTU, 0);
	arrange(row);
	psn += row->on.ahead;
	pkt = packet(vb_op_find(transport, row->kind, row->pos, row->extra), psn, row->payload,
		     row->dma);
	pkt.reth.va += row->on.askew;
	pkt.ackreq = true;
	check(row, class, give(&pkt));
	if (class == D)
		check_it_goes_on(transport, psn + 1);
}

TEST(each_fault_has_its_class_on_each_service)
{
	static const enum vb_transport acked[] = { VB_RC, VB_XRC, VB_DC };

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];

		print_message("%s\n", row->what);
		for (unsigned t = 0; t < VB_ARRAY_LEN(acked); t++)
			walk(acked[t], row, row->acked);
		if (row->uc != NONE)
			walk(VB_UC, row, row->uc);
		if (row->ud != NONE)
			walk(VB_UD, row, row->ud);
	}
}

/* Every row of the table is met above, and says nothing that its class has no use for. */
TEST(the_table_is_whole)
{
	for (unsigned v = VB_NO_RECV; v < VB_VERDICTS; v++) {
		const struct vb_verdict_row *row = &vb_verdict_rows[v];

		assert_int_not_equal(row->acked, NONE);
		assert_int_not_equal(row->acked, D);
		assert_true(row->uc == NONE || row->uc == A || row->uc == D);
		assert_true(row->ud == NONE || row->ud == A || row->ud == D);
		if (row->acked == B)
			continue;
		assert_int_not_equal(row->recv_status, IBV_WC_SUCCESS);
		assert_true(row->code >= VB_NAK_INVALID_REQ && row->code <= VB_NAK_OP);
		assert_true(row->silent || row->event == IBV_EVENT_QP_REQ_ERR ||
			    row->event == IBV_EVENT_QP_ACCESS_ERR ||
			    row->event == IBV_EVENT_QP_FATAL);
	}
}
