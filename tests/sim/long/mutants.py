#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Would the simulators notice? Each mutant of tests/sim/mutants.toml is a fault that somebody could
make: it is put into a copy of the sources, the simulator that should catch it is built from that,
and runs its first seeds.

  mutants.py [NAME ...]      all, or those whose names begin so
  mutants.py --apply         only looks whether all of them can be put in

A mutant is caught if a run fails, or ends in another way than it should. One that is listed as
caught and survives has failed, and so has one that cannot be put in any more. Where a mutant
belongs is found by its text wherever that stands, so files and lines may move.

The copy is VB_BUILD/mutants/tree, built in VB_BUILD/mutants/build; both are kept, and the next call
builds only what has changed.
"""
import os
import re
import resource
import shutil
import subprocess
import sys
import threading
import tomllib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import tap

ROOT = os.environ.get("VB_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.path.join(ROOT, os.environ.get("VB_BUILD", "build"), "mutants")
TREE = os.path.join(BUILD, "tree")
LIST = os.path.join(ROOT, "tests", "sim", "mutants.toml")

RUNS = 1000  # of a simulator, unless the mutant says how many
CPU_S = 60   # whoever takes longer for these goes in circles
STILL_S = 300  # ... and one that takes so long sleeps

SETUP = ["meson", "setup", os.path.join(BUILD, "build"), TREE, "-Dbuildtype=plain",
         "-Doptimization=1"]


class Unfit(Exception):
    """A mutant that does not apply, or a tree that does not build: why."""


def read(path):
    with open(path, encoding="utf8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf8") as file:
        file.write(text)


# --- the copy ---

def tracked():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], stdout=subprocess.PIPE, check=True).stdout
    names = (os.fsdecode(name) for name in listed.split(b"\0") if name)
    return {n for n in names if os.path.isfile(os.path.join(ROOT, n))}


def tree_sync():
    """Makes the copy equal to the sources. What is equal stays, with its time, and is not built."""
    names = tracked()
    for folder, _, files in os.walk(TREE):
        for file in files:
            path = os.path.join(folder, file)
            if os.path.relpath(path, TREE) not in names:
                os.remove(path)
    for name in names:
        source, copy = os.path.join(ROOT, name), os.path.join(TREE, name)
        with open(source, "rb") as file:
            octets = file.read()
        if os.path.exists(copy):
            with open(copy, "rb") as file:
                if file.read() == octets:
                    continue
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        with open(copy, "wb") as file:
            file.write(octets)
        shutil.copymode(source, copy)


def command(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode:
        raise Unfit("\n    ".join([f"{words[0]} fails:", *done.stdout.splitlines()[-20:]]))


def simulator_build(name):
    if not os.path.exists(os.path.join(BUILD, "build", "build.ninja")):
        command(*SETUP)
    command("ninja", "-C", os.path.join(BUILD, "build"), "-j", str(os.cpu_count()),
            f"tests/sim/{name}")


# --- a run ---

def limit_cpu():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))


def simulator_run(name, runs):
    """What its first failure was, "" if there was none."""
    words = [os.path.join(BUILD, "build", "tests", "sim", name), "--count", str(runs)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", start_new_session=True,
                          preexec_fn=limit_cpu) as process:
        still = threading.Timer(STILL_S, os.killpg, (process.pid, 9))
        still.start()
        why = next((line.strip() for line in process.stdout if line.startswith("seed ")), "")
        if why:
            os.killpg(process.pid, 9)
        status = process.wait()
        still.cancel()
    if not why and status:
        why = f"it ends by signal {-status}" if status < 0 else f"it ends with status {status}"
    return why


# --- mutants ---

def sources(root):
    """Path and text of each."""
    for folder, _, files in sorted(os.walk(os.path.join(root, "src"))):
        for file in sorted(files):
            if file.endswith((".c", ".h", ".def")):
                yield os.path.join(folder, file), read(os.path.join(folder, file))


def function_find(text, name):
    """From where to where the functions of that name reach."""
    return [found.span() for found in
            re.finditer(rf"^\w[^;{{}}=]*\b{name}\([^;{{}}]*\n{{.*?^}}", text, re.M | re.S)]


def place(mutant, files):
    """Where its text stands, once: (path, from, to). White space is as good as any other."""
    wanted = re.compile(r"\s+".join(re.escape(word) for word in mutant["find"].split()))
    places = []
    for path, text in files:
        if "in" in mutant and mutant["in"] not in text:
            continue
        spans = function_find(text, mutant["in"]) if "in" in mutant else [(0, len(text))]
        for start, end in spans:
            places += [(path, *found.span()) for found in wanted.finditer(text, start, end)]
    if len(places) != 1:
        where = f" in {mutant['in']}()" if "in" in mutant else ""
        raise Unfit(f"does not apply: its text stands{where} {len(places)} times in src, not once; "
                    "amend tests/sim/mutants.toml")
    return places[0]


def put_in(mutant):
    """Puts it into the copy: the path and text of the file as it was."""
    path, start, end = place(mutant, sources(TREE))
    text = read(path)
    write(path, text[:start] + mutant["put"] + text[end:])
    return path, text


def judge(mutant):
    """Its line of the report."""
    name, by, runs = mutant["name"], mutant["by"], mutant.get("runs", RUNS)
    path = None
    try:
        path, text = put_in(mutant)
        simulator_build(by)
        why = simulator_run(by, runs)
    except Unfit as unfit:
        tap.fail(name, unfit)
        return
    finally:
        if path:
            write(path, text)
    if "survives" in mutant:
        tap.ok(f"{name}: " + (f"caught after all, so list it as such: {by}: {why}" if why
                              else f"survives, as listed: {mutant['survives']}"))
    else:
        tap.judge(f"{name}: {why}" if why else name,
                  "" if why else f"survives {runs} runs of {by}")


def check_apply(mutants):
    """Can each be put in? In seconds, so that who changes code learns at once what to amend."""
    files, bad = list(sources(ROOT)), 0
    for mutant in mutants:
        try:
            place(mutant, files)
        except Unfit as unfit:
            tap.fail(mutant["name"], unfit)
            bad += 1
    if not bad:
        tap.ok(f"{len(mutants)} mutants apply")


def check_whole(simulators):
    """Without any mutant all must be well."""
    for name in sorted(simulators):
        simulator_build(name)
        why = simulator_run(name, RUNS)
        if why:
            raise Unfit(f"without a mutant: {why}")
        tap.ok(f"whole {name}")


def main():
    with open(LIST, "rb") as file:
        mutants = tomllib.load(file)["mutant"]
    if sys.argv[1:] == ["--apply"]:
        check_apply(mutants)
        return tap.end()
    names = [mutant["name"] for mutant in mutants]
    twice = sorted({name for name in names if names.count(name) > 1})
    chosen = [m for m in mutants if m["name"].startswith(tuple(sys.argv[1:]) or "")]
    try:
        if twice or not chosen:
            raise Unfit(f"named twice: {twice}" if twice else
                        f"none is named {' or '.join(sys.argv[1:])}")
        tree_sync()
        check_whole({mutant["by"] for mutant in chosen})
    except Unfit as unfit:
        tap.fail("mutants", unfit)
        return tap.end()
    for mutant in chosen:
        judge(mutant)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
