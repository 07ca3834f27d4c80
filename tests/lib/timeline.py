#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Timelines that `verbatim trace` made (docs/insight.md).

  check FILE REQUESTS [wire]   two processes, so many requests, each whole and in order; packets are
                               of rings (or of the wire), and each that came has left before.
                               Prints what is wrong
  draw FILE                    an SVG of a few requests from the middle, for docs/timeline.svg
"""
import collections
import json
import sys

COLORS = {"queued": "#d9a441", "sent, not acknowledged": "#4a90c2", "done, not polled": "#7ab97a"}


def load(path):
    with open(path, encoding="utf8") as file:
        return json.load(file)["traceEvents"]


def requests(events):
    """{id: [(name, begin, end, args)]}: first the request, then its parts."""
    found, opened = collections.defaultdict(list), collections.defaultdict(list)
    for event in events:
        key = event.get("id")
        if event["ph"] == "b":
            opened[key].append(event)
        elif event["ph"] == "e":
            begin = opened[key].pop()
            if begin["name"] != event["name"]:
                raise ValueError("%s ends %s" % (event, begin))
            part = (begin["name"], begin["ts"], event["ts"], begin.get("args"))
            if opened[key]:
                found[key].append(part)
            else:
                found[key].insert(0, part)
    if any(opened.values()):
        raise ValueError("a request has no end")
    return found


def check(path, count, wire=None):
    events = load(path)
    names = [e for e in events if e["ph"] == "M" and e["name"] == "process_name"]
    if len({e["pid"] for e in names}) != 2:
        yield "it has %d processes" % len(names)
    found = requests(events)
    if len(found) != int(count):
        yield "%d requests, not %s" % (len(found), count)
    for key, (whole, *parts) in found.items():
        at = whole[1]
        if whole[3]["status"] != "IBV_WC_SUCCESS":
            yield "%s: %s" % (key, whole[3]["status"])
        for name, begin, end, _ in parts:
            if abs(begin - at) > 0.002 or end < begin:
                yield "%s: %s begins at %f, not %f" % (key, name, begin, at)
            at = end
        if parts and abs(at - whole[2]) > 0.002:
            yield "%s ends at %f, its last part at %f" % (key, whole[2], at)
    if not any(e["ph"] == "i" and e["name"].startswith("received ") for e in events):
        yield "nothing was received"
    left = {}
    for event in sorted((e for e in events if e["ph"] in "sf"), key=lambda e: e["ts"]):
        if event["ph"] == "s":
            left[event["id"]] = event
    came = [e for e in events if e["ph"] == "f"]
    for way in ("wire", "ring"):
        if (way == (wire or "ring")) != any(e["cat"] == way for e in came):
            yield "%d of %d packets came by the %s" % (
                sum(e["cat"] == way for e in came), len(came), way)
    for event in came:
        if event["id"] not in left:
            yield "%s has come from nowhere" % event["id"]
        elif event["pid"] == left[event["id"]]["pid"]:
            yield "%s has come from its own process" % event["id"]
    first = {}
    for event in events:
        if event["ph"] == "s":
            first[event["id"]] = min(event["ts"], first.get(event["id"], event["ts"]))
    # Of the wire, when they left is known less well: a burst leaves at once.
    early = [e["id"] for e in came
             if e["ts"] < first.get(e["id"], 0) - (1000 if e["cat"] == "wire" else 0)]
    if early:
        yield "%d packets came before they left" % len(early)


def bar(out, left, top, width, color, text):
    out.append('<rect x="%.1f" y="%d" width="%.1f" height="16" fill="%s"/>'
               % (left, top, max(width, 0.8), color))
    if width > 7 * len(text):
        out.append('<text x="%.1f" y="%d">%s</text>' % (left + 3, top + 12, text))


def draw(path):
    events = load(path)
    found = sorted(requests(events).values(), key=lambda r: r[0][1])
    some = found[len(found) // 2:][:3]
    begin = min(r[0][1] for r in some)
    end = max(r[0][2] for r in some)
    pids = sorted({e["pid"] for e in events})
    sender = next(e["pid"] for e in events if e["ph"] == "b")
    tracks = {sender: 100 + 40 * len(some), **{p: 190 + 40 * len(some) for p in pids
                                                if p != sender}}
    scale = 720 / (end - begin)

    def at(ts):
        return 60 + (ts - begin) * scale
    height = max(tracks.values()) + 40
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="800" height="%d" font-size="11" '
           'font-family="sans-serif">' % height, '<rect width="800" height="%d" fill="#fff"/>'
           % height, '<text x="60" y="16">%.1f us; each request of the sender, from post to '
           'completion</text>' % (end - begin)]
    for i, (whole, *parts) in enumerate(some):
        top = 28 + 40 * i
        out.append('<text x="%.1f" y="%d">%s, wr_id %s</text>'
                   % (at(whole[1]), top + 10, whole[0], whole[3]["wr_id"]))
        for name, start, stop, _ in parts:
            bar(out, at(start), top + 14, (stop - start) * scale, COLORS[name], name)
    for pid, top in tracks.items():
        out.append('<text x="4" y="%d">%s</text><path d="M60 %d H780" stroke="#888"/>'
                   % (top + 4, "sender" if pid == sender else "receiver", top))
    left = {e["id"]: e for e in events if e["ph"] == "s"}
    for event in events:
        start = left.get(event.get("id"))
        if event["ph"] == "f" and start and begin <= start["ts"] and event["ts"] <= end:
            out.append('<path d="M%.1f %d L%.1f %d" stroke="%s"/>'
                       % (at(start["ts"]), tracks[start["pid"]], at(event["ts"]),
                          tracks[event["pid"]],
                          "#b04040" if event["id"].endswith(".11") else "#4a90c2"))
    out.append('<text x="60" y="%d">blue: packets of requests; red: ACKs</text>' % (height - 8))
    print("\n".join(out + ["</svg>"]))


if __name__ == "__main__":
    if sys.argv[1] == "draw":
        draw(sys.argv[2])
    else:
        FAULTS = list(check(*sys.argv[2:]))
        print("\n".join(FAULTS[:20]))
        sys.exit(bool(FAULTS))
