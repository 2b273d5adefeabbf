#!/usr/bin/python3
"""The requests of the example campaigns: CreateTrainingJob, and three of an endpoint. Aim: each stage of each example gives the
requests that stand in tests/vectors/requests, SageMaker's own service model accepts them, drover-local makes the endpoint of
them, and `drover request` shows the same of a campaign as of its file. Method: `drover request --dry` against the golden files and against the validator of Debian's botocore; the API with a
leader played in SQL. `cli_request.py --update` writes the golden files.
"""
import difflib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

import botocore.session

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import BIN, TOP
from kit.api import Api, leader_fails, leader_takes, main, spec
from kit.local import Local
from kit.service_model import faults_of

EXAMPLES = f"{TOP}/deploy/examples"
GOLDEN = f"{TOP}/tests/vectors/requests"

# An installation's: the worker's examples name neither image nor role.
IMAGE, ROLE = f"111122223333.dkr.ecr.us-east-1.amazonaws.com/drover-worker@sha256:{'0123456789abcdef' * 4}", "arn:aws:iam::111122223333:role/drover-worker"
ENV = {"AWS_REGION": "us-east-1", "DROVER_WORKER_IMAGE": IMAGE, "DROVER_ROLE_ARN": ROLE, "DROVER_BUCKET": ""}


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


def faults(request):
    """What SageMaker's service model has against a stage's requests: one for a job or a file system, three for an endpoint."""
    if "TrainingJobName" in request:
        return faults_of("sagemaker", "CreateTrainingJob", request)
    if "CreateFileSystem" in request:
        return faults_of("fsx", "CreateFileSystem", request["CreateFileSystem"])
    return [w for operation, one in request.items() for w in faults_of("sagemaker", operation, one)]


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
        fields |= set(request) if "TrainingJobName" in request else set()
        t.eq(faults(request), [], f"{example}: SageMaker's model accepts {stage}")
    t.eq(names ^ set(os.listdir(GOLDEN)), set(), f"{len(names)} golden requests, each of a stage")
    t.eq(set(shape.members) - fields, set(), f"the examples have every field ({len(fields)})")


def test_installed(t):
    """What the worker's examples leave to the installation: their jobs have its role and its image, not those of an account that is nobody's."""
    for example, stages in (("laion-download", ["download"]), ("laion-pipeline", ["metadata", "download", "index"])):
        for stage in stages:
            r = json.loads(dry(f"{EXAMPLES}/{example}.yaml", stage, DROVER_ROLE_ARN=ROLE.replace("1111", "4444"), DROVER_WORKER_IMAGE=IMAGE.replace("1111", "4444")).stdout)
            t.eq((r["RoleArn"], r["AlgorithmSpecification"]["TrainingImage"]), (ROLE.replace("1111", "4444"), IMAGE.replace("1111", "4444")), f"{example}: {stage} runs in the installation's role and image")


def test_judge(t):
    """The validator finds what is wrong: a request with one fault each."""
    good = json.load(open(f"{GOLDEN}/training-full.train.json", encoding="utf-8"))
    for change in ({"RoleArn": "arn:aws:iam::1:role/x"}, {"TrainingJobName": "a_b"}, {"HyperParameters": {"a": 1}}, {"InputDataConfig": [{}]},
                   {"RetryStrategy": {"MaximumRetryAttempts": 31}}, {"InfraCheckConfig": {"EnableInfraCheck": "yes"}}, {"Nonsense": 1}, {"Environment": {"1A": "x"}}):
        t.ok(faults({**good, **change}), f"the judge refuses {json.dumps(change)}")


def test_catalog(t, model):
    table = open(f"{TOP}/orchestrator/core/catalog/instance_types.def", encoding="utf-8").read()
    ours = set(re.findall(r'^X\("([^"]+)"', table, re.M))
    t.eq(set(model.shape_for("TrainingInstanceType").enum) - ours, set(), f"every instance type of Debian's botocore is among our {len(ours)}")


def test_dry_faults(t):
    r = dry(f"{EXAMPLES}/broken.yaml")
    t.ok(r.returncode == 2 and "8 faults" in r.stderr and "15:5" in r.stderr and r.stdout == "", "the faults of a file with their lines", r.stderr)
    r = dry(f"{EXAMPLES}/compiler-comparison.yaml")
    t.ok(r.returncode == 2 and "train-native, train-compiled" in r.stderr, "of two stages one must be named", r.stderr)
    r = dry(f"{EXAMPLES}/compiler-comparison.yaml", "compild")
    t.ok(r.returncode == 3 and "train-native, train-compiled" in r.stderr, "a stage that is none", r.stderr)
    r = dry(f"{EXAMPLES}/compiler-comparison.yaml", "train-native", AWS_REGION="")
    t.ok(r.returncode == 2 and "AWS_REGION" in r.stderr, "without a region AWS's image is not known", r.stderr)
    r = dry(f"{EXAMPLES}/nothing.yaml")
    t.ok(r.returncode == 2 and "cannot open" in r.stderr, "a file that is not there", r.stderr)
    r = run_drover(["request", "--dry", f"{EXAMPLES}/byoc-colossalai.yaml"], {})
    t.ok(r.returncode == 0 and json.loads(r.stdout)["TrainingJobName"] and "\n  " in r.stdout, "for people: indented JSON", r.stdout)


ENDPOINT = """version: 1
name: e
tags: {team: a, cost-center: "1"}
security:
  role: "arn:aws:iam::111122223333:role/sm"
  vpc: {subnets: [subnet-0a, subnet-0b], security_groups: [sg-1]}
  volume_kms_key: alias/sm
  encrypt_traffic: true
stages:
  - {name: train, framework: pytorch 1.12, source_dir: "s3://acme/code/sourcedir.tar.gz", entry_point: train.py,
     instance_type: ml.p3.2xlarge, output: "s3://acme/{stage}/{campaign}", volume_kms_key: 1234abcd-12ab-34cd-56ef-1234567890ab}
  - {name: deploy, kind: endpoint, needs: train, model: {stage: train, entry_point: inference.py}, instance_type: ml.m5.large,
     instance_count: 2, volume_gb: 20, ttl: 2h, network_isolation: true, environment: {SAGEMAKER_CONTAINER_LOG_LEVEL: 10, A: "{{b}}"},
     tags: {team: b}}
"""


def requests_of(text, stage, **env):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", dir=TOP + "/build") as f:
        f.write(text)
        f.flush()
        r = dry(f.name, stage, **env)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)


def test_endpoint(t):
    """An endpoint with all keys, of the model that a stage of the file trains."""
    got = requests_of(ENDPOINT, "deploy")
    model, config, endpoint = got["CreateModel"], got["CreateEndpointConfig"], got["CreateEndpoint"]
    t.eq(faults(got), [], "SageMaker's model accepts an endpoint with every key")
    t.eq(model["PrimaryContainer"], {
        "Image": "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference:1.12-cpu-py38",
        "ModelDataUrl": "s3://acme/train/1/drover-1-train-0-a1-00000000/output/model.tar.gz",
        "Environment": {"A": "{b}", "SAGEMAKER_CONTAINER_LOG_LEVEL": "10", "SAGEMAKER_PROGRAM": "inference.py", "SAGEMAKER_REGION": "us-east-1",
                        "SAGEMAKER_SUBMIT_DIRECTORY": "/opt/ml/model/code"}}, "its container: the stage's framework, the stage's model, one's own variables win")
    t.eq((model["VpcConfig"], model["EnableNetworkIsolation"], model["ExecutionRoleArn"]),
         ({"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-0a", "subnet-0b"]}, True, "arn:aws:iam::111122223333:role/sm"), "its network and role")
    t.eq((config["ProductionVariants"], config["KmsKeyId"]),
         ([{"VariantName": "AllTraffic", "ModelName": model["ModelName"], "InitialInstanceCount": 2, "InstanceType": "ml.m5.large", "InitialVariantWeight": 1,
            "VolumeSizeInGB": 20}], "alias/sm"), "its one variant, and the campaign's key")
    t.eq({model["ModelName"], config["EndpointConfigName"], endpoint["EndpointConfigName"], endpoint["EndpointName"]}, {"drover-1-deploy-0-a1-00000000"}, "one name for all three")
    tags = [("drover-install", "0"), ("drover-campaign", "1"), ("drover-stage", "deploy"), ("drover-part", "0"), ("drover-attempt", "1"), ("team", "b"), ("cost-center", "1")]
    t.ok(all([(x["Key"], x["Value"]) for x in r["Tags"]] == tags for r in got.values()), "each has the tags that jobs have", got)
    own = requests_of(ENDPOINT.replace("framework: pytorch 1.12, source_dir: \"s3://acme/code/sourcedir.tar.gz\", entry_point: train.py", "image: r/x:1")
                      .replace(", entry_point: inference.py", ""), "deploy")
    t.eq((own["CreateModel"]["PrimaryContainer"]["Image"], set(own["CreateModel"]["PrimaryContainer"]["Environment"])), ("r/x:1", {"A", "SAGEMAKER_CONTAINER_LOG_LEVEL"}),
         "a stage's own image serves its model, too, with no variable of AWS's images")
    disks = requests_of(ENDPOINT.replace("ml.m5.large", "ml.g4dn.xlarge").replace(" volume_gb: 20,", ""), "deploy")
    t.ok("KmsKeyId" not in disks["CreateEndpointConfig"] and "-gpu-" in disks["CreateModel"]["PrimaryContainer"]["Image"],
         "a type with disks of its own gets no key, one with a GPU an image for it", disks)


def test_local(t):
    """drover-local makes the example's endpoint of its golden requests."""
    golden = json.load(open(f"{GOLDEN}/huggingface-endpoint.deploy.json", encoding="utf-8"))
    container, variant = golden["CreateModel"]["PrimaryContainer"], golden["CreateEndpointConfig"]["ProductionVariants"][0]
    bucket, key = container["ModelDataUrl"][5:].split("/", 1)
    local = Local(images={container["Image"]: ["/bin/sh", "-c"]}, endpoint_quotas={variant["InstanceType"]: 1}, endpoint_start_seconds=0)
    try:
        path = os.path.join(local.root, "s3", bucket, key)
        os.makedirs(os.path.dirname(path))
        with tarfile.open(path, "w:gz"):
            pass
        sagemaker = local.client("sagemaker")
        arns = [sagemaker.create_model(**golden["CreateModel"])["ModelArn"], sagemaker.create_endpoint_config(**golden["CreateEndpointConfig"])["EndpointConfigArn"],
                sagemaker.create_endpoint(**golden["CreateEndpoint"])["EndpointArn"]]
        t.eq([a.rsplit(":", 1)[1] for a in arns], [f"{kind}/{golden['CreateModel']['ModelName']}" for kind in ("model", "endpoint-config", "endpoint")],
             "drover-local takes the example's three requests")
    finally:
        local.close()


def test_endpoint_submitted(t, a):
    """An endpoint is planned, without a forecast that would leave it out, and submitted."""
    path, yaml = f"{EXAMPLES}/huggingface-endpoint.yaml", {"Content-Type": "application/yaml"}
    text = open(path, encoding="utf-8").read()
    status, plan = a.post("/v1/campaigns?dry_run=true", text, yaml)[:2]
    stage = plan["stages"][0]
    t.eq((status, stage["kind"], stage["ttl_seconds"], stage["idle_seconds"], stage["parts"], stage["worst_case_micro_usd"], plan["worst_case_micro_usd"]), (200, "endpoint", 7200, 1200, 0, None, None),
         "the plan shows an endpoint, and no cost that is not known")
    t.ok([w["code"] for w in plan["warnings"]] == ["price_unknown", "outlives_drover"] and plan["forecast"]["end"] is None and "stage deploy" in plan["forecast"]["reason"],
         "it warns, and forecasts nothing", plan)
    a.sql("INSERT INTO price (instance_type, musd_per_hour, source) VALUES ('ml.g4dn.xlarge', 1000000, 'test'), ('hosting:ml.g4dn.xlarge', 3600000, 'test')")
    stage = a.post("/v1/campaigns?dry_run=true", text, yaml)[1]["stages"][0]
    t.eq((stage["price_micro_usd_per_hour"], stage["worst_case_micro_usd"]), (3600000, (7200 + 1020) * 1000), "with a price of hosting it tells what the whole ttl costs")
    status, refused = a.post("/v1/campaigns", text.replace("budget: 10 USD", "budget: 8 USD"), {**yaml, "Idempotency-Key": "endpoint-1"})[:2]
    t.ok(status == 409 and "a ttl of at most" in json.dumps(refused), "a budget below that is refused", refused)
    idle = re.sub(" *idle: .*\n", "", text)
    t.eq(a.post("/v1/campaigns?dry_run=true", idle, yaml)[1]["stages"][0]["idle_seconds"], None, "idle may be left out")
    t.eq(a.get("/v1/campaigns")[1]["campaigns"][0]["id"], "c-1", "nothing of it is written")
    status, plan = a.post("/v1/campaigns?dry_run=true&what_if=slots%3D2", ENDPOINT, yaml)[:2]
    t.eq((status, [(s["name"], s["kind"], s["parts"]) for s in plan["stages"]], plan["parts"]["total"], plan["worst_case_micro_usd"], plan["forecast"]["end"]),
         (200, [("train", "jobs", 1), ("deploy", "endpoint", 0)], 1, None, None), "of a training and its endpoint, too")
    r = a.drover("submit", path, "-y")
    t.ok(r.returncode == 0, "drover submit takes it", r.stderr)


def test_api(t, pg):
    a = Api(pg)
    a.objects("data", [f"meta/part-{i:05d}.parquet" for i in range(3)])
    assert a.submit(spec(extra="    environment: {HIDDEN: canary-value}"))[0] == 201
    leader_takes(a, 1)
    shown = json.loads(a.drover("request", "c-1/2", "-o", "json").stdout)
    request = shown["request"]
    t.eq((shown["sent"], shown["attempt"], shown["operation"]), (False, None, "CreateTrainingJob"), "a part that waits: what would be sent")
    t.eq((request["HyperParameters"]["url_list"], request["HyperParameters"]["output_folder"]), ("s3://data/meta/part-00002.parquet", "s3://data/out/00002/"),
         "its templates are expanded")
    t.eq(faults(request), [], "SageMaker's model accepts it")
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
    test_endpoint_submitted(t, a)
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
    test_installed(t)
    test_judge(t)
    test_catalog(t, model)
    test_dry_faults(t)
    test_endpoint(t)
    test_local(t)
    test_api(t, pg)


if __name__ == "__main__":
    main(run)
