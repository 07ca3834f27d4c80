#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tables, verdicts and JSON lines of what bench.py measured. For an earlier run:
report.py build/bench/raw.jsonl"""
import json
import os
import statistics
import sys
from collections import namedtuple

import load
from lab import NEAR_NS
from load import IDLE_QPS, KIB, MIB, key_of

OTHERS = 0.1            # a figure is marked if others used more of the CPUs meanwhile
COLUMNS = ["limit", "UCX", "fabric", "TCP"]


class Results:
    """Figures by key, run and distance of the cores: "near", "far", or "mixed" if they moved."""

    def __init__(self, rows=()):
        self.figures, self.errors, self.order, self.disturbed = {}, {}, [], {}
        for row in rows:
            self.add(row)

    def add(self, row):
        if row["kind"] != "figure":
            return
        key = key_of(row["group"], row["what"], row["octets"])
        if key not in self.figures:
            self.figures[key] = {}
            self.order.append((key, row))
        if "value" in row:
            near = [ns < NEAR_NS for ns in row["line_ns"]]
            state = "near" if all(near) else "far" if not any(near) else "mixed"
            self.figures[key].setdefault(row["run"], {})[state] = row["value"]
            self.disturbed[key] = self.disturbed.get(key, 0) + (row["others"] > OTHERS)
        else:
            self.errors[key] = row["error"]

    def values(self, key, state=None):
        return [v for run in self.figures.get(key, {}).values() for s, v in run.items()
                if state in (None, s)]

    def states(self, key):
        """The number of figures in each state."""
        return {state: len(self.values(key, state)) for state in ("near", "far", "mixed")
                if self.values(key, state)}

    def alike(self, run, keys):
        """The states in which all of these were measured in that run."""
        return [state for state in ("near", "far")
                if all(state in self.figures.get(key, {}).get(run, {}) for key in keys)]

    def ratios(self, ours, refs, combine):
        """(ours / combine(refs), state) for each run that has both, and whether the cores had the
        same distance. Ratios from different distances count only if there are no others."""
        refs = [ref for ref in refs if self.values(ref)]
        alike, others = [], []
        for run, by_state in self.figures.get(ours, {}).items():
            if not refs or not all(self.figures[ref].get(run) for ref in refs):
                continue
            for state in self.alike(run, [ours, *refs]):
                base = combine([self.figures[ref][run][state] for ref in refs])
                if base:            # 0: its program got no CPU time
                    alike.append((by_state[state] / base, state))
            base = combine([statistics.mean(self.figures[ref][run].values()) for ref in refs])
            if base:
                others.append((statistics.mean(by_state.values()) / base, "mixed"))
        return (alike, True) if alike else (others, False)


# A requirement: ours / combine(refs), or ours without refs, is at most or at least `limit`. near:
# only runs with the cores near count.
Verdict = namedtuple("Verdict", "line text ours refs most limit combine near",
                     defaults=(lambda found: found[0], False))


def verdicts_same_host():
    def lat(what, octets=2):
        return key_of("lat", what, octets)

    def bw(what, octets):
        return key_of("bw", what, octets)
    yield Verdict("1", "ib_send_lat 2 B / UCX posix tag_lat 8 B", lat("ib_send_lat"),
                  [lat("UCX posix tag_lat", 8)], True, 2)
    yield Verdict("1", "ib_write_lat 2 B / process_vm_writev 8 B", lat("ib_write_lat"),
                  [lat("process_vm_writev", 8)], True, 1.3)
    yield Verdict("1", "ib_read_lat 2 B / process_vm_readv 8 B", lat("ib_read_lat"),
                  [lat("process_vm_readv", 8)], True, 1.3)
    for name in ("write", "read"):
        yield Verdict("1", f"ib_{name}_lat 2 B, shared MR, near: us",
                      lat(f"ib_{name}_lat shared MR"), [], True, 0.3, near=True)
    for octets, limit in ((MIB, 1), (64 * KIB, 0.7), (4 * KIB, 0.7)):
        for name in ("send", "write"):
            yield Verdict("2", f"ib_{name}_bw {size(octets)} / UCX posix tag_bw",
                          bw(f"ib_{name}_bw", octets), [bw("UCX posix tag_bw", octets)], False,
                          limit)
    for octets in (MIB, 64 * KIB, 4 * KIB):
        yield Verdict("2", f"ib_read_bw / ib_write_bw {size(octets)}", bw("ib_read_bw", octets),
                      [bw("ib_write_bw", octets)], False, 0.7)
    yield Verdict("2", "ib_send_bw 8 B: M/s", key_of("rate", "ib_send_bw", 8), [], False, 8)
    # One direction uses both cores, one to copy in and one to copy out. So both directions together
    # reach at most what they reach with a bare ring, relative to one direction: twice as much if
    # the cores have time left, usually less than once.
    for name in ("send", "write", "read"):
        yield Verdict("2", f"ib_{name}_bw -b 1 MiB / one way, x both ways of a ring / one",
                      bw(f"ib_{name}_bw -b", MIB),
                      [bw(f"ib_{name}_bw", MIB), bw("ring, both ways", MIB),
                       bw("ring, two copies", MIB)], False, 1,
                      lambda found: found[0] * (min(2, found[1] / found[2])
                                                if len(found) == 3 else 2))


def verdicts_xrc():
    for name in ("send", "write"):
        for group, octets in (("bw", MIB), ("bw", 64 * KIB), ("rate", 8)):
            yield Verdict("8", f"ib_{name}_bw {size(octets)}: XRC / RC",
                          key_of(group, f"ib_{name}_bw -c XRC", octets),
                          [key_of(group, f"ib_{name}_bw", octets)], False, 0.5)


def verdicts_veth():
    for mtu, roce in ((9000, 4096), (1500, 1024)):
        def at(what, octets, group=f"veth{mtu}"):
            return key_of(group, what, octets)
        yield Verdict("3", f"MTU {mtu}: ib_send_lat 2 B / raw UDP ping-pong", at("ib_send_lat", 2),
                      [at("UDP ping-pong", 64)], True, 1.25)
        yield Verdict("3", f"MTU {mtu}: ib_write_bw 1 MiB / best of iperf3, UCX, libfabric tcp",
                      at("ib_write_bw", MIB),
                      [at("iperf3 TCP", 128 * KIB), at("UCX tcp tag_bw", MIB),
                       at("libfabric tcp", MIB)], False, 1, max)
        yield Verdict("3", f"MTU {mtu}: ib_write_bw 1 MiB / raw GSO+GRO stream",
                      at("ib_write_bw", MIB), [at("UDP stream", roce + 58)], False, 0.6)
        yield Verdict("3", f"MTU {mtu}: ib_write_bw 1 MiB / the same stream with sums and a copy",
                      at("ib_write_bw", MIB), [at("UDP stream, sums", roce + 58)], False, 0.6)


def verdicts_rest():
    def scale(what, octets):
        return key_of("scale", what, octets)
    yield Verdict("4", "ib_send_lat -e 2 B / futex ping-pong", key_of("event", "ib_send_lat -e", 2),
                  [key_of("event", "futex", 0)], True, 1.3)
    yield Verdict("5", f"latency with {IDLE_QPS} QPs / with 1",
                  scale(f"latency, {IDLE_QPS} QPs", 2), [scale("latency, 1 QP", 2)], True, 1.1)
    for way in ("lone write", "lone write shared MR", "write", "write shared MR", "send"):
        yield Verdict("6", f"message rate of 2 threads / 1, {way}",
                      scale(f"{way}, 2 threads", 8), [scale(f"{way}, 1 thread", 8)], False, 1.7)
    yield Verdict("7", "wake-ups of an idle process: 1/s", scale("wake-ups of an idle process", 0),
                  [], True, 0)


def verdicts_net():
    rows = [f"rate, {mbit} Mbit/s" for mbit in (1, 10, 100, 1000)]
    rows += [f"delay, {us} us" for us in (100, 1000, 10000, 80000)]
    rows += [f"loss, {percent} % lost" for percent in (0.1, 1, 5)]
    for what in rows:
        asked = [key_of("net", "asked" + what[what.index(","):], 0)]
        yield Verdict("9", f"{what}: measured / asked", key_of("net", what, 0), asked, True, 1.05)
        yield Verdict("9", f"{what}: measured / asked", key_of("net", what, 0), asked, False, 0.95)
    yield Verdict("9", "16 into one, with ECN: Jain's index",
                  key_of("net", "16 into one, with ECN: Jain's index", 0), [], False, 0.95)


def size(octets):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if octets >= unit and octets % unit == 0:
            return f"{octets // unit} {name}"
    return f"{octets} B"


def judge(results, verdict):
    """The verdict as a row of results.jsonl."""
    row = {"kind": "verdict", "line": verdict.line, "text": verdict.text,
           "group": verdict.ours.split("/")[0],
           "limit": verdict.limit, "most": verdict.most}
    if verdict.refs:
        found, alike = results.ratios(verdict.ours, verdict.refs, verdict.combine)
        missing = [ref for ref in verdict.refs if not results.values(ref)]
        row["note"] = "; ".join(([] if alike or not found else ["the cores moved"]) +
                                [f"without {ref}" for ref in missing])
    else:
        wanted = "near" if verdict.near else None
        found = [(v, wanted) for v in results.values(verdict.ours, wanted)]
        row["note"] = "the cores were never near" if verdict.near and not found and \
            results.values(verdict.ours) else ""
    if verdict.ours in results.errors and not found:
        row["note"] = results.errors[verdict.ours]
    elif any(results.disturbed.get(key) for key in [verdict.ours, *verdict.refs]):
        row["note"] += ("; " if row["note"] else "") + "others were running"
    if not found:
        return {**row, "verdict": "not measured"}
    for state in ("near", "far"):
        some = [v for v, s in found if s == state]
        if some:
            row[state] = statistics.median(some)
    value = statistics.median(v for v, _ in found)
    good = value <= verdict.limit if verdict.most else value >= verdict.limit
    return {**row, "value": value, "min": min(v for v, _ in found),
            "max": max(v for v, _ in found), "runs": len(found),
            "verdict": "ok" if good else "short"}


def number(value):
    """Four significant digits, without an exponent."""
    if value is None:
        return ""
    digits = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1 if abs(value) < 1000 else 0
    return f"{value:.{digits}f}"


def summaries(results):
    for key, row in results.order:
        values = results.values(key)
        summary = {"kind": "summary", "key": key, "group": row["group"], "what": row["what"],
                   "octets": row["octets"], "unit": row["unit"], "runs": len(values),
                   "cores": results.states(key), "disturbed": results.disturbed.get(key, 0)}
        if values:
            summary.update(min=min(values), median=statistics.median(values), max=max(values))
        if key in results.errors:
            summary["error"] = results.errors[key]
        for column, ref in row["against"].items():
            found, alike = results.ratios(key, [ref], lambda some: some[0])
            if found:
                summary["of_" + column] = statistics.median(v for v, _ in found)
                summary["alike_" + column] = alike
        yield summary


def ratio_say(row, column):
    """The ratio; with a ~ if the two were never measured with the cores at the same distance."""
    if "of_" + column not in row:
        return ""
    return ("" if row["alike_" + column] else "~") + number(row["of_" + column])


def table(rows):
    form = "{:27} {:>8} {:>9} {:>9} {:>9} {:5} {:>9}" + " {:>7}" * len(COLUMNS)
    group = None
    for row in rows:
        if row["group"] != group:
            group = row["group"]
            yield ""
            yield f"{group}: {load.GROUPS[group][0]}"
            yield form.format("", "octets", "min", "median", "max", "", "near/far",
                              *("/" + name for name in COLUMNS))
        cores = f"{row['cores'].get('near', 0)}/{row['cores'].get('far', 0)}" + \
            "*" * (row["disturbed"] > 0)
        yield form.format(row["what"], size(row["octets"]) if row["octets"] else "",
                          *(number(row.get(name)) for name in ("min", "median", "max")),
                          row["unit"], cores if row["runs"] else "none",
                          *(ratio_say(row, name) for name in COLUMNS)).rstrip()
        if "error" in row:
            yield f"    failed: {row['error']}"


def footnote(rows):
    if any(row["disturbed"] for row in rows):
        yield ""
        yield f"* others used more than {100 * OTHERS:.0f} % of the processors in one run at least"


def verdict_table(rows, groups):
    """For the groups that were measured."""
    form = "{:2} {:66} {:>8} {:>8} {:>8}  {:8} {}"
    yield ""
    yield "What must be shown (medians of the runs' ratios)"
    yield form.format("", "", "near", "far", "median", "limit", "")
    for row in rows:
        if row["group"] not in groups:
            continue
        note = row["verdict"] + (f" ({row['note']})" if row["note"] else "")
        limit = ("<= " if row["most"] else ">= ") + f"{row['limit']:g}"
        yield form.format(row["line"], row["text"],
                          *(number(row.get(name)) for name in ("near", "far", "value")),
                          limit, note)


def heading(rows):
    facts = next(row for row in rows if row["kind"] == "system")
    noise = next((row for row in rows if row["kind"] == "noise"), {})
    packages = ", ".join(f"{name} {version or 'missing'}"
                         for name, version in facts["packages"].items())
    yield (f"{facts['processor']}, {facts['cores']} {'virtual ' if facts['virtual'] else ''}cores, "
           f"of which {facts['used'][0]} and {facts['used'][1]}; Linux {facts['kernel']}, "
           f"{facts['system']}; verbatim {facts['commit']}")
    yield f"{packages}; runs: {noise.get('runs', 0)}"
    line = [ns for row in rows for ns in
            (row["line_ns"] if isinstance(row.get("line_ns"), list) else [])]
    if line:
        yield (f"Noise: half a round trip of a cache line {min(line):.0f} / "
               f"{statistics.median(line):.0f} / {max(line):.0f} ns (min, median, max), below "
               f"{NEAR_NS} (near) {100 * sum(ns < NEAR_NS for ns in line) // len(line)} % of the "
               f"time; stolen {100 * noise.get('stolen', 0):.1f} %, used by others "
               f"{100 * noise.get('others', 0):.1f} % of the processors' time; load "
               f"{facts['load']:.1f} before and {noise.get('load_after', 0):.1f} after; "
               f"{noise.get('seconds', 0)} s")


def curve_errors(rows):
    for row in rows:
        if row["kind"] == "curve" and "error" in row:
            yield f"{row['curve']}: {row.get('what', '')} {row.get('octets', '')}: {row['error']}"


def write(rows, folder):
    """Prints the tables and writes them and results.jsonl into the folder."""
    results = Results(rows)
    figures = list(summaries(results))
    verdicts = [judge(results, verdict) for make in
                (verdicts_same_host, verdicts_xrc, verdicts_veth, verdicts_rest,
                 verdicts_net)
                for verdict in make()]
    groups = {row["group"] for row in figures}
    text = "\n".join([*heading(rows), *table(figures), *footnote(figures),
                      *verdict_table(verdicts, groups), *curve_errors(rows)])
    with open(os.path.join(folder, "results.jsonl"), "w", encoding="ascii") as out:
        facts = [row for row in rows if row["kind"] in ("system", "noise", "curve")]
        for row in facts + figures + verdicts:
            out.write(json.dumps(row) + "\n")
    with open(os.path.join(folder, "table.txt"), "w", encoding="utf8") as out:
        out.write(text + "\n")
    print(text)
    left = [name for name in load.GROUPS if name not in groups]
    if left:
        print("\nNot measured this time:", *left)
    print(f"\nJSON lines, pictures and this table: {folder}", flush=True)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="ascii") as source:
        write([json.loads(line) for line in source], os.path.dirname(os.path.abspath(sys.argv[1])))
