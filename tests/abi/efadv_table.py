#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/efa.md says the truth: it has every function and flag of <infiniband/efadv.h> and every
function of libefa.so.1, each row names a test that there is, and a function that it calls refused
says so when it is called, and no other is a stub.

The document is made like docs/verbs.md (verbs_table.py); names of newer headers are in it, too.
"""
import ctypes
import errno
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import tap
import verbs_table as verbs

BUILD = os.environ.get("VB_BUILD", os.path.join(HERE, "..", "..", "build"))
HEADER = "/usr/include/infiniband/efadv.h"
STATES = re.compile(r"works|reported|never|refused E[A-Z]+")


def rows():
    """Name, state, tests of each name of the table of functions."""
    for text in verbs.contents("docs/efa.md").splitlines():
        cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
        if text.startswith("| `") and len(cells) == 4:
            for name in re.findall(r"`(\w+)`", cells[0]):
                yield name, cells[1], re.findall(r"`([^`]+)`", cells[3])


def in_header():
    with open(HEADER, encoding="utf8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    names = set(re.findall(r"\b(EFADV_\w+)\b *[=,\n]", text))
    return names | set(re.findall(r"\b(efadv_\w+)\(", text))


def exported():
    out = subprocess.run(["nm", "-D", "--defined-only", os.path.join(BUILD, "lib", "libefa.so.1")],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    return set(re.findall(r"\b(efadv_\w+)", out))


def refusal(library, name):
    """What a stub says that is called with nothing."""
    function = getattr(library, name)
    function.restype = ctypes.c_void_p if "create" in name else ctypes.c_int
    ctypes.set_errno(0)
    value = function(*[None] * 4)
    return value or ctypes.get_errno()


def main():
    listed = list(rows())
    names = {name for name, _, _ in listed}
    if os.path.exists(HEADER):
        verbs.report("efa.md has what the header has", in_header() - names)
    else:
        tap.skip("efa.md has what the header has", "no header of EFA's is installed")
    verbs.report("efa.md has what the library has", exported() - names)
    verbs.report("each name of efa.md has one row",
                 {n for n in names if sum(n == row[0] for row in listed) > 1})
    verbs.report("each row of efa.md has a state that there is",
                 {f"{n}: {state}" for n, state, _ in listed if not STATES.fullmatch(state)})
    verbs.report("each row of efa.md names a test that there is",
                 {f"{n}: {test}" for n, _, tests in listed for test in tests
                  if test != "table" and not verbs.test_exists(test)})
    verbs.report("what works of efadv has a test",
                 {n for n, state, tests in listed
                  if state in ("works", "reported") and not set(tests) - {"table"}})
    library = ctypes.CDLL(os.path.join(BUILD, "lib", "libefa.so.1"), use_errno=True)
    stubs = set(re.findall(r"^VB_STUB_\w+\((\w+)", verbs.contents("src/abi/efa/stubs.c"), re.M))
    refused = {n: state.split()[1] for n, state, _ in listed if state.startswith("refused")}
    verbs.report("each stub of efadv has a row that says so", stubs - set(refused))
    verbs.report("each function that efa.md calls refused says so",
                 {n for n, code in refused.items()
                  if n in stubs and refusal(library, n) != getattr(errno, code)})
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
