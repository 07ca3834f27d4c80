#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# QEMU's live migration by RDMA: one machine is booted, counts and writes to its memory, and wanders
# from process to process, on one host by each link, to another host and back. All that it says on
# its console, from wherever it was, is one sequence without a gap. A peer that dies leaves it
# where it was. By IPv4 alone: QEMU refuses IPv6 where there are but RoCE devices.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

limit_s=$((limit_s * 5))	# everything is emulated
kernel=$(ls "$VB_BUILD"/guest/boot/vmlinuz-* 2>/dev/null)
for program in qemu-system-x86_64 busybox; do
	command -v $program >/dev/null || skip_all "no $program"
done
[ -n "$kernel" ] || skip_all "there is no kernel of Debian's to be had"
[ -z "$VB_SANITIZE" ] || skip_all "an emulator with a sanitizer in it is too slow"
number=10	# of the process where the machine is: its files are called so, and sort by it
on=()		# what leads to the host of the next one, or makes it another user's
at=$tmp/at	# where any user may write
mkdir -m 777 "$at"
port=4400

# What it runs: two copies of the same, written to in places that wander, and compared.
initrd_make() {
	local ram=$tmp/ram
	mkdir -p "$ram"/{bin,dev,m}
	cp "$(command -v busybox)" "$ram/bin/busybox"
	cat >"$ram/init" <<-'END'
		#!/bin/busybox sh
		/bin/busybox --install -s /bin
		mount -t devtmpfs dev /dev; mount -t tmpfs m /m
		dd if=/dev/urandom of=/m/a bs=64k count=64 2>/m/errors
		cp /m/a /m/b
		n=0
		while :; do
			n=$((n + 1))
			dd if=/dev/urandom of=/m/new bs=64k count=2 2>/m/errors
			for copy in a b; do
				dd if=/m/new of=/m/$copy bs=64k seek=$((n * 2 % 64)) \
					conv=notrunc 2>/m/errors
			done
			cmp -s /m/a /m/b || echo "the copies differ"
			echo "count $n"
		done
	END
	chmod +x "$ram/init"
	(cd "$ram" && find . | busybox cpio -o -H newc | gzip -1) >"$tmp/initrd.gz" 2>"$tmp/output"
}

# machine NUMBER [ARGS ...]: a process for it, where $on leads: $pid.
machine() {
	"${on[@]}" "${run[@]}" qemu-system-x86_64 -accel tcg -m 128M -nodefaults -display none \
		-no-reboot -kernel "$kernel" -initrd "$tmp/initrd.gz" \
		-append "console=ttyS0 quiet" -serial "file:$at/console.$1" \
		-qmp "unix:$at/qmp.$1,server=on,wait=off" "${@:2}" >"$tmp/qemu.$1" 2>&1 &
	pid=$!
}

# qmp NUMBER COMMAND [ARGUMENTS]: its answer is $tmp/answer.
qmp() {
	"$VB_ROOT/tests/lib/qmp.py" "$at/qmp.$1" "${@:2}" >"$tmp/answer" 2>"$tmp/output"
}

status_is() {
	qmp "$1" query-status && grep -q "\"status\": \"$2\"" "$tmp/answer"
}

# Its last whole count.
count() {
	sed -n 's/^count \([0-9]*\)\r$/\1/p' "$at/console.$1" 2>"$tmp/output" | tail -n 1
}

has_counted() {
	[ "$(count "$number")" -ge "$1" ] 2>/dev/null
}

# it_counts: on, and without anything that it should not say.
it_counts() {
	local last
	last=$(count $number)
	await has_counted $((${last:-0} + 3)) && ! grep -qv '^count' "$at"/console.*
}

# migration_is NUMBER STATUS ...
migration_is() {
	qmp "$1" query-migrate && grep -qE "\"status\": \"($2)\"" "$tmp/answer"
}

# capability NUMBER NAME
capability() {
	qmp "$1" migrate-set-capabilities \
		"{\"capabilities\": [{\"capability\": \"$2\", \"state\": true}]}"
}

# next_begin ADDRESS CAPABILITY: a process that waits for the machine: $next.
next_begin() {
	next=$((number + 1))
	port=$((port + 1))
	machine $next -incoming defer
	next_pid=$pid
	await qmp $next query-status || return 1
	if [ -n "$2" ]; then
		capability $next "$2" && capability $number "$2" || return 1
	fi
	qmp $next migrate-incoming "{\"uri\": \"rdma:$1:$port\"}"
}

# migrate_begin ADDRESS OCTETS: not more of them in a second.
migrate_begin() {
	qmp $number migrate-set-parameters "{\"downtime-limit\": 30000, \"max-bandwidth\": $2}" &&
		qmp $number migrate "{\"uri\": \"rdma:$1:$port\"}"
}

# wander NAME ADDRESS [CAPABILITY]: the machine moves on to a new process.
wander() {
	local name=$1 address=$2 words=("$tmp/answer" "$tmp/qemu.$number")
	if ! { next_begin "$address" "${3:-}" && migrate_begin "$address" 1000000000 &&
		await migration_is $number 'completed|failed' &&
		migration_is $number completed && await status_is $next running; }; then
		fail "$name" "it does not arrive" "${words[@]}" "$tmp/qemu.$next"
		process_wait $next_pid 0 2>/dev/null
		return
	fi
	qmp $number quit
	wait $machine_pid
	number=$next machine_pid=$next_pid
	it_counts
	verdict "$name" "it does not count on" "$tmp/qemu.$number" "$at/console.$number"
}

peer_kill() {
	kill -9 "$next_pid"
	wait "$next_pid" 2>/dev/null
	true
}

cancel() {
	qmp $number migrate_cancel
}

# stay NAME CMD ...: CMD happens on the way, and the machine stays where it is.
stay() {
	local name=$1
	next_begin 127.0.0.1 "" && migrate_begin 127.0.0.1 1000000 &&
		await migration_is $number active && "${@:2}" &&
		await migration_is $number 'failed|cancelled' && it_counts
	verdict "$name" "it does not count on" "$tmp/answer" "$tmp/qemu.$number" "$tmp/qemu.$next"
	process_wait $next_pid "$limit_s" 2>/dev/null
	rm -f "$at"/*."$next"
}

# boot NAME: a new machine, where $on leads.
boot() {
	machine $number
	machine_pid=$pid
	await has_counted 3
	verdict "$1" "it does not" "$tmp/qemu.$number" "$at/console.$number"
}

# whole: from the first machine to the last one it has said everything, and once.
whole() {
	cat "$at"/console.* | tr -d '\r' | awk '$1 == "count" && $2 != ++n { exit 1 }'
	verdict "all that it said is one sequence" "there is a gap" "$at"/console.*
}

initrd_make || skip_all "its first file system cannot be made"
boot "a machine counts"
wander "one host" 127.0.0.1
wander "one host, all memory registered at once" 127.0.0.1 rdma-pin-all
stay "the peer is killed" peer_kill
stay "it is cancelled" cancel
link_use udp
wander "one host, one of them by UDP" 127.0.0.1
wander "one host" 127.0.0.1
wander "one host, all memory registered at once" 127.0.0.1 rdma-pin-all
unset VERBATIM_LINK
over=
export VERBATIM_FAULT="loss=1%,dup=1%,reorder=3%,seed=11"
wander "to a bad network" 127.0.0.1
wander "in a bad network" 127.0.0.1
unset VERBATIM_FAULT
if hosts_make 1500; then
	on=("${on_b[@]}")
	wander "to another host" $b4
	on=()
	wander "back, all memory registered at once" $a4 rdma-pin-all
else
	skip "two hosts" "this system lets us make no veth"
fi
whole
qmp $number quit
wait "$machine_pid"
rm -f "$at"/*
if user_become; then
	on=("${on_server[@]}")
	boot "an ordinary user's machine counts"
	wander "as an ordinary user" 127.0.0.1
	wander "as an ordinary user, all memory registered at once" 127.0.0.1 rdma-pin-all
	whole
else
	skip "as an ordinary user" "others may not read the build folder"
fi
suite_end
