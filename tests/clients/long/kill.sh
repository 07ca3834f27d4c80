#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Many rounds of what ../kill.sh does, with every operation, and what only rounds show:
# that no slot gets lost.
. "$(dirname "$0")/../../lib/suite.sh"
. "$(dirname "$0")/../../lib/kill.sh"

gid=$(gid_index 127.0.0.1)
rounds=20
for link in shm udp; do
	link_use $link
	for program in ib_send_bw ib_write_bw ib_read_bw ib_atomic_bw; do
		killing kill_server $program -b
		killing kill_client $program -b
		killing kill_both $program -b -q 4
		killing kill_hub $program -b
		killing kill_hub_and_server $program -b
	done
done

"$VB_BUILD/verbatim" hub status >"$tmp/hub"
grep -q ' 16 of 1024 slots made' "$tmp/hub"
verdict "no slot was lost" "more than 16 were made" "$tmp/hub"
suite_end
