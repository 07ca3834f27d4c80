#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Captures as docs/capture.md describes them: of shared memory as well, with a comment for each
# packet; of programs at work, by readers that come and go, hang or are killed. tshark and a reader
# of our own have to agree with them.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/ethernet.sh"

command -v tshark >/dev/null || skip_all "no tshark"
judge=$VB_ROOT/tests/lib/capture_check.py icrc=$VB_ROOT/tests/lib/icrc_check.py

# tshark_judge NAME FILE: it reads the whole file, and nothing is malformed. Not with tshark's guess
# that a payload might be RPC-over-RDMA (capture.sh).
tshark_judge() {
	if ! tshark --disable-protocol rpcordma -r "$2" -Y _ws.malformed \
		>"$tmp/malformed" 2>"$tmp/errors"; then
		fail "$1: tshark reads it" "exit status $?" "$tmp/errors"
	elif [ -s "$tmp/malformed" ]; then
		fail "$1: nothing malformed" "tshark complains" "$tmp/malformed"
	else
		ok "$1: nothing malformed"
	fi
}

# --- from a program's beginning on ---

# whole NAME CMD ...: of both sides, from a file's name on.
whole() {
	local name=$1 file
	shift
	rm -f "$tmp"/whole-*
	VERBATIM_PCAP=$tmp/whole-%p.pcapng twins "$name" "$@"
	check "$name: every ICRC is right" "$icrc" --min 20 "$tmp"/whole-*
	for file in "$tmp"/whole-*; do
		tshark_judge "$name (${file##*-})" "$file"
	done
}

# comments NAME WORDS ...: each is in the comment of some packet of both sides.
comments() {
	local name=$1 words file
	shift
	for file in "$tmp"/whole-*; do
		tshark -r "$file" -T fields -e frame.comment >"$tmp/comments" 2>/dev/null
		for words; do
			grep -q -- "$words" "$tmp/comments" ||
				fail "$name: a comment says $words" "none of $file does"
		done
	done
	ok "$name: comments say what is known"
}

gid=$(gid_index 127.0.0.1)
for link in shm udp; do
	[ $link = shm ] || link_use udp
	for kind in rc uc ud srq xsrq; do
		whole "$kind, $link" ibv_${kind}_pingpong -p PORT -g "$gid" -s 1000 -n 50
		comments "$kind, $link" "ibv_${kind}_ping.* (pid [0-9]*), QPN 0x" ", wr_id 0x"
	done
	for program in ib_write_bw ib_read_bw ib_atomic_bw; do
		whole "$program, $link" $program -n 50 -F -x "$gid" -p PORT
	done
	[ $link = udp ] || check "shared memory was used" "$judge" --link shm "$tmp"/whole-*
	whole "DC, $link" env VERBATIM_PERSONA=connectx7 \
		ib_send_bw -c DC -n 50 -F -x "$gid" -p PORT
done
unset VERBATIM_LINK
over=

# --- what is not RC ---

status_has() {
	"$VB_BUILD/verbatim" status | grep -q -- "$1"
}

rm -f "$tmp"/whole-*
export VERBATIM_PCAP=$tmp/whole-%p.pcapng
"${run[@]}" rping -s -a 127.0.0.1 -p 7400 -C 20 >"$tmp/server" 2>&1 &
server=$!
await status_has 'listens at 127.0.0.1 port 7400'
"${run[@]}" rping -c -a 127.0.0.1 -p 7400 -C 20 >"$tmp/client" 2>&1
process_wait $server "$limit_s"
verdict "rping is captured" "it fails" "$tmp/server" "$tmp/client"
raw_twins raw_ethernet_bw -s 512 -m 4200 -n 100 -r 200
unset VERBATIM_PCAP
for file in "$tmp"/whole-*; do
	tshark_judge "rdma_cm and Ethernet (${file##*-})" "$file"
	tshark -r "$file" -T fields -e frame.interface_name -e _ws.col.Info \
		>>"$tmp/protocols" 2>/dev/null
done
grep -q '^udp.CM: ConnectRe' "$tmp/protocols" && grep -q '^ethernet' "$tmp/protocols"
verdict "MADs and Ethernet frames are there" "not both are" "$tmp/protocols"

# A damaged packet is dropped, and what it carried is sent again.
rm -f "$tmp"/whole-*
# Whoever is done first leaves, and if its last acknowledgement is damaged its peer never gets one.
damaged=(ibv_rc_pingpong -p PORT -g "$gid" -s 1000 -n 200)
VERBATIM_PCAP=$tmp/whole-%p.pcapng VERBATIM_FAULT=corrupt=10%,seed=1 \
	pair_try 3 'retry counter exceeded' "damage" \
	pair_run "${damaged[@]}" -- "${damaged[@]}" "$address"
cat "$tmp"/whole-* | strings >"$tmp/comments"
grep -q 'QPN 0x[0-9a-f]*, wr_id 0x[0-9a-f]*, sent again$' "$tmp/comments"
verdict "what is sent again says so" "nothing says it" /dev/null
grep -q 'dropped: drop_icrc$' "$tmp/comments"
verdict "what is dropped says why" "nothing says it" /dev/null

# --- attaching ---

# load PROGRAM ARGS ...: both sides at work until load_end. $client and $server are their processes.
load() {
	port=$((port + 1))
	"${run[@]}" "$@" -D 3600 -F -x "$gid" -p $port >"$tmp/server" 2>&1 &
	server=$!
	port_wait $port $server
	"${run[@]}" "$@" -D 3600 -F -x "$gid" -p $port 127.0.0.1 >"$tmp/client" 2>&1 &
	client=$!
	await status_has "pid $client .*-> pid $server"
}

# has_clock PID: it catches SIGALRM. A server does only where it measures as well.
has_clock() {
	(((0x$(awk '$1 == "SigCgt:" { print $2 }' "/proc/$1/status") >> 13) & 1))
}

# Perftest's clock has three phases, each of which ends with a SIGALRM.
load_end() {
	local i pid rc=0
	for i in 1 2 3; do
		for pid in $client $server; do
			has_clock "$pid" 2>/dev/null && kill -ALRM "$pid"
		done
		nap 0.3
	done
	process_wait $client 30 || rc=$?
	process_wait $server 30 || rc=$?
	ended_well "$1: the program ends well" $rc "$tmp/server" "$tmp/client"
}

# attach PID FILE [OPTION ...]: $reader is the process.
attach() {
	rm -f "$2"
	"$VB_BUILD/verbatim" capture -i "$1" -w "$2" "${@:3}" 2>"$tmp/reader" &
	reader=$!
}

has_octets() {
	[ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -ge "$2" ] || gone $reader
}

# detach: as Ctrl-C does.
detach() {
	kill -INT $reader
	wait $reader
}

# attach_often NAME TIMES OCTETS: to one side and the other, while they work.
attach_often() {
	local i rc file=$tmp/attach.pcapng good=0
	for ((i = 0; i < $2; i++)); do
		attach $((i % 2 ? server : client)) "$file"
		await has_octets "$file" "$3"
		if ! detach; then
			fail "$1: capture $i" "the reader fails" "$tmp/reader"
		elif "$judge" --min 10 "$file" >"$tmp/output" 2>&1 &&
			"$icrc" "$file" >>"$tmp/output"; then
			good=$((good + 1))
		else
			fail "$1: capture $i" "it is not whole" "$tmp/output" "$tmp/reader"
		fi
	done
	[ $good = "$2" ]
	verdict "$1: $2 captures lose nothing" "$good do" "$tmp/reader"
}

times=20
for link in shm udp; do
	[ $link = shm ] || link_use udp
	load ib_send_bw -s 4096
	attach_often "SEND, $link" $times 3000000
	load_end "SEND, $link"
	load ib_write_bw -s 65536
	attach_often "WRITE, $link" 6 6000000
	load_end "WRITE, $link"
	load ib_read_bw -s 65536
	attach_often "READ, $link" 4 6000000
	load_end "READ, $link"
done
unset VERBATIM_LINK
over=

# --- readers that do not do what they should ---

file=$tmp/reader.pcapng
load ib_send_bw -s 4096
attach $client "$file"
await has_octets "$file" 1000000
ends 1 "a second reader" "$VB_BUILD/verbatim" capture -i $client -w "$file" &&
	grep -q 'is being captured already' "$tmp/output"
verdict "a second reader is refused" "it is not" "$tmp/output"
kill -KILL $reader
wait $reader 2>/dev/null
check "a reader that is killed leaves what it had" "$judge" --cut --min 10 "$file"

# The next one begins as soon as the process has noticed.
begins() {
	attach $client "$file"
	await has_octets "$file" 1000000
	! gone $reader
}
await begins
kill -STOP $reader
nap 3	# the patience of the process, and some
kill -CONT $reader
nap 0.5
detach
check "a reader that hangs loses packets, which its end says" "$judge" --lost --min 10 "$file"
attach $client "$file" --no-wait
await has_octets "$file" 1000000
detach
verdict "one that is not waited for" "the reader fails" "$tmp/reader"

"$VB_BUILD/verbatim" capture -i $client 2>"$tmp/reader" |
	tshark -i - -c 50 >"$tmp/live" 2>"$tmp/errors"
[ "$(grep -c 'RC ' "$tmp/live")" = 50 ]
verdict "live into tshark" "it does not show 50 packets" "$tmp/live" "$tmp/errors" "$tmp/reader"
await begins
kill -INT $reader
wait $reader
load_end "after them all"

# A process that ends while it is captured.
load ib_send_bw -s 4096
attach $client "$file"
await has_octets "$file" 1000000
load_end "captured to its end"
wait $reader
ended_well "a capture ends with its process" $? "$tmp/reader"
check "and is whole" "$judge" --min 10 "$file"
load ib_send_bw -s 4096
attach $client "$file"
await has_octets "$file" 1000000
kill -KILL $client
wait $reader
ended_well "or when that is killed" $? "$tmp/reader"
check "and is whole then, too" "$judge" --min 10 "$file"
kill $server
wait $server $client 2>/dev/null

ends 1 "no such process" "$VB_BUILD/verbatim" capture -i $$ -w "$file" &&
	grep -q "process $$ does not have the device open" "$tmp/output"
verdict "a process without the device" "the words are others" "$tmp/output"
ends 2 "no words" "$VB_BUILD/verbatim" capture && grep -q 'usage: verbatim capture' "$tmp/output"
verdict "the usage" "the words are others" "$tmp/output"
suite_end
