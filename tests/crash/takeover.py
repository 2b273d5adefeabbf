"""Takeover with the default lease (10 s, renewed every 3 s): at most 2 s after the leader's process died (on a
quiet machine; in any case long before the lease ends), at most 15 s after it froze. The frozen leader,
resumed, commits nothing and becomes a standby. Large stages are read over two connections: a leader whose second one
is ended again and again reads all parts with the first.
"""
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kit import Lag, Tap, patience, wait_for
from kit.measure import metric
from kit.stack import Stack

PARTS, LARGE = 150000, 2
SPEC = """version: 1
name: large-{}
stages:
  - name: work
    image: bench/none:1
    verify: none
    fan_out: {{from: api}}
    instance_type: ml.c5.xlarge
    max_runtime: 1h
"""
tap = Tap()
lag = Lag()


def second_connection(s):
    """Two large stages are taken over while somebody ends the session that reads their inputs."""
    s.kill("droverd1")
    wait_for(lambda: s.leader() == 0, 20, "a leader")
    lines = "".join('{"uri":"s3://d/x/%d","size":%d}\n' % (i, i) for i in range(PARTS)).encode()
    for k in range(LARGE):
        cid = s.submit(SPEC.format(k))
        s.api("POST", f"/campaigns/{cid}:pause", {})
        s.raw("POST", f"/v1/campaigns/{cid}/parts?last=true", lines, {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"parts-{k}"}, timeout=120)
    wait_for(lambda: metric(s, "droverd_parts_waiting") == PARTS * LARGE, 60, "all parts in the leader's queues")
    s.kill("droverd0")
    ended, led = [], threading.Event()

    def end_sessions():
        while not led.is_set():
            ended.append(int(s.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'drover inputs'")))

    thread = threading.Thread(target=end_sessions)
    thread.start()
    s.start_droverd(0, ready=False)
    wait_for(lambda: metric(s, "droverd_parts_waiting") == PARTS * LARGE, 60, "a leader of all parts", step=0.05)
    led.set()
    thread.join()
    tap.ok(sum(ended) > 0, f"the session that reads inputs was ended {sum(ended)} times")
    with open(s.dir + "/droverd0.log", encoding="utf-8") as f:
        tap.ok('"event":"inputs_alone"' in f.read(), "the leader says that one connection reads all, and has all parts")


with Stack("takeover", lease_us=10000000, parts=2, rows=4) as s:
    s.start_pg()
    s.start_local()
    for i in (0, 1):
        s.start_droverd(i, env={"DROVER_LEASE_RENEW_US": "3000000"})
    first = wait_for(lambda: [s.leader()] if s.leader() is not None else None, 20, "a leader")[0]
    began, before = time.monotonic(), lag.seconds
    s.kill(f"droverd{first}")
    wait_for(lambda: s.leader() == 1 - first, 20, "the other one", step=0.02)
    took = time.monotonic() - began
    tap.ok(took <= 2 + lag.seconds - before and took < patience(6), f"takeover {took:.2f} s after the leader's process died (<= 2 s, and the lease had 7 s to run)")
    s.start_droverd(first, env={"DROVER_LEASE_RENEW_US": "3000000"})
    frozen = s.procs[f"droverd{1 - first}"]
    frozen.send_signal(signal.SIGSTOP)
    began, before = time.monotonic(), lag.seconds
    wait_for(lambda: b"\ndroverd_leading 1" in s.raw("GET", "/metrics", i=first, timeout=2)[1], 60, "the standby", step=0.05)
    took = time.monotonic() - began
    tap.ok(took <= 15 + lag.seconds - before, f"takeover {took:.2f} s after the leader froze (<= 15 s)")
    frozen.send_signal(signal.SIGCONT)
    wait_for(lambda: b"\ndroverd_leading 0" in s.raw("GET", "/metrics", i=1 - first, timeout=2)[1], 10, "the woken one stands by")
    tap.ok(s.leader() == first, "the woken one stands by")
    cid = s.submit(name="after")
    tap.ok(wait_for(lambda: s.ended(cid), 60, "the end")["state"] == "succeeded", "the new leader drives a campaign to its end")
    s.check_wire(tap)
    s.check_invoice(tap)
    second_connection(s)
sys.exit(tap.done())
