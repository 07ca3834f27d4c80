#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The simulators refuse wrong arguments, say what is right, and run nothing then.
set -u
sims=$VB_BUILD/tests/sim
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. "$VB_ROOT/tests/lib/tap.sh"
a_seed="a whole number from 0 to 18446744073709551615, such as 4711 or 0x1267"

# says STATUS TEXT NAME CMD ...: it ends with that status, and one whole line of its output is TEXT
says() {
	local status=$1 text=$2 name=$3 rc
	shift 3
	timeout 60 "$@" >"$tmp/said" 2>&1
	rc=$?
	if [ $rc = "$status" ] && grep -qxF -- "$text" "$tmp/said"; then
		ok "$name"
	else
		fail "$name" "exit status $rc; expected $status and the line: $text" "$tmp/said"
	fi
}

# refuses SIM TEXT ARGS ...: with that line; a simulator prints a line with "seed" once it runs
refuses() {
	local sim=$1 text=$2
	shift 2
	says 2 "$text" "$sim${*:+ }$* is refused" "$sims/$sim" "$@"
	if grep -qE '^seed |runs, ' "$tmp/said"; then
		fail "$sim $* runs nothing" "$(grep -E '^seed |runs, ' "$tmp/said")"
	fi
}

for sim in sim sim_xrc sim_dc sim_cm; do
	for wrong in abc "" 1x 0x -1 +1 " 1" 1.5 18446744073709551616; do
		refuses $sim "sim: '$wrong' is not a seed: that is $a_seed" "$wrong"
	done
	refuses $sim "sim: 'x' is not a seed: that is $a_seed" --count 1 x
	for wrong in abc 0 -1; do
		refuses $sim \
			"sim: '$wrong' is not a number of runs: that is a whole number from 1 on" \
			--count "$wrong"
	done
	refuses $sim "sim: '2' is not a number of runs: that is less, from that seed on" \
		--count 2 18446744073709551615
done
usage="usage: sim SEED | --count N [FROM] | --random N | --file FILE"
refuses sim "$usage"
refuses sim "$usage" 1 2
refuses sim "$usage" --count
refuses sim "$usage" --count 1 2 3
refuses sim "$usage" --seed 1
refuses sim "$usage" --file
refuses sim_xrc "usage: sim_xrc SEED | --count N [FROM]" --random 1
refuses sim_dc "usage: sim_dc SEED | --count N [FROM]" --file x
refuses sim_cm "usage: sim_cm SEED | --count N [FROM]" --random 1
refuses sim "sim: 'many' is not a number of runs: that is a whole number from 1 on" --random many

refuses sim "sim: /nowhere/seeds: No such file or directory" --file /nowhere/seeds
printf '# none\n\n' >"$tmp/seeds"
refuses sim "sim: $tmp/seeds: no seed in it" --file "$tmp/seeds"
printf '1\n2 # fine\nthree # not\n' >"$tmp/seeds"
refuses sim "sim: 'three' is not a seed: that is $a_seed" --file "$tmp/seeds"

says 0 "seed 4711: ok" "sim 4711 runs" "$sims/sim" 4711
says 0 "seed 4711: ok" "sim 0x1267 runs the same" "$sims/sim" 0x1267
says 0 "seed 10: ok" "sim 010 is decimal" "$sims/sim" 010
says 0 "seed 0: ok" "sim 0 runs" "$sims/sim" 0

# `make sim` hands the word on as it is.
make_sim=(make --no-print-directory -C "$VB_ROOT" "BUILD=$VB_BUILD" sim)
for wrong in abc "" "1 2"; do
	says 2 "sim: '$wrong' is not a seed: that is $a_seed" "make sim SEED='$wrong' is refused" \
		"${make_sim[@]}" "SEED=$wrong"
done
says 0 "seed 4711: ok" "make sim SEED=4711 runs" "${make_sim[@]}" SEED=4711
suite_end
