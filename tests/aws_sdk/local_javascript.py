#!/usr/bin/python3
"""Aim: the AWS SDK for JavaScript, pinned, works against drover-local in all that a campaign meets, and loses nothing: each member
of each answer is in what the client read, and the reverse; errors keep their codes and texts.

Method: life.mjs, with the packages of build/aws_sdk, against one drover-local. Prints TAP.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kit import TOP, Tap, patience  # noqa: E402
from kit.local import KEY, LIFE, ROLE, SECRET, Local  # noqa: E402
from kit.service_model import judge  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGES = {**LIFE["images"], "sh": ["/bin/sh", "-c"], "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:1": ["/bin/true"]}
# What drover-local answers and no client of the SDK asks here: DeleteTrainingJob is in no SDK, others have packages of their own.
ELSEWHERE = {"DeleteTrainingJob", "GetSecretValue", "GetParameter", "DescribeSubnets"}


def main():
    tap = Tap()
    local = Local(**{**LIFE, "images": IMAGES, "fsx_task_seconds": 1, "queues": {"plain": "", "events": "aws.sagemaker"}, "endpoint_quotas": {"ml.g4dn.xlarge": 2},
                      "spot_quotas": {"ml.m5.large": 4}, "warm_quotas": {"ml.m5.large": 4}, "web_identities": {"web-token": ROLE}, "log_bodies": True})
    try:
        run = subprocess.run(["node", os.path.join(HERE, "life.mjs"), local.url, KEY, SECRET, ROLE], env={**os.environ, "PACKAGES": os.path.join(TOP, "build/aws_sdk/")},
                             capture_output=True, text=True, timeout=patience(180), check=False)
        tap.ok(run.returncode == 0, "the clients run", run.stderr[-3000:])
        if run.returncode:
            return tap.done()
        found = json.loads(run.stdout)
        with open(os.path.join(TOP, "worker/local/iam/action.def"), encoding="utf-8") as f:
            played = {line.split('"')[3] for line in f if line.startswith("X(")} | {"AssumeRoleWithWebIdentity"}  # which needs no policy
        tap.eq(found["wrong"], [], "each thing has its life: objects, jobs, logs, an endpoint, a file system, quotas, prices, an image, a queue")
        tap.eq(sorted(played - set(found["operations"]) - ELSEWHERE), [], f"{len(found['operations'])} operations are asked: every one that drover-local plays")
        tap.eq(found["losses"], [], f"{sum(found['operations'].values())} answers and {found['errors']} errors are read without loss")
        asked = judge([local.root + "/requests.log"])
        tap.eq(asked["deviations"], [], f"Debian's botocore accepts the SDK's {asked['requests']} requests")
    finally:
        local.close()
    return tap.done()


sys.exit(main())
