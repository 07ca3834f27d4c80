# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What every suite of tests/clients sources first. It gives the suite a network namespace of its
# own ("host A": own port 4791, own hub), one place for temporary files, and the words below beside
# those of tap.sh:
#
#   check NAME CMD ...       ok if the command succeeds, else its output is shown
#   ends STATUS NAME CMD ... runs it, its output to $tmp/output; if its status is another one, fails
#   await CMD ...            until it succeeds; gone PID: that process is not there any more
#   pair NAME SERVER ... -- CLIENT ...   runs both on the NIC; see there
#   twins NAME CMD ...       a pair: CMD is the server, CMD $address the client
#   gid_index ADDRESS [ON ...]           the index of an address in the GID table
#   hub_pid [ON ...]                     the pid of the hub, as `verbatim hub status` has it
#   link_use udp                         from now on by that link, and results say so
#   skip_all WHY             ends a suite for which something is missing
#
# The namespace is nobody's but this process's and its children's: it needs no name and no removal.
# An ordinary user gets one through a user namespace; where that is refused, all is skipped.

if [ -z "${VB_HOST_A:-}" ]; then
	export VB_HOST_A=1
	unshare --net true 2>/dev/null && exec unshare --net -- "$0" "$@"
	unshare --user --map-root-user --net true 2>/dev/null &&
		exec unshare --user --map-root-user --net -- "$0" "$@"
	echo "1..0 # SKIP this system lets us make no network namespace"
	exit 0
fi

set -u
: "${VB_ROOT:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
: "${VB_BUILD:=$VB_ROOT/build}" "${VB_RUN:=$VB_BUILD/verbatim run --}"
: "${VB_SANITIZE:=}" "${VB_PRELOAD:=}" "${VB_LONG:=}"
export VB_ROOT VB_BUILD VB_RUN VB_SANITIZE VB_PRELOAD VB_LONG
# shellcheck disable=SC2206 # VB_RUN is a command line
run=($VB_RUN)
if [ ! -x "$VB_BUILD/verbatim" ]; then
	echo "not ok - all: there is no $VB_BUILD/verbatim (make; or say VB_BUILD=...)"
	exit 1
fi
tmp=$(mktemp -d "${TMPDIR:-/tmp}/verbatim-test.XXXXXX")
chmod 755 "$tmp"
. "$VB_ROOT/tests/lib/tap.sh"
limit_s=60		# of a single program; a sanitizer makes it slower
[ -z "$VB_SANITIZE" ] || limit_s=180
port=19000		# the last one that a pair met at
address=127.0.0.1	# where the client of twins finds the server
expect=			# what the client's output has to match, if anything
on_server=() on_client=()	# what puts a program on another host or makes it another user
run_server=("${run[@]}") run_client=("${run[@]}")	# what puts a program on the NIC

ip link set lo up

suite_cleanup() {
	local pids
	pids=$(jobs -p)
	# shellcheck disable=SC2086 # a list
	[ -z "$pids" ] || kill $pids 2>/dev/null
	rm -rf "$tmp"
}
trap suite_cleanup EXIT
trap 'exit 130' INT TERM

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

# Within a host programs share memory unless they are told otherwise; between hosts it is UDP.
link_use() {
	export VERBATIM_LINK=$1
	over=" ($1)"
}

ends() {
	local status=$1 name=$2 rc
	shift 2
	timeout -k 5 "$limit_s" "$@" >"$tmp/output" 2>&1
	rc=$?
	[ $rc = "$status" ] || fail "$name" "$(status_say $rc), not $status: $*" "$tmp/output"
	return $((rc != status))
}

check() {
	ends 0 "$@" && ok "$1"
}

# Words for an exit status: those that a reader has to look up otherwise.
status_say() {
	case $1 in
	124) echo "did not end within $limit_s s" ;;
	1[3-5][0-9]) echo "was ended by signal $(($1 - 128))" ;;
	*) echo "exit status $1" ;;
	esac
}

# ended_well NAME STATUS [FILE ...]: ok if that exit status is 0.
ended_well() {
	local why
	why=$(status_say "$2")
	[ "$2" = 0 ]
	verdict "$1" "$why" "${@:3}"
}

# nap SECONDS: sleeps without a process of its own.
exec {nap_from}<> <(:)
nap() {
	read -rt "$1" -u "$nap_from"
}

await() {
	local i
	for ((i = 0; i < limit_s * 50; i++)); do
		"$@" && return
		nap 0.02
	done
	return 1
}

gone() {
	! kill -0 "$1" 2>/dev/null
}

# port_wait PORT PID: until somebody listens there, or the process has ended.
port_wait() {
	local i
	for ((i = 0; i < limit_s * 100; i++)); do
		[ -n "$("${on_server[@]}" ss -Hltn "sport = :$1")" ] && return 0
		kill -0 "$2" 2>/dev/null || return 1
		nap 0.01
	done
	return 1
}

# process_wait PID SECONDS: until it has ended by itself; else it is made to.
process_wait() {
	local i
	for ((i = 0; i < $2 * 200; i++)); do
		kill -0 "$1" 2>/dev/null || break
		nap 0.005
	done
	kill "$1" 2>/dev/null
	wait "$1"
}

# sides_split SERVER ... -- CLIENT ...: into the caller's server_words and client_words. The word
# PORT in either stands for a port of their own.
sides_split() {
	server_words=()
	port=$((port + 1))
	while [ "$1" != -- ]; do
		server_words+=("${1/PORT/$port}")
		shift
	done
	shift
	client_words=("${@/PORT/$port}")
}

# sides_judge CLIENT SERVER: both ended with 0, and the client prints what is expected. Says on $why
# what went wrong.
sides_judge() {
	why=
	[ "$1" = 0 ] || why="client $(status_say "$1")"
	[ "$2" = 0 ] || why="${why:+$why, }server $(status_say "$2")"
	if [ -z "$why" ] && [ -n "$expect" ] && ! grep -Eq -- "$expect" "$tmp/client"; then
		why="the client does not print /$expect/"
	fi
	[ -z "$why" ]
}

# pair_run SERVER ... -- CLIENT ...: as sides_split and sides_judge have it; the two sides' outputs
# are $tmp/server and $tmp/client.
pair_run() {
	local -a server_words client_words
	local pid client_rc
	sides_split "$@"
	timeout -k 5 "$limit_s" "${on_server[@]}" "${run_server[@]}" "${server_words[@]}" \
		>"$tmp/server" 2>&1 &
	pid=$!
	: >"$tmp/client"
	if ! port_wait "$port" $pid; then
		process_wait $pid 0
		why="the server does not listen: $(status_say $?)"
		return 1
	fi
	timeout -k 5 "$limit_s" "${on_client[@]}" "${run_client[@]}" "${client_words[@]}" \
		>"$tmp/client" 2>&1
	client_rc=$?
	# A server whose client failed may wait for ever.
	process_wait $pid $((client_rc ? 1 : limit_s)) 2>/dev/null
	sides_judge $client_rc $?
}

# pair_try TIMES PATTERN NAME CMD ...: ok if both sides end well; CMD is pair_run, or ends in it. If
# they do not, and the output of either has PATTERN, it is tried again, so many times in all.
pair_try() {
	local times=$1 pattern=$2 name=$3 why
	shift 3
	while ! "$@"; do
		if ((--times == 0)) || ! grep -q -- "$pattern" "$tmp/server" "$tmp/client"; then
			fail "$name" "$why" "$tmp/server" "$tmp/client"
			return
		fi
	done
	ok "$name"
}

# pair NAME SERVER ... -- CLIENT ...: ok if both sides end well.
pair() {
	local name=$1
	shift
	pair_try 1 "" "$name" pair_run "$@"
}

# twins NAME CMD ...: most clients are servers if no address stands behind their options.
twins() {
	local name=$1
	shift
	pair "$name" "$@" -- "$@" "$address"
}

# gid_index ADDRESS [ON ...]: on the host that ON leads to.
gid_index() {
	local address=$1
	shift
	"$@" "$VB_BUILD/verbatim" devices |
		awk -v a="$address" '$1 == "gid" && $3 == a { print $2 }'
}

# hub_pid [ON ...]: on the host, or as the user, that ON leads to; nothing if there is no hub.
hub_pid() {
	"$@" "$VB_BUILD/verbatim" hub status | sed -n 's/^hub *pid \([^,]*\),.*/\1/p'
}

# is_elsewhere PID: its network namespace is no longer ours.
is_elsewhere() {
	[ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

# host_new NAME: another network namespace, with lo up; NAME becomes the array of words that lead a
# command there. It lives as long as a sleeping process, which ends with the suite.
host_new() {
	local -n lead=$1
	local pid
	unshare --net sleep infinity &
	pid=$!
	await is_elsewhere $pid
	lead=(nsenter --target $pid --net --)
	"${lead[@]}" ip link set lo up
}

# From now on both sides run as an ordinary user, on a host of his: the one port 4791 that a host
# has belongs to the user whose hub took it. Where we are an ordinary user already, nobody else is
# needed: root of a user namespace is that to everybody outside. Sets $users_host, as host_new does.
users_host=()
user_become() {
	local -a nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --)
	[ "$(awk '{ print $3 }' /proc/self/uid_map)" = 4294967295 ] || return 0
	"${nobody[@]}" test -r "$VB_BUILD/lib/libibverbs.so.1" || return 1
	host_new users_host
	on_server=("${users_host[@]}" "${nobody[@]}")
	on_client=("${on_server[@]}")
}
