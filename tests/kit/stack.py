"""A whole drover on this machine for tests: PostgreSQL, drover-local, one or more droverd, the demo's web
server.

It only starts and ends processes and asks their public interfaces; it never writes to the database, S3 or
the files of a running program. The oracle (check_*) reads drover-local's wire log, jobs and invoice.
"""
import fcntl
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
import uuid

from kit import TOP, VARIANT, bin_of, free_port, patience, policies, postgres, service_model, wait_for

KEY, SECRET = "AKIATESTSTACK", "secret-of-the-test-stack"  # an administrator's
DROVERD_KEY, DROVERD_SECRET = "AKIADROVERD", "secret-of-droverd"  # bound by deploy/iam/droverd.json
ROLE = "arn:aws:iam::111122223333:role/test"  # of jobs, bound by deploy/iam/job.json


class Stack:
    migrated = True  # its database has its tables before the first droverd starts

    def __init__(self, name, variant=VARIANT, quotas=None, lease_us=1000000, parts=8, rows=12, local=None, env=None,
                 observe_us=200000, images=None, disk=False):
        self.dir = self.own_folder(name if variant == "release" else f"{name}-{variant}")
        self.cleanup_old()
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)
        self.bin = bin_of(variant)
        self.release_bin = bin_of("release")
        self.quotas = quotas or {"ml.c5.xlarge": 4}
        self.lease_us, self.observe_us = lease_us, observe_us
        self.local_extra, self.extra_env, self.images = local or {}, env or {}, images or {}
        self.buckets = []  # that the policies name besides those there are
        self.local_port, self.ports, self.procs = free_port(), {}, {}
        self.session = None  # of sql
        self.prefixes = {}  # of a campaign's jobs, where it is not t
        self.stderr_of = {}  # of a program, by its key, in place of its log
        self.sock = postgres.new_folder("drover-test-", disk)
        self.token_file = os.path.join(self.dir, "token")
        self.make_web(parts, rows)

    def own_folder(self, name):
        """One that no other run of now has: who begins stops what an earlier run of the same name has left."""
        os.makedirs(os.path.join(TOP, "build", "test-run"), exist_ok=True)
        for n in itertools.count(1):
            folder = os.path.join(TOP, "build", "test-run", name if n == 1 else f"{name}-{n}")
            self.lock = open(folder + ".lock", "w")  # for as long as this object is there
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return folder
            except BlockingIOError:
                self.lock.close()

    def cleanup_old(self):
        subprocess.run(["bash", os.path.join(TOP, "tests/demo/down.sh"), self.dir], check=False)

    def spawn(self, key, argv, env=None, log=None):
        f = open(os.path.join(self.dir, (log or key) + ".log"), "ab")
        e = {**os.environ, **(env or {})}
        for k in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
            e.pop(k, None)
        self.procs[key] = subprocess.Popen(argv, stdout=f, stderr=self.stderr_of.get(key, f), stdin=subprocess.DEVNULL, env=e)
        f.close()
        return self.procs[key]

    def kill(self, key, sig=signal.SIGKILL):
        p = self.procs.pop(key, None)
        if p:
            p.send_signal(sig)
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()

    def make_web(self, parts, rows):
        images, meta = self.dir + "/web", self.dir + "/aws/s3/drover-test/meta"
        os.makedirs(meta)
        os.makedirs(self.dir + "/aws/s3/drover-test/images")
        ports = self.dir + "/ports"
        web = self.spawn("web", [TOP + "/build/release/demo/demo_server", "--images", images, "--ports", ports, "--log", self.dir + "/web-requests.log"])
        wait_for(lambda: os.path.exists(ports), 10, "the web")
        self.web_port, self.dns_port = open(ports).read().split()
        self.copy_images(images)
        subprocess.run([TOP + "/build/release/demo/demo_make", images, meta, self.web_port, "28", str(parts), str(rows)], check=True)
        web.send_signal(signal.SIGHUP)

    @staticmethod
    def copy_images(to):
        """The demo's 28 images, painted once for all stacks: painting them takes half a second of CPU."""
        maker, kept = TOP + "/build/release/demo/demo_make", TOP + "/build/tests/images"
        os.makedirs(TOP + "/build/tests", exist_ok=True)
        with open(kept + ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(kept) or os.path.getmtime(kept) < os.path.getmtime(maker):
                for old in (kept, kept + ".part", kept + ".parquet"):
                    shutil.rmtree(old, ignore_errors=True)
                subprocess.run([maker, kept + ".part", kept + ".parquet", "1", "28", "1", "1"], check=True)
                shutil.rmtree(kept + ".parquet")
                os.rename(kept + ".part", kept)
            shutil.copytree(kept, to)

    def start_pg(self, options=""):
        if not os.path.exists(self.sock + "/data"):
            postgres.make_data(self.sock, self.migrated)
        postgres.start(self.sock, f"-c max_connections=200 {options}")

    def stop_pg(self, mode="immediate"):
        session, self.session = self.session, None
        if session:
            session.close()
        postgres.stop(self.sock, mode)

    def sql(self, query):
        """Reads one value from the database, for checks that no interface can answer. Never writes."""
        argv = [postgres.PSQL, "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", self.sock, "-U", "drover", "-d", "postgres"]
        query = "SET default_transaction_read_only = on; " + query
        session, self.session = self.session or postgres.Session(argv), None  # a thread that comes meanwhile takes another
        try:
            said = session.ask(query)
        except RuntimeError:  # the server was stopped since
            session.close()
            said = subprocess.run([*argv, "-c", query], check=True, capture_output=True, text=True).stdout
        else:
            session, self.session = self.session, session
            if session:
                session.close()
        return (said.strip().splitlines() or [""])[-1]

    def start_local(self):
        config = {"quotas": self.quotas, "prices": {t: "0.204" for t in self.quotas}, "cold_start_seconds": 0.2, "stop_seconds": 0.2,
                  "signature_window_seconds": 4, "images": {"drover/worker:test": [self.release_bin + "/drover-worker"], **self.images},
                  "rates": {"CreateTrainingJob": 50}, "policies": self.policies(), "log_bodies": True, **self.local_extra,
                  "credentials": {KEY: SECRET, DROVERD_KEY: DROVERD_SECRET, **self.local_extra.get("credentials", {})}}
        with open(self.dir + "/local.json", "w") as f:
            json.dump(config, f)
        self.spawn("local", [self.release_bin + "/drover-local", "--listen", f"127.0.0.1:{self.local_port}", "--root", self.dir + "/aws", "--config", self.dir + "/local.json"])
        wait_for(lambda: self.oracle("jobs") is not None, 20, "drover-local")

    def policies(self):
        """Those of deploy/iam: whatever droverd and jobs do in a test, they do with what an operator gives them."""
        account, prefix = self.local_extra.get("account", "123456789012"), self.extra_env.get("DROVER_JOB_PREFIX", "t")
        buckets = [*sorted(os.listdir(self.dir + "/aws/s3")), f"sagemaker-us-east-1-{account}", *self.buckets]
        roles = [ROLE + "*", *(f"arn:aws:iam::{a}:role/drover-{n}" for a in (account, "111122223333") for n in ("training", "worker"))]
        return {DROVERD_KEY: [policies.shipped("droverd", account, buckets, prefix, roles)],
                ROLE: [policies.shipped(n, account, buckets, prefix) for n in ("job", "job-vpc")]}

    def aws_env(self, key=KEY, secret=SECRET):
        return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.local_port}"}

    def start_droverd(self, i=0, env=None, ready=True, binary=None):
        key = f"droverd{i}"
        self.ports.setdefault(key, free_port())
        prices = self.dir + "/prices.json"
        if not os.path.exists(prices):
            with open(prices, "w") as f:
                json.dump({t: "0.204" for t in self.quotas}, f)
        e = {**self.aws_env(DROVERD_KEY, DROVERD_SECRET), "DROVER_DATABASE_URL": f"host={self.sock} user=drover dbname=postgres", "DROVER_LISTEN": f"127.0.0.1:{self.ports[key]}",
             "DROVER_TOKEN_FILE": self.token_file, "DROVER_ROLE_ARN": ROLE, "DROVER_WORKER_IMAGE": "drover/worker:test",
             "DROVER_BUCKET": "s3://drover-test", "DROVER_PRICES_FILE": prices, "DROVER_PRICE_INTERVAL_US": "0", "DROVER_JOB_PREFIX": "t", "DROVER_OBSERVE_INTERVAL_US": str(self.observe_us),
             "DROVER_TICK_INTERVAL_US": "200000", "DROVER_CREATE_RATE_PER_MINUTE": "3000", "DROVER_CREATE_BURST": "10",
             "DROVER_SIGNATURE_WINDOW_US": "4000000", "DROVER_LEASE_LENGTH_US": str(self.lease_us), "DROVER_LEASE_RENEW_US": str(self.lease_us // 3),
             "DROVER_QUOTA_INTERVAL_US": "5000000", "DROVER_TOKEN_RATE_PER_S": "0", **self.extra_env, **(env or {})}
        p = self.spawn(key, [binary or self.bin + "/droverd"], e)
        if ready:
            wait_for(lambda: self.raw("GET", "/livez", i=i)[0] == 200 or p.poll() is not None, 30, key)
            if p.poll() is not None:
                raise RuntimeError(f"{key} ended with {p.returncode}: " + open(f"{self.dir}/{key}.log").read()[-2000:])
        return p

    def start(self, n=1):
        self.start_pg()
        self.start_local()
        for i in range(n):
            self.start_droverd(i)
        return self

    def close(self):
        for key in [k for k in self.procs if k.startswith("droverd")] + ["local", "web"]:
            p = self.procs.get(key)
            if p:
                p.send_signal(signal.SIGCONT)
            self.kill(key, signal.SIGTERM)
        self.cleanup_old()
        self.stop_pg("fast")
        shutil.rmtree(self.sock, ignore_errors=True)
        self.lock.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *a):
        self.close()
        if kind is None:
            self.judge_requests()

    def judge_requests(self):
        """Every request that was sent to drover-local is one of the services' models."""
        log = self.dir + "/aws/requests.log"
        if os.path.exists(log):
            service_model.hold(log)

    def raw(self, method, path, body=None, headers=None, i=None, timeout=10):
        keys = [f"droverd{i}"] if i is not None else [k for k in self.procs if k.startswith("droverd")]
        last = OSError("no droverd runs")
        for key in keys:
            h = dict(headers or {})
            if os.path.exists(self.token_file):
                h["Authorization"] = "Bearer " + open(self.token_file).read().strip()
            req = urllib.request.Request(f"http://127.0.0.1:{self.ports[key]}{path}", data=body, headers=h, method=method)
            try:
                with urllib.request.urlopen(req, timeout=patience(timeout)) as r:
                    return r.status, r.read(), dict(r.headers)
            except urllib.error.HTTPError as e:
                return e.code, e.read(), dict(e.headers)
            except OSError as e:
                last = e
        raise last

    def api(self, method, path, body=None, headers=None, seconds=60, **kw):
        """JSON of /v1<path>. Unreachable and 5xx are retried with the same idempotency key for up to
        `seconds`.
        """
        h = {"Content-Type": "application/json", **(headers or {})}
        if method == "POST":
            h.setdefault("Idempotency-Key", str(uuid.uuid4()))
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode() if body is not None else None
        end = time.monotonic() + patience(seconds)
        while True:
            try:
                status, text, _ = self.raw(method, "/v1" + path, data, h, **kw)
                if status < 500 and status != 429 and b'"key_in_use"' not in text:
                    value = json.loads(text) if text else {}
                    if status >= 400:
                        raise ValueError(f"{method} {path}: {status} {text[:1500]!r}")
                    return value
                last = (status, text[:500])
            except OSError as e:
                last = e
            if time.monotonic() > end:
                raise TimeoutError(f"{method} {path}: {last}")
            time.sleep(0.1)

    def oracle(self, path, body=None):
        req = urllib.request.Request(f"http://127.0.0.1:{self.local_port}/_local/{path}", data=json.dumps(body).encode() if body is not None else None,
                                     method="POST" if body is not None else "GET")
        with urllib.request.urlopen(req, timeout=patience(20)) as r:
            text = r.read()
            return json.loads(text) if text.strip() else {}

    def faults(self, *faults):
        return self.oracle("faults", {"faults": list(faults)})

    def campaign(self, name="storm", stage_extra="", top="", source="s3://drover-test/meta/*.parquet", worker_extra="", out="images"):
        return f"""version: 1
name: {name}
{top}
retry:
  - {{cause: [capacity, quota], wait: 1s..2s, times: forever, counts: no}}
  - {{cause: [internal, network, short_output], wait: 1s..2s, times: 9}}
stages:
  - name: download
    worker: download
    fan_out: {{from: "{source}"}}
    instance_type: ml.c5.xlarge
    max_runtime: 5m
    hyperparameters:
      url_list: "{{uri}}"
      output_folder: "s3://drover-test/{out}-{{campaign}}/{{part:05d}}/"
      number_sample_per_shard: 10
      timeout: 2
      processes_count: 1
      progress_interval: 1
      allow_net: "127.0.2.0/24:{self.web_port}"
      dns: "127.0.2.1:{self.dns_port}"
{worker_extra}
{stage_extra}
"""

    def submit(self, text=None, **kw):
        return self.api("POST", "/campaigns", text or self.campaign(**kw), {"Content-Type": "application/yaml"})["id"]

    def ended(self, cid):
        c = self.api("GET", f"/campaigns/{cid}")
        return c if c["state"] in ("succeeded", "failed", "cancelled") else None

    def leader(self):
        """Number of the leading droverd, or None."""
        for key in list(self.procs):
            if key.startswith("droverd"):
                try:
                    status, text, _ = self.raw("GET", "/metrics", i=int(key[7:]), timeout=2)
                    if status == 200 and b"\ndroverd_leading 1" in text:
                        return int(key[7:])
                except OSError:
                    pass
        return None

    @staticmethod
    def part_of(job_name):
        return re.sub(r"-a[0-9]+-[0-9a-f]{8}$", "", job_name)  # the hash may begin with an a, too

    def live_jobs(self):
        return [j for j in self.oracle("jobs")["jobs"] if j["status"] not in ("Completed", "Failed", "Stopped")]

    def part_states(self):
        """{first part of a job's name: (state, attempts)} of every part of every campaign, from the API."""
        states = {}
        for c in self.pages("/campaigns?page_size=200", "campaigns"):
            for stage in self.api("GET", f"/campaigns/{c['id']}")["stages"]:
                for p in self.pages(f"/campaigns/{c['id']}/parts?stage={stage['name']}&page_size=1000", "parts"):
                    states[f"{self.prefixes.get(c['id'], 't')}-{c['id'][2:]}-{stage['name']}-{p['seq']}"] = (p["state"], f"/parts/{c['id']}/{p['seq']}?stage={stage['name']}")
        return states

    def pages(self, path, key):
        token = ""
        while token is not None:
            page = self.api("GET", f"{path}{'&page_token=' + token if token else ''}")
            yield from page[key]
            token = page.get("next_page_token")

    def wrong_counts(self, by_part, accepted):
        """Parts whose accepted jobs are not 1 (0 unless done) + those that ended failed, stopped or short."""
        wrong = []
        for part, (state, path) in self.part_states().items():
            jobs = by_part.get(part, [])
            made = sum(n for name, n in accepted.items() if self.part_of(name) == part)
            lost = sum(j["status"] in ("Failed", "Stopped") for j in jobs)
            due = lost + (state == "done")
            if made != due:  # a completed job with refused output is short
                whole = {j["name"] for j in jobs if j["status"] == "Completed"}
                due += sum(a["state"] == "failed" and a["job_name"] in whole for a in self.api("GET", path)["attempt_list"])
            if made != due or len(jobs) != made:
                wrong.append((part, state, made, due, [(j["name"], j["status"]) for j in jobs]))
        return wrong

    def check_wire(self, tap, what="", quota_faults=False, keys_refused=False):
        """Checks the wire log of everything this stack has run. Ghosts are jobs of others."""
        jobs = [j for j in self.oracle("jobs")["jobs"] if not j.get("ghost")]
        # Nothing of ours lists buckets: another suite does that looks for its own server on a port that was free.
        log = [r for r in self.oracle("wire-log")["requests"] if r["operation"] != "ListBuckets" or r["key_id"]]
        by_part = {}
        for j in jobs:
            by_part.setdefault(self.part_of(j["name"]), []).append(j)
        overlaps = []
        for part, js in by_part.items():
            js.sort(key=lambda j: j["created"])
            overlaps += [(a["name"], b["name"]) for a, b in zip(js, js[1:]) if a["ended"] is None or b["created"] < a["ended"]]
        tap.ok(not overlaps, f"{what}no part had two live jobs ({len(jobs)} jobs, {len(by_part)} parts)", overlaps)
        for t, limit in self.quotas.items():
            edges = []
            for j in jobs:
                if j["instance_type"] == t:
                    edges += [(j["created"], 1, j["instance_count"]), (j["released"] if j["released"] is not None else 9e18, 0, -j["instance_count"])]
            n = top = 0
            for _, _, d in sorted(edges):
                n += d
                top = max(top, n)
            tap.ok(top <= limit, f"{what}never more than {limit} x {t} (most at once: {top})")
        creates = [r for r in log if r["operation"] == "CreateTrainingJob"]
        accepted, first = {}, {}
        for r in creates:
            first.setdefault(r["name"], r)
            if r["accepted"]:
                accepted[r["name"]] = accepted.get(r["name"], 0) + 1
        tap.ok(all(n == 1 for n in accepted.values()), f"{what}each name was accepted once", {k: n for k, n in accepted.items() if n != 1})
        wrong = self.wrong_counts(by_part, accepted)
        tap.ok(not wrong, f"{what}accepted jobs = 1 + failed, stopped or short ones, part by part", wrong)
        bad_first = [r["name"] for r in first.values() if r["error"] == "ResourceLimitExceeded"]
        if not quota_faults:
            tap.ok(not bad_first, f"{what}no first send was refused for quota", bad_first)
        unsigned = [r for r in log if not r["signed"] and r["service"] != "metadata" and r["operation"] != "AssumeRoleWithWebIdentity" and not (keys_refused and r["error"] in ("InvalidSignatureException", "SignatureDoesNotMatch", "RequestTimeTooSkewed"))]
        tap.ok(not unsigned, f"{what}every one of {len(log)} requests was signed", unsigned[:5])

    def check_requests(self, tap, what=""):
        """The services' models accept every request that was sent so far, and none was refused for what it says."""
        found = service_model.judge([self.dir + "/aws/requests.log"])
        tap.ok(found["requests"] > 0 and not found["deviations"] and not found["refused"],
               f"{what}{found['requests']} requests of {len(found['operations'])} operations, 0 deviations from the services' models", json.dumps(found))

    def drover(self, *args):
        env = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{self.ports['droverd0']}", "DROVER_TOKEN_FILE": self.token_file}
        return subprocess.run([self.release_bin + "/drover", *args], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)

    def metered(self):
        total = [0, 0]
        for c in self.pages("/campaigns?page_size=200", "campaigns"):
            m = self.api("GET", f"/campaigns/{c['id']}/cost")["metered"]
            total[0] += m["seconds"]
            total[1] += m["micro_usd"]
        strays = self.api("GET", "/strays")["sum"]  # of no campaign: a line of their own
        return [total[0] + strays["seconds"], total[1] + strays["micro_usd"]]

    def check_invoice(self, tap, what=""):
        inv = self.oracle("invoice")["total"]
        tap.ok(self.metered() == [inv["seconds"], inv["micro_usd"]], f"{what}the ledger equals the invoice: {inv['seconds']} s, {inv['micro_usd']} micro-USD", self.metered())


class Restored:
    """The database as it is now comes back at the end of the block, whatever was committed in it."""

    def __init__(self, s):
        self.s = s

    def __enter__(self):
        s = self.s
        s.kill("droverd0")
        s.stop_pg("fast")
        subprocess.run(["cp", "-a", s.sock + "/data", s.sock + "/before"], check=True)
        s.start_pg()
        s.start_droverd(0)

    def __exit__(self, *a):
        s = self.s
        s.kill("droverd0")
        s.stop_pg("immediate")
        shutil.rmtree(s.sock + "/data")
        os.rename(s.sock + "/before", s.sock + "/data")
        s.start_pg()


def rng_from_args():
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"# SEED={seed}", flush=True)
    return random.Random(seed)
