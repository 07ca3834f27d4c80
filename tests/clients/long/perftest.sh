#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# perftest for longer: every size by every program, many requests, minutes of traffic.
. "$(dirname "$0")/../../lib/suite.sh"
. "$(dirname "$0")/../../lib/perftest.sh"

limit_s=600
for from in 127.0.0.1 ::1; do
	gid=$(gid_index $from)
	PREFIX=$from
	for what in send write read; do
		perf_plain ib_${what}_bw -a -n 500
		perf_plain ib_${what}_bw -a -b -n 200
		perf_plain ib_${what}_lat -a -n 200
	done
	perf_plain ib_send_bw -a -c UC -n 200
	perf_plain ib_write_bw -a -c UC -n 200
	perf_plain ib_send_lat -a -c UD -n 1000
	perf_plain ib_send_bw -a --use-srq -q 16 -n 50
done

PREFIX=
gid=$(gid_index 127.0.0.1)
perf_plain ib_write_bw -s 2 -n 5000000
perf_plain ib_send_bw -s 64 -n 1000000
perf_plain ib_atomic_bw -n 1000000
perf_plain ib_send_lat -n 1000000
perf_plain ib_write_bw -D 120 -b -q 16
suite_end
