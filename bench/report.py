#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes a table and JSON lines of raw figures: report.py RAW.tsv RESULTS.jsonl

RAW has lines of path, what, octets, unit, figure. Printed and written are minimum, median and
maximum of each, and the median's ratio to bare UDP and to TCP on the same path: of bandwidths and
rates what part of it is reached, of latencies how many times as long it takes.
"""
import json
import os
import platform
import statistics
import sys

# What a figure is compared with, by unit.
UDP = {"us": "UDP ping-pong", "GB/s": "UDP stream", "M/s": "UDP rate"}
TCP = {"GB/s": "TCP stream"}


def read(path):
    """(path, what, octets, unit) to figures, in the order of the file."""
    found = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            *key, figure = line.rstrip("\n").split("\t")
            found.setdefault(tuple(key), []).append(float(figure))
    return found


def base_of(medians, path, unit, names):
    """What medians of this unit on this path are compared with; None if it was not measured."""
    return next((m for (p, what, _, u), m in medians.items()
                 if p == path and u == unit and what == names.get(unit)), None)


def rows(found):
    medians = {key: statistics.median(figures) for key, figures in found.items()}
    for (path, what, octets, unit), figures in found.items():
        median = medians[path, what, octets, unit]
        row = {"path": path, "what": what, "octets": int(octets), "unit": unit,
               "min": min(figures), "median": median, "max": max(figures), "runs": len(figures)}
        for name, names in (("of_udp", UDP), ("of_tcp", TCP)):
            base = base_of(medians, path, unit, names)
            if base and what.startswith("ib_"):
                row[name] = round(median / base, 3)
        yield row


def main():
    system = {"cores": os.cpu_count(), "kernel": platform.release(), "machine": platform.machine()}
    print(f"{system['cores']} cores, {platform.system()} {system['kernel']} {system['machine']}")
    form = "{:9} {:16} {:>8} {:>9} {:>9} {:>9} {:5} {:>7} {:>7}"
    print(form.format("path", "what", "octets", "min", "median", "max", "unit", "of UDP", "of TCP"))
    with open(sys.argv[2], "w", encoding="ascii") as out:
        for row in rows(read(sys.argv[1])):
            out.write(json.dumps({**row, **system}) + "\n")
            print(form.format(row["path"], row["what"], row["octets"], f"{row['min']:.3f}",
                              f"{row['median']:.3f}", f"{row['max']:.3f}", row["unit"],
                              row.get("of_udp", ""), row.get("of_tcp", "")))
    print(f"The same as JSON lines: {sys.argv[2]}")


if __name__ == "__main__":
    main()
