#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# 64 initiators of DC in four processes against 64 targets in four others, on one host and on two,
# targets chosen at random, over links that lose, double, reorder and damage: every message comes
# once and in order, with its data. With a target process killed, only what goes there fails.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

stress=$VB_BUILD/tests/verbs/dc_stress
messages=${VB_LONG:+2000}
: "${messages:=150}"
limit_s=$((3 * limit_s))

all_there() {
	[ "$(find "$1" -name '*.to' | wc -l)" = 4 ]
}

# stress NAME KILL GID [ON ...]: targets 1 and 3 are where ON puts them; KILL: number of the target
# process that is killed, or nothing.
stress() {
	local what=$1 kill=$2 gid=$3 d=$tmp/stress pids=() clients=() k rc=0
	shift 3
	rm -rf "$d"
	mkdir "$d"
	for k in 0 1 2 3; do
		local on=()
		[ $((k % 2)) = 0 ] || on=("$@")
		"${on[@]}" "${run[@]}" "$stress" target "$d" t$k 16 "$gid" >"$d/t$k.log" 2>&1 &
		pids+=($!)
	done
	await all_there "$d"
	for k in 0 1 2 3; do
		timeout -k 5 $limit_s "${run[@]}" "$stress" initiator "$d" i$k 16 "$gid" \
			"$messages" >"$d/i$k.log" 2>&1 &
		clients+=($!)
	done
	if [ -n "$kill" ]; then
		sleep 0.5
		echo "$kill" >"$d/dead"
		kill -9 "${pids[$kill]}"
		wait "${pids[$kill]}" 2>/dev/null
	fi
	for k in 0 1 2 3; do
		wait "${clients[$k]}" || rc=1
	done
	touch "$d/stop"
	for k in 0 1 2 3; do
		[ "$k" = "$kill" ] || wait "${pids[$k]}" || rc=1
	done
	# What a process that was killed had taken in, nobody will tell.
	awk -v k="${kill:-none}" 'int($2 / 16) != k' "$d"/i?.sent | sort >"$d/sent"
	sort "$d"/t?.got >"$d/got"
	if [ $rc != 0 ]; then
		cat "$d"/*.log >"$d/logs"
		fail "$what" "a process failed" "$d/logs"
	elif ! diff "$d/sent" "$d/got" >"$d/differences"; then
		fail "$what" "what was sent and what came differ" "$d/differences"
	else
		ok "$what ($(awk '{n += $3} END {print n}' "$d/got") messages)"
	fi
}

gid=$(gid_index 127.0.0.1)
stress "one host" "" "$gid"
messages=$((2 * messages))
stress "one host, a target process killed" 3 "$gid"

messages=$((messages / 2))
export VERBATIM_FAULT=loss=1%,dup=1%,reorder=2%,corrupt=0.1%,seed=5
link_use udp
stress "one host, a faulty link" "" "$gid"
stress "one host, a faulty link, a target process killed" 2 "$gid"
link_use ""
over=

if hosts_make 1500 && hosts_use 4; then
	stress "two hosts, a faulty link" "" "$gid" "${on_b[@]}"
	stress "two hosts, a faulty link, a target process killed" 3 "$gid" "${on_b[@]}"
else
	skip "two hosts" "this system lets us make no veth"
fi
suite_end
