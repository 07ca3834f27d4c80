# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# A disk that Debian's tgtd serves by iSER, and another one by TCP; source it after suite.sh.
# Their contents are $tgt_at/disk and $tgt_at/tcp. Its iSER knows IPv4 alone.

tgt_disk=iqn.2001-04.com.example:disk tgt_tcp=iqn.2001-04.com.example:tcp
tgt_user=iqn.2001-04.com.example:user	# who clients are that can be told
tgt_qemu=iqn.2008-11.org.linux-kvm	# who QEMU's programs are
tgt_port=3260
tgt_at=$tmp/tgt
mkdir -m 777 "$tgt_at"
export TGT_IPC_SOCKET=$tgt_at/socket

# tgt ARGS ...: tgtd obeys its own user alone.
tgt() {
	"${on_server[@]}" tgtadm "$@" >"$tmp/output" 2>&1
}

tgt_is_there() {
	gone "$tgt_pid" || tgt --op show --mode system
}

# tgt_serve NUMBER DRIVER NAME FILE: by TCP a client's address is enough, by iSER it has to have its
# name on the list, too.
tgt_serve() {
	local name target=(--lld "$2" --mode target --tid "$1")
	tgt "${target[@]}" --op new --targetname "$3" &&
		tgt --lld "$2" --mode logicalunit --tid "$1" --lun 1 --op new \
			--backing-store "$4" &&
		tgt "${target[@]}" --op bind --initiator-address ALL || return
	for name in $tgt_user $tgt_qemu; do
		tgt "${target[@]}" --op bind --initiator-name $name || return
	done
}

# tgt_disks MIB: new ones.
tgt_disks() {
	local disk
	for disk in disk tcp; do
		rm -f "$tgt_at/$disk"
		truncate -s "${1}M" "$tgt_at/$disk"
		chmod 666 "$tgt_at/$disk"
	done
}

# tgt_begin ADDRESS: sets $tgt_pid; its output is $tmp/tgtd. It takes no notice of SIGTERM, so it
# dies with the suite.
tgt_begin() {
	rm -f "$tgt_at"/socket*
	"${on_server[@]}" "${run_server[@]}" setpriv --pdeathsig KILL tgtd -f \
		--iscsi "portal=$1:$tgt_port" --iser "port=$tgt_port,pool_sz_mb=128" \
		>"$tmp/tgtd" 2>&1 &
	tgt_pid=$!
	await tgt_is_there
	tgt_serve 1 iser $tgt_disk "$tgt_at/disk" && tgt_serve 2 iscsi $tgt_tcp "$tgt_at/tcp"
}

# tgtd_said WORDS: how often it has.
tgtd_said() {
	grep -cF "$1" "$tmp/tgtd"
}

# tgt_is_clean: each connection that there was is over, timewait included. Where the first request
# comes before the event, tgtd says that it is established in other words.
tgt_is_clean() {
	[ "$(tgtd_said 'iser_cm_conn_established(')" = "$(tgtd_said '(after cleanup)')" ]
}

# tgt_end: it is told to. While it has an iSER connection, even one in timewait, tgtd 1.0.85 crashes
# on any NIC: its iscsi_target_destroy() has conn_close() call the transport's ep_close, and that of
# iSER is NULL. A crash that is not ours to see is avoided so, and every other one is a failure.
tgt_end() {
	await tgt_is_clean &&
		tgt --lld iser --op delete --mode target --force --tid 1 &&
		tgt --lld iscsi --op delete --mode target --force --tid 2 &&
		tgt --op delete --mode system && await gone "$tgt_pid"
}

# tgt_is_idle: nobody is connected by iSER.
tgt_is_idle() {
	tgt --lld iser --op show --mode conn --tid 1 && ! grep -q Connection "$tmp/output"
}
