#!/usr/bin/python3
"""Aim: the same shards in S3 as in a folder, by signed requests, streamed in parts, create-only, resumable; a
refusal by S3 ends as one clear cause. Method: drover-local as the endpoint; its folders and wire log are
the evidence.
"""
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.proxy import Proxy
from kit.worker import *
from kit.worker.s3 import Local

tap = Tap()


def cause(se):
    found = [json.loads(x) for x in se.splitlines() if '"download_failed"' in x]
    return found[0]["cause"] if found else None


def test_output(d, local, server):
    noise = [encode(np.random.RandomState(i).randint(0, 255, (300, 300, 3), np.uint8), "PNG") for i in range(5)]
    rows = [{"URL": server.serve("/big%d.png" % i, noise[i % 5]), "TEXT": "n"} for i in range(60)]
    part = os.path.join(d, "p.parquet")
    make_parquet(part, rows, {"URL": "VARCHAR", "TEXT": "VARCHAR"})
    local.put("data/meta/p.parquet", open(part, "rb").read())
    args = ["--parquet", "s3://data/meta/p.parquet", "--output", "s3://data/img/00000/", "--resize_mode", "no",
            "--encode_format", "png", "--encode_quality", 1, "--number_sample_per_shard", 50,
            "--allow-net", server.net]
    rc, so, se = run(args, env=local.env(DROVER_TASK="5"))
    if not tap.ok(rc == 0, "part from S3, shards to S3", se):
        return
    out = local.folder("data", "img", "00000")
    s = samples(os.path.join(out, "00000.tar"))
    tap.eq((len(s), len(samples(os.path.join(out, "00001.tar")))), (50, 10), "both shards are there")
    tap.ok(os.path.getsize(os.path.join(out, "00000.tar")) > (10 << 20), "one of several parts")
    tap.ok(all(np.array_equal(np.asarray(Image.open(io.BytesIO(v["png"]))),
                              np.asarray(Image.open(io.BytesIO(noise[i % 5]))))
               for i, (k, v) in enumerate(sorted(s.items()))), "pixel for pixel")
    m = load(out, "_manifest.json")
    tap.ok([o["key"] for o in m["objects"]] == ["%05d%s" % (i, x) for i in range(2) for x in
                                                (".parquet", ".tar", "_stats.json")]
           and all(o["size"] == os.path.getsize(os.path.join(out, o["key"])) for o in m["objects"]), "manifest", m)
    plain = hashlib.md5(open(os.path.join(out, "00000_stats.json"), "rb").read()).hexdigest()
    tap.ok(m["objects"][2]["etag"].strip('"') == plain and "-" in m["objects"][1]["etag"],
           "with the ETags S3 gave", m["objects"])
    rows = local.wire()
    tap.ok(rows and all(r["signed"] for r in rows), "every request was signed")
    n = len(rows)
    rc, so, se = run(args, env=local.env(DROVER_TASK="5"))
    tap.ok(rc == 0 and "already finished" in so, "finished is finished", se)
    rc, so, se = run(args, env=local.env(DROVER_TASK="6"))
    tap.ok(rc == 65 and "task '5'" in se, "and whose it is counts", se)


def test_resume(d, local, server):
    gate = threading.Event()
    body = encode(photo(100, 80, 1), "JPEG")
    rows = []
    for i in range(60):
        def answer(h, held=i >= 40):
            if held:
                gate.wait(60)
            h.answer(200, {}, body)
        server.routes["/r%d" % i] = answer
        rows.append({"url": server.url("/r%d" % i)})
    part = os.path.join(d, "r.parquet")
    make_parquet(part, rows, {"url": "VARCHAR"})
    args = ["--parquet", part, "--output", "s3://data/res", "--number_sample_per_shard", 20,
            "--allow-net", server.net, "--timeout", 60, "--progress_interval", 1]
    p = start(args, env=local.env())
    out = local.folder("data", "res")
    tap.ok(wait_for(lambda: os.path.exists(os.path.join(out, "00000_stats.json")) and
                    os.path.exists(os.path.join(out, "00001_stats.json"))), "two shards finish")
    tap.ok(wait_for(lambda: os.path.exists(os.path.join(out, "_progress.json"))
                    and load(out, "_progress.json")["shards_done"] == 2), "_progress.json says so")
    p.kill()
    p.communicate()
    files = sorted(x for x in os.listdir(out) if x[0] == "0")
    before = {x: open(os.path.join(out, x), "rb").read() for x in files}
    tap.eq(len(before), 6, "an unfinished shard left nothing to see")
    gate.set()
    rc, so, se = run(args, env=local.env())
    tap.ok(rc == 0, "the next run ends well", se)
    tap.ok(all(open(os.path.join(out, x), "rb").read() == v for x, v in before.items()), "finished shards are kept")
    tap.eq([server.hits["/r%d" % i] for i in range(40)], [1] * 40, "their URLs are not fetched again")
    keys = [k for i in range(3) for k in samples(os.path.join(out, "%05d.tar" % i))]
    tap.eq(sorted(keys), ["%07d" % (100 * s + r) for s in range(3) for r in range(20)], "the same set of keys")


def test_resume_of_many(d, local, server):
    """Answers about finished shards are held back: many are asked for at once, and progress is reported meanwhile."""
    n = 40
    part = os.path.join(d, "many.parquet")
    make_parquet(part, [{"url": server.serve("/m", encode(photo(60, 50, 1), "JPEG"))}] * n, {"url": "VARCHAR"})
    args = ["--parquet", part, "--output", "s3://data/many", "--number_sample_per_shard", 1, "--allow-net", server.net,
            "--progress_interval", 1]
    out = local.folder("data", "many")
    rc, so, se = run(args, env=local.env())
    os.unlink(os.path.join(out, "_manifest.json"))
    for name in ("00007.tar", "00008_stats.json"):  # two are not finished
        os.unlink(os.path.join(out, name))
    proxy, lock, held, free = Proxy(int(local.url.rsplit(":", 1)[1])), threading.Lock(), set(), threading.Semaphore(0)

    def hold(data):
        if data.startswith(b"GET ") and b"_stats.json" in data.split(b" ", 2)[1]:
            with lock:
                held.add(data.split(b" ", 2)[1])
            free.acquire()
    proxy.on_up = hold

    def rows():
        p = load(out, "_progress.json")
        return p["rows_done"] if p["attempt"] == "7" else -1
    p = start(args, env=local.env(AWS_ENDPOINT_URL="http://127.0.0.1:%d" % proxy.port, DROVER_ATTEMPT="7"))
    tap.ok(wait_for(lambda: len(held) == 32), "32 finished shards are asked for at once", len(held))
    tap.ok(wait_for(lambda: rows() == 0), "the new attempt reports its progress before it knows one of them")
    free.release(5)
    tap.ok(wait_for(lambda: rows() == 5), "and then what it knows", rows())
    free.release(n)
    rc, so, se = finish(p)
    tap.ok(rc == 0, "the run ends well", se)
    tap.eq((server.hits["/m"], len(held), load(out, "_manifest.json")["successes"]), (n + 2, n - 2, n),
           "two shards are made again, the others are counted")
    proxy.close()


def test_refusals(d, local, server):
    part = os.path.join(d, "p.parquet")
    out = ["--output", "s3://data/x"]

    def fails(name, args, env, rc_want, cause_want, words):
        rc, so, se = run(args, env=env)
        tap.ok(rc == rc_want and cause(se) == cause_want and all(w in se for w in words), "%s is %s" %
               (name, cause_want), "%d %s" % (rc, se))
    fails("a bucket that is not there", ["--parquet", part, "--output", "s3://nope-bucket/x"], local.env(), 65,
          "bad_input", ["nope-bucket"])
    fails("a part's bucket that is not there", ["--parquet", "s3://nope-bucket/p"] + out, local.env(), 65,
          "bad_input", ["nope-bucket"])
    fails("a bucket we may not write to", ["--parquet", part, "--output", "s3://locked/x"], local.env(), 77,
          "access_denied", ["locked"])
    fails("a part's bucket we may not read", ["--parquet", "s3://locked/p"] + out, local.env(), 77,
          "access_denied", ["s3://locked/p"])
    fails("a part that is not there", ["--parquet", "s3://data/meta/none.parquet"] + out, local.env(), 65,
          "bad_input", ["none.parquet"])
    fails("a wrong secret", ["--parquet", part] + out, local.env(AWS_SECRET_ACCESS_KEY="wrong"), 77,
          "access_denied", [])
    fails("an unknown key", ["--parquet", part] + out, local.env(AWS_ACCESS_KEY_ID="AKIANOBODY"), 77,
          "access_denied", [])
    fails("no credentials", ["--parquet", part] + out, local.env(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY=""), 77,
          "access_denied", [])
    local.put("data/meta/cut.parquet", open(part, "rb").read()[:-20])
    fails("a truncated part in S3", ["--parquet", "s3://data/meta/cut.parquet"] + out, local.env(), 65,
          "bad_input", ["truncated parquet", "s3://data/meta/cut.parquet"])
    shut = socket.socket()
    shut.bind(("127.0.0.1", 0))
    fails("S3 out of reach", ["--parquet", part] + out,
          local.env(AWS_ENDPOINT_URL="http://127.0.0.1:%d" % shut.getsockname()[1]), 75, "network", [])


def test_odd_keys(d, local, server):
    rows = [{"URL": server.serve("/odd%d.jpg" % i, encode(photo(40, 30, i), "JPEG")), "TEXT": "t"} for i in range(6)]
    s3 = local.client()
    for i, key in enumerate(("in//list/a.parquet", "in//list//b.parquet", "in//list")):
        part = os.path.join(d, "odd%d.parquet" % i)
        make_parquet(part, rows[2 * i:2 * i + 2], {"URL": "VARCHAR", "TEXT": "VARCHAR"})
        s3.put_object(Bucket="data", Key=key, Body=open(part, "rb").read())
    s3.put_object(Bucket="data", Key="in//list/", Body=b"")  # what a console makes for a folder
    for uri, out, want in (("in//list//b.parquet", "odd//one", rows[2:4]), ("in//list/", "odd//all/", rows[:2]), ("in//list", "odd/same", rows[4:])):
        rc, so, se = run(["--parquet", "s3://data/" + uri, "--output", "s3://data/" + out, "--number_sample_per_shard", 50, "--allow-net", server.net],
                         env=local.env())
        if not tap.ok(rc == 0, "s3://data/%s is read, s3://data/%s written" % (uri, out), se):
            continue
        get = lambda name: s3.get_object(Bucket="data", Key=out.rstrip("/") + "/" + name)["Body"].read()  # noqa: E731
        shard = os.path.join(d, "odd.tar")
        with open(shard, "wb") as f:
            f.write(get("00000.tar"))
        tap.eq(sorted(json.loads(v["json"])["url"] for v in samples(shard).values()), sorted(r["URL"] for r in want), "with the rows of that object")
        tap.eq([o["key"] for o in json.loads(get("_manifest.json"))["objects"]], ["00000" + x for x in (".parquet", ".tar", "_stats.json")],
               "and the objects of its manifest")


with Folder() as d:
    server = Server()
    local = Local(d)
    try:
        for f in (test_output, test_resume, test_resume_of_many, test_refusals, test_odd_keys):
            if os.environ.get("ONLY", "") in f.__name__:
                f(d, local, server)
    finally:
        local.stop()
sys.exit(tap.done())
