#!/usr/bin/python3
"""Rolling upgrade and rollback by one release. Aim: a droverd runs, and starts, on the schema of a newer one whose migrations are
additive, and refuses one whose migrations are not; a migration makes nobody queue behind it and names the process it waits for.
Method: the real programs. The newer schema is made as a newer droverd makes it: every table gets one more column, there is a table and an
index more, and a row of schema_migration. `upgrade.py previous [COMMIT]` builds an earlier droverd from git (default: the last tag, else
the commit before the newest migration) and runs both binaries on one database, each beside and after the other."""
import hashlib
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, Tap, postgres, wait_for
from kit.stack import Stack

tap = Tap()
MIGRATIONS = os.path.join(TOP, "sql", "migrations")
REFUSED = 5  # exit status of err_codes.def


def conninfo(s):
    return f"host={s.sock} user=drover dbname=postgres"


class Session:
    """psql, which keeps its transaction open."""

    def __init__(self, s, *statements):
        argv = [postgres.BIN_DIR + "/psql", "-XqAt", "-v", "ON_ERROR_STOP=1", conninfo(s)]
        self.p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for sql in (*statements, "SELECT pg_backend_pid()"):
            self.p.stdin.write(sql + ";\n")
        self.p.stdin.flush()
        self.pid = int(self.p.stdout.readline())

    def close(self):
        self.p.stdin.close()
        self.p.stdout.close()
        self.p.wait()


def write(s, sql, *options):
    """What only another droverd or a person would do."""
    subprocess.run([postgres.BIN_DIR + "/psql", "-Xq", "-v", "ON_ERROR_STOP=1", *options, conninfo(s)], input=sql, text=True, check=True,
                   stdout=subprocess.DEVNULL)


def newer_schema(s, name="9990_newer", additive=True):
    """As a newer droverd leaves it, and makes it: no lock is waited for longer than 200 ms, and none is kept while others are waited for."""
    tables = s.sql("SELECT string_agg(oid::regclass::text, ' ') FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition"
                   " AND relnamespace = 'public'::regnamespace AND relname <> 'schema_migration'").split()
    if additive:
        write(s, f"""SET lock_timeout = '200ms';
            DO $$
            DECLARE t text;
            BEGIN
                FOREACH t IN ARRAY '{{{",".join(tables)}}}'::text[] LOOP
                    LOOP
                        BEGIN
                            EXECUTE format('ALTER TABLE %s ADD COLUMN of_newer integer DEFAULT 7', t);
                            EXIT;
                        EXCEPTION WHEN lock_not_available THEN PERFORM pg_sleep(0.05);
                        END;
                    END LOOP;
                    COMMIT;
                END LOOP;
            END $$;
            CREATE TABLE newer (id bigint PRIMARY KEY);
            CREATE INDEX CONCURRENTLY attempt_newer ON attempt (of_newer);""")
    write(s, f"INSERT INTO schema_migration (name, sha256, additive) VALUES ('{name}', 'x', {additive})")
    return len(tables)


def log(s, key="droverd0"):
    with open(f"{s.dir}/{key}.log", encoding="utf-8") as f:
        return f.read()


def leads(s, i=0):
    wait_for(lambda: s.leader() == i, 60, f"droverd{i} leads", step=0.1)


def epoch(s):
    return int(s.sql("SELECT epoch FROM lease"))


def ends(s, cid, what):
    c = wait_for(lambda: s.ended(cid), 120, f"the end of {cid}", step=0.1)
    tap.ok(c["state"] == "succeeded", what, c)


def under_way(s, cid):
    """Some parts are done, and not all."""
    wait_for(lambda: int(s.sql(f"SELECT count(*) FROM attempt WHERE campaign_id = {cid[2:]} AND settled")) >= 1, 60, f"an end of a part of {cid}")
    return s.ended(cid) is None


def waits_for_a_lock(s, binary):
    """A schema of 0014, and a person who reads the table that 0015 changes."""
    files = sorted(os.listdir(MIGRATIONS))
    write(s, "CREATE TABLE schema_migration (name text PRIMARY KEY, sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())")
    for file in [f for f in files if f < "0015"]:
        with open(os.path.join(MIGRATIONS, file), "rb") as f:
            text = f.read()
        write(s, text.decode() + f";INSERT INTO schema_migration VALUES ('{file[:-4]}', '{hashlib.sha256(text).hexdigest()}')", "--single-transaction")
    bystander = Session(s, "BEGIN", "LOCK TABLE project IN ACCESS SHARE MODE")  # older, and in nobody's way
    reader = Session(s, "BEGIN", "LOCK TABLE endpoint IN ACCESS SHARE MODE")
    p = subprocess.Popen([binary, "migrate"], env={**os.environ, "DROVER_DATABASE_URL": conninfo(s)}, stderr=subprocess.PIPE, text=True)
    said = p.stderr.readline()
    tap.ok(f'"for_pid":{reader.pid},' in said and '"migration":"0015_hosting"' in said, f"a migration that gets no lock names the process it waits for, {reader.pid}",
           said)
    other = Session(s, "SET lock_timeout = '5s'", "BEGIN", "LOCK TABLE endpoint IN ACCESS SHARE MODE", "COMMIT")
    tap.ok(p.poll() is None, "meanwhile others read the table")
    other.close()
    reader.close()
    out = p.communicate(timeout=600)
    tap.ok(p.returncode == 0 and s.sql("SELECT count(*) FROM schema_migration") == str(len(files)), "then it goes on", out)
    bystander.close()


def refused(s, binary, name):
    for argv in ([binary], [binary, "migrate"]):
        p = subprocess.run(argv, env={**os.environ, **s.aws_env(), "DROVER_DATABASE_URL": conninfo(s), "DROVER_LISTEN": "127.0.0.1:0"}, capture_output=True,
                           text=True, timeout=600, check=False)
        tap.ok(p.returncode == REFUSED and f"'{name}' of a newer droverd, which is not additive" in p.stderr,
               f"{' '.join(os.path.basename(a) for a in argv)} refuses a schema whose newer migration is not additive", (p.returncode, p.stderr[-1000:]))


def reads(s, cid):
    """The answers to one GET of every list, several times, so that every connection has its statements prepared."""
    paths = ["/campaigns", *(f"/campaigns/{cid}{p}" for p in ("", "/spec", "/parts", "/tiles", "/failures", "/cost", "/metrics", "/forecast")), f"/parts/{cid}/1",
             "/quotas", "/pools", "/endpoints", "/strays", "/parked", "/operations", "/tokens", "/audit", "/projects"]
    return [(p, status) for p in paths * 3 for status, _, _ in [s.raw("GET", "/v1" + p)] if status != 200]


def present_on_newer(s):
    """This binary below a schema that a later one will make."""
    leads(s)
    cid, before = s.submit(), epoch(s)
    half = under_way(s, cid)
    tap.eq(reads(s, cid), [], "lists are answered")
    tables = newer_schema(s)
    tap.eq(reads(s, cid), [], "and on the newer schema, by statements that were prepared on the older one")
    tap.ok(half, f"{tables} tables get a column while the campaign runs")
    ends(s, cid, "the running leader ends its campaign on the newer schema")
    tap.eq(epoch(s), before, "and has led all the time")
    s.kill("droverd0", signal.SIGTERM)
    s.start_droverd()
    leads(s)
    tap.ok('"event":"schema_newer","unknown_migrations":1,"newest":"9990_newer"' in log(s), "it starts on the newer schema, says so and leads", log(s)[-2000:])
    ends(s, s.submit(name="after"), "and a campaign ends")
    s.kill("droverd0", signal.SIGTERM)
    newer_schema(s, "9991_contract", additive=False)
    refused(s, s.bin + "/droverd", "9991_contract")
    write(s, "DELETE FROM schema_migration WHERE name = '9991_contract'")
    s.start_droverd()
    leads(s)
    s.check_invoice(tap)


def build_previous(commit, folder):
    """droverd of that commit, built in a folder of its own."""
    archive = subprocess.run(["git", "-C", TOP, "archive", commit], check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    os.makedirs(folder + "/build")
    for packages in ("deps", "web"):
        os.symlink(f"{TOP}/build/{packages}", f"{folder}/build/{packages}")
    subprocess.run(["make", "-s", "-C", folder, "build/bin/droverd", *(["CC=" + os.environ["CC"]] if "CC" in os.environ else [])], check=True,
                   stdout=subprocess.DEVNULL, env={k: v for k, v in os.environ.items() if not k.startswith("MAKE")})
    return folder + "/build/bin/droverd"


def previous_commit():
    """The last release; before there is one: the last commit before a migration was added whose own are all among today's, word for
    word. (A migration gets another number when two branches meet; such a commit was never a release.)"""
    git = ["git", "-C", TOP]
    tag = subprocess.run([*git, "describe", "--tags", "--abbrev=0", "HEAD^"], capture_output=True, text=True, check=False)
    if tag.returncode == 0:
        return tag.stdout.strip()

    def lines(*words):
        return subprocess.run([*git, *words], check=True, capture_output=True, text=True).stdout.splitlines()
    today = set(lines("ls-tree", "HEAD", "sql/migrations/"))
    added = lines("log", "--format=%H", "--diff-filter=A", "--", "sql/migrations")
    return next(c + "^" for c in added if set(lines("ls-tree", c + "^", "sql/migrations/")) < today)


def may_start(folder):
    """Whether droverd of that source starts on the present schema, by its and our text: it has the rule, and whatever it lacks is additive."""
    with open(folder + "/sql/queries/migrate.sql", encoding="utf-8") as f:
        rule = "additive" in f.read()
    later = sorted(set(os.listdir(MIGRATIONS)) - set(os.listdir(folder + "/sql/migrations")))
    told = []
    for file in later:
        with open(os.path.join(MIGRATIONS, file), encoding="utf-8") as f:
            told.append(f.readline().startswith("-- additive: "))
    return not later or (rule and all(told)), later


def rolling(s, old, folder):
    """Old leads, new starts beside it and migrates, old goes on; new takes over; old beside new; back to old."""
    may, later = may_start(folder)
    print(f"# the present schema has {len(later)} migrations more: {' '.join(later)}; the earlier droverd may{'' if may else ' not'} start on it", flush=True)
    s.start_droverd(0, binary=old)
    leads(s)
    cid, before = s.submit(name="old"), epoch(s)
    half = under_way(s, cid)
    s.start_droverd(1)
    tap.ok(half and int(s.sql("SELECT count(*) FROM schema_migration")) == len(os.listdir(MIGRATIONS)), "the new droverd migrates while the old one leads")
    ends(s, cid, "the old one ends its campaign on the new schema")
    tap.eq(epoch(s), before, "and has led all the time")
    cid = s.submit(name="handed-over")
    under_way(s, cid)
    s.kill("droverd0", signal.SIGTERM)
    leads(s, 1)
    ends(s, cid, "the new one takes over in the middle of a campaign")
    if may:
        s.start_droverd(0, binary=old)
        cid = s.submit(name="rolled-back")
        under_way(s, cid)
        s.kill("droverd1", signal.SIGTERM)
        leads(s)
        ends(s, cid, "the old one starts on the new schema and takes over in the middle of a campaign")
        s.check_wire(tap)
    else:
        p = s.start_droverd(2, binary=old, ready=False)
        tap.ok(p.wait(600) == REFUSED and "a newer" in log(s, "droverd2"), "the old one refuses the new schema with its reason", log(s, "droverd2")[-500:])
        s.procs.pop("droverd2")
    s.check_invoice(tap)


Stack.migrated = False
if len(sys.argv) > 1 and sys.argv[1] == "previous":
    commit = sys.argv[2] if len(sys.argv) > 2 else previous_commit()
    print(f"# the earlier droverd is that of {commit}", flush=True)
    with tempfile.TemporaryDirectory(prefix="drover-previous-") as d, Stack("upgrade-previous", parts=12, lease_us=9000000) as stack:
        program = build_previous(commit, d)
        stack.start_pg()
        stack.start_local()
        rolling(stack, program, d)
else:
    with Stack("upgrade", parts=12, lease_us=9000000) as stack:
        stack.start_pg()
        stack.start_local()
        waits_for_a_lock(stack, stack.bin + "/droverd")
        stack.start_droverd()
        present_on_newer(stack)
sys.exit(tap.done())
