/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor/judge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/check.h"

enum {
	FILES_FEW = 1024,     /* what systems give: below it, few QPs and processes */
	FILES_NONE = 64,      /* the hub cannot work, or hardly */
	SHM_FEW_KIB = 4096,   /* the files of the view, and those of programs such as UCX */
	BUFFER_GOOD = 8 << 20, /* link/udp_socket.h asks for it; the kernel doubles it */
	PATH_MTU_LEAST = 1024,
};

#define KIB 1024u
#define MIB 1048576.0

static void __attribute__((format(printf, 2, 3)))
found(struct vb_doctor_finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(finding->found, sizeof(finding->found), format, args);
	va_end(args);
}

/* It is not ok: what that means, and what to do. */
static void __attribute__((format(printf, 4, 5)))
lacks(struct vb_doctor_finding *finding, enum vb_doctor_verdict verdict, const char *means,
      const char *remedy, ...)
{
	va_list args;

	finding->verdict = verdict;
	finding->means = means;
	va_start(args, remedy);
	vsnprintf(finding->remedy, sizeof(finding->remedy), remedy, args);
	va_end(args);
}

/* --- ours --- */

static void library(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	found(finding, "%s", facts->library);
	if (*facts->library)
		return;
	found(finding, "libibverbs.so.1 is neither in lib/ beside this command nor in "
		       "../lib/verbatim");
	lacks(finding, VB_DOCTOR_MISSING, "`verbatim run` starts no program",
	      "build or install it whole: make, or make install PREFIX=...");
}

static void settings(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	const struct vb_doctor_settings *it = &facts->settings;

	if (it->count)
		found(finding, "%s", it->names);
	else
		found(finding, "no VERBATIM_* variable is set");
	if (!*it->why)
		return;
	found(finding, "%s", it->why);
	lacks(finding, VB_DOCTOR_MISSING, "programs find no device, and `verbatim run` starts none",
	      "correct the variable or unset it; docs/settings.md has all");
}

static void hub(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	const struct vb_doctor_hub *it = &facts->hub;

	if (it->error == ECONNREFUSED) {
		found(finding, "none runs; the first program that needs it starts it");
		return;
	}
	if (!it->error) {
		found(finding, "it runs, pid %d, and has %u client%s", it->pid, it->clients,
		      it->clients == 1 ? "" : "s");
		return;
	}
	found(finding, "it does not answer: %s", *it->words ? it->words : strerror(it->error));
	lacks(finding, VB_DOCTOR_MISSING, "programs cannot open the device",
	      it->error == EPERM ? "another user has the hub's name here: a network namespace "
				   "of your own (unshare -Urn, ip link set lo up) has room"
				 : "verbatim hub stop --force, and try again");
}

/* --- the kernel's --- */

static void port(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	const struct vb_doctor_port *it = &facts->port;

	if (!it->error || it->own) {
		found(finding, it->own ? "UDP port 4791 is this user's hub's"
				       : "UDP port 4791 is free");
		return;
	}
	found(finding, "%s", *it->words ? it->words : strerror(it->error));
	lacks(finding, VB_DOCTOR_MISSING, "programs cannot open the device",
	      "end what has it (the kernel's rdma_rxe: rdma link delete NAME), or have a network "
	      "namespace of your own (unshare -Urn)");
}

static void udp(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	const struct vb_doctor_udp *it = &facts->udp;
	int error = it->socket_error ? it->socket_error : it->steer_error;
	const char *filter = facts->process.filtered
				     ? "; a seccomp filter is at work: have it allow the call"
				     : "";

	if (error) {
		found(finding, "%s: %s",
		      it->socket_error ? "a UDP socket with our options"
				       : "SO_ATTACH_REUSEPORT_CBPF, by which each gets its own",
		      strerror(error));
		lacks(finding, VB_DOCTOR_MISSING, "programs cannot open the device",
		      "it takes Linux 4.5 or later, or a sandbox that passes it on%s", filter);
		return;
	}
	if (it->gro_error || it->segment_error) {
		found(finding, "without %s%s%s", it->segment_error ? "UDP_SEGMENT" : "",
		      it->segment_error && it->gro_error ? " and " : "",
		      it->gro_error ? "UDP_GRO" : "");
		lacks(finding, VB_DOCTOR_LIMITED,
		      "each packet between hosts costs a system call: some times slower",
		      "Linux 4.18 has the one, 5.0 the other: take such a kernel%s", filter);
		return;
	}
	found(finding, "steering, UDP_SEGMENT, UDP_GRO; %.1f MiB for what is received",
	      (double)it->buffer_bytes / MIB);
	if (it->buffer_bytes < BUFFER_GOOD)
		snprintf(finding->remedy, sizeof(finding->remedy),
			 "bursts are lost less often with more: sysctl -w net.core.rmem_max=%d",
			 BUFFER_GOOD);
}

static void memfd(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	int error = facts->memory.memfd_error;

	found(finding, "memfd_create%s%s", error ? ": " : " works", error ? strerror(error) : "");
	if (error)
		lacks(finding, VB_DOCTOR_MISSING, "programs cannot open the device",
		      facts->process.filtered
			      ? "a seccomp filter is at work: have it allow memfd_create and "
				"fcntl(F_ADD_SEALS)"
			      : "it takes Linux 3.17 or later, with tmpfs, and fcntl(F_ADD_SEALS)");
}

static void shm(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	const struct vb_doctor_memory *it = &facts->memory;

	if (it->shm_error) {
		found(finding, "/dev/shm cannot be written: %s", strerror(it->shm_error));
		lacks(finding, VB_DOCTOR_LIMITED,
		      "our shared memory does without; VERBATIM_NET does not, nor do UCX, MPI and "
		      "others",
		      it->shm_error == EROFS ? "mount -o remount,rw /dev/shm"
		      : it->shm_error == ENOENT
			      ? "mkdir -p /dev/shm; mount -t tmpfs -o mode=1777 shm /dev/shm"
			      : "have it a tmpfs that this user may write: mount -t tmpfs -o "
				"mode=1777 shm /dev/shm");
		return;
	}
	found(finding, "/dev/shm has %.1f MiB, of which %.1f are free", (double)it->shm_bytes / MIB,
	      (double)it->shm_free / MIB);
	if (it->shm_free < SHM_FEW_KIB * KIB)
		lacks(finding, VB_DOCTOR_LIMITED,
		      "our shared memory does without; UCX, MPI and others may end for want of it",
		      "docker run --shm-size=1g, or mount -o remount,size=1g /dev/shm; or remove "
		      "what lies there");
}

/* Who forbids it, as far as that can be seen. */
static void reach_remedy(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	static const char means[] = "within a host the octets of READ and WRITE are copied twice";

	if (facts->sysctls.ptrace_scope > 0)
		lacks(finding, VB_DOCTOR_LIMITED, means,
		      "Yama forbids it (ptrace_scope is %ld): sysctl -w kernel.yama.ptrace_scope=0",
		      facts->sysctls.ptrace_scope);
	else if (facts->process.filtered)
		lacks(finding, VB_DOCTOR_LIMITED, means,
		      "a seccomp filter is at work: have it allow process_vm_readv and "
		      "process_vm_writev (docker run --cap-add=SYS_PTRACE)");
	else
		lacks(finding, VB_DOCTOR_LIMITED, means,
		      "a container: --cap-add=SYS_PTRACE; or VERBATIM_SHARED_MR=1");
}

static void reach(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	int error = facts->memory.reach_error;

	found(finding, "processes of this user reach each other's memory");
	if (!error)
		return;
	found(finding, "process_vm_readv of another process: %s", strerror(error));
	reach_remedy(facts, finding);
}

/* --- the view --- */

static void userns_remedy(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	static const char means[] = "no --view=mount for ordinary users, and no network namespace "
				    "of one's own (unshare -Urn)";
	const struct vb_doctor_sysctls *it = &facts->sysctls;

	if (it->userns_clone == 0)
		lacks(finding, VB_DOCTOR_LIMITED, means,
		      "sysctl -w kernel.unprivileged_userns_clone=1");
	else if (it->max_user_ns >= 0 && facts->view.userns_error == ENOSPC)
		lacks(finding, VB_DOCTOR_LIMITED, means,
		      "user.max_user_namespaces is %ld: sysctl -w user.max_user_namespaces=1000",
		      it->max_user_ns);
	else if (it->apparmor_userns == 1)
		lacks(finding, VB_DOCTOR_LIMITED, means,
		      "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
	else if (facts->process.filtered)
		lacks(finding, VB_DOCTOR_LIMITED, means,
		      "a seccomp filter is at work: have it allow unshare and clone with "
		      "CLONE_NEWUSER (docker run --security-opt seccomp=unconfined)");
	else
		lacks(finding, VB_DOCTOR_LIMITED, means,
		      "the kernel, a security module or a container forbids it: ask who set it up");
}

static void userns(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	int error = facts->view.userns_error;

	if (!error) {
		found(finding, "user and mount namespaces are allowed");
		return;
	}
	found(finding, "a user and a mount namespace: %s%s", strerror(error),
	      facts->view.may_mount ? "; not needed, since this user may mount" : "");
	if (!facts->view.may_mount)
		userns_remedy(facts, finding);
}

static void view(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	const struct vb_doctor_view *it = &facts->view;
	char why[VB_DOCTOR_WORDS_BYTES] = "";
	int error = it->error ? it->error : it->shown.error;

	if (!it->tried || error || it->shown.by == VB_VIEW_SHOW_NONE) {
		found(finding, "--view=auto shows nothing: %s",
		      !it->tried ? "looking at it did not end" : strerror(error));
		lacks(finding, VB_DOCTOR_LIMITED,
		      "programs that look for a device in /dev and /sys find none",
		      !*it->base ? "a folder is needed that this user may write: /dev/shm, "
				   "$XDG_RUNTIME_DIR, $TMPDIR or /tmp"
		      : error == ENOSPC ? "%s is full: remove what lies there, or have it larger"
					: "VERBATIM_LOG=stderr verbatim run -- true says more; the "
					  "files are in %s",
		      it->base);
		return;
	}
	if (it->shown.by == VB_VIEW_SHOW_MOUNT) {
		found(finding, "--view=auto takes mount, since this user may mount; files in %s",
		      it->base);
		return;
	}
	if (it->shown.mount_error)
		vb_view_show_why(why, sizeof(why), it->shown.mount_step, it->shown.mount_error);
	if (!*why)
		snprintf(why, sizeof(why), "this user may not mount%s",
			 it->userns_error ? "" : " outside of a user namespace (--view=mount)");
	found(finding, "--view=auto takes preload, since %s%s; files in %s",
	      it->shown.mount_error ? "mounting fails: " : "", why, it->base);
	if (it->shown.mount_error)
		lacks(finding, VB_DOCTOR_LIMITED,
		      "programs that are linked statically do not see the device in /dev and /sys",
		      it->shown.mount_error == EMFILE
			      ? "raise the limit of descriptors, see above"
			      : "a container's security profile may forbid mounts: docker run "
				"--security-opt apparmor=unconfined; other programs are well "
				"served");
}

/* --- the process --- */

static void limits(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	const struct vb_doctor_process *it = &facts->process;

	found(finding, "%" PRIu64 " descriptors (%" PRIu64 " at most); no memory has to be locked",
	      it->files, it->files_most);
	if (it->files < FILES_NONE || it->files_most < FILES_FEW) {
		lacks(finding, it->files < FILES_NONE ? VB_DOCTOR_MISSING : VB_DOCTOR_LIMITED,
		      it->files < FILES_NONE ? "programs cannot open the device"
					     : "the hub, which has the hard limit, serves fewer "
					       "processes",
		      it->files_most < FILES_FEW
			      ? "raise the hard limit, as root: prlimit --nofile=65536:65536 "
				"--pid=PID, or in /etc/security/limits.conf"
			      : "ulimit -n %" PRIu64,
		      it->files_most);
	} else if (it->file_bytes != RLIM_INFINITY) {
		found(finding, "files may have %" PRIu64 " octets (RLIMIT_FSIZE)", it->file_bytes);
		lacks(finding, VB_DOCTOR_LIMITED,
		      "no shared memory where that is too little: UDP instead",
		      "ulimit -f unlimited");
	}
}

static void cpus(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	const struct vb_doctor_process *it = &facts->process;
	bool few = it->cpus < 2 || (it->cpu_percent && it->cpu_percent < 200);

	found(finding, "%u", it->cpus);
	if (it->cpu_percent)
		found(finding, "%u, of which a cgroup grants %u %%", it->cpus, it->cpu_percent);
	if (few)
		lacks(finding, VB_DOCTOR_LIMITED,
		      "programs that poll take turns: latencies are the scheduler's",
		      "give it two: taskset -c 0,1, docker run --cpus=2");
}

static void proc(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	found(finding, facts->process.proc ? "/proc is there" : "/proc is not mounted");
	if (!facts->process.proc)
		lacks(finding, VB_DOCTOR_LIMITED,
		      "processes do not reach each other's memory, and messages say less",
		      "mount -t proc proc /proc");
}

/* --- devices, addresses, speed --- */

static void devices(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	const struct vb_doctor_devices *it = &facts->devices;
	const struct vb_doctor_device *bad = NULL;

	for (unsigned i = 0; i < it->count && !bad; i++)
		bad = it->device[i].error ? &it->device[i] : NULL;
	if (it->looked && it->count && !bad) {
		found(finding, "%u: %s%s", it->count, it->device[0].name,
		      it->count > 1 ? " ..." : "");
		return;
	}
	if (!it->looked)
		found(finding, "opening the device did not end%s%s", *it->log ? ": " : "", it->log);
	else
		found(finding, "%s: %s", bad ? bad->name : "there is none",
		      *it->log ? it->log : strerror(bad ? bad->error : it->error));
	lacks(finding, VB_DOCTOR_MISSING, "programs cannot open the device",
	      "the lines above that are missing say what to do; VERBATIM_LOG=stderr verbatim "
	      "devices says it again");
}

static void address(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	const struct vb_doctor_devices *it = &facts->devices;
	unsigned opened = 0, gids = 0, far = 0, down = 0;
	const char *first = "", *name = "";

	for (unsigned i = 0; i < it->count; i++) {
		if (it->device[i].error)
			continue;
		opened++;
		gids += it->device[i].gids;
		far += it->device[i].gids_far;
		if (!it->device[i].active && !down++)
			name = it->device[i].name;
		if (!*first)
			first = it->device[i].gid;
	}
	found(finding, "%u GID%s, the first is %s", gids, gids == 1 ? "" : "s", first);
	if (!opened) {
		found(finding, "not known without a device that opens");
	} else if (!gids) {
		found(finding, "no interface with an address is up, so there is no GID");
		lacks(finding, VB_DOCTOR_MISSING, "programs have no address, and reach nobody",
		      "ip link set lo up is enough within the host; for others: ip link set IF "
		      "up; ip addr add ADDRESS/24 dev IF");
	} else if (down) {
		found(finding, "%s has no interface that is up", name);
		lacks(finding, VB_DOCTOR_LIMITED, "nothing is reached by this device",
		      "ip link set IF up, or another IF for it in VERBATIM_DEVICES");
	} else if (!far) {
		found(finding, "loopback addresses alone: %s", first);
		lacks(finding, VB_DOCTOR_LIMITED, "within this host all works; no other is reached",
		      "for other hosts: ip link set IF up; ip addr add ADDRESS/24 dev IF");
	}
}

static void mtu(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	const struct vb_doctor_devices *it = &facts->devices;
	const struct vb_doctor_device *least = NULL;

	for (unsigned i = 0; i < it->count; i++) {
		if (it->device[i].active && (!least || it->device[i].mtu < least->mtu))
			least = &it->device[i];
	}
	found(finding, "not known without a port that is up");
	if (!least)
		return;
	found(finding, "the path MTU of %s is %u", least->name, least->mtu);
	if (least->mtu < PATH_MTU_LEAST)
		lacks(finding, VB_DOCTOR_LIMITED,
		      "small packets: slow, and programs may ask for an MTU of 1024",
		      "ip link set IF mtu 1500");
}

static void hardware(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	if (*facts->hardware)
		found(finding, "the kernel has %s; programs that `verbatim run` starts do not use "
			       "it, and others do", facts->hardware);
	else
		found(finding, "the kernel has no RDMA device");
}

static void ethernet(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	int packet = facts->raw.packet_error, tun = facts->raw.tun_error;

	if (!packet && !tun) {
		found(finding, "packet sockets and TAP devices are allowed");
		return;
	}
	found(finding, "%s: %s", packet ? "a packet socket" : "/dev/net/tun",
	      strerror(packet ? packet : tun));
	lacks(finding, VB_DOCTOR_LIMITED,
	      packet ? "VERBATIM_ETH joins no interface of the host; all else of Ethernet works"
		     : "VERBATIM_ETH=tap:NAME makes no TAP device; all else of Ethernet works",
	      packet ? "CAP_NET_RAW: as root, docker run --cap-add=NET_RAW, or unshare -Urn"
		     : "have the module tun loaded (modprobe tun), and the file in the container "
		       "(docker run --device /dev/net/tun)");
}

static void speed(const struct vb_doctor_speed *it, const char *link,
		  struct vb_doctor_finding *finding)
{
	if (it->measured) {
		found(finding, "%.2f us one way, %.2f GB/s", it->latency_ns / 1000,
		      it->octets_per_s / 1e9);
		return;
	}
	found(finding, "not measured");
	if (!*it->why)
		return;
	found(finding, "two processes do not reach each other by %s: %s", link, it->why);
	lacks(finding, VB_DOCTOR_MISSING, "programs do not work by this link",
	      "the lines above say why; verbatim status shows which link others take");
}

static void by_shm(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	speed(&facts->speed[VB_DOCTOR_SHM], "shared memory", finding);
	/* UDP takes its place, and that is judged on its own. */
	if (finding->verdict == VB_DOCTOR_MISSING && facts->speed[VB_DOCTOR_UDP].measured)
		lacks(finding, VB_DOCTOR_LIMITED, "within the host UDP is used, which is slower",
		      "the lines above say why; verbatim status shows it for each pair");
}

static void by_udp(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding)
{
	speed(&facts->speed[VB_DOCTOR_UDP], "UDP", finding);
}

/* In the order in which one thing stands on another. */
const struct vb_doctor_check vb_doctor_checks[] = {
	{ "library", library },	  { "settings", settings }, { "limits", limits },
	{ "cpus", cpus },	  { "proc", proc },	    { "memfd", memfd },
	{ "udp", udp },		  { "port", port },	    { "hub", hub },
	{ "hardware", hardware }, { "devices", devices },   { "address", address },
	{ "mtu", mtu },		  { "reach", reach },	    { "shm", shm },
	{ "userns", userns },	  { "view", view },	    { "ethernet", ethernet },
	{ "by-shm", by_shm },	  { "by-udp", by_udp },	    { NULL },
};

const char *vb_doctor_verdict_name(enum vb_doctor_verdict verdict)
{
	static const char *const names[] = {
		[VB_DOCTOR_OK] = "ok",
		[VB_DOCTOR_LIMITED] = "limited",
		[VB_DOCTOR_MISSING] = "missing",
	};

	return names[verdict];
}
