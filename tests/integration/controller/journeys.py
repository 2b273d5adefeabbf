#!/usr/bin/env python3
"""User journeys and user mistakes on the whole running system. Aim: every mistake ends as one clear refusal
or one clear cause on the part, in the command line at 80 columns and in the API; changes requested during
a campaign take effect; at the end the wire log and the invoice agree. Method: the real PostgreSQL,
drover-local, droverd and drover; the jobs are the real worker, broken workers and small programs of a
user. Campaigns run in parallel, each on its own instance types.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import PROGRAMS, TOP, Tap, patience, wait_for
from kit.stack import Stack
from kit.terminal import on_terminal

ROLE = "arn:aws:iam::111122223333:role/test"
EIGHT = """version: 1
name: eight
colour: red
limits: {parts: -1}
budget: {total: 900}
stages:
  - name: download
    worker: downlaod
    fan_out: {from: "s3://drover-test/meta/*.parquet"}
    instance_type: c5.xlarge
    max_runtime: soon
    hyperparameters: {url_list: "{url}", output_folder: "s3://drover-test/x/{part}/"}
  - name: index
    needs: downloads
    image: user/three
    instance_type: ml.c5.xlarge
    max_runtime: 1h
"""


KEYS = ("hf_" + "aB3" * 12, "hunter2hunter2")  # said by jobs: a token, and a password in a URL


def program(*argv):
    return ["/bin/sh", "-c", *argv]


class Journeys(Stack):
    def __init__(self):
        types = {"ml.c5.xlarge": 6, "ml.c5.2xlarge": 4, "ml.c5.4xlarge": 1, "ml.m5.large": 2, "ml.m5.xlarge": 2, "ml.m5.2xlarge": 3, "ml.r5.large": 2}
        s3 = os.path.join(TOP, "build/test-run/journeys/aws/s3")
        bad = lambda how: [sys.executable, PROGRAMS + "/bad_worker.py", how, TOP + "/build/bin/drover-worker", s3]  # noqa: E731
        images = {"bad/worker:missing": bad("missing"), "bad/worker:task": bad("other_task"), "bad/worker:rows": bad("fewer_rows"),
                  "user/three": program("echo 'Traceback: boom' >&2; exit 3"), "user/nap": program("sleep 1"),
                  "user/failure": program(f"echo 'the label file has 3 columns, 2 wanted; asked with {KEYS[0]}' > $DROVER_ML_ROOT/output/failure; exit 1"),
                  "user/fills": program("printf 'Traceback (most recent call last):\\n  File \"t.py\", line 9, in save\\nOSError: [Errno 28] No space left on device: https://me:" + KEYS[1] + "@host/x\\n' >&2; exit 1"),
                  "user/quota": program("echo 'ThrottlingException: Rate exceeded, ResourceLimitExceeded' >&2; exit 1"),
                  "user/killed": program("kill -9 $$"), "user/long": program("exec sleep 300")}
        self.holds = os.path.join(TOP, "build/test-run/journeys/hold-")
        for who in ("budget", "limits", "drained", "low"):  # naps that end once the test allows it
            images["user/held-" + who] = program(f"sleep 1; while [ -e {self.holds}{who} ]; do sleep 0.1; done")
        super().__init__("journeys", quotas=types, lease_us=10000000, parts=4, rows=16, images=images, local={"roles": [ROLE], "denied_buckets": ["denied"], "stop_grace_seconds": 1})
        os.makedirs(s3 + "/denied/meta")
        self.s3 = s3
        part = sorted(glob.glob(s3 + "/drover-test/meta/*.parquet"))[0]
        self.good = open(part, "rb").read()
        for name, data in (("cut/part-0.parquet", self.good[:len(self.good) // 2]), ("cut/part-1.parquet", self.good),
                           ("nocol/part-0.parquet", self.good.replace(b"URL", b"URX")), ("one/part-0.parquet", self.good)):
            os.makedirs(os.path.dirname(f"{s3}/drover-test/{name}"), exist_ok=True)
            with open(f"{s3}/drover-test/{name}", "wb") as f:
                f.write(data)
        subprocess.run([TOP + "/build/release/demo/demo_make", self.dir + "/web", s3 + "/drover-test/long", self.web_port, "28", "1", "120"], check=True)
        for i in range(8):
            os.makedirs(f"{s3}/drover-test/naps", exist_ok=True)
            with open(f"{s3}/drover-test/naps/{i}.txt", "w") as f:
                f.write("nap")
        with open(self.dir + "/prices.json", "w") as f:  # one type without a price
            json.dump({t: "0.204" for t in types if t != "ml.r5.large"}, f)

    def env80(self):
        return {**os.environ, "DROVER_URL": f"http://127.0.0.1:{self.ports['droverd0']}", "DROVER_TOKEN_FILE": self.token_file, "LC_ALL": "C.UTF-8",
                "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}

    def drover(self, *args, text=None, seconds=60):
        return subprocess.run([TOP + "/build/bin/drover", *args], env=self.env80(), input=text, capture_output=True, text=True, timeout=patience(seconds))

    def terminal(self, *args, seconds=20):
        """The lines drover prints on a terminal of 80 columns."""
        return on_terminal([TOP + "/build/bin/drover", *args], self.env80(), seconds=seconds)[0].replace("\r", "").splitlines()

    def job(self, name, image, kind="ml.c5.2xlarge", parts=1, top="", stage="", runtime="5m", role=ROLE, source="s3://drover-test/naps/*.txt"):
        """A campaign of a user's image, one job for each of `parts` small files."""
        fan = f"fan_out: {{from: \"{source}\"}}" if parts != 1 else ""
        return f"""version: 1
name: {name}
{top}
security: {{role: "{role}"}}
retry:
  - {{cause: [timeout, oom, short_output, unknown, internal, disk_full, throttled], wait: 1s..1s, times: 0}}
stages:
  - name: work
    image: {image}
    {fan}
    instance_type: {kind}
    max_runtime: {runtime}
    output: "s3://drover-test/out-{name}/"
    verify: none
{stage}
"""

    def download(self, name, source="s3://drover-test/one/*.parquet", image="", kind="ml.c5.xlarge", out=None, stage="", top="", times=0, more=""):
        out = out or f"s3://drover-test/out-{name}/{{part:05d}}/"
        return f"""version: 1
name: {name}
{top}
retry:
  - {{cause: [internal, network, short_output, unknown], wait: 1s..1s, times: {times}}}
stages:
  - name: download
    worker: download
    {f'image: {image}' if image else ''}
    fan_out: {{from: {source if source == 'api' else json.dumps(source)}}}
    instance_type: {kind}
    max_runtime: 5m
    hyperparameters:
      url_list: "{{uri}}"
      output_folder: "{out}"
      number_sample_per_shard: 6
      timeout: 2
      processes_count: 1
      progress_interval: 1
      allow_net: "127.0.2.0/24:{self.web_port}"
      dns: "127.0.2.1:{self.dns_port}"
{more}
{stage}
"""

    def hold(self, who):
        """Jobs of the image user/held-`who` go on until the file returned is removed."""
        open(self.holds + who, "w").close()
        return self.holds + who

    def part(self, cid, n=0):
        return self.api("GET", f"/parts/{cid}/{n}")

    def parts_of(self, cid, **want):
        q = "&".join(f"{k}={v}" for k, v in want.items())
        return self.api("GET", f"/campaigns/{cid}/parts?page_size=1000&{q}")["parts"]

    def patch(self, cid, body):
        for _ in range(20):  # the leader may change the version in between
            etag = self.raw("GET", f"/v1/campaigns/{cid}")[2]["ETag"]
            status, text, _ = self.raw("PATCH", f"/v1/campaigns/{cid}", json.dumps(body).encode(), {"Content-Type": "application/json", "If-Match": etag})
            if status == 200:
                return json.loads(text)
            if status != 412:
                raise ValueError(f"{status} {text}")
        raise ValueError("PATCH met 412 every time")

    def end(self, cid, seconds=60):
        return wait_for(lambda: self.ended(cid), seconds, f"the end of {cid}", step=0.1)

    def jobs_of(self, cid, live=False):
        mine = [j for j in self.oracle("jobs")["jobs"] if j["name"].startswith(f"t-{cid[2:]}-")]
        return [j for j in mine if not live or j["status"] not in ("Completed", "Failed", "Stopped")]


def at_most(jobs):
    edges = sorted((t, d) for j in jobs for t, d in ((j["created"], 1), (j["ended"] or 9e18, -1)))
    n = top = 0
    for _, d in edges:
        n += d
        top = max(top, n)
    return top


def mistakes(s, tap):
    status, text, _ = s.raw("POST", "/v1/campaigns", EIGHT.encode(), {"Content-Type": "application/yaml", "Idempotency-Key": "eight"})
    errors = json.loads(text)["errors"]
    tap.ok(status == 422 and len(errors) == 8, "a file with eight mistakes gets eight faults", text)
    tap.ok(all(e["line"] > 0 and e["column"] > 0 and e["message"] and e["hint"] for e in errors), "each with line, column and what to write", errors)
    tap.ok(sorted(e["line"] for e in errors) == [3, 4, 5, 8, 10, 11, 12, 14], "at their places", [e["line"] for e in errors])
    file = s.dir + "/eight.yaml"
    with open(file, "w") as f:
        f.write(EIGHT)
    for verb in ("validate", "submit"):
        r = s.drover(verb, file)
        places = re.findall(r"eight\.yaml:(\d+):(\d+)", r.stderr)
        tap.ok(r.returncode == 2 and len(places) == 8 and r.stderr.count("hint: ") == 8, f"drover {verb} shows all eight, exit 2", (r.returncode, r.stderr))
    r = s.drover("validate", TOP + "/deploy/examples/broken.yaml")
    tap.ok(r.returncode == 2 and len(re.findall(r"broken\.yaml:\d+:\d+", r.stderr)) == 8, "so does it of deploy/examples/broken.yaml", r.stderr)
    tap.ok(s.api("GET", "/campaigns")["campaigns"] == [], "and nothing was made")


def refusals(s, tap):
    for what, text, code, words in (
            ("an unreadable bucket", s.download("no", "s3://denied/meta/*.parquet"), 2, ("AccessDenied", "s3://denied")),
            ("a bucket that is not there", s.download("no", "s3://nowhere-at-all/meta/*.parquet"), 2, ("NoSuchBucket", "nowhere-at-all")),
            ("a source without objects", s.download("no", "s3://drover-test/none/*.parquet"), 2, ("no object",)),
            ("a budget below one step", s.job("no", "user/nap", top="budget: {total: 0.01 USD, at_limit: drain}"), 6, ("0.01", "0.0748"))):
        r = s.drover("submit", "-", "-y", text=text)
        tap.ok(r.returncode == code and all(w in r.stderr for w in words), f"{what} is refused at submit, exit {code}", (r.returncode, r.stderr))
        tap.ok(len(r.stderr.strip().splitlines()) <= 6, f"{what}: in few words", r.stderr)


def causes_start(s):
    """Campaigns whose first part must fail: (id, part, cause, words of the reason, remedy shown)."""
    c = []

    def add(text, cause, words, part=0, feed=None):
        cid = s.submit(text)
        if feed is not None:
            s.api("POST", f"/campaigns/{cid}/parts?last=true", json.dumps(feed) + "\n", {"Content-Type": "application/x-ndjson"})
        c.append((cid, part, cause, words))
    add(s.job("wrong-role", "user/nap", role=ROLE + "-typo"), "access_denied", ("assume role", "test-typo"))
    add(s.download("denied-out", out="s3://denied/out/{part:05d}/"), "access_denied", ("AccessDenied", "denied/out"))
    add(s.download("gone-out", out="s3://nowhere-at-all/out/{part:05d}/"), "bad_input", ("NoSuchBucket",))
    add(s.download("denied-in", source="api"), "access_denied", ("AccessDenied", "s3://denied/meta/p.parquet"), feed={"uri": "s3://denied/meta/p.parquet"})
    add(s.download("gone-in", source="api"), "bad_input", ("s3://drover-test/meta/none.parquet",), feed={"uri": "s3://drover-test/meta/none.parquet"})
    add(s.download("no-column", source="s3://drover-test/nocol/*.parquet"), "bad_input", ("URL",))
    add(s.download("cut", source="s3://drover-test/cut/*.parquet"), "bad_input", ("part-0.parquet",))
    add(s.download("short-object", image="bad/worker:missing"), "short_output", (".tar", "missing"))
    add(s.download("short-task", image="bad/worker:task"), "short_output", ("task",))
    add(s.download("short-rows", image="bad/worker:rows"), "short_output", ("15", "16"))
    add(s.job("no-image", "user/none:1"), "bad_image", ("user/none:1",))
    add(s.job("exit-3", "user/three"), "user_code", ("exit code: 3",))
    add(s.job("log-tells", "user/fills"), "disk_full", ("OSError: [Errno 28] No space left on device", "log of algo-1", "exit code: 1"))
    add(s.job("log-claims", "user/quota"), "throttled", ("ThrottlingException", "log of algo-1"))
    add(s.job("failure-file", "user/failure"), "user_code", ("the label file has 3 columns",))
    add(s.job("exit-137", "user/killed"), "oom", ("137",))
    add(s.job("too-long", "user/long", runtime="1s"), "timeout", ())
    add(s.job("stopped", "user/long"), "stopped", ())
    return c


def causes_check(s, tap, cases):
    stopped = cases[-1][0]
    job = wait_for(lambda: [j["name"] for j in s.jobs_of(stopped, live=True) if s.part(stopped)["attempt_list"][0]["state"] == "running"], 30, "the job to stop")[0]
    r = subprocess.run(["aws", "--endpoint-url", f"http://127.0.0.1:{s.local_port}", "sagemaker", "stop-training-job", "--training-job-name", job],
                       env={**os.environ, **s.aws_env(), "AWS_DEFAULT_REGION": "us-east-1"}, capture_output=True, text=True)
    tap.ok(r.returncode == 0, "somebody else stops a job", r.stderr)
    for cid, n, cause, words in cases:
        what = s.api("GET", f"/campaigns/{cid}")["name"]
        c = s.end(cid)
        p = s.part(cid, n)
        tap.ok(c["state"] == "failed" and p["state"] == "failed" and p["cause"] == cause, f"{what}: the part failed, cause {cause}",
               (c["state"], p["state"], p["cause"], p.get("reason"), [(a["state"], a["cause"], a["reason"]) for a in p["attempt_list"]]))
        reason = p.get("reason") or ""
        tap.ok(reason and all(w in reason for w in words) and len(p["attempt_list"]) == 1, f"{what}: one reason, one try", (reason, len(p["attempt_list"])))
        told = "log of" in "".join(words)
        tap.ok((p["attempt_list"][0]["evidence"] or {}).get("cause") == (cause if told else None) or what == "exit-3", f"{what}: evidence is kept where the log told", p["attempt_list"][0]["evidence"])
        tap.ok(p["attempts"] == (cause != "stopped"), f"{what}: what ran and failed counts", p["attempts"])
        groups = s.api("GET", f"/campaigns/{cid}/failures")["groups"]
        tap.ok(len(groups) == 1 and groups[0]["cause"] == cause and n in groups[0]["sample"] and groups[0]["remedy"], f"{what}: one group of failures, with a remedy", groups)
        for args in (("failures", cid), ("parts", cid, "--state", "failed"), ("get", f"{cid}/{n}")):
            lines = s.terminal(*args)
            tap.ok(any(cause in x for x in lines) and all(len(x) <= 80 for x in lines), f"{what}: drover {args[0]} names it in 80 columns", lines)
    keys_are_masked(s, tap, {s.api("GET", f"/campaigns/{c[0]}")["name"]: c[0] for c in cases})
    ok = [c for c in cases if s.api("GET", f"/campaigns/{c[0]}")["name"] == "cut"][0][0]
    tap.ok(s.part(ok, 1)["state"] == "done", "the whole part beside the truncated one is done", s.part(ok, 1))
    return ok


def keys_are_masked(s, tap, cids):
    """What jobs say of keys is stored, shown and logged without them."""
    told = s.part(cids["log-tells"])["attempt_list"][0]
    tap.ok("https://me:***@host" in json.dumps(told["evidence"]) and "hf_***" in s.part(cids["failure-file"])["reason"], "keys in a log and in a reason are masked", told)
    lines = s.drover("logs", cids["log-tells"] + "/0").stdout
    tap.ok("me:***@host" in lines, "drover logs masks them", lines)
    with open(s.dir + "/droverd0.log", encoding="utf-8") as f:
        seen = lines + f.read()
    for table in s.sql("SELECT string_agg(quote_ident(tablename), ' ') FROM pg_tables WHERE schemaname = 'public'").split():
        seen += s.sql(f"SELECT coalesce(string_agg(t::text, ' '), '') FROM {table} t")
    for cid in cids.values():
        seen += json.dumps([s.api("GET", f"/campaigns/{cid}{x}") for x in ("", "/failures", "/parts")] + [s.part(cid)])
    tap.ok(not any(k in seen for k in KEYS) and len(seen) > 100000, "no row, answer or line of droverd's log has one", [k for k in KEYS if k in seen])


def retry(s, tap, cid):
    with open(f"{s.s3}/drover-test/cut/part-0.parquet", "wb") as f:
        f.write(s.good)
    r = s.drover("retry", cid, "--cause", "oom", "-y")
    tap.ok(r.returncode == 3, "retry of a cause nothing has: exit 3", (r.returncode, r.stdout, r.stderr))
    preview = s.drover("retry", cid, "--cause", "bad_input", "--dry-run").stdout
    tap.ok("1 part" in preview, "the preview counts", preview)
    r = s.drover("retry", cid, "--cause", "bad_input", "-y", "--wait")
    tap.ok(r.returncode == 0, "retry -y --wait", (r.returncode, r.stdout, r.stderr))
    c = wait_for(lambda: (x := s.ended(cid)) and x["state"] == "succeeded" and x, 30, "the mended part")
    tap.ok(c["parts"]["done"] == 2 and len(s.jobs_of(cid)) == 3, "the mended part is done, the other was left alone", c["parts"])


def budget(s, tap):
    """A budget just above one attempt's worst case: one part at a time, until none fits any more."""
    text = s.job("cap", "user/held-budget", kind="ml.m5.large", parts=8, top="budget: {total: 0.0752 USD, at_limit: drain}", runtime="5m")
    r = s.drover("validate", "-", "-o", "json", text=text)
    if not tap.ok(r.returncode == 0, "the plan", (r.returncode, r.stdout, r.stderr)):
        return
    plan = json.loads(r.stdout)
    step = plan["stages"][0]["worst_case_micro_usd_per_part"]
    tap.ok(step <= 75200 < 2 * step, "the budget admits one attempt at a time", step)
    text = text.replace("max_runtime: 5m", "max_runtime: 5m\n    min_runtime: 5m")
    cid = s.submit(text)
    top, seen, last = 0, set(), None
    while True:
        c = s.api("GET", f"/campaigns/{cid}/cost")
        m, r = c["metered"]["micro_usd"], c["reserved_micro_usd"]
        top = max(top, m + r)
        seen |= {p["wait_reason"] for p in s.parts_of(cid, state="waiting")}
        if s.ended(cid) or (m + step > 75200 and not r):
            break
        last = (m, r)
        time.sleep(0.1)
    tap.ok(top <= 75200, f"what is spent and reserved never passes the cap (most: {top} of 75200)", last)
    tap.ok(at_most(s.jobs_of(cid)) == 1, "so one job runs at a time")
    waits = wait_for(lambda: [p for p in s.parts_of(cid, state="waiting") if p["wait_reason"] == "budget"], 20, "the wait reason")
    c = s.api("GET", f"/campaigns/{cid}")
    tap.ok(len(waits) == c["parts"]["waiting"] > 0 and "budget" in seen, "the rest waits: budget", (seen, c["parts"]))
    tap.ok(any("cap" in x or "budget" in x for x in s.terminal("parts", cid, "--state", "waiting")), "and drover parts says so", s.terminal("parts", cid))
    held = s.hold("budget")
    s.patch(cid, {"budget": {"total": "5 USD"}})
    wait_for(lambda: len(s.jobs_of(cid, live=True)) > 1, 30, "two at once")
    os.remove(held)
    c = s.end(cid)
    tap.ok(c["state"] == "succeeded" and c["parts"]["done"] == 8 and at_most(s.jobs_of(cid)) > 1, "with a higher cap it goes on to the end", c["parts"])


def price(s, tap):
    cid = s.submit(s.job("price", "user/nap", kind="ml.r5.large"))
    p = wait_for(lambda: (x := s.part(cid)) and x["wait_reason"] not in (None, "new", "stage_blocked") and x, 20, "a wait reason")
    tap.ok(p["wait_reason"] == "price_unknown" and p["wait_text"], "without a price nothing starts: price_unknown", p)
    tap.ok(any("price" in x for x in s.terminal("get", f"{cid}/0")), "and drover get says so", s.terminal("get", f"{cid}/0"))
    r = s.drover("cancel", cid, "-y", "--wait")
    tap.ok(r.returncode == 0 and s.end(cid)["state"] == "cancelled" and not s.jobs_of(cid), "cancelled without a job", (r.returncode, r.stderr))


def limits(s, tap):
    cid = s.submit(s.job("limits", "user/held-limits", parts=8, top="limits: {parts: 1}"))
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["parts"]["done"] >= 2, 30, "two naps")
    held = s.hold("limits")
    reasons = wait_for(lambda: {p["wait_reason"] for p in s.parts_of(cid, state="waiting")}, 20, "parts that wait")
    before = at_most(s.jobs_of(cid))
    s.patch(cid, {"limits": {"parts": 3}, "priority": 60})
    wait_for(lambda: len(s.jobs_of(cid, live=True)) == 3, 30, "three at once")
    os.remove(held)
    c = s.end(cid)
    after = at_most(s.jobs_of(cid))
    tap.ok(before == 1 and "concurrency" in reasons, "limits.parts 1: one at a time, the others wait for it", (before, reasons))
    tap.ok(after == 3 and c["parts"]["done"] == 8, "raised to 3 while running: three at a time", (after, c["parts"]))


def moves(s, tap):
    """Pause, resume, drain and cancel of jobs that would run for minutes."""
    cid = s.submit(s.job("moves", "user/long", parts=8, top="limits: {parts: 2}"))
    running = lambda n: len([j for j in s.jobs_of(cid, live=True) if j["status"] == "InProgress"]) == n  # noqa: E731
    wait_for(lambda: running(2), 20, "two jobs")
    r = s.drover("pause", cid, "-y", "--wait")
    c = s.api("GET", f"/campaigns/{cid}")
    tap.ok(r.returncode == 0 and c["state"] == "paused" and not s.jobs_of(cid, live=True), "pause --wait: paused, its jobs stopped", (r.returncode, r.stderr, c["state"]))
    tap.ok({p["wait_reason"] for p in s.parts_of(cid, state="waiting")} == {"paused"} and c["parts"]["waiting"] == 8, "every part waits: paused", c["parts"])
    tap.ok(s.drover("resume", cid, "-y").returncode == 0, "resume")
    wait_for(lambda: running(2), 20, "two jobs again")
    r = s.drover("drain", cid)
    draining = wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["state"] == "draining")
    tap.ok(r.returncode == 0 and draining and running(2), "drain: what runs goes on", s.api("GET", f"/campaigns/{cid}")["state"])
    r = s.drover("watch", cid, "--timeout", "1s")
    tap.ok(r.returncode == 8, "watch --timeout: exit 8", (r.returncode, r.stderr))
    r = s.drover("cancel", cid, "-y", "--wait")
    c = s.end(cid)
    tap.ok(r.returncode == 0 and c["state"] == "cancelled" and c["parts"]["cancelled"] == 8 and not s.jobs_of(cid, live=True), "cancel --wait: nothing is left running",
           (r.returncode, r.stderr, c["parts"]))
    tap.ok(s.drover("watch", cid).returncode == 11, "watch of a cancelled campaign: exit 11")
    tap.ok(s.drover("resume", cid).returncode == 5, "what was cancelled cannot be resumed: exit 5", s.drover("resume", cid).stderr)
    made = len(s.jobs_of(cid))
    held = s.hold("drained")
    drained = s.submit(s.job("drained", "user/held-drained", parts=8, top="limits: {parts: 2}"))
    wait_for(lambda: s.jobs_of(drained, live=True), 20, "a nap")
    s.drover("drain", drained)
    os.remove(held)
    s.drover("drain", drained, "--wait")
    c = wait_for(lambda: (x := s.api("GET", f"/campaigns/{drained}")) and x["state"] == "paused" and x, 20, "the drained one")
    jobs = s.jobs_of(drained)
    tap.ok(0 < len(jobs) == c["parts"]["done"] < 8 and all(j["status"] == "Completed" for j in jobs), "a drained campaign ends what ran and is paused", (c["parts"], jobs))
    s.drover("resume", drained, "-y")
    c = s.end(drained)
    tap.ok(c["parts"]["done"] == 8 and len(s.jobs_of(drained)) == 8, "and goes on when resumed, nothing twice", c["parts"])
    tap.ok(len(s.jobs_of(cid)) == made == 4, "the cancelled one made four jobs and no more", made)


def priorities(s, tap):
    held = s.hold("low")
    low = s.submit(s.job("low", "user/held-low", kind="ml.c5.4xlarge", parts=8, top="limits: {priority: 10}"))
    wait_for(lambda: s.jobs_of(low), 20, "the first of low")
    high = s.submit(s.job("high", "user/nap", kind="ml.c5.4xlarge", parts=8, top="limits: {priority: 90}"))
    wait_for(lambda: {p["wait_reason"] for p in s.parts_of(high, state="waiting")} & {"slots", "order"}, 20, "high waits for the slot")
    os.remove(held)
    wait_for(lambda: s.jobs_of(high), 20, "the first of high")
    reasons = {p["wait_reason"] for p in s.parts_of(low, state="waiting")}
    s.end(high)
    begun = sorted((j["created"], j["name"].split("-")[1]) for j in s.jobs_of(high) + s.jobs_of(low))
    order = [n for _, n in begun]
    first = order.index(high[2:])
    tap.ok(first <= 3 and order[first:first + 8] == [high[2:]] * 8, "what has the higher priority comes first, one slot for both", order)
    tap.ok(reasons <= {"order", "slots"} and reasons, "the other waits: order or slots", reasons)
    s.drover("cancel", low, "-y", "--wait")
    s.end(low)


def done_if(s, tap):
    out = "s3://drover-test/kept/{part:05d}/"
    src = "s3://drover-test/meta/*.parquet"
    first = s.submit(s.download("kept", source=src, out=out, kind="ml.m5.2xlarge"))
    c = s.end(first)
    tap.ok(c["parts"]["done"] == 4, "four parts are made", c["parts"])
    folder = f"{s.s3}/drover-test/kept"
    os.remove(f"{folder}/00001/_manifest.json")
    os.remove(f"{folder}/00001/00001.tar")
    with open(f"{folder}/00002/_manifest.json", "r+") as f:  # truncated
        f.truncate(100)
    second = s.submit(s.download("again", source=src, out=out, kind="ml.m5.2xlarge", stage='    done_if: {manifest: "' + out + '"}'))
    c = s.end(second)
    made = {n for n in range(4) if any(f"-download-{n}-" in j["name"] for j in s.jobs_of(second))}
    states = {n: s.part(second, n)["state"] for n in range(4)}
    tap.ok(made == {1, 2} and states[0] == states[3] == "skipped", "done_if: whole parts are skipped, the others are not", (made, states))
    tap.ok(states[1] == "done", "the part without its manifest is made whole", s.part(second, 1))
    p = s.part(second, 2)
    tap.ok(p["state"] == "done" or (p["cause"] in ("bad_input", "short_output") and "_manifest.json" in p["reason"]), "a manifest that is cut off is named or made anew", p)
    shutil.rmtree(f"{folder}/00002")
    os.remove(f"{folder}/00003/00001.tar")
    third = s.submit(s.download("stats", source=src, out=out, kind="ml.m5.2xlarge", stage='    done_if: {img2dataset: "' + out + '"}'))
    s.end(third)
    states = {n: s.part(third, n)["state"] for n in range(4)}
    tap.ok(states[0] == states[1] == "skipped" and states[2] == "done" and states[3] != "skipped", "by img2dataset's stats too, each counted tar wanted", states)
    unchecked(s, tap, src, out)


def unchecked(s, tap, src, out):
    """S3 refuses what done_if asks of one part: it waits for an answer and says so, and starts no job."""
    s.faults({"operation": "GetObject", "name_contains": "/kept/00001/_manifest.json", "kind": "error_503", "times": 1000000})
    cid = s.submit(s.download("unseen", source=src, out=out, kind="ml.m5.2xlarge", stage='    done_if: {manifest: "' + out + '"}'))

    def told():
        c, p = s.api("GET", f"/campaigns/{cid}"), s.part(cid, 1)
        return (c, p) if c["parts"]["waiting"] == 1 and c["parts"]["active"] == 0 and p["wait_reason"] == "unchecked" and "ServiceUnavailable" in p["wait_text"] and p["not_before"] else None
    c, p = wait_for(told, 60, "the part that S3 says nothing about")
    stage, shown = c["stages"][0], c["guidance"][0]
    tap.ok(stage["wait_reason"] == "unchecked" and stage["wait_text"] == c["waits_for"] and "is asked again: " in stage["wait_text"] and "ServiceUnavailable" in stage["wait_text"],
           "a done_if that S3 does not answer is a wait reason of its own, with what came instead", stage)
    tap.ok((shown["kind"], shown["runs"], shown["steps"][0]["command"]) == ("unchecked", False, "drover doctor") and "ServiceUnavailable" in shown["evidence"], "the guidance says it too, and what shows more", shown)
    why = wait_for(lambda: (lambda w: w if w["not_before"] else None)(s.api("GET", f"/campaigns/{cid}/parts/1/why")), 30, "when it is asked again")
    tap.ok(why["reason"] == "unchecked" and "ServiceUnavailable" in why["text"] and why["next"] == "drover doctor", "why says what came, when it is asked again and what is next", why)
    said = s.drover("why", f"{cid}/1").stdout
    tap.ok("S3 did not say whether it is done already" in " ".join(said.split()), "so does the command line", said)
    asked = lambda: sum(r["operation"] == "GetObject" and "/kept/00001/_manifest.json" in r["name"] for r in s.oracle("wire-log")["requests"])  # noqa: E731
    now = asked()
    wait_for(lambda: asked() > now, 60, "another question")
    tap.ok(not any("-download-1-" in j["name"] for j in s.jobs_of(cid)), "it is asked about again, and never started unseen")
    s.faults()
    s.end(cid)
    tap.eq(s.part(cid, 1)["state"], "skipped", "once S3 answers it is skipped")


def shard_urls(folder):
    """Keys of each finished shard, and the URLs in it."""
    keys, urls = {}, {}
    for tar in sorted(glob.glob(folder + "/*.tar")):
        shard = os.path.basename(tar)[:-4]
        if not os.path.exists(f"{folder}/{shard}_stats.json"):
            continue
        import tarfile
        with tarfile.open(tar) as t:
            names = t.getnames()
            keys[shard] = sorted({n.split(".")[0] for n in names})
            urls[shard] = [json.load(t.extractfile(n))["url"] for n in names if n.endswith(".json")]
    return keys, urls


def resume(s, tap):
    """kill -9 of a worker in the middle of a part, from outside its job."""
    out = "s3://drover-test/resumed/{part:05d}/"
    more = "      thread_count: 1\n      max_shard_retry: 1\n"
    folder = f"{s.s3}/drover-test/resumed/00000"
    log = s.dir + "/web-requests.log"
    began = len(open(log).read().splitlines())
    cid = s.submit(s.download("resumed", source="s3://drover-test/long/*.parquet", out=out, kind="ml.m5.xlarge", times=3))

    def worker():
        mine = [j["name"] for j in s.jobs_of(cid, live=True)]
        for p in glob.glob("/proc/[0-9]*"):
            try:
                env = open(p + "/environ", "rb").read().decode(errors="replace")
                exe = os.readlink(p + "/exe")
            except OSError:
                continue
            if exe.endswith("/drover-worker") and any(f"TRAINING_JOB_NAME={n}\0" in env for n in mine):
                return int(p[6:])
        return None
    pid = wait_for(worker, 40, "the worker")  # before its shards: it goes on while /proc is searched
    wait_for(lambda: len(glob.glob(folder + "/*_stats.json")) >= 2, 40, "two finished shards", step=0.02)
    os.kill(pid, signal.SIGKILL)
    tap.ok(pid is not None, "the worker is killed in mid-part")
    wait_for(lambda: any(j["status"] == "Failed" for j in s.jobs_of(cid)), 20, "the job's end")
    keys, urls = shard_urls(folder)
    fetched = len(open(log).read().splitlines())
    c = s.end(cid, 90)
    p = s.part(cid)
    tap.ok(c["state"] == "succeeded" and len(p["attempt_list"]) == 2 and p["attempt_list"][0]["state"] == "failed", "its job failed, the next one ends the part",
           [(a["state"], a["cause"], a["reason"]) for a in p["attempt_list"]])
    # Most paths of the web end in the row's number; a shard has six rows.
    rows = lambda lines: {int(m.group(1)) - 100000 for x in lines if (m := re.search(r"(1\d{5})(\.jpg)?$", x.split()[0]))}  # noqa: E731
    lines = open(log).read().splitlines()
    finished = {6 * int(shard) + i for shard in urls for i in range(6)}
    before, later = rows(lines[began:fetched]), rows(lines[fetched:])
    tap.ok(len(before & finished) >= 4 * len(urls), f"the rows of its {len(urls)} finished shards are in the web's log", (sorted(before), sorted(urls)))
    tap.ok(len(urls) >= 2 and later and not later & finished, f"none of them is fetched again, {len(later)} others are", sorted(later & finished))
    now, _ = shard_urls(folder)
    tap.ok(all(now[k] == v for k, v in keys.items()), "finished shards are as they were")
    other = s.submit(s.download("whole", source="s3://drover-test/long/*.parquet", kind="ml.m5.xlarge"))
    s.end(other, 90)
    whole, _ = shard_urls(f"{s.s3}/drover-test/out-whole/00000")
    stats = lambda f: sum(json.load(open(x))["count"] for x in glob.glob(f + "/*_stats.json"))  # noqa: E731
    tap.ok(set(now) == set(whole) and stats(folder) == stats(f"{s.s3}/drover-test/out-whole/00000"), "the same shards and rows as an undisturbed run", (set(now), set(whole)))
    a, b = (sorted(k for ks in x.values() for k in ks) for x in (now, whole))
    tap.ok(a == b, "and the same keys", set(a) ^ set(b))


def together(name, s, tap):
    try:
        globals()[name](s, tap)
    except (TimeoutError, ValueError, KeyError, OSError) as e:
        tap.ok(False, f"{name} gets to its end", repr(e))


if __name__ == "__main__":
    tap = Tap()
    with Journeys() as s:
        s.start()
        names = sys.argv[1:] or ["budget", "price", "limits", "moves", "priorities", "done_if", "resume"]
        if len(sys.argv) == 1:
            mistakes(s, tap)
            refusals(s, tap)
            retry(s, tap, causes_check(s, tap, causes_start(s)))
        with ThreadPoolExecutor(len(names)) as pool:
            for name, run in [(n, pool.submit(together, n, s, tap)) for n in names]:
                run.result()
        tap.ok(not s.live_jobs(), "no job is left alive", s.live_jobs())
        s.check_wire(tap)
        s.check_invoice(tap)
    sys.exit(tap.done())
