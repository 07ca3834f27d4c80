#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Which process it is that holds a slot, seen from another PID namespace than its own, or than the
# hub's: by a number that is its own where one looks, or by one that is nobody else's.
. "$(dirname "$0")/../lib/suite.sh"

verbatim=$VB_BUILD/verbatim
export VERBATIM_HUB_IDLE_MS=60000
apart=(unshare --pid --fork --mount-proc --kill-child --)

if ! "${apart[@]}" true 2>/dev/null; then
	skip_all "we may make no PID namespace"
	suite_end
fi

# says NAME WORDS CMD ...: it succeeds, and prints these words in one line
says() {
	ends 0 "$1" "${@:3}" || return
	tr -s ' ' <"$tmp/output" | grep -Fq -- "$2"
	verdict "$1" "does not say: $2" "$tmp/output"
}

# watch FILE CMD ...: a program that waits until its device fails, started by CMD; its pid: $watcher
watch() {
	local out=$1
	shift
	: >"$out"
	"$@" "${run[@]}" ibv_asyncwatch >"$out" 2>&1 &
	lead=$!
	await grep -q 'event FD' "$out"
	watcher=$lead
	[ $# = 0 ] || watcher=$(cat /proc/$lead/task/$lead/children)
	watcher=${watcher% }
}

watch_end() {
	kill -9 "$watcher" 2>/dev/null
	wait "$lead" 2>/dev/null
}

pid_ns() {
	stat --dereference --format=%i "/proc/$1/ns/pid"
}

host=$(uname -n)

# The program is in a PID namespace of its own, and so is the hub that it starts.
watch "$tmp/watch" "${apart[@]}"
hub=$(hub_pid)
ns=$(pid_ns "$watcher")
check "the hub has a number here" test "$(cat "/proc/$hub/comm")" = verbatimd
check "it is another there" test "$(pid_ns "$hub")" = "$ns"
says "a program of an inner namespace" " $watcher ibv_asyncwatch " "$verbatim" hub status
says "seen from beside it" " 1@$ns ibv_asyncwatch " "${apart[@]}" "$verbatim" hub status
says "what that means" "N@$ns is process N of PID namespace $ns, where the host name is $host" \
	"${apart[@]}" "$verbatim" hub status
inner=$(awk '/^NSpid/ { print $3 }' "/proc/$hub/status")
says "the hub, seen from beside it" "hub pid $inner@$ns," "${apart[@]}" "$verbatim" hub status
says "it is told to fail, by its number here" \
	"the device of process $watcher (ibv_asyncwatch) has been told to fail" \
	"$verbatim" fail "$watcher"
watch_end

# It is told from beside it.
watch "$tmp/watch" "${apart[@]}"
ns=$(pid_ns "$watcher")
check "another process has the number 1 here" kill -0 1
if "${apart[@]}" "$verbatim" fail 1 >"$tmp/refused" 2>&1; then
	fail "a number of another namespace" "is taken for one of this" "$tmp/refused"
else
	says "a number of another namespace" \
		"process 1 does not have the device open, or is not this user" \
		cat "$tmp/refused"
fi
says "it is told to fail, from beside it" \
	"the device of process 1@$ns (ibv_asyncwatch) has been told to fail" \
	"${apart[@]}" "$verbatim" fail "1@$ns"
await grep -q DEVICE_FATAL "$tmp/watch"
verdict "it has heard of it" "it does not say so" "$tmp/watch"
watch_end

# The program is here, and who looks is in an inner namespace.
watch "$tmp/watch"
ns=$(pid_ns self)
says "a program of the same namespace" " $watcher ibv_asyncwatch " "$verbatim" hub status
says "seen from an inner namespace" " $watcher@$ns ibv_asyncwatch " \
	"${apart[@]}" "$verbatim" hub status
says "by its number" "the device of process $watcher (ibv_asyncwatch) has been told to fail" \
	"$verbatim" fail "$watcher"
watch_end
if [ -z "$VB_SANITIZE" ]; then
	watch "$tmp/watch"
	says "without /proc" " $watcher ibv_asyncwatch " \
		unshare --mount -- sh -c 'mount -t tmpfs none /proc && exec "$@"' sh \
		"$verbatim" hub status
	watch_end
fi
suite_end
