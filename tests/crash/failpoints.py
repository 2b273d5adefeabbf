"""Every failpoint of the leader with kill, pause and error: the campaign ends with every part done and
nothing paid twice. pause freezes the leader for two lease lengths while a standby takes over, then resumes
it: it must not sign or commit anything. In the short run those of a submission take turns with kill,
pause and error, and of the others every third is killed at. usage: failpoints.py test|long   (needs VARIANT=failpoints
binaries)
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kit import Tap, TOP, wait_for
from kit.stack import Stack

mode = sys.argv[1] if len(sys.argv) > 1 else "test"
tap = Tap()
SUBMIT = ("intend.", "create.", "record.", "void.")
only = os.environ.get("ONLY", "")
WARM = "limits: {parts: 1}\nwarm_pool: {keep_alive: 5m}"  # the second part is what the pool of the first is kept for


def names():
    found = set()
    for folder in ("controller",):
        for f in os.listdir(f"{TOP}/orchestrator/{folder}"):
            if f.endswith(".c"):
                found |= set(re.findall(r'FP\("([^"]+)"\)', open(f"{TOP}/orchestrator/{folder}/{f}").read()))
    return sorted(n for n in found if only in n)


def turn(name):
    """What the short run does at a failpoint: "" nothing."""
    submit = name.startswith(SUBMIT)
    i = [n for n in names() if n.startswith(SUBMIT) == submit].index(name) % 3
    return ("kill", "pause", "error")[i] if submit else ("kill", "", "")[i]


def process_state(p):
    return open(f"/proc/{p.pid}/stat").read().rsplit(")", 1)[1].split()[0]


def reached(s, action):
    """The failpoint has taken effect: the process is dead, stopped, or has logged it."""
    p = s.procs["droverd0"]
    if action == "kill":
        return p.poll() is not None
    if action == "pause":
        return process_state(p) == "T"
    return "failpoint_hit" in open(s.dir + "/droverd0.log", errors="replace").read()[s.log_from:]


def drive(s, name, cid):
    """Conditions besides a running campaign under which the leader passes this failpoint."""
    # a pool remains for the second part, which cannot start; afterwards nothing may take it
    if name.startswith("pool."):
        wait_for(lambda: s.sql("SELECT count(*) FROM pool WHERE state = 'available'") == "1", 20, "a pool")
        s.api("POST", f"/campaigns/{cid}:cancel", {}, seconds=5)
    if name.startswith("stop.") or name.startswith("void."):
        if name.startswith("void."):
            wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["parts"]["active"] > 0, 20, "an intent")
        else:
            wait_for(lambda: s.live_jobs(), 20, "a job")
        # After the resume, the next leader must not take a stop requested by the pause for somebody else's
        # stop.
        verb = "pause" if name == "stop.after_reply" else "cancel"
        s.api("POST", f"/campaigns/{cid}:{verb}", {}, seconds=5)


def signed_after(s, key, t):
    return [r for r in s.oracle("wire-log")["requests"] if r.get("key_id") == key and r["time"] > t]


def case(s, name, action, tries=3):
    what = f"{name} {action}: "
    cancelled = name.startswith(("stop.before", "void.", "pool."))
    if name.startswith("void."):
        s.faults({"operation": "CreateTrainingJob", "kind": "throttle", "times": 1000000})
    elif name.startswith("pool."):
        s.faults({"operation": "CreateTrainingJob", "kind": "throttle", "times": 1000000, "name_contains": "-download-1-a"})
    else:
        s.faults()
    s.log_from = os.path.getsize(s.dir + "/droverd0.log") if os.path.exists(s.dir + "/droverd0.log") else 0
    s.start_droverd(1)  # the API stays up whatever happens to droverd0
    wait_for(lambda: s.leader() == 1, 20, "a leader")
    s.start_droverd(0, env={"DROVER_FAILPOINT": f"{name}:{action}", "AWS_ACCESS_KEY_ID": "AKIAFAIL0", "AWS_SECRET_ACCESS_KEY": "secret-0"}, ready=False)
    if not name.startswith("takeover."):
        wait_for(lambda: s.raw("GET", "/livez", i=0)[0] == 200, 20, "droverd0 up")
    s.kill("droverd1", signal.SIGTERM)  # droverd0 leads now
    if name.startswith("takeover."):
        try:
            wait_for(lambda: reached(s, action), 20, "the failpoint", step=0.02)
        except TimeoutError:
            pass
    else:
        wait_for(lambda: s.leader() == 0 or reached(s, action), 20, "droverd0 leads")
    s.start_droverd(1)
    cid = s.submit(name=f"fp-{name.replace('.', '-').replace('_', '-')}-{action}", top=WARM if name.startswith("pool.") else "")
    try:
        drive(s, name, cid)
    except (TimeoutError, ValueError):
        pass
    try:
        wait_for(lambda: reached(s, action), 40, "the failpoint", step=0.02)
        hit = True
    except TimeoutError:
        hit = False
    if not hit and tries > 1:  # on a busy machine droverd1 may have led in between
        print(f"# {what}not reached (droverd{s.leader()} leads), once again", flush=True)
        s.faults()
        if not s.ended(cid):
            s.api("POST", f"/campaigns/{cid}:cancel", {}, seconds=5)
        wait_for(lambda: s.ended(cid), 60, "the end", step=0.2)
        s.kill("droverd0", signal.SIGKILL)
        s.kill("droverd1", signal.SIGTERM)
        case(s, name, action, tries - 1)
        return
    tap.ok(hit, what + "was reached")
    if action == "pause" and hit:
        stopped = time.time()
        epoch = s.sql("SELECT epoch FROM lease")
        wait_for(lambda: s.leader() == 1, 20, "the standby")
        time.sleep(max(0, 2 * s.lease_us / 1e6 - (time.time() - stopped)))
        woke = time.time()
        s.procs["droverd0"].send_signal(signal.SIGCONT)
        woken = s.procs["droverd0"]
        wait_for(lambda: woken.poll() is not None or b"\ndroverd_leading 0" in s.raw("GET", "/metrics", i=0, timeout=2)[1], 30)
        late = signed_after(s, "AKIAFAIL0", woke - 0.01)
        new_creates = [r["name"] for r in late if r["operation"] == "CreateTrainingJob"]
        held = {r["name"] for r in s.oracle("wire-log")["requests"] if r.get("key_id") != "AKIAFAIL0" and r["operation"] == "CreateTrainingJob"}
        # Bytes already in the socket before the freeze may still arrive, but only under a name the new leader
        # holds.
        other = [r for r in late if r["operation"] != "CreateTrainingJob"]
        tap.ok(not other and all(n in held for n in new_creates), what + "woken, it signed nothing after its lease end", late)
        signed = [r for r in s.oracle("wire-log")["requests"] if r.get("key_id") == "AKIAFAIL0" and r["signed_at"] > stopped + s.lease_us / 1e6 + 1]
        tap.ok(not signed, what + "no signature is younger than its lease", signed)
        rows = s.sql(f"SELECT count(*) FROM attempt WHERE epoch = {epoch} AND intended_at > to_timestamp({stopped + s.lease_us / 1e6})")
        tap.ok(rows == "0", what + f"woken, it committed nothing (epoch {epoch}: {rows} rows)")
    elif action == "kill" and hit:
        s.procs.pop("droverd0", None)
    if name.startswith(("void.", "pool.")):
        s.faults()
    if name == "stop.after_reply":
        s.api("POST", f"/campaigns/{cid}:resume", {})
    try:
        c = wait_for(lambda: s.ended(cid), 60, "the end", step=0.2)
    except TimeoutError as e:
        c = s.api("GET", f"/campaigns/{cid}")
        tap.ok(False, what + str(e), json.dumps(c)[:800])
    good = ("cancelled", "succeeded") if cancelled else ("succeeded",)
    tap.ok(c["state"] in good, what + f"the campaign ended {c['state']}", json.dumps(c)[:800])
    tap.ok(not s.live_jobs(), what + "no job is left alive", s.live_jobs())
    if name.startswith("pool."):
        wait_for(lambda: s.sql("SELECT count(*) FROM pool WHERE ended_at IS NULL") == "0", 60, "the end of the pools", step=0.2)
    s.kill("droverd0", signal.SIGKILL)
    s.kill("droverd1", signal.SIGTERM)


subprocess.run(["make", "--no-print-directory", "-s", "VARIANT=failpoints", "build/failpoints/bin/droverd"], cwd=TOP, check=True, stdout=subprocess.DEVNULL)
with Stack("failpoints", variant="failpoints", parts=2, rows=8, observe_us=100000, lease_us=2000000,
           local={"warm_quotas": {"ml.c5.xlarge": 2}, "credentials": {"AKIATESTSTACK": "secret-of-the-test-stack", "AKIAFAIL0": "secret-0"}}) as s:
    s.migrated = False
    s.start_pg()
    s.start_local()
    cases = [(n, a) for a in ("kill", "pause", "error") for n in names() if mode == "long" or a == turn(n)]
    print(f"# {len(names())} failpoints, {len(cases)} cases", flush=True)
    for name, action in cases:
        case(s, name, action)
    s.start_droverd(1)
    s.check_wire(tap)
    s.check_invoice(tap)
sys.exit(tap.done())
