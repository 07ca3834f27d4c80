# SPDX-License-Identifier: BSD-2-Clause
"""Latency and bandwidth from 2 octets to 8 MiB, ours next to UCX, as data and pictures."""
import os
import shutil
import subprocess

import lab
import load

AXES = {
    "latency": ("half round trip (READ: whole), us", "set key top left"),
    "bandwidth": ("GB/s", "set key top left"),
}
COLOURS = ["#888888", "#d62728", "#1f77b4", "#2ca02c"]      # UCX, send, write, read


def measure(where, name, progress):
    """Measures rows for raw.jsonl; writes data files and pictures of them."""
    title, path_of, tls, sizes = load.CURVES[name]
    rows = []
    try:
        path = path_of(where)
    except lab.Failure as failure:
        return [{"kind": "curve", "curve": name, "error": str(failure)}]
    for octets in sizes:
        progress(f"{name}, {octets} octets")
        for axis, takes in load.curve(where, path, tls, octets).items():
            for what, take in takes.items():
                row = {"kind": "curve", "curve": name, "axis": axis, "what": what, "octets": octets}
                try:
                    row["value"] = take()
                except lab.Failure as failure:
                    row["error"] = str(failure)
                row["line_ns"] = where.line_ns()
                rows.append(row)
    for axis in AXES:
        data(os.path.join(where.out, f"{name}-{axis}.dat"), axis, sizes, rows)
        progress(draw(where.out, f"{name}-{axis}", f"{title}: {axis}", axis, rows))
    return rows


def series(axis, rows):
    return list(dict.fromkeys(row["what"] for row in rows if row["axis"] == axis))


def data(path, axis, sizes, rows):
    """Writes a column for each series; ? stands for a missing value."""
    values = {(row["what"], row["octets"]): row.get("value") for row in rows if row["axis"] == axis}
    names = series(axis, rows)
    with open(path, "w", encoding="ascii") as out:
        out.write("# octets\t" + "\t".join(names) + f"\n# {AXES[axis][0]}\n")
        for octets in sizes:
            found = [values.get((name, octets)) for name in names]
            out.write("\t".join([str(octets)] + ["?" if v is None else f"{v:.4f}" for v in found])
                      + "\n")


def draw(folder, name, title, axis, rows):
    """Draws a picture in two formats by a script, which is kept. Returns the outcome in words."""
    label, extra = AXES[axis]
    script = [f'set title "{title}"', "set logscale x 2", "set logscale y", "set grid",
              'set xlabel "octets"', f'set ylabel "{label}"', 'set format x "%.0b%B"',
              'set datafile missing "?"', 'set datafile separator "\\t"', extra]
    lines = [f'"{name}.dat" using 1:{n + 2} with linespoints pt 7 ps 0.5 lw 2 lc rgb '
             f'"{COLOURS[n]}" title "{what.replace("_", chr(92) * 2 + "_")}"'
             for n, what in enumerate(series(axis, rows))]
    for terminal, suffix in (("pngcairo size 900,600", "png"), ("svg size 900,600", "svg")):
        script += [f"set terminal {terminal} enhanced", f'set output "{name}.{suffix}"',
                   "plot " + ", \\\n     ".join(lines)]
    with open(os.path.join(folder, name + ".gp"), "w", encoding="ascii") as out:
        out.write("\n".join(script) + "\n")
    if not shutil.which("gnuplot"):
        return f"gnuplot is missing: no picture of {name}"
    done = subprocess.run(["gnuplot", name + ".gp"], cwd=folder, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return f"gnuplot fails: {done.stderr.strip()[-200:]}"
    return f"{os.path.join(folder, name)}.png"
