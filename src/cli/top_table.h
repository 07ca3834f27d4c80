/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_TOP_TABLE_H
#define VB_CLI_TOP_TABLE_H

/*
 * The table of `verbatim top`: a row for each queue pair, or for each process, with what happened
 * between two views. Pure but for memory: no terminal, no clock.
 */

#include <stdbool.h>
#include <stddef.h>

#include "cli/view.h"

enum { VB_TOP_CELL_BYTES = 48 };

/* Per second, or as it is at the end. Text that it points to lives as long as the later view. */
struct vb_top_row {
	const struct vb_cli_process *process;
	const struct vb_sample_qp *qp; /* NULL: the row is a process */
	unsigned qps;
	double requests, octets, served, again, rnr;
	double p50_ns, p99_ns, max_ns; /* of a process: of its slowest queue pair */
	uint64_t outstanding;
	bool waits; /* for a receiver that has no receive request */
};

struct vb_top_table {
	struct vb_top_row *row;
	unsigned count;
	struct vb_top_row total;
};

/* How it is asked for. */
struct vb_top_order {
	bool processes; /* a row for each of them, not for each queue pair */
	unsigned column; /* that it is sorted by */
	bool reverse;
	const char *search; /* only rows with this in one of their cells; "": all */
};

/* False: no memory. */
bool vb_top_table_make(struct vb_top_table *table, const struct vb_cli_view *before,
		       const struct vb_cli_view *after, const struct vb_top_order *order);
void vb_top_table_free(struct vb_top_table *table);

/* The column of that name, or one with its beginning; vb_top_columns() if there is none. */
unsigned vb_top_column_find(const char *name);
unsigned vb_top_columns(void);
const char *vb_top_column_name(unsigned column);

/* A line of the table, without a newline, cut to `width`. row NULL: the titles. */
void vb_top_line(char *line, size_t bytes, const struct vb_top_row *row, unsigned width);

/* "12u", "1.3m": an amount of time in no more than four characters. */
void vb_top_time(char text[8], double ns);

/* "12.3k": an amount in no more than so many characters, of which it needs four. */
void vb_top_short(char text[8], double value, unsigned chars);

#endif
