"""Sessions, tokens, roles and the audit, for api_safe.py: random, hashed, revocable, by project, each change with who made it.
"""
import json
import re
import subprocess
import threading
import time

from api_room import drained, ends_within, open_socket, status, stream, token
from kit import TOP, patience, wait_for
from kit.api import Api, filled, spec


def login(a, tok):
    """Cookie and CSRF value of a new session."""
    s, b, h = a.post("/v1/login", {"token": tok}, token=False)
    return h["set-cookie"].split(";")[0], b["csrf"]


def sessions(t, pg):
    """A browser's session is the server's own: it ends by logout, by revoking it and with its token."""
    a = Api(pg)
    cookie, csrf = login(a, a.token)
    value = cookie.split("=", 1)[1]
    t.ok(re.fullmatch("[0-9a-f]{64}", value) and value not in a.sql("SELECT string_agg(s::text, ' ') FROM session s") and a.token.split(".")[1] not in cookie,
         "the cookie is a random value; the database has its hash", cookie)
    t.eq(a.sql(f"SELECT hash = sha256('{value}') FROM session"), "t", "which is its SHA-256")
    here = {"Cookie": cookie}
    t.eq(a.get("/v1/session", headers=here, token=False)[1]["role"], "admin", "it asks as its token")
    t.eq(a.get("/v1/session", headers={"Cookie": "drover_session=" + a.token}, token=False)[0], 401, "a token is no cookie")
    other = {"Cookie": login(a, a.token)[0]}
    t.eq([s["id"] for s in a.get("/v1/sessions")[1]["sessions"]], ["s-2", "s-1"], "sessions are listed")
    seen = a.get("/v1/sessions", headers=other, token=False)[1]["sessions"]
    t.eq([(s["current"], s["name"], bool(s["used_at"])) for s in seen], [(True, "token file", True), (False, "token file", True)], "with the one that asks, the token's name, and that they are used")
    a.post("/v1/logout", headers=here, token=False)
    t.eq((a.get("/v1/session", headers=here, token=False)[0], a.get("/v1/session", headers=other, token=False)[0]), (401, 200), "logout ends this session and no other")
    t.eq(a.call("DELETE", "/v1/sessions/s-2")[0], 200, "a session can be revoked")
    t.eq(a.get("/v1/session", headers=other, token=False)[0], 401, "and is over at once")
    t.eq(a.call("DELETE", "/v1/sessions/s-2")[0], 404, "once")
    t.eq([a.call("DELETE", "/v1/sessions/" + x)[0] for x in ("s-0", "s-", "2", "s-99")], [404] * 4, "one there is not")
    viewer = token(a, "viewer")
    mine = login(a, viewer)[0]
    login(a, a.token)
    t.eq([s["token_id"] for s in a.get("/v1/sessions", token=viewer)[1]["sessions"]], ["viewer"], "a viewer sees its own")
    t.eq(a.call("DELETE", "/v1/sessions/s-4", token=viewer)[0], 404, "and ends no other")
    s, st = stream(a, "x", "")
    s = open_socket(a, f"GET /v1/events HTTP/1.1\r\nHost: x\r\nCookie: {mine}\r\n\r\n")
    t.eq((st, status(s)), (401, 200), "a session may open a stream")
    t.eq(a.call("DELETE", "/v1/sessions/s-3", token=viewer)[0], 200, "its own session it may end")
    took = ends_within(s, 8)
    t.ok(took is not None and took <= patience(5), f"whose streams end within 5 s ({took})")
    a.sql("UPDATE session SET expires_at = clock_timestamp() WHERE id = 4")
    late = {"Cookie": login(a, a.token)[0]}
    a.sql("UPDATE session SET expires_at = clock_timestamp() - interval '1 s'")
    t.eq(a.get("/v1/session", headers=late, token=False)[0], 401, "an expired session is over")
    for _ in range(40):
        login(a, a.token)
    t.ok(int(a.sql("SELECT count(*) FROM session WHERE token_id <> 'viewer'")) <= 32, "a token has 32 sessions at most")
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


def at_once(a, tagged, table, body):
    """Two PATCHes with the same ETag (tagged: of what, and which), both under way before either of them may write: somebody holds the rows."""
    for _ in range(10):
        (path, etag), got = tagged(), []
        holder = subprocess.Popen(a.pg.psql(a.db), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        holder.stdin.write(f"BEGIN; LOCK TABLE {table} IN SHARE MODE; SELECT 'held';\n")
        holder.stdin.flush()
        holder.stdout.readline()
        two = [threading.Thread(target=lambda: got.append(a.call("PATCH", path, body, {"If-Match": etag})[0])) for _ in range(2)]
        for one in two:
            one.start()
        wait_for(lambda: len(got) > 0 or a.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "2", 20, "both changes", step=0.01)
        holder.communicate("COMMIT;\n")
        for one in two:
            one.join()
        if max(got) < 500:  # on a busy machine a lock may be waited for too long
            break
    return sorted(got)


def budgets(t, a, owner):
    """Money takes If-Match and the same roles as limits of parts: the installation's is its admins', a project's its own admins', too. owner: an admin of laion only."""
    others = [a.post("/v1/tokens", {"name": "spends", "role": role})[1]["token"] for role in ("operator", "viewer")]
    there = {"/v1/limits": lambda: a.get("/v1/limits"), "/v1/projects/laion": lambda: a.get("/v1/projects")}
    held = lambda: a.sql("SELECT string_agg(level || ' ' || ref_id || ' ' || limit_musd, ', ' ORDER BY level) FROM cap WHERE level IN ('global', 'project') AND limit_musd IS NOT NULL")  # noqa: E731
    change = lambda path, usd, tag=None, token=True: a.call("PATCH", path, {"budget": usd and {"total": usd}}, tag and {"If-Match": tag}, token=token)[0]  # noqa: E731
    project = a.sql("SELECT id FROM project WHERE name = 'laion'")
    for path, fresh in there.items():
        tag = fresh()[2]["etag"]
        t.eq([change(path, "900 USD", h) for h in (None, '"x"', tag, tag)], [428, 412, 200, 412], f"the budget of {path} takes If-Match, of the newest")
        t.eq([change(path, "7 USD", "*", token) for token in others], [403, 403], "and is neither an operator's nor a viewer's")
    t.eq(held(), f"global 0 900000000, project {project} 900000000", "what was refused changed nothing")
    t.eq([change(p, "8 USD", "*", owner) for p in ("/v1/limits", "/v1/projects/default", "/v1/projects/laion")], [403, 404, 200], "a project's admin changes its budget, and no other")
    t.eq(held(), f"global 0 900000000, project {project} 8000000", "that one alone")
    for path, fresh in there.items():
        t.eq(at_once(a, lambda: (path, fresh()[2]["etag"]), "cap", {"budget": {"total": "5 USD"}}), [200, 412], f"of two changes of the budget of {path} at once with one ETag one is refused")  # noqa: B023
        t.eq(change(path, None, fresh()[2]["etag"]), 200, "it is taken off")
    t.eq(held(), "", "and then there is none")


def slow(t, pg):
    """Who asks is looked at before a body and after it: what is revoked meanwhile has no part in what is done. A body has an end."""
    most = int(patience(5))
    a = Api(pg, env={"API_BODY_SECONDS": str(most)})
    cid = a.submit(spec("slow", "{from: api}"))[1]["id"]
    body = json.dumps({"name": "after", "role": "admin"})

    def begin(auth, path="/v1/tokens", text=body):
        s = open_socket(a, f"POST {path} HTTP/1.1\r\nHost: x\r\n{auth}Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text[:5]}")
        return s, text[5:]

    made = {name: token(a, name, role) for name, role in (("gone", "admin"), ("late", "admin"), ("less", "admin"), ("bulk", "operator"), ("web", "admin"), ("fine", "admin"))}
    bearer = lambda name: f"Authorization: Bearer {made[name]}\r\n"  # noqa: E731
    cookie, csrf = login(a, made["web"])
    half = {name: begin(bearer(name)) for name in ("gone", "late", "less", "fine")}
    half["bulk"] = begin(bearer("bulk"), f"/v1/campaigns/{cid}/parts", '{"uri":"s3://b/1"}\n')
    half["web"] = begin(f"Cookie: {cookie}\r\nX-Drover-CSRF: {csrf}\r\n")
    t.ok(wait_for(lambda: a.sql("SELECT count(*) FROM token WHERE used_at IS NOT NULL AND id <> 'web'") == "6" and drained(a), 10), "six bodies have begun, their tokens were good")
    a.sql("UPDATE token SET expires_at = clock_timestamp() - interval '1 s' WHERE id = 'late'; UPDATE token SET role = 'viewer' WHERE id = 'less'")
    for name in ("gone", "bulk", "web"):
        t.eq(a.call("DELETE", "/v1/tokens/" + name)[0], 200, f"{name} is revoked")
    for s, rest in half.values():
        s.sendall(rest.encode())
    t.eq({name: status(s) for name, (s, _) in half.items()}, {"gone": 401, "late": 401, "less": 403, "fine": 201, "bulk": 401, "web": 401}, "and its request with it, when the body ends")
    t.eq(a.sql(f"SELECT (SELECT count(*) FROM token WHERE name = 'after'), (SELECT count(*) FROM task WHERE campaign_id = {cid[2:]})"), "1|0", "one token was made, no part was added")
    s, _ = begin(bearer("fine"), text=" " * 100000)
    began, got = time.monotonic(), None
    while got is None and time.monotonic() - began < 2 * most:
        try:
            s.sendall(b" ")
            time.sleep(0.2)
        except OSError:
            got = time.monotonic() - began
    t.ok(got is not None and got >= most - 1, f"a body that takes longer than a body may is cut off ({got})")
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


def check_keys(t, a):
    """A token or a webhook is made once a key. Its secret is in the first answer only: the repetition is refused with its name, and what is kept of the first answer has no secret."""
    for path, body, kept in (("/v1/tokens", {"name": "once"}, "token"), ("/v1/webhooks", {"name": "once", "url": "https://hooks.example.com/once"}, "secret")):
        key = {"Idempotency-Key": "once-" + kept}
        s, made, _ = a.post(path, body, key)
        s2, again, h = a.post(path, body, key)
        count = len([x for x in a.get(path)[1][path[4:]] if x["name"] == "once"])
        t.ok((s, s2, count) == (201, 409, 1) and made["id"] in again["detail"] and h["location"] == f"{path}/{made['id']}", f"{path} with a key happens once, and its repetition says what was made", (s, s2, count, again))
        t.eq(a.post(path, {**body, "name": "else"}, key)[0], 422, "a key of another request is refused")
        t.ok(a.call("DELETE", f"{path}/{made['id']}")[0] == 200 and made[kept].split(".")[-1] not in a.sql("SELECT string_agg(answer, ' ') FROM idempotency_key"), "no secret is kept")


def tokens(t, pg):
    """Tokens are made, listed, let expire and revoked; roles count, also for some projects only."""
    a = Api(pg)
    a.objects("data", ["meta/p.parquet"])
    s, made, h = a.post("/v1/tokens", {"name": "ci", "role": "operator", "expires_in": "30d"})
    tag = h["etag"]
    t.ok(s == 201 and re.fullmatch(r"operator-[0-9a-f]{8}\.[0-9a-f]{64}", made["token"]) and made["state"] == "valid" and made["created_by"] == a.token.split(".")[0]
         and h["location"] == "/v1/tokens/" + made["id"], "a token is made", made)
    operator = made["token"]
    t.eq([x["used_at"] for x in a.get("/v1/tokens")[1]["tokens"] if x["name"] == "ci"], [None], "it was not used yet")
    t.eq([a.get("/v1/session", token=operator)[1][k] for k in ("role", "name")], ["operator", "ci"], "and counts")
    t.eq(a.get("/v1/session", token=made["id"] + "." + "0" * 64)[0], 401, "with its secret only")
    listed = a.get("/v1/tokens")[1]["tokens"]
    a.sql("UPDATE token SET used_at = clock_timestamp() - interval '50 seconds' WHERE name = 'ci'")
    at = a.sql("SELECT used_at FROM token WHERE name = 'ci'")
    a.post("/v1/logout", headers={"Cookie": "drover_session=" + "0" * 64}, token=False)  # what is remembered of tokens is forgotten
    t.ok(listed[0]["used_at"] and a.get("/v1/session", token=operator)[0] == 200 and a.sql("SELECT used_at FROM token WHERE name = 'ci'") == at, "that it is used is noted, once a minute", listed)
    t.ok([x["name"] for x in listed] == ["ci", "token file"] and "token" not in listed[0] and operator.split(".")[1] not in json.dumps(listed), "tokens are listed, without their secrets", listed)
    for body in ({}, {"name": ""}, {"name": "x", "role": "root"}, {"name": "x", "projects": []}, {"name": "x", "projects": [1]}, {"name": "x", "projects": ["a,b"]}, {"name": "x", "expires_in": "soon"},
                 {"name": "x", "expires_in": "0s"}, {"name": "x", "secret": "y"}):
        t.ok(a.post("/v1/tokens", body)[0] in (400, 422), f"{body} is refused")
    for m, p in (("GET", "/v1/tokens"), ("POST", "/v1/tokens"), ("DELETE", "/v1/tokens/x"), ("PATCH", "/v1/limits"), ("PATCH", "/v1/projects/default")):
        t.eq(a.call(m, p, {"name": "x"}, token=operator)[0], 403, f"{m} {p} is an admin's")
    cid = a.submit(spec(), token=operator)[1]["id"]
    viewer = a.post("/v1/tokens", {"name": "eyes"})[1]["token"]
    yaml = {"Content-Type": "application/yaml"}
    t.eq([a.call("POST", "/v1/campaigns" + q, spec(), yaml, token=viewer)[0] for q in ("", "?dry_run=true", "?dry_run=false", "?dry_run=true&dry_run=false")], [403, 200, 403, 400], "a viewer may dry_run a file, not submit it")
    sel = {"selector": {"state": "failed"}}
    t.eq([a.post(f"/v1/campaigns/{cid}:retry" + q, sel, token=viewer)[0] for q in ("", "?dry_run=true")], [403, 200], "and a retry")
    t.eq(a.post(f"/v1/campaigns/{cid}:cancel?dry_run=true", token=viewer)[0], 403, "but no cancel")
    t.eq([a.call("PATCH", "/v1/tokens/" + made["id"], {"expires_in": "1s"}, h)[0] for h in (None, {"If-Match": '"k0"'}, {"If-Match": tag}, {"If-Match": tag})],
         [428, 412, 200, 412], "a token can be let expire, by who has seen it")
    t.ok(wait_for(lambda: a.get("/v1/session", token=operator)[0] == 401, 6), "and is over then")
    t.eq(a.call("DELETE", "/v1/tokens/" + viewer.split(".")[0])[1]["state"], "revoked", "a token can be revoked")
    t.eq(a.get("/v1/session", token=viewer)[0], 401, "and is over at once")
    t.eq([(x["before"], x["detail"]) for x in a.get("/v1/audit?action=token.revoke")[1]["audit"]], [({"state": "valid"}, {"state": "revoked"})], "as the audit says")
    t.eq(a.call("DELETE", "/v1/tokens/nobody")[0], 404, "one there is not")
    # projects
    a.post("/v1/campaigns", spec("other", top="project: laion"), {"Content-Type": "application/yaml"})
    mine, theirs = cid, "c-2"
    scoped = a.post("/v1/tokens", {"name": "team", "role": "operator", "projects": ["laion"]})[1]["token"]
    t.eq([c["id"] for c in a.get("/v1/campaigns", token=scoped)[1]["campaigns"]], [theirs], "a project's token lists its campaigns")
    with open(TOP + "/orchestrator/api/server/routes.def", encoding="utf-8") as f:
        rows = re.findall(r'X\("(\w+)", "([^"]*\{campaign\}[^"]*)", (\w+), ([^,]+),', f.read())
    got = {(m, p): a.raw(m, filled(p, mine), b"{}" if m != "GET" else None, token=scoped)[0] for m, p, role, flags in rows}
    t.ok(set(got.values()) == {404} and len(got) >= 15, f"of a campaign of another project it learns nothing ({len(got)} routes)", got)
    t.eq(a.get("/v1/campaigns/" + theirs, token=scoped)[0], 200, "its own it may read")
    t.eq(a.post(f"/v1/campaigns/{theirs}:pause", token=scoped)[0], 202, "and change")
    listing = [a.sql(f"INSERT INTO input_listing (stage_id, campaign_id, uri, per_part, state) SELECT min(id), {c[2:]}, 's3://b/x', 1, 'done' FROM stage WHERE campaign_id = {c[2:]} RETURNING id") for c in (theirs, mine)]
    t.eq([a.get(f"/v1/operations/op-{n}", token=scoped)[0] for n in listing], [200, 404], "the listing of its campaign's input it may read, too")
    a.sql(f"DELETE FROM input_listing WHERE id IN ({', '.join(listing)})")
    t.eq([a.call("POST", "/v1/campaigns?dry_run=true", spec("n", top=top), yaml, token=scoped)[0] for top in ("", "project: laion")], [403, 200], "a file is for its project")
    t.eq([p["name"] for p in a.get("/v1/projects", token=scoped)[1]["projects"]], ["laion"], "it sees its project")
    t.eq([a.get(p, token=scoped)[0] for p in ("/v1/operations", "/v1/parked", "/metrics", "/v1/limits", "/v1/tokens")], [403] * 5, "what is about every project is refused")
    # limits
    s, b, h = a.get("/v1/limits")
    t.eq(a.call("PATCH", "/v1/limits", {"parts": 5})[0], 428, "limits take If-Match")
    s, b, h2 = a.call("PATCH", "/v1/limits", {"parts": 5}, {"If-Match": h["etag"]})
    t.ok(s == 200 and b["parts"] == 5 and h2["etag"] != h["etag"], "with the ETag they change", (s, b))
    t.eq(a.call("PATCH", "/v1/limits", {"parts": 6}, {"If-Match": h["etag"]})[0], 412, "with that of before: 412")
    s, b, h = a.get("/v1/projects")
    t.eq([a.call("PATCH", "/v1/projects/laion", {"parts": 7}, m)[0] for m in (None, {"If-Match": '"x"'}, {"If-Match": h["etag"]}, {"If-Match": h["etag"]})], [428, 412, 200, 412], "the same for a project's")
    owner = a.post("/v1/tokens", {"name": "owner", "role": "admin", "projects": ["laion"]})[1]["token"]
    t.eq([a.call("PATCH", "/v1/projects/" + p, {"parts": 8}, {"If-Match": "*"}, token=owner)[0] for p in ("laion", "default")], [200, 404], "a project's admin changes its limits")
    a.submit(spec("dotted", top="project: laion.v2"))
    t.eq([a.call("PATCH", "/v1/projects/" + p, {"parts": 9}, {"If-Match": "*"})[0] for p in ("laion.v2", "laion%2Ev2", "laion.v3", "laionxv2", ".")], [200, 200, 404, 404, 404], "a name with a dot is one in a path, too")
    t.eq({p["name"]: p["parts"] for p in a.get("/v1/projects")[1]["projects"]}, {"default": None, "laion": 8, "laion.v2": 9}, "and only that project changes")
    t.eq([a.call(m, p, {"parts": 1}, {"If-Match": "*"}, token=owner)[0] for m, p in (("PATCH", "/v1/limits"), ("POST", "/v1/tokens"))], [403, 403], "and nothing above it")
    t.eq(a.post("/v1/quotas/ml.c5.xlarge:request", {"value": 5}, token=owner)[0], 403, "a quota, which is the whole account's, is not its to ask for")
    budgets(t, a, owner)
    hook = a.post("/v1/webhooks", {"name": "both", "url": "https://hooks.example.com/both"})[1]["id"]
    new_token = lambda: (lambda made: ("/v1/tokens/" + made[1]["id"], made[2]["etag"]))(a.post("/v1/tokens", {"name": "both", "role": "viewer", "expires_in": "1h"}))  # noqa: E731
    for what, tagged, table, body in (("limits", lambda: ("/v1/limits", a.get("/v1/limits")[2]["etag"]), "setting", {"parts": 9}),
                                      ("a project", lambda: ("/v1/projects/laion", a.get("/v1/projects")[2]["etag"]), "project", {"parts": 6}),
                                      ("a webhook", lambda: (f"/v1/webhooks/{hook}", a.get(f"/v1/webhooks/{hook}")[2]["etag"]), "webhook", {"name": "other"}),
                                      ("a token", new_token, "token", {"expires_in": "2h"})):
        t.eq(at_once(a, tagged, table, body), [200, 412], f"of two changes of {what} at once with one ETag one is refused")
    # the command line
    r = a.drover("token", "new", "cli", "--role", "viewer", "--project", "laion", "--expires", "1h", "-o", "json")
    one = json.loads(r.stdout)
    t.ok(r.returncode == 0 and one["projects"] == ["laion"] and one["expires_at"], "drover token new", (r.stdout, r.stderr))
    r = a.drover("token")
    t.ok(r.returncode == 0 and re.search(one["id"] + r" +cli +viewer +laion +valid", r.stdout) and one["token"].split(".")[1] not in r.stdout, "drover token lists", r.stdout)
    t.eq(a.drover("token", "expire", one["id"], "--expires", "2h").returncode, 0, "drover token expire")
    r = a.drover("token", "revoke", one["id"])
    t.ok(r.returncode == 2 and "add -y" in r.stderr, "drover token revoke wants -y without a terminal", r.stderr)
    r = a.drover("token", "revoke", one["id"], "-y")
    t.ok(r.returncode == 0 and "revoked" in r.stdout and a.get("/v1/session", token=one["token"])[0] == 401, "drover token revoke -y", r.stderr)
    for args in (("new",), ("revoke",), ("expire", "x"), ("bogus", "x")):
        t.eq(a.drover("token", *args).returncode, 2, f"drover token {' '.join(args)}: usage")
    t.ok(int(a.sql("SELECT count(*) FROM audit WHERE action IN ('token.make', 'token.revoke', 'token.expire')")) >= 8 and one["token"].split(".")[1] not in a.sql("SELECT string_agg(x::text, ' ') FROM audit x"),
         "all of it is audited, without secrets")
    check_keys(t, a)
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


def wrong(t, pg):
    """Wrong tokens of an address are limited, and keep nobody behind it out who has a good one; after a pause they are forgotten."""
    a = Api(pg, env={"API_TRUSTED_PROXIES": "127.0.0.1/32", "API_FORGET_SECONDS": "1"})
    there = {"X-Forwarded-For": "203.0.113.9"}
    ask = lambda tok: a.get("/v1/session", headers=there, token=tok)[0]  # noqa: E731
    good, gone = token(a, "good"), token(a, "gone")
    t.eq([ask(good), ask(gone)], [200, 200], "two tokens are used behind an address")
    a.sql("UPDATE token SET revoked_at = clock_timestamp() WHERE id = 'gone'")
    a.post("/v1/logout", headers={"Cookie": "drover_session=" + "0" * 64}, token=False)  # what is remembered of tokens is forgotten
    got = [ask(gone) for _ in range(20)]
    t.eq((got[:10], set(got[11:])), ([401] * 10, {429}), "of 20 requests with the one that was revoked the first are refused, the others wait")
    t.eq([ask(x) for x in ("good." + "0" * 64, good.split(".")[0] + "." + good.split(".")[1][:-1] + "!", "nobody." + "0" * 64)], [429] * 3, "so do other wrong ones of that address")
    t.eq((ask(good), a.post("/v1/login", {"token": good}, headers=there, token=False)[0]), (200, 200), "the good one passes, and logs in")
    t.eq(a.get("/v1/session", headers={"X-Forwarded-For": "203.0.113.10"}, token="nobody." + "0" * 64)[0], 401, "another address is not limited")
    t.ok(wait_for(lambda: ask(gone) == 401, 30, step=0.5), "after a while it may try again")
    a.sql("SELECT pg_sleep(6)")  # the limit of that try, and the second after which all are forgotten
    t.eq([ask(gone) for _ in range(9)], [401] * 9, "after a pause the count begins again")
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


def audit(t, pg):
    """GET /v1/audit: who changed what, by pages and filters, and who may see which rows."""
    a = Api(pg)
    cid = a.submit(spec("one", "{from: api}"))[1]["id"]
    theirs = a.submit(spec("two", "{from: api}", top="project: laion"))[1]["id"]
    made = {name: a.post("/v1/tokens", {"name": name, "role": role, **more})[1]["token"] for name, role, more in
            (("ci", "operator", {}), ("team", "operator", {"projects": ["laion"]}), ("owner", "admin", {"projects": ["laion"]}), ("eyes", "viewer", {}))}
    a.post(f"/v1/campaigns/{cid}:pause", token=made["ci"])
    a.post(f"/v1/campaigns/{cid}:resume", token=made["ci"])
    a.call("PATCH", f"/v1/campaigns/{theirs}", {"priority": 61}, {"If-Match": "*"}, token=made["team"])
    for name in ("laion", "default"):
        a.call("PATCH", "/v1/projects/" + name, {"parts": 7}, {"If-Match": "*"})
    a.sql(f"""INSERT INTO endpoint (stage_id, campaign_id, n, state, name, instance_type, instances, ttl_s, price_musd_per_hour, reserved_musd, delete_after, intended_at)
            SELECT id, campaign_id, 1, 'in_service', 'd-1-serve-0-a1-00', 'ml.c5.xlarge', 1, 3600, 204000, 9, now(), now() FROM stage WHERE campaign_id = {theirs[2:]};
        INSERT INTO audit (token_id, role, action, subject, request_id) VALUES ('policy', 'policy', 'endpoint.delete', 'd-1-serve-0-a1-00', ''), ('policy', 'policy', 'stray.stop', 'd-9-lost-a1', ''),
            ('policy', 'policy', 'campaign.archive', 'not a campaign', '')""")
    rows = lambda q="", **kw: a.get("/v1/audit" + q, **kw)[1]["audit"]  # noqa: E731
    what = lambda *args, **kw: [(x["action"], x["subject"]) for x in rows(*args, **kw)]  # noqa: E731
    all_rows = rows()
    t.ok([x["id"] for x in all_rows] == [f"a-{i}" for i in range(len(all_rows), 0, -1)] and len(all_rows) == 14, "every row, newest first", all_rows)
    t.eq({k: all_rows[6][k] for k in ("who", "name", "role", "action", "subject", "campaign", "detail")},
         {"who": made["ci"].split(".")[0], "name": "ci", "role": "operator", "action": "campaign.resume", "subject": cid, "campaign": cid, "detail": {"wanted": "run"}}, "a row says who did what")
    t.eq([(x["before"], x["detail"]) for x in rows("?action=campaign.change")], [({"priority": 50}, {"priority": 61})], "and what was asked for, and what was there before")
    t.eq([(x["before"], x["detail"]) for x in rows("?action=project.change")], [({"parts": None}, {"parts": 7})] * 2, "of a project, too")
    t.eq(what("?campaign=" + cid), [("campaign.resume", cid), ("campaign.pause", cid), ("campaign.submit", cid)], "of a campaign")
    t.eq(what("?campaign=" + theirs), [("endpoint.delete", "d-1-serve-0-a1-00"), ("campaign.change", theirs), ("campaign.submit", theirs)], "with its endpoint")
    t.eq([len(rows("?who=" + x)) for x in ("ci", made["ci"].split(".")[0], "policy", "nobody", "ci%25")], [2, 2, 3, 0, 0], "of a token, by its name or its id")
    t.eq([len(rows("?action=" + x)) for x in ("campaign.pause", "campaign", "token", "camp", "campaign.")], [1, 6, 4, 0, 0], "of an action, or of all of its kind")
    t.eq(what("?action=campaign&who=ci&campaign=" + cid), [("campaign.resume", cid), ("campaign.pause", cid)], "filters join")
    t.eq([a.get("/v1/audit" + q)[0] for q in ("?campaign=1", "?who=", "?action=A", "?page_size=0", "?state=x", "?page_token=00")], [400] * 6, "what is no filter is refused")
    ids, token = [], ""
    while token is not None:
        b = a.get("/v1/audit?page_size=3" + token)[1]
        ids += [x["id"] for x in b["audit"]]
        token = "&page_token=" + b["next_page_token"] if b["next_page_token"] else None
    t.eq(ids, [x["id"] for x in all_rows], "in pages of three")
    t.eq([a.get("/v1/audit", token=x)[0] for x in (made["eyes"], False, made["ci"])], [403, 401, 200], "a viewer sees none of it")
    t.eq(what(token=made["ci"]), [x for x in what() if not x[0].startswith("token.")], "an operator sees all but tokens")
    own = [("endpoint.delete", "d-1-serve-0-a1-00"), ("project.change", "laion"), ("campaign.change", theirs), ("campaign.submit", theirs)]
    t.eq([what(token=made[x]) for x in ("team", "owner")], [own, own], "a token of a project sees its campaigns and itself")
    t.eq(what("?campaign=" + cid, token=made["team"]), [], "and nothing of another's campaign")
    same = a.post("/v1/tokens", {"name": "same", "role": "admin", "projects": [cid]})[1]["token"]
    t.eq(what(token=same), [], "a project that is called like another's campaign sees nothing of it")
    a.sql("INSERT INTO audit (token_id, role, action, subject, request_id) SELECT 'ci-' || i % 50, 'operator', 'campaign.pause', 'c-' || 1000 + i % 500, '' FROM generate_series(1, 100000) i; ANALYZE audit")
    b, begun = a.get("/v1/audit?who=ci")[1], time.monotonic()
    t.ok(b["audit"] == [] and b["next_page_token"], "a page looks at 10,000 rows at most", b)
    pages = 1
    while not b["audit"] and b["next_page_token"]:
        b, pages = a.get("/v1/audit?who=ci&page_token=" + b["next_page_token"])[1], pages + 1
    t.ok(len(b["audit"]) == 2 and b["next_page_token"] is None and pages == 11, "and the next ones find what is older", (pages, b))
    print(f"# {pages} pages over 100,000 rows: {time.monotonic() - begun:.3f} s")
    t.eq(len(rows("?page_size=1000")), 1000, "a page of a thousand")
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])
