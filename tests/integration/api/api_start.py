"""How droverd and the API's server start, for api_safe.py: alone on an address, with settings that make sense, without PostgreSQL.
"""
import os
import signal
import subprocess
import tempfile

from kit import BIN, free_port, wait_for


class Droverd:
    """A droverd process; its log is read when it has ended, or by wait."""

    def __init__(self, *args, **env):
        self.dir = tempfile.TemporaryDirectory(prefix="drover-safe-")
        self.log = open(self.dir.name + "/log", "wb")
        e = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "DROVER_"))}
        e |= {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
              "DROVER_TOKEN_FILE": self.dir.name + "/token", "DROVER_LISTEN": "127.0.0.1:0", **env}
        self.listen = e["DROVER_LISTEN"]
        self.p = subprocess.Popen([BIN + "/droverd", *args], env=e, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)

    def text(self):
        with open(self.dir.name + "/log", encoding="utf-8") as f:
            return f.read()

    def said(self, *words, seconds=20):
        return wait_for(lambda: all(w in self.text() for w in words) or self.p.poll() is not None, seconds) and all(w in self.text() for w in words)

    def ended(self, seconds=20):
        """Exit status; None when it runs on."""
        return wait_for(lambda: [self.p.poll()] if self.p.poll() is not None else None, seconds, step=0.01) or [None]

    def close(self, sig=signal.SIGTERM):
        if self.p.poll() is None:
            self.p.send_signal(sig)
        try:
            return self.p.wait(30)
        finally:
            self.log.close()
            self.dir.cleanup()


def start_alone(t, pg):
    """One droverd per address; one private database."""
    port, db = free_port(), pg.conninfo(pg.database())
    listen = f"127.0.0.1:{port}"
    first = Droverd(DROVER_DATABASE_URL=db, DROVER_LISTEN=listen)
    t.ok(first.said("droverd_started"), "droverd starts", first.text())
    second = Droverd(DROVER_DATABASE_URL=db, DROVER_LISTEN=listen)
    status = second.ended(5)[0]
    t.ok(status == 1 and f"cannot listen on 127.0.0.1 port {port}: Address already in use" in second.text(), "a second one on its address ends with the reason",
         (status, second.text()))
    second.close()
    first.close()
    with tempfile.TemporaryDirectory(prefix="drover-safe-db-") as d:
        os.chmod(d, 0o755)
        first = Droverd("--private-db", d)
        t.ok(first.said("droverd_started", seconds=60), "droverd starts with a private database", first.text())
        second = Droverd("--private-db", d)
        status = second.ended(10)[0]
        t.ok(status == 5 and "used by another droverd" in second.text(), "a second one on the same directory ends with the reason", (status, second.text()))
        second.close()
        migrate = subprocess.run([BIN + "/droverd", "migrate", "--private-db", d], capture_output=True, text=True, check=False)
        t.eq(migrate.returncode, 5, "so does droverd migrate")
        t.ok("private_db_not_stopped" not in first.text() and first.p.poll() is None and os.path.exists(d + "/pg/data/postmaster.pid"), "and the first one keeps its database")
        first.close(signal.SIGKILL)
        first = Droverd("--private-db", d)
        t.ok(first.said("droverd_started", seconds=60), "after kill -9 the directory is free again", first.text())
        t.eq(first.close(), 0, "and it ends cleanly")


PREFIXES = (("team_a", "team-a"), ("-team.a-", "team-a"), ("__", "d"), ("a-far-too-long-name-for-it", "a-far-too-long-name-for"))  # as given, as proposed


def start_settings(t, pg):
    """Faults of the command line and the settings are reported before anything is started."""
    db = pg.conninfo(pg.database())
    wrong = (({"DROVER_LOG_LEVEL": "loud"}, "log_level 'loud': write debug, info, warn or error"), ({"DROVER_LEASE_RENEW_US": "5000000"}, "lease_renew_us 5000000: must be less than half of lease_length_us"),
             ({"DROVER_LISTEN": "127.0.0.1"}, "write ADDRESS:PORT"), ({"DROVER_LISTEN": "127.0.0.1:99999"}, "write ADDRESS:PORT"), ({"DROVER_LISTEN": "127.evil:80"}, "'127.evil' is not an IP address"),
             ({"DROVER_LISTEN": "nowhere:80"}, "'nowhere' is not an IP address"), ({"DROVER_LISTEN": ":80"}, "'' is not an IP address"), ({"DROVER_LISTEN": "0.0.0.0:80"}, "not a loopback address"),
             ({"DROVER_LISTEN": "::1:80"}, "'::1' is not an IP address"), ({"DROVER_LISTEN": "[::]:80"}, "not a loopback address"),
             ({"DROVER_BUCKET_KMS_KEY": "alias/a b"}, "bucket_kms_key 'alias/a b': write alias/NAME, a key's id or its ARN"),
             ({"DROVER_ROLE_ARN": "arn:aws:iam::111122223333:role/r", "AWS_REGION": "cn-north-1"}, "is of another partition than the region cn-north-1: write arn:aws-cn:iam::ACCOUNT:role/NAME"),
             *(({"DROVER_JOB_PREFIX": given}, f"job_prefix '{given}': jobs would be named {clean}-...; write job_prefix '{clean}'") for given, clean in PREFIXES))
    for env, reason in wrong:
        d = Droverd(DROVER_DATABASE_URL=db, **env)
        status = d.ended(5)[0]
        t.ok(status == 2 and reason in d.text() and "schema_ready" not in d.text(), f"{env}: exit 2 with the reason", (status, d.text()))
        d.close()
    for args, reason in ((["migrat"], "there is no command 'migrat'"), (["migrate", "now"], "migrate takes no argument")):
        d = Droverd(*args, DROVER_DATABASE_URL=db)
        status = d.ended(5)[0]
        t.ok(status == 2 and reason in d.text(), f"droverd {' '.join(args)}: exit 2 with the reason", (status, d.text()))
        d.close()
    for clean in {clean for _, clean in PREFIXES}:
        d = Droverd(DROVER_DATABASE_URL=db, DROVER_JOB_PREFIX=clean)
        t.ok(d.said("droverd_started"), f"droverd starts with the proposed job_prefix {clean}", d.text())
        d.close()
    for listen in ("localhost:0", "[::1]:0"):
        d = Droverd(DROVER_DATABASE_URL=db, DROVER_LISTEN=listen)
        t.ok(d.said("droverd_started"), f"{listen} is an address", d.text())
        d.close()


def start_waits(t, pg):
    """PostgreSQL may start later than droverd."""
    sock = tempfile.mkdtemp(prefix="drover-safe-")
    d = Droverd(DROVER_DATABASE_URL=f"host={sock} user=drover dbname=postgres", DROVER_DATABASE_WAIT_US="1000000")
    t.ok(d.ended(15)[0] == 7 and "no database for 1 s: nothing answers" in d.text(), "no PostgreSQL: droverd gives up in the end", d.text())
    d.close()
    d = Droverd(DROVER_DATABASE_URL=f"host={sock} user=drover dbname=postgres")
    t.ok(d.said("database_waited") and d.p.poll() is None, "it waits for PostgreSQL and says so", d.text())
    os.symlink(pg.dir + "/.s.PGSQL.5432", sock + "/.s.PGSQL.5432")
    t.ok(d.said("droverd_started"), "and starts when PostgreSQL answers", d.text())
    t.ok(d.text().count("database_waited") <= 6, "with few lines in its log", d.text())
    d.close()
    d = Droverd(DROVER_DATABASE_URL=f"host={pg.dir} user=drover dbname=nosuch")
    t.ok(d.ended(5)[0] == 7 and 'database "nosuch" does not exist' in d.text(), "a database that does not exist is not waited for", d.text())
    d.close()
    os.unlink(sock + "/.s.PGSQL.5432")
    os.rmdir(sock)
