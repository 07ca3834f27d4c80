#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/verbs.md says the truth: it has every function and flag of <infiniband/verbs.h> and
<infiniband/tm_types.h> and nothing else, each row names a test that there is, and each call and
flag is accepted or refused as its row says (tests/verbs/probe.h makes them).

A row of its tables is | `NAME` ... | state | what to know | `test` ... |; what states and tests
there are is told at the beginning of the document. `verbs_table.py --names` prints the names that
the header has, `--probes` what the probes were told.
"""
import errno
import os
import re
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BUILD = os.environ.get("VB_BUILD", ROOT + "/build")
DOCUMENT = os.path.join(ROOT, "docs", "verbs.md")
PROBE = os.path.join(BUILD, "tests", "verbs", "verbs_probe")
PROBE_LIMIT_S = 300
# The rdma-core whose header the document describes; an older one lacks names, a newer one has more.
DESCRIBED = "44"
HEADERS = ("infiniband/verbs.h", "infiniband/verbs_api.h", "infiniband/tm_types.h")
# The section about what that header lacks; its functions are those of symbols-debian14.txt.
NEWER = "## Newer than these headers"
STATES = re.compile(r"works|reported|never|constant|refused E[A-Z]+$")


def report(name, faults):
    tap.judge(name, f"{len(faults)} faults" if faults else "", "\n".join(sorted(faults)))


# --- the header ---

def preprocessed():
    """What the headers themselves say, comments removed: (their text, their macros)."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    source = "".join(f"#include <{name}>\n" for name in HEADERS)
    out = subprocess.run(compiler + ["-E", "-dD", "-x", "c", "-D_GNU_SOURCE", "-"], input=source,
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    text, macros, inside = [], set(), False
    for line in out.splitlines():
        mark = re.match(r'# \d+ "([^"]*)"', line)
        if mark:
            inside = mark.group(1).endswith(HEADERS)
        elif inside and line.startswith("#define"):
            macros.add(re.match(r"#define (\w+)", line).group(1))
        elif inside and not line.startswith("#"):
            text.append(line)
    return "\n".join(text), macros


def statements(text):
    """The declarations and definitions of a file: each one's (head, what is in its braces)."""
    head, body, depth = "", "", 0
    for piece in re.findall(r"[{};]|[^{};]+", text):
        if piece == "{":
            depth += 1
        elif piece == "}":
            depth -= 1
            # What ends a function; a type goes on to its semicolon.
            if depth == 0 and ")" in head:
                yield head, body
                head, body = "", ""
        elif piece == ";" and depth == 0:
            yield head, body
            head, body = "", ""
        elif depth == 0:
            head += piece
        else:
            body += piece


def names_of_header():
    """Functions, enumerators and macros that are a program's to use."""
    text, macros = preprocessed()
    names = {m for m in macros if re.match(r"IBV?_|ETHERNET_|vext_|verbs_get_ctx", m)}
    for head, body in statements(text):
        if re.match(r"\s*enum\b[^()]*$", head):
            names |= set(re.findall(r"(?:^|,)\s*(\w+)", body))
            continue
        head = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head, flags=re.S)
        function = re.search(r"(\w+)\s*\(", head)
        if function and not re.match(r"\s*(struct|union|enum)\s+\w*\s*$", head):
            names.add(function.group(1))
    # One underscore or more: parts of functions, which have their names.
    return {n for n in names if not n.startswith("_")}


def header_version():
    """Of the installed rdma-core: libibverbs.pc says 1.14.44.0."""
    out = subprocess.run(["pkg-config", "--modversion", "libibverbs"], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return out.split(".")[2] if out.count(".") >= 2 else "unknown"


def newer_functions():
    """Those that libibverbs has got since the header."""
    return set(re.findall(r"^_?(ibv_\w+)@IBVERBS_1\.1[5-9]",
                          contents("tests/abi/symbols-debian14.txt"), re.M))


# --- the document ---

class Row:
    """One name of one row."""

    def __init__(self, line, name, cells, newer=False):
        self.line, self.name, self.newer = line, name, newer
        self.state = cells[1]
        self.tests = re.findall(r"`([^`]+)`", cells[3])

    def __str__(self):
        return f"{os.path.basename(DOCUMENT)}:{self.line}: {self.name}"


def rows_of_document():
    rows, newer = [], False
    with open(DOCUMENT, encoding="utf8") as file:
        for line, text in enumerate(file, 1):
            if text.startswith("## "):
                newer = text.strip() == NEWER
            cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
            if text.startswith("| `") and len(cells) == 4:
                rows += [Row(line, name, cells, newer) for name in re.findall(r"`(\w+)`", cells[0])]
            elif text.startswith("| `"):
                raise SystemExit(f"verbs.md:{line}: a row of {len(cells)} cells")
    return rows


# --- tests that rows name ---

def contents(path):
    try:
        with open(os.path.join(ROOT, path), encoding="utf8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def test_exists(test):
    """FOLDER/FILE:WORDS. See the beginning of the document."""
    where, _, what = test.partition(":")
    if test == "table":
        return True
    for folder, ending in (("clients", ".sh"), ("abi", ".py"), ("lib", ".py"), ("sim", ".c")):
        text = contents(f"tests/{where}{ending}") if where.startswith(folder + "/") else None
        if text is not None:
            return bool(what) and what in text
    if where == "pyverbs":
        # Those that have to pass; the others may skip whatever they like.
        listed = re.findall(r'^passing\+?="(.*)"', contents("tests/clients/pyverbs.sh"), re.M)
        return what.removeprefix("test_") in " ".join(listed).split()
    folder = "tests/unit" if "/" in where else "tests/verbs"
    text = contents(f"{folder}/{where}_test.c")
    heads = r"^(static void |[A-Z_]+\(|\w+_test\(|vt_case\()"
    return text is not None and re.search(rf"{heads}{what}\b", text, re.M)


# --- what is so ---

def run_probe():
    """Name to errno; None if this system does not let it run."""
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "lib"), VERBATIM_LINK="")
    result = subprocess.run([PROBE], stdout=subprocess.PIPE, env=env, text=True, check=False,
                            timeout=PROBE_LIMIT_S)
    if "# SKIP" in result.stdout:
        return None
    told = {}
    for line in result.stdout.splitlines():
        match = re.match(r"(\w+) (\d+)$", line)
        if match:
            told[match.group(1)] = int(match.group(2))
    if result.returncode != 0:
        last = list(told)[-1] if told else "the beginning"
        raise SystemExit(f"FAIL probe: exit status {result.returncode} after {last}")
    return told


def word_of(told):
    """What a probe was told, as a row says it. Linux has two names for one number."""
    name = errno.errorcode.get(told, str(told)).replace("ENOTSUP", "EOPNOTSUPP")
    return "works" if told == 0 else "refused " + name


def wrong_state(row, told):
    """What is wrong with a row's state, or None. told: the errno, or None without a probe."""
    if told is None:
        asked = row.state == "works" or row.state.startswith("refused")
        return f"says {row.state!r}, but no probe calls it" if asked else None
    right = {"constant": told == 0, "reported": told == 0, "never": told != 0}
    if right.get(row.state, word_of(told) == row.state):
        return None
    return f"says {row.state!r}, but the probe: {word_of(told)}"


def check_document(rows, names):
    listed = [row.name for row in rows]
    version = header_version()
    lacking = {f"{n}: not in verbs.md" for n in names - set(listed)}
    strange = {f"{row}: not in the header" for row in rows
               if row.name not in names and not row.newer}
    if version == DESCRIBED:
        report("the document has what the header has", lacking | strange)
    else:
        tap.skip("the document has what the header has",
                 f"it is of rdma-core {version}, {len(lacking)} names more, {len(strange)} less")
    functions = {row.name for row in rows if row.newer and row.name.islower()}
    report("the document has the functions of newer releases", functions ^ newer_functions())
    report("each name has one row",
                     {f"{row}: again" for row in rows if listed.count(row.name) > 1})
    report("each row has a state that there is",
                     {f"{row}: {row.state!r}" for row in rows if not STATES.fullmatch(row.state)})
    report("each row names a test that there is",
                     {f"{row}: no {test!r}" for row in rows for test in row.tests
                      if not test_exists(test)})
    report("what works has a test", {
        str(row) for row in rows
        if row.state in ("works", "reported") and not set(row.tests) - {"table"}})


def main():
    names = names_of_header()
    if sys.argv[1:] == ["--names"]:
        print("\n".join(sorted(names)))
        return 0
    if sys.argv[1:] == ["--probes"]:
        for name, told in run_probe().items():
            print(name, word_of(told))
        return 0
    rows = rows_of_document()
    check_document(rows, names)
    told = run_probe()
    if told is None:
        tap.skip("each row says what is so", "no network namespace to be had")
        return tap.end()
    wrong = {f"{row}: {fault}" for row in rows
             for fault in [wrong_state(row, told.get(row.name))] if fault}
    report("each row says what is so", wrong)
    report("each probe has a row", set(told) - {row.name for row in rows})
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
