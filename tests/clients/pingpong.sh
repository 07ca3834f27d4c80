#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# ibverbs-utils' ping-pongs, server and client as two processes on one host: every service, sizes
# from 1 octet to 1 MiB, IPv4 and IPv6 GIDs, polling and sleeping, each option, with their own check
# of the data.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/pingpong.sh"

expect='iters in'

# pingpong NAME PROGRAM GID ARGS ...: they meet at an IPv4 address whatever the GIDs are, for some
# servers listen nowhere else
pingpong() {
	local name=$1 program=$2 gid
	gid=$(gid_index "$3")
	shift 3
	twins "$name" "$program" -p PORT -g "$gid" "$@"
}

# iterations SIZE: enough to wrap the queues while messages are small.
iterations() {
	echo $(($1 > 65536 ? 50 : $1 > 4096 ? 200 : 1000))
}

# service NAME PROGRAM SIZE ...
service() {
	local name=$1 program=$2 size from n
	shift 2
	for from in 127.0.0.1 ::1; do
		for size; do
			n=$(iterations "$size")
			pingpong "$name $from $size" "$program" "$from" -s "$size" -n "$n" -c
		done
	done
	pingpong "$name plain" "$program" 127.0.0.1
	pingpong "$name events" "$program" 127.0.0.1 -e
	pingpong "$name events checked" "$program" ::1 -e -c -s "$2"
}

service rc ibv_rc_pingpong 1 4095 4096 65536 1048576
service uc ibv_uc_pingpong 1 1023 1024 65536 1048576
service ud ibv_ud_pingpong 1 1024 2048 4096
service srq ibv_srq_pingpong 1 4096 65536 1048576

for mtu in 256 512 2048 4096; do
	pingpong "rc path MTU $mtu" ibv_rc_pingpong 127.0.0.1 -m $mtu -s 10001 -c
	pingpong "uc path MTU $mtu" ibv_uc_pingpong ::1 -m $mtu -s 10001 -c
done
pingpong "srq 64 queue pairs" ibv_srq_pingpong 127.0.0.1 -q 64 -n 100 -c
gid=$(gid_index 127.0.0.1)
pingpong_options
xsrq_pingpongs
expect='traffic: ' pingpong "every octet checked" "$VB_ROOT/tests/lib/traffic.py" 127.0.0.1 -n 3
expect='tags: ' pingpong "messages with tags" "$VB_ROOT/tests/lib/tags.py" 127.0.0.1 -n 20

if user_become; then
	for kind in rc uc ud srq; do
		pingpong "$kind as an ordinary user" ibv_${kind}_pingpong 127.0.0.1 -c
	done
else
	skip "as an ordinary user" "nobody cannot read $VB_BUILD"
fi

# All of the above was through shared memory. hosts.sh has the other link with all sizes.
link_use udp
on_server=() on_client=()
pingpong_options
xsrq_pingpongs
expect='tags: ' pingpong "messages with tags" "$VB_ROOT/tests/lib/tags.py" 127.0.0.1 -n 20
for from in 127.0.0.1 ::1; do
	pingpong "rc $from" ibv_rc_pingpong $from -s 65536 -n 200 -c
	pingpong "uc $from" ibv_uc_pingpong $from -s 65536 -n 200 -c
	pingpong "ud $from" ibv_ud_pingpong $from -c
	pingpong "srq $from" ibv_srq_pingpong $from -c
	pingpong "rc events $from" ibv_rc_pingpong $from -e -c
done
pingpong "rc path MTU 256" ibv_rc_pingpong 127.0.0.1 -m 256 -s 10001 -c
suite_end
