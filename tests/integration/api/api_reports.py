#!/usr/bin/env python3
"""Aim: curves of money and time, attempts by slot and the bill of a month are those of an independent computation, bounded
in their points, and nobody sees another project's money. Method: attempts and ledger lines by SQL at times of a fixed
seed; sums by Python.
"""
import bisect
import os
import random
import sys
import time
from datetime import datetime, timedelta, timezone

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from kit import wait_for
from kit.api import Api, leader_takes, main, spec

BEGAN = datetime(2026, 10, 31, 22, 0, tzinfo=timezone.utc)
TYPES = ("ml.c5.xlarge", "ml.m5.large")


def when(seconds):
    return BEGAN + timedelta(seconds=seconds)


def parse(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def insert_attempts(a, campaign, rows):
    """rows: (seq, n, state, cause, type, intended, started, ended, cost, seconds, idle, manifest); times in seconds since BEGAN, None: not yet."""
    def sql(v):
        return "NULL" if v is None else f"'{v.isoformat()}'" if isinstance(v, datetime) else repr(v)

    def at(v):
        return sql(None if v is None else when(v))
    values = ",".join(f"({r[0]},{r[1]},{r[2]},{r[3]},'{r[4]}',{at(r[5])}::timestamptz,{at(r[6])}::timestamptz,{at(r[7])}::timestamptz,{r[8]},{r[9]},{r[10]},{sql(r[11])}::jsonb)" for r in rows)
    a.sql(f"""INSERT INTO attempt (campaign_id, stage_id, task_id, n, state, cause, epoch, name, request_sha256, identity_hash, instance_type, instances,
            max_runtime_s, price_musd_per_hour, reserved_musd, cost_musd, billable_s, warm_musd, holds, settled, intended_at, started_at, ended_at, manifest)
        SELECT t.campaign_id, t.stage_id, t.id, v.n, v.state, v.cause, 1, 'd-' || t.campaign_id || '-' || t.seq || '-a' || v.n, decode(repeat('00', 32), 'hex'),
            repeat('0', 64), v.type, 1, 3600, 204000, 0, v.cost, v.seconds, v.idle, v.ended IS NULL, v.ended IS NOT NULL, v.intended, v.started, v.ended, v.manifest
        FROM (VALUES {values}) v (seq, n, state, cause, type, intended, started, ended, cost, seconds, idle, manifest)
        JOIN task_run t ON t.campaign_id = {campaign} AND t.seq = v.seq ORDER BY v.intended""")


def make_attempts(rng, parts):
    rows = []
    for seq in range(parts):
        n = 0
        while True:
            n += 1
            failed = rng.random() < 0.2 and n < 4
            begin = rng.uniform(0, 20000) + n * 5000
            end = begin + rng.uniform(1, 900)
            live = seq % 37 == 5 and not failed
            rows.append((seq, n, 4 if live else 9 if failed else 8, 7 if failed else 0, TYPES[seq % 3 == 0], round(begin, 3), round(begin + 0.5, 3),
                         None if live else round(end, 3), 0 if live else rng.randrange(1, 10**6), 0 if live else round(end - begin), rng.randrange(100),
                         None if failed or live else '{"rows_in": 100, "successes": %d}' % (100 - seq % 60)))
            if not failed:
                break
    return rows


def check_timeline(t, a, rows):
    void = (0, 90, 12, 0, TYPES[0], 1.0, None, 2.0, 0, 0, 0, None)
    insert_attempts(a, 1, [*rows, void])
    b = a.get("/v1/campaigns/c-1/timeline")[1]
    first = min(r[5] for r in rows)
    t.eq(b["from_at"], when(first).isoformat(timespec="microseconds").replace("+00:00", "Z"), "the time axis begins with the first intent")
    want = sorted((r[0], r[1], r[2], r[3], round((r[5] - first) * 1000), round((r[6] - first) * 1000), -1 if r[7] is None else round((r[7] - first) * 1000)) for r in rows)
    got = sorted((p, n, {"running": 4, "succeeded": 8, "failed": 9}[b["states"][s]], {"none": 0, "disk_full": 7}[b["causes"][c]], x, y, z) for _, p, n, s, c, x, y, z, _ in b["attempts"])
    t.ok(len(got) == len(want) and all(g[:4] == w[:4] and all(abs(i - j) <= 1 for i, j in zip(g[4:], w[4:])) for g, w in zip(got, want)),
         f"{len(want)} attempts with their states and times, void ones left out", [(g, w) for g, w in zip(got, want) if g[:4] != w[:4]][:3])
    types = [s["instance_type"] for s in b["slots"] for _ in range(s["slots"])]
    of = {(r[0], r[1]): r[4] for r in rows}
    by_slot = {}
    for slot, p, n, _, _, begin, _, end, _ in b["attempts"]:
        by_slot.setdefault(slot, []).append((begin, end if end >= 0 else 10**15, of[p, n]))
    over = [x for s in by_slot.values() for x, y in zip(sorted(s), sorted(s)[1:]) if x[1] > y[0] + 1]
    t.ok(not over and all(x[2] == types[slot] for slot, s in by_slot.items() for x in s), "a slot has one attempt at a time, all of its instance type", over[:3])
    most = {}
    for kind in TYPES:
        edges = sorted([(r[5], 1) for r in rows if r[4] == kind] + [(r[7], -1) for r in rows if r[4] == kind and r[7] is not None], key=lambda e: (e[0], e[1]))
        now = 0
        for _, d in edges:
            now += d
            most[kind] = max(most.get(kind, 0), now)
    t.eq({s["instance_type"]: s["slots"] for s in b["slots"]}, most, "as many slots as ran at once, no more")
    few = a.get("/v1/campaigns/c-1/timeline?limit=7")[1]
    t.eq((len(few["attempts"]), few["more"], b["more"]), (7, True, False), "at most as many as asked for, and it says when there may be more")
    for q in ("limit=0", "limit=10001", "limit=x"):
        t.eq(a.get(f"/v1/campaigns/c-1/timeline?{q}")[0], 400, f"?{q} is refused")
    # A job that goes on changes no counter: nothing but its own row tells it. The first answer is of these counters, too.
    a.sql("UPDATE stage_run SET waiting = waiting - 1, active = active + 1 WHERE campaign_id = 1")
    states = b["states"]

    def shown(state):
        return any(x[3] == states.index(state) for x in a.get("/v1/campaigns/c-1/timeline")[1]["attempts"])
    for n, state in ((3, "starting"), (5, "uploading")):
        a.sql(f"UPDATE attempt SET state = {n} WHERE campaign_id = 1 AND state IN (3, 4)")
        t.ok(wait_for(lambda: shown(state), 30), f"a job that is {state} is seen within seconds")  # noqa: B023
    a.sql("UPDATE attempt SET state = 4 WHERE campaign_id = 1 AND state = 5; UPDATE stage_run SET waiting = waiting + 1, active = active - 1 WHERE campaign_id = 1")


def check_throughput(t, a, rows):
    b = a.get("/v1/campaigns/c-1/throughput")[1]["spans"]
    done, failed = ([int(when(r[7]).timestamp()) for r in rows if r[2] == s] for s in (8, 9))
    t.eq((sum(s["done"] for s in b), sum(s["failed"] for s in b)), (len(done), len(failed)), "every end is in one span")
    wrong = [s for s in b if s["done"] != sum(0 <= x - parse(s["at"]).timestamp() < s["seconds"] for x in done) or abs(s["parts_per_hour"] - s["done"] * 3600 / s["seconds"]) > 0.001]
    t.ok(len(b) in range(50, 101) and not wrong and all(parse(x["at"]).timestamp() + x["seconds"] == parse(y["at"]).timestamp() for x, y in zip(b, b[1:])),
         f"{len(b)} spans side by side, each with its parts and its rate", wrong[:2])


def check_yield(t, a, rows):
    b = a.get("/v1/campaigns/c-1/yield")[1]
    kept = {r[0]: 100 - r[0] % 60 for r in rows if r[11]}
    wrong = [p for p in b["points"] if p["successes"] != sum(kept.get(i, 0) for i in range(p["first"], p["last"] + 1)) or p["ratio"] != round(p["successes"] / p["rows"], 6)]
    t.ok(b["every"] == 1 and len(b["points"]) <= 200 and not wrong and sum(p["parts"] for p in b["points"]) == len(kept), "the share of rows that were kept, by ranges of parts", wrong[:2])
    low = sorted((v, k) for k, v in kept.items())[:10]
    t.eq([(p["successes"], p["part"]) for p in b["lowest"]], low, "and the ten lowest parts")
    odd = ('{"rows_in": "x", "successes": 1}', '{"rows_in": 0, "successes": 0}', '{"rows_in": 5, "successes": 6}', '{"rows_in": 1e300, "successes": 1}', '[1]', '{}')
    insert_attempts(a, 2, [(i, 1, 8, 0, TYPES[0], 1.0, 1.0, 2.0, 0, 0, 0, m) for i, m in enumerate(odd)])
    t.eq(a.get("/v1/campaigns/c-2/yield")[1], {"stage": "download", "every": 1, "points": [], "lowest": []}, "manifests that say nothing of rows are passed over")


def ledger(a, rows):
    """rows: (campaign, at, entry, amount, seconds)."""
    accounts = {"reserve": ("budget", "reserved"), "settle": ("reserved", "spent"), "release": ("reserved", "budget"), "warm": ("reserved", "spent"),
                "correct": ("spent", "budget")}
    values = ",".join(f"({c}, '{at.isoformat()}'::timestamptz, '{e}', '{accounts[e][0]}', '{accounts[e][1]}', {n}, {s})" for c, at, e, n, s in rows)
    a.sql(f"""DROP INDEX IF EXISTS ledger_once;
        INSERT INTO ledger (campaign_id, stage_id, task_id, attempt_id, at, entry, from_account, to_account, amount_musd, seconds)
        SELECT c, 0, 0, (SELECT min(id) FROM attempt), at, entry, f, t, n, s FROM (VALUES {values}) v (c, at, entry, f, t, n, s)""")


def spends(entry, n):
    """What a line adds to what is spent; a correction takes it off."""
    return {"settle": n, "warm": n, "correct": -n}.get(entry, 0)


def check_burn(t, a, rng):
    t.eq(a.get("/v1/campaigns/c-1/burn")[1], {"first_at": None, "points": []}, "before anything is reserved there is no curve")
    rows, at = [], 0.0
    for _ in range(1500):
        at += rng.expovariate(1 / 7)
        n = rng.randrange(1, 10**6)
        rows += [(1, when(at), "reserve", 2 * n, 0), (1, when(at + 0.1), "settle", n, 60), (1, when(at + 0.2), "release", n, 0)]
        if n % 5 == 0:
            rows.append((1, when(at + 0.3), "correct", n // 3, 20))
    rows.sort(key=lambda r: r[1])
    ledger(a, rows)
    a.sql("UPDATE stage_run SET waiting = waiting WHERE campaign_id = 1")
    until = time.monotonic() + 30
    while not (b := a.get("/v1/campaigns/c-1/burn")[1])["points"] and time.monotonic() < until:
        time.sleep(0.1)  # an answer is kept for two seconds
    times, spent, reserved = [], [0], [0]
    for _, when_, entry, n, _ in rows:
        times.append(when_.timestamp())
        spent.append(spent[-1] + spends(entry, n))
        reserved.append(reserved[-1] + {"reserve": n, "settle": -n, "release": -n}.get(entry, 0))
    wrong = []
    for p in b["points"]:
        x = parse(p["at"]).timestamp()
        i, j = bisect.bisect_left(times, x - 0.001), bisect.bisect_right(times, x + 0.001)
        if not any((spent[k], reserved[k]) == (p["spent_micro_usd"], p["reserved_micro_usd"]) for k in range(i, j + 1)):
            wrong.append(p)
    t.ok(300 <= len(b["points"]) <= 400 and not wrong and parse(b["first_at"]) == rows[0][1], f"{len(b['points'])} points of {len(rows)} lines, each exact", wrong[:2])
    t.eq((b["points"][-1]["spent_micro_usd"], b["points"][-1]["reserved_micro_usd"]), (spent[-1], 0), "the last one is what the ledger says")
    return rows


def check_bill(t, a, lines):
    other = a.post("/v1/tokens", {"name": "other", "role": "viewer", "projects": ["other"]})[1]["token"]
    lines = [*lines, (2, datetime(2026, 10, 31, 23, 59, 59, 999999, timezone.utc), "settle", 7, 1), (2, datetime(2026, 11, 1, tzinfo=timezone.utc), "warm", 11, 2),
             (2, datetime(2026, 11, 30, 23, 59, 59, tzinfo=timezone.utc), "settle", 140, 5), (2, datetime(2026, 11, 30, 23, 59, 59, tzinfo=timezone.utc), "correct", 40, 2), (2, datetime(2026, 12, 1, tzinfo=timezone.utc), "settle", 1000, 4), (0, when(0), "settle", 5, 1)]
    ledger(a, lines[-6:])
    a.sql(f"UPDATE campaign SET created_at = '{BEGAN.isoformat()}'")
    for month in ("2026-10", "2026-11", "2026-12", "2025-01"):
        b = a.get(f"/v1/bill?month={month}")[1]
        want = {c: sum(spends(e, n) for x, at, e, n, _ in lines if x == c and at.strftime("%Y-%m") == month) for c in (0, 1, 2)}
        got = {None: 0, "default": 0, "other": 0, **{p["name"]: p["micro_usd"] for p in b["groups"]}}
        t.ok(got == {None: want[0], "default": want[1], "other": want[2]} and b["micro_usd"] == sum(want.values()) and b["month"] == month, f"{month}: each line is in the month of UTC it was booked in", (got, want))
    b = a.get("/v1/bill?month=2026-11", token=other)[1]
    t.eq(([(p["name"], p["jobs_micro_usd"], p["idle_micro_usd"], p["hosting_micro_usd"], p["storage_micro_usd"], p["seconds"]) for p in b["groups"]], b["groups"][0]["campaigns"], b["tags"]),
         ([("other", 100, 11, 0, 0, 5)], [{"campaign": "c-2", "name": "two", "project": "other", "micro_usd": 111, "seconds": 5}], ["team"]), "a token of one project gets the bill of that one")
    b = a.get("/v1/bill?month=2026-10")[1]
    t.eq((b["tag"], b["tags"]), (None, ["cost-center", "team"]), "a month names the tags of its campaigns")
    want = {"4711": sum(spends(e, n) for c, at, e, n, _ in lines if c == 1 and at.month == 10), None: 12}
    b = a.get("/v1/bill?month=2026-10&tag=cost-center")[1]
    t.eq((b["tag"], {g["name"]: g["micro_usd"] for g in b["groups"]}), ("cost-center", want), "and is billed by one of them; what does not have it is of no name")
    t.eq(a.get("/v1/bill")[1]["month"], datetime.now(timezone.utc).strftime("%Y-%m"), "without a month it is the present one")
    # What a campaign left behind is booked long after its end.
    a.sql("""UPDATE campaign_run SET ended_at = '2026-09-15' WHERE campaign_id = 2;
        INSERT INTO filesystem (stage_id, campaign_id, n, state, token, size_gib, deployment, ttl_s, keep, exports, import_from, price_musd_per_gb_month, reserved_musd,
            intended_at, delete_after, ended_at, cost_musd, hours)
        SELECT id, 2, 1, 'deleted', 'd-2-volume', 1200, 'SCRATCH_2', 60, true, false, '', 140000, 0, '2026-09-14', '2026-12-20', '2026-12-20', 5000, 9 FROM stage WHERE campaign_id = 2 LIMIT 1;
        INSERT INTO ledger (campaign_id, stage_id, task_id, filesystem_id, at, entry, from_account, to_account, amount_musd)
        SELECT 2, stage_id, 0, id, '2026-12-20', 'settle', 'reserved', 'spent', 5000 FROM filesystem WHERE campaign_id = 2""")
    b = a.get("/v1/bill?month=2026-12", token=other)[1]
    t.eq([(p["micro_usd"], p["jobs_micro_usd"], p["storage_micro_usd"]) for p in b["groups"]], [(6000, 1000, 5000)], "a file system that outlives its campaign is on the bill, as storage")
    t.eq(a.get("/v1/campaigns/c-2/cost?by=type", token=other)[1]["by_type"][-1],
         {"instance_type": "SCRATCH_2", "market": "storage", "attempts": 1, "seconds": 0, "micro_usd": 5000, "idle_micro_usd": 0, "estimated": False}, "and by type it is of its deployment")
    a.sql("UPDATE filesystem SET ended_at = '2026-09-15'")
    ledger(a, [(2, datetime(2027, 1, 7, tzinfo=timezone.utc), "warm", 30, 1)])
    b = a.get("/v1/bill?month=2027-01", token=other)[1]
    t.eq([(p["micro_usd"], p["idle_micro_usd"]) for p in b["groups"]], [(30, 30)], "so is a warm pool whose end was seen months later")
    for month in ("2026-13", "2026-1", "1999-01", "2026-11-01", ""):
        t.eq(a.get(f"/v1/bill?month={month}")[0], 400, f"?month={month} is refused")
    t.eq(a.get("/v1/campaigns/c-1/burn", token=other)[0], 404, "nor does it see another project's curve")


def check_types(t, a, rows):
    b = a.get("/v1/campaigns/c-1/cost?by=type")[1]
    t.eq({x["instance_type"]: (x["attempts"], x["micro_usd"], x["idle_micro_usd"], x["seconds"]) for x in b["by_type"]},
         {k: (sum(1 for r in rows if r[4] == k and r[8] + r[9] + r[10] > 0), *(sum(r[i] for r in rows if r[4] == k) for i in (8, 10, 9))) for k in TYPES}, "cost by instance type")
    t.ok("by_stage" not in b, "and by nothing else", list(b))


def check_billable(t, a):
    """Jobs by stage and type, a warm pool, an endpoint, a file system and a stray, with what each costs an hour; what has ended or not begun costs nothing.
    A job whose output is still being checked has ended: its pool alone is paid for."""
    a.sql("UPDATE attempt SET state = 9, holds = false WHERE state < 8")
    t.eq(a.get("/v1/billable")[1], {"micro_usd_per_hour": 0, "total": 0, "billable": []}, "what has ended costs nothing")
    a.sql("""UPDATE attempt SET state = 4, holds = true, instances = 3, price_musd_per_hour = 1000, started_at = '2026-11-02', ended_at = NULL WHERE id IN (
            SELECT min(id) FROM attempt WHERE campaign_id = 1 GROUP BY task_id ORDER BY task_id LIMIT 3);
        UPDATE attempt SET instance_type = 'ml.m5.large', market = 'on_demand' WHERE state = 4;
        UPDATE attempt SET state = 7, holds = false, ended_at = '2026-11-02' WHERE id = (SELECT max(id) FROM attempt WHERE state = 4);
        UPDATE attempt SET state = 2, holds = true, started_at = NULL, ended_at = NULL WHERE id = (
            SELECT min(id) FROM attempt WHERE campaign_id = 1 AND state > 7 AND task_id NOT IN (SELECT task_id FROM attempt WHERE state < 8));
        INSERT INTO pool (attempt_id, campaign_id, stage_id, state, fingerprint, instance_type, instances, keep_alive_s, available_at, expires_at)
            SELECT id, 1, stage_id, 'available', 1, 'ml.m5.large', 2, 600, '2026-11-02', '2026-11-03' FROM attempt WHERE state = 7;
        INSERT INTO endpoint (stage_id, campaign_id, n, state, name, instance_type, instances, ttl_s, price_musd_per_hour, reserved_musd, intended_at, delete_after, in_service_at)
            SELECT id, 1, 1, 'in_service', 'd-1-serve', 'ml.g5.xlarge', 2, 3600, 50000, 9, '2026-11-02', '2026-11-03', '2026-11-02' FROM stage WHERE campaign_id = 1 LIMIT 1;
        INSERT INTO filesystem (stage_id, campaign_id, n, state, token, size_gib, deployment, ttl_s, keep, exports, import_from, price_musd_per_gb_month, reserved_musd,
            intended_at, delete_after, created_at, available_at)
            SELECT id, 1, 1, 'available', 'd-1-volume', 1200, 'SCRATCH_2', 60, true, false, '', 140000, 0, '2026-11-02', '2026-11-03', '2026-11-02', '2026-11-02' FROM stage WHERE campaign_id = 1 LIMIT 1;
        INSERT INTO stray (name, campaign_id, why, instance_type, instances, price_musd_per_hour, reserved_musd, started_at)
            VALUES ('d-9-lost', 0, 'lost', 'ml.c5.xlarge', 1, 10, 9, '2026-11-02'), ('d-9-waits', 0, 'lost', 'ml.c5.xlarge', 1, 10, 9, NULL);
        INSERT INTO stray (name, kind, there, holds, why, instance_type, instances, size_gib, price_musd_per_hour, reserved_musd, started_at, ended_at)
            VALUES ('d-9-serve', 'endpoint', true, false, 'lost', 'ml.g5.xlarge', 2, 0, 3, 0, '2026-11-02', NULL), ('d-9-old', 'model', true, false, 'lost', 'ml.g5.xlarge', 2, 0, 3, 0, '2026-11-02', '2026-11-02'),
                ('fs-1', 'file_system', true, false, 'lost', 'SCRATCH_2', 1, 1200, 3, 0, '2026-11-02', NULL)""")
    b = a.get("/v1/billable")[1]
    got = [(x["kind"], x["campaign"], x["name"], x["instance_type"], x["market"], x["count"], x["instances"], x["micro_usd_per_hour"]) for x in b["billable"]]
    t.eq(got, [("file_system", "c-1", "d-1-volume", "SCRATCH_2", "storage", 1, 0, 230137), ("endpoint", "c-1", "d-1-serve", "ml.g5.xlarge", "hosting", 1, 2, 100000),
               ("job", "c-1", None, "ml.m5.large", "on_demand", 2, 6, 6000), ("warm_pool", "c-1", None, "ml.m5.large", "on_demand", 1, 2, 2000),
               ("stray", None, "d-9-lost", "ml.c5.xlarge", "on_demand", 1, 1, 10), ("stray", None, "d-9-serve", "ml.g5.xlarge", "hosting", 1, 2, 6),
               ("stray", None, "fs-1", "SCRATCH_2", "storage", 1, 0, 5)], "what costs money now, the dearest first")
    t.eq((b["micro_usd_per_hour"], b["total"]), (338158, 7), "and its sum by the hour")
    b = a.get("/v1/billable?limit=1")[1]
    t.eq((b["micro_usd_per_hour"], b["total"], len(b["billable"])), (338158, 7, 1), "of which a page may be asked")


def check_pools(t, a):
    """What idling has cost is kept where money is, so that it stays when a campaign's pools go with its archive."""
    other = a.post("/v1/tokens", {"name": "pools", "role": "viewer", "projects": ["other"]})[1]["token"]
    a.sql("""INSERT INTO money (level, ref_id, spent_musd, warm_musd, warm_seconds) SELECT v.level, coalesce(v.id, p.id), 90000, v.musd, v.seconds
            FROM (VALUES ('global', 0, 812, 600), ('project', NULL, 30, 7), ('campaign', 1, 500, 300)) v (level, id, musd, seconds)
            LEFT JOIN project p ON p.name = 'other'
        ON CONFLICT (level, ref_id) DO UPDATE SET spent_musd = 90000, warm_musd = excluded.warm_musd, warm_seconds = excluded.warm_seconds""")
    got = [a.get(f"/v1/pools{q}", token=who)[1]["sum"] for q, who in (("", True), ("?campaign=c-1", True), ("", other))]
    t.eq([(s["idle_micro_usd"], s["idle_seconds"]) for s in got], [(812, 600), (500, 300), (30, 7)], "the cost of idling, of all, of a campaign and of a project")


def check_large(t, a):
    """Of a stage of 9,000 parts one in three manifests is read."""
    a.submit(spec("large", "{from: api}"))
    lines = "\n".join('{"uri":"s3://b/%d"}' % i for i in range(9000))
    a.post("/v1/campaigns/c-3/parts?stage=download&last=true", lines, {"Content-Type": "application/x-ndjson"})
    leader_takes(a, 3)
    insert_attempts(a, 3, [(i, 1, 8, 0, TYPES[0], i / 10, i / 10, i / 10 + 1, 1, 1, 0, '{"rows_in": 10, "successes": %d}' % (9 if i % 3 == 0 else 1)) for i in range(9000)])
    b = a.get("/v1/campaigns/c-3/yield")[1]
    t.ok(b["every"] == 3 and len(b["points"]) == 200 and sum(p["parts"] for p in b["points"]) == 3000 and {p["ratio"] for p in b["points"]} == {0.9}, "of 9,000 parts one in three is read", b["every"])
    t.eq(len(a.get("/v1/campaigns/c-3/timeline")[1]["attempts"]), 9000, "9,000 attempts are one answer")


def check_unreadable(t, a):
    """A spec that somebody changed by hand spoils no answer, neither its own campaign's nor one about all."""
    kept = a.sql("SELECT spec::text FROM campaign WHERE id = 1")
    paths = [f"/v1/campaigns/{c}{x}" for c in ("c-1", "c-2") for x in ("", "/cost?by=phase", "/cost?by=type", "/failures", "/parts", "/timeline", "/burn")]
    paths += ["/v1/campaigns", "/v1/bill?month=2026-10", "/v1/bill?month=2026-10&tag=team", "/v1/billable", "/v1/checks", "/v1/quotas"]
    for i, bad in enumerate(("5", '{"stages": 5, "tags": {"a": 1}}', '{"stages": [5, {"name": "download", "instance_type": 7, "subnets": "x", "endpoint": 1}], "tags": [1, []]}')):
        a.sql(f"UPDATE campaign SET spec = '{bad}', version = version + 1 WHERE id = 1; UPDATE campaign_run SET reason = 'try {i}'")  # what was answered is of an older version
        t.eq({p: s for p in [*paths, f"/v1/bill?month=2026-10&tag=team{i}"] if (s := a.get(p)[0]) >= 500}, {}, f"spec {bad[:20]}: nothing fails")
    a.sql(f"UPDATE campaign SET spec = $spec${kept}$spec$ WHERE id = 1")


def run(t, pg):
    rng = random.Random(14)
    a = Api(pg)
    try:
        a.objects("data", [f"meta/{i:03}.parquet" for i in range(300)])
        for name, project, tags in (("one", "default", '{cost-center: "4711", team: a}'), ("two", "other", "{team: b}")):
            status = a.submit(spec(name, '{from: "s3://data/meta/*.parquet"}', top=f"project: {project}\ntags: {tags}"))[0]
            t.eq(status, 201, f"campaign {name}")
        for c in (1, 2):
            leader_takes(a, c)
        rows = make_attempts(rng, 300)
        check_timeline(t, a, rows)
        check_throughput(t, a, rows)
        check_yield(t, a, rows)
        check_types(t, a, rows)
        check_bill(t, a, check_burn(t, a, rng))
        check_pools(t, a)
        check_large(t, a)
        check_billable(t, a)
        for path in ("timeline", "throughput", "yield", "burn"):
            t.eq(a.get(f"/v1/campaigns/c-99/{path}")[0], 404, f"{path} of no campaign: 404")
        check_unreadable(t, a)
        a.sql("INSERT INTO archive (campaign_id) VALUES (2)")
        t.eq([a.get(f"/v1/campaigns/c-2/{p}")[0] for p in ("timeline", "throughput", "yield", "cost?by=type", "burn")], [410] * 4 + [200], "of an archived campaign the money is left")
    finally:
        status, log = a.close()
    t.ok(status == 0, "the server ends by itself", (status, log[-2000:]))


main(run)
