#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Between us and Linux's rdma_rxe, which runs in a virtual machine: each operation of RC, and a few
# of the others, with either on either end. long/rxe.sh has more.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/perftest.sh"
. "$(dirname "$0")/../lib/guest.sh"
. "$(dirname "$0")/../lib/rxe.sh"

if ! guest_make; then
	skip_all "no guest: $why"
fi

for family in 4 6; do
	rxe_use $family
	for far in client server; do
		rxe_far $far
		rxe_pingpong rc -c
		rxe_pingpong rc -c -s 100000 -n 20 -e
		rxe_pingpong srq -c
		rxe_pingpong ud -n 200
		for what in send write read atomic; do
			rxe_perf ib_${what}_bw -n 100
			rxe_perf ib_${what}_lat -n 100
		done
	done
done
rxe_use 4
export VERBATIM_FAULT="loss=2%,dup=1%,reorder=3%,corrupt=0.3%,seed=5"
for far in client server; do
	rxe_far $far
	rxe_pingpong rc -c -n 200 -s 20000
	rxe_perf ib_read_bw -n 100
	rxe_perf ib_atomic_bw -n 200
done
suite_end
