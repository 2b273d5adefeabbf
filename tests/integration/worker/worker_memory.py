#!/usr/bin/python3
"""Aim: back-pressure bounds memory: when a stage stands still, the stages before it wait and nothing piles
up. Method: 512 transfers of bodies of 20 MB while decoders are stopped; pictures that do not shrink while
the bucket stalls; the sum of all processes' proportional sets, shared memory counted once, is compared
with the bytes the server sent and with _progress.json.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker.index import *

tap = Tap()
CEILING = 250e6 if VARIANT == "release" else 1e12
BIG = 20 << 20


def memory(pid):
    total = 0
    for p in [pid] + descendants(pid):
        try:
            total += [int(x.split()[1]) * 1024 for x in open("/proc/%d/smaps_rollup" % p) if x.startswith("Pss:")][0]
        except OSError:
            pass
    return total


class Peak(threading.Thread):
    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.go_on = pid, 0, True
        self.start()

    def run(self):
        while self.go_on:
            self.peak = max(self.peak, memory(self.pid))
            time.sleep(0.05)


def progress(folder):
    try:
        return load(folder, "_progress.json")
    except (OSError, ValueError):
        return {}


def still(value, seconds=20, same=1):
    """Wait until value() is unchanged for this long; returns it."""
    last, since, end = None, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        v = value()
        if v != last:
            last, since = v, time.monotonic()
        elif time.monotonic() - since > same:
            return v
        time.sleep(0.05)
    return value()


def test_large_bodies(d):
    server = Server()
    picture = encode(photo(300, 200, 1), "JPEG")
    body = picture + bytes(BIG - len(picture))
    sent = [0]

    def answer(h):
        h.send_response(200)
        h.send_header("Content-Type", "image/jpeg")
        h.send_header("Content-Length", str(len(body)))
        h.end_headers()
        try:
            for at in range(0, len(body), 65536):
                n = h.wfile.write(body[at:at + 65536])
                with server.lock:
                    sent[0] += n
        except OSError:
            h.close_connection = True
    rows = 560
    for i in range(rows):
        server.routes["/%d.jpg" % i] = answer
    part = d + "/large.parquet"
    make_parquet(part, [{"URL": server.url("/%d.jpg" % i)} for i in range(rows)], {"URL": "VARCHAR"})
    out = d + "/large"
    p = start(["--parquet", part, "--output", out, "--number_sample_per_shard", 1000, "--allow-net", server.net, "--thread_count",
               256, "--host_connections", 512, "--timeout", 600, "--processes_count", 2, "--progress_interval", 1])
    wait_for(lambda: len(descendants(p.pid)) == 3)
    for c in descendants(p.pid)[1:]:
        os.kill(c, signal.SIGSTOP)
    peak = Peak(p.pid)
    tap.ok(wait_for(lambda: progress(out).get("transfers", 0) >= 508, 60), "512 transfers are open, but for a few that have all", progress(out))
    fetched = still(lambda: progress(out).get("bytes_fetched"))
    now = memory(p.pid)
    early = progress(out)["rows_done"]  # before all decoders stood
    tap.ok(fetched <= (64 << 20) + BIG * (1 + early), "with decoders stopped %.0f MB came in" % (fetched / 1e6), (fetched, early))
    tap.ok(peak.peak <= CEILING, "and all processes have %.0f MB, %.0f at most" % (now / 1e6, peak.peak / 1e6))
    told = lambda: abs(progress(out)["memory_bytes"] - memory(p.pid)) < 0.2 * memory(p.pid) + 8e6
    tap.ok(VARIANT != "release" or wait_for(told, 30), "which _progress.json says too", (progress(out), memory(p.pid)))
    for c in descendants(p.pid)[1:]:
        os.kill(c, signal.SIGCONT)
    tap.ok(wait_for(lambda: progress(out).get("successes", 0) >= 30, 60), "they go on once decoders do", progress(out))
    peak.go_on = False
    tap.ok(peak.peak <= CEILING, "%.0f MB at most while they come through" % (peak.peak / 1e6))
    p.terminate()
    p.communicate(timeout=patience(100))
    tap.ok(p.returncode == 143, "and a stop in the middle of it is one")


def test_bucket_stalls(d, local, per):
    server = Server()
    noise = [encode(np.random.RandomState(i).randint(0, 255, (300, 300, 3), np.uint8), "PNG") for i in range(4)]
    rows = 6000
    for i in range(rows):
        server.serve("/%d.png" % i, noise[i % 4], "image/png")
    part = d + "/stall.parquet"
    make_parquet(part, [{"URL": server.url("/%d.png" % i)} for i in range(rows)], {"URL": "VARCHAR"})
    name = "stall%d" % per
    folder = local.buckets + "/data/" + name
    local.faults({"operation": "UploadPart", "kind": "slow", "times": 1000, "delay_seconds": 20})
    p = start(["--parquet", part, "--output", "s3://data/" + name, "--number_sample_per_shard", per, "--allow-net", server.net,
               "--thread_count", 256, "--host_connections", 512, "--processes_count", 2, "--progress_interval", 1, "--resize_mode",
               "no", "--encode_format", "png", "--encode_quality", 0, "--stop_seconds", 2], env=local.env())
    peak = Peak(p.pid)
    tap.ok(wait_for(lambda: any(r["operation"] == "UploadPart" and name in r["name"] for r in local.wire()), 60), "the bucket stalls")
    fetched = still(lambda: progress(folder).get("bytes_fetched", -1))
    peak.go_on = False
    tap.ok(peak.peak <= CEILING, "shards of %d: %.0f MB came in, %.0f MB at most" % (per, fetched / 1e6, peak.peak / 1e6),
           progress(folder))
    p.terminate()
    p.communicate(timeout=patience(60))
    local.faults()


def test_open_shards(d, local):
    """One row of each shard waits for a silent host, so many shards are open, each with an upload begun."""
    stray = local.uploads()  # of the stalled bucket: a stalled request cannot be aborted
    server = Server()
    noise = [encode(np.random.RandomState(i).randint(0, 255, (300, 300, 3), np.uint8), "PNG") for i in range(4)]
    rows, per = 4000, 20
    for i in range(rows):
        if i % per:
            server.serve("/%d.png" % i, noise[i % 4], "image/png")
        else:
            server.routes["/%d.png" % i] = lambda h: time.sleep(60)  # a server that says nothing
    part = d + "/open.parquet"
    make_parquet(part, [{"URL": server.url("/%d.png" % i)} for i in range(rows)], {"URL": "VARCHAR"})
    p = start(["--parquet", part, "--output", "s3://data/open", "--number_sample_per_shard", per, "--allow-net", server.net,
               "--thread_count", 256, "--host_connections", 1024, "--processes_count", 2, "--progress_interval", 1, "--resize_mode",
               "no", "--encode_format", "png", "--encode_quality", 0, "--stop_seconds", 20], env=local.env())
    peak = Peak(p.pid)
    folder = local.buckets + "/data/open"
    tap.ok(wait_for(lambda: progress(folder).get("rows_done", 0) > 0, 60), "rows are done")
    n = still(lambda: progress(folder).get("rows_done"), 30, 3)
    peak.go_on = False
    tap.ok(peak.peak <= CEILING, "%d rows of open shards: %.0f MB at most" % (n, peak.peak / 1e6), progress(folder))
    p.terminate()
    p.communicate(timeout=patience(60))
    tap.ok(p.returncode == 143 and local.uploads() == stray, "a stop leaves no upload", local.uploads())


with Folder() as d:
    local = Local(d)
    try:
        test_large_bodies(d)
        test_bucket_stalls(d, local, 1000)
        test_bucket_stalls(d, local, 50)
        test_open_shards(d, local)
    finally:
        local.stop()
sys.exit(tap.done())
