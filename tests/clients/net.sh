#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A modelled network (VERBATIM_NET): nothing is faster than it, and sixteen senders into one port of
# it slow down by their marks. How exact it is on a quiet machine, `make bench` says (group net).
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

senders=16 PREFIX=

# ran_for CMD ...: sets $took to its microseconds.
ran_for() {
	local from=${EPOCHREALTIME/./} rc
	"$@"
	rc=$?
	took=$((${EPOCHREALTIME/./} - from))
	return $rc
}

# least NAME US CMD ...: twins that take so long at least.
least() {
	local name="$PREFIX$1" least_us=$2 why took
	shift 2
	ran_for pair_run "$@" -- "$@" "$address"
	if [ -z "$why" ] && [ $took -lt "$least_us" ]; then
		why="it took $took us"
	fi
	[ -z "$why" ]
	verdict "$name" "$why" "$tmp/server" "$tmp/client"
}

# 4,096 octets are 4,178 on the line; their acknowledgements go the other way.
never_faster() {
	VERBATIM_NET=rate=2Mbit least "2 Mbit/s: 100 WRITEs of 4 KiB take 1.67 s or more" 1671200 \
		ib_write_bw -x "$gid" -p PORT -s 4096 -n 100 -m 1024 -u 20
	VERBATIM_NET=rate=100Mbit least "100 Mbit/s: 20 MiB take 1.7 s or more" 1700000 \
		ib_write_bw -x "$gid" -p PORT -s 1048576 -n 20 -m 1024 -u 18
	VERBATIM_NET=delay=10ms least "10 ms: 50 round trips take 1 s or more" 1000000 \
		ib_send_lat -x "$gid" -p PORT -s 64 -n 50
	VERBATIM_NET=delay=1ms,jitter=3ms least "jitter: 200 pings by UD in order" 200000 \
		ibv_ud_pingpong -g "$gid" -p PORT -s 64 -n 100
}

gid=$(gid_index 127.0.0.1)
never_faster
VERBATIM_NET=rate=1Gbit,name=words$$ check "the log says why not by shared memory" bash -c "
	VERBATIM_LOG=$tmp/log; export VERBATIM_LOG
	$VB_RUN ibv_rc_pingpong -g $gid -n 10 & sleep 1
	$VB_RUN ibv_rc_pingpong -g $gid -n 10 127.0.0.1 && wait &&
	grep 'UDP, because VERBATIM_NET is set' $tmp/log"
[ ! -e "/dev/shm/verbatim-net.$(id -u).words$$" ]
verdict "nothing is left of it" "its file is"

if ! ip link add br0 type bridge 2>/dev/null || ! hosts_make 1500; then
	skip "two hosts, and sixteen" "this system lets us make no veth, or no bridge"
	suite_end
fi
PREFIX="two hosts: "
hosts_use 4
never_faster
ip link del vb0
PREFIX=

# hosts_around: so many hosts on one bridge; the words that lead to the i-th are in on_I.
hosts_around() {
	local i
	ip link set br0 up
	for ((i = 0; i <= senders; i++)); do
		host_new "on_$i"
		local -n on="on_$i"
		ip link add "v$i" type veth peer name vb0 netns "${on[2]}" || return
		ip link set "v$i" master br0 up
		host_up "10.80.0.$((i + 1))/24" "fd80::$((i + 1))/64" "${on[@]}"
	done
}

# incast NET: all of them WRITE 256 KiB forty times into host 0. Output: $tmp/in.*, $tmp/log.*, and
# what the ports counted, $tmp/ports.
incast() {
	local i pids=() watcher
	local -a cmd=("${run[@]}" ib_write_bw -m 1024 -s 262144 -n 40 -t 4 -u 18 -x)
	export VERBATIM_NET=$1
	rm -f "$tmp"/in.* "$tmp"/log.* "$tmp"/hold "$tmp"/ports
	mkfifo "$tmp/hold"
	"$VB_ROOT/tests/lib/net_ports.py" "${1##*name=}" <"$tmp/hold" >"$tmp/ports" &
	watcher=$!
	exec 9>"$tmp/hold"
	while [ ! -s "$tmp/ports" ] && kill -0 $watcher; do sleep 0.1; done
	for ((i = 1; i <= senders; i++)); do
		local -n on="on_$i"
		local -n to=on_0
		VERBATIM_LOG=$tmp/log.s timeout 120 "${to[@]}" \
			"${cmd[@]}" "$gid0" -p $((21000 + i)) >"$tmp/in.s$i" 2>&1 9>&- &
		pids+=($!)
	done
	on_server=("${on_0[@]}")
	for ((i = 1; i <= senders; i++)); do
		port_wait $((21000 + i)) "${pids[i - 1]}"
	done
	for ((i = 1; i <= senders; i++)); do
		local -n on="on_$i"
		VERBATIM_LOG=$tmp/log.c timeout 120 "${on[@]}" \
			"${cmd[@]}" "$gid0" -p $((21000 + i)) 10.80.0.1 >"$tmp/in.c$i" 2>&1 9>&- &
		pids+=($!)
	done
	local failed=0
	for i in "${pids[@]}"; do
		wait "$i" || failed=$((failed + 1))
	done
	exec 9>&-
	wait $watcher
	unset VERBATIM_NET
	return $failed
}

# counted NAME FILE: the sum of a counter that the log has at the end of each process.
counted() {
	awk -v name="$1" '$2 == name { sum += $3 } END { print sum + 0 }' "$2"
}

# queue_holds: what left the senders' ports came to the receiver's, or was lost there, and no queue
# of 1 MiB was longer than that; it takes 8.39 ms.
queue_holds() {
	awk 'NF == 7 { passed[$2] += $3; lost += $5 } NF == 7 && $2 == "up" { hosts++ }
		$1 == "10.80.0.1" && $2 == "down" { waited = $7 }
		END { exit !(hosts == 17 && passed["up"] == passed["down"] + lost &&
			waited > 0 && waited <= 8388608) }' "$tmp/ports"
}

if ! hosts_around; then
	fail "sixteen hosts and one" "they cannot be made"
	suite_end
fi
gid0=$(gid_index 10.80.0.1 "${on_0[@]}")
incast rate=1Gbit,queue=1MiB,ecn=64KiB,name=ecn$$
verdict "sixteen into one, with ECN: all end well" "$? of 32 failed" "$tmp"/in.c*
queue_holds
verdict "sixteen into one, with ECN: they share a port, whose queue is bounded" "as counted" \
	"$tmp/ports"
again=$(counted retransmits "$tmp/log.c")
[ "$(counted cnps_sent "$tmp/log.s")" -gt 0 ] && [ "$(counted cnps_seen "$tmp/log.c")" -gt 0 ]
verdict "sixteen into one, with ECN: marks were told of, and heard" "no CNP" \
	"$tmp/log.s" "$tmp/log.c"
incast rate=1Gbit,queue=1MiB,name=lossy$$
verdict "sixteen into one, without ECN: all end well" "$? of 32 failed" "$tmp"/in.c*
queue_holds
verdict "sixteen into one, without ECN: they share a port, whose queue is bounded" "as counted" \
	"$tmp/ports"
lossy=$(counted retransmits "$tmp/log.c")
[ "$(counted cnps_seen "$tmp/log.c")" = 0 ] && [ "$lossy" -gt "$again" ]
verdict "sixteen into one: without ECN more is lost" "$lossy sent again, $again with" "$tmp/log.c"
check "sixteen into one, with DCQCN: fair shares of a port of 100 Mbit/s, and nobody gives up" \
	"$VB_ROOT/bench/incast.py" --check --seconds 4
suite_end
