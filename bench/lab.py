# SPDX-License-Identifier: BSD-2-Clause
"""Where the benchmark runs: two hosts (network namespaces), two cores, and programs on them.

Everything runs in namespaces of our own, PID namespaces included: whatever a program leaves behind
ends with the benchmark.
"""
import contextlib
import os
import shutil
import subprocess
import sys
import time

HERE, THERE = "10.79.0.1", "10.79.0.2"
INSIDE = "VB_BENCH_INSIDE"
LIMIT_S = 30            # of one program
NEAR_NS = 130           # a cache line that moves faster than this stays within a shared cache
PORTS = range(19000, 32000)
# UCX looks for devices in sysfs, which shows those of the namespace in which it was mounted.
OWN_SYSFS = ["mount", "-t", "sysfs", "sysfs", "/sys"]


class Failure(Exception):
    """A program is missing, failed, or its output is not understood."""


def enter():
    """Restarts this program in namespaces of its own, without root by way of a user namespace."""
    if os.environ.get(INSIDE):
        return
    alone = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    user = ["--user", "--map-root-user"]
    for flags in (alone, user + alone, ["--mount"], user + ["--mount"]):
        command = ["unshare", "--net", *flags, "--"]
        if subprocess.run(command + ["true"], stderr=subprocess.DEVNULL, check=False).returncode:
            continue
        os.environ[INSIDE] = "1"
        os.execvp(command[0], command + [sys.executable] + sys.argv)
    sys.exit("bench: this system does not let us make a network namespace")


def cores_choose():
    """Two CPUs that we may use, on different cores if possible."""
    may = sorted(os.sched_getaffinity(0))

    def siblings(cpu):
        path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        try:
            with open(path, encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            return str(cpu)
    first = may[0]
    others = [c for c in may[1:] if siblings(c) != siblings(first)]
    return first, (others or may[1:] or [first])[0]


class Path:
    """How the two sides of a measurement reach each other. The server is on the first host."""

    def __init__(self, name, address, device, client_on):
        self.name, self.address, self.device, self.client_on = name, address, device, client_on


class Lab:
    def __init__(self, root, build):
        self.root, self.build, self.out = root, build, os.path.join(build, "bench")
        self.cores = cores_choose()
        self.port = PORTS.start
        self.mtu = None
        self.veth = None
        self.hosts = None       # of net.py
        self.gids = {}
        self.host = Path("host", "127.0.0.1", "lo", [])
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(OWN_SYSFS, check=False)

    def veth_use(self, mtu):
        """The path between two hosts, with this MTU."""
        if not self.veth:
            self.veth = self.veth_make()
        if self.mtu != mtu:
            for on in ([], self.veth.client_on):
                subprocess.run([*on, "ip", "link", "set", "vb0", "mtu", str(mtu)], check=True)
            self.mtu = mtu
            self.gids = {}
        return self.veth

    @staticmethod
    def veth_make():
        sleeper = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c",
                                    " ".join(OWN_SYSFS) + "; exec sleep infinity"])
        # The namespaces are ready once it sleeps.
        for _ in range(500):
            with open(f"/proc/{sleeper.pid}/comm", encoding="ascii") as file:
                if file.read() == "sleep\n":
                    break
            time.sleep(0.01)
        there = ["nsenter", "--target", str(sleeper.pid), "--net", "--mount", "--"]
        commands = [["ip", "link", "add", "vb0", "type", "veth", "peer", "name", "vb0",
                     "netns", str(sleeper.pid)], [*there, "ip", "link", "set", "lo", "up"]]
        for on, address in (([], HERE), (there, THERE)):
            commands += [[*on, "ip", "addr", "add", address + "/24", "dev", "vb0"],
                         [*on, "ip", "link", "set", "vb0", "up"]]
        for command in commands:
            if subprocess.run(command, check=False).returncode:
                sleeper.kill()
                raise Failure("this system does not let us make a veth")
        return Path("veth", HERE, "vb0", there)

    def run(self, command, on=(), core=None, env=None):
        """Runs a program to its end and returns its output."""
        with self.started(command, on, core, env) as process:
            return self.output(process, command)

    @contextlib.contextmanager
    def started(self, command, on=(), core=None, env=None):
        """Starts a program and kills it at the end of the block."""
        if not shutil.which(command[0]):
            raise Failure(f"{os.path.basename(command[0])} is missing")
        pinned = [] if core is None else ["taskset", "-c", str(core)]
        process = subprocess.Popen([*on, *pinned, *command], env={**os.environ, **(env or {})},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace")
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    @staticmethod
    def output(process, command):
        name = os.path.basename(command[0])
        try:
            text, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise Failure(f"{name} did not end within {LIMIT_S} s") from error
        if process.returncode:
            last = (text.strip().splitlines() or [""])[-1][:100]
            raise Failure(f"{name}: exit status {process.returncode}: {last}")
        return text

    def pair(self, path, server, client, env=None, server_ends=True, shown=True):
        """Runs a server and its client, each on a core; returns the client's output. The word
        PORT in either command becomes a port of their own. If the kernel does not show where the
        server listens, the client is started until it finds the server there."""
        self.port = self.port + 1 if self.port + 1 in PORTS else PORTS.start
        server, client = ([str(self.port) if word == "PORT" else word for word in words]
                          for words in (server, client))
        with self.started(server, [], self.cores[1], env) as process:
            if shown:
                self.listening(process, server)
                text = self.run(client, path.client_on, self.cores[0], env)
            else:
                text = self.run_again(client, path.client_on, self.cores[0], env)
            if server_ends:
                self.output(process, server)
            return text

    def run_again(self, *args):
        """As run(), but that it may fail for a while."""
        end = time.monotonic() + LIMIT_S / 2
        while True:
            try:
                return self.run(*args)
            except Failure:
                if time.monotonic() > end:
                    raise
            time.sleep(0.05)

    def listening(self, process, command, port=None):
        """Waits until the port (the last one of pair()) is open, by TCP or UDP."""
        end = time.monotonic() + LIMIT_S / 2
        while time.monotonic() < end:
            for table in ("tcp", "tcp6", "udp6"):
                if self.port_in(f"/proc/{process.pid}/net/{table}",
                                "07" if table == "udp6" else "0A", port or self.port):
                    return
            if process.poll() is not None:
                text = self.output(process, command)
                raise Failure(f"{os.path.basename(command[0])} ends at once: {text[-100:]}")
            time.sleep(0.005)
        raise Failure(f"{os.path.basename(command[0])} does not listen")

    @staticmethod
    def port_in(table, state, port):
        try:
            with open(table, encoding="ascii") as file:
                rows = [line.split() for line in file][1:]
        except OSError:
            return False
        return any(row[1].endswith(f":{port:04X}") and row[3] == state for row in rows)

    def own(self, *words, env=None):
        """Runs one of our small programs, which pins itself; returns its output."""
        name, *rest = words
        command = [os.path.join(self.out, name), *map(str, rest)]
        return self.run(command, env=env)

    def line_ns(self):
        """The distance of the two cores at present; 0 with one core."""
        if self.cores[0] == self.cores[1]:
            return 0.0
        return float(self.own("shm", "line", *self.cores))

    def gid(self, path):
        """The index of the path's address; it is the same in both hosts' tables."""
        if path.name not in self.gids:
            want = {"host": "127.0.0.1", "veth": HERE}[path.name]
            found = self.gid_of(want, [])
            if path.client_on and self.gid_of(THERE, path.client_on) != found:
                raise Failure("the hosts' GID tables differ")
            self.gids[path.name] = found
        return self.gids[path.name]

    def gid_of(self, address, on):
        for line in self.run([os.path.join(self.build, "verbatim"), "devices"], on).splitlines():
            words = line.split()
            if words[:1] == ["gid"] and words[2:3] == [address]:
                return words[1]
        raise Failure(f"no GID of {address}")
