#!/usr/bin/python3
"""The download worker's speed beside what the machine gives at most, measured in the same run.

A corpus (corpus.py) is served by nginx on this machine, a new connection for each request; the
worker makes shards of it. img_per_cpu_s counts the CPU time of all the worker's processes, start
included. Its limit is what the libraries need alone (limit.c): decode, encode and hash of the same
files plus one curl transfer each; resizing, tar, JSON and parquet are not in it. Worker and limit
take turns, after a warm-up of a few rows; medians. As many processes measure the pixels' limit side by side as
the worker has for decoding: two threads of one core are each slower than one alone. Lines go to build/bench.jsonl, replacing older ones of the
same names.
http_colourful: the same over pictures of strong colours, half of whose JPEGs RGB would clip.
http_fast (--fast-decode) is measured when asked for.
Usage: bench.py [--images 500] [--rows 6000] [--runs 3] [--corpus DIR]
[--only http,http_colourful,http_fast,https_fresh,rss]"""
import argparse
import fcntl
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests"))
sys.path.insert(0, HERE)
import corpus  # noqa: E402
import kit.worker as kit  # noqa: E402

LIMIT = os.path.join(ROOT, "build", kit.VARIANT, "bench", "worker_limit")
SLOW_ROWS = 1200  # more than are under way at once
WARM_ROWS = 500
OUT = os.path.join(ROOT, "build", "bench.jsonl")
NGINX = """worker_processes 1; daemon off; pid %(dir)s/pid; error_log stderr crit;%(user)s
worker_rlimit_nofile 8192;
events { worker_connections 4000; }
http {
  access_log off; sendfile on; keepalive_timeout 0; server_tokens off;
  client_body_temp_path %(dir)s/b; proxy_temp_path %(dir)s/p; fastcgi_temp_path %(dir)s/f;
  uwsgi_temp_path %(dir)s/u; scgi_temp_path %(dir)s/s;
  types { image/jpeg jpg; image/png png; image/webp webp; }
  server { listen 127.0.0.1:%(http)d backlog=2048; root %(root)s; }
  server {
    listen 127.0.0.1:%(https)d ssl backlog=2048; root %(root)s;
    ssl_certificate %(dir)s/cert.pem; ssl_certificate_key %(dir)s/key.pem;
    ssl_session_cache off; ssl_session_tickets off;
  }
  server { # as slow as the web: so that hundreds of bodies are under way at once
    listen 127.0.0.1:%(slow)d ssl backlog=2048; root %(root)s; limit_rate 40k;
    ssl_certificate %(dir)s/cert.pem; ssl_certificate_key %(dir)s/key.pem;
  }
}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Web:
    """nginx over the corpus, http and https, no connection and no TLS session ever used twice."""

    def __init__(self, folder, root, http=None):
        self.dir, self.http, self.https, self.slow = folder, http or free_port(), free_port(), free_port()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=bench",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder + "/key.pem",
                        "-out", folder + "/cert.pem"], check=True, capture_output=True)
        user = " user root;" if os.geteuid() == 0 else ""
        with open(folder + "/nginx.conf", "w") as f:
            f.write(NGINX % dict(dir=folder, root=root, http=self.http, https=self.https,
                                 slow=self.slow, user=user))
        nginx = shutil.which("nginx") or "/usr/sbin/nginx"
        self.p = subprocess.Popen([nginx, "-p", folder, "-c", folder + "/nginx.conf"])
        for port in (self.http, self.https, self.slow):
            if not kit.wait_for(lambda: not socket.socket().connect_ex(("127.0.0.1", port))):
                sys.exit("bench: nginx does not listen")

    def url(self, scheme, name):
        port = {"http": self.http, "https": self.https, "slow": self.slow}[scheme]
        return "http%s://127.0.0.1:%d/%s" % ("" if scheme == "http" else "s", port, name)

    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        self.p.wait()


def descendants(pid):
    """pid and all below it."""
    parents = {}
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % p) as f:
                parents.setdefault(int(f.read().rsplit(")", 1)[1].split()[1]), []).append(int(p))
        except OSError:
            pass
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += parents.get(found[-1], [])
    return found


def pss_mb(pid):
    """Memory of a tree of processes, what is shared counted once."""
    total = 0
    for p in descendants(pid):
        try:
            with open("/proc/%d/smaps_rollup" % p) as f:
                total += sum(int(x.split()[1]) for x in f if x.startswith("Pss:"))
        except OSError:
            pass
    return total / 1024.0


def work(web, parquet, rows, flags=(), watch=False):
    """One run of the worker: images, CPU seconds, wall seconds, peak memory in MB (watch only). All
    rows must become images."""
    peak = [0.0]
    with kit.Folder() as out:
        args = ["--parquet", parquet, "--output", out, "--number_sample_per_shard", 1000,
                "--allow-net", "127.0.0.1:*"]
        before = os.times()
        t0 = time.monotonic()
        p = kit.start(args + list(flags), env={"SSL_CERT_FILE": web.dir + "/cert.pem"})
        ended = threading.Event()

        def look():
            while not ended.wait(0.1):
                peak[0] = max(peak[0], pss_mb(p.pid))
        watcher = threading.Thread(target=look)
        if watch:
            watcher.start()
        _, err = p.communicate()
        wall = time.monotonic() - t0
        after = os.times()
        ended.set()
        if watch:
            watcher.join()
        stats = [kit.load(out, f) for f in os.listdir(out) if f.endswith("_stats.json")]
        done = sum(x["successes"] for x in stats)
        if p.returncode != 0 or done != rows:
            sys.exit("bench: the worker made %d of %d images, exit %d: %s\n%s"
                     % (done, rows, p.returncode, [x["status_dict"] for x in stats], err[-2000:]))
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return done, cpu, wall, peak[0]


def limit(*args, env=None, times=1):
    """What worker_limit prints, figures averaged over that many running side by side."""
    ps = [subprocess.Popen([LIMIT] + [str(a) for a in args], stdout=subprocess.PIPE, text=True,
                           env=dict(os.environ, **(env or {}))) for _ in range(times)]
    got = [p.communicate()[0] for p in ps]
    if any(p.returncode != 0 for p in ps):
        sys.exit("bench: worker_limit %s failed" % (args,))
    rows = [json.loads(x) for x in got]
    return {k: statistics.mean(r[k] for r in rows) for k in rows[0]}


def put(name, value, unit, n, note, **more):
    row = dict(name=name, value=value, unit=unit, n=n, note=note, **more)
    print(json.dumps(row), flush=True)
    with open(OUT, "a+") as f:  # two programs may run side by side
        fcntl.flock(f, fcntl.LOCK_EX)
        f.seek(0)
        old = [x for x in f if x.strip() and json.loads(x)["name"] != name]
        f.truncate(0)
        f.writelines(old + [json.dumps(row) + "\n"])


class Bench:
    def __init__(self, a, web, folder):
        self.a, self.web = a, web
        with open(os.path.join(a.corpus, "list.txt")) as f:
            self.names = f.read().split()
        self.folder, self.urls = folder, {}
        # With TLS a row takes twice as long, and a start counts for half.
        self.rows = {"http": a.rows, "https": a.rows // 2, "slow": SLOW_ROWS}
        self.parquet = {scheme: self.part(scheme, n, scheme) for scheme, n in self.rows.items()}
        self.warm = {scheme: self.part(scheme, WARM_ROWS, "warm-" + scheme) for scheme in ("http", "https")}

    def part(self, scheme, rows, name):
        """A part of so many rows; its URLs are in self.urls too."""
        urls = [self.web.url(scheme, self.names[i % len(self.names)]) + "?%d" % i for i in range(rows)]
        path = os.path.join(self.folder, name + ".parquet")
        kit.make_parquet(path, [{"URL": u, "TEXT": "caption %d of the bench" % i} for i, u in enumerate(urls)],
                         {"URL": "VARCHAR", "TEXT": "VARCHAR"})
        self.urls[name] = os.path.join(self.folder, name + ".txt")
        with open(self.urls[name], "w") as f:
            f.write("".join(u + "\n" for u in urls))
        return path

    def speed(self, name, scheme, flags=(), fast=False):
        rows = self.rows[scheme]
        got, limits, walls, notes = [], [], [], {}
        env = {"SSL_CERT_FILE": self.web.dir + "/cert.pem"}
        work(self.web, self.warm[scheme], WARM_ROWS, flags)
        limit("fetch", self.urls["warm-" + scheme], WARM_ROWS, env=env)

        def pixels():
            return limit("pixels", self.a.corpus, *(["fast"] if fast else []), times=os.cpu_count())
        before = pixels()
        for _ in range(self.a.runs):
            done, cpu, wall, _ = work(self.web, self.parquet[scheme], rows, flags)
            after = pixels()
            px, before = {k: (v + after[k]) / 2 for k, v in before.items()}, after  # the machine's speed moves meanwhile
            net = limit("fetch", self.urls[scheme], rows, env=env)
            got.append(done / cpu)
            walls.append(done / wall)
            limits.append(1 / (px["cpu_s_per_image"] + net["cpu_s_per_transfer"]))
            for k in ("decode", "encode", "hash"):
                notes.setdefault(k, []).append(px[k])
            notes.setdefault("curl", []).append(net["cpu_s_per_transfer"])
        ratios = [g / m for g, m in zip(got, limits)]
        parts = ", ".join("%s %.3f" % (k, statistics.median(v) * 1000) for k, v in notes.items())
        put("img_per_cpu_s_" + name, round(statistics.median(got), 1), "img/cpu s", self.a.runs,
            "limit in ms an image: " + parts + "; %.0f img/s by the clock" % statistics.median(walls),
            limit=round(statistics.median(limits), 1),
            ratio_to_limit=round(statistics.median(ratios), 3))

    def memory(self):
        flags = ["--processes_count", 2, "--thread_count", 256, "--host_connections", 512, "--timeout", 60]
        peaks = [work(self.web, self.parquet["slow"], SLOW_ROWS, flags, watch=True)[3]
                 for _ in range(max(self.a.runs // 2, 1))]
        put("rss_mb_512_inflight", round(max(peaks), 1), "MB", len(peaks),
            "https at 40 kB a second each; all processes, shared memory once; highest of the runs", limit=250,
            ratio_to_limit=round(max(peaks) / 250, 3))

    def run(self):
        only = self.a.only
        if "http" in only:
            self.speed("http", "http")
        if "http_colourful" in only:
            self.speed("http_colourful", "http")
        if "http_fast" in only:
            self.speed("http_fast", "http", ["--fast-decode", "true"], fast=True)
        if "https_fresh" in only:
            self.speed("https_fresh", "https")
        if "rss" in only:
            self.memory()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--images", type=int, default=500)
    p.add_argument("--rows", type=int, default=6000, help="of a part; a start counts for less the longer it is")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--only", default="http,http_colourful,https_fresh,rss")
    p.add_argument("--corpus", default=os.path.join(ROOT, "build", "bench", "corpus"))
    a = p.parse_args()
    a.only = a.only.split(",")
    if not (shutil.which("nginx") or os.path.exists("/usr/sbin/nginx")):
        sys.exit("bench: nginx is missing: run make deps-test")
    a.corpus += "-%d" % a.images
    corpus.make(a.corpus, a.images)
    print("# " + corpus.describe(a.corpus), flush=True)
    folder = tempfile.mkdtemp(prefix="drover-bench-")
    web = Web(folder, a.corpus)
    later = "http_colourful" in a.only
    a.only = [x for x in a.only if x != "http_colourful"]
    try:
        Bench(a, web, folder).run()
    finally:
        web.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if later:
        colourful(a)


def colourful(a):
    """The same as http for a corpus of strong colours."""
    a.corpus += "-colourful"
    corpus.make(a.corpus, a.images, 1.3)
    print("# colourful: " + corpus.describe(a.corpus), flush=True)
    folder = tempfile.mkdtemp(prefix="drover-bench-")
    web = Web(folder, a.corpus)
    a.only = ["http_colourful"]
    try:
        Bench(a, web, folder).run()
    finally:
        web.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
