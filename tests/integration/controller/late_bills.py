#!/usr/bin/python3
"""Bills that come late. Aim: a job that ends without BillableTimeInSeconds gives its slots back and ends its part at once, settled by an
estimate that is said to be one; when the bill comes the ledger equals the invoice, whoever leads by then and although the campaign has ended;
while none comes it stays an estimate, in the API and for people; what never started is free, and no estimate. Method: the real programs;
drover-local leaves the field out of Describe until the test lets it come; its invoice is the oracle.   (ONLY=word runs the cases whose
name has it)"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import PROGRAMS, Tap, cases, wait_for
from kit.stack import Stack

tap = Tap()
PARTS = 3
TYPE = "ml.c5.xlarge"
LATE = {"operation": "DescribeTrainingJob", "kind": "bill_late", "probability": 1, "delay_seconds": 86400}


def campaign(name, spot=True):
    return f"""version: 1
name: {name}
retry:
  - {{cause: [capacity, quota], wait: 1s..1s, times: forever, counts: no}}
stages:
  - name: work
    image: drover/user:test
    fan_out: {{from: "s3://drover-test/meta/*"}}
    command: [sleep, "2"]
    instance_type: {TYPE}
    max_runtime: 5m
    spot: {str(spot).lower()}
    resumable: true
    output: "s3://drover-test/out-{{campaign}}/{{part:05d}}/"
    verify: none
"""


def attempts(s, cid):
    return [a for p in s.pages(f"/campaigns/{cid}/parts", "parts") for a in s.api("GET", f"/parts/{cid}/{p['seq']}")["attempt_list"]]


def billed(s, cid):
    """The invoice's instance-seconds by job of one campaign."""
    return {x["name"]: x["seconds"] for x in s.oracle("invoice")["lines"] if x["name"].startswith(f"t-{cid[2:]}-")}


def describes(s, job):
    return len([r for r in s.oracle("wire-log")["requests"] if r["operation"] == "DescribeTrainingJob" and r["name"] == job])


def ends_with_estimates(s, name):
    """A campaign that ends while no bill of it has come."""
    s.faults(LATE)
    cid = s.submit(campaign(name))
    c = wait_for(lambda: s.ended(cid), 60, f"the end of {cid}", step=0.1)
    tap.ok(c["state"] == "succeeded", f"{s.what}the campaign ends although no bill has come", c)
    tries, bill = attempts(s, cid), billed(s, cid)
    tap.ok(len(tries) == PARTS and all(a["estimated"] for a in tries), f"{s.what}its attempts are estimated", tries)
    tap.ok(all(a["billable_seconds"] > bill[a["job_name"]] for a in tries), f"{s.what}at more than spot capacity is billed", (tries, bill))
    held = [q["held"] for q in s.api("GET", "/quotas")["quotas"] if q["instance_type"] == TYPE]
    tap.ok(sum(held) == 0 and s.api("GET", f"/campaigns/{cid}/cost")["reserved_micro_usd"] == 0, f"{s.what}slots and what was reserved are free", held)
    return cid, tries


def corrected(s, cid):
    wait_for(lambda: not any(a["estimated"] for a in attempts(s, cid)) or None, 120, "the corrections", step=0.5)
    lines = s.sql(f"SELECT string_agg(entry || ' ' || n, ',' ORDER BY entry) FROM (SELECT entry, count(*) AS n FROM ledger WHERE campaign_id = {cid[2:]} GROUP BY 1) x")
    tap.eq(lines, f"correct {PARTS},release {PARTS},reserve {PARTS},settle {PARTS}", f"{s.what}each is corrected once")
    bill = billed(s, cid)
    tap.ok(all(a["billable_seconds"] == bill[a["job_name"]] for a in attempts(s, cid)), f"{s.what}to the second", (attempts(s, cid), bill))


def all_is_booked(s):
    wrong = s.sql("SELECT coalesce(string_agg(what || ' ' || ref || ': kept ' || kept || ' counted ' || counted, '; '), 'none') FROM check_counters()")
    tap.ok(wrong == "none", f"{s.what}all that is kept as a sum is right", wrong)
    s.check_invoice(tap, s.what)
    month = s.api("GET", "/bill")["micro_usd"]
    tap.eq(month, s.oracle("invoice")["total"]["micro_usd"], f"{s.what}and so is the bill of the month")


def case_it_comes_after_the_campaign(s):
    cid, tries = ends_with_estimates(s, "late")
    s.faults()
    corrected(s, cid)
    phases = s.api("GET", f"/campaigns/{cid}/cost")["phases"] if "phases" in s.api("GET", f"/campaigns/{cid}/cost") else None
    tap.ok(phases is None or sum(p["micro_usd"] for p in phases) == sum(a["cost_micro_usd"] for a in attempts(s, cid)), f"{s.what}the phases add up to it", phases)
    tap.ok("~" not in s.drover("get", f"{cid}/0").stdout, f"{s.what}drover get shows it as it is")
    all_is_booked(s)


def case_it_does_not_come(s):
    cid, tries = ends_with_estimates(s, "never")
    job = tries[0]["job_name"]
    before = describes(s, job)
    wait_for(lambda: describes(s, job) > before or None, 60, "another Describe", step=0.5)
    tap.ok(all(a["estimated"] for a in attempts(s, cid)), f"{s.what}it is asked for again, and stays an estimate")
    shown = s.drover("get", f"{cid}/{[p['seq'] for p in s.pages(f'/campaigns/{cid}/parts', 'parts')][0]}")
    tap.ok(" ~" in shown.stdout and "estimated" in shown.stdout, f"{s.what}drover get says so", shown)
    tap.ok(all(x["estimated"] for x in s.api("GET", f"/campaigns/{cid}/cost")["by_cause"]), f"{s.what}and so does the cost of its campaign")
    refused = s.drover("archive", cid, "-y")
    tap.ok(refused.returncode == 5 and "bill" in refused.stderr, f"{s.what}it is not archived before", refused)
    s.kill("droverd0")
    s.start_droverd(0)
    before = describes(s, job)
    wait_for(lambda: describes(s, job) > before or None, 60, "a Describe of the next leader", step=0.5)
    tap.ok(all(a["estimated"] for a in attempts(s, cid)), f"{s.what}the next leader asks, too")
    s.faults()
    corrected(s, cid)
    all_is_booked(s)


def case_what_never_started_is_free(s):
    s.faults(LATE, {"operation": "CreateTrainingJob", "kind": "capacity", "times": 1})
    cid = s.submit(campaign("free", spot=False))
    wait_for(lambda: s.ended(cid), 60, f"the end of {cid}", step=0.1)
    free = [a for a in attempts(s, cid) if a["started_at"] is None]
    tap.ok(len(free) == 1 and not free[0]["estimated"] and free[0]["cost_micro_usd"] == 0, f"{s.what}no start, no bill, and no estimate", attempts(s, cid))
    s.faults()
    wait_for(lambda: not any(a["estimated"] for a in attempts(s, cid)) or None, 120, "the corrections", step=0.5)
    all_is_booked(s)


CASES = cases(globals())
with Stack("controller-bills", parts=PARTS, rows=10, quotas={TYPE: PARTS}, local={"spot_quotas": {TYPE: PARTS}, "spot_billed_percent": 30},
           images={"drover/user:test": [sys.executable, PROGRAMS + "/user_program.py"]}) as stack:
    stack.start()
    wait_for(lambda: stack.leader() is not None, 20, "a leader")
    for case in CASES:
        stack.what = case.__name__[5:].replace("_", " ") + ": "
        try:
            case(stack)
        except TimeoutError as e:
            tap.ok(False, f"{stack.what}{e}")
sys.exit(tap.done())
