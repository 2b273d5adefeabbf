#!/usr/bin/python3
"""Aim: several hosts that share one part write what one host writes, byte for byte, whatever dies; a host that
never comes ends the part with a clear reason. Method: three workers named by DROVER_HOSTS or resourceconfig.json
on one output, in a folder and in drover-local's S3, compared with the output of one worker; SIGKILL of random
hosts at random moments, then either all hosts again (as a job's next attempt) or only the killed ones (by hand).
Usage: worker_shared.py [KILLS]; SEED in the environment repeats a run's choices.
"""
import os
import random
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.proxy import Proxy
from kit.worker import *
from kit.worker.s3 import *

tap = Tap()
SHARDS, PER = 11, 6
ROWS = SHARDS * PER - 2
HOSTS = ["algo-1", "algo-10", "algo-2"]  # sorted as text
FAST = ["--hosts_patience", 3, "--progress_interval", 1, "--stop_seconds", 4]


class Part:
    """A part, its server, and the content of the output of one host."""

    def __init__(self, d):
        self.d, self.server, self.serial = d, Server(), 0
        pictures = [encode(photo(120, 90, i), "JPEG", quality=90) for i in range(4)]
        answers = [(200, p) for p in pictures] + [(404, b""), (200, b"no picture")]
        rng = random.Random(5)
        self.hold = None  # a path whose answer waits until the event is set
        self.gate = threading.Event()
        for i in range(ROWS):
            status, body = answers[i % len(answers)]

            def answer(h, i=i, s=status, b=body, p=rng.uniform(0, 0.02)):
                if self.hold == i:
                    self.gate.wait(60)
                time.sleep(p)
                h.answer(s, {}, b)
            self.server.routes["/%d" % i] = answer
        self.path = os.path.join(d, "part.parquet")
        make_parquet(self.path, [{"url": self.server.url("/%d" % i), "caption": "row %d" % i} for i in range(ROWS)],
                     {"url": "VARCHAR", "caption": "VARCHAR"})

    def fresh(self, local=None):
        self.serial += 1
        name = "out%d" % self.serial
        self.local = local
        self.uri = "s3://data/" + name if local else os.path.join(self.d, name)
        self.out = local.folder("data", name) if local else self.uri

    def start(self, host=None, hosts=HOSTS, more=(), **env):
        e = dict(self.local.env() if self.local else {}, **env)
        if host is not None:
            e.update(DROVER_HOSTS=",".join("%s=127.0.0.%d" % (h, i + 1) for i, h in enumerate(hosts)), DROVER_HOST=host)
        return start(["--parquet", self.path, "--output", self.uri, "--number_sample_per_shard", PER, "--allow-net",
                      self.server.net, "--thread_count", 4, "--processes_count", 1] + FAST + list(more), env=e,
                     start_new_session=True)

    def names(self):
        return sorted(os.listdir(self.out)) if os.path.isdir(self.out) else []

    def shards(self):
        return {int(n[:5]) for n in self.names() if n.endswith("_stats.json") and n[0].isdigit()}

    def content(self):
        m = load(self.out, "_manifest.json")
        record = load(self.out, "_part.json")
        found = {"names": self.names(), "record": record,
                 "manifest": {k: v for k, v in m.items() if k not in ("started", "ended", "objects", "sha256")},
                 "objects": [(o["key"], o["size"]) for o in m["objects"]],
                 "progress": {k: v for k, v in load(self.out, "_progress.json").items()
                              if k in ("rows_in", "rows_done", "shards_in", "shards_done", "successes", "failed_to_download",
                                       "failed_to_resize")}}
        for i in range(SHARDS):
            name = "%05d" % i
            found[name + ".tar"] = dict(members(os.path.join(self.out, name + ".tar")))
            found[name + ".parquet"] = open(os.path.join(self.out, name + ".parquet"), "rb").read()
            stats = load(self.out, name + "_stats.json")
            found[name + "_stats.json"] = {k: v for k, v in stats.items() if "time" not in k and k != "duration"}
        return found

    def odd(self, want, progress=True, alive=None):
        """What differs from one host's output; a host that is alive may say how far it is, whenever it comes to it."""
        got = self.content()
        if alive is not None:
            got["names"] = [n for n in got["names"] if n != "_progress-%d.json" % alive]
        if not progress:
            got["progress"] = want["progress"]
        bad = ["%s: %.300r, one host %.300r" % (k, got.get(k), want.get(k)) for k in sorted(set(got) | set(want))
               if got.get(k) != want.get(k)]
        bad += ["beside: %r" % sorted(set(got["names"]) ^ set(want["names"]))] if got.get("names") != want["names"] else []
        return bad + manifest_faults(self.out, self.local is not None) + ["left: %s" % u for u in
                                                                        (self.local.uploads() if self.local else [])]


def ended(processes):
    """[(status, stderr)] of started workers."""
    texts = [finish(p) for p in processes]
    return [(rc, err) for rc, _, err in texts]


def test_equal(part, local):
    """Returns the content of one host's output."""
    part.fresh(local)
    rc, err = ended([part.start()])[0]
    tap.eq(rc, 0, "one host ends well")
    want = part.content()
    tap.eq(want["progress"]["rows_done"], ROWS, "and reports all rows")
    part.fresh(local)
    part.server.hits.clear()
    got = ended([part.start(h) for h in HOSTS])
    tap.eq([rc for rc, _ in got], [0, 0, 0], "three hosts end well")
    tap.eq(part.odd(want), [], "and write what one host writes, its names and its manifest")
    tap.eq(set(part.server.hits["/%d" % i] for i in range(ROWS)), {1}, "every URL was asked for once")
    again = finish(part.start(HOSTS[1]))
    tap.ok(again[0] == 0 and "already finished" in again[1], "a host that comes once more finds it finished", again)
    return want


def test_one_by_one(part, want):
    part.fresh()
    first = ended([part.start(HOSTS[1])])[0]
    tap.ok(first[0] == 0 and part.shards() == set(range(1, SHARDS, 3)) and "_manifest.json" not in part.names(),
           "the second host alone does every third shard", (first, part.names()))
    p = part.start(HOSTS[0])
    tap.ok(wait_for(lambda: part.shards() == {i for i in range(SHARDS) if i % 3 < 2} and
                    "_host-0-of-3.json" in part.names()), "the first host does its own")
    last = ended([part.start(HOSTS[2])])[0]
    tap.eq((last[0], ended([p])[0][0]), (0, 0), "it waits until the third has come")
    tap.eq(part.odd(want, progress=False), [], "the part is that of one host")


def test_never_comes(part, want):
    part.fresh()
    p = [part.start(HOSTS[0]), part.start(HOSTS[1])]
    (rc0, err0), (rc1, err1) = ended(p)
    missing = len(range(2, SHARDS, 3))
    tap.ok(rc1 == 0 and rc0 == 75 and "host 'algo-2' (3 of 3) has reported no progress for" in err0 and
           "%d of its %d shards" % (missing, missing) in err0, "a host that never comes: network, with its name", (rc0, err0))
    tap.ok("_manifest.json" not in part.names(), "without a manifest")
    part.server.hits.clear()
    rc, err = ended([part.start(HOSTS[2])])[0]
    m = load(part.out, "_manifest.json")
    tap.ok(rc == 0 and m["rows_out"] == ROWS, "it comes after all: it finishes the part", (rc, err))
    tap.eq(sum(part.server.hits["/%d" % i] for i in range(ROWS) if i // PER % 3 != 2), 0, "no other shard was fetched again")
    rc, _, err = finish(part.start(HOSTS[0]))
    tap.eq((rc, part.odd(want, progress=False)), (0, []), "the first host once more removes what hosts told each other")


def test_stop_while_waiting(part, want):
    part.fresh()
    p = part.start(HOSTS[0], more=["--hosts_patience", 600])
    tap.ok(wait_for(lambda: "_host-0-of-3.json" in part.names()), "the first host waits")
    p.send_signal(signal.SIGTERM)
    rc, out, err = finish(p, 20)
    tap.eq(rc, 143, "SIGTERM ends its wait as stopped")
    got = ended([part.start(h) for h in HOSTS])
    tap.eq(([rc for rc, _ in got], part.odd(want)), ([0, 0, 0], []), "all hosts once more: finished")


def test_late(part, local, want):
    """A host begins again; before it withdraws what it said earlier, the others finish the part by that and clean up."""
    part.fresh(local)
    first = ended([part.start(h) for h in HOSTS[1:]])
    held, go = threading.Event(), threading.Event()
    proxy = Proxy(int(local.url.rsplit(":", 1)[1]))

    def hold(data):
        if data.startswith(b"DELETE ") and b"_host-2-of-3.json" in data.split(b"\r\n", 1)[0]:
            held.set()
            go.wait(60)
    proxy.on_up = hold
    late = part.start(HOSTS[2], AWS_ENDPOINT_URL="http://127.0.0.1:%d" % proxy.port)
    tap.ok(wait_for(held.is_set), "a host begins once more and is held up")
    rest = ended([part.start(HOSTS[0])])
    tap.eq((part.odd(want, progress=False, alive=2), late.poll()), ([], None), "meanwhile the first host finishes the part")
    go.set()
    last = ended([late])
    proxy.close()
    tap.eq([rc for rc, _ in first + rest + last], [0] * 4, "all of them end well")
    tap.eq(part.odd(want, progress=False), [], "and the one that came late leaves nothing")


def test_other_number(part, want):
    """What three hosts began, two finish."""
    part.fresh()
    part.hold = 5 * PER  # of shard 5, the third host's
    p = [part.start(h) for h in HOSTS]
    wait_for(lambda: part.shards() >= {0, 1, 2, 3, 4})
    for x in p:
        os.killpg(x.pid, signal.SIGKILL)
        x.communicate()
    part.gate.set()
    part.hold = None
    got = ended([part.start(h, hosts=["a", "b"]) for h in ("a", "b")])
    tap.eq(([rc for rc, _ in got], part.odd(want)), ([0, 0], []), "two hosts go on where three were killed")


def test_contract(part, want, d):
    part.fresh()
    p = []
    for host in ("algo-1", "algo-2"):
        root = os.path.join(d, host)
        os.makedirs(os.path.join(root, "input/config"))
        os.makedirs(os.path.join(root, "output"))
        json.dump({"current_host": host, "hosts": ["algo-2", "algo-1"], "network_interface_name": "lo"},
                  open(os.path.join(root, "input/config/resourceconfig.json"), "w"))
        p.append(part.start(DROVER_ML_ROOT=root, DROVER_TASK="12", DROVER_ATTEMPT="34"))
    got = ended(p)
    tap.eq([rc for rc, _ in got], [0, 0], "resourceconfig.json names the hosts")
    m = load(part.out, "_manifest.json")
    tap.eq((m["task"], m["attempt"], m["rows_in"], m["statuses"]), ("12", "34", ROWS, want["manifest"]["statuses"]),
           "one manifest of the task and attempt, with the counts of all rows")
    tap.eq(part.names(), want["names"], "nothing of a host is left beside it")


def test_refused(part, d):
    part.fresh()
    for what, p, words in (
            ("a host that is not in the list", part.start("algo-3"), "'algo-3', is not among the 3 hosts"),
            ("no own name", part.start(None, DROVER_HOSTS="a,b"), "this host, '', is not among the 2 hosts"),
            ("a host twice", part.start("a", hosts=["a", "b", "a"]), "host 'a' is there twice"),
            ("an empty name", part.start("a", hosts=["a", ""]), "the name of host 2 has 0 bytes"),
            ("overwrite", part.start(HOSTS[0], more=["--incremental_mode", "overwrite"]), "possible on one only")):
        rc, _, err = finish(p)
        tap.ok(rc == 65 and words in err, what + " is refused", (rc, err))
    tap.eq(part.names(), [], "and nothing is written")


def storm(part, local, want, kills, seed):
    r = random.Random(seed)
    n, rounds = 0, 0
    while n < kills:
        part.fresh(local if rounds % 2 else None)
        rounds += 1
        by_hand = rounds % 3 == 0
        alive, bad, tries = {h: part.start(h) for h in HOSTS}, [], 0
        while alive:
            tries += 1
            victims = r.sample(sorted(alive), r.randint(1, len(alive))) if n < kills and tries < 6 else []
            moment = time.monotonic() + r.uniform(0.02, 1.2)
            while victims and time.monotonic() < moment:
                time.sleep(0.002)
            killed = []
            for h in victims:
                if alive[h].poll() is None:
                    os.killpg(alive[h].pid, signal.SIGKILL)
                    killed.append(h)
                    n += 1
            if killed and not by_hand:  # one host's end is the end of all
                for h in alive:
                    os.killpg(alive[h].pid, signal.SIGKILL) if alive[h].poll() is None else None
            texts = {h: finish(p) for h, p in alive.items()}
            failed = {h: t for h, t in texts.items() if t[0] != 0}
            odd = {h: t for h, t in failed.items() if t[0] not in (-signal.SIGKILL, 75)}
            bad += ["%s: %r" % x for x in odd.items() if not local or "another writer" not in x[1][2]]
            alive = {h: part.start(h) for h in (failed if by_hand else HOSTS if failed else ())}
            if tries > 30:
                bad.append("it never ended")
                break
        if not bad:
            bad = part.odd(want, progress=not by_hand and tries == 1)
        tap.ok(not bad, "%s %d: as one host, after %d kills in all%s" %
               ("s3" if part.local else "folder", part.serial, n, ", by hand" if by_hand else ""), "\n".join(map(str, bad)))
    print("# seed %d: %d kills in %d outputs" % (seed, n, rounds), flush=True)


with Folder() as d:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    seed = int(os.environ.get("SEED", 7))
    local = Local(d)
    try:
        part = Part(d)
        test_equal(part, local)
        want = test_equal(part, None)
        test_one_by_one(part, want)
        test_never_comes(part, want)
        test_stop_while_waiting(part, want)
        test_late(part, local, want)
        test_other_number(part, want)
        test_contract(part, want, d)
        test_refused(part, d)
        storm(part, local, want, kills, seed)
    finally:
        local.stop()
sys.exit(tap.done())
