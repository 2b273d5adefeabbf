"""Reads and carries out a Dockerfile without an engine: FROM, ARG, COPY, RUN, ENV, WORKDIR, USER and what only describes. Roots are folders;
RUN is /bin/sh -c in a chroot of the root, with the machine's network. What the files in deploy/docker do not use is refused."""
import fnmatch
import glob
import json
import os
import re
import shlex
import shutil
import subprocess

KNOWN = ("FROM", "ARG", "COPY", "RUN", "ENV", "WORKDIR", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD")


def parse(text):
    """[(instruction, rest)], continued lines joined."""
    lines = [x for x in text.splitlines() if not x.lstrip().startswith("#")]
    whole = re.sub(r"\\\n", " ", "\n".join(lines))
    steps = [tuple(x.strip().split(None, 1)) for x in whole.splitlines() if x.strip()]
    strange = [s for s in steps if len(s) != 2 or s[0] not in KNOWN]
    if strange:
        raise ValueError(f"not understood: {strange}")
    return steps


def ignored(rules, path):
    """Whether .dockerignore leaves the path out: by a rule for it or a folder above it."""
    parts = path.split("/")
    above = ["/".join(parts[:i]) for i in range(1, len(parts) + 1)]
    return any(fnmatch.fnmatchcase(a, r) or r.startswith("**/") and fnmatch.fnmatchcase(a.rsplit("/", 1)[-1], r[3:]) for a in above for r in rules)


def rules_of(top):
    with open(top + "/.dockerignore", encoding="utf-8") as f:
        return [x.strip().strip("/") for x in f if x.strip() and not x.startswith("#")]


def context(top, to):
    """What an engine gets: the files git knows without those that .dockerignore leaves out."""
    rules = rules_of(top)
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=top, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in names:
        if name and os.path.isfile(f"{top}/{name}") and not ignored(rules, name):
            os.makedirs(os.path.dirname(f"{to}/{name}"), exist_ok=True)
            shutil.copy2(f"{top}/{name}", f"{to}/{name}")


def sources(steps):
    """[(stage or None, source, target)] of every COPY."""
    found = []
    for word, rest in steps:
        if word == "COPY":
            words = rest.split()
            stage = words.pop(0).split("=", 1)[1] if words[0].startswith("--from=") else None
            found += [(stage, x, words[-1]) for x in words[:-1]]
    return found


class Build:
    """base(name, root) fills a root for FROM name. env: of every RUN besides the image's."""

    def __init__(self, top, folder, base, env=None, log=None, args=None):
        self.top, self.folder, self.base, self.extra, self.log = top, folder, base, env or {}, log
        self.args = args or {}
        self.roots = {}
        self.stage = None

    def expand(self, text):
        return re.sub(r"\$\{?(\w+)\}?", lambda m: {**self.env, **self.arg}.get(m[1], ""), text)

    def run(self, command):
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive", **self.extra, **self.env, **self.arg}
        user = ["--userspec=" + self.user] if self.user else []
        argv = ["chroot", *user, self.root, "/bin/sh", "-c", f"cd {shlex.quote(self.cwd)} && {command}"]
        p = subprocess.run(["unshare", "--mount", "--pid", "--fork", f"--mount-proc={self.root}/proc", *argv], env=env, stdout=self.log, stderr=subprocess.STDOUT, check=False)
        if p.returncode != 0:
            raise RuntimeError(f"RUN {command}: status {p.returncode}")

    def copy(self, rest):
        words = rest.split()
        stage = words.pop(0).split("=", 1)[1] if words[0].startswith("--from=") else None
        top = self.roots[stage] if stage else self.folder + "/context"
        target = words[-1]
        into = self.root + (target if target.startswith("/") else f"{self.cwd}/{target}")
        for word in words[:-1]:
            found = glob.glob(os.path.normpath(f"{top}/{self.expand(word)}"))
            if not found:
                raise FileNotFoundError(f"COPY {word}")
            for path in found:
                if os.path.isdir(path):
                    shutil.copytree(path, into, symlinks=True, dirs_exist_ok=True)
                elif target.endswith("/") or len(words) > 2:
                    os.makedirs(into, exist_ok=True)
                    shutil.copy2(path, into)
                else:
                    os.makedirs(os.path.dirname(into), exist_ok=True)
                    shutil.copy2(path, into)

    def begin(self, rest):
        words = self.expand(rest).split()
        self.stage = words[2] if len(words) > 2 else "final"
        self.root = self.roots[self.stage] = f"{self.folder}/{self.stage}"
        self.env, self.cwd, self.user, self.entry = {}, "/", "", []
        self.base(words[0], self.root)

    def carry_out(self, steps):
        self.env, self.arg = {}, {}
        for word, rest in steps:
            if word == "FROM":
                self.begin(rest)
            elif word == "ARG":
                name, _, value = rest.partition("=")
                self.arg[name] = self.args.get(name, value)
            elif word == "COPY":
                self.copy(rest)
            elif word == "RUN":
                self.run(rest)
            elif word == "ENV":
                self.env.update(x.split("=", 1) for x in shlex.split(rest))
            elif word == "WORKDIR":
                self.cwd = rest
                os.makedirs(self.root + rest, exist_ok=True)
            elif word == "USER":
                self.user = rest
            elif word == "ENTRYPOINT":
                self.entry = json.loads(rest)
        return self.root
