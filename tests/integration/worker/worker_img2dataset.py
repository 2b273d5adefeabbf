#!/usr/bin/python3
"""Aim: someone who comes from img2dataset can keep their command. Its options are taken or refused as --help says,
the two calls that --help shows do the same work. Method: its options listed here once more, from its documentation; --help read
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
    tap.eq(sorted(n for n, said in rows if said.startswith("refused")), ["distributor", "enable_wandb", "max_shard_retry", "subjob_size",
                                                                        "wandb_project"], "these are refused")


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


with Folder() as d:
    test_options(d)
    w = Work(d, Server())
    test_calls_of_help(w)
sys.exit(tap.done())
