"""Shared by the worker's tests: pictures, a web server that counts, a small DNS server, parquet fixtures,
running the worker, reading shards, TAP output.
"""
import atexit
import collections
import http.server
import io
import json
import os
import shutil
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import numpy as np
from PIL import Image

from kit import BIN, TOP, VARIANT, Tap, patience, wait_for

WORKER = os.path.join(BIN, "drover-worker")
SQL = os.path.join(TOP, "build", VARIANT, "tests", "kit", "worker_fixture")


def photo(w, h, seed, channels=3):
    """Smooth fields with texture and edges: compresses and resizes like a photograph."""
    r = np.random.RandomState(seed)
    out = np.zeros((h, w, channels), np.float64)
    for c in range(channels):
        for octave in (4, 9, 23, 60):
            small = r.rand(octave, octave) * 255
            im = Image.fromarray(small.astype(np.uint8)).resize((w, h), Image.BICUBIC)
            out[:, :, c] += np.asarray(im, np.float64) * (4.0 / octave)
    out -= out.min()
    out *= 255 / max(out.max(), 1)
    out[h // 3: h // 3 + max(h // 20, 1), :, 0] = 30
    return out.clip(0, 255).astype(np.uint8)


def encode(px, fmt, **kw):
    b = io.BytesIO()
    Image.fromarray(px).save(b, fmt, **kw)
    return b.getvalue()


def png_claiming(w, h):
    """A PNG of 69 bytes whose header claims w x h."""
    def chunk(kind, data):
        import zlib
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    import zlib
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b""))


class Server:
    """Routes: path -> (status, headers, body) or a callable(handler). hits counts by path."""

    def __init__(self, addr="127.0.0.1", tls=None):
        self.routes = {}
        self.hits = collections.Counter()
        self.headers = {}
        self.lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *a):
                pass

            def do_GET(self):
                with outer.lock:
                    outer.hits[self.path] += 1
                    outer.headers[self.path] = dict(self.headers.items())
                route = outer.routes.get(self.path)
                if callable(route):
                    route(self)
                    return
                status, headers, body = route or (404, {}, b"no")
                self.answer(status, headers, body)

            def answer(self, status, headers, body):
                try:
                    self.send_response(status)
                    for k, v in (headers.items() if isinstance(headers, dict) else headers):
                        self.send_header(k, v)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True

        class Many(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            request_queue_size = 512

            def handle_error(self, *a):
                pass

        self.httpd = Many((addr, 0), Handler)
        if tls is not None:
            ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            ctx.load_cert_chain(*tls)
            self.httpd.socket = ctx.wrap_socket(self.httpd.socket, server_side=True)
        self.port = self.httpd.server_address[1]
        self.net = "%s:%d" % (addr, self.port)
        threading.Thread(target=self.httpd.serve_forever, args=(0.05,), daemon=True).start()

    def url(self, path):
        return "http://%s%s" % (self.net, path)

    def serve(self, path, body, ctype="image/jpeg", status=200, headers=()):
        self.routes[path] = (status, [("Content-Type", ctype)] + list(headers), body)
        return self.url(path)


def slowly(pieces, pause=0, length=None, sent=None):
    """A route of a Server: 200, then the pieces with pauses (seconds) between them, until the client leaves;
    length: Content-Length, None: no header. sent: a list for the bytes written to each.
    """
    def answer(h):
        h.send_response(200)
        h.send_header(*(("Connection", "close") if length is None else ("Content-Length", str(length))))
        h.end_headers()
        try:
            for piece in pieces:
                n = h.wfile.write(piece)
                h.wfile.flush()
                if sent is not None:
                    sent.append(n)
                if pause:
                    time.sleep(pause)
        except OSError:
            pass
        h.close_connection = True
    return answer


class Dns:
    """Answers A queries over UDP from names: name -> [ip] (NXDOMAIN when absent, [] no data), or
    Dns.SERVFAIL; silent about names that begin with mute.
    """
    SERVFAIL = ("servfail",)

    def __init__(self, names):
        self.names, self.mute = names, None
        self.asked = collections.Counter()
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.net = "127.0.0.1:%d" % self.sock.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            q, peer = self.sock.recvfrom(4096)
            labels, i = [], 12
            while q[i]:
                labels.append(q[i + 1: i + 1 + q[i]].decode())
                i += q[i] + 1
            name = ".".join(labels).lower()
            qtype = struct.unpack(">H", q[i + 1: i + 3])[0]
            self.asked[name, qtype] += 1
            if self.mute is not None and name.startswith(self.mute):
                continue
            found = self.names.get(name)
            broken = found is self.SERVFAIL
            ips = [ip for ip in (found or []) if (":" in ip) == (qtype == 28) and not broken]
            head = struct.pack(">HHHHHH", struct.unpack(">H", q[:2])[0],
                               0x8182 if broken else 0x8180 if found is not None else 0x8183, 1, len(ips), 0, 0)
            answer = b"".join(
                b"\xc0\x0c" + struct.pack(">HHIH", qtype, 1, 60, 16 if qtype == 28 else 4)
                + socket.inet_pton(socket.AF_INET6 if qtype == 28 else socket.AF_INET, ip)
                for ip in ips)
            self.sock.sendto(head + q[12: i + 5] + answer, peer)


class Duck:
    """A DuckDB that answers one statement after the other: to start one takes longer than most statements. Any thread may ask."""
    END = b"\x1e\n"

    def __init__(self):
        self.lock, self.p = threading.Lock(), None

    def ask(self, line):
        with self.lock:
            if self.p is None:
                self.errors = tempfile.TemporaryFile()
                self.p = subprocess.Popen([SQL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
                atexit.register(self.close)
            self.p.stdin.write(line.encode() + b"\n")
            self.p.stdin.flush()
            rows = self.rows()
            if rows is None:
                self.close()
                self.errors.seek(0)
                raise RuntimeError(self.errors.read().decode())
            return rows

    def rows(self):
        """Up to the end of the answer; None when it ended before that."""
        rows = []
        while (line := self.p.stdout.readline()) != self.END:
            if not line:
                return None
            rows.append(line[:-1].decode())
        return rows

    def close(self):
        p, self.p = self.p, None
        if p is not None:
            p.stdin.close()
            p.stdout.close()
            p.wait()
            atexit.unregister(self.close)


DUCK = Duck()


def sql(*lines):
    return [row for line in lines for row in DUCK.ask(line)]


def make_parquet(path, rows, types):
    """rows: dicts; types: column -> SQL type, in order."""
    src = path + ".jsonl"
    with open(src, "w") as f:
        for r in rows:
            f.write(json.dumps(r) + "\n")
    cols = ", ".join("'%s': '%s'" % kv for kv in types.items())
    sql("COPY (SELECT * FROM read_json('%s', format='newline_delimited', columns={%s})) TO '%s' "
        "(FORMAT parquet, COMPRESSION snappy)" % (src, cols, path))
    os.unlink(src)


def read_parquet(path):
    return [json.loads(x) for x in sql("SELECT to_json(t) FROM '%s' t" % path)]


def parquet_schema(path):
    return [tuple(x.split("\t")) for x in
            sql("SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM '%s')" % path)]


def start(args, env=None, **kw):
    e = dict(os.environ, DROVER_ML_ROOT=kw.pop("ml_root", "/nonexistent"))
    e.update(env or {})
    return subprocess.Popen([WORKER, "download"] + [str(a) for a in args], env=e,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)


def finish(p, timeout=120):
    """(status, stdout, stderr) of a started worker; -999: killed after `seconds`."""
    try:
        out, err = p.communicate(timeout=patience(timeout))
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
        return -999, out, err
    return p.returncode, out, err


def run(args, env=None, timeout=120, **kw):
    return finish(start(args, env, **kw), timeout)


def descendants(pid):
    """All live processes below pid."""
    out = []
    for p in os.listdir("/proc"):
        if p.isdigit():
            try:
                stat = open("/proc/%s/stat" % p).read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(stat[1]) == pid and stat[0] != "Z":
                out += [int(p)] + descendants(int(p))
    return out


def members(path):
    """[(name, bytes)] of a tar, by Python's tarfile."""
    with tarfile.open(path) as t:
        return [(m.name, t.extractfile(m).read()) for m in t]


def samples(path):
    """key -> {ext: bytes}"""
    out = collections.OrderedDict()
    for name, data in members(path):
        key, ext = name.split(".", 1)
        out.setdefault(key, {})[ext] = data
    return out


def load(folder, name):
    with open(os.path.join(folder, name)) as f:
        return json.load(f)


class Folder:
    """A temporary folder, deleted at the end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="drover-worker-")
        return self.path

    def __exit__(self, *a):
        shutil.rmtree(self.path, ignore_errors=True)


def psnr(a, b):
    e = np.mean((a.astype(np.float64) - b.astype(np.float64)) ** 2)
    return 99.0 if e == 0 else 10 * np.log10(255 * 255 / e)


if not os.path.exists(WORKER) or not os.path.exists(SQL):
    print("Bail out! build first: %s %s" % (WORKER, SQL))
    sys.exit(1)
