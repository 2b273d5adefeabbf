#!/usr/bin/python3
"""Aim: drover finds credentials, profiles and endpoints where Debian's botocore finds them.

Method: creds_tool prints what our search decides; botocore's session is asked in a process of its
own with the same environment and files, without any network (its requests are intercepted). Cases
by name and drawn ones (SEED). INI texts are held against configparser, hosts against botocore's
endpoint rules. Known differences, on purpose: a comment behind white space after a key of the
credentials is cut off (as the other SDKs do), keys of several lines are refused, SSO and MFA are refused, an empty variable is as
good as none.
"""
import configparser
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

try:
    import botocore.session
except ImportError:  # a user's python3 may come before Debian's, which has the package
    if sys.executable == "/usr/bin/python3":
        raise
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
from botocore.endpoint_provider import EndpointProvider

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, Tap, patience

TOOL = os.path.join(TOP, "build/release/tests/tools/creds_tool")
SEED = int(os.environ.get("SEED", "1"))

# Runs under the case's environment; one line of JSON: what botocore decided.
ASK_BOTOCORE = r"""
import json, os, sys
import botocore.session, botocore.credentials as bc, botocore.utils as bu
bu.ContainerMetadataFetcher._get_response = lambda self, url, headers, timeout: {
    "AccessKeyId": "container", "SecretAccessKey": url, "Token": "t", "Expiration": "2099-01-01T00:00:00Z"}
bu.InstanceMetadataFetcher.retrieve_iam_role_credentials = lambda self: {} if self._disabled else {
    "role_name": "r", "access_key": "instance", "secret_key": "s", "token": "t", "expiry_time": "2099-01-01T00:00:00Z"}
bc.ProcessProvider._retrieve_credentials_using = lambda self, command: {
    "access_key": "process", "secret_key": command, "token": None, "expiry_time": None}

def role_of(fetcher):
    kw = fetcher._assume_kwargs
    return [kw["RoleArn"], kw.get("RoleSessionName") if not fetcher._using_default_session_name else None,
            kw.get("ExternalId"), kw.get("DurationSeconds", 3600)]

def describe(creds):
    roles = []
    while isinstance(creds, bc.DeferredRefreshableCredentials):
        fetcher = creds._refresh_using.__self__
        if isinstance(fetcher, bc.AssumeRoleWithWebIdentityCredentialFetcher):
            kw = fetcher._assume_kwargs
            session = kw["RoleSessionName"] if not fetcher._using_default_session_name else None
            return {"source": "web", "web_arn": kw["RoleArn"], "web_session": session, "roles": roles,
                    "text": fetcher._web_identity_token_loader._web_identity_token_path}
        roles.insert(0, role_of(fetcher))
        creds = fetcher._source_credentials
    key = creds.access_key
    kind = {"container": "container", "instance": "instance", "process": "process"}.get(key, "keys")
    return {"source": kind, "roles": roles, "key": key, "secret": creds.secret_key, "token": creds.token or ""}

for line in sys.stdin:
    env = json.loads(line)
    for k in [k for k in os.environ if k.startswith("AWS_")]:
        del os.environ[k]
    os.environ.update(env)
    try:
        creds = botocore.session.Session().get_credentials()
        print(json.dumps(describe(creds) if creds is not None else {"error": "none"}), flush=True)
    except Exception as e:
        print(json.dumps({"error": "%s: %s" % (type(e).__name__, e)}), flush=True)
"""


class Botocore:
    def __init__(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        self.p = subprocess.Popen([sys.executable, "-c", ASK_BOTOCORE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def ask(self, env):
        self.p.stdin.write(json.dumps(env) + "\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())

    def close(self):
        self.p.stdin.close()
        self.p.wait(20)


def ours(env):
    base = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    p = subprocess.run([TOOL, "plan"], env={**base, **env}, capture_output=True, text=True, timeout=patience(20))
    assert p.returncode in (0, 1), (p.returncode, p.stderr)
    return json.loads(p.stdout) if p.returncode == 0 else {"error": p.stdout.strip()}


def same(theirs, mine):
    if theirs.get("source") == "keys" and any(c.isspace() for k in ("key", "secret", "token") for c in theirs[k]):
        return "has a byte that cannot be in it" in mine.get("error", "")
    if "error" in theirs or "error" in mine:
        return ("error" in theirs) == ("error" in mine)
    if theirs["source"] != mine["source"] or theirs["roles"] != mine["roles"]:
        return False
    if mine["source"] == "keys":
        return all(theirs[k] == mine[k] for k in ("key", "secret", "token"))
    if mine["source"] == "web":
        return all(theirs[k] == mine[k] for k in ("text", "web_arn", "web_session"))
    return mine["source"] == "instance" or theirs["secret"] == mine["text"]


class Cases:
    """Compares one case after another; the files of a case are in self.dir."""

    def __init__(self, folder):
        self.dir = folder
        self.botocore = Botocore()
        self.n = 0
        self.kinds = {}
        self.differ = []

    def files(self, config, credentials):
        for name, text in (("config", config), ("credentials", credentials)):
            path = os.path.join(self.dir, name)
            if text is None:
                if os.path.exists(path):
                    os.unlink(path)
            else:
                with open(path, "wb") as f:
                    f.write(text if isinstance(text, bytes) else text.encode())

    def compare(self, config=None, credentials=None, **env):
        self.files(config, credentials)
        e = {"AWS_CONFIG_FILE": self.dir + "/config", "AWS_SHARED_CREDENTIALS_FILE": self.dir + "/credentials", **env}
        theirs, mine = self.botocore.ask(e), ours(e)
        if not same(theirs, mine):
            self.differ.append("config: %r\ncredentials: %r\nenvironment: %r\nbotocore: %s\nours: %s" % (config, credentials, env, theirs, mine))
        kind = "error" if "error" in mine else mine["source"] + "+role" * bool(mine["roles"])
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.n += 1
        return mine


KEYS = "aws_access_key_id = %s\naws_secret_access_key = %s\n"
ENV = {"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "ES"}
CONTAINER = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://localhost:1/x"}


def named_cases(c):
    every = "[default]\nrole_arn = arn:r\nsource_profile = p\ncredential_process = /bin/x 'a b'\n" + KEYS % ("C", "CS")
    every += "[profile p]\n" + KEYS % ("P", "PS")
    creds = "[default]\n" + KEYS % ("F", "FS")
    web = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/t", "AWS_ROLE_ARN": "arn:w", "AWS_ROLE_SESSION_NAME": "s"}
    # the order: take the winner away, the next one shows
    c.compare(every, creds, **ENV, **web, **CONTAINER)
    c.compare(every, creds, **web, **CONTAINER)
    no_role = every.replace("role_arn = arn:r\nsource_profile = p\n", "")
    c.compare(no_role, creds, **web, **CONTAINER)
    c.compare(no_role, creds, **CONTAINER)
    c.compare(no_role, None, **CONTAINER)
    c.compare(no_role.replace("credential_process = /bin/x 'a b'\n", ""), None, **CONTAINER)
    c.compare(None, None, **CONTAINER)
    c.compare(None, None, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI="/v2/x", **CONTAINER)
    c.compare(None, None)
    c.compare(None, None, AWS_EC2_METADATA_DISABLED="true")
    # environment
    c.compare(None, creds, AWS_ACCESS_KEY_ID="E")
    c.compare(None, creds, AWS_SECRET_ACCESS_KEY="ES")
    c.compare(None, None, **ENV, AWS_SESSION_TOKEN="T", AWS_SECURITY_TOKEN="OLD")
    c.compare(None, creds, AWS_PROFILE="nobody", **ENV)
    c.compare(None, creds + "[x]\n" + KEYS % ("X", "XS"), AWS_PROFILE="default", AWS_DEFAULT_PROFILE="x")
    c.compare(None, None, AWS_WEB_IDENTITY_TOKEN_FILE="/t", AWS_EC2_METADATA_DISABLED="true")
    # profiles
    for name in ("p", "q r", "default", "profile", "p-1", "a.b@c", "é"):
        text = '[profile p]\n%s[profile "q r"]\n%s[profile]\n%s[profile p-1]\n%s[profile a.b@c]\n%s[profile é]\n%s[default]\n%s' % tuple(
            KEYS % (k, k + "S") for k in "PQRSTUV")
        c.compare(text, None, AWS_PROFILE=name)
        c.compare(None, text.replace("profile ", "").replace('"', ""), AWS_PROFILE=name)
    c.compare("[default]\n%s[profile default]\n%s" % (KEYS % ("A", "AS"), KEYS % ("B", "BS")))
    c.compare("[profile default]\n%s[default]\n%s" % (KEYS % ("A", "AS"), KEYS % ("B", "BS")))
    c.compare("[default]\nregion=x\n[DEFAULT]\n" + KEYS % ("A", "AS"), AWS_EC2_METADATA_DISABLED="true")
    c.compare("[profilex y]\n" + KEYS % ("A", "AS"), AWS_PROFILE="y")
    c.compare("[profile 'y]\n" + KEYS % ("A", "AS"), AWS_PROFILE="y")
    c.compare("[profile y z]\n" + KEYS % ("A", "AS"), AWS_PROFILE="y")
    # roles
    role = "[default]\nrole_arn=arn:r\n"
    for rest in ("", "source_profile=default\n", "source_profile=default\n" + KEYS % ("A", "AS"), "source_profile=x\n",
                 "source_profile=x\n[profile x]\n" + KEYS % ("A", "AS"), "source_profile=x\n[profile x]\nregion=y\n",
                 "source_profile=x\n[profile x]\nrole_arn=arn:x\nsource_profile=y\n[profile y]\n" + KEYS % ("A", "AS"),
                 "source_profile=x\n[profile x]\nrole_arn=arn:x\nsource_profile=default\n",
                 "source_profile=x\n[profile x]\nrole_arn=arn:x\nsource_profile=x\n",
                 "source_profile=x\n[profile x]\nrole_arn=arn:x\nsource_profile=x\n" + KEYS % ("A", "AS"),
                 "source_profile=x\n[profile x]\nrole_arn=arn:x\nsource_profile=y\n" + KEYS % ("A", "AS"),
                 "source_profile=x\n[profile x]\nrole_arn=arn:x\nweb_identity_token_file=/t\n",
                 "source_profile=x\n[profile x]\ncredential_process=/bin/p\n", "source_profile=x\ncredential_source=Environment\n",
                 "credential_source=Environment\n", "credential_source=ecscontainer\n", "credential_source=Ec2InstanceMetadata\n",
                 "credential_source=Else\n", "credential_source=Environment\nexternal_id=e\nrole_session_name=n\nduration_seconds=900\n",
                 "web_identity_token_file=/t\n", "credential_source=EcsContainer\nduration_seconds=x\n",
                 "web_identity_token_file=/t\nrole_session_name=n\n"):
        c.compare(role + rest)
        c.compare(role + rest, **CONTAINER)
        c.compare(None, (role + rest).replace("profile x]", "x]").replace("profile y]", "y]"), **CONTAINER)
    c.compare("[default]\nrole_arn=arn:r\ncredential_source=Environment\n", None, **ENV)


def drawn_case(c, r):
    names = ["default", "a", "b", "c"]
    keys = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token", "role_arn", "source_profile", "credential_source",
            "credential_process", "web_identity_token_file", "role_session_name", "external_id", "region"]
    values = {"source_profile": names, "credential_source": ["Environment", "EcsContainer", "Ec2InstanceMetadata"],
              "credential_process": ["/bin/p 'x y'"], "web_identity_token_file": ["/t"]}

    def text(prefix):
        out = ""
        for n in r.sample(names, r.randint(0, 4)):
            out += "[%s]\n" % (n if n == "default" or not prefix else "profile " + n)
            some = r.sample(keys[2:], r.choice([0, 0, 1, 1, 2, 3])) + r.choice([[], keys[:1], keys[:2], keys[:2]])
            for k in some + ["source_profile"] * ("role_arn" in some and not {"source_profile", "credential_source"} & set(some)):
                v = r.choice(values.get(k, [k[-3:] + n]))
                out += r.choice(["%s=%s\n", "%s = %s\n", "%s : %s\n", "# c\n%s=%s\n", "%s=%s\n\n"] * 4 + [" %s = %s\n"]) % (r.choice([k, k.upper()]), v)
        return out
    env = {}
    for k, v in {"AWS_PROFILE": r.choice(names), "AWS_DEFAULT_PROFILE": r.choice(names), "AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "ES",
                 "AWS_SESSION_TOKEN": "ET", "AWS_WEB_IDENTITY_TOKEN_FILE": "/w", "AWS_ROLE_ARN": "arn:w", **CONTAINER,
                 "AWS_EC2_METADATA_DISABLED": "true"}.items():
        if r.random() < 0.2:
            env[k] = v
    c.compare(text(True) if r.random() < 0.8 else None, text(False) if r.random() < 0.8 else None, **env)


def ini_cases(folder, r, n):
    """Lists of lines that mean something to the parser, against configparser."""
    lines = ["[a]", "[b]", "[a", "[]", "[ c ]", "[a]b]", "k=v", "K = v2", "k:v", " k=v", "  j = 1 ; c", "\tdeep", "   deeper = 1", "# c", "  # c", "; c", "",
             "  ", "=v", "no delimiter", "x = ", "y =", "  n = 1", "z = a = b : c", "[DEFAULT]", "d=0", "k\u00e9y = \u00e9", "[s] # c", " [t]", "u=1\r"]
    wrong = ("[]", "[a", "=v", "no delimiter", " k=v", "K = v2")
    path = os.path.join(folder, "case.ini")
    refused = 0
    differ = []
    for _ in range(n):
        text = "\n".join(["[a0]"] * (r.random() < 0.9) + [x for x in r.sample(lines, r.randint(1, 9)) if x not in wrong or r.random() < 0.2])
        with open(path, "w", newline="") as f:
            f.write(text)
        p = configparser.RawConfigParser()
        try:
            p.read_file(io.StringIO(text, newline=None))
            want = {s: dict(p.items(s)) for s in p.sections()}
        except configparser.Error:
            want = None
        got = subprocess.run([TOOL, "ini", path], capture_output=True, text=True, timeout=patience(20))
        rows = json.loads(got.stdout) if got.returncode == 0 else None
        have = None
        if rows is not None:
            common = {k: v for s, k, v in rows if s == "DEFAULT" and k}
            have = {s: {**common, **{k: v for t, k, v in rows if t == s and k}} for s, k, _ in rows if k is None and s != "DEFAULT"}
        if have != want:
            differ.append("%r\nconfigparser: %r\nours: %r %s" % (text, want, have, got.stdout))
        refused += want is None
    return differ, refused


def endpoints():
    loader = botocore.session.Session().get_component("data_loader")
    services = {"sagemaker": "sagemaker", "sagemaker-runtime": "sagemaker-runtime", "s3": "s3", "servicequotas": "service-quotas", "logs": "logs",
                "sts": "sts", "fsx": "fsx", "pricing": "pricing", "sqs": "sqs", "ecr": "ecr", "monitoring": "cloudwatch", "ec2": "ec2"}
    n = 0
    wrong = []
    for ours_name, theirs_name in services.items():
        provider = EndpointProvider(loader.load_service_model(theirs_name, "endpoint-rule-set-1"), loader.load_data("partitions"))
        for region in ("us-east-1", "eu-west-1", "us-gov-west-1", "us-gov-east-1", "cn-north-1", "us-iso-east-1", "us-isob-east-1"):
            for fips in (False, True):
                for dual in (False, True):
                    if dual and ours_name == "ecr":  # Debian's rules are older than these hosts
                        continue
                    args = dict(Region=region, UseFIPS=fips, UseDualStack=dual)
                    if ours_name == "s3":
                        args.update(Accelerate=False, ForcePathStyle=True, UseGlobalEndpoint=False, DisableMultiRegionAccessPoints=False)
                    if ours_name == "sts":
                        args["UseGlobalEndpoint"] = False
                    try:
                        want = provider.resolve_endpoint(**args).url
                    except Exception:  # the partition has no such hosts
                        continue
                    env = {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_USE_FIPS_ENDPOINT": str(fips),
                           "AWS_USE_DUALSTACK_ENDPOINT": str(dual)}
                    got = subprocess.run([TOOL, "endpoint", ours_name, region], env=env, capture_output=True, text=True, timeout=patience(20)).stdout.strip()
                    if got != want:
                        wrong.append((ours_name, region, fips, dual, got, want))
                    n += 1
    return wrong, n


def main():
    subprocess.run(["make", "-s", TOOL[len(TOP) + 1 :]], cwd=TOP, check=True, stdout=sys.stderr)
    t = Tap()
    folder = tempfile.mkdtemp(prefix="creds-", dir="/tmp")
    cases = Cases(folder)
    r = random.Random(SEED)
    try:
        named_cases(cases)
        t.ok(not cases.differ, "%d cases by name find the same as botocore: %s" % (cases.n, cases.kinds), "\n\n".join(cases.differ))
        cases.n, cases.kinds, cases.differ = 0, {}, []
        for _ in range(300):
            drawn_case(cases, r)
        t.ok(not cases.differ, "%d drawn cases (SEED=%d) find the same: %s" % (cases.n, SEED, cases.kinds), "\n\n".join(cases.differ))
        differ, refused = ini_cases(folder, r, 500)
        t.ok(not differ, "500 drawn INI texts mean what configparser reads, %d refused by both" % refused, "\n\n".join(differ))
        wrong, n = endpoints()
        t.ok(not wrong, "%d endpoints are those of botocore's rules" % n, wrong)
    finally:
        cases.botocore.close()
        shutil.rmtree(folder)
    sys.exit(t.done())


if __name__ == "__main__":
    main()
