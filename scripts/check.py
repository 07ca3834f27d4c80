#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds, runs test suites one after another and counts every single test.

  check.py [--long] SUITE ...        BUILD and MESON_FLAGS in the environment choose the build

A suite is an executable file tests/SUITE/NAME.sh or .py (and tests/SUITE/long/NAME.sh with
--long). It prints one line per test, "ok NAME", "FAIL NAME: why" or "skip NAME: why", and
anything else it likes. All of it goes to BUILD/check/SUITE-NAME.log; what stands around a FAIL is
shown.
A line "# check-limit: SECONDS" in its first 20 lines changes its time limit; in a sanitizer build
it has three times as long. It finds in its environment:
  VB_ROOT, VB_BUILD   the source and build folders, absolute
  VB_RUN              what to put before a client's command line
  VB_SANITIZE         "address" or "thread" in a sanitizer build, else empty
  VB_PRELOAD          the sanitizer's runtime for foreign programs (VB_RUN has it already)
  VB_LONG             "1" with --long, else empty
The unit tests are Meson's; each cmocka test counts (TAP).

Every VB_CHECK_EVERY_S seconds (8) it says what it does and how much is left. At the end it lists
what was skipped, by reasons, then what failed; the last line is "N passed, N failed, N skipped".
The exit status is 0 or 1.
"""
import glob
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
import traceback

sys.dont_write_bytecode = True
from check_progress import Progress
from check_results import LAST_LINES, Tally, ending, grouped, read_program, read_suite, shown, \
    suite_result

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
LOGS = os.path.join(BUILD, "check")
LIMIT_S = 600
SKIPS_NAMED = 4  # of each reason
STEP_LIMIT_S = 3600  # of the build and the like


class Stop(Exception):
    """Nothing more can be run: why, the end of a log, and its path."""

    def __init__(self, why, details=(), log=""):
        super().__init__(why)
        self.why, self.details, self.log = why, list(details), log


def build_option(name):
    """One Meson option of the build folder; None if there is no such option."""
    path = os.path.join(BUILD, "meson-info", "intro-buildoptions.json")
    with open(path, encoding="utf8") as file:
        return next((o["value"] for o in json.load(file) if o["name"] == name), None)


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
    sanitize = (build_option("b_sanitize") or "").split(",")[0].replace("none", "")
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


def text_of(log):
    with open(log, encoding="utf8", errors="replace") as file:
        return file.read()


def execute(command, log, limit_s, env, tick):
    """Runs a command in its own process group. Returns its exit status, None if out of time."""
    end = time.monotonic() + limit_s
    with open(log, "w", encoding="utf8") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            while time.monotonic() < end:
                try:
                    return process.wait(0.2)
                except subprocess.TimeoutExpired:
                    tick()
            return None
        finally:
            kill_group(process.pid)
            process.wait()


# --- what comes before the tests ---

def step(progress, label, command):
    """Runs something that comes before the tests, and has to end well. Shows compiler warnings."""
    log = os.path.join(LOGS, label.replace(" ", "-") + ".log")
    env = dict(os.environ, PYTHONUNBUFFERED="1")

    def latest():
        return (text_of(log).strip() or "no output yet").splitlines()[-1]

    progress.begin(label)
    status = execute(command, log, STEP_LIMIT_S, env, lambda: progress.tick(latest))
    seconds = progress.end()
    if status != 0:
        how = "did not end in time" if status is None else ending(status)
        raise Stop(f"{label}: {how}", text_of(log).splitlines()[-2 * LAST_LINES:], log)
    progress.print(f"{label:32} done  ({seconds:.1f} s)")
    for line in text_of(log).splitlines():
        if " warning: " in line:
            progress.print("    " + line)


def prepare(progress, labels):
    """Sets up the build folder, builds, and fetches the kernel of the clients' guest."""
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        flags = shlex.split(os.environ.get("MESON_FLAGS", ""))
        step(progress, "meson setup", ["meson", "setup", BUILD, *flags])
    step(progress, "build", ["ninja", "-C", BUILD])
    if not any(label.startswith("clients/") for label in labels):
        return
    try:
        step(progress, "kernel", ["scripts/kernel.sh", os.path.join(BUILD, "guest")])
    except Stop as stop:
        progress.print(f"check: no kernel for a guest ({stop.why}; see {stop.log})")


# --- the tests ---

def limit_of(path, env):
    """How long a suite may take, or Meson's tests without a path."""
    found = None
    if path:
        with open(path, encoding="utf8") as file:
            found = re.search(r"^# check-limit: (\d+)$", "".join(file.readlines()[:20]), re.M)
    return (int(found.group(1)) if found else LIMIT_S) * (3 if env["VB_SANITIZE"] else 1)


def run_script(label, path, env, progress):
    """One suite script: (its tally, its log)."""
    where = os.path.splitext(label)[0]
    log = os.path.join(LOGS, where.replace("/", "-") + ".log")
    limit_s = limit_of(path, env)

    def latest():
        found = [line for line in text_of(log).splitlines() if suite_result(line)]
        return f"results: {len(found)}, latest: {found[-1]}" if found else "no result yet"

    status = execute([path], log, limit_s, env, lambda: progress.tick(latest))
    return read_suite(where, text_of(log), status, limit_s), log


def programs(record):
    """Meson's record of the test programs: (label, entry) of each."""
    if not os.path.exists(record):
        return
    for line in text_of(record).splitlines():
        entry = json.loads(line)
        yield "unit/" + re.sub(r"^[^:/]*:| ", "", entry["name"]), entry


def run_unit(env, progress):
    """Meson's tests: (tally, log)."""
    log, console = os.path.join(LOGS, "unit.log"), os.path.join(LOGS, "unit-meson.log")
    limit_s = limit_of(None, env)
    record = os.path.join(BUILD, "meson-logs", "testlog.json")
    if os.path.exists(record):
        os.remove(record)

    def latest():
        # " 12/252 verbatim:hub / client   FAIL   1.5s": without the verdict, for to Meson a test
        # that cmocka skipped is one that failed.
        found = re.findall(r"^ *(\d+/\d+) +(.*?) +[A-Z]{2,}\b", text_of(console), re.M)
        return "%s programs, latest: %s" % found[-1] if found else "no result yet"

    status = execute(["meson", "test", "-C", BUILD, "--no-rebuild"], console, limit_s, env,
                     lambda: progress.tick(latest))
    tally, ran = Tally(), 0
    with open(log, "w", encoding="utf8") as file:
        for where, entry in programs(record):
            one = read_program(where, entry)
            tally.add(one)
            ran += 1
            file.write(f"=== {where}: {one}\n{entry.get('stdout') or ''}"
                       f"{entry.get('stderr') or ''}\n")
    with open(os.path.join(BUILD, "meson-info", "intro-tests.json"), encoding="utf8") as file:
        planned = len(json.load(file))
    if status is None or ran != planned:
        how = f"did not end within {limit_s} s" if status is None else ending(status)
        tally.fail(f"unit: meson test: {how}, {ran} of {planned} programs ran",
                   text_of(console).splitlines()[-LAST_LINES:])
    return tally, log


def scripts_find(suite, long):
    folder = os.path.join(ROOT, "tests", suite)
    found = sorted(glob.glob(folder + "/*"))
    if long:
        found += sorted(glob.glob(folder + "/long/*"))
    return [f for f in found if f.endswith((".sh", ".py")) and os.access(f, os.X_OK)]


def jobs_find(wanted, long):
    """(label, path) of each suite; Meson's tests have no path."""
    jobs = []
    for suite in wanted:
        found = [("unit", None)] if suite == "unit" else []
        found += [(os.path.relpath(p, os.path.join(ROOT, "tests")), p)
                  for p in scripts_find(suite, long)]
        if not found:
            raise Stop(f"{suite}: there is no test in tests/{suite}")
        jobs += found
    return jobs


def show(progress, tally, log):
    """What the failed tests printed; of the others nothing."""
    for failure in tally.failures:
        failure.log = log
        progress.print(f"--- {failure.name}")
        for line in shown(failure.details):
            progress.print("    " + line)


def run_all(wanted, long, total, progress):
    jobs = jobs_find(wanted, long)
    labels = [label for label, _ in jobs]
    progress.plan(labels)
    prepare(progress, labels)
    env = environment(long)
    for label, path in jobs:
        progress.begin(label)
        tally, log = run_script(label, path, env, progress) if path else run_unit(env, progress)
        progress.print(f"{label:32} {tally}  ({progress.end():.1f} s)")
        total.add(tally)
        show(progress, tally, log)


def summarize(total, progress):
    whole = os.path.join(LOGS, "skipped.txt")
    with open(whole, "w", encoding="utf8") as file:
        file.writelines(row + "\n" for row in grouped(total.skips, len(total.skips)))
    if total.skips:
        progress.print(f"\nskipped (all names: {os.path.relpath(whole)}):")
    for row in grouped(total.skips, SKIPS_NAMED):
        progress.print(textwrap.fill(row, 100, initial_indent="  ", subsequent_indent="      ",
                                     break_long_words=False, break_on_hyphens=False))
    if total.failures:
        progress.print("\nfailed:")
    for failure in total.failures:
        progress.print("FAIL", failure.name)
        if failure.log:
            progress.print("     see", os.path.relpath(failure.log))
    progress.print(total)


def interrupted(*_):
    raise KeyboardInterrupt


def main():
    long = "--long" in sys.argv[1:]
    total = Tally()
    os.makedirs(LOGS, exist_ok=True)
    progress = Progress(os.path.join(LOGS, "times.json"))
    signal.signal(signal.SIGTERM, interrupted)
    try:
        run_all([a for a in sys.argv[1:] if a != "--long"], long, total, progress)
    except Stop as stop:
        failed = Tally()
        failed.fail(stop.why, stop.details)
        show(progress, failed, stop.log)
        total.add(failed)
    except KeyboardInterrupt:
        total.fail(f"check: interrupted in {progress.label}", [])
    except Exception:
        progress.print(traceback.format_exc())
        total.fail("check: the runner itself failed, as told above", [])
    summarize(total, progress)
    return 1 if total.failures or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
