#!/usr/bin/env python3
"""`drover smoke`. Aim: one command shows that image, role, bucket and manifest work, for a known price, and leaves nothing behind; what lacks is
named with the next step before anything is paid, and a job that cannot run ends the command, its campaign and its objects. Method: the real
drover, droverd, drover-worker and drover-local; the wire log and the bucket tell what was made and deleted.
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, patience, wait_for
from kit.stack import Stack

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/drover-worker"


class Smoke(Stack):
    def __init__(self):
        super().__init__("smoke", quotas={"ml.m5.large": 0, "ml.c5.xlarge": 2}, parts=1, rows=1, env={"DROVER_ROLE_ARN": ROLE, "DROVER_QUOTA_INTERVAL_US": "300000"})

    def smoke(self, *args):
        e = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{self.ports['droverd0']}", "DROVER_TOKEN_FILE": self.token_file, "LC_ALL": "C.UTF-8"}
        return subprocess.run([self.release_bin + "/drover", "smoke", *args], capture_output=True, text=True, env=e, stdin=subprocess.DEVNULL, timeout=patience(120), check=False)

    def again(self, **env):
        self.kill("droverd0")
        self.start_droverd(0, env=env)

    def objects(self):
        top = self.dir + "/aws/s3/drover-test/drover-smoke"
        return sorted(os.path.relpath(os.path.join(at, n), top) for at, _, names in os.walk(top) for n in names)

    def made(self):
        """Requests that make or delete something."""
        return [r["operation"] for r in self.oracle("wire-log")["requests"] if r["operation"] in ("CreateTrainingJob", "PutObject", "DeleteObject") and "_lease" not in r["name"]]

    def states(self):
        return [c["state"] for c in self.api("GET", "/campaigns")["campaigns"]]


def check_lacking(s, tap):
    def refused(status, *words):
        r = s.smoke("-y")
        tap.ok(r.returncode == status and all(w in r.stderr for w in words) and "  next: " in r.stderr and not r.stdout, f"refused with what to do: {words[0]}", r)

    refused(6, "ml.m5.large: no price is known", "ml.c5.xlarge: no price is known", "DROVER_PRICES_FILE")
    s.again(DROVER_ROLE_ARN="arn:aws:iam::999999999999:role/drover", DROVER_BUCKET="s3://not-there")
    refused(6, "role: ", "of another account", "DROVER_ROLE_ARN", "bucket: ", "NoSuchBucket", "aws s3 mb s3://not-there", "before those are mended")
    s.again(DROVER_ROLE_ARN="")
    refused(2, "no role is named", "set DROVER_ROLE_ARN", "deploy/iam/README.md")
    s.again(DROVER_WORKER_IMAGE="")
    refused(2, "no image of our worker", "set DROVER_WORKER_IMAGE", "push-images.sh")
    s.again(AWS_SECRET_ACCESS_KEY="wrong")
    refused(6, "credentials: ", "SignatureDoesNotMatch", "role of its machine")
    s.again()
    wait_for(lambda: any(q["price_micro_usd_per_hour"] for q in s.api("GET", "/quotas")["quotas"]), 60, "the prices", step=0.1)
    r = s.smoke()
    tap.ok(r.returncode == 2 and "at worst 0.0782 USD" in r.stdout and "add -y" in r.stderr, "without an answer it shows the price and does nothing", r)
    silent = {o: s.smoke("-o", o) for o in ("wide", "json", "yaml", "jsonl", "name")}
    tap.ok(all(r.returncode == 2 and "add -y" in r.stderr for r in silent.values()), "nor does it whatever -o is", silent)
    r = s.smoke("--dry-run", "-o", "json")
    tap.ok(r.returncode == 0 and json.loads(r.stdout)["worst_case_micro_usd"] <= 100000, "--dry-run prints the plan", r)
    r = s.smoke("-y", "--instance-type", "ml.p4d.24xlarge")
    tap.ok(r.returncode == 6 and "ml.p4d.24xlarge: no price is known" in r.stderr, "a type of one's own is judged as well", r)
    wait_for(lambda: any(q["instance_type"] == "ml.m5.large" and q["limit"] == 0 for q in s.api("GET", "/quotas")["quotas"]), 60, "the quota", step=0.1)
    r = s.smoke("-y", "--instance-type", "ml.m5.large")
    tap.ok(r.returncode == 6 and "ml.m5.large: its quota is 0" in r.stderr and "  next: ask Service Quotas" in r.stderr, "as is its quota", r)
    tap.eq((s.made(), s.states()), ([], []), "nothing was made by all of that")


def check_good(s, tap):
    r = s.smoke("-y")
    lines = r.stdout.splitlines()
    cost = re.search(r"^✓ cost +(\d\.\d+) USD for ", r.stdout, re.M)
    tap.ok(r.returncode == 0 and not r.stderr and [x.split()[1] for x in lines if x.startswith("✓")] == ["image", "role", "manifest", "cost", "cleaned"], "it says what was shown", r)
    tap.ok(cost and float(cost[1]) < 0.1, "and what it cost", lines)
    tap.eq(s.oracle("jobs")["jobs"][-1]["instance_type"], "ml.c5.xlarge", "a type whose quota is 0 is passed over for the next")
    puts = [r for r in s.oracle("wire-log")["requests"] if r["operation"] == "PutObject" and r["name"].endswith("_manifest.json")]
    tap.ok(len(puts) == 1 and s.made().count("CreateTrainingJob") == 1, "by one job, which wrote its manifest", s.made())
    tap.eq((s.objects(), s.states()), ([], ["succeeded"]), "no object is left")
    r = s.smoke("-y", "--keep", "-o", "json")
    tap.ok(r.returncode == 0 and json.loads(r.stdout)["state"] == "succeeded", "for programs it is the campaign", r)
    kept = s.objects()
    folder = os.path.dirname(kept[0]) if kept else ""
    tap.ok({f"{folder}/input.txt", f"{folder}/output/_manifest.json", f"{folder}/output/copy.txt"} <= set(kept), "--keep leaves its objects", kept)
    there = s.dir + "/aws/s3/drover-test/drover-smoke/"
    with open(f"{there}{folder}/input.txt", "rb") as a, open(f"{there}{folder}/output/copy.txt", "rb") as b:
        tap.eq(a.read(), b.read(), "the copy is the input")
    got = [s.raw("DELETE", "/v1/smoke/" + folder)[:2] for _ in range(2)]
    tap.eq([(status, json.loads(text)["objects_deleted"]) for status, text in got], [(200, len(kept)), (200, 0)], "which the API deletes, once")
    tap.eq([s.raw(m, "/v1/smoke/" + x)[0] for m in ("PUT", "DELETE") for x in ("..%2fsources0", "A" * 12, "0" * 11, "0" * 13)], [404] * 8, "only below an id of its own")
    tap.eq(s.objects(), [], "and nothing is left")


def check_broken(s, tap):
    s.again(DROVER_WORKER_IMAGE="drover/other:1")
    r = s.smoke("-y")
    tap.ok(r.returncode == 10 and "bad_image: " in r.stderr and "next: fix the image" in r.stderr and s.objects() == [], "an image that is not there: its cause, and the objects are gone", r)
    s.again()
    s.faults({"kind": "access_denied", "operation": "CreateTrainingJob"})
    r = s.smoke("-y")
    tap.ok(r.returncode != 0 and "AccessDenied" in r.stdout + r.stderr and "next: " in r.stdout + r.stderr, "a role that may not be passed", r)
    tap.ok(all(x in ("succeeded", "failed", "cancelled") for x in s.states()) and s.objects() == [], "ends the campaign and leaves no object", (s.states(), s.objects()))
    s.faults({"kind": "access_denied", "operation": "PutObject"})
    r = s.smoke("-y")
    tap.ok(r.returncode == 1 and "s3:PutObject" in r.stderr and s.states()[0] != "running", "a bucket that droverd may not write", r)
    s.faults({"kind": "access_denied", "operation": "DeleteObject"})
    r = s.smoke("-y")
    tap.ok(r.returncode == 1 and "s3:DeleteObject" in r.stderr and "aws s3 rm --recursive s3://drover-test/drover-smoke/" in r.stderr and "✓ manifest" in r.stdout, "what cannot be deleted is named", r)
    s.faults()


def main():
    tap = Tap()
    with Smoke() as s:
        s.start_pg()
        s.start_local()
        s.start_droverd(0, env={"DROVER_PRICES_FILE": ""})
        check_lacking(s, tap)
        check_good(s, tap)
        check_broken(s, tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
