/* SPDX-License-Identifier: BSD-2-Clause */
#include "attack_letters.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "attack.h"
#include "cm/records.h"
#include "nic/core/export.h"
#include "wire/cm_ip.h"
#include "wire/mad_frame.h"

enum {
	PORTS = 40000, /* from here on, so many: some that others are given, too */
	PORTS_N = 300,
	RECORDS_N = 100, /* octets at random */
};

int attack_memory(size_t bytes, bool sealed)
{
	int fd = memfd_create("attack", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && ftruncate(fd, (off_t)bytes))
		attack_fail("ftruncate: %s", strerror(errno));
	if (fd >= 0 && sealed)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	return fd;
}

int attack_export_make(void)
{
	int fd = attack_memory(sizeof(struct vb_export), true);
	const struct {
		uint32_t magic, version;
	} head = {VB_EXPORT_MAGIC, VB_EXPORT_VERSION};

	return pwrite(fd, &head, sizeof(head), 0) == sizeof(head) ? fd : -1;
}

int attack_records_make(void)
{
	int fd = attack_memory(sizeof(struct vb_cm_records), true);
	uint8_t octets[RECORDS_N * sizeof(struct vb_cm_record)];
	uint64_t rng = 1;

	for (size_t i = 0; i < sizeof(octets); i++)
		octets[i] = attack_one_in(&rng, 2) ? (uint8_t)attack_below(&rng, 20) : 0;
	return pwrite(fd, octets, sizeof(octets), 0) == sizeof(octets) ? fd : -1;
}

static void fill_gid(uint8_t gid[VB_HUB_GID_BYTES], uint64_t *rng)
{
	static const uint8_t loopback[VB_HUB_GID_BYTES] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

	if (!attack_one_in(rng, 4))
		memcpy(gid, loopback, sizeof(loopback));
	else if (attack_one_in(rng, 2))
		gid[attack_below(rng, VB_HUB_GID_BYTES)] = (uint8_t)vb_prng_next(rng);
}

void attack_bind_fill(struct vb_hub_msg *msg, uint64_t *rng, uint32_t slot)
{
	msg->cm.bind.slot = slot;
	msg->cm.bind.id = attack_below(rng, 8);
	msg->cm.bind.space = attack_one_in(rng, 4) ? attack_below(rng, 0x200) : VB_CM_PS_TCP;
	msg->cm.bind.port = attack_one_in(rng, 4) ? 0 : PORTS + attack_below(rng, PORTS_N);
	msg->cm.bind.flags = attack_below(rng, VB_HUB_BIND_FLAGS + 2);
	fill_gid(msg->cm.bind.gid, rng);
}

void attack_unbind_fill(struct vb_hub_msg *msg, uint64_t *rng, uint32_t slot)
{
	msg->cm.unbind.slot = slot;
	msg->cm.unbind.id = attack_below(rng, 8);
	msg->cm.unbind.space = VB_CM_PS_TCP;
	msg->cm.unbind.port = PORTS + attack_below(rng, PORTS_N);
}

void attack_mad_fill(struct vb_hub_msg *msg, uint64_t *rng, uint32_t slot, uint32_t to)
{
	struct vb_cm_msg said = {
		.attr = VB_CM_ATTR_FIRST +
			attack_below(rng, VB_CM_ATTR_LAST - VB_CM_ATTR_FIRST + 1),
		.transaction_id = vb_prng_next(rng),
		.local_comm_id = (uint32_t)vb_prng_next(rng),
		.remote_comm_id = to << 22 | attack_below(rng, 100),
	};
	uint8_t mad[VB_MAD_BYTES];
	struct vb_path path = {.sport = 0xc000, .hop_limit = 64};

	if (said.attr == VB_CM_REQ)
		said.req.service_id = vb_cm_service_id(
			VB_CM_PS_TCP, (uint16_t)(PORTS + attack_below(rng, PORTS_N)));
	vb_cm_emit(&said, mad);
	if (attack_one_in(rng, 4))
		mad[attack_below(rng, VB_MAD_BYTES)] = (uint8_t)vb_prng_next(rng);
	msg->cm.mad.slot = slot;
	msg->cm.mad.sport = path.sport;
	msg->cm.mad.hop_limit = path.hop_limit;
	fill_gid(msg->cm.mad.src, rng);
	fill_gid(msg->cm.mad.dst, rng);
	memcpy(path.src, msg->cm.mad.src, VB_GID_BYTES);
	memcpy(path.dst, msg->cm.mad.dst, VB_GID_BYTES);
	vb_mad_frame_emit(msg->cm.mad.frame, &path, mad, 0);
}

/* The hub's own words, said to it: anything. */
void attack_any_fill(struct vb_hub_msg *msg, uint64_t *rng)
{
	uint8_t *octets = (uint8_t *)msg + offsetof(struct vb_hub_msg, hello);

	for (size_t i = 0; i < sizeof(*msg) - offsetof(struct vb_hub_msg, hello); i++)
		octets[i] = attack_one_in(rng, 3) ? (uint8_t)vb_prng_next(rng) : 0;
}
