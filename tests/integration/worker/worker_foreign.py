#!/usr/bin/python3
"""Aim: an output folder with shards of another part, of other settings, of another task or of unknown origin
is refused, with both values and a remedy, and nothing in it changes. Method: each of these, unfinished and
finished, in a folder and in S3, by hand and as a task, incremental and extended; afterwards every file is
compared byte for byte.
"""
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *
from kit.worker.s3 import Local

tap = Tap()
PHOTO = encode(photo(90, 70, 1), "JPEG")


class Place:
    """Outputs in a folder, or in S3: where the worker writes and where we look."""

    def __init__(self, d, local):
        self.d, self.local, self.n = d, local, 0

    def new(self):
        self.n += 1
        name = "out%d" % self.n
        folder = self.local.folder("data", name) if self.local else os.path.join(self.d, name)
        return ("s3://data/" + name if self.local else folder), folder

    def env(self, task):
        return dict(self.local.env() if self.local else {}, DROVER_TASK=task)


def part_of(d, server, name, n, first=0):
    path = os.path.join(d, name + ".parquet")
    make_parquet(path, [{"url": server.url("/%s%d" % (name[:1], first + i))} for i in range(n)], {"url": "VARCHAR"})
    for i in range(n):
        server.serve("/%s%d" % (name[:1], first + i), PHOTO)
    return path


def digests(folder):
    return {f: hashlib.sha256(open(os.path.join(folder, f), "rb").read()).hexdigest() for f in sorted(os.listdir(folder))
            if f != "_progress.json"}


def unfinish(folder):
    """As a killed worker leaves it: some shards, no manifest."""
    os.unlink(os.path.join(folder, "_manifest.json"))
    for x in (".tar", ".parquet", "_stats.json"):
        os.unlink(os.path.join(folder, "00002" + x))


def cases(d, server, place, where):
    one, other = part_of(d, server, "aaa", 60), part_of(d, server, "bbb", 60)
    args = lambda part, out: ["--parquet", part, "--output", out, "--number_sample_per_shard", 20, "--allow-net", server.net]

    def worker(part, out, task, *more):
        return run(args(part, out) + list(more), env=place.env(task))
    for finished in (False, True):
        for kind in ("part", "settings", "task", "nobody"):
            out, folder = place.new()
            task = "7" if kind == "task" else ""
            rc, so, se = worker(one, out, task)
            tap.ok(rc == 0 and os.path.exists(os.path.join(folder, "_part.json")), "an output and its _part.json", se)
            if not finished:
                unfinish(folder)
            if kind == "nobody":
                os.unlink(os.path.join(folder, "_part.json"))
            before = digests(folder)
            server.hits.clear()
            rc, so, se = worker(other if kind == "part" else one, out, "8" if kind == "task" else task,
                                *(["--image_size", 128] if kind == "settings" else []))
            words = {"part": ["aaa.parquet", "bbb.parquet", "overwrite"], "settings": ["image_size", "256", "128", "overwrite"],
                     "task": ["'7'", "'8'"], "nobody": ["_part.json", "overwrite"]}[kind]
            tap.ok(rc == 65 and all(w in se for w in words), "%s, %s: %s is refused, with both values and what to do" % (
                where, "finished" if finished else "half done", kind), "%d %s" % (rc, se[-900:]))
            tap.eq((digests(folder), sum(server.hits.values())), (before, 0), "and nothing is changed or fetched")
    out, folder = place.new()
    rc, so, se = worker(one, out, "")
    unfinish(folder)
    rc, so, se = worker(one, out, "")
    tap.ok(rc == 0 and load(folder, "_manifest.json")["rows_out"] == 60, where + ": one's own is gone on with", se)
    rc, so, se = worker(one, out, "")
    tap.ok(rc == 0 and "already finished" in so, "and finished is finished", se)
    before = digests(folder)
    rc, so, se = worker(other, out, "", "--incremental_mode", "extend", "--image_size", 128)
    tap.ok(rc == 65 and "image_size" in se and digests(folder) == before, "extending with other settings is refused", se)
    rc, so, se = worker(other, out, "", "--incremental_mode", "extend")
    record = json.load(open(os.path.join(folder, "_part.json")))
    tap.eq((rc, [(p["first_shard"], os.path.basename(p["source"]["uri"]), p["source"]["rows"]) for p in record["parts"]]),
           (0, [(0, "aaa.parquet", 60), (3, "bbb.parquet", 60)]), "extending adds a part to _part.json")
    rc, so, se = worker(other, out, "", "--incremental_mode", "overwrite", "--image_size", 128)
    record = json.load(open(os.path.join(folder, "_part.json")))
    tap.eq((rc, [p["settings"]["image_size"] for p in record["parts"]]), (0, ["128"]), "overwriting begins again")


def named_as_shards(d, server, place, where):
    """Parts that are called as shards are, in the output folder: they are the user's, not pieces of one."""
    parts = [part_of(d, server, "ccc", 30), part_of(d, server, "ddd", 30)]
    for names, wanted, words in ((("00000", "00001"), "00000", "name of a shard"), (("in", "00001"), "in", "_part.json")):
        for more in ([], ["--incremental_mode", "overwrite"])[:2 if wanted == "00000" else 1]:
            out, folder = place.new()
            os.makedirs(folder)
            for part, name in zip(parts, names):
                shutil.copy(part, os.path.join(folder, name + ".parquet"))
            before = digests(folder)
            server.hits.clear()
            rc, so, se = run(["--parquet", "%s/%s.parquet" % (out, wanted), "--output", out, "--number_sample_per_shard", 20,
                              "--allow-net", server.net] + more, env=place.env(""))
            tap.ok(rc == 65 and words in se, "%s: %s.parquet next to %s.parquet in the output is refused %s" % (
                where, wanted, names[1], more[-1:]), "%d %s" % (rc, se[-900:]))
            tap.eq((digests(folder), sum(server.hits.values())), (before, 0), "and both are there as they were")


def schemes(d):
    part = os.path.join(d, "none.parquet")
    make_parquet(part, [{"url": "http://127.0.0.1:1/"}], {"url": "VARCHAR"})
    for out in ("gs://bucket/x", "abfs://c@a/x", "hdfs:///x", "S3://bucket/x"):
        p = start(["--parquet", part, "--output", out], cwd=d)
        rc, so, se = finish(p)
        tap.ok(rc == 65 and "only s3://" in se and os.listdir(d) == ["none.parquet"], out + " is refused, no folder is made",
               "%d %s %s" % (rc, se[-400:], os.listdir(d)))


with Folder() as d:
    schemes(d)
with Folder() as d:
    server = Server("127.0.0.1")

    def both(place, where):
        cases(d, server, place, where)
        named_as_shards(d, server, place, where)
    both(Place(d, None), "folder")
    local = Local(d)
    try:
        both(Place(d, local), "S3")
    finally:
        local.stop()
sys.exit(tap.done())
