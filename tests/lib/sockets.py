#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a program does with sockets, and what comes of it, one line for each thing: rspreload.sh
runs this by TCP and by rsockets, and compares.

  sockets.py ADDRESS         all but fork
  sockets.py ADDRESS fork    servers that fork, and clients with several connections to them
  sockets.py ADDRESS NAME    that one alone
"""
import array
import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import select
import signal
import socket
import socketserver
import struct
import sys
import tempfile
import termios
import threading
import time

ADDRESS = sys.argv[1]
FAMILY = socket.AF_INET6 if ":" in ADDRESS else socket.AF_INET
FAR = "2001:db8::1" if FAMILY == socket.AF_INET6 else "192.0.2.1"
BIG = hashlib.sha256(b"seed").digest() * 40000
LIMIT_MS = 30000


def digest(octets):
    return hashlib.sha256(octets).hexdigest()[:16]


def read_all(sock):
    return b"".join(iter(lambda: sock.recv(1 << 16), b""))


def exactly(sock, count):
    parts = []
    while count:
        parts.append(sock.recv(count))
        if not parts[-1]:
            break
        count -= len(parts[-1])
    return b"".join(parts)


def listener():
    sock = socket.socket(FAMILY)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((ADDRESS, 0))
    sock.listen()
    return sock


@contextlib.contextmanager
def pair():
    """Two ends of a connection. An rsocket's begins when it is accepted, not before."""
    with listener() as listens, socket.socket(FAMILY) as client:
        thread = in_thread(client.connect, listens.getsockname())
        server, _ = listens.accept()
        thread.join()
        with server:
            yield server, client


def in_thread(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    return thread


def failure(function, *args):
    try:
        return f"no error: {function(*args)}"
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)


def octets_arrive_as_they_were():
    with pair() as (server, client):
        thread = in_thread(lambda: (client.sendall(BIG), client.shutdown(socket.SHUT_WR)))
        got = read_all(server)
        thread.join()
        server.sendall(b"after the end of the other direction")
        server.shutdown(socket.SHUT_WR)
        return digest(got), read_all(client)


def messages_are_gathered_and_scattered():
    with pair() as (server, client):
        client.sendmsg([b"one ", b"two ", b"three"])
        os.writev(client.fileno(), [b", four", b" five"])
        parts = [bytearray(4), bytearray(9)]
        server.recvmsg_into(parts, 0, socket.MSG_WAITALL)
        more = [bytearray(6), bytearray(20)]
        count = os.readv(server.fileno(), more)
        return parts, more, count


def a_peek_leaves_it_there():
    with pair() as (server, client):
        client.sendall(b"look")
        select.select([server], [], [])
        count = array.array("i", [0])
        fcntl.ioctl(server, termios.FIONREAD, count)
        return count[0], server.recv(9, socket.MSG_PEEK), server.recv(9)


def times_run_out():
    with pair() as (server, client):
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 20000))
        late = failure(server.recv, 1)
        server.settimeout(0.02)
        later = failure(server.recv, 1)
        server.setblocking(False)
        at_once = failure(server.recv, 1)
        client.sendall(b"x")
        select.select([server], [], [])
        return late, later, at_once, server.recv(1), failure(client.recv, 1, socket.MSG_DONTWAIT)


def duplicates_are_the_same_socket():
    with pair() as (server, client):
        copy = os.dup(client.fileno())
        other = os.open("/dev/null", os.O_RDONLY)
        os.dup2(client.fileno(), other)
        client.close()
        os.write(copy, b"by dup, ")
        os.close(copy)
        os.write(other, b"by dup2")
        os.close(other)
        return read_all(server)


def files_are_sent():
    with pair() as (server, client), tempfile.TemporaryFile() as file:
        file.write(BIG)
        file.flush()

        def send():
            at = 100
            while at < len(BIG):
                at += os.sendfile(client.fileno(), file.fileno(), at, len(BIG) - at)
            client.shutdown(socket.SHUT_WR)
        thread = in_thread(send)
        got = read_all(server)
        thread.join()
        return len(got), digest(got)


def names_and_options_are_known():
    with pair() as (server, client):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return (server.getsockname() == client.getpeername(),
                server.getpeername() == client.getsockname(),
                client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
                client.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR),
                client.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE),
                client.get_inheritable())


def nobody_listens():
    with listener() as listens:
        gone = listens.getsockname()
    with socket.socket(FAMILY) as one, socket.socket(FAMILY) as two:
        waited = failure(one.connect, gone)
        two.setblocking(False)
        begun = two.connect_ex(gone)
        if begun == errno.EINPROGRESS:
            select.select([], [two], [])
            begun = two.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return waited, errno.errorcode[begun]


def the_peer_is_gone():
    with pair() as (server, client):
        server.close()
        heard = client.recv(1)
        said = failure(lambda: [client.send(b"x" * 65536) for _ in range(1000)])
        return heard, said in ("EPIPE", "ECONNRESET")


def poll_says_what_there_is():
    with pair() as (server, client):
        poll = select.poll()
        poll.register(server, select.POLLIN | select.POLLOUT)
        poll.register(client, select.POLLIN)
        names = {server.fileno(): "server", client.fileno(): "client"}
        before = [(names[fd], events) for fd, events in poll.poll(LIMIT_MS)]
        server.sendall(b"x")
        poll.modify(server, select.POLLIN)
        after = [(names[fd], events) for fd, events in poll.poll(LIMIT_MS)]
        return before, after, select.select([client], [], [], 0)[0] == [client]


def epoll_says_what_there_is():
    with pair() as (server, client), select.epoll() as epoll:
        pipe = os.pipe()
        epoll.register(server, select.EPOLLIN)
        epoll.register(pipe[0], select.EPOLLIN)
        nothing = epoll.poll(0.02)
        client.sendall(b"x")
        said = [epoll.poll(30)[0] == (server.fileno(), select.EPOLLIN) for _ in range(2)]
        server.recv(1)
        os.write(pipe[1], b"x")
        said.append(epoll.poll(30) == [(pipe[0], select.EPOLLIN)])
        os.read(pipe[0], 1)
        epoll.modify(server, select.EPOLLIN | select.EPOLLONESHOT)
        client.sendall(b"x")
        said += [len(epoll.poll(30)), len(epoll.poll(0.02))]
        epoll.unregister(server)
        said.append(len(epoll.poll(0.02)))
        for fd in pipe:
            os.close(fd)
        return nothing, said


def many_are_served_by_one_loop():
    async def serve(reader, writer):
        while line := await reader.readline():
            writer.write(line.upper())
            await writer.drain()
        writer.close()

    async def ask(port, number):
        reader, writer = await asyncio.open_connection(ADDRESS, port)
        answers = []
        for turn in range(20):
            writer.write(b"client %d turn %d\n" % (number, turn))
            answers.append(await reader.readline())
        writer.close()
        return answers

    async def both():
        server = await asyncio.start_server(serve, ADDRESS, 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            return await asyncio.gather(*[ask(port, number) for number in range(20)])
    return digest(repr(asyncio.run(both())).encode())


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line.upper())


def serve_with(kind):
    """What clients hear, the connections of each being open at the same time."""
    class Server(kind):
        address_family = FAMILY
        allow_reuse_address = True
        request_queue_size = 64

    def talk(number, heard):
        socks = [socket.create_connection(server.server_address[:2]) for _ in range(3)]
        for turn in range(5):
            for sock in socks:
                sock.sendall(b"client %d turn %d\n" % (number, turn))
            for sock in socks:
                heard.append((number, sock.recv(100)))
        for sock in socks:
            sock.close()

    with Server((ADDRESS, 0), Echo) as server:
        thread = in_thread(server.serve_forever, 0.02)
        heard = []
        clients = [in_thread(talk, number, heard) for number in range(4)]
        for client in clients:
            client.join()
        server.shutdown()
        thread.join()
    return digest(repr(sorted(heard)).encode())


def threads_serve():
    return serve_with(socketserver.ThreadingTCPServer)


def datagrams_arrive():
    with socket.socket(FAMILY, socket.SOCK_DGRAM) as server, \
            socket.socket(FAMILY, socket.SOCK_DGRAM) as client:
        server.bind((ADDRESS, 0))
        client.connect(server.getsockname())
        heard = []
        for turn in range(20):
            client.send(b"datagram %d" % turn)
            octets, peer = server.recvfrom(2000)
            server.sendto(octets.upper(), peer)
            heard.append(client.recv(2000))
        return heard[0], heard[-1], peer[:2] == client.getsockname()[:2]


def dual_listener(kind):
    """Bound to all addresses of both families."""
    sock = socket.socket(socket.AF_INET6, kind)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind(("::", 0))
    return sock


def datagrams_of_both_families_arrive():
    heard = []
    with dual_listener(socket.SOCK_DGRAM) as server:
        port = server.getsockname()[1]
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"),
                                (socket.AF_INET6, "::ffff:127.0.0.1")):
            with socket.socket(family, socket.SOCK_DGRAM) as client:
                client.connect((address, port))
                client.settimeout(LIMIT_MS / 1000)
                for turn in range(5):
                    client.send(b"datagram %d" % turn)
                    octets, peer = server.recvfrom(2000)
                    server.sendto(octets.upper(), peer)
                    octets = client.recv(2000)
                heard.append((octets, peer[0], client.getpeername()[0]))
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as client:
            for turn in range(3):
                client.sendto(b"not connected", ("::ffff:127.0.0.1", port))
                octets, peer = server.recvfrom(2000)
                server.sendto(octets, peer)
                octets, peer = client.recvfrom(2000)
            heard.append((octets, peer[0], peer[1] == port))
    return heard


def streams_of_both_families_arrive():
    heard = []
    with dual_listener(socket.SOCK_STREAM) as listens:
        listens.listen()
        port = listens.getsockname()[1]
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"),
                                (socket.AF_INET6, "::ffff:127.0.0.1")):
            with socket.socket(family, socket.SOCK_STREAM) as client:
                thread = in_thread(client.connect, (address, port))
                server, peer = listens.accept()
                thread.join()
                with server:
                    heard.append((peer[0], server.getsockname()[0], server.getpeername()[0],
                                  client.getsockname()[0], client.getpeername()[0]))
    return heard


def a_listener_may_be_shut():
    said = []
    with listener() as listens, select.epoll() as epoll:
        address = listens.getsockname()
        epoll.register(listens, select.EPOLLIN)
        poll = select.poll()
        poll.register(listens, select.POLLIN)
        said.append(failure(listens.shutdown, socket.SHUT_WR))
        threads = [in_thread(lambda: said.append(failure(listens.accept)))]
        threads.append(in_thread(lambda: said.append([e[1] for e in poll.poll(LIMIT_MS)])))
        threads.append(in_thread(lambda: said.append([e[1] for e in epoll.poll(30)])))
        time.sleep(0.1)
        said.append(failure(listens.shutdown, socket.SHUT_RDWR))
        for thread in threads:
            thread.join()
        said = [said[0], sorted(map(str, said[1:]))]
        said += [failure(listens.accept), poll.poll(0)[0][1], failure(listens.getpeername)]
        with socket.socket(FAMILY) as client:
            said.append(failure(client.connect, address))
        said.append(failure(listens.shutdown, socket.SHUT_RDWR))
    return said


def who_writes_to_one_who_is_gone_hears_of_it():
    with pair() as (server, client):
        signals = []
        signal.signal(signal.SIGPIPE, lambda number, _: signals.append(number))
        server.close()
        while (said := failure(client.send, b"x", socket.MSG_NOSIGNAL)) == "no error: 1":
            time.sleep(0.01)
        quiet = len(signals)
        said = [said, failure(client.send, b"x"), failure(os.write, client.fileno(), b"x")]
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        return said, quiet, len(signals)


def the_last_words_to_one_who_is_gone_are_lost():
    with pair() as (server, client):
        server.close()
        select.select([client], [], [])
        heard = client.recv(1)
        said = failure(client.sendmsg, [b"one ", b"two"])
        time.sleep(0.1)
        return heard, said, failure(client.sendmsg, [b"one ", b"two"]), client.recv(1)


def times_run_out_amid_a_write():
    with pair() as (server, client):
        limit = struct.pack("ll", 0, 50000)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        counts = []
        with contextlib.suppress(BlockingIOError):
            while True:
                counts.append(client.send(BIG * 16))
        sent = sum(counts)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        got = 0
        while got < sent:
            got += len(server.recv(sent - got))
        client.send(b"a few")
        return 0 < counts[0] < 16 * len(BIG), server.recv(100, socket.MSG_WAITALL), \
            failure(server.recv, 1, socket.MSG_WAITALL)


def times_run_out_at_accept():
    with listener() as listens:
        listens.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 20000))
        return failure(listens.accept)


def times_run_out_for_datagrams():
    with socket.socket(FAMILY, socket.SOCK_DGRAM) as server:
        server.bind((ADDRESS, 0))
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 20000))
        return failure(server.recv, 1)


def what_is_not_ours_is_not_bound():
    said = []
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
        with socket.socket(FAMILY, kind) as sock:
            said.append(failure(sock.bind, (FAR, 0)))
    return said


def children_have_what_was_set_at_their_listener():
    with listener() as listens, socket.socket(FAMILY) as client:
        listens.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 20000))
        listens.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listens.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listens.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3))
        client.setblocking(False)
        client.connect_ex(listens.getsockname())
        select.select([listens], [], [])
        server, _ = listens.accept()
        with server:
            return (failure(server.recv, 1),
                    server.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8),
                    server.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                    server.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


def who_asks_again_learns_how_it_went():
    with listener() as listens, socket.socket(FAMILY) as client:
        address = listens.getsockname()
        client.setblocking(False)
        said = [failure(client.connect, address)]
        server, _ = listens.accept()
        with server:
            select.select([], [client], [])
            said += [failure(client.connect, address) for _ in range(3)]
            client.setblocking(True)
            said.append(failure(client.connect, address))
    with pair() as (server, client):
        said.append(failure(client.connect, server.getsockname()))
    return said


def epoll_knows_duplicates():
    with pair() as (server, client), select.epoll() as epoll:
        other = os.dup(server.fileno())
        names = {server.fileno(): "one", other: "other"}

        def said():
            return sorted((names[fd], events) for fd, events in epoll.poll(0.02))
        epoll.register(server, select.EPOLLIN)
        heard = [failure(epoll.register, server, select.EPOLLIN),
                 failure(epoll.register, other, select.EPOLLIN | select.EPOLLOUT)]
        heard.append(said())
        client.sendall(b"x")
        select.select([server], [], [])
        heard.append(said())
        epoll.modify(other, select.EPOLLIN | select.EPOLLONESHOT)
        heard += [said(), said()]
        epoll.unregister(server)
        heard += [said(), failure(epoll.unregister, server)]
        epoll.modify(other, select.EPOLLIN)
        heard.append(said())
        server.recv(1)
        heard.append(said())
        epoll.unregister(other)
        os.close(other)
        return heard


def epolls_may_be_within_others():
    def look():
        return [len(sets.poll(0.02)) for sets in (outer, inner)] + \
            [len(select.select([inner], [], [], 0)[0])]
    heard = []
    for early in True, False:
        with pair() as (server, client), select.epoll() as inner, select.epoll() as outer:
            if early:
                outer.register(inner, select.EPOLLIN)
            inner.register(server, select.EPOLLIN)
            if not early:
                outer.register(inner, select.EPOLLIN)
            look()  # an rsocket's may be told once in vain
            heard.append(look())
            client.sendall(b"xx")
            select.select([server], [], [])
            heard += [look(), look()]
            server.recv(1)
            heard.append(look())
            server.recv(1)
            look()
            heard.append(look())
            thread = in_thread(lambda: heard.append(len(outer.poll(30))))
            time.sleep(0.05)
            client.sendall(b"x")
            thread.join()
    return heard


def a_close_may_be_a_reset():
    said = []
    with pair() as (server, client):
        said.append(client.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 5))
        said.append(client.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(b"x")
        select.select([server], [], [])
        client.close()
        said += [server.recv(1), failure(server.recv, 1), server.recv(1)]
        said.append(failure(server.send, b"x"))
    return said


def forks_serve():
    """The server is a process of its own, and has children; the client asks from this one."""
    listens = listener()
    if not (parent := os.fork()):
        for _ in range(4):
            sock, _ = listens.accept()
            if not os.fork():
                listens.close()
                sock.sendall(b"child of " + exactly(sock, 5))
                os._exit(0)
            sock.close()
        for _ in range(4):
            os.wait()
        os._exit(0)
    address = listens.getsockname()
    listens.close()
    socks = [socket.create_connection(address[:2]) for _ in range(4)]
    for number, sock in enumerate(socks):
        sock.sendall(b"no. %d" % number)
    heard = [read_all(sock) for sock in reversed(socks)]
    os.waitpid(parent, 0)
    return heard


def main():
    alone = [octets_arrive_as_they_were, messages_are_gathered_and_scattered,
             a_peek_leaves_it_there, times_run_out, duplicates_are_the_same_socket,
             files_are_sent, names_and_options_are_known, nobody_listens, the_peer_is_gone,
             poll_says_what_there_is, epoll_says_what_there_is, many_are_served_by_one_loop,
             threads_serve, datagrams_arrive, datagrams_of_both_families_arrive,
             streams_of_both_families_arrive, a_listener_may_be_shut,
             who_writes_to_one_who_is_gone_hears_of_it,
             the_last_words_to_one_who_is_gone_are_lost, times_run_out_amid_a_write,
             times_run_out_at_accept, times_run_out_for_datagrams,
             children_have_what_was_set_at_their_listener, what_is_not_ours_is_not_bound,
             who_asks_again_learns_how_it_went, a_close_may_be_a_reset, epoll_knows_duplicates,
             epolls_may_be_within_others]
    with_forks = [octets_arrive_as_they_were, files_are_sent, many_are_served_by_one_loop,
                  threads_serve, forks_serve]
    asked = {"": alone, "fork": with_forks}
    what = "".join(sys.argv[2:])
    for function in asked.get(what) or [globals()[what]]:
        try:
            said = function()
        except Exception as error:      # pylint: disable=broad-except
            said = repr(error)
        print(f"{function.__name__}: {said}", flush=True)


main()
