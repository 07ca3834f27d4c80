/* SPDX-License-Identifier: BSD-2-Clause */
/* The files below /etc/rdma/rsocket. They are read once, so each test is a process. */
#include "rs.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* /etc/rdma is another for this process and its children; false: it may not be. */
static bool folder_make(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", "/etc/rdma", "tmpfs", 0, NULL) == 0 &&
	       mkdir("/etc/rdma/rsocket", 0755) == 0;
}

static void file_write(const char *name, const char *text)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/etc/rdma/rsocket/%s", name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static const struct {
	const char *file, *text;
	int level, name, value;
} files[] = {
	{"mem_default", "1000000\n", SOL_SOCKET, SO_RCVBUF, 1000000},
	{"wmem_default", "500000", SOL_SOCKET, SO_SNDBUF, 500000},
	{"sqsize_default", "100\n", SOL_RDMA, RDMA_SQSIZE, 100},
	{"rqsize_default", "200\n", SOL_RDMA, RDMA_RQSIZE, 200},
	{"inline_default", "32\n", SOL_RDMA, RDMA_INLINE, 32},
	{"iomap_size", "16\n", SOL_RDMA, RDMA_IOMAPSIZE, 16},
};

/* In a child: the library reads the files before its first socket. Its exit status. */
static int in_child(bool (*holds)(void))
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(holds() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static bool value_is(int fd, unsigned i, int value)
{
	socklen_t bytes = sizeof(value);
	int got = -1;

	return rgetsockopt(fd, files[i].level, files[i].name, &got, &bytes) == 0 && got == value;
}

static bool all_are_as_written(void)
{
	int fd = rsocket(rt_family(), SOCK_STREAM, 0);

	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!value_is(fd, i, files[i].value))
			return false;
	return true;
}

static bool one_is_set_over(void)
{
	int fd = rsocket(rt_family(), SOCK_STREAM, 0);

	rt_option(fd, SOL_RDMA, RDMA_SQSIZE, 77);
	return value_is(fd, 2, 77) && value_is(fd, 3, files[3].value);
}

static bool all_are_the_defaults(void)
{
	int fd = rsocket(rt_family(), SOCK_STREAM, 0);

	return value_is(fd, 2, 384) && value_is(fd, 3, 384) && value_is(fd, 4, 64) &&
	       value_is(fd, 5, 0);
}

/*
 * rsocket: "rsockets uses configuration files that give an administrator control over the default
 * settings used by rsockets. Use files under /etc/rdma/rsocket as shown:"
 * rsocket: "mem_default - default size of receive buffer(s)"
 * rsocket: "wmem_default - default size of send buffer(s)"
 * rsocket: "sqsize_default - default size of send queue"
 * rsocket: "rqsize_default - default size of receive queue"
 * rsocket: "inline_default - default size of inline data"
 * rsocket: "iomap_size - default size of remote iomapping table"
 * rsocket: "All configuration files should contain a single integer value."
 * rsocket: "Applications can override default values programmatically through the rsetsockopt
 * routine."
 */
static void files_have_the_defaults(void **state)
{
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		file_write(files[i].file, files[i].text);
	assert_int_equal(in_child(all_are_as_written), 0);
	assert_int_equal(in_child(one_is_set_over), 0);
}

/* rsocket: "If configuration files are not available, rsockets uses internal defaults." */
static void without_a_number_the_default_stays(void **state)
{
	file_write("sqsize_default", "many\n");
	file_write("rqsize_default", "");
	assert_int_equal(unlink("/etc/rdma/rsocket/inline_default"), 0);
	file_write("iomap_size", "-5\n");
	assert_int_equal(in_child(all_are_the_defaults), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_have_the_defaults),
		cmocka_unit_test(without_a_number_the_default_stays),
	};

	if (!folder_make()) {
		printf("1..0 # SKIP /etc/rdma cannot be covered here\n");
		return 0;
	}
	return ct_main(tests);
}
