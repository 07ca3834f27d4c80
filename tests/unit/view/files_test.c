/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "group.h"
#include "view/files.h"

static struct vb_view_root root;

static int begin(void **state)
{
	return vb_view_root_make(&root);
}

static int end(void **state)
{
	vb_view_root_remove(&root);
	return 0;
}

#define IN_A_ROOT(name) TEST_BETWEEN(name, begin, end)

static void put(enum vb_view_kind kind, const char *path, const char *content)
{
	struct vb_view_entry entry = { kind, path, content, strlen(content) };

	assert_int_equal(vb_view_file_write(&root, &entry), 0);
}

static void has(const char *path, const char *content)
{
	int fd = openat(root.fd, path, O_RDONLY);
	char text[64] = "";

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	assert_string_equal(text, content);
}

IN_A_ROOT(a_file_is_made_with_the_folders_above_it)
{
	struct stat st;

	put(VB_VIEW_FILE, "sys/a/b", "1\n");
	has("sys/a/b", "1\n");
	assert_int_equal(fstatat(root.fd, "sys", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
}

IN_A_ROOT(what_is_open_keeps_its_content)
{
	char text[8] = "";
	int fd;

	put(VB_VIEW_FILE, "a", "old\n");
	fd = openat(root.fd, "a", O_RDONLY);
	put(VB_VIEW_FILE, "a", "newer\n");
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_string_equal(text, "old\n");
	close(fd);
	has("a", "newer\n");
}

IN_A_ROOT(what_has_not_changed_stays_the_same_file)
{
	struct stat before, after;

	put(VB_VIEW_FILE, "a", "1\n");
	put(VB_VIEW_LINK, "l", "a");
	assert_int_equal(fstatat(root.fd, "a", &before, 0), 0);
	put(VB_VIEW_FILE, "a", "1\n");
	put(VB_VIEW_LINK, "l", "a");
	assert_int_equal(fstatat(root.fd, "a", &after, 0), 0);
	assert_true(before.st_ino == after.st_ino);
	has("l", "1\n");
}

IN_A_ROOT(a_file_takes_the_place_of_a_link_and_back)
{
	struct stat st;

	put(VB_VIEW_LINK, "a", "/nowhere");
	put(VB_VIEW_FILE, "a", "1\n");
	has("a", "1\n");
	put(VB_VIEW_LINK, "a", "/nowhere");
	assert_int_equal(fstatat(root.fd, "a", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(st.st_mode));
}

IN_A_ROOT(an_interface_that_went_is_not_there_any_more)
{
	static struct vb_view_device device = {
		.name = "d", .pci = "7662:00:06.0", .net[0] = { "gone0", 99 }, .nets = 1,
	};
	struct stat st;

	assert_int_equal(vb_view_files_write(&root, &device, 1), 0);
	assert_int_equal(fstatat(root.fd, "sys/class/net/gone0/device/vendor", &st, 0), 0);
	device.nets = 0;
	assert_int_equal(vb_view_files_write(&root, &device, 1), 0);
	assert_int_equal(fstatat(root.fd, "sys/class/net/gone0", &st, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(fstatat(root.fd, "sys/bus/pci/devices/7662:00:06.0/net/gone0", &st, 0),
			 -1);
}
