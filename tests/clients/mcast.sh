#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Multicast by perftest: UD with -g, between processes of one host and between two hosts, to groups
# of IPv4 and IPv6.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/perftest.sh"

# group FAMILY N: as perftest wants it, octet by octet.
group() {
	case $1 in
	4) echo "0:0:0:0:0:0:0:0:0:0:255:255:239:79:0:$2" ;;
	6) echo "255:14:0:0:0:0:0:0:0:0:0:0:0:0:79:$2" ;;
	esac
}

# cast FAMILY PROGRAM ARGS ...: each side is in a group of its own, and sends to the other's. What
# is lost is lost: so few messages that the receiver's socket holds them all.
cast() {
	local family=$1 expect=$perftest_row
	shift
	local common=("$@" -c UD -g -d verbatim0 -F -x "$gid" -p PORT)
	pair "${PREFIX:+$PREFIX }$*" "${common[@]}" -M "$(group "$family" 1)" -- \
		"${common[@]}" -M "$(group "$family" 2)" "$address"
}

# both FAMILY
both() {
	local size
	for size in 2 512 1024; do
		cast "$1" ib_send_bw -s $size -n 100
		cast "$1" ib_send_lat -s $size -n 200
	done
	cast "$1" ib_send_bw -e -s 64 -n 100
	cast "$1" ib_send_lat -e -s 64 -n 100
}

gid=$(gid_index 127.0.0.1)
PREFIX="one host IPv4"
both 4
PREFIX="one host IPv4, one group"
perf_plain ib_send_bw -c UD -g -M "$(group 4 1)" -s 64 -n 100
perf_plain ib_send_lat -c UD -g -M "$(group 4 1)" -s 64 -n 100

if ! hosts_make 1500; then
	skip "IPv6 and two hosts" "this system lets us make no veth"
	suite_end
fi

# The group that perftest takes by itself is of IPv6, and ends at the interface.
gid=$(gid_index $a6)
PREFIX="one host IPv6"
both 6
PREFIX="one host IPv6, perftest's group"
perf_plain ib_send_bw -c UD -g -s 64 -n 100

for family in 4 6; do
	PREFIX="two hosts IPv$family"
	if ! hosts_use $family; then
		fail "$PREFIX" "the hosts' GID tables differ or lack the address"
		continue
	fi
	both $family
	export VERBATIM_PCAP="$tmp/cast$family-%p.pcap"
	cast $family ib_send_bw -s 100 -n 150
	unset VERBATIM_PCAP
	check "$PREFIX: every ICRC is right" \
		"$VB_ROOT/tests/lib/icrc_check.py" --min 300 "$tmp/cast$family"-*.pcap
done

on_server=() on_client=()
address=127.0.0.1
link_use udp
gid=$(gid_index 127.0.0.1)
PREFIX="one host IPv4"
both 4
suite_end
