#!/usr/bin/python3
"""Clocks apart. Aim: whatever the wall clocks of droverd, of the workers and of PostgreSQL say, an hour ahead or behind or stepping in
the middle of everything, each part is done once, every campaign ends and the ledger equals the invoice, whose clock is AWS'. Method: the
real programs with a preloaded clock of their own each; drover-local's and the test's are right.   (ONLY=word, SEED=n; clocks.py ROUNDS)"""
import os
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kit import TOP, Tap, wait_for
from kit.clocks import Clock, new_folder
from kit.stack import Stack, rng_from_args

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
rng = rng_from_args()
tap = Tap()
PARTS, HOUR = 6, 3600
WHO = ("droverd", "worker", "pg")


class Clocks(Stack):
    migrated = False  # its own clock stamps what is migrated

    def __init__(self):
        self.folder = new_folder()
        self.clocks = {who: Clock(self.folder, who) for who in WHO}
        worker = ["env", *(f"{k}={v}" for k, v in self.clocks["worker"].env().items()), os.path.join(TOP, "build/bin/drover-worker")]
        super().__init__("clocks", parts=PARTS, rows=8, images={"drover/worker:test": worker}, local={"warm_quotas": {"ml.c5.xlarge": 2}, "signature_window_seconds": 6},
                         env={"DROVER_SIGNATURE_WINDOW_US": "6000000"})

    def start_pg(self, options=""):
        self.clocks["pg"].around(lambda: Stack.start_pg(self, options))

    def set(self, **seconds):
        for who in WHO:
            self.clocks[who].set(seconds.get(who, 0))

    def now_of_pg(self):
        return float(self.sql("SELECT extract(epoch FROM clock_timestamp())"))

    def close(self):
        super().close()
        shutil.rmtree(self.folder, ignore_errors=True)


def ends(s, cid, what, during=lambda: None):
    def over():
        during()
        return s.ended(cid)
    try:
        wait_for(over, 90, f"the end of {cid}", step=0.3)
    except TimeoutError as e:
        tap.ok(False, f"{what}: {e}", (s.api("GET", f"/campaigns/{cid}"), s.api("GET", f"/campaigns/{cid}/parts")))
        return
    c = s.api("GET", f"/campaigns/{cid}")
    got = [p["attempts"] for p in s.api("GET", f"/campaigns/{cid}/parts")["parts"]]
    tap.ok(c["state"] == "succeeded" and got == [1] * PARTS, f"{what}: each part is done by its first attempt", (c, got))


def apart(s):
    """Each alone an hour ahead and behind, and droverd against PostgreSQL; droverd starts so, and a second campaign finds it running."""
    cases = [{who: sign * HOUR} for who in WHO for sign in (1, -1)] + [{"droverd": HOUR, "pg": -HOUR}, {"droverd": -HOUR, "worker": HOUR}]
    for case in cases if rounds > 1 else rng.sample(cases[:6], 2) + [cases[6]]:
        what = ", ".join(f"{who} {seconds // HOUR:+d} h" for who, seconds in case.items())
        s.kill("droverd0")
        s.set(**case)
        s.start_droverd(0)
        wait_for(lambda: s.leader() == 0, 30, "a leader")
        if "pg" in case:
            tap.ok(abs(s.now_of_pg() - time.time() - case["pg"]) < HOUR / 4, f"{what}: PostgreSQL believes it")
        ends(s, s.submit(name="apart"), what)


def stepping(s):
    """All three step by up to an hour at any moment."""
    s.set()
    moves = []

    def step():
        if not moves or time.monotonic() - moves[-1] > 0.7:
            moves.append(time.monotonic())
            s.clocks[rng.choice(WHO)].set(rng.choice((-HOUR, -HOUR // 6, 0, HOUR // 6, HOUR)))
    cid = s.submit(name="stepping")
    ends(s, cid, "stepping", step)
    tap.ok(len(moves) >= 3, f"the clocks stepped {len(moves)} times")


with Clocks() as stack:
    stack.start()
    wait_for(lambda: stack.leader() == 0, 30, "a leader")
    for _ in range(rounds):
        for case in (apart, stepping):
            if os.environ.get("ONLY", "") in case.__name__:
                began = time.monotonic()
                case(stack)
                print(f"# {case.__name__}: {time.monotonic() - began:.0f} s", flush=True)
    stack.set()
    wait_for(lambda: not stack.live_jobs(), 60, "no live job")
    try:
        wait_for(lambda: stack.sql("SELECT count(*) FROM pool WHERE ended_at IS NULL") == "0", 90, "the end of the warm pools", step=0.3)
    except TimeoutError as e:
        tap.ok(False, str(e))
    wrong = stack.sql("SELECT coalesce(string_agg(what || ' ' || ref || ': kept ' || kept || ' counted ' || counted, '; '), 'none') FROM check_counters()")
    tap.ok(wrong == "none", "all that is kept as a sum is right", wrong)
    stack.check_wire(tap, keys_refused=True)
    stack.check_invoice(tap)
sys.exit(tap.done())
