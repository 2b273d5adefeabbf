"""A user's image for tests: fail TEXT | poison PART OF | sleep SECONDS | train STEPS SECONDS | serve. Its last output is
its failure's reason. train prints STEPS lines of metrics, SECONDS apart on one host, half of that on two. serve is a model that
says what it was asked.
"""
import http.server
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


class Model(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def say(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.say(b"")

    def do_POST(self):
        self.say(b"asked <" + self.rfile.read(int(self.headers["Content-Length"])) + b">")


what, rest = sys.argv[1], sys.argv[2:]
if what == "serve":
    http.server.ThreadingHTTPServer((os.environ["DROVER_HOST_ADDRESS"], int(os.environ["SAGEMAKER_BIND_TO_PORT"])), Model).serve_forever()
if what == "fail":
    fail("user_code: " + " ".join(rest))
if what == "poison" and rest[0] == rest[1]:
    fail("user_code: this part is poison")
if what == "train":
    sys.exit(train(int(rest[0]), float(rest[1])))
time.sleep(float(rest[0]) if what == "sleep" else 0.3)
