/* SPDX-License-Identifier: BSD-2-Clause */
/* The files with the defaults of rsockets, in an /etc of this process's own. */
#include "rs.h"
#include "skip.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/etc/rdma/rsocket/"

static const struct {
	const char *path, *text;
} files[] = {
	{FOLDER "mem_default", "200000\n"},   {FOLDER "wmem_default", "100000\n"},
	{FOLDER "sqsize_default", "100\n"},   {FOLDER "rqsize_default", "120"},
	{FOLDER "inline_default", "32\n"},    {FOLDER "iomap_size", "5\n"},
	{FOLDER "polling_time", "0\n"},	      {FOLDER "wake_up_interval", "50\n"},
};

static bool etc_make(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/etc", "tmpfs", 0, NULL))
		return false;
	ct_works(mkdir("/etc/rdma", 0755));
	ct_works(mkdir("/etc/rdma/rsocket", 0755));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = open(files[i].path, O_WRONLY | O_CREAT, 0644);
		size_t bytes = strlen(files[i].text);

		assert_int_equal(write(fd, files[i].text, bytes), bytes);
		close(fd);
	}
	return true;
}

/*
 * rsocket: "rsockets uses configuration files that give an administrator control over the default
 * settings used by rsockets."
 * rsocket: "Use files under /etc/rdma/rsocket as shown"
 * rsocket: "mem_default - default size of receive buffer(s)"
 * rsocket: "wmem_default - default size of send buffer(s)"
 * rsocket: "sqsize_default - default size of send queue"
 * rsocket: "rqsize_default - default size of receive queue"
 * rsocket: "inline_default - default size of inline data"
 * rsocket: "iomap_size - default size of remote iomapping table"
 * rsocket: "All configuration files should contain a single integer value."
 */
static void defaults_are_read_from_files(void **state)
{
	int fd;

	if (!etc_make())
		SKIP("this system lets us mount nothing");
	fd = rt_socket(SOCK_STREAM);
	assert_int_equal(rt_option_of(fd, SOL_SOCKET, SO_RCVBUF), 200000);
	assert_int_equal(rt_option_of(fd, SOL_SOCKET, SO_SNDBUF), 100000);
	assert_int_equal(rt_option_of(fd, SOL_RDMA, RDMA_SQSIZE), 100);
	assert_int_equal(rt_option_of(fd, SOL_RDMA, RDMA_RQSIZE), 120);
	assert_int_equal(rt_option_of(fd, SOL_RDMA, RDMA_INLINE), 32);
	assert_int_equal(rt_option_of(fd, SOL_RDMA, RDMA_IOMAPSIZE), 5);
	ct_works(rclose(fd));
}

static void *say_later(void *fd)
{
	usleep(200000);
	rt_send(*(int *)fd, "x", 1);
	return NULL;
}

/*
 * It sleeps at once, wakes up now and then, and nobody notices.
 *
 * rsocket: "polling_time - default number of microseconds to poll for data before waiting"
 * rsocket: "wake_up_interval - maximum number of milliseconds to block in poll."
 * rsocket: "This value is used to safe guard against potential application hangs in rpoll()."
 */
static void intervals_are_read_from_files(void **state)
{
	struct rt_pair pair = rt_pair_open();
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		ct_works(pthread_create(&thread, NULL, say_later, &pair.client));
		if (i)
			assert_int_equal(rt_poll(pair.server, POLLIN, -1), POLLIN);
		rt_expect(pair.server, "x");
		ct_works(pthread_join(thread, NULL));
	}
	rt_pair_close(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_read_from_files),
		cmocka_unit_test(intervals_are_read_from_files),
	};

	return ct_main(tests);
}
