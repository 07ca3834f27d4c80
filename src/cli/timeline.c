/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/timeline.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/psn.h"
#include "nic/core/names.h"
#include "run/process/trail.h"
#include "wire/opcode.h"

/*
 * What is shown of a process: a track for each QP with its packets and waits, and above it each
 * request as a bar from post to completion, whose parts are where it waited.
 */

enum { REQUESTS_MAX = 1 << 16 };

/* A request that the application has not got back yet. */
struct request {
	const struct vb_trail_event *post;
	uint64_t sent_ns, acked_ns; /* 0: not yet */
};

struct qp {
	uint32_t qpn;
	struct request *request; /* head to tail, modulo the size */
	uint32_t head, tail;
	uint64_t wait_ns; /* since when it waits; 0: it does not */
	uint8_t wait;	  /* enum vb_trail_flag */
	struct qp *next;
};

/* Who is connected to whom, as any of the processes said. */
struct pair {
	uint32_t qpn, dqpn;
};

struct line {
	FILE *out;
	struct pair *pairs;
	unsigned pair_count;
	uint32_t pid;
	uint64_t zero_ns; /* the first event of all */
	unsigned long events;
	struct qp *qps;
};

struct trail {
	struct vb_trail *head;
	uint64_t count;
	struct trail *next;
};

static const char *kind_name(unsigned kind)
{
	static const char *const names[] = {
		[VB_K_SEND] = "SEND", [VB_K_WRITE] = "WRITE", [VB_K_READ_REQ] = "READ",
		[VB_K_CMP_SWP] = "CMP_SWP", [VB_K_FETCH_ADD] = "FETCH_ADD",
		[VB_K_ATOMIC_WRITE] = "ATOMIC_WRITE", [VB_K_FLUSH] = "FLUSH",
	};

	return kind < VB_ARRAY_LEN(names) && names[kind] ? names[kind] : "request";
}

/* --- events of the format: times are microseconds --- */

static void event_begin(struct line *line, const char *phase, uint64_t ns, uint32_t qpn)
{
	uint64_t since = ns > line->zero_ns ? ns - line->zero_ns : 0;

	fprintf(line->out, "%s\n{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRIu64 ".%03u",
		line->events++ ? "," : "", phase, line->pid, qpn, since / 1000,
		(unsigned)(since % 1000));
}

/* The beginning ("b") or end ("e") of a request or a part of it. */
static void part(struct line *line, const char *phase, uint64_t ns,
		 const struct vb_trail_event *post, const char *name)
{
	event_begin(line, phase, ns, post->qpn);
	fprintf(line->out, ",\"cat\":\"request\",\"id\":\"%u.%x.%u\",\"name\":\"%s\"}", line->pid,
		post->qpn, post->index, name);
}

static void span(struct line *line, const struct vb_trail_event *post, uint64_t from_ns,
		 uint64_t to_ns, const char *name)
{
	if (to_ns <= from_ns)
		return;
	part(line, "b", from_ns, post, name);
	part(line, "e", to_ns, post, name);
}

static void request_print(struct line *line, const struct request *request,
			  const struct vb_trail_event *done)
{
	const struct vb_trail_event *post = request->post;
	uint64_t sent = request->sent_ns ? request->sent_ns : post->ns;
	uint64_t acked = request->acked_ns > sent ? request->acked_ns : done->ns;
	char name[64];

	snprintf(name, sizeof(name), "%s %u B", kind_name(post->op), post->bytes);
	event_begin(line, "b", post->ns, post->qpn);
	fprintf(line->out,
		",\"cat\":\"request\",\"id\":\"%u.%x.%u\",\"name\":\"%s\",\"args\":{\"wr_id\":\"0x%"
		PRIx64 "\",\"qpn\":\"0x%06x\",\"psn\":%u,\"packets\":%u,\"status\":\"%s\"}}",
		line->pid, post->qpn, post->index, name, post->wr_id, post->qpn, post->psn,
		post->packets, vb_status_name((enum ibv_wc_status)done->status));
	span(line, post, post->ns, sent, "queued");
	span(line, post, sent, acked, "sent, not acknowledged");
	span(line, post, acked, done->ns, "done, not polled");
	part(line, "e", done->ns, post, name);
}

/* --- a process --- */

static struct qp *qp_of(struct line *line, uint32_t qpn)
{
	struct qp *qp = line->qps;

	while (qp && qp->qpn != qpn)
		qp = qp->next;
	if (qp)
		return qp;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->request = calloc(REQUESTS_MAX, sizeof(*qp->request));
	qp->qpn = qpn;
	qp->next = line->qps;
	line->qps = qp;
	event_begin(line, "M", line->zero_ns, qpn);
	fprintf(line->out, ",\"name\":\"thread_name\",\"args\":{\"name\":\"QP 0x%06x\"}}", qpn);
	return qp;
}

static struct request *request_at(struct qp *qp, uint32_t index)
{
	return &qp->request[index % REQUESTS_MAX];
}

static void post_take(struct qp *qp, const struct vb_trail_event *event)
{
	if (!qp->request || qp->tail - qp->head >= REQUESTS_MAX)
		return;
	if (qp->head == qp->tail || event->index != qp->tail)
		qp->head = event->index;
	qp->tail = event->index + 1;
	*request_at(qp, event->index) = (struct request){ .post = event };
}

static void wait_end(struct line *line, struct qp *qp, uint64_t ns)
{
	uint64_t long_ns = ns - qp->wait_ns;

	if (!qp->wait_ns)
		return;
	event_begin(line, "X", qp->wait_ns, qp->qpn);
	fprintf(line->out, ",\"cat\":\"wait\",\"dur\":%" PRIu64 ".%03u,\"name\":\"%s\"}",
		long_ns / 1000, (unsigned)(long_ns % 1000),
		qp->wait & VB_TRAIL_RNR ? "waits: the peer has no receive request (RNR)"
					: "waits for a credit");
	qp->wait_ns = 0;
}

static uint32_t end_of(const struct request *request)
{
	return vb_psn_add(request->post->psn, request->post->packets);
}

/* All packets before this PSN were sent. */
static void sent_before(struct qp *qp, uint32_t psn, uint64_t ns)
{
	for (uint32_t i = qp->head; qp->request && i != qp->tail; i++) {
		struct request *request = request_at(qp, i);

		if (!request->sent_ns && vb_psn_diff(end_of(request), psn) <= 0)
			request->sent_ns = ns;
	}
}

/* The peer has them. */
static void acked_before(struct qp *qp, uint32_t psn, uint64_t ns)
{
	for (uint32_t i = qp->head; qp->request && i != qp->tail; i++) {
		struct request *request = request_at(qp, i);

		if (!request->acked_ns && vb_psn_diff(end_of(request), psn) <= 0)
			request->acked_ns = ns;
	}
}

/* How far it has come: what lies behind it was sent, or acknowledged. */
static void state_take(struct line *line, struct qp *qp, const struct vb_trail_event *event)
{
	if (qp->wait_ns && event->flags != qp->wait)
		wait_end(line, qp, event->ns);
	if (event->flags && !qp->wait_ns) {
		qp->wait_ns = event->ns;
		qp->wait = event->flags;
	}
	sent_before(qp, event->psn, event->ns);
	for (uint32_t i = qp->head; qp->request && i != qp->tail; i++) {
		struct request *request = request_at(qp, i);

		if (!request->acked_ns && (int32_t)(i - event->index) < 0)
			request->acked_ns = event->ns;
	}
}

static void done_take(struct line *line, struct qp *qp, const struct vb_trail_event *event)
{
	while (qp->request && qp->head != qp->tail && (int32_t)(qp->head - event->index) < 0) {
		request_print(line, request_at(qp, qp->head), event);
		qp->head++;
	}
}

static void mark_print(struct line *line, const struct vb_trail_event *event, uint32_t qpn,
		       const char *name)
{
	event_begin(line, "i", event->ns, qpn);
	fprintf(line->out, ",\"s\":\"t\",\"cat\":\"packet\",\"name\":\"%s\",\"args\":{"
		"\"for_qpn\":\"0x%06x\",\"psn\":%u,\"octets\":%u}}", name, event->qpn, event->psn,
		event->bytes);
}

/* A packet says whom it is for, and not whose it is. 0: nobody of whom we know. */
static uint32_t sender_of(const struct line *line, uint32_t qpn)
{
	for (unsigned i = 0; i < line->pair_count; i++) {
		if (line->pairs[i].dqpn == qpn)
			return line->pairs[i].qpn;
		if (line->pairs[i].qpn == qpn)
			return line->pairs[i].dqpn;
	}
	return 0;
}

static bool is_answer(const struct vb_op_info *info)
{
	return info->kind == VB_K_ACK || info->kind == VB_K_READ_RESP ||
	       info->kind == VB_K_ATOMIC_ACK;
}

/* Did it leave? Else it came. */
static bool is_tx(const struct vb_trail_event *event)
{
	return event->kind == VB_TRAIL_TX || event->kind == VB_TRAIL_PUT;
}

static bool is_packet(const struct vb_trail_event *event)
{
	return event->kind >= VB_TRAIL_TX && event->kind <= VB_TRAIL_TAKEN;
}

/* What a packet tells of the requests of the QP that sends, or is answered. */
static void packet_heed(struct line *line, const struct vb_trail_event *event, uint32_t qpn,
			const struct vb_op_info *info)
{
	bool tx = is_tx(event);
	struct qp *qp = info && qpn && tx != is_answer(info) ? qp_of(line, qpn) : NULL;

	if (qp && tx)
		sent_before(qp, vb_psn_add(event->psn, 1), event->ns);
	else if (qp && (info->kind != VB_K_ACK || event->syndrome >> 5 == 0))
		acked_before(qp, vb_psn_add(event->psn, 1), event->ns);
}

/* An arrow from the one end to the other. Datagrams have no number in a ring to be told by. */
static void arrow_print(struct line *line, const struct vb_trail_event *event, uint32_t qpn,
			const struct vb_op_info *info)
{
	bool ring = event->kind == VB_TRAIL_PUT || event->kind == VB_TRAIL_TAKEN;

	if (ring && info && info->transport == VB_UD)
		return;
	event_begin(line, is_tx(event) ? "s" : "f", event->ns, qpn);
	fprintf(line->out, ",%s\"cat\":\"%s\",\"name\":\"packet\",\"id\":\"%x.%x.%x\"}",
		is_tx(event) ? "" : "\"bp\":\"e\",", ring ? "ring" : "wire", event->qpn,
		event->psn, event->op);
}

static void packet_take(struct line *line, const struct vb_trail_event *event)
{
	static const char *const where[] = {
		[VB_TRAIL_TX] = "out:", [VB_TRAIL_RX] = "in:",
		[VB_TRAIL_PUT] = "into the ring:", [VB_TRAIL_TAKEN] = "from the ring:",
	};
	static const char *const acks[8] = { "ACK", "RNR NAK", "?", "NAK", "?", "?", "?", "?" };
	const struct vb_op_info *info = vb_op_info(event->op);
	const char *name = info ? info->name : "?";
	uint32_t qpn = is_tx(event) ? sender_of(line, event->qpn) : event->qpn;
	char text[64];

	if (info && info->kind == VB_K_ACK)
		name = acks[event->syndrome >> 5];
	snprintf(text, sizeof(text), "%s %s", where[event->kind], name);
	mark_print(line, event, qpn, text);
	packet_heed(line, event, qpn, info);
	arrow_print(line, event, qpn, info);
}

static void event_take(struct line *line, const struct vb_trail_event *event)
{
	bool packet = is_packet(event);
	struct qp *qp = packet ? NULL : qp_of(line, event->qpn);
	char text[64];

	switch (qp || packet ? (enum vb_trail_kind)event->kind : VB_TRAIL_NONE) {
	case VB_TRAIL_POST:
		post_take(qp, event);
		break;
	case VB_TRAIL_STATE:
		state_take(line, qp, event);
		break;
	case VB_TRAIL_SENT_WC:
		done_take(line, qp, event);
		break;
	case VB_TRAIL_RECV_WC:
		snprintf(text, sizeof(text), "received %u B: %s", event->bytes,
			 vb_status_name((enum ibv_wc_status)event->status));
		mark_print(line, event, event->qpn, text);
		break;
	case VB_TRAIL_TX:
	case VB_TRAIL_RX:
	case VB_TRAIL_PUT:
	case VB_TRAIL_TAKEN:
		packet_take(line, event);
		break;
	case VB_TRAIL_NONE:
		break;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct vb_trail_event *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

static void trail_print(struct line *line, struct trail *trail)
{
	const struct vb_trail *head = trail->head;
	char comm[VB_TRAIL_COMM_BYTES] = "";

	/* Only what every parser takes. */
	memcpy(comm, head->comm, sizeof(comm) - 1);
	for (char *at = comm; *at; at++) {
		if (*at < ' ' || *at > '~' || *at == '"' || *at == '\\')
			*at = '?';
	}
	line->pid = head->pid;
	line->qps = NULL;
	event_begin(line, "M", line->zero_ns, 0);
	fprintf(line->out, ",\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}}", comm);
	for (uint64_t i = 0; i < trail->count; i++)
		event_take(line, &head->event[i]);
	while (line->qps) {
		struct qp *qp = line->qps;

		line->qps = qp->next;
		free(qp->request);
		free(qp);
	}
}

/* --- reading --- */

/* Reads a trail, so that nothing changes meanwhile, and puts it in order. NULL: it is none. */
static struct trail *trail_read(const char *folder, const char *name)
{
	struct trail *trail = calloc(1, sizeof(*trail));
	char path[4096];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (trail && fd >= 0 && !fstat(fd, &st) && st.st_size >= (off_t)sizeof(struct vb_trail) &&
	    st.st_size < 1 << 30)
		trail->head = malloc((size_t)st.st_size);
	if (trail && (!trail->head || pread(fd, trail->head, (size_t)st.st_size, 0) != st.st_size ||
		      trail->head->magic != VB_TRAIL_MAGIC ||
		      trail->head->event_bytes != sizeof(struct vb_trail_event))) {
		free(trail->head);
		free(trail);
		trail = NULL;
	}
	if (fd >= 0)
		close(fd);
	if (!trail)
		return NULL;
	trail->count = vb_min_u64(atomic_load(&trail->head->count),
				  ((size_t)st.st_size - sizeof(struct vb_trail)) /
					  sizeof(struct vb_trail_event));
	qsort(trail->head->event, trail->count, sizeof(struct vb_trail_event), by_time);
	return trail;
}

static struct trail *trails_read(const char *folder, int *error)
{
	struct trail *first = NULL, *one;
	DIR *dir = opendir(folder);
	struct dirent *entry;

	*error = dir ? 0 : errno;
	while (dir && (entry = readdir(dir))) {
		const char *end = strrchr(entry->d_name, '.');

		one = end && !strcmp(end, ".trail") ? trail_read(folder, entry->d_name) : NULL;
		if (!one)
			continue;
		one->next = first;
		first = one;
	}
	if (dir)
		closedir(dir);
	if (!*error && !first)
		*error = ENODATA;
	return first;
}

static bool pair_is_known(const struct line *line, const struct vb_trail_event *event)
{
	for (unsigned i = 0; i < line->pair_count; i++) {
		if (line->pairs[i].qpn == event->qpn && line->pairs[i].dqpn == event->dqpn)
			return true;
	}
	return false;
}

/* Who is connected to whom, and when it began. */
static void look_through(struct line *line, const struct trail *trail)
{
	struct pair *more;

	for (uint64_t i = 0; i < trail->count; i++) {
		const struct vb_trail_event *event = &trail->head->event[i];

		if (event->ns && event->ns < line->zero_ns)
			line->zero_ns = event->ns;
		if (!event->dqpn || pair_is_known(line, event))
			continue;
		more = realloc(line->pairs, (line->pair_count + 1) * sizeof(*more));
		if (!more)
			return;
		more[line->pair_count++] = (struct pair){ event->qpn, event->dqpn };
		line->pairs = more;
	}
}

int vb_cli_timeline(const char *folder, const char *file, unsigned long *events,
		    unsigned long *lost)
{
	struct line line = { .zero_ns = UINT64_MAX };
	struct trail *trails, *next;
	int rc;

	*lost = 0;
	trails = trails_read(folder, &rc);
	for (struct trail *one = trails; one; one = one->next) {
		*lost += atomic_load(&one->head->count) - one->count;
		look_through(&line, one);
	}
	/* Only now: a timeline that was there stays, if there is no other. */
	if (!rc) {
		line.out = fopen(file, "we");
		rc = line.out ? 0 : errno;
	}
	if (!rc)
		fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", line.out);
	for (struct trail *one = trails; one; one = next) {
		if (!rc)
			trail_print(&line, one);
		next = one->next;
		free(one->head);
		free(one);
	}
	if (line.out) {
		fputs("\n]}\n", line.out);
		rc = fflush(line.out) || ferror(line.out) ? (errno ? errno : EIO) : 0;
		fclose(line.out);
	}
	free(line.pairs);
	*events = line.events;
	return rc;
}
