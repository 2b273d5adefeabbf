#!/usr/bin/env python3
"""An operator's day on the command line. Aim: each journey - submit, watch, why did some fail, retry those with a larger disk, what does it cost,
more at once, pause and drain, end a warm pool - takes one command typed on a terminal of 80 columns, which asks before it spends or destroys
and says what changed. Method: the real droverd, drover and drover-local; jobs that sleep, of which two find their disk full; what a command
says is compared with what the API says.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, patience, wait_for
from kit.stack import Stack
from kit.terminal import on_terminal

PARTS, FULL = 40, (3, 7)
SPEC = """version: 1
name: day
budget: {total: 20 USD, at_limit: drain}
warm_pool: {keep_alive: 10m, kill_when_queue_empty: no}
retry: [{cause: disk_full, times: 0}]
stages:
  - name: work
    image: user/part
    fan_out: {from: "s3://drover-test/day/*.txt"}
    instance_type: ml.c5.xlarge
    volume_gb: 30
    max_runtime: 20m
    output: "s3://drover-test/out/"
    verify: none
    canary: off
    breaker: off
"""
# What the job of a part does; the disk is full the first time.
SCRIPT = """sleep 3; case $TRAINING_JOB_NAME in *-work-3-a1-* | *-work-7-a1-*) echo 'tar: write error: No space left on device' | tee "$DROVER_ML_ROOT/output/failure"; exit 1 ;; esac"""
tap = Tap()


class Operator(Stack):
    def __init__(self):
        super().__init__("day", quotas={"ml.c5.xlarge": 4}, lease_us=10000000, parts=1, rows=1, images={"user/part": ["/bin/sh", "-c", SCRIPT]},
                         local={"warm_quotas": {"ml.c5.xlarge": 4}, "warm_start_seconds": 0.05})
        os.makedirs(f"{self.dir}/aws/s3/drover-test/day")
        for i in range(PARTS):
            with open(f"{self.dir}/aws/s3/drover-test/day/{i:02}.txt", "w", encoding="ascii") as f:
                f.write("a nap " * (1000 if i in FULL else 1))  # the largest start first
        self.said = []

    def types(self, *words, answer=b"y\n"):
        """What stands on the screen of 80 columns then, and the status. The answer is typed when it asks."""
        env = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{self.ports['droverd0']}", "DROVER_TOKEN_FILE": self.token_file, "LC_ALL": "C.UTF-8", "TERM": "xterm"}
        env.pop("COLUMNS", None)
        out, status = on_terminal([self.release_bin + "/drover", *words], env, 80, answer, patience(120))
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out).replace("\r\n", "\n").replace("\r", "\n")
        self.said.append((words, text))
        print("# $ drover", *words, *("\n#   " + line for line in text.splitlines()[-12:]), flush=True)
        return text, status


def says(got, status, *patterns):
    text, was = got
    missing = [p for p in patterns if not re.search(p, text)]
    tap.ok(was == status and not missing, f"... {', '.join(patterns)[:150]}", (was, missing, text))


def submit_and_watch(s, path):
    got = s.types("submit", path)
    says(got, 0, rf"day.* {PARTS} parts", r"budget 20\.00", r"\[y/N\] y", r"c-1", r"/c/1", r"drover watch c-1")
    seen = {}
    wait_for(lambda: s.api("GET", "/campaigns/c-1")["parts"]["failed"] == len(FULL), 60, "the two that fail")
    return seen


def why_did_they_fail(s):
    failures = s.api("GET", "/campaigns/c-1/failures")["groups"]
    tap.eq([(g["cause"], g["parts"]) for g in failures], [("disk_full", 2)], "two parts found their disk full")
    says(s.types("failures", "c-1"), 0, r"disk_full +2 ", r"tar: write error: No space", r"--volume GB", "3,7")


def retry_bigger(s):
    says(s.types("retry", "c-1", "--cause", "disk_full", "--volume", "60", answer=b"n\n"), 2, r"2 parts", r"(with it the campaign ends in .* USD more|new end and cost: )", r"60 GB", r"\[y/N\] n\nnothing was changed\n$")
    tap.eq(s.api("GET", "/operations?campaign=c-1")["operations"], [], "and without a yes nothing is done")
    got = s.types("retry", "c-1", "--cause", "disk_full", "--volume", "60")
    says(got, 0, r"2 parts", r"3, ?7", r"60 GB", r"warm pool", r"\[y/N\] y", r"op-\d+", r"drover op cancel op-\d+")
    op = s.api("GET", "/operations?campaign=c-1")["operations"][0]
    tap.eq((op["kind"], op["parts"], op["changes"]), ("retry", 2, {"volume_gb": 60}), "the operation is what was asked")


def cost(s):
    says(s.types("cost", "c-1", "--by", "cause"), 0, r"spent|metered", r"disk_full", r"budget|20\.00")
    says(s.types("cost", "c-1", "--by", "phase"), 0, r"start", r"train")


def more_at_once(s):
    says(s.types("scale", "c-1", "2"), 0, r"2", r"ends")
    wait_for(lambda: s.api("GET", "/campaigns/c-1")["parts"]["active"] <= 2, 30, "two at once")
    says(s.types("scale", "c-1", "8"), 0, r"8", r"binds: slots", r"ends", r"\[y/N\] y")
    tap.eq(s.api("GET", "/campaigns/c-1")["limits"]["parts"], 8, "the limit is what was asked")


def pause_and_drain(s):
    says(s.types("drain", "c-1"), 0, r"no new|goes on|draining", r"drover resume c-1")
    wait_for(lambda: s.api("GET", "/campaigns/c-1")["parts"]["active"] == 0, 60, "what ran has ended")
    says(s.types("resume", "c-1", answer=b"n\n"), 2, r"work: \d+ wait, 0 run", r"USD spent, .* budget 20\.00", r"ends in ", r"\[y/N\] n\nnot resumed\n$")
    tap.eq(s.api("GET", "/campaigns/c-1")["wanted"], "drain", "and without a yes nothing goes on")
    says(s.types("resume", "c-1"), 0, r"c-1", r"\[y/N\] y", r"goes on")
    says(s.types("pause", "c-1"), 0, r"c-1", r"drover resume c-1")
    wait_for(lambda: s.api("GET", "/campaigns/c-1")["state"] == "paused", 30, "paused")


def pools(s):
    idle = wait_for(lambda: [p for p in s.api("GET", "/pools")["pools"] if p["state"] == "available"], 60, "a warm pool")
    says(s.types("pools"), 0, r"(?i)idle", r"available")
    name = idle[0]["job_name"]
    says(s.types("pools", "end", name), 0, r"\[y/N\] y", name[:20])
    wait_for(lambda: not any(p["job_name"] == name and p["state"] == "available" for p in s.api("GET", "/pools")["pools"]), 60, "its end")
    tap.ok(True, "the pool has ended")


def to_the_end(s):
    says(s.types("resume", "c-1", "-y"), 0, r"c-1", r"goes on")
    says(s.types("watch", "c-1"), 0, r"100 %|succeeded", rf"✓{PARTS}|{PARTS} done|{PARTS}")
    tap.eq(s.api("GET", "/campaigns/c-1")["parts"]["done"], PARTS, "every part is done")


def main():
    with Operator() as s:
        s.start()
        path = s.dir + "/day.yaml"
        with open(path, "w", encoding="utf-8") as f:
            f.write(SPEC)
        submit_and_watch(s, path)
        for journey in (why_did_they_fail, retry_bigger, cost, more_at_once, pause_and_drain, to_the_end, pools):
            journey(s)
        wide = [(words, line) for words, text in s.said for line in text.splitlines() if len(line) > 80 and s.dir not in line]
        tap.eq(wide, [], "nothing is wider than the terminal")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
