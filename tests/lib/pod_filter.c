/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * pod_filter [--ptrace-refused] -- CMD ARGS ...: runs CMD under a filter of system calls like the
 * one that container runtimes give a container without capabilities, and with no_new_privs. With
 * the option it refuses to look into processes too, as runtimes did for kernels before 4.8.
 * Exit status 77: this kernel lets us make no filter.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

enum { NO_FILTER = 77, USAGE = 2, FILTER_MAX = 256 };

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#define CLONE_NEW                                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |            \
	 CLONE_NEWPID | CLONE_NEWNET)

/* What is refused with EPERM to a process without capabilities. */
static const unsigned refused[] = {
	SYS_acct, SYS_add_key, SYS_bpf, SYS_chroot, SYS_clock_adjtime, SYS_clock_settime,
	SYS_delete_module, SYS_fanotify_init, SYS_finit_module, SYS_fsconfig, SYS_fsmount,
	SYS_fsopen, SYS_fspick, SYS_get_mempolicy, SYS_init_module, SYS_io_uring_enter,
	SYS_io_uring_register, SYS_io_uring_setup, SYS_kcmp, SYS_kexec_file_load, SYS_kexec_load,
	SYS_keyctl, SYS_lookup_dcookie, SYS_mbind, SYS_migrate_pages, SYS_mount, SYS_mount_setattr,
	SYS_move_mount, SYS_move_pages, SYS_nfsservctl, SYS_open_by_handle_at, SYS_open_tree,
	SYS_perf_event_open, SYS_pidfd_getfd, SYS_pivot_root, SYS_process_madvise, SYS_quotactl,
	SYS_reboot, SYS_request_key, SYS_set_mempolicy, SYS_sethostname, SYS_setdomainname,
	SYS_setns, SYS_settimeofday, SYS_swapoff, SYS_swapon, SYS_syslog, SYS_umount2, SYS_unshare,
	SYS_userfaultfd, SYS_vhangup,
#ifdef SYS_iopl
	SYS_iopl, SYS_ioperm, SYS_sysfs, SYS_uselib, SYS_ustat, SYS_create_module,
	SYS_get_kernel_syms, SYS_query_module, SYS__sysctl,
#endif
};

static const unsigned of_ptrace[] = {
	SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
};

static struct sock_filter code[FILTER_MAX];
static unsigned short code_n;

static void add(struct sock_filter line)
{
	vb_check(code_n < FILTER_MAX);
	code[code_n++] = line;
}

static void load(size_t offset)
{
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

/* If the comparison of what was loaded holds, the call fails so. */
static void fail_if(unsigned short comparison, unsigned value, int error)
{
	add((struct sock_filter)BPF_JUMP(BPF_JMP | comparison | BPF_K, value, 0, 1));
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error));
}

/* The call fails so if the comparison holds of its first argument. */
static void fail_if_argument(unsigned call, unsigned short comparison, unsigned value, int error)
{
	/* For any other call past the four lines that look at the argument, and away again. */
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
	load(offsetof(struct seccomp_data, args));
	fail_if(comparison, value, error);
	load(offsetof(struct seccomp_data, nr));
}

static void filter_make(bool ptrace_too)
{
	load(offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < VB_ARRAY_LEN(refused); i++)
		fail_if(BPF_JEQ, refused[i], EPERM);
	for (unsigned i = 0; i < VB_ARRAY_LEN(of_ptrace) && ptrace_too; i++)
		fail_if(BPF_JEQ, of_ptrace[i], EPERM);
	/* Its flags lie in memory, where a filter cannot look; libraries turn to clone(2) then. */
	fail_if(BPF_JEQ, SYS_clone3, ENOSYS);
	fail_if_argument(SYS_clone, BPF_JSET, CLONE_NEW, EPERM);
	fail_if_argument(SYS_socket, BPF_JEQ, AF_VSOCK, EPERM);
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

int main(int argc, char **argv)
{
	bool ptrace_too = argc > 1 && !strcmp(argv[1], "--ptrace-refused");
	char **command = argv + 1 + ptrace_too;

	if (!command[0] || strcmp(command[0], "--") || !command[1]) {
		fputs("usage: pod_filter [--ptrace-refused] -- CMD ARGS ...\n", stderr);
		return USAGE;
	}
	command++;
	filter_make(ptrace_too);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){code_n, code})) {
		perror("pod_filter: prctl");
		return NO_FILTER;
	}
	execvp(command[0], command);
	perror(command[0]);
	return 127;
}
