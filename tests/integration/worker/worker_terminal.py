#!/usr/bin/python3
"""Aim: people who run `download` by hand are told how it ended, what failed, and which command goes on; programs
get JSON lines when they ask; where standard error is no terminal nothing changes. Method: the worker on a
pseudo-terminal of 80 columns that is its controlling one (Ctrl-C is typed), with hosts that fail in known
ways; the told command is run by a shell and its requests are counted.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct as structs
import sys
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *

tap = Tap()
PHOTO = encode(photo(90, 70, 1), "JPEG")
ENV = dict(os.environ, DROVER_ML_ROOT="/nonexistent", TERM="xterm", LC_ALL="C.UTF-8")
for k in ("NO_COLOR", "COLUMNS"):
    ENV.pop(k, None)


class Tty:
    """The worker with standard error, and standard output unless it goes to a file, on a terminal of its own."""

    def __init__(self, args, columns=80, env=None, out=None, verb="download"):
        argv = [WORKER, verb] + [str(a) for a in args]
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(2, termios.TIOCSWINSZ, structs.pack("HHHH", 24, columns, 0, 0))
            if out:
                os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
            os.execve(WORKER, argv, dict(ENV, **(env or {})))
        self.text = ""

    def read_until(self, cond, seconds=60):
        end = time.monotonic() + patience(seconds)
        while not cond(self.text) and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    return False
                if not data:
                    return False
                self.text += data.decode(errors="replace")
        return cond(self.text)

    def type(self, keys):
        os.write(self.fd, keys)

    def end(self):
        """(exit status, lines without the bar's)."""
        if self.read_until(lambda t: False) or select.select([self.fd], [], [], 0)[0] == []:
            os.kill(self.pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return status, self.lines()

    def lines(self):
        return [re.sub(r"\x1b\[[\d;]*[mK]", "", re.sub(r"^.*\r", "", x)) for x in self.text.replace("\r\n", "\n").split("\n")]


def end_of(args, **kw):
    t = Tty(args, **kw)
    status, lines = t.end()
    return status, lines, t.text


class Part:
    """Rows with known answers: kinds[i] is "good", "held" until open, or (status, reason, body)."""

    def __init__(self, d, name, kinds):
        self.server, self.open, self.kinds = Server(), threading.Event(), list(kinds)
        for i in range(len(kinds)):
            self.server.routes["/%d" % i] = lambda h, i=i: self.answer(h, self.kinds[i])
        self.path, self.out = os.path.join(d, re.sub(r"\W", "", name) + ".parquet"), os.path.join(d, name)
        make_parquet(self.path, [{"URL": self.server.url("/%d" % i), "TEXT": "t%d" % i} for i in range(len(kinds))],
                     {"URL": "VARCHAR", "TEXT": "VARCHAR"})

    def answer(self, h, kind):
        if kind == "held":
            self.open.wait(60)
        status, reason, body = kind if isinstance(kind, tuple) else (200, "OK", PHOTO)
        h.send_response(status, reason)
        h.send_header("Content-Length", str(len(body)))
        h.end_headers()
        h.wfile.write(body)

    def args(self, *more, out=None):
        return ["--parquet", self.path, "--output", out or self.out, "--number_sample_per_shard", 20, "--allow-net",
                self.server.net, "--timeout", 60, "--processes_count", 1] + list(more)


def counts(lines):
    """text -> count of the indented lines."""
    found = [re.fullmatch(r" +([\d,]+)  (.*)", x) for x in lines]
    return [(m[2], int(m[1].replace(",", ""))) for m in found if m]


def command_of(lines):
    """The told command with its line breaks; None: none is told."""
    at = [i for i, x in enumerate(lines) if re.match(r"  \S+drover-worker download ", x)]
    if len(at) != 1:
        return None
    to = at[0]
    while lines[to].endswith("\\"):
        to += 1
    return "\n".join(lines[at[0]:to + 1])


def test_summary(d):
    fails = [(500 + i, "Reason %d" % i, b"") for i in range(11) for _ in range(12 - i)]
    kinds = ["good"] * 30 + fails + [(404, "Not \x1b[31mFound\x9b", b"")] * 15 + [(200, "OK", b"<html>")] * 2
    p = Part(d, "a 'part'", kinds)
    status, lines, text = end_of(p.args("--image_size", 64, "--save_additional_columns", '["TEXT"]'))
    told, m = counts(lines), load(p.out, "_manifest.json")
    want = [("rows", len(kinds)), ("kept (%.1f %%)" % (3000 / len(kinds)), 30),
            ("failed to download (%.1f %%)" % (100 * (len(fails) + 15) / len(kinds)), len(fails) + 15),
            ("failed to resize (%.1f %%)" % (200 / len(kinds)), 2)]
    tap.eq((status, told[:4]), (0, want), "rows and outcomes are told")
    failures = sorted(((k, n) for k, n in m["statuses"].items() if k != "success"), key=lambda x: (-x[1], x[0]))
    tap.ok(len(failures) == 13 and [n for _, n in told[4:14]] == [n for _, n in failures[:10]],
           "the ten most frequent failures, most frequent first", (told, failures))
    tap.eq([k for k, _ in told[5:14]], [k for k, _ in failures[1:10]], "in the words of the manifest")
    tap.eq((told[14:], told[4][0]), ([("(3 other texts)", sum(n for _, n in failures[10:]))], "HTTP Error 404: Not ?[31mFound?"),
           "the others are added up; control characters are not shown")
    after = text[text.index("Finished in "):]
    tap.ok("\x1b" not in after and "\x9b" not in after, "no escape sequence, a server's neither", after)
    tap.ok(all(len(x) < 80 or p.out in x for x in after.split("\r\n")), "within 80 columns", lines)
    tap.ok("Output: %s (webdataset, %d shards)" % (p.out, (len(kinds) + 19) // 20) in lines, "where it is", lines)
    command = command_of(lines)
    tap.ok(command is not None, "a second pass is told", lines)
    p.kinds = ["good"] * len(kinds)
    p.server.hits.clear()
    done = subprocess.run(["sh", "-c", command], env=ENV, capture_output=True, text=True)
    tap.eq((done.returncode, sorted(p.server.hits)), (0, sorted("/%d" % i for i in range(30, 30 + len(fails)))),
           "a shell runs it: it asks for what may still come " + done.stderr)
    got = samples(p.out + "-retry/00000.tar")
    one = next(x for x in got.values() if x["txt"] == b"t30")
    tap.eq((json.loads(one["json"])["TEXT"], Image.open(io.BytesIO(one["jpg"])).size), ("t30", (64, 64)), "with the settings of the first, captions and columns")
    tap.ok("Finished" not in done.stderr and all(json.loads(x) for x in done.stderr.splitlines()),
           "in a pipe nothing of this is told", done.stderr)

    status, lines, text = end_of(p.args(out=p.out + " 2"), columns=60)
    tap.ok(status == 0 and command_of(lines) is None and "second pass" not in text and not counts(lines)[4:],
           "nothing failed: no second pass is told", lines)
    p.kinds[3] = (503, "Busy", b"")
    status, lines, text = end_of(p.args("--output_format", "dummy", out=p.out + " 3"))
    tap.ok(status == 0 and command_of(lines) is None and "no second pass is possible" in text, "nor where rows are not kept", lines)
    status, lines, text = end_of(p.args("--compute_hash", "md5", "--verify_hash", '["TEXT","md5"]', out=p.out + " 4"))
    tap.ok(status == 0 and "--verify_hash" not in (command_of(lines) or "--verify_hash")
           and "does not check verify_hash" in text, "a second pass that cannot check hashes says so", lines)


def test_gone(d):
    """Rows that are gone for good are not offered for a second pass, which would find no row."""
    p = Part(d, "gone", ["good"] * 5 + [(404, "Not Found", b"")] * 3 + [(410, "Gone", b"")] * 2)
    status, lines, text = end_of(p.args())
    tap.ok(status == 0 and "second pass" not in text and command_of(lines) is None, "all failures are 404 and 410: no second pass is told", text)
    rc, so, se = run(p.args("--progress", "json", out=p.out + "-json"))
    tap.eq((rc, json.loads(se.splitlines()[-1])["second_pass"]), (0, None), "nor to programs")
    rc, so, se = run(["--url_list", p.out, "--output_folder", p.out + "-retry", "--retry_failed", "--allow-net", p.server.net])
    tap.ok(rc == 0 and load(p.out + "-retry", "_manifest.json")["rows_in"] == 0, "it would have had no row", (rc, se))


def test_other_verbs(d):
    p = Part(d, "verbs", ["good"] * 25)
    p.args()
    rc, so, se = run(p.args())
    index = ["--input", p.out, "--output", d + "/verbs-index", "--sample", "0.5"]
    status, lines, text = end_of(index, verb="index")
    told, n = dict(counts(lines)), len(open(d + "/verbs-index/sample.jsonl").readlines())
    tap.ok(status == 0 and any(x.startswith("Finished in ") for x in lines) and "Output: %s/verbs-index" % d in lines,
           "index ends with a summary", lines)
    tap.eq(told, {"pairs": 25, "whole, a line each (100.0 %)": 25, "lines of the sample": n, "shards read": 2}, "of pairs, sample and shards")
    os.remove(p.out + "/00001_stats.json")
    with open(p.out + "/00001.tar", "r+b") as f:
        f.truncate(5000)
    status, lines, text = end_of(["--input", p.out, "--output", d + "/verbs-index2"], verb="index")
    told = dict(counts(lines))
    tap.ok(status == 0 and told.get("of them not to their end, see broken.jsonl") == 1, "what could not be read is told", (status, text))
    rc, so, se = finish(subprocess.Popen([WORKER, "index", "--input", p.out, "--output", d + "/verbs-index3"], env=ENV,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    tap.ok(rc == 0 and "Finished" not in se, "in a pipe nothing of this is told", se)

    files = Part(d, "files", ["good"] * 3)
    where = ["--from", files.server.url("/[0-2]"), "--to", d + "/copied/{file_name}"]
    status, lines, text = end_of(where, verb="copy")
    tap.ok(status == 0 and ("files copied", 3) in counts(lines) and "Output: %s/copied" % d in "\n".join(lines)
           and any(re.fullmatch(r"Size:   [\d.]+ k?B", x) for x in lines), "copy ends with a summary", (status, text))
    files.kinds = ["good", "held", "good"]
    where = ["--from", files.server.url("/[0-2]"), "--to", d + "/copied2/{file_name}", "--stop_seconds", 4]
    t = Tty(where, verb="copy")
    tap.ok(wait_for(lambda: os.path.exists(d + "/copied2/0") and os.path.exists(d + "/copied2/2"), 60), "two files are copied, one is held")
    t.type(b"\x03")
    status, lines = t.end()
    tap.ok(status == 143 and "Stopped: 2 of 3 files are finished and kept in '%s/copied2/'." % d in lines
           and "Run the same command again to go on." in lines, "stopped, it says what is kept and how to go on", (status, lines))
    files.open.set()


def test_no_escapes(d):
    p = Part(d, "plain", ["good"] * 10 + [(503, "Busy", b"")] * 3)
    for name, env in (("TERM=dumb", {"TERM": "dumb"}), ("NO_COLOR", {"NO_COLOR": "1"}), ("xterm", {})):
        out = d + "/stdout"
        status, lines, text = end_of(p.args(out=p.out + name), env=env, out=out)
        tap.ok(status == 0 and "\x1b" not in text and "Finished in " in text and command_of(lines) is not None
               and "worker  - " in open(out).read(), "%s: no escape on standard error" % name, text)
    status, lines, text = end_of(p.args(out=p.out + "-both"), env={"TERM": "dumb"})
    tap.ok(status == 0 and "\x1b" not in text and lines.index("") < len(lines), "a dumb terminal gets no escape at all", text)
    t = Tty(p.args(out=p.out + "-color"), env={"NO_COLOR": "1"})
    t.end()
    tap.ok("\x1b" not in t.text and re.search(r"\r +\d+ %", t.text) and "\r100 %" in t.text,
           "NO_COLOR: a bar without an escape code", t.text)


def test_interrupted(d):
    def gate(name, *more):
        p = Part(d, name, ["good"] * 40 + ["held"] * 40)
        t = Tty(p.args(*more))
        t.read_until(lambda x: "40/80 rows" in x)
        # What is not asked for yet is not under way, and nothing would have to be waited for.
        tap.ok(wait_for(lambda: os.path.exists(p.out + "/00001_stats.json") and any(p.server.hits.get("/%d" % i) for i in range(40, 80)), 60), "%s: half is done" % name, t.text)
        t.type(b"\x03")
        return p, t
    p, t = gate("ctrl-c", "--stop_seconds", 4)
    status, lines = t.end()
    text = "\n".join(lines)
    tap.ok(status == 143 and "Stopping: what is under way is finished, within 4 seconds." in text, "Ctrl-C is answered", (status, text))
    tap.ok("Stopped: 40 of 80 rows are finished and kept in '%s'." % p.out in lines and lines[-2] == "Run the same command again to go on.",
           "and says how to go on", lines)
    tap.ok("event=" not in text and "{" not in text, "in sentences", text)
    p.open.set()
    p.server.hits.clear()
    status, lines, text = end_of(p.args())
    tap.eq((status, sum(p.server.hits.values()), counts(lines)[0][0]), (0, 40, "rows, of which 40 by earlier runs"),
           "the same command goes on with the rest")

    p, t = gate("twice")
    t.read_until(lambda x: "Stopping: " in x)
    t.type(b"\x03")
    status, lines = t.end()
    tap.ok(status == 143 and "Run the same command again to go on." in lines and any("stopped at once" in x for x in lines),
           "a second Ctrl-C ends it at once", lines)
    p.open.set()

    p, t = gate("over", "--incremental_mode", "overwrite", "--stop_seconds", 4)
    status, lines = t.end()
    tap.ok(status == 143 and lines[-2].startswith("Run it again without --incremental_mode"), "overwrite would start again", lines)
    p.open.set()
    p.server.hits.clear()
    status, lines, text = end_of(p.args())
    tap.eq((status, sum(p.server.hits.values())), (0, 40), "and goes on without it")


def test_errors(d):
    p = Part(d, "errors", ["good"] * 2)
    for name, args, words in (("no input", ["--parquet", d + "/none.parquet", "--output", d + "/x"], "none.parquet"),
                              ("no such column", p.args("--url_col", "LINK"), "no column 'LINK'")):
        status, lines, text = end_of(args)
        lines = [x for x in lines if x and "private addresses opened" not in x]
        tap.ok(status == 65 and len(lines) == 1 and lines[0].startswith("drover-worker: download failed: ") and words in lines[0]
               and "\x1b" not in text and "error_code" not in text, "%s: one sentence" % name, text)
        rc, so, se = run(args)
        v = json.loads(se.splitlines()[-1])
        tap.eq((rc, v["level"], v["event"], v["cause"], words in v["error"]), (65, "error", "download_failed", "bad_input", True),
               "%s: in a pipe the line of the log" % name)
    status, lines, text = end_of(["--input", d + "/nothing", "--output", d + "/index"], verb="index")
    lines = [x for x in lines if x]
    tap.ok(status != 0 and len(lines) == 1 and lines[0].startswith("drover-worker: index failed: "), "of the other commands too", text)
    p = Part(d, "full", ["good"] * 45)
    p.server.routes["/44"] = lambda h: (open(p.out + "/00002.tar", "w").close(), p.answer(h, "good"))
    status, lines, text = end_of(p.args())
    tap.ok(status not in (0, 143) and "40 of 45 rows are finished and kept in '%s'." % p.out in lines, "a failure tells what is kept", lines)


def test_progress(d):
    p = Part(d, "json", ["good"] * 18 + [(503, "Busy", b"")] * 3)
    rc, so, se = run(p.args("--progress", "json"))
    v = [json.loads(x) for x in se.splitlines()]
    steps = [x for x in v if x["event"] == "progress"]
    tap.ok(rc == 0 and so == "" and len(steps) >= 2, "json: objects on standard error, nothing on the other", (so, se))
    want = {"event", "version", "task", "attempt", "rows_in", "rows_done", "successes", "eta_seconds", "updated", "memory_bytes"}
    tap.ok(want <= set(steps[0]) and set(steps[0]) - {"event"} == set(load(p.out, "_progress.json")), "with the fields of _progress.json", steps[0])
    tap.eq((steps[-1]["rows_done"], v[-1]["event"], v[-1]["rows"], v[-1]["successes"], v[-1]["failures"], v[-1]["other_failures"]),
           (21, "summary", 21, 18, [{"error": "HTTP Error 503: Busy", "rows": 3}], 0), "the last one sums up")
    rc, so, se = run(p.args("--progress", "json"))
    tap.eq((rc, so, [json.loads(x) for x in se.splitlines() if "private_addresses" not in x]),
           (0, "", [{"event": "already_finished", "output_folder": p.out}]), "a finished output is told as JSON, too")
    p.kinds = ["good"] * 21
    again = subprocess.run(["sh", "-c", v[-1]["second_pass"]], env=ENV, capture_output=True, text=True)
    end = json.loads(again.stderr.splitlines()[-1])
    tap.eq((again.returncode, end["rows"], end["second_pass"], end["output_folder"]), (0, 3, None, p.out + "-retry"),
           "its command is a second pass with the same settings")
    status, lines, text = end_of(p.args("--progress", "json", out=p.out + "-tty"))
    lines = [x for x in lines if x]
    tap.ok(status == 0 and "\x1b" not in text and json.loads(lines[-1])["event"] == "summary" and all(json.loads(x)["event"] for x in lines),
           "json on a terminal is JSON alone", text)
    rc, so, se = run(p.args("--progress", "none", out=p.out + "-none"))
    tap.ok(rc == 0 and so == "" and all(json.loads(x)["event"] != "progress" for x in se.splitlines()), "none: no progress", so + se)
    status, lines, text = end_of(p.args("--progress", "none", out=p.out + "-none-tty"))
    tap.ok(status == 0 and "\x1b" not in text and "worker  - " not in text and "Finished in " in text, "nor a bar", text)
    rc, so, se = run(p.args("--progress", "bar", out=p.out + "-x"))
    tap.ok(rc == 2 and "progress 'bar': expected one of text, json, none" in se, "any other is refused", se)


with Folder() as d:
    test_summary(d)
    test_gone(d)
    test_other_verbs(d)
    test_no_escapes(d)
    test_interrupted(d)
    test_errors(d)
    test_progress(d)
sys.exit(tap.done())
