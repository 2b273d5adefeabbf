"""What people do to campaigns, for api_rest.py. Aim: each verb writes what it says in every state, or is refused with the reason; guidance
says what to do. Method: every cell of operation_table.def over its route, states by SQL.
"""
import json
import re
import threading

from kit import TOP
from kit.api import leader_fails, leader_takes, spec


def check_retry(t, a):
    sel = {"selector": {"cause": ["disk_full"]}, "changes": {"volume_gb": 450}}
    s, b, _ = a.post("/v1/campaigns/c-1:retry?dry_run=true", sel)
    t.ok(s == 200 and b["parts"] == 3 and b["sample"] == [3, 5, 8], "a preview names the parts", b)
    t.eq(a.sql("SELECT count(*) FROM operation"), "0", "and asks for nothing")
    got = []
    threads = [threading.Thread(target=lambda: got.append(a.post("/v1/campaigns/c-1:retry", sel)[:2])) for _ in range(2)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    t.eq(sorted(b["parts"] for _, b in got), [0, 3], "twice at once retries once")
    t.ok(all(s == 202 for s, _ in got), "both are answered")
    op = next(b for _, b in got if b["parts"] == 3)
    t.ok(op["state"] == "accepted" and op["changes"] == {"volume_gb": 450} and op["selector"] == {"cause": ["disk_full"]}, "one operation row", op)
    t.eq(a.get("/v1/operations/" + op["id"])[1]["parts"], 3, "which can be read")
    t.eq(len(a.get("/v1/operations?page_size=1")[1]["operations"]), 1, "and listed")
    s, b, _ = a.post("/v1/campaigns/c-1:retry?dry_run=true", {"selector": {"state": "failed"}})
    t.eq(b["parts"], 2, "what is being retried is not counted again")
    s, b, _ = a.post("/v1/campaigns/c-1:retry?dry_run=true", {"selector": {"parts": [2, 3, 4]}})
    t.eq(b["parts"], 1, "part numbers that failed")
    t.eq([a.post("/v1/campaigns/c-1:retry?dry_run=true", {"selector": {"state": "failed"}, "changes": {"volume_gb": n}})[0] for n in (16384, 16385)], [200, 422], "the largest volume that can be given, and one that cannot")
    for body in ({"selector": {"state": "done"}}, {"selector": {"cause": ["x"]}}, {"selector": {"cause": [1]}}, {"selector": {"parts": []}}, {"selector": {"parts": ["1"]}},
                 {"selector": {"parts": [-1]}}, {"selector": []}, {"selector": {"stage": 5}}, *({"selector": {"state": "failed"}, "changes": c} for c in ({"volume_gb": 0}, {"volume_gb": 99999}, {"x": 1}, {"max_runtime": 0}, {"max_runtime": "29d"}, {"max_runtime": "soon"}, {"instance_type": ""}, {"instance_type": 5}))):
        t.eq(a.post("/v1/campaigns/c-1:retry", body)[0] in (400, 422), True, f"{json.dumps(body)} is refused")
    ask = lambda changes, where="?dry_run=true", sel=None: a.post("/v1/campaigns/c-1:retry" + where, {"selector": sel or {"state": "failed"}, "changes": changes})  # noqa: E731
    t.eq([ask(c)[0] for c in ({"instance_type": "ml.c5.xlarge"}, {"max_runtime": "4h"}, {"max_runtime": 2419200}, {"instance_type": "ml.c5.xlarge", "max_runtime": 60, "volume_gb": 9})], [200] * 4, "a type of the stage's list, a run time, all three")
    s, b, _ = ask({"instance_type": "ml.c5.18xlarge"}, "")
    t.ok(s == 422 and "stage 'download' lists ml.c5.xlarge; name one of these" in b["detail"], "a type that the stage does not list: 422, and which it lists", (s, b))
    s, b, _ = ask({"max_runtime": "4h", "instance_type": "ml.c5.xlarge"}, "", {"parts": [999]})
    t.ok(s == 202 and b["changes"] == {"max_runtime": 14400, "instance_type": "ml.c5.xlarge"}, "a run time is kept in seconds", (s, b))
    before = a.sql("SELECT count(*) FROM operation")
    for sel in (None, {}, {"cause": []}, {"cause": ""}, {"parts": []}, {"parts": ""}, {"stage": ""}, {"state": ""}, {"filter": ""}, {"filter": "cause IN ()"}, {"state": "failed", "cause": []},
                {"cause": ["oom", ""]}, {"parts": "2,"}):
        s, b, _ = a.post("/v1/campaigns/c-1:retry", {} if sel is None else {"selector": sel})
        t.ok(s == 422, f"the selector {json.dumps(sel)}: 422, never all", (s, b))
    t.eq(a.sql("SELECT count(*) FROM operation"), before, "and nothing was asked for")
    same = [a.post("/v1/campaigns/c-1:retry?dry_run=true", {"selector": sel})[1]["parts"] for sel in
            ({"cause": "oom,oom"}, {"cause": ["oom"]}, {"filter": "state=failed AND cause IN (oom, disk_full)", "parts": "2, 11"}, {"parts": [2, 11], "state": "failed"})]
    t.eq(same, [2, 2, 2, 2], "lists as text, as arrays and in a filter mean the same")
    key = {"Idempotency-Key": "again"}
    s1, b1, _ = a.post("/v1/campaigns/c-1:retry", {"selector": {"parts": [2]}}, key)
    s2, b2, _ = a.post("/v1/campaigns/c-1:retry", {"selector": {"parts": [2]}}, key)
    t.ok(s1 == s2 == 202 and b1 == b2 and b1["parts"] == 1, "a keyed retry is answered once")
    t.ok(b1["undoable"] and b1["undo"] is None and not any(o["undoable"] for o in a.get("/v1/operations")[1]["operations"] if o["parts"] == 0), "what goes on can be undone, what moved nothing cannot")


def check_retry_preview(t, a):
    """What a retry adds: end and cost, also of a campaign that has ended, and the warm pools that it would not use."""
    cid = a.submit(spec("previewed", "{from: api}", "    expect: {duration: 30m}"))[1]["id"]
    n = cid[2:]
    assert a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", "".join('{"uri":"s3://a/%d","size":1}\n' % i for i in range(8)))[0] == 201
    leader_takes(a, int(n))
    leader_fails(a, int(n), (1, 2, 3, 4), 7)
    ask = lambda parts="1-3", **changes: a.post(f"/v1/campaigns/{cid}:retry?dry_run=true", {"selector": {"parts": parts}, "changes": changes})[1]  # noqa: E731
    b = ask()
    f = b["forecast"]
    price = 204000 * 30 // 60
    t.ok(f["known"] and f["reason"] is None and f["end"]["p50_seconds"] > f["now"]["p50_seconds"] > 1500 and abs(f["added_micro_usd"] - 3 * price) < price, "a preview says the new end and what is added", b)
    t.ok(ask("1")["forecast"]["added_micro_usd"] < f["added_micro_usd"], "for as many parts as are meant")
    t.ok(ask("0-2999")["parts"] == 4, "thousands of parts may be named")
    t.ok(ask("7")["forecast"] is None and b["pools_lost"] == 0, "and nothing when none is")
    a.sql(f"""INSERT INTO pool (attempt_id, campaign_id, stage_id, state, fingerprint, instance_type, instances, keep_alive_s)
        SELECT id, campaign_id, stage_id, 'available', 1, instance_type, 1, 600 FROM attempt WHERE campaign_id = {n} ORDER BY id LIMIT 2;
        UPDATE attempt SET volume_gb = 100 WHERE campaign_id = {n}""")
    t.eq([ask(**c)["pools_lost"] for c in ({}, {"volume_gb": 100}, {"volume_gb": 120}, {"instance_type": "ml.c5.xlarge"})], [0, 0, 2, 0], "idle warm pools that another volume does not match are told")
    a.sql(f"""DELETE FROM pool WHERE campaign_id = {n}; UPDATE campaign_run SET state = 'failed', ended_at = clock_timestamp() WHERE campaign_id = {n};
        UPDATE stage_run SET state = 'failed', waiting = 0, done = 4 WHERE campaign_id = {n}; UPDATE task_run SET state = 3 WHERE campaign_id = {n} AND state = 0""")
    f = ask("1-4")["forecast"]
    t.ok(f["known"] and f["now"] is None and f["end"]["p50_seconds"] > 1500 and abs(f["added_micro_usd"] - 4 * price) < 2 * price, "so does one of a campaign that has ended", f)
    a.sql("DELETE FROM price WHERE instance_type = 'ml.c5.xlarge'")
    t.ok(ask("1-2")["forecast"]["added_micro_usd"] is None, "without a price it does not guess what it adds")


def check_undo(t, a):
    """Who may, once, and what is refused with what can be done instead; tests/integration/controller/undo.py has the rest."""
    cancel = lambda op, **kw: a.post(f"/v1/operations/{op}:cancel", {}, **kw)[:2]  # noqa: E731
    ops = {row.split("|")[0]: "op-" + row.split("|")[1] for row in a.sql("""INSERT INTO operation (campaign_id, kind, selector, state, total, done, ended_at) VALUES
        (1, 'retry', '{}', 'running', 9, 4, NULL), (1, 'retry', '{}', 'done', 4, 4, now()), (1, 'skip', '{}', 'done', 4, 4, now()), (1, 'archive', '{}', 'running', 4, 1, NULL)
        RETURNING kind || '-' || state, id""").splitlines()}
    viewer = a.post("/v1/tokens", {"name": "looks", "role": "viewer"})[1]["token"]
    t.eq((cancel(ops["retry-running"], token=viewer)[0], cancel("op-999")[0], a.get(f"/v1/operations/{ops['retry-running']}:cancel")[0]), (403, 404, 405), "an undo is an operator's; of none: 404; with GET: 405")
    got = [None, None]

    def ask(i):
        got[i] = cancel(ops["retry-running"])
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(2)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    (s1, b1), (s2, b2) = sorted(got, key=lambda g: g[0])
    t.ok((s1, s2) == (202, 409) and b1["undo"]["undone"] == 0 and b1["undo"]["ended_at"] is None and not b1["undoable"], "twice at once: one undo, and 409", got)
    t.ok(f"is being undone already; drover ops {ops['retry-running']} shows how far" in b2["detail"], "which says what shows it", b2)
    for name, words in (("retry-done", "no part of it waits to start; drover pause c-1"), ("skip-done", "submit these parts of c-1 again"), ("archive-running", "is not undone; drover ops")):
        s, b = cancel(ops[name])
        t.ok(s == 409 and words in b["detail"], f"{name}: 409 with what can be done", (s, b))
    a.sql(f"""INSERT INTO task_retried SELECT id, campaign_id, stage_id, {ops['retry-done'][3:]}, names, 1, NULL, 7, 's', 'm', 0, now(), false, 0, 0, 0, '{{}}', 0, 0
        FROM task_run WHERE campaign_id = 1 AND seq = 3""")
    t.ok(a.get("/v1/operations/" + ops["retry-done"])[1]["undoable"], "one of which a part waits can be undone")
    t.eq(cancel(ops["retry-done"])[0], 202, "and is")
    t.eq(a.sql("SELECT count(*), min(subject) FROM audit WHERE action = 'operation.cancel'"), f"2|{min(ops['retry-running'], ops['retry-done'])}", "each undo is in the audit, what was refused is not")
    t.eq([r["campaign"] for r in a.get("/v1/audit?campaign=c-1&action=operation")[1]["audit"]], ["c-1", "c-1"], "of its campaign")
    a.sql("DELETE FROM operation WHERE id >= " + ops["retry-running"][3:] + "; DELETE FROM task_retried")


WISHES = {"CANCELLING": "cancel", "CANCELLED": "cancel", "PAUSED": "pause", "DRAINING": "drain"}
WHOLE = {"PAUSE": "pause", "DRAIN": "drain", "CANCEL": "cancel", "RESUME": "run"}


def written(verb, campaign, stage, carried, was):
    """What a verb leaves in (wanted, version, resumes, operations, archives, audit rows): of a refused one nothing. The leader moves the parts."""
    if not carried:
        return was
    wanted, version, resumes, operations, archives, audit = was
    if verb in WHOLE:
        told = int(wanted != WHOLE[verb] or (verb == "RESUME" and campaign == "HELD"))
        again = int(verb == "RESUME" and stage == "held")
        return [WHOLE[verb], str(int(version) + told + again), str(int(resumes) + again), operations, archives, str(int(audit) + told)]
    if verb == "ARCHIVE" and campaign == "ARCHIVED":
        return was
    return [wanted, version, resumes, verb.lower(), "1" if verb == "ARCHIVE" else archives, str(int(audit) + 1)]


def check_verbs(t, a):
    """Every cell of operation_table.def over its route: the status, and what is written or, when refused, that nothing is. A stage is named where
    the verb acts on parts. A second stage has succeeded; of a GATED campaign its gate holds it, and those of the first one if that is held."""
    stages = ("blocked", "running", "held", "succeeded", "failed", "skipped", "cancelled")
    with open(TOP + "/orchestrator/core/leader/operation_table.def", encoding="utf-8") as f:
        rows = [m.group(1).split(", ") for m in re.finditer(r"^X\((.*)\)$", f.read(), re.M)]
    s, b, _ = a.submit(spec("verbs", "{from: api}"))
    cid, wrong, cells, refused = b["id"], [], 0, 0
    n = cid[2:]
    stage = a.sql(f"SELECT name FROM stage WHERE campaign_id = {n} ORDER BY seq LIMIT 1")
    a.sql(f"""INSERT INTO stage (campaign_id, seq, name) VALUES ({n}, 1, 'gate');
        INSERT INTO stage_input (stage_id, campaign_id, tasks, closed) SELECT id, {n}, 0, true FROM stage WHERE campaign_id = {n} AND seq = 1 ON CONFLICT DO NOTHING;
        INSERT INTO stage_run (stage_id, campaign_id, state) SELECT id, {n}, 'succeeded' FROM stage WHERE campaign_id = {n} AND seq = 1 ON CONFLICT DO NOTHING;
        UPDATE stage_input SET closed = true WHERE stage_id = (SELECT id FROM stage WHERE campaign_id = {n} AND seq = 1)""")
    read = f"""SELECT concat_ws('|', c.wanted, c.version, (SELECT sum(resumes) FROM stage WHERE campaign_id = c.id),
        (SELECT coalesce(string_agg(kind, ','), '') FROM operation WHERE campaign_id = c.id), (SELECT count(*) FROM archive WHERE campaign_id = c.id), (SELECT count(*) FROM audit))
        FROM campaign c WHERE id = {n}"""
    for verb, campaign, *answers in rows:
        state = {"CANCELLING": "running", "ARCHIVED": "succeeded", "GATED": "held"}.get(campaign, campaign.lower())
        gate = ("held", "gate: loss is 4") if campaign == "GATED" else ("succeeded", "")
        for k, answer in enumerate(answers):
            reason = gate[1] if stages[k] == "held" else ""
            was = a.sql(f"""UPDATE campaign SET wanted = '{WISHES.get(campaign, "run")}' WHERE id = {n}; UPDATE campaign_run SET state = '{state}' WHERE campaign_id = {n};
                UPDATE stage_run r SET state = CASE seq WHEN 0 THEN '{stages[k]}' ELSE '{gate[0]}' END, reason = CASE seq WHEN 0 THEN '{reason}' ELSE '{gate[1]}' END FROM stage g
                WHERE g.id = r.stage_id AND r.campaign_id = {n}; DELETE FROM operation WHERE campaign_id = {n}; DELETE FROM archive; """
                        + (f"INSERT INTO archive (campaign_id) VALUES ({n}); INSERT INTO operation (campaign_id, kind, selector) VALUES ({n}, 'archive', '{{}}'); "
                           if campaign == "ARCHIVED" else "") + read).split("|")
            s, b, _ = a.post(f"/v1/campaigns/{cid}:{verb.lower()}", {"selector": {"stage": stage}} if verb in ("RETRY", "SKIP", "HOLD", "RELEASE") else None)
            carried = answer in ("CARRIED_OUT", "REOPENS", "GOES_ON")
            cells, refused = cells + 1, refused + (not carried)
            now, want = a.sql(read).split("|"), written(verb, campaign, stages[k], carried, was)
            if s != (202 if carried else 410 if campaign == "ARCHIVED" else 409) or (not carried and len(b["detail"]) < 20) or now != want:
                wrong.append((verb, campaign, stages[k], answer, s, b["detail"] if s > 299 else "", was, now, want))
    t.ok(len(rows) == 99 and cells == 693 and 300 < refused < 400 and not wrong,
         f"{cells} cells of the table of verbs: 202 with what it says written, or 409 or 410 with the reason and nothing written ({refused})", (len(rows), cells, len(wrong), wrong[:6]))
    a.sql(f"DELETE FROM stage_run WHERE stage_id IN (SELECT id FROM stage WHERE campaign_id = {n} AND seq = 1)")
    a.sql(f"UPDATE campaign SET wanted = 'cancel' WHERE id = {cid[2:]}; UPDATE campaign_run SET state = 'failed' WHERE campaign_id = {cid[2:]}; DELETE FROM archive; "
          f"UPDATE stage_run SET state = 'failed' WHERE campaign_id = {cid[2:]}")
    before = a.get(f"/v1/campaigns/{cid}")[1]["version"]
    s, b, _ = a.post(f"/v1/campaigns/{cid}:retry", {"selector": {"stage": stage}})
    now = a.get(f"/v1/campaigns/{cid}")[1]
    t.ok(s == 202 and now["wanted"] == "run" and now["version"] == before + 1, "a retry takes a cancel back that came when the campaign had just failed", (s, b, now["wanted"]))
    a.sql(f"DELETE FROM archive; DELETE FROM operation WHERE kind = 'archive'; UPDATE campaign_run SET state = 'cancelled' WHERE campaign_id = {cid[2:]}")


def check_stage_budget(t, a):
    """What a stage and each of its parts may cost: what one request leaves out stays, null takes it off."""
    change = lambda budget, stage="download", **more: a.call("PATCH", "/v1/campaigns/c-1", {"stages": {stage: {"budget": budget, **more}}}, {"If-Match": "*"})  # noqa: E731
    of = lambda b: [b["stages"][0]["budget"][k] for k in ("limit_micro_usd", "per_task_micro_usd")]  # noqa: E731
    parts = a.get("/v1/campaigns/c-1")[1]["stages"][0]["limits"]["parts"]
    s, b, h = change({"total": "12.50 USD"})
    t.eq((s, of(b), b["stages"][0]["limits"]["parts"], b["budget"]["limit_micro_usd"]), (200, [12500000, None], parts, 900000000), "a stage gets a budget, and neither its parts nor its campaign another")
    t.eq(of(change({"per_task": "0.4"})[1]), [12500000, 400000], "each of its parts one, and its own stays")
    s, b, _ = change({"total": "13", "per_task": "0.5"}, parts=3)
    t.eq((of(b), b["stages"][0]["limits"]["parts"]), ([13000000, 500000], 3), "both, and its parts, at once")
    row = a.get("/v1/audit?action=campaign.change")[1]["audit"][0]
    t.eq([row["before"], row["detail"]], [{"stages": {"download": {"parts": parts, "budget": {"limit_micro_usd": 12500000, "per_task_micro_usd": 400000}}}},
                                          {"stages": {"download": {"budget": {"total": "13", "per_task": "0.5"}, "parts": 3}}}], "the audit has before and after, of that stage alone")
    t.eq(a.call("PATCH", "/v1/campaigns/c-1", {"stages": {"download": {"budget": {"total": "1"}}}}, {"If-Match": h["etag"]})[0], 412, "with an old tag: 412")
    t.eq(change({"total": "1"}, "upload")[0], 404, "of a stage that is not there: 404")
    for budget in ({}, {"total": "x"}, {"total": 5}, {"total": "-1"}, {"each": "1"}, None, "12 USD"):
        t.eq(change(budget)[0] in (400, 422), True, f"PATCH of a stage's budget {budget} is refused")
    t.eq(a.sql("SELECT at_limit || ' ' || coalesce(array_to_string(warn_at_ppm, ','), '') FROM cap WHERE level = 'stage'"),
         a.sql("SELECT at_limit || ' ' || coalesce(array_to_string(warn_at_ppm, ','), '') FROM cap WHERE level = 'campaign' AND ref_id = 1"), "its cap warns as that of its campaign")
    t.eq(of(change({"total": None, "per_task": None}, parts=parts)[1]), [None, None], "and they can be taken off")


def check_wishes(t, a):
    for verb, wanted in (("pause", "pause"), ("drain", "drain"), ("resume", "run")):
        before = a.get("/v1/campaigns/c-1")[1]["version"]
        s, b, _ = a.post(f"/v1/campaigns/c-1:{verb}")
        t.ok(s == 202 and b["wanted"] == wanted and b["version"] == before + 1, f":{verb}", b)
    t.eq(a.post("/v1/campaigns/c-1:resume")[1]["version"], a.get("/v1/campaigns/c-1")[1]["version"], "asking again changes nothing")
    s, b, h = a.get("/v1/campaigns/c-1")
    t.eq(a.call("PATCH", "/v1/campaigns/c-1", {"priority": 70})[0], 428, "PATCH without If-Match: 428")
    t.eq(a.call("PATCH", "/v1/campaigns/c-1", {"priority": 70}, {"If-Match": '"999"'})[0], 412, "with an old one: 412")
    s, b, _ = a.call("PATCH", "/v1/campaigns/c-1", {"priority": 70, "limits": {"parts": 5}, "budget": {"total": "900 USD", "at_limit": "hold"}}, {"If-Match": h["etag"]})
    t.ok(s == 200 and b["priority"] == 70 and b["limits"]["parts"] == 5 and b["budget"]["limit_micro_usd"] == 900000000 and b["budget"]["at_limit"] == "hold", "limits change", b)
    t.eq(a.call("PATCH", "/v1/campaigns/c-1", {"priority": 71}, {"If-Match": h["etag"]})[0], 412, "the tag of before is stale now")
    s, b, _ = a.call("PATCH", "/v1/campaigns/c-1", {"limits": {"parts": None}}, {"If-Match": "*"})
    t.ok(s == 200 and b["limits"]["parts"] is None and b["budget"]["limit_micro_usd"] == 900000000, "a limit can be taken off", b)
    check_stage_budget(t, a)
    late = lambda: [g for g in a.get("/v1/campaigns/c-1")[1]["guidance"] if g["kind"] == "late"]  # noqa: E731
    row = lambda: next(c for c in a.get("/v1/campaigns?page_size=1000")[1]["campaigns"] if c["id"] == "c-1")  # noqa: E731
    s, b, _ = a.call("PATCH", "/v1/campaigns/c-1", {"deadline": "2099-12-01T18:00:00Z"}, {"If-Match": "*"})
    t.ok(s == 200 and b["deadline"] == row()["deadline"] == "2099-12-01T18:00:00+00:00" and not late(), "a deadline can be set", b)
    s, b, _ = a.call("PATCH", "/v1/campaigns/c-1", {"deadline": "2020-12-01T18:00:00Z"}, {"If-Match": "*"})
    t.ok(late()[0]["title"] == "late: its deadline was 2020-12-01T18:00:00Z" and row()["guidance"][-1]["kind"] == "late" and late()[0]["steps"][0]["command"] == "drover deadline c-1", "one that has passed is told as late, in lists too", late())
    b = a.get("/v1/audit?action=campaign.change")[1]["audit"][0]
    t.eq([b["before"], b["detail"]], [{"deadline": "2099-12-01T18:00:00+00:00"}, {"deadline": "2020-12-01T18:00:00Z"}], "the audit has both")
    s, b, _ = a.call("PATCH", "/v1/campaigns/c-1", {"priority": 70}, {"If-Match": "*"})
    t.ok(b["deadline"] is not None and a.call("PATCH", "/v1/campaigns/c-1", {"deadline": None}, {"If-Match": "*"})[1]["deadline"] is None and not late(), "it stays when something else changes, and can be taken off", b)
    for body in ({"deadline": "tomorrow"}, {"deadline": "2099-12-01T18:00:00+01:00"}, {"deadline": "2099-13-01T18:00:00Z"}, {"deadline": ""}, {"deadline": 7}, {"priority": 101}, {"priority": "1"}, {"limits": {"parts": -1}}, {"limits": {"x": 1}}, {"budget": {"total": "x"}}, {"budget": {"at_limit": "x"}}, {"name": "x"},
                 {"budget": {"total": "1 USD", "limit_micro_usd": 1}}):
        t.eq(a.call("PATCH", "/v1/campaigns/c-1", body, {"If-Match": "*"})[0] in (400, 422), True, f"PATCH {json.dumps(body)} is refused")
    t.eq(a.post("/v1/campaigns/c-1:cancel")[1]["wanted"], "cancel", ":cancel")
    t.eq(a.post("/v1/campaigns/c-1:resume")[0], 409, "a cancelled one is not resumed")
    t.eq(a.post("/v1/campaigns/c-1:retry", {"selector": {"state": "failed"}})[0], 409, "nor retried")
    t.eq(a.post("/v1/campaigns/c-1:cancel")[0], 202, "but cancelled again")
    page, ids, token = None, [], ""
    while True:
        page = a.get(f"/v1/campaigns?page_size=2{token}")[1]
        ids += [c["id"] for c in page["campaigns"]]
        if not page["next_page_token"]:
            break
        token = "&page_token=" + page["next_page_token"]
    t.ok(ids == sorted(ids, key=lambda i: -int(i[2:])) and len(ids) == int(a.sql("SELECT count(*) FROM campaign")), "campaigns page newest first, each once", ids)
    t.eq([c["id"] for c in a.get("/v1/campaigns?state=running")[1]["campaigns"]], ["c-1"], "?state=running")
    s, b, _ = a.get("/v1/quotas")
    q = next(x for x in b["quotas"] if x["instance_type"] == "ml.c5.xlarge")
    t.ok(q["limit"] == 4 and q["free"] == 4 and q["price_micro_usd_per_hour"] == 204000, "quotas", q)


def check_guidance(t, a):
    """What is held, stuck or cannot run says so, since when, and what mends it; what runs says nothing."""
    cid = a.submit(spec("guided", "{from: api}", top="budget: 10 USD"))[1]["id"]
    n = cid[2:]
    assert a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", '{"uri":"s3://a/0","size":1}\n{"uri":"s3://a/1","size":1}')[0] == 201
    leader_takes(a, int(n))
    first = a.get(f"/v1/campaigns/{cid}")[1]["guidance"]
    t.eq(first, [], "a campaign that may run has no guidance")

    def after(text, state="running", reason=""):
        a.sql(f"UPDATE campaign_run SET state = '{state}', reason = '{reason}' WHERE campaign_id = {n}; {text}")
        one = a.get(f"/v1/campaigns/{cid}")[1]["guidance"]
        listed = next(c for c in a.get("/v1/campaigns")[1]["campaigns"] if c["id"] == cid)["guidance"]
        t.eq(listed, one, f"{state} {reason[:20]}: the list says the same")
        return one

    def wait(reason):
        return f"UPDATE stage_run SET wait_reason = '{reason}' WHERE campaign_id = {n};"
    g = after("UPDATE quota SET limit_n = 0 WHERE instance_type = 'ml.c5.xlarge';" + wait("quota_too_small"))[0]
    t.ok(g["title"] == "waits: quota 0 for ml.c5.xlarge (0 held by drover, 0 by others)" and not g["runs"] and g["since"].endswith("Z")
         and g["steps"][0]["action"] == "quota" and g["steps"][0]["url"].startswith("https://"), "quota 0: type, limit and use", g)
    g = after("DELETE FROM price;" + wait("price_unknown"))[0]
    t.ok("no price is known for ml.c5.xlarge" in g["title"], "no price: which type", g)
    g = after("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.xlarge', 204000, 'test');" + wait("budget"))[0]
    t.eq([s["command"] for s in g["steps"]], [f"drover budget {cid} USD"], "a cap that leaves too little: raise it")
    g = after(f"INSERT INTO cap (level, ref_id, limit_musd, per_task_musd) SELECT 'stage', id, 8000000, 400000 FROM stage WHERE campaign_id = {n};" + wait("stage_budget"))[0]
    t.ok("(0.00 USD spent, 0.00 reserved, budget 8.00 USD)" in g["title"] and g["stage"] == "download" and [(s["action"], s["command"], s["stage"]) for s in g["steps"]] == [("budget", f"drover budget {cid}/download USD", "download")], "a stage's own: raise that", g)
    g = after(wait("part_budget"))[0]
    t.ok("(each part at most 0.40 USD)" in g["title"] and [(s["action"], s["command"]) for s in g["steps"]] == [("part_budget", f"drover budget {cid}/download --per-task USD")], "or that of its parts", g)
    for reason, command in (("budget of stage download", "drover budget {}/download USD --resume"), ("budget per part of stage download", "drover budget {}/download --per-task USD --resume")):
        g = after("", "held", reason)
        t.ok([x["kind"] for x in g] == ["budget"] and g[0]["stage"] == "download" and g[0]["evidence"] and [s["command"] for s in g[0]["steps"]] == [command.format(cid), f"drover resume {cid}"], f"held: {reason}", g)
    g = after(f"UPDATE campaign SET parts_limit = 0 WHERE id = {n};" + wait("concurrency"))[0]
    t.ok("limits.parts of the campaign is 0" in g["title"] and g["steps"][0]["action"] == "limits", "a limit of parts: which", g)
    g = after(wait("paused"), "paused")
    t.ok(len(g) == 1 and g[0]["kind"] == "paused" and g[0]["steps"][0]["command"] == f"drover resume {cid}", "paused", g)
    g = after(f"INSERT INTO money (level, ref_id, spent_musd) VALUES ('campaign', {n}, 9800000);", "held", "budget")[0]
    t.ok(g["evidence"] == "9.80 USD spent, 0.00 reserved, budget 10.00 USD" and [s["action"] for s in g["steps"]] == ["budget", "resume"], "held by its budget", g)
    leader_fails(a, int(n), [1], 13, "exit 1")
    g = after(f"UPDATE stage_run SET state = 'held', reason = '{'x' * 500}' WHERE campaign_id = {n};", "held", "stage download: x")[0]
    t.ok(g["evidence"] == "x" * 500 and g["stage"] == "download" and g["steps"][0] == {"action": "retry", "label": "Retry 1 and resume",
         "command": f"drover retry {cid} --stage download --resume", "stage": "download", "parts": 1}, "held by its breaker: the whole reason, and a retry of what failed", g)
    g = after(f"INSERT INTO parked (kind, ref_id, campaign_id, reason, since) VALUES ('campaign', {n}, {n}, 'refused <b>', '2026-01-02T03:04:05+01');", "held", "stage download: x")
    t.ok([x["kind"] for x in g] == ["breaker", "parked"] and g[1]["evidence"] == "refused <b>" and g[1]["runs"], "what is parked comes last", g)
    rows = [a.get(f"/v1/parked{q}")[1]["parked"] for q in (f"?campaign={cid}", "")]
    t.eq([(x["kind"], x["id"], x["reason"], x["since"], cid in x["what_to_do"]) for r in rows for x in r], [("campaign", cid, "refused <b>", "2026-01-02T02:04:05+00:00", True)] * 2, "listed with since when, of it and of all")
    t.eq(g[1]["since"], "2026-01-02T02:04:05Z", "as the guidance says")
    g = after(f"INSERT INTO parked (kind, ref_id, campaign_id, reason) SELECT 'part', i, {n}, 'x' FROM generate_series(1, 2) i;", "held", "stage download: x")
    t.eq(g[1]["title"], "1 campaign, 2 parts set aside: the database refuses a value", "and says what it is")
    g = after(f"DELETE FROM parked WHERE campaign_id = {n}; UPDATE stage_run SET state = 'running', waiting = waiting - 1, active = active + 1 WHERE campaign_id = {n};" + wait("slots"))
    t.eq(g, [], "while a part runs there is none")
    t.eq(after("", "failed"), [], "nor once it has ended")
    a.sql("UPDATE quota SET limit_n = 4 WHERE instance_type = 'ml.c5.xlarge'")
    before = a.get(f"/v1/campaigns/{cid}")[2]["etag"]
    key = {"If-Match": before, "Idempotency-Key": "patch-1"}
    s1, b1, _ = a.call("PATCH", f"/v1/campaigns/{cid}", {"priority": 61}, key)
    s2, b2, h2 = a.call("PATCH", f"/v1/campaigns/{cid}", {"priority": 61}, key)
    t.ok(s1 == s2 == 200 and b1 == b2 and h2["idempotent-replayed"] == "true", "a PATCH repeated with its key is answered again, though its version is over", (s2, b2))
    t.eq(a.call("PATCH", f"/v1/campaigns/{cid}", {"priority": 62}, key)[0], 422, "with another body: 422")
    s, b, _ = a.post(f"/v1/campaigns/{cid}:skip?dry_run=true", {"selector": {"parts": "0-1"}})
    t.ok(s == 200 and b["sample"] == [1], ":skip previews failed parts, with ranges", (s, b))
    t.eq(a.post(f"/v1/campaigns/{cid}:skip", {"selector": {"parts": "0-1"}, "changes": {"volume_gb": 9}})[0] in (400, 422), True, "a skip changes nothing of them")
    s, b, _ = a.post(f"/v1/campaigns/{cid}:skip", {"selector": {"parts": "0-1"}})
    t.ok(s == 202 and b["kind"] == "skip" and b["parts"] == 1 and b["selector"]["parts"] == [0, 1], "and becomes an operation", (s, b))
    t.eq(a.sql(f"SELECT count(*) FROM audit WHERE action = 'campaign.skip' AND subject = '{cid}'"), "1", "which the audit names")
    for bad in ("5-3", "0-10000", "1-x", "x-1", "1--2"):
        t.eq(a.post(f"/v1/campaigns/{cid}:skip", {"selector": {"parts": bad}})[0] in (400, 413, 422), True, f"parts {bad} is refused")


def check_guidance_without_parts(t, a):
    """An endpoint or a file system that waits is told of like parts that wait, though its stage has none."""
    top = "version: 1\nname: no-parts\nstages:\n"
    model = '{data: "s3://bkt/model.tar.gz", image: "drover/server:1"}'
    for text, kind in ((f"  - {{name: deploy, kind: endpoint, model: {model}, instance_type: ml.c5.xlarge, ttl: 1h}}", "endpoint"), ("  - {name: deploy, kind: lustre, size_gb: 1200, import: 's3://bkt/in/', ttl: 4h, vpc: {subnets: [subnet-0123456789abcdef0], security_groups: [sg-0123456789abcdef0]}}", "lustre")):
        status, b, _ = a.submit(top + text)
        t.ok(status == 201, f"{kind}: taken", b)
        n = b["id"][2:]
        for state, reason, told in (("running", "budget", True), ("running", "price_unknown", True), ("running", "none", False), ("blocked", "budget", False)):
            a.sql(f"UPDATE campaign_run SET state = 'running' WHERE campaign_id = {n}; UPDATE stage_run SET state = '{state}', wait_reason = '{reason}' WHERE campaign_id = {n};")
            c = a.get(f"/v1/campaigns/{b['id']}")[1]
            listed = next(x for x in a.get("/v1/campaigns")[1]["campaigns"] if x["id"] == b["id"])
            stage = c["stages"][0]
            t.eq((stage["kind"], stage["wait_reason"], bool(stage["wait_text"]), c["waits_for"] == listed["waits_for"] == stage["wait_text"], [g["kind"] for g in c["guidance"]]),
                 (kind, reason if told else None, told, True, [reason] if told else []), f"{kind} {state}, {reason}: the stage, the campaign, the list and the guidance agree")
            t.ok(not told or not c["guidance"][0]["title"].endswith(" for"), f"{kind} {reason}: a title of whole words", c["guidance"])
        a.sql(f"UPDATE campaign_run SET state = 'cancelled' WHERE campaign_id = {n}")


def check_holds(t, a):
    """What waits can be held and what is held released; the leader's part is shown by the suite undo."""
    cid = a.submit(spec("held", "{from: api}"))[1]["id"]
    assert a.call("POST", f"/v1/campaigns/{cid}/parts?last=true", "".join('{"uri":"s3://a/%d","size":1}\n' % i for i in range(5)))[0] == 201
    leader_takes(a, int(cid[2:]))
    a.sql(f"UPDATE campaign_run SET state = 'running' WHERE campaign_id = {cid[2:]}")
    hold = lambda selector, verb="hold", dry="?dry_run=true": a.post(f"/v1/campaigns/{cid}:{verb}{dry}", {"selector": selector})  # noqa: E731
    waiting = int(a.sql(f"SELECT sum(waiting) FROM stage_run WHERE campaign_id = {cid[2:]}"))
    s, b, _ = hold({"state": "waiting"})
    t.ok(s == 200 and waiting > 0 and (b["parts"], b["sample"]) == (waiting, []), ":hold previews all that wait, by the counters", (s, b, waiting))
    free = a.sql(f"SELECT string_agg(seq::text, ',' ORDER BY seq) FROM (SELECT r.seq FROM task_run r JOIN stage_run n USING (stage_id) WHERE n.campaign_id = {cid[2:]} AND r.state = 0 AND r.seq < n.taken ORDER BY 1 LIMIT 2) x")
    s, b, _ = hold({"parts": f"{free},9000"})
    t.ok(s == 200 and b["sample"] == [int(n) for n in free.split(",")], "and those of a list that wait, by their numbers", (s, b))
    t.eq(hold({"parts": free}, "release")[1]["parts"], 0, "of which none is held")
    for selector, verb, words in (({"state": "failed"}, "hold", "waiting"), ({"state": "waiting"}, "release", "held"), ({"cause": ["oom"]}, "hold", "cause"), ({}, "hold", "selector"),
                                  ({"stage": "nope"}, "release", "nope"), ({"parts": "5-3"}, "hold", "parts")):
        s, b, _ = hold(selector, verb)
        t.ok(s in (400, 404, 422) and words in json.dumps(b), f":{verb} of {selector} is refused and says why", (s, b))
    s, b, _ = hold({"parts": free}, dry="")
    t.ok(s == 202 and b["kind"] == "hold" and b["parts"] == 2 and b["selector"] == {"parts": [int(n) for n in free.split(",")]}, "a hold becomes an operation", (s, b))
    t.eq(a.sql(f"SELECT count(*) FROM audit WHERE action = 'campaign.hold' AND subject = '{cid}'"), "1", "which the audit names")
    a.sql(f"UPDATE stage_run SET waiting = waiting - 1, held = held + 1 WHERE campaign_id = {cid[2:]}")
    b = a.get(f"/v1/campaigns/{cid}")[1]["guidance"]
    t.ok([g["steps"][0]["command"] for g in b if g["kind"] == "parts_held"] == [f"drover release {cid}"], "what is held is told with the campaign", b)
    n = free.split(",")[0]
    row = f"campaign_id = {cid[2:]} AND seq = {n}"
    a.sql(f"UPDATE task_run SET state = 2 WHERE {row}")
    stage = a.sql(f"SELECT name FROM stage WHERE campaign_id = {cid[2:]} ORDER BY seq LIMIT 1")
    t.eq(a.get(f"/v1/campaigns/{cid}/parts/{n}/why?stage={stage}")[1]["next"], f"drover release {cid}/{stage}/{n}", "a held part's command names its stage, since each stage counts its parts from 0")
    a.sql(f"UPDATE task_run SET state = 0 WHERE {row}")
    a.sql(f"UPDATE stage_run SET waiting = waiting + 1, held = held - 1 WHERE campaign_id = {cid[2:]}")


def check_skipped(t, a):
    """A skipped part says by whom and when, and one whose stage waits for another names that and how far it is."""
    extra = """  - name: pack
    needs: [download]
    worker: download
    fan_out: {from: api}
    instance_type: ml.c5.xlarge
    max_runtime: 1h
    hyperparameters: {url_list: "{uri}", output_folder: "s3://data/pack/{part:05d}/"}
"""
    status, b, _ = a.submit(spec("skipped", "{from: api}", extra))
    cid, n = b["id"], b["id"][2:]
    for stage, parts in (("download", 5), ("pack", 2)):
        assert a.call("POST", f"/v1/campaigns/{cid}/parts?last=true&stage={stage}", "".join('{"uri":"s3://a/%d","size":1}\n' % i for i in range(parts)))[0] == 201, status
    leader_takes(a, int(n))
    of = lambda name: f"(SELECT id FROM stage WHERE campaign_id = {n} AND name = '{name}')"  # noqa: E731
    a.sql(f"""DELETE FROM task_failure WHERE campaign_id = {n}; UPDATE stage_run SET state = 'blocked', wait_reason = 'stage_blocked' WHERE stage_id = {of('pack')};
        UPDATE stage_run SET waiting = 1, done = 3, skipped = 1 WHERE stage_id = {of('download')}""")
    told = "waits for download: 3 of 5 done, 1 skipped"
    at = lambda seq, what="", stage="download": a.get(f"/v1/{'campaigns/' + cid + '/' if what else ''}parts/{'' if what else cid + '/'}{seq}{what}?stage={stage}")[1]  # noqa: E731
    whole = a.get(f"/v1/campaigns/{cid}")[1]
    faces = (at(0, "/why", "pack")["text"], at(0, "", "pack")["wait_text"], whole["stages"][1]["wait_text"], whole["stages"][0]["wait_text"])
    t.eq(faces, ("its stage " + told,) * 2 + (told, "the leader has not looked at it yet"), "a part whose stage waits says for which and how far that is, as its stage does")
    out = a.drover("why", f"{cid}/pack/0").stdout
    t.ok(f"{cid}/pack/0 waiting: its stage {told}" in out, "... in drover why", out)
    a.sql(f"UPDATE stage_run SET failed = 1, done = 2, state = 'failed' WHERE stage_id = {of('download')}")
    for reason in ("stage_blocked", "held"):  # as it was when it was skipped
        a.sql(f"UPDATE stage_run SET state = 'skipped', wait_reason = '{reason}', reason = 'a stage it needs did not succeed' WHERE stage_id = {of('pack')}")
        w = at(0, "/why", "pack")
        t.eq((w["text"], w["next"]), ("its stage was skipped: a stage it needs did not succeed (download: 2 of 5 done, 1 skipped, 1 failed)", f"drover get {cid}"), f"a part of a stage that was skipped says so, and is not sent to resume ({reason})")
    t.eq(a.get(f"/v1/campaigns/{cid}/compare?a=pack&b=download")[1]["detail"], f"{cid}/pack/0: it was not started yet", "a comparison says which of the two was not started")
    ann, me = a.sql("SELECT name || '|' || id FROM token ORDER BY id LIMIT 1").split("|")

    moved = lambda seq, us, attempts: a.sql(f"UPDATE task_run SET state = 5, cause = 0, names = {attempts}, updated_us = {us} WHERE campaign_id = {n} AND stage_id = {of('download')} AND seq = {seq}")  # noqa: E731
    a.sql(f"""INSERT INTO operation (campaign_id, kind, selector, state, total, done, created_by, created_at, ended_at) VALUES
        ({n}, 'skip', '{{"parts": [1, 3]}}', 'done', 2, 2, '{me}', '2026-01-02 03:00:00Z', '2026-01-02 03:00:10Z'), ({n}, 'skip', '{{"stage": "pack"}}', 'done', 2, 2, 'eve', '2026-01-02 03:00:00Z', '2026-01-02 03:00:10Z'),
        ({n}, 'retry', '{{"parts": [1, 3]}}', 'done', 2, 2, 'eve', '2026-01-02 03:00:01Z', '2026-01-02 03:00:10Z'), ({n}, 'skip', '{{"stage": "download", "cause": ["oom"], "parts": [1, 3]}}', 'done', 1, 1, 'bob', '2026-01-02 03:00:05Z', '2026-01-02 03:00:20Z')""")
    ops = a.sql(f"SELECT string_agg(id::text, ' ' ORDER BY id) FROM operation WHERE campaign_id = {n}").split()
    leader_fails(a, int(n), (3,), 7, "No space left")
    a.sql(f"DELETE FROM task_failure WHERE campaign_id = {n}")
    second = 1767322800 * 10**6  # of 03:00
    for seq, us, attempts in ((3, second + 9 * 10**6, 1), (1, second + 15 * 10**6, 0), (2, second + 9 * 10**6, 0), (0, second + 9 * 10**6, 1)):
        moved(seq, us, attempts)
    by = [(x["operation"], x["by"], x["text"]) for x in (at(seq)["skipped"] for seq in (3, 1, 2, 0))]
    t.eq(by, [(f"op-{ops[0]}", ann, f"skipped by {ann} at 2026-01-02 03:00:09 UTC (drover ops op-{ops[0]})"), (f"op-{ops[3]}", "bob", f"skipped by bob at 2026-01-02 03:00:15 UTC (drover ops op-{ops[3]})"),
              (None, None, "skipped: its output was there before it started (done_if)"), (None, None, "skipped at 2026-01-02 03:00:09 UTC")], "a skipped part names the bulk skip that took it, or that its output was there, or when")
    t.eq((at(4)["skipped"], at(3, "/why")["text"]), (None, by[0][2] + "; it had failed: No space left"), "why adds how it had failed; any other part says nothing of it")
    op = a.sql(f"INSERT INTO operation (campaign_id, kind, selector, state, total, done, created_by, created_at, ended_at) VALUES ({n}, 'skip', '{{\"stage\": \"download\"}}', 'done', 9, 9, 'eve', '2026-01-02 03:00:00Z', '2026-01-02 03:00:10Z') RETURNING id").split()[0]
    by_eve = at(2)["skipped"]
    t.eq((by_eve["operation"], by_eve["by"], by_eve["text"]), (None, None, f"skipped: its output was there before it started (done_if), or by eve (drover ops op-{op})"), "... of a stage of which a skip went on then, it may have been that")
    a.sql(f"DELETE FROM operation WHERE id = {op}")
    moved(3, second + 7200 * 10**6, 1)
    t.eq(at(3)["skipped"]["text"], "skipped at 2026-01-02 05:00:00 UTC", "no skip went on at that time: by whom is not said")
    moved(3, second + 9 * 10**6, 1)
    out = a.drover("get", f"{cid}/download/3").stdout
    t.ok(f"\n{by[0][2]}\nlast try: No space left\n" in out, "drover get says both", out)
    t.ok(a.drover(*by[0][2].split("(drover ")[1][:-1].split()).returncode == 0, "the command that it names works", by[0])
