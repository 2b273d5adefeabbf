#!/usr/bin/python3
"""Aim: a temporary failure of hosts or of the network costs no row that would have been answered, and a host
that is gone for good costs no time. Method: servers with a switch: while it is off, requests never get an
answer. Sizes and seconds are small; with `full` they are those promised (ten hosts silent for 12 s with
8,000 rows; a network down for 90 s). Names of tests may be given.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *

tap = Tap()
PHOTO = encode(photo(90, 70, 1), "JPEG")
FULL = "full" in sys.argv[1:]
serial = iter(range(10 ** 6))
ESTABLISHED = 1  # tcpi_state


class Moody:
    """A host that answers while it is on. most is the maximum of unanswered requests at once over all hosts, open of those
    and the ones about to be answered. Which of them the worker has given up is asked of the kernel: 500 threads of Python
    hear of it late.
    """
    most, open = 0, 0
    sets = {"most": set(), "open": set()}
    lock = threading.Lock()

    @staticmethod
    def note(what, c):
        """A request begins; with lock."""
        inside = Moody.sets[what]
        inside.add(c)
        if len(inside) > getattr(Moody, what):
            there = sum(x.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == ESTABLISHED for x in inside)
            setattr(Moody, what, max(getattr(Moody, what), there))

    def __init__(self, addr, pause=0.0):
        self.on, self.pause, self.lost, self.served = True, pause, 0, 0
        self.sock = socket.create_server((addr, 0), backlog=1024)
        self.net = "%s:%d" % self.sock.getsockname()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            c, _ = self.sock.accept()
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def answer(self, path):
        return (b"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(PHOTO)) + PHOTO

    def serve(self, c):
        got = b""
        try:
            while True:
                while b"\r\n\r\n" not in got:
                    piece = c.recv(4096)
                    if not piece:
                        return
                    got += piece
                head, got = got.split(b"\r\n\r\n", 1)
                with Moody.lock:
                    Moody.note("open", c)
                if not self.on:
                    self.hold(c)
                    return
                if self.pause:
                    time.sleep(self.pause)
                self.served += 1
                with Moody.lock:
                    Moody.sets["open"].discard(c)
                c.sendall(self.answer(head.split(b" ", 2)[1].decode()))
        except OSError:
            pass
        finally:
            with Moody.lock:
                for inside in Moody.sets.values():
                    inside.discard(c)
            c.close()

    def hold(self, c):
        with Moody.lock:
            self.lost += 1
            Moody.note("most", c)
        c.recv(1)


def begin(d, urls, allow, *args, **kw):
    n = next(serial)
    part, out = os.path.join(d, "s%d.parquet" % n), kw.pop("out", None) or os.path.join(d, "s%d" % n)
    make_parquet(part, [{"url": u, "n": i} for i, u in enumerate(urls)], {"url": "VARCHAR", "n": "INTEGER"})
    allowed = [x for a in allow for x in ("--allow-net", a)]
    return out, start(["--parquet", part, "--output", out, "--save_additional_columns", "n",
                       "--number_sample_per_shard", kw.pop("shard", 1000), "--disable_all_reencoding", "true",
                       "--progress_interval", 1] + allowed + list(args))


def rows_of(out):
    rows = [r for f in sorted(os.listdir(out)) if f.endswith(".parquet") for r in read_parquet(os.path.join(out, f))]
    return [r["error_message"] or r["status"] for r in sorted(rows, key=lambda r: r["n"])]


def ended(p, out, n, timeout=300):
    rc, so, se = finish(p, timeout)
    tap.ok(rc == 0, "the worker ends well", "%d %s" % (rc, se[-2000:]))
    got = rows_of(out)
    tap.eq(len(got), n, "every row comes out once")
    return got, so


def silent_when(hosts, served, seconds, p):
    """Off once that many were served, on again after a time. Returns the time it was on again."""
    wait_for(lambda: sum(h.served for h in hosts) >= served or p.poll() is not None, 120)
    for h in hosts:
        h.on = False
    time.sleep(seconds)
    for h in hosts:
        h.on = True
    return time.monotonic()


def test_all_silent(d):
    """Ten hosts, all the part has: most hosts at once, so our network is at fault, and even a row without a
    retry is not lost.
    """
    for retries in (2, 0):
        hosts = [Moody("127.0.1.%d" % (i + 1), 0.02) for i in range(10)]
        n = 8000 if FULL else 1500
        Moody.most = 0
        out, p = begin(d, ["http://%s/%d" % (hosts[i % 10].net, i) for i in range(n)], [h.net for h in hosts],
                       "--retries", retries, *(() if FULL else ("--timeout", 3)))
        silent_when(hosts, n // 10, 12 if FULL else 7, p)
        got, said = ended(p, out, n)
        tap.eq(got.count("success"), n, "retries %d: ten hosts silent for longer than the timeout: no row lost (%d asked in vain)"
               % (retries, sum(h.lost for h in hosts)))
        tap.ok(Moody.most <= 512, "never more than thread_count in flight with silent hosts", Moody.most)
        tap.ok("the network is down" in said, "the heartbeat says so", said[-500:])


def test_many_silent(d):
    """However many hosts fall silent at once, no more transfers are open than thread_count: those that have waited for
    long count like all others, those of slow hosts and the one that asks a silent host too.
    """
    for n_hosts, pause in ((20, 0.02), (40, 1.4)):
        hosts = [Moody("127.0.6.%d" % (i + 1), pause) for i in range(n_hosts)]
        n = 2000
        Moody.most = 0
        out, p = begin(d, ["http://%s/%d" % (hosts[i % n_hosts].net, i) for i in range(n)], [h.net for h in hosts],
                       "--timeout", 4)
        silent_when(hosts, n // 10, 8, p)
        got, said = ended(p, out, n)
        tap.eq(got.count("success"), n, "%d hosts silent at once: no row lost, without a retry" % n_hosts)
        tap.ok(256 < Moody.most <= 512, "%d hosts silent at once: no more than thread_count in flight with them" % n_hosts,
               Moody.most)


def test_some_silent(d):
    """Ten of fifty hosts: only their rows wait, the others continue."""
    for retries in (2, 0):
        hosts = [Moody("127.0.2.%d" % (i + 1), 0.05) for i in range(50)]
        n = 8000 if FULL else 3000
        Moody.open = 0
        out, p = begin(d, ["http://%s/%d" % (hosts[i % 50].net, i) for i in range(n)], [h.net for h in hosts],
                       "--retries", retries, "--thread_count", 64, *(() if FULL else ("--timeout", 3)))
        wait_for(lambda: sum(h.served for h in hosts) >= n // 10, 60)
        before = sum(h.served for h in hosts[10:])
        silent_when(hosts[:10], 0, 12 if FULL else 7, p)
        tap.ok(sum(h.served for h in hosts[10:]) > before + n // 10, "the others go on meanwhile")
        got, said = ended(p, out, n)
        lost = n - got.count("success")
        most = 0 if retries else 128
        tap.ok(lost <= most, "retries %d: ten of fifty hosts silent: %d of %d rows lost, at most %d" % (
            retries, lost, n, most), collections.Counter(got))
        tap.ok(100 < Moody.open <= 128, "those with silent hosts included, never more than thread_count are open", Moody.open)


def test_for_ever(d):
    """One host of twelve falls silent for good: its rows fail soon, with the reason."""
    waits = 60 if FULL else 6
    for retries in (2, 0):
        hosts = [Moody("127.0.3.%d" % (i + 1), 0.01) for i in range(12)]
        n = 2400
        extra = [] if FULL else ["--timeout", 2, "--host_patience", waits]
        out, p = begin(d, ["http://%s/%d" % (hosts[i % 12].net, i) for i in range(n)], [h.net for h in hosts],
                       "--retries", retries, *extra)
        wait_for(lambda: hosts[0].served >= 20, 60)
        hosts[0].on = False
        served = lambda: sum(h.served for h in hosts[1:])
        wait_for(lambda: served() >= n // 12 * 11, 120)
        last = time.monotonic()
        got, said = ended(p, out, n)
        took = time.monotonic() - last
        lost = [t for i, t in enumerate(got) if i % 12 == 0 and t != "success"]
        tap.eq((got.count("success"), set(lost) - {"timed out", "host has stopped answering",
                                                   "host has stopped answering, not tried"}),
               (n - len(lost), set()), "retries %d: the rows of the silent host fail with the reason" % retries)
        tap.ok(took <= patience(4 * waits), "and the part ends after our patience, not after 200 time-outs: %.1f s" % took)
        tap.ok(hosts[0].lost <= 64 + 40, "it was asked one by one: %d times" % hosts[0].lost)


def test_network_away(d):
    """All of many hosts, each with a few rows, silent for a while; and for ever: the part ends with its
    shards kept.
    """
    hosts = [Moody("127.0.4.%d" % (i + 1), 0.02) for i in range(60)]
    n = 6000 if FULL else 2000
    urls = ["http://%s/%d" % (hosts[i * 7 % 60].net, i) for i in range(n)]
    out, p = begin(d, urls, [h.net for h in hosts], "--thread_count", 32, *(() if FULL else ("--timeout", 2)))
    silent_when(hosts, n // 5, 90 if FULL else 9, p)
    got, said = ended(p, out, n)
    tap.eq(got.count("success"), n, "a network away in mid-part: no row lost, without a retry")
    out = os.path.join(d, "away")
    args = ["--thread_count", 32, "--timeout", 2, "--network_patience", 4]
    for h in hosts:
        h.served = 0
    out, p = begin(d, urls, [h.net for h in hosts], *args, out=out, shard=100)
    wait_for(lambda: sum(h.served for h in hosts) >= n // 2, 60)
    for h in hosts:
        h.on = False
    rc, so, se = finish(p)
    done = sorted(f for f in os.listdir(out) if f.endswith("_stats.json"))
    tap.ok(rc == 75 and "network is down" in se, "away for longer than we wait: the cause is the network", "%d %s" % (rc, se[-800:]))
    tap.ok(len(done) > 3 and all(load(out, f)["successes"] == 100 for f in done), "finished shards are kept, whole", done)
    for h in hosts:
        h.on, h.served = True, 0
    out, p = begin(d, urls, [h.net for h in hosts], *args, out=out, shard=100)
    got, so = ended(p, out, n)
    tap.eq(got.count("success"), n, "the next attempt goes on from them")
    tap.ok(sum(h.served for h in hosts) <= n - 100 * len(done), "and fetches the rest alone")


class Sends(Moody):
    """Redirects everything to another host."""

    def __init__(self, addr, to):
        super().__init__(addr)
        self.to = to

    def answer(self, path):
        return ("HTTP/1.1 302 Found\r\nLocation: http://%s%s\r\nContent-Length: 0\r\n\r\n" % (self.to, path)).encode()


class Busy(Moody):
    """After its first answers it asks for pauses of a second for a while."""
    until = None
    spell = 6  # seconds

    def answer(self, path):
        self.until = self.until or time.monotonic() + self.spell
        if time.monotonic() < self.until:
            return b"HTTP/1.1 429 Too Many\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
        return super().answer(path)


def test_redirected_pause(d):
    for retries in (2, 1):
        busy = Busy("127.0.5.1", 0.01)
        busy.spell = 3 * retries  # as many pauses as a row of so many tries sits out, on a busy machine too
        doors = [Sends("127.0.5.%d" % (i + 2), busy.net) for i in range(4)]
        n = 1000
        out, p = begin(d, ["http://%s/%d" % (doors[i % 4].net, i) for i in range(n)], [h.net for h in doors + [busy]],
                       "--retries", retries, "--timeout", 3)
        got, so = ended(p, out, n)
        tap.eq(got.count("success"), n, "retries %d: 1,000 rows by redirect to a host that asks for pauses: none lost" % retries)


TESTS = (test_all_silent, test_many_silent, test_some_silent, test_for_ever, test_network_away, test_redirected_pause)
names = [a for a in sys.argv[1:] if a != "full"]
with Folder() as d:
    for test in TESTS:
        if not names or test.__name__ in names:
            test(d)
sys.exit(tap.done())
