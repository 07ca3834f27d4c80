#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The probes of the built libraries (docs/insight.md). Prints what is wrong.

  compare ROOT LIBRARY ...  probe.def, the page and the notes of the libraries have the same probes,
                            with the same arguments, and each in the library that the page names
"""
import os
import re
import subprocess
import sys

PROVIDER = "verbatim"


def table(root):
    """{name: arguments} of probe.def, and what is wrong in it."""
    with open(os.path.join(root, "src/base/probe.def"), encoding="utf8") as file:
        rows = re.findall(r'^VB_PROBE_ROW\((\w+),\s*(\d+), "([^"]*)"\)', file.read(), re.M)
    faults = [f"{name}: {count} arguments, but it lists {words}" for name, count, words in rows
              if len(words.split(", ")) != int(count)]
    return {name: words.split(", ") for name, _, words in rows}, faults


def page(root):
    """{name: (arguments, library)} of the page: | `name` | arguments | library | ... |"""
    with open(os.path.join(root, "docs/insight.md"), encoding="utf8") as file:
        text = file.read().split("\n## Probes\n", 1)[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| `([^`|]+)` \|", text, re.M)
    return {name: (words.strip().split(", "), library) for name, words, library in rows}


def notes(library):
    """{name: [how many arguments, at each place]}"""
    out = subprocess.run(["readelf", "-n", library], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    found = {}
    for provider, name, arguments in re.findall(
            r"Provider: (\S+)\s+Name: (\S+)\s+Location:[^\n]*\s+Arguments: ?([^\n]*)", out):
        if provider == PROVIDER:
            # "-4@%edx 8@24(%rax)": an operand has no blank in it.
            found.setdefault(name, []).append(len(arguments.split()))
    return found


def compare(root, *libraries):
    rows, faults = table(root)
    said = page(root)
    if set(rows) != set(said):
        faults.append(f"probe.def and the page differ: {sorted(set(rows) ^ set(said))}")
    faults += [f"{name}: {rows[name]}, and on the page {said[name][0]}"
               for name in rows if name in said and rows[name] != said[name][0]]
    for path in libraries:
        library = os.path.basename(path)
        found = notes(path)
        wanted = {name for name, (_, where) in said.items() if where == library}
        if set(found) != wanted:
            faults.append(f"{library} and the page differ: {sorted(set(found) ^ wanted)}")
        faults += [f"{name} of {library} has {counts} arguments" for name, counts in found.items()
                   if name in rows and set(counts) != {len(rows[name])}]
    return faults


if __name__ == "__main__":
    FAULTS = compare(*sys.argv[2:])
    print("\n".join(FAULTS))
    sys.exit(bool(FAULTS))
