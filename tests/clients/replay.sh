#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `verbatim record` and `verbatim replay`: what programs did happens again without the peer, and
# what failed fails again; a record that is cut, altered or full says so.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/cm.sh"

verbatim=$VB_BUILD/verbatim
command -v ibv_rc_pingpong >/dev/null || skip_all "there is no ibv_rc_pingpong"

records_to() {
	tapes=$tmp/$1
	rm -rf "$tapes"
	run_server=("$verbatim" record -o "$tapes" --)
	run_client=("$verbatim" record -o "$tapes" --)
}

# replayed STATUS PATTERN FILE: the replay ends so and says that
replayed() {
	ends "$1" "the replay of $3" "$verbatim" replay "$3" || return
	grep -q -- "$2" "$tmp/output" && return
	fail "the replay of $3" "it does not say '$2'" "$tmp/output"
	return 1
}

# same NAME CMD ...: both ends are recorded, and replayed
same() {
	local name=$1 tape count=0
	records_to tapes
	twins "$name, recorded" "${@:2}"
	for tape in "$tapes"/*.tape; do
		replayed 0 "the same as was recorded, to the end of the program" "$tape" || return
		count=$((count + 1))
	done
	[ $count = 2 ]
	verdict "$name, replayed" "$count records instead of 2" /dev/null
}

for service in rc uc ud srq; do
	same "${service^^} ping-pong" ibv_${service}_pingpong -d verbatim0 -g 0 -n 100 -p PORT
done
same "events" ibv_rc_pingpong -d verbatim0 -g 0 -n 100 -e -p PORT
if command -v ib_send_bw >/dev/null; then
	for what in send_bw write_bw read_bw atomic_bw; do
		size=${what/atomic_bw/}
		same "$what" ib_$what -d verbatim0 -x 0 -n 200 ${size:+-s 20000} -p PORT
	done
	VERBATIM_FAULT=loss=2%,dup=1%,reorder=5%,seed=3 \
		same "send_bw with loss" ib_send_bw -d verbatim0 -x 0 -n 200 -s 20000 -p PORT
fi
if command -v rping >/dev/null; then
	records_to cm
	PREFIX=rdma_cm cm "recorded" rping -s -a "$at" -p PORT -C 20 -- \
		rping -c -a "$at" -p PORT -C 20
	for tape in "$tapes"/*.tape; do
		replayed 0 "to the end of the program" "$tape" && ok "rdma_cm, replayed"
	done
fi

# --- failures ---

# A server that nobody reaches, and that is killed; the client gives up.
records_to lost
"${run_server[@]}" ibv_rc_pingpong -d verbatim0 -g 0 -p 20001 >"$tmp/server" 2>&1 &
server=$!
port_wait 20001 $server
VERBATIM_FAULT=loss=100%,seed=1 ends 1 "all is lost" \
	"${run_client[@]}" ibv_rc_pingpong -d verbatim0 -g 0 -p 20001 "$address" &&
	grep -q 'Failed status transport retry counter exceeded' "$tmp/output"
verdict "a client gives up" "it does not" "$tmp/output"
kill -9 $server
wait $server 2>/dev/null
lost=("$tapes"/*.tape)
for tape in "${lost[@]}"; do
	"$verbatim" replay "$tape" >"$tmp/replay" 2>&1
	rc=$?
	if grep -q "$address\$" <(head -1 "$tmp/replay"); then
		[ $rc = 0 ] && grep -q 'went from RTS to ERR' "$tmp/replay" &&
			grep -q 'completion: .*IBV_WC_RETRY_EXC_ERR' "$tmp/replay" &&
			grep -q 'no acknowledgement of PSN' "$tmp/replay"
		verdict "it gives up again, without the peer, and says why" "rc $rc" "$tmp/replay"
		client=$tape
	else
		[ $rc = 0 ] && grep -q 'the program was killed, or still runs' "$tmp/replay"
		verdict "the record of a program that was killed is whole" "rc $rc" "$tmp/replay"
	fi
done

# fails PROGRAM PATTERN ...: a program of both ends, whose failure is there again
fails() {
	local program=$VB_BUILD/tests/check/$1 name=$1 pattern
	shift
	[ -x "$program" ] || return
	records_to "$name"
	ends 0 "$name, recorded" "${run_client[@]}" "$program" || return
	for pattern in "$@"; do
		replayed 0 "$pattern" "$tapes/$name"-*.tape || return
	done
	ok "$name fails again"
}
fails wrong_rkey 'completion: .*IBV_WC_REM_ACCESS_ERR' 'rkey 0x12345678' \
	'went from RTS to ERR' 'to the end of the program'
fails rnr_exceeded 'completion: .*IBV_WC_RNR_RETRY_EXC_ERR' 'to the end of the program'
fails recv_too_short 'completion: .*IBV_WC_' 'to the end of the program'

# --- a debugger ---

if command -v gdb >/dev/null; then
	ends 0 "a debugger" gdb -batch -ex 'break vb_replay_error' -ex run -ex backtrace \
		--args "$verbatim" replay "$client" &&
		grep -q '#[1-9].* vb_nic_turn' "$tmp/output"
	verdict "a debugger stops in the midst of the failure" "it does not" "$tmp/output"
else
	skip "a debugger stops in the midst of the failure" "there is no gdb"
fi
number=$("$verbatim" replay "$client" | sed -n 's/.*item \([0-9]*\): completion.*/\1/p')
ends 0 "--until" "$verbatim" replay --until "$number" "$client" &&
	grep -q 'QPN 0x.* is in ERR: ' "$tmp/output" && ! grep -q 'completion: ' "$tmp/output"
verdict "--until stops before the item, and says where the QPs are" "it does not" "$tmp/output"

# --- a device that has less ---

less=$VB_BUILD/tests/verbs/verbs_device_memory_test
if [ -x "$less" ]; then
	records_to less
	"${run_client[@]}" "$less" >"$tmp/output" 2>&1
	rc=$?
	[ $rc = 0 ] && grep -q 'OK.*where_there_is_none_all_is_refused' "$tmp/output"
	verdict "device memory that is not recorded is refused" "rc $rc" "$tmp/output"
fi

# --- records that are not whole ---

bytes=$(stat -c %s "$client")
head -c $((bytes / 2)) "$client" >"$tmp/cut"
replayed 1 "the file is shorter than it was" "$tmp/cut" && ok "a record that was cut says so"
cp "$client" "$tmp/altered"
printf '\377' | dd of="$tmp/altered" bs=1 seek=$((bytes / 2)) conv=notrunc 2>/dev/null
replayed 1 "it was altered behind item" "$tmp/altered" && ok "a record that was altered says so"
replayed 1 "it is no record of verbatim's" "$verbatim" && ok "another file is refused"
: >"$tmp/empty"
replayed 1 "it cannot be read" "$tmp/empty" && ok "an empty file is refused"
if command -v ib_send_bw >/dev/null; then
	records_to full
	VERBATIM_RECORD_MB=1 twins "a full record harms nobody" \
		ib_send_bw -d verbatim0 -x 0 -n 300 -s 20000 -p PORT
	full=0
	for tape in "$tapes"/*.tape; do
		"$verbatim" replay "$tape" | grep -q 'until the record was full' &&
			full=$((full + 1))
	done
	[ $full -ge 1 ]
	verdict "a full record says so" "none does" /dev/null
fi
for other in VERBATIM_ORDER=7 VERBATIM_LINK=shm; do
	env "$other" VERBATIM_RECORD="$tmp" "${run[@]}" ibv_devinfo >"$tmp/output" 2>&1
	grep -q 'VERBATIM_RECORD does not go with' "$tmp/output"
	verdict "$other and a record are refused together" "they are not" "$tmp/output"
done
for wrong in "record" "record -x" "replay" "replay --until x $client" "replay a b"; do
	# shellcheck disable=SC2086 # words
	ends 2 "verbatim $wrong is refused" "$verbatim" $wrong && ok "verbatim $wrong is refused"
done
suite_end
