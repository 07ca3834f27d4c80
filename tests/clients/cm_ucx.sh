#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# UCX when it connects by rdma_cm: its io_demo, which checks all data and knows IPv4 alone.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/cm.sh"

if ! command -v io_demo >/dev/null; then
	skip_all "no io_demo"
fi
if [ "$VB_SANITIZE" = thread ]; then
	skip_all "UCX crashes under ThreadSanitizer, with any library"
fi
within=("$VB_BUILD/verbatim" run --dev --)
export UCX_NET_DEVICES=verbatim0:1 UCX_WARN_UNUSED_ENV_VARS=n UCX_SOCKADDR_TLS_PRIORITY=rdmacm
here=(127.0.0.1)

programs() {
	local name
	[ "$at" = "${at#*:}" ] || return
	export UCX_TLS
	for UCX_TLS in rc_v ud_v; do
		name="$PREFIX: io_demo by $UCX_TLS"
		endless_run io_demo -p PORT -q -d 1000:100000 -- \
			io_demo -p PORT -q -i 100 -d 1000:100000 -o read,write "$at"
		verdict "$name" "$why" "$tmp/server" "$tmp/client"
	done
}

hosts_make 1500
cm_places programs
suite_end
