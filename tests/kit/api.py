"""A private PostgreSQL and the API alone, for tests. SQL plays the leader."""
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import uuid

from kit import BIN, TOP, VARIANT, Tap, bin_of, patience, postgres

SERVER = f"{TOP}/build/{VARIANT}/tests/kit/api_server"
DROVER = (BIN if VARIANT != "tsan" else bin_of("release")) + "/drover"
PSQL = postgres.PSQL


class Pg:
    """A cluster of databases t1, t2, ... for as many API servers."""

    SESSIONS = 3  # that are kept
    ALONE = re.compile(r"\s*(BEGIN|SET|LOCK|COPY|LISTEN|\\)|.*(\bTEMP|pg_terminate_backend|advisory)", re.I | re.S)  # what outlives a statement

    def __init__(self):
        self.dir = postgres.new_folder("drover-api-test-")
        self.n = 0
        self.sessions, self.lock = {}, threading.Lock()
        postgres.make_data(self.dir, migrated=True)
        self.start()

    def start(self):
        postgres.start(self.dir, "-c max_wal_size=4GB -c max_parallel_maintenance_workers=2 -c shared_buffers=256MB")

    def stop(self, mode="immediate"):
        self.forget(0)
        postgres.stop(self.dir, mode)

    def forget(self, kept):
        """Ends all sessions but the `kept` latest, of those nobody uses now."""
        with self.lock:
            for db, session in list(self.sessions.items())[:max(0, len(self.sessions) - kept)]:
                if kept == 0 or session.busy.acquire(blocking=False):
                    del self.sessions[db]
                    session.close()

    def session(self, db):
        """The database's session, taken for the caller, or None when another thread uses it."""
        with self.lock:
            session = self.sessions.get(db)
            if session is None:
                session = self.sessions[db] = postgres.Session(self.psql(db))
            if not session.busy.acquire(blocking=False):
                return None
            self.sessions[db] = self.sessions.pop(db)
        return session

    def psql(self, db):
        return [PSQL, "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", self.dir, "-U", "drover", "-d", db]

    def database(self):
        self.n += 1
        self.sql("postgres", f"CREATE DATABASE t{self.n} TEMPLATE migrated STRATEGY FILE_COPY")
        return f"t{self.n}"

    def conninfo(self, db):
        return f"host={self.dir} user=drover dbname={db}"

    def sql(self, db, text):
        session = None if len(text) > 20000 or self.ALONE.match(text) else self.session(db)
        if session:
            try:
                return session.ask(text)
            except RuntimeError:
                with self.lock:
                    if self.sessions.get(db) is session:
                        del self.sessions[db]
                session.close()
                raise
            finally:
                session.busy.release()
                self.forget(self.SESSIONS)
        r = subprocess.run(self.psql(db), input=text, text=True, capture_output=True, check=False)
        if r.returncode:
            raise RuntimeError(r.stderr)
        return r.stdout.strip()

    def close(self):
        try:
            self.stop()
        finally:
            shutil.rmtree(self.dir, ignore_errors=True)


class Api:
    def __init__(self, pg, env=None, db=None):
        self.pg, self.db = pg, db or pg.database()
        self.dir = tempfile.mkdtemp(prefix="drover-api-files-")
        self.token_file = self.dir + "/token"
        self.env = {**os.environ, **(env or {})}
        self.start()

    def start(self):
        self.log = open(self.dir + "/log", "ab")
        self.p = subprocess.Popen([SERVER, self.pg.conninfo(self.db), self.token_file, self.dir + "/s3"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=self.log, env=self.env)
        line = self.p.stdout.readline()
        if not line:
            raise RuntimeError("api_server did not start: " + open(self.dir + "/log").read())
        self.port = int(line)
        self.token = open(self.token_file).read().strip()

    def stop(self):
        """Exit status of the server, which must end by itself and without a sanitizer report."""
        self.p.stdin.close()
        try:
            return self.p.wait(30)
        except subprocess.TimeoutExpired:
            self.p.kill()
            return "did not stop"

    def kill(self):
        self.p.send_signal(signal.SIGKILL)
        self.p.wait()

    def objects(self, bucket, names, size=10):
        for name in names:
            path = f"{self.dir}/s3/{bucket}/{name}"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(b"x" * size)

    def sql(self, text):
        return self.pg.sql(self.db, text)

    def raw(self, method, path, body=None, headers=None, token=True, timeout=60):
        h = dict(headers or {})
        if token:
            h.setdefault("Authorization", "Bearer " + (self.token if token is True else token))
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience(timeout))
        try:
            c.request(method, path, body=body, headers=h)
            r = c.getresponse()
            return r.status, r.read(), {k.lower(): v for k, v in r.getheaders()}
        finally:
            c.close()

    def call(self, method, path, body=None, headers=None, **kw):
        h = {"Content-Type": "application/json", **(headers or {})}
        data = body if isinstance(body, (bytes, type(None))) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        status, text, got = self.raw(method, path, data, h, **kw)
        try:
            value = json.loads(text) if text else None
        except ValueError:
            value = text
        return status, value, got

    def get(self, path, **kw):
        return self.call("GET", path, **kw)

    def post(self, path, body=None, headers=None, **kw):
        return self.call("POST", path, body, {"Idempotency-Key": str(uuid.uuid4()), **(headers or {})}, **kw)

    def submit(self, text, **kw):
        return self.post("/v1/campaigns", text, {"Content-Type": "application/yaml"}, **kw)

    def drover(self, *args, stdin=None, env=None, timeout=60):
        if not os.path.exists(DROVER):  # a sanitizer's is built when it is first asked for
            subprocess.run(["flock", f"{TOP}/build/{VARIANT}.lock", "make", "-s", "VARIANT=" + VARIANT, os.path.relpath(DROVER, TOP)], cwd=TOP, stdout=subprocess.DEVNULL, check=True)
        e = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{self.port}", "DROVER_TOKEN_FILE": self.token_file, "LC_ALL": "C.UTF-8", **(env or {})}
        return subprocess.run([DROVER, *args], input=stdin, text=True, capture_output=True, env=e, timeout=patience(timeout), check=False)

    def close(self):
        status = self.stop()
        self.log.close()
        log = open(self.dir + "/log").read()
        shutil.rmtree(self.dir, ignore_errors=True)
        return status, log


def spec(name="laion", fan_out='{from: "s3://data/meta/*.parquet"}', extra="", top=""):
    return f"""version: 1
name: {name}
{top}
stages:
  - name: download
    worker: download
    fan_out: {fan_out}
    instance_type: ml.c5.xlarge
    max_runtime: 1h
    hyperparameters: {{url_list: "{{uri}}", output_folder: "s3://data/out/{{part:05d}}/"}}
{extra}
"""


EIGHT = """version: 1
name: wrong
priorty: 5
stages:
  - name: download
    worker: downlaod
    fan_out: {from: "s3://data/meta/*.parquet"}
    instance_type: c5.xlarge
    instance_count: 0
    max_runtime: soon
    volume_gb: -1
    hyperparameters: {url_list: "{urii}", output_folder: "s3://data/out/"}
  - name: download
    needs: nobody
    worker: download
"""  # eight mistakes


def leader_fails(a, campaign, seqs, cause, message="No space left on device"):
    """Parts end failed, as the leader would write it."""
    for seq in seqs:
        a.sql(f"""UPDATE task_run SET state = 4, cause = {cause}, attempts = 1, names = 1 WHERE campaign_id = {campaign} AND seq = {seq};
            INSERT INTO attempt (campaign_id, stage_id, task_id, n, state, cause, epoch, name, request_sha256, identity_hash, instance_type, instances,
                max_runtime_s, price_musd_per_hour, reserved_musd, cost_musd, billable_s, holds, reason, ended_at)
            SELECT campaign_id, stage_id, id, 1, 9, {cause}, 1, 'd-{campaign}-' || seq || '-a1', decode(repeat('00', 32), 'hex'), repeat('0', 64), 'ml.c5.xlarge', 1,
                3600, 204000, 0, 1234567, 20, false, '{message}', clock_timestamp() FROM task_run WHERE campaign_id = {campaign} AND seq = {seq};
            INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, cause, final, signature, message, lost_musd)
            SELECT id, campaign_id, stage_id, seq, {cause}, true, 'disk #', '{message}', 1234567 FROM task_run WHERE campaign_id = {campaign} AND seq = {seq};
            UPDATE stage_run SET failed = failed + 1, waiting = waiting - 1 WHERE campaign_id = {campaign};""")


def leader_takes(a, campaign, state="running"):
    a.sql(f"""UPDATE campaign_run SET state = '{state}', started_at = clock_timestamp() WHERE campaign_id = {campaign};
        UPDATE stage_run r SET state = 'running', taken = i.tasks, waiting = i.tasks FROM stage_input i
        WHERE i.stage_id = r.stage_id AND r.campaign_id = {campaign} AND r.taken = 0;""")


def filled(pattern, campaign="c-1"):
    """A pattern of routes.def with ids."""
    ids = {"campaign": campaign, "operation": "op-1", "session": "s-1", "part": "0"}
    return re.sub(r"\{(\w+)\}", lambda m: ids.get(m[1], "invalid"), pattern)


def main(run):
    """Calls run(tap, pg) with a cluster that is stopped in any case."""
    tap, pg = Tap(), Pg()
    try:
        run(tap, pg)
    finally:
        pg.close()
    sys.exit(tap.done())
