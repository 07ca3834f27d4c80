/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/top_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "nic/core/names.h"

static const double ns_per_s = 1e9;

void vb_top_short(char text[8], double value, unsigned chars)
{
	static const char units[] = " kMGTPE";
	unsigned unit = 0;
	int places = 0;

	while (value >= 999.5 && unit + 2 < sizeof(units)) {
		value /= 1000;
		unit++;
	}
	if (!unit) {
		snprintf(text, 8, "%.0f", value);
		return;
	}
	if (chars > 4)
		places = value < 9.995 ? 2 : value < 99.95;
	else
		places = value < 9.95;
	snprintf(text, 8, "%.*f%c", places, value, units[unit]);
}

void vb_top_time(char text[8], double ns)
{
	static const char units[] = "nums";
	unsigned unit = 0;

	while (ns >= 999.5 && unit + 2 < sizeof(units)) {
		ns /= 1000;
		unit++;
	}
	snprintf(text, 8, "%.*f%c", unit && ns < 9.95 ? 1 : 0, ns, units[unit]);
}

/* --- columns --- */

typedef char cell[VB_TOP_CELL_BYTES];

static void number_cell(cell text, double value, unsigned chars)
{
	char number[8];

	vb_top_short(number, value, chars);
	snprintf(text, VB_TOP_CELL_BYTES, "%s", value > 0 ? number : ".");
}

static void time_cell(cell text, double ns)
{
	char amount[8];

	vb_top_time(amount, ns);
	snprintf(text, VB_TOP_CELL_BYTES, "%s", ns > 0 ? amount : ".");
}

static void p50_cell(cell text, const struct vb_top_row *row)
{
	time_cell(text, row->p50_ns);
}

static void p99_cell(cell text, const struct vb_top_row *row)
{
	time_cell(text, row->p99_ns);
}

static void max_cell(cell text, const struct vb_top_row *row)
{
	time_cell(text, row->max_ns);
}

static void pid_cell(cell text, const struct vb_top_row *row)
{
	snprintf(text, VB_TOP_CELL_BYTES, "%s", row->process->number);
}

static void program_cell(cell text, const struct vb_top_row *row)
{
	snprintf(text, VB_TOP_CELL_BYTES, "%s", row->process->name);
}

static void device_cell(cell text, const struct vb_top_row *row)
{
	snprintf(text, VB_TOP_CELL_BYTES, "%.40s", row->process->sample->device);
}

static void qpn_cell(cell text, const struct vb_top_row *row)
{
	if (row->qp)
		snprintf(text, VB_TOP_CELL_BYTES, "%06x", row->qp->qpn);
	else
		snprintf(text, VB_TOP_CELL_BYTES, "%u", row->qps);
}

static void type_cell(cell text, const struct vb_top_row *row)
{
	snprintf(text, VB_TOP_CELL_BYTES, "%s", row->qp ? row->qp->service : "-");
}

static void state_cell(cell text, const struct vb_top_row *row)
{
	snprintf(text, VB_TOP_CELL_BYTES, "%s",
		 row->qp ? vb_state_name((enum ibv_qp_state)row->qp->state) : "-");
}

static void way_cell(cell text, const struct vb_top_row *row)
{
	snprintf(text, VB_TOP_CELL_BYTES, "%s", row->qp ? vb_cli_way_name(row->qp) : "-");
}

static void rnr_cell(cell text, const struct vb_top_row *row)
{
	number_cell(text, row->rnr, 4);
	if (row->waits && row->rnr <= 0)
		snprintf(text, VB_TOP_CELL_BYTES, "wait");
}

static void credits_cell(cell text, const struct vb_top_row *row)
{
	if (row->qp && row->qp->credits_known)
		vb_top_short(text, row->qp->credits, 4);
	else
		snprintf(text, VB_TOP_CELL_BYTES, "-");
}

static void peer_cell(cell text, const struct vb_top_row *row)
{
	char address[VB_ADDRESS_BYTES];

	snprintf(text, VB_TOP_CELL_BYTES, "-");
	if (row->qp && row->qp->dqpn)
		snprintf(text, VB_TOP_CELL_BYTES, "0x%06x at %s", row->qp->dqpn,
			 vb_gid_text(address, row->qp->dst));
}

#define NUMBER(member) offsetof(struct vb_top_row, member)

enum { NO_NUMBER = 0 };

struct column {
	const char *title;
	int width; /* negative: to the left */
	void (*text)(cell, const struct vb_top_row *);
	size_t number; /* a double that is shown, unless there is text */
};

/* The first ones fit into 80 columns; what does not fit any more is left out. */
static const struct column columns[] = {
	{ "PID", 7, pid_cell, NO_NUMBER },
	{ "PROGRAM", -8, program_cell, NO_NUMBER },
	{ "QPN", 6, qpn_cell, NO_NUMBER },
	{ "ST", -3, state_cell, NO_NUMBER },
	{ "WR/s", 5, NULL, NUMBER(requests) },
	{ "B/s", 5, NULL, NUMBER(octets) },
	{ "IN/s", 5, NULL, NUMBER(served) },
	{ "QUE", 4, NULL, NO_NUMBER },
	{ "P50", 4, p50_cell, NUMBER(p50_ns) },
	{ "P99", 4, p99_cell, NUMBER(p99_ns) },
	{ "MAX", 4, max_cell, NUMBER(max_ns) },
	{ "AGN", 4, NULL, NUMBER(again) },
	{ "RNR", 4, rnr_cell, NUMBER(rnr) },
	{ "CRED", 4, credits_cell, NO_NUMBER },
	{ "TYPE", -4, type_cell, NO_NUMBER },
	{ "WAY", -4, way_cell, NO_NUMBER },
	{ "DEVICE", -9, device_cell, NO_NUMBER },
	{ "PEER", -30, peer_cell, NO_NUMBER },
};

/* An integer, which has no place among the doubles. */
static bool is_queue(const struct column *column)
{
	return !column->text && !column->number;
}

static double number_of(const struct column *column, const struct vb_top_row *row)
{
	double value;

	if (is_queue(column))
		return (double)row->outstanding;
	memcpy(&value, (const char *)row + column->number, sizeof(value));
	return value;
}

static void cell_of(const struct column *column, cell text, const struct vb_top_row *row)
{
	if (column->text)
		column->text(text, row);
	else
		number_cell(text, number_of(column, row), (unsigned)column->width);
}

unsigned vb_top_columns(void)
{
	return VB_ARRAY_LEN(columns);
}

const char *vb_top_column_name(unsigned column)
{
	return columns[column].title;
}

unsigned vb_top_column_find(const char *name)
{
	unsigned i = 0;

	while (i < VB_ARRAY_LEN(columns) && (!*name || strncasecmp(columns[i].title, name,
								    strlen(name))))
		i++;
	return i;
}

void vb_top_line(char *line, size_t bytes, const struct vb_top_row *row, unsigned width)
{
	size_t used = 0;

	line[0] = 0;
	for (unsigned i = 0; i < VB_ARRAY_LEN(columns); i++) {
		const struct column *column = &columns[i];
		unsigned wide = (unsigned)abs(column->width);
		cell text;

		if (used + wide + (i > 0) > width || used + wide + 2 > bytes)
			return;
		snprintf(text, sizeof(text), "%s", column->title);
		if (row)
			cell_of(column, text, row);
		/* Names may be longer, and numbers of another PID namespace. */
		used += (size_t)snprintf(line + used, bytes - used, "%s%*.*s", i ? " " : "",
					 column->width, (int)wide, text);
	}
}

/* --- rows --- */

static const struct vb_cli_process *process_before(const struct vb_cli_view *before,
						   const struct vb_cli_process *process)
{
	for (unsigned i = 0; i < before->count; i++) {
		if (!strcmp(before->process[i].number, process->number) &&
		    !strcmp(before->process[i].sample->device, process->sample->device))
			return &before->process[i];
	}
	return NULL;
}

/* Both are sorted by QPN as far as slots are; a few QPs are the rule. */
static const struct vb_sample_qp *qp_before(const struct vb_sample *sample, uint32_t qpn,
					    unsigned hint)
{
	if (!sample)
		return NULL;
	if (hint < sample->qps && sample->qp[hint].qpn == qpn)
		return &sample->qp[hint];
	for (unsigned i = 0; i < sample->qps; i++) {
		if (sample->qp[i].qpn == qpn)
			return &sample->qp[i];
	}
	return NULL;
}

/* Of a sum, that may have begun anew: with another process or QP of the same number. */
static double rate(uint64_t from, uint64_t to, double seconds)
{
	return to > from && seconds > 0 ? (double)(to - from) / seconds : 0;
}

static struct vb_top_row qp_row(const struct vb_cli_process *process, const struct vb_sample_qp *qp,
				const struct vb_sample_qp *old, double seconds)
{
	struct vb_top_row row = { .process = process, .qp = qp, .qps = 1 };

	row.p50_ns = (double)qp->latency.p50_ns;
	row.p99_ns = (double)qp->latency.p99_ns;
	row.max_ns = (double)qp->latency.max_ns;
	row.outstanding = qp->outstanding;
	row.waits = qp->rnr_waits;
	if (!old)
		return row;
	row.requests = rate(old->done, qp->done, seconds);
	row.octets = rate(old->octets, qp->octets, seconds);
	row.served = rate(old->served, qp->served, seconds);
	row.again = rate(old->resent, qp->resent, seconds);
	row.rnr = rate((uint64_t)old->rnr_seen + old->rnr_sent,
		       (uint64_t)qp->rnr_seen + qp->rnr_sent, seconds);
	return row;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static void row_add(struct vb_top_row *sum, const struct vb_top_row *row)
{
	sum->qps += row->qps;
	sum->requests += row->requests;
	sum->octets += row->octets;
	sum->served += row->served;
	sum->again += row->again;
	sum->rnr += row->rnr;
	sum->p50_ns = larger(sum->p50_ns, row->p50_ns);
	sum->p99_ns = larger(sum->p99_ns, row->p99_ns);
	sum->max_ns = larger(sum->max_ns, row->max_ns);
	sum->outstanding += row->outstanding;
	sum->waits |= row->waits;
}

static bool is_wanted(const struct vb_top_row *row, const char *search)
{
	cell text;

	if (!*search)
		return true;
	if (!strncmp(search, "0x", 2)) /* numbers of QPs are shown without */
		search += 2;
	for (unsigned i = 0; i < VB_ARRAY_LEN(columns); i++) {
		if (!columns[i].text)
			continue;
		columns[i].text(text, row);
		if (strcasestr(text, search))
			return true;
	}
	return false;
}

static void row_take(struct vb_top_table *table, const struct vb_top_row *row,
		     const struct vb_top_order *order)
{
	if (is_wanted(row, order->search))
		table->row[table->count++] = *row;
}

static void process_take(struct vb_top_table *table, const struct vb_cli_view *before,
			 const struct vb_cli_process *process, const struct vb_top_order *order)
{
	const struct vb_cli_process *past = process_before(before, process);
	const struct vb_sample *old = past ? past->sample : NULL, *new = process->sample;
	double seconds = old ? (double)(new->taken_ns - old->taken_ns) / ns_per_s : 0;
	struct vb_top_row sum = { .process = process };

	for (unsigned i = 0; i < new->qps; i++) {
		struct vb_top_row row = qp_row(process, &new->qp[i],
					       qp_before(old, new->qp[i].qpn, i), seconds);

		row_add(&sum, &row);
		if (!order->processes)
			row_take(table, &row, order);
	}
	row_add(&table->total, &sum);
	if (order->processes)
		row_take(table, &sum, order);
}

/* Numbers: the largest first; names: from A. */
static int compare(const void *a, const void *b, void *arg)
{
	const struct vb_top_order *order = arg;
	const struct column *column = &columns[order->column];
	int result;
	cell left, right;

	if (column->number || is_queue(column)) {
		double x = number_of(column, a), y = number_of(column, b);

		result = (x < y) - (x > y);
	} else {
		cell_of(column, left, a);
		cell_of(column, right, b);
		result = strverscmp(left, right);
	}
	return order->reverse ? -result : result;
}

bool vb_top_table_make(struct vb_top_table *table, const struct vb_cli_view *before,
		       const struct vb_cli_view *after, const struct vb_top_order *order)
{
	size_t most = 0;

	for (unsigned i = 0; i < after->count; i++)
		most += after->process[i].sample->qps + 1;
	*table = (struct vb_top_table){ .row = calloc(most + 1, sizeof(*table->row)) };
	if (!table->row)
		return false;
	for (unsigned i = 0; i < after->count; i++)
		process_take(table, before, &after->process[i], order);
	qsort_r(table->row, table->count, sizeof(*table->row), compare, (void *)order);
	return true;
}

void vb_top_table_free(struct vb_top_table *table)
{
	free(table->row);
	table->row = NULL;
}
