#!/usr/bin/env python3
"""Aim: what static checkers find is mended, or explained where it stands.

Method: each tool over every file it is for; one TAP line a tool, its findings as comments. lint.py [TOOL...]: without
names all but clang-analyzer, which takes half an hour or more; the suite lint-analyzer names it. A finding is explained
at its line (NOLINT(check), cppcheck-suppress, eslint-disable, shellcheck disable) or, for gcc's analyzer, which has no
such comment, in known.txt. Every tool is also given a planted fault and fails when it does not find that: a tool that
finds nothing may have looked at nothing.
"""
import os
import re
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(TOP, "tests/lint")
PLANTED = "tests/lint/planted/planted"
FINDING = re.compile(r"^(\S+?):\d+(:\d+)?: (warning|error|note|style|performance|portability)\b.*")
FILES_MIN = {"c": 190, "sh": 10, "js": 10}


def run(command):
    got = subprocess.run(command, cwd=TOP, capture_output=True, text=True)
    return got.stdout + got.stderr


def tracked(*patterns):
    """Files git knows or would add; by find where there is no git."""
    got = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=TOP, capture_output=True, text=True)
    names = got.stdout.split()
    if got.returncode != 0:
        names = []
        for pattern in patterns:
            names += run(["find", ".", "-path", "./build", "-prune", "-o", "-name", os.path.basename(pattern), "-print"]).split()
        names = [n[2:] for n in names]
    return sorted(n for n in names if os.path.isfile(os.path.join(TOP, n)))


def findings(text):
    """Lines that name a fault in a file of ours, paths relative to the tree."""
    lines = {line.replace(TOP + "/", "") for line in text.split("\n")}
    return sorted(line for line in lines if FINDING.match(line) and ": note:" not in line)


def compiled(tool):
    """The logs that make leaves: one a C file, or one a folder that begins with the names of its files."""
    def check():
        out = run(["make", "--no-print-directory", "-k", "-j%d" % len(os.sched_getaffinity(0)), "lint-" + tool])
        logs = run(["find", "build/lint/" + tool, "-name", "*.log"]).split()
        found = set() if "***" not in out else {"make: " + line for line in out.split("\n") if "***" in line}
        there = set()
        for path in logs:
            with open(os.path.join(TOP, path), encoding="utf-8", errors="replace") as f:
                text = f.read()
            names = re.findall(r"^FILE (\S+)$", text, re.M) or [path[len("build/lint/" + tool) + 1 : -4] + ".c"]
            names = [name for name in names if os.path.exists(os.path.join(TOP, name))]
            there |= set(names)
            found |= set(findings(text)) if names else set()
        return "c", len(there), sorted(found)

    return check


def clang_format():
    files = tracked("*.c", "*.h")
    return "c", len(files), findings(run(["clang-format", "--dry-run", *files])) + planted_format()


def planted_format():
    got = subprocess.run(["clang-format", "--dry-run", "--assume-filename=x.c"], input="int  x;\n", cwd=TOP, capture_output=True, text=True)
    return [PLANTED + ".c:1:1: warning: found"] if "warning:" in got.stderr else []


def shellcheck():
    files = tracked("*.sh") + [".ci/run"]
    return "sh", len(files), [line for line in run(["shellcheck", "-x", "-f", "gcc", *files]).split("\n") if ": " in line]


def eslint():
    deps = os.path.join(TOP, "build/eslint")
    if not os.path.exists(os.path.join(deps, "node_modules/.bin/eslint")):
        return "js", 0, ["ESLint is not installed: run make deps-test"]
    with open(os.path.join(HERE, "eslint.config.js"), encoding="utf-8") as f, open(os.path.join(deps, "eslint.config.js"), "w", encoding="utf-8") as to:
        to.write(f.read())  # it finds its packages beside itself
    files = tracked("orchestrator/web/*.js", "tests/e2e/*.mjs", "tests/openapi/*.mjs", "tests/aws_sdk/*.mjs") + [PLANTED + ".js"]
    form = os.path.join(HERE, "eslint_lines.cjs")
    out = run([deps + "/node_modules/.bin/eslint", "--config", deps + "/eslint.config.js", "--format", form, *files])
    return "js", len(files), [line.replace(TOP + "/", "") for line in out.split("\n") if line]


TOOLS = {
    "clang-format": clang_format,
    "shellcheck": shellcheck,
    "eslint": eslint,
    "clang-tidy": compiled("clang-tidy"),
    "clang-tidy-tests": compiled("clang-tidy-tests"),
    "cppcheck": compiled("cppcheck"),
    "gcc-analyzer": compiled("gcc-analyzer"),
    "clang-analyzer": compiled("clang-analyzer"),
}


def known():
    """Lines of known.txt: TOOL PATH WHAT why; WHAT is part of the finding's line."""
    rows = []
    with open(os.path.join(HERE, "known.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                tool, path, what, why = line.split(None, 3)
                rows.append((tool, path, what, why.strip()))
    return rows


def main():
    names = sys.argv[1:] or [t for t in TOOLS if t != "clang-analyzer"]
    wrong_names = [n for n in names if n not in TOOLS]
    if wrong_names:
        sys.exit("lint.py: no such tool: %s; there are %s" % (wrong_names[0], ", ".join(TOOLS)))
    bad = 0
    for i, name in enumerate(names, 1):
        began = time.monotonic()
        kind, n, lines = TOOLS[name]()
        planted = [line for line in lines if line.startswith(PLANTED)]
        lines = [line for line in lines if not line.startswith(PLANTED)]
        for tool, path, what, _ in known():
            if tool == name:
                left = [line for line in lines if not (line.startswith(path) and what in line)]
                if len(left) == len(lines):
                    left.append("known.txt: %s has no finding '%s' any more" % (path, what))
                lines = left
        if n < FILES_MIN[kind]:
            lines.append("only %d files were looked at" % n)
        if not planted:
            lines.append("the planted fault was not found")
        bad += 1 if lines else 0
        print("%s %d - lint: %s, %d findings in %d files (%.0f s)" % ("not ok" if lines else "ok", i, name, len(lines), n, time.monotonic() - began), flush=True)
        for line in lines[:60]:
            print("#   " + line)
        if len(lines) > 60:
            print("#   ... and %d more" % (len(lines) - 60))
    print("1..%d" % len(names))
    sys.exit(1 if bad else 0)


main()
