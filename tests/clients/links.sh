#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# By which link two processes reach each other, and why: what the logs of both and `verbatim status`
# say of it, while they are connected.
. "$(dirname "$0")/../lib/suite.sh"

verbatim=$VB_BUILD/verbatim
export VERBATIM_HUB_IDLE_MS=60000
server_env=() client_env=()

both_in_status() {
	"$verbatim" status >"$tmp/status" 2>&1
	[ "$(grep -c ' -> ' "$tmp/status")" = 2 ]
}

# connected: two programs that go on until they are ended, $server and $client
connected() {
	local gid
	port=$((port + 1))
	gid=$(gid_index 127.0.0.1)
	: >"$tmp/server.log"
	: >"$tmp/client.log"
	env VERBATIM_LOG="$tmp/server.log" "${server_env[@]}" "${run[@]}" \
		ibv_rc_pingpong -g "$gid" -n 1000000000 -p $port >"$tmp/server" 2>&1 &
	server=$!
	port_wait $port $server || fail "$name" "the server does not listen" "$tmp/server"
	env VERBATIM_LOG="$tmp/client.log" "${client_env[@]}" "${run[@]}" \
		ibv_rc_pingpong -g "$gid" -n 1000000000 -p $port 127.0.0.1 >"$tmp/client" 2>&1 &
	client=$!
	await grep -q ' peer ' "$tmp/client.log"
	await grep -q ' peer ' "$tmp/server.log"
	# A hub handles what it is told in order: they have told it before they logged, or soon.
	await both_in_status
}

disconnected() {
	kill $server $client 2>/dev/null
	wait $server $client 2>/dev/null
}

# has NAME FILE PATTERN
has() {
	[ "$(grep -Ec -- "$3" "$tmp/$2")" = 1 ]
	verdict "$1" "not one line with /$3/" "$tmp/$2"
}

# links NAME SERVER_LOG CLIENT_LOG SERVER_STATUS CLIENT_STATUS: what each says
links() {
	name=$1
	connected
	has "$1, the server's log" server.log \
		"peer slot [0-9]+( \\(pid $client, ibv_rc_pingpong\\))?: $2\$"
	has "$1, the client's log" client.log \
		"peer slot [0-9]+( \\(pid $server, ibv_rc_pingpong\\))?: $3\$"
	has "$1, status of the server" status "^  pid $server \\(ibv_rc_pingpong\\) -> \
pid $client \\(ibv_rc_pingpong\\): ${4/CLIENT/$client}\$"
	has "$1, status of the client" status "^  pid $client \\(ibv_rc_pingpong\\) -> \
pid $server \\(ibv_rc_pingpong\\): ${5/CLIENT/$client}\$"
	disconnected
}

links "nothing is set" 'shared memory' 'shared memory' 'shared memory' 'shared memory'
client_env=(VERBATIM_LINK=udp)
links "VERBATIM_LINK" 'UDP, because VERBATIM_LINK=udp is set there' \
	'UDP, because VERBATIM_LINK=udp is set here' \
	'UDP, because VERBATIM_LINK=udp is set in pid CLIENT' \
	'UDP, because VERBATIM_LINK=udp is set in pid CLIENT'
client_env=(VERBATIM_PCAP="$tmp/pcap")
links "VERBATIM_PCAP" 'UDP, because VERBATIM_PCAP is set there' \
	'UDP, because VERBATIM_PCAP is set here' \
	'UDP, because VERBATIM_PCAP is set in pid CLIENT' \
	'UDP, because VERBATIM_PCAP is set in pid CLIENT'
client_env=(VERBATIM_FAULT=dup=1%)
links "VERBATIM_FAULT" 'UDP, because VERBATIM_FAULT is set there' \
	'UDP, because VERBATIM_FAULT is set here' \
	'UDP, because VERBATIM_FAULT is set in pid CLIENT' \
	'UDP, because VERBATIM_FAULT is set in pid CLIENT'
client_env=(VERBATIM_FAULT=dup=1% VERBATIM_LINK=shm)
links "VERBATIM_LINK=shm" 'shared memory' 'shared memory' 'shared memory' 'shared memory'
client_env=()

# A hub that is killed does not make them forget.
name="the next hub"
connected
kill -9 "$(hub_pid)"
await both_in_status
has "$name" status "pid $client \\(ibv_rc_pingpong\\) -> pid $server .*: shared memory\$"
disconnected
"$verbatim" status >"$tmp/status" 2>&1
check "nobody is linked any more" sh -c '! grep " -> " "$1"' sh "$tmp/status"

# Another network namespace, which is another host to us.
if [ "$(id -u)" = 0 ]; then
	host_new host
	ip link add v-a type veth peer name v-b
	ip link set v-b netns "$(echo "${host[*]}" | sed 's/.*--target \([0-9]*\).*/\1/')"
	ip address add 10.9.8.1/24 dev v-a
	ip link set v-a up
	"${host[@]}" ip address add 10.9.8.2/24 dev v-b
	"${host[@]}" ip link set v-b up
	: >"$tmp/client.log"
	on_server=("${host[@]}") run_client=(env VERBATIM_LOG="$tmp/client.log" "${run[@]}")
	pair "to another host" ibv_rc_pingpong -g "$(gid_index 10.9.8.2 "${host[@]}")" -p PORT -- \
		ibv_rc_pingpong -g "$(gid_index 10.9.8.1)" -p PORT 10.9.8.2
	has "to another host, the log" client.log \
		'peer 10\.9\.8\.2: UDP, because the address is not in this network namespace$'
fi
suite_end
