#!/usr/bin/env python3
"""drover-local's managed spot training through botocore: its own quotas, interruptions that a job survives
with its checkpoints, limits over all runs, billing, a kill in the middle. Checkpoints are those of any
job.
"""
import math
import os
import sys
import time
from fractions import Fraction

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import wait_for
from kit.local import call, error_of, run, same

TYPE = "ml.m5.large"
# The first run leaves a checkpoint and hangs; the next one finds it.
TWICE = "cd $DROVER_ML_ROOT; if [ -e checkpoints/n ]; then echo again; exit 0; fi; echo 1 > checkpoints/n; exec sleep 60"
CHECKPOINTS = {"CheckpointConfig": {"S3Uri": "s3://bkt/ck"}}


def spot(l, name, command="true", max_run=60, max_wait=120, **more):
    return l.create(name, command, EnableManagedSpotTraining=True,
                    StoppingCondition={"MaxRuntimeInSeconds": max_run, "MaxWaitTimeInSeconds": max_wait}, **more)


def interrupt(l, **more):
    l.faults({"operation": "CreateTrainingJob", "kind": "spot_interrupt", **more})


def phases(d):
    return [t["Status"] for t in d["SecondaryStatusTransitions"]]


def ran(l, name):
    """Microseconds the instances were there, from the history alone."""
    history = call(l, "DescribeTrainingJob", {"TrainingJobName": name})[1]["SecondaryStatusTransitions"]
    return sum(round(t["EndTime"] * 1e6) - round(t["StartTime"] * 1e6) for t in history
               if t["Status"] in ("Downloading", "Training", "Uploading"))


def check_bill(l, names, percent):
    price = Fraction("0.115") * 10**6
    lines = {x["name"]: x for x in l.get("invoice")["lines"]}
    same(sorted(lines), sorted(names))
    for name in names:
        d = l.describe(name)
        same(d["BillableTimeInSeconds"], max(1, math.ceil(Fraction(math.ceil(Fraction(ran(l, name) * percent, 100)), 10**6))))
        x = lines[name]
        same((x["seconds"], x["kind"]), (d["BillableTimeInSeconds"] * x["instances"], "training"))
        same(x["micro_usd"], math.floor(price * x["seconds"] / 3600 + Fraction(1, 2)))
        assert d["TrainingTimeInSeconds"] >= d["BillableTimeInSeconds"]


def test_quota__is_one_of_its_own(l):
    spot(l, "s-0", "sleep 60")
    spot(l, "s-1", "sleep 60")
    code, text, _ = error_of(spot, l, "s-2")
    assert code == "ResourceLimitExceeded" and "'ml.m5.large for spot training job usage' is 2 Instances, with " \
        "current utilization of 2 Instances" in text, text
    for i in range(3):
        l.create("d-%d" % i, "sleep 60")
    code, text, _ = error_of(l.create, "d-3")
    assert "'ml.m5.large for training job usage' is 3 Instances, with current utilization of 3" in text, text
    code, text, _ = error_of(spot, l, "s-3", ResourceConfig={"InstanceType": "ml.r5.large"})
    assert "'ml.r5.large for spot training job usage' is 0 Instances" in text, text


def test_total__of_spot_is_counted_apart(l):
    l.create("d", "sleep 60")
    spot(l, "s", "sleep 60")
    code, text, _ = error_of(spot, l, "s-2")
    assert "'Number of instances across all spot training jobs' is 1 Instances" in text, text
    l.create("d-2", "sleep 60")


def test_validation__wait_and_checkpoints(l):
    for stop in ({"MaxRuntimeInSeconds": 60}, {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 59},
                 {"MaxWaitTimeInSeconds": 86399}):
        r = l.request("x", EnableManagedSpotTraining=True)
        r["StoppingCondition"] = stop
        code, text, _ = error_of(l.sm.create_training_job, **r)
        same(code, "ValidationException")
        assert text.startswith("Invalid MaxWaitTimeInSeconds"), text
    raw = l.client("sagemaker", parameter_validation=False)
    for config in ({}, {"S3Uri": "ftp://x"}, {"S3Uri": "s3://bkt/c", "LocalPath": "x" * 4097}):
        code, text, _ = error_of(raw.create_training_job, **l.request("x", CheckpointConfig=config))
        assert code == "ValidationException" and "checkpointConfig." in text, text
    spot(l, "y", max_run=60, max_wait=60)
    d = l.ended("y")
    same((d["EnableManagedSpotTraining"], d["StoppingCondition"]["MaxWaitTimeInSeconds"]), (True, 60))


def test_bill__is_a_share_of_the_time(l):
    spot(l, "s", "sleep 2.1", ResourceConfig={"InstanceCount": 2})
    d = l.ended("s")
    same(phases(d), ["Starting", "Downloading", "Training", "Uploading", "Completed"])
    assert d["TrainingTimeInSeconds"] >= 3 and d["BillableTimeInSeconds"] < d["TrainingTimeInSeconds"], d
    check_bill(l, ["s"], 30)


def test_interruption__starts_again_from_the_checkpoint(l):
    interrupt(l)
    l.create("on-demand", "sleep 0.5")  # these instances are not interrupted
    spot(l, "s", TWICE, **CHECKPOINTS)
    d = wait_for(lambda: (lambda d: d if "Interrupted" in phases(d) else None)(l.describe("s")), 60, "it")
    over = d["TrainingJobStatus"] != "InProgress"  # on a busy machine
    same(("TrainingEndTime" in d, "BillableTimeInSeconds" in d), (over, over))
    d = l.ended("s")
    same(d["TrainingJobStatus"], "Completed")
    same(phases(d), ["Starting", "Downloading", "Training", "Interrupted", "Starting", "Downloading", "Training",
                     "Uploading", "Completed"])
    for a, b in zip(d["SecondaryStatusTransitions"], d["SecondaryStatusTransitions"][1:]):
        same(a["EndTime"], b["StartTime"])
    assert (d["TrainingEndTime"] - d["TrainingStartTime"]).total_seconds() - ran(l, "s") / 1e6 >= 1, "the wait is in between"
    check_bill(l, ["s", "on-demand"], 100)
    same(phases(l.describe("on-demand"))[-1], "Completed")


def test_interruption__without_checkpoints_everything_is_lost(l):
    interrupt(l)
    spot(l, "s", "cd $DROVER_ML_ROOT; if [ -e checkpoints/n ] || [ -e model/n ]; then exit 9; fi; echo 1 > checkpoints/n; echo 1 > model/n; "
                 "sleep 1")
    d = l.ended("s")
    same((d["TrainingJobStatus"], phases(d).count("Interrupted")), ("Completed", 1))


def test_interruption__may_come_several_times(l):
    interrupt(l, repeat=3, delay_seconds=0.1)
    spot(l, "s", "sleep 2")
    d = l.ended("s")
    same((d["TrainingJobStatus"], phases(d).count("Interrupted")), ("Completed", 3))
    check_bill(l, ["s"], 30)
    for bad in (0, 6):
        try:
            interrupt(l, repeat=bad)
            raise AssertionError("repeat %d was taken" % bad)
        except OSError:
            pass


def test_wait__ends_it_when_no_instances_come_back(l):
    interrupt(l)
    spot(l, "s", "exec sleep 60", max_run=2, max_wait=2)
    d = l.ended("s")
    same((d["TrainingJobStatus"], d["SecondaryStatus"]), ("Stopped", "MaxWaitTimeExceeded"))
    same(round((d["TrainingEndTime"] - d["CreationTime"]).total_seconds(), 2), 2)
    same(phases(d), ["Starting", "Downloading", "Training", "Interrupted", "MaxWaitTimeExceeded"])
    assert "FailureReason" not in d
    same(d["SecondaryStatusTransitions"][-1]["StatusMessage"],
         "Training job wait time exceeded MaxWaitTimeInSeconds provided")
    check_bill(l, ["s"], 30)
    assert l.job("s")["released"] is not None


def test_wait__counts_while_it_runs_too(l):
    spot(l, "s", "exec sleep 60", max_run=3, max_wait=3)
    d = l.ended("s")
    same(d["SecondaryStatus"], "MaxWaitTimeExceeded")
    assert 3 <= (d["TrainingEndTime"] - d["CreationTime"]).total_seconds() < 8


def test_capacity__spot_waits_for_it(l):
    l.faults({"operation": "CreateTrainingJob", "kind": "capacity"})
    spot(l, "s", max_run=1, max_wait=2)
    d = l.ended("s")
    same((d["TrainingJobStatus"], d["SecondaryStatus"]), ("Stopped", "MaxWaitTimeExceeded"))
    assert "BillableTimeInSeconds" not in d
    same(l.get("invoice")["lines"], [])


def test_runtime__is_counted_over_all_runs(l):
    interrupt(l, delay_seconds=2)
    spot(l, "s", "exec sleep 60", max_run=3)
    d = l.ended("s")
    same((d["TrainingJobStatus"], d["SecondaryStatus"]), ("Stopped", "MaxRuntimeExceeded"))
    same(phases(d).count("Interrupted"), 1)
    assert 2.9e6 <= ran(l, "s") < 4.9e6, ran(l, "s")  # and not 2 + 3


def test_stop__between_two_runs(l):
    interrupt(l)
    spot(l, "s", "exec sleep 60")
    wait_for(lambda: l.describe("s")["SecondaryStatus"] == "Interrupted", 20, "the interruption")
    l.sm.stop_training_job(TrainingJobName="s")
    d = l.ended("s")
    same((d["TrainingJobStatus"], phases(d)[-3:]), ("Stopped", ["Interrupted", "Stopping", "Stopped"]))
    check_bill(l, ["s"], 30)


def test_restart__between_and_during_runs(l):
    interrupt(l, repeat=2, delay_seconds=0.3)
    spot(l, "s", "sleep 2", **CHECKPOINTS)
    wait_for(lambda: "Interrupted" in phases(l.describe("s")), 60, "the interruption")
    l.kill()
    l.start()
    wait_for(lambda: phases(l.describe("s")).count("Training") >= 2, 20, "the second run")
    l.kill()
    l.start()
    d = l.ended("s")
    same((d["TrainingJobStatus"], phases(d).count("Training"), phases(d).count("Interrupted")), ("Completed", 3, 2))
    check_bill(l, ["s"], 30)
    l.kill()
    l.start()
    check_bill(l, ["s"], 30)


def keys(l, prefix="ck/"):
    return sorted(x["Key"][len(prefix):] for x in l.s3.list_objects_v2(Bucket="bkt", Prefix=prefix).get("Contents", []))


def test_checkpoints__go_both_ways_while_the_job_runs(l):
    l.s3.put_object(Bucket="bkt", Key="ck/old/a", Body=b"1")
    l.s3.put_object(Bucket="bkt", Key="ck/b", Body=b"2")
    l.s3.put_object(Bucket="bkt", Key="ckother", Body=b"3")
    step = os.path.join(l.dir, "step")
    l.create("c", "cd $DROVER_ML_ROOT/checkpoints; cat old/a b > new; rm b; mkdir d; echo x > d/y; "
                  "while [ ! -e %s ]; do sleep 0.05; done; echo last > new" % step, **CHECKPOINTS)
    wait_for(lambda: keys(l) == ["d/y", "new", "old/a"], 10, "the first changes")
    same(l.s3.get_object(Bucket="bkt", Key="ck/new")["Body"].read(), b"12")
    etag = l.s3.head_object(Bucket="bkt", Key="ck/old/a")["LastModified"]
    open(step, "w").close()
    same(l.ended("c")["TrainingJobStatus"], "Completed")
    same(l.s3.get_object(Bucket="bkt", Key="ck/new")["Body"].read(), b"last\n")
    same(l.s3.head_object(Bucket="bkt", Key="ck/old/a")["LastModified"], etag)  # unchanged files stay
    same(l.s3.head_object(Bucket="bkt", Key="ckother")["ContentLength"], 1)
    l.run("next", "cat $DROVER_ML_ROOT/ck/new > $DROVER_ML_ROOT/output/failure; exit 1",
          CheckpointConfig={"S3Uri": "s3://bkt/ck/", "LocalPath": "/opt/ml/ck"})
    same(l.describe("next")["FailureReason"], "AlgorithmError: last\n, exit code: 1")


def test_checkpoints__of_two_hosts_share_a_prefix(l):
    l.run("c", "echo $DROVER_HOST > $DROVER_ML_ROOT/checkpoints/$DROVER_HOST", ResourceConfig={"InstanceCount": 2},
          **CHECKPOINTS)
    same(keys(l), ["algo-1", "algo-2"])
    d = l.run("d", CheckpointConfig={"S3Uri": "s3://closed/x"})
    assert d["FailureReason"].startswith("ClientError: Checkpoint synchronization failed: AccessDenied"), d["FailureReason"]
    d = l.run("e", CheckpointConfig={"S3Uri": "s3://bkt/x", "LocalPath": "/opt/ml/../../x"})
    assert d["FailureReason"].startswith("ClientError: "), d["FailureReason"]


BASE = {"spot_quotas": {TYPE: 4}}
run([(t, {**BASE, **c}) for t, c in [
    (test_quota__is_one_of_its_own, {"quotas": {TYPE: 3}, "spot_quotas": {TYPE: 2}}),
    (test_total__of_spot_is_counted_apart, {"account_quotas": {"Number of instances across all spot training jobs": 1}}),
    (test_validation__wait_and_checkpoints, {}),
    (test_bill__is_a_share_of_the_time, {}),
    (test_interruption__starts_again_from_the_checkpoint, {"spot_wait_seconds": 1, "spot_billed_percent": 100}),
    (test_interruption__without_checkpoints_everything_is_lost, {}),
    (test_interruption__may_come_several_times, {}),
    (test_wait__ends_it_when_no_instances_come_back, {"spot_wait_seconds": 60}),
    (test_wait__counts_while_it_runs_too, {"cold_start_seconds": 1}),
    (test_capacity__spot_waits_for_it, {}),
    (test_runtime__is_counted_over_all_runs, {}),
    (test_stop__between_two_runs, {"spot_wait_seconds": 30}),
    (test_restart__between_and_during_runs, {"spot_wait_seconds": 0.5}),
    (test_checkpoints__go_both_ways_while_the_job_runs, {}),
    (test_checkpoints__of_two_hosts_share_a_prefix, {"denied_buckets": ["closed"]}),
]])
