#!/usr/bin/env python3
"""drover-local's S3 checksums and encryption, against botocore: what a client states is compared with what
arrived, kept, and answered as S3 does; a bucket encrypted with a key of KMS has ETags that are no MD5.
Expected values are computed here, from hashlib, zlib and a bitwise CRC.
"""
import base64
import hashlib
import os
import re
import sys
import threading
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.local import error_of, run, same, send, sign

MIB = 1 << 20
KMS = {"kms_buckets": ["sealed"], "kms_only_buckets": ["strict"]}


def crc(data, bits, polynomial):
    """A reflected CRC; its table is made one bit at a time."""
    table = list(range(256))
    for _ in range(8):
        table = [(t >> 1) ^ (polynomial if t & 1 else 0) for t in table]
    c = (1 << bits) - 1
    for byte in data:
        c = (c >> 8) ^ table[(c ^ byte) & 255]
    return (c ^ ((1 << bits) - 1)).to_bytes(bits // 8, "big")


RAW = {
    "SHA256": lambda d: hashlib.sha256(d).digest(),
    "SHA1": lambda d: hashlib.sha1(d).digest(),
    "CRC32": lambda d: zlib.crc32(d).to_bytes(4, "big"),
    "CRC32C": lambda d: crc(d, 32, 0x82F63B78),
    "CRC64NVME": lambda d: crc(d, 64, 0x9A6C9329AC4BC9B5),
}


def b64(raw):
    return base64.b64encode(raw).decode()


def value(algorithm, data):
    return b64(RAW[algorithm](data))


def composite(algorithm, parts):
    return "%s-%d" % (b64(RAW[algorithm](b"".join(RAW[algorithm](p) for p in parts))), len(parts))


def put(l, key, data, headers, method="PUT"):
    return send(l.url, method, "/bkt/" + key, sign(l.url, "s3", method, "/bkt/" + key, data, headers), data)


def head(l, key):
    """The checksum headers of HEAD with and without x-amz-checksum-mode."""
    path, out = "/bkt/" + key, []
    for more in ({}, {"x-amz-checksum-mode": "ENABLED"}):
        h = {k.lower(): v for k, v in send(l.url, "HEAD", path, sign(l.url, "s3", "HEAD", path, b"", more))[1].items()}
        out.append({k: v for k, v in h.items() if k.startswith("x-amz-checksum")})
    return out


def code(text):
    return re.search(rb"<Code>(.*?)</Code>", text).group(1).decode()


def test_crcs__have_their_published_values(l):
    del l  # only of this file's own code
    same((RAW["CRC32C"](b"123456789").hex(), RAW["CRC64NVME"](b"123456789").hex()), ("e3069283", "ae8b14860a799888"))


def test_put__keeps_and_answers_the_checksum(l):
    data = os.urandom(3000)
    for name in RAW:
        header = "x-amz-checksum-" + name.lower()
        status, answer, _ = put(l, name, data, {header: value(name, data)})
        same((status, {k.lower(): v for k, v in answer.items()}[header]), (200, value(name, data)))
        same(head(l, name), [{}, {header: value(name, data), "x-amz-checksum-type": "FULL_OBJECT"}])
    status, answer, _ = put(l, "plain", data, {})  # S3 gives it one of its own
    own = {"x-amz-checksum-crc64nvme": value("CRC64NVME", data), "x-amz-checksum-type": "FULL_OBJECT"}
    same((status, {k.lower(): v for k, v in answer.items() if "checksum" in k.lower()}), (200, own))
    same(head(l, "plain"), [{}, own])
    got = l.s3.get_object(Bucket="bkt", Key="SHA256", ChecksumMode="ENABLED")
    same((got["ChecksumSHA256"], got["Body"].read()), (value("SHA256", data), data))
    got = l.s3.get_object(Bucket="bkt", Key="SHA256", ChecksumMode="ENABLED", Range="bytes=0-9")
    assert "ChecksumSHA256" not in got, got


def test_botocore__has_its_checksums_verified(l):
    for name in ("SHA256", "SHA1", "CRC32"):
        data = os.urandom(1000)
        r = l.s3.put_object(Bucket="bkt", Key=name, Body=data, ChecksumAlgorithm=name)
        same(r["Checksum" + name], value(name, data))
        r = l.s3.head_object(Bucket="bkt", Key=name, ChecksumMode="ENABLED")
        same(r["Checksum" + name], value(name, data))
        wrong = {"Checksum" + name: value(name, data + b"x")}
        same(error_of(l.s3.put_object, Bucket="bkt", Key="bad", Body=data, **wrong)[::2], ("BadDigest", 400))
    same(error_of(l.s3.head_object, Bucket="bkt", Key="bad")[2], 404)


def test_put__refuses_what_s3_refuses(l):
    data = b"stated"
    for name in RAW:
        header = "x-amz-checksum-" + name.lower()
        flipped = bytes([data[0] ^ 1]) + data[1:]
        status, _, text = put(l, "bad", flipped, {header: value(name, data)})
        same((name, status, code(text)), (name, 400, "BadDigest"))
        for text_ in ("", "AAAA", value(name, data)[:-1], "?" + value(name, data)[1:]):
            status, _, text = put(l, "bad", data, {header: text_})
            same((name, text_, status, code(text)), (name, text_, 400, "InvalidRequest"))
    both = {"x-amz-checksum-" + n.lower(): value(n, data) for n in ("SHA256", "CRC32")}
    status, _, text = put(l, "bad", data, both)
    same((status, code(text)), (400, "InvalidRequest"))
    same(error_of(l.s3.head_object, Bucket="bkt", Key="bad")[2], 404)


def upload(l, parts, algorithm=None, spoil=None, bucket="bkt"):
    """A multipart upload by botocore: the answer of Complete."""
    s3 = l.s3
    more = {"ChecksumAlgorithm": algorithm} if algorithm else {}
    up = s3.create_multipart_upload(Bucket=bucket, Key="m", **more)["UploadId"]
    where, done = {"Bucket": bucket, "Key": "m", "UploadId": up}, []
    for i, data in enumerate(parts):
        more = {"Checksum" + algorithm: value(algorithm, data)} if algorithm else {}
        r = s3.upload_part(PartNumber=i + 1, Body=data, **where, **more)
        done.append({"PartNumber": i + 1, "ETag": r["ETag"], **{k: r[k] for k in more}})
        same({k: r[k] for k in more}, more)
    listed = s3.list_parts(**where)
    same([p.get("Checksum%s" % algorithm) for p in listed["Parts"]], [value(algorithm, p) if algorithm else None for p in parts])
    if spoil:
        spoil(done)
    try:
        return s3.complete_multipart_upload(MultipartUpload={"Parts": done}, **where)
    except s3.exceptions.ClientError as e:
        s3.abort_multipart_upload(**where)
        return e.response["Error"]["Code"]


def test_multipart__has_the_composite_checksum(l):
    parts = [os.urandom(5 * MIB), os.urandom(5 * MIB), b"tail"]
    for name in ("SHA256", "SHA1", "CRC32"):
        want = composite(name, parts)
        same(upload(l, parts, name)["Checksum" + name], want)
        same(l.s3.head_object(Bucket="bkt", Key="m", ChecksumMode="ENABLED")["Checksum" + name], want)
        same(head(l, "m")[1]["x-amz-checksum-type"], "COMPOSITE")
        l.s3.delete_object(Bucket="bkt", Key="m")
    plain = {k: v for k, v in upload(l, parts).items() if k.startswith("Checksum")}
    assert not set(plain) - {"ChecksumCRC64NVME", "ChecksumType"}, plain
    whole = {"x-amz-checksum-crc64nvme": value("CRC64NVME", b"".join(parts)), "x-amz-checksum-type": "FULL_OBJECT"}
    same(head(l, "m"), [{}, whole])


def test_multipart__refuses_what_s3_refuses(l):
    s3, parts = l.s3, [b"only"]

    def lacks(done):
        del done[0]["ChecksumSHA256"]

    def differs(done):
        done[0]["ChecksumSHA256"] = value("SHA256", b"other")
    same(upload(l, parts, "SHA256", lacks), "InvalidRequest")
    same(upload(l, parts, "SHA256", differs), "InvalidPart")
    for stated in ({}, {"ChecksumSHA1": value("SHA1", b"x")}):
        up = s3.create_multipart_upload(Bucket="bkt", Key="m", ChecksumAlgorithm="SHA256")["UploadId"]
        where = {"Bucket": "bkt", "Key": "m", "UploadId": up, "PartNumber": 1, "Body": b"x"}
        same(error_of(s3.upload_part, **where, **stated)[::2], ("InvalidRequest", 400))
    up = s3.create_multipart_upload(Bucket="bkt", Key="m")["UploadId"]
    same(error_of(s3.upload_part, Bucket="bkt", Key="m", UploadId=up, PartNumber=1, Body=b"x", ChecksumSHA256=value("SHA256", b"y"))[::2], ("BadDigest", 400))
    up = s3.create_multipart_upload(Bucket="bkt", Key="m", ChecksumAlgorithm="SHA256")["UploadId"]
    same(error_of(s3.upload_part, Bucket="bkt", Key="m", UploadId=up, PartNumber=1, Body=b"x",
                  ChecksumSHA256=value("SHA256", b"y"))[::2], ("BadDigest", 400))
    for headers in ({"x-amz-checksum-algorithm": "MD4"}, {"x-amz-checksum-algorithm": "SHA256", "x-amz-checksum-type": "FULL_OBJECT"},
                    {"x-amz-checksum-algorithm": "CRC64NVME", "x-amz-checksum-type": "COMPOSITE"}):
        status, _, text = put(l, "m?uploads=", b"", headers, "POST")
        same((status, code(text)), (400, "InvalidRequest"))


def test_crc64nvme__is_of_the_whole_object(l):
    text = put(l, "w?uploads=", b"", {"x-amz-checksum-algorithm": "CRC64NVME"}, "POST")[2]
    up = re.search(rb"<UploadId>(.*?)<", text).group(1).decode()
    etag = put(l, "w?partNumber=1&uploadId=" + up, b"whole", {})[1]["ETag"]
    body = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part></CompleteMultipartUpload>" % etag
    status, _, text = put(l, "w?uploadId=" + up, body.encode(), {"Content-Type": "application/xml"}, "POST")
    same((status, re.search(rb"<ChecksumCRC64NVME>(.*?)<", text).group(1).decode()), (200, value("CRC64NVME", b"whole")))
    same(head(l, "w")[1], {"x-amz-checksum-crc64nvme": value("CRC64NVME", b"whole"), "x-amz-checksum-type": "FULL_OBJECT"})


def test_checksums__outlive_a_restart(l):
    data = b"kept"
    l.s3.put_object(Bucket="bkt", Key="k", Body=data, ChecksumSHA256=value("SHA256", data))
    l.kill()
    l.start()
    same(head(l, "k")[1]["x-amz-checksum-sha256"], value("SHA256", data))


def test_kms_bucket__has_etags_that_are_no_md5(l):
    l.s3.create_bucket(Bucket="sealed")
    data, seen = b"sealed", set()
    for _ in range(3):
        put_ = l.s3.put_object(Bucket="sealed", Key="k", Body=data)
        got = l.s3.get_object(Bucket="sealed", Key="k", IfMatch=put_["ETag"])
        same((put_["ETag"], put_["ServerSideEncryption"], got["ServerSideEncryption"], got["Body"].read()),
             (got["ETag"], "aws:kms", "aws:kms", data))
        same(l.s3.list_objects_v2(Bucket="sealed")["Contents"][0]["ETag"], put_["ETag"])
        assert re.fullmatch('"[0-9a-f]{32}"', put_["ETag"]) and put_["SSEKMSKeyId"].startswith("arn:aws:kms:"), put_
        seen.add(put_["ETag"])
    assert len(seen) == 3 and '"%s"' % hashlib.md5(data).hexdigest() not in seen, seen
    parts = [os.urandom(5 * MIB), b"tail"]
    r = upload(l, parts, "SHA256", bucket="sealed")
    plain = hashlib.md5(b"".join(hashlib.md5(p).digest() for p in parts)).hexdigest()
    same((r["ChecksumSHA256"], r["ServerSideEncryption"], r["ETag"].endswith('-2"'), plain in r["ETag"]),
         (composite("SHA256", parts), "aws:kms", True, False))
    same(l.s3.get_object(Bucket="sealed", Key="m")["Body"].read(), b"".join(parts))
    same(l.s3.put_object(Bucket="bkt", Key="k", Body=data)["ETag"], '"%s"' % hashlib.md5(data).hexdigest())


def test_kms_only_bucket__takes_what_asks_for_a_key(l):
    l.s3.create_bucket(Bucket="strict")
    l.s3.put_object(Bucket="bkt", Key="k", Body=b"x")
    for call, more in ((l.s3.put_object, {"Body": b"x"}), (l.s3.create_multipart_upload, {}), (l.s3.copy_object, {"CopySource": "bkt/k"})):
        for other in ({}, {"ServerSideEncryption": "AES256"}):
            same(error_of(call, Bucket="strict", Key="k", **more, **other)[0], "AccessDenied")
        r = call(Bucket="strict", Key="k", ServerSideEncryption="aws:kms", SSEKMSKeyId="alias/k", **more)
        same((r["ServerSideEncryption"], r["SSEKMSKeyId"]), ("aws:kms", "alias/k"))
    part = l.s3.upload_part(Bucket="strict", Key="m", UploadId=l.s3.create_multipart_upload(Bucket="strict", Key="m", ServerSideEncryption="aws:kms")["UploadId"], PartNumber=1, Body=b"x")
    assert part["ETag"], part


def test_two_writers__one_wins_and_its_checksum_is_the_objects(l):
    for round_ in range(5):
        won, key = [], "race%d" % round_

        def go(i):
            data = b"%d" % i * 1000
            more = {"If-None-Match": "*", "x-amz-checksum-sha256": value("SHA256", data)}
            if put(l, key, data, more)[0] == 200:
                won.append(data)
        threads = [threading.Thread(target=go, args=(i,)) for i in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        same(([value("SHA256", d) for d in won], l.s3.get_object(Bucket="bkt", Key=key)["Body"].read()),
             ([head(l, key)[1]["x-amz-checksum-sha256"]], won[0]))


run([(test_crcs__have_their_published_values, {}),
     (test_put__keeps_and_answers_the_checksum, {}),
     (test_botocore__has_its_checksums_verified, {}),
     (test_put__refuses_what_s3_refuses, {}),
     (test_multipart__has_the_composite_checksum, {}),
     (test_multipart__refuses_what_s3_refuses, {}),
     (test_crc64nvme__is_of_the_whole_object, {}),
     (test_checksums__outlive_a_restart, {}),
     (test_kms_bucket__has_etags_that_are_no_md5, KMS),
     (test_kms_only_bucket__takes_what_asks_for_a_key, KMS),
     (test_two_writers__one_wins_and_its_checksum_is_the_objects, {})])
