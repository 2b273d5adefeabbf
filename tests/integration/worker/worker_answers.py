#!/usr/bin/python3
"""Aim: whatever a web server answers, its row ends within the limits of time, bytes and memory, and the other
rows of the shard are unaffected: same keys, same bytes, and about as soon. Method: a server that sends
arbitrary bytes: endless and lying bodies, headers, chunks, compressions, redirects, obsolete forms; one
ordinary row next to each; the server counts the bytes it could send.
"""
import gzip
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *

tap = Tap()
PHOTO = encode(photo(90, 70, 1), "JPEG")
OK = b"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\n"
PLAIN = OK + b"Content-Length: %d\r\n\r\n" % len(PHOTO) + PHOTO
TIMEOUT = 4


class Raw:
    """Answers each path with bytes, or lets a function write to the socket. sent: bytes by path."""

    def __init__(self, addr):
        self.routes, self.sent, self.hits, self.at = {}, collections.Counter(), collections.Counter(), {}
        self.sock = socket.create_server((addr, 0), backlog=512)
        self.net = "%s:%d" % (addr, self.sock.getsockname()[1])
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self, path):
        return "http://%s%s" % (self.net, path)

    def clear(self):
        for counted in (self.sent, self.hits, self.at):
            counted.clear()

    def accept(self):
        while True:
            c, _ = self.sock.accept()
            threading.Thread(target=self.talk, args=(c,), daemon=True).start()

    def talk(self, c):
        try:
            with c, c.makefile("rb") as lines:
                while True:
                    path = lines.readline(65536).split(b" ")[1].decode()
                    while lines.readline(65536).strip():
                        pass
                    self.hits[path] += 1
                    self.at[path] = time.monotonic()
                    answer = self.routes.get(path.rstrip("0123456789") if path.startswith("/chain") else path, PLAIN)
                    if callable(answer):
                        answer(Counted(self, path, c))
                        return
                    c.sendall(answer)
        except (OSError, IndexError, ValueError):
            pass


class Counted:
    def __init__(self, raw, path, c):
        self.raw, self.path, self.c = raw, path, c

    def send(self, b):
        self.c.sendall(b)
        self.raw.sent[self.path] += len(b)

    def for_ever(self, piece, pause=0.0, most=200 << 20):
        for _ in range(0, most, len(piece)):
            self.send(piece)
            time.sleep(pause)


def bodies():
    def endless(c):
        c.send(OK + b"\r\n")
        c.for_ever(b"x" * 65536)

    def endless_chunks(c):
        c.send(OK + b"Transfer-Encoding: chunked\r\n\r\n")
        c.for_ever(b"10000\r\n" + b"x" * 65536 + b"\r\n")

    def tiny_chunks(c):
        c.send(OK + b"Transfer-Encoding: chunked\r\n\r\n")
        c.for_ever(b"1\r\nx\r\n" * 3000)

    def slow_body(c):
        c.send(OK + b"Content-Length: 1000000\r\n\r\n" + PHOTO[:100])
        c.for_ever(b"x", 0.2)

    def just_fast_enough(c):
        c.send(OK + b"Content-Length: 1000000\r\n\r\n")
        c.for_ever(b"x" * 500, 0.1)

    def longer_than_said(c):
        c.send(PLAIN)
        c.for_ever(b"x" * 65536)

    too_large, late = {"body too large"}, {"timed out", "timed out: less than 1 kB a second"}
    gz = gzip.compress(b"\0" * (64 << 20), 9)
    broken = {"IncompleteRead", "<urlopen error Failure when receiving data from the peer>"}
    return {
        "endless": (endless, too_large), "endless chunks": (endless_chunks, too_large),
        "endless tiny chunks": (tiny_chunks, {"body in too many pieces"}),
        "a slow body": (slow_body, late), "a body just fast enough": (just_fast_enough, late),
        "a body longer than said": (longer_than_said, {"success"}),
        "a body shorter than said": (lambda c: c.send(OK + b"Content-Length: 99999\r\n\r\n" + PHOTO), broken),
        "2^63 bytes said": (OK + b"Content-Length: 9223372036854775807\r\n\r\nx", too_large),
        "2^64 bytes said": (lambda c: c.send(OK + b"Content-Length: 18446744073709551616\r\n\r\n" + PHOTO), None),
        "less than nothing said": (lambda c: c.send(OK + b"Content-Length: -5\r\n\r\n" + PHOTO), None),
        "two lengths": (lambda c: c.send(OK + b"Content-Length: 5\r\nContent-Length: %d\r\n\r\n" % len(PHOTO) + PHOTO), None),
        "length and chunks": (lambda c: c.send(OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(PHOTO)
                                               + PHOTO + b"\r\n0\r\n\r\n"), {"success"}),
        "a chunk that is cut": (lambda c: c.send(OK + b"Transfer-Encoding: chunked\r\n\r\nffff\r\nabc"), None),
        "a chunk of 2^68": (lambda c: c.send(OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc"), None),
        "a chunk of -1": (lambda c: c.send(OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nabc"), None),
        "a chunk of words": (lambda c: c.send(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc"), None),
        "64 MB in 64 kB of gzip": (OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(gz) + gz,
                                   {"Image decoding error"}),
        "gzip in gzip in gzip": (OK + b"Content-Encoding: gzip, gzip, br, deflate\r\nContent-Length: %d\r\n\r\n" % len(gz) + gz,
                                 {"Image decoding error"}),
        "no body": (OK + b"Content-Length: 0\r\n\r\n", {"Image decoding error"}),
        "204": (b"HTTP/1.1 204 No\r\n\r\n", {"Image decoding error"}),
        "206 that was not asked for": (PLAIN.replace(b"200 OK", b"206 Partial Content"), {"success"}),
    }


def headers():
    def slow(c):
        c.send(b"HTTP/1.1 200 OK\r\n")
        c.for_ever(b"X", 0.2)

    def endless_line(c):
        c.send(OK + b"X-Long: ")
        c.for_ever(b"x" * 65536)

    def endless_count(c):
        c.send(OK)
        c.for_ever(b"X: y\r\n" * 5000)

    def endless_fold(c):
        c.send(OK + b"X: y\r\n")
        c.for_ever(b" more\r\n" * 5000)

    def informed(c):
        c.for_ever(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" * 500)

    def continued_slowly(c):
        c.for_ever(b"HTTP/1.1 100 Continue\r\n\r\n", 0.1)

    def trailers(c):
        c.send(OK + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(PHOTO) + PHOTO + b"\r\n0\r\n")
        c.for_ever(b"X-Trailer: y\r\n" * 2000)

    def silent(c):
        time.sleep(60)  # a server that says nothing

    def old_style(c):
        c.send(PHOTO)

    cookies = b"".join(b"Set-Cookie: a%d=%s; Max-Age=99999\r\n" % (i, b"v" * 50) for i in range(1000))
    late, large = {"timed out"}, {"headers too large"}
    too_long = large | {"<urlopen error Out of memory>", "timed out"}
    end = b"Content-Length: %d\r\n\r\n" % len(PHOTO) + PHOTO
    return {
        "slow headers": (slow, late), "a silent server": (silent, late), "a header line without end": (endless_line, too_long),
        "headers without end": (endless_count, large), "a folded header without end": (endless_fold, too_long),
        "a flood of 103": (informed, large), "100 again and again": (continued_slowly, late),
        "trailers without end": (trailers, None), "HTTP/0.9": (old_style, None),
        "1000 cookies": (OK + cookies + end, {"success"}), "10 kB in a header": (OK + b"X: " + b"y" * 10000 + b"\r\n" + end, {"success"}),
        "150 kB of headers": (OK + b"X: " + b"y" * 75000 + b"\r\nX: " + b"y" * 75000 + b"\r\n" + end, large),
        "a NUL in a header": (lambda c: c.send(OK + b"X: a\0b\r\n" + end), None),
        **{"a first header that goes on with nothing, %d" % i: (b"HTTP/1.1 200 OK\r\n\tX-More: %s\r\n" % (b"z" * 300 * i) + end, None)
           for i in range(10)},
        "headers of no sense": (OK + b"\xff\xfe: \x80\r\n: empty\r\n" + end, None),
        "a status of words": (lambda c: c.send(b"HTTP/1.1 fine OK\r\n" + end), None),
        "status 999": (b"HTTP/1.1 999 \xff\x01\x1b[31m\r\nContent-Length: 0\r\n\r\n", None),
        "status 099": (lambda c: c.send(b"HTTP/1.1 099 x\r\n" + end), None),
        "another protocol": (lambda c: c.send(b"SSH-2.0-OpenSSH_9.2\r\n"), None),
        "switching protocols": (lambda c: c.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n" + PHOTO),
                                {"HTTP Error 101: Switching Protocols"}),
        "a status of 100 kB": (lambda c: c.send(b"HTTP/1.1 404 " + b"x" * 100000 + b"\r\nContent-Length: 0\r\n\r\n"), None),
    }


def moved(to):
    return b"HTTP/1.1 302 Found\r\nLocation: " + to + b"\r\nContent-Length: 0\r\n\r\n"


def redirects():
    def chain(c):
        n = int(c.path[6:])
        c.send(moved(b"/chain%d" % (n + 1)) if n < 10000 else PLAIN)

    def growing(c):
        c.for_ever(b"HTTP/1.1 302 Found\r\nLocation: /" + b"x" * 100 + b"\r\nContent-Length: 9999999999\r\n\r\n" + b"x" * 65536)

    many = {"HTTP Error 302: too many redirects"}
    return {
        "a chain of 10000": (chain, many, "/chain0"), "a loop": (moved(b"/loop"), many, "/loop"),
        "a loop of two": (moved(b"/pong"), many, "/ping"), "a redirect with an endless body": (growing, {"HTTP Error 302: Found"}, None),
        "a redirect of 60 kB": (moved(b"/" + b"x" * 60000), None, None), "a redirect to nothing": (moved(b""), None, None),
        "a redirect of no sense": (moved(b"http://[::1\xff\x80/ \x01"), None, None),
    }


def work(d, name, urls, nets, timeout):
    part, out = os.path.join(d, name + ".parquet"), os.path.join(d, name)
    make_parquet(part, [{"url": u} for u in urls], {"url": "VARCHAR"})
    began = time.monotonic()
    p = start(["--parquet", part, "--output", out, "--timeout", timeout, "--thread_count", 128, "--host_connections", 128]
              + [x for n in nets for x in ("--allow-net", n)])
    peak = 0
    while p.poll() is None and time.monotonic() < began + patience(100):
        try:
            with open("/proc/%d/status" % p.pid) as f:
                peak = max(peak, int(f.read().split("VmHWM:")[1].split()[0]) // 1024)
        except (OSError, IndexError):
            pass
        time.sleep(0.02)
    took = time.monotonic() - began
    p.kill()
    _, err = p.communicate()
    rows = {r["url"]: r for r in read_parquet(out + "/00000.parquet")}
    return rows, samples(out + "/00000.tar"), took, peak, "" if p.returncode == 0 else err[-2000:]


def main():
    bad, good = Raw("127.0.0.1"), Raw("127.0.0.2")
    cases = {}
    for group in (bodies(), headers(), redirects()):
        for name, case in group.items():
            path = (case[2] if len(case) > 2 else None) or "/" + name.replace(" ", "-").replace("^", "").replace("/", "")
            bad.routes["/chain" if path == "/chain0" else path] = case[0]
            cases[name] = (path, case[1])
    bad.routes["/pong"] = moved(b"/ping")
    ordinary = [good.url("/%d" % i) for i in range(400)]
    for i in range(400):
        body = encode(photo(60, 50, i % 7), "JPEG")
        good.routes["/%d" % i] = OK + b"Content-Length: %d\r\n\r\n" % len(body) + body
    urls, hostile = list(ordinary), {}
    for i, (name, (path, _)) in enumerate(cases.items()):
        hostile[name] = urls[3 + 6 * i] = bad.url(path)
    left = [u for u in ordinary if u in urls]
    with Folder() as d:
        # other programs may have used the machine: hostile rows delay the others every time or never, and a row that ran
        # out of time for them, or for this server's own threads, does not with more of it
        for attempt, timeout in enumerate((TIMEOUT, 2 * TIMEOUT, 4 * TIMEOUT)):
            good.clear()
            _, alone, _, _, wrong_alone = work(d, "alone-%d" % attempt, ordinary, [good.net], timeout)
            usual = max(good.at.values()) - min(good.at.values())
            good.clear()
            bad.clear()
            rows, beside, took, peak, wrong = work(d, "beside-%d" % attempt, urls, [good.net, bad.net], timeout)
            among = max(good.at.values()) - min(good.at.values())
            late = [name for name, (path, want) in cases.items() if want and not any("timed out" in w for w in want)
                    and "timed out" in (rows.get(hostile[name], {}).get("error_message") or "")]
            late += [u for u in left if "timed out" in (rows.get(u, {}).get("error_message") or "")]
            if wrong or wrong_alone or among < patience(3 * usual + 0.75 * timeout) and took < patience(40) and not late:
                break
    tap.eq(wrong_alone, "", "alone: the worker ends well")
    tap.eq(wrong, "", "beside: the worker ends well")
    tap.eq(len(rows), len(urls), "every row is in the shard")
    for name, (path, want) in cases.items():
        text = rows[hostile[name]]["error_message"] or rows[hostile[name]]["status"]
        tap.ok(text in want if want else text and all(" " <= x <= "~" or x >= "\xa0" for x in text) and len(text) < 500,
               "%s: %.60s" % (name, text), "got %r, want one of %s" % (text, want))
    for name, (path, _) in cases.items():
        # 20 MB are read at most; the sockets' buffers hold more
        tap.ok(bad.sent[path] < 45 << 20, "%s: %d kB are as much as it could send" % (name, bad.sent[path] >> 10))
    tap.eq([bad.hits[x] for x in ("/chain0", "/chain10", "/chain11", "/loop")], [1, 1, 0, 11], "ten redirects and no more")
    tap.ok(took < patience(40), "all in %.1f s" % took)
    tap.ok(peak < 250 or VARIANT != "release", "with %d MB at most" % peak)
    tap.eq([rows[u]["status"] for u in left], ["success"] * len(left), "the rows beside them succeed")
    same = {k: v for k, v in alone.items() if urls[int(k)] == ordinary[int(k)]}
    tap.ok(all(beside.get(k) == v for k, v in same.items()) and len(same) == len(left), "with the same keys and bytes",
           [k for k, v in same.items() if beside.get(k) != v][:10])
    tap.eq(set(good.hits.values()), {1}, "each asked for once")
    tap.ok(among < patience(3 * usual + 0.75 * timeout), "and asked for as soon: the last after %.2f s, alone after %.2f" % (among, usual))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
