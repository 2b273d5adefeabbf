#!/usr/bin/env python3
"""Aim: our signatures equal botocore's, and we accept botocore's, for random requests.

Method: build/release/tests/tools/sigv4_tool makes 300 random signed requests; botocore signs the same
requests at the same instant and must get the same signature. Then our verify gets botocore's signatures,
which must pass, and each with one change, which must not. Prints TAP.
"""
import datetime
import json
import os
import subprocess
import sys
import types

try:
    import botocore.auth
except ImportError:  # a user's python3 may come before Debian's, which has the package
    if sys.executable == "/usr/bin/python3":
        raise
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
import botocore.awsrequest
import botocore.credentials

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, Tap, patience

TOOL = os.path.join(TOP, "build/release/tests/tools/sigv4_tool")
N = 300
SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 20260102
tap = Tap()


class Frozen(datetime.datetime):
    """The clock botocore reads while it signs."""

    at = None

    @classmethod
    def utcnow(cls):
        return cls.at

    @classmethod
    def now(cls, tz=None):
        return cls.at.replace(tzinfo=tz) if tz else cls.at


FROZEN_MODULE = types.SimpleNamespace(
    datetime=Frozen, timezone=datetime.timezone, timedelta=datetime.timedelta
)


def freeze(when):
    Frozen.at = Frozen(when.year, when.month, when.day, when.hour, when.minute, when.second)
    botocore.auth.datetime = FROZEN_MODULE
    if hasattr(botocore.auth, "get_current_datetime"):
        botocore.auth.get_current_datetime = lambda remove_tzinfo=True: Frozen.at


def sign_by_botocore(r):
    """The Authorization header botocore makes for the request."""
    freeze(datetime.datetime.strptime(r["date"], "%Y%m%dT%H%M%SZ"))
    creds = botocore.credentials.Credentials(r["key"], r["secret"], r["token"] or None)
    cls = botocore.auth.S3SigV4Auth if r["service"] == "s3" else botocore.auth.SigV4Auth
    url = "https://service.example.com" + r["path"] + ("?" + r["query"] if r["query"] else "")
    headers = {k: v for k, v in r["headers"] if k.lower() != "x-amz-content-sha256"}
    request = botocore.awsrequest.AWSRequest(method=r["method"], url=url, headers=headers, data=r["body"].encode())
    request.context["payload_signing_enabled"] = True
    if cls is botocore.auth.S3SigV4Auth:
        request.context["has_streaming_input"] = False
    cls(creds, r["service"], r["region"]).add_auth(request)
    return request.headers["Authorization"]


def part(authorization, name):
    return authorization.split(name + "=")[1].split(",")[0].strip()


def verify_all(requests):
    text = "".join(json.dumps(r) + "\n" for r in requests)
    run = subprocess.run([TOOL, "verify"], input=text, capture_output=True, text=True, timeout=patience(120), check=True)
    return run.stdout.splitlines()


def as_received(r, authorization, **changes):
    """The request as a server gets it: the token is a header like others."""
    out = dict(r, authorization=authorization)
    if r["token"]:
        out["headers"] = r["headers"] + [["X-Amz-Security-Token", r["token"]]]
    out.update(changes)
    return out


def main():
    subprocess.run(["make", "-s", TOOL[len(TOP) + 1 :]], cwd=TOP, check=True, stdout=sys.stderr)
    run = subprocess.run([TOOL, "make", str(N), str(SEED)], capture_output=True, text=True, timeout=patience(120), check=True)
    requests = [json.loads(line) for line in run.stdout.splitlines()]
    print("# botocore %s, seed %d" % (botocore.__version__, SEED))
    tap.eq([] if len(requests) == N and len({r["service"] for r in requests}) == 5 else [len(requests)], [], "%d requests were made, signed and plain, of S3 and others" % N)
    theirs = [sign_by_botocore(r) for r in requests]
    tap.eq([r for r, t in zip(requests, theirs) if part(r["authorization"], "SignedHeaders") != part(t, "SignedHeaders")], [], "the same headers are signed")
    tap.eq([r for r, t in zip(requests, theirs) if part(r["authorization"], "Signature") != part(t, "Signature")], [], "botocore comes to our signatures")
    answers = verify_all([as_received(r, t) for r, t in zip(requests, theirs)])
    tap.eq([a for a in answers if a != "ok"] or ([] if len(answers) == N else [len(answers)]), [], "we accept botocore's signatures")
    for what, change in (
        ("another secret", lambda r: {"secret": r["secret"] + "x"}),
        ("another body", lambda r: {"body": r["body"] + "x"}),
        ("another path", lambda r: {"path": r["path"] + "x"}),
        ("one more parameter", lambda r: {"query": r["query"] + ("&" if r["query"] else "") + "zz=1"}),
        ("another method", lambda r: {"method": "PATCH"}),
    ):
        answers = verify_all([as_received(r, t, **change(r)) for r, t in zip(requests, theirs)])
        tap.eq([a for a in answers if a != "SignatureDoesNotMatch"], [], "we refuse %s" % what)
    sys.exit(tap.done())


main()
