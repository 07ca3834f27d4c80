# SPDX-License-Identifier: BSD-2-Clause
"""Reads pcapng files as draft-ietf-opsawg-pcapng describes them, with nothing of the product's."""
import collections
import struct

SECTION, INTERFACE, STATISTICS, PACKET = 0x0a0d0d0a, 1, 5, 6

# link: the interface's name; sent: True, False, or None if the packet does not say.
Packet = collections.namedtuple("Packet", "link linktype ns sent comment octets")


class Faulty(Exception):
    """What is wrong with a file."""


def options_of(octets):
    found, at = {}, 0
    while at + 4 <= len(octets):
        code, length = struct.unpack_from("<HH", octets, at)
        if not code:
            break
        found[code] = octets[at + 4:at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return found


def blocks(file):
    """(type, body) of each block; Faulty if one is not whole."""
    while head := file.read(8):
        if len(head) < 8:
            raise Faulty("it ends within a block")
        kind, length = struct.unpack("<II", head)
        rest = file.read(length - 8)
        if length < 12 or length % 4 or len(rest) != length - 8:
            raise Faulty("it ends within a block")
        if struct.unpack("<I", rest[-4:])[0] != length:
            raise Faulty("a block's lengths differ")
        yield kind, rest[:-4]


class Reader:
    """Iterates over the packets of a file; afterwards `lost` and `seen` are what its end says, by
    link, or None without an end."""

    def __init__(self, path):
        self.path, self.lost, self.seen = path, None, None

    def __iter__(self):
        links = []
        with open(self.path, "rb") as file:
            for kind, body in blocks(file):
                if kind == INTERFACE:
                    found = options_of(body[8:])
                    if found[9] != b"\x09":
                        raise Faulty("its times are not in ns")
                    links.append((found[2].decode(), struct.unpack("<H", body[:2])[0]))
                elif kind == STATISTICS:
                    found = options_of(body[12:])
                    link = links[struct.unpack("<I", body[:4])[0]][0]
                    self.lost, self.seen = self.lost or {}, self.seen or {}
                    self.seen[link] = struct.unpack("<Q", found[4])[0]
                    self.lost[link] = struct.unpack("<Q", found[5])[0]
                elif kind == PACKET:
                    yield self.packet(links, body)

    @staticmethod
    def packet(links, body):
        link, high, low, captured, original = struct.unpack("<5I", body[:20])
        if captured != original:
            raise Faulty("a packet is cut")
        found = options_of(body[20 + (captured + 3) // 4 * 4:])
        flags = struct.unpack("<I", found[2])[0] & 3 if 2 in found else 0
        return Packet(*links[link], high << 32 | low, {1: False, 2: True}.get(flags),
                      found.get(1, b"").decode(), body[20:20 + captured])
