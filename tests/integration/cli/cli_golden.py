#!/usr/bin/env python3
"""The exact output of the command line. Aim: help and tables do not change unnoticed, fit their terminal, and
lose only their glyphs without UTF-8. Method: drover against the API with prepared parts, on terminals of
80 and of 160 columns, in a pipe, without UTF-8 and with NO_COLOR; compared with tests/vectors/cli.txt,
with times and identifiers blanked. `cli_golden.py --update` rewrites that file.
"""
import difflib
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../api"))
from api_endpoints import NAME, put_endpoint
from api_runs import put_runs
from kit import TOP
from kit.api import DROVER, Api, leader_fails, leader_takes, main, spec
from kit.terminal import on_terminal

GOLDEN = f"{TOP}/tests/vectors/cli.txt"
VERBS = re.findall(r'^X\("([a-z]+)", cmd_', open(f"{TOP}/orchestrator/cli/commands.def").read(), re.M)
SHOWN = (("ls",), ("get", "c-1"), ("get", "c-1/3"), ("get", "c-1/0"), ("parts", "c-1"), ("parts", "c-1", "--state", "failed"), ("failures", "c-1"), ("failures", "c-2"),
         ("cost", "c-1"), ("cost", "c-1", "--by", "cause"), ("cost", "c-1", "--by", "phase"), ("cost", "c-1", "--by", "type"), ("bill", "2099-01"), ("bill", "2099-01", "--tag", "team"), ("metrics", "c-1"), ("metrics", "c-1/3"), ("metrics", "c-2"), ("scaling", "c-6", "--group", "train"),
         ("scaling", "c-6/train", "--metric", "images_per_second", "--epoch", "50000", "--deadline", "400s"), ("compare", "c-6/train-1", "c-6/train-4"), ("compare", "c-6/train-2/0/1", "c-6/train-2"),
         ("compare", "c-6/odd-a", "c-6/odd-b"), ("compare", "c-6", "c-6/train-1"), ("quotas",), ("retry", "c-1", "--cause", "disk_full", "--volume", "450", "--dry-run"),
         ("retry", "c-1", "--cause", "disk_full", "--instance-type", "ml.c5.xlarge", "--max-runtime", "4h", "--dry-run"), ("retry", "c-1", "--cause", "oom", "--dry-run"), ("get", "c-9"), ("pause",), ("failurs",), ("ls", "--stat", "x"), ("get", "c-3"), ("get", "c-4"), ("get", "c-5"),
         ("validate", "deploy/examples/lightning-scaling.yaml"), ("submit", "again.yaml"),
         ("validate", "deploy/examples/huggingface-endpoint.yaml"), ("endpoints",), ("endpoints", "show", NAME), ("endpoints", "invoke", NAME, "--data", "Hi?", "--content-type", "text/plain"),
         ("endpoints", "invoke", NAME, "--data", "no"), ("endpoints", "invoke", NAME), ("endpoints", "extend", NAME), ("endpoints", "extend", NAME, "--ttl", "99h", "-y"), ("endpoints", "ask", NAME), ("audit",),
         ("webhook",), ("webhook", "deliveries", "w-1"), ("webhook", "ad", "x"))
LONG = "AccessDenied: User arn:aws:sts::111122223333:assumed-role/drover-worker/SageMaker is not authorized to perform s3:GetObject on the key"


def screen(a, columns, env, *args):
    """Output (both streams) and status of drover on a terminal that wide."""
    e = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "CLICOLOR_FORCE")}
    e |= {"DROVER_URL": f"http://127.0.0.1:{a.port}", "DROVER_TOKEN_FILE": a.token_file, "TERM": "xterm", "TZ": "UTC", **env}
    out, status = on_terminal([DROVER, *args], e, columns)
    return out.replace("\r", ""), status


def blank(text, a):
    """Blank what differs between runs, keeping the width."""
    same = lambda c: lambda m: c * len(m.group())  # noqa: E731
    text = text.replace(f":{a.port}", ":PORT")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", same("T"), text)
    text = re.sub(r"\b\d\d:\d\d:\d\d\b", same("T"), text)
    return re.sub(r"admin-[0-9a-f]{8}", "admin-XXXXXXXX", text)


def fill(a):
    a.sql("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.xlarge', 204000, 'test'); INSERT INTO quota (instance_type, limit_n) VALUES ('ml.c5.xlarge', 4)")
    a.objects("data", [f"meta/part-{i:05d}.snappy.parquet" for i in range(12)])
    a.objects("data", ["more/part-0.parquet"])
    assert a.submit(spec(top="budget: 900 USD"))[0] == 201
    for name, more in (("on call", {"kinds": ["held", "failed"]}), ("team", {"format": "slack", "project": "default", "quiet": "22:00-07:00"}),
                       ("people", {"url": "mailto:a@example.com,b@example.com", "kinds": ["done"]})):
        assert a.post("/v1/webhooks", {"name": name, "url": "https://hooks.example.com/services/T0/B0/XXXX", **more})[0] == 201
    assert [a.post("/v1/webhooks/w-1/test", {})[0] for _ in range(2)] == [202, 202]
    a.sql("""UPDATE webhook_delivery SET state = CASE id WHEN 1 THEN 'failed' ELSE 'delivered' END, tries = 1, status = CASE id WHEN 1 THEN 0 ELSE 200 END,
        problem = CASE id WHEN 1 THEN '10.0.0.1 is a private address or port: an admin may allow it by webhook_allow_net' ELSE '' END""")
    with open(a.dir + "/again.yaml", "w") as f:
        f.write(spec(top="budget: 1200 USD", extra="    volume_gb: 450"))
    assert a.submit(spec(name="second-one", fan_out='{from: "s3://data/more/*.parquet"}'))[0] == 201
    leader_takes(a, 1)
    leader_fails(a, 1, [3, 5], 7)
    leader_fails(a, 1, [9], 13, LONG)
    a.sql("""INSERT INTO metric_series (campaign_id, stage_id, task_id, attempt_id, name, points, last_us, last_step, last_value, min_value, max_value, sum_value)
        SELECT campaign_id, stage_id, task_id, id, 'loss', 3, 2500000, 200, 0.25, 0.25, 2.5, 3.25 FROM attempt WHERE name = 'd-1-3-a1';
        INSERT INTO metric_point SELECT id, i, i * 1250000, i * 100, (ARRAY[2.5, 0.5, 0.25])[i + 1] FROM metric_series, generate_series(0, 2) i;
        INSERT INTO metric_source (attempt_id, note) SELECT attempt_id, 'the log cannot be read: AccessDeniedException' FROM metric_series""")
    a.sql("UPDATE attempt SET warm_s = 30, warm_musd = 1700, phases = '{90000,0,0, 3660500,0,0, 4000,4,246914, 0,0,0, 15000,15,925925, 1000,1,61728}' WHERE name = 'd-1-3-a1'")
    for cid, name in ((3, "by-budget"), (4, "by-breaker"), (5, "no-quota")):
        assert a.submit(spec(name, '{from: "s3://data/more/*.parquet"}', top="budget: 10 USD"))[1]["id"] == f"c-{cid}"
        leader_takes(a, cid)
    leader_fails(a, 4, [0], 13, "exit 1")
    put_runs(a)
    put_endpoint(a, "d-1-a-stage-with-the-longest-name-of-all-of-them-0-a12-0a1b2c3d", 2, "deleting", stage_id="(SELECT max(id) FROM stage)", instance_type="'ml.p4de.24xlarge'", in_service_at="now() - interval '1 h'", off_at="now() - interval '30 m'", deleting_at="now()", reason="'its ttl is over'")
    put_endpoint(a, in_service_at="now() - interval '1 h'", off_at="now() - interval '30 m'", idle_s="1200", invoked_at="now()")
    a.sql(f"""UPDATE campaign_run SET state = 'held', reason = 'budget' WHERE campaign_id = 3;
        UPDATE stage_run SET state = 'held', reason = '{"ValueError: bad shard " * 21}' WHERE campaign_id = 4;
        UPDATE campaign_run SET state = 'held', reason = 'stage download: x' WHERE campaign_id = 4;
        UPDATE stage_run SET wait_reason = 'quota_too_small' WHERE campaign_id = 5;
        UPDATE quota SET limit_n = 0; INSERT INTO money (level, ref_id, spent_musd) VALUES ('campaign', 3, 9800000);
        INSERT INTO parked (kind, ref_id, campaign_id, reason) VALUES ('campaign', 5, 5, 'a value of 2 GB is refused')""")


    # What is booked in a month to come: no other figure has a part in it.
    a.sql("""INSERT INTO ledger (campaign_id, stage_id, task_id, attempt_id, at, entry, from_account, to_account, amount_musd, seconds)
        SELECT v.campaign, 0, 0, (SELECT max(id) FROM attempt) + v.campaign, '2099-01-31T23:59:59Z', 'settle', 'reserved', 'spent', v.musd, v.seconds FROM (VALUES (0, 2500000, 40), (1, 12345678, 600), (2, 4900, 3)) v (campaign, musd, seconds)""")


def transcript(t, a):
    out = []
    for columns, env, what in ((80, {"LC_ALL": "C.UTF-8"}, "80 columns"), (160, {"LC_ALL": "C.UTF-8"}, "160 columns"), (80, {"LC_ALL": "C", "NO_COLOR": "1"}, "80 columns, no UTF-8, NO_COLOR")):
        wide = []
        for args in SHOWN:
            text, status = screen(a, columns, env, *[f"{a.dir if x == 'again.yaml' else TOP}/{x}" if x.endswith(".yaml") else x for x in args])
            bare = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
            wide += [(args, x) for x in bare.splitlines() if len(x) > columns]
            if "NO_COLOR" in env:
                t.ok("\x1b" not in text and all(ord(c) < 128 for c in text), f"drover {' '.join(args)}: no colour, no glyph beyond ASCII", text)
            out.append(f"=== {what} === drover {' '.join(args)} === exit {status}\n{blank(bare, a)}")
        t.ok(not wide, f"nothing is wider than {columns} columns", wide)
    return "\n".join(out)


def helps(t, a):
    text = ""
    for args in [("--help",)] + [(v, "--help") for v in VERBS]:
        r = a.drover(*args)
        plain = a.drover(*args, env={"LC_ALL": "C", "NO_COLOR": "1"})
        t.ok(r.returncode == 0 and r.stderr == "" and plain.stdout == r.stdout, f"drover {' '.join(args)}: the same everywhere", r.stderr)
        lines = r.stdout.splitlines()
        t.ok(max(map(len, lines)) <= 80 and "\x1b" not in r.stdout, f"drover {' '.join(args)}: 80 columns", max(lines, key=len))
        if len(args) == 2:
            t.ok(lines[0] == "examples:" and lines[1].startswith(f"  drover {args[0]}"), f"drover {' '.join(args)}: begins with an example", lines[:2])
        text += f"=== drover {' '.join(args)}\n{r.stdout}\n"
    return text


def run(t, pg):
    a = Api(pg)
    fill(a)
    got = helps(t, a) + transcript(t, a)
    if sys.argv[1:] == ["--update"]:
        with open(GOLDEN, "w") as f:
            f.write(got)
    want = open(GOLDEN).read()
    diff = list(difflib.unified_diff(want.splitlines(), got.splitlines(), "tests/vectors/cli.txt", "now", lineterm="", n=1))
    t.ok(not diff, "every word is as in tests/vectors/cli.txt", "\n".join(diff[:40]))
    status, log = a.close()
    t.ok(status == 0, "the server ends cleanly", (status, log[-500:]))


main(run)
