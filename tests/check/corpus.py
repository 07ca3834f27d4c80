#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each program of tests/check/corpus under `verbatim check`: it finds the flaw that the program's
comment names, on that line, and nothing else; and nothing at all in the same program without the
flaw."""
import glob
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tap

ROOT = os.path.normpath(os.path.join(HERE, "../.."))
BUILD = os.environ.get("VB_BUILD", os.path.join(ROOT, "build"))
LIMIT_S = 60
FLAW = re.compile(r"/\* FLAW: ([\w-]+)")
ALSO = re.compile(r"ALSO: ([\w-]+) at ([\w.]+)")
OPTIONS = re.compile(r"CHECKED WITH: (.*?) \*/")
NAMESPACE = "VB_CORPUS_NAMESPACE"


def namespace_enter():
    """A network namespace of our own; its loopback interface has one more address."""
    if NAMESPACE not in os.environ:
        for way in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
            if not subprocess.run(way + ["true"], stderr=subprocess.DEVNULL).returncode:
                os.environ[NAMESPACE] = "1"
                os.execvp(way[0], way + [sys.executable] + sys.argv)
        print("1..0 # SKIP this system lets us make no network namespace")
        sys.exit(0)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "address", "add", "10.9.0.1/32", "dev", "lo"], check=True)


def place_of(place):
    """file:line; the file alone if it is not the program's own."""
    line = place.split(" ")[0]
    return line.split(":")[0] if line.startswith("corpus.h:") else line


def check(program, options, argument):
    """Its exit status, and what was found: a set of (name, file:line)."""
    command = [os.path.join(BUILD, "verbatim"), "check", "--json", "--error-exitcode=99"] + \
        options + ["--output=/dev/stdout", "--", program] + argument
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    try:
        flaws = json.loads(done.stdout)["flaws"]
    except (ValueError, KeyError):
        return done.returncode, None, done.stdout + done.stderr
    found = {(flaw["flaw"], place_of(flaw["place"])) for flaw in flaws}
    return done.returncode, found, done.stdout + done.stderr


def wanted_of(source):
    with open(source, encoding="utf8") as file:
        text = file.read()
    name = os.path.basename(source)
    flaws = {(flaw, f"{name}:{number}") for number, line in enumerate(text.split("\n"), 1)
             for flaw in FLAW.findall(line)}
    flaws |= set(ALSO.findall(text))
    options = OPTIONS.search(text)
    return flaws, options.group(1).split() if options else []


def one(source):
    name = os.path.basename(source)[:-2]
    program = os.path.join(BUILD, "tests/check", name)
    wanted, options = wanted_of(source)
    faults = []
    for argument, flaws in (([], wanted), (["ok"], set())):
        try:
            status, found, output = check(program, options, argument)
        except subprocess.TimeoutExpired:
            faults.append(f"{' '.join([name] + argument)} did not end within {LIMIT_S} s")
            continue
        if found != flaws or status != (99 if flaws else 0):
            faults.append(f"{' '.join([name] + argument)}: status {status}, found "
                          f"{sorted(found or [])}, not {sorted(flaws)}")
            faults += output.split("\n")
    if not wanted:
        faults.append("names no flaw")
    return faults


def main():
    namespace_enter()
    sources = sorted(glob.glob(os.path.join(HERE, "corpus", sys.argv[1] if len(sys.argv) > 1
                                            else "*.c")))
    for source in sources:
        faults = one(source)
        tap.judge(os.path.basename(source)[:-2], faults[0] if faults else "", "\n".join(faults[1:]))
    return tap.end()


sys.exit(main())
