#!/usr/bin/python3
"""Aim: incremental_mode works as documented, also when interrupted; retry_failed fetches only failed rows;
every setting of img2dataset is supported or refused with a reason. Method: outputs in folders and in
drover-local's S3, hosts that fail the first time, a worker stopped in the middle, keys and manifests
compared.
"""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *
from kit.worker.s3 import Local, manifest_faults

tap = Tap()
PHOTO = encode(photo(90, 70, 1), "JPEG")


def part_of(d, server, name, n, prefix):
    for i in range(n):
        server.serve("/%s%d" % (prefix, i), PHOTO)
    path = os.path.join(d, name + ".parquet")
    make_parquet(path, [{"url": server.url("/%s%d" % (prefix, i)), "caption": "%s %d" % (prefix, i)} for i in range(n)],
                 {"url": "VARCHAR", "caption": "VARCHAR"})
    return path


def go(server, part, out, *args, task=None):
    return run(["--parquet", part, "--output", out, "--number_sample_per_shard", 10, "--allow-net", server.net]
               + list(args), env={"DROVER_TASK": task} if task else None)


def captions(out):
    """key -> caption over all tars."""
    found = {}
    for f in sorted(os.listdir(out)):
        if f.endswith(".tar"):
            for key, s in samples(os.path.join(out, f)).items():
                found[key] = s["txt"].decode()
    return found


def test_overwrite(d, server):
    a, b = part_of(d, server, "a", 35, "a"), part_of(d, server, "b", 12, "b")
    out = d + "/over"
    tap.eq(go(server, a, out)[0], 0, "a first output")
    with open(out + "/keep.txt", "w") as f:
        f.write("not ours")
    long = "0" * 240 + "1.parquet"
    for name in ("notes.parquet", long):
        with open(os.path.join(out, name), "w") as f:
            f.write("not ours")
    for name in ("_manifest.json", "_mode.json", "_part.json"):
        with open(os.path.join(out, name), "w") as f:
            f.write("{")
    rc, so, se = go(server, a, out)
    tap.ok(rc == 65 and "_manifest.json" in se and "overwrite" in se, "a damaged manifest is named, with what helps", se)
    rc, so, se = go(server, b, out, "--incremental_mode", "overwrite")
    tap.ok(rc == 0, "overwritten by another part, with whatever is damaged", se)
    tap.eq(captions(out), {"%06d" % i: "b %d" % i for i in range(12)}, "nothing of the first is left")
    tap.eq(sorted(os.listdir(out)), sorted(["%05d%s" % (i, x) for i in (0, 1) for x in (".tar", ".parquet", "_stats.json")]
                                           + ["_manifest.json", "_part.json", "_progress.json", "keep.txt", "notes.parquet", long]),
           "what is not of a shard stays, the marker does not")
    tap.eq(load(out, "_manifest.json")["rows_in"], 12, "the manifest is the new one's")
    rc, so, se = go(server, a, out, "--incremental_mode", "overwrite", "--oom_shard_count", 3)
    rc2, so, se = go(server, b, out, "--incremental_mode", "overwrite", "--oom_shard_count", 5)
    os.unlink(os.path.join(out, long))
    tap.eq((rc, rc2, sorted(n for n in os.listdir(out) if n[0].isdigit()), len(captions(out))),
           (0, 0, sorted("%05d%s" % (i, x) for i in (0, 1) for x in (".tar", ".parquet", "_stats.json")), 12),
           "shards with another count of digits go, too")
    with open(d + "/bad.parquet", "w") as f:
        f.write("no parquet at all")
    rc, so, se = go(server, d + "/bad.parquet", out, "--incremental_mode", "overwrite")
    tap.ok(rc == 65 and len(captions(out)) == 12, "a part that cannot be read removes nothing", se)
    # A task's own interrupted overwrite continues; another task's starts again.
    server.hits.clear()
    rc, so, se = go(server, a, out, "--incremental_mode", "overwrite", task="7")
    rc2, so2, se2 = go(server, a, out, "--incremental_mode", "overwrite", task="7")
    tap.ok((rc, rc2) == (0, 0) and "already finished" in so2, "a finished task is not done again", so2 + se2)
    tap.eq(sum(server.hits.values()), 35, "so that each row was fetched once")
    os.unlink(out + "/_manifest.json")
    for f in ("00003.tar", "00003.parquet", "00003_stats.json"):
        os.unlink(os.path.join(out, f))
    with open(out + "/_mode.json", "w") as f:
        json.dump({"mode": "overwrite", "task": "7", "first": 0}, f)
    server.hits.clear()
    rc, so, se = go(server, a, out, "--incremental_mode", "overwrite", task="7")
    tap.eq((rc, sum(server.hits.values())), (0, 5), "an interrupted overwrite keeps its finished shards")
    begun = d + "/begun-over"
    os.makedirs(begun)
    open(os.path.join(begun, long), "w").write("not ours")
    with open(begun + "/_mode.json", "w") as f:
        json.dump({"mode": "overwrite", "task": "7", "first": 0}, f)
    rc, so, se = go(server, b, begun, "--incremental_mode", "overwrite", task="7")
    tap.ok(rc == 0 and len(captions(begun)) == 12, "one that had just begun goes on beside a file that only looks like a shard's", se)
    with open(out + "/_mode.json", "w") as f:
        json.dump({"mode": "overwrite", "task": "8", "first": 0}, f)
    server.hits.clear()
    rc, so, se = go(server, a, out, "--incremental_mode", "overwrite", task="9")
    tap.eq((rc, sum(server.hits.values())), (0, 35), "another task's marker does not stop it from removing")


def test_extend(d, server):
    a, b = part_of(d, server, "ea", 25, "a"), part_of(d, server, "eb", 12, "b")
    out = d + "/ext"
    tap.eq(go(server, a, out)[0], 0, "a first output to extend")
    rc, so, se = go(server, b, out, "--incremental_mode", "extend")
    want = {"%06d" % i: "a %d" % i for i in range(25)}
    want.update({"%06d" % (30 + i): "b %d" % i for i in range(12)})
    tap.ok(rc == 0, "extended by a second part", se)
    tap.eq(captions(out), want, "its shards and keys come after the largest there was")
    m = load(out, "_manifest.json")
    tap.eq((m["rows_in"], m["rows_out"], m["successes"], m["first_shard"], m["bytes"]),
           (12, 12, 12, 3, sum(o["size"] for o in m["objects"] if o["key"] >= "00003")), "the manifest counts what was added")
    tap.eq([(e["task"], e["first_shard"], e["rows_in"], e["rows_out"], e["successes"], e["bytes"]) for e in m["earlier"]],
           [("", 0, 25, 25, 25, sum(o["size"] for o in m["objects"] if o["key"] < "00003"))], "tells of what was there before")
    tap.eq((manifest_faults(out, False), len(m["objects"])), ([], 15), "and proves all shards")
    tap.eq(load(out, "00003_stats.json")["count"], 10, "stats have the number of their shard")
    tap.eq([r["key"] for r in read_parquet(out + "/00004.parquet")], ["000040", "000041"], "and the sidecars its keys")
    test_extend_begun(d, server, out)
    # Interrupted: the third part's first shard is there, then the worker was killed.
    gate = threading.Event()

    def held(h):
        gate.wait(20)
        h.answer(200, {}, PHOTO)
    c = part_of(d, server, "ec", 20, "c")
    for i in range(10, 20):
        server.routes["/c%d" % i] = held
    p = start(["--parquet", c, "--output", out, "--number_sample_per_shard", 10, "--allow-net", server.net,
               "--incremental_mode", "extend"], env={"DROVER_TASK": "3"})
    tap.ok(wait_for(lambda: os.path.exists(out + "/00005_stats.json")), "an extension is half done")
    p.send_signal(signal.SIGKILL)
    p.communicate()
    gate.set()
    rc, so, se = go(server, b, out, "--incremental_mode", "extend", task="4")
    tap.ok(rc != 0 and "_mode.json" in se, "meanwhile nobody else extends", "%d %s" % (rc, se))
    rc, so, se = go(server, c, out, "--incremental_mode", "extend", task="3")
    want.update({"%06d" % (50 + i): "c %d" % i for i in range(20)})
    tap.ok(rc == 0, "the next attempt ends it", se)
    tap.eq(captions(out), want, "without doubling a row")
    tap.ok("_mode.json" not in os.listdir(out), "and takes the marker away")
    rc, so, se = go(server, c, out, "--incremental_mode", "extend", task="3")
    tap.ok(rc == 0 and "already finished" in so, "a finished extension is not done again", so + se)
    rc, so, se = go(server, b, out)
    tap.ok(rc != 0 and "task '3'" in se, "incremental leaves another task's output alone", se)
    m = load(out, "_manifest.json")
    tap.eq((manifest_faults(out, False), [(e["task"], e["first_shard"]) for e in m["earlier"]], m["first_shard"]),
           ([], [("", 0), ("", 3)], 5), "the manifest proves all three parts")
    # Killed between the manifest and the end: the marker is still there.
    with open(out + "/_mode.json", "w") as f:
        json.dump({"mode": "extend", "task": "3", "first": 5}, f)
    server.hits.clear()
    rc, so, se = go(server, c, out, "--incremental_mode", "extend", task="3")
    tap.eq((rc, sum(server.hits.values()), os.path.exists(out + "/_mode.json")), (0, 0, False),
           "a marker left behind is taken away by its task")
    # By hand there is no task: an interrupted extension must not find its own manifest before itself.
    hand = d + "/hand"
    tap.eq(go(server, a, hand)[0] + go(server, b, hand, "--incremental_mode", "extend")[0], 0, "extended by hand")
    with open(hand + "/_mode.json", "w") as f:
        json.dump({"mode": "extend", "task": "", "first": 3}, f)
    rc, so, se = go(server, b, hand, "--incremental_mode", "extend")
    m = load(hand, "_manifest.json")
    tap.eq((rc, manifest_faults(hand, False), len(m["objects"]), [e["first_shard"] for e in m["earlier"]], len(captions(hand))),
           (0, [], 15, [0], 37), "interrupted after its manifest and done again: nothing is told twice")
    # A task that was extended since is still finished: doing it again would double its rows.
    rc, so, se = go(server, b, out, "--incremental_mode", "extend", task="4")
    with open(out + "/_mode.json", "w") as f:
        json.dump({"mode": "extend", "task": "5", "first": 9}, f)
    server.hits.clear()
    rc2, so2, se2 = go(server, c, out, "--incremental_mode", "extend", task="3")
    rc3, so3, se3 = go(server, c, out, task="3")
    tap.eq((rc, rc2, rc3, sum(server.hits.values()), os.path.exists(out + "/_mode.json")), (0, 0, 0, 0, True),
           "a task that was extended by another is finished, and another's marker stays")
    os.unlink(out + "/_mode.json")
    tap.eq((manifest_faults(out, False), len(load(out, "_manifest.json")["objects"])), ([], 27), "four parts, one manifest")
    # Output of unknown origin is not extended.
    data = open(out + "/00001.tar", "rb").read()
    for what in ("gone", "shorter"):
        if what == "gone":
            os.unlink(out + "/00001.tar")
        else:
            open(out + "/00001.tar", "wb").write(data[:-512])
        rc, so, se = go(server, b, out, "--incremental_mode", "extend", task="6")
        tap.ok(rc == 1 and "'00001.tar'" in se and not os.path.exists(out + "/_mode.json")
               and not os.path.exists(out + "/00009.tar"), "an earlier output with a tar %s is not extended" % what, "%d %s" % (rc, se))
    open(out + "/00001.tar", "wb").write(data)
    os.unlink(out + "/_manifest.json")
    rc, so, se = go(server, b, out, "--incremental_mode", "extend", task="6")
    m = load(out, "_manifest.json")
    tap.eq((rc, m["earlier"], [o["key"] for o in m["objects"]][0], len(m["objects"])), (0, [], "00009.parquet", 6),
           "of shards without a manifest nothing is said")


def test_extend_begun(d, server, out):
    """Killed between the marker and the entry of the record: the next attempt is compared with what it extends."""
    c, begun = part_of(d, server, "ebegun", 20, "begun"), d + "/begun"
    shutil.copytree(out, begun)
    with open(begun + "/_mode.json", "w") as f:
        json.dump({"mode": "extend", "task": "3", "first": 5}, f)
    rc, so, se = go(server, c, begun, "--incremental_mode", "extend", "--image_size", 64, task="3")
    tap.ok(rc == 65 and "setting image_size" in se, "an extension that had just begun does not go on with other settings", "%d %s" % (rc, se))
    rc, so, se = go(server, c, begun, "--incremental_mode", "extend", task="3")
    parts = load(begun, "_part.json")["parts"]
    tap.ok(rc == 0 and len(captions(begun)) == 57, "but goes on with its own", "%d %s" % (rc, se))
    tap.eq(([p["first_shard"] for p in parts], manifest_faults(begun, False)), ([0, 3, 5], []), "and has its entry")


def test_extend_early(d, server):
    """Extending an output whose own job is still at work: it would take its later shards' numbers."""
    a, b = part_of(d, server, "early", 30, "early"), part_of(d, server, "late", 12, "late")
    out, gate = d + "/early", threading.Event()

    def held(h):
        gate.wait(120)
        h.answer(200, {}, PHOTO)
    for i in range(20, 30):
        server.routes["/early%d" % i] = held
    p = start(["--parquet", a, "--output", out, "--number_sample_per_shard", 10, "--allow-net", server.net, "--timeout", 120])
    begun = wait_for(lambda: os.path.exists(out + "/00000_stats.json") and os.path.exists(out + "/00001_stats.json"))
    rc, so, se = go(server, b, out, "--incremental_mode", "extend")
    tap.ok(begun and rc != 0 and "2 of 3 shards" in se and not os.path.exists(out + "/_mode.json"), "an output that is being written is not extended",
           "%d %s" % (rc, se))
    gate.set()
    so, se = p.communicate()
    rc, so2, se2 = go(server, b, out, "--incremental_mode", "extend")
    tap.eq((p.returncode, rc, manifest_faults(out, False), len(captions(out))), (0, 0, [], 42), "but when it has ended, and no row is lost")


def test_extend_at_once(d, server):
    """Two that begin at once, each sees no other: one writes the marker, the other is refused and extends afterwards."""
    local = Local(d)
    try:
        parts = [part_of(d, server, "once%d" % i, 12, "once%d-" % i) for i in range(3)]
        args = ["--output", "s3://data/once", "--number_sample_per_shard", 10, "--allow-net", server.net]
        more = lambda i: args + ["--parquet", parts[i], "--incremental_mode", "extend"]  # noqa: E731
        task = lambda i: local.env(DROVER_TASK=str(i))  # noqa: E731
        tap.eq(run(args + ["--parquet", parts[0]], env=task(0))[0], 0, "a first output")
        local.faults({"operation": "GetObject", "name_contains": "_manifest.json", "kind": "slow", "delay_seconds": 4, "times": 4})
        both = [start(more(i), env=task(i)) for i in (1, 2)]
        ends = [finish(p) for p in both]
        lost = [(rc, se) for rc, so, se in ends if rc != 0]
        out = local.folder("data", "once")
        tap.ok(len(lost) == 1 and "another job" in lost[0][1] and "_mode.json" not in os.listdir(out) and len(captions(out)) == 24,
               "of two extensions at once one is done, the other refused", [(rc, se[-400:]) for rc, so, se in ends])
        local.faults()
        rcs = [run(more(i), env=task(i))[0] for i in (1, 2)]
        tap.eq((rcs, manifest_faults(out, True), sorted(captions(out).values())), ([0, 0], [], sorted("once%d- %d" % (k, i) for k in range(3) for i in range(12))),
               "and done by its next attempt: each row once")
    finally:
        local.stop()


def test_in_s3(d, server):
    """Extending and the second pass in S3, ETags and lost replies included."""
    local = Local(d)
    try:
        a, b = part_of(d, server, "sa", 25, "sa"), part_of(d, server, "sb", 12, "sb")
        for i in (3, 17):
            server.serve("/sa%d" % i, b"", status=503)

        def to(part, uri, *args, task=None):
            env = local.env(DROVER_TASK=task) if task else local.env()
            return run(["--parquet", part, "--output", uri, "--number_sample_per_shard", 10, "--allow-net", server.net]
                       + list(args), env=env)
        out = local.folder("data", "s")
        tap.eq(to(a, "s3://data/s", task="1")[0], 0, "a first output in S3")
        local.faults({"operation": "PutObject", "name_contains": "_m", "kind": "drop_after", "times": 2})
        rc, so, se = to(b, "s3://data/s/", "--incremental_mode", "extend", task="2")
        m = load(out, "_manifest.json")
        tap.ok(rc == 0 and local.hits() == 2 and manifest_faults(out, True) == [] and len(m["objects"]) == 15
               and m["earlier"][0]["task"] == "1", "extended, and proven by ETags", "%s %r" % (se, m))
        data = open(out + "/00001.tar", "rb").read()
        os.unlink(out + "/00001.tar")
        local.put("data/s/00001.tar", data[:600] + b"x" + data[601:])
        rc, so, se = to(b, "s3://data/s", "--incremental_mode", "extend", task="3")
        tap.ok(rc == 1 and "'00001.tar'" in se, "an object written anew is seen by its ETag", "%d %s" % (rc, se))
        local.put("data/s/00001.tar", data)
        for i in (3, 17):
            server.serve("/sa%d" % i, PHOTO)
        local.put("data/s/deeper/x.parquet", b"no parquet")
        local.put("data/s/.tmp.parquet", b"no parquet")
        temp = d + "/temp"
        os.makedirs(temp)
        local.faults({"operation": "GetObject", "name_contains": ".parquet", "kind": "half_body", "times": 2},
                     {"operation": "GetObject", "name_contains": ".parquet", "kind": "error_503", "after": 2, "times": 1})
        server.hits.clear()
        os.environ["TMPDIR"] = temp
        rc, so, se = to("s3://data/s", "s3://data/again", "--retry-failed")
        tap.ok(rc == 0 and local.hits() == 3, "a second pass over an output in S3, replies cut", "%d hits %s" % (local.hits(), se))
        tap.eq(dict(server.hits), {"/sa3": 1, "/sa17": 1}, "asks for what failed only")
        again = local.folder("data", "again")
        tap.eq((sorted(captions(again).values()), load(again, "_manifest.json")["rows_in"], manifest_faults(again, True)),
               (["sa 17", "sa 3"], 2, []), "and writes it with its captions")
        rc, so, se = to("s3://data/s/", d + "/folder", "--retry-failed")
        tap.eq((rc, sorted(captions(d + "/folder").values())), (0, ["sa 17", "sa 3"]), "from S3 into a folder too")
        for uri, dest, word in (("s3://data/nothing", "s3://data/x", "no sidecars"), ("s3://nope-bucket/x", "s3://data/x", "nope-bucket"),
                                ("s3://data/s/", "s3://data/s", "folder of its own"), ("s3://locked/s", "s3://data/x", "locked")):
            rc, so, se = to(uri, dest, "--retry-failed")
            tap.ok(rc in (2, 65, 77) and word in se, "refused: retry_failed of %s" % uri, "%d %s" % (rc, se))
        tap.eq(os.listdir(temp), [], "no temporary file is left")
    finally:
        os.environ.pop("TMPDIR", None)
        local.stop()


def test_slow_preparation(d, server):
    """A large earlier output in S3 is read, and removed, many objects at once, and that is told: the controller ends a job
    that tells nothing for long.
    """
    local = Local(d)
    try:
        part = part_of(d, server, "many", 40, "m")

        def to(part, name, *args):
            """(status, standard output, what the progress object said of the preparation)"""
            told, at = set(), local.folder("data", name, "_progress.json")
            p = start(["--parquet", part, "--output", "s3://data/" + name, "--number_sample_per_shard", 1, "--allow-net", server.net]
                      + list(args), env=local.env())
            while p.poll() is None:
                if os.path.exists(at):
                    r = load(local.folder("data", name), "_progress.json")
                    told.add((r.get("prepared"), r.get("to_prepare"), r["rows_in"], r["rows_done"]))
                time.sleep(0.05)
            rc, so, se = finish(p)
            return rc, so, {x for x in told if x[0] is not None}
        rc, so, told = to(part, "m")
        tap.eq((rc, told), (0, set()), "a short preparation leaves no trace")
        local.faults({"operation": "GetObject", "name_contains": ".parquet", "kind": "slow", "delay_seconds": 3, "times": 40})
        rc, so, told = to("s3://data/m", "m2", "--retry-failed", "--progress_interval", 1)
        tap.ok((rc, local.hits()) == (0, 40) and (32, 40, None, 0) in told and "read 32 of 40 objects" in so,
               "sidecars are read 32 at a time, and counted", "%d %r %s" % (rc, told, so))
        local.faults({"operation": "GetObject", "name_contains": "00003.parquet", "kind": "throttle", "times": 7})
        rc, so, told = to("s3://data/m", "m3", "--retry-failed")
        tap.eq((rc, local.hits()), (0, 7), "S3 that slows the readers down is waited for")
        told = open(local.folder("data", "m2", "_progress.json")).read()
        for what, task in (("a finished output", None), ("an output that another job writes", "5")):
            local.faults({"operation": "GetObject", "name_contains": "00003.parquet", "kind": "slow", "delay_seconds": 3, "times": 2})
            rc, so, se = run(["--parquet", "s3://data/m", "--output", "s3://data/m2", "--retry-failed", "--number_sample_per_shard", 1,
                              "--progress_interval", 1], env=dict(local.env(), **({"DROVER_TASK": task} if task else {})))
            tap.eq((rc, local.hits() > 0, open(local.folder("data", "m2", "_progress.json")).read()),
                   (65 if task else 0, True, told), "the progress of %s stays as it is" % what)
            if not task:
                os.unlink(local.folder("data", "m2", "_manifest.json"))
        foreign_progress(local, server)
        local.faults({"operation": "DeleteObject", "name_contains": ".parquet", "kind": "slow", "delay_seconds": 2, "times": 40})
        rc, so, told = to(part, "m", "--incremental_mode", "overwrite", "--progress_interval", 1)
        tap.ok((rc, local.hits()) == (0, 40) and (72, 120, None, 0) in told, "so are the objects that are removed", "%d %r %s" % (rc, told, so))
        tap.eq(to(part, "f", "--output_format", "files", "--number_sample_per_shard", 20)[0], 0, "an output of folders")
        local.faults({"operation": "DeleteObject", "name_contains": "/00000/", "kind": "slow", "delay_seconds": 2, "times": 60})
        rc, so, told = to(part, "f", "--output_format", "files", "--incremental_mode", "overwrite", "--progress_interval", 1)
        tap.ok((rc, local.hits()) == (0, 60) and any(x[0] > 30 and x[1] == 2 + 2 + 120 for x in told), "and those in folders", "%d %r %s" % (rc, told, so))
    finally:
        local.stop()


def foreign_progress(local, server):
    """The controller takes another attempt's progress for none: an attempt at an earlier campaign's output says that it
    prepares before it has read its input, and leaves nothing of that in what it does not write.
    """
    out, at = local.folder("data", "m2"), local.folder("data", "m2", "_progress.json")

    def attempt(what, task, want, *args):
        """Its status is as wanted and it told its preparation; what stands there afterwards"""
        told = False
        local.faults({"operation": "GetObject", "name_contains": "00003.parquet", "kind": "slow", "delay_seconds": 3, "times": 1})
        p = start(["--parquet", "s3://data/m", "--output", "s3://data/m2", "--retry-failed", "--number_sample_per_shard", 1, "--allow-net",
                   server.net, "--progress_interval", 1] + list(args), env=local.env(DROVER_TASK=task, DROVER_ATTEMPT="7" + task, DROVER_PART="1/0"))
        while p.poll() is None:
            r = load(out, "_progress.json") if os.path.exists(at) else {}
            told = told or (r.get("attempt") == "7" + task and r.get("to_prepare") == 40)
            time.sleep(0.05)
        rc, so, se = finish(p)
        tap.ok(rc == want and told, "told while it prepares: %s" % what, "%d %r %s" % (rc, told, se))
        return open(at).read() if os.path.exists(at) else None

    before = open(at).read()
    tap.eq(attempt("one that is refused", "5", 65, "--incremental_mode", "overwrite", "--save_additional_columns", "none_such"), before, "one that is refused puts back what stood there")
    last = attempt("overwrite", "5", 0, "--incremental_mode", "overwrite")
    tap.ok('"75"' in last and "prepared" not in last, "and its own is its rows'", last)
    tap.eq(attempt("a finished output", "5", 0), last, "a finished output has its own back")
    last = attempt("extend", "6", 0, "--incremental_mode", "extend")
    tap.ok('"76"' in last and "prepared" not in last, "which is its rows', too", last)
    for name in ("_manifest.json", "_part.json"):
        os.unlink(os.path.join(out, name))
    attempt("of an earlier campaign that had not begun", "8", 0)
    os.unlink(out + "/_manifest.json")
    attempt("the same part of an earlier campaign", "9", 0)
    with open(at, "w") as f:
        json.dump({"task": "9", "attempt": "1", "prepared": 3, "to_prepare": 4}, f)
    tap.eq(attempt("once more", "9", 0), None, "what a killed preparation told goes")


def test_retry_failed(d, server):
    fails = {"/r1": 503, "/r4": 404, "/r7": 500, "/r13": 410, "/r15": 429}
    part = part_of(d, server, "r", 25, "r")
    for path, status in fails.items():
        server.serve(path, b"", status=status)
    server.serve("/r9", b"<html>no image</html>")
    server.serve("/r11", PHOTO, headers=[("X-Robots-Tag", "noai")])
    first, second = d + "/first", d + "/second"
    rc, so, se = go(server, part, first)
    tap.eq((rc, len(captions(first))), (0, 18), "seven of 25 rows fail")
    for path in fails:
        server.serve(path, PHOTO)
    server.hits.clear()
    rc, so, se = go(server, first, second, "--retry-failed", "--save_additional_columns", "error_message_before")
    tap.ok(rc == 65 and "no column 'error_message_before'" in se, "columns are those of the sidecars", se)
    rc, so, se = go(server, first, second, "--retry-failed")
    tap.ok(rc == 0, "a second pass", se)
    tap.eq(dict(server.hits), {"/r1": 1, "/r7": 1, "/r15": 1},
           "asks for what failed to download and may come, not for what is gone, forbidden or no image")
    tap.eq(sorted(captions(second).values()), ["r 1", "r 15", "r 7"], "and writes it with its captions")
    tap.eq((load(second, "_manifest.json")["rows_in"], load(second, "_manifest.json")["successes"]), (3, 3),
           "with a manifest of its own")
    rc, so, se = go(server, second, d + "/third", "--retry-failed")
    tap.ok(rc == 0 and load(d + "/third", "_manifest.json")["rows_in"] == 0, "nothing failed: an empty output", se)
    for bad, args, word in ((part, [], "of an earlier output"), (first, [], "folder of its own"),
                            (d + "/nothing", [], "earlier output")):
        rc, so, se = go(server, bad, first if "own" in word else d + "/x", "--retry-failed")
        tap.ok(rc in (2, 65) and word in se, "refused: retry_failed of %s" % os.path.basename(bad), "%d %s" % (rc, se))
    os.makedirs(d + "/parts", exist_ok=True)
    make_parquet(d + "/parts/p.parquet", [{"url": "http://h/"}], {"url": "VARCHAR"})
    rc, so, se = go(server, d + "/parts", d + "/x", "--retry-failed")
    tap.ok(rc == 65 and "no column 'status'" in se and "columns: url" in se, "and of a folder that is no output", se)


def test_verify_hash(d, server):
    import hashlib
    page = b"<html>no image</html>"
    server.serve("/v", PHOTO)
    server.serve("/page", page)
    right = {t: hashlib.new(t, PHOTO).hexdigest() for t in ("md5", "sha256", "sha512")}
    rows = [("/v", right["md5"], "success"), ("/v", right["md5"].upper(), "hash mismatch"),
            ("/v", right["md5"][:-1] + "x", "hash mismatch"), ("/v", "", "hash mismatch"), ("/v", None, "hash mismatch"),
            ("/page", hashlib.md5(page).hexdigest(), "Image decoding error"), ("/page", right["md5"], "hash mismatch")]
    part, out = d + "/hash.parquet", d + "/hash"
    make_parquet(part, [{"url": server.url(u), "sum": h} for u, h, _ in rows], {"url": "VARCHAR", "sum": "VARCHAR"})
    rc, so, se = go(server, part, out, "--compute_hash", "md5", "--verify_hash", '["sum","md5"]')
    got = read_parquet(out + "/00000.parquet") if rc == 0 else []
    tap.eq([r["error_message"] or r["status"] for r in got], [t for _, _, t in rows], "bytes must hash to the column")
    tap.eq([r["status"] for r in got][2:], ["failed_to_download"] * 3 + ["failed_to_resize", "failed_to_download"],
           "what does not is counted as not downloaded")
    tap.ok(got and "sum" not in got[0] and got[0]["md5"] == right["md5"], "the column itself is not of the output", got[:1])
    for kind in ("sha256", "sha512"):
        make_parquet(part, [{"url": server.url("/v"), "sum": right[kind]}], {"url": "VARCHAR", "sum": "VARCHAR"})
        rc, so, se = go(server, part, out + kind, "--compute_hash", kind, "--verify_hash", '["sum","%s"]' % kind)
        tap.eq((rc, len(captions_of(out + kind))), (0, 1), "by %s" % kind)
    for value, word in (('["sum","sha256"]', "md5"), ('["sum"]', "md5"), ('["a","md5","b"]', "md5"), ('["no","md5"]', "'no'")):
        rc, so, se = go(server, part, d + "/hashbad", "--compute_hash", "md5", "--verify_hash", value)
        tap.ok(rc in (2, 65) and "verify_hash" in se and word in se, "refused: verify_hash %s" % value, "%d %s" % (rc, se))


def captions_of(out):
    return [k for f in os.listdir(out) if f.endswith(".tar") for k in samples(os.path.join(out, f))]


def ml_root(d, hyperparameters):
    """What SageMaker mounts, with these settings."""
    os.makedirs(d + "/ml/input/config", exist_ok=True)
    os.makedirs(d + "/ml/output", exist_ok=True)
    with open(d + "/ml/input/config/hyperparameters.json", "w") as f:
        json.dump(hyperparameters, f)
    return d + "/ml"


def test_settings(d):
    """Every option of img2dataset's table: a good value is taken, or it is refused with a reason."""
    ours = {"url_list": "x", "image_size": 256, "output_folder": d + "/o", "processes_count": 1, "resize_mode": "border",
            "resize_only_if_bigger": "False", "upscale_interpolation": "lanczos", "downscale_interpolation": "area",
            "encode_quality": 95, "encode_format": "jpg", "output_format": "webdataset", "input_format": "parquet",
            "url_col": "url", "caption_col": "None", "thread_count": 256, "number_sample_per_shard": 10000,
            "extract_exif": "True", "save_additional_columns": '["a"]', "timeout": 10, "enable_wandb": "True",
            "wandb_project": "mine", "oom_shard_count": 5, "compute_hash": "sha256", "distributor":
            "multiprocessing", "incremental_mode": "incremental", "max_shard_retry": 1, "user_agent_token": "t",
            "disallowed_header_directives": '["noai"]', "min_image_size": 0, "max_image_area": "inf",
            "max_aspect_ratio": "inf", "retries": 0, "skip_reencode": "False", "disable_all_reencoding": "False",
            "bbox_col": "None", "verify_hash": "None", "ignore_ssl_certificate": "False", "subjob_size": 1000}
    args = [x for k, v in ours.items() for x in ("--" + k, v)]
    rc, so, se = run(args)
    tap.ok(rc == 65 and "cannot open 'x'" in se, "all of img2dataset's options with its defaults are taken", se)
    rc, so, se = run([], ml_root=ml_root(d, {k: str(v) for k, v in ours.items()}))
    tap.ok(rc == 65 and "'x'" in se, "and as hyperparameters", "%d %s" % (rc, se))
    rc, so, se = run(["--resize_mode=x", "--image_size=0"], ml_root=ml_root(d, {"retrys": "1", "compute_hash": "crc"}))
    tap.ok(rc == 2 and all(w in se for w in ("resize_mode 'x'", "image_size '0'", "'retries'", "compute_hash 'crc'", "output_folder is missing")),
           "faults of hyperparameters and flags come in one message", "%d %s" % (rc, se))
    failure = open(d + "/ml/output/failure").read()
    tap.ok(all(w in failure for w in ("resize_mode 'x'", "image_size '0'", "'retries'", "compute_hash 'crc'")),
           "which is the reason of the job's failure too", failure)
    make_parquet(d + "/cols.parquet", [{"a": 1}], {"a": "INTEGER"})
    rc, so, se = run(["--parquet", d + "/cols.parquet", "--output", d + "/o", "--caption_col", "alt", "--save_additional_columns",
                      "a,b,c", "--verify_hash", "sum,sha256"])
    tap.ok(rc == 65 and "no column 'b', 'c', 'alt' (caption_col), 'url' or 'URL' (set url_col), 'sum' (verify_hash); its columns: a" in se,
           "all columns that are not there are named, and those that are", "%d %s" % (rc, se))
    refused = {"input_format": "xlsx", "output_format": "zip", "subjob_size": 500,
               "distributor": "pyspark", "max_shard_retry": 3,
               "incremental_mode": "sometimes", "compute_hash": "crc"}
    rc, so, se = run(["--output", d + "/o"] + [x for k, v in refused.items() for x in ("--" + k, v)])
    lines = se.splitlines()
    tap.eq((rc, len(lines)), (2, len(refused)), "others with a line each")
    for k, v in refused.items():
        mine = [x for x in lines if x.startswith("%s '%s'" % (k, v))]
        tap.ok(len(mine) == 1 and len(mine[0]) > len(k) + 30, "refused with a reason: %s %s" % (k, v), se)
    p = subprocess.run([WORKER, "download", "--help"], capture_output=True, text=True)
    for k in list(ours) + list(refused) + ["retry_failed"]:
        tap.ok("--" + k + " " in p.stdout, "help tells of %s" % k)


with Folder() as d:
    server = Server()
    test_overwrite(d, server)
    test_extend(d, server)
    test_extend_early(d, server)
    with Folder() as other:
        test_extend_at_once(other, server)
    test_retry_failed(d, server)
    test_in_s3(d, server)
    with Folder() as other:
        test_slow_preparation(other, server)
    test_verify_hash(d, server)
    test_settings(d)
sys.exit(tap.done())
