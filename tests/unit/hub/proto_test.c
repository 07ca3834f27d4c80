/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "base/check.h"
#include "base/prng.h"
#include "group.h"
#include "hub/proto.h"

/* Of each type one that is good; what stands nowhere is 0. */
static struct vb_hub_msg sample(unsigned type)
{
	static const struct vb_hub_msg with[VB_HUB_TYPES] = {
		[VB_HUB_HELLO] = {.hello.program.comm = "ib_write_bw"},
		[VB_HUB_LEASE] = {.lease.program.comm = "ib_write_bw"},
		[VB_HUB_WELCOME] = {.welcome.error = EADDRINUSE},
		[VB_HUB_MARK] = {.mark = {.slot = 1023, .next_index = 16383}},
		[VB_HUB_GRANT] = {.grant.error = ENOSPC},
		[VB_HUB_SUMMARY] = {.summary = {.sockets = 1024, .rows = 1023}},
		[VB_HUB_ROWS] = {.rows = {.count = 2, .row = {{.slot = 1}, {.slot = 2}}}},
		[VB_HUB_STOP] = {.stop.force = 1},
		[VB_HUB_OFFER] = {.offer.shm = 1},
		[VB_HUB_REACH] = {.reach = {.from = 1, .to = 1023}},
		[VB_HUB_REACHED] = {.reached.error = ENOENT},
		[VB_HUB_RING] = {.ring = {.from = 1023, .to = 1}},
		[VB_HUB_FAIL] = {.fail.pid = INT32_MAX},
		[VB_HUB_CAPTURE] = {.fail.pid = 1},
		[VB_HUB_FAILED] = {.failed.error = ESRCH},
		[VB_HUB_LINK] = {.link = {.from = 1023, .why = VB_HUB_LINK_AFAR}},
		[VB_HUB_LINKS] = {.links = {.count = 1, .link = {{.from = 1}}}},
		[VB_HUB_WHO] = {.who.slot = 1023},
		[VB_HUB_WHOSE] = {.whose.error = ESRCH},
		[VB_HUB_MEMORY] = {.memory.error = EAGAIN},
		[VB_HUB_BIND] = {.cm.bind = {.slot = 1023, .port = 65535, .space = 65535,
					  .flags = VB_HUB_BIND_FLAGS}},
		[VB_HUB_BOUND] = {.cm.bound.port = 65535},
		[VB_HUB_UNBIND] = {.cm.unbind.slot = 1},
		[VB_HUB_MAD] = {.cm.mad.slot = 1},
		[VB_HUB_CM] = {.cm.ask = {65535, 65535}},
		[VB_HUB_SAMPLE] = {.sample.ask.measure_s = VB_HUB_MEASURE_S_MAX},
		[VB_HUB_SAMPLES] = {.sample.asked.asked = 1024},
		[VB_HUB_SAMPLED] = {.sample.taken.program.comm = "ib_write_bw"},
		[VB_HUB_CM_ROWS] = {.cm.rows = {.count = 1, .row = {{.slot = 1023}}}},
	};
	struct vb_hub_msg header = vb_hub_msg_make(type), msg = with[type];

	msg.magic = header.magic;
	msg.version = header.version;
	msg.type = header.type;
	return msg;
}

/* The descriptors that a sample must have. */
static unsigned sample_fds(unsigned type)
{
	switch (type) {
	case VB_HUB_OFFER:
		return 2;
	case VB_HUB_REACH:
		return VB_HUB_REACH_FDS;
	case VB_HUB_RING:
		return VB_HUB_RING_FDS;
	case VB_HUB_RECORDS:
		return VB_HUB_RECORDS_FDS;
	case VB_HUB_CAPTURE:
		return VB_HUB_CAPTURE_FDS;
	case VB_HUB_SAMPLE:
	case VB_HUB_SAMPLED:
		return VB_HUB_SAMPLE_FDS;
	default:
		return 0;
	}
}

static int parse(const struct vb_hub_msg *msg, unsigned fds)
{
	struct vb_hub_msg parsed;

	return vb_hub_msg_parse(&parsed, msg, vb_hub_msg_bytes(msg->type), fds);
}

TEST(every_message_survives_the_way)
{
	for (unsigned type = VB_HUB_HELLO; type < VB_HUB_TYPES; type++) {
		struct vb_hub_msg msg = sample(type), parsed;
		size_t bytes = vb_hub_msg_bytes(type);

		memset(&parsed, 0xee, sizeof(parsed));
		assert_true(bytes >= 8);
		assert_int_equal(vb_hub_msg_parse(&parsed, &msg, bytes, sample_fds(type)), 0);
		assert_memory_equal(&parsed, &msg, sizeof(msg));
	}
	assert_int_equal(vb_hub_msg_bytes(0), 0);
	assert_int_equal(vb_hub_msg_bytes(VB_HUB_TYPES), 0);
}

TEST(another_size_is_refused)
{
	for (unsigned type = VB_HUB_HELLO; type < VB_HUB_TYPES; type++) {
		struct {
			struct vb_hub_msg msg;
			uint8_t more[8];
		} sent = {sample(type), {0}};

		for (size_t bytes = 0; bytes <= sizeof(sent); bytes++) {
			struct vb_hub_msg parsed;
			int rc = vb_hub_msg_parse(&parsed, &sent, bytes, sample_fds(type));

			assert_int_equal(rc, bytes == vb_hub_msg_bytes(type) ? 0 : EPROTO);
		}
	}
}

/* A sample with this changed. */
#define REFUSED(what, change)                                            \
	do {                                                             \
		struct vb_hub_msg msg = sample(what);                    \
		change;                                                  \
		assert_int_equal(parse(&msg, sample_fds(what)), EPROTO); \
	} while (0)

TEST(another_header_is_refused)
{
	static const unsigned types[] = {VB_HUB_TYPES, 0xffff};
	struct vb_hub_msg other = sample(VB_HUB_MARK), parsed;
	size_t bytes = vb_hub_msg_bytes(VB_HUB_MARK);

	REFUSED(VB_HUB_MARK, msg.magic++);
	REFUSED(VB_HUB_MARK, msg.version++);
	for (unsigned i = 0; i < VB_ARRAY_LEN(types); i++) {
		other.type = (uint16_t)types[i];
		assert_int_equal(vb_hub_msg_parse(&parsed, &other, bytes, 0), EPROTO);
	}
	other.type = 0;
	assert_int_equal(vb_hub_msg_parse(&parsed, &other, 8, 0), EPROTO);
}

TEST(descriptors_come_with_what_they_belong_to)
{
	struct vb_hub_msg grant = vb_hub_msg_make(VB_HUB_GRANT);
	struct vb_hub_msg welcome = vb_hub_msg_make(VB_HUB_WELCOME);
	struct vb_hub_msg reached = vb_hub_msg_make(VB_HUB_REACHED);
	struct vb_hub_msg memory = vb_hub_msg_make(VB_HUB_MEMORY);

	for (unsigned type = VB_HUB_HELLO; type < VB_HUB_TYPES; type++) {
		struct vb_hub_msg msg = sample(type);

		for (unsigned fds = 0; fds <= VB_HUB_FDS_MAX + 1; fds++) {
			bool ok = fds == sample_fds(type) ||
				  (type == VB_HUB_HELLO && fds == VB_HUB_KEEPER_FDS) ||
				  (type == VB_HUB_MARK && fds == VB_HUB_MARK_FDS) ||
				  (type == VB_HUB_BIND && fds == VB_HUB_BIND_FDS) ||
				  (type == VB_HUB_BIND && fds == VB_HUB_BIND_FDS);

			assert_int_equal(parse(&msg, fds), ok ? 0 : EPROTO);
		}
	}
	assert_int_equal(parse(&reached, 2), 0);
	for (unsigned fds = 0; fds < 2; fds++)
		assert_int_equal(parse(&reached, fds), EPROTO);
	grant.grant.slot = 1;
	assert_int_equal(parse(&grant, 2), 0);
	assert_int_equal(parse(&grant, 0), EPROTO);
	assert_int_equal(parse(&welcome, VB_HUB_KEEPER_FDS), 0);
	assert_int_equal(parse(&welcome, VB_HUB_KEEPER_FDS - 1), EPROTO);
	assert_int_equal(parse(&welcome, 0), EPROTO);
	assert_int_equal(parse(&memory, 1), 0);
	assert_int_equal(parse(&memory, 0), EPROTO);
}

TEST(values_out_of_range_are_refused)
{
	struct vb_hub_msg grant = vb_hub_msg_make(VB_HUB_GRANT);

	assert_int_equal(parse(&grant, 2), EPROTO);
	REFUSED(VB_HUB_GRANT, msg.grant.error = 0x80000000);
	REFUSED(VB_HUB_MARK, msg.mark.slot = 0);
	REFUSED(VB_HUB_MARK, msg.mark.slot = 1024);
	REFUSED(VB_HUB_MARK, msg.mark.next_index = 16384);
	REFUSED(VB_HUB_SUMMARY, msg.summary.rows = 1024);
	REFUSED(VB_HUB_SUMMARY, msg.summary.sockets = 1025);
	REFUSED(VB_HUB_ROWS, msg.rows.count = 0);
	REFUSED(VB_HUB_ROWS, msg.rows.count = VB_HUB_ROWS_MAX + 1);
	REFUSED(VB_HUB_ROWS, msg.rows.count = 3); /* the third names no slot */
	REFUSED(VB_HUB_ROWS, msg.rows.row[1].shm = 2);
	REFUSED(VB_HUB_STOP, msg.stop.force = 2);
	REFUSED(VB_HUB_OFFER, msg.offer.shm = 2);
	REFUSED(VB_HUB_REACHED, msg.reached.error = 0x80000000);
	REFUSED(VB_HUB_REACHED, msg.reached.proven = 2);
	REFUSED(VB_HUB_RING, msg.ring.proven = 2);
	REFUSED(VB_HUB_FAIL, msg.fail.pid = 0);
	REFUSED(VB_HUB_FAIL, msg.fail.pid = 0x80000000);
	REFUSED(VB_HUB_FAILED, msg.failed.error = 0x80000000);
}

TEST(slots_out_of_range_are_refused)
{
	static const unsigned types[] = {VB_HUB_REACH, VB_HUB_RING};

	for (unsigned i = 0; i < VB_ARRAY_LEN(types); i++) {
		REFUSED(types[i], msg.ring.from = 0);
		REFUSED(types[i], msg.ring.from = VB_HUB_SLOTS_MAX);
		REFUSED(types[i], msg.ring.to = 0);
		REFUSED(types[i], msg.ring.to = VB_HUB_SLOTS_MAX);
	}
}

TEST(names_are_short_printable_and_ended)
{
	struct vb_hub_msg msg = sample(VB_HUB_HELLO);

	memset(msg.hello.program.comm, 'x', sizeof(msg.hello.program.comm));
	assert_int_equal(parse(&msg, 0), EPROTO);
	msg.hello.program.comm[VB_HUB_COMM_BYTES - 1] = 0;
	assert_int_equal(parse(&msg, 0), 0);
	msg.hello.program.comm[3] = '\033';
	assert_int_equal(parse(&msg, 0), EPROTO);
	msg.hello.program.comm[3] = (char)0xe4;
	assert_int_equal(parse(&msg, 0), EPROTO);
	vb_hub_comm_copy(msg.hello.program.comm, "a\tb\xff, and more than there is room for");
	assert_string_equal(msg.hello.program.comm, "a?b?, and more ");
	assert_int_equal(parse(&msg, 0), 0);
}

TEST(noise_is_refused_or_sane)
{
	uint64_t prng = 1;

	for (unsigned i = 0; i < 200000; i++) {
		struct vb_hub_msg msg = sample(1 + i % (VB_HUB_TYPES - 1)), parsed;
		uint8_t *octets = (uint8_t *)&msg;
		size_t bytes = vb_hub_msg_bytes(msg.type);

		for (unsigned k = 0; k < 3; k++)
			octets[vb_prng_next(&prng) % bytes] ^= (uint8_t)vb_prng_next(&prng);
		if (vb_hub_msg_parse(&parsed, &msg, bytes, sample_fds(msg.type)))
			continue;
		assert_true(parsed.type >= 1 && parsed.type < VB_HUB_TYPES);
		if (parsed.type == VB_HUB_MARK)
			assert_in_range(parsed.mark.slot, 1, VB_HUB_SLOTS_MAX - 1);
		if (parsed.type == VB_HUB_ROWS)
			assert_in_range(parsed.rows.count, 1, VB_HUB_ROWS_MAX);
		if (parsed.type == VB_HUB_RING)
			assert_in_range(parsed.ring.to, 1, VB_HUB_SLOTS_MAX - 1);
	}
}

TEST(ports_out_of_range_are_refused)
{
	REFUSED(VB_HUB_BIND, msg.cm.bind.slot = 0);
	REFUSED(VB_HUB_BIND, msg.cm.bind.port = 65536);
	REFUSED(VB_HUB_BIND, msg.cm.bind.space = 65536);
	REFUSED(VB_HUB_BIND, msg.cm.bind.flags = VB_HUB_BIND_FLAGS + 1);
	/* Either a port or an error. */
	REFUSED(VB_HUB_BOUND, msg.cm.bound.error = EADDRINUSE);
	REFUSED(VB_HUB_BOUND, msg.cm.bound.port = 0);
	REFUSED(VB_HUB_UNBIND, msg.cm.unbind.slot = 0);
	REFUSED(VB_HUB_MAD, msg.cm.mad.slot = 1024);
	REFUSED(VB_HUB_CM, msg.cm.ask.space = 65536);
	REFUSED(VB_HUB_CM, msg.cm.ask.port = 65536);
	REFUSED(VB_HUB_CM_ROWS, msg.cm.rows.count = VB_HUB_CM_ROWS_MAX + 1);
	REFUSED(VB_HUB_CM_ROWS, msg.cm.rows.row[0].what = VB_HUB_CM_WHATS);
	REFUSED(VB_HUB_CM_ROWS, msg.cm.rows.row[0].slot = 0);
	REFUSED(VB_HUB_CM_ROWS, msg.cm.rows.row[0].bind.port = 65536);
}
