#!/usr/bin/python3
"""The command line. Aim: every verb does what its help says, with the exit status and the output of the
design, on a terminal, in a pipe and without UTF-8. Method: the real drover against the API alone; SQL
plays the leader.
"""
import csv
import datetime
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, patience, wait_for
from kit.api import DROVER, EIGHT, Api, leader_fails, leader_takes, main, spec
from kit.terminal import on_terminal

VERBS = re.findall(r'^X\("([a-z]+)", cmd_', open(f"{TOP}/orchestrator/cli/commands.def").read(), re.M)


def finish(a, campaign, state="succeeded"):
    a.sql(f"""UPDATE task_run SET state = 3 WHERE campaign_id = {campaign} AND state = 0;
        UPDATE stage_run SET done = done + waiting, waiting = 0, state = '{'succeeded' if state == 'succeeded' else 'failed'}' WHERE campaign_id = {campaign};
        UPDATE campaign_run SET state = '{state}', ended_at = clock_timestamp() WHERE campaign_id = {campaign};""")


def asked(a, *args, keys=b"", seconds=10, env=None):
    """Output and exit status of drover on a terminal of 80 columns."""
    e = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{a.port}", "DROVER_TOKEN_FILE": a.token_file, "LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": "80", **(env or {})}
    return on_terminal([DROVER, *args], e, keys=keys, seconds=seconds)


def check_help(t, a):
    r = a.drover("--help")
    t.ok(r.returncode == 0 and all(f"  {v} " in r.stdout for v in VERBS) and len(VERBS) == 54, "--help lists every verb", VERBS)
    bad = [v for v in VERBS if not ((h := a.drover(v, "--help")).returncode == 0 and h.stdout.startswith(f"examples:\n  drover {v}".replace("drover help", "drover help")) or v == "help")]
    t.ok(not bad, "each verb's help begins with examples", bad)
    unshown = []
    for v in VERBS:
        shown = set(re.findall(r"--([a-z-]+)", a.drover(v, "--help").stdout.split("options:")[1]))
        for line in a.drover(v, "--help").stdout.split("\n\n")[0].splitlines():
            unshown += [(v, o) for o in re.findall(r" --([a-z-]+)", line) if o not in shown]
    t.ok(not unshown, "and uses only options it has", unshown)
    for args, guess in ((("submti", "x"), "drover submit"), (("retyr", "c-1"), "drover retry"), (("ls", "--stat", "x"), "--state"), (("retry", "c-1", "--volum", "5"), "--volume")):
        r = a.drover(*args)
        t.ok(r.returncode == 2 and f"did you mean {guess}" in r.stderr, f"{' '.join(args)}: a guess", r.stderr)
    for args in ((), ("get",), ("get", "a", "b"), ("ls", "x"), ("ls", "-o", "xml"), ("ls", "-n", "x"), ("ls", "-n"), ("watch", "--until", "x"), ("retry", "c-1", "--parts", "a"),
                 ("submit", "/nonexistent"), ("get", "c-1/x/y"), ("logs", "c-1"), ("watch", "--timeout", "x"), ("ls", "--yes"), ("pause", "c-1", "--wait=1"), ("help", "nothing")):
        r = a.drover(*args)
        t.ok(r.returncode == 2 and (r.stderr.startswith("error: ") or not args), f"drover {' '.join(args)}: usage, 2", (r.returncode, r.stderr))
        t.ok("next: " in r.stderr or not args or "--" in r.stderr or "usage" in r.stdout, f"drover {' '.join(args)}: says what to do", r.stderr)
    t.ok(os.path.getsize(DROVER) < 2 * 1024 * 1024, "the program is smaller than 2 MB")


def check_away(t, a):
    env = {"DROVER_URL": "http://127.0.0.1:9"}
    for args in (("ls",), ("get", "c-1"), ("doctor",), ("events",)):
        r = a.drover(*args, env=env)
        t.ok(r.returncode == (1 if args[0] == "doctor" else 7) and "next: " in r.stderr + r.stdout, f"{args[0]} without a server", (r.returncode, r.stderr))
    r = a.drover("ls", env={"DROVER_TOKEN_FILE": "/nonexistent"})
    t.ok(r.returncode == 4 and "DROVER_TOKEN_FILE" in r.stderr, "no token: 4", (r.returncode, r.stderr))
    t.eq(a.drover("ls", env={"DROVER_URL": "ftp://x"}).returncode, 2, "a wrong URL: 2")
    for args in (("get", "c-99"), ("get", "no-such-name"), ("parts", "c-99"), ("ops", "op-9"), ("pause", "c-99"), ("watch", "c-99"), ("logs", "c-99/1"), ("watch",)):
        r = a.drover(*args)
        t.ok(r.returncode == 3 and "next: " in r.stderr, f"drover {' '.join(args)}: not found, 3", (r.returncode, r.stderr))


def check_submit(t, a):
    bad, good = a.dir + "/bad.yaml", a.dir + "/good.yaml"
    open(bad, "w").write(EIGHT)
    open(good, "w").write(spec("laion", top="budget: 900 USD"))
    a.objects("data", [f"meta/p{i:03}.parquet" for i in range(12)])
    for verb in ("submit", "validate"):
        r = a.drover(verb, bad)
        faults = re.findall(r"^error: .*bad\.yaml:(\d+):(\d+) ", r.stderr, re.M)
        t.ok(r.returncode == 2 and len(faults) >= 8 and r.stderr.count("hint: ") >= 8 and "    6 |     worker: downlaod" in r.stderr, f"{verb} shows eight faults with their lines", r.stderr)
    t.eq(a.sql("SELECT count(*) FROM campaign"), "0", "and starts nothing")
    a.sql("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.xlarge', 204000, 'test'); INSERT INTO quota (instance_type, limit_n) VALUES ('ml.c5.xlarge', 4)")
    r = a.drover("validate", good)
    t.ok(r.returncode == 0 and "12 parts" in r.stdout and "0.2618 USD a part" in r.stdout and "budget 900.00" in r.stdout, "validate prints the plan", r.stdout)
    t.eq(json.loads(a.drover("submit", good, "--dry-run", "-o", "json").stdout)["parts"]["total"], 12, "--dry-run -o json is the API's")
    poor = a.dir + "/poor.yaml"
    open(poor, "w").write(spec("poor", top="budget: 0.01 USD"))
    for args in (("submit", good), ("submit", good, "-o", "json")):
        r = a.drover(*args)
        t.ok(r.returncode == 2 and "-y" in r.stderr and not r.stdout, f"drover {args[0]} wants -y without a terminal", r.stderr)
    r = a.drover("submit", poor, "-y")
    t.ok(r.returncode == 6 and "0.01 USD" in r.stderr, "a budget too small: 6", (r.returncode, r.stderr))
    r = a.drover("submit", good, "-y")
    t.ok(r.returncode == 0 and re.match(r"Submitted c-1  http://127.0.0.1:\d+/c/1     watch: drover watch c-1\n", r.stdout), "submit says where to look", r.stdout)
    r = a.drover("submit", "-", "-y", "-o", "name", stdin=spec("second"))
    t.eq((r.returncode, r.stdout), (0, "c-2\n"), "from stdin, -o name")
    r = a.drover("submit", good, "-y")
    t.ok(r.returncode == 5 and "error: c-1 has the name 'laion'" in r.stderr and "the files are the same" in r.stderr and "--again" in r.stderr and not r.stdout, "a name that is live is refused: 5", (r.returncode, r.stderr))
    r = a.drover("submit", "-", "-y", "-o", "json", stdin=spec("laion", top="budget: 901 USD").replace("max_runtime: 1h", "max_runtime: 2h"))
    t.ok(r.returncode == 5 and "  budget: 900 USD -> 901 USD\n  stages.download.max_runtime: 1h -> 2h\n" in r.stderr, "with the keys that differ", r.stderr)
    t.eq((json.loads(r.stdout)["code"], json.loads(r.stdout)["campaign"]), ("live_name", "c-1"), "and -o json is the API's")
    t.ok("  change it there: drover budget c-1 901\n" in r.stderr and "there: drover scale" not in r.stderr, "with the command that changes one of them there", r.stderr)
    more = spec("laion", top="limits: {deadline: 2099-12-01T18:00:00Z, priority: 70, parts: 3, weight: 5}", extra="    limits: {parts: 4}")
    r = a.drover("submit", "-", "-y", stdin=more)
    t.ok(r.returncode == 5 and all(f"  {x}\n" in r.stderr for x in ("limits.deadline: (none) -> 2099-12-01T18:00:00Z", "limits.weight: (none) -> 5", "change it there: drover deadline c-1 2099-12-01T18:00:00Z", "change it there: drover priority c-1 70",
        "change it there: drover scale c-1 3", "change it there: drover scale c-1/download 4", "change it there: drover budget c-1 none")), "a deadline, a priority and other limits of the file are named with theirs", r.stderr)
    t.eq(a.drover("submit", good, "--dry-run").returncode, 5, "--dry-run says so, too")
    t.eq([a.drover(v, good).returncode for v in ("validate", "plan")], [0, 0], "validate and plan look at the file alone")
    out, status = asked(a, "submit", good, keys=b"y\n")
    t.ok(status == 5 and "[y/N]" not in out, "a terminal is told before it is asked", out)
    r = a.drover("submit", good, "-y", "--again", "--idempotency-key", "k1", "-o", "json")
    q = a.drover("submit", good, "-y", "--idempotency-key", "k1", "-o", "json")
    t.ok(json.loads(r.stdout) == json.loads(q.stdout), "a key of one's own gives the first answer again")
    r = a.drover("submit", "-", "-y", "--idempotency-key", "k1", stdin=spec("second"))
    t.eq(r.returncode, 5, "with another file: conflict, 5")
    t.eq(a.drover("submit", "-", stdin="").returncode, 2, "nothing at all: 2")


def check_read(t, a):
    leader_takes(a, 1)
    leader_fails(a, 1, [3, 5], 7)
    leader_fails(a, 1, [9], 8, "killed \u001b[31mred\u001b[0m\u202e")
    r = a.drover("ls")
    t.ok(r.returncode == 0 and re.search(r"^c-1 +▶ running +12 +0 +0 +0 +3 ", r.stdout, re.M), "ls", r.stdout)
    t.eq(a.drover("ls", "-o", "name", "--state", "running").stdout, "c-1\n", "ls -o name --state")
    t.ok(all(json.loads(x)["id"] for x in a.drover("ls", "-o", "jsonl").stdout.splitlines()), "ls -o jsonl")
    r = a.drover("get", "laion")
    t.ok(r.returncode == 0 and "laion" in r.stdout and "download" in r.stdout and "budget 900.00" in r.stdout, "get by name", r.stdout)
    t.eq(json.loads(a.drover("get", "1", "-o", "json").stdout)["id"], "c-1", "get by number")
    t.ok("output_folder" in a.drover("get", "c-1", "--spec").stdout, "get --spec is the file")
    r = a.drover("get", "c-1/download/3")
    t.ok("disk_full: No space left" in r.stdout and "d-1-3-a1" in r.stdout and "1.23" in r.stdout, "get of a part", r.stdout)
    r = a.drover("parts", "c-1", "--state", "failed")
    t.ok(r.stdout.count("✗ failed") == 3 and "\x1b" not in r.stdout, "parts --state failed, without control bytes", r.stdout)
    t.eq(a.drover("parts", "c-1/download", "--cause", "oom", "-o", "name").stdout, "c-1/download/9\n", "parts --cause -o name")
    t.eq(len(a.drover("parts", "c-1", "-n", "5", "-o", "jsonl").stdout.splitlines()), 5, "parts -n 5")
    t.ok("next: drover parts" in a.drover("parts", "c-1", "-n", "5").stderr, "and says there are more")
    r = a.drover("failures", "c-1")
    t.ok(re.search(r"disk_full +2 .* 2\.47 +3,5 +No space", r.stdout) and "--volume GB" in r.stdout and "drover retry c-1 --cause disk_full" in r.stdout, "failures with cause, count, cost, remedy", r.stdout)
    t.ok("log: drover logs c-1/download/3   retry: drover retry c-1 --cause" in r.stdout and "STAGE" not in r.stdout, "and the log of one, with its stage", r.stdout)
    r = a.drover("failures", "c-1/download")
    t.ok("retry: drover retry c-1/download --cause disk_full" in r.stdout, "of a stage: its retry", r.stdout)
    t.ok("no failed parts" in a.drover("failures", "c-2").stdout, "a campaign without failures says so")
    r = a.drover("cost", "c-1", "-o", "json")
    t.eq(json.loads(r.stdout)["metered"], {"seconds": 0, "micro_usd": 0}, "cost -o json has metered.seconds and metered.micro_usd")
    t.ok("CAUSE" in a.drover("cost", "c-1", "--by", "cause").stdout and "disk_full" in a.drover("cost").stdout + a.drover("cost", "c-1").stdout, "cost --by cause")
    t.eq(a.drover("cost", "c-1", "--by", "x").returncode, 2, "cost --by x: 2")
    t.ok(re.search(r"ml\.c5\.xlarge +on_demand +4 +0 +0 +4 +- +0\.2040", a.drover("quotas").stdout), "quotas", a.drover("quotas").stdout)
    t.ok(re.search(r"ml\.c5\.xlarge +training +0\.2040 +hour +file", a.drover("prices", "ml.c5").stdout) and a.drover("prices", "ml.x", "-o", "name").stdout == "", "prices, of types that begin so", a.drover("prices").stdout)
    r = a.drover("logs", "c-1/3")
    bad = '2026-01-01 00:00:01 algo-1 shard_lost shard=7 why="no room"\n'
    t.eq(r.stdout, "2026-01-01 00:00:00 algo-1 log of d-1-3-a1\n" + bad, "logs, with a line of JSON made readable")
    t.eq([a.drover("logs", "c-1/3", *o).stdout for o in (("--from-error",), ("--find", "SHARD"), ("--find", "nothing"))], [bad, bad, ""], "logs --from-error, --find")
    t.ok('{"ts":"x","level":"error"' in a.drover("logs", "c-1/3", "--raw").stdout, "logs --raw")
    t.eq(a.drover("logs", "c-1/0").returncode, 3, "no log yet: 3")
    r = a.drover("doctor")
    t.ok(r.returncode == 1 and "✓ token" in r.stdout and "✓ database" in r.stdout and "✗ aws" in r.stdout and "next: " in r.stdout, "doctor names what is wrong", r.stdout)
    t.ok("✗ leader      no droverd has led yet: nothing starts\n" in r.stdout, "so does one whom nobody leads", r.stdout)
    t.eq(json.loads(a.drover("version", "-o", "json").stdout)["droverd"], "test", "version of both")
    r = a.drover("ls", env={"LC_ALL": "C"})
    t.ok(all(ord(c) < 128 for c in r.stdout), "plain ASCII without UTF-8", r.stdout)


def check_forms(t, a):
    """Tables as CSV and YAML, chosen columns, flags anywhere, requests as they are."""
    rows = list(csv.reader(io.StringIO(a.drover("ls", "-o", "csv", "--columns", "id,state,fail").stdout)))
    t.ok(rows[0] == ["ID", "STATE", "FAIL"] and ["c-1", "running", "3"] in rows, "ls -o csv --columns", rows)
    a.sql("UPDATE campaign SET name = '=1+1,\"x\"' WHERE id = 2")
    rows = list(csv.reader(io.StringIO(a.drover("ls", "-o", "csv", "--columns", "NAME").stdout)))
    t.ok(["'=1+1,\"x\""] in rows, "a formula in a cell stays text", rows)
    a.sql("UPDATE campaign SET name = 'second' WHERE id = 2")
    r = a.drover("ls", "--columns", "id,nothing")
    t.ok(r.returncode == 2 and "there is no column 'nothing'" in r.stderr and "SUBMITTED" in r.stderr, "an unknown column: those there are", r.stderr)
    t.eq(a.drover("pause", "c-1", "-o", "csv").returncode, 2, "csv where there is no table: 2")
    text = a.drover("get", "c-1", "-o", "yaml").stdout
    t.ok(re.search(r'^id: c-1\nname: laion\n', text) and re.search(r'^stages:\n  - name: download\n    kind: jobs\n', text, re.M) and re.search(r'^guidance: \[\]$', text, re.M)
         and re.search(r'^created_at: "20', text, re.M), "-o yaml is the API's answer", text)
    same = a.drover("ls", "-n", "2", "-o", "json").stdout
    for args in (("-n2", "-ojson", "ls"), ("ls", "-n2", "-ojson"), ("--limit=2", "-o", "json", "ls"), ("-o", "json", "--limit", "2", "ls"), ("ls", "-n=2", "-o=json")):
        t.eq(a.drover(*args).stdout, same, f"drover {' '.join(args)}")
    t.eq(json.loads(a.drover("api", "GET", "/v1/campaigns/c-1").stdout)["id"], "c-1", "api GET")
    r = a.drover("api", "PATCH", "/v1/campaigns/c-1", '{"priority": 66}')
    t.eq(json.loads(r.stdout)["priority"], 66, "api PATCH sends the ETag")
    r = a.drover("api", "PATCH", "/v1/projects/default", '{"parts": 640}')
    t.ok(r.returncode == 0 and [p["parts"] for p in json.loads(r.stdout)["projects"]] == [640], "that of the list for what has no page of its own", (r.stdout, r.stderr))
    t.eq([a.drover("api", "PATCH", p, '{"parts": null}').returncode for p in ("/v1/projects/default", "/v1/projects/nobody", "/nothing")], [0, 3, 3], "and what is not there is not found")
    r = a.drover("api", "POST", "/v1/campaigns/c-1:drain", "-", stdin="{}")
    t.eq(json.loads(r.stdout)["wanted"], "drain", "api POST with a body from stdin")
    a.drover("resume", "c-1", "-y")
    r = a.drover("api", "POST", "/v1/campaigns?dry_run=true", '{"version": 1, "name": "x", "stagse": []}')
    t.ok(r.returncode == 2 and r.stderr.count("error: ") >= 2 and "stagse" in r.stderr, "every fault of errors[] is printed", (r.returncode, r.stderr))
    for args in (("api", "get", "/v1/campaigns"), ("api", "GET", "v1"), ("api", "GET")):
        t.eq(a.drover(*args).returncode, 2, f"drover {' '.join(args)}: 2")
    t.ok(a.drover("open", "c-1/download/3").stdout.endswith("/c/1?stage=download&part=3\n") and a.drover("open").stdout.endswith(f":{a.port}/\n"), "open prints the address")


def check_act(t, a):
    for verb, wanted in (("pause", "pause"), ("drain", "drain"), ("resume -y", "run")):
        r = a.drover(*verb.split(), "c-1")
        t.ok(r.returncode == 0 and a.get("/v1/campaigns/c-1")[1]["wanted"] == wanted, verb, r.stderr)
    r = a.drover("retry", "c-1", "--parts", "99", "--instance-type", "ml.c5.18xlarge", "-y")
    t.ok(r.returncode == 2 and "stage 'download' lists ml.c5.xlarge" in r.stderr, "a type that the stage does not list is refused, with its list", (r.returncode, r.stderr))
    t.eq(a.drover("retry", "c-1", "--max-runtime", "soon", "-y").returncode, 2, "and a run time that is none")
    r = a.drover("retry", "c-1", "--cause", "disk_full", "--volume", "450")
    t.ok(r.returncode == 2 and "2 parts of c-1 (3,5)" in r.stdout and "add -y" in r.stderr, "retry without a terminal wants -y", (r.stdout, r.stderr))
    t.eq(json.loads(a.drover("retry", "c-1", "--dry-run", "-o", "json").stdout)["parts"], 3, "retry --dry-run")
    a.drover("drain", "c-1")
    r = a.drover("resume", "c-1")
    c = a.get("/v1/campaigns/c-1")[1]
    waits, runs = c["stages"][0]["parts"]["waiting"], c["stages"][0]["parts"]["active"]
    t.ok(r.returncode == 2 and f"  download: {waits} wait, {runs} run\n" in r.stdout and " USD spent, " in r.stdout and "add -y to resume" in r.stderr and c["wanted"] == "drain",
         "resume says which stages and what money go on, and without a terminal wants -y", (r.stdout, r.stderr, c["wanted"]))
    out, status = asked(a, "resume", "c-1", keys=b"n\n")
    t.ok(status == 2 and "Let c-1 go on? It starts jobs that cost money. [y/N]" in out and a.get("/v1/campaigns/c-1")[1]["wanted"] == "drain", "on a terminal it asks, and takes no for no", out)
    out, status = asked(a, "resume", "c-1", keys=b"y\n")
    t.ok(status == 0 and "c-1: goes on" in out and a.get("/v1/campaigns/c-1")[1]["wanted"] == "run", "and yes for yes", out)
    before = a.get("/v1/campaigns/c-1")[1]
    for ref in ("c-1/download", "c-1/download/0", "1/3"):
        for verb in (("pause", "-y"), ("drain",), ("resume", "-y"), ("cancel", "-y"), ("archive", "-y"), ("priority", "80"), ("deadline", "2h"), ("unpark", "-y")):
            r = a.drover(verb[0], ref, *verb[1:])
            t.ok(r.returncode == 2 and "takes a campaign, not a stage or a part" in r.stderr and f"drover {verb[0]} c-1 is for all of it" in r.stderr,
                 f"{verb[0]} {ref} is refused: it would change more than was named", (r.returncode, r.stdout, r.stderr))
    for words, want in ((("c-1/download/0", "7000"), "not of a part"), (("c-1/download", "--at-limit", "stop"), "--at-limit is the campaign's"), (("c-1", "--per-task", "40"), "--per-task is a stage's")):
        r = a.drover("budget", *words, "-y")
        t.ok(r.returncode == 2 and want in r.stderr, f"budget {' '.join(words)} is refused", r)
    for ref in ("c-1/3", "c-1/download/3"):
        r = a.drover("scale", ref, "4", "-y")
        t.ok(r.returncode == 2 and "of a campaign or a stage, not of a part" in r.stderr and not r.stdout, f"scale {ref} is refused: no part has such a limit", r)
    for ref in ("c-1/download", "c-1/3"):
        r = a.drover("cost", ref)
        t.ok(r.returncode == 2 and "cost takes a campaign, not a stage or a part" in r.stderr and "drover cost c-1 --by stage" in r.stderr and not r.stdout, f"cost {ref} is refused: it showed the campaign's", r)
    after = a.get("/v1/campaigns/c-1")[1]
    t.eq([after[k] for k in ("wanted", "budget", "limits", "priority", "deadline")], [before[k] for k in ("wanted", "budget", "limits", "priority", "deadline")], "and nothing was changed by it")
    r = a.drover("budget", "c-1", "1", "--resume")
    t.ok(r.returncode == 2 and "add -y" in r.stderr, "nor does a lower budget let it go on without -y", (r.returncode, r.stderr))
    for verb in ("cancel", "retry", "resume"):
        for o in ("table", "json", "jsonl", "name"):
            r = a.drover(verb, "c-1", "-o", o)
            t.ok(r.returncode == 2 and "add -y" in r.stderr, f"{verb} -o {o} without a terminal wants -y", (r.returncode, r.stdout, r.stderr))
    t.eq((a.get("/v1/campaigns/c-1")[1]["wanted"], a.sql("SELECT count(*) FROM operation")), ("run", "0"), "and nothing happened")
    for option in ("--cause", "--parts", "--stage"):
        r = a.drover("retry", "c-1", option, "", "-y")
        t.ok(r.returncode == 2 and "never means all" in r.stderr and a.sql("SELECT count(*) FROM operation") == "0", f"retry {option} '' is refused", (r.returncode, r.stderr))
    t.eq(json.loads(a.drover("retry", "c-1", "--parts", "3, 5", "--dry-run", "-o", "json").stdout)["parts"], 2, "retry --parts takes a list")
    out, status = asked(a, "retry", "c-1", "--cause", "disk_full", keys=b"n\n")
    t.ok(status == 2 and "Retry 2 parts of c-1? [y/N]" in out and a.sql("SELECT count(*) FROM operation") == "0", "on a terminal it asks, and takes no for no", out)
    out, status = asked(a, "retry", "c-1", "--cause", "disk_full", "--volume", "450", "--instance-type", "ml.c5.xlarge", "--max-runtime", "4h", keys=b"y\n")
    t.ok(status == 0 and "op-1 accepted: 2 parts" in out and a.sql("SELECT changes FROM operation") == '{"volume_gb": 450, "max_runtime": 14400, "instance_type": "ml.c5.xlarge"}', "and yes for yes", out)
    r = a.drover("skip", "c-1", "--cause", "disk_full", "-y")
    t.ok(r.returncode == 3 and "no failed part matches" in r.stderr, "what a retry holds is not skipped as well", (r.returncode, r.stderr))
    r = a.drover("skip", "c-1", "--parts", "8-10", "--dry-run")
    t.ok(r.returncode == 0 and "1 part of c-1 (9)" in r.stdout, "skip takes ranges", (r.stdout, r.stderr))
    for bad in ("9-8", "1-", "-3", "1-2-3", "0-10000"):
        r = a.drover("skip", "c-1", f"--parts={bad}", "-y")
        t.ok(r.returncode == 2 and "next: " in r.stderr, f"--parts={bad} is refused", (r.returncode, r.stderr))
    r = a.drover("retry", "c-1", "--cause", "disk_full", "-y")
    t.ok(r.returncode == 3 and "no failed part matches" in r.stderr, "nothing left to retry: 3", (r.returncode, r.stderr))
    r = a.drover("hold", "c-1", "--dry-run")
    t.ok(r.returncode == 0 and re.fullmatch(r"\d+ parts of c-1\n", r.stdout), "hold counts all that wait", (r.stdout, r.stderr))
    r = a.drover("hold", "c-1/9", "-y")
    t.ok(r.returncode == 3 and "no waiting part matches" in r.stderr and "drover parts c-1 --state waiting" in r.stderr, "what has failed is not held: 3", (r.returncode, r.stderr))
    r = a.drover("release", "c-1", "--cause", "oom", "-y")
    t.ok(r.returncode == 2 and "--cause" in r.stderr, "held parts have no cause", (r.returncode, r.stderr))
    r = a.drover("release", "c-1", "-y")
    t.ok(r.returncode == 3 and "no held part matches" in r.stderr, "nothing is held: 3", (r.returncode, r.stderr))
    r = a.drover("hold", "c-1", "--parts", "0-199", "-y", "-o", "json")
    b = json.loads(r.stdout)
    t.ok(r.returncode == 0 and b["kind"] == "hold" and b["parts"] > 0 and b["changes"] == {}, "a hold of chosen parts is accepted", (r.stdout, r.stderr))
    a.sql("DELETE FROM operation WHERE kind = 'hold'; SELECT setval(pg_get_serial_sequence('operation', 'id'), 1)")
    a.drover("pause", "c-1")
    r = a.drover("retry", "c-1/9", "-y", "-o", "name", "--resume")
    t.eq(a.get("/v1/campaigns/c-1")[1]["wanted"], "run", "retry --resume lets the campaign go on")
    t.eq(r.stdout, "op-2\n", "one part by its name")
    t.ok(re.search(r"op-1 +c-1 +retry +accepted +2 +0", a.drover("ops").stdout), "ops", a.drover("ops").stdout)
    a.drover("pause", "c-2")
    r = a.drover("budget", "c-2", "900", "-y", "--resume")
    b = a.get("/v1/campaigns/c-2")[1]
    t.ok(r.returncode == 0 and (b["wanted"], b["budget"]["limit_micro_usd"]) == ("run", 900000000), "so does budget --resume", (r.stderr, b))
    deadline = lambda *args: a.drover("deadline", "c-2", *args)  # noqa: E731
    of = lambda: a.get("/v1/campaigns/c-2")[1]["deadline"]  # noqa: E731
    r = deadline("2099-12-01T18:00:00Z", "--dry-run")
    t.ok(r.returncode == 0 and r.stdout.splitlines()[0].startswith("Forecast") and "Deadline 2099-12-01 18:00:00 UTC, in " in r.stdout and of() is None, "deadline --dry-run shows end and cost against it, and changes nothing", r)
    r = deadline("2099-12-01T18:00:00Z")
    t.ok(r.returncode == 0 and "c-2: deadline 2099-12-01 18:00:00 UTC; nothing is stopped by it" in r.stdout and of() == "2099-12-01T18:00:00+00:00", "deadline sets it", r)
    t.ok("  deadline 2099-12-01 18:00:00 UTC" in a.drover("get", "c-2").stdout and "2099-12-01 18:00" in a.drover("ls", "-o", "wide").stdout, "get and ls -o wide show it")
    began = time.time()
    r = deadline("36h")
    t.ok(r.returncode == 0 and abs(datetime.datetime.fromisoformat(of()).timestamp() - began - 36 * 3600) < 600, "36h is from now on", (r, of()))
    a.call("PATCH", "/v1/campaigns/c-2", {"deadline": "2020-12-01T18:00:00Z"}, {"If-Match": "*"})
    a.call("PATCH", "/v1/campaigns/c-1", {"deadline": "2020-12-01T18:00:00Z"}, {"If-Match": "*"})
    shown = [a.drover(*x).stdout for x in (("deadline", "c-2"), ("get", "c-2"), ("ls",))]
    t.ok(re.search("Deadline 2020-12-01 18:00:00 UTC, .* ago: ", shown[0]) and "late: its deadline was 2020-12-01T18:00:00Z" in shown[1] and "c-1 late: its deadline was 2020-12-01T18:00:00Z" in shown[2], "one that has passed is the banner of get and ls", shown)
    a.call("PATCH", "/v1/campaigns/c-1", {"deadline": None}, {"If-Match": "*"})
    r = [deadline("none"), deadline("tomorrow")]
    t.ok(r[0].returncode == 0 and of() is None and r[1].returncode == 2 and "36h from now" in r[1].stderr, "deadline none takes it off; what is no time: 2", r)
    t.eq(json.loads(a.drover("ops", "op-2", "-o", "json").stdout)["parts"], 1, "ops op-2")
    out = a.drover("ops", "op-1").stdout
    t.ok(re.search(r'^op-1  retry of c-1  accepted\nparts with .*cause \["disk_full"\].*\nchanges    .*volume_gb 450.*\nparts      2, 0 done\nasked for  [-0-9]{10} [:0-9]{8} by token file\n', out) and "ended" not in out, "ops op-1: what it is about", out)
    undo_op(t, a)
    leader_takes(a, 2)
    leader_fails(a, 2, [1], 7)

    def carry_out():
        wait_for(lambda: a.sql("SELECT count(*) FROM operation") == "3")
        a.sql("UPDATE operation SET state = 'done', done = total")
    threading.Thread(target=carry_out).start()
    r = a.drover("retry", "c-2", "-y", "--wait", "--timeout", "20s")
    t.eq([[json.loads(x)["id"] for x in a.drover("ops", *args, "-o", "jsonl").stdout.splitlines()] for args in (("--campaign", "c-1"), ("--campaign", "second"), ("-n", "2"), ())],
         [["op-2", "op-1"], ["op-3"], ["op-3", "op-2"], ["op-3", "op-2", "op-1"]], "ops --campaign, by its id and its name")
    r2 = a.drover("ops", "-n", "1")
    t.ok("op-3" in r2.stdout and "op-2" not in r2.stdout and "there are more; next: drover ops" in r2.stderr, "ops -n 1 says that there are more", (r2.stdout, r2.stderr))
    t.ok(r.returncode == 0 and "op-3 done: 1 part retried" in r.stdout, "retry --wait", (r.returncode, r.stdout, r.stderr))
    r = a.drover("pause", "c-1", "--wait", "--timeout", "1s")
    t.eq(r.returncode, 8, "--wait --timeout 1s: 8")


def undo_op(t, a):
    """drover op cancel: it waits until the leader, here SQL, has carried it out."""
    r = a.drover("op", "cancel", "op-1")
    t.ok(r.returncode == 2 and "add -y" in r.stderr and a.sql("SELECT count(*) FROM operation WHERE undo_asked_at IS NOT NULL") == "0", "op cancel without a terminal wants -y", (r.returncode, r.stderr))
    t.ok("undo       drover op cancel op-1\n" in a.drover("ops", "op-1").stdout, "ops op-1 says how it is undone", a.drover("ops", "op-1").stdout)

    def take_back():
        wait_for(lambda: a.sql("SELECT count(*) FROM operation WHERE undo_asked_at IS NOT NULL") == "1")
        a.sql("UPDATE operation SET state = 'cancelled', done = 2, undone = 1, ended_at = now(), undo_ended_at = now() WHERE id = 1")
    threading.Thread(target=take_back).start()
    r = a.drover("op", "cancel", "op-1", "-y", "--timeout", "20s")
    t.ok(r.returncode == 0 and r.stdout == "op-1 undone: 1 part failed as before, 1 had started and goes on\n", "op cancel says how many of each", (r.returncode, r.stdout, r.stderr))
    out = a.drover("ops", "op-1").stdout
    t.ok(re.search(r"\ncancelled  [-0-9]{10} [:0-9]{8} by token file; undone: 1 part failed as before, 1 had started and goes on\n", out), "so does ops op-1", out)
    r = a.drover("op", "cancel", "op-1", "-y")
    t.ok(r.returncode == 5 and "was undone; drover ops op-1" in r.stderr, "twice: 5, with what shows it", (r.returncode, r.stderr))
    for args in ((), ("cancel",), ("begin", "op-1"), ("cancel", "op-1", "op-2")):
        r = a.drover("op", *args, "-y")
        t.ok(r.returncode == 2 and "next: drover op --help" in r.stderr, f"op {' '.join(args)}: usage", (r.returncode, r.stderr))
    t.eq(a.drover("op", "cancel", "op-99", "-y").returncode, 3, "of none: 3")
    a.sql("UPDATE operation SET state = 'accepted', done = 0, undone = 0, ended_at = NULL, undo_asked_at = NULL, undo_ended_at = NULL WHERE id = 1")


def check_watch(t, a):
    leader_takes(a, 2)
    p = subprocess.Popen([DROVER, "watch", "c-2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env={**os.environ, "DROVER_URL": f"http://127.0.0.1:{a.port}", "DROVER_TOKEN_FILE": a.token_file, "LC_ALL": "C.UTF-8"})
    first = p.stdout.readline()
    finish(a, 2)
    rest = p.communicate(timeout=patience(20))[0]
    t.ok(p.returncode == 0 and "second c-2 running" in first and re.search(r"c-2 succeeded +91 %", rest) and "\x1b" not in first + rest, "in a pipe: a line a change, to the end", (first, rest))
    finish(a, 1, "failed")
    r = a.drover("watch", "c-1")
    t.ok(r.returncode == 10 and "3 parts failed" in r.stderr, "ended with failed parts: 10", (r.returncode, r.stderr))
    parts = json.loads(a.drover("get", "c-1", "-o", "json").stdout)["parts"]
    t.eq(re.findall(r"\d+ %", r.stdout)[-1:], [f"{(parts['done'] + parts['skipped']) * 100 // parts['total']} %"], "its share is that of the dashboard: what failed is not counted")
    a.sql("UPDATE campaign_run SET state = 'cancelled' WHERE campaign_id = 1")
    t.eq(a.drover("watch", "c-1", "-q").returncode, 11, "cancelled: 11")
    a.submit(spec("third"))
    cid = a.sql("SELECT max(id) FROM campaign")
    t.eq(a.drover("watch", f"c-{cid}", "--timeout", "1s").returncode, 8, "--timeout: 8")
    t.eq(a.drover("watch", f"c-{cid}", "--until", "planned").returncode, 0, "--until a state")
    leader_takes(a, int(cid))
    leader_fails(a, int(cid), [2], 7)
    t.eq(a.drover("watch", f"c-{cid}", "--fail-fast").returncode, 10, "--fail-fast: 10")
    t.eq(json.loads(a.drover("watch", f"c-{cid}", "--fail-fast", "-o", "json").stdout)["id"], f"c-{cid}", "-o json prints the campaign at the end")
    threading.Timer(1.5, lambda: finish(a, int(cid), "failed")).start()
    out, status = asked(a, "watch", f"c-{cid}")
    plain = re.sub(r"\x1b\[[0-9]*[A-Z]", "", out)
    t.ok(status == 10 and "█" in out and "cost 0.00 USD" in plain and "end: needs 5 finished parts" in plain, "on a terminal: a bar, the cost, no made-up end", plain[-800:])
    t.ok(max(len(x) for x in plain.replace("\r", "\n").splitlines()) <= 80, "in 80 columns", max(plain.splitlines(), key=len))
    p = subprocess.Popen([DROVER, "watch", "c-3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env={**os.environ, "DROVER_URL": f"http://127.0.0.1:{a.port}", "DROVER_TOKEN_FILE": a.token_file})
    p.stdout.readline()
    p.send_signal(signal.SIGINT)
    t.ok(p.wait(10) == 130 and "continues" in p.stderr.read(), "interrupted: 130, and says that the campaign continues")
    threading.Timer(1.0, lambda: finish(a, int(a.sql("SELECT max(id) FROM campaign")))).start()
    r = a.drover("submit", "-", "-y", "--wait", "-o", "json", stdin=spec("fourth"))
    t.ok(r.returncode == 0 and json.loads(r.stdout)["state"] == "succeeded", "submit --wait -o json", (r.returncode, r.stdout[-300:], r.stderr))


def check_archive(t, a):
    cid = a.drover("submit", "-", "-y", "-o", "name", stdin=spec("old")).stdout.strip()
    n, path = int(cid[2:]), f"/v1/campaigns/{cid}"
    leader_takes(a, n)
    leader_fails(a, n, [3, 5], 7)
    r = a.drover("archive", cid, "-y")
    t.ok(r.returncode == 5 and "has not ended" in r.stderr, "a campaign that runs is not archived: 5", (r.returncode, r.stderr))
    finish(a, n, "failed")
    r = a.drover("archive", cid)
    t.ok(r.returncode == 2 and "-y" in r.stderr and a.get(path)[1]["archive"] is None, "archive wants -y without a terminal", r.stderr)
    a.sql(f"INSERT INTO money (level, ref_id, reserved_musd) VALUES ('campaign', {n}, 1)")
    s, b, _ = a.post(path + ":archive")
    t.ok(s == 409 and b["code"] == "conflict" and "money is still reserved" in b["detail"], "while something of it lives: 409 with what", (s, b))
    a.sql(f"UPDATE money SET reserved_musd = 0 WHERE ref_id = {n}")
    cost = a.drover("cost", cid, "--by", "cause").stdout
    r = a.drover("archive", cid, "-y", "--to", "nowhere")
    t.ok(r.returncode == 2 and "s3://bucket/archive" in r.stderr and a.post(path + ":archive", {"into": "s3://b/"})[0] in (400, 422), "a folder that is none is refused: 2", r.stderr)
    r = a.drover("archive", cid, "-y")
    t.ok(r.returncode == 0 and f"{cid}: archiving" in r.stdout, "archive", (r.returncode, r.stdout, r.stderr))
    t.eq(a.sql(f"SELECT count(*), max(kind), max(state), max(total) FROM operation WHERE campaign_id = {n}"), "1|archive|accepted|12", "it is an operation")
    a.sql("UPDATE archive SET after_attempt = 1")
    r = a.drover("archive", cid, "-y", "--to", "s3://laion/old")
    t.ok(r.returncode == 5 and "it is archived without a folder" in r.stderr and f"drover cost {cid}" in r.stderr, "too late for a folder: 5, with what is kept", (r.returncode, r.stdout, r.stderr))
    a.sql(f"INSERT INTO archive_cost SELECT campaign_id, cause, count(*), sum(billable_s), sum(cost_musd), false FROM attempt WHERE campaign_id = {n} GROUP BY 1, 2; "
          f"DELETE FROM attempt WHERE campaign_id = {n}; UPDATE archive SET archived_at = clock_timestamp(), attempts = 2; UPDATE operation SET state = 'done' WHERE campaign_id = {n}")
    r = a.drover("archive", cid, "-y", "--wait")
    t.ok(r.returncode == 0 and "(done)" in r.stdout and "written nowhere" in r.stdout, "asked again it waits for the end, and says what was written", (r.returncode, r.stdout, r.stderr))
    t.eq(a.sql(f"SELECT (SELECT count(*) FROM operation WHERE campaign_id = {n}), (SELECT count(*) FROM audit WHERE action = 'campaign.archive' AND subject = '{cid}')"),
         "1|1", "and asks for nothing twice")
    t.ok(cost == a.drover("cost", cid, "--by", "cause").stdout and "2.47" in cost, "its cost by cause is what it was", cost)
    t.ok("failed, archived" in a.drover("get", cid).stdout and re.search(rf"^{cid} .*failed, archived", a.drover("ls").stdout, re.M), "get and ls say so")
    gone = {p: (x[0], x[1]["code"]) for p in ("/parts", "/tiles", "/failures", "/forecast", "/metrics", "/scaling", "/compare?a=download/3&b=download/5", "/parts/3/logs", "/parts/3/why", "/parts/3/request") if (x := a.get(path + p))}
    gone["part"], gone["resume"], gone["retry"] = [(x[0], x[1]["code"]) for x in (a.get(f"/v1/parts/{cid}/3"), a.post(path + ":resume"), a.post(path + ":retry", {"selector": {"state": "failed"}}))]
    t.ok(set(gone.values()) == {(410, "archived")}, "what asks for its parts, or changes them, is answered 410", gone)
    t.ok([a.get(path + p)[0] for p in ("", "/spec", "/cost")] == [200] * 3 and a.get("/problems/archived")[0] == 200, "the rest is there")
    a.sql("UPDATE archive SET export_uri = 's3://b/archive/c-9/', exported = 4, exported_at = clock_timestamp(), export_problem = 'AccessDenied: PutObject'")
    t.ok("archived in s3://b/archive/c-9/, 4 objects; the next one is tried again: AccessDenied" in a.drover("get", cid).stdout.replace("\n", " ").replace("  ", " "), "get says where it is written, and what is in the way",
         a.drover("get", cid).stdout)
    r = a.drover("archive", cid, "-y", "--to", "s3://laion/new")
    t.ok(r.returncode == 5 and f"aws s3 cp --recursive s3://b/archive/c-9/ s3://laion/new/{cid}/" in r.stderr, "written elsewhere: 5, with how to copy it", (r.returncode, r.stdout, r.stderr))
    r = a.drover("parts", cid)
    t.ok(r.returncode == 5 and "its parts, attempts and metrics are deleted" in r.stderr, "drover parts says what is kept: 5", (r.returncode, r.stderr))


def check_audit(t, a):
    """What the verbs before it did."""
    n = int(a.sql("SELECT count(*) FROM audit"))
    lines = a.drover("audit", "-n", "1000").stdout.splitlines()
    t.ok(len(lines) == n + 1 and lines[0].split() == ["WHEN", "WHO", "ACTION", "SUBJECT"] and all(re.match(r"\d{4}-\d\d-\d\d [0-9:]{8}  token file  [a-z]+\.[a-z]+ +\S+$", x) for x in lines[1:]), "audit", lines)
    got = [json.loads(x) for x in a.drover("audit", "--campaign", "c-1", "--action", "campaign.retry", "-o", "jsonl").stdout.splitlines()]
    t.ok(got and {(x["action"], x["subject"], x["campaign"]) for x in got} == {("campaign.retry", "c-1", "c-1")}, "audit --campaign --action", got)
    t.ok("token file" in a.drover("audit", "--who", "token file", "-n", "1", "-o", "wide").stdout and a.drover("audit", "--who", "nobody", "-o", "jsonl").stdout == "", "audit --who")
    r = a.drover("audit", "-n", "3")
    t.ok(len(r.stdout.splitlines()) == 4 and "there are more; next: drover audit" in r.stderr, "audit -n 3 says that there are more", (r.stdout, r.stderr))
    ids = [a.drover("audit", "-o", "name", *sort).stdout.split() for sort in ((), ("--sort", "id"), ("--sort", "-id"), ("--sort", "-id", "-n", "2"))]
    t.ok(ids[0] == ids[1][::-1] == ids[2] and ids[3] == ids[0][:2] and len(ids[0]) == n, "audit --sort orders all rows, at the server", ids)
    t.eq([x.split()[-1] for x in a.drover("parts", "c-1", "--sort", "-part", "-n", "2").stdout.splitlines()[1:]], [x.split()[-1] for x in a.drover("parts", "c-1").stdout.splitlines()[:-3:-1]], "as parts --sort does")
    r = a.drover("parts", "c-1", "--sort", "usd")
    t.ok(r.returncode == 2 and "id, as without it, or id desc" in r.stderr, "what no index has is refused with what is allowed", r)
    page = json.loads(a.drover("audit", "-n", "3", "-o", "json").stdout)
    t.ok(len(page["audit"]) == 3 and page["next_page_token"], "so does its JSON", page)
    a.sql("INSERT INTO audit (token_id, role, action, subject, request_id) SELECT 'ci', 'operator', 'campaign.pause', 'c-1', '' FROM generate_series(1, 2500)")
    table = list(csv.reader(io.StringIO(a.drover("audit", "-o", "csv").stdout, newline="")))
    t.ok(len(table) == n + 2501 and len({x[-1] for x in table}) == len(table) and table[1][:4][1:] == ["ci", "campaign.pause", "c-1"], "-o csv has all pages, each row once", (len(table), table[:2]))
    t.eq(len(json.loads(a.drover("audit", "-o", "json").stdout)["audit"]), n + 2500, "and -o json")
    t.eq((a.drover("audit", "--action", "Retry").returncode, a.drover("audit", "--campaign", "no-such-name").returncode), (2, 3), "an action that is none: 2; a campaign that is not there: 3")


def check_limits(t, a):
    """scale, budget, priority and deadline: what would follow is shown first, --dry-run shows nothing else."""
    a.sql("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.c5.2xlarge', 408000, 'test'); INSERT INTO quota (instance_type, limit_n) VALUES ('ml.c5.2xlarge', 8)")
    a.objects("data", [f"limits/{i:03}.parquet" for i in range(16)])
    text = spec("limits", '{from: "s3://data/limits/*.parquet"}', "    expect: {duration: 60m}\n    limits: {parts: 6}", "budget: {total: 900 USD, stages: {download: {total: 850 USD}}}\nlimits: {parts: 1, priority: 50, deadline: 2099-12-01T18:00:00Z}")
    c = a.drover("submit", "-", "-y", "-o", "name", stdin=text.replace("ml.c5.xlarge", "ml.c5.2xlarge").replace("max_runtime: 1h", "max_runtime: 2h")).stdout.strip()
    leader_takes(a, int(c[2:]))
    now = lambda: a.get(f"/v1/campaigns/{c}")[1]  # noqa: E731
    before = now()
    hours = lambda v: v["end"]["p50_seconds"] / 3600  # noqa: E731
    binds = lambda v: (v["binding"], v["binding_instance_type"])  # noqa: E731
    seen = {}
    for what, args in (("scale", ("4",)), ("scale", ("none",)), ("scale", ("0",)), ("budget", ("1",)), ("budget", ("none",)), ("budget", ("--at-limit", "hold")), ("priority", ("80",)), ("deadline", ("2h",))):
        r = a.drover(what, c, *args, "--dry-run")
        out = json.loads(a.drover(what, c, *args, "--dry-run", "-o", "json").stdout or "{}")
        sides = re.findall(r"^(Now |Then|Forecast ) (?:ends in .* \(.* to .*\)|does not end .*)$", r.stdout, re.M)
        want = ["Forecast "] if args[-1] in ("hold", "2h") else ["Now ", "Then"]
        t.ok(r.returncode == 0 and sides == want and len(re.findall("costs [0-9.]+ USD \\([0-9.]+ to", r.stdout)) == len(want) and "  binds: concurrency\n" in r.stdout and "Deadline " in r.stdout and ("what_if" in out) == (len(want) == 2),
             f"{what} {' '.join(args)} --dry-run shows end, cost and what binds, before and after", (r, out))
        seen[what + " " + args[-1]] = out
    t.eq(now(), before, "and none of them changes anything")
    four = seen["scale 4"]
    t.ok(15 < hours(four["campaign"]) < 25 and 3 < hours(four["what_if"]) < 7 and binds(four["what_if"]) == ("concurrency", None), "four at once end four times as soon", four)
    six = seen["scale none"]["what_if"]
    t.ok(2 < hours(six) < hours(four["what_if"]) and binds(six)[0] == "concurrency", "without a limit that of the stage binds", six)
    t.ok(seen["scale 0"]["what_if"]["end"]["p50_seconds"] is None and seen["budget 1"]["what_if"]["end"]["p50_seconds"] is None and [binds(seen[k]["what_if"])[0] for k in ("scale 0", "budget 1")] == ["concurrency", "budget"], "no parts, or no money, and it does not end", seen)
    r = a.drover("scale", f"{c}/download", "8", "--dry-run", "-o", "json")
    t.eq(json.loads(r.stdout)["what_if"]["text"], "stage=download,parts=8", "a limit of a stage")
    of = lambda: next(s["budget"] for s in now()["stages"] if s["name"] == "download")  # noqa: E731
    r = a.drover("budget", f"{c}/download", "0.5", "--dry-run", "-o", "json")
    t.ok(json.loads(r.stdout)["what_if"]["text"] == "stage=download,budget=0.5" and json.loads(r.stdout)["what_if"]["binding"] == "budget" and of()["limit_micro_usd"] == 850000000, "a budget of a stage is tried", r)
    r = a.drover("submit", "-", "-y", stdin=text.replace("850 USD", "800 USD, per_task: 40 USD"))
    t.ok(all(f"  change it there: drover budget {c}/download {x}\n" in r.stderr for x in ("800", "--per-task 40")), "a file with others names the commands", r.stderr)
    r = a.drover("budget", f"{c}/download", "800", "--per-task", "40", "-y")
    t.ok(r.returncode == 0 and f"{c}: stage download: budget 800.00 USD, 0.00 USD spent, each part at most 40.00 USD\n" in r.stdout and (of()["limit_micro_usd"], of()["per_task_micro_usd"], now()["budget"]["limit_micro_usd"]) == (800000000, 40000000, 900000000),
         "and changed, with that of its parts; its campaign's stays", r)
    forecast = lambda: a.get(f"/v1/campaigns/{c}/forecast")[1]["campaign"]  # noqa: E731
    a.sql(f"INSERT INTO money (level, ref_id, spent_musd) SELECT 'stage', id, 799600000 FROM stage WHERE campaign_id = {c[2:]}")
    t.ok(wait_for(lambda: forecast()["binding"] == "budget", 10), "the forecast knows what the stage has spent of it", forecast())
    r = a.drover("budget", f"{c}/download", "none", "--per-task", "none")
    t.ok(r.returncode == 2 and "add -y" in r.stderr and of()["limit_micro_usd"] == 800000000, "taking it off asks first", r)
    t.ok(a.drover("budget", f"{c}/download", "none", "--per-task", "none", "-y").returncode == 0 and [of()[k] for k in ("limit_micro_usd", "per_task_micro_usd")] == [None, None], "none takes both off", of())
    a.sql(f"UPDATE money SET spent_musd = 0 WHERE level = 'stage' AND ref_id IN (SELECT id FROM stage WHERE campaign_id = {c[2:]})")
    before = now()
    r = a.drover("scale", f"{c}/nothing", "8", "--dry-run")
    t.ok(r.returncode == 2 and "there is no nothing" in r.stderr and not r.stdout, "of one that is not there: 2", r)
    r = a.drover("budget", c, "1e3")
    t.ok(r.returncode == 2 and "no forecast" not in r.stderr and "budget.total: '1e3'" in r.stderr, "what is refused is refused for its reason alone", r)
    r = a.drover("scale", c, "4")
    t.ok(r.returncode == 2 and r.stdout.startswith("Now  ends in") and "add -y" in r.stderr and now() == before, "it is shown before it asks", r)
    r = a.drover("scale", c, "4", "-y")
    t.ok(r.returncode == 0 and re.search(r"^Then ends in (.*\n)*.* c-\d+: at most 4 parts at once", r.stdout, re.M) and now()["limits"]["parts"] == 4, "and before it is changed", r)
    r = a.drover("priority", c, "80", "-o", "json")
    t.ok(r.returncode == 0 and json.loads(r.stdout)["priority"] == 80 and now()["priority"] == 80, "priority sets it; -o json is the campaign", r)
    t.ok("priority 80; what is free goes to the highest first" in a.drover("priority", c, "80").stdout, "and says what it means")
    for bad in ("101", "-1", "high"):
        r = a.drover("priority", c, "--", bad) if bad[0] == "-" else a.drover("priority", c, bad)
        t.ok(r.returncode == 2 and "next: " in r.stderr and now()["priority"] == 80, f"priority {bad} is refused", r)
    a.sql(f"UPDATE campaign_run SET state = 'succeeded', ended_at = clock_timestamp() WHERE campaign_id = {c[2:]}")
    r = a.drover("priority", c, "70", "--dry-run")
    t.ok(r.returncode == 0 and "nothing is left" in r.stdout, "of one that has ended there is nothing to show", r)


def check_events(t, a):
    p = subprocess.Popen([DROVER, "events", "-o", "jsonl"], stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "DROVER_URL": f"http://127.0.0.1:{a.port}", "DROVER_TOKEN_FILE": a.token_file})
    wait_for(lambda: b"droverd_http_streams 1" in a.raw("GET", "/metrics")[1])
    a.sql("INSERT INTO event (campaign_id, kind, detail) VALUES (1, 'alert', '{\"text\":\"hello\"}'); NOTIFY drover_events")
    t.eq(json.loads(p.stdout.readline())["detail"]["text"], "hello", "events prints them as they come")
    p.send_signal(signal.SIGINT)
    t.eq(p.wait(10), 130, "until it is interrupted")


def check_repeat(t, a):
    a.kill()
    port = a.port
    p = subprocess.Popen([DROVER, "cancel", "c-3", "-y", "-o", "name"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env={**os.environ, "DROVER_URL": f"http://127.0.0.1:{port}", "DROVER_TOKEN_FILE": a.token_file})
    time.sleep(1)  # that it goes on waiting is no condition to wait for
    t.ok(p.poll() is None, "a keyed request waits for a server that is away")
    p.kill()
    p.wait()
    a.start()


def run(t, pg):
    a = Api(pg)
    check_help(t, a)
    check_away(t, a)
    check_submit(t, a)
    check_read(t, a)
    check_forms(t, a)
    check_act(t, a)
    check_watch(t, a)
    check_archive(t, a)
    check_audit(t, a)
    check_limits(t, a)
    check_events(t, a)
    check_repeat(t, a)
    a.close()


if __name__ == "__main__":
    main(run)
