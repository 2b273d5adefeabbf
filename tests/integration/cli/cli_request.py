#!/usr/bin/python3
"""The CreateTrainingJob requests of the example campaigns. Aim: each stage of each example gives the request that stands in
tests/vectors/requests, SageMaker's own service model accepts it, and `drover request` shows the same of a campaign as of its
file. Method: `drover request --dry` against the golden files and against the validator of Debian's botocore; the API with a
leader played in SQL. `cli_request.py --update` writes the golden files.
"""
import difflib
import json
import os
import re
import subprocess
import sys

import botocore.session
import botocore.validate

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import BIN, TOP
from kit.api import Api, leader_fails, leader_takes, main, spec

EXAMPLES = f"{TOP}/deploy/examples"
GOLDEN = f"{TOP}/tests/vectors/requests"
# Fields of CreateTrainingJob that are newer than Debian's botocore.
NEWER = {"InfraCheckConfig": "EnableInfraCheck", "RemoteDebugConfig": "EnableRemoteDebug", "SessionChainingConfig": "EnableSessionTagChaining"}
NEWER_OUTPUT = {"CompressionType": ("GZIP", "NONE")}

ENV = {"AWS_REGION": "us-east-1", "DROVER_WORKER_IMAGE": "", "DROVER_ROLE_ARN": "", "DROVER_BUCKET": ""}


def dry(*args, **env):
    return run_drover(["request", "--dry", *args, "-o", "json"], env)


def run_drover(args, env):
    e = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "DROVER_"))}
    return subprocess.run([BIN + "/drover", *args], capture_output=True, text=True, env={**e, "LC_ALL": "C.UTF-8", **ENV, **env}, check=False)


def examples():
    """(example, stage) of every example that is not meant to be wrong."""
    for name in sorted(os.listdir(EXAMPLES)):
        if name.endswith(".yaml") and name != "broken.yaml":
            told = re.search(r"name one of: (.*)", dry(f"{EXAMPLES}/{name}", "none-of-them").stderr)  # rows of a matrix too
            for stage in told.group(1).split(", ") if told else ["no answer"]:
                yield name[:-5], stage.strip()


def faults_of(shape, request):
    """What SageMaker's service model has against a request, newer fields taken out after a check of their own."""
    r = json.loads(json.dumps(request))
    wrong = []
    for field, member in NEWER.items():
        value = r.pop(field, None)
        if value is not None and value != {member: True}:
            wrong.append(f"{field} is {value}")
    compression = r["OutputDataConfig"].pop("CompressionType", "GZIP")
    plan = r["ResourceConfig"].pop("TrainingPlanArn", None)
    if compression not in NEWER_OUTPUT["CompressionType"] or (plan is not None and ":training-plan/" not in plan):
        wrong.append(f"{compression} {plan}")
    report = botocore.validate.ParamValidator().validate(r, shape)
    return wrong + ([report.generate_report()] if report.has_errors() else []) + patterns(shape, r, "")


def patterns(shape, value, path):
    """botocore's validator knows types and lengths; enums and patterns are looked at here."""
    if shape.type_name == "structure":
        return [w for k, v in value.items() for w in patterns(shape.members[k], v, path + "." + k)]
    if shape.type_name == "list":
        return [w for v in value for w in patterns(shape.member, v, path)]
    if shape.type_name == "map":
        return [w for k, v in value.items() for w in patterns(shape.key, k, path) + patterns(shape.value, v, path + "." + k)]
    wrong = []
    if shape.type_name == "string":
        if getattr(shape, "enum", None) and value not in shape.enum:
            wrong.append(f"{path}: {value} is none of the enum")
        pattern = shape.metadata.get("pattern")
        if pattern and "\\p{" not in pattern and not re.fullmatch(pattern, value, re.S):
            wrong.append(f"{path}: {value} is not {pattern}")
        if len(value) > shape.metadata.get("max", len(value)):
            wrong.append(f"{path}: longer than {shape.metadata['max']}")
    elif shape.type_name in ("integer", "long") and not shape.metadata.get("min", value) <= value <= shape.metadata.get("max", value):
        wrong.append(f"{path}: {value} is out of range")
    return wrong


def test_golden(t, shape, update):
    names, fields = set(), set()
    for example, stage in examples():
        r = dry(f"{EXAMPLES}/{example}.yaml", stage)
        t.ok(r.returncode == 0 and r.stderr == "", f"{example}: stage {stage} has a request", r.stderr)
        got = json.dumps(json.loads(r.stdout or "{}"), indent=1) + "\n"
        path = f"{GOLDEN}/{example}.{stage}.json"
        names.add(os.path.basename(path))
        if update:
            open(path, "w", encoding="utf-8").write(got)
        want = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        t.ok(got == want, f"{example}: {stage} as in tests/vectors/requests", "".join(difflib.unified_diff(want.splitlines(True), got.splitlines(True), "golden", "now")))
        request = json.loads(got)
        fields |= set(request)
        t.eq(faults_of(shape, request), [], f"{example}: SageMaker's model accepts {stage}")
    t.eq(names ^ set(os.listdir(GOLDEN)), set(), f"{len(names)} golden requests, each of a stage")
    unsent = set(shape.members) - fields - {"DebugRuleConfigurations", "ProfilerRuleConfigurations", "TensorBoardOutputConfig", "ExperimentConfig"}
    t.eq(unsent, set(), f"the examples have every field drover knows ({len(fields)})")


def test_judge(t, shape):
    """The validator finds what is wrong: a request with one fault each."""
    good = json.load(open(f"{GOLDEN}/training-full.train.json", encoding="utf-8"))
    for change in ({"RoleArn": "arn:aws:iam::1:role/x"}, {"TrainingJobName": "a_b"}, {"HyperParameters": {"a": 1}}, {"InputDataConfig": [{}]},
                   {"RetryStrategy": {"MaximumRetryAttempts": 31}}, {"InfraCheckConfig": {}}, {"Nonsense": 1}, {"Environment": {"1A": "x"}}):
        try:
            wrong = faults_of(shape, {**good, **change})
        except (KeyError, AttributeError, TypeError):
            wrong = ["not of the model's form"]
        t.ok(wrong, f"the judge refuses {json.dumps(change)}")


def test_catalog(t, model):
    table = open(f"{TOP}/orchestrator/core/catalog/instance_types.def", encoding="utf-8").read()
    ours = set(re.findall(r'^X\("([^"]+)"', table, re.M))
    t.eq(set(model.shape_for("TrainingInstanceType").enum) - ours, set(), f"every instance type of Debian's botocore is among our {len(ours)}")


def test_dry_faults(t):
    r = dry(f"{EXAMPLES}/broken.yaml")
    t.ok(r.returncode == 2 and "8 faults" in r.stderr and "15:5" in r.stderr and r.stdout == "", "the faults of a file with their lines", r.stderr)
    r = dry(f"{EXAMPLES}/compiler-comparison.yaml")
    t.ok(r.returncode == 2 and "native, compiled" in r.stderr, "of two stages one must be named", r.stderr)
    r = dry(f"{EXAMPLES}/compiler-comparison.yaml", "compild")
    t.ok(r.returncode == 3 and "native, compiled" in r.stderr, "a stage that is none", r.stderr)
    r = dry(f"{EXAMPLES}/compiler-comparison.yaml", "native", AWS_REGION="")
    t.ok(r.returncode == 2 and "AWS_REGION" in r.stderr, "without a region AWS's image is not known", r.stderr)
    r = dry(f"{EXAMPLES}/nothing.yaml")
    t.ok(r.returncode == 2 and "cannot open" in r.stderr, "a file that is not there", r.stderr)
    r = run_drover(["request", "--dry", f"{EXAMPLES}/byoc-colossalai.yaml"], {})
    t.ok(r.returncode == 0 and json.loads(r.stdout)["TrainingJobName"] and "\n  " in r.stdout, "for people: indented JSON", r.stdout)


def test_api(t, pg, shape):
    a = Api(pg)
    a.objects("data", [f"meta/part-{i:05d}.parquet" for i in range(3)])
    assert a.submit(spec(extra="    environment: {HIDDEN: canary-value}"))[0] == 201
    leader_takes(a, 1)
    shown = json.loads(a.drover("request", "c-1/2", "-o", "json").stdout)
    request = shown["request"]
    t.eq((shown["sent"], shown["attempt"], shown["operation"]), (False, None, "CreateTrainingJob"), "a part that waits: what would be sent")
    t.eq((request["HyperParameters"]["url_list"], request["HyperParameters"]["output_folder"]), ("s3://data/meta/part-00002.parquet", "s3://data/out/00002/"),
         "its templates are expanded")
    t.eq(faults_of(shape, request), [], "SageMaker's model accepts it")
    leader_fails(a, 1, [0], 7)
    shown = json.loads(a.drover("request", "c-1/0", "-o", "json").stdout)
    t.eq((shown["sent"], shown["attempt"], shown["request"]["TrainingJobName"]), (False, 1, "d-1-0-a1"), "an ended attempt: made again, under its name")
    a.sql("UPDATE attempt SET request = '{\"TrainingJobName\":\"as-sent\",\"Environment\":{\"HIDDEN\":\"canary-value\",\"DROVER_TASK\":\"1\"}}'")
    shown = json.loads(a.drover("request", "c-1/0/1", "-o", "json").stdout)
    t.eq((shown["sent"], shown["request"]["TrainingJobName"], shown["request"]["Environment"]["HIDDEN"]), (True, "as-sent", "canary-value"),
         "a live attempt: the bytes that were sent")
    made = a.post("/v1/tokens", json.dumps({"name": "v", "role": "viewer"}), {"Content-Type": "application/json"})
    viewer = json.loads(made[1])["token"] if isinstance(made[1], (bytes, str)) else made[1]["token"]
    status, body = a.raw("GET", "/v1/campaigns/c-1/parts/0/request", token=viewer)[:2]
    t.ok(status == 200 and b"canary" not in body and b"DROVER_TASK" in body, "a viewer sees no value of the environment", body)
    r = a.drover("request", "c-1/0/7")
    t.ok(r.returncode == 3 and "no such attempt" in r.stderr, "an attempt that is none", r.stderr)
    r = a.drover("request", "c-1")
    t.ok(r.returncode == 2 and "name a part" in r.stderr, "a campaign is no part", r.stderr)
    status, log = a.close()
    t.ok(status == 0, "the server ends well", log)


def run(t, pg):
    model = botocore.session.get_session().get_service_model("sagemaker")
    shape = model.operation_model("CreateTrainingJob").input_shape
    test_golden(t, shape, "--update" in sys.argv)
    test_judge(t, shape)
    test_catalog(t, model)
    test_dry_faults(t)
    test_api(t, pg, shape)


if __name__ == "__main__":
    main(run)
