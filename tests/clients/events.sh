#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What a NIC tells by itself: that its device fails, that interfaces come and go, that a connection
# has migrated because a cable was pulled; and that who waits for such news sleeps.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

# watch_begin: ibv_asyncwatch, which says on $tmp/watch what it hears; sets $watcher. It has no
# view, whose keeper would wake it once a second to ask for its counters.
watch_begin() {
	"${run[@]:0:2}" --view=none "${run[@]:2}" stdbuf -oL ibv_asyncwatch >"$tmp/watch" 2>&1 &
	watcher=$!
	await grep -q 'async event FD' "$tmp/watch"
}

# tells NAME PATTERN CMD ...: CMD makes it say that.
tells() {
	local name=$1 pattern=$2
	shift 2
	"$@" >/dev/null && await grep -Eq -- "$pattern" "$tmp/watch"
	verdict "$name" "ibv_asyncwatch does not say /$pattern/" "$tmp/watch"
}

watch_end() {
	kill "$watcher" 2>/dev/null
	wait "$watcher" 2>/dev/null
}

# How often all threads of a process have gone to sleep so far.
sleeps() {
	cat /proc/"$1"/task/*/status | awk '/^voluntary/ { n += $2 } END { print n }'
}

watch_begin
tells "an address that comes" IBV_EVENT_GID_CHANGE ip addr add 10.88.0.1/32 dev lo
tells "an interface that goes down" IBV_EVENT_PORT_ERR ip link set lo down
tells "an interface that comes up" IBV_EVENT_PORT_ACTIVE ip link set lo up

# Its own thread starts up and settles; then nothing happens here, and nobody wakes.
sleep 2
before=$(sleeps "$watcher")
sleep 3
if [ "$VB_SANITIZE" = thread ]; then
	skip "who waits sleeps" "ThreadSanitizer's own thread does not"
elif [ "$(sleeps "$watcher")" = "$before" ]; then
	ok "who waits sleeps"
else
	fail "who waits sleeps" "it slept $before times, then $(sleeps "$watcher")" "$tmp/watch"
fi

tells "a device that fails" IBV_EVENT_DEVICE_FATAL "$VB_BUILD/verbatim" fail "$watcher"
if "$VB_BUILD/verbatim" fail 1 2>"$tmp/fail"; then
	fail "a process without the device cannot fail" "it does" "$tmp/fail"
else
	ok "a process without the device cannot fail"
fi
watch_end

# One host, two addresses: in whichever way packets go, the other side comes along.
for link in "" udp; do
	[ -z "$link" ] || link_use $link
	expect='migrate: done'
	twins "a connection migrates between processes" \
		"$VB_ROOT/tests/lib/migrate.py" -p PORT -g "$(gid_index 127.0.0.1)" \
		-a "$(gid_index ::1)"
done
unset VERBATIM_LINK
over=

# Two cables: the second one takes over.
if hosts_make 1500 && ip link add vb1 type veth peer name vb1 netns "${on_b[2]}"; then
	ip addr add 10.80.0.1/24 dev vb1
	ip link set vb1 up
	"${on_b[@]}" ip addr add 10.80.0.2/24 dev vb1
	"${on_b[@]}" ip link set vb1 up
	on_client=("${on_b[@]}")
	address=10.80.0.1
	expect='migrate: done'
	pair "a connection migrates when its cable is pulled" \
		"$VB_ROOT/tests/lib/migrate.py" -p PORT -g "$(gid_index $a4)" \
		-a "$(gid_index 10.80.0.1)" -- \
		"$VB_ROOT/tests/lib/migrate.py" -p PORT -g "$(gid_index $b4 "${on_b[@]}")" \
		-a "$(gid_index 10.80.0.2 "${on_b[@]}")" -x "ip link set vb0 down" "$address"
else
	skip "migration" "this system lets us make no veth"
fi
suite_end
