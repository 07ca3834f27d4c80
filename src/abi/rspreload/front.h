/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RSPRELOAD_FRONT_H
#define VB_ABI_RSPRELOAD_FRONT_H

/*
 * What the application holds for an rsocket: the front, a socket of the kernel's of the same kind,
 * whose number is the application's. Whatever call is not ours finds a socket there; it knows the
 * options and flags that the application has set, and is what is left where the peer speaks
 * TCP alone. Numbers that are duplicates of each other have one front. Any thread.
 */

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>

/* What becomes of a front without an rsocket. */
enum vb_front_state {
	VB_FRONT_PLAIN,	    /* nothing: it is a socket of the kernel's like others */
	VB_FRONT_NEW,	    /* with fork support: it has been neither connected nor listened at */
	VB_FRONT_LISTENING, /* ... whom it accepts is to migrate */
	VB_FRONT_PASSIVE,   /* ... it migrates when it is used */
	VB_FRONT_ACTIVE,    /* ... it migrates when its peer says so */
};

struct vb_front {
	_Atomic int rs; /* the rsocket's number; -1: none */
	_Atomic enum vb_front_state state;
	atomic_uint numbers;
	bool is_end_told; /* a call has failed, as there is no connection any more */
	/* Of one that is to migrate: where it is a member (-1: nowhere), and by which number. */
	int epfd, asked_fd;
	struct epoll_event asked;
	struct vb_front *next_free;
};

/* NULL: the number is not a front's. */
struct vb_front *vb_front_of(int fd);

/* The number of its rsocket, or -1. */
static inline int vb_front_rs(int fd)
{
	struct vb_front *front = vb_front_of(fd);

	return front ? atomic_load_explicit(&front->rs, memory_order_acquire) : -1;
}

/* The application's number gets a front. 0 or an errno. */
int vb_front_make(int fd, int rs, enum vb_front_state state);

/* The number to has become a duplicate of one of the front's; what it was before is over. */
void vb_front_share(struct vb_front *front, int to);

/*
 * The number is about to be closed, or has become another file's: the last one ends the rsocket.
 * Sets (rdmacm/repoll/repoll.h) end with their number as well. True: the number itself was
 * closed, too.
 */
bool vb_front_drop(int fd);

/* One number less; the last one ends the rsocket. */
void vb_front_release(struct vb_front *front);

/* False: the process is the child of a vfork(), and all this its parent's. */
bool vb_front_is_owner(void);

/* All numbers from first to last. */
void vb_front_drop_range(unsigned first, unsigned last);

/* From now on the kernel's socket counts; the rsocket is closed. */
void vb_front_fall(struct vb_front *front);

/* An epoll descriptor that holds rsockets. */
void vb_front_set_mark(int epfd);
bool vb_front_is_set(int epfd);

/* Somebody looks at the number itself. If it is an epoll descriptor, it may become a set yet. */
void vb_front_set_show(int fd);

#endif
