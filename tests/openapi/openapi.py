#!/usr/bin/env python3
"""Aim: /openapi.json is right, and so is what the server does: linters find nothing, a client made of it compiles, every
answer to requests made of it is one that it describes, what it does not allow is refused, and who may do what is as it
says, cell by cell. Method: the API's own server over a small world of every kind of row; SQL plays the leader.

usage: openapi.py [N]    N: requests, 10,000 when absent; SEED=n: those of another seed; ONLY=lint,roles,owners,rules,campaign,requests
"""
import base64
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kit import TOP, patience
from kit.api import EIGHT, Api, leader_fails, leader_takes, main, spec
from integration.api import api_runs
from owners import check_owners

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = {**os.environ, "PACKAGES": os.path.join(TOP, "build/openapi/")}
ROLES = ("public", "viewer", "operator", "admin")
YAML, LINES = "application/yaml", "application/x-ndjson"


def node(script, *args, limit=600):
    run = subprocess.run(["node", os.path.join(HERE, script), *args], env=PACKAGES, capture_output=True, text=True, timeout=patience(limit), check=False)
    if run.returncode or not run.stdout:
        raise RuntimeError(f"{script}: {run.stderr[-3000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def world(a):
    """Rows of every kind; what is there, by the names of parameters and of members of bodies."""
    a.sql("""INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.xlarge', 204000, 'test'), ('ml.p3.2xlarge', 3600000, 'test');
        INSERT INTO quota (instance_type, limit_n) VALUES ('ml.c5.xlarge', 4)""")
    a.objects("data", [f"meta/{i}.parquet" for i in range(12)])
    for name in ("one", "two", "three", "four"):
        a.submit(spec(name, '{from: "s3://data/meta/*.parquet"}' if name != "four" else "{from: api}"))
    leader_takes(a, 1)
    leader_fails(a, 1, (3, 5, 8), 7)
    leader_fails(a, 1, (2,), 8, "killed")
    runs = a.submit(api_runs.FILE.replace("NAME", "runs"))[1]["id"]
    number = runs[2:]
    leader_takes(a, int(number))
    rng = api_runs.random.Random(1)
    for row in api_runs.RUNS:
        api_runs.put_run(a, number, *row, rng)
    a.post("/v1/campaigns/c-1:retry", {"selector": {"parts": [3]}})
    a.post("/v1/campaigns/c-1:skip", {"selector": {"parts": [5]}})
    a.sql("""INSERT INTO pool (attempt_id, campaign_id, stage_id, state, fingerprint, instance_type, instances, keep_alive_s)
            SELECT id, campaign_id, stage_id, 'available', 1, 'ml.c5.xlarge', 1, 600 FROM attempt ORDER BY id LIMIT 2;
        INSERT INTO parked (kind, ref_id, campaign_id, reason) VALUES ('campaign', 2, 2, 'refused'), ('part', 1, 1, 'refused');
        INSERT INTO stray (name, campaign_id, why, instance_type, instances, price_musd_per_hour, reserved_musd)
            SELECT 'd-9-lost-' || i || '-a1', 1, 'lost', 'ml.c5.xlarge', 1, 204000, 9 FROM generate_series(1, 2000) i;
        INSERT INTO stray (name, kind, there, holds, why, instance_type, instances, price_musd_per_hour, reserved_musd, started_at)
            VALUES ('d-9-serve-0-a1-00', 'endpoint', true, false, 'lost', '', 1, 0, 0, clock_timestamp());
        INSERT INTO endpoint (stage_id, campaign_id, n, state, name, instance_type, instances, ttl_s, price_musd_per_hour, reserved_musd, intended_at, delete_after, in_service_at, off_at)
            SELECT id, campaign_id, 1, 'in_service', 'd-1-serve-0-a' || id || '-00', 'ml.c5.xlarge', 1, 3600, 204000, 9,
                clock_timestamp(), clock_timestamp(), clock_timestamp(), clock_timestamp() FROM stage;
        INSERT INTO filesystem (stage_id, campaign_id, n, state, token, size_gib, deployment, ttl_s, keep, exports, import_from, price_musd_per_gb_month, reserved_musd,
            intended_at, created_at, available_at, delete_after)
            SELECT id, campaign_id, 1, 'available', 'd-1-volume-0-a' || id || '-00', 1200, 'SCRATCH_2', 3600, false, true, 's3://data/meta/', 140000, 9,
                clock_timestamp(), clock_timestamp(), clock_timestamp(), clock_timestamp() FROM stage""")
    a.sql("""UPDATE stage_run SET state = 'held', reason = 'gate: loss is 4' WHERE campaign_id = 2;
        UPDATE campaign_run SET state = 'succeeded', ended_at = clock_timestamp() WHERE campaign_id = 3; DELETE FROM endpoint WHERE campaign_id = 3; DELETE FROM filesystem WHERE campaign_id = 3""")
    source = gzip.compress(b"x" * 2000, mtime=0)
    digest = hashlib.sha256(source).hexdigest()
    a.raw("PUT", f"/v1/sources/{digest}", source, {"Content-Type": "application/gzip"})
    tokens = {role: a.post("/v1/tokens", {"name": role, "role": role})[1]["token"] for role in ROLES[1:]}
    spare = [a.post("/v1/tokens", {"name": "spare", "role": "viewer"})[1]["id"] for _ in range(4)]
    for i in range(6):
        a.post("/v1/webhooks", {"name": f"hook {i}", **({"url": "mailto:a@example.com"} if i == 4 else {"url": "https://example.com/secret", "format": ("json", "slack", "teams")[i % 3]}), **({"project": "default"} if i % 2 else {})})
        a.post(f"/v1/webhooks/w-{i + 1}/test", {})
    a.sql("UPDATE webhook_delivery SET state = 'failed', tries = 9, status = 500, problem = 'answered 500', tried_at = clock_timestamp(), ended_at = clock_timestamp() WHERE id = 1")
    for _ in range(40):
        a.post("/v1/login", {"token": tokens["viewer"]}, token=False)
    texts = [{"type": YAML, "body": spec(f"made-{i}", "{from: api}")} for i in range(6)]
    texts += [{"type": YAML, "body": t} for t in ("", "{", "a: b: c", "name: x", spec(fan_out="{from: 7}"), spec(extra="priorty: 1"), "\x01")]
    texts += [{"type": "application/json", "body": t} for t in ("{}", "[]", '{"name": "x", "stages": []}', '{"version": 1}')]
    lines = [{"type": LINES, "body": t} for t in ('{"uri":"s3://b/1","size":3}\n{"uri":"s3://b/2","vars":{"k":"v"}}\n', "", "{}\n", "x\n", '{"uri":7}\n')]
    known = {"campaign": ["c-1", "c-1", "c-1", "c-2", "c-3", "c-4", runs, runs], "part": [3, 0, 1, 2, 5, 8], "stage": ["download", "train-1"], "*": ["download"],
             "operation": ["op-1", "op-2", "op-3"], "session": [f"s-{i}" for i in range(1, 60)], "webhook": [f"w-{i}" for i in range(1, 7)], "delivery": ["d-1"], "project": ["default"], "token": spare,
             "endpoint": ["d-1-serve-0-a1-00", "d-1-serve-0-a2-00"], "filesystem": ["d-1-volume-0-a1-00"], "quota": ["ml.c5.xlarge"], "job": [f"d-9-lost-{i}-a1" for i in range(1, 9)], "code": ["not_found", "method"],
             "attempt": [0, 1], "tag": ["team"], "name": ["loss"], "group": ["train"], "metric": ["images_per_second"], "a": ["train-1"], "b": ["train-2", "train-4"],
             "cause": ["disk_full", "oom"], "filter": ["state=failed", "attempts>=1"], "what_if": ["parts=3"], "live_name": ["refuse"], "who": ["token file", "spare"], "action": ["campaign", "campaign.submit"],
             "fields": ["state", "campaign,state", "id"], "order_by": ["state", "campaign desc", "id", "id desc", "created_at", "cause desc"], "instance_type": ["ml.c5.xlarge"], "sha256": [digest], "smoke": ["0a1b2c3d4e5f"], "parts": [[3, 8], "2,8"], "projects": [["default"]]}
    trained = {"campaign": [runs], "stage": ["train-1", "train-2"], "part": [0], "attempt": [0, 1]}
    of = {"parts_post": {"campaign": ["c-4"]}, "campaign_archive": {"campaign": ["c-3"]}, "campaign_override": {"campaign": ["c-2"]}, "campaign_cancel": {"campaign": ["c-2"]},
          "delivery_resend": {"webhook": ["w-1"]}, "webhook_delete": {"webhook": ["w-5", "w-6"]}, "campaign_retry": {"campaign": ["c-1"]}, "campaign_skip": {"campaign": ["c-1"]}, "campaign_hold": {"campaign": ["c-1"]}, "campaign_release": {"campaign": ["c-1"]}, "endpoint_delete": {"endpoint": ["d-1-serve-0-a2-00"]},
          "operation_cancel": {"operation": [f"op-{i}" for i in range(1, 9)]}, "pool_end": {"job": a.sql("SELECT string_agg(a.name, ' ') FROM pool p JOIN attempt a ON a.id = p.attempt_id").split()},
          **dict.fromkeys(("logs_get", "metric_points_get", "metrics_get", "scaling_get", "compare_get", "metrics_list"), trained)}
    return tokens, known, of, {"campaign_post": texts, "parts_post": lines, "source_put": [{"type": "application/gzip", "base64": base64.b64encode(source).decode()}], "endpoint_ask": [{"type": t, "body": "1,2"} for t in ("text/csv", "application/octet-stream", "application/json")]}


def check_lint(t, a, folder):
    path, broken = os.path.join(folder, "openapi.json"), os.path.join(folder, "broken.json")
    text = a.raw("GET", "/openapi.json", token=False)[1]
    with open(path, "wb") as f:
        f.write(text)
    document = json.loads(text)
    del document["paths"]["/livez"]["get"]["operationId"], document["paths"]["/livez"]["get"]["description"]
    with open(broken, "w", encoding="utf-8") as f:
        json.dump(document, f)
    found = node("lint.mjs", path, folder, broken)
    t.eq(found["redocly"], [], "Redocly's recommended rules find nothing")
    t.eq(found["spectral"], [], "nor do Spectral's")
    t.eq(found["typescript"], [], "a client with the types of openapi-typescript compiles")
    t.ok(any("no-such-state" in line for line in found["planted"]), "and does not with a state that there is not", found["planted"])
    found = found["broken"]
    t.ok(any("operation-operationId" in line for line in found["redocly"]) and any("operation-description" in line for line in found["spectral"]),
         "both linters see a planted fault", found)


def check_roles(t, a, document, tokens):
    """Every operation with no token and with one of each role. Ids are of nothing, so that nothing changes."""
    ids = {"campaign": "c-999", "operation": "op-999", "webhook": "w-999", "delivery": "d-999", "session": "s-999", "part": "0"}
    wrong, cells = [], 0
    for pattern, methods in document["paths"].items():
        path = re.sub(r"\{(\w+)\}", lambda m: ids.get(m[1], "nobody"), pattern)
        if path.endswith("/events"):
            path += "?after=x"  # refused after the role is checked: no stream is opened
        for method, op in methods.items():
            for query, needed in (("", op["x-role"]), ("?dry_run=true", op.get("x-dry-run-role"))):
                for i, role in enumerate(ROLES if needed else ()):
                    status = a.raw(method.upper(), path + query, b"[" if method != "get" else None, {"Content-Type": "application/json"},
                                   token=tokens[role] if i else False)[0]
                    refused = 0 if i >= ROLES.index(needed) else 403 if i else 401
                    cells += 1
                    if (status in (401, 403) or refused) and status != refused:
                        wrong.append((method, path + query, role, status, refused))
    t.ok(not wrong and cells > 230, f"who may do what: {cells} cells of role and operation are as the document says", wrong)


def check_rules(t, a, document, known, of):
    """What every resource does, whatever it is."""
    wrong, n, packed, refused = [], 0, 0, 0
    for pattern, methods in document["paths"].items():
        there = {**known, **of.get(methods.get("get", {}).get("operationId"), {})}
        path = re.sub(r"\{(\w+)\}", lambda m: str(there[m[1]][0]), pattern)
        status, text, head = a.raw("OPTIONS", path, token=False)
        allowed = {m.upper() for m in methods} | {"OPTIONS"} | ({"HEAD"} if "get" in methods else set())
        if status != 204 or text or set(head["allow"].split(", ")) != allowed:
            wrong.append(("OPTIONS", path, status, head.get("allow")))
        for other in {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"} - allowed:
            status, _, head = a.raw(other, path)
            refused += 1
            if status != 405 or sorted(head.get("allow", "").split(", ")) != sorted(allowed):
                wrong.append((other, path, status, head.get("allow")))
        if "get" not in methods or path.endswith("/events") or "304" not in methods["get"]["responses"]:
            continue
        needed = [p for p in (resolved(document, p) for p in methods["get"]["parameters"]) if p["in"] == "query" and (p["required"] or p["name"] == "stage")]
        path += "?" + "&".join(f"{p['name']}={there[p['name']][0]}" for p in needed)
        n += 1
        for _ in range(20):  # an answer with the time in it is another one each time
            status, plain, head = a.raw("GET", path)
            again, nothing, _ = a.raw("GET", path, headers={"If-None-Match": 'W/"x", ' + head.get("etag", "")})
            if status != 200 or (again, nothing) == (304, b"") or path.startswith(("/livez", "/metrics")) and again == 200:
                break
        else:
            wrong.append(("no 304", path, status, again, nothing[:80]))
        status, text, head = a.raw("GET", path, headers={"Accept-Encoding": "br, gzip;q=0.5"})
        if status != 200 or ("content-encoding" in head) != (len(plain) >= 1400) or "content-encoding" in head and head.get("vary") != "Accept-Encoding":
            wrong.append(("gzip", path, status, len(plain), head))
        elif "content-encoding" in head:
            packed += 1
            json.loads(gzip.decompress(text)) if head["content-type"] == "application/json" else gzip.decompress(text)
        if a.raw("GET", path, headers={"Accept-Encoding": "gzip;q=0"})[2].get("content-encoding"):
            wrong.append(("gzip that was refused", path))
    t.ok(not wrong and n > 30 and packed >= 5 and refused > 3 * len(document["paths"]), f"{n} resources: ETag and 304, gzip when it is worth it ({packed}), OPTIONS, and 405 with Allow for each of {refused} methods they lack", (n, packed, refused, wrong))
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    heads = [a.raw("GET", "/v1/session", headers={"traceparent": x})[2] for x in (trace, trace.upper(), trace[:-1], trace + "0", trace.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32),
             trace.replace("00f067aa0ba902b7", "0" * 16), "01" + trace[2:], "x" * 5000)]
    t.eq([h.get("traceparent") for h in heads], [trace] + [None] * 7, "a traceparent is returned when it is one")
    rid = heads[0]["x-request-id"]
    with open(a.dir + "/log", encoding="utf-8") as f:
        line = next(x for x in map(json.loads, f) if x.get("request_id") == rid)
    t.eq(line["trace_id"], trace[3:35], "and its trace is in the log line")


def resolved(document, x):
    for key in x["$ref"][2:].split("/"):
        document = document[key]
    return document


def mutations():
    """A campaign file with one thing wrong at a time that a schema can see."""
    good = spec("fine", "{from: api}")
    for a, b in (("version: 1", "version: 2"), ("name: fine", "priorty: 5"), ("name: fine", "name: fine\nnotify: me"), ("worker: download", "worker: downlaod"),
                 ("ml.c5.xlarge", "c5.xlarge"), ("max_runtime: 1h", "max_runtime: soon"), ("max_runtime: 1h", "max_runtime: 4 hours"), ("max_runtime: 1h", "max_runtime: 3600"), ("max_runtime: 1h", "volume_gb: -1"),
                 ("max_runtime: 1h", "instance_count: 0"), ("max_runtime: 1h", "volume_size: 225"), ("max_runtime: 1h", "spot: maybe"), ("name: fine", "name: fine\nbudget: 900"),
                 ("name: fine", "name: fine\nlimits: {parts: 0}"), ("name: fine", "name: fine\nsecurity: {role: me}"), ("  - name: download", "  - name: 7up"),
                 ("{from: api}", "{form: api}"), ("max_runtime: 1h", "kind: luster"), ("max_runtime: 1h", "metrics: [{name: loss}]"), ("stages:", "stage:")):
        yield a + " -> " + b, good.replace(a, b, 1)
    stage = good[good.index("  - name: download"):]
    yield "33 stages", good + "".join(stage.replace("download", f"s{i}", 1) for i in range(32))


MAPS = """
{name: maps, limits: {parts: 3}, security: {encrypt_traffic: off}, retry: [{cause: disk_full, change: {volume_gb: x2, max: 400}}], budget: {stages: {a: {total: 5 USD}}}, stages: [
  {name: a, instance_type: ml.c5.xlarge, worker: copy, limits: {parts: 2}, expect: {duration: 1h}, verify: {exists: "s3://b/k"}, done_if: {exists: "s3://b/k"}, auth: {secret: "arn:aws:ssm:r:1:parameter/x"},
   vpc: {subnets: [subnet-0a1b2c3d]}, warm_pool: {keep_alive: 5m}, fan_out: {count: 4}, breaker: {same: 2, of: 4}, hang: {silent: 5m}, compiler: {debug: on}, gate: {metric: x, below: 3},
   metrics: [{name: x, regex: x}],
   distribution: {smdistributed: {dataparallel: {enabled: true}, modelparallel: {enabled: true}}, mpi: {processes_per_host: 8}, pytorchddp: {enabled: true}}},
  {name: b, instance_type: ml.c5.xlarge, image: x, distribution: {kind: mpi, processes_per_host: 2}, matrix: {instance_count: [1, 2]}, checkpoint: {to: "s3://b/c/"},
   input: {a: {from: "s3://b/", shuffle_seed: 7}}, image_config: {access: Platform}, debugger: {collections: [{name: a}], rules: [{name: a, image: x, volume_gb: 5}]},
   profiler: {interval_ms: 500}, tensorboard: {to: "s3://b/t/"}, experiment: {name: e}},
  {name: f, instance_type: ml.c5.xlarge, image: x, input: {b: {file_system: fs-0123456789abcdef0, path: /x}}},
  {name: c, kind: lustre, ttl: 1h, expect: {bytes: 5}}, {name: d, kind: endpoint, ttl: 1h, model: {stage: a}, smoke_test: {payloads: [x], p95_ms: 5}}]}
"""
FREE = {"vars", "tags", "hyperparameters", "environment", "parameters", "of", "instances", "input", "matrix", "axes"}  # maps whose keys are the user's


def changed(value, path, found):
    """Copies of a file with a key that nothing has in one map, or a number that nothing takes, each (path, change) once."""
    stages = path[-2:] == ("budget", "stages")
    if isinstance(value, dict):
        free = stages or (path and path[-1] in FREE and not (len(path) > 1 and path[-2] == "gate"))
        if not free:
            found.setdefault((path, "key" + (" of " + next(iter(value)) if path[-1:] in (("*",), ("expect",), ("distribution",)) else "")), {**value, "unheard": 1})
        for key, child in value.items():
            name = "*" if free else key
            for (at, what), one in changed(child, (*path, name), {}).items():
                if not (free and path[-1] != "input" and not stages):
                    found.setdefault((at, what), {**value, key: one})
    elif isinstance(value, list) and path and path[-1] != "payloads":
        for i, child in enumerate(value):
            for (at, what), one in changed(child, (*path, "[]"), {}).items():
                found.setdefault((at, what), [*value[:i], one, *value[i + 1:]])
    elif isinstance(value, int) and not isinstance(value, bool) and path[-2:-1] != ("gate",):
        found[(path, "number")] = -5
    return found


def check_strangers(t, a, schema):
    """What the schema refuses in each map of the file, the server refuses there, too."""
    found = changed(yaml.load(MAPS, Loader=Yaml12), (), {})
    files = [[".".join(at) + " " + what, value] for (at, what), value in found.items()]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump({"schema": schema, "files": [["as it is", yaml.load(MAPS, Loader=Yaml12)], *files]}, f)
        f.flush()
        got = node("campaign.mjs", f.name)
    t.eq(got.pop("as it is"), [], f"the schema accepts a file with every map, which {len(files)} changes are made of")
    maps = open(TOP + "/orchestrator/core/spec/campaign_key.def", encoding="utf-8").read().count("\nM(") - 1  # a matrix has keys of its own
    t.eq(sum(" key" in name for name in got), maps, "every map of the table is among them")
    t.eq([name for name, faults in got.items() if not faults], [], "the schema refuses each unheard key and each number out of range")
    taken = []
    for name, value in files:
        answer = a.call("POST", "/v1/campaigns?dry_run=true", json.dumps(value), {"Content-Type": "application/json"})[1]
        ends, code = (".unheard", "unknown_key") if " key" in name else ("", "range")
        faults = [x for x in answer["errors"] if x["code"] == code and ("unheard" in x["pointer"]) == bool(ends)]
        if not faults:
            taken.append((name, answer["errors"][:2]))
    t.eq(taken, [], "as the server does, at the same place")


def check_campaign(t, a):
    """The schema of a campaign file against files, and against what the server says of the same files."""
    folder = TOP + "/deploy/examples/"
    corpus = TOP + "/tests/fuzz/corpus/spec/"
    texts = {name: open(folder + name, encoding="utf-8").read() for name in sorted(os.listdir(folder)) if name.endswith(".yaml")}
    texts.update({name: open(corpus + name, encoding="utf-8").read() for name in sorted(os.listdir(corpus)) if name != "broken.yaml"})
    texts["EIGHT"] = EIGHT
    texts.update(mutations())
    files = [[name, yaml.load(text, Loader=Yaml12)] for name, text in texts.items()]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump({"schema": json.loads(a.raw("GET", "/schemas/campaign.json", token=False)[1]), "files": files}, f)
        f.flush()
        got = node("campaign.mjs", f.name)
    dry = {name: a.call("POST", "/v1/campaigns?dry_run=true", text, {"Content-Type": YAML})[:2] for name, text in texts.items()}
    broken = {"broken.yaml", "EIGHT", *(name for name, _ in mutations())}
    t.eq({name: e for name, e in got.items() if e and name not in broken}, {}, f"the schema accepts {len(texts) - len(broken)} files")
    t.eq([name for name in broken if not got[name]], [], f"it refuses {len(broken)} broken ones")
    t.eq([(name, dry[name]) for name in broken if dry[name][0] != 422], [], "as the server does")
    check_strangers(t, a, json.loads(a.raw("GET", "/schemas/campaign.json", token=False)[1]))


class Yaml12(yaml.SafeLoader):
    """on, off, yes and no are words, as in YAML 1.2 and in drover."""


Yaml12.yaml_implicit_resolvers = {k: [(tag, rx) for tag, rx in v if tag != "tag:yaml.org,2002:bool"] for k, v in yaml.SafeLoader.yaml_implicit_resolvers.items()}
Yaml12.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), "tf")


def check_views(t, a, document, known):
    """fields and order_by of every list that has them: the rows of the whole list, with fewer members or in another order."""
    wrong, lists, ordered = [], 0, 0
    for path, methods in document["paths"].items():
        names = {resolved(document, p)["name"] for p in methods.get("get", {}).get("parameters", [])}
        if "fields" not in names:
            continue
        lists += 1
        path = re.sub(r"\{(\w+)\}", lambda m: str(known[m[1]][0]), path)
        whole = a.get(path)[1]
        key = next(k for k, v in whole.items() if isinstance(v, list))
        rows = whole[key]
        if not rows:
            wrong.append((path, "no rows"))
            continue
        pick = [list(rows[0])[-1], list(rows[0])[0]]
        status, some, _ = a.get(f"{path}?fields={','.join(pick)}")
        if status != 200 or [list(x) for x in some[key]] != [pick] * len(rows) or [x[pick[1]] for x in some[key]] != [x[pick[1]] for x in rows] or set(some) != set(whole):
            wrong.append((path, pick, status, some))
        paged = "page_token" in names  # their order is the server's: api-rest reads them in each
        for q in ("fields=id,no_such_member", "fields=", "fields=state,", "order_by=no_such_member", "order_by=state%20down"):
            status, problem, _ = a.get(f"{path}?{q}")
            of_rows = "no_such" in q and not (paged and "order_by" in q)
            if status != 400 or of_rows and not all(m in problem["detail"] for m in pick):
                wrong.append((path, q, status, problem))
        for member in [m for m in rows[0] if not paged and all(isinstance(x[m], (int, float, str, bool, type(None))) for x in rows)]:
            for q in (member, member + "%20desc"):
                got = a.get(f"{path}?order_by={q}&fields={member},{pick[1]}")[1][key]
                values = [x[member] for x in got]
                there = [v for v in values if v is not None]
                right = sorted(there, key=lambda v: v.encode() if isinstance(v, str) else v, reverse=q != member)
                ordered += len(set(there)) > 1
                if there != right or any(v is not None for v in values[len(there):]) or sorted(str(x[pick[1]]) for x in got) != sorted(str(x[pick[1]]) for x in rows):
                    wrong.append((path, q, values))
    t.ok(not wrong and lists == 8 and ordered >= 20, f"fields of {lists} lists and {ordered} orders of rows", (lists, ordered, wrong))


def check_requests(t, a, tokens, known, of, texts, count):
    seed = int(os.environ.get("SEED", "1"))
    got = node("requests.mjs", json.dumps({"port": a.port, "seed": seed, "count": count, "token": tokens["admin"], "secrets": [tokens["viewer"]], "known": known, "of": of, "texts": texts}), limit=3000)
    print(f"# seed {seed}: {got['asked']} requests to {got['operations']} operations, {got['good']} answered 2xx")
    t.eq(got["wrong"], [], f"{count} requests, good and broken: every answer is described, what is broken is refused")
    t.ok(got["asked"] >= count or got["wrong"], "all were asked", got["asked"])
    t.eq(got["never"], [], "every operation answered 2xx at least once")
    t.ok(got["unfit"] == [] and got["examples"] > 60, f"its {got['examples']} examples fit", got["unfit"])
    t.ok(len(got["pages"]) >= 7 and all(s == 200 for _, s in got["pages"]), f"the types of {len(got['pages'])} problems are pages", got["pages"])


def run(t, pg):
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    only = os.environ.get("ONLY", "lint,roles,rules,campaign,requests,owners").split(",")
    a = Api(pg)
    try:
        tokens, known, of, texts = world(a)
        document = json.loads(a.raw("GET", "/openapi.json", token=False)[1])
        if "lint" in only:
            with tempfile.TemporaryDirectory() as folder:
                check_lint(t, a, folder)
        if "roles" in only:
            check_roles(t, a, document, tokens)
        if "rules" in only:
            check_rules(t, a, document, known, of)
            check_views(t, a, document, known)
        if "campaign" in only:
            check_campaign(t, a)
        if "requests" in only:
            check_requests(t, a, tokens, known, of, texts, count)
        if "owners" in only:
            check_owners(t, a, document)
    finally:
        status, log = a.close()
    t.ok(status == 0, "the server ends by itself", (status, log[-2000:]))


if __name__ == "__main__":
    main(run)
