#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# qperf's tests that connect by rdma_cm: those of RC, by IPv4. For UC and UD it can only address
# peers by InfiniBand's LIDs, and there are none on Ethernet.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/cm.sh"

here=(127.0.0.1)
all="rc_bi_bw rc_bw rc_lat rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw rc_rdma_write_lat
	rc_rdma_write_poll_lat rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap
	ver_rc_fetch_add"

# tests NAME TEST ...: of a second each. The two meet by TCP first, at IPv4 addresses alone. A
# server says which port it has before it listens there.
tests() {
	[ "$at" = "${at#*:}" ] || return
	listens_reset
	pair "$PREFIX: qperf$1" env "LISTENS=$tmp/listens" "$(preload_say)" qperf -lp PORT -- \
		env "AWAITS=$tmp/listens" "$(preload_say)" \
		qperf "$at" -lp PORT -cm 1 -t 1 "${@:2}" quit
}

hosts_make 1500
# shellcheck disable=SC2086 # a list
cm_here "one host" tests ", all" $all
# shellcheck disable=SC2086
VERBATIM_FAULT=$cm_bad cm_here "bad network" tests ", all" $all
cm_places tests "" rc_bw rc_lat ver_rc_fetch_add
suite_end
