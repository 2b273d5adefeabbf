#!/usr/bin/python3
"""Which campaign a name means, and what answers that are rare do. Aim: a name is found beyond the first page, its campaign is the one that was asked about,
nothing is said to have happened that did not, no list is cut without a word. Method: the real drover against a server of this test that answers as it is told, or not at all.
"""
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import BIN, TOP, Tap, patience
from kit.terminal import on_terminal

DROVER = BIN + "/drover"


class Server:
    """Each request is answered by `answer(method, path, query, headers)`: a status and JSON, bytes that are all that is sent, or None: the connection ends without an answer."""

    def __init__(self):
        self.answer, self.seen = None, []
        self.token = tempfile.NamedTemporaryFile()  # nobody else may read it
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                url = urlsplit(self.path)
                query = {k: v[0] for k, v in parse_qs(url.query).items()}
                outer.seen.append((self.command, url.path, query, dict(self.headers), body))
                got = outer.answer(self.command, url.path, query, self.headers)
                self.close_connection = True
                if isinstance(got, bytes):
                    self.wfile.write(got)
                elif got is not None:
                    text = json.dumps(got[1]).encode()
                    self.send_response(got[0])
                    self.send_header("Content-Type", "application/json")
                    self.send_header("ETag", '"1"')
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)

            do_POST = do_PATCH = do_PUT = do_DELETE = do_GET

            def log_message(self, *args):
                pass

        self.s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.env = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{self.s.server_address[1]}", "DROVER_TOKEN_FILE": self.token.name, "LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": "80"}
        threading.Thread(target=self.s.serve_forever, daemon=True).start()

    def drover(self, *args, answer=None, stdin=""):
        self.answer, self.seen = answer or self.answer, []
        return subprocess.run([DROVER, *args], input=stdin, capture_output=True, text=True, env=self.env, timeout=patience(60), check=False)

    def terminal(self, *args, keys, answer):
        self.answer, self.seen = answer, []
        return on_terminal([DROVER, *args], self.env, keys=keys)


def campaign(n, name="laion", state="succeeded", **more):
    return {"id": f"c-{n}", "name": name, "state": state, "budget": {}, "stages": [{"name": "download", "state": "running", "reason": "a gate", "parts": {"active": 3, "waiting": 1}}], **more}


def pages(rows, named="campaigns"):
    """The answer to a list of them: as many as the query wants, and where it goes on."""
    def page(query):
        at, n = int(query.get("page_token", 0)), int(query.get("page_size", 50))
        return 200, {named: rows[at:at + n], "next_page_token": str(at + n) if at + n < len(rows) else None}
    return page


NOT_FOUND = (404, {"code": "not_found", "detail": "nothing here"})


def check_far(t, s):
    rows = [campaign(n, "other") for n in range(2500, 8, -1)] + [campaign(8, "laion", "running"), campaign(7), *(campaign(n, "older") for n in range(6, 0, -1))]
    page = pages(rows)

    def answer(method, path, query, headers):
        if path == "/v1/campaigns":
            return page(query)
        return next(((200, c) for c in rows if path.startswith(f"/v1/campaigns/{c['id']}") and path[len(f"/v1/campaigns/{c['id']}"):][:1] in ("", ":", "/")), NOT_FOUND)

    for name, want in (("laion", "c-8"), ("older", "c-6"), ("other", "c-2500")):
        r = s.drover("get", name, "-o", "name", answer=answer)
        t.eq((r.returncode, r.stdout), (0, want + "\n"), f"the newest of 2,500 that is named {name}")
    r = s.drover("get", "nobody")
    t.ok(r.returncode == 3 and "there is no campaign 'nobody'" in r.stderr, "a name that none has", r)
    s.drover("failures", "-o", "json")
    t.ok("/v1/campaigns/c-8/failures" in [x[1] for x in s.seen], "without a name: the newest that has not ended, however many ended since", [x[1] for x in s.seen])
    rows[2492] = campaign(8)
    s.drover("failures", "-o", "json")
    t.ok("/v1/campaigns/c-2500/failures" in [x[1] for x in s.seen], "the newest of all when all have ended", [x[1] for x in s.seen])
    endless = lambda method, path, query, headers: (200, {"campaigns": rows[:1], "next_page_token": "on"})  # noqa: E731
    r = s.drover("get", "nobody", answer=endless)
    t.ok(r.returncode == 3 and len(s.seen) == 100, "a server whose pages have no end is left after 100", (r, len(s.seen)))


def check_same(t, s):
    """Between the question and the yes somebody submits a second campaign of this name."""
    for words, verb in ((("pause", "laion"), "pause"), (("resume", "laion"), "resume"), (("cancel", "laion"), "cancel"), (("archive", "laion"), "archive"), (("retry", "laion"), "retry"), (("skip", "laion"), "skip"),
                        (("hold", "laion"), "hold"), (("release", "laion"), "release"), (("unpark", "laion"), "unpark"), (("override", "laion/download"), "override"), (("budget", "laion", "9"), "PATCH"), (("scale", "laion", "9"), "PATCH"),
                        (("budget", "laion", "9", "--resume"), "resume")):
        done, asked = [], []

        def answer(method, path, query, headers, done=done, asked=asked):
            if path == "/v1/campaigns":
                asked.append(path)
                return pages([campaign(7 + i, state="held") for i in range(len(asked) - 1, -1, -1)])(query)
            if method != "GET" and "dry_run" not in query:
                done.append((method, path))
            n = int(re.match(r"/v1/campaigns/c-(\d+)", path).group(1))
            limits = {"budget": {"limit_micro_usd": 1000000}, "limits": {"parts": 1}}
            return 200, {**campaign(n, state="held", **limits), "parts": 2, "stages": [{"name": "download", "state": "held", "reason": "a gate", "parts": {"active": 3, "waiting": 1}}]}

        out, status = s.terminal(*words, keys=b"y\n", answer=answer)
        question = next((x for x in out.splitlines() if "[y/N]" in x), "")
        t.ok(re.search(r"\bc-7\b", question), f"drover {' '.join(words)}: the question says which campaign", out)
        t.ok(done and all("/c-7" in path for _, path in done) and any(path.endswith(":" + verb) or method == verb for method, path in done) and status == 0, "... which is the one that is changed", (done, status))


def check_which(t, s):
    """A part that is named by its number alone, where several stages have one of that number."""
    def answer(totals):
        def answers(method, path, query, headers):
            stages = [{"name": name, "parts": {"total": n}} for name, n in totals.items()]
            return 200, {"parts": 1, "sample": [17], "id": "op-1", "state": "accepted"} if method == "POST" else campaign(7, state="running", stages=stages)
        return answers

    sent = lambda: [json.loads(x[4])["selector"] for x in s.seen if x[0] == "POST"]  # noqa: E731
    for verb, state in (("retry", "failed"), ("skip", "failed"), ("hold", "waiting"), ("release", "held")):
        r = s.drover(verb, "c-7/17", "-y", answer=answer({"list": 1, "download": 20, "train": 18, "deploy": 0}))
        t.ok(r.returncode == 2 and "error: which stage? 2 stages of c-7 have a part 17\n  next: c-7/download/17 or c-7/train/17\n" in r.stderr and not r.stdout and sent() == [], f"{verb} c-7/17 of two stages: refused with what to write", (r, sent()))
        r = s.drover(verb, "c-7/17", "-y", answer=answer({"list": 17, "train": 18}))
        want = {"state": state, "stage": "train", "parts": [17]}
        t.ok(r.returncode == 0 and "1 part of c-7/train (17)\n" in r.stdout and sent() == [want, want], "... of one: that is named, shown and asked for", (r, sent()))
        for words in (("c-7/train/17",), ("c-7/17", "--stage", "train")):
            r = s.drover(verb, *words, "-y", answer=answer({"download": 20, "train": 18}))
            t.ok(r.returncode == 0 and sent() == [want, want], f"{verb} {' '.join(words)} is that one", (r, sent()))
        r = s.drover(verb, "c-7/train/17", "--stage", "download", "-y")
        t.ok(r.returncode == 2 and "write the stage or --stage" in r.stderr and not s.seen, "two stages at once are refused", r)
    shown = [(s.drover("open", words, answer=answer(of)).stdout, words) for words, of in (("c-7/17", {"list": 17, "train": 18}), ("c-7/train/17", {"list": 18, "train": 18}))]
    t.ok(all(x.endswith("/c/7?stage=train&part=17\n") for x, _ in shown), "open names the stage in the address", shown)
    r = s.drover("open", "c-7/17", answer=answer({"list": 18, "train": 18}))
    t.ok(r.returncode == 2 and not r.stdout and "which stage? 2 stages" in r.stderr and "c-7/list/17 or c-7/train/17\n" in r.stderr, "... and of two asks which", r)
    r = s.drover("skip", "c-7/17", "-y", answer=answer({"download": 17}))
    t.ok(r.returncode == 3 and "no stage of c-7 has a part 17" in r.stderr and sent() == [], "none has it: 3", r)
    r = s.drover("skip", "c-7/0", "-y", answer=answer({f"train-{n}": 1 for n in range(9)}))
    t.ok(r.returncode == 2 and "  next: c-7/train-0/0 or c-7/train-1/0 or c-7/train-2/0 or c-7/train-3/0 or another stage's\n" in r.stderr, "of many the first are named", r)
    out, status = s.terminal("skip", "c-7/17", keys=b"n\n", answer=answer({"list": 1, "train": 18}))
    t.ok(status == 2 and "Skip 1 part of c-7/train for good? [y/N]" in out, "the question names the stage", out)


def check_part(t, s):
    """What is said of a part names its stage: the words go into the next command, and each stage has a part 0."""
    part = {"id": "c-7/0", "seq": 0, "stage": "train", "phase": "done", "attempts": 1, "attempt_list": [{"n": 1, "state": "succeeded", "job_name": "j"}]}
    log = {"job_name": "j", "lines": [{"time": "2026-01-02T03:04:05Z", "text": "of train"}]}
    answers = {"/v1/parts/c-7/0": part, "/v1/campaigns/c-7/parts": {"parts": [part], "next_page_token": None}, "/v1/campaigns/c-7/parts/0/logs": log, "/v1/campaigns/c-7/parts/0/metrics": {"series": []},
               "/v1/campaigns/c-7/parts/0/why": {"id": "c-7/0", "stage": "train", "state": "done", "text": "it is done", "next": None}, "/v1/campaigns/c-7/parts/0/request": {"request": {}, "note": ""}}

    def of(*names):
        whole = campaign(7, stages=[{"name": x, "parts": {"total": 1}} for x in names])
        return lambda method, path, query, headers: (200, answers.get(path, whole))

    r = s.drover("why", "c-7/train", answer=of("list", "train"))
    t.ok(r.returncode == 2 and "name a part: drover why c-7/train/0\n" in r.stderr, "the part that is proposed is of the stage that was named", r)
    r = s.drover("why", "c-7/train/0", answer=lambda *args: (200, {"id": "c-7/0", "stage": "train", "state": "failed", "text": "failed after 1 attempt: x", "next": None}))
    t.ok(" c-7/train/0 failed after 1 attempt: x\n" in r.stdout, "why does not say the state twice", r)
    for words, want in ((("get", "c-7/train/0"), "c-7/train/0  ✓ done"), (("get", "c-7/train/0"), "log: drover logs c-7/train/0\n"), (("parts", "c-7"), "\nc-7/train/0  "), (("parts", "c-7", "-o", "name"), "c-7/train/0\n"), (("why", "c-7/train/0"), "c-7/train/0 done: ")):
        r = s.drover(*words, answer=of("list", "train"))
        t.ok(r.returncode == 0 and want in r.stdout, f"{' '.join(words)} names the part as a command takes it", r)
    answers["/v1/campaigns/c-7/parts/0/metrics"] = {"series": [], "complete": True, "defined": False}
    r = s.drover("metrics", "c-7/0", answer=of("train"))
    t.ok("stage train of c-7 defines no metrics. " in r.stdout and "metrics: [{name: " in r.stdout, "metrics of a part whose stage defines none says where to", r)
    for verb in ("get", "why", "logs", "metrics", "request"):
        r = s.drover(verb, "c-7/0", answer=of("list", "train"))
        t.ok(r.returncode == 2 and "next: c-7/list/0 or c-7/train/0\n" in r.stderr and not r.stdout, f"{verb} c-7/0 of two stages is refused with what to write", r)
        r = s.drover(verb, "c-7/0", answer=of("train"))
        t.ok(r.returncode == 0 and s.seen[-1][2].get("stage") == "train", "... of one it is that one", (r, s.seen))


def check_pipe(t, s):
    """A reader that goes early, as head does, is no error; a disk that is full is one, of every form of output."""
    rows = [{**campaign(n), "id": f"c-{n}"} for n in range(5000)]
    listed = pages(rows)
    for form in ((), ("-o", "csv"), ("-o", "json"), ("-o", "jsonl"), ("-o", "name")):
        s.answer, s.seen = lambda method, path, query, headers: listed(query), []
        words = ["ls", "-n", "5000", *form]
        p = subprocess.Popen([DROVER, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=s.env)
        p.stdout.close()
        said = p.stderr.read()
        t.ok(p.wait() == 141 and said == b"", f"drover {' '.join(words)} | true: 141 and not a word", (p.returncode, said))
        t.ok(form not in (("-o", "jsonl"), ("-o", "csv"), ("-o", "name")) or len(s.seen) < 5, "... and no page more is asked for", len(s.seen))
        with open("/dev/full", "w", encoding="ascii") as full:
            r = subprocess.run([DROVER, *words], stdout=full, stderr=subprocess.PIPE, env=s.env, check=False)
        t.ok(r.returncode == 1 and b"cannot write to stdout\n  next: is the disk full?" in r.stderr, "... of a full disk: 1", r)
    events = b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\ndata: {"at": "2026-01-02T03:04:05Z", "kind": "x"}\n\n'
    log = {"job_name": "j", "next": "n", "lines": [{"time": "2026-01-02T03:04:05Z", "level": "info", "text": "x", "shown": None, "host": ""}]}
    ended = campaign(7, state="failed", parts={"total": 2, "failed": 2})
    for words, answer, want in ((("logs", "c-7/train/1", "--follow"), (200, log), 141), (("events",), events, 141), (("watch", "c-7"), (200, campaign(7, state="running")), 141), (("watch", "c-7"), (200, ended), 10)):
        s.answer = lambda method, path, query, headers, answer=answer: (200, campaign(7, stages=[{"name": "train", "parts": {"total": 9}}])) if words[0] == "logs" and path == "/v1/campaigns/c-7" else answer
        p = subprocess.Popen([DROVER, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=s.env)
        p.stdout.close()
        try:
            status = p.wait(timeout=patience(6))
        except subprocess.TimeoutExpired:
            status = p.kill() or p.wait()
        t.eq(status, want, f"drover {' '.join(words)} | true ends, with {want}")


def check_absent(t, s):
    """What a campaign that is there does not have: the next step is what shows what it has."""
    whole = campaign(7, stages=[{"name": "train", "parts": {"total": 99}}])
    for words, detail, want in ((("get", "c-7/a/0"), "campaign c-7 has no stage 'a'", "drover get c-7 shows its stages"), (("parts", "c-7/a"), "campaign c-7 has no stage 'a'", "drover get c-7 shows its stages"),
                                (("why", "c-7/train/99"), "campaign c-7 has no part 99", "drover parts c-7 lists its parts"), (("get", "c-9/train/1"), "there is no campaign c-9", "drover ls lists them"),
                                (("logs", "c-7/train/17"), "this part has no such attempt yet, so there is no log", "drover get c-7/train/17 lists its attempts, drover why c-7/train/17 why it has none")):
        r = s.drover(*words, answer=lambda method, path, query, headers, detail=detail: (200, whole) if path == "/v1/campaigns/c-7" else (404, {"code": "not_found", "detail": detail}))
        t.ok(r.returncode == 3 and r.stderr == f"error: {detail} (HTTP 404)\n  next: {want}\n", f"{' '.join(words)}: {want}", r)


def check_plan(t, s):
    """The worst cases of a plan's stages make its worst case, those of file systems and endpoints with them."""
    cost = lambda n: {"worst_case_micro_usd_per_part": n, "worst_case_micro_usd": n, "quota": {}, "instance_count": 1, "parts": 1}  # noqa: E731
    plan = {"name": "x", "parts": {"total": 1}, "warnings": [], "worst_case_micro_usd": 1250000, "budget_micro_usd": 5000000, "stages": [
        {"name": "train", "kind": "jobs", **cost(500000)}, {"name": "volume", "kind": "lustre", "size_gib": 1200, "ttl_seconds": 1800, **cost(690000)}, {"name": "serve", "kind": "endpoint", "ttl_seconds": 600, **cost(60000)}]}
    r = s.drover("submit", f"{TOP}/deploy/examples/everything.yaml", "--dry-run", answer=lambda *args: (200, plan))
    shown = re.findall(r"^ {15}at worst ([0-9.]+) USD", r.stdout, re.M)
    t.ok(r.returncode == 0 and shown == ["0.5000", "0.6900", "0.0600"] and "at worst 1.25 USD in all" in r.stdout, "the plan shows what each stage may cost", r)


def check_more(t, s):
    """The command that is proposed for more rows selects what the one before it did."""
    rows = pages([{"id": f"c-7/{n}", "stage": "train", "phase": "failed"} for n in range(9)], "parts")
    answer = lambda method, path, query, headers: rows(query)  # noqa: E731
    for words, want in ((("c-7/train",), "c-7/train"), (("c-7", "--stage", "train", "--state", "failed"), "c-7/train --state failed"), (("c-7", "--cause", "oom,timeout"), "c-7 --cause oom,timeout"),
                        (("c-7", "--filter", 'text="it\'s full"', "--sort", "-usd"), """c-7 --filter 'text="it'\\''s full"' --sort -usd""")):
        r = s.drover("parts", *words, "-n", "2", answer=answer)
        t.ok(f"there are more; next: drover parts {want} -n 10000, or -o jsonl\n" in r.stderr, f"parts {' '.join(words)}: the same for more rows", r)
    listed = pages([campaign(n) for n in range(9)])
    r = s.drover("ls", "--state", "succeeded", "-n", "2", answer=lambda method, path, query, headers: listed(query))
    t.ok("next: drover ls --state succeeded -n 1000, or -o jsonl\n" in r.stderr, "ls --state, too", r)


def check_words(t, s):
    """A word that a table shows and --state does not know names the one that it knows; what is waited for has the word and the name that were shown."""
    r = s.drover("ls", "--state", "waiting", answer=lambda *args: (400, {"code": "malformed", "detail": "no such state"}))
    t.ok(r.returncode == 2 and r.stderr.endswith("next: drover ls --state running\n"), "ls --state waiting", r)
    for word, kept in (("running", "active"), ("uploading", "active"), ("backing_off", "waiting")):
        r = s.drover("parts", "c-7", "--state", word)
        t.ok(r.returncode == 2 and r.stderr.endswith(f"next: drover parts c-7 --state {kept}\n"), f"parts --state {word}", r)
    waits = campaign(7, state="running", waits_for="the quota of its instance type cannot be read", parts={"total": 4, "waiting": 4}, guidance=[], ended_at=None)
    r = s.drover("watch", "c-7", "--timeout", "0s", answer=lambda *args: (200, waits))
    t.ok(r.returncode == 8 and " c-7 waiting " in r.stdout + r.stderr and r.stderr.endswith("error: c-7 is still waiting after 0s\n  next: drover watch c-7 continues waiting\n"), "watch says the state that it shows, and goes on with this campaign", r)
    r = s.drover("validate", "-", stdin="")
    t.ok(r.returncode == 2 and "'-' is empty\n  next: drover init writes one to begin with\n" in r.stderr, "an empty file: what every installation has", r)


def check_names(t, s):
    """People choose their names: one with control characters does nothing to a terminal."""
    name, clean = "eve\x1b[2J\u009b2J", re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")
    for ended in None, "2026-01-02T03:04:05Z":
        undo = {"by": name, "asked_at": "2026-01-02T03:04:05Z", "ended_at": ended, "undone": 1, "went_on": 1}
        op = {"id": "op-8", "kind": "retry", "campaign": "c-7", "state": "done", "parts": 2, "done": 2, "by": name, "created_at": "2026-01-02T03:04:05Z", "ended_at": None, "selector": {}, "changes": {}, "undo": undo}
        r = s.drover("ops", "op-8", answer=lambda *args: (200, op))
        t.ok(r.returncode == 0 and r.stdout.count("by eve") == 2 and not clean.search(r.stdout), "drover ops shows who asked and who cancelled, without control characters", r)


def check_figures(t, s):
    """A head means the same in each table, a table of money has the whole of it, and a stage that is named is the one that is shown."""
    parts = {"total": 22, "done": 21, "skipped": 1, "active": 0, "failed": 0}
    whole = campaign(7, parts=parts, stages=[{"name": x, "state": "succeeded", "reason": "", "parts": parts} for x in ("copy", "train")])
    listed = s.drover("ls", "--columns", "parts,done,skip", answer=lambda *args: (200, {"campaigns": [whole], "next_page_token": None}))
    got = s.drover("get", "c-7/train", answer=lambda *args: (200, whole))
    t.ok(listed.stdout.split() == ["PARTS", "DONE", "SKIP", "22", "21", "1"] and re.search(r"^train .* 22 +0 +0 +21 +1 +0", got.stdout, re.M), "DONE and SKIP of ls are those of get", (listed, got))
    t.ok("\ncopy" not in got.stdout, "get c-7/train shows that stage", got)
    stages = [{"name": "copy", "state": "failed", "reason": "more failed parts than allow_failed says, which is none", "parts": {**parts, "failed": 2}}, {"name": "train", "state": "skipped", "reason": "short", "parts": parts}]
    ended = lambda *args: (200, campaign(7, state="failed", reason="", wanted="run", parts={**parts, "failed": 2}, stages=stages))  # noqa: E731
    out, _ = s.terminal("get", "c-7", keys=b"", answer=ended)
    out = re.sub("\x1b\\[[0-9;]*m", "", out).replace("\r", "")
    t.ok(out.endswith("\ncopy: more failed parts than allow_failed says, which is none\ntrain: short\nnext: drover failures c-7\n") and max(map(len, out.splitlines())) <= 80, "get: what 80 columns have no room for is below the table, whole; a campaign that has failed names the next command", out)
    out = s.drover("get", "c-7", answer=ended).stdout
    t.ok("which is none\n" in out and "copy: " not in out, "... in a pipe in its row", out)
    r = s.drover("get", "c-7/tarin", answer=lambda *args: (200, whole))
    t.ok(r.returncode == 3 and not r.stdout and r.stderr == "error: campaign c-7 has no stage 'tarin'\n  next: its stages: copy, train\n", "... and one that is not there is none of them", r)
    causes = [{"cause": "none", "seconds": 8, "micro_usd": 20104}, {"cause": "oom", "seconds": 1, "micro_usd": 57}]
    cost = {"metered": {"seconds": 9, "micro_usd": 12345678}, "by_stage": [], "by_cause": causes, "of_no_job_micro_usd": 230137}
    r = s.drover("cost", "c-7", "--by", "cause", answer=lambda *args: (200, cost))
    t.ok(r.returncode == 0 and "and 0.2301 USD of no job: " in r.stdout, "cost by cause says what of the bill no job made, as of when the causes were read", r)
    r = s.drover("cost", "c-7", "--by", "cause", answer=lambda *args: (200, {**cost, "of_no_job_micro_usd": 0}))
    t.ok(r.returncode == 0 and "no job" not in r.stdout, "... and nothing when that is none of it", r)


def check_quota(t, s):
    """A campaign that waits for a quota is sent to doctor, which says of which stage, and that the type's name may be wrong."""
    waits = campaign(4, state="running", guidance=[{"kind": "quota_unreadable", "title": "waits", "stage": "train", "steps": []}])
    for rows, status in (([waits], 1), ([campaign(5, state="running", guidance=[])], 0)):
        r = s.drover("doctor", answer=lambda method, path, query, headers, rows=rows: (200, {"campaigns": rows} if path == "/v1/campaigns" else {"role": "admin", "checks": [], "ready": True}))
        told = "quota       c-4 waits: stage train has an instance type whose quota AWS has not told\n  next: is its name right? drover get c-4 --spec; else allow servicequotas:ListServiceQuotas" in r.stdout
        t.ok(told == bool(status) and (r.returncode == 1 or not status), f"doctor of {rows[0]['id']}", r)


def check_next(t, s):
    """What is proposed is of the campaign and the type that were named, and says when a retry alone starts nothing."""
    for state, stage, want in (("held", "held", "c-7 is held"), ("paused", "running", "c-7 is paused"), ("running", "held", "stage train is held"), ("running", "running", None)):
        whole = campaign(7, state=state, stages=[{"name": "train", "state": stage, "parts": {"total": 9}}])
        op = {"parts": 3, "sample": [0, 1, 2], "id": "op-1", "state": "accepted"}
        for verb in ("retry", "release", "skip"):
            r = s.drover(verb, "c-7", "-y", answer=lambda method, path, query, headers, whole=whole: (200, op if method == "POST" else whole))
            told = f"{want} and starts no part; next: drover resume c-7\n"
            t.ok(r.returncode == 0 and r.stderr == (told if want and verb != "skip" else ""), f"{verb} where the campaign is {state} and its stage {stage}", r)
    r = s.drover("archive", "c-7", "-y", answer=lambda *args: (409, {"code": "conflict", "detail": "it has not ended"}))
    t.ok(r.returncode == 5 and "next: drover get c-7 shows the current state\n" in r.stderr, "a conflict: the command that shows its campaign", r)
    none = lambda method, *args: (200, {"parts": 0, "sample": [], "campaigns": [], "next_page_token": None})  # noqa: E731
    away = lambda code, status, detail: lambda *args: (status, {"code": code, "detail": detail})  # noqa: E731
    for words, answer, want in ((("scaling", "c-7"), away("conflict", 409, "c-7 has no matrix"), "drover get c-7 shows the current state"), (("scaling", "c-7/train"), away("conflict", 409, "c-7 has no matrix"), "drover get c-7 shows the current state"),
                                (("compare", "c-7/a", "c-7/b"), away("not_found", 404, "c-7/b/0: it was not started yet"), "drover why c-7/b/0"), (("override", "c-7"), None, "drover get c-7 shows its stages"),
                                (("parts", "c-7/train"), away("archived", 410, "campaign c-7 is archived"), "drover cost c-7 shows what is kept of it"),
                                (("skip", "c-7", "-y"), none, "drover failures c-7 shows what failed"), (("hold", "c-7", "-y"), none, "drover parts c-7 --state waiting shows what waits"),
                                (("release", "c-7", "-y"), none, "drover parts c-7 --state held shows what is held"), (("ls", "--state", "failed"), none, "drover ls")):
        r = s.drover(*words, answer=answer)
        t.ok(r.stderr.endswith(f"next: {want}\n"), f"{' '.join(words)}: the next command names its campaign", r)
    r = s.drover("budget", "c-5/train")
    t.ok(r.returncode == 2 and "next: drover budget c-5/train 1200, or none" in r.stderr, "budget without a figure", r)
    r = s.drover("quotas", "request", "ml.g5.xlarge")
    t.ok(r.returncode == 2 and "next: drover quotas request ml.g5.xlarge --value 24\n" in r.stderr, "quotas request without one", r)


def check_wait(t, s):
    """It ends in another way while --wait waits."""
    def ends(before, state, archive=None):
        polls = []

        def answer(method, path, query, headers):
            polls.append(method)
            now = campaign(7, state=before if polls.count("GET") < 3 or "POST" not in polls else state, archive=archive)
            return (202 if method == "POST" else 200), now
        return answer

    for verb, before, state, want in (("pause", "running", "succeeded", 5), ("pause", "running", "failed", 5), ("cancel", "running", "succeeded", 5), ("drain", "running", "succeeded", 5), ("resume", "paused", "cancelled", 5),
                                      ("pause", "running", "paused", 0), ("cancel", "running", "cancelled", 0), ("drain", "running", "paused", 0), ("resume", "paused", "running", 0), ("resume", "paused", "succeeded", 0)):
        yes = () if verb == "drain" else ("-y",)
        wanted = {"pause": "paused", "drain": "paused", "cancel": "cancelled", "resume": "running"}[verb]
        r = s.drover(verb, "c-7", *yes, "--wait", answer=ends(before, state))
        if want:
            t.ok(r.returncode == 5 and f"error: c-7 is {state}, not {wanted}\n  next: drover get c-7" in r.stderr and "done" not in r.stdout, f"{verb} --wait of what is then {state}: 5, and no word of done", r)
        else:
            t.ok(r.returncode == 0 and "(done)" in r.stdout and not r.stderr, f"{verb} --wait until it is {state}: done", r)
        r = s.drover(verb, "c-7", *yes, "--wait", "-o", "json", answer=ends(before, state))
        t.eq((r.returncode, json.loads(r.stdout)["state"]), (want, state), "... and -o json has the state there is")
    r = s.drover("archive", "c-7", "-y", "--wait", answer=ends("succeeded", "succeeded", {"state": "archived"}))
    t.ok(r.returncode == 0 and "(done)" in r.stdout, "archive --wait looks at the archive alone", r)


def check_until(t, s):
    """watch --until a state that comes, that came before, and that never comes."""
    ended = {"succeeded": 0, "failed": 10, "cancelled": 11}
    for until in "planned running draining paused held succeeded failed cancelled".split():
        for state, usual in ended.items():
            came = until == state or (state == "succeeded" and until in ("planned", "running"))
            want = 0 if came else usual if until == "succeeded" else 5
            r = s.drover("watch", "c-7", "--until", until, "-o", "json", answer=lambda *args, state=state: (200, campaign(7, state=state)))
            t.ok(r.returncode == want and json.loads(r.stdout)["state"] == state and (f"error: c-7 is {state}, not {until}\n  next: drover get c-7\n" in r.stderr) == (want == 5), f"watch --until {until} of what has {state}: {want}", r)
    for state in ("held", "paused", "running"):
        r = s.drover("watch", "c-7", "--until", state, answer=lambda *args, state=state: (200, campaign(7, state=state)))
        t.ok(r.returncode == 0 and not r.stderr, f"of one that is {state} by now: 0", r)


def check_drawn(t, s):
    """What watch draws of a campaign whose first stage has ended: the end of all of it, and what all of it waits for."""
    stages = [{"name": "download", "state": "succeeded", "wait_text": None, "parts": {"total": 2}}, {"name": "train", "state": "running", "wait_text": "no free slot", "parts": {"total": 2}}]
    end = {"p10_seconds": 7200, "p50_seconds": 10800, "p90_seconds": 14400}
    one = {"stage": "download", "remaining": 0, "ends_in_seconds": None, "reason": "nothing is left"}
    two = {"stage": "download", "remaining": 2, "ends_in_seconds": 60, "low_seconds": 50, "high_seconds": 70}

    def drawn(forecast, **more):
        asked = []

        def answer(method, path, query, headers):
            if path.endswith("/forecast"):
                return forecast
            asked.append(path)
            return 200, campaign(7, state="running" if len(asked) < 3 else "cancelled", stages=stages, parts={"total": 4, "done": 2, "waiting": 2}, guidance=[], **{"waits_for": None, "ended_at": None, **more})
        out, status = s.terminal("watch", "c-7", keys=b"", answer=answer)
        return status, re.sub(r"\x1b\[[0-9]*[A-Z]", "", out), len(asked)

    for what, forecast, want in (("the first has ended", {**one, "campaign": {"known": True, "end": end}}, "ends in 3 h 00 m (2 h 00 m to 4 h 00 m)"),
                                 ("the first runs", {**two, "campaign": {"known": True, "end": end}}, "ends in 3 h 00 m (2 h 00 m to 4 h 00 m)"),
                                 ("with no certain end", {**two, "campaign": {"known": True, "end": {**end, "p90_seconds": None}}}, "ends in 3 h 00 m (2 h 00 m to never)"),
                                 ("its second cannot start", {**one, "campaign": {"known": True, "end": {"p10_seconds": None, "p50_seconds": None, "p90_seconds": None}}}, "end: not under the current limits"),
                                 ("its second is not known", {**one, "campaign": {"known": False, "end": None}}, "end: not known yet"),
                                 ("its first is not known", {**one, "remaining": 2, "reason": "needs 5 finished parts", "campaign": {"known": False, "end": None}}, "end: needs 5 finished parts")):
        status, out, _ = drawn((200, forecast))
        t.ok(status == 11 and want + "\r\n" in out and "nothing is left" not in out, f"watch on a terminal, {what}: {want}", out)
    for forecast, want in (({**one, "remaining": 2, "reason": "needs 5 finished parts"}, "needs 5 finished parts"), (one, "is not known yet")):
        r = s.drover("plan", "c-7", answer=lambda *args, v=forecast: (200, {**v, "campaign": {"known": False, "end": None}}))
        t.ok(r.returncode == 0 and r.stdout.endswith(f"\nForecast {want}\n"), f"plan says why there is none: {want}", r)
    for forecast in ((410, {"code": "archived", "detail": "c-7 is archived"}), (503, {"code": "unavailable", "detail": "busy"}), None):
        status, out, asked = drawn(forecast)
        t.ok(status == 11 and "error" not in out and "end" not in out and "cost 0.00 USD" in out and [x[1] for x in s.seen].count("/v1/campaigns/c-7/forecast") <= asked, "one that cannot be had is no error, and is not waited for", (out, asked))
    status, out, _ = drawn((200, {**one, "campaign": {"known": True, "end": end}}), **{"waits_for": "no free slot"})
    t.ok(status == 11 and "waits: no free slot" in out, "the reason is that of the campaign", out)


def check_long(t, s):
    """2,500 campaigns, of which the last one costs most."""
    rows = [campaign(n, budget={"spent_micro_usd": (n * 7919) % 2500}, parts={}, guidance=[]) for n in range(2500, 0, -1)]
    ids = [x["id"] for x in rows]
    page = pages(rows)
    answer = lambda method, path, query, headers: page(query)  # noqa: E731
    t.eq(s.drover("ls", "-o", "name", answer=answer).stdout.split(), ids, "ls -o name has all of 2,500")
    t.ok(len(s.seen) == 3 and not any(x[2].get("state") for x in s.seen), "in pages of 1,000", [x[2] for x in s.seen])
    t.eq([json.loads(x)["id"] for x in s.drover("ls", "-o", "jsonl").stdout.splitlines()], ids, "ls -o jsonl")
    whole = json.loads(s.drover("ls", "-o", "json").stdout)
    t.eq(([x["id"] for x in whole["campaigns"]], whole["next_page_token"]), (ids, None), "ls -o json")
    r = s.drover("ls", "-o", "csv", "--columns", "id")
    t.eq((r.stdout.split(), r.stderr), (["ID", *ids], ""), "ls -o csv")
    by_cost = [x["id"] for x in sorted(rows, key=lambda x: -x["budget"]["spent_micro_usd"])]
    t.eq(s.drover("ls", "-o", "name", "--sort", "-usd").stdout.split(), by_cost, "ls -o name --sort: all of them, not page by page")
    t.eq(s.drover("ls", "-o", "csv", "--columns", "id", "--sort", "-usd").stdout.split()[1:], by_cost, "ls -o csv --sort")
    t.eq(s.drover("ls", "-o", "name", "-n", "1200", "--state", "failed").stdout.split(), ids[:1200], "-n cuts what is longer")
    t.ok([x[2]["page_size"] for x in s.seen] == ["1000", "200"] and all(x[2]["state"] == "failed" for x in s.seen), "and asks for no more, with the state on every page", [x[2] for x in s.seen])
    r = s.drover("ls")
    t.ok(r.stdout.count("\n") == 51 and "there are more; next: drover ls -n 1000, or -o jsonl" in r.stderr, "a table has 50, and says that there are more", r)
    r = s.drover("ls", "-n", "1500")
    t.ok(r.stdout.count("\n") == 1501, "and as many as -n", r.stdout.count("\n"))
    r = s.drover("ls", answer=lambda *args: pages([])({}))
    t.ok("no campaigns; next: drover submit FILE" in r.stderr and "more" not in r.stderr, "none: what to do", r)


def check_cut(t, s):
    """Lists without pages: what is for programs has all that an answer can have, and what may be cut says so."""
    for words, path, key, screen in ((("pools",), "/v1/pools", "pools", 50), (("filesystems",), "/v1/filesystems", "filesystems", 200), (("endpoints",), "/v1/endpoints", "endpoints", 200),
                                     (("strays",), "/v1/strays", "strays", 200), (("parked",), "/v1/parked", "parked", 200), (("ls", "--billable"), "/v1/billable", "billable", 200), (("webhook", "deliveries", "w-1"), "/v1/webhooks/w-1/deliveries", "deliveries", 50)):
        for there in (0, screen - 1, screen + 10, 1010):
            def answer(method, at, query, headers, path=path, key=key, there=there):
                n = min(there, int(query["limit"]))
                return (200, {key: [{x: f"x-{i}" for x in ("name", "job_name", "id", "campaign")} for i in range(n)], "sum": {}, "total": there}) if at == path else NOT_FOUND

            for form, asked in (("table", screen), ("csv", 1000), ("jsonl", 1000), ("name", 1000), ("json", 1000)):
                r = s.drover(*words, "-o", form, answer=answer)
                rows = {"csv": r.stdout.count("\n") - 1, "json": r.stdout.count('"job_name"')}.get(form, r.stdout.count("\n"))
                whole = rows == min(there, 1000) or form == "table"
                t.ok(r.returncode == 0 and [x[2]["limit"] for x in s.seen] == [str(asked)] and whole and bool(re.search("there (may be|are).* more", r.stderr)) == (there > asked), f"{' '.join(words)} -o {form} of {there}", (r.returncode, rows, r.stderr, s.seen))
    for words, most in ((("pools",), 1000), (("ls", "--billable"), 1000), (("webhook", "deliveries", "w-1"), 1000), (("metrics", "c-7"), 1000), (("metrics", "c-7/a/1"), 2000), (("logs", "c-7/a/1"), 10000)):
        r = s.drover(*words, "-n", str(most + 1), answer=lambda *args: (200, {}))
        t.ok(r.returncode == 2 and f"at most {most}, not {most + 1}\n  next: write -n {most} or less\n" in r.stderr and not s.seen, f"{' '.join(words)} -n {most + 1}: refused with the most there can be", r)
        s.drover(*words, "-n", str(most))
        t.eq([x[2].get("limit") or x[2].get("page_size") or x[2].get("points") for x in s.seen], [str(most)], "... which is asked for")
    for form in ("table", "json", "csv"):
        r = s.drover("metrics", "c-7", "-o", form, answer=lambda *args: (200, {"series": [{"name": "loss"}], "next_page_token": "ab"}))
        t.ok(r.returncode == 0 and "there are more: " in r.stderr, f"metrics -o {form} says that there are more", r)


def check_stream(t, s):
    """A stream that the server ends: as when it is started again."""
    def stream(*lines):
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nretry: 2000\n\n" + "".join(lines).encode()

    def event(n):
        return f'id: {n}\nevent: alert\ndata: {{"id": {n}, "campaign": "c-1", "kind": "alert"}}\n\n'

    def answers(*rest):
        rest = list(rest)
        return lambda method, path, query, headers: rest.pop(0) if rest else stream()

    for gap in ((), (None,), ((503, {"code": "unavailable", "detail": "starting"}),)):
        r = s.drover("events", "-o", "jsonl", "--timeout", "6s", answer=answers(stream(event(5), event(7), "id: 8\nevent: al"), *gap, stream(event(9))))
        t.eq([json.loads(x)["id"] for x in r.stdout.splitlines()], [5, 7, 9], f"events goes on where the stream ended, {gap}")
        t.ok([x[3].get("Last-Event-ID") for x in s.seen][:2] == [None, "8"] and s.seen[2 + len(gap)][3]["Last-Event-ID"] == "9" and r.stderr.count("the stream ended; going on") == 1, "with the id of the last one, and says so once", (r.stderr, [x[3].get("Last-Event-ID") for x in s.seen]))
    r = s.drover("events", "-o", "jsonl", "--timeout", "3s", answer=answers(stream(event(5)), *[None] * 99))
    t.ok(r.returncode == 7 and "error: the stream ended: " in r.stderr and "next: " in r.stderr and len(r.stdout.splitlines()) == 1, "a server that does not come again: 7", r)
    r = s.drover("events", "--timeout", "3s", answer=answers(stream(event(5)), (401, {"code": "unauthenticated", "detail": "the token has expired"})))
    t.ok(r.returncode == 4 and "the token has expired" in r.stderr, "one that refuses says why", r)
    r = s.drover("events", "-o", "jsonl", "--timeout", "2s", answer=answers(stream("id: 12\nevent: resync\ndata: {}\n\n", event(13))))
    t.ok([json.loads(x)["id"] for x in r.stdout.splitlines()] == [13] and "events are missing here" in r.stderr, "what was deleted meanwhile is said, and is no event", r)


def check_doctor(t, s):
    """What leads and what the account allows cannot be read."""
    for status, code, word in ((500, "internal", "look at droverd's log"), (404, "not_found", "drover version"), (403, "forbidden", "DROVER_TOKEN_FILE")):
        def answer(method, path, query, headers, status=status, code=code):
            if path == "/v1/checks":
                return status, {"code": code, "detail": "no such luck"}
            return 200, {"version": "1", "now": "", "role": "viewer", "database": True, "aws": True, "quotas": [], "prices": [], "parked": []}

        r = s.drover("doctor", answer=answer)
        t.ok(r.returncode == 1 and f"account     account and leader are not known: no such luck (HTTP {status})\n  next: " in r.stdout and word in r.stdout, f"doctor when the checks answer {status}: bad, with the reason", r)
    dear = [{"instance_type": "ml.c5.xlarge", "use": use, "source": "prices_file", "read_at": None} for use in ("hosting", "storage", "training")]
    for n, mark in ((2, "✗ prices      none of training is known: nothing can start\n  next: allow "), (3, "✓ prices      1 of the file\n")):
        r = s.drover("doctor", answer=lambda *args, n=n: (200, {"version": "1", "now": "", "role": "viewer", "database": True, "aws": True, "checks": [], "quotas": [], "prices": dear[:n], "parked": [], "campaigns": []}))
        t.ok(mark in r.stdout, f"doctor of {n} prices: those of hosting and storage start no job", r)
    for age_s, status, told in ((30, 0, "none is known yet: they are read since droverd started\n  next: drover doctor, in a minute\n"), (90, 1, "none is known: nothing can start\n  next: allow ")):
        now, started = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago)) for ago in (0, age_s))
        there = {"version": "1", "now": now, "started_at": started, "role": "viewer", "database": True, "aws": True, "checks": [], "quotas": [], "prices": [], "parked": [], "campaigns": []}
        r = s.drover("doctor", answer=lambda *args, there=there: (200, there))
        t.ok(r.returncode == status and all(f"{'✗' if status else '✓'} {what:<11} {told}" in r.stdout for what in ("quotas", "prices")), f"doctor of a droverd that started {age_s} s ago and knows no quota and no price", r)


def check_once(t, s):
    """The reply of a change is lost. A route may ignore keys: a second token or webhook."""
    for method, path in (("POST", "/v1/tokens"), ("POST", "/v1/webhooks"), ("DELETE", "/v1/tokens/t"), ("PATCH", "/v1/limits")):
        for words, want in (((), 1), (("--idempotency-key", "k1"), 2)):
            sent = []

            def answer(got, path, query, headers, sent=sent):
                sent.extend([headers["Idempotency-Key"]] if got != "GET" else [])
                return (200, {}) if got == "GET" or len(sent) > 1 else None

            r = s.drover("api", method, path, "{}", *words, answer=answer)
            t.ok(len(sent) == want and r.returncode == (7 if want == 1 else 0) and (not words or set(sent) == {"k1"}), f"api {method} {path} {' '.join(words)}: sent {want} times when the reply is lost", (r, sent))


def check_smoke(t, s):
    """The reply to the submission of a smoke campaign is lost: what may run keeps its input, and is not paid a second time."""
    plan = {"stages": [{"price_micro_usd_per_hour": 1, "worst_case_micro_usd_per_part": 2, "quota": {"limit": 2}}]}

    def answers(*posts):
        posts = list(posts)

        def answer(method, path, query, headers):
            if path == "/v1/campaigns" and method == "POST":
                return (200, plan) if "dry_run" in query else posts.pop(0) if posts else None
            if path.startswith("/v1/smoke/"):
                return 200, {"folder": "s3://b/f/", "objects_deleted": 2}
            return 200, {"checks": []} if path == "/v1/checks" else campaign(9)
        return answer

    def sent():
        return ([x[3]["Idempotency-Key"] for x in s.seen if x[:2] == ("POST", "/v1/campaigns") and not x[2]], [x[0] for x in s.seen if x[1].startswith("/v1/smoke/")])

    starting = (503, {"code": "unavailable", "detail": "starting"})
    for posts in ((None, (201, {"id": "c-9"})), (None, starting, (409, {"code": "key_in_use", "detail": "wait"}), (201, {"id": "c-9"}))):
        r = s.drover("smoke", "-y", answer=answers(*posts))
        keys, objects = sent()
        t.ok(r.returncode == 0 and not r.stderr and len(keys) == len(posts) and len(set(keys)) == 1 and objects == ["PUT", "DELETE"], f"a lost reply is asked for again under its key, {len(posts)} times: one campaign, followed to its end", (r, keys, objects))
    for posts, word in (((), ""), ((None, (502, {})), "HTTP 502"), (((409, {"code": "conflict", "detail": "such a key"}),), "HTTP 409 such a key")):
        r = s.drover("smoke", "-y", answer=answers(*posts))
        keys, objects = sent()
        name = re.search(r"may have been submitted as (smoke-\w{12}): " + word, r.stderr)
        t.ok(r.returncode == 7 and objects == ["PUT"] and len(set(keys)) == 1 and name and f"drover cancel {name[1]}; drover api DELETE /v1/smoke/{name[1][6:]}" in r.stderr, f"one that stays unknown keeps its input, and says how it is ended {word}", (r, keys, objects))
    r = s.drover("smoke", "-y", answer=answers((422, {"code": "invalid", "errors": [{"pointer": "/stages/0", "message": "no role is named"}]})))
    t.ok(r.returncode == 2 and "no role is named" in r.stderr and sent()[1] == ["PUT", "DELETE"], "one that is refused leaves nothing", (r, sent()))


def check_numbers(t, s):
    """A number that is given is sent as it is, also 0; one that cannot be is refused, never taken for none."""
    asked = lambda: [x[2] for x in s.seen]  # noqa: E731
    answer = lambda *args: (200, {"metric": "loss", "rows": [], "settings": [], "metrics": [], "a": {}, "b": {}, "pace": None})  # noqa: E731
    for verb, *words in (("scaling", "c-7", "--metric", "loss"), ("compare", "c-7/a", "c-7/b")):
        for n in ("0", "7", None):
            r = s.drover(verb, *words, *(["--warm-up", n] if n else []), answer=answer)
            t.ok(r.returncode == 0 and [x.get("warm_up") for x in asked()] == [n], f"{verb} --warm-up {n}: asked for as it is", (r, asked()))
    r = s.drover("scaling", "c-7", "--metric", "loss", "--epoch", "1281167")
    t.eq([x.get("epoch") for x in asked()], ["1281167"], "an epoch of more than a million")
    for words in (("retry", "c-7", "--volume", "0", "-y"), ("scaling", "c-7", "--epoch", "0"), ("ls", "-n", "0"), ("logs", "c-7/a/1", "--attempt", "0"), ("quotas", "request", "ml.g5.xlarge", "--value", "0", "-y"), ("scaling", "c-7", "--warm-up", "-1")):
        r = s.drover(*words)
        t.ok(r.returncode == 2 and "  next: write a number: --" in r.stderr and not s.seen, f"drover {' '.join(words)}: usage, and nothing is asked", (r, s.seen))


def check_alone(t, s):
    """validate without a server, or without a token for it."""
    good, bad = (f"{TOP}/deploy/examples/{x}.yaml" for x in ("everything", "broken"))
    refused = lambda *args: (401, {"code": "unauthenticated", "detail": "a token is needed"})  # noqa: E731
    for answer, status, what in ((lambda *args: None, 7, "server at"), (refused, 4, "token for")):
        r = s.drover("validate", bad, answer=answer)
        t.ok(r.returncode == 2 and r.stderr.count("hint: ") > 1 and f"next: correct the file, then drover validate {bad}" in r.stderr, f"validate without a server shows the faults of the file: 2, not {status}", r)
        r = s.drover("validate", good)
        t.ok(r.returncode == status and f"valid as a file; prices, quotas and images were not checked: no {what} http://127.0.0.1:" in r.stderr, f"of a file without one it says what was not checked: {status}", r)
    env, s.env = s.env, {**s.env, "AWS_REGION": "eu-west-1"}
    r = s.drover("validate", f"{TOP}/deploy/examples/byoc-colossalai.yaml")
    s.env = env
    t.ok(r.returncode == 4 and "the image is in" not in r.stderr, "the region of a laptop is not droverd's: no image is refused for it", r)


def run():
    t, s = Tap(), Server()
    for check in (check_far, check_same, check_which, check_part, check_pipe, check_absent, check_plan, check_more, check_words, check_names, check_figures, check_quota, check_next, check_wait, check_until, check_drawn, check_long, check_cut, check_stream, check_doctor, check_once, check_smoke, check_numbers, check_alone):
        if os.environ.get("ONLY", "") in check.__name__:
            check(t, s)
    sys.exit(t.done())


if __name__ == "__main__":
    run()
