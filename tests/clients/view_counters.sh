#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The counters of the ports in the view (docs/view.md), read by Debian's node exporter and by a
# shell: they move by what perftest sends, by both links and between two hosts, in both ways of
# showing the view; those of a process that has ended, or was killed, stay.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

verbatim=$VB_BUILD/verbatim
port=/sys/class/infiniband/verbatim0/ports/1
exporter=prometheus-node-exporter
# What a run of perftest sends.
size=65536 count=1000
octets=$((size * count))
port_number=19400
held=()

counters_cleanup() {
	local pid
	for pid in "${held[@]}"; do
		kill "$pid" 2>/dev/null
	done
	suite_cleanup
}
trap counters_cleanup EXIT

# run ARGS...: in the view, as that user, on that host
run() {
	"${as[@]}" "$verbatim" run --view="$view" -- "$@"
}

# run_held ARGS...: likewise, in the background; it ends with the suite. Sets $held_pid.
run_held() {
	(exec "${as[@]}" "$verbatim" run --view="$view" -- "$@") >"$tmp/held" 2>&1 &
	held_pid=$!
	held+=("$held_pid")
}

# The folder of the tree, which both views have as files.
root_of() {
	# shellcheck disable=SC2016 # another shell's
	run sh -c 'echo $VERBATIM_VIEW_ROOT'
}

# value FILE: of the port, as a shell in the view reads it
value() {
	run cat "$port/$1"
}

# write_run ARGS...: ib_write_bw, both ends in the view
write_run() {
	local server rc
	port_number=$((port_number + 1))
	run ib_write_bw -d "$device" -x 0 -s $size -n $count -p $port_number "$@" \
		>"$tmp/server" 2>&1 &
	server=$!
	port_wait $port_number $server
	run timeout "$limit_s" ib_write_bw -d "$device" -x 0 -s $size -n $count \
		-p $port_number "$@" 127.0.0.1 >"$tmp/output" 2>&1
	rc=$?
	wait $server && return $rc
}

# moved BEFORE AFTER LEAST MOST: by so many octets, of which the port counts every fourth
moved() {
	local by=$((($2 - $1) * 4))
	echo "$1 to $2: $by octets, $3 to $4 are right" >"$tmp/moved"
	[ $by -ge "$3" ] && [ $by -le "$4" ]
}

settled() {
	moved "$before" "$(value counters/port_xmit_data)" "$1" "$2" &&
		moved "$came" "$(value counters/port_rcv_data)" "$1" "$2"
}

# counts NAME LEAST MOST: what write_run adds
counts() {
	before=$(value counters/port_xmit_data)
	came=$(value counters/port_rcv_data)
	write_run
	verdict "$1: ib_write_bw" "it failed" "$tmp/output"
	await settled "$2" "$3"
	verdict "$1: the port's counters" "they do not move by that" "$tmp/moved"
}

# --- the node exporter ---

exporter_is_up() {
	"${as[@]}" curl -sf "http://127.0.0.1:$web/metrics" >"$tmp/metrics"
}

# metric NAME: of verbatim0, as the node exporter says it
metric() {
	exporter_is_up
	sed -n "s/^node_infiniband_$1{device=\"verbatim0\".*} //p" "$tmp/metrics" |
		awk '{ printf "%.0f\n", $1 }'
}

exported() {
	local now
	now=$(metric port_data_transmitted_bytes_total)
	echo "$before to $now" >"$tmp/moved"
	[ $((now - before)) -ge $octets ] && [ $((now - before)) -le $((octets * 101 / 100)) ]
}

# exporter_shows NAME: a node exporter in the view, by the paths that it takes
exporter_shows() {
	local path=()
	# A program in Go asks the kernel itself, and not the C library.
	[ "$view" = preload ] && path=(--path.sysfs="$(root_of)/sys")
	web=$((web + 1))
	run_held $exporter --collector.disable-defaults --collector.infiniband \
		--web.listen-address=127.0.0.1:$web "${path[@]}"
	await exporter_is_up
	verdict "$1: it answers" "it does not" "$tmp/held"
	grep -q '^node_infiniband_info{.*device="verbatim0".*}' "$tmp/metrics" &&
		[ "$(metric rate_bytes_per_second)" = 12500000000 ] &&
		[ "$(metric state_id)" = 4 ]
	verdict "$1: it knows the device, its rate and state" "it does not" "$tmp/metrics"
	before=$(metric port_data_transmitted_bytes_total)
	write_run
	verdict "$1: ib_write_bw" "it failed" "$tmp/output"
	await exported
	verdict "$1: it shows what was sent" "it does not" "$tmp/moved"
}

# --- one host ---

device=verbatim0 as=()
command -v $exporter >/dev/null || skip_all "no $exporter"
web=19450
# each_view WHO: whoever runs things by "${as[@]}"
each_view() {
	for view in mount preload; do
		if ! run true 2>"$tmp/output"; then
			skip "$1, $view" "$(head -1 "$tmp/output")"
			continue
		fi
		exporter_shows "$1, $view"
		counts "$1, $view" $octets $octets
		VERBATIM_LINK=udp counts "$1, $view, udp" $octets $((octets * 110 / 100))
	done
}

each_view root
if user_become; then
	as=("${on_client[@]}")
	each_view "an ordinary user"
else
	skip "an ordinary user" "nobody cannot read $VB_BUILD"
fi
as=() on_server=() on_client=() view=preload

# --- who has ended ---

before=$(value counters/port_xmit_data)
run_held ib_write_bw -d verbatim0 -x 0 -s $size -D 60 -p 19498
server=$held_pid
port_wait 19498 "$server"
run_held ib_write_bw -d verbatim0 -x 0 -s $size -D 60 -p 19498 127.0.0.1
moves() {
	[ $(($(value counters/port_xmit_data) - before)) -gt 0 ]
}
await moves
verdict "a process that runs counts" "it does not" "$tmp/output"
kill -KILL "$held_pid" "$server"
wait "$held_pid" "$server" 2>/dev/null
before=$(value counters/port_xmit_data)
write_run && await moves
verdict "one that was killed is not taken away" "the sum is less" "$tmp/output"

# --- errors, and several devices ---

is_more() {
	[ "$(value "$1")" -gt "$2" ]
}

before=$(value hw_counters/rx_icrc_encapsulated)
VERBATIM_FAULT=corrupt=5%,seed=3 write_run &&
	await is_more hw_counters/rx_icrc_encapsulated "$before"
verdict "a wrong ICRC is counted" "it is not" "$tmp/output"
before=$(value hw_counters/packet_seq_err)
VERBATIM_FAULT=loss=2%,seed=3 write_run &&
	await is_more hw_counters/packet_seq_err "$before"
verdict "a NAK of a sequence error is counted" "it is not" "$tmp/output"

value_of() {
	run cat "/sys/class/infiniband/$1/ports/1/$2"
}

export VERBATIM_DEVICES=rail0=::1,rail1=127.0.0.1
device=rail1
write_run
verdict "rail1: ib_write_bw" "it failed" "$tmp/output"
rail_moved() {
	[ "$(value_of rail1 counters/port_xmit_data)" -eq $((octets / 4)) ]
}
await rail_moved && [ "$(value_of rail0 counters/port_xmit_data)" -eq 0 ]
verdict "of two devices the right one counts" "it is another one" "$tmp/output"
unset VERBATIM_DEVICES
device=verbatim0

efa_counts() {
	[ "$(value hw_counters/tx_bytes)" -gt 0 ] && [ "$(value hw_counters/rx_pkts)" -gt 0 ]
}
export VERBATIM_PERSONA=efa
srd() {
	run timeout "$limit_s" ib_send_bw -c SRD -d verbatim0 -x 0 -s 1024 -n 100 -p 19497 "$@"
}
srd >"$tmp/server" 2>&1 &
server=$!
port_wait 19497 $server
srd 127.0.0.1 >"$tmp/output" 2>&1
wait $server
await efa_counts
verdict "a device of EFA has EFA's counters" "they do not move" "$tmp/output"
! run ls $port/counters >"$tmp/output" 2>&1
verdict "... and no others" "there are" "$tmp/output"
unset VERBATIM_PERSONA

# --- two hosts ---

if hosts_make 1500; then
	hosts_use 4
	perf=(ib_write_bw -d verbatim0 -x "$gid" -s $size -n $count -p 19499)
	here() {
		value counters/$1
	}
	there() {
		as=("${on_b[@]}")
		value counters/$1
		as=()
	}
	before=$(here port_rcv_data) came=$(there port_xmit_data)
	run "${perf[@]}" >"$tmp/server" 2>&1 &
	server=$!
	port_wait 19499 $server
	as=("${on_b[@]}")
	run timeout "$limit_s" "${perf[@]}" $a4 >"$tmp/output" 2>&1
	verdict "two hosts: ib_write_bw" "it failed" "$tmp/output"
	as=()
	wait $server
	across() {
		moved "$before" "$(here port_rcv_data)" $octets $((octets * 110 / 100)) &&
			moved "$came" "$(there port_xmit_data)" $octets $((octets * 110 / 100))
	}
	await across
	verdict "two hosts: what one sends the other receives" "it does not" "$tmp/moved"
else
	skip "two hosts" "no network namespaces"
fi
suite_end
