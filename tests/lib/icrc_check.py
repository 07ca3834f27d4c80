#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks every RoCEv2 packet of pcap and pcapng files by an arithmetic that is not the product's.

  icrc_check.py [--min N] FILE.pcap ...

Of each packet: the lengths of IP and UDP agree, it ends on a word, and its invariant CRC is right
(IBTA Annex A17.3.3: what may change on the way counts as ones, eight octets of ones stand for the
LRH). Prints a line for each packet that is wrong, then a summary; exit status 1 if any is, or if
there are fewer than N.
"""
import argparse
import collections
import struct
import sys
import zlib

import pcapng

ROCE_PORT = 4791
UDP = 17
MAGIC = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">",
         b"\xa1\xb2\x3c\x4d": ">"}
# By link type: how many octets stand before the IP header.
LINK = {1: 14, 12: 0, 101: 0, 113: 16, 228: 0, 229: 0, 276: 20}


def packets(path):
    """The packets of a file, from the IP header on."""
    with open(path, "rb") as file:
        magic = file.read(4)
        order = MAGIC.get(magic)
        if magic == b"\x0a\x0d\x0d\x0a":
            yield from (packet.octets[LINK[packet.linktype]:] for packet in pcapng.Reader(path))
            return
        if not order:
            sys.exit(f"{path}: no pcap file")
        skip = LINK[struct.unpack(order + "16xI", file.read(20))[0] & 0xffff]
        while record := file.read(16):
            captured, original = struct.unpack(order + "8xII", record)
            octets = file.read(captured)
            if captured == original:
                yield octets[skip:]


def masked(ip, headers):
    """The packet, bytearray, with everything that may change on the way set to ones."""
    if ip[0] >> 4 == 4:
        ones = [1, 8, 10, 11]  # TOS, TTL, checksum
    else:
        ip[0] |= 0x0f  # traffic class and flow label begin in the version's octet
        ones = [1, 2, 3, 7]  # and the hop limit
    for at in ones + [headers - 2, headers - 1, headers + 4]:  # UDP checksum; BTH: FECN, BECN
        ip[at] = 0xff
    return ip


def fault(ip):
    """What is wrong with a packet: a word; None if nothing; "other" if it is no RoCEv2."""
    version = ip[0] >> 4 if ip else 0
    if version == 4:
        header, total, protocol = 4 * (ip[0] & 15), struct.unpack(">2xH", ip[:4])[0], ip[9]
    elif version == 6:
        header, total, protocol = 40, 40 + struct.unpack(">4xH", ip[:6])[0], ip[6]
    else:
        return "other"
    if protocol != UDP or struct.unpack(">2xH", ip[header:header + 4])[0] != ROCE_PORT:
        return "other"
    ip = ip[:total]
    if len(ip) != total or struct.unpack(">4xH", ip[header:header + 6])[0] != total - header:
        return "length"
    if total - header < 8 + 12 + 4 or (total - header) % 4:
        return "size"
    octets = masked(bytearray(ip[:-4]), header + 8)
    crc = zlib.crc32(b"\xff" * 8 + octets)
    return None if struct.pack("<I", crc) == ip[-4:] else "ICRC"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--min", type=int, default=1)
    parser.add_argument("file", nargs="+")
    args = parser.parse_args()
    found = collections.Counter()
    for path in args.file:
        for number, ip in enumerate(packets(path), 1):
            wrong = fault(ip)
            found[wrong] += 1
            if wrong not in (None, "other") and found[wrong] <= 10:
                print(f"{path}: packet {number}: wrong {wrong}: {ip[:64].hex()}")
    bad = sum(found.values()) - found[None] - found["other"]
    print(f"{found[None]} packets right, {bad} wrong, {found['other']} of other protocols")
    return 1 if bad or found[None] < args.min else 0


if __name__ == "__main__":
    sys.exit(main())
