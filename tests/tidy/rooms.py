# SPDX-License-Identifier: BSD-2-Clause
"""The rooms inside src/nic, src/run and src/link, and who may look into whose. A room includes
what stands left of it, and itself; a service no other service, but SRD is made of both ends of DC.
The exceptions are what is left to be put in order: the list may only become shorter."""
import re

# "" is what lies in the folder itself.
ORDER = {
    "nic": ["core", "mem", "queue", "data", "way", "service", "control"],
    "link": ["", "around"],
    "run": ["process", "memory", "address", "capture", "faults", "links", ""],
}
STANDS_ON = {"service/srd": "service/dc"}
ROOM_FILES, ROOM_LINES = 40, 5000

# Tests of nic that are about several sources: how rings are sent to and received from.
TESTS_OF_SEVERAL = {"lanes", "lanes_threads"}

# FILE: what it includes although its room may not.
EXCEPTIONS = {
    "nic/data/acks.c": "nic/way/peer.h",
    "nic/data/demux.c": "nic/service/xrc/xrc_rx.h nic/way/send_ring.h nic/way/peer.h",
    "nic/data/explain.c": "nic/way/peer.h",
    "nic/data/host.c": "nic/service/tm/tm.h",
    "nic/data/post.c": "nic/way/direct.h nic/way/send_ring.h nic/way/peer.h",
    "nic/data/qp_error.c": "nic/service/eth/wq.h nic/service/tm/tm.h nic/way/peer.h",
    "nic/data/qp_parcels.c": "nic/service/tm/tm.h",
    "nic/way/receive.c": "nic/service/eth/segment.h",
    "nic/way/peer.c": "nic/service/eth/segment.h nic/service/xrc/xrc_rx.h",
    "nic/way/way.c": "nic/service/eth/segment.h",
}


def room_of(path):
    """("nic", "service/xrc") of nic/service/xrc/xrc.c; None of what has no rooms."""
    folder, _, rest = path.partition("/")
    return (folder, rest.rpartition("/")[0]) if folder in ORDER else None


def is_room(folder, room):
    return room.split("/")[0] in ORDER[folder]


def may_include(folder, room, other):
    if room.startswith("service/") and other.startswith("service/"):
        return other in (room, STANDS_ON.get(room))
    order = ORDER[folder]
    return order.index(other.split("/")[0]) <= order.index(room.split("/")[0])


def breaches(f):
    """(line, header) for each include of a source file that its room may not have."""
    name = f.path[len("src/"):]
    folder, room = room_of(name)
    for n, line in enumerate(f.lines, 1):
        found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        other = room_of(found.group(1)) if found else None
        if other and other[0] == folder and not may_include(folder, room, other[1]):
            yield n, found.group(1)


def faults_of_order(files):
    faults, used = [], set()
    for f in files:
        name = f.path[len("src/"):]
        if not f.is_c or not f.path.startswith("src/") or not room_of(name):
            continue
        if not is_room(*room_of(name)):
            faults.append(f"{f.path}: in no room")
            continue
        for n, other in breaches(f):
            if other in EXCEPTIONS.get(name, "").split():
                used.add((name, other))
            else:
                faults.append(f"{f.path}:{n}: {other}")
    listed = {(name, other) for name, others in EXCEPTIONS.items() for other in others.split()}
    return faults + [f"tests/tidy/rooms.py: {name} needs {other} no more"
                     for name, other in sorted(listed - used)]


def faults_of_size(files):
    """Counted by folder, so a service is a room."""
    rooms = {}
    for f in files:
        if f.is_c and f.path.startswith("src/"):
            rooms.setdefault(f.path.rsplit("/", 1)[0], []).append(len(f.lines) - 1)
    return [f"{room}: {len(lines)} files, {sum(lines)} lines" for room, lines in rooms.items()
            if len(lines) > ROOM_FILES or sum(lines) > ROOM_LINES]


def faults_of_tests(files):
    """tests/unit/nic/X_test.c: X is a source of nic, or begins with one and an underscore."""
    sources = {re.sub(r".*/|\.[ch]$", "", f.path) for f in files
               if f.is_c and f.path.startswith("src/nic/")}
    names = [found.group(1) for f in files
             if (found := re.fullmatch(r"tests/unit/nic/(\w+)_test\.c", f.path))]
    return [f"tests/unit/nic/{name}_test.c" for name in names if name not in TESTS_OF_SEVERAL
            and not any(name == s or name.startswith(s + "_") for s in sources)]
