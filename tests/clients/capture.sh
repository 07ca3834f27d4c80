#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What goes over the wire, seen by others: tshark's RoCE dissector and a second computation of every
# ICRC read what VERBATIM_PCAP wrote on one host, and what dumpcap saw on the cable of two.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

# Every opcode that a stock client sends, in short.
clients() {
	local kind program
	for kind in rc uc ud srq; do
		twins "$PREFIX $kind" ibv_${kind}_pingpong -p PORT -g "$gid" -s 1000 -n 20
	done
	twins "$PREFIX long" ibv_rc_pingpong -p PORT -g "$gid" -s 10001 -n 20
	for program in ib_write_bw ib_read_bw ib_atomic_bw "ib_atomic_bw -A CMP_AND_SWAP"; do
		# shellcheck disable=SC2086 # a command line
		twins "$PREFIX $program" $program -n 20 -F -x "$gid" -p PORT
	done
	twins "$PREFIX traffic" "$VB_ROOT/tests/lib/traffic.py" -p PORT -g "$gid" -n 1 -s 320000
}

# icrc_judge NAME FILE ...
icrc_judge() {
	local name=$1
	shift
	check "$name: every ICRC is right" "$VB_ROOT/tests/lib/icrc_check.py" --min 500 "$@"
}

# tshark_judge NAME FILE: nothing malformed, and the opcodes are all there. Not with tshark's guess
# that a payload might be RPC-over-RDMA: that one stumbles over every message without a payload,
# Linux rxe's as well.
tshark_judge() {
	local name=$1 opcode
	if ! tshark --disable-protocol rpcordma -r "$2" -V >"$tmp/text" 2>"$tmp/errors"; then
		fail "$name: tshark reads it" "exit status $?" "$tmp/errors"
		return
	fi
	grep -E -B 30 'Malformed|Unknown|Invalid' "$tmp/text" >"$tmp/malformed"
	if [ -s "$tmp/malformed" ]; then
		fail "$name: nothing malformed" "tshark complains" "$tmp/malformed"
	else
		ok "$name: nothing malformed"
	fi
	for opcode in 'SEND First' 'SEND Middle' 'SEND Last' 'SEND Only' \
		'RDMA WRITE First' 'RDMA WRITE Middle' 'RDMA WRITE Last' 'RDMA READ Request' \
		'RDMA READ response First' 'RDMA READ response Last' 'Acknowledge' \
		'ATOMIC Acknowledge' \
		'CmpSwap' 'FetchAdd'; do
		grep -qi "Opcode: .*(RC) - $opcode" "$tmp/text" ||
			fail "$name: RC $opcode" "tshark sees none"
	done
	for opcode in '(UC) - SEND Only' '(UD) - SEND Only'; do
		grep -qi "Opcode: .*$opcode" "$tmp/text" || fail "$name: $opcode" "tshark sees none"
	done
	ok "$name: all opcodes were looked for"
}

export VERBATIM_PCAP=$tmp/one-%p.pcap
for from in 127.0.0.1 ::1; do
	gid=$(gid_index $from)
	PREFIX="one host, $from:"
	clients
done
unset VERBATIM_PCAP
icrc_judge "one host" "$tmp"/one-*.pcap
mergecap -F pcap -w "$tmp/one.pcap" "$tmp"/one-*.pcap
tshark_judge "one host" "$tmp/one.pcap"

# DC is ours, and nothing to tshark.
export VERBATIM_PCAP=$tmp/dc-%p.pcap VERBATIM_PERSONA=connectx7
gid=$(gid_index 127.0.0.1)
for program in ib_send_bw ib_write_bw ib_read_bw ib_atomic_bw; do
	twins "DC: $program" $program -c DC -n 50 -F -x "$gid" -p PORT
done
unset VERBATIM_PCAP VERBATIM_PERSONA
icrc_judge "DC" "$tmp"/dc-*.pcap

# dumpcap_begins PID: or it never will.
dumpcap_begins() {
	grep -q '^File:' "$tmp/dumpcap" || gone "$1"
}

# capture NAME: of two hosts by dumpcap, on the cable. Packets are to be cut up before they are
# seen there, as a cable that does not cut them up itself has it.
capture() {
	local pid
	: >"$tmp/dumpcap"
	dumpcap -q -P -i vb0 -f 'udp port 4791' -w "$tmp/$1.pcap" >"$tmp/dumpcap" 2>&1 &
	pid=$!
	if await dumpcap_begins $pid && gone $pid; then
		skip "$2" "dumpcap: $(tail -1 "$tmp/dumpcap")"
		return
	fi
	PREFIX="$2:"
	clients
	sleep 0.5
	kill -INT $pid
	wait $pid
	icrc_judge "$2" "$tmp/$1.pcap"
	tshark_judge "$2" "$tmp/$1.pcap"
}

if hosts_make 1500; then
	ip link set vb0 gso_max_segs 1
	"${on_b[@]}" ip link set vb0 gso_max_segs 1
	hosts_use 4
	capture two4 "two hosts, IPv4"
	# What each wrote itself has the identifications that the other's kernel gave.
	export VERBATIM_PCAP=$tmp/each-%p.pcap
	PREFIX="two hosts, each for itself:"
	clients
	unset VERBATIM_PCAP
	icrc_judge "two hosts, each for itself" "$tmp"/each-*.pcap
	hosts_use 6
	capture two6 "two hosts, IPv6"
else
	skip "two hosts" "this system lets us make no veth"
fi
suite_end
