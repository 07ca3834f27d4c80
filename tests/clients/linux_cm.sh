#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Between us and Linux's connection manager, which runs in a virtual machine (tests/lib/guest.sh)
# with the distribution's librdmacm over rdma_rxe: either is client and server. Programs of
# rdmacm-utils and perftest; what a program is told, event by event (tests/rdmacm/cm_peer.c); lost
# and doubled messages; processes that die.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/perftest.sh"
. "$(dirname "$0")/../lib/guest.sh"
. "$(dirname "$0")/../lib/cm.sh"

guest_also="rdma_ucm"
clock=$VB_BUILD/tests/verbs/libperftest.so
peer=$VB_BUILD/tests/rdmacm/cm_peer
limit_s=150
there=(python3 "$VB_ROOT/tests/lib/guest.py" call $guest_b4 $guest_port)
# Where the distribution's librdmacm is: our programs are linked with ours.
system=$(ldconfig -p | sed -n '/librdmacm.so.1 /{s/.*=> //;s/\/[^/]*$//p;q}')

# sides_set SERVER CLIENT: each is ours or linux.
sides_set() {
	on_server=() on_client=() run_server=("${run[@]}") run_client=("${run[@]}")
	cm_said=$tmp/listens at4=$guest_a4 at6=$guest_a6 from4=$guest_a4 from6=$guest_a6
	if [ "$1" = linux ]; then
		on_server=("${there[@]}") run_server=(env "LD_LIBRARY_PATH=$system")
		cm_said=/tmp/listens at4=$guest_b4 at6=$guest_b6
	fi
	if [ "$2" = linux ]; then
		on_client=("${there[@]}") run_client=(env "LD_LIBRARY_PATH=$system")
		from4=$guest_b4 from6=$guest_b6
	fi
}

# far SIDE FAMILY: client or server is from now on Linux's; addresses are IPv4 or IPv6 (4, 6).
far() {
	if [ "$1" = server ]; then
		sides_set linux ours
	else
		sides_set ours linux
	fi
	far=$1 at=at$2 from=from$2
	at=${!at} from=${!from}
	PREFIX="Linux is $1, IPv$2"
	format=()
	[ "$2" = 4 ] || format=(-f ipv6)
}

# --- other people's programs ---

programs() {
	cm "rping" rping -s -a "$at" -p PORT -C 10 -V -S 1000 -- \
		rping -c -a "$at" -p PORT -C 10 -V -S 1000
	cm "ucmatose" ucmatose "${format[@]}" -b "$at" -p PORT -c 5 -C 3 -S 1000 -- \
		ucmatose "${format[@]}" -s "$at" -p PORT -c 5 -C 3 -S 1000
	cm "udaddy" udaddy "${format[@]}" -b "$at" -c 3 -C 3 -S 1000 -- \
		udaddy "${format[@]}" -s "$at" -c 3 -C 3 -S 1000
	cm "rstream" rstream "${format[@]}" -b "$at" -p PORT -S 5000 -C 20 -I 3 -T v -- \
		rstream "${format[@]}" -s "$at" -p PORT -S 5000 -C 20 -I 3 -T v
}

programs_of_ipv4() {
	local program
	cm "rping with a QP of its own" rping -s -q -a "$at" -p PORT -C 3 -V -- \
		rping -c -q -a "$at" -p PORT -C 3 -V
	cm "rdma_client" rdma_server -s "$at" -p PORT -- rdma_client -s "$at" -p PORT
	cm "riostream" riostream -b "$at" -p PORT -S 5000 -C 20 -I 3 -T v -- \
		riostream -s "$at" -p PORT -S 5000 -C 20 -I 3 -T v
	skip "$PREFIX: udpong" "rdma-core's does not connect over rdma_rxe, even to itself: ENOENT"
	cm "ucmatose of port space IB" ucmatose -P ib -p PORT -c 3 -C 3 -- \
		ucmatose -P ib -s "$at" -p PORT -c 3 -C 3
	cm "rdma_xclient" rdma_xserver -p PORT -- rdma_xclient -s "$at" -p PORT
	skip "$PREFIX: rdma_xclient XRC" "rdma_rxe has no XRC"
	for program in "ib_send_bw -s 1000" "ib_write_bw -s 1000" "ib_read_lat -s 1000" \
		ib_atomic_lat "ib_send_lat -c UD -s 1000"; do
		# shellcheck disable=SC2086 # words of a command
		cm_perf $program -n 50
	done
	cm_times
	members 239.7.7.7
	skip "$PREFIX: mckey ff1e::7" "Linux joins no such groups by RoCE"
}

# mirror: what the server in the guest has said so far, where a client here can see it.
mirror() {
	while nap 0.1; [ -d "$tmp" ]; do
		"${there[@]}" cat "$cm_said" >"$tmp/mirror.new" 2>&1 &&
			mv "$tmp/mirror.new" "$tmp/mirror"
	done
}

# cm_perf PROGRAM ARGS ...: the parameters are exchanged by a first connection, and a client that
# asks for the second one before the server listens again would give up. The guest sees $tmp, and
# we do not see what is the guest's.
cm_perf() {
	local also=:$clock awaits=$cm_said mirror
	set -- "$@" -R -F -p PORT
	if [ $far = server ]; then
		awaits=$tmp/mirror
		: >"$awaits"
		"${there[@]}" cp /dev/null "$cm_said"
		mirror &
		mirror=$!
	fi
	cm "$*" "$@" -- env "AWAITS=$awaits" "$@" "$at"
	[ $far = client ] || process_wait $mirror 0 2>/dev/null
}

# Its server never ends.
cm_times() {
	local name="$PREFIX: cmtime"
	port=$((port + 1))
	server_begin cmtime -p $port -c 20
	client_run cmtime -s "$at" -p $port -c 20 && grep -q '^connect' "$tmp/client"
	ended_well "$name" $? "$tmp/server" "$tmp/client"
	process_wait $server 0 2>/dev/null
}

# members GROUP: who only sends is heard by a member.
members() {
	local ready='joined dgid'
	cm "mckey $1" mckey -m "$1" -b "$at" -C 5 -S 100 -- mckey -s -m "$1" -b "$from" -C 5 -S 100
}

# --- what a program is told ---

# told SERVER CLIENT FILE SERVER'S ... -- CLIENT'S ...: cm_peer with these words, and what it says.
told() {
	local words=() at
	sides_set "$1" "$2"
	local file=$3
	at=at$family
	shift 3
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	cm_run "$peer" server "${!at}" PORT "${words[@]}" -- "$peer" client "${!at}" PORT "$@"
	{
		echo "$why"
		# Whoever is killed may leave a line without its end.
		sed 's/^/server: /;$a\' "$tmp/server"
		sed 's/^/client: /;$a\' "$tmp/client"
	} >"$file"
}

# same NAME SERVER'S ... -- CLIENT'S ...: words of cm_peer. Each end is told the same, whoever is at
# the other, and whichever of the two is ours.
same() {
	local name="$1${VERBATIM_FAULT:+ ($VERBATIM_FAULT)}, IPv$family" ends
	shift
	for ends in "linux linux" "ours ours" "ours linux" "linux ours"; do
		# shellcheck disable=SC2086 # two words
		told $ends "$tmp/said.${ends/ /.}" "$@"
	done
	for ends in ours.ours ours.linux linux.ours; do
		diff -u "$tmp/said.linux.linux" "$tmp/said.$ends" >"$tmp/differs" && continue
		fail "$name" "$ends: it is told otherwise" "$tmp/differs"
		return
	done
	ok "$name"
}

told_of_both() {
	same "both say as much as fits" data=196 part -- data=56
	same "as much as fits of datagrams" ud data=136 -- ud data=180
	same "rejected" reject data=148 --
	same "a datagram service refuses" ud reject data=100 -- ud
}

told_of_ipv4() {
	same "what they agree upon" resources=2 depth=3 rnr=0 part -- resources=4 depth=5 tos=40
	same "nothing to read" resources=0 depth=0 flow=0 part -- resources=0 depth=0 flow=0
	same "both part" part timewait -- part timewait
	same "rejected for its options" ece data=7 --
	same "the server drops it" drop --
	same "the server ends with it unheard" deaf --
	same "the server ends with it unanswered" vanish --
	same "the server ends, connected" leave --
	same "the client ends, connected" -- leave
	same "the client ends, accepted" part -- hurry
	same "the client ends, asking" slow=1500 -- hurry
	same "a datagram service ends with it unanswered" ud vanish -- ud
	cm_patience_s=1 same "nobody listens" -- beside
	cm_patience_s=1 same "there is no such datagram service" ud -- ud beside
}

# --- losses ---

# meet SERVER CLIENT SERVER'S ... -- CLIENT'S ...: in a folder of its own, beside others.
meet() {
	local ends=$1.$2
	mkdir "$tmp/$ends"
	tmp=$tmp/$ends
	port=$((port + 500))
	told "$1" "$2" "$tmp/said" "${@:3}"
	grep -q 'client: done' "$tmp/said" && [ -z "$why" ]
}

# Rules for the first MAD of a kind: its attribute stands behind the headers of UDP, BTH and DETH,
# and 16 octets.
first_of() {
	local attribute
	for attribute; do
		echo "udp dport 4791 @th,104,24 1 @th,352,16 $attribute" \
			"numgen inc mod 1000000 == 0 counter drop"
	done
}

# first_lost NAME OUT -- IN -- SERVER'S ... -- CLIENT'S ...: of each of these messages the first one
# that we send and the first that comes is lost, while both kinds of pairs are at it. They ask again
# after their timers, each for itself, hence at the same time.
first_lost() {
	local name=$1 out=() in=() one
	shift
	while [ "$1" != -- ]; do
		out+=("$1")
		shift
	done
	shift
	while [ "$1" != -- ]; do
		in+=("$1")
		shift
	done
	shift
	rm -rf "$tmp"/*.ours "$tmp"/*.linux
	nft -f - <<-END
		table inet cm {
			chain out {
				type filter hook output priority 0
				$(first_of "${out[@]}")
			}
			chain in {
				type filter hook input priority 0
				$(first_of "${in[@]}")
			}
		}
	END
	(meet linux ours "$@") &
	one=$!
	(meet ours linux "$@") && wait $one
	verdict "$name" "they do not meet" "$tmp"/*.*/said
	nft list table inet cm >"$tmp/lost"
	nft delete table inet cm
	! grep -q 'packets 0' "$tmp/lost"
	verdict "$name: each was lost" "a message did not come" "$tmp/lost"
}

# Of either pair, what goes out of one comes in of the other: so REQ, REP, RTU, DREQ, DREP are each
# lost between a client of ours and Linux, and between one of Linux's and us. A service of Linux's
# forgets whom it has answered (and its program is asked anew), so its answer is not lost.
losses() {
	local messages=(0x10 0x13 0x14 0x15 0x16)
	first_lost "each message lost once" "${messages[@]}" -- "${messages[@]}" -- -- part
	first_lost "datagrams' messages lost once" 0x17 0x18 -- 0x17 -- ud -- ud
	export VERBATIM_FAULT="dup=100%,seed=3"
	same "all comes twice" data=9 part -- data=8
	same "all comes twice, rejected" reject --
	same "all comes twice, datagrams" ud -- ud
	VERBATIM_FAULT="loss=1%,seed=3"
	over=" (1 % lost)"
	for side in server client; do
		far $side 4
		programs_of_losses
	done
	unset VERBATIM_FAULT
	over=
}

programs_of_losses() {
	cm "rping" rping -s -a "$at" -p PORT -C 20 -V -S 10000 -- \
		rping -c -a "$at" -p PORT -C 20 -V -S 10000
	cm "ucmatose" ucmatose -b "$at" -p PORT -c 10 -C 3 -- ucmatose -s "$at" -p PORT -c 10 -C 3
	cm "rstream" rstream -b "$at" -p PORT -S 5000 -C 20 -I 3 -T v -- \
		rstream -s "$at" -p PORT -S 5000 -C 20 -I 3 -T v
}

# --- deaths ---

# leaf PID: the process at the end of the line of children, in which timeout is one.
leaf() {
	local pid=$1 child
	while child=$(cat "/proc/$pid/task/$pid/children") && [ -n "$child" ]; do
		pid=${child%% *}
	done
	echo "$pid"
}

hears_of_it() {
	grep -qE 'DISCONNECT EVENT|cq completion failed' "$tmp/$1"
}

# cm_death SIDE: one is killed, and the other hears of it: by a DREQ, or, if it sends just then, by
# its QP.
cm_death() {
	local name="$PREFIX: the $1 is killed" client left
	port=$((port + 1))
	: >"$tmp/client"
	server_begin rping -s -a "$at" -p $port
	client_run stdbuf -oL rping -c -a "$at" -p $port -v 2>/dev/null &
	client=$!
	await has_words 'ping data'
	if [ "$1" = $far ]; then
		"${there[@]}" pkill -9 -x rping
	else
		kill -9 "$(leaf ${!1})"
	fi
	left=server
	[ "$1" = client ] || left=client
	await hears_of_it "$left" 2>/dev/null
	verdict "$name" "the $left does not hear of it" "$tmp/server" "$tmp/client"
	process_wait $client 0 2>/dev/null
	process_wait $server 0 2>/dev/null
}

# --- octets ---

dumpcap_begins() {
	grep -q '^File:' "$tmp/dumpcap" || gone "$dumpcap"
}

# say_all SERVER CLIENT: what connections of both families say, and what there is in short.
say_all() {
	local family=6 cm_patience_s=1
	told "$@" "$tmp/said" data=7 -- data=7 part
	family=4
	told "$@" "$tmp/said" data=7 -- data=7 part
	told "$@" "$tmp/said" reject data=7 -- data=7
	told "$@" "$tmp/said" ud data=7 -- ud data=7
	told "$@" "$tmp/said" data=7 -- data=7 beside
	told "$@" "$tmp/said" ud -- ud data=7 beside
}

# Either kind of pair says each message once, and tshark reads the same in what we say and in what
# Linux does.
captured() {
	local dumpcap ends name="messages on the cable"
	: >"$tmp/dumpcap"
	dumpcap -q -P -i vb0 -f 'udp port 4791' -w "$tmp/cable.pcap" >"$tmp/dumpcap" 2>&1 &
	dumpcap=$!
	if await dumpcap_begins && gone $dumpcap; then
		skip "$name" "dumpcap: $(tail -1 "$tmp/dumpcap")"
		return
	fi
	for ends in "ours linux" "linux ours"; do
		# shellcheck disable=SC2086 # two words
		say_all $ends
	done
	nap 0.5
	kill -INT $dumpcap
	wait $dumpcap
	check "$name: every ICRC is right" "$VB_ROOT/tests/lib/icrc_check.py" --min 30 \
		"$tmp/cable.pcap"
	check "$name: ours are as Linux's" python3 "$VB_ROOT/tests/lib/cm_fields.py" \
		"$tmp/cable.pcap" $guest_a4 $guest_a6
}

if ! guest_make; then
	skip_all "no guest: $why"
fi
ip route add 239.0.0.0/8 dev vb0
for family in 4 6; do
	for side in server client; do
		far $side $family
		programs
		cm_death server
		cm_death client
		[ $family = 6 ] || programs_of_ipv4
	done
	told_of_both
done
family=4
told_of_ipv4
losses
captured
suite_end
