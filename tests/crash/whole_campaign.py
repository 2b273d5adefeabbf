#!/usr/bin/env python3
"""The whole campaign of `make run` under SIGKILLs at random moments, of droverd and of the processes of its jobs: copy, download,
Lustre, index, training on 1, 2 and 4 hosts, gate, full training, endpoint. It completes, no stage's part is done twice, nothing that
costs is left at AWS, and the ledger equals the invoice. The harness only starts and ends processes.
usage: whole_campaign.py [KILLS]   (SEED=n repeats the moments)
"""
import glob
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kit import TOP, Tap, wait_for, wait_moving
from kit.stack import Stack, rng_from_args

PARTS, ROWS = 6, 60
SERVICES = ("volume", "deploy")  # stages without jobs
PRICES = {"ml.c5.xlarge": "0.204", "ml.m5.large": "0.115", "hosting:ml.m5.large": "0.115", "ml.g5.xlarge": "1.408", "storage:SCRATCH_2": "0.14"}
LOCAL = {"prices": PRICES, "warm_quotas": {"ml.g5.xlarge": 4}, "endpoint_quotas": {"ml.m5.large": 1}, "fsx_create_seconds": 0.5,
         "fsx_delete_seconds": 0.3, "endpoint_start_seconds": 0.3}


class Whole(Stack):
    burning = set()

    def part_states(self):
        return {name: v for name, v in super().part_states().items() if name.split("-", 2)[2].rsplit("-", 1)[0] not in SERVICES}

    def campaign(self, name="whole"):
        """The campaign of make run, with an endpoint that lives for seconds. A killed job is tried again however often it was killed."""
        with open(TOP + "/tests/demo/campaign.yaml", encoding="utf-8") as f:
            text = f.read()
        guards = "    breaker: off\n    canary: off\n    quarantine: off\n"
        for old, new in (("laion-sample", name), ("@PARTS@", str(PARTS)), ("@ALLOW@", f"127.0.2.0/24:{self.web_port}"), ("@DNS@", f"127.0.2.1:{self.dns_port}"),
                         ("drover/worker:demo", "drover/worker:test"), ("s3://drover-demo", "s3://drover-test/" + name), ("ttl: 10m", "ttl: 20s"),
                         ("    verify: manifest\n", "    verify: manifest\n" + guards), ("    matrix:\n", guards + "    matrix:\n"),
                         ("sample: 0.01", "sample: 0.2"), ("log_steps: 5}", "log_steps: 5, wait_seconds: 10}"),
                         ("  - {cause: [internal, network], wait: 1s..3s, times: 5}", "  - {cause: [internal, network, oom, user_code, unknown, short_output], wait: 1s..1s, times: 99}")):
            assert old in text, old
            text = text.replace(old, new)
        return text

    def ended(self, cid):
        """Also looks what costs money meanwhile."""
        self.burning |= {x["kind"] for x in self.api("GET", "/billable")["billable"] if x["micro_usd_per_hour"] > 0}
        return super().ended(cid)

    def workers(self):
        """Processes of the jobs that run, but for those of the endpoint."""
        found = []
        for path in glob.glob("/proc/[0-9]*"):
            try:
                with open(path + "/environ", "rb") as f:
                    mine = f"DROVER_ML_ROOT={self.dir}/aws/jobs/".encode() in f.read()
                with open(path + "/cmdline", "rb") as f:
                    argv = f.read().split(b"\0")
            except OSError:
                continue
            if mine and argv[0].endswith(b"/drover-worker") and b"serve" not in argv[1]:
                found.append(int(path[6:]))
        return sorted(found)


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    rng, tap = rng_from_args(), Tap()
    with Whole(f"whole-campaign-{kills}", quotas={"ml.c5.xlarge": 3, "ml.m5.large": 2, "ml.g5.xlarge": 4}, parts=PARTS, rows=ROWS, local=LOCAL) as s:
        os.makedirs(s.dir + "/aws/s3/laion-web")
        os.rename(s.dir + "/aws/s3/drover-test/meta", s.dir + "/aws/s3/laion-web/meta")
        with open(s.dir + "/prices.json", "w", encoding="ascii") as f:
            json.dump(PRICES, f)
        s.start()
        storm(tap, s, rng, kills)
        judge(tap, s)
    return tap.done()


def storm(tap, s, rng, kills):
    cids, droverds, workers = [s.submit(name="whole-0")], 0, 0
    began = time.monotonic()
    while droverds + workers < kills:
        time.sleep(rng.uniform(0.3, 3.5))
        alive = s.workers()
        if alive and rng.random() < 0.4:
            try:
                os.kill(rng.choice(alive), signal.SIGKILL)
                workers += 1
            except ProcessLookupError:
                pass
        else:
            s.kill("droverd0")
            time.sleep(rng.uniform(0, 0.3))
            s.start_droverd(0)
            droverds += 1
        if s.ended(cids[-1]):  # one runs at any time
            cids.append(s.submit(name=f"whole-{len(cids)}"))
    print(f"# {droverds} kills of droverd, {workers} of a job's process, in {time.monotonic() - began:.0f} s and {len(cids)} campaigns", flush=True)
    for cid in cids:
        try:
            c = wait_moving(lambda: s.ended(cid), lambda: s.sql("SELECT count(*), sum(state), count(ended_at), (SELECT string_agg(state, ' ' ORDER BY stage_id) FROM stage_run) FROM attempt"), f"the end of {cid}")
        except TimeoutError as e:
            tap.ok(False, str(e), json.dumps(s.api("GET", f"/campaigns/{cid}"))[:3000])
            continue
        tap.ok(c["state"] == "succeeded" and {x["state"] for x in c["stages"]} == {"succeeded"}, f"{cid}: all its {len(c['stages'])} stages succeed",
               json.dumps([(x["name"], x["state"], x["reason"]) for x in c["stages"]] + s.api("GET", f"/campaigns/{cid}/failures")["groups"])[:3000])


def made(s, what):
    """How many of a kind of thing AWS has made, and how many it has deleted."""
    log = s.oracle("wire-log")["requests"]
    return (sum(r["operation"] == "Create" + what and r["accepted"] for r in log), sum(r["operation"] == "Delete" + what and r["status"] == 200 for r in log))


def judge(tap, s):
    idle = "SELECT (SELECT count(*) FROM pool WHERE ended_at IS NULL) + (SELECT count(*) FROM endpoint WHERE state NOT IN ('deleted', 'failed')) + (SELECT count(*) FROM filesystem WHERE state NOT IN ('deleted', 'failed'))"
    try:
        wait_for(lambda: s.sql(idle) == "0", 90, "the end of pools, endpoints and file systems", step=0.2)
    except TimeoutError as e:
        tap.ok(False, str(e))
    tap.ok({"job", "file_system", "endpoint"} <= s.burning and s.api("GET", "/billable")["billable"] == [], "what costs money was told while it did, and nothing does any more", s.burning)
    n = len(s.api("GET", "/campaigns")["campaigns"])
    tap.eq([made(s, x) for x in ("FileSystem", "Endpoint", "EndpointConfig", "Model")], [(n, n)] * 4, "one file system, endpoint, config and model a campaign, and none is left")
    tap.ok(not s.live_jobs(), "no job is left alive", s.live_jobs())
    tap.eq(s.sql("SELECT count(*) FROM check_counters()"), "0", "every sum is what it is the sum of")
    tap.eq(s.sql("SELECT coalesce(sum(reserved_musd), 0) FROM money"), "0", "nothing stays reserved")
    for bucket in sorted(glob.glob(s.dir + "/aws/s3/drover-test/whole-*")):
        with open(bucket + "/index/index.jsonl", "rb") as f:
            lines = sum(1 for _ in f)
        pairs = sum(json.load(open(p, encoding="utf-8"))["successes"] for p in glob.glob(bucket + "/images/*/_manifest.json"))
        tap.ok(lines == pairs > 0, f"{os.path.basename(bucket)}: the index has the {pairs} pairs of all parts", lines)
    s.check_wire(tap)
    s.check_invoice(tap)


if __name__ == "__main__":
    sys.exit(main())
