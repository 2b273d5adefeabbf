#!/usr/bin/python3
"""Aim: incremental_mode does what it says, also when it is interrupted; retry_failed fetches what
failed and nothing else; every setting of img2dataset is either ours or refused with a reason.
Method: outputs in folders and in drover-local's S3, hosts that fail the first time, a worker stopped
in the middle, keys and manifests compared."""
import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from worker_kit import *

tap = Tap()
PHOTO = encode(photo(90, 70, 1), "JPEG")


def part_of(d, server, name, n, prefix):
    for i in range(n):
        server.serve("/%s%d" % (prefix, i), PHOTO)
    path = os.path.join(d, name + ".parquet")
    make_parquet(path, [{"url": server.url("/%s%d" % (prefix, i)), "caption": "%s %d" % (prefix, i)} for i in range(n)],
                 {"url": "VARCHAR", "caption": "VARCHAR"})
    return path


def go(server, part, out, *args, task=None):
    return run(["--parquet", part, "--output", out, "--number_sample_per_shard", 10, "--allow-net", server.net]
               + list(args), env={"DROVER_TASK": task} if task else None)


def captions(out):
    """key -> caption over all tars."""
    found = {}
    for f in sorted(os.listdir(out)):
        if f.endswith(".tar"):
            for key, s in samples(os.path.join(out, f)).items():
                found[key] = s["txt"].decode()
    return found


def test_overwrite(d, server):
    a, b = part_of(d, server, "a", 35, "a"), part_of(d, server, "b", 12, "b")
    out = d + "/over"
    tap.eq(go(server, a, out)[0], 0, "a first output")
    with open(out + "/keep.txt", "w") as f:
        f.write("not ours")
    with open(out + "/notes.parquet", "w") as f:
        f.write("not ours")
    rc, so, se = go(server, b, out, "--incremental_mode", "overwrite")
    tap.ok(rc == 0, "overwritten by another part", se)
    tap.eq(captions(out), {"%06d" % i: "b %d" % i for i in range(12)}, "nothing of the first is left")
    tap.eq(sorted(os.listdir(out)), sorted(["%05d%s" % (i, x) for i in (0, 1) for x in (".tar", ".parquet", "_stats.json")]
                                           + ["_manifest.json", "_progress.json", "keep.txt", "notes.parquet"]),
           "what is not of a shard stays, the marker does not")
    tap.eq(load(out, "_manifest.json")["rows_in"], 12, "the manifest is the new one's")
    with open(d + "/bad.parquet", "w") as f:
        f.write("no parquet at all")
    rc, so, se = go(server, d + "/bad.parquet", out, "--incremental_mode", "overwrite")
    tap.ok(rc == 65 and len(captions(out)) == 12, "a part that cannot be read removes nothing", se)
    # A task's own interrupted overwrite goes on; another one's starts anew.
    server.hits.clear()
    rc, so, se = go(server, a, out, "--incremental_mode", "overwrite", task="7")
    rc2, so2, se2 = go(server, a, out, "--incremental_mode", "overwrite", task="7")
    tap.ok((rc, rc2) == (0, 0) and "finished already" in so2, "a finished task is not done again", so2 + se2)
    tap.eq(sum(server.hits.values()), 35, "so that each row was fetched once")
    os.unlink(out + "/_manifest.json")
    for f in ("00003.tar", "00003.parquet", "00003_stats.json"):
        os.unlink(os.path.join(out, f))
    with open(out + "/_mode.json", "w") as f:
        json.dump({"mode": "overwrite", "task": "7", "first": 0}, f)
    server.hits.clear()
    rc, so, se = go(server, a, out, "--incremental_mode", "overwrite", task="7")
    tap.eq((rc, sum(server.hits.values())), (0, 5), "an interrupted overwrite keeps its finished shards")
    with open(out + "/_mode.json", "w") as f:
        json.dump({"mode": "overwrite", "task": "8", "first": 0}, f)
    server.hits.clear()
    rc, so, se = go(server, a, out, "--incremental_mode", "overwrite", task="9")
    tap.eq((rc, sum(server.hits.values())), (0, 35), "another task's marker does not stop it from removing")


def test_extend(d, server):
    a, b = part_of(d, server, "ea", 25, "a"), part_of(d, server, "eb", 12, "b")
    out = d + "/ext"
    tap.eq(go(server, a, out)[0], 0, "a first output to extend")
    rc, so, se = go(server, b, out, "--incremental_mode", "extend")
    want = {"%06d" % i: "a %d" % i for i in range(25)}
    want.update({"%06d" % (30 + i): "b %d" % i for i in range(12)})
    tap.ok(rc == 0, "extended by a second part", se)
    tap.eq(captions(out), want, "its shards and keys come after the largest there was")
    m = load(out, "_manifest.json")
    tap.eq((m["rows_in"], [o["key"] for o in m["objects"] if o["key"].endswith(".tar")]), (12, ["00003.tar", "00004.tar"]),
           "the manifest is of what was added")
    tap.eq(load(out, "00003_stats.json")["count"], 10, "stats have the number of their shard")
    tap.eq([r["key"] for r in read_parquet(out + "/00004.parquet")], ["000040", "000041"], "and the sidecars its keys")
    # Interrupted: the third part's first shard is there, then the worker was killed.
    gate = threading.Event()

    def held(h):
        gate.wait(20)
        h.answer(200, {}, PHOTO)
    c = part_of(d, server, "ec", 20, "c")
    for i in range(10, 20):
        server.routes["/c%d" % i] = held
    p = start(["--parquet", c, "--output", out, "--number_sample_per_shard", 10, "--allow-net", server.net,
               "--incremental_mode", "extend"], env={"DROVER_TASK": "3"})
    tap.ok(wait_for(lambda: os.path.exists(out + "/00005_stats.json")), "an extension is half done")
    p.send_signal(signal.SIGKILL)
    p.communicate()
    gate.set()
    rc, so, se = go(server, b, out, "--incremental_mode", "extend", task="4")
    tap.ok(rc != 0 and "_mode.json" in se, "meanwhile nobody else extends", "%d %s" % (rc, se))
    rc, so, se = go(server, c, out, "--incremental_mode", "extend", task="3")
    want.update({"%06d" % (50 + i): "c %d" % i for i in range(20)})
    tap.ok(rc == 0, "the next attempt ends it", se)
    tap.eq(captions(out), want, "without doubling a row")
    tap.ok("_mode.json" not in os.listdir(out), "and takes the marker away")
    rc, so, se = go(server, c, out, "--incremental_mode", "extend", task="3")
    tap.ok(rc == 0 and "finished already" in so, "a finished extension is not done again", so + se)
    rc, so, se = go(server, b, out)
    tap.ok(rc != 0 and "task '3'" in se, "incremental leaves another task's output alone", se)


def test_retry_failed(d, server):
    fails = {"/r1": 503, "/r4": 404, "/r7": 500, "/r13": 410, "/r15": 429}
    part = part_of(d, server, "r", 25, "r")
    for path, status in fails.items():
        server.serve(path, b"", status=status)
    server.serve("/r9", b"<html>no image</html>")
    server.serve("/r11", PHOTO, headers=[("X-Robots-Tag", "noai")])
    first, second = d + "/first", d + "/second"
    rc, so, se = go(server, part, first)
    tap.eq((rc, len(captions(first))), (0, 18), "seven of 25 rows fail")
    for path in fails:
        server.serve(path, PHOTO)
    server.hits.clear()
    rc, so, se = go(server, first, second, "--retry-failed", "--save_additional_columns", "error_message_before")
    tap.ok(rc == 65 and "no column 'error_message_before'" in se, "columns are those of the sidecars", se)
    rc, so, se = go(server, first, second, "--retry-failed")
    tap.ok(rc == 0, "a second pass", se)
    tap.eq(dict(server.hits), {"/r1": 1, "/r7": 1, "/r15": 1},
           "asks for what failed to download and may come, not for what is gone, forbidden or no image")
    tap.eq(sorted(captions(second).values()), ["r 1", "r 15", "r 7"], "and writes it with its captions")
    tap.eq((load(second, "_manifest.json")["rows_in"], load(second, "_manifest.json")["successes"]), (3, 3),
           "with a manifest of its own")
    rc, so, se = go(server, second, d + "/third", "--retry-failed")
    tap.ok(rc == 0 and load(d + "/third", "_manifest.json")["rows_in"] == 0, "nothing failed: an empty output", se)
    for bad, args, word in ((part, [], "folder of an earlier output"), (first, [], "folder of its own"),
                            (d + "/nothing", [], "earlier output"), ("s3://b/k/", [], "channel")):
        rc, so, se = go(server, bad, first if "own" in word else d + "/x", "--retry-failed")
        tap.ok(rc in (2, 65) and word in se, "refused: retry_failed of %s" % os.path.basename(bad), "%d %s" % (rc, se))
    os.makedirs(d + "/parts", exist_ok=True)
    make_parquet(d + "/parts/p.parquet", [{"url": "http://h/"}], {"url": "VARCHAR"})
    rc, so, se = go(server, d + "/parts", d + "/x", "--retry-failed")
    tap.ok(rc == 65 and "no column 'status'" in se and "columns: url" in se, "and of a folder that is no output", se)


def test_verify_hash(d, server):
    import hashlib
    page = b"<html>no image</html>"
    server.serve("/v", PHOTO)
    server.serve("/page", page)
    right = {t: hashlib.new(t, PHOTO).hexdigest() for t in ("md5", "sha256", "sha512")}
    rows = [("/v", right["md5"], "success"), ("/v", right["md5"].upper(), "hash mismatch"),
            ("/v", right["md5"][:-1] + "x", "hash mismatch"), ("/v", "", "hash mismatch"), ("/v", None, "hash mismatch"),
            ("/page", hashlib.md5(page).hexdigest(), "Image decoding error"), ("/page", right["md5"], "hash mismatch")]
    part, out = d + "/hash.parquet", d + "/hash"
    make_parquet(part, [{"url": server.url(u), "sum": h} for u, h, _ in rows], {"url": "VARCHAR", "sum": "VARCHAR"})
    rc, so, se = go(server, part, out, "--compute_hash", "md5", "--verify_hash", '["sum","md5"]')
    got = read_parquet(out + "/00000.parquet") if rc == 0 else []
    tap.eq([r["error_message"] or r["status"] for r in got], [t for _, _, t in rows], "bytes must hash to the column")
    tap.eq([r["status"] for r in got][2:], ["failed_to_download"] * 3 + ["failed_to_resize", "failed_to_download"],
           "what does not is counted as not downloaded")
    tap.ok(got and "sum" not in got[0] and got[0]["md5"] == right["md5"], "the column itself is not of the output", got[:1])
    for kind in ("sha256", "sha512"):
        make_parquet(part, [{"url": server.url("/v"), "sum": right[kind]}], {"url": "VARCHAR", "sum": "VARCHAR"})
        rc, so, se = go(server, part, out + kind, "--compute_hash", kind, "--verify_hash", '["sum","%s"]' % kind)
        tap.eq((rc, len(captions_of(out + kind))), (0, 1), "by %s" % kind)
    for value, word in (('["sum","sha256"]', "md5"), ('["sum"]', "md5"), ('["a","md5","b"]', "md5"), ('["no","md5"]', "'no'")):
        rc, so, se = go(server, part, d + "/hashbad", "--compute_hash", "md5", "--verify_hash", value)
        tap.ok(rc in (2, 65) and "verify_hash" in se and word in se, "refused: verify_hash %s" % value, "%d %s" % (rc, se))


def captions_of(out):
    return [k for f in os.listdir(out) if f.endswith(".tar") for k in samples(os.path.join(out, f))]


def ml_root(d, hyperparameters):
    """What SageMaker mounts, with these settings."""
    os.makedirs(d + "/ml/input/config", exist_ok=True)
    os.makedirs(d + "/ml/output", exist_ok=True)
    with open(d + "/ml/input/config/hyperparameters.json", "w") as f:
        json.dump(hyperparameters, f)
    return d + "/ml"


def test_settings(d):
    """Every option of img2dataset's table: a good value is taken, or it is refused with a reason."""
    ours = {"url_list": "x", "image_size": 256, "output_folder": d + "/o", "processes_count": 1, "resize_mode": "border",
            "resize_only_if_bigger": "False", "upscale_interpolation": "lanczos", "downscale_interpolation": "area",
            "encode_quality": 95, "encode_format": "jpg", "output_format": "webdataset", "input_format": "parquet",
            "url_col": "url", "caption_col": "None", "thread_count": 256, "number_sample_per_shard": 10000,
            "extract_exif": "True", "save_additional_columns": '["a"]', "timeout": 10, "enable_wandb": "False",
            "wandb_project": "img2dataset", "oom_shard_count": 5, "compute_hash": "sha256", "distributor":
            "multiprocessing", "incremental_mode": "incremental", "max_shard_retry": 1, "user_agent_token": "t",
            "disallowed_header_directives": '["noai"]', "min_image_size": 0, "max_image_area": "inf",
            "max_aspect_ratio": "inf", "retries": 0, "skip_reencode": "False", "disable_all_reencoding": "False",
            "bbox_col": "None", "verify_hash": "None", "ignore_ssl_certificate": "False", "subjob_size": 1000}
    args = [x for k, v in ours.items() for x in ("--" + k, v)]
    rc, so, se = run(args)
    tap.ok(rc == 65 and "cannot open 'x'" in se, "all of img2dataset's options with its defaults are taken", se)
    rc, so, se = run([], ml_root=ml_root(d, {k: str(v) for k, v in ours.items()}))
    tap.ok(rc == 65 and "'x'" in se, "and as hyperparameters", "%d %s" % (rc, se))
    rc, so, se = run(["--resize_mode=x", "--image_size=0"], ml_root=ml_root(d, {"retrys": "1", "compute_hash": "crc"}))
    tap.ok(rc == 2 and all(w in se for w in ("resize_mode 'x'", "image_size '0'", "'retries'", "compute_hash 'crc'", "output_folder is missing")),
           "faults of hyperparameters and flags come in one message", "%d %s" % (rc, se))
    failure = open(d + "/ml/output/failure").read()
    tap.ok(all(w in failure for w in ("resize_mode 'x'", "image_size '0'", "'retries'", "compute_hash 'crc'")),
           "which is the reason of the job's failure too", failure)
    make_parquet(d + "/cols.parquet", [{"a": 1}], {"a": "INTEGER"})
    rc, so, se = run(["--parquet", d + "/cols.parquet", "--output", d + "/o", "--caption_col", "alt", "--save_additional_columns",
                      "a,b,c", "--verify_hash", "sum,sha256"])
    tap.ok(rc == 65 and "no column 'b', 'c', 'alt' (caption_col), 'url' or 'URL' (set url_col), 'sum' (verify_hash); its columns: a" in se,
           "all columns that are not there are named, and those that are", "%d %s" % (rc, se))
    refused = {"input_format": "csv", "output_format": "tfrecord", "bbox_col": "boxes", "subjob_size": 500,
               "distributor": "pyspark", "max_shard_retry": 3, "enable_wandb": "True", "wandb_project": "mine",
               "incremental_mode": "sometimes", "compute_hash": "crc"}
    rc, so, se = run(["--output", d + "/o"] + [x for k, v in refused.items() for x in ("--" + k, v)])
    lines = se.splitlines()
    tap.eq((rc, len(lines)), (2, len(refused)), "others with a line each")
    for k, v in refused.items():
        mine = [x for x in lines if x.startswith("%s '%s'" % (k, v))]
        tap.ok(len(mine) == 1 and len(mine[0]) > len(k) + 30, "refused with a reason: %s %s" % (k, v), se)
    p = subprocess.run([WORKER, "download", "--help"], capture_output=True, text=True)
    for k in list(ours) + list(refused) + ["retry_failed"]:
        tap.ok("--" + k + " " in p.stdout, "help tells of %s" % k)


with Folder() as d:
    server = Server()
    test_overwrite(d, server)
    test_extend(d, server)
    test_retry_failed(d, server)
    test_verify_hash(d, server)
    test_settings(d)
sys.exit(tap.end())
