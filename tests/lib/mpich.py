#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Messages around a ring, by MPICH's library itself, since Debian's mpi4py knows Open MPI's alone.

  mpiexec.mpich -n N mpich.py [OCTETS]     OCTETS: of the longest message

The first process prints "mpich: N processes"; who finds something wrong says so, and ends all.
"""
import ctypes
import hashlib
import sys

# What <mpi.h> of MPICH's ABI says.
WORLD, BYTE, NO_STATUS = 0x44000000, 0x4c00010d, ctypes.c_void_p(1)
mpi = ctypes.CDLL("libmpich.so.12", ctypes.RTLD_GLOBAL)


def noise(octets, *words):
    """What words alone say, and no other words."""
    return hashlib.shake_128(repr(words).encode()).digest(octets)


def number(call):
    value = ctypes.c_int()
    call(WORLD, ctypes.byref(value))
    return value.value


def main():
    longest = int(sys.argv[1]) if len(sys.argv) > 1 else 1000000
    mpi.MPI_Init(None, None)
    me, everyone = number(mpi.MPI_Comm_rank), number(mpi.MPI_Comm_size)
    octets = 1
    while octets <= longest:
        got = ctypes.create_string_buffer(octets)
        mpi.MPI_Sendrecv(noise(octets, me, octets), octets, BYTE, (me + 1) % everyone, 0, got,
                         octets, BYTE, (me - 1) % everyone, 0, WORLD, NO_STATUS)
        if got.raw != noise(octets, (me - 1) % everyone, octets):
            print(f"mpich: process {me}: {octets} octets differ", flush=True)
            mpi.MPI_Abort(WORLD, 1)
        octets = octets * 5 + 1
    mpi.MPI_Barrier(WORLD)
    if me == 0:
        print(f"mpich: {everyone} processes", flush=True)
    mpi.MPI_Finalize()


main()
