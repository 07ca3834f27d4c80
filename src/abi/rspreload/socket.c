/* SPDX-License-Identifier: BSD-2-Clause */

/* Sockets made, bound, connected; their names and options. */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "abi/rspreload/calls.h"
#include "abi/rspreload/config.h"
#include "abi/rspreload/front.h"
#include "abi/rspreload/migrate.h"
#include "abi/rspreload/use.h"

enum { TYPE_FLAGS = SOCK_NONBLOCK | SOCK_CLOEXEC };

/* What librdmacm does in our calls is not to come back here. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

/* The number has a front now, or is closed. -1 with errno. */
static int front_it(int fd, int rs, enum vb_front_state state)
{
	int rc = vb_front_make(fd, rs, state);

	if (!rc)
		return fd;
	if (rs >= 0)
		VB_RS_CALL(close(rs));
	vb_real()->close(fd);
	errno = rc;
	return -1;
}

/* --- sockets made --- */

/* Without an rsocket the kernel's has to do. */
static int rsocket_behind(int fd, int domain, int type, int protocol, const void *caller)
{
	int rs = -1, saved = errno;

	vb_handlers_hold();
	is_inside = true;
	if (vb_rsockets_load() && !vb_rsockets_is_at(caller))
		rs = VB_RS_CALL(socket(domain, type, protocol));
	is_inside = false;
	vb_handlers_release();
	errno = saved;
	if (rs < 0)
		return fd;
	vb_config_apply(rs);
	return front_it(fd, rs, VB_FRONT_PLAIN);
}

int socket(int domain, int type, int protocol)
{
	int plain = type & ~TYPE_FLAGS, fd;

	fd = vb_real()->socket(domain, type, protocol);
	if (fd < 0 || is_inside || !vb_config_wants(domain, plain, protocol))
		return fd;
	if (vb_config_fork_safe() && plain == SOCK_STREAM)
		return front_it(fd, -1, VB_FRONT_NEW);
	return rsocket_behind(fd, domain, type & ~SOCK_CLOEXEC, protocol,
			      __builtin_return_address(0));
}

/* --- accepting --- */

static int domain_of(int fd)
{
	int domain = AF_INET;
	socklen_t bytes = sizeof(domain);

	vb_real()->getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes);
	return domain;
}

static int rsocket_accept(int fd, int rs, struct sockaddr *addr, socklen_t *bytes, int flags)
{
	int child = VB_USE_CALL(fd, SO_RCVTIMEO, accept(rs, addr, bytes)), front;

	if (child < 0)
		return -1;
	front = vb_real()->socket(domain_of(fd), SOCK_STREAM | flags, 0);
	if (front < 0) {
		int saved = errno;

		VB_RS_CALL(close(child));
		errno = saved;
		return -1;
	}
	if (flags & SOCK_NONBLOCK)
		VB_RS_CALL(fcntl(child, F_SETFL, O_NONBLOCK));
	return front_it(front, child, VB_FRONT_PLAIN);
}

int accept4(int fd, struct sockaddr *addr, socklen_t *bytes, int flags)
{
	struct vb_front *front = vb_front_of(fd);
	int child;

	if (front && (flags & ~TYPE_FLAGS)) {
		errno = EINVAL;
		return -1;
	}
	if (front && front->rs >= 0)
		return rsocket_accept(fd, front->rs, addr, bytes, flags);
	child = vb_real()->accept4(fd, addr, bytes, flags);
	if (child >= 0 && front && front->state == VB_FRONT_LISTENING)
		return front_it(child, -1, VB_FRONT_PASSIVE);
	return child;
}

int accept(int fd, struct sockaddr *addr, socklen_t *bytes)
{
	return accept4(fd, addr, bytes, 0);
}

/* --- bound, listening, connected --- */

int bind(int fd, const struct sockaddr *addr, socklen_t bytes)
{
	int rs = vb_front_rs(fd), rc;

	if (rs < 0)
		return vb_real()->bind(fd, addr, bytes);
	rc = VB_RS_CALL(bind(rs, addr, bytes));
	/* That there is no such device is what the connection manager says. */
	if (rc && errno == ENODEV)
		errno = EADDRNOTAVAIL;
	return rc;
}

int listen(int fd, int backlog)
{
	struct vb_front *front = vb_front_of(fd);
	int rc;

	if (front && front->rs >= 0)
		return VB_RS_CALL(listen(front->rs, backlog));
	rc = vb_real()->listen(fd, backlog);
	if (!rc && front && front->state == VB_FRONT_NEW)
		front->state = VB_FRONT_LISTENING;
	return rc;
}

/* Nobody listens there with rsockets, or no way leads there: TCP may get through. */
static bool may_fall(int error)
{
	return error == ECONNREFUSED || error == ETIMEDOUT || error == ENETUNREACH ||
	       error == EHOSTUNREACH || error == ENODEV || error == EADDRNOTAVAIL ||
	       error == EPROTO || error == EAFNOSUPPORT || error == ENOMEM;
}

/* To a kernel's socket that is bound as the rsocket was. */
static void fall(int fd, struct vb_front *front)
{
	struct sockaddr_storage addr;
	socklen_t bytes = sizeof(addr);
	bool is_bound = !VB_RS_CALL(getsockname(front->rs, (struct sockaddr *)&addr, &bytes)) &&
			((struct sockaddr_in *)&addr)->sin_port;

	vb_front_fall(front);
	if (is_bound)
		vb_real()->bind(fd, (struct sockaddr *)&addr, bytes);
}

/* With fork support: the peer will invite it. */
static int connect_by_tcp(int fd, struct vb_front *front, const struct sockaddr *addr,
			  socklen_t bytes)
{
	int rc = vb_real()->connect(fd, addr, bytes), saved = errno;

	if (!rc || saved == EINPROGRESS || saved == EINTR)
		vb_migrate_invited(fd, front);
	errno = saved;
	return rc;
}

int connect(int fd, const struct sockaddr *addr, socklen_t bytes)
{
	struct vb_front *front = vb_front_of(fd);
	int rc;

	if (front && front->rs >= 0) {
		rc = VB_USE_CALL(fd, SO_SNDTIMEO, connect(front->rs, addr, bytes));
		if (!rc || !may_fall(errno))
			return rc;
		fall(fd, front);
	}
	if (front && front->state == VB_FRONT_NEW)
		return connect_by_tcp(fd, front, addr, bytes);
	return vb_real()->connect(fd, addr, bytes);
}

int shutdown(int fd, int how)
{
	int rs = vb_front_rs(fd);

	return rs >= 0 ? VB_RS_CALL(shutdown(rs, how)) : vb_real()->shutdown(fd, how);
}

/* --- names and options --- */

int getpeername(int fd, struct sockaddr *addr, socklen_t *bytes)
{
	int rs = vb_front_rs(fd);

	return rs >= 0 ? VB_RS_CALL(getpeername(rs, addr, bytes))
		       : vb_real()->getpeername(fd, addr, bytes);
}

int getsockname(int fd, struct sockaddr *addr, socklen_t *bytes)
{
	int rs = vb_front_rs(fd);

	return rs >= 0 ? VB_RS_CALL(getsockname(rs, addr, bytes))
		       : vb_real()->getsockname(fd, addr, bytes);
}

/* What rsockets know nothing of the front knows, if only what was set. */
int getsockopt(int fd, int level, int name, void *value, socklen_t *bytes)
{
	int rs = vb_front_rs(fd);
	int rc = rs >= 0 ? VB_RS_CALL(getsockopt(rs, level, name, value, bytes)) : -1;

	if (rs >= 0 && (!rc || errno != ENOPROTOOPT))
		return rc;
	return vb_real()->getsockopt(fd, level, name, value, bytes);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	int rs = vb_front_rs(fd), rc, front_rc;

	if (rs < 0)
		return vb_real()->setsockopt(fd, level, name, value, bytes);
	rc = VB_RS_CALL(setsockopt(rs, level, name, value, bytes));
	if (rc && errno != ENOPROTOOPT)
		return rc;
	front_rc = vb_real()->setsockopt(fd, level, name, value, bytes);
	return rc ? front_rc : 0;
}
