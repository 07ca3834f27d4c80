# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Hosts with several interfaces each, called rails; source it after suite.sh.
#
#     host A: r0 10.80.0.1 ---- r0 10.80.0.2 host B, and so on for others
#
#   rails_make COUNT         B, and a cable for each rail; they reach each other by nothing else
#   rails_switch COUNT       B, and a switch that all are plugged into: each rail of A reaches
#                            each of B, and what is down at one end is up at the other
#   rail_plugged_up RAIL [ON ...]   that of the host that ON leads to, on a switch, was down
#   sent_all                 notes what B has sent by each
#   has_sent RAIL OCTETS     B has sent as much by it since then

rails=0

rails_make() {
	local i
	host_new on_b
	rails=$1
	for ((i = 0; i < rails; i++)); do
		ip link add r$i type veth peer name r$i netns "${on_b[2]}" || return
		rail_up $i 1
		rail_up $i 2 "${on_b[@]}"
	done
}

# rail_up RAIL HOST [ON ...]
rail_up() {
	local i=$1 host=$2
	shift 2
	"$@" sysctl -qw net.ipv6.conf.r$i.accept_dad=0
	"$@" ip addr add 10.80.$i.$host/24 dev r$i
	"$@" ip addr add fd80:$i::$host/64 dev r$i nodad
	"$@" ip link set r$i up
}

rails_switch() {
	local i
	local -a on_switch
	host_new on_b
	host_new on_switch
	rails=$1
	"${on_switch[@]}" ip link add switch type bridge || return
	"${on_switch[@]}" ip link set switch up
	for ((i = 0; i < rails; i++)); do
		rail_plug $i 1 a "${on_switch[2]}" || return
		rail_plug $i 2 b "${on_switch[2]}" "${on_b[@]}"
	done
}

# rail_plug RAIL HOST PORT SWITCH [ON ...]: what has its IPv4 address leaves by this rail, to
# whichever of the peer's, and only this one says that it has that address.
rail_plug() {
	local i=$1 host=$2 port=$3$1
	local -a on_switch=(nsenter --target "$4" --net --)
	shift 4
	"$@" ip link add r$i type veth peer name $port netns "${on_switch[2]}" || return
	"${on_switch[@]}" ip link set $port master switch up
	"$@" sysctl -qw net.ipv4.conf.r$i.arp_ignore=1 net.ipv4.conf.r$i.arp_announce=2 \
		net.ipv6.conf.r$i.disable_ipv6=1
	"$@" ip addr add 10.80.$i.$host/24 dev r$i
	"$@" ip rule add from 10.80.$i.$host table 10$i
	rail_plugged_up $i "$@"
}

# rail_plugged_up RAIL [ON ...]: the kernel forgets the way when it goes down.
rail_plugged_up() {
	local i=$1
	shift
	"$@" ip link set r$i up
	"$@" ip route add 10.80.0.0/16 dev r$i table 10$i
}

# sent RAIL: octets that B has sent by it.
sent() {
	"${on_b[@]}" ip -s -j link show "r$1" | grep -o '"tx":{"bytes":[0-9]*' | grep -o '[0-9]*$'
}

sent_all() {
	local i
	before=()
	for ((i = 0; i < rails; i++)); do
		before[i]=$(sent $i)
	done
}

# has_sent RAIL OCTETS: since sent_all.
has_sent() {
	[ $(($(sent "$1") - before[$1])) -ge "$2" ]
}
