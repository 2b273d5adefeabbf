"""Shared by the tests of `drover-worker index`: running it, reading its lines, making shards, reading them
with tarfile.
"""
import hashlib

from kit.worker.s3 import *

ALL = "path,key,image,offset,size,caption,width,height"


def index_start(args, env=None, ml_root="/nonexistent"):
    e = dict(os.environ, DROVER_ML_ROOT=ml_root)
    e.update(env or {})
    return subprocess.Popen([WORKER, "index"] + [str(a) for a in args], env=e, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def index(args, env=None, timeout=120, ml_root="/nonexistent"):
    return finish(index_start(args, env, ml_root), timeout)


def lines(folder, name="index.jsonl"):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return [json.loads(x) for x in f]


def digest(folder, name="index.jsonl"):
    with open(os.path.join(folder, name), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


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
    """img2dataset writes pax with a float time, so every member has one more header."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, "w", format=fmt) as t:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.uname, info.gname = len(data), 0o444, "bigdata", "bigdata"
            info.mtime = 1795148923.7106605 if fmt == tarfile.PAX_FORMAT else 1795148923
            t.addfile(info, io.BytesIO(data))


def expected(root, prefix, fields=ALL):
    """tarfile's view of every .tar below root, in the order of their paths."""
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


def same(tap, name, got, want):
    if got == want:
        return tap.ok(True, name)
    first = next((i for i, (a, b) in enumerate(zip(got or [], want)) if a != b), min(len(got or []), len(want)))
    return tap.ok(False, name, "%s lines, expected %d; first difference at %d\n%r\n%r" % (
        len(got) if got is not None else None, len(want), first, (got or [])[first:first + 1], want[first:first + 1]))
