# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# MPI programs; source it after suite.sh. The suite says by OMPI_MCA_pml and the like which way
# those of Open MPI take.

# They are to have no other, not to mind root or few processors, and to leave nothing behind.
export OMPI_MCA_btl=self OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_orte_tmpdir_base=$tmp/sessions
mkdir -m 1777 "$OMPI_MCA_orte_tmpdir_base"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# mpi_run NAME PROCESSES OCTETS [MPIRUN ...]: the program checks all data. It runs where servers do.
mpi_run() {
	local name=$1 processes=$2 octets=$3 rc
	timeout -k 5 "$limit_s" "${on_server[@]}" mpirun.openmpi -np "$processes" "${@:4}" \
		"${run[@]}" "$VB_ROOT/tests/lib/mpi.py" "$octets" </dev/null >"$tmp/mpi" 2>&1
	rc=$?
	if [ $rc != 0 ]; then
		fail "$name" "$(status_say $rc)" "$tmp/mpi"
	elif ! grep -q "^mpi: $processes processes" "$tmp/mpi"; then
		fail "$name" "it does not say that all is right" "$tmp/mpi"
	else
		ok "$name"
	fi
}

# mpich_run NAME PROCESSES OCTETS: the same of MPICH's, whose library Debian has over UCX alone;
# those of one host are to go by it as well.
mpich_run() {
	if ! command -v mpiexec.mpich >/dev/null; then
		skip "$1" "no mpiexec.mpich"
		return
	fi
	MPIR_CVAR_NOLOCAL=1 timeout -k 5 "$limit_s" "${on_server[@]}" mpiexec.mpich -n "$2" \
		"${run[@]}" "$VB_ROOT/tests/lib/mpich.py" "$3" </dev/null >"$tmp/mpi" 2>&1 &&
		grep -q "^mpich: $2 processes" "$tmp/mpi"
	verdict "$1" "it does not say that all is right" "$tmp/mpi"
}

# mpi_hosts: mpirun starts its own helper on B by what would be ssh: AGENT HOST COMMAND. B has a
# name of its own, since those of one name are of one host to Open MPI.
mpi_hosts() {
	cat >"$tmp/agent" <<-END
		#!/bin/sh
		shift
		exec ${on_b[*]} unshare --uts sh -c "hostname b; \$*"
	END
	chmod +x "$tmp/agent"
	export OMPI_MCA_plm_rsh_agent=$tmp/agent
}
