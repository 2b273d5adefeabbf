#!/usr/bin/python3
"""Aim: the deadline of a URL counts only time its host is responsible for: no row is lost because our
decoders stand still, the worker gets hardly any processor time, our own limits make it wait, or queries
for other names come before its own. Method: processes stopped by signals for longer than the deadline, or
running only a few milliseconds of each fifth of a second; more unanswered names than queries may be open;
many redirects to a host with one connection. The four run in parallel.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *

tap = Tap()
PHOTO = encode(photo(90, 70, 1), "JPEG")


class Job:
    """One run of the worker over these URLs."""

    def __init__(self, d, name, urls, *args, allow=(), env=None):
        part, self.out = os.path.join(d, name + ".parquet"), os.path.join(d, name)
        make_parquet(part, [{"url": u} for u in urls], {"url": "VARCHAR"})
        allowed = [x for a in allow for x in ("--allow-net", a)]
        self.p = start(["--parquet", part, "--output", self.out] + allowed + list(args), env=env)

    def children(self, pid):
        try:
            with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
                return [int(x) for x in f.read().split()]
        except OSError:
            return []

    def decoders(self):
        return [c for server in self.children(self.p.pid) for c in self.children(server)]

    def outcomes(self):
        """{error text or 'success': rows}"""
        try:
            _, err = self.p.communicate(timeout=patience(100))
        except subprocess.TimeoutExpired:
            self.p.kill()
            return {"the worker hangs": 1}
        if self.p.returncode != 0:
            return {err[-500:]: 1}
        return load(self.out, "00000_stats.json")["status_dict"]


def stopped_decoders(d):
    """40 bodies of 6 MB are more than is held at once: transfers pause for 6 s with 2 s to live; for longer with more on
    a busy machine, whose server is slow itself, and that is the host's time."""
    server, deadline = Server(), round(patience(2))
    body = PHOTO + b"\0" * (6 << 20)

    def answer(h):
        h.send_response(200)
        h.send_header("Content-Length", str(len(body)))
        h.end_headers()
        for i in range(0, len(body), 1 << 19):
            h.wfile.write(body[i:i + (1 << 19)])
            time.sleep(0.03)
    urls = [server.url("/%d" % i) for i in range(40)]
    server.routes.update({"/%d" % i: answer for i in range(40)})
    job = Job(d, "decoders", urls, "--timeout", deadline, "--processes_count", 2, allow=[server.net])
    wait_for(lambda: len(job.decoders()) == 2)
    stopped = job.decoders()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(3 * deadline)
    waiting = job.p.poll() is None
    with open("/proc/%d/status" % job.p.pid) as f:
        held = int(f.read().split("VmRSS:")[1].split()[0]) // 1024
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    got = job.outcomes()
    tap.ok(waiting and len(stopped) == 2, "decoders stop for three deadlines")
    tap.ok(held < 240 or VARIANT != "release", "meanwhile bodies are held up to the limit and no more: %d MB in all" % held)
    tap.eq(got, {"success": 40}, "no transfer that waits for them is lost")


class QuickTls(Server):
    """Shakes hands in the connection's own thread, so that a slow client delays nobody."""

    def __init__(self, addr, cert, key):
        super().__init__(addr)
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(cert, key)
        self.httpd.socket = ctx.wrap_socket(self.httpd.socket, server_side=True, do_handshake_on_connect=False)

    def url(self, path):
        return "https://%s%s" % (self.net, path)


def starved(d):
    """600 handshakes at once need some 600 ms of a processor, a quarter of them under a sanitizer; of 15 in 105 that
    takes several deadlines."""
    n = 600 if VARIANT == "release" else 150
    cert, key = d + "/cert.pem", d + "/key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-days", "2", "-subj", "/CN=late", "-addext", "subjectAltName=IP:127.0.0.5", "-keyout",
                    key, "-out", cert], check=True, capture_output=True)
    server = QuickTls("127.0.0.5", cert, key)
    urls = [server.serve("/%d" % i, PHOTO) for i in range(n)]
    job = Job(d, "starved", urls, "--timeout", 1, "--host_connections", 600, "--thread_count", 600,
              allow=[server.net], env={"SSL_CERT_FILE": cert})
    wait_for(lambda: len(server.hits) > 0)
    pulses = 0
    while job.p.poll() is None and pulses < 200:
        os.kill(job.p.pid, signal.SIGSTOP)
        time.sleep(0.09)
        os.kill(job.p.pid, signal.SIGCONT)
        time.sleep(0.015)
        pulses += 1
    tap.eq(job.outcomes(), {"success": n}, "a worker that hardly runs loses no row of a quick host")
    tap.ok(pulses >= 25, "and hardly ran for longer than the deadline: %d pulses" % pulses)


def unanswered_names(d):
    """300 names of a domain whose servers are gone, then one that answers at once."""
    server = Server("127.0.0.6")
    server.serve("/x", PHOTO)

    class Names(dict):
        def get(self, name, default=None):
            return ["127.0.0.6"] if name.startswith("alive") else self.silence()

        def silence(self):
            raise KeyError
    dns = QuietDns(Names())
    urls = [server.url("/x")] + ["http://dead%d.test/" % i for i in range(300)]
    urls += ["http://alive%d.test:%d/x" % (i, server.port) for i in range(5)]
    job = Job(d, "names", urls, "--timeout", 2, "--dns", dns.net, "--thread_count", 512, allow=[server.net])
    got = job.outcomes()
    tap.eq(got, {"success": 6, "<urlopen error [Errno -3] Temporary failure in name resolution>": 300},
           "names that nobody answers for cost no other name its row")
    tap.ok(dns.most <= 256, "and no more than 256 questions are open", dns.most)


class QuietDns(Dns):
    """Says nothing about names its table raises for; most: different such names in the first 8 s, when
    none of the first questions is given up yet."""
    most = 0

    def run(self):
        silent, began = set(), time.monotonic()
        while True:
            q, peer = self.sock.recvfrom(4096)
            labels, i = [], 12
            while q[i]:
                labels.append(q[i + 1: i + 1 + q[i]].decode())
                i += q[i] + 1
            name = ".".join(labels).lower()
            try:
                ips = self.names.get(name)
            except KeyError:
                silent.add(name)
                self.most = self.most if time.monotonic() > began + 8 else len(silent)
                continue
            head = struct.pack(">HHHHHH", struct.unpack(">H", q[:2])[0], 0x8180, 1, len(ips), 0, 0)
            answer = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton(x) for x in ips)
            self.sock.sendto(head + q[12: i + 5] + answer, peer)


def redirects_in_line(d):
    """24 redirects to a host of one connection and a quarter of a second each: three deadlines."""
    door, house = Server("127.0.0.7"), Server("127.0.0.8")

    def answer(h):
        time.sleep(0.25)
        h.answer(200, {}, PHOTO)
    urls = []
    for i in range(24):
        house.routes["/%d" % i] = answer
        door.routes["/%d" % i] = (302, {"Location": house.url("/%d" % i)}, b"")
        urls.append(door.url("/%d" % i))
    job = Job(d, "line", urls, "--timeout", 2, "--host_connections", 1, allow=[door.net, house.net])
    tap.eq(job.outcomes(), {"success": 24}, "waiting for a turn that we hold back is not the host's time")


with Folder() as d:
    threads = [threading.Thread(target=f, args=(d,)) for f in
               (stopped_decoders, starved, unanswered_names, redirects_in_line)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
sys.exit(tap.done())
