/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/ports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/path.h"

struct vb_port_bound {
	struct vb_port_bound *next;
	struct vb_hub_bind bind;
};

static struct vb_port_bound **bucket_of(struct vb_ports *ports, uint32_t space, uint32_t port)
{
	return &ports->bucket[(port ^ space * 31) % VB_ARRAY_LEN(ports->bucket)];
}

static bool is_ipv4(const struct vb_hub_bind *bind)
{
	return vb_gid_is_ipv4(bind->gid);
}

static bool is_all(const struct vb_hub_bind *bind)
{
	static const uint8_t all_ipv4[VB_GID_BYTES] = { [10] = 0xff, 0xff }, all[VB_GID_BYTES];

	return !memcmp(bind->gid, all, sizeof(all)) ||
	       !memcmp(bind->gid, all_ipv4, sizeof(all_ipv4));
}

/* May a have the port that b has? 0, or an errno of rdma_bind_addr(3). */
static int conflict(const struct vb_hub_bind *a, const struct vb_hub_bind *b)
{
	unsigned either = a->flags | b->flags;

	if ((a->flags & b->flags & VB_HUB_BIND_REUSE) && !(a->flags & VB_HUB_BIND_LISTENS))
		return 0;
	if ((either & VB_HUB_BIND_AFONLY) && is_ipv4(a) != is_ipv4(b))
		return 0;
	if (is_all(a) || is_all(b))
		return EADDRNOTAVAIL;
	return memcmp(a->gid, b->gid, VB_HUB_GID_BYTES) || a->scope != b->scope ? 0 : EADDRINUSE;
}

static bool is_same(const struct vb_hub_bind *a, const struct vb_hub_bind *b)
{
	return a->slot == b->slot && a->id == b->id;
}

/* Does b stand in a's way? 0, or that errno. */
static int in_way(const struct vb_hub_bind *a, const struct vb_hub_bind *b)
{
	return a->port == b->port && a->space == b->space && !is_same(a, b) ? conflict(a, b) : 0;
}

const struct vb_hub_bind *vb_ports_in_way(struct vb_ports *ports, const struct vb_hub_bind *bind)
{
	const struct vb_port_bound *other = *bucket_of(ports, bind->space, bind->port);

	while (other && !in_way(bind, &other->bind))
		other = other->next;
	return other ? &other->bind : NULL;
}

static int check(struct vb_ports *ports, const struct vb_hub_bind *bind)
{
	const struct vb_hub_bind *other = vb_ports_in_way(ports, bind);

	return other ? in_way(bind, other) : 0;
}

static bool is_taken(struct vb_ports *ports, uint32_t space, uint32_t port)
{
	const struct vb_port_bound *bound = *bucket_of(ports, space, port);

	while (bound && (bound->bind.port != port || bound->bind.space != space))
		bound = bound->next;
	return bound;
}

/* A port that nobody has at any address; 0: there is none. */
static uint32_t any(struct vb_ports *ports, uint32_t space)
{
	const uint32_t range = VB_PORTS_LAST - VB_PORTS_FIRST + 1;

	for (uint32_t i = 0; i < range; i++) {
		uint32_t port = VB_PORTS_FIRST + ports->next++ % range;

		if (!is_taken(ports, space, port))
			return port;
	}
	return 0;
}

/* Where the pointer to it stands, or NULL. */
static struct vb_port_bound **find(struct vb_ports *ports, const struct vb_hub_unbind *what)
{
	struct vb_port_bound **at = bucket_of(ports, what->space, what->port);

	for (; *at; at = &(*at)->next) {
		const struct vb_hub_bind *bind = &(*at)->bind;

		if (bind->slot == what->slot && bind->id == what->id &&
		    bind->space == what->space && bind->port == what->port)
			return at;
	}
	return NULL;
}

int vb_ports_bind(struct vb_ports *ports, const struct vb_hub_bind *bind, bool known,
		  uint16_t *port)
{
	struct vb_hub_bind wanted = *bind;
	struct vb_port_bound *bound, **at;
	int rc;

	if (!wanted.port)
		wanted.port = any(ports, wanted.space);
	if (!wanted.port)
		return EADDRNOTAVAIL;
	rc = known ? 0 : check(ports, &wanted);
	if (rc)
		return rc;
	*port = (uint16_t)wanted.port;
	at = find(ports, &(struct vb_hub_unbind){ wanted.slot, wanted.id, wanted.space,
						  wanted.port });
	if (at) {
		(*at)->bind = wanted;
		return 0;
	}
	if (ports->count == VB_PORTS_MAX)
		return ENOSPC;
	bound = malloc(sizeof(*bound));
	if (!bound)
		return ENOMEM;
	/* Behind the others: who only says that a port is his gets nobody else's requests. */
	for (at = bucket_of(ports, wanted.space, wanted.port); *at;)
		at = &(*at)->next;
	*bound = (struct vb_port_bound){ .bind = wanted };
	*at = bound;
	ports->count++;
	return 0;
}

static void drop(struct vb_ports *ports, struct vb_port_bound **at)
{
	struct vb_port_bound *bound = *at;

	*at = bound->next;
	ports->count--;
	free(bound);
}

void vb_ports_unbind(struct vb_ports *ports, const struct vb_hub_unbind *unbind)
{
	struct vb_port_bound **at = find(ports, unbind);

	if (at)
		drop(ports, at);
}

void vb_ports_forget(struct vb_ports *ports, uint32_t slot)
{
	for (unsigned i = 0; ports->count && i < VB_ARRAY_LEN(ports->bucket); i++) {
		struct vb_port_bound **at = &ports->bucket[i];

		while (*at) {
			if ((*at)->bind.slot == slot)
				drop(ports, at);
			else
				at = &(*at)->next;
		}
	}
}

static bool hears(const struct vb_hub_bind *bind, const uint8_t gid[VB_HUB_GID_BYTES])
{
	if (!(bind->flags & VB_HUB_BIND_LISTENS))
		return false;
	if (!is_all(bind))
		return !memcmp(bind->gid, gid, VB_HUB_GID_BYTES);
	return is_ipv4(bind) ? vb_gid_is_ipv4(gid)
			     : !vb_gid_is_ipv4(gid) || !(bind->flags & VB_HUB_BIND_AFONLY);
}

const struct vb_hub_bind *vb_ports_listener(const struct vb_ports *ports, uint32_t space,
					    uint16_t port, const uint8_t gid[VB_HUB_GID_BYTES])
{
	const struct vb_port_bound *bound = *bucket_of((struct vb_ports *)ports, space, port);

	for (; bound; bound = bound->next) {
		if (bound->bind.port == port && bound->bind.space == space &&
		    hears(&bound->bind, gid))
			return &bound->bind;
	}
	return NULL;
}

void vb_ports_listeners(const struct vb_ports *ports,
			bool (*each)(void *arg, const struct vb_hub_bind *bind), void *arg)
{
	for (unsigned i = 0; ports->count && i < VB_ARRAY_LEN(ports->bucket); i++) {
		const struct vb_port_bound *bound = ports->bucket[i];

		for (; bound; bound = bound->next) {
			if ((bound->bind.flags & VB_HUB_BIND_LISTENS) && !each(arg, &bound->bind))
				return;
		}
	}
}

struct nearest {
	uint32_t space, port;
	const struct vb_hub_bind *bind;
};

static uint32_t distance(uint32_t a, uint32_t b)
{
	return a < b ? b - a : a - b;
}

static bool is_nearer(void *arg, const struct vb_hub_bind *bind)
{
	struct nearest *nearest = arg;

	if (bind->space == nearest->space &&
	    (!nearest->bind || distance(bind->port, nearest->port) <
				       distance(nearest->bind->port, nearest->port)))
		nearest->bind = bind;
	return true;
}

const struct vb_hub_bind *vb_ports_nearest(const struct vb_ports *ports, uint32_t space,
					   uint16_t port)
{
	struct nearest nearest = { space, port, NULL };

	vb_ports_listeners(ports, is_nearer, &nearest);
	return nearest.bind;
}

void vb_ports_free(struct vb_ports *ports)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(ports->bucket); i++) {
		while (ports->bucket[i])
			drop(ports, &ports->bucket[i]);
	}
}
