#!/usr/bin/python3
"""Aim: shards, sidecars, stats and statuses equal img2dataset's, pixels equal OpenCV's. Method: a real worker
against a real web server; shards are read by GNU tar and Python's tarfile, sidecars by DuckDB, pictures
compared with cv2.resize.
"""
import hashlib
import math
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import cv2
from kit.worker import *
from kit.worker.pixels import decoded, reference

tap = Tap()
cv2.setNumThreads(1)
FIELDS = ["NSFW", "similarity", "caption", "url", "key", "status", "error_message", "width",
          "height", "original_width", "original_height", "exif", "sha256"]
TYPES = {"SAMPLE_ID": "BIGINT", "URL": "VARCHAR", "TEXT": "VARCHAR", "HEIGHT": "INTEGER",
         "WIDTH": "INTEGER", "LICENSE": "VARCHAR", "NSFW": "VARCHAR", "similarity": "DOUBLE"}


def corpus(server):
    """rows and, for each, the expected status and error text (None: not compared)."""
    rows, want = [], []

    def add(url, status, error, text="caption"):
        i = len(rows)
        rows.append({"SAMPLE_ID": i, "URL": url, "TEXT": text, "HEIGHT": 10, "WIDTH": 20,
                     "LICENSE": "?", "NSFW": "UNLIKELY", "similarity": 0.3358 + i})
        want.append((status, error))

    big = photo(640, 480, 1)
    add(server.serve("/a.jpg", encode(big, "JPEG", quality=90)), "success", None, "a \u00e9 \U0001f600 \"q\"\n")
    add(server.url("/gone"), "failed_to_download", "HTTP Error 404: Not Found")
    add(server.serve("/b.png", encode(photo(300, 500, 2), "PNG"), "image/png"), "success", None, "")
    add(server.serve("/html", b"<html>not a picture</html>", "image/jpeg"), "failed_to_resize",
        "Image decoding error")
    add(server.serve("/c.webp", encode(photo(400, 300, 3), "WEBP", quality=90), "text/html"),
        "success", None, None)
    add(server.serve("/bmp", encode(photo(50, 50, 4), "BMP"), "image/bmp"), "failed_to_resize",
        "Image decoding error")
    add(server.serve("/empty", b""), "failed_to_resize", "Image decoding error")
    add(server.serve("/e500", b"x", status=500), "failed_to_download",
        "HTTP Error 500: Internal Server Error")
    grey = photo(200, 100, 5, 1)[:, :, 0]
    add(server.serve("/grey.jpg", encode(grey, "JPEG")), "success", None)
    cut = encode(big, "JPEG", quality=90)
    add(server.serve("/cut.jpg", cut[:len(cut) // 2]), "success", None)
    add(server.serve("/one.png", encode(big[:1, :1], "PNG")), "success", None)
    add(server.serve("/sp ace.jpg".replace(" ", "%20"), encode(big, "JPEG")).replace("%20", " "),
        "success", None)
    add("nonsense", "failed_to_download", "unknown url type: 'nonsense'")
    add("ftp://h/x", "failed_to_download", "<urlopen error unknown url type: ftp>")
    add(None, "failed_to_download", "unknown url type: 'None'")
    add(server.serve("/noai", cut, headers=[("X-Robots-Tag", "noai")]), "failed_to_download",
        "Use of image disallowed by X-Robots-Tag directive")
    add(server.serve("/bomb.png", png_claiming(10 ** 6, 10 ** 6)), "failed_to_resize",
        "image area too large")
    server.routes["/moved"] = (302, {"Location": "/a.jpg"}, b"")
    add(server.url("/moved"), "success", None)
    exif = Image.Exif()
    exif[0x010F] = "Maker"
    exif[0x0110] = "Camera \u00e9"
    add(server.serve("/exif.jpg", encode(big, "JPEG", exif=exif.tobytes())), "success", None)
    cmyk = io.BytesIO()
    Image.fromarray(big).convert("CMYK").save(cmyk, "JPEG", quality=95)
    add(server.serve("/cmyk.jpg", cmyk.getvalue()), "success", None)
    return rows, want


def check_shard(out, name, first, rows, want, bodies):
    t = subprocess.run(["tar", "-tf", os.path.join(out, name + ".tar")], capture_output=True, text=True)
    listed = members(os.path.join(out, name + ".tar"))
    tap.ok(t.returncode == 0 and t.stdout.split() == [m for m, _ in listed],
           "%s: GNU tar and tarfile list the same members" % name, t.stderr)
    keys = []
    for m, _ in listed:
        if m.split(".")[0] not in keys:
            keys.append(m.split(".")[0])
    tap.eq([m for m, _ in listed], ["%s.%s" % (k, e) for k in keys for e in ("jpg", "json", "txt")],
           "%s: members are jpg, json, txt of each key" % name)
    table = read_parquet(os.path.join(out, name + ".parquet"))
    tap.eq([r["key"] for r in table], ["%08d" % (first + i) for i in range(len(rows))],
           "%s: the sidecar has a row for each input row" % name)
    tap.eq([list(r) for r in table], [FIELDS] * len(table), "%s: sidecar columns in order" % name)
    tap.eq([r["status"] for r in table], [w[0] for w in want], "%s: statuses" % name)
    tap.eq([r["error_message"] for r in table], [w[1] for w in want], "%s: error texts" % name)
    tap.eq(sorted(keys), [r["key"] for r in table if r["status"] == "success"],
           "%s: the tar has the successes" % name)
    got = samples(os.path.join(out, name + ".tar"))
    for i, r in enumerate(table):
        if r["status"] != "success":
            if any(r[k] is not None for k in FIELDS[7:]):
                tap.ok(False, "%s: a failed row has nulls" % r["key"], r)
            continue
        s = got[r["key"]]
        meta = json.loads(s["json"])
        same = (list(meta) == FIELDS and meta == r
                and s["txt"] == (rows[i]["TEXT"] or "").encode() and meta["caption"] == rows[i]["TEXT"]
                and meta["url"] == rows[i]["URL"] and meta["similarity"] == rows[i]["similarity"]
                and s["json"] == json.dumps(meta, indent=4).encode())
        tap.ok(same, "%s: json has the fields in order, as json.dumps prints them, and agrees with "
                     "sidecar, txt and input" % r["key"], "%r\n%r" % (s["json"], r))
        body = bodies.get(rows[i]["URL"])
        if body is not None:
            tap.eq(meta["sha256"], hashlib.sha256(body).hexdigest(), "%s: sha256 of the body" % r["key"])
    stats = load(out, name + "_stats.json")
    tap.eq(list(stats), ["count", "successes", "failed_to_download", "failed_to_resize", "duration",
                         "start_time", "end_time", "status_dict"], "%s: stats fields" % name)
    texts = {}
    for status, error in want:
        texts[error or status] = texts.get(error or status, 0) + 1
    tap.eq(stats["status_dict"], texts, "%s: status_dict counts the texts" % name)
    tap.eq([stats[k] for k in ("count", "successes", "failed_to_download", "failed_to_resize")],
           [len(want)] + [sum(w[0] == s for w in want) for s in
                          ("success", "failed_to_download", "failed_to_resize")], "%s: stats" % name)
    tap.ok(stats["duration"] >= 0 and abs(stats["end_time"] - stats["start_time"] - stats["duration"]) < 0.01,
           "%s: times" % name, stats)


def test_output(d, server):
    rows, want = corpus(server)
    part = os.path.join(d, "part.parquet")
    make_parquet(part, rows, TYPES)
    out = os.path.join(d, "out")
    rc, so, se = run(["--parquet", part, "--output", out, "--number_sample_per_shard", 1000,
                      "--save_additional_columns", '["NSFW","similarity"]',
                      "--allow-net", server.net])
    tap.ok(rc == 0, "a part with every kind of row ends well", so + se)
    bodies = {server.url(p): r[2] for p, r in server.routes.items() if isinstance(r, tuple)}
    bodies.pop(server.url("/moved"), None)
    check_shard(out, "00000", 0, rows, want, bodies)
    tap.eq(sorted(os.listdir(out)), ["00000.parquet", "00000.tar", "00000_stats.json",
                                     "_manifest.json", "_part.json", "_progress.json"], "nothing else is there")
    got = samples(os.path.join(out, "00000.tar"))
    exif = json.loads(json.loads(got["00000018"]["json"])["exif"])
    tap.ok(exif.get("Image Make") == "Maker" and "Image Model" in exif, "exif tags have exifread's names", exif)
    tap.eq(json.loads(got["00000000"]["json"])["exif"], "{}", "no exif is {}")
    im = Image.open(io.BytesIO(got["00000000"]["jpg"]))
    tap.ok(im.mode == "RGB" and not im.info.get("progressive") and im.layer[0][1:3] == (2, 2)
           and "exif" not in im.info, "jpeg is baseline 4:2:0 without metadata", im.info)
    tap.eq(Image.open(io.BytesIO(got["00000008"]["jpg"])).mode, "L", "grey stays one component")
    tap.eq(Image.open(io.BytesIO(got["00000010"]["jpg"])).size, (256, 256), "one pixel is blown up")
    schema = dict(parquet_schema(os.path.join(out, "00000.parquet")))
    tap.ok(schema["width"] == schema["original_height"] == "INTEGER" and schema["similarity"] == "DOUBLE"
           and schema["key"] == schema["exif"] == "VARCHAR", "sidecar types", schema)
    codec = set(sql("SELECT DISTINCT compression FROM parquet_metadata('%s/00000.parquet')" % out))
    tap.eq(codec, {"SNAPPY"}, "sidecar is snappy")
    hits = server.hits.copy()
    rc, so, se = run(["--parquet", part, "--output", out, "--number_sample_per_shard", 1000,
                      "--save_additional_columns", '["NSFW","similarity"]', "--allow-net", server.net])
    tap.ok(rc == 0 and server.hits == hits, "a finished part is left alone, nothing is fetched", so + se)
    rc, so, se = run(["--parquet", part, "--output", out], env={"DROVER_TASK": "other"})
    tap.ok(rc == 65 and "task" in se, "the manifest of another task is an error", "%d %s" % (rc, se))


def test_unverifiable(d, server):
    """A shard a row, and more of them than drover can check."""
    part, out = os.path.join(d, "beyond.parquet"), os.path.join(d, "beyond")
    sql("COPY (SELECT '%s' || i AS url FROM range(66667) t(i)) TO '%s' (FORMAT parquet)" % (server.url("/beyond"), part))
    rc, so, se = run(["--parquet", part, "--output", out, "--number_sample_per_shard", 1, "--allow-net", server.net],
                     env={"DROVER_TASK": "77", "DROVER_ATTEMPT": "78"})
    tap.ok(rc == 65 and "200001 objects is too large to be checked" in se and not [p for p in server.hits if "/beyond" in p],
           "more shards than drover can check are refused before anything is fetched", "%d %s" % (rc, se))


def test_manifest(d, server):
    body = encode(photo(80, 60, 9), "JPEG")
    rows = [{"url": server.serve("/m%d" % i, body)} for i in range(7)] + [{"url": server.url("/no")}]
    part = os.path.join(d, "m.parquet")
    make_parquet(part, rows, {"url": "VARCHAR"})
    out = os.path.join(d, "m")
    rc, so, se = run(["--parquet", part, "--output", out + "/", "--number_sample_per_shard", 3,
                      "--oom_shard_count", 3, "--allow-net", server.net],
                     env={"DROVER_TASK": "77", "DROVER_ATTEMPT": "78"})
    m = load(out, "_manifest.json")
    names = ["%03d%s" % (i, s) for i in range(3) for s in (".parquet", ".tar", "_stats.json")]
    tap.eq([o["key"] for o in m["objects"]], names, "the manifest lists every object")
    lines = "".join("%s\t%d\t%s\n" % (o["key"], o["size"], o["etag"]) for o in m["objects"])
    tap.ok(m["sha256"] == hashlib.sha256(lines.encode()).hexdigest()
           and all(os.path.getsize(os.path.join(out, o["key"])) == o["size"] for o in m["objects"])
           and m["bytes"] == sum(o["size"] for o in m["objects"]), "sizes and checksum hold", m)
    tap.ok((m["version"], m["task"], m["attempt"], m["rows_in"], m["rows_out"], m["successes"],
            m["failed_to_download"], m["failed_to_resize"]) == (1, "77", "78", 8, 8, 7, 1, 0)
           and m["statuses"] == {"success": 7, "HTTP Error 404: Not Found": 1}, "counts and identity", m)
    ages = [[os.stat(os.path.join(out, "%03d%s" % (i, x))).st_mtime_ns for x in (".tar", ".parquet", "_stats.json")]
            for i in range(3)]
    tap.ok(all(a == sorted(a) for a in ages)
           and os.stat(os.path.join(out, "_manifest.json")).st_mtime_ns >= max(a[2] for a in ages),
           "tar, parquet, stats are written in this order, the manifest last", ages)
    p = load(out, "_progress.json")
    tap.ok(p["rows_in"] == p["rows_done"] == 8 and p["shards_done"] == 3 and p["successes"] == 7, "progress", p)
    keys = sorted(k for i in range(3) for k in samples(os.path.join(out, "%03d.tar" % i)))
    tap.eq(keys, ["0000", "0001", "0002", "0010", "0011", "0012", "0020"],
           "keys of 3 a shard and 3 digits: 4 digits, shard then row")
    s = samples(os.path.join(out, "000.tar"))
    tap.ok(all(set(v) == {"jpg", "json"} for v in s.values()) and
           list(json.loads(s["0000"]["json"])) == ["url"] + FIELDS[4:], "without captions no txt", s.keys())
    raw = open(os.path.join(out, "000.tar"), "rb").read()
    tap.ok(raw[257:265] == b"ustar\x0000" and raw[156:157] == b"0" and len(raw) % 512 == 0,
           "plain ustar, no pax headers")


def test_pixels(d, server):
    bodies = []
    for i, (w, h) in enumerate([(640, 480), (333, 517), (1024, 200), (257, 256), (256, 256),
                                (100, 80), (37, 211), (255, 254)]):
        px = photo(w, h, 20 + i)
        bodies.append(encode(px, "PNG") if i % 2 else encode(px, "JPEG", quality=95))
    bodies.append(encode(photo(500, 300, 40, 1)[:, :, 0], "JPEG", quality=95))
    rgba = np.dstack([photo(300, 200, 41), photo(300, 200, 42, 1)])
    bodies.append(encode(rgba, "PNG"))
    bodies.append(encode(photo(450, 350, 43), "WEBP", quality=90))
    pal = io.BytesIO()
    Image.fromarray(photo(320, 240, 44)).quantize(64).save(pal, "PNG")
    bodies.append(pal.getvalue())
    rows = [{"url": server.serve("/px%d" % i, b)} for i, b in enumerate(bodies)]
    part = os.path.join(d, "px.parquet")
    make_parquet(part, rows, {"url": "VARCHAR"})
    for mode in ("border", "keep_ratio", "keep_ratio_largest", "center_crop", "no"):
        for fmt, quality, least in (("png", 6, 48), ("jpg", 95, 45), ("webp", 101, 48)):
            if fmt != "png" and mode not in ("border", "keep_ratio"):
                continue
            out = os.path.join(d, "px-%s-%s" % (mode, fmt))
            rc, so, se = run(["--parquet", part, "--output", out, "--resize_mode", mode,
                              "--encode_format", fmt, "--encode_quality", quality,
                              "--allow-net", server.net])
            s = samples(os.path.join(out, "00000.tar"))
            worst, sizes = 99.0, True
            for i, b in enumerate(bodies):
                want = reference(b, mode, 256)
                got = decoded(s["%09d" % i][fmt])
                meta = json.loads(s["%09d" % i]["json"])
                if fmt == "jpg":
                    bgr = want if want.ndim == 2 else np.ascontiguousarray(want[:, :, ::-1])
                    want = decoded(cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes())
                if fmt == "webp" and want.ndim == 2:
                    want = np.dstack([want] * 3)
                same = got.shape == want.shape and (meta["height"], meta["width"]) == want.shape[:2]
                sizes = sizes and same
                if same:
                    worst = min(worst, psnr(got, want))
                else:
                    print("# %d: %r instead of %r" % (i, got.shape, want.shape))
            tap.ok(rc == 0 and sizes, "%s %s: sizes as OpenCV's" % (mode, fmt), se)
            tap.ok(worst >= least, "%s %s: worst of %d pictures %.1f dB >= %d" %
                   (mode, fmt, len(bodies), worst, least))


def test_16_bit(d, server):
    ramp = np.tile(np.linspace(0, 65535, 300).astype(np.uint16), (300, 1))
    ok, png = cv2.imencode(".png", ramp)
    part = os.path.join(d, "p16.parquet")
    make_parquet(part, [{"url": server.serve("/p16", png.tobytes())}], {"url": "VARCHAR"})
    out = os.path.join(d, "p16")
    run(["--parquet", part, "--output", out, "--resize_mode", "no", "--encode_format", "png",
         "--encode_quality", 6, "--allow-net", server.net])
    got = decoded(samples(os.path.join(out, "00000.tar"))["000000000"]["png"])
    tap.ok(got.ndim == 2 and psnr(got, (ramp / 257).round()) > 48, "16-bit PNG is scaled, not saturated")


def test_filters(d, server):
    sizes = [(100, 100), (20, 400), (500, 500)]
    rows = [{"url": server.serve("/f%d" % i, encode(photo(w, h, 60 + i), "PNG"))}
            for i, (w, h) in enumerate(sizes)]
    part = os.path.join(d, "f.parquet")
    make_parquet(part, rows, {"url": "VARCHAR"})
    for name, value, want in (("min_image_size", 50, {1: "image too small"}),
                              ("max_image_area", 20000, {2: "image area too large"}),
                              ("max_aspect_ratio", 2.5, {1: "aspect ratio too large"}),
                              ("max_aspect_ratio", "inf", {})):
        out = os.path.join(d, "f-%s-%s" % (name, value))
        run(["--parquet", part, "--output", out, "--" + name, value, "--allow-net", server.net])
        t = read_parquet(os.path.join(out, "00000.parquet"))
        tap.eq({i: r["error_message"] for i, r in enumerate(t) if r["status"] == "failed_to_resize"},
               want, "%s %s" % (name, value))


def test_columns(d, server):
    """What additional columns may hold, and names that differ only in case."""
    body = encode(photo(64, 64, 70), "JPEG")
    url = server.serve("/col", body)
    part = os.path.join(d, "col.parquet")
    sql("COPY (SELECT '%s' AS URL, 'x' AS TEXT, 7::TINYINT AS a, 9000000000::BIGINT AS b, "
        "18446744073709551615::UBIGINT AS c, 0.1::FLOAT AS d, 'nan'::DOUBLE AS e, true AS f, "
        "DATE '2020-01-02' AS g, NULL::INTEGER AS h, 320 AS WIDTH) TO '%s' (FORMAT parquet)" % (url, part))
    out = os.path.join(d, "col")
    rc, so, se = run(["--parquet", part, "--output", out, "--allow-net", server.net,
                      "--save_additional_columns", "['a','b','c','d','e','f','g','h','WIDTH']"])
    tap.ok(rc == 0, "additional columns of every type", se)
    j = json.loads(samples(os.path.join(out, "00000.tar"))["000000000"]["json"])
    tap.ok([j[k] for k in "abcdfgh"] == [7, 9000000000, 18446744073709551615, float(np.float32(0.1)), True,
                                       "2020-01-02", None] and math.isnan(j["e"]) and j["WIDTH"] == 320
           and j["width"] == 256, "their values in json", j)
    schema = parquet_schema(os.path.join(out, "00000.parquet"))
    tap.eq([t for _, t in schema][:9], ["TINYINT", "BIGINT", "UBIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "DATE",
                                        "INTEGER", "INTEGER"], "their types in parquet")
    raw = open(os.path.join(out, "00000.parquet"), "rb").read()
    tap.ok(b"\x05WIDTH" in raw and b"\x05width" in raw and b"width_1" not in raw,
           "WIDTH beside width keeps its name")


def test_verify_hash(d, server):
    """A column of hashes is compared with the bodies and not written."""
    bodies = [encode(photo(60, 40, 80 + i), "PNG") for i in range(4)]
    sums = [hashlib.md5(b).hexdigest() for b in bodies]
    rows = [{"url": server.serve("/v%d" % i, b), "h": h, "n": i} for i, (b, h) in
            enumerate(zip(bodies, [sums[0], sums[0], None, sums[3].upper()]))]
    rows.append({"url": server.url("/absent"), "h": sums[0], "n": 4})
    rows.append({"url": server.serve("/v5", b"rubbish"), "h": hashlib.md5(b"rubbish").hexdigest(), "n": 5})
    part, out = os.path.join(d, "v.parquet"), os.path.join(d, "v")
    make_parquet(part, rows, {"url": "VARCHAR", "h": "VARCHAR", "n": "INTEGER"})
    rc, so, se = run(["--parquet", part, "--output", out, "--compute_hash", "md5", "--verify_hash", '["h","md5"]',
                      "--save_additional_columns", "n", "--allow-net", server.net])
    t = read_parquet(os.path.join(out, "00000.parquet"))
    tap.eq([r["error_message"] or r["status"] for r in t],
           ["success", "hash mismatch", "hash mismatch", "hash mismatch", "HTTP Error 404: Not Found",
            "Image decoding error"], "verify_hash: what does not match is not taken")
    tap.eq([r["status"] for r in t], ["success"] + ["failed_to_download"] * 4 + ["failed_to_resize"],
           "a mismatch counts as a failed download")
    tap.ok("h" not in t[0] and t[0]["md5"] == sums[0] and [r["n"] for r in t] == list(range(6)),
           "the column itself is not written", t[0])
    rc, so, se = run(["--parquet", part, "--output", out + "2", "--verify_hash", '["x","sha256"]'])
    tap.ok(rc == 65 and "'x' (verify_hash)" in se and "url, h, n" in se, "a missing column is named", se)


def test_many_rows(d):
    """Rows enough for several row groups and chunks; URLs that fail at once."""
    n = 12345
    part, out = os.path.join(d, "many.parquet"), os.path.join(d, "many")
    sql("COPY (SELECT 'bad' || i AS URL, 'c' || i AS TEXT FROM range(%d) t(i)) TO '%s' (FORMAT parquet)" % (n, part))
    began = time.monotonic()
    rc, so, se = run(["--parquet", part, "--output", out, "--number_sample_per_shard", 5000])
    took = time.monotonic() - began
    m = load(out, "_manifest.json") if rc == 0 else {}
    tap.ok(rc == 0 and m["rows_out"] == m["failed_to_download"] == n, "12,345 rows in three shards: %.1f s" % took, se)
    tap.eq(sql("SELECT count(*), count(DISTINCT key), min(key), max(key) FROM '%s/*.parquet'" % out),
           ["12345\t12345\t000000000\t000022344"], "each row once")
    tap.eq(sql("SELECT num_row_groups FROM parquet_file_metadata('%s/00000.parquet')" % out), ["3"],
           "row groups of 2048")
    tap.eq(sql("SELECT count(*) FROM '%s/*.parquet' WHERE caption != 'c' || substr(url, 4) OR substr(url, 4)::INT != "
               "substr(key, 1, 5)::INT * 5000 + substr(key, 6)::INT" % out), ["0"], "in the order of the part")


def test_help(d):
    """The program's help is complete."""
    def call(*args):
        p = subprocess.run([WORKER] + list(args), capture_output=True, text=True)
        return p.returncode, p.stdout, p.stderr
    for args in (["--help"], ["help"], []):
        rc, so, se = call(*args)
        tap.ok(rc == 0 and "\n  download " in so and "\n  index " in so and "VERB --help" in so,
               "drover-worker %s names every verb and where its settings are told" % " ".join(args), so)
    for args in (["download", "--help"], ["train", "download", "-h"]):
        rc, so, se = call(*args)
        tap.ok(rc == 0 and "--number_sample_per_shard" in so and "[10000]" in so and "Examples:" in so
               and "--exif_orientation" in so and "--fast_decode" in so,
               "drover-worker %s prints every setting, defaults and examples" % " ".join(args), so)
    rc, so, se = call("version")
    tap.ok(rc == 0 and "manifest version 1" in so, "version", so)
    rc, so, se = call("dowload")
    tap.ok(rc == 2 and "dowload" in se and "--help" in se, "an unknown verb", se)


with Folder() as d:
    test_help(d)
    test_many_rows(d)
    server = Server()
    test_output(d, server)
    test_unverifiable(d, server)
    test_manifest(d, server)
    test_pixels(d, server)
    test_16_bit(d, server)
    test_filters(d, server)
    test_verify_hash(d, server)
    test_columns(d, server)
sys.exit(tap.done())
