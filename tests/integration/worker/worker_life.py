#!/usr/bin/python3
"""Aim: a stop completes in time whatever hangs, keeps durable output and reports it; the worker's own figures
equal the servers' counts. Method: SIGTERM in each phase while that phase is held up (the part comes
slowly, hosts are silent, the bucket stalls under a shard, under the progress report, under the manifest,
decoders are stopped, nobody reads standard output), with a short stop_seconds; a gate and counters in the
web server; _progress.json read as fast as possible; a terminal of several widths.
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
from kit.worker.index import *

tap = Tap()
PER = 20
SHARDS = 8
ROWS = PER * SHARDS
BODY = encode(photo(120, 90, 1), "JPEG", quality=90)
STOP = 3


class Gate:
    """A part whose rows from shard `first_held` on are answered only once the gate is open."""

    def __init__(self, d, name, first_held=SHARDS, rows=ROWS, delay=0.0):
        self.server = Server()
        self.open = threading.Event()
        self.served = self.waiting = 0
        for i in range(rows):
            self.server.routes["/%d.jpg" % i] = lambda h, held=i // PER >= first_held: self.answer(h, held, delay)
        self.part = os.path.join(d, name + ".parquet")
        make_parquet(self.part, [{"URL": self.server.url("/%d.jpg" % i), "TEXT": "t%d" % i} for i in range(rows)],
                     {"URL": "VARCHAR", "TEXT": "VARCHAR"})
        self.out = os.path.join(d, name)

    def answer(self, h, held, delay):
        if held:
            with self.server.lock:
                self.waiting += 1
            self.open.wait(60)
        if delay:
            time.sleep(delay)
        h.answer(200, {"Content-Type": "image/jpeg"}, BODY)
        with self.server.lock:
            self.served += len(BODY)

    def args(self, *more, out=None):
        return ["--parquet", self.part, "--output", out or self.out, "--number_sample_per_shard", PER, "--allow-net",
                self.server.net, "--timeout", 60, "--processes_count", 2, "--stop_seconds", STOP] + list(more)


def done(folder):
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return {int(n[:5]) for n in names if n.endswith("_stats.json") and n[0] != "."}


def pieces(folder, shard):
    return [hashlib.sha256(open(os.path.join(folder, "%05d%s" % (shard, s)), "rb").read()).hexdigest()
            for s in (".tar", ".parquet", "_stats.json")]


def container(d):
    """A contract's root with room for the failure file."""
    root = tempfile.mkdtemp(prefix="ml-", dir=d)
    os.mkdir(root + "/output")
    return root, lambda: open(root + "/output/failure").read() if os.path.exists(root + "/output/failure") else None


def stop(p, sig=signal.SIGTERM):
    """Send the signal; returns the seconds until the end and standard error."""
    began = time.monotonic()
    p.send_signal(sig)
    try:
        _, se = p.communicate(timeout=patience(60))
    except subprocess.TimeoutExpired:
        p.kill()
        _, se = p.communicate()
        return 999, se
    return time.monotonic() - began, se


def stopped(name, p, failure, took, se, least=0.0):
    """Ended by itself within its time; the rest is slack for a busy machine."""
    tap.ok(p.returncode == 143 and least <= took < STOP + patience(40), "%s: ends with 143 in its time" % name, "%s after %.1f s: %s" % (
        p.returncode, took, se))
    f = failure()
    tap.ok(f is not None and f.startswith("stopped: "), "%s: the failure file says why" % name, f)


def goes_on(name, g, kept, env=None, out=None, folder=None):
    """The next run finishes and keeps finished shards."""
    g.open.set()
    rc, so, se = run(g.args(out=out), env=env)
    folder = folder or g.out
    m = load(folder, "_manifest.json") if rc == 0 else {}
    tap.ok(rc == 0 and (m["rows_in"], m["successes"]) == (ROWS, ROWS) and {i: pieces(folder, i) for i in kept} == kept,
           "%s: the next run finishes it and keeps what was finished" % name, "%d %s" % (rc, se))


def test_hosts_hang(d):
    g = Gate(d, "hosts", 2)
    root, failure = container(d)
    p = start(g.args(), ml_root=root)
    wait_for(lambda: done(g.out) == {0, 1} and g.waiting > 0)
    kept = {i: pieces(g.out, i) for i in (0, 1)}
    took, se = stop(p)
    stopped("hosts that say nothing", p, failure, took, se)
    tap.ok("stopped_at_once" not in se, "hosts that say nothing: nothing had to be left", se)
    goes_on("hosts that say nothing", g, kept)


def test_names_hang(d):
    """A resolver that never answers."""
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 0))
    silent.settimeout(20)
    part = d + "/names.parquet"
    make_parquet(part, [{"URL": "http://h%d.example/x.jpg" % i} for i in range(50)], {"URL": "VARCHAR"})
    root, failure = container(d)
    dns = "127.0.0.1:%d" % silent.getsockname()[1]
    p = start(["--parquet", part, "--output", d + "/names", "--dns", dns, "--allow-net", dns, "--timeout", 60, "--stop_seconds",
               STOP], ml_root=root)
    silent.recvfrom(4096)
    took, se = stop(p)
    stopped("names that do not resolve", p, failure, took, se)
    silent.close()


def test_decoders_stopped(d):
    g = Gate(d, "decoders", 2)
    root, failure = container(d)
    p = start(g.args(), ml_root=root)
    wait_for(lambda: done(g.out) == {0, 1})
    below = descendants(p.pid)
    for c in below[1:]:
        os.kill(c, signal.SIGSTOP)
    kept = {i: pieces(g.out, i) for i in (0, 1)}
    g.open.set()
    wait_for(lambda: sum(g.server.hits.values()) >= ROWS)
    took, se = stop(p)
    stopped("decoders stand still", p, failure, took, se, least=STOP - 0.5)
    tap.ok("out of time" in se, "decoders stand still: the log says that it was out of time", se)
    tap.ok(wait_for(lambda: not any(os.path.exists("/proc/%d" % c) for c in below)), "decoders stand still: none is left behind",
           below)
    goes_on("decoders stand still", g, kept)


def test_nobody_reads(d):
    """Standard output is a pipe that is full."""
    g = Gate(d, "pipe", 2)
    root, failure = container(d)
    r, w = os.pipe()
    fcntl.fcntl(w, fcntl.F_SETPIPE_SZ, 4096)
    os.write(w, b"x" * 4096)
    p = subprocess.Popen([WORKER, "download"] + [str(a) for a in g.args()], env=dict(os.environ, DROVER_ML_ROOT=root), stdout=w,
                         stderr=subprocess.PIPE, text=True)
    tap.ok(wait_for(lambda: done(g.out) == {0, 1}), "nobody reads: shards are finished all the same")
    took, se = stop(p)
    stopped("nobody reads", p, failure, took, se, least=STOP - 0.5)
    os.close(r)
    os.close(w)


def test_signals(d):
    g = Gate(d, "twice", 2)
    p = start(g.args())
    wait_for(lambda: done(g.out) == {0, 1})
    for c in descendants(p.pid)[1:]:
        os.kill(c, signal.SIGSTOP)
    g.open.set()
    wait_for(lambda: sum(g.server.hits.values()) >= ROWS)
    p.terminate()
    for line in p.stderr:
        if '"stop_asked"' in line:
            break
    took, se = stop(p)
    tap.ok(p.returncode == 143 and "out of time" in se and "stop_asked" not in se, "a second SIGTERM changes nothing",
           "%s after %.1f s %s" % (p.returncode, took, se))
    g.open.clear()  # or it may be done before it is asked
    p = start(g.args("--output", g.out + "2"))
    wait_for(lambda: len(descendants(p.pid)) == 3)
    for c in descendants(p.pid)[1:]:
        os.kill(c, signal.SIGSTOP)
    p.send_signal(signal.SIGINT)
    for line in p.stderr:
        if '"stop_asked"' in line:
            break
    took, se = stop(p, signal.SIGINT)
    g.open.set()
    tap.ok(p.returncode == 143 and "asked a second time" in se, "a second Ctrl-C is the end at once", "%s after %.1f s %s" % (
        p.returncode, took, se))


def test_bucket_stalls(d, local):
    g = Gate(d, "s3", 2)
    out, folder = "s3://data/life", local.buckets + "/data/life"
    noise = [encode(np.random.RandomState(i).randint(0, 255, (480, 480, 3), np.uint8), "PNG") for i in range(3)]
    g.held = set()

    def picture(h, i):
        if i in g.held:
            with g.server.lock:
                g.waiting += 1
            g.open.wait(30)
        h.answer(200, {"Content-Type": "image/png"}, noise[i % 3])
    for i in range(ROWS):  # shards of more than one part
        g.server.routes["/%d.jpg" % i] = lambda h, i=i: picture(h, i)
    shutil.copy(g.part, local.buckets + "/data/meta/p.parquet")
    slow = {"kind": "slow", "delay_seconds": 40, "times": 200}
    args = g.args("--resize_mode", "no", "--encode_format", "png", "--encode_quality", 0, "--progress_interval", 1, out=out)

    def asked(op, name):
        return len([r for r in local.wire() if r["operation"] == op and name in r["name"]])

    def phase(name, fault, op, key, least, *more):
        root, failure = container(d)
        local.faults(dict(slow, **fault))
        n = asked(op, key)
        p = start(args + list(more), env=local.env(), ml_root=root)
        tap.ok(wait_for(lambda: asked(op, key) > n), "%s: the bucket stalls" % name)
        kept = {i: pieces(folder, i) for i in done(folder)}
        took, se = stop(p)
        stopped(name, p, failure, took, se, least)
        local.faults()
        tap.ok({i: pieces(folder, i) for i in kept} == kept, "%s: what was finished is as it was" % name)
        return se

    se = phase("the part comes slowly", {"operation": "GetObject", "name_contains": "p.parquet"}, "GetObject", "p.parquet", 0,
               "--parquet", "s3://data/meta/p.parquet")
    tap.ok("nothing was begun" in se, "the part comes slowly: nothing is waited for", se)
    phase("under a shard", {"operation": "UploadPart", "after": 3}, "UploadPart", "life/", 0)
    g.held = set(range(PER - 1, ROWS, PER))  # the last of each shard
    g.waiting = 0
    stray = local.uploads()  # of the phase before: a stalled request cannot be aborted
    p = start(args, env=local.env())
    tap.ok(wait_for(lambda: g.waiting >= 6 and len(local.uploads()) >= 6 + len(stray)), "uploads of open shards are under way", local.uploads())
    for c in descendants(p.pid)[1:]:
        os.kill(c, signal.SIGSTOP)
    g.open.set()
    took, se = stop(p)
    g.held = set()
    tap.ok(p.returncode == 143 and wait_for(lambda: local.uploads() == stray), "open shards are given up and their uploads aborted, "
           "though decoders hang", local.uploads())
    phase("under the heartbeat", {"operation": "PutObject", "name_contains": "_progress"}, "PutObject", "_progress.json", 0)
    phase("under the sidecar", {"operation": "PutObject", "name_contains": ".parquet"}, "PutObject", ".parquet", 0)
    phase("under the manifest", {"operation": "PutObject", "name_contains": "_manifest"}, "PutObject", "_manifest.json", STOP - 0.5)
    tap.eq(done(folder), set(range(SHARDS)), "under the manifest: all shards were finished by then")
    rc, so, se = run(args, env=local.env())
    m = load(folder, "_manifest.json")
    tap.ok(rc == 0 and (m["rows_in"], m["successes"]) == (ROWS, ROWS), "after all that the next run ends well", se)
    n = asked("PutObject", "_progress.json")
    tap.ok(n >= 8, "_progress.json went to the bucket", n)


class Watcher(threading.Thread):
    """Reads _progress.json as fast as possible; keeps changes and faults."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder, self.seen, self.wrong, self.go_on = folder, [], [], True
        self.start()

    def run(self):
        last = None
        while self.go_on:
            try:
                text = open(self.folder + "/_progress.json").read()
            except OSError:
                continue
            if text != last:
                last = text
                try:
                    self.seen.append((time.monotonic(), json.loads(text)))
                except ValueError:
                    self.wrong.append(text)
            time.sleep(0.002)


def test_truth(d):
    g = Gate(d, "truth", 4)
    for i in range(ROWS):
        if i % 10 == 3:
            g.server.routes["/%d.jpg" % i] = (404, {}, b"")
        if i % 10 == 4:
            g.server.serve("/%d.jpg" % i, b"no picture")
    held = len([i for i in range(4 * PER, ROWS) if i % 10 not in (3, 4)])
    w = Watcher(g.out)
    p = start(g.args("--progress_interval", 1, "--host_connections", 1024), env={"DROVER_TASK": "7", "DROVER_ATTEMPT": "8"})

    def now():
        return w.seen[-1][1] if w.seen else {}
    ended = 4 * PER + 2 * 4 * PER // 10
    tap.ok(wait_for(lambda: now().get("rows_done") == ended and (now()["transfers"], now()["shards_done"]) == (held, 4)),
           "with the gate closed: %d rows done, %d transfers open" % (ended, held), now())
    v = now()
    tap.ok(g.waiting == held, "as many as the server holds", g.waiting)
    tap.eq((v["task"], v["attempt"], v["rows_in"], v["shards_in"], v["shards_done"]), ("7", "8", ROWS, SHARDS, 4), "the rest of it")
    tap.eq((v["successes"], v["failed_to_download"], v["failed_to_resize"]), (4 * PER * 8 // 10, ROWS // 10, ROWS // 10),
           "each outcome is counted")
    tap.ok(v["bytes"] == sum(os.path.getsize(os.path.join(g.out, "%05d%s" % (i, s))) for i in range(4) for s in (".tar", ".parquet")),
           "bytes are those of the finished shards", v)
    tap.eq(v["bytes_fetched"], 4 * PER * 8 // 10 * len(BODY) + ROWS // 10 * len(b"no picture"), "bytes that came in, to the byte")
    rss = sum(int(open("/proc/%d/statm" % c).read().split()[1]) * 4096 for c in [p.pid] + descendants(p.pid))
    tap.ok(0.2 * rss < v["memory_bytes"] <= 1.1 * rss, "memory between a share and the sum of the resident sets",
           "%d of %d" % (v["memory_bytes"], rss))
    g.open.set()
    so, se = p.communicate(timeout=patience(60))
    wait_for(lambda: now().get("rows_done") == ROWS)
    w.go_on = False
    v = now()
    tap.eq((p.returncode, v["rows_done"], v["shards_done"], v["transfers"], v["eta_seconds"]), (0, ROWS, SHARDS, 0, 0), "at the end")
    tap.eq(v["bytes_fetched"], g.served + ROWS // 10 * len(b"no picture"), "and every byte the server sent is counted once")
    tap.eq(w.wrong, [], "never half written, in %d readings" % len(w.seen))
    falls = [(a, b) for (_, a), (_, b) in zip(w.seen, w.seen[1:]) for k in (
        "rows_done", "shards_done", "successes", "failed_to_download", "failed_to_resize", "bytes", "bytes_fetched", "updated")
        if b[k] < a[k]]
    tap.eq(falls, [], "nothing ever falls")
    sums = [v for _, v in w.seen if v["rows_done"] != v["successes"] + v["failed_to_download"] + v["failed_to_resize"]]
    tap.eq(sums, [], "and each reading adds up")
    tap.ok(len(json.dumps(v)) < 1024, "in less than 1 kB")


def test_eta(d):
    """A steady server: from a fifth on the time told is the time it takes."""
    g = Gate(d, "eta", first_held=24, rows=360, delay=0.12)
    w = Watcher(g.out)
    p = start(g.args("--progress_interval", 1, "--thread_count", 4))
    p.communicate(timeout=patience(60))
    end = time.monotonic()
    w.go_on = False
    told = [(v["rows_done"] / 360, v["eta_seconds"], end - t) for t, v in w.seen if v["rows_done"] >= 72 and v["eta_seconds"]]
    tap.ok(p.returncode == 0 and len(told) >= 3, "%d times told after a fifth" % len(told), w.seen)
    # The server is as steady as the machine: most of what is told counts, and the speed is the one of this very run.
    right = [x for x in told if 0.6 * x[2] - 1.5 <= x[1] <= 1.5 * x[2] + 1.5]
    tap.ok(2 * len(right) > len(told), "the time left is told within half of the truth", told)
    (t0, first), (t1, last) = w.seen[0], w.seen[-1]
    speed = (last["rows_done"] - first["rows_done"]) / (t1 - t0)
    v = next(v for _, v in w.seen if v["rows_done"] >= 72)
    tap.ok(0.4 * speed < v["rows_per_second"] < 2.5 * speed, "and the speed", (v["rows_per_second"], speed))


class Terminal:
    """The worker on a pseudo-terminal; text is all it wrote."""

    def __init__(self, args, columns=80, env=None, verb="download", both=False):
        self.master, slave = pty.openpty()
        self.resize(columns)
        e = dict(os.environ, DROVER_ML_ROOT="/nonexistent", TERM="xterm", LC_ALL="C.UTF-8")
        for k in ("NO_COLOR", "COLUMNS"):
            e.pop(k, None)
        e.update(env or {})
        self.p = subprocess.Popen([WORKER, verb] + [str(a) for a in args], env=e, stdin=slave, stdout=slave, stderr=slave if both else
                                  subprocess.PIPE, text=True)
        os.close(slave)
        self.text = ""

    def resize(self, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, structs.pack("HHHH", 24, columns, 0, 0))

    def read_until(self, cond, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if cond(self.text):
                return True
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    data = os.read(self.master, 65536)
                except OSError:
                    data = b""
                if not data:
                    return cond(self.text)
                self.text += data.decode()
        return False

    def end(self):
        self.read_until(lambda t: False, 30)
        self.p.wait()
        if self.p.stderr:
            self.p.stderr.close()
        os.close(self.master)


def drawn(text):
    """The states of the line, one per redraw, without escapes."""
    return [re.sub(r"\x1b\[[0-9;]*[mK]", "", x) for x in re.split(r"[\r\n]+", text) if x]


def test_terminal(d):
    g = Gate(d, "tty", 3)
    t = Terminal(g.args("--thread_count", 100, "--host_connections", 200))
    tap.ok(t.read_until(lambda x: "100 open" in drawn(x)[-1] and "60/160" in drawn(x)[-1] if x else False), "a bar with the open transfers", t.text[-300:])
    bars = drawn(t.text)
    half = bars[-1]
    tap.ok("\u2588" in half and "\u2591" in half and " 37 %" in half and "60/160 rows" in half, "how far, as a bar and in figures", half)
    tap.ok("\x1b[32m" in t.text, "in colour")
    tap.ok(all(len(x) <= 79 for x in bars), "within 80 columns", max(bars, key=len))
    t.resize(30)
    tap.ok(t.read_until(lambda x: len(drawn(x)[-1]) <= 29), "it follows the window's width", drawn(t.text)[-1])
    t.resize(200)
    tap.ok(t.read_until(lambda x: "60/160 rows" in drawn(x)[-1] and "open" in drawn(x)[-1]), "both ways", drawn(t.text)[-1])
    g.open.set()
    t.end()
    lines_ = [x for x in t.text.replace("\r\n", "\n").split("\n") if x]
    tap.ok(t.p.returncode == 0 and len(lines_) == 2 and "100 %" in drawn(lines_[0])[-1] and "160/160" in drawn(lines_[0])[-1],
           "at the end the bar is full, on one line", lines_[-2:])
    tap.ok("worker  - success: 1.000" in lines_[1] and "count: 160 of 160" in lines_[1], "and the summary follows", lines_[1])

    for name, env, good in (
            ("NO_COLOR", {"NO_COLOR": "1"}, lambda x: "\x1b[3" not in x and "\u2588" in x),
            ("an empty NO_COLOR", {"NO_COLOR": ""}, lambda x: "\x1b[32m" in x),
            ("a locale without UTF-8", {"LC_ALL": "C"}, lambda x: x.isascii() and "##" in x),
            ("a dumb terminal", {"TERM": "dumb"}, lambda x: "\x1b" not in x and "\rw" not in x and x.count("worker  - ") >= 2)):
        out = os.path.join(d, "tty-" + re.sub(r"\W", "", name))
        t = Terminal(g.args(out=out), env=env)
        t.end()
        tap.ok(t.p.returncode == 0 and good(t.text), "on %s" % name, t.text[-400:])
    rc, so, se = run(g.args(out=g.out + "-pipe"))
    tap.ok(rc == 0 and "\x1b" not in so and "\r" not in so and so.count("worker  - ") >= 2, "no bar where it is no terminal", so)

    g = Gate(d, "tty-both", 3)
    t = Terminal(g.args(), both=True)
    t.read_until(lambda x: "60/160" in drawn(x)[-1] if x else False)
    t.p.terminate()
    t.end()
    told = [x for x in t.text.replace("\r\n", "\n").split("\n") if "Stopping: " in x]
    tap.ok(t.p.returncode == 143 and len(told) == 1 and re.search("\r\x1b\\[KStopping: [^\r]*$", told[0]),
           "a line on standard error takes the bar's place", told)

    root = d + "/tty-shards"
    for s in range(3):
        write_tar("%s/%d.tar" % (root, s), sample("%04d" % s, s))
    t = Terminal(["--input", root, "--output", d + "/tty-index"], verb="index")
    t.end()
    tap.ok(t.p.returncode == 0 and "3/3 shards" in t.text and "shards: 3 of 3 - pairs: 3" in t.text, "index has one too", t.text)


with Folder() as d:
    local = Local(d)
    try:
        test_hosts_hang(d)
        test_names_hang(d)
        test_decoders_stopped(d)
        test_nobody_reads(d)
        test_signals(d)
        test_bucket_stalls(d, local)
        test_truth(d)
        test_eta(d)
        test_terminal(d)
    finally:
        local.stop()
sys.exit(tap.done())
