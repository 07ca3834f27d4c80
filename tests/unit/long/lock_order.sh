#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The order of locks (src/base/lock_rank.def), checked at run time in a build of its own: Meson's
# tests, simulated runs, and two clients. A breach ends the process that commits it.
set -u
order=$VB_BUILD-order tmp=$VB_BUILD-order/check
rm -rf "$tmp"
mkdir -p "$tmp"
. "$VB_ROOT/tests/lib/tap.sh"

try() {
	name=$1
	shift
	if "$@" >"$tmp/$name.log" 2>&1; then
		ok "$name"
	else
		fail "$name" "exit status $?" "$tmp/$name.log"
	fi
}

[ -e "$order/build.ninja" ] || try setup meson setup "$order" "$VB_ROOT" -Dlock_order=true
try build ninja -C "$order"
try meson meson test -C "$order" --no-rebuild
try sim "$order/tests/sim/sim" --count 2000
try sim_narrow "$order/tests/sim/sim_narrow" --count 500
try sim_xrc "$order/tests/sim/sim_xrc" --count 1000
try sim_dc "$order/tests/sim/sim_dc" --count 1000
try sim_srd "$order/tests/sim/sim_srd" --count 1000
for client in pingpong dc; do
	try "$client" env VB_BUILD="$order" "$VB_ROOT/tests/clients/$client.sh"
done
suite_end
