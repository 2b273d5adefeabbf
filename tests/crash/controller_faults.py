#!/usr/bin/python3
"""The controller against faulty AWS replies. Aim: whatever a call returns, every part ends as it should, no
part gets two jobs, no refusal uses up an attempt, and the ledger equals the invoice. Method: one droverd
and one drover-local with ordered faults; each case is a small campaign; botocore stops jobs as a user
would by hand.   (ONLY=word runs the cases whose name contains it)
"""
import os
import signal
import sys
import time

import botocore.config
import botocore.session

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kit import TOP, VARIANT, Tap, cases, wait_for
from kit.stack import DROVERD_KEY, DROVERD_SECRET, KEY, SECRET, Stack

tap = Tap()
CREATE, DESCRIBE, LIST, STOP = ({"operation": o + "TrainingJob" + ("s" if o == "List" else "")} for o in ("Create", "Describe", "List", "Stop"))
ONE = "s3://drover-test/meta/part-00000*.parquet"
ALL = 6
CLOCK_SHIFT = {"LD_PRELOAD": os.path.join(TOP, "build", VARIANT, "tests", "kit", "clock_shift.so"),
               "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}


def name_of(cid):
    """The common prefix of all job names of the campaign."""
    return f"t-{cid[2:]}-"


def next_name(s):
    """The same for the next submitted campaign: ids are a sequence."""
    ids = [int(c["id"][2:]) for c in s.api("GET", "/campaigns")["campaigns"]]
    return f"t-{max(ids, default=0) + 1}-"


def creates(s, name):
    return [r for r in s.oracle("wire-log")["requests"] if r["operation"] == "CreateTrainingJob" and r["name"].startswith(name)]


def jobs(s, name):
    return [j for j in s.oracle("jobs")["jobs"] if j["name"].startswith(name)]


def heads(s):
    return [r for r in s.oracle("wire-log")["requests"] if r["operation"] == "HeadObject"]


def attempts(s, cid):
    return [p["attempts"] for p in s.api("GET", f"/campaigns/{cid}/parts")["parts"]]


def ends(s, cid, state="succeeded", seconds=60):
    try:
        c = wait_for(lambda: s.ended(cid), seconds, f"the end of {cid}", step=0.1)
    except TimeoutError:
        c = s.api("GET", f"/campaigns/{cid}")
    tap.ok(c["state"] == state, f"{s.what}the campaign ends {state}", f"{c} {s.api('GET', f'/campaigns/{cid}/parts')}")
    return c


def no_attempt_used(s, cid, parts):
    got = attempts(s, cid)
    tap.ok(got == [1] * parts, f"{s.what}each part used one attempt, the one that did the work", got)


def retried(s, cid, body):
    """The one failed part is done after a retry."""
    s.api("POST", f"/campaigns/{cid}:retry", body)
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["parts"]["done"] == 1, 40, "the retried part")
    ends(s, cid)


def alerts(s):
    return open(s.dir + "/droverd0.log").read().count('"event":"attempt_needs_attention"')


def case_reply_lost_then_a_refusal(s):
    """Describe fails once and List shows nothing, so the name is sent again although its job exists."""
    first = int(next_name(s)[2:-1])
    cases = {"quota_refuse": "ResourceLimitExceeded", "throttle": "ThrottlingException", "access_denied": "AccessDeniedException"}
    faults, cids = [], []
    for i, kind in enumerate(cases):
        name = f"t-{first + i}-"
        faults += [{**CREATE, "name_contains": name, "kind": "drop_after"}, {**CREATE, "name_contains": name, "kind": kind, "after": 1},
                   {**DESCRIBE, "name_contains": name, "kind": "throttle"}]
    s.faults(*faults, {**LIST, "kind": "list_omits", "name_contains": "-download-", "times": 1000})
    for kind in cases:
        cids.append(s.submit(name="lost-" + kind.replace("_", "-"), source=ONE))
    for cid, (kind, code) in zip(cids, cases.items()):
        ends(s, cid)
        sent = creates(s, name_of(cid))
        tap.ok([(r["accepted"], r["replied"], r["error"]) for r in sent] == [(True, False, None), (False, True, code)],
               f"{s.what}{kind} answered the name that had taken effect", sent)
        tap.ok(len({r["name"] for r in sent}) == 1 and len({r["sha256"] for r in sent}) == 1 and len(jobs(s, name_of(cid))) == 1,
               f"{s.what}one name, the same bytes, one job, adopted", sent)
        no_attempt_used(s, cid, 1)


def case_effect_delayed_behind_refusals(s):
    name = next_name(s)
    s.faults(*({**CREATE, "name_contains": name, **f} for f in ({"kind": "effect_delayed", "delay_seconds": 8.5}, {"kind": "quota_refuse", "after": 1},
             {"kind": "throttle", "after": 1}, {"kind": "access_denied", "after": 1})))
    cid = s.submit(name="late", source=ONE)
    ends(s, cid)
    sent = creates(s, name)
    tap.ok([r["error"] for r in sent] == [None, "ResourceLimitExceeded", "ThrottlingException", "AccessDeniedException"],
           f"{s.what}all three answered while the first send was still to take effect", sent)
    tap.ok(len({r["name"] for r in sent}) == 1 and len(jobs(s, name)) == 1, f"{s.what}one name, one job, adopted", sent)
    no_attempt_used(s, cid, 1)


def case_reply_lost_and_cancelled(s):
    name = next_name(s)
    s.faults({**CREATE, "name_contains": name, "kind": "effect_delayed", "delay_seconds": 3}, {**CREATE, "name_contains": name, "kind": "access_denied", "times": 50})
    cid = s.submit(name="gone", source=ONE)
    wait_for(lambda: creates(s, name) or s.api("GET", f"/campaigns/{cid}")["parts"]["active"], 20, "the first send")
    s.api("POST", f"/campaigns/{cid}:cancel", {})
    ends(s, cid, "cancelled")
    tap.ok(len(jobs(s, name)) <= 1 and all(j["ended"] for j in jobs(s, name)), f"{s.what}the late job, if it came, was found and stopped", jobs(s, name))


def case_ghost_beside(s):
    name = next_name(s)
    s.faults({**CREATE, "name_contains": name, "kind": "ghost_job", "delay_seconds": 1})
    cid = s.submit(name="ghost", source=ONE)
    ends(s, cid)
    mine = [r for r in s.oracle("wire-log")["requests"] if r["operation"] in ("StopTrainingJob", "UpdateTrainingJob") and r["name"].startswith(name)]
    tap.ok(not mine, f"{s.what}somebody else's job under our prefix is left alone", mine)
    no_attempt_used(s, cid, 1)


def case_ghost_in_our_place(s):
    name, before = next_name(s), alerts(s)
    s.faults({**CREATE, "name_contains": name, "kind": "ghost_job", "same_name": True})
    cid = s.submit(name="taken", source=ONE)
    ends(s, cid, "failed")
    part = s.api("GET", f"/parts/{cid}/0")
    tap.ok([a["state"] for a in part["attempt_list"]] == ["conflict"] and alerts(s) == before + 1, f"{s.what}a conflict, and a person is told once", part)
    tap.ok(not [r for r in s.oracle("wire-log")["requests"] if r["operation"] == "StopTrainingJob" and r["name"].startswith(name)],
           f"{s.what}the other's job is not stopped")
    s.faults()
    retried(s, cid, {"selector": {"state": "failed"}})
    names = sorted({r["name"].rsplit("-", 1)[0][-2:] for r in creates(s, name)})
    tap.ok(names == ["a1", "a2"], f"{s.what}a retry takes the next name", names)


def case_stopped_by_a_person(s):
    name = next_name(s)
    s.faults()
    s.procs["web"].send_signal(signal.SIGSTOP)  # the job waits for it until it is stopped
    client = botocore.session.get_session().create_client(
        "sagemaker", region_name="us-east-1", endpoint_url=f"http://127.0.0.1:{s.local_port}", aws_access_key_id=KEY, aws_secret_access_key=SECRET)
    cid = s.submit(name="stopped", source=ONE)
    job = wait_for(lambda: [j for j in jobs(s, name) if j["status"] == "InProgress"], 20, "a job")[0]
    client.stop_training_job(TrainingJobName=job["name"])
    ends(s, cid, "failed")
    s.procs["web"].send_signal(signal.SIGCONT)
    part = s.api("GET", f"/parts/{cid}/0")
    a = part["attempt_list"][0]
    tap.ok(part["cause"] == "stopped" and a["state"] == "stopped" and "somebody else" in a["reason"], f"{s.what}the part says who stopped it", part)
    retried(s, cid, {"selector": {"cause": ["stopped"]}, "changes": {"volume_gb": 2400}})
    volumes = s.sql(f"SELECT string_agg(volume_gb::text, ',' ORDER BY n) FROM attempt WHERE campaign_id = {cid[2:]}")
    tap.ok(volumes.endswith(",2400"), f"{s.what}the retry has the volume it was given", volumes)
    tap.ok([j["status"] for j in sorted(jobs(s, name), key=lambda j: j["created"])] == ["Stopped", "Completed"], f"{s.what}a retry finishes it", jobs(s, name))


def case_reads_that_lie(s):
    s.faults({**DESCRIBE, "kind": "stale_describe", "probability": 0.3, "times": 1000, "delay_seconds": 2, "seed": 1},
             {**DESCRIBE, "kind": "unknown_status", "probability": 0.1, "times": 1000, "seed": 2},
             {**LIST, "kind": "list_omits", "name_contains": "-download-", "probability": 0.3, "times": 1000, "seed": 3},
             {**LIST, "kind": "looping_next_token", "probability": 0.5, "times": 1000, "seed": 4})
    cid = s.submit(name="lies")
    ends(s, cid)
    no_attempt_used(s, cid, ALL)


def case_describe_without_environment(s):
    """Another emulator leaves Environment out, now and then or always: a job of our name stays ours, also when the reply of its Create was lost."""
    for what, faults in (("twice", [{"times": 2}]), ("always", [{"times": 100000}]), ("and its reply is lost", [{"times": 100000}, {**CREATE, "kind": "drop_after"}])):
        name = next_name(s)
        s.faults(*({**DESCRIBE, "kind": "no_environment", "name_contains": name, **f} for f in faults))
        cid = s.submit(name="bare", source=ONE)
        ends(s, cid)
        got = [a["state"] for a in s.api("GET", f"/parts/{cid}/0")["attempt_list"]]
        tap.ok(got == ["succeeded"] and len(jobs(s, name)) == 1, f"{s.what}{what}: no conflict, one job", got)
        no_attempt_used(s, cid, 1)


def case_answers_that_break(s):
    name = next_name(s)
    broken = ("half_body", "wrong_json", "html_error", "error_500", "error_503", "drop_before")
    s.faults(*({**op, "kind": kind, "probability": 0.06, "times": 1000, "seed": 10 * i + k}
               for i, op in enumerate((CREATE, DESCRIBE, LIST, STOP)) for k, kind in enumerate(broken)))
    cid = s.submit(name="broken")
    ends(s, cid)
    tap.ok(len(jobs(s, name)) == ALL and len(creates(s, name)) > ALL, f"{s.what}{len(creates(s, name))} sends, {ALL} jobs", [j["name"] for j in jobs(s, name)])
    no_attempt_used(s, cid, ALL)


def case_outputs_that_cannot_be_read(s):
    s.faults(*({"operation": op, "kind": kind, "probability": 0.08, "times": 1000, "seed": i} for i, (op, kind) in enumerate(
        (op, kind) for op in ("ListObjectsV2", "GetObject") for kind in ("error_503", "half_body", "drop_before", "throttle"))))
    wait_for(lambda: s.raw("POST", "/v1/campaigns?dry_run=true", s.campaign(name="s3").encode(), {"Content-Type": "application/yaml"})[0] // 100 == 2, 30, "a plan's listing")
    cid = s.submit(name="s3")
    ends(s, cid, seconds=400)  # each look may fail, and waits up to 10 s for the next
    tap.ok(len(jobs(s, name_of(cid))) >= ALL, f"{s.what}the parts were done")


def case_outputs_that_are_refused(s):
    """For good: with a cause that is not paid once more, and the words of S3. A count needs no more pages than it asks for."""
    s.faults({"operation": "GetObject", "name_contains": "_stats.json", "kind": "access_denied", "times": 1000})
    cid = s.submit(name="figures", source=ONE, stage_extra="    verify: img2dataset")
    ends(s, cid, "failed")
    part = s.api("GET", f"/parts/{cid}/0")
    tap.ok(part["cause"] == "access_denied" and "output cannot be read" in part["attempt_list"][0]["reason"] and attempts(s, cid) == [1],
           f"{s.what}a part fails once, with its cause", part)
    s.faults({"operation": "GetObject", "name_contains": "_stats.json", "kind": "error_503", "times": 3})
    ends(s, s.submit(name="some", source=ONE, stage_extra="    verify: img2dataset"))
    s.faults()
    cid = s.submit(name="count", source=ONE, out="count", stage_extra='    verify: {count: 2, prefix: "s3://drover-test/count-{campaign}/{part:05d}/"}')
    s.faults({"operation": "ListObjectsV2", "kind": "error_503", "times": 2})
    ends(s, cid)


def case_outputs_that_nobody_can_read_and_nobody_wants(s):
    """S3 is away: the paid part waits for it; a cancel does not, and says what it did not see."""
    s.faults({"operation": "HeadObject", "name_contains": "away/00000/done", "kind": "error_503", "times": 100000})
    cid = s.submit(name="away", source=ONE, stage_extra='    verify: {exists: "s3://drover-test/away/{part:05d}/done"}')
    wait_for(lambda: len([j for j in jobs(s, name_of(cid)) if j["status"] == "Completed"]) == 1, 40, "the job's end")
    s.api("POST", f"/campaigns/{cid}:pause")
    asked = len(heads(s))
    wait_for(lambda: len(heads(s)) > asked + 2, 60, "three more looks")
    tap.ok(s.api("GET", f"/parts/{cid}/0")["attempt_list"][0]["state"] == "verifying", f"{s.what}a pause keeps what is paid", s.api("GET", f"/parts/{cid}/0"))
    s.api("POST", f"/campaigns/{cid}:cancel")
    ends(s, cid, "cancelled", seconds=40)
    reason = s.api("GET", f"/parts/{cid}/0")["attempt_list"][0]["reason"]
    tap.ok(reason.startswith("its output was not looked at: "), f"{s.what}its reason", reason)


def case_foreign_use_of_the_quota(s):
    name = next_name(s)
    s.faults({**CREATE, "name_contains": name, "kind": "quota_refuse", "times": 3})
    cid = s.submit(name="foreign", source=ONE)
    ends(s, cid)
    sent = creates(s, name)
    tap.ok([r["accepted"] for r in sent] == [False] * 3 + [True] and len({r["name"] for r in sent}) == 4, f"{s.what}three clean refusals, each name used once", sent)
    no_attempt_used(s, cid, 1)


def case_a_refusal_that_stays(s):
    name = next_name(s)
    s.faults({**CREATE, "name_contains": name, "kind": "access_denied", "times": 50})
    cid = s.submit(name="denied", source=ONE)
    ends(s, cid, "failed")
    part = s.api("GET", f"/parts/{cid}/0")
    tap.ok(part["cause"] == "access_denied" and "not authorized" in part["attempt_list"][0]["reason"] and len(creates(s, name)) == 1 and not jobs(s, name),
           f"{s.what}one send, one clear cause, no job", part)


def restart_local(s, **changes):
    s.kill("local")
    s.local_extra.update(changes)
    s.start_local()


def case_keys_that_expired(s):
    name = next_name(s)
    s.faults({**CREATE, "name_contains": name, "kind": "throttle", "times": 1000})
    cid = s.submit(name="keys")
    restart_local(s, credentials={DROVERD_KEY: "rotated"})
    wait_for(lambda: [r for r in creates(s, name) if r["error"] == "InvalidSignatureException"], 30, "refused sends")
    restart_local(s, credentials={DROVERD_KEY: DROVERD_SECRET})
    ends(s, cid)
    tap.ok(len(jobs(s, name)) == ALL, f"{s.what}one job a part")
    no_attempt_used(s, cid, ALL)


def case_quota_lowered(s):
    s.faults()
    cid = s.submit(name="lowered")
    wait_for(lambda: len(jobs(s, name_of(cid))) >= 2, 20, "jobs")
    restart_local(s, quotas={"ml.c5.xlarge": 1})
    c = ends(s, cid)
    # A Create whose reply went with the restart is sent again, and its name is there already.
    refused = [r for r in creates(s, name_of(cid)) if r["error"] not in ("", None, "ResourceInUse")]
    tap.ok(c["parts"]["done"] == ALL and all(r["error"] == "ResourceLimitExceeded" for r in refused), f"{s.what}all parts are done under the lower quota", refused)
    no_attempt_used(s, cid, ALL)
    restart_local(s, quotas={"ml.c5.xlarge": 4})


def case_quota_unreadable(s):
    """Keep this last: droverd is restarted without any known quota."""
    s.kill("droverd0")
    s.faults({"operation": "ListServiceQuotas", "kind": "access_denied", "times": 100000})
    s.start_droverd(0)
    cid = s.submit(name="blind", source=ONE)
    wait_for(lambda: len([r for r in s.oracle("wire-log")["requests"]
         if r["operation"] == "ListServiceQuotas" and r["error"] and r["time"] > s.began]) >= 3, 30, "three tries to read the quotas")
    c = s.api("GET", f"/campaigns/{cid}")
    tap.ok(not creates(s, name_of(cid)) and c["parts"]["waiting"] == 1, f"{s.what}nothing is submitted while the quota is unknown", c)
    tap.ok("quota" in str(c["stages"]), f"{s.what}and the stage says so", c["stages"])
    s.faults()
    ends(s, cid)


def lists_until_seen(s, job):
    """How many Lists were sent after the job's end, until the Describe that shows it."""
    n = 0
    for r in s.oracle("wire-log")["requests"]:
        if r["time"] > job["ended"]:
            n += r["operation"] == "ListTrainingJobs"
            if r["operation"] == "DescribeTrainingJob" and r["name"] == job["name"]:
                return n
    return None


def lists_stopped(s, began):
    """True when the Lists that follow a takeover, over all names of late, are over: nothing of ours is live."""
    def sent():
        return len([r for r in s.oracle("wire-log")["requests"] if r["operation"] == "ListTrainingJobs" and r["time"] > began and not r["error"]])
    before = sent()
    time.sleep(0.8)  # longer than the pause between two pages of a List
    return 0 < before == sent()


def restarted(s, env):
    """Returns when the Lists that follow a takeover, and are no part of what is measured, are over."""
    s.kill("droverd0")
    began = time.time()
    s.start_droverd(0, env={"DROVER_SIGNATURE_WINDOW_US": "1000000", "DROVER_LEASE_LENGTH_US": "1500000", "DROVER_LEASE_RENEW_US": "500000", **env})
    wait_for(lambda: lists_stopped(s, began), 60, "the end of the takeover's Lists")


def case_clocks_apart(s):
    """The clock of droverd alone is wrong: a job's end is seen as soon as with a right one, give or take the List that is under way at it."""
    right = None
    for minutes in (0, 10, -10, 40):
        restarted(s, {**CLOCK_SHIFT, "CLOCK_SHIFT_S": str(60 * minutes)})
        cid = s.submit(name="clock")
        ends(s, cid)
        seen = [lists_until_seen(s, j) for j in jobs(s, name_of(cid))]
        right = right or seen
        tap.ok(len(seen) == ALL and None not in seen and sum(seen) <= sum(right) + ALL, f"{s.what}{minutes:+d} min: the ends are seen after {seen} Lists, with a right clock after {right}", seen)
        no_attempt_used(s, cid, ALL)


def case_a_cleaned_prefix(s):
    """droverd refuses a prefix that jobs cannot carry and proposes another (api-safe): under that one ends are seen by List."""
    for prefix in ("team-a", "a" * 24):
        restarted(s, {**s.aws_env(), "DROVER_JOB_PREFIX": prefix})
        cid = s.submit(name="prefixed")
        s.prefixes[cid] = prefix
        ends(s, cid)
        seen = [lists_until_seen(s, j) for j in jobs(s, f"{prefix}-{cid[2:]}-")]
        tap.ok(len(seen) == ALL and None not in seen and sum(seen) <= 2 * ALL, f"{s.what}{prefix}: the ends are seen after {seen} Lists, two each as a rule at most", seen)
    restarted(s, {})


def case_prices_unreadable(s):
    """A mistake in the prices file does not prevent leadership; known prices stay."""
    for text, event in (("{nope", "prices_unreadable"), ('{"ml.c5.xlarge": 0.2}', "price_unreadable")):
        with open(s.dir + "/wrong-prices.json", "w") as f:
            f.write(text)
        s.kill("droverd0")
        s.start_droverd(0, env={"DROVER_PRICES_FILE": s.dir + "/wrong-prices.json"})
        ends(s, s.submit(name="prices", source=ONE))
        tap.ok(f'"event":"{event}"' in open(s.dir + "/droverd0.log").read(), f"{s.what}the log says {event}")


CASES = cases(globals())
with Stack("controller-faults", parts=ALL, rows=4, lease_us=4000000, local={"cold_start_seconds": 0.4, "signature_window_seconds": 20,
                  "account_quotas": {"Size of EBS volume for a training job instance": 16384}},
           env={"DROVER_SIGNATURE_WINDOW_US": "12000000", "DROVER_QUOTA_INTERVAL_US": "1000000"}) as stack:
    stack.start()
    wait_for(lambda: stack.leader() is not None, 20, "a leader")
    for case in CASES:
        stack.what, stack.began = case.__name__[5:].replace("_", " ") + ": ", time.time()
        case(stack)
        print(f"# {time.time() - stack.began:.1f} s", flush=True)
        stack.faults()
    stack.what = ""
    wait_for(lambda: not stack.live_jobs(), 30, "no live job")
    stack.check_wire(tap, quota_faults=True, keys_refused=True)
    stack.check_invoice(tap)
    tap.ok(stack.procs["droverd0"].poll() is None, "droverd is still there")
sys.exit(tap.done())
