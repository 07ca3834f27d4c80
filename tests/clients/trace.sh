#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `verbatim trace`: the timeline of two programs has each request, whole and in order, and each
# packet from one end to the other.
. "$(dirname "$0")/../lib/suite.sh"

verbatim=$VB_BUILD/verbatim
timeline=$VB_ROOT/tests/lib/timeline.py
command -v ib_send_bw >/dev/null || skip_all "there is no ib_send_bw"

# traced NAME REQUESTS [wire] -- CMD ...: server and client, into one timeline
traced() {
	local name=$1 requests=$2 wire=
	shift 2
	[ "$1" = -- ] || { wire=$1; shift; }
	shift
	rm -rf "$tmp/trails"
	run_server=("$verbatim" trace -d "$tmp/trails" -o "$tmp/first.json" --)
	run_client=("$verbatim" trace -d "$tmp/trails" -o "$tmp/second.json" --)
	twins "$name: the programs end well" "$@" -p PORT
	check "$name: they are joined" "$verbatim" trace -o "$tmp/both.json" --join "$tmp/trails"
	check "$name" python3 "$timeline" check "$tmp/both.json" "$requests" $wire
}

for link in "" udp; do
	link_use "$link"
	over=${link:+ ($link)}
	traced "a stream of SENDs" 300 ${link:+wire} -- ib_send_bw -d verbatim0 -x 0 -n 300 -s 20000
	traced "extended CQs and the new way to post" 400 ${link:+wire} -- \
		ibv_rc_pingpong -g 0 -n 200 -t -N
	traced "one after the other" 400 ${link:+wire} -- ib_send_lat -d verbatim0 -x 0 -n 200 -s 64
done
link_use ""
over=

# --- what else it says ---

ends 7 "the exit status is the program's" "$verbatim" trace -o "$tmp/none.json" -- \
	sh -c 'ibv_devinfo >/dev/null; exit 7' && ok "the exit status is the program's"
ends 1 "no device is opened" "$verbatim" trace -o "$tmp/none.json" -- true
grep -q 'no program opened the device' "$tmp/output"
verdict "a program that opens no device has no timeline" "it is not said" "$tmp/output"
for wrong in "trace" "trace -x -- true" "trace --join" "trace --join $tmp -- true"; do
	# shellcheck disable=SC2086 # words
	ends 2 "verbatim $wrong is refused" "$verbatim" $wrong && ok "verbatim $wrong is refused"
done
echo before >"$tmp/kept.json"
ends 1 "no device is opened, and there is a file" "$verbatim" trace -o "$tmp/kept.json" -- true
[ "$(cat "$tmp/kept.json")" = before ]
verdict "a file that was there stays, if there is no timeline" "it does not"
ends 1 "a file that cannot be written" "$verbatim" trace -o "$tmp/no/x.json" -- touch "$tmp/has_run"
grep -q 'no/x.json: No such file' "$tmp/output" && [ ! -e "$tmp/has_run" ]
verdict "a file that cannot be written is named before the program runs" "it is not" "$tmp/output"
ends 1 "no room for the timeline" env TMPDIR="$tmp" "$verbatim" trace -o /dev/full -- \
	"$VB_BUILD/tests/check/wrong_rkey"
folder=$(sed -n 's/.*what was noted is in \([^,]*\),.*/\1/p' "$tmp/output")
[ -c /dev/full ] && grep -q 'No space left' "$tmp/output" &&
	"$verbatim" trace -o "$tmp/late.json" --join "${folder:-/nowhere}" 2>>"$tmp/output" &&
	python3 -m json.tool "$tmp/late.json" >/dev/null
verdict "what was noted is not lost with it" "it is" "$tmp/output"
ends 1 "trails that are not there" "$verbatim" trace --join "$tmp/no"
grep -q "$tmp/no: No such file" "$tmp/output"
verdict "trails that are not there are named" "they are not" "$tmp/output"
VERBATIM_TRACE=/nowhere VERBATIM_LOG=stderr \
	ends 1 "a folder that is not there" "${run[@]}" ibv_devinfo -d verbatim0
grep -q 'VERBATIM_TRACE: /nowhere: No such file' "$tmp/output"
verdict "a folder that is not there is named" "it is not" "$tmp/output"
suite_end
