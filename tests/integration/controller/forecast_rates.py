#!/usr/bin/env python3
"""The forecast on a running system. Aim: when a fifth of a campaign is done, the end that is said is right within a factor of 1.3, at 1, 10 and 50
CreateTrainingJob calls a second and where slots bind. Method: the real droverd, PostgreSQL and drover-local; parts that sleep; what is
left from the forecast on is compared with the forecast. A machine that is busy later on, or was before, is no error of it: what
jobs took after it, as a multiple of what they took before, is allowed for, and that they were made quicker after it.   (ONLY=10)

usage: forecast_rates.py
"""
import os
import re
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, wait_for
from kit.stack import Stack

FACTOR = 1.3
# calls a second, parts, slots, seconds that a part sleeps
ROWS = ((1, 150, 60, 10), (10, 600, 300, 10), (50, 2000, 800, 10), (50, 200, 10, 2))
tap = Tap()


def spec(name, parts, sleep):
    return f"""version: 1
name: {name}
stages:
  - name: work
    image: user/sleep-{sleep}
    fan_out: {{from: "s3://drover-test/{parts}/*"}}
    instance_type: ml.c5.xlarge
    max_runtime: 20m
    output: "s3://drover-test/out/"
    verify: none
    canary: off
"""


def slower(s, name, said):
    """How much slower the machine was after the forecast, by what a job took in all; below 1: quicker."""
    jobs = [j for j in s.oracle("jobs")["jobs"] if j["ended"] and name in j["name"]]
    took = [[j["ended"] - j["created"] for j in jobs if (j["created"] > said) == late] for late in (False, True)]
    return statistics.mean(took[1]) / statistics.mean(took[0]) if all(took) else 1.0


def quicker(s, name, said):
    """How much quicker jobs were made after the forecast, as a share of their time before: 1 where only their rate binds, on a machine at rest."""
    made = sorted(j["created"] for j in s.oracle("jobs")["jobs"] if name in j["name"])
    before, after = [t for t in made if t <= said], [t for t in made if t > said]
    if len(before) < 10 or len(after) < 10:
        return 1.0
    return min(1.0, (after[-1] - said) / len(after) / ((said - before[0]) / len(before)))


def check(rate, parts, slots, sleep):
    what = f"{rate} calls a second, {parts} parts of {sleep} s, {slots} slots"
    with Stack("forecast", quotas={"ml.c5.xlarge": slots}, lease_us=10000000, parts=1, rows=1, images={f"user/sleep-{sleep}": ["/bin/sh", "-c", f"sleep {sleep}"]},
               local={"rates": {"CreateTrainingJob": rate}}) as s:
        os.makedirs(f"{s.dir}/aws/s3/drover-test/{parts}")
        for i in range(parts):
            with open(f"{s.dir}/aws/s3/drover-test/{parts}/{i:04}.txt", "w", encoding="ascii") as f:
                f.write("nap")
        s.start()
        cid = s.submit(spec("rates", parts, sleep))
        counts = lambda: s.api("GET", f"/campaigns/{cid}")["parts"]  # noqa: E731
        wait_for(lambda: counts()["done"] >= parts // 5, 300, "a fifth", step=0.05)
        asked, said, then = time.monotonic(), time.time(), counts()
        f = s.api("GET", f"/campaigns/{cid}/forecast")["campaign"]
        print(f"# the forecast came after {time.monotonic() - asked:.1f} s", flush=True)
        wait_for(lambda: s.ended(cid), 600, "the end", step=0.05)
        took, more = time.monotonic() - asked, slower(s, "rates", said)
        end = f["end"]
        less = min(more, quicker(s, "rates", said))
        ok = end["p50_seconds"] / FACTOR * min(1, less) <= took <= end["p50_seconds"] * FACTOR * max(1, more)
        print(f"# {what}: at {then['done']} done said {end['p50_seconds']} s ({end['p10_seconds']} to {end['p90_seconds']}), took {took:.1f} s; later jobs took {more:.2f} of the earlier ones, or their making {less:.2f}", flush=True)
        tap.ok(f["known"] and ok, f"{what}: the end is right within a factor of {FACTOR}: {took / max(end['p50_seconds'], 0.1):.2f} of what was said", (end, took, more, less))
        tap.ok(s.ended(cid)["state"] == "succeeded", "and it succeeded")


def main():
    for row in ROWS:
        if re.fullmatch(os.environ.get("ONLY", ".*"), str(row[0])):
            check(*row)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
