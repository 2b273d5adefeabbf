#!/usr/bin/env python3
"""Every fault that drover-local can inject, seen from outside: the client's error, the effect, the wire log.
All tests look for the damage, so a fault without effect would fail its test. The queue of events, which faults spoil, is tried here, too.
"""
import hashlib
import http.client
import json
import math
import os
import sys
import threading
import time
import urllib.error

import botocore.exceptions

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import wait_for
from kit.local import call, error_of, lost, run, same, send, sign

CREATE = {"operation": "CreateTrainingJob"}


def left(l):
    return [f["times"] for f in l.get("faults")["faults"]]


def one(l, name, operation="CreateTrainingJob"):
    found = l.wire(operation, name)
    same(len(found), 1)
    return found[0]


def test_throttle_500_503_access_denied__refuse_without_effect(l):
    for kind, code, status in (("throttle", "ThrottlingException", 400), ("error_500", "InternalFailure", 500),
                               ("error_503", "ServiceUnavailable", 503), ("access_denied", "AccessDeniedException", 400)):
        l.faults({**CREATE, "kind": kind})
        got = error_of(l.create, "r-" + kind.replace("_", "-"))
        same((got[0], got[2]), (code, status))
        same(left(l), [0])
        w = one(l, "r-" + kind.replace("_", "-"))
        same((w["error"], w["status"], w["accepted"], w["replied"], w["signed"]), (code, status, False, True, True))
    same(l.get("jobs")["jobs"], [])
    l.faults({"kind": "throttle", "operation": "PutObject"}, {"kind": "access_denied", "operation": "GetObject"})
    same(error_of(l.s3.put_object, Bucket="bkt", Key="a", Body=b"1")[::2], ("SlowDown", 503))
    same(error_of(l.s3.get_object, Bucket="bkt", Key="a")[::2], ("AccessDenied", 403))


def test_drop_before__nothing_happened(l):
    l.faults({**CREATE, "kind": "drop_before"})
    lost(l.create, "d")
    same(l.job("d"), None)
    w = one(l, "d")
    same((w["status"], w["accepted"], w["replied"]), (None, False, False))
    l.create("d")


def test_drop_after__it_happened(l):
    l.faults({**CREATE, "kind": "drop_after"})
    lost(l.create, "d")
    same(l.job("d")["name"], "d")
    w = one(l, "d")
    same((w["status"], w["accepted"], w["replied"]), (None, True, False))
    same(error_of(l.create, "d")[0], "ResourceInUse")
    l.faults({"kind": "drop_after", "operation": "PutObject"})
    lost(l.s3.put_object, Bucket="bkt", Key="x", Body=b"1")
    l.s3.head_object(Bucket="bkt", Key="x")


def test_effect_delayed__it_happens_later(l):
    l.faults({**CREATE, "kind": "effect_delayed", "delay_seconds": 4})
    began = time.time()
    lost(l.create, "late")
    same(l.job("late"), None)
    same(error_of(l.describe, "late")[1], "Requested resource not found.")
    job = wait_for(lambda: l.job("late"), 30, "the effect")
    assert job["created"] - began >= 4
    w = wait_for(lambda: [q for q in l.wire("CreateTrainingJob", "late") if q["accepted"]], 5, "its line")
    same((len(l.wire("CreateTrainingJob", "late")), w[0]["replied"], w[0]["signed"]), (1, False, True))
    assert w[0]["time"] < began + 1.9  # when it arrived, not when it took effect


def test_effect_delayed__a_second_send_in_between_wins_the_name(l):
    l.faults({**CREATE, "kind": "effect_delayed", "delay_seconds": 0.3})
    lost(l.create, "twice")
    l.create("twice")
    wait_for(lambda: any(q["error"] == "ResourceInUse" for q in l.wire("CreateTrainingJob", "twice")), 5, "the late one")
    same(sum(q["accepted"] for q in l.wire("CreateTrainingJob", "twice")), 1)
    same(len(l.get("jobs")["jobs"]), 1)


def test_quota_first__hides_that_the_name_is_taken(l):
    [l.create("f-%d" % i, "sleep 20") for i in range(4)]
    l.faults({**CREATE, "kind": "quota_first"})
    same(error_of(l.create, "f-0")[0], "ResourceLimitExceeded")
    same(error_of(l.create, "f-0")[0], "ResourceInUse")
    l.post("reset")
    l.create("g")
    l.faults({**CREATE, "kind": "quota_first"})
    same(error_of(l.create, "g")[0], "ResourceInUse")  # there is room: the quota says nothing


def test_quota_refuse__refuses_with_room(l):
    l.faults({**CREATE, "kind": "quota_refuse"})
    code, text, _ = error_of(l.create, "q")
    same(code, "ResourceLimitExceeded")
    assert "is 4 Instances, with current utilization of 0 Instances and a request delta of 1 Instances" in text
    same(l.job("q"), None)


def test_reply_lost_then_quota_throttle_access__one_job(l):
    l.faults({**CREATE, "kind": "drop_after"}, {**CREATE, "kind": "quota_refuse", "after": 1},
             {**CREATE, "kind": "throttle", "after": 2}, {**CREATE, "kind": "access_denied", "after": 2})
    lost(l.create, "u")
    for want in ("ResourceLimitExceeded", "ThrottlingException", "AccessDeniedException", "ResourceInUse"):
        same(error_of(l.create, "u")[0], want)
    same([q["accepted"] for q in l.wire("CreateTrainingJob", "u")], [True] + [False] * 4)


def test_capacity__fails_before_the_start_and_is_free(l):
    l.faults({**CREATE, "kind": "capacity"})
    d = l.run("c")
    same(d["FailureReason"], "CapacityError: Unable to provision requested ML compute capacity. Please retry using a "
                             "different ML instance type.")
    assert "TrainingStartTime" not in d and "BillableTimeInSeconds" not in d
    same([t["Status"] for t in d["SecondaryStatusTransitions"]], ["Starting", "Failed"])
    same(l.get("invoice")["total"], {"seconds": 0, "micro_usd": 0})


def test_capacity__of_one_type_in_one_zone(l):
    l.faults({**CREATE, "kind": "capacity", "instance_type": "ml.c5.xlarge", "subnet": "subnet-0a", "times": 9})
    zones = lambda *names: {"VpcConfig": {"Subnets": list(names), "SecurityGroupIds": ["sg-0123456789abcdef0"]}}  # noqa: E731
    other = {"ResourceConfig": {"InstanceType": "ml.c5.xlarge"}}
    asked = [{}, other, zones("subnet-0a"), {**other, **zones("subnet-0b")}, {**other, **zones("subnet-0a", "subnet-0b")}, {**other, **zones("subnet-0a")}]
    same([l.run("c-%d" % i, **more)["TrainingJobStatus"] for i, more in enumerate(asked)], ["Completed"] * 5 + ["Failed"])
    same([(f["instance_type"], f["subnet"], f["hits"]) for f in l.get("faults")["faults"]], [("ml.c5.xlarge", "subnet-0a", 1)])


def test_internal_error__cuts_a_running_job_and_is_billed(l):
    l.faults({**CREATE, "kind": "internal_error", "delay_seconds": 0.2})
    d = l.run("i", "sleep 60")
    paid = math.ceil(l.job("i")["ended"] - l.job("i")["started"])
    assert paid < 50, "it was not cut"
    same(d["FailureReason"], "InternalServerError: We encountered an internal error. Please try again.")
    same((d["TrainingJobStatus"], d["BillableTimeInSeconds"]), ("Failed", paid))
    same(l.get("invoice")["total"]["seconds"], paid)
    l.faults({**CREATE, "kind": "internal_error"})
    assert l.run("quick", "true")["FailureReason"].startswith("InternalServerError")  # quicker than the fault


def test_job_failure__says_what_was_asked(l):
    l.faults({**CREATE, "kind": "job_failure", "reason": "ClientError: No space left on device", "name_contains": "-7-"})
    same(l.run("a-6-b")["TrainingJobStatus"], "Completed")
    same(l.run("a-7-b")["FailureReason"], "ClientError: No space left on device")


def test_ghost_job__appears_beside_or_in_the_place_of_ours(l):
    l.faults({**CREATE, "kind": "ghost_job", "delay_seconds": 0.1})
    l.create("c-1-aabbccdd", Environment={"DROVER_REQUEST": "x"})
    names = [j["name"] for j in l.get("jobs")["jobs"]]
    same(len(names), 2)
    ghost = [n for n in names if n != "c-1-aabbccdd"][0]
    assert ghost.startswith("c-1-") and len(ghost) == len("c-1-aabbccdd"), ghost
    d = l.ended(ghost)
    same(d["Environment"], {"GHOST": "1"})
    l.ended("c-1-aabbccdd")
    same([x["name"] for x in l.get("invoice")["lines"]], ["c-1-aabbccdd"])
    l.faults({**CREATE, "kind": "ghost_job", "same_name": True})
    same(error_of(l.create, "c-2-00000000", Environment={"DROVER_REQUEST": "x"})[0], "ResourceInUse")
    assert "DROVER_REQUEST" not in l.describe("c-2-00000000")["Environment"]


def test_stale_describe__shows_the_past(l):
    l.run("s")
    l.faults({"operation": "DescribeTrainingJob", "kind": "stale_describe", "delay_seconds": 60, "times": 2})
    for _ in range(2):
        d = l.describe("s")
        same((d["TrainingJobStatus"], d["SecondaryStatus"]), ("InProgress", "Starting"))
        assert "TrainingEndTime" not in d and "BillableTimeInSeconds" not in d and "TrainingStartTime" not in d
        assert "EndTime" not in d["SecondaryStatusTransitions"][-1]
    same(l.describe("s")["TrainingJobStatus"], "Completed")


def test_list_omits_and_unknown_status(l):
    l.run("p-1", Environment={"A": "1"})
    l.run("p-2")
    names = lambda: [s["TrainingJobName"] for s in l.sm.list_training_jobs(NameContains="p-")["TrainingJobSummaries"]]  # noqa: E731
    l.faults({"operation": "ListTrainingJobs", "kind": "list_omits", "name_contains": "p-1"})
    same(names(), ["p-2"])
    same(names(), ["p-1", "p-2"])
    l.faults({"operation": "DescribeTrainingJob", "kind": "unknown_status"})
    same(l.describe("p-1")["TrainingJobStatus"], "Hibernating")
    same(l.describe("p-1")["TrainingJobStatus"], "Completed")
    l.faults({"operation": "DescribeTrainingJob", "kind": "no_environment"})
    same(["Environment" in l.describe("p-1") for _ in range(2)], [False, True])


def test_bill_late__comes_some_time_after_the_end(l):
    l.run("b")
    l.faults({"operation": "DescribeTrainingJob", "kind": "bill_late", "probability": 1, "delay_seconds": 86400})
    for _ in range(2):
        d = l.describe("b")
        same((d["TrainingJobStatus"], "TrainingEndTime" in d, "BillableTimeInSeconds" in d), ("Completed", True, False))
    same(l.get("invoice")["total"]["seconds"] > 0, True)
    l.faults({"operation": "DescribeTrainingJob", "kind": "bill_late", "probability": 1, "delay_seconds": 0})
    same("BillableTimeInSeconds" in l.describe("b"), True)  # its time is over


def test_looping_next_token__never_ends(l):
    l.run("p-1")
    l.faults({"operation": "ListTrainingJobs", "kind": "looping_next_token", "times": 3})
    token = l.sm.list_training_jobs(NameContains="p-")["NextToken"]
    same(len(l.sm.list_training_jobs(NameContains="p-").get("NextToken", "")) > 0, True)
    page = l.sm.list_training_jobs(NameContains="p", NextToken=token)
    same((page["TrainingJobSummaries"], page.get("NextToken")), ([], None))
    l.run("p-2")
    l.faults({"operation": "ListTrainingJobs", "kind": "looping_next_token", "times": 3})
    token = l.sm.list_training_jobs(NameContains="p-", MaxResults=1)["NextToken"]
    again = l.sm.list_training_jobs(NameContains="p-", MaxResults=1, NextToken=token)
    same(again["NextToken"], token)


def test_half_body_wrong_json_html__the_effect_is_there(l):
    for kind in ("half_body", "wrong_json", "html_error"):
        l.faults({**CREATE, "kind": kind})
        name = kind.replace("_", "-")
        body = json.dumps(l.request(name)).encode()
        h = sign(l.url, "sagemaker", "POST", body=body, headers={"X-Amz-Target": "SageMaker.CreateTrainingJob"})
        try:
            status, headers, text = send(l.url, "POST", "/", h, body)
        except http.client.IncompleteRead as e:
            status, headers, text = 200, {}, None
            assert e.partial.startswith(b'{"TrainingJobArn"') and e.expected > 0
        same(kind == "half_body", text is None)
        if kind == "html_error":
            same((status, headers["Content-Type"]), (502, "text/html"))
        elif kind == "wrong_json":
            same((status, text[:17]), (200, b'{"TrainingJobArn"'))
            try:
                json.loads(text)
                raise AssertionError("good JSON")
            except ValueError:
                pass
        same(l.job(name)["name"], name)
        w = one(l, name)
        same((w["accepted"], w["replied"]), (True, kind != "half_body"))
        l.ended(name)


def test_half_body__of_an_object_and_errors_under_200(l):
    l.s3.put_object(Bucket="bkt", Key="o", Body=b"x" * 100000)
    l.faults({"kind": "half_body", "operation": "GetObject"}, {"kind": "error_200", "operation": "PutObject"})
    try:
        send(l.url, "GET", "/bkt/o", sign(l.url, "s3", "GET", "/bkt/o"))
        raise AssertionError("a whole body")
    except http.client.IncompleteRead as e:
        same((e.partial, e.expected), (b"x" * 50000, 50000))
    h = sign(l.url, "s3", "PUT", "/bkt/p", body=b"1")
    status, _, text = send(l.url, "PUT", "/bkt/p", h, b"1")
    same((status, b"<Code>InternalError</Code>" in text), (200, True))
    same(error_of(l.s3.head_object, Bucket="bkt", Key="p")[2], 404)


def test_slow__answers_late_and_holds_nobody_up(l):
    l.faults({**CREATE, "kind": "slow", "delay_seconds": 5})
    began = time.monotonic()
    took = []
    t = threading.Thread(target=lambda: (l.create("slow"), took.append(time.monotonic() - began)))
    t.start()
    wait_for(lambda: l.job("slow"), 30, "the effect")
    l.describe("slow")
    assert not took, "others had to wait"
    t.join()
    assert took[0] >= 5, took


QUEUES = {"queues": {"events": "aws.sagemaker", "plain": ""}}


def sqs(l, operation, queue="events", **body):
    if operation != "GetQueueUrl":
        body["QueueUrl"] = f"{l.url}/123456789012/{queue}"
    status, answer = call(l, operation, body, "sqs", "AmazonSQS.")
    return answer if status == 200 else (status, answer["__type"].split("#")[1])


def messages(l, queue="events", **body):
    return sqs(l, "ReceiveMessage", queue, MaxNumberOfMessages=10, **body).get("Messages", [])


def told(l, job, seconds=1):
    """Secondary statuses of the job's events, in order of arrival, until nothing comes any more."""
    found = []
    while batch := messages(l, WaitTimeSeconds=seconds):
        found += [json.loads(m["Body"]) for m in batch]
        sqs(l, "DeleteMessageBatch", Entries=[{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(batch)])
    return [e["detail"]["SecondaryStatus"] for e in found if e["detail"]["TrainingJobName"] == job], found


def test_queue__visibility_receipts_and_long_polls(l):
    same(sqs(l, "GetQueueUrl", QueueName="plain")["QueueUrl"], l.url + "/123456789012/plain")
    same(sqs(l, "ReceiveMessage", "none"), (400, "QueueDoesNotExist"))
    same(sqs(l, "ReceiveMessage", "plain", MaxNumberOfMessages=11), (400, "InvalidParameterValueException"))
    same(sqs(l, "DeleteMessage", "plain", ReceiptHandle="x"), (400, "ReceiptHandleIsInvalid"))
    body = "b\u00e4r"
    sent = sqs(l, "SendMessage", "plain", MessageBody=body)
    same(sent["MD5OfMessageBody"], hashlib.md5(body.encode()).hexdigest())
    first = messages(l, "plain", VisibilityTimeout=1)
    same([(m["Body"], m["MessageId"], m["MD5OfBody"]) for m in first], [(body, sent["MessageId"], sent["MD5OfMessageBody"])])
    same(sqs(l, "GetQueueAttributes", "plain", AttributeNames=["All"])["Attributes"]["ApproximateNumberOfMessagesNotVisible"], "1")
    again = messages(l, "plain", WaitTimeSeconds=20)  # it becomes visible meanwhile
    same([m["Attributes"]["ApproximateReceiveCount"] for m in again], ["2"])
    sqs(l, "DeleteMessage", "plain", ReceiptHandle=first[0]["ReceiptHandle"])  # an old receipt
    same(sqs(l, "GetQueueAttributes", "plain", AttributeNames=["All"])["Attributes"]["ApproximateNumberOfMessagesNotVisible"], "1")
    done = sqs(l, "DeleteMessageBatch", "plain", Entries=[{"Id": "a", "ReceiptHandle": again[0]["ReceiptHandle"]}, {"Id": "b", "ReceiptHandle": "x"}])
    same(([d["Id"] for d in done["Successful"]], [(d["Id"], d["Code"]) for d in done["Failed"]]), (["a"], [("b", "ReceiptHandleIsInvalid")]))
    same(messages(l, "plain"), [])
    timer = threading.Timer(0.5, lambda: sqs(l, "SendMessage", "plain", MessageBody="late"))
    timer.start()
    same([m["Body"] for m in messages(l, "plain", WaitTimeSeconds=20)], ["late"])
    timer.join()


def test_queue__a_job_tells_each_of_its_steps(l):
    l.run("j")
    d = l.describe("j")
    seen, events = told(l, "j")
    same(seen, ["Starting", "Downloading", "Training", "Uploading", "Completed"])
    end = events[-1]
    same((end["source"], end["detail-type"], end["resources"], end["detail"]["TrainingJobStatus"]),
         ("aws.sagemaker", "SageMaker Training Job State Change", [d["TrainingJobArn"]], "Completed"))
    assert abs(int(end["detail"]["LastModifiedTime"]) - d["LastModifiedTime"].timestamp() * 1000) < 2
    same(messages(l, "plain"), [])


def test_event_faults__lost_twice_late_reordered(l):
    l.faults({"kind": "event_lost", "name_contains": "lost", "times": 9}, {"kind": "event_twice", "name_contains": "twice", "times": 9},
             {"kind": "event_late", "name_contains": "late", "times": 1, "delay_seconds": 3}, {"kind": "event_reordered", "name_contains": "mixed", "times": 1})
    for name in ("lost", "twice", "late", "mixed"):
        l.run(name)
    seen = {name: [] for name in ("lost", "twice", "late", "mixed")}
    for e in told(l, "", 5)[1]:
        seen[e["detail"]["TrainingJobName"]].append(e["detail"]["SecondaryStatus"])
    steps = ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    same(seen["lost"], [])
    same(seen["twice"], [s for s in steps for _ in (1, 2)])
    same((seen["mixed"][:2], sorted(seen["mixed"])), (["Downloading", "Starting"], sorted(steps)))
    same(seen["late"], steps[1:] + steps[:1])


def test_counts__times_after_append_and_replace(l):
    l.faults({**CREATE, "kind": "throttle", "times": 2, "after": 1, "name_contains": "hit"})
    codes = []
    for name in ("hit-1", "miss-1", "hit-2", "hit-3", "hit-4"):
        try:
            l.create(name)
            codes.append("ok")
        except botocore.exceptions.ClientError as e:
            codes.append(e.response["Error"]["Code"])
    same(codes, ["ok", "ok", "ThrottlingException", "ThrottlingException", "ok"])
    f = l.get("faults")["faults"][0]
    same((f["times"], f["hits"], f["after"]), (0, 2, 0))
    same(len(l.faults({"kind": "slow"}, append=True)["faults"]), 2)
    same(len(l.faults()["faults"]), 0)


def test_probability__is_drawn_from_its_seed(l):
    def draw(seed):
        l.faults({"operation": "DescribeTrainingJob", "kind": "throttle", "probability": 0.3, "seed": seed})
        sm = l.sm
        return [error_of(sm.describe_training_job, TrainingJobName="x")[0] == "ThrottlingException" for _ in range(200)]
    a, b, c = draw(7), draw(7), draw(8)
    same(a, b)
    assert a != c and 30 < sum(a) < 90, sum(a)


def test_bad_faults__are_refused_and_change_nothing(l):
    l.faults({"kind": "slow"})
    for bad in ({"kind": "nonsense"}, {}, {"kind": "slow", "tims": 1}, {"kind": "slow", "times": -2},
                {"kind": "slow", "probability": 1.5}, {"kind": "slow", "delay_seconds": -1}, "slow"):
        try:
            l.faults(bad)
            raise AssertionError("taken: %r" % (bad,))
        except urllib.error.HTTPError as e:
            same(e.code, 400)
    same([f["kind"] for f in l.get("faults")["faults"]], ["slow"])


def test_config_faults__hold_from_the_start(l):
    same(error_of(l.create, "x")[0], "ThrottlingException")
    l.create("x")


run([(t, c) for t, c in [
    (test_throttle_500_503_access_denied__refuse_without_effect, {}),
    (test_drop_before__nothing_happened, {}),
    (test_drop_after__it_happened, {}),
    (test_effect_delayed__it_happens_later, {}),
    (test_effect_delayed__a_second_send_in_between_wins_the_name, {}),
    (test_quota_first__hides_that_the_name_is_taken, {}),
    (test_quota_refuse__refuses_with_room, {}),
    (test_reply_lost_then_quota_throttle_access__one_job, {}),
    (test_capacity__fails_before_the_start_and_is_free, {}),
    (test_capacity__of_one_type_in_one_zone, {"quotas": {"ml.m5.large": 4, "ml.c5.xlarge": 4}, "prices": {"ml.m5.large": "0.115", "ml.c5.xlarge": "0.1"}}),
    (test_internal_error__cuts_a_running_job_and_is_billed, {}),
    (test_job_failure__says_what_was_asked, {}),
    (test_ghost_job__appears_beside_or_in_the_place_of_ours, {}),
    (test_stale_describe__shows_the_past, {}),
    (test_list_omits_and_unknown_status, {}),
    (test_bill_late__comes_some_time_after_the_end, {}),
    (test_looping_next_token__never_ends, {}),
    (test_half_body_wrong_json_html__the_effect_is_there, {}),
    (test_half_body__of_an_object_and_errors_under_200, {}),
    (test_slow__answers_late_and_holds_nobody_up, {}),
    (test_queue__visibility_receipts_and_long_polls, QUEUES),
    (test_queue__a_job_tells_each_of_its_steps, QUEUES),
    (test_event_faults__lost_twice_late_reordered, QUEUES),
    (test_counts__times_after_append_and_replace, {}),
    (test_probability__is_drawn_from_its_seed, {}),
    (test_bad_faults__are_refused_and_change_nothing, {}),
    (test_config_faults__hold_from_the_start, {"faults": [{**CREATE, "kind": "throttle"}]}),
]])
