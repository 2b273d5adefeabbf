#!/usr/bin/env python3
"""What drover-local tells of jobs besides List and Describe, through botocore: Search with each operator, last values of metrics, groups of
logs, filter patterns, pages of a log backwards. Real processes, real signatures.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.local import GROUP, error_of, run, same


def test_search__finds_jobs_by_what_describe_shows_and_by_tags(l):
    inputs = [{"ChannelName": c, "InputMode": m, "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://bkt/" + c}}} for c, m in (("a", "File"), ("b", "FastFile"))]
    for key in "ab":
        l.s3.put_object(Bucket="bkt", Key=key + "/x", Body=b"x")
    for i in range(5):
        l.run("f-%d" % i, "exit %d" % (i == 3), HyperParameters={"batch.size": str(i), "kind": "small"}, Environment={"RUN": "r%d" % (i % 2)},
              Tags=[{"Key": "run.id", "Value": "odd" if i % 2 else "even"}, {"Key": "n%d" % i, "Value": "x"}], **({"InputDataConfig": inputs} if i == 4 else {}))
    l.create("g", "sleep 60")
    find = lambda *f, **q: [r["TrainingJob"]["TrainingJobName"] for r in l.sm.search(Resource="TrainingJob", **({"SearchExpression": {"Filters": list(f)}} if f else {}), SortBy="TrainingJobName", SortOrder="Ascending", **{"MaxResults": 100, **q})["Results"]]  # noqa: E731
    f = lambda name, op=None, value=None: {k: v for k, v in (("Name", name), ("Operator", op), ("Value", value)) if v is not None}  # noqa: E731
    jobs = ["f-%d" % i for i in range(5)]
    same(find(), jobs + ["g"])
    same(find(f("Tags.run.id", None, "odd")), ["f-1", "f-3"])
    same(find(f("Tags.run.id", "NotEquals", "odd")), ["f-0", "f-2", "f-4", "g"])
    same(find(f("Tags.run.id", "Exists"), f("TrainingJobStatus", "Equals", "Completed")), ["f-0", "f-1", "f-2", "f-4"])
    same(find(f("Tags.run.id", "NotExists")), ["g"])
    same(find(f("TrainingJobName", "Contains", "f-"), f("HyperParameters.batch.size", "In", "0, 3,9")), ["f-0", "f-3"])
    same(find(f("ResourceConfig.InstanceCount", "Equals", "1"), f("Environment.RUN", "Equals", "r1")), ["f-1", "f-3"])
    same(find(f("EnableManagedSpotTraining", "Equals", "true")), [])
    same(find(f("StoppingCondition.MaxRuntimeInSeconds", "GreaterThan", "600")), [])
    same(find(f("StoppingCondition.MaxRuntimeInSeconds", "GreaterThanOrEqualTo", "600"), f("BillableTimeInSeconds", "LessThan", "1000")), jobs)
    second = l.describe("f-1")["CreationTime"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    same(find(f("CreationTime", "LessThanOrEqualTo", second)), ["f-0", "f-1"])
    same(find(f("CreationTime", "GreaterThan", second), f("TrainingEndTime", "Exists")), ["f-2", "f-3", "f-4"])
    expression = lambda e: [r["TrainingJob"]["TrainingJobName"] for r in l.sm.search(Resource="TrainingJob", SearchExpression=e, SortBy="CreationTime", SortOrder="Ascending")["Results"]]  # noqa: E731
    same(expression({"Operator": "Or", "Filters": [f("TrainingJobStatus", None, "Failed")], "SubExpressions": [{"Filters": [f("Environment.RUN", None, "r0"), f("HyperParameters.kind", None, "small"),
         f("Tags.n2", "Exists")]}]}), ["f-2", "f-3"])
    both = lambda c, m: {"NestedFilters": [{"NestedPropertyName": "InputDataConfig", "Filters": [f("InputDataConfig.ChannelName", None, c), f("InputDataConfig.InputMode", None, m)]}]}  # noqa: E731
    same((expression(both("b", "FastFile")), expression(both("a", "FastFile"))), (["f-4"], []))  # of one channel, not of two
    same(find(f("InputDataConfig.DataSource.S3DataSource.S3Uri", None, "s3://bkt/b")), ["f-4"])
    job = l.sm.search(Resource="TrainingJob", SearchExpression={"Filters": [f("TrainingJobName", None, "f-3")]})["Results"][0]["TrainingJob"]
    described = l.describe("f-3")
    same({k: job[k] for k in described if k in job}, {k: described[k] for k in described if k in job})
    same(sorted(t["Key"] for t in job["Tags"]), ["n3", "run.id"])
    got, token = [], {}
    while token is not None:
        page = l.sm.search(Resource="TrainingJob", SortBy="BillableTimeInSeconds", MaxResults=2, **token)
        got += [r["TrainingJob"]["TrainingJobName"] for r in page["Results"]]
        token = {"NextToken": page["NextToken"]} if "NextToken" in page else None
    same((sorted(got), got[-1]), (jobs + ["g"], "g"))  # what has no such property comes last
    raw = l.client("sagemaker", parameter_validation=False)
    for q in ({"SearchExpression": {"Filters": []}}, {"SearchExpression": {"Filters": [f("A", None, "b")] * 21}}, {"SearchExpression": {"Filters": [f("A", "Like", "b")]}},
              {"SearchExpression": {"Filters": [f("TrainingJobName", "GreaterThan", "3")]}}, {"SearchExpression": {"Filters": [f("A", "Exists", "b")]}},
              {"SearchExpression": {"Filters": [f("A", "Equals")]}}, {"SearchExpression": {"Operator": "Not"}}, {"SearchExpression": {"NestedFilters": [{"NestedPropertyName": "X"}]}},
              {"MaxResults": 101}, {"SortOrder": "Up"}, {"NextToken": "x"}, {"Resource": "Endpoint"}):
        same((q, error_of(raw.search, **{"Resource": "TrainingJob", **q})[0]), (q, "ValidationException"))


def test_final_metrics__are_the_last_values_in_what_the_hosts_wrote(l):
    definitions = {"MetricDefinitions": [{"Name": "loss", "Regex": r"loss=([0-9.eE+-]+)"}, {"Name": "top", "Regex": r"acc=(\S+)"}, {"Name": "never", "Regex": "absent=([0-9]+)"}]}
    l.create("steps", "for i in 3 2 1; do echo step loss=$i.5e-1 acc=0.$i; done; echo acc=none; sleep 2", AlgorithmSpecification=definitions)
    l.running("steps")
    assert "FinalMetricDataList" not in l.describe("steps")
    d = l.ended("steps")
    same([(m["MetricName"], m["Value"]) for m in d["FinalMetricDataList"]], [("loss", 0.15), ("top", 0.1)])
    assert all(d["TrainingStartTime"].timestamp() - 1 <= m["Timestamp"].timestamp() <= d["TrainingEndTime"].timestamp() for m in d["FinalMetricDataList"])
    assert "FinalMetricDataList" not in l.run("silent", AlgorithmSpecification=definitions) and "FinalMetricDataList" not in l.run("undefined", "echo loss=1")
    l.run("long", "echo loss=7; yes filler filler filler | head -20000; echo loss=2", AlgorithmSpecification=definitions)
    same([m["Value"] for m in l.describe("long")["FinalMetricDataList"]], [2.0])
    assert l.run("failed", "echo loss=9; exit 1", AlgorithmSpecification=definitions)["FinalMetricDataList"][0]["Value"] == 9.0


def test_log_groups__there_is_one_once_a_job_has_run(l):
    logs = l.client("logs")
    same(logs.describe_log_groups()["logGroups"], [])
    l.run("first")
    group = logs.describe_log_groups(logGroupNamePrefix="/aws/sage")["logGroups"][0]
    same((group["logGroupName"], group["arn"]), (GROUP, "arn:aws:logs:us-east-1:123456789012:log-group:%s:*" % GROUP))
    same(logs.describe_log_groups(logGroupNamePattern="Training")["logGroups"][0]["logGroupName"], GROUP)
    same((logs.describe_log_groups(logGroupNamePrefix="/other")["logGroups"], logs.describe_log_groups(logGroupNamePattern="Other")["logGroups"]), ([], []))
    same(error_of(logs.describe_log_groups, logGroupNamePrefix="/a", logGroupNamePattern="bcd")[0], "InvalidParameterException")


def test_filter__takes_terms_exclusions_choices_phrases_and_expressions(l):
    logs = l.client("logs")
    for name in ("one", "two"):
        l.run(name, "echo ERROR disk full; echo WARN disk slow; echo 'ERROR net -x'; echo all well; echo took 17 s")
    streams = sorted(s["logStreamName"] for s in logs.describe_log_streams(logGroupName=GROUP)["logStreams"])
    find = lambda pattern: [e["message"] for e in logs.filter_log_events(logGroupName=GROUP, logStreamNames=streams[:1], filterPattern=pattern)["events"]]  # noqa: E731
    for pattern, want in (("", 5), ("ERROR", ["ERROR disk full", "ERROR net -x"]), ("disk ERROR", ["ERROR disk full"]), ("disk -slow", ["ERROR disk full"]),
                          ("?slow ?well", ["WARN disk slow", "all well"]), ("disk ?well", ["ERROR disk full", "WARN disk slow"]), ("?disk ?well -full", ["WARN disk slow", "all well"]),
                          ('"net -x"', ["ERROR net -x"]), ("error", []), (r"%took [0-9]+ s%", ["took 17 s"]), ("-ERROR -WARN", ["all well", "took 17 s"])):
        got = find(pattern)
        same((pattern, got if isinstance(want, list) else len(got)), (pattern, want))
    same([e["logStreamName"] for e in logs.filter_log_events(logGroupName=GROUP, logStreamNames=streams, filterPattern="well")["events"]], streams)
    for wrong in ({"filterPattern": '"open'}, {"filterPattern": "{ $.a = 1 }"}, {"filterPattern": "?"}, {"filterPattern": "%(%"}, {"logStreamNamePrefix": "one/"}):
        same((wrong, error_of(logs.filter_log_events, logGroupName=GROUP, logStreamNames=streams, **wrong)[0]), (wrong, "InvalidParameterException"))


def test_log__is_read_backwards_page_by_page(l):
    logs = l.client("logs")
    l.run("count", "for i in $(seq 95); do echo $i; done")
    stream = logs.describe_log_streams(logGroupName=GROUP)["logStreams"][0]["logStreamName"]
    got, q = [], {}
    while True:
        page = logs.get_log_events(logGroupName=GROUP, logStreamName=stream, limit=20, **q)
        got = [int(e["message"]) for e in page["events"]] + got
        if page["nextBackwardToken"] == q.get("nextToken"):
            break
        q = {"nextToken": page["nextBackwardToken"]}
    same(got, list(range(1, 96)))
    forward = logs.get_log_events(logGroupName=GROUP, logStreamName=stream, limit=20, nextToken=page["nextForwardToken"])
    same([int(e["message"]) for e in forward["events"]], list(range(1, 21)))


run([
    (test_search__finds_jobs_by_what_describe_shows_and_by_tags, {}),
    (test_final_metrics__are_the_last_values_in_what_the_hosts_wrote, {}),
    (test_log_groups__there_is_one_once_a_job_has_run, {}),
    (test_filter__takes_terms_exclusions_choices_phrases_and_expressions, {}),
    (test_log__is_read_backwards_page_by_page, {}),
])
