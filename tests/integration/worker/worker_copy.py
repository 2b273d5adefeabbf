#!/usr/bin/python3
"""Aim: drover-worker copy brings each file whole and right into the bucket, or not at all, whatever the source
does; a stopped or killed run goes on where it was. Method: an HTTP source that cuts, lies, changes and refuses
on order, drover-local as S3 (also public, and with a secret); every published byte is compared.
"""
import hashlib
import http.server
import os
import re
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import service_model
from kit.worker import *
from kit.worker.s3 import KEY, SECRET, Local

ARN = "arn:aws:secretsmanager:us-east-1:123456789012:secret:drover-laion-token-AbCdEf"
PARAMETER = "arn:aws:ssm:us-east-1:123456789012:parameter/drover-laion/token"
TOKEN = "hf_tok3n_of_the_test"


class Source(http.server.ThreadingHTTPServer):
    """Files with ranges. fault(handler, path, first, last) may answer in its place (True) or change `files`."""
    daemon_threads = True

    def __init__(self):
        self.files, self.log, self.fault, self.ranges, self.etags, self.wanted = {}, [], None, True, True, None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *a):
                pass

            def refuse(self, status, headers=()):
                self.send_response(status)
                for k, v in headers:
                    self.send_header(k, v)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return True

            def send(self, status, data, headers=(), length=None):
                self.send_response(status)
                for k, v in headers:
                    self.send_header(k, v)
                self.send_header("Content-Length", str(len(data) if length is None else length))
                self.end_headers()
                self.wfile.write(data)
                if length is not None and length > len(data):
                    self.close_connection = True
                return True

            def do_GET(self):
                try:
                    self.answer()
                except OSError:
                    self.close_connection = True

            def answer(self):
                m = re.match(r"bytes=(\d+)-(\d+)$", self.headers.get("Range", ""))
                first, last = (int(m[1]), int(m[2])) if m and outer.ranges else (0, None)
                outer.log.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
                if outer.wanted and self.headers.get("Authorization") != outer.wanted:
                    return self.refuse(401)
                if outer.fault and outer.fault(self, self.path, first, last):
                    return True
                if self.path not in outer.files:
                    return self.refuse(404)
                data = outer.files[self.path]
                etag = '"%s"' % hashlib.sha1(data).hexdigest()
                tags = [("ETag", etag)] if outer.etags else []
                if last is None or self.headers.get("If-Range", etag) != etag:
                    return self.send(200, data, tags)
                if first >= len(data):
                    return self.refuse(416, [("Content-Range", "bytes */%d" % len(data))])
                piece = data[first:last + 1]
                return self.send(206, piece, tags + [("Content-Range", "bytes %d-%d/%d" % (first, first + len(piece) - 1, len(data)))])

        super().__init__(("127.0.0.1", 0), Handler)
        self.handle_error = lambda *a: None  # a client that was killed
        self.url = "http://127.0.0.1:%d" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def reset(self):
        self.log, self.fault, self.ranges, self.etags, self.wanted = [], None, True, True, None


def blob(n, seed):
    return np.random.RandomState(seed).bytes(n)


def env_of(local, d, **kw):
    return {**os.environ, "DROVER_ML_ROOT": d + "/ml", **local.env(), **kw}


def start(local, d, *args, **kw):
    return subprocess.Popen([WORKER, "copy", *[str(a) for a in args]], env=env_of(local, d, **kw), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def copy(local, d, *args, **kw):
    p = start(local, d, *args, **kw)
    so, se = p.communicate(timeout=120)
    return p.returncode, so, se


def names(local, *where):
    folder = local.folder(*where)
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def published(local, *where):
    """What is there under a name of a file."""
    return [n for n in names(local, *where) if not n.startswith("_")]


def bytes_of(local, *where):
    with open(local.folder(*where), "rb") as f:
        return f.read()


def many_files(tap, local, web, d):
    want = {"part-%05d-c000.snappy.parquet" % i: blob(n, i) for i, n in enumerate((0, 1, 70000, 300000, 9 << 20))}
    web.files = {"/laion/" + n: b for n, b in want.items()}
    sums = "".join("%s  %s\n" % (hashlib.sha256(b).hexdigest(), n) for n, b in want.items())
    web.files["/laion/SHA256SUMS"] = sums.encode()
    to = "s3://data/meta/{part:05d}.parquet"
    rc, so, se = copy(local, d, "--from", web.url + "/laion/part-[00000-00004]-c000.snappy.parquet", "--to", to, "--range_kb", 1024,
                      "--checksums", web.url + "/laion/SHA256SUMS", "--expect_files", 5, DROVER_TASK="7", DROVER_ATTEMPT="9")
    got = {n: bytes_of(local, "data/meta", n) for n in published(local, "data/meta")}
    tap.ok(rc == 0 and list(got) == ["%05d.parquet" % i for i in range(5)] and list(got.values()) == list(want.values()),
           "five files of a numbered URL, also an empty one, under their new names", se)
    tap.ok(sum(r is not None for _, r, _ in web.log) >= 13, "in ranges", len(web.log))
    m = json.loads(bytes_of(local, "data/meta/_manifest.json"))
    objects = {o["key"]: o["size"] for o in m["objects"]}
    lines = [json.loads(x) for x in bytes_of(local, "data/meta/_files.jsonl").splitlines()]
    tap.ok((m["task"], m["attempt"], m["rows_in"], m["rows_out"], m["successes"]) == ("7", "9", 5, 5, 5) and
           {k: v for k, v in objects.items() if k[0] != "_"} == {n: len(b) for n, b in got.items()}, "the manifest names them with their sizes", m)
    tap.ok([x["sha256"] for x in lines] == [hashlib.sha256(b).hexdigest() for b in want.values()], "the receipt has each sum", lines)
    n = len(web.log)
    rc, so, se = copy(local, d, "--from", web.url + "/laion/part-[00000-00004]-c000.snappy.parquet", "--to", to, DROVER_TASK="7")
    tap.ok(rc == 0 and "already finished" in so and len(web.log) == n, "finished is finished: the source is not asked", so + se)
    rc, so, se = copy(local, d, "--from", web.url + "/laion/SHA256SUMS", "--to", to, DROVER_TASK="8")
    tap.ok(rc == 65 and "task '7'" in se, "another task's output is left alone", se)


def from_s3(tap, local, web, d):
    for i in range(3):
        local.put("public/laion/part-%d.parquet" % i, blob(200000, i))
    local.put("public/laion/other.txt", b"x")
    local.put("public/laion/deep/part-9.parquet", b"x")
    want = ["part-%d.parquet" % i for i in range(3)]
    key = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    rc, so, se = copy(local, d, "--from", "s3://public/laion/*.parquet", "--to", "s3://data/signed/{stem}.pq", "--range_kb", 64, **key)
    tap.ok(rc == 0 and published(local, "data/signed") == [n[:-8] + ".pq" for n in want], "objects that match, not those of deeper folders", se)
    rc, so, se = copy(local, d, "--from", "s3://public/laion/*.parquet", "--unsigned", "--from_region", "eu-west-1",
                      "--to", "s3://data/unsigned/{file_name}")
    got = [bytes_of(local, "data/unsigned", n) for n in published(local, "data/unsigned")]
    tap.ok(rc == 0 and got == [blob(200000, i) for i in range(3)], "a public bucket of another region, without a signature", se)
    gets = [q for q in local.wire("GetObject") if q["name"].startswith("public/laion") and not q["signed"]]
    tap.ok(len(gets) == 3, "as the wire log says", len(gets))
    rc, so, se = copy(local, d, "--from", "s3://locked/x", "--to", "s3://data/no/{file_name}")
    tap.ok(rc == 77 and published(local, "data/no") == [], "a bucket that may not be read: access denied, nothing there", se)
    rc, so, se = copy(local, d, "--from", "s3://data/meta/00000.parquet", "--unsigned", "--to", "s3://data/no/{file_name}")
    tap.ok(rc == 77, "nor is one that is not public, without a signature", se)


def kept_sums(tap, local, web, d):
    """Objects in several parts: no ETag is their MD5, and S3's own checksum of the whole is all there is."""
    data = blob(20 << 20, 7)
    web.files = {"/f.bin": data}
    rc, _, se = copy(local, d, "--from", web.url + "/f.bin", "--to", "s3://data/parts/{file_name}", AWS_REQUEST_CHECKSUM_CALCULATION="when_required")
    tap.ok(rc == 0 and len(local.wire("UploadPart")) >= 2 and not local.uploads(), "an object in parts, for which no checksum was stated", se)
    path = local.folder("data", "parts", "f.bin")

    def heads():
        return len([q for q in local.wire("HeadObject") if q["name"].startswith("data/parts/f.bin")])

    def again(place, **kw):
        return copy(local, d, "--from", "s3://data/parts/f.bin", "--to", "s3://data/%s/{file_name}" % place, "--range_kb", 1024, **kw)

    before = heads()
    rc, _, se = again("parts-right")
    tap.ok(rc == 0 and bytes_of(local, "data", "parts-right", "f.bin") == data, "it is copied", se)
    tap.eq(heads() - before, 1, "and its checksum asked for once")
    st = os.stat(path)
    with open(path, "r+b") as f:
        f.seek(11 << 20)
        byte = f.read(1)
        f.seek(11 << 20)
        f.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
    rc, _, se = again("parts-wrong")
    tap.ok(rc == 65 and published(local, "data", "parts-wrong") == [] and "not those of its checksum" in se, "one flipped byte, and it is no file", (rc, se))
    rc, _, se = again("parts-unasked", AWS_RESPONSE_CHECKSUM_VALIDATION="when_required")
    tap.ok(rc == 0 and len(published(local, "data", "parts-unasked")) == 1, "where comparing is off it is", se)


def faults(tap, local, web, d):
    data = blob(3 << 20, 42)
    tag = ("ETag", '"%s"' % hashlib.sha1(data).hexdigest())
    web.files = {"/f.parquet": data, "/g": data}

    def one(what, want, fault=None, rc_want=0, words="", more=(), ranges=True, etags=True):
        web.reset()
        web.fault, web.ranges, web.etags = fault, ranges, etags
        place = "fault-" + re.sub("[^a-z]+", "-", what)
        rc, so, se = copy(local, d, "--from", web.url + "/f.parquet", "--to", "s3://data/%s/{file_name}" % place, "--range_kb", 512, "--tries", 5, *more)
        there = published(local, "data", place)
        good = there == ([] if want is None else ["f.parquet"]) and (want is None or bytes_of(local, "data", place, "f.parquet") == want)
        whole = os.path.exists(local.folder("data", place, "_manifest.json")) == (want is not None)
        tap.ok(rc == rc_want and good and whole and words in se and not local.uploads(), what, (rc, there, se[-1500:]))
        web.files = {"/f.parquet": data, "/g": data}

    cuts = [0]

    def cut(h, path, first, last):
        cuts[0] += 1
        if cuts[0] % 2:
            return False
        piece = data[first:last + 1]
        return h.send(206, piece[:len(piece) // 3], [tag, ("Content-Range", "bytes %d-%d/%d" % (first, first + len(piece) - 1, len(data)))],
                      length=len(piece))

    one("connections that are cut", data, cut)
    tap.ok(cuts[0] > 8, "cut %d times" % (cuts[0] // 2))
    other = blob(3 << 20, 43)

    def change(h, path, first, last):
        if first >= 1 << 20 and web.files["/f.parquet"] is data:
            web.files["/f.parquet"] = other
        return False

    one("a file that changes in between is begun anew", other, change)

    def swap(h, path, first, last):
        if first > 0:
            web.files["/f.parquet"] = other
        return False

    one("one that tells no version comes in one piece: no two of the same length are mixed", data, swap, etags=False)
    tap.eq([r for _, r, _ in web.log], ["bytes=0-524287", None], "after one range")
    turn = [0]

    def restless(h, path, first, last):
        if first > 0:
            turn[0] += 1
            web.files["/f.parquet"] = blob(3 << 20, turn[0])
        return False

    one("one that changes all the time fails", None, restless, 65, "changed while it was copied")
    one("a wrong length is no file", None, lambda h, p, a, b: h.send(206, data[a:b], [tag, ("Content-Range", "bytes %d-%d/%d" % (a, b, len(data)))]),
        75, "bytes for the range")
    one("a wrong offset is no file", None, lambda h, p, a, b: h.send(206, data[:b - a + 1], [tag, ("Content-Range", "bytes 0-%d/%d" % (b - a, len(data)))]) if a else False,
        75, "bytes for the range")
    one("forbidden is said at once", None, lambda h, p, a, b: h.refuse(403), 77, "answers 403")
    tap.eq(len(web.log), 1, "after one request")
    one("not found is bad input", None, lambda h, p, a, b: h.refuse(404), 65, "answers 404")
    busy = [0]

    def bad_days(h, path, first, last):
        busy[0] += 1
        return busy[0] % 3 != 0 and h.refuse(503 if busy[0] % 3 == 1 else 429)

    one("a busy server is asked again", data, bad_days)
    one("ranges that are ignored: the whole in one piece", data, ranges=False)
    halves = [0]

    def half(h, path, first, last):
        halves[0] += 1
        return halves[0] in (1, 2, 3) and h.send(200, data[:1 << 20], length=len(data))

    one("and from the beginning when it is cut", data, half, ranges=False)
    sums = lambda text: ("--checksums", "s3://data/sums/%s" % text)  # noqa: E731
    local.put("data/sums/right", ("%s *f.parquet\n" % hashlib.md5(data).hexdigest()).encode())
    local.put("data/sums/wrong", ("%s  f.parquet\n" % ("ab" * 32)).encode())
    local.put("data/sums/none", b"00  g.parquet\n")
    one("the right checksum", data, more=sums("right"))
    one("a wrong checksum is no file", None, None, 65, "the checksum of", sums("wrong"))
    one("a file without a checksum is refused", None, None, 65, "no line for", sums("none"))

    def away(h, path, first, last):
        return path == "/f.parquet" and h.refuse(302, [("Location", "http://127.0.0.2:%d/g" % web.server_address[1])])

    one("a redirect to nowhere is passing", None, away, 75)
    one("a redirect of the same server", data, lambda h, p, a, b: p == "/f.parquet" and h.refuse(307, [("Location", "/g")]))


def resume(tap, local, web, d):
    web.reset()
    files = {"/r/%d.bin" % i: blob(30 << 20, i) for i in range(2)}
    web.files = files
    seen, gate, limit = [0], threading.Event(), [10 << 20]

    def slowly(h, path, first, last):
        seen[0] = max(seen[0], first)
        if first >= limit[0]:
            gate.wait(60)
        return False

    args = ["--from", web.url + "/r/[0-1].bin", "--to", "s3://data/resume/{file_name}", "--range_kb", 2048, "--checkpoint_seconds", 1,
            "--files_at_once", 2]
    for sig, code in ((signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        web.fault = slowly
        gate.clear()
        p = start(local, d, *args, DROVER_TASK="5")
        reached = wait_for(lambda: len({x[0] for x in web.log if x[1] and int(x[1][6:].split("-")[0]) >= limit[0]}) == 2, 30)
        if sig == signal.SIGKILL:  # what is saved lags behind
            wait_for(lambda: all(int(json.loads(bytes_of(local, "data/resume", n).split(b"\n")[0])["offset"]) > (10 << 20)
                                 for n in names(local, "data/resume") if n.startswith("_copy-")), 30)
        p.send_signal(sig)
        so, se = p.communicate(timeout=60)
        gate.set()
        states = [n for n in names(local, "data/resume") if n.startswith("_copy-")]
        tap.ok(reached and p.returncode == code and published(local, "data/resume") == [] and "_manifest.json" not in names(local, "data/resume")
               and len(states) == 2, "%s in the middle of two files: nothing is published, both are saved" % sig.name, (p.returncode, states, se))
        limit[0] += 10 << 20
    web.fault, web.log = None, []
    rc, so, se = copy(local, d, *args, DROVER_TASK="5")
    firsts = [min(int(x[1][6:].split("-")[0]) for x in web.log if x[0] == n) for n in files]
    tap.ok(rc == 0 and {"/r/" + n: bytes_of(local, "data/resume", n) for n in published(local, "data/resume")} == files, "the next run publishes both, byte by byte", se)
    tap.ok(min(firsts) >= 10 << 20, "going on from %s bytes" % firsts)
    tap.ok(names(local, "data/resume") == ["0.bin", "1.bin", "_files.jsonl", "_manifest.json", "_progress.json"] and not local.uploads(),
           "and nothing else is left", names(local, "data/resume"))
    part_done(tap, local, web, d)


def keys_end(tap, local, web, d):
    """What may not be read any more may be again, with new keys: what was copied of it stays."""
    data = blob(12 << 20, 77)
    web.files = {"/k.bin": data}
    web.fault = lambda h, path, first, last: first >= 9 << 20 and h.refuse(403)
    args = ["--from", web.url + "/k.bin", "--to", "s3://data/keys/{file_name}", "--range_kb", 512]
    rc, so, se = copy(local, d, *args)
    kept = [json.loads(x) for x in se.splitlines() if '"upload_kept"' in x]
    tap.eq((rc, published(local, "data/keys"), [(x["file"], x["folder"], x["bytes"]) for x in kept], len(local.uploads())),
           (77, [], [("k.bin", "s3://data/keys/", 9 << 20)], 1), "a source that refuses in the middle ends the run, and it says which upload it keeps")
    web.reset()
    rc, so, se = copy(local, d, *args)
    firsts = [int(x[1][6:].split("-")[0]) for x in web.log]
    tap.ok(rc == 0 and firsts[0] == 9 << 20 and bytes_of(local, "data/keys/k.bin") == data and not local.uploads(),
           "the next one goes on where it was", (rc, firsts[:1], se))


def left_behind(tap, local, web, d):
    """Temporary files of killed runs go, those that are gone on with stay, and so do those of other parts."""
    web.reset()
    web.files = {"/l/%d.bin" % i: blob(8 << 20, i) for i in range(2)}
    to, gate = d + "/left", threading.Event()
    args = ["--from", web.url + "/l/[0-1].bin", "--to", "file://" + to + "/{file_name}", "--output_folder", "file://" + d + "/left-out", "--range_kb", 1024,
            "--files_at_once", 2]

    def slowly(h, path, first, last):
        return gate.wait(60) and False if first >= 4 << 20 else False

    def ended(sig):
        web.fault, web.log = slowly, []
        gate.clear()
        p = start(local, d, *args)
        reached = wait_for(lambda: len({x[0] for x in web.log if x[1] and int(x[1][6:].split("-")[0]) >= 4 << 20}) == 2, 30)
        p.send_signal(sig)
        p.communicate(timeout=60)
        gate.set()
        web.fault = None
        return reached, sorted(n for n in os.listdir(to) if n.startswith(".tmp-"))
    reached, tmp = ended(signal.SIGKILL)
    open(to + "/.tmp-0123456789abcdef-0-2.bin", "w").write("of another part")
    open(to + "/.tmp-words-2.bin", "w").write("of somebody")
    reached2, kept = ended(signal.SIGTERM)
    tap.ok(reached and reached2 and len(tmp) == 2 and len(kept) == 4 and not set(tmp) & set(kept),
           "what a killed run left is removed by the next, which saves its own", (tmp, kept))
    web.log = []
    rc, so, se = copy(local, d, *args)
    tap.ok(rc == 0 and all("bytes=0-" not in (x[1] or "") for x in web.log), "which is gone on with", (web.log, se))
    tap.eq(sorted(os.listdir(to)), [".tmp-0123456789abcdef-0-2.bin", ".tmp-words-2.bin", "0.bin", "1.bin"], "other parts' files stay")
    tap.ok(not [n for n in os.listdir(d + "/left-out") if n.startswith((".tmp-", "_copy-"))], "and the output has none", os.listdir(d + "/left-out"))


class Torn:
    """S3 takes no part any more in the middle of a range of two, for longer than a worker waits (two minutes: the rest goes on
    meanwhile), while the output's bucket is there. The next run goes on where the stream is.
    """

    def __init__(self, d):
        self.d = d + "/torn"
        os.makedirs(self.d)
        self.local, self.web = Local(self.d), Source()
        self.web.files = {"/t.bin": blob(50 << 20, 7)}
        self.args = ["--from", self.web.url + "/t.bin", "--to", "s3://data/torn/{file_name}", "--output_folder", "s3://sealed/torn/",
                     "--range_kb", 16384, "--tries", 2]
        self.local.faults({"operation": "UploadPart", "name_contains": "t.bin", "kind": "error_503", "after": 4, "times": 1000000})
        self.p = start(self.local, self.d, *self.args)

    def end(self, tap):
        so, se = self.p.communicate(timeout=400)
        saved = [n for n in names(self.local, "sealed/torn") if n.startswith("_copy-")]
        tap.ok(self.p.returncode == 75 and len(saved) == 1 and names(self.local, "data/torn") == [], "parts that are not taken: the file is saved",
               (self.p.returncode, saved, se[-600:]))
        self.local.faults()
        self.web.log = []
        rc, so, se = copy(self.local, self.d, *self.args)
        there = bytes_of(self.local, "data/torn", "t.bin") if rc == 0 else b""
        tap.ok(there == self.web.files["/t.bin"], "the next run publishes its bytes, none of them twice", (rc, len(there), se[-600:]))
        tap.ok(self.web.log and "bytes=0-" not in (self.web.log[0][1] or ""), "and went on", self.web.log)

    def stop(self):
        if self.p.poll() is None:
            self.p.kill()
        self.local.stop()


def part_done(tap, local, web, d):
    """A file that failed is copied by the next run; those that are done are not asked for."""
    web.reset()
    web.files = {"/q/%d" % i: blob(1000, i) for i in range(4)}
    args = ["--from", " ".join(web.url + "/q/%d" % i for i in range(4)), "--to", "s3://data/part/{file_name}"]
    web.fault = lambda h, p, a, b: p == "/q/2" and h.refuse(404)
    rc, so, se = copy(local, d, *args)
    tap.ok(rc == 65 and "1 of 4 files failed" in se and published(local, "data/part") == ["0", "1", "3"] and "_manifest.json" not in names(local, "data/part"),
           "one of four is missing: the others are there, no manifest", se)
    web.reset()
    rc, so, se = copy(local, d, *args)
    tap.ok(rc == 0 and [x[0] for x in web.log] == ["/q/2"] and len(published(local, "data/part")) == 4, "the next run asks for it alone", web.log)


def gone(tap, local, web, d):
    """A receipt is not believed: what was copied is looked at, in the output folder and elsewhere."""
    web.files = {"/g/%d" % i: blob(1000 + i, i) for i in range(6)}

    def asked(*args):
        rc, so, se = copy(local, d, "--from", " ".join(web.url + p for p in web.files), "--files_at_once", 1, "--output_folder", "s3://data/gone/", *args)
        log, web.log = [x[0] for x in web.log], []
        return rc, se, log
    for to in ("s3://data/gone/{file_name}", "s3://data/gone/{part:02d}/{file_name}"):
        web.reset()
        path = lambda i: local.folder(to[5:].replace("{part:02d}", "%02d" % i).replace("{file_name}", "%d" % i))  # noqa: E731
        web.fault = lambda h, p, a, b: p == "/g/4" and h.refuse(404)
        rc, se, log = asked("--to", to)
        tap.ok(rc == 65 and "1 of 6 files failed" in se, "five of six are copied: %s" % to, se)
        web.reset()
        os.unlink(path(0))
        with open(path(2), "wb") as f:
            f.write(b"half")
        rc, se, log = asked("--to", to)
        tap.ok(rc == 0 and log == ["/g/0", "/g/2", "/g/4"], "one that was removed and one of another size are copied again", (rc, log, se))
        m = json.loads(bytes_of(local, "data/gone/_manifest.json"))
        keys = [o["key"] for o in m["objects"] if not o["key"].startswith("_")]
        tap.ok([open(path(i), "rb").read() if os.path.exists(path(i)) else None for i in range(6)] == list(web.files.values()) and keys == (["%d" % i for i in range(6)] if "{part" not in to else []),
               "all six are there, and named", m)
        shutil.rmtree(local.folder("data/gone"))
    web.reset()

    def remove(h, path, first, last):
        if path == "/g/4":
            os.unlink(local.folder("data/gone/0"))
        return False
    web.fault = remove
    rc, se, log = asked("--to", "s3://data/gone/{file_name}")
    tap.ok(rc != 0 and "'0'" in se and "_manifest.json" not in names(local, "data/gone"), "one that goes during the run is no complete output", (rc, se))
    web.reset()
    rc, se, log = asked("--to", "s3://data/gone/{file_name}")
    tap.ok(rc == 0 and log == ["/g/0"], "and the next run copies it again", (rc, log, se))


def secrets(tap, local, web, d):
    web.files = {"/s.bin": blob(100000, 1)}

    def one(what, arn, place, header, rc_want=0, words="", more=()):
        web.reset()
        web.wanted = header
        args = ["--from", web.url + "/s.bin", "--to", "s3://data/%s/{file_name}" % place, "--secret", arn, *more]
        rc, so, se = copy(local, d, *args)
        said = so + se + "".join(open(os.path.join(r, n), "rb").read().decode("latin-1") for r, _, ns in os.walk(local.folder("data", place)) for n in ns)
        tap.ok(rc == rc_want and words in se and TOKEN not in said, what, (rc, se))

    one("a secret of Secrets Manager goes with each request, and is written nowhere", ARN, "secret", "Bearer " + TOKEN)
    one("a parameter, with a prefix of its own", PARAMETER, "parameter", "token " + TOKEN, more=("--auth_prefix", "token "))
    one("a secret that is not there", ARN + "x", "secret-no", None, 65, "cannot read the secret")
    local.faults({"operation": "GetSecretValue", "kind": "access_denied", "times": 9})
    one("a secret the role may not read", ARN, "secret-denied", None, 77, "cannot read the secret")
    local.faults()
    web.reset()
    web.wanted = "Bearer other"
    rc, so, se = copy(local, d, "--from", web.url + "/s.bin", "--to", "s3://data/secret-old/{file_name}", "--secret", ARN)
    tap.ok(rc == 77 and "answers 401" in se and TOKEN not in se, "a token the source refuses is access denied", se)
    other = Source()
    other.files = web.files
    web.reset()
    web.fault = lambda h, p, a, b: h.refuse(302, [("Location", other.url + "/s.bin")])
    rc, so, se = copy(local, d, "--from", web.url + "/s.bin", "--to", "s3://data/secret-far/{file_name}", "--secret", ARN)
    tap.ok(rc == 0 and all(x[2] is None for x in other.log) and all(x[2] for x in web.log), "another server does not get the token", other.log)
    other.shutdown()
    asked = service_model.judge([local.root + "/requests.log"])["operations"]
    tap.ok(asked["GetSecretValue"] > 0 and asked["GetParameter"] > 0, "both services are asked; the end judges the requests", asked)


def mistakes(tap, local, web, d):
    for what, args, rc_want, word in (
            ("two files with one name", ["--from", web.url + "/a " + web.url + "/b", "--to", "s3://data/m/x.bin"], 65, "would both become"),
            ("an unknown variable", ["--from", web.url + "/a", "--to", "s3://data/m/{name}"], 2, "{file_name}, {stem}"),
            ("a target without a name", ["--from", web.url + "/a", "--to", "s3://data/m/"], 2, "must end in a name"),
            ("an unknown scheme", ["--from", "ftp://x/a", "--to", "s3://data/m/{file_name}"], 65, "not in S3"),
            ("a range that is none", ["--from", web.url + "/[9-1]", "--to", "s3://data/m/{file_name}"], 65, "like [000-127]"),
            ("a secret that is no ARN", ["--from", web.url + "/a", "--to", "s3://data/m/{file_name}", "--secret", "hunter2"], 2, "expected arn:aws"),
            ("a pattern without objects", ["--from", "s3://data/nothing/*.parquet", "--to", "s3://data/m/{file_name}"], 65, "no object matches"),
            ("fewer files than expected", ["--from", web.url + "/[0-3]", "--to", "s3://data/m/{file_name}", "--expect_files", "128"], 65, "128 are expected")):
        rc, so, se = copy(local, d, *args)
        tap.ok(rc == rc_want and word in se and names(local, "data/m") in ([], ["_progress.json"]), what + " is refused", (rc, se))
    rc, so, se = copy(local, d, "--from", web.url + "/[0-200000]", "--to", "s3://data/m/{file_name}", DROVER_TASK="7", DROVER_ATTEMPT="9")
    tap.ok(rc == 65 and "too large to be checked" in se and names(local, "data/m") in ([], ["_progress.json"]),
           "more files than drover can check are refused", (rc, se))


def main():
    tap = Tap()
    d = tempfile.mkdtemp(prefix="copy-", dir=os.path.join(TOP, "build"))
    local, web = Local(d, public_buckets=["public"], secrets={ARN: TOKEN, PARAMETER: TOKEN}), Source()
    only = os.environ.get("ONLY", "")
    torn = Torn(d) if only in "torn" else None
    try:
        for part in (many_files, from_s3, kept_sums, faults, resume, keys_end, left_behind, gone, secrets, mistakes):
            if only in part.__name__:
                web.reset()
                part(tap, local, web, d)
        if torn:
            torn.end(tap)
    finally:
        local.stop()
        if torn:
            torn.stop()
        shutil.rmtree(d, ignore_errors=True)
    return tap.done()


sys.exit(main())
