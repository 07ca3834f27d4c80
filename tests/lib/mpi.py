#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What an MPI program does, by mpi4py, with every octet checked: messages around a ring, many at
once that nobody waits for yet, all to all, sums, and windows that others put into, get from and
count in.

  mpirun -np N mpi.py [OCTETS [PART ...]]    OCTETS: of the longest message

PART is one of those at the end of this file; without any, all are done. Each process that finds
something wrong says so; the first prints "mpi: N processes" if none did, and the exit status is 1
if one did.
"""
import hashlib
import struct
import sys

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
ME, ALL = WORLD.Get_rank(), WORLD.Get_size()
TOGETHER = 64  # messages at once
ROUNDS = 50  # of counting
faults = []


def noise(octets, *words):
    """What words alone say, and no other words."""
    return hashlib.shake_128(repr(words).encode()).digest(octets)


def must(what, got, wanted):
    if bytes(got) != wanted:
        at = next((i for i, pair in enumerate(zip(got, wanted)) if pair[0] != pair[1]), None)
        faults.append(f"{what}: {len(wanted)} octets differ from {at} on")


def ring(longest):
    octets = 1
    while octets <= longest:
        got = bytearray(octets)
        WORLD.Sendrecv(noise(octets, ME, octets), (ME + 1) % ALL, recvbuf=got,
                       source=(ME - 1) % ALL)
        must("ring", got, noise(octets, (ME - 1) % ALL, octets))
        octets = octets * 5 + 1


def together(_):
    """Messages that are there before anybody has asked for them, and then asked for backwards."""
    got = [bytearray(i * 64) for i in range(TOGETHER)]
    requests = [WORLD.Isend(noise(i * 64, ME, i), (ME + i) % ALL, tag=i) for i in range(TOGETHER)]
    WORLD.Barrier()
    requests += [WORLD.Irecv(got[i], MPI.ANY_SOURCE, tag=i) for i in reversed(range(TOGETHER))]
    MPI.Request.Waitall(requests)
    for i in range(TOGETHER):
        must("together", got[i], noise(i * 64, (ME - i) % ALL, i))


def all_to_all(longest):
    for octets in (1, 1000, longest // ALL):
        got = bytearray(octets * ALL)
        WORLD.Alltoall([b"".join(noise(octets, ME, to) for to in range(ALL)), MPI.BYTE],
                       [got, MPI.BYTE])
        must("all to all", got, b"".join(noise(octets, of, ME) for of in range(ALL)))


def sums(longest):
    numbers = range(longest // 8)
    got = bytearray(longest // 8 * 8)
    WORLD.Allreduce([struct.pack(f"{len(numbers)}q", *(n + ME for n in numbers)), MPI.INT64_T],
                    [got, MPI.INT64_T])
    must("sums", got, struct.pack(f"{len(numbers)}q",
                                  *(n * ALL + ALL * (ALL - 1) // 2 for n in numbers)))


def windows(longest):
    share = longest // ALL
    window = MPI.Win.Allocate(share * ALL, 1, comm=WORLD)
    out = [noise(share, ME, to) for to in range(ALL)]  # nobody may touch it before the next fence
    window.Fence()
    for to in range(ALL):
        window.Put([out[to], MPI.BYTE], to, (ME * share, share, MPI.BYTE))
    window.Fence()
    must("put", window.tomemory(), b"".join(noise(share, of, ME) for of in range(ALL)))
    for of in range(ALL):
        got = bytearray(share)
        window.Get([got, MPI.BYTE], of, (ME * share, share, MPI.BYTE))
        window.Fence()
        must("get", got, noise(share, ME, of))
    window.Free()


def counting(_):
    """All count in the first one's window, word 0 by fetching, word 1 not; one takes word 2."""
    window = MPI.Win.Allocate(24, 8, comm=WORLD)
    window.tomemory()[:] = bytes(24)
    WORLD.Barrier()
    one, word = [struct.pack("q", 1), MPI.INT64_T], bytearray(8)
    mine, nobody = [struct.pack("q", ME + 1), MPI.INT64_T], [bytes(8), MPI.INT64_T]
    seen = []
    window.Lock_all()
    for _ in range(ROUNDS):
        window.Fetch_and_op(one, [word, MPI.INT64_T], 0, 0, MPI.SUM)
        window.Flush(0)
        seen.append(struct.unpack("q", word)[0])
        window.Accumulate(one, 0, (1, 1, MPI.INT64_T), MPI.SUM)
    window.Compare_and_swap(mine, nobody, [word, MPI.INT64_T], 0, 2)
    window.Unlock_all()
    WORLD.Barrier()
    told = sorted(n for part in WORLD.allgather(seen) for n in part)
    winners = [i + 1 for i, old in enumerate(WORLD.allgather(bytes(word))) if not any(old)]
    if told != list(range(ROUNDS * ALL)) or len(winners) != 1:
        faults.append(f"counting: {len(set(told))} different numbers, {len(winners)} winners")
    if ME == 0:
        window.Lock(0)
        must("counting", window.tomemory(),
             struct.pack("3q", ROUNDS * ALL, ROUNDS * ALL, *winners))
        window.Unlock(0)
    window.Free()


PARTS = (ring, together, all_to_all, sums, windows, counting)


def main():
    longest = int(sys.argv[1]) if len(sys.argv) > 1 else 1000000
    for part in PARTS:
        if part.__name__ in (sys.argv[2:] or (part.__name__,)):
            part(longest)
    for fault in faults:
        print(f"mpi: process {ME}: {fault}", flush=True)
    failed = WORLD.allreduce(len(faults))
    if ME == 0 and not failed:
        print(f"mpi: {ALL} processes", flush=True)
    return int(failed > 0)


sys.exit(main())
