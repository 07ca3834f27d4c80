#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Clients under valgrind's memcheck: no error, nothing lost. Both sides run under it.
. "$(dirname "$0")/../lib/suite.sh"

if [ -n "$VB_SANITIZE" ]; then
	skip_all "valgrind does not run with a sanitizer"
fi
if ! command -v valgrind >/dev/null; then
	skip_all "no valgrind"
fi

gid=$(gid_index 127.0.0.1)
limit_s=120
memcheck=(valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite
	--errors-for-leak-kinds=definite --child-silent-after-fork=yes
	--suppressions="$VB_ROOT/tests/lib/valgrind.supp")

# grind NAME PROGRAM ARGS ...: the same on both sides
grind() {
	local name=$1
	shift
	twins "$name" "${memcheck[@]}" "$@" -p PORT
}

grind "rc pingpong" ibv_rc_pingpong -g "$gid" -n 100 -c
grind "rc pingpong events" ibv_rc_pingpong -g "$gid" -n 100 -e
grind "uc pingpong" ibv_uc_pingpong -g "$gid" -n 100 -c
grind "ud pingpong" ibv_ud_pingpong -g "$gid" -n 100 -c
grind "srq pingpong" ibv_srq_pingpong -g "$gid" -n 20 -c
grind "send_bw" ib_send_bw -F -x "$gid" -n 50
grind "write_bw 16 queue pairs" ib_write_bw -F -x "$gid" -n 10 -q 16
grind "read_bw" ib_read_bw -F -x "$gid" -n 50
grind "atomic_lat" ib_atomic_lat -F -x "$gid" -n 50
grind "send_bw UD" ib_send_bw -F -x "$gid" -n 50 -c UD -s 1024
truncate -s 1M "$tmp/file"
grind "write_bw on a file" ib_write_bw -F -x "$gid" -n 50 --mmap "$tmp/file"
link_use udp
grind "rc pingpong" ibv_rc_pingpong -g "$gid" -n 100 -c
grind "uc pingpong" ibv_uc_pingpong -g "$gid" -n 100 -c
grind "write_bw 16 queue pairs" ib_write_bw -F -x "$gid" -n 10 -q 16
grind "send_bw UD" ib_send_bw -F -x "$gid" -n 50 -c UD -s 1024
VERBATIM_FAULT="loss=2%,dup=2%,reorder=5%,seed=5" \
	grind "send_bw faults" ib_send_bw -F -x "$gid" -n 50
over=
check "devinfo" "${run[@]}" "${memcheck[@]}" ibv_devinfo -v

# hub_start NAME OPTIONS ...: whoever finds no hub starts one, by a copy of itself. No copy may end
# under valgrind: it would be looked through for leaks, for seconds, and reported on.
hub_start() {
	local name=$1 reports
	shift
	"$VB_BUILD/verbatim" hub stop --force >/dev/null
	timeout -k 5 "$limit_s" "${run[@]}" valgrind "$@" ibv_devinfo >"$tmp/report" 2>&1 || {
		fail "$name" "$(status_say $?)" "$tmp/report"
		return
	}
	reports=$(grep -c "ERROR SUMMARY: 0 errors" "$tmp/report")
	[ "$reports" = 1 ]
	verdict "$name" "$reports good reports, not one" "$tmp/report"
}

hub_start "starts the hub" --leak-check=full --error-exitcode=99
hub_start "starts the hub, children traced" --leak-check=full --trace-children=yes
hub_start "starts the hub under helgrind" --tool=helgrind
suite_end
