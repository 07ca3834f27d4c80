#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# An MPI program by Open MPI's way over libfabric, whose provider "verbs" connects by rdma_cm: with
# its RC and its XRC queue pairs. It checks all data. (Of Open MPI's other ways, Debian's openib
# knows no rdma_cm, and UCX is given addresses, not asked to connect.)
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/cm.sh"
. "$(dirname "$0")/../lib/mpi.sh"

if ! command -v mpirun.openmpi >/dev/null; then
	skip_all "no mpirun.openmpi"
fi
hosts_make 1500 || skip_all "this system lets us make no veth"
export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include="verbs;ofi_rxm"
export FI_VERBS_XRCD_FILENAME=$tmp/xrcd
export OMPI_MCA_osc=pt2pt MPI4PY_RC_THREADS=0	# no threads: its windows by messages want none

# mpi PROCESSES OCTETS [MPIRUN ...]
mpi() {
	mpi_run "$PREFIX: MPI, $1 processes${FI_VERBS_PREFER_XRC:+, by XRC}" "$@"
}

PREFIX="one host"
mpi 2 2000000
mpi 5 200000
link_use udp
mpi 3 200000
unset VERBATIM_LINK
over=
PREFIX="bad network"
VERBATIM_FAULT=$cm_bad mpi 3 200000
PREFIX="two hosts"
hosts_use 4
mpi_hosts
mpi 4 500000 -H $a4:2,$b4:2
# One a host: the processes of a host take libfabric's domains by turns (unbound ones by their
# pids), and only one has XRC.
OMPI_MCA_hwloc_base_binding_policy=numa FI_VERBS_PREFER_XRC=1 FI_OFI_RXM_USE_SRX=1 \
	mpi 2 500000 -H $a4:1,$b4:1
suite_end
