#!/usr/bin/python3
"""Listings of fan_out. Aim: a pattern of hundreds of thousands of objects is listed whole, once and in order within the time of a
request, though pages are slow and some are refused; a listing for which nobody waits ends; what is refused for good is told at once.
Method: droverd with an S3 of this test, which has the keys in memory, answers late, and counts.   (KEYS=1000000: so many of them)"""
import bisect
import contextlib
import http.server
import json
import os
import re
import signal
import sys
import threading
import time
import urllib.parse
import urllib.request
import uuid
from xml.sax.saxutils import escape

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, patience, wait_for
from kit.stack import Stack

tap = Tap()
KEYS = int(os.environ.get("KEYS", "100000"))
PAGE_SECONDS = 0.3 if KEYS <= 100000 else 0.05  # one page after the other, 100,000 keys take longer than a request may


class S3:
    """ListObjectsV2 of one bucket: `keys` sorted, or without end."""

    def __init__(self):
        self.lock = threading.Lock()
        self.busy = 0
        self.reset([])
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_):
                pass

            def do_GET(self):
                query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
                status, text = outer.answer(query) if "list-type" in query else (404, error("NoSuchKey"))
                body = text.encode()
                with contextlib.suppress(OSError):  # who asked may have stopped
                    self.send_response(status)
                    self.send_header("Content-Type", "application/xml")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reset(self, keys, seconds=0.0, refuse=lambda n: None, endless=False):
        with self.lock:
            self.keys = sorted(keys, key=lambda k: k.encode())
            self.bytes = [k.encode() for k in self.keys]
            self.rows = [row(k) for k in self.keys]
            self.seconds, self.refuse, self.endless = seconds, refuse, endless
            self.n = self.most = self.given = 0

    def answer(self, query):
        with self.lock:
            self.n += 1
            n, seconds = self.n, self.seconds
            self.busy += 1
            self.most = max(self.most, self.busy)
        try:
            time.sleep(seconds)
            refused = self.refuse(n)
            return refused or (200, self.page(query))
        finally:
            with self.lock:
                self.busy -= 1

    def page(self, query):
        prefix, after = query.get("prefix", ""), query.get("continuation-token", query.get("start-after", ""))
        if self.endless:
            first = int((re.findall(r"\d+$", after) or ["0"])[0][:12]) + 1
            keys, more = [f"{prefix}{i:012d}" for i in range(first, first + 1000)], True
            contents = "".join(row(k) for k in keys)
        else:
            at = bisect.bisect_right(self.bytes, after.encode()) if after else bisect.bisect_left(self.bytes, prefix.encode())
            at = max(at, bisect.bisect_left(self.bytes, prefix.encode()))
            keys = [k for k in self.keys[at:at + 1000] if k.startswith(prefix)]
            more = len(keys) == 1000 and at + 1000 < len(self.keys) and self.keys[at + 1000].startswith(prefix)
            contents = "".join(self.rows[at:at + len(keys)])
        self.given += len(keys)
        token = f"<NextContinuationToken>{escape(keys[-1])}</NextContinuationToken>" if more else ""
        return (f"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}</IsTruncated>{token}{contents}</ListBucketResult>")

    def is_quiet(self):
        """Nobody has asked anything for a second."""
        n = self.n
        time.sleep(1)
        return self.busy == 0 and self.n == n


def row(key):
    return (f"<Contents><Key>{urllib.parse.quote(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>\"x\"</ETag><Size>7</Size></Contents>")


def error(code):
    return f"<Error><Code>{code}</Code><Message>of the test</Message></Error>"


def post(s, text, query=""):
    """Status, answer and seconds of POST /campaigns."""
    headers = {"Content-Type": "application/yaml", "Idempotency-Key": str(uuid.uuid4())}
    began = time.monotonic()
    status, body, _ = s.raw("POST", "/v1/campaigns" + query, text.encode(), headers, timeout=120)
    return status, json.loads(body), time.monotonic() - began


def campaign(s, pattern):
    """Nothing of it starts: its type has no quota."""
    return s.campaign(name="listed", source="s3://drover-test/" + pattern).replace("ml.c5.xlarge", "ml.c5.9xlarge")


def plan(s, pattern):
    status, got, took = post(s, campaign(s, pattern), "?dry_run=true")
    return status, got["stages"][0]["parts"] if status == 200 else got, took


def answered(s3, ask):
    """What ask() gives. A busy machine may list less in the time of a request than it has to: then it is asked again."""
    for _ in range(int(patience(2))):
        got = ask()
        if got[0] != 504:
            break
        print(f"# not answered in {got[2]:.1f} s", flush=True)
        wait_for(s3.is_quiet, 20, "the end of the listing")
        s3.n = s3.most = s3.given = 0
    return got


def listed_whole(s, s3):
    s3.reset([f"meta/part-{i:07d}.parquet" for i in range(KEYS)] + ["meta0", "a"], seconds=PAGE_SECONDS)
    status, got, took = answered(s3, lambda: post(s, campaign(s, "meta/*.parquet")))
    tap.ok(status == 201 and got["parts"]["total"] == KEYS, f"{KEYS} objects in pages of 1,000 that take {PAGE_SECONDS} s: {took:.1f} s, {s3.n} requests, at most {s3.most} at once, "
           f"{s3.given} keys", (status, got))
    s.api("POST", f"/campaigns/{got['id']}:cancel")
    tap.ok(s3.most <= 16 and s3.n <= 2 * KEYS / 1000 + 60, "at most 16 requests at once, few for nothing")
    sent = []
    s3.reset(s3.keys, seconds=0.02, refuse=lambda n: sent.append(n) or (503, error("SlowDown")) if n % 7 == 0 else None)
    status, parts, took = answered(s3, lambda: plan(s, "meta/*.parquet"))
    tap.ok((status, parts) == (200, KEYS) and sent, f"every seventh page is refused once, {len(sent)} in all: {took:.1f} s", (status, parts))


def in_order(s, s3):
    """All kinds of names: what is submitted is what matches, each once, in the order of bytes."""
    keys = [f"x/{a}{b}{c}" for a in "09azAZ~ _-+é漢" for b in ("", "/", "0", "zz", "~~", "é") for c in range(150)]
    keys += [f"x/deep/{'0' * 60}{i}/data.bin" for i in range(3000)] + [f"x/{i:x}" for i in range(0, 1 << 24, 5003)]
    s3.reset(set(keys), seconds=0.005)
    status, got, _ = post(s, campaign(s, "x/**"))
    tap.ok(status == 201, f"{len(s3.keys)} keys of all kinds are submitted, {s3.n} requests", got)
    uris = s.sql(f"SELECT string_agg(encode(uri::bytea, 'hex'), ' ' ORDER BY seq) FROM task WHERE campaign_id = {got['id'][2:]}").split()
    want = [b"s3://drover-test/" + k for k in s3.bytes]
    tap.ok([bytes.fromhex(u) for u in uris] == want, "each is one part, in the order of bytes", (len(uris), len(want)))
    s.api("POST", f"/campaigns/{got['id']}:cancel")
    status, parts, _ = plan(s, "x/0**9")
    tap.eq(parts, sum(k.startswith("x/0") and k.endswith("9") for k in s3.keys), "a pattern counts what it matches")


def refused(s, s3):
    s3.reset([], refuse=lambda n: (403, error("AccessDenied")))
    status, got, _ = plan(s, "meta/*")
    tap.ok(status == 422 and "AccessDenied" in json.dumps(got) and s3.n == 1, "a bucket that may not be listed is asked once", (status, got, s3.n))
    s3.reset(["meta/a"], refuse=lambda n: (503, error("SlowDown")))
    status, got, took = plan(s, "meta/*")
    tap.ok(status >= 429 and 3 <= s3.n <= 10, f"one that always refuses is asked {s3.n} times, {took:.1f} s: {status}", got)


def abandoned(s, s3):
    s3.reset([], seconds=1.5, endless=True)
    status, _, took = plan(s, "meta/*")
    n = s3.n
    tap.ok(status == 504, f"a listing without end is given up: {status} after {took:.0f} s, {n} requests")
    wait_for(s3.is_quiet, 30, "the end of an abandoned listing")
    tap.ok(s3.n <= n + 32, f"and ends: {s3.n - n} requests more")
    tap.eq(s.raw("GET", "/livez")[0], 200, "droverd goes on")


def stopped(s, s3):
    """A stop in the middle, with calls under way and with pages that wait to be asked again."""
    for what, refuse in (("calls under way", lambda n: None), ("pages that wait", lambda n: (503, error("SlowDown")) if n > 1 else None)):
        s3.reset([f"meta/{i:06d}" for i in range(50000)], seconds=0.5, refuse=refuse)
        got = []
        asker = threading.Thread(target=lambda: got.append(attempt(s)))
        asker.start()
        wait_for(lambda: s3.n > 3, 30, "a listing")
        p = s.procs.pop("droverd0")
        p.send_signal(signal.SIGTERM)
        tap.eq(p.wait(patience(60)), 0, f"droverd stops during a listing, {what}")
        asker.join()
        tap.ok(got[0] is None or got[0] >= 429, "and its client has no plan", got)
        start(s, s3)


def attempt(s):
    try:
        return plan(s, "meta/*")[0]
    except OSError:
        return None


def start(s, s3):
    s.start_droverd(env={"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{s3.server.server_port}"})
    wait_for(lambda: s.leader() == 0, 30, "a leader")


with Stack("listing", parts=1, rows=1) as stack:
    fake = S3()
    stack.start_pg()
    stack.start_local()
    start(stack, fake)
    for case in (listed_whole, in_order, refused, stopped, abandoned):
        if os.environ.get("ONLY", "") in case.__name__:
            case(stack, fake)
sys.exit(tap.done())
