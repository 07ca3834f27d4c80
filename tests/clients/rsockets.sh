#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# rdmacm-utils' programs of rsockets, with each of their options: rstream, riostream, udpong, rcopy;
# on one host by each link, between two by IPv4 and IPv6, with losses, and when a side is killed.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/cm.sh"

# stream PROGRAM OPTIONS: both ends with these options, $at being the server's address.
stream() {
	local program=$1 format=()
	shift
	[ "$at" = "${at#*:}" ] || format=(-f ipv6)
	[ "$program" = rstream ] || format=()
	cm "$program $*" "$program" "${format[@]}" -b "$at" -p PORT "$@" -- \
		"$program" "${format[@]}" -s "$at" -p PORT "$@"
}

# Not with -T echo, nor without a size: those repeat what is not answered within a millisecond, take
# an answer to the repetition for the question to ask next, and once that is so and a datagram is
# lost they ask the same for ever. That depends on how busy the machine is.
datagrams() {
	cm_endless "udpong $*" udpong -b "$at" -p PORT "$@" -- udpong -s "$at" -p PORT "$@"
}

# A file as long as a name of its own, and compared.
copy() {
	local name="$PREFIX: rcopy of $1 octets" why
	head -c "$1" /dev/urandom >"$tmp/file"
	rm -f "$tmp/copy"
	endless_run rcopy -p PORT -- rcopy "$tmp/file" "$at:$tmp/copy" -p PORT &&
		cmp "$tmp/file" "$tmp/copy" >>"$tmp/client" 2>&1
	verdict "$name" "${why:-}" "$tmp/server" "$tmp/client"
}

# Each way to wait, data that is looked at, buffers as small and messages as long as they come.
each_option() {
	local way
	for way in block nonblock async; do
		stream rstream -T $way -S 1000 -C 100 -I 10
		stream rstream -T $way -T verify -S 100000 -C 20 -I 2
		stream riostream -T $way -T verify -S 5000 -C 20 -I 2
		datagrams -T $way -S 1000 -C 500
		datagrams -T $way -S 2000 -C 100
	done
	stream rstream -T async -T block -S 1000 -C 100 -I 10
	stream rstream -T verify -B 5000 -S 30000 -C 10 -I 3
	stream riostream -T verify -B 5000 -S 30000 -C 10 -I 3
	datagrams -B 5000 -S 1000 -C 500
	stream rstream -T resolve -S 1000 -C 100 -I 10
}

each_program() {
	stream rstream -T block -T verify -S 3000 -C 50 -I 4
	stream riostream -T verify -S 3000 -C 50 -I 4
	datagrams -S 1000 -C 100
	# rcopy takes a colon for the end of the address.
	if [ "$at" = "${at#*:}" ]; then
		copy 1
		copy 3000000
	fi
}

has_accepted() {
	[ "$(stat -c %s "$tmp/listens")" = 2 ] || gone "$client"
}

# Whoever is left hears of it, and ends.
stream_death() {
	local name="$PREFIX: rstream's $1 is killed" client victim
	port=$((port + 1))
	server_begin rstream -b "$at" -p $port -T block -S 1000 -C 1000000 -I 1000
	client_run rstream -s "$at" -p $port -T block -S 1000 -C 1000000 -I 1000 2>/dev/null &
	client=$!
	await has_accepted
	nap 0.2
	[ "$1" = server ] && victim=-b || victim=-s
	kill -9 "$(pgrep -nf "^rstream $victim $at -p $port")"
	process_wait $client 20 2>/dev/null
	[ $? != 143 ] && { process_wait $server 20 2>/dev/null; [ $? != 143 ]; }
	verdict "$name" "the other does not end" "$tmp/server" "$tmp/client"
}

deaths() {
	stream_death server
	stream_death client
}

each_program_and_deaths() {
	each_program
	deaths
}

for link in "" udp; do
	[ -z "$link" ] || link_use $link
	PREFIX="one host 127.0.0.1" at=127.0.0.1
	each_option
	copy 1
	copy 20000000
	stream rstream
	deaths
	PREFIX="one host ::1" at=::1
	each_program_and_deaths
done
unset VERBATIM_LINK
over= at=127.0.0.1
PREFIX="one host $at"
stream riostream
cm "rstream by name" rstream -f name -b localhost -p PORT -S 1000 -C 10 -I 3 -- \
	rstream -f name -s localhost -p PORT -S 1000 -C 10 -I 3

export VERBATIM_FAULT="loss=1%,seed=5"
PREFIX="1 % lost"
each_program
stream rstream -T async -T verify -S 20000 -C 20 -I 10
unset VERBATIM_FAULT

if hosts_make 1500; then
	hosts_each each_program_and_deaths
else
	skip "two hosts" "this system lets us make no veth"
fi
suite_end
