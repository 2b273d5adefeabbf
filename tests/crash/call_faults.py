"""Aim: when a call of droverd's process or of its libraries fails (memory, descriptors, disk, network, threads), that
request fails or the process ends with a status of its own and is started again: the campaign succeeds, nothing is
paid twice, no crash, no standstill. Method: call_faults.so is preloaded into one droverd; short campaigns run one
after the other, each with another call that fails, drawn evenly from all that such a campaign makes; whoever ends
is started again, as a supervisor does. At the end PostgreSQL's disk is full for a while. usage: call_faults.py
[CASES | sites]   (a kind; ONLY=memory picks, AT=n is that call alone, SEED=n repeats the draws; sites: from every
place that calls, the first call fails, some places a campaign)
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kit import TOP, VARIANT, Tap, wait_for
from kit.stack import Stack, rng_from_args

SITES = sys.argv[1:2] == ["sites"]
CASES = int(sys.argv[1]) if len(sys.argv) > 1 and not SITES else 3
SITES_A_CAMPAIGN = 12
AT = int(os.environ.get("AT", 0))
KINDS = {"memory": (1, 1), "descriptor": (1, 40), "disk": (1, 40), "network": (1, 4), "thread": (1, 1)}  # calls in a row that fail
rng = rng_from_args()
tap = Tap()
LIBRARY = os.path.join(TOP, "build", VARIANT, "tests", "kit", "call_faults.so")


class Case:
    def __init__(self, s, spec=None):
        self.s, self.ends, self.log, self.left = s, [], f"{s.dir}/calls.log", None
        if os.path.exists(self.log):
            os.unlink(self.log)
        if spec:
            self.start(spec)

    def start(self, spec):
        self.s.start_droverd(0, env={"LD_PRELOAD": LIBRARY, "CALL_FAULTS": spec, "CALL_FAULTS_LOG": self.log}, ready=False)

    def supervise(self):
        """Starts droverd again when it has ended; true, so that a condition can begin with it."""
        p = self.s.procs.get("droverd0")
        if p is None or p.poll() is not None:
            if p is not None:
                self.ends.append(p.returncode)
            if self.left is None:
                self.s.start_droverd(0, ready=False)
            else:
                self.start_at()
        return True

    def start_at(self):
        """Starts droverd so that the first calls from the places fail that are left."""
        self.left = [site for site in self.left if site not in self.sites()]
        with open(f"{self.s.dir}/sites", "w", encoding="ascii") as f:
            f.writelines(f"{site}\n" for site in self.left)
        self.start(f"at {self.s.dir}/sites")

    def sites(self):
        """The places that droverd has named: listed ones, or those whose call failed."""
        return [line.removeprefix("site ") for line in self.said().splitlines() if line.startswith("site ")]

    def submitted(self, text, key):
        status, answer, head = self.s.raw("POST", "/v1/campaigns", text.encode(), key, timeout=5)
        if status >= 500 or b'"key_in_use"' in answer:
            return None
        value = json.loads(answer)
        if status != 201 or "id" not in value:
            raise RuntimeError(f"the submission: {status} {head} {answer!r}")
        return value["id"]

    def ended(self, cid):
        state = self.s.api("GET", f"/campaigns/{cid}", seconds=0, timeout=5)["state"]
        return state if state in ("succeeded", "failed", "cancelled") else None

    def run(self, name):
        """The campaign's last state, or what stood still."""
        s = self.s
        try:
            wait_for(lambda: self.supervise() and s.raw("GET", "/livez", timeout=2)[0] == 200, 30, "droverd up")
            text = s.campaign(name=name, source="s3://drover-test/meta/part-00000*.parquet")
            key = {"Content-Type": "application/yaml", "Idempotency-Key": name}
            cid = wait_for(lambda: self.supervise() and self.submitted(text, key), 30, "the submission")
            state = wait_for(lambda: self.supervise() and self.ended(cid), 60, f"the end of {cid}")
            wait_for(lambda: self.supervise() and not s.live_jobs(), 20, "the end of the jobs")
        except (TimeoutError, ValueError, RuntimeError) as e:
            return str(e)
        return state

    def end(self):
        p = self.s.procs["droverd0"]
        self.s.kill("droverd0", signal.SIGTERM)
        if p.returncode != 0:
            self.ends.append(p.returncode)

    def said(self):
        return open(self.log, encoding="utf-8", errors="replace").read() if os.path.exists(self.log) else ""


def measured(s):
    """How many calls of each kind a whole campaign makes."""
    case = Case(s, "memory 0 0")
    state = case.run("quiet")
    case.end()
    tap.ok(state == "succeeded" and not case.ends, "without faults the campaign succeeds", f"{state} {case.ends}")
    return {line.split()[1]: int(line.split()[2]) for line in case.said().splitlines() if line.startswith("calls ")}


def one(s, kind, at, count):
    case = Case(s, f"{kind} {at} {count}")
    state = case.run(f"{kind}-{at}")
    case.end()
    hit = f"hit {kind}" in case.said()
    bad = [rc for rc in case.ends if rc <= 0]  # ended by a signal, or as if all were well
    if not tap.ok(state == "succeeded" and not bad, f"{kind} call {at}{f' and {count - 1} more' if count > 1 else ''}: "
                  f"{'not reached' if not hit else 'ended with ' + str(case.ends[0]) + ', started again' if case.ends else 'went on'}, {state}",
                  f"ends {case.ends}\n{case.said()}"):
        print("# " + open(s.dir + "/droverd0.log", encoding="utf-8", errors="replace").read()[-1500:].replace("\n", "\n# "))
    return hit


def every_site(s):
    """From every place of droverd and of its libraries that makes such calls in a short campaign, the first one fails
    once. Some places share a campaign: whoever ends is started again with those that are left."""
    todo = set()
    for i in range(2):  # not each campaign takes the same ways
        case = Case(s, "sites")
        state = case.run(f"listing-{i}")
        case.end()
        todo |= set(case.sites())
        tap.ok(state == "succeeded" and not case.ends, f"{len(todo)} places call in campaign {i + 1}", f"{state} {case.ends}")
    todo = sorted(site for site in todo if os.environ.get("ONLY", site.split()[0]) == site.split()[0])
    rng.shuffle(todo)
    places, met, missed = len(todo), 0, []
    for again in range(2):
        for i in range(0, len(todo), SITES_A_CAMPAIGN):
            case = Case(s)
            case.left = asked = todo[i:i + SITES_A_CAMPAIGN]
            case.start_at()
            state = case.run(f"sites-{again}-{i}")
            case.end()
            hit = set(case.sites()) & set(asked)
            met += len(hit)
            missed += [site for site in asked if site not in hit]
            kinds = sorted({site.split()[0] for site in asked})
            bad = [rc for rc in case.ends if rc <= 0]
            if not tap.ok(state == "succeeded" and not bad, f"{len(hit)} of {len(asked)} places ({', '.join(kinds)}): droverd ended "
                          f"{len(case.ends)} times, {state}", f"ends {case.ends}\n{case.said()}"):
                print("# " + open(s.dir + "/droverd0.log", encoding="utf-8", errors="replace").read()[-1500:].replace("\n", "\n# "))
        todo, missed = missed, []
    tap.ok(met >= places * 0.95, f"{met} of {places} places were reached; others call only in some campaigns", "\n".join(todo))


def disk_full(s):
    """PostgreSQL has no room for new rows for a while: what needs some is refused as a whole, to be repeated; the
    leader leads on, and what ran goes on when there is room again."""
    before = s.sql("SELECT epoch FROM lease")
    s.stop_pg("fast")
    shutil.copy(LIBRARY, s.sock + "/call_faults.so")  # where PostgreSQL's user may read it
    full = s.sock + "/full"
    os.environ.update(LD_PRELOAD=s.sock + "/call_faults.so", CALL_FAULTS=f"disk while {full}")
    s.start_pg()
    del os.environ["LD_PRELOAD"], os.environ["CALL_FAULTS"]
    wait_for(lambda: s.leader() == 0 and s.sql("SELECT epoch FROM lease") != before, 30, "a leader of the new connection")
    epoch = s.sql("SELECT epoch FROM lease")
    running = s.submit(name="while-full", source="s3://drover-test/meta/part-00000*.parquet")
    waiting = s.submit(s.campaign(name="waits").replace('{from: "s3://drover-test/meta/*.parquet"}', "{from: api}"))
    open(full, "w", encoding="ascii").close()
    lines = "\n".join(json.dumps({"uri": f"s3://drover-test/meta/{i:06d}.parquet", "size": 1}) for i in range(20000))
    post = ["POST", f"/v1/campaigns/{waiting}/parts?stage=download&last=true", lines.encode(), {"Content-Type": "application/x-ndjson", "Idempotency-Key": "full"}]
    status, text, _ = s.raw(*post, timeout=30)
    tap.ok(status == 503 and b"No space left on device" in text, f"with a full disk 20,000 parts are refused to be repeated: {status}", text)
    tap.eq(s.api("GET", f"/campaigns/{waiting}")["parts"]["total"], 0, "none of them was taken")
    os.unlink(full)
    tap.eq(s.raw(*post, timeout=60)[0], 201, "with room again the same request is carried out")
    tap.eq(wait_for(lambda: s.ended(running), 60, "the end")["state"], "succeeded", "the campaign that ran meanwhile succeeds")
    tap.eq(s.sql("SELECT epoch FROM lease"), epoch, "the leader has led all the time")
    s.api("POST", f"/campaigns/{waiting}:cancel", {})
    wait_for(lambda: s.ended(waiting), 60, "the end")


def parsing():
    """Without memory a campaign file is not called wrong: whoever reads it ends with a status of its own."""
    file, replay = os.path.join(TOP, "deploy/examples/bert-model-parallel.yaml"), os.path.join(TOP, "build", VARIANT, "tests/fuzz/replay_yaml")
    with tempfile.NamedTemporaryFile() as log:
        def run(at):
            env = {**os.environ, "LD_PRELOAD": LIBRARY, "CALL_FAULTS": f"memory {at} 1", "CALL_FAULTS_LOG": log.name}
            return subprocess.run([replay, file], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
        quiet = run(0)
        n = int(log.read().split(b"calls memory ")[1].split()[0])
        ends = [run(at) for at in range(1, n + 1)]
    own = ends.count(71)
    tap.ok(quiet == 0 and n > 100 and own >= n - 5 and min(ends) >= 0, f"each of the {n} times that reading a file asks for memory: {own} end with status 71, {n - own} are libc's own", sorted(set(ends)))


with Stack("call-faults", parts=1, rows=2, observe_us=100000, lease_us=4000000) as s:
    s.migrated = False  # calls of a migration fail, too
    s.start_pg()
    s.start_local()
    if SITES:
        every_site(s)
    total = {} if SITES else measured(s)
    print(f"# calls of a campaign: {total}" if total else "# each place once", flush=True)
    hits = cases = 0
    for kind, counts in KINDS.items():
        if os.environ.get("ONLY", kind) != kind or not total.get(kind):
            continue
        for i in range(1 if AT else CASES):
            width = total[kind] / CASES
            at = AT or 1 + int(width * i + rng.random() * width)
            hits += one(s, kind, at, counts[i % len(counts)])
            cases += 1
    if not SITES:
        tap.ok(hits >= cases * 0.6, f"{hits} of {cases} calls were reached")
    s.start_droverd(0)
    disk_full(s)
    s.check_wire(tap)
    s.check_invoice(tap)
parsing()
sys.exit(tap.done())
