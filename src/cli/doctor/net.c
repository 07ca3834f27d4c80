/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor/net.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "hub/ask/query.h"
#include "hub/holders.h"
#include "hub/words.h"
#include "link/udp_socket.h"

/* One packet's payload, where its length is all the same. */
enum { SEGMENT_BYTES = 1024 };

static void hub_look(struct vb_doctor_hub *hub)
{
	struct vb_hub_summary summary;
	struct vb_hub_row *rows;

	hub->error = vb_hub_status_read(&summary, &rows);
	if (hub->error) {
		vb_failure_words(hub->words, sizeof(hub->words), hub->error);
		return;
	}
	hub->pid = (int)summary.pid;
	hub->clients = summary.clients;
	free(rows);
}

static void port_look(struct vb_doctor_port *port, bool own)
{
	struct vb_holders holders;

	port->own = own;
	port->error = vb_udp_port_probe();
	if (port->error != EADDRINUSE || own) {
		vb_failure_words(port->words, sizeof(port->words), port->error);
		return;
	}
	vb_holders_look(&holders);
	vb_holders_words(&holders, port->words, sizeof(port->words));
}

/* 0 or the errno of setting it. */
static int option_try(int fd, int name, int value)
{
	return setsockopt(fd, IPPROTO_UDP, name, &value, sizeof(value)) ? errno : 0;
}

static void udp_look(struct vb_doctor_udp *udp)
{
	int fd = VB_FD_NONE, granted = 0;
	socklen_t bytes = sizeof(granted);

	udp->socket_error = vb_udp_socket_create(&fd);
	if (udp->socket_error)
		return;
	udp->steer_error = vb_udp_socket_steer(fd);
	udp->gro_error = option_try(fd, UDP_GRO, 1);
	udp->segment_error = option_try(fd, UDP_SEGMENT, SEGMENT_BYTES);
	/* The kernel counts its own overhead, for which it doubles what was asked for. */
	if (!getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &bytes))
		udp->buffer_bytes = (uint64_t)granted / 2;
	close(fd);
}

static void raw_look(struct vb_doctor_raw *raw)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	raw->packet_error = fd < 0 ? errno : 0;
	vb_fd_close(&fd);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	raw->tun_error = fd < 0 ? errno : 0;
	vb_fd_close(&fd);
}

void vb_doctor_look_net(struct vb_doctor_facts *facts)
{
	hub_look(&facts->hub);
	port_look(&facts->port, !facts->hub.error);
	udp_look(&facts->udp);
	raw_look(&facts->raw);
}
