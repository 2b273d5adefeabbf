#!/usr/bin/python3
"""Aim: what `make install` writes works by itself for somebody who has set nothing: droverd makes its token where drover
looks for it, the service starts with the settings that first-campaign.md names, systemd hears that it is ready and alive, completion knows the verbs, and `make uninstall` leaves nothing.
Method: installed below a folder of its own, run with an empty home and no setting but the address.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, Tap, postgres, wait_for
from kit.cloudformation import Stack, load

tap = Tap()


def make(target, dest):
    return subprocess.run(["make", "--no-print-directory", "-s", target, f"DESTDIR={dest}", "PREFIX=/usr"], cwd=TOP, capture_output=True, text=True)


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(at, f), folder) for at, _, names in os.walk(folder) for f in names)


def test_files(root):
    got = make("install", root)
    tap.ok(got.returncode == 0, "make install", got.stdout[-2000:] + got.stderr[-2000:])
    for name in ("drover", "droverd", "drover-local", "drover-worker"):
        path = f"{root}/usr/bin/{name}"
        what = subprocess.run(["file", "-b", path], capture_output=True, text=True).stdout
        tap.ok(", stripped" in what, f"{name} is stripped", what)
        with open(path, "rb") as f:
            tap.ok(TOP.encode() not in f.read(), f"{name} does not name the folder it was built in")
        said = subprocess.run([path, "--version"], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
        tap.ok(said.returncode == 0 and said.stdout.startswith(name + " "), f"{name} runs from there", said)
    tap.eq(open(f"{root}/usr/share/doc/drover/NOTICE", encoding="utf-8").read(), open(TOP + "/NOTICE", encoding="utf-8").read(), "NOTICE is beside them")
    unit = f"{root}/usr/lib/systemd/system/droverd.service"
    tap.ok("ExecStart=/usr/bin/droverd " in open(unit, encoding="utf-8").read(), "the service starts the installed droverd")
    for page in ("sign-in.md", "mail.md"):
        text = open(f"{TOP}/deploy/{page}", encoding="utf-8").read()
        secrets = set(re.findall(r"^DROVER_\w+_FILE=(/\S+)", text, re.M))
        handed = {f"/run/credentials/droverd.service/{name}" for name, path in re.findall(r"LoadCredential=([\w-]+):/etc/drover/([\w-]+)", text) if name == path}
        tap.ok(secrets and secrets == handed, f"{page}: the service, whose user is made at its start, is handed the secrets that its settings name", (secrets, handed))
    said = subprocess.run(["systemd-analyze", "security", "--offline=true", unit], capture_output=True, text=True).stdout
    level = float(said.rsplit("Overall exposure level for droverd.service:", 1)[-1].split()[0])
    tap.ok(level <= 2.0, f"systemd-analyze: exposure {level}", said[-1500:])
    listed = subprocess.run(["make", "-s", "--eval=installed:;@echo $(INSTALLED)", "installed"], cwd=TOP, capture_output=True, text=True, check=True).stdout.split()
    tap.ok(len(listed) > 10 and files_below(root) == sorted("usr/" + x for x in listed), "all files that are to be installed are there, man pages and example settings among them, and no others",
           set(files_below(root)) ^ {"usr/" + x for x in listed})


def test_libraries(root):
    """A library that no program loads is none of the build's."""
    loaded = "".join(subprocess.run(["readelf", "-d", f"{root}/usr/bin/{name}"], capture_output=True, text=True, check=True).stdout
                     for name in ("drover", "droverd", "drover-local", "drover-worker"))
    with open(TOP + "/Makefile", encoding="utf-8") as f:
        makefile = f.read()
    packages = re.findall(r"^PKG_\w+ := (.*)$", makefile, re.M)
    plain = re.findall(r" -l(\w+)", re.search(r"^L_WORKER = .*$", makefile, re.M)[0])  # without a .pc file
    unused = [name for name in plain if f"[lib{name}.so" not in loaded]
    for package in " ".join([*packages, "libmicrohttpd libpq cjose"]).split():
        library = subprocess.run(["pkg-config", "--libs-only-l", package], capture_output=True, text=True, check=True).stdout.split()[0]
        if f"[lib{library[2:]}.so" not in loaded and f"[lib{library[2:]}-" not in loaded:
            unused.append(package)
    tap.ok(len(packages) == 2 and "gif" in plain and not unused, "every library of the build is loaded by a program", unused)


def complete(root, *words):
    """What bash offers for the last word."""
    script = (f"PATH={root}/usr/bin:$PATH; . {root}/usr/share/bash-completion/completions/drover; COMP_WORDS=({' '.join(words)} ''); "
              f"COMP_CWORD={len(words)}; [ -n \"$LAST\" ] && COMP_WORDS[COMP_CWORD]=$LAST; _drover; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return lambda last="": subprocess.run(["bash", "-c", script], capture_output=True, text=True, env={**os.environ, "LAST": last, "DROVER_URL": "http://127.0.0.1:9"}).stdout.split()


def test_completion(root):
    verbs = complete(root, "drover")()
    tap.ok({"submit", "watch", "retry", "token"} <= set(verbs) and len(verbs) > 20, "completion knows the verbs", verbs)
    options = complete(root, "drover", "retry")("--v")
    tap.ok(options == ["--volume"], "and the options of a verb", options)
    others = [open(f"{root}/usr/share/{x}", encoding="utf-8").read() for x in ("zsh/vendor-completions/_drover", "fish/vendor_completions.d/drover.fish")]
    tap.ok(others[0].startswith("#compdef drover") and "complete -c drover" in others[1], "there is one for zsh and one for fish", others)


def test_first_use(root, home):
    """No token, no file of settings, no variable but the address."""
    env = {"PATH": f"{root}/usr/bin:/usr/bin:/bin", "HOME": home, "DROVER_LISTEN": "127.0.0.1:0", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
           "AWS_ACCESS_KEY_ID": "AKIAFIRSTUSE", "AWS_SECRET_ACCESS_KEY": "none", "NOTIFY_SOCKET": home + "/notify", "WATCHDOG_USEC": "400000"}
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(env["NOTIFY_SOCKET"])
    os.chmod(env["NOTIFY_SOCKET"], 0o666)
    manager.settimeout(60)
    heard = lambda: manager.recv(256).decode()
    with open(home + "/droverd.log", "wb") as log:
        p = subprocess.Popen(["droverd", "--private-db", home + "/db", "--port-file", home + "/port"], env=env, stdout=log, stderr=log, cwd="/")
    try:
        tap.eq(heard(), "READY=1", "droverd tells systemd that it is ready")
        tap.eq([heard() for _ in range(3)], ["WATCHDOG=1"] * 3, "and again and again that it turns")
        env["DROVER_URL"] = "http://127.0.0.1:" + wait_for(lambda: os.path.exists(home + "/port") and open(home + "/port").read().strip(), 20, "the port")
        token = home + "/.config/drover/token"
        tap.eq((os.stat(token).st_mode & 0o777, os.stat(os.path.dirname(token)).st_mode & 0o777), (0o600, 0o700), "the token is its owner's alone")
        said = subprocess.run(["drover", "ls"], env=env, capture_output=True, text=True)
        tap.ok(said.returncode == 0, "drover finds the token by itself", said)
        said = subprocess.run(["drover", "ls"], env={**env, "HOME": home + "/nobody"}, capture_output=True, text=True)
        tap.ok(said.returncode == 4 and "token" in said.stderr, "without one it says so", said)
    finally:
        p.send_signal(signal.SIGTERM)
        p.wait(60)
    tap.eq(next((h for h in iter(heard, "") if h != "WATCHDOG=1"), ""), "STOPPING=1", "its end is announced")


def test_service(root, home):
    """ExecStart of the installed unit, nothing in /etc/drover but the lines of the stack and of the image, and what the last step of first-campaign.md names."""
    unit = open(f"{root}/usr/lib/systemd/system/droverd.service", encoding="utf-8").read()
    argv = [w for w in re.search(r"^ExecStart=(.*)$", unit, re.M)[1].split() if not w.startswith("$")]  # systemd leaves a variable out that is not set
    with open(TOP + "/deploy/cloudformation/prerequisites.yaml", encoding="utf-8") as f:
        lines = Stack(load(f.read()), {}, region="us-east-1", account="123456789012").output("Settings").splitlines()
    with open(TOP + "/deploy/first-campaign.md", encoding="utf-8") as f:
        lines += re.findall(r"`([A-Z_]+=[^`]*)`", f.read().split("To keep droverd running")[1].split("## 7")[0])
    settings = {**dict(line.split("=", 1) for line in lines), "DROVER_WORKER_IMAGE": "123456789012.dkr.ecr.us-east-1.amazonaws.com/drover-worker:1"}
    database = postgres.new_folder("drover-install-pg-")
    try:
        postgres.make_data(database)
        postgres.start(database, "")
        if tap.ok("DROVER_DATABASE_URL" in settings, "the guide names the database among the settings", settings):
            settings["DROVER_DATABASE_URL"] = f"host={database} user=drover dbname=postgres"
        env = {"PATH": "/usr/bin:/bin", "STATE_DIRECTORY": home + "/state", "NOTIFY_SOCKET": home + "/service", **settings,
               "DROVER_LISTEN": "127.0.0.1:0", "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "AKIASERVICE", "AWS_SECRET_ACCESS_KEY": "none"}
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.bind(env["NOTIFY_SOCKET"])
        manager.settimeout(1)
        os.mkdir(env["STATE_DIRECTORY"], 0o700)
        with open(home + "/service.log", "wb") as log:
            p = subprocess.Popen([root + argv[0], *argv[1:]], env=env, stdout=log, stderr=log, cwd="/")
        heard = wait_for(lambda: p.poll() is not None or manager.recv(256).decode(), 60)
        tap.ok(heard == "READY=1", "the service starts with them", (heard, open(home + "/service.log", encoding="utf-8").read()[-500:]))
        tap.ok(os.path.exists(home + "/state/token"), "with its token where the guide says")
        p.terminate()
        p.wait(60)
    finally:
        postgres.stop(database, "fast")
        shutil.rmtree(database, ignore_errors=True)


def test_uninstall(root):
    got = make("uninstall", root)
    tap.eq((got.returncode, files_below(root)), (0, []), "make uninstall leaves nothing")


folder = tempfile.mkdtemp(prefix="drover-install-")
try:
    os.makedirs(folder + "/home")
    os.chmod(folder, 0o755)
    os.chmod(folder + "/home", 0o755)
    test_files(folder + "/root")
    test_libraries(folder + "/root")
    test_completion(folder + "/root")
    test_first_use(folder + "/root", folder + "/home")
    test_service(folder + "/root", folder + "/home")
    test_uninstall(folder + "/root")
finally:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(tap.done())
