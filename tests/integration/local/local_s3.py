#!/usr/bin/env python3
"""drover-local's S3 against two independent clients: botocore and the AWS command line. Objects, ranges,
conditions and their races, listings compared with a plain Python model, multipart uploads, signed chunks,
checksums.
"""
import base64
import datetime
import hashlib
import hmac
import os
import random
import shutil
import subprocess
import sys
import threading
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import patience, wait_for
from kit.local import KEY, SECRET, error_of, run, same, send, sign

MIB = 1 << 20


def body(s3, key, **more):
    return s3.get_object(Bucket="bkt", Key=key, **more)["Body"].read()


def test_object__comes_back_as_it_was_put(l):
    s3 = l.s3
    for key in ("a", "d/e/f.tar", "sp ace+plus%20&=?#", "\u00e4\u00f6/\u65e5\u672c", "x" * 255, "q'\"<>&"):
        data = os.urandom(1000)
        etag = s3.put_object(Bucket="bkt", Key=key, Body=data, ContentType="text/x", Metadata={"who": "me"})["ETag"]
        same(etag, '"%s"' % hashlib.md5(data).hexdigest())
        got = s3.get_object(Bucket="bkt", Key=key)
        same((got["Body"].read(), got["ETag"], got["ContentType"], got["Metadata"]),
             (data, etag, "text/x", {"who": "me"}))
        head = s3.head_object(Bucket="bkt", Key=key)
        same((head["ContentLength"], head["ETag"], head["Metadata"]), (1000, etag, {"who": "me"}))
        with open(os.path.join(l.root, "s3", "bkt", key), "rb") as f:
            same(f.read(), data)
    s3.put_object(Bucket="bkt", Key="empty", Body=b"")
    same(body(s3, "empty"), b"")
    s3.delete_object(Bucket="bkt", Key="d/e/f.tar")
    assert not os.path.exists(os.path.join(l.root, "s3", "bkt", "d"))
    same(error_of(s3.get_object, Bucket="bkt", Key="d/e/f.tar")[::2], ("NoSuchKey", 404))
    s3.delete_object(Bucket="bkt", Key="d/e/f.tar")


def test_overwrite__gives_the_new_bytes_and_etag(l):
    s3 = l.s3
    for i in range(20):
        data = b"%d" % i * 10
        s3.put_object(Bucket="bkt", Key="k", Body=data)
        got = s3.get_object(Bucket="bkt", Key="k")
        same((got["Body"].read(), got["ETag"]), (data, '"%s"' % hashlib.md5(data).hexdigest()))
    same(sum(len(f) for _, _, f in os.walk(os.path.join(l.root, "state", "meta"))), 1)


def test_file_put_by_hand__is_an_object(l):
    with open(os.path.join(l.root, "s3", "bkt", "hand"), "wb") as f:
        f.write(b"made by hand")
    got = l.s3.get_object(Bucket="bkt", Key="hand")
    same((got["Body"].read(), got["ETag"]), (b"made by hand", '"%s"' % hashlib.md5(b"made by hand").hexdigest()))
    same(l.s3.list_objects_v2(Bucket="bkt")["Contents"][0]["Size"], 12)


def test_range__gives_exactly_those_bytes(l):
    s3, data = l.s3, bytes(range(256))
    etag = s3.put_object(Bucket="bkt", Key="r", Body=data)["ETag"]
    for r, want in (("bytes=0-0", data[:1]), ("bytes=10-19", data[10:20]), ("bytes=250-999", data[250:]),
                    ("bytes=255-", data[255:]), ("bytes=-6", data[-6:]), ("bytes=-999", data)):
        got = s3.get_object(Bucket="bkt", Key="r", Range=r, IfMatch=etag)
        same((got["ResponseMetadata"]["HTTPStatusCode"], got["Body"].read()), (206, want))
    same(s3.get_object(Bucket="bkt", Key="r", Range="bytes=10-19")["ContentRange"], "bytes 10-19/256")
    for r in ("bytes=256-", "bytes=999-1000", "bytes=-0"):
        same(error_of(s3.get_object, Bucket="bkt", Key="r", Range=r)[::2], ("InvalidRange", 416))
    for r in ("bytes=9-5", "lines=1-2", "bytes=a-b", "bytes=0-1,4-5"):
        same(s3.get_object(Bucket="bkt", Key="r", Range=r)["ResponseMetadata"]["HTTPStatusCode"], 200)
    same(error_of(s3.get_object, Bucket="bkt", Key="r", IfMatch='"other"')[::2], ("PreconditionFailed", 412))
    same(error_of(s3.get_object, Bucket="bkt", Key="r", IfNoneMatch=etag)[2], 304)


def put(l, key, data, **headers):
    h = sign(l.url, "s3", "PUT", "/bkt/" + key, body=data, headers={k.replace("_", "-"): v for k, v in headers.items()})
    return send(l.url, "PUT", "/bkt/" + key, h, data)


def test_create_only__lets_one_of_many_win(l):
    same(put(l, "one", b"first", if_none_match="*")[0], 200)
    status, _, text = put(l, "one", b"second", if_none_match="*")
    same((status, b"PreconditionFailed" in text), (412, True))
    same(body(l.s3, "one"), b"first")
    for round_ in range(8):
        won, key = [], "deep/%d/race" % round_

        def go(i):
            if put(l, key, b"%d" % i, if_none_match="*")[0] == 200:
                won.append(b"%d" % i)
        threads = [threading.Thread(target=go, args=(i,)) for i in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        same((len(won), body(l.s3, key)), (1, won[0]))


def test_put_if_match__replaces_only_what_was_seen(l):
    etag = l.s3.put_object(Bucket="bkt", Key="m", Body=b"1")["ETag"]
    same(put(l, "m", b"2", if_match=etag)[0], 200)
    same(put(l, "m", b"3", if_match=etag)[0], 412)
    same(put(l, "none", b"3", if_match=etag)[0], 404)
    same(body(l.s3, "m"), b"2")


def test_bad_targets__are_refused(l):
    s3 = l.s3
    same(error_of(s3.put_object, Bucket="nobucket", Key="a", Body=b"")[::2], ("NoSuchBucket", 404))
    same(error_of(s3.list_objects_v2, Bucket="nobucket")[::2], ("NoSuchBucket", 404))
    same(error_of(s3.head_bucket, Bucket="nobucket")[2], 404)
    for path in ("/bkt/a/../b", "/bkt/./a", "/bkt/..", "/bkt/a//..", "/bkt/%2e%2e/%2e%2e/x", "/bkt/a%00b"):
        h = sign(l.url, "s3", "PUT", path, body=b"x")
        status = send(l.url, "PUT", path, h, b"x")[0]
        assert status in (400, 403), (path, status)
    same(send(l.url, "PUT", "/bkt/" + "k" * 1025, sign(l.url, "s3", "PUT", "/bkt/" + "k" * 1025), b"")[0], 400)
    same(sorted(os.listdir(os.path.join(l.root, "s3"))), [".tmp", "bkt"])
    wait_for(lambda: os.listdir(os.path.join(l.root, "s3", ".tmp")) == [], 5, "temporary files to go")
    same(error_of(l.s3.get_object, Bucket="closed", Key="x")[::2], ("AccessDenied", 403))
    s3.create_bucket(Bucket="fresh")
    same([b["Name"] for b in s3.list_buckets()["Buckets"]], ["bkt", "fresh"])
    s3.delete_bucket(Bucket="fresh")


AWKWARD = ["/", "//", "/a", "a//b", "a//", "a/", "a/b", "a/b/", "k" * 256, "k" * 1024, "a/" * 512, "f/" + "k" * 256 + "/g", "\u00e4" * 512, "a/b/c", "a"]


def test_awkward_keys__are_keys(l):
    s3, rng = l.s3, random.Random(3)
    for turn in range(3):  # whichever of `a` and `a/b` comes first
        keys = AWKWARD[::-1] if turn == 1 else rng.sample(AWKWARD, len(AWKWARD))
        for key in keys:
            s3.put_object(Bucket="bkt", Key=key, Body=b"old", Metadata={"who": "me"})
            s3.put_object(Bucket="bkt", Key=key, Body=key.encode(), Metadata={"who": "me"})
        same(listed(s3, 1000), model_list(keys))
        for key in keys:
            got = s3.get_object(Bucket="bkt", Key=key)
            same((got["Body"].read(), got["Metadata"]), (key.encode(), {"who": "me"}))
            same(s3.head_object(Bucket="bkt", Key=key)["ContentLength"], len(key.encode()))
        same(error_of(s3.delete_bucket, Bucket="bkt")[0], "BucketNotEmpty")
        l.kill()
        l.start()
        s3 = l.s3
        for i, key in enumerate(keys):
            same(listed(s3, 1000), model_list(keys[i:]))
            s3.delete_object(Bucket="bkt", Key=key)
            same(error_of(s3.head_object, Bucket="bkt", Key=key)[2], 404)
        same(os.listdir(os.path.join(l.root, "s3", "bkt")), [])
        same(sum(len(f) for _, _, f in os.walk(os.path.join(l.root, "state", "meta"))), 0)
    s3.put_object(Bucket="bkt", Key="from//it", Body=b"whole")
    s3.copy_object(Bucket="bkt", Key="to//it/", CopySource={"Bucket": "bkt", "Key": "from//it"})
    same(body(s3, "to//it/", Range="bytes=1-3"), b"hol")
    up = s3.create_multipart_upload(Bucket="bkt", Key="from//it/more")["UploadId"]
    part = {"PartNumber": 1, "ETag": s3.upload_part(Bucket="bkt", Key="from//it/more", UploadId=up, PartNumber=1, Body=b"part")["ETag"]}
    s3.complete_multipart_upload(Bucket="bkt", Key="from//it/more", UploadId=up, MultipartUpload={"Parts": [part]})
    same(body(s3, "from//it/more"), b"part")
    s3.delete_objects(Bucket="bkt", Delete={"Objects": [{"Key": "from//it"}, {"Key": "to//it/"}, {"Key": "from//it/more"}]})
    for key in ("in/", "in/sub/", "in/sub//x"):  # a marker is a folder of the channel
        s3.put_object(Bucket="bkt", Key=key, Body=b"" if key.endswith("/") else b"y")
    d = l.run("reads", 'cd "$DROVER_ML_ROOT/input/data/c" && test "$(find . -type d -o -type f | sort | tr "\\n" " ")" = ". ./sub ./sub/x "', InputDataConfig=[
        {"ChannelName": "c", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://bkt/in/"}}}])
    same((d["TrainingJobStatus"], d.get("FailureReason")), ("Completed", None))
    for key in listed(s3, 1000)[0]:
        s3.delete_object(Bucket="bkt", Key=key)
    same(listed(s3, 1000), ([], []))
    s3.delete_bucket(Bucket="bkt")


def model_list(keys, prefix="", delimiter="", after="", limit=1000):
    """The expected result of ListObjectsV2: (keys, prefixes) in byte order, all pages joined."""
    out, rolled = [], []
    for k in sorted(keys, key=lambda k: k.encode()):
        if not k.startswith(prefix) or k.encode() <= after.encode():
            continue
        cut = k.find(delimiter, len(prefix)) if delimiter else -1
        if cut < 0:
            out.append(k)
        elif k[:cut + len(delimiter)] not in rolled:
            rolled.append(k[:cut + len(delimiter)])
    return out, rolled


def listed(s3, page, **q):
    keys, rolled, token, pages = [], [], None, 0
    while True:
        r = s3.list_objects_v2(Bucket="bkt", MaxKeys=page, **(dict(q, ContinuationToken=token) if token else q))
        assert len(r.get("Contents", [])) + len(r.get("CommonPrefixes", [])) == r["KeyCount"] <= page
        keys += [c["Key"] for c in r.get("Contents", [])]
        rolled += [c["Prefix"] for c in r.get("CommonPrefixes", [])]
        token, pages = r.get("NextContinuationToken"), pages + 1
        assert bool(token) == r["IsTruncated"] and pages < 200
        if not token:
            return keys, rolled


def test_list__equals_the_model(l):
    rng, s3, keys = random.Random(5), l.s3, set()
    parts = ["a", "a-b", "a.b", "a+", "b c", "z", "\u00e4", "0", "aa", "a&b", "", "z" * 256]
    while len(keys) < 150:
        key = "/".join(rng.choice(parts) for _ in range(rng.randint(1, 4)))
        if key == "":
            continue
        keys.add(key)
        s3.put_object(Bucket="bkt", Key=key, Body=key.encode())
    for page in (1, 7, 1000):
        for prefix in ("", "/", "//", "a", "a/", "a//", "a-", "a-b/a", "zz", "\u00e4/"):
            for delimiter in ("", "/", "-"):
                same(listed(s3, page, Prefix=prefix, Delimiter=delimiter), model_list(keys, prefix, delimiter))
    for after in ("a", "a/", "/", "a//", "a-b/z", "b", "zzz", sorted(keys)[50]):
        same(listed(s3, 13, StartAfter=after), model_list(keys, after=after))
    same(s3.list_objects_v2(Bucket="bkt", MaxKeys=0)["IsTruncated"], False)
    c = s3.list_objects_v2(Bucket="bkt", MaxKeys=1)["Contents"][0]
    same((c["Size"], c["ETag"]), (len(c["Key"].encode()), '"%s"' % hashlib.md5(c["Key"].encode()).hexdigest()))
    same(error_of(s3.list_objects_v2, Bucket="bkt", ContinuationToken="zz")[0], "InvalidArgument")


def test_multipart__joins_its_parts(l):
    s3 = l.s3
    up = s3.create_multipart_upload(Bucket="bkt", Key="big/m", ContentType="application/x-tar")["UploadId"]
    data = [os.urandom(5 * MIB), os.urandom(5 * MIB + 17), b"tail"]
    parts = []
    for n in (3, 1, 2):
        s3.upload_part(Bucket="bkt", Key="big/m", UploadId=up, PartNumber=n, Body=b"first try")
        e = s3.upload_part(Bucket="bkt", Key="big/m", UploadId=up, PartNumber=n, Body=data[n - 1])["ETag"]
        parts.append({"PartNumber": n, "ETag": e})
    parts.sort(key=lambda p: p["PartNumber"])
    same([p["PartNumber"] for p in s3.list_parts(Bucket="bkt", Key="big/m", UploadId=up)["Parts"]], [1, 2, 3])
    same([u["UploadId"] for u in s3.list_multipart_uploads(Bucket="bkt")["Uploads"]], [up])
    done = lambda ps: s3.complete_multipart_upload(Bucket="bkt", Key="big/m", UploadId=up, MultipartUpload={"Parts": ps})  # noqa: E731
    same(error_of(done, parts[::-1])[0], "InvalidPartOrder")
    same(error_of(done, [dict(parts[0], ETag='"%s"' % ("0" * 32))])[0], "InvalidPart")
    same(error_of(done, parts + [{"PartNumber": 9, "ETag": parts[0]["ETag"]}])[0], "InvalidPart")
    same(error_of(s3.head_object, Bucket="bkt", Key="big/m")[2], 404)
    want = '"%s-3"' % hashlib.md5(b"".join(hashlib.md5(d).digest() for d in data)).hexdigest()
    same(done(parts)["ETag"], want)
    got = s3.get_object(Bucket="bkt", Key="big/m")
    same((got["Body"].read() == b"".join(data), got["ETag"], got["ContentType"]), (True, want, "application/x-tar"))
    same(error_of(done, parts)[0], "NoSuchUpload")
    same(os.listdir(os.path.join(l.root, "state", "uploads")), [])


def test_multipart__small_parts_abort_and_create_only(l):
    s3 = l.s3
    start = lambda: s3.create_multipart_upload(Bucket="bkt", Key="m")["UploadId"]  # noqa: E731
    part = lambda up, n, d: {"PartNumber": n, "ETag": s3.upload_part(Bucket="bkt", Key="m", UploadId=up, PartNumber=n, Body=d)["ETag"]}  # noqa: E731
    up = start()
    ps = [part(up, 1, b"small"), part(up, 2, b"small")]
    same(error_of(s3.complete_multipart_upload, Bucket="bkt", Key="m", UploadId=up, MultipartUpload={"Parts": ps})[0],
         "EntityTooSmall")
    s3.abort_multipart_upload(Bucket="bkt", Key="m", UploadId=up)
    same(error_of(s3.upload_part, Bucket="bkt", Key="m", UploadId=up, PartNumber=1, Body=b"x")[::2], ("NoSuchUpload", 404))
    up = start()
    same(error_of(s3.upload_part, Bucket="bkt", Key="other", UploadId=up, PartNumber=1, Body=b"x")[0], "NoSuchUpload")
    etag = part(up, 1, b"mine")["ETag"]
    s3.put_object(Bucket="bkt", Key="m", Body=b"theirs")
    text = b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part></CompleteMultipartUpload>" % etag.encode()
    path = "/bkt/m?uploadId=" + up
    h = sign(l.url, "s3", "POST", path, body=text, headers={"If-None-Match": "*", "Content-Type": "application/xml"})
    same(send(l.url, "POST", path, h, text)[0], 412)
    same(body(s3, "m"), b"theirs")
    s3.delete_object(Bucket="bkt", Key="m")
    same(send(l.url, "POST", path, h, text)[0], 200)
    same(body(s3, "m"), b"mine")
    wait_for(lambda: os.listdir(os.path.join(l.root, "s3", ".tmp")) == [], 5, "temporary files to go")


def chunked(l, key, data, spoil=None, size=65536):
    """A body in signed chunks (STREAMING-AWS4-HMAC-SHA256-PAYLOAD), signed by the test's own code."""
    at = datetime.datetime.utcnow().strftime("%Y%m%dT%H%M%SZ")
    scope = "%s/us-east-1/s3/aws4_request" % at[:8]
    hm = lambda k, m: hmac.new(k, m.encode(), hashlib.sha256)  # noqa: E731
    k = ("AWS4" + SECRET).encode()
    for m in scope.split("/"):
        k = hm(k, m).digest()
    head = {"host": l.url.split("//")[1], "x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "x-amz-date": at,
            "x-amz-decoded-content-length": str(len(data))}
    names = ";".join(sorted(head))
    canonical = "PUT\n/bkt/%s\n\n%s\n%s\n%s" % (key, "".join("%s:%s\n" % (n, head[n]) for n in sorted(head)), names,
                                               head["x-amz-content-sha256"])
    seed = hm(k, "AWS4-HMAC-SHA256\n%s\n%s\n%s" % (at, scope, hashlib.sha256(canonical.encode()).hexdigest())).hexdigest()
    out, previous = b"", seed
    for chunk in [data[i:i + size] for i in range(0, len(data), size)] + [b""]:
        sig = hm(k, "AWS4-HMAC-SHA256-PAYLOAD\n%s\n%s\n%s\n%s\n%s" % (
            at, scope, previous, hashlib.sha256(b"").hexdigest(), hashlib.sha256(chunk).hexdigest())).hexdigest()
        out += b"%x;chunk-signature=%s\r\n%s\r\n" % (len(chunk), sig.encode(), chunk)
        previous = sig
    if spoil is not None:
        out = spoil(out)
    head["Authorization"] = "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s" % (KEY, scope, names, seed)
    return send(l.url, "PUT", "/bkt/" + key, {**head, "Content-Encoding": "aws-chunked"}, out)


def test_signed_chunks__are_decoded_and_checked(l):
    data = os.urandom(200000)
    same(chunked(l, "c", data)[0], 200)
    same(body(l.s3, "c"), data)
    same(chunked(l, "e", b"")[0], 200)
    same(body(l.s3, "e"), b"")
    flip = lambda i: (lambda b: b[:i] + bytes([b[i] ^ 1]) + b[i + 1:])  # noqa: E731
    for spoil in (flip(1000), flip(150000), flip(30), lambda b: b[:-100], lambda b: b[:70000],
                  lambda b: b.replace(b"chunk-signature=", b"chunk-signature=0", 1)):
        status = chunked(l, "bad", data, spoil)[0]
        assert status in (400, 403), status
    same(error_of(l.s3.head_object, Bucket="bkt", Key="bad")[2], 404)


def test_checksums__are_held_against_the_body(l):
    data = b"checked"
    good = {"x_amz_checksum_sha256": base64.b64encode(hashlib.sha256(data).digest()).decode(),
            "x_amz_checksum_crc32": base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode(),
            "content_md5": base64.b64encode(hashlib.md5(data).digest()).decode()}
    for k in good:
        same(put(l, "ok", data, **{k: good[k]})[0], 200)
        wrong = ("B" if good[k][0] == "A" else "A") + good[k][1:]
        status, _, text = put(l, "bad", data, **{k: wrong})
        same((status, b"BadDigest" in text), (400, True))
    trailer = b"7\r\nchecked\r\n0\r\nx-amz-checksum-crc32:%s\r\n\r\n"
    for value, want in ((good["x_amz_checksum_crc32"], 200), ("AAAAAA==", 400)):
        h = sign(l.url, "s3", "PUT", "/bkt/t", body=b"")
        raw = {"X-Amz-Content-SHA256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "X-Amz-Trailer": "x-amz-checksum-crc32",
               "X-Amz-Decoded-Content-Length": "7"}
        h = sign_as(l, "PUT", "/bkt/t", raw)
        same(send(l.url, "PUT", "/bkt/t", h, trailer % value.encode())[0], want)


def sign_as(l, method, path, headers):
    """Sign with these headers; x-amz-content-sha256 is used unchanged."""
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials

    class Auth(botocore.auth.S3SigV4Auth):
        def payload(self, request):
            return headers["X-Amz-Content-SHA256"]
    r = botocore.awsrequest.AWSRequest(method, l.url + path, headers=dict(headers))
    Auth(botocore.credentials.Credentials(KEY, SECRET), "s3", "us-east-1").add_auth(r)
    out = dict(r.headers.items())
    return out


def aws(l, *words):
    env = {"PATH": os.environ["PATH"], "HOME": l.dir, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
           "AWS_DEFAULT_REGION": "us-east-1", "AWS_PAGER": "", "AWS_MAX_ATTEMPTS": "1"}
    program = "/usr/bin/aws" if os.path.exists("/usr/bin/aws") else "aws"
    p = subprocess.run([program, "--endpoint-url", l.url, *words], env=env, capture_output=True, text=True, timeout=patience(60))
    assert p.returncode == 0, (words, p.stdout, p.stderr)
    return p.stdout


def test_aws_command_line__copies_lists_and_describes(l):
    tree = os.path.join(l.dir, "tree")
    os.makedirs(os.path.join(tree, "sub"))
    want = {}
    for name, size in (("a.bin", 100), ("sub/b.bin", 20 * MIB + 5), ("empty", 0)):
        want[name] = os.urandom(size)
        with open(os.path.join(tree, name), "wb") as f:
            f.write(want[name])
    aws(l, "s3", "cp", "--recursive", "--quiet", tree, "s3://bkt/up/")
    aws(l, "s3", "sync", "--quiet", "s3://bkt/up/", os.path.join(l.dir, "back"))
    for name, data in want.items():
        with open(os.path.join(l.dir, "back", name), "rb") as f:
            assert f.read() == data, name
    out = aws(l, "s3", "ls", "--recursive", "s3://bkt/up/")
    same([x.split()[-1] for x in out.splitlines()], ["up/a.bin", "up/empty", "up/sub/b.bin"])
    out = aws(l, "s3", "ls", "s3://bkt/up/")
    assert "PRE sub/" in out and "a.bin" in out
    aws(l, "s3", "rm", "--quiet", "s3://bkt/up/a.bin")
    l.run("cli")
    same(aws(l, "sagemaker", "describe-training-job", "--training-job-name", "cli", "--query", "TrainingJobStatus",
             "--output", "text").strip(), "Completed")
    same(aws(l, "sts", "get-caller-identity", "--query", "Account", "--output", "text").strip(), "123456789012")
    assert all(q["signed"] for q in l.wire())
    shutil.rmtree(tree)


run([(t, c) for t, c in [
    (test_object__comes_back_as_it_was_put, {}),
    (test_overwrite__gives_the_new_bytes_and_etag, {}),
    (test_file_put_by_hand__is_an_object, {}),
    (test_range__gives_exactly_those_bytes, {}),
    (test_create_only__lets_one_of_many_win, {}),
    (test_put_if_match__replaces_only_what_was_seen, {}),
    (test_bad_targets__are_refused, {"denied_buckets": ["closed"]}),
    (test_awkward_keys__are_keys, {}),
    (test_list__equals_the_model, {}),
    (test_multipart__joins_its_parts, {}),
    (test_multipart__small_parts_abort_and_create_only, {}),
    (test_signed_chunks__are_decoded_and_checked, {}),
    (test_checksums__are_held_against_the_body, {}),
    (test_aws_command_line__copies_lists_and_describes, {}),
]])
