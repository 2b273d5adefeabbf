#!/usr/bin/env python3
"""README.md, "A first campaign". Aim: who types its commands one after another, with nothing set up but an AWS login, gets what stands behind
each. Method: the block is read from the file; each line is typed on a terminal of 80 columns in an empty home, questions are answered with y,
`watch` and droverd go on beside the others. drover, droverd, drover-worker and drover-local are the real ones, and the settings their defaults.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import BIN, TOP, Tap, free_port, patience, service_model, wait_for
from kit.terminal import on_terminal

KEY, SECRET = "AKIAREADME", "of-the-readme"
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/drover-worker@sha256:" + "0123456789abcdef" * 4
PARTS = 102  # the README asks about part 101
# The line begins with this: what its output says.
SAYS = {
    "drover init": r"laion\.yaml\n(.|\n)*next: edit",
    "drover validate": rf"{PARTS} parts",
    "drover plan": rf"{PARTS} parts",
    "drover submit": r"c-1",
    "drover watch": rf"c-1 .*|{PARTS} parts",
    "drover why": r"(?i)wait|start|place",
    "drover scale": r"24",
    "drover cost": r"phase|started|trained",
    "drover failures": r"bad_input",
    "drover retry": r"no failed part matches\n  next: ",  # the disks of the local machine are large
}
tap = Tap()


def block():
    with open(TOP + "/README.md", encoding="utf-8") as f:
        text = re.search(r"^## A first campaign\n+```\n(.*?)^```$", f.read(), re.M | re.S)[1]
    return [re.split(r"\s+#", line)[0].strip() for line in text.splitlines()]


class Reader:
    """Somebody with an account of `drover-local`, a shell and the README."""

    def __init__(self, folder):
        self.dir, self.home = folder, folder + "/home"
        self.port, self.web = free_port(), free_port()
        meta = folder + "/aws/s3/acme-laion/meta"
        os.makedirs(self.home)
        os.makedirs(meta)
        one = folder + "/one"
        subprocess.run([TOP + "/build/release/demo/demo_make", folder + "/web", one, "1", "1", "1", "1"], check=True)
        made = [os.path.join(one, n) for n in os.listdir(one)][0]
        for i in range(PARTS):
            path = f"{meta}/{i:05d}.parquet"
            if i % 10 == 3:
                with open(path, "w", encoding="ascii") as f:
                    f.write("this is no parquet file " * (200 + i))  # the longest part starts first
            else:
                shutil.copy(made, path)
        config = {"quotas": {"ml.c5.18xlarge": 18}, "prices": {"ml.c5.18xlarge": "3.672", "ml.c5n.18xlarge": "4.666", "ml.m5.24xlarge": "5.53"}, "cold_start_seconds": 0.1, "stop_seconds": 0.1,
                  "images": {IMAGE: [BIN + "/drover-worker"]}, "credentials": {KEY: SECRET}, "account": "111122223333", "log_bodies": True}
        with open(folder + "/local.json", "w", encoding="utf-8") as f:
            json.dump(config, f)
        self.log = open(folder + "/log", "wb")
        self.running = [subprocess.Popen([BIN + "/drover-local", "--listen", f"127.0.0.1:{self.port}", "--root", folder + "/aws", "--config", folder + "/local.json"], stdout=self.log, stderr=self.log)]
        self.threads = []

    def env(self):
        return {"PATH": BIN + ":/usr/local/bin:/usr/bin:/bin", "HOME": self.home, "LC_ALL": "C.UTF-8", "TERM": "xterm", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_EC2_METADATA_DISABLED": "true",
                "DROVER_ROLE_ARN": "arn:aws:iam::111122223333:role/drover-worker", "DROVER_WORKER_IMAGE": IMAGE, "DROVER_LISTEN": f"127.0.0.1:{self.web}", "DROVER_URL": f"http://127.0.0.1:{self.web}"}

    def types(self, line, seconds=60):
        """What stands on the screen then, and the status."""
        out, status = on_terminal(["/bin/bash", "-c", f"cd {self.home} && {line}"], self.env(), 80, b"y\n", patience(seconds))
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out).replace("\r\n", "\n"), status

    def start(self, line):
        """A line that ends with &."""
        self.running.append(subprocess.Popen(["/bin/bash", "-c", f"exec {line.rstrip('& ')}"], cwd=self.home, env=self.env(), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log))

    def close(self):
        if self.log.closed:
            return
        for p in reversed(self.running):
            p.terminate()
        for p in reversed(self.running):
            p.wait()
        self.log.close()
        subprocess.run(["bash", TOP + "/tests/demo/down.sh", self.home], check=False)


def check_line(r, line):
    words = " ".join(line.split()[:2])
    if line.endswith("&"):
        r.start(line)
        wait_for(lambda: r.types("drover ls")[1] == 0, 60, "droverd answers")
        return tap.ok(True, f"{line}: drover finds it, with its token")
    if words == "drover watch":
        seen = {}
        r.threads.append((threading.Thread(target=lambda: seen.update(all=r.types(line, 300))), seen))
        return r.threads[-1][0].start()
    if words == "drover failures":
        wait_for(lambda: "bad_input" in r.types(line)[0], 120, "the first failures", step=0.5)
    out, status = r.types(line)
    wanted = (0,) if words != "drover retry" else (3,)
    tap.ok(words in SAYS and status in wanted and re.search(SAYS[words], out), f"{line}: it says what it did", (status, out))
    return tap.ok(max(map(len, out.splitlines())) <= 80 or words == "drover init", f"{words}: within 80 columns", max(out.splitlines(), key=len))


def main():
    folder = tempfile.mkdtemp(prefix="drover-readme-")
    os.chmod(folder, 0o755)
    lines = block()
    tap.ok(len(lines) >= 10 and {" ".join(x.split()[:2]) for x in lines if not x.endswith("&")} == set(SAYS), "the block is found, and each of its commands has its check", lines)
    r = Reader(folder)
    try:
        for line in lines:
            check_line(r, line)
        tap.eq(r.types("drover cancel c-1")[1], 0, "and it is ended, once asked")
        for thread, seen in r.threads:
            thread.join()
            out, status = seen["all"]
            tap.ok(re.search(SAYS["drover watch"], out) and status == 11, "drover watch: it follows the campaign to its end", (status, out[-2000:]))
        r.close()
        service_model.hold(folder + "/aws/requests.log")
    finally:
        r.close()
        shutil.rmtree(folder, ignore_errors=True)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
