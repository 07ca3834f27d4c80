#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that connect by rdma_cm: rdmacm-utils', perftest's (-R), qperf and fio; on one host by
# each link, between two by IPv4 and IPv6, with losses, and when the server dies.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/perftest.sh"
. "$(dirname "$0")/../lib/rdmacm.sh"

clock=$VB_BUILD/tests/verbs/libperftest.so # tests/lib/perftest.c says what it is good for

# cm_perf PROGRAM ARGS ...: the parameters are exchanged by a first connection, and a client that
# asks for the second one before the server listens again would give up.
cm_perf() {
	local also=:$clock
	set -- "$@" -R -F -p PORT
	cm "$*" "$@" -- env "AWAITS=$tmp/listens" "$@" "$at"
}

# cm_fio VERB OTHER: a client writes whatever it does; a server takes what it is told. Neither
# waits for the other's receives, or sends again without them (and a client whose send has failed
# does not end), so there are as many as there are sends, and they may still come too late.
cm_fio() {
	local common=(--ioengine=rdma --port=PORT --bs=4k --size=64k)
	pair_try 4 'RNR retry counter exceeded' "$PREFIX: fio $1" cm_run \
		fio --name=server "${common[@]}" --rw=read --verb="$2" --iodepth=32 -- \
		fio --name=client "${common[@]}" --rw=write --verb="$1" --hostname="$at" --iodepth=1
}

# What knows both families; $at is the server's address.
clients_of_both() {
	local format=()
	[ "$at" = "${at#*:}" ] || format=(-f ipv6)
	cm "rping" rping -s -a "$at" -p PORT -C 50 -V -S 1000 -- \
		rping -c -a "$at" -p PORT -C 50 -V -S 1000
	cm "ucmatose" ucmatose "${format[@]}" -b "$at" -p PORT -c 10 -C 5 -S 1000 -- \
		ucmatose "${format[@]}" -s "$at" -p PORT -c 10 -C 5 -S 1000
	cm "ucmatose migrating" ucmatose -m "${format[@]}" -b "$at" -p PORT -c 3 -C 5 -- \
		ucmatose -m "${format[@]}" -s "$at" -p PORT -c 3 -C 5
	cm "rping with a QP of its own" rping -s -q -a "$at" -p PORT -C 10 -V -- \
		rping -c -q -a "$at" -p PORT -C 10 -V
	cm "rstream" rstream "${format[@]}" -b "$at" -p PORT -S 1000 -C 50 -I 4 -- \
		rstream "${format[@]}" -s "$at" -p PORT -S 1000 -C 50 -I 4
	cm "riostream" riostream "${format[@]}" -b "$at" -p PORT -S 1000 -C 50 -I 4 -- \
		riostream "${format[@]}" -s "$at" -p PORT -S 1000 -C 50 -I 4
	cm "udaddy" udaddy "${format[@]}" -b "$at" -c 10 -C 5 -S 1000 -- \
		udaddy "${format[@]}" -s "$at" -c 10 -C 5 -S 1000
}

clients_of_ipv4() {
	cm "ucmatose of port space IB" ucmatose -P ib -p PORT -c 3 -C 5 -- \
		ucmatose -P ib -s "$at" -p PORT -c 3 -C 5
	cm "rdma_client" rdma_server -p PORT -- rdma_client -s "$at" -p PORT
	cm "rdma_xclient" rdma_xserver -p PORT -- rdma_xclient -s "$at" -p PORT
	cm "rdma_xclient XRC" rdma_xserver -c x -p PORT -- rdma_xclient -c x -s "$at" -p PORT
	for program in ib_send_bw ib_write_bw ib_read_lat ib_atomic_lat \
		"ib_send_bw -c UD -s 1024"; do
		# shellcheck disable=SC2086 # words of a command
		cm_perf $program -n 100
	done
	cm_fio write write
	cm_fio read read
	cm_fio send recv
	cm_qperf
	cm_times
}

# Its server says which port it has before it listens there.
cm_qperf() {
	local preload="LD_PRELOAD=${VB_PRELOAD:+$VB_PRELOAD:}$listens"
	rm -f "$tmp/listens"
	: >"$tmp/listens"
	pair "$PREFIX: qperf" env "LISTENS=$tmp/listens" "$preload" qperf -lp PORT -- \
		env "AWAITS=$tmp/listens" "$preload" \
		qperf "$at" -lp PORT -cm 1 -t 1 rc_bw rc_lat quit
}

# Very many connections at once. Its server never ends.
cm_times() {
	local name="$PREFIX: cmtime" connections=10000
	[ -z "$VB_SANITIZE" ] || connections=500
	port=$((port + 1))
	server_begin cmtime -p $port -c $connections
	if client_run cmtime -s "$at" -p $port -c $connections &&
		grep -q '^connect' "$tmp/client"; then
		ok "$name"
	else
		fail "$name" "$(status_say $?)" "$tmp/server" "$tmp/client"
	fi
	process_wait $server 0 2>/dev/null
}

has_words() {
	gone "$client" || grep -q "$1" "$tmp/client"
}

# The server is killed while it answers; the client hears that, by the hub's DREQ or, if it sends
# just then, by its QP, and parts.
cm_death() {
	local name="$PREFIX: the server is killed" client
	port=$((port + 1))
	server_begin rping -s -a "$at" -p $port
	client_run stdbuf -oL rping -c -a "$at" -p $port -v &
	client=$!
	await has_words 'ping data'
	kill -9 "$(cat "/proc/$server/task/$server/children")"
	process_wait $client 10 2>/dev/null
	wait $server 2>/dev/null
	grep -qE 'DISCONNECT EVENT|cq completion failed' "$tmp/client"
	verdict "$name" "the client does not hear of it" "$tmp/server"
}

# Both ends and the hubs die at each step; the client is on the other host.
deaths() {
	local name="$PREFIX: deaths at each step"
	LD_LIBRARY_PATH=$VB_BUILD/lib CT_SERVER_IP=$at CT_PEER_NETNS=/proc/${on_b[2]}/ns/net \
		timeout -k 5 "$limit_s" "$VB_BUILD/tests/rdmacm/rdmacm_death_test" \
		>"$tmp/deaths" 2>&1
	verdict "$name" "see there" "$tmp/deaths"
}

# members GROUP: who only sends is heard by a member.
members() {
	local ready='joined dgid'
	cm "mckey $1" mckey -m "$1" -b "$at" -C 5 -S 100 -- \
		mckey -s -m "$1" -b "$from" -C 5 -S 100
}

for link in "" udp; do
	[ -z "$link" ] || link_use $link
	for at in 127.0.0.1 ::1; do
		PREFIX="one host $at" from=$at
		clients_of_both
		cm_death
		[ $at = ::1 ] || clients_of_ipv4
	done
done
export VERBATIM_LINK=shm
over=" (shm)" at=127.0.0.1
PREFIX="one host $at"
clients_of_both
unset VERBATIM_LINK
over=

export VERBATIM_FAULT="loss=1%,seed=3"
PREFIX="1 % lost"
cm "rping" rping -s -a $at -p PORT -C 100 -V -S 10000 -- rping -c -a $at -p PORT -C 100 -V -S 10000
cm "ucmatose" ucmatose -p PORT -c 30 -C 2 -- ucmatose -s $at -p PORT -c 30 -C 2
unset VERBATIM_FAULT

if hosts_make 1500; then
	for family in 4 6; do
		PREFIX="two hosts IPv$family"
		hosts_use $family
		at=a$family from=b$family
		at=${!at} from=${!from}
		clients_of_both
		cm_death
		deaths
		if [ $family = 4 ]; then
			clients_of_ipv4
			members 239.7.7.7
		else
			members ff1e::7
		fi
	done
else
	skip "two hosts" "this system lets us make no veth"
fi
suite_end
