#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What `verbatim explain` says of captures of real programs, compared with what happened to them:
# nothing of good runs, and of failing ones what the fault script did, what their log says, or what
# the program is known to do wrong.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/cm.sh"

PREFIX=
explain=("$VB_BUILD/verbatim" explain)
faults=$VB_ROOT/examples/faults

# explained NAME STATUS FILE ...: runs it; its words are $tmp/said, on one line each paragraph.
explained() {
	local name=$1 status=$2 rc
	shift 2
	why=
	"${explain[@]}" "$@" >"$tmp/text" 2>&1
	rc=$?
	tr '\n' ' ' <"$tmp/text" | tr -s ' ' >"$tmp/said"
	# shellcheck disable=SC2053 # a pattern
	[[ $rc == $status ]] || why="exit status $rc, not $status"
}

# says NAME STATUS PATTERNS FILE ...: of the patterns, a line each, the words have every one, or,
# with ! before it, do not. The first trouble is that of the first line.
says() {
	local name=$1 patterns=$3 pattern why
	explained "$name" "$2" "${@:4}"
	while read -r pattern; do
		case $pattern in
		'') ;;
		!*)
			grep -Eq -- "${pattern#!}" "$tmp/said" &&
				why=${why:-"it says /${pattern#!}/"}
			;;
		*)
			grep -Eq -- "$pattern" "$tmp/said" ||
				why=${why:-"it does not say /$pattern/"}
			;;
		esac
	done <<<"$patterns"
	[ -z "$why" ]
	verdict "$name" "$why" "$tmp/text"
}

# The captures of a run, whose processes write $tmp/NAME.server and $tmp/NAME.client; and the log.
# ran NAME FORM SERVER_SETTING CLIENT_SETTING CMD ...: both sides, however they end.
ran() {
	local name=$1 form=$2 with_server=$3 with_client=$4 pid rc
	shift 4
	port=$((port + 1))
	rm -f "$tmp"/log.*
	touch "$tmp/log.server" "$tmp/log.client"
	timeout -k 5 "$limit_s" env "VERBATIM_PCAP=$tmp/$name.server.$form" \
		"VERBATIM_LOG=$tmp/log.server" ${with_server:+"$with_server"} \
		"${run_server[@]}" "${@/PORT/$port}" >"$tmp/server" 2>&1 &
	pid=$!
	port_wait "$port" $pid
	{
		timeout -k 5 "$limit_s" env "VERBATIM_PCAP=$tmp/$name.client.$form" \
			"VERBATIM_LOG=$tmp/log.client" ${with_client:+"$with_client"} \
			"${run_client[@]}" "${@/PORT/$port}" "$address" >"$tmp/client" 2>&1
		rc=$?
		process_wait $pid $((rc ? 1 : limit_s))
	} 2>/dev/null
	both=("$tmp/$name.server.$form" "$tmp/$name.client.$form")
}

sends=(ib_send_bw -F -p PORT -x 0 -s 4096 -n 100 -t 32)
many=(ib_send_bw -F -p PORT -x 0 -s 4096 -n 1000 -t 32)
writes=(ib_write_bw -F -p PORT -x 0 -s 4096 -n 100 -t 32)

# --- good runs ---

# A busy machine may answer late over UDP, which is a note; by shared memory there is not one.
silent='Nothing wrong was found
!^ *1\.'
calm='Nothing wrong was found
!-lost'
for link in "" udp; do
	export VERBATIM_LINK=$link
	for kind in RC UC UD; do
		size=4096
		[ $kind != UD ] || size=1024
		ran good pcapng "" "" ib_send_bw -c $kind -F -p PORT -x 0 -s $size -n 100 -t 32
		[ -n "$link" ] && words=$calm || words=$silent
		says "good, $kind${link:+, $link}" 0 "$words
			$kind, QPN 0x" "${both[@]}"
		[ -n "$link" ] ||
			says "good, $kind, the server alone" 0 "$silent" "${both[0]}"
	done
	ran good pcapng "" "" ib_read_bw -F -p PORT -x 0 -s 65536 -n 20
	says "good, READs${link:+, $link}" 0 "$calm" "${both[@]}"
done
ran plain pcap "" "" "${sends[@]}"
says "good, without comments" 0 "$calm
	RC, QPN 0x[0-9a-f]+ at 127.0.0.1 to QPN 0x" "${both[@]}"

# --- one packet, by a script whose log says which ---

# one_by NAME RULE SIDE: by UDP, the rule is the server's or the client's.
one_by() {
	local -x VERBATIM_LINK=udp
	echo "$2" >"$tmp/one.fault"
	if [ "$3" = server ]; then
		ran "$1" pcapng "VERBATIM_FAULTS=$tmp/one.fault" "" "${writes[@]}"
	else
		ran "$1" pcapng "" "VERBATIM_FAULTS=$tmp/one.fault" "${writes[@]}"
	fi
	psn=$(sed -n 's/.*rule one.fault:1: .*PSN \(0x[0-9a-f]*\).*/\1/p' "$tmp/log.$3" | head -1)
	[ -n "$psn" ] || fail "$1" "the rule did not fire" "$tmp/log.$3"
}

one_by lost "sent write nth=20 -> drop" client
says "a WRITE is lost" 1 "^1\. requests-lost: RC, QPN
	 1 of [0-9]* packets did not come, the first of PSN $psn" "${both[@]}"
says "a WRITE is lost, the server alone" 1 "^1\. requests-lost
	lost before this capture" "${both[0]}"
says "a WRITE is lost, the client alone" 1 "^1\. requests-lost
	by a NAK that packets are missing, first from PSN $psn on, though they were" "${both[1]}"

one_by twice "sent write nth=20 -> duplicate" client
says "a WRITE comes twice" 1 "^1\. duplicates
	1 packet came once too often, the first of PSN $psn" "${both[@]}"

one_by damaged "sent write nth=20 -> corrupt" client
says "a WRITE is damaged" 1 "^1\. icrc
	the first of PSN $psn
	!requests-lost" "${both[@]}"

# named NAK TROUBLE: the request that the NAK is for, by its PSN. A busy machine may repeat the one
# that the rule meets: that had been carried out, and is not refused.
named() {
	local i
	for i in 1 2 3 4 5; do
		one_by "nak" "received write nth=20 -> nak $1" server
		! grep -q 'failed, IBV_WC_REM' "$tmp/log.client" || break
	done
	says "a WRITE is refused: $1" 1 "^1\. $2: RC, QPN
		RDMA WRITE of 4096 octets at 0x[0-9a-f]* by rkey 0x[0-9a-f]* \(PSN $psn, wr_id
		!requests-lost" "${both[@]}"
}
named access remote-access
named invalid remote-invalid-request
named operation remote-operation

VERBATIM_LINK=udp ran plain pcap "" "VERBATIM_FAULT=loss=3%,seed=5" "${writes[@]}"
says "losses, without comments" 1 "^1\. requests-lost" "${both[@]}"

# --- captures of others: of interfaces that packets pass in pieces of several ---

# A busy machine may answer late. What dumpcap loses is a note.
others="RC, QPN 0x[0-9a-f]+ at 127.0.0.1 to QPN 0x[0-9a-f]+ at 127.0.0.1
	!icrc|malformed|lost:|duplicates|merges|peer-silent"
dumpcap_begins() {
	grep -q '^File:' "$tmp/dumpcap" || gone "$dumpcap"
}
# captured NAME CMD ...
captured() {
	local dumpcap name=$1
	: >"$tmp/dumpcap"
	dumpcap -q -i lo -i any -f 'udp port 4791' -w "$tmp/others.pcapng" >"$tmp/dumpcap" 2>&1 &
	dumpcap=$!
	if await dumpcap_begins && gone $dumpcap; then
		skip "$name" "dumpcap: $(tail -1 "$tmp/dumpcap")"
		return
	fi
	VERBATIM_LINK=udp twins "$name" "${@:2}"
	nap 0.5
	kill -INT $dumpcap
	wait $dumpcap
	says "$name: what dumpcap has" "[01]" "$others" "$tmp/others.pcapng"
	editcap -F pcap -s 96 "$tmp/others.pcapng" "$tmp/others.pcap" 2>"$tmp/dumpcap" || return
	says "$name: ... of which little was kept" "[01]" "${others/|merges/}" "$tmp/others.pcap"
}
captured "WRITEs in pieces" ib_write_bw -F -p PORT -x 0 -s 65536 -n 20
captured "SENDs in pieces" ib_send_bw -F -p PORT -x 0 -s 512 -n 100 -t 16

# --- faults of production clusters ---

export VERBATIM_LINK=udp
ran killed pcapng "VERBATIM_FAULTS=$faults/peer-killed.fault" "" "${many[@]}"
says "the peer is killed" 1 "^1\. peer-silent
	was sent [0-9]* times within .* and never answered
	has no end, and nothing behind" "${both[@]}"
says "the peer is killed, the client alone" 1 "^1\. peer-silent
	so the connection was good" "${both[1]}"

# A server of WRITEs does not look at its queue pair, so it lives as long as its client tries; one
# of SENDs would be gone when the next request comes, which is late here.
echo "sent request from=51 -> delay 300ms" >"$tmp/late.fault"
ran dead pcapng "VERBATIM_FAULTS=$faults/qp-dead.fault" "VERBATIM_FAULTS=$tmp/late.fault" \
	ib_write_bw -F -p PORT -x 0 -s 4096 -n 1000 -t 1
says "the peer's QP is dead" 1 "^1\. qp-not-ready
	drop_qp_state
	[0-9]\. peer-silent" "${both[@]}"

ran oneway pcapng "" "VERBATIM_FAULTS=$faults/one-way-loss.fault" "${many[@]}"
says "answers are lost" 1 "^1\. peer-silent
	came ([0-9]+) of \1 times and was answered: the answers were lost on their" "${both[@]}"

export VERBATIM_LINK=
ran slow pcapng "VERBATIM_FAULTS=$faults/slow-receiver.fault" "" "${sends[@]}"
says "a slow receiver" 1 "^1\. rnr-wait
	In the end all went on
	!requests-lost" "${both[@]}"
ran killed pcapng "VERBATIM_FAULTS=$faults/peer-killed.fault" "" "${many[@]}"
# Whether requests are left without an answer is up to when it was killed.
says "the peer is killed, shared memory" "[01]" "capture-without-end
	ib_send_bw \(pid [0-9]*\), whose capture is" "${both[@]}"

# --- small programs, each with one error ---

# of_program NAME PATTERNS: both queue pairs are the program's own.
of_program() {
	for link in "" udp; do
		VERBATIM_LINK=$link VERBATIM_PCAP=$tmp/one.pcapng \
			"${run[@]}" "$VB_BUILD/tests/check/$1" >"$tmp/output" 2>&1
		says "$1${link:+, $link}" 1 "$2" "$tmp/one.pcapng"
	done
}
of_program wrong_rkey "^1\. remote-access
	RDMA WRITE of 8 octets .* by rkey 0x12345678
	No access by this rkey was allowed before"
of_program atomic_unaligned "^1\. remote-invalid-request
	not a multiple of 8"
of_program recv_too_short "^1\. remote-invalid-request
	probably more than the receive request has room for"
of_program rnr_exceeded "^1\. rnr-gave-up
	IBV_WC_RNR_RETRY_EXC_ERR"

# --- connections by rdma_cm ---

VERBATIM_PCAP=$tmp/cm.pcapng "${run[@]}" rping -c -a 127.0.0.1 -p 7000 -C 1 >"$tmp/client" 2>&1
says "nobody listens" 1 "^1\. connection-rejected
	port 7000 \(TCP\): nobody listens for this service id \(reason 8\)" "$tmp/cm.pcapng"

echo "connect -> reject consumer" >"$tmp/reject.fault"
run_server=(env "VERBATIM_FAULTS=$tmp/reject.fault" "${run[@]}")
port=$((port + 1))
server_begin rping -s -a 127.0.0.1 -p $port
VERBATIM_PCAP=$tmp/cm.pcapng client_run rping -c -a 127.0.0.1 -p $port -C 1
kill $server 2>/dev/null
process_wait $server 0 2>/dev/null
run_server=("${run[@]}")
says "the server rejects" 1 "^1\. connection-rejected
	port $port \(TCP\): rejected by the application \(reason 28\)" "$tmp/cm.pcapng"

VERBATIM_PCAP=$tmp/%p.pcapng cm "a good connection" rping -s -a 127.0.0.1 -p PORT -C 5 -- \
	rping -c -a 127.0.0.1 -p PORT -C 5
says "a good connection is not worth a word" 0 "$silent" "$tmp"/[0-9]*.pcapng

# --- trails, JSON, what cannot be read ---

mkdir "$tmp/trails"
VERBATIM_LINK=udp VERBATIM_TRACE=$tmp/trails VERBATIM_PCAP=$tmp/one.pcapng "${run[@]}" \
	"$VB_BUILD/tests/check/wrong_rkey" >"$tmp/output" 2>&1
says "a trail" 1 "^1\. remote-access
	[0-9]\. completion-error
	the send request with wr_id 0x1 completed with IBV_WC_REM_ACCESS_ERR" \
	"$tmp/one.pcapng" "$tmp"/trails/*.trail
"${explain[@]}" --json "$tmp/one.pcapng" >"$tmp/json"
check "JSON" python3 - "$tmp/json" <<-'END'
	import json, sys
	said = json.load(open(sys.argv[1]))
	trouble = said["troubles"][0]
	assert trouble["name"] == "remote-access" and trouble["fault"], trouble
	assert trouble["flow"]["to"]["program"] == "wrong_rkey", trouble
	assert said["flows"][0]["transport"] == "RC" and said["flows"][0]["packets"] == 2, said
END
head -c 1000 "$tmp/killed.client.pcapng" >"$tmp/short.pcapng"
says "a file that is cut" 0 "capture-is-damaged" "$tmp/short.pcapng"
head -c 1000 /dev/urandom >"$tmp/noise"
says "a file that is none" 2 "neither pcap nor pcapng" "$tmp/noise"
says "no file" 2 "No such file" "$tmp/nothing"
says "from stdin" 1 "^1\. remote-access" - <"$tmp/one.pcapng"
suite_end
