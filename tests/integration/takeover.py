"""Takeover with the default lease (10 s, renewed every 3 s): <= 2 s after the leader's process died, <= 15 s after it froze. The frozen
leader, woken again, commits nothing and stands by."""
import signal
import time

from stack import Stack, Tap, wait

tap = Tap()
with Stack("takeover", lease_us=10000000, parts=2, rows=4) as s:
    s.start_pg()
    s.start_local()
    for i in (0, 1):
        s.start_droverd(i, env={"DROVER_LEASE_RENEW_US": "3000000"})
    first = wait("a leader", 20, lambda: [s.leader()] if s.leader() is not None else None)[0]
    began = time.monotonic()
    s.kill(f"droverd{first}")
    wait("the other one", 20, lambda: s.leader() == 1 - first, 0.02)
    took = time.monotonic() - began
    tap.ok(took <= 2, f"takeover {took:.2f} s after the leader's process died (<= 2 s)")
    s.start_droverd(first, env={"DROVER_LEASE_RENEW_US": "3000000"})
    frozen = s.procs[f"droverd{1 - first}"]
    frozen.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    wait("the standby", 30, lambda: b"\ndroverd_leading 1" in s.raw("GET", "/metrics", i=first, timeout=2)[1], 0.05)
    took = time.monotonic() - began
    tap.ok(took <= 15, f"takeover {took:.2f} s after the leader froze (<= 15 s)")
    frozen.send_signal(signal.SIGCONT)
    wait("the woken one stands by", 10, lambda: b"\ndroverd_leading 0" in s.raw("GET", "/metrics", i=1 - first, timeout=2)[1])
    tap.ok(s.leader() == first, "the woken one stands by")
    cid = s.submit(name="after")
    tap.ok(wait("the end", 60, lambda: s.ended(cid))["state"] == "succeeded", "the new leader drives a campaign to its end")
    s.check_wire(tap)
    s.check_invoice(tap)
tap.done()
