#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# UCX and MPI programs as an ordinary user, in the view by mount and in that by preload: UCX's own
# list has the rate and the NUMA node that a table of devices says, and Open MPI and MPICH exchange
# data over UCX's RC and UD, all of which is checked.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/mpi.sh"

for program in ucx_info mpirun.openmpi; do
	command -v $program >/dev/null || skip_all "no $program"
done
[ -z "$VB_SANITIZE" ] || skip_all "a sanitizer's runtime does not go with a preloaded view"
user_become || skip_all "nobody cannot read $VB_BUILD"
export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx UCX_WARN_UNUSED_ENV_VARS=n HOME=/nonexistent

# device NAME RATE NODE PCI ADDRESS
device() {
	printf '[device %s]\nrate = %s\nnuma = %s\npci = %s\naddresses = %s\n' "$@"
}

# ucx_has NAME DEVICE MB LATENCY: what UCX says of its RC there.
ucx_has() {
	local found
	found=$(awk -v device="$2:1" '
		/Transport:/ { rc = $3 == "rc_verbs" }
		/ Device:/ { here = rc && $3 == device }
		here && /System device:/ { place = $4 }
		here && /bandwidth:/ { split($3, rate, "/") }
		here && /latency:/ { print place, rate[1], $3; exit }' "$tmp/info")
	[ "$found" = "$2 $3 $4" ]
	verdict "$PREFIX $1" "it has '$found', not '$2 $3 $4'" "$tmp/info"
}

# MB/s are a rate less its headers. UCX adds 200 ns to the latency of a device if none of the
# processors near it is ours; near node 1023 there is none.
devices() {
	{
		device rail0 25Gbit 0 0000:17:00.0 127.0.0.1
		device rail1 200Gbit 1023 0000:18:00.0 ::1
	} >"$tmp/table"
	VERBATIM_DEVICES=$tmp/table "${on_server[@]}" "${run[@]}" ucx_info -d >"$tmp/info" 2>&1
	ucx_has "ucx_info: 25 Gbit/s, on our node" rail0 2916.16 800
	ucx_has "ucx_info: 200 Gbit/s, on another node" rail1 23329.25 1000
	device rail0 25Gbit 1023 0000:17:00.0 127.0.0.1 >"$tmp/table"
	VERBATIM_DEVICES=$tmp/table "${on_server[@]}" "${run[@]}" ucx_info -d >"$tmp/info" 2>&1
	ucx_has "ucx_info: a table that has changed" rail0 2916.16 1000
	(cd "$tmp" && VERBATIM_DEVICES=./table "${on_server[@]}" "${run[@]}" ucx_info -d) \
		>"$tmp/info" 2>&1
	ucx_has "ucx_info: a table named from where we are" rail0 2916.16 1000
}

mpi() {
	local tls
	for tls in rc_v ud_v; do
		export UCX_TLS=$tls,self
		mpi_run "$PREFIX Open MPI by $tls, 2 processes" 2 500000
		mpich_run "$PREFIX MPICH by $tls, 3 processes" 3 200000
	done
	unset UCX_TLS
}

for view in mount preload; do
	PREFIX="$view:"
	run=("$VB_BUILD/verbatim" run "--view=$view" --)
	"${on_server[@]}" "${run[@]}" true >"$tmp/output" 2>&1 || {
		skip "$PREFIX all" "$(cat "$tmp/output")"
		continue
	}
	devices
	mpi
done
suite_end
