#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# kill -9 of either peer, of both, of the hub, under traffic: survivors find out or go on, nothing
# is left behind, and the next run works at once.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/kill.sh"

gid=$(gid_index 127.0.0.1)
rounds=2
# Through shared memory a death is noticed at once: without a timeout (-u 0) there is no other way.
killing kill_server ib_send_bw -b -u 0
killing kill_server ib_read_bw -u 0
killing kill_client ib_write_bw -b -u 0
killing kill_both ib_write_bw -b -q 4 -u 0
killing kill_hub ib_send_bw
killing kill_hub ib_write_bw -b -q 4
killing kill_hub_and_server ib_write_bw -b -u 0

link_use udp
killing kill_server ib_send_bw -b
killing kill_client ib_write_bw -b
killing kill_hub ib_write_bw -b -q 4
killing kill_hub_and_server ib_write_bw -b
suite_end
