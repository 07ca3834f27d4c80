#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `verbatim status --json`, `metrics` and `top` print, held against what is so. Each command
prints what is wrong, and nothing if all is right.

  json FILE PROGRAM COUNT         that many of its processes are there, each with a QP in use
  metrics FILE PROGRAM COUNT      the same, and the text is what Prometheus reads
  rates FILE PROGRAM MB_PER_S     the sender's row of `top -b` agrees, within a wide factor
  grown FILE1 FILE2 PROGRAM       a hundred of its requests were measured from FILE1 to FILE2
  latency FILE1 FILE2 TOP PROGRAM ... and in this time all that it had done, one at a time, which
                                  took the time that there was; percentiles are in order
  screen VERBATIM PROGRAM COUNT   `top` in a terminal of 80 columns: shown, searched, and left
  picture FILE                    an SVG of the lines of a terminal, for docs/top.svg
"""
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import fcntl
import time

COLUMNS, LINES = 80, 24
TIMES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1}
UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def check_json(path, program, count):
    with open(path, encoding="utf8") as file:
        status = json.load(file)
    if not status["hub"]["clients"] >= int(count):
        yield "the hub has %s clients" % status["hub"]["clients"]
    found = [p for p in status["processes"] if p["program"] == program]
    if len(found) != int(count):
        yield "%d processes of %s, not %s" % (len(found), program, count)
    qpns = {qp["qpn"] for p in found for qp in p["queue_pairs"]}
    for process in found:
        if not any(qp["state"] in ("RTR", "RTS") for qp in process["queue_pairs"]):
            yield "no QP of %s is connected" % process["pid"]
        for qp in process["queue_pairs"]:
            if qp["peer_qpn"] not in qpns:
                yield "the peer of QPN %d is not there" % qp["qpn"]
        if process["objects"]["queue_pairs"] != len(process["queue_pairs"]):
            yield "it says another number of QPs than it lists"
    if not any(qp["requests"] for p in found for qp in p["queue_pairs"]):
        yield "nobody has sent anything"
    if not any(qp["served"] for p in found for qp in p["queue_pairs"]):
        yield "nobody has received anything"


def families(text):
    """The text format, read strictly: {metric: [(labels, value)]}, each with its TYPE before."""
    label = r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"'
    sample = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{((?:%s,?)*)\})? (\S+)" % label)
    typed, found = {}, {}
    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            if name in typed:
                raise ValueError("%s has two types" % name)
            typed[name] = kind
        elif line.startswith("# HELP "):
            continue
        else:
            match = sample.fullmatch(line)
            name = re.sub(r"_(sum|count)$", "", match.group(1)) if match else ""
            if not match or (match.group(1) not in typed and typed.get(name) != "summary"):
                raise ValueError("no sample, or one without a type: %s" % line)
            labels = tuple(re.findall(label, match.group(2) or ""))
            found.setdefault(match.group(1), []).append((dict(labels), float(match.group(5))))
    for name, samples in found.items():
        keys = [tuple(sorted(labels.items())) for labels, _ in samples]
        if len(set(keys)) != len(keys):
            raise ValueError("%s has a series twice" % name)
    return found


def check_metrics(path, program, count):
    with open(path, encoding="utf8") as file:
        text = file.read()
    found = families(text)
    if found["verbatim_up"] != [({}, 1)]:
        yield "verbatim_up is not 1"
    if found["verbatim_processes"][0][1] < int(count):
        yield "verbatim_processes is %d" % found["verbatim_processes"][0][1]
    octets = [v for labels, v in found["verbatim_qp_octets_total"] if labels["program"] == program]
    if len(octets) < int(count) or not max(octets) > 0:
        yield "no octets were sent: %s" % octets
    if not {labels["reason"] for labels, _ in found["verbatim_drops_total"]} > {"icrc", "no_qp"}:
        yield "a reason for drops is missing"
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        return
    theirs = {s.name for f in text_string_to_metric_families(text) for s in f.samples}
    if theirs != set(found):
        yield "prometheus_client reads others: %s" % (theirs ^ set(found))


def number(cell):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMGT]?)", cell)
    return float(match.group(1)) * UNITS[match.group(2)] if match else 0


def rows(lines):
    """Each row of a table as {title: cell}; cells have no blanks in them but the last."""
    titles = None
    for line in lines:
        words = line.split()
        if words[:2] == ["PID", "PROGRAM"]:
            titles = words
        elif titles and len(words) >= len(titles):
            yield dict(zip(titles, words))


def check_rates(path, program, rate):
    with open(path, encoding="utf8") as file:
        table = [row for row in rows(file.read().splitlines()) if row["PROGRAM"] == program[:8]]
    sent = max((number(row["B/s"]) for row in table), default=0)
    came = max((number(row["IN/s"]) for row in table), default=0)
    wanted = float(rate) * (1 << 20)
    # A busy machine lets programs work by fits and starts: top saw a part of the time only.
    if not wanted / 30 < sent < wanted * 30:
        yield "top says %g octets per second, the program %g" % (sent, wanted)
    if not came > 0:
        yield "nobody has received anything"


def seconds(cell):
    match = re.fullmatch(r"(\d+(?:\.\d)?)([num]?)s?", cell)
    return float(match.group(1)) * TIMES[match.group(2)] if match else 0


def measured(path, program):
    """The QPs of a program that were measured: {QPN: (when, requests, latency)}."""
    with open(path, encoding="utf8") as file:
        status = json.load(file)
    return {qp["qpn"]: (p["taken_ns"], qp["requests"], qp["latency"])
            for p in status["processes"] if p["program"] == program
            for qp in p["queue_pairs"] if (qp["latency"] or {}).get("p50_ns")}


def check_grown(before, after, program):
    old, new = measured(before, program), measured(after, program)
    if not any(new[qpn][2]["count"] >= old[qpn][2]["count"] + 100 for qpn in new if qpn in old):
        yield "no 100 requests were measured"


def check_latency(before, after, top, program):
    old, new = measured(before, program), measured(after, program)
    for qpn in set(old) & set(new):
        (since, requests, first), (until, later, last) = old[qpn], new[qpn]
        count, spent = last["count"] - first["count"], last["sum_ns"] - first["sum_ns"]
        # Whether a request is counted when it is done or when it is polled is up to one apart.
        if abs(count - (later - requests)) > 2:
            yield "%d of %d requests were measured" % (count, later - requests)
        # One request at a time: they take no longer than there was time, and not much less.
        there_was = until - since
        if not 0.05 * there_was < spent <= 1.001 * there_was + last["max_ns"]:
            yield "requests took %d of %d ns" % (spent, there_was)
        if not 0 < last["p50_ns"] <= last["p99_ns"] <= last["max_ns"]:
            yield "not in order: %s" % last
    with open(top, encoding="utf8") as file:
        table = [row for row in rows(file.read().splitlines()) if row["PROGRAM"] == program[:8]]
    times = [[seconds(row[title]) for title in ("P50", "P99", "MAX")] for row in table]
    if not any(time[0] > 0 for time in times) or any(time != sorted(time) for time in times):
        yield "top says %s" % times


def picture(path):
    with open(path, encoding="utf8") as file:
        lines = file.read().rstrip("\n").split("\n")
    print('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-size="12" '
          'font-family="monospace"><rect width="100%%" height="100%%" fill="#111"/>'
          % (COLUMNS * 7.3 + 16, len(lines) * 16 + 14))
    for i, line in enumerate(lines):
        titles = line.split()[:2] == ["PID", "PROGRAM"]
        if titles:
            print('<rect x="8" y="%d" width="%d" height="16" fill="#ccc"/>'
                  % (16 * i + 7, COLUMNS * 7.3))
        print('<text x="8" y="%d" fill="%s" textLength="%.0f" xml:space="preserve">%s</text>'
              % (16 * i + 19, "#111" if titles else "#ddd", len(line) * 7.3,
                 line.replace("&", "&amp;").replace("<", "&lt;")))
    print("</svg>")


def shown(screen):
    """The last whole screen, as lines without escape sequences."""
    frames = screen.split("\033[H")
    whole = [f for f in frames[1:] if "\033[J" in f]
    text = re.sub(r"\033\[[?\d;]*[a-zA-Z]", "", whole[-1].split("\033[J")[0]) if whole else ""
    return text.replace("\r", "").split("\n")


class Terminal:
    def __init__(self, command):
        self.screen = ""
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ["TERM"] = "vt100"
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
            os.execv(command[0], command)

    def until(self, holds, patience_s=60):
        """Reads until holds(lines) is true; False if it never is."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            if holds(shown(self.screen)):
                return True
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.screen += os.read(self.fd, 65536).decode()
                except OSError:
                    return False
        return False

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def status(self):
        try:
            while os.read(self.fd, 65536):
                continue
        except OSError:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def check_screen(verbatim, program, count):
    terminal = Terminal([verbatim, "top", "-d", "0.3"])

    def of_program(lines):
        return [row for row in rows(lines) if row["PROGRAM"] == program[:8]]

    def busy(lines):
        found = of_program(lines)
        return len(found) == int(count) and any(number(row["B/s"]) for row in found)
    if not terminal.until(busy):
        yield "the rows do not come: %s" % shown(terminal.screen)
    lines = shown(terminal.screen)
    print("\n".join("# " + line for line in lines))
    wide = [line for line in lines if len(line) > COLUMNS]
    if wide or len(lines) > LINES:
        yield "more than %d by %d: %s" % (COLUMNS, LINES, wide)
    pid = of_program(lines)[0]["PID"]
    size = struct.pack("HHHH", LINES, COLUMNS // 2, 0, 0)
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, size)
    if not terminal.until(lambda now: len(now) > 2 and now[2].split()[-1:] == ["B/s"]):
        yield "in a terminal of half the width: %s" % shown(terminal.screen)
    size = struct.pack("HHHH", LINES, COLUMNS, 0, 0)
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, size)
    if not terminal.until(of_program):
        yield "it does not become wider again: %s" % shown(terminal.screen)
    terminal.press("/" + pid + "\r")
    if not terminal.until(lambda now: [row["PID"] for row in rows(now)] == [pid]):
        yield "a search for %s shows %s" % (pid, shown(terminal.screen))
    terminal.press("/\r")
    terminal.press("p")
    processes = ["1"] * int(count)
    if not terminal.until(lambda now: [row["QPN"] for row in of_program(now)] == processes):
        yield "p does not show processes: %s" % shown(terminal.screen)
    terminal.press("q")
    status = terminal.status()
    if status != 0:
        yield "it ends with %d" % status


CHECKS = {"grown": check_grown, "json": check_json, "latency": check_latency,
          "metrics": check_metrics, "rates": check_rates, "screen": check_screen}

if __name__ == "__main__":
    if sys.argv[1] == "picture":
        sys.exit(picture(sys.argv[2]))
    FAULTS = list(CHECKS[sys.argv[1]](*sys.argv[2:]))
    for fault in FAULTS:
        print(fault)
    sys.exit(bool(FAULTS))
