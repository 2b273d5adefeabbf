#!/usr/bin/python3
"""Notices by webhooks and mail. Aim: people hear of what needs them: once, signed, in spite of receivers that fail or hang and of droverd that dies;
and nothing private can be reached by one. Method: the real programs with real jobs; a receiver in Python that checks every signature with
its own hmac, a mail server in Python whose mails `email` reads; the database is only read, but for a name that the API would not take.
(ONLY=word runs the cases whose name has it)"""
import base64
import datetime
import hashlib
import hmac
import http.client
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import PROGRAMS, Tap, bin_of, patience, postgres, smtp, wait_for
from kit.stack import Stack

tap = Tap()
COLLECT_US, TRIES = 8000000, 9
PASSWORD = "pass:word of mail"


def stage(command, parts=1):
    return f"""version: 1
name: user
stages:
  - name: work
    image: drover/user:test
    fan_out: {{from: "s3://drover-test/meta/{'part-00000*' if parts == 1 else '*'}"}}
    command: {command}
    instance_type: ml.c5.xlarge
    max_runtime: 5m
    output: "s3://drover-test/out-{{campaign}}/{{part:05d}}/"
    verify: none
    canary: off
    breaker: off
"""


class Receiver(http.server.ThreadingHTTPServer):
    """/ok takes all, /thrice refuses the first three tries of a message, /never all, /hang does not answer before `let_go`, /moved leads elsewhere."""
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, elsewhere=""):
        self.got, self.lock, self.let_go, self.elsewhere, self.connections = [], threading.Lock(), threading.Event(), elsewhere, 0
        super().__init__(("127.0.0.1", 0), Answer)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self):
        self.connections += 1
        return super().get_request()

    def of(self, path, **like):
        with self.lock:
            return [m for m in self.got if m["path"] == path and all(m["body"].get("data", {}).get(k) == v for k, v in like.items())]


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        s, mid = self.server, self.headers["webhook-id"]
        with s.lock:
            s.got.append({"path": self.path, "id": mid, "timestamp": self.headers["webhook-timestamp"], "signature": self.headers["webhook-signature"],
                          "type": self.headers["Content-Type"], "text": text, "body": json.loads(text), "at": time.time()})
            nth = sum(m["path"] == self.path and m["id"] == mid for m in s.got)
        if self.path == "/hang":
            s.let_go.wait(300)
        status = {"/thrice": 200 if nth > 3 else 503, "/never": 500, "/moved": 302}.get(self.path, 200)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", s.elsewhere)
        self.send_header("Content-Length", "0")
        self.end_headers()


def signed(m, secret):
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    want = hmac.new(key, f"{m['id']}.{m['timestamp']}.".encode() + m["text"], hashlib.sha256).digest()
    return m["signature"] == "v1," + base64.b64encode(want).decode() and abs(int(m["timestamp"]) - m["at"]) < 300 and len(key) == 32


def add(s, path, kinds=None, **more):
    url = path if ":" in path else f"http://127.0.0.1:{s.receiver.port}{path}"
    return s.api("POST", "/webhooks", {"name": path[:60], "url": url, **({"kinds": kinds} if kinds else {}), **more})


def log_of(s, hook):
    return s.api("GET", f"/webhooks/{hook['id']}/deliveries?limit=1000")["deliveries"]


def tried(s, hook):
    """The delivery of a test, when it has ended."""
    d = s.api("POST", f"/webhooks/{hook['id']}/test")
    return wait_for(lambda: next((x for x in log_of(s, hook) if x["id"] == d["id"] and x["state"] != "waiting"), None), 30, "the end of a test")


def drover(s, *args):
    env = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{s.ports['droverd0']}", "DROVER_TOKEN_FILE": s.token_file}
    return subprocess.run([bin_of("release") + "/drover", *args], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)


def restart(s, aws_ca="", **env):
    s.kill("droverd0")
    s.start_droverd(0, {**({"AWS_CA_BUNDLE": aws_ca} if aws_ca else {}), **{f"DROVER_{k.upper()}": str(v) for k, v in env.items()}})


def case_commands(s):
    url = f"http://127.0.0.1:{s.receiver.port}/cli"
    made = drover(s, "webhook", "add", "on call", url, "--on", "held,failed", "-o", "json")
    hook = json.loads(made.stdout)
    tap.ok(made.returncode == 0 and hook["kinds"] == ["held", "failed"] and hook["url"] == url, "webhook add", made)
    tested = drover(s, "webhook", "test", hook["id"])
    tap.ok(tested.returncode == 0 and "delivered: answered 200" in tested.stdout, "webhook test says what came of it", tested)
    got = s.receiver.of("/cli")
    tap.ok(len(got) == 1 and signed(got[0], hook["secret"]) and got[0]["body"]["type"] == "test" and got[0]["type"] == "application/json",
           "it arrives once, and an independent HMAC agrees with its signature", got)
    tap.ok(not signed({**got[0], "text": got[0]["text"] + b" "}, hook["secret"]) and not signed(got[0], "whsec_" + base64.b64encode(b"x" * 32).decode()),
           "which no other body and no other secret has")
    listed, log = drover(s, "webhook"), drover(s, "webhook", "deliveries", hook["id"])
    tap.ok(hook["id"] in listed.stdout and "delivered" in listed.stdout and "test" in log.stdout, "webhook ls and deliveries show it", (listed, log))
    shown = [s.raw("GET", p)[1].decode() for p in ("/v1/webhooks", f"/v1/webhooks/{hook['id']}", "/v1/audit")]
    tap.ok(all(hook["secret"][6:] not in x for x in shown), "the secret is not shown again", shown)
    moved = drover(s, "webhook", "set", hook["id"], url + "/moved", "--on", "lost", "--quiet-hours", "22:00-07:00", "-o", "json")
    now = json.loads(moved.stdout)
    tap.eq([now[k] for k in ("url", "kinds", "quiet", "name")], [url + "/moved", ["lost"], "22:00-07:00", "on call"], "webhook set changes what it is told")
    tap.ok(drover(s, "webhook", "set", hook["id"], "--quiet-hours", "none").returncode == 0 and tried(s, hook)["state"] == "delivered" and len(s.receiver.of("/cli/moved")) == 1 and signed(s.receiver.of("/cli/moved")[0], hook["secret"]),
           "what is sent then goes to the new address, signed as before")
    row = s.api("GET", "/audit?action=webhook.change")["audit"][-1]
    tap.eq([row["before"], row["detail"]], [{"url": url[:url.rindex("/")], "kinds": ["held", "failed"], "quiet": None}, {"url": url[:url.rindex("/")], "kinds": ["lost"], "quiet": "22:00-07:00"}], "the audit has before and after, without the path")
    slack = s.api("POST", "/webhooks", {"name": "s", "url": f"http://127.0.0.1:{s.receiver.port}/secret-path", "format": "slack"})
    shown = [s.raw("GET", p)[1].decode() for p in ("/v1/webhooks", f"/v1/webhooks/{slack['id']}", "/v1/audit")]
    tap.ok(all("secret-path" not in x for x in shown), "nor is the path of Slack's address, which is one", shown)
    tried(s, slack)
    teams = add(s, "/teams", format="teams")
    tried(s, teams)
    card = s.receiver.of("/teams")[0]["body"]["attachments"][0]
    tap.ok("a test of this webhook" in s.receiver.of("/secret-path")[0]["body"]["text"] and card["contentType"] == "application/vnd.microsoft.card.adaptive"
           and card["content"]["body"][0]["inlines"][0]["text"] == "a test of this webhook", "Slack and Teams get their own forms", card)
    asked = drover(s, "webhook", "rm", hook["id"])
    removed = [drover(s, "webhook", "rm", h["id"], "-y").returncode for h in (hook, slack, teams)]
    tap.ok(asked.returncode == 2 and removed == [0] * 3 and s.api("GET", "/webhooks")["webhooks"] == [], "webhook rm wants -y", (asked, removed))
    wrong = [drover(s, *w).returncode for w in (("webhook", "test", "w-999"), ("webhook", "add", "x"), ("webhook", "add", "x", "ftp://x/"), ("webhook", "add", "x", "http://u:p@x/"),
                                                ("webhook", "set", "w-999", "--on", "held"), ("webhook", "set", "w-1"), ("webhook", "add", "x", "http://x/", "--on", "helt"), ("webhook", "add", "x", "http://x/", "--project", "nobody"))]
    tap.eq(wrong, [3, 2, 2, 2, 3, 2, 2, 3], "what is wrong is refused")


def case_projects(s):
    def of_a(method, path, body=None):
        c = http.client.HTTPConnection("127.0.0.1", s.ports["droverd0"], timeout=patience(20))
        c.request(method, "/v1/webhooks" + path, json.dumps(body) if body else None, {"Content-Type": "application/json", "Authorization": "Bearer " + token, **({"If-Match": "*"} if method == "PATCH" else {})})
        got = c.getresponse()
        return got.status, json.loads(got.read())
    s.submit(stage('[sleep, "0"]').replace("name: user", "name: a\nproject: a"))
    token = s.api("POST", "/tokens", {"name": "a", "role": "admin", "projects": ["a"]})["token"]
    every = add(s, "/every", ["held"])
    url = f"http://127.0.0.1:{s.receiver.port}/a"
    refused = [of_a("POST", "", {"name": "x", "url": url})[0], of_a("POST", "", {"name": "x", "url": url, "project": "default"})[0],
               of_a("GET", f"/{every['id']}")[0], of_a("POST", f"/{every['id']}/test")[0], of_a("GET", f"/{every['id']}/deliveries")[0], of_a("DELETE", f"/{every['id']}")[0],
               of_a("PATCH", f"/{every['id']}", {"name": "mine"})[0]]
    tap.eq(refused, [403, 404, 404, 404, 404, 404, 404], "an admin of a project has no say about the webhooks of others")
    status, own = of_a("POST", "", {"name": "x", "url": url, "project": "a"})
    tap.ok(status == 201 and [w["id"] for w in of_a("GET", "")[1]["webhooks"]] == [own["id"]], "but has and sees its own", own)
    one = s.submit(stage('[sleep, "0"]').replace("name: user", "name: b\nproject: a"))
    other = s.submit(stage('[sleep, "0"]'))
    for cid in (one, other):
        wait_for(lambda c=cid: s.ended(c), 60, "the end")
    wait_for(lambda: s.receiver.of("/a", campaign=one, kind="done"), 30, "its notice")
    every_done = add(s, "/later")
    tap.ok(not s.receiver.of("/a", campaign=other) and not s.receiver.of("/every"), "a webhook is told of its project and of what it asked for")
    done = s.receiver.of("/a", campaign=one)[0]
    tap.ok(signed(done, own["secret"]) and done["body"]["type"] == "campaign.done" and done["body"]["data"]["state"] == "succeeded" and "succeeded" in done["body"]["data"]["title"],
           "the end of a campaign is told", done)
    tap.ok(not log_of(s, every_done), "one that is made later hears nothing of it")
    for h in (every, own, every_done):
        s.api("DELETE", f"/webhooks/{h['id']}")


def case_failures(s):
    """Seven parts fail, some receivers do not answer well."""
    hooks = {p: add(s, p, ["failed", "done"]) for p in ("/ok", "/thrice", "/never")}
    cid = s.submit(stage('[fail, "broken"]', 7))
    wait_for(lambda: s.ended(cid), 60, "the end")
    wait_for(lambda: sum(m["body"]["data"]["failed"] for m in s.receiver.of("/ok", campaign=cid, kind="failed")) == 7, 30, "the notice")
    got = s.receiver.of("/ok", campaign=cid, kind="failed")
    span = s.sql(f"SELECT (1e6 * extract(epoch FROM max(at) - min(at)))::bigint FROM event WHERE campaign_id = {cid[2:]} AND kind = 'part.state' AND detail->>'to' = 'failed'")
    tap.ok(len(got) == 1 or int(span) > COLLECT_US, f"seven failures within {int(span) / 1e6:.1f} s are one message", got)
    tap.ok(got[0]["body"]["data"]["title"].startswith("7 parts of user") and sum(c["parts"] for c in got[0]["body"]["data"]["causes"]) == 7 and len(got[0]["body"]["data"]["causes"]) == 1
           and got[0]["body"]["data"]["command"] == f"drover failures {cid}", "it says how many, why, and the next command", got[0]["body"])
    wait_for(lambda: all(x["state"] == "delivered" for x in log_of(s, hooks["/thrice"])) and len(log_of(s, hooks["/thrice"])) == 2, 60, "the receiver that refuses three times")
    tap.eq([x["tries"] for x in log_of(s, hooks["/thrice"])], [4, 4], "who refuses three times gets it at the fourth try")
    by_id = {}
    for m in s.receiver.of("/thrice", campaign=cid):
        by_id.setdefault(m["id"], []).append(m)
    tap.ok(all(len(ms) == 4 and len({m["text"] for m in ms}) == 1 and all(signed(m, hooks["/thrice"]["secret"]) for m in ms) for ms in by_id.values()) and len(by_id) == 2,
           "each try has the same id and body, and a signature", by_id)
    wait_for(lambda: all(x["state"] == "failed" for x in log_of(s, hooks["/never"])) and len(log_of(s, hooks["/never"])) == 2, 120, "what is given up")
    given_up = log_of(s, hooks["/never"])
    tap.ok(all(x["tries"] == TRIES and x["status"] == 500 and x["problem"] == "answered 500" and x["next_at"] is None for x in given_up), f"after {TRIES} tries it is given up, and shown", given_up)
    shown = {w["id"]: w for w in s.api("GET", "/webhooks")["webhooks"]}
    first = s.receiver.of("/ok", campaign=cid, kind="failed")[0]
    again = drover(s, "webhook", "resend", hooks["/ok"]["id"], next(x["id"] for x in log_of(s, hooks["/ok"]) if x["message_id"] == first["id"]))
    twice = [m for m in s.receiver.of("/ok", campaign=cid) if m["id"] == first["id"]]
    tap.ok(again.returncode == 0 and len(twice) == 2 and len({m["text"] for m in twice}) == 1 and signed(twice[1], hooks["/ok"]["secret"]), "webhook resend sends the same once more", (again, twice))
    tap.eq(drover(s, "webhook", "resend", hooks["/ok"]["id"], "d-999999").returncode, 5, "of what is not there it is refused")
    tap.eq([(shown[hooks[p]["id"]]["last"], shown[hooks[p]["id"]]["failed"]) for p in hooks], [("delivered", 0), ("delivered", 0), ("failed", 2)], "each webhook shows how the last one ended")
    for h in hooks.values():
        s.api("DELETE", f"/webhooks/{h['id']}")


def case_kinds(s):
    """Held, stuck, budget, lost."""
    hook = add(s, "/kinds")

    def told(kind, cid, what):
        m = wait_for(lambda: next(iter(s.receiver.of("/kinds", kind=kind, **({"campaign": cid} if cid else {}))), None), 60, f"the notice: {what}")
        tap.ok(signed(m, hook["secret"]), f"{what} is told", m)
        return m["body"]["data"]
    held = s.submit(stage('[fail, "broken"]', 7).replace("breaker: off", "").replace("canary: off", ""))
    data = told("held", held, "a campaign that its breaker holds")
    tap.ok("is held: the same failure came again" in data["title"] and data["command"].startswith(f"drover retry {held}"), "with the command that mends it", data)
    stuck = s.submit(stage('[sleep, "0"]').replace("ml.c5.xlarge", "ml.m5.large").replace("name: user", "name: poor"))
    data = told("stuck", stuck, "a campaign that waits for a quota of 0")
    tap.ok("quota 0 for ml.m5.large" in data["title"] and data["command"] == "drover quotas", "with what it waits for", data)
    slow = s.submit(stage('[sleep, "0"]').replace("ml.c5.xlarge", "ml.m5.large").replace("name: user", "name: slow\nlimits: {deadline: 2021-12-01T18:00:00Z}"))
    late = wait_for(lambda: next((m for m in s.receiver.of("/kinds", kind="stuck", campaign=slow) if "late_since" in m["body"]["data"]), None), 60, "the notice of a deadline")["body"]["data"]
    tap.eq([late["title"], late["text"], late["command"]], [f"slow {slow} is late: its deadline was 2021-12-01T18:00:00Z", "Nothing is stopped by a deadline: it goes on.", f"drover deadline {slow}"], "one that has not ended by its deadline is told as late")
    wait_for(lambda: len(s.receiver.of("/kinds", kind="stuck", campaign=slow)) == 2, 60, "that it is stuck, too")
    tap.eq(sum("late_since" in m["body"]["data"] for m in s.receiver.of("/kinds", campaign=slow)), 1, "once, though it was looked at again and again")
    dear = s.submit(stage('[sleep, "3"]').replace("name: user", "name: dear\nbudget: {total: 0.12 USD, warn_at: [0.1%]}"))
    data = told("budget", dear, "a threshold of a budget")
    tap.ok(data["title"] == f"0.1 % of the budget of dear {dear} are spent" and data["budget"]["limit_micro_usd"] == 120000 and data["budget"]["spent_micro_usd"] >= 120, "with both sums", data)
    wait_for(lambda: s.receiver.of("/kinds", kind="done", campaign=dear), 60, "its end")
    for cid in (held, stuck, slow):
        s.api("POST", f"/campaigns/{cid}:cancel", {})
        wait_for(lambda c=cid: s.ended(c), 60, "the end")
    s.kill("droverd0")
    s.stop_pg("fast")
    subprocess.run(["cp", "-a", s.sock + "/data", s.sock + "/before"], check=True)
    s.start_pg()
    s.start_droverd(0)
    s.submit(stage('[sleep, "300"]'))
    wait_for(lambda: any(j["status"] == "InProgress" for j in s.live_jobs()), 30, "its job")
    s.kill("droverd0")
    s.stop_pg("immediate")
    shutil.rmtree(s.sock + "/data")
    os.rename(s.sock + "/before", s.sock + "/data")
    s.start_pg()
    s.start_droverd(0)
    data = told("lost", None, "a job that no row knows")
    tap.ok(data["title"] == "1 stray that no campaign knows" and data["command"] == "drover strays", "with the command that shows it", data)
    for x in s.api("GET", "/strays")["strays"]:
        s.api("POST", f"/strays/{x['job_name']}:stop", {})
    wait_for(lambda: s.api("GET", "/strays")["sum"]["running"] == 0, 30, "its end")
    tap.eq(len(s.receiver.of("/kinds", kind="budget")), 1, "a threshold is told once")
    s.api("DELETE", f"/webhooks/{hook['id']}")


def case_quiet(s):
    """What happens in quiet hours is told at their end."""
    now = datetime.datetime.now(datetime.timezone.utc)
    hours = [(now + datetime.timedelta(hours=h)).strftime("%H:%M") for h in (-2, 3)]
    made = drover(s, "webhook", "add", "night", f"http://127.0.0.1:{s.receiver.port}/quiet", "--quiet-hours", "-".join(hours), "-o", "json")
    quiet, loud = json.loads(made.stdout), add(s, "/loud", quiet="-".join(reversed(hours)))
    cid = s.submit(stage('[sleep, "0"]'))
    wait_for(lambda: s.receiver.of("/loud", campaign=cid, kind="done"), 60, "the one that is not in its quiet hours")
    waits = [x for x in log_of(s, quiet) if x["campaign"] == cid]
    tap.ok(len(waits) == 1 and waits[0]["tries"] == 0 and not s.receiver.of("/quiet") and waits[0]["next_at"][11:16] == hours[1], f"in quiet hours ({quiet['quiet']}) it waits for their end", waits)
    tap.ok(tried(s, quiet)["state"] == "delivered", "a test does not")
    at = lambda t, a, b: f"after_quiet_hours('2026-03-01 {t}Z', {a}, {b}) AT TIME ZONE 'UTC'"  # noqa: E731
    rows = {at("21:59", 1320, 420): "2026-03-01 21:59", at("22:00", 1320, 420): "2026-03-02 07:00", at("06:59", 1320, 420): "2026-03-01 07:00", at("07:00", 1320, 420): "2026-03-01 07:00",
            at("12:00", 720, 780): "2026-03-01 13:00", at("11:59", 720, 780): "2026-03-01 11:59", at("13:00", 720, 780): "2026-03-01 13:00", at("12:00", "NULL", "NULL"): "2026-03-01 12:00"}
    tap.eq([s.sql(f"SELECT to_char({q}, 'YYYY-MM-DD HH24:MI')") for q in rows], list(rows.values()), "hours over midnight and by day")
    wrong = [drover(s, "webhook", "add", "x", "http://x/", "--quiet-hours", h).returncode for h in ("22:00", "24:00-07:00", "07:00-07:00")]
    tap.eq(wrong, [2, 2, 2], "other hours are refused")
    for h in (quiet, loud):
        s.api("DELETE", f"/webhooks/{h['id']}")


def case_killed(s):
    """droverd dies again and again while things happen and are told."""
    hook = add(s, "/killed", ["failed", "done"])
    slow = add(s, "/hang", ["done"])
    campaigns = [s.submit(stage('[fail, "broken"]' if i % 2 else '[sleep, "0"]', 7).replace("name: user", f"name: k{i}")) for i in range(4)]
    for i in range(6):
        wait_for(lambda n=i: len(s.receiver.of("/killed")) > n or all(s.ended(c) for c in campaigns), 60, "something to be told")
        s.kill("droverd0")
        s.start_droverd(0)
    for c in campaigns:
        wait_for(lambda c=c: s.ended(c), 60, "the end")
    done = wait_for(lambda: len({m["body"]["data"]["campaign"] for m in s.receiver.of("/killed", kind="done")}) == 4 or None, 60, "every end")
    failed = lambda c: {m["id"]: m["body"]["data"]["failed"] for m in s.receiver.of("/killed", kind="failed", campaign=c)}  # noqa: E731
    wait_for(lambda: all(sum(failed(c).values()) == 7 for c in campaigns[1::2]), 60, "every failure")
    ids = {c: {m["id"] for m in s.receiver.of("/killed", kind="done", campaign=c)} for c in campaigns}
    tap.ok(done and all(len(x) == 1 for x in ids.values()), "kill -9 six times: the end of each campaign is told under one id", ids)
    tap.ok(all(sum(failed(c).values()) == 7 for c in campaigns[1::2]) and not any(failed(c) for c in campaigns[::2]), "and each failure once", [failed(c) for c in campaigns])
    wait_for(lambda: all(x["state"] == "delivered" for x in log_of(s, hook)), 60, "that all is written down")
    tap.ok(all(signed(m, hook["secret"]) for m in s.receiver.of("/killed")), "every message is signed")
    wait_for(lambda: s.receiver.of("/hang"), 60, "the slow one")
    s.receiver.let_go.set()
    wait_for(lambda: len(log_of(s, slow)) == 4 and all(x["state"] == "delivered" for x in log_of(s, slow)), 60, "the slow one's answers")
    tap.ok(len({m["id"] for m in s.receiver.of("/hang")}) == 4, "who answers at last has got all, too")
    s.receiver.let_go.clear()
    for h in (hook, slow):
        s.api("DELETE", f"/webhooks/{h['id']}")


def case_hanging(s):
    """Receivers that do not answer, and tables that somebody has locked, do not hold up the leader."""
    restart(s, webhook_timeout_us=60000000, lease_length_us=9000000, lease_renew_us=1000000)  # one of 1 s lapses on a busy machine
    hooks = [add(s, "/hang") for _ in range(8)]
    for h in hooks:
        s.api("POST", f"/webhooks/{h['id']}/test")
    wait_for(lambda: len(s.receiver.of("/hang")) - s.hung == 8, 60, "eight requests that hang")
    epoch = s.sql("SELECT epoch FROM lease")
    began = time.time()
    cid = s.submit(stage('[sleep, "0"]', 7))
    wait_for(lambda: s.ended(cid), 60, "the end")
    hung = time.time() - began < 50 and all(x["state"] == "waiting" for h in hooks for x in log_of(s, h))
    tap.ok(hung and s.sql("SELECT epoch FROM lease") == epoch, f"a campaign of 7 parts ends in {time.time() - began:.1f} s while eight receivers hang, under the same leader")
    ok = add(s, "/free")
    tap.ok(tried(s, ok)["state"] == "delivered" and all(sum(x["tries"] for x in log_of(s, h)) == 1 for h in hooks), "others are delivered to; each that hangs has one connection", [log_of(s, h) for h in hooks])
    lock = subprocess.Popen([postgres.BIN_DIR + "/psql", "-h", s.sock, "-U", "drover", "-d", "postgres", "-XqAt"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lock.stdin.write("BEGIN; LOCK TABLE webhook, webhook_delivery, notice, notice_cursor, notice_watch IN ACCESS EXCLUSIVE MODE; SELECT 'locked';\n")
    lock.stdin.flush()
    lock.stdout.readline()
    cid = s.submit(stage('[sleep, "0"]', 7))
    wait_for(lambda: s.ended(cid), 60, "the end")
    tap.ok(lock.poll() is None and s.sql("SELECT epoch FROM lease") == epoch, "nor does a lock on all tables of notices hold up a campaign")
    lock.communicate("ROLLBACK;\n", timeout=patience(20))
    wait_for(lambda: s.receiver.of("/free", kind="done", campaign=cid), 60, "the notice behind the lock")
    tap.ok(True, "what happened meanwhile is told when it is gone")
    for h in [*hooks, ok]:
        s.api("DELETE", f"/webhooks/{h['id']}")
    s.receiver.let_go.set()


def mail_settings(s, server, password=PASSWORD, **more):
    with open(s.dir + "/smtp-credentials", "w") as f:
        f.write(f"drover:{password}\n")
    return {"smtp_url": server.url, "smtp_from": "drover@example.org", "smtp_credentials_file": f.name, "smtp_ca_file": s.certificate[0],
            "public_url": "http://drover.example.org", **more}


def case_mail(s):
    """To people by a server that offers STARTTLS and wants a password."""
    post = lambda url, **more: s.raw("POST", "/v1/webhooks", json.dumps({"name": "x", "url": url, **more}).encode(), {"Content-Type": "application/json"})[:2]  # noqa: E731
    status, without = post("mailto:a@example.com")
    tap.ok(status == 422 and b"smtp_url" in without, "without a server of mail mailto: is refused, with the setting's name", without)
    s.certificate = smtp.certificate(s.dir)
    server = smtp.Server(s.certificate, users={"drover": PASSWORD})
    restart(s, **mail_settings(s, server))
    wrong = [post("mailto:" + x)[0] for x in ("", "a", "a@", "@b", "a@b c", "a@b,", "a@b?bcc=c@d", "a@b%0d%0aBcc:c@d", "<a@b>", "a@b\r\nRCPT TO:<c@d>", "a@b@c", "ä@b", "a@" + 190 * "b", ",".join(11 * ["a@b"]))]
    wrong += [post("mailto:a@b", format="json")[0], post("http://example.com/", format="email")[0]]
    tap.eq(wrong, [422] * 16, "addresses that are none, too many of them, and formats that do not go with them are refused")
    made = drover(s, "webhook", "add", "on call", "mailto:a@example.com,b@example.com")
    hook = s.api("GET", "/webhooks")["webhooks"][0]
    tap.ok(made.returncode == 0 and "secret" not in made.stdout + made.stderr and [hook["format"], hook["url"]] == ["email", "mailto:a@example.com,b@example.com"], "webhook add mailto: needs no format and has no secret", (made, hook))
    tested = drover(s, "webhook", "test", hook["id"])
    tap.ok(tested.returncode == 0 and "delivered: answered 250" in tested.stdout, "webhook test says what came of it", (tested, log_of(s, hook)))
    mail = server.of("a")[0]
    d = log_of(s, hook)[0]
    tap.eq([mail.sender, mail.to, mail["From"], mail["To"], mail["Subject"], mail["Message-ID"], mail["Auto-Submitted"], mail.parsed.get_content_type(), mail.parsed.get_content_charset(), len(server.mails)],
           ["drover@example.org", ["a@example.com", "b@example.com"], "drover <drover@example.org>", "a@example.com, b@example.com", "a test of this webhook",
            f"<{d['message_id']}.{d['id']}@example.org>", "auto-generated", "text/plain", "utf-8", 1], "one mail with its envelope and headers")
    tap.ok(abs(mail["Date"].datetime.timestamp() - time.time()) < 300 and mail.text().splitlines() == ["a test of this webhook", "", "It works: drover's notices arrive here.", "", "drover webhook", "http://drover.example.org/webhooks"],
           "its date, and a text that leads to the dashboard", (mail["Date"], mail.text()))
    seen = [(tls, line.split()[0]) for tls, line in server.said]
    tap.ok(seen[:2] == [(False, "EHLO"), (False, "STARTTLS")] and all(tls for tls, _ in seen[2:]) and (True, "AUTH") in seen and seen[-1] == (True, "QUIT"), "credentials and mail are said under TLS only", seen)
    hooks = {to: add(s, f"mailto:{to}@example.com", ["failed", "done"]) for to in ("ok", "later", "never", "spam", "mute")}
    cid = s.submit(stage('[fail, "broken"]', 7))
    s.sql(f"UPDATE campaign SET name = E'größere Läufe 日本語日本語 =?utf-8?q?x?=\\r\\nBcc: c@example.com\\r\\n\\r\\nx' WHERE id = {cid[2:]}")  # the API takes letters and digits only
    name = "größere Läufe 日本語日本語 =?utf-8?q?x?=  Bcc: c@example.com    x"
    wait_for(lambda: s.ended(cid), 60, "the end")
    wait_for(lambda: len(server.of("ok")) == 2 and all(x["state"] != "waiting" for h in hooks.values() for x in log_of(s, h)), 60, "the mails")
    done = next(m for m in server.of("ok") if m["Subject"].endswith(" failed") and "parts of" not in m["Subject"])
    failed = next(m for m in server.of("ok") if "parts of" in m["Subject"])
    tap.ok(failed["Subject"] == f"7 parts of {name} {cid} failed" and "größere Läufe 日本語日本語 =?utf-8?q?x?=" in failed.text() and f"drover failures {cid}" in failed.text() and failed.text().splitlines()[-1] == f"http://drover.example.org/c/{cid[2:]}"
           and all(len(line) <= 78 for line in failed.data.split(b"\r\n")) and failed.data.isascii() and not failed.parsed.defects and "Bcc" not in failed.parsed and all(", ".join(m.to) == m["To"] for m in server.mails), "seven failures are one mail, and a name of several lines is one in its subject", (failed, failed["Subject"]))
    tap.ok(done["Subject"] == f"{name} {cid} failed" and "0 parts done, 7 failed" in done.text(), "and the end is one", (done["Subject"], done.text()))
    tries = {to: sorted((x["state"], x["tries"], x["status"], x["problem"]) for x in log_of(s, h)) for to, h in hooks.items()}
    tap.eq(tries, {"ok": [("delivered", 1, 250, None)] * 2, "later": [("delivered", 4, 250, None)] * 2, "mute": [("delivered", 1, 250, None)] * 2,
                   "never": [("failed", 1, 550, "never@example.com answered 550: 5.1.1 nobody of that name")] * 2, "spam": [("failed", 1, 554, "spam@example.com answered 554: 5.7.1 we do not want it")] * 2},
           "4xx is tried again, 5xx is final, and nobody waits for an answer to QUIT")
    by_id = {}
    for m in server.of("later"):
        by_id.setdefault(m["Message-ID"], []).append(m.data)
    tap.ok(sorted(len(x) for x in by_id.values()) == [4, 4] and all(len(set(x)) == 1 for x in by_id.values()), "each try has the same Message-ID and bytes", by_id)
    tap.eq(len({m["Message-ID"] for m in server.mails}), 11, "and each delivery its own")
    took = max(x["took_microseconds"] for x in log_of(s, hooks["mute"]))
    tap.ok(took < 4000000, f"without an answer to QUIT one takes {took / 1e6:.1f} s")
    there = drover(s, "webhook", "set", hook["id"], f"http://127.0.0.1:{s.receiver.port}/was-mail", "-o", "json")
    back = drover(s, "webhook", "set", hook["id"], "mailto:back@example.com", "--quiet-hours", "00:00-23:59", "-o", "json")
    tap.eq([json.loads(x.stdout)["format"] for x in (there, back)], ["json", "email"], "webhook set leads from mail to a program and back")
    tap.ok(tried(s, hook)["state"] == "delivered" and len(server.of("back")) == 1, "a test goes to the new address")
    with open(s.dir + "/droverd0.log") as f:
        tap.ok(PASSWORD not in f.read(), "the password is not in the log")
    for h in [hook, *hooks.values()]:
        s.api("DELETE", f"/webhooks/{h['id']}")


def case_mail_addresses(s):
    """One refused address keeps the mail from no other one."""
    s.certificate = smtp.certificate(s.dir)
    server = smtp.Server(s.certificate, users={"drover": PASSWORD})
    restart(s, **mail_settings(s, server, webhook_timeout_us=20000000))
    nobody = "never@example.com answered 550: 5.1.1 nobody of that name"
    hook = add(s, "mailto:never@example.com,a@example.com,b@example.com,grey@example.com", ["done"])
    cid = s.submit(stage('[sleep, "0"]'))
    wait_for(lambda: s.ended(cid), 60, "the end")
    d = wait_for(lambda: next((x for x in log_of(s, hook) if x["state"] != "waiting"), None), 60, "the end of the mail")
    tap.eq([(m.to, m["To"]) for m in server.mails], [(to, "never@example.com, a@example.com, b@example.com, grey@example.com") for to in (["a@example.com", "b@example.com"], ["grey@example.com"])],
           "the others get it once, and one that is not taken now later, alone")
    tap.eq([len({m.data for m in server.mails}), d["state"], d["tries"], d["status"], d["problem"]], [1, "delivered", 3, 250, nobody], "the log names the refused address and why")
    tap.ok(sum("RCPT TO:<never@" in said for _, said in server.said) == 1, "which is asked for once", server.said)
    tap.eq(s.api("GET", f"/webhooks/{hook['id']}")["last"], "partly", "the webhook shows that somebody did not get it")
    tested = drover(s, "webhook", "test", hook["id"])
    tap.ok(tested.returncode == 1 and "not delivered to everybody: " + nobody in tested.stderr and len(server.of("a")) == 2, "webhook test says so, too", tested)
    mended = drover(s, "webhook", "set", hook["id"], "mailto:new@example.com,a@example.com,b@example.com")
    again = drover(s, "webhook", "resend", hook["id"], d["id"])
    tap.ok(mended.returncode == again.returncode == 0 and server.mails[-1].to == ["new@example.com"] and len(server.of("a")) == 2, "sent once more it goes to the mended address alone", (again, server.mails))
    everybody = drover(s, "webhook", "resend", hook["id"], d["id"])
    tap.ok(everybody.returncode == 0 and server.mails[-1].to == ["new@example.com", "a@example.com", "b@example.com"], "and once more to all when all have it", (everybody, server.mails))
    slow = add(s, "mailto:never@example.com,slow@example.com", ["held"])
    tap.eq(tried(s, slow)["problem"], nobody, "a server that takes its time after it refused one")
    gone = add(s, "mailto:never@example.com,never2@example.com", ["held"])
    d = tried(s, gone)
    tap.eq([d["state"], d["status"], d["problem"]], ["failed", 550, nobody + "; " + nobody.replace("never@", "never2@")], "when all are refused it is given up")
    for h in (hook, slow, gone):
        s.api("DELETE", f"/webhooks/{h['id']}")


def case_mail_servers(s):
    """A server without TLS gets nothing; what an operator can mend is tried again."""
    s.certificate = smtp.certificate(s.dir)
    plain, server = smtp.Server(s.certificate, "plain", {"drover": PASSWORD}), smtp.Server(s.certificate, "smtps", {"drover": PASSWORD})
    restart(s, **mail_settings(s, plain))
    hook = add(s, "mailto:a@example.com", ["done"])
    d = tried(s, hook)
    tap.ok(d["state"] == "failed" and "TLS" in d["problem"] and d["status"] is None and {line.split()[0] for _, line in plain.said} <= {"EHLO", "STARTTLS", "QUIT"}, "a server without STARTTLS hears neither credentials nor mail", (d, plain.said))
    restart(s, s.certificate[0], **mail_settings(s, server, smtp_ca_file=""))
    d = tried(s, hook)
    tap.ok(d["state"] == "failed" and "certificate" in d["problem"] and not server.said, "nor does one whose certificate nobody vouches for, but for AWS", (d, server.said))
    restart(s, **mail_settings(s, server, "of-last-year", webhook_retry_us=20000))
    cid = s.submit(stage('[sleep, "0"]'))
    waits = wait_for(lambda: next((x for x in log_of(s, hook) if x["campaign"] == cid and x["tries"] > 2 and x["problem"]), None), 60, "the third try")
    tap.ok(waits["state"] == "waiting" and waits["problem"] == "answered 535: 5.7.8 wrong name or password" and not server.mails, "a wrong password is tried again", waits)
    restart(s, **mail_settings(s, server))
    wait_for(lambda: server.of("a"), 30, "the mail")
    wait_for(lambda: log_of(s, hook)[0]["state"] == "delivered", 30, "that it is written down")
    tap.ok([m["Message-ID"] for m in server.mails] == [f"<{waits['message_id']}.{waits['id']}@example.org>"] and all(tls for tls, _ in server.said), "and delivered by TLS from the start, once it is right", server.mails)
    restart(s)
    tap.ok("smtp_url" in tried(s, hook)["problem"], "without a server the log names the setting")
    s.api("DELETE", f"/webhooks/{hook['id']}")
    start = lambda **env: subprocess.run([s.bin + "/droverd"], env={**os.environ, **env, "DROVER_DATABASE_URL": "x"}, capture_output=True, text=True, check=False)  # noqa: E731
    wrong = [start(DROVER_SMTP_URL=url, DROVER_SMTP_FROM=sender) for url, sender in (("http://x", "a@b"), ("smtp://u:hidden@x", "a@b"), ("smtp://x/y", "a@b"), ("smtps://x", ""), ("smtps://x", "a@b\nc"))]
    tap.ok(all(w.returncode != 0 and "smtp_" in w.stderr and "hidden" not in w.stderr for w in wrong), "settings that are wrong stop the start", wrong)


def case_private(s):
    """What may not be reached is not connected to, whatever it is called."""
    port = s.other.port
    hosts = ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::]", "169.254.169.254", "10.0.0.1",
             "172.16.0.1", "192.168.0.1", "100.64.0.1", "[fd00:ec2::254]", "[fe80::1]"]
    bad, before = [], s.other.connections
    for host in hosts:
        hook = add(s, f"http://{host}:{port}/x")
        d = tried(s, hook)
        if d["state"] != "failed" or not d["problem"] or ("private" not in d["problem"] and host not in ("[::1]", "[::]", "[fe80::1]", "[fd00:ec2::254]", "localhost")):
            bad.append((host, d))
        s.api("DELETE", f"/webhooks/{hook['id']}")
    tap.eq((bad, s.other.connections), ([], before), f"{len(hosts)} private addresses in all their forms are refused before a connection is opened")
    mail = add(s, "http://127.0.0.1:25/")
    tap.ok("127.0.0.1 is a private address" in tried(s, mail)["problem"], "the log says which address, and which setting allows it")
    moved = add(s, "/moved")
    s.receiver.elsewhere = f"http://127.0.0.1:{port}/moved"
    d = tried(s, moved)
    tap.ok(d["state"] == "failed" and d["status"] == 302 and s.other.connections == before, "a redirect is a failure, and not followed", d)
    for h in (mail, moved):
        s.api("DELETE", f"/webhooks/{h['id']}")
    tap.ok(json.loads(subprocess.run([s.bin + "/droverd", "--print-config"], env={**os.environ, "DROVER_WEBHOOK_ALLOW_NET": "10.0.0.0/8:443"}, capture_output=True, text=True, check=True).stdout), "the setting is shown")
    wrong = subprocess.run([s.bin + "/droverd"], env={**os.environ, "DROVER_WEBHOOK_ALLOW_NET": "10.0.0.0/8", "DROVER_DATABASE_URL": "x"}, capture_output=True, text=True, check=False)
    tap.ok(wrong.returncode != 0 and "webhook_allow_net" in wrong.stderr, "a wrong one stops the start", wrong.stderr)


def main():
    only = os.environ.get("ONLY", "")
    receiver, other = Receiver(), Receiver()
    env = {"DROVER_NOTICE_COLLECT_US": str(COLLECT_US), "DROVER_NOTICE_STUCK_US": "2000000", "DROVER_WEBHOOK_TIMEOUT_US": str(int(min(patience(2), 8) * 1000000)), "DROVER_WEBHOOK_RETRY_US": "1000",
           "DROVER_WEBHOOK_ALLOW_NET": f"127.0.0.1/32:{receiver.port}", "http_proxy": "http://127.0.0.1:1"}
    with Stack("notices", parts=7, quotas={"ml.c5.xlarge": 8, "ml.m5.large": 0}, env=env, images={"drover/user:test": [sys.executable, PROGRAMS + "/user_program.py"]}) as s:
        s.receiver, s.other, s.hung, s.what = receiver, other, 0, ""
        s.start()
        for name, case in list(globals().items()):
            if name.startswith("case_") and only in name:
                print(f"# {name}", flush=True)
                s.hung = len(receiver.of("/hang"))
                case(s)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
