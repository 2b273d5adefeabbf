#!/usr/bin/env python3
"""The REST API over a real PostgreSQL. Aim: every route answers as described, wrong input is refused with
every fault, a key is answered once, pages neither skip nor repeat rows. Method: the API's own server
program; SQL plays the leader.
"""
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid
from html.parser import HTMLParser

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, wait_for
from api_endpoints import check_endpoints
from api_runs import check_runs
from kit.api import EIGHT, PSQL, Api, filled, leader_fails, leader_takes, main, spec

YAML = {"Content-Type": "application/yaml"}
CAUSE_DISK_FULL, CAUSE_OOM = 7, 8


def routes():
    """Rows of routes.def: method, path with ids filled in, role."""
    text = open(f"{TOP}/orchestrator/api/server/routes.def").read()
    for method, pattern, role in re.findall(r'X\(\s*"(\w+)",\s*"([^"]+)",\s*(\w+),', text):
        yield method, filled(pattern), role


def check_auth(t, a):
    all_routes = list(routes())
    closed = [(m, p) for m, p, role in all_routes if role != "PUBLIC"]
    for what, kw in (("no token", {"token": False}), ("a made-up token", {"token": "admin-00000000." + "0" * 64}),
                     ("a wrong secret", {"token": a.token[:-4] + "0000"}), ("a cookie of rubbish", {"token": False, "headers": {"Cookie": "drover_session=x.y"}})):
        got = {(m, p): a.raw(m, p, b"{}" if m != "GET" else None, **kw)[0] for m, p in closed}
        t.ok(all(s == 401 for s in got.values()), f"{what}: 401 on all {len(closed)} closed routes", {k: v for k, v in got.items() if v != 401})
    t.ok(len(closed) >= 25, "the sweep saw the route table")
    status, body, head = a.get("/v1/campaigns", token=False)
    t.ok(status == 401 and body["code"] == "unauthenticated" and head["www-authenticate"].startswith("Bearer"), "a 401 says how to log in")
    t.eq(a.raw("GET", "/v1/session", headers={"Authorization": "Basic YTpi"}, token=False)[0], 401, "Basic is not taken")
    mode = os.stat(a.token_file).st_mode & 0o777
    t.eq(mode, 0o600, "the token file is for its owner only")
    t.ok(re.fullmatch(r"[\w-]+\.[0-9a-f]{64}", a.token), "the secret has 256 bits")
    t.ok(a.token.split(".")[1] not in a.sql("SELECT string_agg(t::text, ' ') FROM token t"), "the database has the hash only")


def check_browser(t, a):
    status, body, head = a.post("/v1/login", {"token": a.token}, token=False)
    cookie = head["set-cookie"]
    t.ok(status == 200 and "HttpOnly" in cookie and "SameSite=Strict" in cookie, "login sets a HttpOnly, SameSite=Strict cookie", cookie)
    pair, csrf = cookie.split(";")[0], body["csrf"]
    c = {"Cookie": pair}
    t.eq(a.get("/v1/campaigns", headers=c, token=False)[0], 200, "the cookie reads")
    path = "/v1/campaigns/c-1:resume"
    t.eq(a.post(path, headers=c, token=False)[0], 403, "a change by cookie without the CSRF header is refused")
    t.eq(a.post(path, headers={**c, "X-Drover-CSRF": "0" * 64}, token=False)[0], 403, "and with a wrong one")
    good = {**c, "X-Drover-CSRF": csrf}
    t.eq(a.post(path, headers=good, token=False)[0], 202, "and taken with the right one")
    t.eq(a.post(path, headers={**good, "Origin": "http://evil.example"}, token=False)[0], 403, "a foreign Origin is refused")
    t.eq(a.post(path, headers={**good, "Sec-Fetch-Site": "cross-site"}, token=False)[0], 403, "a cross-site fetch is refused")
    t.eq(a.get("/v1/campaigns", headers={**c, "Sec-Fetch-Site": "cross-site"}, token=False)[0], 403, "even to read")
    t.eq(a.post(path, headers={**good, "Origin": f"http://127.0.0.1:{a.port}", "Sec-Fetch-Site": "same-origin"}, token=False)[0], 202, "our own origin is taken")
    t.eq(a.get("/v1/session", headers=c, token=False)[1]["csrf"], csrf, "a page loaded again gets its CSRF value")
    t.eq(a.post("/v1/login", {"token": "x"}, token=False)[0], 401, "login with rubbish")
    t.eq(a.post("/v1/login", {"token": a.token, "x": 1}, token=False)[0] // 100, 4, "login with an unknown field")
    t.ok("Max-Age=0" in a.post("/v1/logout", token=False)[2]["set-cookie"], "logout clears the cookie")


def check_headers(t, a):
    bad = []
    for m, p, _ in routes():
        if p.endswith("/events"):
            continue
        for tok in (True, False):
            _, _, h = a.raw(m, p, b"" if m != "GET" else None, token=tok)
            csp = h.get("content-security-policy", "")
            if "default-src 'none'" not in csp or "unsafe" in csp or "frame-ancestors 'none'" not in csp or h.get("x-content-type-options") != "nosniff" \
                    or "x-request-id" not in h or "cache-control" not in h:
                bad.append((m, p, tok))
    for p in ("/", "/c/1", "/icon.svg", "/nothing.here", "/v1/nothing", "/assets/../../etc/passwd"):
        _, _, h = a.raw("GET", p)
        if "default-src 'none'" not in h.get("content-security-policy", ""):
            bad.append(p)
    t.ok(not bad, "CSP, nosniff and a request id on every route, asset and error", bad)


def check_submit(t, a):
    a.objects("data", [f"meta/p{i:03}.parquet" for i in range(20)])
    key = str(uuid.uuid4())
    h = {**YAML, "Idempotency-Key": f'"{key}"'}
    s1, b1, h1 = a.call("POST", "/v1/campaigns", spec(), h)
    t.ok(s1 == 201 and b1["id"] == "c-1" and h1["location"] == "/v1/campaigns/c-1" and h1["etag"].startswith('"1-'), "a campaign is made", (s1, b1))
    t.eq((b1["parts"]["total"], b1["parts"]["waiting"], b1["state"]), (20, 20, "planned"), "with a part an object")
    s2, b2, h2 = a.call("POST", "/v1/campaigns", spec(), {**YAML, "Idempotency-Key": key})
    t.ok((s2, b2) == (s1, b1) and h2["idempotent-replayed"] == "true" and h2["location"] == h1["location"], "the same key and body: the first answer, bare or quoted")
    s3, b3, _ = a.call("POST", "/v1/campaigns", spec("other"), h)
    t.ok(s3 == 422 and b3["code"] == "key_reused", "the same key with another body: 422", b3)
    t.eq(a.sql("SELECT count(*) FROM campaign"), "1", "one campaign was made")
    t.eq(a.call("POST", "/v1/campaigns", spec(), YAML)[0], 400, "no key: 400")
    for k in ('""', "a" * 256, "a b", '"'):
        t.eq(a.call("POST", "/v1/campaigns", spec(), {**YAML, "Idempotency-Key": k})[0], 400, f"the key {k[:8]!r} is refused")
    t.eq(a.call("POST", "/v1/campaigns", spec(), {"Content-Type": "text/plain", "Idempotency-Key": "x"})[0], 415, "text/plain: 415")
    rows = a.sql("SELECT count(*), min(seq), max(seq), count(DISTINCT uri), min(size) FROM task WHERE campaign_id = 1")
    t.eq(rows, "20|0|19|20|10", "its tasks")
    t.eq(a.sql("SELECT count(*) FROM task t JOIN task_run r ON (r.campaign_id, r.id, r.stage_id, r.seq) = (t.campaign_id, t.id, t.stage_id, t.seq)"), "20", "each with its first task_run")
    t.eq(a.sql("SELECT tasks, closed FROM stage_input"), "20|t", "the stage is closed")
    t.eq(a.sql("SELECT action, subject FROM audit"), "campaign.submit|c-1", "and the audit says who")
    same = {"version": 1, "name": "json", "stages": [{"name": "d", "worker": "download", "fan_out": {"from": "api"}, "instance_type": "ml.c5.xlarge",
            "max_runtime": "1h", "hyperparameters": {"url_list": "{uri}", "output_folder": "s3://data/o/{part:05d}/"}}]}
    t.eq(a.post("/v1/campaigns", same)[0], 201, "JSON is taken as well")
    answers = []
    k = str(uuid.uuid4())
    threads = [threading.Thread(target=lambda: answers.append(a.call("POST", "/v1/campaigns", spec("race"), {**YAML, "Idempotency-Key": k})[:2])) for _ in range(8)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    t.eq(a.sql("SELECT count(*) FROM campaign WHERE name = 'race'"), "1", "eight at once with one key: one campaign")
    t.ok({s for s, _ in answers} <= {201, 409} and 201 in {s for s, _ in answers}, "the others get it or hear of one in flight", answers)


def check_key_in_use(t, a):
    """The first request waits for a lock of the test's; the same request again hears to come later, and the
    command line does.
    """
    key, text = str(uuid.uuid4()), spec("slow")
    head = {**YAML, "Idempotency-Key": key}
    refused = lambda: int(re.search(r"droverd_http_client_errors_total (\d+)", a.raw("GET", "/metrics")[1].decode()).group(1))  # noqa: E731
    lock = subprocess.Popen([PSQL, "-XqAt", a.pg.conninfo(a.db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lock.stdin.write("BEGIN; LOCK TABLE campaign IN SHARE MODE; SELECT 1;\n")
    lock.stdin.flush()
    lock.stdout.readline()
    got = {}
    first = threading.Thread(target=lambda: got.update(first=a.call("POST", "/v1/campaigns", text, head)))
    first.start()
    try:
        wait_for(lambda: a.sql("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'campaign'::regclass") == "1", 25)
        status, b, h = a.call("POST", "/v1/campaigns", text, head)
        t.ok((status, b["code"], b["retryable"], h.get("retry-after")) == (409, "key_in_use", True, "1"),
             "a request whose first one still runs: key_in_use, to be repeated", (status, b, h))
        before = refused()
        cli = threading.Thread(target=lambda: got.update(cli=a.drover("submit", "-", "-y", "--idempotency-key", key, "-o", "name", stdin=text)))
        cli.start()
        wait_for(lambda: refused() > before + 1, 25)
    finally:
        lock.stdin.close()
        lock.wait()
    first.join()
    cli.join()
    t.ok(got["first"][0] == 201 and got["cli"].stdout == got["first"][1]["id"] + "\n", "the command line waits for the first one's answer", got)
    t.eq(a.sql("SELECT count(*) FROM campaign WHERE name = 'slow'"), "1", "and one campaign was made")


def logged(a, request_id):
    """The access log's lines of a request."""
    with open(a.dir + "/log", encoding="utf-8") as f:
        lines = [json.loads(x) for x in f if '"event":"request_answered"' in x]
    return [x for x in lines if x["request_id"] == request_id]


def check_request_id(t, a):
    """Taken when it is a word of at most 64 characters, else made; in every answer, problem, audit row and log line."""
    cases = (("GET", "/v1/campaigns", True, 200), ("GET", "/v1/campaigns", False, 401), ("GET", "/v1/campaigns/c-99999", True, 404), ("DELETE", "/v1/campaigns", True, 405),
             ("GET", "/v1/nothing", True, 404), ("GET", "/icon.svg", False, 200), ("GET", "/livez", False, 200), ("GET", "/v1/campaigns?x=1", True, 400))
    wrong = []
    for i, (method, path, token, status) in enumerate(cases):
        rid = f"Mine_{i}.a-Z"
        s, body, h = a.raw(method, path, headers={"X-Request-Id": rid}, token=token)
        if (s, h.get("x-request-id")) != (status, rid) or (s >= 400 and json.loads(body)["request_id"] != rid):
            wrong.append((path, s, h, body[:200]))
    t.ok(not wrong, "a request id is returned on every answer and in every problem", wrong)
    made = {a.raw("GET", "/v1/session", headers={"X-Request-Id": x} if x is not None else None)[2]["x-request-id"] for x in (None, "", "a b", "x" * 65, 'a"b', "a/b", "\xe9")}
    t.ok(len(made) == 7 and all(re.fullmatch("[0-9a-f]{32}", x) for x in made), "one that is no word of 64 characters is replaced by a random one", made)
    t.eq(a.raw("GET", "/v1/session", headers={"X-Request-Id": "x" * 64})[2]["x-request-id"], "x" * 64, "64 characters are taken")
    rid = str(uuid.uuid4())
    cid = a.get("/v1/campaigns?page_size=1")[1]["campaigns"][0]["id"]
    a.sql(f"UPDATE campaign_run SET state = 'paused' WHERE campaign_id = {cid[2:]}; UPDATE campaign SET wanted = 'pause' WHERE id = {cid[2:]}")
    a.call("POST", f"/v1/campaigns/{cid}:resume", {}, {"X-Request-Id": rid})
    t.eq(a.sql(f"SELECT action FROM audit WHERE request_id = '{rid}'"), "campaign.resume", "the audit has it")
    line = wait_for(lambda: logged(a, rid))[0]
    t.eq({k: line[k] for k in ("level", "who", "method", "route", "status")},
         {"level": "info", "who": a.token.split(".")[0], "method": "POST", "route": "/v1/campaigns/{campaign}:resume", "status": 202}, "the access log says who asked for what and what was answered")
    t.ok(0 < line["took_us"] < 60e6, "and how long it took", line)
    t.eq([(x["who"], x["status"]) for i in (1, 7) for x in logged(a, f"Mine_{i}.a-Z")], [("", 401), (a.token.split(".")[0], 400)], "of refused requests as well")
    t.eq([logged(a, f"Mine_{i}.a-Z") for i in (5, 6)], [[], []], "probes and files are left out")


def check_lost(t, a):
    """A browser that asks for a page that is not there gets the dashboard with 404; everybody else a problem."""
    home = a.raw("GET", "/", token=False)[1]
    page = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path, headers, status, html in (("/nothing/here", page, 404, True), ("/c/1/nothing", page, 404, True), ("/nothing/here", {}, 404, False), ("/nothing.js", {"Accept": "*/*"}, 404, False),
                                        ("/v1/nothing", page, 404, False), ("/c/1", page, 200, True), ("/", page, 200, True)):
        s, body, h = a.raw("GET", path, headers=headers, token=False)
        t.eq((s, body == home, "problem+json" in h["content-type"]), (status, html, not html), f"{path} for {headers.get('Accept', 'no Accept')[:9]}: {status}")
    t.eq(a.raw("GET", "/nothing/here", headers={**page, "If-None-Match": "*"}, token=False)[0], 404, "which is never 304")


def check_encoding(t, a):
    path = f"/v1/campaigns/{a.get('/v1/campaigns?page_size=1')[1]['campaigns'][0]['id']}:resume"
    t.eq(a.call("POST", path, b"{}", {"Content-Encoding": "gzip"}, token=False)[0], 401, "a compressed body without a token: 401")
    t.eq(a.call("POST", path, b"{}", {"Content-Encoding": "identity"})[0], 202, "identity is read")
    for method, path, body in (("POST", "/v1/campaigns", b"x"), ("POST", "/v1/login", b"x"), ("POST", path, b"{}")):
        s, b, h = a.call(method, path, body, {"Content-Encoding": "gzip"})
        t.ok((s, b["code"], h.get("accept-encoding")) == (415, "media_type", "identity"), f"{path} in gzip: 415, which says what is read", (s, b, h))


def check_live_name(t, a):
    """?live_name=refuse: a name whose campaign has not ended is refused with its id and the keys that differ."""
    def send(text, query="live_name=refuse", **kw):
        return a.post("/v1/campaigns?" + query, text, YAML, **kw)[:2]
    top = "vars: {secret: one}\nlimits: {parts: 4}"
    text = spec("twice", "{from: api}", top=top, extra="    environment: {KEY: one}")
    s, first = send(text)
    t.ok(s == 201, "a new name is taken", first)
    s, b = send(text)
    t.ok((s, b["code"], b["campaign"], b["retryable"]) == (409, "live_name", first["id"], False) and "errors" not in b and first["id"] in b["detail"], "a live one is refused with the other's id", b)
    other = spec("twice", "{from: api}", top="vars: {secret: two}\nbudget: 9 USD", extra="    environment: {KEY: two}").replace("max_runtime: 1h", "max_runtime: 2h")
    want = [("vars.secret", "one -> two", 3), ("budget", "(none) -> 9 USD", 4), ("stages.download.max_runtime", "1h -> 2h", 10), ("stages.download.environment.KEY", "one -> two", 12), ("limits.parts", "4 -> (none)", None)]
    got = lambda b: [(e["pointer"], e["message"], e.get("line")) for e in b["errors"]]  # noqa: E731
    s, b = send(other)
    t.eq((s, got(b)), (409, want), "and with every key that differs")
    operator = a.post("/v1/tokens", {"name": "second", "role": "operator"})[1]["token"]
    t.eq([m for _, m, _ in got(send(other, token=operator)[1])], ["changed", "(none) -> 9 USD", "1h -> 2h", "changed", "4 -> (none)"], "values of vars and environment are for admins")
    t.eq([send(text, q)[0] for q in ("dry_run=true&live_name=refuse", "dry_run=true", "live_name=maybe")], [409, 200, 400], "a plan is refused, too, when it asks so; another value is not known")
    t.eq(send(spec("twice", "{from: api}", top="project: other"))[0], 201, "another project is another name")
    key = {**YAML, "Idempotency-Key": str(uuid.uuid4())}
    made = [a.call("POST", "/v1/campaigns" + q, text, key)[:2] for q in ("", "?live_name=refuse")]
    t.ok(made[0][0] == 201 and made[1] == made[0], "without the parameter a second one is made; its key gets it again", made)
    a.sql("UPDATE campaign_run SET state = 'cancelled' WHERE campaign_id IN (SELECT id FROM campaign WHERE name = 'twice')")
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(send(text)[0])) for _ in range(6)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    t.eq(sorted(answers), [201] + 5 * [409], "when all have ended, one of six at once is taken")


def check_faults(t, a):
    s, b, _ = a.submit(EIGHT)
    e = b["errors"]
    t.ok(s == 422 and len(e) >= 8, f"a file with eight mistakes gets them all ({len(e)})", e)
    t.ok(all(x["line"] > 0 and x["column"] > 0 and x["message"] and x["code"] for x in e), "each with line and column", e)
    t.ok(all(x.get("hint") for x in e), "and with what to write instead", [x for x in e if not x.get("hint")])
    lines = {x["line"] for x in e}
    t.ok({3, 6, 8, 9, 10, 11, 12, 14} <= lines, "at their places", sorted(lines))
    for text, what in (("", "nothing"), ("[1,2", "a broken list"), ("a: b: c", "broken YAML"), ("null", "null"), ("\x00", "a NUL"), ("{}", "an empty map"),
                       ("- 1", "a list"), ("&a [*a]", "a loop of aliases"), ("x" * 5000, "a word")):
        s, b, _ = a.submit(text)
        t.ok(s in (400, 422) and b["status"] == s and (b.get("errors") or s == 400), f"{what} is refused", (s, b))
    s, b, _ = a.submit(spec(fan_out='{from: "s3://denied/x/*.parquet"}'))
    t.ok(s == 422 and "AccessDenied" in b["errors"][0]["message"] and b["errors"][0]["hint"] and b["errors"][0]["line"] == 7, "an unreadable bucket: 422 with the reason and the line", b)
    s, b, _ = a.submit(spec(fan_out='{from: "s3://data/none/*.parquet"}'))
    t.ok(s == 422 and "no object matches" in b["errors"][0]["message"], "no input: 422", b)
    a.sql("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.xlarge', 204000, 'test'); INSERT INTO quota (instance_type, limit_n) VALUES ('ml.c5.xlarge', 4)")
    s, b, _ = a.submit(spec(top="budget: 0.01 USD"))
    t.ok(s == 409 and b["code"] == "budget" and "0.01" in b["errors"][0]["message"], "a step no cap admits is refused with both numbers", b)
    s, b, _ = a.call("POST", "/v1/campaigns?dry_run=true", spec(top="budget: 900 USD"), YAML)
    st = b["stages"][0]
    # 0.204 USD/h x (3600 + 120 + 900) s = 0.2618 USD
    t.ok(s == 200 and b["parts"]["total"] == 20 and st["worst_case_micro_usd_per_part"] == 261800 and b["worst_case_micro_usd"] == 20 * 261800
         and st["quota"]["limit"] == 4 and [(w["code"], w["stage"]) for w in b["warnings"]] == [("image_tag", "download")], "a dry run is the plan", b)
    t.eq(a.sql("SELECT count(*) FROM campaign WHERE name = 'laion'"), "1", "and makes nothing")
    t.eq(a.call("POST", "/v1/campaigns?dry_run=maybe", spec(), YAML)[0], 400, "dry_run=maybe is refused")


def check_limits(t, a):
    t.eq(a.submit("#" * (1024 * 1024 + 1))[0], 413, "a body over 1 MiB: 413")
    deep = "[" * 40 + "]" * 40
    t.ok(a.post("/v1/campaigns/c-1:retry", '{"selector":' + deep + "}")[0] in (400, 422), "depth 40 is refused")
    t.eq(a.post("/v1/campaigns/c-1:retry", '{"selector":{},"selector":{}}')[0], 400, "a key twice is refused")
    t.eq(a.post("/v1/campaigns/c-1:retry", '{"selector":{"parts":[NaN]}}')[0], 400, "NaN is refused")
    t.eq(a.post("/v1/campaigns/c-1:retry", b'{"a":"\xff"}')[0], 400, "bytes that are not UTF-8 are refused")
    t.eq(a.post("/v1/campaigns/c-1:retry", '{"sellector":{}}')[0] // 100, 4, "an unknown field is refused")
    t.eq(a.post("/v1/campaigns/c-1:pause", '{"x":1}')[0] // 100, 4, "also where none is taken")
    for q in ("page_size=0", "page_size=1001", "page_size=x", "page_token=zz", "page_token=" + "00" * 20, "nonsense=1", "page_size=1&page_size=2", "state=broken"):
        t.eq(a.get("/v1/campaigns?" + q)[0], 400, f"?{q[:30]} is refused")
    for p in ("/v1/campaigns/1", "/v1/campaigns/c-", "/v1/campaigns/c-1x", "/v1/campaigns/c-99999999999999999999", "/v1/campaigns/c-77", "/v1/operations/op-77",
              "/v1/parts/c-1/77", "/v1/parts/c-1/-1", "/v1/campaigns/c-1/parts?stage=none"):
        s, b, _ = a.get(p)
        t.ok(s == 404 and b["code"] == "not_found", f"{p}: 404", (s, b))
    s, _, h = a.raw("DELETE", "/v1/campaigns")
    t.ok(s == 405 and h["allow"] == "POST, GET, HEAD, OPTIONS", "DELETE: 405 with Allow, every method of it", h.get("allow"))
    s = a.raw("GET", "/v1/campaigns", headers={f"X-H{i}": "v" for i in range(80)})[0]
    t.eq(s, 431, "eighty headers: 431")
    t.ok(a.raw("GET", "/v1/campaigns", headers={"X-Big": "v" * 20000})[0] in (431, 413), "a header of 20 kB is refused")
    s, b, _ = a.get("/v1/campaigns/c-1/%00")
    t.ok(s == 400, "a NUL in the path", s)
    text = a.sql("SELECT count(*) FROM campaign")
    for bad in ("'; DROP TABLE campaign; --", "<script>alert(1)</script>", "\u202e\u0007x", "x" * 3000):
        s, b, _ = a.get("/v1/campaigns/c-1/parts?stage=" + __import__("urllib.parse").parse.quote(bad))
        t.ok(s in (400, 404, 431) and b["status"] == s, f"the stage {bad[:12]!r} is not found", (s, b))
    t.eq(a.sql("SELECT count(*) FROM campaign"), text, "and nothing happened")


def paged(a, path, key, member, size=2):
    """That member of every row, over pages of `size`."""
    got, token = [], ""
    while True:
        s, b, _ = a.get(f"{path}{'&' if '?' in path else '?'}page_size={size}{token}")
        if s != 200:
            return b["detail"]
        got += [row[member] for row in b[key]]
        if not b["next_page_token"]:
            return got
        token = "&page_token=" + b["next_page_token"]


def check_orders(t, a):
    """order_by of lists that come in pages: a whole list in either direction, and nothing that no index has. c-1 has 20 parts, five failed."""
    number = lambda ids: [int(re.sub(r"^.*\D", "", x)) for x in ids]  # noqa: E731
    for _ in range(3):
        a.submit(spec())
    a.post("/v1/campaigns/c-1:pause", "{}")
    a.post("/v1/campaigns/c-1:resume", "{}")
    a.sql("INSERT INTO operation (campaign_id, kind, selector, changes, state, created_by) SELECT 1, 'cancel', '{}', '{}', 'done', 'orders' FROM generate_series(1, 5)")
    for path, key, member, down in (("/v1/campaigns", "campaigns", "created_at", True), ("/v1/operations", "operations", "id", True), ("/v1/audit", "audit", "id", True),
                                    ("/v1/campaigns/c-1/parts", "parts", "id", False), ("/v1/campaigns/c-1/parts?stage=download", "parts", "id", False), ("/v1/campaigns/c-1/parts?filter=attempts%3E%3D1", "parts", "id", False)):
        q = path + ("&" if "?" in path else "?") + "order_by=" + member
        rows = paged(a, path, key, "id", 1000)
        rows = rows[::-1] if down else rows
        got = [paged(a, q, key, "id"), paged(a, q + "%20desc", key, "id"), paged(a, path, key, "id")]
        t.ok(got == [rows, rows[::-1], rows[::-1] if down else rows] and len(rows) > 2 and number(rows) == sorted(number(rows)), f"{path} by {member}, in pages of two, up and down", got)
        t.eq([x[member] for x in a.get(q + "%20desc&fields=" + member)[1][key]], [x[member] for x in a.get(q + "%20desc")[1][key]], "also of some fields")
        first = [a.get(x + ("&" if "?" in x else "?") + "page_size=2")[1]["next_page_token"] for x in (path, q, q + "%20desc")]
        crossed = [a.get(f"{x}&page_token={token}") for x, token in ((q, first[2]), (q + "%20desc", first[1]), (q + ("" if down else "%20desc"), first[0]))]
        t.ok([s for s, _, _ in crossed] == [400] * 3 and all(word in b["detail"] for word, (_, b, _) in zip((f"order_by={member} desc", f"order_by={member}", "without order_by"), crossed)), "a page_token of another order is refused, and says of which it is", crossed)
        wrong = [a.get(path + ("&" if "?" in path else "?") + "order_by=" + x) for x in ("cost_micro_usd", "state%20desc", member + "%20down", member + "%20desc%20", "")]
        t.ok([s for s, _, _ in wrong] == [400] * 5 and all(member in b["detail"] and "would read all rows" in b["detail"] for _, b, _ in wrong), "what no index has is refused with what is allowed", wrong)
    failed = "/v1/campaigns/c-1/parts?state=failed"
    causes = [paged(a, failed + o, "parts", "seq") for o in ("", "&order_by=cause", "&order_by=cause%20desc")]
    t.eq(causes, [[3, 5, 8, 2, 11], [3, 5, 8, 2, 11], [11, 2, 8, 5, 3]], "parts that failed by cause, up and down")
    t.ok("cause or cause desc" in paged(a, failed + "&order_by=id", "parts", "seq") and "state=failed" in paged(a, "/v1/campaigns/c-1/parts?order_by=cause%20desc", "parts", "seq"), "each order where its index is")
    a.sql("DELETE FROM operation WHERE created_by = 'orders'")


def check_filters(t, a):
    """What no index has: attempts, cost, time and text of each part."""
    a.sql("UPDATE task_run SET updated_us = 1764244800000000 + seq * 60000000 WHERE campaign_id = 1 AND seq > 0; UPDATE attempt SET cost_musd = 500000 WHERE campaign_id = 1 AND name LIKE 'd-1-8-%'")
    few = "updated>=2025-11-27T12:05:00Z AND updated<2025-11-27T12:09:00Z"
    for terms, want in (("text=KILLED", [2, 11]), ('text="<b>now</b>"', [2, 11]), ('text="left on device" AND state=failed', [3, 5, 8]), ("text=5.parquet", [5, 15]), ("text=nowhere", []), ("text=%", []),
                        ("cost>=0.50", [2, 3, 5, 8, 11]), ("cost>=0.500001", [2, 3, 5, 11]), ("cost>=1.234567 AND text=killed AND attempts>=1", [2, 11]), (few, [5, 6, 7, 8]),
                        (few + " AND state=failed AND cost>=1", [5]), ("updated>=2026-01-01T00:00:00Z", []), ("updated<2025-11-27T12:03:00Z", [1, 2])):
        b = a.get("/v1/campaigns/c-1/parts?filter=" + urllib.parse.quote(terms))[1]
        t.eq([p["seq"] for p in b["parts"]], want, f"the parts with {terms}")
        got, token = [], ""
        while token is not None:
            b = a.get(f"/v1/campaigns/c-1/parts?page_size=1&order_by=id%20desc&filter={urllib.parse.quote(terms)}{token}")[1] if "state=failed" not in terms else {"parts": [], "next_page_token": None}
            got += [p["seq"] for p in b["parts"]]
            token = b["next_page_token"] and "&page_token=" + b["next_page_token"]
        t.ok(got == want[::-1] or "state=failed" in terms, "and one by one from the end", got)
    for terms in ("cost>=", "cost>=x", "cost>=-1", "cost<1", "updated>=now", "updated>=2026-13-01T00:00:00Z", "updated=2026-01-01T00:00:00Z", 'text="open', "text=" + "x" * 129, "text=a AND text=b", "cost>=1 AND cost>=2",
                  "cause=oom AND text=a", "cause=oom AND cost>=1"):
        t.eq(a.get("/v1/campaigns/c-1/parts?filter=" + urllib.parse.quote(terms))[0], 400, f"{terms[:40]} is refused")
    t.eq(a.get("/v1/campaigns/c-1/parts?filter=" + urllib.parse.quote('text=""'))[0], 422, "an empty text is never all")
    t.eq([a.post("/v1/campaigns/c-1:retry?dry_run=true", {"selector": {"filter": f}})[0] for f in ("text=killed", "cost>=1", few)], [422] * 3, "a retry does not select by these")
    a.sql("UPDATE attempt SET cost_musd = 1234567 WHERE campaign_id = 1")


def check_parts(t, a):
    leader_takes(a, 1)
    seen, token = [], ""
    while True:
        s, b, _ = a.get(f"/v1/campaigns/c-1/parts?page_size=7{token}")
        seen += [p["seq"] for p in b["parts"]]
        if not b["next_page_token"]:
            break
        token = "&page_token=" + b["next_page_token"]
    t.eq(seen, list(range(20)), "pages of seven bring every part once, in order")
    leader_fails(a, 1, [3, 5, 8], CAUSE_DISK_FULL)
    leader_fails(a, 1, [2, 11], CAUSE_OOM, "killed <b>now</b>")
    for q, want in (("state=failed", [3, 5, 8, 2, 11]), ("cause=oom", [2, 11]), ("state=failed&cause=disk_full,oom", [3, 5, 8, 2, 11]), ("state=done", []),
                    ("filter=state%3Dfailed%20AND%20cause%20IN%20(oom)", [2, 11]), ("filter=attempts%3E%3D1", [2, 3, 5, 8, 11]),
                    ("state=waiting&stage=download", [0, 1, 4, 6, 7, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19]), ("state=active", [])):
        s, b, _ = a.get(f"/v1/campaigns/c-1/parts?{q}")
        t.eq([p["seq"] for p in b["parts"]], want, f"?{q}")
    check_filters(t, a)
    got, token = [], ""
    while True:
        b = a.get(f"/v1/campaigns/c-1/parts?state=failed&page_size=2{token}")[1]
        got += [p["seq"] for p in b["parts"]]
        if not b["next_page_token"]:
            break
        token = "&page_token=" + b["next_page_token"]
    t.eq(got, [3, 5, 8, 2, 11], "failed parts in pages of two")
    for q in ("state=broken", "cause=none", "cause=x", "filter=x", "filter=attempts%3E%3Dx", "filter=state%3D"):
        t.eq(a.get(f"/v1/campaigns/c-1/parts?{q}")[0], 400, f"?{q} is refused")
    for q in ("cause=", "state=", "filter=", "filter=%20", "filter=cause%20IN%20()", "filter=cause%20IN%20(%20)", "cause=oom,", "cause=,", "filter=cause%20IN%20(oom,)", "filter=state%3Dfailed%20AND%20cause%20IN%20()"):
        s, b, _ = a.get(f"/v1/campaigns/c-1/parts?{q}")
        t.ok((s, b["code"]) == (422, "invalid"), f"?{q}: empty is never all, 422", (s, b))
    s, b, _ = a.get("/v1/campaigns?state=")
    t.ok((s, b["code"]) == (422, "invalid") and "'state': it is empty, which never means all" in b["detail"], "so is ?state= of the list of campaigns", (s, b))
    t.eq([a.get(f"/v1/campaigns{q}")[0] for q in ("?page_size=", "/c-1/parts?page_token=", "/c-1/parts?state=a", "/c-1/parts?states=")], [400] * 4, "an empty value that chooses no rows is malformed, as a wrong or unknown one")
    for q in ("cause=oom&filter=cause%20IN%20(disk_full)", "filter=cause%3Doom%20cause%3Doom", "filter=cause%3Doom%20AND", "filter=cause%20IN%20oom", "filter=state%3Dfailed%20OR%20state%3Ddone", "filter=cause%20IN%20(oom"):
        t.eq(a.get(f"/v1/campaigns/c-1/parts?{q}")[0], 400, f"?{q} is refused")
    b = a.get("/v1/parts/c-1/3")[1]
    x = b["attempt_list"][0]
    t.ok(b["state"] == "failed" and b["cause"] == "disk_full" and x["cost_micro_usd"] == 1234567 and x["job_name"] == "d-1-3-a1" and x["state"] == "failed", "one part with its tries", b)
    t.eq(x["console_url"], None, "without a page at AWS, of which no job is known")
    for partition, region, host in (("aws", "eu-west-1", "console.aws.amazon.com"), ("aws-cn", "cn-north-1", "console.amazonaws.cn"), ("aws-us-gov", "us-gov-west-1", "console.amazonaws-us-gov.com")):
        a.sql(f"UPDATE attempt SET arn = 'arn:{partition}:sagemaker:{region}:111122223333:training-job/d-1-3-a1' WHERE name = 'd-1-3-a1'")
        t.eq(a.get("/v1/parts/c-1/3")[1]["attempt_list"][0]["console_url"], f"https://{region}.{host}/sagemaker/home?region={region}#/jobs/d-1-3-a1", f"its page in the console of {partition}")
    a.sql("UPDATE attempt SET arn = '' WHERE name = 'd-1-3-a1'")
    b = a.get("/v1/campaigns/c-1/failures")[1]
    g = b["groups"]
    t.ok(b["parts"] == 5 and b["final"] == 5 and [(x["cause"], x["parts"], x["sample"]) for x in g] == [("disk_full", 3, [3, 5, 8]), ("oom", 2, [2, 11])]
         and g[0]["lost_micro_usd"] == 3 * 1234567 and g[0]["remedy"], "failures by cause", b)
    a.sql("UPDATE task_failure SET lost_musd = lost_musd + 1")
    t.eq(a.get("/v1/campaigns/c-1/failures")[1], b, "they are remembered while no counter of the campaign is written")
    a.sql("UPDATE stage_run SET waiting = waiting WHERE campaign_id = 1")
    t.eq(a.get("/v1/campaigns/c-1/failures")[1]["groups"][0]["lost_micro_usd"], 3 * 1234568, "and counted again when one is")
    a.sql("INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, cause, final, signature, message) SELECT 5000 + i, 1, 1, i, 17, i % 2 = 0, 's' || i, 'm' FROM generate_series(1, 300) i;"
          "UPDATE stage_run SET waiting = waiting WHERE campaign_id = 1")
    b = a.get("/v1/campaigns/c-1/failures")[1]
    t.eq((b["parts"], b["final"], len(b["groups"]), b["groups"][0]["cause"]), (305, 155, 200, "disk_full"), "of 302 groups the largest 200 are listed, and all parts counted")
    a.sql("DELETE FROM task_failure WHERE task_id > 5000; UPDATE stage_run SET waiting = waiting WHERE campaign_id = 1")
    b = a.get("/v1/campaigns/c-1/tiles")[1]
    want = [4 if i in (2, 3, 5, 8, 11) else 0 for i in range(20)]
    t.ok(b["per_tile"] == 1 and b["tiles"] == want and b["states"][4] == "failed", "tiles, one a part", b)
    s, b, h = a.get("/v1/campaigns/c-1/tiles?max=10")
    t.ok(b["per_tile"] == 2 and b["tiles"][1][4] == 2 and sum(map(sum, b["tiles"])) == 20, "tiles of two parts", b)
    t.eq(a.raw("GET", "/v1/campaigns/c-1/tiles?max=10", headers={"If-None-Match": h["etag"]})[0], 304, "an ETag that stands: 304")
    b = a.get("/v1/campaigns/c-1/tiles?first=2&last=3")[1]
    t.eq(b["tiles"], [4, 4], "a stretch of tiles")
    s, b, _ = a.get("/v1/campaigns/c-1/parts/3/logs")
    t.ok(s == 200 and b["job_name"] == "d-1-3-a1" and b["lines"][0]["text"] == "log of d-1-3-a1" and b["next"].endswith(".n1"), "a log by the bridge", b)
    t.eq(a.get(f"/v1/campaigns/c-1/parts/3/logs?token={b['next']}")[0], 200, "its token brings the next page")
    for token, where in ((b["next"], 5), ("bogus", 3), ("n1", 3), ("00000000.n1", 3), ("", 3), (b["next"] + "x", 3)):
        t.eq(a.get(f"/v1/campaigns/c-1/parts/{where}/logs?token={token}")[0], 400, f"?token={token} is not one of part {where}: 400")
    t.eq(a.get("/v1/campaigns/c-1/parts/0/logs")[0], 404, "no attempt, no log")
    b = a.get("/v1/campaigns/c-1/forecast")[1]
    t.ok(b["ends_in_seconds"] is None and b["reason"].startswith("needs 5 finished parts"), "no forecast is made up", b)
    a.sql("""UPDATE stage_run SET done = 6, active = 1, waiting = waiting - 7 WHERE campaign_id = 1;
        INSERT INTO attempt (campaign_id, stage_id, task_id, n, state, epoch, name, request_sha256, identity_hash, instance_type, instances, max_runtime_s,
            price_musd_per_hour, reserved_musd, holds, intended_at, started_at, ended_at)
        SELECT 1, 1, 900 + i, 1, 8, 1, 'done-' || i, decode(repeat('00', 32), 'hex'), repeat('0', 64), 'ml.c5.xlarge', 1, 3600, 0, 0, false, now() - interval '100 s', now() - interval '100 s', now()
        FROM generate_series(1, 6) i;""")
    until = time.monotonic() + 10
    while (b := a.get("/v1/campaigns/c-1/forecast")[1])["finished"] != 6 and time.monotonic() < until:
        time.sleep(0.1)  # an answer is cached for two seconds
    # nine parts of 100 s each on one slot; one in three has failed so far
    t.ok(b["remaining"] == 9 and 850 <= b["low_seconds"] <= b["ends_in_seconds"] <= b["high_seconds"] <= 3000 and b["ends_at"], "with six finished ones there is a forecast", b)
    a.sql("UPDATE stage_run SET done = 0, active = 0, waiting = waiting + 7 WHERE campaign_id = 1; DELETE FROM attempt WHERE name LIKE 'done-%'")
    b = a.get("/v1/campaigns/c-1/cost")[1]
    t.ok(b["metered"] == {"seconds": 0, "micro_usd": 0} and {x["cause"]: x["micro_usd"] for x in b["by_cause"]} == {"disk_full": 3 * 1234567, "oom": 2 * 1234567}, "cost by cause", b)
    t.ok("by_cause" not in a.get("/v1/campaigns/c-1/cost?by=stage")[1], "cost by stage only")
    a.sql("UPDATE attempt SET cost_musd = cost_musd + 1 WHERE campaign_id = 1 AND cost_musd > 0")
    t.eq(a.get("/v1/campaigns/c-1/cost")[1], b, "causes are remembered while no counter and no money of the campaign is written")
    a.sql("INSERT INTO money (level, ref_id) VALUES ('campaign', 1) ON CONFLICT (level, ref_id) DO UPDATE SET seconds = money.seconds")
    t.eq({x["cause"]: x["micro_usd"] for x in a.get("/v1/campaigns/c-1/cost")[1]["by_cause"]}, {"disk_full": 3 * 1234568, "oom": 2 * 1234568}, "and summed again when some is")
    a.sql("UPDATE attempt SET cost_musd = cost_musd - 1 WHERE campaign_id = 1 AND cost_musd > 0")
    check_phases(t, a)
    check_metrics(t, a)
    check_gate(t, a)


PHASES = ("capacity_wait", "start", "image", "data", "training", "upload", "warm_idle", "other", "hosting", "storage")


def check_phases(t, a):
    """Where the hour went: the phases of a campaign and of its stage add up to what was booked; older attempts are `other`."""
    b = a.get("/v1/campaigns/c-1/cost?by=phase")[1]
    t.ok([p["phase"] for p in b["by_phase"]] == list(PHASES) and [p["micro_usd"] for p in b["by_phase"]] == [0] * 7 + [5 * 1234567, 0, 0] and [p["seconds"] for p in b["by_phase"]] == [0] * 7 + [100, 0, 0],
         "without transitions the bill is of no phase", b)
    a.sql("""UPDATE attempt SET warm_s = 30, warm_musd = 1700, phases = '{90000,0,0, 60500,0,0, 4000,4,246914, 0,0,0, 15000,15,925925, 1000,1,61728}' WHERE name = 'd-1-3-a1';
        UPDATE stage_run SET waiting = waiting WHERE campaign_id = 1  -- the leader writes one with the other""")
    b = a.get("/v1/campaigns/c-1/cost?by=phase")[1]
    got = {p["phase"]: (p["elapsed_seconds"], p["seconds"], p["micro_usd"]) for p in b["by_phase"]}
    want = {"capacity_wait": (90.0, 0, 0), "start": (60.5, 0, 0), "image": (4.0, 4, 246914), "data": (0, 0, 0), "training": (15.0, 15, 925925), "upload": (1.0, 1, 61728),
            "warm_idle": (0, 30, 1700), "other": (0, 80, 4 * 1234567), "hosting": (0, 0, 0), "storage": (0, 0, 0)}
    booked = a.sql("SELECT sum(cost_musd + warm_musd) || ' ' || sum(billable_s + warm_s) FROM attempt WHERE campaign_id = 1").split()
    t.ok(got == want and [str(sum(x[i] for x in got.values())) for i in (2, 1)] == booked, "the phases add up to what was booked", (got, booked))
    t.eq(b["trained_nothing"], {"elapsed_seconds": 155.5, "seconds": 115, "micro_usd": 5 * 1234567 + 1700 - 925925}, "what trained nothing is all but training")
    g = b["stages"]
    t.ok([x["stage"] for x in g] == ["download"] and g[0]["attempts"] == 5 and g[0]["by_phase"] == b["by_phase"] and "by_stage" not in b and "by_cause" not in b, "the same by stage", b)
    t.eq([(x["phase"], x["micro_usd"]) for x in g[0]["advice"]], [("image", 246914), ("capacity_wait", 0)], "and what would cut it, by what it saves")
    x = a.get("/v1/parts/c-1/3")[1]["attempt_list"][0]["phases"]
    t.ok([p["phase"] for p in x] == list(PHASES[:6]) and x[4] == {"phase": "training", "elapsed_seconds": 15, "seconds": 15, "micro_usd": 925925}, "and of one attempt", x)
    t.eq(a.get("/v1/parts/c-1/5")[1]["attempt_list"][0]["phases"], None, "an older one has none")
    for q in ("by=", "by=day", "by=phase,stage"):
        t.eq(a.get(f"/v1/campaigns/c-1/cost?{q}")[0], 400, f"?{q} is refused")
    t.eq(a.get("/v1/campaigns/c-999/cost?by=phase")[0], 404, "of no campaign: 404")


def check_gate(t, a):
    """Only a stage that its gate holds is overridden, once; the audit has who and what the gate said."""
    for body, want in (({}, 422), ({"stage": ""}, 422), ({"stage": "nope"}, 404), ({"stage": "download"}, 409), ({"stage": "download", "x": 1}, 422)):
        t.eq(a.post("/v1/campaigns/c-1:override", body)[0], want, f"override {body}: {want}")
    t.eq(a.post("/v1/campaigns/c-999:override", {"stage": "download"})[0], 404, "of no campaign: 404")
    a.sql("UPDATE stage_run SET state = 'held', reason = 'gate: loss is 4, not below 3: drover override c-1/download' WHERE campaign_id = 1")
    g = a.get("/v1/campaigns/c-1")[1]["guidance"][0]
    t.ok(g["kind"] == "gate" and g["evidence"].startswith("gate: loss is 4") and g["steps"][0]["command"] == "drover override c-1/download", "the guidance has the gate's words and the command", g)
    check_gate_resume(t, a)
    version = a.get("/v1/campaigns/c-1")[1]["version"]
    got = [a.post("/v1/campaigns/c-1:override", {"stage": "download"})[0] for _ in range(2)]
    t.eq((got, a.get("/v1/campaigns/c-1")[1]["version"] - version, a.sql("SELECT count(*) || min(detail->>'stage') FROM audit WHERE action = 'campaign.override'")), ([202, 202], 1, "1download"),
         "overridden once, however often it is asked for")
    a.sql("UPDATE stage_run SET state = 'running', reason = '' WHERE campaign_id = 1; UPDATE stage SET gate_override = false WHERE campaign_id = 1")


def check_gate_resume(t, a):
    """A campaign that gates alone hold is not resumed: 409 with the value and the command; all else that may hold it is."""
    resume = lambda: a.post("/v1/campaigns/c-1:resume")  # noqa: E731
    back = a.sql("SELECT format('UPDATE stage_run SET waiting = %s, done = %s WHERE campaign_id = 1', waiting, done) FROM stage_run WHERE campaign_id = 1")
    t.eq(resume()[0], 202, "a stage with runs left is resumed, whatever its gate said of those before")
    a.sql("UPDATE stage_run SET done = done + waiting, waiting = 0 WHERE campaign_id = 1; UPDATE campaign_run SET state = 'held', reason = 'stage download: gate' WHERE campaign_id = 1")
    version = a.get("/v1/campaigns/c-1")[1]["version"]
    resumed = "SELECT (SELECT resumes FROM stage WHERE campaign_id = 1) || ' ' || count(*) FROM audit WHERE action = 'campaign.resume'"
    before = a.sql(resumed)
    s, b, _ = resume()
    t.ok((s, b["code"], b["detail"]) == (409, "conflict", "campaign c-1: a gate holds it, which resuming does not open; stage download: gate: loss is 4, not below 3: drover override c-1/download") and
         a.get("/v1/campaigns/c-1")[1]["version"] == version and a.sql(resumed) == before, "resuming what a gate holds: 409 with stage, value and command; nothing changed", (s, b))
    gate = "UPDATE stage_run SET reason = 'gate: loss is 4, not below 3: drover override c-1/download' WHERE campaign_id = 1"
    for what, sql, undo in (("its budget", "UPDATE campaign_run SET reason = 'budget' WHERE campaign_id = 1", "UPDATE campaign_run SET reason = '' WHERE campaign_id = 1"),
                            ("a pause", "UPDATE campaign SET wanted = 'pause' WHERE id = 1", "UPDATE campaign SET wanted = 'run' WHERE id = 1"),
                            ("a breaker", "UPDATE stage_run SET reason = 'oom' WHERE campaign_id = 1", gate),
                            ("a retry under way", "INSERT INTO operation (campaign_id, kind, selector) VALUES (1, 'retry', '{}')", "DELETE FROM operation WHERE campaign_id = 1"),
                            ("an override under way", "UPDATE stage SET gate_override = true WHERE campaign_id = 1", "UPDATE stage SET gate_override = false WHERE campaign_id = 1")):
        a.sql(sql)
        first = resume()[0]
        a.sql(undo)
        t.eq((first, resume()[0]), (202, 409), f"with {what} it is resumed, without refused again")
    a.sql(f"{back}; UPDATE campaign_run SET state = 'running', reason = '' WHERE campaign_id = 1")


def check_metrics(t, a):
    """Series of a campaign and points of an attempt, by pages; what there is none of says so."""
    t.eq(a.get("/v1/campaigns/c-1/metrics")[1], {"series": [], "next_page_token": None}, "no metrics yet")
    for name in ("loss", "val:acc"):
        a.sql(f"""INSERT INTO metric_series (campaign_id, stage_id, task_id, attempt_id, name, points, first_us, last_us, last_step, last_value, min_value, max_value, sum_value)
            SELECT campaign_id, stage_id, task_id, id, '{name}', 5, 0, 4000000, 40, 1.5, 0.5, 2.5, 7.5 FROM attempt WHERE name = 'd-1-3-a1';
            INSERT INTO metric_point SELECT currval('metric_series_id_seq'), i, i * 1000000, i * 10, 0.5 + i * 0.5 FROM generate_series(0, 4) i""")
    first = a.get("/v1/campaigns/c-1/metrics?page_size=1")[1]
    rest = a.get(f"/v1/campaigns/c-1/metrics?stage=download&page_token={first['next_page_token']}")[1]
    x = first["series"][0]
    t.ok(x["mean"] == 1.5 and x["seq"] == 3 and x["attempt"] == 1 and x["final"] is None and x["complete"] and [s["name"] for s in rest["series"]] == ["val:acc"] and
         rest["next_page_token"] is None, "series come in pages", (first, rest))
    b = a.get("/v1/campaigns/c-1/parts/3/metrics?points=2&name=val:acc")[1]
    t.eq([(s["name"], [(p["step"], p["seconds"], p["mean"], p["min"], p["max"]) for p in s["chart"]]) for s in b["series"]],
         [("val:acc", [(20, 2.0, 1.0, 0.5, 1.5), (40, 4.0, 2.25, 2.0, 2.5)])], "five points are put together into two")
    got, token = [], ""
    while token is not None:
        b = a.get(f"/v1/campaigns/c-1/parts/3/points?attempt=1&name=loss&page_size=2{token}")[1]
        got += [(p["seq"], p["step"], p["value"]) for p in b["points"]]
        token = b["next_page_token"] and "&page_token=" + b["next_page_token"]
    t.eq(got, [(i, i * 10, 0.5 + i * 0.5) for i in range(5)], "points in pages of two")
    for path, want in (("parts/3/points", 400), ("parts/3/points?name=nope", 404), ("parts/3/metrics?name=nope", 404), ("parts/3/metrics?attempt=9", 404), ("parts/0/metrics", 404),
                       ("parts/3/metrics?points=0", 400), ("parts/3/metrics?points=2001", 400), ("metrics?stage=nope", 404), ("metrics?page_token=x", 400), ("parts/99/points?name=x", 404)):
        t.eq(a.get(f"/v1/campaigns/c-1/{path}")[0], want, f"{path}: {want}")


def check_retry(t, a):
    sel = {"selector": {"cause": ["disk_full"]}, "changes": {"volume_gb": 450}}
    s, b, _ = a.post("/v1/campaigns/c-1:retry?dry_run=true", sel)
    t.ok(s == 200 and b["parts"] == 3 and b["sample"] == [3, 5, 8], "a preview names the parts", b)
    t.eq(a.sql("SELECT count(*) FROM operation"), "0", "and asks for nothing")
    got = []
    threads = [threading.Thread(target=lambda: got.append(a.post("/v1/campaigns/c-1:retry", sel)[:2])) for _ in range(2)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    t.eq(sorted(b["parts"] for _, b in got), [0, 3], "twice at once retries once")
    t.ok(all(s == 202 for s, _ in got), "both are answered")
    op = next(b for _, b in got if b["parts"] == 3)
    t.ok(op["state"] == "accepted" and op["changes"] == {"volume_gb": 450} and op["selector"] == {"cause": ["disk_full"]}, "one operation row", op)
    t.eq(a.get("/v1/operations/" + op["id"])[1]["parts"], 3, "which can be read")
    t.eq(len(a.get("/v1/operations?page_size=1")[1]["operations"]), 1, "and listed")
    s, b, _ = a.post("/v1/campaigns/c-1:retry?dry_run=true", {"selector": {"state": "failed"}})
    t.eq(b["parts"], 2, "what is being retried is not counted again")
    s, b, _ = a.post("/v1/campaigns/c-1:retry?dry_run=true", {"selector": {"parts": [2, 3, 4]}})
    t.eq(b["parts"], 1, "part numbers that failed")
    t.eq([a.post("/v1/campaigns/c-1:retry?dry_run=true", {"selector": {"state": "failed"}, "changes": {"volume_gb": n}})[0] for n in (16384, 16385)], [200, 422], "the largest volume that can be given, and one that cannot")
    for body in ({"selector": {"state": "done"}}, {"selector": {"cause": ["x"]}}, {"selector": {"cause": [1]}}, {"selector": {"parts": []}}, {"selector": {"parts": ["1"]}},
                 {"selector": {"parts": [-1]}}, {"selector": []}, {"selector": {"stage": 5}}, *({"selector": {"state": "failed"}, "changes": c} for c in ({"volume_gb": 0}, {"volume_gb": 99999}, {"x": 1}, {"max_runtime": 0}, {"max_runtime": "29d"}, {"max_runtime": "soon"}, {"instance_type": ""}, {"instance_type": 5}))):
        t.eq(a.post("/v1/campaigns/c-1:retry", body)[0] in (400, 422), True, f"{json.dumps(body)} is refused")
    ask = lambda changes, where="?dry_run=true", sel=None: a.post("/v1/campaigns/c-1:retry" + where, {"selector": sel or {"state": "failed"}, "changes": changes})  # noqa: E731
    t.eq([ask(c)[0] for c in ({"instance_type": "ml.c5.xlarge"}, {"max_runtime": "4h"}, {"max_runtime": 2419200}, {"instance_type": "ml.c5.xlarge", "max_runtime": 60, "volume_gb": 9})], [200] * 4, "a type of the stage's list, a run time, all three")
    s, b, _ = ask({"instance_type": "ml.c5.18xlarge"}, "")
    t.ok(s == 422 and "stage 'download' lists ml.c5.xlarge; name one of these" in b["detail"], "a type that the stage does not list: 422, and which it lists", (s, b))
    s, b, _ = ask({"max_runtime": "4h", "instance_type": "ml.c5.xlarge"}, "", {"parts": [999]})
    t.ok(s == 202 and b["changes"] == {"max_runtime": 14400, "instance_type": "ml.c5.xlarge"}, "a run time is kept in seconds", (s, b))
    before = a.sql("SELECT count(*) FROM operation")
    for sel in (None, {}, {"cause": []}, {"cause": ""}, {"parts": []}, {"parts": ""}, {"stage": ""}, {"state": ""}, {"filter": ""}, {"filter": "cause IN ()"}, {"state": "failed", "cause": []},
                {"cause": ["oom", ""]}, {"parts": "2,"}):
        s, b, _ = a.post("/v1/campaigns/c-1:retry", {} if sel is None else {"selector": sel})
        t.ok(s == 422, f"the selector {json.dumps(sel)}: 422, never all", (s, b))
    t.eq(a.sql("SELECT count(*) FROM operation"), before, "and nothing was asked for")
    same = [a.post("/v1/campaigns/c-1:retry?dry_run=true", {"selector": sel})[1]["parts"] for sel in
            ({"cause": "oom,oom"}, {"cause": ["oom"]}, {"filter": "state=failed AND cause IN (oom, disk_full)", "parts": "2, 11"}, {"parts": [2, 11], "state": "failed"})]
    t.eq(same, [2, 2, 2, 2], "lists as text, as arrays and in a filter mean the same")
    key = {"Idempotency-Key": "again"}
    s1, b1, _ = a.post("/v1/campaigns/c-1:retry", {"selector": {"parts": [2]}}, key)
    s2, b2, _ = a.post("/v1/campaigns/c-1:retry", {"selector": {"parts": [2]}}, key)
    t.ok(s1 == s2 == 202 and b1 == b2 and b1["parts"] == 1, "a keyed retry is answered once")
    t.ok(b1["undoable"] and b1["undo"] is None and not any(o["undoable"] for o in a.get("/v1/operations")[1]["operations"] if o["parts"] == 0), "what goes on can be undone, what moved nothing cannot")


def check_retry_preview(t, a):
    """What a retry adds: end and cost, also of a campaign that has ended, and the warm pools that it would not use."""
    cid = a.submit(spec("previewed", "{from: api}", "    expect: {duration: 30m}"))[1]["id"]
    n = cid[2:]
    assert a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", "".join('{"uri":"s3://a/%d","size":1}\n' % i for i in range(8)))[0] == 201
    leader_takes(a, int(n))
    leader_fails(a, int(n), (1, 2, 3, 4), 7)
    ask = lambda parts="1-3", **changes: a.post(f"/v1/campaigns/{cid}:retry?dry_run=true", {"selector": {"parts": parts}, "changes": changes})[1]  # noqa: E731
    b = ask()
    f = b["forecast"]
    price = 204000 * 30 // 60
    t.ok(f["known"] and f["reason"] is None and f["end"]["p50_seconds"] > f["now"]["p50_seconds"] > 1500 and abs(f["added_micro_usd"] - 3 * price) < price, "a preview says the new end and what is added", b)
    t.ok(ask("1")["forecast"]["added_micro_usd"] < f["added_micro_usd"], "for as many parts as are meant")
    t.ok(ask("0-2999")["parts"] == 4, "thousands of parts may be named")
    t.ok(ask("7")["forecast"] is None and b["pools_lost"] == 0, "and nothing when none is")
    a.sql(f"""INSERT INTO pool (attempt_id, campaign_id, stage_id, state, fingerprint, instance_type, instances, keep_alive_s)
        SELECT id, campaign_id, stage_id, 'available', 1, instance_type, 1, 600 FROM attempt WHERE campaign_id = {n} ORDER BY id LIMIT 2;
        UPDATE attempt SET volume_gb = 100 WHERE campaign_id = {n}""")
    t.eq([ask(**c)["pools_lost"] for c in ({}, {"volume_gb": 100}, {"volume_gb": 120}, {"instance_type": "ml.c5.xlarge"})], [0, 0, 2, 0], "idle warm pools that another volume does not match are told")
    a.sql(f"""DELETE FROM pool WHERE campaign_id = {n}; UPDATE campaign_run SET state = 'failed', ended_at = clock_timestamp() WHERE campaign_id = {n};
        UPDATE stage_run SET state = 'failed', waiting = 0, done = 4 WHERE campaign_id = {n}; UPDATE task_run SET state = 3 WHERE campaign_id = {n} AND state = 0""")
    f = ask("1-4")["forecast"]
    t.ok(f["known"] and f["now"] is None and f["end"]["p50_seconds"] > 1500 and abs(f["added_micro_usd"] - 4 * price) < 2 * price, "so does one of a campaign that has ended", f)
    a.sql("DELETE FROM price WHERE instance_type = 'ml.c5.xlarge'")
    t.ok(ask("1-2")["forecast"]["added_micro_usd"] is None, "without a price it does not guess what it adds")


def check_undo(t, a):
    """Who may, once, and what is refused with what can be done instead; tests/integration/controller/undo.py has the rest."""
    cancel = lambda op, **kw: a.post(f"/v1/operations/{op}:cancel", {}, **kw)[:2]  # noqa: E731
    ops = {row.split("|")[0]: "op-" + row.split("|")[1] for row in a.sql("""INSERT INTO operation (campaign_id, kind, selector, state, total, done, ended_at) VALUES
        (1, 'retry', '{}', 'running', 9, 4, NULL), (1, 'retry', '{}', 'done', 4, 4, now()), (1, 'skip', '{}', 'done', 4, 4, now()), (1, 'archive', '{}', 'running', 4, 1, NULL)
        RETURNING kind || '-' || state, id""").splitlines()}
    viewer = a.post("/v1/tokens", {"name": "looks", "role": "viewer"})[1]["token"]
    t.eq((cancel(ops["retry-running"], token=viewer)[0], cancel("op-999")[0], a.get(f"/v1/operations/{ops['retry-running']}:cancel")[0]), (403, 404, 405), "an undo is an operator's; of none: 404; with GET: 405")
    got = [None, None]

    def ask(i):
        got[i] = cancel(ops["retry-running"])
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(2)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    (s1, b1), (s2, b2) = sorted(got, key=lambda g: g[0])
    t.ok((s1, s2) == (202, 409) and b1["undo"]["undone"] == 0 and b1["undo"]["ended_at"] is None and not b1["undoable"], "twice at once: one undo, and 409", got)
    t.ok(f"is being undone already; drover ops {ops['retry-running']} shows how far" in b2["detail"], "which says what shows it", b2)
    for name, words in (("retry-done", "no part of it waits to start; drover pause c-1"), ("skip-done", "submit these parts of c-1 again"), ("archive-running", "is not undone; drover ops")):
        s, b = cancel(ops[name])
        t.ok(s == 409 and words in b["detail"], f"{name}: 409 with what can be done", (s, b))
    a.sql(f"""INSERT INTO task_retried SELECT id, campaign_id, stage_id, {ops['retry-done'][3:]}, names, 1, NULL, 7, 's', 'm', 0, now(), false, 0, 0, 0, '{{}}', 0, 0
        FROM task_run WHERE campaign_id = 1 AND seq = 3""")
    t.ok(a.get("/v1/operations/" + ops["retry-done"])[1]["undoable"], "one of which a part waits can be undone")
    t.eq(cancel(ops["retry-done"])[0], 202, "and is")
    t.eq(a.sql("SELECT count(*), min(subject) FROM audit WHERE action = 'operation.cancel'"), f"2|{min(ops['retry-running'], ops['retry-done'])}", "each undo is in the audit, what was refused is not")
    t.eq([r["campaign"] for r in a.get("/v1/audit?campaign=c-1&action=operation")[1]["audit"]], ["c-1", "c-1"], "of its campaign")
    a.sql("DELETE FROM operation WHERE id >= " + ops["retry-running"][3:] + "; DELETE FROM task_retried")


WISHES = {"CANCELLING": "cancel", "CANCELLED": "cancel", "PAUSED": "pause", "DRAINING": "drain"}
WHOLE = {"PAUSE": "pause", "DRAIN": "drain", "CANCEL": "cancel", "RESUME": "run"}


def written(verb, campaign, stage, carried, was):
    """What a verb leaves in (wanted, version, resumes, operations, archives, audit rows): of a refused one nothing. The leader moves the parts."""
    if not carried:
        return was
    wanted, version, resumes, operations, archives, audit = was
    if verb in WHOLE:
        told = int(wanted != WHOLE[verb] or (verb == "RESUME" and campaign == "HELD"))
        again = int(verb == "RESUME" and stage == "held")
        return [WHOLE[verb], str(int(version) + told + again), str(int(resumes) + again), operations, archives, str(int(audit) + told)]
    if verb == "ARCHIVE" and campaign == "ARCHIVED":
        return was
    return [wanted, version, resumes, verb.lower(), "1" if verb == "ARCHIVE" else archives, str(int(audit) + 1)]


def check_verbs(t, a):
    """Every cell of operation_table.def over its route: the status, and what is written or, when refused, that nothing is. A stage is named where
    the verb acts on parts. A second stage has succeeded; of a GATED campaign its gate holds it, and those of the first one if that is held."""
    stages = ("blocked", "running", "held", "succeeded", "failed", "skipped", "cancelled")
    with open(TOP + "/orchestrator/core/leader/operation_table.def", encoding="utf-8") as f:
        rows = [m.group(1).split(", ") for m in re.finditer(r"^X\((.*)\)$", f.read(), re.M)]
    s, b, _ = a.submit(spec("verbs", "{from: api}"))
    cid, wrong, cells, refused = b["id"], [], 0, 0
    n = cid[2:]
    stage = a.sql(f"SELECT name FROM stage WHERE campaign_id = {n} ORDER BY seq LIMIT 1")
    a.sql(f"""INSERT INTO stage (campaign_id, seq, name) VALUES ({n}, 1, 'gate');
        INSERT INTO stage_input (stage_id, campaign_id, tasks, closed) SELECT id, {n}, 0, true FROM stage WHERE campaign_id = {n} AND seq = 1 ON CONFLICT DO NOTHING;
        INSERT INTO stage_run (stage_id, campaign_id, state) SELECT id, {n}, 'succeeded' FROM stage WHERE campaign_id = {n} AND seq = 1 ON CONFLICT DO NOTHING;
        UPDATE stage_input SET closed = true WHERE stage_id = (SELECT id FROM stage WHERE campaign_id = {n} AND seq = 1)""")
    read = f"""SELECT concat_ws('|', c.wanted, c.version, (SELECT sum(resumes) FROM stage WHERE campaign_id = c.id),
        (SELECT coalesce(string_agg(kind, ','), '') FROM operation WHERE campaign_id = c.id), (SELECT count(*) FROM archive WHERE campaign_id = c.id), (SELECT count(*) FROM audit))
        FROM campaign c WHERE id = {n}"""
    for verb, campaign, *answers in rows:
        state = {"CANCELLING": "running", "ARCHIVED": "succeeded", "GATED": "held"}.get(campaign, campaign.lower())
        gate = ("held", "gate: loss is 4") if campaign == "GATED" else ("succeeded", "")
        for k, answer in enumerate(answers):
            reason = gate[1] if stages[k] == "held" else ""
            was = a.sql(f"""UPDATE campaign SET wanted = '{WISHES.get(campaign, "run")}' WHERE id = {n}; UPDATE campaign_run SET state = '{state}' WHERE campaign_id = {n};
                UPDATE stage_run r SET state = CASE seq WHEN 0 THEN '{stages[k]}' ELSE '{gate[0]}' END, reason = CASE seq WHEN 0 THEN '{reason}' ELSE '{gate[1]}' END FROM stage g
                WHERE g.id = r.stage_id AND r.campaign_id = {n}; DELETE FROM operation WHERE campaign_id = {n}; DELETE FROM archive; """
                        + (f"INSERT INTO archive (campaign_id) VALUES ({n}); INSERT INTO operation (campaign_id, kind, selector) VALUES ({n}, 'archive', '{{}}'); "
                           if campaign == "ARCHIVED" else "") + read).split("|")
            s, b, _ = a.post(f"/v1/campaigns/{cid}:{verb.lower()}", {"selector": {"stage": stage}} if verb in ("RETRY", "SKIP", "HOLD", "RELEASE") else None)
            carried = answer in ("CARRIED_OUT", "REOPENS", "GOES_ON")
            cells, refused = cells + 1, refused + (not carried)
            now, want = a.sql(read).split("|"), written(verb, campaign, stages[k], carried, was)
            if s != (202 if carried else 410 if campaign == "ARCHIVED" else 409) or (not carried and len(b["detail"]) < 20) or now != want:
                wrong.append((verb, campaign, stages[k], answer, s, b["detail"] if s > 299 else "", was, now, want))
    t.ok(len(rows) == 99 and cells == 693 and 300 < refused < 400 and not wrong,
         f"{cells} cells of the table of verbs: 202 with what it says written, or 409 or 410 with the reason and nothing written ({refused})", (len(rows), cells, len(wrong), wrong[:6]))
    a.sql(f"DELETE FROM stage_run WHERE stage_id IN (SELECT id FROM stage WHERE campaign_id = {n} AND seq = 1)")
    a.sql(f"UPDATE campaign SET wanted = 'cancel' WHERE id = {cid[2:]}; UPDATE campaign_run SET state = 'failed' WHERE campaign_id = {cid[2:]}; DELETE FROM archive; "
          f"UPDATE stage_run SET state = 'failed' WHERE campaign_id = {cid[2:]}")
    before = a.get(f"/v1/campaigns/{cid}")[1]["version"]
    s, b, _ = a.post(f"/v1/campaigns/{cid}:retry", {"selector": {"stage": stage}})
    now = a.get(f"/v1/campaigns/{cid}")[1]
    t.ok(s == 202 and now["wanted"] == "run" and now["version"] == before + 1, "a retry takes a cancel back that came when the campaign had just failed", (s, b, now["wanted"]))
    a.sql(f"DELETE FROM archive; DELETE FROM operation WHERE kind = 'archive'; UPDATE campaign_run SET state = 'cancelled' WHERE campaign_id = {cid[2:]}")


def check_stage_budget(t, a):
    """What a stage and each of its parts may cost: what one request leaves out stays, null takes it off."""
    change = lambda budget, stage="download", **more: a.call("PATCH", "/v1/campaigns/c-1", {"stages": {stage: {"budget": budget, **more}}}, {"If-Match": "*"})  # noqa: E731
    of = lambda b: [b["stages"][0]["budget"][k] for k in ("limit_micro_usd", "per_task_micro_usd")]  # noqa: E731
    parts = a.get("/v1/campaigns/c-1")[1]["stages"][0]["limits"]["parts"]
    s, b, h = change({"total": "12.50 USD"})
    t.eq((s, of(b), b["stages"][0]["limits"]["parts"], b["budget"]["limit_micro_usd"]), (200, [12500000, None], parts, 900000000), "a stage gets a budget, and neither its parts nor its campaign another")
    t.eq(of(change({"per_task": "0.4"})[1]), [12500000, 400000], "each of its parts one, and its own stays")
    s, b, _ = change({"total": "13", "per_task": "0.5"}, parts=3)
    t.eq((of(b), b["stages"][0]["limits"]["parts"]), ([13000000, 500000], 3), "both, and its parts, at once")
    row = a.get("/v1/audit?action=campaign.change")[1]["audit"][0]
    t.eq([row["before"], row["detail"]], [{"stages": {"download": {"parts": parts, "budget": {"limit_micro_usd": 12500000, "per_task_micro_usd": 400000}}}},
                                          {"stages": {"download": {"budget": {"total": "13", "per_task": "0.5"}, "parts": 3}}}], "the audit has before and after, of that stage alone")
    t.eq(a.call("PATCH", "/v1/campaigns/c-1", {"stages": {"download": {"budget": {"total": "1"}}}}, {"If-Match": h["etag"]})[0], 412, "with an old tag: 412")
    t.eq(change({"total": "1"}, "upload")[0], 404, "of a stage that is not there: 404")
    for budget in ({}, {"total": "x"}, {"total": 5}, {"total": "-1"}, {"each": "1"}, None, "12 USD"):
        t.eq(change(budget)[0] in (400, 422), True, f"PATCH of a stage's budget {budget} is refused")
    t.eq(a.sql("SELECT at_limit || ' ' || coalesce(array_to_string(warn_at_ppm, ','), '') FROM cap WHERE level = 'stage'"),
         a.sql("SELECT at_limit || ' ' || coalesce(array_to_string(warn_at_ppm, ','), '') FROM cap WHERE level = 'campaign' AND ref_id = 1"), "its cap warns as that of its campaign")
    t.eq(of(change({"total": None, "per_task": None}, parts=parts)[1]), [None, None], "and they can be taken off")


def check_wishes(t, a):
    for verb, wanted in (("pause", "pause"), ("drain", "drain"), ("resume", "run")):
        before = a.get("/v1/campaigns/c-1")[1]["version"]
        s, b, _ = a.post(f"/v1/campaigns/c-1:{verb}")
        t.ok(s == 202 and b["wanted"] == wanted and b["version"] == before + 1, f":{verb}", b)
    t.eq(a.post("/v1/campaigns/c-1:resume")[1]["version"], a.get("/v1/campaigns/c-1")[1]["version"], "asking again changes nothing")
    s, b, h = a.get("/v1/campaigns/c-1")
    t.eq(a.call("PATCH", "/v1/campaigns/c-1", {"priority": 70})[0], 428, "PATCH without If-Match: 428")
    t.eq(a.call("PATCH", "/v1/campaigns/c-1", {"priority": 70}, {"If-Match": '"999"'})[0], 412, "with an old one: 412")
    s, b, _ = a.call("PATCH", "/v1/campaigns/c-1", {"priority": 70, "limits": {"parts": 5}, "budget": {"total": "900 USD", "at_limit": "hold"}}, {"If-Match": h["etag"]})
    t.ok(s == 200 and b["priority"] == 70 and b["limits"]["parts"] == 5 and b["budget"]["limit_micro_usd"] == 900000000 and b["budget"]["at_limit"] == "hold", "limits change", b)
    t.eq(a.call("PATCH", "/v1/campaigns/c-1", {"priority": 71}, {"If-Match": h["etag"]})[0], 412, "the tag of before is stale now")
    s, b, _ = a.call("PATCH", "/v1/campaigns/c-1", {"limits": {"parts": None}}, {"If-Match": "*"})
    t.ok(s == 200 and b["limits"]["parts"] is None and b["budget"]["limit_micro_usd"] == 900000000, "a limit can be taken off", b)
    check_stage_budget(t, a)
    late = lambda: [g for g in a.get("/v1/campaigns/c-1")[1]["guidance"] if g["kind"] == "late"]  # noqa: E731
    row = lambda: next(c for c in a.get("/v1/campaigns?page_size=1000")[1]["campaigns"] if c["id"] == "c-1")  # noqa: E731
    s, b, _ = a.call("PATCH", "/v1/campaigns/c-1", {"deadline": "2099-12-01T18:00:00Z"}, {"If-Match": "*"})
    t.ok(s == 200 and b["deadline"] == row()["deadline"] == "2099-12-01T18:00:00+00:00" and not late(), "a deadline can be set", b)
    s, b, _ = a.call("PATCH", "/v1/campaigns/c-1", {"deadline": "2020-12-01T18:00:00Z"}, {"If-Match": "*"})
    t.ok(late()[0]["title"] == "late: its deadline was 2020-12-01T18:00:00Z" and row()["guidance"][-1]["kind"] == "late" and late()[0]["steps"][0]["command"] == "drover deadline c-1", "one that has passed is told as late, in lists too", late())
    b = a.get("/v1/audit?action=campaign.change")[1]["audit"][0]
    t.eq([b["before"], b["detail"]], [{"deadline": "2099-12-01T18:00:00+00:00"}, {"deadline": "2020-12-01T18:00:00Z"}], "the audit has both")
    s, b, _ = a.call("PATCH", "/v1/campaigns/c-1", {"priority": 70}, {"If-Match": "*"})
    t.ok(b["deadline"] is not None and a.call("PATCH", "/v1/campaigns/c-1", {"deadline": None}, {"If-Match": "*"})[1]["deadline"] is None and not late(), "it stays when something else changes, and can be taken off", b)
    for body in ({"deadline": "tomorrow"}, {"deadline": "2099-12-01T18:00:00+01:00"}, {"deadline": "2099-13-01T18:00:00Z"}, {"deadline": ""}, {"deadline": 7}, {"priority": 101}, {"priority": "1"}, {"limits": {"parts": -1}}, {"limits": {"x": 1}}, {"budget": {"total": "x"}}, {"budget": {"at_limit": "x"}}, {"name": "x"},
                 {"budget": {"total": "1 USD", "limit_micro_usd": 1}}):
        t.eq(a.call("PATCH", "/v1/campaigns/c-1", body, {"If-Match": "*"})[0] in (400, 422), True, f"PATCH {json.dumps(body)} is refused")
    t.eq(a.post("/v1/campaigns/c-1:cancel")[1]["wanted"], "cancel", ":cancel")
    t.eq(a.post("/v1/campaigns/c-1:resume")[0], 409, "a cancelled one is not resumed")
    t.eq(a.post("/v1/campaigns/c-1:retry", {"selector": {"state": "failed"}})[0], 409, "nor retried")
    t.eq(a.post("/v1/campaigns/c-1:cancel")[0], 202, "but cancelled again")
    page, ids, token = None, [], ""
    while True:
        page = a.get(f"/v1/campaigns?page_size=2{token}")[1]
        ids += [c["id"] for c in page["campaigns"]]
        if not page["next_page_token"]:
            break
        token = "&page_token=" + page["next_page_token"]
    t.ok(ids == sorted(ids, key=lambda i: -int(i[2:])) and len(ids) == int(a.sql("SELECT count(*) FROM campaign")), "campaigns page newest first, each once", ids)
    t.eq([c["id"] for c in a.get("/v1/campaigns?state=running")[1]["campaigns"]], ["c-1"], "?state=running")
    s, b, _ = a.get("/v1/quotas")
    q = next(x for x in b["quotas"] if x["instance_type"] == "ml.c5.xlarge")
    t.ok(q["limit"] == 4 and q["free"] == 4 and q["price_micro_usd_per_hour"] == 204000, "quotas", q)


def check_guidance(t, a):
    """What is held, stuck or cannot run says so, since when, and what mends it; what runs says nothing."""
    cid = a.submit(spec("guided", "{from: api}", top="budget: 10 USD"))[1]["id"]
    n = cid[2:]
    assert a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", '{"uri":"s3://a/0","size":1}\n{"uri":"s3://a/1","size":1}')[0] == 201
    leader_takes(a, int(n))
    first = a.get(f"/v1/campaigns/{cid}")[1]["guidance"]
    t.eq(first, [], "a campaign that may run has no guidance")

    def after(text, state="running", reason=""):
        a.sql(f"UPDATE campaign_run SET state = '{state}', reason = '{reason}' WHERE campaign_id = {n}; {text}")
        one = a.get(f"/v1/campaigns/{cid}")[1]["guidance"]
        listed = next(c for c in a.get("/v1/campaigns")[1]["campaigns"] if c["id"] == cid)["guidance"]
        t.eq(listed, one, f"{state} {reason[:20]}: the list says the same")
        return one

    def wait(reason):
        return f"UPDATE stage_run SET wait_reason = '{reason}' WHERE campaign_id = {n};"
    g = after("UPDATE quota SET limit_n = 0 WHERE instance_type = 'ml.c5.xlarge';" + wait("quota_too_small"))[0]
    t.ok(g["title"] == "waits: quota 0 for ml.c5.xlarge (0 held by drover, 0 by others)" and not g["runs"] and g["since"].endswith("Z")
         and g["steps"][0]["action"] == "quota" and g["steps"][0]["url"].startswith("https://"), "quota 0: type, limit and use", g)
    g = after("DELETE FROM price;" + wait("price_unknown"))[0]
    t.ok("no price is known for ml.c5.xlarge" in g["title"], "no price: which type", g)
    g = after("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.xlarge', 204000, 'test');" + wait("budget"))[0]
    t.eq([s["command"] for s in g["steps"]], [f"drover budget {cid} USD"], "a cap that leaves too little: raise it")
    g = after(f"INSERT INTO cap (level, ref_id, limit_musd, per_task_musd) SELECT 'stage', id, 8000000, 400000 FROM stage WHERE campaign_id = {n};" + wait("stage_budget"))[0]
    t.ok("(0.00 USD spent, 0.00 reserved, budget 8.00 USD)" in g["title"] and g["stage"] == "download" and [(s["action"], s["command"], s["stage"]) for s in g["steps"]] == [("budget", f"drover budget {cid}/download USD", "download")], "a stage's own: raise that", g)
    g = after(wait("part_budget"))[0]
    t.ok("(each part at most 0.40 USD)" in g["title"] and [(s["action"], s["command"]) for s in g["steps"]] == [("part_budget", f"drover budget {cid}/download --per-task USD")], "or that of its parts", g)
    for reason, command in (("budget of stage download", "drover budget {}/download USD --resume"), ("budget per part of stage download", "drover budget {}/download --per-task USD --resume")):
        g = after("", "held", reason)
        t.ok([x["kind"] for x in g] == ["budget"] and g[0]["stage"] == "download" and g[0]["evidence"] and [s["command"] for s in g[0]["steps"]] == [command.format(cid), f"drover resume {cid}"], f"held: {reason}", g)
    g = after(f"UPDATE campaign SET parts_limit = 0 WHERE id = {n};" + wait("concurrency"))[0]
    t.ok("limits.parts of the campaign is 0" in g["title"] and g["steps"][0]["action"] == "limits", "a limit of parts: which", g)
    g = after(wait("paused"), "paused")
    t.ok(len(g) == 1 and g[0]["kind"] == "paused" and g[0]["steps"][0]["command"] == f"drover resume {cid}", "paused", g)
    g = after(f"INSERT INTO money (level, ref_id, spent_musd) VALUES ('campaign', {n}, 9800000);", "held", "budget")[0]
    t.ok(g["evidence"] == "9.80 USD spent, 0.00 reserved, budget 10.00 USD" and [s["action"] for s in g["steps"]] == ["budget", "resume"], "held by its budget", g)
    leader_fails(a, int(n), [1], 13, "exit 1")
    g = after(f"UPDATE stage_run SET state = 'held', reason = '{'x' * 500}' WHERE campaign_id = {n};", "held", "stage download: x")[0]
    t.ok(g["evidence"] == "x" * 500 and g["stage"] == "download" and g["steps"][0] == {"action": "retry", "label": "Retry 1 and resume",
         "command": f"drover retry {cid} --stage download --resume", "stage": "download", "parts": 1}, "held by its breaker: the whole reason, and a retry of what failed", g)
    g = after(f"INSERT INTO parked (kind, ref_id, campaign_id, reason, since) VALUES ('campaign', {n}, {n}, 'refused <b>', '2026-01-02T03:04:05+01');", "held", "stage download: x")
    t.ok([x["kind"] for x in g] == ["breaker", "parked"] and g[1]["evidence"] == "refused <b>" and g[1]["runs"], "what is parked comes last", g)
    rows = [a.get(f"/v1/parked{q}")[1]["parked"] for q in (f"?campaign={cid}", "")]
    t.eq([(x["kind"], x["id"], x["reason"], x["since"], cid in x["what_to_do"]) for r in rows for x in r], [("campaign", cid, "refused <b>", "2026-01-02T02:04:05+00:00", True)] * 2, "listed with since when, of it and of all")
    t.eq(g[1]["since"], "2026-01-02T02:04:05Z", "as the guidance says")
    g = after(f"INSERT INTO parked (kind, ref_id, campaign_id, reason) SELECT 'part', i, {n}, 'x' FROM generate_series(1, 2) i;", "held", "stage download: x")
    t.eq(g[1]["title"], "1 campaign, 2 parts set aside: the database refuses a value", "and says what it is")
    g = after(f"DELETE FROM parked WHERE campaign_id = {n}; UPDATE stage_run SET state = 'running', waiting = waiting - 1, active = active + 1 WHERE campaign_id = {n};" + wait("slots"))
    t.eq(g, [], "while a part runs there is none")
    t.eq(after("", "failed"), [], "nor once it has ended")
    a.sql("UPDATE quota SET limit_n = 4 WHERE instance_type = 'ml.c5.xlarge'")
    before = a.get(f"/v1/campaigns/{cid}")[2]["etag"]
    key = {"If-Match": before, "Idempotency-Key": "patch-1"}
    s1, b1, _ = a.call("PATCH", f"/v1/campaigns/{cid}", {"priority": 61}, key)
    s2, b2, h2 = a.call("PATCH", f"/v1/campaigns/{cid}", {"priority": 61}, key)
    t.ok(s1 == s2 == 200 and b1 == b2 and h2["idempotent-replayed"] == "true", "a PATCH repeated with its key is answered again, though its version is over", (s2, b2))
    t.eq(a.call("PATCH", f"/v1/campaigns/{cid}", {"priority": 62}, key)[0], 422, "with another body: 422")
    s, b, _ = a.post(f"/v1/campaigns/{cid}:skip?dry_run=true", {"selector": {"parts": "0-1"}})
    t.ok(s == 200 and b["sample"] == [1], ":skip previews failed parts, with ranges", (s, b))
    t.eq(a.post(f"/v1/campaigns/{cid}:skip", {"selector": {"parts": "0-1"}, "changes": {"volume_gb": 9}})[0] in (400, 422), True, "a skip changes nothing of them")
    s, b, _ = a.post(f"/v1/campaigns/{cid}:skip", {"selector": {"parts": "0-1"}})
    t.ok(s == 202 and b["kind"] == "skip" and b["parts"] == 1 and b["selector"]["parts"] == [0, 1], "and becomes an operation", (s, b))
    t.eq(a.sql(f"SELECT count(*) FROM audit WHERE action = 'campaign.skip' AND subject = '{cid}'"), "1", "which the audit names")
    for bad in ("5-3", "0-10000", "1-x", "x-1", "1--2"):
        t.eq(a.post(f"/v1/campaigns/{cid}:skip", {"selector": {"parts": bad}})[0] in (400, 413, 422), True, f"parts {bad} is refused")


def check_holds(t, a):
    """What waits can be held and what is held released; the leader's part is shown by the suite undo."""
    cid = a.submit(spec("held", "{from: api}"))[1]["id"]
    assert a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", "".join('{"uri":"s3://a/%d","size":1}\n' % i for i in range(5)))[0] == 201
    leader_takes(a, int(cid[2:]))
    a.sql(f"UPDATE campaign_run SET state = 'running' WHERE campaign_id = {cid[2:]}")
    hold = lambda selector, verb="hold", dry="?dry_run=true": a.post(f"/v1/campaigns/{cid}:{verb}{dry}", {"selector": selector})  # noqa: E731
    waiting = int(a.sql(f"SELECT sum(waiting) FROM stage_run WHERE campaign_id = {cid[2:]}"))
    s, b, _ = hold({"state": "waiting"})
    t.ok(s == 200 and waiting > 0 and (b["parts"], b["sample"]) == (waiting, []), ":hold previews all that wait, by the counters", (s, b, waiting))
    free = a.sql(f"SELECT string_agg(seq::text, ',' ORDER BY seq) FROM (SELECT r.seq FROM task_run r JOIN stage_run n USING (stage_id) WHERE n.campaign_id = {cid[2:]} AND r.state = 0 AND r.seq < n.taken ORDER BY 1 LIMIT 2) x")
    s, b, _ = hold({"parts": f"{free},9000"})
    t.ok(s == 200 and b["sample"] == [int(n) for n in free.split(",")], "and those of a list that wait, by their numbers", (s, b))
    t.eq(hold({"parts": free}, "release")[1]["parts"], 0, "of which none is held")
    for selector, verb, words in (({"state": "failed"}, "hold", "waiting"), ({"state": "waiting"}, "release", "held"), ({"cause": ["oom"]}, "hold", "cause"), ({}, "hold", "selector"),
                                  ({"stage": "nope"}, "release", "nope"), ({"parts": "5-3"}, "hold", "parts")):
        s, b, _ = hold(selector, verb)
        t.ok(s in (400, 404, 422) and words in json.dumps(b), f":{verb} of {selector} is refused and says why", (s, b))
    s, b, _ = hold({"parts": free}, dry="")
    t.ok(s == 202 and b["kind"] == "hold" and b["parts"] == 2 and b["selector"] == {"parts": [int(n) for n in free.split(",")]}, "a hold becomes an operation", (s, b))
    t.eq(a.sql(f"SELECT count(*) FROM audit WHERE action = 'campaign.hold' AND subject = '{cid}'"), "1", "which the audit names")
    a.sql(f"UPDATE stage_run SET waiting = waiting - 1, held = held + 1 WHERE campaign_id = {cid[2:]}")
    b = a.get(f"/v1/campaigns/{cid}")[1]["guidance"]
    t.ok([g["steps"][0]["command"] for g in b if g["kind"] == "parts_held"] == [f"drover release {cid}"], "what is held is told with the campaign", b)
    a.sql(f"UPDATE stage_run SET waiting = waiting + 1, held = held - 1 WHERE campaign_id = {cid[2:]}")


def check_hostile(t, a):
    """Strings in every field come back unchanged as JSON or are refused with a problem; never a 5xx, never
    markup.
    """
    corpus = ["<img src=x onerror=alert(1)>", "'; DROP TABLE campaign; --", "\u202eevil", "a\u0000b", "{part}", "{{", "%s%n", "../../etc/passwd", "\U0001f600", "x" * 300, "\\\"", "\x1b[31m", "", " "]
    bad = []
    for text in corpus:
        for field in ("name", "stage", "project", "type", "uri"):
            o = {"version": 1, "name": "ok", "stages": [{"name": "d", "worker": "download", "fan_out": {"from": "api"}, "instance_type": "ml.c5.xlarge",
                 "max_runtime": "1h", "hyperparameters": {"url_list": "{uri}", "output_folder": "s3://data/o/{part:05d}/"}}]}
            if field in ("name", "project"):
                o[field] = text
            elif field == "stage":
                o["stages"][0]["name"] = text
            elif field == "type":
                o["stages"][0]["instance_type"] = text
            status, b, h = a.post("/v1/campaigns", o)
            if status not in (201, 400, 422) or not h["content-type"].startswith("application/"):
                bad.append((field, text, status, b))
            if status == 201 and field == "name" and a.get(f"/v1/campaigns/{b['id']}")[1]["name"] != text:
                bad.append((field, text, "came back changed"))
            if field == "uri":
                cid = b["id"]
                status, b, h = a.call("POST", f"/v1/campaigns/{cid}/parts", json.dumps({"uri": text, "vars": {"k": text}}))
                if status == 201 and a.get(f"/v1/campaigns/{cid}/parts")[1]["parts"][0]["uri"] != text or status not in (201, 422):
                    bad.append((field, text, status, b))
    t.ok(not bad, f"{len(corpus)} hostile strings through five fields", bad)


class Seen(HTMLParser):
    """The tags and attributes of a page, the text of each cell."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.cells, self.links, self.within = set(), [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags |= {tag} | {f"{tag}.{k}" for k, _ in attrs}
        self.links += [v for k, v in attrs if k == "href"]
        if tag == "td":
            self.cells.append("")
            self.within = True

    def handle_endtag(self, tag):
        self.within = self.within and tag != "td"

    def handle_data(self, data):
        if self.within:
            self.cells[-1] += data


PLAIN = {"html", "html.lang", "head", "meta", "meta.charset", "meta.name", "meta.content", "title", "body", "main", "h1", "h2", "p", "pre", "a", "a.href", "table", "thead", "tbody", "tr", "th", "td"}


def check_plain(t, a):
    """/plain and /plain/c/c-7: pages without script, for whoever may see the campaigns."""
    bad = "</title><script>alert(1)</script>\"&amp;\x1b"
    s, b, _ = a.post("/v1/campaigns", {"version": 1, "name": "plain", "stages": [{"name": "d", "worker": "download", "fan_out": {"from": "api"}, "instance_type": "ml.c5.xlarge",
                     "max_runtime": "1h", "hyperparameters": {"url_list": "{uri}", "output_folder": "s3://data/o/{part:05d}/"}}], "budget": {"total": "900 USD"}})
    assert s == 201, b
    cid, n = b["id"], b["id"][2:]
    a.sql(f"UPDATE campaign SET name = '{bad}' WHERE id = {n}")  # the API takes no such name
    a.sql(f"UPDATE campaign_run SET state = 'held', reason = '<b>budget</b>' WHERE campaign_id = {n}; UPDATE stage_run SET state = 'held', reason = '<i>x</i>' WHERE campaign_id = {n};"
          f"INSERT INTO money (level, ref_id, spent_musd) VALUES ('campaign', {n}, 12345678) ON CONFLICT (level, ref_id) DO UPDATE SET spent_musd = 12345678")
    want = a.get(f"/v1/campaigns/{cid}")[1]
    shown = bad.replace("\x1b", " ")
    s, text, h = a.raw("GET", "/plain")
    page = Seen(text.decode())
    t.ok(s == 200 and h["content-type"] == "text/html; charset=utf-8" and h["cache-control"] == "no-store" and "script-src 'self'" in h["content-security-policy"], "/plain is a page, and is not kept", (s, h))
    row = page.cells[:7]
    t.eq((row[0], row[1], row[3], row[5], row[6]), (cid, shown, "held", "0 % (0 of 0)", "12.35 of 900.00 USD"), "with state, progress and cost of each campaign")
    t.ok(row[4] == (want["waits_for"] or "<b>budget</b>"), "and why", row)
    t.eq(page.tags - PLAIN, set(), "nothing in it but text, tables and links: what people wrote is escaped")
    t.ok(f"/plain/c/{cid}" in page.links and any(x.startswith("/plain?page_token=") for x in Seen(a.raw("GET", "/plain?page_size=1")[1].decode()).links), "links to each campaign, and to older ones", page.links)
    older = next(x for x in Seen(a.raw("GET", "/plain?page_size=1")[1].decode()).links if "page_token" in x)
    t.ok(Seen(a.raw("GET", older + "&page_size=1")[1].decode()).cells[0] not in ("", cid), "which lead on")
    s, text, h = a.raw("GET", f"/plain/c/{cid}")
    page = Seen(text.decode())
    t.ok(s == 200 and page.tags <= PLAIN and shown in text.decode().replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&#39;", "'").replace("&amp;", "&"), "a campaign has a page of its own", (s, page.tags - PLAIN))
    t.ok({"d", "<i>x</i>", "12.35 of 900.00 USD"} <= {c.strip() for c in page.cells} and "/plain" in page.links, "with its stages", page.cells)
    viewer = a.post("/v1/tokens", {"name": "plain", "role": "viewer"})[1]["token"]
    cookie = {"Cookie": a.post("/v1/login", {"token": viewer}, token=False)[2]["set-cookie"].split(";")[0]}
    t.eq([a.raw("GET", p, token=False, headers=k)[0] for p in ("/plain", f"/plain/c/{cid}") for k in ({}, cookie)], [401, 200, 401, 200], "for who has a token or a session, as everywhere")
    other = a.post("/v1/tokens", {"name": "else", "role": "viewer", "projects": ["plain-other"]})[1]["token"]
    t.ok(a.raw("GET", f"/plain/c/{cid}", token=other)[0] == 404 and cid not in a.raw("GET", "/plain", token=other)[1].decode(), "and of the projects that the token counts in")
    s, b, h = a.call("POST", "/plain", {})
    t.eq((s, h["allow"], a.raw("HEAD", "/plain")[0]), (405, "GET, HEAD, OPTIONS", 200), "another method: 405 with those it takes")
    t.eq([a.raw("GET", p)[0] for p in ("/plain/c/c-999999", "/plain/c/7x", "/plain/x", "/plain?page_token=x")], [404, 404, 404, 400], "what is not there: 404, as everywhere")
    a.sql(f"UPDATE campaign_run SET state = 'cancelled', ended_at = clock_timestamp() WHERE campaign_id = {n}")


def check_house(t, a):
    s, b, _ = a.get("/openapi.json")
    paths = {(m.upper(), p) for p, o in b["paths"].items() for m in o}
    t.ok(b["openapi"] == "3.1.0" and len(paths) == len([p for _, p, _ in routes() if not p.startswith("/login/")]), "openapi.json names every route but the pages of logins", len(paths))
    s, text, h = a.raw("GET", "/metrics")
    t.ok(s == 200 and b"# TYPE droverd_http_requests_total counter" in text and h["content-type"].startswith("text/plain; version=0.0.4"), "metrics")
    t.eq(a.raw("GET", "/problems/key_reused", token=False)[0], 200, "problem types are pages")
    s, text, h = a.raw("GET", "/c/1", token=False)
    t.ok(s == 200 and h["content-type"].startswith("text/html") and b"<div id=\"app\">" in text, "a page of the dashboard")
    t.eq(a.raw("GET", "/c/1", headers={"If-None-Match": h["etag"]}, token=False)[0], 304, "with an ETag")
    wrong = [p for p in ("/x", "/c", "/c/", "/c/x", "/c/1/part", "/c/1/", "/c//parts", "/c/1/parts/", "/c/1/scaling/x", "/c/1/compares", "/endpoints/", "/endpoints/a/b", "/endpoints/a.b", "/endpointsa", "/endpoint", "/c/c-", "/c/-1", "/index", "/v2/campaigns", "/campaigns", "/c/c-1:pause") if a.raw("GET", p, token=False)[0] != 404]
    t.eq(wrong, [], "a path that is no page: 404")
    t.eq([a.raw("GET", p, token=False)[0] for p in ("/c/7", "/c/c-7", "/c/7/parts", "/c/7/scaling", "/c/7/compare", "/endpoints", "/endpoints/t-1-serve-0-a1", "/")], [200] * 8, "the pages there are")
    wrong = [p for p in ("/%00", "/v1/campaigns%00", "/v1/campaigns/c-1%00x", "/c/1%00", "/livez%00", "/%ff%fe", "/v1/campaigns?state=running%00", "/v1/campaigns?state%00=running")
             if a.raw("GET", p)[0] != 400]
    t.eq(wrong, [], "a NUL, or bytes that are no UTF-8, in path or query: 400")
    s, text, h = a.raw("GET", "/", headers={"Accept-Encoding": "gzip"}, token=False)
    t.ok(h.get("content-encoding") == "gzip" and text[:2] == b"\x1f\x8b", "compressed when asked for")
    asset = re.search(rb'src="(/assets/[^"]+)"', a.raw("GET", "/")[1]).group(1).decode()
    t.ok("immutable" in a.raw("GET", asset)[2]["cache-control"], "hashed files are kept for good")
    s, _, h = a.raw("HEAD", "/v1/campaigns")
    t.ok(s == 200 and int(h["content-length"]) > 0, "HEAD has the length and no body")


def check_rate(t, pg):
    a = Api(pg, env={"API_RATE": "20"})
    got = [a.raw("GET", "/v1/quotas") for _ in range(120)]
    t.ok(40 <= sum(s == 200 for s, _, _ in got) < 120 and {s for s, _, _ in got} == {200, 429}, "a token over its rate hears 429", {s for s, _, _ in got})
    t.ok(all(h["retry-after"] and json.loads(b)["retryable"] for s, b, h in got if s == 429), "with Retry-After")
    t.eq(a.raw("GET", "/livez", token=False)[0], 200, "health is not counted")
    a.close()


def run(t, pg):
    check_rate(t, pg)
    a = Api(pg)
    check_submit(t, a)
    check_key_in_use(t, a)
    check_auth(t, a)
    check_browser(t, a)
    check_faults(t, a)
    check_limits(t, a)
    check_parts(t, a)
    check_orders(t, a)
    check_retry(t, a)
    check_undo(t, a)
    check_verbs(t, a)
    check_wishes(t, a)
    check_headers(t, a)
    check_guidance(t, a)
    check_holds(t, a)
    check_retry_preview(t, a)
    check_hostile(t, a)
    check_plain(t, a)
    check_live_name(t, a)
    check_request_id(t, a)
    check_encoding(t, a)
    check_lost(t, a)
    check_house(t, a)
    check_endpoints(t, a)
    check_runs(t, a)
    s5 = a.sql("SELECT 1") and a.raw("GET", "/metrics")[1].decode()
    n = int(re.search(r"droverd_http_server_errors_total (\d+)", s5).group(1))
    t.eq(n, 0, "not one answer was a 5xx")
    status, log = a.close()
    t.ok(status == 0, "the server ends cleanly", (status, log[-2000:]))


if __name__ == "__main__":
    main(run)
