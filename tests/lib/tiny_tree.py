# SPDX-License-Identifier: BSD-2-Clause
"""A source tree whose suites are a few lines each, around the Makefile, .ci/run and runner that are
to be tested."""
import os
import pty
import shutil
import subprocess
import sys
import tempfile

import tap

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
REAL = ["Makefile", ".ci/run", "scripts/check.sh", "scripts/check.py", "scripts/check_progress.py",
        "scripts/check_results.py"]
SUITES = ["tidy", "abi", "runner", "sim", "fuzz", "check", "clients", "registries", "bare"]
LIMIT_S = 120
EVERY_S = 0.3
TEST = "test('{}', find_program('{}'), suite: [{}], protocol: 'tap', timeout: {}, priority: {})\n"
# Ends once the runner has said N lines of progress that match; so no clock decides what it says.
WAIT_FOR_PROGRESS = r"""
for i in $(seq 1000); do
	[ "$(grep -c '^\.\.\. .*%s' "$TINY_OUTPUT")" -lt %d ] || break
	sleep 0.1
done
"""


def wait_for_progress(pattern, lines=2):
    return WAIT_FOR_PROGRESS % (pattern, lines)


class Output(str):
    """Everything a command printed, stdout and stderr together; and its exit status."""
    status = 0

    @property
    def last(self):
        return self.splitlines()[-1]

    def progress(self):
        return [line for line in self.splitlines() if line.startswith("... ")]

    def after(self, mark):
        """What stands below the line `mark`."""
        return self.partition(f"\n{mark}\n")[2]


class Tree:
    """Each suite has one test, which passes, unless it is given others. It exists inside `with`."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="tiny-tree.")
        self.tests = {}
        for path in REAL:
            os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, path), self.path(path))
        for script in ("scripts/deps.sh", "scripts/kernel.sh"):
            self.script(script, "")
        for suite in SUITES:
            self.script(f"tests/{suite}/passes.sh", "echo ok - alone")
        self.meson({"passes": "echo 1..1; echo ok 1 - alone"})
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf8") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), encoding="utf8") as file:
            return file.read()

    def script(self, name, body, limit_s=LIMIT_S):
        """One of tests/FOLDER is of the suite FOLDER."""
        self.write(name, "#!/bin/bash\n" + body + "\n")
        os.chmod(self.path(name), 0o755)
        *folders, file = name.split("/")
        if folders[:1] == ["tests"]:
            self.tests[name] = TEST.format(
                file.partition(".")[0], name, str([*folders[1:], "script"])[1:-1], limit_s,
                len(SUITES) - SUITES.index(folders[1]))

    def meson(self, programs, more=""):
        """The unit tests: name -> what the program does. Without `more` there is no compiler."""
        language = ", 'c'" if "executable" in more else ""
        self.build = f"project('tiny'{language})\n{more}\n"
        for name, body in programs.items():
            self.script(f"unit/{name}.sh", body)
            self.build += TEST.format(name, f"unit/{name}.sh", "'unit', 's'",
                                      1 if name == "hang" else LIMIT_S, 0)

    def environment(self):
        self.write("meson.build", self.build + "".join(self.tests.values()))
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("VB_", "MAKE", "MFLAGS", "BUILD", "MESON", "JOBS"))}
        env.update(VB_CHECK_EVERY_S=str(EVERY_S), TINY_OUTPUT=self.path("output"), JOBS="1")
        return env

    def run(self, *command, **env):
        with open(self.path("output"), "w", encoding="utf8") as file:
            status = subprocess.run(command, cwd=self.folder, stdout=file, timeout=LIMIT_S,
                                    stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                    env={**self.environment(), **env}, check=False).returncode
        output = Output(self.read("output"))
        output.status = status
        return output

    def run_on_terminal(self, *command):
        """As run, but to a terminal; what it says is also in $TINY_OUTPUT."""
        master, slave = pty.openpty()
        process = subprocess.Popen(command, cwd=self.folder, stdin=slave, stdout=slave,
                                   stderr=slave, env=self.environment())
        os.close(slave)
        said = b""
        with open(self.path("output"), "wb", buffering=0) as file:
            while True:
                try:
                    part = os.read(master, 4096)
                except OSError:
                    break
                said += part
                file.write(part.replace(b"\r", b"\n"))
        os.close(master)
        output = Output(said.decode())
        output.status = process.wait(LIMIT_S)
        return output


class Report:
    """Says a line for each test."""

    def __init__(self):
        self.shown = None

    def judge(self, name, why, output):
        # The same output is shown once.
        tap.judge(name, why, "" if output is self.shown else output)
        self.shown = output if why else self.shown

    def expect(self, name, holds, output=""):
        self.judge(name, "" if holds else "it is not so", output)

    def equal(self, name, found, wanted, output=""):
        self.judge(name, "" if found == wanted else f"{found!r} and not {wanted!r}", output)

    def run(self, names):
        """Runs all functions test_... of a module, and exits."""
        for name, test in sorted(names.items()):
            if name.startswith("test_"):
                test()
        sys.exit(tap.end())
