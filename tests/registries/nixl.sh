#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# NIXL, as its wheel has it, with the UCX and the libibverbs that the wheel brings along: its own
# example, and two agents, within a host and between two.
. "$(dirname "$0")/../lib/registries.sh"
wheels nixl-cu12==1.5.1 nixl==1.5.1 numpy==2.2.6
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

[ -z "$VB_SANITIZE" ] || skip_all "a sanitizer's runtime does not go with Python's wheels"
peer=$VB_ROOT/tests/lib/nixl_peer.py
export UCX_WARN_UNUSED_ENV_VARS=n UCX_TLS

target_words() {
	echo $port
}
initiator_words() {
	echo $((port + 1000)) $address $port
}

# Its RPATH names a folder that does not have all, and pip does not make it executable.
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
example() {
	chmod +x "$packages/nixl_cu12.scripts/nixl_example"
	check "$1" "${on_client[@]}" env NIXL_PLUGIN_DIR="$packages/nixl_cu12.libs/nixl" \
		LD_LIBRARY_PATH="$packages/.nixl_cu12.mesonpy.libs" \
		"${run[@]}" "$packages/nixl_cu12.scripts/nixl_example" UCX
}

agents() {
	port=$((port + 1))
	peers "$1"
}

agents_killed() {
	port=$((port + 1))
	peers_killed "$1"
}

everything() {
	for UCX_TLS in rc_v ud_v; do
		agents "$1two agents, $UCX_TLS"
	done
	UCX_TLS=rc_v
	agents_killed "$1the target is killed"
}

for view in "${views[@]}"; do
	run=("$VB_BUILD/verbatim" run "$view" --bundled --)
	UCX_TLS=rc_v
	example "$view, nixl_example"
	everything "$view, "
done
link_use udp
everything ""
unset VERBATIM_LINK
over=
if hosts_make 1500; then
	hosts_use 4
	export UCX_IB_GID_INDEX=$gid
	everything "two hosts, "
	unset UCX_IB_GID_INDEX
	address=127.0.0.1
else
	skip "two hosts" "this system lets us make no veth"
fi
if user_become; then
	export HOME=/nonexistent
	for view in "${views[@]}"; do
		run=("$VB_BUILD/verbatim" run "$view" --bundled --)
		everything "$view, an ordinary user, "
	done
else
	skip "an ordinary user" "nobody cannot read $VB_BUILD"
fi
suite_end
