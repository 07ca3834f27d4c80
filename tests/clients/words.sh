#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What people are told who type a setting or a value that there is not: by `verbatim run` and
# `verbatim devices`, by the library in its log, and by the hub; that docs/settings.md has what
# there is; and the hints that programs get on the mistakes of the first minute.
. "$(dirname "$0")/../lib/suite.sh"

verbatim=$VB_BUILD/verbatim
settings_md=$VB_ROOT/docs/settings.md

# The library without `verbatim run`, as with a program that has it by another way.
bare=(env "LD_LIBRARY_PATH=$VB_BUILD/lib" ${VB_PRELOAD:+"LD_PRELOAD=$VB_PRELOAD"})

# same NAME EXPECTED FILE
same() {
	[ "$(cat "$3")" = "$2" ]
	verdict "$1" "is not '$2'" "$3"
}

# refused STATUS NAME EXPECTED CMD ...: it ends with that status and says that, and nothing else.
refused() {
	ends "$1" "$2" "${@:4}" || return
	sed -i 's/^verbatim\[[0-9]*\]/verbatim/' "$tmp/output"
	same "$2" "$3" "$tmp/output"
}

# --- a variable that is no setting, a value that is no good ---

settings=$(VERBATIM_LOGG=1 "$verbatim" run -- true 2>&1 | sed -n 's/.*Settings: //p')
seed_range="a number from 0 to 18446744073709551615, decimal or with 0x"
faults="Faults: loss, dup, reorder, corrupt, delay, seed"
# wrong SETTING WORDS ...: whoever meets it refuses it with these words.
wrong() {
	local setting=$1 text
	shift
	text=$*
	refused 125 "verbatim run with $setting" "verbatim: $text" \
		env "$setting" "$verbatim" run -- echo "it was started"
	refused 1 "verbatim devices with $setting" "verbatim: $text" \
		env "$setting" "$verbatim" devices
	refused 1 "verbatimd with $setting" "verbatimd: $text" \
		env "$setting" "$VB_BUILD/verbatimd"
	"${bare[@]}" "$setting" VERBATIM_LOG="$tmp/log" ibv_devinfo >"$tmp/out" 2>&1
	sed -i 's/^verbatim\[[0-9]*\]/verbatim/' "$tmp/log"
	same "the log with $setting" "verbatim: $text" "$tmp/log"
	rm -f "$tmp/log"
}
wrong VERBATIM_LOGG=stderr "there is no setting 'VERBATIM_LOGG';" \
	"did you mean 'VERBATIM_LOG'?" "Settings: $settings"
wrong VERBATIM_FALT=loss=1% "there is no setting 'VERBATIM_FALT';" \
	"did you mean 'VERBATIM_FAULT'?" "Settings: $settings"
wrong VERBATIM_DEBUG=1 "there is no setting 'VERBATIM_DEBUG'. Settings: $settings"
personas="it is 'neutral', 'connectx7' or 'efa'"
wrong VERBATIM_PERSONA=conectx7 "VERBATIM_PERSONA cannot be 'conectx7':" "$personas;" \
	"did you mean 'connectx7'?"
wrong VERBATIM_PERSONA=mlx5 "VERBATIM_PERSONA cannot be 'mlx5':" "$personas"
wrong VERBATIM_LINK=tcp "VERBATIM_LINK cannot be 'tcp':" "it is 'udp' or 'shm'"
wrong VERBATIM_LINK=UDP "VERBATIM_LINK cannot be 'UDP':" "it is 'udp' or 'shm';" \
	"did you mean 'udp'?"
wrong VERBATIM_DCQCN=off "VERBATIM_DCQCN cannot be 'off':" "it is '0' or '1'"
wrong VERBATIM_SHARED_MR=yes "VERBATIM_SHARED_MR cannot be 'yes':" "it is '0' or '1'"
wrong VERBATIM_HINTS=1 "VERBATIM_HINTS cannot be '1':" "it is '0' or 'stderr'"
wrong VERBATIM_SEED=-1 "VERBATIM_SEED cannot be '-1':" "it is $seed_range"
wrong VERBATIM_ETH=tap: "VERBATIM_ETH cannot be 'tap:':" \
	"it is tap:NAME or the name of an interface, which has 1 to 15 characters"
wrong VERBATIM_CM_RNR_TIMER=32 "VERBATIM_CM_RNR_TIMER cannot be '32':" \
	"it is a number from 0 to 31, as min_rnr_timer of ibv_modify_qp(3)"
wrong VERBATIM_HUB_IDLE_MS=10s "VERBATIM_HUB_IDLE_MS cannot be '10s':" \
	"it is a number of milliseconds from 0 to 86400000"
wrong VERBATIM_FAULT=loss=1 "VERBATIM_FAULT cannot be 'loss=1':" \
	"loss=1: a percentage such as 1% is wanted"
wrong VERBATIM_FAULTS=loss=1% "VERBATIM_FAULTS cannot be 'loss=1%':" \
	"it is the file of a script; percentages are VERBATIM_FAULT's"
wrong VERBATIM_FAULT=los=1% "VERBATIM_FAULT cannot be 'los=1%':" "there is no fault 'los';" \
	"did you mean 'loss'?" "$faults"
wrong VERBATIM_FAULT=loss=101% "VERBATIM_FAULT cannot be 'loss=101%':" \
	"loss=101%: a percentage is at most 100%, with at most 7 digits behind the point"
wrong VERBATIM_FAULT=delay=1 "VERBATIM_FAULT cannot be 'delay=1':" \
	"delay=1: a whole number and its unit (ns, us, ms or s) are wanted, such as 250us"
check "an unknown variable that is empty is none" env VERBATIM_LOGG= "$verbatim" run -- true
check "an empty value is none" env VERBATIM_LINK= VERBATIM_PERSONA= "${run[@]}" ibv_devices

# --- and the page that describes them ---

# The first column of its first table, as the list of a refusal has it.
sed -n 's/^| `\(VERBATIM_[A-Z_]*\)` .*/\1/p' "$settings_md" |
	paste -sd, | sed 's/,/, /g' >"$tmp/page"
same "docs/settings.md has all settings and no others" "$settings" "$tmp/page"

# stands WORD SETTING: in its row of that page
stands() {
	grep "^| \`$2\` " "$settings_md" | grep -q -- "\`$1\`"
	verdict "docs/settings.md has the value $1 of $2" "it has not"
}
for setting in ${settings//,/}; do
	values=$(env "$setting=/:" "$verbatim" run -- true 2>&1 | sed -n "s/.*': it is '/'/p")
	for value in $(grep -o "'[^']*'" <<<"$values" | tr -d "'"); do
		stands "$value" "$setting"
	done
done

# Nobody looks for a setting that is not in the table, nor tells people of one.
cd "$VB_ROOT" || exit 1
grep -hoE 'getenv\("VERBATIM_[A-Z_]+' -r src | sed 's/.*"//' | sort -u >"$tmp/asked"
grep -hoE '`VERBATIM_[A-Z_]+[`=]' README.md docs/*.md | tr -d '`=' | sort -u >"$tmp/told"
for word in $(cat "$tmp/asked" "$tmp/told" | sort -u); do
	case ", $settings," in
	*", $word,"*) ok "$word is a setting" ;;
	*) fail "$word is a setting" "the code or a page has it, the table has not" ;;
	esac
done

# --- hints ---

# hinted NAME EXPECTED [FILE]: what the library wrote there, by default to stderr, is that and no
# more; nothing, if that is empty.
hinted() {
	grep '^verbatim' "${3:-$tmp/err}" | grep -v 'ibv_modify_qp(QPN ' |
		sed 's/^verbatim\[[0-9]*\]/verbatim/' >"$tmp/hints"
	same "$1" "$2" "$tmp/hints"
}

advice="most programs take a GID's index by -g or -x, on both sides; "
advice+="\`verbatim devices\` shows which there are"
no_gid="the address has no GID (ah_attr.is_global is 0), and an Ethernet port needs one: $advice"
bad_index="this side has no GID of that index (ah_attr.grh.sgid_index): $advice"
two_kinds="the GID of one side is an IPv4 address, that of the other an IPv6 address: $advice"

# pingpong [OPTION ...] -- [OPTION ...]: the server's options, and the client's. Both fail, as they
# do on every RoCE port; the server, whose stderr is $tmp/err, connects first, and so it is the one
# that learns why. $lead puts them on the NIC.
pingpong() {
	local -a server=()
	local pid
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	port=$((port + 1))
	timeout -k 5 "$limit_s" "${lead[@]}" "$program" -p $port "${server[@]}" >"$tmp/server" \
		2>"$tmp/err" &
	pid=$!
	port_wait $port $pid
	if timeout -k 5 "$limit_s" "${lead[@]}" "$program" -p $port "$@" 127.0.0.1 >"$tmp/out" 2>&1
	then
		fail "$program ${server[*]} -- $* fails" "it does not" "$tmp/out" "$tmp/err"
	else
		ok "$program ${server[*]} -- $* fails"
	fi
	process_wait $pid 5 2>/dev/null
}

lead=("${run[@]}")
for program in ibv_rc_pingpong ibv_uc_pingpong ibv_srq_pingpong; do
	pingpong --
	hinted "$program without -g" "verbatim: ibv_modify_qp: $no_gid"
done
program=ibv_ud_pingpong
pingpong --
hinted "$program without -g" "verbatim: ibv_create_ah: $no_gid"
program=ibv_rc_pingpong
v4=$(gid_index 127.0.0.1) v6=$(gid_index ::1)
pingpong -g "$v4" --
hinted "only the server has -g" "verbatim: ibv_modify_qp: $no_gid"
pingpong -- -g "$v4"
hinted "only the client has -g" "verbatim: ibv_modify_qp: $bad_index"
pingpong -g "$v4" -- -g "$v6"
hinted "-g of two kinds" "verbatim: ibv_modify_qp: $two_kinds"

lead=("$verbatim" run --quiet --)
pingpong --
hinted "--quiet: no hint" ""
lead=("${run[@]}")
VERBATIM_HINTS=0 pingpong --
hinted "VERBATIM_HINTS=0: no hint" ""
VERBATIM_HINTS='' pingpong --
hinted "VERBATIM_HINTS empty: no hint" ""
VERBATIM_LOG=stderr pingpong --
hinted "a log on stderr has it once" "verbatim: ibv_modify_qp: $no_gid"
VERBATIM_LOG=$tmp/log.gid pingpong --
hinted "with a log there is a hint, too" "verbatim: ibv_modify_qp: $no_gid"
hinted "with a hint the log has it, too" "verbatim: ibv_modify_qp: $no_gid" "$tmp/log.gid"
lead=("${bare[@]}")
pingpong --
hinted "without verbatim run: no hint" ""
twins "both have -g: it goes" ibv_rc_pingpong -p PORT -g "$v4"
hinted "both have -g: no hint for the server" "" "$tmp/server"
hinted "both have -g: no hint for the client" "" "$tmp/client"

# The device cannot be opened: the same reason that the log has.
"$verbatim" hub stop --force >"$tmp/out" 2>&1
VERBATIM_HUB=/nowhere VERBATIM_LOG=$tmp/log.hub "${run[@]}" ibv_devinfo >"$tmp/out" 2>"$tmp/err"
reason=$(sed 's/^verbatim\[[0-9]*\]: //' "$tmp/log.hub")
case $reason in
*"no verbatimd to start"*)
	hinted "a device that cannot be opened: the reason" "verbatim: ibv_open_device: $reason" ;;
*) fail "a device that cannot be opened: the reason" "is not in the log" "$tmp/log.hub" ;;
esac
VERBATIM_HUB=/nowhere "${bare[@]}" ibv_devinfo >"$tmp/out" 2>"$tmp/err"
hinted "a device that cannot be opened without verbatim run: no hint" ""

# A program that has put a file of its own in the place of stderr gets no line into that.
check "a hint goes to the first stderr only" "${run[@]}" python3 - "$tmp/own" <<-'END'
	import ctypes, os, sys
	library = ctypes.CDLL("libibverbs.so.1", use_errno=True)
	library.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
	library.ibv_open_device.argtypes = [ctypes.c_void_p]
	library.ibv_open_device.restype = ctypes.c_void_p
	os.environ["VERBATIM_LINK"] = "tcp"
	fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
	os.dup2(fd, 2)
	device = library.ibv_get_device_list(None)[0]
	sys.exit(0 if library.ibv_open_device(device) is None else 1)
END
[ -e "$tmp/own" ] && [ ! -s "$tmp/own" ]
verdict "a hint is not written into a file that took the place of stderr" "it is" "$tmp/own"

# --- VERBATIM_ETH names what may not be opened ---

# uplink NAME SETTING WHY [ON ...]: a program that makes RAW_PACKET QPs goes on without it, and
# hint and log say why. ON leads to where that is so.
uplink() {
	local name=$1 setting=$2 why="VERBATIM_ETH: $2: $3"
	shift 3
	rm -f "$tmp/log.eth"
	check "$name: the segment is there all the same" env VERBATIM_ETH="$setting" \
		VERBATIM_LOG="$tmp/log.eth" "$@" "${run[@]}" "$VB_BUILD/examples/forward" \
		verbatim0 02:0:0:0:0:1 02:0:0:0:0:2 02:0:0:0:0:3 02:0:0:0:0:4
	grep -v 'VERBATIM_ETH' "$tmp/output" >"$tmp/rest"
	hinted "$name: the hint" "verbatim: $why" "$tmp/output"
	grep -h 'VERBATIM_ETH' "$tmp/log.eth" | sort -u >"$tmp/eth"
	hinted "$name: the log" "verbatim: $why" "$tmp/eth"
}

own="or start the program in a network namespace of your own"
own="$own (unshare -Urn, then ip link set lo up)"
owner="in the user namespace that owns this network namespace"
no_tun="there is no /dev/net/tun, or the kernel has no TAP devices: have the module tun loaded"
no_tun="$no_tun (modprobe tun), and the device file put into this container if it is one"
tap_right="a TAP device needs CAP_NET_ADMIN $owner: have root make it for you"
tap_right="$tap_right (ip tuntap add NAME mode tap user USER), $own"
no_tap="there is an interface of that name which is no TAP device, or one of several queues"
powerless=(setpriv --bounding-set=-all --inh-caps=-all --)

uplink "an interface that there is not" nosuch0 \
	"there is no such interface in this network namespace (ip link shows those that there are)"
uplink "an interface without the right" lo \
	"an interface needs CAP_NET_RAW $owner: start the program as root, $own" "${powerless[@]}"
if [ -r /dev/net/tun ] && [ -w /dev/net/tun ] &&
	"${powerless[@]}" test -r /dev/net/tun -a -w /dev/net/tun; then
	uplink "a TAP device without the right" tap:foo "$tap_right" "${powerless[@]}"
	uplink "a TAP device that is none" tap:lo "$no_tap"
else
	skip "a TAP device without the right" "there is no /dev/net/tun that everybody may open"
fi
if unshare --mount sh -c 'mount -t tmpfs none /dev/net' 2>/dev/null; then
	uplink "a system without TAP devices" tap:foo "$no_tun" \
		unshare --mount sh -c 'mount -t tmpfs none /dev/net && exec "$@"' sh
	uplink "a device file that is closed to us" tap:foo \
		"the modes of /dev/net/tun do not let this user open it for reading and writing" \
		unshare --mount sh -c 'mount -t tmpfs none /dev/net && : >/dev/net/tun &&
			chmod 0 /dev/net/tun && exec "$@"' sh "${powerless[@]}"
else
	skip "a system without TAP devices" "this system lets us mount nothing over /dev/net"
fi

# The first words open libraries, and a fork comes in the midst of it: each time a process of its
# own, where nothing is open yet.
forks() {
	local i
	for ((i = 0; i < 20; i++)); do
		VT_TEST=a_fork_while_others_fail timeout -k 5 "$limit_s" \
			"$VB_BUILD/tests/verbs/verbs_told_test" >"$tmp/output" 2>&1 || return
	done
}
forks
ended_well "forks beside the first words" $? "$tmp/output"
suite_end
