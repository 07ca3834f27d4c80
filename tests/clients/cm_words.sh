#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What people read of rdma_cm: in the log of a program that is refused, and in `verbatim status`;
# within a host and between two. tests/rdmacm/words_test.c has what one process reads of itself.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

verbatim=$VB_BUILD/verbatim
export VERBATIM_HUB_IDLE_MS=60000
command -v rping >/dev/null || skip_all "there is no rping (rdmacm-utils)"

# shows WORDS [ON ...]: status has them in one line
shows() {
	"${@:2}" "$verbatim" status >"$tmp/output" 2>&1 && grep -Eq -- "$1" "$tmp/output"
}

# status_shows NAME WORDS [ON ...]: in the end
status_shows() {
	await shows "${@:2}"
	verdict "$1" "status does not show: $2" "$tmp/output"
}

# refused NAME WORDS CMD ...: a client that is refused reads why
refused() {
	rm -f "$tmp/log"
	timeout -k 5 "$limit_s" env "VERBATIM_LOG=$tmp/log" "${@:3}" >"$tmp/output" 2>&1
	touch "$tmp/log"
	grep -Eq -- "$2" "$tmp/log"
	verdict "$1" "the log does not say: $2" "$tmp/log" "$tmp/output"
}

nobody='refused there: nobody listens for this service id \(8\)'

"${run[@]}" rping -s -P -a 127.0.0.1 -p 7472 >"$tmp/server" 2>&1 &
server=$!
status_shows "who listens" "pid $server \(rping\): listens at 127.0.0.1 port 7472 of TCP, backlog"
refused "a port beside it" \
	"to 127.0.0.1 port 7471 of TCP: $nobody; the nearest is port 7472, pid $server" \
	"${run[@]}" rping -c -a 127.0.0.1 -p 7471 -C 1
refused "a port space where nobody listens" "no port of UDP is listened to here" \
	"${run[@]}" udaddy -s 127.0.0.1 -c 1
# Not of rping, which ends by exit(3) in two threads at once, if it is refused: the one that comes
# second ends the process while the other one still runs destructors, of which one is ours.
grep -q 'cm_sent [1-9]' "$tmp/log"
verdict "and how many messages there were" "the log does not say" "$tmp/log"
"${run[@]}" rping -c -a 127.0.0.1 -p 7472 >"$tmp/client" 2>&1 &
client=$!
status_shows "who is connected, there" "pid $server \(rping\): 1 id with 127.0.0.1: established"
status_shows "and here" "pid $client \(rping\): 1 id with 127.0.0.1: established"
kill $client
wait $client 2>/dev/null
kill $server
wait $server 2>/dev/null

if hosts_make 1500; then
	"${run[@]}" rping -s -P -a $a4 -p 7472 >"$tmp/server" 2>&1 &
	server=$!
	status_shows "another host: who listens" "listens at $a4 port 7472 of TCP"
	refused "another host refuses" \
		"rdma_connect to $a4 port 7471 of TCP: $nobody\$" \
		"${on_b[@]}" "${run[@]}" rping -c -a $a4 -p 7471 -C 1
	"${on_b[@]}" "${run[@]}" rping -c -a $a4 -p 7472 >"$tmp/client" 2>&1 &
	client=$!
	status_shows "another host is connected" "pid $server \(rping\): 1 id with $b4: established"
	status_shows "as it says itself" "\(rping\): 1 id with $a4: established" "${on_b[@]}"
	kill $client
	wait $client 2>/dev/null
	kill $server
	wait $server 2>/dev/null
else
	skip "another host" "no virtual Ethernet here"
fi
suite_end
