#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# UCX, which looks for a device file: its own tests by its RC and UD, on one host by both links, and
# between two; and MPI programs by Open MPI's and MPICH's ways over UCX, which check all data.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/mpi.sh"

for program in ucx_perftest mpirun.openmpi; do
	command -v $program >/dev/null && continue
	skip_all "no $program"
done
if [ "$VB_SANITIZE" = thread ]; then
	skip_all "UCX crashes under ThreadSanitizer, with any library"
fi
run+=("$VB_BUILD/verbatim" run --dev --)
run_server=("${run[@]}") run_client=("${run[@]}")
export UCX_NET_DEVICES=verbatim0:1 UCX_WARN_UNUSED_ENV_VARS=n

# ucx_pair TEST SIZE COUNT: by whatever UCX_TLS says.
ucx_pair() {
	expect='^Final: +[0-9]' twins "${PREFIX:+$PREFIX }$UCX_TLS $1 $2" \
		ucx_perftest -p PORT -t "$1" -s "$2" -n "$3" -w 10
}

# uct_pair TRANSPORT TEST SIZE COUNT: one layer below, where nothing makes up for what is not there.
uct_pair() {
	expect='^Final: +[0-9]' twins "${PREFIX:+$PREFIX }$1 $2 $3" \
		ucx_perftest -p PORT -d verbatim0:1 -x "$1" -t "$2" -s "$3" -n "$4" -w 10
}

ucx_pairs() {
	local operation
	export UCX_TLS
	for UCX_TLS in rc_v ud_v; do
		ucx_pair tag_lat 8 100
		ucx_pair tag_bw 5000 100
		ucx_pair tag_bw 1000000 10
		ucx_pair stream_bw 5000 100
		ucx_pair ucp_am_bw 40000 50
		ucx_pair ucp_put_bw 100000 50
		ucx_pair ucp_get 5000 50
		ucx_pair ucp_fadd 8 50
	done
	for operation in add_mr fadd cswap; do
		uct_pair rc_verbs $operation 8 50
	done
}

export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx

# mpi PROCESSES OCTETS [MPIRUN ...]: by RC and by UD.
mpi() {
	local tls
	for tls in rc_v ud_v; do
		UCX_TLS=$tls,self mpi_run "${PREFIX:+$PREFIX }MPI, $1 processes by $tls" "$@"
	done
}

mpich() {
	local tls
	for tls in rc_v ud_v; do
		UCX_TLS=$tls,self mpich_run "MPICH, $1 processes by $tls" "$@"
	done
}

# What writes to hardware's queues itself is not offered, whatever the device calls itself.
for persona in "" connectx7; do
	VERBATIM_PERSONA=$persona "${run[@]}" ucx_info -d >"$tmp/info" 2>&1
	found=$(sed -n '/^# Memory domain: verbatim0/,/^# Memory domain: [^v]/p' "$tmp/info" |
		awk '/Transport:/ { print $3 }' | sort | xargs)
	[ "$found" = "rc_verbs ud_verbs" ]
	verdict "ucx_info finds the device${persona:+ as a $persona}" \
			"it has '$found'" "$tmp/info"
done

ucx_pairs
mpi 2 2000000
mpi 5 200000
mpich 3 200000
link_use udp
ucx_pairs
mpi 2 2000000
mpi 5 200000
mpich 3 200000
unset VERBATIM_LINK
over=
PREFIX="bad network,"
VERBATIM_FAULT="loss=1%,dup=1%,reorder=3%,corrupt=0.5%,seed=7" mpi 3 200000
PREFIX=

if hosts_make 1500; then
	PREFIX="two hosts, IPv4"
	hosts_use 4
	ucx_pairs
	mpi_hosts
	mpi 4 500000 -H $a4:2,$b4:2
	PREFIX="two hosts, IPv6"
	hosts_use 6
	export UCX_IB_GID_INDEX=$gid
	mpi 2 500000 -H $a4:1,$b4:1
else
	skip "two hosts" "this system lets us make no veth"
fi
suite_end
