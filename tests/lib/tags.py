#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Messages with tags to a tag-matching SRQ, by pyverbs, of which every octet is checked.

  tags.py [-p PORT] [-g GID] [-n ROUNDS]          the server, which has the tags
  tags.py ... HOST                                the client

In each round the server adds tags in any order, and the client sends to them: eager messages,
requests of rendezvous, whose data the server's NIC reads, messages that no tag is for, and some
that have none. Exit status 1 and a line that says what was wrong, or 0 and "tags: N rounds".
"""
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from pyverbs import enums as e
from pyverbs.cq import CQEX, CqInitAttrEx, PollCqAttr
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.srq import OpsWr, SRQ, SrqInitAttrEx
from pyverbs.wr import RecvWR

from traffic import GUARD, MESSAGE_MAX, RECEIVES, Side, must, noise, options, together

MESSAGES = 12  # of a round
NO_TAG, RENDEZVOUS, FIN, EAGER, UNEXPECTED = 0, 1, 2, 3, 4
MATCHED = e.IBV_WC_TM_MATCH | e.IBV_WC_TM_DATA_VALID
ALL_BITS = (1 << 64) - 1
OPS_FLAGS = e.IBV_OPS_SIGNALED | e.IBV_OPS_TM_SYNC


def plan(n, share):
    """Of each message of a round: its kind, its tag, and how long its data is."""
    chance = random.Random(n)
    kinds = [NO_TAG, RENDEZVOUS, EAGER, UNEXPECTED]
    for i in range(MESSAGES):
        kind = kinds[i % len(kinds)]
        longest = share if kind == RENDEZVOUS else MESSAGE_MAX - 16
        octets = chance.choice([0, 1, 1008, 4080, chance.randrange(longest), longest])
        yield kind, n << 8 | i, octets


class Tagged(Side):
    """The server: as any side, but that it receives from an SRQ with tags."""

    def __init__(self, args):
        self.args = args
        self.context = Context(name="verbatim0")
        self.pd = PD(self.context)
        self.cq = CQEX(self.context, CqInitAttrEx(
            cqe=4 * RECEIVES, wc_flags=e.IBV_WC_STANDARD_FLAGS | e.IBV_WC_EX_WITH_TM_INFO))
        attr = SrqInitAttrEx(max_wr=RECEIVES)
        attr.comp_mask = (e.IBV_SRQ_INIT_ATTR_TYPE | e.IBV_SRQ_INIT_ATTR_PD
                          | e.IBV_SRQ_INIT_ATTR_CQ | e.IBV_SRQ_INIT_ATTR_TM)
        attr.srq_type, attr.pd, attr.cq = e.IBV_SRQT_TM, self.pd, self.cq
        attr.max_num_tags, attr.max_ops = MESSAGES, MESSAGES
        self.srq = SRQ(self.context, attr)
        self.octets = args.octets
        self.scratch = 2 * GUARD + self.octets + 8
        self.slots = self.scratch + self.octets
        self.memory = MR(self.pd, self.slots + RECEIVES * MESSAGE_MAX, e.IBV_ACCESS_LOCAL_WRITE)
        self.grant = self.memory  # nothing of it, in fact
        cap = QPCap(max_send_wr=0, max_recv_wr=0, max_send_sge=0, max_recv_sge=0)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq,
                                         srq=self.srq, cap=cap))
        self.unexpected = 0

    def receive(self, slot):
        self.srq.post_recv(RecvWR(wr_id=slot, num_sge=1,
                                  sg=self.sge(self.slots + slot * MESSAGE_MAX, MESSAGE_MAX)))

    def next(self, opcode, flags, limit_s=20):
        """The next completion, which has to be this: its wr_id, its length and its tag."""
        end = time.monotonic() + limit_s
        while self.cq.start_poll(PollCqAttr()):
            must(time.monotonic() < end, "no completion within", limit_s, "s")
        what = self.cq.read_opcode(), self.cq.read_wc_flags()
        got = self.cq.wr_id, self.cq.read_byte_len(), self.cq.read_tm_info().tag
        must(self.cq.status == e.IBV_WC_SUCCESS, "completion status", self.cq.status)
        self.cq.end_poll()
        must(what == (opcode, flags), "completion", what, "instead of", (opcode, flags))
        return got

    def add(self, i, tag, octets):
        self.srq.post_srq_ops(OpsWr(wr_id=i, flags=OPS_FLAGS, unexpected_cnt=self.unexpected,
                                    recv_wr_id=i, tag=tag, mask=ALL_BITS, num_sge=1,
                                    sg_list=self.sge(self.scratch + i * self.args.share, octets)))
        self.next(e.IBV_WC_TM_ADD, 0)


def server_round(side, n, says):
    messages = list(enumerate(plan(n, side.args.share)))
    for i, (kind, tag, octets) in random.Random(-n).sample(messages, MESSAGES):
        if kind in (EAGER, RENDEZVOUS):
            side.add(i, tag, side.args.share)
    says.write("go\n")
    says.flush()
    for i, (kind, tag, octets) in messages:
        at, head = side.scratch + i * side.args.share, 0
        if kind == EAGER:
            got = side.next(e.IBV_WC_TM_RECV, MATCHED)
            must(got == (i, octets, tag), "eager", got)
        elif kind == RENDEZVOUS:
            got = side.next(e.IBV_WC_TM_RECV, e.IBV_WC_TM_MATCH)
            must(got[0] == i and got[2] == tag, "match", got)
            got = side.next(e.IBV_WC_TM_RECV, e.IBV_WC_TM_DATA_VALID)
            must(got[:2] == (i, octets), "data", got)
        else:
            side.unexpected += kind == UNEXPECTED
            got = side.next(e.IBV_WC_TM_RECV if kind == UNEXPECTED else e.IBV_WC_TM_NO_TAG, 0)
            at, head = side.slots + got[0] * MESSAGE_MAX, 16
            must(got[1] == 16 + octets, "ordinary", got)
        data = side.memory.read(head + octets, at) if head + octets else b""
        must(data[head:] == noise((n, i).__repr__(), octets), "message", n, i, "is wrong")
        if head:
            side.receive(got[0])
    # Each was handled: let tags count again.
    side.srq.post_srq_ops(OpsWr(wr_id=99, opcode=e.IBV_WR_TAG_SYNC, flags=OPS_FLAGS,
                                unexpected_cnt=side.unexpected))
    side.next(e.IBV_WC_TM_SYNC, 0)


def client_round(side, n, hears):
    must(hears.readline() == "go\n", "the other side is gone")
    for i, (kind, tag, octets) in enumerate(plan(n, side.args.share)):
        data = noise((n, i).__repr__(), octets)
        op = EAGER if kind == UNEXPECTED else kind
        message = struct.pack("!BxxxIQ", op, n, tag)
        if kind == RENDEZVOUS:
            if octets:
                side.memory.write(data, octets, GUARD)
            message += struct.pack("!QII", side.grant.buf, side.grant.rkey, octets)
        else:
            message += data
        side.memory.write(message, len(message), side.scratch)
        side.qp.post_send(side.request(e.IBV_WR_SEND, side.scratch, len(message)))
        side.sent(1)
        if kind == RENDEZVOUS:
            wc = side.received()
            fin = side.memory.read(16, side.slots + wc.wr_id * MESSAGE_MAX)
            must(wc.byte_len == 16 and fin == struct.pack("!BxxxIQ", FIN, n, tag), "FIN", fin)
            side.receive(wc.wr_id)


def main():
    args = options().parse_args()
    args.share = args.octets // MESSAGES
    side = Side(args) if args.host else Tagged(args)
    hears, says = side.meet()
    for n in range(args.rounds):
        client_round(side, n, hears) if args.host else server_round(side, n, says)
    together(hears, says)
    print(f"tags: {args.rounds} rounds")


if __name__ == "__main__":
    main()
