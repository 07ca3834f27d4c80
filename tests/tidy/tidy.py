#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The house rules of STYLE.md that a machine can check. One test per rule; each fault is named with
its file and line."""
import glob
import os
import re
import subprocess
import sys

import named
import pairs
import rooms
import services
import structs
import told

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BUILD = os.environ.get("VB_BUILD", os.path.join(ROOT, "build"))
COLUMNS, FILE_LINES, FUNCTION_LINES, TAB = 100, 800, 70, 8

# Folder -> what it may include. `run` joins nic, link and hub; only abi stands above it.
LAYERS = {
    "base": ["base"],
    "topology": ["base", "topology"],
    "wire": ["base", "wire"],
    "cm": ["base", "wire", "cm"],
    "engine": ["base", "wire", "engine"],
    "eth": ["base", "wire", "eth"],
    "script": ["base", "wire", "script"],
    "explain": ["base", "wire", "explain"],
    "nic": ["base", "topology", "wire", "eth", "engine", "nic"],
    "link": ["base", "link"],
    "capture": ["base", "link", "capture"],
    "hub": ["base", "hub"],
    "tape": ["base", "topology", "wire", "eth", "engine", "nic", "tape"],
    "run": ["base", "topology", "wire", "cm", "eth", "script", "engine", "nic", "link",
            "capture", "hub", "tape", "run"],
    "abi": ["base", "topology", "wire", "cm", "eth", "script", "engine", "nic", "link",
            "capture", "hub", "tape", "run", "abi"],
    "daemon": ["base", "wire", "cm", "link", "hub", "nic", "run", "daemon"],
    "view": ["base", "topology", "hub", "nic", "run", "view"],
    "cli": ["base", "topology", "wire", "cm", "script", "link", "capture", "hub", "nic", "tape",
            "run", "view", "explain", "cli"],
}
LIBRARY = ["base", "topology", "wire", "cm", "eth", "script", "engine", "nic", "link", "capture",
           "hub", "tape", "run", "abi"]
# <infiniband/verbs.h> is vocabulary there, and only abi may call it. The command is one more
# program that uses the library.
SPEAKS_VERBS = ["engine", "nic", "tape", "run", "view", "abi", "cli"]

BANNED = re.compile(r"\b(strcpy|strcat|sprintf|vsprintf|gets|tmpnam|mktemp)\s*\(")
# The library lives in other people's processes.
BANNED_IN_LIBRARY = re.compile(r"(?<![\w.>])(system|popen|abort|exit|atexit|signal|perror|printf|"
                               r"puts|sleep|usleep)\s*\(")
UNFINISHED = re.compile(r"\b(FIXME|TODO|XXX|HACK)\b")

# What the deterministic core may take from outside: memory, text composed in memory, CRC, and the
# guard around copies from application memory. No clock, socket, file, environment, randomness,
# thread or output.
CORE = ["base", "topology", "wire", "cm", "eth", "script", "engine", "nic"]
CORE_MAY_USE = {
    "memcpy", "memmove", "memset", "memcmp", "strlen", "strcmp", "strncmp", "strnlen", "qsort",
    "memchr", "strrchr", "inet_pton",
    "malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc",
    "crc32_gzip_refl", "crc32_gzip_refl_copy",
    "_setjmp", "longjmp", "_longjmp", "__longjmp_chk",
    "__stack_chk_fail", "__tls_get_addr", "_GLOBAL_OFFSET_TABLE_",
    "__memcpy_chk", "__memmove_chk", "__memset_chk",
    "snprintf", "vsnprintf", "__snprintf_chk", "__vsnprintf_chk", "inet_ntop",
}
# A thread that has to wait for a lock, or for a fork, sleeps in the kernel. The simulator has one
# thread, so nobody there ever does.
FILE_MAY_USE = {"base_lock.c.o": {"syscall"}, "base_loose.c.o": {"syscall"}}
TOOLCHAIN = re.compile(r"^(__asan_|__ubsan_|__tsan_|__sanitizer_|__gcov|__llvm|__sancov)")


class Source:
    """A text file of the project: its lines as they are, and as code without words."""

    def __init__(self, path):
        self.path = path
        with open(os.path.join(ROOT, path), encoding="utf8", errors="replace") as file:
            self.text = file.read()
        self.lines = self.text.split("\n")
        parts = path.split("/")
        self.is_c = path.endswith((".c", ".h"))
        self.folder = parts[1] if parts[0] == "src" and len(parts) > 2 else None
        self.unit = parts[2] if parts[:2] == ["tests", "unit"] and len(parts) > 3 else None

    def code(self):
        """C lines with comments and literals blanked, so that words are not taken for calls."""
        def blank(match):
            return re.sub(r"[^\n]", " ", match.group(0))
        pattern = r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
        return re.sub(pattern, blank, self.text, flags=re.S).split("\n")


def sources():
    """Everything git knows or could add; a plain copy of the tree is walked."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    paths = listed.stdout.split("\n") if listed.returncode == 0 else [
        os.path.relpath(os.path.join(folder, name), ROOT)
        for folder, _, names in os.walk(ROOT) for name in names]
    wanted = re.compile(r"\.(c|h|def|map|py|sh|build)$|(^|/)(Makefile|meson_options\.txt|run)$")
    return [Source(p) for p in sorted(paths)
            if wanted.search(p) and not p.startswith("build") and os.path.exists(f"{ROOT}/{p}")]


def rule_spdx(files):
    """Every file says its licence on top."""
    return [f.path for f in files
            if not any("SPDX-License-Identifier: BSD-2-Clause" in line for line in f.lines[:2])]


def rule_columns(files):
    """Lines fit 100 columns, tabs counting 8."""
    return [f"{f.path}:{n}" for f in files for n, line in enumerate(f.lines, 1)
            if len(line.expandtabs(TAB)) > COLUMNS]


def rule_blanks(files):
    """No blanks at line ends, and one newline at the end."""
    faults = [f"{f.path}:{n}" for f in files for n, line in enumerate(f.lines, 1)
              if line != line.rstrip()]
    return faults + [f.path + ": end" for f in files
                     if not f.text.endswith("\n") or f.text.endswith("\n\n")]


def rule_file_length(files):
    """Files have at most 800 lines; a .def or .map is a table."""
    return [f"{f.path}: {len(f.lines) - 1}" for f in files
            if len(f.lines) - 1 > FILE_LINES and not f.path.endswith((".def", ".map"))]


def rule_function_length(files):
    """Functions have at most 70 lines. A body's brace stands at column 0; a table's does not."""
    faults = []
    for f in files:
        start = None
        for n, line in enumerate(f.lines, 1):
            if f.is_c and line == "{":
                start = n
            elif start and line.startswith("}"):
                if n - start - 1 > FUNCTION_LINES:
                    faults.append(f"{f.path}:{start}: {n - start - 1}")
                start = None
    return faults


def rule_layers(files):
    """A folder includes only what stands left of it; a unit test what its subject may."""
    faults = []
    for f in files:
        may = LAYERS.get(f.folder or f.unit)
        if not f.is_c or may is None:
            continue
        for n, line in enumerate(f.lines, 1):
            found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not found:
                continue
            folder = found.group(1).split("/")[0] if "/" in found.group(1) else ""
            if f.folder and folder not in may:
                faults.append(f"{f.path}:{n}: {found.group(1)}")
            elif f.unit and folder in LAYERS and folder not in may:
                faults.append(f"{f.path}:{n}: {found.group(1)}")
    return faults


def rule_rooms(files):
    """A room of nic includes only what stands left of it (tests/tidy/rooms.py)."""
    return rooms.faults_of_order(files)


def rule_services(files):
    """Nothing outside the services asks of what type a QP is (tests/tidy/services.py)."""
    return services.faults(files)


def rule_test_names(files):
    """A test of nic carries its source's name."""
    return rooms.faults_of_tests(files)


def rule_room_size(files):
    """A room has at most 40 files and 5,000 lines."""
    return rooms.faults_of_size(files)


def rule_pairs(files):
    """A header declares what the .c file beside it defines (tests/tidy/pairs.py)."""
    return pairs.faults_of_pairs(files)


def rule_structs(files):
    """A structure has at most 25 members; one within it counts once (tests/tidy/structs.py)."""
    return structs.faults(files)


def rule_vocabulary(files):
    """The verbs header is known from engine upwards; the connection manager's to abi alone."""
    faults = []
    for f in files:
        for n, line in enumerate(f.lines, 1):
            if not (f.folder and f.is_c):
                continue
            if re.match(r"\s*#\s*include\s+<infiniband/", line) and f.folder not in SPEAKS_VERBS:
                faults.append(f"{f.path}:{n}")
            if re.match(r"\s*#\s*include\s+<rdma/", line) and f.folder != "abi":
                faults.append(f"{f.path}:{n}")
    return faults


def rule_verbs_calls(files):
    """Only abi defines or calls functions of the verbs."""
    return [f"{f.path}:{n}" for f in files if f.folder and f.folder != "abi" and f.is_c
            for n, line in enumerate(f.code(), 1)
            if re.search(r"\b(ibv_|mlx5dv_|rdma_)\w+\s*\(", line)]


def rule_banned(files):
    """No unbounded string calls; and in the library no exit, no output, no sleep."""
    faults = []
    for f in files:
        if not (f.is_c and f.path.startswith("src/")):
            continue
        for n, line in enumerate(f.code(), 1):
            if BANNED.search(line):
                faults.append(f"{f.path}:{n}")
            elif f.folder in LIBRARY and BANNED_IN_LIBRARY.search(line):
                faults.append(f"{f.path}:{n}")
    return faults


def rule_forks(files):
    """What is in memory for longer than a call is closed so that a fork amid it does no harm."""
    return [f"{f.path}:{n}" for f in files
            if f.is_c and f.folder in ("link", "run", "hub", "capture")
            for n, line in enumerate(f.code(), 1) if re.search(r"\bclose\(\w+->", line)]


def rule_finished(files):
    """No notes to oneself: an issue is the place."""
    return [f"{f.path}:{n}" for f in files if f.path != "tests/tidy/tidy.py"
            for n, line in enumerate(f.lines, 1) if UNFINISHED.search(line)]


def rule_skips(files):
    """A test that is skipped says why: tests/lib/skip.h."""
    return [f"{f.path}:{n}" for f in files
            if f.is_c and f.path.startswith("tests/") and f.path != "tests/lib/skip.h"
            for n, line in enumerate(f.code(), 1) if re.search(r"\bskip\(\)", line)]


def rule_verdicts(files):
    """A verdict's words run no command, which would be what it judges: tests/lib/tap.sh."""
    words = re.compile(r"^\t*verdict (?:[^\n]*\\\n)*[^\n]*\$\([^(]", re.MULTILINE)
    return [f"{f.path}:{f.text.count(chr(10), 0, found.start()) + 1}" for f in files
            if f.path.startswith("tests/") and f.path.endswith(".sh")
            for found in words.finditer(f.text)]


def rule_security(_):
    """Each row of docs/security.md names a test, and the tests that it names are there."""
    faults = []
    with open(os.path.join(ROOT, "docs/security.md"), encoding="utf-8") as page:
        for n, line in enumerate(page, 1):
            cells = line.strip()[1:-1].split("|")
            if len(cells) != 5 or cells[0].strip() == "who" or "---" in cells[0]:
                continue
            tests = re.findall(r"`(tests/[\w/.]+\w)", cells[4])
            if not tests or not all(os.path.exists(os.path.join(ROOT, test)) for test in tests):
                faults.append(f"docs/security.md:{n}")
    return faults


def rule_errors(_):
    """docs/errors.md lists the codes of src/nic/data/why.h, each with the same words."""
    with open(os.path.join(ROOT, "src/nic/data/why.h"), encoding="utf8") as file:
        codes = re.findall(r'X\((0x..), \w+, "([^"]+)",\s*\\\s*"([^"]*)"\)', file.read())
    with open(os.path.join(ROOT, "docs/errors.md"), encoding="utf8") as file:
        rows = re.findall(r"^\| `(0x..)` \| (.*) \| (.*) \|$", file.read(), re.M)
    wanted = [(code, words, look or "-") for code, words, look in codes]
    return [f"docs/errors.md: {row}" for row in wanted if row not in rows] + \
           [f"docs/errors.md has {row}" for row in rows if row not in wanted] + \
           ([] if len(codes) > 20 else ["src/nic/data/why.h: no table was found"])


def rule_flaws(_):
    """docs/check.md lists the flaws of src/run/process/flaw.def, each with the same words, and each
    but those below has a program in tests/check/corpus."""
    with open(os.path.join(ROOT, "src/run/process/flaw.def"), encoding="utf8") as file:
        wanted = re.findall(r'X\(\w+, "([^"]+)",\s*"([^"]+)",\s*"([^"]+)"\)', file.read())
    with open(os.path.join(ROOT, "docs/check.md"), encoding="utf8") as file:
        rows = re.findall(r"^\| `([a-z-]+)` \| (.*) \| (.*) \|$", file.read(), re.M)
    shown = set()
    for path in glob.glob(os.path.join(ROOT, "tests/check/corpus/*.c")):
        with open(path, encoding="utf8") as file:
            shown |= set(re.findall(r"/\* FLAW: ([a-z-]+)", file.read()))
    return [f"docs/check.md: {row}" for row in wanted if row not in rows] + \
           [f"docs/check.md has {row}" for row in rows if row not in wanted] + \
           [f"no program of tests/check/corpus shows {row[0]}" for row in wanted
            if row[0] not in shown] + \
           ([] if len(wanted) > 20 else ["src/run/process/flaw.def: no table was found"])


def rule_troubles(_):
    """docs/explain.md lists the troubles of src/explain/trouble.def, each with the same words."""
    with open(os.path.join(ROOT, "src/explain/trouble.def"), encoding="utf8") as file:
        words = r'((?:"[^"]*"\s*)+)'
        found = re.findall(rf'X\(\w+, "([^"]+)", \w+,\s*{words},\s*{words}\)', file.read())
    with open(os.path.join(ROOT, "docs/explain.md"), encoding="utf8") as file:
        rows = re.findall(r"^\| `([a-z-]+)` \| (.*) \| (.*) \|$", file.read(), re.M)
    wanted = [(name, *("".join(re.findall(r'"([^"]*)"', part)) for part in parts))
              for name, *parts in found]
    return [f"docs/explain.md: {row}" for row in wanted if row not in rows] + \
           [f"docs/explain.md has {row}" for row in rows if row not in wanted] + \
           ([] if len(wanted) > 20 else ["src/explain/trouble.def: no table was found"])


def rule_told(_):
    """Each status and event has its row in docs/errors.md, and a test (tests/tidy/told.py)."""
    return told.faults(ROOT)


def rule_named(_):
    """The files that the pages name are there (tests/tidy/named.py)."""
    return named.faults(ROOT)


def rule_headers(files):
    """A header may be included twice."""
    return [f.path for f in files if f.path.endswith(".h") and "#pragma once" not in f.text
            and not re.search(r"^#ifndef (\w+)\n#define \1\b", f.text, re.M)]


def rule_suites(_):
    """Every suite is in tests/meson.build and scripts/check.sh, by which it is run."""
    folder = os.path.join(ROOT, "tests")
    with open(os.path.join(folder, "meson.build"), encoding="utf8") as file:
        declared = set(re.findall(r"^  \['(\S+)',", file.read(), re.M))
    suites = {name.split("/")[0] for name in declared}
    found = {os.path.relpath(path, folder) for suite in suites for end in ("sh", "py")
             for path in glob.glob(f"{folder}/{suite}/**/*.{end}", recursive=True)
             if os.access(path, os.X_OK)}
    with open(os.path.join(ROOT, "scripts/check.sh"), encoding="utf8") as file:
        run = set(re.search(r'^suites="(.*)"$', file.read(), re.M).group(1).split())
    return sorted(found ^ declared) + \
           [f"{suite} is not in scripts/check.sh" for suite in sorted(suites - run)]


def rule_pure_core(_):
    """The core takes nothing from the operating system, so that the simulator runs what ships."""
    archives = [os.path.join(BUILD, f"libvb_{name}.a") for name in CORE]
    archives = [a for a in archives if os.path.exists(a)]
    if not archives:
        return [f"no archive in {BUILD}"]
    # The target says to look at the code and not at what the compiler keeps for the linker.
    command = ["nm", "--target=elf64-little", "-A", "-g", "-P"] + archives
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True, stderr=subprocess.DEVNULL,
                         text=True).stdout
    defined, used = set(), []
    for line in out.splitlines():
        where, name, kind = line.split()[:3]
        if kind in "Uwv":
            used.append((os.path.basename(where.rstrip("]:")), name))
        else:
            defined.add(name)
    return [f"{where} {name}" for where, name in used
            if name not in defined and name not in CORE_MAY_USE and not TOOLCHAIN.match(name)
            and not any(where.endswith(file) and name in may
                        for file, may in FILE_MAY_USE.items())]


def main():
    files = sources()
    for name, rule in sorted(globals().items()):
        if not name.startswith("rule_"):
            continue
        faults = rule(files)
        more = "" if len(faults) <= 20 else f" and {len(faults) - 20} more"
        tap.judge(rule.__doc__.split("\n")[0], "; ".join(faults[:20]) + more)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
