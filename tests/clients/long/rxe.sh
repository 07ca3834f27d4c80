#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# More between us and Linux's rdma_rxe: sizes, path MTUs, many QPs, both directions at once, and a
# network that gets worse.
. "$(dirname "$0")/../../lib/suite.sh"
. "$(dirname "$0")/../../lib/perftest.sh"
. "$(dirname "$0")/../../lib/guest.sh"
. "$(dirname "$0")/../../lib/rxe.sh"

if ! guest_make; then
	skip_all "no guest: $why"
fi

limit_s=300
for family in 4 6; do
	rxe_use $family
	for far in client server; do
		rxe_far $far
		for path in 256 512 1024; do
			for size in 1 255 1024 65537 1000000; do
				rxe_pingpong rc -c -m $path -s $size -n 30
			done
			# Nothing of UC is sent again, and the guest is slow.
			rxe_pingpong uc -m $path -s 1024 -n 10
		done
		for what in send write read; do
			rxe_perf ib_${what}_bw -a -n 20
			rxe_perf ib_${what}_bw -b -n 100
			rxe_perf ib_${what}_bw -q 8 -n 200
			rxe_perf ib_${what}_lat -a -n 20
		done
		rxe_perf ib_send_bw -e -n 200
		rxe_perf ib_atomic_bw -A CMP_AND_SWAP -n 200
		rxe_perf ib_atomic_bw -A FETCH_AND_ADD -q 4 -n 200
		rxe_perf ib_send_lat -c UC -n 100
		rxe_perf ib_send_lat -c UD -n 100
	done
done
rxe_use 4
for loss in 1 5 10; do
	export VERBATIM_FAULT="loss=$loss%,dup=1%,reorder=5%,corrupt=0.5%,seed=$loss"
	for far in client server; do
		rxe_far $far
		rxe_pingpong rc -c -n 200 -s 30000
		for what in send write read atomic; do
			rxe_perf ib_${what}_bw -n 100
		done
	done
done
suite_end
