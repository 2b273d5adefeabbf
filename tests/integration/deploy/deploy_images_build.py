#!/usr/bin/python3
"""Aim: the Dockerfiles' own steps make images that work. Method: each step is carried out without an engine, RUN in a chroot of a Debian that
debootstrap made; the build stage is one for droverd and drover-worker. Then what ENTRYPOINT names runs in its root alone: droverd as its user, the worker on a file of URLs, the training image by SageMaker's files. Needs root and Debian's mirror.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, Tap, dockerfile

CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
MACHINE = "/usr/local/share/machine.pem"  # what this machine trusts: a proxy's certificate may be among it
tap = Tap()


def steps_of(name):
    with open(f"{TOP}/deploy/docker/{name}.Dockerfile", encoding="utf-8") as f:
        return dockerfile.parse(f.read())


def mirror():
    found = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Codename: bookworm"], capture_output=True, text=True, check=True).stdout.split()
    return found[0] if found else "http://deb.debian.org/debian"


def npm_settings():
    """Where this machine's npm finds its packages."""
    found = {}
    for name in ("registry", "https-proxy"):
        value = subprocess.run(["npm", "config", "get", name], capture_output=True, text=True, check=True).stdout.strip()
        found.update({} if value in ("", "null", "undefined") else {"npm_config_" + name.replace("-", "_"): value})
    return {**found, "npm_config_cafile": MACHINE, "NODE_EXTRA_CA_CERTS": MACHINE}


class Bases:
    """A Debian for each FROM, copied from one; the build stage is made once."""

    def __init__(self, folder, log):
        self.folder, self.log, self.first = folder, log, folder + "/debian"
        if os.environ.get("DEBIAN"):  # one that was kept
            self.first = os.environ["DEBIAN"]
            return
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", self.first, mirror()], stdout=log, stderr=log, check=True)
        for name in ("sources.list", "sources.list.d", "apt.conf.d", "trusted.gpg.d", "auth.conf.d"):
            at, to = f"/etc/apt/{name}", f"{self.first}/etc/apt/{name}"
            if os.path.isdir(at):
                shutil.copytree(at, to, dirs_exist_ok=True)
            elif os.path.exists(at):
                shutil.copy2(at, to)
        shutil.copytree("/usr/share/keyrings", self.first + "/usr/share/keyrings", dirs_exist_ok=True)
        shutil.copy2("/etc/resolv.conf", self.first + "/etc/resolv.conf")
        shutil.copy2(CERTIFICATES, self.first + MACHINE)

    def __call__(self, name, root):
        if name != "debian:12-slim":
            raise ValueError(f"FROM {name}")
        subprocess.run(["cp", "-a", "--reflink=auto", self.first, root], check=True)


def in_root(b, *argv, user=None, env=None, bind=(), **kw):
    """A program in the root of an image, as an engine would start it."""
    mounts = "".join(f"mkdir -p {b.root}{to} && mount --bind {at} {b.root}{to} && " for at, to in bind)
    who = f"--userspec={user or b.user or 'root'}"
    script = f"{mounts}exec /usr/sbin/chroot {who} {b.root} /usr/bin/env -C {b.cwd} \"$@\""
    full = {"PATH": "/usr/bin:/bin", **b.env, **(env or {})}
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", f"--mount-proc={b.root}/proc", "sh", "-ec", script, "sh", *argv], env=full, capture_output=True, text=True, timeout=300, check=False, **kw)


def size_mb(root, first):
    used = lambda x: int(subprocess.run(["du", "-sm", "--exclude=var/cache/apt", "--exclude=var/lib/apt", x], capture_output=True, text=True, check=True).stdout.split()[0])
    return used(root) - used(first)


def check_worker(b, folder):
    r = in_root(b, *b.entry, "--help")
    tap.ok(r.returncode == 0 and "drover-worker VERB" in r.stdout, "the worker's entry point runs in its root", r)
    ml = folder + "/ml"
    os.makedirs(ml + "/input/config")
    os.makedirs(ml + "/in")
    with open(ml + "/in/urls.csv", "w", encoding="utf-8") as f:
        f.write("url,caption\nhttp://127.0.0.1:9/a.jpg,a fox\n")
    with open(ml + "/input/config/hyperparameters.json", "w", encoding="utf-8") as f:
        json.dump({"url_list": "/opt/ml/in", "input_format": "csv", "output_folder": "/opt/ml/out", "caption_col": "caption", "retries": "0"}, f)
    r = in_root(b, *b.entry, "download", bind=[(ml, "/opt/ml")])
    made = sorted(os.listdir(ml + "/out")) if os.path.isdir(ml + "/out") else []
    tap.ok(r.returncode == 0 and "_manifest.json" in made, "and does a job by SageMaker's files: Parquet, sandbox and all its libraries load", (r, made))


def check_droverd(b):
    r = in_root(b, *b.entry, "--version")
    tap.ok(r.returncode == 0 and r.stdout.startswith("droverd ") and b.user == "10001:10001", "droverd's entry point runs, as a user of its own", r)
    r = in_root(b, "sh", "-c", "id -u; touch /var/lib/drover/x && echo may; touch /usr/bin/x 2>/dev/null || echo may not; drover --help | head -1")
    tap.eq(r.stdout.splitlines()[:3], ["10001", "may", "may not"], "which may write its volume and nothing else", )


def check_training(b, folder):
    ml = folder + "/train"
    os.makedirs(ml + "/input/config")
    os.makedirs(ml + "/input/data/index")
    with open(ml + "/input/data/index/index.jsonl", "w", encoding="utf-8") as f:
        f.write('{"caption": "a red fox"}\n{"caption": "a red car"}\n')
    for name, value in (("hyperparameters", {"passes": "2"}), ("inputdataconfig", {"index": {}}), ("resourceconfig", {"hosts": ["algo-1"], "current_host": "algo-1"})):
        with open(f"{ml}/input/config/{name}.json", "w", encoding="utf-8") as f:
            json.dump(value, f)
    r = in_root(b, *b.entry, bind=[(ml, "/opt/ml")])
    model = json.load(open(ml + "/model/words.json", encoding="utf-8")) if os.path.exists(ml + "/model/words.json") else {}
    tap.ok(r.returncode == 0 and model.get("words", {}).get("red") == 2 and "step=2 " in r.stdout, "the training image trains by SageMaker's files", r)


def main():
    folder = tempfile.mkdtemp(prefix="drover-images-", dir=TOP + "/build")
    os.chmod(folder, 0o755)
    with open(f"{TOP}/build/images.log", "wb") as log:
        try:
            dockerfile.context(TOP, folder + "/context")
            bases = Bases(folder, log)
            builds = {}
            for name in ("worker", "droverd", "training"):
                steps = steps_of(name)
                b = builds[name] = dockerfile.Build(TOP, folder, bases, npm_settings(), log)
                if name == "droverd":  # its build stage is the worker's
                    last = max(i for i, s in enumerate(steps) if s[0] == "FROM")
                    tap.eq(steps[:last], steps_of("worker")[:last], "the build stage is one for both")
                    b.roots["build"] = folder + "/build"
                    steps = steps[last:]
                b.carry_out(steps)
                os.rename(b.root, f"{folder}/{name}")
                b.root = f"{folder}/{name}"
                left = [x for x in ("/var/lib/apt/lists/lock", "/build") if os.path.exists(b.root + x)]
                size = size_mb(b.root, bases.first)
                tap.ok(not left and (size <= 300 or name == "training"), f"{name}: {size} MB beside Debian's own, nothing left of the installation", left)
            check_worker(builds["worker"], folder)
            check_droverd(builds["droverd"])
            check_training(builds["training"], folder)
        finally:
            if not os.environ.get("KEEP"):
                shutil.rmtree(folder, ignore_errors=True)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
