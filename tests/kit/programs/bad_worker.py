"""A broken worker for journeys.py: runs the real one, then damages its output. usage: bad_worker.py
missing|other_task|fewer_rows WORKER S3_ROOT (followed by the container's arguments)
"""
import hashlib
import json
import os
import subprocess
import sys

how, worker, root = sys.argv[1:4]
status = subprocess.run([worker, *sys.argv[4:]], check=False).returncode
if status:
    sys.exit(status)
config = os.environ["DROVER_ML_ROOT"] + "/input/config/hyperparameters.json"
with open(config) as f:
    folder = root + "/" + json.load(f)["output_folder"].strip('"').removeprefix("s3://")
manifest = os.path.join(folder, "_manifest.json")
with open(manifest) as f:
    m = json.load(f)
if how == "missing":
    os.remove(os.path.join(folder, next(o["key"] for o in m["objects"] if o["key"].endswith(".tar"))))
elif how == "other_task":
    m["task"] = str(int(m["task"]) + 1)
else:  # one row less, consistently
    m["rows_in"] -= 1
    m["rows_out"] -= 1
    m["successes"] -= 1
lines = "".join(f"{o['key']}\t{o['size']}\t{o['etag']}\n" for o in m["objects"])
assert hashlib.sha256(lines.encode()).hexdigest() == m["sha256"]
with open(manifest + ".new", "w") as f:
    json.dump(m, f)
os.rename(manifest + ".new", manifest)
