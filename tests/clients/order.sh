#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# VERBATIM_ORDER (docs/order.md): small programs that rely on an order which nobody promised fail
# with one of 100 seeds, and their correct twins with none; other people's programs pass. That is
# tried with two seeds; with VB_PART, VB_LINK and VB_SEED only what a part does, by one link with
# one seed (long/order.sh has a hundred of each).
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/mpi.sh"
. "$(dirname "$0")/../lib/perftest.sh"
. "$(dirname "$0")/../lib/pyverbs.sh"

# Each exchange sleeps many times, and where the machine is busy each sleep is long.
limit_s=$((5 * limit_s))
parts="right perftest ucx mpi pyverbs"
: "${VB_PART:=}" "${VB_LINK:=}" "${VB_SEED:=}"
export UCX_NET_DEVICES=verbatim0:1 UCX_WARN_UNUSED_ENV_VARS=n OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx

# program FOLDER NAMES: runs the programs of these names, of FOLDER/order_programs.c.
program() {
	VT_TEST=$2 CT_TEST=$2 timeout -k 5 "$limit_s" \
		"$VB_BUILD/tests/$1/${1}_order_programs" >"$tmp/program" 2>&1
}

# by_luck FOLDER NAME [,iba]: the program of this name fails with a seed.
by_luck() {
	local seed
	for ((seed = 1; seed <= 100; seed++)); do
		VERBATIM_ORDER=$seed${3:-} program "$1" "$2" && continue
		grep -Eq "(ERROR|FAILED).*$2" "$tmp/program"
		verdict "$2${3:-}: fails" "it ends otherwise" "$tmp/program"
		return
	done
	fail "$2${3:-}: fails" "not with any of 100 seeds"
}

# passes FOLDER NAMES [,iba]: the programs of these names do, with this seed.
passes() {
	VERBATIM_ORDER=$VERBATIM_ORDER${3:-} program "$1" "$2"
	verdict "$1, $2${3:-}: passes" "it fails" "$tmp/program"
}

# Each part is what is done with one seed, which both ends have, by one link.
part_right() {
	passes verbs 'adapter_*'
	passes verbs 'right_*'
	passes verbs 'right_*' ,iba
	passes rdmacm 'right_*'
}

part_perftest() {
	local what
	for what in send write read atomic; do
		perf_plain ib_${what}_bw -n 200
		perf_plain ib_${what}_lat -n 40
		perf_plain ib_${what}_bw -c XRC -n 100
		perf_plain ib_${what}_lat -c XRC -n 30
		PREFIX=connectx7 VERBATIM_PERSONA=connectx7 perf_plain ib_${what}_bw -c DC -n 100
		PREFIX=connectx7 VERBATIM_PERSONA=connectx7 perf_plain ib_${what}_lat -c DC -n 30
	done
	for what in send write; do
		perf_plain ib_${what}_bw -c UC -n 100
		perf_plain ib_${what}_lat -c UC -n 30
	done
	perf_plain ib_send_bw -c UD -s 1024 -n 200
	perf_plain ib_send_lat -c UD -n 30
	perf_plain ib_send_bw -n 200 -q 3
	perf_plain ib_send_bw -n 100 --use-srq -q 4
	perf_plain ib_send_lat -n 30 -e
	perf_plain ib_write_lat -n 30 -s 4000
	perf_plain ib_write_bw -n 100 -s 100000 -q 2
	perf_plain ib_read_bw -n 100 -s 30000
}

ucx_twins() {
	expect='^Final: +[0-9]' twins "$UCX_TLS $1 $2" \
		ucx_perftest -p PORT -t "$1" -s "$2" -n "$3" -w 5
}

# ucx_use: whether there is one; from now on programs find a device file, as it wants.
ucx_use() {
	if [ "$VB_SANITIZE" = thread ] || ! command -v "$1" >/dev/null; then
		skip "$1" "there is none, or it crashes under ThreadSanitizer"
		return 1
	fi
	run+=("$VB_BUILD/verbatim" run --dev --)
	run_server=("${run[@]}") run_client=("${run[@]}")
}

part_ucx() {
	local -a run=("${run[@]}") run_server run_client
	local UCX_TLS
	ucx_use ucx_perftest || return
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

part_mpi() {
	local -a run=("${run[@]}") run_server run_client
	local tls
	ucx_use mpirun.openmpi || return
	for tls in rc_v ud_v; do
		UCX_TLS=$tls,self mpi_run "MPI by $tls" 2 200000
	done
}

part_pyverbs() {
	local name lacking='Converting timestamp|no huge pages|dmabuf|must be done by root'
	lacking+='|relies on'
	# Both of a QP's queues have one CQ there, and it takes first what it has sent.
	local -x VB_LEFT_OUT="test_tm_rndv=relies on a SEND completing before its answer comes"
	if [ ! -d "$tmp/tests" ] && ! pyverbs_unpack; then
		skip "pyverbs" "no $shipped"
		return
	fi
	# The segment of Ethernet is shared memory.
	[ "$VERBATIM_LINK" != udp ] || lacking+='|Raw Packet QP|QP type 8'
	for name in cq cq_events cqex atomic relaxed_ordering mr qp qpex parent_domain \
		tag_matching odp shared_pd flow rss_traffic srq; do
		pyverbs_module "" $name "$lacking"
	done
	# Ids that are bound to 127.0.0.1 have no device, and these tests expect one.
	if ip address add 192.0.2.1/32 dev lo 2>/dev/null; then
		VB_ADDRESS=192.0.2.1 gid=$(gid_index 192.0.2.1) \
			pyverbs_module "" rdmacm "$lacking"
		ip address del 192.0.2.1/32 dev lo
	fi
}

# seed_try LINK SEED PART ...: shm is what programs get by themselves; shared memory alone loses
# datagrams that come before its rings are there (docs/hub.md).
seed_try() {
	local part
	local -x VERBATIM_ORDER=$2
	link_use "${1#shm}"
	over=" (seed $2, $1)"
	for part in "${@:3}"; do
		part_"$part"
	done
}

gid=$(gid_index 127.0.0.1)
if [ -n "$VB_PART" ]; then
	seed_try "$VB_LINK" "$VB_SEED" "$VB_PART"
	suite_end
fi
for link in shm udp; do
	link_use $link
	for folder in verbs rdmacm; do
		for name in $(sed -n 's/^[a-z_ ]*[ (]\(luck_[a-z_]*\)[,()].*/\1/p' \
				"$VB_ROOT/tests/$folder/order_programs.c"); do
			by_luck $folder "$name"
		done
	done
	by_luck verbs adapter_the_flag_is_behind_the_data ,iba
	by_luck verbs adapter_a_second_write_has_the_flag ,iba
done
# shellcheck disable=SC2086 # a list
seed_try shm 1 $parts
# shellcheck disable=SC2086
seed_try udp 2 $parts
suite_end
