#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs for EFA on a device that calls itself one: ibverbs-utils by UD, perftest by SRD, tests of
# pyverbs, and libfabric's provider efa; by both links, as an ordinary user, and between two hosts.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/perftest.sh"
. "$(dirname "$0")/../lib/pyverbs.sh"

export VERBATIM_PERSONA=efa
gid=0
lacking='dmabuf'

# Between processes of a host libfabric would use shared memory of its own.
export FI_EFA_ENABLE_SHM_TRANSFER=0

# Programs of perftest that read by SRD do so on parts that they know.
sed 's/^part_id.*/part_id = 0xefa1/' "$VB_ROOT/src/topology/personas/efa.persona" \
	>"$tmp/efa1.persona"

# What libfabric looks for in /sys, and gives up without.
view_make() {
	local pci=$tmp/sys/devices/pci0000:00/0000:00:06.0
	mkdir -p "$pci/infiniband/verbatim0" "$tmp/sys/bus/pci/drivers/efa" \
		"$tmp/sys/class/infiniband" "$tmp/sys/class/infiniband_verbs"
	ln -s ../../../bus/pci/drivers/efa "$pci/driver"
	ln -s ../../../0000:00:06.0 "$pci/infiniband/verbatim0/device"
	ln -s ../../devices/pci0000:00/0000:00:06.0/infiniband/verbatim0 \
		"$tmp/sys/class/infiniband/verbatim0"
	echo 6 >"$tmp/sys/class/infiniband_verbs/abi_version"
}
in_view=(unshare --mount bash -c 'mount --bind "$0" /sys && exec "$@"' "$tmp/sys")

srd() {
	perf_plain ib_send_lat -c SRD -n 500
	perf_plain ib_send_bw -c SRD -n 500 -s 4096
	perf_plain ib_send_bw -c SRD -n 500 -s 8928
	perf_plain ib_send_bw -c SRD -n 200 -b -q 2
	VERBATIM_PERSONA=$tmp/efa1.persona perf_plain ib_read_bw -c SRD -n 100
	VERBATIM_PERSONA=$tmp/efa1.persona perf_plain ib_read_lat -c SRD -n 100
	twins "${PREFIX:+$PREFIX }ud_pingpong" ibv_ud_pingpong -p PORT -g 0 -n 200 -s 1000
}

tests() {
	pyverbs_module "${PREFIX:+$PREFIX }$1" efadv "$lacking"
	pyverbs_module "${PREFIX:+$PREFIX }$1" efa_srd "$lacking"
}

fabric() {
	local type
	local -a run_server=("${in_view[@]}" "${run_server[@]}")
	local -a run_client=("${in_view[@]}" "${run_client[@]}")
	# shellcheck disable=SC2068 # words
	for type in ${@:-rdm dgram}; do
		pair "${PREFIX:+$PREFIX }fi_pingpong -e $type" \
			fi_pingpong -B PORT -p efa -e $type -c -- \
			fi_pingpong -P PORT -p efa -e $type -c "$address"
	done
}

cable_is_up() {
	"$@" ip -br link show vb0 | grep -qw UP
}

view_make
views=$("${in_view[@]}" true 2>&1 && echo yes)
pyverbs_unpack efa || skip "pyverbs" "no $shipped"

srd
[ ! -d "$tmp/tests" ] || tests ""
if [ "$views" = yes ]; then
	check "fi_info" "${in_view[@]}" "${run[@]}" fi_info -p efa
	fabric
else
	skip "libfabric" "this system lets us mount nothing"
fi

link_use udp
srd
[ ! -d "$tmp/tests" ] || tests "udp "
[ "$views" != yes ] || fabric
unset VERBATIM_LINK
over=

if user_become; then
	PREFIX="user"
	perf_plain ib_send_lat -c SRD -n 500
	twins "user ud_pingpong" ibv_ud_pingpong -p PORT -g 0 -n 200 -s 1000
	on_server=() on_client=()
else
	skip "as an ordinary user" "nobody cannot read $VB_BUILD"
fi

if hosts_make 1500; then
	# A port that has no address but this one is down as long as its cable is.
	await cable_is_up && await cable_is_up "${on_b[@]}"
	hosts_use 4 || fail "two hosts" "the hosts' GID tables differ"
	PREFIX="two hosts"
	srd
	[ "$views" != yes ] || fabric rdm
	export VERBATIM_FAULT="loss=1%,dup=1%,reorder=5%,seed=7"
	PREFIX="two hosts, faulty"
	perf_plain ib_send_bw -c SRD -n 500 -s 8928
	[ "$views" != yes ] || fabric rdm
else
	skip "two hosts" "this system lets us make no veth"
fi
suite_end
