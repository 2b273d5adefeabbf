#!/usr/bin/env python3
"""Event streams. Aim: every event reaches every stream once and in order, over reconnects and restarts of the
server and of PostgreSQL; streams occupy no thread, and those of clients that are gone are forgotten at once.
Method: SQL writes events as the leader does; clients read sockets.
"""
import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import wait_for
from kit.api import PSQL, Api, main, spec


class Stream:
    def __init__(self, a, path="/v1/events", after=None, rcvbuf=None, token=None):
        self.s = socket.socket()
        if rcvbuf:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.s.connect(("127.0.0.1", a.port))
        last = f"Last-Event-ID: {after}\r\n" if after is not None else ""
        self.s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token or a.token}\r\n{last}\r\n".encode())
        self.text, self.ended = b"", False
        self.s.settimeout(0.02)
        wait_for(lambda: self.read() or b"\r\n\r\n" in self.text, 5)

    def read(self):
        try:
            got = self.s.recv(1 << 20)
            self.ended |= not got
            self.text += got
        except (socket.timeout, ConnectionError) as e:
            self.ended |= isinstance(e, ConnectionError)
        return None

    def status(self):
        return int(self.text.split()[1]) if self.text else 0

    def events(self):
        """(id, kind, data) so far; chunk sizes are dropped."""
        head, _, body = self.text.partition(b"\r\n\r\n")
        data = b""
        if b"chunked" in head.lower():
            while True:
                size, sep, rest = body.partition(b"\r\n")
                if not sep or not size:
                    break
                n = int(size, 16)
                data += rest[:n]
                body = rest[n + 2:]
                if n == 0:
                    break
        else:
            data = body
        out = []
        for block in data.decode().split("\n\n")[:-1]:
            f = dict(x.split(": ", 1) for x in block.split("\n") if ": " in x and not x.startswith(":"))
            if "data" in f:
                out.append((int(f["id"]), f["event"], json.loads(f["data"])))
        return out

    def wait(self, n, seconds=10):
        wait_for(lambda: self.read() or self.text.count(b"data: {") >= n, seconds, step=0)
        return self.events()

    def close(self):
        self.s.close()

    def reset(self):
        reset(self.s)

    def vanish(self):
        """As if the cable were cut: a filter drops all that comes from the server, its acknowledgements too."""
        code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))  # return 0: keep no byte
        self.s.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HxxxxxxQ", 1, ctypes.addressof(code)))  # SO_ATTACH_FILTER


def reset(s):
    """Close with RST."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def counted(a):
    return int(re.search(rb"droverd_http_streams (\d+)", a.raw("GET", "/metrics")[1]).group(1))


# A client with streams, to be killed. It reads the heads only, or nothing.
CLIENT = """
import socket, sys, time
port, token, n, read = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "read"
held = []
for _ in range(n):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(f"GET /v1/events HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer {token}\\r\\n\\r\\n".encode())
    got = b""
    while read and b"retry:" not in got:
        got += s.recv(1) or sys.exit("the stream has ended")
    held.append(s)
print("open", flush=True)
time.sleep(1000)
"""


def killed(a, n, how, token=None):
    """n streams of a client that is killed."""
    before = counted(a)
    with subprocess.Popen([sys.executable, "-c", CLIENT, str(a.port), token or a.token, str(n), how], stdout=subprocess.PIPE) as p:
        try:
            p.stdout.readline()
            wait_for(lambda: counted(a) == before + n, 10)
        finally:
            p.kill()


def event(a, n=1, campaign=1, text="x"):
    return a.sql(f"INSERT INTO event (campaign_id, kind, detail) SELECT {campaign}, 'part.state', json_build_object('n', i, 'text', '{text}') FROM generate_series(1, {n}) i; "
                 "NOTIFY drover_events; SELECT max(id) FROM event;")


def check_basic(t, a):
    s = Stream(a)
    t.ok(s.status() == 200 and b"text/event-stream" in s.text and b"default-src 'none'" in s.text, "a stream opens", s.text[:300])
    began = time.monotonic()
    last = int(event(a))
    e = s.wait(1)
    t.ok(len(e) == 1 and e[0][0] == last and e[0][1] == "part.state" and e[0][2]["campaign"] == "c-1" and e[0][2]["detail"]["n"] == 1, f"an event comes in {time.monotonic() - began:.3f} s", e)
    event(a, 1000)
    e = s.wait(1001)
    t.eq([x[0] for x in e], list(range(last, last + 1001)), "a thousand come in order, none twice")
    mine, other = Stream(a, "/v1/campaigns/c-1/events"), Stream(a, "/v1/events?topics=campaign:c-2")
    event(a, 3, 2)
    event(a, 2, 1)
    t.eq([x[2]["campaign"] for x in mine.wait(2)], ["c-1", "c-1"], "a campaign's stream has its events only")
    t.eq([x[2]["campaign"] for x in other.wait(3)], ["c-2"] * 3, "and so has a topic")
    again = Stream(a, after=last + 500)
    t.eq([x[0] for x in again.wait(505)], list(range(last + 501, last + 1006)), "Last-Event-ID goes on where it was, over 500 a read")
    by_query = Stream(a, f"/v1/events?after={last + 1003}")
    t.eq(len(by_query.wait(2)), 2, "?after= as well")
    t.eq(Stream(a, after=10 ** 9).wait(1)[0][1], "resync", "an id of another time: resync")
    for path in ("/v1/events?topics=x", "/v1/events?after=-1", "/v1/campaigns/c-9/events"):
        t.ok(Stream(a, path).status() in (400, 404), f"{path} is refused")
    t.eq(Stream(a, after="x").status(), 400, "Last-Event-ID x is refused")
    return last


def check_scoped(t, a):
    """A token of some projects has a stream of their events, live and late, and learns of no other's."""
    secret = "p" * 64
    third = a.submit(spec("three", top="project: laion"))[1]["id"]
    n = int(third[2:])
    a.sql(f"INSERT INTO token (id, hash, role, projects) VALUES ('scoped', sha256('{secret}'), 'viewer', '{{laion,web}}')")
    tok = "scoped." + secret
    s = Stream(a, token=tok)
    first = int(event(a, 1, n))
    event(a, 1, 1)
    last = int(event(a, 1, n))
    t.eq([x[2]["campaign"] for x in s.wait(2)], [third] * 2, "a token of a project gets the events of its campaigns")
    event(a, 1200, 1)
    event(a, 1, 999999)
    last = int(event(a, 1, n))
    t.eq([x[0] for x in s.wait(3)][2:], [last], "after more events of others than one read has")
    late = Stream(a, after=first, token=tok)
    t.eq([(x[0], x[2]["campaign"]) for x in late.wait(2)][1:], [(last, third)], "a late stream has those it missed, past the others'")
    event(a, 1, n)
    t.eq([len(late.wait(3)), {x[2]["campaign"] for x in late.events()}], [3, {third}], "and goes on")
    t.eq([Stream(a, f"/v1/events?topics=campaign:c-{c}", token=tok).status() for c in (n, 1, 999999)], [200, 404, 404], "the topic of another project's campaign is not there")
    for x in (s, late):
        x.close()


def check_many(t, a):
    secret = "s" * 64
    a.sql(f"INSERT INTO token (id, hash, role) SELECT 'many-' || i, sha256('{secret}'), 'viewer' FROM generate_series(0, 9) i")
    streams = [Stream(a, token=f"many-{i % 10}.{secret}") for i in range(100)]  # a token may have 16
    t.eq({s.status() for s in streams}, {200}, "a hundred streams are open")
    t.eq(a.get("/v1/campaigns/c-1")[0], 200, "and hold no worker: another question is answered while they are open")
    last = int(event(a, 50))
    want = list(range(last - 49, last + 1))
    t.ok(all([x[0] for x in s.wait(50)] == want for s in streams), "each gets every event once")
    for s in streams[:50]:
        s.close()
    event(a, 1)
    t.ok(all(len(s.wait(51)) == 51 for s in streams[50:]), "others leaving disturbs none")
    for s in streams:
        s.close()


def check_gone(t, a):
    """The server learns at once that a client is gone, with bytes on the way to it or not: nobody waits for a heartbeat."""
    def forgotten(what, n):
        began = time.monotonic()
        gone = wait_for(lambda: counted(a) == n, 5)
        t.ok(gone, f"{what}: forgotten after {time.monotonic() - began:.2f} s", counted(a))

    secret = "g" * 64
    a.sql(f"INSERT INTO token (id, hash, role) SELECT 'gone-' || i, sha256('{secret}'), 'viewer' FROM generate_series(0, 1) i")
    tokens = [f"gone-{i}.{secret}" for i in range(2)]
    forgotten("those of the checks before", 0)
    lost = Stream(a, "/v1/campaigns/c-2/events")
    lost.vanish()
    event(a, 1, 2)
    n = 1
    for what, leave in (("closed", Stream.close), ("reset", Stream.reset)):
        for s in [Stream(a) for _ in range(3)]:
            leave(s)
        forgotten(f"idle streams that are {what}", n)
        held = [Stream(a, rcvbuf=4096) for _ in range(3)]
        event(a, 1000, text="y" * 1000)
        for s in held:
            leave(s)
        forgotten(f"{what} ones with bytes that wait", n)
    for how in ("read", "leave"):
        killed(a, 3, how)
        forgotten(f"streams of a client that is killed ({how})", n)
    full = [Stream(a, token=tokens[0]) for _ in range(17)]
    t.eq([s.status() for s in full], [200] * 16 + [429], "a token has its 16 streams")
    for s in full:
        s.close()
    forgotten("all streams of a token", n)
    killed(a, 16, "read", tokens[0])
    t.ok(wait_for(lambda: Stream(a, token=tokens[0]).status() == 200, 5), "and a killed client's 16 hinder no new one")
    half = Stream(a, token=tokens[1])
    half.s.shutdown(socket.SHUT_WR)
    t.ok(wait_for(lambda: half.read() or b": still here" in half.text, 20), "a client that only ended its own side is asked")
    event(a)
    t.eq(len(half.wait(1)), 1, "and goes on to read")
    half.reset()
    check_gone_early(t, a, tokens[1])
    forgotten("streams whose client went before their answer began", n)
    return lost, n


def check_gone_early(t, a, token):
    """Clients leave while the handler still works, with a second request on the way."""
    request = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    with subprocess.Popen([PSQL, "-XqAt", "-h", a.pg.dir, "-U", "drover", "-d", a.db], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as lock:
        print("BEGIN; LOCK TABLE event; SELECT 1;", file=lock.stdin, flush=True)
        lock.stdout.readline()
        held = [socket.create_connection(("127.0.0.1", a.port)) for _ in range(6)]
        for s in held:
            s.sendall(request * 2)
        waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'event'::regclass AND NOT granted"
        t.ok(wait_for(lambda: int(a.sql(waiting)) >= len(held), 10), "handlers wait for the table")
        for s in held:
            reset(s)
        print("COMMIT;", file=lock.stdin, flush=True)
        lock.stdin.close()
    t.ok(wait_for(lambda: int(a.sql(waiting)) == 0, 10), "and get it")


def check_lost(t, a, lost, n):
    """Bytes that a machine does not acknowledge for 30 s: it has vanished."""
    t.ok(wait_for(lambda: counted(a) < n, 60), "a client that vanished is forgotten", counted(a))
    lost.close()


def check_slow(t, a):
    slow, quick = Stream(a, rcvbuf=65536), Stream(a)
    first = int(event(a, 1))
    for _ in range(16):
        event(a, 500, text="y" * 1000)
    t.eq(len(quick.wait(8001, 20)), 8001, "a reader that does not read holds up no other")
    ids = [x[0] for x in slow.wait(8001, 60)]
    t.ok(ids == list(range(first, first + 8001)), "and gets all in the end: none lost, none doubled")


def check_restart(t, a, pg):
    s = Stream(a)
    first = int(event(a, 5))
    got = [x[0] for x in s.wait(5)]
    a.kill()
    event(a, 5)
    a.start()
    s = Stream(a, after=got[-1])
    event(a, 5)
    got += [x[0] for x in s.wait(10)]
    t.eq(got, list(range(first - 4, first + 11)), "over kill -9 of the server: every event once")
    pg.stop("immediate")
    t.ok(wait_for(lambda: a.get("/v1/campaigns/c-1")[0] == 503, 5), "without its database the API says 503")
    t.eq(a.get("/livez")[0], 200, "and lives")
    pg.start()
    t.ok(wait_for(lambda: a.get("/v1/campaigns/c-1")[0] == 200, 10), "with it, it answers again")
    last = int(event(a, 5))
    ids = [x[0] for x in s.wait(15, 15)][10:]
    t.eq(ids, list(range(last - 4, last + 1)), "and the open stream goes on")
    return s


def run(t, pg):
    a = Api(pg)
    a.objects("data", ["meta/p.parquet"])
    a.submit(spec("one"))
    a.submit(spec("two"))
    check_basic(t, a)
    check_scoped(t, a)
    check_many(t, a)
    lost, n = check_gone(t, a)
    check_slow(t, a)
    check_lost(t, a, lost, n)
    s = check_restart(t, a, pg)
    status, log = a.close()  # it has 30 s
    t.ok(status == 0, "the server ends with streams open", (status, log[-2000:]))
    wait_for(lambda: s.read() or s.ended, 5)
    t.ok(s.ended, "and they end")


if __name__ == "__main__":
    main(run)
