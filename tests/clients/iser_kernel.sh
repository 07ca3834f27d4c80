#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A disk of Debian's tgtd, which runs on us, for a client in a kernel: Linux's ib_iser, upon its own
# rdma_cm and rdma_rxe, in a virtual machine. It finds the disk, logs in, makes a file system,
# writes files, reads them back after its caches were dropped, and logs out; once more with losses.
# The file system in tgtd's file is whole, and has what was written. If tgtd dies meanwhile and
# another one comes, all goes on.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/guest.sh"
. "$(dirname "$0")/../lib/tgt.sh"

for program in tgtd tgtadm iscsid iscsiadm mkfs.ext4 e2fsck debugfs; do
	command -v $program >"$tmp/output" || skip_all "no $program"
done
[ -z "$VB_SANITIZE" ] || skip_all "tgtd leaks memory of its own"
guest_also="ib_iser sd_mod ext4 crc32c_generic"
limit_s=$((limit_s * 2))	# all is emulated
on_guest=(python3 "$VB_ROOT/tests/lib/guest.py" call $guest_b4 $guest_port)
node=(iscsiadm -m node -T $tgt_disk -p $guest_a4:$tgt_port)

# there NAME WORDS CMD ...: in the guest it ends well and says WORDS.
there() {
	local name="$PREFIX: $1"
	ends 0 "$name" "${on_guest[@]}" "${@:3}" || return
	[ -z "$2" ] || grep -qE -- "$2" "$tmp/output"
	verdict "$name" "it does not say /$2/" "$tmp/output" "$tmp/tgtd"
}

# The initiator's daemon, and who it is to be.
initiator_begin() {
	there "iscsid runs" "" sh -c "echo InitiatorName=$tgt_user >/etc/iscsi/initiatorname.iscsi
		mkdir -p /run/lock/iscsi; iscsid"
}

# logs_in NAME WORDS CMD ...: as there(). The guest's kernel does not answer iscsiadm now and then
# when a login has succeeded, until the target gives up after 8 s (-107, ENOTCONN); on the wire all
# is as ever. So it is asked again.
logs_in() {
	local times=4
	until timeout -k 5 "$limit_s" "${on_guest[@]}" "${@:3}" >"$tmp/output" 2>&1 ||
		! grep -q -- -107 "$tmp/output" || ! ((--times)); do :; done
	grep -q -- "$2" "$tmp/output"
	verdict "$PREFIX: $1" "it does not say /$2/" "$tmp/output" "$tmp/tgtd"
}

# attach: $disk is its name there, once the kernel has one.
attach() {
	logs_in "the disk is found" "$tgt_disk" \
		iscsiadm -m discovery -t st -p $guest_a4:$tgt_port -I iser
	logs_in "it is attached" successful "${node[@]}" --login
	there "by ib_iser" "Iface Transport: iser" iscsiadm -m session -P 1
	await has_disk
	disk=/dev/$(sed -n 's/.*Attached scsi disk \([a-z]*\).*State: running.*/\1/p' "$tmp/output")
}

has_disk() {
	guest sh -c 'iscsiadm -m session -P 3; ls /dev/sd*' >"$tmp/output" 2>&1 &&
		grep -q '^/dev/sd' "$tmp/output"
}

# use MIB: a file system with a file of so many, and a lot of small ones.
use() {
	there "a file system is made" "" mkfs.ext4 -q -F "$disk"
	there "it is mounted" "" sh -ec "mkdir -p /mnt/disk; mount $disk /mnt/disk"
	there "files are written" "" sh -ec "cd /mnt/disk
		dd if=/dev/urandom of=large bs=1M count=$1
		for i in \$(seq 100); do echo \$i >small.\$i; done; ln large again
		sha256sum large small.* >/run/sums; sync"
	there "they are read from the disk" "large: OK" sh -ec \
		'echo 3 >/proc/sys/vm/drop_caches; cd /mnt/disk; sha256sum -c /run/sums'
	there "large ones at once" "" sh -ec "cd /mnt/disk
		for i in 1 2 3 4; do dd if=large of=copy.\$i bs=256k oflag=direct & done; wait
		for i in 1 2 3 4; do cmp large copy.\$i; done"
	guest cat /run/sums >"$tmp/sums"
	there "it is unmounted" "" umount /mnt/disk
}

# tgtd is killed while the client writes. The client's kernel is told, its daemon logs in again, and
# nothing of what was written is missing.
revive() {
	local name="$PREFIX: tgtd is killed, and comes again" writer
	ends 0 "$name" "${on_guest[@]}" sh -ec "mount $disk /mnt/disk
		dd if=/dev/urandom of=/run/new bs=1M count=4; rm -f /run/began" || return
	"${on_guest[@]}" sh -ec "cd /mnt/disk; for i in 1 2 3 4 5 6; do
		dd if=/run/new of=new.\$i bs=64k oflag=direct; touch /run/began; done
		echo 3 >/proc/sys/vm/drop_caches
		for i in 1 2 3 4 5 6; do cmp /run/new new.\$i; done" >"$tmp/writer" 2>&1 &
	writer=$!
	await guest test -e /run/began >"$tmp/output" 2>&1
	kill -9 "$tgt_pid"
	wait "$tgt_pid" 2>/dev/null
	tgt_begin $guest_a4
	wait $writer
	verdict "$name" "what was written is not there" "$tmp/writer" "$tmp/tgtd"
	there "it is unmounted" "" umount /mnt/disk
}

# What tgtd has in its file.
look() {
	ends 0 "$PREFIX: the file system is whole" e2fsck -fn "$tgt_at/disk" &&
		ok "$PREFIX: the file system is whole"
	debugfs -R "dump large $tmp/large" "$tgt_at/disk" 2>"$tmp/output"
	[ -s "$tmp/large" ] &&
		[ "$(sha256sum <"$tmp/large" | cut -c1-64)" = "$(head -c 64 "$tmp/sums")" ]
	verdict "$PREFIX: the target has what was written" "another file" "$tmp/output" "$tmp/sums"
}

all() {
	tgt_disks 128
	tgt_begin $guest_a4
	verdict "$PREFIX: tgtd serves" "it does not" "$tmp/output" "$tmp/tgtd"
	attach
	use "$1"
	"${@:2}"
	there "it is detached" successful "${node[@]}" --logout
	look
	tgt_end
	verdict "$PREFIX: tgtd ends" "it does not" "$tmp/output" "$tmp/tgtd"
}

guest_make || skip_all "no guest: $why"
PREFIX="Linux's ib_iser"
initiator_begin
all 8 revive
export VERBATIM_FAULT="loss=1%,dup=1%,reorder=2%,seed=9"
PREFIX="Linux's ib_iser, faults"
all 2
suite_end
