/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_DOCTOR_FACTS_H
#define VB_CLI_DOCTOR_FACTS_H

/*
 * What `verbatim doctor` has seen of the machine: look.c, net.c and device.c fill it in, judge.c
 * judges it. Errors are errno values, 0: it works.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "view/show.h"

enum {
	VB_DOCTOR_WORDS_BYTES = 768,
	VB_DOCTOR_DEVICES = 8,
	VB_DOCTOR_NAME_BYTES = 64,
	VB_DOCTOR_UNKNOWN = -1, /* of a number in /proc: there is no such file */
};

/* Numbers of /proc/sys, which not every kernel has. */
struct vb_doctor_sysctls {
	long userns_clone, apparmor_userns, max_user_ns, ptrace_scope;
};

struct vb_doctor_settings {
	unsigned count;
	char names[VB_DOCTOR_WORDS_BYTES];
	char why[VB_DOCTOR_WORDS_BYTES]; /* "": none is wrong */
};

struct vb_doctor_process {
	uint64_t files, files_most; /* RLIMIT_NOFILE */
	uint64_t file_bytes;	    /* RLIMIT_FSIZE */
	unsigned cpus;		    /* that this process may use */
	unsigned cpu_percent;	    /* what a cgroup grants of them; 0: all */
	bool filtered;		    /* by seccomp */
	bool proc;		    /* /proc is there */
};

struct vb_doctor_memory {
	int memfd_error;
	int shm_error; /* of making a file in /dev/shm */
	uint64_t shm_bytes, shm_free;
	int reach_error; /* of reading another process's memory */
};

struct vb_doctor_view {
	bool may_mount; /* without a user namespace */
	int userns_error;
	bool tried; /* what follows is known */
	int error;  /* of the call */
	struct vb_view_shown shown;
	char base[PATH_MAX]; /* the folder of the files, "": none is to be had */
};

struct vb_doctor_port {
	int error; /* of binding it */
	bool own;  /* this user's hub has it */
	char words[VB_DOCTOR_WORDS_BYTES]; /* who has it, and what to do */
};

struct vb_doctor_hub {
	int error; /* of asking it; ECONNREFUSED: none runs */
	int pid;
	unsigned clients;
	char words[VB_DOCTOR_WORDS_BYTES];
};

struct vb_doctor_udp {
	int socket_error, steer_error, gro_error, segment_error;
	uint64_t buffer_bytes; /* granted for what is received */
};

struct vb_doctor_raw {
	int packet_error; /* of a packet socket */
	int tun_error;	  /* of opening /dev/net/tun */
};

struct vb_doctor_device {
	char name[VB_DOCTOR_NAME_BYTES];
	int error; /* of opening it */
	bool active;
	unsigned mtu;		 /* the path MTU at most */
	unsigned gids, gids_far; /* all; those that other hosts could reach */
	char gid[VB_DOCTOR_NAME_BYTES]; /* the first */
};

struct vb_doctor_devices {
	bool looked; /* the look has ended */
	int error;
	unsigned count;
	struct vb_doctor_device device[VB_DOCTOR_DEVICES];
	char log[VB_DOCTOR_WORDS_BYTES]; /* the last line of the library's log */
};

/* What two processes of our own measured, by one link. */
struct vb_doctor_speed {
	bool measured;
	double latency_ns, octets_per_s;
	char why[VB_DOCTOR_WORDS_BYTES]; /* not measured, "": not tried */
};

enum vb_doctor_link { VB_DOCTOR_SHM, VB_DOCTOR_UDP, VB_DOCTOR_LINKS };

struct vb_doctor_facts {
	char library[PATH_MAX]; /* the folder of ours; "": not found */
	char hardware[VB_DOCTOR_WORDS_BYTES]; /* devices of the kernel's, "": none */
	struct vb_doctor_sysctls sysctls;
	struct vb_doctor_settings settings;
	struct vb_doctor_process process;
	struct vb_doctor_memory memory;
	struct vb_doctor_view view;
	struct vb_doctor_port port;
	struct vb_doctor_hub hub;
	struct vb_doctor_udp udp;
	struct vb_doctor_raw raw;
	struct vb_doctor_devices devices;
	struct vb_doctor_speed speed[VB_DOCTOR_LINKS];
};

#endif
