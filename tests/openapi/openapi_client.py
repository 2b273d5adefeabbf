#!/usr/bin/env python3
"""Aim: a client that is generated from /openapi.json submits a campaign and follows it to its end, on a whole drover: droverd,
PostgreSQL, drover-local and jobs that run. Method: client.ts (openapi-typescript's types, which the suite openapi checks, and
openapi-fetch) plans, submits, adds parts, polls, and reads failures and cost; the oracle compares what it was told.

usage: openapi_client.py"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kit import TOP, Tap, patience  # noqa: E402
from kit.stack import Stack  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = {"version": 1, "name": "generated", "stages": [{
    "name": "work", "image": "user/nap", "fan_out": {"from": "api"}, "instance_type": "ml.c5.xlarge", "max_runtime": "20m",
    "output": "s3://drover-test/out/", "verify": "none"}]}
URIS = [f"s3://drover-test/naps/{i}" for i in range(4)]


def main():
    tap = Tap()
    with Stack("openapi-client", parts=1, rows=1, images={"user/nap": ["/bin/sh", "-c", "sleep 0.2"]}) as s:
        s.start()
        s.faults({"kind": "job_failure", "operation": "CreateTrainingJob", "name_contains": "-2-", "times": 9, "reason": "AlgorithmError: ValueError: no such column, exit code: 1"})
        with open(s.dir + "/file.json", "w", encoding="utf-8") as f:
            json.dump(FILE, f)
        run = subprocess.run(["node", os.path.join(HERE, "follow.mjs"), s.dir, f"http://127.0.0.1:{s.ports['droverd0']}", open(s.token_file, encoding="utf-8").read().strip(), *URIS],
                             env={**os.environ, "PACKAGES": os.path.join(TOP, "build/openapi/")}, capture_output=True, text=True, timeout=patience(120), check=False)
        tap.ok(run.returncode == 0, "the client goes its way", run.stderr[-2000:])
        if run.returncode:
            return tap.done()
        got = json.loads(run.stdout)
        tap.eq((got.get("parts"), got.get("failed"), got.get("missing")), (4, 1, "not_found"), "it submits, adds four parts, sees the one that failed, and reads a problem")
        tap.eq(got["states"][-1:], ["failed"], "and follows it to its end")
        cid = got["campaign"]["id"]
        tap.eq(got["campaign"], {**s.api("GET", f"/campaigns/{cid}"), **{k: got["campaign"][k] for k in ("links",) if k in got["campaign"]}}, "what it holds is the campaign")
        tap.ok(0 < got["cost"] == s.api("GET", f"/campaigns/{cid}/cost")["metered"]["micro_usd"], "with its cost", got["cost"])
    return tap.done()


sys.exit(main())
