#!/usr/bin/env python3
"""Event streams. Aim: every event reaches every stream once and in order, over reconnects and restarts of the
server and of PostgreSQL, also beside a leader that stalls before its COMMIT; it comes soon after the COMMIT; streams
occupy no thread, and those of clients that are gone are forgotten at once.
Method: SQL writes events as the leader does, a stalled one by the statements of sql/queries; clients read sockets.
"""
import ctypes
import glob
import http.client
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, wait_for
from kit.api import PSQL, Api, main, spec
from kit.postgres import Session

SOON_MS, SOON_QUIET_MS = 500, 5  # from COMMIT to a client, at p95; a SELECT and an answer without the database, on a quiet machine


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


def statement(name, *values):
    """A statement of the leader's, as sql/queries/lease.sql has it."""
    text = re.search(rf"-- name: {name}\n(.*?)(?:\n-- name:|\Z)", open(f"{TOP}/sql/queries/lease.sql").read(), re.S)[1]
    text = "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()
    for i, value in enumerate(values):
        text = text.replace(f"${i + 1}", value)
    return text


class Leader(Session):
    """A session that leads: it takes the lease, and writes events as every transaction of a leader does."""

    def __init__(self, a, name):
        super().__init__([PSQL, "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", a.pg.dir, "-U", "drover", "-d", a.db])
        self.name, self.epoch, self.pid = name, None, self.ask("SELECT pg_backend_pid()")

    def lead(self):
        self.epoch = self.ask(statement("lease_take", f"'{self.name}'", "10000000")).splitlines()[-1].split("|")[0]

    def begin(self, n=1):
        """Up to COMMIT; the ids it has taken."""
        ids = self.ask(f"BEGIN; {statement('lease_check', self.epoch)}; INSERT INTO event (campaign_id, kind, detail) SELECT 1, 'part.state', json_build_object('n', i, 'text', '{self.name}') "
                       f"FROM generate_series(1, {n}) i RETURNING id")
        return [int(x) for x in ids.splitlines() if x.isdigit()]

    def commit(self):
        self.ask("NOTIFY drover_events; COMMIT")


def check_stalled(t, a):
    """A leader has the ids of its events and stalls before COMMIT. Another one that takes over is given later ids: none of them may be
    committed, and so seen, while those before may still come."""
    writers = {os.path.basename(f) for f in glob.glob(TOP + "/sql/queries/*.sql") if "INSERT INTO event " in open(f).read()}
    t.ok(len(writers) > 3 and not [f for f in writers if f.startswith(("api_", "notices"))], "only the leader, which has one connection, writes events", writers)
    old, new, third = (Leader(a, name) for name in ("old", "new", "third"))
    old.lead()
    s = Stream(a)
    first = old.begin(3)
    got = []

    def takes_over(leader):
        leader.lead()
        got.extend(leader.begin(2))
        leader.commit()

    def waits(leader, behind):
        return wait_for(lambda: s.read() or a.sql(f"SELECT {behind.pid} = ANY (pg_blocking_pids({leader.pid}))") == "t" or not thread.is_alive(), 20)

    thread = threading.Thread(target=takes_over, args=(new,))
    thread.start()
    waits(new, old)
    t.ok(thread.is_alive() and not got and not s.events(), "the next leader gets no id while the one before it stalls", (got, s.events()))
    event(a, 0)  # a NOTIFY: the stream looks, and may not pass by what it does not see yet
    old.commit()
    thread.join()
    seen = [e[0] for e in s.wait(5)]
    t.ok(got and min(got) > max(first), "it is given later ones", (first, got))
    t.eq(seen, first + got, "a stream has what the stalled one committed, then the next one's: none is skipped")
    lost, before = new.begin(3), len(got)
    held = new.ask(statement("lease_try_lock"))
    thread = threading.Thread(target=takes_over, args=(third,))
    thread.start()
    waits(third, new)
    evicted = a.sql(statement("lease_evict"))
    thread.join()
    refused = False
    try:
        new.commit()
    except RuntimeError:
        refused = True
    seen = [e[0] for e in s.wait(7)]
    left = a.sql(f"SELECT count(*) FROM event WHERE id IN ({','.join(map(str, lost))})")
    t.ok((held, evicted, left) == ("t", "1", "0") and refused and min(got[before:]) > max(lost), "one that is ended instead commits nothing any more", (held, evicted, left, refused, lost, got))
    t.eq(seen, first + got, "and the stream goes on with what there is")
    for x in (old, new, third, s):
        x.close()


def p95(ms):
    return sorted(ms)[len(ms) * 95 // 100 - 1]


def check_soon(t, a):
    """From COMMIT to another client, at p95. Where a SELECT and an answer without the database take longer than on a quiet machine, so may this."""
    with_db = Session([PSQL, "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", a.pg.dir, "-U", "drover", "-d", a.db])
    c = http.client.HTTPConnection("127.0.0.1", a.port)
    s, ms, beside = Stream(a, rcvbuf=1 << 20), [], []
    s.s.settimeout(5)
    for i in range(200):
        with_db.ask("BEGIN; INSERT INTO event (campaign_id, kind, detail) VALUES (1, 'part.state', '{}'); NOTIFY drover_events")
        began = time.monotonic()
        with_db.ask("COMMIT")
        while s.text.count(b"data: {") <= i and not s.ended:
            s.read()
        ms.append((time.monotonic() - began) * 1000)
        began = time.monotonic()
        with_db.ask("SELECT 1")
        c.request("GET", "/livez")
        c.getresponse().read()
        beside.append((time.monotonic() - began) * 1000)
    bound = SOON_MS * max(1, p95(beside) / SOON_QUIET_MS)
    ms.sort()
    print(f"# from COMMIT to a client: p50 {ms[100]:.1f}, p95 {p95(ms):.1f}, at most {ms[-1]:.1f} ms; a SELECT and an answer beside it: p95 {p95(beside):.1f} ms", flush=True)
    t.ok(len(s.events()) == 200 and p95(ms) <= bound, f"of 200 events, each by itself, p95 comes within {SOON_MS} ms of a quiet machine", (p95(ms), bound))
    for x in (with_db, c, s):
        x.close()


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
    check_stalled(t, a)
    check_soon(t, a)
    check_lost(t, a, lost, n)
    s = check_restart(t, a, pg)
    status, log = a.close()  # it has 30 s
    t.ok(status == 0, "the server ends with streams open", (status, log[-2000:]))
    wait_for(lambda: s.read() or s.ended, 5)
    t.ok(s.ended, "and they end")


if __name__ == "__main__":
    main(run)
