#!/usr/bin/python3
"""What it costs to be kind to single hosts, on a part like LAION's: 1,000 hosts of which the n-th has
1/n of the first one's rows (the first every eighth row), and answers after 0.1 to 3 s, each length as
frequent as twice of it. Small pictures: waiting is all that takes time. --slow-hosts: a host answers
always after the same time, so that by chance the largest is slow.

laion_latencies_ratio: images a second of whole runs with the worker's own --host_connections, by those
with 1024 to each host, in turns; medians. The server counts requests that it answers at once for one
host: more than 64 with the worker's own setting is a failure.
The line goes to build/bench.jsonl like bench.py's.
Usage: latencies.py [--rows 8000] [--runs 3] [--hosts 1000] [--seed 1] [--slow-hosts]"""
import argparse
import asyncio
import collections
import io
import os
import random
import statistics
import sys
import threading

from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import bench  # noqa: E402
import kit.worker as kit  # noqa: E402

AT_ONCE_MAX = 64
LATENCY_S = (0.1, 3.0)


def picture():
    out = io.BytesIO()
    Image.new("RGB", (64, 64), (200, 120, 40)).save(out, "JPEG")
    return out.getvalue()


class Hosts(threading.Thread):
    """A server on every 127.x.y.z; a host is the address that was asked."""

    def __init__(self, seed, slow_hosts, latency_s=LATENCY_S):
        super().__init__(daemon=True)
        self.latency_s = latency_s
        self.random, self.latency, self.slow_hosts = random.Random(seed), {}, slow_hosts
        self.now, self.most = collections.Counter(), collections.Counter()
        body = picture()
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        self.port, self.ready = None, threading.Event()
        self.start()
        self.ready.wait()

    def run(self):
        asyncio.run(self.serve())

    async def serve(self):
        server = await asyncio.start_server(self.client, "0.0.0.0", 0, backlog=4096)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        await server.serve_forever()

    def seconds(self, host):
        low, high = self.latency_s
        drawn = low * (high / low) ** self.random.random()
        return self.latency.setdefault(host, drawn) if self.slow_hosts else drawn

    async def client(self, reader, writer):
        host = writer.get_extra_info("sockname")[0]
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.now[host] += 1
                self.most[host] = max(self.most[host], self.now[host])
                try:
                    await asyncio.sleep(self.seconds(host))
                finally:
                    self.now[host] -= 1
                writer.write(self.answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def urls(a, port):
    r = random.Random(a.seed)
    shares = [1 / (n + 1) for n in range(a.hosts)]
    return ["http://127.%d.%d.%d:%d/%d.jpg" % (7 + n // 62500, n // 250 % 250, n % 250 + 1, port, i)
            for i, n in enumerate(r.choices(range(a.hosts), shares, k=a.rows))]


def speed(server, parquet, rows, flags):
    """Images a second, and the most requests at once to one host."""
    server.most.clear()
    with kit.Folder() as out:
        began = bench.time.monotonic()
        p = kit.start(["--parquet", parquet, "--output", out, "--allow-net", "127.0.0.0/8:*"] + flags)
        err = p.communicate()[1]
        took = bench.time.monotonic() - began
        done = sum(kit.load(out, f)["successes"] for f in os.listdir(out) if f.endswith("_stats.json"))
    if p.returncode != 0 or done != rows:
        sys.exit("bench: %d of %d images, exit %d\n%s" % (done, rows, p.returncode, err[-2000:]))
    return rows / took, max(server.most.values())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rows", type=int, default=8000)
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--hosts", type=int, default=1000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--slow-hosts", action="store_true")
    a = p.parse_args()
    server = Hosts(a.seed, a.slow_hosts)
    with kit.Folder() as folder:
        parquet = os.path.join(folder, "part.parquet")
        kit.make_parquet(parquet, [{"URL": u} for u in urls(a, server.port)], {"URL": "VARCHAR"})
        got = {"own": [], "unlimited": []}
        for _ in range(a.runs):
            got["own"].append(speed(server, parquet, a.rows, []))
            got["unlimited"].append(speed(server, parquet, a.rows, ["--host_connections", 1024]))
    most = max(n for _, n in got["own"])
    own, unlimited = (statistics.median(s for s, _ in got[k]) for k in got)
    bench.put("laion_latencies_ratio", round(own / unlimited, 3), "ratio", a.runs,
              "%.0f img/s with at most %d requests at once to one host, %.0f with %d" % (
                  own, most, unlimited, max(n for _, n in got["unlimited"])), limit=1.0,
              ratio_to_limit=round(own / unlimited, 3))
    if most > AT_ONCE_MAX:
        sys.exit("bench: %d requests at once to one host, at most %d are kind" % (most, AT_ONCE_MAX))


if __name__ == "__main__":
    main()
