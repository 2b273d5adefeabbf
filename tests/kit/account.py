"""What an administrator's commands ask of AWS and drover-local does not play: CloudFormation's stacks and ECR's repositories, for awscli.
A stack's bucket is made in drover-local; an image is there once it was pushed, with the digest that drover-local gives it.
"""
import hashlib
import http.server
import json
import os
import re
import threading
import urllib.parse
import xml.sax.saxutils

from kit import cloudformation

REGION, ACCOUNT = "us-east-1", "123456789012"
REGISTRY = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com"


def xml_of(value):
    if isinstance(value, dict):
        return "".join(f"<{k}>{xml_of(v)}</{k}>" for k, v in value.items())
    if isinstance(value, list):
        return "".join(f"<member>{xml_of(v)}</member>" for v in value)
    return xml.sax.saxutils.escape(str(value))


class Refused(Exception):
    pass


class Account:
    """buckets: drover-local's folder of them. images: its configuration. pushed: a file with the names that were pushed, one a line."""

    def __init__(self, buckets, images, pushed):
        self.buckets, self.images, self.pushed = buckets, images, pushed
        self.stacks, self.changes, self.repositories, self.calls = {}, {}, set(), []
        account = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                target = self.headers.get("X-Amz-Target")
                status, kind, text = account.json(target, json.loads(body)) if target else account.query(dict(urllib.parse.parse_qsl(body)))
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()

    def query(self, q):
        self.calls.append(q["Action"])
        try:
            result = getattr(self, q["Action"])(q)
            return 200, "text/xml", f"<{q['Action']}Response><{q['Action']}Result>{xml_of(result)}</{q['Action']}Result></{q['Action']}Response>"
        except Refused as e:
            return 400, "text/xml", f"<ErrorResponse><Error><Type>Sender</Type><Code>ValidationError</Code><Message>{xml_of(str(e))}</Message></Error></ErrorResponse>"

    def stack(self, name):
        if name not in self.stacks:
            raise Refused(f"Stack with id {name} does not exist")
        return self.stacks[name]

    def CreateChangeSet(self, q):
        with_capability = "CAPABILITY_NAMED_IAM" in q.values()
        template = cloudformation.load(q["TemplateBody"])
        named = [n for n, r in template["Resources"].items() if r["Type"].startswith("AWS::IAM::") and any(k.endswith("Name") for k in r["Properties"])]
        if named and not with_capability:
            raise Refused("Requires capabilities : [CAPABILITY_NAMED_IAM]")
        given = {q[k]: q.get(k.replace("ParameterKey", "ParameterValue")) for k in q if re.fullmatch(r"Parameters\.member\.\d+\.ParameterKey", k)}
        self.changes[q["ChangeSetName"]] = cloudformation.Stack(template, {k: v for k, v in given.items() if v is not None}, REGION, ACCOUNT)
        return {"Id": q["ChangeSetName"], "StackId": q["StackName"]}

    def DescribeChangeSet(self, q):
        return {"ChangeSetName": q["ChangeSetName"], "StackName": q["StackName"], "Status": "CREATE_COMPLETE", "ExecutionStatus": "AVAILABLE"}

    def ExecuteChangeSet(self, q):
        stack = self.stacks[q["StackName"]] = self.changes[q["ChangeSetName"]]
        for name in stack.made():
            if stack.template["Resources"][name]["Type"] == "AWS::S3::Bucket":
                os.makedirs(f"{self.buckets}/{stack.reference(name)}")
        return {}

    def DescribeStacks(self, q):
        stack = self.stack(q["StackName"])
        outputs = [{"OutputKey": k, "OutputValue": stack.output(k)} for k in stack.template["Outputs"]]
        return {"Stacks": [{"StackName": q["StackName"], "StackId": q["StackName"], "StackStatus": "CREATE_COMPLETE", "CreationTime": "2026-01-01T00:00:00Z", "Outputs": outputs}]}

    def DeleteStack(self, q):
        self.stacks.pop(q["StackName"], None)
        return {}

    def json(self, target, q):
        operation = target.split(".")[1]
        self.calls.append(operation)
        try:
            return 200, "application/x-amz-json-1.1", json.dumps(getattr(self, operation)(q))
        except Refused as e:
            return 400, "application/x-amz-json-1.1", json.dumps({"__type": str(e), "message": str(e)})

    def GetAuthorizationToken(self, _):
        return {"authorizationData": [{"authorizationToken": "QVdTOnBhc3M=", "proxyEndpoint": "https://" + REGISTRY}]}

    def DescribeRepositories(self, q):
        if not set(q["repositoryNames"]) <= self.repositories:
            raise Refused("RepositoryNotFoundException")
        return {"repositories": [{"repositoryName": n} for n in q["repositoryNames"]]}

    def CreateRepository(self, q):
        self.repositories.add(q["repositoryName"])
        return {"repository": {"repositoryName": q["repositoryName"]}}

    def DeleteRepository(self, q):
        self.repositories.remove(q["repositoryName"])
        return {"repository": {"repositoryName": q["repositoryName"]}}

    def DescribeImages(self, q):
        name = f"{REGISTRY}/{q['repositoryName']}:{q['imageIds'][0]['imageTag']}"
        there = open(self.pushed, encoding="utf-8").read().split() if os.path.exists(self.pushed) else []
        if name not in there:
            raise Refused("ImageNotFoundException")
        text = f"{name} {json.dumps(self.images[name], separators=(',', ':'))}"
        return {"imageDetails": [{"repositoryName": q["repositoryName"], "imageDigest": "sha256:" + hashlib.sha256(text.encode()).hexdigest()}]}
