"""Shared by the tests of drover-local: starting it in a folder of its own, botocore clients, TAP lines.

Each test is a function of a script. run(tests) gives every test a fresh drover-local (unless it asks for
none), prints one TAP line for it and ends with a status. A failing check raises; the exception's text goes
into the log.
"""
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import urllib.request

import botocore.auth
import botocore.awsrequest
import botocore.config
import botocore.credentials
import botocore.exceptions
import botocore.parsers
import botocore.session

from kit import BIN, TOP, Tap, patience, wait_for

BINARY = os.environ.get("DROVER_LOCAL", os.path.join(BIN, "drover-local"))
KEY, SECRET = "AKIDLOCALTEST", "secret-of-the-local-tests"
ROLE = "arn:aws:iam::123456789012:role/worker"
GROUP = "/aws/sagemaker/TrainingJobs"
SESSION = botocore.session.Session()  # it keeps the services' models, which take a second to read
# A model server that answers a body with <body>.
MODEL_SERVER = """
import http.server, os
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_GET(self): self.do_POST()
    def do_POST(self):
        body = b"<" + self.rfile.read(int(self.headers.get("Content-Length", 0))) + b">"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer((os.environ["DROVER_HOST_ADDRESS"], int(os.environ["SAGEMAKER_BIND_TO_PORT"])), H).serve_forever()
"""
# What the life of each thing needs at a drover-local, with short waits.
LIFE = {"images": {"server": ["/usr/bin/python3", "-S", "-c", MODEL_SERVER]}, "endpoint_quotas": {"ml.g4dn.xlarge": 1},
        "fsx_create_seconds": 0.1, "fsx_delete_seconds": 0.1, "fsx_task_seconds": 0.1, "endpoint_start_seconds": 0.1, "endpoint_stop_seconds": 0.1, "kill_jobs_on_exit": True}
QUICK = {"cold_start_seconds": 0.02, "stop_seconds": 0.02, "stop_grace_seconds": 5}


def sign(url, service, method, path="/", body=b"", headers=None, key=KEY, secret=SECRET, region="us-east-1",
         scope_service=None, at=None):
    """Headers of a request signed by botocore's signer; the test changes and sends it."""
    cls = botocore.auth.S3SigV4Auth if service == "s3" else botocore.auth.SigV4Auth
    r = botocore.awsrequest.AWSRequest(method, url + path, data=body, headers=dict(headers or {}))
    auth = cls(botocore.credentials.Credentials(key, secret), scope_service or service, region)
    real = getattr(botocore.auth, "get_current_datetime", None)
    if at is not None:
        if real is not None:
            botocore.auth.get_current_datetime = lambda *a, **k: at
        else:
            clock = type("Clock", (), {"utcnow": staticmethod(lambda: at)})
            kept, botocore.auth.datetime = botocore.auth.datetime, type("M", (), {"datetime": clock})
    try:
        auth.add_auth(r)
    finally:
        if at is not None:
            if real is not None:
                botocore.auth.get_current_datetime = real
            else:
                botocore.auth.datetime = kept
    return dict(r.headers.items())


def send(url, method, path, headers, body=b""):
    """One raw request: (status, headers, body)."""
    c = http.client.HTTPConnection(url.split("//")[1], timeout=patience(20))
    try:
        c.request(method, path, body=body, headers=headers)
        r = c.getresponse()
        return r.status, dict(r.getheaders()), r.read()
    finally:
        c.close()


def call(local, operation, body, service="sagemaker", target="SageMaker."):
    """A JSON operation without botocore's serializer: (status, parsed body)."""
    data = json.dumps(body).encode()
    h = sign(local.url, service, "POST", body=data, headers={"X-Amz-Target": target + operation,
                                                             "Content-Type": "application/x-amz-json-1.1"})
    status, _, text = send(local.url, "POST", "/", h, data)
    return status, json.loads(text) if text else {}


class Local:
    """One drover-local; its root is deleted when it is closed."""

    def __init__(self, **config):
        os.makedirs(os.path.join(TOP, "build"), exist_ok=True)
        self.dir = tempfile.mkdtemp(prefix="local-", dir=os.path.join(TOP, "build"))
        self.root = os.path.join(self.dir, "root")
        os.makedirs(os.path.join(self.root, "s3", "bkt"))
        self.config = {"quotas": {"ml.m5.large": 4}, "prices": {"ml.m5.large": "0.115"},
                       "images": {"sh": ["/bin/sh", "-c"]}, "credentials": {KEY: SECRET},
                       **QUICK, **config}
        self.port = 0
        self.process = None
        self.session = SESSION
        self.start()

    def start(self):
        self.clients = {}
        path = os.path.join(self.dir, "config.json")
        with open(path, "w") as f:
            json.dump(self.config, f)
        with open(os.path.join(self.dir, "err"), "ab") as err:
            self.process = subprocess.Popen(
                [BINARY, "--root", self.root, "--config", path, "--listen", "127.0.0.1:%d" % self.port],
                stdout=subprocess.PIPE, stderr=err, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:"), (line, self.errors())
        self.url = line.split()[-1]
        self.port = int(self.url.rsplit(":", 1)[1])

    def errors(self):
        with open(os.path.join(self.dir, "err")) as f:
            return f.read()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def close(self):
        try:
            if self.process.poll() is None:
                self.post("reset")
                self.process.send_signal(signal.SIGTERM)
                status = self.process.wait(20)
                assert status == 0, "drover-local ended with %d: %s" % (status, self.errors())
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
            assert "ERROR: " not in self.errors() and "runtime error" not in self.errors(), self.errors()
            shutil.rmtree(self.dir, ignore_errors=True)

    def client(self, name, region="us-east-1", key=KEY, secret=SECRET, **config):
        """One client for each set of arguments."""
        wanted = (self.url, name, region, key, secret, *sorted(config.items()))
        if wanted not in self.clients:
            self.clients[wanted] = self.session.create_client(
                name, region_name=region, endpoint_url=self.url, aws_access_key_id=key, aws_secret_access_key=secret,
                config=botocore.config.Config(retries={"max_attempts": 0}, read_timeout=20, connect_timeout=5,
                                              max_pool_connections=64, **config))
        return self.clients[wanted]

    @property
    def sm(self):
        return self.client("sagemaker")

    @property
    def s3(self):
        return self.client("s3")

    def get(self, page):
        with urllib.request.urlopen(self.url + "/_local/" + page) as r:
            return json.load(r)

    def post(self, page, body=None):
        data = json.dumps(body if body is not None else {}).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + "/_local/" + page, data=data)) as r:
            return json.load(r)

    def faults(self, *faults, append=False):
        return self.post("faults", {"faults": list(faults), "append": append})

    def wire(self, operation=None, name=None):
        return [q for q in self.get("wire-log")["requests"]
                if (operation is None or q["operation"] == operation) and (name is None or q["name"] == name)]

    def job(self, name):
        found = [j for j in self.get("jobs")["jobs"] if j["name"] == name]
        return found[0] if found else None

    def request(self, name, command="true", **more):
        r = {"TrainingJobName": name, "RoleArn": ROLE,
             "AlgorithmSpecification": {"TrainingImage": "sh", "TrainingInputMode": "File",
                                        "ContainerArguments": [command]},
             "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
             "OutputDataConfig": {"S3OutputPath": "s3://bkt/out"},
             "StoppingCondition": {"MaxRuntimeInSeconds": 600}}
        for k, v in more.items():
            if isinstance(v, dict) and isinstance(r.get(k), dict):
                r[k] = {**r[k], **v}
            else:
                r[k] = v
        return r

    def create(self, name, command="true", **more):
        return self.sm.create_training_job(**self.request(name, command, **more))

    def describe(self, name):
        return self.sm.describe_training_job(TrainingJobName=name)

    def ended(self, name, seconds=20):
        sm = self.sm
        return wait_for(lambda: (lambda d: d if d["TrainingJobStatus"] in ("Completed", "Failed", "Stopped") else None)(
            sm.describe_training_job(TrainingJobName=name)), seconds, "the end of " + name)

    def running(self, name, seconds=20):
        sm = self.sm
        return wait_for(lambda: (lambda d: d if d["SecondaryStatus"] == "Training" else None)(
            sm.describe_training_job(TrainingJobName=name)), seconds, name + " to run")

    def run(self, name, command="true", **more):
        self.create(name, command, **more)
        return self.ended(name)

    def ml(self, name, host=1):
        return os.path.join(self.root, "jobs", name, "algo-%d" % host, "ml")


def error_of(call, *args, **kwargs):
    """The ClientError with which a call must fail: (code, message, status)."""
    try:
        call(*args, **kwargs)
    except botocore.exceptions.ClientError as e:
        return (e.response["Error"]["Code"], e.response["Error"].get("Message", ""),
                e.response["ResponseMetadata"]["HTTPStatusCode"])
    raise AssertionError("the call went through")


def lost(call, *args, **kwargs):
    """The connection must end without a complete answer."""
    try:
        call(*args, **kwargs)
    except (botocore.exceptions.HTTPClientError, botocore.exceptions.ConnectionError,
            botocore.exceptions.ResponseStreamingError, botocore.parsers.ResponseParserError) as e:
        return e
    raise AssertionError("the call was answered")


def same(got, want):
    assert got == want, "got %r, want %r" % (got, want)


def run(tests):
    tap = Tap()
    for test, config in tests:
        local, wrong = None, ""
        try:
            local = Local(**config)
            test(local)
            closing, local = local, None
            closing.close()
        except Exception:  # noqa: BLE001 whatever it was, the next test shall run
            wrong = traceback.format_exc()
            if local is not None:
                try:
                    local.close()
                except Exception as e:  # noqa: BLE001
                    wrong += "closing: %s" % e
        tap.ok(not wrong, test.__name__, wrong)
    sys.exit(tap.done())
