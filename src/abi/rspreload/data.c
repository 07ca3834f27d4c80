/* SPDX-License-Identifier: BSD-2-Clause */

/* The calls by which data goes. */

#include <errno.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "abi/rspreload/calls.h"
#include "abi/rspreload/use.h"
#include "base/check.h"

enum { CHUNK_BYTES = 1 << 16 };

/* What the C library's headers declare only for programs that are compiled with its checks. */
ssize_t __read_chk(int fd, void *buf, size_t count, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t count, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t count, size_t room, int flags,
		       struct sockaddr *addr, socklen_t *bytes);

/* The rsocket's if the number is a front's, the C library's otherwise. */
#define SPLIT(fd, events, flags, of_rs, of_kernel)                                                \
	int rs = vb_use(fd, events, flags);                                                       \
	if (rs == VB_USE_FAILED)                                                                  \
		return -1;                                                                        \
	return rs >= 0 ? of_rs : vb_real()->of_kernel

#define SPLIT_IN(fd, flags, of_rs, of_kernel)                                                     \
	SPLIT(fd, POLLIN, flags, got(fd, VB_USE_CALL(fd, SO_RCVTIMEO, of_rs)), of_kernel)

/* octets: all that is to be sent. */
#define SPLIT_OUT(fd, flags, octets, of_rs, of_kernel)                                            \
	SPLIT(fd, POLLOUT, flags, ({                                                              \
		      ssize_t n = VB_USE_CALL(fd, SO_SNDTIMEO, of_rs);                            \
		      n < 0 ? unsent(fd, flags, octets) : n;                                      \
	      }), of_kernel)

static int option_of(int fd, int name)
{
	int value = 0;
	socklen_t bytes = sizeof(value);

	getsockopt(fd, SOL_SOCKET, name, &value, &bytes);
	return value;
}

/* There is no connection: the errno that broke it, if it has not been said yet, or 0. */
static int end_tell(int fd)
{
	int error = option_of(fd, SO_ERROR);

	if (error)
		vb_front_of(fd)->is_end_told = true;
	return error;
}

/* As with TCP: what broke the connection is said once, and then that nothing comes. */
static ssize_t got(int fd, ssize_t n)
{
	if (n >= 0 || errno != ECONNRESET)
		return n;
	errno = end_tell(fd);
	return errno ? -1 : 0;
}

/* As well; and the first that goes to a peer that has closed is lost without a word. */
static ssize_t unsent(int fd, int flags, size_t octets)
{
	int error = errno;

	if (error == ECONNRESET) {
		error = end_tell(fd);
		if (!error && !vb_front_of(fd)->is_end_told) {
			vb_front_of(fd)->is_end_told = true;
			return (ssize_t)octets;
		}
		error = error ? error : EPIPE;
	}
	if (error == EPIPE && !(flags & MSG_NOSIGNAL) && option_of(fd, SO_TYPE) == SOCK_STREAM)
		raise(SIGPIPE);
	errno = error;
	return -1;
}

static size_t octets_of(const struct iovec *iov, size_t count)
{
	size_t octets = 0;

	for (size_t i = 0; i < count; i++)
		octets += iov[i].iov_len;
	return octets;
}

ssize_t read(int fd, void *buf, size_t count)
{
	SPLIT_IN(fd, 0, read(rs, buf, count), read(fd, buf, count));
}

ssize_t readv(int fd, const struct iovec *iov, int count)
{
	SPLIT_IN(fd, 0, readv(rs, iov, count), readv(fd, iov, count));
}

ssize_t recv(int fd, void *buf, size_t count, int flags)
{
	SPLIT_IN(fd, flags, recv(rs, buf, count, flags), recv(fd, buf, count, flags));
}

ssize_t recvfrom(int fd, void *buf, size_t count, int flags, struct sockaddr *addr,
		 socklen_t *bytes)
{
	SPLIT_IN(fd, flags, recvfrom(rs, buf, count, flags, addr, bytes),
		 recvfrom(fd, buf, count, flags, addr, bytes));
}

ssize_t write(int fd, const void *buf, size_t count)
{
	SPLIT_OUT(fd, 0, count, write(rs, buf, count), write(fd, buf, count));
}

ssize_t writev(int fd, const struct iovec *iov, int count)
{
	SPLIT_OUT(fd, 0, octets_of(iov, (size_t)count), writev(rs, iov, count),
		  writev(fd, iov, count));
}

ssize_t send(int fd, const void *buf, size_t count, int flags)
{
	SPLIT_OUT(fd, flags, count, send(rs, buf, count, flags),
		  send(fd, buf, count, flags));
}

ssize_t sendto(int fd, const void *buf, size_t count, int flags, const struct sockaddr *addr,
	       socklen_t bytes)
{
	SPLIT_OUT(fd, flags, count, sendto(rs, buf, count, flags, addr, bytes),
		  sendto(fd, buf, count, flags, addr, bytes));
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	SPLIT_OUT(fd, flags, octets_of(msg->msg_iov, msg->msg_iovlen), sendmsg(rs, msg, flags),
		  sendmsg(fd, msg, flags));
}

/* Nothing stands beside an rsocket's data. */
static ssize_t data_receive(int fd, int rs, struct msghdr *msg, int flags)
{
	struct msghdr plain = *msg;
	ssize_t n;

	plain.msg_control = NULL;
	plain.msg_controllen = 0;
	n = got(fd, VB_USE_CALL(fd, SO_RCVTIMEO, recvmsg(rs, &plain, flags)));
	if (n >= 0) {
		msg->msg_namelen = plain.msg_namelen;
		msg->msg_flags = plain.msg_flags;
		msg->msg_controllen = 0;
	}
	return n;
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	int rs = vb_use(fd, POLLIN, flags);

	if (rs == VB_USE_FAILED)
		return -1;
	return rs >= 0 ? data_receive(fd, rs, msg, flags) : vb_real()->recvmsg(fd, msg, flags);
}

/* --- many at once --- */

int recvmmsg(int fd, struct mmsghdr *msgs, unsigned count, int flags, struct timespec *timeout)
{
	unsigned done = 0;

	if (vb_front_rs(fd) < 0)
		return vb_real()->recvmmsg(fd, msgs, count, flags, timeout);
	for (; done < count; done++) {
		bool waits = !done || !(flags & MSG_WAITFORONE);
		int how = (flags & ~MSG_WAITFORONE) | (waits ? 0 : MSG_DONTWAIT);
		ssize_t n = recvmsg(fd, &msgs[done].msg_hdr, how);

		if (n < 0)
			break;
		msgs[done].msg_len = (unsigned)n;
	}
	return done || !count ? (int)done : -1;
}

int sendmmsg(int fd, struct mmsghdr *msgs, unsigned count, int flags)
{
	unsigned done = 0;

	if (vb_front_rs(fd) < 0)
		return vb_real()->sendmmsg(fd, msgs, count, flags);
	for (; done < count; done++) {
		ssize_t n = sendmsg(fd, &msgs[done].msg_hdr, flags);

		if (n < 0)
			break;
		msgs[done].msg_len = (unsigned)n;
	}
	return done || !count ? (int)done : -1;
}

/* --- files --- */

/* Sends what lies at that offset. Whatever was not sent was not read. */
static ssize_t file_send(int rs, int in, off_t *at, size_t count)
{
	char chunk[CHUNK_BYTES];
	size_t done = 0;

	while (done < count) {
		size_t step = count - done < sizeof(chunk) ? count - done : sizeof(chunk);
		ssize_t got = pread(in, chunk, step, *at), gone;

		if (got <= 0)
			return done ? (ssize_t)done : got;
		gone = VB_RS_CALL(write(rs, chunk, (size_t)got));
		if (gone < 0)
			return done ? (ssize_t)done : -1;
		*at += gone;
		done += (size_t)gone;
		if (gone < got)
			break;
	}
	return (ssize_t)done;
}

ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
	int rs = vb_use(out, POLLOUT, 0);
	off_t at;
	ssize_t done;

	if (rs == VB_USE_FAILED)
		return -1;
	if (rs < 0)
		return vb_real()->sendfile(out, in, offset, count);
	at = offset ? *offset : lseek(in, 0, SEEK_CUR);
	if (at < 0)
		return -1;
	done = file_send(rs, in, &at, count);
	if (offset)
		*offset = at;
	else if (done > 0)
		lseek(in, at, SEEK_SET);
	return done < 0 ? unsent(out, 0, 0) : done;
}

ssize_t sendfile64(int out, int in, off64_t *offset, size_t count)
{
	return sendfile(out, in, offset, count);
}

/* --- what a compiler makes of the calls above --- */

/* As the C library does it where the buffer is too small. */
static void room_check(size_t count, size_t room)
{
	vb_check(count <= room);
}

ssize_t __read_chk(int fd, void *buf, size_t count, size_t room)
{
	room_check(count, room);
	return read(fd, buf, count);
}

ssize_t __recv_chk(int fd, void *buf, size_t count, size_t room, int flags)
{
	room_check(count, room);
	return recv(fd, buf, count, flags);
}

ssize_t __recvfrom_chk(int fd, void *buf, size_t count, size_t room, int flags,
		       struct sockaddr *addr, socklen_t *bytes)
{
	room_check(count, room);
	return recvfrom(fd, buf, count, flags, addr, bytes);
}
