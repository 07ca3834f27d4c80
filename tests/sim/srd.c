/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SRD, simulated: processes, each with a QP that sends to all and receives from all, on hosts of
 * their own over a fabric that loses, doubles, delays and damages, or on one host, by rings where
 * there are any; and with the end of a QP, or of its whole process. Arguments and output as those
 * of sim_xrc.
 *
 * What must come of it: every message once, whole, or a completion in error with a reason; what is
 * written and read is right; nothing but the message suffers from a wrong key. And in all the runs
 * together, messages have overtaken each other, on the fabric and by rings.
 */
#include "srd_sim.h"
#include "arguments.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>

#include "nic/core/timer.h"
#include "nic/data/qp_error.h"

static unsigned long long deaths, errors, by_ring, arrived, overtook, overtook_by_rings;

/* --- work requests --- */

static uint32_t key_of(const struct node *node, unsigned number)
{
	return node->index * OPS + number + 11;
}

static bool takes_recv(const struct op *op)
{
	return op->opcode == IBV_WR_SEND || op->opcode == IBV_WR_SEND_WITH_IMM ||
	       op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_write(const struct op *op)
{
	return op->opcode == IBV_WR_RDMA_WRITE || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* A SEND begins with its number, behind which is its data. */
static bool is_whole(const uint8_t *at, const struct node *from, unsigned number)
{
	uint32_t bytes = from->op[number].bytes;

	return !memcmp(at, &number, sizeof(number)) &&
	       is_filled(at + sizeof(number), bytes - (uint32_t)sizeof(number),
			 key_of(from, number), 0);
}

static void op_choose(struct node *node, struct op *op)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
	};
	const struct op *before = op == node->op ? NULL : op - 1;

	*op = (struct op){ .opcode = opcodes[below(VB_ARRAY_LEN(opcodes))] };
	op->bytes = 4 + (chance(60) ? below(64) : below(VB_SRD_SEND_BYTES_MAX - 3));
	op->to = before && chance(50) ? before->to : below(sim.nodes);
	op->offset = below(PATTERN_BYTES - op->bytes);
	if (!sim.bad || !chance(8))
		return;
	op->bad = (enum bad)(1 + below(4));
	if (op->bad == BAD_RKEY)
		op->opcode = IBV_WR_RDMA_WRITE;
	if (op->bad == TOO_LONG) {
		op->opcode = IBV_WR_SEND;
		op->bytes = VB_SRD_SEND_BYTES_MAX + 1;
		op->offset = 0;
	}
}

static void post(struct node *node)
{
	unsigned number = node->posted;
	struct op *op = &node->op[number];
	struct area *mine = &area[node->index];
	struct vb_post post = { .wr = { .wr_id = number, .num_sge = 1, .imm_data = number } };
	struct ibv_send_wr *wr = &post.wr, *bad;
	struct ibv_sge sge;
	uint8_t *at = mine->source[number];
	struct node *to;

	op_choose(node, op);
	node->posted++;
	to = &sim.node[op->to];
	if (op->opcode == IBV_WR_RDMA_READ) {
		at = mine->landing[number];
	} else if (is_write(op)) {
		fill(at, op->bytes, key_of(node, number));
	} else {
		memcpy(at, &number, sizeof(number));
		fill(at + sizeof(number), op->bytes - (uint32_t)sizeof(number),
		     key_of(node, number));
	}
	sge = (struct ibv_sge){ (uintptr_t)at, op->bytes,
				node->mr->ibv.lkey ^ (op->bad == BAD_LKEY) };
	post.dc = (struct vb_dc_address){
		.ah = &node->ah[op->to]->ibv,
		.dctn = to->qpn,
		.key = to->qkey ^ (op->bad == BAD_QKEY),
	};
	wr->sg_list = &sge;
	wr->opcode = op->opcode;
	if (sim.trace)
		printf("%12llu QP %u posts %u: opcode %d to %u, %u octets, bad %d\n",
		       (unsigned long long)sim.fabric.now_ns, node->index, number, op->opcode,
		       op->to, op->bytes, op->bad);
	if (takes_recv(op) && !is_write(op) && chance(50)) {
		wr->wr.ud.ah = post.dc.ah;
		wr->wr.ud.remote_qpn = post.dc.dctn;
		wr->wr.ud.remote_qkey = (uint32_t)post.dc.key;
		require(vb_qp_post_send(node->qp, wr, &bad) == 0);
		return;
	}
	wr->wr.rdma.remote_addr = op->opcode == IBV_WR_RDMA_READ
					  ? (uintptr_t)area[op->to].pattern + op->offset
					  : (uintptr_t)area[op->to].written[node->index][number];
	wr->wr.rdma.rkey = to->mr->ibv.rkey ^ (op->bad == BAD_RKEY);
	require(vb_qp_post_batch(node->qp, &post, 1) == 0);
}

/* A full queue says so, and takes nothing. */
static void overfill(struct node *node)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	wr.wr.ud.ah = &node->ah[0]->ibv;
	require(vb_qp_post_send(node->qp, &wr, &bad) == ENOMEM && bad == &wr);
}

static bool is_gone(const struct node *node)
{
	return node->dead || !node->qp;
}

/* A READ whose memory is wrong fails here, when the data comes: what was behind it is in doubt. */
static bool has_doubts(const struct node *node, const struct op *op)
{
	for (const struct op *other = node->op; other < op; other++) {
		if (other->to == op->to && other->bad == BAD_LKEY &&
		    other->opcode == IBV_WR_RDMA_READ)
			return true;
	}
	return false;
}

static bool may_fail(const struct node *node, const struct op *op, enum ibv_wc_status status)
{
	switch ((int)status) {
	case IBV_WC_RESP_TIMEOUT_ERR:
		return is_gone(&sim.node[op->to]);
	case IBV_WC_REM_INV_RD_REQ_ERR:
		return op->bad == BAD_QKEY || is_gone(&sim.node[op->to]);
	case IBV_WC_REM_ACCESS_ERR:
		return op->bad == BAD_RKEY;
	case IBV_WC_LOC_PROT_ERR:
		return op->bad == BAD_LKEY;
	case IBV_WC_LOC_LEN_ERR:
		return op->bad == TOO_LONG;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return node->rnr_retry < 7;
	case IBV_WC_REM_ABORT_ERR:
		return has_doubts(node, op);
	default:
		return false;
	}
}

static void sent(struct node *node, const struct ibv_wc *wc)
{
	unsigned number = (unsigned)wc->wr_id;
	struct op *op = &node->op[number];

	if (sim.trace)
		printf("%12llu QP %u: %u ends with %d\n", (unsigned long long)sim.fabric.now_ns,
		       node->index, number, wc->status);
	require(wc->qp_num == node->qpn && number < node->posted && !op->done);
	op->done = true;
	op->status = wc->status;
	node->done++;
	require(vb_qp_state(node->qp) == IBV_QPS_RTS);
	if (wc->status != IBV_WC_SUCCESS) {
		if (!may_fail(node, op, wc->status))
			failed("QP %u: work request %u to %u ends with status %d", node->index,
			       number, op->to, wc->status);
		errors++;
		return;
	}
	if (op->bad)
		failed("QP %u: a bad key was taken for good", node->index);
	if (op->opcode == IBV_WR_RDMA_READ &&
	    !is_filled(area[node->index].landing[number], op->bytes, op->to, op->offset))
		failed("QP %u: READ %u is wrong", node->index, number);
}

/* --- receiving --- */

static void recv_post(struct node *node, unsigned at)
{
	struct ibv_sge sge = { (uintptr_t)area[node->index].recv[at], MESSAGE_MAX,
			       node->mr->ibv.lkey };
	struct ibv_recv_wr wr = { .wr_id = at, .sg_list = &sge, .num_sge = 1 }, *bad;

	require(vb_qp_post_recv(node->qp, &wr, &bad) == 0);
	node->posted_recv[at] = true;
}

static struct node *sender_of(uint32_t qpn)
{
	for (unsigned i = 0; i < sim.nodes; i++) {
		if (sim.node[i].qpn == qpn)
			return &sim.node[i];
	}
	failed("a message of QP %06x, which is none", qpn);
}

static void who_check(struct node *node, const struct node *from, const struct vb_cqe *cqe)
{
	uint8_t gid[VB_GID_BYTES];

	require(cqe->wc.slid == (sim.numbered ? node->ahn[from->index] : VB_AHN_NONE));
	require(vb_ahn_gid(node->nic, (uint16_t)cqe->ahn, gid));
	require(!memcmp(gid, sim.fabric.gid[from->index][0], VB_GID_BYTES));
}

static void received(struct node *node, const struct vb_cqe *cqe)
{
	const struct ibv_wc *wc = &cqe->wc;
	struct node *from = sender_of(wc->src_qp);
	const uint8_t *data = area[node->index].recv[wc->wr_id];
	unsigned number, *last = &node->last_came[from->index];
	struct op *op;

	require(wc->wr_id < RECVS && node->posted_recv[wc->wr_id]);
	node->posted_recv[wc->wr_id] = false;
	require(wc->status == IBV_WC_SUCCESS && wc->qp_num == node->qpn);
	if (wc->wc_flags & IBV_WC_WITH_IMM)
		number = wc->imm_data;
	else
		memcpy(&number, data, sizeof(number));
	require(number < from->posted);
	op = &from->op[number];
	if (op->came)
		failed("QP %u: message %u of QP %u came twice", node->index, number, from->index);
	if (op->to != node->index || !takes_recv(op) || op->bad || wc->byte_len != op->bytes ||
	    (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) != is_write(op) ||
	    !!(wc->wc_flags & IBV_WC_WITH_IMM) != (op->opcode != IBV_WR_SEND) ||
	    (!is_write(op) && !is_whole(data, from, number)))
		failed("QP %u: message %u of QP %u is wrong", node->index, number, from->index);
	who_check(node, from, cqe);
	op->came = true;
	arrived++;
	overtook += number < *last;
	overtook_by_rings += number < *last && sim.ring_frames;
	*last = number > *last ? number : *last;
}

/* --- time --- */

static void poll(struct node *node)
{
	struct vb_cq_stamp stamp;
	struct vb_cqe cqe;

	if (!node->qp)
		return;
	for (unsigned n = below(6); n && vb_cq_take(node->recv_cq, &cqe, &stamp); n--)
		received(node, &cqe);
	for (unsigned n = below(6); n && vb_cq_take(node->cq, &cqe, &stamp); n--)
		sent(node, &cqe.wc);
}

static void application(struct node *node)
{
	rings_turn(node);
	poll(node);
	if (!node->qp)
		return;
	while (node->posted < node->wanted && node->posted - node->done < QUEUE &&
	       (sim.calm || chance(80)))
		post(node);
	if (node->posted - node->done == QUEUE)
		overfill(node);
	for (unsigned i = 0; i < RECVS; i++) {
		if (!node->posted_recv[i] && (sim.calm || chance(40)))
			recv_post(node, i);
	}
}

static void deaths_happen(void)
{
	struct node *dying = &sim.node[sim.dying];

	if (sim.dying >= sim.nodes || is_gone(dying) || sim.fabric.now_ns < sim.death_ns)
		return;
	deaths++;
	if (sim.only_qp)
		qp_end(dying);
	else
		dying->dead = sim.fabric.dead[sim.dying] = true;
}

static bool are_done(void)
{
	for (unsigned i = 0; i < sim.nodes; i++) {
		const struct node *node = &sim.node[i];

		if (!is_gone(node) && (node->done < node->posted || node->done < node->wanted))
			return false;
	}
	return true;
}

static const struct turns turns = { deaths_happen, application, poll, are_done };

/* --- the end --- */

static void node_check(const struct node *node)
{
	for (unsigned i = 0; i < node->posted; i++) {
		const struct op *op = &node->op[i];
		const uint8_t *written = area[op->to].written[node->index][i];

		if (!op->done || op->status != IBV_WC_SUCCESS)
			continue;
		/* What one that is gone had taken in, nobody will tell. */
		if (!is_gone(&sim.node[op->to]) && takes_recv(op) && !op->came)
			failed("QP %u: message %u of QP %u never came", op->to, i, node->index);
		if (is_write(op) && !is_filled(written, op->bytes, key_of(node, i), 0))
			failed("QP %u: what QP %u wrote by %u is wrong", op->to, node->index, i);
	}
}

static bool run(uint64_t seed, bool trace)
{
	memset(&sim, 0, sizeof(sim));
	sim.seed = seed;
	sim.rng = seed * 0x9e3779b97f4a7c15u + 3;
	sim.trace = trace;
	if (setjmp(sim.failed)) {
		printf("seed %llu: %s\n", (unsigned long long)seed, sim.why);
		fflush(stdout);
		return false;
	}
	world_make();
	turns_take(&turns, 10 * RECVS);
	for (unsigned i = 0; i < sim.nodes; i++)
		node_check(&sim.node[i]);
	by_ring += sim.ring_frames;
	world_unmake();
	return true;
}

/* With so many runs, chance alone would have brought it. */
static bool is_ordered(uint64_t runs)
{
	if (runs < 100 || (overtook && overtook_by_rings))
		return false;
	printf("messages have not overtaken each other\n");
	return true;
}

int main(int argc, char **argv)
{
	struct sim_range range;
	uint64_t failures;

	if (sim_range_parse(argc, argv, "sim_srd SEED | --count N [FROM]", &range))
		return SIM_BAD_USAGE;
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	failures = sim_runs(&range, run);
	failures += is_ordered(range.count);
	printf("%llu runs, %llu failed; %llu messages, %llu overtook others, %llu by rings; "
	       "%llu ends of QPs, %llu errors, %llu frames by rings\n",
	       (unsigned long long)range.count, (unsigned long long)failures, arrived, overtook,
	       overtook_by_rings, deaths, errors, by_ring);
	return failures != 0;
}
