#!/usr/bin/env python3
"""A million parts, each retried once. Aim: a leader takes them over in seconds, and every answer of the API about them costs little once
one viewer has asked; dear ones leave threads to all others. Method: the parts are posted, their attempts and 200,000 failures of 1,000
signatures are written by SQL while no droverd runs; CPU times and ratios are judged, the milliseconds printed.   (PARTS=20000: a small one)
"""
import json
import os
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, patience, postgres, wait_for, wait_moving
from kit.stack import Stack

PARTS = int(os.environ.get("PARTS", "1000000"))
FAILED, SIGNATURES = PARTS // 5, 1000
ASKED = 100      # times each path is asked
VIEWERS = 16
LEAD_CPU_S = 5
tap = Tap()
SPEC = """version: 1
name: million
stages:
  - name: work
    image: bench/none:1
    verify: none
    fan_out: {from: api}
    instance_type: ml.c5.xlarge
    max_runtime: 1h
"""
# The attempts that ended as failed and what they left; 9: failed, 7: disk_full, 12: user_code, 4: a failed task.
ENDED = """
INSERT INTO attempt (campaign_id, stage_id, task_id, n, state, cause, epoch, name, request_sha256, identity_hash, instance_type, instances,
    max_runtime_s, price_musd_per_hour, reserved_musd, cost_musd, billable_s, holds, settled, intended_at, started_at, ended_at, reason)
SELECT r.campaign_id, r.stage_id, r.id, n, 9, CASE n WHEN 1 THEN 7 ELSE 12 END, 1, 't-' || r.id || '-a' || n, sha256(''), repeat('a', 64), 'ml.c5.xlarge', 1,
    3600, 204000, 0, 1000, 20, false, true, now() - interval '3 min', now() - interval '2 min', now() - interval '1 min', 'it failed'
FROM task_run r CROSS JOIN LATERAL generate_series(1, CASE WHEN r.seq < {failed} THEN 2 ELSE 1 END) n;
INSERT INTO task_change (task_id, campaign_id, volume_gb, cause_tries) SELECT id, campaign_id, 60, '{{"disk_full": 1}}' FROM task_run;
INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, cause, final, signature, message, lost_musd, at)
SELECT id, campaign_id, stage_id, seq, 12, true, 'exit ' || seq % {signatures} || ' of step *', 'exit ' || seq % {signatures} || ' of step ' || seq, 2000,
    now() - seq * interval '1 ms' FROM task_run WHERE seq < {failed};
UPDATE task_run SET attempts = CASE WHEN seq < {failed} THEN 2 ELSE 1 END, names = CASE WHEN seq < {failed} THEN 2 ELSE 1 END,
    state = CASE WHEN seq < {failed} THEN 4 ELSE 0 END, cause = CASE WHEN seq < {failed} THEN 12 ELSE 7 END;
UPDATE stage_run SET waiting = waiting - {failed}, failed = {failed};
UPDATE money SET spent_musd = 1000 * ({parts}::bigint + {failed}), seconds = 20 * ({parts}::bigint + {failed});
VACUUM (ANALYZE);
CHECKPOINT;
"""


def psql(s, text):
    subprocess.run([postgres.BIN_DIR + "/psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", s.sock, "-U", "drover", "-d", "postgres"], input=text, text=True, check=True,
                   stdout=subprocess.DEVNULL)


def metric(s, name):
    return next((int(line.split()[1]) for line in s.raw("GET", "/metrics")[1].decode().splitlines() if line.startswith(name + " ")), -1)


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def holds(s, n):
    """The leader has so many waiting parts in memory."""
    wait_moving(lambda: metric(s, "droverd_parts_waiting") == n, lambda: cpu_s(s.procs["droverd0"].pid), f"{n} waiting parts")


def ms(s, path, method="GET"):
    """How long an answer takes. The API gives up after seconds, and says so; a busy machine is then asked again."""
    for _ in range(int(patience(5))):
        began = time.monotonic()
        status, text, _ = s.raw(method, path, timeout=60)
        took = (time.monotonic() - began) * 1000
        if status != 504:
            break
        print(f"# {path}: not answered in {took:.0f} ms", flush=True)
    if status // 100 != 2:
        raise RuntimeError(f"{path}: {status} {text[:300]}")
    return took


def post(s):
    cid = s.submit(SPEC)
    lines = "".join('{"uri":"s3://d/x/%d","size":%d}\n' % (i, 100000000 + i % 997 * 1000000) for i in range(PARTS)).encode()
    status, text, _ = s.raw("POST", f"/v1/campaigns/{cid}/parts?last=true", lines, {"Content-Type": "application/x-ndjson", "Idempotency-Key": "parts"}, timeout=300)
    tap.ok(status == 201, f"{PARTS} parts are posted", text[:300])
    holds(s, PARTS)
    return cid


def takeover(s):
    began = time.monotonic()
    pid = s.start_droverd().pid
    holds(s, PARTS - FAILED)
    took, cpu = time.monotonic() - began, cpu_s(pid)
    tap.ok(cpu <= LEAD_CPU_S, f"a leader took over {PARTS} parts, each retried once, in {cpu:.1f} s of CPU and {took:.1f} s (<= {LEAD_CPU_S} s of CPU)")


def answers(s, cid):
    c = f"/v1/campaigns/{cid}"
    waiting = PARTS - 1
    kept = {"tiles", "failures", "cost", "cost by phase"}
    paths = {"campaign": c, "campaigns": "/v1/campaigns", "parts": c + "/parts?page_size=100", "failed parts": c + "/parts?state=failed&page_size=100",
             "one part": f"/v1/parts/{cid}/{waiting}", "tiles": c + "/tiles", "failures": c + "/failures", "cost": c + "/cost", "cost by phase": c + "/cost?by=phase",
             "forecast": c + "/forecast", "why": f"{c}/parts/{waiting}/why", "session": "/v1/session"}
    dear = {}
    for what, path in paths.items():
        first = ms(s, path)
        each = sorted(ms(s, path) for _ in range(ASKED))
        dear[what] = first
        print(f"# {what}: first {first:.0f} ms, then p50 {each[ASKED // 2]:.1f} ms, p99 {each[ASKED * 99 // 100 - 1]:.1f} ms", flush=True)
        if what in kept:
            tap.ok(sum(each) < ASKED / 4 * first + ASKED * 10, f"{what}: {ASKED} more cost less than {ASKED // 4} times the first", (first, sum(each)))
    f = json.loads(s.raw("GET", c + "/failures")[1])
    tap.ok(f["parts"] == FAILED and f["final"] == FAILED and len(f["groups"]) == min(200, SIGNATURES, FAILED), "failures are those that were written", (f["parts"], len(f["groups"])))


def crowd(s, cid):
    """Viewers who ask why different parts wait, again and again, and what others hear meanwhile."""
    slow, stop = [], threading.Event()

    def ask(i):
        n = i
        while not stop.is_set():
            slow.append(ms(s, f"/v1/campaigns/{cid}/parts/{PARTS - 2 - n}/why"))
            n += VIEWERS

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(VIEWERS)]
    for t in threads:
        t.start()
    wait_for(lambda: len(slow) > 0, 120, "the first why")
    quick = sorted(ms(s, "/v1/session") for _ in range(ASKED))
    cancel = ms(s, f"/v1/campaigns/{cid}:cancel", "POST")
    stop.set()
    for t in threads:
        t.join()
    middle, why = statistics.median(quick), statistics.median(slow)
    print(f"# beside {VIEWERS} viewers of why (p50 {why:.0f} ms): session p50 {middle:.1f} ms, p99 {quick[ASKED * 99 // 100 - 1]:.1f} ms; :cancel {cancel:.0f} ms")
    tap.ok(middle * 4 < why, f"{VIEWERS} viewers of the dearest answer hold up nobody else", (middle, why))


def main():
    with Stack("retried-million", quotas={"ml.c5.xlarge": 0}, parts=1, rows=1, lease_us=10000000, disk=True,
               env={"DROVER_TICK_INTERVAL_US": "1000000", "DROVER_OBSERVE_INTERVAL_US": "10000000", "DROVER_QUOTA_INTERVAL_US": "300000000"}) as s:
        s.start_pg("-c shared_buffers=256MB -c max_wal_size=4GB -c checkpoint_timeout=15min")
        s.start_local()
        s.start_droverd()
        cid = post(s)
        s.kill("droverd0")
        psql(s, ENDED.format(parts=PARTS, failed=FAILED, signatures=SIGNATURES))
        takeover(s)
        answers(s, cid)
        crowd(s, cid)
    tap.done()


if __name__ == "__main__":
    main()
