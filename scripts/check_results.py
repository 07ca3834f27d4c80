# SPDX-License-Identifier: BSD-2-Clause
"""What the output of tests says: which passed, which failed and how, which were skipped and why."""
import dataclasses
import re
import signal

# A result in the Test Anything Protocol (TAP). cmocka 1.1.5 prints a skipped test as "not ok N #
# SKIP name", others as "ok N - name # SKIP why"; suites leave out the number.
RESULT = re.compile(r"^(not )?ok\b ?(\d*)(?: ?- (.*?))?(?: *# SKIP *(.*))?$")
PLAN = re.compile(r"^1\.\.(\d+)(?: *# SKIP *(.*))?$", re.M)
DETAIL = re.compile(r"^#(?! skip: )|: error: |^Test (setup|teardown) failed")
REASON = "# skip: "  # tests/lib/skip.h
NO_REASON = "no reason given"
SKIP_STATUS = 77  # of a program that has no results; Meson's
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
    unsteady: list = dataclasses.field(default_factory=list)  # failures that did not come again

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


def read_results(where, lines):
    """The tally of a program's lines. A failure's details are what stands between the result before
    it and it, and the comments below it."""
    tally, before, failure = Tally(), [], None
    for line in lines:
        found = RESULT.match(line)
        if not found:
            if failure and not DETAIL.search(line):
                failure = None
            (failure.details if failure else before).append(line)
            continue
        bad, number, name, skipped = found.groups()
        failure = None
        if skipped is not None:
            said = [b[len(REASON):] for b in before if b.startswith(REASON)]
            tally.skips.append((where, name or skipped or number,
                                name and skipped or (said[-1] if said else NO_REASON)))
        elif bad:
            failure = Failure(f"{where}: {name or number}", before)
            tally.failures.append(failure)
        else:
            tally.passed += 1
        before = []
    return tally


def read_program(where, out, err, run):
    """The tally of one test program that has run (Run of check.py): by TAP, if it speaks that; else
    it is one test."""
    lines, errors = out.splitlines(), [line for line in err.splitlines() if line]
    tally = read_results(where, lines if run.tap else [])
    plans = PLAN.findall(out) if run.tap else []
    planned = sum(int(n) for n, _ in plans) if plans else tally.count()
    last = (lines + errors)[-LAST_LINES:]
    if tally.failures and errors:
        tally.failures[-1].details += ["stderr:"] + errors[-LAST_LINES:]
    if run.status is None:
        tally.fail(f"{where}: did not end within {run.limit_s} s", last)
    elif run.status < 0 or planned != tally.count():
        after = f" after {tally.count()} of {planned} tests" if plans else ""
        tally.fail(f"{where}: {ending(run.status)}{after}", last)
    elif not tally.count() and (plans or not run.tap and run.status == SKIP_STATUS):
        tally.skips.append((where, "all", plans and plans[0][1] or NO_REASON))
    elif run.status and not tally.failures:
        tally.fail(f"{where}: {ending(run.status)}", last)
    elif not tally.count() and run.tap:
        tally.fail(f"{where}: ran no test", last)
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
