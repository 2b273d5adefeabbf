#!/usr/bin/python3
"""The index worker's speed beside what the machine gives at most, measured in the same run.

The corpus: archives in img2dataset's dialect (a pax header before every member), 1000 pairs each,
pictures of 25 kB, JSON of 600 bytes; hard links make the same archives many, so that the start of
the program, which is counted, does not hide the rest. Cached: one thread, CPU time of the whole
process, start and writing included; the limit is the header walk alone with the best of three
window sizes (index_limit.c), without checksums, names, pairs or output. Not cached: megabytes of
archive a second from the beginning to the end the manifest tells (a run of half a second cannot
carry the start of the program), with default settings; the limit is reading the same files in
order, by one reader or by four at once, whichever is faster in that round. From S3: the same with
drover-local as the bucket on the same machine, files cached; the limit is plain GETs by curl, one
after the other or eight at once, whichever is faster. Worker and limit take turns, each first in
every other round, after one warm-up; what is put down is the median of the rounds' ratios, for a
storage that is slower for a minute is slower for both. Lines go to
build/bench.jsonl, replacing older ones of the same names.
Usage: index.py [--shards 32] [--links 10] [--runs 3] [--only warm,caption,stream,s3]"""
import argparse
import datetime
import io
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
WORKER = os.path.join(ROOT, "build", "bin", "drover-worker")
LIMIT = os.path.join(ROOT, "build", "release", "bench", "index_limit")
OUT = os.path.join(ROOT, "build", "bench.jsonl")
PAIRS = 1000


def make_corpus(folder, shards):
    r = random.Random(4)
    noise = r.randbytes(1 << 20)
    words = ["w%d" % i for i in range(700)]
    os.makedirs(folder, exist_ok=True)
    for s in range(shards):
        path = "%s/%05d.tar" % (folder, s)
        if os.path.exists(path):
            continue
        with tarfile.open(path + ".new", "w", format=tarfile.PAX_FORMAT) as t:
            for i in range(PAIRS):
                key = "%05d%03d" % (s, i)
                caption = " ".join(r.choice(words) for _ in range(r.randint(4, 14)))
                size = max(2000, int(r.gauss(25000, 7000)))
                at = r.randrange(len(noise) - 65536)
                meta = dict(caption=caption, url="https://h%d.example/images/%d/photo-%d.jpg" % (i % 97, s, i), key=key,
                            status="success", error_message=None, width=384, height=256, original_width=800,
                            original_height=533, exif="{\"Image Orientation\": \"1\"}", sha256="ab" * 32)
                for ext, data in (("jpg", noise[at:at + size]), ("json", json.dumps(meta, indent=4).encode()),
                                  ("txt", caption.encode())):
                    m = tarfile.TarInfo(key + "." + ext)
                    m.size, m.mtime, m.mode, m.uname, m.gname = len(data), 1795148923.7106605 + i, 0o444, "bigdata", "bigdata"
                    t.addfile(m, io.BytesIO(data))
        os.rename(path + ".new", path)


def files(folder):
    return sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".tar"))


def cool(folder):
    for f in files(folder):
        fd = os.open(f, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def warm(folder):
    for f in files(folder):
        with open(f, "rb", buffering=0) as g:
            while g.read(1 << 20):
                pass


def limit(*args):
    p = subprocess.run([LIMIT] + [str(a) for a in args], capture_output=True, text=True, check=True)
    r = json.loads(p.stdout)
    return r["n"] / r["s"]


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def index(folder, scratch, *flags, env=None):
    """One run: its summary, CPU seconds, seconds by its own clock."""
    out = tempfile.mkdtemp(dir=scratch)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    p = subprocess.run([WORKER, "index", "--input", folder, "--output", out] + [str(f) for f in flags],
                       capture_output=True, text=True, env=dict(os.environ, **(env or {})))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if p.returncode != 0:
        sys.exit("bench: the worker ended with %d: %s" % (p.returncode, p.stderr[-2000:]))
    with open(out + "/summary.json") as f:
        summary = json.load(f)
    with open(out + "/_manifest.json") as f:
        manifest = json.load(f)
    shutil.rmtree(out)
    if summary["outcomes"]["success"] != PAIRS * summary["shards"]:
        sys.exit("bench: not all pairs came out: %r" % summary)
    wall = when(manifest["ended"]) - when(manifest["started"])
    return summary, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def put(name, value, unit, n, note, **more):
    row = dict(name=name, value=value, unit=unit, n=n, note=note, **more)
    print(json.dumps(row), flush=True)
    old = []
    if os.path.exists(OUT):
        with open(OUT) as f:
            old = [x for x in f if x.strip() and json.loads(x)["name"] != name]
    with open(OUT, "w") as f:
        f.writelines(old + [json.dumps(row) + "\n"])


def report(name, unit, got, limits, note, digits=0):
    ratio = statistics.median(g / m for g, m in zip(got, limits))
    put(name, round(statistics.median(got), digits), unit, len(got), note, limit=round(statistics.median(limits), digits),
        ratio_to_limit=round(ratio, 3))


def cached(name, corpus, linked, scratch, runs, fields, note):
    got, limits = [], []
    for i in range(runs + 1):
        warm(corpus)
        summary, cpu, _ = index(linked, scratch, "--threads", 1, "--fields", fields)
        best = max(limit("walk", w, *files(linked)) for w in (4096, 6144, 8192))
        if i > 0:
            got.append(summary["members"] / cpu)
            limits.append(best)
    report(name, "members/cpu s", got, limits, note)


def rounds(runs, worker, limits):
    """Worker and limits in turns: [worker's], [the best limit's], of each round but the first."""
    got, best = [], []
    for i in range(runs + 1):
        if i % 2:
            g = worker()
            m = max(f() for f in limits)
        else:
            m = max(f() for f in limits)
            g = worker()
        if i > 0:
            got.append(g)
            best.append(m)
    return got, best


def seconds_of(commands):
    """Commands side by side, until the last has ended."""
    began = time.monotonic()
    running = [subprocess.Popen(c, stdout=subprocess.DEVNULL) for c in commands]
    if any([p.wait() for p in running]):
        sys.exit("bench: %r failed" % (commands[0][:4],))
    return time.monotonic() - began


def not_cached(corpus, scratch, runs):
    streamed = []
    size = sum(os.path.getsize(f) for f in files(corpus)) / 1e6

    def worker():
        cool(corpus)
        summary, _, wall = index(corpus, scratch)
        streamed.append(summary["shards_streamed"])
        return size / wall

    def one_reader():
        cool(corpus)
        return limit("read", *files(corpus)) / 1e6

    def four_readers():
        cool(corpus)
        return size / seconds_of([[LIMIT, "read"] + files(corpus)[i::4] for i in range(4)])
    got, limits = rounds(runs, worker, [one_reader, four_readers])
    report("index_mb_per_s_stream", "MB/s", got, limits,
           "%.0f MB; %d of %d archives found cold; default settings, with captions; limit: the same files read in order, by one "
           "or four readers" % (size, min(streamed), len(files(corpus))))


def from_s3(corpus, scratch, runs):
    """curl signs too: drover-local asks for it."""
    key, secret = "AKIABENCHINDEX", "bench-secret"
    bucket = scratch + "/local/s3/data/img"
    os.makedirs(bucket)
    for f in files(corpus):
        os.link(f, os.path.join(bucket, os.path.basename(f)))
    with open(scratch + "/local.json", "w") as f:
        json.dump({"credentials": {key: secret}}, f)
    port = scratch + "/port"
    server = subprocess.Popen([os.path.join(ROOT, "build/bin/drover-local"), "--root", scratch + "/local", "--listen", "127.0.0.1:0",
                               "--config", scratch + "/local.json", "--port-file", port], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        while not (os.path.exists(port) and os.path.getsize(port)):
            time.sleep(0.02)
        with open(port) as f:
            url = "http://127.0.0.1:" + f.read().strip().rsplit(":", 1)[-1]
        env = dict(AWS_ENDPOINT_URL=url, AWS_ACCESS_KEY_ID=key, AWS_SECRET_ACCESS_KEY=secret, AWS_REGION="us-east-1",
                   AWS_CONFIG_FILE="/dev/null", AWS_SHARED_CREDENTIALS_FILE="/dev/null", AWS_EC2_METADATA_DISABLED="true",
                   DROVER_ML_ROOT="/nonexistent")
        size = sum(os.path.getsize(f) for f in files(corpus)) / 1e6
        get = ["curl", "-sf", "--no-progress-meter", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", key + ":" + secret, "-H",
               "x-amz-content-sha256: UNSIGNED-PAYLOAD"]
        places = [x for f in files(corpus) for x in (url + "/data/img/" + os.path.basename(f), "-o", "/dev/null")]

        def worker():
            return size / index("s3://data/img", scratch, env=env)[2]

        def one_get():
            return size / seconds_of([get + places])

        def eight_gets():
            return size / seconds_of([get + ["--parallel", "--parallel-max", "8"] + places])
        warm(corpus)
        got, limits = rounds(runs, worker, [one_get, eight_gets])
        report("index_mb_per_s_s3", "MB/s", got, limits,
               "%.0f MB from drover-local on the same machine, which takes its share of it; limit: GETs by curl, one or eight at "
               "once" % size)
    finally:
        server.terminate()
        server.wait()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shards", type=int, default=32)
    p.add_argument("--links", type=int, default=10)
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--only", default="warm,caption,stream,s3")
    a = p.parse_args()
    corpus = os.path.join(ROOT, "build", "bench", "index-%d" % a.shards)
    make_corpus(corpus, a.shards)
    scratch = tempfile.mkdtemp(prefix="index-", dir=os.path.join(ROOT, "build", "bench"))
    linked = os.path.join(scratch, "linked")
    os.makedirs(linked)
    try:
        for i in range(a.links):
            for f in files(corpus):
                os.link(f, "%s/%02d-%s" % (linked, i, os.path.basename(f)))
        only = a.only.split(",")
        if "warm" in only:
            cached("index_members_per_cpu_s_warm", corpus, linked, scratch, a.runs, "path,offset,size",
                   "path, offset, size out; one thread; limit: header walk alone")
        if "caption" in only:
            cached("index_members_per_cpu_s_warm_caption", corpus, linked, scratch, a.runs,
                   "path,offset,size,caption,width,height",
                   "caption, width, height read from the members too; limit: header walk alone")
        if "stream" in only:
            not_cached(corpus, scratch, a.runs)
        if "s3" in only:
            from_s3(corpus, scratch, a.runs)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
