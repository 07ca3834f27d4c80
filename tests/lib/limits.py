#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the device to the limits that `ibv_devinfo -v` printed.

  limits.py FILE

Of each limit: as much is granted, one more is refused with an errno that means it. Exit status 1
and a line for each that does not hold.
"""
import errno
import os
import re
import sys

from pyverbs import enums as e
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import DM, AllocDmAttr, Context
from pyverbs.mr import MR, MW
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsError, PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr

# ibv_query_gid() and ibv_query_pkey() say -1, and no more.
REFUSED = (errno.EINVAL, errno.ENOMEM, errno.ENODATA, -1)
wrong = []


def printed(path):
    """Name to number, of what ibv_devinfo says."""
    with open(path, encoding="ascii") as file:
        found = re.findall(r"^\s*([\w ]+):\s+(0x[0-9a-f]+|\d+)(?:\s|Bytes|$)", file.read(), re.M)
    # Of max_sge, the first is the device's, the second the tagged buffers'.
    return {name: int(value, 0) for name, value in reversed(found)}


def attempt(make):
    """None if it is granted, else the errno."""
    try:
        made = make()
    except PyverbsRDMAError as error:
        return error.error_code
    except PyverbsError as error:
        # Some of pyverbs's constructors say the errno in words only.
        number = re.search(r"Errno:? ?(\d+)|\[Errno (\d+)\]", str(error))
        return int(number.group(1) or number.group(2)) if number else errno.EINVAL
    if hasattr(made, "close"):
        made.close()
    return None


def holds(name, limit, make):
    """make(limit) is granted, make(limit + 1) is not."""
    code = attempt(lambda: make(limit))
    if code:
        wrong.append(f"{name}: {limit} is refused: {os.strerror(code)}")
    code = attempt(lambda: make(limit + 1))
    if code is None:
        wrong.append(f"{name}: {limit + 1} is granted")
    elif code not in REFUSED:
        wrong.append(f"{name}: {limit + 1} is refused with {os.strerror(code)}")


def counts(name, limit, make):
    """So many exist at once, not one more."""
    made, code = [], None
    while len(made) <= limit and code is None:
        try:
            made.append(make())
        except PyverbsRDMAError as error:
            code = error.error_code
        except PyverbsError:
            code = errno.EINVAL
    if code is None:
        wrong.append(f"{name}: {len(made)} exist at once, more than {limit}")
    elif len(made) < limit:
        wrong.append(f"{name}: only {len(made)} of {limit}: {os.strerror(code)}")
    for thing in reversed(made):
        thing.close()


def main():
    limits = printed(sys.argv[1])
    context = Context(name="verbatim0")
    pd, cq = PD(context), CQ(context, 16)

    def qp(send_wr=1, recv_wr=1, send_sge=1, recv_sge=1):
        cap = QPCap(send_wr, recv_wr, send_sge, recv_sge, 0)
        return QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=cap))

    def srq(wr=1, sge=1):
        return SRQ(pd, SrqInitAttr(SrqAttr(max_wr=wr, max_sge=sge)))

    def rd_atomic(n, responder):
        attr = QPAttr(port_num=1)
        one = qp()
        one.to_init(attr)
        mask = (e.IBV_QP_STATE | e.IBV_QP_AV | e.IBV_QP_PATH_MTU | e.IBV_QP_DEST_QPN
                | e.IBV_QP_RQ_PSN | e.IBV_QP_MAX_DEST_RD_ATOMIC | e.IBV_QP_MIN_RNR_TIMER)
        from pyverbs.addr import AHAttr, GlobalRoute
        route = GlobalRoute(dgid=context.query_gid(1, 0), sgid_index=0)
        attr.qp_state, attr.path_mtu, attr.dest_qp_num = e.IBV_QPS_RTR, e.IBV_MTU_1024, one.qp_num
        attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=route)
        attr.max_dest_rd_atomic = n if responder else 1
        one.modify(attr, mask)
        attr.qp_state, attr.timeout, attr.retry_cnt, attr.rnr_retry = e.IBV_QPS_RTS, 14, 7, 7
        attr.max_rd_atomic = 1 if responder else n
        one.modify(attr, e.IBV_QP_STATE | e.IBV_QP_TIMEOUT | e.IBV_QP_RETRY_CNT
                   | e.IBV_QP_RNR_RETRY | e.IBV_QP_SQ_PSN | e.IBV_QP_MAX_QP_RD_ATOMIC)
        return one

    holds("max_qp_wr, send", limits["max_qp_wr"], lambda n: qp(send_wr=n))
    holds("max_qp_wr, receive", limits["max_qp_wr"], lambda n: qp(recv_wr=n))
    holds("max_sge, send", limits["max_sge"], lambda n: qp(send_sge=n))
    holds("max_sge, receive", limits["max_sge"], lambda n: qp(recv_sge=n))
    holds("max_srq_wr", limits["max_srq_wr"], lambda n: srq(wr=n))
    holds("max_srq_sge", limits["max_srq_sge"], lambda n: srq(sge=n))
    holds("max_cqe", limits["max_cqe"], lambda n: CQ(context, n))
    holds("max_qp_init_rd_atom", limits["max_qp_init_rd_atom"], lambda n: rd_atomic(n, False))
    holds("max_qp_rd_atom", limits["max_qp_rd_atom"], lambda n: rd_atomic(n, True))
    holds("gid_tbl_len", limits["gid_tbl_len"] - 1, lambda n: context.query_gid(1, n))
    holds("max_pkeys", limits["pkey_tbl_len"] - 1, lambda n: context.query_pkey(1, n))
    channel = CompChannel(context)
    holds("max_dm_size", limits["maximum available device memory"],
          lambda n: DM(context, AllocDmAttr(n)))
    holds("num_comp_vectors", limits["num_comp_vectors"] - 1,
          lambda n: CQ(context, 1, None, channel, n))

    memory = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
    # One of each of these exists already.
    counts("max_pd", limits["max_pd"] - 1, lambda: PD(context))
    counts("max_mr", limits["max_mr"] - 1,
           lambda: MR(pd, 64, e.IBV_ACCESS_LOCAL_WRITE, address=memory.buf))
    counts("max_mw", limits["max_mw"], lambda: MW(pd, e.IBV_MW_TYPE_2))
    counts("max_cq", limits["max_cq"] - 1, lambda: CQ(context, 1))
    counts("max_srq", limits["max_srq"], srq)
    counts("max_qp", limits["max_qp"], qp)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
