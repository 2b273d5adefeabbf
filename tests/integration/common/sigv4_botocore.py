#!/usr/bin/env python3
"""Aim: our signatures equal botocore's, and we accept botocore's, for random requests.

Method: build/release/tests/tools/sigv4_tool makes random signed requests (N of them, 300 unless told); botocore signs the same
requests at the same instant and must get the same signature. Then our verify gets botocore's signatures,
which must pass, and each with one change, which must not. Prints TAP.
usage: [N=10000] sigv4_botocore.py [SEED]
"""
import datetime
import json
import os
import re
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
N = int(os.environ.get("N", "300"))
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
    request = botocore.awsrequest.AWSRequest(method=r["method"], url=url, data=r["body"].encode())
    for k, v in r["headers"]:
        if k.lower() != "x-amz-content-sha256":
            request.headers[k] = v  # beside others of the name
    request.context["payload_signing_enabled"] = True
    if cls is botocore.auth.S3SigV4Auth:
        request.context["has_streaming_input"] = False
    cls(creds, r["service"], r["region"]).add_auth(request)
    return request.headers["Authorization"]


def part(authorization, name):
    return authorization.split(name + "=")[1].split(",")[0].strip()


ODD = {
    "two slashes": lambda r: "//" in r["path"],
    "a segment of dots": lambda r: {".", ".."} & set(r["path"].split("/")),
    "= or + as it is": lambda r: re.search("[=+]", r["path"]),
    "= or + escaped": lambda r: re.search("%(3D|2B)", r["path"]),
    "letters beyond ASCII": lambda r: re.search("%[C-F][0-9A-F]%", r["path"]),
    "a blank": lambda r: "%20" in r["path"],
    "a name twice": lambda r: len(names := [p.split("=")[0] for p in r["query"].split("&")]) > len(set(names)),
    "an empty value": lambda r: re.search("=(&|$)", r["query"]),
    "no value": lambda r: r["query"] and any("=" not in p for p in r["query"].split("&")),
    "a header twice": lambda r: len(names := [k for k, _ in r["headers"]]) > len(set(names)),
    "blanks and tabs in a header": lambda r: any(re.search("[ \t][ \t]", v.strip()) for _, v in r["headers"]),
    "an empty header": lambda r: any(not v.strip() for _, v in r["headers"]),
}


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
    drawn = {what: sum(bool(odd(r)) for r in requests) for what, odd in ODD.items()}
    tap.ok(min(drawn.values()) >= N / 20, "what is odd is drawn: " + ", ".join(f"{what} {n}" for what, n in drawn.items()))
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
