#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What programs are shown in /dev and /sys: it is what the library says, as root and as an ordinary
# user, in a mount namespace; and the program is otherwise as it was.
. "$(dirname "$0")/../lib/suite.sh"

verbatim=$VB_BUILD/verbatim
device=/sys/class/infiniband/verbatim0
port=$device/ports/1
other=(setpriv --reuid=1000 --regid=1000 --clear-groups)

view_cleanup() {
	# shellcheck disable=SC2046 # numbers
	kill $(cat "$tmp"/keepers 2>/dev/null) 2>/dev/null
	suite_cleanup
}
trap view_cleanup EXIT

"$verbatim" run --view=mount -- true 2>"$tmp/output" ||
	skip_all "this system lets us mount nothing: $(cat "$tmp/output")"

# The keepers of this network namespace, to end them.
keepers_note() {
	local pid
	for pid in $(pgrep -x verbatim); do
		[ "$(readlink "/proc/$pid/ns/net")" = "$(readlink /proc/self/ns/net)" ] &&
			echo "$pid"
	done >"$tmp/keepers"
}

# has WHAT TEXT ON...: what the program prints
has() {
	local what=$1 text=$2
	shift 2
	"$@" >"$tmp/output" 2>&1
	[ "$(cat "$tmp/output")" = "$text" ]
	verdict "$what$who" "it is not '$text'" "$tmp/output"
}

seen() {
	"${as[@]}" "$verbatim" run --view=mount -- "$@"
}

gid_is_shown() {
	seen cat $port/gids/{0,1,2,3,4,5,6,7} | grep -q "0a09:0007$"
}

# Each GID of the library's is that of the row in the tree.
gids_agree() {
	local index gid
	"$verbatim" run --view=none -- ibv_devinfo -v |
		sed -n 's/.*GID\[ *\([0-9]*\)\]:[\t ]*\([0-9a-f:.]*\).*/\1 \2/p' >"$tmp/gids"
	[ -s "$tmp/gids" ] || return 1
	while read -r index gid; do
		seen cat "$port/gids/$index" >"$tmp/shown" || return 1
		python3 - "$gid" "$(cat "$tmp/shown")" <<-'END' || return 1
			import ipaddress, sys
			a, b = (ipaddress.ip_address(gid) for gid in sys.argv[1:])
			a = ipaddress.ip_address(f"::ffff:{a}") if a.version == 4 else a
			sys.exit(a != b)
		END
	done <"$tmp/gids"
}

views() {
	has "the rate" "100 Gb/sec (4X EDR)" seen cat $port/rate
	has "the link layer" Ethernet seen cat $port/link_layer
	has "the type of a GID" "RoCE v2" seen cat $port/gid_attrs/types/0
	has "its interface" lo seen cat $port/gid_attrs/ndevs/0
	has "the type of an empty row cannot be read" \
		"cat: $port/gid_attrs/types/200: Invalid argument" \
		seen cat $port/gid_attrs/types/200
	has "the place on the bus" /sys/devices/pci7662:00/7662:00:06.0 \
		seen realpath $device/device
	has "the interface behind it" "$device/device" seen bash -c \
		"[ \$(realpath /sys/class/net/lo/device) = \$(realpath $device/device) ] &&
			echo $device/device"
	has "a device file" "character special file" seen stat -c %F /dev/infiniband/uverbs0
	has "the folder it works in" "$PWD" seen pwd
	has "its user" "$("${as[@]}" id -u)" seen id -u
	has "/dev/null is what it was" "$("${as[@]}" stat -c %t:%T /dev/null)" \
		seen stat -c %t:%T /dev/null
	ends 7 "its exit status$who" "${as[@]}" "$verbatim" run --view=mount -- sh -c 'exit 7' &&
		ok "its exit status$who"
}

# reaches SERVER CLIENT: each in such a view
reaches() {
	local bw=(ib_write_bw -d verbatim0 -x 0 -s 65536 -n 200) server rc
	port_number=$((port_number + 1))
	"${as[@]}" "$verbatim" run --view="$1" -- "${bw[@]}" -p $port_number >/dev/null 2>&1 &
	server=$!
	port_wait $port_number $server
	timeout "$limit_s" "${as[@]}" "$verbatim" run --view="$2" -- "${bw[@]}" -p $port_number \
		127.0.0.1 >"$tmp/output" 2>&1
	rc=$?
	wait $server && return $rc
}

port_number=19300
who='' as=()
views
gids_agree
verdict "GIDs are those of ibv_devinfo" "they are not" "$tmp/gids"
ip addr add 10.9.0.7/32 dev lo
await gid_is_shown
verdict "an address that comes is a GID" "it is not"
# Behind ::1, where nothing of lo's would come if the rows were those of before.
ip addr add fd00:9::7/128 dev lo nodad
await gids_agree
verdict "all rows are those of a program that starts now" "they are not" "$tmp/gids"
ls -d /sys/class/infiniband/verbatim0 >"$tmp/output" 2>&1
[ $? -ne 0 ] || [ -n "$(ls /sys/class/infiniband 2>/dev/null | grep -v verbatim)" ]
verdict "outside nothing is shown" "it is" "$tmp/output"
keepers_note

# keepers_kill: as what is short of memory does.
keepers_kill() {
	keepers_note
	# shellcheck disable=SC2046 # numbers
	kill -KILL $(cat "$tmp/keepers") && seen true
}

sleeper_sleeps() {
	[ "$(cat /proc/$sleeper/comm)" = sleep ]
}

"$verbatim" run --view=preload -- sleep 100 &
sleeper=$!
await sleeper_sleeps
# shellcheck disable=SC2016 # another shell's
root=$(seen sh -c 'echo $VERBATIM_VIEW_ROOT')
keepers_kill && [ -e "$root/sys/class/infiniband" ]
verdict "a keeper is killed: who sees its files goes on seeing them" "there is no $root"
kill $sleeper
wait $sleeper 2>/dev/null
keepers_kill && [ -n "$root" ] && [ ! -e "$root" ]
verdict "... and when nobody does, the next keeper removes them" "there is $root"
keepers_note

if command -v ucx_info >/dev/null; then
	seen ucx_info -d >"$tmp/output" 2>&1
	grep -q 'Transport: rc_verbs' "$tmp/output"
	verdict "UCX finds the device" "it does not" "$tmp/output"
else
	skip "UCX finds the device" "there is no ucx_info"
fi

# A network namespace has room for the hub of one user.
"$verbatim" hub stop --force >"$tmp/output" 2>&1
hub_is_gone() {
	[ -z "$(ss -Hlun 'sport = :4791')" ]
}
await hub_is_gone
who=' (ordinary user)' as=("${other[@]}")
if "${as[@]}" true 2>/dev/null && seen true 2>/dev/null; then
	views
	# Those of one user share a user namespace, so that they reach each other's memory.
	a=$(seen readlink /proc/self/ns/user) b=$(seen readlink /proc/self/ns/user)
	[ "$a" = "$b" ] && [ "$a" != "$(readlink /proc/self/ns/user)" ]
	verdict "programs share a user namespace" "they have $a and $b"
	"${as[@]}" "$verbatim" run --view=mount -- sleep 60 &
	sleeper=$!
	memory_is_open() {
		[ "$(cat /proc/$sleeper/comm)" = sleep ] &&
			seen sh -c ": </proc/$sleeper/mem" 2>"$tmp/output"
	}
	await memory_is_open
	verdict "... and reach each other's memory" "they do not" "$tmp/output"
	kill $sleeper
	if command -v ib_write_bw >/dev/null; then
		reaches mount mount
		verdict "two in views exchange data" "they do not" "$tmp/output"
		reaches none mount
		verdict "one in a view and one without exchange data" "they do not" "$tmp/output"
	else
		skip "programs reach each other's memory" "there is no ib_write_bw"
	fi
	keepers_note
else
	skip "an ordinary user's view" "this system lets such a user have no user namespace"
fi
suite_end
