#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The device as ibverbs-utils shows it: ibv_devices, ibv_devinfo, ibv_asyncwatch; and the limits it
# names are those that it holds to: as much is granted, one more is refused.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

# shows NAME PATTERN: in $tmp/devinfo
shows() {
	if grep -Eq -- "$2" "$tmp/devinfo"; then
		ok "$1"
	else
		fail "$1" "not /$2/" "$tmp/devinfo"
	fi
}

"${run[@]}" ibv_devices >"$tmp/devinfo" 2>&1
shows "ibv_devices lists verbatim0" '^ *verbatim0\s+[0-9a-f]{16}$'
check "ibv_devinfo" "${run[@]}" ibv_devinfo -d verbatim0 -i 1
check "ibv_devinfo -l" "${run[@]}" ibv_devinfo -l

"${run[@]}" ibv_devinfo -v >"$tmp/devinfo" 2>&1
shows "the port is up" 'state:.*PORT_ACTIVE'
shows "the link layer is Ethernet" 'link_layer:.*Ethernet'
shows "the transport is InfiniBand's" 'transport:.*InfiniBand'
shows "the path MTU of loopback is 4096" 'active_mtu:.*4096'
shows "IPv4 has a GID" 'GID\[.*::ffff:127\.0\.0\.1, RoCE v2'
shows "IPv6 has a GID" 'GID\[.*::1, RoCE v2'
# What this NIC does not have, it does not claim.
shows "no memory windows are claimed" 'max_mw:\s+0$'
shows "no multicast is claimed" 'max_mcast_grp:\s+0$'
shows "no raw Ethernet is claimed" 'max_raw_ethy_qp:\s+0$'
shows "no paging is claimed" 'NO SUPPORT'
check "the limits hold" "${run[@]}" "$VB_ROOT/tests/lib/limits.py" "$tmp/devinfo"

# The same GUID for each program, and the same after all of them are gone.
guid() {
	"${run[@]}" ibv_devinfo | awk '/node_guid/ { print $2 }'
}
if [ -n "$(guid)" ] && [ "$(guid)" = "$(guid)" ]; then
	ok "the GUID stays"
else
	fail "the GUID stays" "$(guid), then $(guid)"
fi

# ibv_asyncwatch waits for events that do not come; and one comes when an interface goes.
watch() {
	local pid
	"${run[@]}" stdbuf -oL ibv_asyncwatch >"$tmp/watch" 2>&1 &
	pid=$!
	sleep 1
	if ! kill -0 $pid 2>/dev/null; then
		fail "ibv_asyncwatch waits" "it ended" "$tmp/watch"
		return
	fi
	kill $pid
	wait $pid 2>/dev/null
	if grep -q 'async event FD' "$tmp/watch"; then
		ok "ibv_asyncwatch waits"
	else
		fail "ibv_asyncwatch waits" "it does not say on what" "$tmp/watch"
	fi
}
watch

# Addresses that come later are found by the next program.
if hosts_make 1500; then
	"${run[@]}" ibv_devinfo -v >"$tmp/devinfo" 2>&1
	shows "a new IPv4 address has a GID" "GID\[.*::ffff:$a4, RoCE v2"
	shows "a new IPv6 address has a GID" "GID\[.*$a6, RoCE v2"
	shows "a link-local address has a GID" 'GID\[.*fe80::'
else
	skip "new addresses" "this system lets us make no veth"
fi

if user_become; then
	check "ibv_devinfo as an ordinary user" "${on_client[@]}" "${run[@]}" ibv_devinfo -v
	check "the limits hold as an ordinary user" "${on_client[@]}" "${run[@]}" \
		"$VB_ROOT/tests/lib/limits.py" "$tmp/devinfo"
else
	skip "as an ordinary user" "nobody cannot read $VB_BUILD"
fi
suite_end
