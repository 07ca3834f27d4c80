#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs for EFA on a device that calls itself one: ibverbs-utils by UD, perftest by SRD, tests of
# pyverbs, libfabric's provider efa, and MPI programs over it, which check all data; by both links,
# as an ordinary user in both views, and between two hosts.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/perftest.sh"
. "$(dirname "$0")/../lib/pyverbs.sh"
. "$(dirname "$0")/../lib/mpi.sh"

export VERBATIM_PERSONA=efa
gid=0
lacking='dmabuf'

# Between processes of a host libfabric would use shared memory of its own.
export FI_EFA_ENABLE_SHM_TRANSFER=0

# Programs of perftest that read by SRD do so on parts that they know.
sed 's/^part_id.*/part_id = 0xefa1/' "$VB_ROOT/src/topology/personas/efa.persona" \
	>"$tmp/efa1.persona"

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
	# shellcheck disable=SC2068 # words
	for type in ${@:-rdm dgram}; do
		pair "${PREFIX:+$PREFIX }fi_pingpong -e $type" \
			fi_pingpong -B PORT -p efa -e $type -c -- \
			fi_pingpong -P PORT -p efa -e $type -c "$address"
	done
}

# Without what osc=pt2pt asks for, windows are refused: it knows no threads.
export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include=efa
export OMPI_MCA_osc=pt2pt MPI4PY_RC_THREADS=0

# mpi PROCESSES OCTETS [MPIRUN ...]
mpi() {
	if command -v mpirun.openmpi >/dev/null; then
		mpi_run "${PREFIX:+$PREFIX }MPI, $1 processes" "$@"
	else
		skip "MPI" "no mpirun.openmpi"
	fi
}

cable_is_up() {
	"$@" ip -br link show vb0 | grep -qw UP
}

pyverbs_unpack efa || skip "pyverbs" "no $shipped"

srd
[ ! -d "$tmp/tests" ] || tests ""
check "fi_info" "${run[@]}" fi_info -p efa
fabric
mpi 2 2000000
mpi 4 200000

link_use udp
srd
[ ! -d "$tmp/tests" ] || tests "udp "
fabric
mpi 3 200000
unset VERBATIM_LINK
over=

if user_become; then
	PREFIX="user"
	perf_plain ib_send_lat -c SRD -n 500
	twins "user ud_pingpong" ibv_ud_pingpong -p PORT -g 0 -n 200 -s 1000
	# A sanitizer's runtime does not go with a preloaded view.
	# shellcheck disable=SC2046 # words
	for view in $([ -n "$VB_SANITIZE" ] || echo mount preload); do
		PREFIX="user, $view"
		run=("$VB_BUILD/verbatim" run "--view=$view" --)
		run_server=("${run[@]}") run_client=("${run[@]}")
		fabric
		mpi 3 200000
	done
	# shellcheck disable=SC2206 # VB_RUN is a command line
	run=($VB_RUN)
	run_server=("${run[@]}") run_client=("${run[@]}")
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
	fabric rdm
	mpi_hosts
	mpi 4 200000 -H $a4:2,$b4:2
	export VERBATIM_FAULT="loss=1%,dup=1%,reorder=5%,seed=7"
	PREFIX="two hosts, faulty"
	perf_plain ib_send_bw -c SRD -n 500 -s 8928
	fabric rdm
	mpi 4 200000 -H $a4:2,$b4:2
else
	skip "two hosts" "this system lets us make no veth"
fi
suite_end
