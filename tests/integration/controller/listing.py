#!/usr/bin/python3
"""Listings of fan_out. Aim: a few objects are listed while the submit waits; of hundreds of thousands it is answered at once, and
they are listed in the background, whole, once and in order, though pages are slow and some are refused, though droverd is killed or
another one leads. How far it is can be seen everywhere; a cancel ends it; what cannot be listed fails the campaign before anything
of it starts. A dry run is bounded.
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
        time.sleep(1)  # quiet is a span
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


def whole(s, cid):
    """The campaign when its input is listed."""
    return wait_for(lambda: (c := s.api("GET", f"/campaigns/{cid}"))["state"] != "planned" and c["stages"][0]["closed"] and c, 40, f"the input of {cid}")


def parts_of(s, cid):
    """How many parts it has, how many of different objects, the least and the greatest number of a part."""
    return [int(x) for x in s.sql("SELECT count(*) || ' ' || count(DISTINCT uri) || ' ' || coalesce(min(seq), -1) || ' ' || coalesce(max(seq), -1) "
                                  f"FROM task WHERE campaign_id = {cid[2:]}").split()]


def in_background(s, pattern):
    """The campaign as its submit was answered; its listing is not over then."""
    status, got, took = post(s, campaign(s, pattern))
    tap.ok(status == 201 and got["state"] == "planned" and got["parts"]["total"] == 0 and (got["stages"][0]["listing"] or {}).get("state") == "running",
           f"a submit is answered while its input is listed: {status} after {took:.1f} s", got)
    tap.ok(took < patience(6), "soon", took)
    return got


def listed_whole(s, s3):
    s3.reset([f"meta/part-{i:07d}.parquet" for i in range(KEYS)] + ["meta0", "a"], seconds=PAGE_SECONDS)
    began = time.monotonic()
    cid = in_background(s, "meta/*.parquet")["id"]
    c = whole(s, cid)
    took = time.monotonic() - began
    listing = c["stages"][0]["listing"]
    tap.ok(c["parts"]["total"] == KEYS and parts_of(s, cid) == [KEYS, KEYS, 0, KEYS - 1], f"{KEYS} objects in pages of 1,000 that take {PAGE_SECONDS} s: "
           f"{took:.1f} s, {s3.n} requests, at most {s3.most} at once, {s3.given} keys", c)
    tap.ok((listing["state"], listing["objects"], listing["problem"]) == ("done", KEYS, "") and listing["pages"] >= KEYS // 1000, "its listing is done", listing)
    s.api("POST", f"/campaigns/{cid}:cancel")
    tap.ok(s3.most <= 32 and s3.n <= 4 * KEYS / 1000 + 120, "at most 16 requests at once for each of the submit and what follows it, few for nothing")
    sent = []
    s3.reset(s3.keys, seconds=0.02, refuse=lambda n: sent.append(n) or (503, error("SlowDown")) if n % 7 == 0 else None)
    c = whole(s, post(s, campaign(s, "meta/*.parquet"))[1]["id"])
    tap.ok(c["parts"]["total"] == KEYS and sent, f"every seventh page is refused once, {len(sent)} in all", c)
    s.api("POST", f"/campaigns/{c['id']}:cancel")


def small(s, s3):
    """A busy machine may not list them within a second."""
    s3.reset([f"few/{i}" for i in range(7)])
    for _ in range(int(patience(3))):
        status, got, _ = post(s, campaign(s, "few/*"))
        s.api("POST", f"/campaigns/{got['id']}:cancel")
        if got["parts"]["total"] > 0:
            break
    tap.ok(status == 201 and got["parts"]["total"] == 7 and got["stages"][0]["listing"] is None, "the answer to a submit has the parts of a few objects", got)


def shown(s, s3):
    """Half of the keys come, then pages are refused for as long as the test wants."""
    given = threading.Event()
    s3.reset([f"slow/{i:05d}" for i in range(40000)], seconds=0.4, refuse=lambda n: (503, error("SlowDown")) if n > 60 and not given.is_set() else None)
    cid = in_background(s, "slow/*")["id"]

    def stuck():
        l = s.api("GET", f"/campaigns/{cid}")["stages"][0]["listing"]
        return l["pages"] > 0 and l["problem"] and l["refused"] > 0 and l
    l = wait_for(stuck, 60, "pages and a problem")
    tap.ok(l["state"] == "running" and 0 < l["objects"] < 40000 and "SlowDown" in l["problem"], "how far it is, and why it does not go on", l)
    got = s.api("GET", f"/campaigns/{cid}")
    row = next(c for c in s.pages("/campaigns?page_size=200", "campaigns") if c["id"] == cid)
    tap.ok(all("the input of stage download is listed" in (x["waits_for"] or "") for x in (got, row)), "what the campaign waits for", (got["waits_for"], row["waits_for"]))
    op = s.api("GET", f"/operations/{l['operation']}")
    tap.ok((op["kind"], op["state"], op["campaign"], op["done"]) == ("list", "running", cid, 0) and op["listing"]["pages"] > 0, "it is an operation", op)
    tap.ok(l["operation"] in [o["id"] for o in s.api("GET", f"/operations?campaign={cid}")["operations"]], "and among those of its campaign")
    status, body, _ = s.raw("POST", f"/v1/operations/{l['operation']}:cancel", b"{}", {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())})
    tap.ok(status == 409 and f"drover cancel {cid}".encode() in body, "which ends with its campaign only", (status, body))
    for args, want in ((("get", cid), "input of download running:"), (("ops", l["operation"]), "objects in"), (("ops",), "list"), (("watch", cid, "--timeout", "1s"), "is listed")):
        p = s.drover(*args)
        tap.ok(want in p.stdout, f"drover {args[0]} shows it", p.stdout + p.stderr)
    given.set()
    c = whole(s, cid)
    tap.ok(c["parts"]["total"] == 40000 and parts_of(s, cid) == [40000, 40000, 0, 39999], "and it ends when pages come again", c["stages"])
    tap.eq(s.api("GET", f"/operations/{l['operation']}")["state"], "done", "and so does the operation")
    s.api("POST", f"/campaigns/{cid}:cancel")


def patient(s, s3):
    """One page, refused more often than a dry run asks for it."""
    given = threading.Event()
    s3.reset([f"few/{i}" for i in range(5)], refuse=lambda n: None if given.is_set() else (503, error("SlowDown")))
    cid = in_background(s, "few/*")["id"]
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["stages"][0]["listing"]["refused"] >= 7, 40, "a page that is refused seven times")
    given.set()
    tap.eq(whole(s, cid)["parts"]["total"], 5, "a page that is refused is asked for again for as long as it takes")
    s.api("POST", f"/campaigns/{cid}:cancel")


def cancelled(s, s3):
    s3.reset([], seconds=0.3, endless=True)
    cid = in_background(s, "meta/*")["id"]
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["stages"][0]["listing"]["pages"] > 0, 30, "pages")
    s.api("POST", f"/campaigns/{cid}:cancel")
    n = s3.n
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["state"] == "cancelled", 30, "the end of the campaign")
    wait_for(s3.is_quiet, 30, "the end of its listing")
    tap.ok(s3.n <= n + 16 * patience(4), f"a cancel ends campaign and listing: {s3.n - n} requests more")
    l = s.api("GET", f"/campaigns/{cid}")["stages"][0]["listing"]
    tap.ok(l["state"] == "cancelled" and parts_of(s, cid)[0] == 0, "nothing of it is kept", l)


def goes_on(s, s3):
    """The submit goes to a standby; the leader is killed in the middle."""
    start(s, s3, 1)
    s3.reset([f"meta/{i:06d}" for i in range(30000)], seconds=0.6)
    leader = s.leader()
    status, body, _ = s.raw("POST", "/v1/campaigns", campaign(s, "meta/*").encode(), {"Content-Type": "application/yaml", "Idempotency-Key": str(uuid.uuid4())},
                            i=1 - leader, timeout=60)
    cid = json.loads(body)["id"]
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["stages"][0]["listing"]["pages"] > 0, 30, "pages")
    s.kill(f"droverd{leader}")
    c = whole(s, cid)
    tap.ok(status == 201 and parts_of(s, cid) == [30000, 30000, 0, 29999] and c["parts"]["total"] == 30000, "the next leader lists what the last one had begun", c["parts"])
    s.api("POST", f"/campaigns/{cid}:cancel")
    s3.seconds = 0.6
    cid = in_background(s, "meta/*")["id"]
    s.kill(f"droverd{1 - leader}")
    start(s, s3)
    c = whole(s, cid)
    tap.ok(parts_of(s, cid) == [30000, 30000, 0, 29999], "and a droverd that starts again", c["parts"])
    s.api("POST", f"/campaigns/{cid}:cancel")


def fails(s, s3):
    """In the background: refused in the middle, nothing there, too many."""
    two = lambda pattern: campaign(s, pattern) + """  - name: index
    needs: [download]
    image: user/index:1
    instance_type: ml.c5.9xlarge
    max_runtime: 5m
"""
    cases = [("refused", dict(keys=[f"meta/{i:06d}" for i in range(60000)], seconds=0.4, refuse=lambda n: (403, error("AccessDenied")) if n > 70 else None), "AccessDenied", "s3:ListBucket"),
             ("empty", dict(keys=[], seconds=patience(2)), "no object matches", "check bucket")]
    if KEYS > 100000:
        cases.append(("too many", dict(keys=[], seconds=0.02, endless=True), "more than 1000000 objects", "narrow the pattern"))
    for what, kw, why, step in cases:
        s3.reset(**kw)
        status, got, _ = post(s, two("meta/*"))
        tap.ok(status == 201 and got["state"] == "planned", f"{what}: accepted", (status, got))
        c = wait_for(lambda: (c := s.api("GET", f"/campaigns/{got['id']}"))["ended_at"] and c, 60, "its end")
        tap.ok(c["state"] == "failed" and why in c["reason"] and "next: " in c["reason"] and step in c["reason"], f"{what}: {c['reason']}", c)
        tap.ok([x["state"] for x in c["stages"]] == ["failed", "skipped"] and c["stages"][0]["listing"]["state"] == "failed" and c["stages"][0]["parts"]["total"] == 0,
               "nothing of it is done in part", c["stages"])
        p = s.drover("watch", got["id"])
        tap.ok(why in p.stdout + p.stderr and p.returncode != 0, "drover watch says why", p.stdout + p.stderr)


def in_order(s, s3):
    """All kinds of names: what is submitted is what matches, each once, in the order of bytes."""
    keys = [f"x/{a}{b}{c}" for a in "09azAZ~ _-+é漢" for b in ("", "/", "0", "zz", "~~", "é") for c in range(150)]
    keys += [f"x/deep/{'0' * 60}{i}/data.bin" for i in range(3000)] + [f"x/{i:x}" for i in range(0, 1 << 24, 5003)]
    s3.reset(set(keys), seconds=0.005)
    status, got, _ = post(s, campaign(s, "x/**"))
    whole(s, got["id"])
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
    path = s.dir + "/endless.yaml"
    with open(path, "w", encoding="utf-8") as f:
        f.write(campaign(s, "meta/*"))
    cli = []
    other = threading.Thread(target=lambda: cli.append(s.drover("validate", path)))
    other.start()
    status, full, took = post(s, campaign(s, "meta/*"), "?dry_run=true")
    other.join()
    n = s3.n
    tap.ok(status == 200, f"a dry run of a listing without end is answered: {status} after {took:.0f} s, {n} requests")
    told = [w for w in full["warnings"] if w["code"] == "listing_unfinished"]
    tap.ok(not full["stages"][0]["parts_complete"] and len(told) == 1 and f"at least {full['stages'][0]['parts']} parts" in told[0]["message"], "and says how much it listed", full)
    tap.ok("at least" in cli[0].stdout, "drover validate too", cli[0].stdout + cli[0].stderr)
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


def start(s, s3, i=0):
    s.start_droverd(i, env={"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{s3.server.server_port}"})
    wait_for(lambda: s.leader() is not None, 30, "a leader")


with Stack("listing", parts=1, rows=1) as stack:
    fake = S3()
    stack.start_pg()
    stack.start_local()
    start(stack, fake)
    for case in (small, listed_whole, in_order, shown, patient, cancelled, fails, refused, stopped, abandoned, goes_on):
        if case.__name__ in os.environ.get("ONLY", case.__name__).split(","):
            case(stack, fake)
sys.exit(tap.done())
