#!/usr/bin/python3
"""Aim: every verb that spends or destroys asks; without a terminal and without -y it refuses, whatever -o is; a no changes nothing. Method: the real drover
with each of them and each form, against the API alone over a world of every kind of row; nothing in the database may differ. A verb of
commands.def that is in neither table below fails: whoever adds one decides. EVERY=7: each verb in one form, and every seventh empty argument.
"""
import os
import re
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path[:0] = [TESTS, os.path.join(TESTS, "openapi")]
from kit import TOP
from kit.api import DROVER, Api, main, spec
from kit.terminal import on_terminal
from openapi import world

# What takes a campaign, with the words that follow it.
TAKERS = {verb: () for verb, args in re.findall(r'^X\("([a-z]+)", cmd_\w+, "([^"]*)"', open(f"{TOP}/orchestrator/cli/commands.def", encoding="utf-8").read(), re.M) if "CAMPAIGN" in args}
TAKERS |= {"scale": ("1",), "priority": ("70",), "deadline": ("none",), "budget": ("none",), "compare": ("c-1/download",)}
EVERY = int(os.environ.get("EVERY", "1"))
FORMS = ("table", "wide", "csv", "json", "yaml", "jsonl", "name")
COMMANDS = dict(re.findall(r'^X\("([a-z]+)", cmd_\w+, "[^"]*",\s+"([^"]*)"', open(f"{TOP}/orchestrator/cli/commands.def", encoding="utf-8").read(), re.M))
# What never asks. It reads; or it writes to this machine alone; or what it changes neither stops, deletes nor pays: a rank, a date, the end
# of starting; or, as api, it is the request that somebody wrote out, method and path.
NEVER = """init validate plan why watch ls get parts failures cost bill metrics scaling compare prices logs request events ops audit parked doctor open version help completion
    login context drain priority deadline api""".split()
# The longest are last: cancel and archive leave nothing to try the others with.
ASKS = ("submit FILE", "retry c-1 --cause disk_full", "skip c-1/2", "hold c-1 --parts 6-7", "release c-1", "pause c-1", "resume c-1", "budget c-1 5000", "budget c-1 none", "budget c-1 4000 --resume", "budget c-1/download 5000", "budget c-1/download --per-task none",
        "scale c-1 1000", "scale c-1/download 1000", "override c-2/download", "unpark c-2", "pools end POOL", "quotas request ml.c5.xlarge --value 24", "op cancel op-1 --timeout 1s",
        "filesystems delete d-1-volume-0-a1-00", "endpoints extend d-1-serve-0-a1-00 --ttl 9h", "endpoints delete d-1-serve-0-a2-00", "strays stop d-9-lost-1-a1", "token revoke TOKEN",
        "webhook rm w-5", "archive c-3", "cancel c-1")
ELSEWHERE = ("smoke",)  # it needs an account: cli_smoke.py
AWAY = ("quotas request",)  # here nobody asks AWS; and no leader carries out an undo, for which op cancel waits


def all_rows(a):
    """Every row of the database but what a mere request writes."""
    tables = a.sql("""SELECT string_agg(oid::regclass::text, ' ') FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
        AND relname NOT IN ('session', 'idempotency_key')""").split()
    one = "SELECT '{0}' AS t, md5(coalesce(string_agg((to_jsonb(x) - 'used_at')::text, '|' ORDER BY (to_jsonb(x) - 'used_at')::text), '')) AS sum FROM {0} x"
    return dict(line.split("|") for line in a.sql(" UNION ALL ".join(one.format(t) for t in tables)).splitlines())


def prepare(t, a):
    _, known, of, _ = world(a)
    a.sql("""UPDATE stage_run SET active = 2, held = 1, waiting = waiting - 3 WHERE campaign_id = 1;
        UPDATE task_run SET state = 1 WHERE campaign_id = 1 AND seq IN (0, 1); UPDATE task_run SET state = 2 WHERE campaign_id = 1 AND seq = 9""")
    for words in ("budget c-1 100", "budget c-1/download 100 --per-task 40", "scale c-1 3", "scale c-1/download 3"):
        r = a.drover(*words.split(), "-y")
        assert r.returncode == 0, r
    path = a.dir + "/again.yaml"
    with open(path, "w", encoding="utf-8") as f:
        f.write(spec("asked"))
    words = {"FILE": path, "TOKEN": known["token"][0], "POOL": of["pool_end"]["job"][0]}
    verbs = {line.split()[0] for line in ASKS} | set(ELSEWHERE)
    t.eq(sorted(v for v, options in COMMANDS.items() if "yes" in options.split()), sorted(verbs), "whatever has -y is asked here")
    t.eq(sorted(COMMANDS), sorted(verbs | set(NEVER)), "whatever has none is known as one that never asks")
    return [[words.get(w, w) for w in line.split()] for line in ASKS]


def check_refused(t, a, rows):
    for i, row in enumerate(rows):
        before, said = all_rows(a), {o: a.drover(*row, "-o", o, stdin="y\n") for o in FORMS[i % EVERY::EVERY]}
        wrong = {o: (r.returncode, r.stdout, r.stderr) for o, r in said.items()
                 if r.returncode != 2 or not ("  next: add -y to " in r.stderr or o == "csv" and "prints no list for CSV" in r.stderr)}
        after = all_rows(a)
        t.ok(not wrong, f"{' '.join(row[-4:])}: refused without -y, whatever -o is and whatever stands on stdin", wrong)
        t.eq({x for x in after if after[x] != before[x]}, set(), "... and nothing is changed")


def check_empty(t, a):
    """An argument that is there and empty, as of a variable that is not set, never means the newest campaign, nor an empty stage or part all of them."""
    t.ok({"cancel", "archive", "retry", "skip", "pause", "drain", "watch", "open"} <= set(TAKERS), "the verbs that take a campaign are known", TAKERS)
    rows = [[verb, empty, *words, *(["-y"] if "yes" in COMMANDS[verb].split() else []), *(["--timeout", "1s"] if "timeout" in COMMANDS[verb].split() else [])]
            for verb, words in TAKERS.items() for empty in ("", "/", "//0") if (verb, empty) != ("plan", "/")]  # which is a folder
    rows += [[verb, "--campaign", ""] for verb in ("ops", "audit")] + [["compare", "c-1/download", ""]]
    tails = [[verb, ref, *words, *(["-y"] if "yes" in COMMANDS[verb].split() else []), *(["--timeout", "1s"] if "timeout" in COMMANDS[verb].split() else [])]
             for verb, words in TAKERS.items() for ref in ("c-1/", "c-1//", "c-1//3", "c-1/download/", "c-1/download//1", "c-1/3/")]
    tails += [["compare", "c-1/download", "c-1/download/"], ["pools", "c-1/"], ["ops", "--campaign", "c-1/"]]
    rows, tails = rows[::EVERY], tails[::EVERY]
    before = all_rows(a)
    wrong = [(row, r.returncode, r.stdout, r.stderr) for row in rows if (r := a.drover(*row)).returncode != 2 or r.stdout or "the campaign is empty, which never means the newest" not in r.stderr
             or "  next: name it, or leave the argument out" not in r.stderr]
    t.ok(not wrong, f"{len(rows)} calls with an empty campaign: usage, 2", wrong)
    wrong = [(row, r.returncode, r.stdout, r.stderr) for row in tails if (r := a.drover(*row)).returncode != 2 or r.stdout or "a stage or a part is empty, which never means all" not in r.stderr]
    t.ok(not wrong, f"{len(tails)} calls with an empty stage or part: usage, 2", wrong[:5])
    after = all_rows(a)
    t.eq({x for x in after if after[x] != before[x]}, set(), "... and nothing is changed")


def check_terminal(t, a, rows):
    env = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{a.port}", "DROVER_TOKEN_FILE": a.token_file, "LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": "80"}
    for i, row in enumerate(rows):
        before = all_rows(a)
        out, status = on_terminal([DROVER, *row, "-o", ("table", "json", "name")[i % 3]], env, keys=b"n\n")
        after = all_rows(a)
        which = re.escape(row[1].split("/")[0]) if re.match(r"c-\d", row[1]) else ""
        t.ok(status == 2 and re.search(r"[?.] \[y/N\] n", out) and "-y" not in out.split("[y/N]")[1] and re.search(rf"{which}\b.*\[y/N\] n", out), f"{' '.join(row[-4:])}: a terminal is asked, and no is no", (status, out))
        t.eq({x for x in after if after[x] != before[x]}, set(), "... and nothing is changed")


def check_told(t, a, rows):
    for row in rows:
        before, r = all_rows(a), a.drover(*row, "-y")
        after = all_rows(a)
        done = {x for x in after if after[x] != before[x]}
        t.ok(done and (r.returncode == 0 or row[0] == "op") or " ".join(row).startswith(AWAY) and "add -y" not in r.stderr, f"{' '.join(row[-4:])}: with -y it is done", (r, done))


def run(t, pg):
    a = Api(pg)
    rows = prepare(t, a)
    check_empty(t, a)
    check_refused(t, a, rows)
    check_terminal(t, a, rows)
    check_told(t, a, rows)
    a.close()


if __name__ == "__main__":
    main(run)
