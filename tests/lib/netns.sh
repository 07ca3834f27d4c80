# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Two hosts joined by a cable; source it after suite.sh.
#
#     host A: this suite's namespace              host B
#   +----------------------------+              +----------------------------+
#   | vb0   10.79.0.1/24         |     veth     | vb0   10.79.0.2/24         |
#   |       fd79::1/64           +--------------+       fd79::2/64           |
#   |       fe80::...            |   MTU given  |       fe80::...            |
#   +----------------------------+              +----------------------------+

a4=10.79.0.1 b4=10.79.0.2 a6=fd79::1 b6=fd79::2
on_b=()

# hosts_make MTU: B, and the cable. Returns 1 if the system refuses; there is no B then.
hosts_make() {
	host_new on_b
	if ! ip link add vb0 type veth peer name vb0 netns "${on_b[2]}"; then
		on_b=()
		return 1
	fi
	hosts_mtu "$1"
	host_up $a4/24 $a6/64
	host_up $b4/24 $b6/64 "${on_b[@]}"
}

# host_up IPV4 IPV6 [ON ...]: addresses without duplicate detection, which would hide them a while.
host_up() {
	local v4=$1 v6=$2
	shift 2
	"$@" sysctl -qw net.ipv6.conf.vb0.accept_dad=0 2>/dev/null
	"$@" ip addr add "$v4" dev vb0
	"$@" ip addr add "$v6" dev vb0 nodad
	"$@" ip link set vb0 up
}

hosts_mtu() {
	ip link set vb0 mtu "$1"
	"${on_b[@]}" ip link set vb0 mtu "$1"
}

# hosts_use FAMILY: from now on the server runs on A, the client on B, their GIDs being IPv4 or IPv6
# addresses (4, 6). Sets $gid, an index that means the same in both tables. Programs meet by TCP at
# $address, which is IPv4: that is where those that know no other listen.
hosts_use() {
	local a=a$1 b=b$1
	on_server=()
	on_client=("${on_b[@]}")
	address=$a4
	gid=$(gid_index "${!a}")
	[ -n "$gid" ] && [ "$gid" = "$(gid_index "${!b}" "${on_b[@]}")" ]
}

# hosts_each CMD ...: between the two, by IPv4 and by IPv6; $at is the server's address, $from the
# client's.
hosts_each() {
	local family
	for family in 4 6; do
		PREFIX="two hosts IPv$family"
		hosts_use $family
		at=a$family from=b$family
		at=${!at} from=${!from}
		"$@"
	done
	on_client=()
}

# host_address [ON ...]: A's addresses on another host, where their interface leads nowhere.
host_address() {
	"$@" ip link add vb0 type veth peer name vb1 || return
	"$@" ip link set vb1 up
	host_up $a4/24 $a6/64 "$@"
}
