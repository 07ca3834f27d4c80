# SPDX-License-Identifier: BSD-2-Clause
"""What the pages for who changes something name is there: each path of a file or folder between
backticks, from the root, from src or tests, or from the page's own folder."""
import os
import re

PAGES = re.compile(r"(README|ARCHITECTURE|CONTRIBUTING|STYLE)\.md$|src/.*/README\.md$")
# With a slash, and an ending that only files have here; NAME and * stand for many.
NAMED = re.compile(r"`((?:[\w-]+/)+[\w.-]+\.(?:c|h|def|py|sh|map|build|md|toml|txt))`")


def faults(root):
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "build"))]
        for name in names:
            page = os.path.relpath(os.path.join(folder, name), root)
            if PAGES.match(page):
                found += faults_of(root, page)
    return found


def faults_of(root, page):
    bases = [root, os.path.join(root, "src"), os.path.join(root, "tests"),
             os.path.join(root, os.path.dirname(page))]
    with open(os.path.join(root, page), encoding="utf8") as file:
        return [f"{page}:{n}: there is no {path}" for n, line in enumerate(file, 1)
                for path in NAMED.findall(line) if "NAME" not in path
                and not any(os.path.exists(os.path.join(base, path)) for base in bases)]
