/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "skip.h"

/*
 * A process that writes into another's memory by itself is stopped at that very moment: it has
 * looked whether it may, and is about to enter the kernel, which will write whenever it goes on.
 * What the owner of the memory is told meanwhile must be so for good.
 */

enum { AT = 4096, BYTES = 32, ORDERS_FD = 0 };

static struct vp *peer;
static struct vp_pair p;

/* True: it stops at such a call. False: it sends its answer, or ends, before. */
static bool runs_into(pid_t pid, uint64_t call)
{
	struct __ptrace_syscall_info info;
	int status;

	while (ptrace(PTRACE_SYSCALL, pid, 0, 0) == 0 && waitpid(pid, &status, __WALL) == pid &&
	       WIFSTOPPED(status)) {
		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0)
			return false;
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == call)
			return true;
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_sendto &&
		    info.entry.args[0] == ORDERS_FD)
			return false;
	}
	return false;
}

/* A peer that is about to write into our region, and stands still; NULL: or why there is none. */
static const char *stop_inside(void)
{
	struct vp_order write = { .what = VP_SEND, .op = IBV_WR_RDMA_WRITE, .bytes = BYTES,
				  .wr_id = 7 };
	int status;

	peer = vp_start(NULL);
	vp_pair_open(&p, peer, NULL);
	vp_exchange(&p, 100, 1);
	vt_fill(p.a.buf, p.a.bytes, 3);
	vp_fill(&p, BYTES, 9);
	write.end = p.end;
	write.addr = (uintptr_t)p.a.buf + AT;
	write.rkey = p.a.mr->rkey;
	if (ptrace(PTRACE_SEIZE, peer->pid, 0, PTRACE_O_TRACESYSGOOD) ||
	    ptrace(PTRACE_INTERRUPT, peer->pid, 0, 0) ||
	    waitpid(peer->pid, &status, __WALL) != peer->pid)
		return "ptrace(2) is not allowed";
	vp_tell(peer, &write);
	if (runs_into(peer->pid, SYS_pwrite64))
		return NULL;
	ptrace(PTRACE_DETACH, peer->pid, 0, 0);
	return "a peer may not reach into this process (Yama?)";
}

#define STOP_INSIDE()                                                                             \
	do {                                                                                      \
		const char *why = stop_inside();                                                  \
                                                                                                  \
		if (why) {                                                                        \
			vp_kill(peer);                                                            \
			vp_pair_close(&p);                                                        \
			SKIP("%s", why);                                                          \
		}                                                                                 \
	} while (0)

static void go_on(void)
{
	assert_int_equal(ptrace(PTRACE_DETACH, peer->pid, 0, 0), 0);
	assert_int_equal(vp_hear(peer).rc, 0);
	vp_expect(&p, 7, IBV_WC_SUCCESS);
}

static void end(void)
{
	vp_pair_close(&p);
	vp_end(peer);
}

static bool nothing_came(unsigned seed)
{
	return vt_is_filled(p.a.buf, p.a.bytes, seed);
}

/* Whatever it says: after a 0 nothing is written any more, and after an error all is as it was. */
vp_test(what_dereg_says_is_final)
{
	int err;

	STOP_INSIDE();
	err = ibv_dereg_mr(p.a.mr);
	assert_true(nothing_came(3));
	if (!err) {
		p.a.mr = NULL;
		vt_fill(p.a.buf, p.a.bytes, 4);
		go_on();
		assert_true(nothing_came(4));
		end();
		return;
	}
	assert_int_equal(err, EBUSY);
	assert_int_equal(errno, EBUSY);
	go_on();
	/* It was registered, so the write that it was at has come, and so do others. */
	assert_true(vt_is_filled(p.a.buf + AT, BYTES, 9));
	vp_exchange(&p, 100, 5);
	assert_int_equal(ibv_dereg_mr(p.a.mr), 0);
	p.a.mr = NULL;
	end();
}

vp_test(what_destroying_a_qp_says_is_final)
{
	STOP_INSIDE();
	assert_int_equal(ibv_destroy_qp(p.a.qp), EBUSY);
	assert_int_equal(vt_state(p.a.qp), IBV_QPS_RTS);
	assert_int_equal(vt_modify(p.a.qp, IBV_QPS_ERR), EBUSY);
	assert_int_equal(vt_state(p.a.qp), IBV_QPS_RTS);
	go_on();
	vp_exchange(&p, 100, 5);
	assert_int_equal(vt_modify(p.a.qp, IBV_QPS_ERR), 0);
	end();
}

/* What it is not at goes as ever. */
vp_test(other_regions_go_at_once)
{
	static uint8_t other[4096];
	struct ibv_mr *mr;

	STOP_INSIDE();
	mr = vt_made(ibv_reg_mr(vt.pd, other, sizeof(other), VT_ALL_ACCESS));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	go_on();
	end();
}

/* The dead write nothing, and nobody waits for them. */
vp_test(one_that_is_killed_there_holds_nothing_up)
{
	STOP_INSIDE();
	assert_int_equal(kill(peer->pid, SIGKILL), 0);
	assert_int_equal(ibv_dereg_mr(p.a.mr), 0);
	p.a.mr = NULL;
	assert_true(nothing_came(3));
	vp_kill(peer);
	vp_pair_close(&p);
}
