/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/process/env.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "link/around/fault.h"
#include "link/around/fault_parse.h"
#include "link/around/net_parse.h"
#include "topology/persona.h"
#include "topology/table.h"

#define PREFIX "VERBATIM_"

/* The longest seed is 20 digits. */
#define ORDER_SEED_BYTES 32

/* --- values --- */

/* Each reads a value, which is not empty. Returns false if it is invalid; `why` may say more. */

static bool number_of(const char *text, uint64_t *number)
{
	bool hexadecimal = strncmp(text, "0x", 2) == 0;
	const char *digits = hexadecimal ? text + 2 : text;

	/* strtoull() would accept blanks and signs. */
	if (!*digits || digits[strspn(digits, hexadecimal ? "0123456789abcdefABCDEF"
							  : "0123456789")])
		return false;
	errno = 0;
	*number = strtoull(digits, NULL, hexadecimal ? 16 : 10);
	return errno == 0;
}

static bool seed_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	env->seeded = number_of(text, &env->seed);
	return env->seeded;
}

static bool order_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	static const char iba[] = ",iba";
	size_t bytes = strlen(text), tail = sizeof(iba) - 1;
	char number[ORDER_SEED_BYTES];

	env->order_iba = bytes > tail && strcmp(text + bytes - tail, iba) == 0;
	bytes -= env->order_iba ? tail : 0;
	if (bytes >= sizeof(number))
		return false;
	memcpy(number, text, bytes);
	number[bytes] = '\0';
	env->disorder = number_of(number, &env->order_seed);
	return env->disorder;
}

static bool hub_idle_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	return number_of(text, &env->hub_idle_ms) && env->hub_idle_ms <= VB_ENV_HUB_IDLE_MS_MAX;
}

static bool cm_rnr_timer_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	uint64_t timer;

	if (!number_of(text, &timer) || timer > VB_ENV_RNR_TIMER_MAX)
		return false;
	env->cm_rnr_timer = (uint8_t)timer;
	return true;
}

static const struct link {
	const char *name;
	enum vb_env_link link;
} links[] = {
	{ "udp", VB_ENV_LINK_UDP },
	{ "shm", VB_ENV_LINK_SHM },
};
static const struct vb_words link_names = VB_WORDS(links);

static bool link_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	unsigned i = vb_words_find(&link_names, text, strlen(text));

	if (i < link_names.count)
		env->link = links[i].link;
	return i < link_names.count;
}

static const struct {
	const char *name;
} switches[] = { { "0" }, { "1" } };
static const struct vb_words switch_names = VB_WORDS(switches);

static bool shared_mr_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	env->shared_mr = strcmp(text, "1") == 0;
	return vb_words_find(&switch_names, text, strlen(text)) < switch_names.count;
}

static bool dcqcn_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	env->no_dcqcn = strcmp(text, "0") == 0;
	return vb_words_find(&switch_names, text, strlen(text)) < switch_names.count;
}

static bool persona_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	env->device.persona = text;
	return strchr(text, '/') ||
	       vb_words_find(&vb_persona_names, text, strlen(text)) < vb_persona_names.count;
}

static bool limits_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	return vb_limits_parse(&env->device.limits, text, why);
}

/* What a file says is found out when it is read. */
static bool devices_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	char wrong[VB_TOPOLOGY_WHY_BYTES];
	struct vb_topology topology;

	env->device.table = text;
	if (!vb_topology_is_short(text) ||
	    vb_topology_parse_short(&topology, text, strlen(text), wrong) == 0)
		return true;
	vb_text_add(why, wrong, NULL);
	return false;
}

/* Is it a valid name for an interface in Linux? Whether that exists is found out later. */
static bool is_interface(const char *name)
{
	return *name && strlen(name) < IFNAMSIZ && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0 && !name[strcspn(name, "/: \t\n\v\f\r")];
}

static bool ethernet_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	static const char tap[] = "tap:";

	env->ethernet = text;
	return is_interface(strncmp(text, tap, strlen(tap)) == 0 ? text + strlen(tap) : text);
}

static bool fault_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	char wrong[VB_FAULT_WHY_BYTES];
	struct vb_fault fault;

	env->fault = text;
	env->delays = true;
	if (vb_fault_parse(&fault, text, wrong) == 0)
		return true;
	vb_text_add(why, wrong, NULL);
	return false;
}

static bool net_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	char wrong[VB_PARTS_WHY_BYTES];
	struct vb_net net;

	env->net = text;
	env->delays = true;
	if (vb_net_parse(&net, text, wrong)) {
		vb_text_add(why, wrong, NULL);
		return false;
	}
	if (net.rate)
		env->line_kbps = (uint32_t)(net.rate / 1000);
	return true;
}

/* What it says is found out when it is read; percentages are another variable's. */
static bool faults_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	struct vb_fault fault;
	char wrong[VB_FAULT_WHY_BYTES];

	env->faults = text;
	env->delays = true;
	if (vb_fault_parse(&fault, text, wrong) != 0)
		return true;
	vb_text_add(why, "it is the file of a script; percentages are VERBATIM_FAULT's", NULL);
	return false;
}

/* Whether the file can be opened is found out when it is. */
static bool pcap_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	static const char suffix[] = ".pcapng";
	size_t chars = strlen(text), end = strlen(suffix);

	if (chars >= end && strcmp(text + chars - end, suffix) == 0)
		env->pcapng = text;
	else
		env->pcap = text;
	return true;
}

/* A folder, as `verbatim trace` makes it. */
static bool trace_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	env->trace = text;
	return true;
}

/* A folder. */
static bool record_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	env->record = text;
	return true;
}

static bool record_mb_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	uint64_t mb;

	if (!number_of(text, &mb) || mb < 1 || mb > VB_ENV_RECORD_MB_MAX)
		return false;
	env->record_bytes = mb << 20;
	return true;
}

static const struct {
	const char *name;
} streams[] = { { "stderr" } };
static const struct vb_words stream_names = VB_WORDS(streams);

/* Any other word is a file name, but one close to "stderr" is a mistake. */
static bool log_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	size_t bytes = strlen(text);

	env->log = text;
	if (vb_words_find(&stream_names, text, bytes) < stream_names.count || strchr(text, '/') ||
	    !vb_words_nearest(&stream_names, text, bytes))
		return true;
	vb_text_add(why, "it is 'stderr' or a file, which would be './", NULL);
	vb_text_add_typed(why, text, bytes);
	vb_text_add(why, "'", NULL);
	vb_words_add_nearest(why, &stream_names, text, bytes);
	return false;
}

static const struct {
	const char *name;
} hints[] = { { "0" }, { "stderr" } };
static const struct vb_words hint_names = VB_WORDS(hints);

/* Set by `verbatim check`; abi/check reads it itself. */
static bool check_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	env->checks = true;
	return true;
}

/* run/process/log.c reads the variable itself. */
static bool hints_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	return vb_words_find(&hint_names, text, strlen(text)) < hint_names.count;
}

static bool hub_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	return true;
}

/* `verbatim run` says it, and the library that redirects paths reads it. */
static bool view_root_read(struct vb_env *env, const char *text, struct vb_text *why)
{
	return true;
}

/* --- settings --- */

struct setting {
	const char *name;
	bool (*read)(struct vb_env *env, const char *text, struct vb_text *why);
	const struct vb_words *values; /* all valid values; NULL: see good */
	const char *good; /* describes valid values, after "it is" */
};

/* clang-format off */
static const struct setting settings[] = {
	{ "VERBATIM_LOG",         log_read },
	{ "VERBATIM_FAULT",       fault_read },
	{ "VERBATIM_NET",         net_read },
	{ "VERBATIM_DCQCN",       dcqcn_read,     &switch_names },
	{ "VERBATIM_FAULTS",      faults_read },
	{ "VERBATIM_ORDER",       order_read,     NULL,
	  "a seed from 0 to 18446744073709551615, with ',iba' behind it or without" },
	{ "VERBATIM_PCAP",        pcap_read },
	{ "VERBATIM_TRACE",       trace_read },
	{ "VERBATIM_RECORD",      record_read },
	{ "VERBATIM_RECORD_MB",   record_mb_read, NULL,
	  "a number of MiB from 1 to 1048576" },
	{ "VERBATIM_LINK",        link_read,      &link_names },
	{ "VERBATIM_SHARED_MR",   shared_mr_read, &switch_names },
	{ "VERBATIM_PERSONA",     persona_read,   &vb_persona_names },
	{ "VERBATIM_DEVICES",     devices_read },
	{ "VERBATIM_LIMITS",      limits_read },
	{ "VERBATIM_ETH",         ethernet_read,  NULL,
	  "tap:NAME or the name of an interface, which has 1 to 15 characters" },
	{ "VERBATIM_CM_RNR_TIMER", cm_rnr_timer_read, NULL,
	  "a number from 0 to 31, as min_rnr_timer of ibv_modify_qp(3)" },
	{ "VERBATIM_SEED",        seed_read,      NULL,
	  "a number from 0 to 18446744073709551615, decimal or with 0x" },
	{ "VERBATIM_HINTS",       hints_read,     &hint_names },
	{ "VERBATIM_CHECK",       check_read },
	{ "VERBATIM_HUB",         hub_read },
	{ "VERBATIM_VIEW_ROOT",   view_root_read },
	{ "VERBATIM_HUB_IDLE_MS", hub_idle_read,  NULL,
	  "a number of milliseconds from 0 to 86400000" },
};
/* clang-format on */

const struct vb_words vb_env_names = VB_WORDS(settings);

/* "VERBATIM_LINK cannot be 'ud': it is 'udp' or 'shm'; did you mean 'udp'?" */
static bool setting_read(const struct setting *setting, struct vb_env *env, const char *value,
			 struct vb_text *why)
{
	size_t head;

	vb_text_add(why, setting->name, " cannot be '", NULL);
	vb_text_add_typed(why, value, strlen(value));
	vb_text_add(why, "': ", NULL);
	head = why->used;
	if (setting->read(env, value, why)) {
		*why = vb_text_in(why->chars, why->bytes);
		return true;
	}
	if (why->used > head)
		return false;
	vb_text_add(why, "it is ", setting->good ? setting->good : "", NULL);
	if (setting->values) {
		vb_words_add_choice(why, setting->values);
		vb_words_add_nearest(why, setting->values, value, strlen(value));
	}
	return false;
}

char *const *vb_env_here(void)
{
	static char *nothing[] = { NULL };

	return getauxval(AT_SECURE) || !environ ? nothing : environ;
}

/* What is recorded has to be all that enters the NIC. */
static bool record_fits(struct vb_env *env, struct vb_text *why)
{
	const char *other = env->link == VB_ENV_LINK_SHM ? "VERBATIM_LINK=shm"
			    : env->disorder		 ? "VERBATIM_ORDER"
			    : env->faults		 ? "VERBATIM_FAULTS"
			    : env->checks		 ? "VERBATIM_CHECK"
							 : NULL;

	env->link = VB_ENV_LINK_UDP;
	if (other)
		vb_text_add(why, "VERBATIM_RECORD does not go with ", other,
			    ": what that does to the NIC would not be in the record", NULL);
	return !other;
}

int vb_env_read(struct vb_env *env, char *const *environment, char why_chars[VB_ENV_WHY_BYTES])
{
	struct vb_text why = vb_text_in(why_chars, VB_ENV_WHY_BYTES);
	struct vb_env read = {
		.hub_idle_ms = VB_ENV_HUB_IDLE_MS,
		.line_kbps = VB_ENV_LINE_KBPS,
		.record_bytes = (uint64_t)VB_ENV_RECORD_MB << 20,
	};
	unsigned seen = 0;

	for (; *environment; environment++) {
		const char *entry = *environment, *value = strchr(entry, '=');
		size_t name_bytes = value ? (size_t)(value - entry) : 0;
		unsigned i;

		if (!value || strncmp(entry, PREFIX, strlen(PREFIX)) != 0)
			continue;
		i = vb_words_find(&vb_env_names, entry, name_bytes);
		/* If a name occurs twice, the first counts, as in getenv(3). */
		if (seen & 1u << i)
			continue;
		seen |= i < vb_env_names.count ? 1u << i : 0;
		/* An empty value counts as not set: `VERBATIM_FAULT= command` switches it off. */
		if (!value[1])
			continue;
		if (i == vb_env_names.count) {
			vb_words_add_unknown(&why, &vb_env_names, "setting", "Settings", entry,
					     name_bytes);
			return EINVAL;
		}
		if (!setting_read(&settings[i], &read, value + 1, &why))
			return EINVAL;
	}
	if (read.record && !record_fits(&read, &why))
		return EINVAL;
	*env = read;
	return 0;
}

uint64_t vb_env_seed(const struct vb_env *env)
{
	uint64_t seed = env->seed;
	struct timespec now;

	if (env->seeded || getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed))
		return seed;
	/*
	 * The kernel's random numbers are not ready (early boot) or forbidden: use those it gave us
	 * at exec.
	 */
	memcpy(&seed, (const void *)getauxval(AT_RANDOM), sizeof(seed));
	clock_gettime(CLOCK_MONOTONIC, &now);
	return seed ^ (now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec);
}
