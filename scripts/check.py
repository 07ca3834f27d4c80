#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds, runs test programs, as many at a time as there are cores, and counts every single test.

  check.py [--long] SUITE ...        BUILD and MESON_FLAGS in the environment choose the build, and
                                     JOBS how many programs run at a time

The programs are those that the meson.build files declare by test(): the suite of one is the first
that it names there, and those of a suite "long" run with --long. It prints TAP, and anything else
it likes. All of it goes to BUILD/check/SUITE-NAME.log; what stands around a failure is shown.
In a sanitizer build it has three times as long as it says. It finds in its environment:
  VB_ROOT, VB_BUILD   the source and build folders, absolute
  VB_RUN              what to put before a client's command line
  VB_SANITIZE         "address" or "thread" in a sanitizer build, else empty
  VB_PRELOAD          the sanitizer's runtime for foreign programs (VB_RUN has it already)
  VB_LONG             "1" with --long, else empty

`meson test` would lose what a program said that is out of time, show nothing of one that still
runs, and wait for whatever one left running.

A program that fails runs once more at the end, alone. If it passes then, its first results are
listed as unsteady: somebody should look, but it is no failure.

Every VB_CHECK_EVERY_S seconds (8) it says what runs and how much is left. At the end it lists
what was skipped, by reasons, then what was unsteady, and what failed, each with its first lines;
the last line is "N passed, N failed, N skipped". The exit status is 0 or 1.
"""
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback

sys.dont_write_bytecode = True
from check_progress import Progress
from check_results import LAST_LINES, RESULT, Tally, ending, grouped, read_program, shown

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
LOGS = os.path.join(BUILD, "check")
JOBS = int(os.environ.get("JOBS") or len(os.sched_getaffinity(0)))
SKIPS_NAMED = 4  # of each reason
DETAILS_LISTED = 8  # lines of each failure, in the list at the end: often all that is kept
STEP_LIMIT_S = 3600  # of the build and the like
# Suites that share the machine with others' programs and with what runs beside them. As many
# programs of these as may run again: where more fail, it is no chance.
SHARED = ("unit", "clients", "registries", "bare")
AGAIN_MOST = 5


class Stop(Exception):
    """Nothing more can be run: why, the end of a log, and its path."""

    def __init__(self, why, details=(), log=""):
        super().__init__(why)
        self.why, self.details, self.log = why, list(details), log


def build_record(what):
    """What Meson knows of the build folder."""
    with open(os.path.join(BUILD, "meson-info", f"intro-{what}.json"), encoding="utf8") as file:
        return json.load(file)


def sanitizer_runtime(name):
    """The path of libasan.so or libtsan.so, which must come first in a foreign program."""
    library = {"address": "libasan.so", "thread": "libtsan.so"}[name]
    return subprocess.run(["cc", "-print-file-name=" + library], stdout=subprocess.PIPE,
                          text=True, check=True).stdout.strip()


def environment(long):
    # Else nobody sees how far a suite in Python is.
    env = dict(os.environ, VB_ROOT=ROOT, VB_BUILD=BUILD, VB_LONG="1" if long else "",
               PYTHONUNBUFFERED="1")
    run = [os.path.join(BUILD, "verbatim"), "run", "--"]
    options = {option["name"]: option["value"] for option in build_record("buildoptions")}
    sanitize = options.get("b_sanitize", "").split(",")[0].replace("none", "")
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


def text_of(log):
    with open(log, encoding="utf8", errors="replace") as file:
        return file.read()


class Run:
    """A program that runs, in its own process group. Once it is over its status is None if it was
    out of time."""

    def __init__(self, label, command, limit_s, env, tap=True):
        self.label, self.limit_s, self.tap, self.status = label, limit_s, tap, None
        self.log = os.path.join(LOGS, label.replace("/", "-").replace(" ", "-") + ".log")
        self.errors = None
        if label.startswith("unit/"):
            # What a program in C says on stdout comes in blocks, and would stand anywhere.
            self.errors = tempfile.TemporaryFile("w+", errors="replace")
            # As `meson test` does: what is not initialized is not zero.
            env = dict(env, MALLOC_PERTURB_=str(random.randint(1, 255)))
        with open(self.log, "w", encoding="utf8") as out:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=out,
                stderr=self.errors or subprocess.STDOUT, start_new_session=True)
        self.end = time.monotonic() + limit_s

    def over(self):
        self.status = self.process.poll()
        if self.status is None and time.monotonic() < self.end:
            return False
        self.kill()
        return True

    def kill(self):
        """Ends it, and what it left running."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            time.sleep(0.5)
        self.process.wait()

    def latest(self):
        """How far it is."""
        lines = text_of(self.log).strip().splitlines()
        found = [line for line in lines if RESULT.match(line)]
        if found:
            return f"results: {len(found)}, latest: {found[-1]}"
        return lines[-1] if lines else "no output yet"

    def tally(self):
        out, err = text_of(self.log), ""
        if self.errors:
            self.errors.seek(0)
            err = self.errors.read()
            self.errors.close()
            with open(self.log, "a", encoding="utf8") as log:
                log.write(err)
        return read_program(self.label, out, err, self)


# --- what comes before the tests ---

def step(progress, label, command):
    """Runs something that comes before the tests, and has to end well. Shows compiler warnings."""
    progress.begin(label)
    run = Run(label, command, STEP_LIMIT_S, dict(os.environ, PYTHONUNBUFFERED="1"))
    try:
        while not run.over():
            time.sleep(0.1)
            progress.tick(lambda _: run.latest())
    finally:
        run.kill()
    seconds, lines = progress.end(label), text_of(run.log).splitlines()
    if run.status != 0:
        how = "did not end in time" if run.status is None else ending(run.status)
        raise Stop(f"{label}: {how}", lines[-2 * LAST_LINES:], run.log)
    progress.print(f"{label:32} done  ({seconds:.1f} s)")
    for line in lines:
        if " warning: " in line:
            progress.print("    " + line)


def prepare(progress, wanted):
    """Sets up the build folder, builds, and fetches the kernel of the clients' guest."""
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        flags = shlex.split(os.environ.get("MESON_FLAGS", ""))
        step(progress, "meson setup", ["meson", "setup", BUILD, *flags])
    step(progress, "build", ["ninja", "-C", BUILD])
    if "clients" not in wanted:
        return
    try:
        step(progress, "kernel", ["scripts/kernel.sh", os.path.join(BUILD, "guest")])
    except Stop as stop:
        progress.print(f"check: no kernel for a guest ({stop.why}; see {stop.log})")


# --- the tests ---

def programs(wanted, long):
    """Meson's record of each test program that is wanted, the longest first, with its label."""
    found = []
    for entry in build_record("tests"):
        suites = [s.partition(":")[2] for s in entry["suite"] if not s.endswith(":script")]
        if suites[0] in wanted and (long or "long" not in suites):
            found.append(dict(entry, label="/".join([*suites, entry["name"]])))
    for suite in wanted:
        if not any(entry["label"].startswith(suite + "/") for entry in found):
            raise Stop(f"{suite}: there is no test in it")
    return sorted(found, key=lambda entry: -entry["priority"])


def show(progress, tally, log):
    """What the failed tests printed; of the others nothing."""
    for failure in tally.failures:
        failure.log = log
        progress.print(f"--- {failure.name}")
        for line in shown(failure.details):
            progress.print("    " + line)


def ran(waiting, jobs, env, progress):
    """Runs programs, so many at a time; yields (entry, log, tally) of each that is over."""
    waiting, running = list(waiting), {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                entry = waiting.pop(0)
                label, limit_s = entry["label"], entry["timeout"] * (3 if env["VB_SANITIZE"] else 1)
                progress.begin(label)
                running[label] = entry, Run(label, entry["cmd"], limit_s, {**env, **entry["env"]},
                                            entry["protocol"] == "tap")
            progress.tick(lambda label: running[label][1].latest())
            time.sleep(0.02)
            for label in [label for label, (_, run) in running.items() if run.over()]:
                entry, run = running.pop(label)
                tally = run.tally()
                progress.print(f"{label:32} {tally}  ({progress.end(label):.1f} s)")
                show(progress, tally, run.log)
                yield entry, run.log, tally
    finally:
        for _, run in running.values():
            run.kill()


def run_again(failed, env, total, progress):
    """What failed runs once more, with no other beside it. What passes then is unsteady: said, but
    no failure."""
    first = {}
    for entry, log, tally in failed:
        first[entry["label"]] = tally
        os.replace(log, log[:-len(".log")] + ".first.log")
        for failure in tally.failures:
            failure.log = log[:-len(".log")] + ".first.log"
    if first:
        progress.print("\nagain, each alone:")
    for entry, _, tally in ran([entry for entry, *_ in failed], 1, env, progress):
        total.add(tally)
        if not tally.failures:
            total.unsteady += first[entry["label"]].failures


def run_all(wanted, long, total, progress):
    prepare(progress, wanted)
    waiting, failed = programs(wanted, long), []
    progress.plan([entry["label"] for entry in waiting])
    env = environment(long)
    try:
        for entry, log, tally in ran(waiting, JOBS, env, progress):
            if tally.failures and entry["label"].partition("/")[0] in SHARED:
                failed.append((entry, log, tally))
            else:
                total.add(tally)
        if len(failed) > AGAIN_MOST:
            for *_, tally in failed:
                total.add(tally)
        else:
            run_again(failed, env, total, progress)
    finally:
        progress.keep()


def summarize(total, progress):
    whole = os.path.join(LOGS, "skipped.txt")
    with open(whole, "w", encoding="utf8") as file:
        file.writelines(row + "\n" for row in grouped(total.skips, len(total.skips)))
    if total.skips:
        progress.print(f"\nskipped (all names: {os.path.relpath(whole)}):")
    for row in grouped(total.skips, SKIPS_NAMED):
        progress.print(textwrap.fill(row, 100, initial_indent="  ", subsequent_indent="      ",
                                     break_long_words=False, break_on_hyphens=False))
    for what, word, failures in (("unsteady, passed when run again, alone", "ONCE", total.unsteady),
                                 ("failed", "FAIL", total.failures)):
        if failures:
            progress.print(f"\n{what}:")
        for failure in failures:
            progress.print(word, failure.name)
            if failure.log:
                progress.print("     see", os.path.relpath(failure.log))
            for line in failure.details[:DETAILS_LISTED]:
                progress.print("     |", line)
    progress.print(total)


def interrupted(*_):
    raise KeyboardInterrupt


def main():
    long = "--long" in sys.argv[1:]
    total = Tally()
    os.makedirs(LOGS, exist_ok=True)
    progress = Progress(os.path.join(LOGS, "times.json"), JOBS)
    signal.signal(signal.SIGTERM, interrupted)
    try:
        run_all([a for a in sys.argv[1:] if a != "--long"], long, total, progress)
    except Stop as stop:
        failed = Tally()
        failed.fail(stop.why, stop.details)
        show(progress, failed, stop.log)
        total.add(failed)
    except KeyboardInterrupt:
        total.fail(f"check: interrupted in {', '.join(progress.begun)}", [])
    except Exception:
        progress.print(traceback.format_exc())
        total.fail("check: the runner itself failed, as told above", [])
    summarize(total, progress)
    return 1 if total.failures or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
