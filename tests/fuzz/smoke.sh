#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every fuzz target over the captured packets and mutations of them, always the same ones.
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. "$VB_ROOT/tests/lib/tap.sh"
for smoke in "$VB_BUILD"/tests/fuzz/smoke_*; do
	[ -f "$smoke" ] && [ -x "$smoke" ] || continue
	name=${smoke##*/smoke_}
	"$smoke"
	verdict "$name" "exit status $?"
done
suite_end
