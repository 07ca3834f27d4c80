/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * One-sided operations between processes of one host. Through shared memory they need no help of
 * the target's, so it may be stopped meanwhile. Whatever else holds of them holds by UDP as well.
 */

static const char *const mapped[] = { "VERBATIM_SHARED_MR=1", NULL };

/* No timeout: what a stopped process does not do takes for ever. */
static const struct vt_options patient = { .for_ever = true, .rnr_retry = 7 };

/* Where memory is mapped the peer need not lift a finger. */
static bool by_memory(void)
{
	return !vt_by_udp();
}

#define idle_test(f) vt_case(f, vt_setup, vp_teardown, by_memory)

/* Its progress thread looks for work for a moment, and then sleeps. */
static void stop_asleep(struct vp_pair *p)
{
	vp_exchange(p, 100, 1);
	vt_sleep_ms(50);
	vp_stop(p->peer);
}

static void post(struct vp_pair *p, enum ibv_wr_opcode op, uint64_t wr_id, size_t to,
		 uint32_t bytes)
{
	struct vt_wr w;

	vt_wr(&w, op, &p->a, &p->b, bytes);
	w.wr.wr_id = wr_id;
	w.wr.wr.rdma.remote_addr += to;
	vt_post(&p->a, &w);
}

static uint64_t add(struct vp_pair *p, size_t to, uint64_t what)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, &p->a, &p->b, 8);
	w.wr.wr.atomic.remote_addr += to;
	w.wr.wr.atomic.compare_add = what;
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	return *(uint64_t *)p->a.buf;
}

/* --- without help --- */

/* Does the kernel let us reach that process's memory? Where we map it, we need not be let. */
static bool is_permitted(const struct vp *peer, const char *const *env)
{
	char path[64];
	int fd;

	if (env)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)peer->pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void write_to_stopped(const char *const *env)
{
	static const uint32_t lengths[] = { 1, 2, 8, 63, 64, 65, 100, 4096, 16385, 50000 };
	struct vp *peer = vp_start(env);
	struct vp_pair p;

	vp_pair_open(&p, peer, &patient);
	for (unsigned i = 0; is_permitted(peer, env) && i < VT_COUNT(lengths); i++) {
		stop_asleep(&p);
		vt_fill(p.a.buf, lengths[i], i);
		post(&p, IBV_WR_RDMA_WRITE, i, 4097, lengths[i]);
		vt_expect(p.a.cq, i, IBV_WC_SUCCESS);
		vp_go_on(peer);
		assert_true(vp_is_filled(&p, 4097, lengths[i], i));
	}
	vp_exchange(&p, 1000, 9);
	vp_pair_close(&p);
	vp_end(peer);
}

idle_test(a_stopped_process_is_written_to)
{
	write_to_stopped(NULL);
}

idle_test(a_stopped_process_whose_memory_is_mapped_is_written_to)
{
	write_to_stopped(mapped);
}

static void read_from_stopped(const char *const *env)
{
	static const uint32_t lengths[] = { 1, 64, 4096, 16385, 50000 };
	struct vp *peer = vp_start(env);
	struct vp_pair p;

	vp_pair_open(&p, peer, &patient);
	for (unsigned i = 0; is_permitted(peer, env) && i < VT_COUNT(lengths); i++) {
		vp_exchange(&p, 100, 1);
		vp_fill(&p, lengths[i], i);
		vt_sleep_ms(50);
		vp_stop(peer);
		post(&p, IBV_WR_RDMA_READ, i, 0, lengths[i]);
		vt_expect(p.a.cq, i, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(p.a.buf, lengths[i], i));
		vp_go_on(peer);
	}
	vp_pair_close(&p);
	vp_end(peer);
}

idle_test(a_stopped_process_is_read_from)
{
	read_from_stopped(NULL);
	read_from_stopped(mapped);
}

idle_test(atomics_need_nobody_where_memory_is_mapped)
{
	struct vp *peer = vp_start(mapped);
	struct vp_pair p;
	uint64_t first;

	vp_pair_open(&p, peer, &patient);
	stop_asleep(&p);
	/* Pages at the ends of the buffer may not be whole. */
	first = add(&p, 8192, 5);
	for (uint64_t i = 1; i < 100; i++)
		assert_int_equal(add(&p, 8192, 5), first + 5 * i);
	vp_go_on(peer);
	vp_pair_close(&p);
	vp_end(peer);
}

/* --- order --- */

vp_pair_test(what_is_written_between_two_messages_is_there_with_the_second, NULL, NULL)
{
	for (unsigned i = 0; i < 40; i++) {
		bool waits = i & 1;

		vp_recv(p, 1, 0, 64);
		vp_recv(p, 2, 0, 64);
		vt_fill(p->a.buf, 3000, i);
		vt_send(&p->a, &p->b, 11);
		if (waits)
			vt_expect(p->a.cq, 11, IBV_WC_SUCCESS);
		post(p, IBV_WR_RDMA_WRITE, 12, 1024, 3000);
		if (waits)
			vt_expect(p->a.cq, 12, IBV_WC_SUCCESS);
		vt_send(&p->a, &p->b, 13);
		for (uint64_t id = waits ? 13 : 11; id <= 13; id++)
			vt_expect(p->a.cq, id, IBV_WC_SUCCESS);
		vp_expect(p, 1, IBV_WC_SUCCESS);
		vp_expect(p, 2, IBV_WC_SUCCESS);
		assert_true(vp_is_filled(p, 1024, 3000, i));
	}
}

/* Whichever way each of them goes. */
vp_pair_test(the_last_of_several_writes_stays, NULL, NULL)
{
	enum { WRITES = 6, BYTES = 600 };

	for (unsigned round = 0; round < 40; round++) {
		for (unsigned i = 0; i < WRITES; i++) {
			struct vt_wr w;

			vt_fill(p->a.buf + i * BYTES, BYTES, round + i);
			vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, BYTES);
			w.sge.addr += i * BYTES;
			w.wr.wr_id = i;
			vt_post(&p->a, &w);
			if ((round + i) % 3 == 0)
				vt_sleep_ms(0);
		}
		for (unsigned i = 0; i < WRITES; i++)
			vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		assert_true(vp_is_filled(p, 0, BYTES, round + WRITES - 1));
	}
}

/* --- what is not allowed --- */

struct wrong {
	enum ibv_wr_opcode op;
	struct vp_order order; /* what the target does first */
	uint32_t key_xor;
	int64_t to;
	enum ibv_wc_status status;
};

static void expect_refusal(const struct wrong *wrong, const char *const *env)
{
	struct vp *peer = vp_start(env);
	struct vp_order order = wrong->order;
	struct vp_pair p;
	struct vt_wr w;

	vp_pair_open(&p, peer, NULL);
	vp_exchange(&p, 100, 1);
	post(&p, IBV_WR_RDMA_WRITE, 7, 0, 8);
	vt_expect(p.a.cq, 7, IBV_WC_SUCCESS);
	vp_fill(&p, 65536, 5);
	order.end = p.end;
	if (order.what != VP_FILL)
		assert_int_equal(vp_do(peer, &order).rc, 0);
	vt_wr(&w, wrong->op, &p.a, &p.b, 8);
	w.wr.wr.rdma.remote_addr += (uint64_t)wrong->to;
	w.wr.wr.rdma.rkey ^= wrong->key_xor;
	vt_done(&p.a, &w, wrong->status);
	assert_true(vp_is_filled(&p, 0, 65536, 5));
	vp_pair_close(&p);
	vp_kill(peer);
}

/* The same completion as by the wire: this runs over both links. */
vp_test(the_owner_s_verdict_counts)
{
	const unsigned read_only = IBV_ACCESS_REMOTE_READ, write_only = IBV_ACCESS_REMOTE_WRITE;
	const struct wrong wrongs[] = {
		{ IBV_WR_RDMA_WRITE, { .what = VP_FILL }, 1, 0, IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_RDMA_READ, { .what = VP_FILL }, 0x100, 0, IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_RDMA_WRITE, { .what = VP_FILL }, 0, 65529, IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_RDMA_READ, { .what = VP_FILL }, 0, -1, IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_RDMA_WRITE, { .what = VP_RIGHTS, .flags = read_only }, 0, 0,
		  IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_RDMA_READ, { .what = VP_RIGHTS, .flags = write_only }, 0, 0,
		  IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_RDMA_WRITE, { .what = VP_DEREG }, 0, 0, IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_RDMA_READ, { .what = VP_DEREG }, 0, 0, IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_RDMA_WRITE, { .what = VP_MODIFY, .count = IBV_QPS_ERR }, 0, 0,
		  IBV_WC_RETRY_EXC_ERR },
		{ IBV_WR_RDMA_READ, { .what = VP_MODIFY, .count = IBV_QPS_RESET }, 0, 0,
		  IBV_WC_RETRY_EXC_ERR },
	};

	for (unsigned i = 0; i < VT_COUNT(wrongs); i++) {
		expect_refusal(&wrongs[i], NULL);
		expect_refusal(&wrongs[i], mapped);
	}
}

/* --- revoking --- */

static struct {
	struct vp_pair p;
	_Atomic bool end;
	_Atomic unsigned done;
	enum ibv_wc_status status;
} hammer;

static void *write_until_refused(void *arg)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };

	while (!atomic_load(&hammer.end) && wc.status == IBV_WC_SUCCESS) {
		struct ibv_send_wr *bad;
		struct vt_wr w;

		vt_wr(&w, IBV_WR_RDMA_WRITE, &hammer.p.a, &hammer.p.b, 4000);
		if (ibv_post_send(hammer.p.a.qp, &w.wr, &bad))
			break;
		while (ibv_poll_cq(hammer.p.a.cq, 1, &wc) == 0 && !atomic_load(&hammer.end))
			;
		atomic_fetch_add(&hammer.done, 1);
	}
	hammer.status = wc.status;
	return NULL;
}

static void nothing_is_written_after_deregistration(const char *const *env)
{
	struct vp_order dereg = { .what = VP_DEREG };
	struct vp *peer = vp_start(env);
	pthread_t thread;

	vp_pair_open(&hammer.p, peer, NULL);
	vt_fill(hammer.p.a.buf, 4000, 1);
	atomic_store(&hammer.end, false);
	atomic_store(&hammer.done, 0);
	assert_int_equal(pthread_create(&thread, NULL, write_until_refused, NULL), 0);
	while (atomic_load(&hammer.done) < 20)
		vt_sleep_ms(0);
	dereg.end = hammer.p.end;
	assert_int_equal(vp_do(peer, &dereg).rc, 0);
	vp_fill(&hammer.p, 4000, 2);
	for (unsigned i = 0; i < 10; i++)
		assert_true(vp_is_filled(&hammer.p, 0, 4000, 2));
	pthread_join(thread, NULL);
	assert_int_equal(hammer.status, IBV_WC_REM_ACCESS_ERR);
	vp_pair_close(&hammer.p);
	vp_end(peer);
}

vp_test(deregistration_ends_all_access)
{
	for (unsigned i = 0; i < 5; i++) {
		nothing_is_written_after_deregistration(NULL);
		nothing_is_written_after_deregistration(mapped);
	}
}

/* --- atomics from both sides --- */

enum { ADDS = 3000, COUNTER_AT = 8192 };

static void *add_from_here(void *arg)
{
	for (unsigned i = 0; i < ADDS; i++)
		add(arg, COUNTER_AT, 1);
	return NULL;
}

/* Two peers, connected with each other; what `from` needs in order to add to `to`'s memory. */
static struct vp_order peers_connect(struct vp *from, struct vp *to)
{
	struct vp_order open = { .what = VP_OPEN, .opt = vt_options(NULL) };
	struct vp_order connect = { .what = VP_CONNECT };
	struct vp_answer f = vp_do(from, &open), t = vp_do(to, &open);

	connect.end = f.end;
	connect.qpn = t.qpn;
	assert_int_equal(vp_do(from, &connect).rc, 0);
	connect.end = t.end;
	connect.qpn = f.qpn;
	assert_int_equal(vp_do(to, &connect).rc, 0);
	return (struct vp_order){ .what = VP_ADD, .end = f.end, .addr = t.addr, .rkey = t.rkey };
}

/* A third process's counter, to which we add, and another peer does. */
vp_test(atomics_of_two_processes_add_up)
{
	const char *const *const envs[] = { NULL, mapped };

	for (unsigned i = 0; i < 2; i++) {
		struct vp *owner = vp_start(envs[i]), *other = vp_start(NULL);
		struct vp_order order = peers_connect(other, owner);
		pthread_t thread;
		struct vp_pair p;
		uint64_t first;

		vp_pair_open(&p, owner, NULL);
		order.addr = (uintptr_t)p.b.buf + COUNTER_AT;
		order.rkey = p.b.mr->rkey;
		order.count = ADDS;
		first = add(&p, COUNTER_AT, 0);
		assert_int_equal(pthread_create(&thread, NULL, add_from_here, &p), 0);
		assert_int_equal(vp_do(other, &order).rc, 0);
		pthread_join(thread, NULL);
		assert_int_equal(add(&p, COUNTER_AT, 0), first + 2 * ADDS);
		vp_pair_close(&p);
		vp_end(other);
		vp_end(owner);
	}
}

/* --- where it is not permitted --- */

/* In this thread: with the capability, nothing is hidden. */
static void ptrace_capability(bool on)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	if (on)
		data[0].effective |= data[0].permitted & (1u << CAP_SYS_PTRACE);
	else
		data[0].effective &= ~(1u << CAP_SYS_PTRACE);
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

vp_peer_test(a_process_that_hides_its_memory_helps_instead)
{
	struct vp_order hide = { .what = VP_HIDE };
	struct vp_pair p;

	ptrace_capability(false);
	assert_int_equal(vp_do(peer, &hide).rc, 0);
	vp_pair_open(&p, peer, NULL);
	vp_exchange(&p, 100, 1);
	for (unsigned i = 0; i < 20; i++) {
		vt_fill(p.a.buf, 5000, i);
		post(&p, IBV_WR_RDMA_WRITE, i, 0, 5000);
		vt_expect(p.a.cq, i, IBV_WC_SUCCESS);
		memset(p.a.buf, 0, 5000);
		post(&p, IBV_WR_RDMA_READ, i, 0, 5000);
		vt_expect(p.a.cq, i, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(p.a.buf, 5000, i));
	}
	ptrace_capability(true);
	vp_pair_close(&p);
}

/* The first so many are about targets that do not help, and by UDP all have to. */
