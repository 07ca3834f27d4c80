#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# uDAPL, whose provider "scm" connects by sockets, and "cma" by rdma_cm: dapltest's transactions,
# with all data checked, and its performance test, which hangs up as soon as its peer has said that
# it is done; and the programs that each try one thing.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/cm.sh"

if ! command -v dapltest >/dev/null; then
	skip_all "no dapltest"
fi
if [ "$VB_SANITIZE" = thread ]; then
	skip_all "nobody has looked what uDAPL itself does under ThreadSanitizer"
fi
export DAT_OVERRIDE=$tmp/dat.conf
echo 'scm u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 "verbatim0 1" ""' >"$DAT_OVERRIDE"
# Its address is that of an interface, which is not loopback's.
echo 'cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "vb0 0" ""' >>"$DAT_OVERRIDE"

dapltest_begin() {
	"${run_server[@]}" stdbuf -oL dapltest -T S -D $provider >"$tmp/server" 2>&1 &
	server=$!
	await grep -q 'Service Point Ready' "$tmp/server"
}

# dapl NAME TEST ARGS ...: it may say of errors and end well all the same; $but_of are none.
dapl() {
	local name="${PREFIX:+$PREFIX }$provider: $1"
	ends 0 "$name" "${on_client[@]}" "${run_client[@]}" \
		dapltest -T "$2" -s "$address" -D $provider "${@:3}" || return
	! grep -h 'Error' "$tmp/output" "$tmp/server" | grep -qv -- "${but_of:-^$}"
	verdict "$name" "it complains" "$tmp/output" "$tmp/server"
}

# dapls PROVIDER: segments are of 64 octets or a multiple, since dapltest takes them for adjacent at
# the other end.
dapls() {
	local provider=$1 i
	dapltest_begin
	dapl "SEND" T -i 100 -t 1 -w 1 -V client SR 4096 4 server SR 4096 4
	dapl "WRITE" T -i 50 -t 1 -w 1 -V client RW 65536 2 server RW 65536 2
	dapl "READ" T -i 50 -t 1 -w 1 -V client RR 32768 4 server RR 64
	dapl "all of them, two threads with three connections each" T -i 50 -t 2 -w 3 -V \
		client RR 32768 4 server SR 1024 client RW 65536 server RR 8192 2 client SR 2048
	for i in 1 2 3 4; do
		dapl "hanging up at once, $i" P -i 200 RW 4096
	done
	# This client hangs up when its own messages have come, and does not wait for the server's.
	but_of=Server_Info_Send dapl "the server is told to end" Q
	process_wait "$server" "$limit_s"
}

# tries: IPv4 alone, and of the interface's addresses, not loopback's. Some servers meet their
# client by TCP before they listen.
tries() {
	local try ready='is waiting for client\|waiting to snd addr'
	[ "$at" = "${at#*:}" ] || return
	for try in "dtest -b 8192" dtestx "dtestcm -c 50" dtestsrq; do
		# shellcheck disable=SC2086 # words of a command
		cm "$try by cma" $try -P cma -- \
			env "AWAITS=$tmp/listens" AWAITS_MAX=1 $try -P cma -h "$at"
	done
}

export DAPL_SCM_NETDEV
hosts_make 1500 || skip "cma" "this system lets us make no veth"
for link in "" udp; do
	[ -z "$link" ] || link_use $link
	DAPL_SCM_NETDEV=lo dapls scm
	[ ${#on_b[@]} = 0 ] || address=$a4 dapls cma
done
unset VERBATIM_LINK
over=
if [ ${#on_b[@]} != 0 ]; then
	PREFIX="two hosts"
	hosts_use 4
	DAPL_SCM_NETDEV=vb0 dapls scm
	dapls cma
fi
here=($a4)
cm_places tries
suite_end
