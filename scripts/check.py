#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the test suites one after another and counts every single test.

A suite is an executable file tests/SUITE/NAME.sh or .py (and tests/SUITE/long/NAME.sh with
--long). It prints one line per test, "ok NAME", "FAIL NAME: why" or "skip NAME: why", and
anything else it likes; all of it goes to BUILD/check/SUITE-NAME.log, and is shown if a test fails.
A line "# check-limit: SECONDS" in its first 20 lines changes its time limit; in a sanitizer build
it has three times as long. It finds in its environment:
  VB_ROOT, VB_BUILD   the source and build folders, absolute
  VB_RUN              what to put before a client's command line
  VB_SANITIZE         "address" or "thread" in a sanitizer build, else empty
  VB_PRELOAD          the sanitizer's runtime for foreign programs (VB_RUN has it already)
  VB_LONG             "1" with --long, else empty
The unit tests are Meson's; each cmocka test counts (TAP).
"""
import glob
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
SUITES = ["tidy", "abi", "unit", "sim", "fuzz", "clients"]
LIMIT_S = 600
SHOWN_LINES = 400
RESULT = re.compile(r"^(ok|FAIL|skip) +(\S.*)$")
TAP = re.compile(r"^(not )?ok (\d+)(?: - (\w+))?(.*)$", re.M)


class Tally:
    """How many tests passed, failed and were skipped."""

    def __init__(self):
        self.passed, self.skipped, self.failures = 0, 0, []

    def add(self, other):
        self.passed += other.passed
        self.skipped += other.skipped
        self.failures += other.failures

    def __str__(self):
        return (f"{self.passed} passed, {len(self.failures)} failed, {self.skipped} skipped")


def build_option(name):
    """One Meson option of the build folder."""
    path = os.path.join(BUILD, "meson-info", "intro-buildoptions.json")
    with open(path, encoding="utf8") as file:
        return next(o["value"] for o in json.load(file) if o["name"] == name)


def sanitizer_runtime(name):
    """The path of libasan.so or libtsan.so, which must come first in a foreign program."""
    library = {"address": "libasan.so", "thread": "libtsan.so"}[name]
    return subprocess.run(["cc", "-print-file-name=" + library], stdout=subprocess.PIPE,
                          text=True, check=True).stdout.strip()


def environment(long):
    env = dict(os.environ, VB_ROOT=ROOT, VB_BUILD=BUILD, VB_LONG="1" if long else "")
    run = [os.path.join(BUILD, "verbatim"), "run", "--"]
    sanitize = build_option("b_sanitize").split(",")[0].replace("none", "")
    env["VB_PRELOAD"] = sanitizer_runtime(sanitize) if sanitize else ""
    if sanitize:
        # Debian's binaries leak on exit and are not ours to mend.
        run += ["env", "LD_PRELOAD=" + env["VB_PRELOAD"]]
        env["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1"
        supp = os.path.join(ROOT, "tests", "tsan.supp")
        env["TSAN_OPTIONS"] = f"halt_on_error=0:exitcode=66:suppressions={supp}"
        env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
    env["VB_SANITIZE"] = sanitize
    env["VB_RUN"] = shlex.join(run)
    return env


def kill_group(pid):
    """Ends what a suite left running."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            return
        time.sleep(0.5)


def execute(command, log, limit_s, env):
    """Runs a command in its own process group. Returns its exit status, None if out of time."""
    with open(log, "w", encoding="utf8") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            kill_group(process.pid)
            process.wait()


def limit_of(path, env):
    """How long a suite may take, or Meson's tests without a path."""
    found = None
    if path:
        with open(path, encoding="utf8") as file:
            found = re.search(r"^# check-limit: (\d+)$", "".join(file.readlines()[:20]), re.M)
    return (int(found.group(1)) if found else LIMIT_S) * (3 if env["VB_SANITIZE"] else 1)


def run_script(suite, path, env):
    """One suite script: (its tally, its log)."""
    name = os.path.splitext(os.path.basename(path))[0]
    log = os.path.join(BUILD, "check", f"{suite}-{name}.log")
    limit_s = limit_of(path, env)
    status = execute([path], log, limit_s, env)
    tally = Tally()
    with open(log, encoding="utf8", errors="replace") as file:
        for line in file:
            match = RESULT.match(line.rstrip())
            if not match:
                continue
            if match.group(1) == "ok":
                tally.passed += 1
            elif match.group(1) == "skip":
                tally.skipped += 1
            else:
                tally.failures.append(f"{suite}/{name}: {match.group(2)}")
    if status is None:
        tally.failures.append(f"{suite}/{name}: did not end within {limit_s} s")
    elif status != 0 and not tally.failures:
        tally.failures.append(f"{suite}/{name}: exit status {status}")
    elif tally.passed + tally.skipped + len(tally.failures) == 0:
        tally.failures.append(f"{suite}/{name}: ran no test")
    return tally, log


def unit_program(entry):
    """The tally of one test program, from Meson's record of it: by TAP, else it is one test."""
    tally = Tally()
    points = TAP.findall(entry.get("stdout") or "")
    label = "unit/" + entry["name"].replace("verbatim:", "").replace(" ", "")
    for bad, number, name, rest in points:
        # cmocka 1.1.5 says "not ok N # SKIP name".
        if "# SKIP" in rest:
            tally.skipped += 1
        elif bad:
            tally.failures.append(f"{label}: {name or number}")
        else:
            tally.passed += 1
    plan = re.search(r"^1\.\.(\d+)", entry.get("stdout") or "", re.M)
    whole = entry["returncode"] == 0 and (not plan or int(plan.group(1)) == len(points))
    if not whole and not tally.failures:
        tally.failures.append(f"{label}: {entry['result']}, status {entry['returncode']}")
    elif not points:
        tally.passed += 1
    return tally


def run_unit(env):
    """Meson's tests: (tally, log)."""
    log = os.path.join(BUILD, "check", "unit.log")
    limit_s = limit_of(None, env)
    record = os.path.join(BUILD, "meson-logs", "testlog.json")
    if os.path.exists(record):
        os.remove(record)
    status = execute(["meson", "test", "-C", BUILD, "--no-rebuild", "--print-errorlogs"], log,
                     limit_s, env)
    tally = Tally()
    if os.path.exists(record):
        with open(record, encoding="utf8") as file:
            for line in file:
                tally.add(unit_program(json.loads(line)))
    if status is None:
        tally.failures.append(f"unit: did not end within {limit_s} s")
    elif status != 0 and not tally.failures and not tally.skipped:
        tally.failures.append("unit: meson test fails")
    return tally, log


def show(label, tally, log, seconds):
    print(f"{label:32} {tally}  ({seconds:.1f} s)", flush=True)
    if not tally.failures:
        return
    with open(log, encoding="utf8", errors="replace") as file:
        lines = file.read().splitlines()
    print(f"--- {log}" + (f", last {SHOWN_LINES} lines" if len(lines) > SHOWN_LINES else ""))
    print("\n".join(lines[-SHOWN_LINES:]))
    print("---", flush=True)


def scripts_find(suite, long):
    folder = os.path.join(ROOT, "tests", suite)
    found = sorted(glob.glob(folder + "/*"))
    if long:
        found += sorted(glob.glob(folder + "/long/*"))
    return [f for f in found if f.endswith((".sh", ".py")) and os.access(f, os.X_OK)]


def main():
    arguments = sys.argv[1:]
    long = "--long" in arguments
    wanted = [a for a in arguments if a != "--long"] or SUITES
    unknown = [a for a in wanted if a not in SUITES]
    if unknown:
        print("check: no such suite:", *unknown, file=sys.stderr)
        return 2
    os.makedirs(os.path.join(BUILD, "check"), exist_ok=True)
    env = environment(long)
    total = Tally()
    for suite in wanted:
        jobs = [("unit", None)] if suite == "unit" else []
        jobs += [(f"{suite}/{os.path.basename(p)}", p) for p in scripts_find(suite, long)]
        for label, path in jobs:
            start = time.monotonic()
            tally, log = run_script(suite, path, env) if path else run_unit(env)
            show(label, tally, log, time.monotonic() - start)
            total.add(tally)
    for failure in total.failures:
        print("FAIL", failure)
    print(total)
    return 1 if total.failures or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
