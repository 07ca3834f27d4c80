# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Pairs of programs that find each other by rdma_cm; source it after suite.sh. No tool of the
# kernel's shows rdma_cm's ports, so servers are made to say when they listen (tests/lib/listens.c).

cm_module=$VB_BUILD/tests/rdmacm/liblistens.so
cm_said=$tmp/listens	# where the server says so: a path on its own host
also=		# what else is preloaded
ready=		# what a server prints that does not listen but is there

is_there() {
	"${on_server[@]}" test -e "$cm_said" || gone $server ||
		{ [ -n "$ready" ] && grep -q "$ready" "$tmp/server"; }
}

# server_begin CMD ...: until it is there. Sets $server; its output is $tmp/server.
server_begin() {
	"${on_server[@]}" rm -f "$cm_said"
	: >"$tmp/server"
	timeout -k 5 "$limit_s" "${on_server[@]}" "${run_server[@]}" env "LISTENS=$cm_said" \
		"LD_PRELOAD=${VB_PRELOAD:+$VB_PRELOAD:}$cm_module$also" stdbuf -oL "$@" \
		>"$tmp/server" 2>&1 &
	server=$!
	await is_there
	! gone $server
}

# client_run CMD ...: its output is $tmp/client.
client_run() {
	timeout -k 5 "$limit_s" "${on_client[@]}" "${run_client[@]}" env \
		"LD_PRELOAD=${VB_PRELOAD:+$VB_PRELOAD:}$cm_module$also" "$@" >"$tmp/client" 2>&1
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
	process_wait $server $((client_rc ? 1 : cm_patience_s)) 2>/dev/null
	server_rc=$?
	why=
	[ $client_rc = 0 ] || why="client $(status_say $client_rc)"
	[ $server_rc = 0 ] || why="${why:+$why, }server $(status_say $server_rc)"
	[ -z "$why" ]
}
cm_patience_s=10	# so long a server may take longer than its client

# cm NAME SERVER ... -- CLIENT ...: ok if both end well.
cm() {
	local name="$PREFIX: $1"
	shift
	pair_try 1 "" "$name" cm_run "$@"
}

# has_words WORDS: the client has printed them, or has ended.
has_words() {
	gone "$client" || grep -q "$1" "$tmp/client"
}
