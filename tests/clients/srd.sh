#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Four processes with a QP of SRD each, all of which send to all, on one host by either link and on
# two, over links that lose, double, reorder and damage: every message comes once, and out of order.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

stress=$VB_BUILD/tests/verbs/srd_stress
messages=${VB_LONG:+20000}
: "${messages:=600}"

# stress NAME GID [ON ...]: processes 1 and 3 are where ON puts them.
stress() {
	local what=$1 gid=$2 d=$tmp/stress pids=() k rc=0 overtook
	shift 2
	rm -rf "$d"
	mkdir "$d"
	for k in 0 1 2 3; do
		local on=()
		[ $((k % 2)) = 0 ] || on=("$@")
		timeout -k 5 $limit_s "${on[@]}" "${run[@]}" "$stress" "$d" $k 4 "$gid" \
			"$messages" >"$d/$k.log" 2>&1 &
		pids+=($!)
	done
	for k in 0 1 2 3; do
		wait "${pids[$k]}" || rc=1
	done
	cat "$d"/?.log >"$d/logs"
	overtook=$(awk '/overtook/ {n += $4} END {print n + 0}' "$d/logs")
	if [ $rc != 0 ]; then
		fail "$what" "a process failed" "$d/logs"
	elif [ "$overtook" = 0 ]; then
		fail "$what" "all came in order" "$d/logs"
	else
		ok "$what ($overtook of $((4 * messages)) messages overtook others)"
	fi
}

gid=$(gid_index 127.0.0.1)
for link in "" shm udp; do
	link_use "$link"
	stress "one host${link:+, $link}" "$gid"
done
export VERBATIM_FAULT=loss=1%,dup=1%,reorder=2%,corrupt=0.1%,seed=5
stress "one host, a faulty link" "$gid"
link_use ""
over=

if hosts_make 9000 && hosts_use 4; then
	stress "two hosts, a faulty link" "$gid" "${on_b[@]}"
	hosts_use 6 && stress "two hosts, a faulty link, IPv6" "$gid" "${on_b[@]}"
else
	skip "two hosts" "this system lets us make no veth"
fi
suite_end
