# SPDX-License-Identifier: BSD-2-Clause
"""A header declares what the .c file beside it defines, so that whoever looks for a function finds
it by its header's name. What is inline in a header is its own."""
import re

# HEADER: the .c files whose functions it declares as well, and how many of each. Nothing is added
# here, and no number grows.
EXCEPTIONS = {
    # The functions of a context: one table, and hardly anybody calls them but by it.
    "abi/verbs/ops.h": {"abi/verbs/counters.c": 4, "abi/verbs/cq.c": 3, "abi/verbs/cq_ex.c": 5,
        "abi/verbs/dm.c": 3, "abi/verbs/flow.c": 2, "abi/verbs/mem.c": 2, "abi/verbs/pd.c": 3,
        "abi/verbs/qp.c": 5, "abi/verbs/query.c": 3, "abi/verbs/srq.c": 4, "abi/verbs/told.c": 4,
        "abi/verbs/window.c": 3, "abi/verbs/wq.c": 4, "abi/verbs/xrc.c": 2},
    # In assembler.
    "base/guard.h": {"nowhere in C": 1},
    # What the engine asks of its host: nic defines it, and so does each test of the engine.
    "engine/host.h": {"nic/data/host.c": 14},
    # Rooms call them that may not include the room of the .c file.
    "nic/core/nic.h": {"nic/control/nic.c": 1},
    "nic/data/qp.h": {"nic/control/qp.c": 2, "nic/control/qp_modify.c": 6,
        "nic/way/qp_export.c": 1, "nic/way/send.c": 1},
}

CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)')
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
ARGUMENTS = r"\((?:[^()]|\([^()]*\))*\)"
HEAD = r"^(?!static\b|typedef\b|return\b|else\b)[A-Za-z_][^;{}()=\n]*?\b(\w+)" + ARGUMENTS
DEFINITION = re.compile(HEAD + r"\s*\{", re.M)
DECLARATION = re.compile(HEAD + r"[^;{}()]*;", re.M)


def text_of(f):
    """The code without comments, directives and attributes."""
    return DIRECTIVE.sub("", CODE.sub("", "\n".join(f.code())))


def definitions(files):
    """Function -> the .c files of src that define it."""
    where = {}
    for f in files:
        if f.path.startswith("src/") and f.path.endswith(".c"):
            for name in DEFINITION.findall(text_of(f)):
                where.setdefault(name, set()).add(f.path[len("src/"):])
    return where


def strangers(header, where):
    """.c file -> what the header declares of it, and not of the one beside it."""
    own, found = header.path[len("src/"):-1] + "c", {}
    for name in DECLARATION.findall(text_of(header)):
        homes = where.get(name, {"nowhere in C"})
        if own not in homes:
            found.setdefault(min(homes), []).append(name)
    return found


def faults_of_pairs(files):
    faults, where = [], definitions(files)
    for f in files:
        if not (f.path.startswith("src/") and f.path.endswith(".h")):
            continue
        header, found = f.path[len("src/"):], strangers(f, where)
        listed = EXCEPTIONS.get(header, {})
        for home in sorted(found.keys() | listed.keys()):
            names, may = found.get(home, []), listed.get(home, 0)
            if len(names) > may:
                faults.append(f"{f.path} declares {len(names)} of {home}, {may} may: let "
                              f"{home[:-1]}h declare one: " + " ".join(names))
            elif len(names) < may:
                faults.append(f"tests/tidy/pairs.py: {header} declares only {len(names)} of {home}")
    return faults + [f"tests/tidy/pairs.py: there is no {header}" for header in EXCEPTIONS
                     if not any(f.path == "src/" + header for f in files)]
