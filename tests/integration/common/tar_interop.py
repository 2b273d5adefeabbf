#!/usr/bin/env python3
"""Aim: other programs read the archives we write, and we read theirs, byte for byte and offset for offset.

Method: build/release/tests/tools/tar_tool writes an archive from a folder's files and lists an archive's
members with offsets and digests. The other side is GNU tar, bsdtar and Python's tarfile; hostile archives
come from tarfile and GNU tar. Prints TAP.
"""
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, Tap, patience

TOOL = os.path.join(TOP, "build/release/tests/tools/tar_tool")
FILES = {
    "00000.jpg": os.urandom(29400),
    "00000.txt": b"a caption\n",
    "00000.json": b'{"key":"00000"}',
    "empty": b"",
    "exact": b"x" * 512,
    "folder/inside.bin": os.urandom(1025),
    "n" * 100: b"hundred",
    "long/" + "m" * 150 + "/" + "k" * 90: b"long name",
    "h\u00e9-\U0001f600.txt": b"not ASCII",
}
tap = Tap()


def tool(*args, **kw):
    return subprocess.run([TOOL, *args], capture_output=True, timeout=patience(60), **kw)


def listing(path):
    """Our reader's result: {name: (offset, size, mtime, sha256)}, or None when it refuses."""
    run = tool("list", path)
    if run.returncode != 0:
        return None
    out = {}
    for line in run.stdout.decode("utf-8").splitlines():
        offset, size, mtime, digest, name = line.split("\t", 4)
        out[name] = (int(offset), int(size), int(mtime), digest)
    return out


def expected(mtime=None):
    return {n: (len(d), mtime, hashlib.sha256(d).hexdigest()) for n, d in FILES.items()}


def our_view(path, mtime):
    seen = listing(path)
    return None if seen is None else {n: (v[1], v[2] if mtime else None, v[3]) for n, v in seen.items()}


def write_folder(top):
    for name, data in FILES.items():
        path = os.path.join(top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)


def theirs_from_ours(work):
    write_folder(work + "/in")
    archive = work + "/ours.tar"
    with open(archive, "wb") as out:
        run = subprocess.run([TOOL, "create", "1700000000", *FILES], cwd=work + "/in", stdout=out, timeout=patience(60))
    tap.ok(run.returncode == 0, "our writer ends well")
    with tarfile.open(archive) as t:
        seen = {m.name: (t.extractfile(m).read(), m.mtime, m.mode, m.uname) for m in t}
        offsets = {m.name: m.offset_data for m in t}
    tap.ok({n: v[0] for n, v in seen.items()} == FILES, "tarfile reads our archive")
    tap.ok(all(v[1:] == (1700000000, 0o444, "bigdata") for v in seen.values()), "tarfile sees time, mode and owner")
    ours = listing(archive)
    tap.ok(ours is not None and {n: v[0] for n, v in ours.items()} == offsets, "our offsets are tarfile's")
    tap.ok(our_view(archive, True) == expected(1700000000), "our reader reads our archive")
    for program in ("tar", "bsdtar"):
        out = "%s/out-%s" % (work, program)
        os.makedirs(out)
        run = subprocess.run([program, "-xf", archive, "-C", out], capture_output=True, timeout=patience(60))
        same = run.returncode == 0 and run.stderr == b""
        for name, data in FILES.items():
            try:
                with open(os.path.join(out, name), "rb") as f:
                    same = same and f.read() == data
            except OSError:
                same = False
        tap.ok(same, "%s extracts our archive without a word" % program, run.stderr.decode())


def ours_from_theirs(work):
    for fmt, title in ((tarfile.PAX_FORMAT, "pax, float mtime"), (tarfile.GNU_FORMAT, "gnu"), (tarfile.USTAR_FORMAT, "ustar")):
        archive = "%s/py-%d.tar" % (work, fmt)
        files = {n: d for n, d in FILES.items() if fmt != tarfile.USTAR_FORMAT or len(n) < 100}
        with tarfile.open(archive, "w", format=fmt) as t:
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                info.mtime = 1795148923.7106605 if fmt == tarfile.PAX_FORMAT else 1795148923
                t.addfile(info, io.BytesIO(data))
        with tarfile.open(archive) as t:
            offsets = {m.name: m.offset_data for m in t}
        want = {n: v for n, v in expected(1795148923).items() if n in files}
        tap.ok(our_view(archive, True) == want, "we read tarfile's %s" % title)
        seen = listing(archive) or {}
        tap.ok({n: v[0] for n, v in seen.items()} == offsets, "with its offsets (%s)" % title)
    folder = work + "/in"
    for program, options in (
        ("tar", ["--format=gnu"]),
        ("tar", ["--format=pax"]),
        ("tar", ["--format=posix", "--pax-option=globexthdr.name=g,comment=x"]),
        ("bsdtar", ["--format=pax"]),
        ("bsdtar", ["--format=gnutar"]),
    ):
        archive = work + "/other.tar"
        subprocess.run([program, *options, "-cf", archive, "-C", folder, *FILES], check=True, timeout=patience(60))
        tap.ok(our_view(archive, False) == expected(), "we read %s %s" % (program, " ".join(options)))


def py_archive(work, *members):
    path = work + "/hostile.tar"
    with tarfile.open(path, "w") as t:
        for info, data in members:
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return path


def member(name, kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    return info


def hostile(work):
    good = (member("good"), b"x")
    for name in ("/etc/passwd", "../x", "a/../../x", "a/" * 60 + "../x", "/" + "l" * 200):
        tap.ok(listing(py_archive(work, good, (member(name), b"x"))) is None, "refused: %.40s" % name)
    for kind, title in (
        (tarfile.SYMTYPE, "symbolic link"),
        (tarfile.LNKTYPE, "hard link"),
        (tarfile.CHRTYPE, "character device"),
        (tarfile.BLKTYPE, "block device"),
        (tarfile.FIFOTYPE, "fifo"),
        (tarfile.CONTTYPE, "contiguous file"),
    ):
        tap.ok(listing(py_archive(work, good, (member("x", kind, "good"), b""))) is None, "refused: " + title)
    sparse = work + "/sparse"
    with open(sparse, "wb") as f:
        f.seek(1 << 20)
        f.write(b"end")
    for fmt in ("gnu", "posix"):
        archive = work + "/sparse.tar"
        subprocess.run(["tar", "--sparse", "--format=" + fmt, "-cf", archive, "-C", work, "sparse"], check=True)
        tap.ok(listing(archive) is None, "refused: sparse file (%s)" % fmt)
    huge = member("huge")
    huge.pax_headers = {"size": str(1 << 62)}
    tap.ok(listing(py_archive(work, (huge, b"x"))) is None, "refused: pax size of 2^62")
    path = py_archive(work, good)
    tap.ok(listing(path) is not None, "taken: the good one alone")
    with open(path, "rb") as f:
        whole = f.read()
    with open(path, "wb") as f:
        f.write(whole[:1024])
    tap.ok(listing(path) is None, "refused: cut before the end marker")


def main():
    subprocess.run(["make", "-s", TOOL[len(TOP) + 1 :]], cwd=TOP, check=True, stdout=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="tar_interop.") as work:
        os.makedirs(work + "/in")
        theirs_from_ours(work)
        ours_from_theirs(work)
        hostile(work)
    sys.exit(tap.done())


main()
