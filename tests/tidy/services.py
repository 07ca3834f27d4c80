# SPDX-License-Identifier: BSD-2-Clause
"""Only a service knows of what type a QP is: what differs between them stands in the services'
tables (src/nic/data/service.h). nic/service/services.c picks a QP's table when it is made. A line
that asks otherwise is named here. The ids of rdma_cm (src/abi/rdmacm) have a type before there is a
QP."""
import re

# A type, the field that has it, a table by its name, and what only QPs of one type have.
ASKS = re.compile(r"\bIBV_QPT_\w+|\benum ibv_qp_type\b|(->|\.)qp_type\b(?!\.xrc)"
                  r"|&\s*vb_service_\w+|\bqp->special\.(dc|xrc|raw|rss)\b")

# FILE: so many lines ask, and why. Neither list nor numbers may grow.
EXCEPTIONS = {
    # Keeps the type that it was asked for, and tells the application.
    "nic/control/qp.c": 7,
    # Says of which types a rate can be limited.
    "nic/control/nic.c": 2,
    # What a builder of each type has, which is refused before there is a QP.
    "abi/verbs/qp.c": 4,
    "abi/efa/qp.c": 2,
    "abi/verbs/wr.c": 12,
    "abi/verbs/wr.h": 2,
}


def asking(f):
    """The numbers of the lines of a source file that ask."""
    return [n for n, line in enumerate(f.code(), 1) if ASKS.search(line)]


def faults(files):
    found = []
    for f in files:
        name = f.path[len("src/"):]
        if not f.is_c or f.folder not in ("engine", "nic", "run", "abi") or \
                name.startswith(("nic/service/", "abi/rdmacm/")):
            continue
        lines, may = asking(f), EXCEPTIONS.get(name, 0)
        if len(lines) > may:
            found.append(f"{f.path} asks in {len(lines)} lines, {may} may (let it ask qp->service "
                         "instead, by a trait or a function of nic/data/service.h): "
                         + " ".join(str(n) for n in lines))
        elif len(lines) < may:
            found.append(f"tests/tidy/services.py: {name} asks in {len(lines)} lines only")
    return found
