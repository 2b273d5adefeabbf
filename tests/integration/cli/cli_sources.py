#!/usr/bin/env python3
"""A folder as source_dir. Aim: `drover submit` packs it the same way each time, the server brings it to the bucket once a digest, and
the job is told where it is as the SageMaker Python SDK tells it; what cannot be packed or was not sent is refused with its place; the
default bucket is the account's. Method: the real drover, droverd and drover-local; Python's tarfile reads the archives, the wire log
counts the uploads.
"""
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, patience
from kit.stack import Stack

# Puts what the job was given into its model.
PROGRAM = """cd "$DROVER_ML_ROOT" && cp input/config/hyperparameters.json model/ && if [ -d input/data/code ]; then cp -r input/data/code model/; fi"""
FILE = """# ein Kästchen
version: 1
name: NAME
budget: 5 USD
stages:
  - {name: "größer", image: "team/train:1", source_dir: ./train, entry_point: train.py, hyperparameters: {epochs: 3}, EXTRA}
"""
COPY = """version: 1
name: copied
budget: 5 USD
stages:
  - {name: copy, worker: copy, from: "s3://drover-test/plain/*", to: "{bucket}/copied/{file_name}", instance_type: ml.c5.xlarge, max_runtime: 5m}
"""
USUAL = "instance_type: ml.c5.xlarge, max_runtime: 1h"
ACCOUNT = "123456789012"
SEALED = "drover-sealed"


class Sources(Stack):
    def __init__(self):
        super().__init__("sources", parts=1, rows=1, images={"team/train:1": ["/bin/sh", "-c", PROGRAM]}, local={"kms_only_buckets": [SEALED], "kms_buckets": [SEALED]})
        self.buckets = [SEALED]
        self.work = self.dir + "/work"

    def drover(self, *args, cwd=None, env=None, stdin=None):
        e = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{next(iter(self.ports.values()))}", "DROVER_TOKEN_FILE": self.token_file, "LC_ALL": "C.UTF-8", **(env or {})}
        return subprocess.run([self.release_bin + "/drover", *args], capture_output=True, text=True, env=e, cwd=cwd or self.work, input=stdin, timeout=patience(120), check=False)

    def file(self, name, extra=USUAL, text=FILE):
        path = f"{self.work}/{name}.yaml"
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace("größer", "train").replace("NAME", os.path.basename(name)).replace("EXTRA", extra))
        return path

    def uploads(self):
        return [r for r in self.oracle("wire-log")["requests"] if r["service"] == "s3" and r["operation"] == "PutObject" and "sources/" in r["name"]]

    def objects(self, bucket="drover-test"):
        top = f"{self.dir}/aws/s3/{bucket}/sources"
        return {d: f"{top}/{d}/sourcedir.tar.gz" for d in sorted(os.listdir(top))} if os.path.isdir(top) else {}


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


def make_folder(top, order=1):
    files = [("train.py", "print('train')\n", 0o600), ("lib/model.py", "x = 1\n", 0o664), ("tools/run.sh", "#!/bin/sh\n", 0o775), ("notes.txt", "n\n", 0o644),
             ("lib/__pycache__/model.pyc", "c", 0o644), (".git/config", "g", 0o644), ("data/big.bin", "b", 0o644), ("lib/data/small.txt", "s", 0o644), ("a.log", "l", 0o644),
             (".droverignore", "# what is not code\n/data/\n*.log\nlib/nothing/*\n", 0o644), ("lang/" + "d" * 90 + "/" + "e" * 40 + ".py", "long\n", 0o644)]
    for name, text, mode in files[::order]:
        write(f"{top}/{name}", text, mode)
    write(f"{os.path.dirname(top)}/linked-{os.path.basename(top)}/util.py", "u = 1\n")
    os.symlink(f"../linked-{os.path.basename(top)}", top + "/linked")
    os.symlink("train.py", top + "/again.py")


WANTED = {"again.py": 0o644, "lib/data/small.txt": 0o644, "lib/model.py": 0o644, "lang/" + "d" * 90 + "/" + "e" * 40 + ".py": 0o644, "notes.txt": 0o644,
          "linked/util.py": 0o644, "tools/run.sh": 0o755, "train.py": 0o644}


def model_of(s, cid):
    """{name: bytes} of the model of the campaign's only job."""
    job = next(j["name"] for j in s.oracle("jobs")["jobs"] if j["name"].startswith(f"t-{cid[2:]}-"))
    found = [os.path.join(at, n) for at, _, names in os.walk(s.dir + "/aws/s3") for n in names if n == "model.tar.gz" and f"/{job}/" in at + "/"]
    with tarfile.open(found[0]) as t:
        return {m.name.removeprefix("./"): t.extractfile(m).read() for m in t if m.isfile()}


def submit(s, tap, path, what, *more):
    r = s.drover("submit", path, "-y", "--wait", "-o", "json", *more)
    try:
        c = json.loads(r.stdout)
    except ValueError:
        c = {}
    tap.ok(r.returncode == 0 and c.get("state") == "succeeded", what, (r.returncode, r.stdout[-800:], r.stderr[-800:]))
    return c.get("id")


def check_archive(s, tap):
    make_folder(s.work + "/train")
    cid = submit(s, tap, s.file("one"), "a campaign with a folder as source_dir succeeds")
    digest, path = next(iter(s.objects().items()))
    with open(path, "rb") as f:
        packed = f.read()
    tap.eq(hashlib.sha256(packed).hexdigest(), digest, "the archive lies under its digest")
    with tarfile.open(fileobj=io.BytesIO(packed)) as t:
        members = t.getmembers()
        tap.eq([m.name for m in members], sorted(WANTED), "the files at its root, sorted; links followed; caches, .git and what .droverignore names left out")
        tap.eq({m.name: m.mode for m in members}, WANTED, "with two permissions")
        tap.eq({(m.uid, m.gid, m.uname, m.gname, m.mtime, m.type) for m in members}, {(0, 0, "", "", 315532800, tarfile.REGTYPE)}, "one owner and one time")
        tap.eq(t.extractfile("again.py").read(), b"print('train')\n", "a link has the bytes of its file")
    tap.eq(packed[:10], b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "the head of the gzip has no time and no name")
    given = json.loads(model_of(s, cid)["hyperparameters.json"])
    uri = f"s3://drover-test/sources/{digest}/sourcedir.tar.gz"
    tap.eq({k: json.loads(v) for k, v in given.items() if k != "sagemaker_job_name"},
           {"epochs": 3, "sagemaker_submit_directory": uri, "sagemaker_program": "train.py", "sagemaker_container_log_level": 20, "sagemaker_region": "us-east-1"},
           "the job is told its place and its program in JSON, as the SDK tells it")
    spec = s.drover("get", cid, "--spec").stdout
    tap.ok(f'source_dir: "sha256:{digest}"' in spec and "./train" not in spec, "the stored file names the digest", spec)
    return digest


def check_once(s, tap, digest):
    n = len(s.uploads())
    tap.eq(n, 1, "it was uploaded once")
    submit(s, tap, s.file("one"), "the same file again", "--again")
    shutil.copytree(s.work + "/train", s.work + "/copy/train", symlinks=False)
    submit(s, tap, s.file("copy/two"), "the same files in another folder, with other times")
    make_folder(s.work + "/reverse/train", -1)
    submit(s, tap, s.file("reverse/three"), "and written in another order")
    tap.eq((len(s.uploads()), list(s.objects())), (n, [digest]), "nothing is uploaded again")
    write(s.work + "/train/train.py", "print('other')\n")
    submit(s, tap, s.file("four"), "a changed file", "--again")
    tap.eq((len(s.uploads()), len(s.objects())), (n + 1, 2), "is another source")
    shutil.rmtree(os.path.dirname(s.objects()[digest]))
    shutil.copytree(s.work + "/copy/train", s.work + "/train", dirs_exist_ok=True)
    submit(s, tap, s.file("five"), "an archive that was deleted from the bucket")
    tap.ok(digest in s.objects() and len(s.uploads()) == n + 2, "is uploaded again")


def check_isolated(s, tap, digest):
    cid = submit(s, tap, s.file("isolated", USUAL + ", network_isolation: true, verify: artifacts"), "an isolated job")
    model = model_of(s, cid)
    tap.eq(json.loads(json.loads(model["hyperparameters.json"])["sagemaker_submit_directory"]), "/opt/ml/input/data/code/sourcedir.tar.gz", "looks for its source in a channel")
    tap.eq(hashlib.sha256(model["code/sourcedir.tar.gz"]).hexdigest(), digest, "and finds it there")


def check_dry(s, tap):
    n = len(s.uploads())
    write(s.work + "/dry/train/train.py", "dry\n")
    path = s.file("dry/dry")
    r = s.drover("validate", path)
    tap.ok(r.returncode == 0, "validate packs", r.stderr)
    r = s.drover("request", "--dry", path, "train", env={"DROVER_BUCKET": "s3://acme/code/", "AWS_REGION": "us-east-1", "DROVER_ROLE_ARN": "arn:aws:iam::111122223333:role/x"})
    uri = json.loads(json.loads(r.stdout)["HyperParameters"]["sagemaker_submit_directory"]) if r.returncode == 0 else r.stderr
    tap.ok(uri.startswith("s3://acme/code/sources/") and uri.endswith("/sourcedir.tar.gz"), "request --dry shows where it would lie", uri)
    r = s.drover("validate", "-", cwd=s.work + "/dry", stdin=open(path, encoding="utf-8").read())
    tap.ok(r.returncode == 0, "the folder of a file from stdin is one of where the command runs", r.stderr)
    tap.eq(len(s.uploads()), n, "none of them uploads")


def check_refused(s, tap):
    top = s.work + "/bad"
    write(top + "/train/train.py", "x\n")
    os.makedirs(top + "/empty")
    write(top + "/circle/train.py", "x\n")
    os.symlink(".", top + "/circle/self")
    write(top + "/dangling/train.py", "x\n")
    os.symlink("nowhere", top + "/dangling/gone.py")
    write(top + "/not/train.py", "x\n")
    write(top + "/not/.droverignore", "*.txt\n!a.txt\n")
    write(top + "/fifo/train.py", "x\n")
    os.mkfifo(top + "/fifo/pipe")
    with open(top + "/many.txt", "w", encoding="utf-8"):
        pass
    os.makedirs(top + "/many")
    for i in range(10001):
        with open(f"{top}/many/{i}", "w", encoding="utf-8"):
            pass
    for folder, why in (("./nowhere", "No such file"), ("./empty", "has no file"), ("./many.txt", "not a folder"), ("./circle", "link to a folder above"), ("./dangling", "gone.py"),
                        ("./not", ".droverignore:2"), ("./fifo", "neither a file nor a folder"), ("./many", "more than 10000 files")):
        r = s.drover("validate", s.file("bad/bad", text=FILE.replace("./train", folder)))
        tap.ok(r.returncode == 2 and "bad.yaml:6:" in r.stderr and why in r.stderr and f"source_dir: {folder}" in r.stderr, f"{folder}: refused with its place", r.stderr)
    r = s.drover("validate", s.file("bad/bad", text=FILE.replace("train.py", "trian.py")))
    tap.ok(r.returncode == 2 and "trian.py is not in ./train" in r.stderr, "a script that is not in the folder", r.stderr)
    r = s.drover("validate", s.file("bad/bad", text=FILE.replace("./train", '"{code}"').replace("budget", "vars: {code: ./train}\nbudget")))
    tap.ok(r.returncode == 2 and "without variables" in r.stderr, "a folder by a variable", r.stderr)
    r = s.drover("validate", s.file("bad/bad", USUAL + ", priorty: 5"))
    line = next(x for x in open(s.work + "/bad/bad.yaml", encoding="utf-8") if "priorty" in x)
    tap.ok(f"bad.yaml:6:{line.index('priorty') + 1} " in r.stderr and "./train" in r.stderr, "faults behind the folder have their place in the file as it is", r.stderr)


def check_api(s, tap, digest):
    def put(body, sha256=None):
        return s.raw("PUT", "/v1/sources/" + (sha256 or hashlib.sha256(body).hexdigest()), body, {"Content-Type": "application/gzip"})[:2]

    good = gzip.compress(b"x" * 2000, mtime=0)
    tap.eq([put(good)[0], put(good)[0]], [201, 200], "PUT makes a source, and says when it is there")
    row = json.loads(s.raw("GET", "/v1/sources/" + hashlib.sha256(good).hexdigest())[1])
    tap.eq((row["size"], row["uri"]), (len(good), f"s3://drover-test/sources/{row['sha256']}/sourcedir.tar.gz"), "GET shows where")
    tap.eq(s.raw("HEAD", "/v1/sources/" + digest)[:2], (200, b""), "HEAD finds one that was sent")
    tap.eq(s.raw("HEAD", "/v1/sources/" + "0" * 64)[0], 404, "and none that was not")
    tap.eq([put(good, "1" * 64)[0], put(b"no gzip")[0], put(b"")[0], put(good, "XYZ")[0]], [422, 422, 422, 404], "another digest, no gzip, nothing and a name that is no digest are refused")
    tap.eq(put(good + b"\0" * (64 << 20))[0], 413, "more than 64 MiB are refused")
    text = FILE.replace("größer", "train").replace("./train", "sha256:" + "2" * 64).replace("NAME", "unsent").replace("EXTRA", USUAL)
    status, answer = s.raw("POST", "/v1/campaigns", text.encode(), {"Content-Type": "application/yaml", "Idempotency-Key": "unsent"})[:2]
    tap.ok(status == 422 and "drover submit does it" in answer.decode(), "a campaign of a source that was not sent is refused", (status, answer))
    big = s.work + "/large"
    write(big + "/train/train.py", "x\n")
    with open(big + "/train/noise", "wb") as f:
        f.write(os.urandom(40 << 20))
    submit(s, tap, s.file("large/large"), "a source of 40 MB goes through the spool file")
    rows = [json.loads(x) for x in s.drover("audit", "--action", "source", "-o", "jsonl").stdout.splitlines()]
    tap.ok(rows and all(r["action"] == "source.put" for r in rows), "who sent a source is in the audit", rows[:2])


def check_default_bucket(s, tap):
    s.kill("droverd0")
    bucket = f"sagemaker-us-east-1-{ACCOUNT}"
    s.start_droverd(0, env={"DROVER_BUCKET": ""})
    write(s.work + "/default/train/train.py", "default\n")
    path = s.file("default/default", USUAL + ', output: "{bucket}/out/"')
    r = s.drover("submit", path, "-y")
    tap.ok(r.returncode == 1 and bucket in r.stderr and "NoSuchBucket" in r.stderr and "s3:PutObject" in r.stderr, "without a bucket in droverd's settings it is the account's, which must be there", r.stderr)
    os.makedirs(f"{s.dir}/aws/s3/{bucket}")
    cid = submit(s, tap, path, "and then is used")
    tap.eq(len(s.objects(bucket)), 1, "for the source")
    tap.ok(cid and os.path.isdir(f"{s.dir}/aws/s3/{bucket}/out"), "and for {bucket}")
    asked = [r for r in s.oracle("wire-log")["requests"] if r["operation"] == "GetCallerIdentity"]
    tap.eq(len(asked), 1, "the account is asked once")


def check_sealed(s, tap):
    """The bucket's policy refuses what is not encrypted with a key of KMS."""
    path = s.file("default/sealed", USUAL + ", output: s3://drover-test/sealed/")
    os.makedirs(f"{s.dir}/aws/s3/{SEALED}")
    for key in ("", "alias/team"):
        s.kill("droverd0")
        s.start_droverd(0, env={"DROVER_BUCKET": f"s3://{SEALED}", "DROVER_BUCKET_KMS_KEY": key})
        if not key:
            r = s.drover("submit", path, "-y")
            tap.ok(r.returncode == 1 and "AccessDenied" in r.stderr and not s.objects(SEALED), "a bucket that wants a key of KMS refuses a source without one", r.stderr)
    submit(s, tap, path, "with one it is taken")
    tap.eq(len(s.objects(SEALED)), 1, "and is there")
    for name, n in (("small", 1000), ("big", 9 << 20)):
        write(f"{s.dir}/aws/s3/drover-test/plain/{name}", name[0] * n)
    submit(s, tap, s.file("default/copied", text=COPY), "and so are the uploads of the worker's job")
    asked = {(r["operation"], os.path.basename(r["name"])) for r in s.oracle("wire-log")["requests"] if f"{SEALED}/copied" in r["name"] and r["status"] == 200}
    top = f"{s.dir}/aws/s3/{SEALED}/copied"
    there = {n: os.path.getsize(f"{top}/{n}") for n in ("small", "big") if os.path.exists(f"{top}/{n}")}
    tap.ok({("PutObject", "small"), ("CreateMultipartUpload", "big"), ("PutObject", "_manifest.json")} <= asked and there == {"small": 1000, "big": 9 << 20}, "in one piece and in parts", (asked, there))


def check_rules(s, tap):
    """What the rules of debugger and profiler have found is told with the attempt."""
    rule = "{name: %s, image: 503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest, parameters: {rule_to_invoke: Overfit}}"
    cid = submit(s, tap, s.file("default/rules", USUAL + f", output: s3://drover-test/rules/, debugger: {{rules: [{rule % 'Loss-IssuesFound'}]}}, profiler: {{rules: [{rule % 'Idle'}]}}"), "a job with rules")
    part = s.api("GET", f"/campaigns/{cid}/parts")["parts"][0]["id"]
    found = s.api("GET", "/parts/" + part)["attempt_list"][-1]["evidence"]
    tap.eq([(r["of"], r["name"], r["status"], r["details"][:26]) for r in (found or {}).get("rules", [])],
           [("debugger", "Loss-IssuesFound", "IssuesFound", "RuleEvaluationConditionMet"), ("profiler", "Idle", "NoIssuesFound", "")], "what they have found is its evidence")
    r = s.drover("get", part)
    tap.ok(r.returncode == 0 and "Loss-IssuesFound  IssuesFound" in r.stdout, "drover get tells it", (r.stdout, r.stderr))


def main():
    tap = Tap()
    with Sources() as s:
        os.makedirs(s.work)
        s.start()
        digest = check_archive(s, tap)
        check_once(s, tap, digest)
        check_isolated(s, tap, digest)
        check_dry(s, tap)
        check_refused(s, tap)
        check_api(s, tap, digest)
        check_default_bucket(s, tap)
        check_sealed(s, tap)
        check_rules(s, tap)
        s.check_requests(tap)
        s.check_invoice(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
