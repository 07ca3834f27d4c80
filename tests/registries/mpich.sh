#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# MPICH, as its wheel has it: MPI programs that check all data, by UCX's RC, UD and SRD and by
# libfabric's provider efa; as an ordinary user in both views.
. "$(dirname "$0")/../lib/registries.sh"
wheels mpich==5.0.2 mpi4py==4.1.2
. "$(dirname "$0")/../lib/suite.sh"

[ -z "$VB_SANITIZE" ] || skip_all "a sanitizer's runtime does not go with Python's wheels"
# Processes of one host are to go by the device as well.
export HYDRA_LAUNCHER=fork MPIR_CVAR_NOLOCAL=1 FI_EFA_ENABLE_SHM_TRANSFER=0
export MPIR_CVAR_CH4_NETMOD UCX_WARN_UNUSED_ENV_VARS=n

# mpi NAME PROCESSES [PART ...]
mpi() {
	local name="$PREFIX$1, $2 processes" processes=$2
	shift 2
	timeout -k 5 "$limit_s" "${on_server[@]}" "${python%/*}/mpiexec" -n "$processes" \
		"${run[@]}" "$python" "$VB_ROOT/tests/lib/mpi.py" 200000 "$@" \
		</dev/null >"$tmp/mpi" 2>&1 && grep -q "^mpi: $processes processes" "$tmp/mpi"
	verdict "$name" "it does not say that all is right" "$tmp/mpi"
}

# Over UCX, this MPICH waits for ever for messages of a process to itself that anybody may have
# sent, by any transport; and by UD, at times, for a process that has ended.
ucx_parts=(ring all_to_all sums windows)

# everything PROCESSES
everything() {
	MPIR_CVAR_CH4_NETMOD=ucx
	UCX_TLS=rc_v,self mpi "UCX's RC" "$1" "${ucx_parts[@]}" counting
	UCX_TLS=ud_v,self mpi "UCX's UD" 2 "${ucx_parts[@]}"
	export VERBATIM_PERSONA=efa
	UCX_TLS=srd,self mpi "UCX's SRD" "$1" "${ucx_parts[@]}" counting
	if [ -s "$tmp/topology.xml" ]; then
		MPIR_CVAR_CH4_NETMOD=ofi FI_PROVIDER=efa HWLOC_THISSYSTEM=1 \
			HWLOC_XMLFILE=$tmp/topology.xml mpi "libfabric's efa" "$1"
	else
		skip "${PREFIX}libfabric's efa" "no lstopo-no-graphics"
	fi
	unset VERBATIM_PERSONA
}

# It ends if it does not find libfabric's device on the bus, where its own hwloc does not look.
VERBATIM_PERSONA=efa "${run[@]}" lstopo-no-graphics --whole-io --of xml \
	>"$tmp/topology.xml" 2>/dev/null

by_each everything
suite_end
