#!/usr/bin/env python3
"""Images by digest. Aim: a campaign runs the image that its tag meant when it was submitted, to its end, also when the tag is moved
in the middle; what ECR does not have is refused, and what it may not tell keeps its tag. Method: the real droverd and drover-local,
whose registry is restarted with another program under the same tag while the first of two parts runs.
"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import Tap, wait_for
from kit.stack import Stack

HERE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train"
FILE = """version: 1
name: NAME
budget: 5 USD
stages:
  - {name: train, image: "IMAGE", instance_type: ml.c5.xlarge, max_runtime: 1h, fan_out: {count: 2}, verify: none}
"""


class Images(Stack):
    def __init__(self):
        super().__init__("images", quotas={"ml.c5.xlarge": 1}, parts=1, rows=1)
        self.go = self.dir + "/go"
        self.first = ["/bin/sh", "-c", f"while [ ! -e {self.go} ]; do sleep 0.05; done; echo first >$DROVER_ML_ROOT/model/which"]
        self.second = ["/bin/sh", "-c", "echo second >$DROVER_ML_ROOT/model/which"]
        self.images = {HERE + ":1": self.first, HERE: self.second}

    def file(self, name, image):
        return FILE.replace("NAME", name).replace("IMAGE", image)

    def images_of(self, cid):
        """The image of each of the campaign's jobs, in order of their creation."""
        with open(self.dir + "/aws/requests.log", encoding="utf-8") as f:
            log = [json.loads(x) for x in f]
        bodies = [r["body"] for r in log if r["operation"] == "CreateTrainingJob" and r["status"] < 300]
        return [b["AlgorithmSpecification"]["TrainingImage"] for b in bodies if b["TrainingJobName"].startswith(f"t-{cid[2:]}-")]


def check_moved_tag(s, tap):
    old = s.submit(s.file("old", HERE + ":1"))
    wait_for(s.live_jobs, 60, "the first part to run")
    image = s.images_of(old)[0]
    tap.ok(image.startswith(HERE + "@sha256:") and len(image) == len(HERE) + 72, "the first part runs a digest", image)
    s.kill("local", signal.SIGKILL)
    s.images = {HERE + ":1": s.second, HERE: s.second, image: s.first}
    s.start_local()
    new = s.submit(s.file("new", HERE + ":1"))
    with open(s.go, "w", encoding="utf-8"):
        pass
    for cid, name in ((old, "old"), (new, "new")):
        c = wait_for(lambda cid=cid: s.ended(cid), 120, f"the end of {name}", step=0.1)
        tap.eq(c["state"], "succeeded", f"{name} succeeds")
    tap.eq(s.images_of(old), [image, image], "its second part, started after the tag was moved, runs the same digest")
    later = s.images_of(new)
    tap.ok(len(set(later)) == 1 and later[0] != image and later[0].startswith(HERE + "@sha256:"), "a campaign submitted after it runs the new one", later)
    spec = s.raw("GET", f"/v1/campaigns/{old}/spec")[1].decode()
    tap.ok(image in spec and HERE + ":1" in spec, "the stored campaign has the digest, and the file as it was sent")


def check_kinds(s, tap):
    before = len([r for r in s.oracle("wire-log")["requests"] if r["operation"] == "BatchGetImage"])
    latest = s.submit(s.file("latest", HERE))
    wait_for(lambda: s.ended(latest), 120, "the end of latest", step=0.1)
    image = s.images_of(latest)[0]
    tap.ok(image.startswith(HERE + "@sha256:"), "no tag means latest", image)
    pinned = s.submit(s.file("pinned", image))
    wait_for(lambda: s.ended(pinned), 120, "the end of pinned", step=0.1)
    tap.eq(s.images_of(pinned), [image, image], "a digest stays")
    asked = [r for r in s.oracle("wire-log")["requests"] if r["operation"] == "BatchGetImage"][before:]
    tap.eq(len(asked), 1, "ECR is asked once a campaign and image, and not of digests")
    for name, image, why in (("none", HERE + ":none", b"ECR has no image"), ("elsewhere", HERE.replace("us-east-1", "eu-west-1") + ":1", b"is in eu-west-1"), ("other", "drover/worker:test", None)):
        got, text, _ = s.raw("POST", "/v1/campaigns?dry_run=true", s.file(name, image).encode(), {"Content-Type": "application/yaml"})
        tap.ok(got == (422 if why else 200) and (why or b"image_registry") in text, f"{name}: {why}", text)
    vpc = s.file("vpc", HERE + ':none", image_config: {access: Vpc}, vpc: {subnets: [subnet-1], security_groups: [sg-1]}, role: "arn:aws:iam::123456789012:role/drover-worker')
    got, text, _ = s.raw("POST", "/v1/campaigns?dry_run=true", vpc.encode(), {"Content-Type": "application/yaml"})
    tap.ok(got == 200 and b"image_tag" in text, "of an image that the VPC reaches ECR is not asked", (got, text))
    s.faults({"kind": "access_denied", "operation": "BatchGetImage"})
    got, text, _ = s.raw("POST", "/v1/campaigns?dry_run=true", s.file("denied", HERE + ":1").encode(), {"Content-Type": "application/yaml"})
    tap.ok(got == 200 and b"image_tag" in text, "a registry that may not be asked: the tag stays, and the plan warns", (got, text))
    s.faults({"kind": "html_error", "operation": "BatchGetImage"})
    got, text, _ = s.raw("POST", "/v1/campaigns", s.file("down", HERE + ":1").encode(), {"Content-Type": "application/yaml", "Idempotency-Key": "down"})
    tap.ok(got == 503, "a registry that does not answer: nothing is submitted, the client tries again", (got, text))
    s.faults()


def main():
    tap = Tap()
    with Images() as s:
        s.start()
        check_moved_tag(s, tap)
        check_kinds(s, tap)
        s.check_requests(tap)
        s.check_invoice(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
