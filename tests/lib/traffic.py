#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""RC traffic of which every octet is checked, by pyverbs, whatever the path does to packets.

  traffic.py [-p PORT] [-g GID] [-n ROUNDS] [-s OCTETS] [-m PATH_MTU]          the server
  traffic.py ... HOST                                                          the client

In each round the client
  writes noise into the server's memory in parts, the last with an immediate; the server compares,
  reads it back in other parts, and compares,
  sends messages of many sizes, which the server compares with what they have to be, in order,
  and adds to a word of the server's, whose old value it predicts.
Before and behind what the server grants lie guard octets that nobody may touch. A message back
ends the round. Exit status 1 and a line that says what was wrong, or 0 and "traffic: N rounds".
"""
import argparse
import random
import socket
import sys
import time

from pyverbs import enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

GUARD, MESSAGE_MAX, MESSAGES, PARTS, ADDS, RECEIVES = 4096, 20000, 16, 7, 8, 64
SENT = 1000  # the wr_id of whatever is posted to send; those of receives are their slots
GRANTS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
          | e.IBV_ACCESS_REMOTE_ATOMIC)
MTUS = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}


def noise(seed, octets):
    return random.Random(seed).randbytes(octets)


def sizes(seed):
    """Of a round's messages: edges of packets among them, and nothing at all."""
    chance = random.Random(seed)
    return [0, 1, 4096, 4097] + [chance.randrange(MESSAGE_MAX) for _ in range(MESSAGES - 4)]


def parts(seed, octets):
    """Offset and length of PARTS pieces that make up the whole."""
    cuts = sorted(random.Random(seed).randrange(octets) for _ in range(PARTS - 1))
    return [(a, b - a) for a, b in zip([0] + cuts, cuts + [octets])]


def must(truth, *what):
    if not truth:
        print("traffic:", *what, flush=True)
        sys.exit(1)


def together(hears, says):
    """Nobody goes on before both are here: so the other still gets what he needs from us."""
    says.write("here\n")
    says.flush()
    must(hears.readline() == "here\n", "the other side is gone")


def options():
    """Those of every program that meets another copy of itself."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-p", dest="port", type=int, default=18515)
    parser.add_argument("-g", dest="gid", type=int, default=0)
    parser.add_argument("-n", dest="rounds", type=int, default=10)
    parser.add_argument("host", nargs="?")
    parser.set_defaults(octets=1 << 20, mtu=1024)
    return parser


class Side:
    """Memory: guard, grant (data and a word), guard, scratch (as large as the data), messages."""

    def __init__(self, args):
        self.args = args
        self.early = []
        self.context = Context(name="verbatim0")
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 4 * RECEIVES)
        self.octets = args.octets
        self.scratch = 2 * GUARD + self.octets + 8
        self.slots = self.scratch + self.octets
        self.memory = MR(self.pd, self.slots + RECEIVES * MESSAGE_MAX, e.IBV_ACCESS_LOCAL_WRITE)
        self.memory.write(b"G" * self.scratch, self.scratch)
        self.memory.write(bytes(8), 8, GUARD + self.octets)
        self.grant = MR(self.pd, self.octets + 8, GRANTS, address=self.memory.buf + GUARD)
        cap = QPCap(max_send_wr=64, max_recv_wr=RECEIVES, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap))

    def meet(self):
        """
        Exchanges what either has to know of the other, and connects the queue pairs. Returns two
        files: one for both would forget what it has read ahead when it writes.
        """
        if self.args.host:
            connection = socket.create_connection((self.args.host, self.args.port))
        else:
            connection = socket.create_server(("", self.args.port)).accept()[0]
        hears, says = connection.makefile("r"), connection.makefile("w")
        gid = self.context.query_gid(1, self.args.gid)
        psn = random.randrange(1 << 24)
        says.write(f"{gid} {self.qp.qp_num} {psn} {self.grant.buf} {self.grant.rkey}\n")
        says.flush()
        peer, qpn, their_psn, self.address, self.rkey = hears.readline().split()
        self.address, self.rkey = int(self.address), int(self.rkey)
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = GRANTS
        self.qp.to_init(attr)
        attr.path_mtu = MTUS[self.args.mtu]
        attr.dest_qp_num, attr.rq_psn, attr.sq_psn = int(qpn), int(their_psn), psn
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 8
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 16, 7, 7
        attr.ah_attr = AHAttr(port_num=1, is_global=1,
                              gr=GlobalRoute(dgid=GID(peer), sgid_index=self.args.gid))
        for slot in range(RECEIVES):
            self.receive(slot)
        self.qp.to_rts(attr)
        together(hears, says)  # nobody speaks before both are ready
        return hears, says

    def sge(self, offset, octets):
        return [SGE(self.memory.buf + offset, octets, self.memory.lkey)]

    def receive(self, slot):
        self.qp.post_recv(RecvWR(wr_id=slot, num_sge=1,
                                 sg=self.sge(self.slots + slot * MESSAGE_MAX, MESSAGE_MAX)))

    def request(self, opcode, offset, octets, **more):
        return SendWR(wr_id=SENT, opcode=opcode, num_sge=1, sg=self.sge(offset, octets), **more)

    def wait(self, limit_s=20):
        """The next completion, which has to be a good one."""
        end = time.monotonic() + limit_s
        while True:
            n, wcs = self.cq.poll(1)
            if n:
                must(wcs[0].status == e.IBV_WC_SUCCESS, "completion status", wcs[0].status)
                return wcs[0]
            must(time.monotonic() < end, "no completion within", limit_s, "s")

    def sent(self, n):
        """Waits for n completions of what was posted to send; messages may come before them."""
        while n:
            wc = self.wait()
            if wc.wr_id == SENT:
                n -= 1
            else:
                self.early.append(wc)

    def received(self):
        """The next message's completion."""
        return self.early.pop(0) if self.early else self.wait()

    def message_next(self, seed, octets):
        """Waits for a message, which has to be this noise."""
        wc = self.received()
        must(wc.wr_id < RECEIVES and wc.byte_len == octets, "message of", wc.byte_len, "octets,",
             "not of", octets)
        got = self.memory.read(octets, self.slots + wc.wr_id * MESSAGE_MAX) if octets else b""
        must(got == noise(seed, octets), "message", seed, "is wrong")
        self.receive(wc.wr_id)


def client_round(side, n):
    region = parts(2 * n, side.octets)
    data = noise(n, side.octets)
    side.memory.write(data, side.octets, GUARD)
    for i, (offset, octets) in enumerate(region):
        last = i == len(region) - 1
        wr = side.request(e.IBV_WR_RDMA_WRITE_WITH_IMM if last else e.IBV_WR_RDMA_WRITE,
                       GUARD + offset, octets, imm_data=n if last else 0)
        wr.set_wr_rdma(side.rkey, side.address + offset)
        side.qp.post_send(wr)
    side.sent(len(region))

    side.memory.write(bytes(side.octets), side.octets, side.scratch)
    region = parts(2 * n + 1, side.octets)
    for offset, octets in region:
        wr = side.request(e.IBV_WR_RDMA_READ, side.scratch + offset, octets)
        wr.set_wr_rdma(side.rkey, side.address + offset)
        side.qp.post_send(wr)
    side.sent(len(region))
    must(side.memory.read(side.octets, side.scratch) == data, "round", n, "reads back wrong data")

    # The scratch is free again: the messages lie there, and the words that atomics bring.
    at = side.scratch
    for i, octets in enumerate(sizes(n)):
        if octets:
            side.memory.write(noise((n, i).__repr__(), octets), octets, at)
        side.qp.post_send(side.request(e.IBV_WR_SEND, at, octets))
        at += octets
    side.sent(MESSAGES)
    for i in range(ADDS):
        wr = side.request(e.IBV_WR_ATOMIC_FETCH_AND_ADD, side.scratch + 8 * i, 8)
        wr.set_wr_atomic(side.rkey, side.address + side.octets, n + 1, 0)
        side.qp.post_send(wr)
    side.sent(ADDS)
    for i in range(ADDS):
        want = sum(range(n + 1)) * ADDS + i * (n + 1)
        got = int.from_bytes(side.memory.read(8, side.scratch + 8 * i), sys.byteorder)
        must(got == want, "fetch-and-add brings", got, "instead of", want)
    side.message_next(-n, 100)


def server_round(side, n):
    wc = side.received()
    must(wc.opcode == e.IBV_WC_RECV_RDMA_WITH_IMM and wc.imm_data == n, "no immediate of round", n)
    side.receive(wc.wr_id)
    must(side.memory.read(side.octets, GUARD) == noise(n, side.octets), "round", n, "writes wrong")
    for i, octets in enumerate(sizes(n)):
        side.message_next((n, i).__repr__(), octets)
    for guard in (0, GUARD + side.octets + 8):
        must(side.memory.read(GUARD, guard) == b"G" * GUARD, "a guard is gone")
    side.memory.write(noise(-n, 100), 100, side.scratch)
    side.qp.post_send(side.request(e.IBV_WR_SEND, side.scratch, 100))
    side.sent(1)


def main():
    parser = options()
    parser.add_argument("-s", dest="octets", type=int)
    parser.add_argument("-m", dest="mtu", type=int)
    args = parser.parse_args()
    must(args.octets % 8 == 0 and args.octets >= MESSAGES * MESSAGE_MAX, "too few octets")
    side = Side(args)
    hears, says = side.meet()
    for n in range(args.rounds):
        client_round(side, n) if args.host else server_round(side, n)
    together(hears, says)
    print(f"traffic: {args.rounds} rounds")


if __name__ == "__main__":
    main()
