#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What tshark reads in the messages of communication management that tests/lib/cm_lines.c writes:
each field alone, all of its bits set, and all fields at once. tshark 4.0 knows the fields of six of
the eleven messages, and tells of the others what their attribute is."""
import ipaddress
import os
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("VB_BUILD", HERE + "/../../build")

# tshark's words of a path, behind prim_ and alt_. Flow label and packet rate share a word of 32
# bits, of which tshark 4.0 reads fewer octets than its masks are for.
PATH = {"locallid": "local_lid", "remotelid": "remote_lid", "localgid": "local_gid",
        "remotegid": "remote_gid", "tfcclass": "traffic_class", "hoplim": "hop_limit", "sl": "sl",
        "subnetlocal": "subnet_local", "localacktout": "local_ack_timeout"}

# By message: tshark's name, behind infiniband.cm., and ours; "" is reserved, and zero.
FIELDS = {
    "REQ": {
        "req": "local_comm_id",
        "req.serviceid": "req.service_id",
        "req.localcaguid": "req.local_ca_guid",
        "req.localqkey": "req.local_qkey",
        "req.localqpn": "req.local_qpn",
        "req.responderres": "req.responder_resources",
        "req.localeecn": "req.local_eecn",
        "req.initdepth": "req.initiator_depth",
        "req.remoteeecn": "req.remote_eecn",
        "req.remoteresptout": "req.remote_cm_response_timeout",
        "req.transpsvctype": "req.transport_service_type",
        "req.e2eflowctrl": "req.end_to_end_flow_control",
        "req.startpsn": "req.starting_psn",
        "req.localresptout": "req.local_cm_response_timeout",
        "req.retrcount": "req.retry_count",
        "req.pkey": "req.partition_key",
        "req.pppmtu": "req.path_mtu",
        "req.rdcexist": "req.rdc_exists",
        "req.rnrretrcount": "req.rnr_retry_count",
        "req.maxcmretr": "req.max_cm_retries",
        "req.srq": "req.srq",
        "req.ext_transport": "req.extended_transport_type",
        **{f"req.prim_{theirs}": f"req.primary.{ours}" for theirs, ours in PATH.items()},
        **{f"req.alt_{theirs}": f"req.alternate.{ours}" for theirs, ours in PATH.items()},
        "req.prim_reserved1": "", "req.prim_reserved2": "",
    },
    "REP": {
        "rep": "local_comm_id",
        "rep.remotecommid": "remote_comm_id",
        "rep.localqkey": "rep.local_qkey",
        "rep.localqpn": "rep.local_qpn",
        "rep.localeecn": "rep.local_eecn",
        "rep.startpsn": "rep.starting_psn",
        "rep.respres": "rep.responder_resources",
        "rep.initdepth": "rep.initiator_depth",
        "rep.tgtackdelay": "rep.target_ack_delay",
        "rep.failoveracc": "rep.failover_accepted",
        "rep.e2eflowctrl": "rep.end_to_end_flow_control",
        "rep.rnrretrcount": "rep.rnr_retry_count",
        "rep.srq": "rep.srq",
        "rep.reserved": "",
        "rep.localcaguid": "rep.local_ca_guid",
    },
    "REJ": {
        "rej.localcommid": "local_comm_id",
        "rej.remotecommid": "remote_comm_id",
        "rej.msgrej": "rej.message_rejected",
        "rej.reserved0": "",
        "rej.rejinfolen": "info_bytes",
        "rej.reserved1": "",
        "rej.reason": "rej.reason",
    },
    "RTU": {"rtu.localcommid": "local_comm_id", "rtu.remotecommid": "remote_comm_id"},
    "DREQ": {
        "dreq.localcommid": "local_comm_id",
        "dreq.remotecommid": "remote_comm_id",
        "req.remoteqpneecn": "dreq.remote_qpn",
    },
    "DREP": {"drsp.localcommid": "local_comm_id", "drsp.remotecommid": "remote_comm_id"},
}
# The same of data: tshark's name, ours, how many octets there are.
DATA = {
    "REQ": [("req.private", "private", 92)],
    "REP": [("rep.private", "private", 196)],
    "REJ": [("rej.ari", "info", 72), ("rej.private", "private", 148)],
    "RTU": [("rtu.private", "private", 224)],
    "DREQ": [("dreq.private", "private", 220)],
    "DREP": [("drsp.private", "private", 224)],
}
# Of the IP header, by the IP version.
IP = {"majv": "", "minv": "", "reserved": "", "ipv": "ip.version", "sport": "ip.sport"}
IP_OF = {"4": {**IP, "sip4": "ip.src", "dip4": "ip.dst"},
         "6": {**IP, "sip6": "ip.src", "dip6": "ip.dst"}}
IP_NAMES = sorted({"req.ip_cm." + name for names in IP_OF.values() for name in names})
ATTRIBUTES = {"REQ": 0x10, "MRA": 0x11, "REJ": 0x12, "REP": 0x13, "RTU": 0x14, "DREQ": 0x15,
              "DREP": 0x16, "SIDR_REQ": 0x17, "SIDR_REP": 0x18, "LAP": 0x19, "APR": 0x1a}
PREFIX = "infiniband.cm."
ATTRIBUTE = "infiniband.mad.attributeid"


def datagram(mad):
    """The MAD as UD SEND_ONLY from QP 1 to QP 1, in UDP, in IPv6; ICRC and checksum are zero."""
    bth = struct.pack(">BBHII", 0x64, 0, 0xffff, 1, 0)
    deth = struct.pack(">II", 0x80010000, 1)
    data = bth + deth + mad + bytes(4)
    udp = struct.pack(">HHHH", 49152, 4791, 8 + len(data), 0) + data
    return struct.pack(">IHBB16s16s", 6 << 28, len(udp), 17, 64, b"\xfd" + bytes(14) + b"\1",
                       b"\xfd" + bytes(14) + b"\2") + udp


def capture(path, mads):
    """A pcap file of IPv6 packets."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 229))
        for at, mad in enumerate(mads):
            packet = datagram(mad)
            file.write(struct.pack("<IIII", at, 0, len(packet), len(packet)) + packet)


def number(text):
    """As tshark writes them: a number, an address, the octets of a GID."""
    if ":" in text or text.count(".") == 3:
        return int(ipaddress.ip_address(text))
    return int(text, 16 if len(text) == 32 else 0)


def tshark(path, names):
    """What it says of each frame: a dictionary of lists."""
    command = ["tshark", "-r", path, "-T", "fields", "-E", "separator=|"]
    for name in names:
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        yield {name: [word for word in column.split(",") if word]
               for name, column in zip(names, line.split("|"))}


def numbers_expected(message, members):
    """By tshark's name, the value that it is to find."""
    expected = {theirs: int(members[ours], 16) if ours else 0
                for theirs, ours in FIELDS.get(message, {}).items()}
    for theirs, ours in IP_OF.get(members.get("ip.version"), {}).items():
        value = int(members[ours], 16) if ours else 0
        expected["req.ip_cm." + theirs] = value & 0xffffffff if theirs.endswith("ip4") else value
    return expected


def differences(message, members, said):
    """What tshark says otherwise."""
    for name, expected in numbers_expected(message, members).items():
        if [number(word) for word in said[PREFIX + name]] != [expected]:
            yield f"{name} is {said[PREFIX + name]}, not {expected:#x}"
    for name, ours, octets in DATA.get(message, []) if "ip.version" not in members else []:
        expected = members[ours].ljust(2 * octets, "0")
        if [word.replace(":", "") for word in said[PREFIX + name]] != [expected]:
            yield f"{name} is {said[PREFIX + name]}, not {expected}"
    if [number(word) for word in said[ATTRIBUTE]] != [ATTRIBUTES[message]]:
        yield f"{ATTRIBUTE} is {said[ATTRIBUTE]}"


def main():
    if not shutil.which("tshark"):
        print("1..0 # SKIP there is no tshark")
        return 0
    lines = subprocess.run([BUILD + "/tests/unit/cm_lines"], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    frames = []
    for line in lines:
        message, octets, *members = line.split()
        frames.append((message, bytes.fromhex(octets), dict(m.split("=") for m in members)))
    names = [name for fields in FIELDS.values() for name in fields] + IP_NAMES
    names += [name for fields in DATA.values() for name, _, _ in fields]
    with tempfile.TemporaryDirectory() as folder:
        capture(folder + "/cm.pcap", [mad for _, mad, _ in frames])
        said = list(tshark(folder + "/cm.pcap", [ATTRIBUTE] + [PREFIX + name for name in names]))
    tap.judge("tshark reads every frame", len(said) != len(frames) and f"only {len(said)}")
    for message in ATTRIBUTES:
        of_it = [(members, words) for (name, _, members), words in zip(frames, said)
                 if name == message]
        wrong = [text for members, words in of_it
                 for text in differences(message, members, words)]
        count = len(FIELDS.get(message, {})) + len(DATA.get(message, []))
        tap.judge(f"{message}: {len(of_it)} frames, {count} fields each",
                  "none was written" if not of_it else wrong and "tshark reads something else",
                  "\n".join(wrong[:20]))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
