#!/usr/bin/python3
"""Aim: an index that was stopped, killed or crossed leaves nothing that looks whole, and what the next run makes
of it is what an undisturbed run makes, byte for byte, in the same memory for ten times the shards. Method: SIGKILL
and SIGTERM as output grows, several writers at once, drover-local as an S3 that loses, cuts and delays replies."""
import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from worker_kit.index import *

tap = Tap()


def big_corpus(root, shards=240, per=2000):
    """Hard links to one shard: many pairs, little disk."""
    os.makedirs(root)
    with tarfile.open(root + "/00000.tar", "w", format=tarfile.USTAR_FORMAT) as t:
        for i in range(per):
            for name, data in (("%06d.jpg" % i, b"x" * 30), ("%06d.json" % i, b"{\"width\":1,\"height\":1}"),
                               ("%06d.txt" % i, b"caption %d" % i)):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                t.addfile(info, io.BytesIO(data))
    for i in range(1, shards):
        os.link(root + "/00000.tar", root + "/%05d.tar" % i)


def test_life(d):
    root = d + "/big"
    big_corpus(root)
    want_out = d + "/big-want"
    rc, so, se = index(["--input", root, "--output", want_out, "--sample", "0.01"])
    tap.ok(rc == 0 and load(want_out, "summary.json")["pairs"] == 480000, "240 shards of 2000 pairs", se)
    want = digest(want_out), digest(want_out, "sample.jsonl")
    out = d + "/life"
    kills = stops = 0
    def begun(before, least):
        """A file of this run's has grown so far."""
        for n in os.listdir(out) if os.path.isdir(out) else []:
            try:
                if n.endswith("-index.jsonl") and n not in before and os.path.getsize(os.path.join(out, n)) >= least:
                    return True
            except OSError:
                pass
        return False

    for i in range(12):
        before = set(os.listdir(out)) if i else set()
        p = index_start(["--input", root, "--output", out, "--sample", "0.01", "--threads", "1", "--read-mode", "stream"])
        wait_for(lambda: begun(before, 1 << (10 + i)) or p.poll() is not None, 10)
        p.send_signal(signal.SIGKILL if i % 2 else signal.SIGTERM)
        so, se = p.communicate()
        if p.returncode == 0:
            break
        kills += p.returncode == -9
        stops += p.returncode == 143
        names = os.listdir(out)
        if "index.jsonl" in names or "_manifest.json" in names or (p.returncode == 143 and [n for n in names if n[0] == "."]):
            tap.ok(False, "nothing that looks whole is left after %d" % p.returncode, names)
    tap.ok(kills > 0 and stops > 0, "was killed %d and stopped %d times" % (kills, stops), se)
    rc, so, se = index(["--input", root, "--output", out, "--sample", "0.01"])
    tap.ok(rc == 0 and (digest(out), digest(out, "sample.jsonl")) == want, "and gives the same index after all", se)
    tap.eq(sorted(os.listdir(out)), sorted(os.listdir(want_out)), "with nothing else beside it")
    rc, so, se = index(["--input", root, "--output", out])
    tap.ok(rc == 0 and "finished already" in so, "finished is finished", se)
    rc, so, se = index(["--input", root, "--output", out], env={"DROVER_TASK": "9"})
    tap.ok(rc == 65 and "task ''" in se, "and whose it is counts", se)
    os.unlink(out + "/_manifest.json")
    open(out + "/sample.jsonl", "w").write("old")
    rc, so, se = index(["--input", root, "--output", out, "--threads", 3], env={"DROVER_TASK": "9", "DROVER_ATTEMPT": "4"})
    m = load(out, "_manifest.json")
    tap.ok(rc == 0 and digest(out) == want[0] and not os.path.exists(out + "/sample.jsonl") and (m["task"], m["attempt"]) ==
           ("9", "4"), "pieces without a manifest are begun anew", se)

    ps = [index_start(["--input", root, "--output", d + "/two"]) for _ in range(3)]
    for p in ps:
        p.communicate(timeout=60)
    rc, so, se = index(["--input", root, "--output", d + "/two"])
    tap.ok(rc == 0 and digest(d + "/two") == want[0] and sum(p.returncode == 0 for p in ps) <= 3,
           "three at once on one output: one whole index", [p.returncode for p in ps])


def test_memory(d):
    """The same memory for ten times the shards."""
    peaks = []
    for shards in (60, 600):
        root = d + "/mem%d" % shards
        os.makedirs(root)
        for i in range(shards):
            os.link(d + "/big/00000.tar", root + "/%05d.tar" % i)
        out = d + "/mem-out%d" % shards
        p = index_start(["--input", root, "--output", out, "--threads", "8"])
        _, status, usage = os.wait4(p.pid, 0)
        p.stdout.close()
        p.stderr.close()
        p.returncode = 0
        peaks.append(usage.ru_maxrss / 1024)
        tap.eq((status, load(out, "summary.json")["pairs"]), (0, shards * 2000), "%d shards" % shards)
        shutil.rmtree(out)
    if VARIANT == "release":
        tap.ok(peaks[1] < 150 and peaks[1] < peaks[0] + 24, "%.0f MB and %.0f MB at most" % tuple(peaks), peaks)


def wide_shards(d):
    """Two shards whose lines take more than two parts of an upload."""
    for s in range(2):
        write_tar("%s/%d.tar" % (d, s), [m for i in range(150) for m in sample("%04d" % i, i, caption="w" * 60000)])


def test_s3_faults(d, local):
    """Replies that are lost, cut or late; an object that changes; a stop in the middle of an upload."""
    args = ["--input", "s3://data/wide-in", "--path-prefix", ""]
    wide_shards(local.buckets + "/data/wide-in")
    rc, so, se = index(args + ["--output", d + "/wide"], env=local.env)
    want = digest(d + "/wide")
    local.faults({"operation": "GetObject", "kind": "half_body", "probability": 0.3, "seed": 5},
                 {"operation": "UploadPart", "kind": "error_503", "probability": 0.4, "seed": 6},
                 {"operation": "UploadPart", "kind": "drop_after", "times": 1},
                 {"operation": "CompleteMultipartUpload", "kind": "drop_after", "times": 1},
                 {"operation": "ListObjectsV2", "kind": "error_500", "times": 2})
    rc, so, se = index(args + ["--output", "s3://data/wide2"], env=local.env)
    tap.ok(rc == 0 and digest(local.buckets + "/data/wide2") == want, "requests fail and replies are lost: the same index", se)
    tap.eq(local.uploads(), [], "no upload is left open")

    local.faults({"operation": "UploadPart", "kind": "slow", "after": 1, "times": 9, "delay_seconds": 2})
    n = len([r for r in local.wire() if r["operation"] == "UploadPart"])
    p = index_start(args + ["--output", "s3://data/stopped"], env=local.env)
    tap.ok(wait_for(lambda: len([r for r in local.wire() if r["operation"] == "UploadPart"]) > n), "a part is on its way")
    p.terminate()
    began = time.monotonic()
    so, se = p.communicate(timeout=60)
    out = local.buckets + "/data/stopped"
    tap.ok(p.returncode == 143 and time.monotonic() - began < 20, "SIGTERM ends it soon", "%d %s" % (p.returncode, se))
    tap.eq((local.uploads(), [x for x in os.listdir(out) if x != "_progress.json"]), ([], []), "nothing is left of it")

    root = local.buckets + "/data/slow"
    for s in range(5):
        write_tar("%s/%d.tar" % (root, s), sample("%04d" % s, s))
    local.faults({"operation": "GetObject", "name_contains": ".tar", "kind": "slow", "times": 5, "delay_seconds": 0.8})
    p = index_start(["--input", "s3://data/slow", "--output", d + "/slow", "--threads", 1, "--progress_interval", 1], env=local.env)

    def progress():
        try:
            return load(d + "/slow", "_progress.json")
        except (OSError, ValueError):
            return {"shards_done": 0}
    tap.ok(wait_for(lambda: 0 < progress()["shards_done"] < 5 and progress()["rows_in"] is None), "_progress.json tells on the way",
           progress())
    so, se = p.communicate(timeout=60)
    tap.ok(p.returncode == 0 and "shards: 5 of 5 - pairs: 5" in so, "and a line for people at the end", so + se)

    big = [m for i in range(14) for m in sample("%04d" % i, i)]
    big = [(n, b[:32] + os.urandom(1 << 20) if n.endswith("jpg") else b) for n, b in big]
    path = local.buckets + "/data/changing/0.tar"
    write_tar(path, big)
    local.faults({"operation": "GetObject", "name_contains": "changing", "kind": "slow", "times": 1, "delay_seconds": 2})
    p = index_start(["--input", "s3://data/changing", "--output", d + "/changing"], env=local.env)
    tap.ok(wait_for(lambda: any(r["operation"] == "GetObject" and "changing" in r["name"] for r in local.wire())), "reading begins")
    write_tar(path + ".new", list(reversed(big)))
    os.rename(path + ".new", path)
    so, se = p.communicate(timeout=60)
    tap.ok(p.returncode == 1 and "changed while it was read" in se and not os.path.exists(d + "/changing/index.jsonl"),
           "an object that changes under the reader is noticed", "%d %s" % (p.returncode, se))
    local.faults()


with Folder() as d:
    test_life(d)
    test_memory(d)
    local = Local(d)
    try:
        test_s3_faults(d, local)
    finally:
        local.p.terminate()
        local.p.wait()
sys.exit(tap.end())
