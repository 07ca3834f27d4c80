#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a check shows: of failures what belongs to them and nothing else, skips by their reasons,
and meanwhile, how far it is."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from tiny_tree import EVERY_S, ROOT, Report, Tree, wait_for_progress

report = Report()

MIXED = """
echo chatter of one
echo ok - one
echo before two
echo "not ok - two: why two"
echo "# --- client"
echo "#     words of two"
echo ok - three
echo "ok - four # SKIP no lamp: none at all"
for i in $(seq 400); do echo "ok - many $i"; done
echo chatter of many
exit 1
"""
CRASH = "echo ok - one; for i in $(seq 40); do echo word $i; done; kill -SEGV $$"
# As cmocka 1.1.5 has it, and as others do.
TAP = """
echo 1..7
echo chatter of good
echo "ok 1 - good"
echo "# skip: no lamp: none at all"
echo "not ok 2 # SKIP old_skip"
echo "ok 3 - new_skip # SKIP no lamp: none at all"
echo "# skip: no oil"
echo "ok 4 # SKIP third_skip"
echo before bad
echo "not ok 5 - bad"
echo "# 0x3 != 0x4"
echo "# a.c:10: error: Failure!"
echo chatter of last
echo "ok 6 - last"
echo "not ok 7 - unready Could not run test: lamp"
echo "a.c:12: error: Failure!Test setup failed"
echo words on stderr >&2
exit 1
"""


def block(output, name):
    """The lines shown of a failure; none if it is not there."""
    lines = output.splitlines()
    if "--- " + name not in lines:
        return []
    start = lines.index("--- " + name) + 1
    end = next(i for i, line in enumerate(lines[start:], start) if not line.startswith("    "))
    return [line[4:] for line in lines[start:end]]


def test_failures():
    with Tree() as tree:
        tree.script("tests/clients/crash.sh", CRASH)
        tree.script("tests/clients/hang.sh", "echo word; sleep 100", limit_s=1)
        tree.script("tests/clients/late.sh", "echo not ok - early: so; echo ok - b; kill -ABRT $$")
        tree.script("tests/clients/mixed.sh", MIXED)
        tree.script("tests/clients/none.sh", "echo just words")
        tree.script("tests/clients/status.sh", "echo ok - one; exit 3")
        tree.meson({"crash": "echo 1..2; echo ok 1 - one; echo near >&2; kill -SEGV $$",
                    "hang": "echo 1..1; sleep 100",
                    "few": "echo 1..3; echo ok 1 - one",
                    "status": "echo 1..1; echo ok 1 - one; echo bad end; exit 3",
                    "tap": TAP})
        output = tree.run("make", "check")
    last = [f"word {i}" for i in range(11, 41)]
    shown = {
        "clients/crash: ended by SIGSEGV": last,
        "clients/hang: did not end within 1 s": ["word"],
        "clients/late: early: so": [],
        "clients/late: ended by SIGABRT": ["not ok - early: so", "ok - b"],
        "clients/mixed: two: why two": ["before two", "# --- client", "#     words of two"],
        "clients/none: ran no test": ["just words"],
        "clients/status: exit status 3": ["ok - one"],
        "unit/s/crash: ended by SIGSEGV after 1 of 2 tests": ["1..2", "ok 1 - one", "near"],
        "unit/s/few: exit status 0 after 1 of 3 tests": ["1..3", "ok 1 - one"],
        "unit/s/hang: did not end within 1 s": ["1..1"],
        "unit/s/status: exit status 3": ["1..1", "ok 1 - one", "bad end"],
        "unit/s/tap: bad": ["before bad", "# 0x3 != 0x4", "# a.c:10: error: Failure!"],
        "unit/s/tap: unready Could not run test: lamp": [
            "a.c:12: error: Failure!Test setup failed", "stderr:", "words on stderr"],
    }
    for name, lines in shown.items():
        report.equal(f"shown: {name}", block(output, name), lines, output)
    report.expect("no passes are shown", "ok many" not in output, output)
    report.expect("no chatter is shown", "chatter" not in output, output)

    alone = output.after("failed:").splitlines()
    named = [line[5:] for line in alone if line.startswith("FAIL ")]
    report.equal("all failures are listed again", sorted(named), sorted(shown), output)
    report.expect("nothing but failures, logs and first lines stands there", all(
        line.startswith(("FAIL ", "     see build/check/", "     | ")) for line in alone[:-1]),
        output)
    mixed = alone[alone.index("FAIL clients/mixed: two: why two"):]
    report.equal("each with its first lines", mixed[2:5], [
        "     | before two", "     | # --- client", "     | #     words of two"], output)
    report.equal("each with its log", alone.count("     see build/check/clients-mixed.log"), 1)
    report.equal("the count", alone[-1], f"419 passed, {len(named)} failed, 4 skipped", output)


def test_unsteady():
    """What fails runs again, alone, unless too much fails; a suite that shares nothing does not."""
    once = """
if [ -e %s ]; then echo ok - late; echo ok - more; exit; fi
touch %s; echo "not ok - late: no sun"; exit 1
"""
    with Tree() as tree:
        tree.script("tests/clients/once.sh", once % ("a", "a"))
        tree.script("tests/clients/twice.sh", "echo not ok - never; exit 1")
        output = tree.run("make", "check")
        first = tree.read("build/check/clients-once.first.log")
    unsteady, _, failed = output.after(
        "unsteady, passed when run again, alone:").partition("\n\nfailed:\n")
    report.equal("unsteady: it is named, with its first log", unsteady.splitlines(), [
        "ONCE clients/once: late: no sun", "     see build/check/clients-once.first.log"], output)
    report.equal("unsteady: that log is kept", first, "not ok - late: no sun\n")
    report.equal("unsteady: what fails twice has failed", failed.splitlines(), [
        "FAIL clients/twice: never", "     see build/check/clients-twice.log",
        "12 passed, 1 failed, 0 skipped"], output)
    with Tree() as tree:
        tree.script("tests/sim/once.sh", once % ("a", "a"))
        output = tree.run("make", "check")
        report.equal("unsteady: not a simulation", output.last, "10 passed, 1 failed, 0 skipped")
        for i in range(6):
            tree.script(f"tests/clients/once{i}.sh", once % (i, i))
        output = tree.run("make", "check")
    report.equal("unsteady: not where many fail", output.last, "12 passed, 6 failed, 0 skipped")


def test_skips():
    good_mixed = MIXED.replace("not ok - two", "ok - two").replace("exit 1", "")
    good_tap = TAP.replace("not ok 5", "ok 5").replace("not ok 7", "ok 7").replace("exit 1", "")
    with Tree() as tree:
        tree.script("tests/clients/mixed.sh", good_mixed)
        tree.script("tests/clients/bare.sh", "echo ok - all '# SKIP'")
        tree.script("tests/tidy/many.sh", 'for i in {1..6}; do echo "ok - t$i # SKIP no sun"; done')
        tree.meson({"tap": good_tap,
                    "whole": "echo '1..0 # SKIP no oil'"},
                   "test('seventy_seven', find_program('77.sh'), suite: 'unit')")
        tree.script("77.sh", "exit 77")
        output = tree.run("make", "check")
        whole = tree.read("build/check/skipped.txt")
    skipped = output.after("skipped (all names: build/check/skipped.txt):").splitlines()
    report.equal("a check that only skips succeeds", output.status, 0, output)
    report.expect("a skip is no failure", "FAIL" not in output and "not ok" not in output, output)
    report.equal("each reason once, with its tests", skipped[:-1], [
        "  no sun: 6 (tidy/many: t1, t2, t3, t4; and 2 more)",
        "  no lamp: none at all: 3 (clients/mixed: four; unit/s/tap: old_skip, new_skip)",
        "  no oil: 2 (unit/s/tap: third_skip; unit/s/whole: all)",
        "  no reason given: 2 (clients/bare: all; unit/seventy_seven: all)"], output)
    report.expect("a file has all of their names",
                  "no sun: 6 (tidy/many: t1, t2, t3, t4, t5, t6)\n" in whole, whole)
    report.equal("they are counted", output.last, "416 passed, 0 failed, 13 skipped", output)


def test_progress_in_a_log():
    """Silent phases: installation, build, a suite."""
    with Tree() as tree:
        tree.script("scripts/deps.sh", """
echo "deps.sh: installing one two three"
echo "0 upgraded, 3 newly installed, 0 to remove and 0 not upgraded."
echo "Get:1 somewhere one"; echo "Get:2 somewhere two"; echo "Unpacking one (1.0) ..."
""" + wait_for_progress("installing"))
        tree.meson({"quick": "echo 1..1; echo ok 1 - alone",
                    "slow": "echo 1..1" + wait_for_progress("unit/s/slow") + "echo ok 1 - slow"},
                   "custom_target('long', output: 'long', build_by_default: true, "
                   "command: [find_program('link.sh'), '@OUTPUT@'])")
        tree.script("link.sh", wait_for_progress("build") + 'touch "$1"')
        tree.script("tests/clients/silent.sh", wait_for_progress("clients/silent") + "echo ok - it")
        tree.script("tests/clients/some.sh", r"printf 'ok - one \033[1mbold\n'; echo words" +
                    wait_for_progress("clients/some") + "echo ok - late")
        output = tree.run("make", "check")
        again = tree.run("make", "clients")
    lines = "\n".join(output.progress())
    first = r"\| no program begun, time left not known before the first run$"
    for name, pattern in {
            "installation": r"installing, \d+ s: of 3 packages 2 fetched, 1 unpacked, 0 ready: "
                            r"Unpacking one \(1\.0\) \.\.\.$",
            "build": r"build, \d+ s: .* " + first,
            "a suite without results": r"clients/silent, \d+ s: no output yet \| 7 of 13 programs",
            "a suite's latest result": r"clients/some, \d+ s: results: 1, latest: "
                                       r"ok - one bold \| 8 of 13 programs done",
            "a unit test": r"unit/s/slow, \d+ s: 1\.\.1 \| 12 of 13"}.items():
        report.expect(f"in a log: {name}", re.search(r"^\.\.\. " + pattern, lines, re.M), output)
    report.expect("in a log: no carriage return, no escape",
                  "\r" not in output and "\x1b" not in output, repr(output))
    report.equal("in a log: the count is last", output.last, "14 passed, 0 failed, 0 skipped")
    report.expect("the next run estimates what is left", re.search(
        r"^\.\.\. clients/silent, .* \| 1 of 3 programs done, about \d+ s left$", again, re.M),
        again)


def test_progress_on_a_terminal():
    with Tree() as tree:
        tree.script("tests/tidy/silent.sh", wait_for_progress("tidy/silent") + "echo ok - late")
        try:
            output = tree.run_on_terminal("make", "tidy")
        except OSError as error:
            # As in a plain chroot, where nobody has mounted /dev/pts.
            tap.skip("on a terminal", f"no pseudo-terminal is to be had ({error})")
            return
    report.expect("on a terminal: one line changes", re.search(
        r"\r\.\.\. tidy/silent,[^\n]*\x1b\[K\r\.\.\. tidy/silent", output), repr(output))
    report.expect("on a terminal: it is gone before what stays",
                  "\r\x1b[Ktidy/silent  " in output, repr(output))
    report.equal("on a terminal: the count is last", output.last.replace("\x1b[K", ""),
                 "2 passed, 0 failed, 0 skipped", repr(output))


def test_programs_beside_each_other():
    """Each of two waits for the other; the first of three is the one that takes longest."""
    begun = 'touch begun-%s; until [ -e begun-%s ]; do sleep 0.1; done; echo ok - "$(ls begun-*)"'
    with Tree() as tree:
        tree.script("tests/clients/one.sh", begun % ("one", "two"))
        tree.script("tests/clients/two.sh", begun % ("two", "one"))
        tree.script("tests/bare/quick.sh", "echo ok - quick; ls begun-*")
        output = tree.run("make", "check", JOBS="2")
        late = tree.read("build/check/bare-quick.log")
    report.equal("two programs run beside each other", output.last,
                 "13 passed, 0 failed, 0 skipped", output)
    report.expect("the longest begin first", "begun-one\nbegun-two\n" in late, late)


def test_warnings():
    with Tree() as tree:
        tree.meson({}, "executable('it', 'it.c')")
        tree.write("it.c", "#warning no lamp\nint main(void) { return 0; }\n")
        output = tree.run("make", "tidy")
    report.expect("a compiler's warning is shown", re.search(
        r"^build +done .*\n    \S*it\.c:1:2: warning: #warning no lamp", output, re.M), output)


def test_intervals():
    """EVERY_S above is for these tests; what is the interval of others?"""
    with open(os.path.join(ROOT, "scripts/check.sh"), encoding="utf8") as file:
        shell = re.search(r"VB_CHECK_EVERY_S:=(\d+)", file.read()).group(1)
    with open(os.path.join(ROOT, "scripts/check_progress.py"), encoding="utf8") as file:
        python = re.search(r'"VB_CHECK_EVERY_S", "(\d+)"', file.read()).group(1)
    report.equal("both parts have the same interval", shell, python)
    report.expect("it is less than ten seconds", EVERY_S < int(shell) < 10, shell)


if __name__ == "__main__":
    report.run(globals())
