"""A user's image for tests: fail TEXT | poison PART OF | sleep SECONDS | train STEPS SECONDS. Its last output is
its failure's reason. train prints STEPS lines of metrics, SECONDS apart on one host, half of that on two.
"""
import json
import os
import sys
import time

root = os.environ.get("DROVER_ML_ROOT", "/opt/ml")


def fail(text):
    with open(root + "/output/failure", "w") as f:
        f.write(text)
    sys.exit(1)


def train(steps, seconds):
    with open(root + "/input/config/resourceconfig.json") as f:
        hosts = len(json.load(f)["hosts"])
    time.sleep(0.2 * hosts)  # what more hosts cost at the start
    for step in range(1, steps + 1):
        time.sleep(seconds / hosts)
        wobble = step * 7 % 5  # the same in each run
        print(f"step={step} loss={4 - 0.1 * step + 0.01 * wobble:.3f} images_per_second={(100 - 10 * hosts) * hosts + wobble}", flush=True)


what, rest = sys.argv[1], sys.argv[2:]
if what == "fail":
    fail("user_code: " + " ".join(rest))
if what == "poison" and rest[0] == rest[1]:
    fail("user_code: this part is poison")
if what == "train":
    sys.exit(train(int(rest[0]), float(rest[1])))
time.sleep(float(rest[0]) if what == "sleep" else 0.3)
