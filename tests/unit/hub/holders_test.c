/* SPDX-License-Identifier: BSD-2-Clause */

/* Who holds port 4791: what the kernel's tables say of it, and in which words that is told. */
#include "group.h"
#include "hub/holders.h"
#include "hub/users.h"

/* proc(5), /proc/net/udp: 0x12B7 is 4791; the second is another port, the third a peer's. */
static const char udp[] = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
			  "retrnsmt   uid  timeout "
			  "inode ref pointer drops\n"
			  " 4791: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 "
			  "00000000  1000        0 "
			  "22001 2 0000000000000000 0\n"
			  " 4792: 00000000:12B8 00000000:0000 07 00000000:00000000 00:00000000 "
			  "00000000     7        0 "
			  "22002 2 0000000000000000 0\n"
			  " 4793: 0100007F:1000 0100007F:12B7 01 00000000:00000000 00:00000000 "
			  "00000000     8        0 "
			  "22003 2 0000000000000000 0\n";

static const char udp6[] =
	"  sl  local_address                         remote_address                        st "
	"tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n"
	"12590: 00000000000000000000000000000000:12B7 00000000000000000000000000000000:0000 07 "
	"00000000:00000000 00:00000000 00000000  1000        0 22004 2 0000000000000000 0\n"
	"12590: 00000000000000000000000000000000:12B7 00000000000000000000000000000000:0000 07 "
	"00000000:00000000 00:00000000 00000000     0        0 0 2 0000000000000000 0\n";

/* One listens, one is a connection to it, one a slot's name, and some are others'. */
static const char names[] =
	"Num       RefCount Protocol Flags    Type St Inode Path\n"
	"00000000139d5b22: 00000002 00000000 00010000 0005 01 31001 @verbatim-hub-1000-6\n"
	"00000000fae27f69: 00000003 00000000 00000000 0005 03 31002 @verbatim-hub-1000-6\n"
	"000000007191b561: 00000002 00000000 00000000 0005 01 31003 @verbatim-slot-1000-6-1\n"
	"000000007191b562: 00000002 00000000 00010000 0005 01 31004 @verbatim-hub-0-4\n"
	"000000007191b563: 00000002 00000000 00010000 0001 01 31005 /run/verbatim-hub-7-6\n"
	"000000007191b564: 00000003 00000000 00000000 0001 03 31006\n";

static void text_read(struct vb_holders *holders, void (*read)(struct vb_holders *, FILE *),
		      const char *text)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");

	assert_non_null(file);
	read(holders, file);
	fclose(file);
}

TEST(the_tables_are_read)
{
	struct vb_holders holders = {.known = false};

	text_read(&holders, vb_holders_udp_read, udp);
	text_read(&holders, vb_holders_udp_read, udp6);
	assert_true(holders.known);
	assert_int_equal(holders.sockets, 3);
	assert_int_equal(holders.uids, 2);
	assert_int_equal(holders.uid[0], 1000);
	assert_int_equal(holders.uid[1], 0);
	text_read(&holders, vb_holders_unix_read, names);
	assert_int_equal(holders.hubs, 2);
	assert_int_equal(holders.hub[0].name_uid, 1000);
	assert_int_equal(holders.hub[0].protocol, 6);
	assert_int_equal(holders.hub[1].name_uid, 0);
	assert_int_equal(holders.hub[1].protocol, 4);
	assert_int_equal(holders.slots, 1);
	assert_int_equal(holders.inodes, 3);
	assert_int_equal(holders.inode[0], 22001);
	assert_int_equal(holders.inode[1], 22004);
	assert_int_equal(holders.inode[2], 31003);
}

TEST(more_than_there_is_room_for_is_left_out)
{
	struct vb_holders holders = {.known = false};
	char text[64 * 200] = "";
	size_t used = 0;

	for (unsigned i = 0; i < 100; i++)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used,
			" %u: 00000000:12B7 00000000:0000 07 0:0 0:0 0 %u 0 %u 2\n", i, i, i + 1);
	text_read(&holders, vb_holders_udp_read, text);
	assert_int_equal(holders.sockets, 100);
	assert_int_equal(holders.uids, VB_HOLDERS_UIDS);
	assert_int_equal(holders.inodes, VB_HOLDERS_INODES);
}

static uint32_t nobody(const char *map)
{
	FILE *file = fmemopen((void *)map, strlen(map), "r");
	uint32_t uid = vb_users_nobody_read(file, NULL);

	fclose(file);
	return uid;
}

TEST(nobody_is_who_has_no_number)
{
	/* Everybody has one; root alone has one; some have; not known. */
	assert_int_equal(nobody("         0          0 4294967295\n"), 0);
	assert_int_equal(nobody("         0       1000          1\n"), 65534);
	assert_int_equal(nobody("         0       1000          1\n   65000       100000  1000\n"),
			 0);
	assert_int_equal(vb_users_nobody_read(NULL, NULL), 65534);
}

#define TAKEN "UDP port 4791 is taken here"
#define OWN "; `unshare -Urn` starts a shell with a network namespace of " \
	"its own, where `ip link set lo up` comes first"

/* clang-format off */
static const struct {
	struct vb_holders holders;
	const char *words;
} cases[] = {
	{ { .known = false },
	  TAKEN "; by whom is unknown without /proc" },
	{ { .known = true },
	  "UDP port 4791 was taken here a moment ago, and is free now" },
	/* Another user's hub. */
	{ { .known = true, .self = 1000, .sockets = 16, .uids = 1, .uid = {1001},
	    .hubs = 1, .hub = {{1001, 6, 77, 1001}} },
	  TAKEN " by the hub (pid 77) of uid 1001; a network namespace has room for one user" OWN },
	/* The same, in another PID namespace and another user namespace. */
	{ { .known = true, .self = 0, .nobody = 65534, .sockets = 16, .uids = 1, .uid = {65534},
	    .hubs = 1, .hub = {{1001, 6, 0, 65534}} },
	  TAKEN " by the hub of a user of another user namespace, without a number in this one; "
	  "a network namespace has room for one user" OWN },
	/* Nobody's number says nothing of who it is, even if it is one's own. */
	{ { .known = true, .self = 65534, .nobody = 65534, .sockets = 16, .uids = 1, .uid = {65534},
	    .hubs = 1, .hub = {{1001, 6, 5, 65534}} },
	  TAKEN " by the hub (pid 5) of a user of another user namespace, without a number in this "
	  "one; a network namespace has room for one user" OWN },
	/* Our own, who calls himself 1000 where he is. */
	{ { .known = true, .self = 0, .nobody = 65534, .sockets = 16, .uids = 1, .uid = {0},
	    .hubs = 1, .hub = {{1000, 6, 77, 0}} },
	  TAKEN " by the hub (pid 77) of this user (uid 0) in another user namespace, where the "
	  "uid is 1000 and not 0: run both in one user namespace, or in two network namespaces"
	  OWN },
	/* Our own of another version. */
	{ { .known = true, .self = 1000, .sockets = 16, .uids = 1, .uid = {1000},
	    .hubs = 1, .hub = {{1000, 4, 77, 1000}},
	    .processes = 2, .process = {{12, "old", false}, {13, "stale", true}} },
	  TAKEN " by the hub (pid 77) of this user (uid 1000), which is of another version of "
	  "verbatim (protocol 4, this is %d); programs that opened the device with that one: "
	  "pid 12 (old), pid 13 (stale, stopped); end them, and it leaves some seconds later" },
	/* It has died, and its programs go on. */
	{ { .known = true, .self = 1000, .sockets = 16, .uids = 1, .uid = {1000}, .slots = 1,
	    .old_slots = 4, .processes = 1, .process = {{12, "old", false}} },
	  TAKEN " by sockets of a hub that has died, of another version of verbatim (protocol 4, "
	  "this is %d); programs of this user hold them: pid 12 (old); end them" },
	/* A hub that is there has not these sockets. */
	{ { .known = true, .self = 1000, .sockets = 1, .uids = 1, .uid = {1000},
	    .hubs = 1, .hub = {{7, 6, 77, 7}},
	    .processes = 1, .process = {{12, "socat", false}} },
	  TAKEN " by another program of this user (uid 1000): pid 12 (socat)" OWN },
	/* A dead hub, whose programs are stopped. */
	{ { .known = true, .self = 1000, .sockets = 16, .uids = 1, .uid = {1000}, .slots = 5,
	    .processes = 5, .process = {{1, "a", true}, {2, "b", false}, {3, "c", true}} },
	  TAKEN " by sockets of a hub that has died; programs of this user hold them, and have not "
	  "handed them on: pid 1 (a, stopped), pid 2 (b), pid 3 (c, stopped) and 2 more; let them "
	  "go on (kill -CONT), or end them" },
	/* Those of somebody else. */
	{ { .known = true, .self = 1000, .sockets = 16, .uids = 1, .uid = {1001}, .slots = 5 },
	  TAKEN " by uid 1001" OWN },
	{ { .known = true, .self = 1000, .sockets = 2, .uids = 2, .uid = {1001, 1000} },
	  TAKEN " by uid 1001 and another program of this user (uid 1000)" OWN },
	/* The kernel's. */
	{ { .known = true, .rxe = true, .self = 1000, .sockets = 2, .uids = 1, .uid = {0} },
	  TAKEN " by uid 0; the kernel's rdma_rxe is loaded, which takes this port" OWN },
};
/* clang-format on */

TEST(the_words_say_who_it_is)
{
	char text[512], words[512];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(words, sizeof(words), cases[i].words, VB_HUB_PROTOCOL);
		assert_string_equal(vb_holders_words(&cases[i].holders, text, sizeof(text)), words);
	}
}

TEST(the_words_are_cut_where_the_room_ends)
{
	char text[40];

	vb_holders_words(&cases[2].holders, text, sizeof(text));
	assert_string_equal(text, "UDP port 4791 is taken here by the hub ");
}
