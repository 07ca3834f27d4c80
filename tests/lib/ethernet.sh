# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Ethernet frames as tests; source it after suite.sh and netns.sh.
#
#    station 1                       host A                              station 2
#   +-----------+      +---------------------------------+      +-----------+
#   | vs0       | veth |  vb1        br0          vb2    | veth | vs0       |
#   | 10.80.0.1 +------+   +----------+------------+     +------+ 10.80.0.2 |
#   +-----------+      |              | vt0 (TAP)          |      +-----------+
#                      |        examples/forward         |
#                      +---------------------------------+
#
# For each station the other one is at an address of forward's: neither knows the other's.

mac_a=02:00:00:00:00:01 mac_b=02:00:00:00:00:02
mac_s1=02:80:00:00:00:01 mac_s2=02:80:00:00:00:02
mac_f1=02:80:00:00:00:11 mac_f2=02:80:00:00:00:12
ip1=10.80.0.1 ip2=10.80.0.2
on_s1=() on_s2=()
raw_ip=()
forward=

ping=(ping)
command -v ping >/dev/null || ping=(busybox ping)

# started FILE WORD PID: until the word is in the file, or the process has ended.
started() {
	local i
	for ((i = 0; i < limit_s * 50; i++)); do
		grep -q -- "$2" "$1" && return 0
		kill -0 "$3" 2>/dev/null || return 1
		sleep 0.02
	done
	return 1
}

# raw_twins PROGRAM ARGS ...: a server, and a client that sends to it. perftest's raw_ethernet_* do
# not meet before they send, and what comes too early is lost and waited for in vain: so the client
# gives the server a while, and if that was not enough, both get more.
raw_twins() {
	local name="${PREFIX:+$PREFIX }$* ${raw_ip[*]}" why seconds
	for seconds in 0.1 1 4; do
		raw_run $seconds "$@" && break
	done
	[ -z "$why" ]
	verdict "$name" "$why" "$tmp/server" "$tmp/client"
}

# raw_run SECONDS PROGRAM ARGS ...
raw_run() {
	local pid seconds=$1 client_rc server_rc
	local -a line=("${@:2}" -F -d verbatim0)
	timeout -k 5 "$limit_s" "${on_server[@]}" "${run_server[@]}" \
		stdbuf -oL "${line[@]}" --server -B $mac_a -E $mac_b "${raw_ip[@]}" \
		>"$tmp/server" 2>&1 &
	pid=$!
	: >"$tmp/client"
	started "$tmp/server" '#bytes' $pid && sleep "$seconds"
	timeout -k 5 "$limit_s" "${on_client[@]}" "${run_client[@]}" "${line[@]}" --client \
		-B $mac_b -E $mac_a "${raw_ip[@]}" >"$tmp/client" 2>&1
	client_rc=$?
	process_wait $pid "$limit_s" 2>/dev/null
	server_rc=$?
	why=
	[ $client_rc = 0 ] || why="client $(status_say $client_rc)"
	[ $server_rc = 0 ] || why="${why:+$why, }server $(status_say $server_rc)"
	if [ -z "$why" ] && ! grep -Eq '^ *[0-9]+ +[0-9]+ +.*[1-9]' "$tmp/client"; then
		why="the client prints no result"
	fi
	[ -z "$why" ]
}

# station_make N ON ...
station_make() {
	local n=$1 mac=mac_s$1 address=ip$1
	shift
	ip link add vb"$n" type veth peer name vs0 netns "$2"
	ip link set vb"$n" master br0 up
	shift 2
	"$@" ip link set vs0 address "${!mac}" up
	"$@" ip addr add "${!address}/24" dev vs0
}

stations_make() {
	host_new on_s1
	host_new on_s2
	ip link add br0 type bridge
	ip link set br0 up
	station_make 1 pid "${on_s1[2]}" "${on_s1[@]}"
	station_make 2 pid "${on_s2[2]}" "${on_s2[@]}"
	"${on_s1[@]}" ip neigh add $ip2 lladdr $mac_f1 dev vs0 nud permanent
	"${on_s2[@]}" ip neigh add $ip1 lladdr $mac_f2 dev vs0 nud permanent
}

# forward_start UPLINK: sets $forward to its process, and to nothing if it does not start.
forward_start() {
	rm -f "$tmp/forward.in"
	mkfifo "$tmp/forward.in"
	VERBATIM_ETH=$1 VERBATIM_LOG=$tmp/forward.log "${run[@]}" "$VB_BUILD/examples/forward" \
		verbatim0 $mac_f1 $mac_s1 $mac_f2 $mac_s2 \
		<"$tmp/forward.in" >"$tmp/forward" 2>&1 &
	forward=$!
	exec {forward_in}>"$tmp/forward.in"
	started "$tmp/forward" ready $forward || forward=
}

# forward_end NAME
forward_end() {
	local rc
	exec {forward_in}>&-
	process_wait "$forward" "$limit_s"
	rc=$?
	if [ $rc = 0 ] &&
		[ "$(grep -c 'station [12]: [1-9][0-9]* frames, 0 lost' "$tmp/forward")" = 2 ]; then
		ok "$1"
	else
		fail "$1" "$(status_say $rc)" "$tmp/forward" "$tmp/forward.log"
	fi
}

# ping_until NAME: an answer comes at last.
ping_until() {
	local i
	for ((i = 0; i < 20; i++)); do
		if "${on_s1[@]}" "${ping[@]}" -c 1 -W 1 $ip2 >"$tmp/output" 2>&1; then
			ok "$1"
			return
		fi
	done
	fail "$1" "no answer in $i s" "$tmp/output" "$tmp/forward.log"
}

# capture_start INTERFACE [ON ...]
capture_start() {
	: >"$tmp/tshark"
	"${@:2}" tshark -q -i "$1" -s 0 -w "$tmp/frames.pcap" >"$tmp/tshark" 2>&1 &
	capture=$!
	started "$tmp/tshark" Capturing $capture
}

# Whatever way they went, each frame of TCP has right checksums, and there were many. The kernel
# writes ffff where 0 would do as well, which to tshark is wrong. FILTER: which frames; a station's
# own have no checksums yet where it captures them.
# capture_end NAME FILTER
capture_end() {
	local good bad
	kill "$capture"
	await gone "$capture"
	kill -KILL "$capture" 2>/dev/null
	wait "$capture" 2>/dev/null
	good=$(frames_with "$2 && ip.checksum.status == \"Good\" &&
		tcp.checksum.status == \"Good\"")
	bad=$(frames_with "$2 && (ip.checksum.status == \"Bad\" ||
		(tcp.checksum.status == \"Bad\" && tcp.checksum != 0xffff))")
	[ "${good:-0}" -gt 1000 ] && [ "$bad" = 0 ]
	verdict "$1" "${good:-no} right, ${bad:-no} wrong checksums" "$tmp/tshark"
}

frames_with() {
	tshark -r "$tmp/frames.pcap" -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -Y "$1" \
		2>"$tmp/tshark" | wc -l
}

# tcp_through NAME BYTES
tcp_through() {
	local pid
	"${on_s2[@]}" iperf3 -s -1 -B $ip2 >"$tmp/iperf3" 2>&1 &
	pid=$!
	on_server=("${on_s2[@]}")
	port_wait 5201 $pid
	on_server=()
	check "$1" "${on_s1[@]}" iperf3 -c $ip2 -n "$2"
	cp "$tmp/output" "$tmp/iperf3.client"
	process_wait $pid 5 2>/dev/null
}
