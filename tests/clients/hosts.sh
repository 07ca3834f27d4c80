#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two hosts joined by veth, MTU 1500 and 9000, IPv4 and IPv6 GIDs: ping-pongs and perftest.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/perftest.sh"
. "$(dirname "$0")/../lib/pingpong.sh"

if ! hosts_make 1500; then
	skip_all "this system lets us make no veth"
fi

# pingpongs: every service; the client's check of the data is on.
pingpongs() {
	local kind size expect='iters in'
	for kind in rc uc ud srq; do
		for size in 1 1024 65536 1048576; do
			[ $kind = ud ] && [ $size -gt 1024 ] && continue
			twins "$PREFIX $kind pingpong $size" \
				ibv_${kind}_pingpong -p PORT -g "$gid" -s $size -n 50 -c
		done
	done
	twins "$PREFIX rc pingpong -e" ibv_rc_pingpong -p PORT -g "$gid" -e
	expect='tags: ' twins "$PREFIX messages with tags" \
		"$VB_ROOT/tests/lib/tags.py" -p PORT -g "$gid"
}

for mtu in 1500 9000; do
	hosts_mtu $mtu
	for family in 4 6; do
		PREFIX="MTU $mtu IPv$family"
		if ! hosts_use $family; then
			fail "$PREFIX" "the hosts' GID tables differ or lack the address"
			continue
		fi
		pingpongs
		xsrq_pingpongs
		perf_services
	done
done

# The options once; all combinations are in long/hosts.sh.
hosts_use 6
PREFIX="MTU 9000 IPv6"
pingpong_options
perf_options
perf_builder

# A path MTU that the cable does not carry is refused, not sent in vain.
hosts_mtu 1500
hosts_use 4
"$VB_BUILD/verbatim" devices >"$tmp/devices"
grep -q 'MTU 1024' "$tmp/devices"
verdict "the port's MTU follows the cable's" "not 1024 over 1500" "$tmp/devices"
suite_end
