/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor/doctor.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/check.h"
#include "base/words.h"
#include "cli/cli.h"
#include "cli/doctor/device.h"
#include "cli/doctor/judge.h"
#include "cli/doctor/look.h"
#include "cli/doctor/measure.h"
#include "cli/doctor/net.h"
#include "cli/json.h"

enum { VERDICTS = VB_DOCTOR_MISSING + 1 };

static struct vb_doctor_facts facts;

/* Is there a device that opens, and has an address? */
static bool any_works(void)
{
	for (unsigned i = 0; i < facts.devices.count; i++) {
		if (facts.devices.device[i].gids)
			return true;
	}
	return false;
}

/* The port and the hub come first, since what follows starts a hub. */
static void look(bool quick)
{
	vb_doctor_look_net(&facts);
	vb_doctor_look(&facts);
	vb_doctor_look_devices(&facts);
	if (!quick && any_works())
		vb_doctor_measure(facts.speed);
}

static void line_print(const char *name, const struct vb_doctor_finding *finding)
{
	printf("%-8s %-9s %s\n", vb_doctor_verdict_name(finding->verdict), name, finding->found);
	if (finding->means)
		printf("%18s means: %s\n", "", finding->means);
	if (*finding->remedy)
		printf("%18s %s %s\n", "", finding->verdict ? "do:   " : "more: ",
		       finding->remedy);
}

static void line_json(struct vb_json *json, const char *name,
		      const struct vb_doctor_finding *finding)
{
	vb_json_object(json, NULL);
	vb_json_text(json, "name", name);
	vb_json_text(json, "verdict", vb_doctor_verdict_name(finding->verdict));
	vb_json_text(json, "found", finding->found);
	if (finding->means)
		vb_json_text(json, "means", finding->means);
	if (*finding->remedy)
		vb_json_text(json, "remedy", finding->remedy);
	vb_json_close(json);
}

static void speed_json(struct vb_json *json)
{
	static const char *const names[] = { [VB_DOCTOR_SHM] = "shm", [VB_DOCTOR_UDP] = "udp" };

	vb_json_object(json, "speed");
	for (unsigned i = 0; i < VB_DOCTOR_LINKS; i++) {
		if (!facts.speed[i].measured)
			continue;
		vb_json_object(json, names[i]);
		vb_json_number(json, "latency_ns", (uint64_t)facts.speed[i].latency_ns);
		vb_json_number(json, "octets_per_s", (uint64_t)facts.speed[i].octets_per_s);
		vb_json_close(json);
	}
	vb_json_close(json);
}

static void text(const struct utsname *system, unsigned count[VERDICTS])
{
	printf("verbatim %s, %s %s, %s\n\n", vb_cli_version, system->sysname, system->release,
	       system->machine);
	for (const struct vb_doctor_check *check = vb_doctor_checks; check->name; check++) {
		struct vb_doctor_finding finding = { 0 };

		check->judge(&facts, &finding);
		line_print(check->name, &finding);
		count[finding.verdict]++;
	}
	printf("\n%u ok, %u limited, %u missing\n", count[VB_DOCTOR_OK], count[VB_DOCTOR_LIMITED],
	       count[VB_DOCTOR_MISSING]);
}

static void json(const struct utsname *system, unsigned count[VERDICTS])
{
	struct vb_json out = { 0 };

	vb_json_object(&out, NULL);
	vb_json_text(&out, "version", vb_cli_version);
	vb_json_text(&out, "kernel", system->release);
	vb_json_text(&out, "machine", system->machine);
	vb_json_array(&out, "checks");
	for (const struct vb_doctor_check *check = vb_doctor_checks; check->name; check++) {
		struct vb_doctor_finding finding = { 0 };

		check->judge(&facts, &finding);
		line_json(&out, check->name, &finding);
		count[finding.verdict]++;
	}
	vb_json_close(&out);
	speed_json(&out);
	for (unsigned i = 0; i < VERDICTS; i++)
		vb_json_number(&out, vb_doctor_verdict_name(i), count[i]);
	vb_json_close(&out);
}

static const struct {
	const char *name;
} options[] = { { "--json" }, { "--quick" } };
static const struct vb_words option_names = VB_WORDS(options);

int vb_cli_doctor(int argc, char **argv)
{
	unsigned count[VERDICTS] = { 0 };
	bool chosen[VB_ARRAY_LEN(options)] = { false };
	struct utsname system;

	for (int i = 1; i < argc; i++) {
		unsigned at = vb_words_find(&option_names, argv[i], strlen(argv[i]));

		if (at == option_names.count) {
			vb_cli_unknown(&option_names, "option", argv[i], strlen(argv[i]));
			fputs("usage: verbatim doctor [--json] [--quick]\n", stderr);
			return VB_CLI_RUN_FAILED;
		}
		chosen[at] = true;
	}
	look(chosen[1]);
	uname(&system);
	(chosen[0] ? json : text)(&system, count);
	return count[VB_DOCTOR_MISSING] ? VB_DOCTOR_MISSING
	       : count[VB_DOCTOR_LIMITED] ? VB_DOCTOR_LIMITED
					  : VB_DOCTOR_OK;
}
