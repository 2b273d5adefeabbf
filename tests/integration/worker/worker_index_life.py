#!/usr/bin/python3
"""Aim: a stopped, killed or concurrent index run leaves nothing that looks complete, and the next run makes
the same bytes as an undisturbed run, in the same memory for ten times the shards. Method: SIGKILL and
SIGTERM as output grows, several writers at once, drover-local as an S3 that loses, truncates and delays
replies.
"""
import collections
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker.index import *

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


def resumed(se):
    """Shards the run found done, by its log."""
    return max([json.loads(x)["shards_kept"] for x in se.splitlines() if '"resumed"' in x] + [0])


def load_checkpoint(folder):
    """Its first line; None when there is no complete line."""
    try:
        with open(folder + "/_checkpoint", "rb") as f:
            return json.loads(f.readline())
    except (OSError, ValueError):
        return None


def test_life(d):
    root = d + "/big"
    big_corpus(root)
    want_out = d + "/big-want"
    rc, so, se = index(["--input", root, "--output", want_out, "--sample", "0.01"])
    tap.ok(rc == 0 and load(want_out, "summary.json")["pairs"] == 480000, "240 shards of 2000 pairs", se)
    want = digest(want_out), digest(want_out, "sample.jsonl")
    out = d + "/life"
    kept, ends = [0], []

    def length():
        """Of the index under its temporary name."""
        try:
            return max([os.path.getsize(os.path.join(out, n)) for n in os.listdir(out) if n.endswith("-index.jsonl")] + [0])
        except OSError:
            return 0

    for i in range(8):
        least = length() + (3 << 20)
        p = index_start(["--input", root, "--output", out, "--sample", "0.01", "--threads", "1", "--read-mode", "stream"])
        wait_for(lambda: length() >= least or p.poll() is not None, 10)
        p.send_signal(signal.SIGKILL if i % 2 else signal.SIGTERM)
        so, se = p.communicate()
        if p.returncode == 0:
            break
        ends.append(p.returncode)
        kept.append(resumed(se))
        names = os.listdir(out)
        left = sorted(n.split("-", 3)[-1] for n in names)
        if "index.jsonl" in names or "_manifest.json" in names or (p.returncode == 143 and left != [
                "_checkpoint", "_progress.json", "index.jsonl", "sample.jsonl"]):
            tap.ok(False, "nothing that looks whole is left after %d" % p.returncode, names)
        if i % 2 == 0:  # finished work is not read again; a second reading would be reported
            for s in range(load_checkpoint(out)["shards_done"]):
                shard = root + "/%05d.tar" % s
                was = os.stat(shard)
                os.unlink(shard)
                open(shard, "w").write("gone")
                os.truncate(shard, was.st_size)  # with another size or time the index would begin again
                os.utime(shard, ns=(was.st_atime_ns, was.st_mtime_ns))
    tap.ok(ends.count(-9) >= 2 and ends.count(143) >= 2, "stopped and killed %d times" % len(ends), se)
    tap.ok(kept == sorted(kept) and kept[-1] > 40, "each run goes on where the last saved", kept)
    rc, so, se = index(["--input", root, "--output", out, "--sample", "0.01"])
    tap.ok(rc == 0 and (digest(out), digest(out, "sample.jsonl")) == want, "and the index is the same after all", se)
    a, b = load(out, "summary.json"), load(want_out, "summary.json")
    tap.eq({k: a[k] for k in a if k not in ("bytes_read", "shards_streamed")},
           {k: b[k] for k in b if k not in ("bytes_read", "shards_streamed")}, "and so is what was counted")
    tap.eq(sorted(os.listdir(out)), sorted(os.listdir(want_out)), "with nothing else beside it")
    shutil.rmtree(root)
    big_corpus(root)
    rc, so, se = index(["--input", root, "--output", out])
    tap.ok(rc == 0 and "already finished" in so, "finished is finished", se)
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
        p.communicate(timeout=patience(60))
    rc, so, se = index(["--input", root, "--output", d + "/two"])
    tap.ok(rc == 0 and digest(d + "/two") == want[0] and sum(p.returncode == 0 for p in ps) <= 3,
           "three at once on one output: one whole index", [p.returncode for p in ps])


def slow_input(local, shards=48):
    """Shards in a bucket, three lines in each of which one is broken, with captions that fill parts of an upload."""
    root = local.buckets + "/data/many"
    for s in range(shards):
        write_tar("%s/%02d.tar" % (root, s), [m for i in range(3) for m in sample("%02d%02d" % (s, i), i, caption="c" * 300000)
                                              if (i, m[0][-3:]) != (1, "txt")])
    return ["--input", "s3://data/many", "--path-prefix", "", "--sample", "0.5", "--threads", 1, "--checkpoint_seconds", 1]


def slowly(local):
    local.faults({"operation": "GetObject", "name_contains": ".tar", "kind": "slow", "times": 10000, "delay_seconds": 0.15})


def interrupted(local, args, folder, sig, at, out):
    """A run that gets the signal once a checkpoint lists that many shards as done."""
    at = max(at, (load_checkpoint(folder) or {}).get("shards_done", 0) + 3)
    p = index_start(args + ["--output", out], env=local.env())
    if not wait_for(lambda: ((load_checkpoint(folder) or {}).get("shards_done", 0) >= at) or p.poll() is not None):
        tap.ok(False, "a checkpoint of %d shards" % at)
    p.send_signal(sig)
    so, se = p.communicate(timeout=patience(60))
    return p.returncode, se


NAMES = ("index.jsonl", "sample.jsonl", "broken.jsonl")


def test_resume(d, local, kind):
    """Killed and stopped while the bucket is slow; kind: where the output goes."""
    args = slow_input(local)
    if not os.path.exists(d + "/want/_manifest.json"):
        rc, so, se = index(args + ["--output", d + "/want"], env=local.env())
        tap.ok(rc == 0 and load(d + "/want", "summary.json")["outcomes"]["no txt"] == 48, "48 shards in a bucket", se)
    want = [digest(d + "/want", n) for n in NAMES]
    out, folder = (d + "/resume", d + "/resume") if kind == "folder" else ("s3://data/resume", local.buckets + "/data/resume")
    slowly(local)
    before = len(local.wire())
    kept = []
    for i, sig in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)):
        rc, se = interrupted(local, args, folder, sig, 12 * i + 10, out)
        kept.append(resumed(se))
        tap.ok(rc == (-9 if sig == signal.SIGKILL else 143), "%s: ends with %d" % (kind, rc), se)
    local.faults()
    rc, so, se = index(args + ["--output", out], env=local.env())
    kept.append(resumed(se))
    tap.ok(rc == 0 and kept[0] == 0 and all(k >= 12 * i + 10 for i, k in enumerate(kept[1:])), "%s: each goes on from the checkpoint" % kind,
           "%s %s" % (kept, se))
    tap.eq([digest(folder, n) for n in NAMES], want, "%s: the index, the sample and the broken ones are the same bytes" % kind)
    tap.eq(load(folder, "summary.json")["outcomes"], load(d + "/want", "summary.json")["outcomes"], "%s: what was counted too" % kind)
    wire = local.wire()[before:]
    gets = collections.Counter(r["name"] for r in wire if r["operation"] == "GetObject" and r["name"].endswith(".tar"))
    again = sum(gets.values()) - 48
    tap.ok(len(gets) == 48 and again <= 40, "%s: %d shards were read again, not %d" % (kind, again, sum(kept)), gets)
    tap.ok(not [n for n in os.listdir(folder) if n[0] == "." or n == "_checkpoint"], "%s: nothing else is left" % kind, os.listdir(folder))
    if kind == "s3":
        parts = [r for r in wire if r["operation"] == "UploadPart"]
        tap.ok(len([r for r in wire if r["operation"] == "CreateMultipartUpload"]) == 2 and len(parts) >= 5,
               "s3: one upload for each file, gone on with", len(parts))
        tap.eq(local.uploads(), [], "s3: no upload is left open")


def test_resume_rows(d, local):
    """With --rows too; another number of rows is another index."""
    args, out = slow_input(local) + ["--rows", 69], d + "/resume-rows"
    slowly(local)
    rc, se = interrupted(local, args, out, signal.SIGKILL, 4, out)
    local.faults()
    again, so, se = index(args + ["--output", out], env=local.env())
    s = load(out, "summary.json") or {}
    tap.ok(rc == -9 and again == 0 and resumed(se) >= 4, "rows: goes on from the checkpoint", "%d %d %s" % (rc, again, se))
    tap.eq((lines(out), s.get("shards_read"), s.get("outcomes", {}).get("no txt")), (lines(d + "/want")[:69], 35, 34),
           "rows: the first lines and what was counted up to there")
    slowly(local)
    rc, se = interrupted(local, args, out + "2", signal.SIGKILL, 4, out + "2")
    local.faults()
    again, so, se = index(args[:-1] + [3, "--output", out + "2"], env=local.env())
    tap.ok(rc == -9 and again == 0 and resumed(se) == 0 and lines(out + "2") == lines(d + "/want")[:3], "fewer rows begin anew", se)


def test_stall(d, local):
    """The bucket stalls while the index is stopped."""
    args = slow_input(local) + ["--output", "s3://data/stall"]
    folder = local.buckets + "/data/stall"
    ml = d + "/stall-ml"
    os.makedirs(ml + "/output")
    local.faults({"operation": "GetObject", "name_contains": ".tar", "kind": "slow", "times": 10000, "delay_seconds": 0.06},
                 {"operation": "UploadPart", "kind": "slow", "after": 1, "times": 99, "delay_seconds": 400})
    before = len(local.wire("UploadPart"))
    p = index_start(args + ["--stop_seconds", 2], env=local.env(), ml_root=ml)
    tap.ok(wait_for(lambda: len(local.wire("UploadPart")) >= before + 2), "the bucket stalls under the index")
    p.terminate()
    so, se = p.communicate(timeout=patience(120))
    failure = open(ml + "/output/failure").read() if os.path.exists(ml + "/output/failure") else ""
    tap.ok(p.returncode == 143 and "out of time" in se and failure.startswith("stopped: "),
           "SIGTERM is carried out all the same, and said", "%d %s %s" % (p.returncode, se, failure))
    kept = (load_checkpoint(folder) or {}).get("shards_done", 0)
    local.faults()
    rc, so, se = index(args, env=local.env())
    tap.ok(rc == 0 and resumed(se) == kept > 0, "the next run goes on from the last time it was saved", "%d %s" % (kept, se))
    tap.eq([digest(folder, n) for n in NAMES], [digest(d + "/want", n) for n in NAMES], "and the index is right")
    tap.eq(local.uploads(), [], "with no upload left")


def test_end_fails(d, local):
    """The bucket cannot be reached while the output is published: the next run makes it of nothing but the input."""
    root = local.buckets + "/data/end-in"
    for s in range(4):
        write_tar("%s/%d.tar" % (root, s), [m for i in range(3) for m in sample("%d%d" % (s, i), i)])
    args = ["--input", "s3://data/end-in", "--path-prefix", ""]
    rc, so, se = index(args + ["--output", d + "/end-want"], env=local.env())
    want = digest(d + "/end-want")
    names = ("index.jsonl", "summary.json", "_manifest.json")
    outs = ["end-" + n.partition(".")[0] for n in names]
    local.faults(*({"operation": "PutObject", "name_contains": o + "/" + n, "kind": "drop_before", "times": 100000} for o, n in zip(outs, names)))
    runs = [index_start(args + ["--output", "s3://data/" + o], env=local.env()) for o in outs]
    ended = [finish(p, 400) for p in runs]
    local.faults()
    for name, out, (rc, so, se) in zip(names, outs, ended):
        folder = local.buckets + "/data/" + out
        tap.ok(rc == 75 and not os.path.exists(folder + "/_manifest.json") and not os.path.exists(folder + "/_checkpoint"),
               "%s cannot be written: the run fails and leaves nothing to go on with" % name, "%d %s" % (rc, se))
        rc, so, se = index(args + ["--output", "s3://data/" + out], env=local.env())
        tap.ok(rc == 0 and resumed(se) == 0 and digest(folder) == want, "%s: the next run's index is whole" % name, "%d %s" % (rc, se))

    folder = local.buckets + "/data/end-gone"
    local.faults({"operation": "PutObject", "name_contains": "end-gone/summary.json", "kind": "slow", "times": 1, "delay_seconds": 3})
    p = index_start(args + ["--output", "s3://data/end-gone"], env=local.env())
    tap.ok(wait_for(lambda: os.path.exists(folder + "/summary.json")), "the summary follows the index")
    os.unlink(folder + "/index.jsonl")
    rc, so, se = finish(p)
    tap.ok(rc == 1 and "'index.jsonl' has -1 bytes" in se and not os.path.exists(folder + "/_manifest.json"),
           "an index that somebody removes before the manifest is no finished output", "%d %s" % (rc, se))
    local.faults()

    def forget(folder):
        line, nl, rest = open(folder + "/_checkpoint", "rb").read().partition(b"\n")
        c = json.loads(line)
        c["files"] = [{}, {}, {}]
        open(folder + "/_checkpoint", "wb").write(json.dumps(c).encode() + b"\n")
    args, out = slow_input(local), d + "/no-files"
    slowly(local)
    rc, se = interrupted(local, args, out, signal.SIGTERM, 5, out)
    forget(out)
    local.faults()
    rc, so, se = index(args + ["--output", out], env=local.env())
    tap.ok(rc == 0 and "'index.jsonl' was not saved" in se and [digest(out, n) for n in NAMES] == [digest(d + "/want", n) for n in NAMES],
           "a checkpoint without the state of its files, as an earlier release left it, is not gone on from", "%d %s" % (rc, se))


def test_not_resumed(d, local):
    """Output that cannot be continued is started again and comes out right."""
    args = slow_input(local)
    want = [digest(d + "/want", n) for n in NAMES]

    def anew(name, out, folder, change, word, more=(), same_bytes=True, at=5):
        slowly(local)
        rc, se = interrupted(local, args, folder, signal.SIGTERM, at, out)
        tap.ok(rc == 143 and load_checkpoint(folder), "%s: stopped with a checkpoint" % name, se)
        change(folder)
        local.faults()
        rc, so, se = index(args + ["--output", out] + list(more), env=local.env())
        tap.ok(rc == 0 and resumed(se) == 0 and '"restarted_from_beginning"' in se and word in se, "%s: begun anew" % name, "%d %s" % (rc, se))
        tap.ok(not same_bytes or [digest(folder, n) for n in NAMES] == want, "%s: and right" % name)
        tap.ok(not [n for n in os.listdir(folder) if n[0] == "." or n == "_checkpoint"] and local.uploads() == [],
               "%s: nothing is left of the first" % name, os.listdir(folder))

    def tmp(folder):
        return [os.path.join(folder, n) for n in os.listdir(folder) if n.endswith("-index.jsonl")][0]

    def cut(folder):
        os.truncate(tmp(folder), os.path.getsize(tmp(folder)) - 1)

    def hurt(folder):
        text = open(folder + "/_checkpoint", "rb").read()
        open(folder + "/_checkpoint", "wb").write(text[:len(text) // 2])
    anew("other settings", d + "/a1", d + "/a1", lambda f: None, "other settings", ["--fields", "path,offset"], False)
    anew("the file is gone", d + "/a2", d + "/a2", lambda f: os.unlink(tmp(f)), "cannot open")
    anew("the file is shorter", d + "/a3", d + "/a3", cut, "shorter")
    anew("half a checkpoint", d + "/a4", d + "/a4", hurt, "restarted_from_beginning")
    s3 = local.buckets + "/data/a5"
    anew("the uploads are gone", "s3://data/a5", s3, lambda f: shutil.rmtree(local.root + "/state/uploads"), "upload", at=20)

    out = d + "/alive"
    slowly(local)
    p = index_start(args + ["--output", out], env=local.env())
    tap.ok(wait_for(lambda: (load_checkpoint(out) or {}).get("shards_done", 0) >= 5), "one that lives has saved")
    p.send_signal(signal.SIGSTOP)
    local.faults()
    rc, so, se = index(args + ["--output", out], env=local.env())
    tap.ok(rc == 0 and "is being written" in se and [digest(out, n) for n in NAMES] == want, "another does not take its files", se)
    p.send_signal(signal.SIGCONT)
    so, se = p.communicate(timeout=patience(60))
    tap.ok(p.returncode == 1 and [digest(out, n) for n in NAMES] == want, "and the first finds that it came too late", se)
    tap.ok(not [n for n in os.listdir(out) if n[0] == "." or n == "_checkpoint"], "nothing of it is left", os.listdir(out))


def test_memory(d):
    """The same memory for ten times the shards."""
    peaks = []
    for shards in (24, 240):
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
    rc, so, se = index(args + ["--output", d + "/wide"], env=local.env())
    want = digest(d + "/wide")
    local.faults({"operation": "GetObject", "kind": "half_body", "probability": 0.3, "seed": 5},
                 {"operation": "UploadPart", "kind": "error_503", "probability": 0.4, "seed": 6},
                 {"operation": "UploadPart", "kind": "drop_after", "times": 1},
                 {"operation": "CompleteMultipartUpload", "kind": "drop_after", "times": 1},
                 {"operation": "ListObjectsV2", "kind": "error_500", "times": 2})
    rc, so, se = index(args + ["--output", "s3://data/wide2"], env=local.env())
    tap.ok(rc == 0 and digest(local.buckets + "/data/wide2") == want, "requests fail and replies are lost: the same index", se)
    tap.eq(local.uploads(), [], "no upload is left open")

    local.faults({"operation": "UploadPart", "kind": "slow", "after": 1, "times": 9, "delay_seconds": 2})
    n = len([r for r in local.wire() if r["operation"] == "UploadPart"])
    p = index_start(args + ["--output", "s3://data/stopped"], env=local.env())
    tap.ok(wait_for(lambda: len([r for r in local.wire() if r["operation"] == "UploadPart"]) > n), "a part is on its way")
    p.terminate()
    so, se = p.communicate(timeout=patience(120))
    out = local.buckets + "/data/stopped"
    tap.ok(p.returncode == 143, "SIGTERM ends it", "%d %s" % (p.returncode, se))
    # It may have been about to publish: then only its saved state exists.
    left = [x for x in os.listdir(out) if x != "_progress.json"]
    tap.eq((local.uploads(), left), (["stopped/index.jsonl"], ["_checkpoint"]) if left else ([], []),
           "nothing is left of it but what the next run goes on with")
    local.faults()
    rc, so, se = index(args + ["--output", "s3://data/stopped"], env=local.env())
    tap.ok(rc == 0 and digest(out) == want and local.uploads() == [] and "_checkpoint" not in os.listdir(out),
           "and the next run makes the same index of it", se)

    root = local.buckets + "/data/slow"
    for s in range(5):
        write_tar("%s/%d.tar" % (root, s), sample("%04d" % s, s))
    local.faults({"operation": "GetObject", "name_contains": ".tar", "kind": "slow", "times": 5, "delay_seconds": 0.8})
    p = index_start(["--input", "s3://data/slow", "--output", d + "/slow", "--threads", 1, "--progress_interval", 1], env=local.env())

    def progress():
        try:
            return load(d + "/slow", "_progress.json")
        except (OSError, ValueError):
            return {"shards_done": 0}
    tap.ok(wait_for(lambda: 0 < progress()["shards_done"] < 5 and progress()["rows_in"] is None), "_progress.json tells on the way",
           progress())
    so, se = p.communicate(timeout=patience(60))
    tap.ok(p.returncode == 0 and "shards: 5 of 5 - pairs: 5" in so, "and a line for people at the end", so + se)

    big = [m for i in range(14) for m in sample("%04d" % i, i)]
    big = [(n, b[:32] + os.urandom(1 << 20) if n.endswith("jpg") else b) for n, b in big]
    path = local.buckets + "/data/changing/0.tar"
    write_tar(path, big)
    local.faults({"operation": "GetObject", "name_contains": "changing", "kind": "slow", "times": 1, "delay_seconds": 2})
    p = index_start(["--input", "s3://data/changing", "--output", d + "/changing"], env=local.env())
    tap.ok(wait_for(lambda: any(r["operation"] == "GetObject" and "changing" in r["name"] for r in local.wire())), "reading begins")
    write_tar(path + ".new", list(reversed(big)))
    os.rename(path + ".new", path)
    so, se = p.communicate(timeout=patience(60))
    tap.ok(p.returncode == 1 and "changed while it was read" in se and not os.path.exists(d + "/changing/index.jsonl"),
           "an object that changes under the reader is noticed", "%d %s" % (p.returncode, se))
    local.faults()


with Folder() as d:
    test_life(d)
    test_memory(d)
    local = Local(d)
    try:
        test_s3_faults(d, local)
        test_resume(d, local, "folder")
        test_resume(d, local, "s3")
        test_resume_rows(d, local)
        test_stall(d, local)
        test_end_fails(d, local)
        test_not_resumed(d, local)
    finally:
        local.stop()
sys.exit(tap.done())
