/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/links/port.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture/pcap.h"
#include "hub/words.h"
#include "link/around/fault.h"
#include "link/udp.h"
#include "nic/core/limits.h"
#include "run/capture/capture.h"
#include "run/faults/link.h"
#include "run/process/trace.h"
#include "wire/icrc.h"

enum { FILE_NAME_BYTES_MAX = 4096 };

static int wrap_pcap(const struct vb_env *env, struct vb_link **link, unsigned port)
{
	char name[FILE_NAME_BYTES_MAX];
	int rc;

	if (!env->pcap)
		return 0;
	rc = vb_capture_name(name, sizeof(name), env->pcap, port);
	if (rc == 0)
		rc = vb_link_pcap_create(link, *link, name, vb_icrc_check);
	if (rc != 0)
		vb_failed_words(rc, "VERBATIM_PCAP: %s: %s", env->pcap, strerror(rc));
	return rc;
}

static int wrap_fault(const struct vb_env *env, struct vb_link **link)
{
	int rc;

	if (!env->fault)
		return 0;
	rc = vb_link_fault_create(link, *link, env->fault);
	if (rc != 0)
		vb_failed_words(rc, "VERBATIM_FAULT: %s: %s", env->fault, strerror(rc));
	return rc;
}

static int wrap_net(const struct vb_port_maker *by, struct vb_link **link)
{
	int rc;

	if (!by->env->net)
		return 0;
	rc = vb_link_net_create(link, *link, by->env->net, by->marked, by->arg);
	if (rc != 0)
		vb_failed_words(rc, "VERBATIM_NET: %s: %s", by->env->net, strerror(rc));
	return rc;
}

/* The capture sits next to the wire: it shows what the others let pass. */
static int wrap(const struct vb_port_maker *by, struct vb_port *port, unsigned index)
{
	int rc = wrap_pcap(by->env, &port->link, index);

	if (rc == 0 && by->faults)
		rc = vb_faults_link(by->faults, &port->link, port->slot);
	if (rc == 0)
		rc = wrap_net(by, &port->link);
	if (rc == 0)
		rc = wrap_fault(by->env, &port->link);
	return rc;
}

int vb_port_open(struct vb_port *port, const struct vb_port_maker *by,
		 const struct vb_hub_slot *slot, unsigned index)
{
	struct vb_port made = { .slot = slot->slot, .fd = slot->fd, .rx_fd_seen = -1 };
	int rc = vb_link_udp_create(&made.link, slot->fd, vb_icrc_check);

	if (rc != 0) {
		close(made.fd);
		return rc;
	}
	rc = wrap(by, &made, index);
	if (rc != 0) {
		made.link->ops->destroy(made.link);
		return rc;
	}
	if (by->env->trace)
		vb_trace_link(made.link);
	*port = made;
	return 0;
}

uint32_t vb_port_rx_buffer(const struct vb_port *port)
{
	int bytes = 0;
	socklen_t size = sizeof(bytes);

	if (getsockopt(port->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) || bytes <= 0)
		return VB_RX_BUFFER_BYTES;
	return (uint32_t)bytes;
}
