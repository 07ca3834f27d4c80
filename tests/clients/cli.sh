#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The command `verbatim`, as newcomers use it: right and wrong words, and a hub that is not there,
# hangs, or is somebody else's. Each outcome has its exit status and says what it is.
. "$(dirname "$0")/../lib/suite.sh"

verbatim=$VB_BUILD/verbatim
export VERBATIM_HUB_IDLE_MS=60000
where=()	# what leads the command somewhere else

# says STATUS PATTERN ARGS ...: what it prints has that in it
says() {
	local name="verbatim ${*:3}$with"
	ends "$1" "$name" "${where[@]}" "$verbatim" "${@:3}" || return
	[ -z "$2" ] || grep -Eq -- "$2" "$tmp/output"
	verdict "$name" "does not print /$2/" "$tmp/output"
}

# The hub knows of the program that the suite starts.
watched() {
	"$verbatim" hub status | grep -q ' ibv_asyncwatch '
}

# full ARGS ...: what cannot be printed is a failure
full() {
	if "$verbatim" "$@" >/dev/full 2>"$tmp/said" || ! grep -q 'cannot write' "$tmp/said"; then
		fail "verbatim $* >/dev/full" "is none" "$tmp/said"
	else
		ok "verbatim $* >/dev/full"
	fi
}

with=
full --help
full --version
full run --help
full status
full hub status
says 2 '^usage: verbatim COMMAND'
says 2 "no command 'runn'; did you mean 'run'\?" runn -- true
says 2 "no command 'stats'; did you mean 'status'\?" stats
says 2 '^usage: verbatim COMMAND' stats
says 2 "no command 'server'$" server
for help in --help -h help; do
	says 0 '^usage: verbatim COMMAND' $help
	says 0 '^usage: verbatim run .*CMD' $help run
	says 0 '^usage: verbatim hub status' hub $help
	for command in devices doctor status explain top trace metrics fail; do
		says 0 "^usage: verbatim $command" $command $help
	done
done
# Every command of the list has an example.
commands=$("$verbatim" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
for command in ${commands:-none}; do
	says 0 "^  (VERBATIM_[A-Z]*=.* )?verbatim $command" "$command" --help
done
says 0 '^verbatim [0-9]' --version
says 0 '--fault  *TEXT' run --help
says 0 '--fault  *TEXT' run -h

says 125 '^usage: verbatim run' run
says 125 '^usage: verbatim run' run --
says 125 '--fault needs an argument' run --fault
says 125 "no option '--loss'$" run --loss 1% -- true
says 125 "no option '--falt'; did you mean '--fault'\?" run --falt=loss=1% -- true
says 125 '^usage: verbatim run' run --falt=loss=1% -- true
says 125 '--dev takes no argument' run --dev=1 -- true
all="^.*/libibverbs\.so\.1:.*/libmlx5\.so\.1:.*/libefa\.so\.1:.*/librdmacm\.so\.1\$"
says 0 "$all" run --bundled -- printenv LD_PRELOAD
says 125 "no fault 'much'" run --fault much -- true
says 125 "no fault 'much'" run --fault=much -- true
says 0 '^loss=1%$' run --fault=loss=1% -- printenv VERBATIM_FAULT
says 0 '^loss=1%$' run --fault loss=1% printenv VERBATIM_FAULT
says 125 'VERBATIM_PCAP: /nowhere/x: No such file' run --pcap /nowhere/x -- true
says 125 'VERBATIM_PCAP: /: Is a directory' run --pcap=/ -- true
says 125 'VERBATIM_LOG: /nowhere/x: No such file' run --log /nowhere/x -- true
says 0 "^$tmp/%p.pcap$" run --pcap "$tmp/%p.pcap" -- printenv VERBATIM_PCAP
says 0 '^stderr$' run --log stderr -- printenv VERBATIM_LOG
says 127 'nothing-there: No such file' run -- nothing-there
says 126 '/: Permission denied' run -- /
says 7 '' run -- sh -c 'exit 7'
for setting in LINK=tcp SHARED_MR=2 SEED=few ETH=a/b; do
	export "VERBATIM_$setting"
	with=" with VERBATIM_$setting"
	says 125 "VERBATIM_${setting%%=*} cannot be '${setting#*=}': it is " run -- true
	says 1 "VERBATIM_${setting%%=*} cannot be '${setting#*=}': it is " devices
	unset "VERBATIM_${setting%%=*}"
done

says 2 "there is no command of hub 'statu'; did you mean 'status'\?" hub statu
says 125 '--log needs an argument' run --log -- true

with=" without a hub"
says 0 'not running' status
says 0 'not running' hub status
says 0 'not running' hub log
says 0 'not running' hub stop
says 0 'not running' hub stop --force
says 1 'process 1 does not have the device open: no hub is running' fail 1
for wrong in "hub" "hub start" "hub status x" "hub stop x" "hub log x" "status x" "devices x" \
	"fail" "fail x" "fail 0" "fail -1" "fail 1x" "fail 2147483648" "fail 1 2" \
	"fail 1@" "fail 1@x"; do
	# shellcheck disable=SC2086 # words
	says 2 '^usage: verbatim' $wrong
done
VERBATIM_HUB=/nowhere says 1 'no verbatimd to start' devices
VERBATIM_HUB=/bin/false says 1 'it does not answer' devices

with=" with a hub"
says 0 '^verbatim0 .* active' devices
says 0 '^hub +pid [0-9]+.* 0 clients' status
says 0 '^hub log: nothing has happened to a receive QP of XRC so far$' hub log
says 1 'process 1 does not have' fail 1
"${run[@]}" ibv_asyncwatch >"$tmp/watch" 2>&1 &
watcher=$!
await watched
says 0 ' ibv_asyncwatch ' hub status
says 1 'in use \(clients: 1\)' hub stop
says 0 "^the device of process $watcher \(ibv_asyncwatch\) has been told to fail$" fail "$watcher"
kill -9 "$(hub_pid)"
await watched
with=" with the next hub"
says 0 ' ibv_asyncwatch ' hub status

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --)
if [ "$(id -u)" = 0 ] && "${nobody[@]}" test -x "$verbatim" 2>/dev/null; then
	with=" as another user"
	where=("${nobody[@]}")
	says 0 'port +UDP port 4791 is taken' status
	says 1 'UDP port 4791 is taken' devices
	says 1 'no hub of this user is running .*: UDP port 4791 is taken' fail "$watcher"
	where=()
else
	skip "as another user" "there is none"
fi

hub=$(hub_pid)
kill -STOP "$hub"
with=" with a hub that hangs"
says 1 'it does not answer' status
says 1 'it does not answer' hub stop --force
says 1 'it does not answer' hub log
says 1 'it does not answer' fail "$watcher"
says 1 'it does not answer' devices
kill -CONT "$hub"
kill $watcher
wait $watcher 2>/dev/null
with=" at the end"
# What was asked of the one that hung, it does now: it stops.
says 0 '^verbatim0' devices
hub=$(hub_pid)
says 0 "^the hub, pid $hub, has stopped; nobody was using it$" hub stop --force
suite_end
