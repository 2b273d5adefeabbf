#!/usr/bin/env python3
"""The training campaigns of deploy/examples on the whole running system. Aim: each file that drover-local has the machines for
succeeds as it stands, one job a task; every host finds the hyperparameters of the golden request and the files of its channels;
at the end the wire log agrees, the services' models accept every request, and the ledger equals the invoice. Prices come from
AWS Pricing alone, which answers late: what is submitted before waits for them; a file's come first, and a discount counts. Method: the real
PostgreSQL, drover-local and droverd; the images are one small script that packs what its host was given into the job's model.
"""
import json
import os
import re
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, Tap, wait_for
from kit.stack import Stack

EXAMPLES = f"{TOP}/deploy/examples"
GOLDEN = f"{TOP}/tests/vectors/requests"
PARTS = 3
# example: {stage: (jobs, hosts of each)}
RUN = {"download-framework": {"download": (PARTS, 1)}, "byoc-colossalai": {"train": (1, 1)}, "compiler-comparison": {"native": (1, 1), "compiled": (1, 1)},
       "bert-model-parallel": {"train": (1, 1)}, "lightning-scaling": {f"{kind}-{n}": (1, n) for kind in ("smddp", "ddp") for n in (1, 2, 4, 8)}}
NOT_RUN = {"training-full": "24 hosts and an FSx channel", "everything": "a reference, with file systems that are not there", "broken": "has faults",
           "huggingface-endpoint": "requests: cli_request.py; an endpoint: endpoint.py",
           "laion-download": "the worker's: journeys.py", "laion-pipeline": "the worker's: stages.py", "laion-campaign": "at sample size: make run"}
TYPES = {"ml.c5.18xlarge": 2, "ml.g5.2xlarge": 1, "ml.g4dn.12xlarge": 2, "ml.p3.16xlarge": 16}
PRICES = {t: f"{i + 1}.204" for i, t in enumerate(TYPES)} | {"hosting:ml.g5.2xlarge": "2.5", "storage:SCRATCH_2": "0.14"}
OBJECTS = [f"acme-laion/meta/part-{i:05d}.parquet" for i in range(PARTS)] + [
    "acme-models/configs/gpt2_zero3.py", "acme-nlp/wikitext/train/data.txt", "acme-nlp/wikitext/test/data.txt", "acme-nlp/bert/hdf5/part.h5", "acme-vision/mnist/images.gz"]
FILES = {"byoc-colossalai": ["config/gpt2_zero3.py"], "compiler-comparison": ["test/data.txt", "train/data.txt"], "bert-model-parallel": ["train/part.h5"],
         "lightning-scaling": ["train/images.gz"]}
# What the host was given, as two members of the job's model. byoc's script writes the result that its stage verifies.
PROGRAM = """cd "$DROVER_ML_ROOT" && cp input/config/hyperparameters.json "model/$DROVER_HOST.json" &&
(cd input/data && find . -type f | sort) >"model/$DROVER_HOST.files" &&
if [ -e input/data/config/gpt2_zero3.py ]; then mkdir -p "%s" && cp input/data/config/gpt2_zero3.py "%s/model.pt"; fi"""


class Examples(Stack):
    def __init__(self):
        super().__init__("examples", quotas=TYPES, lease_us=10000000, parts=1, rows=1, local={"prices": PRICES}, env={"DROVER_PRICES_FILE": "", "DROVER_PRICE_INTERVAL_US": "86400000000"})
        self.s3 = self.dir + "/aws/s3"
        results = self.s3 + "/acme-models/results/gpt2"
        self.images = {golden(e, s)["AlgorithmSpecification"]["TrainingImage"]: ["/bin/sh", "-c", PROGRAM % (results, results)] for e in RUN for s in RUN[e]}
        for path in OBJECTS:
            os.makedirs(os.path.dirname(f"{self.s3}/{path}"), exist_ok=True)
            with open(f"{self.s3}/{path}", "w") as f:
                f.write(path)


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


def check_example(s, tap, example, cid):
    c = wait_for(lambda: s.ended(cid), 120, f"the end of {example}", step=0.1)
    tap.eq((c["state"], {x["name"]: x["state"] for x in c["stages"]}), ("succeeded", dict.fromkeys(RUN[example], "succeeded")), f"{example} succeeds as it stands")
    jobs = {}
    for j in s.oracle("jobs")["jobs"]:
        at = s.part_of(j["name"])
        if at.startswith(f"t-{cid[2:]}-"):
            stage, part = at[len(f"t-{cid[2:]}-"):].rsplit("-", 1)
            jobs.setdefault(stage, []).append((int(part), j))
    tap.eq({k: (len(v), v[0][1]["instance_count"]) for k, v in jobs.items()}, RUN[example], f"{example}: one job a task, on the hosts its stage asks for")
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


def main():
    tap = Tap()
    tap.eq({n[:-5] for n in os.listdir(EXAMPLES) if n.endswith(".yaml")}, set(RUN) | set(NOT_RUN), "every example runs here or has a reason not to")
    with Examples() as s:
        s.start_pg()
        s.start_local()
        s.faults({"kind": "access_denied", "operation": "GetProducts", "times": 1000})
        s.start_droverd(0)
        ids = {}
        for example in RUN:
            with open(f"{EXAMPLES}/{example}.yaml", encoding="utf-8") as f:
                ids[example] = s.submit(f.read())
        check_waits(s, tap, next(iter(ids.values())))
        for example, cid in ids.items():
            check_example(s, tap, example, cid)
        tap.ok(not s.live_jobs(), "no job is left alive", s.live_jobs())
        s.check_wire(tap)
        s.check_requests(tap)
        s.check_invoice(tap)
        check_prices(s, tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
