#!/usr/bin/python3
"""Aim: the same rows are read from a part whichever program wrote it, and a broken part is refused with one
clear error. Method: one set of rows (nulls, sizes as float64, long and non-ASCII text) written by DuckDB,
hyparquet-writer, parquetjs and parquet-wasm with v1 and v2 pages, dictionaries, delta encodings, snappy,
zstd, gzip and none; every URL is forbidden to the worker, so that a run is only reading and the sidecar.
Then damaged files. EVERY=2: only every second dialect is read.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import wanted
from kit.worker import *

tap = Tap()
serial = iter(range(10 ** 6))
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(TOP, "build", "e2e", "package.json")
EXTRA = ["SAMPLE_ID", "HEIGHT", "WIDTH", "NSFW", "similarity"]
SQL_TYPES = {"SAMPLE_ID": "BIGINT", "URL": "VARCHAR", "TEXT": "VARCHAR", "HEIGHT": "DOUBLE", "WIDTH": "INTEGER",
             "NSFW": "VARCHAR", "similarity": "DOUBLE"}


def make_rows(n):
    texts = ["plain", "caf\u00e9 \U0001f600", "", None, "x" * 5000, 'quote " and \\ back', "tab\tand\nline"]
    return [{"SAMPLE_ID": None if i % 97 == 5 else i * 1000003 - 2 ** 40,
             "URL": None if i % 211 == 7 else "http://10.0.0.%d/%d?caf\u00e9=%s" % (i % 250, i, "y" * (i % 60)),
             "TEXT": texts[i % len(texts)],
             "HEIGHT": None if i % 5 == 0 else float(i % 1900 + 1),
             "WIDTH": None if i % 7 == 0 else i % 2100 + 1,
             "NSFW": ("UNLIKELY", "UNSURE", "NSFW", None)[i % 4],
             "similarity": None if i % 11 == 0 else i / 7.0} for i in range(n)]


def rows_of(out):
    """The sidecars' types of the input's columns, in order."""
    names = sorted(f for f in os.listdir(out) if f.endswith(".parquet"))
    return [{k: r[v] for k, v in zip(["SAMPLE_ID", "URL", "TEXT", "HEIGHT", "WIDTH", "NSFW", "similarity"],
                                     ["SAMPLE_ID", "url", "caption", "HEIGHT", "WIDTH", "NSFW", "similarity"])}
            for f in names for r in read_parquet(os.path.join(out, f))]


def download(d, part, *args):
    out = os.path.join(d, "out%d-%s" % (next(serial), os.path.basename(part)))
    rc, so, se = run(["--parquet", part, "--output", out, "--number_sample_per_shard", "1000"] + list(args))
    return rc, out, se


def test_writers(d):
    rows = make_rows(3000)
    with open(d + "/rows.json", "w") as f:
        json.dump(rows, f)
    make_parquet(d + "/plain.parquet", rows, SQL_TYPES)
    names = ["plain"]
    for name, options in (("duck_zstd_v2", "COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE 2048"),
                          ("duck_gzip", "COMPRESSION gzip"), ("duck_none", "COMPRESSION uncompressed"),
                          ("duck_no_dictionary", "COMPRESSION snappy, DICTIONARY_SIZE_LIMIT 1"),
                          ("duck_lz4", "COMPRESSION lz4_raw")):
        sql("COPY (SELECT * FROM '%s/plain.parquet') TO '%s/%s.parquet' (FORMAT parquet, %s)" % (d, d, name, options))
        names.append(name)
    p = subprocess.run(["node", os.path.join(HERE, "parquet_writers.mjs"), d], capture_output=True, text=True,
                       env=dict(os.environ, PACKAGES=PACKAGES))
    if not tap.ok(p.returncode == 0, "three more writers write", p.stdout + p.stderr):
        return
    names += p.stdout.split()
    tap.eq(len(names), 19, "nineteen dialects")
    for name in names[::int(os.environ.get("EVERY", "1"))]:
        rc, out, se = download(d, "%s/%s.parquet" % (d, name), "--save_additional_columns", ",".join(EXTRA))
        got = rows_of(out) if rc == 0 else []
        wrong = [(a, b) for a, b in zip(got, rows) if a != b][:2]
        tap.ok(rc == 0 and len(got) == 3000 and not wrong, "the same 3000 rows: %s" % name,
               "%d %s %d rows %r" % (rc, se, len(got), wrong))


def test_joined(d):
    """The columns of laion2B-en-joined: no SAMPLE_ID, hash and two floats more."""
    rows = [{"URL": "http://10.0.0.1/%d" % i, "TEXT": "t%d" % i, "WIDTH": i, "HEIGHT": i + 1, "similarity": i / 3.0,
             "hash": i * 10 ** 15, "punsafe": 0.5, "pwatermark": 0.25} for i in range(100)]
    make_parquet(d + "/joined.parquet", rows, {
        "URL": "VARCHAR", "TEXT": "VARCHAR", "WIDTH": "INTEGER", "HEIGHT": "INTEGER", "similarity": "DOUBLE",
        "hash": "BIGINT", "punsafe": "FLOAT", "pwatermark": "FLOAT"})
    extra = ["WIDTH", "HEIGHT", "similarity", "hash", "punsafe", "pwatermark"]
    rc, out, se = download(d, d + "/joined.parquet", "--save_additional_columns", ",".join(extra))
    got = read_parquet(out + "/00000.parquet") if rc == 0 else []
    tap.eq([[r[k] for k in extra] for r in got], [[r[k] for k in extra] for r in rows], "the joined schema's columns")
    rc, out, se = download(d, d + "/joined.parquet", "--save_additional_columns", "SAMPLE_ID,NSFW")
    tap.ok(rc != 0 and "no column 'SAMPLE_ID'" in se and "URL, TEXT, WIDTH, HEIGHT, similarity, hash, punsafe, pwatermark"
           in se, "a column that is missing is named with those there are", se)


def test_names_of_one_case(d):
    """Names that differ in case only are different columns, as in every reader but DuckDB; nested ones are none."""
    types = {"URL": "VARCHAR", "Status": "VARCHAR", "nested": "STRUCT(url VARCHAR, a STRUCT(b INTEGER)[])", "TEXT": "VARCHAR",
             "link": "VARCHAR", "words": "VARCHAR"}
    rows = [{"URL": "http://127.0.0.1:1/%d" % i, "Status": "s%d" % i, "nested": {"url": "n", "a": [{"b": i}]}, "TEXT": "t%d" % i,
             "link": "http://127.0.0.2:1/%d" % i, "words": "w%d" % i} for i in range(20)]
    folder = d + "/year=2020"  # no column, whatever it looks like
    os.makedirs(folder)
    make_parquet(folder + "/x.parquet", rows, types)
    data = open(folder + "/x.parquet", "rb").read()
    for a, b in ((b"link", b"url\0"), (b"words", b"text\0")):
        at = data.index(b"\x18" + bytes([len(a)]) + a, footer_at(data))  # thrift: a text, its length
        data = data[:at + 1] + bytes([len(a) - 1]) + b[:-1] + data[at + 2 + len(a):]
        data = data[:-8] + (int.from_bytes(data[-8:-4], "little") - 1).to_bytes(4, "little") + data[-4:]
    with open(folder + "/case.parquet", "wb") as f:
        f.write(data)
    for col, net in (("URL", 1), ("url", 2)):
        rc, out, se = download(d, folder + "/case.parquet", "--url_col", col, "--caption_col", "text", "--number_sample_per_shard", "10",
                               "--save_additional_columns", "Status,nested")
        got = read_parquet(out + "/00000.parquet") if rc == 0 else []
        tap.eq([(r["url"], r["caption"], r["Status"], r["nested"]) for r in got],
               [("http://127.0.0.%d:1/%d" % (net, i), "w%d" % i, "s%d" % i, rows[i]["nested"]) for i in range(10)],
               "url_col %s of a file with URL and url is that column, and its caption text is not TEXT" % col)
        tap.ok(rc == 0, "the run ends well", se)
    # A failure that another pass asks for again; rows whose turn comes after it do not wait a minute for the host.
    refused = ["--allow-net", "127.0.0.2:1", "--retries", "0", "--host_patience", "1"]
    rc, out, se = download(d, folder + "/case.parquet", "--save_additional_columns", "Status", "--number_sample_per_shard", "10", *refused)
    first = [(r["url"], r["caption"], r["Status"], r["status_1"]) for n in ("0", "1") for r in read_parquet(out + "/0000%s.parquet" % n)] if rc == 0 else []
    tap.eq(first, [(rows[i]["link"], rows[i]["TEXT"], "s%d" % i, "failed_to_download") for i in range(20)], "by default it is url, and TEXT")
    rc, again, se = download(d, out, "--retry_failed", "--save_additional_columns", "Status", "--number_sample_per_shard", "20", *refused)
    second = [(r["url"], r["caption"], r["Status"], r["status_1"]) for r in read_parquet(again + "/00000.parquet")] if rc == 0 else []
    tap.eq((len(second), second), (20, first), "a second pass over an output with Status and status reads the same rows")
    tap.ok(rc == 0, "and ends well", se)


def patched(d, name, fn):
    data = bytearray(open(d + "/plain.parquet", "rb").read())
    data = fn(data)
    path = "%s/%s.parquet" % (d, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def footer_at(data):
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def lie_about_rows(data):
    """The file's row count, a zigzag varint of 3000 in the footer: 6000 = f0 2e; said to be 2999 (ee 2e)."""
    at = footer_at(data)
    i = data.index(b"\xf0\x2e", at)
    data[i:i + 2] = b"\xee\x2e"
    return data


def test_damage(d):
    if not os.path.exists(d + "/plain.parquet"):
        return

    def cut(data):
        return data[:len(data) // 2]

    def no_footer(data):
        at = footer_at(data)
        data[at:-8] = b"\xff" * (len(data) - 8 - at)
        return data

    def long_footer(data):
        data[-8:-4] = (len(data) * 2).to_bytes(4, "little")
        return data

    def pages(data):
        data[4:footer_at(data)] = b"\xa5" * (footer_at(data) - 4)
        return data
    cases = {"cut": cut, "nofooter": no_footer, "longfooter": long_footer, "pages": pages, "lying": lie_about_rows,
             "empty": lambda x: b"", "text": lambda x: b"URL,TEXT\n" * 100}
    said = {"cut": "no PAR1 at its end", "nofooter": "parquet", "longfooter": "damaged parquet footer",
            "lying": "2999 rows for the file, 3000 in its row groups", "empty": "only 0 bytes", "text": "no PAR1"}
    for name, fn in cases.items():
        path = patched(d, name, fn)
        rc, out, se = download(d, path)
        errors = [x for x in se.splitlines() if '"level":"error"' in x]
        tap.ok(rc == 65, "a damaged part is bad input: %s" % name, "%d %s" % (rc, se))
        tap.ok(len(errors) == 1 and name + ".parquet" in errors[0], "with one error that names it: %s" % name, se)
        tap.ok(said.get(name, "") in se, "and says what is wrong: %s" % said.get(name), se)
        tap.ok("_manifest.json" not in os.listdir(out) if os.path.isdir(out) else True, "and no manifest: %s" % name)


def test_late_damage(d):
    """What only the pages tell is known before the first URL is asked for, also at the end of the last file."""
    server = Server()
    rows = [{"URL": server.serve("/%d" % i, b"no picture"), "TEXT": "words of %05d" % i} for i in range(9000)]
    for name in ("a", "b"):
        make_parquet(d + "/made.parquet", rows, {"URL": "VARCHAR", "TEXT": "VARCHAR"})
        os.makedirs(d + "/late", exist_ok=True)
        sql("COPY (SELECT * FROM '%s/made.parquet') TO '%s/late/%s.parquet' (FORMAT parquet, COMPRESSION uncompressed, ROW_GROUP_SIZE 2048, "
            "DICTIONARY_SIZE_LIMIT 1)" % (d, d, name))
    with open(d + "/late/b.parquet", "rb") as f:
        data = f.read()
    with open(d + "/late/b.parquet", "wb") as f:
        f.write(data.replace(b"words of 08999", b"\xe9ords of 08999", 1))
    for what in ("late/b.parquet", "late"):
        rc, out, se = download(d, d + "/" + what, "--allow-net", server.net)
        tap.ok(rc == 65 and "b.parquet" in se and "not valid UTF8" in se, "a text that is not UTF-8 in the last row: %s" % what, (rc, se))
        tap.ok(not server.hits and not os.listdir(out), "no URL was asked for, nothing written", (len(server.hits), os.listdir(out)))


def test_wide_rows(d):
    """Rows whose texts are more than DuckDB's memory holds at once."""
    part = d + "/wide.parquet"
    sql("COPY (SELECT 'http://127.0.0.1:1/' || i AS url, repeat(chr(97 + (i % 26)::INT), 1000000) || i AS wide FROM range(200) t(i)) "
        "TO '" + part + "' (FORMAT parquet)")
    want = sql("SELECT url, md5(wide) FROM '%s' ORDER BY url" % part)
    for fmt in ("webdataset", "parquet"):
        out = d + "/wide-" + fmt
        rc, so, se = run(["--parquet", part, "--output", out, "--output_format", fmt, "--number_sample_per_shard", 200, "--save_additional_columns", "wide"])
        got = sql("SELECT url, md5(wide) FROM '%s/00000.parquet' ORDER BY url" % out) if rc == 0 else []
        tap.ok(rc == 0 and got == want, "%s: 200 rows of 1 MB of text are written, in groups" % fmt, "%d %s" % (rc, se))
        keys = sql("SELECT key FROM '%s/00000.parquet'" % out) if rc == 0 else []
        tap.eq(keys, ["%08d" % i for i in range(200)], "%s: in their order" % fmt)
        tap.eq(load(out, "_manifest.json")["bytes"] if rc == 0 else 0,
               sum(os.path.getsize(os.path.join(out, n)) for n in os.listdir(out) if n[0] == "0"), "%s: the manifest has their sizes" % fmt)


with Folder() as d:
    for f in (test_writers, test_joined, test_names_of_one_case, test_damage, test_late_damage, test_wide_rows):
        if wanted(f.__name__):
            f(d)
sys.exit(tap.done())
