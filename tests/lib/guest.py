#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Commands for a guest: a machine that has our file system, and nothing else in common with us.

  guest.py serve PORT               in the guest: runs what it is sent, one connection each
  guest.py call ADDRESS PORT CMD .. here: the command's output, and its exit status

A command ends when its caller goes. The last line of an answer is the exit status.
"""
import os
import select
import signal
import socket
import socketserver
import subprocess
import sys


class Session(socketserver.StreamRequestHandler):
    """One command: its words come separated by zeros, the last one followed by an empty one."""

    def handle(self):
        words = []
        while word := self.word():
            words.append(word)
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, start_new_session=True) as process:
            try:
                self.relay(process.stdout.fileno())
            except OSError:
                os.killpg(process.pid, signal.SIGTERM)
        self.wfile.write(b"\n%d" % process.returncode)

    def word(self):
        octets = b""
        while (octet := self.rfile.read(1)) not in (b"", b"\0"):
            octets += octet
        return octets.decode()

    def relay(self, output):
        """Until the command has closed its output."""
        while True:
            ready, _, _ = select.select([output, self.connection], [], [])
            if self.connection in ready:
                raise ConnectionResetError
            octets = os.read(output, 65536)
            if not octets:
                return
            self.wfile.write(octets)


class Server(socketserver.ForkingTCPServer):
    allow_reuse_address = True


def serve(port):
    with Server(("", port), Session) as server:
        server.serve_forever()


def call(address, port, words):
    with socket.create_connection((address, port), timeout=10) as connection:
        connection.settimeout(None)
        connection.sendall(b"".join(w.encode() + b"\0" for w in words) + b"\0")
        held = b""
        while octets := connection.recv(65536):
            held += octets
            # What may be the status stays.
            cut = max(held.rfind(b"\n"), 0)
            sys.stdout.buffer.write(held[:cut])
            sys.stdout.buffer.flush()
            held = held[cut:]
    status = int(held.strip() or b"255")
    return status if status >= 0 else 128 - status


def main():
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return call(sys.argv[2], int(sys.argv[3]), sys.argv[4:])


if __name__ == "__main__":
    sys.exit(main())
