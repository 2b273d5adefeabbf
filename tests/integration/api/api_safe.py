#!/usr/bin/env python3
"""The API on a network where not everybody is a friend. Aim: two servers never share an address or a private database,
empty selections and wrong settings are refused, secrets stay unseen, one client cannot use up what all share. Method:
droverd as a process for its start, the API's own server program for the rest. ONLY=word runs the checks so named."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import BIN, TOP, VARIANT, free_port, patience, wait_for
from kit.api import PSQL, Api, filled, leader_fails, leader_takes, main, spec


class Droverd:
    """A droverd process; its log is read when it has ended, or by wait."""

    def __init__(self, *args, **env):
        self.dir = tempfile.TemporaryDirectory(prefix="drover-safe-")
        self.log = open(self.dir.name + "/log", "wb")
        e = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "DROVER_"))}
        e |= {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
              "DROVER_TOKEN_FILE": self.dir.name + "/token", "DROVER_LISTEN": "127.0.0.1:0", **env}
        self.listen = e["DROVER_LISTEN"]
        self.p = subprocess.Popen([BIN + "/droverd", *args], env=e, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)

    def text(self):
        with open(self.dir.name + "/log", encoding="utf-8") as f:
            return f.read()

    def said(self, *words, seconds=20):
        return wait_for(lambda: all(w in self.text() for w in words) or self.p.poll() is not None, seconds) and all(w in self.text() for w in words)

    def ended(self, seconds=20):
        """Exit status; None when it runs on."""
        return wait_for(lambda: [self.p.poll()] if self.p.poll() is not None else None, seconds, step=0.01) or [None]

    def close(self, sig=signal.SIGTERM):
        if self.p.poll() is None:
            self.p.send_signal(sig)
        try:
            return self.p.wait(30)
        finally:
            self.log.close()
            self.dir.cleanup()


def start_alone(t, pg):
    """One droverd per address; one private database."""
    port, db = free_port(), pg.conninfo(pg.database())
    listen = f"127.0.0.1:{port}"
    first = Droverd(DROVER_DATABASE_URL=db, DROVER_LISTEN=listen)
    t.ok(first.said("droverd_started"), "droverd starts", first.text())
    second = Droverd(DROVER_DATABASE_URL=db, DROVER_LISTEN=listen)
    status = second.ended(5)[0]
    t.ok(status == 1 and f"cannot listen on 127.0.0.1 port {port}: Address already in use" in second.text(), "a second one on its address ends with the reason",
         (status, second.text()))
    second.close()
    first.close()
    with tempfile.TemporaryDirectory(prefix="drover-safe-db-") as d:
        os.chmod(d, 0o755)
        first = Droverd("--private-db", d)
        t.ok(first.said("droverd_started", seconds=60), "droverd starts with a private database", first.text())
        second = Droverd("--private-db", d)
        status = second.ended(10)[0]
        t.ok(status == 5 and "used by another droverd" in second.text(), "a second one on the same directory ends with the reason", (status, second.text()))
        second.close()
        migrate = subprocess.run([BIN + "/droverd", "migrate", "--private-db", d], capture_output=True, text=True, check=False)
        t.eq(migrate.returncode, 5, "so does droverd migrate")
        t.ok("private_db_not_stopped" not in first.text() and first.p.poll() is None and os.path.exists(d + "/pg/data/postmaster.pid"), "and the first one keeps its database")
        first.close(signal.SIGKILL)
        first = Droverd("--private-db", d)
        t.ok(first.said("droverd_started", seconds=60), "after kill -9 the directory is free again", first.text())
        t.eq(first.close(), 0, "and it ends cleanly")


PREFIXES = (("team_a", "team-a"), ("-team.a-", "team-a"), ("__", "d"), ("a-far-too-long-name-for-it", "a-far-too-long-name-for"))  # as given, as proposed


def start_settings(t, pg):
    """Faults of the command line and the settings are reported before anything is started."""
    db = pg.conninfo(pg.database())
    wrong = (({"DROVER_LOG_LEVEL": "loud"}, "log_level 'loud': write debug, info, warn or error"), ({"DROVER_LEASE_RENEW_US": "5000000"}, "lease_renew_us 5000000: must be less than half of lease_length_us"),
             ({"DROVER_LISTEN": "127.0.0.1"}, "write ADDRESS:PORT"), ({"DROVER_LISTEN": "127.0.0.1:99999"}, "write ADDRESS:PORT"), ({"DROVER_LISTEN": "127.evil:80"}, "'127.evil' is not an IP address"),
             ({"DROVER_LISTEN": "nowhere:80"}, "'nowhere' is not an IP address"), ({"DROVER_LISTEN": ":80"}, "'' is not an IP address"), ({"DROVER_LISTEN": "0.0.0.0:80"}, "not a loopback address"),
             ({"DROVER_LISTEN": "::1:80"}, "'::1' is not an IP address"), ({"DROVER_LISTEN": "[::]:80"}, "not a loopback address"),
             *(({"DROVER_JOB_PREFIX": given}, f"job_prefix '{given}': jobs would be named {clean}-...; write job_prefix '{clean}'") for given, clean in PREFIXES))
    for env, reason in wrong:
        d = Droverd(DROVER_DATABASE_URL=db, **env)
        status = d.ended(5)[0]
        t.ok(status == 2 and reason in d.text() and "schema_ready" not in d.text(), f"{env}: exit 2 with the reason", (status, d.text()))
        d.close()
    for args, reason in ((["migrat"], "there is no command 'migrat'"), (["migrate", "now"], "migrate takes no argument")):
        d = Droverd(*args, DROVER_DATABASE_URL=db)
        status = d.ended(5)[0]
        t.ok(status == 2 and reason in d.text(), f"droverd {' '.join(args)}: exit 2 with the reason", (status, d.text()))
        d.close()
    for clean in {clean for _, clean in PREFIXES}:
        d = Droverd(DROVER_DATABASE_URL=db, DROVER_JOB_PREFIX=clean)
        t.ok(d.said("droverd_started"), f"droverd starts with the proposed job_prefix {clean}", d.text())
        d.close()
    for listen in ("localhost:0", "[::1]:0"):
        d = Droverd(DROVER_DATABASE_URL=db, DROVER_LISTEN=listen)
        t.ok(d.said("droverd_started"), f"{listen} is an address", d.text())
        d.close()


def start_waits(t, pg):
    """PostgreSQL may start later than droverd."""
    sock = tempfile.mkdtemp(prefix="drover-safe-")
    d = Droverd(DROVER_DATABASE_URL=f"host={sock} user=drover dbname=postgres", DROVER_DATABASE_WAIT_US="1000000")
    t.ok(d.ended(15)[0] == 7 and "no database for 1 s: nothing answers" in d.text(), "no PostgreSQL: droverd gives up in the end", d.text())
    d.close()
    d = Droverd(DROVER_DATABASE_URL=f"host={sock} user=drover dbname=postgres")
    t.ok(d.said("database_waited") and d.p.poll() is None, "it waits for PostgreSQL and says so", d.text())
    os.symlink(pg.dir + "/.s.PGSQL.5432", sock + "/.s.PGSQL.5432")
    t.ok(d.said("droverd_started"), "and starts when PostgreSQL answers", d.text())
    t.ok(d.text().count("database_waited") <= 6, "with few lines in its log", d.text())
    d.close()
    d = Droverd(DROVER_DATABASE_URL=f"host={pg.dir} user=drover dbname=nosuch")
    t.ok(d.ended(5)[0] == 7 and 'database "nosuch" does not exist' in d.text(), "a database that does not exist is not waited for", d.text())
    d.close()
    os.unlink(sock + "/.s.PGSQL.5432")
    os.rmdir(sock)


def token(a, name, role="viewer", **columns):
    """A token as the database keeps it; its text."""
    secret = uuid.uuid4().hex * 2
    more = "".join(f", {k}" for k in columns), "".join(f", {v}" for v in columns.values())
    a.sql(f"INSERT INTO token (id, hash, role{more[0]}) VALUES ('{name}', sha256('{secret}'), '{role}'{more[1]})")
    return f"{name}.{secret}"


def open_socket(a, text):
    s = socket.create_connection(("127.0.0.1", a.port), timeout=20)
    s.sendall(text if isinstance(text, bytes) else text.encode())
    return s


def status(s):
    """Status of the answer on a socket; 0 when it was closed without one."""
    got = b""
    while b"\r\n\r\n" not in got:
        data = s.recv(4096)
        if not data:
            break
        got += data
    return int(got.split(b" ", 2)[1]) if got else 0


def stream(a, tok, headers=""):
    s = open_socket(a, f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {tok}\r\n{headers}\r\n")
    return s, status(s)


def ends_within(s, seconds):
    """How long until the server ends the stream; None when it does not."""
    began = time.monotonic()
    s.settimeout(patience(seconds))
    try:
        while s.recv(4096):
            pass
    except (TimeoutError, ConnectionResetError):
        return None
    return time.monotonic() - began


def rss_mb(a):
    with open(f"/proc/{a.p.pid}/status", encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1]) // 1024


def drained(a):
    """Nothing that was sent to the server waits in a socket."""
    port = f":{a.port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f if "rem_address" not in line]
    return all(r[4] == "00000000:00000000" for r in rows if r[3] == "01" and port in (r[1][-5:], r[2][-5:]))


def streams(t, pg):
    """Streams are counted by token and by address, and end with their token."""
    a = Api(pg, env={"API_TRUSTED_PROXIES": "127.0.0.2, 10.0.0.0/8", "API_STREAMS_PER_ADDRESS": "5"})
    one, two = token(a, "one"), token(a, "two")
    many = [stream(a, one) for _ in range(17)]
    t.eq([st for _, st in many], [200] * 16 + [429], "sixteen streams a token, not seventeen")
    t.eq(stream(a, two)[1], 200, "another token has its own")
    many[0][0].close()
    t.ok(wait_for(lambda: stream(a, one)[1] == 200, 5), "a closed one makes room")
    a.sql("UPDATE token SET revoked_at = clock_timestamp() WHERE id = 'one'")
    took = ends_within(many[1][0], 8)
    t.ok(took is not None and took <= patience(5), f"a revoked token's streams end within 5 s ({took})")
    three = token(a, "three", expires_at="clock_timestamp() + interval '1 s'")
    s, st = stream(a, three)
    took = ends_within(s, 9)
    t.ok(st == 200 and took is not None and took <= patience(6), f"an expired token's streams end within 5 s ({took})")
    t.eq(stream(a, one)[1], 401, "and no new one opens")
    t.eq([stream(a, two, "X-Forwarded-For: 203.0.113.9\r\n")[1] for _ in range(7)], [200] * 7, "who is no proxy has no say about addresses")
    a.close()
    a = Api(pg, env={"API_TRUSTED_PROXIES": "127.0.0.0/8, 10.0.0.0/8", "API_STREAMS_PER_ADDRESS": "5"})
    four = token(a, "four")
    held = [stream(a, four, "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 203.0.113.9, 10.1.1.1\r\n") for _ in range(6)]
    t.eq([st for _, st in held], [200] * 5 + [429], "five streams an address behind a trusted proxy, not six")
    t.eq(stream(a, four, "X-Forwarded-For: 203.0.113.10\r\n")[1], 200, "another address has its own")
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


def streams_of_droverd(t, pg):
    """The limits that droverd has when nobody sets them, and its own setting of proxies."""
    db = pg.database()
    d = Droverd(DROVER_DATABASE_URL=pg.conninfo(db), DROVER_LISTEN=f"127.0.0.1:{free_port()}", DROVER_TRUSTED_PROXIES="127.0.0.0/8, 10.0.0.0/8")
    t.ok(d.said("droverd_started"), "droverd starts behind trusted proxies", d.text())
    d.port, d.sql = int(re.search(r"127\.0\.0\.1:(\d+)", d.listen)[1]), lambda text: pg.sql(db, text)
    many = [token(d, f"many-{i}") for i in range(14)]
    behind = lambda i, address: stream(d, many[i], f"X-Forwarded-For: 6.6.6.6, {address}, 10.1.1.1\r\n")  # noqa: E731
    held = [behind(i // 16, "203.0.113.9") for i in range(200)]
    t.eq({st for _, st in held}, {200}, "droverd gives an address behind its proxies 200 streams")
    t.eq([behind(i, "203.0.113.9")[1] for i in (12, 13)], [429, 429], "not one more, whatever the token is")
    held += [behind(13, "203.0.113.10") for _ in range(17)]
    t.eq([st for _, st in held[200:]], [200] * 16 + [429], "another address has its own, sixteen a token")
    held[0][0].close()
    t.ok(wait_for(lambda: behind(12, "203.0.113.9")[1] == 200, 10), "a closed one makes room")
    d.close()


def bodies(t, pg):
    """Bodies cost memory only when their token is known, and all together a bounded amount."""
    a = Api(pg, env={"API_BODIES_MAX": str(8 << 20)})
    half = b"x" * ((1 << 20) - 1)

    def post(n, auth, path="/v1/campaigns/c-1:pause"):
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\n{auth}Content-Type: application/json\r\nContent-Length: {1 << 20}\r\n\r\n"
        held = [open_socket(a, head) for _ in range(n)]
        for s in held:
            s.sendall(half)
        return held

    before = rss_mb(a)
    held = post(60, "") + post(20, "Authorization: Bearer admin-00000000." + "0" * 64 + "\r\n") + post(20, "", "/v1/nothing") + post(20, "", "/v1/login")
    t.ok(wait_for(lambda: drained(a), 20), "120 bodies were read")
    grown = rss_mb(a) - before
    most = 40 if VARIANT == "release" else 120  # a sanitizer keeps what is freed
    t.ok(grown < most, f"120 bodies of 1 MB without a token take {grown} MB (< {most})")
    for s in held:
        s.sendall(b"x")
    t.eq(sorted({status(s) for s in held}), [401, 404, 413], "and are refused")
    for s in held:
        s.close()
    before = rss_mb(a)
    held = post(80, f"Authorization: Bearer {a.token}\r\n")
    wait_for(lambda: drained(a), 20)
    grown = rss_mb(a) - before
    t.ok(grown < most, f"80 bodies of 1 MB with a token take {grown} MB (8 MB are allowed)")
    for s in held:
        s.sendall(b"x")
    got = [status(s) for s in held]
    t.ok(set(got) == {400, 503} and 1 <= got.count(400) <= 20, "those over the bound hear 503", {x: got.count(x) for x in got})
    t.eq(a.call("POST", "/v1/campaigns/c-1:pause", "[" + " " * 1000000 + "]")[0], 400, "afterwards there is room again")
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


def reserve(t, pg):
    """When connections are used up, health and counters are still answered."""
    a = Api(pg, env={"API_CONNECTIONS": "32"})
    t.eq(a.get("/v1/session")[0], 200, "the API answers")
    silent = [open_socket(a, "GET /livez HTTP/1.1\r\n") for _ in range(32)]
    got = {}
    for path in ("/livez", "/readyz", "/metrics", "/v1/session", "/"):
        try:
            got[path] = a.raw("GET", path, timeout=4)[0]
        except OSError as e:
            got[path] = str(e)
    t.eq(got, {"/livez": 200, "/readyz": 200, "/metrics": 200, "/v1/session": 503, "/": 503}, "all connections in use: probes are answered, all else hears 503")
    for s in silent:
        s.close()
    t.ok(wait_for(lambda: a.get("/v1/session")[0] == 200, 20), "and when they are closed the API answers again")
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


def secrets(t, pg):
    """Keys are refused in a campaign file; values of environment are an admin's; no secret is anywhere else."""
    a = Api(pg)
    viewer, operator = token(a, "viewer"), token(a, "operator", "operator")
    keys = {"AKIA" + "IOSFODNN7EXAMPLE": "AWS access key id", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": "AWS secret", "hf_" + "aB3" * 12: "Hugging Face", "ghp_" + "a1B2" * 9: "GitHub",
            "-----BEGIN RSA PRIVATE KEY-----": "private key", "postgresql://u:hunter2hunter2@db/x": "URL with a password", "xoxb-1234567890-abc": "Slack"}
    for value, what in keys.items():
        for place in ("environment", "hyperparameters"):
            s, b, _ = a.submit(spec("keys", "{from: api}", "    environment: {A: \"%s\"}" % value) if place == "environment" else
                               spec("keys", "{from: api}").replace("hyperparameters: {", "hyperparameters: {a: \"%s\", " % value))
            t.ok(s == 422 and b["errors"][0]["code"] == "secret" and what in b["errors"][0]["message"] and "secret reference" in b["errors"][0]["hint"] and value not in json.dumps(b)
                 and b["errors"][0]["line"] > 0, f"{what} in {place} is refused and not repeated", (s, b))
    s, b, _ = a.submit(spec("named", "{from: api}", "    environment: {HF_TOKEN: correct-horse-battery}"))
    t.ok(s == 422 and "by the name" in b["errors"][0]["message"] and "correct-horse" not in json.dumps(b), "a value under the name of a secret too", (s, b))
    fine = ("TOKENIZERS_PARALLELISM: \"false\", NAME: bert-base-uncased, SHA: da39a3ee5e6b4b0d3255bfef95601890afd80709, HF_TOKEN: \"arn:aws:secretsmanager:us-east-1:111122223333:secret:x\", "
            "URL: \"https://host.example/a?b=c\", P: /opt/ml/input, UUID: 7b1c6c7e-7a52-4b9c-9d0e-0a8f7f6f2f11")
    s, b, _ = a.submit(spec("fine", "{from: api}", "    environment: {" + fine + "}"))
    t.ok(s == 201, "hashes, paths, addresses and references are no keys", (s, b))
    canary = "canary-5d1f-values"
    s, b, _ = a.submit(spec("canary", "{from: api}", "    environment: {MODE: " + canary + ", OTHER: x}", top="vars: {hidden: " + canary + "}"))
    cid = b["id"]
    t.ok(s == 201 and canary not in json.dumps(b), "a value that is no key is taken, and not repeated", (s, b))
    a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", b'{"uri":"s3://b/1"}\n')
    for text in ("AKIA-" + canary, a.token.split(".")[0] + "." + canary.ljust(64, "0")):
        a.get("/v1/session", token=text)
        a.post("/v1/login", {"token": text}, token=False)
        a.raw("GET", "/v1/session", headers={"Cookie": "drover_session=" + text}, token=False)
    with open(TOP + "/orchestrator/api/server/routes.def", encoding="utf-8") as f:
        paths = re.findall(r'X\("GET", "(/[^"]+)"', f.read())
    paths = [filled(p, cid) for p in paths if not p.endswith("/events")]
    seen = [p for tok in (viewer, operator) for p in paths if canary.encode() in a.raw("GET", p, token=tok)[1]]
    t.ok(not seen and len(paths) > 20, f"no page of a viewer or an operator shows it ({len(paths)} routes)", seen)
    for tok in (viewer, operator):
        b = a.get(f"/v1/campaigns/{cid}/spec", token=tok)[1]
        t.ok(b["text"] is None and b["spec"]["stages"][0]["environment"] == [["MODE", "***"], ["OTHER", "***"]], "they see the names", b)
    b = a.get(f"/v1/campaigns/{cid}/spec")[1]
    t.ok(canary in b["text"] and b["spec"]["stages"][0]["environment"][0] == ["MODE", canary], "an admin sees the values", b)
    with open(a.dir + "/viewer", "w", encoding="utf-8") as f:
        f.write(viewer)
    r = a.drover("get", cid, "--spec", env={"DROVER_TOKEN_FILE": a.dir + "/viewer"})
    t.ok(r.returncode == 0 and canary not in r.stdout + r.stderr and "***" in r.stdout and "admins only" in r.stderr, "drover get --spec says so", (r.stdout, r.stderr))
    rows = a.sql("SELECT string_agg(e::text, ' ') FROM event e") + a.sql("SELECT string_agg(x::text, ' ') FROM audit x") + a.sql("SELECT string_agg(k::text, ' ') FROM idempotency_key k")
    code, log = a.close()
    t.ok(canary not in rows and canary not in log, "it is in no event, audit row, kept answer or log")
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


CANARY = "ghp_" + "a1B2c3D4e" * 4
FILE = """version: 1
name: base
stages:
  - name: one
    image: user/x:1
    fan_out: {from: api}
    instance_type: ml.c5.xlarge
    max_runtime: 1h
"""
# Places of a campaign file: what stands there, and with the canary.
IN_FILE = {"name": ("name: base", "name: KEY"), "project": ("name: base", "name: base\nproject: KEY"), "tags": ("name: base", "name: base\ntags: {a: KEY}"), "tags, a name": ("name: base", "name: base\ntags: {KEY: a}"),
           "vars": ("name: base", "name: base\nvars: {a: KEY}"), "stage": ("name: one", "name: KEY"), "image": ("user/x:1", "user/KEY:1"), "a link": ("user/x:1", "https://me:KEY@host/x"), "run time": ("1h", "KEY"),
           "type": ("ml.c5.xlarge", "ml.KEY"), "fan_out": ("from: api", "from: \"s3://b/KEY/*.x\""), "fan_out.vars": ("from: api", "from: api, vars: [KEY]"), "an unknown key": ("max_runtime", "KEY"), "no YAML": ("1h", "[KEY"),
           **{x.split(":")[0] + " " + str(i): ("    max_runtime", f"    {x}\n    max_runtime") for i, x in enumerate((
               'command: ["--token=KEY"]', 'entrypoint: ["KEY"]', "tags: {a: KEY}", "hyperparameters: {a: KEY}", "hyperparameters: {KEY: a}", "environment: {A: KEY}", "environment: {KEY: a}",
               'metrics: [{name: loss, regex: "KEY=([0-9.]+)"}]', "output: s3://b/KEY/", "inputs: {train: s3://b/KEY/}", "checkpoint: s3://b/KEY/", "done_if: s3://b/KEY", "needs: KEY", "role: arn:aws:iam::111122223333:role/KEY"))}}
# Bodies of requests: method, path, body.
IN_BODY = (("POST", "/v1/tokens", {"name": CANARY, "role": "viewer"}), ("POST", "/v1/tokens", {"name": "x", "role": CANARY}), ("POST", "/v1/tokens", {"name": "x", "role": "viewer", "projects": [CANARY]}),
           ("POST", "/v1/tokens", {"name": "x", CANARY: 1}), ("POST", "/v1/webhooks", {"name": CANARY, "url": "https://hooks.example.com/x"}), ("POST", "/v1/webhooks", {"name": "h", "url": f"ftp://me:{CANARY}@h/{CANARY}"}),
           ("POST", "/v1/webhooks", {"name": "h", "url": f"https://me:{CANARY}@h.example.com/"}), ("PATCH", "/v1/campaigns/CID", {CANARY: 1}), ("PATCH", "/v1/campaigns/CID", {"budget": CANARY}), ("PATCH", "/v1/campaigns/CID", {"deadline": CANARY}),
           ("POST", "/v1/campaigns/CID:retry", {"selector": {"cause": CANARY}}), ("POST", "/v1/campaigns/CID:retry", {"selector": {"stage": CANARY}}), ("POST", "/v1/campaigns/CID:skip", {"selector": {"parts": CANARY}}),
           ("POST", "/v1/campaigns/CID:retry", {"selector": {"state": "failed"}, "changes": {"instance_type": CANARY}}), ("POST", "/v1/campaigns/CID:override", {"stage": CANARY}), ("POST", "/v1/campaigns/CID:archive", {"to": "s3://b/" + CANARY}),
           ("POST", f"/v1/quotas/{CANARY}:request", {"value": 3}), ("POST", f"/v1/pools/{CANARY}:end", {}), ("POST", f"/v1/strays/{CANARY}:stop", {}), ("DELETE", f"/v1/endpoints/{CANARY}", {}), ("POST", "/v1/login", {"token": CANARY}))
IN_PART = ('{"uri":"s3://b/KEY"}', '{"uri":"s3://b/1","vars":{"a":"KEY"}}', '{"uri":"s3://b/1","vars":{"KEY":"a"}}', '{"uri":"s3://b/1","vars":{"a":"\\u0067%s"}}' % CANARY[1:], '{"uri":"s3://b/1","KEY":1}', '{"uri":"s3://b/1","size":"KEY"}', "KEY")


def canary_queries(a, cid):
    """Every query parameter of every GET, and every place in its path."""
    document = a.get("/openapi.json")[1]
    for pattern, methods in document["paths"].items():
        if "get" not in methods or pattern.endswith("/events"):
            continue
        path = re.sub(r"\{(\w+)\}", lambda m: {"campaign": cid, "part": "0"}.get(m[1], "one"), pattern)
        yield f"{path}?{CANARY}=1"
        for p in methods["get"]["parameters"]:
            p = document["components"]["parameters"][p["$ref"].split("/")[-1]] if "$ref" in p else p
            yield from (f"{path}?{p['name']}={x}" for x in (CANARY, f"text%3D%22{CANARY}%22") if p["in"] == "query" and p["name"] != "tag")
            yield from ([re.sub(r"\{(\w+)\}", CANARY, pattern)] if p["in"] == "path" else [])


def canary(t, pg):
    """A key in every input: what would be kept is refused, and no answer repeats it."""
    a = Api(pg)
    viewer, operator = token(a, "viewer"), token(a, "operator", "operator")
    cid = a.submit(FILE.replace("base", "fine"))[1]["id"]
    for where, (before, after) in IN_FILE.items():
        s, text, _ = a.raw("POST", "/v1/campaigns", FILE.replace(before, after.replace("KEY", CANARY)), {"Content-Type": "application/yaml", "Idempotency-Key": str(uuid.uuid4())})
        b = json.loads(text)
        t.ok(s == 422 and CANARY.encode() not in text and (where == "no YAML" or any(e["code"] == "secret" for e in b["errors"])), f"{where} of a campaign file: a key is refused and not repeated", (s, text))
    for text in IN_PART:
        s, got, _ = a.raw("POST", f"/v1/campaigns/{cid}/parts", text.replace("KEY", CANARY) + "\n", {"Content-Type": "application/x-ndjson", "Idempotency-Key": str(uuid.uuid4())})
        t.ok(s == 422 and CANARY.encode() not in got, f"a part {text}: refused and not repeated", (s, got))
    for method, path, body in IN_BODY:
        s, got, _ = a.raw(method, path.replace("CID", cid), json.dumps(body), {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4()), "If-Match": "*"}, token=operator if "campaigns" in path else True)
        t.ok(400 <= s < 500 and CANARY.encode() not in got, f"{method} {path[:40]} {json.dumps(body)[:40]}: refused and not repeated".replace(CANARY, "KEY"), (s, got))
    asked = list(canary_queries(a, cid))
    seen = [(p, s, got[:200]) for p in asked for s, got, _ in [a.raw("GET", p, token=viewer)] if CANARY.encode() in got or s >= 500]
    t.ok(not seen and len(asked) > 200, f"no answer to {len(asked)} queries and paths with it repeats it", seen)
    hook = a.post("/v1/webhooks", {"name": "mine", "url": "https://hooks.example.com/" + CANARY})[1]["id"]
    for headers in ({"Idempotency-Key": CANARY}, {"If-Match": CANARY, "Idempotency-Key": "x1"}, {"traceparent": CANARY, "User-Agent": CANARY, "Idempotency-Key": "x2"}):
        a.raw("POST", f"/v1/campaigns/{cid}:drain", "{}", {"Content-Type": "application/json", **headers})
    with open(TOP + "/orchestrator/api/server/routes.def", encoding="utf-8") as f:
        paths = {filled(p, cid).replace("invalid", hook) for p in re.findall(r'X\("GET", "(/[^"]+)"', f.read()) if not p.endswith("/events")}
    seen = [p for tok in (viewer, operator) for p in sorted(paths) if CANARY.encode() in a.raw("GET", p, token=tok)[1]]
    t.ok(not seen and len(paths) > 50, f"no page of a viewer or an operator shows it ({len(paths)} routes)", seen)
    t.ok(CANARY in json.dumps(a.get("/v1/webhooks")[1]), "the address of a webhook is an admin's, who gave it")
    tables = a.sql("SELECT string_agg(quote_ident(tablename), ' ') FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('webhook', 'idempotency_key')").split()
    kept = [x for x in tables if CANARY in a.sql(f"SELECT coalesce(string_agg(x::text, ' '), '') FROM {x} x")]
    code, log = a.close()
    t.ok(kept == [] and CANARY not in log, "it is in no other row (an answer that is kept for its key is its sender's) and no line of the log", (kept, [x for x in log.splitlines() if CANARY in x]))
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


def forecasts(t, pg):
    """A forecast takes the controller's rate of Creates and the waits after failures; what cannot run is not shown as running with an ETA."""
    text = spec("quick", "{from: api}", "    expect: {duration: 10s}")
    lines = "".join('{"uri":"s3://b/%d"}\n' % i for i in range(3600)).encode()
    ends = {}
    for rate in ("1", "0", "50"):
        a = Api(pg, env={"API_CREATES_PER_S": rate})
        a.sql("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.xlarge', 204000, 'test'); INSERT INTO quota (instance_type, limit_n) VALUES ('ml.c5.xlarge', 2000)")
        cid = a.submit(text)[1]["id"]
        a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", lines)
        leader_takes(a, int(cid[2:]))
        ends[rate] = a.get(f"/v1/campaigns/{cid}/forecast")[1]["ends_in_seconds"]
        if rate != "50":
            a.close()
    t.ok(ends["1"] >= 3600 and ends["0"] >= 3600 and 60 <= ends["50"] <= 900, "3,600 short parts at 1 and 50 Creates a second, and at a rate not known", ends)
    a.sql(f"UPDATE campaign_run SET state = 'succeeded' WHERE campaign_id = {cid[2:]}; UPDATE stage_run SET state = 'succeeded' WHERE campaign_id = {cid[2:]}")
    cid = a.submit(spec("few", "{from: api}", "    expect: {duration: 10s}"))[1]["id"]
    n = int(cid[2:])
    a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", lines[:500].rsplit(b"\n", 1)[0])
    leader_takes(a, n)
    before = a.drover("ls").stdout, a.get(f"/v1/campaigns/{cid}")[1]["waits_for"]
    t.ok("running" in before[0] and before[1] is None, "a campaign that may run is shown as running", before)
    for reason, words in (("quota_too_small", "smaller than one job"), ("price_unknown", "no price is known"), ("quota_unreadable", "cannot be read"), ("concurrency", "limits.parts"), ("budget", "a cap leaves less")):
        a.sql(f"UPDATE stage_run SET wait_reason = '{reason}', failed = failed WHERE campaign_id = {n}; UPDATE campaign_run SET state = 'running' WHERE campaign_id = {n}")
        c, row = a.get(f"/v1/campaigns/{cid}")[1], a.get("/v1/campaigns")[1]["campaigns"][0]
        shown = a.drover("ls", "-n", "1").stdout, a.drover("get", cid).stdout.splitlines()[0]
        t.ok(words in (c["waits_for"] or "") and words in (row["waits_for"] or "") and "running" not in shown[0] + shown[1].replace("wanted: run", "") and "waiting" in shown[0]
             and {"quota_too_small": "quota 2000 for ml.c5.xlarge"}.get(reason, words) in shown[1],
             f"{reason}: its state line says what it waits for", (c["waits_for"], row["waits_for"], shown))
        if reason in ("quota_too_small", "price_unknown", "quota_unreadable"):
            f = wait_for(lambda: (lambda f: f if "cannot start: " in f["reason"] else None)(a.get(f"/v1/campaigns/{cid}/forecast")[1]), 10)
            t.ok(f and f["ends_at"] is None and "cannot start: " in f["reason"], f"{reason}: and it has no ETA", f)
    for done, change, what in ((1, "UPDATE quota SET limit_n = 0", "quota 0"), (2, "UPDATE quota SET limit_n = 2000; UPDATE campaign SET parts_limit = 0", "limit 0")):
        a.sql(change + f"; UPDATE stage_run SET wait_reason = 'new', done = done + 1, waiting = waiting - 1 WHERE campaign_id = {n}")
        f = wait_for(lambda: (lambda f: f if f["finished"] == done else None)(a.get(f"/v1/campaigns/{cid}/forecast")[1]), 30)  # not one made before
        t.ok(f["ends_in_seconds"] is None and f["campaign"]["end"]["p50_seconds"] is None, f"{what}: no ETA from the forecast itself", f)
    ends = {}
    for wait in ("10s..10s", "3h..4h"):
        cid = a.submit(spec("again", "{from: api}", "    expect: {duration: 10s}") + f"retry: [{{cause: network, times: 5, wait: {wait}}}]\n")[1]["id"]
        a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", b"".join(b'{"uri":"s3://b/%d"}\n' % i for i in range(20)))
        leader_takes(a, int(cid[2:]))
        leader_fails(a, int(cid[2:]), range(10), 6, "connection reset")
        ends[wait] = a.get(f"/v1/campaigns/{cid}/forecast")[1]["campaign"]["end"]["p50_seconds"]
        a.sql(f"UPDATE campaign_run SET state = 'succeeded' WHERE campaign_id = {cid[2:]}; UPDATE stage_run SET state = 'succeeded' WHERE campaign_id = {cid[2:]}")
    t.ok(ends["10s..10s"] < 3600 and ends["3h..4h"] > 3 * 3600, "where ten of ten tries failed, the next wait as long as their cause's row says", ends)
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


def large(t, pg):
    """Waiting parts of a large stage are counted by classes of size; it is forecast, and so are others beside it."""
    a = Api(pg, env={"API_CREATES_PER_S": "50"})
    a.sql("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.xlarge', 204000, 'test'); INSERT INTO quota (instance_type, limit_n) VALUES ('ml.c5.xlarge', 20)")
    ids = [a.submit(spec(name, "{from: api}", "    expect: {duration: 70s}"))[1]["id"] for name in ("large", "small")]
    for cid in ids:
        a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", b'{"uri":"s3://b/1"}\n{"uri":"s3://b/2"}\n')
        leader_takes(a, int(cid[2:]))
    n = 9000000
    a.sql(f"UPDATE stage_run SET taken = {n}, waiting = {n} WHERE campaign_id = {ids[0][2:]}; UPDATE stage_input SET tasks = {n} WHERE campaign_id = {ids[0][2:]}")
    f = a.get(f"/v1/campaigns/{ids[0]}/forecast")[1]
    want = n / 20 * (180 + 70)  # cold starts that nobody has seen yet
    t.ok(f["remaining"] == n and abs(f["ends_in_seconds"] / want - 1) < 0.05 and abs(f["parts_per_hour"] / (n / want * 3600) - 1) < 0.05, "nine million parts on 20 slots are forecast", f)
    f = a.get(f"/v1/campaigns/{ids[1]}/forecast")[1]
    t.ok(250 <= f["ends_in_seconds"] <= 2000, "and two parts beside them, which have half of the slots", f)
    a.sql("INSERT INTO project (name) SELECT 'p' || i FROM generate_series(1, 4200) i; UPDATE stage_run SET done = done + 1, waiting = waiting - 1")  # more than a forecast takes in
    word = "too large to forecast"
    status, f, _ = a.get(f"/v1/campaigns/{ids[1]}/forecast?what_if=slots=8")
    t.ok(status == 200 and f["reason"] == word and f["ends_in_seconds"] is None and f["campaign"]["known"] is f["what_if"]["known"] is False, f"{word}: an answer that says so", (status, f))
    for query in ("", "&what_if=slots=8"):
        status, f, _ = a.call("POST", "/v1/campaigns?dry_run=true" + query, spec("third", "{from: api}", "    expect: {duration: 70s}").encode(), {"Content-Type": "application/yaml"})
        t.ok(status == 200 and f["dry_run"] and f["forecast"]["known"] is False and f["forecast"]["reason"] == word, f"a dry run{query} has all but the forecast", (status, f))
    status, f, _ = a.get(f"/v1/campaigns/{ids[1]}/parts/0/why")
    t.ok(status == 200 and f["reason"] and f.get("starts") is None, "why a part waits is said without a start", (status, f))
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


BIG = 2**63 - 1
OF_A_STAGE = ((f"instance_count: {BIG}", "from 1 to 256"), ("instance_count: 1e30", "from 1 to 256"), (f"volume_gb: {BIG}", "from 1 to 16384"), (f"limits: {{parts: {BIG}}}", "from 1 to 1000000"),
              ("max_runtime: 2000000000h", "not within 1 to 2419200 seconds"), (f"min_runtime: {BIG}s", "not within 1 to 2419200 seconds"), (f"expect: {{duration: {BIG}h}}", "a duration with its unit"),
              (f"warm_pool: {{keep_alive: {BIG}h}}", "from 1s to 60m"), (f"warm_pool: {{max_idle_cost: {BIG} USD}}", "an amount like"))
OF_LIMITS = ({"parts": BIG}, {"instances": {"ml.c5.xlarge": BIG}}, {"parts": 2**64}, {"budget": {"total": f"{BIG} USD"}})


def crowd(t, pg):
    """Beside more campaigns than a forecast looks at, the first ones count and the rest is told."""
    a = Api(pg)
    a.sql("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.xlarge', 204000, 'test'); INSERT INTO quota (instance_type, limit_n) VALUES ('ml.c5.xlarge', 1)")
    text = spec("NAME", "{from: api}", "    expect: {duration: 70s}")
    ids = [a.submit(text.replace("NAME", f"n{i}"))[1]["id"] for i in range(206)]
    mine, last = ids[0], ids[-1]
    for cid, n in ((mine, 2), (last, 20)):
        a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", "".join('{"uri":"s3://b/%d"}\n' % i for i in range(n)).encode())
        leader_takes(a, int(cid[2:]))
    a.sql("UPDATE campaign_run SET state = 'running'; UPDATE campaign SET wanted = 'pause' WHERE id IN (2, 3)")
    alone = a.get(f"/v1/campaigns/{mine}/forecast")[1]["campaign"]
    a.sql(f"UPDATE campaign SET priority = 90 WHERE id = {last[2:]}; UPDATE stage_run SET waiting = waiting - 1, done = done + 1 WHERE campaign_id = {mine[2:]}")
    f = wait_for(lambda: (lambda f: f if f["finished"] == 1 else None)(a.get(f"/v1/campaigns/{mine}/forecast")[1]), 30)
    t.eq((alone.get("campaigns_left_out"), f["campaign"].get("campaigns_left_out")), (3, 3), "203 others run: 3 are left out, and the answer says so; paused ones take no place")
    t.ok(alone["end"]["p50_seconds"] < 2000 and f["ends_in_seconds"] > 4000, "the one that starts first is looked at, however new it is", (alone["end"], f["ends_in_seconds"]))
    said = a.drover("priority", mine, "50", "--dry-run").stdout
    t.ok("without 3 other campaigns of lower priority" in said, "and the command line says it", said)
    a.sql("UPDATE campaign SET wanted = 'pause' WHERE id IN (4, 5, 6); UPDATE stage_run SET waiting = waiting - 1, done = done + 1 WHERE campaign_id = " + mine[2:])
    f = wait_for(lambda: (lambda f: f if f["finished"] == 2 else None)(a.get(f"/v1/campaigns/{mine}/forecast")[1]), 30)
    t.ok("campaigns_left_out" not in f["campaign"], "beside 200 none is left out", f)
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


def absurd(t, pg):
    """Counts, times and amounts near the end of what 64 bits hold are refused with what would fit; nothing that is taken overflows."""
    a = Api(pg)
    a.sql("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.xlarge', 204000, 'test'); INSERT INTO quota (instance_type, limit_n) VALUES ('ml.c5.xlarge', 9223372036854775807)")
    dry = lambda text, query="": a.call("POST", "/v1/campaigns?dry_run=true" + query, text.encode(), {"Content-Type": "application/yaml"})[:2]  # noqa: E731
    for line, fits in OF_A_STAGE:
        text = spec("x", "{from: api}", "    " + line)
        s, b = dry(text.replace("    max_runtime: 1h\n", "") if line.startswith("max_runtime") else text)
        e = [e for e in b.get("errors", []) if e["pointer"].startswith("stages.download." + line.split(":")[0])]
        t.ok(s == 422 and len(e) == 1 and fits in json.dumps(e), f"{line[:50]}: refused with what fits", (s, b))
    for line in (f"limits: {{instances: {{ml.c5.xlarge: {BIG}}}}}", f"budget: {{total: {BIG} USD}}"):
        s, b = dry(spec("x", "{from: api}", top=line))
        t.ok(s == 422 and len(b["errors"]) == 1, f"{line[:50]}: refused", (s, b))
    for body in OF_LIMITS:
        s, b, _ = a.call("PATCH", "/v1/limits", json.dumps(body).encode(), {"If-Match": "*"})
        t.ok(s in (400, 422) and b["detail"], f"a limit of {json.dumps(body)[:60]} is refused", (s, b))
    text = spec("x", "{from: api}", "    expect: {duration: 70s}")
    for query in (f"slots={BIG}", f"parts={2**64}"):
        s, b = dry(text, "&what_if=" + query)
        t.ok(s == 422 and b["errors"], f"what if {query[:30]}: refused", (s, b))
    a.sql("UPDATE price SET musd_per_hour = 9000000000000000000")
    s, b = dry(text)
    t.ok(s == 422 and b["code"] == "overflow" and "micro-USD an hour cost more than fits" in b["detail"], "a price whose worst case does not fit is said to be one", (s, b))
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


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
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


def keys(t, pg):
    """An idempotency key is remembered for 7 days, and not for ever."""
    a = Api(pg)
    ask = lambda name, key: a.post("/v1/campaigns", spec(name, "{from: api}"), {"Content-Type": "application/yaml", "Idempotency-Key": key})  # noqa: E731
    first = ask("key-a", "k")
    t.ok(first[0] == 201 and ask("key-a", "k")[1]["id"] == first[1]["id"], "the same key has the same answer", first)
    t.eq(ask("key-b", "k")[0], 422, "with another body it is refused")
    a.sql("INSERT INTO idempotency_key (token_id, key, body_hash, status, answer) SELECT 't', g::text, decode(repeat('00', 32), 'hex'), 200, '{}' FROM generate_series(1, 30) g;"
          "UPDATE idempotency_key SET created_at = now() - interval '6 days'")
    t.eq(ask("key-a", "k")[1]["id"], first[1]["id"], "after 6 days it still stands")
    a.sql("UPDATE idempotency_key SET created_at = now() - interval '8 days'")
    again = ask("key-b", "k")
    t.ok(again[0] == 201 and again[1]["id"] != first[1]["id"], "after 8 days it is free", again)
    t.eq(a.sql("SELECT count(*), min(created_at) < now() - interval '7 days' FROM idempotency_key"), "31|t", "the others are the leader's to delete")
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


class Locked:
    """A lock on a table that somebody else holds; waiting(): how many statements it holds up."""

    def __init__(self, a, table):
        self.a = a
        self.p = subprocess.Popen([PSQL, "-XqAt", "-h", a.pg.dir, "-U", "drover", "-d", a.db], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.p.stdin.write(f"BEGIN; LOCK TABLE {table}; SELECT 'locked';\n")
        self.p.stdin.flush()
        self.p.stdout.readline()

    def waiting(self):
        return int(self.a.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"))

    def end(self):
        self.p.stdin.close()
        self.p.wait(10)
        self.p.stdout.close()


def dear(t, pg):
    """Dear answers share half of the threads: they hold up nobody else, and none of them is refused."""
    a = Api(pg)
    a.sql("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.xlarge', 204000, 'test'); INSERT INTO quota (instance_type, limit_n) VALUES ('ml.c5.xlarge', 20)")
    ids = [a.submit(spec(f"dear-{i}", "{from: api}", "    expect: {duration: 10s}"))[1]["id"] for i in range(6)]
    for cid in ids:
        a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", b'{"uri":"s3://b/1"}\n{"uri":"s3://b/2"}\n')
        leader_takes(a, int(cid[2:]))

    def ask(paths, table, meanwhile):
        answers, ended = [], []
        lock = Locked(a, table)
        threads = [threading.Thread(target=lambda p=p: answers.append(p(a)[0])) for p in paths]
        for x in threads:
            x.start()
        held = wait_for(lambda: lock.waiting() >= 1, 10)
        ended.append(meanwhile(lock, answers) if held else None)
        lock.end()
        for x in threads:
            x.join(60)
        return answers, ended[0]

    def others(cid):
        def two(lock, answers):
            wait_for(lambda: lock.waiting() >= 3, 1)
            got = a.get("/v1/session")[0]
            cancelled = a.post(f"/v1/campaigns/{cid}:cancel")[0]
            return got, cancelled, a.get(f"/v1/campaigns/{cid}/tiles")[0], list(answers)
        return two

    for cid in ids[:5]:  # a busy machine holds the lock for longer than a statement waits for one: 504 says so
        a.sql("UPDATE stage_run SET state = state")  # new versions: no answer of the try before is remembered
        answers, during = ask([lambda a, c=c: a.get(f"/v1/campaigns/{c}/failures") for c in ids * 3], "task_failure", others(cid))
        if set(answers) != {200, 504}:
            break
    t.eq(during, (200, 202, 200, []), "18 answers that wait leave threads to /v1/session, :cancel and a dear answer of another kind, which come first")
    t.eq(answers, [200] * 18, "and are given when they can be")
    text = spec("dry", "{from: api}", "    expect: {duration: 10s}")
    dry = lambda a: a.call("POST", "/v1/campaigns?dry_run=true", text, {"Content-Type": "application/yaml"})  # noqa: E731
    for _ in range(5):  # a busy machine holds the lock for longer than a statement waits for one: 504 says so
        answers, _ = ask([lambda a, c=c: a.get(f"/v1/campaigns/{c}/forecast") for c in ids] + [dry] * 3, "stage_input", lambda lock, answers: time.sleep(0.2))
        if set(answers) != {200, 504}:
            break
    t.eq(answers, [200] * 9, "nine forecasts and dry runs at once: none is refused")
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


def run(t, pg):
    only = os.environ.get("ONLY", "")
    for check in (start_alone, start_settings, start_waits, streams, streams_of_droverd, bodies, reserve, secrets, canary, forecasts, large, crowd, absurd, sessions, tokens, audit, keys, dear):
        if only in check.__name__:
            check(t, pg)


if __name__ == "__main__":
    main(run)
