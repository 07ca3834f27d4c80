/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/env.h"

/* The environment of a test: names and values, ended by NULL. */
static const char *const *environment;

static char *get(const char *name)
{
	for (const char *const *entry = environment; *entry; entry += 2) {
		if (strcmp(entry[0], name) == 0)
			return (char *)entry[1];
	}
	return NULL;
}

static void without_settings_all_is_default(void **state)
{
	static const char *const none[] = { NULL };
	const char *bad = NULL;
	struct vb_env env;

	environment = none;
	assert_int_equal(vb_env_read(&env, get, &bad), 0);
	assert_null(env.fault);
	assert_null(env.pcap);
	assert_null(env.persona);
	assert_false(env.seeded);
	assert_false(env.shared_mr);
}

static void settings_are_read(void **state)
{
	static const char *const some[] = {
		"VERBATIM_FAULT", "loss=1%", "VERBATIM_PCAP", "/tmp/x.pcap", "VERBATIM_LINK", "udp",
		"VERBATIM_ETH", "tap:t0", "VERBATIM_SEED", "0x10", "VERBATIM_SHARED_MR", "1",
		"VERBATIM_PERSONA", "connectx7", NULL,
	};
	const char *bad = NULL;
	struct vb_env env;

	environment = some;
	assert_int_equal(vb_env_read(&env, get, &bad), 0);
	assert_string_equal(env.fault, "loss=1%");
	assert_string_equal(env.pcap, "/tmp/x.pcap");
	assert_string_equal(env.ethernet, "tap:t0");
	assert_true(env.seeded);
	assert_int_equal(env.seed, 16);
	assert_string_equal(env.persona, "connectx7");
	assert_true(env.shared_mr);
}

static void empty_value_is_none(void **state)
{
	static const char *const empty[] = {
		"VERBATIM_FAULT", "", "VERBATIM_LINK", "", "VERBATIM_SEED", "", NULL,
	};
	const char *bad = NULL;
	struct vb_env env;

	environment = empty;
	assert_int_equal(vb_env_read(&env, get, &bad), 0);
	assert_null(env.fault);
	assert_false(env.seeded);
}

static void bad_value_names_its_setting(void **state)
{
	static const char *const link[] = { "VERBATIM_LINK", "carrier-pigeon", NULL };
	static const char *const seeds[][3] = {
		{ "VERBATIM_SEED", "seven", NULL },
		{ "VERBATIM_SEED", "7x", NULL },
		{ "VERBATIM_SEED", "-7", NULL },
		{ "VERBATIM_SEED", "99999999999999999999", NULL },
	};
	struct vb_env env = { .seed = 42 };
	const char *bad = NULL;

	environment = link;
	assert_int_equal(vb_env_read(&env, get, &bad), EINVAL);
	assert_string_equal(bad, "VERBATIM_LINK");
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		environment = seeds[i];
		assert_int_equal(vb_env_read(&env, get, &bad), EINVAL);
		assert_string_equal(bad, "VERBATIM_SEED");
	}
	assert_int_equal(env.seed, 42);
}

static void ethernet_names_an_interface(void **state)
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
		const char *const one[] = { "VERBATIM_ETH", rows[i].value, NULL };
		struct vb_env env = { .seed = 42 };
		const char *bad = "";

		environment = one;
		assert_int_equal(vb_env_read(&env, get, &bad), rows[i].rc);
		assert_string_equal(bad, rows[i].rc ? "VERBATIM_ETH" : "");
		assert_int_equal(env.seed, rows[i].rc ? 42 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_settings_all_is_default),
		cmocka_unit_test(settings_are_read),
		cmocka_unit_test(empty_value_is_none),
		cmocka_unit_test(bad_value_names_its_setting),
		cmocka_unit_test(ethernet_names_an_interface),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
