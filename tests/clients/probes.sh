#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Probes: the libraries have those that the page lists, and gdb and perf see them with their
# arguments when what they stand for happens.
. "$(dirname "$0")/../lib/suite.sh"

library=$VB_BUILD/lib/libibverbs.so.1
pages=$VB_ROOT/tests/lib/probes.py
command -v readelf >/dev/null || skip_all "there is no readelf"
readelf -n "$library" | grep -q 'Provider: verbatim' ||
	skip_all "it was built without <sys/sdt.h>, so there are no probes"

check "the libraries have the probes that the page lists" \
	python3 "$pages" compare "$VB_ROOT" "$library" "$VB_BUILD/lib/librdmacm.so.1"

# stops NAME PROBE FORMAT ARGUMENTS -- CMD ...: gdb stops CMD there; $tmp/output has the arguments.
stops() {
	local name=$1 probe=$2 format=$3 arguments=$4
	shift 5
	timeout -k 5 "$limit_s" "${run[@]}" gdb -q -nx -batch -ex 'set breakpoint pending on' \
		-ex "break -probe-stap verbatim:$probe" -ex run \
		-ex "printf \"stopped: $format\\n\", $arguments" -ex kill --args "$@" \
		>"$tmp/output" 2>&1 </dev/null
	grep -q '^stopped: ' "$tmp/output"
	verdict "$name" "gdb does not stop there" "$tmp/output"
}

said() {
	grep -Eq "^stopped: $2\$" "$tmp/output"
	verdict "$1" "other arguments" "$tmp/output"
}

if ! command -v gdb >/dev/null || ! gdb -q -nx -batch -ex run --args true 2>&1 </dev/null |
	grep -q 'exited normally'; then
	skip "gdb stops at a probe" "there is no gdb, or it may trace nothing here"
else
	# A server makes its QP before it waits for a client: from RESET (0) to INIT (1).
	stops "gdb stops where a QP changes its state" qp_state '%u %d %d' \
		'$_probe_arg0 != 0, $_probe_arg1, $_probe_arg2' -- \
		ibv_rc_pingpong -g 0 -p 18600
	said "... and has its number and states" '1 0 1'
	stops "... where a hub is found" hub_found '%u' '$_probe_arg0' -- \
		ibv_rc_pingpong -g 0 -p 18601
	said "... which is the first" 1
	# Nobody is there who could answer: the address does not lead to a listener.
	if command -v rping >/dev/null; then
		stops "... where rdma_cm has an event" cm_event '%s' '(char *)$_probe_arg3' -- \
			rping -c -a 127.0.0.1 -p 18602 -C 1
		said "... with its name" RDMA_CM_EVENT_ADDR_RESOLVED
	else
		skip "... where rdma_cm has an event" "there is no rping"
	fi
	VERBATIM_TRACE=$tmp stops "... where a traced program posts" post '%d' '$_probe_arg2' -- \
		ibv_rc_pingpong -g 0 -p 18603 -s 4711 &
	stopped=$!
	port_wait 18603 $stopped
	"${run[@]}" ibv_rc_pingpong -g 0 -p 18603 -s 4711 127.0.0.1 >"$tmp/client" 2>&1
	wait $stopped
	said "... with the octets of its request" 4711
fi

# perf's events are the whole machine's: one that is there already is somebody else's.
perf_adds() {
	perf --buildid-dir "$tmp/ids" buildid-cache --add "$library" &&
		perf --buildid-dir "$tmp/ids" probe -x "$library" sdt_verbatim:hub_found
}

if ! command -v perf >/dev/null || ! perf_adds >"$tmp/output" 2>&1; then
	skip "perf counts a probe" "there is no perf, or it may add no event"
else
	perf stat -e sdt_verbatim:hub_found -o "$tmp/counted" -- "${run[@]}" ibv_devinfo \
		-d verbatim0 >"$tmp/output" 2>&1
	perf probe -d sdt_verbatim:hub_found >/dev/null 2>&1
	grep -Eq '^ +1 +sdt_verbatim:hub_found' "$tmp/counted"
	verdict "perf counts a probe" "it does not" "$tmp/output" "$tmp/counted"
fi
suite_end
