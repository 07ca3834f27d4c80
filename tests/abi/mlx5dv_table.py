#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/mlx5dv.md says the truth: it has every function and flag of <infiniband/mlx5dv.h> and
nothing else, each row names a test that there is, each function that it calls refused says so when
it is called, and no other does so by being a stub. Its reasons why pyverbs's tests skip are those
that tests/clients/pyverbs.sh accepts.

The document is made like docs/verbs.md (verbs_table.py).
"""
import ctypes
import errno
import json
import os
import re
import subprocess
import sys

import verbs_table as verbs
import tap

ROOT, BUILD = verbs.ROOT, verbs.BUILD
DOCUMENT = os.path.join(ROOT, "docs", "mlx5dv.md")
STATES = re.compile(r"works|reported|never|constant|refused E[A-Z]+$")
ENDED_WITHIN_S = 60


# --- the header ---

def declarations():
    """Name to declaration of each function, and the names of flags and numbers."""
    verbs.HEADERS = ("infiniband/mlx5dv.h", "infiniband/mlx5_api.h")
    text, macros = verbs.preprocessed()
    functions = {}
    names = {m for m in macros if m.startswith("MLX5DV_")}
    for head, body in verbs.statements(text):
        if re.match(r"\s*enum\b[^()]*$", head):
            names |= {n for n in re.findall(r"(?:^|,)\s*(\w+)", body) if n.startswith("MLX5DV_")}
            continue
        head = " ".join(re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head, flags=re.S).split())
        found = re.search(r"(_?mlx5dv_\w+) ?\(", head)
        if found:
            functions[found.group(1)] = head
    return functions, names


# --- the document ---

class Row(verbs.Row):
    """One name of one row."""

    def __str__(self):
        return f"mlx5dv.md:{self.line}: {self.name}"


def rows_of_document():
    """Rows of the tables of names; those of reasons have two cells."""
    rows, reasons = [], []
    with open(DOCUMENT, encoding="utf8") as file:
        for line, text in enumerate(file, 1):
            cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
            if not text.startswith("| `"):
                continue
            if len(cells) == 2:
                reasons.append(cells[0].strip("`"))
            elif len(cells) == 4:
                rows += [Row(line, name, cells) for name in re.findall(r"`(\w+)`", cells[0])]
    return rows, reasons


def quoted(name):
    """A shell variable of pyverbs.sh, put together from its assignments."""
    text = verbs.contents("tests/clients/pyverbs.sh")
    return "".join(re.findall(rf"^{name}\+?=['\"](.*)['\"]", text, re.M))


def modules():
    """pyverbs's modules that pyverbs.sh runs: those of its list, and those that it names alone."""
    suite = verbs.contents("tests/clients/pyverbs.sh")
    alone = re.findall(r'^.*pyverbs_module "[^"]*" (\w+) ', suite, re.M)
    return quoted("mlx5").split() + alone


def test_exists(test):
    where, _, what = test.partition(":")
    if where == "pyverbs" and what.startswith("test_mlx5_"):
        return what.removeprefix("test_") in modules()
    return verbs.test_exists(test)


# --- what is so ---

def outcome(library, name, head):
    """What a function says that is called with nothing: an errno, or 0 if it says none."""
    function = getattr(library, name)
    result = head[:head.index(name)].replace("extern ", "").strip()
    function.restype = {"int": ctypes.c_int, "ssize_t": ctypes.c_ssize_t, "bool": ctypes.c_bool,
                        "void": None}.get(result, ctypes.c_void_p)
    ctypes.set_errno(0)
    value = function(*[None] * 8)
    if result == "void":
        return 0
    no_pointer = function.restype == ctypes.c_void_p and value is None
    if result == "ssize_t" or no_pointer or value == -1:
        return ctypes.get_errno()
    return abs(value) if result == "int" else 0


def call_all(names):
    """In a child: what each function says. A crash is a fault of the one that was called last."""
    functions, _ = declarations()
    library = ctypes.CDLL(os.path.join(BUILD, "lib", "libmlx5.so.1"), use_errno=True)
    for name in names:
        print(json.dumps([name, None]), flush=True)
        print(json.dumps([name, outcome(library, name, functions[name])]), flush=True)


def told_of(names):
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "lib"),
               LD_PRELOAD=os.environ.get("VB_PRELOAD", ""))
    result = subprocess.run([sys.executable, __file__, "--call", *names], env=env, text=True,
                            stdout=subprocess.PIPE, check=False, timeout=ENDED_WITHIN_S)
    return dict(json.loads(line) for line in result.stdout.splitlines())


def stubs():
    text = verbs.contents("src/abi/mlx5/stubs.c")
    return set(re.findall(r"^VB_STUB_\w+\((\w+)", text, re.M))


def wrong_state(row, head, told, stub):
    """What is wrong with the state of a function's row, or None."""
    if row.state.startswith("refused"):
        if head is None or "static inline" in head:
            return None  # an inline one is made of others; a flag's test is in its row
        code = getattr(errno, row.state.split()[1])
        if re.match(r"(extern )?void ?" + row.name, head):
            return None if told == 0 else "does not come back"
        return None if told == code else f"says {row.state!r}, but the call: {told}"
    return "is a stub that refuses" if row.name in stub else None


def check(rows, functions, names):
    listed = [row.name for row in rows]
    wanted = names | set(functions)
    lacking = {f"{n}: not in mlx5dv.md" for n in wanted - set(listed)}
    strange = {f"{row}: not in the header" for row in rows if row.name not in wanted}
    if verbs.header_version() == verbs.DESCRIBED:
        verbs.report("mlx5dv.md has what the header has", lacking | strange)
    else:
        tap.skip("mlx5dv.md has what the header has",
                 f"it is of rdma-core {verbs.header_version()}")
    verbs.report("each name of mlx5dv.md has one row",
                           {f"{row}: again" for row in rows if listed.count(row.name) > 1})
    verbs.report("each row of mlx5dv.md has a state that there is", {
        f"{row}: {row.state!r}" for row in rows if not STATES.fullmatch(row.state)})
    verbs.report("each row of mlx5dv.md names a test that there is", {
        f"{row}: no {test!r}" for row in rows for test in row.tests if not test_exists(test)})
    verbs.report("what works of mlx5dv has a test", {
        str(row) for row in rows
        if row.state in ("works", "reported") and not set(row.tests) - {"table"}})


def main():
    if sys.argv[1:2] == ["--call"]:
        call_all(sys.argv[2:])
        return 0
    functions, names = declarations()
    if sys.argv[1:] == ["--names"]:
        print("\n".join(sorted(names | set(functions))))
        return 0
    rows, reasons = rows_of_document()
    check(rows, functions, names)
    told = told_of([row.name for row in rows if row.state.startswith("refused") and
                    row.name in functions and "static inline" not in functions[row.name]])
    stub = stubs()
    faults = {f"{row}: {fault}" for row in rows
              for fault in [wrong_state(row, functions.get(row.name), told.get(row.name), stub)]
              if fault}
    verbs.report("each function of mlx5dv does what its row says", faults)
    accepted = set(quoted("mlx5_lacking").split("|"))
    verbs.report("pyverbs's mlx5 tests skip for reasons that are told", {
        f"{reason}: only in one place" for reason in accepted ^ set(reasons)})
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
