#!/usr/bin/python3
"""The scheduler inside the running controller. Aim: droverd carries out core's decisions over a real
PostgreSQL and drover-local: warm pools are reused, ended and paid once; breakers hold a stage and a user
resumes it; limits lowered in flight drain; caps bind, warn and stop; a hung part is stopped and retried; a
new leader continues without a difference, and adopts jobs whose rows a failed-over database lost. Method:
one stack per group, a small campaign per case; the oracle is drover-local's wire log, jobs and invoice,
and the database (read only) where no interface shows it.   (ONLY=word runs the cases whose name contains
it)
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import PROGRAMS, Tap, cases, wait_for
from kit.stack import Stack

tap = Tap()
ALL = "s3://drover-test/meta/*.parquet"
PRICE = 204000  # micro-USD an hour


def jobs(s, cid):
    return sorted((j for j in s.oracle("jobs")["jobs"] if j["name"].startswith(f"t-{cid[2:]}-")), key=lambda j: j["created"])


def requests(s, operation, cid=None):
    return [r for r in s.oracle("wire-log")["requests"] if r["operation"] == operation and (cid is None or r["name"].startswith(f"t-{cid[2:]}-"))]


def campaign(s, cid):
    return s.api("GET", f"/campaigns/{cid}")


def ends(s, cid, state="succeeded", seconds=90):
    try:
        c = wait_for(lambda: s.ended(cid), seconds, f"the end of {cid}", step=0.1)
    except TimeoutError:
        c = campaign(s, cid)
    tap.ok(c["state"] == state, f"{s.what}the campaign ends {state}", f"{c} {s.api('GET', f'/campaigns/{cid}/parts')}"[:3000])
    return c


def user_stage(command, extra="", parts="", instance="ml.c5.xlarge"):
    """A campaign whose stage runs a program of the test instead of the worker, one part per file."""
    return f"""version: 1
name: user
{parts}
retry:
  - {{cause: [capacity, quota], wait: 1s..2s, times: forever, counts: no}}
  - {{cause: [user_code, unknown, timeout], wait: 1s..1s, times: 5}}
stages:
  - name: work
    image: drover/user:test
    fan_out: {{from: "{ALL}"}}
    command: {command}
    instance_type: {instance}
    max_runtime: 5m
    output: "s3://drover-test/out-{{campaign}}/{{part:05d}}/"
    verify: none
{extra}
"""


def events(s, cid, kind):
    rows = s.sql(f"SELECT coalesce(string_agg(detail->>'text', '|' ORDER BY id), '|') FROM event WHERE campaign_id = {cid[2:]} AND kind = '{kind}'")
    return [r for r in rows.split("|") if r]


def counters(s):
    wrong = s.sql("SELECT coalesce(string_agg(what || ' ' || ref || ': kept ' || kept || ' counted ' || counted, '; '), 'none') FROM check_counters()")
    tap.ok(wrong == "none", f"{s.what}all that is kept as a sum is right", wrong)


def pools_over(s, seconds=60):
    wait_for(lambda: s.sql("SELECT count(*) FROM pool WHERE ended_at IS NULL") == "0", seconds, "the end of the pools", step=0.2)


WARM = "warm_pool: {keep_alive: 5m}"


def case_warm_pools_are_reused_and_paid_once(s):
    cid = s.submit(name="warm", top=WARM)
    ends(s, cid)
    pools_over(s)
    js = jobs(s, cid)
    reused = int(s.sql(f"SELECT count(*) FROM pool WHERE state = 'reused' AND campaign_id = {cid[2:]}"))
    tap.ok(len(js) == 8 and reused >= 3, f"{s.what}{reused} of {len(js)} jobs left their instances to another", js)
    tap.ok(requests(s, "UpdateTrainingJob", cid), f"{s.what}pools that nothing matches any more were ended")
    counters(s)
    s.check_invoice(tap, s.what)
    inv = [l for l in s.oracle("invoice")["lines"] if l["kind"] not in ("training",)]
    kept = s.sql("SELECT warm_musd || ' ' || warm_seconds FROM money WHERE level = 'global'")
    tap.ok(inv and kept == f"{sum(l['micro_usd'] for l in inv)} {sum(l['seconds'] for l in inv)}", f"{s.what}idle time is booked as the invoice has it ({kept})", inv)


def case_people_end_a_pool(s):
    """Those that stay for their keep-alive are ended by hand; one that is not there is not."""
    cid = s.submit(name="kept", top="warm_pool: {keep_alive: 5m, kill_when_queue_empty: no}")
    status, text, _ = s.raw("POST", f"/v1/pools/t-{cid[2:]}-download-0-a1-00000000:end", b"{}", {"Content-Type": "application/json"})
    tap.ok(status == 404 and b"keeps no instances" in text, f"{s.what}a job that keeps none", text)
    ends(s, cid)
    idle = wait_for(lambda: [p for p in s.api("GET", f"/pools?campaign={cid}")["pools"] if p["state"] == "available"], 20, "a pool that stays")
    tap.ok(not any(p["end_asked"] or p["end_reason"] for p in idle), f"{s.what}{len(idle)} stay when nothing is left to do", idle)
    for p in idle:
        s.api("POST", f"/pools/{p['job_name']}:end", {})
    pools_over(s)
    over = [p for p in s.api("GET", f"/pools?campaign={cid}")["pools"] if p["id"] in [x["id"] for x in idle]]
    tap.ok(all(p["end_reason"] == "asked" and p["end_asked"] and p["ended_at"] for p in over), f"{s.what}and end long before their time", over)
    s.check_invoice(tap, s.what)


def case_leaders_die_while_pools_live(s):
    cid = s.submit(name="warm-kill", top=WARM)
    kills = 0
    while not s.ended(cid) and kills < 8:
        time.sleep(1.3)  # moments of kills, spread over the campaign
        s.kill("droverd0")
        kills += 1
        s.start_droverd(0)
    ends(s, cid)
    s.kill("droverd0")
    s.start_droverd(0)
    pools_over(s)
    counters(s)
    tap.ok(len(jobs(s, cid)) == 8, f"{s.what}one job a part through {kills} kills", jobs(s, cid))
    s.check_invoice(tap, s.what)


def case_aws_hands_out_another_pool_than_was_meant(s):
    """drover-local takes the newest of equal pools here, droverd expects the oldest: takers are swapped and
    nothing is counted wrong. The remaining pools hold slots in the next case.
    """
    before = open(s.dir + "/droverd0.log").read().count('"pool_swapped"')
    first = s.submit(name="keeps-all", top="warm_pool: {keep_alive: 10m, kill_when_queue_empty: no}")
    ends(s, first)
    idle = wait_for(lambda: (lambda n: n >= 2 and n)(int(s.sql("SELECT sum(warm_idle) FROM slots"))), 20, "idle pools")
    cid = s.submit(name="warm-other", top=WARM)
    ends(s, cid)
    swapped = open(s.dir + "/droverd0.log").read().count('"pool_swapped"') - before
    tap.ok(swapped > 0, f"{s.what}{swapped} takers were exchanged, of {idle} idle pools")
    refused = [r for r in requests(s, "CreateTrainingJob", cid) if r["error"]]
    tap.ok(not refused, f"{s.what}no Create was refused", refused)
    counters(s)
    s.check_invoice(tap, s.what)


def case_a_pool_in_the_way_is_ended(s):
    """Pools of one volume size hold every slot; a campaign of another size still gets them."""
    first = s.submit(name="keeps", top="warm_pool: {keep_alive: 10m, kill_when_queue_empty: no}")
    ends(s, first)
    idle = wait_for(lambda: int(s.sql("SELECT sum(warm_idle) FROM slots")) or None, 20, "idle pools")
    tap.ok(idle >= 3, f"{s.what}{idle} instances idle", idle)
    other = s.submit(name="other", stage_extra="    volume_gb: 77")
    ends(s, other)
    why = s.sql(f"SELECT coalesce(string_agg(DISTINCT end_reason, ','), '') FROM pool WHERE campaign_id = {first[2:]}")
    tap.ok("blocks_quota" in why, f"{s.what}pools that block the quota were ended", why)
    wait_for(lambda: s.sql("SELECT count(*) FROM pool WHERE ended_at IS NULL AND end_reason <> ''") == "0", 60, "the end of the pools", step=0.2)
    counters(s)


def ticks_of(s):
    return int(re.search(rb"^droverd_ticks_total (\d+)", s.raw("GET", "/metrics", i=0)[1], re.M).group(1))


def case_a_bug_that_fails_every_part(s):
    cid = s.submit(user_stage("[fail, the same for all]"))
    c = wait_for(lambda: [x for x in [campaign(s, cid)] if x["state"] == "held"], 60, "the hold")[0]
    paid = len(jobs(s, cid))
    tap.ok(paid <= 3, f"{s.what}no more than 3 attempts were paid before the hold ({paid})")
    stage = c["stages"][0]
    tap.ok(stage["state"] == "held" and "the same for all" in stage["reason"] and f"drover resume {cid}" in stage["reason"], f"{s.what}the stage says why and what to do", stage)
    s.kill("droverd0")
    s.start_droverd(0)
    wait_for(lambda: s.leader() == 0, 20, "a leader")
    ticks = ticks_of(s)
    wait_for(lambda: ticks_of(s) >= ticks + 10, 60, "ten passes of its control loop")
    tap.ok(len(jobs(s, cid)) == paid, f"{s.what}the next leader holds it too", jobs(s, cid))
    s.api("POST", f"/campaigns/{cid}:resume", {})
    wait_for(lambda: len(jobs(s, cid)) > paid, 40, "the next canary")
    c = wait_for(lambda: [x for x in [campaign(s, cid)] if x["state"] == "held"], 60, "the hold again")[0]
    tap.ok(len(jobs(s, cid)) <= paid + 3, f"{s.what}a resume starts with a canary again", jobs(s, cid))
    s.api("POST", f"/campaigns/{cid}:cancel", {})
    ends(s, cid, "cancelled")
    counters(s)


def case_a_poison_part_is_set_aside(s):
    cid = s.submit(user_stage('[poison, "{part}", "3"]', extra="""    allow_failed: 20%
  - {name: after, needs: work, image: "drover/user:test", command: ["true"], fan_out: {count: 1}, instance_type: ml.c5.xlarge, max_runtime: 5m, verify: none}
"""))
    c = ends(s, cid)
    work, after = c["stages"]
    tap.ok(work["reason"] == "1 of 8 parts failed, within allow_failed" and after["parts"]["done"] == 1, f"{s.what}the next stage goes on, and the campaign says so", c["stages"])
    tap.ok(work["parts"]["done"] == 7 and c["parts"]["failed"] == 1, f"{s.what}seven pass, the poison fails", c["parts"])
    part = s.api("GET", f"/parts/{cid}/3")
    tap.ok(len(part["attempt_list"]) == 3, f"{s.what}it was set aside after three like failures, not after six", len(part["attempt_list"]))


def case_a_stage_within_allow_failed_is_retried(s):
    """It has succeeded, and so has its campaign: both run again, and what was done stays done."""
    cid = s.submit(user_stage('[poison, "{part}", "3"]', extra="""    allow_failed: 20%
    breaker: off
    canary: off
  - {name: after, needs: work, image: "drover/user:test", command: ["true"], fan_out: {count: 1}, instance_type: ml.c5.xlarge, max_runtime: 5m, verify: none}
"""))
    ends(s, cid)
    made, before = {j["name"] for j in jobs(s, cid)}, s.sql("SELECT epoch FROM lease")
    s.api("POST", f"/campaigns/{cid}:retry", {"selector": {"stage": "work"}})
    wait_for(lambda: len(jobs(s, cid)) > len(made) or None, 60, "a job of the stage that had succeeded")
    work, after = ends(s, cid)["stages"]
    again = [s.part_of(j["name"]) for j in jobs(s, cid) if j["name"] not in made]
    tap.ok(set(again) == {f"t-{cid[2:]}-work-3"} and [work["parts"]["done"], work["parts"]["failed"], after["state"]] == [7, 1, "succeeded"],
           f"{s.what}the part that failed is tried again, nothing else is", (again, work, after))
    moves = s.sql(f"SELECT string_agg(concat_ws(' ', kind, detail->>'from', detail->>'to'), ', ' ORDER BY id) FROM event WHERE campaign_id = {cid[2:]}"
                  f" AND kind IN ('stage.state', 'campaign.state') AND detail->>'from' = 'succeeded'")
    tap.ok(moves == "stage.state succeeded running, campaign.state succeeded running", f"{s.what}stage and campaign that had succeeded ran again", moves)
    tap.ok(s.sql("SELECT epoch FROM lease") == before and not s.api("GET", f"/parked?campaign={cid}")["parked"], f"{s.what}the same leader leads, nothing is parked")
    counters(s)


def live(s, cid):
    return len([j for j in jobs(s, cid) if j["status"] == "InProgress"])


def case_a_limit_lowered_drains(s):
    cid = s.submit(user_stage('[sleep, "2"]'))
    wait_for(lambda: live(s, cid) == 4, 30, "four at once")
    before = {j["name"] for j in jobs(s, cid) if j["status"] == "InProgress"}
    s.api("PATCH", f"/campaigns/{cid}", {"limits": {"parts": 1}}, headers={"If-Match": f'"{campaign(s, cid)["version"]}"'})
    wait_for(lambda: live(s, cid) == 1, 30, "one at once")
    ended = {j["name"]: j["status"] for j in jobs(s, cid)}
    tap.ok(all(ended[n] in ("Completed", "InProgress") for n in before), f"{s.what}what ran was not stopped", ended)
    top = 0
    for _ in range(20):
        top = max(top, live(s, cid))
        time.sleep(0.1)
    tap.ok(top <= 1, f"{s.what}then never more than one ({top})")
    s.api("PATCH", f"/campaigns/{cid}", {"limits": {"parts": None}}, headers={"If-Match": f'"{campaign(s, cid)["version"]}"'})
    ends(s, cid)
    counters(s)


def case_an_ended_campaign_is_edited_and_retried(s):
    """It is still in memory while its pools are kept, as it was when it ended."""
    cid = s.submit(user_stage('[fail, "no"]', extra="    breaker: off\n    canary: off", parts="warm_pool: {keep_alive: 5m, kill_when_queue_empty: no}")
                   .replace(f'from: "{ALL}"', "count: 4").replace("times: 5", "times: 0"))
    ends(s, cid, "failed")
    made = {j["name"] for j in jobs(s, cid)}
    tap.ok(s.sql(f"SELECT count(*) > 0 FROM pool WHERE ended_at IS NULL AND campaign_id = {cid[2:]}") == "t", f"{s.what}it has pools")
    s.api("PATCH", f"/campaigns/{cid}", {"limits": {"parts": 1}}, headers={"If-Match": f'"{campaign(s, cid)["version"]}"'})
    s.api("POST", f"/campaigns/{cid}:retry", {"selector": {"state": "failed"}})
    wait_for(lambda: campaign(s, cid)["state"] == "running", 20, "the retry")
    ends(s, cid, "failed")
    again = [j for j in jobs(s, cid) if j["name"] not in made]
    top = max(sum(j["created"] <= at["created"] < j["ended"] for j in again) for at in again)
    tap.ok(len(again) == 4 and top == 1, f"{s.what}the limit that was lowered holds its parts ({top} at once)", again)
    for p in s.api("GET", f"/pools?campaign={cid}")["pools"]:
        s.api("POST", f"/pools/{p['job_name']}:end", {}) if p["state"] == "available" else None
    pools_over(s)
    counters(s)


def case_a_cap_warns_and_binds(s):
    # worst case of one attempt: 0.204 USD/h x (300 + 120 + 900) s = 0.0748 USD
    cid = s.submit(user_stage('[sleep, "1"]', parts='budget: {total: "0.0754 USD", warn_at: [0.2%, 0.4%], at_limit: drain}'))
    wait_for(lambda: campaign(s, cid)["parts"]["done"] >= 3, 60, "three parts")
    told = wait_for(lambda: [e for e in [events(s, cid, "alert")] if len(e) >= 1], 30, "both warnings")[0]
    tap.ok(len(told) in (1, 2) and "of the budget of campaign" in told[-1], f"{s.what}people are told of the thresholds, once each", told)
    c = wait_for(lambda: [x for x in [campaign(s, cid)] if x["state"] in ("held", "succeeded")], 90, "the hold")[0]
    tap.ok(c["state"] == "held" and c["reason"] == "budget", f"{s.what}the cap holds the campaign", c)
    used = c["budget"]["reserved_micro_usd"] + c["budget"]["spent_micro_usd"]
    tap.ok(used <= 75400, f"{s.what}and is never passed ({used})")
    s.api("PATCH", f"/campaigns/{cid}", {"budget": {"total": "2 USD"}}, headers={"If-Match": f'"{c["version"]}"'})
    ends(s, cid)
    tap.ok(len(events(s, cid, "alert")) <= 2, f"{s.what}no warning came twice", events(s, cid, "alert"))
    counters(s)


def case_at_limit_stop_stops(s):
    cid = s.submit(user_stage('[sleep, "3"]', parts='budget: {total: "0.3100 USD", at_limit: stop}'))
    wait_for(lambda: live(s, cid) == 3, 30, "the canary")
    c = campaign(s, cid)
    s.api("PATCH", f"/campaigns/{cid}", {"budget": {"total": "0.0001 USD"}}, headers={"If-Match": f'"{c["version"]}"'})
    c = wait_for(lambda: [x for x in [campaign(s, cid)] if x["state"] == "held"], 40, "the hold")[0]
    wait_for(lambda: all(j["ended"] for j in jobs(s, cid)), 40, "the stops")
    tap.ok([j["status"] for j in jobs(s, cid)] == ["Stopped"] * 3, f"{s.what}what ran was stopped when nothing more can be paid", jobs(s, cid))
    s.api("PATCH", f"/campaigns/{cid}", {"budget": {"total": "9 USD"}}, headers={"If-Match": f'"{campaign(s, cid)["version"]}"'})
    ends(s, cid)
    tap.ok(all(p["attempts"] == 1 for p in s.api("GET", f"/campaigns/{cid}/parts")["parts"]), f"{s.what}a stop for money is no attempt")
    counters(s)


def case_limits_above_a_campaign(s):
    s.api("PATCH", "/limits", {"parts": 2}, headers={"If-Match": "*"})
    a, b = s.submit(user_stage('[sleep, "1"]')), s.submit(user_stage('[sleep, "1"]'))
    wait_for(lambda: live(s, a) + live(s, b) == 2, 30, "two at once")
    top = 0
    for _ in range(15):
        top = max(top, live(s, a) + live(s, b))
        time.sleep(0.1)
    tap.ok(top == 2, f"{s.what}two of everything ({top})")
    tap.ok("global_limit" in str([campaign(s, x)["stages"] for x in (a, b)]), f"{s.what}and the stages say so", campaign(s, a)["stages"])
    s.api("PATCH", "/projects/default", {"parts": 1}, headers={"If-Match": "*"})
    s.api("PATCH", "/limits", {"parts": None}, headers={"If-Match": "*"})
    wait_for(lambda: live(s, a) + live(s, b) == 1, 30, "one at once")
    s.api("PATCH", "/projects/default", {"parts": None}, headers={"If-Match": "*"})
    ends(s, a)
    ends(s, b)
    share = [max((j["created"] for j in jobs(s, x)), default=0) for x in (a, b)]
    tap.ok(abs(share[0] - share[1]) < 15, f"{s.what}both went on side by side", share)
    counters(s)


def case_spot_is_interrupted_and_goes_on(s):
    s.faults({"operation": "CreateTrainingJob", "kind": "spot_interrupt", "times": 2, "delay_seconds": 1})
    cid = s.submit(user_stage('[sleep, "2"]', extra="    spot: true\n    resumable: true"))
    ends(s, cid, seconds=120)
    s.faults()
    market = s.sql(f"SELECT string_agg(DISTINCT market, ',') FROM attempt WHERE campaign_id = {cid[2:]}")
    tap.ok(market == "spot", f"{s.what}every attempt was bought on the spot market", market)
    counters(s)
    s.check_invoice(tap, s.what)


def case_a_gang_gets_its_promise(s):
    parts = s.submit(user_stage('[sleep, "12"]'))  # the last of them outlive the gang's second of work, also on a busy machine
    wait_for(lambda: live(s, parts) == 4, 30, "four at once")
    gang = s.submit(user_stage('[sleep, "1"]', parts="limits: {priority: 60}", extra="    instance_count: 3").replace('fan_out: {from: "%s"}' % ALL, ""))
    row = wait_for(lambda: s.sql(f"SELECT coalesce(max(instances || ' ' || (since_at IS NOT NULL)), '') FROM promise WHERE campaign_id = {gang[2:]}"), 30, "a promise")
    tap.ok(row == "3 true", f"{s.what}three instances are gathered for it", row)
    ends(s, gang)
    tap.ok(live(s, parts) + campaign(s, parts)["parts"]["waiting"] > 0, f"{s.what}it came before the rest of the parts", campaign(s, parts)["parts"])
    wait_for(lambda: s.sql("SELECT count(*) FROM promise") == "0", 20, "the end of the promise")
    tap.ok([j["instance_count"] for j in jobs(s, gang)] == [3], f"{s.what}one job of three")
    ends(s, parts)
    counters(s)


def case_a_total_throttle_costs_nothing(s):
    first = s.submit(user_stage('[sleep, "3"]'))
    wait_for(lambda: campaign(s, first)["parts"]["done"] >= 1, 40, "a first part done")
    operations = ("CreateTrainingJob", "DescribeTrainingJob", "ListTrainingJobs", "StopTrainingJob")
    s.faults(*({"operation": o, "kind": "throttle", "times": 1000000} for o in operations))
    began = time.time()
    time.sleep(12)  # calls of this span are counted
    refused = [r for r in s.oracle("wire-log")["requests"] if r["operation"] in operations[:2] and r["time"] > began]
    lists = [r for r in s.oracle("wire-log")["requests"] if r["operation"] == operations[2] and r["time"] > began]
    s.faults()
    # First attempts: one call for each of at most four live attempts and their successors; retries: the burst
    # and a tenth of all first attempts.
    tap.ok(len(refused) <= 8 + 10 + len(lists) // 10 + 2, f"{s.what}{len(refused)} calls beside {len(lists)} looks in 12 s", len(refused))
    ends(s, first)
    parts = s.api("GET", f"/campaigns/{first}/parts")["parts"]
    tap.ok(all(p["attempts"] == 1 and p["state"] == "done" for p in parts), f"{s.what}no attempt was used, no part failed", parts)
    counters(s)


def case_a_throttled_time_makes_no_more_traffic(s):
    operations = [n + "TrainingJob" for n in ("Create", "Describe", "Stop", "Update")] + ["ListTrainingJobs", "ListTags", "ListServiceQuotas"]
    cid = s.submit(user_stage('[sleep, "1"]', extra="    canary: off\n    breaker: off").replace(f'from: "{ALL}"', "count: 1000"))
    wait_for(lambda: campaign(s, cid)["parts"]["done"] >= 8, 60, "work under way")
    sent = {}
    for what, share in (("as ever", 0), ("half throttled", 0.5), ("all throttled", 1)):
        s.faults(*({"operation": o, "kind": "throttle", "times": 1000000, "probability": share, "seed": 7} for o in operations))
        began = time.time()
        time.sleep(12)  # calls of this span are counted
        sent[what] = sum(began < r["time"] <= began + 12 and r["operation"] in operations for r in s.oracle("wire-log")["requests"])
    s.faults()
    ratios = {k: round(n / sent["as ever"], 2) for k, n in sent.items()}
    tap.ok(sent["as ever"] > 20 and max(ratios.values()) <= 1.1, f"{s.what}{sent} requests in 12 s each: {ratios}")
    done = campaign(s, cid)["parts"]["done"]
    wait_for(lambda: campaign(s, cid)["parts"]["done"] >= done + 4, 60, "work goes on")
    figures = dict(line.split() for line in s.raw("GET", "/metrics")[1].decode().splitlines() if line.startswith("droverd_aws_"))
    tap.ok(int(figures["droverd_aws_held_total"]) > 0, f"{s.what}calls were held: {figures}")
    s.api("POST", f"/campaigns/{cid}:cancel")
    ends(s, cid, "cancelled")
    counters(s)


def hung(s):
    """A campaign, its job that hangs, and the processes that were stopped. On a busy machine a job may be over before: then another one."""
    for n in range(5):
        cid = s.submit(name=f"hang-{n}", stage_extra="    hang: {silent: 3s, standstill: 10m, start: 10m}")
        job = wait_for(lambda: [j["name"] for j in jobs(s, cid) if j["status"] != "InProgress"
                   or s.sql(f"SELECT count(*) FROM attempt WHERE name = '{j['name']}' AND state = 4") == "1"], 40, "a job with progress")[0]
        pids = subprocess.run(["pgrep", "-f", f"jobs/{job}"], capture_output=True, text=True).stdout.split()
        for pid in pids:
            try:
                os.kill(int(pid), signal.SIGSTOP)
            except ProcessLookupError:
                pass
        time.sleep(0.5)  # what had ended by then is told by then
        if pids and [j for j in jobs(s, cid) if j["name"] == job and j["status"] == "InProgress"]:
            return cid, job, pids
        for pid in pids:
            try:
                os.kill(int(pid), signal.SIGCONT)
            except ProcessLookupError:
                pass
        wait_for(lambda: s.ended(cid), 60, "the end of a campaign that did not hang")
    raise RuntimeError("each job ended before its processes could be stopped")


def case_a_hung_part_is_stopped_and_tried_again(s):
    cid, job, pids = hung(s)
    tap.ok(bool(pids), f"{s.what}its process is found", job)
    try:
        wait_for(lambda: [r for r in requests(s, "StopTrainingJob", cid) if r["name"] == job], 40, "the stop")
        tap.ok(True, f"{s.what}the silent job is stopped")
    except TimeoutError as e:
        tap.ok(False, f"{s.what}the silent job is stopped", e)
    for pid in pids:
        try:
            os.kill(int(pid), signal.SIGCONT)
        except ProcessLookupError:
            pass
    ends(s, cid)
    part = int(job.rsplit("-", 3)[1])
    p = s.api("GET", f"/parts/{cid}/{part}")
    tap.ok([a["state"] for a in p["attempt_list"]][-1] == "succeeded" and len(p["attempt_list"]) == 2, f"{s.what}a second attempt did it", p["attempt_list"])
    counters(s)


def case_a_part_at_its_own_cap_fails_and_stands_in_nobodys_way(s):
    # the worst case of one attempt: no money is left for a second one
    one = PRICE * (300 + 120 + 900) // 3600
    cid = s.submit(user_stage('[fail, alike]', extra="    canary: off\n    breaker: off", parts=f"budget: {{stages: {{work: {{per_task: {one / 1e6:.6f} USD}}}}}}"))
    ends(s, cid, "failed")
    parts = s.api("GET", f"/campaigns/{cid}/parts")["parts"]
    tap.ok(len(parts) == 8 and all(p["state"] == "failed" and p["attempts"] == 1 and p["cause"] == "user_code" for p in parts),
           f"{s.what}each was tried once and says why it failed", parts)
    counters(s)


def case_a_stages_own_cap_is_told_and_raised(s):
    # one attempt may cost 0.0748 USD: what a stage, and a part, may cost pays for one and not for two
    cid = s.submit(user_stage('[sleep, "1"]', extra="    canary: off", parts='budget: {total: 9 USD, stages: {work: {total: "0.0754 USD"}}}'))
    change = lambda budget: s.api("PATCH", f"/campaigns/{cid}", {"stages": {"work": {"budget": budget}}}, headers={"If-Match": "*"})  # noqa: E731
    c = wait_for(lambda: [x for x in [campaign(s, cid)] if x["state"] in ("held", "succeeded")], 90, "the hold")[0]
    tap.ok(c["state"] == "held" and c["reason"] == "budget of stage work" and c["stages"][0]["wait_reason"] == "stage_budget" and c["guidance"][0]["steps"][0]["command"] == f"drover budget {cid}/work USD --resume",
           f"{s.what}a campaign whose only stage is at its own cap is held for that", c)
    change({"total": "2 USD"})
    ends(s, cid)
    counters(s)


def case_a_part_at_its_own_cap_that_a_person_retries(s):
    one = PRICE * (300 + 120 + 900) // 3600
    cid = s.submit(user_stage('[fail, alike]', extra="    canary: off\n    breaker: off", parts=f"budget: {{stages: {{work: {{per_task: {one / 1e6:.6f} USD}}}}}}"))
    ends(s, cid, "failed")
    s.api("POST", f"/campaigns/{cid}:retry", {"selector": {"parts": "0"}})
    c = wait_for(lambda: [x for x in [campaign(s, cid)] if x["state"] == "held"], 60, "the hold")[0]
    tap.ok(c["reason"] == "budget per part of stage work" and c["stages"][0]["wait_reason"] == "part_budget" and c["guidance"][0]["steps"][0]["command"] == f"drover budget {cid}/work --per-task USD --resume",
           f"{s.what}a retried part whose cap pays for no other attempt says so", c)
    s.api("PATCH", f"/campaigns/{cid}", {"stages": {"work": {"budget": {"per_task": f"{2 * one / 1e6:.6f} USD"}}}}, headers={"If-Match": "*"})
    ends(s, cid, "failed")
    tried = s.api("GET", f"/parts/{cid}/0")["attempt_list"]
    tap.ok(len(tried) >= 2, f"{s.what}and with a higher one it is tried again", tried)
    counters(s)


def case_jobs_whose_rows_were_lost_are_taken_in(s):
    cid = s.submit(user_stage('[sleep, "8"]'))
    wait_for(lambda: campaign(s, cid)["state"] == "running" or None, 20, "the campaign taken in")
    s.kill("droverd0")
    s.stop_pg("fast")
    shutil.rmtree(s.sock + "/before", ignore_errors=True)
    subprocess.run(["cp", "-a", s.sock + "/data", s.sock + "/before"], check=True)
    s.start_pg()
    known = s.sql(f"SELECT count(*) FROM attempt WHERE campaign_id = {cid[2:]}")
    s.start_droverd(0)
    wait_for(lambda: live(s, cid) == 4, 40, "four jobs")
    s.kill("droverd0")
    s.stop_pg("immediate")
    shutil.rmtree(s.sock + "/data")
    os.rename(s.sock + "/before", s.sock + "/data")
    s.start_pg()
    tap.ok(s.sql(f"SELECT count(*) FROM attempt WHERE campaign_id = {cid[2:]}") == known, f"{s.what}the database forgot them ({known} known)")
    s.start_droverd(0)
    lost = 4 - int(known)
    wait_for(lambda: int(s.sql(f"SELECT count(*) FROM attempt WHERE campaign_id = {cid[2:]}")) >= 4, 40, "the adoptions")
    tap.ok(lost > 0, f"{s.what}{lost} rows were lost")
    ends(s, cid)
    tap.ok(len(jobs(s, cid)) == 8, f"{s.what}one job a part all the same", [j["name"] for j in jobs(s, cid)])
    pools_over(s)
    counters(s)
    s.check_invoice(tap, s.what)


def a_limit_that_only_refusals_tell_is_believed(s):
    """Service Quotas says 18, SageMaker's refusals 16: those that were on their way are refused, and nothing after a tick."""
    cid = s.submit(user_stage('[sleep, "2"]', instance="ml.m5.large", extra="    canary: off").replace(f'from: "{ALL}"', "count: 40"))
    ends(s, cid, seconds=180)
    sent = sorted(requests(s, "CreateTrainingJob", cid), key=lambda r: r["time"])
    refused = [r["time"] for r in sent if r["error"] == "ResourceLimitExceeded"]
    top = max(sum(j["created"] <= at["created"] < j["ended"] for j in jobs(s, cid)) for at in jobs(s, cid))
    tap.ok(s.sql("SELECT max(limit_n) FROM quota WHERE instance_type = 'ml.m5.large' AND market = 'on_demand'") == "18", "a limit that only refusals tell: Service Quotas says 18")
    tap.ok(top == 16 and 1 <= len(refused) <= 2 and refused[-1] - refused[0] < 2, f"a limit that only refusals tell: {top} at once, {len(refused)} of {len(sent)} Creates refused", refused)
    tap.ok(len(jobs(s, cid)) == 40 and all(p["attempts"] == 1 for p in s.api("GET", f"/campaigns/{cid}/parts")["parts"]), "a limit that only refusals tell: a job a part, no attempt was used")
    counters(s)


CASES = cases(globals())
with Stack("controller-scheduler", parts=8, rows=30, lease_us=3000000,
           images={"drover/user:test": [sys.executable, PROGRAMS + "/user_program.py"]},
           local={"warm_quotas": {"ml.c5.xlarge": 4}, "spot_quotas": {"ml.c5.xlarge": 3}, "warm_start_seconds": 0.05, "warm_newest_first": True, "cold_start_seconds": 0.4},
           env={"DROVER_QUOTA_INTERVAL_US": "1000000", "DROVER_PROGRESS_INTERVAL_US": "300000"}) as stack:
    stack.start()
    wait_for(lambda: stack.leader() is not None, 20, "a leader")
    for case in CASES:
        stack.what, stack.began = case.__name__[5:].replace("_", " ") + ": ", time.time()
        try:
            case(stack)
        except TimeoutError as e:
            tap.ok(False, f"{stack.what}{e}")
        print(f"# {time.time() - stack.began:.1f} s", flush=True)
    stack.what = ""
    wait_for(lambda: not stack.live_jobs(), 30, "no live job")
    stack.check_wire(tap)
if os.environ.get("ONLY", "") in "a_limit_that_only_refusals_tell_is_believed":
    with Stack("controller-scheduler-limit", parts=1, rows=1, quotas={"ml.m5.large": 18}, lease_us=3000000, env={"DROVER_QUOTA_INTERVAL_US": "600000000"},
               images={"drover/user:test": [sys.executable, PROGRAMS + "/user_program.py"]},
               local={"faults": [{"operation": "CreateTrainingJob", "kind": "quota_lower", "limit": 16, "times": 1000000}]}) as stack:
        stack.what = ""
        stack.start()
        a_limit_that_only_refusals_tell_is_believed(stack)
sys.exit(tap.done())
