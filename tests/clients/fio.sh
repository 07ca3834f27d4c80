#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# fio's rdma engine, which knows IPv4 alone, and nothing random: a client writes whatever it does,
# and a server reads.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/cm.sh"

here=(127.0.0.1)

# job NAME SERVER'S ... -- CLIENT'S ...: neither waits for the other's receives, or sends again
# without them (and a client whose send has failed does not end), so there are as many as there are
# sends, and they may still come too late. A server that has all ends at once: where packets get
# lost its last acknowledgement may, and nobody is there to give it again.
job() {
	local name="$PREFIX: fio $1" common=(--ioengine=rdma --port=PORT --bs=4k --size=128k
		--verify_state_save=0)
	local -a server=()
	local why=RNR
	shift
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	[ "${PREFIX#bad network}" = "$PREFIX" ] || why="$why\\|transport"
	pair_try 4 "\\($why\\) retry counter exceeded" "$name" cm_run \
		fio --name=server "${common[@]}" --iodepth=32 "${server[@]}" -- \
		fio --name=client "${common[@]}" --hostname="$at" "$@"
}

programs() {
	[ "$at" = "${at#*:}" ] || return
	job write --rw=read --verb=write -- --rw=write --verb=write --iodepth=8
	job read --rw=read --verb=read -- --rw=write --verb=read --iodepth=8
	job send --rw=read --verb=recv -- --rw=write --verb=send --iodepth=1
	job "send, verified" --rw=read --verb=recv --verify=crc32c -- \
		--rw=write --verb=send --iodepth=1 --verify=crc32c --do_verify=0
}

hosts_make 1500
cm_places programs
suite_end
