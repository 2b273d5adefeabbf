#!/usr/bin/python3
"""Pipe channels and augmented manifests of drover-local, through botocore. Aim: each epoch's FIFO has the bytes of all its
objects, in the documented form and order; readers that leave early, late or never do not keep a job or a process; what
cannot be sent fails the job in AWS' words, never looks like the end of the data. Method: real jobs, whose programs copy
what they read into their model folder; a request that `drover request` prints is sent as it is.
"""
import gzip
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, bin_of, wait_for
from kit.local import error_of, run, same

READ = "cd $DROVER_ML_ROOT/input/data && for e in %s; do cat c_$e > ../../model/$e || exit 9; done"
DENIED = "Failed to download data. AccessDenied (403)"


def put(l, **objects):
    for key, body in objects.items():
        l.s3.put_object(Bucket="bkt", Key="in/" + key, Body=body)


def manifest(l, key, *lines):
    l.s3.put_object(Bucket="bkt", Key=key, Body=b"".join((x if isinstance(x, bytes) else json.dumps(x).encode()) + b"\n" for x in lines))


def channel(kind="S3Prefix", uri="s3://bkt/in/", name="c", s3=None, **more):
    return {"ChannelName": name, "InputMode": "Pipe", "DataSource": {"S3DataSource": {"S3DataType": kind, "S3Uri": uri, **(s3 or {})}}, **more}


def augmented(*attributes, **more):
    return channel("AugmentedManifestFile", "s3://bkt/a.manifest", s3={"AttributeNames": list(attributes)}, **more)


def job(l, name, command, *channels, **more):
    return l.run(name, command, InputDataConfig=list(channels), **more)


def epochs(l, name, n, host=1):
    """What a job's program has read, by epoch."""
    return [open(os.path.join(l.ml(name, host), "model", str(e)), "rb").read() for e in range(n)]


def sent(l, name, n, *channels, **more):
    """A job reads n epochs of its channel named c."""
    d = job(l, name, READ % " ".join(str(e) for e in range(n)), *channels, **more)
    same((d["TrainingJobStatus"], d.get("FailureReason")), ("Completed", None))
    return epochs(l, name, n)


def records(data):
    out = []
    while data:
        magic, n = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")
        same(magic, 0xced7230a)
        out.append(data[8:8 + n])
        end = 8 + (n + 3) // 4 * 4
        same((len(data) >= end, data[8 + n:end].strip(b"\0")), (True, b""))
        data = data[end:]
    return out


def supervisors(l):
    """Process ids of the supervisors and of the processes that feed channels: they have the same command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"\0supervise\0" + l.root.encode() + b"/jobs/" in open("/proc/%s/cmdline" % pid, "rb").read() and state(pid) != "Z":
                found.append(int(pid))
        except OSError:
            pass
    return found


def state(pid):
    return open("/proc/%s/stat" % pid, encoding="ascii").read().rsplit(")", 1)[1].split()[0]


def nobody_left(l):
    wait_for(lambda: not supervisors(l), 20, "all processes of the jobs to go")


def refused(l, reason, d):
    same((d["TrainingJobStatus"], [t["Status"] for t in d["SecondaryStatusTransitions"]]), ("Failed", ["Starting", "Downloading", "Failed"]))
    same(d["FailureReason"], "ClientError: Data download failed:" + reason)


def test_epochs__each_fifo_has_all_objects_and_the_next_one_is_there(l):
    big = os.urandom(300000)
    put(l, a=b"alpha", b=big, **{"sub/c": b""}, z=b"omega")
    look = READ % "0 1 2" + " && ls > ../../model/ls && cp ../config/inputdataconfig.json file/a ../../model"
    d = job(l, "pipe", look, {k: v for k, v in channel(ContentType="text/csv").items() if k != "InputMode"},
            channel(name="file", InputMode="File"), AlgorithmSpecification={"TrainingInputMode": "Pipe"})
    same(d["TrainingJobStatus"], "Completed")
    same([e == b"alpha" + big + b"omega" for e in epochs(l, "pipe", 3)], [True] * 3)
    read = lambda p: open(os.path.join(l.ml("pipe"), "model", p)).read()  # noqa: E731
    same(read("ls").split(), ["c_3", "file"])
    same(json.loads(read("inputdataconfig.json")), {
        "c": {"TrainingInputMode": "Pipe", "S3DistributionType": "FullyReplicated", "RecordWrapperType": "None", "ContentType": "text/csv"},
        "file": {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated", "RecordWrapperType": "None"}})
    same((read("a"), d["InputDataConfig"][0]["ContentType"]), ("alpha", "text/csv"))
    nobody_left(l)


def test_manifest__its_order_is_kept_and_what_is_not_there_fails(l):
    put(l, a=b"1", b=b"2", c=b"3")
    l.s3.put_object(Bucket="bkt", Key="list", Body=json.dumps([{"prefix": "s3://bkt/in/"}, "c", "a"]).encode())
    same(sent(l, "listed", 2, channel("ManifestFile", "s3://bkt/list")), [b"31", b"31"])
    l.s3.put_object(Bucket="bkt", Key="list", Body=json.dumps([{"prefix": "s3://bkt/in/"}, "c", "d"]).encode())
    refused(l, "The manifest names an object that is not there: 's3://bkt/in/d'", job(l, "gap", "true", channel("ManifestFile", "s3://bkt/list")))
    refused(l, "No S3 objects found under S3 URL 's3://bkt/none/'", job(l, "none", "true", channel(uri="s3://bkt/none/")))
    l.s3.put_object(Bucket="bkt", Key="list", Body=json.dumps([{"prefix": "s3://closed/"}, "x"]).encode())
    for mode in ("Pipe", "File"):
        refused(l, DENIED + " 's3://closed/x'", job(l, "closed-" + mode, "true", channel("ManifestFile", "s3://bkt/list", InputMode=mode)))


def test_wrapping__recordio_and_gzip(l):
    texts = [b"", b"x", b"four", b"fives", os.urandom(200001)]
    for i, text in enumerate(texts):
        l.s3.put_object(Bucket="bkt", Key="raw/%d" % i, Body=text)
        # two members in one file, as gzip allows
        l.s3.put_object(Bucket="bkt", Key="packed/%d" % i, Body=gzip.compress(text[:3]) + gzip.compress(text[3:]))
    raw, packed = {"uri": "s3://bkt/raw/"}, {"uri": "s3://bkt/packed/", "CompressionType": "Gzip"}
    same(records(sent(l, "records", 1, channel(RecordWrapperType="RecordIO", CompressionType="None", **raw))[0]), texts)
    same(sent(l, "unpacked", 1, channel(RecordWrapperType="None", **packed))[0], b"".join(texts))
    same(records(sent(l, "both", 1, channel(RecordWrapperType="RecordIO", **packed))[0]), texts)
    whole = gzip.compress(os.urandom(5000))
    for i, bad in enumerate((b"plain", whole[:3000], whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:])):
        l.s3.put_object(Bucket="bkt", Key="bad/x", Body=bad)
        for wrapper in ("None", "RecordIO"):
            d = job(l, "bad-%d-%s" % (i, wrapper), READ % "0",
                    channel(uri="s3://bkt/bad/", CompressionType="Gzip", RecordWrapperType=wrapper))
            same(d["FailureReason"], "ClientError: Data download failed:The gzip file is corrupt 's3://bkt/bad/x'")
    nobody_left(l)


def test_shuffle__another_order_each_epoch_the_same_for_a_seed(l):
    names = ["%02d" % i for i in range(40)]
    put(l, **{n: n.encode() for n in names})
    parts = lambda data: [data[i:i + 2].decode() for i in range(0, len(data), 2)]  # noqa: E731
    one = [parts(e) for e in sent(l, "one", 3, channel(ShuffleConfig={"Seed": 7}))]
    same([sorted(e) for e in one], [names] * 3)
    assert len({tuple(e) for e in [*one, names]}) == 4, one
    same([parts(e) for e in sent(l, "again", 3, channel(ShuffleConfig={"Seed": 7}))], one)
    assert parts(sent(l, "other", 1, channel(ShuffleConfig={"Seed": 8}))[0]) != one[0]
    same([parts(e) for e in sent(l, "never", 2, channel())], [names] * 2)
    same([parts(e) for e in sent(l, "sharded", 2, channel(s3={"S3DataDistributionType": "ShardedByS3Key"}), ResourceConfig={"InstanceCount": 2})],
         [names[0::2]] * 2)
    same([parts(e) for e in epochs(l, "sharded", 2, host=2)], [names[1::2]] * 2)
    a = sent(l, "mixed", 2, channel(s3={"S3DataDistributionType": "ShardedByS3Key"}, ShuffleConfig={"Seed": 7}), ResourceConfig={"InstanceCount": 2})
    both = [(parts(x), parts(y)) for x, y in zip(a, epochs(l, "mixed", 2, host=2))]
    same([(len(x), sorted(x + y)) for x, y in both], [(20, names)] * 2)
    assert both[0] != both[1], "a host gets other objects in the next epoch"
    few = {"s3": {"S3DataDistributionType": "ShardedByS3Key"}, "uri": "s3://bkt/in/39"}
    same((sent(l, "few", 2, channel(**few), ResourceConfig={"InstanceCount": 2}), epochs(l, "few", 2, host=2)), ([b"39"] * 2, [b""] * 2))


def test_readers__that_leave_early_or_never_come_keep_nothing(l):
    put(l, a=os.urandom(3000000), b=b"end")
    here = "cd $DROVER_ML_ROOT/input/data; "
    same(job(l, "never", here + "true", channel(), channel(name="d"))["TrainingJobStatus"], "Completed")
    d = job(l, "early", here + "for e in 0 1 2; do : < c_$e; until [ -e c_$((e + 1)) ]; do sleep 0.01; done; done; tail -c 3 c_3 > ../../model/0", channel())
    same((d["TrainingJobStatus"], epochs(l, "early", 1)), ("Completed", [b"end"]))  # without a byte read, the next one may not be there yet
    d = job(l, "left", here + "for e in 0 1 2; do head -c 5 c_$e > ../../model/$e || exit 9; done; tail -c 3 c_3 > ../../model/3", channel())
    same((d["TrainingJobStatus"], [len(e) for e in epochs(l, "left", 3)], epochs(l, "left", 4)[3]), ("Completed", [5] * 3, b"end"))
    same(job(l, "middle", here + "exec 3< c_0; head -c 5 <&3 > /dev/null; exit 0", channel())["TrainingJobStatus"], "Completed")
    same(job(l, "child", here + "(sleep 77; cat c_0) & exec 3< c_0; exit 0", channel())["TrainingJobStatus"], "Completed")
    same(job(l, "fails", here + "exec 3< c_0; exit 4", channel())["FailureReason"], "AlgorithmError: , exit code: 4")
    nobody_left(l)


def test_stop_and_limit__end_a_job_that_waits_for_data(l):
    put(l, a=os.urandom(3000000))
    wait = "exec 3< $DROVER_ML_ROOT/input/data/c_0; touch $DROVER_ML_ROOT/ready; exec sleep 60"
    l.create("stop", wait, InputDataConfig=[channel()])
    wait_for(lambda: os.path.exists(os.path.join(l.ml("stop"), "ready")), 20, "the reader")
    assert len(supervisors(l)) == 2, "one supervisor, and one process for the channel"
    l.sm.stop_training_job(TrainingJobName="stop")
    same(l.ended("stop")["TrainingJobStatus"], "Stopped")
    same(job(l, "limit", wait, channel(), StoppingCondition={"MaxRuntimeInSeconds": 1})["SecondaryStatus"], "MaxRuntimeExceeded")
    nobody_left(l)


def test_supervisor__killed_leaves_no_feeder(l):
    put(l, a=os.urandom(3000000))
    l.create("dies", "exec 3< $DROVER_ML_ROOT/input/data/c_0; touch $DROVER_ML_ROOT/ready; exec sleep 60",
             InputDataConfig=[channel(), channel(name="d")])
    wait_for(lambda: os.path.exists(os.path.join(l.ml("dies"), "ready")), 20, "the reader")
    found = supervisors(l)
    same(len(found), 3)
    parents = {int(open("/proc/%d/stat" % p, encoding="ascii").read().rsplit(")", 1)[1].split()[1]) for p in found}
    os.kill(next(p for p in found if p in parents), signal.SIGKILL)
    d = l.ended("dies", 60)
    assert d["FailureReason"].startswith("InternalServerError"), d["FailureReason"]
    nobody_left(l)


def test_feeder__that_dies_fails_the_job(l):
    put(l, a=os.urandom(3000000))
    l.create("orphan", "cat $DROVER_ML_ROOT/input/data/d_0; exec 3< $DROVER_ML_ROOT/input/data/c_0; touch $DROVER_ML_ROOT/ready; exec sleep 60",
             InputDataConfig=[channel(), channel(name="d")])
    wait_for(lambda: os.path.exists(os.path.join(l.ml("orphan"), "ready")), 20, "the reader")
    found = supervisors(l)
    children = [p for p in found if int(open("/proc/%d/stat" % p, encoding="ascii").read().rsplit(")", 1)[1].split()[1]) in found]
    os.kill(children[0], signal.SIGKILL)
    d = l.ended("orphan")
    same((d["TrainingJobStatus"], d["FailureReason"][:19]), ("Failed", "InternalServerError"))
    nobody_left(l)


def test_spot__an_interrupted_job_begins_with_the_first_epoch(l):
    put(l, a=b"alpha")
    go = os.path.join(l.dir, "go")
    l.faults({"operation": "CreateTrainingJob", "kind": "spot_interrupt", "delay_seconds": 0.5})
    l.create("again", READ % "0 1" + "; while [ ! -e %s ]; do sleep 0.05; done" % go, InputDataConfig=[channel()],
             EnableManagedSpotTraining=True, StoppingCondition={"MaxRuntimeInSeconds": 300, "MaxWaitTimeInSeconds": 600})
    wait_for(lambda: "Interrupted" in [t["Status"] for t in l.describe("again")["SecondaryStatusTransitions"]], 20, "the interruption")
    open(go, "w").close()
    d = l.ended("again", 60)
    same((d["TrainingJobStatus"], epochs(l, "again", 2)), ("Completed", [b"alpha"] * 2))
    nobody_left(l)


def test_object__that_goes_between_epochs_fails_the_job_and_is_no_end_of_data(l):
    put(l, a=b"alpha", b=b"beta")
    # it outlives the term, so that it would go on if its read came to an end
    l.create("gone", "trap '' TERM; " + READ % "0" + "; touch ../../read; while [ ! -e ../../go ]; do sleep 0.05; done; cat c_1 > ../../model/1; touch ../../over; exit 0",
             InputDataConfig=[channel()])
    wait_for(lambda: os.path.exists(os.path.join(l.ml("gone"), "read")), 20, "the first epoch")
    l.s3.delete_object(Bucket="bkt", Key="in/b")
    open(os.path.join(l.ml("gone"), "go"), "w").close()
    d = l.ended("gone")
    same((d["TrainingJobStatus"], d["FailureReason"]),
         ("Failed", "ClientError: Data download failed:Failed to download data. NoSuchKey (404) 's3://bkt/in/b'"))
    assert "Training" in [t["Status"] for t in d["SecondaryStatusTransitions"]] and d["BillableTimeInSeconds"] >= 1
    assert not os.path.exists(os.path.join(l.ml("gone"), "over")), "the program never saw an end of the data"
    nobody_left(l)


def test_augmented__attributes_in_their_order_objects_for_refs(l):
    put(l, a=b"picture a", b=b"")
    manifest(l, "a.manifest",
             {"other": 1, "source-ref": "s3://bkt/in/a", "class": 0, "note": "a \"b\" \u00e4", "box": None},
             b'{"class" : 0.93 , "no\\u0074e": "", "source-ref": "s3://bkt/in/b" ,"box":{"class": [1, {"x": "}, \\""}]} }', b"",
             b'{"source-ref":"s3://bkt/in/a","class":[],"note":true,"box":-1e3}')
    lines = [[b"0", b"a \"b\" \xc3\xa4", b"picture a", b"null"],
             [b"0.93", b"", b"", b'{"class": [1, {"x": "}, \\""}]}'],
             [b"[]", b"true", b"picture a", b"-1e3"]]
    order = ["class", "note", "source-ref", "box"]
    got = sent(l, "wrapped", 2, augmented(*order, RecordWrapperType="RecordIO"))
    same([records(e) for e in got], [sum(lines, [])] * 2)
    same(sent(l, "plain", 1, augmented("note", "source-ref"))[0], b"".join(x[1] + x[2] for x in lines))
    got = records(sent(l, "shuffled", 1, augmented(*order, RecordWrapperType="RecordIO", ShuffleConfig={"Seed": 3}))[0])
    same(sorted(got[i:i + 4] for i in range(0, 12, 4)), sorted(lines))
    l.s3.put_object(Bucket="bkt", Key="in/a", Body=gzip.compress(b"unpacked"))
    l.s3.put_object(Bucket="bkt", Key="in/b", Body=gzip.compress(b""))
    same(sent(l, "gzip", 1, augmented("class", "source-ref", CompressionType="Gzip"))[0], b"0unpacked0.93[]unpacked")
    sharded = augmented("class")
    sharded["DataSource"]["S3DataSource"]["S3DataDistributionType"] = "ShardedByS3Key"
    same((sent(l, "halves", 1, sharded, ResourceConfig={"InstanceCount": 2}), epochs(l, "halves", 1, host=2)), ([b"0[]"], [b"0.93"]))


def test_augmented__a_bad_line_fails_the_job_before_it_trains(l):
    put(l, a=b"picture a")
    good = {"source-ref": "s3://bkt/in/a", "class": 0}
    line = lambda n, text: "Line %d of the augmented manifest: %s 's3://bkt/a.manifest'" % (n, text)  # noqa: E731
    rows = [
        ([good, {"source-ref": "s3://bkt/in/a"}], line(2, "it has no attribute 'class'")),
        ([good, {**good, "source-ref": "s3://bkt/in/x"}], line(2, "s3://bkt/in/x: Failed to download data. NoSuchKey (404)")),
        ([{**good, "source-ref": "s3://closed/x"}], line(1, "s3://closed/x: " + DENIED)),
        ([{**good, "source-ref": 5}], line(1, "attribute 'source-ref' is no S3 URI")),
        ([{**good, "source-ref": "/in/a"}], line(1, "/in/a: '/in/a' is not an S3 URI")),
        ([good, good, [1]], line(3, "it is no JSON object")),
        ([b"", b"  "], "The augmented manifest has no lines: 's3://bkt/a.manifest'"),
    ]
    for i, (lines, reason) in enumerate(rows):
        manifest(l, "a.manifest", *lines)
        refused(l, reason, job(l, "bad-%d" % i, "true", augmented("source-ref", "class")))
    manifest(l, "a.manifest", good, b'{"source-ref": "s3://bkt/in/a", "class": 0')
    d = job(l, "cut", "true", augmented("source-ref"))
    assert d["FailureReason"].startswith("ClientError: Data download failed:Line 2 of the augmented manifest: "), d["FailureReason"]
    l.s3.delete_object(Bucket="bkt", Key="a.manifest")
    refused(l, "Cannot read the augmented manifest 's3://bkt/a.manifest'", job(l, "missing", "true", augmented("source-ref")))
    same([x["kind"] for x in l.get("invoice")["lines"]].count("training"), len(l.get("invoice")["lines"]))


def test_names__a_fifo_and_a_folder_of_one_name_fail_the_job(l):
    put(l, a=b"1")
    for e, command in ((0, "true"), (1, READ % "0 1")):
        d = job(l, "clash-%d" % e, command, channel(name="c_%d" % e, InputMode="File"), channel())
        assert d["FailureReason"].startswith("ClientError: Data download failed: cannot make ") and "File exists" in d["FailureReason"], d["FailureReason"]
    nobody_left(l)


def test_validation__refuses_what_sagemaker_refuses(l):
    raw = l.client("sagemaker", parameter_validation=False)
    both = {"AttributeNames": ["a"], "S3DataDistributionType": "FullyReplicated"}
    fsx = {"ChannelName": "c", "DataSource": {"FileSystemDataSource": {
        "FileSystemId": "fs-0123456789abcdef0", "FileSystemType": "FSxLustre", "FileSystemAccessMode": "ro", "DirectoryPath": "/m/x"}}}
    vpc = {"VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}}
    rows = [
        ("CompressionType Gzip is supported for Pipe", channel(InputMode="File", CompressionType="Gzip"), {}),
        ("RecordWrapperType RecordIO is supported for Pipe", channel(InputMode="FastFile", RecordWrapperType="RecordIO"), {}),
        ("can only be used if the Channel's input mode is Pipe", augmented("a", InputMode="File"), {}),
        ("can only be used if the Channel's input mode is Pipe", augmented("a", InputMode="FastFile"), {}),
        ("AttributeNames must be given", channel("AugmentedManifestFile"), {}),
        ("AttributeNames must be given", augmented(), {}),
        ("AttributeNames are supported for S3DataType AugmentedManifestFile only", channel(s3=both), {}),
        ("AttributeNames are supported for S3DataType AugmentedManifestFile only", channel("ManifestFile", s3=both), {}),
        ("attributeNames", augmented(*["a%d" % i for i in range(17)]), {}),
        ("attributeNames", augmented("a", ""), {}),
        ("attributeNames", augmented("a" * 257), {}),
        ("shuffleConfig.seed", channel(ShuffleConfig={}), {}),
        ("shuffleConfig.seed", channel(ShuffleConfig={"Seed": "7"}), {}),
        ("contentType", channel(ContentType="x" * 257), {}),
        ("FastFile input mode supports S3DataType S3Prefix only", channel("ManifestFile", InputMode="FastFile"), {}),
        ("FileSystemDataSource supports File input mode only", {**fsx, "InputMode": "Pipe"}, vpc),
        ("FileSystemDataSource supports File input mode only", fsx, {**vpc, "AlgorithmSpecification": {"TrainingInputMode": "Pipe"}}),
        ("[Pipe, File, FastFile]", channel(), {"AlgorithmSpecification": {"TrainingInputMode": "Stream"}}),
        ("[ManifestFile, S3Prefix, AugmentedManifestFile, ", channel("Table"), {}),
    ]
    for word, ch, more in rows:
        code, text, _ = error_of(raw.create_training_job, **l.request("x", InputDataConfig=[ch], **more))
        assert code == "ValidationException" and word in text, (word, code, text)
    put(l, a=b"1")
    for i, ch in enumerate((channel(InputMode="File", ShuffleConfig={"Seed": -2**63}, CompressionType="None", RecordWrapperType="None"),
                            augmented(*["a%d" % i for i in range(16)]), channel(ContentType="x" * 256))):
        l.create("good-%d" % i, InputDataConfig=[ch])


CAMPAIGN = """version: 1
name: streams
security: {role: "arn:aws:iam::123456789012:role/worker"}
stages:
  - name: train
    image: sh
    entrypoint: [/bin/sh, -c, "cd $DROVER_ML_ROOT/input/data && cat aug_0 > ../../model/0 && cat packed_0 packed_1 > ../../model/1 && cat plain/a > ../../model/2"]
    instance_type: ml.m5.large
    volume_gb: 1
    input_mode: Pipe
    input:
      aug: {from: "s3://bkt/a.manifest", type: AugmentedManifestFile, attributes: [class, source-ref], record_wrapper: RecordIO, shuffle_seed: 7}
      packed: {from: "s3://bkt/packed/", compression: Gzip, spread: ShardedByS3Key, content_type: text/plain}
      plain: {from: "s3://bkt/in/", mode: File}
    output: "s3://bkt/out/"
"""


def test_campaign__the_request_that_drover_prints_runs(l):
    put(l, a=b"picture a", b=b"picture b")
    manifest(l, "a.manifest", *[{"source-ref": "s3://bkt/in/" + n, "class": n} for n in "ab"])
    l.s3.put_object(Bucket="bkt", Key="packed/x", Body=gzip.compress(b"many"))
    path = os.path.join(l.dir, "streams.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(CAMPAIGN)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "DROVER_"))}
    done = subprocess.run([bin_of("release") + "/drover", "request", "--dry", path, "-o", "json"], capture_output=True, text=True, check=False,
                          cwd=TOP, env={**env, "AWS_REGION": "us-east-1"})
    same((done.returncode, done.stderr), (0, ""))
    request = json.loads(done.stdout)
    same(request["AlgorithmSpecification"]["TrainingInputMode"], "Pipe")
    same(request["InputDataConfig"][0], {
        "ChannelName": "aug", "RecordWrapperType": "RecordIO", "ShuffleConfig": {"Seed": 7},
        "DataSource": {"S3DataSource": {"S3DataType": "AugmentedManifestFile", "S3Uri": "s3://bkt/a.manifest",
                                        "S3DataDistributionType": "FullyReplicated", "AttributeNames": ["class", "source-ref"]}}})
    l.sm.create_training_job(**{k: v for k, v in request.items() if k in l.sm.meta.service_model.shape_for("CreateTrainingJobRequest").members})
    name = request["TrainingJobName"]
    d = l.ended(name)
    same((d["TrainingJobStatus"], d.get("FailureReason")), ("Completed", None))
    got = epochs(l, name, 3)
    pairs = records(got[0])
    same(sorted(pairs[i:i + 2] for i in (0, 2)), [[b"a", b"picture a"], [b"b", b"picture b"]])
    same(got[1:], [b"manymany", b"picture a"])


CLOSED = {"denied_buckets": ["closed"]}
run([
    (test_epochs__each_fifo_has_all_objects_and_the_next_one_is_there, {}),
    (test_manifest__its_order_is_kept_and_what_is_not_there_fails, CLOSED),
    (test_wrapping__recordio_and_gzip, {}),
    (test_shuffle__another_order_each_epoch_the_same_for_a_seed, {}),
    (test_readers__that_leave_early_or_never_come_keep_nothing, {}),
    (test_stop_and_limit__end_a_job_that_waits_for_data, {}),
    (test_supervisor__killed_leaves_no_feeder, {}),
    (test_feeder__that_dies_fails_the_job, {}),
    (test_spot__an_interrupted_job_begins_with_the_first_epoch, {"spot_quotas": {"ml.m5.large": 2}}),
    (test_object__that_goes_between_epochs_fails_the_job_and_is_no_end_of_data, {"stop_grace_seconds": 1}),
    (test_augmented__attributes_in_their_order_objects_for_refs, {}),
    (test_augmented__a_bad_line_fails_the_job_before_it_trains, CLOSED),
    (test_names__a_fifo_and_a_folder_of_one_name_fail_the_job, {}),
    (test_validation__refuses_what_sagemaker_refuses, {}),
    (test_campaign__the_request_that_drover_prints_runs, {}),
])
