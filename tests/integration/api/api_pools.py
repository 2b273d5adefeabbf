#!/usr/bin/env python3
"""GET /v1/pools beside 300,000 warm pools. Aim: an answer holds the right ones, open ones first, and neither it nor its sums
read all pools at each request. Method: the API's own server program; SQL plays the leader; what PostgreSQL counts of rows read."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import wait_for
from kit.api import Api, main, spec

N, ASKED = 300_000, 20


def fill(a):
    """One in ten is of campaign 2; every thousandth is still open."""
    a.sql(f"""BEGIN; INSERT INTO pool (attempt_id, campaign_id, stage_id, state, fingerprint, instance_type, instances, keep_alive_s, available_at, ended_at)
        SELECT i, c, (SELECT min(id) FROM stage WHERE campaign_id = c), CASE WHEN i % 1000 = 0 THEN 'available' WHEN i % 3 = 0 THEN 'reused' ELSE 'terminated' END, 1,
            'ml.c5.xlarge', 1, 900, now(), CASE WHEN i % 1000 <> 0 THEN now() END
        FROM (SELECT i, CASE WHEN i % 10 = 1 OR i % 10000 = 0 THEN 2 ELSE 1 END AS c FROM generate_series(1, {N}) i) x;
        INSERT INTO attempt (id, campaign_id, stage_id, task_id, n, state, epoch, name, request_sha256, identity_hash, instance_type, instances,
            max_runtime_s, price_musd_per_hour, reserved_musd, cost_musd, billable_s, holds, settled)
        OVERRIDING SYSTEM VALUE SELECT p.attempt_id, p.campaign_id, p.stage_id, p.id, 1, 8, 1, 'd-' || p.id || '-a1', decode(repeat('00', 32), 'hex'), repeat('0', 64), 'ml.c5.xlarge', 1,
            3600, 1, 0, 1, 1, false, true FROM pool p WHERE p.id > {N} - 20000 OR p.ended_at IS NULL;
        COMMIT; ANALYZE pool; ANALYZE attempt""")


def rows_read(a):
    """Of the table of pools, once the backends have told of them."""
    time.sleep(1.5)  # a backend tells of what it read a second later, and nothing says that it has
    a.sql("SELECT pg_stat_clear_snapshot()")
    return int(a.sql("SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'pool'"))


def run(t, pg):
    a = Api(pg)
    try:
        for name, project in (("one", "default"), ("two", "laion")):
            a.submit(spec(name, "{from: api}", top=f"project: {project}"))
        scoped = a.post("/v1/tokens", {"name": "team", "projects": ["laion"]})[1]["token"]
        fill(a)
        of = lambda where, n: [int(x) for x in a.sql(f"SELECT id FROM pool WHERE {where} ORDER BY ended_at IS NOT NULL, id DESC LIMIT {n}").split()]  # noqa: E731
        for what, query, tok, where in (("all", "?limit=400", True, "true"), ("of a campaign", "?campaign=c-2&limit=100", True, "campaign_id = 2"),
                                        ("of a campaign of few open ones", "?campaign=c-1&limit=20", True, "campaign_id = 1"),
                                        ("of a project", "?limit=100", scoped, "campaign_id = 2"), ("of a project's campaign", "?campaign=c-2&limit=31", scoped, "campaign_id = 2")):
            before, took = rows_read(a), time.monotonic()
            got = [a.get("/v1/pools" + query, token=tok)[1] for _ in range(ASKED)]
            took = (time.monotonic() - took) / ASKED
            n = int(query.rsplit("=", 1)[1])
            t.eq([p["id"] for p in got[-1]["pools"]], of(where, n), f"{what}: open ones first, newest first")
            sums = a.sql(f"SELECT count(*), count(*) FILTER (WHERE state = 'reused'), count(*) FILTER (WHERE ended_at IS NULL) FROM pool WHERE {where}")
            t.eq("|".join(str(got[-1]["sum"][k]) for k in ("pools", "reused", "open")), sums, f"{what}: with their sums")
            read = rows_read(a) - before
            print(f"# {what}: {read} rows read for {ASKED} answers, {took * 1000:.1f} ms each")
            t.ok(read < 5 * N, f"{what}: {ASKED} answers do not read {N} pools each", read)  # two counts of this test, one or two of the server
        before = a.get("/v1/pools?campaign=c-2")[1]["sum"]
        a.sql("UPDATE pool SET state = 'reused', ended_at = now() WHERE id = 10000")
        want = {**before, "open": before["open"] - 1, "reused": before["reused"] + 1}
        t.ok(wait_for(lambda: a.get("/v1/pools?campaign=c-2")[1]["sum"] == want, 5), "a pool that ends is counted soon", want)
        a.sql("""INSERT INTO money (level, ref_id, spent_musd, warm_musd, warm_seconds) VALUES ('campaign', 1, 9, 9, 9), ('campaign', 2, 8, 8, 8)
            ON CONFLICT (level, ref_id) DO UPDATE SET spent_musd = excluded.spent_musd, warm_musd = excluded.warm_musd, warm_seconds = excluded.warm_seconds""")
        got = [a.get(f"/v1/pools?campaign=c-{c}", token=tok)[1] for c, tok in ((1, scoped), (9, True), (2, scoped))]
        nothing = {"sum": {"pools": 0, "reused": 0, "open": 0, "idle_seconds": 0, "idle_micro_usd": 0}, "pools": []}
        t.eq((*got[:2], got[2]["sum"]["idle_micro_usd"]), (nothing, nothing, 8), "nothing is told of another project's campaign, not even what its idling cost, nor of none")
    finally:
        status, log = a.close()
    t.ok(status == 0, "the server ends by itself", (status, log[-2000:]))


main(run)
