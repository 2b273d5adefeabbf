#!/usr/bin/python3
"""Jobs that no row knows. Aim: after a restore, and after a refusal that lied, nothing that runs at AWS is forgotten: it is adopted as the
attempt it is, or held with slots and money as a stray, shown, stopped by one command and booked, so that the ledger equals the invoice;
jobs of others cost nothing. Method: the real programs; the database is put back to an earlier copy of its files, refusals are faults of
drover-local; the oracle is drover-local's jobs, wire log and invoice.   (ONLY=word runs the cases whose name has it)"""
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import PROGRAMS, Tap, cases, patience, postgres, wait_for
from kit.local import sign
from kit.stack import KEY, SECRET, Restored, Stack

tap = Tap()
CREATE = {"operation": "CreateTrainingJob"}
LIST = {"operation": "ListTrainingJobs"}
PARTS = 4


def stage(command, parts=1, wait="1s"):
    glob = "part-00000*" if parts == 1 else "*"
    return f"""version: 1
name: user
retry:
  - {{cause: [capacity, quota], wait: {wait}..{wait}, times: forever, counts: no}}
stages:
  - name: work
    image: drover/user:test
    fan_out: {{from: "s3://drover-test/meta/{glob}"}}
    command: {command}
    instance_type: ml.c5.xlarge
    max_runtime: 5m
    output: "s3://drover-test/out-{{campaign}}/{{part:05d}}/"
    verify: none
    canary: off
    breaker: off
"""


def jobs(s, cid):
    return sorted((j for j in s.oracle("jobs")["jobs"] if j["name"].startswith(f"t-{cid[2:]}-")), key=lambda j: j["created"])


def ends(s, cid, state="succeeded"):
    c = wait_for(lambda: s.ended(cid), 60, f"the end of {cid}", step=0.1)
    tap.ok(c["state"] == state, f"{s.what}the campaign ends {state}", c)


def running(s, cid, n):
    wait_for(lambda: len([j for j in jobs(s, cid) if j["status"] == "InProgress"]) == n or None, 30, f"{n} jobs of {cid}", step=0.1)


def attempts(s, cid):
    return [a["state"] for p in s.pages(f"/campaigns/{cid}/parts", "parts") for a in s.api("GET", f"/parts/{cid}/{p['seq']}")["attempt_list"]]


def strays(s):
    return s.api("GET", "/strays")


def metric(s, name):
    return int(float([l for l in s.raw("GET", "/metrics")[1].decode().splitlines() if l.startswith(name + " ")][0].split()[1]))


def all_is_booked(s):
    wrong = s.sql("SELECT coalesce(string_agg(what || ' ' || ref || ': kept ' || kept || ' counted ' || counted, '; '), 'none') FROM check_counters()")
    tap.ok(wrong == "none", f"{s.what}all that is kept as a sum is right", wrong)
    s.check_invoice(tap, s.what)


def case_a_lost_campaign(s):
    with Restored(s):
        lost = s.submit(stage('[sleep, "300"]', PARTS))
        running(s, lost, PARTS)
    s.start_droverd(0)
    wait_for(lambda: strays(s)["sum"]["running"] == PARTS or None, 30, "the strays")
    rows = strays(s)["strays"]
    tap.ok(all(r["why"] == "lost" and r["running"] and r["campaign"] is None and r["reserved_micro_usd"] > 0 for r in rows),
           f"{s.what}its jobs are shown with what they hold", rows)
    held = [q["held"] for q in s.api("GET", "/quotas")["quotas"] if q["instance_type"] == "ml.c5.xlarge" and q["market"] == "on_demand"]
    tap.ok(held == [PARTS] and metric(s, "droverd_strays") == PARTS, f"{s.what}they count in slots and /metrics", held)
    refused = len([r for r in s.oracle("wire-log")["requests"] if r["error"] == "ResourceLimitExceeded"])
    again = s.submit(stage('[sleep, "1"]', PARTS))
    ends(s, again)
    names = [j["name"] for j in jobs(s, again)]
    tap.ok(again == lost and len(set(names)) == 2 * PARTS, f"{s.what}the campaign that got its number has names of its own ({again})", names)
    tap.ok(len([r for r in s.oracle("wire-log")["requests"] if r["error"] == "ResourceLimitExceeded"]) == refused, f"{s.what}nothing was asked for beyond the quota")
    wait_for(lambda: all(r["cost_micro_usd"] > 0 for r in strays(s)["strays"]) or None, 20, "a cost so far")
    one, *others = [r["job_name"] for r in rows]
    without = s.drover("strays", "stop", one)
    tap.ok(without.returncode == 2 and "-y" in without.stderr, f"{s.what}stopping one wants -y without a terminal", without)
    listed = s.drover("strays")
    tap.ok(one in listed.stdout and others[0] in listed.stdout and "lost" in listed.stdout, f"{s.what}drover strays lists them", listed)
    done = s.drover("strays", "stop", one, "-y")
    tap.ok(done.returncode == 0, f"{s.what}one command stops one", done)
    wait_for(lambda: strays(s)["sum"]["running"] == PARTS - 1 or None, 20, "the end of the first")
    for other in others:
        s.api("POST", f"/strays/{other}:stop", {})
    wait_for(lambda: strays(s)["sum"]["running"] == 0 or None, 20, "the end of the others")
    tap.ok(strays(s)["sum"]["micro_usd"] > 0 and s.raw("POST", f"/v1/strays/{one}:stop", b"{}", {"Content-Type": "application/json", "Idempotency-Key": "again"})[0] == 404,
           f"{s.what}they are booked, and stopped once")
    all_is_booked(s)


def case_an_archived_campaign(s):
    """Its jobs stay in AWS' lists, of which every sweep reads those around the newest intent."""
    known = [r["job_name"] for r in strays(s)["strays"]]
    live = s.submit(stage('[sleep, "300"]').replace("name: user", "name: live"))
    running(s, live, 1)
    cid = s.submit(stage('[sleep, "0.1"]', PARTS))
    ends(s, cid)
    refused = s.drover("archive", live, "-y")
    tap.ok(refused.returncode == 5 and "has not ended" in refused.stderr, f"{s.what}a campaign that runs is not archived", refused)
    s.sql(f"INSERT INTO archive (campaign_id) VALUES ({live[2:]}); INSERT INTO operation (campaign_id, kind, selector) VALUES ({live[2:]}, 'archive', '{{}}'); NOTIFY drover_wanted")
    wait_for(lambda: s.sql(f"SELECT state FROM operation WHERE campaign_id = {live[2:]}") == "cancelled" or None, 20, "the end of its archive")
    told = s.sql(f"SELECT detail FROM event WHERE campaign_id = {live[2:]} AND kind = 'alert'")
    tap.ok("it runs again" in told and s.sql(f"SELECT (SELECT count(*) FROM archive) + (SELECT count(*) FROM attempt WHERE campaign_id = {live[2:]})") == "1",
           f"{s.what}an archive of what runs again deletes nothing, and is none any more", told)
    before = [s.api("GET", f"/campaigns/{cid}/cost"), s.api("GET", f"/campaigns/{cid}")["parts"]]
    s.faults({"operation": "PutObject", "kind": "error_503", "times": 2}, {"operation": "PutObject", "kind": "drop_after", "after": 1})
    done = s.drover("archive", cid, "--to", "s3://drover-test/archive", "-y", "--wait")
    tap.ok(done.returncode == 0, f"{s.what}drover archive --to --wait, while S3 refuses and loses replies", done)
    s.faults()
    folder = f"{s.dir}/aws/s3/drover-test/archive/{cid}/"
    lines = {name: [json.loads(x) for x in open(folder + name, encoding="utf-8")] for name in sorted(os.listdir(folder))}
    tap.ok([(name, len(x)) for name, x in lines.items()] == [("attempts-000001.jsonl", PARTS), ("parts-000002.jsonl", PARTS), ("summary.json", 1)],
           f"{s.what}its rows are in S3 as JSON lines", lines.keys())
    tap.ok({a["job_name"] for a in lines["attempts-000001.jsonl"]} == {j["name"] for j in jobs(s, cid)} and {p["state"] for p in lines["parts-000002.jsonl"]} == {"done"}
           and sum(a["cost_micro_usd"] for a in lines["attempts-000001.jsonl"]) == lines["summary.json"][0]["cost_micro_usd"] > 0, f"{s.what}they say what the database said", lines)
    told = s.api("GET", f"/campaigns/{cid}")["archive"]["export"]
    tap.ok(told["objects"] == 3 and told["uri"] == f"s3://drover-test/archive/{cid}/" and told["problem"] is None and told["ended_at"], f"{s.what}the campaign says where", told)
    left = s.sql(f"SELECT (SELECT count(*) FROM attempt WHERE campaign_id = {cid[2:]}) + (SELECT count(*) FROM task WHERE campaign_id = {cid[2:]})"
                 f" + (SELECT count(*) FROM task_run WHERE campaign_id = {cid[2:]})")
    tap.ok(left == "0" and s.sql(f"SELECT count(*) > 0 FROM ledger WHERE campaign_id = {cid[2:]}") == "t", f"{s.what}its parts and attempts are gone, its ledger is there", left)
    tap.ok([s.api("GET", f"/campaigns/{cid}/cost"), s.api("GET", f"/campaigns/{cid}")["parts"]] == before, f"{s.what}cost and counters are what they were", before)
    s.kill("droverd0")
    s.start_droverd(0)
    ends(s, s.submit(stage('[sleep, "0.1"]').replace("name: user", "name: next")))  # the sweep of the new leader is complete
    tap.ok([r["job_name"] for r in strays(s)["strays"]] == known, f"{s.what}no sweep takes its jobs for lost ones", strays(s))
    s.api("POST", f"/campaigns/{live}:cancel", {})
    ends(s, live, "cancelled")
    all_is_booked(s)


def case_a_forgotten_job_under_the_next_name(s):
    cid = s.submit(stage('[sleep, "4"]'))
    s.api("POST", f"/campaigns/{cid}:pause", {})
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["state"] == "paused" or None, 20, "the pause")
    ran = len(jobs(s, cid))
    with Restored(s):
        s.api("POST", f"/campaigns/{cid}:resume", {})
        running(s, cid, 1)
    s.faults({**LIST, "kind": "list_omits", "name_contains": f"t-{cid[2:]}-", "times": 1000})
    s.start_droverd(0)
    s.api("POST", f"/campaigns/{cid}:resume", {})
    try:
        wait_for(lambda: [r for r in s.oracle("wire-log")["requests"] if r["error"] == "ResourceInUse"] or None, 30, "a Create of the name that is taken", step=0.1)
    finally:
        s.faults()
    ends(s, cid)
    tap.ok("conflict" not in attempts(s, cid) and len(jobs(s, cid)) == ran + 1, f"{s.what}it is the attempt, no conflict and no second job", (attempts(s, cid), jobs(s, cid)))
    all_is_booked(s)


def psql(s, text):
    argv = [postgres.BIN_DIR + "/psql", "-h", s.sock, "-U", "drover", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-qAt"]
    subprocess.run(argv, input=text, check=True, capture_output=True, text=True)


def case_an_adoption_that_the_database_refuses(s):
    cid = s.submit(stage('[sleep, "20"]'))
    s.api("POST", f"/campaigns/{cid}:pause", {})
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["state"] == "paused" or None, 20, "the pause")
    with Restored(s):
        s.api("POST", f"/campaigns/{cid}:resume", {})
        running(s, cid, 1)
    psql(s, """CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'made by the test' USING ERRCODE = '22003'; END $$;
        CREATE TRIGGER no BEFORE INSERT ON attempt FOR EACH ROW WHEN (NEW.reason LIKE 'found at AWS%') EXECUTE FUNCTION no();""")
    s.start_droverd(0)
    mine = wait_for(lambda: [r for r in strays(s)["strays"] if r["campaign"] == cid] or None, 30, "the stray", step=0.1)
    ends(s, s.submit(stage('[sleep, "1"]')))
    tap.ok(True, f"{s.what}everybody else goes on")
    parked = s.api("GET", f"/parked?campaign={cid}")["parked"]
    tap.ok(len(parked) == 1 and parked[0]["kind"] == "attempt" and "made by the test" in parked[0]["reason"], f"{s.what}that one is parked", parked)
    tap.ok(len(mine) == 1 and mine[0]["why"] == "unplaced" and mine[0]["running"], f"{s.what}its job is held as a stray", mine)
    s.api("POST", f"/campaigns/{cid}:resume", {})
    psql(s, "DROP FUNCTION no CASCADE")
    ends(s, cid)
    js = [j for j in jobs(s, cid) if j["status"] == "Completed"]
    tap.ok(len(js) == 2 and js[0]["ended"] <= js[1]["created"], f"{s.what}nothing else is started for its part while it runs", js)
    all_is_booked(s)


def logged(s, event, name):
    """Lines of droverd's log about one job."""
    with open(s.dir + "/droverd0.log", encoding="utf-8") as f:
        return [json.loads(line) for line in f if f'"event":"{event}' in line and name in line and line.endswith("\n")]


def case_a_refusal_that_lied(s):
    """The retry of the refused one would start long after the test has given up: whenever the job is seen, nothing has replaced it."""
    s.faults({**CREATE, "kind": "refusal_lies"})
    cid = s.submit(stage('[sleep, "3"]', wait="10m"))
    ends(s, cid)
    tap.ok(len(jobs(s, cid)) == 1 and attempts(s, cid) == ["succeeded"], f"{s.what}the job is the attempt's again", (attempts(s, cid), jobs(s, cid)))
    name = jobs(s, cid)[0]["name"]
    told = logged(s, "void_attempt_alive", name)
    tap.ok([(line["job"], line["level"]) for line in told] == [(name, "warn")], f"{s.what}the log says once that it lives", told)
    kept = s.sql(f"SELECT concat_ws(', ', revived, reason) FROM attempt WHERE name = '{name}'")
    tap.ok(kept == "t, given up as void, then seen alive", f"{s.what}and so does its row", kept)
    all_is_booked(s)


def case_a_refusal_that_lied_and_was_replaced(s):
    s.faults({**CREATE, "kind": "refusal_lies"}, {**LIST, "kind": "list_omits", "name_contains": "-a1-", "times": 1000})
    cid = s.submit(stage('[sleep, "6"]'))
    running(s, cid, 2)
    first, before = jobs(s, cid)[0]["name"], len(s.oracle("wire-log")["requests"])
    s.faults()
    stopped = wait_for(lambda: [j for j in jobs(s, cid) if j["name"] == first and j["status"] == "Stopped"], 30)
    tap.ok(stopped, f"{s.what}the one that nobody waits for is stopped", jobs(s, cid))
    since = [(r["operation"], r["name"]) for r in s.oracle("wire-log")["requests"][before:]]
    until_stop = since[: since.index(("StopTrainingJob", first))] if ("StopTrainingJob", first) in since else since
    # One that was sent before the fault was taken away, one that shows both jobs, and a round: what is in progress and what is new.
    lists = sum(operation == "ListTrainingJobs" for operation, _ in until_stop)
    tap.ok(1 <= lists <= 4, f"{s.what}it is stopped within one round of Lists of the first that shows both ({lists} Lists from then on)", since)
    ends(s, cid)
    wait_for(lambda: strays(s)["sum"]["running"] == 0 or None, 20, "its end")
    mine = [r for r in strays(s)["strays"] if r["job_name"] == first]
    tap.ok(len(mine) == 1 and mine[0]["why"] == "void" and mine[0]["cost_micro_usd"] > 0, f"{s.what}and booked on a line of its own", mine)
    told = {(line["event"], line["why"]) for line in logged(s, "stray_", first) if "why" in line}
    tap.ok(told == {("stray_found", "void"), ("stray_stopped", "void")}, f"{s.what}the log says so", told)
    tap.ok(attempts(s, cid) == ["void", "succeeded"], f"{s.what}the other did the work", attempts(s, cid))
    all_is_booked(s)


def foreign(s, name):
    body = ('{"TrainingJobName":"%s","RoleArn":"arn:aws:iam::111122223333:role/test","AlgorithmSpecification":{"TrainingImage":"drover/user:test",'
            '"TrainingInputMode":"File","ContainerArguments":["sleep","300"]},"OutputDataConfig":{"S3OutputPath":"s3://drover-test/o/"},"ResourceConfig":'
            '{"InstanceType":"ml.m5.large","InstanceCount":1,"VolumeSizeInGB":1},"StoppingCondition":{"MaxRuntimeInSeconds":600}}' % name).encode()
    url = f"http://127.0.0.1:{s.local_port}"
    h = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "SageMaker.CreateTrainingJob"}
    h = sign(url, "sagemaker", "POST", "/", body, h, KEY, SECRET)
    try:
        urllib.request.urlopen(urllib.request.Request(url + "/", data=body, headers=h), timeout=patience(10)).read()
    except urllib.error.HTTPError as e:  # a burst of more than SageMaker takes at once, or seconds without a core for us
        said = e.read()
        if b"Throttling" not in said and b"Signature expired" not in said:
            raise RuntimeError(said) from e
        time.sleep(0.1)
        foreign(s, name)


def case_others_jobs(s):
    names = [f"t-{n}-work-0-a1-0a1b2c{n:02x}" for n in range(10, 70)] + [f"my-t-{n}-work-0-a1-0a1b2c3d" for n in range(20)]
    before = int(s.sql("SELECT epoch FROM lease"))
    for name in names:
        foreign(s, name)
    s.kill("droverd0")
    s.start_droverd(0)
    s.faults({"operation": "DescribeTrainingJob", "kind": "throttle", "probability": 0.05, "times": 1000, "seed": 5})
    cid = s.submit(stage('[sleep, "1"]', PARTS))
    ends(s, cid)
    s.faults()
    log = [r for r in s.oracle("wire-log")["requests"] if r["name"] in names and r["operation"] != "CreateTrainingJob"]
    tap.ok(not log, f"{s.what}{len(names)} that look like ours cost no Describe and no stop", log[:5])
    tap.ok(strays(s)["sum"]["running"] == 0, f"{s.what}they are nobody's strays")
    told = [line for name in names for line in logged(s, "", name)]
    tap.ok(not told, f"{s.what}the log names none of them, so nobody is told to stop one", told[:5])
    asked = [r for r in s.oracle("wire-log")["requests"] if r["operation"] == "ListTags"]
    leaders = int(s.sql("SELECT epoch FROM lease")) - before + 1
    tap.ok(len(asked) <= leaders * 60, f"{s.what}whose they are was asked once a leader ({len(asked)} times by {leaders}, 60 read like ours)")


CASES = cases(globals())
with Stack("controller-strays", parts=PARTS, rows=10, quotas={"ml.c5.xlarge": PARTS + 2, "ml.m5.large": 100}, images={"drover/user:test": [sys.executable, PROGRAMS + "/user_program.py"]},
           env={"DROVER_QUOTA_INTERVAL_US": "1000000"}) as stack:
    stack.start()
    wait_for(lambda: stack.leader() is not None, 20, "a leader")
    for case in CASES:
        stack.what = case.__name__[5:].replace("_", " ") + ": "
        try:
            case(stack)
        except TimeoutError as e:
            tap.ok(False, f"{stack.what}{e}")
sys.exit(tap.done())
