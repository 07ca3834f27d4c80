#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Whatever happens, the count is the last line of a check, and the exit status says the rest."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tiny_tree import SUITES, Report, Tree

report = Report()
PASSES = f"{len(SUITES) + 1} passed, 0 failed, 0 skipped"
STOPPED = "0 passed, 1 failed, 0 skipped"


def ends(name, output, last, failed):
    """Make's own exit status is 1 in question mode, and 2 elsewhere."""
    report.equal(f"{name}: the last line", output.last, last, output)
    report.expect(f"{name}: the exit status", (output.status != 0) == failed, output.status)


def test_targets():
    """All targets that check, with one suite that passes and with one that does not."""
    more = PASSES.replace(f"{len(SUITES) + 1} passed", f"{len(SUITES) + 2} passed")
    rows = {"check": PASSES, "check-long": more, "tidy": "1 passed, 0 failed, 0 skipped",
            "clients": "1 passed, 0 failed, 0 skipped", "asan": "4 passed, 0 failed, 0 skipped",
            "tsan": "3 passed, 0 failed, 0 skipped"}
    with Tree() as tree:
        # A compiler, for Meson to know b_sanitize.
        tree.meson({"passes": "echo 1..1; echo ok 1 - alone"}, "executable('it', 'it.c')")
        tree.write("it.c", "int main(void) { return 0; }\n")
        tree.script("tests/clients/long/passes.sh", "echo ok - long")
        for target, last in rows.items():
            ends(f"make {target}", tree.run("make", target), last, False)
        report.equal("a long suite has a log of its own", [
            tree.read(f"build/check/clients-{name}.log") for name in ("passes", "long-passes")],
            ["ok - alone\n", "ok - long\n"])
        for suite in ("tidy", "clients"):
            tree.script(f"tests/{suite}/fails.sh", "echo not ok - me; exit 1")
        for target, last in rows.items():
            count = last.replace("0 failed", f"{2 if 'check' in target else 1} failed")
            ends(f"make {target}, which fails", tree.run("make", target), count, True)
        passed = "1 passed, 1 failed, 0 skipped"
        ends("make -j4 -k", tree.run("make", "-j4", "-k", "tidy"), passed, True)
        ends("make BUILD=", tree.run("make", "--no-print-directory", "tidy", "BUILD=nn"), passed,
             True)
        report.expect("make BUILD=: is used", os.path.exists(tree.path("nn/check/tidy-fails.log")))
        dry = tree.run("make", "-n", "clean", "check")
        report.expect("make -n runs nothing", "passed" not in dry and "scripts/check.sh" in dry
                      and dry.status == 0, dry)


def test_ci():
    with Tree() as tree:
        ends(".ci/run", tree.run(".ci/run"), PASSES, False)
        tree.script("tests/clients/fails.sh", "echo not ok - me; exit 1")
        failed = PASSES.replace("0 failed", "1 failed")
        ends(".ci/run, which fails", tree.run(".ci/run"), failed, True)
        # A machine without make: a folder of all programs but that.
        os.mkdir(tree.path("bin"))
        for folder in os.environ["PATH"].split(":")[::-1]:
            for name in os.listdir(folder) if os.path.isdir(folder) else []:
                link = tree.path("bin/" + name)
                if name not in ("make", "gmake") and not os.path.lexists(link):
                    os.symlink(os.path.join(folder, name), link)
        ends(".ci/run without make", tree.run(".ci/run", PATH=tree.path("bin")), failed, True)


def test_stops():
    """What keeps the tests from running at all."""
    with Tree() as tree:
        tree.script("scripts/deps.sh", "echo deps.sh: no lamp; exit 7")
        output = tree.run("make", "check")
        ends("nothing can be installed", output, STOPPED, True)
        report.expect("nothing can be installed: says so",
                      "deps.sh: no lamp\ncheck: cannot install what the tests need (exit status 7; "
                      "see build/check/install.log)\n" in output, output)
        tree.script("scripts/deps.sh", "echo deps.sh: not a Debian system; echo other words")
        output = tree.run("make", "check")
        ends("deps.sh has a word to say", output, PASSES, False)
        report.expect("deps.sh has a word to say: it is shown",
                      "deps.sh: not a Debian system" in output.splitlines(), output)
    with Tree() as tree:
        tree.build = "project('tiny'\n"
        output = tree.run("make", "check")
        ends("meson setup fails", output, STOPPED, True)
        report.expect("meson setup fails: says so", "FAIL meson setup: exit status 1\n"
                      "     see build/check/meson-setup.log\n" in output, output)
    with Tree() as tree:
        tree.meson({}, "executable('it', 'it.c')")
        tree.write("it.c", "no C\n")
        output = tree.run("make", "check")
        ends("the build fails", output, STOPPED, True)
        report.expect("the build fails: the compiler says why", "error:" in output, output)
        report.expect("the build fails: says so", "\nFAIL build: exit status 1\n" in output, output)
    with Tree() as tree:
        tree.script("scripts/kernel.sh", "echo no kernel; exit 1")
        output = tree.run("make", "check")
        ends("no kernel", output, PASSES, False)
        report.expect("no kernel: says so", "\ncheck: no kernel for a guest (kernel: exit status 1;"
                      in output, output)


def test_ends_of_the_runner():
    with Tree() as tree:
        tree.script("tests/tidy/passes.sh", "kill -KILL $PPID")
        output = tree.run("make", "check")
        ends("the runner is killed", output, STOPPED, True)
        report.expect("the runner is killed: says so",
                      "\ncheck: the runner ended with exit status 137\n" in output, output)
        tree.script("tests/tidy/passes.sh", "echo ok - one; kill -TERM $PPID; sleep 100")
        output = tree.run("make", "check")
        ends("the runner is ended", output, STOPPED, True)
        report.expect("the runner is ended: says so",
                      "\nFAIL check: interrupted in tidy/passes\n" in output, output)
        del tree.tests["tests/abi/passes.sh"]
        output = tree.run("make", "check")
        ends("a suite is gone", output, STOPPED, True)
        report.expect("a suite is gone: says so",
                      "\nFAIL abi: there is no test in it\n" in output, output)


def test_unknown_suite():
    with Tree() as tree:
        tree.script("scripts/deps.sh", "touch installed")
        output = tree.run("scripts/check.sh", "tidy", "tydi")
        ends("an unknown suite", output, STOPPED, True)
        suites = sorted(os.listdir(tree.path("tests")) + ["unit"])
        named = output.partition("(there are: ")[2].partition(")")[0].split()
        report.expect("an unknown suite: is named", "check: no such suite: tydi (" in output,
                      output)
        report.equal("an unknown suite: all that exist are named", sorted(named), suites, output)
        report.expect("an unknown suite: nothing is installed",
                      not os.path.exists(tree.path("installed")))


if __name__ == "__main__":
    report.run(globals())
