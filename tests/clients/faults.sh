#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The seven faults of docs/faults.md, each a script of examples/faults, with perftest, UCX and Open
# MPI, by both links: the rule fires, the program under test ends and reports what it has to.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/mpi.sh"
. "$(dirname "$0")/../lib/cm.sh"

export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx UCX_NET_DEVICES=verbatim0:1 UCX_WARN_UNUSED_ENV_VARS=n
# So that failures come soon; and nobody is to wait for a debugger.
export UCX_TLS=rc_v,self UCX_RC_VERBS_TIMEOUT=64ms UCX_HANDLE_ERRORS=none
faults=$VB_ROOT/examples/faults

# Which side gets the script, and what the program under test has to meet, as its log has it; none:
# it ends well.
side_of() {
	case $1 in
	peer-killed | qp-dead | slow-receiver) echo server ;;
	*) echo client ;;
	esac
}

meets() {
	case $1 in
	slow-receiver) echo none ;;
	stale-rkey) echo IBV_WC_REM_ACCESS_ERR ;;
	*) echo IBV_WC_RETRY_EXC_ERR ;;
	esac
}

# What the side that has the script hears of, too.
event_of() {
	case $1 in
	link-down) echo IBV_EVENT_PORT_ERR ;;
	gid-change) echo IBV_EVENT_GID_CHANGE ;;
	qp-dead) echo IBV_EVENT_QP_FATAL ;;
	esac
}

# fault_judge FAULT NAME RC: the client's exit status. Logs: $tmp/log.client, $tmp/log.server.
fault_judge() {
	local fault=$1 name=$2 rc=$3 status event why=
	local faulty=$tmp/log.$(side_of "$fault") subject=$tmp/log.client
	status=$(meets "$fault")
	event=$(event_of "$fault")
	[ "$rc" != 124 ] || why="it did not end"
	if [ "$status" = none ]; then
		[ "$rc" = 0 ] || why="$(status_say "$rc")"
	else
		[ "$rc" != 0 ] || why="it noticed nothing"
		grep -q "$status" "$subject" || why=${why:-"its log has no $status"}
	fi
	grep -q "rule $fault.fault:[0-9]*: " "$faulty" || why="the rule did not fire"
	[ -z "$event" ] || grep -q "$event" "$faulty" || why=${why:-"no $event"}
	[ -z "$why" ]
	verdict "$name" "$why" "$tmp/client" "$tmp/server" "$faulty" "$subject"
}

# lead_of SIDE FAULT: the words that lead a side's program, into the caller's lead.
lead_of() {
	lead=(env "VERBATIM_LOG=$tmp/log.$1")
	[ "$(side_of "$2")" != "$1" ] || lead+=("VERBATIM_FAULTS=$faults/$2.fault")
	lead+=("${runs[@]}")
}

# pair_with FAULT NAME CMD ...: as twins, with the script at its side.
pair_with() {
	local fault=$1 name=$2 pid rc
	local -a lead
	shift 2
	port=$((port + 1))
	rm -f "$tmp"/log.*
	touch "$tmp/log.client" "$tmp/log.server"
	lead_of server "$fault"
	timeout -k 5 "$limit_s" "${lead[@]}" "${@/PORT/$port}" >"$tmp/server" 2>&1 &
	pid=$!
	: >"$tmp/client"
	port_wait "$port" $pid
	lead_of client "$fault"
	# The shell has no need to say who was killed.
	{
		timeout -k 5 "$limit_s" "${lead[@]}" "${@/PORT/$port}" "$address" \
			>"$tmp/client" 2>&1
		rc=$?
		process_wait $pid $((rc ? 1 : 10))
	} 2>/dev/null
	fault_judge "$fault" "$fault, $name" $rc
}

perftest_with() {
	runs=("$VB_BUILD/verbatim" run --)
	[ "$1" = stale-rkey ] || pair_with "$1" ib_send_bw \
		ib_send_bw -p PORT -x 0 -s 4096 -n 1000 -u 10
	[ "$1" = slow-receiver ] || pair_with "$1" ib_write_bw \
		ib_write_bw -p PORT -x 0 -s 4096 -n 1000 -u 10
}

# Messages that go as a SEND each; for keys, WRITEs.
ucx_with() {
	runs=("$VB_BUILD/verbatim" run --dev --)
	case $1 in
	stale-rkey)
		pair_with "$1" "UCX put_bw" \
			ucx_perftest -p PORT -t ucp_put_bw -s 100000 -n 500 -w 10
		;;
	*) pair_with "$1" "UCX tag_bw" ucx_perftest -p PORT -t tag_bw -s 5000 -n 500 -w 10 ;;
	esac
}

# Process 1 of two gets the script; the other is the one under test.
mpi_with() {
	local fault=$1 rc
	cat >"$tmp/rank" <<-END
		#!/bin/bash
		[ "\$OMPI_COMM_WORLD_RANK" = 0 ] && side=client || side=server
		export VERBATIM_LOG=$tmp/log.\$side
		[ \$side != $(side_of "$fault") ] || export VERBATIM_FAULTS=$faults/$fault.fault
		exec "\$@"
	END
	chmod +x "$tmp/rank"
	rm -f "$tmp"/log.*
	touch "$tmp/log.client" "$tmp/log.server"
	: >"$tmp/server"
	timeout -k 5 "$limit_s" mpirun.openmpi -np 2 "$tmp/rank" "$VB_BUILD/verbatim" run --dev -- \
		"$VB_ROOT/tests/lib/mpi.py" 200000 </dev/null >"$tmp/client" 2>&1
	rc=$?
	fault_judge "$fault" "$fault, Open MPI" $rc
}

# The first request to connect is rejected with a reason, and the second one is not.
reject_by() {
	local name="connect, rping${1:+ ($1)}" rc
	local -x VERBATIM_LINK=$1
	echo "connect nth=1 -> reject consumer" >"$tmp/reject.fault"
	rm -f "$tmp"/log.*
	port=$((port + 1))
	run_server=(env "VERBATIM_FAULTS=$tmp/reject.fault" "VERBATIM_LOG=$tmp/log.server"
		"${run[@]}")
	server_begin rping -P -s -a "$at" -p $port -v
	client_run rping -c -a "$at" -p $port -C 3
	grep -q 'RDMA_CM_EVENT_REJECTED.* 28' "$tmp/client" &&
		grep -q 'rule reject.fault:1: rejected' "$tmp/log.server" &&
		client_run rping -c -a "$at" -p $port -C 3
	rc=$?
	process_wait $server 0 2>/dev/null
	[ $rc = 0 ]
	verdict "$name" "it was not rejected once" "$tmp/client" "$tmp/server" "$tmp/log.server"
	run_server=("${run[@]}")
}

if command -v rping >/dev/null; then
	for link in "" udp shm; do
		reject_by "$link"
	done
else
	skip "connect, rping" "no rping"
fi
all=(peer-killed qp-dead link-down one-way-loss slow-receiver stale-rkey gid-change)
crashes="not there, or it crashes under ThreadSanitizer"
for link in "" udp; do
	[ -z "$link" ] || link_use udp
	for fault in "${all[@]}"; do
		if command -v ib_send_bw >/dev/null; then
			perftest_with $fault
		else
			skip "$fault, perftest" "no ib_send_bw"
		fi
		if [ "$VB_SANITIZE" = thread ] || ! command -v ucx_perftest >/dev/null; then
			skip "$fault, UCX" "$crashes"
		else
			ucx_with $fault
		fi
		if [ "$VB_SANITIZE" = thread ] || ! command -v mpirun.openmpi >/dev/null; then
			skip "$fault, Open MPI" "$crashes"
		else
			mpi_with $fault
		fi
	done
done
suite_end
