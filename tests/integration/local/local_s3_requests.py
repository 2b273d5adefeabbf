#!/usr/bin/python3
"""drover-local's S3 beyond put and get: copies of objects and parts, deletion of many keys, presigned URLs, the older listing, and
what is not played, which must be refused and never be taken for the object. Method: botocore and the AWS command line.
"""
import hashlib
import os
import subprocess
import sys
import urllib.error
import urllib.request

import botocore.config

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import patience, wait_for
from kit.local import KEY, SECRET, error_of, run, same, send, sign

MIB = 1 << 20


def body(s3, key, bucket="bkt"):
    return s3.get_object(Bucket=bucket, Key=key)["Body"].read()


def test_copy__takes_bytes_and_metadata(l):
    s3, data = l.s3, os.urandom(3 * MIB)
    s3.create_bucket(Bucket="other")
    s3.put_object(Bucket="bkt", Key="d/ä b+c%", Body=data, ContentType="text/x", Metadata={"who": "me"}, ChecksumAlgorithm="SHA256")
    etag = '"%s"' % hashlib.md5(data).hexdigest()
    same(s3.copy_object(Bucket="other", Key="x/y", CopySource={"Bucket": "bkt", "Key": "d/ä b+c%"})["CopyObjectResult"]["ETag"], etag)
    got = s3.get_object(Bucket="other", Key="x/y")
    same((got["Body"].read() == data, got["ETag"], got["ContentType"], got["Metadata"]), (True, etag, "text/x", {"who": "me"}))
    s3.copy_object(Bucket="bkt", Key="n", CopySource="/other/x/y", MetadataDirective="REPLACE", Metadata={"a": "b"})
    same((s3.head_object(Bucket="bkt", Key="n")["Metadata"], body(s3, "n") == data), ({"a": "b"}, True))
    same(error_of(s3.copy_object, Bucket="bkt", Key="n", CopySource="bkt/n")[::2], ("InvalidRequest", 400))
    s3.copy_object(Bucket="bkt", Key="n", CopySource="bkt/n", MetadataDirective="REPLACE", Metadata={"a": "c"})
    same((s3.head_object(Bucket="bkt", Key="n")["Metadata"], body(s3, "n") == data), ({"a": "c"}, True))
    for source, code in (("bkt/none", "NoSuchKey"), ("nowhere/n", "NoSuchBucket"), ("closed/n", "AccessDenied"), ("bkt", "InvalidArgument"), ("bkt/n?versionId=1", "InvalidArgument")):
        same(error_of(s3.copy_object, Bucket="bkt", Key="m", CopySource=source)[0], code)
    same(error_of(s3.copy_object, Bucket="bkt", Key="m", CopySource="bkt/n", CopySourceIfMatch='"0"')[::2], ("PreconditionFailed", 412))
    same(error_of(s3.copy_object, Bucket="bkt", Key="m", CopySource="bkt/n", CopySourceIfNoneMatch=etag)[0], "PreconditionFailed")
    same(error_of(s3.head_object, Bucket="bkt", Key="m")[2], 404)
    wait_for(lambda: os.listdir(os.path.join(l.root, "s3", ".tmp")) == [], 5, "temporary files to go")


def test_part_copy__joins_ranges(l):
    s3, data = l.s3, os.urandom(11 * MIB + 3)
    s3.put_object(Bucket="bkt", Key="s", Body=data)
    up = s3.create_multipart_upload(Bucket="bkt", Key="t")["UploadId"]
    parts = []
    for n, (a, b) in enumerate(((0, 5 * MIB - 1), (5 * MIB, 11 * MIB), (11 * MIB + 1, 11 * MIB + 2)), 1):
        r = s3.upload_part_copy(Bucket="bkt", Key="t", UploadId=up, PartNumber=n, CopySource="bkt/s", CopySourceRange=f"bytes={a}-{b}")["CopyPartResult"]
        same(r["ETag"], '"%s"' % hashlib.md5(data[a:b + 1]).hexdigest())
        parts.append({"PartNumber": n, "ETag": r["ETag"]})
    same(error_of(s3.upload_part_copy, Bucket="bkt", Key="t", UploadId=up, PartNumber=4, CopySource="bkt/s", CopySourceRange=f"bytes={len(data)}-")[0], "InvalidArgument")
    same(error_of(s3.upload_part_copy, Bucket="bkt", Key="t", UploadId="0" * 32, PartNumber=4, CopySource="bkt/s")[0], "NoSuchUpload")
    s3.complete_multipart_upload(Bucket="bkt", Key="t", UploadId=up, MultipartUpload={"Parts": parts})
    assert body(s3, "t") == data


def test_delete_objects__answers_for_each_key(l):
    s3 = l.s3
    for key in ("a", "b&<c>", "d/e"):
        s3.put_object(Bucket="bkt", Key=key, Body=b"x")
    r = s3.delete_objects(Bucket="bkt", Delete={"Objects": [{"Key": k} for k in ("a", "b&<c>", "none")]})
    same(([d["Key"] for d in r["Deleted"]], r.get("Errors")), (["a", "b&<c>", "none"], None))
    same([c["Key"] for c in s3.list_objects_v2(Bucket="bkt")["Contents"]], ["d/e"])
    same(s3.delete_objects(Bucket="bkt", Delete={"Objects": [{"Key": "d/e"}], "Quiet": True}).get("Deleted"), None)
    same(s3.list_objects_v2(Bucket="bkt")["KeyCount"], 0)
    same(error_of(s3.delete_objects, Bucket="nobucket", Delete={"Objects": [{"Key": "a"}]})[0], "NoSuchBucket")
    same(error_of(s3.delete_objects, Bucket="bkt", Delete={"Objects": [{"Key": "k%d" % i} for i in range(1001)]})[0], "MalformedXML")
    same(len(s3.delete_objects(Bucket="bkt", Delete={"Objects": [{"Key": "k%d" % i} for i in range(1000)]})["Deleted"]), 1000)
    text = b"<Delete><Object><Key>a</Key></Object></Delete>"
    h = sign(l.url, "s3", "POST", "/bkt?delete", body=text)
    same(send(l.url, "POST", "/bkt?delete", h, text)[0], 400)  # without checksum or MD5
    h = sign(l.url, "s3", "POST", "/bkt?delete", body=text, headers={"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="})
    assert b"BadDigest" in send(l.url, "POST", "/bkt?delete", h, text)[2]


def fetch(url, method="GET", data=None, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method, data=data, headers=headers), timeout=patience(20)) as r:
            return r.status, r.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def test_presigned__is_its_own_permission(l):
    s3 = l.client("s3", signature_version="s3v4")
    s3.put_object(Bucket="bkt", Key="d/ä b", Body=b"data")

    def url(method="get_object", expires=60, client=s3, **more):
        return client.generate_presigned_url(method, Params={"Bucket": "bkt", "Key": "d/ä b", **more}, ExpiresIn=expires)
    same(fetch(url()), (200, b"data"))
    same(fetch(url(), Range="bytes=1-2"), (206, b"at"))
    same(fetch(url("put_object", ContentType="text/x", Metadata={"who": "me"}), "PUT", b"new", **{"Content-Type": "text/x", "x-amz-meta-who": "me"})[0], 200)
    same((body(s3, "d/ä b"), s3.head_object(Bucket="bkt", Key="d/ä b")["Metadata"]), (b"new", {"who": "me"}))
    same(fetch(url("put_object"), "PUT", b"more", **{"x-amz-meta-who": "you"})[0], 403)  # a header that is not signed
    same(fetch(url(), "PUT", b"x")[0], 403)
    for wrong in (url().replace("/d/", "/e/"), url().replace("Expires=60", "Expires=61"), url()[:-1] + ("0" if url()[-1] != "0" else "1"), url() + "&partNumber=1"):
        assert b"SignatureDoesNotMatch" in fetch(wrong)[1], wrong
    assert b"AuthorizationHeaderMalformed" in fetch(url(expires=604801))[1]
    assert b"AuthorizationHeaderMalformed" in fetch(url() + "&x=" + "y" * 5000)[1]
    assert b"InvalidAccessKeyId" in fetch(url(client=l.client("s3", key="AKIANOBODY", signature_version="s3v4")))[1]
    short = url(expires=1)
    same(wait_for(lambda: fetch(short)[0] != 200 and fetch(short), 10, "its end")[0], 403)
    assert b"Request has expired" in fetch(short)[1]
    keys = l.client("sts").assume_role(RoleArn="arn:aws:iam::123456789012:role/r", RoleSessionName="me")["Credentials"]
    role = l.session.create_client("s3", region_name="us-east-1", endpoint_url=l.url, aws_access_key_id=keys["AccessKeyId"], aws_secret_access_key=keys["SecretAccessKey"],
                                   aws_session_token=keys["SessionToken"], config=botocore.config.Config(signature_version="s3v4"))
    same(fetch(url(client=role))[0], 200)
    same(body(s3, "d/ä b"), b"new")


def test_list_objects__the_older_way(l):
    s3, keys = l.s3, sorted(f"{a}/{b}" for a in "ab" for b in ("x", "y&z", "ä"))
    for key in keys:
        s3.put_object(Bucket="bkt", Key=key, Body=b"x")
    for page in (1, 2, 1000):
        for delimiter, want in (("", keys), ("/", ["a/", "b/"])):
            got, marker = [], ""
            while marker is not None:
                r = s3.list_objects(Bucket="bkt", MaxKeys=page, Delimiter=delimiter, Marker=marker)
                found = [c["Key"] for c in r.get("Contents", [])] + [c["Prefix"] for c in r.get("CommonPrefixes", [])]
                assert len(found) <= page and r["Marker"] == marker and ("NextMarker" in r) == (r["IsTruncated"] and delimiter != "")
                got += found
                marker = r.get("NextMarker", found[-1]) if r["IsTruncated"] else None
            same(got, want)


def test_what_is_not_played__is_refused(l):
    s3 = l.s3
    s3.put_object(Bucket="bkt", Key="k", Body=b"bytes")
    tags = {"TagSet": [{"Key": "a", "Value": "b"}]}
    for call, more in ((s3.put_object_tagging, dict(Tagging=tags)), (s3.get_object_tagging, {}), (s3.delete_object_tagging, {}), (s3.get_object_acl, {}), (s3.put_object_acl, dict(ACL="private")),
                       (s3.get_object_attributes, dict(ObjectAttributes=["ETag"])), (s3.get_object_torrent, {}), (s3.put_object_retention, dict(Retention={})), (s3.restore_object, {}),
                       (s3.get_object, dict(VersionId="1"))):
        same(error_of(call, Bucket="bkt", Key="k", **more)[::2], ("NotImplemented", 501))
    for call, more in ((s3.get_bucket_versioning, {}), (s3.get_bucket_acl, {}), (s3.put_bucket_tagging, dict(Tagging=tags)), (s3.list_object_versions, {}), (s3.get_bucket_policy, {}),
                       (s3.delete_bucket_lifecycle, {}), (s3.get_bucket_encryption, {})):
        same(error_of(call, Bucket="bkt", **more)[::2], ("NotImplemented", 501))
    same(body(s3, "k"), b"bytes")


def test_aws_command_line__moves_and_removes(l):
    def aws(*words):
        env = {"PATH": os.environ["PATH"], "HOME": l.dir, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1", "AWS_PAGER": ""}
        p = subprocess.run(["/usr/bin/aws", "--endpoint-url", l.url, *words], env=env, capture_output=True, text=True, timeout=patience(60), check=False)
        assert p.returncode == 0, (words, p.stdout, p.stderr)
        return p.stdout.strip()
    for key in ("d/a", "d/b"):
        l.s3.put_object(Bucket="bkt", Key=key, Body=key.encode())
    aws("s3", "mv", "--quiet", "s3://bkt/d/a", "s3://bkt/e/a")
    aws("s3", "cp", "--quiet", "s3://bkt/d/b", "s3://bkt/e/b")
    same([x.split()[-1] for x in aws("s3", "ls", "--recursive", "s3://bkt/").splitlines()], ["d/b", "e/a", "e/b"])
    same(fetch(aws("s3", "presign", "s3://bkt/e/a"))[1], b"d/a")
    aws("s3api", "delete-objects", "--bucket", "bkt", "--delete", "Objects=[{Key=e/a},{Key=e/b}]")
    same(aws("s3", "ls", "--recursive", "s3://bkt/").split()[-1], "d/b")


if __name__ == "__main__":
    run([(test_copy__takes_bytes_and_metadata, {"denied_buckets": ["closed"]}), (test_part_copy__joins_ranges, {}), (test_delete_objects__answers_for_each_key, {}),
         (test_presigned__is_its_own_permission, {}), (test_list_objects__the_older_way, {}), (test_what_is_not_played__is_refused, {}), (test_aws_command_line__moves_and_removes, {})])
