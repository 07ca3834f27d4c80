/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "group.h"
#include "run/process/env.h"

static struct vb_env env;
static char why[VB_ENV_WHY_BYTES];

/* Reads an environment of these entries, the last of which is NULL. */
static int read_all(const char *const *entries)
{
	memset(&env, 0, sizeof(env));
	env.seed = 42;
	memset(why, 'x', sizeof(why));
	return vb_env_read(&env, (char *const *)entries, why);
}

static int read_one(const char *entry)
{
	const char *const entries[] = { "PATH=/bin", entry, NULL };

	return read_all(entries);
}

TEST(without_settings_all_is_default)
{
	static const char *const none[] = { NULL };

	assert_int_equal(read_all(none), 0);
	assert_string_equal(why, "");
	assert_null(env.fault);
	assert_null(env.pcap);
	assert_null(env.trace);
	assert_null(env.record);
	assert_null(env.log);
	assert_null(env.ethernet);
	assert_null(env.device.persona);
	assert_null(env.device.table);
	assert_int_equal(env.link, VB_ENV_LINK_ANY);
	assert_int_equal(env.hub_idle_ms, VB_ENV_HUB_IDLE_MS);
	assert_int_equal(env.cm_rnr_timer, 0);
	assert_false(env.seeded);
	assert_false(env.shared_mr);
}

TEST(settings_are_read)
{
	static const char *const some[] = {
		"VERBATIM_FAULT=loss=1%", "VERBATIM_PCAP=/tmp/x.pcap", "VERBATIM_LINK=udp",
		"VERBATIM_TRACE=/tmp/x", "VERBATIM_RECORD=/tmp/y", "VERBATIM_RECORD_MB=7",
		"VERBATIM_ETH=tap:t0", "VERBATIM_SEED=0x10", "VERBATIM_SHARED_MR=1",
		"VERBATIM_PERSONA=connectx7", "VERBATIM_LOG=x", "VERBATIM_HUB=/x",
		"VERBATIM_HUB_IDLE_MS=300", "VERBATIM_CM_RNR_TIMER=31", NULL,
	};

	assert_int_equal(read_all(some), 0);
	assert_string_equal(why, "");
	assert_string_equal(env.fault, "loss=1%");
	assert_string_equal(env.pcap, "/tmp/x.pcap");
	assert_string_equal(env.trace, "/tmp/x");
	assert_string_equal(env.record, "/tmp/y");
	assert_int_equal(env.record_bytes, 7 << 20);
	assert_string_equal(env.log, "x");
	assert_string_equal(env.ethernet, "tap:t0");
	assert_int_equal(env.link, VB_ENV_LINK_UDP);
	assert_true(env.seeded);
	assert_int_equal(env.seed, 16);
	assert_string_equal(env.device.persona, "connectx7");
	assert_true(env.shared_mr);
	assert_int_equal(env.hub_idle_ms, 300);
	assert_int_equal(env.cm_rnr_timer, 31);
}

/* What changes a NIC from outside would not be in the record. */
TEST(records_do_not_go_with_everything)
{
	static const char *const others[] = { "VERBATIM_LINK=shm", "VERBATIM_ORDER=1",
					      "VERBATIM_FAULTS=/x", "VERBATIM_CHECK=/x" };
	const char *both[] = { "VERBATIM_RECORD=/tmp", NULL, NULL };

	assert_int_equal(read_all(both), 0);
	assert_int_equal(env.link, VB_ENV_LINK_UDP);
	for (size_t i = 0; i < VB_ARRAY_LEN(others); i++) {
		both[1] = others[i];
		assert_int_equal(read_all(both), EINVAL);
		assert_non_null(strstr(why, "VERBATIM_RECORD does not go with VERBATIM_"));
	}
	assert_int_equal(read_one("VERBATIM_RECORD_MB=0"), EINVAL);
	assert_int_equal(read_one("VERBATIM_RECORD_MB=1048577"), EINVAL);
}

TEST(values_have_limits)
{
	assert_int_equal(read_one("VERBATIM_SEED=18446744073709551615"), 0);
	assert_true(env.seed == UINT64_MAX);
	assert_int_equal(read_one("VERBATIM_SEED=0xffffffffffffffff"), 0);
	assert_true(env.seed == UINT64_MAX);
	assert_int_equal(read_one("VERBATIM_SEED=010"), 0);
	assert_int_equal(env.seed, 10);
	assert_int_equal(read_one("VERBATIM_HUB_IDLE_MS=86400000"), 0);
	assert_int_equal(env.hub_idle_ms, VB_ENV_HUB_IDLE_MS_MAX);
	assert_int_equal(read_one("VERBATIM_ORDER=18446744073709551615"), 0);
	assert_true(env.disorder && !env.order_iba && env.order_seed == UINT64_MAX);
	assert_int_equal(read_one("VERBATIM_ORDER=0x10,iba"), 0);
	assert_true(env.disorder && env.order_iba && env.order_seed == 16);
	assert_int_equal(read_one("VERBATIM_DCQCN=0"), 0);
	assert_true(env.no_dcqcn);
	assert_int_equal(read_one("VERBATIM_DCQCN=1"), 0);
	assert_false(env.no_dcqcn);
	assert_int_equal(read_one("VERBATIM_SHARED_MR=0"), 0);
	assert_false(env.shared_mr);
	assert_int_equal(read_one("VERBATIM_LINK=shm"), 0);
	assert_int_equal(env.link, VB_ENV_LINK_SHM);
}

/* What is not a setting, too: it may have been one, or become one. */
TEST(empty_value_is_none)
{
	static const char *const empty[] = {
		"VERBATIM_FAULT=", "VERBATIM_LINK=", "VERBATIM_SEED=", "VERBATIM_NOTHING=",
		"VERBATIM_LINK=udp", "VERBATIM_PERSONA=", NULL,
	};

	assert_int_equal(read_all(empty), 0);
	assert_null(env.fault);
	assert_false(env.seeded);
	assert_int_equal(env.link, VB_ENV_LINK_ANY); /* getenv(3) takes the first of two */
}

#define SEED	 ": it is a number from 0 to 18446744073709551615, decimal or with 0x"
#define IDLE	 ": it is a number of milliseconds from 0 to 86400000"
#define RNR_TIMER ": it is a number from 0 to 31, as min_rnr_timer of ibv_modify_qp(3)"
#define ORDER	 ": it is a seed from 0 to 18446744073709551615, with ',iba' behind it or without"
#define FAULTS	 "Faults: loss, dup, reorder, corrupt, delay, seed"
#define ETHERNET ": it is tap:NAME or the name of an interface, which has 1 to 15 characters"

TEST(bad_value_is_told_what_is_good)
{
	static const struct {
		const char *entry, *why;
	} cases[] = {
		{ "VERBATIM_LINK=tcp", "VERBATIM_LINK cannot be 'tcp': it is 'udp' or 'shm'" },
		{ "VERBATIM_LINK=UDP", "VERBATIM_LINK cannot be 'UDP': it is 'udp' or 'shm'; "
				       "did you mean 'udp'?" },
		{ "VERBATIM_DCQCN=off", "VERBATIM_DCQCN cannot be 'off': it is '0' or '1'" },
		{ "VERBATIM_SHARED_MR=yes",
		  "VERBATIM_SHARED_MR cannot be 'yes': it is '0' or '1'" },
		{ "VERBATIM_PERSONA=mlx5",
		  "VERBATIM_PERSONA cannot be 'mlx5': it is 'neutral', 'connectx7' or 'efa'" },
		{ "VERBATIM_PERSONA=conectx7", "VERBATIM_PERSONA cannot be 'conectx7': "
					       "it is 'neutral', 'connectx7' or 'efa'; did you "
					       "mean 'connectx7'?" },
		{ "VERBATIM_LOG=sdterr",
		  "VERBATIM_LOG cannot be 'sdterr': it is 'stderr' or a file, which would be "
		  "'./sdterr'; did you mean 'stderr'?" },
		{ "VERBATIM_SEED=few", "VERBATIM_SEED cannot be 'few'" SEED },
		{ "VERBATIM_SEED=7x", "VERBATIM_SEED cannot be '7x'" SEED },
		{ "VERBATIM_SEED=-7", "VERBATIM_SEED cannot be '-7'" SEED },
		{ "VERBATIM_SEED= -7", "VERBATIM_SEED cannot be ' -7'" SEED },
		{ "VERBATIM_SEED=0x", "VERBATIM_SEED cannot be '0x'" SEED },
		{ "VERBATIM_SEED=18446744073709551616",
		  "VERBATIM_SEED cannot be '18446744073709551616'" SEED },
		{ "VERBATIM_HUB_IDLE_MS=10s", "VERBATIM_HUB_IDLE_MS cannot be '10s'" IDLE },
		{ "VERBATIM_HUB_IDLE_MS=86400001",
		  "VERBATIM_HUB_IDLE_MS cannot be '86400001'" IDLE },
		{ "VERBATIM_ORDER=yes", "VERBATIM_ORDER cannot be 'yes'" ORDER },
		{ "VERBATIM_ORDER=,iba", "VERBATIM_ORDER cannot be ',iba'" ORDER },
		{ "VERBATIM_ORDER=1,ib", "VERBATIM_ORDER cannot be '1,ib'" ORDER },
		{ "VERBATIM_ETH=a/b", "VERBATIM_ETH cannot be 'a/b'" ETHERNET },
		{ "VERBATIM_CM_RNR_TIMER=32", "VERBATIM_CM_RNR_TIMER cannot be '32'" RNR_TIMER },
		{ "VERBATIM_CM_RNR_TIMER=1ms", "VERBATIM_CM_RNR_TIMER cannot be '1ms'" RNR_TIMER },
		{ "VERBATIM_FAULT=loss=1", "VERBATIM_FAULT cannot be 'loss=1': "
					   "loss=1: a percentage such as 1% is wanted" },
		{ "VERBATIM_FAULT=los=1%", "VERBATIM_FAULT cannot be 'los=1%': there is no fault "
					   "'los'; did you mean 'loss'? " FAULTS },
	};

	for (size_t i = 0; i < VB_ARRAY_LEN(cases); i++) {
		assert_int_equal(read_one(cases[i].entry), EINVAL);
		assert_string_equal(why, cases[i].why);
		assert_int_equal(env.seed, 42);
	}
}

/* All that there are, in the words of a refusal. */
static void all_settings(char list[VB_ENV_WHY_BYTES])
{
	struct vb_text text = vb_text_in(list, VB_ENV_WHY_BYTES);

	for (unsigned i = 0; i < vb_env_names.count; i++)
		vb_text_add(&text, i ? ", " : "Settings: ", vb_words_at(&vb_env_names, i), NULL);
}

TEST(unknown_setting_is_told_which_there_are)
{
	char list[VB_ENV_WHY_BYTES], expected[VB_ENV_WHY_BYTES + 80];

	all_settings(list);
	assert_non_null(strstr(list, "VERBATIM_LOG"));
	assert_int_equal(read_one("VERBATIM_LOGG=stderr"), EINVAL);
	snprintf(expected, sizeof(expected),
		 "there is no setting 'VERBATIM_LOGG'; did you mean 'VERBATIM_LOG'? %s", list);
	assert_string_equal(why, expected);
	assert_int_equal(read_one("VERBATIM_DEBUG=1"), EINVAL);
	snprintf(expected, sizeof(expected), "there is no setting 'VERBATIM_DEBUG'. %s", list);
	assert_string_equal(why, expected);
	assert_int_equal(env.seed, 42);
	/* Others' variables are not our business. */
	assert_int_equal(read_one("VERBATIMLY=1"), 0);
	assert_int_equal(read_one("verbatim_log=1"), 0);
	assert_int_equal(read_one("VERBATIM_WITHOUT_A_VALUE"), 0);
}

/* Whatever was typed, and however long it is, all of the list is there. */
TEST(longest_refusal_is_whole)
{
	char list[VB_ENV_WHY_BYTES], entry[1000] = "VERBATIM_";

	all_settings(list);
	memset(entry + strlen(entry), 'X', 900);
	memcpy(entry + strlen(entry), "=1", sizeof("=1"));
	assert_int_equal(read_one(entry), EINVAL);
	assert_non_null(strstr(why, list));
	snprintf(entry, sizeof(entry), "VERBATIM_FAULT=%0900d=1%%", 0);
	assert_int_equal(read_one(entry), EINVAL);
	assert_non_null(strstr(why, FAULTS));
	assert_true(strlen(why) < VB_ENV_WHY_BYTES - 1);
}

TEST(ethernet_names_an_interface)
{
	static const struct {
		const char *value;
		int rc;
	} rows[] = {
		{ "eth0", 0 }, { "tap:t0", 0 }, { "tap:tap", 0 }, { "tap", 0 },
		{ "of.15.chars-yes", 0 }, { "tap:of.15.chars-yes", 0 }, { "...", 0 },
		{ "of.16.chars-none", EINVAL }, { "tap:of.16.chars-none", EINVAL },
		{ "tap:", EINVAL }, { "tap:a b", EINVAL }, { "a\tb", EINVAL }, { " a", EINVAL },
		{ "tun:a", EINVAL }, { "tap:tap:a", EINVAL }, { "/dev/x", EINVAL },
		{ ".", EINVAL }, { "tap:..", EINVAL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char entry[64];

		snprintf(entry, sizeof(entry), "VERBATIM_ETH=%s", rows[i].value);
		assert_int_equal(read_one(entry), rows[i].rc);
		if (!rows[i].rc)
			assert_string_equal(env.ethernet, rows[i].value);
	}
}
