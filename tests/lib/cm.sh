# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Programs that connect by rdma_cm, whose ports no tool of the kernel's shows; source it after
# suite.sh and netns.sh.
#
#   cm NAME SERVER ... -- CLIENT ...   as pair, but that the port is rdma_cm's
#   cm_run SERVER ... -- CLIENT ...    as pair_run, of the same
#   cm_endless, endless_run            the same, of a server that never ends
#   cm_places CMD ...                  wherever two such programs may meet; see there

listens=$VB_BUILD/tests/rdmacm/liblistens.so
cm_said=$tmp/listens	# where the server says that it listens: a path on its own host
cm_patience_s=60	# so long a server may take longer than its client
also=		# what else is preloaded
within=()	# what programs run in, once that is preloaded
ready=		# what a server prints that does not listen but is there
at=127.0.0.1	# where the server is
from=$at	# where the client is
here=(127.0.0.1 ::1)	# what at is if both are on one host

preload_say() {
	echo "LD_PRELOAD=${VB_PRELOAD:+$VB_PRELOAD:}$listens$also"
}

# Whoever the server is, it may write there.
listens_reset() {
	"${on_server[@]}" sh -c ': >"$0"; chmod a+w "$0"' "$cm_said"
}

# Datagrams of rsockets begin at a port of the kernel's.
is_there() {
	"${on_server[@]}" test -s "$cm_said" || gone $server ||
		{ [ -n "$ready" ] && grep -q "$ready" "$tmp/server"; } ||
		[ -n "$("${on_server[@]}" ss -Hlun "sport = :$port" 2>/dev/null)" ]
}

# server_begin CMD ...: until it is there. Sets $server; its output is $tmp/server.
server_begin() {
	listens_reset
	: >"$tmp/server"
	: >"$tmp/client"
	timeout -k 5 "$limit_s" "${on_server[@]}" "${run_server[@]}" env "LISTENS=$cm_said" \
		"$(preload_say)" "${within[@]}" stdbuf -oL "$@" >"$tmp/server" 2>&1 &
	server=$!
	await is_there
	! gone $server
}

# client_run CMD ...: its output is $tmp/client.
client_run() {
	timeout -k 5 "$limit_s" "${on_client[@]}" "${run_client[@]}" env \
		"$(preload_say)" "${within[@]}" "$@" >"$tmp/client" 2>&1
}

cm_run() {
	local -a server_words client_words
	local client_rc
	sides_split "$@"
	if ! server_begin "${server_words[@]}"; then
		process_wait $server 0
		why="the server does not listen: $(status_say $?)"
		return 1
	fi
	client_run "${client_words[@]}" 2>/dev/null
	client_rc=$?
	process_wait $server $((client_rc ? 1 : cm_patience_s)) 2>/dev/null
	sides_judge $client_rc $?
}

# cm NAME SERVER ... -- CLIENT ...: ok if both end well.
cm() {
	local name="$PREFIX: $1"
	shift
	pair_try 1 "" "$name" cm_run "$@"
}

# endless_run SERVER ... -- CLIENT ...: the server never ends by itself.
endless_run() {
	local -a server_words client_words
	local rc
	sides_split "$@"
	server_begin "${server_words[@]}"
	client_run "${client_words[@]}"
	rc=$?
	process_wait $server 0 2>/dev/null
	why="client $(status_say $rc)"
	return $rc
}

# cm_endless NAME SERVER ... -- CLIENT ...: ok if the client ends well.
cm_endless() {
	local name="$PREFIX: $1"
	shift
	pair_try 1 "" "$name" endless_run "$@"
}

# has_words WORDS: $client has printed them, or has ended.
has_words() {
	gone "$client" || grep -q "$1" "$tmp/client"
}

# cm_here WHERE CMD ...: both on one host, by each family.
cm_here() {
	for at in "${here[@]}"; do
		PREFIX="$1 $at" from=$at
		"${@:2}"
	done
}

# cm_user CMD ...: as an ordinary user.
cm_user() {
	local -a on_server=() on_client=()
	if user_become; then
		[ ${#users_host[@]} = 0 ] || host_address "${users_host[@]}"
		cm_here "an ordinary user" "$@"
	else
		skip "as an ordinary user" "nobody cannot read $VB_BUILD"
	fi
}

cm_bad="loss=1%,dup=1%,reorder=3%,seed=3"

# cm_places CMD ...: runs it on one host by each link, as an ordinary user, over a network that
# loses, repeats and swaps, and between two hosts; all that by IPv4 and by IPv6, as $at says.
cm_places() {
	cm_here "one host" "$@"
	link_use udp
	cm_here "one host" "$@"
	unset VERBATIM_LINK
	over=
	cm_user "$@"
	export VERBATIM_FAULT=$cm_bad
	cm_here "bad network" "$@"
	unset VERBATIM_FAULT
	if [ ${#on_b[@]} != 0 ]; then
		hosts_each "$@"
	else
		skip "two hosts" "this system lets us make no veth"
	fi
}
