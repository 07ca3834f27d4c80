# SPDX-License-Identifier: BSD-2-Clause
"""embed.py OUT FILE...: text files as rows { "name", "text" } of a table in C."""
import os
import sys


def row(path):
    with open(path, encoding="utf8") as file:
        lines = file.read().splitlines()
    name = os.path.splitext(os.path.basename(path))[0]
    quoted = "".join('\t"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"\n'
                     for line in lines)
    return f'{{ "{name}",\n{quoted}}},\n'


with open(sys.argv[1], "w", encoding="utf8") as out:
    out.writelines(row(path) for path in sys.argv[2:])
