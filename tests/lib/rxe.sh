# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Programs with rdma_rxe of the guest on one end; source it after guest.sh and perftest.sh.

rxe_on=(python3 "$VB_ROOT/tests/lib/guest.py" call $guest_b4 $guest_port)

# rxe_use FAMILY: the GIDs are IPv4 or IPv6 addresses (4, 6). Programs meet by TCP over IPv4.
rxe_use() {
	local pattern
	case $1 in
	4) pattern=:ffff:0a4f:0002 own=$guest_a4 ;;
	6) pattern=fd79:.*:0002 own=$guest_a6 ;;
	esac
	family=$1
	own=$(gid_index "$own")
	their=$(guest_gid "$pattern")
	[ -n "$own" ] && [ -n "$their" ] || fail "IPv$1" "a GID table lacks the address"
}

# rxe_far SIDE: client or server is from now on the guest's.
rxe_far() {
	far=$1
	PREFIX="rxe is $1, IPv$family${VERBATIM_FAULT:+, faults},"
	on_server=() on_client=()
	run_server=("${run[@]}") run_client=("${run[@]}")
	case $1 in
	client) on_client=("${rxe_on[@]}") run_client=() address=$guest_a4 ;;
	server) on_server=("${rxe_on[@]}") run_server=() address=$guest_b4 ;;
	esac
}

# rxe_twins DEVICE GID CMD ...: DEVICE and GID are the options' names. Ends in pair_run.
rxe_twins() {
	local device=$1 gid=$2
	shift 2
	local ours=("$@" "$device" verbatim0 "$gid" "$own")
	local theirs=("$@" "$device" rxe0 "$gid" "$their")
	case $far in
	client) pair_run "${ours[@]}" -- "${theirs[@]}" $address ;;
	server) pair_run "${theirs[@]}" -- "${ours[@]}" $address ;;
	esac
}

# rxe_pingpong SERVICE ARGS ...: whoever has counted to the end leaves, and if the acknowledgement
# that he sent last is lost the other asks in vain: of rdma_rxe's 7 retries there is no end. That is
# nobody's fault and rare (one of 20 runs with 2 % of loss), so it may happen, but not always.
rxe_pingpong() {
	local expect='iters in' service=$1 times=1 limit_s=$limit_s
	shift
	[ -z "${VERBATIM_FAULT:-}" ] || times=4 limit_s=$((limit_s / 3))
	pair_try $times 'iters in' "$PREFIX $service $*" \
		rxe_twins -d -g "ibv_${service}_pingpong" -p PORT "$@"
}

# rxe_perf PROGRAM ARGS ...: perf with one side in the guest.
rxe_perf() {
	local expect=$perftest_row
	pair_try 4 'Correlation coefficient' "$PREFIX $*" rxe_twins -d -x "$@" -F -p PORT
}
