# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Attackers and their victims; source it after suite.sh. In the environment:
#
#   VB_ATTACK_S      as many seconds each attack is to last; without, so many rounds
#   VB_ATTACK_SEED   what their choices follow from (1)
#   VB_ATTACK_BUT    words of attacks that are to be left out, with commas between
#
#   attack NAME PROGRAM N [WORD]         two attackers, which leave out WORD as well
#   attackers_go_on                      does one?
#   attackers_judge, victim_judge NAME PID FILE, sanitizers_judge      results

: "${VB_ATTACK_S:=0}" "${VB_ATTACK_SEED:=1}" "${VB_ATTACK_BUT:=}"
limit_s=${VB_ATTACK_LIMIT:-180}
attackers=()
# The hub has no other place for what a sanitizer says.
export VERBATIM_LOG=$tmp/log
: >"$VERBATIM_LOG"

attack() {
	local program=$2 n=$3 but=$VB_ATTACK_BUT${4:+,$4} seed
	attack_name=$1
	attackers=()
	for ((seed = VB_ATTACK_SEED; seed < VB_ATTACK_SEED + 2; seed++)); do
		"$VB_BUILD/tests/fuzz/$program" SEED=$seed N="$n" T="$VB_ATTACK_S" \
			BUT="$but" >"$tmp/attacker$seed" 2>&1 &
		attackers+=($!)
	done
}

attackers_go_on() {
	local pid
	for pid in "${attackers[@]}"; do
		kill -0 "$pid" 2>/dev/null && return 0
	done
	return 1
}

attackers_judge() {
	local pid name rc seed=$VB_ATTACK_SEED
	for pid in "${attackers[@]}"; do
		name="an attack on $attack_name, SEED=$seed"
		wait "$pid"
		rc=$?
		if [ $rc = 0 ]; then
			ok "$name, $(tail -n 1 "$tmp/attacker$seed")"
		else
			fail "$name" "$(status_say $rc)" "$tmp/attacker$seed"
		fi
		seed=$((seed + 1))
	done
}

# victim_judge NAME PID FILE: it has worked, and well.
victim_judge() {
	if wait "$2" && grep -q '^whole: [1-9]' "$3"; then
		ok "$1: $(tail -n 1 "$3")"
	else
		fail "$1" "it did not work, or not well" "$3"
	fi
}

sanitizers_judge() {
	local said
	said=$(mktemp -d "$tmp/said.XXXXXX")/said
	if grep -d skip -Eh -A 30 -m 1 'ERROR: .*Sanitizer|runtime error' "$tmp"/* >"$said"; then
		fail "sanitizers" "have something to say" "$said"
	else
		ok "sanitizers have nothing to say"
	fi
}
