"""What many or large requests may take of the API, for api_safe.py: streams, bodies, the reserve for probes, forecasts, dear answers, numbers
without bound. Nobody takes another's place.
"""
import glob
import json
import os
import re
import socket
import subprocess
import threading
import time
import uuid

from api_start import Droverd
from kit import VARIANT, free_port, patience, wait_for
from kit.api import PSQL, Api, leader_fails, leader_takes, spec


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


def spooled(t, pg):
    """Bodies that are spooled take a bounded amount of the disk all together, too."""
    a = Api(pg, env={"API_SPOOLED_MAX": str(8 << 20)})
    cid = a.submit(spec("spooled", "{from: api}"))[1]["id"]
    lines = b'{"uri":"s3://b/1"}\n' + b" " * (1 << 20)
    head = f"POST /v1/campaigns/{cid}/parts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {a.token}\r\nContent-Length: {len(lines)}\r\n\r\n".encode()
    on_disk = lambda: sum(os.stat(f).st_size for f in glob.glob(f"/proc/{a.p.pid}/fd/*") if "(deleted)" in os.readlink(f))  # noqa: E731
    held = [open_socket(a, head + lines[:-1]) for _ in range(20)]
    t.ok(wait_for(lambda: drained(a), 20), "20 bodies of 1 MB were read")
    t.ok(wait_for(lambda: on_disk() <= 8 << 20, 5), f"they hold {on_disk()} bytes of the disk (8 MB are allowed)")
    for s in held:
        s.sendall(b"\n")
    got = [s.recv(4096).decode() for s in held]
    codes = [int(x.split(" ", 2)[1]) for x in got]
    t.ok(set(codes) == {201, 503} and 4 <= codes.count(201) <= 8, "those over the bound hear 503", codes)
    t.ok(all("\r\nRetry-After: " in x for x in got if " 503 " in x[:16]), "and when to come again", got)
    t.eq(a.raw("POST", f"/v1/campaigns/{cid}/parts", lines)[0], 201, "afterwards there is room again")
    t.eq(int(a.sql(f"SELECT count(*) FROM task WHERE campaign_id = {cid[2:]}")), codes.count(201) + 1, "every 201 has its part, and no 503 has")
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
    word = "too large to forecast"
    t.ok(VARIANT == "asan" and f.get("reason") == word or  # ASan takes three times the CPU that a forecast may have
         f["remaining"] == n and abs(f["ends_in_seconds"] / want - 1) < 0.05 and abs(f["parts_per_hour"] / (n / want * 3600) - 1) < 0.05, "nine million parts on 20 slots are forecast", f)
    f = a.get(f"/v1/campaigns/{ids[1]}/forecast")[1]
    t.ok(VARIANT == "asan" and f.get("reason") == word or 250 <= f["ends_in_seconds"] <= 2000, "and two parts beside them, which have half of the slots", f)
    a.sql("INSERT INTO project (name) SELECT 'p' || i FROM generate_series(1, 4200) i; UPDATE stage_run SET done = done + 1, waiting = waiting - 1")  # more than a forecast takes in
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
    t.ok("without 3 other campaigns, of lower priority or unreadable" in said, "and the command line says it", said)
    a.sql("UPDATE campaign SET wanted = 'pause' WHERE id IN (4, 5, 6); UPDATE stage_run SET waiting = waiting - 1, done = done + 1 WHERE campaign_id = " + mine[2:])
    f = wait_for(lambda: (lambda f: f if f["finished"] == 2 else None)(a.get(f"/v1/campaigns/{mine}/forecast")[1]), 30)
    t.ok("campaigns_left_out" not in f["campaign"], "beside 200 none is left out", f)
    code, log = a.close()
    t.ok(code == 0, "the server ends cleanly", log[-2000:])


def unread(t, pg):
    """One campaign's file that this droverd cannot read takes the forecast from no other one; of its own it is said why there is none."""
    a = Api(pg)
    a.sql("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.xlarge', 204000, 'test'); INSERT INTO quota (instance_type, limit_n) VALUES ('ml.c5.xlarge', 1)")
    newer, mine = [a.submit(spec(name, "{from: api}", "    expect: {duration: 70s}"))[1]["id"] for name in ("newer", "mine")]
    for cid in (newer, mine):
        a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", "".join('{"uri":"s3://b/%d"}\n' % i for i in range(4)).encode())
        leader_takes(a, int(cid[2:]))
    for written in ('{"version": 99, "stages": 7}', "[]"):
        a.sql(f"UPDATE campaign SET spec = '{written}' WHERE id = {newer[2:]}; UPDATE stage_run SET waiting = waiting - 1, done = done + 1")
        status, f, _ = a.get(f"/v1/campaigns/{mine}/forecast")
        t.ok(status == 200 and f["campaign"]["end"]["p50_seconds"] < 2000 and f["campaign"]["campaigns_left_out"] == 1, f"beside {written}: a forecast, which says that one is left out", (status, f))
        said = a.drover("priority", mine, "50", "--dry-run").stdout
        t.ok("without 1 other campaigns, of lower priority or unreadable" in said, "which may be of any priority, as the command line says", said)
        said = [(x[0], x[1].get("starts") is not None) for x in (a.get(f"/v1/campaigns/{mine}/parts/{n}/why") for n in (0, 1))]
        t.eq(said, [(200, True)] * 2, "and why its parts wait")
        dry = a.call("POST", "/v1/campaigns?dry_run=true", spec("third", "{from: api}", "    expect: {duration: 70s}").encode(), {"Content-Type": "application/yaml"})
        t.ok(dry[0] == 200 and dry[1]["forecast"]["known"], "a dry run has a forecast", dry)
        word = "this droverd cannot read its file: drover parked says why"
        status, f, _ = a.get(f"/v1/campaigns/{newer}/forecast?what_if=parts=8")
        t.eq((status, f.get("reason"), [f.get(k, {}).get("known") for k in ("campaign", "what_if")], f.get("ends_at")), (200, word, [False, False], None), "of its own: why there is none")
        status, f, _ = a.get(f"/v1/campaigns/{newer}/parts/1/why")
        t.eq((status, f.get("starts_unknown"), f.get("changes")), (200, word, []), "nor when a part of it starts")
    leader_fails(a, int(newer[2:]), (0,), 7)
    status, f, _ = a.post(f"/v1/campaigns/{newer}:retry?dry_run=true", {"selector": {"state": "failed"}})
    t.eq((status, f.get("parts"), f.get("forecast", {}).get("reason")), (200, 1, word), "a retry of it is previewed")
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
