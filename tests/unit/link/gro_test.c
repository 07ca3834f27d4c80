/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with a cable between them, and a receiver whose interface merges datagrams (GRO).
 * With one source port for all, frames to two slots become one flow and some go astray; with a
 * source port for each slot, none does.
 */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <time.h>

#include "udp_lib.h"

enum { SLOTS = 3, SENT = 6000, PAUSE_EVERY = 60, FRAME_BYTES = 512, TRIES = 300 };

/* How long a frame waits in the interface for others to be merged with. */
#define FLUSH_NS "2000000"
#define NO_MERGING_CABLE "this system lets us make no cable whose end merges datagrams"

static struct vb_link *slot[SLOTS], *sender[1];
static int host[2];

struct arrivals {
	unsigned right, astray;
};

static bool offload_set(const char *name, uint32_t command, uint32_t on)
{
	struct ethtool_value value = {command, on};
	struct ifreq request = {.ifr_data = (void *)&value};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	rc = ioctl(fd, SIOCETHTOOL, &request);
	close(fd);
	return rc == 0;
}

static bool cable_make(void)
{
	char command[128];

	snprintf(command, sizeof(command),
		 "ip link add va type veth peer name vb netns /proc/%d/fd/%d 2>/dev/null",
		 (int)getpid(), host[1]);
	return system(command) == 0 && system("ip addr add 10.9.0.1/24 dev va") == 0 &&
	       netns_interface_up("va", 0);
}

/* A sysfs shows the interfaces of the namespace that mounted it. */
static bool receiver_merges(void)
{
	return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("none", "/sys", "sysfs", 0, NULL) &&
	       netns_file_write("/sys/class/net/vb/gro_flush_timeout", FLUSH_NS) &&
	       netns_file_write("/sys/class/net/vb/napi_defer_hard_irqs", "2") &&
	       offload_set("vb", ETHTOOL_SGRO, 1);
}

static bool hosts_make(void)
{
	for (unsigned i = 0; i < 2; i++) {
		if (!netns_enter())
			return false;
		host[i] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	}
	if (setns(host[0], CLONE_NEWNET) || !cable_make() ||
	    /* veth hands on what can be segmented as it is: merging is for others. */
	    !offload_set("va", ETHTOOL_STSO, 0) || !slots_make(sender, 1))
		return false;
	return !setns(host[1], CLONE_NEWNET) && system("ip addr add 10.9.0.2/24 dev vb") == 0 &&
	       netns_interface_up("vb", 0) && receiver_merges() && slots_make(slot, SLOTS);
}

static int destroy(void **state)
{
	slots_destroy(slot, SLOTS);
	slots_destroy(sender, 1);
	return 0;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void receive(struct arrivals *arrivals)
{
	struct vb_frame frames[VB_LINK_RX_FRAMES_MAX];
	unsigned n;

	for (unsigned i = 0; i < SLOTS; i++) {
		while ((n = vb_link_rx(slot[i], frames, VB_LINK_RX_FRAMES_MAX))) {
			for (unsigned k = 0; k < n; k++) {
				if (frame_slot(frames[k].data) == i)
					arrivals->right++;
				else
					arrivals->astray++;
			}
		}
	}
}

/* A kernel takes its time, up to a second or so, to see that a cable is plugged in. */
static bool cable_works(void)
{
	struct vb_path path = path_make("10.9.0.1", "10.9.0.2");
	struct arrivals arrivals = {0};
	uint8_t data[FRAME_BYTES] = {0};

	for (unsigned i = 0; i < TRIES && !arrivals.right; i++) {
		frame_send_to(sender[0], &path, 1, data, FRAME_BYTES);
		pause_ms(10);
		receive(&arrivals);
	}
	pause_ms(50);
	receive(&arrivals);
	return arrivals.right;
}

static int create(void **state)
{
	return hosts_make() && cable_works() ? 0 : group_lacks(NO_MERGING_CABLE);
}

/* Frames to slots 1 and 2 by turns. */
static struct arrivals send_by_turns(bool own_ports, enum vb_whom whom)
{
	struct vb_path path[SLOTS];
	struct arrivals arrivals = {0};
	uint8_t data[FRAME_BYTES] = {0};

	for (uint16_t i = 0; i < SLOTS; i++) {
		path[i] = path_make("10.9.0.1", "10.9.0.2");
		if (!own_ports)
			continue;
		setns(host[0], CLONE_NEWNET);
		path[i].sport = sender[0]->ops->sport(sender[0], &path[i], i, whom);
		setns(host[1], CLONE_NEWNET);
		assert_int_equal(path[i].sport, whom == VB_OURS ? 0xc000 + i : 0xbfff);
	}
	for (unsigned i = 0; i < SENT; i++) {
		unsigned to = 1 + i % 2;

		assert_int_equal(frame_send_to(sender[0], &path[to], to, data, FRAME_BYTES), 0);
		if (i % PAUSE_EVERY == PAUSE_EVERY - 1) {
			pause_ms(5);
			receive(&arrivals);
		}
	}
	pause_ms(50);
	receive(&arrivals);
	return arrivals;
}

/* Strangers have one port for all, and what comes from there is not merged. First: a slot that
 * has a port keeps it.
 */
TEST(nor_do_answers_to_strangers)
{
	struct arrivals arrivals;

	arrivals = send_by_turns(true, VB_STRANGER);
	assert_int_equal(arrivals.astray, 0);
	assert_int_equal(arrivals.right, SENT);
}

TEST(one_port_for_all_leads_astray)
{
	struct arrivals arrivals;

	arrivals = send_by_turns(false, VB_OURS);
	assert_int_equal(arrivals.right + arrivals.astray, SENT);
	/* Kernels differ in when they merge; there is nothing to compare with then. */
	if (!arrivals.astray)
		SKIP("this kernel merges none of these frames");
}

TEST(a_port_for_each_slot_does_not)
{
	struct arrivals arrivals;

	arrivals = send_by_turns(true, VB_OURS);
	assert_int_equal(arrivals.astray, 0);
	assert_int_equal(arrivals.right, SENT);
}

GROUP(create, destroy)
