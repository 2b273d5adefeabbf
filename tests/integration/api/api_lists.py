"""Parts of a campaign and lists in pages, for api_rest.py. Aim: pages neither skip nor repeat rows, filters and orders are total, phases,
metrics and gates are those that SQL wrote.
"""
import re
import time
import urllib.parse

from kit.api import leader_fails, leader_takes, spec

CAUSE_DISK_FULL, CAUSE_OOM = 7, 8


def paged(a, path, key, member, size=2):
    """That member of every row, over pages of `size`."""
    got, token = [], ""
    while True:
        s, b, _ = a.get(f"{path}{'&' if '?' in path else '?'}page_size={size}{token}")
        if s != 200:
            return b["detail"]
        got += [row[member] for row in b[key]]
        if not b["next_page_token"]:
            return got
        token = "&page_token=" + b["next_page_token"]


def check_orders(t, a):
    """order_by of lists that come in pages: a whole list in either direction, and nothing that no index has. c-1 has 20 parts, five failed."""
    number = lambda ids: [int(re.sub(r"^.*\D", "", x)) for x in ids]  # noqa: E731
    for _ in range(3):
        a.submit(spec())
    a.post("/v1/campaigns/c-1:pause", "{}")
    a.post("/v1/campaigns/c-1:resume", "{}")
    a.sql("INSERT INTO operation (campaign_id, kind, selector, changes, state, created_by) SELECT 1, 'cancel', '{}', '{}', 'done', 'orders' FROM generate_series(1, 5)")
    for path, key, member, down in (("/v1/campaigns", "campaigns", "created_at", True), ("/v1/operations", "operations", "id", True), ("/v1/audit", "audit", "id", True),
                                    ("/v1/campaigns/c-1/parts", "parts", "id", False), ("/v1/campaigns/c-1/parts?stage=download", "parts", "id", False), ("/v1/campaigns/c-1/parts?filter=attempts%3E%3D1", "parts", "id", False)):
        q = path + ("&" if "?" in path else "?") + "order_by=" + member
        rows = paged(a, path, key, "id", 1000)
        rows = rows[::-1] if down else rows
        got = [paged(a, q, key, "id"), paged(a, q + "%20desc", key, "id"), paged(a, path, key, "id")]
        t.ok(got == [rows, rows[::-1], rows[::-1] if down else rows] and len(rows) > 2 and number(rows) == sorted(number(rows)), f"{path} by {member}, in pages of two, up and down", got)
        t.eq([x[member] for x in a.get(q + "%20desc&fields=" + member)[1][key]], [x[member] for x in a.get(q + "%20desc")[1][key]], "also of some fields")
        first = [a.get(x + ("&" if "?" in x else "?") + "page_size=2")[1]["next_page_token"] for x in (path, q, q + "%20desc")]
        crossed = [a.get(f"{x}&page_token={token}") for x, token in ((q, first[2]), (q + "%20desc", first[1]), (q + ("" if down else "%20desc"), first[0]))]
        t.ok([s for s, _, _ in crossed] == [400] * 3 and all(word in b["detail"] for word, (_, b, _) in zip((f"order_by={member} desc", f"order_by={member}", "without order_by"), crossed)), "a page_token of another order is refused, and says of which it is", crossed)
        wrong = [a.get(path + ("&" if "?" in path else "?") + "order_by=" + x) for x in ("cost_micro_usd", "state%20desc", member + "%20down", member + "%20desc%20", "")]
        t.ok([s for s, _, _ in wrong] == [400] * 5 and all(member in b["detail"] and "would read all rows" in b["detail"] for _, b, _ in wrong), "what no index has is refused with what is allowed", wrong)
    failed = "/v1/campaigns/c-1/parts?state=failed"
    causes = [paged(a, failed + o, "parts", "seq") for o in ("", "&order_by=cause", "&order_by=cause%20desc")]
    t.eq(causes, [[3, 5, 8, 2, 11], [3, 5, 8, 2, 11], [11, 2, 8, 5, 3]], "parts that failed by cause, up and down")
    t.ok("cause or cause desc" in paged(a, failed + "&order_by=id", "parts", "seq") and "state=failed" in paged(a, "/v1/campaigns/c-1/parts?order_by=cause%20desc", "parts", "seq"), "each order where its index is")
    a.sql("DELETE FROM operation WHERE created_by = 'orders'")


def check_filters(t, a):
    """What no index has: attempts, cost, time and text of each part."""
    a.sql("UPDATE task_run SET updated_us = 1764244800000000 + seq * 60000000 WHERE campaign_id = 1 AND seq > 0; UPDATE attempt SET cost_musd = 500000 WHERE campaign_id = 1 AND name LIKE 'd-1-8-%'")
    few = "updated>=2025-11-27T12:05:00Z AND updated<2025-11-27T12:09:00Z"
    for terms, want in (("text=KILLED", [2, 11]), ('text="<b>now</b>"', [2, 11]), ('text="left on device" AND state=failed', [3, 5, 8]), ("text=5.parquet", [5, 15]), ("text=nowhere", []), ("text=%", []),
                        ("cost>=0.50", [2, 3, 5, 8, 11]), ("cost>=0.500001", [2, 3, 5, 11]), ("cost>=1.234567 AND text=killed AND attempts>=1", [2, 11]), (few, [5, 6, 7, 8]),
                        (few + " AND state=failed AND cost>=1", [5]), ("updated>=2026-01-01T00:00:00Z", []), ("updated<2025-11-27T12:03:00Z", [1, 2])):
        b = a.get("/v1/campaigns/c-1/parts?filter=" + urllib.parse.quote(terms))[1]
        t.eq([p["seq"] for p in b["parts"]], want, f"the parts with {terms}")
        got, token = [], ""
        while token is not None:
            b = a.get(f"/v1/campaigns/c-1/parts?page_size=1&order_by=id%20desc&filter={urllib.parse.quote(terms)}{token}")[1] if "state=failed" not in terms else {"parts": [], "next_page_token": None}
            got += [p["seq"] for p in b["parts"]]
            token = b["next_page_token"] and "&page_token=" + b["next_page_token"]
        t.ok(got == want[::-1] or "state=failed" in terms, "and one by one from the end", got)
    for terms in ("cost>=", "cost>=x", "cost>=-1", "cost<1", "updated>=now", "updated>=2026-13-01T00:00:00Z", "updated=2026-01-01T00:00:00Z", 'text="open', "text=" + "x" * 129, "text=a AND text=b", "cost>=1 AND cost>=2",
                  "cause=oom AND text=a", "cause=oom AND cost>=1"):
        t.eq(a.get("/v1/campaigns/c-1/parts?filter=" + urllib.parse.quote(terms))[0], 400, f"{terms[:40]} is refused")
    t.eq(a.get("/v1/campaigns/c-1/parts?filter=" + urllib.parse.quote('text=""'))[0], 422, "an empty text is never all")
    t.eq([a.post("/v1/campaigns/c-1:retry?dry_run=true", {"selector": {"filter": f}})[0] for f in ("text=killed", "cost>=1", few)], [422] * 3, "a retry does not select by these")
    a.sql("UPDATE attempt SET cost_musd = 1234567 WHERE campaign_id = 1")


def check_parts(t, a):
    leader_takes(a, 1)
    seen, token = [], ""
    while True:
        s, b, _ = a.get(f"/v1/campaigns/c-1/parts?page_size=7{token}")
        seen += [p["seq"] for p in b["parts"]]
        if not b["next_page_token"]:
            break
        token = "&page_token=" + b["next_page_token"]
    t.eq(seen, list(range(20)), "pages of seven bring every part once, in order")
    leader_fails(a, 1, [3, 5, 8], CAUSE_DISK_FULL)
    leader_fails(a, 1, [2, 11], CAUSE_OOM, "killed <b>now</b>")
    for q, want in (("state=failed", [3, 5, 8, 2, 11]), ("cause=oom", [2, 11]), ("state=failed&cause=disk_full,oom", [3, 5, 8, 2, 11]), ("state=done", []),
                    ("filter=state%3Dfailed%20AND%20cause%20IN%20(oom)", [2, 11]), ("filter=attempts%3E%3D1", [2, 3, 5, 8, 11]),
                    ("state=waiting&stage=download", [0, 1, 4, 6, 7, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19]), ("state=active", [])):
        s, b, _ = a.get(f"/v1/campaigns/c-1/parts?{q}")
        t.eq([p["seq"] for p in b["parts"]], want, f"?{q}")
    check_filters(t, a)
    got, token = [], ""
    while True:
        b = a.get(f"/v1/campaigns/c-1/parts?state=failed&page_size=2{token}")[1]
        got += [p["seq"] for p in b["parts"]]
        if not b["next_page_token"]:
            break
        token = "&page_token=" + b["next_page_token"]
    t.eq(got, [3, 5, 8, 2, 11], "failed parts in pages of two")
    for q in ("state=broken", "cause=none", "cause=x", "filter=x", "filter=attempts%3E%3Dx", "filter=state%3D"):
        t.eq(a.get(f"/v1/campaigns/c-1/parts?{q}")[0], 400, f"?{q} is refused")
    for q in ("cause=", "state=", "filter=", "filter=%20", "filter=cause%20IN%20()", "filter=cause%20IN%20(%20)", "cause=oom,", "cause=,", "filter=cause%20IN%20(oom,)", "filter=state%3Dfailed%20AND%20cause%20IN%20()"):
        s, b, _ = a.get(f"/v1/campaigns/c-1/parts?{q}")
        t.ok((s, b["code"]) == (422, "invalid"), f"?{q}: empty is never all, 422", (s, b))
    s, b, _ = a.get("/v1/campaigns?state=")
    t.ok((s, b["code"]) == (422, "invalid") and "'state': it is empty, which never means all" in b["detail"], "so is ?state= of the list of campaigns", (s, b))
    t.eq([a.get(f"/v1/campaigns{q}")[0] for q in ("?page_size=", "/c-1/parts?page_token=", "/c-1/parts?state=a", "/c-1/parts?states=")], [400] * 4, "an empty value that chooses no rows is malformed, as a wrong or unknown one")
    for q in ("cause=oom&filter=cause%20IN%20(disk_full)", "filter=cause%3Doom%20cause%3Doom", "filter=cause%3Doom%20AND", "filter=cause%20IN%20oom", "filter=state%3Dfailed%20OR%20state%3Ddone", "filter=cause%20IN%20(oom"):
        t.eq(a.get(f"/v1/campaigns/c-1/parts?{q}")[0], 400, f"?{q} is refused")
    b = a.get("/v1/parts/c-1/3")[1]
    x = b["attempt_list"][0]
    t.ok(b["state"] == "failed" and b["cause"] == "disk_full" and x["cost_micro_usd"] == 1234567 and x["job_name"] == "d-1-3-a1" and x["state"] == "failed", "one part with its tries", b)
    t.eq(x["console_url"], None, "without a page at AWS, of which no job is known")
    for partition, region, host in (("aws", "eu-west-1", "console.aws.amazon.com"), ("aws-cn", "cn-north-1", "console.amazonaws.cn"), ("aws-us-gov", "us-gov-west-1", "console.amazonaws-us-gov.com")):
        a.sql(f"UPDATE attempt SET arn = 'arn:{partition}:sagemaker:{region}:111122223333:training-job/d-1-3-a1' WHERE name = 'd-1-3-a1'")
        t.eq(a.get("/v1/parts/c-1/3")[1]["attempt_list"][0]["console_url"], f"https://{region}.{host}/sagemaker/home?region={region}#/jobs/d-1-3-a1", f"its page in the console of {partition}")
    a.sql("UPDATE attempt SET arn = '' WHERE name = 'd-1-3-a1'")
    b = a.get("/v1/campaigns/c-1/failures")[1]
    g = b["groups"]
    t.ok(b["parts"] == 5 and b["final"] == 5 and [(x["cause"], x["parts"], x["sample"]) for x in g] == [("disk_full", 3, [3, 5, 8]), ("oom", 2, [2, 11])]
         and g[0]["lost_micro_usd"] == 3 * 1234567 and g[0]["remedy"], "failures by cause", b)
    a.sql("UPDATE task_failure SET lost_musd = lost_musd + 1")
    t.eq(a.get("/v1/campaigns/c-1/failures")[1], b, "they are remembered while no counter of the campaign is written")
    a.sql("UPDATE stage_run SET waiting = waiting WHERE campaign_id = 1")
    t.eq(a.get("/v1/campaigns/c-1/failures")[1]["groups"][0]["lost_micro_usd"], 3 * 1234568, "and counted again when one is")
    a.sql("INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, cause, final, signature, message) SELECT 5000 + i, 1, 1, i, 17, i % 2 = 0, 's' || i, 'm' FROM generate_series(1, 300) i;"
          "UPDATE stage_run SET waiting = waiting WHERE campaign_id = 1")
    b = a.get("/v1/campaigns/c-1/failures")[1]
    t.eq((b["parts"], b["final"], len(b["groups"]), b["groups"][0]["cause"]), (305, 155, 200, "disk_full"), "of 302 groups the largest 200 are listed, and all parts counted")
    a.sql("DELETE FROM task_failure WHERE task_id > 5000; UPDATE stage_run SET waiting = waiting WHERE campaign_id = 1")
    a.sql("INSERT INTO stage (campaign_id, seq, name, kind) VALUES (1, 9, 'later', 'jobs');"
          "INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, cause, final, signature, message) SELECT 5000, 1, id, 3, 7, true, 'disk #', 'No space left on device' FROM stage WHERE name = 'later';"
          "UPDATE stage_run SET waiting = waiting WHERE campaign_id = 1")
    b = a.get("/v1/campaigns/c-1/failures")[1]
    t.eq((b["parts"], [(x["stage"], x["cause"], x["parts"], x["sample"]) for x in b["groups"]]), (6, [("download", "disk_full", 3, [3, 5, 8]), ("download", "oom", 2, [2, 11]), ("later", "disk_full", 1, [3])]),
         "one cause in two stages is two groups, each with its stage")
    r = a.drover("failures", "c-1")
    t.ok(re.search(r"^later +disk_full +1 ", r.stdout, re.M) and "log: drover logs c-1/download/3   retry: drover retry c-1 --cause disk_full\n" in r.stdout, "drover failures names the stages, and the one of the log", r.stdout)
    a.sql("DELETE FROM task_failure WHERE task_id = 5000; DELETE FROM stage WHERE name = 'later'; UPDATE stage_run SET waiting = waiting WHERE campaign_id = 1")
    b = a.get("/v1/campaigns/c-1/tiles")[1]
    want = [4 if i in (2, 3, 5, 8, 11) else 0 for i in range(20)]
    t.ok(b["per_tile"] == 1 and b["tiles"] == want and b["states"][4] == "failed", "tiles, one a part", b)
    s, b, h = a.get("/v1/campaigns/c-1/tiles?max=10")
    t.ok(b["per_tile"] == 2 and b["tiles"][1][4] == 2 and sum(map(sum, b["tiles"])) == 20, "tiles of two parts", b)
    t.eq(a.raw("GET", "/v1/campaigns/c-1/tiles?max=10", headers={"If-None-Match": h["etag"]})[0], 304, "an ETag that stands: 304")
    b = a.get("/v1/campaigns/c-1/tiles?first=2&last=3")[1]
    t.eq(b["tiles"], [4, 4], "a stretch of tiles")
    s, b, _ = a.get("/v1/campaigns/c-1/parts/3/logs")
    t.ok(s == 200 and b["job_name"] == "d-1-3-a1" and b["lines"][0]["text"] == "log of d-1-3-a1" and b["next"].endswith(".n1"), "a log by the bridge", b)
    t.eq(a.get(f"/v1/campaigns/c-1/parts/3/logs?token={b['next']}")[0], 200, "its token brings the next page")
    for token, where in ((b["next"], 5), ("bogus", 3), ("n1", 3), ("00000000.n1", 3), ("", 3), (b["next"] + "x", 3)):
        t.eq(a.get(f"/v1/campaigns/c-1/parts/{where}/logs?token={token}")[0], 400, f"?token={token} is not one of part {where}: 400")
    t.eq(a.get("/v1/campaigns/c-1/parts/0/logs")[0], 404, "no attempt, no log")
    b = a.get("/v1/campaigns/c-1/forecast")[1]
    t.ok(b["ends_in_seconds"] is None and b["reason"].startswith("needs 5 finished parts"), "no forecast is made up", b)
    a.sql("""UPDATE stage_run SET done = 6, active = 1, waiting = waiting - 7 WHERE campaign_id = 1;
        INSERT INTO attempt (campaign_id, stage_id, task_id, n, state, epoch, name, request_sha256, identity_hash, instance_type, instances, max_runtime_s,
            price_musd_per_hour, reserved_musd, holds, intended_at, started_at, ended_at)
        SELECT 1, 1, 900 + i, 1, 8, 1, 'done-' || i, decode(repeat('00', 32), 'hex'), repeat('0', 64), 'ml.c5.xlarge', 1, 3600, 0, 0, false, now() - interval '100 s', now() - interval '100 s', now()
        FROM generate_series(1, 6) i;""")
    until = time.monotonic() + 10
    while (b := a.get("/v1/campaigns/c-1/forecast")[1])["finished"] != 6 and time.monotonic() < until:
        time.sleep(0.1)  # an answer is cached for two seconds
    # nine parts of 100 s each on one slot; one in three has failed so far
    t.ok(b["remaining"] == 9 and 850 <= b["low_seconds"] <= b["ends_in_seconds"] <= b["high_seconds"] <= 3000 and b["ends_at"], "with six finished ones there is a forecast", b)
    a.sql("UPDATE stage_run SET done = 0, active = 0, waiting = waiting + 7 WHERE campaign_id = 1; DELETE FROM attempt WHERE name LIKE 'done-%'")
    b = a.get("/v1/campaigns/c-1/cost")[1]
    t.ok(b["metered"] == {"seconds": 0, "micro_usd": 0} and {x["cause"]: x["micro_usd"] for x in b["by_cause"]} == {"disk_full": 3 * 1234567, "oom": 2 * 1234567}, "cost by cause", b)
    t.ok("by_cause" not in a.get("/v1/campaigns/c-1/cost?by=stage")[1], "cost by stage only")
    a.sql("UPDATE attempt SET cost_musd = cost_musd + 1 WHERE campaign_id = 1 AND cost_musd > 0")
    t.eq(a.get("/v1/campaigns/c-1/cost")[1], b, "causes are remembered while no counter and no money of the campaign is written")
    a.sql("INSERT INTO money (level, ref_id, spent_musd) VALUES ('campaign', 1, 7000000) ON CONFLICT (level, ref_id) DO UPDATE SET spent_musd = 7000000")
    now = a.get("/v1/campaigns/c-1/cost")[1]
    t.eq({x["cause"]: x["micro_usd"] for x in now["by_cause"]}, {"disk_full": 3 * 1234568, "oom": 2 * 1234568}, "and summed again when some is")
    t.eq((b["of_no_job_micro_usd"], now["of_no_job_micro_usd"]), (0, 7000000 - 5 * 1234568), "... with what of the bill no job made")
    a.sql("UPDATE money SET spent_musd = 0 WHERE level = 'campaign' AND ref_id = 1")
    a.sql("UPDATE attempt SET cost_musd = cost_musd - 1 WHERE campaign_id = 1 AND cost_musd > 0")
    check_phases(t, a)
    check_metrics(t, a)
    check_gate(t, a)


PHASES = ("capacity_wait", "start", "image", "data", "training", "upload", "warm_idle", "other", "hosting", "storage")


def check_phases(t, a):
    """Where the hour went: the phases of a campaign and of its stage add up to what was booked; older attempts are `other`."""
    b = a.get("/v1/campaigns/c-1/cost?by=phase")[1]
    t.ok([p["phase"] for p in b["by_phase"]] == list(PHASES) and [p["micro_usd"] for p in b["by_phase"]] == [0] * 7 + [5 * 1234567, 0, 0] and [p["seconds"] for p in b["by_phase"]] == [0] * 7 + [100, 0, 0],
         "without transitions the bill is of no phase", b)
    a.sql("""UPDATE attempt SET warm_s = 30, warm_musd = 1700, phases = '{90000,0,0, 60500,0,0, 4000,4,246914, 0,0,0, 15000,15,925925, 1000,1,61728}' WHERE name = 'd-1-3-a1';
        UPDATE stage_run SET waiting = waiting WHERE campaign_id = 1  -- the leader writes one with the other""")
    b = a.get("/v1/campaigns/c-1/cost?by=phase")[1]
    got = {p["phase"]: (p["elapsed_seconds"], p["seconds"], p["micro_usd"]) for p in b["by_phase"]}
    want = {"capacity_wait": (90.0, 0, 0), "start": (60.5, 0, 0), "image": (4.0, 4, 246914), "data": (0, 0, 0), "training": (15.0, 15, 925925), "upload": (1.0, 1, 61728),
            "warm_idle": (0, 30, 1700), "other": (0, 80, 4 * 1234567), "hosting": (0, 0, 0), "storage": (0, 0, 0)}
    booked = a.sql("SELECT sum(cost_musd + warm_musd) || ' ' || sum(billable_s + warm_s) FROM attempt WHERE campaign_id = 1").split()
    t.ok(got == want and [str(sum(x[i] for x in got.values())) for i in (2, 1)] == booked, "the phases add up to what was booked", (got, booked))
    t.eq(b["trained_nothing"], {"elapsed_seconds": 155.5, "seconds": 115, "micro_usd": 5 * 1234567 + 1700 - 925925}, "what trained nothing is all but training")
    g = b["stages"]
    t.ok([x["stage"] for x in g] == ["download"] and g[0]["attempts"] == 5 and g[0]["by_phase"] == b["by_phase"] and "by_stage" not in b and "by_cause" not in b, "the same by stage", b)
    t.eq([(x["phase"], x["micro_usd"]) for x in g[0]["advice"]], [("image", 246914), ("capacity_wait", 0)], "and what would cut it, by what it saves")
    x = a.get("/v1/parts/c-1/3")[1]["attempt_list"][0]["phases"]
    t.ok([p["phase"] for p in x] == list(PHASES[:6]) and x[4] == {"phase": "training", "elapsed_seconds": 15, "seconds": 15, "micro_usd": 925925}, "and of one attempt", x)
    t.eq(a.get("/v1/parts/c-1/5")[1]["attempt_list"][0]["phases"], None, "an older one has none")
    for q in ("by=", "by=day", "by=phase,stage"):
        t.eq(a.get(f"/v1/campaigns/c-1/cost?{q}")[0], 400, f"?{q} is refused")
    t.eq(a.get("/v1/campaigns/c-999/cost?by=phase")[0], 404, "of no campaign: 404")


def check_gate(t, a):
    """Only a stage that its gate holds is overridden, once; the audit has who and what the gate said."""
    for body, want in (({}, 422), ({"stage": ""}, 422), ({"stage": "nope"}, 404), ({"stage": "download"}, 409), ({"stage": "download", "x": 1}, 422)):
        t.eq(a.post("/v1/campaigns/c-1:override", body)[0], want, f"override {body}: {want}")
    t.eq(a.post("/v1/campaigns/c-999:override", {"stage": "download"})[0], 404, "of no campaign: 404")
    a.sql("UPDATE stage_run SET state = 'held', reason = 'gate: loss is 4, not below 3: drover override c-1/download' WHERE campaign_id = 1")
    g = a.get("/v1/campaigns/c-1")[1]["guidance"][0]
    t.ok(g["kind"] == "gate" and g["evidence"].startswith("gate: loss is 4") and g["steps"][0]["command"] == "drover override c-1/download", "the guidance has the gate's words and the command", g)
    check_gate_resume(t, a)
    version = a.get("/v1/campaigns/c-1")[1]["version"]
    got = [a.post("/v1/campaigns/c-1:override", {"stage": "download"})[0] for _ in range(2)]
    t.eq((got, a.get("/v1/campaigns/c-1")[1]["version"] - version, a.sql("SELECT count(*) || min(detail->>'stage') FROM audit WHERE action = 'campaign.override'")), ([202, 202], 1, "1download"),
         "overridden once, however often it is asked for")
    a.sql("UPDATE stage_run SET state = 'running', reason = '' WHERE campaign_id = 1; UPDATE stage SET gate_override = false WHERE campaign_id = 1")


def check_gate_resume(t, a):
    """A campaign that gates alone hold is not resumed: 409 with the value and the command; all else that may hold it is."""
    resume = lambda: a.post("/v1/campaigns/c-1:resume")  # noqa: E731
    back = a.sql("SELECT format('UPDATE stage_run SET waiting = %s, done = %s WHERE campaign_id = 1', waiting, done) FROM stage_run WHERE campaign_id = 1")
    t.eq(resume()[0], 202, "a stage with runs left is resumed, whatever its gate said of those before")
    a.sql("UPDATE stage_run SET done = done + waiting, waiting = 0 WHERE campaign_id = 1; UPDATE campaign_run SET state = 'held', reason = 'stage download: gate' WHERE campaign_id = 1")
    version = a.get("/v1/campaigns/c-1")[1]["version"]
    resumed = "SELECT (SELECT resumes FROM stage WHERE campaign_id = 1) || ' ' || count(*) FROM audit WHERE action = 'campaign.resume'"
    before = a.sql(resumed)
    s, b, _ = resume()
    t.ok((s, b["code"], b["detail"]) == (409, "conflict", "campaign c-1: a gate holds it, which resuming does not open; stage download: gate: loss is 4, not below 3: drover override c-1/download") and
         a.get("/v1/campaigns/c-1")[1]["version"] == version and a.sql(resumed) == before, "resuming what a gate holds: 409 with stage, value and command; nothing changed", (s, b))
    gate = "UPDATE stage_run SET reason = 'gate: loss is 4, not below 3: drover override c-1/download' WHERE campaign_id = 1"
    for what, sql, undo in (("its budget", "UPDATE campaign_run SET reason = 'budget' WHERE campaign_id = 1", "UPDATE campaign_run SET reason = '' WHERE campaign_id = 1"),
                            ("a pause", "UPDATE campaign SET wanted = 'pause' WHERE id = 1", "UPDATE campaign SET wanted = 'run' WHERE id = 1"),
                            ("a breaker", "UPDATE stage_run SET reason = 'oom' WHERE campaign_id = 1", gate),
                            ("a retry under way", "INSERT INTO operation (campaign_id, kind, selector) VALUES (1, 'retry', '{}')", "DELETE FROM operation WHERE campaign_id = 1"),
                            ("an override under way", "UPDATE stage SET gate_override = true WHERE campaign_id = 1", "UPDATE stage SET gate_override = false WHERE campaign_id = 1")):
        a.sql(sql)
        first = resume()[0]
        a.sql(undo)
        t.eq((first, resume()[0]), (202, 409), f"with {what} it is resumed, without refused again")
    a.sql(f"{back}; UPDATE campaign_run SET state = 'running', reason = '' WHERE campaign_id = 1")


def check_metrics(t, a):
    """Series of a campaign and points of an attempt, by pages; what there is none of says so."""
    t.eq(a.get("/v1/campaigns/c-1/metrics")[1], {"series": [], "next_page_token": None}, "no metrics yet")
    for name in ("loss", "val:acc"):
        a.sql(f"""INSERT INTO metric_series (campaign_id, stage_id, task_id, attempt_id, name, points, first_us, last_us, last_step, last_value, min_value, max_value, sum_value)
            SELECT campaign_id, stage_id, task_id, id, '{name}', 5, 0, 4000000, 40, 1.5, 0.5, 2.5, 7.5 FROM attempt WHERE name = 'd-1-3-a1';
            INSERT INTO metric_point SELECT currval('metric_series_id_seq'), i, i * 1000000, i * 10, 0.5 + i * 0.5 FROM generate_series(0, 4) i""")
    first = a.get("/v1/campaigns/c-1/metrics?page_size=1")[1]
    rest = a.get(f"/v1/campaigns/c-1/metrics?stage=download&page_token={first['next_page_token']}")[1]
    x = first["series"][0]
    t.ok(x["mean"] == 1.5 and x["seq"] == 3 and x["attempt"] == 1 and x["final"] is None and x["complete"] and [s["name"] for s in rest["series"]] == ["val:acc"] and
         rest["next_page_token"] is None, "series come in pages", (first, rest))
    b = a.get("/v1/campaigns/c-1/parts/3/metrics?points=2&name=val:acc")[1]
    t.ok(not b["defined"], "its stage defines none", b)
    t.eq([(s["name"], [(p["step"], p["seconds"], p["mean"], p["min"], p["max"]) for p in s["chart"]]) for s in b["series"]],
         [("val:acc", [(20, 2.0, 1.0, 0.5, 1.5), (40, 4.0, 2.25, 2.0, 2.5)])], "five points are put together into two")
    got, token = [], ""
    while token is not None:
        b = a.get(f"/v1/campaigns/c-1/parts/3/points?attempt=1&name=loss&page_size=2{token}")[1]
        got += [(p["seq"], p["step"], p["value"]) for p in b["points"]]
        token = b["next_page_token"] and "&page_token=" + b["next_page_token"]
    t.eq(got, [(i, i * 10, 0.5 + i * 0.5) for i in range(5)], "points in pages of two")
    for path, want in (("parts/3/points", 400), ("parts/3/points?name=nope", 404), ("parts/3/metrics?name=nope", 404), ("parts/3/metrics?attempt=9", 404), ("parts/0/metrics", 404),
                       ("parts/3/metrics?points=0", 400), ("parts/3/metrics?points=2001", 400), ("metrics?stage=nope", 404), ("metrics?page_token=x", 400), ("parts/99/points?name=x", 404)):
        t.eq(a.get(f"/v1/campaigns/c-1/{path}")[0], want, f"{path}: {want}")
