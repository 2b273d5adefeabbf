#!/usr/bin/env python3
"""Plan, forecast, what-if, why, limits and pools on a running system. Aim: every answer of the REST API and
of the command line at 80 columns is available before any cost and during a campaign and agrees with the
later events; wrong questions get one clear refusal. Method: the real PostgreSQL, drover-local, droverd and
drover; jobs that sleep for two seconds, four at a time.
"""
import json
import os
import re
import shlex
import signal
import statistics
import sys
import time
import urllib.error

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, Tap, patience, wait_for
from kit.stack import Stack

import subprocess  # noqa: E402

NAPS = 24


class Ahead(Stack):
    def __init__(self):
        super().__init__("looking-ahead", quotas={"ml.c5.xlarge": 4, "ml.m5.large": 8, "ml.r5.large": 2, "ml.c5.2xlarge": 64}, lease_us=10000000, parts=1, rows=4,
                         local={"rates": {}},  # Service Quotas names no rate of Creates: droverd's setting counts
                         images={"user/nap": ["/bin/sh", "-c", "sleep 2"]})
        os.makedirs(f"{self.dir}/aws/s3/drover-test/naps")
        for i in range(NAPS):
            with open(f"{self.dir}/aws/s3/drover-test/naps/{i:02}.txt", "w") as f:
                f.write("nap")

    def nap(self, name, expect="", top="", stage="", kind="ml.c5.xlarge", runtime="20m"):
        return f"""version: 1
name: {name}
{top}
stages:
  - name: work
    image: user/nap
    fan_out: {{from: "s3://drover-test/naps/*.txt"}}
    instance_type: {kind}
    max_runtime: {runtime}
    output: "s3://drover-test/out-{name}/"
    verify: none
    {expect}
{stage}
"""

    def drover(self, *args, text=None):
        env = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{self.ports['droverd0']}", "DROVER_TOKEN_FILE": self.token_file,
               "LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}
        return subprocess.run([TOP + "/build/bin/drover", *args], env=env, input=text, capture_output=True, text=True, timeout=patience(60))

    def refused(self, method, path, body=None, kind="application/json"):
        status, text, _ = self.raw(method, "/v1" + path, body.encode() if body is not None else None, {"Content-Type": kind, "If-Match": "*"}, i=0)
        return status, json.loads(text)


def file_of(s, text):
    path = s.dir + "/plan.yaml"
    with open(path, "w") as f:
        f.write(text)
    return path


def plans(tap, s):
    """Before any cost."""
    wait_for(lambda: "error" not in str(s.api("GET", "/quotas")) and any(q["limit"] == 4 for q in s.api("GET", "/quotas")["quotas"]), 20, "quotas")
    plan = s.api("POST", "/campaigns?dry_run=true", s.nap("silent"), {"Content-Type": "application/yaml"})
    f = plan["forecast"]
    tap.ok(f["known"] is False and "needs 5 finished parts" in f["reason"] and "expect" in f["reason"], "a plan without durations says what it needs", f)
    plan = s.api("POST", "/campaigns?dry_run=true", s.nap("told", "expect: {duration: 10m}"), {"Content-Type": "application/yaml"})
    f = plan["forecast"]
    hour = NAPS / 4 * 600  # six rounds of ten minutes, besides starting them
    tap.ok(f["known"] and 0.8 * hour < f["end"]["p50_seconds"] < 1.6 * hour, f"a plan with durations knows the end: {f.get('end')}", f)
    cost = NAPS * 600 * 204000 / 3600
    tap.ok(0.8 * cost < f["cost"]["p50_micro_usd"] < 1.2 * cost, f"and the cost: {f.get('cost')}", cost)
    tap.ok(f["binding"] == "slots" and f["binding_instance_type"] == "ml.c5.xlarge", "and what binds", f["binding"])
    tap.ok(any(a["instance_type"] == "ml.c5.xlarge" and a["sooner_seconds"] > 0 for a in f["advice"]), "and what more quota would bring", f["advice"])
    path = file_of(s, s.nap("told", "expect: {duration: 10m}"))
    r = s.drover("plan", path, "--what-if", "slots=8")
    tap.ok(r.returncode == 0 and "Forecast" in r.stdout and "if slots=8:" in r.stdout and "sooner" in r.stdout, "drover plan FILE --what-if", r.stdout + r.stderr)
    tap.ok(max(len(x) for x in r.stdout.splitlines() if " ! " not in x) <= 80, "at 80 columns", r.stdout)
    print("\n".join("# " + line for line in r.stdout.splitlines()), flush=True)
    j = json.loads(s.drover("plan", path, "--what-if", "slots=8,spot_loss=0.2,order=fifo", "-o", "json").stdout)
    tap.ok(j["what_if"]["end"]["p50_seconds"] < j["forecast"]["end"]["p50_seconds"], "twice the slots end sooner", j["what_if"])
    j = json.loads(s.drover("plan", path, "--what-if", "type=ml.m5.large", "-o", "json").stdout)
    tap.ok(j["what_if"]["end"]["p50_seconds"] < j["forecast"]["end"]["p50_seconds"], "and so does a type with more of them", j["what_if"])
    poor = s.nap("poor", "expect: {duration: 10m}", top="budget: {total: 0.4 USD}")  # pays for eight or nine of the parts
    f = s.api("POST", "/campaigns?dry_run=true", poor, {"Content-Type": "application/yaml"})["forecast"]
    tap.ok(f["known"] and f["end"]["p50_seconds"] is None and f["fits_budget"] < 0.1 and f["binding"] == "budget", "a budget that does not reach: it never ends", f)
    tap.ok(f["cost"]["p90_micro_usd"] <= 400000, "and the cap is not passed", f["cost"])
    r = s.drover("plan", file_of(s, poor))
    tap.ok(r.returncode == 0 and "does not end" in r.stdout, "drover plan says so", r.stdout + r.stderr)
    path = file_of(s, s.nap("told", "expect: {duration: 10m}"))
    r = s.drover("plan", path, "--what-if", "slot=8,order=lifo")
    tap.ok(r.returncode == 2 and "slots" in r.stderr and "fifo" in r.stderr, "every fault of a what-if, with what to write", r.stderr)
    r = s.drover("plan", path, "--what-if", "type=ml.p4d.24xlarge")
    tap.ok(r.returncode == 2 and "price" in r.stderr, "a type nothing is known of is refused", r.stderr)
    tap.ok(s.api("GET", "/campaigns")["campaigns"] == [] and s.oracle("jobs")["jobs"] == [], "no plan left anything behind")


def runs(tap, s):
    """While it runs: forecast, why, scale, budget."""
    cid = s.submit(s.nap("naps", top="limits: {parts: 2}\nbudget: {total: 1 USD, warn_at: [10%]}"))
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["parts"]["done"] >= 6, 60, "five parts")
    f = s.api("GET", f"/campaigns/{cid}/forecast?what_if=parts=4")
    asked, said = time.monotonic(), time.time()
    whole = f["campaign"]
    tap.ok(whole["known"] and f["what_if"]["end"]["p50_seconds"] <= whole["end"]["p50_seconds"], "the forecast of a running campaign, and if more ran at once", f)
    waiting = [p["seq"] for p in s.api("GET", f"/campaigns/{cid}/parts?state=waiting")["parts"]]
    tap.ok(len(waiting) >= 2, "parts wait", waiting)
    why = s.api("GET", f"/campaigns/{cid}/parts/{waiting[-1]}/why")
    tap.ok(why["reason"] == "concurrency" and why["place"] >= 1 and why["starts"]["p50_seconds"] >= 0, "why: reason, place and start", why)
    tap.ok(why["next"] == f"drover scale {cid} N", "why: the next step", why["next"])
    r = s.drover("why", f"{cid}/{waiting[-1]}")
    tap.ok(r.returncode == 0 and "place" in r.stdout and "next:" in r.stdout and max(map(len, r.stdout.splitlines())) <= 80, "drover why", r.stdout + r.stderr)
    print("\n".join("# " + line for line in r.stdout.splitlines()), flush=True)
    done = s.api("GET", f"/campaigns/{cid}/parts?state=done")["parts"][0]["seq"]
    tap.ok(s.api("GET", f"/campaigns/{cid}/parts/{done}/why")["text"] == "it is done", "why of a part that is done")
    r = s.drover("scale", f"{cid}", "4")
    tap.ok(r.returncode == 2 and "-y" in r.stderr, "drover scale to more wants -y without a terminal", r.stderr)
    r = s.drover("scale", f"{cid}", "4", "-y")
    tap.ok(r.returncode == 0 and "4 parts" in r.stdout, "drover scale", r.stdout + r.stderr)
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["parts"]["active"] == 4, 20, "four at once")
    r = s.drover("budget", cid, "2", "--at-limit", "hold", "-y")
    tap.ok(r.returncode == 0 and "2.00 USD" in r.stdout and "hold" in r.stdout, "drover budget", r.stdout + r.stderr)
    wait_for(lambda: s.ended(cid), 90, "the end")
    took = time.monotonic() - asked
    # What one part took after the forecast, as a multiple of what the forecast had seen: a busy machine is no error of it.
    spans = [[j["ended"] - j["created"] for j in s.oracle("jobs")["jobs"] if j["ended"] and (j["created"] > said) == late] for late in (False, True)]
    slower = max(1, statistics.mean(spans[1]) / statistics.mean(spans[0])) if all(spans) else 1
    tap.ok(s.ended(cid)["state"] == "succeeded", "it ends")
    tap.ok(took < 2 * slower * max(whole["end"]["p90_seconds"], 5), f"not much later than was said for half as many at once: {took:.0f} s", whole["end"])
    r = s.drover("plan", cid)
    tap.ok(r.returncode == 0 and "has ended" in r.stdout, "nothing is ahead of what has ended", r.stdout + r.stderr)


def limits(tap, s):
    """Limits above a campaign, and wrong ones."""
    def as_told(cid, **words):
        """The command that why names for the part that waits longest, with these words filled in."""
        waiting = s.api("GET", f"/campaigns/{cid}/parts?state=waiting")["parts"][-1]["seq"]
        told = s.api("GET", f"/campaigns/{cid}/parts/{waiting}/why")["next"]
        argv = shlex.split(told.partition("drover ")[2])
        for word, value in words.items():
            argv = [re.sub(rf"\b{word}\b", value, x) for x in argv]
        r = s.drover(*argv)
        tap.ok(argv[:1] == ["api"] and r.returncode == 0, f"what why says can be done: {told}", (argv, r.stdout, r.stderr))

    tap.ok(s.api("PATCH", "/limits", {"parts": 1, "instances": {"ml.m5.large": 3}}, headers={"If-Match": "*"})["parts"] == 1, "a limit of the installation")
    cid = s.submit(s.nap("limited", "limits: {parts: 3}", kind="ml.m5.large", stage=""))
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["parts"]["active"] == 1, 30, "one runs")
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["stages"][0]["wait_reason"] == "global_limit", 20, "its reason")
    as_told(cid, N="null")
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["stages"][0]["wait_reason"] == "stage_limit" and s.api("GET", f"/campaigns/{cid}")["parts"]["active"] == 3, 30, "the stage's limit")
    # The last one waits longest: the first may have begun before it is asked about.
    waiting = s.api("GET", f"/campaigns/{cid}/parts?state=waiting")["parts"][-1]["seq"]
    tap.eq(s.api("GET", f"/campaigns/{cid}/parts/{waiting}/why")["next"], f"drover scale {cid}/work N", "then the stage's own binds, and why says how it is raised")
    r = s.drover("scale", f"{cid}/work", "2")
    tap.ok(r.returncode == 0, "drover scale of a stage", r.stderr)
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["parts"]["active"] == 2, 20, "two at once")
    tap.ok(all(j["status"] != "Stopped" for j in s.oracle("jobs")["jobs"]), "a lower limit stops no job")
    project = s.api("GET", "/projects")["projects"][0]["name"]
    changed = s.api("PATCH", f"/projects/{project}", {"parts": 1, "weight": 300, "budget": {"total": "50 USD"}}, headers={"If-Match": "*"})["projects"][0]
    tap.ok(changed["parts"] == 1 and changed["weight"] == 300 and changed["budget"]["limit_micro_usd"] == 50000000, "a project's limits", changed)
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["stages"][0]["wait_reason"] == "project_limit", 30, "the project's limit")
    as_told(cid, N="null", NAME=project)
    tap.ok(s.api("PATCH", f"/projects/{project}", {"budget": None}, headers={"If-Match": "*"})["projects"][0]["parts"] is None, "and it is raised")
    for method, path, body, status in (("PATCH", "/limits", '{"parts": -1}', 422), ("PATCH", "/limits", '{"instances": {"c5": 1}}', 422), ("PATCH", "/limits", '{"colour": 1}', 422),
                                       ("PATCH", f"/projects/{project}", '{"weight": 0}', 422), ("PATCH", "/projects/nobody", '{"weight": 5}', 404),
                                       ("GET", "/pools?campaign=7", None, 400), ("GET", f"/campaigns/{cid}/parts/99/why", None, 404),
                                       ("GET", f"/campaigns/{cid}/forecast?what_if=colour=1", None, 422)):
        got, text = s.refused(method, path, body)
        tap.ok(got in (status, 400, 422) if status != 404 else got == 404, f"{method} {path} {body or ''}: {got}", text)
    s.api("POST", f"/campaigns/{cid}:cancel", {})
    wait_for(lambda: s.ended(cid), 30, "its end")
    pools = s.api("GET", f"/pools?campaign={cid}")
    tap.ok(pools["sum"]["pools"] == len(pools["pools"]) == 0, "no warm quota, no pool", pools)
    r = s.drover("pools")
    tap.ok(r.returncode == 0 and "0 pools" in r.stdout, "drover pools", r.stdout + r.stderr)


def longer(tap):
    """A run that needs more time than a job may have: it goes on from its checkpoint, and no end of a job's time counts."""
    count = "f=$DROVER_ML_ROOT/checkpoints/n; n=$(cat $f 2>/dev/null || echo 0); while [ $n -lt 14 ]; do sleep 0.5; n=$((n+1)); echo $n >$f; done"
    with Stack("longer", quotas={"ml.c5.xlarge": 1}, parts=1, rows=4, images={"user/count": ["/bin/sh", "-c", count]},
               local={"account_quotas": {"Longest run time for a training job": 3}}) as s:
        s.start()
        cid = s.submit("""version: 1
name: longer
stages:
  - {name: train, image: user/count, instance_type: ml.c5.xlarge, max_runtime: 1h, min_runtime: 1s,
     checkpoint: "s3://drover-test/ckpt/", output: "s3://drover-test/out/", verify: none}
""")
        wait_for(lambda: s.ended(cid), 90, "the end")
        part = s.api("GET", f"/campaigns/{cid}/parts")["parts"][0]
        jobs = s.oracle("jobs")["jobs"]
        tap.ok(s.ended(cid)["state"] == "succeeded" and len(jobs) >= 2, f"it ends well, in {len(jobs)} jobs of 3 s at most", jobs)
        tap.ok(part["attempts"] == 1 and "run_goes_on" in open(s.dir + "/droverd0.log", encoding="utf-8").read(), "only the last of them counts", part)
        s.check_invoice(tap, "a long run: ")


def more(tap, s):
    """A higher quota is asked of AWS, shown until it is granted, and then counts."""
    of = lambda: next(q for q in s.api("GET", "/quotas")["quotas"] if q["instance_type"] == "ml.r5.large" and q["market"] == "on_demand")  # noqa: E731
    ask = ("quotas", "request", "ml.r5.large", "--value", "9")
    r = s.drover(*ask)
    tap.ok(r.returncode == 2 and "add -y" in r.stderr and of()["requested"] is None, "without an answer nothing is asked for", r.stdout + r.stderr)
    r = s.drover(*ask, "-y")
    tap.ok(r.returncode == 0 and "ml.r5.large for training job usage: 9 asked for, PENDING" in r.stdout, "drover quotas request", r.stdout + r.stderr)
    q = of()
    tap.ok((q["limit"], q["requested"]) == (2, 9) and q["requested_at"], "the list shows what is asked for", q)
    tap.ok(re.search(r"ml\.r5\.large +on_demand +2 .* 9 ", s.drover("quotas").stdout), "for people, too", s.drover("quotas").stdout)
    r = s.drover(*ask, "-y")
    tap.ok(r.returncode != 0 and "ResourceAlreadyExistsException" in r.stderr, "what AWS refuses is said", r.stderr)
    r = s.drover("quotas", "request", "ml.no.large", "--value", "9", "-y")
    tap.ok(r.returncode == 3 and "AWS has no quota" in r.stderr, "a type that AWS does not know", (r.returncode, r.stderr))
    s.oracle("approve-quotas", {})
    q = wait_for(lambda: (q := of())["limit"] == 9 and q, 60, "the granted quota")
    tap.ok(q["requested"] is None and s.api("GET", "/audit?action=quota.request")["audit"], "once granted it counts; who asked is in the audit", q)


def paces(tap, s):
    """The plan reckons with the rate of Creates that the controller keeps."""
    said = {}
    text = s.nap("paced", "expect: {duration: 2s}\n    canary: off", kind="ml.c5.2xlarge")  # a slot for each part
    for rate in (30, 120):
        s.kill("droverd0", signal.SIGTERM)
        s.start_droverd(0, env={"DROVER_CREATE_RATE_PER_MINUTE": str(rate), "DROVER_CREATE_BURST": "1"})
        wait_for(lambda: s.leader() is not None, 20, "a leader")
        said[rate] = s.api("POST", "/campaigns?dry_run=true", text, {"Content-Type": "application/yaml"})["forecast"]
        if rate == 30:
            s.start_droverd(1)  # set to 3,000
            wait_for(lambda: s.sql("SELECT creates_per_s_u FROM lease") == "500000", 20, "the leader's rate")
            other = s.api("POST", "/campaigns?dry_run=true", text, {"Content-Type": "application/yaml"}, i=1)["forecast"]
            tap.ok(other["end"]["p50_seconds"] == said[30]["end"]["p50_seconds"] and other["binding"] == "rate", "one that does not lead plans with the leader's rate, not with its own", (said[30], other))
            s.kill("droverd1", signal.SIGTERM)
    longer_by, want = said[30]["end"]["p50_seconds"] - said[120]["end"]["p50_seconds"], (NAPS - 1) * (60 / 30 - 60 / 120)
    tap.ok(0.9 * want <= longer_by <= 1.1 * want and said[30]["binding"] == "rate", f"{NAPS} parts at 30 and 120 Creates a minute: {longer_by} s longer, {want} wanted", said)
    cid = s.submit(text)
    wait_for(lambda: s.ended(cid), 120, "the end")
    made = sorted(j["created"] for j in s.oracle("jobs")["jobs"] if j["name"].startswith(f"t-{cid[2:]}-"))
    gap, planned = statistics.median(b - a for a, b in zip(made, made[1:])), max(longer_by, 0.1) / (NAPS - 1) / 3  # 0.5 s are a third of 2 - 0.5
    tap.ok(len(made) == NAPS and 0.8 <= gap / planned <= 1.5, f"a real campaign at 120: {gap:.2f} s from Create to Create, {planned:.2f} in the plan, ratio {gap / planned:.2f}", made)
    s.kill("droverd0", signal.SIGTERM)
    s.start_droverd(0)
    wait_for(lambda: s.leader() is not None, 20, "a leader")


tap = Tap()
if os.environ.get("ONLY", "longer") in "longer":
    longer(tap)
with Ahead() as stack:
    stack.start()
    for part in (p for p in (plans, runs, limits, more, paces) if os.environ.get("ONLY", "") in p.__name__):
        try:
            part(tap, stack)
        except (TimeoutError, ValueError, KeyError, urllib.error.URLError) as e:
            tap.ok(False, f"{part.__name__} went through", repr(e))
    stack.check_wire(tap)
    stack.check_invoice(tap)
sys.exit(tap.done())
