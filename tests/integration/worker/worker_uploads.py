#!/usr/bin/python3
"""Aim: every byte that the worker uploads is the one that S3 stores, whatever happens on the way, and botocore
reads the same checksums. Method: a proxy before drover-local flips bytes, cuts bodies, forges checksums in
answers and loses replies, each once for each kind of request; a bucket encrypted with a key of KMS; the
checksums are computed here from the files.
"""
import base64
import hashlib
import os
import random
import re
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *
from kit.worker.s3 import *

tap = Tap()
SHARDS, PER = 2, 4
BODY = encode(np.random.RandomState(1).randint(0, 255, (1040, 1040, 3), np.uint8), "PNG", compress_level=0)  # 3.2 MB


class Proxy:
    """Forwards to drover-local. Each order (pattern of "METHOD target", damage) is carried out once."""

    def __init__(self, upstream):
        self.upstream = upstream.split("//")[1].split(":")
        self.lock, self.orders, self.done = threading.Lock(), [], []
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = "http://127.0.0.1:%d" % self.sock.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def order(self, damage, *patterns):
        with self.lock:
            self.orders, self.done = [(re.compile(p), damage) for p in patterns], []

    def take(self, line):
        with self.lock:
            for o in self.orders:
                if o[0].search(line):
                    self.orders.remove(o)
                    self.done.append(line)
                    return o[1]
        return None

    def accept(self):
        while True:
            threading.Thread(target=self.serve, args=(self.sock.accept()[0],), daemon=True).start()

    @staticmethod
    def message(f):
        """(head lines, body) of a request or an answer, None at the end."""
        lines = []
        while True:
            line = f.readline(65536)
            if not line:
                return None
            if line == b"\r\n":
                break
            lines.append(line)
        n = [int(h.split(b":")[1]) for h in lines if h.lower().startswith(b"content-length:")]
        return lines, (f.read(n[0]) if n else b"")

    def serve(self, client):
        with client, socket.create_connection((self.upstream[0], int(self.upstream[1]))) as up:
            down, there = client.makefile("rb"), up.makefile("rb")
            try:
                while self.forward(client, up, down, there):
                    pass
            except OSError:
                pass

    def forward(self, client, up, down, there):
        asked = self.message(down)
        if asked is None:
            return False
        lines, body = asked
        damage = self.take(lines[0].decode().rsplit(" ", 1)[0])
        if damage in ("flip", "cut"):
            half = len(body) // 2
            body = body[:half] if damage == "cut" else body[:half] + bytes([body[half] ^ 4]) + body[half + 1:]
            lines = [b"Content-Length: %d\r\n" % len(body) if h.lower().startswith(b"content-length:") else h for h in lines]
        up.sendall(b"".join(lines) + b"\r\n" + body)
        head = lines[0].startswith(b"HEAD ")
        answer = self.message(there) if not head else (self.head(there), b"")
        if damage == "lose" or answer is None or answer[0] is None:
            return False
        lines, body = answer
        if damage == "forge":
            swap = lambda m: m[1] + (b"B" if m[2] == b"A" else b"A")  # noqa: E731
            lines = [re.sub(rb"(?i)^(x-amz-checksum-sha256: *)(.)", swap, h) for h in lines]
            longer = re.sub(rb"(<ChecksumSHA256>)(.)", swap, body)
            assert len(longer) == len(body)
            body = longer
        client.sendall(b"".join(lines) + b"\r\n" + body)
        return True

    @staticmethod
    def head(f):
        lines = []
        while True:
            line = f.readline(65536)
            if not line:
                return None
            if line == b"\r\n":
                return lines
            lines.append(line)


def checksum_of(path):
    """What S3 tells of a file that the worker uploaded: in one piece, or in parts of PART_BYTES."""
    data = open(path, "rb").read()
    sha = lambda b: hashlib.sha256(b).digest()  # noqa: E731
    b64 = lambda b: base64.b64encode(b).decode()  # noqa: E731
    parts = [data[i:i + PART_BYTES] for i in range(0, len(data), PART_BYTES)]
    return b64(sha(data)) if len(parts) < 2 else "%s-%d" % (b64(sha(b"".join(map(sha, parts)))), len(parts))


def object_faults(local, bucket, prefix, stated=True):
    """Objects below the prefix whose checksum (stated: they have one) or writer is not as it has to be; their
    names.
    """
    s3, bad, writers = local.client(), [], []
    names = sorted(local.etags(bucket, prefix))
    for name in names:
        h = s3.head_object(Bucket=bucket, Key=prefix + "/" + name, ChecksumMode="ENABLED")
        want = checksum_of(local.folder(bucket, prefix, name)) if stated else None
        if h.get("ChecksumSHA256") != want:
            bad.append("%s: %r, not %r" % (name, h.get("ChecksumSHA256"), want))
        writers.append(h["Metadata"].get("drover-writer", ""))
        if not re.fullmatch("[0-9a-f]{32}", writers[-1]):
            bad.append("%s: writer %r" % (name, writers[-1]))
        if ("aws:kms" in str(h.get("ServerSideEncryption"))) != (bucket == "sealed"):
            bad.append("%s: %r" % (name, h.get("ServerSideEncryption")))
    if len(set(writers)) != len(writers):
        bad.append("writers %r" % writers)
    return bad, names


def make_part(d, server):
    for i in range(SHARDS * PER):
        server.serve("/i%d.png" % i, BODY, "image/png")
    path = os.path.join(d, "p.parquet")
    make_parquet(path, [{"url": server.url("/i%d.png" % i)} for i in range(SHARDS * PER)], {"url": "VARCHAR"})
    return path


def download(local, proxy, part, server, bucket, name, **env):
    """(status, log, faults of the output)"""
    rc, so, se = run(["--parquet", part, "--output", "s3://%s/%s" % (bucket, name), "--number_sample_per_shard", PER,
                      "--disable_all_reencoding", "true", "--processes_count", 1, "--retries", 0, "--timeout", 60,
                      "--allow-net", server.net], env=local.env(AWS_ENDPOINT_URL=proxy.url, **env))
    if rc != 0:
        return rc, se, []
    out = local.folder(bucket, name)
    bad = [f for i in range(SHARDS) for f in shard_faults(out, i, ["%06d" % (10 * i + r) for r in range(PER)])]
    for i in range(SHARDS):
        bad += ["bytes of " + n for n, b in members(os.path.join(out, "%05d.tar" % i)) if n.endswith(".jpg") and b != BODY]
    faults, names = object_faults(local, bucket, name, not env)
    tap.eq(len(names), 3 * SHARDS + 3, "%s: all objects are there" % name)
    return rc, se, bad + faults + manifest_faults(out, local.etags(bucket, name)) + ["open: " + k for k in local.uploads()]


PUTS = [r"^PUT .*%s($|\?)" % re.escape(x) for x in ("_part.json", "00000.parquet", "00001_stats.json", "_manifest.json")]
MULTIPART = [r"^PUT .*00000.tar\?partNumber=1&", r"^PUT .*00001.tar\?partNumber=2&", r"^POST .*00001.tar\?uploadId="]


def test_download(local, proxy, part, server):
    for damage in ("flip", "cut", "forge", "lose"):
        for bucket in ("data", "sealed"):
            proxy.order(damage, *PUTS, *MULTIPART)
            name = damage + "-" + bucket
            before = len(local.wire())
            rc, se, bad = download(local, proxy, part, server, bucket, name)
            tap.ok(rc == 0 and not bad, "%s of each kind of upload: %s is whole" % (damage, bucket), "\n".join(bad) + se)
            tap.eq((len(proxy.done), proxy.orders), (len(PUTS + MULTIPART), []), "each was met once")
            refused = [q["error"] for q in local.wire()[before:] if q["status"] == 400]
            tap.eq(len(refused), len(PUTS + MULTIPART) if damage in ("flip", "cut") else 0, "what is damaged is refused by S3")
            sent = collections.Counter((q["operation"], q["name"].split("/")[-1]) for q in local.wire()[before:])
            tap.eq([sent["PutObject", "00000.parquet"], sent["UploadPart", "00000.tar"], sent["HeadObject", "00001.tar"]],
                   [2, 3, 2 if damage in ("forge", "lose") else 1], "and sent again, or looked at (once by botocore)")


def test_without_checksums(local, proxy, part, server):
    """The setting for stores that refuse checksums: what is damaged is found by the signature all the same."""
    proxy.order("flip", *PUTS, *MULTIPART)
    rc, se, bad = download(local, proxy, part, server, "data", "plain", AWS_REQUEST_CHECKSUM_CALCULATION="when_required")
    tap.ok(rc == 0 and not bad and not proxy.orders, "when_required: whole, and no checksum is stated", "\n".join(bad) + se)


def test_lost_for_good(local, proxy, part, server):
    """Bytes that never arrive as sent end the part as a failure of the network, and are stored nowhere."""
    proxy.order("flip", *[r"^PUT .*00000.parquet"] * 100)
    rc, so, se = run(["--parquet", part, "--output", "s3://data/never", "--number_sample_per_shard", PER, "--disable_all_reencoding",
                      "true", "--processes_count", 1, "--retries", 0, "--allow-net", server.net, "--s3_patience", 1],
                     env=local.env(AWS_ENDPOINT_URL=proxy.url))
    names = local.etags("data", "never")
    tap.ok(rc == 75 and "00000.parquet" not in names and "_manifest.json" not in names and "another writer" not in se,
           "bytes damaged each time end the part, and are not stored", "%d %r %s" % (rc, names, se))


def test_copy_and_index(local, proxy):
    """A copy of three parts whose answers are lost, in the bucket of KMS, and an index of what was downloaded."""
    data = random.Random(5).randbytes(2 * PART_BYTES + 1000)
    local.put("data/source/big.bin", data)
    proxy.order("lose", r"^PUT .*big.bin\?partNumber=2&", r"^POST .*big.bin\?uploadId=", r"^PUT .*_manifest.json")
    env = dict(os.environ, DROVER_ML_ROOT="/nonexistent", **local.env(AWS_ENDPOINT_URL=proxy.url))
    for args in (["copy", "--from", "s3://data/source/*.bin", "--to", "s3://sealed/copied/{file_name}", "--output", "s3://sealed/copy-out"],
                 ["index", "--input", "s3://sealed/lose-sealed", "--output", "s3://sealed/index"]):
        p = subprocess.run([WORKER] + args, env=env, capture_output=True, text=True, timeout=patience(120))
        tap.ok(p.returncode == 0, "%s ends well" % args[0], p.stderr)
    tap.eq(proxy.orders, [], "the copy's replies were lost")
    tap.ok(open(local.folder("sealed", "copied", "big.bin"), "rb").read() == data, "the copy has the source's bytes")
    for prefix in ("copied", "copy-out", "index"):
        bad, names = object_faults(local, "sealed", prefix)
        tap.ok(names and not bad, "%s: %d objects with the right checksums" % (prefix, len(names)), "\n".join(bad))


with Folder() as d:
    server = Server()
    local = Local(d, refused=("CompleteMultipartUpload",))  # damaged on the way
    try:
        proxy = Proxy(local.url)
        part = make_part(d, server)
        test_download(local, proxy, part, server)
        test_without_checksums(local, proxy, part, server)
        test_lost_for_good(local, proxy, part, server)
        test_copy_and_index(local, proxy)
    finally:
        local.stop()
sys.exit(tap.done())
