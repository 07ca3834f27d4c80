#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What `make bench` measures: perftest's latencies, bandwidths and message rates on loopback and
# between two namespaces, next to bare UDP and TCP over the same path in the same run.
#   BENCH_RUNS=5       how often all of it is done, by turns; what counts is the median
#   BENCH_PATHS="loopback veth"
# Every figure goes to build/bench/raw.tsv, the summaries to results.jsonl beside it.
: "${VB_BUILD:=$(cd "$(dirname "$0")/.." && pwd)/${BUILD:-build}}"
export VB_BUILD
. "$(dirname "$0")/../tests/lib/suite.sh"
. "$(dirname "$0")/../tests/lib/netns.sh"

: "${BENCH_RUNS:=5}" "${BENCH_PATHS:=loopback veth}"
out=$VB_BUILD/bench
raw=$out/raw.tsv
mkdir -p "$out"
: >"$raw"

# record WHAT OCTETS UNIT VALUE: one figure of this run; none if the program failed
record() {
	if [[ $4 =~ ^[0-9.]+$ ]]; then
		printf '%s\t%s\t%s\t%s\t%s\n' "$path" "$1" "$2" "$3" "$4" >>"$raw"
	else
		echo "bench: $path $1 $2 brings no figure" >&2
	fi
}

# perf PROGRAM OCTETS ARGS ...: prints the fields of perftest's row
perf() {
	local why program=$1 octets=$2
	shift 2
	if pair_run "$program" -F -x "$gid" -s "$octets" "$@" -p PORT -- \
		"$program" -F -x "$gid" -s "$octets" "$@" -p PORT "$address"; then
		awk -v s="$octets" '$1 == s && NF >= 5 { row = $0 } END { print row }' "$tmp/client"
	else
		echo "bench: $program: $why" >&2
	fi
}

latency() {
	local -a row
	read -ra row < <(perf "$1" 2 -n 5000)
	record "$1" 2 us "${row[4]:-}"
}

# bandwidth PROGRAM OCTETS COUNT: from gigabits to GB/s
bandwidth() {
	local -a row
	read -ra row < <(perf "$1" "$2" -n "$3" --report_gbits)
	record "$1" "$2" GB/s "$(awk -v g="${row[3]:-}" 'BEGIN { if (g) printf "%.3f", g / 8 }')"
}

rate() {
	local -a row
	read -ra row < <(perf "$1" 2 -n 50000)
	record "$1 rate" 2 M/s "${row[4]:-}"
}

verbs() {
	local what
	for what in send write read; do
		latency ib_${what}_lat
		bandwidth ib_${what}_bw 4096 20000
		bandwidth ib_${what}_bw 65536 5000
		bandwidth ib_${what}_bw 1048576 500
	done
	rate ib_send_bw
	rate ib_write_bw
}

# A datagram as large as the packets of RoCE there, and as many in a batch as fit.
bare() {
	local pid mtu=4096 figures
	"${on_server[@]}" "$out/udp" serve 18000 &
	pid=$!
	sleep 0.2
	record "UDP ping-pong" 64 us "$("${on_client[@]}" "$out/udp" ping "$1" 18000 64 20000 |
		cut -d' ' -f1)"
	read -ra figures < <("${on_client[@]}" "$out/udp" stream "$1" 18000 $((mtu + 58)) 15 1)
	record "UDP stream" $((mtu + 58)) GB/s "${figures[0]:-}"
	read -ra figures < <("${on_client[@]}" "$out/udp" stream "$1" 18000 64 64 1)
	record "UDP rate" 64 M/s "${figures[2]:-}"
	kill $pid
	wait $pid 2>/dev/null

	"${on_server[@]}" iperf3 -s -1 -p 18001 >/dev/null 2>&1 &
	pid=$!
	port_wait 18001 $pid
	"${on_client[@]}" iperf3 -c "$1" -p 18001 -t 2 -J >"$tmp/iperf"
	wait $pid
	record "TCP stream" 131072 GB/s "$(sed -n '/"sum_received"/,/}/p' "$tmp/iperf" |
		awk -F'[:,]' '/bits_per_second/ { printf "%.3f", $2 / 8e9 }')"
}

path_loopback() {
	on_server=() on_client=() address=127.0.0.1
	gid=$(gid_index 127.0.0.1)
	bare 127.0.0.1
	verbs
}

path_veth() {
	if [ ${#on_b[@]} = 0 ] && ! hosts_make 9000; then
		echo "bench: this system lets us make no veth" >&2
		return
	fi
	hosts_use 4
	bare "$a4"
	verbs
}

for ((n = 1; n <= BENCH_RUNS; n++)); do
	for path in $BENCH_PATHS; do
		echo "bench: run $n of $BENCH_RUNS, $path" >&2
		record "cache line" 8 ns "$("$out/line")"
		"path_$path"
		record "cache line" 8 ns "$("$out/line")"
	done
done
python3 "$VB_ROOT/bench/report.py" "$raw" "$out/results.jsonl"
