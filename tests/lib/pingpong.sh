# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# ibverbs-utils' ping-pongs with each of their options; source it after suite.sh. The suite sets
# $gid.

# The program, and its options: -N posts by ibv_wr_*(3), -o pages on demand, -O does so with one
# region for all of memory, -P prefetches, -t reads timestamps from an extended CQ, -j has its
# buffer in device memory, -e sleeps. -c has the data checked, where the program does that. Not -t
# with -e: that program takes an event without a completion for an error, and there may be some, for
# it may have polled the completion just after it had asked to be told.
pingpong_rows=(
	"rc -N -c"
	"rc -N -e -c -s 65536 -n 200"
	"rc -N -t -c"
	"rc -N -j -c"
	"rc -N -t -j -c"
	"rc -t -c"
	"rc -t -c -s 65536 -n 200"
	"rc -o -c"
	"rc -o -P -c -s 1048576 -n 50"
	"rc -o -P -N -t -c"
	"rc -O -c"
	"rc -O -N -e -c -s 65536 -n 200"
	"rc -j -c"
	"rc -j -e -c -s 65536 -n 200"
	"rc -l 5 -c"
	"rc -r 1 -c"
	"rc -r 2000 -n 3000 -d verbatim0 -i 1 -m 256 -c"
	"uc -l 5 -c"
	"uc -r 1 -c"
	"uc -r 2000 -n 3000 -d verbatim0 -i 1 -e -c"
	"ud -l 5 -c"
	"ud -r 10 -c"
	"ud -r 2000 -n 3000 -d verbatim0 -i 1 -e -c"
	"srq -o -c"
	"srq -o -e -q 4 -c"
	"srq -l 5 -q 1 -c"
	"srq -r 64 -q 32 -n 200 -m 2048 -e -c"
	"xsrq"
	"xsrq -e -s 65536"
	"xsrq -o -n 100"
	"xsrq -l 5 -m 1024 -d verbatim0 -i 1 -s 1"
)

pingpong_options() {
	local row expect='iters in|^success'
	local -a words
	for row in "${pingpong_rows[@]}"; do
		read -ra words <<<"$row"
		twins "${PREFIX:+$PREFIX }$row" "ibv_${words[0]}_pingpong" -p PORT -g "$gid" \
			"${words[@]:1}"
	done
}

# XRC's ping-pong: one server, one client with each option, and then several clients at once, which
# share the server's SRQ.
xsrq_pingpongs() {
	local row expect=success
	local -a words
	for row in "-n 1000" "-s 1 -n 500" "-s 65536 -n 200" "-s 1048576 -n 20" "-m 256 -s 10001" \
		"-e -n 500" "-o -n 200"; do
		read -ra words <<<"$row"
		twins "${PREFIX:+$PREFIX }xsrq $row" ibv_xsrq_pingpong -p PORT -g "$gid" \
			"${words[@]}"
	done
	# shellcheck disable=SC2016
	for row in "-n 500" "-e -n 200 -s 20000"; do
		read -ra words <<<"$row"
		pair "${PREFIX:+$PREFIX }xsrq four clients $row" \
			ibv_xsrq_pingpong -p PORT -g "$gid" -c 4 "${words[@]}" -- bash -c '
			for ((i = 0; i < 4; i++)); do
				ibv_xsrq_pingpong "$@" &
				pids+=($!)
			done
			for pid in "${pids[@]}"; do wait "$pid" || exit 1; done' \
			clients -p PORT -g "$gid" "${words[@]}" "$address"
	done
}
