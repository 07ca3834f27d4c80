#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs every libFuzzer target for T seconds, as many at a time as there are cores, from the captured
# packets and what was found before. An input that breaks one is left in build-fuzz/found.
set -eu
cd "$(dirname "$0")/.."
: "${T:=60}" "${BUILD:=build-fuzz}"
export VB_ROOT="$PWD" T BUILD

# fuzz_one NAME: prints its result in a line.
fuzz_one() {
	corpus=$BUILD/corpus/$1
	log=$BUILD/found/$1.log
	mkdir -p "$corpus"
	"$BUILD/tests/fuzz/smoke_$1" --seeds "$corpus"
	if "$BUILD/tests/fuzz/fuzz_$1" -max_total_time="$T" -rss_limit_mb=4096 -timeout=10 \
		-print_final_stats=1 -artifact_prefix="$BUILD/found/$1-" "$corpus" 2>"$log"; then
		echo "ok - fuzz_$1"
		grep number_of_executed_units "$log"
	else
		tail -40 "$log"
		echo "not ok - fuzz_$1: see $BUILD/found"
	fi
}

if [ $# = 2 ] && [ "$1" = --one ]; then
	fuzz_one "$2"
	exit
fi

scripts/deps.sh fuzz
[ -e "$BUILD/build.ninja" ] || CC=clang meson setup "$BUILD" -Dtests=false -Dfuzz=true
ninja -C "$BUILD" fuzzers
mkdir -p "$BUILD/found"
for target in "$BUILD"/tests/fuzz/fuzz_*; do
	[ -f "$target" ] && [ -x "$target" ] && echo "${target##*/fuzz_}"
done | xargs -P "$(nproc)" -n 1 scripts/fuzz.sh --one | tee "$BUILD/found/results"

passed=$(grep -c ^ok "$BUILD/found/results" || true)
failed=$(grep -c "^not ok" "$BUILD/found/results" || true)
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
