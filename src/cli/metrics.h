/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_METRICS_H
#define VB_CLI_METRICS_H

/*
 * `verbatim metrics`: all counters in Prometheus' text format, once to stdout, or again for whoever
 * asks by HTTP.
 */

int vb_cli_metrics(int argc, char **argv);

#endif
