#!/usr/bin/python3
"""Aim: a killed, stopped or concurrent worker loses and repeats no finished work; bad input ends as one clear
cause. Method: a web server that holds back the URLs of later shards and counts requests; SIGKILL, SIGTERM,
files removed and added between runs. Kills at random moments are in worker_kill.py.
"""
import hashlib
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *

tap = Tap()
PER = 20
SHARDS = 8
BODY = encode(photo(120, 90, 1), "JPEG", quality=90)


class Gate:
    """A part whose rows from shard `first_held` on, but for its first `passed`, are answered only once the gate is open."""

    def __init__(self, d, name, first_held, passed=0):
        self.server = Server()
        self.open = threading.Event()
        rows = []
        for i in range(PER * SHARDS):
            path = "/%s/%d.jpg" % (name, i)
            held = i // PER >= first_held and i >= passed

            def answer(h, held=held):
                if held:
                    self.open.wait(60)
                h.answer(200, {"Content-Type": "image/jpeg"}, BODY)
            self.server.routes[path] = answer
            rows.append({"URL": self.server.url(path), "TEXT": "t%d" % i})
        self.part = os.path.join(d, name + ".parquet")
        make_parquet(self.part, rows, {"URL": "VARCHAR", "TEXT": "VARCHAR"})
        self.out = os.path.join(d, name)

    def args(self):
        return ["--parquet", self.part, "--output", self.out, "--number_sample_per_shard", PER,
                "--allow-net", self.server.net, "--timeout", 60, "--processes_count", 2]

    def done(self):
        names = os.listdir(self.out) if os.path.isdir(self.out) else []
        return {int(n[:5]) for n in names if n.endswith("_stats.json") and n[0] != "."}

    def hits(self, shard):
        return [self.server.hits["/%s/%d.jpg" % (os.path.basename(self.out), i)]
                for i in range(shard * PER, (shard + 1) * PER)]

    def keys(self):
        return [k for i in range(SHARDS) for k in samples(os.path.join(self.out, "%05d.tar" % i))]

    def digest(self, shard):
        return [hashlib.sha256(open(os.path.join(self.out, "%05d%s" % (shard, s)), "rb").read()).hexdigest()
                for s in (".tar", ".parquet", "_stats.json")]


ALL_KEYS = ["%07d" % (100 * s + r) for s in range(SHARDS) for r in range(PER)]


def check_whole(g, name):
    m = load(g.out, "_manifest.json")
    tap.eq((m["rows_in"], m["rows_out"], m["successes"]), (PER * SHARDS,) * 3, "%s: manifest counts all rows" % name)
    tap.eq(sorted(g.keys()), ALL_KEYS, "%s: the same set of keys" % name)
    for i in range(SHARDS):
        t = read_parquet(os.path.join(g.out, "%05d.parquet" % i))
        if [r["key"] for r in t] != ALL_KEYS[i * PER:(i + 1) * PER]:
            tap.ok(False, "%s: sidecar %d" % (name, i), t)
    tap.eq([n for n in os.listdir(g.out) if n.startswith(".")], [], "%s: nothing temporary is left" % name)


def test_kill(d):
    g = Gate(d, "kill", 3)
    p = start(g.args())
    tap.ok(wait_for(lambda: g.done() == {0, 1, 2}), "three shards finish while the rest waits", g.done())
    below = descendants(p.pid)
    tap.ok(len(below) == 3, "a fork server and two decoding processes run", below)
    status = [open("/proc/%d/status" % c).read() for c in below[1:]]
    if VARIANT == "release":
        tap.ok(all("NoNewPrivs:\t1" in s and "Seccomp:\t2" in s for s in status),
               "decoding processes run under a filter of system calls", status)
        limits = open("/proc/%d/limits" % below[1]).read()
        tap.ok(" 1073741824 " in limits.split("Max address space")[1].split("\n")[0]
               and limits.split("Max core file size")[1].split()[0] == "0", "and limits", limits)
    p.kill()
    p.communicate()
    tap.ok(wait_for(lambda: not any(os.path.exists("/proc/%d" % c) for c in below)),
           "they end with a worker that was killed")
    kept = {i: g.digest(i) for i in range(3)}
    tap.ok(not os.path.exists(os.path.join(g.out, "_manifest.json")), "no manifest yet")
    g.open.set()
    rc, so, se = run(g.args())
    tap.ok(rc == 0, "the second run ends well", se)
    tap.eq({i: g.digest(i) for i in range(3)}, kept, "finished shards are kept byte for byte")
    tap.eq([g.hits(i) for i in range(3)], [[1] * PER] * 3, "no URL of a finished shard was fetched again")
    check_whole(g, "after SIGKILL")


def test_term(d, group):
    g = Gate(d, "term%d" % group, 2)
    p = start(g.args(), start_new_session=True)
    wait_for(lambda: g.done() == {0, 1})
    began = time.monotonic()
    if group:
        os.killpg(p.pid, signal.SIGTERM)
    else:
        p.terminate()
    out, err = p.communicate(timeout=patience(90))
    what = "the process group" if group else "the process"
    tap.eq(p.returncode, 143, "SIGTERM to %s ends with 143" % what)
    tap.ok(time.monotonic() - began < patience(60), "and while its rows would wait for ever")
    tap.ok(g.done() == {0, 1} and sorted(samples(os.path.join(g.out, "00001.tar"))) == ALL_KEYS[PER:2 * PER],
           "with finished shards durable", g.done())
    kept = {i: g.digest(i) for i in range(2)}
    g.open.set()
    rc, so, se = run(g.args())
    tap.ok(rc == 0 and {i: g.digest(i) for i in range(2)} == kept, "and resumes", se)
    check_whole(g, "after SIGTERM to %s" % what)


def test_pieces(d):
    g = Gate(d, "pieces", SHARDS)
    rc, so, se = run(g.args())
    tap.ok(rc == 0, "a whole part", se)
    kept = {i: g.digest(i) for i in range(SHARDS)}
    for name in ("_manifest.json", "00001_stats.json", "00002.tar", "00003.parquet", "00004.tar",
                 "00004.parquet"):
        os.unlink(os.path.join(g.out, name))
    open(os.path.join(g.out, ".tmp-1-1-00005.tar"), "w").write("half")
    rc, so, se = run(g.args())
    tap.ok(rc == 0, "resumes over shards with pieces missing", se)
    tap.eq([i for i in range(SHARDS) if g.digest(i) == kept[i]], [0, 5, 6, 7], "whole shards are kept, others redone")
    tap.eq([max(g.hits(i)) for i in range(SHARDS)], [1, 2, 2, 2, 2, 1, 1, 1], "and only those are fetched again")
    check_whole(g, "after losing pieces")
    os.unlink(os.path.join(g.out, "_manifest.json"))
    bad = [PER + 5 if a == PER else a for a in g.args()]
    rc, so, se = run(bad)
    tap.ok(rc == 65 and "number_sample_per_shard" in se, "another shard size is refused with the reason", se)
    stats = load(g.out, "00006_stats.json")
    for i, text in enumerate(('{"count": 1', "[]", json.dumps(dict(stats, successes=stats["successes"] + 1)),
                              json.dumps(dict(stats, count=2**63 - 1)))):
        open(os.path.join(g.out, "0000%d_stats.json" % i), "w").write(text)
    rc, so, se = run(g.args())
    tap.ok(rc == 0 and all("'0000%d_stats.json'" % i in se for i in range(4)), "damaged stats files are named", se)
    tap.eq([max(g.hits(i)) for i in range(SHARDS)], [2, 3, 3, 3, 2, 1, 1, 1], "and their shards are made again")
    check_whole(g, "after damaged stats")
    os.unlink(os.path.join(g.out, "_manifest.json"))
    open(os.path.join(g.out, "00000_stats.json"), "w").write(json.dumps(dict(stats, count=1, successes=1, failed_to_download=0, failed_to_resize=0)))
    rc, so, se = run(g.args())
    tap.ok(rc == 65 and "'00000_stats.json' counts 1 rows" in se and "to have it made again" in se, "one of another part is refused, with what helps", se)


def test_other_writer(d):
    g = Gate(d, "race", 2)
    p = start(g.args())
    wait_for(lambda: g.done() == {0, 1})
    for s in (".tar", ".parquet", "_stats.json"):
        data = open(os.path.join(g.out, "00000" + s), "rb").read()
        open(os.path.join(g.out, "00004" + s), "wb").write(data)
    theirs = g.digest(4)
    g.open.set()
    out, err = p.communicate(timeout=patience(60))
    tap.ok(p.returncode == 0 and "shard_lost_to_other_writer" in err, "a shard made by another writer is left to it", err)
    tap.eq(g.digest(4), theirs, "all three pieces of it are the other's")

    g = Gate(d, "race2", 2)
    p = start(g.args())
    wait_for(lambda: g.done() == {0, 1})
    open(os.path.join(g.out, "00004.tar"), "wb").write(b"theirs")
    g.open.set()
    out, err = p.communicate(timeout=patience(60))
    tap.ok(p.returncode == 1 and not os.path.exists(os.path.join(g.out, "_manifest.json")),
           "an unfinished shard of another writer means no manifest", err)

    g = Gate(d, "race3", 2)
    p = start(g.args())
    wait_for(lambda: g.done() == {0, 1})
    open(os.path.join(g.out, "00004.parquet"), "wb").write(b"theirs")
    g.open.set()
    out, err = p.communicate(timeout=patience(60))
    tap.ok(p.returncode == 1 and "another writer" in err and not
           any(n.startswith("00004") for n in os.listdir(g.out)), "a shard two writers mixed is removed", err)
    rc, so, se = run(g.args())
    tap.ok(rc == 0, "and made again by the next run", se)
    check_whole(g, "after a mixed shard")


def test_two_at_once(d):
    g = Gate(d, "two", 0)
    g.open.set()
    ps = [start(g.args()) for _ in range(2)]
    for p in ps:
        p.communicate(timeout=patience(60))
    for _ in range(3):
        rc, so, se = run(g.args())
        if rc == 0:
            break
    tap.ok(rc == 0, "after two workers at once on one output a third ends well", se)
    check_whole(g, "after two at once")
    for i in range(SHARDS):
        t = read_parquet(os.path.join(g.out, "%05d.parquet" % i))
        s = samples(os.path.join(g.out, "%05d.tar" % i))
        if any(json.loads(s[r["key"]]["json"]) != r for r in t):
            tap.ok(False, "shard %d is of one writer" % i)


def test_rivals_in_a_folder(d):
    """Each run begins by removing what killed ones left, and no file of a living one is among that."""
    g = Gate(d, "rivals", 0, passed=1)
    slow = start(g.args())
    wait_for(lambda: [x for x in (os.listdir(g.out) if os.path.isdir(g.out) else []) if x.startswith(".tmp-") and x.endswith(".tar")], what="an open shard")
    left = os.path.join(g.out, ".tmp-1-1-00005.tar")
    open(left, "w").write("half")
    rival = start(g.args())
    wait_for(lambda: not os.path.exists(left), what="the rival's sweep")
    g.open.set()
    ends = [finish(p) for p in (slow, rival)]
    # The quicker one may end while the other has not finished its last shard: that is said, and is no lost file.
    lost = [line for _, _, se in ends for line in se.splitlines() if "No such file" in line and "belongs to another writer" not in line]
    tap.ok(not lost, "a rival's sweep leaves the files of a living writer", ends)


def test_contract(d):
    """Started as SageMaker starts it."""
    g = Gate(d, "contract", SHARDS)
    root = os.path.join(d, "ml")
    os.makedirs(root + "/input/config")
    os.makedirs(root + "/input/data/part")
    os.makedirs(root + "/output")
    os.rename(g.part, root + "/input/data/part/p.parquet")

    def job(hyper):
        json.dump(hyper, open(root + "/input/config/hyperparameters.json", "w"))
        if os.path.exists(root + "/output/failure"):
            os.unlink(root + "/output/failure")
        rc, so, se = run([], ml_root=root)
        failure = root + "/output/failure"
        return rc, open(failure).read() if os.path.exists(failure) else None, se

    hyper = {"output_folder": g.out, "number_sample_per_shard": str(PER), "allow_net": g.server.net,
             "image_size": "64", "resize_mode": "\"keep_ratio\"", "sagemaker_region": "x"}
    rc, failure, se = job(hyper)
    tap.ok(rc == 0 and failure is None, "hyperparameters and the only channel are enough", se)
    check_whole(g, "by contract")
    meta = json.loads(samples(os.path.join(g.out, "00000.tar"))["0000000"]["json"])
    tap.eq((meta["width"], meta["height"]), (85, 64), "settings are taken")
    rc, failure, se = job({"output_folder": g.out, "image_sise": "1", "image_size": "many",
                           "resize_mode": "fit", "retries": "-1", "extract_exif": "maybe",
                           "encode_format": "gif", "allow_net": "x", "max_aspect_ratio": "0"})
    words = ["image_sise", "did you mean 'image_size'", "many", "fit", "-1", "maybe", "gif", "ADDR", "max_aspect_ratio"]
    tap.ok(rc == 2 and failure.startswith("bad_input: ") and all(w in failure for w in words),
           "eight wrong settings are told at once", "%d %s" % (rc, failure))
    rc, failure, se = job({"url_list": "channel:nope", "output_folder": g.out + "x"})
    tap.ok(rc == 65 and failure.startswith("bad_input: ") and "part" in failure, "a channel that is not there", failure)
    config = root + "/input/config/resourceconfig.json"
    json.dump({"current_host": "algo-1", "hosts": ["algo-1"]}, open(config, "w"))
    rc, failure, se = job(dict(hyper, output_folder=g.out + "-1"))
    tap.ok(rc == 0, "one host by resourceconfig.json", failure)
    json.dump({"current_host": "algo-1", "hosts": ["algo-1", "algo-2"]}, open(config, "w"))
    rc, failure, se = job(dict(hyper, output_folder=g.out + "-0", hosts_patience="2"))
    tap.ok(rc == 75 and failure.startswith("network: ") and "host 'algo-2' (2 of 2)" in failure, "the other of two hosts never comes", failure)
    os.unlink(config)
    open(root + "/input/config/hyperparameters.json", "w").write("{\"a\":")
    p = start([], ml_root=root)
    so, se = p.communicate(timeout=patience(30))
    tap.ok(p.returncode == 2 and "hyperparameters.json" in se, "settings that are no JSON", se)
    rc, failure, se = job({})
    tap.ok(rc == 2 and "output_folder" in failure, "no output_folder", failure)
    rc, failure, se = job(dict(hyper, output_folder=g.out + "-2", url_list="/opt/ml/input/data/part/p.parquet"))
    tap.ok(rc == 0, "/opt/ml is read below the root", failure)


def test_bad_parts(d):
    part = os.path.join(d, "good.parquet")
    make_parquet(part, [{"LINK": "http://h/%d" % i, "TEXT": "t" * 50} for i in range(5000)],
                 {"LINK": "VARCHAR", "TEXT": "VARCHAR"})
    data = open(part, "rb").read()

    def fails(name, content, words, *more):
        path = os.path.join(d, name)
        if content is not None:
            open(path, "wb").write(content)
        rc, so, se = run(["--parquet", path, "--output", os.path.join(d, "bad-out")] + list(more))
        cause = [json.loads(x)["cause"] for x in se.splitlines() if '"download_failed"' in x]
        tap.ok(rc == 65 and cause == ["bad_input"] and "no reason" not in se and all(w in se for w in words), "%s is bad_input" % name,
               "%d %s" % (rc, se))

    fails("no-url-column", data, ["no column 'url' or 'URL'", "LINK, TEXT"])
    fails("no-named-column", data, ["no column 'link' (url_col)", "LINK"], "--url_col", "link")
    for sql_type, value in (("BIGINT", 7), ("VARCHAR[]", ["http://h/"])):
        odd = os.path.join(d, "odd.parquet")
        make_parquet(odd, [{"url": value}], {"url": sql_type})
        fails("url-" + sql_type, open(odd, "rb").read(), ["the URL column 'url' is of type " + sql_type + ", not text"])
    fails("no-extra-column", data, ["no column 'text'"], "--url_col", "LINK", "--save_additional_columns", "text")
    fails("no-caption-column", data, ["no column 'alt'"], "--url_col", "LINK", "--caption_col", "alt")
    fails("truncated", data[:len(data) // 2], ["truncated parquet"])
    fails("truncated-by-one", data[:-1], ["truncated parquet"])
    fails("empty", b"", ["not a parquet"])
    fails("html", b"<html>" * 100, ["not a parquet", "PAR1"])
    fails("wrong-footer-length", data[:-8] + b"\xff\xff\xff\x00PAR1", ["damaged parquet footer"])
    fails("garbled-footer", data[:-60] + b"\xaa" * 52 + data[-8:], ["parquet"])
    fails("absent", None, ["cannot open"])
    hurt = bytearray(data)
    hurt[40:len(hurt) // 3] = b"\xaa" * (len(hurt) // 3 - 40)
    fails("damaged-pages", bytes(hurt), ["parquet: ", "damaged-pages"], "--url_col", "LINK", "--timeout", "1")


with Folder() as d:
    test_kill(d)
    test_term(d, False)
    test_term(d, True)
    test_pieces(d)
    test_other_writer(d)
    test_two_at_once(d)
    test_rivals_in_a_folder(d)
    test_contract(d)
    test_bad_parts(d)
sys.exit(tap.done())
