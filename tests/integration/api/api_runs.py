"""Scaling tables and comparisons of training runs, for api_rest.py. Aim: the figures are those of an independent
computation, runs of different settings are not put into one table, and nobody sees another project's run. Method: runs
and metrics by SQL; medians and quartiles by Python's statistics, Student's tail by Simpson's rule over its density.
"""
import json
import math
import random
import statistics

from kit.api import leader_takes

BATCH, STEPS, WARM = 64, 200, 20
# stage, instances, seconds a step, overhead, USD an hour and instance
RUNS = (("train-1", 1, 0.80, 4.0), ("train-2", 2, 0.41, 6.0), ("train-4", 4, 0.22, 30.0))
PRICE = 36000000
FILE = """version: 1
name: NAME
stages:
  - name: train
    image: r/x:1
    instance_type: ml.p3.2xlarge
    max_runtime: 2h
    hyperparameters: {batch: 64}
    environment: {FLAVOUR: plain-one}
    metrics: [{name: loss, regex: 'loss=([0-9.]+)'}]
    matrix:
      scales_with: [hyperparameters.lr]
      include:
        - {name: "1", instance_count: 1, hyperparameters: {lr: 0.1}}
        - {name: "2", instance_count: 2, hyperparameters: {lr: 0.2}}
        - {name: "4", instance_count: 4, hyperparameters: {lr: 0.4}}
"""
ODD = """  - name: odd
    extends: train
    matrix:
      include:
        - {name: a, instance_count: 1, hyperparameters: {lr: 0.1}}
        - {name: b, instance_count: 2, hyperparameters: {lr: 0.2, batch: 32}, environment: {FLAVOUR: plain-two}}
  - {name: lone, extends: train, matrix: none}
"""


def put_run(a, campaign, stage, instances, step_s, overhead_s, rng):
    """A run that succeeded, and what it printed: [(step, seconds since its program began, loss, images a second)]."""
    points, at = [], overhead_s
    for step in range(1, STEPS + 1):
        at += step_s * rng.uniform(0.97, 1.03)
        points.append((step, round(at, 6), 3 - step / STEPS + rng.uniform(-0.1, 0.1), BATCH / step_s * rng.uniform(0.9, 1.1)))
    ms = round(at * 1000)
    a.sql(f"""INSERT INTO attempt (campaign_id, stage_id, task_id, n, state, epoch, name, request_sha256, identity_hash, instance_type, instances, volume_gb,
            max_runtime_s, price_musd_per_hour, reserved_musd, cost_musd, billable_s, holds, settled, started_at, ended_at, phases)
        SELECT t.campaign_id, t.stage_id, t.id, 1, 8, 1, 'r-' || t.id || '-a1', decode(repeat('00', 32), 'hex'), repeat('0', 64), 'ml.p3.2xlarge', {instances}, 30,
            7200, {PRICE}, 0, {instances * 1000000}, {instances * 100}, false, true, to_timestamp(1700000000), to_timestamp(1700001000),
            ARRAY[0,0,0, 5000,0,0, 7000,0,0, 3000,0,0, {ms},0,0, 1000,0,0]::bigint[]
        FROM task t JOIN stage g ON g.id = t.stage_id WHERE g.campaign_id = {campaign} AND g.name = '{stage}'""")
    for i, name in ((2, "loss"), (3, "images_per_second")):
        values = ",".join(f"({k}, {p[0]}, {1700000010000000 + round(p[1] * 1e6)}, {p[i]!r}::float8)" for k, p in enumerate(points))
        a.sql(f"""INSERT INTO metric_series (campaign_id, stage_id, task_id, attempt_id, name, points, last_step, last_value)
            SELECT campaign_id, stage_id, task_id, id, '{name}', {STEPS}, {STEPS}, {points[-1][i]!r} FROM attempt WHERE name LIKE 'r-%' ORDER BY id DESC LIMIT 1;
            INSERT INTO metric_point (series_id, seq, step, at_us, value) SELECT currval('metric_series_id_seq'), * FROM (VALUES {values}) v""")
    return points


def near(x, y, rel=1e-6):
    return math.isclose(x, y, rel_tol=rel, abs_tol=1e-9)


def welch(x, y):
    """t, degrees of freedom and two-sided p of Welch's test; the tail by Simpson's rule, with t = tan u."""
    vx, vy = statistics.variance(x) / len(x), statistics.variance(y) / len(y)
    t = (statistics.mean(y) - statistics.mean(x)) / math.sqrt(vx + vy)
    df = (vx + vy) ** 2 / (vx ** 2 / (len(x) - 1) + vy ** 2 / (len(y) - 1))
    c = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    n, h = 4000, math.atan(abs(t)) / 4000
    f = [c * (1 + math.tan(i * h) ** 2 / df) ** (-(df + 1) / 2) / math.cos(i * h) ** 2 for i in range(n + 1)]
    return t, df, 1 - 2 * h / 3 * (f[0] + f[-1] + 4 * sum(f[1:-1:2]) + 2 * sum(f[2:-1:2]))


def fits(got, x, y):
    """Is what the API says of two samples what Python says of them?"""
    want = [(statistics.mean(v), statistics.stdev(v), *statistics.quantiles(v, n=4, method="inclusive")) for v in (x, y)]
    have = [tuple(got[s][k] for k in ("mean", "stddev", "p25", "median", "p75")) for s in "ab"]
    t, df, p = welch(x, y)
    return (all(near(g, w) for gs, ws in zip(have, want) for g, w in zip(gs, ws)) and [got[s]["values"] for s in "ab"] == [len(x), len(y)] and near(got["t"], t) and near(got["df"], df)
            and abs(got["p"] - p) < 1e-8 and got["significant"] == (p < 0.05))


def check_scaling(t, a, c, printed):
    b = a.get(f"/v1/campaigns/c-{c}/scaling?group=train&metric=images_per_second&epoch=50000&deadline=400s")[1]
    assert "rows" in b, b
    rows = {r["stage"]: r for r in b["rows"]}
    base = None
    for stage, n, _, _ in RUNS:
        rate = [p[3] for p in printed[stage][WARM:]]
        q, r = statistics.quantiles(rate, n=4, method="inclusive"), rows[stage]
        epoch = 50000 / q[1]
        base = base or q[1]
        t.ok(all(near(r["rate"][k], v) for k, v in zip(("p25", "median", "p75"), q)) and near(r["speedup"], q[1] / base) and near(r["efficiency"], q[1] / base / n)
             and near(r["epoch_seconds"], epoch) and r["epoch_micro_usd"] == round(PRICE * n * math.ceil(epoch) / 3600) and r["in_time"] == (epoch <= 400),
             f"{stage}: rate, speed-up, efficiency and cost of an epoch as Python has them", r)
    cheap = min((r for r in b["rows"] if r["in_time"]), key=lambda r: r["epoch_micro_usd"])
    t.ok([r["stage"] for r in b["rows"] if r["cheapest"]] == [cheap["stage"]] and b["deadline_seconds"] == 400 and b["left_out"] == [], "one is the cheapest in time", b)
    b = a.get(f"/v1/campaigns/c-{c}/scaling?group=train")[1]
    t.ok([(r["stage"], near(r["epoch_seconds"], printed[r["stage"]][-1][1], 1e-3), r["rate"]) for r in b["rows"]] == [(x[0], True, None) for x in RUNS] and b["metric"] is None,
         "without a metric the whole run is the epoch", b)
    s, b, _ = a.get(f"/v1/campaigns/c-{c}/scaling?group=odd")
    t.ok(s == 409 and "odd-a and odd-b differ in more than instances" in b["detail"] and "hyperparameters.batch (64, 32)" in b["detail"] and "hyperparameters.lr" in b["detail"]
         and "environment.FLAVOUR ((hidden), (hidden))" in b["detail"] and "plain" not in json.dumps(b), "runs that differ in more are refused, the difference named, no secret told", b)
    r = a.drover("scaling", f"c-{c}/odd")
    t.ok(r.returncode == 5 and r.stdout == "" and "hyperparameters.batch (64, 32)" in r.stderr and "scales_with" in r.stderr, "so it is on the command line", r)
    b = a.get(f"/v1/campaigns/c-{c}/scaling?group=train&metric=loss&warm_up={STEPS}")
    t.ok(b[0] == 409 and "no value of the metric after its warm-up" in b[1]["detail"], "all of it warm-up: no table", b)
    for q, want in (("", 422), ("group=nope", 404), ("group=train&epoch=5", 400), ("group=train&metric=loss&epoch=0", 400), ("group=train&deadline=soon", 400), ("group=train&metric=nope", 409)):
        t.eq(a.get(f"/v1/campaigns/c-{c}/scaling?{q}")[0], want, f"scaling?{q}: {want}")
    t.eq(a.get("/v1/campaigns/c-1/scaling")[0], 409, "without a matrix there is no table")


def check_curves(t, a, c, x, y):
    """The charts of two runs: by step, by the seconds since the program began, by what its instances cost until then."""
    m = {v["name"]: v for v in a.get(f"/v1/campaigns/c-{c}/compare?a=train-1&b=train-4&points=30")[1]["metrics"]}
    for side, run, n in (("curve_a", x, 1), ("curve_b", y, 4)):
        for i, name in ((2, "loss"), (3, "images_per_second")):
            each = [run[k:k + 7] for k in range(0, STEPS, 7)]  # 200 points as 29
            got = m[name][side]
            t.ok(len(got) == len(each) and all(g["step"] == e[-1][0] and abs(g["seconds"] - e[-1][1]) < 1e-5 and near(g["value"], statistics.mean(p[i] for p in e))
                                               and abs(g["micro_usd"] - PRICE * n * e[-1][1] / 3600) <= 1 for g, e in zip(got, each)),
                 f"{name}, {side}: seven values a point, with step, seconds, cost", got)
    one = a.get(f"/v1/campaigns/c-{c}/compare?a=train-1&b=train-4&points=500")[1]["metrics"][0]
    t.ok([len(one[k]) for k in ("curve_a", "curve_b")] == [STEPS] * 2 and one["curve_a"][3]["value"] == x[3][3 if one["name"] != "loss" else 2], "few enough are given as they are")
    got = [a.get(f"/v1/campaigns/c-{c}/compare?a=train-1&b=train-4{q}") for q in ("", "&points=0", "&points=501")]
    t.ok([r[0] for r in got] == [200, 400, 400] and not any("curve_a" in v for v in got[0][1]["metrics"]), "who does not ask gets no curves; 500 points at most")


def check_compare(t, a, c, printed):
    b = a.get(f"/v1/campaigns/c-{c}/compare?a=train-1&b=train-4/0/1")[1]
    x, y = printed["train-1"], printed["train-4"]
    t.eq([(s["key"], s["a"], s["b"]) for s in b["settings"]], [("hyperparameters.lr", "0.1", "0.4"), ("instance_count", "1", "4")], "what differs, by its names in the file")
    t.ok(b["settings_equal"] > 10 and b["a"]["run"] == f"c-{c}/train-1/0/1" and b["b"]["instances"] == 4 and b["b"]["micro_usd"] == 4000000, "and what does not is counted", b)
    m = {v["name"]: v for v in b["metrics"]}
    for i, name in ((2, "loss"), (3, "images_per_second")):
        t.ok(fits(m[name], [p[i] for p in x[WARM:]], [p[i] for p in y[WARM:]]), f"{name}: means, spread, t, df and p as Python has them", m[name])
    t.ok(m["images_per_second"]["significant"] and m["images_per_second"]["delta_percent"] > 200, "three times the rate is no chance")
    check_curves(t, a, c, x, y)
    step = [[q[1] - p[1] for p, q in zip(v[WARM - 1:], v[WARM:])] for v in (x, y)]
    pace = b["pace"]
    t.ok(fits(pace["step_seconds"], *step), "so are the seconds of a step", pace)
    rate = [(v[-1][1] - v[WARM - 1][1]) / (STEPS - WARM) for v in (x, y)]
    over = [v[WARM - 1][1] - WARM * r for v, r in zip((x, y), rate)]
    want = math.floor((over[1] - over[0]) / (rate[0] - rate[1])) + 1
    t.ok(pace["quicker"] == "b" and abs(pace["break_even_step"] - want) <= 1 and not pace["ahead_from_start"] and near(b["b"]["overhead_seconds"], over[1], 1e-4), f"b is ahead from step {want} on", pace)
    back = a.get(f"/v1/campaigns/c-{c}/compare?a=c-{c}/train-4&b=train-1")[1]["pace"]
    t.ok(back["quicker"] == "a" and back["break_even_step"] == pace["break_even_step"], "also the other way round", back)
    self = a.get(f"/v1/campaigns/c-{c}/compare?a=train-2&b=train-2&warm_up=50")[1]
    t.ok(self["settings"] == [] and all(v["p"] == 1 and v["significant"] is False and v["a"]["values"] == STEPS - 50 for v in self["metrics"]), "a run does not differ from itself", self)
    odd = a.get(f"/v1/campaigns/c-{c}/compare?a=odd-a&b=odd-b")[1]
    t.ok(("environment.FLAVOUR", "(hidden)", "(hidden)") in [(s["key"], s["a"], s["b"]) for s in odd["settings"]] and odd["pace"] is None and odd["metrics"] == [], "runs without metrics are compared by their settings; no secret is told", odd)
    for q, want in (("a=train-1", 400), ("a=&b=train-1", 400), ("a=train-1&b=nope", 404), ("a=train-1&b=train-2/7", 404), ("a=train-1&b=train-2/0/9", 404), ("a=train-1&b=train-2/x", 400),
                    ("a=train-1&b=train-2/0/1/1", 400), ("a=train-1&b=c-999/train-1", 404), ("a=train-1&b=lone", 404), ("a=train-1&b=train-2&warm_up=-1", 400)):
        t.eq(a.get(f"/v1/campaigns/c-{c}/compare?{q}")[0], want, f"compare?{q}: {want}")


def check_scope(t, a, c):
    """A token of one project sees no run of another, on neither side."""
    s, b, _ = a.submit("project: private\n" + FILE.replace("NAME", "hidden"))
    other = b["id"]
    leader_takes(a, int(other[2:]))
    put_run(a, int(other[2:]), "train-1", 1, 0.5, 1, random.Random(4))
    s, b, _ = a.post("/v1/tokens", {"name": "narrow", "role": "viewer", "projects": ["private"]})
    narrow = b["token"]
    got = [a.get(f"/v1/campaigns/{where}/compare?a={x}&b={y}", token=narrow)[0]
           for where, x, y in ((other, "train-1", "train-1"), (other, "train-1", f"c-{c}/train-1"), (other, f"c-{c}/train-1", "train-1"), (f"c-{c}", "train-1", "train-1"))]
    t.eq((got, a.get(f"/v1/campaigns/{other}/compare?a=train-1&b=c-{c}/train-1")[0]), ([200, 404, 404, 404], 200), "a run of another project is not there for it")


def put_runs(a):
    """A campaign with the runs of two matrices. Returns its number and what the runs of `train` printed."""
    s, b, _ = a.submit(FILE.replace("NAME", "scale") + ODD)
    assert s == 201, b
    c = int(b["id"][2:])
    leader_takes(a, c)
    rng = random.Random(12)
    printed = {stage: put_run(a, c, stage, n, step, over, rng) for stage, n, step, over in RUNS}
    for stage, n in (("odd-a", 1), ("odd-b", 2)):
        put_run(a, c, stage, n, 0.5, 1, rng)
    a.sql(f"DELETE FROM metric_series WHERE campaign_id = {c} AND stage_id IN (SELECT id FROM stage WHERE name LIKE 'odd%')")
    return c, printed


def check_runs(t, a):
    none = a.submit(FILE.replace("NAME", "none-yet"))[1]["id"]
    t.eq(a.get(f"/v1/campaigns/{none}/scaling")[0], 409, "before a run has succeeded there is no table")
    c, printed = put_runs(a)
    t.ok(a.get(f"/v1/campaigns/c-{c}/parts/0/metrics?stage=train-1")[1]["defined"], "a stage that defines metrics says so")
    check_scaling(t, a, c, printed)
    check_compare(t, a, c, printed)
    check_scope(t, a, c)
