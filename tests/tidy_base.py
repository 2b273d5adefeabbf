"""What the checks of form share: TAP lines, the tree's files, a text without its comments."""
import functools
import os
import re
import subprocess


TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

count = 0

failed = 0


def check(name, wrong):
    global count, failed
    count += 1
    failed += 1 if wrong else 0
    print("%s %d - tidy: %s" % ("not ok" if wrong else "ok", count, name))
    for line in wrong[:40]:
        print("#   " + line)
    if len(wrong) > 40:
        print("#   ... and %d more" % (len(wrong) - 40))


@functools.cache
def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def tree():
    """Files git knows or would add; all that is not below build/ where there is no git."""
    run = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=TOP, capture_output=True, text=True
    )
    if run.returncode == 0:
        names = run.stdout.splitlines()
    else:
        names = []
        for base, folders, files in os.walk(TOP):
            folders[:] = [d for d in folders if d not in (".git", "build", "node_modules")]
            names += [os.path.relpath(os.path.join(base, f), TOP) for f in files]
    return sorted(n for n in names if os.path.isfile(os.path.join(TOP, n)))


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


TOKENS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


@functools.cache
def strip_comments(text, strings=True):
    """Comments (and the insides of strings) as blanks, lines and columns kept."""

    def one(m):
        t = m.group(0)
        if t[0] == "/":
            return blank(m)
        return t[0] + " " * (len(t) - 2) + t[0] if strings else t

    return TOKENS.sub(one, text)


def lines_at(text):
    return enumerate(text.split("\n"), 1)


def done():
    """The plan line; the status to exit with."""
    print("1..%d" % count)
    return 1 if failed else 0
