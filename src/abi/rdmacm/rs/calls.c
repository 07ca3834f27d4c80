/* SPDX-License-Identifier: BSD-2-Clause */

/* The calls of rsocket.h that a socket's type answers. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <string.h>

#include "abi/rdmacm/addr.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/rs/dgram.h"
#include "abi/rdmacm/repoll/repoll.h"
#include "abi/rdmacm/rs/socket.h"
#include "abi/rdmacm/rs/stream.h"

/* NULL with errno. */
static struct vb_rs *get(int fd)
{
	struct vb_rs *rs = vb_rs_of(fd);

	if (!rs)
		errno = EBADF;
	return rs;
}

/* Success leaves errno as it was: programs ask it at an end of file, too. */
static int done(int rc, int errno_before)
{
	errno = errno_before;
	return vb_cma_result(rc);
}

/* --- sockets --- */

static int make(int domain, int type, int protocol, struct vb_rs **rs)
{
	if (domain != AF_INET && domain != AF_INET6)
		return EAFNOSUPPORT;
	if (type == SOCK_STREAM && (!protocol || protocol == IPPROTO_TCP))
		return vb_rs_stream_make(domain, rs);
	if (type == SOCK_DGRAM && (!protocol || protocol == IPPROTO_UDP))
		return vb_rs_dgram_make(domain, rs);
	return EPROTONOSUPPORT;
}

/* Its number, or -1 with errno. */
static int enter(struct vb_rs *rs)
{
	int rc = vb_rs_insert(rs);

	if (!rc)
		return rs->fd;
	rs->type->close(rs);
	return vb_cma_result(rc);
}

int rsocket(int domain, int type, int protocol)
{
	int errno_before = errno, rc;
	struct vb_rs *rs;

	vb_rs_configure();
	rc = make(domain, type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), protocol, &rs);
	if (done(rc, errno_before))
		return -1;
	rs->is_ipv6 = domain == AF_INET6;
	rs->flags = type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
	return enter(rs);
}

int rbind(int fd, const struct sockaddr *addr, socklen_t bytes)
{
	struct vb_rs *rs = get(fd);

	return rs ? vb_cma_result(rs->type->bind(rs, addr, bytes)) : -1;
}

int rlisten(int fd, int backlog)
{
	struct vb_rs *rs = get(fd);

	if (!rs)
		return -1;
	return vb_cma_result(rs->type->listen ? rs->type->listen(rs, backlog) : EOPNOTSUPP);
}

int rconnect(int fd, const struct sockaddr *addr, socklen_t bytes)
{
	int errno_before = errno;
	struct vb_rs *rs = get(fd);

	return rs ? done(rs->type->connect(rs, addr, bytes), errno_before) : -1;
}

/* As much of it as there is room for. */
static void name_copy(const struct sockaddr_storage *name, void *addr, socklen_t *bytes)
{
	socklen_t whole = vb_cma_sockaddr_bytes((const struct sockaddr *)name);

	memcpy(addr, name, *bytes < whole ? *bytes : whole);
	*bytes = whole;
}

static int name_tell(struct vb_rs *rs, bool of_peer, struct sockaddr *addr, socklen_t *bytes)
{
	struct sockaddr_storage name;
	int rc = rs->type->name(rs, of_peer, &name);

	if (rc)
		return rc;
	vb_cma_sockaddr_map(&name, rs->is_ipv6);
	name_copy(&name, addr, bytes);
	return 0;
}

int raccept(int fd, struct sockaddr *addr, socklen_t *bytes)
{
	int errno_before = errno, rc;
	struct vb_rs *rs = get(fd), *child;

	if (!rs)
		return -1;
	rc = rs->type->accept ? rs->type->accept(rs, &child) : EOPNOTSUPP;
	if (done(rc, errno_before))
		return -1;
	if (addr && bytes)
		name_tell(child, true, addr, bytes);
	return enter(child);
}

int rgetpeername(int fd, struct sockaddr *addr, socklen_t *bytes)
{
	struct vb_rs *rs = get(fd);

	return rs ? vb_cma_result(name_tell(rs, true, addr, bytes)) : -1;
}

int rgetsockname(int fd, struct sockaddr *addr, socklen_t *bytes)
{
	struct vb_rs *rs = get(fd);

	return rs ? vb_cma_result(name_tell(rs, false, addr, bytes)) : -1;
}

int rfcntl(int fd, int command, ...)
{
	struct vb_rs *rs = get(fd);
	va_list list;

	if (!rs)
		return -1;
	if (command == F_GETFL)
		return rs->flags;
	if (command != F_SETFL)
		return vb_cma_result(EOPNOTSUPP);
	va_start(list, command);
	rs->flags = va_arg(list, int);
	va_end(list);
	return 0;
}

int rshutdown(int fd, int how)
{
	int errno_before = errno;
	struct vb_rs *rs = get(fd);

	return rs ? done(rs->type->shutdown(rs, how), errno_before) : -1;
}

int rclose(int fd)
{
	struct vb_rs *rs = vb_rs_of(fd);
	int errno_before = errno;

	if (!rs && vb_rs_set_close(fd))
		return 0;
	if (!rs)
		return vb_cma_result(EBADF);
	vb_rs_sets_forget(rs);
	vb_rs_remove(rs);
	rs->type->close(rs);
	return done(0, errno_before);
}

/* --- data --- */

/* What rsockets do not have: nobody is to believe that they did it. */
#define FLAGS_REFUSED (MSG_OOB | MSG_ERRQUEUE | MSG_TRUNC)

static int data_of(struct vb_rs_data *data, const struct iovec *iov, size_t count, int flags)
{
	*data = (struct vb_rs_data){.iov = iov};
	if (flags & FLAGS_REFUSED)
		return EOPNOTSUPP;
	if (count > IOV_MAX)
		return EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len > (size_t)PTRDIFF_MAX - data->left)
			return EINVAL;
		data->left += iov[i].iov_len;
	}
	return 0;
}

/* An error counts if nothing was done before it. */
static ssize_t result(size_t whole, const struct vb_rs_data *data, int rc, int errno_before)
{
	if (done(rc && data->left == whole ? rc : 0, errno_before))
		return -1;
	return (ssize_t)(whole - data->left);
}

static ssize_t receive(int fd, const struct iovec *iov, size_t count, int flags,
		       struct sockaddr_storage *from)
{
	struct vb_rs *rs = get(fd);
	struct vb_rs_data data;
	int errno_before = errno, rc;
	size_t whole;

	if (!rs)
		return -1;
	rc = data_of(&data, iov, count, flags);
	if (rc)
		return vb_cma_result(rc);
	whole = data.left;
	rc = rs->type->receive(rs, &data, flags, from);
	if (!rc && from)
		vb_cma_sockaddr_map(from, rs->is_ipv6);
	return result(whole, &data, rc, errno_before);
}

static ssize_t send_to(int fd, const struct iovec *iov, size_t count, int flags,
		       const struct sockaddr *to, socklen_t bytes)
{
	struct vb_rs *rs = get(fd);
	struct vb_rs_data data;
	int errno_before = errno, rc;
	size_t whole;

	if (!rs)
		return -1;
	rc = data_of(&data, iov, count, flags);
	if (rc)
		return vb_cma_result(rc);
	whole = data.left;
	rc = rs->type->send(rs, &data, flags, to, bytes);
	return result(whole, &data, rc, errno_before);
}

ssize_t rrecv(int fd, void *buf, size_t len, int flags)
{
	const struct iovec iov = {buf, len};

	return receive(fd, &iov, 1, flags, NULL);
}

ssize_t rrecvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
		  socklen_t *bytes)
{
	const struct iovec iov = {buf, len};
	struct sockaddr_storage name;
	ssize_t n = receive(fd, &iov, 1, flags, &name);

	if (n >= 0 && from && bytes)
		name_copy(&name, from, bytes);
	return n;
}

ssize_t rrecvmsg(int fd, struct msghdr *msg, int flags)
{
	struct sockaddr_storage name;
	ssize_t n;

	if (msg->msg_control && msg->msg_controllen)
		return vb_cma_result(EOPNOTSUPP);
	n = receive(fd, msg->msg_iov, msg->msg_iovlen, flags, &name);
	if (n < 0)
		return n;
	msg->msg_flags = 0;
	if (msg->msg_name)
		name_copy(&name, msg->msg_name, &msg->msg_namelen);
	return n;
}

ssize_t rread(int fd, void *buf, size_t count)
{
	return rrecv(fd, buf, count, 0);
}

ssize_t rreadv(int fd, const struct iovec *iov, int count)
{
	return receive(fd, iov, (size_t)count, 0, NULL);
}

ssize_t rsend(int fd, const void *buf, size_t len, int flags)
{
	return rsendto(fd, buf, len, flags, NULL, 0);
}

ssize_t rsendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		socklen_t bytes)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return send_to(fd, &iov, 1, flags, to, bytes);
}

ssize_t rsendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (msg->msg_control && msg->msg_controllen)
		return vb_cma_result(EOPNOTSUPP);
	return send_to(fd, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name, msg->msg_namelen);
}

ssize_t rwrite(int fd, const void *buf, size_t count)
{
	return rsend(fd, buf, count, 0);
}

ssize_t rwritev(int fd, const struct iovec *iov, int count)
{
	return send_to(fd, iov, (size_t)count, 0, NULL, 0);
}
