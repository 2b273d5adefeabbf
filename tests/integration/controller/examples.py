#!/usr/bin/env python3
"""The campaigns of deploy/examples on the whole running system. Aim: each file succeeds as it stands, one job a task; every host, 24
of them too, finds the hyperparameters of the golden request and the files of its channels; the endpoint answers its smoke test;
at the end the wire log agrees, the services' models accept every request, and the ledger equals the invoice. Prices come from
AWS Pricing alone, which answers late: what is submitted before waits for them; a file's come first, and a discount counts. Method: the real
PostgreSQL, drover-local and droverd; the images are one small script that packs what its host was given into the job's model, and one that answers questions. A file
system made beforehand takes the place of the example's.
"""
import json
import os
import re
import signal
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, Tap, wait_for
from kit.local import send, sign
from kit.stack import KEY, SECRET, Stack

EXAMPLES = f"{TOP}/deploy/examples"
GOLDEN = f"{TOP}/tests/vectors/requests"
PARTS = 3
# example: {stage: (jobs, hosts of each)}
RUN = {"download-framework": {"download": (PARTS, 1)}, "byoc-colossalai": {"train": (1, 1)}, "compiler-comparison": {"train-native": (1, 1), "train-compiled": (1, 1)},
       "bert-model-parallel": {"train": (1, 1)}, "lightning-scaling": {f"{kind}-{n}": (1, n) for kind in ("smddp", "ddp") for n in (1, 2, 4, 8)}}
ALONE = {"training-full": {"train": (1, 24)}}  # with what it needs beside it, in a second stack
ENDPOINT = "huggingface-endpoint"
NOT_RUN = {"everything": "a reference, with file systems that are not there", "broken": "has faults",
           "laion-download": "the worker's: journeys.py", "laion-pipeline": "the worker's: stages.py", "laion-campaign": "at sample size: make run"}
TYPES = {"ml.c5.18xlarge": 2, "ml.g5.2xlarge": 1, "ml.g4dn.12xlarge": 2, "ml.p3.16xlarge": 16}
PRICES = {t: f"{i + 1}.204" for i, t in enumerate(TYPES)} | {"hosting:ml.g5.2xlarge": "2.5", "storage:SCRATCH_2": "0.14"}
OBJECTS = [f"acme-laion/meta/part-{i:05d}.parquet" for i in range(PARTS)] + [
    "acme-models/configs/gpt2_zero3.py", "acme-nlp/wikitext/train/data.txt", "acme-nlp/wikitext/test/data.txt", "acme-nlp/bert/hdf5/part.h5", "acme-vision/mnist/images.gz"]
FILES = {"byoc-colossalai": ["config/gpt2_zero3.py"], "compiler-comparison": ["test/data.txt", "train/data.txt"], "bert-model-parallel": ["train/part.h5"],
         "lightning-scaling": ["train/images.gz"], "training-full": ["code/sourcedir.tar.gz", "data/00000.tar"]}
LOCAL = {"prices": {"ml.p4d.24xlarge": "37.688", "hosting:ml.g4dn.xlarge": "0.736"}, "endpoint_quotas": {"ml.g4dn.xlarge": 1}, "endpoint_start_seconds": 0.3, "endpoint_stop_seconds": 0.3}
# What the host was given, as two members of the job's model. byoc's script writes the result that its stage verifies.
PROGRAM = """cd "$DROVER_ML_ROOT" && cp input/config/hyperparameters.json "model/$DROVER_HOST.json" &&
(cd input/data && find -L . -type f | sort) >"model/$DROVER_HOST.files" &&
if [ -e input/data/config/gpt2_zero3.py ]; then mkdir -p "%s" && cp input/data/config/gpt2_zero3.py "%s/model.pt"; fi"""
TOO_MANY = 'the account allows 20 instances a job, one job has 24 (quota "Maximum number of instances per training job")'
SERVER = r"""
import http.server, json, os
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def say(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.say(200, {})
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["inputs"]
        said = asked["context"].split(" ", 2)[1]
        self.say(200 if os.environ["HF_TASK"] == "question-answering" else 400, {"answer": said})
http.server.ThreadingHTTPServer((os.environ["DROVER_HOST_ADDRESS"], int(os.environ["SAGEMAKER_BIND_TO_PORT"])), H).serve_forever()
"""


class Examples(Stack):
    def __init__(self, examples, types, objects, local):
        super().__init__("examples", quotas=types, lease_us=10000000, parts=1, rows=1, local=local, env={"DROVER_PRICES_FILE": "", "DROVER_PRICE_INTERVAL_US": "86400000000"})
        self.s3 = self.dir + "/aws/s3"
        results = self.s3 + "/acme-models/results/gpt2"
        self.images = {golden(e, s)["AlgorithmSpecification"]["TrainingImage"]: ["/bin/sh", "-c", PROGRAM % (results, results)] for e in examples for s in examples[e]}
        for path in objects:
            os.makedirs(os.path.dirname(f"{self.s3}/{path}"), exist_ok=True)
            with open(f"{self.s3}/{path}", "w") as f:
                f.write(path)


def text_of(example):
    with open(f"{EXAMPLES}/{example}.yaml", encoding="utf-8") as f:
        return f.read()


def golden(example, stage):
    with open(f"{GOLDEN}/{example}.{stage}.json", encoding="utf-8") as f:
        return json.load(f)


def seen_by_hosts(s, job):
    """{host: (hyperparameters, files of its channels)} from the job's model."""
    found = [os.path.join(at, n) for at, _, names in os.walk(s.s3) for n in names if n == "model.tar.gz" and f"/{job}/" in at + "/"]
    seen = {}
    for path in found:
        with tarfile.open(path) as t:
            for n in t.getnames():
                if n.endswith(".json"):
                    files = t.extractfile(n[:-5] + ".files").read().decode().split()
                    seen[n[:-5]] = (json.load(t.extractfile(n)), [f[2:] for f in files])
    return seen


def wanted(example, stage, job, part):
    """What each host of that job must have been given."""
    hyper = dict(golden(example, stage)["HyperParameters"])
    if "sagemaker_job_name" in hyper:
        hyper["sagemaker_job_name"] = json.dumps(job)
    files = FILES.get(example)
    if example == "download-framework":
        files = [f"parquet/part-{part:05d}.parquet"]
        hyper.update(file_name=json.dumps(f"part-{part:05d}.parquet"), output=json.dumps(f"s3://acme-laion/img/{part:05d}/"))
    return hyper, files


def check_example(s, tap, example, cid, want_jobs):
    c = wait_for(lambda: s.ended(cid), 120, f"the end of {example}", step=0.1)
    tap.eq((c["state"], {x["name"]: x["state"] for x in c["stages"]}), ("succeeded", dict.fromkeys(want_jobs, "succeeded")), f"{example} succeeds as it stands")
    jobs = {}
    for j in s.oracle("jobs")["jobs"]:
        at = s.part_of(j["name"])
        if at.startswith(f"t-{cid[2:]}-"):
            stage, part = at[len(f"t-{cid[2:]}-"):].rsplit("-", 1)
            jobs.setdefault(stage, []).append((int(part), j))
    tap.eq({k: (len(v), v[0][1]["instance_count"]) for k, v in jobs.items()}, want_jobs, f"{example}: one job a task, on the hosts its stage asks for")
    wrong = []
    for stage, of_stage in jobs.items():
        for part, j in of_stage:
            seen, want = seen_by_hosts(s, j["name"]), wanted(example, stage, j["name"], part)
            if sorted(seen) != sorted(f"algo-{k + 1}" for k in range(j["instance_count"])) or any(v != want for v in seen.values()):
                wrong.append((j["name"], seen, want))
    tap.ok(not wrong, f"{example}: every host has the golden hyperparameters and its channels", json.dumps(wrong, indent=1))


def metric(s, name):
    return int(re.search(rf"^{name} (-?\d+)$", s.raw("GET", "/metrics")[1].decode(), re.M)[1])


def prices(s):
    return {(p["instance_type"], p["use"]): (p["micro_usd"], p["per"], p["source"]) for p in s.api("GET", "/prices")["prices"]}


def check_waits(s, tap, cid):
    """Nothing starts before a price is known; AWS Pricing is asked until it answers."""
    stages = wait_for(lambda: (x := s.api("GET", f"/campaigns/{cid}")["stages"]) and any(y["wait_reason"] == "price_unknown" for y in x) and x, 30, "a wait for the price")
    tap.ok(stages, "without a price a stage waits for it", stages)
    wait_for(lambda: metric(s, "droverd_price_reads_failed_total") > 0, 30, "a try that fails")
    tap.eq((prices(s), s.oracle("jobs")["jobs"]), ({}, []), "no price is known, and nothing has started")
    s.faults()


def check_prices(s, tap):
    listed = {(t, "training"): (1000000 * (i + 1) + 204000, "hour", "aws_pricing") for i, t in enumerate(TYPES)}
    listed |= {("ml.g5.2xlarge", "hosting"): (2500000, "hour", "aws_pricing"), ("SCRATCH_2", "storage"): (140000, "gb_month", "aws_pricing")}
    tap.eq(prices(s), listed, "prices are those of AWS Pricing")
    tap.eq(metric(s, "droverd_prices_listed"), len(PRICES), "and their number is a metric")
    s.faults({"kind": "error_500", "operation": "GetProducts", "times": 1000})
    s.kill("droverd0")
    with open(s.dir + "/own.json", "w", encoding="ascii") as f:
        json.dump({"ml.g5.2xlarge": "9", "ml.own.large": "1"}, f)
    s.start_droverd(0, env={"DROVER_PRICES_FILE": s.dir + "/own.json", "DROVER_DISCOUNT": "12.5%"})
    less = {k: (int(usd * 0.875 + 0.5), *rest) for k, (usd, *rest) in listed.items()}
    own = {("ml.g5.2xlarge", "training"): (9000000, "hour", "file"), ("ml.own.large", "training"): (1000000, "hour", "file")}
    wait_for(lambda: prices(s) == less | own, 30, "the file's prices") if prices(s) != less | own else None
    tap.eq(prices(s), less | own, "a file's come first, the stored ones go on without AWS Pricing, less the discount")
    os.rename(s.dir + "/own.json", s.dir + "/old.json")
    with open(s.dir + "/own.json", "w", encoding="ascii") as f:
        json.dump({"ml.own.large": "2"}, f)
    own = {("ml.own.large", "training"): (2000000, "hour", "file")}
    wait_for(lambda: prices(s) == less | own, 30, "the changed file's prices")
    tap.ok(True, "what the file no longer names has AWS Pricing's price again")


def model_file(s):
    path = s.s3 + "/huggingface-models/roberta-base-squad2/model.tar.gz"
    os.makedirs(os.path.dirname(path))
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("weights"))


def fsx(s, operation, **asked):
    url, body = f"http://127.0.0.1:{s.local_port}", json.dumps(asked).encode()
    headers = sign(url, "fsx", "POST", "/", body, {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "AWSSimbaAPIService_v20180301." + operation}, KEY, SECRET)
    status, _, said = send(url, "POST", "/", headers, body)
    assert status == 200, (operation, said)
    return json.loads(said)


def volume_of_images(s):
    """(id, mount name) of a file system whose /img is that of the bucket."""
    made = fsx(s, "CreateFileSystem", FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=["subnet-0a1b2c3d"], LustreConfiguration={"DeploymentType": "SCRATCH_2"})["FileSystem"]
    here = lambda: fsx(s, "DescribeFileSystems", FileSystemIds=[made["FileSystemId"]])["FileSystems"][0]["Lifecycle"]  # noqa: E731
    wait_for(lambda: here() == "AVAILABLE", 30, "the file system")
    link = fsx(s, "CreateDataRepositoryAssociation", FileSystemId=made["FileSystemId"], FileSystemPath="/img", DataRepositoryPath="s3://acme-laion/img", BatchImportMetaDataOnCreate=True)["Association"]["AssociationId"]
    linked = lambda: fsx(s, "DescribeDataRepositoryAssociations", AssociationIds=[link])["Associations"][0]["Lifecycle"]  # noqa: E731
    wait_for(lambda: linked() == "AVAILABLE", 30, "what it has of the bucket")
    return made["FileSystemId"], made["LustreConfiguration"]["MountName"]


def check_full(s, tap):
    """The full training: a file system, 24 hosts without a network. A new account has 20 instances a job, and says so."""
    volume, mount = volume_of_images(s)
    text = text_of("training-full").replace("fs-0123456789abcdef0", volume).replace("/1234abcd/", f"/{mount}/")
    plan = s.api("POST", "/campaigns?dry_run=true", text, {"Content-Type": "application/yaml"})
    tap.eq([w["message"] for w in plan["warnings"] if w["code"] == "quota_too_small"], [TOO_MANY], "a dry run warns of the quota that 24 instances a job exceed")
    cid = s.submit(text)
    told = lambda: [g["title"] for g in s.api("GET", f"/campaigns/{cid}").get("guidance", [])]  # noqa: E731
    wait_for(lambda: told() == ["waits: " + TOO_MANY], 30, "the quota it waits for")
    s.kill("local", signal.SIGTERM)
    s.local_extra["account_quotas"] = {"Maximum number of instances per training job": 24}
    s.start_local()
    check_example(s, tap, "training-full", cid, ALONE["training-full"])
    fsx(s, "DeleteFileSystem", FileSystemId=volume)


def check_endpoint(s, tap):
    cid = s.submit(text_of(ENDPOINT).replace("p95_ms: 500", "p95_ms: 30000"))  # a busy machine
    c = wait_for(lambda: s.ended(cid), 120, "the endpoint's test", step=0.1)
    e = s.api("GET", "/endpoints")["endpoints"][0]
    tap.eq((c["state"], e["state"], e["instance_type"]), ("succeeded", "in_service", "ml.g4dn.xlarge"), f"{ENDPOINT} serves and has passed its test")
    s.api("DELETE", f"/endpoints/{e['name']}")
    wait_for(lambda: s.api("GET", f"/endpoints/{e['name']}")["state"] == "deleted", 60, "its end")


def main():
    tap = Tap()
    tap.eq({n[:-5] for n in os.listdir(EXAMPLES) if n.endswith(".yaml")}, {*RUN, *ALONE, ENDPOINT, *NOT_RUN}, "every example runs here or has a reason not to")
    with Examples(RUN, TYPES, OBJECTS, {"prices": PRICES}) as s:
        s.start_pg()
        s.start_local()
        s.faults({"kind": "access_denied", "operation": "GetProducts", "times": 1000})
        s.start_droverd(0)
        ids = {}
        for example in RUN:
            ids[example] = s.submit(text_of(example))
        check_waits(s, tap, next(iter(ids.values())))
        for example, cid in ids.items():
            check_example(s, tap, example, cid, RUN[example])
        tap.ok(not s.live_jobs(), "no job is left alive", s.live_jobs())
        s.check_wire(tap)
        s.check_requests(tap)
        s.check_invoice(tap)
        check_prices(s, tap)
    with Examples(ALONE, {"ml.p4d.24xlarge": 24}, ["acme-laion/img/00000.tar", "acme-laion/code/train/sourcedir.tar.gz"], LOCAL) as s:
        s.images[golden(ENDPOINT, "deploy")["CreateModel"]["PrimaryContainer"]["Image"]] = [sys.executable, "-ISc", SERVER]
        model_file(s)
        s.start_pg()
        s.start_local()
        s.start_droverd(0)
        check_endpoint(s, tap)
        check_full(s, tap)
        s.check_wire(tap)
        s.check_requests(tap)
        s.check_invoice(tap, "24 hosts and an endpoint: ")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
