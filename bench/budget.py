#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `make budget` runs: counts the instructions per message on each of the hot paths, and
compares them with budget.txt. docs/performance.md says what is counted, and how.

  budget.py           a table; the exit status is 1 if a path costs more than it may
  budget.py --write   the same, and the counts become the budget
  budget.py --tap     the same as a test of Meson's

BUILD in the environment is the build that is measured.
"""
import glob
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys

import lab

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
BUDGET = os.path.join(ROOT, "bench", "budget.txt")
ROW = re.compile(r"^((?:ring|udp) \w+) +(\d+)\b", re.M)
WITH = re.compile(r"^with (.*)$", re.M)
LINKS = {"ring": "", "udp": "udp"}  # what VERBATIM_LINK is for each
GROWTH = 0.03
LIMIT_S = 240
# Valgrind counts each octet of a `rep movsb`, so large copies would hide all else.
TUNABLES = "glibc.cpu.x86_rep_movsb_threshold=1073741824"


class Elsewhere(Exception):
    """Why counting is impossible here, or meaningless."""


# --- the surroundings ---

def text_of(path):
    with open(path, encoding="utf8", errors="replace") as file:
        return file.read()


def option(build, name):
    options = json.loads(text_of(os.path.join(build, "meson-info", "intro-buildoptions.json")))
    return next((o["value"] for o in options if o["name"] == name), "")


def compiler(build):
    """The compiler that made the library, as recorded in it."""
    found = re.search(r"GCC: \([^)]*\) (\d+)", text_of(os.path.join(build, "lib/libibverbs.so.1")))
    return "gcc " + found.group(1) if found else "no gcc"


def surroundings(build):
    """Everything but the code that the counts depend on, in one line."""
    if option(build, "b_sanitize") not in ("", "none"):
        raise Elsewhere("a sanitizer's code would be counted with ours")
    if option(build, "lock_order"):
        raise Elsewhere("checks of locks would be counted with the code that ships")
    if not shutil.which("valgrind"):
        raise Elsewhere("no valgrind")
    valgrind = subprocess.run(["valgrind", "--version"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
    flags = re.search(r"^flags\s*:(.*)$", text_of("/proc/cpuinfo"), re.M)
    flags = flags.group(1).split() if flags else []
    # Copies and checksums choose their code by these; valgrind has no later ones.
    chosen = [flag for flag in ("avx2", "pclmulqdq") if flag in flags]
    return ", ".join([compiler(build), "-O" + option(build, "optimization"),
                      " ".join(platform.libc_ver()),
                      "valgrind " + ".".join(re.findall(r"\d+", valgrind)[:2]),
                      platform.machine(), *chosen])


# --- counting ---

def total(path):
    return int(re.search(r"^totals: (\d+)$", text_of(path), re.M).group(1))


def count(build, link):
    """For each path, the cost of a message in each of its dumps."""
    dumps = os.path.join(build, "bench", "callgrind")
    os.makedirs(dumps, exist_ok=True)
    out = os.path.join(dumps, link)
    for old in glob.glob(out + "*"):
        os.remove(old)
    env = {name: value for name, value in os.environ.items() if not name.startswith("VERBATIM_")}
    env.update(LD_LIBRARY_PATH=os.path.join(build, "lib"), GLIBC_TUNABLES=TUNABLES,
               VERBATIM_LINK=LINKS[link])
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--fair-sched=yes", "--toggle-collect=counted",
         "--dump-after=path_end", "--callgrind-out-file=" + out,
         os.path.join(build, "bench", "budget"), link], env=env, timeout=LIMIT_S, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    rows = done.stdout.splitlines()
    if done.returncode or not rows:
        raise RuntimeError(f"bench/budget {link}: exit status {done.returncode}\n" + done.stderr)
    counts = {}
    for i, row in enumerate(rows, 1):
        path, _, units = row.rpartition(" ")
        counts.setdefault(path, []).append(total(f"{out}.{i}") / int(units))
    return counts


def count_all(build):
    counts = {}
    for link in LINKS:
        print(f"# counting instructions: {link}", file=sys.stderr, flush=True)
        counts.update(count(build, link))
    return counts


# --- judging ---

def judge(counts, text):
    """(path, count, allowed, reason for failure or "") of each; text: the budget file."""
    allowed = {path: int(number) for path, number in ROW.findall(text)}
    for path in [*counts, *(p for p in allowed if p not in counts)]:
        now, may = counts.get(path), allowed.get(path)
        why = ""
        if now is None:
            why = "is in bench/budget.txt, and nothing counts it"
        elif may is None:
            why = f"costs {now:.0f} instructions, and is not in bench/budget.txt"
        elif now > may * (1 + GROWTH):
            why = (f"costs {now:.0f} instructions, {now / may - 1:.1%} more than the {may} of "
                   "bench/budget.txt; lower it, or change that in the same commit")
        yield path, now, may, why


def remark(now, may):
    """A remark on a path that passes."""
    return "the budget may be lowered" if now and may and now < may * (1 - GROWTH) else ""


def rewritten(text, counts, where):
    """The budget with these counts."""
    def row(match):
        path, old = match.groups()
        return f"{path:17}{counts.get(path, int(old)):6.0f}"

    text = WITH.sub("with " + where, ROW.sub(row, text))
    known = {path for path, _ in ROW.findall(text)}
    return text + "".join(f"{path:17}{now:6.0f}\n" for path, now in counts.items()
                          if path not in known)


# --- reporting ---

def table(spreads, verdicts):
    print(f"{'path':18}{'least':>9}{'median':>9}{'most':>9}{'budget':>9}")
    for path, now, may, why in verdicts:
        spread = spreads.get(path, [0])
        says = "TOO MUCH" if why else remark(now, may)
        print(f"{path:18}{min(spread):9.0f}{now or 0:9.0f}{max(spread):9.0f}{may or 0:9}"
              f"{now / may - 1 if now and may else 0:+8.1%}  {says}".rstrip())
    for path, _, _, why in verdicts:
        if why:
            print(f"{path}: {why}")


def tap(verdicts):
    print(f"1..{len(verdicts)}")
    for i, (path, now, may, why) in enumerate(verdicts, 1):
        said = f"{path} {why}" if why else remark(now, may)
        if said:
            print("# " + said)
        print(f"{'not ok' if why else 'ok'} {i} - {path}")


def namespace_enter():
    try:
        lab.enter()
    except SystemExit as why:
        raise Elsewhere("no network namespace of its own") from why
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def main():
    build = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
    writes, as_test = "--write" in sys.argv, "--tap" in sys.argv
    text = text_of(BUDGET)
    try:
        where, taken = surroundings(build), WITH.search(text).group(1)
        if where != taken and not writes:
            raise Elsewhere(f"the budget is for {taken}; here is {where}")
        namespace_enter()
    except Elsewhere as why:
        print(f"1..0 # SKIP {why}" if as_test else f"budget: nothing is counted: {why}")
        return 0
    spreads = count_all(build)
    counts = {path: statistics.median(some) for path, some in spreads.items()}
    verdicts = list(judge(counts, text))
    (tap(verdicts) if as_test else table(spreads, verdicts))
    if writes:
        with open(BUDGET, "w", encoding="utf8") as file:
            file.write(rewritten(text, counts, where))
    return 1 if any(why for _, _, _, why in verdicts) and not writes and not as_test else 0


if __name__ == "__main__":
    sys.exit(main())
