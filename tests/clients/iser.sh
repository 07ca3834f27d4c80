#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# iSER with both ends in user space: Debian's tgtd serves a disk, libiscsi's tools and QEMU's use
# it; on one host by each link, with losses, as an ordinary user, and between two hosts. What one
# program writes another one reads, and it stands in tgtd's file.
#
# libiscsi 1.19 takes no request above 256 KiB by iSER: it says that it knows those below 512k, and
# dies. So QEMU's programs are told to cut theirs, and those of its own tests that try one are not
# run; its iscsi-ls takes iscsi:// alone.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/tgt.sh"

for program in tgtd tgtadm iscsi-inq iscsi-test-cu qemu-img qemu-io; do
	command -v $program >"$tmp/output" || skip_all "no $program"
done
qemu-img --help | grep -q ' iser ' || skip_all "this QEMU knows no iSER"
[ -z "$VB_SANITIZE" ] || skip_all "these programs leak memory of their own"
unset MALLOC_PERTURB_	# libiscsi 1.19 walks a list whose beginning it has never written
mib=16
back=$tgt_at/back

# client NAME WORDS CMD ...: it ends well and says WORDS.
client() {
	local name="$PREFIX: $1"
	ends 0 "$name" "${on_client[@]}" "${run_client[@]}" "${@:3}" || return
	[ -z "$2" ] || grep -qE -- "$2" "$tmp/output"
	verdict "$name" "it does not say /$2/" "$tmp/output" "$tmp/tgtd"
}

# same NAME FILE FILE
same() {
	cmp "$2" "$3" >"$tmp/output" 2>&1
	verdict "$PREFIX: $1" "they differ" "$tmp/output"
}

# What there is, how large, and what libiscsi's own tests think of it.
tools() {
	local test
	client "iscsi-inq" VIRTUAL-DISK iscsi-inq -i $tgt_user "$url"
	client "iscsi-readcapacity16" "Total size:$((mib << 20))" \
		iscsi-readcapacity16 -i $tgt_user "$url"
	for test in TestUnitReady Mandatory Read6 Read16 Write16 WriteVerify10; do
		client "iscsi-test-cu $test" 'asserts +([0-9]+) +\1 +\1 +0' \
			iscsi-test-cu -i $tgt_user -I $tgt_user --dataloss -t ALL.$test "$url"
	done
}

# A whole disk there and back.
copies() {
	head -c ${mib}M /dev/urandom >"$tmp/random"
	rm -f "$back"
	client "a disk is written" "" qemu-img convert -f raw -n --target-image-opts \
		"$tmp/random" "$options"
	same "the target has it" "$tmp/random" "$tgt_at/disk"
	client "it is read" "" qemu-img convert --image-opts -O raw "$options" "$back"
	same "it is what was written" "$tmp/random" "$back"
	client "it is compared" identical qemu-img compare --image-opts \
		"driver=file,filename=$tmp/random" "$options"
}

# Pieces: of a block, as large as libiscsi takes, several at once, and across these.
pieces() {
	client "pieces are written and read" "" qemu-io --image-opts "$options" \
		-c "write -P 17 0 512" -c "write -P 18 512 7680" -c "write -P 19 1M 3M" \
		-c "aio_write -P 20 8M 64k" -c "aio_write -P 21 9M 1M" -c "aio_flush" \
		-c "read -P 17 0 512" -c "read -P 18 512 7680" -c "read -P 19 1M 3M" \
		-c "read -P 20 8M 64k" -c "read -P 21 9M 1M"
	! grep -q 'verification failed' "$tmp/output"
	verdict "$PREFIX: they are as they were" "another pattern" "$tmp/output"
}

# A client that is killed at work: the target lets go of it, and serves the next one.
death() {
	local name="$PREFIX: a client is killed" client
	"${on_client[@]}" "${run_client[@]}" stdbuf -o0 iscsi-perf -i $tgt_user -r "$url" \
		>"$tmp/client" 2>&1 &
	client=$!
	await grep -q iops "$tmp/client"
	kill -9 $client
	wait $client 2>/dev/null
	await tgt_is_idle
	verdict "$name" "the target does not hear of it" "$tmp/client" "$tmp/tgtd"
	client "the target serves others" VIRTUAL-DISK iscsi-inq -i $tgt_user "$url"
}

# serve NAME ADDRESS: a target there, for those whose names follow.
serve() {
	PREFIX=$1
	url=iser://$2:$tgt_port/$tgt_disk/1
	options=driver=raw,file.driver=blkdebug,file.max-transfer=262144
	options+=,file.image.driver=iscsi,file.image.transport=iser
	options+=,file.image.portal=$2:$tgt_port,file.image.target=$tgt_disk,file.image.lun=1
	tgt_disks $mib
	tgt_begin "$2"
	verdict "$PREFIX: tgtd serves" "it does not" "$tmp/output" "$tmp/tgtd"
}

leave() {
	tgt_end
	verdict "$PREFIX: tgtd ends" "it does not" "$tmp/output" "$tmp/tgtd"
}

all() {
	serve "$@"
	tools
	copies
	pieces
	death
	leave
}

all "one host" 127.0.0.1
link_use udp
all "one host" 127.0.0.1
unset VERBATIM_LINK
over=
export VERBATIM_FAULT="loss=1%,dup=1%,reorder=3%,seed=7"
serve "with losses" 127.0.0.1
copies
pieces
leave
unset VERBATIM_FAULT
if hosts_make 1500; then
	on_client=("${on_b[@]}")
	all "two hosts" $a4
	on_client=()
else
	skip "two hosts" "this system lets us make no veth"
fi
if user_become; then
	all "as an ordinary user" 127.0.0.1
else
	skip "as an ordinary user" "others may not read the build folder"
fi
suite_end
