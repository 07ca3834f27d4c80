#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Mooncake's transfer engine, as its wheel for machines without CUDA has it: its own benchmark, and
# two engines, within a host and between two.
. "$(dirname "$0")/../lib/registries.sh"
wheels mooncake-transfer-engine-non-cuda==0.3.13.post1 numpy==2.2.6
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

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
