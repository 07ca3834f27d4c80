#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Each part of ../order.sh with a hundred seeds by both links: how many of them pass, and for each
# that does not, what it said. VB_PARTS, VB_LINKS and VB_SEEDS ("1 100": the first and the last) say
# less, VB_JOBS how many run at a time, which is more than there are processors, since they
# mostly wait.
tmp=$(mktemp -d "${TMPDIR:-/tmp}/verbatim-test.XXXXXX")
. "$(dirname "$0")/../../lib/tap.sh"

: "${VB_PARTS:=right perftest ucx mpi pyverbs}" "${VB_LINKS:=shm udp}" "${VB_SEEDS:=1 100}"
: "${VB_JOBS:=$(($(nproc) * 2))}"
one=$(dirname "$0")/../order.sh
trap 'rm -rf "$tmp"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM

# seed_run PART LINK SEED: says how it went, at once, and keeps what it said if that is not well.
seed_run() {
	local log=$tmp/$1.$2.$3 begun=$SECONDS
	if VB_PART=$1 VB_LINK=$2 VB_SEED=$3 "$one" >"$log" 2>&1; then
		echo "# $1, $2, seed $3: $(grep -c '^ok' "$log") ok, $((SECONDS - begun)) s"
		rm "$log"
	else
		echo "# $1, $2, seed $3: fails"
	fi
}

# Of all parts at once, so that one that has failed is seen early.
read -r first last <<<"$VB_SEEDS"
for ((seed = first; seed <= last; seed++)); do
	for part in $VB_PARTS; do
		for link in $VB_LINKS; do
			while (($(jobs -rp | wc -l) >= VB_JOBS)); do
				wait -n
			done
			seed_run "$part" "$link" $seed &
		done
	done
done
wait
for part in $VB_PARTS; do
	for link in $VB_LINKS; do
		failed=()
		for ((seed = first; seed <= last; seed++)); do
			[ ! -e "$tmp/$part.$link.$seed" ] || failed+=("$seed")
		done
		count=$((last - first + 1))
		name="$part, $link: $((count - ${#failed[@]})) of $count seeds pass"
		if [ ${#failed[@]} = 0 ]; then
			ok "$name"
		else
			fail "$name" "not ${failed[*]}" "${failed[@]/#/$tmp/$part.$link.}"
		fi
	done
done
suite_end
