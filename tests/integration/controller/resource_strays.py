#!/usr/bin/env python3
"""Endpoints and file systems that no row knows. Aim: after a restore nothing that costs money at AWS is forgotten: the next leader shows an
endpoint and a file system of lost campaigns with kind and cost so far, one command each ends them, and each is booked as drover-local's
invoice has it; what is left of an endpoint that somebody deleted is shown and ended, too; what others have, or a row stands for, is left
alone. Method: the real programs; the database is put back to an earlier copy of its files; the oracles are drover-local's lists, wire
log and invoice.
"""
import json
import os
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, wait_for
from kit.local import send, sign
from kit.stack import KEY, SECRET, Restored, Stack

TYPE = "ml.m5.large"
VPC = "vpc: {subnets: [subnet-0123456789abcdef0], security_groups: [sg-0123456789abcdef0]}"
SERVER = r"""
import http.server, os
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
http.server.ThreadingHTTPServer((os.environ["DROVER_HOST_ADDRESS"], int(os.environ["SAGEMAKER_BIND_TO_PORT"])), H).serve_forever()
"""
LOCAL = {"prices": {TYPE: "0.115", "hosting:" + TYPE: "36", "storage:SCRATCH_2": "0.14"}, "endpoint_quotas": {TYPE: 6}, "endpoint_start_seconds": 0.2,
         "endpoint_stop_seconds": 0.2, "fsx_create_seconds": 0.2, "fsx_delete_seconds": 0.2, "fsx_task_seconds": 0.1}
FSX = "AWSSimbaAPIService_v20180301."
HOUR_1200 = (140000 * 1200 * 2 + 730) // (2 * 730)
THINGS = {"Endpoint": "Endpoints", "EndpointConfig": "EndpointConfigs", "Model": "Models"}


def serving(name):
    return f"""version: 1
name: {name}
stages:
  - name: deploy
    kind: endpoint
    model: {{data: "s3://drover-test/models/model.tar.gz", image: "drover/server:test"}}
    instance_type: {TYPE}
    instance_count: 2
    ttl: 2h
"""


def storing(name):
    return f"""version: 1
name: {name}
stages:
  - {{name: volume, kind: lustre, size_gb: 1200, delete: after_ttl, ttl: 2h, {VPC}}}
"""


def ask(s, target, body):
    """AWS, asked without droverd."""
    url, data = f"http://127.0.0.1:{s.local_port}", json.dumps(body).encode()
    service = "fsx" if target.startswith(FSX) else "sagemaker"
    headers = sign(url, service, "POST", "/", data, {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": target}, KEY, SECRET)
    status, _, answer = send(url, "POST", "/", headers, data)
    if status != 200:
        raise RuntimeError(f"{target}: {status} {answer}")
    return json.loads(answer) if answer else {}


def there(s):
    """What drover-local's lists have: {kind: names}."""
    found = {kind: sorted(x[kind + "Name"] for x in ask(s, "SageMaker.List" + plural, {})[plural]) for kind, plural in THINGS.items()}
    found["FileSystem"] = sorted(x["FileSystemId"] for x in ask(s, FSX + "DescribeFileSystems", {})["FileSystems"])
    return found


def foreign(s, name, install):
    """The four things under a name that reads like ours; install: the tag of another drover, None: no tag."""
    tags = [{"Key": "drover-install", "Value": install}] if install else [{"Key": "team", "Value": "x"}]
    ask(s, "SageMaker.CreateModel", {"ModelName": name, "ExecutionRoleArn": "arn:aws:iam::111122223333:role/test", "Tags": tags,
                                     "PrimaryContainer": {"Image": "drover/server:test", "ModelDataUrl": "s3://drover-test/models/model.tar.gz"}})
    ask(s, "SageMaker.CreateEndpointConfig", {"EndpointConfigName": name, "Tags": tags, "ProductionVariants": [
        {"VariantName": "all", "ModelName": name, "InstanceType": TYPE, "InitialInstanceCount": 1}]})
    ask(s, "SageMaker.CreateEndpoint", {"EndpointName": name, "EndpointConfigName": name, "Tags": tags})
    ask(s, FSX + "CreateFileSystem", {"ClientRequestToken": name, "FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": ["subnet-0123456789abcdef0"],
                                      "LustreConfiguration": {"DeploymentType": "SCRATCH_2"}, "Tags": tags + [{"Key": "drover-token", "Value": name}]})


def strays(s):
    return s.api("GET", "/strays")


def shown(s, n):
    wait_for(lambda: strays(s)["sum"]["running"] == n or None, 30, f"{n} strays")
    return sorted((r for r in strays(s)["strays"] if r["running"]), key=lambda r: (r["kind"], r["job_name"]))


def is_in(s, table, cid, state):
    return s.sql(f"SELECT count(*) FROM {table} WHERE campaign_id = {cid[2:]} AND state = '{state}'") == "1"


def line(s, name):
    return [x for x in s.oracle("invoice")["lines"] if x["name"] == name]


def restart(s):
    s.kill("droverd0")
    s.start_droverd(0)


def asked_about(s, names):
    """Calls of droverd about single things of these names, in order."""
    return [r["operation"] for r in s.oracle("wire-log")["requests"] if r["name"] in names and not r["operation"].startswith("Create")]


def test_found_and_ended(tap, s, others):
    with Restored(s):
        served, stored = s.submit(serving("lost-endpoint")), s.submit(storing("lost-volume"))
        wait_for(lambda: is_in(s, "endpoint", served, "in_service") and is_in(s, "filesystem", stored, "available"), 60, "an endpoint and a file system")
        name, fs = s.sql("SELECT name FROM endpoint"), s.sql("SELECT aws_id FROM filesystem")
    s.start_droverd(0)
    rows = shown(s, 2)
    tap.eq([(r["kind"], r["job_name"], r["why"], r["campaign"], r["status"], r["instances"], r["instance_type"], r["market"]) for r in rows],
           [("endpoint", name, "lost", None, "InService", 2, TYPE, "hosting"), ("file_system", fs, "lost", None, "AVAILABLE", 0, "SCRATCH_2", "storage")], "both are shown, each once")
    wait_for(lambda: shown(s, 2)[0]["cost_micro_usd"] > 0 or None, 20, "a cost so far")
    tap.ok(rows[1]["cost_micro_usd"] == HOUR_1200 and all(r["started_at"] and r["found_at"] for r in rows), "with what they cost so far, and since when", rows)
    billable = {x["name"]: x["micro_usd_per_hour"] for x in s.api("GET", "/billable")["billable"]}
    tap.eq(billable, {name: 2 * 36000000, fs: HOUR_1200}, "they are what costs money at this moment")
    listed = s.drover("strays")
    tap.ok(all(x in listed.stdout for x in (name, fs, "endpoint", "file_system")), "drover strays lists them", listed)
    text = s.sql("SELECT string_agg(detail->>'text', '; ' ORDER BY id) FROM event WHERE kind = 'alert' AND detail->>'about' = 'stray'")
    tap.eq(text.count("belongs to no campaign"), 2, "people are told of both")
    restart(s)
    tap.eq([r["job_name"] for r in shown(s, 2)], [name, fs], "the next leader shows the same")
    tap.ok(s.drover("strays", "stop", name, "-y").returncode == 0 and s.drover("strays", "stop", fs, "-y").returncode == 0, "one command each ends them")
    wait_for(lambda: strays(s)["sum"]["running"] == 0 or None, 30, "their end")
    tap.eq(there(s), others, "AWS has only what others have")
    deletes = [x for x in asked_about(s, (name, fs)) if x.startswith("Delete")]
    tap.eq([x for x in deletes if x != "DeleteFileSystem"], ["DeleteEndpoint", "DeleteEndpointConfig", "DeleteModel"], "endpoint, config, model, in that order")
    booked = {r["job_name"]: (r["seconds"], r["cost_micro_usd"], r["estimated"]) for r in strays(s)["strays"]}
    tap.eq(booked, {name: (line(s, name)[0]["seconds"], line(s, name)[0]["micro_usd"], False), fs: (0, line(s, fs)[0]["micro_usd"], False)}, "booked as the invoice has them")
    tap.eq(s.sql("SELECT sum(spent_musd) FROM money WHERE level = 'global'"), str(sum(x[1] for x in booked.values())), "against the cap of all")
    tap.eq(s.drover("strays", "stop", name, "-y").returncode, 3, "once ended nothing is left to end")
    return name


def test_what_is_left(tap, s, others):
    """Somebody deletes the endpoint of a lost campaign by hand."""
    with Restored(s):
        cid = s.submit(serving("half"))
        wait_for(lambda: is_in(s, "endpoint", cid, "in_service"), 60, "an endpoint")
        name = s.sql("SELECT name FROM endpoint")
    ask(s, "SageMaker.DeleteEndpoint", {"EndpointName": name})
    wait_for(lambda: name not in there(s)["Endpoint"], 20, "its end")
    s.start_droverd(0)
    rows = shown(s, 1)
    tap.eq([(r["kind"], r["job_name"], r["cost_micro_usd"]) for r in rows], [("endpoint_config", name, 0)], "its config and model are one stray that costs nothing")
    s.api("POST", f"/strays/{name}:stop", {})
    wait_for(lambda: strays(s)["sum"]["running"] == 0 or None, 30, "its end")
    tap.eq(there(s), others, "both are gone")


def test_rows_that_stand_for_them(tap, s, others):
    cid, volume = s.submit(serving("kept")), s.submit(storing("kept-volume"))
    wait_for(lambda: is_in(s, "endpoint", cid, "in_service") and is_in(s, "filesystem", volume, "available"), 60, "an endpoint and a file system")
    before = len([r for r in s.oracle("wire-log")["requests"] if r["operation"] == "ListModels"])
    restart(s)
    wait_for(lambda: len([r for r in s.oracle("wire-log")["requests"] if r["operation"] == "ListModels"]) > before, 30, "a sweep")
    s.api("DELETE", f"/filesystems/{s.sql(f'SELECT token FROM filesystem WHERE campaign_id = {volume[2:]}')}")
    s.api("DELETE", f"/endpoints/{s.sql(f'SELECT name FROM endpoint WHERE campaign_id = {cid[2:]}')}")
    wait_for(lambda: there(s) == others, 60, "the end of both")
    tap.eq(strays(s)["sum"]["running"], 0, "what a row stands for is no stray")


def main():
    tap = Tap()
    with Stack("resource-strays", quotas={TYPE: 2}, local=LOCAL, images={"drover/server:test": [sys.executable, "-S", "-c", SERVER]}) as s:
        with open(s.dir + "/prices.json", "w") as f:
            json.dump(LOCAL["prices"], f)
        os.makedirs(s.dir + "/aws/s3/drover-test/models")
        with tarfile.open(s.dir + "/aws/s3/drover-test/models/model.tar.gz", "w:gz") as tar:
            tar.addfile(tarfile.TarInfo("weights"))
        s.start_pg()
        s.start_local()
        names = ["t-99-deploy-0-a1-0a1b2c3d", "t-98-deploy-0-a1-0a1b2c3d"]
        foreign(s, names[0], "00000000-0000-0000-0000-000000000000")
        foreign(s, names[1], None)
        others = there(s)
        tap.eq([len(x) for x in others.values()], [2, 2, 2, 2], "others have two of each")
        s.start_droverd(0)
        wait_for(lambda: s.leader() is not None, 20, "a leader")
        test_found_and_ended(tap, s, others)
        test_what_is_left(tap, s, others)
        test_rows_that_stand_for_them(tap, s, others)
        tap.eq(sorted(set(asked_about(s, names + others["FileSystem"]))), [], "what others have was neither described nor deleted")
        tags = len([r for r in s.oracle("wire-log")["requests"] if r["operation"] == "ListTags"])
        tap.ok(tags > 0, f"whose it is was asked ({tags} times)")
        tap.eq(s.sql("SELECT count(*) FROM check_counters()"), "0", "every sum is what it is the sum of")
        s.check_requests(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
