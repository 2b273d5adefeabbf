#!/usr/bin/python3
"""Aim: credentials that expire, rotate or fail in the middle of a campaign hold the queue and lose nothing,
in droverd and in its jobs, whatever source they come from.

Method: droverd without keys of its own, against a drover-local that gives out keys which live a second or
two; jobs have the container endpoint. The endpoint fails, keys are refused, jobs are kept waiting longer than
their keys live. Each part must be done with one attempt, each name accepted once, ledger equal to the
invoice; no secret may stand in a log.   (ONLY=word runs the cases whose name contains it)
"""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, cases, wait_for
from kit.stack import DROVERD_KEY, KEY, SECRET, Stack

tap = Tap()
ROLE = "arn:aws:iam::123456789012:role/droverd"
ONE = "s3://drover-test/meta/part-00000*.parquet"
ALL = 6
NO_KEYS = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null",
           "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}


def container(s):
    return {**NO_KEYS, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{s.local_port}/v2/credentials/droverd"}


def wire(s, operation, since=0.0):
    return [r for r in s.oracle("wire-log")["requests"] if r["operation"] == operation and r["time"] >= since]


def done(s, cid, parts, seconds=90):
    try:
        c = wait_for(lambda: s.ended(cid), seconds, f"the end of {cid}", step=0.1)
    except TimeoutError:
        c = s.api("GET", f"/campaigns/{cid}")
    listed = s.api("GET", f"/campaigns/{cid}/parts")["parts"]
    tap.ok(c["state"] == "succeeded" and [p["attempts"] for p in listed] == [1] * parts, f"{s.what}all {parts} parts are done, with one attempt each",
           f"{c['state']} {listed}")


def log_of(s, key="droverd0"):
    with open(f"{s.dir}/{key}.log") as f:
        return f.read()


def case_keys_that_live_a_second(s):
    done(s, s.submit(name="short"), ALL)
    ids = {r["key_id"] for r in s.oracle("wire-log")["requests"] if r["signed"] and r["key_id"].startswith("ASIA")}
    tap.ok(len(ids) > ALL + 2 and {KEY, DROVERD_KEY}.isdisjoint(r["key_id"] for r in s.oracle("wire-log")["requests"]),
           f"{s.what}{len(ids)} sets of keys signed the requests, none of them the fixed ones")


def case_jobs_that_outlive_their_keys(s):
    s.procs["web"].send_signal(signal.SIGSTOP)  # the job waits for it while its keys expire
    cid = s.submit(name="outlive", source=ONE)
    job = wait_for(lambda: [j for j in s.oracle("jobs")["jobs"] if j["name"].startswith(f"t-{cid[2:]}-") and j["status"] == "InProgress"], 30, "a job")[0]
    asked = f"/v2/credentials/{job['name']}"
    first = wait_for(lambda: [r for r in wire(s, "GetContainerCredentials") if r["name"] == asked], 30, "the job's first keys")[0]
    wait_for(lambda: time.time() > first["time"] + 3, 10, "the end of those keys")
    s.procs["web"].send_signal(signal.SIGCONT)
    done(s, cid, 1)
    n = len([r for r in wire(s, "GetContainerCredentials") if r["name"] == asked])
    tap.ok(n >= 2, f"{s.what}the job asked {n} times for keys")


def case_an_endpoint_that_fails(s):
    cid = s.submit(name="gap")
    wait_for(lambda: wire(s, "CreateTrainingJob"), 30, "the first job")
    s.faults({"operation": "GetContainerCredentials", "name_contains": "droverd", "kind": "error_500", "times": 1000})
    began = time.time()
    wait_for(lambda: "credentials_not_renewed" in log_of(s) and time.time() > began + 5, 60, "the end of droverd's keys")
    late = [r for r in s.oracle("wire-log")["requests"] if r["time"] > began + 4 and r["service"] == "sagemaker"]
    tap.ok(not late, f"{s.what}droverd sends nothing with keys that have expired", late[:5])
    ready = s.raw("GET", "/livez", i=0)[0]
    tap.ok(ready == 200 and s.procs["droverd0"].poll() is None, f"{s.what}it stays up meanwhile")
    s.faults()
    done(s, cid, ALL)


def case_keys_that_are_refused(s):
    s.faults(*({"operation": op, "kind": "expired_token", "probability": 0.15, "times": 1000, "seed": i}
               for i, op in enumerate(("CreateTrainingJob", "DescribeTrainingJob", "ListTrainingJobs", "PutObject", "GetObject", "HeadObject", "ListObjectsV2"))))
    done(s, s.submit(name="refused"), ALL)
    refused = [r for r in s.oracle("wire-log")["requests"] if r["error"] in ("ExpiredToken", "ExpiredTokenException")]
    tap.ok(len(refused) > 3, f"{s.what}{len(refused)} requests were refused")


def case_every_source(s):
    token = s.dir + "/web-token"
    with open(token, "w") as f:
        f.write("web-token")
    config = s.dir + "/aws-config"
    with open(config, "w") as f:
        f.write(f"[profile campaign]\nrole_arn = {ROLE}\nsource_profile = base\n[profile base]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    url = f"http://127.0.0.1:{s.local_port}"
    for name, env in (("instance metadata", {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": url}),
                      ("web identity", {"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": ROLE}),
                      ("a profile's role", {"AWS_CONFIG_FILE": config, "AWS_DEFAULT_PROFILE": "campaign"})):
        s.kill("droverd0", signal.SIGTERM)
        since = time.time()
        s.start_droverd(env={**NO_KEYS, **env})
        wait_for(lambda: s.leader() is not None, 30, "a leader")
        done(s, s.submit(name="source", source=ONE), 1)
        keys = {r["key_id"][:4] for r in s.oracle("wire-log")["requests"] if r["time"] > since and r["service"] == "sagemaker"}
        tap.ok(keys == {"ASIA"}, f"{s.what}{name}: droverd's requests carry temporary keys", keys)


CASES = cases(globals())
with Stack("controller-credentials", parts=ALL, rows=4, lease_us=4000000,
           local={"cold_start_seconds": 0.2, "credential_seconds": 1, "containers": {"droverd": ROLE}, "instance_role": ROLE, "web_identities": {"web-token": ROLE},
                  "roles": [ROLE, "arn:aws:iam::111122223333:role/test"], "signature_window_seconds": 20}) as stack:
    stack.start(0)
    stack.start_droverd(env=container(stack))
    wait_for(lambda: stack.leader() is not None, 20, "a leader")
    for case in CASES:
        stack.what, stack.began = case.__name__[5:].replace("_", " ") + ": ", time.time()
        case(stack)
        print(f"# {time.time() - stack.began:.1f} s", flush=True)
        stack.faults()
    stack.what = ""
    wait_for(lambda: not stack.live_jobs(), 30, "no live job")
    stack.check_wire(tap)
    stack.check_invoice(tap)
    said = log_of(stack)
    for folder, _, names in os.walk(stack.dir + "/aws/jobs"):
        said += "".join(open(os.path.join(folder, n), errors="replace").read() for n in names if n.endswith(".log") or n in ("stdout", "stderr", "output"))
    tap.ok("credentials_renewed" in said and SECRET not in said and "drover-local/" not in said, "no secret and no session token stands in a log")
sys.exit(tap.done())
