#!/usr/bin/env python3
"""A web server that misbehaves on request, for the tests of the HTTP, AWS and S3 clients.

Prints "port N" and serves until its standard input ends. The first path element names the behaviour.
Requests are counted by "METHOD path"; GET /count?KEY answers how often KEY came, so a test can prove that
something was sent twice or never; reads of a range of an object also count as "RANGE path". Signatures are
checked by code of its own (/signed). With HOSTILE_TLS=FILE (certificate and key) it speaks TLS.
"""
import base64
import gzip
import hashlib
import hmac
import json
import os
import re
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse
import zlib
from email.utils import formatdate

SECRET = {"AKIDTEST": "secret-of-the-test", "AKIDNEW": "another-secret"}
LOCK = threading.Lock()
COUNTS = {}
OBJECTS = {}  # path -> (bytes, etag)
META = {}  # path -> [(header, value)] of the object's metadata
PARTS = {}
CREATED = {}  # path -> META of the object that the parts will make
SEEN = {}


class Gone(Exception):
    """Ends the connection."""


class Request:
    def __init__(self, method, target, headers, body):
        self.method, self.headers, self.body = method, headers, body
        if target.startswith("http://"):  # asked as a proxy
            target = "/" + target[7:].partition("/")[2]
        self.target = target
        self.path, _, self.query = target.partition("?")


def read_request(stream):
    line = stream.readline(65536).decode("latin-1").rstrip("\r\n")
    if not line:
        raise Gone
    method, target, _ = line.split(" ", 2)
    headers = []
    while True:
        h = stream.readline(65536).decode("latin-1").rstrip("\r\n")
        if not h:
            break
        name, _, value = h.partition(":")
        headers.append((name.lower(), value.strip()))
    n = int(dict(headers).get("content-length", "0"))
    body = stream.read(n)
    if len(body) < n:
        raise Gone
    return Request(method, target, dict(headers), body)


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raise Gone


def answer(sock, status, body=b"", headers=(), head=False, length=None):
    if isinstance(body, str):
        body = body.encode()
    lines = ["HTTP/1.1 %d X" % status, "Content-Length: %d" % (len(body) if length is None else length)]
    names = {n.lower() for n, _ in headers}
    if "date" not in names:
        lines.append("Date: " + formatdate(usegmt=True))
    lines += ["%s: %s" % h for h in headers]
    sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if head else body))


def first_time(key):
    with LOCK:
        SEEN[key] = SEEN.get(key, 0) + 1
        return SEEN[key] == 1


# Signatures, written from the specification and not from our C.
def quote(s):
    return urllib.parse.quote(s, safe="-_.~")


def signature_is_right(req):
    m = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?"
        r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})",
        req.headers.get("authorization", ""))
    if not m:
        return False
    key, day, region, service, names, signature = m.groups()
    date = req.headers.get("x-amz-date", "")
    required = {"host"} | {h for h in req.headers if h.startswith("x-amz-")} | (
        {"content-type"} & set(req.headers))
    if not required <= set(names.split(";")) or not date.startswith(day) or key not in SECRET:
        return False
    pairs = [p.partition("=") for p in req.query.split("&") if p]
    query = "&".join("%s=%s" % t for t in sorted(
        (quote(urllib.parse.unquote(k)), quote(urllib.parse.unquote(v))) for k, _, v in pairs))
    digest = hashlib.sha256(req.body).hexdigest()
    payload = req.headers.get("x-amz-content-sha256", digest)
    if payload not in (digest, "UNSIGNED-PAYLOAD") or (service == "s3") != (
            "x-amz-content-sha256" in req.headers):
        return False
    path = req.path if service == "s3" else urllib.parse.quote(req.path, safe="/-_.~")
    canonical = "\n".join([
        req.method, path, query,
        "".join("%s:%s\n" % (n, re.sub(" +", " ", req.headers.get(n, "").strip()))
                for n in names.split(";")), names, payload])
    scope = "/".join([day, region, service, "aws4_request"])
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    k = ("AWS4" + SECRET[key]).encode()
    for part in (day, region, service, "aws4_request", text):
        k = hmac.new(k, part.encode(), hashlib.sha256).digest()
    return hmac.compare_digest(k.hex(), signature)


def b_ok(sock, req):
    answer(sock, 200, "hello", [("X-Test", "  padded  ")], head=req.method == "HEAD")


def b_echo(sock, req):
    head = "".join("%s: %s\n" % h for h in sorted(req.headers.items()))
    answer(sock, 200, ("%s %s\n%s\n" % (req.method, req.target, head)).encode() + req.body,
           head=req.method == "HEAD")


def b_count(sock, req):
    with LOCK:
        n = COUNTS.get(urllib.parse.unquote(req.query), 0)
    answer(sock, 200, str(n))


def b_reset_before(sock, req):
    reset(sock)


def b_reset_mid(sock, req):
    answer(sock, 200, b"x" * 100, length=1000)
    time.sleep(0.05)  # let it arrive: a reset may discard what is on its way
    reset(sock)


def b_close_mid(sock, req):
    answer(sock, 200, b'{"a":"' + b"x" * 100, length=1000)
    raise Gone


def b_close_empty(sock, req):
    raise Gone


def b_half_json(sock, req):
    answer(sock, 200, '{"TrainingJobArn":"arn:aws:sagem')


def b_array_json(sock, req):
    answer(sock, 200, '["TrainingJobArn"]')


def b_unframed(sock, req):
    sock.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"cut":tr')
    raise Gone


def b_big(sock, req):
    answer(sock, 200, b"b" * 10_000_000)


def b_endless(sock, req):
    sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        sock.sendall(b"10000\r\n" + b"e" * 65536 + b"\r\n")


def b_endless_headers(sock, req):
    sock.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        sock.sendall(b"X-Filler: " + b"f" * 1000 + b"\r\n")


def b_slow(sock, req):
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        sock.sendall(b"s")
        time.sleep(1)  # a byte a second: that is the attack


def b_silent(sock, req):
    while sock.recv(1):
        pass
    raise Gone


def b_chunk_bad(sock, req):
    sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n")
    raise Gone


def b_chunk_cut(sock, req):
    sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    raise Gone


def b_chunk_huge(sock, req):
    sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc")
    raise Gone


def b_chunk_tiny(sock, req):
    sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                 b"1;x=y\r\n{\r\n1\r\n}\r\n0\r\nTrailer: t\r\n\r\n")


def b_not_http(sock, req):
    sock.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
    raise Gone


def b_continue(sock, req):
    sock.sendall(b"HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n")
    answer(sock, 200, "{}")


def b_html(sock, req):
    answer(sock, int(req.path.split("/")[2]), "<html><title>Bad</title><Code>NoSuchKey</Code></html>",
           [("Content-Type", "text/html")])


def b_err200(sock, req):
    answer(sock, 200, "<Error><Code>InternalError</Code><Message>m</Message></Error>")


def b_gzip(sock, req):
    answer(sock, 200, gzip.compress(b'{"a":1}'), [("Content-Encoding", "gzip")])


def b_redirect(sock, req):
    answer(sock, 302, "", [("Location", "/ok")])


def b_empty(sock, req):
    answer(sock, 200, "")


def b_json(sock, req):  # /json/STATUS/CODE/MESSAGE
    _, _, status, code, message = urllib.parse.unquote(req.path).split("/", 4)
    answer(sock, int(status), json.dumps({"__type": "x#" + code, "message": message}),
           [("x-amzn-RequestId", "rid-1"), ("Retry-After", "2")])


def b_signed(sock, req):
    ok = signature_is_right(req)
    answer(sock, 200 if ok else 403, "{}" if ok else '{"__type":"SignatureDoesNotMatch"}')


def b_xml_signed(sock, req):
    ok = signature_is_right(req) and req.body.startswith(b"Action=GetCallerIdentity")
    answer(sock, 200 if ok else 403, "<GetCallerIdentityResponse/>" if ok else "<Error/>")


def b_skew(sock, req):
    ahead = time.time() + 7200
    sent = req.headers.get("x-amz-date", "")
    near = [time.strftime("%Y%m%dT%H%M", time.gmtime(ahead + d)) for d in (-60, 0, 60)]
    date = [("Date", formatdate(ahead, usegmt=True))]
    if sent[:13] in near and signature_is_right(req):
        answer(sock, 200, "{}", date)
    else:
        answer(sock, 403, '{"__type":"InvalidSignatureException","message":"Signature expired: x"}',
               date, head=req.method == "HEAD")


def b_newkey(sock, req):
    if "Credential=AKIDNEW/" in req.headers.get("authorization", "") and signature_is_right(req):
        answer(sock, 200, "{}")
    else:
        answer(sock, 400, '{"__type":"ExpiredTokenException","message":"expired"}')


# A store that loses replies; path style: /BUCKET/key. It knows no checksums, but in the buckets summed...
# and own-...: there it keeps one of its own of each object, and what it sends or stores differs from it.
def etag_of(body):
    return '"%s"' % hashlib.md5(body).hexdigest()


def kept(req):
    return [h for h in req.headers.items() if h[0].startswith("x-amz-meta-")]


def checksum(body):
    return base64.b64encode(hashlib.sha256(body).digest()).decode()


CRC64 = list(range(256))
for _ in range(8):
    CRC64 = [(t >> 1) ^ (0x9A6C9329AC4BC9B5 if t & 1 else 0) for t in CRC64]


def crc64nvme(body):
    c = (1 << 64) - 1
    for byte in body:
        c = (c >> 8) ^ CRC64[(c ^ byte) & 255]
    return base64.b64encode((c ^ ((1 << 64) - 1)).to_bytes(8, "big")).decode()


def own(bucket, body):
    if not bucket.startswith("own-"):
        return []
    if "crc32" in bucket:
        return [("x-amz-checksum-crc32", base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode())]
    if "sha256" in bucket:
        return [("x-amz-checksum-sha256", checksum(body))]
    return [("x-amz-checksum-crc64nvme", crc64nvme(body))]


def flipped(body):
    return body[:-1] + bytes([body[-1] ^ 1])


def summed(bucket, body, first):
    """Headers with the checksum of a body: of another one in the first answer of summed-wrong."""
    if not bucket.startswith("summed"):
        return []
    return [("x-amz-checksum-sha256", checksum(body + b"?" * (bucket == "summed-wrong" and first)))]


def error(sock, status, code):
    answer(sock, status, "<Error><Code>%s</Code><Message>m</Message></Error>" % code)


def whole(path):
    sums = b"".join(hashlib.md5(p).digest() for _, p in sorted(PARTS[path].items()))
    return b"".join(p for _, p in sorted(PARTS[path].items())), '"%s-%d"' % (
        hashlib.md5(sums).hexdigest(), len(PARTS[path]))


def store_multipart(sock, req, bucket):
    q = urllib.parse.parse_qs(req.query, keep_blank_values=True)
    if "uploads" in q:
        PARTS[req.path] = {}
        CREATED[req.path] = kept(req)
        return answer(sock, 200, "<InitiateMultipartUploadResult><UploadId>u/1+</UploadId>"
                                 "</InitiateMultipartUploadResult>")
    if q["uploadId"] != ["u/1+"] or req.path not in PARTS:
        return error(sock, 404, "NoSuchUpload")
    if req.method == "DELETE":
        del PARTS[req.path]
        return answer(sock, 204)
    if req.method == "PUT":
        first = first_time(req.target)
        if first and bucket == "lossy-parts":
            reset(sock)
        PARTS[req.path][int(q["partNumber"][0])] = req.body
        return answer(sock, 200, "", [("ETag", etag_of(req.body))] + summed(bucket, req.body, first))
    if bucket == "late-error" and first_time(req.path):
        return error(sock, 200, "InternalError")
    if bucket == "precondition":
        return error(sock, 200, "PreconditionFailed")
    sums = [base64.b64encode(hashlib.sha256(p).digest()).decode() for _, p in sorted(PARTS[req.path].items())]
    if re.findall(rb"<ChecksumSHA256>(.*?)<", req.body) != [s.encode() for s in sums if bucket.startswith("summed")]:
        return error(sock, 400, "InvalidPart")
    OBJECTS[req.path] = whole(req.path)
    if bucket == "own-stored":
        OBJECTS[req.path] = flipped(OBJECTS[req.path][0]), OBJECTS[req.path][1]
    META[req.path] = CREATED.pop(req.path)
    del PARTS[req.path]
    if bucket == "stolen-complete":
        OBJECTS[req.path], META[req.path] = (b"theirs", etag_of(b"theirs")), []
    if bucket in ("lossy-complete", "stolen-complete"):
        reset(sock)
    told = checksum(b"".join(base64.b64decode(s) for s in sums)) + "-%d" % len(sums)
    META[req.path].append(("x-amz-checksum-sha256", told))
    if bucket == "summed-wrong":
        told = "A" + told[1:]
    return answer(sock, 200, "<CompleteMultipartUploadResult>%s</CompleteMultipartUploadResult>" % (
        "<ChecksumSHA256>%s</ChecksumSHA256>" % told if bucket.startswith("summed") else
        "<ChecksumCRC64NVME>%s</ChecksumCRC64NVME>" % crc64nvme(OBJECTS[req.path][0]) if bucket.startswith("own-") else ""))


def store_get(sock, req, bucket):
    if "range" in req.headers:
        with LOCK:
            COUNTS["RANGE " + req.path] = COUNTS.get("RANGE " + req.path, 0) + 1
    body, etag = OBJECTS[req.path]
    if bucket == "changing" and not first_time(req.path):
        body = body[::-1]
        etag = etag_of(body)
    if req.headers.get("if-match", etag) != etag:
        return error(sock, 412, "PreconditionFailed")
    start = int(re.match(r"bytes=(\d+)-", req.headers.get("range", "bytes=0-")).group(1))
    if bucket == "rangeless":
        start = 0
    n = len(body)
    extra = [("ETag", etag)]
    if start > 0:
        extra.append(("Content-Range", "bytes %d-%d/%d" % (start, n - 1, n)))
    elif req.headers.get("x-amz-checksum-mode") == "ENABLED":
        extra += own(bucket, body)
    part = body[start:]
    if bucket == "own-damaged" or bucket.startswith("own-flipped") and first_time("sent " + req.path) or bucket == "own-cut" and start > 0:
        part = flipped(part)
    if first_time("get " + req.path) and bucket != "steady" and (bucket in ("own-cut", "own-lossy") or not bucket.startswith("own-")):
        answer(sock, 200, part[:n // 2], extra, length=n)
        time.sleep(0.05)
        raise Gone
    return answer(sock, 206 if start > 0 else 200, part, extra)


def store(sock, req):
    bucket = req.path.split("/")[1]
    if not signature_is_right(req):
        return error(sock, 403, "SignatureDoesNotMatch")
    if req.query and "list-type" not in req.query:
        return store_multipart(sock, req, bucket)
    if req.method == "PUT":
        if bucket == "lossy-head" or req.headers.get("if-none-match") == "*" and req.path in OBJECTS:
            OBJECTS.setdefault(req.path, (b"", '""'))
            return error(sock, 412, "PreconditionFailed")
        body = req.body[:-1] + b"!" if bucket == "summed-damaged" else flipped(req.body) if bucket == "own-stored" else req.body
        OBJECTS[req.path] = (body, etag_of(body))
        first = first_time("put " + req.path)
        META[req.path] = kept(req) + summed(bucket, body, False)
        if bucket in ("lossy-put", "stolen", "stolen-twin") and first:
            if bucket != "lossy-put":  # another writer was first; the twin's bytes are the same
                twin = bucket == "stolen-twin"
                OBJECTS[req.path] = (body, etag_of(body)) if twin else (b"theirs", etag_of(b"theirs"))
                META[req.path] = [(k, "0" * 32) for k, _ in kept(req)] if twin else []
            reset(sock)
        return answer(sock, 200, "", [("ETag", etag_of(body))] + summed(bucket, body, first) + own(bucket, body))
    if req.path not in OBJECTS:
        return answer(sock, 404, "", head=True) if req.method == "HEAD" else error(sock, 404, "NoSuchKey")
    if bucket.startswith("mute"):  # HEAD has no body
        code = "" if req.method == "HEAD" else {"mute-keys": "ExpiredToken", "mute-object": "InvalidRequest"}.get(bucket)
        if code is not None:
            return answer(sock, 400, "", head=True) if code == "" else error(sock, 400, code)
    if req.method == "HEAD":
        body, etag = OBJECTS[req.path]
        if bucket == "lossy-head":
            return error(sock, 503, "SlowDown")
        return answer(sock, 200, body, [("ETag", etag)] + META[req.path] + own(bucket, body), head=True)
    if bucket == "flaky" and first_time(req.path):
        return error(sock, 503, "SlowDown")
    return store_get(sock, req, bucket)


STORES = ("summed", "summed-wrong", "summed-damaged", "lossy-head", "stolen-twin", "stolen-complete", "lossy-put", "stolen", "lossy-get", "changing", "rangeless", "steady", "lossy-parts",
          "own-flipped", "own-flipped-crc32", "own-flipped-sha256", "own-damaged", "own-cut", "own-lossy", "own-stored", "late-error", "precondition", "lossy-complete", "flaky",
          "mute-keys", "mute-object", "mute-head")
BEHAVIOURS = {n[2:].replace("_", "-"): f for n, f in list(globals().items()) if n.startswith("b_")}
BEHAVIOURS.update({b: store for b in STORES})


def serve(sock):
    if "HOSTILE_TLS" in os.environ:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.environ["HOSTILE_TLS"])
        try:
            sock = context.wrap_socket(sock, server_side=True)
        except OSError:
            return
    served = 0
    with sock, sock.makefile("rb") as stream:
        try:
            while True:
                req = read_request(stream)
                key = "%s %s" % (req.method, req.path)
                with LOCK:
                    COUNTS[key] = COUNTS.get(key, 0) + 1
                name = req.path.split("/")[1]
                if name == "dead-on-reuse":
                    if served > 0:
                        return
                    name = "ok"
                served += 1
                BEHAVIOURS.get(name, b_ok)(sock, req)
        except (Gone, OSError, ValueError):
            pass


def main():
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    print("port %d" % listener.getsockname()[1], flush=True)

    def accept():
        while True:
            sock, _ = listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(sock,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.buffer.read()  # ends with the test that started us
    os._exit(0)


if __name__ == "__main__":
    main()
