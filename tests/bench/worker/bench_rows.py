#!/usr/bin/python3
"""What dead hosts and huge parts cost the download worker.

dead_hosts_ratio, drip_hosts_ratio: images a second with one row in a hundred on a host that never
answers (or answers a byte a second), by those without such rows; both clocked from the first image
in a tar to the last, and in turns. Small pictures, each answered after a second, 128 at once: every
transfer that waits in vain is missed, and other work on the machine is not; where decoding is the
limit it is the other way round.
first_image_s_18m_rows: seconds from the worker's start to the first image in a tar, of a part with
18 million rows in row groups of DuckDB's size; and the memory it then has beside that of a part
with 100,000 rows. rss_mb_4m_row_group: peak memory on a part of one row group of 4 million rows.
Lines go to build/bench.jsonl like bench.py's.
Usage: bench_rows.py [--images 500] [--rows 1500] [--runs 2] [--only hosts,start,group]"""
import argparse
import os
import shutil
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import bench  # noqa: E402
import corpus  # noqa: E402
import latencies  # noqa: E402
import kit.worker as kit  # noqa: E402

PORT = 28731  # written into the large parts, which are kept


def deaf_socket():
    """A port on every 127.x.y.z where connections are neither taken nor refused."""
    s = socket.socket()
    s.bind(("0.0.0.0", 0))
    s.listen(0)
    fill = []
    for _ in range(8):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(("127.9.9.9", s.getsockname()[1]))
        fill.append(c)
    return s, fill


def dripper():
    """A port on every 127.x.y.z that answers a byte a second."""
    s = socket.socket()
    s.bind(("0.0.0.0", 0))
    s.listen(512)
    held = []

    def take():
        while True:
            c, _ = s.accept()
            c.setblocking(False)
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            held.append(c)

    def drip():
        while True:
            time.sleep(1)  # a byte a second
            for c in list(held):
                try:
                    c.sendall(b"x")
                except OSError:
                    held.remove(c)
                    c.close()
    for f in (take, drip):
        threading.Thread(target=f, daemon=True).start()
    return s


def tar_bytes(out):
    """Of tars finished or not; a file that has two names for a moment counts once."""
    sizes = {}
    for f in os.listdir(out):
        if f.endswith(".tar"):
            try:
                st = os.stat(os.path.join(out, f))
                sizes[st.st_ino] = st.st_size
            except OSError:
                pass
    return sum(sizes.values())


class Watch(threading.Thread):
    """Notes when the bytes in tars, finished or not, grew; and the peak of memory."""

    def __init__(self, p, out, memory=False):
        super().__init__()
        self.p, self.out, self.memory = p, out, memory
        self.seen, self.peak, self.began = [], 0.0, time.monotonic()
        self.start()

    def run(self):
        i = 0
        while self.p.poll() is None:
            n = tar_bytes(self.out)
            if n > (self.seen[-1][1] if self.seen else 0):
                self.seen.append((time.monotonic(), n))
            if self.memory and i % 10 == 0:
                self.peak = max(self.peak, bench.pss_mb(self.p.pid))
            i += 1
            time.sleep(0.02)

    def seconds(self, padding):
        """From the first image to the last: what comes after is the end of tars."""
        last = next(t for t, n in self.seen if n >= self.seen[-1][1] - padding)
        return last - self.seen[0][0]


class Rows:
    def __init__(self, a, folder):
        self.a, self.folder = a, folder
        self.store = os.path.dirname(a.corpus)
        with open(os.path.join(a.corpus, "list.txt")) as f:
            self.names = f.read().split()
        self.web = bench.Web(folder, a.corpus)

    def start(self, part, out, *flags):
        args = ["--parquet", part, "--output", out, "--number_sample_per_shard", 1000,
                "--allow-net", "127.0.0.0/8:*"]
        return kit.start(args + list(flags), env={"SSL_CERT_FILE": self.web.dir + "/cert.pem"})

    def speed(self, part, want):
        with kit.Folder() as out:
            p = self.start(part, out, "--processes_count", 1, "--thread_count", 128)
            w = Watch(p, out)
            err = p.communicate()[1]
            w.join()
            files = [f for f in os.listdir(out) if f.endswith("_stats.json")]
            stats = [kit.load(out, f) for f in files]
            done = sum(x["successes"] for x in stats)
            if p.returncode != 0 or done != want:
                sys.exit("bench: %d of %d images, exit %d, %s\n%s" % (
                    done, want, p.returncode, [x["status_dict"] for x in stats], err))
            return done / w.seconds(len(files) * 20480)

    def hosts(self):
        web, deaf, drips = latencies.Hosts(1, False, (1.0, 1.0)), deaf_socket(), dripper()
        parts, n = {}, self.a.rows
        for kind, port in (("none", 0), ("dead", deaf[0].getsockname()[1]), ("drip", drips.getsockname()[1])):
            rows = [{"URL": "http://127.7.%d.%d:%d/%d.jpg" % (i % 50, i % 250 + 1, web.port, i)} for i in range(n)]
            for i in range(50, n, 100) if port else ():
                rows[i]["URL"] = "http://127.9.%d.%d:%d/" % (i // 25600, i // 100 % 256, port)
            parts[kind] = os.path.join(self.folder, kind + ".parquet")
            kit.make_parquet(parts[kind], rows, {"URL": "VARCHAR"})
        bad = len(range(50, n, 100))
        got = {k: [] for k in parts}
        for i in range(self.a.runs):
            for kind in parts:
                got[kind].append(self.speed(parts[kind], n - (bad if kind != "none" else 0)))
        base = statistics.median(got["none"])
        for kind, name in (("dead", "dead_hosts_ratio"), ("drip", "drip_hosts_ratio")):
            value = statistics.median(got[kind]) / base
            bench.put(name, round(value, 3), "ratio", self.a.runs,
                      "medians, %d rows each, in turns; img/s without: %s, with: %s" % (
                          n, " ".join("%.0f" % x for x in got["none"]),
                          " ".join("%.0f" % x for x in got[kind])), limit=1.0, ratio_to_limit=round(value, 3))

    def part(self, name, rows, group):
        """A part of LAION's columns, made once."""
        path = os.path.join(self.store, "%s-%d.parquet" % (name, len(self.names)))
        if not os.path.exists(path):
            kit.sql("SET memory_limit='4GB'",
                    "CREATE OR REPLACE TABLE names AS SELECT row_number() OVER () - 1 AS k, * FROM read_csv('%s', header=false, "
                    "columns={'name': 'VARCHAR'})" % os.path.join(self.a.corpus, "list.txt"),
                    "COPY (SELECT i AS SAMPLE_ID, 'http://127.0.0.1:%d/' || name || '?id=' || hash(i) AS URL, "
                    "'a caption of row ' || hash(i * 7) || ' with some words to it' AS TEXT, "
                    "(i %% 900 + 100)::INTEGER AS HEIGHT, (i %% 1300 + 100)::INTEGER AS WIDTH, '?' AS LICENSE, "
                    "'UNLIKELY' AS NSFW, (hash(i) %% 10000) / 10000.0 AS similarity "
                    "FROM range(%d) t(i) JOIN names ON k = i %% %d) TO '%s' (FORMAT parquet, COMPRESSION snappy, "
                    "ROW_GROUP_SIZE %d)" % (PORT, rows, len(self.names), path + ".new", group))
            os.rename(path + ".new", path)
        return path

    def begin(self, part, seconds):
        """Seconds to the first image, and the peak of memory until so long after."""
        with kit.Folder() as out:
            p = self.start(part, out, "--caption_col", "TEXT", "--save_additional_columns", "SAMPLE_ID,NSFW")
            w = Watch(p, out, memory=True)
            kit.wait_for(lambda: w.seen, 60)
            time.sleep(seconds)
            p.send_signal(signal.SIGTERM)
            err = p.communicate()[1]
            w.join()
            if not w.seen:
                sys.exit("bench: no image\n" + err)
            return w.seen[0][0] - w.began, w.peak

    def large(self):
        self.web.stop()
        self.web = bench.Web(self.folder, self.a.corpus, http=PORT)
        small = self.part("rows-100k", 100000, 50000)
        if "start" in self.a.only:
            big = self.part("rows-18m", 18000000, 122880)
            firsts, peaks, small_peaks = [], [], []
            for _ in range(self.a.runs):
                s, peak = self.begin(big, 3)
                firsts.append(s)
                peaks.append(peak)
                small_peaks.append(self.begin(small, 3)[1])
            bench.put("first_image_s_18m_rows", round(statistics.median(firsts), 3), "s", self.a.runs,
                      "slowest %.2f s; part of %.2f GB; memory %.0f MB, of a part of 100,000 rows %.0f MB" % (
                          max(firsts), os.path.getsize(big) / 1e9, max(peaks), max(small_peaks)),
                      limit=2.0, ratio_to_limit=round(statistics.median(firsts) / 2, 3))
        if "group" in self.a.only:
            got = [self.begin(self.part("rows-4m-group", 4000000, 4200000), 3) for _ in range(self.a.runs)]
            peak = max(m for _, m in got)
            bench.put("rss_mb_4m_row_group", round(peak, 1), "MB", self.a.runs,
                      "one row group of 4 million rows, 8 columns, 5 of them read; first image after %.2f s"
                      % statistics.median(s for s, _ in got), limit=600, ratio_to_limit=round(peak / 600, 3))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--images", type=int, default=500)
    p.add_argument("--rows", type=int, default=1500)
    p.add_argument("--runs", type=int, default=2)
    p.add_argument("--only", default="hosts,start,group")
    p.add_argument("--corpus", default=os.path.join(bench.ROOT, "build", "bench", "corpus"))
    a = p.parse_args()
    a.only = a.only.split(",")
    a.corpus += "-%d" % a.images
    corpus.make(a.corpus, a.images)
    folder = tempfile.mkdtemp(prefix="drover-bench-")
    b = Rows(a, folder)
    try:
        if "hosts" in a.only:
            b.hosts()
        if "start" in a.only or "group" in a.only:
            b.large()
    finally:
        b.web.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
