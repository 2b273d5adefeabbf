#!/usr/bin/python3
"""Aim: drover-local serves an independent AWS client, and each of our client and that client reads what the
other wrote.

Method: Debian's awscli (its own signing, its own parsers) and build/release/tests/tools/aws_tool (our C
clients) against one build/bin/drover-local with a folder of its own. Prints TAP.
"""
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import awscli
import awscli.clidriver
import awscli.customizations.s3.s3
import awscli.handlers
import botocore.session

from kit import Tap, patience, wait_for
from kit.local import LIFE, ROLE

TOOL = "build/release/tests/tools/aws_tool"
LOCAL = "build/bin/drover-local"
tap = Tap()


class Outcome:
    def __init__(self, rc, out, err):
        self.rc, self.out, self.err = rc, out, err

    def __str__(self):
        return "status %d\n%s\n%s" % (self.rc, self.out[:600], self.err[:600])


def environment(url, secret="local-secret", key="AKIDLOCAL"):
    env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    env.update(AWS_ACCESS_KEY_ID=key, AWS_SECRET_ACCESS_KEY=secret, AWS_REGION="us-east-1",
               AWS_DEFAULT_REGION="us-east-1", AWS_ENDPOINT_URL=url, AWS_PAGER="",
               AWS_CONFIG_FILE="/dev/null", AWS_SHARED_CREDENTIALS_FILE="/dev/null",
               AWS_EC2_METADATA_DISABLED="true", AWS_MAX_ATTEMPTS="2", no_proxy="127.0.0.1")
    return env


class Clients:
    def __init__(self, url, **keys):
        self.url, self.env = url, environment(url, **keys)

    def aws(self, *args):
        argv = ["--endpoint-url", self.url, "--output", "json", *args]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            pid = os.fork()
            if pid == 0:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
                data = os.environ["AWS_DATA_PATH"]  # set by awscli as it is loaded
                os.environ.clear()
                os.environ.update(self.env, AWS_DATA_PATH=data)
                sys.argv[1:] = argv
                rc = 255
                try:
                    rc = awscli.clidriver.main()
                except BaseException:
                    traceback.print_exc()
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(rc)
            alarm = threading.Timer(60, os.kill, (pid, signal.SIGKILL))
            alarm.start()
            rc = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            alarm.cancel()
            out.seek(0)
            err.seek(0)
            return Outcome(rc, out.read(), err.read())

    def ours(self, *args):
        p = subprocess.run([TOOL, *args], env=self.env, capture_output=True, text=True, timeout=patience(60))
        return Outcome(p.returncode, p.stdout, p.stderr)


def same(a, b):
    with open(a, "rb") as f, open(b, "rb") as g:
        return f.read() == g.read()


SIZE = int(os.environ.get("MIB", "20")) * 1024 * 1024 + 17


def objects(c, folder):
    small, big = folder + "/small", folder + "/big"
    with open(small, "wb") as f:
        f.write(b"small object\n")
    with open(big, "wb") as f:
        for at in range(0, SIZE, 1 << 20):
            f.write(os.urandom(min(1 << 20, SIZE - at)))
    back = folder + "/back"
    for key in ("plain", "dir/with space/ä+&%?=.bin"):
        uri = "s3://data/" + key
        r = c.aws("s3api", "put-object", "--bucket", "data", "--key", key, "--body", small)
        tap.ok(r.rc == 0 and hashlib.md5(b"small object\n").hexdigest()
              in r.out, "awscli puts '%s'" % key, r)
        r = c.ours("get", uri, back)
        tap.ok(r.rc == 0 and same(small, back), "we read it", r)
        r = c.ours("put", uri + ".ours", small)
        tap.ok(r.rc == 0, "we put", r)
        os.unlink(back)
        r = c.aws("s3api", "get-object", "--bucket", "data", "--key", key + ".ours", back)
        tap.ok(r.rc == 0 and same(small, back), "awscli reads it", r)
        r = c.aws("s3api", "head-object", "--bucket", "data", "--key", key + ".ours")
        tap.ok(r.rc == 0 and json.loads(r.out)["ContentLength"] == 13, "awscli heads it", r)
    r = c.aws("s3", "cp", "--quiet", big, "s3://data/big/by-awscli")
    tap.ok(r.rc == 0, "awscli uploads in parts", r)
    r = c.ours("head", "s3://data/big/by-awscli")
    tap.ok(re.fullmatch(r'%d "[0-9a-f]{32}-%d"\n' % (SIZE, -(-SIZE // (8 << 20))), r.out), "it was in parts: %d bytes" % SIZE, r)
    r = c.ours("get", "s3://data/big/by-awscli", back)
    tap.ok(r.rc == 0 and same(big, back), "we read the parts", r)
    os.unlink(back)
    r = c.aws("s3", "cp", "--quiet", "s3://data/big/by-awscli", back)
    tap.ok(r.rc == 0 and same(big, back), "and awscli back", r)
    r = c.ours("mput", "s3://data/big/by-us", big)
    tap.ok(r.rc == 0, "we upload in parts", r)
    os.unlink(back)
    r = c.aws("s3", "cp", "--quiet", "s3://data/big/by-us", back)
    tap.ok(r.rc == 0 and same(big, back), "awscli reads our parts (by ranges of its own)", r)
    r = c.aws("s3api", "head-object", "--bucket", "data", "--key", "big/by-us")
    tap.ok(r.rc == 0 and json.loads(r.out)["ETag"].endswith('-%d"' % -(-SIZE // (5 << 20))), "our parts' ETag names them", r)
    r = c.aws("s3api", "get-object", "--bucket", "data", "--key", "plain", "--range", "bytes=6-8", back)
    with open(back, "rb") as f:
        tap.ok(r.rc == 0 and f.read() == b"obj", "awscli reads a range", r)
    r = c.ours("create", "s3://data/plain", small)
    tap.ok(r.rc == 1 and "PreconditionFailed" in r.out, "create-only over awscli's object is refused", r)


def listings(c, folder):
    small = folder + "/small"
    for i in range(5):
        c.ours("put", "s3://data/list/k %d+" % i, small)
    listed = c.aws("s3api", "list-objects-v2", "--bucket", "data", "--prefix", "list/",
                   "--page-size", "2")
    keys = [o["Key"] for o in json.loads(listed.out or "{}").get("Contents", [])]
    tap.ok(keys == ["list/k %d+" % i for i in range(5)], "awscli lists our keys over three pages", listed)
    mine = c.ours("list", "s3://data/")
    theirs = c.aws("s3api", "list-objects-v2", "--bucket", "data")
    ours = [(line.split(" ", 2)[2], line.split(" ", 2)[1], int(line.split(" ", 1)[0]))
            for line in mine.out.splitlines()]
    them = [(o["Key"], o["ETag"], o["Size"]) for o in json.loads(theirs.out or "{}").get("Contents", [])]
    tap.ok(ours == them and len(them) >= 11, "both listings name the same %d objects" % len(them), "%s\n%s" % (mine, theirs))
    r = c.aws("s3", "ls", "s3://data/")
    tap.ok(r.rc == 0 and "PRE list/" in r.out and "plain" in r.out, "awscli sees folders", r)
    r = c.aws("s3", "rm", "--recursive", "s3://data/list/")
    left = c.ours("list", "s3://data/list/")
    tap.ok(r.rc == 0 and left.rc == 0 and left.out == "", "awscli removes them, we see none", r)
    r = c.ours("delete", "s3://data/plain")
    gone = c.aws("s3api", "head-object", "--bucket", "data", "--key", "plain")
    tap.ok(r.rc == 0 and gone.rc != 0 and "404" in gone.err, "we remove one, awscli misses it", gone)
    r = c.aws("s3api", "get-object", "--bucket", "nobucket", "--key", "k", folder + "/back")
    tap.ok(r.rc != 0 and "NoSuchBucket" in r.err, "awscli reads NoSuchBucket", r)


def services(c):
    who = c.aws("sts", "get-caller-identity")
    mine = c.ours("query", "sts", "Action=GetCallerIdentity&Version=2011-06-15")
    account = json.loads(who.out or "{}").get("Account", "-")
    tap.ok(re.fullmatch(r"\d{12}", account), "awscli learns the account", who)
    tap.ok("<Account>%s</Account>" % account in mine.out, "so do we", mine)
    r = c.aws("sagemaker", "list-training-jobs")
    tap.ok(r.rc == 0 and json.loads(r.out) == {"TrainingJobSummaries": []}, "awscli lists no jobs", r)
    r = c.ours("json", "sagemaker", "SageMaker.ListTrainingJobs", "{}")
    tap.ok(r.rc == 0 and json.loads(r.out)["TrainingJobSummaries"] == [], "so do we", r)
    r = c.aws("sagemaker", "search", "--resource", "TrainingJob", "--search-expression", '{"Filters": [{"Name": "Tags.run", "Operator": "Exists"}]}')
    tap.ok(r.rc == 0 and json.loads(r.out) == {"Results": []}, "awscli searches them", r)
    r = c.aws("logs", "describe-log-groups", "--log-group-name-prefix", "/aws/sagemaker")
    tap.ok(r.rc == 0 and json.loads(r.out) == {"logGroups": []}, "awscli asks for groups of logs", r)
    r = c.aws("sagemaker", "describe-training-job", "--training-job-name", "nobody")
    tap.ok(r.rc != 0 and ("ResourceNotFound" in r.err or "ValidationException" in r.err), "awscli reads that a job is unknown", r)
    r = c.ours("json", "sagemaker", "SageMaker.DescribeTrainingJob", '{"TrainingJobName":"nobody"}')
    tap.ok(r.rc == 1 and re.search("ResourceNotFound|ValidationException", r.out), "so do we", r)
    r = c.aws("sagemaker", "stop-training-job", "--training-job-name", "nobody")
    tap.ok(r.rc != 0 and "An error occurred" in r.err, "awscli may not stop it", r)
    r = c.aws("service-quotas", "list-service-quotas", "--service-code", "sagemaker")
    tap.ok(r.rc == 0 and json.loads(r.out)["Quotas"], "awscli reads quotas", r)
    r = c.ours("json", "servicequotas", "ServiceQuotasV20190624.ListServiceQuotas",
               '{"ServiceCode":"sagemaker"}')
    tap.ok(r.rc == 0 and json.loads(r.out)["Quotas"], "so do we", r)
    check_increase(tap, c)
    check_prices(tap, c)


def check_increase(tap, c):
    r = c.aws("service-quotas", "list-aws-default-service-quotas", "--service-code", "sagemaker")
    code = next((q["QuotaCode"] for q in json.loads(r.out)["Quotas"] if q["QuotaName"] == "ml.m5.large for training job usage"), "")
    tap.ok(r.rc == 0 and code, "awscli reads default quotas", r)
    ask = ("service-quotas", "request-service-quota-increase", "--service-code", "sagemaker", "--quota-code", code, "--desired-value", "77")
    r = c.aws(*ask)
    tap.ok(r.rc == 0 and (q := json.loads(r.out)["RequestedQuota"]) and (q["Status"], q["DesiredValue"]) == ("PENDING", 77.0), "awscli asks for a higher quota", r)
    r = c.aws(*ask)
    tap.ok(r.rc != 0 and "ResourceAlreadyExistsException" in r.err, "once", r)
    r = c.aws("service-quotas", "list-requested-service-quota-change-history", "--service-code", "sagemaker", "--status", "PENDING")
    tap.ok(r.rc == 0 and [q["QuotaCode"] for q in json.loads(r.out)["RequestedQuotas"]] == [code], "and sees its request", r)


def check_prices(tap, c):
    where = ("--region", "us-east-1", "pricing", "get-products", "--service-code", "AmazonSageMaker", "--filters", "Type=TERM_MATCH,Field=instanceName,Value=ml.m5.large")
    r = c.aws(*where, "Type=TERM_MATCH,Field=platoinstancetype,Value=Training")
    found = [json.loads(p) for p in json.loads(r.out)["PriceList"]] if r.rc == 0 else []
    rates = [d["pricePerUnit"] for p in found for o in p["terms"]["OnDemand"].values() for d in o["priceDimensions"].values()]
    tap.ok(rates == [{"USD": "0.1150000000"}], "awscli reads a price", r)
    r = c.aws(*where, "--page-size", "1")
    tap.ok(r.rc == 0 and len(json.loads(r.out)["PriceList"]) == 2, "page by page", r)


def lossless(tap, c, operation, input_, what, service="sagemaker", target="SageMaker."):
    """Every member that drover-local answers is in the answer as Debian's botocore reads it."""
    raw = json.loads(c.ours("json", service, target + operation, json.dumps(input_)).out)
    shape = botocore.session.get_session().get_service_model({"monitoring": "cloudwatch"}.get(service, service)).operation_model(operation).output_shape
    tap.eq(lost_members(raw, shape), [], what + ": botocore knows every member of " + operation)


def lost_members(value, shape, path=""):
    if shape.type_name == "structure" and isinstance(value, dict):
        unknown = [path + "." + k for k in value if k not in shape.members]
        missing = [path + "." + k + " is missing" for k in shape.required_members if k not in value]
        return unknown + missing + [w for k, v in value.items() if k in shape.members for w in lost_members(v, shape.members[k], path + "." + k)]
    if shape.type_name == "list" and isinstance(value, list):
        return [w for v in value for w in lost_members(v, shape.member, path + "[]")]
    if shape.type_name == "map" and isinstance(value, dict):
        return []
    kinds = {"string": str, "integer": int, "long": int, "boolean": bool, "timestamp": (int, float), "float": (int, float), "double": (int, float)}
    wrong = shape.type_name not in kinds or not isinstance(value, kinds[shape.type_name])
    return [path + " is no " + shape.type_name] if wrong else [path + " is none of the enum"] if getattr(shape, "enum", None) and value not in shape.enum else []


def jobs(c):
    """A training job's life by awscli: made, listed, seen, its log read, stopped; a warm pool given up."""
    sm, group = "sagemaker", "/aws/sagemaker/TrainingJobs"
    resources = "InstanceType=ml.m5.large,InstanceCount=1,VolumeSizeInGB=1"

    def create(name, command, more=""):
        return c.aws(sm, "create-training-job", "--training-job-name", name, "--role-arn", ROLE, "--output-data-config", "S3OutputPath=s3://data/out",
                     "--algorithm-specification", json.dumps({"TrainingImage": "sh", "TrainingInputMode": "File", "ContainerArguments": [command]}),
                     "--resource-config", resources + more, "--stopping-condition", "MaxRuntimeInSeconds=600", "--tags", "Key=run,Value=x")

    def is_(name, **want):
        answer = json.loads(c.ours("json", sm, "SageMaker.DescribeTrainingJob", json.dumps({"TrainingJobName": name})).out)
        return all(answer.get(k) == v for k, v in want.items())

    r = create("one", "echo first; echo second line", ",KeepAlivePeriodInSeconds=60")
    tap.ok(r.rc == 0 and json.loads(r.out)["TrainingJobArn"].endswith(":training-job/one"), "awscli creates a training job", r)
    wait_for(lambda: is_("one", TrainingJobStatus="Completed") and "Available" in c.ours("json", sm, "SageMaker.DescribeTrainingJob", '{"TrainingJobName":"one"}').out, 60, "its end")
    r = c.aws(sm, "describe-training-job", "--training-job-name", "one")
    tap.ok(r.rc == 0 and json.loads(r.out)["WarmPoolStatus"]["Status"] == "Available", "awscli describes it and its warm pool", r)
    r = c.aws(sm, "update-training-job", "--training-job-name", "one", "--resource-config", "KeepAlivePeriodInSeconds=0")
    tap.ok(r.rc == 0 and json.loads(r.out)["TrainingJobArn"].endswith("/one"), "awscli updates it: the warm pool ends", r)
    wait_for(lambda: '"Terminated"' in c.ours("json", sm, "SageMaker.DescribeTrainingJob", '{"TrainingJobName":"one"}').out, 60, "the end of the pool")
    r = c.aws(sm, "list-training-jobs", "--name-contains", "on", "--status-equals", "Completed")
    tap.ok(r.rc == 0 and [j["TrainingJobName"] for j in json.loads(r.out)["TrainingJobSummaries"]] == ["one"], "awscli lists it", r)
    r = c.aws("logs", "describe-log-streams", "--log-group-name", group, "--log-stream-name-prefix", "one/")
    stream = json.loads(r.out)["logStreams"][0]["logStreamName"] if r.rc == 0 else ""
    tap.ok(stream.startswith("one/algo-1"), "awscli finds the stream of its log", r)
    r = c.aws("logs", "get-log-events", "--log-group-name", group, "--log-stream-name", stream, "--start-from-head")
    tap.ok(r.rc == 0 and [e["message"] for e in json.loads(r.out)["events"]] == ["first", "second line"], "awscli reads its log", r)
    r = c.aws("logs", "filter-log-events", "--log-group-name", group, "--filter-pattern", '"second line"')
    tap.ok(r.rc == 0 and [(e["logStreamName"], e["message"]) for e in json.loads(r.out)["events"]] == [(stream, "second line")], "and searches it", r)
    for operation, input_ in (("DescribeLogStreams", {"logGroupName": group}), ("GetLogEvents", {"logGroupName": group, "logStreamName": stream}), ("FilterLogEvents", {"logGroupName": group})):
        lossless(tap, c, operation, input_, "logs", "logs", "Logs_20140328.")
    create("two", "sleep 60")
    wait_for(lambda: is_("two", SecondaryStatus="Training"), 60, "a job that runs")
    r = c.aws(sm, "stop-training-job", "--training-job-name", "two")
    wait_for(lambda: is_("two", TrainingJobStatus="Stopped"), 60, "its end")
    tap.ok(r.rc == 0 and r.out == "", "awscli stops a job", r)


def described(c, name):
    return c.ours("json", "sagemaker", "SageMaker.DescribeEndpoint", json.dumps({"EndpointName": name}))


def hosting(c, folder):
    sm = "sagemaker"
    role = "arn:aws:iam::123456789012:role/worker"
    r = c.aws(sm, "create-model", "--model-name", "m", "--execution-role-arn", role, "--primary-container", "Image=server,Environment={A=b}")
    tap.ok(r.rc == 0 and json.loads(r.out)["ModelArn"].endswith(":model/m"), "awscli creates a model", r)
    r = c.aws(sm, "create-endpoint-config", "--endpoint-config-name", "c", "--production-variants",
              "VariantName=AllTraffic,ModelName=m,InitialInstanceCount=1,InstanceType=ml.g4dn.xlarge", "--tags", "Key=drover-install,Value=x")
    tap.ok(r.rc == 0 and json.loads(r.out)["EndpointConfigArn"].endswith(":endpoint-config/c"), "an endpoint config", r)
    r = c.aws(sm, "create-endpoint", "--endpoint-name", "e", "--endpoint-config-name", "c")
    tap.ok(r.rc == 0 and json.loads(r.out)["EndpointArn"].endswith(":endpoint/e"), "an endpoint", r)
    r = c.aws(sm, "create-endpoint", "--endpoint-name", "e", "--endpoint-config-name", "c")
    tap.ok(r.rc != 0 and "Cannot create already existing endpoint" in r.err, "one of that name only", r)
    wait_for(lambda: '"InService"' in described(c, "e").out, 60, "the endpoint to be in service")  # awscli's waiter looks every 30 s
    body, out = folder + "/body", folder + "/answer"
    with open(body, "wb") as f:
        f.write(b"a question")
    r = c.aws("sagemaker-runtime", "invoke-endpoint", "--endpoint-name", "e", "--content-type", "text/plain", "--body", "fileb://" + body, out)
    with open(out, "rb") as f:
        answered = f.read()
    tap.ok(r.rc == 0 and answered == b"<a question>" and json.loads(r.out)["InvokedProductionVariant"] == "AllTraffic", "it answers", (r, answered))
    now = int(time.time())
    r = c.aws("cloudwatch", "get-metric-statistics", "--namespace", "AWS/SageMaker", "--metric-name", "Invocations", "--dimensions", "Name=EndpointName,Value=e",
              "Name=VariantName,Value=AllTraffic", "--start-time", str(now - 600), "--end-time", str(now + 60), "--period", "60", "--statistics", "Sum")
    tap.ok(r.rc == 0 and [(p["Sum"], p["Unit"]) for p in json.loads(r.out)["Datapoints"]] == [(1.0, "None")], "awscli reads from CloudWatch that it was invoked once", r)
    lossless(tap, c, "GetMetricStatistics", {"Namespace": "AWS/SageMaker", "MetricName": "Invocations", "StartTime": now - 600, "EndTime": now + 60, "Period": 60, "Statistics": ["Sum"],
             "Dimensions": [{"Name": "EndpointName", "Value": "e"}, {"Name": "VariantName", "Value": "AllTraffic"}]}, "invocations", "monitoring", "GraniteServiceVersion20100801.")
    for kind, operation, name in (("model", "Model", "m"), ("endpoint-config", "EndpointConfig", "c"), ("endpoint", "Endpoint", "e")):
        r = c.aws(sm, "describe-" + kind, "--%s-name" % kind, name)
        tap.ok(r.rc == 0 and json.loads(r.out)[operation + "Name"] == name, "awscli describes the " + kind, r)
        lossless(tap, c, "Describe" + operation, {operation + "Name": name}, kind)
        r = c.aws(sm, "list-%ss" % kind, "--name-contains", name)
        tap.ok(r.rc == 0 and len(json.loads(r.out)[operation + "s"]) == 1, "and lists it", r)
        lossless(tap, c, "List%ss" % operation, {}, kind)
    for kind, name in (("endpoint", "e"), ("endpoint-config", "c"), ("model", "m")):
        r = c.aws(sm, "delete-" + kind, "--%s-name" % kind, name)
        tap.ok(r.rc == 0 and r.out == "", "awscli deletes the " + kind, r)
    tap.ok(wait_for(lambda: "Could not find" in described(c, "e").out, 60, "the endpoint to be gone"), "and it is gone")


def lustre(c, folder):
    """FSx by awscli: a file system, an association, an export task, and all of it gone again."""
    subnet, config = "subnet-0123456789abcdef0", "DeploymentType=PERSISTENT_2,PerUnitStorageThroughput=125"
    r = c.aws("fsx", "create-file-system", "--file-system-type", "LUSTRE", "--storage-capacity", "1200", "--subnet-ids", subnet, "--client-request-token", "t",
              "--lustre-configuration", config, "--tags", "Key=drover-install,Value=x")
    tap.ok(r.rc == 0 and json.loads(r.out)["FileSystem"]["Lifecycle"] == "CREATING", "awscli creates a file system", r)
    fs = json.loads(r.out)["FileSystem"]
    id_ = fs["FileSystemId"]

    def states(operation, list_, **input_):
        answer = c.ours("json", "fsx", "AWSSimbaAPIService_v20180301." + operation, json.dumps(input_))
        return [x["Lifecycle"] for x in json.loads(answer.out).get(list_, [])]

    wait_for(lambda: states("DescribeFileSystems", "FileSystems") == ["AVAILABLE"], 60, "the file system")
    r = c.aws("fsx", "create-data-repository-association", "--file-system-id", id_, "--file-system-path", "/ns", "--data-repository-path", "s3://data/lustre",
              "--batch-import-meta-data-on-create")
    tap.ok(r.rc == 0 and json.loads(r.out)["Association"]["DataRepositoryPath"] == "s3://data/lustre", "an association", r)
    wait_for(lambda: states("DescribeDataRepositoryAssociations", "Associations") == ["AVAILABLE"], 60, "the association")
    wait_for(lambda: states("DescribeDataRepositoryTasks", "DataRepositoryTasks") == ["SUCCEEDED"], 60, "its import")
    r = c.aws("fsx", "create-data-repository-task", "--file-system-id", id_, "--type", "EXPORT_TO_REPOSITORY", "--report", "Enabled=false")
    tap.ok(r.rc == 0 and json.loads(r.out)["DataRepositoryTask"]["Lifecycle"] == "PENDING", "a task", r)
    wait_for(lambda: states("DescribeDataRepositoryTasks", "DataRepositoryTasks") == ["SUCCEEDED"] * 2, 60, "the task")
    for operation, command, list_ in (("DescribeFileSystems", "describe-file-systems", "FileSystems"), ("DescribeDataRepositoryTasks", "describe-data-repository-tasks",
                                      "DataRepositoryTasks"), ("DescribeDataRepositoryAssociations", "describe-data-repository-associations", "Associations")):
        r = c.aws("fsx", command)
        tap.ok(r.rc == 0 and len(json.loads(r.out)[list_]) == (2 if list_ == "DataRepositoryTasks" else 1), "awscli reads it: " + command, r)
        lossless(tap, c, operation, {}, command, "fsx", "AWSSimbaAPIService_v20180301.")
    r = c.aws("fsx", "list-tags-for-resource", "--resource-arn", fs["ResourceARN"])
    tap.ok(r.rc == 0 and json.loads(r.out)["Tags"] == [{"Key": "drover-install", "Value": "x"}], "and its tags", r)
    r = c.aws("fsx", "delete-file-system", "--file-system-id", id_)
    tap.ok(r.rc == 0 and json.loads(r.out)["Lifecycle"] == "DELETING", "awscli deletes it", r)
    tap.ok(wait_for(lambda: states("DescribeFileSystems", "FileSystems") == [], 60, "its end") and states("DescribeDataRepositoryAssociations", "Associations") == [],
           "and nothing is left")


def strangers(url, folder):
    rows = (("a wrong secret", dict(secret="wrong"), "SignatureDoesNotMatch|InvalidSignatureException"),
            ("an unknown key", dict(key="AKIDNOBODY"),
             "InvalidAccessKeyId|InvalidClientTokenId|UnrecognizedClientException"))
    for name, keys, code in rows:
        c = Clients(url, **keys)
        calls = (
            ("s3 read by awscli", c.aws("s3api", "get-object", "--bucket", "data", "--key", "big/by-us",
                                        folder + "/stolen")),
            ("s3 write by awscli", c.aws("s3api", "put-object", "--bucket", "data", "--key", "stolen",
                                         "--body", folder + "/small")),
            ("sts by awscli", c.aws("sts", "get-caller-identity")),
            ("sagemaker by awscli", c.aws("sagemaker", "list-training-jobs")),
            ("s3 read by us", c.ours("get", "s3://data/big/by-us", folder + "/stolen2")),
            ("sagemaker by us", c.ours("json", "sagemaker", "SageMaker.ListTrainingJobs", "{}")),
        )
        for what, r in calls:
            tap.ok(r.rc != 0 and re.search(code, r.err + r.out), "%s is refused: %s" % (name, what), r)
    r = Clients(url).ours("head", "s3://data/stolen")
    tap.ok(r.rc == 1 and "not_found" in r.out, "nothing was written by them", r)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `finally` stops the server
    folder = tempfile.mkdtemp(prefix="drover-test-awscli-")
    os.makedirs(folder + "/root/s3/data")
    with open(folder + "/config.json", "w") as f:
        json.dump({**LIFE, "images": {**LIFE["images"], "sh": ["/bin/sh", "-c"]}, "quotas": {"ml.m5.large": 2}, "warm_quotas": {"ml.m5.large": 1},
                   "cold_start_seconds": 0.1, "stop_seconds": 0.1, "stop_grace_seconds": 1}, f)
    server = subprocess.Popen([LOCAL, "--root", folder + "/root", "--listen", "127.0.0.1:0", "--config", folder + "/config.json"],
                              stdout=subprocess.PIPE, text=True)
    try:
        url = re.search(r"http://\S+", server.stdout.readline()).group(0)
        c = Clients(url)
        print("# awscli " + awscli.__version__)
        objects(c, folder)
        listings(c, folder)
        services(c)
        jobs(c)
        hosting(c, folder)
        lustre(c, folder)
        strangers(url, folder)
    finally:
        server.terminate()
        server.wait(20)
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(tap.done())


if __name__ == "__main__":
    main()
