# SPDX-License-Identifier: BSD-2-Clause
"""A structure of state has few members: what belongs together is a structure of its own within it,
with a name. What stands in a structure or union without a name counts one by one."""
import re

MEMBERS = 25

# struct: why it may have more.
EXCEPTIONS = {}

STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\}", re.S | re.M)
# A structure or union within it, and what it is called, if anything.
INNER = re.compile(r"\b(?:struct|union)(?:\s+\w+)?\s*\{([^{}]*)\}\s*([^;{}]*);")
BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")


def count(body):
    """The members that a body of declarations makes, without comments."""
    body = re.sub(r"^\s*#.*", "", body, flags=re.M)
    while INNER.search(body):
        body = INNER.sub(lambda m: f"int {m[2]};" if m[2].strip() else m[1], body)
    while BRACKETS.search(body):
        body = BRACKETS.sub("", body)
    return sum(1 + part.count(",") for part in body.split(";") if part.strip())


def faults(files):
    found, seen = [], set()
    for f in files:
        if not (f.is_c and f.path.startswith("src/")):
            continue
        for name, body in STRUCT.findall("\n".join(f.code())):
            seen.add(name)
            members = count(body)
            if members > MEMBERS and name not in EXCEPTIONS:
                found.append(f"{f.path}: struct {name} has {members} members")
    return found + [f"tests/tidy/structs.py: there is no struct {name}"
                    for name in EXCEPTIONS if name not in seen]
