#!/usr/bin/python3
"""Aim: drover-local enforces policies of IAM as AWS does, and the shipped ones let droverd and jobs do what they must and no more.

Method: deploy/iam filled in as its README says, for a key of droverd and for a role of jobs; botocore's clients ask for each
kind of operation inside and outside. That every operation has its permission is read from the source.
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, policies, wait_for
from kit.local import BINARY, KEY, SECRET, call, error_of, run, same, sign, send

ACCOUNT, DROVERD, ROLE = "123456789012", ("AKIADROVERD", "of-droverd"), "arn:aws:iam::123456789012:role/drover-worker"
UNLINKED = ("AKIAUNLINKED", "unlinked")  # droverd without the service-linked roles of FSx
UNLINKED_POLICY = policies.shipped("droverd", ACCOUNT, ["bkt"], roles=[ROLE])
UNLINKED_POLICY["Statement"] = [s for s in UNLINKED_POLICY["Statement"] if "ServiceLinked" not in str(s["Action"])]
SETUP = dict(credentials={KEY: SECRET, DROVERD[0]: DROVERD[1], UNLINKED[0]: UNLINKED[1]}, policies={
    UNLINKED[0]: [UNLINKED_POLICY],
    DROVERD[0]: [policies.shipped("droverd", ACCOUNT, ["bkt"], roles=[ROLE])], ROLE: [policies.shipped("job", ACCOUNT, ["bkt"])]},
    queues={"drover-events": "", "other": ""}, secrets={f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:{n}-AbCdEf": "s" for n in ("drover-x", "other")})
TAGS = [{"Key": "drover-install", "Value": "i1"}]


def denied(function, action, resource, why="because no identity-based policy allows the", **arguments):
    code, message, status = error_of(function, **arguments)
    assert (code, status) in (("AccessDeniedException", 400), ("AccessDenied", 403), ("UnauthorizedOperation", 403)), (code, status, message)
    assert f"not authorized to perform: {action} on resource: {resource} {why}" in message, message


def test_droverd__may_run_its_jobs_and_no_others(l):
    sm, job = l.client("sagemaker", key=DROVERD[0], secret=DROVERD[1]), f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-job/"
    sm.create_training_job(**l.request("drover-1", RoleArn=ROLE, Tags=TAGS))
    sm.describe_training_job(TrainingJobName="drover-1")
    sm.list_tags(ResourceArn=job + "drover-1")
    same([x["TrainingJobName"] for x in sm.list_training_jobs()["TrainingJobSummaries"]], ["drover-1"])
    denied(sm.create_training_job, "sagemaker:CreateTrainingJob", job + "mine", **l.request("mine", RoleArn=ROLE))
    denied(sm.create_training_job, "iam:PassRole", ROLE + "x", **l.request("drover-2", RoleArn=ROLE + "x"))
    denied(sm.stop_training_job, "sagemaker:StopTrainingJob", job + "mine", TrainingJobName="mine")
    denied(sm.create_model, "sagemaker:CreateModel", f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:model/m", ModelName="m", ExecutionRoleArn=ROLE)
    same([j["name"] for j in l.get("jobs")["jobs"]], ["drover-1"])
    data = json.dumps({"TrainingJobName": "drover-1"}).encode()
    headers = sign(l.url, "sagemaker", "POST", body=data, headers={"X-Amz-Target": "SageMaker.DeleteTrainingJob", "Content-Type": "application/x-amz-json-1.1"}, key=DROVERD[0], secret=DROVERD[1])
    status, _, text = send(l.url, "POST", "/", headers, data)
    assert status == 400 and b"sagemaker:DeleteTrainingJob on resource: " + job.encode() + b"drover-1 with an explicit deny" in text, text
    status, answer = call(l, "DeleteTrainingJob", {"TrainingJobName": "drover-1"})  # nor may an administrator
    same((status, answer["__type"]), (400, "AccessDeniedException"))
    same(call(l, "DeleteTrainingJob", {"TrainingJobName": "none"})[0], 400)


def test_droverd__file_systems_by_their_tag(l):
    fsx, admin = l.client("fsx", key=DROVERD[0], secret=DROVERD[1]), l.client("fsx")
    lustre = dict(FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=["subnet-0123456789abcdef0"], LustreConfiguration={"DeploymentType": "SCRATCH_2"})
    arn = f"arn:aws:fsx:us-east-1:{ACCOUNT}:file-system/"
    denied(fsx.create_file_system, "fsx:CreateFileSystem", arn + "*", **lustre)
    mine = fsx.create_file_system(Tags=TAGS, **lustre)["FileSystem"]["FileSystemId"]
    theirs = admin.create_file_system(**lustre)["FileSystem"]["FileSystemId"]
    same(len(fsx.describe_file_systems()["FileSystems"]), 2)
    denied(fsx.delete_file_system, "fsx:DeleteFileSystem", arn + theirs, FileSystemId=theirs)
    denied(fsx.create_data_repository_task, "fsx:CreateDataRepositoryTask", arn + theirs, FileSystemId=theirs, Type="EXPORT_TO_REPOSITORY", Report={"Enabled": False})
    wait_for(lambda: fsx.describe_file_systems(FileSystemIds=[mine])["FileSystems"][0]["Lifecycle"] == "AVAILABLE", 60, "a file system")
    l.s3.put_object(Bucket="bkt", Key="in/a", Body=b"a")
    role = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_{mine}"
    link = dict(FileSystemId=mine, FileSystemPath="/in", DataRepositoryPath="s3://bkt/in/", BatchImportMetaDataOnCreate=True)
    denied(l.client("fsx", key=UNLINKED[0], secret=UNLINKED[1]).create_data_repository_association, "iam:CreateServiceLinkedRole", role, **link)
    fsx.create_data_repository_association(**link)  # the role that FSx reads the bucket in is one for each file system
    fsx.delete_file_system(FileSystemId=mine)


def test_droverd__small_services(l):
    def client(name):
        return l.client(name, key=DROVERD[0], secret=DROVERD[1])
    same(client("sts").get_caller_identity()["Account"], ACCOUNT)
    denied(client("sts").assume_role, "sts:AssumeRole", ROLE, RoleArn=ROLE, RoleSessionName="me")
    client("service-quotas").list_service_quotas(ServiceCode="sagemaker")
    denied(client("service-quotas").get_service_quota, "servicequotas:GetServiceQuota", "*", ServiceCode="sagemaker", QuotaCode="L-1")
    group = "/aws/sagemaker/TrainingJobs"
    same(error_of(client("logs").describe_log_streams, logGroupName=group, logStreamNamePrefix="drover-")[0], "ResourceNotFoundException")  # allowed, but there is none
    denied(client("logs").get_log_events, "logs:GetLogEvents", f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:{group}:log-stream:x/algo-1", logGroupName=group, logStreamName="x/algo-1")
    denied(client("secretsmanager").get_secret_value, "secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:drover-x", SecretId="drover-x")
    client("ec2").describe_subnets(SubnetIds=["subnet-0123456789abcdef0"])
    s3 = client("s3")
    l.s3.put_object(Bucket="bkt", Key="meta/a", Body=b"a")
    same(s3.get_object(Bucket="bkt", Key="meta/a")["Body"].read(), b"a")
    s3.put_object(Bucket="bkt", Key="archive/a", Body=b"a")
    denied(s3.put_object, "s3:PutObject", "arn:aws:s3:::bkt/meta/a", Bucket="bkt", Key="meta/a", Body=b"b")
    denied(s3.delete_object, "s3:DeleteObject", "arn:aws:s3:::bkt/meta/a", Bucket="bkt", Key="meta/a")
    denied(s3.list_buckets, "s3:ListAllMyBuckets", "*")
    l.s3.create_bucket(Bucket="else")
    denied(s3.list_objects_v2, "s3:ListBucket", "arn:aws:s3:::else", Bucket="else")
    same(l.s3.get_object(Bucket="bkt", Key="meta/a")["Body"].read(), b"a")


def test_job__reads_and_writes_its_bucket(l):
    keys = l.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="me")["Credentials"]

    def client(name):
        return l.session.create_client(name, region_name="us-east-1", endpoint_url=l.url, aws_access_key_id=keys["AccessKeyId"],
                                       aws_secret_access_key=keys["SecretAccessKey"], aws_session_token=keys["SessionToken"])
    s3 = client("s3")
    s3.put_object(Bucket="bkt", Key="a", Body=b"a")
    upload = s3.create_multipart_upload(Bucket="bkt", Key="b")["UploadId"]
    s3.upload_part(Bucket="bkt", Key="b", UploadId=upload, PartNumber=1, Body=b"b")
    same(len(s3.list_parts(Bucket="bkt", Key="b", UploadId=upload)["Parts"]), 1)
    s3.abort_multipart_upload(Bucket="bkt", Key="b", UploadId=upload)
    s3.delete_object(Bucket="bkt", Key="a")
    client("secretsmanager").get_secret_value(SecretId=f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:drover-x-AbCdEf")
    other = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:other-AbCdEf"
    denied(client("secretsmanager").get_secret_value, "secretsmanager:GetSecretValue", other, SecretId=other)
    same(error_of(s3.get_object, Bucket="else", Key="a")[0], "NoSuchBucket")
    l.s3.create_bucket(Bucket="else")
    denied(s3.get_object, "s3:GetObject", "arn:aws:s3:::else/a", Bucket="else", Key="a")
    denied(client("sagemaker").list_training_jobs, "sagemaker:ListTrainingJobs", "*")
    assert f"User: arn:aws:sts::{ACCOUNT}:assumed-role/drover-worker/me is" in error_of(s3.list_buckets)[1]


def test_every_operation__has_its_permission(_l):
    with open(f"{TOP}/worker/local/http/dispatch.c", encoding="utf-8") as f:
        operations = set(re.findall(r'^    \{"(\w+)", "(\w+)", (?:"\w+"|NULL), \w+\},$', f.read(), re.M))
    with open(f"{TOP}/worker/local/s3/s3_local.c", encoding="utf-8") as f:
        text = f.read().split("static const char *bucket_operation")[1].split("static void put_object")[0]
    operations |= {("s3", x) for x in re.findall(r'"([A-Z][a-z]+[A-Z]\w+)"', text)}
    operations |= {("sts", x) for x in ("GetCallerIdentity", "AssumeRole")} | {("sagemaker", "InvokeEndpoint"), ("ec2", "DescribeSubnets")}
    with open(f"{TOP}/worker/local/iam/action.def", encoding="utf-8") as f:
        same(sorted(re.findall(r'^X\("(\w+)", "(\w+)"', f.read(), re.M)), sorted(operations))


def test_settings__say_what_is_wrong(l):
    def says(value, text):
        path = os.path.join(l.dir, "wrong.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"policies": value}, f)
        p = subprocess.run([BINARY, "--root", l.root + "2", "--config", path], capture_output=True, text=True, timeout=60, check=False)
        assert p.returncode != 0 and text in p.stderr, p.stderr
    bad = os.path.join(l.dir, "policy.json")
    with open(bad, "w", encoding="utf-8") as f:
        f.write('{"Statement": [{"Effect": "Allow", "Action": "x", "Resource": "*", "Condition": {"IpAddress": {}}}]}')
    says({"AKIA": {}}, "the policies of 'AKIA' must be a list")
    says({"AKIA": ["/nowhere/p.json"]}, "'AKIA' in 'policies': cannot open '/nowhere/p.json'")
    says({"AKIA": [bad]}, "'AKIA' in 'policies': policy 1: statement 1: Condition 'IpAddress' is not played here")


if __name__ == "__main__":
    run([(t, SETUP) for t in (test_droverd__may_run_its_jobs_and_no_others, test_droverd__file_systems_by_their_tag, test_droverd__small_services,
                              test_job__reads_and_writes_its_bucket, test_every_operation__has_its_permission, test_settings__say_what_is_wrong)])
