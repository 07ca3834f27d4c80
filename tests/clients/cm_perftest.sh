#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# perftest's programs with -R, which connect by rdma_cm: every operation, by RC and UD, since they
# refuse XRC then, and know IPv4 alone.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/cm.sh"
. "$(dirname "$0")/../lib/perftest.sh"

here=(127.0.0.1)
also=:$VB_BUILD/tests/verbs/libperftest.so # tests/lib/perftest.c says what it is good for
expect=$perftest_row

# perf_cm PROGRAM ARGS ...: the parameters are exchanged by a first connection, and a client that
# asks for the second one before the server listens again would give up.
perf_cm() {
	local name="$PREFIX: $*" again='Correlation coefficient'
	# Who has said its last word leaves, also if the acknowledgement that it owes was lost.
	[ -z "${VERBATIM_FAULT:-}" ] || again+='\|Failed to close connection'
	set -- "$@" -R -F -p PORT
	pair_try 4 "$again" "$name" cm_run "$@" -- \
		env "AWAITS=$tmp/listens" AWAITS_MAX=2 "$@" "$at"
}

programs() {
	local what
	[ "$at" = "${at#*:}" ] || return
	for what in send write read atomic; do
		perf_cm ib_${what}_bw -n 100
		perf_cm ib_${what}_lat -n 100
	done
	perf_cm ib_write_bw -q 4 -n 100
	perf_cm ib_send_bw -e -n 100
	[ -n "${VERBATIM_FAULT:-}" ] || perf_cm ib_send_bw -c UD -s 1024 -n 100
	[ -n "${VERBATIM_FAULT:-}" ] || perf_cm ib_send_lat -c UD -s 1024 -n 100
}

hosts_make 1500
cm_places programs
suite_end
