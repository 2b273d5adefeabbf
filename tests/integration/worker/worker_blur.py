#!/usr/bin/python3
"""Aim: the areas of a row's boxes are unrecognisable in the stored picture, in every mode and format, and
everything else is unchanged; a row with invalid boxes stores no picture. Method: generated pictures go
through the worker with bbox_col, and each is compared by PSNR with cv2.GaussianBlur on floats; DuckDB
writes the boxes in every type a part may have and reads them back.
"""
import sys

import math
import os

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import cv2
from PIL import ImageOps
from kit.worker import *
from kit.worker.pixels import decoded, opened, resized
from worker_pixels import KINDS, encoded, pil

tap = Tap()
cv2.setNumThreads(1)
SIZE = 128
LEAST_DB = 45.0
MODES = ("no", "border", "keep_ratio", "keep_ratio_largest", "center_crop")
UNFRAMED = {"border": "keep_ratio_largest", "center_crop": "keep_ratio"}
FACES = (
    [[0.3, 0.3, 0.6, 0.7]],
    [[0.1, 0.1, 0.3, 0.35], [0.55, 0.2, 0.8, 0.5], [0.4, 0.6, 0.62, 0.95]],  # several
    [[0.0, 0.0, 1.0, 1.0]],  # all
    [[0.0, 0.4, 0.2, 0.6], [0.9, 0.0, 1.0, 0.15], [0.7, 0.8, 1.0, 1.0], [0.0, 0.95, 0.1, 1.0]],  # at edges
    [[0.5, 0.5, 0.51, 0.51]],  # tiny: less than a pixel or two
    [[0.2, 0.2, 0.7, 0.6], [0.4, 0.4, 0.9, 0.9]],  # over each other
    [[-0.2, 0.3, 0.3, 1.4]],  # reaching out
    [[0.25, 0.0, 0.3, 1.0]],  # thin
    [[0.3, 0.3, 0.3, 0.3], [0.1, 0.5, 0.25, 0.7]],  # one of nothing
)


def blurred(im, boxes):
    """The rules in Python, with OpenCV's Gaussian."""
    h, w = im.shape[:2]
    mask, longest = np.zeros((h, w), np.float32), 0
    for box in boxes:
        x0, y0, x1, y1 = (min(max(v, 0.0), 1.0) for v in box)
        at = [int(x0 * w), int(y0 * h), int(x1 * w), int(y1 * h)]
        side = max(at[2] - at[0], at[3] - at[1])
        longest = max(longest, side)
        at = [int(v - 0.1 * side) for v in at[:2]] + [int(v + 0.1 * side) for v in at[2:]]
        mask[max(at[1], 0):min(at[3], h), max(at[0], 0):min(at[2], w)] = 1
    sigma = 0.1 * longest
    if sigma == 0:
        return im
    k = 2 * math.ceil(sigma) + 1
    px = im.astype(np.float32)
    soft = cv2.GaussianBlur(px, (k, k), sigma)
    m = cv2.GaussianBlur(mask, (k, k), sigma)
    m = m if im.ndim == 2 else m[:, :, np.newaxis]
    return np.rint(px * (1 - m) + soft * m).clip(0, 255).astype(np.uint8)


def wanted(im, boxes, mode):
    """Resized, blurred, then framed; RGB or grey."""
    small = resized(im, UNFRAMED.get(mode, mode), SIZE)
    out = resized(blurred(small, boxes) if boxes else small, mode, SIZE)
    return out if out.ndim == 2 else np.ascontiguousarray(out[:, :, ::-1])


def go(d, server, name, bodies, boxes, *flags, kind="DOUBLE[][]", fmt=("png", 1), column="faces"):
    """The worker over these: ({row: {ext: bytes}}, sidecar rows)."""
    rows = [{"url": server.serve("/%s/%d" % (name, i), b), "faces": f} for i, (b, f) in enumerate(zip(bodies, boxes))]
    part, out = os.path.join(d, name + ".parquet"), os.path.join(d, name)
    make_parquet(part, rows, {"url": "VARCHAR", "faces": kind})
    rc, _, se = run(["--parquet", part, "--output", out, "--image_size", SIZE, "--allow-net", server.net,
                     "--encode_format", fmt[0], "--encode_quality", fmt[1], "--timeout", 60]
                    + (["--bbox_col", column] if column else []) + list(flags))
    tap.ok(rc == 0, "%s: ends well" % name, se)
    got = samples(os.path.join(out, "00000.tar"))
    return ({int(k): v for k, v in got.items()},
            sorted(read_parquet(os.path.join(out, "00000.parquet")), key=lambda r: r["key"]))


def compare(name, got, want, what):
    worst, at, bad = 99.0, "", []
    for i, px in enumerate(want):
        have = decoded(got[i].get("png") or got[i]["jpg"]) if i in got else np.zeros(0)
        if have.shape != px.shape:
            bad.append("%s: %r instead of %r" % (what[i], have.shape, px.shape))
        elif psnr(have, px) < worst:
            worst, at = psnr(have, px), what[i]
    tap.ok(not bad and worst >= LEAST_DB, "%s: worst of %d is %.1f dB >= %.0f (%s)"
           % (name, len(want), worst, LEAST_DB, at), "\n".join(bad))


def pictures():
    """[(name, body, boxes)]: every kind of picture, every set of boxes, some rows without."""
    out = []
    for i in range(int(os.environ.get("PIXELS", len(KINDS)))):
        r = np.random.RandomState(900 + i)
        w, h = (int(x) for x in r.randint(60, 420, 2))
        name, make = KINDS[i % len(KINDS)]
        faces = None if i % 12 == 7 else [] if i % 12 == 11 else FACES[i % len(FACES)]
        out.append(("%s, boxes %d" % (name, i % len(FACES)), make(photo(w, h, i), r), faces))
    for i, (w, h) in enumerate(((1, 90), (90, 2), (3, 3), (SIZE, SIZE), (2 * SIZE, SIZE + 1))):
        out.append(("%dx%d" % (w, h), pil(photo(w, h, i), "PNG"), FACES[2 * i % 4]))
    return out


def test_modes(d, server, made):
    what, bodies, boxes = zip(*made)
    source = [opened(b) for b in bodies]
    for mode in MODES:
        got, _ = go(d, server, mode, bodies, boxes, "--resize_mode", mode)
        compare(mode, got, [wanted(im, f, mode) for im, f in zip(source, boxes)], what)
    got, _ = go(d, server, "bigger", bodies, boxes, "--resize_mode", "border", "--resize_only_if_bigger")
    compare("only if bigger", got,
            [wanted(im, f, "border" if max(im.shape[:2]) > SIZE else "no") for im, f in zip(source, boxes)], what)


def test_as_jpeg(d, server, made):
    """To JPEG rows without boxes go by planes, those with boxes may not."""
    some = [m for m in made if m[0].startswith(("jpeg", "webp"))]
    what, bodies, boxes = zip(*some)
    source = [opened(b) for b in bodies]
    for mode in ("border", "center_crop"):
        got, _ = go(d, server, mode + "-jpeg", bodies, boxes, "--resize_mode", mode, fmt=("jpg", 100))
        compare(mode + " as JPEG", got, [encoded(wanted(im, f, mode)) for im, f in zip(source, boxes)], what)
        plain, _ = go(d, server, mode + "-plain", bodies, boxes, "--resize_mode", mode, fmt=("jpg", 100), column=None)
        tap.eq([got[i]["jpg"] == plain[i]["jpg"] for i in range(len(some)) if not boxes[i]],
               [True] * sum(not f for f in boxes), "%s: rows without boxes are the same bytes as ever" % mode)


def test_orientation(d, server):
    px = photo(301, 200, 77)
    bodies, upright = [], []
    for turn in range(1, 9):
        e = Image.Exif()
        e[0x0112] = turn
        bodies.append(pil(px, "JPEG", quality=95, subsampling=0, exif=e.tobytes()))
        im = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(bodies[-1]))))
        upright.append(np.ascontiguousarray(im[:, :, ::-1]))
    what, boxes = ["orientation %d" % i for i in range(1, 9)], [FACES[1]] * 8
    for mode in ("no", "border", "center_crop"):
        got, _ = go(d, server, "turned-" + mode, bodies, boxes, "--resize_mode", mode, "--exif_orientation")
        compare("boxes of the upright picture, " + mode, got, [wanted(im, FACES[1], mode) for im in upright], what)
    got, _ = go(d, server, "unturned", bodies, boxes, "--resize_mode", "border")
    compare("boxes of the picture as it is stored", got, [wanted(opened(b), FACES[1], "border") for b in bodies], what)


def test_detail_is_gone(d, server):
    """Chequers on the whole picture: how much remains inside the box, and next to it."""
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    px = np.repeat((((x // 3 + y // 3) % 2) * 200 + 20).astype(np.uint8)[:, :, np.newaxis], 3, 2)
    box = [[0.25, 0.25, 0.75, 0.75]]
    bodies = [pil(px, "JPEG", quality=95), pil(px, "PNG"), pil(px, "JPEG", quality=95), pil(px, "JPEG", quality=95)]
    boxes = [box, box, None, []]
    for flags in ((), ("--skip_reencode",), ("--skip_reencode", "--resize_mode", "no"), ("--fast_decode",)):
        name = "-".join(("detail",) + tuple(f.strip("-") for f in flags))
        got, _ = go(d, server, name, bodies, boxes, *flags, fmt=("jpg", 95))
        seen = [decoded(got[i]["jpg"]).astype(float) for i in range(4)]
        inside = [s[40:88, 40:88].std() for s in seen]
        tap.ok(max(inside[:2]) < 5 and min(inside[2:]) > 80 and min(s[:16].std() for s in seen) > 80,
               "%s: nothing is left in the box, all of it beside" % name, inside)
        kept = [got[i]["jpg"] == b for i, b in enumerate(bodies)]
        tap.eq(kept, [False, False] + ["--skip_reencode" in flags] * 2, "%s: only bytes without boxes are kept" % name)
    got, _ = go(d, server, "untouched", [bodies[0]], [[[0, 0, 0, 0]]], "--skip_reencode", fmt=("jpg", 95))
    tap.ok(got[0]["jpg"] != bodies[0], "nor where the box turns out to be of nothing")


def test_outside_is_untouched(d, server):
    px = photo(SIZE, SIZE, 3)
    got, _ = go(d, server, "outside", [pil(px, "PNG")], [[[0.25, 0.5, 0.5, 0.75]]], "--resize_mode", "no")
    have = decoded(got[0]["png"])
    mask = np.ones(px.shape[:2], bool)
    mask[60 - 4:99 + 4, 28 - 4:67 + 4] = False  # grown by a tenth, reach of the kernel
    tap.ok((have[mask] == px[mask]).all() and (have[70:90, 38:58] != px[70:90, 38:58]).any(),
           "beyond the reach of the kernel each pixel is what it was")


def test_large(d, server):
    """A face that fills a camera's picture is blurred on a smaller copy; the largest possible picture with
    all boxes stays within the limits of a decoding process.
    """
    px = cv2.resize(photo(500, 400, 9), (2600, 2400), interpolation=cv2.INTER_CUBIC)[:, :, 0]
    px[::40] = 0
    body, face = pil(px, "PNG", compress_level=1), [[0.0, 0.1, 0.97, 1.0]]
    got, _ = go(d, server, "large", [body], [face], "--resize_mode", "no")
    compare("one face of 2500 pixels", got, [wanted(px, face, "no")], ["png grey"])
    body = pil(np.full((8000, 8000, 3), 77, np.uint8), "JPEG", quality=50)
    many = [[i % 32 / 32, i // 32 / 32, min(i % 32 / 32 + 0.11, 1), min(i // 32 / 32 + 0.11, 1)] for i in range(1000)]
    got, side = go(d, server, "largest", [body] * 2, [many, [[0, 0, 1, 1]]], "--resize_mode", "no", fmt=("jpg", 50))
    tap.eq([[r["status"], r["error_message"]] for r in side], [["success", None]] * 2,
           "64 million pixels with a thousand large boxes, or one of all of it, are not too much")


def test_types(d, server):
    """The same boxes in every type; the column comes out as it went in."""
    faces = [[[0.25, 0.25, 0.75, 0.5], [0.0, 0.5, 0.25, 0.75]], None, [], [[0.5, 0, 1, 1]]]
    bodies = [pil(photo(200, 150, 50 + i), "PNG") for i in range(4)]
    want = [wanted(opened(b), f, "border") for b, f in zip(bodies, faces)]
    kinds = ("DOUBLE[][]", "FLOAT[][]", "DOUBLE[4][]", "DECIMAL(5,3)[][]", "VARCHAR", "JSON")
    for n, kind in enumerate(kinds):
        given = [json.dumps(f) if kind == "VARCHAR" and f is not None else f for f in faces]
        got, side = go(d, server, "type-%d" % n, bodies, given, kind=kind)
        compare("boxes as %s" % kind, got, want, ["two", "null", "empty", "one"])
        told = given if kind == "VARCHAR" else faces
        cells = [json.loads(got[i]["json"])["faces"] for i in range(4)]
        cells = [json.loads(c) if kind == "JSON" and c is not None else c for c in cells]
        tap.eq(cells, told, "%s: json tells the boxes" % kind)
        tap.eq([r["faces"] for r in side], told, "%s: so does the sidecar" % kind)
    types = sql("SELECT typeof(faces) FROM '%s/type-1/00000.parquet' LIMIT 1" % d)
    tap.eq(types, ["FLOAT[][]"], "in the type it had")
    given = [[[0.1, 0.2, 0.3, 0.4]]]
    got, side = go(d, server, "twice", bodies[:1], given, "--save_additional_columns", '["faces"]')
    tap.eq([list(json.loads(got[0]["json"]))[:2], side[0]["faces"]], [["faces", "url"], given[0]],
           "asked for by save_additional_columns too it is there once")
    got, side = go(d, server, "nulls", bodies[:2], [None, None], kind="INTEGER")
    tap.eq([len(got), [r["faces"] for r in side]], [2, [None, None]], "a column of nothing but nulls is one of no boxes")


BAD = (
    ("[[0.1, 0.2, 0.3]]", "a box is no [x0, y0, x1, y1]"),
    ("[[0.1, 0.2, 0.3, 0.4, 0.5]]", "a box is no [x0, y0, x1, y1]"),
    ("[0.1, 0.2, 0.3, 0.4]", "a box is no [x0, y0, x1, y1]"),
    ("[null]", "a box is no [x0, y0, x1, y1]"),
    ("[[0.1, 0.2, null, 0.4]]", "a box is not of four numbers"),
    ("[[0.1, 0.2, \"0.3\", 0.4]]", "a box is not of four numbers"),
    ("[[0.1, 0.2, NaN, 0.4]]", "no list of [x0, y0, x1, y1]"),
    ("[[0.1, 0.2, 1e999, 0.4]]", "no list of [x0, y0, x1, y1]"),
    ("{\"x\": 1}", "no list of [x0, y0, x1, y1]"),
    ("", "no list of [x0, y0, x1, y1]"),
    ("face", "no list of [x0, y0, x1, y1]"),
    ("[[0.1, 0.2, 0.3, 0.4]", "no list of [x0, y0, x1, y1]"),
    ("[[0.3, 0.2, 0.1, 0.4]]", "a box is upside down"),
    ("[[0.1, 0.4, 0.3, 0.2]]", "a box is upside down"),
    ("[[0.1, 0.1, 0.2, 0.2], [120, 80, 180, 160]]", "a number is no fraction of the picture's side"),
    ("[[-1.1, 0, 1, 1]]", "a number is no fraction of the picture's side"),
    ("[[1.1, 0, 1.2, 1]]", "a box is outside the picture"),
    (json.dumps([[0.1, 0.1, 0.2, 0.2]] * 1001), "more than 1000"),
    ("[" + "[0.1, 0.1, 0.2, 0.2]," * 20000 + "[0.1, 0.1, 0.2, 0.2]]", "more than 262144 bytes of text"),
)


def test_bad_boxes(d, server):
    body = pil(photo(60, 60, 1), "JPEG")
    given = [b for b, _ in BAD] + [json.dumps([[0.1, 0.1, 0.2, 0.2]] * 1000), " null ", "[]"]
    got, side = go(d, server, "bad", [body] * len(given), given, "--skip_reencode", kind="VARCHAR")
    for i, (b, why) in enumerate(BAD):
        tap.eq((i in got, side[i]["status"], side[i]["error_message"]), (False, "failed_to_resize", "bounding boxes: " + why),
               "boxes %.44s let no picture through" % b)
    n = len(BAD)
    tap.eq(sorted(got), [n, n + 1, n + 2], "1000 boxes, null and an empty list do")
    stats = load(os.path.join(d, "bad"), "00000_stats.json")
    tap.eq((stats["failed_to_resize"], stats["successes"]), (n, 3), "they are counted as failed to resize")
    part, out = os.path.join(d, "nan.parquet"), os.path.join(d, "nan")
    url = server.serve("/nan", body)
    sql("COPY (SELECT '%s' AS url, f AS faces FROM (VALUES ([[0.1, 'nan'::DOUBLE, 0.5, 0.5]]), ([[0.1, 0.1, 'inf'::DOUBLE, "
        "0.5]]), ([NULL, [0.1, 0.1, 0.5, 0.5]]), ([[0.1::DOUBLE, NULL, 0.3, 0.4]]), ([[0.1, 0.1, 0.5, 0.5]])) t(f)) "
        "TO '%s' (FORMAT parquet)" % (url, part))
    rc, _, se = run(["--parquet", part, "--output", out, "--allow-net", server.net, "--bbox_col", "faces"])
    status = sorted(json.loads(x)["status"] for x in sql("SELECT to_json(t) FROM (SELECT key, status FROM '%s/00000.parquet') t" % out)) \
        if rc == 0 else se
    tap.eq((rc, status), (0, ["failed_to_resize"] * 4 + ["success"]), "nor do lists with NaN, inf and nulls in them")


def test_retry(d, server):
    """An earlier output has the boxes of the rows that failed: a later run blurs them."""
    body = pil(photo(200, 150, 8), "PNG")
    make_parquet(d + "/t.parquet", [{"url": server.serve("/late", b"", status=503), "faces": FACES[0]}],
                 {"url": "VARCHAR", "faces": "FLOAT[][]"})
    flags = ["--bbox_col", "faces", "--image_size", SIZE, "--encode_format", "png", "--encode_quality", 1,
             "--allow-net", server.net]
    rc, _, se = run(["--parquet", d + "/t.parquet", "--output", d + "/t1"] + flags)
    server.serve("/late", body)
    rc2, _, se2 = run(["--parquet", d + "/t1", "--output", d + "/t2", "--retry_failed"] + flags)
    got = {int(k): v for k, v in samples(d + "/t2/00000.tar").items()}
    tap.ok(rc == rc2 == 0, "retry_failed: ends well", se + se2)
    compare("retry_failed", got, [wanted(opened(body), FACES[0], "border")], ["png"])


def test_refused(d, server):
    make_parquet(d + "/r.parquet", [{"url": "u", "score": 0.5, "m": {"a": 1}}],
                 {"url": "VARCHAR", "score": "DOUBLE", "m": "MAP(VARCHAR, INTEGER)"})
    for flags, rc, why in (
            (["--bbox_col", "score"], 65, "bbox_col 'score' is of type DOUBLE; expected a list of lists of numbers"),
            (["--bbox_col", "m"], 65, "bbox_col 'm' is of type MAP(VARCHAR, INTEGER)"),
            (["--bbox_col", "boxes"], 65, "no column 'boxes' (bbox_col); its columns: url, score, m"),
            (["--bbox_col", "url"], 2, "bbox_col: 'url' is a name of the output's own"),
            (["--bbox_col", "m", "--disable_all_reencoding"], 2, "bytes that are kept unread show what was to be blurred")):
        got, _, se = run(["--parquet", d + "/r.parquet", "--output", d + "/r"] + flags)
        tap.ok(got == rc and why in se, "refused: %s" % " ".join(flags), "%d %s" % (got, se))


def main():
    server = Server()
    made = pictures()
    with Folder() as d:
        test_modes(d, server, made)
        test_as_jpeg(d, server, made)
        test_orientation(d, server)
        test_detail_is_gone(d, server)
        test_outside_is_untouched(d, server)
        test_large(d, server)
        test_types(d, server)
        test_bad_boxes(d, server)
        test_retry(d, server)
        test_refused(d, server)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
