#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two agents of NIXL, which exchange memory by its UCX backend and look at each octet.

  nixl_peer.py target PORT                  says "ready" and its process id
  nixl_peer.py initiator PORT ADDRESS TARGET_PORT [until-error]

PORT is where the agent's own metadata server listens. The initiator writes, has the target look at
what came and fill its memory anew, and reads that, with more and more octets. With until-error it
goes on writing until NIXL says that it failed, and that is what it expects then.
"""
import os
import sys
import time

import numpy as np
from nixl._api import nixl_agent, nixl_agent_config

BYTES = 2 << 20
SIZES = [1, 4096, 100003, BYTES]


def pattern(salt):
    return (np.arange(BYTES, dtype=np.uint32) * 2654435761 + salt >> 7).astype(np.uint8)


class Peer:
    def __init__(self, name, other, port):
        config = nixl_agent_config(enable_listen_thread=True, listen_port=port, backends=["UCX"])
        self.agent, self.other, self.notes = nixl_agent(name, config), other, []
        self.memory = np.zeros(BYTES, dtype=np.uint8)
        self.agent.register_memory(self.agent.get_reg_descs(
            [(self.memory.ctypes.data, BYTES, 0, "")], "DRAM"))

    def descs(self, size):
        return self.agent.get_xfer_descs([(self.memory.ctypes.data, size, 0)], "DRAM")

    def await_other(self):
        while not self.agent.check_remote_metadata(self.other):
            time.sleep(0.01)

    def say(self, note):
        self.agent.send_notif(self.other, note)

    def hear(self):
        """The oldest thing that the other one said."""
        while not self.notes:
            self.notes += self.agent.get_new_notifs().get(self.other, [])
            time.sleep(0.001)
        return self.notes.pop(0)


def target(port):
    peer = Peer("target", "initiator", port)
    print("ready", os.getpid(), flush=True)
    peer.await_other()
    peer.say(peer.agent.get_serialized_descs(peer.descs(BYTES)))
    while True:
        note = peer.hear().split()
        if note[0] == b"end":
            peer.say(b"bye")
            return
        size, salt = int(note[1]), int(note[2])
        right = (peer.memory[:size] == pattern(salt)[:size]).all()
        peer.memory[:] = pattern(salt + 1)
        peer.say(b"right" if right else b"wrong")


def transfer(peer, kind, size, remote, note=b""):
    """Whether it went well."""
    handle = peer.agent.initialize_xfer(kind, peer.descs(size), remote, peer.other, note)
    state = peer.agent.transfer(handle)
    while state == "PROC":
        state = peer.agent.check_xfer_state(handle)
    if state == "DONE":
        peer.agent.release_xfer_handle(handle)
    return state == "DONE"


def initiator(port, address, target_port, until_error):
    peer = Peer("initiator", "target", port)
    peer.agent.fetch_remote_metadata("target", address, target_port)
    peer.agent.send_local_metadata(address, target_port)
    base = peer.agent.deserialize_descs(peer.hear())[0][0]
    peer.await_other()
    count = 0
    while until_error:
        remote = peer.agent.get_xfer_descs([(base, 100003, 0)], "DRAM")
        try:
            well = transfer(peer, "WRITE", 100003, remote)
        except Exception as error:
            well = False
            print(type(error).__name__, error)
        if not well:
            print(f"failed after {count or 'no'} transfers")
            return 0 if count else 1
        count += 1
        if count == 10:
            print("writing", flush=True)
    for salt, size in enumerate(SIZES):
        remote = peer.agent.get_xfer_descs([(base, size, 0)], "DRAM")
        peer.memory[:] = pattern(salt)
        if not transfer(peer, "WRITE", size, remote, b"written %d %d" % (size, salt)):
            return "a write failed"
        if peer.hear() != b"right":
            return f"{size} octets arrived wrong"
        peer.memory[:] = 0
        if not transfer(peer, "READ", size, remote):
            return "a read failed"
        if not (peer.memory[:size] == pattern(salt + 1)[:size]).all() or peer.memory[size:].any():
            return f"{size} octets were read wrong"
    peer.say(b"end")
    peer.hear()
    print("all octets are right")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "target":
        sys.exit(target(int(sys.argv[2])))
    sys.exit(initiator(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), len(sys.argv) > 5))
