"""drover-local as the worker's S3: its folders, wire log, ordered failures and open uploads."""
import hashlib
import os
import urllib.request

import botocore.config
import botocore.session

from kit import policies, service_model
from kit.worker import *

KEY, SECRET = "AKIAWORKERTEST", "worker-secret"  # bound by deploy/iam/job.json
READER = "AKIAREADER", "secret-of-the-reader"  # the test's own
ACCOUNT = "123456789012"
PART_BYTES = 8 << 20  # of a multipart upload of the worker
PIECES = (".parquet", ".tar", "_stats.json")


class Local:
    """One running drover-local with the buckets data, sealed (encrypted with a key of KMS) and locked
    (read-only).
    """

    def __init__(self, d, refused=(), **config_more):
        self.refused = refused  # operations that the test sends wrong on purpose
        self.root = os.path.join(d, "local")
        self.buckets = os.path.join(self.root, "s3")
        os.makedirs(os.path.join(self.buckets, "data", "meta"))
        os.makedirs(os.path.join(self.buckets, "locked"))
        os.makedirs(os.path.join(self.buckets, "sealed"))
        config = os.path.join(d, "local.json")
        job = policies.shipped("job", ACCOUNT, ["data", "sealed", "locked", "public", "nope-bucket"])
        json.dump({"credentials": {KEY: SECRET, READER[0]: READER[1]}, "policies": {KEY: [job]}, "denied_buckets": ["locked"], "kms_buckets": ["sealed"],
                   "log_bodies": True, **config_more}, open(config, "w"))
        port = os.path.join(d, "port")
        self.p = subprocess.Popen([os.path.join(TOP, "build/bin/drover-local"), "--root", self.root, "--listen", "127.0.0.1:0",
                                   "--config", config, "--port-file", port],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(port) and os.path.getsize(port) > 0)
        self.url = "http://127.0.0.1:" + open(port).read().strip().rsplit(":", 1)[-1]

    def env(self, **kw):
        e = dict(AWS_ENDPOINT_URL=self.url, AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET,
                 AWS_REGION="us-east-1", AWS_CONFIG_FILE="/dev/null", AWS_SHARED_CREDENTIALS_FILE="/dev/null",
                 AWS_EC2_METADATA_DISABLED="true")
        e.update(kw)
        return e

    def get(self, page):
        with urllib.request.urlopen(self.url + "/_local/" + page) as r:
            return json.load(r)

    def post(self, page, body):
        data = json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + "/_local/" + page, data=data)) as r:
            return json.load(r)

    def faults(self, *faults):
        """Sets the faults from now on; GET faults returns how often each took effect."""
        self.post("faults", {"faults": list(faults), "append": False})

    def hits(self):
        return sum(f["hits"] for f in self.get("faults")["faults"])

    def wire(self, operation=None):
        return [q for q in self.get("wire-log")["requests"] if operation in (None, q["operation"])]

    def uploads(self):
        """Keys of the open multipart uploads, as drover-local stores them."""
        top, found = os.path.join(self.root, "state", "uploads"), []
        for name in os.listdir(top) if os.path.isdir(top) else []:
            try:
                found.append(open(os.path.join(top, name, "target")).read().split("\n")[1])
            except OSError:
                pass  # ended meanwhile
        return sorted(found)

    def client(self):
        """botocore's, as an independent reader."""
        return botocore.session.Session().create_client(
            "s3", "us-east-1", endpoint_url=self.url, aws_access_key_id=READER[0], aws_secret_access_key=READER[1],
            config=botocore.config.Config(s3={"addressing_style": "path"}))

    def etags(self, bucket, prefix):
        """Name below the prefix -> ETag of each object, as listed."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix + "/")
        return {o["Key"][len(prefix) + 1:]: o["ETag"].strip('"') for p in pages for o in p.get("Contents", [])}

    def folder(self, *parts):
        return os.path.join(self.buckets, *parts)

    def put(self, path, data):
        os.makedirs(os.path.dirname(self.folder(path)), exist_ok=True)
        open(self.folder(path), "wb").write(data)

    def stop(self):
        """Ends it, and judges what it was sent."""
        self.p.terminate()
        self.p.wait()
        service_model.hold(os.path.join(self.root, "requests.log"), refused=self.refused)


def etag_of(path):
    """The ETag of a file: sent in one piece, or in parts of PART_BYTES."""
    data = open(path, "rb").read()
    if not path.endswith(".tar") or len(data) <= PART_BYTES:
        return hashlib.md5(data).hexdigest()
    sums = [hashlib.md5(data[i:i + PART_BYTES]).digest() for i in range(0, len(data), PART_BYTES)]
    return "%s-%d" % (hashlib.md5(b"".join(sums)).hexdigest(), len(sums))


def manifest_faults(out, s3):
    """Faults of the manifest of an output folder: it names each object with size and ETag. s3: whether there
    are ETags, or a dict of what they are.
    """
    m, bad = load(out, "_manifest.json"), []
    there = sorted(n + "/" * os.path.isdir(os.path.join(out, n)) for n in os.listdir(out) if n[0].isdigit())
    if [o["key"] for o in m["objects"]] != there:
        bad.append("names %r, there are %r" % ([o["key"] for o in m["objects"]], there))
    lines = ""
    for o in m["objects"]:
        path = os.path.join(out, o["key"])
        if not os.path.exists(path):
            continue
        folder = path.endswith("/")
        want = "" if folder or not s3 else s3.get(o["key"]) if isinstance(s3, dict) else etag_of(path)
        if o["size"] != (0 if folder else os.path.getsize(path)) or o["etag"].strip('"') != want:
            bad.append("%r, but %d bytes %s" % (o, os.path.getsize(path), want))
        lines += "%s\t%d\t%s\n" % (o["key"], o["size"], o["etag"])
    if hashlib.sha256(lines.encode()).hexdigest() != m["sha256"]:
        bad.append("sha256")
    return bad


def shard_faults(out, shard, keys, rows=None):
    """Faults of a finished shard: its three pieces must agree on the same rows. rows: of its parquet, if
    already read.
    """
    name = os.path.join(out, "%05d" % shard)
    try:
        data = open(name + ".tar", "rb").read()
        tar = samples(name + ".tar")
        rows = read_parquet(name + ".parquet") if rows is None else rows
        stats = json.load(open(name + "_stats.json"))
    except (OSError, RuntimeError, ValueError, tarfile.TarError) as e:
        return ["shard %d: %s" % (shard, e)]
    bad = []
    if len(data) % 512 or data[-1024:] != bytes(1024):
        bad.append("the tar has no end")
    if [r["key"] for r in rows] != keys:
        bad.append("rows %r" % [r["key"] for r in rows])
    won = [r for r in rows if r["status"] == "success"]
    kinds = {tuple(sorted(s)) for s in tar.values()}
    if sorted(tar) != sorted(r["key"] for r in won) or not (kinds <= {("jpg", "json")} or kinds <= {("jpg", "json", "txt")}):
        bad.append("tar %r, parquet %r" % (sorted(tar), [r["key"] for r in won]))
    for r in won:
        if r["key"] in tar and json.loads(tar[r["key"]]["json"]) != r:
            bad.append("json of %s: %r %r" % (r["key"], json.loads(tar[r["key"]]["json"]), r))
    texts = collections.Counter("success" if r["status"] == "success" else r["error_message"] for r in rows)
    kinds = [sum(r["status"] == s for r in rows) for s in ("success", "failed_to_download", "failed_to_resize")]
    if [stats["count"], stats["successes"], stats["failed_to_download"], stats["failed_to_resize"]] != [len(rows)] + kinds \
            or stats["status_dict"] != dict(texts):
        bad.append("stats %r of %r" % (stats, texts))
    return ["shard %d: %s" % (shard, b) for b in bad]
