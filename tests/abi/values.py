#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the functions without an object say: the names and rates and conversions agree with the
system's own libraries where those are installed, and what we do not implement fails the way its
callers understand (clients.md: EOPNOTSUPP is "go on", anything else an error).

Each side runs in a process of its own, because a soname can be loaded only once."""
import ctypes
import errno
import json
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap

HERE = os.path.dirname(os.path.abspath(__file__))
LIB = os.path.normpath(os.path.join(os.environ.get("VB_BUILD", HERE + "/../../build"), "lib"))
SEED = 7
BYTES = 512


def pure_values():
    """Everything that depends on nothing but its arguments."""
    verbs = ctypes.CDLL("libibverbs.so.1")
    out = {}
    for name, last in (("ibv_wc_status_str", 30), ("ibv_port_state_str", 10),
                       ("ibv_node_type_str", 10), ("ibv_event_type_str", 30)):
        function = getattr(verbs, name)
        function.restype = ctypes.c_char_p
        out[name] = [function(i).decode() for i in range(-2, last)]
    for name in ("ibv_rate_to_mult", "ibv_rate_to_mbps"):
        out[name] = [getattr(verbs, name)(i) for i in range(-2, 40)]
    out["mult_to_ibv_rate"] = [verbs.mult_to_ibv_rate(i) for i in range(-3, 600)]
    out["mbps_to_ibv_rate"] = [(i, verbs.mbps_to_ibv_rate(i)) for i in range(-3, 1300000)
                               if verbs.mbps_to_ibv_rate(i)]
    rng = random.Random(SEED)
    for name in ("ibv_copy_ah_attr_from_kern", "ibv_copy_qp_attr_from_kern",
                 "ibv_copy_path_rec_from_kern", "ibv_copy_path_rec_to_kern"):
        source = ctypes.create_string_buffer(bytes(rng.randrange(256) for _ in range(BYTES)), BYTES)
        # Filled: what a conversion leaves alone counts, too.
        target = ctypes.create_string_buffer(b"\xa5" * BYTES, BYTES)
        getattr(verbs, name)(target, source)
        out[name] = target.raw.hex()
    cm = ctypes.CDLL("librdmacm.so.1")
    cm.rdma_event_str.restype = ctypes.c_char_p
    out["rdma_event_str"] = [cm.rdma_event_str(i).decode() for i in range(-1, 20)]
    return out


def versioned(path, name, version):
    """A function at a version that is not its default one."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.dlvsym.restype = ctypes.c_void_p
    libc.dlopen.restype = ctypes.c_void_p
    handle = libc.dlopen(path.encode(), os.RTLD_NOW)
    address = libc.dlvsym(ctypes.c_void_p(handle), name.encode(), version.encode())
    return ctypes.CFUNCTYPE(ctypes.c_long, use_errno=True)(address)


def call(function, restype):
    """(value, errno) of a stub. Its arguments are zeros: it must not look at them."""
    function.restype = restype
    ctypes.set_errno(0)
    value = function(*[None] * 6)
    return value, ctypes.get_errno()


def stub_faults(library, kinds):
    """Calls every stub of a folder, by the macro that made it."""
    folder = os.path.join(HERE, "../../src/abi", kinds)
    with open(os.path.join(folder, "stubs.c"), encoding="utf8") as file:
        stubs = re.findall(r"^VB_STUB_(\w+)\((\w+)(?:, (\w+))?\)$", file.read(), re.M)
    loaded = ctypes.CDLL(library, use_errno=True)
    faults = []
    for kind, name, error in stubs:
        if name == "init_obj_1_0":
            continue
        code = getattr(errno, error) if error else errno.EOPNOTSUPP
        restype, wanted = {
            "INT": (ctypes.c_int, (code, 0)), "NEGATIVE": (ctypes.c_int, (-code, 0)),
            "MINUS_ONE": (ctypes.c_long, (-1, code)), "POINTER": (ctypes.c_void_p, (None, code)),
            "ZERO": (ctypes.c_int, (0, 0)), "VOID": (None, (None, 0)),
        }[kind]
        if call(getattr(loaded, name), restype) != wanted:
            faults.append(name)
    return faults


def stub_values():
    out = {"libmlx5.so.1": stub_faults("libmlx5.so.1", "mlx5"),
           "libefa.so.1": stub_faults("libefa.so.1", "efa")}
    private = [n for n in ("ibv_cmd_alloc_pd", "ibv_cmd_create_qp_ex2", "execute_ioctl")
               for number in (22, 34, 59)
               if versioned("libibverbs.so.1", n, f"IBVERBS_PRIVATE_{number}")() !=
               errno.EOPNOTSUPP]
    out["IBVERBS_PRIVATE"] = private
    old = [n for n in ("ibv_get_device_list", "ibv_open_device", "ibv_create_qp")
           if versioned("libibverbs.so.1", n, "IBVERBS_1.0")() != 0]
    out["IBVERBS_1.0"] = old
    return out


def child(mode, ours):
    env = dict(os.environ)
    env.pop("LD_LIBRARY_PATH", None)
    if ours:
        env.update(LD_LIBRARY_PATH=LIB, LD_PRELOAD=os.environ.get("VB_PRELOAD", ""))
    result = subprocess.run([sys.executable, __file__, mode], env=env, stdout=subprocess.PIPE,
                            check=False)
    return json.loads(result.stdout) if result.returncode == 0 else None


# Where we word things our own way, the unknown must still be called unknown.
OWN_WORDS = {"ibv_event_type_str", "ibv_node_type_str", "ibv_port_state_str"}


def same(name, mine, theirs):
    if name in OWN_WORDS:
        # An older library may lack the last one.
        known = [[word != "unknown" for word in words] for words in (mine, theirs)]
        return all(m >= t for m, t in zip(*known)) and sum(known[0]) <= sum(known[1]) + 1
    if name == "rdma_event_str":
        # An older library lacks the last ones.
        return all(t in (m, "UNKNOWN EVENT") for m, t in zip(mine, theirs)) and \
            mine[:17] == theirs[:17]
    return mine == theirs


def main():
    if len(sys.argv) > 1:
        json.dump(pure_values() if sys.argv[1] == "pure" else stub_values(), sys.stdout)
        return 0
    if not os.path.exists(os.path.join(LIB, "libibverbs.so.1")):
        # The loader would take the system's without a word.
        tap.fail("values", f"no library in {LIB}")
        return tap.end()
    mine, theirs = child("pure", True), child("pure", False)
    if mine is None:
        tap.fail("values", "our library does not run")
        return tap.end()
    for name, value in mine.items():
        if theirs is None:
            tap.skip(f"{name} agrees with the system's", "not installed")
        else:
            tap.judge(f"{name} agrees with the system's", "" if same(name, value, theirs[name])
                      else f"{value} is not {theirs[name]}")
    for name, faults in (child("stubs", True) or {"stubs": ["crash"]}).items():
        tap.judge(f"{name} says no", ", ".join(faults))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
