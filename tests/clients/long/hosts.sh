#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Everything of perftest between two hosts, in all combinations of MTU and IP version, and several
# path MTUs over each.
. "$(dirname "$0")/../../lib/suite.sh"
. "$(dirname "$0")/../../lib/netns.sh"
. "$(dirname "$0")/../../lib/perftest.sh"

if ! hosts_make 1500; then
	skip_all "this system lets us make no veth"
fi

limit_s=300
for mtu in 1500 2200 4200 9000; do
	hosts_mtu $mtu
	for family in 4 6; do
		PREFIX="MTU $mtu IPv$family"
		if ! hosts_use $family; then
			fail "$PREFIX" "the hosts' GID tables differ or lack the address"
			continue
		fi
		perf_services
		perf_options
		perf_sizes
		for path in 256 512 1024; do
			perf_plain ib_write_bw -m $path -n 200
		done
	done
done
suite_end
