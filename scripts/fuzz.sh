#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs every libFuzzer target for T seconds, from the captured packets and what was found before.
# An input that breaks one is left in build-fuzz/found.
set -eu
cd "$(dirname "$0")/.."
: "${T:=60}" "${BUILD:=build-fuzz}"
export VB_ROOT="$PWD"

scripts/deps.sh test fuzz
[ -e "$BUILD/build.ninja" ] || CC=clang meson setup "$BUILD" -Dfuzz=true
ninja -C "$BUILD"

passed=0 failed=0
mkdir -p "$BUILD/found"
for target in "$BUILD"/tests/fuzz/fuzz_*; do
	[ -f "$target" ] && [ -x "$target" ] || continue
	name=${target##*/fuzz_}
	corpus=$BUILD/corpus/$name
	mkdir -p "$corpus"
	"$BUILD/tests/fuzz/smoke_$name" --seeds "$corpus"
	if "$target" -max_total_time="$T" -rss_limit_mb=4096 -timeout=10 -print_final_stats=1 \
		-artifact_prefix="$BUILD/found/$name-" "$corpus" 2>"$BUILD/found/$name.log"; then
		echo "ok fuzz_$name: $(grep number_of_executed_units "$BUILD/found/$name.log")"
		passed=$((passed + 1))
	else
		tail -40 "$BUILD/found/$name.log"
		echo "FAIL fuzz_$name: see $BUILD/found"
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
