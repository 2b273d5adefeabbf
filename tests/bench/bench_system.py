#!/usr/bin/env python3
"""Figures of the whole system, from the outside: PostgreSQL, drover-local and droverd as they are shipped.

slot_free_to_create_ms: from the moment drover-local releases a job's instance to the arrival of the Create that takes it, quota full
and tasks waiting. The rest is of a campaign of 1 M parts: how fast POST takes them, how fast its summary is read and how much memory
the leader holds; beside them what decides whether they can be believed: COPY of the same bytes, a restart, a tick, pages in the deep.
Usage: bench_system.py [slots] [parts]; one JSON object a line."""
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests"))
from kit import postgres  # noqa: E402
from kit.stack import Stack, wait_for  # noqa: E402

RUNS, PARTS = 3, 1000000
SLOTS, SLOT_TASKS = 8, 150           # of each of the runs: 142 releases that somebody waits for
BENCH_API = os.path.join(TOP, "build/release/bench/bench_api")


def put(name, value, unit, n, note):
    print(json.dumps({"name": name, "value": value, "unit": unit, "n": n, "note": note}), flush=True)


def percentile(values, p):
    return sorted(values)[min(len(values) - 1, len(values) * p // 100)]


def spec(name, image=""):
    kind = f"image: {image}\n    verify: none" if image else "worker: download\n    hyperparameters: {url_list: \"{uri}\", output_folder: \"s3://drover-test/out/{part:07d}/\"}"
    return f"""version: 1
name: {name}
stages:
  - name: work
    {kind}
    fan_out: {{from: api}}
    instance_type: ml.c5.xlarge
    max_runtime: 5m
"""


# --- from a free slot to the next job ------------------------------------------------------------
def slot_run(stack, i):
    """Milliseconds from each release to the Create that took the instance, in order: the k-th release is the k-th later Create's."""
    before = {j["name"] for j in stack.oracle("jobs")["jobs"]}
    cid = stack.submit(spec(f"slots{i}", "bench/quick:1"))
    lines = "".join(json.dumps({"uri": f"s3://drover-test/x/{k}", "size": 1}) + "\n" for k in range(SLOT_TASKS))
    stack.api("POST", f"/campaigns/{cid}/parts?last=true", lines)
    wait_for(lambda: stack.ended(cid), 120, "the campaign", step=0.5)
    released = sorted(j["released"] for j in stack.oracle("jobs")["jobs"] if j["name"] not in before)
    creates = sorted(r["time"] for r in stack.oracle("wire-log")["requests"]
                     if r["operation"] == "CreateTrainingJob" and r["accepted"] and r["name"] not in before)
    if len(released) != SLOT_TASKS or len(creates) != SLOT_TASKS:
        sys.exit(f"bench_system: {len(creates)} jobs made, {len(released)} released of {SLOT_TASKS}")
    return [(c - r) * 1000 for c, r in zip(creates[SLOTS:], released)]


def slots():
    with Stack("bench-slots", quotas={"ml.c5.xlarge": SLOTS}, parts=1, rows=1, observe_us=100000, lease_us=10000000,
               local={"rates": {}, "cold_start_seconds": 0.1}, images={"bench/quick:1": ["/bin/sh", "-c", "exit 0"]},
               env={"DROVER_CREATE_RATE_PER_MINUTE": "0", "DROVER_TICK_INTERVAL_US": "1000000", "DROVER_QUOTA_INTERVAL_US": "300000000"}) as stack:
        stack.start()
        runs = [slot_run(stack, i) for i in range(RUNS)]
    if min(min(r) for r in runs) < 0:
        sys.exit("bench_system: a job was created before its slot was free")
    n = sum(len(r) for r in runs)
    how = f"{SLOTS} slots full, no rates, list every 100 ms; median of {RUNS} runs"
    for p in (50, 99):
        each = [percentile(r, p) for r in runs]
        put(f"slot_free_to_create_ms_p{p}", round(statistics.median(each), 1), "ms", n, f"{how}: {', '.join(f'{v:.0f}' for v in each)}")


# --- a campaign of a million parts ---------------------------------------------------------------
def bench_api(stack, *argv):
    done = subprocess.run([BENCH_API, str(stack.ports["droverd0"]), stack.token_file, *map(str, argv)], stdout=subprocess.PIPE, check=True, text=True)
    return [int(v) for v in done.stdout.split()]


def psql(stack, db, sql):
    subprocess.run([postgres.BIN_DIR + "/psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", stack.sock, "-U", "drover", "-d", db], input=sql, text=True, check=True,
                   stdout=subprocess.DEVNULL)


def make_parts(folder):
    """Lines of 182 bytes for the POST; the same rows for COPY."""
    with open(folder + "/parts.ndjson", "w") as lines, open(folder + "/parts.copy", "w") as rows:
        for i in range(PARTS):
            uri = f"s3://laion400m/laion400m-meta/part-{i:07d}-5114fd87-e271-4318-9c0d-3f5a6f8e9b1c-c000.snappy.parquet"
            shared = '{"shard":"%07d","split":"train","lang":"en"}' % i
            lines.write('{"uri":"%s","size":%d,"vars":%s}\n' % (uri, 100000000 + i, shared))
            rows.write(f"{i}\t{uri}\t{100000000 + i}\t{shared}\n")


def copy_peer(stack, db):
    """Seconds that COPY of the same rows into one bare table, its primary key and the commit take."""
    psql(stack, db, "CREATE TABLE peer (id bigint, uri text, size bigint, vars jsonb)")
    began = time.monotonic()
    psql(stack, db, f"BEGIN; CREATE TABLE peer_copy (LIKE peer);\n\\copy peer_copy from '{stack.dir}/parts.copy'\nALTER TABLE peer_copy ADD PRIMARY KEY (id); COMMIT")
    took = time.monotonic() - began
    psql(stack, db, "DROP TABLE peer, peer_copy")
    return took


def database(stack, i):
    psql(stack, "postgres", f"CREATE DATABASE bench{i}")
    return {"DROVER_DATABASE_URL": f"host={stack.sock} user=drover dbname=bench{i}"}


def insert_run(stack, i):
    """A database and a droverd of its own; the campaign; seconds of the POST, of COPY, and from the 201 to a leader that holds every part."""
    env = database(stack, i)
    peer = copy_peer(stack, f"bench{i}")
    stack.start_droverd(env=env)
    cid = stack.submit(spec("million"))
    psql(stack, "postgres", "CHECKPOINT")
    took = bench_api(stack, "post", f"/v1/campaigns/{cid}/parts?last=true", stack.dir + "/parts.ndjson")[0] / 1e6
    began = time.monotonic()
    taken(stack, cid)
    return env, cid, took, peer, time.monotonic() - began


def taken(stack, cid):
    """The leader holds every part; the counters say so too."""
    wait_for(lambda: metric(stack, "droverd_parts_waiting") == PARTS, 60, "a million waiting parts")
    if stack.api("GET", f"/campaigns/{cid}")["parts"]["waiting"] != PARTS:
        sys.exit("bench_system: the counters do not count a million parts")


def rss_mb(stack):
    with open(f"/proc/{stack.procs['droverd0'].pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


def metric(stack, name):
    text = stack.raw("GET", "/metrics")[1].decode()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))


def tick_us(stack):
    """The mean tick over some seconds with nothing to do."""
    def both():
        return metric(stack, "droverd_ticks_total"), metric(stack, "droverd_tick_microseconds_total")
    n0, us0 = both()
    n1, us1 = wait_for(lambda: (v := both())[0] >= n0 + 10 and v, 60, "ticks", step=0.2)
    return (us1 - us0) / (n1 - n0), n1 - n0


def restart(stack, env, cid):
    """Seconds from the start of a droverd, the last one killed, to a leader that holds every part."""
    stack.kill("droverd0")
    began = time.monotonic()
    stack.start_droverd(env=env, ready=False)
    wait_for(lambda: metric(stack, "droverd_parts_waiting") == PARTS, 60, "a leader", step=0.02)
    return time.monotonic() - began


def page_paths(stack, cid):
    """Paths of pages of a hundred, at the front and behind 200,000 and 400,000 parts, of waiting parts and of a state none is in."""
    token, paths = "", []
    for i in range(401):
        if i % 200 == 0:
            for state in ("waiting", "done", "active"):
                paths.append(f"/v1/campaigns/{cid}/parts?state={state}&page_size=100{token}")
        page = json.loads(stack.raw("GET", f"/v1/campaigns/{cid}/parts?page_size=1000{token}")[1])
        token = "&page_token=" + page["next_page_token"]
    return paths


def parts():
    subprocess.run(["sync"], check=False)
    with Stack("bench-parts", quotas={"ml.c5.xlarge": 0}, parts=1, rows=1, lease_us=10000000,
               env={"DROVER_TICK_INTERVAL_US": "1000000", "DROVER_OBSERVE_INTERVAL_US": "10000000", "DROVER_QUOTA_INTERVAL_US": "300000000"}) as stack:
        make_parts(stack.dir)
        stack.start_pg("-c shared_buffers=256MB -c max_wal_size=4GB -c min_wal_size=256MB -c checkpoint_timeout=15min -c wal_compression=lz4")
        stack.start_local()
        took, peers, rss, behind = [], [], [], []
        for i in range(RUNS):
            env, cid, seconds, peer, late = insert_run(stack, i)
            behind.append(late)
            took.append(seconds)
            peers.append(peer)
            rss.append(rss_mb(stack))
            if i < RUNS - 1:
                stack.kill("droverd0", signal.SIGTERM)
                psql(stack, "postgres", f"DROP DATABASE bench{i} WITH (FORCE)")
        size = os.path.getsize(stack.dir + "/parts.ndjson")
        mid = statistics.median(took)
        put("parts_insert_per_s", round(PARTS / mid), "1/s", PARTS, f"POST of {size} bytes, first byte to 201, median of {RUNS} campaigns: "
            f"{', '.join(f'{v:.2f}' for v in took)} s; COPY of the same rows into one bare table and its key: {', '.join(f'{v:.2f}' for v in peers)} s, "
            f"so {statistics.median(peers) / mid:.2f} of COPY")
        put("parts_taken_ms", round(statistics.median(behind) * 1000), "ms", RUNS, "from the 201 to a leader with 1 M parts more in its queue, a tick a second; "
            f"median of {', '.join(f'{v:.2f}' for v in behind)} s")
        psql(stack, f"bench{RUNS - 1}", "VACUUM (ANALYZE);\nCHECKPOINT")  # what PostgreSQL would do by and by: the figures are of a store at rest
        summary_and_pages(stack, cid)
        tick, n = tick_us(stack)
        put("tick_us", round(tick), "us", n, "mean tick of a leader with 1 M waiting parts and nothing to start")
        leads = [restart(stack, env, cid) for _ in range(RUNS)]
        put("restart_to_leader_ms", round(statistics.median(leads) * 1000), "ms", RUNS, f"kill -9, start, leading with 1 M parts; median of {', '.join(f'{v:.2f}' for v in leads)} s")
        taken(stack, cid)
        rss.append(rss_mb(stack))
        put("droverd_rss_mb", round(max(rss), 1), "MB", len(rss), f"VmRSS of the leader with 1 M waiting parts, after each POST and after a restart: {', '.join(f'{v:.0f}' for v in rss)}; the largest")


def summary_and_pages(stack, cid):
    runs = [bench_api(stack, "get", f"/v1/campaigns/{cid}", 4000) for _ in range(RUNS)]
    floor = [bench_api(stack, "get", "/livez", 4000) for _ in range(RUNS)]
    put("summary_get_us_p99", statistics.median(r[1] for r in runs), "us", 4000 * RUNS, f"GET of a campaign of 1 M parts, keep-alive, median of {RUNS} runs: "
        f"{', '.join(str(r[1]) for r in runs)}; p50 {statistics.median(r[0] for r in runs)}; /livez beside it, p50 / p99: "
        f"{statistics.median(f[0] for f in floor)} / {statistics.median(f[1] for f in floor)}")
    pages = [bench_api(stack, "get", path, 100) for path in page_paths(stack, cid)]
    put("parts_page_ms_p99", round(max(p[1] for p in pages) / 1000, 1), "ms", 100 * len(pages), "GET of 100 parts, 3 depths x 3 states, the worst of them; p50 of each: "
        f"{', '.join(f'{p[0] / 1000:.1f}' for p in pages)}")


def main():
    what = sys.argv[1:] or ["slots", "parts"]
    if "slots" in what:
        slots()
    if "parts" in what:
        parts()


if __name__ == "__main__":
    main()
