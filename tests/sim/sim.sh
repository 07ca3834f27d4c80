#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Simulated runs: the seeds that failed once, and a fixed range of others. With --long, fresh ones.
# One seed again, telling all: make sim SEED=n V=1. sim_narrow is the same with rings that hardly
# anything fits into, and sim_xrc has the processes of an XRC domain and their deaths, over either
# kind of rings. sim_dc has initiators and targets of DC; its narrow one, targets that know but
# three. sim_srd has QPs of SRD; its narrow one, such that know but few senders. sim_cm has
# connection managers; its narrow one, room for three ids that nobody has. Another order
# (docs/order.md) is tried with the first two.
set -u
sim=$VB_BUILD/tests/sim/sim
narrow=$VB_BUILD/tests/sim/sim_narrow
count=20000
[ -z "${VB_SANITIZE:-}" ] || count=4000
[ -z "${VB_LONG:-}" ] || count=400000

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. "$VB_ROOT/tests/lib/tap.sh"

try() {
	name=$1
	shift
	if "$@"; then
		ok "$name"
	else
		fail "$name" "exit status $?"
	fi
}

try "kept-seeds" "$sim" --file "$VB_ROOT/tests/sim/seeds.txt"
part=$((count / 10))
for i in 0 1 2 3 4 5 6 7 8 9; do
	try "seeds-from-$((1 + i * part))" "$sim" --count $part $((1 + i * part))
done
try "another-order" env ORDER=1 "$sim" --count $part
try "another-order-by-iba" env ORDER=iba "$sim" --count $((part / 2))
try "another-order-narrow-rings" env ORDER=1 "$narrow" --count $((count / 8))
try "narrow-rings" "$narrow" --count $((count / 4))
try "xrc" "$VB_BUILD/tests/sim/sim_xrc" --count $((count / 2))
try "xrc-narrow-rings" "$VB_BUILD/tests/sim/sim_xrc_narrow" --count $((count / 4))
try "dc" "$VB_BUILD/tests/sim/sim_dc" --count $((count / 2))
try "cm" "$VB_BUILD/tests/sim/sim_cm" --count $((count / 2))
try "cm-narrow" "$VB_BUILD/tests/sim/sim_cm_narrow" --count $((count / 8))
try "srd" "$VB_BUILD/tests/sim/sim_srd" --count $((count / 4))
try "srd-narrow" "$VB_BUILD/tests/sim/sim_srd_narrow" --count $((count / 16))
try "dc-narrow" "$VB_BUILD/tests/sim/sim_dc_narrow" --count $((count / 8))
[ -z "${VB_LONG:-}" ] || try "fresh-seeds" "$sim" --random 100000
[ -z "${VB_LONG:-}" ] || try "fresh-seeds-narrow" "$narrow" --random 100000
suite_end
