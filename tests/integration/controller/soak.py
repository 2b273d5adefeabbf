#!/usr/bin/env python3
"""Thirty days in half an hour. Aim: memory, descriptors and threads of a droverd that leads on and on, and the rows of every table, stay
flat or are bounded by the retention that orchestrator/store/README.md writes down. Method: real processes and real jobs at 50 times the
usual pace, ended campaigns, failures, retries, metrics, webhooks, sessions and viewers every round; then the wall clock of droverd,
PostgreSQL and drover-local goes on by a day and droverd takes the lead again, which also starts its hourly work. The days behind the
longest retention (14 days) are compared with each other. Measured: 5,670 jobs, 360 campaigns, 23,820 answers; from day 16 to 29 37.0 to
37.3 MB, 71 or 72 descriptors, 17 threads, 23,850 to 23,918 events; the database 29 to 34 MB, by what stays for good.   soak.py [SECONDS] [ROUNDS] [DAYS]   (A_DAY=1 soak.py 1 10: a small one)
"""
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, postgres, wait_for, wait_moving
from kit.clocks import Clock, new_folder
from kit.stack import Stack

SECONDS, ROUNDS, DAYS = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 1800), (2, 30), (3, 30)))
DAY, RETENTION, ARCHIVE_AFTER = 86400, 14, 2  # days
SLOTS, PARTS = 6, 20
A_DAY = int(os.environ.get("A_DAY", "3"))  # times the campaigns of a round: some 200 jobs, one in 0.3 s; usual is one in 15 s
# Rows that stay for good, as orchestrator/store/README.md says: at most so many for each campaign and each attempt.
FOR_GOOD = {"campaign": (1, 0), "campaign_run": (1, 0), "stage": (2, 0), "stage_input": (2, 0), "stage_run": (2, 0), "operation": (3, 0), "audit": (6, 0), "ledger": (0, 4), "archive": (1, 0),
            "archive_cost": (4, 0), "archive_stage": (2, 0), "archived_job": (0, 1), "cap": (3, 0), "money": (3, 0), "input_listing": (1, 0), "notice_watch": (1, 0)}
FORGOTTEN = ("notice", "webhook_delivery")  # 14 days old ones, every ten minutes that really pass: a third of the whole here
tap = Tap()
GOOD = """version: 1
name: good-{n}
stages:
  - name: nap
    image: user/nap
    fan_out: {{count: {parts}}}
    instance_type: ml.c5.xlarge
    max_runtime: 60m
    output: "s3://drover-test/out-{n}/{{part}}/"
    verify: none
    canary: off
    breaker: off
    warm_pool: {{keep_alive: 1m}}
    metrics: [{{name: loss, regex: 'loss=([0-9.]+)'}}]
"""
BAD = """version: 1
name: bad-{n}
budget: 50 USD
retry: [{{cause: [user_code, unknown], wait: 1s..1s, times: 2}}]
stages:
  - name: first
    image: user/fails
    fan_out: {{from: api}}
    instance_type: ml.c5.xlarge
    max_runtime: 60m
    verify: none
    canary: off
    breaker: off
    allow_failed: 100%
  - {{name: second, needs: first, image: user/nap, fan_out: {{count: 2}}, instance_type: ml.c5.xlarge, max_runtime: 60m, verify: none, canary: off}}
"""


class Sink(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


class Soak(Stack):
    """One clock for PostgreSQL, drover-local and droverd."""

    def __init__(self):
        self.folder = new_folder()
        self.clock, self.ahead = Clock(self.folder, "all"), 0
        self.sink = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
        self.sink.daemon_threads = True
        threading.Thread(target=self.sink.serve_forever, daemon=True).start()
        port = self.sink.server_address[1]
        super().__init__("soak", parts=1, rows=1, quotas={"ml.c5.xlarge": SLOTS}, lease_us=10000000, disk=True,
                         images={"user/nap": ["/bin/sh", "-c", "echo loss=0.5; sleep 0.3"], "user/fails": ["/bin/sh", "-c", "sleep 0.2; echo it failed >&2; exit 3"]},
                         local={"rates": {}, "cold_start_seconds": 0.1, "warm_quotas": {"ml.c5.xlarge": 2}},
                         env={"DROVER_ARCHIVE_AFTER_DAYS": str(ARCHIVE_AFTER), "DROVER_WEBHOOK_ALLOW_NET": f"127.0.0.1/32:{port}", "DROVER_NOTICE_COLLECT_US": "500000",
                              "DROVER_QUOTA_INTERVAL_US": "60000000", "DROVER_CREATE_RATE_PER_MINUTE": "0", "http_proxy": ""})
        self.hook = f"http://127.0.0.1:{port}/"

    def start_pg(self, options=""):
        self.clock.around(lambda: Stack.start_pg(self, options))

    def start_local(self):
        self.clock.around(lambda: Stack.start_local(self))

    def start_droverd(self, *a, **kw):
        return self.clock.around(lambda: Stack.start_droverd(self, *a, **kw))

    def close(self):
        super().close()
        self.sink.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)


def process(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        of = dict(line.split(":", 1) for line in f)
    return {"rss_kb": int(of["VmRSS"].split()[0]), "threads": int(of["Threads"]), "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}


def rows(s):
    """{table: rows}, partitions counted under their table."""
    names = s.sql("SELECT string_agg(c.relname, ' ' ORDER BY 1) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
                  "WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname = 'public'").split()
    counts = s.sql("SELECT concat_ws(' ', " + ", ".join(f"(SELECT count(*) FROM {n})" for n in names) + ")").split()
    return dict(zip(names, map(int, counts)))


def sample(s):
    return {**process(s.procs["droverd0"].pid), "rows": rows(s), "database_kb": int(s.sql("SELECT pg_database_size(current_database())")) // 1024,
            "relations": int(s.sql("SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p')"))}


class Viewers:
    """Somebody looks: streams that come and go, sessions, pages, dear answers."""

    def __init__(self, s):
        self.s, self.stop, self.asked, self.cid = s, threading.Event(), 0, None
        self.threads = [threading.Thread(target=self.look), threading.Thread(target=self.listen)]
        for t in self.threads:
            t.start()

    def look(self):
        s = self.s
        while not self.stop.wait(1):
            c = self.cid
            paths = ["/v1/campaigns", "/v1/billable", "/metrics", "/readyz", "/", "/v1/audit"] + [f"/v1/campaigns/{c}{p}" for p in ("", "/parts", "/tiles", "/failures", "/cost?by=phase", "/forecast",
                                                                                                                          "/timeline", "/metrics", "/parts/0/why") if c]
            try:
                for p in paths:
                    s.raw("GET", p)
                    self.asked += 1
                if self.asked % 20 < len(paths):
                    s.raw("POST", "/v1/login", json.dumps({"token": open(s.token_file, encoding="ascii").read().strip()}).encode(), {"Content-Type": "application/json"})
            except OSError:
                pass

    def listen(self):
        s = self.s
        while not self.stop.wait(0.5):
            req = urllib.request.Request(f"http://127.0.0.1:{s.ports['droverd0']}/v1/events", headers={"Authorization": "Bearer " + open(s.token_file, encoding="ascii").read().strip()})
            try:
                with urllib.request.urlopen(req, timeout=5) as r:
                    for _ in range(20):
                        r.readline()
            except OSError:
                pass

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join()


def pools_end(s):
    for p in s.api("GET", "/pools?limit=50")["pools"]:
        if p["state"] == "available":
            s.raw("POST", f"/v1/pools/{p['job']}:end")
    return not s.live_jobs() and s.sql("SELECT count(*) FROM pool WHERE ended_at IS NULL") == "0"


def one_round(s, n, viewers):
    """Campaigns from their submission to their end."""
    good = [s.submit(GOOD.format(n=f"{n}-{i}", parts=PARTS)) for i in range(2)]
    viewers.cid = good[0]
    bad = s.submit(BAD.format(n=n))
    s.api("POST", f"/campaigns/{bad}/parts?last=true&stage=first", "".join('{"uri":"s3://x/%d"}\n' % i for i in range(6)), {"Content-Type": "application/x-ndjson"})
    cancelled = s.submit(GOOD.format(n=f"{n}-cancelled", parts=PARTS))
    s.api("PATCH", f"/campaigns/{cancelled}", {"priority": 1}, {"If-Match": "*"})
    s.api("POST", f"/campaigns/{cancelled}:pause", {})
    ids = good + [bad]
    wait_moving(lambda: all(s.ended(c) for c in ids), lambda: (s.oracle("invoice")["total"]["seconds"], len(s.live_jobs())), f"the end of round {n}", seconds=180, step=0.5)
    op = s.api("POST", f"/campaigns/{bad}:retry", {"selector": {"stage": "first", "state": "failed", "parts": [0]}})
    wait_moving(lambda: s.api("GET", f"/operations/{op['id']}")["state"] == "done" and s.ended(bad), lambda: len(s.live_jobs()), "a retry", seconds=120, step=0.5)
    s.api("POST", f"/campaigns/{cancelled}:cancel")
    wait_for(lambda: s.ended(cancelled), 60, "a cancelled campaign")
    wait_for(lambda: pools_end(s), 200, "the end of the pools", step=1)


def next_day(s, seconds):
    """The clock goes on, and droverd leads anew: its hourly work begins."""
    s.ahead += seconds
    s.clock.set(s.ahead)
    before = int(s.sql("SELECT epoch FROM lease"))
    os.kill(int(s.sql("SELECT backend_pid FROM lease")), signal.SIGTERM)
    wait_for(lambda: int(s.sql("SELECT epoch FROM lease")) > before and s.leader() == 0, 60, "the lead taken again")
    due = f"SELECT count(*) FROM campaign_run r WHERE r.ended_at < clock_timestamp() - interval '{ARCHIVE_AFTER} days' AND NOT EXISTS (SELECT FROM archive h WHERE h.campaign_id = r.campaign_id AND h.archived_at IS NOT NULL)"
    wait_moving(lambda: s.sql(due) == "0", lambda: s.sql("SELECT coalesce(sum(attempts), 0) + count(*) FROM archive"), "the archives of the day", seconds=120, step=0.5)


def flat(values, slack, share):
    """The second half is hardly above the first one."""
    half = len(values) // 2
    return max(values[half:]) <= max(values[:half]) * (1 + share) + slack


def judge(s, days):
    late = [d for d in days if d["day"] > RETENTION + 1]
    for what, slack, share in (("rss_kb", 2000, 0.05), ("threads", 1, 0), ("descriptors", 6, 0), ("relations", 3, 0)):
        values = [d[what] for d in late]
        tap.ok(len(values) >= 4 and flat(values, slack, share), f"{what} flat from day {late[0]['day']} to {late[-1]['day']}: {values[0]} .. {values[-1]}, at most {max(values)}", values)
    campaigns, attempts = late[-1]["rows"]["campaign"], int(s.sql("SELECT (SELECT coalesce(sum(attempts), 0) FROM archive) + (SELECT count(*) FROM attempt)"))
    for table, last in sorted(late[-1]["rows"].items()):
        values = [d["rows"][table] for d in late]
        if table in FOR_GOOD:
            most = FOR_GOOD[table][0] * campaigns + FOR_GOOD[table][1] * attempts + 10
            tap.ok(last <= most, f"{table}: {last} rows for {campaigns} campaigns and {attempts} attempts, for good ({most} at most)")
        elif table in FORGOTTEN:
            ever = int(s.sql(f"SELECT coalesce(max(id), 0) FROM {table}"))
            tap.ok(SECONDS < 1500 or last <= ever * 0.9, f"{table}: {last} rows are left of {ever}", values)
        else:
            tap.ok(flat(values, 10, 0.25), f"{table}: {values[0]} .. {values[-1]} rows, flat", values)
    kept = [d["database_kb"] for d in late]
    print(f"# database {kept[0] >> 10} .. {kept[-1] >> 10} MB", flush=True)


def main():
    with Soak() as s:
        s.start_pg("-c autovacuum_naptime=5s")
        s.start_local()
        s.start_droverd()
        wait_for(lambda: s.leader() == 0, 60, "a leader")
        s.api("POST", "/webhooks", {"name": "sink", "url": s.hook})
        viewers, days, began = Viewers(s), [], time.monotonic()
        try:
            for n in range(ROUNDS):
                for k in range(A_DAY):
                    one_round(s, f"{n}-{k}", viewers)
                days.append({"day": n * DAYS // ROUNDS, **sample(s)})
                d = days[-1]
                print(f"# day {d['day']}: {d['rss_kb']} kB, {d['threads']} threads, {d['descriptors']} descriptors, {d['database_kb'] >> 10} MB, {d['rows']['attempt']} attempts, "
                      f"{d['rows']['event']} events, {d['rows']['ledger']} ledger lines, {int(time.monotonic() - began)} s", flush=True)
                next_day(s, DAY * DAYS // ROUNDS)
                time.sleep(max(0, (n + 1) * SECONDS / ROUNDS - (time.monotonic() - began)))
        finally:
            viewers.end()
        judge(s, days)
        tap.ok(viewers.asked > 10 * ROUNDS, f"{viewers.asked} answers to viewers")
        tap.eq(s.sql("SELECT count(*) FROM check_counters()"), "0", "all sums are right")
        s.check_invoice(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
