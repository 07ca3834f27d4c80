# SPDX-License-Identifier: BSD-2-Clause
"""Says while something runs what that is, how far it is, and how much is left.

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
    def __init__(self, times):
        self.suites, self.left, self.file = [], [], times
        self.label, self.begun, self.said = "", 0, 0
        self.terminal = sys.stdout.isatty()
        try:
            with open(times, encoding="utf8") as file:
                self.times = json.load(file)
        except (OSError, ValueError):
            self.times = {}

    def plan(self, suites):
        self.suites, self.left = suites, list(suites)

    def print(self, *words):
        """A line that stays."""
        if self.terminal:
            print("\r\x1b[K", end="")
        print(*words, flush=True)

    def begin(self, label):
        self.label = label
        self.begun = self.said = time.monotonic()

    def end(self):
        """Returns how many seconds it took, and keeps them for the next run."""
        seconds = time.monotonic() - self.begun
        self.times[self.label] = round(seconds, 1)
        if self.label in self.left:
            self.left.remove(self.label)
        with open(self.file, "w", encoding="utf8") as file:
            json.dump(self.times, file, indent=1)
        return seconds

    def remaining(self):
        """What is left, this one included."""
        seconds, unknown = 0, 0
        for label in {self.label, *self.left}:
            elapsed = time.monotonic() - self.begun if label == self.label else 0
            if label in self.times:
                seconds += max(self.times[label] - elapsed, 0)
            else:
                unknown += 1
        done = f"{len(self.suites) - len(self.left)} of {len(self.suites)} suites done"
        if not seconds and unknown:
            return f"{done}, time left not known before the first run"
        return f"{done}, about {span(seconds)} left" + (
            f" and {unknown} of unknown length" if unknown else "")

    def tick(self, latest):
        """To be called often; latest() says how far it is."""
        now = time.monotonic()
        if now - self.said < (TERMINAL_EVERY_S if self.terminal else EVERY_S):
            return
        self.said = now
        line = f"... {self.label}, {span(now - self.begun)}: {CONTROL.sub('', latest())[:120]}"
        line += f" | {self.remaining()}"
        if self.terminal:
            width = shutil.get_terminal_size().columns
            print("\r" + line[:width - 1] + "\x1b[K", end="", flush=True)
        else:
            print(line, flush=True)
