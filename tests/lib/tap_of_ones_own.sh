#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# In a user and network namespace of its own: does a process get a TAP device for its segment, and
# is that gone with it? The arguments put a program on the NIC.
set -e
ip link set lo up
coproc VERBATIM_ETH=tap:own0 "$@" "$VB_BUILD/examples/forward" verbatim0 02:0:0:0:0:1 02:0:0:0:0:2 \
	02:0:0:0:0:3 02:0:0:0:0:4
read -r word <&"${COPROC[0]}"
[ "$word" = ready ]
ip link show own0 | grep -q ',UP'
eval "exec ${COPROC[1]}>&-"
wait "$COPROC_PID"
! ip link show own0 2>/dev/null
