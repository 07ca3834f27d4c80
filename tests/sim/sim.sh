#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Simulated runs: the seeds that failed once, and a fixed range of others. With --long, fresh ones.
# One seed again, telling all: make sim SEED=n V=1
set -u
sim=$VB_BUILD/tests/sim/sim
count=20000
[ -z "${VB_SANITIZE:-}" ] || count=4000
[ -z "${VB_LONG:-}" ] || count=400000

try() {
	name=$1
	shift
	if "$sim" "$@"; then
		echo "ok $name"
	else
		echo "FAIL $name"
		status=1
	fi
}

status=0
try "kept-seeds" --file "$VB_ROOT/tests/sim/seeds.txt"
part=$((count / 10))
for i in 0 1 2 3 4 5 6 7 8 9; do
	try "seeds-from-$((1 + i * part))" --count $part $((1 + i * part))
done
[ -z "${VB_LONG:-}" ] || try "fresh-seeds" --random 100000
exit $status
