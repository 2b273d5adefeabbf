#!/usr/bin/env python3
"""Aim: a campaign of several stages of drover-worker runs to its end on the whole system: each stage starts
when those it needs have ended, its output is verified by its manifest, and a second campaign finds it done.
Method: the real PostgreSQL, drover-local, droverd and worker; the outputs are read back from the bucket.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, wait_for
from kit.stack import Stack

PARTS, ROWS = 2, 12


def pipeline(s, name):
    """copy from another bucket -> download by number -> index of what it made -> training on one host and on two"""
    return f"""version: 1
name: {name}
vars: {{root: "s3://drover-test"}}
stages:
  - name: index
    needs: download
    worker: index
    instance_type: ml.m5.large
    max_runtime: 5m
    from: "{{root}}/images/"
    output: "{{root}}/index/"
    path_prefix: /opt/ml/input/data/images
    hyperparameters: {{sample: 0.5, progress_interval: 1}}
    done_if: {{manifest: "{{root}}/index/"}}
  - name: train
    needs: index
    image: drover/worker:test
    command: [train-sample]
    instance_type: ml.m5.large
    matrix: {{instance_count: [1, 2]}}
    max_runtime: 5m
    input: {{data: "{{root}}/index/"}}
    output: "{{root}}/model/{{stage}}/"
    hyperparameters: {{steps: 50, log_steps: 5}}
    metrics:
      - {{name: step, regex: 'step=([0-9]+)'}}
      - {{name: loss, regex: 'loss=([0-9.e-]+)'}}
      - {{name: images_per_second, regex: 'images_per_second=([0-9.]+)'}}
    done_if: {{exists: "{{root}}/trained"}}
  - name: metadata
    worker: copy
    from: "s3://laion/meta/*.parquet"
    to: "{{root}}/meta/{{part:05d}}.parquet"
    instance_type: ml.m5.large
    max_runtime: 5m
    hyperparameters: {{expect_files: {PARTS}, progress_interval: 1}}
    done_if: {{manifest: "{{root}}/meta/"}}
  - name: download
    needs: metadata
    worker: download
    fan_out: {{count: {PARTS}}}
    instance_type: ml.c5.xlarge
    max_runtime: 5m
    hyperparameters:
      url_list: "{{root}}/meta/{{part:05d}}.parquet"
      output_folder: "{{root}}/images/{{part:05d}}/"
      timeout: 2
      processes_count: 1
      allow_net: "127.0.2.0/24:{s.web_port}"
      dns: "127.0.2.1:{s.dns_port}"
    done_if: {{manifest: "{{root}}/images/{{part:05d}}/"}}
  - name: folders
    extends: download
    fan_out: {{count: 1}}
    hyperparameters:
      output_folder: "{{root}}/folders/{{part:05d}}/"
      output_format: files
      number_sample_per_shard: 5
    done_if: {{manifest: "{{root}}/folders/{{part:05d}}/"}}
  - name: shared
    extends: download
    fan_out: {{count: 1}}
    instance_count: 2
    hyperparameters:
      output_folder: "{{root}}/shared/{{part:05d}}/"
      number_sample_per_shard: 5
    done_if: {{manifest: "{{root}}/shared/{{part:05d}}/"}}
"""


def load(s, path):
    with open(f"{s.dir}/aws/s3/drover-test/{path}", "rb") as f:
        return f.read()


def states(c):
    return {x["name"]: x["state"] for x in c["stages"]}


def campaign(s, tap):
    os.makedirs(s.dir + "/aws/s3/laion")
    os.rename(s.dir + "/aws/s3/drover-test/meta", s.dir + "/aws/s3/laion/meta")
    text = pipeline(s, "pipe")
    plan = s.api("POST", "/campaigns?dry_run=true", text, {"Content-Type": "application/yaml"})
    rows = [(x["name"], x["fan_out"], x["parts"]) for x in plan["stages"]]
    tap.eq(rows, [("metadata", "none", 1), ("download", "count", PARTS), ("index", "none", 1), ("train-1", "none", 1), ("train-2", "none", 1), ("folders", "count", 1), ("shared", "count", 1)], "the plan has the stages in the order of their needs")
    cid = s.submit(text)
    c = wait_for(lambda: s.ended(cid), 90, "the end", step=0.1)
    tap.eq((c["state"], states(c)), ("succeeded", dict.fromkeys(("metadata", "download", "folders", "index", "shared", "train-1", "train-2"), "succeeded")), "copy, download, index and both rows of train succeed")
    jobs = {j["name"].split("-", 2)[2]: j for j in s.oracle("jobs")["jobs"]}
    span = lambda stage, key, pick: pick(j[key] for n, j in jobs.items() if n.startswith(stage))  # noqa: E731
    tap.ok(len(jobs) == PARTS + 6 and span("index", "ended", max) <= span("train", "created", min) and span("metadata", "ended", max) <= span("download", "created", min) and
           span("download", "ended", max) <= span("index", "created", min), "one job each, a stage after those it needs", sorted(jobs))
    m = json.loads(load(s, "meta/_manifest.json"))
    tap.eq([o["key"] for o in m["objects"]], [f"{i:05d}.parquet" for i in range(PARTS)] + ["_files.jsonl"], "the copy's manifest names the files")
    keys = [o["key"] for o in json.loads(load(s, "folders/00000/_manifest.json"))["objects"]]
    there = os.listdir(s.dir + "/aws/s3/drover-test/folders/00000/00000")
    tap.ok("00000/" in keys and not any("/" in k[:-1] for k in keys) and any(n.endswith(".jpg") for n in there), "an output of files is proven by its folders, parquets and stats", (keys, there))
    shared(s, tap, jobs)
    m = json.loads(load(s, "index/_manifest.json"))
    lines = [json.loads(x) for x in load(s, "index/index.jsonl").splitlines()]
    good = sum(json.loads(load(s, f"images/{i:05d}/_manifest.json"))["successes"] for i in range(PARTS))
    tap.ok(len(lines) == m["successes"] == good > 0, f"the manifest counts the {good} lines of the index", (m, len(lines)))
    models = [os.path.join(r, n) for r, _, ns in os.walk(s.dir + "/aws/s3/drover-test/model") for n in ns if n == "model.tar.gz"]
    steps = []
    for path in models:
        with tarfile.open(path) as t:
            steps.append(json.load(t.extractfile([n for n in t.getnames() if n.endswith("model.json")][0]))["step"])
    hosts = sorted(j["instance_count"] for n, j in jobs.items() if n.startswith("train"))
    tap.ok(steps == [50, 50] and hosts == [1, 2], "one host and two trained 50 steps on the index", (models, hosts))
    at = lines[-1]
    whole = load(s, "images" + at["path"].split("images", 1)[1].split("#")[0])
    tap.ok(at["path"].startswith("/opt/ml/input/data/images/") and whole[at["offset"]:][:2] == b"\xff\xd8", "a line leads to its picture", at)
    metrics(s, tap, cid, {n: j for n, j in jobs.items() if n.startswith("train")})
    return len(jobs)


def shared(s, tap, jobs):
    """Two instances of one job share a part of three shards; the folders are the same rows by one instance."""
    m, one = (json.loads(load(s, f"{x}/00000/_manifest.json")) for x in ("shared", "folders"))
    counts = [[x[k] for k in ("rows_in", "rows_out", "successes", "failed_to_download", "failed_to_resize", "statuses")] for x in (m, one)]
    tap.eq(([o["key"] for o in m["objects"]], counts[0]), ([f"{i:05d}{x}" for i in range(3) for x in (".parquet", ".tar", "_stats.json")], counts[1]), "two instances made one manifest of all shards, with the counts of one instance")
    files = {}
    for i in range(3):
        with tarfile.open(f"{s.dir}/aws/s3/drover-test/shared/00000/{i:05d}.tar") as t:
            files.update({f"{i:05d}/{n.name}": t.extractfile(n).read() for n in t.getmembers()})
    tap.eq(files, {f"{i:05d}/{n}": load(s, f"folders/00000/{i:05d}/{n}") for i in range(3) for n in os.listdir(f"{s.dir}/aws/s3/drover-test/folders/00000/{i:05d}")}, "and their files, byte for byte")
    job = [j for n, j in jobs.items() if n.startswith("shared")][0]
    hosts = [[f for f in os.listdir(f"{s.dir}/aws/s3/drover-test/shared/00000") if f.startswith(x)] for x in ("_host", "_progress")]
    logs = [open(f"{s.dir}/aws/jobs/{job['name']}/{h}/log", encoding="utf-8").read() for h in ("algo-1", "algo-2")]
    tap.ok(job["instance_count"] == 2 and hosts == [[], ["_progress.json"]] and all('"stages_ended"' in x for x in logs), "as one job of two hosts, nothing of which is left beside the output", (job, hosts))


def printed(s, name):
    """What a run printed, as its log on the disk has it: [(step, loss)]."""
    with open(f"{s.dir}/aws/jobs/{name}/algo-1/log", encoding="utf-8") as f:
        return [(int(m[1]), float(m[2])) for m in re.finditer(r"step=(\d+) loss=([0-9.e-]+)", f.read())]


def metrics(s, tap, cid, runs):
    """Each line of a run's log is one point of its series, also where the chart and the pages show it."""
    wait_for(lambda: s.sql("SELECT count(*) FROM attempt WHERE collects") == "0", 60, "the logs to be read to their ends", step=0.1)
    rows = s.api("GET", f"/campaigns/{cid}/metrics")["series"]
    tap.eq(sorted((x["stage"], x["name"], x["complete"], x["note"]) for x in rows),
           sorted((st, m, True, None) for st in ("train-1", "train-2") for m in ("loss", "images_per_second")), "each run has a series of each metric, read to its end")
    for name in sorted(runs):
        stage = name.rsplit("-", 3)[0]
        want = printed(s, runs[name]["name"])
        chart = s.api("GET", f"/campaigns/{cid}/parts/0/metrics?stage={stage}&name=loss&points=2000")["series"][0]
        tap.ok(len(want) >= 5 and [(p["step"], p["mean"]) for p in chart["chart"]] == want and chart["points"] == len(want) and chart["last"] == want[-1][1] and
               chart["min"] == min(x for _, x in want), f"{stage}: the chart has the {len(want)} losses of the log with their steps", (chart, want))
        few = s.api("GET", f"/campaigns/{cid}/parts/0/metrics?stage={stage}&name=loss&points=3")["series"][0]["chart"]
        tap.ok(len(few) <= 3 and few[-1]["step"] == want[-1][0] and min(p["min"] for p in few) == min(x for _, x in want), f"{stage}: three points hold the same extremes", few)
        page = s.api("GET", f"/campaigns/{cid}/parts/0/points?stage={stage}&name=loss&page_size=2")
        rest = s.api("GET", f"/campaigns/{cid}/parts/0/points?stage={stage}&name=loss&page_token={page['next_page_token']}")
        tap.eq([(p["step"], p["value"]) for p in page["points"] + rest["points"]] + [rest["next_page_token"]], want + [None], f"{stage}: pages have every point once")


def phases(s, tap, cid):
    """Where the hour went: by phase the campaign costs what the ledger has, and no part of it is unexplained."""
    b = s.api("GET", f"/campaigns/{cid}/cost?by=phase")
    got = {p["phase"]: p for p in b["by_phase"]}
    tap.eq([sum(p[k] for p in b["by_phase"]) for k in ("seconds", "micro_usd")], [b["metered"][k] for k in ("seconds", "micro_usd")], "seconds and money by phase add up to the ledger")
    tap.ok(got["other"]["micro_usd"] == 0 and got["training"]["micro_usd"] > 0 and got["start"]["elapsed_seconds"] > 0 and got["start"]["micro_usd"] == 0, "all of it is of a phase; a start takes time and costs nothing", b)
    one = s.api("GET", f"/parts/{cid}/0?stage=train-2")["attempt_list"][0]
    job = next(j for j in s.oracle("jobs")["jobs"] if j["name"] == one["job_name"])
    spent = sum(p["elapsed_seconds"] for p in one["phases"][1:])
    tap.ok(abs(spent - (job["ended"] - job["created"])) < 0.02 and sum(p["micro_usd"] for p in one["phases"]) == one["cost_micro_usd"] and sum(p["seconds"] for p in one["phases"]) == one["billable_seconds"],
           "the phases of an attempt are the life of its job, and its cost", (one["phases"], job))


def rates(s, name):
    """Images a second that a run printed after its warm-up, the first tenth."""
    with open(f"{s.dir}/aws/jobs/{name}/algo-1/log", encoding="utf-8") as f:
        got = [float(m[1]) for m in re.finditer(r"images_per_second=([0-9.]+)", f.read())]
    return got[len(got) // 10:]


def scaling(s, tap, cid):
    """One host against two, from what the real runs printed and took."""
    jobs = {j["name"]: j for j in s.oracle("jobs")["jobs"] if "-train-" in j["name"]}
    r = drover(s, "scaling", cid, "--metric", "images_per_second", "-o", "json")
    rows = json.loads(r.stdout)["rows"]
    want = {j["instance_count"]: statistics.median(rates(s, n)) for n, j in jobs.items()}
    tap.ok(r.returncode == 0 and [(x["instances"], x["stage"]) for x in rows] == [(1, "train-1"), (2, "train-2")] and
           all(abs(x["rate"]["median"] - want[x["instances"]]) < 1e-6 for x in rows) and abs(rows[1]["speedup"] - want[2] / want[1]) < 1e-6 and rows[1]["efficiency"] == rows[1]["speedup"] / 2,
           "the scaling table of one host and two is of what their logs say", (rows, want))
    r = drover(s, "compare", f"{cid}/train-1", f"{cid}/train-2")
    tap.ok(r.returncode == 0 and re.search(r" 1 of \d+ settings differ", r.stdout) and "instance_count" in r.stdout and "loss" in r.stdout and
           re.search("seconds a step|^no pace: ", r.stdout, re.M), "and the two are compared; so short a run may have no pace", r)


def again(s, tap, jobs):
    open(s.dir + "/aws/s3/drover-test/trained", "w").write("yes")
    cid = s.submit(pipeline(s, "pipe-again"))
    c = wait_for(lambda: s.ended(cid), 60, "the end", step=0.1)
    tap.eq((c["state"], len(s.oracle("jobs")["jobs"])), ("succeeded", jobs), "what is done is not done again: no job")


def gated(s):
    """A sample whose loss is never below 0, and the full run behind its gate; the full run's own gate lets it pass."""
    return """version: 1
name: gated
stages:
  - name: sample
    image: drover/worker:test
    command: [train-sample]
    instance_type: ml.m5.large
    max_runtime: 5m
    input: {data: "s3://drover-test/index/"}
    output: "s3://drover-test/gated/{stage}/"
    hyperparameters: {steps: 20, log_steps: 10}
    metrics: [{name: step, regex: 'step=([0-9]+)'}, {name: loss, regex: 'loss=([0-9.e-]+)'}]
    gate: {metric: loss, below: 0, else: hold}
  - {name: full, extends: sample, needs: sample, gate: {metric: loss, below: 100}}
"""


def drover(s, *args):
    env = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{s.ports['droverd0']}", "DROVER_TOKEN_FILE": s.token_file}
    return subprocess.run([s.bin + "/drover", *args], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def gate(s, tap):
    """A gate that does not pass holds the campaign until a person overrides it; the next stage starts only then."""
    cid = s.submit(gated(s))
    c = wait_for(lambda: (c := s.api("GET", f"/campaigns/{cid}"))["state"] == "held" and c, 60, "the gate to hold", step=0.1)
    sample, g = c["stages"][0], c["guidance"][0]
    made = {r["name"].split("-", 2)[2].split("-")[0] for r in s.oracle("jobs")["jobs"] if r["name"].startswith("t-" + cid[2:] + "-")}
    tap.ok(re.fullmatch(r"gate: loss is [0-9.e-]+ at step 20 of run 0, not below 0: drover override " + cid + "/sample", sample["reason"]) and states(c) == {"sample": "held", "full": "blocked"} and
           made == {"sample"}, "a gate that does not pass holds its campaign, and says why and what overrides it", (c["stages"], made))
    tap.eq((g["kind"], g["evidence"], [(x["action"], x["command"]) for x in g["steps"]]),
           ("gate", sample["reason"], [("override", f"drover override {cid}/sample"), ("show", f"drover metrics {cid}/sample")]), "so does the guidance")
    no = drover(s, "override", cid + "/full")
    unsure = drover(s, "override", cid + "/sample")
    tap.ok(no.returncode == 5 and "is not held by a gate" in no.stderr and unsure.returncode == 2 and s.api("GET", f"/campaigns/{cid}")["state"] == "held", "nothing else is overridden, nor without a yes", (no, unsure))
    back = drover(s, "resume", cid, "-y")
    tap.ok(back.returncode == 5 and f"stage sample: {sample['reason'].rsplit(': ', 1)[0]} (HTTP 409)" in back.stderr and back.stderr.endswith(f"\n  next: drover override {cid}/sample\n") and
           s.sql(f"SELECT state || ' ' || (SELECT sum(resumes) FROM stage WHERE campaign_id = {cid[2:]}) FROM campaign_run WHERE campaign_id = {cid[2:]}") == "held 0", "nor is it resumed: the refusal has the value and names the override", back)
    yes = [drover(s, "override", cid + "/sample", "-y").returncode for _ in range(2)]
    c = wait_for(lambda: s.ended(cid), 60, "the end", step=0.1)
    tap.eq((yes, c["state"], c["stages"][0]["reason"], c["stages"][1]["reason"]), ([0, 0], "succeeded", "gate overridden", ""), "overridden, the full run starts; its own gate lets it pass")
    tap.ok(s.sql("SELECT count(*) || ' ' || min(detail->>'held') FROM audit WHERE action = 'campaign.override'") == "1 " + sample["reason"], "once, and the audit has what the gate said")


def main():
    tap = Tap()
    with Stack("stages", quotas={"ml.c5.xlarge": 2, "ml.m5.large": 2}, lease_us=10000000, parts=PARTS, rows=ROWS) as s:
        s.buckets.append("laion")
        s.start()
        jobs = campaign(s, tap)
        phases(s, tap, "c-1")
        scaling(s, tap, "c-1")
        again(s, tap, jobs)
        gate(s, tap)
        s.check_wire(tap)
    return tap.done()


sys.exit(main())
