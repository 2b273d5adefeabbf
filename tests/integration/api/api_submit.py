"""Campaigns that are submitted, for api_rest.py. Aim: a key is answered once, a live name is taken once, each fault of a file is told with
its place, and what is too large is refused. Method: files, good and bad, several at once.
"""
import re
import subprocess
import threading
import uuid

from kit import wait_for
from kit.api import EIGHT, PSQL, spec

YAML = {"Content-Type": "application/yaml"}


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
    for query in ("", "?dry_run=true"):
        s, b, _ = a.call("POST", "/v1/campaigns" + query, spec(extra=f"    environment: {{FROM: \"{'{uri}' * 40}\"}}"), {**YAML, "Idempotency-Key": str(uuid.uuid4())})
        e = b["errors"][0]
        t.ok(s == 422 and e["pointer"] == "stages.download" and e["line"] == 5 and e["message"].startswith("part 0: FROM is ") and e["message"].endswith("takes 512"),
             f"POST{query}: a part of which no request can be made: 422 with the part, the field and the limit", b)
    a.sql("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.xlarge', 204000, 'test'); INSERT INTO quota (instance_type, limit_n) VALUES ('ml.c5.xlarge', 4)")
    s, b, _ = a.submit(spec(top="budget: 0.01 USD"))
    t.ok(s == 409 and b["code"] == "budget" and "0.01" in b["errors"][0]["message"], "a step no cap admits is refused with both numbers", b)
    s, b, _ = a.call("POST", "/v1/campaigns?dry_run=true", spec(top="budget: 900 USD"), YAML)
    st = b["stages"][0]
    # 0.204 USD/h x (3600 + 120 + 900) s = 0.2618 USD
    t.ok(s == 200 and b["parts"]["total"] == 20 and st["worst_case_micro_usd_per_part"] == 261800 and b["worst_case_micro_usd"] == 20 * 261800
         and st["quota"]["limit"] == 4 and [(w["code"], w["stage"]) for w in b["warnings"]] == [("image_registry", "download")], "a dry run is the plan", b)
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
