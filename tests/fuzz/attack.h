/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_ATTACK_H
#define VB_TESTS_ATTACK_H

/*
 * What attackers and their victims have in common: arguments of the form NAME=VALUE, choices that
 * follow from a seed, and an end that names the seed.
 *
 *	SEED=n   the choices (1)
 *	N=n      so many rounds or steps ...
 *	T=s      ... or as long as that, if it is not 0
 *	BUT=a,b  leaves out what has these words, to find out which it was
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/prng.h"

struct attack {
	uint64_t seed, n, seconds;
	const char *but;
	uint64_t round; /* that one is in */
	time_t end;
};

/* One for all files of a program. */
__attribute__((weak)) struct attack attack;

/* Before anything else of a round: its choices do not depend on what came of those before. */
static inline uint64_t attack_round(uint64_t round)
{
	uint64_t state = attack.seed ^ round << 32;

	attack.round = round;
	return vb_prng_next(&state);
}

static inline unsigned attack_below(uint64_t *rng, unsigned bound)
{
	return (unsigned)((vb_prng_next(rng) >> 32) * bound >> 32);
}

static inline bool attack_one_in(uint64_t *rng, unsigned n)
{
	return attack_below(rng, n) == 0;
}

__attribute__((format(printf, 1, 2))) static inline _Noreturn void attack_fail(const char *format,
									       ...)
{
	va_list args;

	fprintf(stderr, "FAIL SEED=%llu round %llu, pid %d: ", (unsigned long long)attack.seed,
		(unsigned long long)attack.round, (int)getpid());
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

static inline uint64_t attack_number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	if (!*text || *end)
		attack_fail("%s is no number", text);
	return n;
}

static inline void attack_arguments(char **argv, uint64_t n)
{
	attack = (struct attack){.seed = 1, .n = n, .but = ""};
	for (; *argv; argv++) {
		if (!strncmp(*argv, "SEED=", 5))
			attack.seed = attack_number(*argv + 5);
		else if (!strncmp(*argv, "N=", 2))
			attack.n = attack_number(*argv + 2);
		else if (!strncmp(*argv, "T=", 2))
			attack.seconds = attack_number(*argv + 2);
		else if (!strncmp(*argv, "BUT=", 4))
			attack.but = *argv + 4;
		else
			attack_fail("%s: there are SEED=, N=, T=, BUT=", *argv);
	}
	attack.end = time(NULL) + (time_t)attack.seconds;
}

static inline bool attack_goes_on(uint64_t round)
{
	return attack.seconds ? time(NULL) < attack.end : round < attack.n;
}

/* Is that word among those to be left out? */
static inline bool attack_leaves_out(const char *word)
{
	size_t chars = strlen(word);

	for (const char *at = attack.but; (at = strstr(at, word)); at += chars)
		if ((at == attack.but || at[-1] == ',') && (!at[chars] || at[chars] == ','))
			return true;
	return false;
}

#endif
