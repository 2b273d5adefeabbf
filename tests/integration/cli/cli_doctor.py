#!/usr/bin/env python3
"""`drover doctor`. Aim: each line is good or says what to do: credentials, AWS's clock, region, role, bucket, image, subnets, queue of events, server of mail, quotas, warm pools,
the leader, each one broken by itself. Method: the real drover, droverd and drover-local; droverd is restarted with one thing wrong at a time.
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, VARIANT, Tap, measure, patience, smtp, wait_for
from kit.stack import KEY, SECRET, Stack

ACCOUNT = "123456789012"
IMAGE = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/drover-worker"
VPC = """version: 1
name: vpc
budget: 5 USD
security: {vpc: {subnets: [SUBNETS], security_groups: [sg-1]}}
stages:
  - {name: one, image: "drover/worker:test", instance_type: ml.p3.2xlarge, max_runtime: 1h, verify: none}
"""
ROLE = f"arn:aws:iam::{ACCOUNT}:role/drover-worker"


class Doctor(Stack):
    def __init__(self):
        super().__init__("doctor", quotas={"ml.c5.xlarge": 4, "ml.p3.2xlarge": 0}, parts=1, rows=1, images={IMAGE + ":1": ["/bin/true"]}, env={"DROVER_ROLE_ARN": ROLE, "DROVER_WORKER_IMAGE": IMAGE + ":1"},
                         local={"queues": {"drover-events": "aws.sagemaker"}, "warm_quotas": {"ml.c5.xlarge": 0}, "subnets": {"subnet-0a": {"zone": "us-east-1a", "free": 9}, "subnet-0b": {"zone": "us-east-1b", "free": 3}, "subnet-0c": {"zone": "us-east-1c", "free": 0}}})

    def doctor(self, *args):
        e = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{self.ports[next(k for k in self.procs if k.startswith('droverd'))]}", "DROVER_TOKEN_FILE": self.token_file, "LC_ALL": "C.UTF-8"}
        return subprocess.run([self.release_bin + "/drover", "doctor", *args], capture_output=True, text=True, env=e, timeout=patience(120), check=False)

    def checks(self):
        r = self.doctor("-o", "json")
        v = json.loads(r.stdout)
        return {c["check"]: (c["ok"], c["detail"], c.get("next", "")) for c in v["checks"]}, v["ok"], r.returncode

    def again(self, **env):
        self.kill("droverd0")
        self.start_droverd(0, env=env)
        wait_for(lambda: json.loads(self.raw("GET", "/readyz")[1])["leading"], 60, "a leader")


def check_good(s, tap):
    s.submit("version: 1\nname: small\nbudget: 5 USD\nstages:\n  - {name: one, image: \"" + IMAGE + ":1\", instance_type: ml.c5.xlarge, max_runtime: 1h, verify: none}\n")
    wait_for(lambda: any(q["limit"] is not None for q in s.api("GET", "/quotas")["quotas"]), 60, "the quotas", step=0.1)
    found, ok, status = s.checks()
    tap.ok(ok and status == 0 and all(c[0] for c in found.values()), "all is good", found)
    tap.eq(list(found), ["server", "clock", "token", "credentials", "aws clock", "region", "role", "bucket", "image", "subnets", "events", "mail", "leader", "database", "aws", "quotas", "warm pools", "prices", "parked"], "its lines")
    tap.eq((found["credentials"][1], found["region"][1], found["role"][1], found["bucket"][1], found["image"][1]),
           (f"arn:aws:iam::{ACCOUNT}:user/drover", "us-east-1", ROLE, "s3://drover-test", IMAGE + ":1"), "say what is there")
    tap.ok("iam:PassRole" in found["role"][2], "what cannot be tried beforehand is named", found["role"])
    tap.ok(found["quotas"][1].endswith("1 of them with quota 0"), "types with quota 0 are counted", found["quotas"])
    tap.eq(found["prices"], (True, "2 of the file", ""), "as are prices, by who says them")
    tap.ok(found["warm pools"][1].startswith("0 of ") and "for training warm pool usage" in found["warm pools"][2], "a warm quota of 0 says what to ask for", found["warm pools"])
    r = s.doctor()
    tap.ok(r.returncode == 0 and "✓ bucket      s3://drover-test\n" in r.stdout and "✗" not in r.stdout, "for people", r.stdout)


def check_bad(s, tap):
    def one(check, word, next_word, what):
        found, ok, status = s.checks()
        wrong = {k for k, c in found.items() if not c[0]}
        tap.ok(not ok and status == 1 and wrong == {check} and word in found[check][1] and next_word in found[check][2], what, {k: found[k] for k in wrong | {check}})

    s.again(DROVER_ROLE_ARN="arn:aws:iam::999999999999:role/drover")
    one("role", "another account", "DROVER_ROLE_ARN", "a role of another account")
    s.again(DROVER_ROLE_ARN="arn:aws:iam::123456789012:user/me")
    one("role", "not the ARN of a role", "arn:aws:iam::", "a user in place of a role")
    s.again(DROVER_BUCKET="")
    one("bucket", "NoSuchBucket", f"aws s3 mb s3://sagemaker-us-east-1-{ACCOUNT}", "a default bucket that is not there")
    s.again(DROVER_WORKER_IMAGE=IMAGE + ":2")
    one("image", "ECR has no", "push", "an image that is not there")
    s.again(DROVER_WORKER_IMAGE=IMAGE + "@sha256:" + "0" * 64)
    one("image", "ECR has no", "push", "a digest that is not there")
    s.again(DROVER_WORKER_IMAGE=IMAGE.replace("us-east-1", "eu-west-1") + ":1")
    one("image", "another region", "region of the jobs", "an image of another region")
    s.again()
    s.faults({"kind": "access_denied", "operation": "ListObjectsV2"})
    one("bucket", "AccessDenied", "s3:ListBucket", "a bucket that may not be listed")
    s.faults({"kind": "access_denied", "operation": "BatchGetImage"})
    found, ok, _ = s.checks()
    tap.ok(ok and "ecr:BatchGetImage" in found["image"][2], "a registry that may not be asked is advice only", found["image"])
    s.faults()
    s.again(DROVER_WORKER_IMAGE="drover/worker:test", DROVER_ROLE_ARN="")
    found, ok, _ = s.checks()
    tap.ok(ok and "not in ECR" in found["image"][2] and "each campaign file" in found["role"][1], "no role and an image elsewhere are advice", (found["image"], found["role"]))
    shift = {"LD_PRELOAD": os.path.join(TOP, "build", VARIANT, "tests/kit/clock_shift.so"), "CLOCK_SHIFT_S": "-400", "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}
    s.again(**shift)
    found, ok, status = wait_for(lambda: (lambda it: it if it[0]["aws clock"][1] != "0 s apart from AWS" else None)(s.checks()), 60, "what AWS says of the clock", step=0.2)
    tap.ok(not ok and status == 1 and {k for k, c in found.items() if not c[0]} == {"clock", "aws clock"} and re.fullmatch(r"(399|40[0-5]) s apart from AWS", found["aws clock"][1]) and "droverd's machine" in found["aws clock"][2], "a clock of droverd's machine that is 400 s late", found)
    s.again(AWS_SECRET_ACCESS_KEY="wrong")
    found, ok, status = s.checks()
    tap.ok(status == 1 and not found["credentials"][0] and "SignatureDoesNotMatch" in found["credentials"][1] and "role of its machine" in found["credentials"][2] and "bucket" not in found,
           "wrong keys; what depends on them is not asked", found)


def check_subnets(s, tap):
    def used(*subnets):
        text = VPC.replace("SUBNETS", ", ".join(subnets))
        cid = s.submit(text)
        found, ok, _ = s.checks()
        s.api("POST", f"/campaigns/{cid}:cancel")
        wait_for(lambda: s.ended(cid), 60, "the end of it", step=0.1)
        return found["subnets"], ok

    tap.eq(s.checks()[0]["subnets"][1], "no campaign that has not ended runs in a VPC", "no subnet is used")
    tap.eq(used("subnet-0a", "subnet-0b"), ((True, "2 used; subnet-0b in us-east-1b has the fewest free addresses: 3", ""), True), "subnets of a live campaign")
    line, ok = used("subnet-0a", "subnet-0c")
    tap.ok(not ok and not line[0] and "subnet-0c" in line[1] and "address" in line[2], "one without a free address", line)
    line, ok = used("subnet-0a", "subnet-0d")
    tap.ok(not ok and "'subnet-0d' does not exist" in line[1] and "security.vpc.subnets" in line[2], "one that does not exist", line)
    s.faults({"kind": "access_denied", "operation": "DescribeSubnets"})
    line, ok = used("subnet-0a")
    tap.ok(not ok and "ec2:DescribeSubnets" in line[2], "when EC2 may not be asked", line)
    s.faults()


def check_events(s, tap):
    tap.ok(s.checks()[0]["events"] == (True, "no queue is set: lists tell how jobs move", "DROVER_EVENTS_QUEUE_URL makes lists rare: deploy/cloudformation makes the queue"), "no queue of events is advice")
    url = f"http://127.0.0.1:{s.local_port}/{ACCOUNT}/"
    s.again(DROVER_EVENTS_QUEUE_URL=url + "drover-events")
    found, ok, _ = s.checks()
    tap.ok(ok and found["events"][:2] == (True, url + "drover-events answers, 0 messages wait"), "a queue that answers", found["events"])
    s.faults({"kind": "access_denied", "operation": "GetQueueAttributes"})
    found, ok, _ = s.checks()
    tap.ok(not ok and "sqs:ReceiveMessage" in found["events"][2], "one that may not be asked", found["events"])
    s.faults()
    s.again(DROVER_EVENTS_QUEUE_URL=url + "none", AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
    found, ok, _ = s.checks()
    tap.ok(not ok and "QueueDoesNotExist" in found["events"][1] and "DROVER_EVENTS_QUEUE_URL" in found["events"][2], "one that is not there", found["events"])
    s.again()


def check_mail(s, tap):
    def line(**env):
        s.again(**env)
        found, ok, status = s.checks()
        return found["mail"], ok and status == 0

    def settings(server, password="right", **more):
        with open(s.dir + "/smtp-credentials", "w") as f:
            f.write(f"drover:{password}\n")
        return {"DROVER_SMTP_URL": server.url, "DROVER_SMTP_FROM": "drover@example.org", "DROVER_SMTP_CREDENTIALS_FILE": f.name, "DROVER_SMTP_CA_FILE": certificate[0], **more}

    tap.ok(s.checks()[0]["mail"][0] and "DROVER_SMTP_URL" in s.checks()[0]["mail"][2], "no server of mail is advice", s.checks()[0]["mail"])
    certificate, users = smtp.certificate(s.dir), {"drover": "right"}
    for mode in ("starttls", "smtps"):
        server = smtp.Server(certificate, mode, users)
        tap.eq(line(**settings(server)), ((True, f"{server.url} takes mail from drover@example.org", ""), True), f"a server that takes mail by {mode}")
        tap.ok(not server.mails and {said.split()[0] for _, said in server.said} <= {"EHLO", "STARTTLS", "AUTH", "MAIL", "QUIT"} and all(tls for tls, said in server.said if said.startswith(("AUTH", "MAIL"))), "nothing is sent to it", server.said)
    server = smtp.Server(certificate, users=users)

    def bad(word, next_word, what, **env):
        got, ok = line(**env)
        tap.ok(not ok and not got[0] and word in got[1] and next_word in got[2], what, got)

    bad("answered 535: 5.7.8 wrong name or password", "USER:PASSWORD", "a wrong password", **settings(server, "wrong"))
    bad("answered 530: 5.7.0 say who you are", "DROVER_SMTP_CREDENTIALS_FILE", "a server that wants a password, and none is set", **settings(server, DROVER_SMTP_CREDENTIALS_FILE=""))
    bad("answered 553: 5.1.8", "DROVER_SMTP_FROM", "a sender it does not take", **settings(server, DROVER_SMTP_FROM="bad@example.org"))
    bad("certificate", "DROVER_SMTP_CA_FILE", "a certificate nobody vouches for", **settings(server, DROVER_SMTP_CA_FILE=""))
    bad("STARTTLS", "STARTTLS", "a server without TLS", **settings(smtp.Server(certificate, "plain", users)))
    bad("127.0.0.1", "DROVER_SMTP_URL", "no server there", **settings(server, DROVER_SMTP_URL="smtp://127.0.0.1:1"))
    with open(s.dir + "/droverd0.log") as f:
        tap.ok("right" not in f.read().replace("copyright", ""), "the password is not in the log")
    s.again()


def check_leader(s, tap):
    pid = s.procs["droverd0"].pid
    line = wait_for(lambda: s.checks()[0]["leader"], 60, "who leads")
    tap.ok(line[0] and f"/{pid} leads, its lease of " in line[1], "who leads is named, with the age of its lease", line)
    measure.psql(s, "ALTER SYSTEM SET full_page_writes = off; SELECT pg_reload_conf();")  # a leader goes on with it, nobody becomes one
    s.start_droverd(1)
    s.kill("droverd0")
    wait_for(lambda: not s.checks()[0]["leader"][0], 60, "the end of the lease")
    found, ok, status = s.checks()
    line = found["leader"]
    tap.ok(not ok and status == 1 and f"/{pid} last renewed its lease of " in line[1] and "start a droverd" in line[2] and [k for k, c in found.items() if not c[0]] == ["leader"], "a lease that nobody renews is bad, though a droverd answers", found)
    measure.psql(s, "ALTER SYSTEM RESET full_page_writes; SELECT pg_reload_conf();")
    tap.ok(wait_for(lambda: f"/{s.procs['droverd1'].pid} leads" in s.checks()[0]["leader"][1], 60, "the standby to lead"), "then the standby leads")


def main():
    tap = Tap()
    with Doctor() as s:
        s.start()
        check_good(s, tap)
        check_subnets(s, tap)
        check_events(s, tap)
        check_mail(s, tap)
        check_bad(s, tap)
        s.again(AWS_SECRET_ACCESS_KEY=SECRET, AWS_ACCESS_KEY_ID=KEY)
        check_leader(s, tap)
        s.check_requests(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
