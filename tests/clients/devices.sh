#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Several devices in a process: rails of two hosts, each with a cable of its own. UCX and Open MPI
# stripe over them, as each cable's counters show; one goes down, and what goes by the others goes
# on; what looks at devices tells them apart; and broken tables are refused with line and remedy.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/mpi.sh"
. "$(dirname "$0")/../lib/rails.sh"

verbatim=$VB_BUILD/verbatim
export UCX_WARN_UNUSED_ENV_VARS=n UCX_HANDLE_ERRORS=none
export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx

# --- broken tables ---

# broken NAME PATTERN TABLE: nothing is started, the message has the line and what is valid there.
broken() {
	local table=$tmp/table
	printf '%b' "$3" >"$table"
	rm -f "$tmp/started"
	VERBATIM_DEVICES=$table ends 125 "$1" "$verbatim" run -- touch "$tmp/started" || return
	grep -Eq "^verbatim: VERBATIM_DEVICES: $table:$2" "$tmp/output" && [ ! -e "$tmp/started" ]
	verdict "$1: refused" "the program is started, or not /$2/ is said" "$tmp/output"
	VERBATIM_DEVICES=$table ends 1 "$1: verbatim devices" "$verbatim" devices || return
	grep -Eq "$table:$2" "$tmp/output"
	verdict "$1: verbatim devices" "it does not say it" "$tmp/output"
	VERBATIM_DEVICES=$table VERBATIM_LOG=$tmp/log LD_LIBRARY_PATH=$VB_BUILD/lib \
		ibv_devices >"$tmp/output" 2>&1
	! grep -q rail "$tmp/output" && grep -Eq "$table:$2" "$tmp/log"
	verdict "$1: no device at all" "there is one, or the log is silent" "$tmp/output"
}

one='[device rail0]\ninterfaces = lo\n'
broken "an unknown key" "3:1: there is no key 'maxqp'; did you mean 'max_qp'\? Keys: .*max_qp_wr" \
	"${one}maxqp = 16\n"
broken "an unknown persona" "3:11: there is no persona 'connectx'; did you mean 'connectx7'" \
	"${one}persona = connectx\n"
broken "a limit that is too small" "3:10: max_qp is a number from 1 to" "${one}max_qp = 0\n"
broken "two devices of one name" "3:9: there are two devices 'rail0': each needs" \
	"$one[device rail0]\naddresses = ::1\n"
broken "an interface in two devices" "4:14: 'lo' belongs to the device rail0 already" \
	"$one[device rail1]\ninterfaces = lo\n"

broken "a file that begins with a byte order mark" "1:2: there is no section 'devise'" \
	'\xef\xbb\xbf[devise a]\n'

# refused NAME PATTERN SETTING: the same of a setting's value.
refused() {
	rm -f "$tmp/started"
	ends 125 "$1" env "$3" "$verbatim" run -- touch "$tmp/started" || return
	grep -Eq "^verbatim: $2" "$tmp/output" && [ ! -e "$tmp/started" ]
	verdict "$1: refused" "the program is started, or not /$2/ is said" "$tmp/output"
}

printf '%bpersona = /none/p\n' "$one" >"$tmp/table"
refused "a persona's file that is not there" \
	"VERBATIM_DEVICES: the persona of the device rail0: /none/p: No such file" \
	VERBATIM_DEVICES="$tmp/table"
echo 'vender_id = 1' >"$tmp/p"
printf '%bpersona = %s\n' "$one" "$tmp/p" >"$tmp/table"
refused "a persona's file that is wrong" \
	"VERBATIM_DEVICES: the persona of the device rail0: $tmp/p:1:1: .*mean 'vendor_id'" \
	VERBATIM_DEVICES="$tmp/table"
refused "a list without a place" "VERBATIM_DEVICES: rail0: No such file.* list such as rail0=eth0" \
	VERBATIM_DEVICES=rail0
refused "a file without an end" "VERBATIM_DEVICES: /dev/zero: it has more than 65536 octets" \
	VERBATIM_DEVICES=/dev/zero
refused "a limit that is said twice" "VERBATIM_LIMITS .*: max_qp is said twice" \
	VERBATIM_LIMITS=max_qp=3,max_qp=4
refused "a limit with blanks" "VERBATIM_LIMITS .*: max_qp is .*, without blanks: max_qp=N" \
	"VERBATIM_LIMITS=max_qp = 3"
VERBATIM_DEVICES=rail0=eth77+10.9.9.9 "$verbatim" devices >"$tmp/output" 2>&1
grep -q "there is no interface eth77 here" "$tmp/output" &&
	grep -q "no interface that is up has the address 10.9.9.9" "$tmp/output"
verdict "verbatim devices says what a device lacks" "it does not" "$tmp/output"

# lowered NAME LIMIT SAID CMD ...: the program fails, and the log names the limit.
lowered() {
	local name=$1 limit=$2 said=$3
	shift 3
	! VERBATIM_LIMITS=$limit VERBATIM_LOG=$tmp/log timeout -k 5 "$limit_s" "${run[@]}" "$@" \
		>"$tmp/output" 2>&1 && grep -Eq "$said" "$tmp/log"
	verdict "$name" "the program does not fail, or the log lacks /$said/" "$tmp/output" \
		"$tmp/log"
	rm -f "$tmp/log"
}
if command -v ibv_srq_pingpong >/dev/null; then
	lowered "too many QPs" max_qp=4 'ibv_create_qp.*: max_qp is 4, and there are so many' \
		ibv_srq_pingpong -g 0 -q 16
	lowered "no SRQ at all" max_srq=0 'ibv_create_srq.*: max_srq is 0, and' \
		ibv_srq_pingpong -g 0
	lowered "a CQ that is too long" max_cqe=4 'cqe is [0-9]+; a CQ holds 1 to 4 completions' \
		ibv_srq_pingpong -g 0
else
	skip "limits that are too small" "no ibv_srq_pingpong"
fi

# --- the rails ---

rails_make 4 || skip_all "this system lets us make no veth"
address=10.80.0.1
on_client=("${on_b[@]}")

four=$tmp/four
rates=(25 40 100 200) # Gbit/s
for ((i = 0; i < rails; i++)); do
	printf '[device rail%s]\ninterfaces = r%s\nrate = %sGbit\n' $i $i ${rates[i]}
done >"$four"

# shared NAME COUNT OCTETS: each of the first so many rails carried half of its part or more.
shared() {
	local i rc=0
	for ((i = 0; i < $2; i++)); do
		has_sent $i $(($3 / $2 / 2)) || rc=1
		echo "r$i: $(($(sent $i) - before[i])) octets of $3"
	done >"$tmp/output"
	[ $rc = 0 ]
	verdict "$1: each rail carries its part" "one carries too little" "$tmp/output"
}

# rails_use COUNT: from now on; all of one rate, or UCX would give each its part by that.
rails_use() {
	local i
	export UCX_MAX_RNDV_RAILS=$1 UCX_MAX_EAGER_RAILS=$1
	export VERBATIM_DEVICES=rail0=r0 UCX_NET_DEVICES=rail0:1
	for ((i = 1; i < $1; i++)); do
		VERBATIM_DEVICES+=,rail$i=r$i
		UCX_NET_DEVICES+=,rail$i:1
	done
}

# --- what lists devices ---

VERBATIM_DEVICES=$four "${run[@]}" ibv_devinfo -v >"$tmp/output" 2>&1
awk -v rates="${rates[*]}" '
	BEGIN { n = split(rates, rate) }
	/hca_id:/ { i++; guid = "" }
	/node_guid:/ { if (seen[$2]++) bad = 1 }
	/GID\[/ && /::ffff:/ { if (index($0, "10.80." (i - 1) ".1")) good++; else bad = 1 }
	/active_width:|active_speed:/ { line[i] = line[i] " " $2 }
	END { for (k = 1; k <= i; k++) if (said[line[k]]++) bad = 1
	      exit bad || i != n || good != n }' "$tmp/output"
verdict "ibv_devinfo has four, with their own GUIDs, GIDs and rates" "not so" "$tmp/output"
VERBATIM_DEVICES=$four "$verbatim" devices >"$tmp/output" 2>&1
[ "$(grep -c '^rail[0-3] .*active' "$tmp/output")" = 4 ]
verdict "verbatim devices has four" "it has not" "$tmp/output"
[ "$(sed -n 's/^ *mac *//p' "$tmp/output" | sort -u | wc -l)" = 4 ]
verdict "... each with a MAC of its own" "they share one" "$tmp/output"

# --- striping ---

command -v ucx_perftest >/dev/null && [ "$VB_SANITIZE" != thread ] && ucx=1 || ucx=

# ucx_tag TEST SIZE COUNT
ucx_tag() {
	expect='^Final: +[0-9]' twins "UCX, $UCX_TLS by $UCX_MAX_RNDV_RAILS rails, $1" \
		ucx_perftest -p PORT -t "$1" -s "$2" -n "$3" -w 2
}

ucx_stripes() {
	local count
	for count in 2 4; do
		rails_use $count
		for UCX_TLS in rc_v ud_v; do
			sent_all
			ucx_tag tag_bw 1000000 20
			shared "UCX, $UCX_TLS" $count 20000000
		done
	done
}

export UCX_TLS
if [ -n "$ucx" ]; then
	ucx_stripes
else
	skip "UCX" "no ucx_perftest, or ThreadSanitizer, under which UCX crashes"
fi

if [ -n "$ucx" ] && command -v mpirun.openmpi >/dev/null; then
	mpi_hosts
	for count in 2 4; do
		rails_use $count
		sent_all
		UCX_TLS=rc_v,self mpi_run "Open MPI by $count rails" 2 2000000 \
			-H $address:1,10.80.0.2:1
		shared "Open MPI by $count rails" $count 2000000
	done
else
	skip "Open MPI" "no mpirun.openmpi, or no UCX"
fi

# --- what looks into a process with several devices ---

rails_use 2
if [ -n "$ucx" ]; then
	UCX_TLS=rc_v
	run_server=(env "VERBATIM_PCAP=$tmp/seen-%p" "VERBATIM_LOG=$tmp/seen.log" "${run[@]}")
	ucx_tag tag_bw 100000 20
	# A file for each row of the table; the connection manager's has none of it.
	for i in 0 1; do
		file=$(echo "$tmp"/seen-*[0-9])
		[ $i = 0 ] && file=${file%% *} || file=$(echo "$tmp"/seen-*.4)
		"$verbatim" explain "$file" >"$tmp/output" 2>&1
		grep -q "RC, .* at 10.80.$i.1" "$tmp/output" &&
			! grep -q "10.80.$((1 - i)).1" "$tmp/output"
		verdict "rail$i has a capture of its own" "it has not" "$tmp/output"
		sed -n "/counters of rail$i:/,/counters of rail[^$i]:/p" "$tmp/seen.log" |
			grep -q ': tx_frames [1-9]'
		verdict "the log counts rail$i by itself" "it does not" "$tmp/seen.log"
	done
	run_server=("$verbatim" trace -o "$tmp/trace.json" --)
	run_client=("$verbatim" check --)
	ucx_tag tag_lat 100000 20
	grep -q '"ph"' "$tmp/trace.json" && python3 -m json.tool "$tmp/trace.json" >/dev/null
	verdict "a timeline of two devices" "there is none" "$tmp/server"
	run_server=("${run[@]}") run_client=("${run[@]}")
fi

if "${run[@]}" /usr/bin/python3 -c 'import pyverbs.device' 2>/dev/null; then
	check "a child opens both devices, its parent goes on" "${run[@]}" /usr/bin/python3 -c '
import os
from pyverbs.device import Context

def active(contexts):
    return all(context.query_port(1).state == 4 for context in contexts)

def both():
    return [Context(name=name) for name in ("rail0", "rail1")]

parents = both()
child = os.fork()
if child == 0:
    os._exit(0 if active(both()) else 1)
assert os.waitpid(child, 0)[1] == 0
assert active(parents) and active(both())'
else
	skip "fork with two devices" "no python3-pyverbs"
fi

# --- rdma_cm by each rail ---

# pinged RAIL WHEN: what the server got counts. Either may end with a failure after that: a server
# is hung up on, and a client closes its channel while it waits there.
pinged() {
	local i=$1
	sent_all
	port=$((port + 1))
	"${run[@]}" rping -s -v -a 10.80.$i.1 -p $port -C 10 -S 60000 >"$tmp/server" 2>&1 &
	server=$!
	await listens $i
	timeout "$limit_s" "${on_b[@]}" "${run[@]}" rping -c -a 10.80.$i.1 -p $port -C 10 -S 60000 \
		>"$tmp/client" 2>&1
	process_wait $server "$limit_s" 2>/dev/null
	cut -c 1-80 "$tmp/server" >"$tmp/output"
	[ "$(grep -c '^server ping data: rdma-ping-' "$tmp/output")" = 10 ] &&
		has_sent $i 300000 && ! has_sent $((1 - i)) 300000
	verdict "rping by rail$i$2" "not so" "$tmp/client" "$tmp/output"
}

listens() {
	"$verbatim" status | grep -q "listens at 10.80.$1.1 port $port" || gone $server
}

if command -v rping >/dev/null; then
	pinged 0 ""
	pinged 1 ""
else
	skip "rping" "no rdmacm-utils"
fi

# --- a rail goes down ---

# begun RAIL: an endless ib_write_bw from B, whose client is in ${client[RAIL]}.
client=() server_of=()
begun() {
	port=$((port + 1))
	"${run[@]}" ib_write_bw -d "rail$1" -x 0 -F -p $port --run_infinitely -D 1 \
		>"$tmp/server$1" 2>&1 &
	server_of[$1]=$!
	port_wait $port $! || return
	"${on_b[@]}" "${run[@]}" ib_write_bw -d "rail$1" -x 0 -F -p $port --run_infinitely -D 1 \
		"$address" >"$tmp/client$1" 2>&1 &
	client[$1]=$!
}

# watched RAIL WORDS: ibv_asyncwatch has said them.
watched() {
	grep -q "$2" "$tmp/watch$1"
}

# Programs that use one rail each.
rail_down() {
	local i watch=()
	for i in 0 1; do
		"${run[@]}" stdbuf -oL ibv_asyncwatch -d "rail$i" >"$tmp/watch$i" 2>&1 &
		watch[i]=$!
		await watched $i 'async event FD'
	done
	sent_all
	begun 0 && begun 1 && await has_sent 0 2000000 && await has_sent 1 2000000
	verdict "data flow by both rails" "not so" "$tmp"/client[01] "$tmp"/server[01]
	"$verbatim" metrics >"$tmp/metrics"
	grep -q '_rx_frames_total{.*,device="rail0"} [1-9]' "$tmp/metrics" &&
		grep -q '_rx_frames_total{.*,device="rail1"} [1-9]' "$tmp/metrics"
	verdict "metrics tell the rails apart" "they do not" "$tmp/metrics"
	ip link set r0 down
	process_wait "${client[0]}" "$limit_s" 2>"$tmp/output"
	[ $? != 0 ] && grep -q 'Failed status 12' "$tmp/client0"
	verdict "what goes by the rail that is down ends with retries exhausted" "not so" \
		"$tmp/client0"
	await watched 0 'PORT_ERR .*port 1'
	verdict "its device has PORT_ERR" "it has not" "$tmp/watch0"
	"$verbatim" devices >"$tmp/output" 2>&1
	grep -q '^rail0 .*port 1 down' "$tmp/output" && grep -q '^rail1 .*active' "$tmp/output"
	verdict "it is down, and the other is active" "not so" "$tmp/output"
	sent_all
	await has_sent 1 2000000 && ! gone "${client[1]}"
	verdict "the other goes on" "it does not" "$tmp/client1" "$tmp/server1"
	ip link set r0 up
	await watched 0 'PORT_ACTIVE .*port 1'
	verdict "the rail comes up" "no PORT_ACTIVE" "$tmp/watch0"
	! grep -q PORT_ "$tmp/watch1"
	verdict "the other's device noticed nothing" "it did" "$tmp/watch1"
	kill "${client[1]}" "${server_of[@]}" "${watch[@]}" 2>/dev/null
	wait "${client[1]}" "${server_of[@]}" "${watch[@]}" 2>/dev/null
}

if command -v ib_write_bw >/dev/null; then
	rail_down
	command -v rping >/dev/null && pinged 0 ", which was down"
else
	skip "a rail goes down" "no perftest"
fi

# both_seen: status and metrics of one process that sends by two devices.
both_seen() {
	local i
	"$verbatim" status --json >"$tmp/status" && "$verbatim" metrics >"$tmp/metrics" || return
	for i in 0 1; do
		grep -q "\"device\": \"rail$i\"" "$tmp/status" &&
			grep -Eq "_rx_frames_total\{.*,device=\"rail$i\"\} [1-9]" "$tmp/metrics" ||
			return
	done
	"$verbatim" status >>"$tmp/status" && "$verbatim" top --once >"$tmp/top" || return
	for i in 0 1; do
		grep -Eq "^  pid [0-9]+ \(ucx_perftest\) rail$i: [1-9][0-9]* queue pair" \
			"$tmp/status" && grep -q " rail$i .*10.80.$i.2" "$tmp/top" || return
	done
}

# UCX cannot go on by the other rail: its endpoint ends.
ucx_down() {
	local server client
	export UCX_RC_TIMEOUT=50ms UCX_RC_RETRY_COUNT=3
	UCX_TLS=rc_v
	sent_all
	port=$((port + 1))
	"${run[@]}" ucx_perftest -p $port -t tag_bw -s 1000000 -n 100000000 >"$tmp/server" 2>&1 &
	server=$!
	port_wait $port $server
	"${on_b[@]}" "${run[@]}" ucx_perftest -p $port -t tag_bw -s 1000000 -n 100000000 $address \
		>"$tmp/client" 2>&1 &
	client=$!
	await has_sent 0 2000000 && await has_sent 1 2000000 && await both_seen
	verdict "status, metrics and top tell a process's devices apart" "not so" "$tmp/status" \
		"$tmp/metrics" "$tmp/top"
	! grep -v '^#' "$tmp/metrics" | sed 's/ [^ ]*$//' | sort | uniq -d | grep .
	verdict "no series is there twice" "one is" "$tmp/metrics"
	ip link set r0 down
	process_wait $server "$limit_s" 2>/dev/null
	[ $? != 0 ]
	verdict "UCX ends when a rail goes down" "it does not" "$tmp/server"
	kill $client 2>/dev/null
	wait $client 2>/dev/null
	grep -q 'transport retry counter exceeded' "$tmp/server" "$tmp/client"
	verdict "its endpoint has the error" "not so" "$tmp/server" "$tmp/client"
	ip link set r0 up
}
[ -z "$ucx" ] || ucx_down

# --- as an ordinary user ---

# Within a host; each device has an address of its own.
if [ -n "$ucx" ] && user_become; then
	on_client=("${on_server[@]}")
	"${users_host[@]}" ip addr add 127.0.0.7/32 dev lo
	address=127.0.0.1
	rails_use 2
	export VERBATIM_DEVICES=rail0=127.0.0.1,rail1=127.0.0.7
	check "ibv_devinfo as an ordinary user" "${on_client[@]}" "${run[@]}" ibv_devinfo -d rail1
	over=" (an ordinary user)"
	ucx_tag tag_bw 1000000 10
fi
suite_end
