"""Endpoints in the API, for api_rest.py; SQL plays the leader, the bridge of the API's test program the model. `put_endpoint` is for
the command line's tests, too.
"""
NAME = "d-1-deploy-0-a1-0a1b2c3d"


def put_endpoint(a, name=NAME, n=1, state="in_service", **columns):
    """An endpoint of campaign 1's first stage: two instances at 3.60 USD an hour each, a ttl of two hours, in service."""
    row = {"campaign_id": "1", "stage_id": "(SELECT min(id) FROM stage WHERE campaign_id = 1)", "n": str(n), "state": f"'{state}'", "name": f"'{name}'", "made": "3", "passed": "true",
           "instance_type": "'ml.m5.large'", "instances": "2", "ttl_s": "7200", "price_musd_per_hour": "3600000", "reserved_musd": str(2 * 8220 * 1000), "p95_us": "84000",
           "intended_at": "now() - interval '10 m'", "created_at": "now() - interval '9 m'", "in_service_at": "now() - interval '5 m'", "tested_at": "now() - interval '4 m'",
           "delete_after": "now() + interval '115 m'", **columns}
    a.sql(f"""INSERT INTO money (level, ref_id) SELECT v.level, v.ref_id FROM campaign c CROSS JOIN LATERAL (VALUES ('global', 0::bigint), ('project', c.project_id),
            ('campaign', c.id), ('stage', {row['stage_id']})) AS v (level, ref_id) WHERE c.id = 1 ON CONFLICT DO NOTHING;
        INSERT INTO endpoint ({', '.join(row)}) VALUES ({', '.join(row.values())})""")


def check_endpoints(t, a):
    put_endpoint(a)
    put_endpoint(a, "d-1-deploy-0-a2-00000000", 2, "deleting", stage_id="(SELECT max(id) FROM stage)", deleting_at="now()", reason="'its ttl is over'")
    path = f"/v1/endpoints/{NAME}"
    s, one, head = a.get(path)
    t.ok(s == 200 and one["model"] == one["endpoint"] == NAME and one["since"] == one["in_service_at"] and one["p95_us"] == 84000 and one["last_invocation"] is None
         and 2 * 300 <= one["seconds"] < 2 * 3600 and one["cost_micro_usd"] == one["seconds"] * 1000, "one endpoint, with what it costs so far", one)
    t.eq({e["name"] for e in a.get("/v1/endpoints")[1]["endpoints"]}, {NAME, "d-1-deploy-0-a2-00000000"}, "and the list of them")
    t.eq(a.get("/v1/endpoints/none")[0], 404, "no such endpoint")
    later = lambda ttl, tag="*", key=None: a.call("PATCH", path, {"ttl": ttl}, {"If-Match": tag, **({"Idempotency-Key": key} if key else {})})  # noqa: E731
    t.eq(a.call("PATCH", path, {"ttl": "3h"})[0], 428, "a later end without If-Match: 428")
    t.eq(later("3h", '"e0"')[0], 412, "with another tag: 412")
    s, b, h = later("3h", head["etag"], "later-1")
    t.ok(s == 202 and b["extend_to"] > b["delete_after"] and h["etag"] != head["etag"], "with the one read: 202, and the wish", b)
    t.eq(later("3h", head["etag"], "later-1")[2].get("idempotent-replayed"), "true", "the same with its key: the first answer")
    t.eq(later("2h")[0], 409, "an earlier end than the one wished for is refused")
    stage = a.get("/v1/campaigns/c-1")[1]["stages"][0]["name"]
    limit = lambda usd: a.call("PATCH", "/v1/campaigns/c-1", {"stages": {stage: {"budget": {"total": usd}}}}, {"If-Match": "*"})[0]  # noqa: E731
    t.eq(limit("10 USD"), 200, "its stage gets a budget")
    s, b, _ = later("4h")
    t.ok(s == 409 and b["code"] == "budget" and "its stage has 10.00 USD left" in b["detail"], "what no cap has room for: 409", b)
    t.eq(limit(None), 200, "which is taken off")
    a.sql(f"UPDATE endpoint SET extend_seen = extend_asked WHERE name = '{NAME}'")
    one = a.get(path)[1]
    t.ok(one["extend_to"] is None and one["extend_refused"] is not None, "a wish that the leader refused is told", one)
    t.eq(later("150m")[0], 202, "and is no end that a new one must be later than")
    s, b, _ = a.call("PATCH", "/v1/endpoints/d-1-deploy-0-a2-00000000", {"ttl": "3h"}, {"If-Match": "*"})
    t.ok(s == 409 and "it is deleting" in b["detail"], "one that is being deleted lives no longer", b)
    for body in ({}, {"ttl": 3}, {"ttl": "31d"}, {"ttl": "0s"}, {"until": "x"}, {"ttl": "3h", "x": 1}):
        s = a.call("PATCH", path, body, {"If-Match": "*"})[0]
        t.ok(s in (400, 422), f"PATCH {body} is refused", s)
    check_ask(t, a, path)
    a.call("DELETE", path)
    t.ok(later("9h")[0] == 409 and a.get(path)[1]["delete_asked"], "one that a person deletes lives no longer")


def check_ask(t, a, path):
    """POST :invoke gives the model's bytes."""
    ask = lambda body, type_="text/csv", to=path, **kw: a.raw("POST", to + ":invoke", body, {"Content-Type": type_} if type_ else {}, **kw)  # noqa: E731
    s, text, h = ask(b"1,2")
    t.eq((s, text, h["content-type"]), (200, f'"{NAME} text/csv 1,2"'.encode(), "application/octet-stream"), "the model is asked, with its type, and its answer is no page of ours")
    t.eq(ask(b"{}", "application/json; charset=utf-8")[2]["content-type"], "application/json", "JSON is JSON")
    t.eq(ask(b"{}", None)[1], f'"{NAME} application/json {{}}"'.encode(), "and what is asked without a type")
    t.eq(len(ask(b"x" * (1 << 20))[1]), (1 << 20) + len(NAME) + 12, "a body of 1 MiB")
    t.eq(ask(b"x" * ((1 << 20) + 1))[0], 413, "and no more")
    s, text, _ = ask(b"no")
    t.ok(s == 424 and b"the model answered with 400: no" in text, "what the model says no to: 424, with its words", (s, text))
    t.eq([ask(b"x", type_)[0] for type_ in ("csv", "a/" + "b" * 200, "text/\x01")], [415] * 3, "a type that is none: 415")
    t.eq([ask(b"x", to="/v1/endpoints/none")[0], ask(b"x", to="/v1/endpoints/d-1-deploy-0-a2-00000000")[0]], [404, 409], "only one of ours, and in service, is asked")
    viewer = a.post("/v1/tokens", {"name": "looker", "role": "viewer"})[1]["token"]
    t.eq([ask(b"x", token=viewer)[0], a.call("PATCH", path, {"ttl": "4h"}, {"If-Match": "*"}, token=viewer)[0], a.get(path, token=viewer)[0]], [403, 403, 200], "a viewer looks only")
    t.ok(int(a.sql("SELECT count(*) FROM audit WHERE action = 'endpoint.invoke' AND detail->>'bytes' = '3'")) == 1, "who asked, and how much, is written down")
