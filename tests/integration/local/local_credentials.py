#!/usr/bin/python3
"""Aim: drover-local gives out credentials as ECS, EC2 and STS do, and drover's clients take them from each.

Method: botocore's own providers and clients against drover-local; then aws_tool (our client) asks who it is
with an environment for each source, and the answer names the role. Wrong tokens, roles and expired keys are
refused as AWS refuses them.
"""
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

import botocore.credentials
import botocore.session
import botocore.utils

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, patience, wait_for
from kit.local import KEY, SECRET, error_of, run, same

TOOL = os.path.join(TOP, "build/release/tests/tools/aws_tool")
ROLE, OTHER = ("arn:aws:iam::123456789012:role/service-role/%s" % n for n in ("drover", "other"))
SETUP = dict(containers={"c1": ROLE}, container_authorization="letmein", instance_role=ROLE, web_identities={"web-token": ROLE}, roles=[ROLE, OTHER])
WHO = "Action=GetCallerIdentity&Version=2011-06-15"


def plain_env():
    return {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}


def ask(l, **env):
    """Who our client is under these variables: (exit status, output)."""
    e = {**plain_env(), "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": l.url, "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
         "AWS_EC2_METADATA_DISABLED": "true", **env}
    p = subprocess.run([TOOL, "query", "sts", WHO], env=e, capture_output=True, text=True, timeout=patience(60))
    assert "drover-local/" not in p.stderr and "AccessKey" not in p.stderr, p.stderr
    return p.returncode, p.stdout


def is_role(l, role="drover", **env):
    status, out = ask(l, **env)
    assert status == 0 and ":assumed-role/%s/" % role in out, (status, out)


def fails(l, fragment, **env):
    status, out = ask(l, **env)
    assert status == 1 and fragment in out, (fragment, status, out)


def file_of(l, name, text):
    path = os.path.join(l.dir, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def container(l, token="letmein", name="c1"):
    return {"AWS_CONTAINER_CREDENTIALS_FULL_URI": l.url + "/v2/credentials/" + name, "AWS_CONTAINER_AUTHORIZATION_TOKEN": token}


def test_botocore__takes_keys_from_each_source(l):
    keys = botocore.credentials.ContainerProvider(environ=container(l)).load().get_frozen_credentials()
    who = l.client("sts", key=keys.access_key, secret=keys.secret_key)
    assert error_of(who.get_caller_identity)[0] == "InvalidClientTokenId"  # the token is missing
    who = l.session.create_client("sts", region_name="us-east-1", endpoint_url=l.url, aws_access_key_id=keys.access_key,
                                  aws_secret_access_key=keys.secret_key, aws_session_token=keys.token)
    assert ":assumed-role/drover/" in who.get_caller_identity()["Arn"]
    fetcher = botocore.utils.InstanceMetadataFetcher(base_url=l.url + "/", timeout=2, num_attempts=1)
    got = fetcher.retrieve_iam_role_credentials()
    same((got["role_name"], got["access_key"][:4]), ("drover", "ASIA"))
    sts = l.client("sts")
    answer = sts.assume_role(RoleArn=OTHER, RoleSessionName="me", DurationSeconds=900)
    same(answer["AssumedRoleUser"]["Arn"], "arn:aws:sts::123456789012:assumed-role/other/me")
    assert 880 < answer["Credentials"]["Expiration"].timestamp() - time.time() <= 901
    web = sts.assume_role_with_web_identity(RoleArn=ROLE, RoleSessionName="me", WebIdentityToken="web-token")
    same(web["Credentials"]["AccessKeyId"][:4], "ASIA")
    same(error_of(sts.assume_role_with_web_identity, RoleArn=ROLE, RoleSessionName="me", WebIdentityToken="other")[0], "InvalidIdentityToken")
    same(error_of(sts.assume_role_with_web_identity, RoleArn=OTHER, RoleSessionName="me", WebIdentityToken="web-token")[0], "AccessDenied")
    same(error_of(sts.assume_role, RoleArn=ROLE + "x", RoleSessionName="me")[0], "AccessDenied")
    same(error_of(sts.assume_role, RoleArn=ROLE, RoleSessionName="me", DurationSeconds=43201)[0], "ValidationError")
    same(error_of(sts.assume_role, RoleArn=ROLE, RoleSessionName="m e")[0], "ValidationError")


def test_metadata__wants_its_tokens(l):
    def status(path, method="GET", **headers):
        try:
            with urllib.request.urlopen(urllib.request.Request(l.url + path, method=method, headers=headers)) as r:
                return r.status
        except urllib.error.HTTPError as e:
            return e.code
    same(status("/latest/meta-data/iam/security-credentials/"), 401)
    same(status("/latest/meta-data/placement/region", **{"X-aws-ec2-metadata-token": "1-2"}), 401)
    same(status("/latest/api/token", "PUT"), 400)
    same(status("/v2/credentials/c1"), 401)
    same(status("/v2/credentials/nobody", Authorization="letmein"), 404)


def test_keys__expire_in_every_protocol(l):
    keys = l.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="me")["Credentials"]

    def client(name, token=keys["SessionToken"]):
        return l.session.create_client(name, region_name="us-east-1", endpoint_url=l.url, aws_access_key_id=keys["AccessKeyId"],
                                       aws_secret_access_key=keys["SecretAccessKey"], aws_session_token=token)
    same(client("s3").list_objects_v2(Bucket="bkt")["KeyCount"], 0)
    same(error_of(client("s3", keys["SessionToken"] + "x").list_objects_v2, Bucket="bkt")[0], "InvalidAccessKeyId")
    wait_for(lambda: time.time() > keys["Expiration"].timestamp(), 5, "the end of the keys")
    same(error_of(client("s3").list_objects_v2, Bucket="bkt")[::2], ("ExpiredToken", 400))
    same(error_of(client("sagemaker").list_training_jobs)[::2], ("ExpiredTokenException", 400))
    same(error_of(client("sts").get_caller_identity)[::2], ("ExpiredToken", 403))


def test_ours__takes_keys_from_each_source(l):
    token = file_of(l, "web-token", "web-token\n")
    auth = file_of(l, "authorization", "letmein\r\n")
    process = file_of(l, "process.sh", "echo '{\"Version\":1,\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"%s\"}'\n" % (KEY, SECRET))
    imds = {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": l.url + "/"}
    web = {"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": ROLE, "AWS_ROLE_SESSION_NAME": "web-me"}
    same(ask(l, AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)[0], 0)
    is_role(l, **container(l))
    is_role(l, **{**container(l, token=""), "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": auth})
    is_role(l, **imds)
    is_role(l, **web)
    assert "assumed-role/drover/web-me" in ask(l, **web)[1]
    is_role(l, **imds, http_proxy="http://127.0.0.1:1")  # never through a proxy

    def profile(text):
        return {"AWS_CONFIG_FILE": file_of(l, "config", text)}
    keys = "aws_access_key_id = %s\naws_secret_access_key = %s\n" % (KEY, SECRET)
    same(ask(l, **profile("[default]\n" + keys))[0], 0)
    assert ":user/drover" in ask(l, **profile("[default]\ncredential_process = /bin/sh '%s'\n" % process))[1]
    is_role(l, "other", **profile("[default]\nrole_arn = %s\nsource_profile = base\n[profile base]\n%s" % (OTHER, keys)))
    chain = "[default]\nrole_arn = %s\nsource_profile = mid\nrole_session_name = end\n[profile mid]\nrole_arn = %s\ncredential_source = %s\n"
    is_role(l, "other", **profile(chain % (OTHER, ROLE, "Ec2InstanceMetadata")), **imds)
    is_role(l, "other", **profile(chain % (OTHER, ROLE, "EcsContainer")), **container(l))
    assert "assumed-role/other/end" in ask(l, **profile(chain % (OTHER, ROLE, "EcsContainer")), **container(l))[1]
    assert ":user/drover" in ask(l, **profile(chain % (OTHER, ROLE, "Environment")), AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)[1]  # its keys come before profiles


def test_ours__says_what_is_wrong(l):
    token = file_of(l, "web-token", "no such token")
    fails(l, "status 401 for the credentials", **container(l, token="wrong"))
    fails(l, "plain http is allowed to loopback", AWS_CONTAINER_CREDENTIALS_FULL_URI="http://169.254.169.254/x")
    fails(l, "InvalidIdentityToken", AWS_WEB_IDENTITY_TOKEN_FILE=token, AWS_ROLE_ARN=ROLE)
    fails(l, "cannot open '/nowhere/token'", AWS_WEB_IDENTITY_TOKEN_FILE="/nowhere/token", AWS_ROLE_ARN=ROLE)
    path = file_of(l, "config", "[default]\nrole_arn = %sx\nsource_profile = default\naws_access_key_id = %s\naws_secret_access_key = %s\n" % (ROLE, KEY, SECRET))
    fails(l, "AccessDenied", AWS_CONFIG_FILE=path)
    fails(l, "ended with status 3", AWS_CONFIG_FILE=file_of(l, "config2", "[default]\ncredential_process = /bin/sh -c 'echo %s; exit 3'\n" % SECRET))
    fails(l, "no JSON object", AWS_CONFIG_FILE=file_of(l, "config2", "[default]\ncredential_process = /bin/echo %s\n" % SECRET))
    fails(l, "cannot start", AWS_CONFIG_FILE=file_of(l, "config2", "[default]\ncredential_process = /nowhere/program\n"))
    fails(l, "no AWS credentials for profile 'default'")


def test_ours__tries_again_what_passes(l):
    web = {"AWS_WEB_IDENTITY_TOKEN_FILE": file_of(l, "web-token", "web-token"), "AWS_ROLE_ARN": ROLE}
    imds = {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": l.url}
    l.post("faults", {"faults": [{"operation": "GetContainerCredentials", "kind": "error_500", "times": 2}, {"operation": "PutInstanceToken", "kind": "drop_before"},
                                 {"operation": "GetInstanceMetadata", "kind": "error_503"}, {"operation": "AssumeRoleWithWebIdentity", "kind": "throttle"}]})
    is_role(l, **container(l))
    is_role(l, **imds)
    is_role(l, **web)
    same([(w["status"], w["error"]) for w in l.wire("GetContainerCredentials", "/v2/credentials/c1")][:3], [(500, "InternalFailure")] * 2 + [(200, None)])


if __name__ == "__main__":
    subprocess.run(["make", "-s", TOOL[len(TOP) + 1:]], cwd=TOP, check=True, stdout=sys.stderr)
    botocore.session.get_session()
    run([(test_botocore__takes_keys_from_each_source, SETUP), (test_metadata__wants_its_tokens, SETUP), (test_keys__expire_in_every_protocol, dict(credential_seconds=1)),
         (test_ours__takes_keys_from_each_source, SETUP), (test_ours__says_what_is_wrong, SETUP), (test_ours__tries_again_what_passes, SETUP)])
