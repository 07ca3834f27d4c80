# SPDX-License-Identifier: BSD-2-Clause
"""docs/errors.md has a row for each completion status and asynchronous event of the header: what it
is here, or why it never comes, and the test that provokes it. Of events, the words are those of
src/nic/core/found.c."""
import os
import re

HEADER = "/usr/include/infiniband/verbs.h"
ENUM = re.compile(r"^enum ibv_(?:wc_status|event_type) \{(.*?)^\};", re.M | re.S)
ROW = re.compile(r"^\| `(IBV_(?:WC|EVENT)_\w+)` \| (.*?) \|(?: (.*?) \|)? (\S+: \w+|-) \|$", re.M)
WORDS = re.compile(r"\[(IBV_EVENT_\w+)\] = \{ \w+,((?:\s*\"[^\"]*\")+),((?:\s*\"[^\"]*\")+)\s*\}")


def text_of(*path):
    with open(os.path.join(*path), encoding="utf8") as file:
        return file.read()


def joined(strings):
    return "".join(re.findall(r'"([^"]*)"', strings))


def test_faults(root, name, words, where):
    """Is there a test of this name, in a file that expects the status or event?"""
    if where == "-":
        return [] if words.startswith("never: ") or name == "IBV_WC_SUCCESS" else [
            f"{name}: no test provokes it"]
    file, test = where.split(": ")
    path = os.path.join(root, "tests", file if "/" in file else "verbs/" + file)
    text = text_of(path) if os.path.exists(path) else ""
    return [] if f"({test}" in text and name in text else [f"{name}: not in {where}"]


def faults(root):
    rows = ROW.findall(text_of(root, "docs/errors.md"))
    wanted = {name for body in ENUM.findall(text_of(HEADER))
              for name in re.findall(r"^\s*(IBV_(?:WC|EVENT)_\w+)", body, re.M)}
    said = {name: (joined(words), joined(look) or "-") for name, words, look in
            WORDS.findall(text_of(root, "src/nic/core/found.c"))}
    listed = {row[0] for row in rows}
    found = [f"{name} has no row in docs/errors.md" for name in sorted(wanted - listed)]
    found += [] if len(wanted) > 40 and len(said) > 10 else ["no status, or no words, were found"]
    for name, words, look, where in rows:
        found += test_faults(root, name, words, where)
        if name in said and (words, look) != said[name]:
            found.append(f"{name}: found.c says {said[name]}")
    return found + [f"{name}: docs/errors.md has no words" for name in said
                    if name not in listed]
