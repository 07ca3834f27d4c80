#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Why a device does not open, in words that are true: each cause is made, and what the log and
# `verbatim devices` say is compared with it.
. "$(dirname "$0")/../lib/suite.sh"

verbatim=$VB_BUILD/verbatim
refuse=$VB_BUILD/tests/verbs/refuse
export VERBATIM_HUB_IDLE_MS=60000

# says NAME STATUS WORDS CMD ...: what it prints has these words, literally, in one line
says() {
	ends "$2" "$1" "${@:4}" || return
	if ! grep -Fq -- "$3" "$tmp/output"; then
		fail "$1" "does not say: $3" "$tmp/output"
	elif grep -q 'taken by another user' "$tmp/output"; then
		fail "$1" "blames another user" "$tmp/output"
	else
		ok "$1"
	fi
}

# why NAME WORDS CMD ...: CMD opens the device, which fails for that reason
why() {
	local name=$1 words=$2
	shift 2
	says "$name" 1 "the device does not open: $words" "$@"
}

# Kill the hub, and wait until its name is free.
hub_kill() {
	local pid
	pid=$(hub_pid)
	[ -n "$pid" ] || return 0
	kill -9 "$pid"
	await gone "$pid"
}

# A program that has the device open, until it is ended: $watcher.
watch() {
	: >"$tmp/watch"
	"${run[@]}" ibv_asyncwatch >"$tmp/watch" 2>&1 &
	watcher=$!
	await grep -q 'event FD' "$tmp/watch"
}

# A sanitizer has calls and descriptors of its own, and reads /proc.
bare_build() {
	[ -z "$VB_SANITIZE" ] || skip "$1" "this build has a sanitizer"
	[ -z "$VB_SANITIZE" ]
}

# --- the limit on descriptors: at whichever call it is reached, and in the hub ---

bare_build "limits on descriptors" && for n in 8 9 10 11 12 13 14 16 18 20 24 28 30 32 34; do
	# shellcheck disable=SC2016 # for the inner shell
	says "ulimit -n $n" 1 "no descriptor left: RLIMIT_NOFILE is $n; raise it: ulimit -n" \
		sh -c 'ulimit -n "$1" && exec "$2" devices' sh $n "$verbatim"
done

# --- calls that a filter refuses: in the program, and in the hub, which inherits the filter ---

# CALL, and what it is called by. Where the hub is the first to make it, it tells.
hint='; a seccomp filter (of a container or a sandbox) may refuse this call'
refused() {
	local call=$1 words=$2 error
	for error in EPERM ENOSYS; do
		text='Operation not permitted'
		[ $error = EPERM ] || text='Function not implemented'
		why "$call refused with $error" "$words: $text$hint" \
			"$refuse" "$call=$error" -- "$verbatim" devices
		hub_kill
	done
}

if ! bare_build "refused calls"; then
	:
elif "$refuse" pipe2=EPERM -- true; then
	refused memfd_create memfd_create
	refused timerfd_create timerfd_create
	refused timerfd_settime timerfd_settime
	refused eventfd2 eventfd
	refused epoll_create1 epoll_create1
	refused epoll_ctl epoll_ctl
	refused socketpair socketpair
	refused ftruncate ftruncate
	refused connect connect
	refused sendmsg sendmsg
	refused socket getifaddrs
	refused listen 'the hub: listen'
	refused accept4 'the hub: accept4'
	refused setsockopt 'the hub: setsockopt'
	why "clone refused with EPERM" "clone: Operation not permitted$hint (to start $VB_BUILD/" \
		"$refuse" clone=EPERM -- "$verbatim" devices
	why "clone3 refused with EPERM" "pthread_create: Operation not permitted$hint" \
		"$refuse" clone3=EPERM -- "$verbatim" devices
	hub_kill
	says "pipe2 refused" 0 verbatim0 "$refuse" pipe2=EPERM -- "$verbatim" devices
	hub_kill
else
	skip "refused calls" "this kernel lets us make no filter"
fi

# --- no hub to start ---

printf 'neither a program nor a script' >"$tmp/no-program"
chmod +x "$tmp/no-program"
VERBATIM_HUB=$tmp/no-program why "a hub that cannot be executed" \
	"execve: Exec format error (to start $tmp/no-program)" "$verbatim" devices
VERBATIM_LOG='' VERBATIM_HUB=/nowhere why "a hub that is not there, and an empty log" \
	"there is no verbatimd to start; VERBATIM_HUB is not a program: /nowhere" \
	"$verbatim" devices
VERBATIM_HUB=/nowhere why "a hub that is not there" \
	"there is no verbatimd to start; VERBATIM_HUB is not a program: /nowhere" \
	"$verbatim" devices
ended=$(realpath /bin/false)
VERBATIM_HUB=/bin/false why "a hub that ends" \
	"the hub: it does not answer; what was started, and ended without a word, is $ended" \
	"$verbatim" devices
# As on a busy machine: slower than a call's deadline. Others are started meanwhile.
printf '#!/bin/sh\necho $$ >>%s.pids\nsleep 4\nexec %s/verbatimd\n' "$tmp/slow" "$VB_BUILD" \
	>"$tmp/slow"
chmod +x "$tmp/slow"
VERBATIM_HUB=$tmp/slow says "a hub that starts slowly is waited for" 0 verbatim0 "$verbatim" devices
xargs kill -9 <"$tmp/slow.pids" 2>/dev/null
hub_kill

# --- port 4791 is taken ---

python3 -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 4791))
print("bound", flush=True)
time.sleep(600)' >"$tmp/bound" &
other=$!
await test -s "$tmp/bound"
taken='UDP port 4791 is taken here by'
words="$taken another program of this user (uid $(id -u)): pid $other (python3)"
why "another program has the port" "$words" "$verbatim" devices
says "status, with another program" 0 "port     $words" "$verbatim" status
kill $other
wait $other 2>/dev/null

watch
kill -STOP $watcher
hub_kill
words="$taken sockets of a hub that has died; programs of this user hold them, and have not \
handed them on: pid $watcher (ibv_asyncwatch, stopped); let them go on (kill -CONT), or end them"
why "a dead hub, its program stopped" "$words" "$verbatim" devices
says "status, with a dead hub" 0 "port     $words" "$verbatim" status
kill -CONT $watcher
says "its program goes on" 0 verbatim0 "$verbatim" devices
kill $watcher
wait $watcher 2>/dev/null

hub=$(hub_pid)
kill -STOP "$hub"
why "a hub that is stopped" "the hub, pid $hub: it does not answer, because it is stopped" \
	"$verbatim" devices
kill -CONT "$hub"
hub_kill

# --- other users, and the same one in another user namespace ---

own=$'`unshare -Urn` starts a shell with a network namespace of its own, where '
own+=$'`ip link set lo up` comes first'
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --)
inside=(unshare --user --map-root-user --)
if [ "$(awk '{ print $3 }' /proc/self/uid_map)" = 4294967295 ] &&
	"${nobody[@]}" test -x "$verbatim" 2>/dev/null && "${inside[@]}" true; then
	check "the hub of uid 0" "$verbatim" devices
	hub=$(hub_pid)
	one='a network namespace has room for one user; '$own
	why "uid 65534 beside uid 0" "$taken the hub (pid $hub) of uid 0; $one" \
		"${nobody[@]}" "$verbatim" devices
	why "uid 0 of a user namespace beside uid 0" \
		"the name of this user's hub, @verbatim-hub-0-" "${nobody[@]}" "${inside[@]}" \
		"$verbatim" devices
	says "whose name it is" 1 "is taken by a user of another user namespace, without a number \
in this one (pid $hub); $own" "${nobody[@]}" "${inside[@]}" "$verbatim" devices
	hub_kill
	check "the hub of uid 65534" "${nobody[@]}" "$verbatim" devices
	hub=$(hub_pid "${nobody[@]}")
	same='run both in one user namespace, or in two network namespaces; '$own
	why "uid 0 of a user namespace beside the same user" "$taken the hub (pid $hub) of this \
user (uid 0) in another user namespace, where the uid is 65534 and not 0: $same" \
		"${nobody[@]}" "${inside[@]}" "$verbatim" devices
	says "status there" 0 "port     $taken the hub (pid $hub) of this user" \
		"${nobody[@]}" "${inside[@]}" "$verbatim" status
	kill -9 "$hub"
	check "the hub of uid 0 of a user namespace" \
		"${nobody[@]}" "${inside[@]}" "$verbatim" devices
	hub=$(hub_pid "${nobody[@]}" "${inside[@]}")
	why "the same user beside uid 0 of a user namespace" "$taken the hub (pid $hub) of this \
user (uid 65534) in another user namespace, where the uid is 0 and not 65534: $same" \
		"${nobody[@]}" "$verbatim" devices
	kill -9 "$hub"
else
	skip "other users" "there are none"
fi

# --- without /proc ---

bare=(unshare --mount -- sh -c 'mount -t tmpfs none /proc && exec "$@"' sh)
if ! bare_build "without /proc"; then
	:
elif "${bare[@]}" true 2>/dev/null; then
	says "devices without /proc" 0 verbatim0 "${bare[@]}" "$verbatim" devices
	says "run without /proc" 0 verbatim0 "${bare[@]}" "$verbatim" run -- ibv_devinfo
	says "run without /proc, by PATH" 0 verbatim0 env "PATH=$VB_BUILD:$PATH" "${bare[@]}" \
		verbatim run -- ibv_devinfo
	hub=$(hub_pid)
	kill -STOP "$hub"
	why "a hub that is stopped, without /proc" "the hub, pid $hub: it does not answer" \
		"${bare[@]}" "$verbatim" devices
	kill -CONT "$hub"
	hub_kill
else
	skip "without /proc" "we may not mount anything"
fi

# --- what was done is said ---

says "an empty log" 0 "hub      not running" "$verbatim" hub log
check "devices" "$verbatim" devices
says "an empty log, with a hub" 0 "hub log: nothing has happened to a receive QP of XRC so far" \
	"$verbatim" hub log
hub=$(hub_pid)
says "stop" 0 "the hub, pid $hub, has stopped; nobody was using it" "$verbatim" hub stop
watch
hub=$(hub_pid)
says "stop by force" 0 "the hub, pid $hub, has stopped; its clients (1) start another" \
	"$verbatim" hub stop --force
kill $watcher
wait $watcher 2>/dev/null
suite_end
