#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# uDAPL, whose provider "scm" connects by sockets: dapltest's transactions, with all data checked,
# and its performance test, which hangs up as soon as its peer has said that it is done.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

if ! command -v dapltest >/dev/null; then
	skip_all "no dapltest"
fi
if [ "$VB_SANITIZE" = thread ]; then
	skip_all "nobody has looked what uDAPL itself does under ThreadSanitizer"
fi
export DAT_OVERRIDE=$tmp/dat.conf
echo 'scm u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 "verbatim0 1" ""' >"$DAT_OVERRIDE"

server_begin() {
	"${run_server[@]}" stdbuf -oL dapltest -T S -D scm >"$tmp/server" 2>&1 &
	server=$!
	await grep -q 'Service Point Ready' "$tmp/server"
}

# dapl NAME TEST ARGS ...: it may say of errors and end well all the same.
dapl() {
	local name="${PREFIX:+$PREFIX }$1"
	ends 0 "$name" "${on_client[@]}" "${run_client[@]}" \
		dapltest -T "$2" -s "$address" -D scm "${@:3}" || return
	! grep -q 'Error' "$tmp/output" "$tmp/server"
	verdict "$name" "it complains" "$tmp/output" "$tmp/server"
}

# Segments are of 64 octets or a multiple, since dapltest takes them for adjacent at the other end.
dapls() {
	local i
	server_begin
	dapl "SEND" T -i 100 -t 1 -w 1 -V client SR 4096 4 server SR 4096 4
	dapl "WRITE" T -i 50 -t 1 -w 1 -V client RW 65536 2 server RW 65536 2
	dapl "READ" T -i 50 -t 1 -w 1 -V client RR 32768 4 server RR 64
	dapl "all of them, two threads with three connections each" T -i 50 -t 2 -w 3 -V \
		client RR 32768 4 server SR 1024 client RW 65536 server RR 8192 2 client SR 2048
	for i in 1 2 3 4; do
		dapl "hanging up at once, $i" P -i 200 RW 4096
	done
	dapl "the server is told to end" Q
	process_wait "$server" 10
}

DAPL_SCM_NETDEV=lo
export DAPL_SCM_NETDEV
dapls
link_use udp
dapls
unset VERBATIM_LINK
over=
if hosts_make 1500; then
	PREFIX="two hosts"
	hosts_use 4
	DAPL_SCM_NETDEV=vb0
	dapls
else
	skip "two hosts" "this system lets us make no veth"
fi
suite_end
