#!/usr/bin/python3
"""Aim: every input format of img2dataset is read, one file or many, local and from S3, with the same rows, keys
and types; a damaged or wrong file is one error that names its line, before anything is fetched or written.
Method: the same rows in every format; outputs compared with each other by Python's readers and DuckDB;
hostile files, each cut, spoilt or twisted in one way.
"""
import glob
import gzip
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *
from kit.worker.s3 import Local

tap = Tap()
PHOTO = encode(photo(64, 48, 1), "JPEG")
FORMATS = ("parquet", "csv", "csv.gz", "tsv", "tsv.gz", "json", "json.gz", "jsonl", "jsonl.gz")
COLUMNS = {"url": "VARCHAR", "caption": "VARCHAR", "n": "BIGINT", "score": "DOUBLE", "nsfw": "BOOLEAN"}
MORE = ["--save_additional_columns", "n,score,nsfw"]


def pack(fmt, data):
    data = data if isinstance(data, bytes) else data.encode()
    return gzip.compress(data) if fmt.endswith(".gz") else data


def quoted(v, sep):
    if v is None:
        return ""
    s = {True: "true", False: "false"}[v] if isinstance(v, bool) else str(v)
    return '"%s"' % s.replace('"', '""') if any(c in s for c in (sep, '"', "\n", "\r")) else s


def write(path, fmt, rows, columns=COLUMNS):
    base = fmt.replace(".gz", "")
    if base == "parquet":
        make_parquet(path, rows, columns)
        return path
    if base == "json":
        text = json.dumps(rows)
    elif base == "jsonl":
        text = "".join(json.dumps(r) + "\n" for r in rows)
    elif base == "txt":
        text = "".join(r["url"] + "\n" for r in rows)
    else:
        sep = "," if base == "csv" else "\t"
        text = "\n".join(sep.join(quoted(r.get(c), sep) for c in columns) for r in [{c: c for c in columns}] + rows) + "\n"
    with open(path, "wb") as f:
        f.write(pack(fmt, text))
    return path


def rows_of(server, n, first=0):
    for i in range(first, first + n):
        server.serve("/%d.jpg" % i, PHOTO)
    odd = ['plain', 'comma, and "quotes"', 'tab\tand\nline', 'd\u00e9j\u00e0 vu \U0001f600', '']
    return [{"url": server.url("/%d.jpg" % i), "caption": odd[i % 5], "n": i - 3, "score": i / 8, "nsfw": i % 3 == 0}
            for i in range(first, first + n)]


def go(server, path, out, fmt, *args, env=None, start_only=False):
    a = ["--url_list", path, "--input_format", fmt, "--output_folder", out, "--number_sample_per_shard", 10, "--allow-net",
         server.net, "--processes_count", 1] + list(args)
    return start(a, env=env) if start_only else run(a, env=env)


def metas(out):
    """key -> what the sample's json says, over all shards, without what differs from run to run."""
    found = {}
    for tar in sorted(glob.glob(out + "/*.tar")):
        for key, s in samples(tar).items():
            found[key] = json.loads(s["json"])
            assert (found[key].get("caption") or "") == s.get("txt", b"").decode(), key
    return found


def test_formats(d, server):
    rows = rows_of(server, 25)
    want = schema = None
    for fmt in FORMATS:
        path = write(d + "/rows." + fmt, fmt, rows)
        rc, so, se = go(server, path, d + "/" + fmt, fmt, *MORE)
        got = metas(d + "/" + fmt) if rc == 0 else se
        side = [x for x in parquet_schema(d + "/%s/00000.parquet" % fmt)] if rc == 0 else []
        if want is None:
            want, schema = got, side
            tap.eq([(k, v["caption"], v["n"], v["score"], v["nsfw"]) for k, v in sorted(got.items())],
                   [("%06d" % i, r["caption"], r["n"], r["score"], r["nsfw"]) for i, r in enumerate(rows)], "parquet's rows")
        tap.eq(got, want, "the same rows, keys and members from " + fmt)
        tap.eq(side, schema, "and the same types in the sidecar from " + fmt)
    for fmt in ("txt", "txt.gz"):
        rc, so, se = go(server, write(d + "/rows." + fmt, fmt, rows), d + "/" + fmt, fmt)
        got = metas(d + "/" + fmt) if rc == 0 else se
        tap.eq({k: v["url"] for k, v in got.items()}, {"%06d" % i: r["url"] for i, r in enumerate(rows)},
               "the URLs, without captions, from " + fmt)
    p = json.load(open(d + "/csv/_part.json"))["parts"][0]
    tap.eq((p["settings"]["input_format"], p["source"]["rows"], "files" in p["source"]), ("csv", 25, False), "_part.json has the format")
    rc, so, se = go(server, d + "/rows.tsv", d + "/csv", "tsv", *MORE)
    tap.ok(rc == 65 and "_part.json" in se, "another format's output is another part's", se)


def test_wide_integers(d, url):
    """Beyond 64 bits they are reals, as in a csv; where nobody asks for them they are nothing."""
    rows = [{"url": url, "i": 1, "w": 1 << 64, "text": "{\"18446744073709551616, \\"}, {"url": url, "i": -(1 << 63), "w": -(1 << 70), "text": "99999999999999999999"},
            {"url": url, "i": (1 << 63) - 1, "w": 2, "text": "", "deep": [{"x": [1 << 65, 1e300, -1.5E-3]}]}]
    for fmt, text in (("jsonl", "".join(json.dumps(x) + "\n" for x in rows)), ("json", json.dumps(rows))):
        open(d + "/w." + fmt, "w").write(text)
        rc, so, se = run(["--input_format", fmt, "--parquet", d + "/w." + fmt, "--output", d + "/w1" + fmt, "--allow-net", url[7:].partition("/")[0]])
        tap.ok(rc == 0, "%s: integers beyond 64 bits in columns that nobody asked for" % fmt, se)
        rc, so, se = run(["--input_format", fmt, "--parquet", d + "/w." + fmt, "--output", d + "/w2" + fmt, "--allow-net", url[7:].partition("/")[0],
                          "--save_additional_columns", "i,w,text"])
        got = metas(d + "/w2" + fmt) if rc == 0 else {}
        tap.eq([[got.get("%09d" % i, {}).get(c) for c in ("i", "w", "text")] for i in range(3)], [[r["i"], float(r["w"]), r["text"]] for r in rows],
               "%s: they are reals, all others are as they were %s" % (fmt, se))


def test_types(d, server):
    """What pyarrow's csv reader makes of columns, as far as it is the same for all rows."""
    url = rows_of(server, 3)[0]["url"]
    csv = "url,i,b,f,t,e,z,big\n%s,1,true,1,1,,007,9223372036854775807\n%s,NA,FALSE,2.5,x,NA,8,-1\n%s,-3,,nan,,null,9,1\n" % (url, url, url)
    open(d + "/t.csv", "w").write(csv)
    columns = ["--save_additional_columns", "i,b,f,t,e,z,big"]
    rc, so, se = go(server, d + "/t.csv", d + "/t", "csv", *columns)
    tap.ok(rc == 0, "columns of many types", se)
    tap.eq([t for n, t in parquet_schema(d + "/t/00000.parquet")][:7], ["BIGINT", "BOOLEAN", "DOUBLE", "VARCHAR", "VARCHAR", "BIGINT", "BIGINT"],
           "integer, boolean, real, text, none, integer with zeros before it, the largest")
    got = metas(d + "/t")
    tap.eq([[got["%06d" % i][c] for c in "ibtez"] for i in range(3)],
           [[1, True, "1", "", 7], [None, False, "x", "NA", 8], [-3, None, "", "null", 9]], "their values: null is only in columns that are not text")
    js = [{"url": url, "i": 1, "l": [1, 2], "s": {"a": 1.5, "b": None}, "m": 1}, {"url": url, "l": [], "s": {"a": 2}, "m": 2.5},
          {"url": url, "i": None, "l": None, "s": {"b": "x"}}]
    open(d + "/t.jsonl", "w").write("".join(json.dumps(x) + "\n" for x in js))
    rc, so, se = go(server, d + "/t.jsonl", d + "/tj", "jsonl", "--save_additional_columns", "i,l,s,m")
    tap.ok(rc == 0, "nested json", se)
    if rc == 0:
        tap.eq([t for n, t in parquet_schema(d + "/tj/00000.parquet")][:4], ["BIGINT", "BIGINT[]", "STRUCT(a DOUBLE, b VARCHAR)", "DOUBLE"],
               "lists and objects keep their types")
        got = metas(d + "/tj")
        tap.eq([[got["%06d" % i][c] for c in "ilsm"] for i in range(3)],
               [[1, [1, 2], {"a": 1.5, "b": None}, 1.0], [None, [], {"a": 2, "b": None}, 2.5], [None, None, {"a": None, "b": "x"}, None]], "and their values")
    test_wide_integers(d, url)
    for fmt, text, word in (("jsonl", '{"url":"u","a":1}\n{"url":"u","a":"x"}\n', "line 2: column 'a' is a text, in rows before a number"),
                            ("jsonl", '{"url":5}\n', "'url' is of type BIGINT, not text"),
                            ("jsonl", '{"url":["u"]}\n', "'url' is of type VARCHAR[], not text")):
        open(d + "/x.jsonl", "w").write(text)
        rc, so, se = go(server, d + "/x.jsonl", d + "/x", fmt, *(["--save_additional_columns", "a"] if '"a"' in text else []))
        tap.ok(rc == 65 and word in se, "refused: " + word, se)


OK_CSV = b"url,caption\nhttp://h/1,a\nhttp://h/2,b\n"
HOSTILE = (
    # name, format, bytes, what the error says
    ("empty", "csv", b"", "is empty"),
    ("empty", "txt", b"", "has no rows"),
    ("empty", "jsonl", b"\n\n", "has no rows"),
    ("empty", "json", b" ", "is empty"),
    ("an empty list", "json", b"[]", "has no rows"),
    ("NUL", "csv", b"url,caption\nhttp://h/1,a\0b\n", "line 2: column 'caption' has a NUL byte"),
    ("NUL", "txt", b"http://h/1\nhttp://h/\0\n", "line 2: column 'url' has a NUL byte"),
    ("NUL", "jsonl", b'{"url":"u"}\n{"url":"\\u0000"}\n', "line 2: "),
    ("latin-1", "tsv", b"url\tcaption\nhttp://h/1\t\xe9t\xe9\n", "line 2: column 'caption' is not UTF-8"),
    ("latin-1", "jsonl", b'{"url":"\xe9"}\n', "line 1: "),
    ("UTF-16", "csv", OK_CSV.decode().encode("utf-16"), "is UTF-16"),
    ("a quote that is not closed", "csv", b'url,caption\nhttp://h/1,a\nhttp://h/2,"b\nhttp://h/3,c\n', "line 3: a quote is not closed"),
    ("a quote that is not closed, 40 MB", "csv", b'url,caption\nhttp://h/1,"' + b"x,y\n" * 10_000_000, "line 2: a row of more than 16 MiB"),
    ("text after a quote", "csv", b'url,caption\nhttp://h/1,"a" b\n', "line 2: text after a closing quote"),
    ("too many fields", "csv", OK_CSV + b"http://h/3,a,b\n", "line 4: 3 fields, expected 2"),
    ("too few fields", "csv", OK_CSV + b"http://h/3\n", "line 4: 1 fields, expected 2"),
    ("too few fields after lines in quotes", "csv", b'url,caption\r\nh,"a\r\nb"\r\nh\r\n', "line 4: 1 fields, expected 2"),
    ("a line of 17 MB", "jsonl", b'{"url":"' + b"x" * (17 << 20) + b'"}\n', "line 1: a row of more than 16 MiB"),
    ("two columns of one name", "csv", b"url,caption,url\na,b,c\n", "two columns of one name: 'url' (columns 1 and 3)"),
    ("two keys of one name", "jsonl", b'{"url":"a","url":"b"}\n', "line 1: "),
    ("no url column", "csv", b"link,caption\na,b\n", "no column 'url' or 'URL' (set url_col); its columns: link, caption"),
    ("no url key", "jsonl", b'{"link":"a"}\n', "no column 'url' or 'URL' (set url_col); its columns: link"),
    ("a gzip called csv", "csv", gzip.compress(OK_CSV), "is a gzip file: its input_format ends with .gz"),
    ("no gzip", "csv.gz", OK_CSV, "not a gzip file"),
    ("a cut gzip", "csv.gz", gzip.compress(OK_CSV * 9000)[:-9], "truncated gzip"),
    ("a spoilt checksum", "txt.gz", gzip.compress(b"http://h/1\n" * 99)[:-6] + b"xx0000", "gzip"),
    ("text after a gzip", "txt.gz", gzip.compress(b"http://h/1\n" * 99) + b"more", "gzip"),
    ("a cut line", "jsonl", b'{"url":"a"}\n{"url":"b"', "line 2: "),
    ("no object", "jsonl", b'{"url":"a"}\n5\n', "line 2: "),
    ("a cut list", "json", b'[{"url":"a"},\n{"url":"b"},', "line 2: the list is not closed: truncated?"),
    ("a cut object", "json", b'[{"url":"a"},\n{"url":"b', "line 2: the file ends within this object"),
    ("text after the list", "json", b'[{"url":"a"}]\nx', "line 2: text after the list"),
    ("columns instead of rows", "json", b'{"url":{"0":"a"}}', "orient='records'"),
    ("lists instead of objects", "json", b'[["a"]]', "an object expected"),
    ("too deep", "jsonl", b'{"url":"a","x":' + b"[" * 5000 + b"]" * 5000 + b"}\n", "line 1: "),
    ("parquet called csv", "csv", None, ".csv', line "),
    ("csv called parquet", "parquet", OK_CSV + OK_CSV, "no PAR1 at its start; --input_format takes csv"),
)


def test_hostile(d, server):
    make_parquet(d + "/real.parquet", [{"url": "u"}] * 50, {"url": "VARCHAR"})
    for i, (name, fmt, data, word) in enumerate(HOSTILE):
        path = d + "/hostile%d.%s" % (i, fmt)
        with open(path, "wb") as f:
            f.write(open(d + "/real.parquet", "rb").read() if data is None else data)
        rc, so, se = go(server, path, d + "/hostile", fmt)
        faults = [x for x in se.splitlines() if "level=error" in x or '"level":"error"' in x]
        tap.ok(rc == 65 and len(faults) == 1 and word in se.replace('\\"', '"') and len(se) < 3000 and not os.listdir(d + "/hostile"),
               "refused with one error, nothing written: %s, %s" % (fmt, name), "%d %s" % (rc, se[-900:]))
        os.unlink(path)


def test_kind(d, server):
    """Odd but right: all of it is read."""
    a = [r["url"] for r in rows_of(server, 4)]
    long = "w" * (1 << 20)
    for name, fmt, data, want in (
            ("a mark and \\r\\n", "csv", "\ufeffurl,caption\r\n%s,a\r\n\r\n%s,\"b\r\nc\"\r\n" % (a[0], a[1]), ["a", "b\r\nc"]),
            ("\\r alone", "tsv", "url\tcaption\r%s\ta\r%s\tb" % (a[0], a[1]), ["a", "b"]),
            ("a mark, empty lines, no end", "txt", "\ufeff%s\r\n\n%s" % (a[0], a[1]), [None, None]),
            ("quotes within a field", "csv", 'url,caption\n%s,a "b" c\n' % a[0], ['a "b" c']),
            ("lines of 1 MB", "csv", "url,caption\n%s,%s\n%s,x\n" % (a[0], long, a[1]), [long, "x"]),
            ("a header of an index", "csv", ",url,caption\n0,%s,a\n" % a[0], ["a"]),
            ("URL and TEXT", "jsonl", '{"URL":"%s","TEXT":"t"}\n' % a[0], ["t"]),
            ("captions that are no text", "jsonl", '{"url":"%s","caption":5}\n{"url":"%s","caption":7}\n' % (a[0], a[1]), ["5", "7"]),
            ("a list over lines", "json", '\n[ {"url":"%s","caption":"]"} \n,\n {"url":"%s","caption":"}\\""}\n]\n' % (a[0], a[1]), ["]", '}"']),
            ("two gzips in one", "csv.gz", gzip.compress(("url,caption\n%s,a\n" % a[0]).encode()) + gzip.compress(("%s,b\n" % a[1]).encode()), ["a", "b"])):
        path = d + "/kind." + fmt
        open(path, "wb").write(data if isinstance(data, bytes) else pack(fmt, data))
        out = d + "/kind-" + str(abs(hash(name)))
        rc, so, se = go(server, path, out, fmt)
        got = [m.get("caption") for k, m in sorted(metas(out).items())] if rc == 0 else se[-900:]
        tap.ok(got == want, "read: %s, %s" % (fmt, name), str(got)[:900])
    open(d + "/head.csv", "w").write("url,caption\n")
    rc, so, se = go(server, d + "/head.csv", d + "/head", "csv")
    tap.ok(rc == 0 and load(d + "/head", "_manifest.json")["rows_in"] == 0, "a header alone is a part without rows", se)


def several(d, server, fmt, sizes=(12, 3, 20)):
    folder, first, want = d + "/many-" + fmt, 0, {}
    os.makedirs(folder)
    shard = 0
    for k, n in enumerate(sizes):
        rows = rows_of(server, n, first)
        write("%s/f%d.%s" % (folder, k, fmt), fmt, rows)
        want.update({"%05d%d" % (shard + i // 10, i % 10): r["url"] for i, r in enumerate(rows)})
        shard, first = shard + (n + 9) // 10, first + n
    open(folder + "/notes.md", "w").write("no input")
    open(folder + "/.f9." + fmt, "w").write("no input")
    return folder, want


def urls(out):
    return {k: m["url"] for k, m in metas(out).items()}


def test_several(d, server, local):
    for fmt in ("parquet", "csv.gz", "jsonl"):
        folder, want = several(d, server, fmt)
        rc, so, se = go(server, folder, d + "/all-" + fmt, fmt)
        tap.eq((rc, urls(d + "/all-" + fmt) if rc == 0 else se[-900:]), (0, want), "a folder of %s: each file begins a shard" % fmt)
        source = json.load(open(d + "/all-%s/_part.json" % fmt))["parts"][0]["source"]
        tap.eq([(f["name"], f["rows"]) for f in source["files"]], [("f%d.%s" % (i, fmt), n) for i, n in enumerate((12, 3, 20))],
               "_part.json names all files")
        tap.eq([load(d + "/all-" + fmt, "%05d_stats.json" % i)["count"] for i in range(5)], [10, 2, 3, 10, 10], "stats of short shards")
        server.hits.clear()
        for f in ("_manifest.json", "00001_stats.json", "00003.tar"):
            os.unlink(d + "/all-%s/%s" % (fmt, f))
        rc, so, se = go(server, folder, d + "/all-" + fmt, fmt)
        tap.eq((rc, sum(server.hits.values()), urls(d + "/all-" + fmt)), (0, 12, want), "resumed: only what was missing is fetched")
    rc, so, se = go(server, folder + "/f[02].jsonl", d + "/glob", "jsonl")
    tap.eq((rc, len(urls(d + "/glob")), load(d + "/glob", "_manifest.json")["rows_in"]), (0, 32, 32), "a pattern takes what it matches")
    os.rename(folder + "/f1.jsonl", folder + "/g1.jsonl")
    rc, so, se = go(server, folder, d + "/all-jsonl", "jsonl")
    tap.ok(rc == 65 and "another part" in se and "f1.jsonl" in se, "other files of the same folder are another part", se)
    os.rename(folder + "/g1.jsonl", folder + "/f1.jsonl")
    rc, so, se = go(server, d + "/rows.csv", d + "/all-jsonl", "csv", "--incremental_mode", "extend")
    tap.ok(rc == 65 and "input_format" in se, "extending by another format is refused", se)
    rc, so, se = go(server, folder, d + "/all-jsonl", "jsonl", "--incremental_mode", "extend")
    parts = json.load(open(d + "/all-jsonl/_part.json"))["parts"]
    tap.eq((rc, [p["first_shard"] for p in parts], len(urls(d + "/all-jsonl"))), (0, [0, 5], 70), "extended by a folder")
    rc, so, se = go(server, folder, d + "/all-jsonl", "jsonl", "--incremental_mode", "overwrite")
    tap.eq((rc, urls(d + "/all-jsonl")), (0, want), "and overwritten")
    empty = d + "/nothing"
    os.makedirs(empty)
    rc, so, se = go(server, empty, d + "/none", "tsv")
    tap.ok(rc == 65 and "no file that ends with .tsv" in se, "a folder without such files", se)
    write(folder + "/f3.jsonl", "jsonl", [{"url": "u", "caption": "c"}, {"url": "u", "caption": 3}])
    rc, so, se = go(server, folder, d + "/none", "jsonl")
    tap.ok(rc == 65 and "f3.jsonl', line 2: column 'caption'" in se, "a fault in the last file is found before the first is fetched", se)
    # Parquet beside its own output.
    own = d + "/own"
    os.makedirs(own)
    write(own + "/part.parquet", "parquet", rows_of(server, 15))
    for again in range(2):
        rc, so, se = go(server, own, own, "parquet")
        tap.ok(rc == 0 and load(own, "_manifest.json")["rows_in"] == 15, "its own sidecars are never read as input", se)
    # Types that differ from file to file.
    mixed = d + "/mixed"
    os.makedirs(mixed)
    u = server.url("/0.jpg")
    for i, v in enumerate(("1", "", "2.5")):
        open(mixed + "/%d.csv" % i, "w").write("url,v,w\n%s,%s,%s\n" % (u, v, "x" if i == 2 else i))
    rc, so, se = go(server, mixed, d + "/mixed-out", "csv", "--save_additional_columns", "v,w")
    got = metas(d + "/mixed-out") if rc == 0 else {}
    tap.eq((rc, [(m["v"], m["w"]) for k, m in sorted(got.items())], [t for n, t in parquet_schema(d + "/mixed-out/00001.parquet")][:2]),
           (0, [(1.0, "0"), (None, "1"), (2.5, "x")], ["DOUBLE", "VARCHAR"]), "a column is of a type that fits all files")
    for a, b, word in (("INTEGER", "BIGINT", None), ("INTEGER", "VARCHAR", "is of type VARCHAR, in the files before it INTEGER")):
        pair = d + "/pair" + b
        os.makedirs(pair)
        make_parquet(pair + "/a.parquet", [{"url": u, "v": 1}], {"url": "VARCHAR", "v": a})
        make_parquet(pair + "/b.parquet", [{"url": u, "v": 2}], {"url": "VARCHAR", "v": b})
        rc, so, se = go(server, pair, pair + "-out", "parquet", "--save_additional_columns", "v")
        tap.ok(rc == 65 and word in se if word else rc == 0, "files with %s and %s" % (a, b), se)
    test_several_s3(d, server, local)


def test_several_s3(d, server, local):
    env = local.env(TMPDIR=d + "/tmp")
    os.makedirs(d + "/tmp")
    folder, want = several(d, server, "tsv.gz")
    for f in os.listdir(folder):
        local.put("data/in/" + f, open(os.path.join(folder, f), "rb").read())
    for where, n in (("s3://data/in/", 35), ("s3://data/in", 35), ("s3://data/in/f[02]*", 32), ("s3://data/in/f1.tsv.gz", 3)):
        out = "s3://data/out%d" % abs(hash(where))
        rc, so, se = go(server, where, out, "tsv.gz", env=env)
        got = urls(local.folder(out[5:])) if rc == 0 else se[-900:]
        tap.ok(rc == 0 and (got == want if n == 35 else len(got) == n), "from S3: " + where, str(got)[:900])
    tap.eq(os.listdir(d + "/tmp"), [], "what was fetched is removed")
    rc, so, se = go(server, "s3://data/nowhere/", d + "/none", "tsv", env=env)
    tap.ok(rc == 65 and "no file that ends with .tsv" in se, "an empty prefix", se)
    rc, so, se = go(server, "s3://data/no.tsv", d + "/none", "tsv", env=env)
    tap.ok(rc == 65 and "no.tsv" in se, "an object that is not there", se)
    write(d + "/own/part2.parquet", "parquet", rows_of(server, 5))
    local.put("data/own/a.parquet", open(d + "/own/part2.parquet", "rb").read())
    for again in range(2):
        rc, so, se = go(server, "s3://data/own/", "s3://data/own", "parquet", env=env)
        tap.ok(rc == 0 and load(local.folder("data/own"), "_manifest.json")["rows_in"] == 5, "in S3 its own sidecars are never read either", se)


def test_memory(d, server):
    """A large json: checked, read and kept in bounded memory; stopped before a row was fetched."""
    path, n = d + "/large.json", 300_000
    with open(path, "w") as f:
        f.write("[" + ",\n".join('{"url":"http://127.0.0.1:9/%d","caption":"%s"}' % (i, "c" * 200) for i in range(n)) + "]")
    gate = threading.Event()

    def held(h):
        gate.wait(60)
        h.answer(200, {}, PHOTO)
    server.routes["/held"] = held
    with open(path, "r+") as f:
        f.write('[{"url":"%s"},' % server.url("/held"))
        f.write(" " * (len('{"url":"http://127.0.0.1:9/0","caption":"%s"},' % ("c" * 200)) - f.tell() + 1))
    p = go(server, path, d + "/large", "json", start_only=True)
    tap.ok(wait_for(lambda: server.hits["/held"] > 0, 120), "%d MB of json are being read" % (os.path.getsize(path) >> 20))
    peak = int([x for x in open("/proc/%d/status" % p.pid) if x.startswith("VmHWM")][0].split()[1]) >> 10
    p.send_signal(signal.SIGKILL)
    p.communicate()
    gate.set()
    tap.ok(peak < 200 or VARIANT != "release", "in %d MB of memory" % peak)  # a sanitizer keeps freed memory


CASES = {"formats": test_formats, "types": test_types, "hostile": test_hostile, "kind": test_kind, "several": test_several,
         "memory": test_memory}
with Folder() as d:
    server = Server()
    local = Local(d)
    os.makedirs(d + "/hostile")
    try:
        for name in sys.argv[1:] or CASES:
            CASES[name](d, server, *([local] if name == "several" else []))
    finally:
        local.stop()
sys.exit(tap.done())
