# SPDX-License-Identifier: BSD-2-Clause
"""What the output of tests says: which passed, which failed and how, which were skipped and why."""
import dataclasses
import re
import signal

# A suite's line, and a line of the Test Anything Protocol (TAP). cmocka 1.1.5 prints a skipped test
# as "not ok N # SKIP name", others as "ok N - name # SKIP why".
SUITE_LINE = re.compile(r"^(ok|FAIL|skip) +(\S.*)$")
TAP_LINE = re.compile(r"^(not )?ok (\d+)(?: - (.*?))?(?: *# SKIP *(.*))?$")
TAP_PLAN = re.compile(r"^1\.\.(\d+)(?: *# SKIP *(.*))?$", re.M)
TAP_DETAIL = re.compile(r"^#(?! skip: )|: error: |^Test (setup|teardown) failed")
TAP_REASON = "# skip: "  # tests/lib/skip.h
MESONS_OWN = "(test program exited with"
NO_REASON = "no reason given"
SHOWN_LINES = 120  # of one failure
LAST_LINES = 30  # of a program that gave no result


@dataclasses.dataclass
class Failure:
    """A test that failed, what it printed, and where its whole log is."""
    name: str
    details: list
    log: str = ""


@dataclasses.dataclass
class Tally:
    """The results of some tests. A skip is (where, test, why)."""
    passed: int = 0
    failures: list = dataclasses.field(default_factory=list)
    skips: list = dataclasses.field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips

    def count(self):
        return self.passed + len(self.failures) + len(self.skips)

    def fail(self, name, lines):
        self.failures.append(Failure(name, lines))

    def __str__(self):
        return f"{self.passed} passed, {len(self.failures)} failed, {len(self.skips)} skipped"


def ending(status):
    """How a program ended, in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


def suite_result(line):
    """(word, test, why) of a suite's line, None if it is no result."""
    match = SUITE_LINE.match(line)
    if not match:
        return None
    test, _, why = match.group(2).partition(": ")
    return match.group(1), test, why


def tap_result(line):
    """The same of a line of TAP."""
    match = TAP_LINE.match(line)
    if not match:
        return None
    bad, number, name, skipped = match.groups()
    if skipped is not None:
        return ("skip", name, skipped) if name else ("skip", skipped or number, "")
    test, _, why = (name or number).partition(" ")
    return ("FAIL" if bad else "ok"), test, why


def read(where, lines, result, follows):
    """The tally of a log. A failure's details are what stands between the result before it and
    it, and the lines below it that `follows` takes for its own."""
    tally, before, failure = Tally(), [], None
    for line in lines:
        found = result(line)
        if not found:
            if failure and not follows(line):
                failure = None
            (failure.details if failure else before).append(line)
            continue
        word, test, why = found
        failure = None
        if word == "ok":
            tally.passed += 1
        elif word == "skip":
            said = [b[len(TAP_REASON):] for b in before if b.startswith(TAP_REASON)]
            tally.skips.append((where, test, why or (said[-1] if said else NO_REASON)))
        else:
            failure = Failure(f"{where}: {test}" + (f": {why}" if why else ""), before)
            tally.failures.append(failure)
        before = []
    return tally


def read_suite(where, text, status, limit_s):
    """The tally of a suite's log; status is None if it did not end in time."""
    lines = text.splitlines()
    tally = read(where, lines, suite_result, lambda line: True)
    if status is None:
        tally.fail(f"{where}: did not end within {limit_s} s", lines[-LAST_LINES:])
    elif status < 0 or (status and not tally.failures):
        tally.fail(f"{where}: {ending(status)}", lines[-LAST_LINES:])
    elif not tally.count():
        tally.fail(f"{where}: ran no test", lines[-LAST_LINES:])
    return tally


def read_program(where, entry):
    """The tally of one test program in Meson's record: by TAP; without any, it is one test."""
    out, status = entry.get("stdout") or "", entry["returncode"]
    lines = out.splitlines()
    errors = [line for line in (entry.get("stderr") or "").splitlines()
              if line and not line.startswith(MESONS_OWN)]
    tally = read(where, lines, tap_result, TAP_DETAIL.search)
    plan = TAP_PLAN.search(out)
    planned = int(plan.group(1)) if plan else tally.count()
    if tally.failures and errors:
        tally.failures[-1].details += ["stderr:"] + errors[-LAST_LINES:]
    if entry["result"] == "TIMEOUT":
        tally.fail(f"{where}: did not end in time", (lines + errors)[-LAST_LINES:])
    elif status < 0 or planned != tally.count():
        tally.fail(f"{where}: {ending(status)} after {tally.count()} of {planned} tests",
                   (lines + errors)[-LAST_LINES:])
    elif not tally.count() and (plan or entry["result"] == "SKIP"):
        tally.skips.append((where, "all", plan and plan.group(2) or NO_REASON))
    elif status and not tally.failures:
        tally.fail(f"{where}: {ending(status)}", (lines + errors)[-LAST_LINES:])
    elif not tally.count():
        tally.passed += 1
    return tally


def shown(lines):
    """Lines to be shown, the middle left out if they are too many."""
    if len(lines) <= SHOWN_LINES:
        return lines
    half = SHOWN_LINES // 2
    return lines[:half] + [f"... {len(lines) - 2 * half} lines ..."] + lines[-half:]


def grouped(skips, named):
    """Each reason once, the most frequent first: "REASON: N (WHERE: TEST, TEST; WHERE: TEST)". No
    more than `named` tests of each are named."""
    reasons = {}
    for where, test, why in skips:
        reasons.setdefault(why, []).append((where, test))
    rows = []
    for why, tests in reasons.items():
        places = {}
        for where, test in tests[:named]:
            places.setdefault(where, []).append(test)
        names = [f"{where}: {', '.join(found)}" for where, found in places.items()]
        if len(tests) > named:
            names.append(f"and {len(tests) - named} more")
        rows.append((-len(tests), f"{why}: {len(tests)} ({'; '.join(names)})"))
    return [row for _, row in sorted(rows)]
