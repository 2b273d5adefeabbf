#!/usr/bin/python3
"""A failover that loses commits. Aim: whatever the promoted replica has forgotten, intents, ends, whole campaigns, every part is done once,
every job is adopted or held, and the ledger equals the invoice. Method: two real clusters, the second a streaming replica that hears the
first through a proxy; that swallows the WAL for a while, the first is stopped as by a power cut, the second promoted, and droverd, which
names both hosts, goes on by itself or is started anew.   (SEED=n repeats the moments; failover.py ROUNDS)"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kit import Tap, postgres, wait_for, wait_moving
from kit.proxy import Proxy
from kit.stack import Stack, rng_from_args

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
rng = rng_from_args()
tap = Tap()
PARTS = 10


class Pair(Stack):
    """sock: the cluster that writes; other: its replica's folder, or an empty one."""

    def __init__(self):
        super().__init__("failover", parts=PARTS, rows=8, quotas={"ml.c5.xlarge": 3}, local={"warm_quotas": {"ml.c5.xlarge": 2}})
        self.folders = [self.sock, postgres.new_folder("drover-replica-")]
        self.other, self.wal, self.heard = self.folders[1], None, 0
        self.ears = postgres.new_folder("drover-wal-")
        os.chmod(self.ears, 0o755)
        if os.getuid() == 0:
            postgres.own_folder(self.other)

    def replicate(self):
        """A new replica of what writes now, which has caught up."""
        path = self.ears + "/.s.PGSQL.5432"
        if os.path.exists(path):
            os.unlink(path)
        self.wal = Proxy(self.sock + "/.s.PGSQL.5432", self.ears)
        postgres.shutil.rmtree(self.other + "/data", ignore_errors=True)
        postgres.run("pg_basebackup", "-h", self.sock, "-U", "drover", "-D", self.other + "/data", "-X", "stream", "-c", "fast")
        with open(self.other + "/data/postgresql.auto.conf", "a", encoding="ascii") as f:
            f.write(f"primary_conninfo = 'host={self.ears} user=drover'\n")
        with open(self.other + "/data/standby.signal", "w", encoding="ascii"):
            pass
        postgres.start(self.other, "-c max_connections=200 -c hot_standby=on")
        self.caught_up()

    def caught_up(self):
        wait_for(lambda: self.sql("SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()") == "1", 30, "the replica")

    def fail_over(self, seconds):
        """What is committed within these seconds is lost. Returns how many attempts and campaigns there were, and are."""
        self.caught_up()
        self.wal.down = True
        self.heard = int(self.sql("SELECT coalesce(max(id), 0) FROM attempt"))  # at most: what comes later is lost
        yield
        time.sleep(seconds)
        before = self.sql("SELECT (SELECT count(*) FROM campaign) || ' ' || (SELECT count(*) FROM attempt) || ' ' || (SELECT count(*) FROM attempt WHERE ended_at IS NOT NULL)")
        postgres.stop(self.sock, "immediate")
        self.wal.close()
        self.sock, self.other = self.other, self.sock
        postgres.run("pg_ctl", "-D", self.sock + "/data", "-w", "promote")
        after = self.sql("SELECT (SELECT count(*) FROM campaign) || ' ' || (SELECT count(*) FROM attempt) || ' ' || (SELECT count(*) FROM attempt WHERE ended_at IS NOT NULL)")
        print(f"# campaigns, attempts, ended ones: {before} before, {after} after", flush=True)
        yield [int(n) for n in before.split()], [int(n) for n in after.split()]

    def close(self):
        super().close()
        postgres.stop(self.other, "immediate")
        for folder in (*self.folders, self.ears):
            postgres.shutil.rmtree(folder, ignore_errors=True)


def ends(s, cid, what):
    try:
        wait_moving(lambda: s.ended(cid), lambda: s.sql("SELECT count(*), sum(state), count(ended_at) FROM attempt"), f"the end of {cid}")
    except TimeoutError as e:
        tap.ok(False, f"{what}: {e}", (s.api("GET", f"/campaigns/{cid}"), s.api("GET", "/strays")))
        return
    c = s.api("GET", f"/campaigns/{cid}")
    tap.ok(c["state"] == "succeeded" and c["parts"]["done"] == PARTS, f"{what}: all parts are done", c)


def failover(s, n):
    last, dies = n == rounds - 1, n % 2 == 1
    what = f"{n + 1}, droverd {'is started anew' if dies else 'goes on'}"
    s.replicate()
    cid = s.submit(name=f"main-{n}")
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["parts"]["done"] >= n % 3, 60, "some parts")
    cut = s.fail_over(rng.uniform(0.5, 3))
    next(cut)
    wait_for(lambda: s.sql(f"SELECT count(*) FROM attempt WHERE id > {s.heard} AND state NOT IN (0, 1)") != "0", 60, "a job whose intent will be lost")
    lost = None
    if last:
        lost = s.submit(name="lost", top="limits: {priority: 90}")
        wait_for(lambda: [j for j in s.oracle("jobs")["jobs"] if j["name"].startswith(f"t-{lost[2:]}-")], 60, "a job of the campaign that will be lost")
    if dies:
        s.kill("droverd0")
    before, after = next(cut)
    tap.ok(after < before, f"{what}: commits are lost")
    if dies:
        s.start_droverd(0)
    wait_for(lambda: s.leader() == 0, 60, "a leader")
    tap.ok(s.procs["droverd0"].poll() is None, f"{what}: it leads on the promoted replica")
    ends(s, cid, what)
    return lost


with Pair() as stack:
    stack.start_pg()
    stack.start_local()
    hosts = ",".join(stack.folders)
    stack.extra_env["DROVER_DATABASE_URL"] = f"host={hosts} user=drover dbname=postgres target_session_attrs=read-write"
    stack.start_droverd(0)
    wait_for(lambda: stack.leader() == 0, 30, "a leader")
    for i in range(rounds):
        gone = failover(stack, i)
    for stray in [x for x in stack.api("GET", "/strays")["strays"] if x["running"]]:
        stack.api("POST", f"/strays/{stray['job_name']}:stop", {})
    wait_for(lambda: not stack.live_jobs() and stack.api("GET", "/strays")["sum"]["running"] == 0, 60, "no live job and no open stray")
    mine = {j["name"] for j in stack.oracle("jobs")["jobs"] if j["name"].startswith(f"t-{gone[2:]}-")}
    held = {x["job_name"] for x in stack.api("GET", "/strays")["strays"] if x["why"] == "lost"}
    tap.ok(mine and mine <= held, f"the {len(mine)} jobs of the lost campaign are held and booked", (mine, held))
    wait_for(lambda: stack.sql("SELECT count(*) FROM pool WHERE ended_at IS NULL") == "0", 90, "the end of the warm pools", step=0.3)
    wrong = stack.sql("SELECT coalesce(string_agg(what || ' ' || ref || ': kept ' || kept || ' counted ' || counted, '; '), 'none') FROM check_counters()")
    tap.ok(wrong == "none", "all that is kept as a sum is right", wrong)
    stack.check_wire(tap, quota_faults=True)
    stack.check_invoice(tap)
sys.exit(tap.done())
