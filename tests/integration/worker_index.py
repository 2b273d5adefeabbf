#!/usr/bin/python3
"""Aim: the index says of every pair where it lies, whoever wrote the shards and wherever they are;
what is broken is counted and told; a stopped, killed or crossed run leaves no index that looks
whole. Method: shards by Python's tarfile (all three formats), GNU tar, an img2dataset-like writer
and our own download; tarfile and GNU tar as readers that know nothing of ours: each offset is
held against theirs and against the bytes; drover-local as S3."""
import collections
import hashlib
import os
import signal
import sys
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from worker_kit import *

tap = Tap()
ALL = "path,key,image,offset,size,caption,width,height"
KEY, SECRET = "AKIAWORKERTEST", "worker-secret"


def index_start(args, env=None, ml_root="/nonexistent"):
    e = dict(os.environ, DROVER_ML_ROOT=ml_root)
    e.update(env or {})
    return subprocess.Popen([WORKER, "index"] + [str(a) for a in args], env=e, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def index(args, env=None, timeout=120, ml_root="/nonexistent"):
    p = index_start(args, env, ml_root)
    try:
        out, err = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
        return -999, out, err
    return p.returncode, out, err


def lines(folder, name="index.jsonl"):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return [json.loads(x) for x in f]


def digest(folder, name="index.jsonl"):
    with open(os.path.join(folder, name), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


# --- shards -----------------------------------------------------------------------------------------

CAPTIONS = ["a plain caption", "quotes \" and \\ back\\\\slashes", "\u00e9\u4e2d\u6587 \U0001f600", "",
            "line\nbreak\ttab \x01\x7f", "\u2028 separators", "width\": 9, \"height\": 9", "x" * 5000]


def sample(key, i, ext="jpg", caption=None):
    """The members of one sample as img2dataset orders them: by extension."""
    caption = CAPTIONS[i % len(CAPTIONS)] if caption is None else caption
    meta = {"caption": caption, "url": "http://h/%d.jpg?\"width\":1" % i, "key": key, "status": "success",
            "error_message": None, "width": 100 + i, "height": 200 + i, "original_width": 1, "exif":
            "{\"Image width\": \"7\"}", "similarity": float("nan") if i % 3 else 0.25}
    image = hashlib.sha256(key.encode()).digest() * (10 + i * 37 % 900)
    return [(n, d) for n, d in sorted([(key + "." + ext, image), (key + ".json", json.dumps(meta, indent=4).encode()),
                                       (key + ".txt", caption.encode())])]


def write_tar(path, members, fmt=tarfile.PAX_FORMAT):
    """img2dataset's dialect is pax with a float for the time, so every member has a header more."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, "w", format=fmt) as t:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.uname, info.gname = len(data), 0o444, "bigdata", "bigdata"
            info.mtime = 1795148923.7106605 if fmt == tarfile.PAX_FORMAT else 1795148923
            t.addfile(info, io.BytesIO(data))


def expected(root, prefix, fields=ALL):
    """What tarfile says of every .tar below root, in the order of their paths."""
    out = []
    paths = []
    for base, folders, files in os.walk(root):
        paths += [os.path.relpath(os.path.join(base, f), root) for f in files if f.endswith(".tar") and f[0] != "."]
    for path in sorted(paths, key=lambda p: p.encode()):
        groups = collections.OrderedDict()
        with tarfile.open(os.path.join(root, path)) as t:
            for m in t:
                folder, _, base = m.name.rpartition("/")
                stem, _, ext = base.partition(".")
                if m.isreg() and stem and ext:
                    key = (folder + "/" if folder else "") + stem
                    groups.setdefault(key, {})[ext.lower()] = (m, t.extractfile(m).read())
        for key, g in groups.items():
            image = [e for e in g if e in ("jpg", "jpeg", "png", "webp")]
            if len(image) == 1 and "txt" in g and "json" in g:
                m = g[image[0]][0]
                meta = json.loads(g["json"][1])
                row = dict(path=prefix + path, key=key, image=m.name, offset=m.offset_data, size=m.size,
                           caption=g["txt"][1].decode(), width=meta["width"], height=meta["height"])
                out.append({k: row[k] for k in fields.split(",")})
    return out


def same(name, got, want):
    if got == want:
        return tap.ok(True, name)
    first = next((i for i, (a, b) in enumerate(zip(got or [], want)) if a != b), min(len(got or []), len(want)))
    return tap.ok(False, name, "%s lines, expected %d; first difference at %d\n%r\n%r" % (
        len(got) if got is not None else None, len(want), first, (got or [])[first:first + 1], want[first:first + 1]))


def make_corpus(root):
    """All dialects and names, over several folders."""
    for s in range(6):
        write_tar("%s/0000%d/%05d.tar" % (root, s % 2, s),
                  [m for i in range(40) for m in sample("%05d%04d" % (s, i), i, ["jpg", "png", "webp"][s % 3])])
    names = ["%s%04d" % (p, i) for i, p in enumerate(["sub/", "a/b.c/", "l" * 120, "d/" * 60, "\u00e9-", "A"])]
    files = [m for i, n in enumerate(names) for m in sample(n, i)]
    for fmt, title in ((tarfile.PAX_FORMAT, "pax"), (tarfile.GNU_FORMAT, "gnu")):
        write_tar("%s/dialects/%s.tar" % (root, title), files, fmt)
    write_tar(root + "/dialects/ustar.tar", [m for n, m in zip(range(900), files) if len(m[0]) < 90], tarfile.USTAR_FORMAT)
    with Folder() as d:
        for name, data in [m for i in range(20) for m in sample("in%04d" % i, i, "JPG")]:
            with open(os.path.join(d, name), "wb") as f:
                f.write(data)
        os.mkdir(d + "/folder.jpg")
        os.symlink("in0000.JPG", d + "/link.jpg")
        for fmt in ("gnu", "posix", "ustar", "v7", "oldgnu"):
            subprocess.run(["tar", "--format=" + fmt, "--sort=name", "-cf", "%s/dialects/tar-%s.tar" % (root, fmt), "-C", d,
                            "folder.jpg", "link.jpg"] + sorted(x for x in os.listdir(d) if x[:2] == "in"), check=True)
    for other in (".hidden.tar", "notes.txt", "00000/00000.parquet", "00000/00000_stats.json"):
        with open(os.path.join(root, other), "w") as f:
            f.write("not a shard")


def gnu_offsets(path):
    """name -> offset of the data, by GNU tar: it tells the block of each member's first header; for
    members without extended headers the data begins a block later."""
    out = {}
    run = subprocess.run(["tar", "-tRf", path], capture_output=True, text=True, check=True)
    for line in run.stdout.splitlines():
        if line.startswith("block ") and "**" not in line:
            block, name = line[6:].split(": ", 1)
            out[name] = int(block) * 512 + 512
    return out


def test_readers(d, root):
    out = d + "/out"
    rc, so, se = index(["--input", root, "--output", out, "--path-prefix", "/opt/ml/input/data/data", "--fields", ALL,
                        "--sample", "0.3"])
    tap.ok(rc == 0, "a folder of shards of all dialects", se)
    want = expected(root, "/opt/ml/input/data/data/")
    got = lines(out)
    tap.ok(len(want) > 350, "the corpus has pairs", len(want))
    same("every line as tarfile says, in shard order", got, want)
    wrong = []
    for r in got:
        with open(os.path.join(root, r["path"][len("/opt/ml/input/data/data/"):]), "rb") as f:
            f.seek(r["offset"])
            if hashlib.sha256(r["key"].encode()).digest() != f.read(r["size"])[:32]:
                wrong.append(r)
    tap.eq(wrong[:3], [], "the bytes at each offset are the picture's")
    for fmt in ("gnu", "ustar", "v7", "oldgnu"):
        theirs = gnu_offsets(root + "/dialects/tar-%s.tar" % fmt)
        ours = {r["image"]: r["offset"] for r in got if r["path"].endswith("tar-%s.tar" % fmt)}
        tap.ok(len(ours) == 20 and all(theirs.get(k) == v for k, v in ours.items()), "GNU tar's offsets (%s)" % fmt,
               "%r\n%r" % (ours, theirs))
    s = load(out, "summary.json")
    tap.eq((s["shards"], s["bad_archives"], s["pairs"], s["outcomes"]["success"]), (14, 0, len(want), len(want)), "the summary")
    m = load(out, "_manifest.json")
    tap.eq((m["rows_in"], m["rows_out"], m["successes"], m["failed_to_download"] + m["failed_to_resize"], m["statuses"]),
           (len(want),) * 3 + (0, {"success": len(want)}), "the manifest counts every pair")
    tap.eq([(o["key"], o["size"]) for o in m["objects"]],
           [(n, os.path.getsize(os.path.join(out, n))) for n in ("index.jsonl", "sample.jsonl", "summary.json")],
           "and names every object")
    h = hashlib.sha256("".join("%s\t%d\t%s\n" % (o["key"], o["size"], o["etag"]) for o in m["objects"]).encode())
    tap.eq(m["sha256"], h.hexdigest(), "with their checksum")
    p = load(out, "_progress.json")
    tap.eq((p["rows_in"], p["rows_done"], p["shards_done"]), (len(want), len(want), 14), "_progress.json says so")
    return got


def key_hash(key):
    x = 0xcbf29ce484222325
    for c in key.encode():
        x = ((x ^ c) * 0x100000001b3) % 2 ** 64
    x = (x ^ x >> 33) * 0xff51afd7ed558ccd % 2 ** 64
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53 % 2 ** 64
    return x ^ x >> 33


def test_sample(d, root, all_lines):
    got = lines(d + "/out", "sample.jsonl")
    want = [r for r in all_lines if key_hash(r["key"]) < 3 * 2 ** 64 // 10]
    same("the sample is those whose key's hash is below the fraction", got, want)
    tap.ok(0 < len(want) < len(all_lines), "some, not all", len(want))
    for fraction, n in (("1", len(all_lines)), ("0", None), ("0.1", len([r for r in all_lines if key_hash(r["key"]) < 2 ** 64 // 10]))):
        out = d + "/sample" + fraction
        rc, so, se = index(["--input", root, "--output", out, "--sample", fraction])
        rows = lines(out, "sample.jsonl")
        tap.ok(rc == 0 and (rows if rows is None else len(rows)) == n, "a sample of %s" % fraction, se)


def test_ways_to_read(d, root):
    """Whatever threads, windows and temperature: the same bytes."""
    want = digest(d + "/out")
    for i, args in enumerate((["--threads", 1], ["--threads", 64], ["--read-mode", "stream"], ["--read-mode", "walk"],
                              ["--read-mode", "stream", "--threads", 1])):
        out = d + "/way%d" % i
        rc, so, se = index(["--input", root + "/", "--output", out, "--path-prefix", "/opt/ml/input/data/data/", "--fields",
                            "height,width,caption,size,offset,image,key,path"] + args)
        tap.ok(rc == 0 and digest(out) == want, "the same bytes with %s" % args, se)
    for base, folders, files in os.walk(root):
        for f in files:
            fd = os.open(os.path.join(base, f), os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
    rc, so, se = index(["--input", root, "--output", d + "/cold", "--path-prefix", "/opt/ml/input/data/data", "--fields", ALL])
    tap.ok(rc == 0 and digest(d + "/cold") == want, "the same bytes from files that are not cached", se)
    one = root + "/00001/00003.tar"
    rc, so, se = index(["--input", one, "--output", d + "/one"])
    same("one archive alone, with its own place as the path", lines(d + "/one"),
         [r for r in expected(os.path.dirname(one), os.path.dirname(one) + "/", "path,key,image,offset,size,caption")
          if r["path"].endswith("00003.tar")])
    rc, so, se = index(["--input", root, "--output", d + "/fields", "--path-prefix", "", "--fields", "path,offset"])
    same("two fields, paths below the input", lines(d + "/fields"), expected(root, "", "path,offset"))


def test_huge(d):
    """Sizes no octal field holds: base 256 (GNU) and pax. The files have holes instead of data."""
    root = d + "/huge"
    os.makedirs(root)
    size = 9 << 30
    for fmt, title in ((tarfile.GNU_FORMAT, "gnu"), (tarfile.PAX_FORMAT, "pax")):
        info = tarfile.TarInfo("0.jpg")
        info.size = size
        with open("%s/%s.tar" % (root, title), "wb") as f:
            f.write(info.tobuf(fmt))
            f.seek(size, os.SEEK_CUR)
            for name, data in (("0.json", b"{\"width\":1,\"height\":2}"), ("0.txt", b"big"), ("1.jpg", b"x"), ("1.json", b"{}"),
                               ("1.txt", b"")):
                small = tarfile.TarInfo(name)
                small.size = len(data)
                f.write(small.tobuf(fmt) + data + bytes(-len(data) % 512))
            f.write(bytes(1024))
    for mode in ("auto", "stream"):
        out = d + "/huge-" + mode
        t0 = time.monotonic()
        rc, so, se = index(["--input", root, "--output", out, "--path-prefix", "", "--read-mode", mode])
        took = time.monotonic() - t0
        want = []
        for title, offset in (("gnu", 512), ("pax", 1536)):
            with tarfile.open("%s/%s.tar" % (root, title)) as t:
                for m in t:
                    if m.name.endswith("jpg"):
                        want.append(dict(path=title + ".tar", key=m.name[0], image=m.name, offset=m.offset_data, size=m.size,
                                         caption="big" if m.name[0] == "0" else ""))
        same("members beyond 8 GiB (%s)" % mode, lines(out), want)
        tap.ok(rc == 0 and want[0]["size"] == size and took < 20, "without reading through them", "%s %s" % (took, se))


def test_broken(d):
    root = d + "/broken"
    good = [m for i in range(30) for m in sample("%04d" % i, i)]
    write_tar(root + "/0.tar", good)
    members_bad = list(good)
    del members_bad[0]      # no image
    del members_bad[3]      # 0001: no json
    del members_bad[6]      # 0002: no txt
    members_bad[6] = (members_bad[6][0], b"")   # 0003: an empty image
    members_bad.insert(11, ("0004.png", b"again"))  # 0004: two images
    members_bad += [("0099.jpg", b"x"), ("0099.json", b"{\"width\": 3"), ("0099.txt", b"x"), ("README", b"other")]
    write_tar(root + "/1.tar", members_bad)
    whole = open(root + "/0.tar", "rb").read()
    with tarfile.open(root + "/0.tar") as t:
        info = t.getmember("0020.jpg")
    open(root + "/2-cut.tar", "wb").write(whole[:info.offset_data + 100])
    hurt = bytearray(whole)
    hurt[info.offset_data - 512 + 20] ^= 1
    open(root + "/3-hurt.tar", "wb").write(hurt)
    open(root + "/4-empty.tar", "wb").write(b"")
    open(root + "/5-html.tar", "wb").write(b"<html>" * 1000)
    open(root + "/6-no-end.tar", "wb").write(whole.rstrip(b"\0")[:-1] + bytes(600)[: -len(whole.rstrip(b"\0")[:-1]) % 512])
    write_tar(root + "/7.tar", good)
    out = d + "/broken-out"
    rc, so, se = index(["--input", root, "--output", out, "--path-prefix", "", "--fields", ALL])
    tap.ok(rc == 0, "bad archives do not stop the others", se)
    s = load(out, "summary.json")
    got = lines(out)
    count = collections.Counter(r["path"] for r in got)
    tap.eq([count["0.tar"], count["1.tar"], count["2-cut.tar"], count["3-hurt.tar"], count["4-empty.tar"], count["5-html.tar"],
            count["6-no-end.tar"] >= 29, count["7.tar"]], [30, 25, 20, 20, 0, 0, True, 30], "whole pairs before a fault are kept")
    tap.eq({k: v for k, v in s["outcomes"].items() if v and k != "success"},
           {"no image": 1, "no txt": 1, "no json": 1, "empty image": 1, "two members of one kind": 1, "json cannot be read": 1},
           "broken pairs are counted by kind")
    tap.eq((s["bad_archives"], s["other_members"]), (5, 1), "as are archives and other members")
    told = lines(out, "broken.jsonl")
    bad = {r["path"]: r for r in told if "key" not in r}
    tap.eq(sorted(bad), ["2-cut.tar", "3-hurt.tar", "4-empty.tar", "5-html.tar", "6-no-end.tar"], "every bad archive is told")
    tap.ok("cut off" in bad["2-cut.tar"]["error"] and "checksum" in bad["3-hurt.tar"]["error"] and "empty" in
           bad["4-empty.tar"]["error"] and "checksum" in bad["5-html.tar"]["error"], "with what is wrong", bad)
    tap.eq([bad[k]["offset"] for k in ("2-cut.tar", "3-hurt.tar", "4-empty.tar", "5-html.tar")],
           [info.offset_data - 512, info.offset_data - 512, 0, 0], "and where")
    tap.eq(sorted((r["key"], r["error"]) for r in told if "key" in r),
           [("0000", "no image"), ("0001", "no json"), ("0002", "no txt"), ("0003", "empty image"),
            ("0004", "two members of one kind"), ("0099", "json cannot be read")], "every broken pair too")
    logged = [json.loads(x) for x in se.splitlines() if "bad_archive" in x]
    tap.ok(len(logged) == 5 and {x["shard"] for x in logged} == set(bad) and all("offset" in x for x in logged),
           "one line of the log each", se)
    m = load(out, "_manifest.json")
    tap.eq((m["rows_in"], m["successes"], m["failed_to_resize"], m["statuses"]["no txt"]), (len(got) + 6, len(got), 6, 1),
           "the manifest accounts for all pairs")

    def refused(name, folder, words, *more):
        o = d + "/refused"
        shutil.rmtree(o, ignore_errors=True)
        rc, so, se = index(["--input", folder, "--output", o] + list(more))
        left = os.listdir(o) if os.path.isdir(o) else []
        tap.ok(rc == 65 and all(w in se for w in words) and set(left) <= {"_progress.json"}, name, "%d %s %s" % (rc, se, left))

    for i, name in enumerate(("1.tar", "2-cut.tar")):
        os.makedirs(d + "/strict%d" % i)
        os.symlink(root + "/0.tar", d + "/strict%d/0.tar" % i)
        os.symlink(root + "/" + name, d + "/strict%d/%s" % (i, name))
    refused("--strict fails at a broken pair", d + "/strict0", ["1.tar", "no image"], "--strict")
    refused("--strict fails at a bad archive", d + "/strict1", ["2-cut.tar", "at byte %d" % (info.offset_data - 512)], "--strict")
    os.makedirs(d + "/bad-only")
    shutil.copy(root + "/5-html.tar", d + "/bad-only/")
    refused("nothing but bad archives", d + "/bad-only", ["none of 1", "5-html.tar"])
    os.makedirs(d + "/no-tar")
    refused("no archive at all", d + "/no-tar", ["no .tar below"])
    refused("no such folder", d + "/nowhere", ["nowhere"])
    os.makedirs(d + "/loop/a")
    os.symlink("..", d + "/loop/a/back")
    refused("a folder that leads back into itself", d + "/loop", ["back into itself"])
    rc, so, se = index(["--input", root, "--output", d + "/x", "--sample", "2", "--fields", "offset,siz", "--require", "cls",
                        "--read-mode", "mmap", "--threads", "many", "--inptu", "y"])
    tap.ok(rc == 2 and all(w in se for w in ("sample", "'siz'", "'cls'", "mmap", "many", "did you mean 'input'")),
           "six wrong settings are told at once", "%d %s" % (rc, se))
    rc, so, se = index(["--input", root, "--output", d + "/req", "--path-prefix", "", "--require", "none"])
    tap.eq((load(d + "/req", "summary.json")["outcomes"]["no txt"], load(d + "/req", "summary.json")["outcomes"]["no json"]), (0, 0),
           "what is not required is not missed")


def test_random_damage(d):
    """No archive makes it crash, hang or say something untrue of the bytes."""
    r = np.random.RandomState(int(os.environ.get("SEED", "7")))
    root = d + "/random"
    os.makedirs(root)
    whole = bytearray()
    base = d + "/random-base.tar"
    write_tar(base, [m for i in range(6) for m in sample("%04d" % i, i, caption="c%d" % i)])
    whole = open(base, "rb").read()
    for i in range(120):
        b = bytearray(whole[:r.randint(1, len(whole))] if i % 4 == 0 else whole)
        for _ in range(r.randint(1, 4)):
            at = r.randint(len(b))
            b[at] = r.randint(256)
            if i % 2:  # in a header, its checksum put right
                h = at // 512 * 512
                if len(b) >= h + 512:
                    b[h + 148:h + 156] = b"        "
                    b[h + 148:h + 156] = b"%06o\0 " % sum(b[h:h + 512])
        open("%s/%03d.tar" % (root, i), "wb").write(b)
    rc, so, se = index(["--input", root, "--output", d + "/random-out", "--path-prefix", "", "--fields", ALL, "--require", "none"])
    rows = lines(d + "/random-out")
    tap.ok(rc == 0 and rows, "damage at random ends well", "%d %s" % (rc, se[-2000:]))
    wrong = [x for x in rows if x["offset"] + x["size"] > os.path.getsize(os.path.join(root, x["path"]))]
    tap.eq(wrong, [], "no picture lies beyond its archive's end")


# --- life -------------------------------------------------------------------------------------------

def big_corpus(root, shards=240, per=2000):
    """Hard links to one shard: many pairs, little disk."""
    os.makedirs(root)
    with tarfile.open(root + "/00000.tar", "w", format=tarfile.USTAR_FORMAT) as t:
        for i in range(per):
            for name, data in (("%06d.jpg" % i, b"x" * 30), ("%06d.json" % i, b"{\"width\":1,\"height\":1}"),
                               ("%06d.txt" % i, b"caption %d" % i)):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                t.addfile(info, io.BytesIO(data))
    for i in range(1, shards):
        os.link(root + "/00000.tar", root + "/%05d.tar" % i)


def test_life(d):
    root = d + "/big"
    big_corpus(root)
    want_out = d + "/big-want"
    rc, so, se = index(["--input", root, "--output", want_out, "--sample", "0.01"])
    tap.ok(rc == 0 and load(want_out, "summary.json")["pairs"] == 480000, "240 shards of 2000 pairs", se)
    want = digest(want_out), digest(want_out, "sample.jsonl")
    out = d + "/life"
    kills = stops = 0
    def begun(before, least):
        """A file of this run's has grown so far."""
        for n in os.listdir(out) if os.path.isdir(out) else []:
            try:
                if n.endswith("-index.jsonl") and n not in before and os.path.getsize(os.path.join(out, n)) >= least:
                    return True
            except OSError:
                pass
        return False

    for i in range(12):
        before = set(os.listdir(out)) if i else set()
        p = index_start(["--input", root, "--output", out, "--sample", "0.01", "--threads", "1", "--read-mode", "stream"])
        wait_for(lambda: begun(before, 1 << (10 + i)) or p.poll() is not None, 10)
        p.send_signal(signal.SIGKILL if i % 2 else signal.SIGTERM)
        so, se = p.communicate()
        if p.returncode == 0:
            break
        kills += p.returncode == -9
        stops += p.returncode == 143
        names = os.listdir(out)
        if "index.jsonl" in names or "_manifest.json" in names or (p.returncode == 143 and [n for n in names if n[0] == "."]):
            tap.ok(False, "nothing that looks whole is left after %d" % p.returncode, names)
    tap.ok(kills > 0 and stops > 0, "was killed %d and stopped %d times" % (kills, stops), se)
    rc, so, se = index(["--input", root, "--output", out, "--sample", "0.01"])
    tap.ok(rc == 0 and (digest(out), digest(out, "sample.jsonl")) == want, "and gives the same index after all", se)
    tap.eq(sorted(os.listdir(out)), sorted(os.listdir(want_out)), "with nothing else beside it")
    rc, so, se = index(["--input", root, "--output", out])
    tap.ok(rc == 0 and "finished already" in so, "finished is finished", se)
    rc, so, se = index(["--input", root, "--output", out], env={"DROVER_TASK": "9"})
    tap.ok(rc == 65 and "task ''" in se, "and whose it is counts", se)
    os.unlink(out + "/_manifest.json")
    open(out + "/sample.jsonl", "w").write("old")
    rc, so, se = index(["--input", root, "--output", out, "--threads", 3], env={"DROVER_TASK": "9", "DROVER_ATTEMPT": "4"})
    m = load(out, "_manifest.json")
    tap.ok(rc == 0 and digest(out) == want[0] and not os.path.exists(out + "/sample.jsonl") and (m["task"], m["attempt"]) ==
           ("9", "4"), "pieces without a manifest are begun anew", se)

    ps = [index_start(["--input", root, "--output", d + "/two"]) for _ in range(3)]
    for p in ps:
        p.communicate(timeout=60)
    rc, so, se = index(["--input", root, "--output", d + "/two"])
    tap.ok(rc == 0 and digest(d + "/two") == want[0] and sum(p.returncode == 0 for p in ps) <= 3,
           "three at once on one output: one whole index", [p.returncode for p in ps])


def test_memory(d):
    """The same memory for ten times the shards."""
    peaks = []
    for shards in (60, 600):
        root = d + "/mem%d" % shards
        os.makedirs(root)
        for i in range(shards):
            os.link(d + "/big/00000.tar", root + "/%05d.tar" % i)
        out = d + "/mem-out%d" % shards
        p = index_start(["--input", root, "--output", out, "--threads", "8"])
        _, status, usage = os.wait4(p.pid, 0)
        p.stdout.close()
        p.stderr.close()
        p.returncode = 0
        peaks.append(usage.ru_maxrss / 1024)
        tap.eq((status, load(out, "summary.json")["pairs"]), (0, shards * 2000), "%d shards" % shards)
        shutil.rmtree(out)
    if VARIANT == "release":
        tap.ok(peaks[1] < 150 and peaks[1] < peaks[0] + 24, "%.0f MB and %.0f MB at most" % tuple(peaks), peaks)


def test_contract(d, root):
    """Called as SageMaker calls it."""
    ml = d + "/ml"
    os.makedirs(ml + "/input/config")
    os.makedirs(ml + "/output")
    os.makedirs(ml + "/input/data")
    os.symlink(root, ml + "/input/data/data")

    def job(hyper):
        json.dump(hyper, open(ml + "/input/config/hyperparameters.json", "w"))
        failure = ml + "/output/failure"
        if os.path.exists(failure):
            os.unlink(failure)
        rc, so, se = index([], ml_root=ml)
        return rc, open(failure).read() if os.path.exists(failure) else None, se

    out = d + "/contract"
    rc, failure, se = job({"output_folder": out, "path_prefix": "/opt/ml/input/data/data", "fields": ALL, "sagemaker_region": "x"})
    tap.ok(rc == 0 and failure is None and digest(out) == digest(d + "/out"), "hyperparameters and the only channel are enough", se)
    rc, failure, se = job({"output_folder": out + "2", "input": "/opt/ml/input/data/data", "strict": "true"})
    tap.ok(rc == 0, "/opt/ml is read below the root", se)
    rc, failure, se = job({"output_folder": out + "3", "input": "channel:nope"})
    tap.ok(rc == 65 and failure.startswith("bad_input: ") and "data" in failure, "a channel that is not there", failure)
    rc, failure, se = job({})
    tap.ok(rc == 2 and failure.startswith("bad_input: ") and "output_folder" in failure, "no output_folder", failure)
    json.dump({"current_host": "algo-1", "hosts": ["algo-1", "algo-2"]}, open(ml + "/input/config/resourceconfig.json", "w"))
    rc, failure, se = job({"output_folder": out + "4"})
    tap.ok(rc == 65 and "2 hosts" in failure, "two hosts are refused", failure)


def test_of_our_download(d):
    """Shards as our own download worker writes them."""
    server = Server()
    rows = [{"URL": server.serve("/%d.jpg" % i, encode(photo(90 + i, 80, i), "JPEG")), "TEXT": CAPTIONS[i % 7]} for i in range(25)]
    make_parquet(d + "/p.parquet", rows, {"URL": "VARCHAR", "TEXT": "VARCHAR"})
    rc, so, se = run(["--parquet", d + "/p.parquet", "--output", d + "/shards/00000", "--number_sample_per_shard", 10, "--allow-net",
                      server.net, "--image_size", 64, "--resize_mode", "keep_ratio"])
    tap.ok(rc == 0, "three shards by download", se)
    rc, so, se = index(["--input", d + "/shards", "--output", d + "/shards-out", "--path-prefix", "p", "--fields", ALL, "--strict"])
    got = lines(d + "/shards-out")
    same("their index", got, expected(d + "/shards", "p/"))
    tap.ok(len(got or []) == 25 and all(min(r["width"], r["height"]) == 64 for r in got), "pictures' sizes are right", got)


# --- S3 ---------------------------------------------------------------------------------------------

class Local:
    def __init__(self, d):
        self.root = d + "/local"
        self.buckets = self.root + "/s3"
        os.makedirs(self.buckets + "/data")
        os.makedirs(self.buckets + "/locked")
        config = d + "/local.json"
        json.dump({"credentials": {KEY: SECRET}, "denied_buckets": ["locked"]}, open(config, "w"))
        port = d + "/port"
        self.p = subprocess.Popen([os.path.join(ROOT, "build/bin/drover-local"), "--root", self.root, "--listen", "127.0.0.1:0",
                                   "--config", config, "--port-file", port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(port) and os.path.getsize(port) > 0)
        self.url = "http://127.0.0.1:" + open(port).read().strip().rsplit(":", 1)[-1]
        self.env = dict(AWS_ENDPOINT_URL=self.url, AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, AWS_REGION="us-east-1",
                        AWS_CONFIG_FILE="/dev/null", AWS_SHARED_CREDENTIALS_FILE="/dev/null", AWS_EC2_METADATA_DISABLED="true")

    def wire(self):
        with urllib.request.urlopen(self.url + "/_local/wire-log") as r:
            return json.load(r)["requests"]

    def faults(self, *faults):
        body = json.dumps({"faults": list(faults)}).encode()
        urllib.request.urlopen(urllib.request.Request(self.url + "/_local/faults", body, method="POST")).read()

    def uploads(self):
        path = self.root + "/state/uploads"
        return os.listdir(path) if os.path.isdir(path) else []


def test_s3_faults(d, local, wide):
    """Replies that are lost, cut or late; an object that changes; a stop in the middle of an upload."""
    want = digest(local.buckets + "/data/wide")
    args = ["--input", "s3://data/wide-in", "--path-prefix", ""]
    shutil.copytree(wide, local.buckets + "/data/wide-in")
    local.faults({"operation": "GetObject", "kind": "half_body", "probability": 0.3, "seed": 5},
                 {"operation": "UploadPart", "kind": "error_503", "probability": 0.4, "seed": 6},
                 {"operation": "UploadPart", "kind": "drop_after", "times": 1},
                 {"operation": "CompleteMultipartUpload", "kind": "drop_after", "times": 1},
                 {"operation": "ListObjectsV2", "kind": "error_500", "times": 2})
    rc, so, se = index(args + ["--output", "s3://data/wide2"], env=local.env)
    tap.ok(rc == 0 and digest(local.buckets + "/data/wide2") == want, "requests fail and replies are lost: the same index", se)
    tap.eq(local.uploads(), [], "no upload is left open")

    local.faults({"operation": "UploadPart", "kind": "slow", "after": 1, "times": 9, "delay_seconds": 2})
    n = len([r for r in local.wire() if r["operation"] == "UploadPart"])
    p = index_start(args + ["--output", "s3://data/stopped"], env=local.env)
    tap.ok(wait_for(lambda: len([r for r in local.wire() if r["operation"] == "UploadPart"]) > n), "a part is on its way")
    p.terminate()
    began = time.monotonic()
    so, se = p.communicate(timeout=60)
    out = local.buckets + "/data/stopped"
    tap.ok(p.returncode == 143 and time.monotonic() - began < 20, "SIGTERM ends it soon", "%d %s" % (p.returncode, se))
    tap.eq((local.uploads(), [x for x in os.listdir(out) if x != "_progress.json"]), ([], []), "nothing is left of it")

    root = local.buckets + "/data/slow"
    for s in range(5):
        write_tar("%s/%d.tar" % (root, s), sample("%04d" % s, s))
    local.faults({"operation": "GetObject", "name_contains": ".tar", "kind": "slow", "times": 5, "delay_seconds": 0.8})
    p = index_start(["--input", "s3://data/slow", "--output", d + "/slow", "--threads", 1, "--progress_interval", 1], env=local.env)

    def progress():
        try:
            return load(d + "/slow", "_progress.json")
        except (OSError, ValueError):
            return {"shards_done": 0}
    tap.ok(wait_for(lambda: 0 < progress()["shards_done"] < 5 and progress()["rows_in"] is None), "_progress.json tells on the way",
           progress())
    so, se = p.communicate(timeout=60)
    tap.ok(p.returncode == 0 and "shards: 5 of 5 - pairs: 5" in so, "and a line for people at the end", so + se)

    big = [m for i in range(14) for m in sample("%04d" % i, i)]
    big = [(n, b[:32] + os.urandom(1 << 20) if n.endswith("jpg") else b) for n, b in big]
    path = local.buckets + "/data/changing/0.tar"
    write_tar(path, big)
    local.faults({"operation": "GetObject", "name_contains": "changing", "kind": "slow", "times": 1, "delay_seconds": 2})
    p = index_start(["--input", "s3://data/changing", "--output", d + "/changing"], env=local.env)
    tap.ok(wait_for(lambda: any(r["operation"] == "GetObject" and "changing" in r["name"] for r in local.wire())), "reading begins")
    write_tar(path + ".new", list(reversed(big)))
    os.rename(path + ".new", path)
    so, se = p.communicate(timeout=60)
    tap.ok(p.returncode == 1 and "changed while it was read" in se and not os.path.exists(d + "/changing/index.jsonl"),
           "an object that changes under the reader is noticed", "%d %s" % (p.returncode, se))
    local.faults()


def test_s3(d, root):
    local = Local(d)
    try:
        shutil.copytree(root, local.buckets + "/data/img")
        big = [m for i in range(30) for m in sample("%04d" % i, i)]
        big[30] = (big[30][0], hashlib.sha256(big[30][0][:-4].encode()).digest() + os.urandom(10 << 20))
        write_tar(local.buckets + "/data/img/big.tar", big)  # more than one range, one gap wider than a range
        args = ["--path-prefix", "/opt/ml/input/data/data", "--fields", ALL, "--sample", "0.3"]
        rc, so, se = index(["--input", "s3://data/img", "--output", "s3://data/index/"] + args, env=local.env)
        tap.ok(rc == 0, "from S3 to S3", se)
        want = expected(local.buckets + "/data/img", "/opt/ml/input/data/data/")
        same("the same lines as of the folder", lines(local.buckets + "/data/index"), want)
        m = load(local.buckets + "/data/index", "_manifest.json")
        plain = hashlib.md5(open(local.buckets + "/data/index/sample.jsonl", "rb").read()).hexdigest()
        tap.ok(m["objects"][1]["etag"].strip('"') == plain, "with the ETags S3 gave", m["objects"])
        wire = local.wire()
        tap.ok(wire and all(r["signed"] for r in wire), "every request was signed")
        gets = [r for r in wire if r["operation"] == "GetObject" and r["name"].endswith("big.tar")]
        tap.ok(2 <= len(gets) <= 4, "a large archive comes by ranges", gets)
        rc, so, se = index(["--input", "s3://data/img/00001/00003.tar", "--output", d + "/s3-one"], env=local.env)
        same("one object alone", lines(d + "/s3-one"), [
            r for r in expected(local.buckets + "/data/img/00001", "s3://data/img/00001/", "path,key,image,offset,size,caption")
            if r["path"].endswith("00003.tar")])
        wide = d + "/wide"
        os.makedirs(wide)
        caption = "w" * 60000
        for s in range(2):
            write_tar("%s/%d.tar" % (wide, s), [m for i in range(150) for m in sample("%04d" % i, i, caption=caption)])
        rc, so, se = index(["--input", wide, "--output", "s3://data/wide", "--path-prefix", ""], env=local.env)
        size = os.path.getsize(local.buckets + "/data/wide/index.jsonl")
        parts = [r for r in local.wire() if r["operation"] == "UploadPart"]
        tap.ok(rc == 0 and size > 16 << 20 and len(parts) == 3, "a large index goes up in parts", "%d %d %s" % (size, len(parts), se))
        same("and reads back", lines(local.buckets + "/data/wide"), expected(wide, "", "path,key,image,offset,size,caption"))

        test_s3_faults(d, local, wide)

        def refused(name, args, rc_want, word):
            rc, so, se = index(args, env=local.env)
            found = [json.loads(x) for x in se.splitlines() if '"index_failed"' in x]
            tap.ok(rc == rc_want and found and found[0]["cause"] == word, name, "%d %s" % (rc, se))
        refused("a bucket that is not there", ["--input", "s3://nope-bucket/x", "--output", d + "/s3-x"], 65, "bad_input")
        refused("a prefix without shards", ["--input", "s3://data/none/", "--output", d + "/s3-x"], 65, "bad_input")
        refused("a bucket we may not read", ["--input", "s3://locked/x", "--output", d + "/s3-x"], 77, "access_denied")
        refused("a bucket we may not write to", ["--input", root, "--output", "s3://locked/x"], 77, "access_denied")
    finally:
        local.p.terminate()
        local.p.wait()


with Folder() as d:
    root = d + "/corpus"
    make_corpus(root)
    all_lines = test_readers(d, root)
    test_sample(d, root, all_lines)
    test_ways_to_read(d, root)
    test_huge(d)
    test_broken(d)
    test_random_damage(d)
    test_life(d)
    test_memory(d)
    test_contract(d, root)
    test_of_our_download(d)
    test_s3(d, root)
sys.exit(tap.end())
