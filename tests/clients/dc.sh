#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# perftest by DC, which it has on devices that it knows: every operation, posted by mlx5's calls,
# with many initiators, events, shared receive queues and streams; on one host by both links, and
# between two. Then what else it does otherwise on such a device.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/perftest.sh"

limit_s=$((3 * limit_s))
export VERBATIM_PERSONA=connectx7

perf_dc() {
	perf_plain "$1" -c DC "${@:2}"
}

# With events it leaves a CQ behind where one end receives or reads, so that its channel cannot be
# destroyed (ibv_create_comp_channel(3)), and complains of that, and nothing else, in the end.
perf_dc_events() {
	local -a run_server=("$tmp/but_for_channel" "${run_server[@]}")
	local -a run_client=("$tmp/but_for_channel" "${run_client[@]}")
	perf_dc "$@"
}
cat >"$tmp/but_for_channel" <<'END'
#!/bin/bash
"$@" >"$0.$$" 2>&1
rc=$?
cat "$0.$$"
[ $rc = 0 ] || { [ $rc = 1 ] && grep -q 'Failed to close event channel' "$0.$$" &&
	! grep -qiE '(failed|unable|error)' <(sed 's/Failed to close event channel//' "$0.$$"); }
END
chmod +x "$tmp/but_for_channel"

dc_services() {
	local what
	for what in send write read atomic; do
		perf_dc ib_${what}_bw -n 1000
		perf_dc ib_${what}_lat -n 1000
		perf_dc ib_${what}_bw -q 8 -n 200
	done
}

dc_options() {
	local what size
	for what in send write read; do
		for size in 1 64 1000 65536 1048576; do
			perf_dc ib_${what}_bw -s $size -n 200
		done
		perf_dc ib_${what}_lat -s 4096 -n 300
		perf_dc ib_${what}_bw -b -n 500
		perf_dc ib_${what}_bw -q 16 -l 4 -n 400
		perf_dc ib_${what}_bw -Q 1 -t 16 -n 500
	done
	# ib_send_lat has one channel for both CQs and takes it that the event of what it sent comes
	# before that of the answer, which is another QP's.
	for what in send read atomic; do
		perf_dc_events ib_${what}_bw -e -n 500
		perf_dc_events ib_${what}_lat -e -n 300
	done
	perf_plain ib_send_lat -c XRC -e -n 300
	for what in send write; do
		perf_dc ib_${what}_bw -I 64 -s 64 -n 2000
		perf_dc ib_${what}_lat -I 32 -s 32 -n 1000
		perf_dc ib_${what}_bw -a -n 30
	done
	perf_dc ib_send_bw --use-srq -n 500
	perf_dc ib_send_bw --use-srq -q 16 -n 100
	perf_dc ib_send_bw -b -q 4 -n 200
	perf_dc_events ib_send_bw -b -e -q 4 -n 200
	perf_dc ib_atomic_bw -A CMP_AND_SWAP -n 1000
	perf_dc ib_write_bw -D 2
	for what in send write read; do
		perf_dc ib_${what}_bw --log_dci_streams=2 -n 500
		perf_dc ib_${what}_bw --log_dci_streams=3 --log_active_dci_streams=1 -q 2 -n 500
	done
}

# What else goes another way there: the builder, inline sizes, completions with data in them.
others() {
	local what service
	for what in send write read atomic; do
		for service in RC XRC; do
			perf_plain ib_${what}_bw -c $service -n 1000
			perf_plain ib_${what}_lat -c $service -n 500
		done
		perf_plain ib_${what}_bw -q 8 -n 200
	done
	for what in send write; do
		perf_plain ib_${what}_lat -c UC -n 500
		perf_plain ib_${what}_lat -s 8 -n 1000
	done
	perf_plain ib_send_bw -c UD -s 1024 "${unreliable[@]}"
	perf_plain ib_send_lat -c UD -n 1000
	perf_plain ib_send_bw -s 16 -n 5000
	perf_plain ib_read_bw -s 16 -n 5000
	perf_plain ib_send_bw -s 32 -e -n 1000
	perf_plain ib_send_bw -s 32 --use-srq -q 4 -n 500
	twins "rc_pingpong" ibv_rc_pingpong -p PORT -g "$gid" -s 32 -n 500 -c
	twins "rc_pingpong -e" ibv_rc_pingpong -p PORT -g "$gid" -s 32 -n 500 -e
	twins "uc_pingpong" ibv_uc_pingpong -p PORT -g "$gid" -s 32 -n 500 -c
	twins "srq_pingpong" ibv_srq_pingpong -p PORT -g "$gid" -s 32 -n 500 -c
	twins "xsrq_pingpong" ibv_xsrq_pingpong -p PORT -g "$gid" -s 32 -n 500
}

gid=$(gid_index 127.0.0.1)
dc_services
dc_options
others
link_use udp
dc_services
dc_options
others
unset VERBATIM_LINK
over=

if hosts_make 9000; then
	for family in 4 6; do
		PREFIX="two hosts, IPv$family"
		if ! hosts_use $family; then
			fail "$PREFIX" "the hosts' GID tables differ or lack the address"
			continue
		fi
		dc_services
	done
	dc_options
	others
else
	skip "two hosts" "this system lets us make no veth"
fi
suite_end
