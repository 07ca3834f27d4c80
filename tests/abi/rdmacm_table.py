#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/rdma_cm.md has every function, event and option of librdmacm's headers and nothing else,
each row names a test that there is, and what works has one.

The document is made like docs/verbs.md (verbs_table.py). `rdmacm_table.py --names` prints the names
that the headers have.
"""
import os
import re
import sys

import verbs_table as verbs
import tap

STATES = re.compile(r"works|reported|never|constant|untested|refused E[A-Z]+")
# What the headers of later releases have, and ours answers.
NEWER = {"rdma_resolve_addrinfo", "rdma_query_addrinfo", "rdma_write_cm_event", "RAI_SA", "RAI_DNS",
         "RDMA_CM_EVENT_ADDRINFO_RESOLVED", "RDMA_CM_EVENT_ADDRINFO_ERROR", "RDMA_CM_EVENT_USER",
         "RDMA_CM_EVENT_INTERNAL"}


def names_of_headers():
    text, macros = verbs.preprocessed()
    names = {m for m in macros if not m.endswith("_H")}
    for head, body in verbs.statements(text):
        if re.match(r"\s*enum\b[^()]*$", head):
            names |= set(re.findall(r"(?:^|,)\s*(\w+)", body))
            continue
        function = re.search(r"(\w+)\s*\(", head)
        if function and not re.match(r"\s*(struct|union|enum)\s+\w*\s*$", head):
            names.add(function.group(1))
    return {n for n in names if not n.startswith("_")}


def test_exists(test):
    where, _, what = test.partition(":")
    if not where.startswith("rdmacm/"):
        return verbs.test_exists(test)
    text = verbs.contents(f"tests/{where}_test.c")
    return text is not None and f"void {what}(" in text


def main():
    verbs.HEADERS = ("rdma/rdma_cma.h", "rdma/rdma_verbs.h", "rdma/rsocket.h")
    verbs.DOCUMENT = os.path.join(verbs.ROOT, "docs", "rdma_cm.md")
    names = names_of_headers()
    if sys.argv[1:] == ["--names"]:
        print("\n".join(sorted(names)))
        return 0
    rows = verbs.rows_of_document()
    listed = [row.name for row in rows]
    if verbs.header_version() == verbs.DESCRIBED:
        verbs.report("rdma_cm.md has what the headers have",
                     {f"{n}: not in rdma_cm.md" for n in (names | NEWER) - set(listed)} |
                     {f"{row}: not in the headers" for row in rows
                      if row.name not in names | NEWER})
    else:
        tap.skip("rdma_cm.md has what the headers have",
                 f"they are of rdma-core {verbs.header_version()}")
    verbs.report("each name of rdma_cm.md has one row",
                 {f"{row}: again" for row in rows if listed.count(row.name) > 1})
    verbs.report("each row of rdma_cm.md has a state that there is",
                 {f"{row}: {row.state!r}" for row in rows if not STATES.fullmatch(row.state)})
    verbs.report("each row of rdma_cm.md names a test that there is",
                 {f"{row}: no {test!r}" for row in rows for test in row.tests
                  if not test_exists(test)})
    verbs.report("what works of librdmacm has a test",
                 {str(row) for row in rows
                  if row.state not in ("never", "constant", "untested") and not row.tests})
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
