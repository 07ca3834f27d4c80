#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Whether a capture shows the same in each kind of message, whoever of two says it, we or Linux's
connection manager. tshark reads the fields; those of SIDR_REQ and SIDR_REP it does not know.

  cm_fields.py PCAP ADDRESS ...     ADDRESS: ours
"""
import subprocess
import sys
import xml.etree.ElementTree as xml

NAMES = {0x10: "REQ", 0x12: "REJ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP",
         0x17: "SIDR_REQ", 0x18: "SIDR_REP"}
UD_SEND_ONLY = "64"
# By what messages of one kind differ: the reason of a REJ, the status of a SIDR_REP.
KIND_AT = {0x12: slice(10, 12), 0x18: slice(4, 5)}
# What is each message's own: who says it to whom, numbers that are random or counted. The whole and
# its parts are compared field by field.
OWN = {"bth.psn", "bth.a", "mad.transactionid", "invariant.crc", "cm.req", "cm.rep", "cm.req.ip_cm",
       "bth", "mad", "mad.data", "smplid.smpdata"}
OWN |= {f"cm.req.{name}" for name in
        ("localcaguid", "localqpn", "startpsn", "serviceid", "serviceid.dport", "prim_localgid",
         "prim_localgid_ipv4", "prim_remotegid", "prim_remotegid_ipv4", "ip_cm.sport", "ip_cm.sip4",
         "ip_cm.dip4", "ip_cm.sip6", "ip_cm.dip6", "remoteqpneecn")}
OWN |= {f"cm.rep.{name}" for name in ("remotecommid", "localqpn", "startpsn", "localcaguid")}
OWN |= {f"cm.{message}.{name}" for message in ("rej", "rtu", "dreq", "drsp")
        for name in ("localcommid", "remotecommid")}
# The same in the octets of SIDR: request, service, addresses of the IP header; QPN.
SIDR_OWN = {0x17: [(0, 4), (8, 16), (18, 20), (20, 52)], 0x18: [(0, 4), (9, 12), (12, 20)]}
# What differs, and why.
DIFFERS = {
    ("REP", "cm.rep.tgtackdelay"): "as either device says of itself",
    ("REP", "cm.rep.failoveracc"): "ours is truthful: there is no other path to fail over to",
    ("REQ", "cm.req.prim_localacktout"): "follows from the lifetime: 18 in older kernels, then 16",
    # Ours is 0: QPs differ by their UDP ports. tshark 4.0 reads too few octets of this word, so the
    # other two are what Linux's label leaves there.
    ("REQ", "cm.req.prim_flowlabel"): "Linux makes one of the ports",
    ("REQ", "cm.req.prim_pktrate"): "of the flow label's word",
    ("REQ", "cm.req.prim_reserved0"): "of the flow label's word",
}


def sidr_octets(attribute, text):
    octets = bytearray.fromhex(text)
    for begin, end in SIDR_OWN[attribute]:
        octets[begin:end] = bytes(end - begin)
    return octets.hex()


def messages(path):
    """(kind, source, fields) of each MAD. The kind: name, IP version, reason or status."""
    done = subprocess.run(["tshark", "-r", path, "-T", "pdml"], capture_output=True, check=True)
    for packet in xml.fromstring(done.stdout).iter("packet"):
        show, fields = {}, {}
        for field in packet.iter("field"):
            show.setdefault(field.get("name"), field.get("show"))
            name = field.get("name").removeprefix("infiniband.")
            if name != field.get("name"):
                fields.setdefault(name, field.get("value") or field.get("show"))
        attribute = int(fields.get("mad.attributeid", "0"), 16)
        if fields["bth.opcode"] != UD_SEND_ONLY or attribute not in NAMES:
            continue
        data = fields["mad.data"]
        kind = bytes.fromhex(data)[KIND_AT.get(attribute, slice(0, 0))].hex()
        told = {name: text for name, text in fields.items() if name not in OWN}
        told["length"] = show["udp.length"]
        if attribute in SIDR_OWN:
            told["octets"] = sidr_octets(attribute, data)
        yield ((NAMES[attribute], "IPv4" if "ip.src" in show else "IPv6", kind),
               show.get("ip.src") or show["ipv6.src"], told)


def main():
    path, ours = sys.argv[1], sys.argv[2:]
    said = {True: {}, False: {}}
    for kind, source, told in messages(path):
        said[source in ours].setdefault(kind, told)
    wrong = 0
    for kind in sorted(said[True].keys() | said[False].keys()):
        own, linux = said[True].get(kind, {}), said[False].get(kind, {})
        for name in sorted(own.keys() | linux.keys()):
            if own.get(name) != linux.get(name) and (kind[0], name) not in DIFFERS:
                print(*kind, f"{name}: {own.get(name)}, Linux {linux.get(name)}")
                wrong += 1
    print(len(said[True]), "kinds of messages")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
