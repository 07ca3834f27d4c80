/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many initiators and many targets of DC, in many processes, for tests/clients/dc_stress.sh.
 *
 *   dc_stress target FOLDER NAME COUNT GID_INDEX
 *   dc_stress initiator FOLDER NAME COUNT GID_INDEX MESSAGES
 *
 * A target process writes FOLDER/NAME.to: who its COUNT targets are; takes messages until there is
 * FOLDER/stop, and then writes FOLDER/NAME.got: how many came from whom. An initiator process reads
 * all that end in .to, sends MESSAGES from each of its COUNT initiators to targets chosen at
 * random, and writes FOLDER/NAME.sent. Each message says from whom to whom it is, and which in the
 * row of those two; a target fails if one is missing, comes twice or is damaged. An initiator fails
 * if a message to a process other than those in FOLDER/dead fails; what was behind one that did is
 * sent again.
 */
#include <dirent.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BYTES_MAX = 6000, DEPTH = 8, RECVS = 32, ENDS_MAX = 256, KEY = 0x5eed };

struct message {
	uint32_t from, to, number, bytes;
	uint8_t data[];
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static union ibv_gid gid;
static uint8_t gid_index;
static const char *folder, *name;
static uint64_t rng;

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "%s: ", name);
	vfprintf(stderr, format, args);
	fprintf(stderr, " (errno %d)\n", errno);
	va_end(args);
	exit(1);
}

static uint32_t below(uint32_t n)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(rng >> 33) % n;
}

static FILE *file_open(const char *stem, const char *end, const char *mode)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s%s", folder, stem, end);
	return fopen(path, mode);
}

static bool file_exists(const char *stem)
{
	FILE *file = file_open(stem, "", "r");

	if (file)
		fclose(file);
	return file != NULL;
}

static void device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		die("no device");
	ctx = ibv_open_device(list[0]);
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	if (!pd || ibv_query_gid(ctx, 1, gid_index, &gid))
		die("the device is of no use");
}

static struct ibv_qp *qp_make(struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = { .max_send_wr = srq ? 0 : DEPTH, .max_send_sge = srq ? 0 : 1 },
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (srq ? 0 : IBV_QP_INIT_ATTR_SEND_OPS_FLAGS),
		.pd = pd,
		.send_ops_flags = srq ? 0 : IBV_QP_EX_WITH_SEND,
		.sq_sig_all = 1,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = srq ? MLX5DV_DCTYPE_DCT : MLX5DV_DCTYPE_DCI },
	};
	struct ibv_qp *qp;

	if (srq)
		dv.dc_init_attr.dct_access_key = KEY;
	qp = mlx5dv_create_qp(ctx, &attr, &dv);
	if (!qp)
		die("no QP");
	return qp;
}

static void climb(struct ibv_qp *qp, bool target)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = gid, .sgid_index = gid_index, .hop_limit = 64 } },
	};
	int err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						   (target ? IBV_QP_ACCESS_FLAGS : 0));

	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(qp, &attr,
				    IBV_QP_STATE | IBV_QP_PATH_MTU |
					    (target ? IBV_QP_AV | IBV_QP_MIN_RNR_TIMER : 0));
	attr.qp_state = IBV_QPS_RTS;
	if (!err && !target)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						       IBV_QP_MAX_QP_RD_ATOMIC);
	if (err)
		die("modify: %s", strerror(err));
}

static uint8_t octet(const struct message *m, uint32_t at)
{
	return (uint8_t)(m->from * 7 + m->to * 13 + m->number * 31 + at * 3 + (at >> 8));
}

/* --- targets --- */

struct target {
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	uint8_t *buf;
	struct ibv_mr *mr;
	uint32_t got[ENDS_MAX * 4]; /* by whom */
};

static void recv_post(struct target *t, unsigned at)
{
	struct ibv_sge sge = { (uintptr_t)t->buf + at * (size_t)BYTES_MAX, BYTES_MAX, t->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = at, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_srq_recv(t->srq, &wr, &bad))
		die("post_srq_recv");
}

static void take(struct target *t, uint32_t first, unsigned count, const struct ibv_wc *wc)
{
	unsigned which;

	for (which = 0; which < count && t[which].qp->qp_num != wc->qp_num; which++)
		;
	if (wc->status != IBV_WC_SUCCESS || which == count)
		die("a receive ended with status %d", wc->status);
	t += which;
	const struct message *m =
		(const struct message *)(t->buf + wc->wr_id * (size_t)BYTES_MAX);
	if (m->bytes != wc->byte_len || m->to != first + which || m->from >= ENDS_MAX * 4)
		die("a message that is none");
	if (m->number != t->got[m->from])
		die("%u to %u: message %u comes where %u should", m->from, m->to, m->number,
		    t->got[m->from]);
	for (uint32_t i = 0; i < m->bytes - sizeof(*m); i++) {
		if (m->data[i] != octet(m, i))
			die("%u to %u: message %u is damaged", m->from, m->to, m->number);
	}
	t->got[m->from]++;
	recv_post(t, (unsigned)wc->wr_id);
}

static void targets(unsigned count)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = RECVS, .max_sge = 1 } };
	struct ibv_cq *cq = ibv_create_cq(ctx, (int)count * RECVS, NULL, NULL, 0);
	struct target *t = calloc(count, sizeof(*t));
	uint32_t first = (uint32_t)(name[strlen(name) - 1] - '0') * count;
	char temporary[64];
	struct ibv_wc wc;
	FILE *file;
	int n;

	snprintf(temporary, sizeof(temporary), "%s.tmp", name);
	file = file_open(temporary, "", "w");
	for (unsigned i = 0; i < count; i++) {
		t[i].srq = ibv_create_srq(pd, &init);
		t[i].buf = calloc(RECVS, BYTES_MAX);
		t[i].mr = ibv_reg_mr(pd, t[i].buf, (size_t)RECVS * BYTES_MAX,
				     IBV_ACCESS_LOCAL_WRITE);
		t[i].qp = qp_make(cq, t[i].srq);
		climb(t[i].qp, true);
		for (unsigned k = 0; k < RECVS; k++)
			recv_post(&t[i], k);
		fprintf(file, "%u %u %u %llx %llx\n", first + i, t[i].qp->qp_num, first / count,
			(unsigned long long)gid.global.subnet_prefix,
			(unsigned long long)gid.global.interface_id);
	}
	fclose(file);
	char from[512], to[512];
	snprintf(from, sizeof(from), "%s/%s", folder, temporary);
	snprintf(to, sizeof(to), "%s/%s.to", folder, name);
	rename(from, to);
	while (!file_exists("stop")) {
		for (unsigned i = 0; i < 1000; i++) {
			n = ibv_poll_cq(cq, 1, &wc);
			if (n < 0)
				die("poll_cq");
			if (n)
				take(t, first, count, &wc);
			else
				usleep(200);
		}
	}
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		take(t, first, count, &wc);
	file = file_open(name, ".got", "w");
	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; k < ENDS_MAX * 4; k++) {
			if (t[i].got[k])
				fprintf(file, "%u %u %u\n", k, first + i, t[i].got[k]);
		}
	}
	fclose(file);
}

/* --- initiators --- */

struct address {
	uint32_t id, dctn, process;
	struct ibv_ah *ah;
};

struct request {
	unsigned to, number;
	uint32_t bytes;
};

struct initiator {
	struct ibv_qp *qp;
	uint32_t id;
	uint8_t *buf;
	struct ibv_mr *mr;
	unsigned left, head, tail;	/* of the row */
	struct request row[DEPTH]; /* what is outstanding, and what is to be sent again */
	unsigned posted;		/* of the row */
	bool failed;
	uint32_t sent[ENDS_MAX]; /* by address */
};

static struct address addresses[ENDS_MAX];
static unsigned address_count;

static void addresses_read(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		size_t length = strlen(entry->d_name);
		struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
					    .grh = { .sgid_index = gid_index, .hop_limit = 64 } };
		unsigned long long prefix, id;
		struct address *a;
		FILE *file;

		if (length < 3 || strcmp(entry->d_name + length - 3, ".to") != 0)
			continue;
		file = file_open(entry->d_name, "", "r");
		while (a = &addresses[address_count],
		       fscanf(file, "%u %u %u %llx %llx", &a->id, &a->dctn, &a->process, &prefix,
			      &id) == 5) {
			attr.grh.dgid.global.subnet_prefix = prefix;
			attr.grh.dgid.global.interface_id = id;
			a->ah = ibv_create_ah(pd, &attr);
			if (!a->ah)
				die("no address handle");
			address_count++;
		}
		fclose(file);
	}
	closedir(dir);
	if (!address_count)
		die("nobody to send to");
}

/* 'A process that was killed' is known by its number. */
static bool is_dead(uint32_t process)
{
	FILE *file = file_open("dead", "", "r");
	unsigned dead;
	bool found = false;

	while (file && !found && fscanf(file, "%u", &dead) == 1)
		found = dead == process;
	if (file)
		fclose(file);
	return found;
}

static void post(struct initiator *i, unsigned at)
{
	const struct request *r = &i->row[at % DEPTH];
	const struct address *a = &addresses[r->to];
	struct message *m = (struct message *)(i->buf + at % DEPTH * (size_t)BYTES_MAX);
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(i->qp);

	*m = (struct message){ i->id, a->id, r->number, r->bytes };
	for (uint32_t k = 0; k < r->bytes - sizeof(*m); k++)
		m->data[k] = octet(m, k);
	ibv_wr_start(qp);
	qp->wr_id = at;
	ibv_wr_send(qp);
	mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(qp), a->ah, a->dctn, KEY);
	ibv_wr_set_sge(qp, i->mr->lkey, (uintptr_t)m, r->bytes);
	if (ibv_wr_complete(qp))
		die("post");
}

/* What comes next: first what has been flushed. */
static void send_more(struct initiator *i)
{
	while (!i->failed && (i->posted != i->tail || (i->left && i->tail - i->head < DEPTH))) {
		struct request *r = &i->row[i->tail % DEPTH];

		if (i->posted == i->tail) {
			r->to = below(address_count);
			r->bytes = (uint32_t)sizeof(struct message) +
				   below(below(2) ? 60 : BYTES_MAX - sizeof(struct message));
			r->number = i->sent[r->to]++;
			i->tail++;
			i->left--;
		}
		post(i, i->posted++);
	}
}

/* Everything is back: those that were flushed are sent again. */
static void recover(struct initiator *i)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	if (ibv_modify_qp(i->qp, &attr, IBV_QP_STATE))
		die("reset");
	climb(i->qp, false);
	i->failed = false;
	i->posted = i->head;
}

static void done(struct initiator *i, const struct ibv_wc *wc, unsigned *flushed)
{
	const struct request *r = &i->row[wc->wr_id % DEPTH];
	const struct address *a = &addresses[r->to];

	if (wc->status == IBV_WC_WR_FLUSH_ERR && i->failed) {
		(*flushed)++;
		if (wc->wr_id + 1 == i->posted)
			recover(i);
		return;
	}
	if (wc->wr_id != i->head || i->failed)
		die("%u: a completion out of turn, status %d", i->id, wc->status);
	i->head++;
	if (wc->status == IBV_WC_SUCCESS)
		return;
	if (wc->status != IBV_WC_RETRY_EXC_ERR || !is_dead(a->process))
		die("%u to %u: status %d", i->id, a->id, wc->status);
	i->failed = true;
	if (i->head == i->posted)
		recover(i);
}

static void initiators(unsigned count, unsigned messages)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, (int)count * DEPTH, NULL, NULL, 0);
	struct initiator *all = calloc(count, sizeof(*all));
	unsigned busy = count, flushed = 0;
	struct ibv_wc wc;
	FILE *file;

	addresses_read();
	for (unsigned k = 0; k < count; k++) {
		struct initiator *i = &all[k];

		i->id = (uint32_t)(name[strlen(name) - 1] - '0') * count + k;
		i->qp = qp_make(cq, NULL);
		climb(i->qp, false);
		i->buf = calloc(DEPTH, BYTES_MAX);
		i->mr = ibv_reg_mr(pd, i->buf, (size_t)DEPTH * BYTES_MAX, IBV_ACCESS_LOCAL_WRITE);
		i->left = messages;
	}
	while (busy) {
		int n;

		busy = 0;
		for (unsigned k = 0; k < count; k++) {
			send_more(&all[k]);
			busy += all[k].left || all[k].head != all[k].tail;
		}
		for (n = 0; busy && ibv_poll_cq(cq, 1, &wc) == 1; n++) {
			for (unsigned k = 0; k < count; k++) {
				if (all[k].qp->qp_num == wc.qp_num)
					done(&all[k], &wc, &flushed);
			}
		}
		if (!n)
			usleep(100);
	}
	file = file_open(name, ".sent", "w");
	for (unsigned k = 0; k < count; k++) {
		for (unsigned a = 0; a < address_count; a++) {
			if (all[k].sent[a] && !is_dead(addresses[a].process))
				fprintf(file, "%u %u %u\n", all[k].id, addresses[a].id,
					all[k].sent[a]);
		}
	}
	fclose(file);
	printf("%u sent again after errors\n", flushed);
}

int main(int argc, char **argv)
{
	if (argc < 6)
		return 2;
	folder = argv[2];
	name = argv[3];
	gid_index = (uint8_t)atoi(argv[5]);
	rng = (uint64_t)(uint8_t)name[strlen(name) - 1] * 77;
	device_open();
	if (strcmp(argv[1], "target") == 0)
		targets((unsigned)atoi(argv[4]));
	else
		initiators((unsigned)atoi(argv[4]), argc > 6 ? (unsigned)atoi(argv[6]) : 100);
	return 0;
}
