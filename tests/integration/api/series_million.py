#!/usr/bin/env python3
"""Aim: a metric series of a million points stays queryable: a page, wherever it is, and a chart cost little, and a chart
is put together on the server without losing the least and the greatest value. Method: the points and their buckets by
SQL; pages at four depths and charts over one connection. CPU time of server and PostgreSQL is bounded, since it does not
depend on what else runs; the times at the median and at p99 are printed for a quiet machine."""
import http.client
import json
import math
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.api import Api, leader_takes, main, spec

N = 1_000_000
WIDTHS = (8, 64, 512, 4096, 32768)  # of buckets, as the leader fills them
ASKED = 400
PAGE_MS, CHART_MS = 20, 40  # of CPU, at most
HZ = os.sysconf("SC_CLK_TCK")


def fill(a):
    a.sql(f"""INSERT INTO attempt (campaign_id, stage_id, task_id, n, state, epoch, name, request_sha256, identity_hash, instance_type, instances,
            volume_gb, max_runtime_s, price_musd_per_hour, reserved_musd, cost_musd, billable_s, holds, settled, started_at, ended_at)
        SELECT campaign_id, stage_id, id, 1, 8, 1, 'd-1-3-a1', decode(repeat('00', 32), 'hex'), repeat('0', 64), 'ml.p3.2xlarge', 1,
            30, 7200, 1, 0, 1, 1, false, true, now(), now() FROM task WHERE campaign_id = 1 AND seq = 3;
        INSERT INTO metric_series (campaign_id, stage_id, task_id, attempt_id, name, points, first_us, last_us, last_step, last_value, min_value,
            max_value, sum_value)
        SELECT campaign_id, stage_id, task_id, id, 'loss', {N}, 1700000000000000, 1700000000000000 + {N - 1} * 1000000::bigint, {N - 1}, 1, 0, 2, {N}
        FROM attempt WHERE name = 'd-1-3-a1';
        INSERT INTO metric_point (series_id, seq, at_us, step, value)
        SELECT currval('metric_series_id_seq'), i, 1700000000000000 + i * 1000000::bigint, i, 1 + sin(i) FROM generate_series(0, {N - 1}) i;
        INSERT INTO metric_bucket
        SELECT series_id, w, seq / w, count(*), min(at_us), max(at_us), min(step), max(step), min(value), max(value), sum(value)
        FROM metric_point CROSS JOIN (VALUES {",".join(f"({w})" for w in WIDTHS)}) x (w) GROUP BY 1, 2, 3;
        ANALYZE metric_point; ANALYZE metric_bucket; ANALYZE metric_series""")


def cpu_s(a):
    """Of the server and of the backends that work for it."""
    pids = a.sql("SELECT string_agg(pid::text, ',') FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
    used = 0
    for pid in [str(a.p.pid), *pids.split(",")]:
        words = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        used += int(words[11]) + int(words[12])
    return used / HZ


def asked(t, a, connection, what, paths, limit_ms):
    """Each path in turn; returns the last answer of each."""
    answers, ms = {}, []

    def ask(path):
        began = time.monotonic()
        connection.request("GET", path, headers={"Authorization": "Bearer " + a.token})
        reply = connection.getresponse()
        answers[path] = reply.status, json.loads(reply.read())
        return (time.monotonic() - began) * 1000

    for path in paths:
        ask(path)
    before = cpu_s(a)
    for i in range(ASKED):
        ms.append(ask(paths[i % len(paths)]))
    each = (cpu_s(a) - before) * 1000 / ASKED
    ms.sort()
    t.ok(each <= limit_ms, f"{what}: {each:.1f} ms of CPU, at most {limit_ms}", ms[-5:])
    print(f"# {what}: p50 {ms[ASKED // 2]:.1f} ms, p99 {ms[ASKED * 99 // 100 - 1]:.1f} ms, {len(str(answers[paths[0]]))} bytes", flush=True)
    return [answers[path] for path in paths]


def run(t, pg):
    a = Api(pg)
    try:
        a.objects("data", [f"meta/{i:03}.parquet" for i in range(12)])
        t.eq(a.submit(spec("one"))[0], 201, "a campaign of 12 parts")
        leader_takes(a, 1)
        fill(a)
        connection = http.client.HTTPConnection("127.0.0.1", a.port)
        base = "/v1/campaigns/c-1/parts/3/points?name=loss&page_size=1000"
        paths, at = [base], base
        for i in range(1, 301):  # a token is a place in the series, told by the page before it
            connection.request("GET", at, headers={"Authorization": "Bearer " + a.token})
            at = f"{base}&page_token={json.loads(connection.getresponse().read())['next_page_token']}"
            if i % 100 == 0:
                paths.append(at)
        pages = asked(t, a, connection, "a page of 1,000 points, at four depths of a million", paths, PAGE_MS)
        t.ok(all(status == 200 and len(p["points"]) == 1000 for status, p in pages), "each page has its 1,000", [s for s, _ in pages])
        steps = [[point["step"] for point in p["points"]] for _, p in pages]
        t.ok(steps == [list(range(k, k + 1000)) for k in (0, 100000, 200000, 300000)], "of its place, in order", [x[:2] for x in steps])
        for points in (200, 500, 1000):
            (status, answer), = asked(t, a, connection, f"a chart of at most {points}", [f"/v1/campaigns/c-1/parts/3/metrics?name=loss&points={points}"], CHART_MS)
            chart = answer["series"][0]["chart"]
            least, most = min(b["min"] for b in chart), max(b["max"] for b in chart)
            t.ok(status == 200 and points / 8 <= len(chart) <= points, f"it has {len(chart)}", status)
            t.ok(math.isclose(least, min(1 + math.sin(i) for i in range(1000)), abs_tol=1e-4) and math.isclose(most, 2, abs_tol=1e-4), "and loses neither the least nor the greatest value", (least, most))
    finally:
        a.close()


main(run)
