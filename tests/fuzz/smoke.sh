#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every fuzz target over the captured packets and mutations of them, always the same ones.
set -u
status=0
for smoke in "$VB_BUILD"/tests/fuzz/smoke_*; do
	[ -f "$smoke" ] && [ -x "$smoke" ] || continue
	name=${smoke##*/smoke_}
	if "$smoke"; then
		echo "ok $name"
	else
		echo "FAIL $name: exit status $?"
		status=1
	fi
done
exit $status
