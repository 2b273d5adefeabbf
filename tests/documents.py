#!/usr/bin/env python3
"""Aim: what the documents say is so. Method: every file a README names exists, every folder that is a room has a README of one page,
every verb of the README and of what the programs and pages print is one of the command line's, what a page says about `drover init` writes the file, NOTICE has the licences of what is shipped, the searches of CONTRIBUTING.md find what they promise, and the man pages name
every command, option and setting and pass mandoc's lint without a word."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import campaign_keys
from kit import BIN, TOP, Tap

# Rooms that hold folders or no C; every folder that the Makefile makes an archive of is one, too.
ROOMS = "orchestrator orchestrator/core orchestrator/store orchestrator/api orchestrator/web include sql worker worker/download deploy".split()
README_LINES_MAX = 40
FILE = re.compile(r"^[\w./-]+\.(?:[ch]|def|js|py|sh|sql|yaml|md|html|css|awk|png)$|^(?:[\w.-]+/)+$")
# Files that programs write, and folders that `make` does.
WRITTEN = re.compile(r"^build/|^_|_stats\.json$|NNNN")


def run(*argv, **more):
    return subprocess.run(argv, cwd=TOP, capture_output=True, text=True, **more)


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def names_missing(path, tree):
    """Names of files in backquotes or links that no file or folder of the tree ends with."""
    text = read(path)
    names = re.findall(r"`([^`\s]+)`", text) + re.findall(r"\]\(([^)\s]+)\)", text)
    return [n for n in names if FILE.match(n) and not WRITTEN.search(n) and not any(t.endswith("/" + n) for t in tree)]


def headings_missing(text):
    """Which of the two headings of a folder's README it has not."""
    headings = "\n".join(re.findall(r"^##+ .*$", text, re.M)).lower()
    return [word for word in ("may use", "promises") if word not in headings]


def readmes(tap):
    tree = run("git", "ls-files", "-co", "--exclude-standard").stdout.split()
    files = [f for f in tree if f.endswith(".md")]
    tree = {"/" + f for f in tree} | {"/" + f[: i + 1] for f in tree for i, c in enumerate(f) if c == "/"}
    pages = [f for f in files if os.path.basename(f) == "README.md" and f != "README.md"]
    rooms = set(ROOMS + run("make", "--no-print-directory", "-s", "--eval", "rooms: ; @echo $(FOLDERS)", "rooms").stdout.split())
    tap.ok(len(rooms) > 45, "the Makefile names its folders", rooms)
    tap.eq(sorted(r for r in rooms if f"{r}/README.md" not in pages), [], "every room has a README")
    tap.eq({r: m for r in sorted(rooms - set(ROOMS)) if (m := headings_missing(read(f"{r}/README.md")))}, {}, "a folder's README says what it may use and what it promises")
    tap.eq(headings_missing("# x\n\n## May use\n\nNo promises.\n"), ["promises"], "the planted README without promises is found")
    lines = {f: read(f).count("\n") for f in files}
    tap.eq({f: n for f, n in lines.items() if f in pages and not 10 <= n <= README_LINES_MAX}, {}, "a README of a folder is one page")
    tap.ok(lines["README.md"] <= 150, "the README has at most 150 lines", lines["README.md"])
    tap.eq({f: m for f in files if (m := names_missing(f, tree))}, {}, "every file the documents name exists")
    verbs = verbs_there()
    used = {v for block in read("README.md").split("```")[1::2] for v in re.findall(r"^drover ([a-z]+)", block, re.M)}
    tap.ok(used and used <= verbs, "the README's verbs exist", used - verbs)


def events(tap):
    """What the database tells of, a page listens to: without its kind a page changes with the slow poll only, and says that it is live."""
    told = set(re.findall(r"'([a-z]+\.state)'", "".join(read(f) for f in run("git", "ls-files", "sql/queries").stdout.split())))
    heard = set(re.findall(r"'([a-z.]+)'", re.search(r"KINDS = \[(.*)\]", read("orchestrator/web/stream.js"))[1]))
    tap.ok(len(told) > 7 and told <= heard, "the dashboard hears every kind of event", told - heard)


def verbs_there():
    return set(re.findall(r'^X\("([a-z]+)"', read("orchestrator/cli/commands.def"), re.M))


def commands(tap):
    """`drover VERB` where a text begins or a command follows its sentence, in what people are shown; not in comments."""
    tree = run("git", "ls-files", "-co", "--exclude-standard", "orchestrator").stdout.split()
    shown = [f for f in tree if re.search(r"web/\w+\.js$|\.def$|(api/handlers|cli)/\w+\.c$", f)]
    texts = {f: re.sub(r"/\*.*?\*/|(?m:^ *// [^\n]*)", "", read(f), flags=re.S) for f in shown}
    said = {(f, v) for f, text in texts.items() for v in re.findall(r"""(?:["'`(;:,]|\bor) *drover ([a-z]+)""", text)}
    prose = {("orchestrator/cli/next_step.def", "and"), ("orchestrator/core/states/campaign_state.def", "stopped")}
    tap.ok(len(said) > 100, "the commands that are printed are found", len(said))
    tap.eq(sorted((f, v) for f, v in said - prose if v not in verbs_there()), [], "all have a verb that exists")
    begun = [c for f, text in texts.items() if "/web/" in f for c in re.findall(r'"(drover init [^"]*)"', text)]
    with tempfile.TemporaryDirectory() as folder:
        for i, command in enumerate(begun):
            os.mkdir(f"{folder}/{i}")
            r = subprocess.run(command, shell=True, cwd=f"{folder}/{i}", env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}, capture_output=True, text=True, check=False)
            written = [open(p, encoding="utf-8").read() for p in glob.glob(f"{folder}/{i}/campaign.yaml")]
            tap.ok(r.returncode == 0 and len(written) == 1 and "\nstages:" in written[0], f"{command}: campaign.yaml is a campaign file", (r.stderr, written))
    tap.ok(begun, "pages say how to begin a file", begun)


def notice(tap):
    """What is embedded or installed beside the programs is in NOTICE with its version and the whole of its licence."""
    flat = lambda text: " ".join(text.split())  # noqa: E731
    have, missing = flat(read("NOTICE")), []
    shipped = [("web", "orchestrator/web", "preact"), ("web", "orchestrator/web", "htm"), ("deps", "worker/deps", "duckdb")]
    for where, lock, package in shipped:
        folder = f"build/{where}/node_modules/{package}/"
        version = json.loads(read(lock + "/package.json"))["dependencies"][package]
        if f"{package} {version}," not in have.lower() or flat(read(folder + "LICENSE")) not in have:
            missing.append(f"{package} {version}")
    named = [p.split("/")[0] for _, lock in {(w, f) for w, f, _ in shipped} for p in json.loads(read(lock + "/package.json"))["dependencies"]]
    tap.eq((missing, sorted(set(named))), ([], ["@duckdb", "duckdb", "htm", "preact"]), "NOTICE has the licences of all that is shipped")


def searches(tap):
    """`$ grep ...` in CONTRIBUTING.md, with the file it finds on the line below."""
    found = re.findall(r"^\$ (grep .*)\n((?:[\w./-]+:.*\n)+)", read(".github/CONTRIBUTING.md"), re.M)
    tap.ok(len(found) >= 4, "CONTRIBUTING.md has its searches", found)
    for command, answer in found:
        out = run("bash", "-c", command).stdout
        for line in answer.splitlines():
            path, text = line.split(":", 1)
            hits = [h for h in out.splitlines() if h.startswith(path + ":")]
            tap.ok(any(text.strip() in h for h in hits), f"{command[:60]} finds {path}", out[:600])


def steps_missing(text):
    """Commands and words of CONTRIBUTING.md's recipes that the tree does not have."""
    targets = "".join(read(f) for f in run("git", "ls-files", "-co", "--exclude-standard", "Makefile", "*.mk").stdout.split())
    suites = [row.split("\t")[0] for row in read("tests/suites.tsv").splitlines() if not row.startswith("#")]
    here = lambda name: os.path.exists(os.path.join(TOP, name))  # noqa: E731
    source = lambda name: here(name.removeprefix("build/release/").removesuffix(".o") + ".c")  # noqa: E731
    made = lambda name: source(name) if name.startswith("build/release/") else name in ("build/bin/drover", "build/bin/droverd") or re.search(r"^[\w -]*\b%s\b[\w -]*:" % re.escape(name), targets, re.M)  # noqa: E731
    blocks = [line.partition("  #")[0].strip() for block in text.split("```")[1::2] for line in block.splitlines()]
    commands = [c for c in blocks if re.match(r"(make|python3|bash|build/)", c)] + re.findall(r"`(make [^`]+)`", text)
    missing = []
    for command in commands:
        first, *rest = command.split()
        variants = [w.split("=")[1] for w in rest if w.startswith("VARIANT=")]
        globs = [w[3:-1].replace("*", ".*") for w in rest if w.startswith("T='")]
        words = [w for w in rest if not re.match(r"-|\w+=", w)]
        fine = all(made(w) for w in words) if first == "make" else source(first) if first.startswith("build/") else all(here(w) for w in words)
        if not fine or not all("OPT_%s :=" % v in targets for v in variants) or not all(any(re.fullmatch(g, s) for s in suites) for g in globs):
            missing.append(command)
    names = set(re.findall(r"`([A-Za-z]+_\w+)`", text))
    known = " ".join(run("git", "grep", "-hoEw", "--untracked", "|".join(sorted(names)), "--", "Makefile", "orchestrator", "worker", "sql", "include").stdout.split())
    known += " ".join(run("git", "ls-files", "-co", "--exclude-standard", "tests").stdout.split())
    sql = "".join(read(f) for f in run("git", "ls-files", "-co", "--exclude-standard", "sql/migrations").stdout.split())
    # PostgreSQL's names of constraints: TABLE_COLUMN_check.
    constraint = lambda name: any(f"CREATE TABLE {name[:i]} " in sql and re.search(r"\b%s\b" % name[i + 1 : -6], sql) for i, c in enumerate(name) if c == "_" and name.endswith("_check"))  # noqa: E731
    return len(commands) + len(names), missing + sorted(n for n in names if n not in known and not constraint(n))


def recipes(tap):
    n, missing = steps_missing(read(".github/CONTRIBUTING.md"))
    tap.ok(n >= 20 and not missing, "the recipes of CONTRIBUTING.md name commands and words that exist", (n, missing))
    planted = "```\nmake no-such\nmake VARIANT=none all\nbuild/release/tests/unit/none  # why\nbash tests/none.sh\nmake all\n```\n`make test T='none-*'`, `no_such_word_of_drover`"
    tap.eq(len(steps_missing(planted)[1]), 6, "the planted steps are found")


def campaign_file(tap):
    """The page of all keys is the table's; what the table says of every key stands in it."""
    path = os.path.join(TOP, "deploy/campaign-file.md")
    table = read("orchestrator/core/spec/campaign_key.def")
    page = campaign_keys.page(table, read("orchestrator/api/server/schemas_campaign.def"))
    if "--update" in sys.argv:
        with open(path, "w", encoding="utf-8") as f:
            f.write(page)
    keys = sum(len(keys) for _, _, _, keys in campaign_keys.rows(table))
    tap.eq(keys, len(re.findall(r"^K\(", table, re.M)), "every key of the table is read")
    tap.ok(re.search(r"\n## hang\n\n[^\n]* preparation .*\n\| `start` [^\n]* preparation ", page, re.S), "hang says that a preparation is judged, too")
    tap.ok(read("deploy/campaign-file.md") == page, "deploy/campaign-file.md is what the table says: tests/documents.py --update writes it")


def man_pages(tap):
    with tempfile.TemporaryDirectory() as out:
        r = run("sh", "deploy/man/man.sh", BIN, out)
        tap.ok(r.returncode == 0, "the man pages are written", r.stderr)
        pages = {os.path.basename(p): open(p, encoding="utf-8").read() for p in glob.glob(out + "/*")}
        tap.eq(sorted(pages), ["drover-local.1", "drover-worker.1", "drover.1", "droverd.8"], "one for each program")
        for name in sorted(pages):
            r = run("mandoc", "-T", "lint", "-W", "warning", f"{out}/{name}")
            tap.ok(r.returncode == 0 and not r.stdout, f"{name} passes mandoc's lint", r.stdout + r.stderr)
        plain = {n: run("mandoc", "-T", "ascii", "-O", "width=200", f"{out}/{n}").stdout for n in pages}
        plain = {n: re.sub(r".\x08", "", t) for n, t in plain.items()}
    table = re.findall(r'^X\("([a-z]+)", cmd_(?!help)', read("orchestrator/cli/commands.def"), re.M)
    tap.eq([v for v in table if f"drover {v}" not in plain["drover.1"]], [], "drover(1) has every command")
    options = re.findall(r'^X\("([a-z-]+)"', read("orchestrator/cli/options.def"), re.M)
    tap.eq([o for o in options if f"--{o}" not in plain["drover.1"]], [], "drover(1) has every option")
    example = json.loads(run(f"{BIN}/droverd", "--example-config").stdout)
    keys = [k for k in example if not k.startswith("//")]
    tap.eq([k for k in keys if k not in plain["droverd.8"]], [], "droverd(8) has every setting")
    known = re.search(r"known_keys\[\] = \{(.*?)\}", read("worker/local/settings.c"), re.S).group(1)
    tap.eq([k for k in re.findall(r'"(\w+)"', known) if k not in plain["drover-local.1"]], [], "drover-local(1) has every setting")
    for verb in ("download", "index"):
        flags = re.findall(r"^  (--\w+)", run(f"{BIN}/drover-worker", verb, "--help").stdout, re.M)
        tap.ok(flags and all(f in plain["drover-worker.1"] for f in flags), f"drover-worker(1) has every setting of {verb}", flags)
    version = run(f"{BIN}/droverd", "--version").stdout.split()[1]
    tap.eq([n for n, t in plain.items() if f"drover {version}" not in t], [], "all pages name the version")


def main():
    tap = Tap()
    readmes(tap)
    commands(tap)
    events(tap)
    notice(tap)
    searches(tap)
    recipes(tap)
    campaign_file(tap)
    man_pages(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
