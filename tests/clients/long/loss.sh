#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Checked traffic over many bad paths: one after another, seed by seed.
. "$(dirname "$0")/../../lib/suite.sh"

limit_s=300
gid=$(gid_index 127.0.0.1)
expect='traffic: '
for seed in $(seq 20); do
	for what in loss=1% loss=5% dup=10% reorder=20% corrupt=1% loss=2%,delay=200us \
		loss=3%,dup=3%,reorder=10%,corrupt=0.5%; do
		export VERBATIM_FAULT="$what,seed=$seed"
		twins "$VERBATIM_FAULT" "$VB_ROOT/tests/lib/traffic.py" -p PORT -g "$gid" \
			-n 5 -s 327680 -m $((256 << seed % 5))
	done
done
suite_end
