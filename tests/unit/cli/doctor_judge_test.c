/* SPDX-License-Identifier: BSD-2-Clause */
/* What `verbatim doctor` makes of what it has seen: each thing that may be broken. */
#include "cli/doctor/judge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/check.h"
#include "group.h"

/* A machine on which all is well. */
static struct vb_doctor_facts sound(void)
{
	struct vb_doctor_facts facts = {
		.library = "/usr/lib/verbatim",
		.sysctls = { VB_DOCTOR_UNKNOWN, VB_DOCTOR_UNKNOWN, 1000, VB_DOCTOR_UNKNOWN },
		.process = { .files = 1024, .files_most = 4096, .file_bytes = RLIM_INFINITY,
			     .cpus = 2, .proc = true },
		.memory = { .shm_bytes = 1 << 30, .shm_free = 1 << 30 },
		.view = { .tried = true, .shown = { .by = VB_VIEW_SHOW_PRELOAD },
			  .base = "/dev/shm" },
		.hub = { .error = ECONNREFUSED },
		.udp = { .buffer_bytes = 8 << 20 },
		.devices = { .looked = true, .count = 1,
			     .device = { { .name = "verbatim0", .active = true, .mtu = 4096,
					   .gids = 2, .gids_far = 1, .gid = "10.0.0.1" } } },
	};

	return facts;
}

static struct vb_doctor_finding judge(const struct vb_doctor_facts *facts, const char *name)
{
	struct vb_doctor_finding finding = { 0 };

	for (const struct vb_doctor_check *check = vb_doctor_checks; check->name; check++) {
		if (strcmp(check->name, name) != 0)
			continue;
		check->judge(facts, &finding);
		return finding;
	}
	fail_msg("there is no check %s", name);
	return finding;
}

/* All else stays ok; what is not has a line of what it means, and of what to do. */
static void expect(const struct vb_doctor_facts *facts, const char *name,
		   enum vb_doctor_verdict verdict, const char *found, const char *remedy)
{
	struct vb_doctor_finding finding = judge(facts, name);

	assert_int_equal(finding.verdict, verdict);
	if (!strstr(finding.found, found))
		fail_msg("%s: '%s' lacks '%s'", name, finding.found, found);
	if (!strstr(finding.remedy, remedy))
		fail_msg("%s: '%s' lacks '%s'", name, finding.remedy, remedy);
	assert_int_equal(finding.means != NULL, verdict != VB_DOCTOR_OK);
	for (const struct vb_doctor_check *check = vb_doctor_checks; check->name; check++) {
		if (strcmp(check->name, name) != 0)
			assert_int_equal(judge(facts, check->name).verdict, VB_DOCTOR_OK);
	}
}

TEST(a_sound_machine_is_ok)
{
	struct vb_doctor_facts facts = sound();

	for (const struct vb_doctor_check *check = vb_doctor_checks; check->name; check++) {
		struct vb_doctor_finding finding = judge(&facts, check->name);

		assert_int_equal(finding.verdict, VB_DOCTOR_OK);
		assert_true(*finding.found);
		assert_null(finding.means);
		assert_string_equal(finding.remedy, "");
	}
}

TEST(what_is_ours_may_be_missing)
{
	struct vb_doctor_facts facts = sound();

	*facts.library = 0;
	expect(&facts, "library", VB_DOCTOR_MISSING, "libibverbs.so.1", "make install");
	facts = sound();
	snprintf(facts.settings.why, sizeof(facts.settings.why), "there is no setting 'X'");
	expect(&facts, "settings", VB_DOCTOR_MISSING, "there is no setting 'X'", "unset it");
	facts = sound();
	facts.hub.error = ETIMEDOUT;
	expect(&facts, "hub", VB_DOCTOR_MISSING, "does not answer", "hub stop --force");
	facts.hub.error = EPERM;
	expect(&facts, "hub", VB_DOCTOR_MISSING, "does not answer", "unshare -Urn");
	facts = sound();
	facts.devices.device[0].error = ENOENT;
	snprintf(facts.devices.log, sizeof(facts.devices.log), "there is no verbatimd");
	expect(&facts, "devices", VB_DOCTOR_MISSING, "verbatim0: there is no verbatimd", "above");
	facts.devices = (struct vb_doctor_devices){ 0 };
	expect(&facts, "devices", VB_DOCTOR_MISSING, "did not end", "verbatim devices");
}

TEST(the_port_and_sockets)
{
	struct vb_doctor_facts facts = sound();

	facts.port.error = EADDRINUSE;
	snprintf(facts.port.words, sizeof(facts.port.words), "taken by pid 1");
	expect(&facts, "port", VB_DOCTOR_MISSING, "taken by pid 1", "rdma link delete");
	facts.port.own = true;
	assert_int_equal(judge(&facts, "port").verdict, VB_DOCTOR_OK);
	facts = sound();
	facts.udp.steer_error = ENOPROTOOPT;
	expect(&facts, "udp", VB_DOCTOR_MISSING, "SO_ATTACH_REUSEPORT_CBPF", "Linux 4.5");
	facts.process.filtered = true;
	expect(&facts, "udp", VB_DOCTOR_MISSING, "SO_ATTACH_REUSEPORT_CBPF", "seccomp");
	facts = sound();
	facts.udp.gro_error = facts.udp.segment_error = ENOPROTOOPT;
	expect(&facts, "udp", VB_DOCTOR_LIMITED, "UDP_SEGMENT and UDP_GRO", "5.0");
	facts = sound();
	facts.udp.buffer_bytes = 1 << 20;
	assert_int_equal(judge(&facts, "udp").verdict, VB_DOCTOR_OK);
	assert_non_null(strstr(judge(&facts, "udp").remedy, "net.core.rmem_max"));
	facts = sound();
	facts.raw.packet_error = EPERM;
	expect(&facts, "ethernet", VB_DOCTOR_LIMITED, "packet socket", "NET_RAW");
	facts.raw = (struct vb_doctor_raw){ .tun_error = ENOENT };
	expect(&facts, "ethernet", VB_DOCTOR_LIMITED, "/dev/net/tun", "modprobe tun");
}

TEST(memory)
{
	struct vb_doctor_facts facts = sound();

	facts.memory.memfd_error = EPERM;
	expect(&facts, "memfd", VB_DOCTOR_MISSING, "not permitted", "Linux 3.17");
	facts.process.filtered = true;
	expect(&facts, "memfd", VB_DOCTOR_MISSING, "not permitted", "seccomp");
	facts = sound();
	facts.memory.shm_error = EROFS;
	expect(&facts, "shm", VB_DOCTOR_LIMITED, "Read-only", "remount,rw");
	facts.memory.shm_error = ENOENT;
	expect(&facts, "shm", VB_DOCTOR_LIMITED, "No such file", "mkdir");
	facts = sound();
	facts.memory.shm_free = 1 << 20;
	expect(&facts, "shm", VB_DOCTOR_LIMITED, "1.0 are free", "--shm-size");
	facts = sound();
	facts.memory.reach_error = EPERM;
	expect(&facts, "reach", VB_DOCTOR_LIMITED, "process_vm_readv", "SYS_PTRACE");
	facts.process.filtered = true;
	expect(&facts, "reach", VB_DOCTOR_LIMITED, "process_vm_readv", "seccomp");
	facts.sysctls.ptrace_scope = 1;
	expect(&facts, "reach", VB_DOCTOR_LIMITED, "process_vm_readv", "yama.ptrace_scope=0");
}

TEST(who_forbids_user_namespaces)
{
	struct vb_doctor_facts facts = sound();

	facts.view.userns_error = EPERM;
	expect(&facts, "userns", VB_DOCTOR_LIMITED, "not permitted", "ask who set it up");
	facts.process.filtered = true;
	expect(&facts, "userns", VB_DOCTOR_LIMITED, "not permitted", "seccomp");
	facts.sysctls.apparmor_userns = 1;
	expect(&facts, "userns", VB_DOCTOR_LIMITED, "not permitted", "apparmor_restrict");
	facts.sysctls.userns_clone = 0;
	expect(&facts, "userns", VB_DOCTOR_LIMITED, "not permitted", "unprivileged_userns_clone=1");
	facts = sound();
	facts.view.userns_error = ENOSPC;
	facts.sysctls.max_user_ns = 0;
	expect(&facts, "userns", VB_DOCTOR_LIMITED, "No space", "user.max_user_namespaces is 0");
	facts.view.may_mount = true;
	assert_int_equal(judge(&facts, "userns").verdict, VB_DOCTOR_OK);
}

TEST(the_view)
{
	struct vb_doctor_facts facts = sound();

	assert_non_null(strstr(judge(&facts, "view").found, "takes preload"));
	facts.view.shown.by = VB_VIEW_SHOW_MOUNT;
	assert_non_null(strstr(judge(&facts, "view").found, "takes mount"));
	facts = sound();
	facts.view.shown.mount_error = EPERM;
	facts.view.shown.mount_step = VB_VIEW_STEP_MOUNT;
	expect(&facts, "view", VB_DOCTOR_LIMITED, "takes preload, since mounting fails", "profile");
	facts = sound();
	facts.view.shown = (struct vb_view_shown){ .by = VB_VIEW_SHOW_NONE, .error = ENOENT };
	*facts.view.base = 0;
	expect(&facts, "view", VB_DOCTOR_LIMITED, "shows nothing", "$XDG_RUNTIME_DIR");
	facts = sound();
	facts.view.shown = (struct vb_view_shown){ .by = VB_VIEW_SHOW_NONE, .error = ENOSPC };
	expect(&facts, "view", VB_DOCTOR_LIMITED, "No space", "/dev/shm is full");
	facts = sound();
	facts.view.tried = false;
	expect(&facts, "view", VB_DOCTOR_LIMITED, "did not end", "VERBATIM_LOG");
}

TEST(the_process)
{
	struct vb_doctor_facts facts = sound();

	facts.process.files = 16;
	expect(&facts, "limits", VB_DOCTOR_MISSING, "16 descriptors", "ulimit -n 4096");
	facts.process.files_most = 16;
	expect(&facts, "limits", VB_DOCTOR_MISSING, "16 at most", "limits.conf");
	facts.process.files = facts.process.files_most = 512;
	expect(&facts, "limits", VB_DOCTOR_LIMITED, "512 at most", "prlimit");
	facts = sound();
	facts.process.file_bytes = 1 << 20;
	expect(&facts, "limits", VB_DOCTOR_LIMITED, "RLIMIT_FSIZE", "ulimit -f unlimited");
	facts = sound();
	facts.process.cpus = 1;
	expect(&facts, "cpus", VB_DOCTOR_LIMITED, "1", "taskset");
	facts.process.cpus = 8;
	facts.process.cpu_percent = 150;
	expect(&facts, "cpus", VB_DOCTOR_LIMITED, "150 %", "--cpus=2");
	facts = sound();
	facts.process.proc = false;
	expect(&facts, "proc", VB_DOCTOR_LIMITED, "not mounted", "mount -t proc");
}

TEST(addresses)
{
	struct vb_doctor_facts facts = sound();

	facts.devices.device[0].gids_far = 0;
	expect(&facts, "address", VB_DOCTOR_LIMITED, "loopback addresses alone", "ip addr add");
	facts.devices.device[0].gids = 0;
	expect(&facts, "address", VB_DOCTOR_MISSING, "no GID", "ip link set lo up");
	facts = sound();
	facts.devices.device[1] = (struct vb_doctor_device){ .name = "rail1" };
	facts.devices.count = 2;
	expect(&facts, "address", VB_DOCTOR_LIMITED, "rail1 has no interface", "ip link set IF up");
	facts = sound();
	facts.devices.device[0].mtu = 512;
	expect(&facts, "mtu", VB_DOCTOR_LIMITED, "512", "mtu 1500");
	facts = sound();
	snprintf(facts.hardware, sizeof(facts.hardware), "rxe0");
	expect(&facts, "hardware", VB_DOCTOR_OK, "rxe0", "");
}

TEST(shared_memory_has_a_substitute_and_udp_has_none)
{
	struct vb_doctor_facts facts = sound();

	facts.speed[VB_DOCTOR_UDP] = (struct vb_doctor_speed){ true, 7000, 1e9, "" };
	snprintf(facts.speed[VB_DOCTOR_SHM].why, VB_DOCTOR_WORDS_BYTES, "no answer");
	expect(&facts, "by-shm", VB_DOCTOR_LIMITED, "no answer", "verbatim status");
	assert_non_null(strstr(judge(&facts, "by-udp").found, "7.00 us one way, 1.00 GB/s"));
	facts.speed[VB_DOCTOR_SHM] = facts.speed[VB_DOCTOR_UDP];
	facts.speed[VB_DOCTOR_UDP] = (struct vb_doctor_speed){ .why = "no answer" };
	expect(&facts, "by-udp", VB_DOCTOR_MISSING, "no answer", "verbatim status");
}
