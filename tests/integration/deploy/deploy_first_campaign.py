#!/usr/bin/python3
"""deploy/first-campaign.md. Aim: whoever types its commands, in their order and with nothing set up, gets the first part, sees what it cost, and
leaves nothing. Method: the blocks of the file are run by one shell with an empty home. make, awscli, droverd, drover, drover-worker and drover-local
are the real ones; `aws` gets the address of who plays the service, `docker` notes what is pushed: there is no engine here (the Dockerfiles' steps
are run by deploy_images_build.py).
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import BIN, TOP, Tap, free_port, patience, policies, service_model, wait_for
from kit.account import ACCOUNT, REGION, REGISTRY, Account

KEY, SECRET = "AKIAFIRSTCAMPAIGN", "of-the-first-campaign"
BUCKET = f"drover-{REGION}-{ACCOUNT}"
AWS = """#!/bin/sh
case $1 in cloudformation | ecr) at=ACCOUNT_URL ;; *) at=LOCAL_URL ;; esac
exec /usr/bin/aws --endpoint-url $at "$@"
"""
# That of Debian 12: no buildx, and a builder that knows no more flags than these. ENGINE_IS: another engine's version, which then has a buildx.
DOCKER = """#!/bin/sh
echo "$@" >>LOG
case $1 in
    --version) echo "${ENGINE_IS:-Docker version 20.10.24+dfsg1, build 297e128}" ;;
    buildx) [ -n "${ENGINE_IS:-}" ] || { echo "docker: 'buildx' is not a docker command." >&2; exit 1; } ;;
    login) cat >/dev/null ;;
    build)
        for flag; do
            case $flag in
                --platform | -f | -t) ;;
                --provenance=*) case ${ENGINE_IS:-} in Docker*) ;; *) echo "unknown flag: --provenance" >&2; exit 125 ;; esac ;;
                -*) echo "unknown flag: $flag" >&2; exit 125 ;;
            esac
        done
        eval "last=\\${$#}" && [ -e "$last/Makefile" ]
        ;;
    push) echo "$2" >>PUSHED ;;
esac
"""
tap = Tap()


def blocks():
    with open(TOP + "/deploy/first-campaign.md", encoding="utf-8") as f:
        text = f.read()
    return re.findall(r"^## (\d+)\. [^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S), re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)


def version():
    with open(TOP + "/include/common/version.h", encoding="utf-8") as f:
        return re.search(r'DROVER_VERSION "(.*)"', f.read())[1]


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)


class Road:
    def __init__(self, folder):
        self.dir, self.home, self.s3 = folder, folder + "/home", folder + "/aws/s3"
        self.image = f"{REGISTRY}/drover-worker:{version()}"
        self.images = {self.image: [BIN + "/drover-worker"]}
        self.port, self.web = free_port(), free_port()
        os.makedirs(self.home)
        os.makedirs(self.s3)
        os.makedirs(folder + "/bin")
        config = {"quotas": {"ml.m5.large": 2}, "prices": {"ml.m5.large": "0.115"}, "cold_start_seconds": 0.2, "stop_seconds": 0.2, "images": self.images, "credentials": {KEY: SECRET}, "account": ACCOUNT, "queues": {"drover-events": "aws.sagemaker"}, "log_bodies": True,
                  "policies": {f"arn:aws:iam::{ACCOUNT}:role/drover-worker": [policies.shipped("job", ACCOUNT, [BUCKET])]}}  # of its jobs; the walker is an administrator
        write(folder + "/local.json", json.dumps(config))
        self.log = open(folder + "/local.log", "wb")
        self.local = subprocess.Popen([BIN + "/drover-local", "--listen", f"127.0.0.1:{self.port}", "--root", folder + "/aws", "--config", folder + "/local.json"], stdout=self.log, stderr=self.log)
        self.account = Account(self.s3, self.images, folder + "/pushed")
        self.url = f"http://127.0.0.1:{self.port}"
        write(folder + "/bin/aws", AWS.replace("ACCOUNT_URL", self.account.url).replace("LOCAL_URL", self.url))
        write(folder + "/bin/docker", DOCKER.replace("LOG", folder + "/docker.log").replace("PUSHED", folder + "/pushed"))

    def env(self):
        """A login's, and where the services are."""
        return {"PATH": self.dir + "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.home, "LC_ALL": "C.UTF-8", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_ENDPOINT_URL": self.url, "DROVER_LISTEN": f"127.0.0.1:{self.web}", "DROVER_URL": f"http://127.0.0.1:{self.web}", "AWS_EC2_METADATA_DISABLED": "true"}

    def walk(self, commands):
        """The commands in one shell; a mark on both streams ahead of each block."""
        script = "".join(f"echo '==== {i}' | tee /dev/stderr\n{block}" for i, block in enumerate(commands, 1))
        return subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=TOP, env=self.env(), capture_output=True, text=True, timeout=patience(300), check=False, stdin=subprocess.DEVNULL)

    def close(self):
        if self.log.closed:
            return
        self.local.terminate()
        self.local.wait()
        self.account.close()
        self.log.close()
        subprocess.run(["bash", TOP + "/tests/demo/down.sh", self.dir], check=False)


def parts_of(text):
    found = re.split(r"^==== (\d+)\n", text, flags=re.M)
    return dict(zip(map(int, found[1::2]), found[2::2]))


def check_document(sections, commands):
    tap.eq([int(n) for n, _ in sections], list(range(1, len(sections) + 1)), "the steps are numbered")
    tap.ok(all("```sh\n" in text for _, text in sections) and len(commands) == len(sections), "and each has its commands", len(commands))
    with open(TOP + "/deploy/first-campaign.md", encoding="utf-8") as f:
        links = re.findall(r"\]\(([\w./-]+)\)", f.read())
    tap.ok(links and all(os.path.exists(f"{TOP}/deploy/{x}") for x in links), "what it links to is there", links)


def check_road(road, commands):
    begun = time.monotonic()
    r = road.walk(commands)
    print(f"# walked in {time.monotonic() - begun:.0f} s; who reads has 30 minutes", flush=True)
    out, err = parts_of(r.stdout), parts_of(r.stderr)
    last = max(out, default=0)
    tap.ok(r.returncode == 0, "every command succeeds", (r.returncode, f"in step {last}", out.get(last, "")[-1500:], err.get(last, "")[-1500:]))
    tap.ok({"CreateChangeSet", "ExecuteChangeSet", "CreateRepository", "DeleteStack", "DeleteRepository"} <= set(road.account.calls), "the stack and the repository are made, and deleted", road.account.calls)
    log = open(road.dir + "/docker.log", encoding="utf-8").read() if os.path.exists(road.dir + "/docker.log") else ""
    tap.ok("login --username AWS" in log and "build --platform linux/amd64 -f deploy/docker/worker.Dockerfile" in log and f"push {road.image}" in log, "the image is built and pushed", log)
    doctor = out.get(4, "")
    tap.ok(doctor.count("✓") >= 12 and "✗" not in doctor and "@sha256:" in doctor and "prices" in doctor and "of AWS Pricing, read" in doctor and f"role/drover-worker" in doctor, "doctor finds nothing wrong, with the settings of steps 2 and 3", doctor)
    smoke = out.get(5, "")
    cost = re.search(r"^✓ cost +(\d\.\d+) USD", smoke, re.M)
    tap.ok("✓ manifest" in smoke and cost and float(cost[1]) < 0.1, "the first part is made, and what it cost is said", smoke)
    left = [os.path.join(at, n) for at, dirs, names in os.walk(road.home) for n in names + dirs if ".aws" not in at and n not in (".aws", ".config", ".npm", ".cache")]
    tap.eq((os.path.exists(f"{road.s3}/{BUCKET}"), road.account.stacks, road.account.repositories, left), (False, {}, set(), []), "and nothing is left: no bucket, no stack, no repository, no file")


def check_push(road):
    """A second push of one version, and one of another."""
    env = {**road.env(), "AWS_REGION": REGION}
    run = lambda *args, **more: subprocess.run([TOP + "/deploy/docker/push-images.sh", *args], env={**env, **more}, capture_output=True, text=True, check=False)  # noqa: E731
    first = run()
    pushed = open(road.dir + "/pushed", encoding="utf-8").read()
    again = run()
    tap.ok(first.stdout == again.stdout and re.fullmatch(rf"DROVER_WORKER_IMAGE={REGISTRY}/drover-worker@sha256:[0-9a-f]{{64}}\n", first.stdout), "a version that is there keeps its digest", (first, again))
    tap.ok(open(road.dir + "/pushed", encoding="utf-8").read() == pushed and "another --tag" in again.stderr, "and is not pushed again: another needs another tag", again.stderr)
    r = run("--dry-run", "--only", "droverd,training", "--tag", "7")
    tap.ok(r.returncode == 0 and f"+ docker push {REGISTRY}/droverd:7" in re.sub(r"\+ \S+/docker", "+ docker", r.stderr) and "TRAINING_IMAGE=" in r.stdout and open(road.dir + "/pushed", encoding="utf-8").read() == pushed, "--dry-run pushes nothing", r)
    said = [run("--dry-run", ENGINE_IS=x).stderr.count("--provenance=false") for x in ("Docker version 27.1.1, build 6312585", "podman version 4.3.1", "")]
    tap.eq(said, [1, 0, 0], "provenance is left out where the builder makes it: docker with buildx, neither podman nor Debian's docker")
    r = run("--only", "worker,nobody")
    tap.ok(r.returncode == 1 and "there is no image 'nobody'" in r.stderr and r.stdout == "", "an image that there is not is refused before anything is built", r)


def main():
    folder = tempfile.mkdtemp(prefix="drover-road-")
    os.chmod(folder, 0o755)
    sections, commands = blocks()
    check_document(sections, commands)
    road = Road(folder)
    try:
        wait_for(lambda: b"drover-local" in open(folder + "/local.log", "rb").read() or road.local.poll() is not None, 30)
        check_road(road, commands)
        check_push(road)
        road.close()
        service_model.hold(folder + "/aws/requests.log")
    finally:
        road.close()
        shutil.rmtree(folder, ignore_errors=True)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
