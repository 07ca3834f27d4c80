#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Thousands of simulated exchanges, as many as fit into the time; always from seed 1 upwards.
# `make sim SEED=n` replays one. VB_LONG runs for ten times as long.
# check-limit: 1800
set -u
each=1000 seconds=60 status=0
[ -z "${VB_LONG:-}" ] || seconds=600
end=$(($(date +%s) + seconds))

from=1
while [ "$(date +%s)" -lt "$end" ]; do
	last=$((from + each - 1))
	if "$VB_BUILD/tests/sim/sim" "$from" "$each"; then
		echo "ok seeds $from to $last"
	else
		echo "FAIL seeds $from to $last: exit status $?"
		status=1
	fi
	from=$((last + 1))
done
exit $status
