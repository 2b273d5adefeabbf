#!/usr/bin/env python3
"""drover-local's warm pools through botocore: which job leaves one, which takes it, what it counts and costs,
when it ends, and that a kill in the middle changes nothing. Signed requests and real processes; Describe
is compared with the oracle's times, and the invoice is recomputed from them.
"""
import math
import os
import sys
import threading
import time
from fractions import Fraction

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import wait_for
from kit.local import ROLE, call, error_of, run, same

KEEP = {"KeepAlivePeriodInSeconds": 600}
TYPE = "ml.m5.large"
NO_POOL = "The request was rejected because the training job has no warm pool in status Available"


def warm(l, name, command="true", keep=600, **more):
    """Run a job to its end; returns its description."""
    more["ResourceConfig"] = {"KeepAlivePeriodInSeconds": keep, **more.get("ResourceConfig", {})}
    return l.run(name, command, **more)


def pool(l, name):
    return l.describe(name).get("WarmPoolStatus")


def status(l, name):
    return (pool(l, name) or {"Status": None})["Status"]


def held(l, name):
    """A command that ends after let_go."""
    return "while [ ! -e %s ]; do sleep 0.02; done" % os.path.join(l.dir, name)


def let_go(l, name):
    open(os.path.join(l.dir, name), "w").close()


def update(l, name, keep):
    return l.sm.update_training_job(TrainingJobName=name, ResourceConfig={"KeepAlivePeriodInSeconds": keep})


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


def test_life__available_reused_in_use_and_each_jobs_own_keep_alive(l):
    d = warm(l, "first")
    same((d["TrainingJobStatus"], d["WarmPoolStatus"]["Status"]), ("Completed", "Available"))
    same(l.job("first")["released"], None)
    same(d["ResourceConfig"]["KeepAlivePeriodInSeconds"], 600)
    l.create("second", held(l, "go"), ResourceConfig=KEEP, Environment={"OTHER": "1"}, HyperParameters={"a": "b"},
             StoppingCondition={"MaxRuntimeInSeconds": 60}, Tags=[{"Key": "k", "Value": "v"}])
    same(pool(l, "second"), {"Status": "InUse"})
    got = pool(l, "first")
    same((got["Status"], got["ReusedByJob"]), ("Reused", "second"))
    same(l.job("first")["released"], l.job("second")["created"])
    same(l.job("second")["pool"]["taken_from"], "first")
    let_go(l, "go")
    same(l.ended("second")["WarmPoolStatus"]["Status"], "Available")
    d = l.run("third")  # asks for no pool of its own
    same(l.job("third")["pool"]["taken_from"], "second")
    same(d["WarmPoolStatus"], {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 0})
    assert l.job("third")["released"] is not None
    same([pool(l, n)["Status"] for n in ("first", "second")], ["Reused", "Reused"])
    assert "WarmPoolStatus" not in l.run("fourth"), "no keep-alive, no pool"


def test_start__is_cold_without_and_warm_with_a_pool(l):
    span = lambda d: (d["TrainingStartTime"] - d["CreationTime"]).total_seconds()  # noqa: E731
    assert span(warm(l, "cold")) >= 3
    assert span(warm(l, "warm")) < 2.5
    assert span(warm(l, "other", ResourceConfig={"VolumeSizeInGB": 2})) >= 3


VPC = {"SecurityGroupIds": ["sg-1", "sg-2"], "Subnets": ["subnet-1", "subnet-2"]}
KMS = "arn:aws:kms:us-east-1:123456789012:key/1"
WHOLE = {"ResourceConfig": {"VolumeKmsKeyId": KMS, "VolumeSizeInGB": 7}, "VpcConfig": VPC,
         "EnableInterContainerTrafficEncryption": True}


def request(l, name, change):
    r = l.request(name, **WHOLE)
    for k, v in change.items():
        if v is None:
            del r[k]
        elif k == "ResourceConfig":
            r[k] = {x: y for x, y in {**r[k], **v}.items() if y is not None}
        else:
            r[k] = v
    return r


def test_match__every_field_counts(l):
    same(warm(l, "pool", **WHOLE)["WarmPoolStatus"]["Status"], "Available")
    others = [{"RoleArn": ROLE + "2"},
              {"ResourceConfig": {"InstanceCount": 2}}, {"ResourceConfig": {"InstanceType": "ml.r5.large"}},
              {"ResourceConfig": {"VolumeKmsKeyId": KMS + "2"}}, {"ResourceConfig": {"VolumeKmsKeyId": None}},
              {"ResourceConfig": {"VolumeSizeInGB": 8}}, {"VpcConfig": None},
              {"VpcConfig": {**VPC, "Subnets": ["subnet-2", "subnet-1"]}},
              {"VpcConfig": {**VPC, "SecurityGroupIds": ["sg-2", "sg-1"]}},
              {"VpcConfig": {**VPC, "SecurityGroupIds": ["sg-1"]}},
              {"EnableInterContainerTrafficEncryption": None}, {"EnableInterContainerTrafficEncryption": False},
              {"EnableNetworkIsolation": True}, {"SessionChainingConfig": {"EnableSessionTagChaining": True}},
              {"EnableManagedSpotTraining": True,
               "StoppingCondition": {"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 600}}]
    for i, change in enumerate(others):
        code, text = call(l, "CreateTrainingJob", request(l, "other-%d" % i, change))
        same(code, 200)
        l.ended("other-%d" % i)
        assert "pool" not in l.job("other-%d" % i), (change, l.job("other-%d" % i))
        same(status(l, "pool"), "Available")
    same(call(l, "CreateTrainingJob", request(l, "same", {"EnableNetworkIsolation": False,
                                                         "EnableManagedSpotTraining": False}))[0], 200)
    same((pool(l, "pool")["ReusedByJob"], l.job("same")["pool"]["taken_from"]), ("same", "pool"))


def test_match__a_bare_job_does_not_take_the_pool_of_one_with_a_network(l):
    warm(l, "bare")
    same(call(l, "CreateTrainingJob", l.request("net", VpcConfig=VPC))[0], 200)
    l.ended("net")
    same((status(l, "bare"), "pool" in l.job("net")), ("Available", False))


def test_made__after_each_end_that_leaves_healthy_instances(l):
    same(status_of(warm(l, "algorithm", "exit 3")), ("Failed", "Available"))
    update(l, "algorithm", 0)
    d = warm(l, "client", "echo x > $DROVER_ML_ROOT/model/x", OutputDataConfig={"S3OutputPath": "s3://no-such/out"})
    assert d["FailureReason"].startswith("ClientError"), d["FailureReason"]
    same(status_of(d), ("Failed", "Available"))
    update(l, "client", 0)
    same(status_of(warm(l, "limit", "exec sleep 60", StoppingCondition={"MaxRuntimeInSeconds": 1})),
         ("Stopped", "Available"))
    update(l, "limit", 0)
    l.create("stopped", "exec sleep 60", ResourceConfig=KEEP)
    l.running("stopped")
    l.sm.stop_training_job(TrainingJobName="stopped")
    same(status_of(l.ended("stopped")), ("Stopped", "Available"))
    same(error_of(l.sm.stop_training_job, TrainingJobName="stopped")[1],
         "The request was rejected because the training job is in status Stopped")


def status_of(d):
    return d["TrainingJobStatus"], d["WarmPoolStatus"]["Status"]


def test_not_made__after_ends_that_do_not(l):
    l.faults({"operation": "CreateTrainingJob", "name_contains": "internal", "kind": "internal_error"},
             {"operation": "CreateTrainingJob", "name_contains": "capacity", "kind": "capacity"})
    for name in ("internal", "capacity"):
        d = warm(l, name, "sleep 5")
        same(d["WarmPoolStatus"], {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 0})
    spot = {"EnableManagedSpotTraining": True, "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}}
    code, text, _ = error_of(warm, l, "spot-kept", **spot)
    assert code == "ValidationException" and "KeepAlivePeriodInSeconds is not supported" in text, text
    assert "WarmPoolStatus" not in l.run("spot", **spot)
    d = warm(l, "image", AlgorithmSpecification={"TrainingImage": "nothing:1"})  # the cluster was never up
    same(status_of(d), ("Failed", "Terminated"))
    same(status_of(warm(l, "none", ResourceConfig={"InstanceType": "ml.r5.large"})), ("Completed", "Terminated"))
    assert all(j["released"] for j in l.get("jobs")["jobs"])
    same([x["kind"] for x in l.get("invoice")["lines"]], ["training"] * 3)


def test_not_made__for_a_job_stopped_before_its_cluster_was_up(l):
    l.create("early", ResourceConfig=KEEP)
    l.sm.stop_training_job(TrainingJobName="early")
    same(status_of(l.ended("early")), ("Stopped", "Terminated"))
    assert l.job("early")["released"] is not None


def test_warm_quota__is_counted_in_instances_kept(l):
    same(status_of(warm(l, "two", ResourceConfig={"InstanceCount": 2}))[1], "Available")
    same(status_of(warm(l, "one"))[1], "Available")
    same(status_of(warm(l, "over", ResourceConfig={"VolumeSizeInGB": 2}))[1], "Terminated")  # 3 of 3 are kept
    assert l.job("over")["released"] is not None
    update(l, "one", 0)
    same(status_of(warm(l, "again", ResourceConfig={"VolumeSizeInGB": 2}))[1], "Available")


def test_full_quota__slots_are_moved_not_added(l):
    for i in range(4):
        l.create("a-%d" % i, held(l, "a"), ResourceConfig=KEEP)
    let_go(l, "a")
    [l.ended("a-%d" % i) for i in range(4)]
    code, text, _ = error_of(l.create, "stranger", ResourceConfig={"VolumeSizeInGB": 2})
    assert code == "ResourceLimitExceeded" and "is 4 Instances, with current utilization of 4 Instances and a " \
        "request delta of 1 Instances" in text, text
    sm, results = l.sm, []

    def one(i):
        try:
            sm.create_training_job(**l.request("b-%d" % i, held(l, "b"), ResourceConfig=KEEP))
            results.append("b-%d" % i)
        except Exception as e:  # noqa: BLE001
            same(e.response["Error"]["Code"], "ResourceLimitExceeded")
    threads = [threading.Thread(target=one, args=(i,)) for i in range(16)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    same(len(results), 4)
    same(sorted(pool(l, "a-%d" % i)["ReusedByJob"] for i in range(4)), sorted(results))
    same({status(l, n) for n in results}, {"InUse"})
    let_go(l, "b")
    [l.ended(n) for n in results]
    same({status(l, n) for n in results}, {"Available"})
    same(most_at_once(l.get("jobs")["jobs"]), 4)
    update(l, results[0], 0)
    l.create("stranger", ResourceConfig={"VolumeSizeInGB": 2})
    same(l.ended("stranger")["TrainingJobStatus"], "Completed")
    same(most_at_once(l.get("jobs")["jobs"]), 4)


def test_total_quota__counts_pools_and_moves_them_too(l):
    warm(l, "a", ResourceConfig={"InstanceCount": 2})
    code, text, _ = error_of(l.create, "b")
    assert "'Number of instances across all training jobs' is 2 Instances, with current utilization of 2" in text, text
    same(l.run("c", ResourceConfig={"InstanceCount": 2})["TrainingJobStatus"], "Completed")
    same(pool(l, "a")["ReusedByJob"], "c")


def test_refused_create__leaves_the_pool_alone(l):
    warm(l, "a")
    l.faults({"operation": "CreateTrainingJob", "kind": "quota_refuse"})
    same(error_of(l.create, "b")[0], "ResourceLimitExceeded")
    same(error_of(l.create, "a")[0], "ResourceInUse")
    same(error_of(l.create, "c", ResourceConfig={"KeepAlivePeriodInSeconds": 3601})[0], "ValidationException")
    same(status(l, "a"), "Available")
    l.faults({"operation": "CreateTrainingJob", "kind": "capacity"})
    same(l.run("d")["TrainingJobStatus"], "Completed")  # nothing to provision: there is no lack of capacity


def test_expiry__ends_it_in_the_instant_it_is_due(l):
    d = warm(l, "a", keep=1, ResourceConfig={"InstanceCount": 4})
    same(d["WarmPoolStatus"]["Status"], "Available")
    assert d["WarmPoolStatus"]["ResourceRetainedBillableTimeInSeconds"] <= 1
    sm, most = l.sm, 0
    while True:  # the quota frees itself, and not before
        try:
            sm.create_training_job(**l.request("b", ResourceConfig={"InstanceCount": 3}))
            break
        except Exception as e:  # noqa: BLE001
            same(e.response["Error"]["Code"], "ResourceLimitExceeded")
        most += 1
        time.sleep(0.02)
    assert most > 0
    j = l.job("a")
    same(round(j["released"] - j["ended"], 3), 1.0)
    same(pool(l, "a"), {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 1})
    same(most_at_once(l.get("jobs")["jobs"]), 4)
    assert "pool" not in l.job("b")


def test_cache__is_handed_on_with_the_instances_and_goes_with_them(l):
    seen = "d=$SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY; cat $d/who > $DROVER_ML_ROOT/output/failure; " \
           "echo $TRAINING_JOB_NAME $DROVER_HOST > $d/who; ls -d $DROVER_ML_ROOT/sagemaker/warmpoolcache/who; sleep 1; exit 1"
    two = {"ResourceConfig": {"InstanceCount": 2}}
    reason = lambda d: d["FailureReason"]  # noqa: E731
    same(reason(warm(l, "a", seen, **two)), "AlgorithmError: , exit code: 1")
    assert reason(warm(l, "b", seen, **two)) in ["AlgorithmError: a algo-%d\n, exit code: 1" % k for k in (1, 2)]
    l.kill()
    l.start()
    assert reason(l.run("c", seen, **two)) in ["AlgorithmError: b algo-%d\n, exit code: 1" % k for k in (1, 2)]
    same(reason(warm(l, "d", seen, **two)), "AlgorithmError: , exit code: 1")  # c kept no pool
    update(l, "d", 0)
    same(reason(warm(l, "e", seen, **two)), "AlgorithmError: , exit code: 1")
    same(os.listdir(os.path.join(l.root, "state", "clusters")), ["e"])
    same(reason(l.run("plain", "exec test -n \"$SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY\"",
                      ResourceConfig={"VolumeSizeInGB": 9})), "AlgorithmError: , exit code: 1")


def test_update__zero_ends_it_and_more_extends_it(l):
    warm(l, "a")
    before = l.describe("a")["LastModifiedTime"]
    same(update(l, "a", 0)["TrainingJobArn"], "arn:aws:sagemaker:us-east-1:123456789012:training-job/a")
    got = pool(l, "a")
    j = l.job("a")
    same((got["Status"], got["ResourceRetainedBillableTimeInSeconds"]),
         ("Terminated", math.ceil(round(j["released"] - j["ended"], 6))))
    same(l.describe("a")["LastModifiedTime"], before)  # AWS does not promise to move it, so it does not
    same(error_of(update, l, "a", 0), ("ValidationException", NO_POOL, 400))
    assert "pool" not in (l.run("cold"), l.job("cold"))[1]
    warm(l, "b", keep=2)
    update(l, "b", 3600)
    same(l.describe("b")["ResourceConfig"]["KeepAlivePeriodInSeconds"], 3600)
    time.sleep(max(0, l.job("b")["ended"] + 2.3 - time.time()))
    same(status(l, "b"), "Available")
    update(l, "b", 1)  # counted from the end of the job: long over
    same(status(l, "b"), "Terminated")


def test_update__is_refused_where_there_is_no_pool(l):
    same(error_of(update, l, "nobody", 0), ("ValidationException", "Requested resource not found.", 400))
    l.create("runs", held(l, "runs"), ResourceConfig=KEEP)
    same(error_of(update, l, "runs", 0)[1], NO_POOL)
    let_go(l, "runs")
    l.ended("runs")
    l.create("taker", held(l, "taker"), ResourceConfig=KEEP)
    same((status(l, "runs"), status(l, "taker")), ("Reused", "InUse"))
    for name in ("runs", "taker"):
        for keep in (0, 900):
            same(error_of(update, l, name, keep)[1], NO_POOL)
    let_go(l, "taker")
    l.ended("taker")
    for keep, said in ((-1, "greater than or equal to 0"), (3601, "between 0 and 3600")):
        code, text, _ = error_of(l.client("sagemaker", parameter_validation=False).update_training_job,
                                 TrainingJobName="taker", ResourceConfig={"KeepAlivePeriodInSeconds": keep})
        same(code, "ValidationException")
        assert "keepAlivePeriodInSeconds" in text and said in text, text
    same(status(l, "taker"), "Available")
    same(l.describe("taker")["ResourceConfig"]["KeepAlivePeriodInSeconds"], 600)


def test_keep_alive__is_bounded_by_the_account(l):
    raw = l.client("sagemaker", parameter_validation=False)
    for keep in (-1, 7201):
        r = l.request("x", ResourceConfig={"KeepAlivePeriodInSeconds": keep})
        code, text, _ = error_of(raw.create_training_job, **r)
        assert code == "ValidationException" and "resourceConfig.keepAlivePeriodInSeconds" in text, text
    same(warm(l, "long", keep=7200)["WarmPoolStatus"]["Status"], "Available")
    r = l.request("groups", ResourceConfig={"InstanceGroups": [{"InstanceType": TYPE, "InstanceCount": 1,
                                                                "InstanceGroupName": "g"}]})
    same(call(l, "CreateTrainingJob", r)[0], 400)


def test_chain__of_one_cluster_ends_with_its_life(l):
    warm(l, "a", "sleep 0.3")
    first = l.job("a")["started"]
    d = warm(l, "b")
    same(l.job("b")["pool"]["cluster"], "a")
    same(d["WarmPoolStatus"]["Status"], "Available")
    wait_for(lambda: status(l, "b") == "Terminated", 10, "the end of the cluster")
    same(round(l.job("b")["released"] - first, 3), 5.0)


def test_list__shows_and_filters_by_pool(l):
    l.create("free", ResourceConfig=KEEP)
    l.ended("free")
    warm(l, "gone", ResourceConfig={"VolumeSizeInGB": 2})
    update(l, "gone", 0)
    warm(l, "left", ResourceConfig={"VolumeSizeInGB": 3})
    l.create("user", "sleep 60", ResourceConfig={"VolumeSizeInGB": 3})
    l.run("plain", ResourceConfig={"VolumeSizeInGB": 4})
    names = lambda **q: [s["TrainingJobName"] for s in l.sm.list_training_jobs(**q)["TrainingJobSummaries"]]  # noqa: E731
    same(names(WarmPoolStatusEquals="Available"), ["free"])
    same(names(WarmPoolStatusEquals="Terminated"), ["gone"])
    same(names(WarmPoolStatusEquals="Reused"), ["left"])
    same(names(WarmPoolStatusEquals="InUse"), ["user"])
    same(names(WarmPoolStatusEquals="Reused", NameContains="x"), [])
    for s in l.sm.list_training_jobs(MaxResults=100)["TrainingJobSummaries"]:
        d = l.describe(s["TrainingJobName"])
        same(s.get("WarmPoolStatus", {}).get("Status"), d.get("WarmPoolStatus", {}).get("Status"))
        same(s.get("WarmPoolStatus", {}).get("ReusedByJob"), d.get("WarmPoolStatus", {}).get("ReusedByJob"))
        same("WarmPoolStatus" in s, s["TrainingJobName"] != "plain")


def test_stale_describe__still_shows_the_pool_that_was_taken(l):
    warm(l, "a")
    ended = l.job("a")["ended"]
    wait_for(lambda: time.time() > ended + 5)  # for so long, but 0.2 s, the question may take
    l.create("b", "sleep 60")
    l.faults({"operation": "DescribeTrainingJob", "kind": "stale_describe", "delay_seconds": time.time() - ended - 0.2})
    same(status(l, "a"), "Available")
    same(status(l, "a"), "Reused")


def test_restart__pools_survive_and_are_taken_once(l):
    warm(l, "a")
    jobs, shown = l.get("jobs"), pool(l, "a")["Status"]
    l.kill()
    l.start()
    same((l.get("jobs"), pool(l, "a")["Status"]), (jobs, shown))
    code, text, _ = error_of(l.create, "big", ResourceConfig={"InstanceCount": 4})
    assert code == "ResourceLimitExceeded" and "current utilization of 1" in text, text
    l.create("b", held(l, "b"), ResourceConfig=KEEP)
    l.kill()  # the hand-over is one line of the journal: all of it is there, or nothing
    l.start()
    same((status(l, "a"), pool(l, "a")["ReusedByJob"], status(l, "b")), ("Reused", "b", "InUse"))
    same(l.job("a")["released"], l.job("b")["created"])
    let_go(l, "b")
    same(l.ended("b")["WarmPoolStatus"]["Status"], "Available")
    update(l, "b", 900)
    invoice = l.get("invoice")
    l.kill()
    l.start()
    same(l.get("invoice"), invoice)
    same(l.describe("b")["ResourceConfig"]["KeepAlivePeriodInSeconds"], 900)
    update(l, "b", 0)
    invoice, jobs = l.get("invoice"), l.get("jobs")
    l.kill()
    l.start()
    same((l.get("invoice"), l.get("jobs"), status(l, "b")), (invoice, jobs, "Terminated"))
    same(most_at_once(jobs["jobs"]), 1)


def test_restart__a_pool_that_fell_due_meanwhile_ended_when_it_was_due(l):
    warm(l, "a", keep=1)
    l.kill()
    time.sleep(1.3)  # the pool falls due while nothing runs that could say so
    l.start()
    same(pool(l, "a"), {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 1})
    j = l.job("a")
    same(round(j["released"] - j["ended"], 3), 1.0)
    l.create("b", "sleep 1.2; true", ResourceConfig={"KeepAlivePeriodInSeconds": 1})
    l.running("b")
    l.kill()
    time.sleep(2.8)  # the same: job and pool end meanwhile
    at = time.time()
    l.start()
    same(l.ended("b")["WarmPoolStatus"], {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 1})
    assert l.job("b")["released"] >= at, "the slot was held until its end was noticed"
    same([x["seconds"] for x in l.get("invoice")["lines"] if x["kind"] == "warm"], [1, 1])


def test_invoice__is_right_to_the_second(l):
    price = Fraction("0.1150004")
    warm(l, "a", "sleep 0.4", ResourceConfig={"InstanceCount": 3})
    time.sleep(1.1)  # more than a second is billed
    warm(l, "b", "sleep 0.2", ResourceConfig={"InstanceCount": 3})
    warm(l, "c", "sleep 0.2", keep=1)
    l.run("d", ResourceConfig={"InstanceCount": 3})
    wait_for(lambda: status(l, "c") == "Terminated", 10, "the end of c's pool")
    warm(l, "kept")
    lines = l.get("invoice")["lines"]
    same(sorted((x["name"], x["kind"]) for x in lines),
         [("a", "training"), ("a", "warm"), ("b", "training"), ("b", "warm"), ("c", "training"), ("c", "warm"),
          ("d", "training"), ("kept", "training")])  # what is still kept is not billed yet
    total_s = total_m = 0
    micro = math.floor(price * 10**6 + Fraction(1, 2))
    for x in lines:
        d, j = l.describe(x["name"]), l.job(x["name"])
        n = d["ResourceConfig"]["InstanceCount"]
        told = d["BillableTimeInSeconds"] if x["kind"] == "training" else \
            d["WarmPoolStatus"]["ResourceRetainedBillableTimeInSeconds"]
        begin, end = (j["started"], j["ended"]) if x["kind"] == "training" else (j["ended"], j["released"])
        same((x["instances"], x["seconds"], told), (n, told * n, math.ceil(round(end - begin, 6))))
        same(x["micro_usd"], math.floor(Fraction(micro * x["seconds"], 3600) + Fraction(1, 2)))
        total_s, total_m = total_s + x["seconds"], total_m + x["micro_usd"]
    same(l.get("invoice")["total"], {"seconds": total_s, "micro_usd": total_m})
    assert [x["seconds"] for x in lines if (x["name"], x["kind"]) == ("a", "warm")][0] >= 6


def test_reset__forgets_pools(l):
    warm(l, "a", ResourceConfig={"InstanceCount": 4})
    l.post("reset")
    same(l.run("a", ResourceConfig={"InstanceCount": 4})["TrainingJobStatus"], "Completed")
    assert "pool" not in l.job("a")


def quotas(l):
    found, token = {}, None
    while True:
        q = dict(ServiceCode="sagemaker", MaxResults=5)
        page = l.client("service-quotas").list_service_quotas(**(dict(q, NextToken=token) if token else q))
        for x in page["Quotas"]:
            assert x["QuotaName"] not in found, x
            found[x["QuotaName"]] = x["Value"]
        token = page.get("NextToken")
        if not token:
            return found


def test_quotas__of_pools_spot_and_account_are_served(l):
    q = quotas(l)
    same([q[TYPE + " for " + x] for x in ("training job usage", "training warm pool usage",
                                          "spot training job usage")], [4, 3, 2])
    same([q["ml.r5.large for " + x] for x in ("training job usage", "training warm pool usage",
                                              "spot training job usage")], [4, 0, 0])
    same(q["Number of instances across all training jobs"], 6)
    same(q["Maximum number of instances per training job"], 3)
    same(q["Longest run time for a training job"], 7200)
    same(q["Size of EBS volume for a training job instance"], 50)
    same(q["Keep alive period for cluster reuse"], 3600)
    same(quotas_of_default(l)["Maximum number of instances per training job"], 3)


def quotas_of_default(l):
    sq, found = l.client("service-quotas"), {}
    for x in sq.list_service_quotas(ServiceCode="sagemaker")["Quotas"]:
        got = sq.get_service_quota(ServiceCode="sagemaker", QuotaCode=x["QuotaCode"])["Quota"]
        found[got["QuotaName"]] = got["Value"]
    return found


def test_account_quotas__are_enforced_in_aws_words(l):
    said = lambda *a, **k: error_of(l.create, *a, **k)  # noqa: E731
    for more, quota, text in (
            ({"ResourceConfig": {"InstanceCount": 4}}, "Maximum number of instances per training job",
             "is 3 Instances, with current utilization of 0 Instances and a request delta of 4 Instances."),
            ({"StoppingCondition": {"MaxRuntimeInSeconds": 7201}}, "Longest run time for a training job",
             "is 7200 Seconds, with current utilization of 0 Seconds and a request delta of 7201 Seconds."),
            ({"ResourceConfig": {"VolumeSizeInGB": 51}}, "Size of EBS volume for a training job instance",
             "is 50 Gigabytes, with current utilization of 0 Gigabytes and a request delta of 51 Gigabytes.")):
        code, got, http = said("x", **more)
        same((code, http), ("ResourceLimitExceeded", 400))
        assert got.startswith("The account-level service limit '%s' %s" % (quota, text)), got
    l.create("a", "sleep 60", ResourceConfig={"InstanceCount": 3, "VolumeSizeInGB": 50},
             StoppingCondition={"MaxRuntimeInSeconds": 7200})
    l.create("b", "sleep 60", ResourceConfig={"InstanceType": "ml.r5.large", "InstanceCount": 3})
    code, got, _ = said("c")
    assert "'Number of instances across all training jobs' is 6 Instances, with current utilization of 6" in got, got


QUOTAS = {"quotas": {TYPE: 4, "ml.r5.large": 4}, "warm_quotas": {TYPE: 4}, "spot_quotas": {TYPE: 4}}
LIMITS = {**QUOTAS, "warm_quotas": {TYPE: 3}, "spot_quotas": {TYPE: 2}, "account_quotas": {
    "Number of instances across all training jobs": 6, "Maximum number of instances per training job": 3,
    "Longest run time for a training job": 7200, "Size of EBS volume for a training job instance": 50}}
run([(t, {**QUOTAS, **c}) for t, c in [
    (test_life__available_reused_in_use_and_each_jobs_own_keep_alive, {}),
    (test_start__is_cold_without_and_warm_with_a_pool, {"cold_start_seconds": 3, "warm_start_seconds": 0.05}),
    (test_match__every_field_counts, {}),
    (test_match__a_bare_job_does_not_take_the_pool_of_one_with_a_network, {}),
    (test_made__after_each_end_that_leaves_healthy_instances, {}),
    (test_not_made__after_ends_that_do_not, {}),
    (test_not_made__for_a_job_stopped_before_its_cluster_was_up, {"cold_start_seconds": 5}),
    (test_warm_quota__is_counted_in_instances_kept, {"warm_quotas": {TYPE: 3}}),
    (test_full_quota__slots_are_moved_not_added, {}),
    (test_total_quota__counts_pools_and_moves_them_too,
     {"account_quotas": {"Number of instances across all training jobs": 2}}),
    (test_refused_create__leaves_the_pool_alone, {}),
    (test_expiry__ends_it_in_the_instant_it_is_due, {}),
    (test_cache__is_handed_on_with_the_instances_and_goes_with_them, {}),
    (test_update__zero_ends_it_and_more_extends_it, {}),
    (test_update__is_refused_where_there_is_no_pool, {}),
    (test_keep_alive__is_bounded_by_the_account, {"account_quotas": {"Keep alive period for cluster reuse": 7200}}),
    (test_chain__of_one_cluster_ends_with_its_life, {"cluster_life_seconds": 5}),
    (test_list__shows_and_filters_by_pool, {}),
    (test_stale_describe__still_shows_the_pool_that_was_taken, {}),
    (test_restart__pools_survive_and_are_taken_once, {}),
    (test_restart__a_pool_that_fell_due_meanwhile_ended_when_it_was_due, {}),
    (test_invoice__is_right_to_the_second, {}),
    (test_reset__forgets_pools, {}),
    (test_quotas__of_pools_spot_and_account_are_served, LIMITS),
    (test_account_quotas__are_enforced_in_aws_words, LIMITS),
]])
