/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

#include <stdlib.h>

enum { TESTS_MAX = 256 };

struct entry {
	int line;
	CMUnitTestFunction test;
	CMFixtureFunction setup, teardown;
	const char *name;
};

static struct entry entry[TESTS_MAX], *running;
static unsigned entries;
static CMFixtureFunction first, last;
static void *state_of_all;
static const char *lacking, *lacking_for_all;

void group_add(int line, const char *name, CMUnitTestFunction test, CMFixtureFunction setup,
	       CMFixtureFunction teardown)
{
	if (entries == TESTS_MAX)
		abort();
	entry[entries++] = (struct entry){line, test, setup, teardown, name};
}

void group_set(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	first = setup;
	last = teardown;
}

int group_lacks(const char *reason)
{
	lacking = reason;
	return 0;
}

static int setup_of_all(void **state)
{
	int failed = first ? first(state) : 0;

	state_of_all = *state;
	lacking_for_all = lacking;
	return failed;
}

/* It finds its entry in *state, where the test finds what the group's setup left there. */
static int setup(void **state)
{
	running = *state;
	*state = state_of_all;
	lacking = lacking_for_all;
	return running->setup && !lacking ? running->setup(state) : 0;
}

static void run(void **state)
{
	if (lacking)
		SKIP("%s", lacking);
	running->test(state);
}

static int teardown(void **state)
{
	return running->teardown && !lacking ? running->teardown(state) : 0;
}

static int by_line(const void *a, const void *b)
{
	return ((const struct entry *)a)->line - ((const struct entry *)b)->line;
}

int main(void)
{
	struct CMUnitTest tests[TESTS_MAX] = {0};

	qsort(entry, entries, sizeof(*entry), by_line);
	for (unsigned i = 0; i < entries; i++)
		tests[i] = (struct CMUnitTest){entry[i].name, run, setup, teardown, &entry[i]};
	return _cmocka_run_group_tests("tests", tests, entries, setup_of_all, last);
}
