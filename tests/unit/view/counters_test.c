/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "group.h"
#include "nic/control/sample.h"
#include "run/process/sample.h"
#include "view/counters.h"

enum { EFA = 1, DEVICES = 2 };

static struct vb_view_root root;
static struct vb_view_device device[DEVICES];
static struct vb_view_counters counters;

static int begin(void **state)
{
	strcpy(device[0].name, "rail0");
	strcpy(device[EFA].name, "rail1");
	device[EFA].part.vendor = 0x1d0f;
	device[0].up = device[EFA].up = true;
	return vb_view_root_make(&root) ||
	       vb_view_counters_open(&counters, &root, device, DEVICES);
}

static int end(void **state)
{
	vb_view_counters_close(&counters);
	vb_view_root_remove(&root);
	return 0;
}

#define WITH_COUNTERS(name) TEST_BETWEEN(name, begin, end)

static struct vb_sample sample(const char *name, uint64_t origin, uint64_t octets)
{
	struct vb_sample said = {
		.magic = VB_SAMPLE_MAGIC,
		.bytes = sizeof(struct vb_sample_qp),
		.stats = VB_STATS,
		.origin = origin,
	};

	snprintf(said.device, sizeof(said.device), "%s", name);
	said.stat[VB_STAT_TX_OCTETS] = octets;
	return said;
}

static void says(const char *name, uint64_t origin, uint64_t octets, bool closed)
{
	struct vb_sample said = sample(name, origin, octets);

	vb_view_counters_add(&counters, &said, closed);
}

static uint64_t sent(unsigned index)
{
	uint64_t stat[VB_STATS];

	vb_view_counters_sum(&counters, index, stat);
	return stat[VB_STAT_TX_OCTETS];
}

static uint64_t file(const char *path)
{
	char text[32] = "none";
	int fd = openat(root.fd, path, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strtoull(text, NULL, 10);
}

WITH_COUNTERS(what_one_says_again_counts_once)
{
	says("rail0", 1, 100, false);
	says("rail0", 2, 50, false);
	says("rail0", 1, 300, false);
	assert_int_equal(sent(0), 350);
	assert_int_equal(sent(EFA), 0);
}

WITH_COUNTERS(what_a_closed_one_has_left_stays)
{
	says("rail0", 1, 100, false);
	says("rail0", 1, 120, true);
	assert_int_equal(sent(0), 120);
	says("rail0", 2, 5, true); /* nobody had asked it */
	assert_int_equal(sent(0), 125);
}

WITH_COUNTERS(a_device_that_is_not_ours_counts_nowhere)
{
	says("rail7", 1, 100, false);
	assert_int_equal(sent(0) + sent(EFA), 0);
}

/* Many are killed: their sums stay, and memory is bounded. */
WITH_COUNTERS(those_that_do_not_answer_any_more_are_kept_as_a_sum)
{
	for (unsigned i = 1; i <= 4096; i++) {
		says("rail0", i, 1, false);
		counters.living[counters.count - 1].answered = false;
	}
	says("rail0", 5000, 1, false);
	assert_int_equal(counters.count, 1);
	assert_int_equal(sent(0), 4097);
}

WITH_COUNTERS(each_device_has_the_files_of_its_maker)
{
	assert_int_equal(file("sys/class/infiniband/rail0/ports/1/counters/port_xmit_data"), 0);
	assert_int_equal(file("sys/class/infiniband/rail1/ports/1/hw_counters/tx_bytes"), 0);
	assert_int_equal(faccessat(root.fd, "sys/class/infiniband/rail1/ports/1/counters", F_OK, 0),
			 -1);
}

static void leave(const char *name, const void *octets, size_t bytes)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), VB_SAMPLE_LEFT "/%s", name);
	fd = openat(root.fd, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, octets, bytes), bytes);
	close(fd);
}

WITH_COUNTERS(what_is_left_is_taken_once_and_garbage_is_not)
{
	struct vb_sample said = sample("rail0", 3, 4000);

	leave("3", &said, sizeof(said));
	leave("4", "garbage", 7);
	counters.asked_ns = 1; /* nobody is asked */
	vb_view_counters_refresh(&counters, 2);
	vb_view_counters_refresh(&counters, 3);
	assert_int_equal(file("sys/class/infiniband/rail0/ports/1/counters/port_xmit_data"), 1000);
}

WITH_COUNTERS(a_port_that_goes_down_is_counted)
{
	counters.asked_ns = 1;
	device[0].up = false;
	vb_view_counters_refresh(&counters, 2);
	vb_view_counters_refresh(&counters, 3);
	assert_int_equal(file("sys/class/infiniband/rail0/ports/1/counters/link_downed"), 1);
}
