/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/holders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/failure.h"
#include "hub/channel.h"
#include "hub/procs.h"
#include "hub/users.h"

enum { PORT = 4791, LINE_BYTES = 512 };

/* --- the kernel's tables --- */

static void inode_add(struct vb_holders *holders, uint64_t inode)
{
	if (inode && holders->inodes < VB_HOLDERS_INODES)
		holders->inode[holders->inodes++] = inode;
}

static void uid_add(struct vb_holders *holders, uint32_t uid)
{
	for (unsigned i = 0; i < holders->uids; i++) {
		if (holders->uid[i] == uid)
			return;
	}
	if (holders->uids < VB_HOLDERS_UIDS)
		holders->uid[holders->uids++] = uid;
}

/* proc(5): sl, local address:port, remote one, st, queues, timer, retransmissions, uid, ... */
void vb_holders_udp_read(struct vb_holders *holders, FILE *udp)
{
	char line[LINE_BYTES];

	holders->known = true;
	while (fgets(line, sizeof(line), udp)) {
		unsigned port;
		uint64_t inode;
		uint32_t uid;

		if (sscanf(line,
			   " %*[0-9]: %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %" SCNu32
			   " %*s %" SCNu64,
			   &port, &uid, &inode) != 3 ||
		    port != PORT)
			continue;
		holders->sockets++;
		uid_add(holders, uid);
		inode_add(holders, inode);
	}
}

static void hub_add(struct vb_holders *holders, uint32_t uid, int protocol)
{
	if (holders->hubs < VB_HOLDERS_HUBS)
		holders->hub[holders->hubs++] =
			(struct vb_holders_hub){.name_uid = uid, .protocol = protocol};
}

static void slot_owned(struct vb_holders *holders, uint32_t uid, int protocol)
{
	if (uid != holders->self)
		return;
	if (protocol == VB_HUB_PROTOCOL)
		holders->own_slots = true;
	else
		holders->old_slots = protocol;
}

/* Num, RefCount, Protocol, Flags, Type, St, Inode, Path. Listening sockets have a flag. */
void vb_holders_unix_read(struct vb_holders *holders, FILE *names)
{
	enum { LISTENS = 0x10000 };
	char line[LINE_BYTES], name[LINE_BYTES];

	while (fgets(line, sizeof(line), names)) {
		int protocol, slot;
		unsigned flags;
		uint64_t inode;
		uint32_t uid;

		if (sscanf(line, "%*s %*s %*s %x %*s %*s %" SCNu64 " %s", &flags, &inode, name) !=
		    3)
			continue;
		if (sscanf(name, "@verbatim-slot-%" SCNu32 "-%d-%d", &uid, &protocol, &slot) == 3) {
			holders->slots++;
			slot_owned(holders, uid, protocol);
			inode_add(holders, inode);
		} else if ((flags & LISTENS) &&
			   sscanf(name, "@verbatim-hub-%" SCNu32 "-%d", &uid, &protocol) == 2) {
			hub_add(holders, uid, protocol);
		}
	}
}

/* --- the processes behind them --- */

static FILE *proc_open(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/thread-self/net/%s", name);
	return fopen(path, "re");
}

static bool table_read(struct vb_holders *holders, const char *name,
		       void (*read)(struct vb_holders *, FILE *))
{
	FILE *table = proc_open(name);

	if (!table)
		return false;
	read(holders, table);
	fclose(table);
	return true;
}

/* Leaves out hubs that are gone by now, and our own, which reports this. */
static void hubs_ask(struct vb_holders *holders)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < holders->hubs; i++) {
		struct vb_holders_hub hub = holders->hub[i];

		if (hub.name_uid == holders->self && hub.protocol == VB_HUB_PROTOCOL)
			continue;
		if (!vb_hub_who(hub.name_uid, hub.protocol, &hub.pid, &hub.uid))
			holders->hub[kept++] = hub;
	}
	holders->hubs = kept;
}

static void process_add(void *arg, pid_t pid)
{
	struct vb_holders *holders = arg;
	unsigned i;

	for (i = 0; i < holders->hubs; i++) {
		if (holders->hub[i].pid == pid)
			return;
	}
	i = holders->processes++;
	if (i < VB_HOLDERS_PROCESSES) {
		struct vb_holders_process *process = &holders->process[i];

		process->pid = pid;
		vb_procs_name(pid, process->comm);
		process->stopped = vb_procs_is_stopped(pid);
	}
}

void vb_holders_look(struct vb_holders *holders)
{
	*holders = (struct vb_holders){
		.self = geteuid(),
		.nobody = vb_users_nobody(),
		.rxe = !access("/sys/module/rdma_rxe", F_OK),
	};
	table_read(holders, "udp", vb_holders_udp_read);
	table_read(holders, "udp6", vb_holders_udp_read);
	table_read(holders, "unix", vb_holders_unix_read);
	hubs_ask(holders);
	vb_procs_find(holders->inode, holders->inodes, process_add, holders);
}

bool vb_holders_any_slot(void)
{
	struct vb_holders holders = {.self = geteuid()};

	return table_read(&holders, "unix", vb_holders_unix_read) && holders.own_slots;
}

/* --- in words --- */

struct words {
	char *text;
	size_t bytes, used;
};

static void __attribute__((format(printf, 2, 3))) add(struct words *words, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(words->text + words->used, words->bytes - words->used, format, args);
	va_end(args);
	if (n > 0)
		words->used += (size_t)n;
	if (words->used >= words->bytes)
		words->used = words->bytes - 1;
}

/* A uid that stands for several users identifies none of them. */
static bool is_self(const struct vb_holders *holders, uint32_t uid)
{
	return uid == holders->self && (!holders->nobody || uid != holders->nobody);
}

static void uid_say(struct words *words, const struct vb_holders *holders, uint32_t uid)
{
	char text[96];

	vb_users_words(text, sizeof(text), uid, holders->nobody);
	add(words, is_self(holders, uid) ? "this user (%s)" : "%s", text);
}

static void processes_say(struct words *words, const struct vb_holders *holders)
{
	for (unsigned i = 0; i < holders->processes && i < VB_HOLDERS_PROCESSES; i++) {
		const struct vb_holders_process *process = &holders->process[i];

		add(words, "%spid %d (%s%s)", i ? ", " : ": ", (int)process->pid, process->comm,
		    process->stopped ? ", stopped" : "");
	}
	if (holders->processes > VB_HOLDERS_PROCESSES)
		add(words, " and %u more", holders->processes - VB_HOLDERS_PROCESSES);
}

/* The living hub whose sockets these are; NULL: none. */
static const struct vb_holders_hub *hub_find(const struct vb_holders *holders)
{
	for (unsigned i = 0; i < holders->hubs; i++) {
		for (unsigned k = 0; k < holders->uids; k++) {
			if (holders->hub[i].uid == holders->uid[k])
				return &holders->hub[i];
		}
	}
	return NULL;
}

#define OTHER_VERSION "another version of verbatim (protocol %d, this is %d)"

/* Two versions do not share the port: says which program holds the other, and what ends it. */
static void old_hub_say(struct words *words, const struct vb_holders *holders,
			const struct vb_holders_hub *hub)
{
	add(words, ", which is of " OTHER_VERSION "; programs that opened the device with that one",
	    hub->protocol, VB_HUB_PROTOCOL);
	processes_say(words, holders);
	add(words, "; end them, and it leaves some seconds later");
}

static void hub_say(struct words *words, const struct vb_holders *holders,
		    const struct vb_holders_hub *hub)
{
	bool same = is_self(holders, hub->uid);

	add(words, " by the hub");
	if (hub->pid)
		add(words, " (pid %d)", (int)hub->pid);
	add(words, " of ");
	uid_say(words, holders, hub->uid);
	if (same && hub->name_uid != holders->self)
		add(words,
		    " in another user namespace, where the uid is %" PRIu32 " and not %" PRIu32
		    ": run both in one user namespace, or in two network namespaces",
		    hub->name_uid, holders->self);
	else if (same)
		old_hub_say(words, holders, hub);
	else
		add(words, "; a network namespace has room for one user");
	/* A user who can end the programs needs no other namespace, and the line would be long. */
	if (!same || hub->name_uid != holders->self)
		add(words, VB_OWN_NETNS);
}

/* No living hub owns the sockets. */
static void sockets_say(struct words *words, const struct vb_holders *holders)
{
	bool ours = false;

	for (unsigned i = 0; i < holders->uids; i++)
		ours |= is_self(holders, holders->uid[i]);
	if (ours && holders->old_slots && !holders->own_slots) {
		add(words, " by sockets of a hub that has died, of " OTHER_VERSION
		    "; programs of this user hold them", holders->old_slots, VB_HUB_PROTOCOL);
		processes_say(words, holders);
		add(words, "; end them");
		return;
	}
	if (ours && holders->slots) {
		add(words, " by sockets of a hub that has died; programs of this user hold them, "
			   "and have not handed them on");
		processes_say(words, holders);
		add(words, "; let them go on (kill -CONT), or end them");
		return;
	}
	add(words, " by ");
	for (unsigned i = 0; i < holders->uids; i++) {
		add(words, "%s%s", i ? " and " : "",
		    is_self(holders, holders->uid[i]) ? "another program of " : "");
		uid_say(words, holders, holders->uid[i]);
	}
	processes_say(words, holders);
	if (holders->rxe && !ours)
		add(words, "; the kernel's rdma_rxe is loaded, which takes this port");
	add(words, VB_OWN_NETNS);
}

const char *vb_holders_words(const struct vb_holders *holders, char *text, size_t bytes)
{
	const struct vb_holders_hub *hub = hub_find(holders);
	struct words words = {text, bytes, 0};

	if (!holders->known) {
		add(&words, "UDP port %d is taken here; by whom is unknown without /proc", PORT);
		return text;
	}
	if (!holders->sockets) {
		add(&words, "UDP port %d was taken here a moment ago, and is free now", PORT);
		return text;
	}
	add(&words, "UDP port %d is taken here", PORT);
	if (hub)
		hub_say(&words, holders, hub);
	else
		sockets_say(&words, holders);
	return text;
}

int vb_holders_failed(void)
{
	struct vb_holders holders;
	char text[VB_FAILURE_BYTES];

	vb_holders_look(&holders);
	return vb_failed_because(EADDRINUSE, vb_holders_words(&holders, text, sizeof(text)));
}
