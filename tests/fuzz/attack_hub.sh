#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Somebody of this user speaks to the hub out of turn (attack_hub.c), and honest programs go on
# working: with whole data, old connections and new ones. The hub lives, tells the truth, and has
# nothing left of the attacker when that is gone.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/attack.sh"

# Whoever holds the keeper's ends can empty it, or fill it with something else, and all programs of
# this user hold them: nothing defends it (docs/hub.md).
VB_ATTACK_BUT=${VB_ATTACK_BUT:-keeper}
steps=15000	# of each attacker; with VB_ATTACK_S as long as that
export VERBATIM_HUB_IDLE_MS=600000

# Descriptors of the hub, but for those that it makes more of as more slots are needed: their UDP
# sockets, and what watches their leases, datagram sockets without a name.
hub_descriptors() {
	find "/proc/$hub/fd" -type l -printf '%l\n' 2>/dev/null | awk '
		FILENAME ~ /udp/ { of_slot["socket:[" $10 "]"] = 1; next }
		FILENAME ~ /unix/ && $5 == "0002" && NF == 7 { of_slot["socket:[" $7 "]"] = 1 }
		FILENAME ~ /unix/ { next }
		!($0 in of_slot) { n++ }
		END { print n + 0 }' /proc/net/udp /proc/net/udp6 /proc/net/unix -
}

# The slots of the victim that stays, and what it is: it must be so at any time.
steady_rows() {
	"$VB_BUILD/verbatim" hub status | awk -v a="$steady" -v b="$(pgrep -P "$steady")" '
		$1 + 0 && ($2 == a || $2 == b) { print $1, $2, $3, $NF }'
}

# settled NAME WORDS CMD ...: it comes to print these words.
settled() {
	local name=$1 words=$2 end=$((SECONDS + limit_s)) said
	shift 2
	while ((SECONDS < end)); do
		said=$("$@" 2>/dev/null)
		[ "$said" = "$words" ] && break
		sleep 0.1
	done
	[ "$said" = "$words" ] && ok "$name" && return
	fail "$name" "\"$said\" and not \"$words\""
}

clients() {
	"$VB_BUILD/verbatim" hub status | sed -n 's/.*: \([0-9]*\) clients*,.*/\1/p'
}

# One pair that stays connected, and one that begins anew all the time.
victims_start() {
	local end=$((SECONDS + limit_s))
	"$VB_BUILD/tests/fuzz/victim" SEED=1 N=0 >"$tmp/steady" 2>&1 &
	steady=$!
	"$VB_BUILD/tests/fuzz/victim" SEED=2 N=50 >"$tmp/restless" 2>&1 &
	restless=$!
	while ((SECONDS < end)); do
		rows=$(steady_rows)
		[ "$(grep -c 'yes$' <<<"$rows")" = 2 ] && break
		sleep 0.1
	done
}

victims_end() {
	kill -TERM $restless 2>/dev/null
	victim_judge "$1: new connections" $restless "$tmp/restless"
	settled "$1: who is left" 2 clients
	settled "$1: they have their slots" "$rows" steady_rows
	kill -TERM $steady 2>/dev/null
	victim_judge "$1: an old connection" $steady "$tmp/steady"
	settled "$1: nobody is left" 0 clients
}

"${run[@]}" ibv_devinfo >"$tmp/devinfo" 2>&1
hub=$(hub_pid)
settled "the hub is alone" 0 clients
before=$(hub_descriptors)

victims_start
attack "the hub" attack_hub $steps
while attackers_go_on; do
	said=$(steady_rows)
	[ "$said" = "$rows" ] || lies=$said
	sleep 0.2
done
attackers_judge
if [ -n "${lies+x}" ]; then
	fail "status under attack" "\"$lies\" and not \"$rows\""
else
	ok "status under attack"
fi
victims_end "the hub"
check "the hub is the same" test "$(hub_pid)" = "$hub"
settled "no descriptor is left" "$before" hub_descriptors

# A hub that dies is followed by one that knows nothing, and perhaps hears the attackers first.
victims_start
attack "hubs that die" attack_hub $steps life,keeper
while attackers_go_on; do
	sleep 0.5
	hub=$(hub_pid 2>/dev/null)
	[ -n "$hub" ] && kill -KILL "$hub" 2>/dev/null
done
attackers_judge
victims_end "hubs that die"
sanitizers_judge
suite_end
