#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The device as ibverbs-utils shows it: ibv_devices, ibv_devinfo, ibv_asyncwatch; and the limits it
# names are those that it holds to: as much is granted, one more is refused.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

# shows NAME PATTERN: in $tmp/devinfo
shows() {
	grep -Eq -- "$2" "$tmp/devinfo"
	verdict "$1" "not /$2/" "$tmp/devinfo"
}

"${run[@]}" ibv_devices >"$tmp/devinfo" 2>&1
shows "ibv_devices lists verbatim0" '^ *verbatim0\s+[0-9a-f]{16}$'
check "ibv_devinfo" "${run[@]}" ibv_devinfo -d verbatim0 -i 1
check "ibv_devinfo -l" "${run[@]}" ibv_devinfo -l
check "ibv_devinfo -v of that port" "${run[@]}" ibv_devinfo -v -d verbatim0 -i 1
for wrong in "-d verbatim1" "-i 2"; do
	# shellcheck disable=SC2086 # two words
	if "${run[@]}" ibv_devinfo $wrong >"$tmp/devinfo" 2>&1; then
		fail "ibv_devinfo $wrong fails" "it does not" "$tmp/devinfo"
	else
		ok "ibv_devinfo $wrong fails"
	fi
done

"${run[@]}" ibv_devinfo -v >"$tmp/devinfo" 2>&1
shows "the port is up" 'state:.*PORT_ACTIVE'
shows "the link layer is Ethernet" 'link_layer:.*Ethernet'
shows "the transport is InfiniBand's" 'transport:.*InfiniBand'
shows "the path MTU of loopback is 4096" 'active_mtu:.*4096'
shows "IPv4 has a GID" 'GID\[.*::ffff:127\.0\.0\.1, RoCE v2'
shows "IPv6 has a GID" 'GID\[.*::1, RoCE v2'
shows "memory windows are claimed" 'MEM_WINDOW_TYPE_2B'
shows "migration is claimed" 'AUTO_PATH_MIG'
shows "multicast is claimed" 'max_mcast_grp:\s+[1-9]'
shows "paging is claimed" 'ODP_SUPPORT_IMPLICIT'
shows "tag matching is claimed" 'IBV_TM_CAP_RC'
shows "device memory is claimed" 'device memory:\s+[1-9]'
shows "timestamps are claimed" 'timestamp_mask:\s+0x[1-9a-f]'
# What this NIC does not have, it does not claim.
shows "no raw Ethernet is claimed" 'max_raw_ethy_qp:\s+0$'
shows "receive side scaling is claimed" 'max_rwq_indirection_tables:\s+[1-9]'
shows "segmentation is claimed" 'max_tso:\s+262144$'
shows "XRC is claimed" '^\s+XRC$'
check "the limits hold" "${run[@]}" "$VB_ROOT/tests/lib/limits.py" "$tmp/devinfo"

# What it calls itself, and nothing else, is VERBATIM_PERSONA's to say.
numbers() { # numbers NAME PERSONA VENDOR PART
	VERBATIM_PERSONA=$2 "${run[@]}" ibv_devinfo >"$tmp/devinfo" 2>&1
	shows "$1: the vendor" "vendor_id:\s+$3$"
	shows "$1: the part" "vendor_part_id:\s+$4$"
}
numbers "the device is neutral" "" 0x7662 1
numbers "the device passes for a ConnectX-7" connectx7 0x02c9 4129
shows "the device passes for a ConnectX-7: the firmware" 'fw_ver:\s+28\.0\.0$'

# The same GUID for each program, and the same after all of them are gone.
guid() {
	"${run[@]}" ibv_devinfo | awk '/node_guid/ { print $2 }'
}
first=$(guid) second=$(guid)
[ -n "$first" ] && [ "$first" = "$second" ]
verdict "the GUID stays" "$first, then $second"

# ibv_asyncwatch tells of what happens to the interfaces, the device being named or not.
# watch NAME PATTERN CMD ...: CMD makes it say that.
watch() {
	local name=$1 pattern=$2
	shift 2
	"$@"
	await grep -Eq -- "$pattern" "$tmp/watch"
	verdict "$name" "ibv_asyncwatch does not say /$pattern/" "$tmp/watch"
}

watch_all() {
	local pid name="ibv_asyncwatch${*:+ $*}"
	: >"$tmp/watch" # what the one before said is not what this one says
	"${run[@]}" stdbuf -oL ibv_asyncwatch "$@" >"$tmp/watch" 2>&1 &
	pid=$!
	watch "$name waits" 'async event FD' true
	watch "$name sees an address come" 'GID_CHANGE' ip addr add 127.7.7.7/32 dev lo
	watch "$name sees the port go down" 'PORT_ERR .*port 1' ip link set lo down
	watch "$name sees it come up" 'PORT_ACTIVE .*port 1' ip link set lo up
	ip addr del 127.7.7.7/32 dev lo
	kill $pid
	verdict "$name goes on waiting" "it ended" "$tmp/watch"
	wait $pid 2>/dev/null
}
watch_all
watch_all -d verbatim0

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
