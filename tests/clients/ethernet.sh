#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# RAW_PACKET queue pairs: perftest's raw_ethernet_* between two processes; the TCP of two hosts
# through examples/forward, by way of a TAP device; two segments joined by a cable; the death of who
# has the uplink. TAP without root: tap.sh.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/ethernet.sh"

# --- perftest ---

PREFIX="one host"
for size in 64 512 1500 4096; do
	raw_twins raw_ethernet_bw -s $size -m 4200 -n 1000 -r 2000
	raw_twins raw_ethernet_lat -s $size -m 4200 -n 500
done
raw_twins raw_ethernet_bw -s 1024 -n 1000 -r 2000 -b
raw_twins raw_ethernet_bw -s 256 -n 2000 -r 4000 -I 256
raw_twins raw_ethernet_bw -s 64 -n 2000 -r 4000 -l 16
raw_twins raw_ethernet_bw -s 64 -n 1000 -r 2000 --promiscuous
raw_twins raw_ethernet_bw -s 64 -n 1000 -r 2000 --sniffer
raw_twins raw_ethernet_lat -s 128 -n 500 --vlan_en --vlan_pcp 3
# By itself this release wants a limiter for it that it then refuses; and counts no other way.
raw_twins raw_ethernet_burst_lat -s 64 -n 128 -r 1024 -Q 1 --burst_size 16 \
	--rate_limit_type PP --rate_units M --rate_limit 1000
raw_ip=(-J 10.79.0.1 -j 10.79.0.2)
raw_twins raw_ethernet_bw -s 200 -n 1000 -r 2000
raw_twins raw_ethernet_lat -s 200 -n 500
raw_ip+=(-K 4001 -k 4002)
raw_twins raw_ethernet_bw -s 200 -n 1000 -r 2000
raw_twins raw_ethernet_bw -s 200 -n 1000 -r 2000 --tcp
raw_twins raw_ethernet_bw -s 200 -n 1000 -r 2000 --flows 4
raw_twins raw_ethernet_lat -s 200 -n 500 --tcp
raw_ip=()
check "$PREFIX raw_ethernet_fs_rate" "${run[@]}" raw_ethernet_fs_rate -F -d verbatim0 -n 500 \
	--server -E $mac_b -B $mac_a

# --- a network of hosts around it ---

if ! ip tuntap add vt0 mode tap 2>/dev/null; then
	skip "TAP" "this system lets us make no TAP device"
	suite_end
fi
stations_make
ip link set vt0 master br0 up
forward_start tap:vt0
if [ -z "$forward" ]; then
	fail "forward" "it does not start" "$tmp/forward"
	suite_end
fi
check "ping through forward" "${on_s1[@]}" "${ping[@]}" -c 5 -W 5 -s 56 $ip2
check "ping through forward, frames of full length" \
	"${on_s1[@]}" "${ping[@]}" -c 3 -W 5 -s 1472 $ip2
capture_start vt0
tcp_through "TCP through forward" 20M
capture_end "TCP through forward, as tshark sees it" ip
forward_end "what forward counts"

# Whoever has the uplink is killed, and another process takes over.
forward_start tap:vt0
first=$forward
forward_start tap:vt0
kill -KILL "$first"
wait "$first" 2>/dev/null
ping_until "ping after the death of who had the uplink"
forward_end "what the second forward counts"
ip link del vt0

# By a packet socket: here the kernel leaves checksums, and the cutting of TCP, to the adapter.
ip link add vu0 type veth peer name vu1
ip link set vu1 master br0 up
ip link set vu0 up
forward_start vu0
check "ping through forward and a packet socket" "${on_s1[@]}" "${ping[@]}" -c 5 -W 5 $ip2
capture_start vs0 "${on_s2[@]}"
tcp_through "TCP through forward and a packet socket" 20M
capture_end "TCP through forward and a packet socket, as tshark sees it" "ip.src == $ip1"
forward_end "what forward counts at a packet socket"
ip link del vu0

# --- two hosts, each with a hub of its own, and a cable between them ---

PREFIX="two hosts"
if hosts_make 1500; then
	export VERBATIM_ETH=vb0
	on_client=("${on_b[@]}")
	raw_twins raw_ethernet_lat -s 64 -n 200
	raw_twins raw_ethernet_lat -s 1500 -n 200
	raw_twins raw_ethernet_bw -s 1000 -n 200 -r 1000
	on_client=()
	unset VERBATIM_ETH
else
	skip "$PREFIX" "this system lets us make no veth"
fi
suite_end
