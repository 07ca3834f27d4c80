# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What dies under traffic, and what has to be so afterwards; source it after suite.sh. The suite
# sets $rounds and $gid. Traffic flows both ways with many requests outstanding, so that whoever
# survives has something that his peer's death must fail.

survivor_s=60		# to find out in; perftest's retries take half a second

# How many datagrams this host has sent.
datagrams() {
	awk '$1 == "Udp:" { n = $5 } END { print n }' /proc/net/snmp
}

# Which hub has handed out how many rings; nothing if none has. Through these goes what is no
# datagram.
rings() {
	"$VB_BUILD/verbatim" hub status |
		sed -n 's/^hub *pid \([0-9]*\),.* \([1-9][0-9]*\) rings,.*/\1 \2/p'
}

# traffic_start PROGRAM ARGS ...: sets $server and $client, the processes' ids, once packets flow;
# what they say goes to $tmp/one and $tmp/other
traffic_start() {
	local before rings_before now i
	before=$(datagrams)
	rings_before=$(rings)
	port=$((port + 1))
	"${on_server[@]}" "${run[@]}" "$@" -F -x "$gid" -p $port >"$tmp/one" 2>&1 &
	server=$!
	if ! port_wait $port $server; then
		why="the server does not listen"
		return 1
	fi
	"${on_client[@]}" "${run[@]}" "$@" -F -x "$gid" -p $port 127.0.0.1 >"$tmp/other" 2>&1 &
	client=$!
	for ((i = 0; i < 200; i++)); do
		[ $(($(datagrams) - before)) -gt 1000 ] && break
		now=$(rings)
		[ -n "$now" ] && [ "$now" != "$rings_before" ] && break
		sleep 0.05
	done
	sleep 0.$((RANDOM % 5))
	[ $i -lt 200 ] || why="no traffic"
	[ $i -lt 200 ]
}

# survivor_judge PID FILE: it ends by itself, with a completion that says the retries are exhausted
# (12), or with one that was flushed on that account (5).
survivor_judge() {
	local rc
	process_wait "$1" $survivor_s 2>/dev/null
	rc=$?
	if [ $rc -ge 128 ]; then
		why="the survivor $(status_say $rc)"
	elif [ $rc = 0 ]; then
		why="the survivor notices nothing"
	elif ! grep -Eq 'Failed status (12|5):' "$2"; then
		why="the survivor does not say what failed"
	fi
	[ -z "$why" ]
}

# The hub knows of nobody any more.
hub_empty() {
	await nobody_listed && return
	why="the hub still has a client"
	return 1
}

nobody_listed() {
	"$VB_BUILD/verbatim" hub status >"$tmp/hub"
	grep -Eq ': 0 clients|not running' "$tmp/hub" && ! grep -q '^ *slot' "$tmp/hub"
}

# A new run works at once.
run_again() {
	pair_run ibv_rc_pingpong -p PORT -g "$gid" -n 100 -c -- \
		ibv_rc_pingpong -p PORT -g "$gid" -n 100 -c 127.0.0.1
}

kill_server() {
	traffic_start "$@" -D 60 || return 1
	kill -KILL "$server"
	wait "$server" 2>/dev/null
	survivor_judge "$client" "$tmp/other"
}

kill_client() {
	traffic_start "$@" -D 60 || return 1
	kill -KILL "$client"
	wait "$client" 2>/dev/null
	survivor_judge "$server" "$tmp/one"
}

kill_both() {
	traffic_start "$@" -D 60 || return 1
	kill -KILL "$server" "$client"
	wait "$server" "$client" 2>/dev/null
	return 0
}

# Without a hub data flow on, and both end well; the next program starts another.
kill_hub() {
	local rc_server rc_client
	traffic_start "$@" -D 2 || return 1
	kill -KILL "$(hub_pid)"
	sleep 0.3
	run_again || return 1
	process_wait "$client" 30
	rc_client=$?
	process_wait "$server" 30
	rc_server=$?
	[ $rc_client$rc_server = 00 ] && return 0
	why="client $(status_say $rc_client), server $(status_say $rc_server)"
	return 1
}

# The hub dies first, then a peer: the next hub has to learn who is still there.
kill_hub_and_server() {
	traffic_start "$@" -D 60 || return 1
	kill -KILL "$(hub_pid)" "$server"
	wait "$server" 2>/dev/null
	survivor_judge "$client" "$tmp/other"
}

# killing HOW PROGRAM ARGS ...: one of the above, $rounds times
killing() {
	local name="$*" round why=
	for ((round = 1; round <= rounds; round++)); do
		: >"$tmp/hub"
		"$@" && hub_empty && run_again && hub_empty && continue
		fail "$name, round $round" "$why" "$tmp/one" "$tmp/other" "$tmp/hub"
		kill -KILL "$server" "$client" 2>/dev/null
		return
	done
	ok "$name"
}
