# SPDX-License-Identifier: BSD-2-Clause
"""What is measured, by group: our figures by unmodified perftest, next to the limits of the machine
and the figures of other software on the same path."""
import json
import os
import sys
from collections import namedtuple

import net
from lab import Failure

KIB, MIB = 1 << 10, 1 << 20
SHARED = {"VERBATIM_SHARED_MR": "1"}
UDP = {"VERBATIM_LINK": "udp"}
IDLE_QPS = 10000

# A figure: what was measured, message size in octets, unit. `against` maps columns of the table to
# the keys of the figures it is compared with.
Figure = namedtuple("Figure", "what octets unit against", defaults=({},))
# A measurement and its figures; take(lab) returns one number for each. Steady ones are repeated if
# the two cores moved meanwhile.
Measure = namedtuple("Measure", "figures take steady", defaults=(True,))


def key_of(group, what, octets):
    return f"{group}/{what}/{octets}"


def one(what, octets, unit, take, **against):
    return Measure([Figure(what, octets, unit, against)], lambda lab: [take(lab)])


class Pace:
    """How many iterations fill the time, given how long one took at this size or a smaller one."""
    known = {}

    @classmethod
    def count(cls, key, octets, seconds, most):
        sizes = cls.known.get(key, {})
        smaller = [size for size in sizes if size <= octets]
        if not smaller:
            return None
        size = max(smaller)
        each = sizes[size] * max(1, octets / size)
        return int(max(100, min(most, seconds / each)))

    @classmethod
    def learn(cls, key, octets, each):
        cls.known.setdefault(key, {})[octets] = max(each, 1e-9)


def paced(key, octets, probe, seconds, most, measure):
    """measure(count) returns (figure, seconds of one iteration)."""
    count = Pace.count(key, octets, seconds, most)
    if count is None:
        Pace.learn(key, octets, measure(probe)[1])
        count = Pace.count(key, octets, seconds, most)
    figure, each = measure(count)
    Pace.learn(key, octets, each)
    return figure


def numbers_after(text, wanted, many):
    """The last row that has this word and then at least so many numbers."""
    for line in reversed(text.splitlines()):
        words = line.split()
        if words[:1] == [wanted] and len(words) > many:
            return [float(word) for word in words[:many + 1]]
    raise Failure(f"no row of results: {text.strip()[-100:]}")


def perftest(lab, path, program, octets, count, args, env):
    verbatim = [os.path.join(lab.build, "verbatim"), "run", "--", program]
    words = ["-F", "-x", lab.gid(path), "-s", str(octets), "-n", str(count), "-p", "PORT", *args]
    text = lab.pair(path, verbatim + words, verbatim + words + [path.address], env)
    return numbers_after(text, str(octets), 4 if program.endswith("_bw") else 5)


def perf_lat(lab, path, program, octets, args=(), env=None, seconds=0.2):
    """perftest's typical (median) half round trip in us; for a READ the whole."""
    def measure(count):
        row = perftest(lab, path, program, octets, count, args, env)
        return row[4], row[5] * 2e-6
    key = (path.name, lab.mtu, program, *args, str(env))
    return paced(key, octets, 200, seconds, 100000, measure)


def perf_bw(lab, path, program, octets, args=(), env=None, seconds=0.3, rate=False):
    """perftest's average, in GB/s or in millions of messages a second; of -b, both directions."""
    def measure(count):
        row = perftest(lab, path, program, octets, count, ["--report_gbits", *args], env)
        if not row[4]:
            raise Failure(f"{program} reports a rate of 0")
        return row[4] if rate else row[3] / 8, 1e-6 / row[4]
    key = (path.name, lab.mtu, program, *args, str(env))
    return paced(key, octets, 1000 if octets < 64 * KIB else 300, seconds, 5000000, measure)


def ucx(lab, path, tls, test, octets, seconds=0.1, args=()):
    """One ucx_perftest: median latency in us, or messages a second (tag_bw)."""
    env = {"UCX_TLS": tls, "UCX_WARN_UNUSED_ENV_VARS": "n"}
    if "tcp" in tls:
        env["UCX_NET_DEVICES"] = path.device
    lat = test.endswith("_lat")

    def measure(count):
        client = ["ucx_perftest", path.address, "-p", "PORT", "-t", test, "-s", str(octets), "-f",
                  "-n", str(count), "-w", str(count // 10 + 1), *args]
        text = lab.pair(path, ["ucx_perftest", "-p", "PORT"], client, env)
        row = numbers_after(text, str(count), 7)
        return (row[1], row[3] * 2e-6) if lat else (row[7], 1 / row[7])
    key = (path.name, lab.mtu, tls, test)
    return paced(key, octets, 1000 if octets < 64 * KIB else 100, seconds, 1000000, measure)


def ucx_bw(lab, path, tls, octets, seconds=0.2):
    return ucx(lab, path, tls, "tag_bw", octets, seconds) * octets / 1e9


def fabric(lab, path, provider, octets, count):
    """fi_pingpong, the only benchmark of libfabric in Debian: us per transfer."""
    env = {"FI_PROVIDER": provider}
    words = ["fi_pingpong", "-p", provider, "-e", "rdm", "-I", str(count), "-S", str(octets)]
    text = lab.pair(path, words + ["-B", "PORT"], words + ["-P", "PORT", path.address], env)
    try:
        return float(text.strip().splitlines()[-1].split()[6])
    except (IndexError, ValueError) as error:
        raise Failure(f"fi_pingpong says {text.strip()[-100:]}") from error


def fabric_bw(lab, path, provider, octets, count):
    return octets / fabric(lab, path, provider, octets, count) / 1e3


def iperf(lab, path):
    """TCP: GB/s received."""
    text = lab.pair(path, ["iperf3", "-s", "-1", "-p", "PORT"],
                    ["iperf3", "-c", path.address, "-p", "PORT", "-t", "1", "-J"])
    return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 8e9


def sockets(lab, path, way, server, client):
    """A server and a client that know sockets alone, by TCP or by rsockets."""
    words = [os.path.join(lab.build, "verbatim"), "run", "--quiet", "--rsockets", "--"]
    on = words if way == "rsockets" else []
    return lab.pair(path, on + server, on + client, None, False, way == "TCP")


def socket_bw(lab, path, way, streams):
    """iperf3: GB/s received."""
    # Whether it finds its server it says by its status, but not with -J.
    client = ["bash", "-c", 'iperf3 "$@" -n 1 >/dev/null && exec iperf3 "$@" -t 1 -J', "iperf3",
              "-c", path.address, "-p", "PORT", "-P", streams]
    text = sockets(lab, path, way, ["iperf3", "-s", "-p", "PORT"], client)
    return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 8e9


def socket_rate(lab, path, way, clients):
    """redis-benchmark: requests a second. The server is the program that checks redis's files, by
    another name."""
    server = ["bash", "-c", 'exec -a redis-server redis-check-rdb "$@"', "redis-server",
              "--port", "PORT", "--save", "", "--protected-mode", "no"]
    # Without a server redis-benchmark would try for ever.
    client = ["bash", "-c", 'redis-cli -h "$2" -p "$4" ping && exec redis-benchmark "$@"', "redis",
              "-h", path.address, "-p", "PORT", "-t", "get", "-d", "64", "--csv", "-c",
              str(clients), "-n", str(20000 if clients == 1 else 100000)]
    rows = [line.split(",") for line in sockets(lab, path, way, server, client).splitlines()]
    for row in rows:
        if row[0] == '"GET"':
            return float(row[1].strip('"'))
    raise Failure("redis-benchmark says nothing of GET")


def udp(lab, path, *words):
    """Our plain UDP: its first number and its last."""
    program = os.path.join(lab.out, "udp")
    text = lab.pair(path, [program, "serve", "PORT"],
                    [program, words[0], path.address, "PORT", *map(str, words[1:])],
                    server_ends=False).split()
    return float(text[0]), float(text[-2])


def own(*words, scale=1.0):
    """take() for a small program of ours that takes two cores and an octet count."""
    name, *rest = words
    return lambda lab: float(lab.own(name, rest[0], *lab.cores, *rest[1:])) * scale


def vm_bw(way, octets):
    return lambda lab: octets / float(lab.own("vm", way, *lab.cores, octets)) / 1e3


def group_lat():
    """One host, small messages, both ends polling."""
    def lat(name, env=None):
        args = ["-I", "64"] if name == "ib_send_lat" else []
        return lambda lab: perf_lat(lab, lab.host, name, 2, args, env)
    ring, ucx8 = key_of("lat", "ring", 8), key_of("lat", "UCX posix tag_lat", 8)
    write, read = key_of("lat", "process_vm_writev", 8), key_of("lat", "process_vm_readv", 8)
    put, fab = key_of("lat", "UCX posix put_lat", 8), key_of("lat", "libfabric shm", 64)
    return [
        one("ring", 8, "us", own("shm", "ring", 8, scale=1e-3)),
        one("UCX posix tag_lat", 8, "us",
            lambda lab: ucx(lab, lab.host, "posix", "tag_lat", 8), limit=ring),
        one("ib_send_lat", 2, "us", lat("ib_send_lat"), limit=ring, UCX=ucx8, fabric=fab),
        one("ring", 64, "us", own("shm", "ring", 64, scale=1e-3)),
        one("libfabric shm", 64, "us", lambda lab: fabric(lab, lab.host, "shm", 64, 50000),
            limit=key_of("lat", "ring", 64)),
        one("process_vm_writev", 8, "us", own("vm", "write", 8)),
        one("ib_write_lat", 2, "us", lat("ib_write_lat"), limit=write, UCX=put),
        one("process_vm_readv", 8, "us", own("vm", "read", 8)),
        one("ib_read_lat", 2, "us", lat("ib_read_lat"), limit=read),
        one("UCX posix put_lat", 8, "us",
            lambda lab: ucx(lab, lab.host, "posix", "put_lat", 8,
                            args=["-d", "memory", "-x", "posix", "-D", "short"]), limit=ring),
        one("ib_write_lat shared MR", 2, "us", lat("ib_write_lat", SHARED), limit=ring, UCX=put),
        one("ib_read_lat shared MR", 2, "us", lat("ib_read_lat", SHARED), limit=ring),
    ]


def group_bw():
    """One host, bandwidth."""
    rows = []
    for octets in (4 * KIB, 64 * KIB, MIB):
        pipe = key_of("bw", "ring, two copies", octets)
        peer = key_of("bw", "UCX posix tag_bw", octets)
        rows += [
            one("memcpy", octets, "GB/s", own("shm", "copy", octets)),
            one("ring, two copies", octets, "GB/s", own("shm", "pipe", octets)),
            one("process_vm_writev", octets, "GB/s", vm_bw("write", octets)),
            one("process_vm_readv", octets, "GB/s", vm_bw("read", octets)),
            one("UCX posix tag_bw", octets, "GB/s",
                lambda lab, o=octets: ucx_bw(lab, lab.host, "posix", o), limit=pipe),
        ]
        rows += [one(f"ib_{name}_bw", octets, "GB/s",
                     lambda lab, o=octets, n=name: perf_bw(lab, lab.host, f"ib_{n}_bw", o),
                     limit=pipe, UCX=peer) for name in ("send", "write", "read")]
    rows += [
        one("UCX posix,cma tag_bw", MIB, "GB/s",
            lambda lab: ucx_bw(lab, lab.host, "posix,cma", MIB), limit=pipe),
        one("libfabric shm", MIB, "GB/s",
            lambda lab: fabric_bw(lab, lab.host, "shm", MIB, 1000), limit=pipe),
        one("ring, both ways", MIB, "GB/s", own("shm", "both", MIB)),
    ]
    rows += [one(f"ib_{name}_bw -b", MIB, "GB/s",
                 lambda lab, n=name: perf_bw(lab, lab.host, f"ib_{n}_bw", MIB, ["-b"]),
                 limit=key_of("bw", "ring, both ways", MIB)) for name in ("send", "write", "read")]
    rows += [one(f"ib_{name}_bw -c XRC", octets, "GB/s",
                 lambda lab, o=octets, n=name: perf_bw(lab, lab.host, f"ib_{n}_bw", o,
                                                       ["-c", "XRC"]),
                 limit=key_of("bw", f"ib_{name}_bw", octets))
             for octets in (64 * KIB, MIB) for name in ("send", "write")]
    return rows


def group_rate():
    """One host, 8-octet messages per second."""
    ring, peer = key_of("rate", "ring", 8), key_of("rate", "UCX posix tag_bw", 8)

    def rate(name, args=(), env=None):
        return lambda lab: perf_bw(lab, lab.host, name, 8, args, env, 0.2, True)
    rows = [
        one("ring", 8, "M/s", own("shm", "rate", 8)),
        one("UCX posix tag_bw", 8, "M/s",
            lambda lab: ucx(lab, lab.host, "posix", "tag_bw", 8) / 1e6, limit=ring),
    ]
    for what, take in (("ib_send_bw", rate("ib_send_bw")),
                       ("ib_send_bw -b", rate("ib_send_bw", ["-b"])),
                       ("ib_write_bw", rate("ib_write_bw")),
                       ("ib_write_bw shared MR", rate("ib_write_bw", (), SHARED)),
                       ("ib_read_bw", rate("ib_read_bw"))):
        rows.append(one(what, 8, "M/s", take, limit=ring, UCX=peer))
    rows += [one(f"ib_{name}_bw -c XRC", 8, "M/s", rate(f"ib_{name}_bw", ["-c", "XRC"]),
                 limit=key_of("rate", f"ib_{name}_bw", 8)) for name in ("send", "write")]
    return rows


def group_event():
    """One host, each end asleep when it is not its turn."""
    futex = key_of("event", "futex", 0)
    return [
        one("futex", 0, "us", lambda lab: float(lab.own("futex", *lab.cores))),
        one("ib_send_lat -e", 2, "us",
            lambda lab: perf_lat(lab, lab.host, "ib_send_lat", 2, ["-e"]), limit=futex),
        one("ib_read_lat -e", 2, "us",
            lambda lab: perf_lat(lab, lab.host, "ib_read_lat", 2, ["-e"]), limit=futex),
    ]


def over_udp(group, path_of, mtu, env):
    """RoCE over UDP and other software on the same path; mtu is that of RoCE."""
    datagram = mtu + 58                 # with all headers of a WRITE and the ICRC
    segments = min(64, 65000 // datagram)
    ping, stream, small = (key_of(group, *name) for name in (
        ("UDP ping-pong", 64), ("UDP stream", datagram), ("UDP stream rate", 64)))
    tcp, peer = key_of(group, "iperf3 TCP", 128 * KIB), key_of(group, "UCX tcp tag_bw", MIB)
    peer_lat = key_of(group, "UCX tcp tag_lat", 8)
    fab, fab_lat = key_of(group, "libfabric tcp", MIB), key_of(group, "libfabric tcp", 64)
    rxm = "tcp;ofi_rxm"

    def lat(name):
        return one(f"ib_{name}_lat", 2, "us",
                   lambda lab: perf_lat(lab, path_of(lab), f"ib_{name}_lat", 2, (), env),
                   limit=ping, UCX=peer_lat, fabric=fab_lat)

    def wide(name, octets):
        return one(f"ib_{name}_bw", octets, "GB/s",
                   lambda lab: perf_bw(lab, path_of(lab), f"ib_{name}_bw", octets, (), env),
                   limit=stream, TCP=tcp, UCX=peer, fabric=fab)

    # A figure with a limit is measured next to it, so that the machine is in the same state.
    rows = [
        one("UDP ping-pong", 64, "us", lambda lab: udp(lab, path_of(lab), "ping", 64, 20000)[0]),
        lat("send"),
        one("UCX tcp tag_lat", 8, "us", lambda lab: ucx(lab, path_of(lab), "tcp", "tag_lat", 8),
            limit=ping),
        one("libfabric tcp", 64, "us", lambda lab: fabric(lab, path_of(lab), rxm, 64, 10000),
            limit=ping),
        lat("write"), lat("read"),
        one("UDP stream", datagram, "GB/s",
            lambda lab: udp(lab, path_of(lab), "stream", datagram, segments, 300)[0]),
        wide("write", MIB),
        one("UDP stream, sums", datagram, "GB/s",
            lambda lab: udp(lab, path_of(lab), "sums", datagram, segments, 300)[0], limit=stream),
        one("iperf3 TCP", 128 * KIB, "GB/s", lambda lab: iperf(lab, path_of(lab)), limit=stream),
        one("UCX tcp tag_bw", MIB, "GB/s", lambda lab: ucx_bw(lab, path_of(lab), "tcp", MIB),
            limit=stream),
        one("libfabric tcp", MIB, "GB/s",
            lambda lab: fabric_bw(lab, path_of(lab), rxm, MIB, 500), limit=stream),
        wide("write", 4 * KIB), wide("write", 64 * KIB), wide("send", MIB), wide("read", MIB),
    ]
    rows += [
        one("ib_write_bw -b", MIB, "GB/s",
            lambda lab: perf_bw(lab, path_of(lab), "ib_write_bw", MIB, ["-b"], env), limit=stream),
        one("UDP stream rate", 64, "M/s",
            lambda lab: udp(lab, path_of(lab), "stream", 64, 64, 200)[1]),
    ]
    rows += [one(f"ib_{name}_bw rate", 8, "M/s",
                 lambda lab, n=name: perf_bw(lab, path_of(lab), f"ib_{n}_bw", 8, (), env, 0.2,
                                             True), limit=small) for name in ("send", "write")]
    return rows


def group_scale():
    """Many QPs, idle processes, two threads."""
    lone = key_of("scale", "latency, 1 QP", 2)

    def idle(lab):
        rows = dict(line.split() for line in
                    lab.own("idle", *lab.cores, IDLE_QPS).strip().splitlines())
        return [float(rows[name]) for name in
                ("setup", "memory", "latency_1", "latency_n", "wakeups")]

    def threads(way, env):
        return lambda lab: [float(line.split()[1]) for line in
                            lab.own("threads", way, *lab.cores, env=env).strip().splitlines()]
    many = f"{IDLE_QPS} QPs"
    rows = [Measure([Figure(f"connections made, {many}", 0, "1/s"),
                     Figure("memory of an idle QP", 0, "B"),
                     Figure("latency, 1 QP", 2, "us"),
                     Figure(f"latency, {many}", 2, "us", {"limit": lone}),
                     Figure("wake-ups of an idle process", 0, "1/s")], idle, False)]
    for what, way, env in (("write", "write", None), ("write shared MR", "write", SHARED),
                           ("lone write", "lone", None),
                           ("lone write shared MR", "lone", SHARED), ("send", "send", None)):
        single = key_of("scale", f"{what}, 1 thread", 8)
        rows.append(Measure([Figure(f"{what}, 1 thread", 8, "M/s"),
                             Figure(f"{what}, 2 threads", 8, "M/s", {"limit": single})],
                            threads(way, env), False))
    return rows


def group_frames():
    """Ethernet frames by RAW_PACKET QPs, by packet sockets, and copied through a ring."""
    def rates(octets):
        return lambda lab: [float(line.split()[1]) for line in
                            lab.own("frames", *lab.cores, octets).strip().splitlines()]
    return [Measure([Figure("RAW_PACKET QPs", octets, "M/s",
                            {"limit": key_of("frames", "ring, frames", octets)}),
                     Figure("packet sockets", octets, "M/s"),
                     Figure("ring, frames", octets, "M/s")], rates(octets), False)
            for octets in (64, 1500)]


def group_cm():
    """Connections by TCP and by rdma_cm, one after the other and all at once."""
    def connect(way, env=None):
        return lambda lab: [float(line.split()[1]) for line in
                            lab.own("connect", way, *lab.cores, 2000, env=env).splitlines()]

    def both(what, way, env=None, peer=None):
        keys = [key_of("cm", f"{peer}, {kind}", 0) for kind in ("each", "at once")]
        against = [{"TCP": key} if peer else {} for key in keys]
        return Measure([Figure(f"{what}, each", 0, "us", against[0]),
                        Figure(f"{what}, at once", 0, "1/s", against[1])],
                       connect(way, env), False)
    return [both("TCP", "tcp"), both("rdma_cm", "cm", None, "TCP"),
            both("rdma_cm, udp", "cm", UDP, "TCP")]


def loopback(lab):
    return lab.host


def group_rsockets():
    """Programs of sockets on rsockets, and the same by TCP."""
    ways = [("one host", loopback), ("two hosts", lambda lab: lab.veth_use(9000))]
    kinds = [
        ("iperf3", 128 * KIB, "GB/s", lambda lab, path, way: socket_bw(lab, path, way, "1")),
        ("iperf3 -P 4", 128 * KIB, "GB/s", lambda lab, path, way: socket_bw(lab, path, way, "4")),
        ("redis, a GET", 64, "us", lambda lab, path, way: 1e6 / socket_rate(lab, path, way, 1)),
        ("redis, GETs of 50", 64, "M/s",
         lambda lab, path, way: socket_rate(lab, path, way, 50) / 1e6),
    ]
    rows = []
    for where, path_of in ways:
        for what, octets, unit, take in kinds:
            def by(way, t=take, p=path_of):
                return lambda lab: t(lab, p(lab), way)
            tcp = f"{where}, {what}, TCP"
            rows += [one(tcp, octets, unit, by("TCP")),
                     one(f"{where}, {what}", octets, unit, by("rsockets"),
                         TCP=key_of("rsockets", tcp, octets))]
    return rows


def group_net():
    """What was asked of a modelled network stands in the column of limits."""
    rows = []
    for mbit in (1, 10, 100, 1000, 10000):
        asked = f"asked, {mbit} Mbit/s"
        rows += [one(asked, 0, "Mbit/s", lambda _, m=mbit: float(m)),
                 one(f"rate, {mbit} Mbit/s", 0, "Mbit/s",
                     lambda lab, m=mbit: net.rate(sys.modules[__name__], lab, m),
                     limit=key_of("net", asked, 0))]
    for us in (100, 1000, 10000, 80000):
        asked = f"asked, {us} us"
        rows += [one(asked, 0, "us", lambda _, u=us: float(u)),
                 one(f"delay, {us} us", 0, "us",
                     lambda lab, u=us: net.delay(sys.modules[__name__], lab, u),
                     limit=key_of("net", asked, 0))]
    for percent in (0.1, 1, 5):
        asked = f"asked, {percent} % lost"
        rows += [one(asked, 0, "%", lambda _, p=percent: float(p)),
                 one(f"loss, {percent} % lost", 0, "%",
                     lambda lab, p=percent: net.loss(sys.modules[__name__], lab, p),
                     limit=key_of("net", asked, 0))]
    for how, text in net.INCAST.items():
        figures = [Figure(f"{net.SENDERS} into one, {how}: {what}", 0, "", {}) for what in
                   ("share of the port", "Jain's index", "sent again")]
        rows.append(Measure(figures, lambda lab, t=text: net.incasts(sys.modules[__name__], lab,
                                                                     t), False))
    return rows


# By name: description and measurements.
GROUPS = {
    "lat": ("same host, latency of small messages, both ends polling", group_lat),
    "bw": ("same host, bandwidth", group_bw),
    "rate": ("same host, message rate", group_rate),
    "event": ("same host, latency with both ends asleep", group_event),
    "udp": ("same host, VERBATIM_LINK=udp",
            lambda: over_udp("udp", loopback, 4096, UDP)),
    "veth9000": ("two hosts, veth, MTU 9000",
                 lambda: over_udp("veth9000", lambda lab: lab.veth_use(9000), 4096, None)),
    "veth1500": ("two hosts, veth, MTU 1500",
                 lambda: over_udp("veth1500", lambda lab: lab.veth_use(1500), 1024, None)),
    "scale": ("same host, many QPs, idle processes, threads", group_scale),
    "frames": ("same host, Ethernet frames", group_frames),
    "cm": ("same host, connections made, by TCP's connect and by rdma_cm", group_cm),
    "net": ("a modelled network (VERBATIM_NET)", group_net),
    "rsockets": ("programs of sockets, by rsockets and by TCP", group_rsockets),
}


def curve(lab, path, tls, octets, seconds=0.08):
    """Both curves at one size: take() of each series, by name."""
    def lat(name):
        args = ["-I", "64"] if name == "send" and octets <= 64 else []
        return lambda: perf_lat(lab, path, f"ib_{name}_lat", octets, args, None, seconds)

    def bw(name):
        return lambda: perf_bw(lab, path, f"ib_{name}_bw", octets, (), None, seconds)
    names = ("send", "write", "read")
    return {
        "latency": {f"UCX {tls} tag_lat": lambda: ucx(lab, path, tls, "tag_lat", octets, seconds),
                    **{f"ib_{name}_lat": lat(name) for name in names}},
        "bandwidth": {f"UCX {tls} tag_bw": lambda: ucx_bw(lab, path, tls, octets, seconds),
                      **{f"ib_{name}_bw": bw(name) for name in names}},
    }


# By name: title, path, UCX's transport, sizes. Measured once, independent of the number of runs.
CURVES = {
    "curves": ("same host", loopback, "posix", [1 << n for n in range(1, 24)]),
    "curves9000": ("veth, MTU 9000", lambda lab: lab.veth_use(9000), "tcp",
                   [1 << n for n in range(1, 24, 2)]),
}
