#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The main job in a minute: perftest's unmodified binaries, server and client as two processes,
# over 127.0.0.1. `make demo` has built and installed what this needs.
set -eu
cd "$(dirname "$0")/.."
command=${BUILD:-build}/verbatim
run="$command run --"
log=$(mktemp)
server=
trap 'rm -f "$log"; [ -z "$server" ] || kill "$server" 2>/dev/null || true' EXIT INT TERM

# The index of the GID ::ffff:127.0.0.1, by which both sides know each other.
gid_find() {
	$run ibv_devinfo -v |
		sed -n 's/.*GID\[ *\([0-9]*\)\]:.*::ffff:127\.0\.0\.1.*/\1/p' | head -1
}

# port_wait PORT: until the server listens there.
port_wait() {
	for _ in $(seq 100); do
		ss -Hltn "sport = :$1" | grep -q . && return 0
		sleep 0.1
	done
	echo "demo: the server does not listen" >&2
	return 1
}

# A TCP port by which the two sides meet; others may run perftest at its usual one.
port_free() {
	port=$((20000 + $$ % 10000))
	while ss -Hltn "sport = :$port" | grep -q .; do
		port=$((port + 1))
	done
	echo "$port"
}

# pair PROGRAM ARGS: server and client, of which the client reports.
pair() {
	port=$(port_free)
	echo
	echo "\$ verbatim run -- $* &"
	echo "\$ verbatim run -- $* 127.0.0.1"
	$run "$@" -p "$port" >"$log" 2>&1 &
	server=$!
	port_wait "$port" || { cat "$log"; exit 1; }
	$run "$@" -p "$port" 127.0.0.1
	wait "$server" || { cat "$log"; exit 1; }
	server=
}

gid=$(gid_find)
gid=${gid:-0}
$run ibv_devices
pair ib_write_bw -d verbatim0 -x "$gid" -F -D 3
pair ib_send_lat -d verbatim0 -x "$gid" -F -n 20000
cat <<END

Shown: perftest, unmodified, found the device verbatim0; two processes wrote and sent by it.
Try:   $command devices             what programs see
       $command run -- PROGRAM      your own program; README.md says more
END
