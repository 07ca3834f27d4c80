#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A bare machine: what debootstrap makes, with git and make added and nothing else. In it the
README is followed as a newcomer would, first by root, then by an ordinary user.

  bare.py RELEASE               the tests of tests/bare, in TAP
  bare.py RELEASE CMD [ARG ...] the same machine, for a command of yours: make check, say

RELEASE is a row of RELEASES. The machine is BUILD/bare/RELEASE, made anew each time; it is a chroot
with mount, PID, IPC, UTS and network namespaces of its own. Its network is a loopback on which
somebody listens at port 80: this program, which hands on to the package mirror, and to nobody else.
"""
import contextlib
import ctypes
import hashlib
import os
import queue
import re
import shutil
import socket
import subprocess
import sys
import threading
import urllib.parse
import urllib.request

import tap

ROOT = os.environ.get("VB_ROOT") or os.path.normpath(os.path.join(os.path.dirname(__file__),
                                                                  "../.."))
BUILD = os.path.join(os.environ.get("VB_BUILD") or os.path.join(ROOT, "build"), "bare")
TARGETS = ["check", "asan", "tsan", "fuzz", "bench", "bare"]
# Waits for the port at which ibv_rc_pingpong and perftest meet.
LISTENS = "until ss -Hltn 'sport = :18515' | grep -q .; do sleep 0.1; done"
INSIDE = "VB_BARE"  # set in the environment of all that runs there
CLONE_NEWNET = 0x40000000
PORT = 80

# debootstrap knows Ubuntu's releases only up to its own, and has no keys of theirs: where they are
# in the archive, and what they must be.
UBUNTU = {
    "script": "gutsy",
    "keyring": "pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb",
    "sha256": "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8",
}
RELEASES = {"bookworm": None, "trixie": None, "noble": UBUNTU}

# What is mounted in it, as a container has it. $1 is its folder; what is left is the command.
ENTER = """
mount -t proc proc "$1/proc"
mount --bind /sys "$1/sys"
mount -t tmpfs -o mode=755 dev "$1/dev"
for device in null zero full random urandom tty net/tun; do
    [ -e "/dev/$device" ] || continue
    mkdir -p "$1/dev/net"
    : >"$1/dev/$device"
    mount --bind "/dev/$device" "$1/dev/$device"
done
mkdir -m 1777 "$1/dev/shm"
mount -t tmpfs -o mode=1777 shm "$1/dev/shm"
mkdir "$1/dev/pts"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
ln -s pts/ptmx "$1/dev/ptmx"
ln -s /proc/self/fd "$1/dev/fd"
exec chroot "$@"
"""
UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts",
           "sh", "-euc", ENTER, "bare"]


class Trouble(Exception):
    """Why there is no such machine here."""


def relay(listener, host):
    """Hands every connection on to the mirror, for as long as this program lives."""
    def pump(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def serve(inner):
        with inner, contextlib.suppress(OSError), \
                socket.create_connection((host, PORT), timeout=60) as outer:
            back = threading.Thread(target=pump, args=(outer, inner), daemon=True)
            back.start()
            pump(inner, outer)
            back.join()

    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


class Machine:
    """A root made by debootstrap, and the network namespace around it."""

    def __init__(self, release):
        self.folder = os.path.join(BUILD, release)
        self.release = release

    def keyring(self, mirror):
        """Ubuntu's keys, or nothing for Debian's, which debootstrap brings."""
        extra = RELEASES[self.release]
        if not extra:
            return []
        deb, keys = os.path.join(BUILD, "keyring.deb"), os.path.join(BUILD, "keyring")
        with urllib.request.urlopen(f"{mirror}/{extra['keyring']}", timeout=60) as answer:
            octets = answer.read()
        if hashlib.sha256(octets).hexdigest() != extra["sha256"]:
            raise Trouble("the keyring of the archive is another one")
        with open(deb, "wb") as file:
            file.write(octets)
        subprocess.run(["dpkg", "-x", deb, keys], check=True)
        return ["--keyring=" + keys + "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
                "--components=main,universe"]

    def mirror(self):
        """Where debootstrap itself would look for that release."""
        extra = RELEASES[self.release]
        place, pattern = shutil.which("debootstrap"), r'^DEF_MIRROR="(http://[^"]+)"'
        if extra:
            place = "/usr/share/debootstrap/scripts/" + extra["script"]
            pattern = r"default_mirror (http://archive\S+)"
        with open(place, encoding="utf8") as file:
            found = re.findall(pattern, file.read(), re.M)
        if not found:
            raise Trouble("debootstrap knows no mirror for this release")
        return found[0]

    def make(self):
        """Anew; raises Trouble if the mirror cannot be reached."""
        mirror = self.mirror()
        host = urllib.parse.urlsplit(mirror).hostname
        try:
            socket.create_connection((host, PORT), timeout=30).close()
        except OSError as error:
            raise Trouble(f"the package mirror cannot be reached: {error}") from error
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(BUILD, exist_ok=True)
        extra = RELEASES[self.release]
        subprocess.run(["debootstrap", "--variant=minbase", "--include=git,make,ca-certificates",
                        *self.keyring(mirror), self.release, self.folder, mirror,
                        *([extra["script"]] if extra else [])], check=True)
        with open(self.folder + "/etc/hosts", "w", encoding="utf8") as hosts:
            hosts.write(f"127.0.0.1 localhost {host}\n::1 localhost\n")
        self.connect(host)

    def connect(self, host):
        """Moves this thread, and with it what it starts, into a network namespace of its own."""
        listeners = queue.SimpleQueue()
        # It stays where it is: a namespace is a thread's.
        threading.Thread(target=lambda: relay(listeners.get(), host), daemon=True).start()
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
            raise Trouble("no network namespace: " + os.strerror(ctypes.get_errno()))
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        listeners.put(socket.create_server(("127.0.0.1", PORT), backlog=64))

    def run(self, words, user=None):
        """Runs a command line in it: (exit status, output, which is printed as it comes)."""
        lead = ["runuser", "-u", user, "--"] if user else []
        home = "/home/" + user if user else "/root"
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "LANG": "C.UTF-8",
               INSIDE: "1"}
        print(f"# {user or 'root'}: {words}", flush=True)
        lines = []
        with subprocess.Popen([*UNSHARE, self.folder, *lead, "sh", "-c",
                               f"cd {home}/verbatim && {words}"], env=env, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as process:
            for line in process.stdout:
                print("    " + line, end="", flush=True)
                lines.append(line)
        return process.returncode, "".join(lines)

    def copy(self, folder):
        """The source tree as git sees it, what is not committed yet included."""
        os.makedirs(self.folder + folder, exist_ok=True)
        with subprocess.Popen("git ls-files -coz --exclude-standard | tar -c --null -T -",
                              cwd=ROOT, shell=True, stdout=subprocess.PIPE) as source:
            subprocess.run(["tar", "-x", "-C", self.folder + folder], stdin=source.stdout,
                           check=True)


def readme_block(heading):
    """The first indented block below a heading of README.md: its lines."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf8") as file:
        text = file.read()
    section = text[text.index(f"\n{heading}\n"):]
    return re.search(r"\n\n((?:    .*\n)+)", section).group(1)


class Suite:
    """The tests, in an order that matters: each finds installed what those before it installed."""

    def __init__(self, machine):
        self.machine = machine

    def check(self, name, words, user=None, fails=False, pattern=""):
        status, output = self.machine.run(words, user)
        why = None
        if (status != 0) != fails:
            why = f"exit status {status}"
        elif not re.search(pattern, output):
            why = f"does not print /{pattern}/"
        tap.judge(name, why)

    def run(self):
        run = self.machine.run
        run("useradd -m guest && chown -R guest: /home/guest")
        self.check("no sudo: which packages are missing", "make demo", user="guest", fails=True,
                   pattern="An administrator has to install these packages:\n"
                           ".*apt-get install .* ibverbs-utils .* perftest")
        run("cp -r . /opt && chmod -R go+rX /opt")
        self.check("a clone of somebody else's", "make -C /opt", user="guest", fails=True,
                   pattern="make: user guest may not write to build: make a clone of your own")
        self.check("make demo", "make demo",
                   pattern=r"\nShown: .*verbatim0.*\nTry: .*\n.*README.md says more\n$")
        run("build/verbatim hub stop")
        self.check("make demo as an ordinary user", "make demo", user="guest",
                   pattern=r"\nShown: .*verbatim0.*\nTry: .*\n.*README.md says more\n$")
        for heading in "## Run a program on it", "### Programs that look for an mlx5 device":
            # A person is slower than a server is at starting. It has to end well, too.
            words = re.sub(r"&( *#.*)?\n", f"& server=$!; {LISTENS}\n", readme_block(heading))
            self.check(f"README: {heading.strip('# ')}", f"set -e; {words}wait $server",
                       user="guest")
        for command in "devices", "status", "hub status", "hub log":
            self.check(f"README: verbatim {command}", f"build/verbatim {command}", user="guest",
                       pattern=".")
        self.check("README: make sim", "make sim SEED=4711", user="guest", pattern="4711")
        self.check("README: make install", "make install PREFIX=$HOME/.local && "
                   "$HOME/.local/bin/verbatim run -- ibv_devinfo", user="guest",
                   pattern="hca_id:\tverbatim0")
        for target in TARGETS:
            # What says nothing the second time has found everything the first time.
            self.check(f"packages of make {target}", f"scripts/deps.sh {target} && "
                       f"[ -z \"$(scripts/deps.sh {target} 2>&1)\" ]")
        self.check("make fuzz", "make fuzz T=1", pattern=r"\n\d+ passed, 0 failed, 0 skipped\n$")


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] not in RELEASES:
        print("usage: bare.py", "|".join(RELEASES), "[CMD ...]", file=sys.stderr)
        return 2
    if os.geteuid() or os.environ.get(INSIDE):
        print("1..0 # SKIP", "this is a bare machine already" if os.environ.get(INSIDE) else
              "only root can make a bare machine")
        return 0
    subprocess.run([ROOT + "/scripts/deps.sh", "bare"], check=True, stdin=subprocess.DEVNULL)
    machine = Machine(arguments[0])
    try:
        machine.make()
    except Trouble as trouble:
        print(f"1..0 # SKIP {trouble}")
        return 0
    machine.copy("/root/verbatim")
    machine.copy("/home/guest/verbatim")
    if arguments[1:]:
        return machine.run(" ".join(arguments[1:]))[0]
    Suite(machine).run()
    if status := tap.end():
        return status
    shutil.rmtree(machine.folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
