#!/usr/bin/python3
"""The dashboard in a real browser: Chromium against droverd, PostgreSQL and drover-local, all real.

This half brings the stack up, spoils one part's parquet file, and then carries out what the browser's half (dashboard.mjs)
asks for on its standard output: lines "@verb argument" are answered by one line, everything else is TAP and passed on.
The verbs are what people do outside the browser: mend a file in the bucket, stop and start droverd, order faults.
usage: dashboard.py   (SHOTS=1 keeps pictures in build/e2e-shots; ONLY=journey,runs,large,guide,craft,endpoints,filesystems,money,people,parked,hostile chooses)"""
import glob
import json
import os
import signal
import subprocess
import sys
import tarfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests"))
from kit.measure import psql  # noqa: E402
from kit.oidc import Provider  # noqa: E402
from kit.stack import KEY, SECRET, Stack, free_port  # noqa: E402

PARTS, ROWS = 10, 12
HOSTING = {"prices": {t: "0.204" for t in ("ml.c5.xlarge", "ml.m5.large", "ml.m5.xlarge")} | {"hosting:ml.m5.xlarge": "36", "storage:SCRATCH_2": "0.14"},
           "endpoint_quotas": {"ml.m5.xlarge": 2}, "warm_quotas": {"ml.m5.xlarge": 1}, "warm_start_seconds": 0.05, "endpoint_start_seconds": 0.3, "endpoint_stop_seconds": 0.5}
BROKEN = 3


def s3_client(s):
    import botocore.session
    return botocore.session.get_session().create_client(
        "s3", region_name="us-east-1", endpoint_url=f"http://127.0.0.1:{s.local_port}", aws_access_key_id=KEY, aws_secret_access_key=SECRET)


def connections(port):
    """The kernel's lines of TCP sockets with this port: state, bytes not yet sent or read, timer."""
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return [" ".join(r[1:6]) for r in rows if f":{port:04X}" in r[1] + r[2]]


REFUSE = """CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'value out of range: %s' USING ERRCODE = '22003'; END $$;
    CREATE TRIGGER poison BEFORE INSERT ON attempt FOR EACH ROW EXECUTE FUNCTION poison()"""


def misunderstood(s, campaign):
    """An operation whose selection this droverd does not know, as a newer one might leave it. Returns its id."""
    psql(s, f"""INSERT INTO operation (campaign_id, kind, selector, total) VALUES ({int(campaign)}, 'skip', '{{"cause": ["of_tomorrow"]}}', 1)""")
    return s.sql(f"SELECT max(id) FROM operation WHERE campaign_id = {int(campaign)}")


def verbs(s):
    files = sorted(glob.glob(s.dir + "/aws/s3/*/meta/*.parquet"))
    bucket = files[BROKEN].split("/")[-3]
    key = "meta/" + os.path.basename(files[BROKEN])
    good = open(files[BROKEN], "rb").read()
    s3 = s3_client(s)

    def put(body):
        s3.put_object(Bucket=bucket, Key=key, Body=body)
        return key

    return {
        "break": lambda _: put(good[: len(good) // 2]),
        "mend": lambda _: put(good),
        "stop": lambda _: s.kill("droverd0"),
        "start": lambda _: s.start_droverd(0) and None,
        "freeze": lambda _: s.procs["droverd0"].send_signal(signal.SIGSTOP),
        "thaw": lambda _: s.procs["droverd0"].send_signal(signal.SIGCONT),
        "faults": lambda a: s.faults(*json.loads(a)),
        "refuse": lambda a: psql(s, REFUSE % a),
        "misunderstood": lambda a: misunderstood(s, a),
        "accept": lambda a: psql(s, f"DROP FUNCTION poison CASCADE; UPDATE operation SET selector = '{{}}' WHERE id = {int(a)}"),
        "connections": lambda _: connections(s.ports["droverd0"]),
    }


def main():
    shots = os.path.join(TOP, "build/e2e-shots") if os.environ.get("SHOTS") else ""
    if shots:
        os.makedirs(shots, exist_ok=True)
    hooks = free_port()  # where the browser's half takes messages of webhooks
    login, port = Provider(), free_port()
    with open(login.dir + "/secret", "w") as f:
        f.write(login.SECRET)
    oidc = {"DROVER_PUBLIC_URL": f"http://127.0.0.1:{port}", "DROVER_OIDC_ISSUER": login.issuer, "DROVER_OIDC_ALLOW_NET": f"127.0.0.1:{login.port}", "DROVER_OIDC_NAME": "Example",
            "DROVER_OIDC_CLIENT_ID": login.CLIENT, "DROVER_OIDC_CLIENT_SECRET_FILE": login.dir + "/secret"}
    mail = {"DROVER_SMTP_URL": "smtps://127.0.0.1:1", "DROVER_SMTP_FROM": "drover@example.com"}  # nothing listens there
    with Stack("dashboard", quotas={"ml.c5.xlarge": 2, "ml.m5.large": 0, "ml.m5.xlarge": 8, "ml.r5.xlarge": 2}, parts=PARTS, rows=ROWS, lease_us=10000000, local=HOSTING, env={"DROVER_WEBHOOK_ALLOW_NET": f"127.0.0.1/32:{hooks}", **oidc, **mail},
               images={"drover/user:test": [sys.executable, TOP + "/tests/kit/programs/user_program.py"]}) as s:
        began = time.monotonic()
        s.ports["droverd0"] = port
        with open(s.dir + "/prices.json", "w") as f:
            json.dump(HOSTING["prices"], f)
        s.start()
        with tarfile.open(s.dir + "/aws/s3/drover-test/model.tar.gz", "w:gz"):
            pass
        print(f"# the stack is up after {time.monotonic() - began:.1f} s", flush=True)
        do = verbs(s)
        do["break"]("")
        env = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{s.ports['droverd0']}", "DROVER_TOKEN": open(s.token_file).read().strip(),
               "SPEC": s.campaign(name="laion-sample"), "PARTS": str(PARTS), "BROKEN": str(BROKEN), "HOOKS": str(hooks), "SHOTS_DIR": shots,
               "PACKAGES": os.path.join(TOP, "build/e2e/")}
        node = subprocess.Popen(["node", os.path.join(TOP, "tests/e2e/dashboard.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        for line in node.stdout:
            if line.startswith("@"):
                verb, _, arg = line[1:].strip().partition(" ")
                node.stdin.write(json.dumps(do[verb](arg)) + "\n")
                node.stdin.flush()
            else:
                print(line, end="", flush=True)
        status = node.wait()
        began = time.monotonic()
    login.close()
    print(f"# and down after {time.monotonic() - began:.1f} s", flush=True)
    return status


sys.exit(main())
