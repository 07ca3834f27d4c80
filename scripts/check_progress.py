# SPDX-License-Identifier: BSD-2-Clause
"""Says while programs run which these are, how far they are, and how much is left.

On a terminal that is one line which changes; in a log, a line every few seconds. What is left is
estimated from the times of the last run, which are kept in a file."""
import json
import os
import re
import shutil
import sys
import time

EVERY_S = float(os.environ.get("VB_CHECK_EVERY_S", "8"))
TERMINAL_EVERY_S = min(1, EVERY_S)
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x1f\x7f]")


def span(seconds):
    """A length of time in words."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02} min" if minutes else f"{rest} s"


class Progress:
    def __init__(self, times, lanes):
        self.count, self.left, self.file, self.lanes = 0, set(), times, lanes
        self.begun, self.said = {}, time.monotonic()
        self.terminal = sys.stdout.isatty()
        try:
            with open(times, encoding="utf8") as file:
                self.times = json.load(file)
        except (OSError, ValueError):
            self.times = {}

    def plan(self, labels):
        self.count, self.left = len(labels), set(labels)

    def print(self, *words):
        """A line that stays."""
        if self.terminal:
            print("\r\x1b[K", end="")
        print(*words, flush=True)

    def begin(self, label):
        self.begun[label] = time.monotonic()

    def end(self, label):
        """Returns how many seconds it took, and keeps them for the next run."""
        seconds = time.monotonic() - self.begun.pop(label)
        self.times[label] = round(seconds, 1)
        self.left.discard(label)
        return seconds

    def keep(self):
        """Writes the times down."""
        with open(self.file, "w", encoding="utf8") as file:
            json.dump(self.times, file, indent=1)

    def remaining(self, now):
        """What is left, what runs included."""
        labels = {*self.begun, *self.left}
        known = [max(self.times[label] - (now - self.begun.get(label, now)), 0)
                 for label in labels if label in self.times]
        unknown = len(labels) - len(known)
        seconds = max(sum(known) / self.lanes, max(known, default=0))
        done = "no program begun"
        if self.count:
            done = f"{self.count - len(self.left)} of {self.count} programs done"
        if not seconds and unknown:
            return f"{done}, time left not known before the first run"
        return f"{done}, about {span(seconds)} left" + (
            f" and {unknown} of unknown length" if unknown else "")

    def tick(self, latest):
        """To be called often; latest(label) says how far it is."""
        now = time.monotonic()
        if now - self.said < (TERMINAL_EVERY_S if self.terminal else EVERY_S):
            return
        self.said = now
        line = "... " + "; ".join(
            f"{label}, {span(now - begun)}: {CONTROL.sub('', latest(label))[:120]}"
            for label, begun in self.begun.items()) + f" | {self.remaining(now)}"
        if self.terminal:
            width = shutil.get_terminal_size().columns
            print("\r" + line[:width - 1] + "\x1b[K", end="", flush=True)
        else:
            print(line, flush=True)
