#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The programs of rdmacm-utils, wherever two of them may meet, and when the server dies.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/cm.sh"

# What is connected; $at is the server's address.
streams() {
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
	cm "rdma_client" rdma_server -s "$at" -p PORT -- rdma_client -s "$at" -p PORT
	cm_copy
	cm_times
	cm_death
	[ "$at" = "${at#*:}" ] || return
	cm "ucmatose of port space IB" ucmatose -P ib -p PORT -c 3 -C 5 -- \
		ucmatose -P ib -s "$at" -p PORT -c 3 -C 5
	# Of these the server listens at IPv4 addresses alone.
	cm "rdma_xclient" rdma_xserver -p PORT -- rdma_xclient -s "$at" -p PORT
	cm "rdma_xclient XRC" rdma_xserver -c x -p PORT -- rdma_xclient -c x -s "$at" -p PORT
}

# Who waits for what is lost waits for ever, so nothing is. No group of IPv6 is reached from ::1.
datagrams() {
	local format=() group=239.7.7.7
	local VERBATIM_FAULT=${VERBATIM_FAULT:+dup=1%,reorder=3%,seed=3}
	[ "$at" = "${at#*:}" ] || format=(-f ipv6) group=ff1e::7
	cm "udaddy" udaddy "${format[@]}" -b "$at" -c 10 -C 5 -S 1000 -- \
		udaddy "${format[@]}" -s "$at" -c 10 -C 5 -S 1000
	ready='joined dgid' cm "mckey" mckey -m $group -b "${at/#::1/$a6}" -C 5 -S 100 -- \
		mckey -s -m $group -b "${from/#::1/$a6}" -C 5 -S 100
}

programs() {
	streams
	datagrams
}

cm_times() {
	local name="$PREFIX: cmtime"
	endless_run cmtime -p PORT -c 50 -- cmtime -s "$at" -p PORT -c 50 &&
		grep -q '^connect' "$tmp/client"
	verdict "$name" "$why" "$tmp/server" "$tmp/client"
}

# Very many at once.
cm_many() {
	local name="$PREFIX: cmtime with many" connections=10000
	[ -z "$VB_SANITIZE" ] || connections=500
	endless_run cmtime -p PORT -c $connections -- cmtime -s "$at" -p PORT -c $connections &&
		grep -q '^connect' "$tmp/client"
	verdict "$name" "$why" "$tmp/server" "$tmp/client"
}

# It takes no IPv6 address, since a colon ends the name of the host.
cm_copy() {
	local name="$PREFIX: rcopy"
	[ "$at" = "${at#*:}" ] || return
	rm -f "$tmp/copies/it"
	endless_run rcopy -p PORT -- rcopy "$tmp/source" "$at:$tmp/copies/it" -p PORT &&
		cmp "$tmp/source" "$tmp/copies/it" >>"$tmp/client" 2>&1
	verdict "$name" "$why" "$tmp/server" "$tmp/client"
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
	process_wait $client "$limit_s" 2>/dev/null
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

head -c 300000 /dev/urandom >"$tmp/source"
mkdir "$tmp/copies"
chmod a+rwx "$tmp/copies"
hosts_make 1500
cm_places programs
at=127.0.0.1 from=$at PREFIX="one host $at"
cm_many
[ ${#on_b[@]} = 0 ] || hosts_each deaths
export VERBATIM_LINK=shm
over=" (shm)"
cm_here "one host" streams
suite_end
