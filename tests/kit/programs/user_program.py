"""A user's image for tests: fail TEXT | poison PART OF | sleep SECONDS. Its last output is its failure's
reason.
"""
import os
import sys
import time

root = os.environ.get("DROVER_ML_ROOT", "/opt/ml")


def fail(text):
    with open(root + "/output/failure", "w") as f:
        f.write(text)
    sys.exit(1)


what, rest = sys.argv[1], sys.argv[2:]
if what == "fail":
    fail("user_code: " + " ".join(rest))
if what == "poison" and rest[0] == rest[1]:
    fail("user_code: this part is poison")
time.sleep(float(rest[0]) if what == "sleep" else 0.3)
