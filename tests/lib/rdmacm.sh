# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Pairs of programs that meet by rdma_cm, whose ports the kernel does not show; source it after
# suite.sh.
#
#   cm NAME SERVER ... -- CLIENT ...       ok if both end well
#   cm_lasting NAME SERVER ... -- CLIENT ...   the same of a server that never ends by itself
#   server_begin CMD ..., client_run CMD ...   either alone

listens=$VB_BUILD/tests/rdmacm/liblistens.so
also=		# what else is preloaded
ready=		# what a server prints that does not listen but is there

# Datagrams of rsockets begin at a port of the kernel's.
is_there() {
	[ -e "$tmp/listens" ] || gone $server ||
		{ [ -n "$ready" ] && grep -q "$ready" "$tmp/server"; } ||
		[ -n "$("${on_server[@]}" ss -Hlun "sport = :$port")" ]
}

# server_begin CMD ...: until it is there. Sets $server; its output is $tmp/server.
server_begin() {
	rm -f "$tmp/listens"
	: >"$tmp/server"
	timeout -k 5 "$limit_s" "${on_server[@]}" "${run_server[@]}" env "LISTENS=$tmp/listens" \
		"LD_PRELOAD=${VB_PRELOAD:+$VB_PRELOAD:}$listens$also" stdbuf -oL "$@" \
		>"$tmp/server" 2>&1 &
	server=$!
	await is_there
	! gone $server
}

# client_run CMD ...: its output is $tmp/client.
client_run() {
	timeout -k 5 "$limit_s" "${on_client[@]}" "${run_client[@]}" env \
		"LD_PRELOAD=${VB_PRELOAD:+$VB_PRELOAD:}$listens$also" "$@" >"$tmp/client" 2>&1
}

# cm_run SERVER ... -- CLIENT ...: as pair_run, but that the port is rdma_cm's.
cm_run() {
	local -a words=()
	local client_rc server_rc
	port=$((port + 1))
	while [ "$1" != -- ]; do
		words+=("${1/PORT/$port}")
		shift
	done
	shift
	: >"$tmp/client"
	if ! server_begin "${words[@]}"; then
		process_wait $server 0
		why="the server does not listen: $(status_say $?)"
		return 1
	fi
	client_run "${@/PORT/$port}" 2>/dev/null
	client_rc=$?
	process_wait $server $((client_rc ? 1 : 10)) 2>/dev/null
	server_rc=$?
	why=
	[ $client_rc = 0 ] || why="client $(status_say $client_rc)"
	[ $server_rc = 0 ] || why="${why:+$why, }server $(status_say $server_rc)"
	[ -z "$why" ]
}

# cm NAME SERVER ... -- CLIENT ...: ok if both end well.
cm() {
	local name="$PREFIX: $1"
	shift
	pair_try 1 "" "$name" cm_run "$@"
}

# The server is ended once the client has.
lasting_run() {
	local -a words=()
	local rc
	port=$((port + 1))
	while [ "$1" != -- ]; do
		words+=("${1/PORT/$port}")
		shift
	done
	shift
	server_begin "${words[@]}"
	client_run "${@/PORT/$port}" 2>/dev/null
	rc=$?
	process_wait $server 0 2>/dev/null
	why="client $(status_say $rc)"
	return $rc
}

cm_lasting() {
	local name="$PREFIX: $1"
	shift
	pair_try 1 "" "$name" lasting_run "$@"
}
