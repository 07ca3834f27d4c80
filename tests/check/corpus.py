#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each program of tests/check/corpus under `verbatim check`: it finds the flaw that the program's
comment names, on that line, and nothing else; and nothing at all in the same program without the
flaw. And what `right` does, which is unusual and legal, has none. By shared memory, and by UDP.
A pattern as argument chooses some of them by their names here."""
import concurrent.futures
import fnmatch
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
LIMIT_S = 120
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


def check(program, options, argument, link):
    """Its exit status, and what was found: a set of (name, file:line)."""
    command = [os.path.join(BUILD, "verbatim"), "check", "--json", "--error-exitcode=99"] + \
        options + ["--output=/dev/stdout", "--", program] + argument
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S,
                          env=dict(os.environ, VERBATIM_LINK=link))
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


def judge(run):
    """What is to be said against this run, and its output."""
    _, program, options, argument, link, wanted = run
    try:
        status, found, output = check(os.path.join(BUILD, "tests/check", program), options,
                                      argument, link)
    except subprocess.TimeoutExpired:
        return f"it did not end within {LIMIT_S} s", ""
    if found == wanted and status == (99 if wanted else 0):
        return "", ""
    return f"status {status}, found {sorted(found or [])}, not {sorted(wanted)}", output


def runs():
    """(name, program, options, arguments, link, what is to be found) of each."""
    for source in sorted(glob.glob(os.path.join(HERE, "corpus/*.c"))):
        wanted, options = wanted_of(source)
        program = os.path.basename(source)[:-2]
        for link in ("", "udp"):
            # A program that names no flaw is to find something that there is not.
            yield (f"{program} {link}", program, options, [], link, wanted or {"a flaw"})
            yield (f"{program} ok {link}", program, options, ["ok"], link, set())
    right = subprocess.run([os.path.join(BUILD, "tests/check/right")], capture_output=True,
                           text=True, check=True).stdout.split()
    for name in right:
        for options in ([], ["--poison"], ["--pages"]):
            for link in ("", "udp"):
                yield (" ".join(["right", name, *options, link]), "right", options, [name], link,
                       set())


def main():
    namespace_enter()
    pattern = sys.argv[1] if len(sys.argv) > 1 else "*"
    chosen = [run for run in runs() if fnmatch.fnmatch(run[0], pattern)]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for run, (why, output) in zip(chosen, pool.map(judge, chosen)):
            tap.judge(run[0].strip(), why, output)
    return tap.end()


sys.exit(main())
