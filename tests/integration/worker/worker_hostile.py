#!/usr/bin/python3
"""Aim: a hostile picture affects only itself: it is refused within limits of work, memory and time, and its
neighbours are unchanged. Method: generated bombs of every kind, each among ordinary pictures; a decoder
that crashes in the middle of a picture.
"""
import os
import signal
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *

tap = Tap()
PHOTO = encode(photo(120, 90, 1), "JPEG")
UNREAD = "Image decoding error"


def part_of(d, server, name, bodies):
    part = os.path.join(d, name + ".parquet")
    make_parquet(part, [{"url": server.serve("/%s/%d" % (name, i), b)} for i, b in enumerate(bodies)],
                 {"url": "VARCHAR"})
    return part


def outcome(d, server, name, bodies, *more):
    """One run: ([error text or success], CPU seconds, its log, the shard's pictures)."""
    out = os.path.join(d, name)
    before = os.times()
    rc, so, se = run(["--parquet", part_of(d, server, name, bodies), "--output", out, "--allow-net",
                      server.net, "--timeout", 60] + list(more))
    after = os.times()
    tap.ok(rc == 0, "%s: the run ends well" % name, so + se)
    texts = [r["error_message"] or r["status"] for r in read_parquet(out + "/00000.parquet")]
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return texts, cpu, se, samples(out + "/00000.tar")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_with(extra, px=None):
    """An ordinary PNG with more chunks behind its header."""
    body = encode(photo(60, 50, 2) if px is None else px, "PNG")
    return body[:33] + extra + body[33:]


def scans(side, times):
    """A progressive JPEG whose last scan comes again and again."""
    body = encode(np.zeros((side, side), np.uint8), "JPEG", progressive=True)
    last = body.rindex(b"\xff\xda")
    table = body.rindex(b"\xff\xc4", 0, last)
    again = body[table if table > body.rindex(b"\xff\xda", 0, last) else last:-2]
    return body[:-2] + again * times + body[-2:]


def frames(fmt, n):
    b = io.BytesIO()
    made = [Image.fromarray(photo(40, 30, i)) for i in range(n)]
    made[0].save(b, fmt, save_all=True, append_images=made[1:], duration=20)
    return b.getvalue()


def two_headers():
    """A JPEG with a small header where a parser may stop and a huge one behind it."""
    at = PHOTO.index(b"\xff\xc0")
    n = 2 + struct.unpack(">H", PHOTO[at + 2:at + 4])[0]
    huge = bytearray(PHOTO[at:at + n])
    huge[5:9] = b"\xff\xff\xff\xff"
    return PHOTO[:at + n] + bytes(huge) + PHOTO[at + n:]


def webp_claiming(w, h):
    body = bytearray(encode(photo(16, 16, 3), "WEBP"))
    at = body.index(b"\x9d\x01\x2a") + 3
    body[at:at + 4] = struct.pack("<HH", w, h)
    return bytes(body)


def test_bombs(d, server):
    zeros = zlib.compress(b"\0" * (256 << 20), 9)
    cases = [
        ("400 scans", scans(1000, 400), {UNREAD}),
        ("100 scans of 16 megapixels", scans(4000, 100), {UNREAD}),
        ("a moving WebP", frames("WEBP", 300), {UNREAD}),
        ("a moving PNG shows its first picture", frames("PNG", 50), {"success"}),
        ("256 MB of text in a PNG", png_with(chunk(b"zTXt", b"Comment\0\0" + zeros)), {"success", UNREAD}),
        ("256 MB of colour profile", png_with(chunk(b"iCCP", b"icc\0\0" + zeros)), {"success", UNREAD}),
        ("20000 chunks", png_with(chunk(b"tEXt", b"a\0b") * 20000), {"success", UNREAD}),
        ("two headers", two_headers(), {UNREAD}),
        ("a WebP that claims much", webp_claiming(16383, 16383), {"image area too large"}),
        ("a PNG that claims much", png_claiming(2 ** 31 - 1, 2 ** 31 - 1), {"image area too large"}),
        ("rows that never end", png_with(b"", np.zeros((3000, 3000), np.uint8))[:-200], {UNREAD}),
    ]
    bodies = []
    for _, body, _ in cases:
        bodies += [body, PHOTO]
    texts, cpu, _, got = outcome(d, server, "bombs", bodies)
    for i, (name, _, want) in enumerate(cases):
        tap.ok(texts[2 * i] in want, "%s: %s" % (name, " or ".join(sorted(want))), texts[2 * i])
    tap.ok(all(t == "success" for t in texts[1::2]), "their neighbours are not touched", texts[1::2])
    tap.ok(len({s["jpg"] for k, s in got.items() if int(k) % 2}) == 1, "and look as ever")
    tap.ok(cpu < 15 or VARIANT != "release", "all of them together: %.1f CPU seconds" % cpu)


def test_scans_of_photographs(d, server):
    """Many scans are not yet a bomb."""
    texts, _, _, _ = outcome(d, server, "scans", [scans(300, 100), scans(64, 150)])
    tap.eq(texts, ["success", "success"], "a hundred scans of a small picture are decoded")


def test_foreign_formats(d, server):
    px = photo(50, 40, 9)
    foreign = [encode(px, "BMP"), encode(px, "ICO"), encode(px[:30], "ICO"), b"\0\0\0\x18ftypheic" + b"\0" * 200,
               b"<svg xmlns='http://www.w3.org/2000/svg'/>"]
    rubbish = [b"", b"\0\0\0\x20ftypavif" + b"\0" * 200, b"GIF89a\1\0\1\0", b"\xff", b"<html>", b"\xff\xd8\xff", PHOTO[:200], os.urandom(500).replace(b"BM", b"xx")]
    texts, _, log, _ = outcome(d, server, "foreign", foreign + rubbish + [PHOTO])
    tap.eq(texts, [UNREAD] * (len(foreign) + len(rubbish)) + ["success"], "img2dataset's word for all of them")
    ended = [json.loads(x) for x in log.splitlines() if '"stages_ended"' in x][0]
    tap.eq((ended["unsupported"], ended["failed_to_resize"]), (len(foreign), len(foreign) + len(rubbish)),
           "pictures of other formats are counted apart from rubbish")
    tap.eq(ended["unsupported_formats"], "bmp 1, heif 1, ico 2, svg 1", "by their names")


def cpu_ticks(pid):
    with open("/proc/%d/stat" % pid) as f:
        return int(f.read().rsplit(")", 1)[1].split()[11])


def below(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(x) for x in f.read().split()]


def test_crash(d, server):
    """SIGABRT while a large picture is being decoded, which is what a broken decoder ends with."""
    b = io.BytesIO()
    noise = np.random.RandomState(4).randint(0, 4, (6000, 6000)).astype(np.uint8)
    Image.fromarray(noise).save(b, "PNG", compress_level=1)
    out, crashed, state = os.path.join(d, "crash"), threading.Event(), {}

    def photo(h):
        crashed.wait(50)
        h.answer(200, {}, PHOTO)
    part = part_of(d, server, "crash", [b.getvalue()] + [PHOTO] * 20)
    for i in range(1, 21):
        server.routes["/crash/%d" % i] = photo
    p = start(["--parquet", part, "--output", out,
               "--allow-net", server.net, "--processes_count", 1, "--timeout", 60])

    def decoding():
        if "pid" not in state:
            servers = below(p.pid)
            if not servers or not below(servers[0]):
                return p.poll() is not None
            state["pid"] = below(servers[0])[0]
        state["ticks"] = cpu_ticks(state["pid"])
        return state["ticks"] >= 5 or p.poll() is not None
    try:
        wait_for(decoding)
        os.kill(state["pid"], signal.SIGABRT)
    except (OSError, KeyError) as e:
        tap.ok(False, "a decoder is caught at work", e)
    crashed.set()
    so, se = p.communicate(timeout=patience(60))
    texts = [r["error_message"] or r["status"] for r in read_parquet(out + "/00000.parquet")]
    tap.ok(p.returncode == 0, "a decoder crashes", so + se)
    tap.eq(texts, ["decoder crashed or hit a limit"] + ["success"] * 20, "that costs one picture")


def test_crash_after_crash(d, server):
    """One decoding process, killed at each of twenty pictures as soon as it is there."""
    gates, gone, last = [threading.Event() for _ in range(22)], [threading.Event() for _ in range(22)], None

    def held(i):
        def answer(h):
            gates[i].wait(60)
            h.answer(200, {}, PHOTO)
            gone[i].set()
        return answer
    for i in range(22):
        server.routes["/crashes/%d" % i] = held(i)
    part, out = os.path.join(d, "crashes.parquet"), os.path.join(d, "crashes")
    make_parquet(part, [{"url": server.url("/crashes/%d" % i)} for i in range(22)], {"url": "VARCHAR"})
    p = start(["--parquet", part, "--output", out, "--allow-net", server.net, "--processes_count", 1, "--timeout", 90])

    def decoder():
        of = [c for server in below(p.pid) for c in below(server)]
        return of[-1] if of and of[-1] != last else None
    for i in range(20):
        if not wait_for(decoder):
            break
        last = decoder()
        os.kill(last, signal.SIGSTOP)
        gates[i].set()
        gone[i].wait(20)
        os.kill(last, signal.SIGKILL)
    for gate in gates:
        gate.set()
    so, se = p.communicate(timeout=patience(60))
    texts = [r["error_message"] or r["status"] for r in read_parquet(out + "/00000.parquet")]
    stats = load(out, "00000_stats.json")
    tap.ok(p.returncode == 0, "a decoder crashes twenty times in a row", so + se)
    tap.eq(texts, ["decoder crashed or hit a limit"] * 20 + ["success"] * 2, "that costs twenty pictures")
    tap.eq((stats["failed_to_resize"], stats["failed_to_download"]), (20, 0), "counted as failed to resize")


def test_liftable_limits(d, server):
    """A picture of 8200 x 8200 is no bomb; the limits are settings, and --help names them."""
    large, small = encode(np.full((8200, 8200), 200, np.uint8), "PNG", compress_level=1), PHOTO
    texts, _, _, _ = outcome(d, server, "large", [large, small])
    tap.eq(texts, ["success", "success"], "67 megapixels")
    texts, _, _, _ = outcome(d, server, "lowered", [large, small], "--max_image_pixels", 64000000)
    tap.eq(texts, ["image area too large", "success"], "--max_image_pixels 64000000")
    texts, _, _, _ = outcome(d, server, "bytes", [large, small], "--max_image_bytes", len(small))
    tap.eq([texts[0] == "success", texts[1]], [False, "success"], "--max_image_bytes (%s)" % texts[0])
    said = subprocess.run([WORKER, "download", "--help"], capture_output=True, text=True).stdout
    tap.ok(all(x in " ".join(said.split()) for x in ("max_image_pixels", "16384", "64 columns", "16 MiB")), "--help names the limits", said)


def main():
    server = Server()
    with Folder() as d:
        test_bombs(d, server)
        test_scans_of_photographs(d, server)
        test_foreign_formats(d, server)
        test_liftable_limits(d, server)
        test_crash(d, server)
        test_crash_after_crash(d, server)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
