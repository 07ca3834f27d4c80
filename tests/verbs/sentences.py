#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""SENTENCES.md and the tests agree: every sentence has its test, and every citation is listed.

sentences.py [FOLDER] [--rows]: FOLDER has both; without, it is this one. A citation is a comment
'PAGE: "WORDS"' before a test function, where PAGE is one of those below; the table's rows are
| page | words | test |.
"""
import os
import re
import sys

ARGUMENTS = [word for word in sys.argv[1:] if word != "--rows"]
HERE = os.path.abspath(ARGUMENTS[0] if ARGUMENTS else os.path.dirname(__file__))
PAGES = {
    "verbs": "(create_ex|create_dv|create|destroy|attach|rfc|flow|counters)",
    "rdmacm": r"(rdma_[\w*]+|rsocket)",
}[os.path.basename(HERE)]
PROGRAMS = sorted(name for name in os.listdir(HERE) if name.endswith("_test.c"))
CITATION = re.compile(PAGES + r': "([^"]+)"')
ROW = re.compile(r"^\| " + PAGES + r" \| (.+) \| `(\w+)` \|$")


def cited(name):
    """The (page, words, test) of one test program."""
    with open(os.path.join(HERE, name), encoding="utf8") as file:
        text = file.read()
    found = set()
    # A run of comments, and the test that follows: a function, X_test(NAME) or vt_case(NAME, ...).
    for comments, test in re.findall(r"((?:^/\*(?:.|\n)*?\*/\n)+)"
                                     r"(?:static void |\w+_test\(|vt_case\()(\w+)\b", text, re.M):
        flat = re.sub(r"\s+(?:\* )?", " ", re.sub(r"\n \* ?", " ", comments))
        for page, words in CITATION.findall(flat):
            found.add((page, words, test))
    return found


def listed():
    """The rows of the table."""
    with open(os.path.join(HERE, "SENTENCES.md"), encoding="utf8") as file:
        return {match.groups() for match in map(ROW.match, file.read().splitlines()) if match}


def main():
    tests = set().union(*map(cited, PROGRAMS))
    if "--rows" in sys.argv[1:]:
        for page, words, test in sorted(tests):
            print(f"| {page} | {words} | `{test}` |")
        return 0
    table = listed()
    for page, words, test in sorted(table - tests):
        print(f"# no test {test} cites {page}: {words}")
    for page, words, test in sorted(tests - table):
        print(f"# SENTENCES.md lacks {page}: {words} ({test})")
    good = table == tests and len(table) > 0
    print("1..1")
    print(("ok" if good else "not ok") + " 1 - every_sentence_has_its_test")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
