#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A program of librpma's.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/cm.sh"

program=$VB_BUILD/tests/rdmacm/rpma
[ -x "$program" ] || skip_all "librpma was not there when this was built"
hosts_make 1500 || skip_all "this system lets us make no veth"
here=($a4 $a6)		# it wants to know the device of an address, and 127.0.0.1 has none
expect='rpma: done'

programs() {
	cm "rpma" "$program" server "$at" PORT -- "$program" client "$at" PORT
}

cm_places programs
suite_end
