#!/usr/bin/env python3
"""drover-local rejects every request that is not signed as AWS demands. botocore signs, the test changes one
thing and sends; each case is also sent unchanged, so that the refusal is due to the change.
"""
import datetime
import hashlib
import json
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.local import KEY, SECRET, error_of, run, same, send, sign

BODY = json.dumps({"TrainingJobName": "nobody"}).encode()
TARGET = {"X-Amz-Target": "SageMaker.DescribeTrainingJob", "Content-Type": "application/x-amz-json-1.1"}


def json_call(l, headers, body=BODY):
    status, _, text = send(l.url, "POST", "/", headers, body)
    reply = json.loads(text)
    return status, reply["__type"], reply.get("Message", reply.get("message"))


def signed(l, **more):
    return sign(l.url, "sagemaker", "POST", body=more.pop("body", BODY), headers=more.pop("headers", TARGET), **more)


GOOD = (400, "ValidationException", "Requested resource not found.")


def test_good__is_taken_and_logged_as_signed(l):
    same(json_call(l, signed(l)), GOOD)
    same([q["signed"] for q in l.wire("DescribeTrainingJob")], [True])
    same(l.wire("DescribeTrainingJob")[0]["sha256"], hashlib.sha256(BODY).hexdigest())


def test_unsigned__is_refused(l):
    same(json_call(l, TARGET), (400, "MissingAuthenticationTokenException", "Request is missing Authentication Token"))
    same(send(l.url, "GET", "/bkt?list-type=2", {})[0], 403)
    same([q["signed"] for q in l.wire()], [False, False])
    same([q["error"] for q in l.wire()], ["MissingAuthenticationTokenException", "AccessDenied"])


def test_wrong_secret_and_unknown_key__are_refused(l):
    same(json_call(l, signed(l, secret=SECRET + "x"))[:2], (400, "InvalidSignatureException"))
    same(json_call(l, signed(l, key="AKIDNOBODY"))[:2], (400, "UnrecognizedClientException"))
    same(error_of(l.client("s3", secret="x").list_buckets)[::2], ("SignatureDoesNotMatch", 403))
    same(error_of(l.client("s3", key="x").list_buckets)[::2], ("InvalidAccessKeyId", 403))
    same(error_of(l.client("sts", secret="x").get_caller_identity)[::2], ("SignatureDoesNotMatch", 403))
    same(error_of(l.client("sts", key="x").get_caller_identity)[::2], ("InvalidClientTokenId", 403))


def test_altered_request__is_refused(l):
    h = signed(l)
    same(json_call(l, h, BODY.replace(b"nobody", b"nobodi"))[:2], (400, "InvalidSignatureException"))
    same(json_call(l, {**h, "X-Amz-Target": "SageMaker.StopTrainingJob"})[:2], (400, "InvalidSignatureException"))
    same(json_call(l, {**h, "X-Amz-Security-Token": "added"})[:2], (400, "InvalidSignatureException"))
    auth = h["Authorization"]
    flipped = auth[:-1] + ("0" if auth[-1] != "0" else "1")
    same(json_call(l, {**h, "Authorization": flipped})[:2], (400, "InvalidSignatureException"))
    same(json_call(l, h), GOOD)
    g = sign(l.url, "s3", "GET", "/bkt/a")
    same(send(l.url, "GET", "/bkt/a", g)[0], 404)
    same(send(l.url, "GET", "/bkt/b", g)[0], 403)
    same(send(l.url, "DELETE", "/bkt/a", g)[0], 403)
    same(send(l.url, "GET", "/bkt/a?versionId=1", g)[0], 403)


def test_s3_payload_hash__is_held_against_the_body(l):
    h = sign(l.url, "s3", "PUT", "/bkt/a", body=b"good")
    status, _, text = send(l.url, "PUT", "/bkt/a", h, b"evil")
    same((status, b"XAmzContentSHA256Mismatch" in text), (400, True))
    same(send(l.url, "HEAD", "/bkt/a", sign(l.url, "s3", "HEAD", "/bkt/a"))[0], 404)
    same(send(l.url, "PUT", "/bkt/a", h, b"good")[0], 200)
    h = sign(l.url, "s3", "GET", "/bkt/a")
    del h["X-Amz-Content-SHA256"]
    same(send(l.url, "GET", "/bkt/a", h)[0], 400)


def test_wrong_scope__is_refused(l):
    same(json_call(l, signed(l, region="eu-west-1")),
         (400, "InvalidSignatureException", "Credential should be scoped to a valid region."))
    same(json_call(l, signed(l, scope_service="s3"))[:2], (400, "InvalidSignatureException"))
    same(error_of(l.client("s3", region="eu-west-1").head_bucket, Bucket="bkt")[2], 400)


def test_clock__only_the_window_is_accepted(l):
    now = datetime.datetime.utcnow()
    for minutes, good in ((-14, True), (14, True), (-16, False), (16, False), (-60 * 24, False)):
        at = now + datetime.timedelta(minutes=minutes)
        got = json_call(l, signed(l, at=at))
        same(got[:2], GOOD[:2] if good else (400, "InvalidSignatureException"))
        if not good:
            assert got[2].startswith("Signature expired: " if minutes < 0 else "Signature not yet current: "), got
    at = now - datetime.timedelta(minutes=20)
    status, _, text = send(l.url, "GET", "/bkt/a", sign(l.url, "s3", "GET", "/bkt/a", at=at))
    same((status, b"RequestTimeTooSkewed" in text), (403, True))


def test_short_window__is_a_setting(l):
    now = datetime.datetime.utcnow()
    same(json_call(l, signed(l, at=now - datetime.timedelta(seconds=1))), GOOD)
    same(json_call(l, signed(l, at=now - datetime.timedelta(seconds=9)))[:2], (400, "InvalidSignatureException"))


def test_malformed_authorization__is_refused_and_kills_nothing(l):
    h = signed(l)
    good = h["Authorization"]
    for bad in ("", "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=", good.replace("SignedHeaders", "Signed"),
                good.replace("/aws4_request", ""), good[:-10], good + "00", good.replace("host;", ""), "Basic YTpi",
                "AWS4-HMAC-SHA256 Credential=" + "A" * 5000, good.replace("content-type;", "content-type;no-such;")):
        status, _, text = send(l.url, "POST", "/", {**h, "Authorization": bad}, BODY)
        assert status in (400, 403), (bad, status)
    for date in ("", "x", "20260101T000000", "2026-01-01T00:00:00Z", "99999999T999999Z"):
        status, _, _ = send(l.url, "POST", "/", {**h, "X-Amz-Date": date}, BODY)
        assert status in (400, 403), (date, status)
    same(json_call(l, h), GOOD)


def test_hostile_http__is_survived(l):
    host, port = l.url.split("//")[1].split(":")
    for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 2000 + b"\r\n",
                 b"PUT /bkt/%zz HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
                 b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n",
                 b"GET /bkt/../../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n",
                 b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
                 b"PUT /bkt/x HTTP/1.1\r\nHost: a\r\nx-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\n"
                 b"Transfer-Encoding: chunked\r\n\r\n5\r\nzzzzz\r\n0\r\n\r\n"):
        s = socket.create_connection((host, int(port)), timeout=0.5)
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        try:
            while s.recv(65536):
                pass
        except (ConnectionError, TimeoutError):
            pass  # it may wait for the rest, but it must continue to serve others
        s.close()
    same(json_call(l, signed(l)), GOOD)
    for body in (b"", b"[]", b"{", b'{"TrainingJobName": 1', b"\xff\xfe", b'{"a":' * 5000):
        got = json_call(l, signed(l, body=body), body)
        same(got[:2], (400, "SerializationException"))
    same(json_call(l, signed(l, headers={**TARGET, "X-Amz-Target": "SageMaker.DeleteEverything"}))[1],
         "UnknownOperationException")


run([
    (test_good__is_taken_and_logged_as_signed, {}),
    (test_unsigned__is_refused, {}),
    (test_wrong_secret_and_unknown_key__are_refused, {}),
    (test_altered_request__is_refused, {}),
    (test_s3_payload_hash__is_held_against_the_body, {}),
    (test_wrong_scope__is_refused, {}),
    (test_clock__only_the_window_is_accepted, {}),
    (test_short_window__is_a_setting, {"signature_window_seconds": 5}),
    (test_malformed_authorization__is_refused_and_kills_nothing, {}),
    (test_hostile_http__is_survived, {}),
])
