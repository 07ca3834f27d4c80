/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/failure.h"
#include "cli/cli.h"
#include "cli/view.h"
#include "hub/words.h"
#include "nic/core/names.h"

enum { REQUEST_BYTES = 4096, PATIENCE_S = 2 };

static const uint64_t patience_ns = 3000000000;
static const char drop[] = "drop_";

/* --- the text format (version 0.0.4): one family after the other --- */

static void family(FILE *out, const char *name, bool sum, const char *help)
{
	fprintf(out, "# HELP verbatim_%s %s\n# TYPE verbatim_%s %s\n", name, help, name,
		sum ? "counter" : "gauge");
}

/* A label's value: programs may be called anything. */
static void value_print(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
}

static void process_labels(FILE *out, const struct vb_cli_process *process)
{
	fprintf(out, "{pid=\"%s\",program=\"", process->number);
	value_print(out, process->name);
	fputs("\",device=\"", out);
	value_print(out, process->sample->device);
	fputc('"', out);
}

static void stat_print(FILE *out, const struct vb_cli_view *view, enum vb_stat stat)
{
	const char *name = vb_stat_name(stat);
	char total[64];

	snprintf(total, sizeof(total), "%s_total", name);
	family(out, total, true, name);
	for (unsigned i = 0; i < view->count; i++) {
		fprintf(out, "verbatim_%s", total);
		process_labels(out, &view->process[i]);
		fprintf(out, "} %" PRIu64 "\n", view->process[i].sample->stat[stat]);
	}
}

/* All reasons are one family, so that they can be summed. */
static void drops_print(FILE *out, const struct vb_cli_view *view)
{
	family(out, "drops_total", true, "Packets dropped, by reason");
	for (unsigned i = 0; i < view->count; i++) {
		for (unsigned k = 0; k < VB_STATS; k++) {
			const char *name = vb_stat_name((enum vb_stat)k);

			if (strncmp(name, drop, strlen(drop)))
				continue;
			fputs("verbatim_drops_total", out);
			process_labels(out, &view->process[i]);
			fprintf(out, ",reason=\"%s\"} %" PRIu64 "\n", name + strlen(drop),
				view->process[i].sample->stat[k]);
		}
	}
}

static void qp_labels(FILE *out, const struct vb_cli_process *process,
		      const struct vb_sample_qp *qp)
{
	process_labels(out, process);
	fprintf(out, ",qpn=\"0x%06x\"", qp->qpn);
}

static void qp_field_print(FILE *out, const struct vb_cli_view *view,
			   const struct vb_cli_field *field)
{
	char name[64];

	snprintf(name, sizeof(name), "qp_%s%s", field->name, field->sum ? "_total" : "");
	family(out, name, field->sum, field->help);
	for (unsigned i = 0; i < view->count; i++) {
		const struct vb_sample *sample = view->process[i].sample;

		for (unsigned k = 0; k < sample->qps; k++) {
			fprintf(out, "verbatim_%s", name);
			qp_labels(out, &view->process[i], &sample->qp[k]);
			fprintf(out, "} %" PRIu64 "\n", vb_cli_field_get(&sample->qp[k], field));
		}
	}
}

static void quantile_print(FILE *out, const struct vb_cli_process *process,
			   const struct vb_sample_qp *qp, const char *quantile, uint64_t ns)
{
	fputs("verbatim_qp_latency_seconds", out);
	qp_labels(out, process, qp);
	fprintf(out, ",quantile=\"%s\"} %.9f\n", quantile, (double)ns / 1e9);
}

static void latency_print(FILE *out, const struct vb_cli_process *process,
			  const struct vb_sample_qp *qp)
{
	if (!vb_cli_was_measured(qp))
		return;
	if (vb_cli_is_measured(qp)) {
		quantile_print(out, process, qp, "0.5", qp->latency.p50_ns);
		quantile_print(out, process, qp, "0.99", qp->latency.p99_ns);
		quantile_print(out, process, qp, "1", qp->latency.max_ns);
	}
	fputs("verbatim_qp_latency_seconds_sum", out);
	qp_labels(out, process, qp);
	fprintf(out, "} %.9f\nverbatim_qp_latency_seconds_count",
		(double)qp->latency.sum_ns / 1e9);
	qp_labels(out, process, qp);
	fprintf(out, "} %" PRIu64 "\n", qp->latency.count);
}

/* All of a family stand together. */
static void latencies_print(FILE *out, const struct vb_cli_view *view)
{
	fputs("# HELP verbatim_qp_latency_seconds From post to completion, while `verbatim top` "
	      "looks\n# TYPE verbatim_qp_latency_seconds summary\n", out);
	for (unsigned i = 0; i < view->count; i++) {
		const struct vb_sample *sample = view->process[i].sample;

		for (unsigned k = 0; k < sample->qps; k++)
			latency_print(out, &view->process[i], &sample->qp[k]);
	}
}

static void qp_info_print(FILE *out, const struct vb_cli_view *view)
{
	char address[VB_ADDRESS_BYTES];

	family(out, "qp_info", false, "1 for each queue pair: what it is, and its peer");
	for (unsigned i = 0; i < view->count; i++) {
		const struct vb_sample *sample = view->process[i].sample;

		for (unsigned k = 0; k < sample->qps; k++) {
			const struct vb_sample_qp *qp = &sample->qp[k];

			fputs("verbatim_qp_info", out);
			qp_labels(out, &view->process[i], qp);
			fprintf(out, ",service=\"%s\",state=\"%s\",way=\"%s\"", qp->service,
				vb_state_name((enum ibv_qp_state)qp->state), vb_cli_way_name(qp));
			fprintf(out, ",peer_qpn=\"0x%06x\",peer_address=\"%s\"} 1\n", qp->dqpn,
				qp->dqpn ? vb_gid_text(address, qp->dst) : "");
		}
	}
}

static void objects_print(FILE *out, const struct vb_cli_view *view)
{
	family(out, "objects", false, "Objects that exist, by kind");
	for (unsigned i = 0; i < view->count; i++) {
		const struct vb_sample *sample = view->process[i].sample;
		const struct {
			const char *kind;
			uint32_t count;
		} kinds[] = {
			{ "protection_domain", sample->pds }, { "region", sample->regions },
			{ "completion_queue", sample->cqs },  { "queue_pair", sample->qps },
			{ "shared_receive_queue", sample->srqs },
		};

		for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
			fputs("verbatim_objects", out);
			process_labels(out, &view->process[i]);
			fprintf(out, ",kind=\"%s\"} %u\n", kinds[k].kind, kinds[k].count);
		}
	}
}

/* Returns 0 or an errno, with what can be said printed. */
static int all_print(FILE *out)
{
	struct vb_cli_view view;
	int rc = vb_cli_view_take(&view, 0, patience_ns);

	if (rc && rc != ECONNREFUSED)
		return rc;
	family(out, "up", false, "1 if a hub is running");
	fprintf(out, "verbatim_up %d\n", !rc);
	family(out, "processes", false, "Processes that have a device open, once for each");
	fprintf(out, "verbatim_processes %u\n", view.count + view.silent);
	family(out, "processes_silent", false, "Those of them that did not answer in time");
	fprintf(out, "verbatim_processes_silent %u\n", view.silent);
	objects_print(out, &view);
	for (unsigned i = 0; i < VB_STATS; i++) {
		if (strncmp(vb_stat_name((enum vb_stat)i), drop, strlen(drop)))
			stat_print(out, &view, (enum vb_stat)i);
	}
	drops_print(out, &view);
	qp_info_print(out, &view);
	for (const struct vb_cli_field *field = vb_cli_fields; field->name; field++)
		qp_field_print(out, &view, field);
	latencies_print(out, &view);
	vb_cli_view_free(&view);
	return 0;
}

/* --- HTTP, as much of it as a scraper needs --- */

static void all_send(int fd, const char *data, size_t bytes)
{
	while (bytes) {
		ssize_t sent = send(fd, data, bytes, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		data += sent;
		bytes -= (size_t)sent;
	}
}

static void respond(int fd, const char *status, const char *body, size_t bytes)
{
	char head[256];
	int length = snprintf(head, sizeof(head),
			      "HTTP/1.0 %s\r\nContent-Type: text/plain; version=0.0.4; "
			      "charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
			      status, bytes);

	all_send(fd, head, (size_t)length);
	all_send(fd, body, bytes);
}

/* Reads a request's head. False: none came in time, or none that is one. */
static bool request_read(int fd, char request[REQUEST_BYTES])
{
	size_t used = 0;

	while (used < REQUEST_BYTES - 1) {
		ssize_t got = recv(fd, request + used, REQUEST_BYTES - 1 - used, 0);

		if (got <= 0)
			return false;
		used += (size_t)got;
		request[used] = 0;
		if (strstr(request, "\r\n\r\n"))
			return true;
	}
	return false;
}

static void serve(int fd)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	char request[REQUEST_BYTES], *body = NULL;
	static const char lost[] = "it is at /metrics\n", silent[] = "the hub does not answer\n";
	size_t bytes = 0;
	FILE *out;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!request_read(fd, request))
		return;
	if (strncmp(request, "GET /metrics ", 13) != 0 && strncmp(request, "GET / ", 6) != 0) {
		respond(fd, "404 Not Found", lost, strlen(lost));
		return;
	}
	out = open_memstream(&body, &bytes);
	if (out && all_print(out) == 0 && fclose(out) == 0)
		respond(fd, "200 OK", body, bytes);
	else
		respond(fd, "503 Service Unavailable", silent, strlen(silent));
	free(body);
}

/* "127.0.0.1:9401", "[::1]:9401", ":9401" for all addresses. Returns the socket, or -1. */
static int listen_at(const char *where)
{
	const struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM };
	const char *colon = strrchr(where, ':');
	struct addrinfo *at;
	char host[256];
	int fd, one = 1, rc;

	if (!colon || (size_t)(colon - where) >= sizeof(host)) {
		vb_cli_error("--listen takes ADDRESS:PORT, such as 127.0.0.1:9401");
		return -1;
	}
	snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
	if (*host == '[' && host[strlen(host) - 1] == ']') {
		host[strlen(host) - 1] = 0;
		memmove(host, host + 1, strlen(host));
	}
	rc = getaddrinfo(*host ? host : NULL, colon + 1, &hints, &at);
	if (rc) {
		vb_cli_error("%s: %s", where, gai_strerror(rc));
		return -1;
	}
	fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, 16)) {
		vb_cli_error("%s: %s", where, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(at);
	return fd;
}

static int serve_at(const char *where)
{
	int fd = listen_at(where), one;

	if (fd < 0)
		return VB_CLI_FAILED;
	for (;;) {
		one = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (one < 0 && errno != EINTR && errno != ECONNABORTED) {
			vb_cli_error("accept: %s", strerror(errno));
			close(fd);
			return VB_CLI_FAILED;
		}
		if (one < 0)
			continue;
		serve(one);
		close(one);
	}
}

int vb_cli_metrics(int argc, char **argv)
{
	char why[VB_FAILURE_BYTES];
	int rc;

	if (argc == 3 && !strcmp(argv[1], "--listen"))
		return serve_at(argv[2]);
	if (argc != 1) {
		fputs("usage: verbatim metrics [--listen ADDRESS:PORT]\n", stderr);
		return VB_CLI_USAGE;
	}
	rc = all_print(stdout);
	if (!rc)
		return VB_CLI_OK;
	vb_cli_error("%s", vb_failure_words(why, sizeof(why), rc));
	return VB_CLI_FAILED;
}
