# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Containers of one pod: they share this suite's network namespace and nothing else. Source it after
# suite.sh.
#
#   pod_new NAME [UID]       a container; NAME becomes the words that lead a command into it, as
#                            that user and without capabilities; pod_root: those for root.
#                            UID root: with what a runtime leaves to root, or all without a filter
#   pod_rootless NAME UID    the same in a user namespace of its own, where that is one's uid
#   pod_end NAME             ends it, with all its processes
#   pods_use SERVER CLIENT   from now on pairs run in these two

pod_filter=("$VB_BUILD/tests/verbs/pod_filter" --) # with options; or none
pod_users=$(awk '{ print $3 }' /proc/self/uid_map)	# how many there are
pod_shm=64		# MiB of /dev/shm in the next one; 0: nobody can write there
pod_tmpfs=		# a folder at which it has a tmpfs besides
declare -A pod_pid	# the process that a container lives as long as

# Runs as process 1 of the container.
# shellcheck disable=SC2016 # another shell's
pod_init='
	mount --make-rprivate / &&
	mount -t proc proc /proc &&
	mount -t tmpfs -o size="$2"m,mode=1777 shm /dev/shm &&
	case $2 in 0) mount -o remount,ro /dev/shm ;; esac &&
	if [ -n "$3" ]; then mount -t tmpfs -o mode=1777 folder "$3"; fi &&
	mount -o remount,bind,ro / &&
	hostname "$1" && echo ready && exec sleep infinity'

# pod_user UID: the words that make root that user, with nothing left of root. Root of a user
# namespace has nobody else's uid to give, and is an ordinary user to everybody outside.
pod_user() {
	if [ "$1" = root ]; then
		user=()
		[ ${#pod_filter[@]} = 0 ] || user=(setpriv --no-new-privs --inh-caps=-all
			--bounding-set="-all,+chown,+dac_override,+fowner,+kill,+setgid,+setuid" --)
		return
	fi
	local -a ids=(--reuid="$1" --regid="$1" --clear-groups)
	[ "$pod_users" != 1 ] || ids=()
	user=(setpriv "${ids[@]}" --no-new-privs --bounding-set=-all --inh-caps=-all --)
}

# pod_make NAME MAKER ... AS ENTRY ...: MAKER leads the command that makes it, ENTRY the one that
# runs something in it.
pod_make() {
	local -n lead=$1
	local name=$1 pid
	local -a maker=()
	shift
	while [ "$1" != AS ]; do
		maker+=("$1")
		shift
	done
	shift
	: >"$tmp/pod"
	"${maker[@]}" --fork --kill-child --pid --ipc --mount --uts -- \
		sh -c "$pod_init" pod "${name//_/-}" "$pod_shm" "$pod_tmpfs" >"$tmp/pod" 2>&1 &
	pid=$!
	await test -s "$tmp/pod"
	why=$(<"$tmp/pod")
	[ "$why" = ready ] || return 1
	pod_pid[$name]=$pid
	pid=$(pgrep -P "$pid")
	pod_root=(nsenter --target "$pid" --pid --ipc --mount --uts --)
	lead=(nsenter --target "$pid" --pid --ipc --mount --uts "$@" "${pod_filter[@]}")
}

# As daemons make it that run as root.
pod_new() {
	local -a user
	pod_user "${2:-65534}"
	pod_make "$1" unshare AS -- "${user[@]}"
}

# As an ordinary user makes it: root of a user namespace, and in that UID of another.
pod_rootless() {
	local -a user
	pod_user 65534
	pod_make "$1" "${user[@]}" unshare --user --map-root-user \
		AS --user --setuid 0 --setgid 0 -- unshare --user --map-user="$2" --map-group="$2" \
		-- setpriv --no-new-privs --bounding-set=-all --inh-caps=-all --
}

pod_end() {
	kill -KILL "${pod_pid[$1]}"
	wait "${pod_pid[$1]}" 2>/dev/null
}

pods_use() {
	local -n server=$1 client=$2
	on_server=("${server[@]}")
	on_client=("${client[@]}")
}
