#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Asks a running QEMU.

  qmp.py SOCKET COMMAND [ARGUMENTS]    what it returns, as JSON; ARGUMENTS is JSON, too
"""
import json
import socket
import sys


def main():
    path, command = sys.argv[1:3]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        with connection.makefile("rw") as channel:
            channel.readline()  # who it is
            ask(channel, {"execute": "qmp_capabilities"})
            request = {"execute": command, "arguments": json.loads((sys.argv[3:] or ["{}"])[0])}
            answer = ask(channel, request)
    print(json.dumps(answer.get("return", answer)))
    return "error" in answer


def ask(channel, request):
    """Events may come before the answer."""
    channel.write(json.dumps(request) + "\n")
    channel.flush()
    for line in channel:
        answer = json.loads(line)
        if "event" not in answer:
            return answer
    return {"error": "it has gone"}


if __name__ == "__main__":
    sys.exit(main())
