#!/usr/bin/python3
"""Aim: whatever a row, a name server or a redirect contains, the worker opens no connection to a private
address, not even one that fails. Method: a library preloaded into the worker records every address it
connects or sends to; servers listen where the attempts would lead; URLs disguise their host in every known
way, names resolve to every mixture, redirects lead to the metadata address in every way.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *

tap = Tap()
BLOCKED = "<urlopen error address not allowed>"
PHOTO = encode(photo(90, 70, 1), "JPEG")
PRELOAD = os.path.join(TOP, "build", VARIANT, "tests", "kit", "connect_log.so")
serial = iter(range(10 ** 6))


def fetched(d, urls, *args, allow=(), env=None):
    """({url: error text or 'success'}, {(address, port)} the worker connected to) of one run."""
    n = next(serial)
    part, out, log = [os.path.join(d, "s%d%s" % (n, x)) for x in (".parquet", "", ".log")]
    make_parquet(part, [{"url": u} for u in urls], {"url": "VARCHAR"})
    open(log, "w").close()
    preload = {"LD_PRELOAD": PRELOAD, "CONNECT_LOG": log}
    if VARIANT == "asan":
        preload["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")
    preload.update(env or {})
    allowed = [x for a in allow for x in ("--allow-net", a)]
    rc, _, err = run(["--parquet", part, "--output", out, "--timeout", 5] + allowed + list(args), env=preload)
    if not tap.ok(rc == 0, "the worker ends well", "%d %s" % (rc, err)):
        return {}, set()
    with open(log) as f:
        went = {(x.split()[0], int(x.split()[1])) for x in f}
    return {r["url"]: r["error_message"] or r["status"] for r in read_parquet(out + "/00000.parquet")}, went


def place(server):
    addr, port = server.net.rsplit(":", 1)
    return addr, int(port)


def test_the_witness(d, server):
    """The log records what it should."""
    got, went = fetched(d, [server.url("/x")], allow=[server.net])
    tap.eq((list(got.values()), went), (["success"], {place(server)}), "the log has the connection that was made")


def test_disguised_hosts(d, server):
    p = server.port
    hosts = [
        # decimal, octal, hexadecimal, short, mixed, with zeros, too large
        "2130706433", "017700000001", "0x7f000001", "0177.0.0.01", "0x7f.0x0.0x0.0x1", "127.1", "127.0.1", "0177.1",
        "0x7f.1", "127.0x0.00.1", "00000177.0.0.1", "0000000177.000.000.001", "4294967295", "0xffffffff", "0x17f000001",
        "2852039166", "0xa9fea9fe", "025177524776", "169.254.43518", "0251.0376.0251.0376", "169.16689662", "0", "0.0", "0x0",
        # IPv6: loopback, mapped, compatible, translated, tunnelled, zones, in full
        "[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::]", "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]", "[::FFFF:169.254.169.254]", "[::127.0.0.1]", "[::7f00:1]", "[::169.254.169.254]",
        "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]",
        "[2002:a9fe:a9fe::1]", "[2001:0:7f00:1::]", "[fe80::1%25lo]", "[fe80::1%25eth0]", "[::1%25lo]", "[fe80::1%251]",
        "[fd00:ec2::254]", "[fec0::1]", "[ff02::1%25lo]", "[100::1]", "[5f00::1]", "[3fff::1]",
        # Unicode digits, dots and letters that IDNA turns into ASCII; percent signs; dots behind
        "\uff11\uff12\uff17.0.0.1", "\u2460\u2461\u2466.0.0.1", "127\u30020\u30020\u30021", "127\uff0e0\uff0e0\uff0e1",
        "127\uff610\uff610\uff611", "1\u00ad27.0.0.1", "\u0967\u0968\u096d.0.0.1", "\U0001d7cf\U0001d7d0\U0001d7d5.0.0.1",
        "loc\u24d0lhost", "%6c%6f%63%61lhost", "%31%32%37.0.0.1", "127%2e0%2e0%2e1", "%25%33%31127.0.0.1", "127.0.0.1.",
        "127.0.0.1..", "localhost.", "localhost", "LocalHost", "ip6-localhost", "127.0.0.1%00.example.com",
        "127.0.0.1%0a", "127.0.0.1%09", "127.0.0.1%20"]
    urls = ["http://%s:%d/x" % (h, p) for h in hosts]
    # user, host and end of the authority
    urls += [u % dict(p=p) for u in (
        "http://1.1.1.1@127.0.0.1:%(p)d/x", "http://a:b@127.0.0.1:%(p)d/x", "http://1.1.1.1:80@127.0.0.1:%(p)d/x",
        "http://1.1.1.1&@127.0.0.1:%(p)d# @1.1.1.1/", "http://127.0.0.1:%(p)d\\@1.1.1.1/x", "http://1.1.1.1\\@127.0.0.1:%(p)d/x",
        "http://@127.0.0.1:%(p)d/x", "http://:@127.0.0.1:%(p)d/x", "http://[::1]@127.0.0.1:%(p)d/x",
        "http:\\\\127.0.0.1:%(p)d/x", "http:/127.0.0.1:%(p)d/x", "http:127.0.0.1:%(p)d/x", "http:///127.0.0.1:%(p)d/x",
        "http:////127.0.0.1:%(p)d/x", "//127.0.0.1:%(p)d/x", "\thttp://127.0.0.1:%(p)d/x", "ht\ntp://127.0.0.1:%(p)d/x",
        "http://127.0.0.1:%(p)d\t/x", "http://127.0.0\n.1:%(p)d/x", "http://127.0.0.1:0%(p)d/x", "http://127.0.0.1:+%(p)d/x",
        "http://1.1.1.1%%40127.0.0.1:%(p)d/x", "http://127.0.0.1:%(p)d?@1.1.1.1/", "http://127.0.0.1:%(p)d#@1.1.1.1/",
        "HTTPS://127.0.0.1:%(p)d/x", "https://0x7f.1:%(p)d/x", "file:///etc/hostname", "FILE://127.0.0.1/etc/hostname",
        "gopher://127.0.0.1:%(p)d/_GET", "ftp://127.0.0.1:%(p)d/x", "dict://127.0.0.1:%(p)d/x", "ldap://127.0.0.1:%(p)d/x",
        "ws://127.0.0.1:%(p)d/x", "smb://127.0.0.1/x", "tftp://127.0.0.1/x", "telnet://127.0.0.1:%(p)d", "jar:http://127.0.0.1:%(p)d/!",
        "view-source:http://127.0.0.1:%(p)d/x", "url:http://127.0.0.1:%(p)d/x", "unix:///run/x", "http+unix://x/y")]
    before = sum(server.hits.values())
    dns = Dns({"localhost": ["127.0.0.1"], "ip6-localhost": ["127.0.0.1"], "127.0.0.1": ["127.0.0.1"]})
    got, went = fetched(d, urls, "--dns", dns.net)
    tap.eq(went - {("127.0.0.1", int(dns.net.split(":")[1]))}, set(), "%d disguises of a host, not one connection" % len(urls))
    tap.ok(len(got) == len(set(urls)) and "success" not in got.values(), "and no row of them succeeds",
           [u for u in urls if got.get(u) == "success"])
    tap.eq(sum(server.hits.values()), before, "nor does a request arrive")
    plain = [u for u in urls[:47] if got.get(u) != BLOCKED and "0x17f" not in u]
    tap.eq(plain, [], "numbers and IPv6 are refused for the address they are")
    ports = ["http://1.1.1.1:%d/" % x for x in (1, 22, 25, 53, 110, 143, 389, 445, 587, 2049, 2375, 3306, 5432, 6379, 9200,
                                                11211, 27017) if x != 445]
    got, went = fetched(d, ports)
    tap.eq((set(got.values()), went), ({BLOCKED}, set()), "nor to ports of other services at public addresses")


def test_names(d, server):
    answers = {
        "loop.test": ["127.0.0.1"], "meta.test": ["169.254.169.254"], "ten.test": ["10.1.2.3"], "six.test": ["::1"],
        "mapped.test": ["::ffff:169.254.169.254"], "nat.test": ["64:ff9b::a9fe:a9fe"], "four.test": ["2002:a9fe:a9fe::1"],
        "ula.test": ["fd00:ec2::254"], "zero.test": ["0.0.0.0"], "bcast.test": ["255.255.255.255"],
        "first.test": ["1.1.1.1", "169.254.169.254"], "last.test": ["169.254.169.254", "1.1.1.1"],
        "many.test": ["1.1.1.%d" % i for i in range(1, 7)] + ["192.168.0.1"], "multi.test": ["224.0.0.1"],
        "trail.test": ["127.0.0.1"], "xn--bcher-kva.test": ["127.0.0.1"], "deep.a.b.c.d.e.test": ["100.64.0.1"]}
    dns = Dns(answers)
    urls = ["http://%s:%d/x" % (n, server.port) for n in answers] + ["https://meta.test/x", "http://b\u00fccher.test/x",
                                                                    "http://trail.test./x", "http://LOOP.TEST/x"]
    got, went = fetched(d, urls, "--dns", dns.net)
    tap.eq(went - {("127.0.0.1", int(dns.net.split(":")[1]))}, set(), "no name leads inside, alone or among public ones")
    tap.eq({u: t for u, t in got.items() if t != BLOCKED}, {}, "each is refused for its address")


def test_rebinding(d, server):
    """The first query for the name returns a good address, each later one another address."""
    outside = Server("127.0.0.9")
    outside.serve("/x", PHOTO)
    asked = []

    class Turning(dict):
        def get(self, name, default=None):
            asked.append(name)
            return ["127.0.0.9"] if asked.count(name) == 1 else ["127.0.0.1"]
    dns = Dns(Turning())
    flaky = iter([503, 503] + [200] * 50)
    outside.routes["/flaky"] = lambda h: h.answer(next(flaky), {}, PHOTO)
    outside.routes["/again"] = (302, {"Location": "http://turn.test:%d/x" % outside.port}, b"")
    outside.routes["/close"] = lambda h: (h.answer(200, {"Connection": "close"}, PHOTO), setattr(h, "close_connection", True))
    base = "http://turn.test:%d" % outside.port
    urls = [base + x for x in ("/x", "/flaky", "/again", "/close")] + [base + "/x?%d" % i for i in range(20)]
    for i in range(20):
        outside.serve("/x?%d" % i, PHOTO)
    got, went = fetched(d, urls, "--dns", dns.net, "--retries", 3, allow=[outside.net])
    tap.eq(went - {("127.0.0.1", int(dns.net.split(":")[1]))}, {place(outside)},
           "a name that changes its mind is taken at its first word, which was checked")
    tap.eq((set(got.values()), asked.count("turn.test")), ({"success"}, 1), "over redirects, retries and new connections")
    tap.eq(server.hits["/secret"], 0, "the server inside heard nothing")


def test_redirects(d, server):
    door, p = Server("127.0.0.9"), server.port
    door.serve("/end", PHOTO)
    meta = "169.254.169.254"
    roads = ["http://%s/latest/meta-data/" % meta, "//%s/latest" % meta, "HTTP://%s/" % meta, "http://0xa9fea9fe/", "http:\\\\%s\\" % meta,
             "\\\\%s\\x" % meta, "/\\%s/x" % meta, " http://%s/" % meta, "http://%s\t/" % meta, "http:%s" % meta, "http:/%s/" % meta,
             "http:///%s/" % meta, "http://x@%s/" % meta, "http://%s:80@127.0.0.1:%d/" % (meta, p), "http://127.0.0.1:%d/secret" % p,
             "https://127.0.0.1:%d/secret" % p, "//127.0.0.1:%d/secret" % p, "http://localhost:%d/secret" % p, "http://[::1]:%d/secret" % p,
             "http://[::ffff:%s]/" % meta, "http://2130706433:%d/secret" % p, "http://127.0.0.9:1/", "http://127.0.0.9:22/",
             "file:///etc/hostname", "file://127.0.0.1/etc/hostname", "gopher://127.0.0.1:%d/x" % p, "ftp://127.0.0.1:%d/x" % p,
             "dict://127.0.0.1:%d/x" % p, "data:image/png;base64,AAAA", "javascript:1", "about:blank", "ws://127.0.0.1:%d/" % p, "http://", ":", "http://\uff11\uff12\uff17.0.0.1:%d/secret" % p]
    urls = []
    for i, to in enumerate(roads):
        for status in (301, 302, 303, 307, 308) if i < 2 else (302,):
            path = "/r%d-%d" % (i, status)
            door.routes[path] = (status, [("Location", to.encode().decode("latin-1"))], b"")
            urls.append(door.url(path))
    for path, headers in (("/two", [("Location", "/end"), ("Location", "http://%s/" % meta)]),
                          ("/refresh", [("Refresh", "0; url=http://%s/" % meta)]),
                          ("/alt", [("Alt-Svc", 'h2="%s:80"; ma=99' % meta), ("Location", "/end")]),
                          ("/content", [("Content-Location", "http://%s/" % meta)])):
        door.routes[path] = (302, headers, b"")
        urls.append(door.url(path))
    chain = "/end"
    for i in range(2):
        door.routes["/chain%d" % i] = (302, {"Location": chain}, b"")
        chain = "/chain%d" % i
    door.routes["/late"] = (302, {"Location": "http://%s/" % meta}, b"")
    door.routes["/on"] = (302, {"Location": "/late"}, b"")
    urls += [door.url("/on"), door.url(chain)]
    dns = Dns({"localhost": ["127.0.0.1"]})
    got, went = fetched(d, urls, "--dns", dns.net, allow=[door.net])
    tap.eq(went - {("127.0.0.1", int(dns.net.split(":")[1]))}, {place(door)}, "%d redirects, none leads anywhere else" % len(urls))
    good = {door.url(x) for x in (chain, "/alt")}
    tap.eq({u for u, t in got.items() if t == "success"} - {door.url("/two")}, good, "and only those to a picture succeed")
    tap.eq({got[door.url("/r0-%d" % s)] for s in (301, 302, 303, 307, 308)}, {BLOCKED}, "by every kind of redirect")


def test_downgrade(d):
    """From https to http, too: the new address is checked like any."""
    cert, key = d + "/cert.pem", d + "/key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.5", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    tls, plain, inside = Server("127.0.0.5", tls=(cert, key)), Server("127.0.0.6"), Server("127.0.0.1")
    plain.serve("/x", PHOTO)
    tls.routes["/out"] = (302, {"Location": plain.url("/x")}, b"")
    tls.routes["/in"] = (302, {"Location": inside.url("/x")}, b"")
    urls = ["https://%s/%s" % (tls.net, x) for x in ("out", "in")]
    got, went = fetched(d, urls, allow=[tls.net, plain.net], env={"SSL_CERT_FILE": cert})
    tap.eq(([got.get(u) for u in urls], went), (["success", BLOCKED], {place(tls), place(plain)}), "from https to http")


def test_environment(d, server):
    """The worker ignores proxies and host lists of a user's environment."""
    proxy = {k: "http://127.0.0.1:%d" % server.port for k in
             ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")}
    door = Server("127.0.0.9")
    door.serve("/x", PHOTO)
    home = os.path.join(d, "home")
    os.makedirs(home)
    with open(home + "/.netrc", "w") as f:
        f.write("machine 127.0.0.9 login me password secret\n")
    got, went = fetched(d, [door.url("/x")], allow=[door.net], env=dict(proxy, HOME=home, LOCALDOMAIN="test", RES_OPTIONS="ndots:9"))
    tap.eq((list(got.values()), went), (["success"], {place(door)}), "no proxy is asked")
    tap.ok("Authorization" not in door.headers["/x"] and "Cookie" not in door.headers["/x"]
           and "Referer" not in door.headers["/x"], "and nothing about us is told", door.headers["/x"])


with Folder() as d:
    server = Server()
    server.serve("/x", PHOTO)
    server.serve("/secret", PHOTO)
    test_the_witness(d, server)
    test_disguised_hosts(d, server)
    test_names(d, server)
    test_rebinding(d, server)
    test_redirects(d, server)
    test_downgrade(d)
    test_environment(d, server)
sys.exit(tap.done())
