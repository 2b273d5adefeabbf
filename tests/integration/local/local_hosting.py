#!/usr/bin/env python3
"""drover-local's hosting through botocore: models, endpoint configs, endpoints with real model servers, invocations, what is
refused in AWS's words, what a failed container leads to, quotas, tags, kills, and the invoice. Requests are checked by botocore's
own models on the way out, answers on the way in; the invoice is recomputed from what Describe showed.
"""
import io
import json
import math
import os
import re
import sys
import tarfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import BIN, TOP, wait_for
from kit.local import ROLE, call, error_of, lost, run, same, send, sign

TYPE = "ml.m5.large"
ARN = "arn:aws:sagemaker:us-east-1:123456789012:"
WORKER = "worker"  # drover-worker serve-sample
SLOW = "slow"      # never answers /ping
# What a server of a user looks like: it says where it is, fails when told, and echoes headers.
SERVER = r"""
import http.server, os, sys, time
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def say(self, status, body, **more):
        self.send_response(status)
        for k, v in more.items(): self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.say(200, b"")
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if body == b"fail": self.say(500, "kein Modell \u00e4".encode())
        elif body == b"bad": self.say(400, b"what is this?")
        elif body == b"die": os._exit(3)
        elif body == b"env": self.say(200, os.environ.get("WHO", "").encode() + b" " + os.environ["DROVER_HOST_ADDRESS"].encode())
        else: self.say(200, b"<" + body + b">", Content_Type=self.headers["Content-Type"] + "+seen",
                       X_Amzn_SageMaker_Custom_Attributes=self.headers.get("X-Amzn-SageMaker-Custom-Attributes", "none"))
print("model:", sorted(os.listdir(os.environ["DROVER_ML_ROOT"] + "/model")), sys.argv[1:], flush=True)
http.server.ThreadingHTTPServer((os.environ["DROVER_HOST_ADDRESS"], int(os.environ["SAGEMAKER_BIND_TO_PORT"])), H).serve_forever()
"""
CONFIG = {"images": {WORKER: [BIN + "/drover-worker"], SLOW: ["/bin/sh", "-c", "exec sleep 1000"],
                     "py": [sys.executable, "-S", "-c", SERVER]},
          "endpoint_quotas": {TYPE: 4}, "endpoint_start_seconds": 0.05, "endpoint_stop_seconds": 0.05,
          "prices": {TYPE: "0.115", "hosting:" + TYPE: "0.5"}}


def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return out.getvalue()


def put(l, key, body):
    path = os.path.join(l.root, "s3", "bkt", key)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(body)
    return "s3://bkt/" + key


def model(l, name, image="py", data=None, **more):
    c = {"Image": image, **({"ModelDataUrl": data} if data else {}), **more}
    return l.sm.create_model(ModelName=name, PrimaryContainer=c, ExecutionRoleArn=ROLE)


def variant(model_name, count=1, **more):
    return {"VariantName": "AllTraffic", "ModelName": model_name, "InstanceType": TYPE, "InitialInstanceCount": count, **more}


def endpoint(l, name, model_name=None, image="py", data=None, count=1):
    """Model, config and endpoint of one name."""
    if model_name is None:
        model(l, name, image, data)
    l.sm.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant(model_name or name, count)])
    return l.sm.create_endpoint(EndpointName=name, EndpointConfigName=name)


def seen(l, name):
    return l.sm.describe_endpoint(EndpointName=name)


def settled(l, name):
    return wait_for(lambda: (lambda d: None if d["EndpointStatus"] in ("Creating", "Updating") else d)(seen(l, name)), 30, name + " to settle")


def serving(l, name):
    d = settled(l, name)
    same(d["EndpointStatus"], "InService")
    return d


def invoke(l, name, body=b"x", content="text/plain", **more):
    r = l.client("sagemaker-runtime").invoke_endpoint(EndpointName=name, Body=body, ContentType=content, **more)
    return r["Body"].read(), r


def gone(l, name):
    wait_for(lambda: name not in [e["EndpointName"] for e in l.sm.list_endpoints()["Endpoints"]], 30, name + " to be gone")


def test_life__deploy_invoke_delete(l):
    same(model(l, "m", "py", put(l, "m/model.tar.gz", archive({"weights": b"1", "code/x.py": b"2"})), Environment={"WHO": "me"})["ModelArn"],
         ARN + "model/m")
    same(l.sm.create_endpoint_config(EndpointConfigName="c", ProductionVariants=[variant("m")])["EndpointConfigArn"], ARN + "endpoint-config/c")
    same(l.sm.create_endpoint(EndpointName="e", EndpointConfigName="c")["EndpointArn"], ARN + "endpoint/e")
    d = seen(l, "e")
    same((d["EndpointStatus"], d["EndpointConfigName"], "ProductionVariants" in d), ("Creating", "c", False))
    same(error_of(invoke, l, "e")[:2], ("ValidationError", "Endpoint e of account 123456789012 not found."))
    d = serving(l, "e")
    v = d["ProductionVariants"][0]
    same((v["VariantName"], v["CurrentInstanceCount"], v["DesiredInstanceCount"], v["DeployedImages"][0]["SpecifiedImage"]), ("AllTraffic", 1, 1, "py"))
    body, r = invoke(l, "e", b"hello", CustomAttributes="a=1")
    same((body, r["ContentType"], r["InvokedProductionVariant"], r["CustomAttributes"]), (b"<hello>", "text/plain+seen", "AllTraffic", "a=1"))
    assert invoke(l, "e", b"env")[0].startswith(b"me 127.")
    with open(wait_for(lambda: [os.path.join(b, f) for b, _, fs in os.walk(l.root + "/fleets") for f in fs if f == "log"], 10, "a log")[0]) as f:
        assert "model: ['code', 'weights'] ['serve']" in f.read(), "the model is in its folder, the argument is serve"
    m = l.sm.describe_model(ModelName="m")
    same((m["PrimaryContainer"]["Environment"], m["PrimaryContainer"]["Mode"], m["ExecutionRoleArn"], m["EnableNetworkIsolation"]),
         ({"WHO": "me"}, "SingleModel", ROLE, False))
    c = l.sm.describe_endpoint_config(EndpointConfigName="c")
    same((c["ProductionVariants"][0]["ModelName"], c["ProductionVariants"][0]["InitialVariantWeight"]), ("m", 1.0))
    l.sm.delete_model(ModelName="m")  # both may go while the endpoint serves
    l.sm.delete_endpoint_config(EndpointConfigName="c")
    same(invoke(l, "e", b"still")[0], b"<still>")
    l.sm.delete_endpoint(EndpointName="e")
    gone(l, "e")
    same(error_of(seen, l, "e")[:2], ("ValidationException", 'Could not find endpoint "%sendpoint/e".' % ARN))
    same([l.sm.list_models()["Models"], l.sm.list_endpoint_configs()["EndpointConfigs"], l.sm.list_endpoints()["Endpoints"]], [[], [], []])
    same([(q["operation"], q["accepted"]) for q in l.wire() if q["operation"].startswith("Create")],
         [("CreateModel", True), ("CreateEndpointConfig", True), ("CreateEndpoint", True)])


def test_model__data_that_is_no_archive(l):
    for key in ("m/a.bin", "m/code/x.py", "m.bin", "m.bin.old"):
        put(l, key, b"1")

    def made(name, uri, kind, compression="None", **more):  # Debian's botocore does not know ModelDataSource
        source = {"S3DataSource": {"S3Uri": "s3://bkt/" + uri, "S3DataType": kind, "CompressionType": compression}}
        status, answer = call(l, "CreateModel", {"ModelName": name, "ExecutionRoleArn": ROLE, "PrimaryContainer": {"Image": "py", "ModelDataSource": source, **more}})
        return answer["Message"] if status == 400 else call(l, "DescribeModel", {"ModelName": name})[1]["PrimaryContainer"]["ModelDataSource"] == source
    for name, has, uri, kind in (("folder", ["a.bin", "code"], "m/", "S3Prefix"), ("object", ["m.bin"], "m.bin", "S3Object")):
        same(made(name, uri, kind), True)
        endpoint(l, name, name)
        serving(l, name)
        logs = [open(os.path.join(b, f)).read() for b, _, fs in os.walk(l.root + "/fleets") for f in fs if f == "log"]
        assert any("model: %s" % has in text for text in logs), (name, logs)
    assert "must be None" in made("x", "m/", "S3Prefix", "Gzip") and "forward slash" in made("x", "m", "S3Prefix")
    assert "both" in made("x", "m/", "S3Prefix", ModelDataUrl="s3://bkt/m.bin")


def test_sample__the_workers_own_model_is_served(l):
    with open(os.path.join(TOP, "worker/sample/linear_model.h"), encoding="utf-8") as f:
        features = int(re.search(r"define MODEL_FEATURES\s+(\d+)", f.read()).group(1))
    text = {"version": 1, "run": "0" * 8, "step": 9, "weights": ["0x1.8p-1"] * features}
    data = put(l, "run/output/model.tar.gz", archive({"model.json": json.dumps(text).encode()}))
    endpoint(l, "sample", image=WORKER, data=data, count=2)
    serving(l, "sample")
    answers = {invoke(l, "sample", json.dumps({"caption": "a dog"}).encode(), "application/json")[0] for _ in range(4)}
    same(len(answers), 1)
    assert json.loads(answers.pop())["bytes"] > 0
    code, text, status = error_of(invoke, l, "sample", b"{", "application/json")
    same((code, status), ("ModelError", 424))
    assert text.startswith("Received client error (400) from primary with message \"{\"error\":"), text


def test_invoke__what_a_model_says_wrong(l):
    endpoint(l, "e")
    serving(l, "e")
    for body, word, status, said in ((b"fail", "server", 500, "kein Modell ä"), (b"bad", "client", 400, "what is this?")):
        try:
            invoke(l, "e", body)
            raise AssertionError("it was answered")
        except l.client("sagemaker-runtime").exceptions.ClientError as e:
            r = e.response
        same((r["Error"]["Code"], r["OriginalStatusCode"], r["OriginalMessage"]), ("ModelError", status, said))
        assert r["Error"]["Message"].startswith('Received %s error (%d) from primary with message "%s"' % (word, status, said)), r
        assert r["LogStreamArn"].endswith("log-group:/aws/sagemaker/Endpoints/e"), r
    same(invoke(l, "e", b"x" * (5 << 20))[0][:3], b"<xx")
    same(error_of(invoke, l, "e", b"x" * 6291457)[2], 413)
    same(error_of(invoke, l, "e", TargetVariant="other")[0], "ValidationError")
    same(error_of(invoke, l, "none")[:2], ("ValidationError", "Endpoint none of account 123456789012 not found."))
    path = "/endpoints/e/invocations"
    h = sign(l.url, "sagemaker", "POST", path, b"x", {"Content-Type": "text/plain"}, secret="wrong")
    same(send(l.url, "POST", path, h, b"x")[0], 400)
    l.faults({"kind": "throttle", "operation": "InvokeEndpoint"}, {"kind": "drop_after", "operation": "InvokeEndpoint"})
    same(error_of(invoke, l, "e")[0], "ThrottlingException")
    lost(invoke, l, "e")
    same(invoke(l, "e")[0], b"<x>")
    done = []
    many = [threading.Thread(target=lambda i=i: done.append(invoke(l, "e", b"%d" % i)[0] == b"<%d>" % i)) for i in range(20)]
    [t.start() for t in many]
    [t.join() for t in many]
    same(done, [True] * 20)


def test_invoke__a_server_that_died_is_started_again(l):
    endpoint(l, "e")
    serving(l, "e")
    code, text, status = error_of(invoke, l, "e", b"die")
    same((code, status), ("ModelError", 424))
    assert "Received server error (0) from primary" in text, text
    wait_for(lambda: answers(l, "e"), 30, "the server to be there again")
    same(seen(l, "e")["EndpointStatus"], "InService")


def answers(l, name):
    try:
        return invoke(l, name)[0] == b"<x>"
    except l.client("sagemaker-runtime").exceptions.ClientError:
        return False


def test_failed__in_the_words_of_aws(l):
    endpoint(l, "ping", image=SLOW)
    d = settled(l, "ping")
    same((d["EndpointStatus"], d["FailureReason"]),
         ("Failed", "The primary container for production variant AllTraffic did not pass the ping health check. Please check CloudWatch logs for this endpoint."))
    model(l, "late", "py", put(l, "late.tar.gz", archive({"a": b"a"})))
    os.unlink(os.path.join(l.root, "s3/bkt/late.tar.gz"))
    endpoint(l, "late", "late")
    assert settled(l, "late")["FailureReason"].startswith('Failed to download model data for container "container_1" from URL: "s3://bkt/late.tar.gz".')
    endpoint(l, "torn", data=put(l, "torn.tar.gz", archive({"a": os.urandom(5000)})[:3000]))
    assert settled(l, "torn")["FailureReason"].startswith("Failed to extract model data archive"), seen(l, "torn")
    l.faults({"kind": "capacity", "operation": "CreateEndpoint"}, {"kind": "job_failure", "operation": "CreateEndpoint", "reason": "because"})
    for name, want in (("cap", "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error."), ("told", "because")):
        endpoint(l, name)
        d = settled(l, name)
        assert d["EndpointStatus"] == "Failed" and d["FailureReason"].startswith(want), d
    same(error_of(l.sm.update_endpoint, EndpointName="cap", EndpointConfigName="told")[:2],
         ("ValidationException", 'Cannot update failed endpoint "%sendpoint/cap".' % ARN))
    for name in ("ping", "late", "torn", "cap", "told"):
        l.sm.delete_endpoint(EndpointName=name)
        gone(l, name)
    same(l.get("invoice")["lines"], [])  # what never served costs nothing


def test_update__the_new_fleet_takes_over_or_the_old_one_stays(l):
    endpoint(l, "e")
    before = serving(l, "e")
    model(l, "two", "py", Environment={"WHO": "two"})
    model(l, "bad", SLOW)
    for name, m in (("two", "two"), ("bad", "bad")):
        l.sm.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant(m, 2)])
    same(error_of(l.sm.update_endpoint, EndpointName="e", EndpointConfigName="e")[0], "ValidationException")
    l.sm.update_endpoint(EndpointName="e", EndpointConfigName="two")
    d = seen(l, "e")
    v = d["ProductionVariants"][0]
    same((d["EndpointStatus"], d["EndpointConfigName"], v["CurrentInstanceCount"], v["DesiredInstanceCount"]), ("Updating", "e", 1, 2))
    same(invoke(l, "e")[0], b"<x>")
    for change, more in ((l.sm.update_endpoint, {"EndpointConfigName": "two"}), (l.sm.delete_endpoint, {})):
        code, text, _ = error_of(change, EndpointName="e", **more)
        assert code == "ValidationException" and "in-progress endpoint" in text, text
    d = serving(l, "e")
    same((d["EndpointConfigName"], d["ProductionVariants"][0]["CurrentInstanceCount"]), ("two", 2))
    assert invoke(l, "e", b"env")[0].startswith(b"two ")
    assert d["LastModifiedTime"] > before["LastModifiedTime"] and d["CreationTime"] == before["CreationTime"]
    l.sm.update_endpoint(EndpointName="e", EndpointConfigName="bad")
    bad = serving(l, "e")
    same(bad["EndpointConfigName"], "two")
    assert "did not pass the ping health check" in bad["FailureReason"], bad
    same(invoke(l, "e")[0], b"<x>")


def test_refused__as_aws_refuses(l):
    put(l, "m.tar.gz", archive({"a": b"a"}))
    model(l, "m")
    same(error_of(model, l, "m")[:2], ("ValidationException", 'Cannot create already existing model "%smodel/m".' % ARN))
    same(error_of(model, l, "n", "nowhere")[:2], ("ValidationException", "Requested image nowhere not found."))
    same(error_of(model, l, "n", "py", "s3://bkt/none.tar.gz")[:2], ("ValidationException", "Could not find model data at s3://bkt/none.tar.gz"))
    rows = [("CreateModel", {"ModelName": "a_b", "PrimaryContainer": {"Image": "py"}, "ExecutionRoleArn": ROLE}, "modelName"),
            ("CreateModel", {"ModelName": "n", "ExecutionRoleArn": ROLE}, "PrimaryContainer"),
            ("CreateModel", {"ModelName": "n", "PrimaryContainer": {"Image": "p y"}, "ExecutionRoleArn": ROLE}, "primaryContainer.image"),
            ("CreateModel", {"ModelName": "n", "PrimaryContainer": {"Image": "py"}, "ExecutionRoleArn": ROLE[:-12]}, "executionRoleArn"),
            ("CreateModel", {"ModelName": "n", "PrimaryContainer": {"Image": "py", "ModelDataUrl": "/tmp/x"}, "ExecutionRoleArn": ROLE}, "modelDataUrl"),
            ("CreateModel", {"ModelName": "n", "PrimaryContainer": {"Image": "py", "Environment": {"1": "x"}}, "ExecutionRoleArn": ROLE}, "environment"),
            ("CreateModel", {"ModelName": "n", "PrimaryContainer": {"Image": "py"}, "ExecutionRoleArn": ROLE, "Tags": [{"Key": "aws:x", "Value": ""}]}, "aws:"),
            ("CreateEndpointConfig", {"EndpointConfigName": "c"}, "productionVariants"),
            ("CreateEndpointConfig", {"EndpointConfigName": "c", "ProductionVariants": []}, "productionVariants"),
            ("CreateEndpointConfig", {"EndpointConfigName": "c", "ProductionVariants": [variant("m", 0)]}, "initialInstanceCount"),
            ("CreateEndpointConfig", {"EndpointConfigName": "c", "ProductionVariants": [variant("m", InstanceType="g4dn")]}, "instanceType"),
            ("CreateEndpointConfig", {"EndpointConfigName": "c", "ProductionVariants": [variant("m", VolumeSizeInGB=513)]}, "volumeSizeInGB"),
            ("CreateEndpointConfig", {"EndpointConfigName": "c", "ProductionVariants": [variant("m"), variant("m")]}, "unique"),
            ("CreateEndpointConfig", {"EndpointConfigName": "c", "ProductionVariants": [variant("none")]}, 'Could not find model "%smodel/none".' % ARN),
            ("CreateEndpoint", {"EndpointName": "e"}, "endpointConfigName"),
            ("CreateEndpoint", {"EndpointName": "e" * 64, "EndpointConfigName": "c"}, "endpointName"),
            ("CreateEndpoint", {"EndpointName": "e", "EndpointConfigName": "c"}, 'Could not find endpoint configuration "%sendpoint-config/c".' % ARN),
            ("UpdateEndpoint", {"EndpointName": "e", "EndpointConfigName": "c"}, 'Could not find endpoint "%sendpoint/e".' % ARN),
            ("DeleteEndpoint", {"EndpointName": "e"}, 'Could not find endpoint "%sendpoint/e".' % ARN),
            ("DeleteEndpointConfig", {"EndpointConfigName": "c"}, "Could not find endpoint configuration"),
            ("DeleteModel", {"ModelName": "n"}, "Could not find model"), ("DescribeModel", {}, "modelName"),
            ("ListEndpoints", {"NameContains": "a_b"}, "nameContains"), ("ListModels", {"MaxResults": 101}, "maxResults"),
            ("ListEndpoints", {"NextToken": "x"}, "nextToken"), ("ListEndpoints", {"StatusEquals": "Up"}, "statusEquals")]
    for operation, body, said in rows:
        status, answer = call(l, operation, body)
        assert status == 400 and answer["__type"] == "ValidationException" and said in answer["Message"], (operation, body, answer)
    status, answer = call(l, "CreateEndpointConfig", {"EndpointConfigName": "-", "ProductionVariants": [{"VariantName": 7}]})
    assert answer["Message"].startswith("2 validation errors detected: "), answer  # all at once
    same([x["ModelName"] for x in l.sm.list_models()["Models"]], ["m"])
    assert not any(q["accepted"] for q in l.wire() if q["operation"] not in ("CreateModel",))


def test_quota__of_endpoints(l):
    model(l, "m", SLOW)
    for name, count in (("three", 3), ("two", 2)):
        l.sm.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant("m", count)])
    l.sm.create_endpoint(EndpointName="a", EndpointConfigName="three")
    code, text, _ = error_of(l.sm.create_endpoint, EndpointName="b", EndpointConfigName="two")
    same((code, text.split(" Please")[0]),
         ("ResourceLimitExceeded", "The account-level service limit 'ml.m5.large for endpoint usage' is 4 Instances, with current utilization of 3 "
          "Instances and a request delta of 2 Instances."))
    named = {q["QuotaName"]: q["Value"] for q in l.client("service-quotas").list_service_quotas(ServiceCode="sagemaker")["Quotas"]}
    same(named["ml.m5.large for endpoint usage"], 4.0)
    settled(l, "a")
    l.sm.create_endpoint(EndpointName="b", EndpointConfigName="two")  # a failed one holds none
    l.faults({"kind": "quota_refuse", "operation": "CreateEndpoint"})
    same(error_of(l.sm.create_endpoint, EndpointName="c", EndpointConfigName="two")[0], "ResourceLimitExceeded")


def test_lists_and_tags(l):
    model(l, "m", SLOW)
    for i in range(7):
        l.sm.create_endpoint_config(EndpointConfigName="cfg-%d" % i, ProductionVariants=[variant("m")], Tags=[{"Key": "drover-install", "Value": "x"}])
    pages = list(l.sm.get_paginator("list_endpoint_configs").paginate(NameContains="cfg", SortBy="Name", SortOrder="Ascending",
                                                                     PaginationConfig={"PageSize": 3}))
    same([[c["EndpointConfigName"] for c in p["EndpointConfigs"]] for p in pages],
         [["cfg-0", "cfg-1", "cfg-2"], ["cfg-3", "cfg-4", "cfg-5"], ["cfg-6"]])
    same([c["EndpointConfigName"] for c in l.sm.list_endpoint_configs(MaxResults=2)["EndpointConfigs"]], ["cfg-6", "cfg-5"])
    arn = ARN + "endpoint-config/cfg-0"
    l.sm.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "b"}])
    same(l.sm.list_tags(ResourceArn=arn)["Tags"], [{"Key": "drover-install", "Value": "x"}, {"Key": "a", "Value": "b"}])
    l.sm.delete_tags(ResourceArn=arn, TagKeys=["drover-install"])
    same(l.sm.list_tags(ResourceArn=arn)["Tags"], [{"Key": "a", "Value": "b"}])
    same(error_of(l.sm.list_tags, ResourceArn=ARN + "model/none")[0], "ValidationException")
    l.sm.create_endpoint(EndpointName="e", EndpointConfigName="cfg-0")
    l.faults({"kind": "list_omits", "operation": "ListEndpoints", "name_contains": "e"}, {"kind": "unknown_status", "operation": "DescribeEndpoint"})
    same(l.sm.list_endpoints()["Endpoints"], [])
    same(seen(l, "e")["EndpointStatus"], "Hibernating")
    same([e["EndpointStatus"] for e in l.sm.list_endpoints(StatusEquals="Creating")["Endpoints"]], ["Creating"])


def test_kill__endpoints_go_on_and_are_found(l):
    endpoint(l, "up")
    serving(l, "up")
    endpoint(l, "half", model_name="up")
    l.faults({"kind": "drop_after", "operation": "CreateModel"})
    lost(model, l, "lost")
    l.kill()
    l.start()
    same(serving(l, "half")["EndpointStatus"], "InService")
    same([invoke(l, n)[0] for n in ("up", "half")], [b"<x>", b"<x>"])
    l.sm.describe_model(ModelName="lost")  # the answer was lost, not the model
    same(error_of(model, l, "lost")[0], "ValidationException")
    l.sm.delete_endpoint(EndpointName="up")
    l.kill()
    l.start()
    gone(l, "up")
    same([(x["name"], x["kind"]) for x in l.get("invoice")["lines"]], [("up", "hosting")])
    same(sorted(q["name"] for q in l.wire("CreateModel") if q["accepted"]), ["lost", "up"])


def counted(l, *, endpoint="e", variant_name="AllTraffic", period=60, since=3600, json_too=True, **more):
    """{statistic: its sum over the datapoints} of an endpoint's invocations, by botocore's Query and by JSON, which say the same."""
    end = int(time.time()) + 1
    dimensions = [{"Name": "VariantName", "Value": variant_name}, {"Name": "EndpointName", "Value": endpoint}]
    q = {"Namespace": "AWS/SageMaker", "MetricName": "Invocations", "Dimensions": dimensions, "StartTime": end - since, "EndTime": end, "Period": period,
         "Statistics": ["Sum", "SampleCount", "Maximum"], **more}
    got = l.client("cloudwatch").get_metric_statistics(**q)
    same(got["Label"], q["MetricName"])
    if json_too:
        by_json = call(l, "GetMetricStatistics", q, "monitoring", "GraniteServiceVersion20100801.")[1]
        same([{k: v for k, v in p.items() if k != "Timestamp"} for p in by_json["Datapoints"]], [{k: v for k, v in p.items() if k != "Timestamp"} for p in got["Datapoints"]])
        same([p["Timestamp"] for p in by_json["Datapoints"]], [p["Timestamp"].timestamp() for p in got["Datapoints"]])
    for p in got["Datapoints"]:
        same((p["Unit"], p["Timestamp"].timestamp() % 60, p["Timestamp"].timestamp() >= (end - since) // period * period), ("None", 0, True))
    return {s: sum(p[s] for p in got["Datapoints"]) for s in q["Statistics"]} if got["Datapoints"] else {}


def test_metrics__count_what_went_to_a_model_server(l):
    endpoint(l, "e")
    serving(l, "e")
    same(counted(l), {})
    for body in (b"x", b"fail", b"bad"):
        try:
            invoke(l, "e", body)
        except l.client("sagemaker-runtime").exceptions.ModelError:
            pass
    same({k: counted(l)[k] for k in ("Sum", "SampleCount")}, {"Sum": 3.0, "SampleCount": 3.0})
    same(counted(l, period=3600, since=7200)["Sum"], 3.0)
    same([counted(l, endpoint="f"), counted(l, variant_name="Other"), counted(l, MetricName="ModelLatency"), counted(l, Namespace="AWS/EC2")], [{}] * 4)
    same(counted(l, Dimensions=[{"Name": "EndpointName", "Value": "e"}]), {})  # a metric is found by all of its dimensions
    l.kill()
    l.start()
    same(counted(l)["Sum"], 3.0)
    invoke(l, "e")
    same(counted(l)["Sum"], 4.0)
    cloudwatch, q = l.client("cloudwatch"), {"Namespace": "AWS/SageMaker", "MetricName": "Invocations", "StartTime": 0, "EndTime": 86400, "Period": 60, "Statistics": ["Sum"]}
    cloudwatch.get_metric_statistics(**q)  # 1,440 datapoints at most
    for change, code in (({"EndTime": 86460}, "InvalidParameterCombination"), ({"EndTime": 0}, "InvalidParameterCombination"), ({"Period": 90}, "InvalidParameterValue"),
                         ({"Statistics": ["Median"]}, "ValidationException"), ({"Namespace": ":x"}, "ValidationException")):
        same(error_of(cloudwatch.get_metric_statistics, **{**q, **change})[0], code)
        status, body = call(l, "GetMetricStatistics", {**q, **change}, "monitoring", "GraniteServiceVersion20100801.")
        same((status, body["__type"]), (400, code))
    same(call(l, "GetMetricStatistics", {}, "monitoring", "GraniteServiceVersion20100801.")[1]["__type"], "ValidationException")
    refused = error_of(l.client("cloudwatch", secret="wrong").get_metric_statistics, **q)[0]  # by Query, or by JSON with a newer botocore
    same(refused in ("SignatureDoesNotMatch", "InvalidSignatureException"), True)


def test_metrics__come_late(l):
    endpoint(l, "e")
    serving(l, "e")
    invoke(l, "e")
    same(counted(l), {})


def test_invoice__from_in_service_to_delete_and_by_fleet(l):
    endpoint(l, "e", count=1)
    first = serving(l, "e")["LastModifiedTime"]
    l.sm.create_endpoint_config(EndpointConfigName="two", ProductionVariants=[variant("e", 2)])
    l.sm.update_endpoint(EndpointName="e", EndpointConfigName="two")
    second = serving(l, "e")["LastModifiedTime"]
    time.sleep(1.1)  # more than a second is billed
    l.sm.delete_endpoint(EndpointName="e")
    end = seen(l, "e")["LastModifiedTime"]
    want = [(1, math.ceil(round((second - first).total_seconds(), 6))), (2, 2 * math.ceil(round((end - second).total_seconds(), 6)))]
    lines = l.get("invoice")["lines"]
    same([(x["name"], x["kind"], x["instance_type"], x["instances"], x["seconds"]) for x in lines],
         [("e", "hosting", TYPE, n, s) for n, s in want])
    same([x["micro_usd"] for x in lines], [(500000 * s + 1800) // 3600 for _, s in want])


def shape(**more):
    return {**CONFIG, **more}


run([(test_life__deploy_invoke_delete, shape(endpoint_start_seconds=0.3, endpoint_stop_seconds=0.3)), (test_model__data_that_is_no_archive, shape()), (test_sample__the_workers_own_model_is_served, shape()),
     (test_invoke__what_a_model_says_wrong, shape()), (test_invoke__a_server_that_died_is_started_again, shape()),
     (test_failed__in_the_words_of_aws, shape(endpoint_health_seconds=1)), (test_update__the_new_fleet_takes_over_or_the_old_one_stays,
      shape(endpoint_health_seconds=5, endpoint_start_seconds=0.5)),
     (test_refused__as_aws_refuses, shape()), (test_quota__of_endpoints, shape(endpoint_health_seconds=0.2)),
     (test_lists_and_tags, shape(endpoint_start_seconds=100)), (test_kill__endpoints_go_on_and_are_found, shape()),
     (test_metrics__count_what_went_to_a_model_server, shape()), (test_metrics__come_late, shape(metric_delay_seconds=1000)),
     (test_invoice__from_in_service_to_delete_and_by_fleet, shape(endpoint_stop_seconds=100))])
