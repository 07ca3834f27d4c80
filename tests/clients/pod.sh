#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two containers of a pod as runtimes make them for people who are not root: they share a network
# namespace and nothing else. Each has PID, IPC, mount and UTS namespaces of its own, a read-only
# root, little shared memory in /dev/shm, no capability, no_new_privs, and a filter of system calls.
# Whatever else is taken away from them, programs work, or one line says what is missing.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/pod.sh"

gid=0 # the first address of a table that has lo's alone
limit_s=120
pingpong=(ibv_rc_pingpong -p PORT -g $gid -c)

# What people run first, and each kind of traffic.
programs() {
	check "$1: ibv_devinfo" "${on_server[@]}" "${run_server[@]}" ibv_devinfo -v
	twins "$1: rc" "${pingpong[@]}"
	twins "$1: rc by events" "${pingpong[@]}" -e -n 200
	twins "$1: xrc" ibv_xsrq_pingpong -p PORT -g $gid -n 200
	twins "$1: ib_write_bw" ib_write_bw -p PORT -x $gid -F -n 500
	twins "$1: ib_read_bw" ib_read_bw -p PORT -x $gid -F -n 500
	twins "$1: ib_send_lat" ib_send_lat -p PORT -x $gid -F -n 500
}

# lacks NAME WORDS CMD ...: a program cannot have the device, and one line of ours says why.
lacks() {
	local name=$1 words=$2
	shift 2
	if timeout -k 5 "$limit_s" "$@" >"$tmp/said" 2>&1; then
		fail "$name" "the device opens" "$tmp/said"
	elif [ "$(grep -c '^verbatim\[' "$tmp/said")" != 1 ]; then
		fail "$name" "it is not one line" "$tmp/said"
	elif ! grep -Eq "^verbatim\[.*$words" "$tmp/said"; then
		fail "$name" "does not say /$words/" "$tmp/said"
	else
		ok "$name"
	fi
}

# No hub is left of what was before.
hub_leave() {
	"${on_server[@]}" "$VB_BUILD/verbatim" hub stop --force >/dev/null 2>&1
}

# traffic_start: two that exchange data for a while, $server and $client; `verbatim status` in the
# client's container says of both which link that goes by: $links.
traffic_start() {
	local program=(ib_write_bw -x $gid -F -D "$1" -p $((++port)))
	timeout 100 "${on_server[@]}" "${run_server[@]}" "${program[@]}" >"$tmp/server" 2>&1 &
	server=$!
	port_wait $port $server
	timeout 100 "${on_client[@]}" "${run_client[@]}" "${program[@]}" 127.0.0.1 \
		>"$tmp/client" 2>&1 &
	client=$!
	await both_linked
}

both_linked() {
	"${on_client[@]}" "$VB_BUILD/verbatim" status >"$tmp/status" 2>&1
	links=$(sed -n 's/.* -> pid.*: //p' "$tmp/status")
	[ "$(grep -c . <<<"$links")" = 2 ]
}

traffic_end() {
	wait $server && wait $client
}

links_say() {
	traffic_start 60
	kill $server $client
	traffic_end 2>/dev/null
	[ "$(uniq <<<"$links")" = "$2" ]
	verdict "$1" "status says \"$links\"" "$tmp/status" "$tmp/server" "$tmp/client"
}

# The hub lives where somebody came first. When that container ends, all that is in it is killed.
hub_dies_with_its_container() {
	local why="no hub, or no traffic"
	"${one[@]}" "${run[@]}" ibv_devinfo >"$tmp/first" 2>&1
	pods_use two two
	if traffic_start 5; then
		pod_end one
		why="what went on then has failed"
		traffic_end && why=
	fi
	[ -n "$why" ] || pair_run "${pingpong[@]}" -- "${pingpong[@]}" 127.0.0.1
	[ -z "$why" ]
	verdict "the first container ends" "$why" "$tmp/server" "$tmp/client"
}

if ! pod_new one || ! pod_new two; then
	skip pod "$why"
	suite_end
fi
check "a container is none of root's" "${one[@]}" sh -c \
	'! touch /x && ! unshare --user true && ! unshare --mount true &&
	grep -q "^CapEff.*0000000000000000" /proc/self/status'
pods_use one two
programs "two containers"
links_say "two containers: status" "shared memory"
hub_leave

lacks "without memfd_create" "memfd_create: Operation not permitted; a seccomp filter" \
	"${one[@]}" "$VB_BUILD/tests/verbs/refuse" memfd_create=EPERM -- "${run[@]}" ibv_devinfo
hub_leave

lacks "without verbatimd" "there is no verbatimd to start" \
	"${two[@]}" env VERBATIM_HUB=/none "${run[@]}" ibv_devinfo
# Where another container has it, it is there for both: the second has its library elsewhere.
check "with verbatimd in the other" "${one[@]}" "${run[@]}" ibv_devinfo
mkdir "$tmp/elsewhere"
cp -R "$VB_BUILD/verbatim" "$VB_BUILD/lib" "$tmp/elsewhere"
run_client=("${run[@]/#$VB_BUILD\/verbatim/$tmp/elsewhere/verbatim}")
twins "with a library elsewhere and no verbatimd" "${pingpong[@]}"
run_client=("${run[@]}")

if [ "$pod_users" = 1 ]; then
	skip "of another user" "we are root of a user namespace, which has no other"
else
	pod_new of_another 1000
	lacks "of another user" "4791 is taken here by the hub of uid" "${of_another[@]}" \
		"${run[@]}" ibv_devinfo
	pod_end of_another
fi
hub_leave

pod_filter=("${pod_filter[0]}" --ptrace-refused --)
pod_shm=1
pod_new bare && pod_new bare_too
pod_filter=("${pod_filter[0]}" --)
pod_shm=64
pods_use bare bare_too
programs "without ptrace, with 1 MiB of /dev/shm"
twins "large messages there" "${pingpong[@]}" -s 4194304 -n 20
hub_leave
pod_end bare
pod_end bare_too

# A sanitizer's runtime needs it.
if [ -z "$VB_SANITIZE" ]; then
	pod_new blind
	"${pod_root[@]}" mount -t tmpfs none /proc
	pods_use one blind
	programs "without /proc in one"
	hub_leave
	pods_use blind one
	programs "without /proc in the other"
	hub_leave
	pod_end blind
fi

if pod_rootless mine 0 && pod_rootless mine_too 0 && pod_rootless mine_as_1000 1000; then
	pods_use mine mine_too
	programs "in user namespaces"
	links_say "in user namespaces: status" "shared memory"
	lacks "where the uid is another" "another user namespace, where the uid is 0 and not 1000" \
		"${mine_as_1000[@]}" "${run[@]}" ibv_devinfo
	hub_leave
	for name in mine mine_too mine_as_1000; do pod_end $name; done
else
	skip "in user namespaces" "$why"
fi

hub_dies_with_its_container
suite_end
