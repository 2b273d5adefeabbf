"""One campaign driven by droverds built with a sanitizer. Aim: no report, no leak, no race under full load.
Method: two droverds of the variant; readers request every page and hold event streams while the campaign
runs with lost, broken and slow replies; the leader gets SIGTERM with AWS calls of every kind in flight,
the other one at the end; both must end with status 0. Campaigns are held, cancelled and archived, and
droverds stopped, while S3 is asked whether their parts are done already. usage: bash tests/sanitize.sh asan|tsan python3
tests/integration/controller/sanitized.py
"""
import http.client
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import VARIANT, Tap, patience, wait_for
from kit.stack import Stack

tap = Tap()
over = threading.Event()
PARTS = 8
DELAY_S = 4  # of what S3 says about parts that may be done
# Slow replies make sure that a stop meets calls in flight; broken ones exercise the error paths.
FAULTS = (
    {"operation": "GetObject", "kind": "slow", "times": 1000, "delay_seconds": DELAY_S, "name_contains": "gone-"},
    {"operation": "CreateTrainingJob", "kind": "drop_after", "probability": 0.2, "times": 1000, "seed": 7},
    {"operation": "DescribeTrainingJob", "kind": "half_body", "probability": 0.1, "times": 1000, "seed": 8},
    {"operation": "ListTrainingJobs", "kind": "wrong_json", "probability": 0.2, "times": 1000, "seed": 9},
    {"operation": "ListObjectsV2", "kind": "slow", "probability": 0.5, "times": 1000, "delay_seconds": 2, "seed": 10},
    {"operation": "GetObject", "kind": "slow", "probability": 0.2, "times": 1000, "delay_seconds": 2, "seed": 11},
    {"operation": "GetLogEvents", "kind": "slow", "probability": 0.5, "times": 1000, "delay_seconds": 1, "seed": 12},
    {"operation": "ListServiceQuotas", "kind": "html_error", "probability": 0.2, "times": 1000, "seed": 13},
)
REPORT = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error:", "WARNING: ThreadSanitizer", "FATAL: ThreadSanitizer", "assertion failed")


def reader(s, i, cid, seen):
    """Every page of the campaign, repeatedly, from one droverd."""
    name = s.live_name = getattr(s, "live_name", "")
    paths = ["/metrics", "/readyz", "/v1/campaigns", f"/v1/campaigns/{cid}", f"/v1/campaigns/{cid}/parts", f"/v1/campaigns/{cid}/tiles", f"/v1/campaigns/{cid}/cost",
             f"/v1/campaigns/{cid}/failures", "/v1/quotas", f"/v1/campaigns/{cid}/parts/0/logs", f"/v1/parts/{cid}/1", f"/v1/campaigns/{cid}/forecast", "/v1/operations"]
    while not over.is_set():
        for path in paths:
            try:
                status = s.raw("GET", path, i=i, timeout=20)[0]
                seen[path] = max(seen.get(path, 0), 1 if status == 200 else 0)
            except (OSError, http.client.HTTPException, KeyError):
                pass  # that one is stopping
        over.wait(0.02)


def streamer(s, i, cid, seen):
    """Event streams that open and close."""
    token = open(s.token_file).read().strip()
    while not over.is_set():
        c = http.client.HTTPConnection("127.0.0.1", s.ports[f"droverd{i}"], timeout=patience(2))
        try:
            c.request("GET", f"/v1/campaigns/{cid}/events?after=0", headers={"Authorization": "Bearer " + token})
            r = c.getresponse()
            end = time.monotonic() + 1
            while time.monotonic() < end and not over.is_set():
                line = r.readline()
                if not line:
                    break
                seen["events"] = seen.get("events", 0) + line.startswith(b"data:")
        except (OSError, http.client.HTTPException):
            over.wait(0.05)
        finally:
            c.close()


def end_of(s, i, what):
    p = s.procs.pop(f"droverd{i}")
    p.send_signal(signal.SIGTERM)
    try:
        status = p.wait(60)
    except Exception as e:  # pylint: disable=broad-except
        p.kill()
        status = e
    text = open(f"{s.dir}/droverd{i}.log").read()
    reports = [k for k in REPORT if k in text]
    tap.ok(status == 0 and not reports, f"{what}: status 0 and no report", f"{status} {reports} " + text[min([text.find(k) for k in reports], default=-2000):])


def checked(s, name, done, kind="ml.c5.xlarge"):
    """A campaign whose parts are skipped when `done` is there."""
    return s.submit(s.campaign(name=name, stage_extra="    done_if: {manifest: \"s3://drover-test/" + done + "/{part:05d}/\"}").replace("ml.c5.xlarge", kind))


def asked(s, folder, seconds):
    """Was S3 asked about parts below the folder so lately that it has not answered?"""
    return any(r["operation"] == "GetObject" and folder in r["name"] and r["time"] > time.time() - seconds for r in s.oracle("wire-log")["requests"])


def drops(s, made):
    """Campaigns that go away as soon as they can while S3 is asked about their parts, and one whose parts are half there beside them."""
    gone = []
    for folder in ("gone-cancelled", "gone-held"):
        cid = checked(s, folder, folder, "ml.m5.large")  # no slot is theirs
        wait_for(lambda f=folder: asked(s, f, DELAY_S / 2), 60, "questions about its parts")
        if folder == "gone-held":
            s.api("POST", f"/campaigns/{cid}:hold", {"selector": {"state": "waiting"}})
        s.api("POST", f"/campaigns/{cid}:cancel", {})
        gone.append(cid)
    half = checked(s, "half", f"images-{made[2:]}")
    for i in range(0, PARTS, 2):
        os.remove(f"{s.dir}/aws/s3/drover-test/images-{made[2:]}/{i:05d}/_manifest.json")
    for cid in gone:
        c = wait_for(lambda c=cid: s.ended(c), 60, "the end of a campaign whose parts are asked about", step=0.05)
        tap.ok(c["state"] == "cancelled" and c["parts"]["cancelled"] == PARTS, "a campaign whose parts are asked about is cancelled whole", c)
        s.api("POST", f"/campaigns/{cid}:archive", {})
    c = wait_for(lambda: s.ended(half), 150, "the end of the campaign whose parts are half there", step=0.3)
    tap.ok(c["state"] == "succeeded" and c["parts"]["skipped"] + c["parts"]["done"] == PARTS and c["parts"]["skipped"] >= PARTS // 2, "parts that are there are skipped, the others made", c)
    ours = [j["name"] for j in s.oracle("jobs")["jobs"] if any(j["name"].startswith(f"t-{g[2:]}-") for g in gone)]
    tap.ok(not ours, "no job was made of those that are gone", ours)


def drive(s):
    s.start_pg()
    s.start_local()
    s.faults(*FAULTS)
    for i in (0, 1):
        s.start_droverd(i)
    lead = wait_for(lambda: None if s.leader() is None else [s.leader()], 40, "a leader")[0]
    cid, seen = s.submit(name="sanitized"), {}
    side = s.submit(name="side")
    threads = [threading.Thread(target=reader, args=(s, i, cid, seen)) for i in (0, 1)]
    threads += [threading.Thread(target=streamer, args=(s, i, cid, seen)) for i in (0, 1)]
    for t in threads:
        t.start()
    try:
        wait_for(lambda: [j for j in s.oracle("jobs")["jobs"] if j["ended"] is not None], 60, "a job")
        s.api("POST", f"/campaigns/{side}:cancel", {}, i=1 - lead)
        end_of(s, lead, f"the leader told to stop in mid-campaign ({VARIANT})")
        s.start_droverd(lead)
        s.api("POST", f"/campaigns/{cid}:pause", {}, i=lead)
        s.api("POST", f"/campaigns/{cid}:resume", {}, i=lead)
        c = wait_for(lambda: s.ended(cid), 150, "the end of the campaign", step=0.3)
        tap.ok(c["state"] == "succeeded", f"all {PARTS} parts are done", c)
        wait_for(lambda: s.ended(side), 60, "the end of the cancelled one", step=0.3)
        # Everything has ended here, so every part's jobs can be counted.
        s.check_wire(tap)
        s.check_invoice(tap)
        drops(s, cid)
        last = s.submit(name="last")  # still runs when everything stops
        wait_for(lambda: s.api("GET", f"/campaigns/{last}")["parts"]["active"] > 0, 60, "a job of it")
    finally:
        over.set()
        for t in threads:
            t.join()
    missing = [p for p, got in seen.items() if not got]
    tap.ok(seen.get("events", 0) > 5 and not missing, f"the readers saw every page and {seen.get('events', 0)} events", missing)
    end_of(s, 1 - lead, f"the other told to stop with jobs alive ({VARIANT})")
    checked(s, "last-checked", "gone-too", "ml.m5.large")
    wait_for(lambda: asked(s, "gone-too", DELAY_S / 2), 60, "a question about its parts, which has no answer yet")
    end_of(s, lead, f"the leader told to stop with jobs alive and S3 asked about parts ({VARIANT})")


with Stack("sanitized", parts=PARTS, rows=6, lease_us=4000000, quotas={"ml.c5.xlarge": 4, "ml.m5.large": 0}) as stack:
    drive(stack)
    texts = "".join(open(os.path.join(stack.dir, f)).read() for f in os.listdir(stack.dir) if f.startswith("droverd") and f.endswith(".log"))
    tap.ok('"event":"droverd_started"' in texts and not [k for k in REPORT if k in texts], "no sanitizer said anything in any log")
sys.exit(tap.done())
