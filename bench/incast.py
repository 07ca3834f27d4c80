#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sixteen hosts that send to one, with DCQCN and without: docs/incast.svg.

    bench/incast.py -o FILE.svg [--data FILE.json] [--seconds S]     runs them, and draws
    bench/incast.py -o FILE.svg --from FILE.json                     draws what was run before
    bench/incast.py --check [--seconds S]        fails if DCQCN does not share the port evenly

What is drawn stands in the ports of the modelled network (tests/lib/net_ports.py), which are looked
at ten times a second while ib_send_bw runs. VB_BUILD is the build folder.
"""
import argparse
import json
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))

import lab as lab_of                    # noqa: E402
import net                              # noqa: E402
from net_ports import Ports             # noqa: E402

RECEIVER = "10.81.0.1"
JAIN = 0.95
MBIT, QUEUE, ECN_KIB, EVERY_S = 100, "1MiB", 64, 0.1
RUNS = {"with DCQCN": {}, "without": {"VERBATIM_DCQCN": "0"}}

WIDE, HIGH = 340, 150           # of a panel
LEFT, TOP, GAP_X, GAP_Y = 56, 46, 34, 46
STYLE = """text{font:12px sans-serif;fill:#777}.grid{stroke:#8886;stroke-width:.5}
polyline{fill:none;stroke-width:1.1;stroke-linejoin:round}.queue{stroke:#e04545}
.mark{stroke:#888;stroke-dasharray:4 3}"""


def watched(ports, address, seconds):
    """Octets that each sender's port has sent, and what waits at the receiver's, time by time."""
    rows = []
    while not ports.figures().get((address, "down"), {}).get("frames"):
        time.sleep(EVERY_S)
    begin = time.monotonic()
    while time.monotonic() < begin + seconds:
        figures = ports.figures()
        down = figures.get((address, "down"))
        rows.append({"s": time.monotonic() - begin,
                     "octets": {a: f["bytes"] for (a, way), f in figures.items()
                                if way == "up" and a != address},
                     "queue": Ports.waiting_s(down) * MBIT * 1e6 / 8 if down else 0})
        time.sleep(EVERY_S)
    return rows


def run(lab, hosts, how, seconds):
    name = f"bench-{os.getpid()}"
    ports = Ports(name)
    env = {"NET": f"rate={MBIT}Mbit,queue={QUEUE},ecn={ECN_KIB}KiB,name={name}",
           "GID": lab.gid_of(RECEIVER, hosts.on[0]),
           "PROGRAM": ["ib_send_bw", "-e", "-n", "1000000"], **RUNS[how]}
    with net.senders(lab, hosts, os.devnull, env) as clients:
        rows = watched(ports, RECEIVER, seconds)
        ended = [client.poll() for client in clients if client.poll() is not None]
    down = ports.figures()[RECEIVER, "down"]
    ports.close()
    if ended:
        raise lab_of.Failure(f"{len(ended)} of the senders did not live so long")
    sent = [rows[-1]["octets"][a] - rows[0]["octets"].get(a, 0) for a in rows[-1]["octets"]]
    return {"rows": rows, "jain": net.jain(sent), "frames": down["frames"], "lost": down["lost"],
            "share": sum(sent) * 8e-6 / MBIT / (rows[-1]["s"] - rows[0]["s"]),
            "marked": down["marked"], "longest": down["most_ns"] * MBIT / 8000}


def speeds(rows):
    """Mbit/s of each sender between two looks: a list of points each."""
    lines = {}
    for before, after in zip(rows, rows[1:]):
        for address, octets in after["octets"].items():
            mbit = (octets - before["octets"].get(address, 0)) * 8e-6 / (after["s"] - before["s"])
            lines.setdefault(address, []).append((after["s"], mbit))
    return [lines[a] for a in sorted(lines, key=lambda a: [int(n) for n in re.findall(r"\d+", a)])]


class Panel:
    def __init__(self, column, row, seconds, most, unit):
        self.x, self.y = LEFT + column * (WIDE + GAP_X), TOP + row * (HIGH + GAP_Y)
        self.seconds, self.most, self.unit = seconds, most, unit

    def at(self, s, value):
        return (self.x + WIDE * min(1, s / self.seconds),
                self.y + HIGH * (1 - min(1, value / self.most)))

    def line(self, points, kind):
        points = " ".join("{:.0f},{:.1f}".format(*self.at(*point)) for point in points)
        return f'<polyline {kind} points="{points}"/>'

    def frame(self, title, numbered):
        text = [f'<text x="{self.x}" y="{self.y - 8}">{title}</text>']
        for i in range(5):
            _, y = self.at(0, self.most * i / 4)
            text.append(f'<path class="grid" d="M{self.x} {y:.1f}h{WIDE}"/>')
            if numbered:
                text.append(f'<text x="{self.x - 6}" y="{y + 4:.1f}" text-anchor="end">'
                            f'{self.most * i / 4:g}</text>')
        for s in range(0, int(self.seconds) + 1, 2):
            x, y = self.at(s, 0)
            text.append(f'<text x="{x:.0f}" y="{y + 15:.0f}" text-anchor="middle">{s} s</text>')
        return text


def draw(runs):
    """An SVG of two columns, the throughput of each sender above the queue."""
    seconds = min(run["rows"][-1]["s"] for run in runs.values())
    fast = max(mbit for run in runs.values() for line in speeds(run["rows"]) for _, mbit in line)
    fast = next(m for m in (8, 12, 16, 20, 40, 80, 120, 400) if m >= min(fast, 400))
    long = max(row["queue"] for run in runs.values() for row in run["rows"]) / 1024
    long = next(m for m in (64, 128, 256, 512, 1024, 1200, 1e9) if m >= long)
    text = []
    for column, (how, one) in enumerate(runs.items()):
        panel = Panel(column, 0, seconds, fast, "Mbit/s")
        text += panel.frame(f"{how}: Mbit/s of each (Jain's index "
                            f"{one['jain']:.3f})", column == 0)
        lines = speeds(one["rows"])
        text += [panel.line(line, f'stroke="hsl({i * 360 // len(lines)} 65% 50%)"')
                 for i, line in enumerate(lines)]
        panel = Panel(column, 1, seconds, long, "KiB")
        text += panel.frame(f"KiB in the queue ({one['lost']} of {one['frames'] + one['lost']} "
                            "frames lost)", column == 0)
        text.append(panel.line([(0, ECN_KIB), (seconds, ECN_KIB)], 'class="mark"'))
        text.append(panel.line([(row["s"], row["queue"] / 1024) for row in one["rows"]],
                               'class="queue"'))
    width = LEFT + 2 * WIDE + GAP_X + 14
    height = TOP + 2 * HIGH + GAP_Y + 30
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}">\n<style>{STYLE}</style>\n'
            f'<text x="{LEFT}" y="18">{net.SENDERS} hosts send into one port of {MBIT} Mbit/s, '
            f'queue={QUEUE}, ecn={ECN_KIB}KiB (dashed)</text>\n' + "\n".join(text) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", metavar="FILE.svg", dest="out")
    parser.add_argument("--data", metavar="FILE.json", help="keeps what was measured")
    parser.add_argument("--from", metavar="FILE.json", dest="source")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if not args.check and not args.out:
        parser.error("-o or --check is wanted")
    if args.source:
        with open(args.source, encoding="ascii") as file:
            runs = json.load(file)
    else:
        lab_of.enter()
        lab = lab_of.Lab(ROOT, os.environ.get("VB_BUILD", os.path.join(ROOT, "build")))
        os.makedirs(lab.out, exist_ok=True)
        hosts = net.Hosts()
        wanted = list(RUNS)[:1] if args.check else RUNS
        runs = {how: run(lab, hosts, how, args.seconds) for how in wanted}
    if args.data:
        with open(args.data, "w", encoding="ascii") as file:
            json.dump(runs, file)
    if args.out:
        with open(args.out, "w", encoding="ascii") as file:
            file.write(draw(runs))
    for how, one in runs.items():
        print(f"{how}: {one['share']:.3f} of the port, Jain's index {one['jain']:.3f}, "
              f"{one['lost']} of {one['lost'] + one['frames']} frames lost, "
              f"{one['marked']} marked, {one['longest'] / 1024:.0f} KiB at most in the queue")
    if args.check and runs["with DCQCN"]["jain"] < JAIN:
        sys.exit(f"Jain's index is below {JAIN}")


if __name__ == "__main__":
    main()
