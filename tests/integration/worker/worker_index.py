#!/usr/bin/python3
"""Aim: the index has the position of every pair, whichever program wrote the shards and wherever they are;
broken pairs are counted and reported. Method: shards by Python's tarfile (all three formats), GNU tar, an
img2dataset-like writer and our own download; tarfile and GNU tar as independent readers: each offset is
compared with theirs and with the bytes; drover-local as S3.
"""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker.index import *

tap = Tap()


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
    same(tap, "every line as tarfile says, in shard order", got, want)
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
    same(tap, "the sample is those whose key's hash is below the fraction", got, want)
    tap.ok(0 < len(want) < len(all_lines), "some, not all", len(want))
    for fraction, n in (("1", len(all_lines)), ("0", None), ("0.1", len([r for r in all_lines if key_hash(r["key"]) < 2 ** 64 // 10]))):
        out = d + "/sample" + fraction
        rc, so, se = index(["--input", root, "--output", out, "--sample", fraction])
        rows = lines(out, "sample.jsonl")
        tap.ok(rc == 0 and (rows if rows is None else len(rows)) == n, "a sample of %s" % fraction, se)


def test_rows(d, root, all_lines):
    """The first N whole pairs in shard order are indexed, and nothing beyond them is counted."""
    sizes = [r["path"] for r in all_lines]
    edge = sizes.index(sizes[-1])  # where the last shard begins
    for n in (1, 39, 40, 41, edge, len(all_lines) - 1, len(all_lines), 10 ** 9):
        out = "%s/rows-%d" % (d, n)
        rc, so, se = index(["--input", root, "--output", out, "--path-prefix", "/opt/ml/input/data/data", "--fields", ALL,
                            "--sample", "0.3", "--rows", n, "--threads", 5])
        want = all_lines[:n]
        same(tap, "--rows %d: the first lines" % n, lines(out), want)
        tap.eq(lines(out, "sample.jsonl"), [r for r in want if key_hash(r["key"]) < 3 * 2 ** 64 // 10], "the sample is one of these")
        s, m, p = load(out, "summary.json"), load(out, "_manifest.json"), load(out, "_progress.json")
        shards = len({r["path"] for r in want})
        tap.eq((rc, s["rows"], s["outcomes"]["success"], m["successes"], m["rows_out"], p["rows_done"]), (0, n) + (len(want),) * 4,
               "summary, manifest and progress count these")
        tap.ok(s["shards_read"] in (shards, 14) and p["shards_done"] == p["shards_in"] == s["shards_read"] and s["shards"] == 14,
               "no shard beyond the last of them is read", "%r %r" % (s, p))
    # broken pairs count up to the last whole one; a bad archive behind it is none of this index's
    folder = d + "/rows-broken"
    good = [m for i in range(6) for m in sample("%04d" % i, i)]
    del good[3]  # 0001 has no image
    write_tar(folder + "/0.tar", good)
    open(folder + "/1.tar", "wb").write(b"<html>" * 1000)
    for n, whole, broken, bad in ((1, 1, 0, 0), (2, 2, 1, 0), (5, 5, 1, 0), (6, 5, 1, 1)):
        out = "%s-%d" % (folder, n)
        rc, so, se = index(["--input", folder, "--output", out, "--rows", n])
        s = load(out, "summary.json") or {}
        tap.eq((rc, s.get("outcomes", {}).get("success"), s.get("outcomes", {}).get("no image"), s.get("bad_archives"), s.get("members")),
               (0, whole, broken, bad, {1: 3, 2: 8}.get(n, 17)), "--rows %d of five whole pairs and one broken" % n)
        tap.eq(len(lines(out, "broken.jsonl") or []), broken + bad, "the list of broken ones has %d" % (broken + bad))
    rc, so, se = index(["--input", folder, "--output", folder + "-strict", "--rows", 1, "--strict"])
    tap.ok(rc == 0, "--strict does not look beyond the rows", se)
    rc, so, se = index(["--input", folder, "--output", folder + "-wrong", "--rows", "-1"])
    tap.ok(rc == 2 and "rows" in se, "a number of rows below 0", se)


def test_ways_to_read(d, root):
    """Threads, windows and temperature do not change a byte."""
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
    same(tap, "one archive alone, with its own place as the path", lines(d + "/one"),
         [r for r in expected(os.path.dirname(one), os.path.dirname(one) + "/", "path,key,image,offset,size,caption")
          if r["path"].endswith("00003.tar")])
    rc, so, se = index(["--input", root, "--output", d + "/fields", "--path-prefix", "", "--fields", "path,offset"])
    same(tap, "two fields, paths below the input", lines(d + "/fields"), expected(root, "", "path,offset"))


def test_temperature(d):
    """Cached archives are walked from header to header, cold ones streamed from end to end."""
    root = d + "/temperature"
    for s in range(6):
        write_tar("%s/%d.tar" % (root, s), [(n, b + os.urandom(120000) if n.endswith("jpg") else b)
                                            for i in range(60) for n, b in sample("%d%03d" % (s, i), i)])
    paths = [os.path.join(root, f) for f in os.listdir(root)]
    size = sum(map(os.path.getsize, paths))

    def look(name, *more):
        out = d + "/temperature-" + name
        rc, so, se = index(["--input", root, "--output", out, "--path-prefix", ""] + list(more))
        s = load(out, "summary.json") if rc == 0 else {}
        return s.get("shards_streamed"), s.get("bytes_read", 0) / size, digest(out), se
    for p in paths:
        open(p, "rb").read()
    walked = look("cached")
    tap.ok(walked[0] == 0 and walked[1] < 0.3, "cached: walked, %.2f of the bytes" % walked[1], walked)
    for p in paths:
        with open(p, "rb") as f:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    cold = look("cold")
    tap.ok(cold[0] == 6 and 0.9 < cold[1] < 1.2, "cold: streamed, %.2f of the bytes" % cold[1], cold)
    for p in paths:
        open(p, "rb").read()
    asked = look("asked", "--read-mode", "stream")
    tap.ok(asked[0] == 6 and 0.9 < asked[1] < 1.2 and walked[2] == cold[2] == asked[2], "or when asked to; the same index all three times",
           asked)


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
        before = os.times()
        rc, so, se = index(["--input", root, "--output", out, "--path-prefix", "", "--read-mode", mode])
        after = os.times()
        took = after.children_user + after.children_system - before.children_user - before.children_system
        want = []
        for title, offset in (("gnu", 512), ("pax", 1536)):
            with tarfile.open("%s/%s.tar" % (root, title)) as t:
                for m in t:
                    if m.name.endswith("jpg"):
                        want.append(dict(path=title + ".tar", key=m.name[0], image=m.name, offset=m.offset_data, size=m.size,
                                         caption="big" if m.name[0] == "0" else ""))
        same(tap, "members beyond 8 GiB (%s)" % mode, lines(out), want)
        tap.ok(rc == 0 and want[0]["size"] == size and took < 5, "without reading through them: %.1f s of CPU" % took, se)


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
    """No archive makes it crash, hang or report something wrong."""
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


def test_contract(d, root):
    """Started as SageMaker starts it."""
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
    same(tap, "their index", got, expected(d + "/shards", "p/"))
    tap.ok(len(got or []) == 25 and all(min(r["width"], r["height"]) == 64 for r in got), "pictures' sizes are right", got)


def test_without_rows(d):
    """The output of a part without rows has no .tar: its index is finished and empty. Any other folder without one is a mistake."""
    os.makedirs(d, exist_ok=True)
    with open(d + "/empty.csv", "w") as f:
        f.write("url,caption\n")
    part = d + "/without-rows"
    rc, so, se = run(["--url_list", d + "/empty.csv", "--input_format", "csv", "--output_folder", part], env={"DROVER_TASK": "3"})
    tap.ok(rc == 0, "a part without rows is downloaded", se)
    local = Local(d)
    try:
        shutil.copytree(part, local.folder("data", "none"))
        for what, source, out, there in (("folder", part, d + "/index-none", d + "/index-none"),
                                         ("S3", "s3://data/none/", "s3://data/index-none", local.folder("data", "index-none"))):
            rc, so, se = index(["--input", source, "--output", out], env=local.env(DROVER_TASK="4"))
            names = sorted(os.listdir(there)) if os.path.isdir(there) else []
            tap.ok(rc == 0 and names == ["_manifest.json", "_progress.json", "index.jsonl", "summary.json"], "its index is finished: " + what, (rc, se, names))
            if rc == 0:
                m = load(there, "_manifest.json")
                tap.eq((m["rows_in"], m["rows_out"], load(there, "summary.json")["shards"], lines(there)), (0, 0, 0, []), "and empty: " + what)
    finally:
        local.stop()
    manifest = load(part, "_manifest.json")
    for what, change in (("a manifest of pictures", {"rows_in": 3, "successes": 2}), ("a manifest of nobody", None)):
        with open(part + "/_manifest.json", "w") as f:
            json.dump({**manifest, **change} if change else [], f)
        rc, so, se = index(["--input", part, "--output", d + "/index-none-x"])
        tap.ok(rc == 65 and "there is no .tar below" in se, "a folder without .tar is refused beside " + what, (rc, se))


def test_s3(d, root):
    local = Local(d)
    try:
        shutil.copytree(root, local.buckets + "/data/img")
        big = [m for i in range(30) for m in sample("%04d" % i, i)]
        big[30] = (big[30][0], hashlib.sha256(big[30][0][:-4].encode()).digest() + os.urandom(10 << 20))
        write_tar(local.buckets + "/data/img/big.tar", big)  # more than one range, one gap wider than a range
        args = ["--path-prefix", "/opt/ml/input/data/data", "--fields", ALL, "--sample", "0.3"]
        uploads = os.path.join(os.path.dirname(local.buckets), "state", "uploads")
        for i, key in enumerate(("index/index.jsonl", "index/00000.tar", "other/index.jsonl")):
            os.makedirs(os.path.join(uploads, "%032d" % i))
            open(os.path.join(uploads, "%032d" % i, "target"), "w").write("data\n%s\napplication/json\n" % key)
        rc, so, se = index(["--input", "s3://data/img", "--output", "s3://data/index/"] + args, env=local.env())
        tap.ok(rc == 0, "from S3 to S3", se)
        tap.eq(sorted(os.listdir(uploads)), ["%032d" % 1, "%032d" % 2], "an upload a killed one left is aborted, others' are not")
        want = expected(local.buckets + "/data/img", "/opt/ml/input/data/data/")
        same(tap, "the same lines as of the folder", lines(local.buckets + "/data/index"), want)
        m = load(local.buckets + "/data/index", "_manifest.json")
        plain = hashlib.md5(open(local.buckets + "/data/index/sample.jsonl", "rb").read()).hexdigest()
        tap.ok(m["objects"][1]["etag"].strip('"') == plain, "with the ETags S3 gave", m["objects"])
        wire = local.wire()
        tap.ok(wire and all(r["signed"] for r in wire), "every request was signed")
        gets = [r for r in wire if r["operation"] == "GetObject" and r["name"].endswith("big.tar")]
        tap.ok(2 <= len(gets) <= 4, "a large archive comes by ranges", gets)
        rc, so, se = index(["--input", "s3://data/img/00001/00003.tar", "--output", d + "/s3-one"], env=local.env())
        same(tap, "one object alone", lines(d + "/s3-one"), [
            r for r in expected(local.buckets + "/data/img/00001", "s3://data/img/00001/", "path,key,image,offset,size,caption")
            if r["path"].endswith("00003.tar")])
        for name, key in (("00003.tar", "0001"), ("00003.tar.old.tar", "9999")):
            write_tar(local.buckets + "/data/near/" + name, sample(key, 1))
        rc, so, se = index(["--input", "s3://data/near/00003.tar", "--output", d + "/s3-near"], env=local.env())
        tap.eq([r["key"] for r in lines(d + "/s3-near") or []], ["0001"], "and not those whose names begin with its")
        for i in range(2300):
            local.put("data/pages/%05d.parquet" % i, b"")
        for i in (0, 1100, 9999):
            write_tar(local.buckets + "/data/pages/%05d.tar" % i, sample("%04d" % i, i))
        rc, so, se = index(["--input", "s3://data/pages", "--output", d + "/s3-pages"], env=local.env())
        tap.eq([r["key"] for r in lines(d + "/s3-pages") or []], ["0000", "1100", "9999"], "three shards among many other keys")
        wide = d + "/wide"
        os.makedirs(wide)
        caption = "w" * 60000
        for s in range(2):
            write_tar("%s/%d.tar" % (wide, s), [m for i in range(150) for m in sample("%04d" % i, i, caption=caption)])
        rc, so, se = index(["--input", wide, "--output", "s3://data/wide", "--path-prefix", ""], env=local.env())
        size = os.path.getsize(local.buckets + "/data/wide/index.jsonl")
        parts = [r for r in local.wire() if r["operation"] == "UploadPart"]
        tap.ok(rc == 0 and size > 16 << 20 and len(parts) == 3, "a large index goes up in parts", "%d %d %s" % (size, len(parts), se))
        same(tap, "and reads back", lines(local.buckets + "/data/wide"), expected(wide, "", "path,key,image,offset,size,caption"))

        for s in range(16):
            write_tar("%s/at-once/%02d.tar" % (local.buckets + "/data", s), sample("%02d" % s, s))
        local.faults({"operation": "GetObject", "name_contains": "at-once", "kind": "slow", "times": 99, "delay_seconds": 8})
        p = index_start(["--input", "s3://data/at-once", "--output", d + "/at-once"], env=local.env())

        def asked():
            return [r for r in local.wire() if r["operation"] == "GetObject" and "at-once" in r["name"]]
        wait_for(lambda: len(asked()) >= 16)
        times = sorted(r["time"] for r in asked())
        tap.ok(len(times) == 16 and times[15] - times[0] < 8, "sixteen shards are read at once", times)
        local.faults()
        p.kill()
        p.communicate()

        def refused(name, args, rc_want, word):
            rc, so, se = index(args, env=local.env())
            found = [json.loads(x) for x in se.splitlines() if '"index_failed"' in x]
            tap.ok(rc == rc_want and found and found[0]["cause"] == word, name, "%d %s" % (rc, se))
        refused("a bucket that is not there", ["--input", "s3://nope-bucket/x", "--output", d + "/s3-x"], 65, "bad_input")
        refused("a prefix without shards", ["--input", "s3://data/none/", "--output", d + "/s3-x"], 65, "bad_input")
        refused("a bucket we may not read", ["--input", "s3://locked/x", "--output", d + "/s3-x"], 77, "access_denied")
        refused("a bucket we may not write to", ["--input", root, "--output", "s3://locked/x"], 77, "access_denied")
    finally:
        local.stop()


with Folder() as d:
    root = d + "/corpus"
    make_corpus(root)
    only = os.environ.get("ONLY")
    if only is not None:
        {"without_rows": lambda: test_without_rows(d), "s3": lambda: test_s3(d, root)}[only]()
        sys.exit(tap.done())
    all_lines = test_readers(d, root)
    test_sample(d, root, all_lines)
    test_rows(d, root, all_lines)
    test_ways_to_read(d, root)
    test_temperature(d)
    test_huge(d)
    test_broken(d)
    test_random_damage(d)
    test_contract(d, root)
    test_of_our_download(d)
    test_without_rows(d + "/more")
    test_s3(d, root)
sys.exit(tap.done())
