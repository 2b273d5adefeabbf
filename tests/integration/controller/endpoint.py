#!/usr/bin/env python3
"""A stage of kind endpoint on a real droverd, drover-local and PostgreSQL: it comes into service, passes its smoke test, answers, and
its model, config and itself are deleted when its ttl is over, also when droverd was down then, or when nobody asks it. It is
extended, within the budgets. Killed at random moments droverd makes one endpoint and deletes it. What failed is deleted with its
reason. The ledger equals drover-local's invoice throughout.
"""
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, wait_for
from kit.local import send, sign
from kit.stack import KEY, SECRET, Stack, rng_from_args

TYPE = "ml.m5.large"
SERVER = r"""
import http.server, os, sys, time
if sys.argv[1] == "train":
    while os.path.exists(os.environ.get("HOLD", "/nowhere")): time.sleep(0.1)
    with open(os.environ["DROVER_ML_ROOT"] + "/model/weights", "w") as f: f.write("trained")
    sys.exit(int(os.environ.get("STATUS", "0")))
trained = open(os.environ["DROVER_ML_ROOT"] + "/model/weights").read()
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def say(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.say(200, b"")
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.say(400 if body == b"bad" else 200, trained.encode() + b" <" + body + b">")
http.server.ThreadingHTTPServer((os.environ["DROVER_HOST_ADDRESS"], int(os.environ["SAGEMAKER_BIND_TO_PORT"])), H).serve_forever()
"""
LOCAL = {"prices": {TYPE: "0.115", "hosting:" + TYPE: "36"}, "endpoint_quotas": {TYPE: 6}, "endpoint_start_seconds": 0.3,
         "endpoint_stop_seconds": 2}


def campaign(name, ttl="2s", payloads='[{"rows": [1, 2]}, "plain"]', more="", top="", count=2, extra=""):
    return f"""version: 1
name: {name}
{top}
retry:
  - {{cause: [capacity], wait: 1s..1s, times: forever, counts: no}}
stages:
  - name: deploy
    kind: endpoint
    model: {{data: "s3://drover-test/models/model.tar.gz", image: "drover/server:test"}}
    instance_type: {TYPE}
    instance_count: {count}
    ttl: {ttl}
{extra}
    smoke_test: {{payloads: {payloads}, p95_ms: 30000}}
{more}
"""


def model_file(s):
    path = s.dir + "/aws/s3/drover-test/models/model.tar.gz"
    os.makedirs(os.path.dirname(path))
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo("weights")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"abc"))
    with open(os.path.dirname(path) + "/payloads.json", "w") as f:
        f.write('[{"a": 1}, "b"]')


def ended(s, cid, state="succeeded", seconds=60):
    c = wait_for(lambda: s.ended(cid), seconds, f"the end of {cid}")
    return c["state"] == state, c


def row(s, cid, what):
    return s.sql(f"SELECT {what} FROM endpoint WHERE campaign_id = {cid[2:]} ORDER BY n DESC LIMIT 1")


def gone(s, cid, seconds=60):
    wait_for(lambda: row(s, cid, "state") in ("deleted", "failed"), seconds, f"the endpoint of {cid} is gone")


def deleted_by_hand(s, cid):
    s.api("DELETE", f"/endpoints/{row(s, cid, 'name')}")
    gone(s, cid)


def accepted(s, operation):
    names = [r["name"] for r in s.oracle("wire-log")["requests"] if r["operation"] == operation and r["accepted"]]
    return sorted(names)


def left(s):
    """What drover-local still has: models, configs, endpoints made and not deleted, by the wire log of this suite's own reader."""
    kept = {}
    for thing in ("Model", "EndpointConfig", "Endpoint"):
        kept[thing] = sorted(set(accepted(s, "Create" + thing)) - {r["name"] for r in s.oracle("wire-log")["requests"]
                                                                   if r["operation"] == "Delete" + thing and r["status"] == 200})
    return kept


def check(tap, s, what, exact=True):
    none = {"Model": [], "EndpointConfig": [], "Endpoint": []}
    tap.ok(left(s) == none, f"{what}: nothing is left at AWS", left(s))
    for thing in ("Model", "EndpointConfig", "Endpoint"):
        names = accepted(s, "Create" + thing)
        tap.ok(len(names) == len(set(names)), f"{what}: each Create{thing} was accepted once ({len(names)})", names)
    if exact:
        s.check_invoice(tap, what + ": ")
    tap.eq(s.sql("SELECT count(*) FROM check_counters()"), "0", f"{what}: every sum is what it is the sum of")
    tap.eq(s.sql("SELECT coalesce(sum(reserved_musd), 0) FROM money"), "0", f"{what}: nothing stays reserved")


def invoke(s, name, body=b'"x"'):
    url, path = f"http://127.0.0.1:{s.local_port}", f"/endpoints/{name}/invocations"
    headers = sign(url, "sagemaker", "POST", path, body, {"Content-Type": "application/json"}, KEY, SECRET)
    return send(url, "POST", path, headers, body)[::2]


def test_life(tap, s):
    cid = s.submit(campaign("life", ttl="12s"))
    good, c = ended(s, cid)
    tap.ok(good, "the campaign succeeds when its endpoint serves and has passed its test", c)
    name = row(s, cid, "name")
    tap.eq(row(s, cid, "state || ' ' || passed || ' ' || (p95_us > 0)"), "in_service true true", "in service, tested")
    body = b'{"rows": [3]}'
    tap.eq(invoke(s, name, body), (200, b"abc <" + body + b">"), "it answers")
    gone(s, cid)
    tap.eq(row(s, cid, "state || ': ' || reason || ' ' || estimated"), "deleted: its ttl is over false", "deleted by its ttl")
    lived = float(row(s, cid, "extract(epoch FROM off_at - in_service_at)"))
    tap.ok(12 <= lived < 60, f"after {lived:.2f} s of 12", lived)
    check(tap, s, "life")


def test_model_of_a_stage(tap, s):
    cid = s.submit(f"""version: 1
name: trained
stages:
  - {{name: train, image: "drover/server:test", instance_type: {TYPE}, max_runtime: 5m, output: "s3://drover-test/out/"}}
  - {{name: deploy, kind: endpoint, needs: train, model: train, instance_type: {TYPE}, ttl: 1h, smoke_test: ["x"]}}
""")
    good, c = ended(s, cid)
    tap.ok(good, "a training and the endpoint of its model", c)
    job = s.sql(f"SELECT name FROM attempt WHERE campaign_id = {cid[2:]}")
    model = s.sql(f"SELECT convert_from(model_request, 'UTF8')::jsonb->'PrimaryContainer'->>'ModelDataUrl' FROM endpoint WHERE campaign_id = {cid[2:]}")
    tap.eq(model, f"s3://drover-test/out/{job}/output/model.tar.gz", "it serves what the job has made")
    deleted_by_hand(s, cid)
    cost = s.api("GET", f"/campaigns/{cid}/cost?by=phase")
    got = {p["phase"]: (p["seconds"], p["micro_usd"]) for p in cost["by_phase"]}
    tap.eq((got["hosting"], [sum(p[i] for p in got.values()) for i in (0, 1)]),
           (tuple(int(row(s, cid, x)) for x in ("billable_s", "cost_musd")), [cost["metered"][k] for k in ("seconds", "micro_usd")]), "by phase the endpoint is hosting, and all adds up to the ledger")
    check(tap, s, "trained")


def training(name, more="", train=""):
    return f"""version: 1
name: {name}
stages:
  - {{name: train, image: "drover/server:test", instance_type: {TYPE}, max_runtime: 5m, output: "s3://drover-test/out/"{train}}}
{more}
  - {{name: deploy, kind: endpoint, needs: [train{", other" if more else ""}], model: train, instance_type: {TYPE}, ttl: 1h, smoke_test: ["x"]}}
"""


def test_model_nobody_tells(tap, s):
    """AWS does not answer about the model of one: it says what it waits for, and the others deploy."""
    hold = s.dir + "/hold"
    open(hold, "w").close()
    other = f'  - {{name: other, image: "drover/server:test", instance_type: {TYPE}, max_runtime: 5m, output: "s3://drover-test/out/", environment: {{HOLD: "{hold}"}}}}'
    silent = s.submit(training("silent", other))
    done = f"FROM attempt a JOIN stage g ON g.id = a.stage_id WHERE a.campaign_id = {silent[2:]} AND g.name = 'train' AND a.state = 8"
    wait_for(lambda: s.sql(f"SELECT count(*) {done}") == "1", 60, "its training has ended")
    job = s.sql(f"SELECT a.name {done}")
    s.faults({"operation": "DescribeTrainingJob", "name_contains": job, "kind": "error_500", "times": 100000})
    os.unlink(hold)
    reason = f"SELECT r.wait_reason FROM stage_run r JOIN stage g ON g.id = r.stage_id WHERE r.campaign_id = {silent[2:]} AND g.name = 'deploy'"
    wait_for(lambda: s.sql(reason) == "model", 60, "it waits for its model")
    cid = s.submit(training("beside"))
    good, c = ended(s, cid)
    tap.ok(good, "AWS says nothing about one model: another endpoint deploys", c)
    deleted_by_hand(s, cid)
    s.faults()
    good, c = ended(s, silent)
    tap.ok(good, "and so does the first when AWS answers again", c)
    deleted_by_hand(s, silent)
    none = s.submit(training("none", train=", environment: {STATUS: '1'}, allow_failed: 100%, canary: off, breaker: off, retry: [{cause: [user_code, unknown], times: 0}]"))
    good, c = ended(s, none, "failed")
    tap.ok(good and "no job of stage train has ended well" in c["stages"][1]["reason"], "without a model its stage fails, and says why", c)
    check(tap, s, "models")


def test_failures(tap, s):
    cid = s.submit(campaign("untrue", payloads='["good", "bad"]'))
    good, c = ended(s, cid, "failed")
    tap.ok(good and "payload 2 was answered with 400" in c["stages"][0]["reason"], "a smoke test that fails fails the stage, with the answer", c)
    s.faults({"operation": "CreateEndpoint", "kind": "capacity", "times": 1})
    again = s.submit(campaign("capacity", ttl="1h", payloads='"s3://drover-test/models/payloads.json"'))
    good, c = ended(s, again)
    tap.ok(good and row(s, again, "n") == "2", "one that found no capacity is deleted and tried again under the next name", c)
    deleted_by_hand(s, again)
    hand = s.submit(campaign("by-hand", ttl="1h", payloads='["x"]'))
    ended(s, hand)
    listed = [e for e in s.api("GET", "/endpoints")["endpoints"] if e["campaign"] == hand]
    tap.eq([(e["state"], e["micro_usd_per_hour"], e["tested"]) for e in listed], [("in_service", 72000000, True)], "the list shows it with its price")
    deleted_by_hand(s, hand)
    tap.eq(row(s, hand, "state || ': ' || reason"), "deleted: a person asked for it", "deleted by hand, long before its ttl")
    stop = s.submit(campaign("stopped", ttl="1h"))
    wait_for(lambda: s.sql(f"SELECT count(*) FROM endpoint WHERE campaign_id = {stop[2:]} AND made > 0") == "1", 20, "it is made")
    s.api("POST", f"/campaigns/{stop}:cancel", {})
    good, c = ended(s, stop, "cancelled")
    tap.eq((good, row(s, stop, "state")), (True, "deleted"), "a cancelled campaign ends when its endpoint is gone")
    second = f"  - {{name: second, kind: endpoint, model: {{data: 's3://drover-test/models/model.tar.gz', image: 'drover/server:test'}}, instance_type: {TYPE}, instance_count: 2, ttl: 1h}}"
    broke = s.submit(campaign("broke", ttl="1h", top="budget: 150 USD", more=second))
    told = wait_for(lambda: next((x for x in s.api("GET", f"/campaigns/{broke}")["stages"] if x["wait_reason"] == "budget"), None), 20, "it waits for money")
    c = s.api("GET", f"/campaigns/{broke}")
    listed = next(x for x in s.api("GET", "/campaigns")["campaigns"] if x["id"] == broke)
    tap.ok(told["wait_text"] == c["waits_for"] == listed["waits_for"] and told["wait_text"] and [g["kind"] for g in c["guidance"]] == ["budget"] and c["guidance"][0]["stage"] == told["name"],
           "and the campaign, the list and the guidance say so", (told, c, listed))
    tap.eq([x["wait_reason"] for x in c["stages"] if x["name"] != told["name"]], [None], "the one that has its endpoint waits for nothing")
    tap.eq(s.sql(f"SELECT count(*) FROM endpoint WHERE campaign_id = {broke[2:]}"), "1", "an endpoint for whose ttl no money is left waits")
    s.api("POST", f"/campaigns/{broke}:cancel", {})
    ended(s, broke, "cancelled")
    check(tap, s, "failures")


def cli(s, *args, data=None):
    """(exit status, stdout, stderr) of drover endpoints."""
    env = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{s.ports['droverd0']}", "DROVER_TOKEN_FILE": s.token_file, "NO_COLOR": "1"}
    r = subprocess.run([s.bin + "/drover", "endpoints", *args], env=env, input=data, capture_output=True, check=False)
    return r.returncode, r.stdout.decode(), r.stderr.decode()


def test_invoke(tap, s, name):
    """The model is asked through droverd."""
    with open(s.dir + "/question", "wb") as f:
        f.write(bytes(range(256)))
    tap.eq(cli(s, "invoke", name, "--data", '{"rows": [4]}'), (0, 'abc <{"rows": [4]}>', ""), "drover endpoints invoke prints what the model answers")
    r = subprocess.run([s.bin + "/drover", "endpoints", "invoke", name, "--data", "@" + s.dir + "/question", "--content-type", "application/x-bytes"], capture_output=True, check=False,
                       env={**os.environ, "DROVER_URL": f"http://127.0.0.1:{s.ports['droverd0']}", "DROVER_TOKEN_FILE": s.token_file})
    tap.eq((r.returncode, r.stdout), (0, b"abc <" + bytes(range(256)) + b">"), "every byte of a file's, and of the answer's")
    tap.eq(cli(s, "invoke", name, "--data", "@-", data=b"from stdin")[:2], (0, "abc <from stdin>"), "and of stdin's")
    status, out, err = cli(s, "invoke", name, "--data", "bad")
    tap.ok(status == 1 and out == "" and "the model answered with 400: abc <bad>" in err, "a model's error is told with its words", (status, out, err))
    tap.eq([cli(s, "invoke", *a)[0] for a in ((name,), (name, "--data", "@/none"), ("none", "--data", "x"), (name, "--data", "x", "--content-type", "csv"))], [2, 2, 3, 2], "no data, no file, no endpoint, no type")
    asked = [r for r in s.oracle("wire-log")["requests"] if r["operation"] == "InvokeEndpoint" and r["name"] == name]
    tap.ok(len(asked) == 6 and all(r["signed"] for r in asked), "by signed requests, one each", asked)


def test_extend(tap, s):
    """A later end is taken with the money for it, or refused where a cap has no room; never an earlier one."""
    cid = s.submit(campaign("extended", ttl="1h", top="budget: 300 USD"))
    ended(s, cid)
    name = row(s, cid, "name")
    held = int(row(s, cid, "reserved_musd"))
    status, out, err = cli(s, "extend", name, "--ttl", "2h", "-y")
    tap.ok(status == 0 and f"{name}: is to live until" in out, "extend says until when it is to live", (status, out, err))
    wait_for(lambda: row(s, cid, "extend_seen = extend_asked") == "t", 20, "the leader has answered")
    tap.eq(row(s, cid, "delete_after >= extend_asked AND delete_after < extend_asked + interval '1 s' AND delete_after - now() > interval '1 h 30 m'"), "t", "it ends then")
    ttl, now = (int(row(s, cid, x)) for x in ("ttl_s", "reserved_musd"))
    tap.eq(now, 2 * 36000000 * (ttl + 1020) // 3600, "and has so much reserved as its new ttl may cost")
    tap.eq(s.sql(f"SELECT amount_musd FROM ledger WHERE entry = 'extend' AND campaign_id = {cid[2:]}"), str(now - held), "what it reserves more is a line of the ledger")
    tap.eq(s.sql("SELECT count(*) FROM check_counters()"), "0", "every sum is what it is the sum of")
    status, out, err = cli(s, "extend", name, "--ttl", "30m", "-y")
    tap.ok(status == 5 and "which is later" in err, "an earlier end is refused", (status, err))
    status, out, err = cli(s, "extend", name, "--ttl", "3h")
    tap.ok(status == 2 and "not extended" in err, "without a terminal -y says that it may cost more", (status, err))
    status, out, err = cli(s, "extend", name, "--ttl", "5h", "-y")
    tap.ok(status == 6 and "the budget of its campaign has" in err, "the campaign's budget has no room for 5 h", (status, err))
    spent = int(s.sql("SELECT reserved_musd + spent_musd FROM money WHERE level = 'global'"))
    for what, path, words in (("project", "/projects/default", "its project"), ("installation", "/limits", "the installation")):
        s.api("PATCH", path, {"budget": {"total": f"{spent / 1e6 + 1:.2f} USD"}}, {"If-Match": "*"})
        status, out, err = cli(s, "extend", name, "--ttl", "3h", "-y")
        tap.ok(status == 6 and f"the budget of {words} has" in err, f"so the {what}'s", (status, err))
        if what == "installation":  # asked past the API's check: the leader refuses it, too
            s.sql(f"UPDATE endpoint SET extend_asked = now() + interval '3 h' WHERE name = '{name}'")
            wait_for(lambda: row(s, cid, "extend_seen = extend_asked") == "t", 20, "the leader has answered")
            tap.eq((int(row(s, cid, "ttl_s")), int(row(s, cid, "reserved_musd"))), (ttl, now), "the leader refuses what no cap has room for, and all stays as it was")
            status, out, err = cli(s, "show", name)
            tap.ok("not extended to" in out and "asked to live" not in out, "and show says so", out)
        s.api("PATCH", path, {"budget": None}, {"If-Match": "*"})
    status, body, head = s.raw("GET", f"/v1/endpoints/{name}", i=0)
    etag, one = head["ETag"], json.loads(body)
    tap.eq((one["state"], one["model"], one["endpoint_config"], one["endpoint"], one["tested"], one["estimated"], one["ttl_seconds"]),
           ("in_service", name, name, name, True, True, ttl), "one endpoint: its state, the names of its requests, its test")
    tap.ok(one["since"] == one["in_service_at"] and one["cost_micro_usd"] > 0 and one["p95_us"] > 0 and one["extend_to"] is None, "since when, what it costs so far, its p95", one)
    for what, headers, want in (("without If-Match", {}, 428), ("with an old one", {"If-Match": '"e00000000"'}, 412), ("with the one read", {"If-Match": etag, "Idempotency-Key": "x-1"}, 202),
                                ("the same once more", {"If-Match": etag, "Idempotency-Key": "x-1"}, 202), ("with the one of before", {"If-Match": etag}, 412)):
        status, body, _ = s.raw("PATCH", f"/v1/endpoints/{name}", b'{"ttl": "150m"}', {"Content-Type": "application/json", **headers}, 0)
        tap.eq(status, want, f"PATCH {what}: {want}")
    for body in ({}, {"ttl": 7200}, {"ttl": "31d"}, {"ttl": "0s"}, {"ttl": "2h", "x": 1}):
        status = s.raw("PATCH", f"/v1/endpoints/{name}", json.dumps(body).encode(), {"Content-Type": "application/json", "If-Match": "*"}, 0)[0]
        tap.ok(status in (400, 422), f"PATCH {json.dumps(body)} is refused", status)
    tap.eq([cli(s, *a)[0] for a in (("show", "none"), ("extend", "none", "--ttl", "1h", "-y"), ("extend", name), ("extend",))], [3, 3, 2, 2], "no such endpoint, no ttl, no name")
    test_invoke(tap, s, name)
    deleted_by_hand(s, cid)
    tap.eq((cli(s, "extend", name, "--ttl", "9h", "-y")[0], cli(s, "invoke", name, "--data", "x")[0]), (5, 5), "one that is gone lives no longer, nor answers")
    status, out, err = cli(s, "show", name, "-o", "json")
    tap.ok(status == 0 and json.loads(out)["ended_at"] and not json.loads(out)["estimated"], "but is shown", (status, err))
    check(tap, s, "extended")


def test_idle(tap, s):
    """Nobody asks: deleted after its `idle`, its own smoke test or not, and only once the figures are known. Asked again and again: it
    lives. The minute that the file says is shortened in the row while droverd is down, so are the setting's minutes of delay.
    """
    alone, asked = (s.submit(campaign(n, ttl="1h", count=1, extra="    idle: 1m")) for n in ("alone", "asked"))
    for cid in (alone, asked):
        good, c = ended(s, cid)
        tap.ok(good and row(s, cid, "idle_s || ' ' || state") == "60 in_service", f"{cid} with idle is taken, and succeeds", c)
    name = row(s, asked, "name")
    s.kill("droverd0")
    tap.eq(invoke(s, name)[0], 200, "one of them is asked")
    s.sql("UPDATE endpoint SET idle_s = 4 WHERE idle_s = 60")
    s.faults({"operation": "GetMetricStatistics", "kind": "error_500", "times": 3}, {"operation": "GetMetricStatistics", "kind": "wrong_json", "times": 3})
    s.start_droverd(0, env={"DROVER_INVOCATION_INTERVAL_US": "300000", "DROVER_INVOCATION_DELAY_US": "1000000"})
    wait_for(lambda: invoke(s, name)[0] != 200 or float(row(s, asked, "extract(epoch FROM now() - in_service_at)")) > 20, 240, "its age")
    gone(s, alone, 240)
    tap.eq(row(s, alone, "reason || ' ' || failed"), "idle for 4 s false", "nobody asked: deleted, with that reason")
    quiet = float(row(s, alone, "extract(epoch FROM deleting_at - in_service_at)"))
    tap.ok(quiet >= 5 and row(s, alone, "invoked_at IS NULL") == "t", f"after {quiet:.1f} s of 4 and a delay of 1; its smoke test did not count", quiet)
    gone(s, asked, 240)
    tap.eq(row(s, asked, "reason || ' ' || (invoked_at > tested_at)"), "idle for 4 s true", "the other is deleted when nobody asks it any more")
    since = float(row(s, asked, "extract(epoch FROM deleting_at - invoked_at)"))
    tap.ok(since >= 5, f"{since:.1f} s after the end of the last minute with an invocation", since)
    begin, end = (float(row(s, asked, f"extract(epoch FROM {x})")) for x in ("in_service_at", "deleting_at"))
    times = [begin] + [r["time"] for r in s.oracle("wire-log")["requests"] if r["operation"] == "InvokeEndpoint" and r["name"] == name and r["time"] < begin + 20]
    gap = max(b - a for a, b in zip(times, times[1:]))
    tap.ok(gap >= 4 or end - begin > 20, f"asked again and again, every {gap:.1f} s at most, it lived for {end - begin:.1f} s", times)  # a busy machine asks too seldom
    calls = [r["time"] for r in s.oracle("wire-log")["requests"] if r["operation"] == "GetMetricStatistics" and r["name"] == name]
    tap.ok(len(calls) - 1 <= 1.5 * (calls[-1] - calls[0]) / 0.8 + 2, f"CloudWatch was asked for it every fifth of its idle: {len(calls)} times", calls)
    status, out, err = cli(s, "show", name)
    tap.ok(status == 0 and "or after 4 s without an invocation" in out and "last invocation" in out, "show says when it was asked last", (out, err))
    s.faults()
    s.kill("droverd0")
    s.start_droverd(0)
    check(tap, s, "idle")


def test_ttl_while_down(tap, s):
    cid = s.submit(campaign("down", ttl="1h"))
    ended(s, cid)
    s.kill("droverd0")
    s.sql(f"UPDATE endpoint SET ttl_s = 1 WHERE campaign_id = {cid[2:]}")
    wait_for(lambda: row(s, cid, "in_service_at + interval '3 s' < now()") == "t", 10, "its ttl has been over for 2 s")
    s.start_droverd(0)
    gone(s, cid)
    tap.eq(row(s, cid, "reason"), "its ttl is over", "a ttl that ends while droverd is down: the endpoint is deleted after the start")
    one = s.api("GET", "/endpoints/" + row(s, cid, "name"))
    late = row(s, cid, "floor(extract(epoch FROM off_at - in_service_at) - 1)")
    tap.ok(str(one["overrun_seconds"]) == late and int(late) > 0, f"for {late} s longer than it should have, and it says so", one)
    status, out, err = cli(s, "show", one["name"])
    tap.ok(status == 0 and re.search(r"^overrun +" + late + r" s beyond its ttl, [0-9.]+ USD$", out, re.M), "as does show", (out, err))
    cid = s.submit(campaign("longer", ttl="1h"))
    ended(s, cid)
    s.kill("droverd0")
    s.sql(f"UPDATE endpoint SET ttl_s = 1, extend_asked = now() + interval '2 h' WHERE campaign_id = {cid[2:]}")
    wait_for(lambda: row(s, cid, "in_service_at + interval '1 s' < now()") == "t", 10, "its ttl is over")
    s.start_droverd(0)
    wait_for(lambda: row(s, cid, "extend_seen = extend_asked") == "t", 20, "the leader has answered")
    tap.eq(row(s, cid, "state || ' ' || (ttl_s > 7000)"), "in_service true", "unless somebody has asked for a later end before")
    deleted_by_hand(s, cid)
    check(tap, s, "down")


def test_kills(tap, s, rng, kills):
    """One whose ttl may be over before anybody tests it, and one that a person deletes, between kills."""
    short, long = s.submit(campaign("killed-short", ttl="2s")), s.submit(campaign("killed-long", ttl="1h"))
    for _ in range(kills):
        time.sleep(rng.uniform(0.1, 1.6))
        s.kill("droverd0")
        s.start_droverd(0)
    c = wait_for(lambda: s.ended(short), 90, f"the end of {short}")
    gone(s, short, 90)
    tested, why = row(s, short, "passed || '|' || reason").split("|")
    tap.eq((c["state"], why), ("succeeded" if tested == "true" else "failed", "its ttl is over"), f"killed {kills} times, {short} ends as its test says (passed: {tested})")
    good, c = ended(s, long, seconds=90)
    tap.ok(good, f"killed {kills} times, {long} succeeds", c)
    s.api("DELETE", f"/endpoints/{row(s, long, 'name')}")
    s.kill("droverd0")
    s.start_droverd(0)
    gone(s, long, 90)
    for cid in (short, long):
        tap.eq(s.sql(f"SELECT count(*) FROM endpoint WHERE campaign_id = {cid[2:]}"), "1", f"{cid}: one try, one endpoint")
    exact = s.sql("SELECT count(*) FROM endpoint WHERE estimated") == "0"
    check(tap, s, f"killed {kills} times", exact)


def main():
    tap, rng = Tap(), rng_from_args()
    with Stack("endpoint", quotas={TYPE: 2}, local=LOCAL, images={"drover/server:test": [sys.executable, "-S", "-c", SERVER]}) as s:
        with open(s.dir + "/prices.json", "w") as f:
            f.write('{"%s": "0.115", "hosting:%s": "36"}' % (TYPE, TYPE))
        model_file(s)
        s.start()
        test_life(tap, s)
        test_model_of_a_stage(tap, s)
        test_model_nobody_tells(tap, s)
        test_failures(tap, s)
        test_extend(tap, s)
        test_idle(tap, s)
        test_ttl_while_down(tap, s)
        test_kills(tap, s, rng, int(os.environ.get("KILLS", "5")))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
