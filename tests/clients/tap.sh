#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A TAP device without root, in a user and network namespace of one's own. The kernel refuses those
# in a plain chroot, even to root, and where the administrator says so: then this is skipped. The
# suite runs itself in a chroot to show that.
. "$(dirname "$0")/../lib/suite.sh"

name="TAP in a user and network namespace"
own=(unshare --user --map-root-user --net --)
if ! "${own[@]}" true 2>"$tmp/own"; then
	skip "$name" "this system lets us make no user namespace ($(<"$tmp/own"))"
elif ! "${own[@]}" ip tuntap add own1 mode tap 2>/dev/null; then
	skip "$name" "this system lets us make no TAP device"
else
	check "$name" "${own[@]}" "$VB_ROOT/tests/lib/tap_of_ones_own.sh" "${run[@]}"
fi
[ -z "${VB_IN_CHROOT:-}" ] || suite_end

# in_chroot CMD ...: with all of this machine's files; the mounts end with the command
in_chroot() {
	mkdir -p "$tmp/root"
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount -- sh -c \
		'root=$1; shift; mount --rbind / "$root" && exec chroot "$root" "$@"' sh \
		"$tmp/root" "$@"
}

name="in a plain chroot it is skipped for its reason"
if ! in_chroot true 2>"$tmp/chroot"; then
	skip "$name" "this system lets us enter no chroot ($(tail -1 "$tmp/chroot"))"
elif in_chroot "${own[@]}" true 2>/dev/null; then
	skip "$name" "this kernel makes a user namespace even there"
else
	VB_IN_CHROOT=1 in_chroot "$VB_ROOT/tests/clients/tap.sh" >"$tmp/said" 2>&1
	rc=$?
	want="^ok - TAP in a .* # SKIP this system lets us make no user namespace"
	want="$want \(.* not permitted\)$"
	[ $rc = 0 ] && grep -Eq "$want" "$tmp/said" && grep -qx '1\.\.1' "$tmp/said"
	verdict "$name" "exit status $rc" "$tmp/said"
fi
suite_end
