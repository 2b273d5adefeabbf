#!/usr/bin/python3
"""Cut connections. Aim: whatever part of a conversation is lost, every part is done once and the ledger equals the invoice. Method: the
real programs with a proxy of the test's own before PostgreSQL and drover-local: it cuts around COMMIT, so that nobody knows whether it
took place, and swallows one direction for several leases while a standby takes over.   (ONLY=word, SEED=n; cuts.py ROUNDS)"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kit import Tap, postgres, wait_for, wait_moving
from kit.proxy import Proxy
from kit.stack import Stack, rng_from_args

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
rng = rng_from_args()
tap = Tap()
PARTS = 8
LEASE = 1.5


class Cut(Stack):
    """droverd 0 reaches PostgreSQL and AWS through proxies only; droverd 1, its standby, reaches them itself."""

    def __init__(self):
        super().__init__("cuts", parts=PARTS, rows=6, lease_us=int(LEASE * 1e6), local={"warm_quotas": {"ml.c5.xlarge": 2}})
        self.folder = postgres.new_folder("drover-cut-")
        os.chmod(self.folder, 0o755)
        self.pg = Proxy(self.sock + "/.s.PGSQL.5432", self.folder)
        self.aws = Proxy(self.local_port)

    def begin(self):
        self.start_pg()
        self.start_local()
        self.start_droverd(0, env={"DROVER_DATABASE_URL": f"host={self.folder} user=drover dbname=postgres", "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.aws.port}"})
        wait_for(lambda: self.leader() == 0, 30, "the leader")
        self.start_droverd(1)

    def close(self):
        super().close()
        self.pg.close()
        self.aws.close()
        postgres.shutil.rmtree(self.folder, ignore_errors=True)

    def ends(self, cid, what):
        try:
            wait_moving(lambda: self.ended(cid), lambda: self.sql("SELECT count(*), sum(state), count(ended_at) FROM attempt"), f"the end of {cid}")
        except TimeoutError as e:
            tap.ok(False, f"{what}: {e}", self.api("GET", f"/campaigns/{cid}"))
            return
        c = self.api("GET", f"/campaigns/{cid}")
        tap.ok(c["state"] == "succeeded" and c["parts"]["done"] == PARTS, f"{what}: all parts are done", c)

    def leads(self, i):
        """The other one gives way by a stop in order, and comes back as the standby."""
        if self.leader() != i:
            self.kill(f"droverd{1 - i}", 15)
            wait_for(lambda: self.leader() == i, 30, f"droverd {i} as the leader")
            self.start_droverd(1 - i)


def around_commit(s):
    for where in ("before", "after"):
        s.leads(0)
        before = s.pg.cuts
        s.pg.on_up = lambda data, where=where: where if b"COMMIT" in data and rng.random() < 0.25 else None
        cid = s.submit(name=f"commit-{where}")
        s.ends(cid, f"cut {where} COMMIT reaches PostgreSQL" if where == "before" else "cut before the answer to COMMIT")
        s.pg.on_up = None
        tap.ok(s.pg.cuts > before, f"{s.pg.cuts - before} connections were cut {where} a COMMIT")


def swallow(s, what, proxy, way):
    """One campaign while what goes that way is lost. Returns how many bytes: none when the other one had just become the leader."""
    s.leads(0)
    cid = s.submit(name="way-" + way)
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}", i=1)["parts"]["active"] > 0, 30, "active parts")
    swallowed = proxy.swallowed
    setattr(proxy, way, True)
    time.sleep(rng.uniform(2, 4) * LEASE)
    if proxy is s.pg:
        wait_for(lambda: b"\ndroverd_leading 1" in s.raw("GET", "/metrics", i=1)[1], 30, "the standby as the leader")
    setattr(proxy, way, False)
    s.ends(cid, what)
    tap.ok(s.procs["droverd0"].poll() is None, f"{what}: it goes on")
    wait_for(lambda: s.leader() is not None, 30, "a leader")
    return proxy.swallowed - swallowed


def one_way(s):
    for what, proxy, way in (("PostgreSQL does not hear the leader", s.pg, "up"), ("the leader does not hear PostgreSQL", s.pg, "down"),
                             ("AWS does not hear the leader", s.aws, "up"), ("the leader does not hear AWS", s.aws, "down")):
        lost = next((n for n in (swallow(s, what, proxy, way) for _ in range(4)) if n > 0), 0)
        tap.ok(lost > 0, f"{what}: {lost} bytes were lost")


with Cut() as stack:
    stack.begin()
    for _ in range(rounds):
        for case in (around_commit, one_way):
            if os.environ.get("ONLY", "") in case.__name__:
                began = time.monotonic()
                case(stack)
                print(f"# {case.__name__}: {time.monotonic() - began:.0f} s", flush=True)
    wait_for(lambda: not stack.live_jobs(), 60, "no live job")
    wait_for(lambda: stack.sql("SELECT count(*) FROM pool WHERE ended_at IS NULL") == "0", 90, "the end of the warm pools", step=0.3)
    wrong = stack.sql("SELECT coalesce(string_agg(what || ' ' || ref || ': kept ' || kept || ' counted ' || counted, '; '), 'none') FROM check_counters()")
    tap.ok(wrong == "none", "all that is kept as a sum is right", wrong)
    stack.check_wire(tap)
    stack.check_invoice(tap)
sys.exit(tap.done())
