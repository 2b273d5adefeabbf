#!/usr/bin/python3
"""Aim: S3 faults only cost time: failing parts, replies lost after their effect, workers killed during
uploads and a second writer of the same part leave complete shards of one writer each, a correct manifest,
and no open upload. Method: drover-local fails chosen requests: for each seed every twentieth part upload
(500, SlowDown, a reset connection in turns) and every hundredth reply, at random places; then each step by
itself. Shards of several parts, read back by other readers. Usage: worker_s3_faults.py [SEEDS [BUCKET]];
one seed: parts of four shards, more: of six; bucket sealed: encrypted with a key of KMS
"""
import os
import random
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *
from kit.worker.s3 import *

tap = Tap()
SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 6
BUCKET = sys.argv[2] if len(sys.argv) > 2 else "data"
SHARDS, PER = 6 if SEEDS > 1 else 4, 7
GONE = 3  # this row of each shard is a 404
REFUSALS = ("error_500", "throttle", "drop_before")
LOSSES = ("drop_after", "half_body")
BODIES = [encode(np.random.RandomState(i).randint(0, 255, (1040, 1040, 3), np.uint8), "PNG", compress_level=0)
          for i in range(3)]  # 3.2 MB each: three parts a shard


def keys_of(shard):
    return ["%06d" % (10 * shard + r) for r in range(PER)]


def make_part(d, server):
    for i in range(SHARDS * PER):
        if i % PER != GONE:
            server.serve("/i%d.png" % i, BODIES[i % 3], "image/png")
    path = os.path.join(d, "p.parquet")
    make_parquet(path, [{"url": server.url("/i%d.png" % i)} for i in range(SHARDS * PER)], {"url": "VARCHAR"})
    return path


def args_of(part, server, name, patience=120):
    return ["--parquet", part, "--output", "s3://%s/%s" % (BUCKET, name), "--number_sample_per_shard", PER,
            "--disable_all_reencoding", "true", "--processes_count", 1, "--retries", 0, "--timeout", 60,
            "--allow-net", server.net, "--s3_patience", patience]


def all_faults(local, output):
    """Faults of a finished output."""
    out, bad = local.folder(BUCKET, output), []
    for i in range(SHARDS):
        bad += shard_faults(out, i, keys_of(i))
        for name, body in members(os.path.join(out, "%05d.tar" % i)) if not bad else ():
            if name.endswith(".jpg") and body != BODIES[(PER * i + int(name[5])) % 3]:
                bad.append("bytes of %s" % name)
    m = load(out, "_manifest.json") if os.path.exists(os.path.join(out, "_manifest.json")) else None
    if m is None:
        return bad + ["no manifest"]
    if (m["rows_in"], m["rows_out"], m["successes"], m["failed_to_download"], m["failed_to_resize"]) != \
            (SHARDS * PER, SHARDS * PER, SHARDS * (PER - 1), SHARDS, 0):
        bad.append("counts %r" % m)
    return bad + manifest_faults(out, local.etags(BUCKET, output)) + ["open upload of " + k for k in local.uploads()]


def ordered(r, n=3 * SHARDS):
    """A fault at a random one of every twenty part uploads (the first within a run's n), and at a random
    one of every hundred requests."""
    parts = [r.randrange(n)] + [20 * k + r.randrange(20) for k in range(1, 4)]
    lost = [100 * k + r.randrange(100) for k in range(3)]
    turn = r.randrange(6)
    return [{"operation": "UploadPart", "kind": REFUSALS[(turn + k) % 3], "after": at - k} for k, at in enumerate(parts)] + \
        [{"kind": LOSSES[(turn + k) % 2], "after": at - k} for k, at in enumerate(lost)]


def test_seed(local, part, server, seed):
    local.faults(*ordered(random.Random(seed)))
    name = "seed%d" % seed
    rc, so, se = run(args_of(part, server, name), env=local.env())
    bad = all_faults(local, name) if rc == 0 else []
    tap.ok(rc == 0 and not bad and local.hits() > 0, "seed %d: whole after %d failures" % (seed, local.hits()),
           "\n".join(bad) + se)
    return local.hits()


def test_each_step(local, part, server):
    """Every request of an upload loses its reply, or is refused, at least once."""
    puts = [("PutObject", x) for x in (".parquet", "_stats.json", "_manifest.json")]
    uploads = [(x + "MultipartUpload", "") for x in ("Create", "Complete")] + [("UploadPart", "")]
    for kind in LOSSES + REFUSALS + ("error_200",):
        steps = [("CompleteMultipartUpload", "")] if kind == "error_200" else uploads + puts
        if kind in LOSSES:
            steps = steps + [("ListMultipartUploads", ""), ("AbortMultipartUpload", ""), ("ListObjectsV2", "")]
        local.faults(*[{"operation": o, "name_contains": x, "kind": kind,
                        "after": 1 if o in ("CompleteMultipartUpload", "UploadPart") else 0} for o, x in steps])
        made = -len(local.wire("CreateMultipartUpload"))
        rc, so, se = run(args_of(part, server, "step_" + kind), env=local.env())
        bad = all_faults(local, "step_" + kind) if rc == 0 else []
        missed = [f for f in local.get("faults")["faults"] if f["hits"] == 0]
        tap.ok(rc == 0 and not bad and not missed, "%s of each kind of request: whole" % kind,
               "\n".join(bad) + "\nnever met: %r\n" % missed + se)
        made += len(local.wire("CreateMultipartUpload"))
        if kind in LOSSES:
            tap.ok(made == SHARDS + 1 and '"stray_uploads_aborted","uploads":1' in se,
                   "%s: the lost upload was found and aborted" % kind, "%d made\n%s" % (made, se))


def test_away(local, part, server):
    """A network that was there and is away for a while is waited for, as an S3 that answers with failures."""
    local.faults({"operation": "UploadPart", "kind": "drop_before", "after": 2, "times": 9})
    rc, so, se = run(args_of(part, server, "away"), env=local.env())
    tap.ok(rc == 0 and local.hits() == 9 and not all_faults(local, "away"), "nine requests in a row without an answer only cost time",
           "%d hits, %d %s" % (local.hits(), rc, se))
    local.faults()


def test_dead_in_all(local, part, server):
    """S3 that takes nothing any more is not waited for once more by each shard that is open."""
    local.faults({"operation": "UploadPart", "kind": "error_503", "after": 4, "times": 10000},
                 {"operation": "AbortMultipartUpload", "kind": "error_503", "times": 10000})
    given_up = len(local.wire("AbortMultipartUpload"))
    rc, so, se = run(args_of(part, server, "dead_in_all", patience=2), env=local.env())
    left = local.uploads()
    given_up = len(local.wire("AbortMultipartUpload")) - given_up
    tap.ok(rc == 75 and left and given_up == len(left), "%d uploads cannot be taken away, each is tried once" % len(left),
           "%d, %d requests, %r %s" % (rc, given_up, left, se))
    local.faults()
    rc, so, se = run(args_of(part, server, "dead_in_all"), env=local.env())
    tap.ok(rc == 0 and not all_faults(local, "dead_in_all"), "the next run takes them away, and is whole", all_faults(local, "dead_in_all"))


def test_dead_s3(local, part, server):
    """When no attempt succeeds the worker gives up with a cause, and the next run repairs everything."""
    for operation in ("UploadPart", "CompleteMultipartUpload"):
        local.faults({"operation": operation, "kind": "error_503", "after": 3, "times": 1000})
        name = "dead" + operation
        rc, so, se = run(args_of(part, server, name, patience=1), env=local.env())
        tap.ok(rc == 75 and not os.path.exists(local.folder(BUCKET, name, "_manifest.json")),
               "no %s gets through: the job fails as a matter of the network" % operation, "%d %s" % (rc, se))
        tap.eq(local.uploads(), [], "and takes its uploads away")
        local.faults()
        rc, so, se = run(args_of(part, server, name), env=local.env())
        tap.ok(rc == 0 and not all_faults(local, name), "the next run makes it whole", all_faults(local, name))


def test_killed(local, part, server, seed):
    """SIGKILL with uploads open, three times in a row, S3 failing as above."""
    r = random.Random(seed)
    name, strays = "killed%d" % seed, 0
    for attempt in range(3):
        local.faults(*ordered(r))
        p = start(args_of(part, server, name), env=local.env(), start_new_session=True)
        wait_for(lambda: p.poll() is not None or len(local.uploads()) > r.randint(0, 2))
        os.killpg(p.pid, signal.SIGKILL)
        p.communicate()
        strays += len(local.uploads())
    tap.ok(strays > 0, "killed workers leave uploads open", strays)
    rc, so, se = run(args_of(part, server, name), env=local.env())
    bad = all_faults(local, name) if rc == 0 else []
    tap.ok(rc == 0 and not bad, "the last one makes all whole and leaves none", "\n".join(bad) + se)
    # A rival that was killed even later.
    local.faults()
    os.makedirs(os.path.join(local.root, "state", "uploads", "0" * 32))
    with open(os.path.join(local.root, "state", "uploads", "0" * 32, "target"), "w") as f:
        f.write("%s\n%s/00001.tar\napplication/x-tar\n" % (BUCKET, name))
    for k, other in enumerate((BUCKET + "\n%s/deeper/00001.tar\n", BUCKET + "\n%s/other.bin\n", BUCKET + "\nx%s/00001.tar\n", "locked\n%s/00001.tar\n")):
        os.makedirs(os.path.join(local.root, "state", "uploads", "%032d" % (k + 1)))
        with open(os.path.join(local.root, "state", "uploads", "%032d" % (k + 1), "target"), "w") as f:
            f.write(other % name + "application/x-tar\n")
    for k in range(1050):  # more than a page of them
        shutil.copytree(os.path.join(local.root, "state", "uploads", "0" * 32),
                        os.path.join(local.root, "state", "uploads", "1%031d" % k))
    rc, so, se = run(args_of(part, server, name), env=local.env())
    tap.eq((rc, len(local.uploads())), (0, 4), "a finished output is swept too, and uploads of others are not touched")
    for k in range(4):
        shutil.rmtree(os.path.join(local.root, "state", "uploads", "%032d" % (k + 1)))


def test_two_writers(d, local, seed):
    """Two workers of one part at once; S3 is slow between the pieces of a shard. Row 0 of each shard is
    served only to the first worker that asks, so that the writers' shards differ.
    """
    server, r = Server(), random.Random(seed)
    lock, asked, both = threading.Lock(), collections.Counter(), threading.Event()
    for i in range(SHARDS * PER):
        def answer(h, i=i):
            with lock:
                asked[i] += 1
                n = asked[i]
                if n == 2:
                    both.set()
            both.wait(20)
            if i % PER == 0 and n > 1:
                h.answer(404, {}, b"")
            else:
                h.answer(200, {"Content-Type": "image/png"}, BODIES[i % 3])
        server.routes["/i%d.png" % i] = answer
    part = os.path.join(d, "two.parquet")
    make_parquet(part, [{"url": server.url("/i%d.png" % i)} for i in range(SHARDS * PER)], {"url": "VARCHAR"})
    name = "two%d" % seed
    out = local.folder(BUCKET, name)
    local.faults(*[{"operation": o, "name_contains": x, "kind": "slow", "probability": 0.5, "seed": seed * 10 + k,
                    "delay_seconds": r.choice((0.05, 0.2))}
                   for k, (o, x) in enumerate((("CompleteMultipartUpload", ""), ("PutObject", ".parquet"),
                                               ("PutObject", "_stats"), ("UploadPart", "")))])
    ps = [start(args_of(part, server, name), env=local.env(DROVER_TASK="7")) for _ in range(2)]
    texts = [p.communicate(timeout=patience(100))[1] for p in ps]
    codes = sorted(p.returncode for p in ps)
    lost = sum("shard_lost_to_other_writer" in line for t in texts for line in t.splitlines())
    bad = []
    for i in range(SHARDS):
        pieces = [x for x in PIECES if os.path.exists(os.path.join(out, "%05d%s" % (i, x)))]
        if "_stats.json" in pieces:
            bad += shard_faults(out, i, keys_of(i))
    tap.ok(not bad, "seed %d: no shard mixes two writers" % seed, "\n".join(bad))
    # A lost shard is dropped completely: none of its pieces is stored next to the winner's, and the winner
    # ends well.
    tap.ok(codes[0] == 0 and not any("is at work in the same" in t for t in texts),
           "seed %d: who loses drops the shard, who wins ends well (%r)" % (seed, codes), "\n".join(texts))
    local.faults()
    rc, so, se = run(args_of(part, server, name), env=local.env(DROVER_TASK="7"))
    rows = [row for i in range(SHARDS) for row in shard_faults(out, i, keys_of(i))]
    tap.ok(rc == 0 and not rows and not manifest_faults(out, local.etags(BUCKET, name)) and local.uploads() == [],
           "seed %d: at the end all is whole, nothing is open" % seed,
           "\n".join(rows + manifest_faults(out, local.etags(BUCKET, name)) + local.uploads()) + se)
    return lost


with Folder() as d:
    server = Server()
    local = Local(d)
    try:
        part = make_part(d, server)
        n = sum([test_seed(local, part, server, seed) for seed in range(SEEDS)])
        tap.ok(n > SEEDS or SEEDS < 6, "lost replies were among them", n)
        test_each_step(local, part, server)
        test_dead_s3(local, part, server)
        test_dead_in_all(local, part, server)
        test_away(local, part, server)
        test_killed(local, part, server, 1)
        tap.ok(sum([test_two_writers(d, local, seed) for seed in range(2)]) > 0, "shards were lost to the other writer")
    finally:
        local.stop()
sys.exit(tap.done())
