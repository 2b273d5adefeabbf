#!/usr/bin/python3
"""Aim: the worker respects web servers, and not at the cost of other hosts: a limit of transfers per host,
Retry-After obeyed, a dripping body given up early, a host that has stopped answering left alone; and with
dead and dripping hosts among the rows, the others finish as fast as without. Method: servers that count
concurrent requests and their times. Names of tests may be given: worker_hosts.py test_fetch_threads.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *

tap = Tap()
PHOTO = encode(photo(90, 70, 1), "JPEG")
serial = iter(range(10 ** 6))


def download(d, urls, *args, allow=()):
    """Error texts or 'success' in the order of the URLs, and seconds."""
    n = next(serial)
    part, out = os.path.join(d, "h%d.parquet" % n), os.path.join(d, "h%d" % n)
    make_parquet(part, [{"url": u, "n": i} for i, u in enumerate(urls)], {"url": "VARCHAR", "n": "INTEGER"})
    allowed = [x for a in allow for x in ("--allow-net", a)]
    began = time.monotonic()
    rc, so, se = run(["--parquet", part, "--output", out, "--save_additional_columns", "n"] + allowed + list(args))
    took = time.monotonic() - began
    tap.ok(rc == 0, "the worker ends well", "%d %s" % (rc, se))
    rows = [r for f in sorted(os.listdir(out)) if f.endswith(".parquet") for r in read_parquet(os.path.join(out, f))]
    tap.eq(sorted(r["n"] for r in rows), list(range(len(urls))), "every row comes out once")
    return [r["error_message"] or r["status"] for r in sorted(rows, key=lambda r: r["n"])], took


class Crowd:
    """A route that holds each request for a moment, the first ones until `until` are inside at once (or 15 s),
    and records the maximum of concurrent ones."""

    def __init__(self, server, paths, hold, until=0):
        self.now = self.most = 0
        self.until = until
        self.lock = threading.Condition()
        self.hold = hold
        for p in paths:
            server.routes[p] = self.answer

    def answer(self, h):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.lock.notify_all()
            if not self.lock.wait_for(lambda: self.most >= self.until, 15):
                self.until = 0
        time.sleep(self.hold)
        with self.lock:
            self.now -= 1
        h.answer(200, {}, PHOTO)


def test_limit_per_host(d):
    a, b = Server("127.0.0.1"), Server("127.0.0.2")
    paths = ["/%d" % i for i in range(120)]
    slow, quick = Crowd(a, paths, 0.05, 4), Crowd(b, paths, 0)
    a.serve("/in", PHOTO)
    b.routes["/hop"] = (302, {"Location": a.url("/0")}, b"")
    urls = [s.url(p) for p in paths for s in (a, b)] + [b.url("/hop")] * 10
    got, took = download(d, urls, "--host_connections", 4, allow=[a.net, b.net])
    tap.eq(set(got), {"success"}, "rows of busy hosts wait and are done")
    tap.eq(slow.most, 4, "not one transfer too many, and not one too few, redirects counted")
    tap.ok(quick.most <= 4, "nor at the other host", quick.most)
    a.hits.clear()
    slow.most, slow.until = 0, 5
    got, took = download(d, urls[:64], "--host_connections", 100, allow=[a.net, b.net])
    tap.ok(slow.most > 4, "the limit is the setting's", slow.most)


def test_fetch_threads(d):
    """Several fetching threads obey the limit like one: twelve hosts of which half redirect to the same other
    host, four threads.
    """
    hosts = [Server("127.0.5.%d" % (i + 1)) for i in range(12)]
    target = Server("127.0.0.1")
    paths = ["/%d" % i for i in range(20 if VARIANT == "release" else 8)]
    inside = Crowd(target, paths, 0.05, 3)
    total = Crowd(hosts[0], [], 0.05, 2)
    for i, s in enumerate(hosts):
        for p in paths:
            s.routes[p] = (302, {"Location": target.url(p)}, b"") if i % 2 else total.answer
    urls = [s.url(p) for p in paths for s in hosts]
    allow = [s.net for s in hosts + [target]]
    four = ["--fetch_threads", 4, "--processes_count", 1, "--timeout", 60]
    got, took = download(d, urls, "--host_connections", 3, *four, allow=allow)
    tap.eq(set(got), {"success"}, "four threads: every row is there, redirected over or not")
    tap.eq(inside.most, 3, "what a host may be asked for counts for all of them together")
    total.most = 0
    got, took = download(d, urls, "--thread_count", 6, *four, allow=allow)
    tap.eq(set(got), {"success"}, "six transfers for four threads")
    tap.ok(1 < total.most <= 6, "all threads have transfers, six together", total.most)
    with socket.socket() as kept:  # for itself, so that nobody answers there
        kept.bind(("0.0.0.0", 0))
        gone = kept.getsockname()[1]
        got, took = download(d, ["http://127.0.0.%d:%d/" % (i % 200 + 1, gone) for i in range(40)] + urls[:1], *four,
                             allow=["127.0.0.0/24:*"] + allow)
    tap.eq((got.count("success"), len(set(got))), (1, 2), f"40 refusals are no dead network: {sorted(set(got))}")


def test_retry_after(d):
    a, b, c = Server("127.0.0.1"), Server("127.0.0.2"), Server("127.0.0.6")
    times = {a: [], c: []}

    def busy(server, pause):
        def answer(h):
            times[server].append(time.monotonic())
            h.answer(*((429, {"Retry-After": pause}, b"") if len(times[server]) == 1 else (200, {}, PHOTO)))
        server.routes.update({"/%d" % i: answer for i in range(6)})
    busy(a, "2")
    busy(c, "6")
    b.serve("/x", PHOTO)
    urls = [a.url("/0"), c.url("/0")] + [b.url("/x")] * 20 + [s.url("/%d" % i) for i in range(1, 6) for s in (a, c)]
    got, took = download(d, urls, "--retries", 1, "--host_connections", 1, allow=[a.net, b.net, c.net])
    tap.eq(set(got), {"success"}, "a host that asks for a pause gets it, and is then asked again")
    pauses = [times[s][1] - times[s][0] for s in (a, c)]
    tap.ok(len(times[a]) == len(times[c]) == 7 and pauses[0] > 1.9 and pauses[1] > 5.9 and times[a][-1] < times[c][1],
           "the pause is the one asked for: who asked for 2 s is done before who asked for 6 s is asked again", pauses)
    late = Server("127.0.0.3")
    late.routes["/"] = (503, {"Retry-After": "86400"}, b"")
    got, took = download(d, [late.url("/")], "--retries", 5, allow=[late.net])
    tap.eq((got, late.hits["/"]), (["HTTP Error 503: Service Unavailable"], 1), "a day is not waited for")
    tap.ok(took < patience(60), "nor a part of it: %.1f s" % took)
    rude = Server("127.0.0.5")
    rude.routes.update({"/%d" % i: (429, {"Retry-After": "1"}, b"") for i in range(600)})
    b.hits.clear()
    got, took = download(d, [u for i in range(600) for u in (rude.url("/%d" % i), b.url("/x"))],
                         "--retries", 0, "--host_connections", 4, allow=[rude.net, b.net])
    away = got.count("host asked to be left alone (Retry-After), not tried")
    tap.ok(got.count("success") == 600 and away >= 550,
           "a host that does nothing but ask for pauses is left after four: %d of 600 not tried, %.1f s" % (away, took))
    odd = Server("127.0.0.4")
    for i, value in enumerate(("-1", "soon", "99999999999999999999", "Fri, 99 Foo 2026 00:00:00 GMT", "",
                               "Sun, 06 Nov 1994 08:49:37 GMT")):
        odd.routes["/%d" % i] = (429, {"Retry-After": value}, b"")
    got, took = download(d, [odd.url("/%d" % i) for i in range(6)], allow=[odd.net])
    tap.eq(set(got), {"HTTP Error 429: Too Many Requests"}, "a Retry-After of no sense is none")
    tap.ok(took < patience(60), "and costs nothing: %.1f s" % took)


def test_minimum_speed(d):
    s = Server("127.0.0.1")
    dripped = []
    s.routes["/drip"] = slowly([b"\xff"] * 120, 1, 100000, dripped)
    body = PHOTO + bytes(40000 - len(PHOTO))
    s.routes["/steady"] = slowly([body[i:i + 1000] for i in range(0, len(body), 1000)], 0.3, len(body))
    got, took = download(d, [s.url("/drip"), s.url("/steady")], "--timeout", 60, allow=[s.net])
    tap.eq(got, ["timed out: less than 1 kB a second", "success"], "one byte a second is given up, 3 kB a second is not")
    tap.ok(len(dripped) < 40, "long before the deadline of 60 s: after %d bytes" % len(dripped))


def test_many_drip(d):
    """Hosts that drip do send: however many of them are all that is left, the network is not down."""
    live, bad = Server("127.0.0.1"), [Server("127.0.7.%d" % (i + 1)) for i in range(12)]
    live.serve("/x", PHOTO)
    for s in bad:
        s.routes["/drip"] = slowly([b"\xff"] * 120, 1, 100000)
    for n in (4, 64):
        got, took = download(d, [live.url("/x")] * 20 + [s.url("/drip") for s in bad], "--thread_count", n, "--processes_count", 1,
                             "--timeout", 20, allow=[s.net for s in [live] + bad])
        tap.eq((got[:20].count("success"), set(got[20:])), (20, {"timed out: less than 1 kB a second"}),
               "12 hosts that drip, %d at a time: each fails" % n)
        tap.eq(sum(s.hits.pop("/drip", 0) for s in bad), 12, "and was asked once")


def test_host_down(d):
    dead = socket.socket()
    dead.bind(("127.0.0.3", 0))
    dead.listen(0)
    fill = []
    for _ in range(4):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(dead.getsockname())
        fill.append(c)
    url = "http://127.0.0.3:%d/" % dead.getsockname()[1]
    live = Server("127.0.0.1")
    live.serve("/x", PHOTO)
    urls = [live.url("/x")] + [url + str(i) for i in range(60)]
    got, took = download(d, urls, "--timeout", 2, "--host_connections", 8, "--host_patience", 6,
                         allow=["127.0.0.3:*", live.net])
    asked = got.count("<urlopen error timed out>")
    tap.ok(1 <= asked <= 6 and sum("stopped answering" in t for t in got) == 60 - asked,
           "one row at a time asks a silent host, the rest wait, and fail when it is given up: %d asked" % asked)
    tap.ok(6 <= took < patience(60), "60 rows of a dead host cost our patience, not 60 time-outs: %.1f s" % took)


def test_neighbours(d):
    """Eight transfers at once; the first rows are six of hosts that accept no connection and two of hosts that drip.
    They hold their places only until they count as stalled and a byte has come since (a second or two); then eight other rows run at once:
    the server answers none of them before it sees eight. The dead rows time out after 20 s, the server
    stops waiting after 15.
    """
    live, bad = Server("127.0.0.1"), [Server("127.0.0.2"), Server("127.0.0.4")]
    for s in bad:
        s.routes["/drip"] = slowly([b"\xff"] * 120, 1, 100000)
    dead = socket.socket()
    dead.bind(("0.0.0.0", 0))
    dead.listen(0)
    fill = []
    for _ in range(4):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(("127.0.0.3", dead.getsockname()[1]))
        fill.append(c)
    paths = ["/%d" % i for i in range(60)]
    crowd = Crowd(live, paths, 0.02, 8)
    urls = ["http://127.0.3.%d:%d/" % (i + 1, dead.getsockname()[1]) for i in range(6)] + [s.url("/drip") for s in bad]
    got, took = download(d, urls + [live.url(p) for p in paths], "--timeout", 20, "--thread_count", 8, "--processes_count", 1,
                         allow=[s.net for s in [live] + bad] + ["127.0.3.0/24:*"])
    tap.eq((got[8:].count("success"), got[:8].count("success")), (60, 0), "every living row is there")
    tap.eq(crowd.most, 8, "dead and dripping hosts take no place from the others")


TESTS = (test_limit_per_host, test_fetch_threads, test_retry_after, test_minimum_speed, test_many_drip, test_host_down, test_neighbours)
with Folder() as d:
    for test in TESTS:
        if len(sys.argv) == 1 or test.__name__ in sys.argv[1:]:
            test(d)
sys.exit(tap.done())
