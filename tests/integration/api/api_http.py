"""What every route shares, for api_rest.py: who may ask, headers, request ids, encodings, hostile paths, the pages for people without
JavaScript, rates.
"""
import json
import os
import re
import uuid
from html.parser import HTMLParser

from kit import TOP, wait_for
from kit.api import Api, filled


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
