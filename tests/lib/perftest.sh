# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# perftest's programs as tests; source it after suite.sh. The suite sets $gid.

# A row of results: a size, then numbers. (A run in which nothing moved prints 0.00 everywhere.)
perftest_row='^ *[0-9]+ +[0-9]+ +.*[1-9]'

# tests/lib/perftest.c says what it is good for.
perf_env=(env "LD_PRELOAD=${VB_PRELOAD:+$VB_PRELOAD:}$VB_BUILD/tests/verbs/libperftest.so")

# perf NAME PROGRAM ARGS ...: server and client with the same arguments. Where the machine is busy,
# perftest may find no pace in the clock when it begins, says so, and prints 0.00 for whatever it
# measures by it.
perf() {
	local name=$1 expect=$perftest_row
	shift
	set -- "${perf_env[@]}" "$@" -d verbatim0 -F -x "$gid" -p PORT
	pair_try 4 'Correlation coefficient' "$name" pair_run "$@" -- "$@" "$address"
}

# The same, named by the command line, and by what PREFIX says.
perf_plain() {
	perf "${PREFIX:+$PREFIX }$*" "$@"
}

# The same by ibv_wr_*(3) in place of ibv_post_send(3). perftest does that on devices that it knows
# by their part number, so it is told one (of a ConnectX-5), and says on which way it went.
perf_by_wr() {
	local name="${PREFIX:+$PREFIX }by ibv_wr $*"
	PART_ID=4119 perf "$name" "$@"
	if grep -q '^---' "$tmp/client" && ! grep -q 'ibv_wr.* API *: *ON' "$tmp/client"; then
		fail "$name" "it did not go that way" "$tmp/client"
	fi
}

# How much to send where nobody sends again and perftest waits for all of it: what a ring holds, for
# on a machine that is busy the receiver may not get to run for longer than a datagram waits. A
# sanitizer makes the receiver so slow that only what the socket holds is safe.
unreliable=(-n 200)
[ -z "$VB_SANITIZE" ] || unreliable=(-n 30 -s 1024)

# Every operation and service.
perf_services() {
	local what
	for what in send write read atomic; do
		perf_plain ib_${what}_bw -n 1000
		perf_plain ib_${what}_lat -n 1000
		perf_plain ib_${what}_bw -c XRC -n 500
		perf_plain ib_${what}_lat -c XRC -n 500
	done
	for what in send write; do
		perf_plain ib_${what}_bw -c UC "${unreliable[@]}"
		perf_plain ib_${what}_lat -c UC -n 500
	done
	perf_plain ib_send_bw -c UD -s 1024 "${unreliable[@]}"
	perf_plain ib_send_lat -c UD -n 1000
}

# Every operation and service by ibv_wr_*(3), and what else changes how requests are built.
perf_builder() {
	local what
	for what in send write read atomic; do
		perf_by_wr ib_${what}_bw -n 1000
		perf_by_wr ib_${what}_lat -n 1000
		perf_by_wr ib_${what}_bw -l 8 -q 4 -n 800
	done
	for what in send write; do
		perf_by_wr ib_${what}_bw -c UC "${unreliable[@]}"
		perf_by_wr ib_${what}_lat -c UC -n 500
		perf_by_wr ib_${what}_bw -I 100 -s 100 -n 1000
		perf_by_wr ib_${what}_lat -I 32 -s 32 -n 1000
	done
	perf_by_wr ib_send_bw -c UD -s 1024 "${unreliable[@]}"
	perf_by_wr ib_send_lat -c UD -I 32 -s 32 -n 1000
	perf_by_wr ib_send_bw --use-srq -r 100 -q 4 -n 200
	perf_by_wr ib_send_bw -b -e -n 500
	perf_by_wr ib_write_bw -b -q 16 -n 100
	perf_by_wr ib_atomic_bw -A CMP_AND_SWAP -n 1000
	perf_by_wr ib_write_bw -s 2 -n 50000
	perf_by_wr ib_send_bw -s 8388608 -n 20
	perf_plain ib_write_bw --use_old_post_send -n 500
}

# The options that make a program use the NIC in another way.
perf_options() {
	local what
	for what in send write read atomic; do
		perf_plain ib_${what}_bw -b -n 500
		perf_plain ib_${what}_bw -q 16 -n 100
		perf_plain ib_${what}_bw -l 8 -n 1000
		perf_plain ib_${what}_bw -Q 1 -t 16 -n 500
	done
	for what in send read atomic; do
		perf_plain ib_${what}_bw -e -n 500
		perf_plain ib_${what}_lat -e -n 300
	done
	for what in send write; do
		perf_plain ib_${what}_bw -I 64 -s 64 -n 2000
		perf_plain ib_${what}_lat -I 32 -s 32 -n 1000
	done
	perf_plain ib_atomic_bw -A CMP_AND_SWAP -n 1000
	perf_plain ib_send_bw --use-srq -n 500
	perf_plain ib_send_bw --use-srq -q 16 -n 100
	perf_plain ib_send_bw --use-srq -c UD -s 1024 "${unreliable[@]}"
	perf_plain ib_send_lat --use-srq -n 500
	perf_plain ib_send_bw -c UD -q 4 -s 512 "${unreliable[@]}"
	perf_plain ib_send_bw -c UD -e -s 512 "${unreliable[@]}"
	perf_plain ib_send_bw -b -e -q 4 -n 200
	perf_plain ib_send_bw -r 16 -t 64 -n 500
	perf_plain ib_send_bw -m 256 -n 300
	perf_plain ib_write_bw --mr_per_qp -q 4 -n 200
	perf_plain ib_write_bw --report_gbits -s 1048576 -n 200
	perf_plain ib_read_bw -o 1 -n 500
	perf_plain ib_write_bw -D 2
	perf_plain ib_send_bw --recv_post_list=8 -n 800
	perf_plain ib_send_bw --reversed -n 500
	perf_plain ib_send_bw -e -X 3 -n 500
	perf_plain ib_send_bw -u 20 -n 500
	perf_plain ib_write_bw -S 2 -n 500
	perf_plain ib_write_bw --odp -n 500
	perf_plain ib_read_bw --odp -n 500
	perf_plain ib_write_bw --rate_limit=10 --rate_limit_type=SW -n 500
}

# All sizes from 2 octets to 8 MiB.
perf_sizes() {
	local what
	for what in send write read; do
		perf_plain ib_${what}_bw -a -n 50
		perf_plain ib_${what}_lat -a -n 30
	done
	perf_plain ib_send_bw -a -b -n 30
	if [ -z "$VB_SANITIZE" ]; then
		perf_plain ib_send_bw -a -c UD -n 100
		perf_plain ib_write_bw -a -c UC -n 20
	fi
}
