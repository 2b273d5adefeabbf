#!/usr/bin/env python3
"""A stage of kind lustre on a real droverd, drover-local and PostgreSQL: its file system is made, filled from S3, mounted by the jobs of
a later stage, and gone when no stage uses it any more; what the jobs wrote is in S3 before. It goes by its ttl, also when droverd was
down then, with its campaign when that is cancelled, and when it fails. Killed at random moments droverd makes one file system and
deletes it. The ledger equals drover-local's invoice throughout.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, wait_for
from kit.local import send, sign
from kit.stack import KEY, SECRET, Stack, rng_from_args

TYPE = "ml.m5.large"
VPC = "vpc: {subnets: [subnet-0123456789abcdef0], security_groups: [sg-0123456789abcdef0]}"
JOB = r"""
import os, sys, time
data = os.environ["DROVER_ML_ROOT"] + "/input/data/data/"
if os.path.exists(os.environ.get("BROKEN", "/nowhere")): sys.exit(3)
while os.path.exists(os.environ.get("HOLD", "/nowhere")): time.sleep(0.1)
text = "".join(open(data + "in/%d" % i).read() for i in range(3))
with open(data + "made-" + os.environ.get("TAG", "x"), "w") as f: f.write(text)
with open(os.environ["DROVER_ML_ROOT"] + "/model/weights", "w") as f: f.write("trained")
"""
HOUR_1200 = (140000 * 1200 * 2 + 730) // (2 * 730)
LOCAL = {"prices": {TYPE: "0.115", "storage:SCRATCH_2": "0.14", "storage:PERSISTENT_2": "0.6", "storage:PERSISTENT_2/125": "0.145"}, "fsx_create_seconds": 0.6, "fsx_delete_seconds": 0.4, "fsx_task_seconds": 0.3}


def campaign(name, ttl="1h", more="", env="", top="", volume="size_gb: 1200"):
    return f"""version: 1
name: {name}
{top}
stages:
  - {{name: volume, kind: lustre, {volume}, import: "s3://drover-test/{name}/", ttl: {ttl}, {VPC}{more}}}
  - name: train
    needs: volume
    image: "drover/reader:test"
    instance_type: {TYPE}
    max_runtime: 5m
    output: "s3://drover-test/out/"
    input: {{data: "lustre:volume"}}
    environment: {{TAG: "{name}"{env}}}
    {VPC}
"""


def objects(s, name):
    folder = f"{s.dir}/aws/s3/drover-test/{name}"
    os.makedirs(folder + "/in")
    for i in range(3):
        with open(f"{folder}/in/{i}", "w") as f:
            f.write(f"part {i}\n")


def made(s, name):
    try:
        with open(f"{s.dir}/aws/s3/drover-test/{name}/made-{name}") as f:
            return f.read()
    except FileNotFoundError:
        return None


def submit(s, name, **more):
    objects(s, name)
    return s.submit(campaign(name, **more))


def ended(s, cid, state="succeeded", seconds=90):
    c = wait_for(lambda: s.ended(cid), seconds, f"the end of {cid}")
    return c["state"] == state, c


def row(s, cid, what):
    return s.sql(f"SELECT {what} FROM filesystem WHERE campaign_id = {cid[2:]} ORDER BY n DESC LIMIT 1")


def is_in(s, cid, *states):
    return s.sql(f"SELECT count(*) FROM filesystem WHERE campaign_id = {cid[2:]} AND state IN ({', '.join(repr(x) for x in states)})") != "0"


def gone(s, cid, seconds=60):
    wait_for(lambda: is_in(s, cid, "deleted", "failed"), seconds, f"the file system of {cid} is gone")


def there(s):
    """What FSx has, asked without droverd."""
    url, body = f"http://127.0.0.1:{s.local_port}", b"{}"
    headers = sign(url, "fsx", "POST", "/", body, {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "AWSSimbaAPIService_v20180301.DescribeFileSystems"}, KEY, SECRET)
    return [(f["FileSystemId"], f["Lifecycle"]) for f in json.loads(send(url, "POST", "/", headers, body)[2])["FileSystems"]]


def creates(s):
    return sum(r["accepted"] for r in s.oracle("wire-log")["requests"] if r["operation"] == "CreateFileSystem")


def check(tap, s, what):
    tap.eq(there(s), [], f"{what}: no file system is left at AWS")
    tap.eq(creates(s), int(s.sql("SELECT count(*) FROM filesystem WHERE aws_id <> ''")), f"{what}: as many were made as there are rows of one")
    s.check_invoice(tap, what + ": ")
    tap.eq(s.sql("SELECT count(*) FROM check_counters()"), "0", f"{what}: every sum is what it is the sum of")
    tap.eq(s.sql("SELECT coalesce(sum(reserved_musd), 0) FROM money"), "0", f"{what}: nothing stays reserved")


def test_life(tap, s):
    cid = submit(s, "life")
    good, c = ended(s, cid)
    tap.ok(good, "a file system, and a training that mounts it", c)
    tap.eq(row(s, cid, "state || ': ' || reason || ' ' || estimated || ' ' || hours || ' ' || cost_musd"), f"deleted: no stage uses it any more false 1 {HOUR_1200}", "deleted after its last use, an hour of its size is booked")
    cost = s.api("GET", f"/campaigns/{cid}/cost?by=phase")
    tap.eq([sum(p["micro_usd"] for p in cost["by_phase"]), cost["by_phase"][-1]["micro_usd"]], [cost["metered"]["micro_usd"], HOUR_1200], "by phase the file system is storage, and all adds up to the ledger")
    tap.eq(made(s, "life"), "part 0\npart 1\npart 2\n", "the job has read what was imported, and what it wrote is in S3")
    order = [r["operation"] for r in s.oracle("wire-log")["requests"] if (r["accepted"] or r["operation"] == "DeleteFileSystem" and r["status"] == 200) and r["operation"] in ("CreateFileSystem", "CreateDataRepositoryAssociation", "CreateTrainingJob", "CreateDataRepositoryTask", "DeleteFileSystem")]
    tap.eq(order, ["CreateFileSystem", "CreateDataRepositoryAssociation", "CreateTrainingJob", "CreateDataRepositoryTask", "DeleteFileSystem"], "made, filled, used, exported, deleted: each once")
    check(tap, s, "life")


def test_failures(tap, s):
    s.faults({"operation": "CreateFileSystem", "kind": "job_failure", "reason": "no room in this zone", "times": 1})
    cid = submit(s, "broken", top="retry: [{cause: [unknown, capacity, internal], times: 0}]")
    good, c = ended(s, cid, "failed")
    tap.ok(good and "no room in this zone" in c["stages"][0]["reason"] and c["stages"][1]["state"] == "skipped", "one that FSx cannot make fails its stage, with the words of FSx", c)
    tap.eq(row(s, cid, "state || ' ' || cost_musd"), "failed 0", "it is deleted, and costs nothing")
    s.faults({"operation": "CreateFileSystem", "kind": "quota_refuse", "times": 2})
    cid = submit(s, "quota")
    good, c = ended(s, cid)
    tap.ok(good, "a limit of the account is waited for", c)
    s.faults({"operation": "CreateFileSystem", "kind": "drop_after", "times": 1}, {"operation": "CreateDataRepositoryAssociation", "kind": "drop_after", "times": 1},
             {"operation": "CreateDataRepositoryTask", "kind": "drop_after", "times": 1}, {"operation": "DeleteFileSystem", "kind": "drop_after", "times": 1})
    cid = submit(s, "lost")
    good, c = ended(s, cid)
    tap.ok(good and made(s, "lost") is not None and row(s, cid, "n") == "1", "lost answers to each of its requests: one file system, used and gone", c)
    s.faults({"operation": "CreateDataRepositoryTask", "kind": "job_failure", "reason": "S3 is away", "times": 1})
    cid = submit(s, "export")
    good, c = ended(s, cid)
    tap.ok(good and made(s, "export") is not None, "an export that fails is made again before the file system goes", c)
    s.faults()
    check(tap, s, "failures")


def test_money(tap, s):
    status, text, _ = s.raw("POST", "/v1/campaigns", campaign("poor", top="budget: 0.10 USD").encode(), {"Content-Type": "application/yaml", "Idempotency-Key": "poor"}, 0)
    tap.ok(status == 409 and b"may cost 0.690411 USD" in text, "a budget that has no room for its ttl is refused, with both numbers", (status, text))
    plan = json.loads(s.raw("POST", "/v1/campaigns?dry_run=true", campaign("plan").encode(), {"Content-Type": "application/yaml"}, 0)[1])
    one = plan["stages"][0]
    tap.eq((one["kind"], one["size_gib"], one["ttl_seconds"], one["price_micro_usd_per_hour"], one["worst_case_micro_usd"]), ("lustre", 1200, 3600, HOUR_1200, 3 * HOUR_1200),
           "a plan says its size, its ttl, and what an hour and all of it may cost")
    tap.ok(any(w["code"] == "outlives_drover" and w["stage"] == "volume" for w in plan["warnings"]), "and that it does not end by itself", plan["warnings"])
    for n, price, warned in ((125, 145000, []), (250, 600000, ["volume"])):
        volume = f"size_gb: 1200, deployment: PERSISTENT_2, throughput: {n}"
        plan = json.loads(s.raw("POST", "/v1/campaigns?dry_run=true", campaign("tier", volume=volume).encode(), {"Content-Type": "application/yaml"}, 0)[1])
        tap.eq((plan["stages"][0]["price_micro_usd_per_hour"], [w["stage"] for w in plan["warnings"] if w["code"] == "price_of_dearest"]), ((price * 1200 * 2 + 730) // (2 * 730), warned),
               f"PERSISTENT_2 of {n} MB/s is priced by its throughput, and else said to be by the dearest")
    cid = submit(s, "waits", top="budget: 1.50 USD", more="", env=f', HOLD: "{s.dir}/hold"', volume="size_gb: 1200")
    wait_for(lambda: is_in(s, cid, "available"), 60, "it is there")
    tap.eq(row(s, cid, "reserved_musd"), str((140000 * 1200 * 3 * 2 + 730) // (2 * 730)), "its ttl and two hours are reserved")
    good, c = ended(s, cid)
    tap.ok(good, "and given back", c)
    check(tap, s, "money")


def test_ends(tap, s):
    hold = s.dir + "/hold"
    open(hold, "w").close()
    cid = submit(s, "stopped", env=f', HOLD: "{hold}"')
    wait_for(lambda: s.sql(f"SELECT count(*) FROM attempt WHERE campaign_id = {cid[2:]} AND state = 4") == "1", 60, "its job runs")
    job = s.sql(f"SELECT convert_from(request, 'UTF8')::jsonb#>'{{InputDataConfig,0,DataSource,FileSystemDataSource}}' FROM attempt WHERE campaign_id = {cid[2:]}")
    want = {"FileSystemId": row(s, cid, "aws_id"), "FileSystemType": "FSxLustre", "FileSystemAccessMode": "rw", "DirectoryPath": "/" + row(s, cid, "mount")}
    tap.eq(json.loads(job), want, "its channel is that file system")
    s.api("POST", f"/campaigns/{cid}:cancel", {})
    good, c = ended(s, cid, "cancelled")
    tap.eq((good, row(s, cid, "state || ': ' || reason")), (True, "deleted: its campaign was cancelled"), "a cancelled campaign ends when its file system is gone")
    early = submit(s, "early")
    wait_for(lambda: is_in(s, early, "intended", "creating"), 20, "it is intended")
    s.api("POST", f"/campaigns/{early}:cancel", {})
    ended(s, early, "cancelled")
    gone(s, early)
    os.unlink(hold)
    kept = submit(s, "kept", more=", delete: after_ttl")
    good, c = ended(s, kept)
    tap.eq((good, row(s, kept, "state")), (True, "available"), "one that is kept for its ttl outlives its campaign")
    listed = [f for f in s.api("GET", "/filesystems")["filesystems"] if f["campaign"] == kept]
    tap.eq([(f["state"], f["filesystem"], f["micro_usd_per_hour"], f["cost_micro_usd"], f["keep"]) for f in listed],
           [("available", row(s, kept, "aws_id"), HOUR_1200, HOUR_1200, True)], "the list shows it with its cost")
    hand = submit(s, "hand", more=", delete: after_ttl")
    ended(s, hand)
    s.api("DELETE", f"/filesystems/{row(s, hand, 'token')}")
    gone(s, hand)
    tap.eq((row(s, hand, "state || ': ' || reason"), made(s, "hand") is not None), ("deleted: a person asked for it", True), "deleted by hand, long before its ttl, after its export")
    s.kill("droverd0")
    s.sql(f"UPDATE filesystem SET ttl_s = 1 WHERE campaign_id = {kept[2:]}")
    wait_for(lambda: row(s, kept, "created_at + interval '1 s' < now()") == "t", 10, "its ttl is over")
    began = time.monotonic()
    s.start_droverd(0)
    gone(s, kept)
    tap.eq(row(s, kept, "state || ': ' || reason"), "deleted: its ttl is over", f"a ttl that ends while droverd is down: gone {time.monotonic() - began:.1f} s after the start")
    tap.ok(made(s, "kept") is not None, "and what the job wrote is in S3")
    check(tap, s, "ends")


def test_retries(tap, s):
    """A stage that has failed leaves its file system to a retry; a retry without one is refused."""
    broken = s.dir + "/broken"
    open(broken, "w").close()
    cid = submit(s, "mended", env=f', BROKEN: "{broken}"')
    good, c = ended(s, cid, "failed")
    name = row(s, cid, "token")
    tap.eq((good, row(s, cid, "state"), c["stages"][1]["state"]), (True, "available", "failed"), "its stage failed and the campaign ended: the file system is kept")
    tap.eq(row(s, cid, "reason"), f"kept for a retry until its ttl is over: drover retry {cid}, or drover filesystems delete {name}", "its row says why, until when, and what ends it")
    c = s.api("GET", f"/campaigns/{cid}")
    until = row(s, cid, "to_char(delete_after AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")
    tap.eq([(g["kind"], g["title"], [x["command"] for x in g["steps"]]) for g in c["guidance"]],
           [("kept_filesystem", f"file system {name} is kept for a retry until {until}", [f"drover retry {cid}", f"drover filesystems delete {name}"])], "so does its campaign, though it has ended")
    os.unlink(broken)
    s.api("POST", f"/campaigns/{cid}:retry", {"selector": {"state": "failed"}})
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["state"] == "running", 30, "it goes on")
    good, c = ended(s, cid)
    tap.eq((good, row(s, cid, "n || ' ' || state || ': ' || reason"), made(s, "mended") is not None), (True, "1 deleted: no stage uses it any more", True),
           "the retry uses it, and then it goes")
    open(broken, "w").close()
    cid = submit(s, "late", env=f', BROKEN: "{broken}"')
    ended(s, cid, "failed")
    s.api("DELETE", f"/filesystems/{row(s, cid, 'token')}")
    gone(s, cid)
    for query in ("", "?dry_run=true"):
        status, text, _ = s.raw("POST", f"/v1/campaigns/{cid}:retry{query}", json.dumps({"selector": {"state": "failed"}}).encode(), {"Content-Type": "application/json", "Idempotency-Key": "late" + query[:1]}, 0)
        tap.ok(status == 409 and b"mounts the file system of stage volume, which is gone (a person asked for it)" in text, f"a retry without it is refused{query and ', so is its preview'}", (status, text))
    os.unlink(broken)
    check(tap, s, "retries")


def test_lost(tap, s):
    """Its time is over while a part waits: that part fails, people are told why, and can skip it."""
    hold = s.dir + "/hold"
    open(hold, "w").close()
    cid = submit(s, "gone", more=", delete: after_ttl", env=f', HOLD: "{hold}"')
    wait_for(lambda: s.sql(f"SELECT count(*) FROM attempt WHERE campaign_id = {cid[2:]} AND state = 4") == "1", 60, "its job runs")
    s.api("POST", f"/campaigns/{cid}:pause", {})
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["state"] == "paused", 60, "it is paused")
    os.unlink(hold)
    s.api("DELETE", f"/filesystems/{row(s, cid, 'token')}")
    gone(s, cid)
    s.api("POST", f"/campaigns/{cid}:resume", {})
    ended(s, cid, "failed")
    told = [(g["cause"], g["parts"], g["final"], g["message"]) for g in s.api("GET", f"/campaigns/{cid}/failures")["groups"]]
    tap.eq(told, [("bad_input", 1, 1, "the file system of stage volume is gone: its time was over, or somebody deleted it")], "a part whose file system is gone tells why it failed")
    s.api("POST", f"/campaigns/{cid}:skip", {"selector": {"state": "failed"}})
    skipped = wait_for(lambda: s.sql(f"SELECT count(*) FROM task_run WHERE campaign_id = {cid[2:]} AND state = 5") == "1", 30, "it is skipped")
    tap.ok(skipped, "and skip reaches it")
    check(tap, s, "lost")


def test_kills(tap, s, rng, kills):
    cids = [submit(s, f"killed-{i}") for i in range(2)]
    for _ in range(kills):
        time.sleep(rng.uniform(0.1, 1.6))
        s.kill("droverd0")
        s.start_droverd(0)
    for i, cid in enumerate(cids):
        good, c = ended(s, cid, seconds=120)
        tap.ok(good and made(s, f"killed-{i}") is not None, f"killed {kills} times, {cid} succeeds", c)
        tap.eq(s.sql(f"SELECT count(*) FROM filesystem WHERE campaign_id = {cid[2:]}"), "1", f"{cid}: one try, one file system")
    check(tap, s, f"killed {kills} times")


def main():
    tap, rng = Tap(), rng_from_args()
    with Stack("filesystem", quotas={TYPE: 2}, local=LOCAL, images={"drover/reader:test": [sys.executable, "-S", "-c", JOB]}) as s:
        with open(s.dir + "/prices.json", "w") as f:
            json.dump(LOCAL["prices"], f)
        s.start()
        test_life(tap, s)
        test_failures(tap, s)
        test_money(tap, s)
        test_ends(tap, s)
        test_retries(tap, s)
        test_lost(tap, s)
        test_kills(tap, s, rng, int(os.environ.get("KILLS", "5")))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
