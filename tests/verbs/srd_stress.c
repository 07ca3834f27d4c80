/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process with a QP of SRD that sends to all others like it and receives from all, for
 * tests/clients/srd.sh:
 *
 *   srd_stress FOLDER NUMBER PROCESSES GID_INDEX MESSAGES
 *
 * It writes FOLDER/NUMBER.to: who its QP is; waits until there are PROCESSES of these; sends
 * MESSAGES to QPs chosen at random, and WRITEs with immediate data among them; and writes
 * FOLDER/NUMBER.sent, how many to whom. It ends when all have done so and as many have come as were
 * sent to it, and fails if one comes twice, is damaged or ends in error; the last line says how
 * many came, and how many of them had overtaken others.
 */
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/verbs/qp.h"
#include "nic/control/qp_dv.h"

enum { BYTES_MAX = 8928, DEPTH = 64, RECVS = 128, PROCESSES_MAX = 16, MESSAGES_MAX = 100000 };
enum { QKEY = 0x5eed };

struct message {
	uint32_t from, to, number, bytes;
	uint8_t data[];
};

struct end {
	struct ibv_ah *ah;
	uint32_t qpn, rkey;
	uint64_t at; /* where its WRITEs land: a place for each process */
	uint32_t sent;
};

static const char *folder;
static unsigned number, processes;
static struct end ends[PROCESSES_MAX];
static bool came[PROCESSES_MAX][MESSAGES_MAX];
static uint32_t got, last_came[PROCESSES_MAX], overtook;
static uint64_t rng;

static struct ibv_qp *qp;
static struct ibv_cq *cq;
static uint8_t *recvs, *sends, *landing;
static struct ibv_mr *recv_mr, *send_mr, *landing_mr;

static void __attribute__((noreturn)) die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "process %u: ", number);
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

static uint32_t below(uint32_t n)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(rng >> 33) % n;
}

static FILE *file_open(unsigned of, const char *end, const char *mode)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%u%s", folder, of, end);
	return fopen(path, mode);
}

/* Whole from the moment that it is there. */
static void file_close(FILE *file, const char *end)
{
	char from[512], to[512];

	fclose(file);
	snprintf(from, sizeof(from), "%s/%u.new", folder, number);
	snprintf(to, sizeof(to), "%s/%u%s", folder, number, end);
	if (rename(from, to) != 0)
		die("%s", to);
}

/* --- the QP --- */

static struct ibv_mr *region(struct ibv_pd *pd, uint8_t **at, size_t bytes)
{
	struct ibv_mr *mr;

	*at = calloc(1, bytes);
	mr = ibv_reg_mr(pd, *at, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		die("no region");
	return mr;
}

static void qp_make(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct vb_dc_attr dc = { .srd = true };
	struct vb_qp_dv_attr dv = { .dc = &dc };
	struct ibv_qp_init_attr_ex init = {
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1, .max_recv_wr = RECVS,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	cq = ibv_create_cq(ctx, DEPTH + RECVS, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	qp = cq ? vb_abi_create_qp_dv(ctx, &init, &dv, NULL) : NULL;
	if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						    IBV_QP_QKEY))
		die("no QP");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		die("not to RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		die("not to RTS");
}

static void recv_post(unsigned at)
{
	struct ibv_sge sge = { (uintptr_t)recvs + at * (size_t)BYTES_MAX, BYTES_MAX,
			       recv_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = DEPTH + at, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(qp, &wr, &bad))
		die("ibv_post_recv");
}

static void introduce(const union ibv_gid *gid)
{
	FILE *file = file_open(number, ".new", "w");

	fprintf(file, "%u %u %llx %llx %llx\n", qp->qp_num, landing_mr->rkey,
		(unsigned long long)(uintptr_t)landing,
		(unsigned long long)gid->global.subnet_prefix,
		(unsigned long long)gid->global.interface_id);
	file_close(file, ".to");
}

static void meet(struct ibv_pd *pd, uint8_t gid_index, unsigned other)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
				    .grh = { .sgid_index = gid_index, .hop_limit = 64 } };
	unsigned long long at, prefix, id;
	struct end *end = &ends[other];
	FILE *file;

	while (!(file = file_open(other, ".to", "r")))
		usleep(1000);
	if (fscanf(file, "%u %u %llx %llx %llx", &end->qpn, &end->rkey, &at, &prefix, &id) != 5)
		die("who is process %u?", other);
	fclose(file);
	end->at = at;
	attr.grh.dgid.global.subnet_prefix = prefix;
	attr.grh.dgid.global.interface_id = id;
	end->ah = ibv_create_ah(pd, &attr);
	if (!end->ah)
		die("no address handle");
}

/* --- messages --- */

static uint8_t octet(const struct message *m, uint32_t at)
{
	return (uint8_t)(m->from * 7 + m->to * 13 + m->number * 31 + at * 3 + (at >> 8));
}

static void post(uint64_t at)
{
	struct message *m = (struct message *)(sends + at * BYTES_MAX);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	unsigned to = below(processes);
	struct end *end = &ends[to];
	bool writes = below(4) == 0;

	*m = (struct message){ number, to, end->sent++,
			       (uint32_t)sizeof(*m) + (below(4) ? below(500)
								: below(BYTES_MAX - 64)) };
	for (uint32_t k = 0; k < m->bytes - sizeof(*m); k++)
		m->data[k] = octet(m, k);
	ibv_wr_start(ex);
	ex->wr_id = at;
	if (writes)
		ibv_wr_rdma_write_imm(ex, end->rkey, end->at + number * 64ull,
				      number << 24 | m->number);
	else
		ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, end->ah, end->qpn, QKEY);
	ibv_wr_set_sge(ex, send_mr->lkey, (uintptr_t)m, writes ? 16 : m->bytes);
	if (ibv_wr_complete(ex))
		die("ibv_wr_complete");
}

static void note(unsigned from, uint32_t which)
{
	if (from >= processes || which >= MESSAGES_MAX || came[from][which])
		die("message %u of process %u came twice, or is none", which, from);
	came[from][which] = true;
	got++;
	overtook += which < last_came[from];
	last_came[from] = which > last_came[from] ? which : last_came[from];
}

static void take(const struct ibv_wc *wc)
{
	unsigned at = (unsigned)wc->wr_id - DEPTH;
	const struct message *m = (const struct message *)(recvs + at * (size_t)BYTES_MAX);

	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		note(wc->imm_data >> 24, wc->imm_data & 0xffffff);
	} else {
		if (m->bytes != wc->byte_len || m->to != number || m->from >= processes ||
		    wc->src_qp != ends[m->from].qpn)
			die("a message that is none");
		for (uint32_t i = 0; i < m->bytes - sizeof(*m); i++)
			if (m->data[i] != octet(m, i))
				die("message %u of process %u is damaged", m->number, m->from);
		note(m->from, m->number);
	}
	recv_post(at);
}

/* Sends all, and takes what comes meanwhile. */
static void work(unsigned messages)
{
	unsigned posted = 0, done = 0, idle = 0;
	struct ibv_wc wc;

	for (; posted < messages && posted < DEPTH; posted++)
		post(posted);
	while (done < posted) {
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n < 0)
			die("ibv_poll_cq");
		if (n && wc.status != IBV_WC_SUCCESS)
			die("status %d (%s)", wc.status, ibv_wc_status_str(wc.status));
		if (n && wc.wr_id >= DEPTH) {
			take(&wc);
		} else if (n) {
			done++;
			if (posted < messages) {
				posted++;
				post(wc.wr_id);
			}
		} else if (++idle % 1000 == 0) {
			usleep(100);
		}
	}
}

/* How many were sent here; false: not all have told. */
static bool awaited(uint32_t *all)
{
	uint32_t count;

	*all = 0;
	for (unsigned k = 0; k < processes; k++) {
		FILE *file = file_open(k, ".sent", "r");

		if (!file)
			return false;
		for (unsigned i = 0; i <= number; i++)
			if (fscanf(file, "%u", &count) != 1)
				die("what has process %u sent?", k);
		fclose(file);
		*all += count;
	}
	return true;
}

static void finish(void)
{
	FILE *file = file_open(number, ".new", "w");
	struct ibv_wc wc;
	uint32_t all;

	for (unsigned k = 0; k < processes; k++)
		fprintf(file, "%u\n", ends[k].sent);
	file_close(file, ".sent");
	while (!awaited(&all) || got < all) {
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n > 0 && wc.status == IBV_WC_SUCCESS)
			take(&wc);
		else if (n)
			die("a receive ended with status %d", wc.status);
		else
			usleep(200);
	}
	printf("%u messages came, %u overtook others\n", got, overtook);
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	union ibv_gid gid;
	uint8_t gid_index;

	if (argc != 6 || !pd)
		die("a device, FOLDER, NUMBER, PROCESSES, GID_INDEX and MESSAGES are needed");
	folder = argv[1];
	number = (unsigned)atoi(argv[2]);
	processes = (unsigned)atoi(argv[3]);
	gid_index = (uint8_t)atoi(argv[4]);
	rng = number + 1;
	if (ibv_query_gid(ctx, 1, gid_index, &gid))
		die("no GID %u", gid_index);
	recv_mr = region(pd, &recvs, (size_t)RECVS * BYTES_MAX);
	send_mr = region(pd, &sends, (size_t)DEPTH * BYTES_MAX);
	landing_mr = region(pd, &landing, PROCESSES_MAX * 64);
	qp_make(ctx, pd);
	for (unsigned i = 0; i < RECVS; i++)
		recv_post(i);
	introduce(&gid);
	for (unsigned k = 0; k < processes; k++)
		meet(pd, gid_index, k);
	work((unsigned)atoi(argv[5]));
	finish();
	return 0;
}
