#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# libfabric's provider "verbs": endpoints of messages and datagrams, and reliable datagrams by rxm.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/cm.sh"

hosts_make 1500 || skip_all "this system lets us make no veth"
here=($a4 $a6)		# it does not look at lo
# Whoever comes first makes the file by which processes share a domain of XRC, for himself alone.
export FI_VERBS_XRCD_FILENAME=$tmp/xrcd
touch "$FI_VERBS_XRCD_FILENAME"
chmod a+rw "$FI_VERBS_XRCD_FILENAME"

# pingpong PROVIDER TYPE: each size, with the data checked. Who has all parts at once, also if an
# acknowledgement of his was lost: then the other's last send is flushed, or given up. And rxm,
# which asks for completions, then for events, throws away the completions of a connection that is
# over: if the last message and the end come between the two, it waits for that message for ever.
pingpong() {
	local name="$PREFIX: $1 $2${FI_VERBS_PREFER_XRC:+, XRC preferred}" ipv6=() times=1 again
	again="Work Request Flushed\|retry counter exceeded"
	[ -z "${VERBATIM_FAULT:-}" ] || times=4
	[ "$2" != rdm ] || times=4 again+='\|^1m .*=10 '
	[ "$at" = "${at#*:}" ] || ipv6=(-6)
	pair_try $times "$again" "$name" pair_run \
		fi_pingpong -B PORT -p "$1" -e "$2" -c "${ipv6[@]}" -- \
		fi_pingpong -P PORT -p "$1" -e "$2" -c "${ipv6[@]}" "$at"
}

programs() {
	check "$PREFIX: fi_info" "${on_client[@]}" "${run_client[@]}" fi_info -p verbs
	pingpong verbs msg
	pingpong "verbs;ofi_rxm" rdm
	# XRC is for those alone who share what receives, which is a choice of rxm's.
	FI_VERBS_PREFER_XRC=1 pingpong verbs msg
	FI_OFI_RXM_USE_SRX=1 FI_VERBS_PREFER_XRC=1 pingpong "verbs;ofi_rxm" rdm
	[ -n "${VERBATIM_FAULT:-}" ] || pingpong verbs dgram
}

cm_places programs
suite_end
