/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RSPRELOAD_CALLS_H
#define VB_ABI_RSPRELOAD_CALLS_H

/*
 * The C library's functions, which ours stand in front of, and librdmacm's, which is loaded when
 * the program first makes a socket: so one that makes none has nothing of it. Any thread.
 */

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "abi/rspreload/handlers.h"

#define VB_BOTH(type, name, parameters) type(*name) parameters;
#define VB_REAL VB_BOTH
#define VB_RS(type, name, parameters)
struct vb_real {
#include "abi/rspreload/calls.def"
};
#undef VB_REAL
#undef VB_RS

#define VB_REAL(type, name, parameters)
#define VB_RS VB_BOTH
struct vb_rsockets {
#include "abi/rspreload/calls.def"
};
#undef VB_BOTH
#undef VB_REAL
#undef VB_RS

/* The C library's. What an old one lacks is NULL. */
const struct vb_real *vb_real(void);

/* librdmacm's, loaded if need be; NULL: it cannot be. */
const struct vb_rsockets *vb_rsockets_load(void);

/* The same, where there is an rsocket already. */
extern const struct vb_rsockets *vb_rsockets;

/* Calls one of them. Handlers of signals wait until it returns. */
#define VB_RS_CALL(call)                                                                          \
	({                                                                                        \
		vb_handlers_hold();                                                               \
		__typeof__(vb_rsockets->call) vb_rc = vb_rsockets->call;                          \
		vb_handlers_release();                                                            \
		vb_rc;                                                                            \
	})

/* The code at that address is librdmacm's, or of what that stands on. */
bool vb_rsockets_is_at(const void *code);

#endif
