#!/usr/bin/env python3
"""Lists in an account that is full of jobs. Aim: every end is seen soon, with few Lists and few Describes, however many jobs have
ended since the oldest live one, however many others have, whether AWS filters before it cuts a page or after, and though two
Lists at once are refused; with a queue of events hardly anything is asked while nothing moves, and whatever events do, nothing is lost. Method: the whole system; most jobs of the past have no process; the wire log tells when an end was seen.
In the small form all times are a tenth.   (FULL=1: 200 jobs, 5,000 old ones, 20,000 of others, at true times; LIVE, OLD, OTHERS, TENTHS, QUIET=n)"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Lag, Tap, wait_for, wait_moving
from kit.stack import Stack

FULL = os.environ.get("FULL") == "1"
LIVE = int(os.environ.get("LIVE", "200" if FULL else "16"))
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
RARELY = 10 if FULL else 30  # seconds between two rounds of Lists there, without events: no end is seen soon by them
QUIET = int(os.environ.get("QUIET", "600" if FULL else "22"))
QUEUE = {"queues": {"drover-events": "aws.sagemaker"}}
OBSERVING = ("ListTrainingJobs", "DescribeTrainingJob", "ReceiveMessage", "DeleteMessageBatch")
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
    time.sleep(1.1)  # what follows is newer, by its second too: thousands of jobs a second between those are no account's
    since = time.time()
    past(s, "t-7-nap-{}-a1-0a1b2c3d", OLD - OLD // NEWER, since)
    past(s, "night-7-nap-{}-a1-0a1b2c3d" if LIVE % 2 else "somebody-elses-{}", OTHERS - OTHERS // NEWER, since)
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


def observing(s, since, until=9e9):
    n = dict.fromkeys(OBSERVING, 0)
    for r in s.oracle("wire-log")["requests"]:
        if r["operation"] in n and since < r["time"] <= until:
            n[r["operation"]] += 1
    return n


def events_tell(s):
    """Lists are so rare that an end seen soon was told by an event."""
    past(s, "t-7-nap-{}-a1-0a1b2c3d", OLD, time.time() - 86400)
    cid = started(s, LIVE, 0, "told")
    wait_for(lambda: not any(observing(s, time.time() - 18).get(op) for op in OBSERVING if op != "ReceiveMessage"), 120, "the end of what a takeover and starting ask for", step=1)
    t0 = time.time()
    time.sleep(QUIET)
    t1 = time.time()
    before = lag.seconds
    with open(s.dir + "/gate", "w", encoding="ascii"):
        pass
    wait_moving(lambda: s.ended(cid), lambda: len(s.live_jobs()), "the end of it", seconds=120, step=1)
    t2 = time.time()
    n = observing(s, t0, t1)  # a question that waits is in the log once it is answered
    rate = sum(n.values()) / (t1 - t0)
    tap.ok(rate <= 0.1 and 0 < n["ReceiveMessage"] <= QUIET / 20 + 1 and (FULL or n["ListTrainingJobs"] + n["DescribeTrainingJob"] == 0),
           f"events: {LIVE} running jobs, {OLD} old ones: {rate:.3f} calls a second in all (0.1): {n}")
    log = s.oracle("wire-log")["requests"]
    late = sorted((seen(log, j) or 9e9) - j["ended"] for j in s.oracle("jobs")["jobs"] if not j["ghost"] and j["ended"])
    tap.ok(late[-1] <= 6 + lag.seconds - before, f"events: {len(late)} ends seen within 6 s: median {late[len(late) // 2]:.1f}, worst {late[-1]:.1f} s", late)
    n = observing(s, t1, t2)
    tap.ok(n["DescribeTrainingJob"] <= 3 * LIVE, f"events: calls for {LIVE} ends in {t2 - t1:.0f} s: {n}")
    figures = dict(line.split() for line in s.raw("GET", "/metrics")[1].decode().splitlines() if line.startswith(("droverd_event", "droverd_aws", "droverd_job_s")))
    tap.ok(int(figures["droverd_events_total"]) >= 3 * LIVE and 0 <= int(figures["droverd_event_age_seconds"]) < 600 and int(figures["droverd_aws_requests_per_1000_job_hours"]) > 0,
           f"events: {figures}")


def nothing_is_lost(s):
    """Whatever events do, and when the queue refuses: the Lists make up for it."""
    s.kill("droverd0")
    s.start_droverd(env={"DROVER_OBSERVE_INTERVAL_US": "1000000"})
    wait_for(lambda: s.leader() == 0, 30, "a leader")
    s.faults(*({"kind": "event_" + kind, "probability": 0.25, "seed": i, "delay_seconds": 1 + 3 * i} for i, kind in enumerate(("lost", "twice", "reordered", "late"))))
    cid = s.submit(naps(s, "spoiled", 2 * LIVE, 0))
    wait_moving(lambda: s.ended(cid), lambda: sorted(j["name"] for j in s.live_jobs()), "the end of it", seconds=240, step=1)
    jobs = [j for j in s.oracle("jobs")["jobs"] if j["name"].startswith(f"t-{cid[2:]}-")]
    hits = {f["kind"]: f["hits"] for f in s.oracle("faults")["faults"]}
    tap.ok(s.api("GET", f"/campaigns/{cid}")["state"] == "succeeded" and len(jobs) == 2 * LIVE and min(hits.values()) > 0,
           f"events lost, told twice, late and in another order: each of {2 * LIVE} parts has one job, and ends ({hits})", len(jobs))
    s.faults({"kind": "access_denied", "operation": "ReceiveMessage", "times": 1000})
    refused = s.submit(naps(s, "refused", 1, 60))
    t0 = time.time()
    wait_for(lambda: observing(s, t0)["ListTrainingJobs"] >= 6, 60, "Lists")
    tap.ok(observing(s, t0)["ReceiveMessage"] <= 10, "a queue that refuses brings the Lists back, and is asked ever less", observing(s, t0))
    s.faults()
    s.api("POST", f"/campaigns/{refused}:cancel")
    wait_for(lambda: s.ended(refused), 60, "the end of that")


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
if os.environ.get("ONLY", "") in "events":
    with Stack("many-jobs-events", parts=1, rows=1, quotas={"ml.c5.xlarge": LIVE}, lease_us=10000000, observe_us=RARELY * 1000000, images={"user/nap": ["/bin/sh", "-c", NAP]}, local=QUEUE) as stack:
        stack.extra_env["DROVER_EVENTS_QUEUE_URL"] = f"http://127.0.0.1:{stack.local_port}/123456789012/drover-events"
        stack.start_pg()
        stack.start_local()
        stack.start_droverd(binary=os.environ.get("DROVERD"))
        wait_for(lambda: stack.leader() == 0, 30, "a leader")
        events_tell(stack)
        nothing_is_lost(stack)
        stack.check_invoice(tap)
sys.exit(tap.done())
