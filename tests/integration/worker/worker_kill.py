#!/usr/bin/python3
"""Aim: SIGKILL at any moment of a worker's life costs at most the open shards: after restarts the output
equals that of an undisturbed run, key for key and byte for byte, nothing temporary is left, and finished
work is not fetched again. Method: outputs in a folder and in drover-local's S3 (small shards of decoded
images, large ones of several parts); kills at random times and at chosen states of the output (a temporary
file or upload open, tar without parquet, parquet without stats, a shard just finished, all but the
manifest, the manifest just written); of the whole process group, the main process, the fork server, a
decoder. The web server counts requests. After each kill no process of the worker may be left. Usage:
worker_kill.py [KILLS]; SEED in the environment repeats a run's choices.
"""
import hashlib
import os
import random
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *
from kit.worker.s3 import *

tap = Tap()
CRASHED = "decoder crashed or hit a limit"
STATES = ("open", "tar", "parquet", "stats", "all", "manifest")
VICTIMS = ("main", "child", "group", "fork server", "main")  # at random times; at chosen states main and group


def session(sid):
    """Live processes of a session: everything a worker started with start_new_session consists of."""
    found = {}
    for p in os.listdir("/proc"):
        if p.isdigit():
            try:
                stat = open("/proc/%s/stat" % p).read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(stat[3]) == sid and stat[0] not in "ZX":
                found[int(p)] = int(stat[1])  # -> its parent
    return found


class Setting:
    """A part, how it is downloaded and where to, and the output of an undisturbed run."""

    def __init__(self, d, name, local, shards, per, answers, *args):
        self.name, self.d, self.local, self.shards, self.per, self.args = name, d, local, shards, per, list(args)
        self.server = Server()
        self.rows = shards * per - per // 2  # the last shard is short
        rng = random.Random(name)
        for i in range(self.rows):
            status, body = answers[i % len(answers)]
            pause = rng.uniform(0, 0.02)
            self.server.routes["/%d" % i] = lambda h, s=status, b=body, p=pause: (time.sleep(p), h.answer(s, {}, b))
        self.part = os.path.join(d, name + ".parquet")
        make_parquet(self.part, [{"url": self.server.url("/%d" % i), "caption": "row %d" % i} for i in range(self.rows)],
                     {"url": "VARCHAR", "caption": "VARCHAR"})
        self.serial = 0
        self.fresh()
        began = time.monotonic()
        p = self.start()
        texts = p.communicate(timeout=patience(100))
        self.life = time.monotonic() - began
        tap.ok(p.returncode == 0, "%s: undisturbed, %.1f s" % (name, self.life), texts[1])
        self.want = self.content()
        tap.eq(self.odd(), [], "%s: whole" % name)

    def fresh(self):
        """A new output; kills and lost decoders are counted for each."""
        self.serial += 1
        self.child_kills, self.failed = 0, []
        out = "%s%d" % (self.name, self.serial)
        self.uri = "s3://data/" + out if self.local else os.path.join(self.d, out)
        self.out = self.local.folder("data", out) if self.local else self.uri

    def start(self):
        self.server.hits.clear()
        return start(["--parquet", self.part, "--output", self.uri, "--number_sample_per_shard", self.per, "--allow-net",
                      self.server.net, "--retries", 0, "--thread_count", 4, "--processes_count", 2] + self.args,
                     env=self.local.env() if self.local else None, start_new_session=True)

    def names(self):
        try:
            return os.listdir(self.out)
        except OSError:
            return []

    def whole(self):
        names = set(self.names())
        return [i for i in range(self.shards) if all("%05d%s" % (i, x) in names for x in PIECES)]

    def digests(self, shards):
        return {(i, x): hashlib.md5(open(os.path.join(self.out, "%05d%s" % (i, x)), "rb").read()).hexdigest()
                for i in shards for x in PIECES}

    def state(self):
        """The most specific of STATES the output is in, "some" or "none"."""
        names = set(self.names())
        pieces = [tuple("%05d%s" % (i, x) in names for x in (".tar", ".parquet", "_stats.json")) for i in range(self.shards)]
        n = pieces.count((True, True, True))
        if "_manifest.json" in names:
            return "manifest"
        if (True, True, False) in pieces:
            return "parquet"
        if (True, False, False) in pieces:
            return "tar"
        if n == self.shards:
            return "all"
        if n > 0:
            return "some"
        return "open" if self.temporary() else "none"

    def temporary(self):
        return self.local.uploads() if self.local else [n for n in self.names() if n.startswith(".")]

    def content(self):
        """Everything that must be in the output again: name -> bytes or counts."""
        found = {"names": sorted(n for n in self.names() if n != "_progress.json")}
        m = load(self.out, "_manifest.json")
        found["counts"] = {k: m[k] for k in ("rows_in", "rows_out", "successes", "failed_to_download", "failed_to_resize",
                                             "bytes", "statuses")}
        for i in range(self.shards):
            name = "%05d" % i
            for n, data in members(os.path.join(self.out, name + ".tar")):
                found[n] = data
            found[name + ".parquet"] = open(os.path.join(self.out, name + ".parquet"), "rb").read()
            stats = load(self.out, name + "_stats.json")
            found[name + "_stats.json"] = {k: v for k, v in stats.items() if "time" not in k and k != "duration"}
        return found

    def keys(self, shard):
        width = len(str(self.per - 1))
        return ["%05d%0*d" % (shard, width, r) for r in range(min(self.per, self.rows - shard * self.per))]

    def odd(self):
        """Faults of the finished output."""
        rows = read_parquet(os.path.join(self.out, "*.parquet"))
        bad = [b for i in range(self.shards)
               for b in shard_faults(self.out, i, self.keys(i), [r for r in rows if r["key"][:5] == "%05d" % i])]
        bad += manifest_faults(self.out, self.local is not None) + ["left: %s" % t for t in self.temporary()]
        lost = {r["key"] for r in rows if r["error_message"] == CRASHED}  # killed decoders took them with them
        if len(lost) > self.child_kills:
            bad.append("%d killed decoders cost %r" % (self.child_kills, lost))
        got, want = self.content(), self.want if hasattr(self, "want") else None
        shards = {key[:5] for key in lost}
        for n in sorted(set(got) | set(want)) if want else ():
            of_lost = n[:5] in shards and (n.endswith((".parquet", "_stats.json")) or n.split(".")[0] in lost)
            if got.get(n) != want.get(n) and not of_lost and not (lost and n == "counts"):
                bad.append("%s: %.300r, undisturbed %.300r" % (n, got.get(n), want.get(n)))
        return bad


def target(p, victim):
    """The process to kill; None while there is no such process."""
    if victim in ("main", "group"):
        return p.pid
    below = session(p.pid)
    servers = [x for x, parent in below.items() if parent == p.pid]
    found = [x for x, parent in below.items() if parent in servers] if victim == "child" else servers
    return found[-1] if found else None


def kill(s, p, victim):
    """True when a process was killed."""
    who = target(p, victim)
    try:
        if victim == "group":
            os.killpg(who, signal.SIGKILL)
        elif who is not None:
            os.kill(who, signal.SIGKILL)
    except ProcessLookupError:
        return False
    s.child_kills += victim == "child" and who is not None
    return who is not None


def one(s, r, turn, deaths):
    """One run of a setting's output, killed once unless it ends first. turn: chooses the process and the
    time. Returns (killed process, ended).
    """
    done = s.whole()
    before = s.digests(done)
    aim = STATES[turn // 2 % len(STATES)] if turn % 2 else None
    if s.state() == "none" and r.random() < 0.25:
        aim = "none"
    victim = ("main", "group")[turn // 2 % 2] if aim else VICTIMS[turn // 2 % len(VICTIMS)]
    if s.local:
        # Delay the answer that leads to the desired state.
        slow = {"tar": ("CompleteMultipartUpload", ".tar"), "parquet": (".parquet",), "manifest": ("_manifest",)}.get(aim, ())
        s.local.faults(*[{"operation": o, "name_contains": x, "kind": "slow", "delay_seconds": 0.1,
                          "probability": 1 if o in slow or x in slow else 0.4, "seed": r.randrange(10 ** 9)}
                         for o, x in (("CompleteMultipartUpload", ""), ("PutObject", ".tar"), ("PutObject", ".parquet"),
                                      ("PutObject", "_stats"), ("PutObject", "_manifest"))])
    p = s.start()
    moment = time.monotonic() + r.uniform(0, 0.05 if aim == "none" else s.life)
    least = r.randint(min(len(done), s.shards - 1), s.shards - 1)
    while p.poll() is None:
        if aim in (None, "none"):
            if time.monotonic() >= moment and target(p, victim) is not None:
                break
            time.sleep(0.0005)
        elif aim == "open" and s.temporary():
            break
        elif aim == "stats" and len(s.whole()) > least:
            break
        elif aim == s.state():
            break
    killed = p.poll() is None and kill(s, p, victim)
    if killed and victim == "fork server":
        p.wait(60)
    err = p.communicate(timeout=patience(60))[1]
    gone = wait_for(lambda: not session(p.pid), 20)
    if not gone:
        tap.ok(False, "%s: %s killed at %s: processes are left" % (s.name, victim, aim or "a random time"), session(p.pid))
        os.killpg(p.pid, signal.SIGKILL)
    if s.digests(done) != before:
        tap.ok(False, "%s: finished shards were changed" % s.name, before)
    if any("%05d_stats.json" % i in s.names() and i not in s.whole() for i in range(s.shards)):
        tap.ok(False, "%s: stats without the rest" % s.name, s.names())
    again = [i for i in done for row in range(i * s.per, min((i + 1) * s.per, s.rows)) if s.server.hits["/%d" % row]]
    if again:
        tap.ok(False, "%s: finished shards were fetched again" % s.name, again)
    if killed and victim in ("main", "group"):
        deaths[s.state()] += 1
    elif p.returncode not in (0, -signal.SIGKILL) and not (killed and victim == "fork server"):
        s.failed.append(err)
    return victim if killed else None, p.returncode == 0


def both(deaths):
    """Some were between the pieces of a shard, and some between shards."""
    return deaths["tar"] + deaths["parquet"] > 0 and deaths["some"] + deaths["all"] > 0


def storm(settings, kills, seed):
    r = random.Random(seed)
    n, outputs, runs, deaths = 0, 0, 0, collections.Counter()
    victims = collections.Counter()
    # Where a random time falls depends on how fast the machine is: more kills while one of the two kinds is missing.
    while (n < kills or not both(deaths) and n < 4 * kills) and runs < 10 * kills:
        s = settings[outputs % len(settings)]
        s.fresh()
        ended = False
        while not ended and runs < 10 * kills:
            runs += 1
            # Let it end once in a while in any case.
            if n >= kills or r.random() < 0.1:
                p = s.start()
                err = p.communicate(timeout=patience(100))[1]
                ended = p.returncode == 0
                s.failed += [] if ended else [err]
            else:
                killed, ended = one(s, r, runs, deaths)
                if killed:
                    victims[killed] += 1
                    n += 1
        if s.local:
            s.local.faults()
        bad = s.odd() if ended else ["it never ended"]
        p = s.start()
        out = p.communicate(timeout=patience(60))
        bad += ["not finished: " + out[1]] if p.returncode != 0 or "already finished" not in out[0] else []
        bad += ["finished, but fetched again"] if s.server.hits else []
        # A request of a killed worker may reach S3 after its successor has looked: one failed attempt.
        bad += s.failed if not s.local or any("another writer" not in x for x in s.failed) else []
        outputs += 1
        tap.ok(not bad, "%s %d: as undisturbed, after %d kills in all" % (s.name, s.serial, n), "\n".join(map(str, bad)))
    print("# seed %d: %d kills in %d runs of %d outputs; killed: %s; left behind: %s" %
          (seed, n, runs, outputs, dict(victims), dict(deaths)), flush=True)
    tap.ok(n >= kills, "%d kills" % kills, n)
    tap.ok(both(deaths),
           "among them between the pieces of a shard, and between shards", dict(deaths))
    if kills >= 100:
        tap.ok(all(deaths[k] > 0 for k in ("none", "open", "tar", "parquet", "some", "all", "manifest")),
               "at every state of an output", dict(deaths))


with Folder() as d:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seed = int(os.environ.get("SEED", 4))
    local = Local(d)
    try:
        jpegs = [(200, encode(photo(200, 150, i), "JPEG", quality=90)) for i in range(5)]
        answers = jpegs + [(404, b""), (200, b"<html>no image</html>")]
        large = [(200, encode(np.random.RandomState(i).randint(0, 255, (1040, 1040, 3), np.uint8), "PNG", compress_level=0))
                 for i in range(3)] + [(404, b"")]
        storm([Setting(d, "folder", None, 7, 8, answers), Setting(d, "small", local, 7, 8, answers),
               Setting(d, "large", local, 4, 5, large, "--disable_all_reencoding", "true")], kills, seed)
    finally:
        local.stop()
sys.exit(tap.done())
