#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# VERBATIM_ORDER (docs/order.md): small programs that rely on an order which nobody promised fail
# with one of 100 seeds, and their correct twins with none; other people's programs pass. VB_SEEDS
# says with how many seeds that is tried.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/mpi.sh"
. "$(dirname "$0")/../lib/perftest.sh"
. "$(dirname "$0")/../lib/pyverbs.sh"

: "${VB_SEEDS:=2}"
export UCX_NET_DEVICES=verbatim0:1 UCX_WARN_UNUSED_ENV_VARS=n OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx
programs=$VB_BUILD/tests/verbs/verbs_order_programs

# by_luck NAME [,iba]: the program of this name fails with a seed.
by_luck() {
	local seed
	for ((seed = 1; seed <= 100; seed++)); do
		VERBATIM_ORDER=$seed${2:-} VT_TEST=$1 timeout -k 5 "$limit_s" "$programs" \
			>"$tmp/program" 2>&1 && continue
		grep -q "ERROR.*$1" "$tmp/program"
		verdict "$1${2:-}: fails" "it ends otherwise" "$tmp/program"
		return
	done
	fail "$1${2:-}: fails" "not with any of 100 seeds"
}

# right NAMES [,iba]: the programs of these names fail with no seed.
right() {
	local seed
	for ((seed = 1; seed <= VB_SEEDS; seed++)); do
		VERBATIM_ORDER=$seed${2:-} VT_TEST=$1 timeout -k 5 "$limit_s" "$programs" \
			>"$tmp/program" 2>&1 && continue
		fail "$1${2:-}: passes" "not with seed $seed" "$tmp/program"
		return
	done
	ok "$1${2:-}: passes with $VB_SEEDS seeds"
}

perftests() {
	perf_plain ib_send_lat -n 100
	perf_plain ib_send_bw -n 500 -q 3
	perf_plain ib_send_bw -c UD -s 1024 -n 200
	perf_plain ib_send_bw -n 200 --use-srq -q 4
	perf_plain ib_send_lat -n 50 -e
	perf_plain ib_write_lat -n 200 -s 4000
	perf_plain ib_write_bw -n 300 -s 100000 -q 2
	perf_plain ib_read_bw -n 200 -s 30000
	perf_plain ib_atomic_bw -n 200
}

ucx_twins() {
	expect='^Final: +[0-9]' twins "$UCX_TLS $1 $2" \
		ucx_perftest -p PORT -t "$1" -s "$2" -n "$3" -w 5
}

ucx() {
	local UCX_TLS
	export UCX_TLS
	for UCX_TLS in rc_v ud_v; do
		ucx_twins tag_lat 8 50
		ucx_twins tag_bw 5000 50
		ucx_twins stream_bw 5000 50
		ucx_twins ucp_am_bw 40000 20
		ucx_twins ucp_put_bw 100000 20
		ucx_twins ucp_get 5000 20
		ucx_twins ucp_fadd 8 20
	done
}

mpi() {
	local tls
	for tls in rc_v ud_v; do
		UCX_TLS=$tls,self mpi_run "MPI by $tls" 2 200000
	done
}

pyverbs() {
	local name lacking='Converting timestamp|no huge pages'
	# The segment of Ethernet is shared memory.
	[ "$VERBATIM_LINK" != udp ] || lacking+='|Raw Packet QP'
	for name in qp qpex cq cqex cq_events srq atomic relaxed_ordering; do
		pyverbs_module "" $name "$lacking"
	done
}

for link in shm udp; do
	link_use $link
	for name in $(sed -n 's/^vt[a-z_]*test(\(luck_[a-z_]*\).*/\1/p' \
			"$VB_ROOT/tests/verbs/order_programs.c"); do
		by_luck "$name"
	done
	by_luck adapter_the_flag_is_behind_the_data ,iba
	by_luck adapter_a_second_write_has_the_flag ,iba
	right 'adapter_*'
	right 'right_*'
	right 'right_*' ,iba
done

pyverbs_unpack || skip "pyverbs" "no $shipped"
# Each seed at both ends, every other one by the other link.
gid=$(gid_index 127.0.0.1)
for ((seed = 1; seed <= VB_SEEDS; seed++)); do
	export VERBATIM_ORDER=$seed
	link_use "$([ $((seed % 2)) = 0 ] && echo udp || echo shm)"
	over=" (seed $seed, $VERBATIM_LINK)"
	perftests
	[ -d "$tmp/tests" ] && pyverbs
	if [ "$VB_SANITIZE" = thread ] || ! command -v ucx_perftest >/dev/null; then
		skip "UCX" "there is none, or it crashes under ThreadSanitizer"
		continue
	fi
	plain=("${run[@]}")
	run+=("$VB_BUILD/verbatim" run --dev --)
	run_server=("${run[@]}") run_client=("${run[@]}")
	ucx
	command -v mpirun.openmpi >/dev/null && mpi
	run=("${plain[@]}") run_server=("${plain[@]}") run_client=("${plain[@]}")
done
suite_end
