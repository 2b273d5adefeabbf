#!/usr/bin/python3
"""Aim: every output_format holds the same samples as webdataset, as img2dataset lays them out, and keeps what is
promised of shards: resumed, extended, overwritten, killed, on a full disk, in a folder and in S3. Method: one
part in all formats; the pictures byte for byte, JSON by Python, Parquet by hyparquet, TFRecord by a reader of
this file (CRC-32C, protobuf), pixels by cv2; a worker killed with all but one row of a shard done.
"""
import base64
import os
import signal
import subprocess
import sys

import cv2

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *
from kit.worker.s3 import Local, manifest_faults

tap = Tap()
READER = os.path.join(TOP, "tests", "kit", "worker", "parquet_reader.mjs")
PACKAGES = os.path.join(TOP, "build", "e2e", "package.json")
FORMATS = ("webdataset", "files", "parquet", "tfrecord", "dummy")
PER, ROWS = 150, 210  # 1.4 shards; more rows a shard than a row group has
TYPES = {"url": "VARCHAR", "caption": "VARCHAR", "n": "INTEGER", "sim": "DOUBLE", "ok": "BOOLEAN", "u": "UBIGINT",
         "fs": "DOUBLE[]", "ns": "INTEGER[]", "vs": "VARCHAR[]", "none": "DOUBLE[]", "mixed": "INTEGER[]",
         "st": "STRUCT(a INTEGER)", "day": "DATE"}
EXTRA = [c for c in TYPES if c not in ("url", "caption")]


# --- readers ---------------------------------------------------------------------------------------
CRC = [0] * 256
for i in range(256):
    c = i
    for _ in range(8):
        c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
    CRC[i] = c


def masked_crc(data):
    c = 0xffffffff
    for b in data:
        c = CRC[(c ^ b) & 255] ^ c >> 8
    c ^= 0xffffffff
    return ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff


def fields(data):
    """[(number, value)] of a protobuf message: bytes, or an int of a varint."""
    at, out = 0, []

    def varint():
        nonlocal at
        v = shift = 0
        while True:
            b = data[at]
            at += 1
            v |= (b & 127) << shift
            shift += 7
            if not b & 128:
                return v
    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            out.append((tag >> 3, varint()))
        else:
            n = varint()
            assert tag & 7 == 2 and at + n <= len(data), (tag, n)
            out.append((tag >> 3, data[at:at + n]))
            at += n
    return out


def packed_ints(data):
    out, v, shift = [], 0, 0
    for b in data:
        v |= (b & 127) << shift
        shift += 7
        if not b & 128:
            out.append(v - (1 << 64) if v >> 63 else v)
            v = shift = 0
    return out


def feature(data):
    """A Feature's ("bytes" | "float" | "int64", [values]); None: without a value."""
    found = fields(data)
    if not found:
        return None
    (kind, of), = found
    inner = fields(of)
    assert all(n == 1 for n, _ in inner)
    if kind == 1:
        return "bytes", [v for _, v in inner]
    (_, packed), = inner
    return ("float", [v for v, in struct.iter_unpack("<f", packed)]) if kind == 2 else ("int64", packed_ints(packed))


def records(path):
    """The records of a TFRecord file, checksums checked."""
    data, at, out = open(path, "rb").read(), 0, []
    while at < len(data):
        n, = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked_crc(data[at:at + 8]), "checksum of a length"
        body = data[at + 12:at + 12 + n]
        assert len(body) == n and struct.unpack_from("<I", data, at + 12 + n)[0] == masked_crc(body), "checksum of data"
        out.append(body)
        at += 16 + n
    return out


def example(data):
    """name -> feature of a tf.train.Example."""
    (one, features), = fields(data)
    assert one == 1
    out = {}
    for one, entry in fields(features):
        e = dict(fields(entry))
        assert one == 1 and set(e) == {1, 2}
        assert e[1].decode() not in out, "twice: %r" % e[1]
        out[e[1].decode()] = feature(e[2])
    return out


def parquet_by_node(*paths):
    p = subprocess.run(["node", READER] + list(paths), capture_output=True, text=True, env=dict(os.environ, PACKAGES=PACKAGES))
    found = [json.loads(x) for x in p.stdout.splitlines()]
    return found if p.returncode == 0 and len(found) == len(paths) else [{"columns": [p.stderr], "groups": [], "rows": []}] * len(paths)


# --- runs ------------------------------------------------------------------------------------------
def make_part(d, server, name="part", rows=ROWS, caption="cap"):
    photos = [encode(photo(24, 18, i), "JPEG", quality=80) for i in range(9)]
    data = []
    for i in range(rows):
        path = "/%s%d" % (name, i)
        if i % 10 == 4:
            url = server.serve("/no" + path, b"", status=503 if i == 4 else 404)
        else:
            url = server.serve(path, b"<html>" if i % 10 == 7 else photos[i % 9])
        data.append({"url": url, "caption": None if i % 6 == 2 else "%s \u00e9\U0001f600 %d" % (caption, i), "n": None if i == 5 else i - 3,
                     "sim": i / 7, "ok": i % 2 == 0, "u": 2 ** 63 + i if i % 2 else i, "fs": [i / 2, 1.0], "ns": [i, -1, 2 ** 31 - 1],
                     "vs": ["a", None, "\u00e9"], "none": [], "mixed": [1, None], "st": {"a": i}, "day": "2024-02-29"})
    part = os.path.join(d, name + ".parquet")
    make_parquet(part, data, TYPES)
    return part


def args_of(server, part, out, fmt, *more, per=PER, size=32):
    return ["--parquet", part, "--output", out, "--output_format", fmt, "--number_sample_per_shard", per, "--allow-net",
            server.net, "--image_size", size, "--processes_count", 1, "--progress_interval", 3600, "--timeout", 100] + list(more)


def go(server, part, out, fmt, *more, per=PER, size=32, env=None):
    return run(args_of(server, part, out, fmt, *more, per=per, size=size), env=env)


def content(out):
    """name -> bytes of all files, or what of them is the same in each run."""
    found = {}
    for top, _, names in os.walk(out):
        for n in names:
            path = os.path.join(top, n)
            rel = os.path.relpath(path, out)
            if n.endswith("_stats.json"):
                found[rel] = {k: v for k, v in json.load(open(path)).items() if "time" not in k and k != "duration"}
            elif rel == "_manifest.json":
                m = json.load(open(path))
                found[rel] = [m[k] for k in ("rows_in", "rows_out", "successes", "failed_to_download", "failed_to_resize", "statuses")]
            elif n.endswith(".tar"):
                found[rel] = sorted(members(path))
            elif n.endswith(".tfrecord"):
                found[rel] = sorted(records(path))
            elif n.endswith(".parquet") and not os.path.exists(path[:-8] + ".tar"):
                found[rel] = sorted(map(str, read_parquet(path)))  # rows of output_format parquet have no order
            elif rel not in ("_progress.json", "_part.json"):
                found[rel] = open(path, "rb").read()
    return found


def layout(out):
    return sorted(n + "/" if os.path.isdir(os.path.join(out, n)) else n for n in os.listdir(out))


OWN = ["_manifest.json", "_part.json", "_progress.json"]
PIECES = {"webdataset": (".parquet", ".tar", "_stats.json"), "files": (".parquet", "/", "_stats.json"),
          "parquet": (".parquet", "_stats.json"), "tfrecord": (".parquet", ".tfrecord", "_stats.json"), "dummy": ("_stats.json",)}


def want_layout(fmt, shards):
    return sorted(["%05d%s" % (i, x) for i in range(shards) for x in PIECES[fmt]] + OWN)


# --- the formats -----------------------------------------------------------------------------------
def test_formats(d, server):
    part = make_part(d, server)
    outs = {}
    for fmt in FORMATS:
        outs[fmt] = os.path.join(d, fmt)
        rc, so, se = go(server, part, outs[fmt], fmt, "--save_additional_columns", ",".join(EXTRA))
        tap.ok(rc == 0, "%s: written" % fmt, se)
        tap.eq(layout(outs[fmt]), want_layout(fmt, 2), "%s: its files and no others" % fmt)
        tap.eq(manifest_faults(outs[fmt], False), [], "%s: the manifest names them" % fmt)
    all_of = {fmt: content(outs[fmt]) for fmt in FORMATS}
    want = all_of["webdataset"]
    for name in ("_manifest.json", "00000_stats.json", "00001_stats.json"):
        tap.eq([fmt for fmt in FORMATS if all_of[fmt][name] != want[name]], [], "the same counts everywhere: " + name)
    tars = {n: data for t in ("00000.tar", "00001.tar") for n, data in want[t]}
    tap.ok(len(tars) == 3 * 168, "webdataset has 168 samples", len(tars))
    check_files(outs, all_of, want, tars)
    check_parquet(outs, tars)
    check_tfrecord(outs, all_of, want, tars)
    for fmt, suffix in (("files", "webp"), ("parquet", "png"), ("tfrecord", "webp")):
        out = os.path.join(d, fmt + suffix)
        rc, so, se = go(server, part, out, fmt, "--encode_format", suffix, "--encode_quality", 9, "--caption_col", "None")
        if fmt == "files":
            got = {n.split(".")[1] for n in os.listdir(out + "/00000")}
        elif fmt == "parquet":
            got = set(parquet_by_node(out + "/00000.parquet")[0]["columns"][-1:])
        else:
            got = {n for r in records(out + "/00000.tfrecord") for n in example(r) if n in ("webp", "jpg", "txt")}
        tap.eq((rc, got), (0, {suffix, "json"} if fmt == "files" else {suffix}), "%s: as %s and without captions" % (fmt, suffix))


def check_files(outs, all_of, want, tars):
    got = {n: data for n, data in all_of["files"].items() if "/" in n}
    tap.eq(got, {n[:5] + "/" + n: data for n, data in tars.items()}, "files: a folder a shard, each file as in the tar")
    tap.eq([all_of["files"][n] == sorted(map(str, read_parquet(outs["webdataset"] + "/" + n))) for n in ("00000.parquet", "00001.parquet")],
           [True] * 2, "files: the same parquet")
    key = sorted(n for n in tars if n.endswith(".jpg"))[0][:-4]
    meta = json.loads(got["00000/%s.json" % key])
    px = cv2.imread(outs["files"] + "/00000/%s.jpg" % key)
    tap.eq((meta["key"], px.shape, meta["status"]), (key, (meta["height"], meta["width"], 3), "success"), "files: read by cv2 and json")


def check_parquet(outs, tars):
    found = parquet_by_node(*[outs[f] + "/%s.parquet" % s for s in ("00000", "00001") for f in ("parquet", "webdataset")])
    for shard, groups, got, beside in (("00000", [100, 50]) + tuple(found[:2]), ("00001", [60]) + tuple(found[2:])):
        side = beside["rows"]
        tap.eq((got["columns"], got["groups"]), (beside["columns"] + ["jpg"], groups),
               "parquet %s: the sidecar's columns, then the picture; row groups of 100" % shard)
        rows = sorted(got["rows"], key=lambda r: r["key"])
        pictures = {r["key"]: r.pop("jpg") for r in rows}
        tap.eq(rows, side, "parquet %s: every row as in the sidecar, by another reader" % shard)
        won = {r["key"] for r in side if r["status"] == "success"}
        bad = [k for k, v in pictures.items() if (None if v is None else base64.b64decode(v)) !=
               (tars[k + ".jpg"] if k in won else None)]
        tap.eq((len(won) > 20, bad), (True, []), "parquet %s: the tar's pictures, null where there is none" % shard)
    types = parquet_schema(outs["parquet"] + "/*.parquet")
    tap.eq((types[-1][1], [t for n, t in types if n in ("fs", "st", "day", "u")]), ("BLOB", ["UBIGINT", "DOUBLE[]", "STRUCT(a INTEGER)", "DATE"]),
           "parquet: types of the input, by DuckDB")


def check_tfrecord(outs, all_of, want, tars):
    found = [example(r) for s in ("00000", "00001") for r in records(outs["tfrecord"] + "/%s.tfrecord" % s)]
    by_key = {e["key"][1][0].decode(): e for e in found}
    keys = {n[:-4] for n in tars if n.endswith(".jpg")}
    tap.eq((len(found), set(by_key)), (len(keys), keys), "tfrecord: each success once, checksums and messages hold")
    bad = []
    for k in keys:
        meta, e = json.loads(tars[k + ".json"]), dict(by_key[k])
        if e.pop("jpg") != ("bytes", [tars[k + ".jpg"]]) or e.pop("txt") != ("bytes", [tars[k + ".txt"]]):
            bad.append((k, "jpg or txt"))
        if set(e) != set(meta):
            bad.append((k, set(e) ^ set(meta)))
        bad += [(k, n, e[n], as_feature(n, v)) for n, v in meta.items() if n in e and e[n] != as_feature(n, v)]
    tap.eq(bad, [], "tfrecord: picture, caption and the fields of the json, each as img2dataset types it")
    tap.eq([all_of["tfrecord"][n] == all_of["files"][n] for n in ("00000.parquet", "00001.parquet")], [True] * 2,
           "tfrecord: the same parquet beside")


def single(v):
    return struct.unpack("<f", struct.pack("<f", v))[0]


def as_feature(name, v):
    """What TFRecordSampleWriter makes of a value, and our text where it loses the row."""
    if isinstance(v, list):
        if not v:
            return None
        if None in v and name != "vs":
            return "bytes", [json.dumps(v, separators=(",", ":")).encode()]
        if isinstance(v[0], float):
            return "float", [single(x) for x in v]
        return ("int64", v) if isinstance(v[0], int) else ("bytes", [(x or "").encode() for x in v])
    if isinstance(v, dict):
        return "bytes", [json.dumps(v, separators=(",", ":")).encode()]
    if isinstance(v, int):
        return ("int64", [int(v)]) if v < 2 ** 63 else ("bytes", [b"%d" % v])
    return ("float", [single(v)]) if isinstance(v, float) else ("bytes", [(v or "").encode()])


# --- what holds for shards -------------------------------------------------------------------------
def fetched(server):
    n = sum(server.hits.values())
    server.hits.clear()
    return n


def test_resume(d, server):
    part = make_part(d, server, "re", 40)
    for fmt in FORMATS[1:]:
        out = os.path.join(d, "re-" + fmt)
        rc, so, se = go(server, part, out, fmt, per=10)
        whole = content(out)
        fetched(server)
        rc2, so2, se2 = go(server, part, out, fmt, per=10)
        tap.eq((rc, rc2, "already finished" in so2, fetched(server)), (0, 0, True, 0), "%s: not done again" % fmt)
        for piece in PIECES[fmt]:
            os.unlink(out + "/_manifest.json")
            gone = os.path.join(out, "00002" + piece)
            shutil.rmtree(gone) if piece == "/" else os.unlink(gone)
            rc, so, se = go(server, part, out, fmt, per=10)
            tap.ok(rc == 0 and fetched(server) == 10 and content(out) == whole, "%s: a shard without its %s is done again" % (fmt, piece), se)
        other = "files" if fmt != "files" else "webdataset"
        before = content(out)
        rc, so, se = go(server, part, out, other, per=10)
        tap.ok(rc == 65 and "setting output_format: '%s' there" % fmt in se and content(out) == before,
               "%s: an output of it is not continued as %s" % (fmt, other), "%d %s" % (rc, se))
    # Written before there was a choice.
    out = os.path.join(d, "old")
    go(server, part, out, "webdataset", per=10)
    record = load(out, "_part.json")
    del record["parts"][0]["settings"]["output_format"]
    json.dump(record, open(out + "/_part.json", "w"))
    os.unlink(out + "/_manifest.json")
    os.unlink(out + "/00001_stats.json")
    fetched(server)
    rc, so, se = go(server, part, out, "webdataset", per=10)
    tap.ok(rc == 0 and fetched(server) == 10, "a record without output_format is of webdataset", se)


def test_modes(d, server):
    a, b = make_part(d, server, "ma", 25), make_part(d, server, "mb", 12)
    for fmt in FORMATS[1:]:
        out = os.path.join(d, "ext-" + fmt)
        rc = go(server, a, out, fmt, per=10)[0]
        rc2, so, se = go(server, b, out, fmt, "--incremental_mode", "extend", per=10)
        m = load(out, "_manifest.json")
        tap.ok((rc, rc2) == (0, 0) and layout(out) == want_layout(fmt, 5) and manifest_faults(out, False) == [],
               "%s: extended, proven as a whole" % fmt, "%s %r" % (se, layout(out)))
        tap.eq((m["first_shard"], m["rows_in"], [e["rows_in"] for e in m["earlier"]]), (3, 12, [25]), "%s: with its counts" % fmt)
    keys = {k.split(".")[0] for i in range(5) for k in os.listdir(d + "/ext-files/%05d" % i)}
    tap.ok(keys <= {"%06d" % i for i in list(range(25)) + [30 + i for i in range(12)]} and "000030" in keys, "files: keys go on", keys)
    out = os.path.join(d, "over")
    for fmt in ("webdataset", "files", "tfrecord", "files", "parquet", "dummy"):
        rc, so, se = go(server, b, out, fmt, "--incremental_mode", "overwrite", per=10)
        tap.ok(rc == 0 and layout(out) == want_layout(fmt, 2), "overwritten by %s: nothing is left" % fmt, "%s %r" % (se, layout(out)))
    os.mkdir(out + "/20")  # somebody's
    rc = go(server, b, out, "files", "--incremental_mode", "overwrite", per=10)[0]
    rc2, so, se = go(server, b, out, "files", "--incremental_mode", "overwrite", "--oom_shard_count", 3, per=10)
    tap.eq((rc, rc2, sorted(n for n in os.listdir(out) if n[0].isdigit())),
           (0, 0, sorted(["20"] + ["%03d%s" % (i, x) for i in (0, 1) for x in ("", ".parquet", "_stats.json")])),
           "and folders whose numbers had more digits")
    # The folder of a shard may be the output of another part.
    out = os.path.join(d, "nested")
    rc = go(server, b, out + "/00001", "webdataset", per=10)[0]
    before = content(out)
    for mode in ("overwrite", "incremental"):
        rc2, so, se = go(server, b, out, "files", "--incremental_mode", mode, per=10)
        tap.ok(rc == 0 and rc2 != 0 and "no folder of a shard" in se and {k: v for k, v in content(out).items() if k in before} == before,
               "%s: the output of another part is left alone" % mode, "%d %s" % (rc2, se))
        for n in ("_part.json", "_mode.json"):
            if os.path.exists(out + "/" + n):
                os.unlink(out + "/" + n)
    rc, so, se = run(["--url_list", d + "/ext-parquet", "--output", d + "/again", "--output_format", "files", "--retry-failed",
                      "--allow-net", server.net])
    tap.ok(rc == 0 and load(d + "/again", "_manifest.json")["rows_in"] > 0, "parquet: its failed rows are input of a second pass", se)
    rc, so, se = run(["--url_list", d + "/ext-dummy", "--output", d + "/again2", "--retry-failed"])
    tap.ok(rc == 65 and "no sidecars" in se, "dummy has none", "%d %s" % (rc, se))
    for fmt in ("files", "parquet"):
        p = subprocess.run([WORKER, "index", "--input", d + "/ext-" + fmt, "--output", d + "/ix"], capture_output=True, text=True)
        tap.ok(p.returncode == 65 and "no .tar below" in p.stderr and "webdataset" in p.stderr, "index refuses %s" % fmt, p.stderr)


class Held:
    """A worker that has done all rows of its first shard but one, which waits for the gate."""

    def __init__(self, server, part, out, fmt, env, done):
        self.gate = threading.Event()
        route = server.routes.pop("/k9")
        server.routes["/k9"] = lambda h: (self.gate.wait(90), h.answer(*route))
        self.restore = lambda: server.routes.__setitem__("/k9", route)
        self.p = start(args_of(server, part, out, fmt, "--thread_count", 8, per=20), env=env)
        self.reached = wait_for(done, 60)

    def go_on(self):
        self.gate.set()
        self.restore()
        return finish(self.p)

    def kill(self):
        self.p.send_signal(signal.SIGKILL)
        self.p.communicate()
        self.gate.set()
        self.restore()


def test_killed(d, server, part, wanted):
    for fmt in FORMATS[1:]:
        out = os.path.join(d, "kill-" + fmt)
        server.hits.clear()
        # The second shard is short and ends; of the first one row is missing.
        h = Held(server, part, out, fmt, None, lambda: os.path.exists(out + "/00001_stats.json"))
        h.kill()
        there = [n for n in layout(out) if n.startswith("00000")] if h.reached else ["never came so far"]
        tap.eq(there, [], "%s: killed, nothing of the open shard shows" % fmt)
        fetched(server)
        rc, so, se = go(server, part, out, fmt, per=20)
        tap.ok(rc == 0 and fetched(server) == 20 and content(out) == wanted[fmt] and not [n for n in os.listdir(out) if n[0] == "."],
               "%s: the next run ends it as undisturbed" % fmt, "%s %r" % (se, layout(out)))


def test_full_disk(d, server, part):
    place = os.path.join(d, "small")
    os.makedirs(place)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True).returncode != 0:
        tap.ok(True, "a full disk # SKIP no file system can be mounted")
        return
    try:
        for fmt in FORMATS[1:4]:
            rc, so, se = go(server, part, os.path.join(place, fmt), fmt, "--encode_quality", 100, per=28, size=256)
            left = [n for n in os.listdir(place + "/" + fmt) if n.startswith("0") or n == "_manifest.json"]
            tap.ok(rc == 74 and not left, "%s: a full disk is told as such" % fmt, "%d %r %s" % (rc, left, se))
            shutil.rmtree(place + "/" + fmt)
    finally:
        subprocess.run(["umount", place], check=True)


# --- S3 --------------------------------------------------------------------------------------------
def test_in_s3(d, server, part, wanted):
    local = Local(d)
    env = local.env()
    try:
        for fmt in FORMATS[1:]:
            rc, so, se = go(server, part, "s3://data/" + fmt, fmt, per=20, env=env)
            out = local.folder("data", fmt)
            tap.ok(rc == 0 and content(out) == wanted[fmt] and manifest_faults(out, True) == [],
                   "%s in S3: as in a folder, proven by ETags" % fmt, "%s %r" % (se, manifest_faults(out, True) if rc == 0 else ""))
        files = [q["name"] for q in local.wire("PutObject") if "files/0" in q["name"] and q["status"] == 200]
        n = sum(len(os.listdir(local.folder("data", "files", "0000%d" % i))) for i in range(2))
        tap.ok(len([x for x in files if x.count("/") == files[0].count("/")]) > 0 and len(files) == n + 4,
               "files in S3: one PUT for each file, parquet and stats", "%d %d %r" % (len(files), n, files[:3]))
        s3_killed(local, server, part, wanted)
        s3_faults(local, server, part, wanted)
        s3_second_writer(local, server, part)
    finally:
        local.stop()


def s3_killed(local, server, part, wanted):
    out = local.folder("data", "kill")
    shown = local.folder("data", "kill", "00000")
    h = Held(server, part, "s3://data/kill", "files", local.env(),
             lambda: os.path.exists(out + "/00001_stats.json") and os.path.isdir(shown) and len(os.listdir(shown)) >= 45)
    h.kill()
    tap.ok(h.reached and [n for n in layout(out) if n.startswith("00000")] == ["00000/"], "files in S3: killed, some files are there", layout(out))
    # Rows that succeeded then and fail now must not leave their pictures.
    lost = server.routes["/k3"]
    server.routes["/k3"] = (404, {}, b"")
    local.put("data/kill/00000/0000099.jpg", b"left")
    rc, so, se = go(server, part, "s3://data/kill", "files", per=20, env=local.env())
    server.routes["/k3"] = lost
    got = content(out)
    tap.ok(rc == 0 and {n for n in wanted["files"] if n not in got} == {"00000/0000003." + x for x in ("jpg", "json", "txt")}
           and set(got) <= set(wanted["files"]), "files in S3: what the killed run left is replaced or removed", "%s %r" % (se, set(got) ^ set(wanted["files"])))
    rc, so, se = go(server, part, "s3://data/kill", "parquet", "--incremental_mode", "overwrite", per=20, env=local.env())
    tap.ok(rc == 0 and content(out) == wanted["parquet"], "files in S3: overwritten, all of them are removed", "%s %r" % (se, layout(out)))


def s3_faults(local, server, part, wanted):
    local.faults({"operation": "PutObject", "name_contains": ".jpg", "kind": "error_503", "times": 5, "after": 3},
                 {"operation": "PutObject", "name_contains": ".json", "kind": "drop_after", "times": 4, "after": 2})
    rc, so, se = go(server, part, "s3://data/faults", "files", per=20, env=local.env())
    tap.ok(rc == 0 and local.hits() == 9 and content(local.folder("data", "faults")) == wanted["files"],
           "files in S3: failed and lost PUTs are sent again", "%d hits %s" % (local.hits(), se))
    local.faults({"operation": "PutObject", "name_contains": "0000008.", "kind": "error_503", "times": 10000})
    rc, so, se = go(server, part, "s3://data/dead", "files", "--s3_patience", 1, per=20, env=local.env())
    there = layout(local.folder("data", "dead"))
    tap.ok(rc not in (0, 65) and "another writer" not in se and "00000_stats.json" not in there and "00000.parquet" not in there and "_manifest.json" not in there,
           "files in S3: a file that cannot be put fails the run", "%d %r %s" % (rc, there, se))
    local.faults()
    rc, so, se = go(server, part, "s3://locked/x", "files", per=20, env=local.env())
    tap.eq(rc, 77, "files in S3: no access is told as such")


def load_bytes(path):
    return open(path, "rb").read() if os.path.exists(path) else None


def s3_second_writer(local, server, part):
    out = local.folder("data", "two")
    h = Held(server, part, "s3://data/two", "files", local.env(), lambda: os.path.exists(out + "/00001_stats.json"))
    local.put("data/two/00000.parquet", b"of another writer")
    rc, so, se = h.go_on()
    tap.ok(h.reached and rc != 0 and "another writer" in se and "'00000.parquet' exists" in se and load_bytes(out + "/00000.parquet") == b"of another writer",
           "files in S3: a shard that another writer has written is left to it", "%d %s" % (rc, se))
    local.put("data/two/00000.parquet", b"")
    os.unlink(out + "/00000.parquet")
    shutil.rmtree(out + "/00000", ignore_errors=True)
    h = Held(server, part, "s3://data/two", "files", local.env(), lambda: os.path.isdir(out + "/00000") and
             len(os.listdir(out + "/00000")) >= 45)
    local.put("data/two/00000/0000000.json", b"of another writer")
    rc, so, se = h.go_on()
    tap.ok(h.reached and rc != 0 and "another writer" in se and "00000_stats.json" not in os.listdir(out),
           "files in S3: a file of another writer is found before the shard is whole", "%d %s" % (rc, se))
    rc, so, se = go(server, part, "s3://data/two", "files", per=20, env=local.env())
    tap.ok(rc == 0 and manifest_faults(out, True) == [], "files in S3: the next run ends it", se)


def undisturbed(d, server, part):
    found = {}
    for fmt in FORMATS[1:]:
        out = os.path.join(d, "whole-" + fmt)
        go(server, part, out, fmt, per=20)
        found[fmt] = content(out)
    return found


with Folder() as d:
    server = Server()
    test_formats(d, server)
    test_resume(d, server)
    test_modes(d, server)
    held = make_part(d, server, "k", 28)
    whole = undisturbed(d, server, held)
    test_killed(d, server, held, whole)
    test_full_disk(d, server, held)
    test_in_s3(d, server, held, whole)
sys.exit(tap.done())
