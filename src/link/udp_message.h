/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_MESSAGE_H
#define VB_LINK_UDP_MESSAGE_H

/* How datagrams leave by a socket, whichever it is. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Append one control message; msg_control has room for it, and lies as a struct cmsghdr has to. */
static inline void vb_udp_control_put(struct msghdr *msg, int level, int type, const void *data,
				      size_t bytes)
{
	struct cmsghdr *cmsg = (void *)((uint8_t *)msg->msg_control + msg->msg_controllen);

	/* The padding as well: valgrind looks at all that the kernel gets. */
	memset(cmsg, 0, CMSG_SPACE(bytes));
	cmsg->cmsg_level = level;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(cmsg), data, bytes);
	msg->msg_controllen += CMSG_SPACE(bytes);
}

#define VB_UDP_SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)

/* Straight to the kernel: in the C library it is a cancellation point (udp_rx.c). */
static inline ssize_t vb_udp_message_send(int fd, const struct msghdr *msg)
{
	return syscall(SYS_sendmsg, fd, msg, VB_UDP_SEND_FLAGS);
}

/*
 * A connected socket tells, instead of sending, that an earlier datagram found nobody: of that the
 * transport learns by itself, and the next datagram leaves.
 */
static inline bool vb_udp_tells_of_earlier(int error)
{
	return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENOPROTOOPT ||
	       error == EPROTO;
}

#endif
