#!/usr/bin/env python3
"""The undo of a bulk retry, and parts that people hold. Aim: parts that have not started fail again as they had, to the last column; those that have started go on;
counters, stages and campaign are as before, also when the leader is killed on the way; what cannot be undone is refused with what can
be done. A hold is of all parts that were posted before it, read by the leader or not. Held parts do not start, whoever leads, until they are released; a cancel ends them. Method: the parts are posted, how they failed is written by SQL while no droverd runs.   (PARTS=200000: a large one)
"""
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, postgres, wait_for, wait_moving
from kit.measure import all_cpu_s, cpu_s, metric, psql
from kit.stack import Stack

PARTS = int(os.environ.get("PARTS", "20000"))
CPU_US = 200  # of droverd and PostgreSQL together for each part that is undone
STARTS = 3
tap = Tap()
LARGE = """version: 1
name: large
stages:
  - {name: first, image: "undo/none:1", verify: none, fan_out: {from: api}, instance_type: ml.c5.xlarge, max_runtime: 1h}
  - {name: after, needs: first, image: "undo/none:1", verify: none, fan_out: {from: api}, instance_type: ml.c5.xlarge, max_runtime: 1h}
"""
SMALL = """version: 1
name: small
stages:
  - {name: first, image: "undo/nap:1", verify: none, fan_out: {from: api}, instance_type: ml.c5.2xlarge, max_runtime: 1h}
"""
HELD = """version: 1
name: held
stages:
  - {name: first, image: "undo/quick:1", verify: none, fan_out: {from: api}, instance_type: ml.c5.2xlarge, max_runtime: 1h}
"""
# Every part but each tenth has failed in one of three ways, some of them after changes; 3: done, 4: failed; 7, 8, 12: causes.
FAILED = """
UPDATE task_run SET attempts = 2, names = 3, state = CASE WHEN seq % 10 = 9 THEN 3 ELSE 4 END,
    cause = CASE WHEN seq % 10 = 9 THEN 0 ELSE (ARRAY[7, 8, 12])[1 + seq % 3] END WHERE campaign_id = {cid} AND stage_id = {work};
INSERT INTO task_change (task_id, campaign_id, instance_type_i, volume_gb, cause_tries, signature_hash, same)
SELECT id, campaign_id, 0, 60, '{{"disk_full": 1}}', 77, 2 FROM task_run WHERE campaign_id = {cid} AND seq % 4 = 0 AND state = 4;
INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, attempt_id, cause, final, signature, message, lost_musd, at)
SELECT id, campaign_id, stage_id, seq, NULL, cause, true, 'exit ' || seq % 50 || ' of *', 'exit ' || seq % 50 || ' of ' || seq, 2000, now() - seq * interval '1 ms'
FROM task_run WHERE campaign_id = {cid} AND state = 4;
UPDATE stage_run s SET waiting = 0, done = n.done, failed = n.failed
FROM (SELECT stage_id, count(*) FILTER (WHERE state = 3) AS done, count(*) FILTER (WHERE state = 4) AS failed
      FROM task_run WHERE campaign_id = {cid} AND stage_id = {work} GROUP BY 1) n WHERE s.stage_id = n.stage_id;
ANALYZE;
"""


def post(s, spec, n):
    cid = s.submit(spec)
    s.api("POST", f"/campaigns/{cid}:pause", {})  # until its parts have failed
    return post_parts(s, cid, n)


def post_parts(s, cid, n):
    lines = "".join('{"uri":"s3://d/x/%d","size":%d}\n' % (i, 1000000 + i) for i in range(n)).encode()
    head = {"Content-Type": "application/x-ndjson", "Idempotency-Key": "parts-" + cid}
    status, text, _ = s.raw("POST", f"/v1/campaigns/{cid}/parts?last=true&stage=first", lines, head, timeout=300)
    if status != 201:
        raise RuntimeError(text[:300])
    return cid


def fingerprint(s, cid):
    """All that a retry moves, as one text a table; times of changes are left out."""
    n = cid[2:]
    return {"task_run": s.sql(f"SELECT md5(string_agg(concat_ws(',', id, state, cause, attempts, names, not_before_us), ';' ORDER BY id)) FROM task_run WHERE campaign_id = {n}"),
            "task_failure": s.sql(f"SELECT md5(string_agg(f::text, ';' ORDER BY task_id)) FROM task_failure f WHERE campaign_id = {n}"),
            "task_change": s.sql(f"SELECT md5(string_agg(h::text, ';' ORDER BY task_id)) FROM task_change h WHERE campaign_id = {n}"),
            "stage_run": s.sql(f"SELECT string_agg(concat_ws(',', state, reason, taken, waiting, active, held, done, failed, skipped, cancelled), ';' ORDER BY stage_id) FROM stage_run WHERE campaign_id = {n}"),
            "campaign": s.sql(f"SELECT concat_ws(',', state, reason) FROM campaign_run WHERE campaign_id = {n}")}


def pulse(s, op):
    return lambda: (s.api("GET", f"/operations/{op}"), cpu_s(s.procs["droverd0"].pid))[1]


def retry(s, cid, done=True):
    op = s.api("POST", f"/campaigns/{cid}:retry", {"selector": {"state": "failed"}, "changes": {"volume_gb": 90}})
    if done:
        wait_moving(lambda: s.api("GET", f"/operations/{op['id']}")["state"] == "done", pulse(s, op["id"]), "the retry")
    return op["id"]


def undone(s, op):
    got = s.api("GET", f"/operations/{op}")
    return got if got["undo"] and got["undo"]["ended_at"] else None


def cancel(s, op):
    status, text, _ = s.raw("POST", f"/v1/operations/{op}:cancel", b"", {})
    return status, json.loads(text)


def refused(s, op, words, what):
    status, text, _ = s.raw("POST", f"/v1/operations/{op}:cancel", b"", {})
    tap.ok(status == 409 and words in text.decode(), what, (status, text))


def whole(s, cid, failed):
    before = fingerprint(s, cid)
    op = retry(s, cid)
    c = s.api("GET", f"/campaigns/{cid}")
    tap.ok(c["state"] == "paused" and [g["state"] for g in c["stages"]] == ["running", "blocked"], "a retry of an ended campaign opens it and the stage that needs the retried one", c)
    shown = s.api("GET", f"/operations/{op}")
    tap.ok(shown["done"] == failed and shown["undoable"] and shown["undo"] is None, f"its {failed} parts wait, and it says that it can be undone", shown)
    began, cpu = time.monotonic(), all_cpu_s(s)
    status, asked = cancel(s, op)
    tap.ok(status == 202 and asked["undo"]["ended_at"] is None and asked["undo"]["went_on"] is None and not asked["undoable"], "its undo is accepted", (status, asked))
    wait_moving(lambda: undone(s, op), pulse(s, op), "the undo")
    took, cpu = time.monotonic() - began, all_cpu_s(s) - cpu
    got = undone(s, op)
    tap.ok(got["state"] == "cancelled" and (got["undo"]["undone"], got["undo"]["went_on"]) == (failed, 0), "the answer says how many of each", got)
    tap.ok(cpu * 1e6 < CPU_US * failed + 1e6, f"{failed} parts were undone in {took:.1f} s and {cpu:.2f} s of CPU of droverd and PostgreSQL (<= {CPU_US} us a part)")
    wait_for(lambda: s.ended(cid), 60, "the end of the campaign")
    after = fingerprint(s, cid)
    for table in before:
        tap.eq(after[table], before[table], f"{table} is as it was before the retry")
    tap.eq(s.sql("SELECT count(*) FROM task_retried"), "0", "nothing is kept of it")
    refused(s, op, f"was undone; drover ops {op}", "to undo it twice is refused, and says what shows it")
    return before


def on_the_way(s, cid, before):
    """Cancelled while the retry still runs, and the leader killed: the next one ends it."""
    op = retry(s, cid, done=False)
    wait_for(lambda: s.api("GET", f"/operations/{op}")["done"] > 0, 60, "its first parts")
    status, got = cancel(s, op)
    tap.eq(status, 202, "a retry is cancelled while it goes on")
    s.kill("droverd0", signal.SIGKILL)
    s.start_droverd()
    wait_for(lambda: undone(s, op), 60, "the undo")
    got = undone(s, op)
    tap.ok(got["state"] == "cancelled" and got["undo"]["undone"] == got["done"] and got["undo"]["went_on"] == 0, "it stopped where it was; what it had moved went back", got)
    wait_for(lambda: s.ended(cid), 60, "the end of the campaign")
    tap.eq(fingerprint(s, cid), before, "and all is as before, the leader killed on the way")


def some_started(s, cid):
    parts = s.api("GET", f"/campaigns/{cid}")["stages"][0]["parts"]
    failed = parts["failed"]
    op = retry(s, cid)
    s.api("POST", f"/campaigns/{cid}:resume", {})
    wait_for(lambda: len(s.live_jobs()) == STARTS, 60, "jobs of it")
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["stages"][0]["parts"]["active"] == STARTS, 60, "parts that run")
    tap.eq(cancel(s, op)[0], 202, "a retry of which parts have started is undone for the others")
    got = wait_for(lambda: undone(s, op), 60, "the undo")
    tap.eq((got["undo"]["undone"], got["undo"]["went_on"]), (failed - STARTS, STARTS), "so many failed as before, so many go on")
    c = s.api("GET", f"/campaigns/{cid}")
    tap.ok(c["state"] == "running" and c["stages"][0]["parts"]["active"] == STARTS and c["stages"][0]["parts"]["failed"] == failed - STARTS and len(s.live_jobs()) == STARTS,
           "their jobs run, the campaign with them", c)
    again = retry(s, cid)
    got = s.api("GET", f"/operations/{again}")
    tap.ok(got["parts"] == failed - STARTS and got["done"] == failed - STARTS, "what was undone can be retried anew", got)
    s.api("POST", f"/campaigns/{cid}:cancel", {})
    wait_for(lambda: s.ended(cid), 60, "the end of the campaign")
    refused(s, again, "no part of it waits", "when nothing of it waits any more, an undo is refused")
    tap.ok(not s.api("GET", f"/operations/{again}")["undoable"], "and not offered")


def change(s, cid, verb, selector):
    op = s.api("POST", f"/campaigns/{cid}:{verb}", {"selector": selector})
    return wait_for(lambda: (lambda o: o if o["state"] == "done" else None)(s.api("GET", f"/operations/{op['id']}")), 60, f"the {verb}")


def unread(s):
    """Somebody's lock keeps the leader from counting the parts; meanwhile people hold some of them."""
    cid = s.submit(HELD)
    s.api("POST", f"/campaigns/{cid}:pause", {})
    wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["state"] == "paused", 60, "the leader knows the campaign")
    person = postgres.Session([postgres.PSQL, "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", s.sock, "-U", "drover", "-d", "postgres"])
    try:
        person.ask(f"BEGIN; SELECT 1 FROM stage_run WHERE campaign_id = {cid[2:]} FOR UPDATE")
        post_parts(s, cid, 12)
        some = s.api("POST", f"/campaigns/{cid}:hold", {"selector": {"parts": "2-5"}})
        whole = s.api("POST", f"/campaigns/{cid}:hold", {"selector": {"state": "waiting"}})
        tap.ok([(o["parts"], o["state"]) for o in (some, whole)] == [(4, "accepted"), (12, "accepted")], "a hold counts parts that the leader has not read", (some, whole))
        look = lambda: [s.api("GET", f"/operations/{o['id']}") for o in (some, whole)]  # noqa: E731
        ticks = metric(s, "droverd_ticks_total")
        wait_for(lambda: metric(s, "droverd_ticks_total") > ticks + 3, 60, "some looks of the leader")
        tap.ok([(o["done"], o["state"]) for o in look()] == [(0, "accepted"), (0, "accepted")], "it is not carried out before they are read", look())
        tap.eq(s.sql(f"SELECT sum(taken) FROM stage_run WHERE campaign_id = {cid[2:]}"), "0", "and they were not, all the while")
    finally:
        person.close()
    wait_for(lambda: all(o["state"] == "done" for o in look()), 60, "the holds")
    tap.ok(sum(o["done"] for o in look()) == 12 and look()[0]["done"] == 4, "then it is, of all of them", look())
    tap.eq(s.api("GET", f"/campaigns/{cid}")["parts"]["held"], 12, "and they are held")
    s.api("POST", f"/campaigns/{cid}:cancel", {})
    wait_for(lambda: s.ended(cid), 60, "the end of the campaign")


def in_the_middle(s):
    """Parts are posted and held while the leader reads another campaign, when it has looked already what is new."""
    mine, other = s.submit(HELD), s.submit(HELD)
    for cid in (mine, other):
        s.api("POST", f"/campaigns/{cid}:pause", {})
        wait_for(lambda cid=cid: s.api("GET", f"/campaigns/{cid}")["state"] == "paused", 60, "the leader knows the campaign")
    psql(s, f"""CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        WHILE NOT pg_try_advisory_xact_lock(4711) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NEW; END $$;
        CREATE TRIGGER slow BEFORE UPDATE OF taken ON stage_run FOR EACH ROW WHEN (NEW.campaign_id = {other[2:]}) EXECUTE FUNCTION slow()""")
    person = postgres.Session([postgres.PSQL, "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", s.sock, "-U", "drover", "-d", "postgres"])
    try:
        person.ask("SELECT pg_advisory_lock(4711)")
        post_parts(s, other, 1)
        wait_for(lambda: s.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") != "0", 60, "the leader in the middle of its look")
        post_parts(s, mine, 12)
        op = s.api("POST", f"/campaigns/{mine}:hold", {"selector": {"parts": "2-5"}})
    finally:
        person.close()
    got = wait_for(lambda: (lambda o: o if o["state"] == "done" else None)(s.api("GET", f"/operations/{op['id']}")), 60, "the hold")
    tap.ok((got["parts"], got["done"]) == (4, 4) and s.api("GET", f"/campaigns/{mine}")["parts"]["held"] == 4, "a hold in the middle of a look waits for the next one", got)
    psql(s, "DROP FUNCTION slow CASCADE")
    for cid in (mine, other):
        s.api("POST", f"/campaigns/{cid}:cancel", {})
        wait_for(lambda cid=cid: s.ended(cid), 60, "the end of the campaign")


def held(s):
    cid = post(s, HELD, 12)
    parts = lambda: s.api("GET", f"/campaigns/{cid}")["parts"]  # noqa: E731
    op = change(s, cid, "hold", {"parts": "2-5"})
    tap.ok((op["parts"], op["done"], op["undoable"]) == (4, 4, False), "four waiting parts are held", op)
    refused(s, op["id"], f"drover release {cid}", "the hold is not undone, and it says what is its opposite")
    s.api("POST", f"/campaigns/{cid}:resume", {})
    wait_for(lambda: parts()["done"] == 8, 60, "the end of the others")
    s.kill("droverd0", signal.SIGKILL)
    s.start_droverd()
    c = s.api("GET", f"/campaigns/{cid}")
    g = c["guidance"][0]
    tap.ok(c["state"] == "running" and c["parts"]["held"] == 4 and (g["kind"], g["title"], g["runs"]) == ("parts_held", "4 parts are held by a person", False),
           "with the others done it runs on, and says whom it waits for", c)
    tap.eq(g["steps"][0], {"action": "release", "label": "Release 4", "command": f"drover release {cid}", "parts": 4}, "and what releases them")
    tap.eq(s.sql(f"SELECT count(*) FROM attempt a JOIN task_run r ON r.id = a.task_id WHERE r.campaign_id = {cid[2:]} AND r.seq BETWEEN 2 AND 5"), "0", "none of them was tried, by either leader")
    f, why = s.api("GET", f"/campaigns/{cid}/forecast"), s.api("GET", f"/campaigns/{cid}/parts/3/why")
    tap.ok(f["ends_in_seconds"] is None and f["reason"] == "not before its 4 held parts are released" and f["campaign"]["end"]["p50_seconds"] is None, "it has no end before", f)
    tap.ok((why["reason"], why["text"], why["next"]) == (None, "a person holds it", f"drover release {cid}/first/3"), "a part says who holds it and what is next", why)
    op = change(s, cid, "release", {"parts": [3]})
    wait_for(lambda: parts()["done"] == 9, 60, "the released part")
    tap.ok(op["done"] == 1 and parts()["held"] == 3, "what is released starts, the rest does not", parts())
    op = change(s, cid, "hold", {"state": "waiting"})
    tap.ok((op["parts"], op["done"]) == (0, 0), "where nothing waits a hold of all is of none", op)
    s.api("POST", f"/campaigns/{cid}:cancel", {})
    wait_for(lambda: s.ended(cid), 60, "the end of the campaign")
    tap.ok(parts()["cancelled"] == 3 and parts()["held"] == 0, "a cancel ends what is held", parts())
    status, text, _ = s.raw("POST", f"/v1/campaigns/{cid}:release", b'{"selector": {"state": "held"}}', {"Content-Type": "application/json", "Idempotency-Key": "late"})
    tap.ok(status == 409 and b"was cancelled" in text, "a cancelled one takes no release", (status, text))


def held_since(s, cid, before, failed):
    """Retried, on second thought held, and the retry is undone."""
    op = retry(s, cid)
    some = change(s, cid, "hold", {"stage": "first", "parts": "0-499"})["done"]
    cancel(s, op)
    wait_moving(lambda: undone(s, op), pulse(s, op), "the undo")
    got = undone(s, op)
    tap.ok(some > 0 and (got["undo"]["undone"], got["undo"]["went_on"]) == (failed, 0), f"an undo takes back the {some} parts that people hold, too", got)
    wait_for(lambda: s.ended(cid), 60, "the end of the campaign")
    tap.eq(fingerprint(s, cid), before, "and all is as before")


def to_and_fro(s, cid):
    """A hold and a release of all parts at once: each is done in the end, the later one last."""
    retry(s, cid)
    parts = lambda: s.api("GET", f"/campaigns/{cid}")["stages"][0]["parts"]  # noqa: E731
    all_of_it = parts()["waiting"]
    s.procs["droverd0"].send_signal(signal.SIGSTOP)  # both are there when the leader looks
    for verb in ("hold", "release"):
        psql(s, f"INSERT INTO operation (campaign_id, kind, selector, total, created_by) VALUES ({cid[2:]}, '{verb}', '{{}}', {all_of_it}, 'test')")
    s.procs["droverd0"].send_signal(signal.SIGCONT)
    open_ = "SELECT count(*) FROM operation WHERE state IN ('accepted', 'running')"
    wait_for(lambda: s.sql(open_) == "0", 60, "the end of both")
    tap.ok(parts()["waiting"] == all_of_it and parts()["held"] == 0, f"a hold and a release of {all_of_it} parts at once both end", parts())


def main():
    with Stack("undo", quotas={"ml.c5.xlarge": 0, "ml.c5.2xlarge": STARTS}, parts=1, rows=1, lease_us=2000000, images={"undo/nap:1": ["/bin/sh", "-c", "sleep 600"], "undo/quick:1": ["/bin/true"]}) as s:
        s.start_pg()
        s.start_local()
        s.start_droverd()
        large, small = post(s, LARGE, PARTS), post(s, SMALL, 20)
        status, text, _ = s.raw("POST", f"/v1/campaigns/{large}/parts?last=true&stage=after", b'{"uri":"s3://d/y/1","size":1}\n',
                                {"Content-Type": "application/x-ndjson", "Idempotency-Key": "after"})
        tap.eq(status, 201, f"{PARTS} parts are posted")
        wait_moving(lambda: s.sql("SELECT sum(taken) FROM stage_run") == str(PARTS + 21), lambda: cpu_s(s.procs["droverd0"].pid), "the leader's look at the parts")
        s.kill("droverd0")
        for cid in (large, small):
            psql(s, FAILED.format(cid=cid[2:], work=s.sql(f"SELECT id FROM stage WHERE campaign_id = {cid[2:]} AND name = 'first'")))
        s.start_droverd()
        wait_for(lambda: s.ended(large) and s.ended(small), 60, "the end of the campaigns")
        before = whole(s, large, PARTS - PARTS // 10)
        on_the_way(s, large, before)
        held_since(s, large, before, PARTS - PARTS // 10)
        to_and_fro(s, large)
        some_started(s, small)
        unread(s)
        in_the_middle(s)
        held(s)
        tap.eq(s.sql("SELECT count(*) FROM check_counters()"), "0", "every sum is what is counted again")
        seen = s.api("GET", "/audit?action=operation.cancel")["audit"]
        tap.ok(len(seen) == 4 and seen[-1]["campaign"] == large, "each undo is in the audit", seen)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
