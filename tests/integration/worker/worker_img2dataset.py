#!/usr/bin/python3
"""Aim: someone who comes from img2dataset can keep their command. Its options are taken or refused as --help says,
the two calls that --help shows do the same work, and the commands of its examples for MS COCO, LAION-400M and
CC3M give what it would write. Method: its options listed here once more, from its documentation; --help read
as a person reads it; the commands run by a shell in which img2dataset is drover-worker, on small inputs of
the same columns.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.worker import *

tap = Tap()
PHOTO = encode(photo(300, 200, 1), "JPEG")
# img2dataset 1.47.0, and one option of later versions: option, default (its README, "API").
OPTIONS = dict(x.split("=") for x in """url_list=x image_size=256 output_folder=images processes_count=1 resize_mode=border
    resize_only_if_bigger=False upscale_interpolation=lanczos downscale_interpolation=area encode_quality=95 encode_format=jpg
    skip_reencode=False output_format=files input_format=txt url_col=url caption_col=None bbox_col=None thread_count=256
    number_sample_per_shard=10000 extract_exif=True save_additional_columns=None timeout=10 enable_wandb=False
    wandb_project=img2dataset oom_shard_count=5 compute_hash=sha256 verify_hash=None distributor=multiprocessing
    subjob_size=1000 retries=0 disable_all_reencoding=False min_image_size=0 max_image_area=inf max_aspect_ratio=inf
    incremental_mode=incremental max_shard_retry=1 user_agent_token=None
    disallowed_header_directives=["noai","noimageai","noindex","noimageindex"] ignore_ssl_certificate=False""".split())
COCO = """img2dataset --url_list mscoco.parquet --input_format "parquet"\\
    --url_col "URL" --caption_col "TEXT" --output_format webdataset\\
    --output_folder mscoco --processes_count 16 --thread_count 64 --image_size 256 --enable_wandb True"""
LAION = """img2dataset --url_list laion400m-meta --input_format "parquet"\\
    --url_col "URL" --caption_col "TEXT" --output_format webdataset\\
    --output_folder laion400m-data --processes_count 16 --thread_count 128 --image_size 256\\
    --save_additional_columns '["NSFW","similarity","LICENSE"]' --enable_wandb True"""
CC3M = """sed -i '1s/^/caption\\turl\\n/' cc3m.tsv
    img2dataset --url_list cc3m.tsv --input_format "tsv"\\
    --url_col "url" --caption_col "caption" --output_format webdataset\\
    --output_folder cc3m --processes_count 16 --thread_count 64 --image_size 256\\
    --user_agent_token img2dataset --disallowed_header_directives '["noai", "noindex"]' --enable_wandb True"""


def help_text():
    return subprocess.run([WORKER, "download", "--help"], capture_output=True, text=True).stdout


def table():
    """option -> what --help's table says, on one line."""
    text = help_text()
    rows = re.findall(r"\n  --(\w+)((?: .*)?(?:\n {28}.*)*)", text[text.index("\nEvery option of img2dataset"):text.index("\nExamples:")])
    return [(name, " ".join(said.split())) for name, said in rows]


def test_options(d):
    rows = table()
    tap.eq(sorted(n for n, _ in rows), sorted(OPTIONS), "--help has a row for each option of img2dataset, and no other")
    wrong = []
    for name, said in rows:
        dflt = OPTIONS[name]
        base = [] if name == "output_folder" else ["--output_folder", d + "/none"]
        base += [] if name == "url_list" else ["--url_list", "none"]
        rc, so, se = run(base + ["--" + name, dflt])
        if rc == 2:
            wrong.append((name, "its default is refused", se))
        if said.startswith("refused, only "):
            only, why = re.fullmatch(r"refused, only (\S+) is taken: (.*)", said).groups()
            rc, so, se = run(base + ["--" + name, "other"])
            if only != dflt or (rc, se) != (2, "%s 'other' is not possible: %s\n" % (name, why)):
                wrong.append((name, said, rc, se))
        elif not said.startswith("same name"):
            wrong.append((name, said))
    tap.eq(wrong, [], "each is taken, or refused for the reason it gives")
    tap.eq(sorted(n for n, said in rows if said.startswith("refused")), ["distributor", "max_shard_retry", "subjob_size"], "these are refused")


class Work:
    """A folder with the inputs of the examples, whose pictures are on one server."""

    def __init__(self, d, server):
        self.d, self.server = d, server
        n = [0]

        def url(**kw):
            n[0] += 1
            return server.serve("/%d.jpg" % n[0], PHOTO, **kw)
        make_parquet(d + "/mscoco.parquet", [{"URL": url(), "TEXT": "a bicycle %d" % i} for i in range(12)],
                     {"URL": "VARCHAR", "TEXT": "VARCHAR"})
        os.mkdir(d + "/laion400m-meta")
        types = {"SAMPLE_ID": "DOUBLE", "URL": "VARCHAR", "TEXT": "VARCHAR", "HEIGHT": "DOUBLE", "WIDTH": "DOUBLE", "LICENSE": "VARCHAR",
                 "NSFW": "VARCHAR", "similarity": "DOUBLE"}
        for k in range(2):
            make_parquet(d + "/laion400m-meta/part-0000%d-5b54c5d5.snappy.parquet" % k,
                         [{"SAMPLE_ID": 10.0 * k + i, "URL": url(), "TEXT": "caf\u00e9 %d %d" % (k, i), "HEIGHT": 200.0, "WIDTH": 300.0,
                           "LICENSE": "?", "NSFW": "UNLIKELY" if i else None, "similarity": 0.25 + i / 1000} for i in range(8)], types)
        with open(d + "/cc3m.tsv", "w") as f:
            for i in range(10):
                f.write("a very typical bus station %d\t%s\n" % (i, url(
                    headers=[("X-Robots-Tag", {3: "noai", 4: "noimageindex", 5: "img2dataset: noindex"}.get(i, "all"))])))

    def sh(self, text):
        script = 'img2dataset() { "%s" download "$@" --allow-net %s; }\ndrover-worker() { shift; img2dataset "$@"; }\n' % (WORKER, self.server.net)
        p = subprocess.run(["bash", "-c", script + text], cwd=self.d, env=dict(os.environ, DROVER_ML_ROOT="/nonexistent"),
                           capture_output=True, text=True, timeout=patience(120))
        return p.returncode, p.stdout, p.stderr

    def shards(self, folder):
        """All samples, key -> {ext: bytes}."""
        found = {}
        for f in sorted(os.listdir(os.path.join(self.d, folder))):
            if f.endswith(".tar"):
                found.update(samples(os.path.join(self.d, folder, f)))
        return found


def test_calls_of_help(w):
    text = help_text()
    calls = text[text.index("\n  img2dataset --url_list") + 1:text.index("\nThe options of the first are taken")]
    theirs, ours = calls[:calls.index("\n  drover-worker")], calls[calls.index("\n  drover-worker"):]
    tap.ok(ours.count("--") < theirs.count("--") / 2, "--help shows two calls, the second with less", calls)
    results = []
    for call in (theirs, ours):
        rc, so, se = w.sh(call)
        tap.ok(rc == 0, "a shell runs it: " + " ".join(call.split())[:40], se)
        results.append((w.shards("laion400m"), [{k: v for k, v in r.items()} for r in read_parquet(w.d + "/laion400m/00001.parquet")]))
        shutil.rmtree(w.d + "/laion400m")
    tap.ok(len(results[0][0]) == 16, "all pictures are there", len(results[0][0]))
    tap.ok(results[0] == results[1], "and both write the same", results)


def faults_of(got, captions, columns):
    wrong = []
    for key, caption in captions.items():
        s = got.get(key, {})
        v = json.loads(s.get("json", "{}"))
        fields = columns + ["caption", "url", "key", "status", "error_message", "width", "height", "original_width", "original_height",
                            "exif", "sha256"]
        if (sorted(s), list(v), v.get("caption"), s.get("txt", b"").decode(), v.get("status"), (v.get("original_width"), v.get("width")),
                Image.open(io.BytesIO(s["jpg"])).size if "jpg" in s else None) != (
                ["jpg", "json", "txt"], fields, caption, caption, "success", (300, 256), (256, 256)):
            wrong.append((key, s, v))
    return wrong + [k for k in got if k not in captions]


def test_examples(w):
    rc, so, se = w.sh(COCO)
    tap.ok("nothing_is_sent_to_wandb" in so + se, "a command that wants wandb runs as it stands, and is told that nothing is sent", so + se)
    tap.eq((rc, faults_of(w.shards("mscoco"), {"%09d" % i: "a bicycle %d" % i for i in range(12)}, [])), (0, []), "mscoco: keys, captions, pictures")
    v = load(w.d + "/mscoco", "00000_stats.json")
    tap.eq((v["count"], v["successes"], v["status_dict"]), (12, 12, {"success": 12}), "and its stats")

    rc, so, se = w.sh(LAION)
    captions = {"%09d" % (10000 * k + i): "caf\u00e9 %d %d" % (k, i) for k in range(2) for i in range(8)}
    got = w.shards("laion400m-data")
    tap.eq((rc, faults_of(got, captions, ["NSFW", "similarity", "LICENSE"])), (0, []), "laion400m: a shard a part, with the additional columns")
    v = json.loads(got["000010003"]["json"])
    tap.eq((v["NSFW"], v["similarity"], v["LICENSE"], json.loads(got["000010000"]["json"])["NSFW"]), ("UNLIKELY", 0.253, "?", None), "and their values")
    tap.eq([r["key"] for r in read_parquet(w.d + "/laion400m-data/00001.parquet")], ["%09d" % (10000 + i) for i in range(8)], "and their sidecars")

    rc, so, se = w.sh(CC3M)
    captions = {"%09d" % i: "a very typical bus station %d" % i for i in range(10) if i not in (3, 5)}
    tap.eq((rc, faults_of(w.shards("cc3m"), captions, [])), (0, []), "cc3m: a table of tabs, whose owners may forbid the use")
    tap.eq(load(w.d + "/cc3m", "00000_stats.json")["status_dict"],
           {"success": 8, "Use of image disallowed by X-Robots-Tag directive": 2}, "by two directives only, and by name")
    agents = {h["User-Agent"] for path, h in w.server.headers.items() if int(path[1:-4]) > 28}
    tap.ok(len(agents) == 1 and all("; img2dataset" in a for a in agents), "under the name that was given", agents)


with Folder() as d:
    test_options(d)
    w = Work(d, Server())
    test_calls_of_help(w)
    test_examples(w)
sys.exit(tap.done())
