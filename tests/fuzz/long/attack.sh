#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The attackers for half an hour each, with other choices than in the short run.
export VB_ATTACK_S=1800 VB_ATTACK_SEED=1000
status=0
"$VB_ROOT/tests/fuzz/attack_hub.sh" || status=1
"$VB_ROOT/tests/fuzz/attack_ring.sh" || status=1
exit $status
