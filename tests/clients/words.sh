#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What people are told who type a setting or a value that there is not: by `verbatim run` and
# `verbatim devices`, by the library in its log, and by the hub; and that docs/settings.md has what
# there is.
. "$(dirname "$0")/../lib/suite.sh"

verbatim=$VB_BUILD/verbatim
settings_md=$VB_ROOT/docs/settings.md

# The library without `verbatim run`, as with a program that has it by another way.
bare=(env "LD_LIBRARY_PATH=$VB_BUILD/lib" ${VB_PRELOAD:+"LD_PRELOAD=$VB_PRELOAD"})

# same NAME EXPECTED FILE
same() {
	if [ "$(cat "$3")" = "$2" ]; then
		ok "$1"
	else
		fail "$1" "is not '$2'" "$3"
	fi
}

# refused STATUS NAME EXPECTED CMD ...: it ends with that status and says that, and nothing else.
refused() {
	local status=$1 name=$2 expected=$3 rc
	shift 3
	timeout -k 5 "$limit_s" "$@" >"$tmp/out" 2>&1
	rc=$?
	sed -i 's/^verbatim\[[0-9]*\]/verbatim/' "$tmp/out"
	if [ $rc = "$status" ]; then
		same "$name" "$expected" "$tmp/out"
	else
		fail "$name" "$(status_say $rc), not $status" "$tmp/out"
	fi
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
wrong VERBATIM_FAULTS=loss=1% "there is no setting 'VERBATIM_FAULTS';" \
	"did you mean 'VERBATIM_FAULT'?" "Settings: $settings"
wrong VERBATIM_DEBUG=1 "there is no setting 'VERBATIM_DEBUG'. Settings: $settings"
wrong VERBATIM_PERSONA=conectx7 "VERBATIM_PERSONA cannot be 'conectx7':" "it is 'connectx7';" \
	"did you mean 'connectx7'?"
wrong VERBATIM_PERSONA=mlx5 "VERBATIM_PERSONA cannot be 'mlx5':" "it is 'connectx7'"
wrong VERBATIM_LINK=tcp "VERBATIM_LINK cannot be 'tcp':" "it is 'udp' or 'shm'"
wrong VERBATIM_LINK=UDP "VERBATIM_LINK cannot be 'UDP':" "it is 'udp' or 'shm';" \
	"did you mean 'udp'?"
wrong VERBATIM_SHARED_MR=yes "VERBATIM_SHARED_MR cannot be 'yes':" "it is '0' or '1'"
wrong VERBATIM_SEED=-1 "VERBATIM_SEED cannot be '-1':" "it is $seed_range"
wrong VERBATIM_ETH=tap: "VERBATIM_ETH cannot be 'tap:':" \
	"it is tap:NAME or the name of an interface, which has 1 to 15 characters"
wrong VERBATIM_HUB_IDLE_MS=10s "VERBATIM_HUB_IDLE_MS cannot be '10s':" \
	"it is a number of milliseconds from 0 to 86400000"
wrong VERBATIM_FAULT=loss=1 "VERBATIM_FAULT cannot be 'loss=1':" \
	"loss=1: a percentage such as 1% is wanted"
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
	if grep "^| \`$2\` " "$settings_md" | grep -q -- "\`$1\`"; then
		ok "docs/settings.md has the value $1 of $2"
	else
		fail "docs/settings.md has the value $1 of $2" "it has not"
	fi
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
suite_end
