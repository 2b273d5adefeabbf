#!/usr/bin/python3
"""What programs read of the command line. Aim: YAML is read back the same by PyYAML and libyaml, CSV by Python's
csv, no cell is a formula, no terminal byte gets through, every list verb has every format, an answer that
is begun is a whole document, every error code has a next step that runs, completion offers what the tables hold, a token goes to its
own server only, and `watch` draws one frame on a
terminal that changes its size, and each command begins at once. Method: the real drover against a server of this test that answers what it
is told to.
"""
import csv
import fcntl
import http.server
import io
import json
import os
import pty
import random
import re
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import BIN, TOP, Tap, patience, wait_for
from kit.terminal import on_terminal

DROVER = BIN + "/drover"
CLI = f"{TOP}/orchestrator/cli"
START_MS, STARTS = 10, 30
NOTHING_MS = 0.5  # of CPU of /bin/true on a quiet machine
# Text that a reader of YAML or CSV, a spreadsheet or a terminal could take for something else.
HOSTILE = ["=1+1", "+1", "-2+3", "@SUM(A1)", " =1", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠1", "=cmd|' /C calc'!A0", '"', '""', 'a,"b"', "a;b", "a\nb", "a\r\nb", "\x1b[31m", "\x7f",
           "\u0085", "\u009b31m", "\u2028", "\u2029", "a \u2028 b", "a \u2029 b", "\ufeffx", "\ufffe", "\uffff", "😀", "\u202e", "", " ", " x", "x ", "~", "null", "Null", "true", "yes", "NO", "y", "n", "on", "1", "1.5", "0x1f",
           "0o7", "1e3", "1_000", "12:30:45", "2026-01-02", "2026-01-02T03:04:05Z", ".inf", ".nan", "-", "- a", "? a", ": a", "a: b", "a #b", "#a", "&a", "*a", "!a", "|", ">", "%a", "`a", "[a", "{a", "]", "a]",
           "---", "...", "<<", "=", "'", "a'b", "\\", "\\n", "x" * 300, "é", "ü" * 500, "日本"]


class Server:
    """Answers GET of a path with what `answers` holds; anything else with 404."""

    def __init__(self):
        self.answers, self.seen = {}, lambda path, token: None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.seen(self.path, self.headers.get("Authorization"))
                status, body = outer.answers.get(self.path, outer.answers.get(self.path.split("?")[0], (404, {"code": "not_found", "detail": "nothing here"})))
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_PATCH = do_DELETE = do_GET

            def log_message(self, *args):
                pass

        self.s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.env = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{self.s.server_address[1]}", "DROVER_TOKEN_FILE": "/dev/null", "LC_ALL": "C.UTF-8", "TERM": "xterm"}
        threading.Thread(target=self.s.serve_forever, daemon=True).start()

    def drover(self, *args, stdin=None):
        return subprocess.run([DROVER, *args], input=stdin, capture_output=True, env=self.env, timeout=patience(60), check=False)


def value(r, depth):
    kind = r.randrange(9 if depth else 6)
    if kind == 0:
        return r.choice(HOSTILE)
    if kind == 1:
        return "".join(chr(r.choice((r.randrange(1, 0x100), r.randrange(0x20, 0xd800), r.randrange(0xe000, 0x110000)))) for _ in range(r.randrange(8)))
    if kind == 2:
        return r.choice((0, -1, 2**62, r.randrange(-10**6, 10**6)))
    if kind == 3:
        return r.choice((0.5, -1e20, 1e300, 1.5e-7, 1e-300, 3.0, r.random()))
    if kind == 4:
        return r.choice((None, True, False))
    if kind == 5:
        return r.choice(({}, []))
    if kind < 8:
        return {value_key(r): value(r, depth - 1) for _ in range(r.randrange(5))}
    return [value(r, depth - 1) for _ in range(r.randrange(5))]


def value_key(r):
    return r.choice([h for h in HOSTILE if len(h) < 100] + ["a", "b_c", "d.e"])


def started(argv, env):
    """Milliseconds of CPU time from fork to exit, and of all time."""
    began = time.monotonic()
    pid = os.posix_spawn(argv[0], argv, env, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, used = os.wait4(pid, 0)
    return (used.ru_utime + used.ru_stime) * 1000, (time.monotonic() - began) * 1000, status


def check_start(t, s):
    """CPU time, since all time depends on what else runs. Where caches are shared that grows, too: so does that of a program which
    does nothing, started in turn, and the bound with it."""
    for args in (["--version"], ["help"], ["help", "retry"], ["completion", "bash"]):
        mine, beside = zip(*((started([DROVER, *args], s.env), started(["/bin/true"], s.env)) for _ in range(STARTS)))
        cpu, wall, nothing = (statistics.median(x) for x in ([m[0] for m in mine], [m[1] for m in mine], [b[0] for b in beside]))
        bound = START_MS * max(1, nothing / NOTHING_MS)
        print(f"# drover {' '.join(args)}: {cpu:.1f} ms of CPU, {wall:.1f} ms in all, at the median; /bin/true {nothing:.2f} ms of CPU", flush=True)
        t.ok(cpu <= bound and not any(m[2] for m in mine), f"drover {' '.join(args)}: at the median of {STARTS} at most {START_MS} ms of CPU of a quiet machine", (bound, mine))


def check_yaml(t, s):
    r = random.Random(7)
    docs = [value(r, 4) for _ in range(400)] + [{"k": x} for x in HOSTILE] + [{x: [x, [x]]} for x in HOSTILE if len(x) < 100]
    s.answers["/y"] = (200, docs)
    text = s.drover("api", "GET", "/y", "-o", "yaml").stdout.decode()
    for name, loader in (("libyaml", yaml.CSafeLoader), ("PyYAML", yaml.SafeLoader)):
        got = yaml.load(text, loader)
        bad = [(a, b) for a, b in zip(docs, got) if a != b or repr(a) != repr(b)]
        t.ok(len(got) == len(docs) and not bad, f"-o yaml of {len(docs)} documents is read the same by {name}", bad[:3])
    for x in ({}, [], None, 5, "yes", [[1]], [{"a": [{}]}]):
        s.answers["/one"] = (200, x)
        out = s.drover("api", "GET", "/one", "-o", "yaml").stdout
        t.ok(out and yaml.safe_load(out) == x, f"-o yaml of {x!r}", out)


def lists():
    """A row of each list verb: arguments, path, key of the rows, a row whose texts are {x}."""
    x = "{x}"
    return ((("ls",), "/v1/campaigns", "campaigns", {"id": x, "name": x, "state": x, "project": x, "reason": x, "created_at": "2026-01-02T03:04:05.678Z", "parts": {"total": 3, "done": 1, "skipped": 1},
             "budget": {"spent_micro_usd": 1234567, "reserved_micro_usd": -1, "limit_micro_usd": None}}),
            (("parts", "c-1"), "/v1/campaigns/c-1/parts", "parts", {"id": x, "stage": x, "phase": x, "cause": x, "reason": x, "uri": x, "attempts": 2, "cost_micro_usd": 5}),
            (("failures", "c-1"), "/v1/campaigns/c-1/failures", "groups", {"cause": x, "message": x, "remedy": x, "parts": 1000, "first_at": "2026-01-02T03:04:05Z", "lost_micro_usd": 1, "sample": list(range(0, 40, 2))}),
            (("cost", "c-1"), "/v1/campaigns/c-1/cost", "by_stage", {"stage": x, "seconds": 7, "micro_usd": 12_000_001}),
            (("cost", "c-1", "--by", "cause"), "/v1/campaigns/c-1/cost", "by_cause", {"cause": x, "seconds": 7, "micro_usd": 1}),
            (("cost", "c-1", "--by", "phase"), "/v1/campaigns/c-1/cost", "by_phase", {"phase": x, "elapsed_seconds": 90.5, "seconds": 7, "micro_usd": 1}),
            (("cost", "c-1", "--by", "type"), "/v1/campaigns/c-1/cost", "by_type", {"instance_type": x, "market": x, "attempts": 2, "seconds": 7, "micro_usd": 1, "idle_micro_usd": 12_000_001}),
            (("bill",), "/v1/bill", "groups", {"name": x, "micro_usd": 12, "seconds": 7, "campaigns_total": 3, "campaigns": [{"campaign": x, "name": x, "project": x, "micro_usd": 5, "seconds": 7}]}),
            (("metrics", "c-1"), "/v1/campaigns/c-1/metrics", "series", {"stage": x, "name": x, "seq": 3, "last": 0.1, "min": -1e-7, "final": None, "note": None}),
            (("metrics", "c-1/s/0"), "/v1/campaigns/c-1/parts/0/metrics", "series", {"name": x, "points": 1, "chart": [{"step": 1, "seconds": 2.5, "mean": -0.5, "min": 0, "max": 1}]}),
            (("scaling", "c-1"), "/v1/campaigns/c-1/scaling", "rows", {"stage": x, "instance_type": x, "instances": 2, "epoch_seconds": 88.012, "epoch_micro_usd": 5, "speedup": 1.86, "efficiency": 0.931, "in_time": True}),
            (("compare", "c-1/a", "c-1/b"), "/v1/campaigns/c-1/compare", "settings", {"key": x, "a": x, "b": x}),
            (("ls", "--billable"), "/v1/billable", "billable", {"kind": x, "campaign": x, "stage": x, "name": x, "instance_type": x, "market": x, "count": 1, "instances": 2, "since": "2026-01-02T03:04:05Z", "until": None, "micro_usd_per_hour": 408000}),
            (("pools",), "/v1/pools", "pools", {"job_name": x, "state": x, "instances": 2, "instance_type": x, "reused_by": x, "stage": x}),
            (("quotas",), "/v1/quotas", "quotas", {"instance_type": x, "market": x, "limit": None, "held": 3, "price_micro_usd_per_hour": 204000}),
            (("prices",), "/v1/prices", "prices", {"instance_type": x, "use": x, "micro_usd": 204000, "per": "hour", "list_micro_usd": None, "source": x, "read_at": "2026-01-02T03:04:05Z"}),
            (("ops",), "/v1/operations", "operations", {"id": x, "campaign": x, "kind": x, "state": x, "created_by": x}),
            (("audit",), "/v1/audit", "audit", {"id": x, "at": "2026-01-02T03:04:05Z", "who": x, "name": x, "role": x, "action": x, "subject": x, "campaign": x, "before": {"k": x}, "detail": {"k": x}, "request_id": x}),
            (("parked",), "/v1/parked", "parked", {"kind": x, "id": x, "stage": x, "reason": x, "what_to_do": x}),
            (("endpoints",), "/v1/endpoints", "endpoints", {"name": x, "state": x, "reason": x, "instance_type": x, "instances": 2, "stage": x}),
            (("strays",), "/v1/strays", "strays", {"job_name": x, "kind": x, "why": x, "status": x, "instance_type": x}),
            (("filesystems",), "/v1/filesystems", "filesystems", {"name": x, "aws_id": x, "campaign": "c-1", "stage": x, "state": x, "reason": x, "deployment": x}),
            (("webhook",), "/v1/webhooks", "webhooks", {"id": x, "name": x, "url": x, "project": x, "format": "json", "on": [x]}),
            (("token",), "/v1/tokens", "tokens", {"id": x, "name": x, "role": x, "state": x, "projects": [x], "created_by": x}))


def filled(row, text):
    return json.loads(json.dumps(row).replace('"{x}"', json.dumps(text)))


def is_formula(cell):
    return cell.lstrip(" \t\r\n")[:1] in tuple("=+-@＝＋－＠") and not re.fullmatch(r"-?\d+(\.\d+)?(e[-+]\d+)?", cell)


def check_lists(t, s):
    verbs = re.findall(r'^X\("([a-z]+)", cmd_[a-z]+, "[^"]*",\s+"[^"]*\bcolumns\b', open(f"{CLI}/commands.def").read(), re.M)
    t.eq(sorted(set(verbs) - {"context"}), sorted({a[0][0] for a in lists()}), "every verb with --columns is tried here")
    for args, path, key, row in lists():
        name = "drover " + " ".join(args)
        s.answers = {path: (200, {key: [filled(row, x) for x in HOSTILE], "next_page_token": None})}
        r = s.drover(*args, "-o", "csv")
        got = list(csv.reader(io.StringIO(r.stdout.decode(), newline=""), strict=True))
        t.ok(r.returncode == 0 and len({len(x) for x in got}) == 1 and len(got) > len(HOSTILE) and r.stdout.endswith(b"\r\n") and b"\n" not in r.stdout.replace(b"\r\n", b""), f"{name} -o csv: one table, as RFC 4180 says",
             (r.returncode, r.stderr, {len(x) for x in got}, len(got)))
        bad = [c for x in got for c in x if is_formula(c) or re.search("[\x00-\x1f\x7f-\x9f]", c)]
        t.ok(not bad, "no cell is a formula or has a control character", bad[:5])
        t.ok(any("x" * 300 in c for x in got for c in x) and any("ü" * 500 in c for x in got for c in x), "no cell is cut")
        heads = got[0]
        pick = [heads[-1], heads[0]]
        r = s.drover(*args, "-o", "csv", "--columns", ",".join(pick).lower().replace(" ", "_"))
        t.eq(list(csv.reader(io.StringIO(r.stdout.decode(), newline="")))[:2], [pick, [got[1][-1], got[1][0]]], f"{name} --columns {','.join(pick)}")
        for o, ok in (("json", lambda b: key in json.loads(b)), ("yaml", lambda b: key in yaml.safe_load(b)), ("jsonl", lambda b: [json.loads(x) for x in b.splitlines()]),
                      ("wide", lambda b: b"\x1b" not in b and (heads[-1].encode() in b or args[0] in ("cost", "compare"))), ("table", lambda b: b"\x1b" not in b), ("name", lambda b: len(b.splitlines()) >= len(HOSTILE))):
            r = s.drover(*args, "-o", o)
            t.ok(r.returncode == 0 and ok(r.stdout), f"{name} -o {o}", (r.returncode, r.stderr, r.stdout[-300:]))
        for o in ("csv", "table"):
            r = s.drover(*args, "-o", o, "--columns", "nothing")
            t.ok(r.returncode == 2 and b"there is no column 'nothing'" in r.stderr and heads[0].encode() in r.stderr and not r.stdout and max(map(len, r.stderr.splitlines())) <= 80, f"{name} -o {o}, an unknown column: 2, with those there are", (r.returncode, r.stderr, r.stdout))
    s.answers = {"/v1/campaigns": (200, {"campaigns": []})}
    for args in (("ls", "--columns", ""), ("ls", "--columns", ",".join(["id"] * 21)), ("ls", "--columns", "id", "-o", "json"), ("get", "c-1", "-o", "csv"), ("-o", "json"), ("ls", "-yq"), ("ls", "-n")):
        r = s.drover(*args)
        t.ok(r.returncode == 2 and b"next: " in r.stderr, f"drover {' '.join(args)[:60]}: 2, with what to do", (r.returncode, r.stderr))


def check_sort(t, s):
    """Rows by a column, up and down: figures as figures, what has no value last, ties as they came."""
    path, key, row = next(a[1:4] for a in lists() if a[0] == ("pools",))
    values = [("b", 9000000), ("a", None), ("d", 10000000), ("c", 9000000), ("e", 800000)]
    s.answers = {path: (200, {key: [{**filled(row, "x"), "job_name": n, "idle_micro_usd": v} for n, v in values], "sum": {}})}

    def names(*args):
        return "".join(s.drover("pools", *args, "-o", "name").stdout.decode().split())

    t.eq([names(), names("--sort", "usd"), names("--sort", "-usd"), names("--sort=-JOB"), names("--sort", "job")], ["badce", "ebcda", "dbcea", "edcba", "abcde"], "drover pools --sort, by figures and texts, up and down")
    rows = list(csv.reader(io.StringIO(s.drover("pools", "-o", "csv", "--sort", "usd", "--columns", "job,usd").stdout.decode())))
    t.eq([x[0] for x in rows[1:]], list("ebcda"), "in CSV, with chosen columns")
    table = s.drover("pools", "--sort", "-usd", "--columns", "job").stdout.decode().split()
    t.eq([x for x in table if len(x) == 1][:5], list("dbcea"), "and in tables, by a column that is not shown")
    for args, word in ((("pools", "--sort", "nothing"), b"there is no column 'nothing'"), (("pools", "--sort", "-"), b"there is no column"), (("pools", "--sort", "usd", "-o", "json"), b"--sort"), (("get", "c-1", "--sort", "usd"), b"--sort")):
        r = s.drover(*args)
        t.ok(r.returncode == 2 and word in r.stderr and b"next: " in r.stderr, f"drover {' '.join(args)}: 2, with what to do", (r.returncode, r.stderr))


def check_narrow(t, s):
    """Names are never cut, and with the longest there are a terminal of 80 columns is wide enough: what has no room is left out."""
    name, short = "drover-1234567-a-stage-with-a-long-name-0-a12-".ljust(63, "0"), "drover-7-deploy-0-a1-0a1b2c3d"
    rows = {a[0]: (a[1], a[2], filled(a[3], "deleting")) for a in lists()}
    for verb, key, spare in (("endpoints", "name", ["INSTANCES", "USD/H", "USD", "DELETED AFTER"]), ("pools", "job_name", ["INSTANCES", "IDLE S", "USD"]), ("strays", "job_name", ["KIND", "WHY", "INSTANCES", "USD"])):
        path, of, row = rows[(verb,)]
        for one in (name, short):
            s.answers = {path: (200, {of: [{**row, key: one, "instances": 24, "instance_type": "ml.p4de.24xlarge", "delete_after": "2026-01-02T03:04:05Z", "cost_micro_usd": 12345678901, "micro_usd_per_hour": 3600000}], "sum": {}})}
            seen = {}
            for columns in (80, 160):
                out, status = on_terminal([DROVER, verb], {k: v for k, v in s.env.items() if k != "COLUMNS"}, columns)
                lines = [re.sub(r"\x1b\[[0-9;]*m", "", x) for x in out.replace("\r", "").splitlines()]
                seen[columns] = [h for h in spare if re.search(rf"(^|  ){h}(  |$)", lines[0])]
                t.ok(status == 0 and max(map(len, lines)) <= columns and one in lines[1], f"{verb}, a name of {len(one)}: within {columns} columns", lines)
            t.ok(seen[160] == spare and len(seen[80]) == (0 if one == name else len(spare) - (2 if verb == "endpoints" else 1)), f"{verb}: 160 columns show all, 80 what fits", seen)
        out = s.drover(verb).stdout.decode()
        t.ok(all(h in out for h in spare), f"{verb} in a pipe shows all", out)


def check_figures(t, s):
    """CSV has figures as they are; tables round them."""
    rows = {a[0]: (a[1], a[2], filled(a[3], "z")) for a in lists()}
    for args, column, csv_value, shown in (
            (("ls",), "USD", "1.234567", "1.23"), (("ls",), "BUDGET", "", "-"), (("ls",), "RESERVED", "-0.000001", "0.0000"), (("ls",), "SUBMITTED", "2026-01-02T03:04:05.678Z", "2026-01-02 03:04:05"), (("ls",), "DONE", "2", "1"), (("ls",), "SKIP", "1", "1"), (("ls",), "STATE", "z", "· z"),
            (("metrics", "c-1"), "MIN", "-1e-07", "-1e-07"), (("scaling", "c-1"), "EFFICIENCY", "0.931", "93.1 %"), (("scaling", "c-1"), "RUN", "88.012", "1 m 28 s"), (("quotas",), "QUOTA", "", "-"),
            (("cost", "c-1"), "USD", "12.000001", "12.00"), (("failures", "c-1"), "PART NUMBERS", "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,...", "0,2,4,6,8,10,...")):
        s.answers = {rows[args][0]: (200, {rows[args][1]: [rows[args][2]]})}
        got = list(csv.reader(io.StringIO(s.drover(*args, "-o", "csv", "--columns", column).stdout.decode(), newline="")))
        t.eq(got, [[column], [csv_value]] if csv_value else [[column], []], f"{' '.join(args)}: {column} in CSV")
        out = s.drover(*args, "--columns", column).stdout.decode()
        t.ok(any(x.strip() == shown for x in out.splitlines()), f"{' '.join(args)}: {column} in a table", out)
    s.answers = {rows[("ls",)][0]: (200, {rows[("ls",)][1]: [rows[("ls",)][2]]})}
    got = list(csv.reader(io.StringIO(s.drover("ls", "-o", "csv").stdout.decode(), newline="")))
    t.eq((got[0][:7], got[1][2:4], got[0][-1]), (["ID", "STATE", "PARTS", "DONE", "RUN", "FAIL", "USD"], ["3", "2"], "SKIP"), "ls -o csv keeps the place and the meaning of its columns; a new one is the last")


def check_bill(t, s):
    """The rows of a bill sum up to it, also when a group has more campaigns than the answer names, and money of no campaign."""
    dear = [{"campaign": f"c-{i}", "name": f"n{i}", "project": "laion", "micro_usd": 2_000_000 - i, "seconds": 10} for i in range(50)]
    groups = [{"name": "laion", "micro_usd": 104_000_000, "seconds": 570, "campaigns_total": 120, "campaigns": dear}, {"name": None, "micro_usd": 7, "seconds": 1, "campaigns_total": 0, "campaigns": []},
              {"name": "small", "micro_usd": 5, "seconds": 1, "campaigns_total": 1, "campaigns": [{"campaign": "c-99", "name": "s", "project": "small", "micro_usd": 5, "seconds": 1}]}]
    s.answers = {"/v1/bill": (200, {"month": "2026-11", "micro_usd": 104_000_012, "groups": groups})}
    rows = list(csv.DictReader(io.StringIO(s.drover("bill", "2026-11", "-o", "csv").stdout.decode())))
    t.eq((len(rows), sum(round(float(x["USD"]) * 1e6) for x in rows), sum(int(x["SECONDS"]) for x in rows)), (53, 104_000_012, 572), "bill -o csv: its rows sum up to the bill")
    t.eq([(x["GROUP"], x["CAMPAIGN"], x["NAME"]) for x in (rows[50], rows[51], rows[52])], [("laion", "", "70 cheaper ones"), ("", "", "jobs of no known campaign"), ("small", "c-99", "s")], "what the answer does not name has a row for each group")
    t.eq(s.drover("bill", "-o", "name").stdout.decode().split(), [f"c-{i}" for i in range(50)] + ["c-99"], "bill -o name: the campaigns alone")
    out = s.drover("bill").stdout.decode()
    t.ok(out.endswith("2026-11: 104.00 USD in all; list prices, not the invoice\n"), "and the sum is below the table", out[-200:])


def check_failures(t, s):
    """1,000 parts of a cause, 200 groups: a screen of 80 columns stays readable."""
    group = {"cause": "disk_full", "message": "No space left on device", "remedy": "a larger volume", "parts": 1000, "first_at": "2026-01-02T03:04:05Z", "lost_micro_usd": 1, "sample": list(range(100, 120))}
    s.answers = {"/v1/campaigns/c-1/failures": (200, {"parts": 5001, "groups": [group, {**group, "sample": list(range(0, 60, 3))}] + [{**group, "parts": 1, "message": f"x {i}"} for i in range(3)]})}
    r = s.drover("failures", "c-1")
    out = r.stdout.decode()
    t.ok("100-119,..." in out and "0,3,6,9,12,..." in out and max(len(x) for x in out.splitlines()) <= 80, "failures: ranges of part numbers, 80 columns", out)
    t.eq(out.count("a larger volume"), 1, "failures: a remedy once for each cause")
    t.ok(b"2998 more parts in smaller groups; next: drover parts c-1 --state failed" in r.stderr, "failures: what the answer leaves out is said", r.stderr)


def check_begun(t, s):
    """submit --wait: the id comes before the end, and the whole is one document."""
    ended = {"id": "c-4", "name": "x", "state": "succeeded", "parts": {"failed": 0}}
    for o, first, load in (("json", b'{\n  "id": "c-4",\n', json.loads), ("yaml", b"id: c-4\n", yaml.safe_load), ("name", b"c-4\n", lambda b: ended if b == b"c-4\n" else b), ("jsonl", b'{"id":"c-4"', lambda b: json.loads(b.splitlines()[-1]))):
        s.answers = {"/v1/campaigns": (201, {"id": "c-4", "state": "planned"}), "/v1/campaigns/c-4": (200, {**ended, "state": "running"})}
        p = subprocess.Popen([DROVER, "submit", "-", "-y", "--wait", "-o", o], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=s.env)
        p.stdin.write(b"version: 1\n")
        p.stdin.close()
        got = b""
        while len(got) < len(first):
            piece = os.read(p.stdout.fileno(), 100000)
            assert piece, (o, got, p.stderr.read())
            got += piece
        t.ok(got.startswith(first) and p.poll() is None, f"submit --wait -o {o}: the id before it waits", got)
        s.answers["/v1/campaigns/c-4"] = (200, ended)
        got += p.stdout.read()
        t.ok(p.wait(patience(20)) == 0 and load(got) == ended, "and one document in all", got)
    for answer, status in (((200, {**ended, "state": "running"}), 8), ((404, {"code": "not_found", "detail": "gone"}), 3)):
        s.answers["/v1/campaigns/c-4"] = answer
        r = s.drover("submit", "-", "-y", "--wait", "-o", "json", "--timeout", "0s", stdin=b"version: 1\n")
        t.ok(r.returncode == status and json.loads(r.stdout)["id"] == "c-4", f"a whole document when it ends early: {status}", (r.returncode, r.stdout, r.stderr))


def check_next(t, s):
    """Every error code: its exit status, and a next step whose command runs."""
    codes = re.findall(r'^X\(([A-Z_]+), "([a-z_]+)", (\d+), \w+, (\d+)\)', open(f"{TOP}/include/common/err_codes.def").read(), re.M)
    verbs = set(re.findall(r'^X\("([a-z]+)", cmd_', open(f"{CLI}/commands.def").read(), re.M))
    steps, seen = dict(re.findall(r'^X\(([A-Z_]+), "(.*)"\)', open(f"{CLI}/next_step.def").read(), re.M)), set()
    t.eq(sorted(steps), sorted(c[0] for c in codes), "next_step.def has a row for each code")
    for code, name, http_status, exit_status in codes[1:]:
        s.answers = {"/v1/tokens/x": (int(http_status), {"code": name, "detail": "no", "request_id": "r-1"})}
        r = s.drover("token", "expire", "x", "--expires", "1h")  # which has no key, so that it is not repeated
        step = re.search(r"^  next: (.*)$", r.stderr.decode(), re.M)
        t.ok(r.returncode == int(exit_status) and step and step.group(1) == steps[code].replace("%s", "token"), f"{name}: {exit_status}, with its next step", (r.returncode, r.stderr))
        t.ok(len(step.group(0)) <= 80 and "drover " in step.group(1) or code == "UNAUTHENTICATED", f"{name}: names a command", step.group(0))
        seen |= set(re.findall(r"drover ((?:help )?[a-z]+(?: --[a-z]+)*)", step.group(1)))
    for args, verb in ((("pools", "end", "x", "-y"), "pools"), (("ops", "op-9"), "ops"), (("get", "c-9"), "ls"), (("parts", "c-9"), "ls")):
        s.answers = {}
        r = s.drover(*args)
        t.ok(r.returncode == 3 and f"next: drover {verb} lists them" in r.stderr.decode(), f"{args[0]} that is not found: drover {verb} lists them", r.stderr)
    for text in sorted(x for x in seen if x.split()[-1] != "and"):
        words = text.split()
        shown = s.drover("help", words[1] if words[0] == "help" else words[0])
        t.ok(shown.returncode == 0 and (words[0] in verbs) and all(w.encode() in shown.stdout for w in words if w.startswith("--")), f"drover {text} is a command", shown.stderr)


class Screen:
    """A terminal that wraps what is too long for it, as far as `watch` uses one: rows from hard lines."""

    def __init__(self, columns):
        self.columns, self.lines, self.text, self.whole = columns, [], "", True

    def rows(self, line):
        return max(-(-len(line) // self.columns), 1)

    def feed(self, text):
        for piece in re.findall(r"\x1b\[\d*[A-Z]|\r|\n|[^\x1b\r\n]+", text.replace("\r\n", "\n")):
            if piece == "\n":
                self.lines.append(self.text)
                self.text = ""
            elif piece == "\r":
                self.text = ""
            elif piece.endswith("A") and piece[0] == "\x1b":
                up = int(piece[2:-1])
                while up > 0 and self.lines:
                    up -= self.rows(self.lines.pop())
                self.whole &= up == 0
            elif piece[0] != "\x1b":
                self.text += piece


def check_resize(t, s):
    campaign = {"id": "c-1", "name": "laion", "state": "running", "parts": {"total": 1200, "done": 700, "failed": 3, "waiting": 480, "active": 17}, "budget": {"limit_micro_usd": 9 * 10**8}, "stages": []}
    s.answers = {"/v1/campaigns/c-1": (200, campaign), "/v1/campaigns/c-1/forecast": (200, {"campaign": {"known": True, "end": {"p10_seconds": 15000, "p50_seconds": 16000, "p90_seconds": 20000}}})}
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
        os.execve(DROVER, ["drover", "watch", "c-1"], {k: v for k, v in s.env.items() if k != "COLUMNS"})
    screen = Screen(120)

    def frame(name):
        """Reads whole frames until one has this name."""
        campaign["name"] = name
        text = ""
        while not (name in text and text.rsplit(name, 1)[1].count("\n") == 5):
            assert select.select([fd], [], [], patience(20))[0], (text, screen.lines)
            text += os.read(fd, 65536).decode()
        screen.feed(text)
        return screen.lines

    for i, columns in enumerate((120, 40, 21, 33, 160, 25, 120)):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        screen.columns = columns
        frame(f"a{i}")
        got = frame(f"b{i}")
        t.ok(screen.whole and len(got) == 5 and got[0].startswith(f"b{i} c-1") and max(map(len, got)) < columns, f"watch, resized to {columns} columns: one frame, within it", got)
    os.kill(pid, 2)
    while select.select([fd], [], [], patience(20))[0]:
        try:
            os.read(fd, 65536)
        except OSError:  # its end
            break
    t.eq(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 130, "interrupted: 130")
    os.close(fd)


def check_dumb(t, s):
    campaign = {"id": "c-1", "name": "laion", "state": "succeeded", "parts": {"total": 2, "done": 2, "failed": 0, "waiting": 0, "active": 0}, "budget": {}, "stages": []}
    s.answers = {"/v1/campaigns/c-1": (200, campaign)}
    for term, drawn in (("xterm", True), ("dumb", False)):
        text, status = on_terminal([DROVER, "watch", "c-1"], {**s.env, "TERM": term}, seconds=patience(20))
        t.ok(status == 0 and "succeeded" in text and ("\x1b" in text) == drawn and ("\r" in text.replace("\r\n", "")) == drawn, f"TERM={term}: the cursor {'moves' if drawn else 'stays'}", text)


def offers(s, *words):
    r = s.drover("__complete", *words)
    assert r.returncode == 0 and not r.stderr, (words, r)
    return [x.split("\t")[0] for x in r.stdout.decode().splitlines()]


def check_complete(t, s):
    table = re.findall(r'^X\("([a-z]+)", cmd_[a-z]+, "([^"]*)",\s+"([^"]*)"', open(f"{CLI}/commands.def").read(), re.M)
    choices = dict(re.findall(r'^X\("([a-z-]+)", \S+ \w+, \w+, "[^"]*", "([^"]+)"', open(f"{CLI}/options.def").read(), re.M))
    causes = re.findall(r'^X\([A-Z_]+, "([a-z_]+)"', open(f"{TOP}/orchestrator/core/failure/cause.def").read(), re.M)[1:]
    words = dict(re.findall(r'^P\(\w+, "(\w+)", \w+, WORD, [^"]*"([a-z_ ]+)"', open(f"{TOP}/orchestrator/api/server/parameters.def").read(), re.M))
    t.ok("by" in words and all(choices[name] == words[name] for name in set(choices) & set(words)), "the words of an option are those of the API's parameter", (words, choices))
    states = re.findall(r'^X\([A-Z_]+, "([a-z_]+)"', open(f"{TOP}/orchestrator/core/states/task_state.def").read(), re.M)
    sample = f"{TOP}/deploy/examples/laion-download.yaml"
    of_file = re.findall(r"^ +- name: (\S+)", open(sample).read(), re.M)
    stages = [{"name": "copy", "kind": "jobs", "state": "succeeded"}, {"name": "download", "kind": "jobs", "state": "running"}]
    s.answers = {"/v1/campaigns/c-7": (200, {"stages": stages}), "/v1/campaigns": (200, {"campaigns": [{"id": "c-1", "name": "la\x1b[31mion\nx\ty", "state": "running"}, {"id": "c-12", "name": "z", "state": "held"}]}),
                 "/v1/operations": (200, {"operations": [{"id": "op-3", "kind": "retry", "state": "done"}]})}
    t.eq(offers(s, ""), [v for v, _, _ in table], "completion: every verb")
    bad = [(v, got) for v, _, o in table if sorted(got := offers(s, v, "-")) != sorted({f"--{x}" for x in o.split()} | {"--help", "--context"})]
    t.ok(not bad, "the options of every verb", bad)
    for words, want in ((("su",), ["submit"]), (("-o", "json", "ret"), ["retry"]), (("-ojson", "ret"), ["retry"]), (("get", ""), ["c-1", "c-12"]), (("get", "c-12"), ["c-12"]), (("get", "c-1", ""), []), (("compare", "c-1", "c-12"), ["c-12"]),
                        (("logs", ""), ["c-1", "c-12"]), (("ops", ""), ["op-3"]), (("scale", "c-1", ""), ["none"]), (("token", "r"), ["revoke"]), (("strays", ""), ["stop"]), (("help", "ret"), ["retry"]), (("completion", ""), ["bash", "zsh", "fish"]),
                        (("submit", ""), [":files"]), (("plan", ""), [":files", "c-1", "c-12"]), (("api", "P"), ["POST", "PATCH", "PUT"]), (("ls", "-o", "j"), ["json", "jsonl"]), (("ls", "--output", "=", "j"), ["json", "jsonl"]),
                        (("ls", "--output", "="), choices["output"].split()), (("ls", "--output=y"), ["--output=yaml"]), (("ls", "-yo", "cs"), ["csv"]), (("ls", "--state", "h"), ["held"]), (("parts", "c-1", "--state", "w"), ["waiting"]),
                        (("parts", "c-1", "--state", ""), states), (("parts", "c-1", "--cause", ""), causes), (("retry", "c-1", "--cause=disk"), ["--cause=disk_full"]), (("retry", "c-1", "--cause=oom,disk"), ["--cause=oom,disk_full"]),
                        (("skip", "c-1", "--cause", "disk_full,o"), ["disk_full,oom"]), (("parts", "c-7", "--stage", ""), ["copy", "download"]), (("retry", "c-7/3", "--stage=d"), ["--stage=download"]), (("parts", "--stage", ""), []),
                        (("parts", "c-99", "--stage", ""), []), (("parts", "laion", "--stage", ""), []), (("scale", "c-7/"), ["c-7/copy", "c-7/download"]), (("scale", "7/d"), ["7/download"]), (("override", "c-7/c"), ["c-7/copy"]),
                        (("compare", "c-7/d"), ["c-7/download"]), (("get", "c-7/download/"), []), (("pause", "c-7/"), []), (("request", "--dry", sample, ""), of_file), (("request", "--dry", "/nonexistent", ""), []),
                        (("request", "--dry", f"{TOP}/deploy/examples/broken.yaml", ""), []), (("audit", "--campaign", ""), ["c-1", "c-12"]), (("init", "laion-d"), ["laion-download"]), (("xyz", ""), []), (("ls", "-n", ""), []), (("retry", "--yes", "c-12"), ["c-12"]), ((), [v for v, _, _ in table])):
        t.eq(offers(s, *words), want, f"completion of {' '.join(words)!r}")
    out = s.drover("__complete", "get", "c-1").stdout
    t.ok(out.count(b"\n") == 2 and out.count(b"\t") == 2 and b"c-1\tla?[31mion x y, running\n" in out and b"\x1b" not in out, "names of campaigns have no control characters", out)
    for name, words in choices.items():
        verb, args = next((v, a) for v, a, o in table if name in o.split())
        r = s.drover(verb, *["c-1"] * len([a for a in args.split() if a[0] != "["]), f"--{name}", "nonsense")
        t.ok(r.returncode == 2 and all(w.encode() in r.stderr for w in words.split()) and b"next: " in r.stderr, f"--{name} nonsense: 2, with its words", r.stderr)
    away = subprocess.run([DROVER, "__complete", "get", ""], capture_output=True, env={**s.env, "DROVER_URL": "http://127.0.0.1:9"}, timeout=patience(30), check=False)
    t.eq((away.returncode, away.stdout, away.stderr), (0, b"", b""), "without a server it offers nothing, and says nothing")
    for shell in ("bash", "zsh", "fish"):
        script = s.drover("completion", shell).stdout
        if subprocess.run(["which", shell], capture_output=True, check=False).returncode == 0:
            r = subprocess.run([shell, "-n", "/dev/stdin"], input=script, capture_output=True, check=False)
            t.eq((r.returncode, r.stderr), (0, b""), f"completion {shell}: {shell} reads it")
    t.eq(s.drover("completion", "tcsh").returncode, 2, "completion tcsh: 2")
    t.eq([pressed(s, *w) for w in (("ret",), ("ls", "--output", "=", "j"), ("ls", "-o", ""), ("get", "c-12"), ("plan", f"{TOP}/deploy/exa"), ("submit", f"{TOP}/README"), ("xyz", ""))],
         [["retry"], ["json", "jsonl"], choices["output"].split(), ["c-12"], [f"{TOP}/deploy/examples"], [f"{TOP}/README.md"], []], "in bash itself")


def pressed(s, *words):
    """What bash offers when Tab is pressed behind these words."""
    script = ". <(\"$1\" completion bash); shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _drover; printf '%s\\n' \"${COMPREPLY[@]}\""
    r = subprocess.run(["bash", "-c", script, "bash", DROVER, DROVER, *words], capture_output=True, text=True, env=s.env, timeout=patience(30), check=False)
    return [x for x in r.stdout.splitlines() if x]


def check_init(t, s):
    examples = {f[:-5]: open(f"{TOP}/deploy/examples/{f}").read() for f in os.listdir(f"{TOP}/deploy/examples") if f.endswith(".yaml")}
    names = [x.split()[0] for x in s.drover("init").stdout.decode().splitlines()]
    t.eq(sorted(names), sorted(set(examples) - {"broken"}), "init lists the examples")
    bad = [n for n in names if s.drover("init", n, "-").stdout.decode() != examples[n].replace(f"deploy/examples/{n}.yaml", f"{n}.yaml")]
    t.ok(not bad, "and writes them", bad)
    with tempfile.TemporaryDirectory() as d:
        path = d + "/my.yaml"
        r = s.drover("init", "laion-download", path)
        t.ok(r.returncode == 0 and r.stdout == f"{path}\n".encode() and f"drover validate {path}".encode() in r.stderr and f"drover submit {path}\n" in open(path).read(), "init TEMPLATE FILE names the file in its comments", r)
        open(path, "a").write("# mine\n")
        r = s.drover("init", "laion-download", path)
        t.ok(r.returncode == 5 and b"next: " in r.stderr and open(path).read().endswith("# mine\n"), "a file that is there stays: 5", r.stderr)
        r = s.drover("init", "laion-download", d + "/none/x.yaml")
        t.ok(r.returncode == 2 and b"next: " in r.stderr, "a folder that is not there: 2", r.stderr)
    r = s.drover("init", "laion-downlod")
    t.ok(r.returncode == 3 and b"did you mean drover init laion-download?" in r.stderr, "a guess: 3", r.stderr)


def check_login(t, s):
    url = s.env["DROVER_URL"]
    seen = []
    s.seen = lambda path, token: seen.append((path, token))
    with tempfile.TemporaryDirectory() as home:
        env = {k: v for k, v in s.env.items() if k not in ("DROVER_URL", "DROVER_TOKEN_FILE", "XDG_CONFIG_HOME", "STATE_DIRECTORY")} | {"HOME": home}
        path = home + "/.config/drover/contexts.json"

        def drover(*args, stdin="", **more):
            return subprocess.run([DROVER, *args], input=stdin, text=True, capture_output=True, env=env | more, timeout=patience(60), check=False)

        s.answers = {"/v1/session": (401, {"code": "unauthenticated", "detail": "the token is not known"})}
        r = drover("login", url, stdin="wrong\n")
        t.ok(r.returncode == 4 and not os.path.exists(path), "login: a token that is refused is not kept: 4", (r.returncode, r.stderr))
        for args, stdin in (((url,), ""), ((url,), "a b\n"), ((url,), "x" * 501 + "\n"), (("ftp://x",), "t\n"), (("http://",), "t\n"), (("http://a b",), "t\n"), (("https:///x",), "t\n")):
            r = drover("login", *args, stdin=stdin)
            t.ok(r.returncode == 2 and "next: drover login" in r.stderr and not os.path.exists(path), f"login {args[0][:12]!r} with {stdin[:4]!r}: 2", (r.returncode, r.stderr))
        s.answers = {"/v1/session": (200, {"role": "viewer"}), "/v1/campaigns": (200, {"campaigns": []})}
        r = drover("login", url + "/", "prod", stdin="secret-1\n")
        t.ok(r.returncode == 0 and r.stdout == f"prod  {url}  role viewer\n" and "secret" not in r.stdout + r.stderr, "login URL NAME", r)
        t.eq(os.stat(path).st_mode & 0o777, 0o600, "only its owner may read the file")
        r = drover("login", url.replace("127.0.0.1", "localhost"), stdin="secret-2")
        t.eq((r.returncode, r.stdout.split()[0]), (0, url.replace("http://127.0.0.1", "localhost")), "the name is the host's when none is given")
        del seen[:]
        t.eq((drover("ls").returncode, seen.pop()[1]), (0, "Bearer secret-2"), "the newest login is in use")
        r = drover("context", "use", "prod")
        t.ok(r.returncode == 0 and re.search(rf"^prod +{url} +yes$", r.stdout, re.M), "context use", r.stdout)
        t.eq((drover("ls").returncode, seen.pop()[1]), (0, "Bearer secret-1"), "its token is sent")
        t.eq((drover("ls", DROVER_URL=url).returncode, seen.pop()[1]), (0, None), "but not to DROVER_URL, which goes before it")
        with open(home + "/token", "w") as f:
            f.write("secret-3\n")
        t.eq((drover("ls", DROVER_TOKEN_FILE=home + "/token").returncode, seen.pop()[1]), (0, "Bearer secret-3"), "DROVER_TOKEN_FILE goes before its token")
        shown = "".join(drover("context", "-o", o).stdout for o in ("table", "wide", "json", "jsonl", "yaml", "csv", "name"))
        t.ok("prod" in shown and "secret" not in shown, "context shows no token", shown)
        t.eq([x["context"] for x in json.loads(drover("context", "-o", "json").stdout)["contexts"] if x["in_use"]], ["prod"], "context -o json")
        for args, status in (("use", "x"), 3), (("rm", "x"), 3), (("use",), 2), (("x", "y"), 2), (("ls", "y"), 2):
            r = drover("context", *args)
            t.ok(r.returncode == status and "next: drover context" in r.stderr, f"context {' '.join(args)}: {status}", r.stderr)
        other = url.replace("http://127.0.0.1", "localhost")
        t.eq((drover("context", "use", other).returncode, [(drover(*args).returncode, seen.pop()[1]) for args in (("ls", "--context", "prod"), ("--context", "prod", "ls"), ("--context=prod", "ls"), ("ls", "--context=" + other), ("ls",))]),
             (0, [(0, "Bearer " + x) for x in ("secret-1", "secret-1", "secret-1", "secret-2", "secret-2")]), "--context before or behind the verb: its token is sent")
        t.eq((drover("ls", "--context", "prod", DROVER_URL="http://127.0.0.1:9", DROVER_TOKEN_FILE=home + "/token").returncode, seen.pop()[1]), (0, "Bearer secret-1"), "it goes before DROVER_URL and DROVER_TOKEN_FILE")
        r = drover("ls", "--context", "pord")
        t.ok(r.returncode == 3 and "there is no context 'pord'" in r.stderr and "next: drover context" in r.stderr and not seen, "one that is not there: 3, and nothing is asked", (r.returncode, r.stderr))
        s.answers["/v1/campaigns"] = (200, {"campaigns": [{"id": "c-1", "name": "x", "state": "running"}]})
        got = [[x.split("\t")[0] for x in drover("__complete", *args).stdout.splitlines()] for args in (("ls", "--context", ""), ("--context", "prod", "get", ""), ("--context=prod", "get", "c"), ("--context", "pord", "get", ""))]
        t.eq((got, {x[1] for x in seen}), ([["prod", other], ["c-1"], ["c-1"], []], {"Bearer secret-1"}), "completion knows the names, and asks that server")
        del seen[:]
        t.eq(drover("context", "use", "prod").returncode, 0, "context use prod")
        t.ok(drover("context", "rm", "prod").returncode == 0 and "prod" not in open(path).read() and "secret-1" not in open(path).read(), "context rm forgets the token")
        t.ok(drover("context", "use", url.replace("http://127.0.0.1", "localhost")).returncode == 0 and drover("ls", DROVER_URL="").returncode == 0 and seen.pop()[1] == "Bearer secret-2", "an empty DROVER_URL is none")
        os.chmod(path, 0o644)
        r = drover("ls")
        t.ok(r.returncode == 2 and "chmod 600" in r.stderr and "next: " in r.stderr, "a file that others may read is refused", r.stderr)
        os.chmod(path, 0o600)
        for text in ("", "[]", '{"contexts": 5}', '{"contexts": {"a": {"url": 1}}}', "{"):
            with open(path, "w") as f:
                f.write(text)
            r = drover("context")
            t.ok(r.returncode == 2 and "is not what drover login wrote" in r.stderr, f"a file with {text!r}: 2", r.stderr)
        t.eq(drover("ls", DROVER_URL=url).returncode, 0, "which does not matter with DROVER_URL")
        t.eq(os.listdir(home + "/.config/drover"), ["contexts.json"], "nothing else is left in the folder")
    s.seen = lambda path, token: None


def check_prompt(t, s):
    """The prompt of login does not show the token, and every way out of it lets the terminal show what is typed again.
    Ctrl-Z has to wait for that, too.
    """
    s.answers = {"/v1/session": (200, {"role": "viewer"})}
    echo = lambda fd: bool(termios.tcgetattr(fd)[3] & termios.ECHO)  # noqa: E731
    for keys, sent, want in ((b"\x03", 0, 130), (b"\x1c", 0, 130), (b"", signal.SIGTERM, 130), (b"\x1asecret-9\n", 0, 0), (b"secret-9\n", 0, 0), (b"\x04", 0, 2)):
        with tempfile.TemporaryDirectory() as home:
            master, slave = pty.openpty()
            p = subprocess.Popen([DROVER, "login", s.env["DROVER_URL"]], preexec_fn=lambda fd=slave: os.login_tty(fd), env=s.env | {"HOME": home, "XDG_CONFIG_HOME": home})
            out = b""
            while b"Token: " not in out:
                assert select.select([master], [], [], patience(20))[0], out
                out += os.read(master, 4096)
            assert wait_for(lambda fd=slave: not echo(fd), patience(20))
            os.write(master, keys)
            if sent:
                p.send_signal(sent)
            status = p.wait(patience(20))
            while select.select([master], [], [], 0)[0]:
                out += os.read(master, 4096)
            t.ok(status == want and echo(slave) and b"secret" not in out, f"login, {keys!r} or {sent!r} at its prompt: {want}, and the terminal echoes again", (status, echo(slave), out))
            t.eq(os.path.exists(home + "/drover/contexts.json"), want == 0, "it keeps a token that was typed, nothing else")
            os.close(master)
            os.close(slave)


def run():
    t, s = Tap(), Server()
    for check in (check_start, check_yaml, check_lists, check_sort, check_narrow, check_figures, check_bill, check_failures, check_begun, check_next, check_complete, check_init, check_login, check_prompt, check_resize, check_dumb):
        if os.environ.get("ONLY", "") in check.__name__:
            check(t, s)
    sys.exit(t.done())


if __name__ == "__main__":
    run()
