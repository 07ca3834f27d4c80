#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs one module of rdma-core's pyverbs tests and says for each test what became of it.

  pyverbs_run.py FOLDER MODULE PREFIX REASONS [--dev DEV --port PORT --gid N]

FOLDER holds the package `tests`. Prints TAP, the names after PREFIX.
REASONS is a regular expression for "NAME: WHY": a test that skips for any other reason fails;
empty: skip at will.
VB_LEFT_OUT in the environment has lines NAME=WHY: tests that are not run, but skip for that reason.
Each name is first said to stderr, so that one sees in which test a crash or a hang was.
"""
import os
import re
import sys
import unittest

import tap

FOLDER, MODULE, PREFIX, REASONS = sys.argv[1:5]
# The tests' own parser of arguments looks at the rest; they import each other by either name.
sys.argv[1:] = sys.argv[5:]
sys.path[:0] = [FOLDER, os.path.join(FOLDER, "tests")]


class Result(unittest.TestResult):
    """One line for each test; a test that fails in parts has several reasons, of which one says."""

    def __init__(self):
        super().__init__()
        self.why = {}

    @staticmethod
    def name(test):
        return f"{PREFIX}{MODULE}.{test.id().split('.')[-1]}"

    def startTest(self, test):
        super().startTest(test)
        print("running", self.name(test), file=sys.stderr, flush=True)

    def note(self, test, say, *why):
        self.why.setdefault(test.id(), (say, *why))
        if say == tap.fail:
            self.why[test.id()] = (say, *why)

    def stopTest(self, test):
        super().stopTest(test)
        say, *why = self.why.get(test.id(), (tap.fail, "did not say how it ended"))
        say(self.name(test), *why)

    def addSuccess(self, test):
        self.note(test, tap.ok)

    def addSkip(self, test, reason):
        reason = reason.splitlines()[0]
        allowed = not REASONS or re.search(REASONS, f"{test.id().split('.')[-1]}: {reason}")
        self.note(test, tap.skip if allowed else tap.fail, reason)

    def addFailure(self, test, err):
        print(self._exc_info_to_string(err, test), file=sys.stderr)
        self.note(test, tap.fail, f"{err[0].__name__}: {str(err[1]).splitlines()[0:1]}")

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err:
            self.addFailure(test, err)


def leave_out(suite, name, why):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            leave_out(test, name, why)
        elif test.id().endswith("." + name):
            setattr(test, name, unittest.skip(why)(lambda: None))


def main():
    from args_parser import parser
    parser.parse_args()
    suite = unittest.defaultTestLoader.loadTestsFromName(f"tests.{MODULE}")
    address = os.environ.get("VB_ADDRESS")
    if address:
        # They look it up by the interface that sysfs has beneath the device.
        from tests import base
        base.RDMATestCase._get_ip_mac = lambda self, dev, port, idx: self.args.append(
            [dev, port, idx, address, "02:00:00:00:00:00"])
    for line in os.environ.get("VB_LEFT_OUT", "").splitlines():
        left_out, _, why = line.partition("=")
        leave_out(suite, left_out, why)
    result = Result()
    suite.run(result)
    if not result.testsRun:
        tap.fail(PREFIX + MODULE, "no test was found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
