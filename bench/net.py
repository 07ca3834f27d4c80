# SPDX-License-Identifier: BSD-2-Clause
"""A modelled network (docs/network.md): what comes of the rate and the delay that were asked for,
and sixteen hosts that write into one."""
import contextlib
import os
import re
import subprocess

from lab import Failure

SENDERS = 16
MTU = 4096
LINE_OCTETS = 66 + 12 + 4           # of a packet beside its payload: docs/network.md, BTH, ICRC
INCAST = {"with ECN": "rate=200Mbit,queue=1MiB,ecn=64KiB,name=bench-ecn",
          "without": "rate=200Mbit,queue=128KiB,name=bench-lossy"}
INCAST_MBIT, INCAST_OCTETS, INCAST_S, INCAST_MTU = 200, 16384, 5, 1024


def line_octets(octets, mtu):
    """Of a WRITE."""
    return octets + -(-octets // mtu) * LINE_OCTETS + 16


def rate(load, lab, mbit):
    """Mbit/s on the line, of WRITEs that fill it for two seconds or more, between two hosts: on one
    the acknowledgements would take their part of the same port."""
    octets = 64 * 1024 if mbit >= 100 else 4096
    # Until the round trip is known, a few are sent again. perftest has its own idea of when to post
    # more, which is to be no pause (-Q 1).
    count = int(max(400, mbit * 1e6 / 8 * 2 / octets))
    args = ["--report_gbits", "-m", str(MTU), "-u", "20", "-t", "64", "-Q", "1"]
    row = load.perftest(lab, lab.veth_use(9000), "ib_write_bw", octets, count, args,
                        {"VERBATIM_NET": f"rate={mbit}Mbit"})
    return row[3] * 1000 * line_octets(octets, MTU) / octets


def delay(load, lab, us):
    """What it adds to half a round trip."""
    count = max(20, 200000 // us)
    found = [load.perftest(lab, lab.host, "ib_send_lat", 64, count, ["-u", "20"],
                           {"VERBATIM_NET": f"delay={asked}us"})[4] for asked in (us, 0)]
    return found[0] - found[1]


def loss(load, lab, percent):
    """How many percent of both ends' frames did not come, of WRITEs of a packet."""
    log = os.path.join(lab.out, "loss.log")
    if os.path.exists(log):
        os.remove(log)
    load.perftest(lab, lab.host, "ib_write_bw", 256, int(400000 / percent), ["-u", "14"],
                  {"VERBATIM_FAULT": f"loss={percent}%,seed=1", "VERBATIM_LOG": log})
    with open(log, encoding="ascii", errors="replace") as file:
        sent, came = counted(file.read(), "tx_frames", "rx_frames")
    return 100 * (1 - came / sent)


def counted(text, *names):
    """The sums of counters over all processes that wrote them into their log."""
    return [sum(map(int, re.findall(rf"\b{name} (\d+)$", text, re.M))) for name in names]


class Hosts:
    """One and its senders, each a network namespace, on a bridge of ours. They end with us."""

    def __init__(self):
        self.sleepers = []
        subprocess.run(["ip", "link", "add", "br0", "type", "bridge"], check=True)
        subprocess.run(["ip", "link", "set", "br0", "up"], check=True)
        self.on = [self.host(i) for i in range(SENDERS + 1)]

    def host(self, i):
        # It says a word once it is there.
        sleeper = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"],
                                   stdout=subprocess.PIPE)
        sleeper.stdout.readline()
        self.sleepers.append(sleeper)   # else its pipe would be closed
        on = ["nsenter", "--target", str(sleeper.pid), "--net", "--"]
        for command in (
                ["ip", "link", "add", f"v{i}", "type", "veth", "peer", "name", "vb0", "netns",
                 str(sleeper.pid)],
                ["ip", "link", "set", f"v{i}", "master", "br0", "up"],
                [*on, "ip", "link", "set", "lo", "up"],
                [*on, "ip", "addr", "add", f"10.81.0.{i + 1}/24", "dev", "vb0"],
                [*on, "ip", "link", "set", "vb0", "up"]):
            subprocess.run(command, check=True)
        return on


def start(lab, on, port, log, env, *address):
    words = env.get("PROGRAM", ["ib_write_bw", "-D", str(INCAST_S)])
    command = [os.path.join(lab.build, "verbatim"), "run", "--", *words, "-F", "-x", env["GID"],
               "-m", str(INCAST_MTU), "-s", str(INCAST_OCTETS), "-t", "16", "-u", "18",
               "--report_gbits", "-p", str(port), *address]
    return subprocess.Popen([*on, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True,
                            env={**os.environ, "VERBATIM_NET": env["NET"], "VERBATIM_LOG": log,
                                 "VERBATIM_DCQCN": env.get("VERBATIM_DCQCN", "")})


def finished(load, process):
    text, _ = process.communicate(timeout=60)
    if process.returncode:
        raise Failure(f"ib_write_bw: exit status {process.returncode}: {text.strip()[-100:]}")
    return load.numbers_after(text, str(INCAST_OCTETS), 4)[3]


@contextlib.contextmanager
def senders(lab, hosts, log, env):
    """All of them and their servers, started. env: NET and GID, and perhaps VERBATIM_DCQCN and
    PROGRAM, with how long it runs."""
    processes = []
    try:
        for i in range(SENDERS):
            processes.append(start(lab, hosts.on[0], 21000 + i, os.devnull, env))
        for i, server in enumerate(processes):
            lab.listening(server, ["perftest"], 21000 + i)
        for i in range(SENDERS):
            processes.append(start(lab, hosts.on[i + 1], 21000 + i, log, env, "10.81.0.1"))
        yield processes[SENDERS:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def jain(shares):
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))


def incast(load, lab, hosts, net):
    """The share of the port that is used, Jain's index, and packets sent again for each sent."""
    log = os.path.join(lab.out, "incast.log")
    if os.path.exists(log):
        os.remove(log)
    env = {"NET": net, "GID": lab.gid_of("10.81.0.1", hosts.on[0])}
    with senders(lab, hosts, log, env) as clients:
        gbit = [finished(load, client) for client in clients]
        with open(log, encoding="ascii", errors="replace") as file:
            text = file.read()
    again, sent = counted(text, "retransmits", "tx_frames")
    share = INCAST_OCTETS / line_octets(INCAST_OCTETS, INCAST_MTU) * INCAST_MBIT / 1000
    return [sum(gbit) / share, jain(gbit),
            again / max(1, sent)]


def incasts(load, lab, net):
    if not lab.hosts:
        lab.hosts = Hosts()
    return incast(load, lab, lab.hosts, net)
