#!/usr/bin/python3
"""deploy/docker and deploy/compose.yaml, without an engine. Aim: what the Dockerfiles copy is there and not left out by .dockerignore, the
context is enough to build from, the packages of deps.sh are those whose libraries the programs load, the worker runs with these alone, and the
training image's entry point speaks SageMaker's contract. Method: the files are parsed; dpkg says whose a library is; drover-worker runs in a
root of its own that has the packages' files and no others. The steps themselves: deploy_images_build.py.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, Tap, dockerfile, wait_for

FILES = ("droverd", "worker", "training")
TRAIN = TOP + "/deploy/docker/training/train"
tap = Tap()


def read(path):
    with open(f"{TOP}/{path}", encoding="utf-8") as f:
        return f.read()


def settings():
    return set(re.findall(r'"(DROVER_[A-Z_]+)"', read("orchestrator/settings.c")))


def check_files():
    rules = dockerfile.rules_of(TOP)
    for name in FILES:
        steps = dockerfile.parse(read(f"deploy/docker/{name}.Dockerfile"))
        args = {k: v for k, _, v in (rest.partition("=") for word, rest in steps if word == "ARG")}
        copied = [re.sub(r"\$(\w+)", lambda m: args[m[1]], s) for stage, s, _ in dockerfile.sources(steps) if stage is None]  # noqa: B023
        lost = [s for s in copied if not os.path.exists(f"{TOP}/{s}") or s != "." and dockerfile.ignored(rules, s.strip("/"))]
        tap.ok(copied and not lost, f"{name}: {len(copied)} sources are in the context", lost)
        stages = {rest.split()[2] for word, rest in steps if word == "FROM" and " AS " in rest}
        tap.ok({stage for stage, _, _ in dockerfile.sources(steps) if stage} <= stages, f"{name}: stages that are copied from are made")
        set_here = {x.split("=")[0] for word, rest in steps if word == "ENV" for x in rest.split() if x.startswith("DROVER_")}
        tap.ok(set_here <= settings(), f"{name}: its settings are droverd's", set_here)
    for name in ("droverd", "worker"):
        made = [s for stage, s, _ in dockerfile.sources(dockerfile.parse(read(f"deploy/docker/{name}.Dockerfile"))) if stage == "build"]
        installed = read("Makefile").split("INSTALLED :=")[1].split("\n#")[0] + " droverd.json NOTICE"
        tap.ok(made and all(os.path.basename(s.rstrip("/")) in installed or s.endswith("/drover/") for s in made), f"{name}: what it takes from the build is installed by make", made)


def check_context(folder):
    """make, told to build from the context alone, finds every file it wants."""
    dockerfile.context(TOP, folder + "/context")
    os.makedirs(folder + "/context/build")
    for name in ("deps", "web"):
        os.symlink(f"{TOP}/build/{name}", f"{folder}/context/build/{name}")
    r = subprocess.run(["make", "-n", "install", "DESTDIR=/out", "PREFIX=/usr"], cwd=folder + "/context", capture_output=True, text=True, check=False)
    tap.ok(r.returncode == 0 and "No rule" not in r.stderr, "the context is enough to build from", r.stderr[-1500:])
    size = sum(os.path.getsize(os.path.join(at, n)) for at, _, names in os.walk(folder + "/context") for n in names if "/build" not in at)
    tap.ok(size < 20e6, f"and has {size / 1e6:.1f} MB")


def packages(what):
    found = re.search(rf'^{what}_pkgs="([^"]*)"', read("deploy/deps.sh"), re.M)
    return set(found[1].split())


def owners(paths):
    """Packages of these files; the root's /lib is /usr/lib, and dpkg knows either name."""
    names = {}
    for path in paths:
        real = os.path.realpath(path)
        names.update((x, path) for x in (path, real, real.removeprefix("/usr"), "/usr" + real))
    lines = subprocess.run(["dpkg", "-S", *names], capture_output=True, text=True, check=False).stdout.splitlines()
    of = {names[x.split(": ", 1)[1]]: x.split(":")[0] for x in lines}
    return {of.get(path, "nobody's: " + path) for path in paths}


def needed(path):
    """The libraries that the file itself names, where the linker finds them."""
    names = set(re.findall(r"NEEDED.*\[(.*)\]", subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout))
    at = dict(re.findall(r"^\s*(\S+) => (\S+)", subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout, re.M))
    return {at[n] for n in names if n in at and "duckdb" not in n}


def check_packages(root):
    for what, files in (("droverd", ["usr/bin/droverd", "usr/bin/drover"]), ("worker", ["usr/bin/drover-worker", "usr/lib/drover/libduckdb.so"])):
        loaded = owners(set().union(*(needed(f"{root}/{x}") for x in files))) - {"libc6"}
        tap.eq(packages(what) - {"ca-certificates"}, loaded, f"deps.sh {what}: the packages of the {len(loaded)} libraries it loads, and no other")


def closure(names):
    """The packages and what they depend on, as dpkg knows them."""
    known = {}
    for line in subprocess.run(["dpkg-query", "-W", "-f", "${Package}\t${Depends}, ${Pre-Depends}\n"], capture_output=True, text=True, check=True).stdout.splitlines():
        name, _, depends = line.partition("\t")
        known[name] = [[y.split(":")[0].split()[0] for y in x.split("|") if y.strip()] for x in depends.split(",") if x.strip()]
    found, left = set(), list(names)
    while left:
        name = left.pop()
        if name in found or name not in known:
            continue
        found.add(name)
        left += [next((y for y in any_of if y in known), any_of[0]) for any_of in known[name]]
    return found


def check_root(installed, folder):
    """The worker where nothing but its packages is."""
    root = folder + "/root"
    for name in sorted(closure(packages("worker") - {"ca-certificates"} | {"libc6"})):
        for path in subprocess.run(["dpkg", "-L", name], capture_output=True, text=True, check=True).stdout.splitlines():
            if ".so" in path and os.path.isfile(path):
                to = root + ("/usr" if path.startswith("/lib") else "") + path
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy2(path, to)
    for name in ("lib", "lib64"):
        os.makedirs(f"{root}/usr/{name}", exist_ok=True)
        os.symlink("usr/" + name, f"{root}/{name}")
    os.makedirs(root + "/usr/bin")
    shutil.copy2(installed + "/usr/bin/drover-worker", root + "/usr/bin")
    shutil.copytree(installed + "/usr/lib/drover", root + "/usr/lib/drover", dirs_exist_ok=True)
    entry = json.loads(dict(dockerfile.parse(read("deploy/docker/worker.Dockerfile")))["ENTRYPOINT"])
    os.makedirs(root + "/proc")  # where the loader reads what $ORIGIN is
    enter = ["unshare", *([] if os.getuid() == 0 else ["-r"]), "--mount", "--pid", "--fork", f"--mount-proc={root}/proc", "chroot", root]
    r = subprocess.run([*enter, *entry, "--help"], capture_output=True, text=True, check=False)
    tap.ok(r.returncode == 0 and "drover-worker VERB" in r.stdout, "the entry point runs where nothing but its packages is", r)


class Job:
    """The files of a training job."""

    def __init__(self, folder, hyperparameters, captions=("a red fox", "a red car")):
        self.ml = tempfile.mkdtemp(dir=folder)
        self.write("input/data/index/index.jsonl", "".join(json.dumps({"caption": c}) + "\n" for c in captions))
        self.write("input/config/hyperparameters.json", json.dumps(hyperparameters))
        self.write("input/config/inputdataconfig.json", json.dumps({"index": {"TrainingInputMode": "File"}}))
        self.write("input/config/resourceconfig.json", json.dumps({"hosts": ["algo-1", "algo-2"], "current_host": "algo-2"}))

    def write(self, name, text):
        os.makedirs(os.path.dirname(f"{self.ml}/{name}"), exist_ok=True)
        with open(f"{self.ml}/{name}", "w", encoding="utf-8") as f:
            f.write(text)

    def read(self, name):
        path = f"{self.ml}/{name}"
        return open(path, encoding="utf-8").read() if os.path.exists(path) else None

    def start(self, program=TOP + "/deploy/docker/training/program"):
        return subprocess.Popen([sys.executable, TRAIN], env={**os.environ, "DROVER_ML_ROOT": self.ml, "TRAIN_PROGRAM": program}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, **kw):
        p = self.start(**kw)
        return (*p.communicate(), p.returncode)


def check_training(folder):
    job = Job(folder, {"passes": "2", "words": '"10"'})
    out, err, status = job.run()
    tap.ok(status == 0 and json.loads(job.read("model/words.json"))["words"]["red"] == 2 and "step=2 pairs=2" in out, "the program trains on its channel and writes a model", (out, err, status))
    tap.ok(json.loads(job.read("checkpoints/state.json"))["passes"] == 2 and job.read("output/failure") is None, "and checkpoints")
    job = Job(folder, {"program": "tell.py", "text": '"a b"', "n": "3"})
    job.write("program/tell.py", "import os, sys\nprint(sys.argv[1:], os.environ['NODE_RANK'], os.environ['NNODES'], os.environ['MASTER_ADDR'], os.environ['SM_CHANNEL_INDEX'])\n"
              "sys.stderr.write('x' * 3000 + '\\nValueError: no such column')\nsys.exit(3)\n")
    out, err, status = job.run(program=job.ml + "/program")
    tap.eq(out.strip(), f"['--n', '3', '--text', 'a b'] 1 2 algo-1 {job.ml}/input/data/index", "hyperparameters, hosts and channels as the program gets them")
    said = job.read("output/failure")
    tap.ok(status == 3 and said.endswith("ValueError: no such column") and len(said) <= 1024 and "ValueError" in err, "what it said last is the reason of its failure", (status, said))
    job = Job(folder, {"program": "wait.py"})
    job.write("program/wait.py", "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\nprint('up', flush=True)\nwhile True: time.sleep(1)\n")
    p = job.start(program=job.ml + "/program")
    tap.eq(p.stdout.readline(), "up\n", "a program that waits")
    p.send_signal(signal.SIGTERM)
    tap.ok(wait_for(lambda: p.poll() is not None, 30) and p.returncode == 0, "is told of a SIGTERM and may save", p.returncode)


def check_compose():
    compose = yaml.safe_load(read("deploy/compose.yaml"))
    droverd, postgres = (compose["services"][x] for x in ("droverd", "postgres"))
    steps = dockerfile.parse(read("deploy/" + os.path.relpath(droverd["build"]["dockerfile"], "deploy")))
    volumes = {v.split(":")[0] for s in (droverd, postgres) for v in s["volumes"]}
    tap.eq((set(compose["volumes"]), set(compose["networks"])), (volumes, {n for s in (droverd, postgres) for n in s["networks"]}), "compose: volumes and networks are those that are used")
    tap.ok(("VOLUME", droverd["volumes"][0].split(":")[1]) in steps and ("EXPOSE", droverd["ports"][0].rsplit(":", 1)[1]) in steps, "compose: port and volume are the image's")
    tap.ok(droverd["ports"][0].startswith("127.0.0.1:") and "ports" not in postgres and compose["networks"]["database"] == {"internal": True}, "compose: nothing but this machine reaches them")
    tap.ok({k for k in droverd["environment"] if k.startswith("DROVER_")} <= settings() and droverd["healthcheck"]["test"][1:] == ["drover", "api", "GET", "/livez"], "compose: its settings are droverd's")


def check_push(folder):
    """With the commands printed; what they do: deploy_first_campaign.py."""
    r = subprocess.run([TOP + "/deploy/docker/push-images.sh", "--help"], capture_output=True, text=True, check=False)
    tap.ok(r.returncode == 0 and r.stdout.startswith("Build drover's images") and "usage: " in r.stdout, "push-images.sh --help", r)
    r = subprocess.run([TOP + "/deploy/docker/push-images.sh", "--all"], capture_output=True, text=True, check=False)
    tap.ok(r.returncode == 2 and "--all" in r.stderr, "an argument it does not know", r)
    env = {"PATH": folder + "/none:/usr/bin:/bin", "HOME": folder, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    r = subprocess.run([TOP + "/deploy/docker/push-images.sh"], capture_output=True, text=True, check=False, env={**env, "ENGINE": "docker"})
    tap.ok(r.returncode == 1 and "no region is set" in r.stderr and "  next: export AWS_REGION" in r.stderr, "without a region it says what to set", r)


folder = tempfile.mkdtemp(prefix="drover-images-")
try:
    check_files()
    check_context(folder)
    installed = folder + "/installed"
    r = subprocess.run(["make", "--no-print-directory", "-s", "install", f"DESTDIR={installed}", "PREFIX=/usr"], cwd=TOP, capture_output=True, text=True, check=False)
    tap.ok(r.returncode == 0, "make install", r)
    check_packages(installed)
    check_root(installed, folder)
    check_training(folder)
    check_compose()
    check_push(folder)
finally:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(tap.done())
