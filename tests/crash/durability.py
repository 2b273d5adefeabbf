"""An acknowledged POST survives: on the first byte of the 201 everything is killed with SIGKILL, including
the postmaster; after the restart the campaign exists. Also: the same Idempotency-Key gives one campaign,
with another body 422; droverd refuses to lead without durability. usage: durability.py [TIMES]
"""
import json
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kit import Tap, wait_for
from kit.stack import Stack

times = int(sys.argv[1]) if len(sys.argv) > 1 else 25
tap = Tap()
SPEC = """version: 1
name: survivor-{n}
stages:
  - name: download
    worker: download
    fan_out: {{from: api}}
    instance_type: ml.c5.xlarge
    max_runtime: 5m
    hyperparameters: {{url_list: "{{uri}}", output_folder: "s3://drover-test/x/{{part}}/"}}
"""


def kill_everything(s):
    pids = [p.pid for k, p in s.procs.items() if k.startswith("droverd")]
    postmaster = int(open(s.sock + "/data/postmaster.pid").readline())
    children = subprocess.run(["pgrep", "-P", str(postmaster)], capture_output=True, text=True).stdout.split()
    for pid in pids + [postmaster] + [int(c) for c in children]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    for k in [k for k in s.procs if k.startswith("droverd")]:
        s.procs.pop(k).wait()
    wait_for(lambda: not os.path.exists(f"/proc/{postmaster}") or "Z" in open(f"/proc/{postmaster}/stat").read().split(")")[1][:3], 10, "the end of PostgreSQL", step=0.005)


def post(s, key, body):
    """Raw POST; returns the socket right after the first byte of the answer, and that byte."""
    c = socket.create_connection(("127.0.0.1", s.ports["droverd0"]), 10)
    token = open(s.token_file).read().strip()
    data = body.encode()
    c.sendall((f"POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/yaml\r\n"
               f"Idempotency-Key: {key}\r\nContent-Length: {len(data)}\r\n\r\n").encode() + data)
    return c, c.recv(1)


with Stack("durability", parts=1, rows=1, disk=True) as s:
    s.start_pg()
    lost, answered = [], 0
    for n in range(times):
        s.start_droverd(0)
        c, first = post(s, f"key-{n}", SPEC.format(n=n))
        kill_everything(s)
        rest = first
        try:
            rest += c.recv(65536)
        except OSError:
            pass
        c.close()
        answered += first == b"H"
        s.start_pg()
        if n % 10 == 9 or n == times - 1:
            s.start_droverd(0)
            names = set()
            token = ""
            while True:
                page = s.api("GET", f"/campaigns?page_size=500{'&page_token=' + token if token else ''}")
                names |= {x["name"] for x in page["campaigns"]}
                token = page.get("next_page_token")
                if not token:
                    break
            lost = [k for k in range(n + 1) if f"survivor-{k}" not in names]
            s.kill("droverd0")
            if lost:
                break
    tap.ok(answered == times and not lost, f"{times} acknowledged POSTs survived SIGKILL of everything on the first byte of the 201", (answered, lost))

    s.start_droverd(0)
    h = {"Content-Type": "application/yaml", "Idempotency-Key": "once"}
    a = s.raw("POST", "/v1/campaigns", SPEC.format(n="once").encode(), h)
    b = s.raw("POST", "/v1/campaigns", SPEC.format(n="once").encode(), h)
    d = s.raw("POST", "/v1/campaigns", SPEC.format(n="other").encode(), h)
    tap.ok(a[0] == 201 and b[0] == 201 and json.loads(a[1])["id"] == json.loads(b[1])["id"], "the same Idempotency-Key twice gives one campaign", (a, b))
    tap.ok(d[0] == 422, "the same key with another body is 422", d)
    s.kill("droverd0", signal.SIGTERM)

    for setting in ("fsync", "full_page_writes", "synchronous_commit"):  # a throwaway server, to see the refusal
        s.stop_pg("fast")
        s.start_pg(f"-c {setting}=off")
        log = s.dir + "/droverd0.log"
        before = os.path.getsize(log)
        s.start_droverd(0)
        try:
            wait_for(lambda: "leading_refused" in open(log).read()[before:], 15, "the refusal")
            refused = setting in open(log).read()[before:]
        except TimeoutError:
            refused = False
        time.sleep(0.5)  # time in which it could lead after all
        tap.ok(refused and s.leader() is None, f"droverd refuses to lead with {setting} off and says so")
        s.kill("droverd0", signal.SIGTERM)
sys.exit(tap.done())
