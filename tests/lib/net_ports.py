#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The ports of a modelled network (VERBATIM_NET), as src/link/around/net_ports.h has them.

    net_ports.py NAME      says "ready", and at the end of its input a line for each address and
                           way:
                           ADDRESS up|down FRAMES OCTETS LOST MARKED LONGEST_WAIT_NS
"""
import fcntl
import ipaddress
import mmap
import os
import struct
import sys
import time

PORTS = 4096
WAYS = ("up", "down")
FIGURES = ("done_ns", "frames", "bytes", "lost", "marked", "most_ns")
PORT = struct.Struct("=Q16s" + "6Q" * len(WAYS))


class Ports:
    """Open before the first program starts, so that the figures outlive the last one."""

    def __init__(self, name):
        self.path = f"/dev/shm/verbatim-net.{os.geteuid()}.{name}"
        self.file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.file, fcntl.LOCK_SH)
        os.ftruncate(self.file, PORT.size * PORTS)
        self.memory = mmap.mmap(self.file, PORT.size * PORTS)

    def figures(self):
        """By address and way."""
        found = {}
        for values in PORT.iter_unpack(self.memory):
            who, gid, *figures = values
            if not who:
                continue
            address = ipaddress.IPv6Address(gid)
            address = str(address.ipv4_mapped or address)
            for i, way in enumerate(WAYS):
                part = figures[i * len(FIGURES):(i + 1) * len(FIGURES)]
                found[address, way] = dict(zip(FIGURES, part))
        return found

    @staticmethod
    def waiting_s(figures):
        """How long what waits at this moment takes."""
        return max(0, figures["done_ns"] - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) / 1e9

    def close(self):
        self.memory.close()
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(self.path)
        except OSError:
            pass
        os.close(self.file)


def main():
    ports = Ports(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.read()
    for (address, way), figures in sorted(ports.figures().items()):
        print(address, way, *(figures[name] for name in FIGURES[1:]))
    ports.close()


if __name__ == "__main__":
    main()
