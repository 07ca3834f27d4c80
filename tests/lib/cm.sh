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
	: >"$tmp/listens"
	chmod a+w "$tmp/listens"
}

# Datagrams of rsockets begin at a port of the kernel's.
is_there() {
	[ -s "$tmp/listens" ] || gone $server ||
		{ [ -n "$ready" ] && grep -q "$ready" "$tmp/server"; } ||
		[ -n "$("${on_server[@]}" ss -Hlun "sport = :$port")" ]
}

# server_begin CMD ...: until it is there. Sets $server; its output is $tmp/server.
server_begin() {
	listens_reset
	: >"$tmp/server"
	timeout -k 5 "$limit_s" "${on_server[@]}" "${run_server[@]}" env "LISTENS=$tmp/listens" \
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
	if [ -z "$why" ] && [ -n "$expect" ] && ! grep -Eq -- "$expect" "$tmp/client"; then
		why="the client does not print /$expect/"
	fi
	[ -z "$why" ]
}

# cm NAME SERVER ... -- CLIENT ...: ok if both end well.
cm() {
	local name="$PREFIX: $1"
	shift
	pair_try 1 "" "$name" cm_run "$@"
}

# endless_run SERVER ... -- CLIENT ...: the server never ends by itself.
endless_run() {
	local -a words=()
	local rc
	port=$((port + 1))
	while [ "$1" != -- ]; do
		words+=("${1/PORT/$port}")
		shift
	done
	shift
	server_begin "${words[@]}"
	client_run "${@/PORT/$port}"
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

# cm_hosts CMD ...: between two hosts; cables have to be there.
cm_hosts() {
	local family
	for family in 4 6; do
		PREFIX="two hosts IPv$family"
		hosts_use $family
		at=a$family from=b$family
		at=${!at} from=${!from}
		"$@"
	done
	on_client=()
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
		cm_hosts "$@"
	else
		skip "two hosts" "this system lets us make no veth"
	fi
}
