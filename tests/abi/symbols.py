#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The drop-in libraries export what programs need: the symbols at their versions, all symbols of
the system's own libraries where those are installed, and nothing besides. Each client binary that
is installed resolves completely against them, as the loader sees it."""
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap

HERE = os.path.dirname(os.path.abspath(__file__))
LIB = os.path.normpath(os.path.join(os.environ.get("VB_BUILD", HERE + "/../../build"), "lib"))
LIBRARIES = ["libibverbs.so.1", "libmlx5.so.1", "librdmacm.so.1", "libefa.so.1"]
# Names that are ours to export, to programs or to our own libraries; anything else is a leak of our
# insides.
PUBLIC = re.compile(r"^(_?ibv_\w+|_{0,2}mlx5dv_\w+|efadv_\w+|rdma_\w+|r[a-z]+|repoll_[a-z]+|"
                    r"verbs_\w+|__verbs_log|_verbs_init_and_alloc_context|execute_ioctl|"
                    r"__ioctl_final_num_attrs|mult_to_ibv_rate|mbps_to_ibv_rate)@|"
                    r"^vb_\w+@VERBATIM_PRIVATE$")
# The first-party clients of Debian 12 by package; a folder's binaries that need none of our four
# libraries are passed over.
CLIENTS = {
    "perftest": ["/usr/bin/ib_*", "/usr/bin/raw_ethernet_*"],
    "ibverbs-utils": ["/usr/bin/ibv_*"],
    "rdmacm-utils": ["/usr/bin/" + n for n in (
        "cmtime", "mckey", "rcopy", "rdma_client", "rdma_server", "rdma_xclient", "rdma_xserver",
        "riostream", "rping", "rstream", "ucmatose", "udaddy", "udpong")],
    "qperf": ["/usr/bin/qperf"],
    "fio": ["/usr/bin/fio"],
    "libfabric": ["/usr/bin/fi_*", "/usr/lib/*/libfabric.so.1"],
    "ucx": ["/usr/bin/ucx_*", "/usr/lib/*/libuc[pst].so.0", "/usr/lib/*/ucx/*.so.0"],
    "openmpi": ["/usr/lib/*/openmpi/lib/openmpi3/*.so", "/usr/lib/*/libopen-*.so.40"],
    "pyverbs": ["/usr/lib/python3/dist-packages/pyverbs/*.so",
                "/usr/lib/python3/dist-packages/pyverbs/providers/*/*.so"],
    "rsocket": ["/usr/lib/*/rsocket/*.so"],
}


def run(*command, **env):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            check=False, env=dict(os.environ, LC_ALL="C", **env))
    return result.stdout


def report(name, faults):
    tap.judge(name, ", ".join(sorted(faults)[:12]) + (" ..." if len(faults) > 12 else ""))


def exports(path):
    """Every NAME@VERSION that a library defines; a default version's @@ counts as @."""
    out = run("nm", "-D", "--defined-only", "--with-symbol-versions", path)
    names = {line.split()[-1].replace("@@", "@") for line in out.splitlines()
             if len(line.split()) == 3}
    return {n for n in names if "@" in n}


def listed(library):
    """What the libraries of Debian 12 export, and what those of later ones do besides."""
    names = set()
    for path in glob.glob(os.path.join(HERE, "symbols-debian*.txt")):
        with open(path, encoding="utf8") as file:
            names |= {line.split()[0] for line in file if line.split()[1:] == [library]}
    return names


def system_library(name):
    for folder in glob.glob("/usr/lib/*-linux-gnu") + ["/usr/lib64", "/usr/lib"]:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    return None


def check_libraries():
    for library in LIBRARIES:
        ours = exports(os.path.join(LIB, library))
        report(f"{library} has the listed symbols", listed(library) - ours)
        real = system_library(library)
        if real:
            report(f"{library} has the system's symbols", exports(real) - ours)
        else:
            tap.skip(f"{library} has the system's symbols", "not installed")
        leaks = {n for n in ours if not PUBLIC.match(n)}
        report(f"{library} exports nothing else", leaks)
        dynamic = run("readelf", "-d", os.path.join(LIB, library))
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
        foreign = {n for n in needed if n in LIBRARIES or "libnl" in n}
        if library != "libibverbs.so.1":
            foreign -= {"libibverbs.so.1"}  # ours, by its symbols of version VERBATIM_PRIVATE
        report(f"{library} stands on none of rdma-core", foreign)


def private_numbers():
    """Some clients call one private function, at their own rdma-core's number."""
    ours = exports(os.path.join(LIB, "libibverbs.so.1"))
    with open(os.path.join(HERE, "../../src/abi/verbs/libibverbs.map"), encoding="utf8") as file:
        numbers = re.findall(r"^IBVERBS_PRIVATE_(\d+)", file.read(), re.M)
    missing = set()
    for number in numbers:
        for name in ("ibv_query_gid_type", "verbs_register_driver_" + number, "ibv_cmd_alloc_pd"):
            if f"{name}@IBVERBS_PRIVATE_{number}" not in ours:
                missing.add(f"{name}@{number}")
    report("every private number has its symbols", missing)


def unresolved(path, folder):
    """What the loader cannot find for a binary, in folder and then in the system."""
    out = run("ldd", "-r", path, LD_LIBRARY_PATH=folder, LD_BIND_NOW="1")
    found = set(re.findall(r"undefined symbol: (\w+)", out))
    found |= set(re.findall(r"version [`']?(\S+?)'? not found", out))
    found |= set(re.findall(r"symbol (\S+), version \S+ not defined", out))
    return found, out


def check_client(path):
    faults, out = unresolved(path, LIB)
    needed = [library for library in LIBRARIES if library + " =>" in out]
    if not needed:
        return
    strangers = {n for n in needed if f"{n} => {os.path.join(LIB, n)} " not in out}
    # A Python or Open MPI module lacks what its host provides: that it lacks everywhere.
    report(path + " resolves", strangers | faults - unresolved(path, "/nonexistent")[0])


def main():
    check_libraries()
    private_numbers()
    for package, patterns in CLIENTS.items():
        paths = sorted(p for pattern in patterns for p in glob.glob(pattern))
        if not paths:
            tap.skip(f"{package} resolves", "not installed")
        for path in paths:
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    check_client(os.path.normpath(path))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
