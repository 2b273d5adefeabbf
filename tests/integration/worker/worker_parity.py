#!/usr/bin/python3
"""Aim: the output of a part follows img2dataset's rules, row by row, whatever the web servers do: statuses,
texts, counts, keys, members, json, sidecar. No row vanishes. Method: 1,200 rows (ROWS=3000: more) with every possible
outcome, from real web servers, TLS servers and a DNS server; the expected output is computed from what
each URL was set up to do, never from the actual output. Where a text is Python's, Python's own urllib
provides it. Four runs with different settings over the same rows.
"""
import collections
import hashlib
import math
import os
import random
import re
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import cv2
from kit.worker import *
from kit.worker.pixels import INTERPOLATION, decoded, opened, resized
from kit.worker.web import Raw, certificate, deaf, shut_port

tap = Tap()
cv2.setNumThreads(1)
ROWS = int(os.environ.get("ROWS", "1200"))
TOKEN = "mybot"
DIRECTIVES = ("noai", "noimageai", "noindex", "noimageindex")
DOWNLOAD, RESIZE = "failed_to_download", "failed_to_resize"
UNDECODED = "Image decoding error"
FOREIGN = ("svg", "svg with a prolog", "bmp")


class Fate:
    """What a URL is set up to do. text: why it cannot be fetched; else a body, with the size of its picture
    (None: no picture) and its X-Robots-Tag lines.
    """

    def __init__(self, url, text=None, body=b"", size=None, tags=(), pythons=False, foreign=False):
        self.url, self.text, self.body, self.size, self.tags = url, text, body, size, tags
        self.pythons, self.foreign = pythons, foreign


def encoded(px, fmt, mode=None, **kw):
    im = Image.fromarray(px)
    b = io.BytesIO()
    (im.convert(mode) if mode else im).save(b, fmt, **kw)
    return b.getvalue()


def pictures():
    """name -> (bytes, size)"""
    a, b = photo(300, 200, 1), photo(150, 310, 2)
    alpha = np.dstack([photo(90, 120, 3), photo(90, 120, 4, 1)[:, :, 0]])
    exif = Image.Exif()
    exif[0x010F] = "Maker"
    exif[0x0112] = 6
    jpeg = encoded(a, "JPEG", quality=90)
    return {
        "jpeg": (jpeg, (300, 200)), "tall": (encoded(b, "JPEG"), (150, 310)),
        "progressive": (encoded(a, "JPEG", progressive=True), (300, 200)),
        "grey": (encoded(a, "JPEG", "L"), (300, 200)), "cmyk": (encoded(b, "JPEG", "CMYK"), (150, 310)),
        "odd": (encoded(photo(257, 255, 5), "JPEG", subsampling=1), (257, 255)),
        "exif": (encoded(a, "JPEG", exif=exif.tobytes()), (300, 200)),
        "truncated": (jpeg[:len(jpeg) * 2 // 3], (300, 200)),
        "png": (encoded(b, "PNG"), (150, 310)), "rgba": (encoded(alpha, "PNG"), (90, 120)),
        "palette": (encoded(a, "PNG", "P"), (300, 200)), "png-grey": (encoded(a, "PNG", "L"), (300, 200)),
        "webp": (encoded(a, "WEBP", quality=90), (300, 200)), "webp-rgba": (encoded(alpha, "WEBP", lossless=True), (90, 120)),
        "one-png": (encoded(a[:1, :1], "PNG"), (1, 1)), "one-jpeg": (encoded(a[:1, :1], "JPEG"), (1, 1)),
        "thin": (encoded(photo(400, 20, 6), "JPEG"), (400, 20)), "large": (encoded(photo(1000, 700, 7), "JPEG"), (1000, 700)),
        "small": (encoded(photo(9, 11, 8), "PNG"), (9, 11)), "filling": (encoded(photo(256, 256, 9), "JPEG"), (256, 256)),
        # Sides that come out half way between two numbers when halved.
        "half-to-even": (encoded(photo(401, 400, 10), "JPEG"), (401, 400)), "half-up": (encoded(photo(403, 400, 12), "PNG"), (403, 400)),
    }


def no_pictures():
    """name -> bytes"""
    a = photo(60, 40, 11)
    jpeg, png = encoded(a, "JPEG"), encoded(a, "PNG")
    return {
        "html": b"<html><body>Not here any more</body></html>", "gif": encoded(a, "GIF", "P")[:400],
        "svg with a prolog": b"\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- drawn -->\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
        "page with svg": b"<!DOCTYPE html><html><body><svg xmlns=\"http://www.w3.org/2000/svg\"/></body></html>",
        "svg": b"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"/>",
        "tiff": encoded(a, "TIFF")[:400], "bmp": encoded(a, "BMP"),
        "avif": b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf" + bytes(range(200)), "empty": b"",
        "text": "caf\u00e9".encode(), "zeros": b"\0" * 5000, "noise": random.Random(5).randbytes(3000),
        "start of jpeg": jpeg[:3], "header of jpeg": jpeg[:20], "start of png": png[:8], "half a png": png[:len(png) // 2],
    }


def robots_forbid(line, token):
    """The rule of A5: split once at the first colon; right a list of words, left the user agent."""
    left, colon, right = line.partition(":")
    if colon and left.lower() != token:
        return False
    return any(w.strip().lower() in DIRECTIVES for w in (right if colon else line).split(","))


ROBOTS = [["noai"], ["NoIndex"], ["foo , noimageindex"], ["all", "noimageai"], [TOKEN + ": noai"], [TOKEN.upper() + ":x,noindex"],
          ["other: noai"], ["all"], ["nofollow, noarchive"], [""], ["other: noai, noindex", "max-image-preview: large"],
          ["foo:noai:bar"], ["unavailable_after: 25 Jun 2010 15:00:00 PST"], ["noaindex"], ["other:noai", "noai"]]


def fill_web(d, fates):
    """Start the servers; fates: kind -> Fates of it. Returns the objects to keep alive."""
    web = Server("127.0.0.1")
    body = pictures()
    for name, (data, size) in body.items():
        fates[name].append(Fate(web.serve("/p/%s.jpg" % name, data), body=data, size=size))
    for name, data in no_pictures().items():
        fates[name].append(Fate(web.serve("/n/%s" % name.replace(" ", "-"), data), body=data, foreign=name in FOREIGN))
    add_answers(web, fates, *body["jpeg"])
    add_errors(web, fates)
    add_urls(web, fates, *body["png"])
    keep = [web] + add_wires(d, fates, *body["tall"]) + add_names(web, fates, *body["jpeg"])
    return web, keep


def add_answers(web, fates, data, size):
    """Ways to answer with a picture, and bytes before it."""
    for i, tags in enumerate(ROBOTS):
        fates["x-robots %s" % tags].append(Fate(web.serve("/r/%d" % i, data, headers=[("X-Robots-Tag", t) for t in tags]),
                                                body=data, size=size, tags=tags))
    for code in (301, 302, 303, 307, 308):
        web.routes["/m/%d" % code] = (code, {"Location": "/p/jpeg.jpg"}, b"moved")
        fates["redirect"].append(Fate(web.url("/m/%d" % code), body=data, size=size))
    for code in (201, 203, 206, 299):
        fates["2xx"].append(Fate(web.serve("/c/%d" % code, data, status=code), body=data, size=size))
    web.routes["/c/204"] = lambda h: (h.send_response(204), h.end_headers())
    fates["no content"].append(Fate(web.url("/c/204")))

    def chunked(h):
        h.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(0, len(data), 4096):
            piece = data[i:i + 4096]
            h.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        h.wfile.write(b"0\r\n\r\n")

    def unframed(h):
        h.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + data)
        h.close_connection = True
    web.routes.update({"/t/chunked": chunked, "/t/unframed": unframed})
    fates["framing"] += [Fate(web.url(p), body=data, size=size) for p in ("/t/chunked", "/t/unframed")]
    fates["content type"].append(Fate(web.serve("/t/html", data, "text/html"), body=data, size=size))


REASONS = {"usual": None, "own": b"Gone Fishing: back at 5", "none": b"", "latin-1": b"N\xe3o encontrado",
           "long": b"because " * 60, "odd": b"'quoted' \"twice\" \\ {json}"}


def add_errors(web, fates):
    codes = [400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 412, 413, 414, 416, 418, 421, 425, 429, 431, 451, 499,
             500, 501, 502, 503, 504, 505, 507, 508, 511, 520, 521, 522, 525, 530, 599, 300, 304, 305]
    import http.client
    for code in codes:
        reason = http.client.responses.get(code, "Whatever")
        web.routes["/e/%d" % code] = status_line(code, reason.encode())
        fates["http %d" % code].append(Fate(web.url("/e/%d" % code), "HTTP Error %d: %s" % (code, reason), pythons=True))
    for name, reason in REASONS.items():
        for code in (403, 404, 500):
            words = http.client.responses[code].encode() if reason is None else reason
            path = "/e/%s/%d" % (name, code)
            web.routes[path] = status_line(code, words)
            said = words.decode("latin-1").strip()
            fates["http, reason %s" % name].append(Fate(web.url(path), "HTTP Error %d: %s" % (code, said), pythons=True))
    web.routes["/e/nowhere"] = status_line(302, b"Found")
    fates["redirect to nowhere"].append(Fate(web.url("/e/nowhere"), "HTTP Error 302: Found", pythons=True))


def status_line(code, reason):
    empty = code in (304,)

    def answer(h):
        h.wfile.write(b"HTTP/1.1 %d%s\r\n%s\r\n" % (code, b" " + reason if reason else b"",
                                                    b"" if empty else b"Content-Length: 2\r\n") + (b"" if empty else b"no"))
    return answer


def add_urls(web, fates, data, size):
    """URLs that img2dataset loses and drover downloads, and URLs both lose."""
    at = "http://" + web.net

    def won(kind, url, *paths):
        for p in paths:
            web.serve(p, data)
        fates[kind].append(Fate(url, body=data, size=size))
    won("space", at + "/u/sp ace.jpg", "/u/sp%20ace.jpg")
    won("space in query", at + "/u/q?a b", "/u/q?a%20b")
    won("non-ascii", at + "/u/caf\u00e9.jpg", "/u/caf%C3%A9.jpg")
    won("emoji", at + "/u/\U0001f600", "/u/%F0%9F%98%80")
    won("quotes", at + "/u/\"<a>\"|`{}", "/u/%22%3Ca%3E%22%7C%60%7B%7D")
    won("encoded already", at + "/u/a%20b%C3%A9", "/u/a%20b%C3%A9")
    won("fragment", at + "/u/frag#part \x01", "/u/frag")
    won("spaces round it", "  %s/u/round \n" % at, "/u/round")
    won("line break inside", at + "/u/ta\tb\r\n", "/u/tab")
    won("scheme in capitals", "HTTP://%s/u/caps" % web.net, "/u/caps")
    won("no path", at, "/")
    won("only a query", at + "?x=1", "/?x=1")
    texts = {None: "unknown url type: 'None'", "": "unknown url type: ''", "nonsense": "unknown url type: 'nonsense'",
             "www.example.com/a.jpg": "unknown url type: 'www.example.com/a.jpg'", "//x:80/y.jpg": "unknown url type: '//x:80/y.jpg'",
             "it's": "unknown url type: \"it's\"", "both ' and \"": "unknown url type: 'both \\' and \"'",
             "back\\slash": "unknown url type: 'back\\\\slash'", "caf\u00e9": "unknown url type: 'caf\u00e9'", ":x": "unknown url type: ':x'",
             "Foo://x/y": "<urlopen error unknown url type: foo>", "localhost:80/x": "<urlopen error unknown url type: localhost>",
             "http:foo": "<urlopen error no host given>", "http:///x": "<urlopen error no host given>", "https://": "<urlopen error no host given>",
             at + "/a\x01b": "URL can't contain control characters. '/a\\x01b' (found at least '\\x01')",
             at + "/a\x7f?q=1": "URL can't contain control characters. '/a\\x7f?q=1' (found at least '\\x7f')",
             at + "/a b\x02": "URL can't contain control characters. '/a b\\x02' (found at least ' ')"}
    for url, text in texts.items():
        fates["bad url"].append(Fate(url, text, pythons=True))
    fates["bad url"].append(Fate("x" * 400, "unknown url type: '" + "x" * 400))
    ours = {"file:///etc/hostname": "<urlopen error unknown url type: file>", "ftp://127.0.0.1/x": "<urlopen error unknown url type: ftp>",
            "data:image/png;base64,xxxx": "<urlopen error unknown url type: data>",
            "http://u:p@%s/p/jpeg.jpg" % web.net: "<urlopen error user name in url not allowed>",
            "http://169.254.169.254/": "<urlopen error address not allowed>", "http://127.0.0.1:1/x": "<urlopen error address not allowed>"}
    for url, text in ours.items():
        fates["refused by us"].append(Fate(url, text))


def add_wires(d, fates, data, size):
    """Below HTTP: TLS, and hosts that send nothing, too little or nonsense. A host that fails eight times in
    a row is left alone, so there are many of them with few rows each.
    """
    good, bad = certificate(d, "tls.test"), certificate(d, "bad.test")
    tls, untrusted, plain = Server("127.0.0.5", tls=good), Server("127.0.0.5", tls=bad), Server("127.0.0.5")
    for s in (tls, untrusted, plain):
        s.serve("/x", data)
    fates["https"].append(Fate("https://tls.test:%d/x" % tls.port, body=data, size=size))
    verify = "<urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed>"
    fates["tls, unknown certificate"].append(Fate("https://bad.test:%d/x" % untrusted.port, verify))
    fates["tls, other name"].append(Fate("https://wrong.test:%d/x" % tls.port, verify))
    fates["tls, none spoken"].append(Fate("https://tls.test:%d/x" % plain.port, "<urlopen error [SSL] handshake failed>"))
    keep = [tls, untrusted, plain]
    for i in range(3):
        s = shut_port("127.0.0.1")
        keep.append(s)
        fates["refused"].append(Fate("http://127.0.0.1:%d/" % s.getsockname()[1], "<urlopen error [Errno 111] Connection refused>", pythons=True))
        s, more = deaf("127.0.0.%d" % (20 + i))
        keep += [s] + more
        fates["connect timeout"].append(Fate("http://127.0.0.%d:%d/" % (20 + i, s.getsockname()[1]), "<urlopen error timed out>", pythons=True))
        for kind, text, says in (("answer timeout", "timed out", None),
                                 ("body timeout", "timed out", b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n"),
                                 ("header timeout", "timed out", b"HTTP/1.1 200 OK\r\nX-Thing: a"),
                                 ("closed", "Remote end closed connection without response", b""),
                                 ("reset", "[Errno 104] Connection reset by peer", Raw.RESET)):
            raw = Raw("127.0.0.1", says, drip=kind == "body timeout")
            keep.append(raw)
            fates[kind].append(Fate("http://%s/%s" % (raw.net, kind.split()[0]), text, pythons=True))
    raw = Raw("127.0.0.1", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + data[:500], close=True)
    fates["body cut short"].append(Fate("http://%s/" % raw.net, "IncompleteRead"))
    return keep + [raw]


def add_names(web, fates, data, size):
    dns = Dns({"ok.test": ["127.0.0.1"], "xn--bcher-kva.test": ["127.0.0.1"], "tls.test": ["127.0.0.5"], "bad.test": ["127.0.0.5"],
               "wrong.test": ["127.0.0.5"], "none.test": [], "inside.test": ["127.0.0.99"],
               "broken0.test": Dns.SERVFAIL, "broken1.test": Dns.SERVFAIL, "broken2.test": Dns.SERVFAIL})
    for host in ("ok.test", "b\u00fccher.test", "OK.test"):
        fates["name"].append(Fate("http://%s:%d/p/jpeg.jpg" % (host, web.port), body=data, size=size))
    for host in ("never0.test", "never1.test", "never2.test"):
        fates["dns -2"].append(Fate("http://%s/x" % host, "<urlopen error [Errno -2] Name or service not known>"))
    for i in range(3):
        fates["dns -3"].append(Fate("http://broken%d.test/x" % i, "<urlopen error [Errno -3] Temporary failure in name resolution>"))
    fates["dns -5"].append(Fate("http://none.test/x", "<urlopen error [Errno -5] No address associated with hostname>"))
    fates["refused by us"].append(Fate("http://inside.test/x", "<urlopen error address not allowed>"))
    return [dns]


CAPTIONS = ["a plain caption", "", None, "caf\u00e9 \U0001f600 \u4e2d\u6587 \u202e rtl", "\"quoted\" 'twice' \\ back / slash",
            "line\nbreak\r\ntab\t \b\f", "".join(map(chr, range(1, 32))) + "\x7f", "nul \0 inside", "</script> & <b>", "\u2028\u2029\x85\ufeff",
            "x" * 70000, " spaces around ", "null", "{\"json\": [1]}", "\ud7ff\ue000\uffff", "%s %d {0}", "e\u0301 combining"]
DOUBLES = [0.1, 1 / 3, 0.3358, -0.0, 1e22, 1e-300, 5e-324, 1.7976931348623157e308, 123456789.12345679, 100.0, float("nan"), float("inf"),
           float("-inf"), None]
INTS = [0, 1, -1, 2 ** 31, -2 ** 31 - 1, 2 ** 53 + 1, 2 ** 63 - 1, -2 ** 63, None]
LISTS = [[1, 2, 3], [], [None, -5], None]
NAMES = [["a", "caf\u00e9 \"q\""], [""], [], None, ["\U0001f600", None]]


def single(v):
    return None if v is None else struct.unpack("f", struct.pack("f", v))[0]


# name, SQL type, value in json of row i
COLUMNS = [("id", "INTEGER", lambda i: i), ("big", "BIGINT", lambda i: INTS[i % 9]),
           ("ubig", "UBIGINT", lambda i: [2 ** 64 - 1, 0, None][i % 3]), ("tiny", "TINYINT", lambda i: [-128, 127, None][i % 3]),
           ("score", "DOUBLE", lambda i: DOUBLES[i % 14]),
           ("single", "FLOAT", lambda i: single([0.1, 1e30, -2.5, float("nan"), None, 16777217.0][i % 6])),
           ("flag", "BOOLEAN", lambda i: [True, False, None][i % 3]), ("NSFW", "VARCHAR", lambda i: CAPTIONS[(i * 5) % 17] if i % 3 else "UNSURE"),
           ("day", "DATE", lambda i: ["2020-02-29", "1969-12-31", None][i % 3]),
           ("moment", "TIMESTAMP", lambda i: ["2020-01-02 03:04:05.678", None][i % 2]),
           ("price", "DECIMAL(10,2)", lambda i: [12.5, -0.07, 99999999.99, None][i % 4]),
           ("list", "INTEGER[]", lambda i: LISTS[i % 4]), ("names", "VARCHAR[]", lambda i: NAMES[i % 5]),
           ("o\"dd n\u00e4me", "DOUBLE", lambda i: i / 7)]
VALUE = {name: value for name, _, value in COLUMNS}
TYPE = {name: t for name, t, _ in COLUMNS}


class Row:
    def __init__(self, i, kind, fate):
        self.i, self.kind, self.fate = i, kind, fate
        self.caption = CAPTIONS[i % len(CAPTIONS)]
        self.right = i % 23 != 0  # the hash in the column is right

    def sums(self, kind):
        h = hashlib.new(kind, self.fate.body).hexdigest()
        return h if self.right else [h.upper().replace("A", "B"), h[:-1], "", None][self.i // 23 % 4]


def deal(fates):
    """ROWS rows: each fate at least twice, each wire's no more than six times, the rest at random."""
    few = ("refused", "connect timeout", "answer timeout", "body timeout", "header timeout", "dns -3")
    some = [(k, f) for k in fates for f in fates[k] for _ in range(5 if k in few else 2)]
    rest = [(k, f) for k in fates if k not in few for f in fates[k]]
    r = random.Random(7)
    some += [r.choice(rest) for _ in range(ROWS - len(some))]
    r.shuffle(some)
    return [Row(i, k, f) for i, (k, f) in enumerate(some)]


def write_part(path, rows):
    """Values travel as text and are cast: JSON knows no NaN, DuckDB's reader of it no NUL."""
    def text(v):
        return v if v is None or isinstance(v, str) else json.dumps(v) if isinstance(v, (list, bool)) else repr(v)

    def safe(v):
        return v.replace("\0", "<NUL>") if v is not None else None
    with open(path + ".jsonl", "w") as f:
        for r in rows:
            line = {name: safe(text(value(r.i))) for name, _, value in COLUMNS}
            line.update(link=r.fate.url, TEXT=safe(r.caption), sum256=r.sums("sha256"), sum5=r.sums("md5"))
            f.write(json.dumps(line) + "\n")

    def cast(name, t):
        quoted = '"%s"' % name.replace('"', '""')
        inner = "CAST(%s AS JSON)" % quoted if t.endswith("]") else "replace(%s, '<NUL>', chr(0))" % quoted
        return "CAST(%s AS %s) AS %s" % (inner, t, quoted)
    types = [(n, t) for n, t, _ in COLUMNS] + [(n, "VARCHAR") for n in ("link", "TEXT", "sum256", "sum5")]
    struct_of = ", ".join("'%s': 'VARCHAR'" % n for n, _ in types)
    sql("COPY (SELECT %s FROM read_json('%s.jsonl', format='newline_delimited', maximum_object_size=9000000, columns={%s})) TO '%s' "
        "(FORMAT parquet, ROW_GROUP_SIZE 2048)" % (", ".join(cast(n, t) for n, t in types), path, struct_of, path))


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
