#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `make bench` runs: measures each figure of ours next to its limit and its peers, in turns,
so that noise affects all of them alike. docs/performance.md says how to read what it prints.

  BENCH_RUNS=5            number of runs; medians count
  BENCH_ONLY="lat bw"     only these groups: lat bw rate event udp veth9000 veth1500 scale frames
                          cm rsockets net curves curves9000
  BUILD=build             the build that is measured

Writes into BUILD/bench: raw.jsonl (each figure), results.jsonl (the summaries and verdicts),
table.txt (what is printed), and the curves' pictures and data.
"""
import glob
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time

import curves
import lab
import load
import report

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
RUNS_S = 1200           # a run that would end later is not begun
AGAIN = 2               # how often a figure is repeated because the cores moved
PACKAGES = ["perftest", "ucx-utils", "libfabric-bin", "iperf3"]


def first_line(path, pattern):
    with open(path, encoding="ascii", errors="replace") as file:
        found = re.search(pattern, file.read(), re.M)
    return found.group(1).strip() if found else ""


def said(*command):
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


class Processors:
    """How the CPU time was used since this object was made."""

    def __init__(self):
        self.then = self.now()

    @staticmethod
    def now():
        """Seconds: total, stolen by the hypervisor, used by programs, used by our programs."""
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
        ours = resource.getrusage(resource.RUSAGE_CHILDREN)
        hertz = os.sysconf("SC_CLK_TCK")
        return [sum(ticks) / hertz, ticks[7] / hertz, sum(ticks[:3]) / hertz,
                ours.ru_utime + ours.ru_stime]

    def shares(self):
        """Fractions of the time: stolen, used by others."""
        whole, stolen, used, ours = (b - a for a, b in zip(self.then, self.now()))
        return round(stolen / max(whole, 0.01), 4), round(max(0, used - ours) / max(whole, 0.01), 4)


def system(where):
    release = platform.freedesktop_os_release() if hasattr(platform, "freedesktop_os_release") \
        else {}
    packages = {name: said("dpkg-query", "-W", "-f", "${Version}", name) for name in PACKAGES}
    return {
        "kind": "system", "cores": os.cpu_count(), "used": list(where.cores),
        "processor": first_line("/proc/cpuinfo", r"^model name\s*:(.*)") or platform.machine(),
        "virtual": bool(first_line("/proc/cpuinfo", r"^flags\s*:.*\b(hypervisor)\b")),
        "kernel": platform.release(), "system": release.get("PRETTY_NAME", ""),
        "commit": said("git", "describe", "--always", "--dirty"), "packages": packages,
        "load": os.getloadavg()[0],
    }


class Recorder:
    """Measures figures and stores them in a file, each with the distance of the cores then."""

    def __init__(self, where, path):
        self.where, self.rows, self.results = where, [], report.Results()
        self.processors = Processors()
        self.file = open(path, "w", encoding="ascii")

    def keep(self, row):
        self.rows.append(row)
        self.results.add(row)
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def take(self, measure):
        """Measures once: (values or None, error or None, [line before, line after])."""
        self.processors = Processors()
        before = self.where.line_ns()
        for left in range(AGAIN if measure.steady else 0, -1, -1):
            try:
                values, error = measure.take(self.where), None
            except (lab.Failure, OSError, ValueError, KeyError, IndexError) as failure:
                return None, str(failure), [before, before]
            after = self.where.line_ns()
            if not left or (before < lab.NEAR_NS) == (after < lab.NEAR_NS):
                break
            before = after
            self.processors = Processors()
        return values, error, [before, after]

    def measure(self, run, group, measure):
        values, error, line = self.take(measure)
        for number, figure in enumerate(measure.figures):
            row = {"kind": "figure", "run": run, "group": group, "what": figure.what,
                   "octets": figure.octets, "unit": figure.unit, "against": figure.against,
                   "line_ns": line, "others": self.processors.shares()[1]}
            row.update({"error": error} if values is None else {"value": values[number]})
            self.keep(row)


    def even(self, run, group, measures):
        """Repeats measurements that this run compares, if the cores were at different distances."""
        by_key = {load.key_of(group, figure.what, figure.octets): measure
                  for measure in measures for figure in measure.figures}
        for key, measure in by_key.items():
            for ref in {ref for figure in measure.figures for ref in figure.against.values()}:
                for again in (measure, by_key.get(ref)):
                    if again and again.steady and not self.results.alike(run, [key, ref]) and \
                            self.results.values(key) and self.results.values(ref):
                        self.measure(run, group, again)


def groups_wanted():
    known = [*load.GROUPS, *load.CURVES]
    wanted = os.environ.get("BENCH_ONLY", "").replace(",", " ").split() or known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"bench: no such group: {' '.join(unknown)}; there are: {' '.join(known)}")
    return wanted


def progress(*words):
    print("bench:", *words, file=sys.stderr, flush=True)


def measure_all(recorder, runs, wanted):
    """Measures; returns the number of runs there was time for."""
    begin = time.monotonic()
    groups = {name: load.GROUPS[name][1]() for name in load.GROUPS if name in wanted}
    for run in range(1, runs + 1):
        if (time.monotonic() - begin) * run / max(1, run - 1) > RUNS_S:
            progress(f"{RUNS_S} s are no time for run {run}; is the machine busy?")
            return run - 1
        for name, measures in groups.items():
            start = time.monotonic()
            # Every other run goes backwards, so that no figure is always the first or the last.
            for measure in measures if run % 2 else reversed(measures):
                recorder.measure(run, name, measure)
            recorder.even(run, name, measures)
            progress(f"run {run} of {runs}, {name}: {time.monotonic() - start:.0f} s")
    return runs


def main():
    lab.enter()
    build = os.path.join(ROOT, os.environ.get("BUILD", "build"))
    runs = int(os.environ.get("BENCH_RUNS", "5"))
    wanted = groups_wanted()
    where = lab.Lab(ROOT, build)
    for old in glob.glob(os.path.join(where.out, "*.jsonl")):
        os.remove(old)
    recorder = Recorder(where, os.path.join(where.out, "raw.jsonl"))
    facts, start, processors = system(where), time.monotonic(), Processors()
    recorder.keep(facts)
    done = measure_all(recorder, runs, wanted)
    for name in load.CURVES:
        if name in wanted:
            for row in curves.measure(where, name, progress):
                recorder.keep(row)
    stolen, others = processors.shares()
    recorder.keep({"kind": "noise", "stolen": stolen, "others": others, "runs": done,
                   "load_after": os.getloadavg()[0],
                   "seconds": round(time.monotonic() - start)})
    recorder.file.close()
    report.write(recorder.rows, where.out)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
