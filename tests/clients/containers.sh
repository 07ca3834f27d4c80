#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Containers of several kinds, and in each as root and as an ordinary user: what `verbatim run`
# shows of the device by which way, with which sentence it refuses, and by which link two containers
# that share a network namespace, and neither processes nor /dev/shm, reach each other. The table in
# docs/containers.md says it; here each of its rows has to come out.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/pod.sh"

gid=0 # the first address of a table that has lo's alone
page=$VB_ROOT/docs/containers.md
ways=(mount preload none auto)
links=(shm udp)
export VERBATIM_HUB_IDLE_MS=60000
unset TMPDIR XDG_RUNTIME_DIR

[ "$pod_users" != 1 ] || skip_all "we are root of a user namespace, which has no other user"
unshare --net --mount true 2>/dev/null || skip_all "this system lets us make no container"

# kind_new KIND USER: two containers of that kind, $one and $two.
kind_new() {
	pod_filter=("$VB_BUILD/tests/verbs/pod_filter" --ptrace-refused --)
	pod_shm=64 pod_tmpfs=
	case $1 in
	"usual") pod_filter=("${pod_filter[0]}" --) ;;
	"free") pod_filter=() ;;
	"free, nothing to write to") pod_filter=() pod_shm=0 ;;
	"strict, nothing to write to") pod_shm=0 ;;
	"strict, a tmpfs at /run") pod_shm=0 pod_tmpfs=/run ;;
	esac
	export XDG_RUNTIME_DIR=$pod_tmpfs
	pod_new one "$2" && pod_new two "$2"
}

# What a program sees, and how.
# shellcheck disable=SC2016 # another shell's
look='
	if ! grep -q Gb/sec /sys/class/infiniband/verbatim0/ports/1/rate; then
		echo nothing
	else
		case ${LD_PRELOAD:-} in
		*libverbatim_view*) echo preload ;;
		*) echo mount ;;
		esac
	fi 2>/dev/null'

# way_found WAY: what is seen in the first container with --view=WAY, or the number of the sentence
# that refuses it, into $found.
way_found() {
	"${one[@]}" "$VB_BUILD/verbatim" run --view="$1" -- sh -c "$look" >"$tmp/output" 2>&1
	found=$(grep -xE 'nothing|mount|preload' "$tmp/output")
	[ -n "$found" ] || sentence_find "$(sed -n "s/^verbatim: --view=$1: //p" "$tmp/output")"
}

# sentence_find SENTENCE: its number in the page, into $found; "?" if it is not there.
sentence_find() {
	found=$(grep -nFx -- "${1:-none}" "$tmp/sentences" | cut -d : -f 1)
	found=${found:-?}
}

# link_found WAY LINK: by which link the two exchange data, into $found.
link_found() {
	local words=(ibv_rc_pingpong -p PORT -g $gid -c -n 100)
	run_server=(env VERBATIM_LOG=stderr "VERBATIM_LINK=$2"
		"$VB_BUILD/verbatim" run --view="$1" --)
	run_client=("${run_server[@]}")
	found=failed
	pair_run "${words[@]}" -- "${words[@]}" $address || return
	found=$(sed -nE 's/.*peer slot .*: (shared memory|UDP).*/\1/p' "$tmp/client" | sort -u)
}

# row KIND WHO UID
row() {
	local found way link row="| $1 | $2 |" of
	kind_new "$1" "$3" || return
	pods_use one two
	for way in "${ways[@]}"; do
		way_found "$way"
		row+=" $found |"
	done
	for link in "${links[@]}"; do
		of=
		for way in "${ways[@]}"; do
			way_found "$way"
			[[ $found != [0-9?]* ]] || continue
			link_found "$way" "$link"
			[ -z "$of" ] || [ "$of" = "$found" ] || found="$of, $found"
			of=$found
		done
		row+=" $of |"
	done
	echo "$row" >"$tmp/row"
	grep -qFx -- "$row" "$page"
	verdict "$1, $2" "the page says otherwise" "$tmp/row" "$tmp/output" "$tmp/client"
	"${one[@]}" "$VB_BUILD/verbatim" hub stop --force >/dev/null 2>&1
	pod_end one
	pod_end two
}

sed -n 's/^[0-9]\. `\(.*\)`$/\1/p' "$page" >"$tmp/sentences"
for kind in usual strict free "strict, nothing to write to" "strict, a tmpfs at /run" \
	"free, nothing to write to"; do
	row "$kind" root root
	row "$kind" "ordinary user" 65534
done
[ "$(grep -cE '^\| (usual|strict|free)' "$page")" = 12 ]
verdict "the page has no other rows" "it has" "$page"
suite_end
