#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Thousands of simulated exchanges, always the same ones: `make sim SEED=n` replays one that failed.
# check-limit: 1800
set -u
each=1000 chunks=40 status=0
[ -z "${VB_SANITIZE:-}" ] || chunks=4
[ -z "${VB_LONG:-}" ] || chunks=$((chunks * 10))

from=1
while [ "$from" -lt $((each * chunks)) ]; do
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
