#!/usr/bin/env python3
"""Aim: the sample trainer is honest: its losses are those of gradient descent, have the same bits on 1, 2 and 4
hosts, and after a stop or a kill; what it leaves is served. Method: hosts as processes of the container contract,
each with its own address; the first steps recomputed here; the files compared byte by byte.
"""
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import BIN, TOP, Tap, free_port, wait_for

WORKER = os.path.join(BIN, "drover-worker")


def write_index(path, rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        for caption, size in rows:
            f.write(json.dumps({"path": "x.tar", "offset": 0, "size": size, "caption": caption}) + "\n")


def rows_of(n):
    words = ["cat", "dog", "house", "tree", "sea", "Wide", "small", "red"]
    return [(" ".join(words[(i * k) % 8] for k in range(1, 2 + i % 5)), 1000 + 977 * (i % 8) * (1 + i % 5)) for i in range(n)]


class Job:
    """A job of n hosts; its folders stay, as SageMaker's checkpoints do."""

    def __init__(self, d, name, n, rows):
        self.hosts = ["algo-%d" % (i + 1) for i in range(n)]
        self.roots = [os.path.join(d, name, h) for h in self.hosts]
        self.port = free_port()
        for h, root in zip(self.hosts, self.roots):
            for folder in ("input/config", "output", "checkpoints", "model"):
                os.makedirs(os.path.join(root, folder))
            write_index(root + "/input/data/index/index.jsonl", rows)
            with open(root + "/input/config/resourceconfig.json", "w") as f:
                json.dump({"current_host": h, "hosts": self.hosts, "network_interface_name": "eth0"}, f)

    def start(self, *args, only=None):
        where = ",".join("%s=127.0.9.%d" % (h, i + 1) for i, h in enumerate(self.hosts))
        self.ps = [subprocess.Popen([WORKER, "train-sample", "--port", str(self.port), *[str(a) for a in args]], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, env={**os.environ, "DROVER_ML_ROOT": root, "DROVER_HOSTS": where})
                   for i, root in enumerate(self.roots) if only is None or i in only]
        return self

    def end(self):
        outs = [p.communicate(timeout=120) for p in self.ps]
        self.codes = [p.returncode for p in self.ps]
        self.err = "".join(e for _, e in outs)
        self.losses = re.findall(r"^(step=\d+ loss=\S+)", outs[0][0], re.M)
        self.said = [o for o, _ in outs]
        return self

    def run(self, *args):
        return self.start(*args).end()

    def file(self, name, host=0):
        path = os.path.join(self.roots[host], name)
        return open(path, "rb").read() if os.path.exists(path) else None

    def step(self):
        text = self.file("checkpoints/model.json")
        return json.loads(text)["step"] if text else 0


def is_gradient_descent(tap, d):
    caption, size, rate = "a Cat on a cat", 5000, 0.25
    w, want = {}, []
    words = [1 + zlib.crc32(x.lower().encode()) % 256 for x in caption.split()]
    for _ in range(3):
        error = w.get(0, 0) + sum(w.get(i, 0) for i in words) / math.sqrt(len(words)) - math.log2(size) / 20
        want.append(0.5 * error * error)
        w[0] = w.get(0, 0) - rate * error
        for i in words:
            w[i] = w.get(i, 0) - rate * error / math.sqrt(len(words))
    job = Job(d, "one-row", 1, [(caption, size)]).run("--steps", 3, "--log_steps", 1, "--batch", 8, "--learning_rate", rate)
    got = [float(x.split("loss=")[1]) for x in job.losses]
    tap.ok(job.codes == [0] and len(got) == 3 and all(abs(a - b) < 1e-12 for a, b in zip(got, want)), "the losses of gradient descent", (got, want, job.err))


def same_bits(tap, d):
    args = ("--steps", 400, "--log_steps", 1, "--checkpoint_steps", 100, "--batch", 60)
    jobs = {n: Job(d, "hosts-%d" % n, n, rows_of(500)).run(*args) for n in (1, 2, 3, 4, 8)}
    first = jobs[1]
    values = [float(x.split("loss=")[1]) for x in first.losses]
    tap.ok(all(j.codes == [0] * n for n, j in jobs.items()), "1, 2, 3, 4 and 8 hosts train to the end", [(j.codes, j.err[-300:]) for j in jobs.values()])
    tap.ok(len(values) == 400 and values[-1] < values[0] / 100, "the loss falls", values[::50])
    tap.ok(all(j.losses == first.losses for j in jobs.values()), "they print the same losses", [j.losses[-1:] for j in jobs.values()])
    tap.ok(all(j.file("model/model.json") == first.file("model/model.json") is not None for j in jobs.values()), "and leave the same model")
    four = jobs[4]
    tap.ok(four.file("model/model.json", 1) is None and four.said[1] == "" and "hosts=4" in four.said[0], "the first host speaks for all")
    other = Job(d, "seed", 1, rows_of(500)).run(*args, "--seed", 2)
    tap.ok(other.losses != first.losses, "another seed is another run")
    other.run(*args)
    tap.ok(other.losses == first.losses and "checkpoint_of_another_run" in other.err, "whose checkpoint is not taken", other.err)
    return args, first


def goes_on(tap, d, args, want):
    for sig, code, n in ((signal.SIGTERM, 143, 1), (signal.SIGTERM, 143, 2), (signal.SIGKILL, -9, 2)):
        job = Job(d, "%s-%d" % (sig.name, n), n, rows_of(500))
        for least in (20, 150):
            job.start(*args, "--checkpoint_steps", 10, "--step_ms", 2)
            wait_for(lambda: job.step() >= least, 60)
            for p in job.ps:
                p.send_signal(sig)
            job.end()
            ends = (code, 75) if sig == signal.SIGKILL else (code,)  # a host may see that the first one is gone
            if any(c not in ends for c in job.codes) or job.file("model/model.json") is not None:
                tap.ok(False, "%s ends %d hosts without a model" % (sig.name, n), (job.codes, job.err))
        was = job.step()
        job.run(*args)
        tap.ok(job.codes == [0] * n and 150 <= was < 400 and job.file("model/model.json") == want.file("model/model.json") and
               job.losses == want.losses[-len(job.losses):], "%s twice on %d hosts: the same bits in the end" % (sig.name, n), (was, job.codes, job.err))


    job = Job(d, "one-signal", 2, rows_of(500)).start(*args, "--step_ms", 2, "--checkpoint_steps", 5)
    wait_for(lambda: job.step() >= 5, 60)
    job.ps[1].send_signal(signal.SIGTERM)
    job.end()
    tap.ok(job.codes == [143, 143] and job.file("model/model.json") is None, "one signal ends all hosts", (job.codes, job.err))


def troubles(tap, d):
    job = Job(d, "gone", 2, rows_of(50)).start("--steps", 1000000, "--step_ms", 5, "--checkpoint_steps", 5)
    wait_for(lambda: job.step() >= 5, 60)
    job.ps[1].kill()
    job.end()
    text = (job.file("output/failure") or b"").decode()
    tap.ok(job.codes == [75, -9] and text.startswith("network: ") and "algo-2" in text, "a host that dies ends the job, and is named", (job.codes, text))
    job = Job(d, "alone", 2, rows_of(50)).start("--steps", 10, "--wait_seconds", 1, only=[1]).end()
    tap.ok(job.codes == [75] and "does not answer" in job.err, "the first host does not come", (job.codes, job.err))
    job = Job(d, "rows", 2, rows_of(50))
    write_index(job.roots[1] + "/input/data/index/index.jsonl", rows_of(51))
    job.run("--steps", 10)
    tap.ok(job.codes[0] == 65 and "other rows or settings" in job.err, "hosts with other rows are refused", (job.codes, job.err))
    job = Job(d, "waits", 2, rows_of(50)).start("--steps", 10, only=[0])
    wait_for(lambda: listens("127.0.9.1", job.port), 30)
    job.ps[0].send_signal(signal.SIGTERM)
    tap.ok(job.end().codes == [143], "who waits for others obeys SIGTERM", (job.codes, job.err))
    for what, args, code, words in (("no index", ("--input", d + "/nowhere"), 65, "cannot open"), ("a rate of words", ("--learning_rate", "fast"), 2, "expected a number"),
                                    ("no steps", ("--steps", 0), 2, "steps")):
        job = Job(d, what.replace(" ", "-"), 1, rows_of(5)).run(*args)
        tap.ok(job.codes == [code] and words in job.err, what + " is refused", (job.codes, job.err))
    job = Job(d, "line", 1, rows_of(5))
    with open(job.roots[0] + "/input/data/index/index.jsonl", "a") as f:
        f.write("{\"size\": \n")
    tap.ok(job.run().codes == [65] and "line 6" in job.err, "a broken line is named", job.err)
    job = Job(d, "ckpt", 1, rows_of(5))
    with open(job.roots[0] + "/checkpoints/model.json", "w") as f:
        f.write("{}")
    tap.ok(job.run("--steps", 3).codes == [0] and "checkpoint_unusable" in job.err, "a broken checkpoint is begun anew", job.err)


def listens(host, port):
    for line in open("/proc/net/tcp").readlines()[1:]:
        f = line.split()
        if f[3] == "0A" and int(f[1].split(":")[1], 16) == port:
            return True
    return False


def ask(port, path, body=None, method=None):
    req = urllib.request.Request("http://127.0.0.1:%d%s" % (port, path), data=body, method=method)
    try:
        with urllib.request.urlopen(req, timeout=20) as r:
            return r.status, json.loads(r.read())
    except urllib.error.HTTPError as e:
        return e.code, json.loads(e.read())


def serves(tap, want):
    port = free_port()
    p = subprocess.Popen([WORKER, "serve", "--port", str(port), "--address", "127.0.0.1"], env={**os.environ, "DROVER_ML_ROOT": want.roots[0]},
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: listens("127.0.0.1", port) or p.poll() is not None, 30)
    tap.eq(ask(port, "/ping")[0], 200, "GET /ping")
    model = [float.fromhex(x) for x in json.loads(want.file("model/model.json"))["weights"]]
    caption = "Red house"
    y = model[0] + sum(model[1 + zlib.crc32(x.lower().encode()) % 256] for x in caption.split()) / math.sqrt(2)
    s, b = ask(port, "/invocations", json.dumps({"caption": caption}).encode())
    tap.ok(s == 200 and abs(b["bytes"] / 2 ** (20 * y) - 1) < 1e-9, "POST /invocations answers by the model", (s, b, 2 ** (20 * y)))
    s, many = ask(port, "/invocations", json.dumps([{"caption": caption}] * 3).encode())
    tap.ok(s == 200 and many == [b] * 3, "a list in, a list out", many)
    for what, path, body, method, code in (("no JSON", "/invocations", b"{", None, 400), ("no caption", "/invocations", b"{}", None, 400),
                                           ("a number", "/invocations", b"[1]", None, 400), ("another path", "/x", None, None, 404),
                                           ("GET of invocations", "/invocations", None, None, 405), ("a body of 2 MB", "/invocations", b" " * (2 << 20), None, 413)):
        try:
            got = ask(port, path, body, method)
        except OSError:  # the answer came before the body was sent
            got = (413, {"error": "closed"})
        tap.ok(got[0] == code and got[1]["error"], what + ": %d" % code, got)
    with socket.create_connection(("127.0.0.1", port)) as c:  # half a request, then nothing
        c.sendall(b"POST /invocations HTTP/1.1\r\nContent-Le")
    tap.eq(ask(port, "/ping")[0], 200, "who leaves in the middle of a request harms nobody")
    p.send_signal(signal.SIGTERM)
    so, se = p.communicate(timeout=60)
    tap.eq(p.returncode, 0, "SIGTERM ends it well")
    r = subprocess.run([WORKER, "serve-sample", "--model", "/nowhere/model.json"], capture_output=True, text=True)
    tap.ok(r.returncode == 65 and "/nowhere/model.json" in r.stderr, "a model that is not there is named", r.stderr)


def main():
    tap = Tap()
    d = tempfile.mkdtemp(prefix="train-", dir=os.path.join(TOP, "build"))
    try:
        is_gradient_descent(tap, d)
        args, want = same_bits(tap, d)
        goes_on(tap, d, args, want)
        troubles(tap, d)
        serves(tap, want)
    finally:
        shutil.rmtree(d, ignore_errors=True)
    return tap.done()


sys.exit(main())
