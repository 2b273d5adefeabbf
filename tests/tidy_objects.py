"""Rules of form for tidy.py that the text does not tell: symbols and calls of the release build's objects, and what each
header and folder can include.
"""
import glob
import os
import re
import subprocess

from tidy_base import TOP, check, read, strip_comments


# Objects that may change and live as long as the process, each with why.
GLOBALS_ALLOWED = {
    "orchestrator/common/log": {"log_threshold", "log_program", "log_line_start", "log_suppressed", "log_rates", "log_rates_lock", "ring", "dropped_n"},
    "orchestrator/common/log_people": {"terminal_style"},  # as the level: how the process logs
    "orchestrator/common/failpoint": {"failpoints"},
    "orchestrator/common/http": {"once"},  # curl_global_init runs once a process
    "orchestrator/metrics": {"values"},  # the process's counters, atomic
    "orchestrator/api/server/server": {"nothing"},  # libmicrohttpd takes no const bytes; the array is never written
}


def objects():
    return sorted(
        o
        for d in ("orchestrator", "worker")
        for o in glob.glob(os.path.join(TOP, "build/release", d, "**/*.o"), recursive=True)
        if os.path.exists(os.path.join(TOP, os.path.relpath(o, os.path.join(TOP, "build/release"))[:-2] + ".c"))
    )


def check_globals(objs):
    wrong = [] if objs else ["nothing is built below build/release"]
    module = ""
    for line in subprocess.run(["objdump", "-t", *objs], capture_output=True, text=True, check=True).stdout.splitlines():
        if ":     file format" in line:
            module = os.path.relpath(line.split(":")[0], os.path.join(TOP, "build/release"))[:-2]
        m = re.match(r"[0-9a-f]+ (.{7}) (\.\S+)\s+[0-9a-f]+\s+(?:\.hidden )?(\S+)$", line)
        if not m or "O" not in m.group(1):
            continue
        section, name = m.group(2), m.group(3).split(".")[0]
        if re.match(r"\.(data|bss|tdata|tbss)(?!\.rel\.ro)", section) and name not in GLOBALS_ALLOWED.get(module, ()):
            wrong.append("%s.c: %s" % (module, name))
    check("no object of the program changes outside of main's structs", sorted(set(wrong)))


def exported(*options):
    """{file: names it defines for others}"""
    run = subprocess.run(["nm", "-A", "--defined-only", *options], capture_output=True, text=True)
    found = {}
    for path, _, rest in (line.partition(":") for line in run.stdout.splitlines()):
        row = rest.split()
        if len(row) == 3 and row[1] in "TDBRVWi":
            found.setdefault(path, set()).add(row[2].split("@")[0])
    return found


def libraries_of(programs):
    """Every shared library that one of them loads; ldd runs the loader, so once for each set of direct needs."""
    needs = {}
    name = ""
    for line in subprocess.run(["objdump", "-p", *programs], capture_output=True, text=True).stdout.splitlines():
        if ":     file format" in line:
            name = line.split(":")[0]
            needs[name] = ()
        elif line.startswith("  NEEDED"):
            needs[name] += (line.split()[1],)
    one_each = {need: program for program, need in needs.items()}
    found = set()
    for program in one_each.values():
        found |= set(re.findall(r"=> (/\S+)", subprocess.run(["ldd", program], capture_output=True, text=True).stdout))
    return sorted(found)


# Functions of ours that are meant to take a library's place, and where they are.
PLACES_TAKEN = {"SSL_CTX_new": "worker/download/fetch/tls_context.o"}


def check_collisions(objs):
    """A function of ours with a library's name takes its place at run time (yaml_free once did)."""
    ours = {name: os.path.relpath(obj, TOP) for obj, names in exported("-g", *objs).items() for name in names}
    programs = glob.glob(os.path.join(TOP, "build/bin/*")) + glob.glob(
        os.path.join(TOP, "build/release/tests/unit/**/test_*"), recursive=True
    )
    libraries = libraries_of([p for p in programs if os.access(p, os.X_OK) and os.path.isfile(p)])
    wrong = [] if libraries and ours else ["no program is built"]
    for library, names in sorted(exported("-D", *libraries).items()):
        wrong += [
            "%s of %s is also in %s" % (n, ours[n], os.path.basename(library))
            for n in sorted(names & set(ours))
            if n != "main" and not ours[n].endswith(PLACES_TAKEN.get(n, "?"))
        ]
    check("no function has the name of one in a library it is linked with", wrong)


def symbols_of(objs):
    """Object -> rows of nm. One nm for all: starting one for each object takes longer than reading them."""
    found = {obj: [] for obj in objs}
    run = subprocess.run(["nm", "-A", *objs], capture_output=True, text=True, check=True)
    for path, _, rest in (line.partition(":") for line in run.stdout.splitlines()):
        found[path].append(rest.split())
    return found


def calls_between(members):
    """Module -> module -> names: what an object takes from others of the same folder. members: object -> rows of nm."""
    needs, owner = {}, {}
    for obj, rows in members.items():
        module = os.path.basename(obj)[:-2]
        for row in rows:
            if row[-2] == "U":
                needs.setdefault(module, []).append(row[-1])
            elif row[-2] in "TDBR":
                owner[row[-1]] = module
    edges = {}
    for module, names in needs.items():
        for name in names:
            if owner.get(name, module) != module:
                edges.setdefault(module, {}).setdefault(owner[name], []).append(name)
    return edges


def reachable(edges, start):
    seen, todo = set(), [start]
    while todo:
        for other in edges.get(todo.pop(), ()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def check_cycles(symbols):
    folders = {}
    for obj, rows in symbols.items():
        folder = os.path.dirname(os.path.relpath(obj, os.path.join(TOP, "build/release")))
        folders.setdefault(folder, {})[obj] = rows
    wrong = [] if len(folders) > 30 else ["only %d folders are built" % len(folders)]
    for folder, members in sorted(folders.items()):
        edges = calls_between(members)
        reach = {module: reachable(edges, module) for module in edges}
        for a in sorted(m for m in reach if m in reach[m]):
            wrong += ["%s: %s calls %s: %s" % (folder, a, b, " ".join(n)) for b, n in edges[a].items() if a in reach.get(b, ())]
    check("modules of a folder call each other in layers (%d folders)" % len(folders), wrong)


# Functions that no program calls, and who does.
UNCALLED = {
    "a table or a macro names them": "cmd_help attempt_state_parse task_state_parse",
    "tests look through them": "aws_client_http aws_client_signed_n fault_kind_name http_in_flight loop_now_mono_us"
    " private_cluster_pid queue_bytes sched_view_overslept warm_pool_status_name",
    "tests do one step of what the program does in many": "image_decode image_resize source_open_memory",
    "the vectors of the standard": "sigv4_canonical",
    "simulators draw with them": "duration_draw_us",
}


def check_uncalled(symbols):
    """A function for others that no object asks for, and that its own file does not use either."""
    asked, ours = set(), {}
    for path, rows in symbols.items():
        asked |= {row[-1] for row in rows if row[-2] == "U"}
        source = os.path.relpath(path, os.path.join(TOP, "build/release"))[:-2] + ".c"
        ours |= {row[-1]: source for row in rows if row[-2] == "T"}
    known = {name: why for why, names in UNCALLED.items() for name in names.split()}
    text = {path: strip_comments(read(path)) for path in set(ours.values())}
    idle = {n for n, path in ours.items() if n not in asked | {"main"} | set(PLACES_TAKEN) and len(re.findall(r"\b%s\b" % n, text[path])) < 2}
    wrong = ["%s of %s is called by no program" % (n, ours[n]) for n in sorted(idle - set(known))]
    wrong += ["%s is in UNCALLED, and is called or gone" % n for n in sorted(set(known) - idle)]
    check("every function is called by a program, or says who calls it", wrong)


def check_headers(c_files):
    """A C file that begins with a header shows that it compiles alone; those that none begins with are tried here."""
    alone = set()
    for path in c_files:
        first = path.endswith(".c") and not path.startswith("tests/") and re.search(r'^#include (["<])(.+)[">]', read(path), re.M)
        if first and first[1] == '"':
            alone |= {first[2], os.path.join(os.path.dirname(path).partition("/")[2], first[2])}
    flags = subprocess.run(
        ["pkg-config", "--cflags", "libcurl", "jansson", "libmicrohttpd", "libpq"], capture_output=True, text=True
    ).stdout.split()
    wrong = []
    for path in c_files:
        if not path.endswith(".h") or path.startswith("tests/") or path.split("/", 1)[1] in alone:
            continue
        farm = "build/sees/" + os.path.dirname(path).replace("/", "_")
        dirs = ["-Iinclude"] + ([] if path.startswith("include/") else ["-I" + farm, "-Ibuild/gen"])
        run = subprocess.run(
            ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-fsyntax-only", *dirs, *flags, "-x", "c", path],
            cwd=TOP,
            capture_output=True,
            text=True,
        )
        errors = [e for e in run.stderr.splitlines() if "error:" in e]
        if run.returncode != 0:
            wrong.append("%s: %s" % (path, errors[0] if errors else "does not compile"))
    check("every header compiles alone", wrong)


# Headers that a folder must not be able to include, each with one that it can: the second shows that the
# first is refused for its folder and not for something else.
UNSEEN = [
    ("orchestrator/api/handlers", "store/leader/attempts.h", "store/rows/view.h"),
    ("orchestrator/api/handlers", "store/leader/scheduler.h", "store/api/operations.h"),
    ("orchestrator/api/handlers", "controller/controller.h", "api/server/request.h"),
    ("orchestrator/store/api", "store/leader/lease.h", "store/rows/view.h"),
    ("orchestrator/core/failure", "core/spec/spec_parse.h", "core/spec/spec.h"),
]


def check_unseen():
    flags = subprocess.run(["pkg-config", "--cflags", "jansson", "libmicrohttpd", "libpq"], capture_output=True, text=True)
    wrong = []
    for folder, refused, allowed in UNSEEN:
        if not os.path.exists(os.path.join(TOP, "orchestrator", refused)):
            wrong.append("%s is not in the tree" % refused)
        dirs = ["-Iinclude", "-Ibuild/sees/" + folder.replace("/", "_"), "-Ibuild/gen", *flags.stdout.split()]
        for header, compiles in ((refused, False), (allowed, True)):
            run = subprocess.run(
                ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-fsyntax-only", *dirs, "-x", "c", "-"],
                cwd=TOP,
                input='#include "%s"\n' % header,
                text=True,
                capture_output=True,
            )
            if (run.returncode == 0) != compiles:
                wrong.append("%s %s %s" % (folder, "cannot include" if compiles else "can include", header))
    check("a handler that calls a write of the leader does not compile", wrong)
