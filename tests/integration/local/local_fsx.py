#!/usr/bin/env python3
"""drover-local's FSx for Lustre through botocore: file systems by client token, associations that fill them from S3, tasks that
export what jobs wrote, jobs that mount them, what is refused, kills, and storage by the hour on the invoice.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import wait_for
from kit.local import call, error_of, lost, run, same

SUBNET = "subnet-0123456789abcdef0"
VPC = {"SecurityGroupIds": ["sg-0123abcd"], "Subnets": [SUBNET]}
PRICES = {"ml.m5.large": "0.115", "storage:SCRATCH_2": "0.14"}
FAST = {"fsx_create_seconds": 0.1, "fsx_delete_seconds": 0.1, "fsx_task_seconds": 0.1, "prices": PRICES}


def fsx(l):
    return l.client("fsx")


def request(token="t-1", gib=1200, kind="SCRATCH_2", **more):
    return {"FileSystemType": "LUSTRE", "StorageCapacity": gib, "SubnetIds": [SUBNET], "ClientRequestToken": token,
            "LustreConfiguration": {"DeploymentType": kind}, **more}


def seen(l, fs):
    return fsx(l).describe_file_systems(FileSystemIds=[fs])["FileSystems"][0]


def made(l, token="t-1", **more):
    fs = fsx(l).create_file_system(**request(token, **more))["FileSystem"]["FileSystemId"]
    wait_for(lambda: seen(l, fs)["Lifecycle"] == "AVAILABLE", 30, "the file system")
    return fs


def put(l, key, text):
    l.s3.put_object(Bucket="bkt", Key=key, Body=text)


def body(l, key):
    return l.s3.get_object(Bucket="bkt", Key=key)["Body"].read()


def linked(l, fs, path="/ns", prefix="s3://bkt/in/", **more):
    a = fsx(l).create_data_repository_association(FileSystemId=fs, FileSystemPath=path, DataRepositoryPath=prefix,
                                                  **{"BatchImportMetaDataOnCreate": True, **more})["Association"]
    a = wait_for(lambda: (lambda x: x if x["Lifecycle"] not in ("CREATING",) else None)(
        fsx(l).describe_data_repository_associations(AssociationIds=[a["AssociationId"]])["Associations"][0]), 30, "the association")
    wait_for(lambda: all(t["Lifecycle"] not in ("PENDING", "EXECUTING") for t in imports(l, fs)), 30, "its import")
    return a


def imports(l, fs):
    tasks = fsx(l).describe_data_repository_tasks(Filters=[{"Name": "file-system-id", "Values": [fs]}])["DataRepositoryTasks"]
    return [t for t in tasks if t["Type"] == "IMPORT_METADATA_FROM_REPOSITORY"]


def task_done(l, fs, kind="EXPORT_TO_REPOSITORY", **more):
    t = fsx(l).create_data_repository_task(FileSystemId=fs, Type=kind, Report={"Enabled": False}, **more)["DataRepositoryTask"]
    same(t["Lifecycle"], "PENDING")
    return wait_for(lambda: (lambda x: x if x["Lifecycle"] in ("SUCCEEDED", "FAILED", "CANCELED") else None)(
        fsx(l).describe_data_repository_tasks(TaskIds=[t["TaskId"]])["DataRepositoryTasks"][0]), 30, "the task")


def channel(l, fs, path, mode="rw"):
    mount = seen(l, fs)["LustreConfiguration"]["MountName"]
    return {"InputDataConfig": [{"ChannelName": "data", "DataSource": {"FileSystemDataSource": {
        "FileSystemId": fs, "FileSystemType": "FSxLustre", "FileSystemAccessMode": mode, "DirectoryPath": "/" + mount + path}}}], "VpcConfig": VPC}


def test_life__from_s3_to_a_job_and_back(l):
    for i in range(3):
        put(l, "in/a/%d" % i, b"old %d" % i)
    f = fsx(l).create_file_system(**request(Tags=[{"Key": "drover-install", "Value": "x"}]))["FileSystem"]
    fs = f["FileSystemId"]
    same((f["Lifecycle"], f["StorageCapacity"], f["Tags"], f["SubnetIds"]), ("CREATING", 1200, [{"Key": "drover-install", "Value": "x"}], [SUBNET]))
    wait_for(lambda: seen(l, fs)["Lifecycle"] == "AVAILABLE", 30, "the file system")
    a = linked(l, fs)
    same((a["Lifecycle"], a["FileSystemPath"], a["DataRepositoryPath"], a["ImportedFileChunkSize"]), ("AVAILABLE", "/ns", "s3://bkt/in/", 1024))
    d = l.run("job", "cat $DROVER_ML_ROOT/input/data/data/a/* > $DROVER_ML_ROOT/input/data/data/all && echo new > $DROVER_ML_ROOT/input/data/data/a/1",
              **channel(l, fs, "/ns"))
    same(d["TrainingJobStatus"], "Completed")
    assert error_of(l.s3.get_object, Bucket="bkt", Key="in/all")[0] == "NoSuchKey"
    t = task_done(l, fs, Paths=["ns"])
    same((t["Lifecycle"], t["Status"]["TotalCount"], t["Status"]["SucceededCount"], t["Status"]["FailedCount"]), ("SUCCEEDED", 2, 2, 0))
    same((body(l, "in/all"), body(l, "in/a/1"), body(l, "in/a/2")), (b"old 0old 1old 2", b"new\n", b"old 2"))
    same(task_done(l, fs)["Status"]["TotalCount"], 0)  # nothing changed since
    fsx(l).tag_resource(ResourceARN=f["ResourceARN"], Tags=[{"Key": "a", "Value": "b"}])
    same(fsx(l).list_tags_for_resource(ResourceARN=f["ResourceARN"])["Tags"][1], {"Key": "a", "Value": "b"})
    same(fsx(l).delete_file_system(FileSystemId=fs)["Lifecycle"], "DELETING")
    wait_for(lambda: fsx(l).describe_file_systems()["FileSystems"] == [], 30, "its end")
    same(error_of(seen, l, fs)[0], "FileSystemNotFound")
    same(os.listdir(l.root + "/fsx"), [])
    same(fsx(l).describe_data_repository_associations()["Associations"], [])
    line = [x for x in l.get("invoice")["lines"] if x["kind"] == "storage"]
    same(line, [{"name": fs, "kind": "storage", "instance_type": "SCRATCH_2", "instances": 1200, "seconds": 3600,
                 "micro_usd": (140000 * 1200 * 2 + 730) // (2 * 730)}])


def test_token__makes_one_file_system(l):
    l.faults({"kind": "drop_after", "operation": "CreateFileSystem"})
    lost(fsx(l).create_file_system, **request("same"))
    a = fsx(l).create_file_system(**request("same"))["FileSystem"]
    l.kill()
    l.start()
    same(fsx(l).create_file_system(**request("same"))["FileSystem"]["FileSystemId"], a["FileSystemId"])
    same(len(fsx(l).describe_file_systems()["FileSystems"]), 1)
    same(error_of(fsx(l).create_file_system, **request("same", gib=2400))[0], "IncompatibleParameterError")
    same(sum(q["accepted"] for q in l.wire("CreateFileSystem")), 1)
    for i in range(3):
        fsx(l).create_file_system(**request("page-%d" % i))
    pages = list(fsx(l).get_paginator("describe_file_systems").paginate(PaginationConfig={"PageSize": 3}))
    same([len(p["FileSystems"]) for p in pages], [3, 1])


def test_import__new_and_changed_objects(l):
    put(l, "in/a", b"1")
    fs = made(l)
    a = linked(l, fs, S3={"AutoImportPolicy": {"Events": ["NEW", "CHANGED"]}})
    put(l, "in/b", b"22")
    same(l.run("auto", "grep -q 22 $DROVER_ML_ROOT/input/data/data/b", **channel(l, fs, "/ns", "ro"))["TrainingJobStatus"], "Completed")
    put(l, "in/c", b"333")
    same(task_done(l, fs, "IMPORT_METADATA_FROM_REPOSITORY")["Status"]["TotalCount"], 1)
    with open(os.path.join(l.root, "fsx", fs, "ns", "c"), encoding="utf-8") as f:
        same(f.read(), "333")
    fsx(l).delete_data_repository_association(AssociationId=a["AssociationId"], DeleteDataInFileSystem=True)
    wait_for(lambda: fsx(l).describe_data_repository_associations()["Associations"] == [], 30, "its end")
    same(os.listdir(os.path.join(l.root, "fsx", fs)), [])
    bad = linked(l, fs, prefix="s3://nowhere/x/")
    same(bad["Lifecycle"], "MISCONFIGURED")
    assert "unable to access the bucket nowhere" in bad["FailureDetails"]["Message"], bad


def test_import__is_a_task_that_outlives_the_making_of_its_association(l):
    put(l, "in/a", b"1")
    fs = made(l)
    a = fsx(l).create_data_repository_association(FileSystemId=fs, FileSystemPath="/ns", DataRepositoryPath="s3://bkt/in/",
                                                  BatchImportMetaDataOnCreate=True)["Association"]["AssociationId"]
    wait_for(lambda: fsx(l).describe_data_repository_associations(AssociationIds=[a])["Associations"][0]["Lifecycle"] == "AVAILABLE", 30, "the association")
    same(([t["Lifecycle"] in ("PENDING", "EXECUTING") for t in imports(l, fs)], os.listdir(os.path.join(l.root, "fsx", fs, "ns"))), ([True], []))
    wait_for(lambda: imports(l, fs)[0]["Lifecycle"] == "SUCCEEDED", 30, "the import")
    same((imports(l, fs)[0]["Status"]["TotalCount"], os.listdir(os.path.join(l.root, "fsx", fs, "ns"))), (1, ["a"]))
    l.faults({"kind": "job_failure", "operation": "CreateDataRepositoryAssociation", "reason": "broken"})
    linked(l, fs, "/other")
    same(sorted((t["Lifecycle"], t["Paths"]) for t in imports(l, fs)), [("FAILED", ["other"]), ("SUCCEEDED", ["ns"])])


def test_failures__by_order(l):
    l.faults({"kind": "quota_refuse", "operation": "CreateFileSystem"}, {"kind": "job_failure", "operation": "CreateFileSystem", "reason": "no room"})
    same(error_of(fsx(l).create_file_system, **request())[0], "ServiceLimitExceeded")
    fs = fsx(l).create_file_system(**request())["FileSystem"]["FileSystemId"]
    d = wait_for(lambda: (lambda x: x if x["Lifecycle"] != "CREATING" else None)(seen(l, fs)), 30, "its end")
    same((d["Lifecycle"], d["FailureDetails"]["Message"]), ("FAILED", "no room"))
    fsx(l).delete_file_system(FileSystemId=fs)
    fs = made(l, "t-2")
    l.faults({"kind": "job_failure", "operation": "CreateDataRepositoryTask", "reason": "broken"})
    t = task_done(l, fs)
    same((t["Lifecycle"], t["FailureDetails"]["Message"]), ("FAILED", "broken"))
    d = l.run("nowhere", **channel(l, fs, "/none"))
    assert d["FailureReason"].startswith("ClientError: Unable to mount file system: %s directory path: /" % fs), d["FailureReason"]
    same([x for x in l.get("invoice")["lines"] if x["kind"] == "storage"], [])  # one failed, one is not deleted


def test_task__one_at_a_time_and_cancelled(l):
    fs = made(l)
    t = fsx(l).create_data_repository_task(FileSystemId=fs, Type="EXPORT_TO_REPOSITORY", Report={"Enabled": False})["DataRepositoryTask"]["TaskId"]
    again = dict(FileSystemId=fs, Type="EXPORT_TO_REPOSITORY", Report={"Enabled": False})
    same(error_of(fsx(l).create_data_repository_task, **again)[0], "DataRepositoryTaskExecuting")
    same(error_of(fsx(l).delete_file_system, FileSystemId=fs)[0], "BadRequest")
    same(fsx(l).cancel_data_repository_task(TaskId=t)["Lifecycle"], "CANCELING")


def test_refused__as_fsx_refuses(l):
    fs = made(l)
    p2 = {"DeploymentType": "PERSISTENT_2"}
    rows = [("CreateFileSystem", request(gib=1000), "BadRequest"), ("CreateFileSystem", request(gib=3600), "BadRequest"),
            ("CreateFileSystem", request(SubnetIds=[]), "InvalidNetworkSettings"), ("CreateFileSystem", request(SubnetIds=["net"]), "ValidationException"),
            ("CreateFileSystem", request(LustreConfiguration=p2), "InvalidPerUnitStorageThroughput"),
            ("CreateFileSystem", request(LustreConfiguration={**p2, "PerUnitStorageThroughput": 50}), "InvalidPerUnitStorageThroughput"),
            ("CreateFileSystem", request(LustreConfiguration={"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": 200}), "InvalidPerUnitStorageThroughput"),
            ("CreateFileSystem", request(FileSystemType="WINDOWS"), "BadRequest"), ("CreateFileSystem", request(token="a b"), "ValidationException"),
            ("CreateFileSystem", request(SecurityGroupIds=["x"]), "ValidationException"), ("DeleteFileSystem", {"FileSystemId": "fs-00000000"}, "FileSystemNotFound"),
            ("UpdateFileSystem", {"FileSystemId": fs, "StorageCapacity": 1200}, "BadRequest"),
            ("CreateDataRepositoryAssociation", {"FileSystemId": "fs-00000000", "DataRepositoryPath": "s3://bkt"}, "FileSystemNotFound"),
            ("CreateDataRepositoryAssociation", {"FileSystemId": fs, "DataRepositoryPath": "/tmp"}, "ValidationException"),
            ("CreateDataRepositoryAssociation", {"FileSystemId": fs, "FileSystemPath": "/ns/deep", "DataRepositoryPath": "s3://bkt/y"}, "BadRequest"),
            ("CreateDataRepositoryTask", {"FileSystemId": fs, "Type": "EXPORT_TO_REPOSITORY"}, "ValidationException"),
            ("DescribeDataRepositoryTasks", {"TaskIds": ["task-0123456789abcdef0"]}, "DataRepositoryTaskNotFound"),
            ("CancelDataRepositoryTask", {"TaskId": "task-0123456789abcdef0"}, "DataRepositoryTaskNotFound"), ("ListTagsForResource", {"ResourceARN": "arn:aws:fsx:us-east-1:123456789012:file-system/fs-00000000"}, "ResourceNotFound")]
    put(l, "in/a", b"1")
    linked(l, fs)
    for operation, body_, code in rows:
        status, answer = call(l, operation, body_, "fsx", "AWSSimbaAPIService_v20180301.")
        assert status == 400 and answer["__type"] == code, (operation, body_, answer)
    ok = channel(l, fs, "/ns")
    for change in ({"VpcConfig": None}, {"AlgorithmSpecification": {"TrainingInputMode": "FastFile"}}):
        r = {k: v for k, v in l.request("j", **{**ok, **change}).items() if v is not None}
        same(call(l, "CreateTrainingJob", r)[1]["__type"], "ValidationException")
    same(fsx(l).update_file_system(FileSystemId=fs, StorageCapacity=2400)["FileSystem"]["StorageCapacity"], 2400)
    fsx(l).create_file_system(**request("p2", gib=2400, LustreConfiguration={**p2, "PerUnitStorageThroughput": 125}))


run([(test_life__from_s3_to_a_job_and_back, FAST), (test_token__makes_one_file_system, {**FAST, "fsx_create_seconds": 50}),
     (test_import__is_a_task_that_outlives_the_making_of_its_association, {**FAST, "fsx_task_seconds": 0.6}),
     (test_import__new_and_changed_objects, FAST), (test_failures__by_order, FAST),
     (test_task__one_at_a_time_and_cancelled, {**FAST, "fsx_task_seconds": 100}), (test_refused__as_fsx_refuses, FAST)])
