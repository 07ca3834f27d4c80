#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `verbatim doctor` in broken surroundings: the line that tells of what is broken, the remedy below
# it, and that the line is ok when that remedy was applied. What judges each fact is tested without
# breaking anything (tests/unit/cli/doctor_judge_test.c).
. "$(dirname "$0")/../lib/suite.sh"

verbatim=$VB_BUILD/verbatim
refuse=$VB_BUILD/tests/verbs/refuse
filter=$VB_BUILD/tests/verbs/pod_filter
export VERBATIM_HUB_IDLE_MS=2000

# consult [LEAD ...]: `verbatim doctor --quick` where LEAD leads; its output to $tmp/doctor.
consult() {
	timeout -k 5 "$limit_s" "$@" "$verbatim" doctor --quick >"$tmp/doctor" 2>&1
	status=$?
}

# The lines about one thing.
lines_of() {
	awk -v name="$1" '/^[a-z]/ { on = $2 == name } on' "$tmp/doctor"
}

# finds TITLE NAME VERDICT WORDS REMEDY [LEAD ...]: that line has this verdict and says these words,
# and below it this remedy; the exit status is what the lines say.
finds() {
	local title=$1 name=$2 verdict=$3 words=$4 remedy=$5 why=
	shift 5
	consult "$@"
	lines_of "$name" >"$tmp/lines"
	grep -q "^$verdict " "$tmp/lines" || why="the line '$name' is not $verdict"
	grep -Eq -- "^$verdict .*$words" "$tmp/lines" || why="${why:-it does not say /$words/}"
	grep -Eq -- "^ .*do: .*$remedy" "$tmp/lines" || why="${why:-no remedy /$remedy/}"
	[ "$status" = "$(status_due)" ] || why="${why:-$(status_say $status)}"
	[ -z "$why" ]
	verdict "$title" "$why" "$tmp/doctor"
}

# well TITLE NAME [LEAD ...]: that line is ok.
well() {
	local title=$1 name=$2
	shift 2
	consult "$@"
	lines_of "$name" | grep -q '^ok '
	verdict "$title" "the line '$name' is not ok" "$tmp/doctor"
}

status_due() {
	if grep -q '^missing ' "$tmp/doctor"; then
		echo 2
	elif grep -q '^limited ' "$tmp/doctor"; then
		echo 1
	else
		echo 0
	fi
}

hub_leave() {
	"$@" "$verbatim" hub stop --force >/dev/null 2>&1
}

# --- words ---

ends 125 "an unknown option" "$verbatim" doctor --qick &&
	grep -q "no option '--qick'; did you mean '--quick'" "$tmp/output"
verdict "an unknown option" "the message is another" "$tmp/output"

# --- addresses ---

bare=(unshare --net --)
finds "no address at all" address missing "no GID" "ip link set lo up" "${bare[@]}"
finds "after ip link set lo up: loopback alone" address limited "loopback addresses alone" \
	"ip addr add ADDRESS"
ip link add vb0 type veth peer name vb1 && ip link set vb1 up && ip link set vb0 up &&
	ip addr add 10.97.0.1/24 dev vb0
well "after ip addr add" address
ip link delete vb0

# --- a machine that is as it is here ---

measured() {
	timeout -k 5 "$limit_s" "$verbatim" doctor >"$tmp/doctor" 2>&1
	status=$?
	[ $status = "$(status_due)" ] && [ $status != 2 ] &&
		lines_of by-shm | grep -q '^ok .* us one way, .* GB/s' &&
		lines_of by-udp | grep -q '^ok .* us one way, .* GB/s' &&
		tail -n 1 "$tmp/doctor" | grep -Eq '^[0-9]+ ok, [0-9]+ limited, 0 missing$'
}
measured
verdict "both links are measured" "another exit status, or no figures" "$tmp/doctor"

json_right='
import json, sys
it = json.load(sys.stdin)
assert {check["verdict"] for check in it["checks"]} <= {"ok", "limited", "missing"}
for verdict in "ok", "limited", "missing":
    assert it[verdict] == sum(check["verdict"] == verdict for check in it["checks"])
for check in it["checks"]:
    assert check["name"] and check["found"], check
    assert check["verdict"] == "ok" or check["means"] and check["remedy"], check
assert all(it["speed"][link]["latency_ns"] > 0 for link in ("shm", "udp"))
'
timeout -k 5 "$limit_s" "$verbatim" doctor --json >"$tmp/json"
python3 -c "$json_right" <"$tmp/json" 2>"$tmp/output"
verdict "--json has the same" "it has not" "$tmp/output" "$tmp/json"

# A setting of the user's takes nothing from what is measured.
VERBATIM_LINK=udp VERBATIM_FAULT=loss=50% measured
verdict "settings are said, and not measured" "they are measured" "$tmp/doctor"

# --- the port and the hub ---

hub_leave
: >"$tmp/holder"
python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 4791))
print("bound", flush=True)
time.sleep(300)' >"$tmp/holder" &
holder=$!
await grep -q bound "$tmp/holder"
finds "the port is taken" port missing "another program .*pid $holder" "end what has it"
lines_of devices | grep -q '^missing .*4791 is taken'
verdict "no device opens then" "it does" "$tmp/doctor"
kill $holder
wait $holder 2>/dev/null
well "after it has ended" port
hub_leave

if user_become; then
	"${on_server[@]}" "${run[@]}" ibv_devinfo >/dev/null 2>&1
	root=("${users_host[@]}")
	finds "another user's hub" port missing "by the hub .* of uid 65534" "unshare -Urn" \
		"${root[@]}"
	well "in a network namespace of one's own" port "${root[@]}" unshare -Urn \
		sh -c 'ip link set lo up; exec "$@"' sh
	"${on_server[@]}" "$verbatim" hub stop --force >/dev/null 2>&1
	well "after it has left" port "${root[@]}"
	hub_leave "${root[@]}"
else
	skip "another user's hub" "there is no other user here"
fi

# --- shared memory ---

# shm_is COMMAND ...: a mount namespace in which these have been run.
shm_is() {
	lead=(unshare --mount -- sh -c "$1; shift; exec \"\$@\"" sh)
}
ro='mount --bind /dev/shm /dev/shm && mount -o remount,bind,ro /dev/shm'
shm_is "$ro"
finds "/dev/shm cannot be written" shm limited "Read-only" "mount -o remount,rw /dev/shm" \
	"${lead[@]}" x
lines_of view | grep -q '^ok .*files in ' && ! lines_of view | grep -q '/dev/shm'
verdict "the view has another folder then" "it has not" "$tmp/doctor"
shm_is "$ro; mount -o remount,bind,rw /dev/shm"
well "after remount,rw" shm "${lead[@]}" x
small='mount -t tmpfs -o size=64k,mode=1777 shm /dev/shm'
shm_is "$small"
finds "/dev/shm is small" shm limited "has 0.1 MiB" "remount,size=1g" "${lead[@]}" x
shm_is "$small; mount -o remount,size=1g /dev/shm"
well "after remount,size=1g" shm "${lead[@]}" x

# --- system calls that are refused ---

finds "without memfd_create" memfd missing "not permitted" "seccomp filter .* memfd_create" \
	"$refuse" memfd_create=EPERM --
finds "without setsockopt" udp missing "not permitted" "seccomp filter" \
	"$refuse" setsockopt=EPERM --
finds "without process_vm_readv" reach limited "process_vm_readv" "have it allow process_vm_readv" \
	"$filter" --ptrace-refused --
well "where it is allowed" reach "$filter" --
"$filter" --ptrace-refused -- "$verbatim" doctor >"$tmp/doctor" 2>&1
lines_of by-shm | grep -q '^ok .* us one way'
verdict "shared memory does without" "it does not" "$tmp/doctor"
finds "without user namespaces, by a filter" userns limited "not permitted" "seccomp filter" \
	setpriv --bounding-set=-all --inh-caps=-all -- "$filter" --
lines_of view | grep -q '^ok .*takes preload, since this user may not mount'
verdict "the view is preloaded then" "it is not" "$tmp/doctor"

# The bound is that of a user namespace, and holds in those below it.
bound='echo 0 >/proc/sys/user/max_user_namespaces &&'
powerless='exec setpriv --bounding-set=-all --inh-caps=-all -- "$@"'
if unshare --user --map-root-user sh -c "$bound true" 2>/dev/null; then
	finds "without user namespaces, by their bound" userns limited "No space" \
		"sysctl -w user.max_user_namespaces=" \
		unshare --user --map-root-user sh -c "$bound $powerless" sh
	well "after sysctl" userns unshare --user --map-root-user sh -c \
		"$bound echo 1000 >/proc/sys/user/max_user_namespaces; $powerless" sh
else
	skip "without user namespaces, by their bound" "it cannot be set here"
fi

# --- capabilities, limits, processors, /proc ---

finds "without CAP_NET_RAW" ethernet limited "packet socket: Operation not permitted" \
	"NET_RAW" setpriv --bounding-set=-net_raw --
consult
! lines_of ethernet | grep -q "packet socket:"
verdict "with CAP_NET_RAW" "it does not see it" "$tmp/doctor"

hard=$(ulimit -Hn)
finds "16 descriptors" limits missing "16 descriptors" "ulimit -n $hard" \
	sh -c 'ulimit -Sn 16; exec "$@"' sh
well "after ulimit -n" limits sh -c "ulimit -Sn 16; ulimit -n $hard; exec \"\$@\"" sh
finds "a hard limit of 16" limits missing "16 at most" "as root: prlimit" \
	sh -c 'ulimit -n 16; exec "$@"' sh
raise='ulimit -n 16; prlimit --nofile=65536:65536 --pid=$$ &&'
if sh -c "$raise true" 2>/dev/null; then
	well "after prlimit" limits sh -c "$raise exec \"\$@\"" sh
else
	skip "after prlimit" "it takes CAP_SYS_RESOURCE in the initial user namespace"
fi
finds "small files" limits limited "RLIMIT_FSIZE" "ulimit -f unlimited" \
	sh -c 'ulimit -Sf 1000; exec "$@"' sh
well "after ulimit -f" limits sh -c 'ulimit -Sf 1000; ulimit -f unlimited; exec "$@"' sh
finds "one processor" cpus limited "1" "taskset -c 0,1" taskset -c 0
hub_leave
finds "without /proc" proc limited "not mounted" "mount -t proc proc /proc" \
	unshare --mount -- sh -c 'mount -t tmpfs none /proc; exec "$@"' sh
well "after mount -t proc" proc unshare --mount -- \
	sh -c 'mount -t tmpfs none /proc; mount -t proc proc /proc; exec "$@"' sh

# --- ours ---

finds "a wrong setting" settings missing "VERBATIM_LINK cannot be 'ud'.*did you mean 'udp'" \
	"correct the variable" env VERBATIM_LINK=ud
finds "an unknown setting" settings missing "no setting 'VERBATIM_LNK'" "unset it" \
	env VERBATIM_LNK=udp
well "a right setting" settings env VERBATIM_LINK=udp
lines_of settings | grep -q 'VERBATIM_LINK=udp'
verdict "it is said" "it is not" "$tmp/doctor"
mkdir "$tmp/alone"
cp "$VB_BUILD/verbatim" "$tmp/alone"
verbatim=$tmp/alone/verbatim
finds "without libraries" library missing "neither in lib/" "make install"
mkdir "$tmp/alone/lib"
find "$VB_BUILD/lib" -maxdepth 1 -name "*.so*" ! -type d -exec cp -P {} "$tmp/alone/lib" \;
well "with them" library
hub_leave
finds "without verbatimd" devices missing "no verbatimd to start" "above"
cp "$VB_BUILD/verbatimd" "$tmp/alone"
well "with it" devices
hub_leave
verbatim=$VB_BUILD/verbatim
suite_end
