#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# RC completes with the right data whatever becomes of packets: losses on the path (nftables), and
# loss, duplication, reordering and corruption by VERBATIM_FAULT.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/perftest.sh"

fault="loss=1%,dup=1%,reorder=5%,corrupt=0.1%,seed=7"
traffic=$VB_ROOT/tests/lib/traffic.py

# traffic NAME ARGS ...: every octet of it is checked
traffic() {
	local name=$1 expect='traffic: '
	shift
	twins "$name" "$traffic" -p PORT -g "$gid" "$@"
}

# pingpong NAME PROGRAM ARGS ...: ibverbs-utils' ping-pongs part without a word. Whoever has all
# that he waits for leaves, and if the acknowledgement that he sent last is lost the other asks in
# vain; that is nobody's fault, and rare, so it may happen, but not always. Of several QPs the one
# that sends something again is left behind when the others have counted to the end, in every third
# run: so a single one goes by the SRQ.
pingpong() {
	local name=$1 expect='iters in'
	shift
	set -- "$@" -p PORT -g "$gid"
	pair_try 4 'retry counter exceeded' "$name" pair_run "$@" -- "$@" "$address"
}

# What clients do otherwise over such a path. perftest has timeout 14 and 7 retries.
clients() {
	traffic "$PREFIX traffic MTU 1024" -n 5
	traffic "$PREFIX traffic MTU 256" -n 3 -m 256 -s 327680
	pingpong "$PREFIX rc pingpong" ibv_rc_pingpong -s 65536 -n 200 -c
	pingpong "$PREFIX srq pingpong" ibv_srq_pingpong -q 1 -n 100 -c
	perf_plain ib_send_bw -n 300
	perf_plain ib_write_bw -n 300
	perf_plain ib_read_bw -n 300
	perf_plain ib_atomic_bw -n 300
	perf_plain ib_send_bw -q 8 -b -n 50
	perf_plain ib_send_lat -n 500
	perf_plain ib_write_lat -n 300
}

export VERBATIM_FAULT=$fault
gid=$(gid_index 127.0.0.1)
PREFIX="faults on one host:"
clients
VERBATIM_FAULT="loss=10%,dup=5%,reorder=10%,delay=100us,corrupt=1%,seed=3"
PREFIX="heavy faults:"
traffic "$PREFIX traffic" -n 2 -s 327680
unset VERBATIM_FAULT

if hosts_make 1500; then
	for family in 4 6; do
		hosts_use $family
		export VERBATIM_FAULT=$fault
		PREFIX="faults IPv$family:"
		traffic "$PREFIX traffic" -n 3
		perf_plain ib_write_bw -n 300
		unset VERBATIM_FAULT
	done

	# One in a hundred of what either host receives. A batch counts as one: several packets.
	rules='table inet verbatim { chain loss { type filter hook input priority 0;
		udp dport 4791 numgen random mod 100 < 1 counter drop; }; }'
	if nft "$rules" 2>"$tmp/nft" && "${on_b[@]}" nft "$rules"; then
		hosts_use 4
		PREFIX="1 % lost IPv4:"
		clients
		hosts_use 6
		PREFIX="1 % lost IPv6:"
		traffic "$PREFIX traffic" -n 3
		nft list chain inet verbatim loss >"$tmp/nft"
		grep -q 'packets [1-9]' "$tmp/nft"
		verdict "packets were lost" "the counter says none" "$tmp/nft"
	else
		skip "1 % lost" "nftables: $(head -1 "$tmp/nft")"
	fi
else
	skip "two hosts" "this system lets us make no veth"
fi
suite_end
