#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A peer that owns a ring and an export writes anything into them (attacker.c), while its victim
# works with it and with an honest peer (attack_ring.c).
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/attack.sh"

attack "a peer's memory" attack_ring 40
attackers_judge
sanitizers_judge
suite_end
