#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Judges captures of running programs.

  capture_check.py [--min N] [--lost] [--cut] [--link NAME] FILE ...

Of each file: its blocks are whole and its times ascend; it says that nothing was lost (--lost:
that something was); the requests of each QP, and READ responses, have PSNs without a gap, in each
direction (but what comes by UDP: the wire may lose it, and a READ that got lost leaves a gap
between responses to others); what is sent again says so, and what is of
a work request names it. --cut: its reader was killed, so that it has no end.
--link: that link, and no other, has packets.
"""
import argparse
import collections
import re
import sys

import pcapng

ACKS = {17, 18}
READ_REQUEST, READ_RESPONSES, RESPONSES_BEGIN = 12, {13, 14, 15, 16}, {13, 16}


def gap_of(psns, reads):
    """Where there is one in PSNs in the order of their packets; None: nowhere. They wrap. A READ
    request takes the PSNs of its responses as well: all up to the next request's."""
    place, seen = 0, {0}
    for before, psn in zip(psns, psns[1:]):
        ahead = ((psn - before + (1 << 23)) & 0xffffff) - (1 << 23)
        if before in reads:
            seen.update(range(place, place + ahead))
        place += ahead
        seen.add(place)
    if len(seen) == max(seen) - min(seen) + 1:
        return None
    return next(psns[0] + i for i in range(min(seen), max(seen)) if i not in seen) & 0xffffff


def gap_of_answers(answers):
    """The same of (PSN, may it follow any other?)."""
    runs = []
    for psn, anew in answers:
        if anew or not runs:
            runs.append([])
        runs[-1].append(psn)
    return next((gap for gap in map(lambda run: gap_of(run, ()), runs) if gap is not None), None)


class Flow:
    """The requests to one QP, in one direction."""

    def __init__(self):
        self.psns, self.reads, self.top, self.fresh = [], set(), None, False

    def add(self, packet, psn, reads):
        if not packet.sent or ", sent again" not in packet.comment:
            self.psns.append(psn)
        if reads:
            self.reads.add(psn)
        ahead = self.top is None or 0 < ((psn - self.top) & 0xffffff) < 1 << 23
        again = ", sent again" in packet.comment
        if packet.sent and not again and not ahead:
            raise pcapng.Faulty(f"PSN {psn} is sent again, and says nothing")
        # A READ that is sent again may begin within the first one's PSNs.
        if again and ahead and self.fresh and not self.reads:
            raise pcapng.Faulty(f"PSN {psn} says that it is sent again")
        self.fresh |= not again
        if ahead:
            self.top = psn


def bth_of(packet):
    ip = packet.octets
    return ip[28:] if ip[0] >> 4 == 4 else ip[48:]


def owned_as_it_should(packet, opcode):
    """Requests that leave are of a work request, and so are SENDs that were taken; but not MADs."""
    if packet.comment.endswith(", QPN 0x1"):
        return True
    request = opcode >> 5 in (0, 1, 3, 5) and opcode & 31 not in ACKS | READ_RESPONSES
    taken = opcode & 31 < 6 and not re.search(", (dropped|not taken|a repeated)", packet.comment)
    return ", wr_id 0x" in packet.comment or not request or not (packet.sent or taken)


def judge(path, args):
    """(packets, those of a work request)"""
    flows, answers = collections.defaultdict(Flow), collections.defaultdict(list)
    acked, before, count, owned = set(), 0, 0, 0
    reader = pcapng.Reader(path)
    try:
        for packet in reader:
            count += 1
            owned += ", wr_id 0x" in packet.comment
            if packet.ns < before:
                raise pcapng.Faulty("its times do not ascend")
            before = packet.ns
            if args.link and packet.link != args.link:
                raise pcapng.Faulty(f"a packet is of {packet.link}")
            if not re.match(r"\S.* \(pid \d+\)", packet.comment) or packet.sent is None:
                raise pcapng.Faulty(f"a packet says {packet.comment!r}")
            if packet.linktype != 101:
                continue
            bth = bth_of(packet)
            opcode, psn = bth[0], int.from_bytes(bth[9:12], "big")
            if not owned_as_it_should(packet, opcode):
                raise pcapng.Faulty(f"a request (opcode {opcode}) is of no work request")
            if packet.link == "udp" and not packet.sent:
                continue  # the wire may lose it
            key = packet.sent, bth[5:8]
            if opcode in READ_RESPONSES:
                answers[key].append((psn, packet.link == "udp" and opcode in RESPONSES_BEGIN))
            elif opcode in ACKS:
                acked.add(key) # one for many: what is missing is not known
            elif opcode >> 5 in (0, 1):
                flows[key].add(packet, psn, opcode == READ_REQUEST)
    except pcapng.Faulty as fault:
        if not (args.cut and "within a block" in str(fault)):
            raise
    if not args.cut and reader.lost is None:
        raise pcapng.Faulty("it has no end")
    if reader.lost is not None and bool(sum(reader.lost.values())) != args.lost:
        raise pcapng.Faulty(f"it lost {reader.lost}")
    if reader.lost is not None and sum(reader.seen.values()) != count + sum(reader.lost.values()):
        raise pcapng.Faulty(f"it has {count} packets, and says {reader.seen}")
    gaps = [(key, gap_of(flow.psns, flow.reads)) for key, flow in flows.items()]
    gaps += [(key, gap_of_answers(answer)) for key, answer in answers.items() if key not in acked]
    for (sent, qpn), gap in gaps:
        if gap is not None and not args.lost:
            raise pcapng.Faulty(f"PSN {gap} to QPN 0x{qpn.hex()} is missing, "
                                f"{'sent' if sent else 'received'}")
    return count, owned


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--min", type=int, default=1)
    parser.add_argument("--lost", action="store_true")
    parser.add_argument("--cut", action="store_true")
    parser.add_argument("--link")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    total, status = 0, 0
    for path in args.files:
        try:
            count, owned = judge(path, args)
        except pcapng.Faulty as fault:
            print(f"{path}: {fault}")
            status = 1
            continue
        total += count
        print(f"{path}: {count} packets, {owned} of work requests")
    if total < args.min:
        print(f"{total} packets in all, fewer than {args.min}")
        status = 1
    sys.exit(status)


main()
