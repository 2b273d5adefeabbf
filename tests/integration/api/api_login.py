#!/usr/bin/env python3
"""Logins by a provider of OpenID Connect and by a trusted proxy. Aim: a person of the provider has a session with the rights that the claims give, and
nothing else begins one: each forged, stale, stolen or foreign answer is refused with one page and one row of the audit.
Method: droverd itself, a provider with real keys, and this program as the browser."""
import concurrent.futures
import html
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from api_start import Droverd
from kit import BIN, patience, wait_for
from kit.api import Api, main
from kit.oidc import Provider, hmac_with_public_key


class Login(Api):
    """droverd with its settings, in the place of the API's own server."""

    def start(self):
        self.log = open(self.dir + "/log", "ab")
        with open(self.dir + "/secret", "w") as f:
            f.write(Provider.SECRET + "\n")
        env = {k: v for k, v in self.env.items() if not k.startswith("AWS_")}
        env |= {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
                "DROVER_TOKEN_FILE": self.token_file, "DROVER_LISTEN": "127.0.0.1:0", "DROVER_DATABASE_URL": self.pg.conninfo(self.db),
                "DROVER_OIDC_CLIENT_ID": Provider.CLIENT, "DROVER_OIDC_CLIENT_SECRET_FILE": self.dir + "/secret"}
        self.p = subprocess.Popen([BIN + "/droverd", "--port-file", self.dir + "/port"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=env)
        self.port = int(wait_for(lambda: open(self.dir + "/port").read().strip(), 30, "droverd's port"))
        self.token = open(self.token_file).read().strip()

    def stop(self):
        self.p.terminate()
        return self.p.wait(30)

    def page(self, path, cookie=None):
        """As a browser asks: status, text, headers; several cookies are lines of one."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience(60))
        c.request("GET", path, headers={"Accept": "text/html,*/*", "Sec-Fetch-Site": "cross-site", **({"Cookie": cookie} if cookie else {})})
        r = c.getresponse()
        h = {k.lower(): v for k, v in r.getheaders()} | {"set-cookie": "\n".join(r.headers.get_all("Set-Cookie", []))}
        text = r.read().decode()
        c.close()
        return r.status, text, h

    def begin(self, return_to=""):
        """The provider's address and the browser's cookie."""
        s, text, h = self.page("/login/oidc" + return_to)
        if s != 303:
            raise RuntimeError((s, text))
        return h["location"], h["set-cookie"].split(";")[0]

    def end(self, url, cookie, code, **more):
        state = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))["state"]
        q = {"code": code, "state": state, "session_state": "of no use", **more}
        return self.page("/login/oidc/callback?" + urllib.parse.urlencode({k: v for k, v in q.items() if v is not None}), cookie)

    def whole(self, p, return_to="", **how):
        url, cookie = self.begin(return_to)
        return self.end(url, cookie, p.authorize(url, **how))

    def audit(self, action="token"):
        return self.get(f"/v1/audit?action={action}")[1]["audit"]


def signed_in(answer):
    """The session's cookie; None when there is none."""
    found = re.match(r"drover_session=[0-9a-f]{64}", answer[2].get("set-cookie", ""))
    return found and found[0]


def logins(t, a, p):
    """What the provider is asked, and what a person gets."""
    t.eq(a.get("/v1/login", token=False)[1], {"ways": [{"kind": "oidc", "name": "Example Login", "path": "/login/oidc"}]}, "the login page learns of the provider")
    url, cookie = a.begin("?return_to=/c/7/parts?state%3Dfailed")
    q = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
    t.ok(url.startswith(p.issuer + "/authorize?tenant=1&response_type=code&") and q["redirect_uri"] == "http://drover.test/login/oidc/callback"
         and q["client_id"] == p.CLIENT and q["scope"] == "openid profile email" and q["code_challenge_method"] == "S256" and len(q["code_challenge"]) == 43, "a browser is sent to it with state, nonce and PKCE", url)
    t.eq(len({q["state"], q["nonce"], q["code_challenge"], cookie.split("=")[1]}), 4, "which are all different")
    head = a.page("/login/oidc")[2]["set-cookie"]
    t.ok("HttpOnly; SameSite=Lax; Path=/login/oidc; Max-Age=600" in head, "in a cookie of ten minutes for these paths only", head)
    got = a.end(url, cookie, p.authorize(url))
    t.eq((got[0], got[2].get("location"), "HttpOnly; SameSite=Strict" in got[2]["set-cookie"]), (303, "/c/7/parts?state=failed", True), "and comes back signed in to the page it wanted")
    who = a.get("/v1/session", headers={"Cookie": signed_in(got)}, token=False)[1]
    t.eq((who["name"], who["role"], who["projects"], bool(who["csrf"])), ("ada", "operator", None, True), "with the name and the role of its claims")
    mine = [x for x in a.get("/v1/tokens")[1]["tokens"] if x["id"] == who["token_id"]]
    t.ok(who["token_id"].startswith("sso-") and mine[0]["created_by"] == "oidc" and mine[0]["role"] == "operator", "a token stands for the person", mine)
    t.eq([(x["who"], x["action"], x["detail"]["role"]) for x in a.audit("token.login")], [(who["token_id"], "token.login", "operator")], "and the audit says so")
    t.eq(a.get("/v1/tokens", headers={"Cookie": signed_in(got)}, token=False)[0], 403, "who may do what the role may")
    t.eq(a.post("/v1/campaigns", "x", {"Cookie": signed_in(got), "Content-Type": "application/yaml"}, token=False)[0], 403, "and changes need the CSRF value as ever")
    for path in ("//evil.example", "https://evil.example", "/\\evil.example", "evil"):
        t.eq(a.page("/login/oidc?return_to=" + urllib.parse.quote(path, safe=""))[0], 400, f"{path} is no page to return to")
    old = signed_in(got)
    got = a.whole(p, groups="drover-admin", preferred_username=None, email="ada@example.com", team={"projects": ["laion", "web"]})
    again = a.get("/v1/session", headers={"Cookie": signed_in(got)}, token=False)[1]
    t.eq((again["token_id"], again["role"], again["name"]), (who["token_id"], "admin", "ada@example.com"), "the next login brings the rights of its claims")
    t.eq(a.get("/v1/session", headers={"Cookie": old}, token=False)[0], 401, "and ends the session of the old ones")
    other = a.get("/v1/session", headers={"Cookie": signed_in(a.whole(p, sub="u-2", groups=[]))}, token=False)[1]
    t.ok(other["token_id"] != who["token_id"] and other["role"] == "viewer", "another person has another token; everybody is a viewer here", other)
    with concurrent.futures.ThreadPoolExecutor(8) as at_once:
        t.ok(all(at_once.map(lambda i: signed_in(a.whole(p, sub=f"many-{i}")), range(16))), "sixteen people at once")
    t.eq(a.get("/v1/tokens", token=who["token_id"] + "." + "0" * 64)[0], 401, "which has no secret that anybody knows")
    return who["token_id"]


def refusals(t, a, p):
    """No answer but the right one begins a session. Each: one page, one row of the audit, no cookie."""
    before = len(a.audit())
    texts = []

    def refused(what, answer, status, word):
        rows = a.audit()
        new = len(rows) - len(texts) - before
        text = html.unescape(re.sub(r"<[^>]+>", "", answer[1]))
        good = answer[0] == status and word in text and signed_in(answer) is None and "You are not signed in" in text and 'href="/"' in answer[1] \
            and answer[2]["content-type"].startswith("text/html") and new == 1 and rows[0]["action"] == "token.login_refused" and word in rows[0]["detail"]["reason"]
        texts.append(text)
        t.ok(good, f"{what}: refused with {status} and '{word}'", (answer, new, rows[:2]))

    def claims(**changed):
        return lambda header, c: [c.pop(k) if v is None else c.__setitem__(k, v) for k, v in changed.items()]

    def head(**changed):
        return lambda h, c: [h.pop(k) if v is None else h.__setitem__(k, v) for k, v in changed.items()]

    kept = []
    a.whole(p, change=lambda h, c: kept.append(c["nonce"]))
    before = len(a.audit())
    now = int(time.time())
    for what, change, word in (
            ("another audience", claims(aud="someone"), "(aud)"), ("no audience", claims(aud=None), "(aud)"), ("several audiences", claims(aud=[p.CLIENT, "someone"]), "(azp)"),
            ("asked for by another", claims(azp="someone"), "(azp)"), ("expired", claims(exp=now - 120), "(exp)"), ("without an end", claims(exp=None), "(exp)"),
            ("an end that is no number", claims(exp="tomorrow"), "(exp)"), ("of an earlier hour", claims(iat=now - 3600), "(iat)"), ("not yet valid", claims(nbf=now + 600), "(nbf"),
            ("made in the future", claims(iat=now + 600), "(nbf"), ("a replayed nonce", claims(nonce=kept[0]), "(nonce)"), ("no nonce", claims(nonce=None), "(nonce)"),
            ("another issuer", claims(iss="http://127.0.0.1/other"), "(iss)"), ("nobody", claims(sub=""), "(sub)"), ("a name of an object", claims(sub={"x": 1}), "(sub)")):
        refused(what, a.whole(p, change=change), 401, word)
    signs = {"unsigned": (head(alg="none"), lambda d, k: b"", "'none'"), "HS256 with the public key": (head(alg="HS256"), hmac_with_public_key, "'HS256'"),
             "RS512": (head(alg="RS512"), None, "'RS512'"), "ES256 of an RSA key": (head(alg="ES256"), None, "does not publish the key"),
             "RS256 of an EC key": (head(kid="ec-1"), None, "does not publish the key"), "no key id, and two keys that fit": (head(kid=None), None, "does not publish the key"),
             "a weak key": (head(kid="weak"), None, "weak"), "a key with a part of a byte": (head(kid="odd"), None, "its key cannot be read"), "a wrong signature": (None, lambda d, k: k.sign(d + b"x"), "signature is wrong"),
             "signed by another key": (None, lambda d, k: p.keys["rsa-2"].sign(d), "signature is wrong"), "an extension": (head(crit=["exp"]), None, "extension")}
    for what, (change, sign, word) in signs.items():
        refused(what, a.whole(p, change=change, sign=sign), 401, word)
    keys = p.asked.count("/realm/jwks")
    refused("an unknown key", a.whole(p, change=head(kid="rsa-2")), 401, "does not publish the key")
    refused("another unknown key", a.whole(p, change=head(kid="rsa-3")), 401, "does not publish the key")
    t.eq(p.asked.count("/realm/jwks") - keys, 0, "for which the keys are not read again at once: they were for the first")
    url, cookie = a.begin()
    refused("another state", a.end(url, cookie, p.authorize(url), state="0" * 64), 401, "(state)")
    refused("no state", a.end(url, cookie, p.authorize(url), state=None), 401, "(state)")
    refused("no cookie", a.end(url, None, p.authorize(url)), 401, "no login has begun in this browser")
    refused("another browser's cookie", a.end(url, a.begin()[1], p.authorize(url)), 401, "(state)")
    refused("another provider's answer", a.end(url, cookie, p.authorize(url), iss="https://evil.example"), 401, "(iss)")
    refused("the provider's refusal", a.end(url, cookie, None, error="access_denied", error_description="<b>no & never</b>"), 403, "access_denied: <b>no & never</b>")
    refused("no code", a.end(url, cookie, None), 401, "no code")
    refused("a code of nobody", a.end(url, cookie, "made up"), 401, "invalid_grant")
    refused("the same login again", a.end(url, cookie, p.authorize(url)), 401, "has ended")
    victim, _ = a.begin()
    stolen = p.authorize(victim, groups="drover-admin")
    refused("a stolen code in a login of one's own, without its verifier", a.end(*a.begin(), stolen), 401, "invalid_grant")
    refused("too large a token", a.whole(p, big="x" * 20000), 401, "16 KiB")
    url, cookie = a.begin()
    a.sql("UPDATE login SET expires_at = clock_timestamp()")
    refused("a login that took too long", a.end(url, cookie, p.authorize(url)), 401, "more than 10 minutes")
    t.eq(a.sql("SELECT count(*) FROM session"), str(len(a.audit("token.login"))), "no session was begun")
    status, problem, h = a.get("/login/oidc/callback?code=x&state=y", token=False)
    t.eq((status, problem["code"], h["content-type"]), (401, "unauthenticated", "application/problem+json"), "a program gets problem+json")
    log = open(a.dir + "/log", encoding="utf-8").read()
    t.ok(p.SECRET not in log and p.SECRET not in "".join(texts) and cookie.split("=")[1] not in log and log.count("login_refused") >= len(texts), "the log tells of it without a secret")


def taken(t, a, p, person):
    """Rarer tokens that are right, and a person who is shut out."""
    t.ok(signed_in(a.whole(p, change=lambda h, c: h.update(alg="ES256", kid="ec-1"))), "ES256 is taken")
    t.ok(signed_in(a.whole(p, change=lambda h, c: c.update(aud=[p.CLIENT, "x"], azp=p.CLIENT))), "and several audiences when it was asked for by us")
    p.document = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    cookie = signed_in(a.whole(p))
    t.eq(a.call("DELETE", f"/v1/tokens/{person}", token=True)[0], 200, "an admin revokes the person's token")
    t.eq(a.get("/v1/session", headers={"Cookie": cookie}, token=False)[0], 401, "which ends the sessions")
    s, text, _ = got = a.whole(p)
    t.ok(s == 403 and "an admin of this droverd has ended your access" in text and signed_in(got) is None, "and a login brings no new one", got)


def rotation(t, pg, p, env):
    """droverd begins with other keys than the provider then signs with; roles and projects by claims."""
    p.published, p.document = ["ec-1"], {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    a = Login(pg, env={**env, "DROVER_LOGIN_ROLES": "operator = data team, admin=ops", "DROVER_OIDC_ROLE_CLAIM": "https://x.example/realm.roles",
                       "DROVER_OIDC_PROJECTS_CLAIM": "team.projects"})
    role = {"https://x.example/realm.roles": ["data team"]}

    def login(**claims):
        return a.whole(p, change=lambda h, c: c.update({**role, **claims}))

    s, text, _ = login(team={"projects": "laion"})
    t.ok(s == 401 and "does not publish the key" in text, "a key that the provider does not publish", text)
    p.published = ["rsa-1", "ec-1"]
    begun = p.asked.count("/realm/jwks")
    a2 = Login(pg, env=a.env, db=a.db)
    t.ok(signed_in(a2.whole(p, change=lambda h, c: (c.update({**role, "team": {"projects": "laion"}}), h.update(kid="ec-1", alg="ES256")))), "secrets are sent in the body where the provider takes no other way")
    p.published = ["rsa-2", "ec-1"]
    got = a2.whole(p, change=lambda h, c: (h.update(kid="rsa-2"), c.update({**role, "team": {"projects": ["laion", "web"]}})))
    t.eq((got[0], p.asked.count("/realm/jwks") - begun), (303, 2), "a new key is found by reading the keys again, once")
    who = a2.get("/v1/session", headers={"Cookie": signed_in(got) or ""}, token=False)[1]
    t.eq((who.get("role"), who.get("projects")), ("operator", "laion,web"), "a role and projects of claims of any name")
    p.published = ["rsa-1", "ec-1"]
    a3 = Login(pg, env=a.env, db=a.db)
    for what, claims, word in (("no project", {}, "you have no project here"), ("an odd project", {"team": {"projects": ["a b"]}}, "no name of a project"),
                               ("nine projects", {"team": {"projects": [f"p{i}" for i in range(9)]}}, "more than 8 projects"), ("no role", {"https://x.example/realm.roles": ["staff"], "team": {"projects": "x"}}, "has no role here")):
        s, text, _ = got = a3.whole(p, change=lambda h, c, claims=claims: c.update({**role, **claims}))
        t.ok(s == 403 and word in html.unescape(text) and signed_in(got) is None, f"{what}: refused", got)
    t.ok(signed_in(a3.whole(p, change=lambda h, c: c.update({**role, "team": {"projects": ["*", "x"]}}))), "* is every project")
    for x in (a, a2, a3):
        x.close()


def kept(t, pg, p, env):
    """Documents are read again after a time; when they cannot be, the old ones are good."""
    p.document, p.published = {}, ["rsa-1"]
    a = Login(pg, env={**env, "DROVER_OIDC_KEEP_US": "1000"})
    t.ok(signed_in(a.whole(p)), "a provider whose documents are kept for a millisecond")
    before = [p.asked.count(f"/realm/{x}") for x in (".well-known/openid-configuration", "jwks")]
    p.published = ["rsa-2"]
    got = a.whole(p, change=lambda h, c: h.update(kid="rsa-2"))
    after = [p.asked.count(f"/realm/{x}") for x in (".well-known/openid-configuration", "jwks")]
    t.ok(signed_in(got) and all(x < y for x, y in zip(before, after)), "they are read again", (before, after))
    p.broken = True
    t.ok(signed_in(a.whole(p, change=lambda h, c: h.update(kid="rsa-2"))), "and stay good while they cannot be read")
    p.broken, p.published = False, ["rsa-1"]
    a.close()


def unreachable(t, pg, p, env):
    """Addresses and documents that are refused before anything is sent to them."""
    a = Login(pg, env={**env, "DROVER_OIDC_ALLOW_NET": f"127.0.0.1:{p.port + 1}"})
    asked = len(p.asked)
    s, text, _ = a.page("/login/oidc")
    t.ok(s == 503 and "127.0.0.1, a private address or port" in text and len(p.asked) == asked, "a private address that is not allowed is not asked", text)
    a.close()
    a = Login(pg, env=env)
    p.document = {"issuer": p.issuer + "/"}
    s, text, _ = a.page("/login/oidc")
    t.ok(s == 503 and "is of the issuer" in text, "a discovery document of another issuer is refused", text)
    asked = len(p.asked)
    t.ok(a.page("/login/oidc")[0] == 503 and len(p.asked) == asked, "and for some seconds not asked for again")
    a.close()
    p.document = {"jwks_uri": "file:///etc/passwd"}
    a = Login(pg, env=env)
    s, text, _ = a.page("/login/oidc")
    t.ok(s == 503 and "no usable jwks_uri" in text, "nor one with an address that is none", text)
    a.close()


def by_socket(path, url, headers):
    """Status, text and headers of a request that a proxy passes on."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(patience(60))
        s.connect(path)
        s.sendall(f"GET {url} HTTP/1.1\r\nHost: drover.test\r\nConnection: close\r\n{''.join(f'{k}: {v}' + chr(13) + chr(10) for k, v in headers)}\r\n".encode())
        r = http.client.HTTPResponse(s)
        r.begin()
        return r.status, r.read().decode(), {k.lower(): v for k, v in r.getheaders()}


def proxy(t, pg):
    """A proxy on this machine that says who asks: by its socket, and by nothing else."""
    with tempfile.TemporaryDirectory(prefix="drover-sso-") as d:
        path = d + "/sso.sock"
        a = Login(pg, env={"DROVER_SSO_SOCKET": path, "DROVER_LOGIN_ROLES": "operator=data, admin=ops"})
        ada = [("X-Forwarded-User", "ada@example.com"), ("X-Forwarded-Groups", "staff, data"), ("X-Forwarded-For", "6.6.6.6, 192.0.2.9")]
        t.eq((a.get("/v1/login", headers=dict(ada), token=False)[1], a.raw("GET", "/login/proxy", headers=dict(ada), token=False)[0]), ({"ways": []}, 404), "what the port is told of a user is not believed")
        t.eq(os.stat(path).st_mode & 0o777, 0o660, "the socket is its owner's and group's")
        t.ok('"name":"ada@example.com","path":"/login/proxy"' in by_socket(path, "/v1/login", ada)[1], "the login page offers it")
        got = by_socket(path, "/login/proxy?return_to=/pools", ada)
        t.eq((got[0], got[2].get("location")), (303, "/pools"), "the proxy's user signs in")
        mine = signed_in(got)
        who = json.loads(by_socket(path, "/v1/session", [*ada, ("Cookie", mine)])[1])
        t.eq((who["name"], who["role"], a.audit("token.login")[0]["detail"]["address"]), ("ada@example.com", "operator", "192.0.2.9"), "with the role of the groups; the audit has the address that the proxy saw")
        t.eq(by_socket(path, "/v1/campaigns", [("Cookie", mine)])[0], 200, "the session is one as any other")
        t.eq(by_socket(path, "/v1/session", [("X-Forwarded-User", "eve"), ("Cookie", mine)])[0], 401, "but not another user's")
        t.eq(by_socket(path, "/v1/session", [("X-Forwarded-User", "eve"), ("Authorization", "Bearer " + a.token)])[0], 200, "tokens go on working")
        for what, headers, status, word in (("no user", ada[1:], 401, "does not say who you are"), ("two users", [*ada, ("x-forwarded-user", "root")], 401, "does not say who you are"),
                                            ("an empty user", [("X-Forwarded-User", ""), *ada[1:]], 401, "does not say"), ("no role", [ada[0], ("X-Forwarded-Groups", "staff")], 403, "has no role here")):
            before = len(a.audit("token.login_refused"))
            s, text, h = got = by_socket(path, "/login/proxy", [("Accept", "text/html"), *headers])
            t.ok(s == status and word in html.unescape(text) and "set-cookie" not in h and len(a.audit("token.login_refused")) == before + 1, f"{what}: refused with a page and a row of the audit", got)
        d2 = Droverd(DROVER_DATABASE_URL=pg.conninfo(a.db), DROVER_SSO_SOCKET=path)
        t.ok(d2.ended(10)[0] not in (0, None) and "another process does" in d2.text(), "a second droverd at the path ends with the reason", d2.text())
        d2.close()
        a.kill()
        b = Login(pg, env=a.env, db=a.db)
        t.eq(by_socket(path, "/v1/session", [*ada, ("Cookie", mine)])[0], 200, "after kill -9 the next one takes the path")
        code, log = b.close()
        t.ok(code == 0 and not os.path.exists(path), "and removes it at its end", log[-2000:])


def settings(t, pg, env):
    db = pg.conninfo(pg.database())
    good = {**env, "DROVER_OIDC_CLIENT_ID": "x", "DROVER_DATABASE_URL": db}
    for change, reason in (({"DROVER_OIDC_ALLOW_NET": ""}, "http is for private addresses"), ({"DROVER_PUBLIC_URL": ""}, "oidc_issuer needs public_url"), ({"DROVER_PUBLIC_URL": "https://x/y"}, "without a path"),
                           ({"DROVER_OIDC_ISSUER": "login.example.com"}, "write https://login.example.com"), ({"DROVER_LOGIN_ROLES": "root=x"}, "write admin=GROUP"), ({"DROVER_LOGIN_ROLES": ""}, "write admin=GROUP"),
                           ({"DROVER_OIDC_ALLOW_NET": "10.0.0.0"}, "oidc_allow_net"), ({"DROVER_OIDC_CLIENT_SECRET_FILE": "/nonexistent"}, "cannot read '/nonexistent'")):
        d = Droverd(**{**good, **change})
        status = d.ended(10)[0]
        t.ok(status not in (0, None) and reason in d.text(), f"{change}: it does not start, and says why", (status, d.text()))
        d.close()


def run(t, pg):
    p = Provider()
    env = {"DROVER_OIDC_ISSUER": p.issuer, "DROVER_PUBLIC_URL": "http://drover.test", "DROVER_OIDC_ALLOW_NET": f"127.0.0.1:{p.port}", "DROVER_OIDC_NAME": "Example Login",
           "DROVER_LOGIN_ROLES": "admin=drover-admin, operator=drover-operator, viewer=*"}
    try:
        a = Login(pg, env=env)
        person = logins(t, a, p)
        refusals(t, a, p)
        taken(t, a, p, person)
        code, log = a.close()
        t.ok(code == 0, "droverd ends cleanly", log[-2000:])
        rotation(t, pg, p, env)
        kept(t, pg, p, env)
        unreachable(t, pg, p, env)
        proxy(t, pg)
        settings(t, pg, env)
    finally:
        p.close()


if __name__ == "__main__":
    main(run)
