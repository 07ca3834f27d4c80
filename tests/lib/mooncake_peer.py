#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two of Mooncake's transfer engines, which exchange memory and look at each octet.

  mooncake_peer.py target ADDRESS           says "ready", its process id, TARGET and MEMORY
  mooncake_peer.py initiator ADDRESS TARGET MEMORY [until-error | until-told | in-spite]

ADDRESS is the own one. The initiator writes, has the target
look at what came and fill its memory anew, and reads that, with more and more octets. With
until-error it goes on writing until Mooncake says that it failed, and that is what it expects then.
With until-told it does all that again and again with as much as there is, says each time how often
it has, and ends at SIGTERM; in-spite is the same, but a transfer that fails is tried again.
"""
import itertools
import os
import signal
import sys
import time

import numpy as np
from mooncake.engine import TransferEngine

BYTES = 2 << 20
SIZES = [1, 4096, 100003, BYTES]
# Behind the data: number of the question, size, salt; and the number and answer, which the other
# side reads.
WORDS = 8
RIGHT, WRONG = 1, 2


def pattern(salt):
    return (np.arange(BYTES, dtype=np.uint32) * 2654435761 + salt >> 7).astype(np.uint8)


class Peer:
    def __init__(self, address):
        self.engine = TransferEngine()
        if self.engine.initialize(address, "P2PHANDSHAKE", "rdma", ""):
            sys.exit("initialize failed")
        self.memory = np.zeros(BYTES + 4 * WORDS, dtype=np.uint8)
        self.data, self.words = self.memory[:BYTES], self.memory[BYTES:].view(np.uint32)
        self.address = self.memory.ctypes.data
        if self.engine.register_memory(self.address, self.memory.nbytes):
            sys.exit("register_memory failed")


def target(address):
    peer = Peer(address)
    print("ready", os.getpid(), f"{address}:{peer.engine.get_rpc_port()}", peer.address, flush=True)
    number = 0
    while True:
        while peer.words[0] == number:
            time.sleep(0.001)
        number, size, salt = (int(word) for word in peer.words[:3])
        if not size:
            return
        right = (peer.data[:size] == pattern(salt)[:size]).all()
        peer.data[:] = pattern(salt + 1)
        peer.words[4] = RIGHT if right else WRONG
        peer.words[3] = number


class Initiator(Peer):
    def __init__(self, address, other, base):
        super().__init__(address)
        self.other, self.base = other, base
        self.tries, self.failed = 1, 0

    def move(self, call, at, size):
        for _ in range(self.tries):
            rc = call(self.other, self.address + at, self.base + at, size)
            if not rc:
                return 0
            self.failed += 1
        return rc

    def write(self, at, size):
        return self.move(self.engine.transfer_sync_write, at, size)

    def read(self, at, size):
        return self.move(self.engine.transfer_sync_read, at, size)

    def say(self, number, size, salt):
        """The number comes last: a WRITE's octets may arrive in any order."""
        self.words[:3] = number, size, salt
        return self.write(BYTES + 4, 8) or self.write(BYTES, 4)

    def until_error(self):
        count = 0
        while self.write(0, 100003) == 0:
            count += 1
            if count == 10:
                print("writing", flush=True)
        print(f"failed after {count or 'no'} transfers")
        return 0 if count else 1

    def exchange(self, number, size):
        """Says what went wrong."""
        self.data[:] = pattern(number)
        if self.write(0, size) or self.say(number, size, number):
            return "a write failed"
        while self.words[3] != number:
            if self.read(BYTES + 12, 8):
                return "a read failed"
        if self.words[4] != RIGHT:
            return f"{size} octets arrived wrong"
        self.data[:] = 0
        if self.read(0, size):
            return "a read failed"
        if not (self.data[:size] == pattern(number + 1)[:size]).all() or self.data[size:].any():
            return f"{size} octets were read wrong"
        return ""

    def end(self, number):
        if self.say(number, 0, 0):
            return "the last write failed"
        print("all octets are right")
        return 0

    def run(self):
        for number, size in enumerate(SIZES, 1):
            wrong = self.exchange(number, size)
            if wrong:
                return wrong
        return self.end(len(SIZES) + 1)

    def until_told(self, tries):
        told = []
        signal.signal(signal.SIGTERM, lambda *_: told.append(True))
        self.tries = tries
        for number in itertools.count(1):
            wrong = self.exchange(number, BYTES)
            if wrong:
                return wrong
            print(f"moved {number}, failed {self.failed}", flush=True)
            if told:
                return self.end(number + 1)


def initiate(address, other, memory, how=""):
    initiator = Initiator(address, other, int(memory))
    if how == "until-error":
        return initiator.until_error()
    if how:
        return initiator.until_told(100 if how == "in-spite" else 1)
    return initiator.run()


if __name__ == "__main__":
    if sys.argv[1] == "target":
        sys.exit(target(sys.argv[2]))
    sys.exit(initiate(*sys.argv[2:]))
