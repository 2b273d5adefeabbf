#!/usr/bin/python3
"""Aim: whatever a URL contains, the worker connects only to allowed addresses, keeps its limits of time and
bytes, and reports results in urllib's words. Method: a corpus of addresses in every notation, a lying DNS
server, redirects, slow, endless and huge answers, opt-out headers, image bombs, killed decoders.
"""
import os
import resource
import signal
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *

tap = Tap()
BLOCKED = "<urlopen error address not allowed>"
PHOTO = encode(photo(90, 70, 1), "JPEG")
serial = iter(range(10 ** 6))


def statuses(d, urls, *args, allow=(), expect=0, env=None):
    """{url: error text or 'success'} after one run; more rows than columns allow share a URL."""
    n = next(serial)
    part, out = os.path.join(d, "n%d.parquet" % n), os.path.join(d, "n%d" % n)
    make_parquet(part, [{"url": u} for u in urls], {"url": "VARCHAR"})
    allowed = [x for a in allow for x in ("--allow-net", a)]
    rc, so, se = run(["--parquet", part, "--output", out] + allowed + list(args), env=env)
    if rc != expect:
        tap.ok(False, "worker ends with %d" % expect, "%d %s" % (rc, se))
        return {}
    if rc != 0:
        return se
    return {r["url"]: r["error_message"] or r["status"] for r in read_parquet(out + "/00000.parquet")}


def expect_texts(got, want, what):
    for url, text in want.items():
        tap.eq(got.get(url), text, "%s: %.70s" % (what, url))


def test_addresses(d, server):
    p = server.port
    hosts = ["127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.0.0.1", "127.1", "127.0.1",
             "0300.0250.1.1", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]",
             "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1]", "[fd00:ec2::254]", "[ff02::1]", "[2001:db8::1]",
             "[2001::1]", "169.254.169.254", "0xa9fea9fe", "2852039166", "0", "0.0.0.0", "10.0.0.1", "100.64.0.1",
             "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1",
             "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
             "localhost", "LOCALHOST", "%31%32%37.0.0.1", "127.0.0.1."]
    server.serve("/secret", PHOTO)
    urls = ["http://%s:%d/secret" % (h, p) for h in hosts] + ["https://127.0.0.1:%d/secret" % p,
                                                             "http://169.254.169.254/latest/meta-data/"]
    before = sum(server.hits.values())
    got = statuses(d, urls)
    for u in urls:
        tap.ok(got.get(u, "").startswith("<urlopen error"), "refused: %s" % u, got.get(u))
    tap.ok([u for u in urls if got.get(u) != BLOCKED] == [u for u in urls if "7.0.0.1.:" in u and got.get(u) != BLOCKED],
           "and for the address, not for luck", [(u, got.get(u)) for u in urls if got.get(u) != BLOCKED])
    tap.eq(sum(server.hits.values()), before, "no request reached the server")
    got = statuses(d, ["http://user:pw@127.0.0.1:%d/secret" % p, "http://127.0.0.1:22/", "file:///etc/passwd",
                       "gopher://127.0.0.1/", "http://", "http:///x", "//x/y", "http://h:99999/", "http://a\tb/", "", " ",
                       "http://[::1/", "http://1.1.1.1:25/"], allow=[server.net])
    tap.ok("success" not in got.values() and len(got) == 13, "what is no plain http URL fails", got)
    tap.eq(got["http://1.1.1.1:25/"], BLOCKED, "ports of mail servers and the like are refused")
    tap.eq(sum(server.hits.values()), before, "still no request")
    got = statuses(d, ["http://127.0.0.1:%d/secret" % p, "http://2130706433:%d/secret" % p,
                       "http://127.0.0.2:%d/secret" % p, "http://[::ffff:127.0.0.1]:%d/secret" % p], allow=[server.net])
    tap.eq(sorted(got.values()), sorted(["success", "success", BLOCKED, BLOCKED]),
           "--allow-net opens that address and port only")
    rc, so, se = run(["--parquet", "x", "--output", d + "/x", "--allow-net", server.net])
    tap.ok("private_addresses_opened" in se, "and warns", se)


def test_names(d, server):
    dns = Dns({"in.test": ["127.0.0.1"], "mixed.test": ["8.8.8.8", "127.0.0.1"], "meta.test": ["169.254.169.254"],
               "six.test": ["::1"], "mapped.test": ["::ffff:127.0.0.1"], "none.test": [],
               "half.test": ["127.0.0.9", "127.0.0.1"], "ok.test": ["127.0.0.9"]})
    server.serve("/n", PHOTO)
    inside = Server("127.0.0.9")
    for i in range(20):
        inside.serve("/%d" % i, PHOTO)
    want = {"http://%s.test:%d/n" % (n, inside.port): BLOCKED for n in ("in", "mixed", "meta", "six", "mapped", "half")}
    want["http://none.test/x"] = "<urlopen error [Errno -5] No address associated with hostname>"
    want["http://never.test/x"] = "<urlopen error [Errno -2] Name or service not known>"
    urls = list(want) + ["http://ok.test:%d/%d" % (inside.port, i) for i in range(20)]
    got = statuses(d, urls, "--dns", dns.net, allow=[inside.net])
    expect_texts(got, want, "names")
    tap.eq([got.get(u) for u in urls[8:]], ["success"] * 20, "an allowed name is fetched")
    tap.eq(inside.hits["/n"], 0, "a name with one good and one bad address is not used at all")
    tap.eq(dns.asked["ok.test", 1], 1, "one question serves twenty URLs of a host")
    tap.eq(inside.headers["/0"]["Host"], "ok.test:%d" % inside.port, "the Host header is the name")
    # Rebinding: the second answer for the name is a private address.
    answers = iter([["127.0.0.9"]] + [["127.0.0.1"]] * 50)

    class Turning(dict):
        def get(self, name, default=None):
            return next(answers) if name == "turn.test" else None
    dns2 = Dns(Turning())
    inside.routes["/turn"] = (302, {"Location": "http://turn.test:%d/0" % inside.port}, b"")
    server2 = Server("127.0.0.1")
    got = statuses(d, ["http://turn.test:%d/turn" % inside.port], "--dns", dns2.net, allow=[inside.net])
    tap.ok(list(got.values()) in (["success"], [BLOCKED]) and not server2.hits,
           "a name that changes its mind leads nowhere else", got)
    quiet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    quiet.bind(("127.0.0.1", 0))
    got = statuses(d, ["http://slow%d.test/" % i for i in range(5)], "--timeout", 2, "--dns",
                   "127.0.0.1:%d" % quiet.getsockname()[1])
    tap.ok(set(got.values()) == {"<urlopen error [Errno -3] Temporary failure in name resolution>"},
           "DNS that does not answer costs the deadline", got)
    # What ends before a connection is no sign of a network: the resolver of a VPC without a way out answers, too.
    absent = Dns({})
    absent.mute = "slow"
    for untried in ([], [None], ["http://10.0.0.1/"], ["http://never.test/"]):
        se = statuses(d, ["http://slow%d.test/" % i for i in range(60)] + untried, "--timeout", 1, "--dns", absent.net, expect=75)
        tap.ok("not one of the first 50" in se, "no network at all is cause network, not a shard of failures %s" % untried, se)
    tap.ok(absent.asked["never.test", 1] > 0, "one of them had an answer: there is no such name")
    shut = socket.socket()
    shut.bind(("127.0.0.1", 0))
    got = statuses(d, ["http://slow%d.test/" % i for i in range(60)] + ["http://127.0.0.1:%d/" % shut.getsockname()[1]],
                   "--timeout", 1, "--dns", absent.net, allow=["127.0.0.1:%d" % shut.getsockname()[1]])
    tap.eq(len(got), 61, "a port that refuses is one")
    shut.close()


def test_locales(d, server):
    """A container of SageMaker has no locale; names of hosts with other letters are the same everywhere."""
    server.serve("/idn", PHOTO)
    dns = Dns({"xn--bcher-kva.test": ["127.0.0.1"]})
    url = "http://b\u00fccher.test:%d/idn" % server.port
    unset = {"LC_ALL": "", "LC_CTYPE": "", "LANG": ""}
    for what, env in (("none", unset), ("C", dict(unset, LC_ALL="C")), ("C.UTF-8", dict(unset, LANG="C.UTF-8"))):
        got = statuses(d, [url], "--dns", dns.net, allow=[server.net], env=env)
        tap.eq(got, {url: "success"}, "a host with an umlaut, locale %s" % what)


def test_redirects(d, server):
    other = Server("127.0.0.2")
    other.serve("/inside", PHOTO)
    server.serve("/end", PHOTO)
    to = {**{"/r%d" % (i + 1): "/r%d" % i for i in range(11)}, "/r1": "/end", "/loop": "/loop", "/rel": "end",
          "/meta": "http://169.254.169.254/", "/two": other.url("/inside"), "/file": "file:///etc/passwd",
          "/dec": "http://2130706434:%d/inside" % other.port, "/user": "http://u@127.0.0.1:%d/end" % server.port}
    for k, v in to.items():
        server.routes[k] = (302, {"Location": v}, b"x" * 10)
    server.routes["/nowhere"] = (302, {}, b"")
    want = {"/r1": "success", "/r2": "success", "/r10": "success", "/rel": "success",
            "/r11": "HTTP Error 302: too many redirects", "/loop": "HTTP Error 302: too many redirects",
            "/meta": BLOCKED, "/two": BLOCKED, "/dec": BLOCKED, "/file": "<urlopen error unknown url type: file>",
            "/user": "<urlopen error user name in url not allowed>", "/nowhere": "HTTP Error 302: Found"}
    got = statuses(d, [server.url(k) for k in want], allow=[server.net])
    expect_texts(got, {server.url(k): v for k, v in want.items()}, "redirect")
    tap.eq(sum(other.hits.values()), 0, "no redirect reached another address")


def test_limits(d, server):
    sent, over = [], threading.Event()

    def reset(h):
        h.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        h.connection.close()
        h.close_connection = True

    def never(h):
        over.wait(300)
        h.close_connection = True
    block = b"x" * 65536
    server.routes.update({"/drip": slowly([b"\xff\xd8\xff"] * 4000, 0.1, 100000), "/endless": slowly([block] * 3000),
                          "/huge": slowly([block] * 480, 0, 30 << 20, sent), "/short": slowly([b"x" * 10], 0, 1000),
                          "/reset": reset, "/never": never})
    server.serve("/e403", b"x" * 300000, status=403)
    server.serve("/e429", b"", status=429)
    shut = socket.socket()
    shut.bind(("127.0.0.1", 0))
    dead = socket.socket()
    dead.bind(("127.0.0.3", 0))
    dead.listen(0)
    fill = []
    for _ in range(4):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(dead.getsockname())
        fill.append(c)
    refused = "http://127.0.0.1:%d/" % shut.getsockname()[1]
    full = "http://127.0.0.3:%d/" % dead.getsockname()[1]
    want = {server.url("/drip"): "timed out", server.url("/never"): "timed out",
            server.url("/endless"): "body too large", server.url("/huge"): "body too large",
            server.url("/short"): "IncompleteRead", server.url("/e403"): "HTTP Error 403: Forbidden",
            server.url("/e429"): "HTTP Error 429: Too Many Requests",
            refused: "<urlopen error [Errno 111] Connection refused>", full: "<urlopen error timed out>"}
    began = time.monotonic()
    got = statuses(d, list(want) + [server.url("/reset")], "--timeout", 2,
                   allow=[server.net, "127.0.0.1:%d" % shut.getsockname()[1], "127.0.0.3:*"])
    took = time.monotonic() - began
    over.set()
    expect_texts(got, want, "limit")
    tap.ok("reset" in got[server.url("/reset")] or "Remote end closed" in got[server.url("/reset")],
           "a reset connection", got[server.url("/reset")])
    tap.ok(took < patience(60), "a deadline of 2 s holds for each URL whole, where answers would take for ever: %.1f s in all" % took)
    tap.ok(len(sent) < 400, "a body too long by its header is not read")


def test_retries(d, server):
    def flaky(n, then):
        left = [n]

        def answer(h):
            left[0] -= 1
            h.answer(503 if left[0] >= 0 else then, {}, PHOTO)
        return answer
    server.routes.update({"/f2": flaky(2, 200), "/f9": flaky(9, 200), "/f404": flaky(1, 404)})
    server.serve("/g404", b"", status=404)
    urls = [server.url(p) for p in ("/f2", "/f9", "/f404", "/g404")]
    got = statuses(d, urls, "--retries", 2, allow=[server.net])
    tap.eq([got[u] for u in urls], ["success", "HTTP Error 503: Service Unavailable", "HTTP Error 404: Not Found",
                                    "HTTP Error 404: Not Found"], "transient failures are tried again")
    tap.eq([server.hits[p] for p in ("/f2", "/f9", "/f404", "/g404")], [3, 3, 2, 1],
           "as often as retries says, permanent ones never")


def test_tls(d):
    """A self-signed certificate is refused; one in SSL_CERT_FILE is accepted, for its own name only."""
    cert, key = d + "/cert.pem", d + "/key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=tls.test",
                    "-addext", "subjectAltName=DNS:tls.test", "-keyout", key, "-out", cert], check=True,
                   capture_output=True)
    tls = Server("127.0.0.5", tls=(cert, key))
    tls.serve("/x", PHOTO)
    dns = Dns({"tls.test": ["127.0.0.5"], "wrong.test": ["127.0.0.5"]})
    right, wrong = ["https://%s.test:%d/x" % (n, tls.port) for n in ("tls", "wrong")]
    bad = "<urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed>"
    got = statuses(d, [right, wrong], "--dns", dns.net, allow=[tls.net])
    tap.eq([got[right], got[wrong]], [bad, bad], "an unknown certificate is refused")
    got = statuses(d, [right, wrong], "--dns", dns.net, allow=[tls.net], env={"SSL_CERT_FILE": cert})
    tap.eq([got[right], got[wrong]], ["success", bad], "a known one is good for its own name")


def test_robots(d, server):
    tags = {"/b0": ["noai"], "/b1": ["NoIndex , foo"], "/b2": ["foo", "noimageai"], "/b3": ["mybot: noai"],
            "/b4": ["MyBot:foo,noimageindex"], "/ok0": ["all"], "/ok1": ["otherbot: noai"], "/ok2": [""],
            "/ok3": ["foo:noai:bar"], "/ok4": ["nofollow"]}
    for k, v in tags.items():
        server.serve(k, PHOTO, headers=[("X-Robots-Tag", x) for x in v])
    urls = {k: server.url(k) for k in tags}
    got = statuses(d, urls.values(), "--user_agent_token", "mybot", allow=[server.net])
    for k, u in urls.items():
        tap.eq(got[u], "success" if k.startswith("/ok") else "Use of image disallowed by X-Robots-Tag directive",
               "X-Robots-Tag %s" % tags[k])
    agent = server.headers["/b0"]["User-Agent"]
    tap.ok("drover-worker/" in agent and "; mybot)" in agent and "Firefox" not in agent,
           "the user agent says who asks and names the token", agent)
    got = statuses(d, urls.values(), "--disallowed_header_directives", "[]", allow=[server.net])
    tap.eq(set(got.values()), {"success"}, "the check can be turned off")


def bitmap_bomb(side):
    """A real PNG of side x side pixels, one bit each."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    z, rows = zlib.compressobj(9), []
    line = b"\0" * ((side + 7) // 8 + 1)
    for _ in range(side):
        rows.append(z.compress(line))
    rows.append(z.flush())
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0))
            + chunk(b"IDAT", b"".join(rows)) + chunk(b"IEND", b""))


def test_bombs(d, server):
    jpeg = bytearray(PHOTO)
    at = jpeg.index(b"\xff\xc0")
    jpeg[at + 5:at + 9] = b"\xff\xff\xff\xff"
    want = {"/claim": (png_claiming(10 ** 6, 10 ** 6), "image area too large"),
            "/zero": (png_claiming(0, 5), "Image decoding error"),
            "/real": (bitmap_bomb(30000), "image area too large"),
            "/jpeg": (bytes(jpeg), "image area too large"),
            "/thin": (encode(np.zeros((2, 16000), np.uint8), "PNG"), "aspect ratio too large"),
            "/biggest": (bitmap_bomb(8000), "success")}
    for k, (body, _) in want.items():
        server.serve(k, body)
    before = os.times()
    got = statuses(d, [server.url(k) for k in want], "--resize_mode", "keep_ratio", allow=[server.net])
    after = os.times()
    took = after.children_user + after.children_system - before.children_user - before.children_system
    expect_texts(got, {server.url(k): t for k, (_, t) in want.items()}, "bomb")
    tap.ok(took < 20, "bombs cost little: %.1f s of CPU" % took)


def test_dead_decoders(d, server):
    gate = threading.Event()

    def held(h):
        gate.wait(30)
        h.answer(200, {}, PHOTO)
    for i in range(40):
        server.routes["/d%d" % i] = held
    part, out = d + "/dead.parquet", d + "/dead"
    make_parquet(part, [{"url": server.url("/d%d" % i)} for i in range(40)], {"url": "VARCHAR"})
    p = start(["--parquet", part, "--output", out, "--allow-net", server.net, "--processes_count", 2, "--timeout", 60])
    wait_for(lambda: sum(server.hits["/d%d" % i] for i in range(40)) == 40)

    def below(pid):
        return [int(x) for x in open("/proc/%d/task/%d/children" % (pid, pid)).read().split()]

    def decoding():
        return [x for child in below(p.pid)[:1] for x in below(child)]
    wait_for(lambda: len(decoding()) == 2)  # they start beside the first transfers
    decoders = decoding()
    for c in decoders:
        os.kill(c, signal.SIGKILL)
    gate.set()
    so, se = p.communicate(timeout=patience(60))
    texts = [r["error_message"] or r["status"] for r in read_parquet(out + "/00000.parquet")]
    tap.ok(p.returncode == 0 and len(decoders) == 2, "decoding processes can be killed", se)
    tap.eq((texts.count("decoder crashed or hit a limit"), texts.count("success")), (2, 38),
           "each costs one image and is replaced")


def test_memory(d, server):
    body = PHOTO + b"\0" * (15 << 20)
    for i in range(40):
        server.serve("/big%d" % i, body)
    part, out = d + "/big.parquet", d + "/big"
    make_parquet(part, [{"url": server.url("/big%d" % i)} for i in range(40)], {"url": "VARCHAR"})
    p = start(["--parquet", part, "--output", out, "--allow-net", server.net, "--timeout", 60])
    peak = 0
    while p.poll() is None:
        try:
            status = open("/proc/%d/status" % p.pid).read()
            peak = max(peak, int(status.split("VmHWM:")[1].split()[0]))
        except (OSError, IndexError):
            pass
        time.sleep(0.01)
    p.communicate()
    stats = load(out, "00000_stats.json")
    tap.ok(stats["successes"] == 40, "40 bodies of 15 MB are all taken", stats)
    if VARIANT == "release":
        tap.ok(0 < peak < 300 * 1024, "600 MB in flight stay in bounds: peak %d MB" % (peak // 1024))


with Folder() as d:
    server = Server()
    test_addresses(d, server)
    test_names(d, server)
    test_locales(d, server)
    test_redirects(d, server)
    test_limits(d, server)
    test_retries(d, server)
    test_tls(d)
    test_robots(d, server)
    test_bombs(d, server)
    test_dead_decoders(d, server)
    test_memory(d, server)
sys.exit(tap.done())
