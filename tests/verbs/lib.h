/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VERBS_LIB_H
#define VB_TESTS_VERBS_LIB_H

/*
 * What the tests of the verbs share. They are programs like anybody's: they know
 * <infiniband/verbs.h> and link libibverbs, nothing else of this project. Each runs in a network
 * namespace of its own, with nothing but `lo` in it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum {
	VT_WAIT_MS = 20000, /* for what must come: long, because a sanitizer's run is slow */
	VT_QUIET_MS = 60,   /* for what must not come */
	VT_QKEY = 0x11223344,
	VT_RD_ATOMIC = 4,
};

/* What an end's buffer is: from the heap, whole pages, a memfd's, of the device, all there is. */
enum vt_memory { VT_HEAP, VT_PAGES, VT_MEMFD, VT_DM, VT_SPACE };

/* What a pair is made with; a field that is zero has the value named here. */
struct vt_options {
	enum ibv_qp_type type; /* IBV_QPT_RC */
	bool srq;	       /* its receive queue is a shared one; of a pair: b's */
	int sq_sig_all;
	uint32_t send_wr, recv_wr; /* 64 */
	uint32_t sge;		   /* 4 */
	uint32_t inline_bytes;	   /* 64 */
	int cqe;		   /* 256 */
	size_t bytes;		   /* of each buffer: 64 KiB */
	enum vt_memory memory;	   /* VT_HEAP */
	int mr_access;		   /* everything */
	unsigned qp_access;	   /* everything */
	enum ibv_mtu mtu;	   /* 1024 */
	uint8_t timeout;	   /* 14: 67 ms */
	bool for_ever;		   /* it has no timeout */
	uint8_t retry_cnt, rnr_retry; /* 7 */
	bool no_retry, no_rnr_retry;
	uint8_t rnr_timer;	   /* 1: 10 us */
	uint8_t rd_atomic;	   /* VT_RD_ATOMIC */
	bool no_rd_atomic;
	uint32_t later_psn;	   /* how much later than usual PSNs begin: another connection's */
	struct ibv_comp_channel *channel;
	struct ibv_cq_init_attr_ex *cq_attr; /* what CQs are made by, in place of the above */
	enum ibv_qp_state state;   /* how far to bring it: RTS */
	bool in_reset;		   /* not even to INIT */
	/* What makes them in place of ibv_create_qp() and ibv_create_cq(), if not NULL. */
	struct ibv_qp *(*make_qp)(struct ibv_qp_init_attr *attr);
	struct ibv_cq *(*make_cq)(int cqe);
};

/* One of the two ends of a connection, or a QP alone. */
struct vt_end {
	struct vt_options opt; /* complete */
	struct ibv_qp *qp;
	struct ibv_cq *cq; /* of both queues */
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_dm *dm;
	uint8_t *buf; /* NULL: device memory, from its address 0 on */
	size_t bytes;
	bool is_mapped;
	struct ibv_ah *ah; /* UD: to the other end, which is here as well */
};

struct vt_pair {
	struct vt_options opt;
	struct vt_end a, b;
};

/* What every test starts with. */
struct vt {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	int gid_index;
	union ibv_gid gid; /* of 127.0.0.1; with VT_IPV6 in the environment, of ::1 */
};

extern struct vt vt;

/* The types that everybody has: RC, UC, UD. */
enum { VT_TYPES = 3 };
extern const enum ibv_qp_type vt_types[VT_TYPES];

#define VT_ALL_ACCESS                                                                             \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |              \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* The place in the device's table of a GID, which must be there. */
int vt_gid_index(const uint8_t raw[16]);

#define VT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- tests --- */

/* A test enlists itself; they run in the order in which the file has them. */
struct vt_case {
	struct CMUnitTest test;
	bool (*runs_here)(void); /* where it says no there is no such test; NULL: everywhere */
	int line;
	struct vt_case *next;
};
void vt_enlist(struct vt_case *entry);

#define vt_entry(f, kind, setup, teardown, runs_here)                                             \
	__attribute__((constructor)) static void f##_enlist_##kind(void)                          \
	{                                                                                         \
		static struct vt_case entry = {                                                   \
			cmocka_unit_test_setup_teardown(f, setup, teardown), runs_here, __LINE__, \
		};                                                                                \
                                                                                                  \
		vt_enlist(&entry);                                                                \
	}
#define vt_case(f, setup, teardown, runs_here)                                                    \
	static void f(void **state);                                                              \
	vt_entry(f, once, setup, teardown, runs_here) static void f(void **state)

/* The device and a PD before the test; after it, all must be given back. */
#define vt_test(f) vt_case(f, vt_setup, vt_teardown, NULL)
int vt_setup(void **state);
int vt_teardown(void **state);

/*
 * A test of something that is made before and given back after it: `open` makes it in a variable of
 * this type and name, `close` gives it back, and the test has a pointer of that name.
 */
#define vt_with(test, f, type, name, open, close)                                                 \
	static void f##_with(type *name);                                                         \
	test(f)                                                                                   \
	{                                                                                         \
		type name;                                                                        \
                                                                                                  \
		open;                                                                             \
		f##_with(&name);                                                                  \
		close;                                                                            \
	}                                                                                         \
	static void f##_with(type *name)

/* The same of what is had by its address. */
#define vt_with_made(test, f, type, name, make, unmake)                                           \
	static void f##_with(type *name);                                                         \
	test(f)                                                                                   \
	{                                                                                         \
		type *name = make;                                                                \
                                                                                                  \
		f##_with(name);                                                                   \
		unmake;                                                                           \
	}                                                                                         \
	static void f##_with(type *name)

/* As vt_with(), again and again, for each i from one number up to another: open may use i, too. */
#define vt_with_each(test, f, i, from, end, type, name, open, close)                              \
	static void f##_with(type *name, unsigned i);                                             \
	test(f)                                                                                   \
	{                                                                                         \
		for (unsigned i = from; i < end; i++) {                                           \
			type name;                                                                \
                                                                                                  \
			open;                                                                     \
			f##_with(&name, i);                                                       \
			close;                                                                    \
		}                                                                                 \
	}                                                                                         \
	static void f##_with(type *name, unsigned i)

/*
 * cmocka catches faults around each test, in place of whoever did before. A test in which the
 * library is to meet a fault of its own gives it its handler back.
 */
void vt_faults_to_library(void);

/*
 * Runs the tests in a namespace of their own; where there can be none, skips each. VT_TEST in
 * the environment names those that are to run, with * and ? as wildcards.
 */
int vt_main(void);

/* What the device can do. */
struct ibv_device_attr vt_device(void);
struct ibv_device_attr_ex vt_device_ex(void);

/* Does all go by the wire? Else there is shared memory, and in it an Ethernet segment. */
bool vt_by_udp(void);

/* --- objects --- */

/* What this call makes, which must be something; or that it makes nothing, with this errno. */
#define vt_made(call)                                                                             \
	({                                                                                        \
		__typeof__(call) made_ = (call);                                                  \
                                                                                                  \
		assert_non_null(made_);                                                           \
		made_;                                                                            \
	})
#define vt_refused(error, call)                                                                   \
	do {                                                                                      \
		errno = 0;                                                                        \
		assert_null(call);                                                                \
		assert_int_equal(errno, error);                                                   \
	} while (0)

struct ibv_cq *vt_cq(int cqe, struct ibv_comp_channel *channel);
struct ibv_cq_ex *vt_cq_ex(struct ibv_cq_init_attr_ex *attr);
#define vt_cq_test(f, cqe)                                                                        \
	vt_with_made(vt_test, f, struct ibv_cq, cq, vt_cq(cqe, NULL),                             \
		     assert_int_equal(ibv_destroy_cq(cq), 0))
struct ibv_mr *vt_mr(struct ibv_pd *pd, void *addr, size_t bytes, int access);

/* Two QPs of this process, connected to each other. */
void vt_pair_open(struct vt_pair *pair, const struct vt_options *opt);
void vt_pair_close(struct vt_pair *pair);

/* A test of such a pair, *p; what follows the name are options. */
#define vt_pair_test(f, ...)                                                                      \
	vt_with(vt_test, f, struct vt_pair, p,                                                    \
		vt_pair_open(&p, &(struct vt_options){ __VA_ARGS__ }), vt_pair_close(&p))

/* Again and again, for each i from one number up to another; options may use it. */
#define vt_pairs_test(f, i, from, to, ...)                                                        \
	vt_with_each(vt_test, f, i, from, to, struct vt_pair, p,                                  \
		     vt_pair_open(&p, &(struct vt_options){ __VA_ARGS__ }), vt_pair_close(&p))

/* Both from RESET to RTS; from whatever they are in to RESET, and then so. */
void vt_pair_climb(struct vt_pair *pair);
void vt_pair_reconnect(struct vt_pair *pair);

/* The same, b in a context and PD of its own, which are made: `other`. */
void vt_pair_open_across(struct vt_pair *pair, struct vt *other, const struct vt_options *opt);

/* A QP alone, in RESET, and what belongs to it. */
void vt_end_open(struct vt_end *end, const struct vt_options *opt);
void vt_end_open_unshared(struct vt_end *end, const struct vt_options *opt); /* no SRQ anyway */
void vt_end_close(struct vt_end *end);

/* A test of that, *end; and one for each i. */
#define vt_end_test(f, ...)                                                                       \
	vt_with(vt_test, f, struct vt_end, end,                                                   \
		vt_end_open(&end, &(struct vt_options){ __VA_ARGS__ }), vt_end_close(&end))
#define vt_ends_test(f, i, from, to, ...)                                                         \
	vt_with_each(vt_test, f, i, from, to, struct vt_end, end,                                 \
		     vt_end_open(&end, &(struct vt_options){ __VA_ARGS__ }), vt_end_close(&end))

/* The attributes for a state, complete for the QP's type, and their mask. */
int vt_attr(struct ibv_qp_attr *attr, const struct vt_options *opt, enum ibv_qp_state state,
	    uint32_t peer_qpn);

/* Through all states on the way from RESET to state (INIT, RTR, RTS). */
void vt_climb(struct ibv_qp *qp, const struct vt_options *opt, enum ibv_qp_state state,
	      uint32_t peer_qpn);
int vt_modify(struct ibv_qp *qp, enum ibv_qp_state state);

/* A QP that is its own peer, from whatever it is in to any of the seven states. */
void vt_bring_to(struct vt_end *end, enum ibv_qp_state state);
enum ibv_qp_state vt_state(struct ibv_qp *qp);
struct ibv_qp_attr vt_query(struct ibv_qp *qp, int mask);
/* Of a GID, from ours; and of ourselves. */
struct ibv_ah_attr vt_address(const union ibv_gid *gid);
struct ibv_ah *vt_ah(void);

/* Defaults filled in. */
struct vt_options vt_options(const struct vt_options *opt);

/* --- work requests --- */

/* One signaled request with one SGE. */
struct vt_wr {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};

/*
 * From the start of from's buffer to the start of to's (for READ and atomics the other way).
 * For a datagram, to's QP is addressed.
 */
void vt_wr(struct vt_wr *w, enum ibv_wr_opcode op, const struct vt_end *from,
	   const struct vt_end *to, uint32_t bytes);

/* ibv_post_send of one request, which must succeed. */
void vt_post(struct vt_end *end, struct vt_wr *w);
int vt_try(struct vt_end *end, struct vt_wr *w);

/* The same, and the completion, which must have this status. */
struct ibv_wc vt_done(struct vt_end *end, struct vt_wr *w, enum ibv_wc_status status);

/* A request as vt_wr() makes it: posted; and done. */
void vt_start(enum ibv_wr_opcode op, struct vt_end *from, const struct vt_end *to, uint32_t bytes);
struct ibv_wc vt_do(enum ibv_wr_opcode op, struct vt_end *from, const struct vt_end *to,
		    uint32_t bytes, enum ibv_wc_status status);

/* A SEND of 8 octets with this wr_id. */
void vt_send(struct vt_end *from, const struct vt_end *to, uint64_t wr_id);

/* A receive request for the whole buffer, or for a part of it. To the SRQ, if there is one. */
void vt_recv(struct vt_end *end, uint64_t wr_id);
int vt_recv_at(struct vt_end *end, uint64_t wr_id, size_t offset, uint32_t bytes);

/* --- completions and events --- */

/* The next completion, which must come and have this wr_id and status. */
struct ibv_wc vt_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);

/* None comes. */
void vt_expect_none(struct ibv_cq *cq);
bool vt_poll_ms(struct ibv_cq *cq, struct ibv_wc *wc, int ms);

/* A SEND of 8 octets that is received, and nothing else completes before. */
void vt_exchange(struct vt_end *from, struct vt_end *to);

/* The next asynchronous event, which must come and be this one. The caller acknowledges. */
struct ibv_async_event vt_event(enum ibv_event_type type);
void vt_event_acked(enum ibv_event_type type);
void vt_no_event(void);

/* The next event of a channel, which must come and be of this CQ; it is acknowledged. */
void vt_take_event(struct ibv_comp_channel *channel, struct ibv_cq *cq);

/* A LOCAL_INV of this key, which completes so. */
void vt_invalidate(struct vt_end *end, uint32_t key, enum ibv_wc_status status);

bool vt_readable(int fd, int ms);
void vt_sleep_ms(int ms);
uint64_t vt_now_ms(void);
uint64_t vt_wall_ns(void); /* CLOCK_REALTIME */

/* A child of ours, which must exit with 0. */
void vt_child_ended(pid_t child);

/* A counter in the log of the last process that has closed the device (VERBATIM_LOG). */
unsigned vt_counted(const char *log_name, const char *what);

/* Octets that tell where they come from. */
void vt_fill(uint8_t *buf, size_t bytes, unsigned seed);
bool vt_is_filled(const uint8_t *buf, size_t bytes, unsigned seed);
bool vt_is_octet(const uint8_t *buf, size_t bytes, uint8_t octet);

/* Whole pages vanish: whoever touches them meets a fault. And they come back, as zeros. */
void *vt_hole(void *pages, size_t bytes);
void vt_hole_mend(void *pages, size_t bytes);

#endif
