#!/usr/bin/python3
"""Aim: pixels equal OpenCV's for every kind of picture, resize mode and interpolation; other programs read
the JPEGs. Method: five hundred generated pictures go through the worker once per mode, written as PNG
(lossless), and each is compared by PSNR with cv2.resize; JPEG output is opened by PIL, OpenCV and file(1).
"""
import hashlib
import os
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import cv2
from PIL import ImageOps
from kit.worker import *
from kit.worker.pixels import INTERPOLATION, decoded, opened, reference, resized

tap = Tap()
cv2.setNumThreads(1)
N = int(os.environ.get("PIXELS", "92"))
SIZE = 128
LEAST_DB = 45.0
MODES = ("no", "border", "keep_ratio", "keep_ratio_largest", "center_crop")


def interlaced(px):
    """A PNG of 8-bit RGB by Adam7, which PIL does not write."""
    h, w = px.shape[:2]
    raw = b""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
                           (1, 0, 2, 2), (0, 1, 1, 2)):
        part = px[y0::dy, x0::dx]
        if part.size:
            raw += b"".join(b"\0" + row.tobytes() for row in part)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 1))
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def pil(px, fmt, mode=None, **kw):
    b = io.BytesIO()
    im = Image.fromarray(px)
    (im.convert(mode) if mode else im).save(b, fmt, **kw)
    return b.getvalue()


def cv(px, ext, *flags):
    return cv2.imencode(ext, px, list(flags))[1].tobytes()


def grey16(px):
    return px[:, :, 0].astype(np.uint16) * 257


def with_alpha(px, r):
    a = np.tile(np.linspace(0, 255, px.shape[1]).astype(np.uint8), (px.shape[0], 1))
    a[: px.shape[0] // 4] = r.randint(0, 256)
    return np.dstack([px, a])


def palette(px, r, colours, **kw):
    b = io.BytesIO()
    Image.fromarray(px).quantize(colours).save(b, "PNG", **kw)
    return b.getvalue()


def lettering(px):
    px = np.full_like(px, 255)
    for i in range(0, px.shape[0], 14):
        cv2.putText(px, "red and blue %d" % i, (2, i), 1, 1, (255, 0, 0) if i % 28 else (0, 0, 255), 1)
    return px


def cut(body, px):
    """Two thirds of the data after the headers. Where that may leave not even one row, OpenCV shows
    uninitialised memory, so such a picture is left complete.
    """
    if len(px) < 64:
        return body
    start = body.index(b"\xff\xda") + 14
    return body[: start + (len(body) - start) * 2 // 3]


KINDS = (
    ("jpeg", lambda px, r: pil(px, "JPEG", quality=int(r.randint(30, 97)))),
    ("jpeg 4:4:4", lambda px, r: pil(px, "JPEG", quality=92, subsampling=0)),
    ("jpeg 4:2:2", lambda px, r: pil(px, "JPEG", quality=85, subsampling=1)),
    ("jpeg progressive", lambda px, r: pil(px, "JPEG", quality=88, progressive=True)),
    ("jpeg grey", lambda px, r: pil(px, "JPEG", "L", quality=90)),
    ("jpeg lettering", lambda px, r: pil(lettering(px), "JPEG", quality=90)),
    ("jpeg noise", lambda px, r: pil(r.randint(0, 256, px.shape).astype(np.uint8), "JPEG", quality=90)),
    ("jpeg cut", lambda px, r: cut(pil(px, "JPEG", quality=90), px)),
    ("jpeg cmyk", lambda px, r: pil(px, "JPEG", "CMYK", quality=95)),
    ("png", lambda px, r: pil(px, "PNG")),
    ("png alpha", lambda px, r: pil(with_alpha(px, r), "PNG")),
    ("png grey", lambda px, r: pil(px, "PNG", "L")),
    ("png grey alpha", lambda px, r: pil(px, "PNG", "LA")),
    ("png one bit", lambda px, r: pil(px, "PNG", "1")),
    ("png palette", lambda px, r: palette(px, r, 200)),
    ("png palette of 4", lambda px, r: palette(px, r, 4)),
    ("png palette, one clear", lambda px, r: palette(px, r, 60, transparency=3)),
    ("png 16 bits", lambda px, r: cv(px[:, :, ::-1].astype(np.uint16) * 257, ".png")),
    ("png grey 16 bits", lambda px, r: cv(grey16(px), ".png")),
    ("png interlaced", lambda px, r: interlaced(px)),
    ("webp", lambda px, r: pil(px, "WEBP", quality=int(r.randint(40, 95)))),
    ("webp lossless", lambda px, r: pil(px, "WEBP", lossless=True, method=0)),
    ("webp alpha", lambda px, r: pil(with_alpha(px, r), "WEBP", quality=85)),
)


def pictures():
    """[(kind, body)]: every kind in turn; sides from 1 to 700, mostly ordinary, some thin."""
    out = []
    for i in range(N):
        r = np.random.RandomState(5000 + i)
        w, h = (int(x) for x in r.randint(40, 520, 2))
        if i % 11 == 0:
            w, h = int(r.randint(1, 12)), int(r.randint(20, 90))
        elif i % 13 == 0:
            w = h = int(r.choice([SIZE - 1, SIZE, SIZE + 1, 2 * SIZE, 700]))
        name, make = KINDS[i % len(KINDS)]
        out.append((name, make(photo(w, h, i), r)))
    return out


def go(d, server, name, bodies, *flags, fmt=("png", 1)):
    """The worker over these bodies: [(pixels, json)] in their order; None where it failed."""
    rows = [{"url": server.serve("/%s/%d" % (name, i), b)} for i, b in enumerate(bodies)]
    part, out = os.path.join(d, name + ".parquet"), os.path.join(d, name)
    make_parquet(part, rows, {"url": "VARCHAR"})
    rc, so, se = run(["--parquet", part, "--output", out, "--image_size", SIZE, "--allow-net",
                      server.net, "--encode_format", fmt[0], "--encode_quality", fmt[1],
                      "--timeout", 60] + list(flags))
    got = samples(os.path.join(out, "00000.tar"))
    shutil.rmtree(out)
    keys = ["%09d" % i for i in range(len(bodies))]
    result = [got.get(k) for k in keys]
    tap.ok(rc == 0 and None not in result, "%s: every picture comes out" % name,
           "%s\n%s" % (se, [i for i, x in enumerate(result) if x is None]))
    return result


def compare(name, got, want, kinds, least=LEAST_DB):
    """Each got[i] against want[i]: equal size, PSNR at least this; names the worst kind."""
    worst, at, sizes = 99.0, "", []
    for g, px, kind in zip(got, want, kinds):
        if g is None:
            continue
        have, meta = decoded(g.get("png") or g["jpg"]), json.loads(g["json"])
        if have.shape != px.shape or (meta["height"], meta["width"]) != px.shape[:2]:
            sizes.append("%s: %r instead of %r" % (kind, have.shape, px.shape))
        elif psnr(have, px) < worst:
            worst, at = psnr(have, px), kind
    tap.ok(not sizes, "%s: sizes and channels are OpenCV's" % name, "\n".join(sizes))
    tap.ok(worst >= least, "%s: worst of %d is %.1f dB >= %.0f (%s)" % (name, len(want), worst, least, at))


def test_modes(d, server, made):
    kinds = [k for k, _ in made]
    source = [opened(b) for _, b in made]
    for mode in MODES:
        got = go(d, server, mode, [b for _, b in made], "--resize_mode", mode)
        want = [resized(im, mode, SIZE) for im in source]
        compare(mode, got, [w if w.ndim == 2 else w[:, :, ::-1] for w in want], kinds)


def encoded(im):
    """Pixels after OpenCV's JPEG of the best quality."""
    return decoded(cv(im if im.ndim == 2 else im[:, :, ::-1], ".jpg", cv2.IMWRITE_JPEG_QUALITY, 100))


def test_modes_as_jpeg(d, server, made):
    """JPEG and WebP that shrink go from planes to planes: all that is not so in PNG. Sides of the
    results, and of borders, are odd and even."""
    some = [(k, b) for k, b in made if k.startswith(("jpeg", "webp"))]
    kinds, source = [k for k, _ in some], [opened(b) for _, b in some]
    for mode in MODES[1:]:
        got = go(d, server, mode + "-jpeg", [b for _, b in some], "--resize_mode", mode, fmt=("jpg", 100))
        want = [resized(im, mode, SIZE) for im in source]
        compare(mode + " as JPEG", got, [encoded(w if w.ndim == 2 else w[:, :, ::-1]) for w in want], kinds)


def test_only_if_bigger(d, server, made):
    some = made[:60]
    for mode in MODES[1:]:
        got = go(d, server, "bigger-" + mode, [b for _, b in some], "--resize_mode", mode,
                 "--resize_only_if_bigger")
        want = []
        for _, b in some:
            h, w = opened(b).shape[:2]
            base = max(h, w) if mode in ("border", "keep_ratio_largest") else min(h, w)
            want.append(reference(b, mode if base > SIZE else "no", SIZE))
        compare("only if bigger, " + mode, got, want, [k for k, _ in some])


def test_interpolations(d, server, made):
    some = [m for i, m in enumerate(made) if i % 5 == 0][:80]
    for name in INTERPOLATION:
        got = go(d, server, "by-" + name, [b for _, b in some], "--upscale_interpolation", name,
                 "--downscale_interpolation", name)
        want = [reference(b, "border", SIZE, down=name, up=name) for _, b in some]
        compare("by " + name, got, want, [k for k, _ in some])


def test_orientation(d, server):
    px = photo(301, 200, 77)
    bodies, want = [], []
    for turn in range(1, 10):
        e = Image.Exif()
        e[0x0112] = turn
        bodies.append(pil(px, "JPEG", quality=95, subsampling=0, exif=e.tobytes()))
        upright = np.ascontiguousarray(np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(bodies[-1])))))
        want.append(upright)
    for mode in ("no", "border", "center_crop"):
        got = go(d, server, "turned-" + mode, bodies, "--resize_mode", mode, "--exif_orientation")
        compare("turned upright, " + mode, got, [resized(im, mode, SIZE) for im in want],
                ["orientation %d" % i for i in range(1, 10)])
        metas = [json.loads(g["json"]) for g in got]
        tap.eq([(m["original_width"], m["original_height"]) for m in metas],
               [im.shape[1::-1] for im in want], "turned upright, %s: original sides" % mode)
    got = go(d, server, "unturned", bodies)
    compare("orientation is ignored unless asked for", got, [reference(b, "border", SIZE) for b in bodies],
            ["jpeg"] * 9)


def test_fast_decode(d, server, made):
    some = [m for m in made if m[0].startswith("jpeg") and m[0] not in ("jpeg noise", "jpeg lettering")]
    some += [("jpeg", pil(photo(1200 + i, 900, i), "JPEG", quality=90)) for i in range(4)]
    kinds = [k for k, _ in some]
    for mode in ("border", "center_crop"):
        want = [reference(b, mode, SIZE) for _, b in some]
        got = go(d, server, "fast-" + mode, [b for _, b in some], "--resize_mode", mode, "--fast-decode")
        compare("fast decode, " + mode, got, want, kinds, 28)
        got = go(d, server, "fast-jpeg-" + mode, [b for _, b in some], "--resize_mode", mode, "--fast-decode",
                 fmt=("jpg", 100))
        compare("fast decode to JPEG, " + mode, got, [encoded(w) for w in want], kinds, 28)


def without_last_scan(body):
    """A progressive JPEG whose last scan adds nothing."""
    at = body.rindex(b"\xff\xda")
    at += 2 + int.from_bytes(body[at + 2:at + 4], "big")
    return body[:at] + bytes(len(body) - at - 2) + b"\xff\xd9"


def test_fast_decode_leaves_out(d, server):
    big = photo(640, 480, 3)
    fine = pil(big, "JPEG", quality=90, progressive=True)
    grey = pil(big, "JPEG", "L", quality=90, progressive=True)
    coarse = pil(big, "JPEG", quality=60, progressive=True)
    small = pil(photo(SIZE, SIZE, 3), "JPEG", quality=90, progressive=True)
    for what, flags, needed in (("fast", ("--fast-decode",), [False, False, True, True]),
                                ("full", (), [True] * 4)):
        bodies = [b for jpeg in (fine, grey, coarse, small) for b in (jpeg, without_last_scan(jpeg))]
        got = [g["png"] for g in go(d, server, "last-scan-" + what, bodies, *flags)]
        tap.eq([a != b for a, b in zip(got[::2], got[1::2])], needed,
               "%s decode: the last scan is read but where it hardly shows" % what)
    webp = pil(photo(640, 480, 4), "WEBP", quality=80)
    for what, body in (("progressive", fine), ("progressive grey", grey), ("webp", webp)):
        got = go(d, server, "fast-" + what.replace(" ", "-"), [body], "--fast-decode")
        compare("fast decode, " + what, got, [reference(body, "border", SIZE)], [what], 36)
    outcomes = {go(d, server, "webp-%d" % i, [webp], *flags)[0]["png"] for i, flags in enumerate(((), ("--fast-decode",)))}
    tap.ok(len(outcomes) == 2, "fast decode: a WebP is read without its filter")


def kept(d, server, name, bodies, fmt, *flags):
    """[(bytes, json)] of a run that may keep the bytes; None where a row failed."""
    part, out = os.path.join(d, name + ".parquet"), os.path.join(d, name)
    make_parquet(part, [{"url": server.serve("/%s/%d" % (name, i), b)} for i, b in enumerate(bodies)],
                 {"url": "VARCHAR"})
    rc, _, se = run(["--parquet", part, "--output", out, "--image_size", SIZE, "--allow-net", server.net,
                     "--encode_format", fmt, "--encode_quality", 9] + list(flags))
    tap.ok(rc == 0, "%s: ends well" % name, se)
    got = samples(os.path.join(out, "00000.tar"))
    return [(got[k][fmt], json.loads(got[k]["json"])) if (k := "%09d" % i) in got else None
            for i in range(len(bodies))]


def test_kept_bytes(d, server):
    square, wide = photo(SIZE, SIZE, 5), photo(200, SIZE, 6)
    exif = Image.Exif()
    exif[0x0112] = 6
    jpegs = [pil(square, "JPEG", progressive=True), pil(wide, "JPEG"), pil(square, "PNG"),
             pil(square, "JPEG", exif=exif.tobytes())]
    got = kept(d, server, "same", jpegs, "jpg", "--skip_reencode")
    tap.eq([g[0] == b for g, b in zip(got, jpegs)], [True, False, False, True],
           "skip_reencode keeps the bytes of a JPEG that keeps its size")
    got = kept(d, server, "same-turned", jpegs, "jpg", "--skip_reencode", "--exif_orientation")
    tap.eq([g[0] == b for g, b in zip(got, jpegs)], [True, False, False, False], "but not when it is turned")
    got = kept(d, server, "not-same", jpegs, "jpg")
    tap.ok(all(g[0] != b for g, b in zip(got, jpegs)), "without it nothing is kept")
    pngs = [pil(square, "PNG"), pil(with_alpha(square, np.random.RandomState(1)), "PNG"), pil(square, "WEBP")]
    got = kept(d, server, "same-png", pngs, "png", "--skip_reencode")
    tap.eq([g[0] == b for g, b in zip(got, pngs)], [True, False, False], "alpha has to be laid over white")
    odd = [b"<html>no picture</html>", pil(wide, "JPEG"), b"", png_claiming(10 ** 6, 10 ** 6)]
    got = kept(d, server, "all", odd, "jpg", "--disable_all_reencoding", "--compute_hash", "sha512")
    tap.eq([g and g[0] for g in got], odd, "disable_all_reencoding keeps whatever came")
    tap.ok(all(g[1]["width"] is None and g[1]["original_height"] is None and g[1]["status"] == "success"
               and g[1]["sha512"] == hashlib.sha512(b).hexdigest() for g, b in zip(got, odd)),
           "its sides are null, its hash is of the bytes", [g[1] for g in got])
    table = read_parquet(os.path.join(d, "all", "00000.parquet"))
    tap.eq([[r[k] for k in ("width", "height", "original_width", "original_height")] for r in table],
           [[None] * 4] * len(odd), "in the sidecar too")


def test_jpeg_is_read_by_all(d, server, made):
    some = made[:2 * len(KINDS)]
    rows = [{"url": server.serve("/out/%d" % i, b)} for i, (_, b) in enumerate(some)]
    part, out = os.path.join(d, "out.parquet"), os.path.join(d, "out")
    make_parquet(part, rows, {"url": "VARCHAR"})
    rc, _, se = run(["--parquet", part, "--output", out, "--allow-net", server.net])
    got = samples(os.path.join(out, "00000.tar"))
    folder = os.path.join(d, "jpegs")
    os.mkdir(folder)
    bad = []
    for key, s in got.items():
        path = os.path.join(folder, key + ".jpg")
        with open(path, "wb") as f:
            f.write(s["jpg"])
        im = Image.open(path)
        im.load()
        kind, body = some[int(key)]
        want = reference(body, "border", 256)
        bgr = want if want.ndim == 2 else np.ascontiguousarray(want[:, :, ::-1])
        want = decoded(cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes())
        have = cv2.imread(path, cv2.IMREAD_UNCHANGED)
        have = have if have is None or have.ndim == 2 else have[:, :, ::-1]
        if have is None or im.format != "JPEG" or im.size != (256, 256) or have.shape != want.shape \
                or psnr(have, want) < 42 or psnr(np.asarray(im), have) < 60:
            bad.append("%s %s %.1f dB" % (key, kind, psnr(have, want)))
    tap.ok(rc == 0 and len(got) == len(some) and not bad, "PIL and OpenCV read %d JPEGs and see the same"
           % len(got), "\n".join(bad) + se)
    p = subprocess.run(["file", "-b"] + sorted(os.path.join(folder, x) for x in os.listdir(folder)),
                       capture_output=True, text=True)
    lines = p.stdout.splitlines()
    tap.ok(len(lines) == len(got) and all(x.startswith("JPEG image data, JFIF") and "baseline" in x
                                          and "256x256" in x for x in lines),
           "file(1) calls them baseline JFIF of 256x256", p.stdout[:600])


def main():
    server = Server()
    made = pictures()
    with Folder() as d:
        test_modes(d, server, made)
        test_modes_as_jpeg(d, server, made)
        test_only_if_bigger(d, server, made)
        test_interpolations(d, server, made)
        test_orientation(d, server)
        test_fast_decode(d, server, made)
        test_fast_decode_leaves_out(d, server)
        test_kept_bytes(d, server)
        test_jpeg_is_read_by_all(d, server, made)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
