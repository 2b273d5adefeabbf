#!/usr/bin/python3
"""Aim: the output of a part follows img2dataset's rules, row by row, whatever the web servers do: statuses,
texts, counts, keys, members, json, sidecar. No row vanishes. Method: 500 rows (ROWS=3000: more) with every possible
outcome, from real web servers, TLS servers and a DNS server; the expected output is computed from what
each URL was set up to do, never from the actual output. Where a text is Python's, Python's own urllib
provides it. Four runs with different settings over the same rows.
"""
import collections
import hashlib
import math
import os
import re
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import cv2
from kit.worker import *
from kit.worker.pixels import decoded, opened, resized
from parity_rows import COLUMNS, DIRECTIVES, DOWNLOAD, RESIZE, ROWS, TOKEN, TYPE, UNDECODED, VALUE, deal, fill_web, robots_forbid, write_part

tap = Tap()
cv2.setNumThreads(1)


class Config:
    """Settings of one run, defaults as img2dataset's."""

    def __init__(self, name, **kw):
        self.name = name
        self.s = dict(number_sample_per_shard=10000, oom_shard_count=5, caption_col=None, save_additional_columns=[],
                      image_size=256, resize_mode="border", resize_only_if_bigger=False, encode_format="jpg", encode_quality=95,
                      extract_exif=True, compute_hash="sha256", verify_hash=None, min_image_size=0, max_image_area=math.inf,
                      max_aspect_ratio=math.inf, user_agent_token=None, disallowed_header_directives=list(DIRECTIVES),
                      disable_all_reencoding=False)
        assert set(kw) <= set(self.s), kw
        self.s.update(kw)
        self.__dict__.update(self.s)
        self.digits = math.ceil(math.log10(self.number_sample_per_shard))

    def args(self):
        return [x for k, v in self.s.items() for x in ("--" + k, json.dumps(v) if isinstance(v, list) else str(v))]

    def key(self, row):
        shard, place = divmod(row.i, self.number_sample_per_shard)
        return str(10 ** self.digits * shard + place).zfill(self.digits + self.oom_shard_count)

    def fields(self):
        return (self.save_additional_columns + (["caption"] if self.caption_col else [])
                + ["url", "key", "status", "error_message", "width", "height", "original_width", "original_height"]
                + (["exif"] if self.extract_exif else []) + ([self.compute_hash] if self.compute_hash else []))

    def types(self):
        sides = ("width", "height", "original_width", "original_height")
        return [TYPE[n] if n in TYPE else "INTEGER" if n in sides else "VARCHAR" for n in self.fields()]

    def members(self):
        return sorted([self.encode_format, "json"] + (["txt"] if self.caption_col else []))

    def outcome(self, row):
        """status, error text"""
        f = row.fate
        if f.text is not None:
            return DOWNLOAD, cut(f.text)
        if self.disallowed_header_directives and any(robots_forbid(t, self.user_agent_token) for t in f.tags):
            return DOWNLOAD, "Use of image disallowed by X-Robots-Tag directive"
        if self.verify_hash and row.sums(self.verify_hash[1]) != hashlib.new(self.verify_hash[1], f.body).hexdigest():
            return DOWNLOAD, "hash mismatch"
        if self.disable_all_reencoding:
            return "success", None
        if f.size is None:
            return RESIZE, UNDECODED
        w, h = f.size
        if min(w, h) < self.min_image_size:
            return RESIZE, "image too small"
        if w * h > self.max_image_area:
            return RESIZE, "image area too large"
        if max(w, h) / min(w, h) > self.max_aspect_ratio:
            return RESIZE, "aspect ratio too large"
        return "success", None

    def sides(self, size):
        """width and height that the picture has in the end (A4)."""
        w, h = size
        if self.resize_mode == "no":
            return w, h
        base = max(w, h) if self.resize_mode in ("border", "keep_ratio_largest") else min(w, h)
        if self.resize_only_if_bigger and base <= self.image_size:
            return w, h
        if self.resize_mode in ("border", "center_crop"):
            return self.image_size, self.image_size
        scale = self.image_size / base
        return round(w * scale), round(h * scale)

    def meta(self, row):
        """Every field, in order."""
        status, error = self.outcome(row)
        won = status == "success"
        seen = won and not self.disable_all_reencoding
        width, height = self.sides(row.fate.size) if seen else (None, None)
        m = {n: VALUE[n](row.i) for n in self.save_additional_columns}
        if self.caption_col:
            m["caption"] = row.caption
        m.update(url=row.fate.url, key=self.key(row), status=status, error_message=error, width=width, height=height,
                 original_width=row.fate.size[0] if seen else None, original_height=row.fate.size[1] if seen else None)
        if self.extract_exif:
            m["exif"] = ("{}" if row.kind != "exif" else "Image Make") if won else None
        if self.compute_hash:
            m[self.compute_hash] = hashlib.new(self.compute_hash, row.fate.body).hexdigest() if won else None
        return m


def cut(text):
    """Texts are bounded: 255 bytes, of a status line's words 230."""
    return text[:16 + 230] if text.startswith("HTTP Error ") else text[:255]


def same(a, b):
    """Equal in value and type, NaN to NaN, 0.0 not to -0.0."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


def differing(got, want):
    """Fields in which a row differs from the expected one."""
    out = [n for n in want if n not in got or not same(got[n], want[n])] + [n for n in got if n not in want]
    if "exif" in out and want["exif"] == "Image Make":
        tags = json.loads(got["exif"] or "{}")
        if tags.get("Image Make") == "Maker" and "Image Orientation" in tags:
            out.remove("exif")
    return out


def few(bad):
    return "%d, the first: %s" % (len(bad), "\n".join(str(b)[:400] for b in bad[:6]))


def check_statuses(c, rows, table):
    tap.eq([r["id" if "id" in r else "key"] for r in table], [r.i if "id" in c.save_additional_columns else c.key(r) for r in rows],
           "%s: every row is in a sidecar, once, in order" % c.name)
    by_kind = collections.defaultdict(list)
    for row, got in zip(rows, table):
        want = c.outcome(row)
        if (got["status"], got["error_message"]) != want:
            by_kind[row.kind].append((row.fate.url, got["status"], got["error_message"], want))
    for kind in dict.fromkeys(r.kind for r in rows):
        tap.ok(not by_kind[kind], "%s: status and text of %s" % (c.name, kind), few(by_kind[kind]))


def check_sidecars(c, rows, out, shards, table):
    tap.eq([[tuple(x) for x in parquet_schema("%s/%s.parquet" % (out, s))] for s in shards], [list(zip(c.fields(), c.types()))] * len(shards),
           "%s: sidecars have these columns and types" % c.name)
    bad = [(r.fate.url, [(n, g.get(n), c.meta(r).get(n)) for n in differing(g, c.meta(r))])
           for r, g in zip(rows, table) if differing(g, c.meta(r)) or list(g) != c.fields()]
    tap.ok(not bad, "%s: and every value of every row" % c.name, few(bad))


def check_shards(c, rows, out, shards):
    per = c.number_sample_per_shard
    names, metas, texts, wrong = [], [], [], []
    for k, s in enumerate(shards):
        mine = {c.key(r): r for r in rows[k * per:(k + 1) * per] if c.outcome(r)[0] == "success"}
        listed = [m for m, _ in members("%s/%s.tar" % (out, s))]
        keys = list(dict.fromkeys(m.split(".")[0] for m in listed))
        if listed != ["%s.%s" % (key, e) for key in keys for e in c.members()] or sorted(keys) != sorted(mine):
            names.append((s, len(keys), len(mine), sorted(set(keys) ^ set(mine))[:9], listed[:9]))
        for key, sample in samples("%s/%s.tar" % (out, s)).items():
            row = mine.get(key)
            if row is None:
                continue
            meta = json.loads(sample["json"])
            if list(meta) != c.fields() or differing(meta, c.meta(row)) or not sample["json"].isascii():
                metas.append((row.fate.url, [(n, meta.get(n), c.meta(row).get(n)) for n in differing(meta, c.meta(row))], list(meta)))
            if c.caption_col and sample["txt"] != (row.caption or "").encode():
                texts.append((row.caption, sample["txt"][:99]))
            why = picture_is_wrong(c, row, meta, sample[c.encode_format])
            if why:
                wrong.append((row.fate.url, why))
    tap.ok(not names, "%s: tars hold the successes' members, sorted within each" % c.name, few(names))
    tap.ok(not metas, "%s: json has the fields in order, their values and types, in ASCII" % c.name, few(metas))
    tap.ok(not texts, "%s: txt is the caption, empty for none" % c.name, few(texts))
    tap.ok(not wrong, "%s: pictures are of their rows and of the size that json says" % c.name, few(wrong))


REFERENCES = {}


def picture_is_wrong(c, row, meta, data):
    if c.disable_all_reencoding:
        return None if data == row.fate.body else "not the bytes that came: %r" % data[:40]
    px = decoded(data)
    if (px.shape[1], px.shape[0]) != (meta["width"], meta["height"]):
        return "%s is not %sx%s" % (px.shape, meta["width"], meta["height"])
    at = (c.name, row.fate.body)
    if at not in REFERENCES:
        im = opened(row.fate.body)
        h, w = im.shape[:2]
        keep = c.resize_only_if_bigger and c.sides((w, h)) == (w, h)
        im = im if keep else resized(im, c.resize_mode, c.image_size)
        REFERENCES[at] = im if im.ndim == 2 else im[:, :, ::-1]
    ref = REFERENCES[at]
    if ref.ndim == 2 and px.ndim == 3:
        ref = np.dstack([ref] * 3)
    if row.kind in ("truncated", "cmyk"):
        return None  # the missing rest is each decoder's own; OpenCV's CMYK is not colour-managed
    if ref.shape != px.shape or psnr(ref, px) < 25:
        return "psnr %.1f of %s and %s" % (psnr(ref, px) if ref.shape == px.shape else -1, ref.shape, px.shape)
    return None


def check_counts(c, rows, out, shards, log):
    per, bad, total = c.number_sample_per_shard, [], collections.Counter()
    for k, s in enumerate(shards):
        outcomes = [c.outcome(r) for r in rows[k * per:(k + 1) * per]]
        statuses = collections.Counter(o[0] for o in outcomes)
        total += statuses
        want = {"count": len(outcomes), "successes": statuses["success"], DOWNLOAD: statuses[DOWNLOAD], RESIZE: statuses[RESIZE],
                "status_dict": dict(collections.Counter(o[1] or o[0] for o in outcomes))}
        got = load(out, s + "_stats.json")
        order = ["count", "successes", DOWNLOAD, RESIZE, "duration", "start_time", "end_time", "status_dict"]
        if list(got) != order or any(got[n] != want[n] for n in want):
            bad.append((s, {n: (got.get(n), want[n]) for n in want if got.get(n) != want[n] and n != "status_dict"},
                        set(got["status_dict"].items()) ^ set(want["status_dict"].items())))
    tap.ok(not bad, "%s: stats count every row and every text" % c.name, few(bad))
    m = load(out, "_manifest.json")
    tap.eq([m[n] for n in ("rows_in", "rows_out", "successes", DOWNLOAD, RESIZE)],
           [ROWS, ROWS, total["success"], total[DOWNLOAD], total[RESIZE]], "%s: so does the manifest" % c.name)
    foreign = sum(r.fate.foreign and c.outcome(r) == (RESIZE, UNDECODED) for r in rows)
    ended = [json.loads(x) for x in log.splitlines() if '"stages_ended"' in x]
    said = ["%s: %.3f" % (n.replace("_", " "), total[n] / ROWS) for n in ("success", DOWNLOAD, RESIZE)]
    tap.ok(" - ".join(said) in log and "count: %d" % ROWS in log, "%s: the last line tells the shares" % c.name, (said, log[-900:]))
    tap.eq([(e["unsupported"], e["successes"]) for e in ended], [(foreign, total["success"])],
           "%s: pictures in formats that are not read are counted apart" % c.name)


# What A3 and the list say there is; each must be expected of some row, or the part is no test.
OUTCOMES = [r"success", r"HTTP Error 4\d\d: .+", r"HTTP Error 5\d\d: .+", r"HTTP Error 404: ", r"HTTP Error 3\d\d: .+", r".*\[Errno -2\].*",
            r".*\[Errno -3\].*", r".*\[Errno 111\] Connection refused.*", r".*CERTIFICATE_VERIFY_FAILED.*", r"timed out",
            r"<urlopen error timed out>", r"unknown url type: '.*'", r"<urlopen error unknown url type: .+>", r"URL can't contain control.*",
            r".*X-Robots-Tag directive", r"hash mismatch", r"Image decoding error", r"image too small", r"image area too large",
            r"aspect ratio too large", r".*address not allowed.*", r"Remote end closed.*", r".*\[Errno 104\].*"]
WON = ["space", "space in query", "non-ascii", "emoji", "truncated", "one-png", "one-jpeg", "redirect", "https", "name", "cmyk", "grey", "webp"]


def check_part(c, rows):
    texts = collections.Counter(t or s for s, t in map(c.outcome, rows))
    missing = [o for o in OUTCOMES if not any(re.fullmatch(o, t, re.S) for t in texts)]
    won = {r.kind for r in rows if Config("no filters").outcome(r)[0] == "success"}
    tap.ok(not missing and won >= set(WON), "the part has every outcome there is", (missing, set(WON) - won))
    tap.ok(len({t for t in texts}) > 80 and texts["success"] > ROWS / 5, "many texts and enough successes", len(texts))
    urls = collections.Counter(r.fate.url for r in rows)
    tap.ok(len(rows) == ROWS and None in urls and "" in urls and min(urls.values()) > 1, "null and empty URLs, and each at least twice")


def check_run(c, d, rows, part, args, env, as_job=False):
    """as_job: settings are hyperparameters, as SageMaker mounts them."""
    out = os.path.join(d, c.name)
    args = ["--url_list", part, "--output_folder", out, "--url_col", "link"] + c.args() + args
    root = d + "/ml"
    if as_job:
        os.makedirs(root + "/input/config")
        names = [str(a)[2:].replace("-", "_") for a in args[::2]]
        values = dict(zip(names, map(str, args[1::2])), allow_net=",".join(v for n, v in zip(names, args[1::2]) if n == "allow_net"))
        with open(root + "/input/config/hyperparameters.json", "w") as f:
            json.dump(values, f)
        args = []
    rc, so, se = run(args, env=env, ml_root=root if as_job else "/nonexistent")
    if not tap.ok(rc == 0, "%s: the run ends well" % c.name, "%d %s" % (rc, se[-3000:])):
        return
    shards = [str(i).zfill(c.oom_shard_count) for i in range(math.ceil(ROWS / c.number_sample_per_shard))]
    tap.eq(sorted(f for f in os.listdir(out) if f[0] != "_"), sorted(s + x for s in shards for x in (".parquet", ".tar", "_stats.json")),
           "%s: these files and no others" % c.name)
    table = [r for s in shards for r in read_parquet("%s/%s.parquet" % (out, s))]
    check_statuses(c, rows, table)
    check_sidecars(c, rows, out, shards, table)
    check_shards(c, rows, out, shards)
    check_counts(c, rows, out, shards, so + se)


def test_table(fates):
    """The texts in the table equal Python's urllib's, where it can be asked."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for kind in fates:
        bad = []
        asked = [f for f in fates[kind] if f.pythons and kind != "body timeout"][:9 if "timeout" not in kind else 1] + [f for f in fates[kind][:40] if f.pythons and "url" in kind][9:]
        for f in asked:
            try:
                opener.open(urllib.request.Request(f.url), timeout=0.5).read()
                said = None
            except Exception as e:
                said = str(e)
            if said != f.text:
                bad.append((f.url, said, f.text))
        if asked:
            tap.ok(not bad, "urllib says the same of %s" % kind, few(bad))


with Folder() as d:
    fates = collections.defaultdict(list)
    web, keep = fill_web(d, fates)
    test_table(fates)
    rows = deal(fates)
    part = d + "/part.parquet"
    write_part(part, rows)
    allowed = {s.net for s in keep if hasattr(s, "net") and not isinstance(s, Dns)}
    allowed |= {"%s:%d" % s.getsockname() for s in keep if isinstance(s, socket.socket)}
    args = [x for a in sorted(allowed) for x in ("--allow-net", a)] + ["--timeout", 4, "--host_connections", 16, "--dns", [k.net for k in keep if isinstance(k, Dns)][0]]
    env = {"SSL_CERT_FILE": d + "/tls.test.pem"}
    every = [n for n, _, _ in COLUMNS]
    c = Config("all", number_sample_per_shard=1000, caption_col="TEXT", save_additional_columns=every, min_image_size=5, max_image_area=5e5,
               max_aspect_ratio=8.0, verify_hash=["sum256", "sha256"], user_agent_token=TOKEN)
    check_part(c, rows)
    check_run(c, d, rows, part, args, env)
    check_run(Config("other", number_sample_per_shard=333, oom_shard_count=3, save_additional_columns=["score", "id"], image_size=200,
                     resize_mode="keep_ratio", encode_format="png", encode_quality=1, extract_exif=False, compute_hash="md5",
                     verify_hash=["sum5", "md5"], resize_only_if_bigger=True),
              d, rows, part, args, env)
    check_run(Config("plain", number_sample_per_shard=ROWS - 1, caption_col="TEXT", compute_hash=None, encode_format="webp", encode_quality=101,
                     resize_mode="center_crop", image_size=100, disallowed_header_directives=[]), d, rows, part, args, env, as_job=True)
    check_run(Config("raw", number_sample_per_shard=10001, oom_shard_count=1, disable_all_reencoding=True, save_additional_columns=["names"]),
              d, rows, part, args, env)
sys.exit(tap.done())
