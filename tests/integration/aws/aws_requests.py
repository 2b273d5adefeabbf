#!/usr/bin/python3
"""The requests of orchestrator/aws. Aim: SageMaker's, FSx's, ECR's, CloudWatch's, CloudWatch Logs', Service Quotas', Pricing's and SQS' own models accept each
request that the clients send, and every operation of operation.def is sent. Method: the clients' C tests against drover-local with the
bodies in its wire log, judged by Debian's botocore; what a test sends wrong on purpose must be refused by drover-local, too.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, Tap
from kit import service_model

JOB = {"TrainingJobName": "j", "RoleArn": "arn:aws:iam::123456789012:role/training", "AlgorithmSpecification": {"TrainingImage": "i", "TrainingInputMode": "File"},
       "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1}, "OutputDataConfig": {"S3OutputPath": "s3://b/o"}, "StoppingCondition": {"MaxRuntimeInSeconds": 9}}
PLAN = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/p"
GOOD = {
    "CreateTrainingJob": ("sagemaker", {**JOB, "InfraCheckConfig": {"EnableInfraCheck": True}, "RemoteDebugConfig": {"EnableRemoteDebug": False}, "SessionChainingConfig": {},
                                        "OutputDataConfig": {"S3OutputPath": "s3://b/o", "CompressionType": "NONE"}, "ResourceConfig": {**JOB["ResourceConfig"], "TrainingPlanArn": PLAN}}),
    "CreateModel": ("sagemaker", {"ModelName": "m", "PrimaryContainer": {"Image": "i", "Environment": {"A": "b"}}, "ExecutionRoleArn": "arn:aws:iam::123456789012:role/r"}),
    "ListEndpoints": ("sagemaker", {"NameContains": "x", "SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": 100}),
    "CreateFileSystem": ("fsx", {"FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": ["subnet-0123456789abcdef0"], "Tags": [{"Key": "k", "Value": "v"}]}),
    "GetLogEvents": ("logs", {"logGroupName": "/aws/sagemaker/TrainingJobs", "logStreamName": "j/algo-1-1", "limit": 100}),
    "GetProducts": ("pricing", {"ServiceCode": "AmazonFSx", "Filters": [{"Type": "TERM_MATCH", "Field": "regionCode", "Value": "us-east-1"}], "FormatVersion": "aws_v1", "MaxResults": 100}),
    "ListServiceQuotas": ("servicequotas", {"ServiceCode": "sagemaker"}),
    "DeleteMessageBatch": ("sqs", {"QueueUrl": "q", "Entries": [{"Id": "0", "ReceiptHandle": "r"}]}),
    "GetMetricStatistics": ("monitoring", {"Namespace": "AWS/SageMaker", "MetricName": "Invocations", "Dimensions": [{"Name": "EndpointName", "Value": "e"}], "StartTime": 0, "EndTime": 60,
                                           "Period": 60, "Statistics": ["Sum"]}),
}
BROKEN = {
    "CreateTrainingJob": [{"InfraCheckConfig": {"EnableInfraCheck": "yes"}}, {"InfraCheckConfig": {"Enable": True}}, {"RemoteDebugConfig": True}, {"OutputDataConfig": {"CompressionType": "NONE"}},
                          {"OutputDataConfig": {"S3OutputPath": "s3://b/o", "CompressionType": "ZIP"}}, {"ResourceConfig": {**JOB["ResourceConfig"], "TrainingPlanArn": "p"}},
                          {"ModelPackageConfig": {}}, {"ServerlessJobConfig": {"JobType": 1}}, {"RoleArn": None}],
    "CreateModel": [{"ModelName": "a_b"}, {"PrimaryContainer": {"Image": "a b"}}, {"PrimaryContainer": {"Environment": {"1A": "b"}}}, {"ExecutionRoleArn": None},
                    {"EnableNetworkIsolation": "yes"}, {"Nonsense": 1}],
    "ListEndpoints": [{"SortBy": "Age"}, {"SortOrder": "Down"}, {"MaxResults": 101}, {"NameContains": "a_b"}, {"NextToken": 7}],
    "CreateFileSystem": [{"FileSystemType": "LUSTER"}, {"SubnetIds": ["subnet-1"]}, {"Tags": [{"Key": "", "Value": "v"}]}, {"Tags": []}, {"ClientRequestToken": "x" * 64}, {"StorageCapacity": None}],
    "GetLogEvents": [{"logStreamName": "a:b"}, {"limit": 10001}, {"startFromHead": "true"}],
    "GetProducts": [{"Filters": [{"Type": "MATCH", "Field": "a", "Value": "b"}]}, {"Filters": [{"Type": "TERM_MATCH", "Field": "a"}]}, {"MaxResults": 0}, {"FormatVersion": 1}],
    "DeleteMessageBatch": [{"Entries": [{"Id": "0"}]}, {"Entries": None}, {"QueueUrl": 7}, {"Queue": "q"}],
    "ListServiceQuotas": [{"ServiceCode": "a b"}, {"MaxResults": 0}],
    "GetMetricStatistics": [{"Namespace": ":x"}, {"Statistics": ["Median"]}, {"Period": 0}, {"StartTime": "soon"}, {"Dimensions": [{"Name": "EndpointName"}]}],
}


REST = {"service": "s3", "status": 200, "error": "", "headers": {"host": "h", "x-amz-date": "d", "x-amz-meta-a": "b"}, "text": ""}
FORM = {"status": 200, "error": "", "method": "POST", "uri": "/", "headers": {}}
PARTS = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>e</ETag></Part></CompleteMultipartUpload>"
LINES = [  # a right line of the log, and changes each of which makes it wrong
    ({**REST, "operation": "PutObject", "method": "PUT", "uri": "/b/a/b%20c", "headers": {"if-none-match": "*", "x-amz-checksum-sha256": "s", "x-amz-server-side-encryption": "aws:kms"}},
     [{"method": "POST"}, {"uri": "/b"}, {"uri": "/b/k?acl"}, {"headers": {"x-amz-server-side-encryption": "kms"}}, {"headers": {"x-amz-nonsense": "1"}}, {"headers": {"if-range": "*"}}]),
    ({**REST, "operation": "ListObjectsV2", "method": "GET", "uri": "/b?list-type=2&max-keys=5&prefix=a%2F&encoding-type=url"},
     [{"uri": "/b?max-keys=5"}, {"uri": "/b?list-type=2&max-keys=many"}, {"uri": "/b?list-type=2&marker=a"}, {"uri": "/b?list-type=2&encoding-type=xml"}, {"uri": "/b?list-type=2&prefix=a&prefix=b"}]),
    ({**REST, "operation": "UploadPart", "method": "PUT", "uri": "/b/k?partNumber=1&uploadId=u"}, [{"uri": "/b/k?partNumber=1"}, {"uri": "/b/k?partNumber=x&uploadId=u"}]),
    ({**REST, "operation": "CompleteMultipartUpload", "method": "POST", "uri": "/b/k?uploadId=u", "text": PARTS},
     [{"text": PARTS.replace(">1<", ">one<")}, {"text": PARTS.replace("ETag>", "Tag>")}, {"text": PARTS.replace("Part>", "Piece>")}]),
    ({**FORM, "service": "sts", "operation": "AssumeRole", "text": "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fr&RoleSessionName=me&Tags.member.1.Key=k&Tags.member.1.Value=v"},
     [{"text": "Action=AssumeRole&Version=2011-06-15&RoleSessionName=me"}, {"text": "Action=AssumeRole&Version=2012-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fr&RoleSessionName=me"},
      {"text": "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fr&RoleSessionName=me&DurationSeconds=9"},
      {"text": "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fr&RoleSessionName=me&Tags.member.1.Name=k"}]),
    ({**FORM, "service": "sts", "operation": "AssumeRoleWithWebIdentity",
      "text": "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fdroverd&RoleSessionName=drover&WebIdentityToken=web-token"},
     [{"text": "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fdroverd&RoleSessionName=drover"}]),
    ({**FORM, "service": "ec2", "operation": "DescribeSubnets", "text": "Action=DescribeSubnets&Version=2016-11-15&SubnetId.1=subnet-a&Filter.1.Name=vpc-id&Filter.1.Value.1=v"},
     [{"text": "Action=DescribeSubnets&Version=2016-11-15&SubnetIds.1=subnet-a"}, {"text": "Action=DescribeSubnets&Version=2016-11-15&MaxResults=1"}, {"text": "Action=DescribeSubnets&Version=2016-11-15&Filter.1.Nome=a"}]),
    ({**REST, "service": "sagemaker", "operation": "InvokeEndpoint", "method": "POST", "uri": "/endpoints/e/invocations", "headers": {"content-type": "text/plain"}},
     [{"uri": "/endpoints/e"}, {"uri": "/endpoints/e_/invocations"}, {"method": "GET"}]),
]


def test_lines(t):
    """The same of lines of the log: operations that are no JSON."""
    t.eq([service_model.line_faults(good) for good, _ in LINES], [[] for _ in LINES], "the judge accepts a right request of S3, STS, EC2 and the runtime")
    accepted = [{**good, **change} for good, changes in LINES for change in changes if not service_model.line_faults({**good, **change})]
    t.eq(accepted, [], f"and refuses {sum(len(c) for _, c in LINES)} with one fault each")


def test_hold(t):
    """A wrong request is one whatever it was answered, unless the test names it."""
    good, (wrong, *_) = LINES[0]
    with tempfile.NamedTemporaryFile("w", dir=TOP + "/build", suffix=".log") as log:
        log.write(json.dumps({**good, **wrong, "status": 400, "error": "InvalidRequest"}) + "\n")
        log.flush()
        t.ok("1 refused, 0 deviations" in service_model.hold(log.name, refused=(good["operation"],)), "a wrong request that was refused is held when the test names it")
        try:
            t.ok(False, "and else is not", service_model.hold(log.name))
        except AssertionError as e:
            t.ok(f'"{good["operation"]}": 1' in str(e), "and else is not", e)


def test_judge(t):
    """The judge refuses a request with one fault, and only that."""
    n = 0
    for operation, (service, good) in GOOD.items():
        t.eq(service_model.faults_of(service, operation, good), [], f"the judge accepts a right {operation}")
        for change in BROKEN[operation]:
            n += bool(service_model.faults_of(service, operation, {k: v for k, v in {**good, **change}.items() if v is not None}))
    t.eq(n, sum(map(len, BROKEN.values())), f"the judge refuses {n} requests with one fault each")
    t.ok(service_model.faults_of("sagemaker", "CreateModels", {}), "the judge refuses an operation that does not exist")


def test_clients(t):
    logs = tempfile.mkdtemp(prefix="requests-", dir=TOP + "/build")
    try:
        r = subprocess.run(["bash", "tests/each.sh", "integration/aws"], cwd=TOP, env={**os.environ, "DROVER_REQUESTS": logs}, capture_output=True, text=True, check=False)
        t.ok(r.returncode == 0, "the clients' own tests pass", r.stdout[-3000:])
        found = service_model.judge(glob.glob(logs + "/*.log"))
    finally:
        shutil.rmtree(logs)
    table = open(TOP + "/orchestrator/aws/operation.def", encoding="utf-8").read()
    ours = {op for op, service in re.findall(r'^X\((\w+), "([\w-]+)"', table, re.M) if service not in ("s3", "sts", "ec2")}  # these have no JSON to judge
    sent = {k for k, n in found["operations"].items() if n > 0}
    t.eq(ours - sent, set(), f"each of the {len(ours)} operations of operation.def is sent and accepted")
    t.eq(found["refused"], {"BatchGetImage": 1, "CreateModel": 1, "UpdateTrainingJob": 1}, "what a test sends wrong on purpose, drover-local refuses, too")
    t.eq(found["deviations"], [], f"{found['requests']} requests, 0 deviations")
    print("# " + json.dumps(found["operations"]))


def main():
    tap = Tap()
    test_judge(tap)
    test_lines(tap)
    test_hold(tap)
    test_clients(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
