"""Whose token may use what: every operation of the document with a token of each role that counts in the project of what is asked
about, and in another project only. Nothing is excepted; what an operation is about is its x-scope."""
import re

from kit.api import leader_fails, leader_takes, spec

ROLES = ("viewer", "operator", "admin")
YAML, LINES = "application/yaml", "application/x-ndjson"


def things(a, campaign, project):
    """One of each thing that belongs to a campaign or a project, and the names by which they are asked for."""
    a.sql(f"""INSERT INTO endpoint (stage_id, campaign_id, n, state, name, instance_type, instances, ttl_s, price_musd_per_hour, reserved_musd, intended_at, delete_after, in_service_at, off_at)
            SELECT id, campaign_id, 1, 'in_service', 'serve-of-{project}', 'ml.c5.xlarge', 1, 3600, 204000, 9,
                clock_timestamp(), clock_timestamp(), clock_timestamp(), clock_timestamp() FROM stage WHERE campaign_id = {campaign};
        INSERT INTO filesystem (stage_id, campaign_id, n, state, token, size_gib, deployment, ttl_s, keep, exports, import_from, price_musd_per_gb_month, reserved_musd,
            intended_at, created_at, available_at, delete_after)
            SELECT id, campaign_id, 1, 'available', 'volume-of-{project}', 1200, 'SCRATCH_2', 3600, false, true, 's3://data/meta/', 140000, 9,
                clock_timestamp(), clock_timestamp(), clock_timestamp(), clock_timestamp() FROM stage WHERE campaign_id = {campaign};
        INSERT INTO pool (attempt_id, campaign_id, stage_id, state, fingerprint, instance_type, instances, keep_alive_s)
            SELECT id, campaign_id, stage_id, 'available', 1, 'ml.c5.xlarge', 1, 600 FROM attempt WHERE campaign_id = {campaign} ORDER BY id LIMIT 1""")
    operation = a.post(f"/v1/campaigns/c-{campaign}:retry", {"selector": {"parts": [3]}})[1]["id"]
    webhook = a.post("/v1/webhooks", {"name": project, "url": "https://example.com/secret", "project": project})[1]["id"]
    delivery = a.post(f"/v1/webhooks/{webhook}/test", {})[1]["id"]
    job = a.sql(f"SELECT a.name FROM pool p JOIN attempt a ON a.id = p.attempt_id WHERE p.campaign_id = {campaign}").strip()
    return {"campaign": f"c-{campaign}", "operation": operation, "endpoint": f"serve-of-{project}", "filesystem": f"volume-of-{project}", "job": job, "project": project,
            "webhook": webhook, "delivery": delivery, "part": "3", "quota": "ml.c5.xlarge", "smoke": "0a1b2c3d4e5f", "sha256": "0" * 64, "token": "nobody", "code": "not_found"}


def bodies(project):
    """What those are asked with that would be refused for their body first. The rest gets {}."""
    return {"campaign_post": (YAML, spec("file-of-" + project, "{from: api}", top="project: " + project)), "parts_post": (LINES, '{"uri":"s3://b/1"}\n'),
            "webhooks_post": ("application/json", '{"name":"x","url":"https://example.com/","project":"%s"}' % project), "project_patch": ("application/json", '{"parts":9}'),
            "webhook_patch": ("application/json", '{"name":"y"}'), "campaign_patch": ("application/json", '{"priority":60}'), "endpoint_patch": ("application/json", '{"ttl":"2h"}'),
            "quota_ask": ("application/json", '{"value":5}'), "campaign_retry": ("application/json", '{"selector":{"parts":[5]}}'), "campaign_skip": ("application/json", '{"selector":{"parts":[8]}}'), "campaign_hold": ("application/json", '{"selector":{"parts":[0]}}'), "campaign_release": ("application/json", '{"selector":{"parts":[0]}}')}


def asked(a, op, method, path, token, project, query=""):
    kind, body = bodies(project).get(op["operationId"], ("application/json", "{}"))
    head = {"Content-Type": kind, "If-Match": "*", "Idempotency-Key": f"{op['operationId']}-{token[-20:]}-{project}"} if method != "get" else {}
    return a.raw(method.upper(), path + query, body.encode() if method != "get" else None, head, token=token)


def expected(op, role, own, names):
    """The statuses that one cell may have, as a function of a status."""
    if ROLES.index(role) < ROLES.index(op["x-role"]):
        return lambda s: s == 403
    if op["x-scope"] == "installation":
        return lambda s: s == 403
    if not own and (op["x-scope"] != "projects" or {"project", "webhook"} & names):
        return lambda s: s == 404
    if not own and op["operationId"] in ("campaign_post", "webhooks_post"):
        return lambda s: s in (403, 404)
    if op["operationId"] in ("source_get", "compare_get", "session_delete"):
        return lambda s: s == 404  # there is none; a session is its token's, whatever the project
    return lambda s: s not in (401, 403, 404)


def last(entry):
    """What ends a thing comes after what needs it."""
    return ("delete" in entry[2]["operationId"], entry[2]["operationId"] in ("campaign_cancel", "campaign_archive"))


def check_owners(t, a, document):
    mine = [int(a.submit(spec(f"file-of-{p}", top="project: " + p), token=True)[1]["id"][2:]) for p in ("mine", "others")]
    for campaign in mine:
        leader_takes(a, campaign)
        leader_fails(a, campaign, (3, 5, 8), 7)
    names = dict(zip(("mine", "others"), (things(a, c, p) for c, p in zip(mine, ("mine", "others")))))
    tokens = {(role, p): a.post("/v1/tokens", {"name": f"{role}-{p}", "role": role, "projects": [p]})[1]["token"] for role in ROLES for p in ("mine", "others")}
    operations = [(path, method, op) for path, methods in document["paths"].items() for method, op in methods.items() if op["x-role"] != "public"]
    wrong, cells, seen = [], 0, 0
    for pattern, method, op in sorted(operations, key=last):
        there = {**names["mine"], "session": "s-999999"}
        path = re.sub(r"\{(\w+)\}", lambda m: there[m[1]], pattern)
        query = {"campaign_query": f"?campaign=c-{mine[0]}", "projects": ""}.get(op["x-scope"], "")
        needed = {"metric_points_get": "?metric=loss", "scaling_get": "?group=train", "compare_get": "?a=download&b=download"}.get(op["operationId"], "")
        if path.endswith("/events"):
            query = "?after=x"  # refused after the rights are checked: no stream is opened
        for role in ROLES:
            for project in ("others", "mine"):
                status, text, _ = asked(a, op, method, path, tokens[role, project], "mine", query or needed)
                cells += 1
                if not expected(op, role, project == "mine", set(re.findall(r"\{(\w+)\}", pattern)))(status):
                    wrong.append((method, pattern, op["x-scope"], role, project, status, text[:120]))
                if project == "others" and status == 200:
                    seen += 1
                    if b"mine" in text or f'"c-{mine[0]}"'.encode() in text:
                        wrong.append(("tells of another project", method, pattern, role, text[:400]))
                thing = {"/v1/endpoints": "endpoint", "/v1/filesystems": "filesystem", "/v1/pools": "job"}.get(pattern)
                if project == "mine" and thing and there[thing].encode() not in text:
                    wrong.append(("does not tell of its own", pattern, role, text[:400]))
                if op["x-scope"] == "campaign_query" and project == "mine":
                    cells += 1
                    whole = asked(a, op, method, path, tokens[role, project], "mine")[0]
                    if whole != 403:
                        wrong.append(("every campaign", pattern, role, whole))
    t.ok(not wrong and cells > 400 and seen > 15, f"whose token may use what: {cells} cells of role, operation and owner, {seen} lists without the other's", (cells, seen, wrong))
