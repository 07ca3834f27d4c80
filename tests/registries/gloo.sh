#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Gloo, whose ibverbs transport Debian's library has: its collectives between processes, within a
# host and between two. (PyTorch's wheel is built without that transport.)
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

[ -z "$VB_SANITIZE" ] || skip_all "a sanitizer's runtime does not go with this library"
[ -e /usr/include/gloo/transport/ibverbs/device.h ] || skip_all "no libgloo-dev"
command -v c++ >/dev/null || skip_all "no C++ compiler"
if ! c++ -O1 -o "$tmp/gloo" "$VB_ROOT/tests/registries/gloo.cc" -lgloo -libverbs \
	>"$tmp/output" 2>&1; then
	fail "it compiles" "it does not" "$tmp/output"
	suite_end
fi
chmod 755 "$tmp/gloo"

# ranks NAME COUNT: the last one on the client's host. They find each other by files.
ranks() {
	local rank on=() pids=() rc=0
	store=$(mktemp -d "$tmp/store.XXXXXX")
	chmod 777 "$store"
	for ((rank = 0; rank < $2; rank++)); do
		on=("${on_server[@]}")
		((rank < $2 - 1)) || on=("${on_client[@]}")
		timeout -k 5 "$limit_s" "${on[@]}" "${run[@]}" "$tmp/gloo" \
			$rank "$2" "$store" "${gid:-0}" >"$tmp/rank$rank" 2>&1 &
		pids+=($!)
	done
	for rank in "${!pids[@]}"; do
		wait "${pids[rank]}" && grep -q 'is right' "$tmp/rank$rank" || rc=1
	done
	[ $rc = 0 ]
	verdict "$1, $2 processes" "one failed" "$tmp"/rank*
}

ranks "all collectives" 2
ranks "all collectives" 4
link_use udp
ranks "all collectives" 3
unset VERBATIM_LINK
over=
if hosts_make 1500; then
	hosts_use 4
	ranks "two hosts, all collectives" 3
	on_client=() gid=0
else
	skip "two hosts" "this system lets us make no veth"
fi
if user_become; then
	ranks "an ordinary user, all collectives" 3
else
	skip "an ordinary user" "nobody cannot read $VB_BUILD"
fi
suite_end
