#!/usr/bin/env python3
"""Lists in an account that is full of jobs. Aim: every end is seen soon, with few Lists and few Describes, however many jobs have
ended since the oldest live one, however many others have, whether AWS filters before it cuts a page or after, and though two
Lists at once are refused. Method: the whole system; most jobs of the past have no process; the wire log tells when an end was seen.
In the small form all times are a tenth.   (FULL=1: 60 jobs, 5,000 old ones, 20,000 of others, at true times; LIVE, OLD, OTHERS, TENTHS=n)"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Lag, Tap, wait_for, wait_moving
from kit.stack import Stack

FULL = os.environ.get("FULL") == "1"
LIVE = int(os.environ.get("LIVE", "60" if FULL else "16"))
OLD = int(os.environ.get("OLD", "5000" if FULL else "2500"))
OTHERS = int(os.environ.get("OTHERS", "20000" if FULL else "2500"))
TENTHS = int(os.environ.get("TENTHS", "10" if FULL else "1"))  # of true time
INTERVAL = TENTHS  # seconds between two rounds of Lists: 10 by default
SEEN_WITHIN = 6 * INTERVAL
LISTS, DESCRIBES = 3 / INTERVAL, 5 / INTERVAL  # a second
DEEP = LIVE // 8  # so many live jobs are older than nearly all others
NEWER = 40  # one of so many of the others is newer than the oldest of the rest
STEP = 4 * INTERVAL / 15  # between two ends: 160 s for 60
NAP = "n=${TRAINING_JOB_NAME#t-*-nap-}; while [ ! -e $GATE ]; do sleep 3; done; exec sleep $(awk \"BEGIN {print ($FIRST + ${n%%-*}) * $STEP}\")"
tap, lag = Tap(), Lag()


def naps(s, name, parts, first):
    return f"""version: 1
name: {name}
stages:
  - name: nap
    image: user/nap
    fan_out: {{count: {parts}}}
    instance_type: ml.c5.xlarge
    max_runtime: 60m
    output: "s3://drover-test/out-{name}/{{part}}/"
    verify: none
    canary: off
    environment: {{GATE: "{s.dir}/gate", FIRST: "{first}", STEP: "{STEP}"}}
"""


def running(s):
    return [j for j in s.live_jobs() if j["secondary_status"] == "Training"]


def past(s, name, count, since):
    s.oracle("history", {"name": name, "count": count, "from": since, "until": time.time()})


def started(s, parts, first, name):
    """The campaign's parts run, and droverd knows that they do."""
    before = len(running(s))
    cid = s.submit(naps(s, name, parts, first))
    wait_for(lambda: len(running(s)) == before + parts, 120, f"{parts} running jobs")
    wait_for(lambda: s.sql(f"SELECT count(*) FROM attempt WHERE campaign_id = {cid[2:]} AND state = 4") == str(parts), 120, "their rows")
    return cid


def calls(log, operation, since, until):
    return [r for r in log if r["operation"] == operation + ("s" if operation.startswith("List") else "") and since < r["time"] <= until]


def seen(log, job):
    """When the first Describe after its end was made."""
    return min((r["time"] for r in log if r["operation"] == "DescribeTrainingJob" and r["name"] == job["name"] and r["time"] >= job["ended"] and not r["error"]),
               default=None)


def ends_are_seen(s, what):
    t0 = time.time()
    cids = [started(s, DEEP, LIVE // 2, "deep")]
    past(s, "t-7-nap-{}-a1-0a1b2c3d", OLD - OLD // NEWER, t0)
    past(s, "night-7-nap-{}-a1-0a1b2c3d" if LIVE % 2 else "somebody-elses-{}", OTHERS - OTHERS // NEWER, t0)
    t1 = time.time()
    cids.append(started(s, LIVE - DEEP, 0, "new"))
    past(s, "t-8-nap-{}-a1-0a1b2c3d", OLD // NEWER, t1)
    past(s, "somebody-{}", OTHERS // NEWER, t1)
    time.sleep(2 * INTERVAL)
    began, before = time.time(), lag.seconds
    with open(s.dir + "/gate", "w", encoding="ascii"):
        pass
    for cid in cids:
        wait_moving(lambda: s.ended(cid), lambda: (len(s.live_jobs()), time.time() // (20 * INTERVAL)), f"the end of {cid}", seconds=60 * INTERVAL, step=1)
    log = s.oracle("wire-log")["requests"]
    jobs = [j for j in s.oracle("jobs")["jobs"] if not j["ghost"] and j["created"] >= t0]
    late = sorted((seen(log, j) or 9e9) - j["ended"] for j in jobs if j["ended"] > began)
    until = max(seen(log, j) or 0 for j in jobs)
    n = {op: len(calls(log, op + "TrainingJob", began, until)) / (until - began) for op in ("List", "Describe")}
    refused = sum(r["error"] is not None for r in calls(log, "ListTrainingJob", began, until))
    tap.ok(len(jobs) == LIVE and len(late) >= LIVE // 2 and late[-1] <= SEEN_WITHIN + lag.seconds - before,
           f"{what}: {len(late)} of {LIVE} ends seen within {SEEN_WITHIN} s: median {late[len(late) // 2]:.1f}, worst {late[-1]:.1f} s", late)
    tap.ok(n["List"] <= LISTS, f"{what}: {n['List']:.2f} Lists a second, {refused} refused ({LISTS:.1f})", n)
    tap.ok(n["Describe"] <= DESCRIBES, f"{what}: {n['Describe']:.2f} Describes a second ({DESCRIBES:.1f})", n)
    owned = {j["name"] for j in jobs}
    spent = {r["name"] for r in log if r["operation"] in ("DescribeTrainingJob", "ListTags")} - owned
    tap.ok(not spent or all(n.startswith(("t-7-", "t-8-", "arn:")) for n in spent), f"{what}: nobody else's job is asked about", sorted(spent)[:5])
    states = [s.api("GET", f"/campaigns/{cid}")["state"] for cid in cids]
    tap.eq(states, ["succeeded"] * 2, f"{what}: both campaigns succeed")


for late_filters in (False, True):
    words = "filters after the cut" if late_filters else "filters before the cut"
    if os.environ.get("ONLY", "") not in words:
        continue
    with Stack("many-jobs-" + ("late" if late_filters else "early"), parts=1, rows=1, quotas={"ml.c5.xlarge": LIVE}, lease_us=10000000, observe_us=INTERVAL * 1000000,
               images={"user/nap": ["/bin/sh", "-c", NAP]},
               local={"list_filters_late": late_filters, "rates": {"CreateTrainingJob": 50, "ListTrainingJobs": 20 / INTERVAL}, "bursts": {"ListTrainingJobs": 1}}) as stack:
        stack.start_pg()
        stack.start_local()
        stack.start_droverd(binary=os.environ.get("DROVERD"))
        wait_for(lambda: stack.leader() == 0, 30, "a leader")
        ends_are_seen(stack, words)
        stack.check_invoice(tap)
sys.exit(tap.done())
