"""Secrets, for api_safe.py: what looks like a key is refused, values are an admin's, and a canary in every text shows up nowhere.
"""
import json
import re
import uuid

from api_room import token
from kit import TOP
from kit.api import Api, filled, spec


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
