#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""RC traffic as traffic.py has it, on a connection with two paths, of which the first is left.

  migrate.py [-p PORT] -g GID -a ALTERNATE_GID          the server
  migrate.py ... [-x COMMAND] HOST                      the client

The client cuts the path by the command; without one it migrates of its own will. Rounds before
that arm the connection (IBA 17.2.8), rounds after it go by the other path. Exit status 1 and a line
that says what was wrong, or 0 and "migrate: done".
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from pyverbs import enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.qp import QPAttr

from traffic import Side, client_round, must, options, server_round, together

ROUNDS = 3  # before the cut, and after it
MIGRATED, REARM, ARMED = 0, 1, 2


def state_of(side):
    """The state of migration, and the index of the GID that the connection goes by."""
    attr, _ = side.qp.query(e.IBV_QP_PATH_MIG_STATE | e.IBV_QP_AV)
    return attr.path_mig_state, attr.ah_attr.sgid_index


def rearm(side, hears, says):
    says.write(f"{side.context.query_gid(1, side.args.alternate)}\n")
    says.flush()
    attr = QPAttr()
    attr.alt_ah_attr = AHAttr(port_num=1, is_global=1,
                              gr=GlobalRoute(dgid=GID(hears.readline().strip()),
                                             sgid_index=side.args.alternate))
    attr.alt_port_num, attr.alt_timeout, attr.path_mig_state = 1, 16, REARM
    side.qp.modify(attr, e.IBV_QP_ALT_PATH | e.IBV_QP_PATH_MIG_STATE)


def main():
    parser = options()
    parser.add_argument("-a", dest="alternate", type=int, required=True)
    parser.add_argument("-x", dest="cut")
    args = parser.parse_args()
    args.octets = 1 << 19
    side = Side(args)
    hears, says = side.meet()
    rearm(side, hears, says)
    together(hears, says)
    a_round = client_round if args.host else server_round
    for n in range(ROUNDS):
        a_round(side, n)
    must(state_of(side) == (ARMED, args.gid), "not armed:", state_of(side))
    together(hears, says)
    if args.host and args.cut:
        # Foreign programs that know nothing of this library crash under ThreadSanitizer.
        plain = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        subprocess.run(args.cut, shell=True, check=True, env=plain)
    elif args.host:
        side.qp.modify(QPAttr(), e.IBV_QP_PATH_MIG_STATE)  # to MIGRATED, which is 0
    together(hears, says)
    for n in range(ROUNDS, 2 * ROUNDS):
        a_round(side, n)
    together(hears, says)
    must(state_of(side) == (MIGRATED, args.alternate), "not migrated:", state_of(side))
    print("migrate: done")


if __name__ == "__main__":
    main()
