#!/usr/bin/python3
"""Aim: pictures of formats that are only read (AVIF, GIF, TIFF) come out with the right pixels, and broken or huge ones
cost only themselves. Method: pictures written by avifenc (lossless ones must come out exactly) and PIL go through
the worker as PNG without resizing; AVIF with loss is compared with avifdec, GIF with PIL over white, TIFF with OpenCV.
"""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *
from kit.worker.pixels import decoded, opened

tap = Tap()
UNREAD, LARGE, LIMIT = "Image decoding error", "image area too large", "decoder crashed or hit a limit"
PX = photo(93, 61, 3)
JPEG = encode(photo(40, 30, 1), "JPEG")


def avif(d, px, *args):
    png, out = d + "/a.png", d + "/a.avif"
    Image.fromarray(px).save(png)
    subprocess.run(["avifenc", "--speed", "8", "--jobs", "1", *args, png, out], check=True, stdout=subprocess.DEVNULL)
    return open(out, "rb").read()


def avifdec(d, body):
    open(d + "/b.avif", "wb").write(body)
    subprocess.run(["avifdec", "--jobs", "1", "--depth", "8", d + "/b.avif", d + "/b.png"], check=True, stdout=subprocess.DEVNULL)
    return matted(np.asarray(Image.open(d + "/b.png")))


def matted(px):
    if px.ndim == 2 or px.shape[2] == 3:
        return px
    if px.shape[2] == 2:
        px = np.dstack([px[:, :, :1]] * 3 + [px[:, :, 1:]])
    a = px[:, :, 3, np.newaxis].astype(np.float64)
    return np.rint(a / 255 * px[..., :3] + 255 - a).astype(np.uint8)


def gif(im, **kw):
    b = io.BytesIO()
    im.save(b, "GIF", **kw)
    return b.getvalue()


def gif_shown(body):
    return matted(np.asarray(Image.open(io.BytesIO(body)).convert("RGBA")))


def gif_of(screen, frame, lines, interlace=False, transparent=None, palette=b"\0\0\0\xff\0\0\0\xff\0\0\0\xff", more=b""):
    """A GIF of four colours, uncompressed (a clear code before the table grows)."""
    w, h = frame[2:]
    order = [y for a, s in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(a, h, s)] if interlace else range(h)
    codes = [c for y in order for x in range(w) for c in (4, lines[y][x])] + [5]
    bits = sum(c << (3 * i) for i, c in enumerate(codes))
    data = bits.to_bytes((3 * len(codes) + 7) // 8, "little")
    blocks = b"".join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255))
    control = b"" if transparent is None else b"\x21\xf9\x04\x01\0\0" + bytes([transparent]) + b"\0"
    return (b"GIF89a" + struct.pack("<HHBBB", *screen, 0x81, 0, 0) + palette + more + control + b"\x2c" +
            struct.pack("<HHHHB", *frame, 0x40 if interlace else 0) + b"\x02" + blocks + b"\0;")


def run_all(d, name, cases, *args):
    """[(status or error, pixels)] of bodies, and the log's last line."""
    server = Server()
    for i, body in enumerate(cases):
        server.serve("/%d" % i, body)
    part, out = os.path.join(d, name + ".parquet"), os.path.join(d, name)
    make_parquet(part, [{"url": server.url("/%d" % i)} for i in range(len(cases))], {"url": "VARCHAR"})
    rc, so, se = run(["--parquet", part, "--output", out, "--resize_mode", "no", "--encode_format", "png", "--encode_quality", 1,
                      "--allow-net", server.net, "--processes_count", 2] + list(args))
    tap.ok(rc == 0 and all(x.startswith("{") for x in se.splitlines()), name + ": the part ends well, no library writes into the log",
           (rc, [x for x in se.splitlines() if not x.startswith("{")][:5]))
    rows, got = read_parquet(out + "/*.parquet"), samples(out + "/00000.tar")
    ended = [json.loads(x) for x in se.splitlines() if '"stages_ended"' in x]
    return [(r["status"] if r["error_message"] is None else r["error_message"], decoded(got[r["key"]]["png"]) if r["key"] in got else None,
             r) for r in rows], ended[0] if ended else {}


def same(a, b):
    return a is not None and a.shape == b.shape and np.array_equal(a, b)


def near(a, b, db):
    return a is not None and a.shape == b.shape and psnr(a, b) >= db


def test_avif(d):
    alpha = np.dstack([PX, np.tile(np.linspace(0, 255, PX.shape[1]).astype(np.uint8), (PX.shape[0], 1))])
    exact = [("RGB without loss", avif(d, PX, "--lossless"), PX),
             ("RGB and alpha without loss", avif(d, alpha, "--lossless"), matted(alpha)),
             ("one pixel", avif(d, PX[:1, :1], "--lossless"), PX[:1, :1])]
    lossy = [("4:2:0", avif(d, PX, "--yuv", "420")), ("4:2:2", avif(d, PX, "--yuv", "422")), ("4:4:4", avif(d, PX, "--yuv", "444")),
             ("10 bits", avif(d, PX, "--depth", "10", "--yuv", "444")), ("12 bits of 4:2:0", avif(d, PX, "--depth", "12", "--yuv", "420")),
             ("video levels", avif(d, PX, "--range", "limited", "--yuv", "444")), ("alpha with loss", avif(d, alpha, "--yuv", "444")),
             ("turned", avif(d, PX, "--irot", "1")), ("a grid", avif(d, np.tile(PX[:60, :92], (3, 3, 1)), "--grid", "2x2", "--yuv", "444"))]
    grey = ("grey", avif(d, PX[:, :, 0], "--yuv", "400"))
    broken = [("cut", lossy[0][1][:len(lossy[0][1]) // 2]), ("its header alone", lossy[0][1][:200]),
              ("no picture", b"\0\0\0\x1cftypavif" + b"\0" * 200)]
    claims = bytearray(exact[0][1])
    at = claims.index(b"ispe") + 8
    claims[at:at + 8] = struct.pack(">II", 16000, 16000)
    huge = bytes(claims[:at]) + struct.pack(">II", 2 ** 31 - 1, 2 ** 31 - 1) + bytes(claims[at + 8:])
    bodies = [b for _, b, _ in exact] + [b for _, b in lossy] + [grey[1]] + [b for _, b in broken] + [bytes(claims), huge, JPEG]
    got, ended = run_all(d, "avif", bodies)
    for (name, _, want), (text, px, _) in zip(exact, got):
        tap.ok(text == "success" and same(px, want), "AVIF, %s: every pixel" % name, text)
    got = got[len(exact):]
    for (name, body), (text, px, row) in zip(lossy, got):
        plain = avif(d, PX) if name == "turned" else body  # avifdec turns it, OpenCV does not
        want = avifdec(d, plain)
        tap.ok(text == "success" and near(px, want, 45) and (row["original_width"], row["original_height"]) == want.shape[1::-1],
               "AVIF, %s: as avifdec has it" % name, (text, psnr(px, want) if px is not None and px.shape == want.shape else None))
    got = got[len(lossy):]
    text, px, _ = got[0]
    tap.ok(text == "success" and px.ndim == 2 and near(px, PX[:, :, 0], 35), "AVIF without colour stays grey", (text, px is not None and px.shape))
    tap.eq([t for t, _, _ in got[1:4]], [UNREAD] * 3, "broken ones cannot be decoded")
    tap.ok([t for t, _, _ in got[4:]] in ([LARGE, UNREAD, "success"], [LARGE, LARGE, "success"]), "what claims to be huge is not decoded", got[4:])
    tap.eq(ended["unsupported"], 0, "none counts as a format that is not read")
    rc, _, _ = got[-1]
    small, _ = run_all(d, "avif-orient", [lossy[7][1]], "--exif_orientation")
    tap.eq((small[0][1].shape[:2], small[0][0]), (PX.shape[:2], "success"), "irot is not applied")


def test_gif(d):
    im, r = Image.fromarray(PX), np.random.RandomState(1)
    lines = r.randint(0, 4, (40, 50)).tolist()
    colors = np.array([[0, 0, 0], [255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)
    plain = colors[np.array(lines)]
    hole = plain.copy()
    hole[np.array(lines) == 2] = 255
    placed = np.full((60, 80, 3), 255, np.uint8)
    placed[7:47, 11:61] = plain
    beyond = np.full((30, 30, 3), 255, np.uint8)
    beyond[10:30, 20:30] = plain[:20, :10]
    palette = im.convert("P", palette=Image.ADAPTIVE)
    moving = [palette] + [Image.fromarray(photo(93, 61, i)).convert("P", palette=Image.ADAPTIVE) for i in (4, 5)]
    whole = (0, 0, 50, 40)
    comment = b"\x21\xfe\x05hello\0\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
    cases = [("256 colours", gif(palette), gif_shown(gif(palette))), ("grey", gif(im.convert("L")), gif_shown(gif(im.convert("L")))),
             ("interlaced", gif_of((50, 40), whole, lines, True), plain), ("a transparent colour", gif_of((50, 40), whole, lines, transparent=2), hole),
             ("comments before it", gif_of((50, 40), whole, lines, more=comment), plain),
             ("a frame in its place", gif_of((80, 60), (11, 7, 50, 40), lines), placed),
             ("a frame beyond the picture", gif_of((30, 30), (20, 10, 50, 40), lines), beyond),
             ("moving: the first frame", gif(moving[0], save_all=True, append_images=moving[1:]), gif_shown(gif(palette))),
             ("87a", gif_of((50, 40), whole, lines).replace(b"GIF89a", b"GIF87a"), plain)]
    good = gif_of((50, 40), whole, lines)
    broken = [("cut", good[:300]), ("its header", good[:10]), ("no frame", good[:25] + b";"), ("no colours", b"GIF89a" + struct.pack("<HHBBB", 9, 9, 0, 0, 0) + b"\x2c" + struct.pack("<HHHHB", 0, 0, 9, 9, 0) + b"\x02\0;"),
              ("no size", gif_of((0, 0), whole, lines)), ("a frame of 65535 x 65535", gif_of((50, 40), (0, 0, 50, 40), lines).replace(b"\x2c" + struct.pack("<HHHH", *whole), b"\x2c" + struct.pack("<HHHH", 0, 0, 65535, 65535)))]
    claims = good[:6] + struct.pack("<HH", 65535, 65535) + good[10:]
    got, ended = run_all(d, "gif", [b for _, b, _ in cases] + [b for _, b in broken] + [claims, JPEG])
    for (name, _, want), (text, px, row) in zip(cases, got):
        tap.ok(text == "success" and same(px, want) and row["exif"] == "{}", "GIF, %s: every pixel" % name, (text, px is not None and px.shape, want.shape))
    for (name, _), (text, _, _) in zip(broken, got[len(cases):]):
        tap.eq(text, UNREAD, "GIF, %s: cannot be decoded" % name)
    tap.eq([t for t, _, _ in got[-2:]], [LARGE, "success"], "what claims to be huge is not decoded")
    tap.eq(ended["unsupported"], 0, "none counts as a format that is not read")


def tiff(im, **kw):
    b = io.BytesIO()
    im.save(b, "TIFF", **kw)
    return b.getvalue()


def tiff_of(order, w, h, entries, data):
    """A TIFF of entries {tag: (type, [values])} and one strip."""
    size = {1: 1, 3: 2, 4: 4}
    entries = {256: (4, [w]), 257: (4, [h]), 273: (4, [8]), 278: (4, [h]), 279: (4, [len(data)]), **entries}
    at = 8 + len(data) + len(data) % 2
    after, more, out = at + 2 + 12 * len(entries) + 4, b"", struct.pack(order + "H", len(entries))
    for tag, (kind, values) in sorted(entries.items()):
        raw = b"".join(struct.pack(order + {1: "B", 3: "H", 4: "I"}[kind], v) for v in values)
        if len(raw) > 4:
            more, raw = more + raw, struct.pack(order + "I", after + len(more))
        out += struct.pack(order + "HHI", tag, kind, len(values)) + raw.ljust(4, b"\0")
    return {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(order + "I", at) + data.ljust(at - 8, b"\0") + out + b"\0" * 4 + more


def test_tiff(d):
    im = Image.fromarray(PX)
    grey, alpha = PX[:, :, 0], np.dstack([PX, np.tile(np.linspace(0, 255, PX.shape[1]).astype(np.uint8), (PX.shape[0], 1))])
    wide = (grey.astype(np.uint16) * 257 + 3)
    h, w = grey.shape
    rgb = {258: (3, [8, 8, 8]), 259: (3, [1]), 262: (3, [2]), 277: (3, [3])}
    cases = [("RGB", tiff(im)), ("grey", tiff(Image.fromarray(grey))), ("palette", tiff(im.convert("P", palette=Image.ADAPTIVE))),
             ("two colours", tiff(im.convert("1"))), ("LZW", tiff(im, compression="tiff_lzw")), ("deflate", tiff(im, compression="tiff_adobe_deflate")),
             ("packbits", tiff(im, compression="packbits")), ("alpha", tiff(Image.fromarray(alpha))), ("CMYK", tiff(im.convert("CMYK"))),
             ("fax", tiff(im.convert("1"), compression="group4")), ("16 bits of grey", tiff(Image.fromarray(wide))),
             ("big-endian", tiff_of(">", w, h, rgb, PX.tobytes())), ("white is 0", tiff_of("<", w, h, {258: (3, [8]), 259: (3, [1]), 262: (3, [0]), 277: (3, [1])}, grey.tobytes())),
             ("planes apart", tiff_of("<", w, 3 * h, {**rgb, 257: (4, [h]), 273: (4, [8, 8 + w * h, 8 + 2 * w * h]), 279: (4, [w * h] * 3), 278: (4, [h]), 284: (3, [2])},
                                      PX.transpose(2, 0, 1).tobytes()))]
    cases += [("orientation %d" % i, tiff(im, tiffinfo={274: i})) for i in range(1, 9)]
    cases += [("16 bits of RGB", tiff_of("<", w, h, {**rgb, 258: (3, [16] * 3)}, (PX.astype("<u2") * 257 + 5).tobytes()))]
    broken = [("cut", tiff(im, compression="tiff_lzw")[:900]), ("its header", tiff(im)[:8]), ("floats", tiff(Image.fromarray(grey.astype(np.float32)))),
              ("no strips", tiff_of("<", w, h, {**rgb, 279: (4, [0])}, b""))]
    large = tiff_of("<", 60000, 60000, rgb, b"xx")
    got, ended = run_all(d, "tiff", [b for _, b in cases] + [b for _, b in broken] + [large, JPEG])
    for (name, body), (text, px, row) in zip(cases, got):
        want = opened(body)
        want = want if want.ndim == 2 else want[:, :, ::-1]
        far = np.abs(px.astype(int) - want).max() if px is not None and px.shape == want.shape else None
        tap.ok(text == "success" and far is not None and far <= 1 and (row["original_width"], row["original_height"]) == want.shape[1::-1],
               "TIFF, %s: as OpenCV has it" % name, (text, far, px is not None and px.shape, want.shape))
    for (name, _), (text, _, _) in zip(broken, got[len(cases):]):
        tap.eq(text, UNREAD, "TIFF, %s: cannot be decoded" % name)
    tap.eq([t for t, _, _ in got[-2:]], [LARGE, "success"], "what claims to be huge is not decoded")
    tap.eq(ended["unsupported"], 0, "none counts as a format that is not read")


def test_fuzzed(d):
    """Flipped and cut bytes of each: an answer for every row, and the neighbours are not touched."""
    r = random.Random(11)
    seeds = [avif(d, PX[:24, :32], "--yuv", "420"), gif(Image.fromarray(PX[:24, :32]).convert("P")),
             tiff(Image.fromarray(PX[:24, :32]), compression="tiff_lzw")]
    bodies = []
    for i in range(90):
        b = bytearray(seeds[i % len(seeds)])
        for _ in range(r.randint(1, 4)):
            b[r.randrange(len(b))] = r.randrange(256)
        bodies += [bytes(b[:r.randint(len(b) // 2, len(b))] if i % 3 == 0 else b), JPEG]
    at = seeds[0].index(b"mdat") + 4
    for i in range(24):  # dav1d complains about these on standard error
        b = bytearray(seeds[0])
        b[at + i % 12] = (0x4a, 0xff)[i // 12]
        bodies += [bytes(b), JPEG]
    got, _ = run_all(d, "fuzzed", bodies)
    tap.ok(len(got) == len(bodies) and {t for t, _, _ in got[::2]} <= {"success", UNREAD, LARGE}, "broken bytes: decoded or not, no crash",
           collections.Counter(t for t, _, _ in got[::2]))
    tap.ok(all(t == "success" for t, _, _ in got[1::2]), "their neighbours are as ever")


with Folder() as d:
    test_avif(d)
    test_gif(d)
    test_tiff(d)
    test_fuzzed(d)
sys.exit(tap.done())
