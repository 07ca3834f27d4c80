#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Mooncake's transfer engine, as its wheel for machines without CUDA has it: its own benchmark, and
# two engines, within a host and between two, and by two rails of which one goes down.
. "$(dirname "$0")/../lib/registries.sh"
wheels mooncake-transfer-engine-non-cuda==0.3.13.post1 numpy==2.2.6
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/rails.sh"

[ -z "$VB_SANITIZE" ] || skip_all "a sanitizer's runtime does not go with Python's wheels"
[ "${views[0]}" != --dev ] || skip_all "it looks for its device in /sys, which is not shown yet"
peer=$VB_ROOT/tests/lib/mooncake_peer.py

target_words() {
	echo "$address"
}
initiator_words() {
	echo "$from $ready"
}

# Where it finds no device, it takes TCP and says so to its log alone.
engines() {
	peers "$1"
	grep -q 'installTransport, type=rdma' "$tmp/server"
	verdict "$1 use RDMA" "they do not" "$tmp/server" "$tmp/client"
}

bench_listens() {
	segment=$(sed -n 's/.*P2P handshake, listening on //p' "$tmp/server")
	[ -n "$segment" ] || gone $pid
}

bench() {
	local pid segment words=("${run[@]}" "$python" "${python%/*}/transfer_engine_bench"
		-metadata_server=P2PHANDSHAKE -protocol=rdma -device_name=verbatim0
		-buffer_size=67108864)
	: >"$tmp/server"
	timeout -k 5 "$limit_s" "${words[@]}" -mode=target -local_server_name=127.0.0.1 \
		>>"$tmp/server" 2>&1 &
	pid=$!
	await bench_listens
	if ends 0 "$1" "${words[@]}" -mode=initiator -local_server_name=127.0.0.1 \
		-segment_id="$segment" -operation="$2" -duration=1 -threads=2 -batch_size=8; then
		grep -q 'batch count [1-9]' "$tmp/output"
		verdict "$1" "it moves nothing" "$tmp/output"
	fi
	kill $pid
	wait $pid 2>/dev/null
}

everything() {
	engines "$1two engines"
	peers_killed "$1the target is killed"
}

# --- two rails ---

# moved TIMES: the initiator has done so.
moved() {
	local last
	last=$(sed -n 's/^moved \([0-9]*\),.*/\1/p' "$tmp/client" | tail -n 1)
	[ "${last:-0}" -ge "$1" ] || gone $initiator
}

# moves_on: it does so again.
moves_on() {
	local count
	count=$(grep -c '^moved' "$tmp/client")
	await moved $((count + 3)) && ! gone $initiator
}

# carried RAIL [ON ...]: octets that it has sent and received, on the host that ON leads to.
carried() {
	local rail=$1
	shift
	"$@" ip -s -j link show "r$rail" | grep -o '"bytes":[0-9]*' |
		awk -F : '{ n += $2 } END { print n }'
}

# goes_down NAME HOW [ON ...]: in the middle of it that rail of the host that ON leads to which
# carries more: Mooncake chooses by chance.
goes_down() {
	local name=$1 how=$2 initiator rc why on_client=("${on_b[@]}") octets
	shift 2
	peers_target
	octets=($(carried 0 "$@") $(carried 1 "$@"))
	peers_initiator "$how" &
	initiator=$!
	await moved 3
	octets=($(($(carried 0 "$@") - octets[0])) $(($(carried 1 "$@") - octets[1])))
	busy=$((octets[1] > octets[0]))
	[ "${octets[busy]}" -ge 1000000 ]
	verdict "$name: it carries data" "${octets[*]} octets" "$tmp/client" "$tmp/server"
	"$@" ip link set r$busy down
	moves_on
	verdict "$name: it goes on by the other" "it does not" "$tmp/client"
	rail_plugged_up $busy "$@"
	moves_on
	verdict "$name: it goes on when the rail is back" "it does not" "$tmp/client"
	kill $(pgrep -P $initiator) 2>/dev/null
	wait $initiator
	rc=$?
	process_wait $target $limit_s 2>/dev/null
	expect='^all octets are right' sides_judge $rc $?
	verdict "$name: all octets are right" "$why" "$tmp/client" "$tmp/server"
}

from=$address
for view in "${views[@]}"; do
	run=("$VB_BUILD/verbatim" run "$view" --)
	everything "$view, "
	bench "$view, transfer_engine_bench, write" write
	bench "$view, transfer_engine_bench, read" read
done
link_use udp
everything ""
unset VERBATIM_LINK
over=
if hosts_make 1500; then
	hosts_use 4
	from=$b4
	everything "two hosts, "
	address=127.0.0.1 from=127.0.0.1
else
	skip "two hosts" "this system lets us make no veth"
fi
if rails_switch 3; then
	export VERBATIM_DEVICES=rail0=r0,rail1=r1
	# Mooncake's own handshakes go by the third.
	address=10.80.2.1 from=10.80.2.2
	goes_down "a rail of the target goes down" until-told
	grep -q "peer_nic: .*rail$busy.*transport retry counter exceeded" "$tmp/client"
	verdict "transfers failed by that rail, and Mooncake repeated them" "none did" "$tmp/client"
	grep -q "async event port error for context rail$busy" "$tmp/server"
	verdict "the target has PORT_ERR" "it has not" "$tmp/server"
	goes_down "a rail of the initiator goes down" in-spite "${on_b[@]}"
	grep -q "async event port error for context rail$busy" "$tmp/client"
	verdict "the initiator has PORT_ERR" "it has not" "$tmp/client"
	unset VERBATIM_DEVICES
	address=127.0.0.1 from=127.0.0.1
else
	skip "two rails" "this system lets us make no bridge"
fi
if user_become; then
	export HOME=/nonexistent
	for view in "${views[@]}"; do
		run=("$VB_BUILD/verbatim" run "$view" --)
		everything "$view, an ordinary user, "
	done
else
	skip "an ordinary user" "nobody cannot read $VB_BUILD"
fi
suite_end
