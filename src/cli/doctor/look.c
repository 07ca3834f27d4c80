/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor/look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/doctor/child.h"
#include "cli/settings.h"
#include "run/process/env.h"
#include "view/files.h"

#define CHILD_NS 10000000000u

/* --- files of the kernel's --- */

static long number_read(const char *path)
{
	FILE *file = fopen(path, "re");
	long number = VB_DOCTOR_UNKNOWN;

	if (file && fscanf(file, "%ld", &number) != 1)
		number = VB_DOCTOR_UNKNOWN;
	if (file)
		fclose(file);
	return number;
}

static void sysctls_look(struct vb_doctor_sysctls *sysctls)
{
	*sysctls = (struct vb_doctor_sysctls){
		.userns_clone = number_read("/proc/sys/kernel/unprivileged_userns_clone"),
		.apparmor_userns =
			number_read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		.max_user_ns = number_read("/proc/sys/user/max_user_namespaces"),
		.ptrace_scope = number_read("/proc/sys/kernel/yama/ptrace_scope"),
	};
}

static bool is_filtered(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	int mode = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	}
	if (file)
		fclose(file);
	return mode == 2;
}

/* "max 100000" or "150000 100000", in the control group that this process is in (cgroups(7)). */
static unsigned cpu_percent(void)
{
	char line[PATH_MAX] = "", path[2 * PATH_MAX], *group;
	FILE *file = fopen("/proc/self/cgroup", "re");
	unsigned long grant, period;
	unsigned percent = 0;

	while (file && fgets(line, sizeof(line), file) && strncmp(line, "0::", 3))
		*line = 0;
	if (file)
		fclose(file);
	group = *line ? line + 3 : line;
	group[strcspn(group, "\n")] = 0;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", group);
	file = fopen(path, "re");
	if (!file)
		file = fopen("/sys/fs/cgroup/cpu.max", "re");
	if (file && fscanf(file, "%lu %lu", &grant, &period) == 2 && period)
		percent = (unsigned)(grant * 100 / period);
	if (file)
		fclose(file);
	return percent;
}

static void process_look(struct vb_doctor_process *process)
{
	struct rlimit files = { 0 }, octets = { 0 };
	cpu_set_t set;

	getrlimit(RLIMIT_NOFILE, &files);
	getrlimit(RLIMIT_FSIZE, &octets);
	*process = (struct vb_doctor_process){
		.files = files.rlim_cur,
		.files_most = files.rlim_max,
		.file_bytes = octets.rlim_cur,
		.cpus = 1,
		.cpu_percent = cpu_percent(),
		.filtered = is_filtered(),
		.proc = !access("/proc/self/status", R_OK),
	};
	if (!sched_getaffinity(0, sizeof(set), &set))
		process->cpus = (unsigned)CPU_COUNT(&set);
}

/* In a view of ours the kernel's are beside ours. */
static void hardware_look(char *names, size_t bytes)
{
	DIR *dir = getenv("VERBATIM_VIEW_ROOT") ? NULL : opendir("/sys/class/infiniband");
	struct vb_text text = vb_text_in(names, bytes);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			vb_text_add(&text, text.used ? ", " : "", entry->d_name, NULL);
	}
	if (dir)
		closedir(dir);
}

/* --- ours --- */

static void settings_look(struct vb_doctor_settings *settings)
{
	struct vb_text text = vb_text_in(settings->names, sizeof(settings->names));

	vb_cli_settings_why(settings->why, sizeof(settings->why));
	for (unsigned i = 0; i < vb_env_names.count; i++) {
		const char *name = vb_words_at(&vb_env_names, i), *value = getenv(name);

		if (!value || !*value)
			continue;
		vb_text_add(&text, settings->count++ ? ", " : "", name, "=", NULL);
		vb_text_add_typed(&text, value, strlen(value));
	}
}

/* --- memory --- */

static int memfd_try(void)
{
	int fd = memfd_create("verbatim-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc = 0;

	if (fd < 0)
		return errno;
	if (ftruncate(fd, 1) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		rc = errno;
	close(fd);
	return rc;
}

static void shm_look(struct vb_doctor_memory *memory)
{
	char name[] = "/dev/shm/verbatim-doctor-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);
	struct statvfs fs;

	memory->shm_error = fd < 0 ? errno : 0;
	if (fd >= 0)
		unlink(name);
	vb_fd_close(&fd);
	if (statvfs("/dev/shm", &fs))
		return;
	memory->shm_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
	memory->shm_free = (uint64_t)fs.f_bavail * fs.f_frsize;
}

struct reach {
	uint64_t word; /* to be read */
	pid_t pid;     /* whose it is */
	int error;
};

static void reach_wait(void *arg)
{
	pause();
}

/* Yama lets parents do it: so one child tries it of another, as programs do (run/direct.c). */
static void reach_try(void *arg)
{
	struct reach *reach = arg;
	uint64_t word;
	struct iovec here = { &word, sizeof(word) }, there = { &reach->word, sizeof(word) };
	char path[64];
	int fd;

	if (process_vm_readv(reach->pid, &here, 1, &there, 1, 0) != sizeof(word)) {
		reach->error = errno;
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)reach->pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	reach->error = fd < 0 ? errno : 0;
	vb_fd_close(&fd);
}

static int reach_look(void)
{
	struct reach *reach = vb_doctor_shared(sizeof(*reach));
	struct vb_doctor_child waits, tries;
	char said[64];
	int rc = reach ? vb_doctor_child_start(&waits, reach_wait, NULL) : ENOMEM;

	if (rc)
		return rc;
	*reach = (struct reach){ .pid = waits.pid, .error = EINTR };
	rc = vb_doctor_child_start(&tries, reach_try, reach);
	if (!rc) {
		vb_doctor_child_end(&tries, vb_doctor_now_ns() + CHILD_NS, said, sizeof(said));
		rc = reach->error;
	}
	vb_doctor_child_end(&waits, 0, said, sizeof(said));
	return rc;
}

/* --- the view --- */

/* Ubuntu's AppArmor gives the namespace, and then forbids all that one would do in it. */
static void userns_try(void *arg)
{
	int *error = arg;

	*error = unshare(CLONE_NEWUSER | CLONE_NEWNS) ||
				 mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)
			 ? errno
			 : 0;
}

static void view_try(void *arg)
{
	struct vb_doctor_view *view = arg;
	char dir[PATH_MAX] = "", library[PATH_MAX + 32];

	vb_cli_library_dir(dir);
	snprintf(library, sizeof(library), "%s/libverbatim_view.so.1", dir);
	view->error = vb_view_show(VB_VIEW_SHOW_AUTO, library, &view->shown);
	view->tried = true;
}

static void view_look(struct vb_doctor_view *view)
{
	struct vb_doctor_view *tried = vb_doctor_shared(sizeof(*tried));
	int *error = vb_doctor_shared(sizeof(*error));
	struct vb_doctor_child child;
	char said[64];

	if (!tried || !error)
		return;
	*error = EINTR;
	if (!vb_doctor_child_start(&child, userns_try, error))
		vb_doctor_child_end(&child, vb_doctor_now_ns() + CHILD_NS, said, sizeof(said));
	if (!vb_doctor_child_start(&child, view_try, tried))
		vb_doctor_child_end(&child, vb_doctor_now_ns() + CHILD_NS, said, sizeof(said));
	*view = *tried;
	view->userns_error = *error;
	view->may_mount = vb_view_mount_is_free();
	if (vb_view_base(view->base))
		*view->base = 0;
}

void vb_doctor_look(struct vb_doctor_facts *facts)
{
	if (vb_cli_library_dir(facts->library))
		*facts->library = 0;
	sysctls_look(&facts->sysctls);
	settings_look(&facts->settings);
	process_look(&facts->process);
	hardware_look(facts->hardware, sizeof(facts->hardware));
	facts->memory.memfd_error = memfd_try();
	shm_look(&facts->memory);
	facts->memory.reach_error = reach_look();
	view_look(&facts->view);
}
