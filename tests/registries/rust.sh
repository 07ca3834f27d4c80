#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Rust's crates `sideway` and `ibverbs`: their own tests and examples.
. "$(dirname "$0")/../lib/registries.sh"
crate sideway 0.4.3
crate ibverbs 0.9.2
. "$(dirname "$0")/../lib/suite.sh"

[ -z "$VB_SANITIZE" ] || skip_all "a sanitizer's runtime does not go with Rust's programs"

# crate_tests NAME: one by one, as Rust's test programs list them.
crate_tests() {
	local crate=$1 program name result words
	while read -r program; do
		# That one looks at what the compiler says.
		[[ $program != */compiletest-* ]] || continue
		words=("${run[@]}" "$program" --test-threads 2)
		# It compares with what stands in /sys.
		[ "${views[0]}" != --dev ] || words+=(--skip query_gid_table_fallback)
		timeout -k 5 "$limit_s" "${words[@]}" >"$tmp/output" 2>&1
		verdict "$2$crate, ${program##*/}" "it does not pass" "$tmp/output"
		while read -r _ name _ result; do
			case $result in
			ok) ok "$2$crate, $name" ;;
			ignored*) skip "$2$crate, $name" "$result" ;;
			*) fail "$2$crate, $name" "$result" ;;
			esac
		done < <(grep '^test .* \.\.\. ' "$tmp/output")
	done <"$got/$crate.tests"
}

for view in "${views[@]}"; do
	run=("$VB_BUILD/verbatim" run "$view" --)
	run_server=("${run[@]}") run_client=("${run[@]}")
	crate_tests sideway "$view, "
	crate_tests ibverbs "$view, "
done
examples=$got/sideway/target/debug/examples
for test in rc_pingpong rc_pingpong_split; do
	twins "sideway, $test" "$examples/$test" -p PORT -d verbatim0 -g 0 -s 4096 -n 200
done
for test in ibv_devinfo show_gids; do
	check "sideway, $test" "${run[@]}" "$examples/$test"
done
check "ibverbs, loopback" "${run[@]}" "$got/ibverbs/target/debug/examples/loopback"
suite_end
