/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "netns.h"
#include "skip.h"

enum { CASES_MAX = 100 };

struct vt vt;

const enum ibv_qp_type vt_types[VT_TYPES] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };

/* --- running --- */

static struct sigaction library_handler[2];

/*
 * A sanitizer has a handler that takes what it is asked about for a crash. What main() installs
 * stays.
 */
__attribute__((constructor)) static void forget_reporters(void)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
}

/* The first open installs them. */
static void learn_handlers(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (context)
		ibv_close_device(context);
	ibv_free_device_list(list);
	sigaction(SIGSEGV, NULL, &library_handler[0]);
	sigaction(SIGBUS, NULL, &library_handler[1]);
}

void vt_faults_to_library(void)
{
	sigaction(SIGSEGV, &library_handler[0], NULL);
	sigaction(SIGBUS, &library_handler[1], NULL);
}

static struct vt_case *cases;

void vt_enlist(struct vt_case *entry)
{
	struct vt_case **at = &cases;

	while (*at && (*at)->line <= entry->line)
		at = &(*at)->next;
	entry->next = *at;
	*at = entry;
}

int vt_main(void)
{
	struct CMUnitTest tests[CASES_MAX];
	size_t count = 0;

	for (struct vt_case *at = cases; at && count < CASES_MAX; at = at->next)
		if (!at->runs_here || at->runs_here())
			tests[count++] = at->test;
	cmocka_set_test_filter(getenv("VT_TEST"));
	if (netns_enter()) {
		learn_handlers();
		return _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
	}
	printf("1..%zu\n", count);
	for (size_t i = 0; i < count; i++)
		printf("ok %zu - %s # SKIP " NO_NETWORK_NAMESPACE "\n", i + 1, tests[i].name);
	return 0;
}

int vt_gid_index(const uint8_t raw[16])
{
	union ibv_gid gid;

	for (int i = 0; i < 256; i++) {
		assert_int_equal(ibv_query_gid(vt.ctx, 1, i, &gid), 0);
		if (!memcmp(gid.raw, raw, sizeof(gid.raw)))
			return i;
	}
	fail_msg("a GID is not in the table: its last octets are %u.%u.%u.%u", raw[12], raw[13],
		 raw[14], raw[15]);
	return -1;
}

static void find_gid(void)
{
	static const uint8_t ipv4[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 };
	static const uint8_t ipv6[16] = { [15] = 1 };
	const uint8_t *wanted = getenv("VT_IPV6") ? ipv6 : ipv4;

	vt.gid_index = vt_gid_index(wanted);
	memcpy(vt.gid.raw, wanted, sizeof(vt.gid.raw));
}

int vt_setup(void **state)
{
	struct ibv_device **list = vt_made(ibv_get_device_list(NULL));

	assert_non_null(list[0]);
	vt.ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(vt.ctx);
	find_gid();
	vt.pd = vt_made(ibv_alloc_pd(vt.ctx));
	return 0;
}

int vt_teardown(void **state)
{
	int err = ibv_dealloc_pd(vt.pd);

	/* EBUSY here: the test left something behind, or the library did. */
	ibv_close_device(vt.ctx);
	return err;
}

/* --- objects --- */

struct vt_options vt_options(const struct vt_options *opt)
{
	struct vt_options o = opt ? *opt : (struct vt_options){ .type = IBV_QPT_RC };

#define DEFAULT_UNLESS(none, field, value)                                                        \
	do {                                                                                      \
		if (none)                                                                         \
			o.field = 0;                                                              \
		else if (!o.field)                                                                \
			o.field = value;                                                          \
	} while (0)
#define DEFAULT(field, value) DEFAULT_UNLESS(false, field, value)
	DEFAULT(type, IBV_QPT_RC);
	DEFAULT(send_wr, 64);
	DEFAULT(recv_wr, 64);
	DEFAULT(sge, 4);
	DEFAULT(inline_bytes, 64);
	DEFAULT(cqe, 256);
	DEFAULT(bytes, 65536);
	DEFAULT(mr_access, VT_ALL_ACCESS);
	DEFAULT(qp_access, VT_ALL_ACCESS);
	DEFAULT(mtu, IBV_MTU_1024);
	DEFAULT_UNLESS(o.for_ever, timeout, 14);
	DEFAULT_UNLESS(o.no_retry, retry_cnt, 7);
	DEFAULT_UNLESS(o.no_rnr_retry, rnr_retry, 7);
	DEFAULT(rnr_timer, 1);
	DEFAULT_UNLESS(o.no_rd_atomic, rd_atomic, VT_RD_ATOMIC);
	DEFAULT(state, IBV_QPS_RTS);
#undef DEFAULT
#undef DEFAULT_UNLESS
	return o;
}

struct ibv_device_attr vt_device(void)
{
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(vt.ctx, &attr), 0);
	return attr;
}

struct ibv_device_attr_ex vt_device_ex(void)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(vt.ctx, NULL, &attr), 0);
	return attr;
}

bool vt_by_udp(void)
{
	const char *link = getenv("VERBATIM_LINK");

	return link && strcmp(link, "udp") == 0;
}

struct ibv_cq *vt_cq(int cqe, struct ibv_comp_channel *channel)
{
	return vt_made(ibv_create_cq(vt.ctx, cqe, NULL, channel, 0));
}

struct ibv_cq_ex *vt_cq_ex(struct ibv_cq_init_attr_ex *attr)
{
	return vt_made(ibv_create_cq_ex(vt.ctx, attr));
}

struct ibv_mr *vt_mr(struct ibv_pd *pd, void *addr, size_t bytes, int access)
{
	return vt_made(ibv_reg_mr(pd, addr, bytes, access));
}

struct ibv_ah_attr vt_address(const union ibv_gid *gid)
{
	return (struct ibv_ah_attr){
		.grh = { .dgid = *gid, .sgid_index = (uint8_t)vt.gid_index, .hop_limit = 1 },
		.is_global = 1,
		.port_num = 1,
	};
}

struct ibv_ah *vt_ah(void)
{
	struct ibv_ah_attr attr = vt_address(&vt.gid);

	return vt_made(ibv_create_ah(vt.pd, &attr));
}

static void qp_open(struct vt_end *end, const struct vt_options *opt)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.srq = end->srq,
		.cap = { .max_send_wr = opt->send_wr,
			 .max_recv_wr = opt->recv_wr,
			 .max_send_sge = opt->sge,
			 .max_recv_sge = opt->sge,
			 .max_inline_data = opt->inline_bytes },
		.qp_type = opt->type,
		.sq_sig_all = opt->sq_sig_all,
	};

	end->qp = vt_made(opt->make_qp ? opt->make_qp(&init) : ibv_create_qp(vt.pd, &init));
}

/* The file stays open, so that others find it; the test's process closes it when it ends. */
static void *pages_map(size_t bytes, bool of_file)
{
	int fd = of_file ? memfd_create("buffer", MFD_CLOEXEC) : -1;
	void *at;

	if (of_file)
		assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		  of_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	assert_true(at != MAP_FAILED);
	return at;
}

static struct ibv_mr *dm_make(struct vt_end *end, int access)
{
	struct ibv_alloc_dm_attr attr = { .length = end->bytes, .log_align_req = 6 };

	if (!vt_device_ex().max_dm_size)
		SKIP("the device has no device memory");
	end->dm = vt_made(ibv_alloc_dm(vt.ctx, &attr));
	return ibv_reg_dm_mr(vt.pd, end->dm, 0, end->bytes,
			     (unsigned)access | IBV_ACCESS_ZERO_BASED);
}

static void memory_open(struct vt_end *end, const struct vt_options *opt)
{
	if (opt->memory == VT_DM) {
		end->mr = vt_made(dm_make(end, opt->mr_access));
		return;
	}
	end->is_mapped = opt->memory == VT_MEMFD || opt->memory == VT_PAGES;
	end->buf = vt_made(end->is_mapped ? pages_map(end->bytes, opt->memory == VT_MEMFD)
					  : calloc(1, end->bytes));
	if (opt->memory == VT_SPACE)
		end->mr = vt_mr(vt.pd, NULL, SIZE_MAX, opt->mr_access | IBV_ACCESS_ON_DEMAND);
	else
		end->mr = vt_mr(vt.pd, end->buf, end->bytes, opt->mr_access);
}

void vt_end_open(struct vt_end *end, const struct vt_options *given)
{
	const struct vt_options *opt = &end->opt;
	struct ibv_srq_init_attr init;

	*end = (struct vt_end){ .opt = vt_options(given) };
	end->bytes = opt->bytes;
	init = (struct ibv_srq_init_attr){ .attr = { .max_wr = opt->recv_wr,
						     .max_sge = opt->sge } };
	if (opt->make_cq)
		end->cq = opt->make_cq(opt->cqe);
	else if (opt->cq_attr)
		end->cq = ibv_cq_ex_to_cq(vt_cq_ex(opt->cq_attr));
	else
		end->cq = vt_cq(opt->cqe, opt->channel);
	if (opt->srq) {
		end->srq = vt_made(ibv_create_srq(vt.pd, &init));
	}
	memory_open(end, opt);
	if (opt->type == IBV_QPT_UD)
		end->ah = vt_ah();
	qp_open(end, opt);
}

void vt_end_open_unshared(struct vt_end *end, const struct vt_options *opt)
{
	struct vt_options own = *opt;

	own.srq = false;
	vt_end_open(end, &own);
}

void vt_end_close(struct vt_end *end)
{
	if (end->qp)
		assert_int_equal(ibv_destroy_qp(end->qp), 0);
	if (end->ah)
		assert_int_equal(ibv_destroy_ah(end->ah), 0);
	if (end->srq)
		assert_int_equal(ibv_destroy_srq(end->srq), 0);
	if (end->mr)
		assert_int_equal(ibv_dereg_mr(end->mr), 0);
	if (end->cq)
		assert_int_equal(ibv_destroy_cq(end->cq), 0);
	if (end->dm)
		assert_int_equal(ibv_free_dm(end->dm), 0);
	if (end->is_mapped)
		munmap(end->buf, end->bytes);
	else
		free(end->buf);
	*end = (struct vt_end){ .qp = NULL };
}

static void pair_connect(struct vt_pair *pair)
{
	if (pair->opt.in_reset)
		return;
	vt_climb(pair->a.qp, &pair->opt, pair->opt.state, pair->b.qp->qp_num);
	vt_climb(pair->b.qp, &pair->opt, pair->opt.state, pair->a.qp->qp_num);
}

void vt_pair_open(struct vt_pair *pair, const struct vt_options *opt)
{
	pair->opt = vt_options(opt);
	vt_end_open_unshared(&pair->a, &pair->opt);
	vt_end_open(&pair->b, &pair->opt);
	pair_connect(pair);
}

void vt_pair_open_across(struct vt_pair *pair, struct vt *other, const struct vt_options *opt)
{
	const struct vt own = vt;

	*other = vt;
	other->ctx = vt_made(ibv_open_device(vt.ctx->device));
	other->pd = vt_made(ibv_alloc_pd(other->ctx));
	pair->opt = vt_options(opt);
	vt_end_open_unshared(&pair->a, &pair->opt);
	vt = *other;
	vt_end_open(&pair->b, &pair->opt);
	vt = own;
	pair_connect(pair);
}

void vt_pair_close(struct vt_pair *pair)
{
	vt_end_close(&pair->a);
	vt_end_close(&pair->b);
}

/* --- states --- */

static int attr_init(struct ibv_qp_attr *attr, const struct vt_options *opt)
{
	attr->port_num = 1;
	attr->qp_access_flags = opt->qp_access;
	attr->qkey = VT_QKEY;
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       (opt->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}

/* So that the wrap is always near. */
static uint32_t first_psn(const struct vt_options *opt)
{
	return (0xfffff0 + opt->later_psn) & 0xffffff;
}

static int attr_rtr(struct ibv_qp_attr *attr, const struct vt_options *opt, uint32_t peer_qpn)
{
	int mask = IBV_QP_STATE;

	if (opt->type == IBV_QPT_UD)
		return mask;
	attr->path_mtu = opt->mtu;
	attr->dest_qp_num = peer_qpn;
	attr->rq_psn = first_psn(opt);
	attr->ah_attr = vt_address(&vt.gid);
	mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (opt->type == IBV_QPT_UC)
		return mask;
	attr->max_dest_rd_atomic = opt->rd_atomic;
	attr->min_rnr_timer = opt->rnr_timer;
	return mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static int attr_rts(struct ibv_qp_attr *attr, const struct vt_options *opt)
{
	attr->sq_psn = first_psn(opt);
	if (opt->type != IBV_QPT_RC)
		return IBV_QP_STATE | IBV_QP_SQ_PSN;
	attr->timeout = opt->timeout;
	attr->retry_cnt = opt->retry_cnt;
	attr->rnr_retry = opt->rnr_retry;
	attr->max_rd_atomic = opt->rd_atomic;
	return IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
	       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

int vt_attr(struct ibv_qp_attr *attr, const struct vt_options *given, enum ibv_qp_state state,
	    uint32_t peer_qpn)
{
	const struct vt_options opt = vt_options(given);

	*attr = (struct ibv_qp_attr){ .qp_state = state };
	switch (state) {
	case IBV_QPS_INIT:
		return attr_init(attr, &opt);
	case IBV_QPS_RTR:
		return attr_rtr(attr, &opt, peer_qpn);
	case IBV_QPS_RTS:
		return attr_rts(attr, &opt);
	default:
		return IBV_QP_STATE;
	}
}

void vt_climb(struct ibv_qp *qp, const struct vt_options *opt, enum ibv_qp_state state,
	      uint32_t peer_qpn)
{
	struct ibv_qp_attr attr;

	for (enum ibv_qp_state to = IBV_QPS_INIT; to <= state; to++) {
		int mask = vt_attr(&attr, opt, to, peer_qpn);

		assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
	}
}

void vt_bring_to(struct vt_end *end, enum ibv_qp_state state)
{
	struct vt_wr w;

	assert_int_equal(vt_modify(end->qp, IBV_QPS_RESET), 0);
	vt_climb(end->qp, &end->opt, state <= IBV_QPS_RTS ? state : IBV_QPS_RTS, end->qp->qp_num);
	if (state == IBV_QPS_SQE) {
		vt_wr(&w, IBV_WR_SEND, end, end, 8);
		w.sge.lkey ^= 0xff;
		vt_done(end, &w, IBV_WC_LOC_PROT_ERR);
	} else if (state > IBV_QPS_RTS) {
		assert_int_equal(vt_modify(end->qp, state), 0);
	}
	assert_int_equal(vt_state(end->qp), state);
}

void vt_pair_climb(struct vt_pair *pair)
{
	vt_climb(pair->a.qp, &pair->opt, IBV_QPS_RTS, pair->b.qp->qp_num);
	vt_climb(pair->b.qp, &pair->opt, IBV_QPS_RTS, pair->a.qp->qp_num);
}

void vt_pair_reconnect(struct vt_pair *pair)
{
	assert_int_equal(vt_modify(pair->a.qp, IBV_QPS_RESET), 0);
	assert_int_equal(vt_modify(pair->b.qp, IBV_QPS_RESET), 0);
	vt_pair_climb(pair);
}

int vt_modify(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

struct ibv_qp_attr vt_query(struct ibv_qp *qp, int mask)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, mask, &init), 0);
	return attr;
}

enum ibv_qp_state vt_state(struct ibv_qp *qp)
{
	return vt_query(qp, IBV_QP_STATE).qp_state;
}

/* --- work requests --- */

void vt_wr(struct vt_wr *w, enum ibv_wr_opcode op, const struct vt_end *from,
	   const struct vt_end *to, uint32_t bytes)
{
	*w = (struct vt_wr){
		.wr = { .wr_id = 1, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED },
		.sge = { .addr = (uintptr_t)from->buf, .length = bytes, .lkey = from->mr->lkey },
	};
	w->wr.sg_list = &w->sge;
	if (from->ah) {
		w->wr.wr.ud.ah = from->ah;
		w->wr.wr.ud.remote_qpn = to->qp->qp_num;
		w->wr.wr.ud.remote_qkey = VT_QKEY;
	} else if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w->wr.wr.atomic.remote_addr = (uintptr_t)to->buf;
		w->wr.wr.atomic.rkey = to->mr->rkey;
	} else {
		w->wr.wr.rdma.remote_addr = (uintptr_t)to->buf;
		w->wr.wr.rdma.rkey = to->mr->rkey;
	}
}

int vt_try(struct vt_end *end, struct vt_wr *w)
{
	struct ibv_send_wr *bad = NULL;
	int err;

	w->wr.sg_list = &w->sge;
	err = ibv_post_send(end->qp, &w->wr, &bad);
	if (err)
		assert_ptr_equal(bad, &w->wr);
	return err;
}

void vt_post(struct vt_end *end, struct vt_wr *w)
{
	assert_int_equal(vt_try(end, w), 0);
}

void vt_send(struct vt_end *from, const struct vt_end *to, uint64_t wr_id)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND, from, to, 8);
	w.wr.wr_id = wr_id;
	vt_post(from, &w);
}

int vt_recv_at(struct vt_end *end, uint64_t wr_id, size_t offset, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)end->buf + offset, bytes, end->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad = NULL;
	int err = end->srq ? ibv_post_srq_recv(end->srq, &wr, &bad)
			   : ibv_post_recv(end->qp, &wr, &bad);

	if (err)
		assert_ptr_equal(bad, &wr);
	return err;
}

void vt_recv(struct vt_end *end, uint64_t wr_id)
{
	assert_int_equal(vt_recv_at(end, wr_id, 0, (uint32_t)end->bytes), 0);
}

/* --- completions and events --- */

struct ibv_wc vt_done(struct vt_end *end, struct vt_wr *w, enum ibv_wc_status status)
{
	vt_post(end, w);
	return vt_expect(end->cq, w->wr.wr_id, status);
}

void vt_start(enum ibv_wr_opcode op, struct vt_end *from, const struct vt_end *to, uint32_t bytes)
{
	struct vt_wr w;

	vt_wr(&w, op, from, to, bytes);
	vt_post(from, &w);
}

struct ibv_wc vt_do(enum ibv_wr_opcode op, struct vt_end *from, const struct vt_end *to,
		    uint32_t bytes, enum ibv_wc_status status)
{
	struct vt_wr w;

	vt_wr(&w, op, from, to, bytes);
	return vt_done(from, &w, status);
}

void vt_exchange(struct vt_end *from, struct vt_end *to)
{
	vt_recv(to, 2);
	vt_send(from, to, 1);
	vt_expect(from->cq, 1, IBV_WC_SUCCESS);
	vt_expect(to->cq, 2, IBV_WC_SUCCESS);
}

void vt_invalidate(struct vt_end *end, uint32_t key, enum ibv_wc_status status)
{
	struct vt_wr w = { .wr = { .wr_id = 11, .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = key,
				   .send_flags = IBV_SEND_SIGNALED } };
	struct ibv_wc wc = vt_done(end, &w, status);

	if (status == IBV_WC_SUCCESS)
		assert_int_equal(wc.opcode, IBV_WC_LOCAL_INV);
}

uint64_t vt_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t vt_wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void vt_child_ended(pid_t child)
{
	int status = -1;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

unsigned vt_counted(const char *log_name, const char *what)
{
	FILE *log = fopen(log_name, "r");
	unsigned found = 0, value;
	char line[256], *at;

	assert_non_null(log);
	while (fgets(line, sizeof(line), log)) {
		at = strstr(line, what);
		if (at && sscanf(at + strlen(what), " %u", &value) == 1)
			found = value;
	}
	fclose(log);
	return found;
}

void vt_sleep_ms(int ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000l };

	nanosleep(&time, NULL);
}

bool vt_poll_ms(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	uint64_t end_ms = vt_now_ms() + (uint64_t)ms;
	int got;

	do {
		got = ibv_poll_cq(cq, 1, wc);
		assert_true(got >= 0);
	} while (!got && vt_now_ms() < end_ms);
	return got;
}

struct ibv_wc vt_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!vt_poll_ms(cq, &wc, VT_WAIT_MS))
		fail_msg("no completion of %llu", (unsigned long long)wr_id);
	if (wc.status != status)
		fail_msg("%llu: %s instead of %s", (unsigned long long)wc.wr_id,
			 ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	assert_int_equal(wc.wr_id, wr_id);
	return wc;
}

void vt_expect_none(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (vt_poll_ms(cq, &wc, VT_QUIET_MS))
		fail_msg("a completion of %llu: %s", (unsigned long long)wc.wr_id,
			 ibv_wc_status_str(wc.status));
}

bool vt_readable(int fd, int ms)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	return poll(&poller, 1, ms) == 1 && (poller.revents & POLLIN);
}

void vt_take_event(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
	struct ibv_cq *from = NULL;
	void *context;

	assert_true(vt_readable(channel->fd, VT_WAIT_MS));
	assert_int_equal(ibv_get_cq_event(channel, &from, &context), 0);
	assert_ptr_equal(from, cq);
	assert_ptr_equal(context, cq->cq_context);
	ibv_ack_cq_events(from, 1);
}

struct ibv_async_event vt_event(enum ibv_event_type type)
{
	struct ibv_async_event event;

	if (!vt_readable(vt.ctx->async_fd, VT_WAIT_MS))
		fail_msg("no event: %s", ibv_event_type_str(type));
	assert_int_equal(ibv_get_async_event(vt.ctx, &event), 0);
	if (event.event_type != type)
		fail_msg("event: %s instead of %s", ibv_event_type_str(event.event_type),
			 ibv_event_type_str(type));
	return event;
}

void vt_event_acked(enum ibv_event_type type)
{
	struct ibv_async_event event = vt_event(type);

	ibv_ack_async_event(&event);
}

void vt_no_event(void)
{
	struct ibv_async_event event;

	if (!vt_readable(vt.ctx->async_fd, VT_QUIET_MS))
		return;
	assert_int_equal(ibv_get_async_event(vt.ctx, &event), 0);
	fail_msg("an event: %s", ibv_event_type_str(event.event_type));
}

/* --- octets --- */

/*
 * What a NIC does to memory is ordered by completions, of which a thread may have heard from
 * another process. ThreadSanitizer, to whom that says nothing, would look at each octet for long.
 */
#define UNWATCHED __attribute__((no_sanitize("thread")))

UNWATCHED void vt_fill(uint8_t *buf, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		buf[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + seed);
}

UNWATCHED bool vt_is_filled(const uint8_t *buf, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (buf[i] != (uint8_t)(i * 31 + (i >> 8) * 7 + seed))
			return false;
	return true;
}

UNWATCHED bool vt_is_octet(const uint8_t *buf, size_t bytes, uint8_t octet)
{
	for (size_t i = 0; i < bytes; i++)
		if (buf[i] != octet)
			return false;
	return true;
}

/* Behind the end of a file there is nothing, and nothing else can come to lie there meanwhile. */
void *vt_hole(void *pages, size_t bytes)
{
	int fd = memfd_create("hole", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_ptr_equal(mmap(pages, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
			 pages);
	close(fd);
	return pages;
}

void vt_hole_mend(void *pages, size_t bytes)
{
	assert_ptr_equal(mmap(pages, bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), pages);
}
