/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_MESSAGE_H
#define VB_LINK_UDP_MESSAGE_H

/* How datagrams leave by any socket. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Appends a control message. msg_control has room for it, and is aligned as a struct cmsghdr. */
static inline void vb_udp_control_put(struct msghdr *msg, int level, int type, const void *data,
				      size_t bytes)
{
	struct cmsghdr *cmsg = (void *)((uint8_t *)msg->msg_control + msg->msg_controllen);

	/* Clears the padding, too: valgrind checks all that the kernel reads. */
	memset(cmsg, 0, CMSG_SPACE(bytes));
	cmsg->cmsg_level = level;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(cmsg), data, bytes);
	msg->msg_controllen += CMSG_SPACE(bytes);
}

#define VB_UDP_SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)

/* System call without libc, where it is a cancellation point (udp_rx.c). */
static inline ssize_t vb_udp_message_send(int fd, const struct msghdr *msg)
{
	return syscall(SYS_sendmsg, fd, msg, VB_UDP_SEND_FLAGS);
}

/*
 * Is the error about an earlier datagram? A connected socket reports that instead of sending. The
 * transport notices the loss by itself; sending again works.
 */
static inline bool vb_udp_tells_of_earlier(int error)
{
	return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENOPROTOOPT ||
	       error == EPROTO;
}

#endif
