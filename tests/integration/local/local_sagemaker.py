#!/usr/bin/env python3
"""drover-local's SageMaker through botocore: life of a job, the container contract, stop and limits, quotas
under a rush, validation in AWS' words, lists, tags, logs, quotas, the recomputed invoice. Real processes,
real signatures.
"""
import io
import json
import math
import os
import sys
import tarfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import patience, wait_for
from kit.local import GROUP, ROLE, call, error_of, run, same


def test_job__completes_and_is_billed_to_the_second(l):
    l.create("one", "sleep 1.2")
    d = l.ended("one")
    same((d["TrainingJobStatus"], d["SecondaryStatus"]), ("Completed", "Completed"))
    same([t["Status"] for t in d["SecondaryStatusTransitions"]],
         ["Starting", "Downloading", "Training", "Uploading", "Completed"])
    for a, b in zip(d["SecondaryStatusTransitions"], d["SecondaryStatusTransitions"][1:]):
        same(a["EndTime"], b["StartTime"])
    span = (d["TrainingEndTime"] - d["TrainingStartTime"]).total_seconds()
    assert 1.2 <= span < 30, span
    same(d["BillableTimeInSeconds"], math.ceil(span))
    assert "FailureReason" not in d and "WarmPoolStatus" not in d
    same(d["TrainingJobArn"], "arn:aws:sagemaker:us-east-1:123456789012:training-job/one")


def test_job__echoes_its_request(l):
    env = {"DROVER_REQUEST": "ab" * 32, "EMPTY": ""}
    l.create("echo", HyperParameters={"a": "1"}, Environment=env, Tags=[{"Key": "k", "Value": "v"}])
    d = l.describe("echo")
    same(d["Environment"], env)
    same(d["HyperParameters"], {"a": "1"})
    same(d["ResourceConfig"], {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1})
    same(d["RoleArn"], ROLE)
    same(d["StoppingCondition"], {"MaxRuntimeInSeconds": 600})
    same(d["ModelArtifacts"]["S3ModelArtifacts"], "s3://bkt/out/echo/output/model.tar.gz")
    assert "Tags" not in d


def test_job__echoes_what_watches_it(l):
    rule = {"RuleConfigurationName": "loss", "RuleEvaluatorImage": "r/x:1", "InstanceType": "ml.t3.medium", "VolumeSizeInGB": 9, "RuleParameters": {"rule_to_invoke": "Overfit"},
            "LocalPath": "/opt/r", "S3OutputPath": "s3://bkt/r"}
    watched = {"DebugHookConfig": {"S3OutputPath": "s3://bkt/d", "LocalPath": "/opt/t", "HookParameters": {"a": "b"},
                                   "CollectionConfigurations": [{"CollectionName": "losses", "CollectionParameters": {"save_interval": "5"}}]},
               "DebugRuleConfigurations": [rule], "ProfilerRuleConfigurations": [rule],
               "ProfilerConfig": {"S3OutputPath": "s3://bkt/p", "ProfilingIntervalInMilliseconds": 1000, "ProfilingParameters": {"a": "b"}},
               "TensorBoardOutputConfig": {"S3OutputPath": "s3://bkt/t", "LocalPath": "/opt/tb"},
               "ExperimentConfig": {"ExperimentName": "e", "TrialName": "t", "TrialComponentDisplayName": "d", "RunName": "r"}}
    l.create("watched", **watched)
    d = l.describe("watched")
    same({k: d[k] for k in watched}, watched)
    same(d["ProfilingStatus"], "Enabled")
    assert "Duplicate rule" in error_of(l.create, "twice", DebugRuleConfigurations=[rule, rule])[1]


def test_image_config__is_echoed_and_needs_a_vpc(l):
    def made(name, mode, auth=None, **more):  # Debian's botocore does not know it
        body, config = l.request(name, **more), {"TrainingRepositoryAccessMode": mode, **(auth or {})}
        body["AlgorithmSpecification"]["TrainingImageConfig"] = config
        status, answer = call(l, "CreateTrainingJob", body)
        return answer["Message"] if status == 400 else call(l, "DescribeTrainingJob", {"TrainingJobName": name})[1]["AlgorithmSpecification"]["TrainingImageConfig"] == config
    auth = {"TrainingRepositoryAuthConfig": {"TrainingRepositoryCredentialsProviderArn": "arn:aws:lambda:us-east-1:123456789012:function:registry"}}
    same(made("vpc", "Vpc", auth, VpcConfig={"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}), True)
    same(made("ecr", "Platform"), True)
    assert "VpcConfig is required" in made("none", "Vpc") and "only supported when" in made("both", "Platform", auth)


def test_exit_code__becomes_the_failure_reason(l):
    same(l.run("bare", "exit 3")["FailureReason"], "AlgorithmError: , exit code: 3")
    d = l.run("text", "printf 'DISK_FULL: no room' > $DROVER_ML_ROOT/output/failure; exit 74")
    same(d["FailureReason"], "AlgorithmError: DISK_FULL: no room, exit code: 74")
    same(d["TrainingJobStatus"], "Failed")
    same(l.run("signal", "kill -9 $$")["FailureReason"], "AlgorithmError: , exit code: 137")
    same(l.run("missing", AlgorithmSpecification={"ContainerEntrypoint": ["/no/such/program"]})["FailureReason"],
         "AlgorithmError: , exit code: 127")


def test_failure_file__is_cut_at_1024_and_never_inside_a_character(l):
    d = l.run("long", "yes x | tr -d '\\n' | head -c 5000 > $DROVER_ML_ROOT/output/failure; exit 1")
    assert d["FailureReason"].startswith("AlgorithmError: xxxx") and d["FailureReason"].endswith(", exit code: 1")
    assert 1000 < len(d["FailureReason"]) <= 1024
    d = l.run("utf8", "python3 -c \"print('\\u00e4' * 900, end='')\" > $DROVER_ML_ROOT/output/failure; exit 1")
    assert "\ufffd" not in d["FailureReason"] and "\u00e4" * 400 in d["FailureReason"]
    d = l.run("bytes", "printf 'a\\377b' > $DROVER_ML_ROOT/output/failure; exit 1")
    same(d["FailureReason"], "AlgorithmError: a?b, exit code: 1")


def test_container__finds_its_files_and_environment(l):
    l.s3.put_object(Bucket="bkt", Key="in/a.txt", Body=b"alpha")
    l.s3.put_object(Bucket="bkt", Key="in/sub/b.txt", Body=b"beta")
    l.s3.put_object(Bucket="bkt", Key="list.json",
                    Body=json.dumps([{"prefix": "s3://bkt/in/"}, "sub/b.txt"]).encode())
    s3 = lambda kind, uri: {"S3DataSource": {"S3DataType": kind, "S3Uri": uri}}  # noqa: E731
    d = l.run("files", "cd $DROVER_ML_ROOT && cp -r input model/ && env > model/env && pwd > model/pwd",
              HyperParameters={"lr": "0.1"}, Environment={"OWN": "yes"},
              InputDataConfig=[{"ChannelName": "train", "DataSource": s3("S3Prefix", "s3://bkt/in/")},
                               {"ChannelName": "part", "DataSource": s3("ManifestFile", "s3://bkt/list.json")}])
    same(d["TrainingJobStatus"], "Completed")
    m = os.path.join(l.ml("files"), "model")
    read = lambda p: open(os.path.join(m, p)).read()  # noqa: E731
    same(json.loads(read("input/config/hyperparameters.json")), {"lr": "0.1"})
    rc = json.loads(read("input/config/resourceconfig.json"))
    same((rc["current_host"], rc["hosts"], rc["current_instance_type"]), ("algo-1", ["algo-1"], "ml.m5.large"))
    same(json.loads(read("input/config/inputdataconfig.json"))["train"]["TrainingInputMode"], "File")
    same((read("input/data/train/a.txt"), read("input/data/train/sub/b.txt")), ("alpha", "beta"))
    same(os.listdir(os.path.join(m, "input/data/part")), ["sub"])
    env = dict(x.split("=", 1) for x in read("env").splitlines())
    same((env["OWN"], env["TRAINING_JOB_NAME"], env["AWS_REGION"], env["AWS_ENDPOINT_URL"]),
         ("yes", "files", "us-east-1", l.url))
    same(env["DROVER_ML_ROOT"], l.ml("files"))
    same([k for k in env if "ACCESS_KEY" in k], [])  # the role's keys come from the container's endpoint
    same(env["AWS_CONTAINER_CREDENTIALS_FULL_URI"], l.url + "/v2/credentials/files")
    tar = l.s3.get_object(Bucket="bkt", Key="out/files/output/model.tar.gz")["Body"].read()
    wait_for(lambda: not os.path.exists(os.path.join(l.ml("files"), "input/data")), 5, "the input to go")
    names = tarfile.open(fileobj=io.BytesIO(tar)).getnames()
    assert "env" in names and "input/data/train/sub/b.txt" in names, names


def test_model__is_uploaded_only_when_there_is_one(l):
    same(l.run("none")["TrainingJobStatus"], "Completed")
    same(l.s3.list_objects_v2(Bucket="bkt").get("KeyCount"), 0)
    d = l.run("lost", "echo x > $DROVER_ML_ROOT/model/x", OutputDataConfig={"S3OutputPath": "s3://no-such/out"})
    assert d["FailureReason"].startswith("ClientError: Artifact upload failed"), d["FailureReason"]


def test_model__is_not_packed_when_the_request_says_so(l):
    def loose(params, **_):  # Debian's botocore does not know this key
        body = json.loads(params["body"])
        body["OutputDataConfig"]["CompressionType"] = "NONE"
        params["body"] = json.dumps(body).encode()
    l.sm.meta.events.register("before-call.sagemaker.CreateTrainingJob", loose)
    d = l.run("loose", "cd $DROVER_ML_ROOT && mkdir -p model/a output/data && echo x > model/a/b && echo y > model/c && echo z > output/data/d")
    empty = l.run("bare")
    l.sm.meta.events.unregister("before-call.sagemaker.CreateTrainingJob", loose)
    same((d["TrainingJobStatus"], empty["TrainingJobStatus"]), ("Completed", "Completed"))
    same(d["ModelArtifacts"]["S3ModelArtifacts"], "s3://bkt/out/loose/output/model/")
    keys = [o["Key"] for o in l.s3.list_objects_v2(Bucket="bkt")["Contents"]]
    same(keys, ["out/loose/output/model/a/b", "out/loose/output/model/c", "out/loose/output/output.tar.gz"])
    same(l.s3.get_object(Bucket="bkt", Key="out/loose/output/model/a/b")["Body"].read(), b"x\n")


def test_channel__without_objects_fails_the_download(l):
    d = l.run("empty", InputDataConfig=[{"ChannelName": "c", "DataSource": {"S3DataSource": {
        "S3DataType": "S3Prefix", "S3Uri": "s3://bkt/nothing/"}}}])
    assert d["FailureReason"].startswith("ClientError: Data download failed:No S3 objects found"), d["FailureReason"]
    same([t["Status"] for t in d["SecondaryStatusTransitions"]], ["Starting", "Downloading", "Failed"])


def test_denied_bucket__fails_download_and_upload(l):
    os.makedirs(os.path.join(l.root, "s3", "closed"))
    open(os.path.join(l.root, "s3", "closed", "x"), "w").close()
    d = l.run("down", InputDataConfig=[{"ChannelName": "c", "DataSource": {"S3DataSource": {
        "S3DataType": "S3Prefix", "S3Uri": "s3://closed/x"}}}])
    same(d["FailureReason"], "ClientError: Data download failed:Failed to download data. AccessDenied (403) 's3://closed/x'")
    d = l.run("up", "echo x > $DROVER_ML_ROOT/model/x", OutputDataConfig={"S3OutputPath": "s3://closed/out"})
    assert d["FailureReason"].startswith("ClientError: Artifact upload failed:"), d["FailureReason"]
    assert "AccessDenied (403)" in d["FailureReason"]


def test_keep_alive__without_a_pool_quota_the_pool_is_over_at_once(l):
    l.create("warm", ResourceConfig={"KeepAlivePeriodInSeconds": 600})
    same(l.ended("warm")["WarmPoolStatus"], {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 0})
    same(l.sm.list_training_jobs()["TrainingJobSummaries"][0]["WarmPoolStatus"]["Status"], "Terminated")
    assert l.job("warm")["released"] is not None


def test_hosts__are_processes_with_addresses_and_one_failing_stops_all(l):
    d = l.run("two", "echo $DROVER_HOST $DROVER_HOST_ADDRESS $DROVER_HOSTS > $DROVER_ML_ROOT/output/data/me",
              ResourceConfig={"InstanceCount": 2})
    same(d["TrainingJobStatus"], "Completed")
    a = open(os.path.join(l.ml("two", 1), "output/data/me")).read().split()
    b = open(os.path.join(l.ml("two", 2), "output/data/me")).read().split()
    same((a[0], b[0], a[2]), ("algo-1", "algo-2", b[2]))
    same(a[2], "algo-1=%s,algo-2=%s" % (a[1], b[1]))
    assert a[1].startswith("127.") and a[1] != b[1]
    began = time.monotonic()
    d = l.run("fails", "if [ $DROVER_HOST = algo-2 ]; then exit 9; fi; exec sleep 60", ResourceConfig={"InstanceCount": 2})
    same(d["FailureReason"], "AlgorithmError: , exit code: 9")
    assert time.monotonic() - began < patience(55), "the other host went on"


def test_stop__sends_term_then_kill(l):
    l.create("polite", "trap 'echo got term > $DROVER_ML_ROOT/model/t; sleep 1; exit 0' TERM; touch ready; while :; do sleep 0.05; done")
    l.create("deaf", "trap '' TERM; touch ready; while :; do sleep 0.05; done")
    for n in ("polite", "deaf"):
        wait_for(lambda n=n: os.path.exists(os.path.join(l.ml(n), "ready")), 5, "the process")
    began = time.monotonic()
    l.sm.stop_training_job(TrainingJobName="deaf")
    l.sm.stop_training_job(TrainingJobName="polite")
    same(l.describe("polite")["TrainingJobStatus"], "Stopping")
    d = l.ended("polite")
    same((d["TrainingJobStatus"], d["SecondaryStatus"]), ("Stopped", "Stopped"))
    same(open(os.path.join(l.ml("polite"), "model/t")).read(), "got term\n")
    l.s3.head_object(Bucket="bkt", Key="out/polite/output/model.tar.gz")
    same(l.ended("deaf")["TrainingJobStatus"], "Stopped")
    assert time.monotonic() - began >= 4.0, "it had its grace"
    assert l.job("polite")["ended"] < l.job("deaf")["ended"], "who leaves at the term is not waited for"
    code, text, _ = error_of(l.sm.stop_training_job, TrainingJobName="deaf")
    same((code, text), ("ValidationException",
                        "The request was rejected because the training job is in status Stopped"))


def test_stop__before_the_instances_are_up_costs_nothing(l):
    l.create("early")
    l.sm.stop_training_job(TrainingJobName="early")
    d = l.ended("early")
    same(d["TrainingJobStatus"], "Stopped")
    assert "TrainingStartTime" not in d and "BillableTimeInSeconds" not in d
    same(l.get("invoice")["lines"], [])
    assert not os.path.exists(os.path.join(l.root, "jobs", "early"))


def test_max_runtime__ends_the_job_as_stopped(l):
    d = l.run("limit", "exec sleep 60", StoppingCondition={"MaxRuntimeInSeconds": 1})
    same((d["TrainingJobStatus"], d["SecondaryStatus"]), ("Stopped", "MaxRuntimeExceeded"))
    assert 1 <= d["BillableTimeInSeconds"] <= 30


def test_process_left_behind__ends_with_the_job(l):
    l.run("child", "sleep 77 & echo $! > $DROVER_ML_ROOT/model/pid")
    pid = int(open(os.path.join(l.ml("child"), "model/pid")).read())
    wait_for(lambda: not os.path.exists("/proc/%d" % pid), 5, "the left process to go")


def test_quota__is_never_passed_by_50_creates_at_once(l):
    sm, results, over = l.sm, [], os.path.join(l.dir, "over")

    def one(i):
        try:
            sm.create_training_job(**l.request("rush-%d" % i, "while [ ! -e %s ]; do sleep 0.05; done" % over))
            results.append("ok")
        except Exception as e:  # noqa: BLE001
            results.append(e.response["Error"])
    threads = [threading.Thread(target=one, args=(i,)) for i in range(50)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    same(results.count("ok"), 4)
    text = [r for r in results if r != "ok"][0]
    same(text["Code"], "ResourceLimitExceeded")
    assert text["Message"].startswith("The account-level service limit 'ml.m5.large for training job usage' is 4 "
                                      "Instances, with current utilization of 4 Instances and a request delta of 1 "
                                      "Instances."), text["Message"]
    open(over, "w", encoding="ascii").close()
    wait_for(lambda: all(j["released"] for j in l.get("jobs")["jobs"]), 20, "all to end")
    l.create("after")
    same(most_at_once(l.get("jobs")["jobs"]), 4)
    same(sum(q["accepted"] for q in l.wire("CreateTrainingJob")), 5)


def most_at_once(jobs):
    steps = []
    for j in jobs:
        steps.append((j["created"], 1, j["instance_count"]))
        if j["released"] is not None:
            steps.append((j["released"], 0, -j["instance_count"]))
    now = most = 0
    for _, _, n in sorted(steps):
        now += n
        most = max(most, now)
    return most


def test_quota__counts_instances_totals_and_unknown_types(l):
    code, text, status = error_of(l.create, "big", ResourceConfig={"InstanceCount": 5})
    same((code, status), ("ResourceLimitExceeded", 400))
    assert "utilization of 0 Instances and a request delta of 5 Instances" in text
    code, text, _ = error_of(l.create, "gpu", ResourceConfig={"InstanceType": "ml.p4d.24xlarge"})
    assert code == "ResourceLimitExceeded" and "'ml.p4d.24xlarge for training job usage' is 0 Instances" in text
    for unknown in ("ml.p4dn.24xlarge", "ml.c5.large"):  # the second is one of endpoints alone
        code, text, status = error_of(l.create, "none", ResourceConfig={"InstanceType": unknown})
        same((code, status), ("ValidationException", 400))
        assert text.startswith("1 validation error detected: Value '%s' at 'resourceConfig.instanceType' failed to satisfy constraint: "
                               "Member must satisfy enum value set: [ml." % unknown) and ", ml.p4d.24xlarge, " in text, text
    l.create("a", "sleep 5", ResourceConfig={"InstanceCount": 2})
    code, text, _ = error_of(l.create, "b", ResourceConfig={"InstanceType": "ml.r5.large"})
    assert "'Number of instances across all training jobs' is 2 Instances, with current utilization of 2" in text, text


def test_slot__is_free_in_the_instant_the_end_is_shown(l):
    sm = l.sm
    for i in range(12):
        sm.create_training_job(**l.request("seq-%d" % i, ResourceConfig={"InstanceCount": 4}))
        while sm.describe_training_job(TrainingJobName="seq-%d" % i)["TrainingJobStatus"] == "InProgress":
            pass
    same(most_at_once(l.get("jobs")["jobs"]), 4)


def test_name__is_unique_for_ever(l):
    l.run("taken")
    code, text, status = error_of(l.create, "taken")
    same((code, status), ("ResourceInUse", 400))
    assert "a training job with this name already exists" in text
    [l.create("fill-%d" % i, "sleep 5") for i in range(4)]
    same(error_of(l.create, "taken")[0], "ResourceInUse")  # the name is looked at before the quota


def test_validation__tells_every_fault_in_aws_words(l):
    code, text, status = error_of(l.client("sagemaker", parameter_validation=False).create_training_job,
                                  **l.request("bad_name", ResourceConfig={"KeepAlivePeriodInSeconds": -1},
                                              StoppingCondition={"MaxRuntimeInSeconds": 0}, RoleArn="nobody-at-all-here-x"))
    same((code, status), ("ValidationException", 400))
    assert text.startswith("4 validation errors detected: Value 'bad_name' at 'trainingJobName' failed to satisfy "
                           "constraint: Member must satisfy regular expression pattern: "
                           "[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}; "), text
    assert "Value '-1' at 'resourceConfig.keepAlivePeriodInSeconds' failed to satisfy constraint: Member must have value " \
           "greater than or equal to 0" in text
    assert "at 'roleArn'" in text and "at 'stoppingCondition.maxRuntimeInSeconds'" in text
    code, text, _ = error_of(l.client("sagemaker", parameter_validation=False).create_training_job,
                             **l.request("x", ResourceConfig={"InstanceCount": 0, "VolumeSizeInGB": 0}))
    assert text.startswith("2 validation errors detected: Value '0' at 'resourceConfig.instanceCount' failed to satisfy "
                           "constraint: Member must have value greater than or equal to 1; "), text
    for name in ("-a", "a-", "a.b", "a" * 64, "a b"):
        same(error_of(l.create, name)[0], "ValidationException")
    raw = l.client("sagemaker", parameter_validation=False)
    for more in ({"HyperParameters": {"k": "v" * 2501}}, {"Environment": {"1a": "x"}},
                 {"Environment": {"k": "v" * 513}}, {"InputDataConfig": []}, {"RoleArn": None},
                 {"Tags": [{"Key": "", "Value": "x"}]}, {"OutputDataConfig": {"S3OutputPath": "ftp://x"}},
                 {"AlgorithmSpecification": {"ContainerArguments": []}},
                 {"ResourceConfig": {"InstanceType": "m5.large"}}, {"EnableManagedSpotTraining": True}):
        r = l.request("x", **{k: v for k, v in more.items() if v is not None})
        for k, v in more.items():
            if v is None:
                del r[k]
        same(error_of(raw.create_training_job, **r)[0], "ValidationException")
    l.create("a" * 63)
    same([q["accepted"] for q in l.wire("CreateTrainingJob")].count(True), 1)


def test_validation__refuses_what_sagemaker_refuses(l):
    spot = {"EnableManagedSpotTraining": True, "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}}
    channel = lambda name, mode="File", kind="S3Prefix", **more: {  # noqa: E731
        "ChannelName": name, "InputMode": mode, "DataSource": {"S3DataSource": {"S3DataType": kind, "S3Uri": "s3://bkt/in/"}}, **more}
    metric = lambda regex: {"AlgorithmSpecification": {"MetricDefinitions": [{"Name": "loss", "Regex": regex}]}}  # noqa: E731
    raw = l.client("sagemaker", parameter_validation=False)
    rows = [
        ("roleArn", {"RoleArn": "arn:aws:iam::12345678901:role/eleven-digits"}),
        ("reserved", {"Tags": [{"Key": "aws:x", "Value": "y"}]}),
        ("pattern", {"Tags": [{"Key": "a", "Value": "#1"}]}),
        ("Duplicate tag", {"Tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]}),
        ("tags", {"Tags": [{"Key": "k%d" % i, "Value": ""} for i in range(51)]}),
        ("hyperParameters", {"HyperParameters": {"k%d" % i: "" for i in range(101)}}),
        ("either TrainingImage", {"AlgorithmSpecification": {"TrainingImage": None}}),
        ("both TrainingImage", {"AlgorithmSpecification": {"AlgorithmName": "blazingtext"}}),
        ("MaxWaitTimeInSeconds", {"StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}}),
        ("KeepAlivePeriodInSeconds", {**spot, "ResourceConfig": {"KeepAlivePeriodInSeconds": 60}}),
        ("retryStrategy", {"RetryStrategy": {"MaximumRetryAttempts": 31}}),
        ("retryStrategy", {"RetryStrategy": {}}),
        ("s3OutputPath", {"OutputDataConfig": {"S3OutputPath": "s3://"}}),
        ("no regular expression", metric("loss=([0-9")),
        ("regex", metric("x" * 501)),
        ("Duplicate channel", {"InputDataConfig": [channel("a"), channel("a")]}),
        ("Gzip", {"InputDataConfig": [channel("a", CompressionType="Gzip")]}),
        ("RecordIO", {"InputDataConfig": [channel("a", RecordWrapperType="RecordIO")]}),
        ("FastFile", {"InputDataConfig": [channel("a", "FastFile", "ManifestFile")]}),
        ("enum", {"InputDataConfig": [channel("a", "Stream")]}),
        ("vpcConfig", {"VpcConfig": {"SecurityGroupIds": ["sg-%d" % i for i in range(6)], "Subnets": ["subnet-1"]}}),
        ("vpcConfig", {"VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet_1"]}}),
        ("kmsKeyId", {"OutputDataConfig": {"S3OutputPath": "s3://bkt/out", "KmsKeyId": "a b"}}),
        ("VolumeSizeInGB", {"ResourceConfig": {"InstanceType": "ml.g5.xlarge", "VolumeSizeInGB": 251}}),
        ("VolumeKmsKeyId", {"ResourceConfig": {"InstanceType": "ml.g5.xlarge", "VolumeKmsKeyId": "alias/a"}}),
        ("profilingInterval", {"ProfilerConfig": {"ProfilingIntervalInMilliseconds": 300}}),
        ("debugHookConfig", {"DebugHookConfig": {}}),
    ]
    for word, more in rows:
        r = l.request("x", **more)
        if more.get("AlgorithmSpecification", {}).get("TrainingImage", "") is None:
            r["AlgorithmSpecification"].pop("TrainingImage")
        code, text, _ = error_of(raw.create_training_job, **r)
        assert code == "ValidationException" and word in text, (word, code, text)

    for part, key, value in (("OutputDataConfig", "CompressionType", "ZIP"), ("StoppingCondition", "MaxPendingTimeInSeconds", 7199)):
        def newer(params, part=part, key=key, value=value, **_):  # Debian's botocore does not know these keys
            body = json.loads(params["body"])
            body[part][key] = value
            params["body"] = json.dumps(body).encode()
        raw.meta.events.register("before-call.sagemaker.CreateTrainingJob", newer)
        code, text, _ = error_of(raw.create_training_job, **l.request("x"))
        raw.meta.events.unregister("before-call.sagemaker.CreateTrainingJob", newer)
        assert code == "ValidationException" and key[0].lower() + key[1:] in text, (code, text)
    for query in ({"StatusEquals": "Done"}, {"NameContains": "a_b"}, {"WarmPoolStatusEquals": "Warm"}):
        same(error_of(raw.list_training_jobs, **query)[0], "ValidationException")
    same([q["accepted"] for q in l.wire("CreateTrainingJob")].count(True), 0)


def test_role_and_image__unknown_ones_are_refused_as_aws_does(l):
    code, text, _ = error_of(l.create, "role", RoleArn="arn:aws:iam::123456789012:role/other")
    same(code, "ValidationException")
    assert text.startswith("Could not assume role arn:aws:iam::123456789012:role/other.")
    d = l.run("image", AlgorithmSpecification={"TrainingImage": "nothing:1"})
    assert d["FailureReason"].startswith("ClientError: Cannot pull the training image 'nothing:1'")
    same(l.get("invoice")["lines"], [])


def test_unknown_names__are_not_found(l):
    for call in (l.sm.describe_training_job, l.sm.stop_training_job):
        same(error_of(call, TrainingJobName="nobody"), ("ValidationException", "Requested resource not found.", 400))


def test_list__pages_filters_and_sorts(l):
    sm = l.sm
    for i in range(9):
        l.run("p-%02d" % i, "exit %d" % (i % 3 == 0))
    l.run("other")
    names = lambda **q: [s["TrainingJobName"] for s in sm.list_training_jobs(**q)["TrainingJobSummaries"]]  # noqa: E731
    same(names(NameContains="p-", SortBy="CreationTime", SortOrder="Descending", MaxResults=3), ["p-08", "p-07", "p-06"])
    same(names(NameContains="p-", StatusEquals="Failed", MaxResults=100), ["p-00", "p-03", "p-06"])
    same(names(SortBy="Name", MaxResults=2), ["other", "p-00"])
    for by in ("Name", "CreationTime", "Status"):
        for order in ("Ascending", "Descending"):
            got, token, pages = [], None, 0
            while True:
                q = dict(SortBy=by, SortOrder=order, MaxResults=3, NameContains="p-")
                page = sm.list_training_jobs(**(dict(q, NextToken=token) if token else q))
                got += [s["TrainingJobName"] for s in page["TrainingJobSummaries"]]
                token, pages = page.get("NextToken"), pages + 1
                if not token:
                    break
            same((sorted(got), len(got), pages), (["p-%02d" % i for i in range(9)], 9, 3))
    at = [j["created"] for j in l.get("jobs")["jobs"]]  # botocore sends whole seconds only
    between = lambda **q: [s["TrainingJobName"] for s in call(l, "ListTrainingJobs", q)[1]["TrainingJobSummaries"]]  # noqa: E731
    same(between(CreationTimeAfter=at[3], MaxResults=100, NameContains="p-"), ["p-%02d" % i for i in range(3, 9)])
    same(between(CreationTimeBefore=at[3], MaxResults=100), ["p-00", "p-01", "p-02", "p-03"])
    same(between(CreationTimeAfter=at[9] + 1), [])
    same(error_of(sm.list_training_jobs, NextToken="after-xyz")[0], "ValidationException")
    same(error_of(l.client("sagemaker", parameter_validation=False).list_training_jobs, MaxResults=101)[0],
         "ValidationException")


def test_tags_and_update(l):
    arn = l.create("tagged", "sleep 5", Tags=[{"Key": "a", "Value": "1"}])["TrainingJobArn"]
    l.sm.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "2"}, {"Key": "b", "Value": "3"}])
    same(l.sm.list_tags(ResourceArn=arn)["Tags"], [{"Key": "a", "Value": "2"}, {"Key": "b", "Value": "3"}])
    same(error_of(l.sm.list_tags, ResourceArn=arn + "x")[0], "ValidationException")
    same(error_of(l.sm.update_training_job, TrainingJobName="tagged",
                  ResourceConfig={"KeepAlivePeriodInSeconds": 0})[0], "ValidationException")
    same(l.sm.update_training_job(TrainingJobName="tagged", ProfilerConfig={"DisableProfiler": True})["TrainingJobArn"], arn)


def test_logs__hold_what_the_job_wrote(l):
    logs = l.client("logs")
    same(error_of(logs.describe_log_streams, logGroupName=GROUP)[0], "ResourceNotFoundException")
    l.run("talk", "for i in $(seq 300); do echo line $i; done; echo bad >&2; printf 'no end'")
    streams = logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix="talk/")["logStreams"]
    same(len(streams), 1)
    stream = streams[0]["logStreamName"]
    assert stream.startswith("talk/algo-1-"), stream
    got, token = [], None
    while True:
        q = dict(logGroupName=GROUP, logStreamName=stream, startFromHead=True, limit=100)
        page = logs.get_log_events(**(dict(q, nextToken=token) if token else q))
        got += [e["message"] for e in page["events"]]
        if page["nextForwardToken"] == token:
            break
        token = page["nextForwardToken"]
    same(got, ["line %d" % i for i in range(1, 301)] + ["bad", "no end"])
    tail = logs.get_log_events(logGroupName=GROUP, logStreamName=stream, limit=2)["events"]
    same([e["message"] for e in tail], got[-2:])
    hits = logs.filter_log_events(logGroupName=GROUP, logStreamNamePrefix="talk/", filterPattern='"line 29"')["events"]
    same([e["message"] for e in hits], ["line 29"] + ["line %d" % i for i in range(290, 300)])
    same(error_of(logs.get_log_events, logGroupName=GROUP, logStreamName="talk/algo-1-1")[0],
         "ResourceNotFoundException")


def test_service_quotas__tell_the_configured_limits(l):
    sq = l.client("service-quotas")
    found, token = {}, None
    while True:
        q = dict(ServiceCode="sagemaker", MaxResults=2)
        page = sq.list_service_quotas(**(dict(q, NextToken=token) if token else q))
        found.update((x["QuotaName"], x) for x in page["Quotas"])
        token = page.get("NextToken")
        if not token:
            break
    same(found["ml.m5.large for training job usage"]["Value"], 4.0)
    same(found["Rate of CreateTrainingJob requests"]["Value"], 50.0)
    code = found["ml.m5.large for training job usage"]["QuotaCode"]
    same(sq.get_service_quota(ServiceCode="sagemaker", QuotaCode=code)["Quota"]["Value"], 4.0)
    same({x: found[x]["QuotaCode"] for x in ("ml.p4d.24xlarge for training job usage", "Rate of CreateTrainingJob requests")},
         {"ml.p4d.24xlarge for training job usage": "L-09B4A649", "Rate of CreateTrainingJob requests": "L-21A1652A"})
    same(error_of(sq.get_service_quota, ServiceCode="sagemaker", QuotaCode="L-00000000")[0], "NoSuchResourceException")
    same(l.client("sts").get_caller_identity()["Account"], "123456789012")


def test_rate__beyond_it_requests_are_throttled(l):
    sm, codes = l.sm, []
    for i in range(8):
        try:
            sm.describe_training_job(TrainingJobName="x")
        except Exception as e:  # noqa: BLE001
            codes.append((e.response["Error"]["Code"], e.response["Error"]["Message"]))
    same(codes.count(("ThrottlingException", "Rate exceeded")), 5)
    same(codes[:3], [("ValidationException", "Requested resource not found.")] * 3)
    same(len([q for q in l.wire() if q["error"] == "ThrottlingException"]), 5)


def test_invoice__is_price_times_seconds_rounded_once(l):
    from fractions import Fraction
    l.create("x", "sleep 1.1", ResourceConfig={"InstanceCount": 3})
    l.create("y", "exit 1")
    l.create("z", "sleep 5", ResourceConfig={"InstanceType": "ml.r5.large"})
    l.running("z")
    l.sm.stop_training_job(TrainingJobName="z")
    ends = {n: l.ended(n) for n in "xyz"}
    prices = {"ml.m5.large": Fraction("0.1150004"), "ml.r5.large": Fraction("0.0018")}
    invoice = l.get("invoice")
    total_s = total_m = 0
    for line in invoice["lines"]:
        d = ends[line["name"]]
        n = d["ResourceConfig"]["InstanceCount"]
        same((line["kind"], line["instances"], line["seconds"]), ("training", n, d["BillableTimeInSeconds"] * n))
        micro = Fraction(math.floor(prices[line["instance_type"]] * 10**6 + Fraction(1, 2)))
        want = math.floor(micro * line["seconds"] / 3600 + Fraction(1, 2))
        same(line["micro_usd"], want)
        total_s, total_m = total_s + line["seconds"], total_m + want
    same(len(invoice["lines"]), 3)
    same(invoice["total"], {"seconds": total_s, "micro_usd": total_m})


def test_wire_log__is_in_order_of_arrival_and_whole(l):
    l.run("w")
    l.s3.put_object(Bucket="bkt", Key="k/x", Body=b"abc")
    import hashlib
    q = l.get("wire-log")["requests"]
    same([x["time"] for x in q], sorted(x["time"] for x in q))
    keys = {"time", "service", "operation", "name", "status", "error", "signed", "accepted", "replied", "sha256"}
    assert all(keys <= set(x) for x in q)
    assert all(x["signed"] and x["replied"] for x in q)
    put = [x for x in q if x["operation"] == "PutObject"][0]
    same((put["service"], put["name"], put["status"], put["sha256"]),
         ("s3", "bkt/k/x", 200, hashlib.sha256(b"abc").hexdigest()))


def test_reset__forgets_jobs_and_keeps_buckets(l):
    l.s3.put_object(Bucket="bkt", Key="keep", Body=b"1")
    l.create("gone", "sleep 60")
    l.running("gone")
    pids = wait_for(lambda: [p for p in os.listdir("/proc") if p.isdigit() and runs(p, l.root)], 5, "the process")
    pid = int(pids[0])
    l.post("reset")
    wait_for(lambda: not os.path.exists("/proc/%d" % pid), 5, "the job's process to go")
    same((l.get("jobs")["jobs"], l.get("invoice")["lines"], l.wire()), ([], [], []))
    l.s3.head_object(Bucket="bkt", Key="keep")
    same(l.run("gone")["TrainingJobStatus"], "Completed")
    l.post("reset", {"buckets": True})
    same(os.listdir(os.path.join(l.root, "s3")), [".tmp"])
    os.makedirs(os.path.join(l.root, "s3", "bkt"))


def runs(pid, root):
    try:
        return root.encode() in open("/proc/%s/environ" % pid, "rb").read()
    except OSError:
        return False


run([
    (test_job__completes_and_is_billed_to_the_second, {}),
    (test_job__echoes_its_request, {}),
    (test_exit_code__becomes_the_failure_reason, {}),
    (test_failure_file__is_cut_at_1024_and_never_inside_a_character, {}),
    (test_container__finds_its_files_and_environment, {}),
    (test_model__is_uploaded_only_when_there_is_one, {}),
    (test_model__is_not_packed_when_the_request_says_so, {}),
    (test_channel__without_objects_fails_the_download, {}),
    (test_denied_bucket__fails_download_and_upload, {"denied_buckets": ["closed"]}),
    (test_keep_alive__without_a_pool_quota_the_pool_is_over_at_once, {}),
    (test_hosts__are_processes_with_addresses_and_one_failing_stops_all, {}),
    (test_stop__sends_term_then_kill, {"stop_grace_seconds": 4}),
    (test_stop__before_the_instances_are_up_costs_nothing, {"cold_start_seconds": 5}),
    (test_max_runtime__ends_the_job_as_stopped, {}),
    (test_process_left_behind__ends_with_the_job, {}),
    (test_quota__is_never_passed_by_50_creates_at_once, {}),
    (test_quota__counts_instances_totals_and_unknown_types,
     {"quotas": {"ml.m5.large": 4, "ml.r5.large": 4, "Number of instances across all training jobs": 2}}),
    (test_slot__is_free_in_the_instant_the_end_is_shown, {}),
    (test_name__is_unique_for_ever, {}),
    (test_validation__tells_every_fault_in_aws_words, {}),
    (test_validation__refuses_what_sagemaker_refuses, {}),
    (test_role_and_image__unknown_ones_are_refused_as_aws_does, {"roles": [ROLE]}),
    (test_job__echoes_what_watches_it, {}), (test_image_config__is_echoed_and_needs_a_vpc, {}),
    (test_unknown_names__are_not_found, {}), (test_list__pages_filters_and_sorts, {}),
    (test_tags_and_update, {}),
    (test_logs__hold_what_the_job_wrote, {}),
    (test_service_quotas__tell_the_configured_limits,
     {"quotas": {"ml.m5.large": 4, "ml.p4d.24xlarge": 1}, "rates": {"CreateTrainingJob": 50}}),
    (test_rate__beyond_it_requests_are_throttled,
     {"rates": {"DescribeTrainingJob": 0.001}, "bursts": {"DescribeTrainingJob": 3}}),
    (test_invoice__is_price_times_seconds_rounded_once,
     {"quotas": {"ml.m5.large": 9, "ml.r5.large": 1}, "prices": {"ml.m5.large": "0.1150004", "ml.r5.large": "0.0018"}}),
    (test_wire_log__is_in_order_of_arrival_and_whole, {}),
    (test_reset__forgets_jobs_and_keeps_buckets, {}),
])
