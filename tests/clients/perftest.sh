#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# perftest's programs, server and client as two processes on one host: every operation and service,
# posted and built, and each option that makes a program use the NIC in another way.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/perftest.sh"

# perftest measures the processor's frequency again and again, 0.2 s at a time, in each sweep.
limit_s=$((3 * limit_s))
gid=$(gid_index 127.0.0.1)

perf_services
perf_options
perf_builder
perf_sizes
perf "ib_send_lat -n 100000" ib_send_lat -n 100000
perf "ib_write_bw -s 2 -n 100000" ib_write_bw -s 2 -n 100000

gid=$(gid_index ::1)
perf "send_bw IPv6" ib_send_bw -n 1000
perf "write_lat IPv6" ib_write_lat -n 1000
gid=$(gid_index 127.0.0.1)

# Several pairs at once, which share two cores or so: they wait for each other, and all get there.
together() {
	local i pids=
	for i in 1 2 3; do
		(
			tmp=$(mktemp -d "$tmp/pair.XXXXXX")
			port=$((port + 20 * i))
			perf "three pairs at once, $i" "$@"
		) &
		pids="$pids $!"
	done
	# shellcheck disable=SC2086 # a list
	wait $pids
}
together ib_write_bw -n 1000
together ib_send_bw -s 1024 -n 1000
together ib_send_lat -n 500

if user_become; then
	gid=$(gid_index 127.0.0.1 "${on_server[@]}")
	perf "send_bw as an ordinary user" ib_send_bw -n 1000
	perf "write_lat as an ordinary user" ib_write_lat -n 1000
	perf "read_bw as an ordinary user" ib_read_bw -n 1000
else
	skip "as an ordinary user" "nobody cannot read $VB_BUILD"
fi

# All of the above was through shared memory; hosts.sh has the other link with all options.
link_use udp
on_server=() on_client=()
gid=$(gid_index 127.0.0.1)
perf_services
perf_builder
for what in send write read; do
	perf_plain ib_${what}_bw -b -n 500
	perf_plain ib_${what}_bw -q 16 -n 100
done
perf_plain ib_send_bw -e -n 500
perf_plain ib_send_bw --use-srq -q 16 -n 100
perf_plain ib_send_bw --use-srq -q 200 -n 600 -r 600 -s 1024
perf_plain ib_write_bw -s 2 -n 100000
perf_plain ib_send_bw -s 8388608 -n 20
suite_end
