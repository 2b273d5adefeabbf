#!/usr/bin/python3
"""Aim: a worker that runs for days does not grow. Method: a real worker over endless rows of every kind (good
ones on http and https, a new name for each third URL, missing ones, pages that are no images, bombs,
endless and dripping bodies, hosts that never answer, names that do not exist). Each second the memory of
all its processes (shared memory counted once) and their open descriptors are read; after a warm-up of a
third of the time the slope of both must be below a bound. To show that the check can fail, a preloaded
library then begins to leak a little per socket in the same process, first memory, then descriptors, and
must exceed the same bounds. Usage: worker_soak.py [SECONDS] [SECONDS_OF_EACH_LEAK]; SOAK_SAMPLES=FILE in
the environment keeps the samples.
"""
import hashlib
import os
import random
import signal
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *

tap = Tap()
KB_A_MINUTE_MAX = 1000  # of all processes: the allocator's slow waves
FDS_A_MINUTE_MAX = 1.0
BLOCK_S = 10  # samples are taken together by so many seconds: shards open and close
LEAK_BYTES = 2048  # with each socket
ROWS_A_SECOND_MAX = 3000
PER_SHARD = 500

NGINX = """worker_processes 1; daemon off; pid %(dir)s/pid; error_log /dev/null;%(user)s
worker_rlimit_nofile 8192;
events { worker_connections 4000; }
http {
  access_log off; sendfile on; keepalive_timeout 5; server_tokens off;
  client_body_temp_path %(dir)s/b; proxy_temp_path %(dir)s/p; fastcgi_temp_path %(dir)s/f;
  uwsgi_temp_path %(dir)s/u; scgi_temp_path %(dir)s/s;
  types { image/jpeg jpg; image/png png; image/webp webp; text/html html; }
  server { listen 127.0.0.1:%(http)d backlog=2048; root %(root)s; location /to { return 302 /3.jpg; } }
  server {
    listen 127.0.0.1:%(https)d ssl backlog=2048; root %(root)s;
    ssl_certificate %(dir)s/cert.pem; ssl_certificate_key %(dir)s/key.pem;
  }
}
"""
LEAK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int socket(int domain, int type, int protocol)
{
    static int (*real)(int, int, int);
    static unsigned n;
    if (real == NULL)
        real = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
    if (access(PLACE "/leak-memory", F_OK) == 0) {
        void *p = malloc(LEAK_BYTES);
        if (p != NULL)
            memset(p, 1, LEAK_BYTES);
    }
    int fd = real(domain, type, protocol);
    if (++n % 256 == 0 && access(PLACE "/leak-descriptors", F_OK) == 0)
        (void)dup(fd);
    return fd;
}
"""


class Names(dict):
    """Any *.soak.test is on this machine; no other name exists."""

    def get(self, name, default=None):
        return ["127.0.0.1"] if name.endswith(".soak.test") else None


class Tarpit:
    """Takes connections and says nothing, or a byte a second."""

    def __init__(self, drips):
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(4096)
        self.port, self.drips = self.sock.getsockname()[1], drips
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        self.sock.settimeout(0.05)
        open_, at = collections.deque(), 0.0
        while True:
            try:
                c = self.sock.accept()[0]
                open_.append((time.monotonic(), c))
                if self.drips:
                    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nContent-Type: image/jpeg\r\n\r\n")
            except OSError:
                pass
            while open_ and open_[0][0] < time.monotonic() - 20:
                open_.popleft()[1].close()
            if self.drips and time.monotonic() >= at:
                at = time.monotonic() + 1
                for _, c in open_:
                    try:
                        c.sendall(b"\xff")
                    except OSError:
                        pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_web(d):
    """Files, nginx, tarpits; returns (process, URLs each good for any number of rows)."""
    root = os.path.join(d, "root")
    os.makedirs(root)
    r, good = random.Random(1), []
    for i in range(60):
        kind = r.choice(["jpg"] * 6 + ["png", "webp"])
        w, h = r.randint(80, 700), r.randint(80, 500)
        good.append("%d.%s" % (i, kind) if i != 3 else "3.jpg")
        with open(os.path.join(root, good[-1]), "wb") as f:
            f.write(encode(photo(w, h, i), {"jpg": "JPEG", "png": "PNG", "webp": "WEBP"}[good[-1].split(".")[1]]))
    files = {"broken.jpg": encode(photo(300, 200, 1), "JPEG")[:4000], "page.html": b"<html>no image</html>",
             "bomb.png": png_claiming(1000000, 1000000), "wide.png": png_claiming(16000, 4000)}
    for name, data in files.items():
        open(os.path.join(root, name), "wb").write(data)
    with open(os.path.join(root, "huge.jpg"), "wb") as f:
        f.truncate(40 << 20)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=soak", "-addext", "subjectAltName=IP:127.0.0.1,DNS:*.soak.test",
                    "-keyout", d + "/key.pem", "-out", d + "/cert.pem"], check=True, capture_output=True)
    http, https = free_port(), free_port()
    with open(d + "/nginx.conf", "w") as f:
        f.write(NGINX % dict(dir=d, root=root, http=http, https=https, user=" user root;" if os.geteuid() == 0 else ""))
    nginx = subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx", "-p", d, "-c", d + "/nginx.conf"])
    for port in (http, https):
        wait_for(lambda: not socket.socket().connect_ex(("127.0.0.1", port)))
    drip, dead = Tarpit(True), Tarpit(False)
    plain, tls = "http://127.0.0.1:%d/" % http, "https://127.0.0.1:%d/" % https
    urls = [plain + r.choice(good) for _ in range(300)] + [tls + r.choice(good) for _ in range(150)]
    # ROW becomes the row's number: a new host.
    urls += ["http://hROW.soak.test:%d/%s" % (http, r.choice(good)) for _ in range(250)]
    urls += ["https://hROW.soak.test:%d/%s" % (https, r.choice(good)) for _ in range(100)]
    urls += [plain + "to"] * 20 + [plain + "none-ROW.jpg"] * 70 + [plain + "broken.jpg", plain + "page.html"] * 15
    urls += [plain + "bomb.png", plain + "wide.png", plain + "huge.jpg"] * 5 + ["http://nobody-ROW.invalid/x.jpg"] * 20
    urls += ["http://127.0.0.1:%d/drip.jpg" % drip.port] * 15 + ["http://127.0.0.1:%d/dead.jpg" % dead.port] * 15
    r.shuffle(urls)
    return nginx, urls


def make_part(d, urls, rows):
    path = os.path.join(d, "soak.parquet")
    listed = ", ".join("'%s'" % u for u in urls)
    sql("SET threads=1; COPY (SELECT replace(u[i %% %d + 1], 'ROW', i::VARCHAR) AS url, 'caption of row ' || i AS caption "
        "FROM range(%d) t(i), (SELECT [%s] AS u)) TO '%s' (FORMAT parquet, ROW_GROUP_SIZE 100000);"
        % (len(urls), rows, listed, path))
    return path


def tree(pid):
    parents = collections.defaultdict(list)
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % p) as f:
                parents[int(f.read().rsplit(")", 1)[1].split()[1])].append(int(p))
        except OSError:
            pass
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += parents[found[-1]]
    return found


def look(pid):
    """(kB, descriptors) of a tree of processes."""
    kb = fds = 0
    for p in tree(pid):
        try:
            with open("/proc/%d/smaps_rollup" % p) as f:
                kb += sum(int(x.split()[1]) for x in f if x.startswith("Pss:"))
            fds += len(os.listdir("/proc/%d/fd" % p))
        except OSError:
            pass
    return kb, fds


def slope(samples, which):
    """Units per minute, by Theil and Sen over blocks: the median of all pairs' slopes, which single peaks do
    not move. Descriptors and memory vary with open transfers, so a block counts by its minimum.
    """
    blocks = collections.defaultdict(list)
    for s in samples:
        blocks[int((s[0] - samples[0][0]) // BLOCK_S)].append(s[which])
    points = [(k * BLOCK_S / 60.0, min(v)) for k, v in sorted(blocks.items()) if len(v) >= BLOCK_S // 2]
    pairs = [(b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1:]]
    return statistics.median(pairs)


def judge(name, found):
    """Prints and returns (kB per minute, descriptors per minute)."""
    kb, fds = slope(found, 1), slope(found, 2)
    rate = (found[-1][3] - found[0][3]) / (found[-1][0] - found[0][0])
    print("# %s: %d s, %.0f rows a second to row %d; memory %d to %d MB, slope %.0f kB a minute (%.1f bytes a row); "
          "%d to %d descriptors, slope %.2f a minute" %
          (name, found[-1][0] - found[0][0], rate, found[-1][3], min(s[1] for s in found) / 1024,
           max(s[1] for s in found) / 1024, kb, kb * 1024 / 60 / max(rate, 1), min(s[2] for s in found),
           max(s[2] for s in found), fds), flush=True)
    return kb, fds


def soak(d, part, dns, phases):
    """A worker over so many phases: [(name, seconds, is it judged)]; a leak of that name is on during each. Gives a
    list of samples (second, kB, descriptors, rows done) for each, and the counts of statuses. What grows goes on
    growing, what other programs on this machine do to the transfers does not: a judged phase that is red is
    followed by two thirds of it more, at most twice, and its last samples count."""
    out = os.path.join(d, "out")
    p = start(["--parquet", part, "--output", out, "--number_sample_per_shard", PER_SHARD, "--image_size", 64, "--timeout",
               3, "--retries", 0, "--thread_count", 128, "--processes_count", 1, "--allow-net", "127.0.0.0/8:*", "--dns", dns.net,
               "--progress_interval", 1], env={"SSL_CERT_FILE": d + "/cert.pem", "LD_PRELOAD": d + "/leak.so"})
    err = []
    threading.Thread(target=lambda: err.append(p.stderr.read()), daemon=True).start()
    threading.Thread(target=p.stdout.read, daemon=True).start()
    began, found, ends = time.monotonic(), [], 0
    todo = [(*phase, 2) for phase in phases]
    while todo:
        name, seconds, judged, more = todo.pop(0)
        open(os.path.join(d, "leak-" + name), "w").close()
        ends += seconds
        if more == 2:
            found.append([])
        while time.monotonic() - began < ends and p.poll() is None:
            kb, fds = look(p.pid)
            rows = load(out, "_progress.json")["rows_done"] if os.path.exists(out + "/_progress.json") else 0
            found[-1].append((time.monotonic() - began, kb, fds, rows))
            for n in os.listdir(out) if os.path.isdir(out) else ():
                if n[0].isdigit() and n.endswith(".tar") and time.time() - os.stat(os.path.join(out, n)).st_mtime > 5:
                    os.unlink(os.path.join(out, n))  # a day's output has no room here
            time.sleep(max(0.1, 1 - (time.monotonic() - began) % 1))
        os.unlink(os.path.join(d, "leak-" + name))
        if judged:
            found[-1] = [s for s in found[-1] if s[0] >= ends - 2 * phases[0][1] / 3]
            kb, fds = judge("no leak", found[-1])
            if (kb >= KB_A_MINUTE_MAX or fds >= FDS_A_MINUTE_MAX) and more > 0:
                todo.insert(0, (name, 2 * phases[0][1] / 3, True, more - 1))
    ran = p.poll() is None
    p.terminate()
    p.wait(110)
    statuses = collections.Counter()
    for n in os.listdir(out):
        if n.endswith("_stats.json"):
            for text, k in load(out, n)["status_dict"].items():
                statuses[text.split(":")[0][:40]] += k
    tap.ok(ran and p.returncode == 143, "it ran for %d s and stopped when asked" % ends, "%d %s" % (p.returncode, err))
    return found, statuses


with Folder() as d:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 900
    leak_seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    with open(d + "/leak.c", "w") as f:
        f.write(LEAK)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-DLEAK_BYTES=%d" % LEAK_BYTES, "-DPLACE=\"%s\"" % d, d + "/leak.c",
                    "-o", d + "/leak.so", "-ldl"], check=True)
    dns = Dns(Names())
    nginx, urls = make_web(d)
    try:
        part = make_part(d, urls, int(7 / 3 * seconds + 2 * leak_seconds) * ROWS_A_SECOND_MAX)
        phases = [("nothing", seconds, True), ("memory", leak_seconds, False), ("descriptors", leak_seconds, False)]
        found, statuses = soak(d, part, dns, phases)
        if os.environ.get("SOAK_SAMPLES"):
            with open(os.environ["SOAK_SAMPLES"], "w") as f:
                f.writelines("%.1f %d %d %d\n" % s for phase in found for s in phase)
        print("# %s" % dict(statuses.most_common()), flush=True)
        total = sum(statuses.values())
        tap.ok(total > seconds * 20 and 0.7 * total < statuses["success"] < 0.95 * total and len(statuses) >= 7,
               "the rows were of all kinds", statuses)
        kb, fds = slope(found[0], 1), slope(found[0], 2)
        tap.ok(kb < KB_A_MINUTE_MAX, "memory does not grow: below %d kB a minute" % KB_A_MINUTE_MAX, kb)
        tap.ok(fds < FDS_A_MINUTE_MAX, "descriptors do not grow: below %.1f a minute" % FDS_A_MINUTE_MAX, fds)
        kb, _ = judge("leaking memory", found[1])
        tap.ok(kb >= KB_A_MINUTE_MAX, "a leak of %d bytes a socket is found" % LEAK_BYTES, kb)
        _, fds = judge("leaking descriptors", found[2])
        tap.ok(fds >= FDS_A_MINUTE_MAX, "and one of a descriptor for each 256 sockets", fds)
    finally:
        nginx.send_signal(signal.SIGTERM)
        nginx.wait()
sys.exit(tap.done())
