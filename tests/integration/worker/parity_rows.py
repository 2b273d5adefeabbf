"""The 500 rows of worker_parity.py: web servers, TLS servers and a DNS server with every possible outcome, what each URL is set
up to do (Fate), the columns beside it, and the Parquet file of it all.
"""
import hashlib
import os
import random

from kit.worker import *
from kit.worker.web import Raw, certificate, deaf, shut_port

ROWS = int(os.environ.get("ROWS", "500"))
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
