#!/usr/bin/env python3
"""Aim: the rules of form that no compiler keeps hold for every file of the tree.

Method: text rules over the files git knows, symbol rules over the objects of the release build.
Each check prints one TAP line, with every violation as a comment below it. Some are also given a planted fault and
fail when they do not find it: a rule that finds nothing may have looked at nothing.
"""
import ast
import os
import re
import sys

from tidy_base import TOP, check, done, lines_at, read, strip_comments, tree
from tidy_objects import check_collisions, check_cycles, check_globals, check_headers, check_unseen, check_uncalled, objects, symbols_of
from tidy_sql import check_sql_clock

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
FUNCTION_LINES_MAX_IN = {"orchestrator/controller/": 50}
COLUMNS_MAX = 100
MAKEFILE_LINES_MAX = 250
# Tables and web pages: a row or a template is one line, wider than one of C.
WIDE_COLUMNS_MAX = {".def": 160, ".js": 240, ".mjs": 240, ".cjs": 240, ".css": 240}

CORE_COMMON = (
    "aws_outcome base err arena heap rng units str buf hash json position yaml secret_shape setting_value token_bucket retry regex cleanup time_text".split()
)
CORE_SYSTEM = (
    "assert ctype errno float inttypes limits math stdalign stdarg stdbool stddef stdint stdio stdlib string strings".split()
)
# Folder -> prefixes of what it may include with "...", besides headers beside the file itself. The order counts: the
# first that fits. Inside orchestrator/ and worker/ the Makefile's SEES_ lines are the arrows, and the compiler keeps
# them; here is what no include path can say.
ARROWS = [
    ("include/", ["common/"]),
    ("orchestrator/common/", ["common/"]),
    ("orchestrator/core/", ["core/", "worker_protocol.h", "worker_*.def"] + ["common/%s.h" % n for n in CORE_COMMON]),
    ("orchestrator/store/api/", ["store/pg/", "store/rows/", "common/", "queries.h", "core/model.h", "core/*/*.def"]),
    ("orchestrator/store/", ["store/pg/", "store/rows/", "common/", "queries.h", "core/model.h", "core/rows.h", "core/money/ledger.h", "core/metrics/metric_place.h", "core/metrics/gate.h", "core/*/*.def"]),
    ("orchestrator/aws/", ["aws/", "common/", "core/failure/log_line.h", "core/money/price_reading.h"] + ["core/capacity/%s.h" % n for n in ("call_rate", "pool_report", "job_report", "quota_reading", "endpoint_report", "filesystem_report", "invocation_report")]),
    ("orchestrator/oidc/", ["common/"]),
    ("orchestrator/cli/", ["common/", "core/spec/", "core/lowering/", "core/*/*.def"]),
    ("orchestrator/web/", ["common/", "web/"]),
    ("orchestrator/bridge", ["common/"]),
    ("orchestrator/metrics", ["common/", "metrics.def"]),
    ("orchestrator/status", ["common/"]),
    ("worker/local/", ["common/", "local/"]),
    ("worker/", ["common/", "worker_protocol.h", "worker_*.def", "download/", "index/", "copy/", "sample/", "job/", "io/"]),
]
# Warnings of droverd that nothing repeats by itself: each is of one thing that happened, or of one start. All others
# go through log_allow, so that what fails again and again is told ever more seldom.
TOLD_ONCE = set(
    "archive_refused attempt_needs_attention bill_not_corrected breaker_tripped budget_threshold campaign_locked cost_overflow database_waited inputs_alone"
    " job_adopted leader_frozen leadership_lost lease_release_failed login_refusal_not_audited login_refused migration_waits not_booked operation_refused"
    " output_place_unknown parked part_at_its_cap part_hung part_is_not_waiting part_set_aside price_unreadable prices_unreadable private_db_not_stopped"
    " schema_newer slots_corrected stray_deleted stray_ended stray_found stray_stopped token_file_open_to_others token_file_revoked"
    " webhook_given_up webhook_not_written".split()
)
# Library headers and the only folders that may see them.
LIBRARIES = [
    (r"libpq-fe\.h|postgres.*", ["orchestrator/store/pg/"]),
    (r"microhttpd\.h", ["orchestrator/api/server/", "worker/local/http/"]),
    (r"turbojpeg\.h|jpeglib\.h|spng\.h|libdeflate\.h|webp/.*|ares.*\.h|seccomp\.h|duckdb\.h", ["worker/"]),
    (r"curl/.*", ["orchestrator/common/", "worker/"]),
    (r"yaml\.h", ["orchestrator/common/"]),
    (r"cjose/.*", ["orchestrator/oidc/"]),
]
CALLS = [
    (r"\bPQ[a-z]\w*\s*\(", "libpq", ["orchestrator/store/pg/"]),
    (r"\bMHD_\w+\s*\(", "libmicrohttpd", ["orchestrator/api/server/", "worker/local/http/"]),
    (r"struct aws_call(\)| \w+ =) ?\{", "a call of AWS without its row of operation.def: no rate holds it", ["orchestrator/aws/json_call.c", "orchestrator/common/", "worker/copy/"]),
]
BANNED_CALLS = "strcpy strcat sprintf vsprintf strtok gmtime localtime ctime atoi atol atoll gets".split()
BANNED_IN_PRODUCT = "sleep usleep system popen tmpnam".split()
# Put together here, so that this file does not contain what it looks for.
BANNED_WORDS = ["TO" + "DO", "FIX" + "ME", "XX" + "X:", "HA" + "CK:"]
BANNED_PLACES = ["/ho" + "me/", "/Us" + "ers/"]
# COPY ... FROM STDIN cannot be prepared, so it has no place among the named queries.
SQL = re.compile(
    r"^\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|DROP|WITH|SET|LOCK|NOTIFY|VACUUM|TRUNCATE|GRANT)\s+\S"
)

# Words that a stranger has to read twice, and what to write. Not in applied migrations, whose text is fixed.
PLAIN = {
    r"anew": "again",
    r"whoever": "who, the caller, the thread that",
    r"till": "until",
    r"lets go of": "releases",
    r"so many": "the number of",
    r"(?:gives?|gave|given|giving) back": "returns, releases",
    r"(?:it|that|what|which|read|cost) is none\b(?! of)|is none of (?:ours|us|them|those|these)": "is not one, is not ours",
}
PLAIN_PLACES = ("orchestrator/", "worker/", "include/", "sql/queries/", "deploy/", ".github/", "README.md")

def long_functions(path, text):
    most = next((n for folder, n in FUNCTION_LINES_MAX_IN.items() if path.startswith(folder)), FUNCTION_LINES_MAX)
    wrong = []
    start = None
    name = ""
    for i, line in lines_at(strip_comments(text)):
        if line == "{":
            start = i
        elif line.startswith("}") and start is not None:
            if i - start + 1 > most:
                wrong.append("%s:%d %s is %d lines" % (path, start, name, i - start + 1))
            start = None
        elif start is None:
            m = re.match(r"[A-Za-z_].*?(\w+)\(", line)
            name = m.group(1) if m else name
    return wrong


def check_sizes(c_files, wide_files, scripts):
    check(
        "files of C, tables, web pages and scripts have at most %d lines" % FILE_LINES_MAX,
        ["%s has %d" % (p, n) for p, n in ((p, read(p).count("\n")) for p in c_files + wide_files + scripts) if n > FILE_LINES_MAX],
    )
    wrong = []
    for path in c_files:
        wrong += long_functions(path, read(path))
    planted = "void f(void)\n{\n%s}\n" % ("    g();\n" * 49)
    if len(long_functions("orchestrator/controller/planted.c", planted)) != 1 or long_functions("worker/planted.c", planted):
        wrong.append("the planted function of 51 lines was not found")
    check("functions have at most %d lines, in controller/ %d" % (FUNCTION_LINES_MAX, FUNCTION_LINES_MAX_IN["orchestrator/controller/"]), wrong)
    wrong = []
    for path in c_files:
        wrong += ["%s:%d is %d wide" % (path, i, len(t)) for i, t in lines_at(read(path)) if len(t) > COLUMNS_MAX]
    check("lines of C have at most %d columns" % COLUMNS_MAX, wrong)
    wrong = [] if len(wide_files) > 30 else ["only %d tables and pages are in the tree" % len(wide_files)]
    for path in wide_files:
        most = WIDE_COLUMNS_MAX[os.path.splitext(path)[1]]
        wrong += ["%s:%d is %d wide" % (path, i, len(t)) for i, t in lines_at(read(path)) if len(t) > most]
    check("lines of tables and web pages have at most %s columns" % "/".join(map(str, sorted(set(WIDE_COLUMNS_MAX.values())))), wrong)
    n = read("Makefile").count("\n")
    check("the Makefile has at most %d lines" % MAKEFILE_LINES_MAX, ["%d" % n] if n > MAKEFILE_LINES_MAX else [])


def check_space(files):
    wrong = []
    for path in files:
        text = read(path)
        if not text.endswith("\n") or "\r" in text:
            wrong.append("%s: no newline at the end, or a carriage return" % path)
        wrong += ["%s:%d tab or trailing space" % (path, i) for i, t in lines_at(text) if "\t" in t or t != t.rstrip()]
    check("no tabs, trailing spaces or missing newlines in C, tables and web pages", wrong)


def check_beginnings(c_files):
    wrong = []
    for path in c_files:
        text = read(path)
        if not text.startswith("/*"):
            wrong.append("%s does not begin with a comment that says what it is" % path)
        if path.endswith(".h") and "\n#pragma once\n" not in text:
            wrong.append("%s has no #pragma once" % path)
    check("every C file begins by saying what it is", wrong)


def arrow_of(path):
    for folder, allowed in ARROWS:
        if path.startswith(folder):
            return allowed
    return None


def fits(name, allowed):
    """A prefix, or with a star a pattern whose star stays within one folder."""
    if "*" not in allowed:
        return name.startswith(allowed)
    return re.fullmatch(re.escape(allowed).replace(r"\*", "[^/]+"), name) is not None


def check_arrows(c_files):
    wrong = []
    for path in c_files:
        allowed = arrow_of(path)
        if allowed is None:
            continue
        for i, line in lines_at(strip_comments(read(path), strings=False)):
            m = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
            if not m:
                continue
            name = m.group(2)
            beside = "/" not in name and os.path.exists(os.path.join(TOP, os.path.dirname(path), name))
            if m.group(1) == '"' and not beside and not any(fits(name, a) for a in allowed):
                wrong.append("%s:%d includes %s" % (path, i, name))
            if m.group(1) == "<":
                for pattern, folders in LIBRARIES:
                    if re.fullmatch(pattern, name) and not any(path.startswith(f) for f in folders):
                        wrong.append("%s:%d includes <%s>" % (path, i, name))
                if path.startswith("orchestrator/core/") and name[:-2] not in CORE_SYSTEM + ["jansson"]:
                    wrong.append("%s:%d includes <%s>: the core is pure" % (path, i, name))
    check("includes follow the arrows between folders", wrong)


# Test sources that are linked in place of a module and define its opaque structs a second time.
TAGS_STAND_IN = ("tests/simulation/deep/deep_calls_private.h", "tests/simulation/deep/deep_loop.c")
TAG = re.compile(r"\b(?:struct|enum|union)\s+(\w+)\s*\{")


def check_tags(c_files):
    """Each tag means one thing in the product, and no test gives it another. Tests are programs of their own, so two
    of them may use one tag of theirs differently."""
    places = {}
    for path in c_files:
        if path in TAGS_STAND_IN:
            continue
        text = strip_comments(read(path))
        for m in TAG.finditer(text):
            places.setdefault(m.group(1), []).append("%s:%d" % (path, text.count("\n", 0, m.start()) + 1))
    wrong = []
    for tag, where in sorted(places.items()):
        clash = len(where) > 1 and not all(w.startswith("tests/") for w in where)
        if clash:
            wrong.append("%s: %s" % (tag, ", ".join(where)))
    check("a struct, enum or union tag means one thing", wrong)


# Names with more than one meaning or place, each with why it stays so.
CONSTANTS_ALLOWED = {}  # name: why it has two places
ENUMERATOR = re.compile(r"(?:^|,)\s*([A-Z][A-Z0-9_]+)\s*(?==|,|$)")


def program_of(path):
    """drover-local plays AWS: what it says twice of AWS' limits is said by the other side."""
    return "worker/local" if path.startswith("worker/local/") else path.split("/")[0]


def constants_of(path, text):
    """(name, value without spaces and brackets); enumerators have the value that they are one."""
    text = strip_comments(text, strings=False)
    found = re.findall(r"^ *# *define +([A-Z][A-Z0-9_]+) +(\S.*)$", text, re.M)
    for body in re.findall(r"\benum\b\s*\w*\s*\{([^}]*)\}", text):
        found += [(name, "enum") for name in ENUMERATOR.findall(body)]
    return {(name, re.sub(r"[\s()]", "", value)) for name, value in found}


def constants_twice(texts):
    """A name of a header has no other definition in its program, one of two files of a folder has no second meaning
    there, and none has the same value in two places. Names that two folders keep to themselves with different values
    are different names: no file sees both."""
    places = {}
    for path, text in texts.items():
        for name, value in constants_of(path, text):
            places.setdefault(name, []).append((path, value))
    wrong = {}
    for name, rows in places.items():
        for i, (a, a_value) in enumerate(rows):
            for b, b_value in rows[i + 1 :]:
                one = program_of(a) == program_of(b) or "include" in (program_of(a), program_of(b))
                seen = a.endswith(".h") or b.endswith(".h") or os.path.dirname(a) == os.path.dirname(b)
                if a != b and one and (seen or a_value == b_value):
                    wrong.setdefault(name, set()).update((a, b))
    return wrong


def check_constants(c_files):
    found = constants_twice({p: read(p) for p in c_files if not p.startswith("tests/")})
    wrong = ["%s: %s" % (name, ", ".join(sorted(where))) for name, where in sorted(found.items()) if name not in CONSTANTS_ALLOWED]
    wrong += ["%s is in CONSTANTS_ALLOWED, and is defined once" % name for name in CONSTANTS_ALLOWED if name not in found]
    planted = {
        "worker/a/one.c": "#define SAME_MAX (4 * 2)\n#define HERE_MAX 1\n#define FAR_MAX 1\n",
        "worker/a/two.c": "#define HERE_MAX 2\n",
        "worker/b/two.c": "#define SAME_MAX 4 * 2 /* why */\n#define FAR_MAX 2\n#define SEEN_MAX 3\n",
        "include/two.h": "enum two { TWO_ONE, SEEN_MAX };\n",
        "worker/local/two.c": "#define HERE_MAX 1\n",
    }
    if set(constants_twice(planted)) != {"SAME_MAX", "HERE_MAX", "SEEN_MAX"}:
        wrong.append("of the planted constants was found: %s" % sorted(constants_twice(planted)))
    check("a constant is defined once", wrong)


# Where rows of the leader's state may be written, besides its setters, and why.
ROWS_OWNER = "orchestrator/core/leader/leader_state.c"
WRITES_ROW = "a row that is being planned; the setter takes its state when the writes are applied"
ROWS_WRITTEN = {
    "orchestrator/core/leader/endpoint_life.c": {"r->state": WRITES_ROW, "e->row": "after the setter"},
    "orchestrator/core/leader/endpoint_list.c": {"e->row": "taken at a read"},
    "orchestrator/core/leader/endpoint_idle.c": {"r->state": WRITES_ROW},
    "orchestrator/core/leader/endpoint_extend.c": {"e->row": "a longer time to live; its state is as before"},
    "orchestrator/core/leader/filesystem_life.c": {"r->state": WRITES_ROW, "f->row": "after the setter"},
    "orchestrator/core/leader/filesystem_list.c": {"f->row": "taken at a read"},
    "orchestrator/core/leader/operations.c": {"row.state": "a copy, by which a held part is put into its queue"},
    "orchestrator/core/leader/resource_strays.c": {"r->row": "a resource of nobody, which has no edges"},
    "orchestrator/core/leader/rows_read.c": {
        "ls->row": "taken at a read",
        "ls->held": "a queue of parts",
        "ls->s.held": "what the database counted, taken at a read",
    },
    "orchestrator/core/leader/sched_view.c": {
        name: "the scheduler's view, made for each pass" for name in ("f->account.total[m].held", "f->account.total[s->market].held", "sc->held", "sp->held")
    },
    "orchestrator/controller/object_listing.c": {"r->state": "a range of a listing"},
    "orchestrator/controller/task_load.c": {"k->held": "a list of parts that are being read"},
}
WRITTEN = re.compile(r"(\+\+|--)?\b(\w+(?:(?:->|\.)\w+|\[[^\]\n]*\])+)\s*(=(?!=)|[-+*/|&^]=|\+\+|--)?")


def rows_written(path, text):
    """[(line, what)] of writes to a state, to counts of parts, to instances held or to a whole row."""
    found = []
    for i, line in lines_at(strip_comments(text)):
        for before, left, after in WRITTEN.findall(line):
            if (before or after) and re.search(r"(?:->|\.)(?:state|held|row|counts\[[^\]]*\])$", left):
                found.append((i, left))
    return found


def check_rows(c_files):
    wrong = []
    used = set()
    for path in c_files:
        if path.startswith(("orchestrator/core/leader/", "orchestrator/controller/")) and path != ROWS_OWNER:
            for i, left in rows_written(path, read(path)):
                used.add((path, left))
                if left not in ROWS_WRITTEN.get(path, {}):
                    wrong.append("%s:%d writes %s" % (path, i, left))
    wrong += ["%s: %s is in ROWS_WRITTEN, and is not written" % (p, n) for p, names in ROWS_WRITTEN.items() for n in names if (p, n) not in used]
    planted = "    a->row.state = ATTEMPT_LOST;\n    ls->row.counts[TASK_HELD]++;\n    --s->s.held;\n    if (a->row.state == to) {\n"
    if [left for _, left in rows_written("planted.c", planted)] != ["a->row.state", "ls->row.counts[TASK_HELD]", "s->s.held"]:
        wrong.append("the planted writes were not found")
    check("states, counts and held instances of the leader are written by their setters", wrong)


def check_calls(c_files):
    product = [p for p in c_files if not p.startswith("tests/")]
    wrong = []
    for path in product:
        for i, line in lines_at(strip_comments(read(path))):
            for pattern, what, folders in CALLS:
                if re.search(pattern, line) and not any(path.startswith(f) for f in folders):
                    wrong.append("%s:%d uses %s" % (path, i, what))
    check("libpq, libmicrohttpd and calls of AWS by hand are used in their folders only", wrong)
    wrong = []
    pattern = re.compile(r"\b(%s)\s*\(" % "|".join(BANNED_CALLS))
    strict = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(BANNED_IN_PRODUCT))
    for path in c_files:
        if path == "include/common/banned.h":
            continue
        for i, line in lines_at(strip_comments(read(path))):
            m = pattern.search(line) or (not path.startswith("tests/") and strict.search(line))
            if m:
                wrong.append("%s:%d calls %s" % (path, i, m.group(1)))
    check("no banned calls", wrong)
    dated = ["orchestrator/controller/%s.c" % n for n in ("endpoint_life", "endpoint_use", "filesystem_life", "resource_strays")]
    check("what AWS bills by its clock is dated by that, not by the host's",
          ["%s:%d" % (p, i) for p in dated for i, line in lines_at(strip_comments(read(p))) if re.search(r"\bleader_now\(", line)])


def check_headings(c_files):
    wrong = []
    for path in c_files:
        wrong += ["%s:%d" % (path, i) for i, line in lines_at(read(path)) if line.startswith("/* ---")]
    check("no headings between functions: a file that needs them wants to be two", wrong)


def check_warnings(c_files):
    wrong, told = [], set()
    for path in [p for p in c_files if p.startswith("orchestrator/") and not p.startswith("orchestrator/cli/")]:
        lines = strip_comments(read(path), strings=False).split("\n")
        for i, line in enumerate(lines):
            m = re.search(r'\blog_event\(LOG_(?:WARN|ERROR),[^",]*"(\w+)"', line + (lines + [""])[i + 1])
            if m and "log_event(" in line and "log_allow(" not in " ".join(lines[max(0, i - 3) : i + 1]):
                told.add(m.group(1))
                wrong += [] if m.group(1) in TOLD_ONCE else ["%s:%d %s" % (path, i + 1, m.group(1))]
    wrong += ["%s is told once and not there" % word for word in sorted(TOLD_ONCE - told)]
    check("a warning that repeats is told ever more seldom (log_allow)", wrong)


def check_words(files):
    wrong = []
    for path in files:
        if path.endswith("package-lock.json") or path.startswith(("tests/fuzz/corpus/", "tests/vectors/")):
            continue
        try:
            text = read(path)
        except UnicodeDecodeError:
            continue
        for i, line in lines_at(text):
            for word in BANNED_WORDS + BANNED_PLACES:
                if word in line:
                    wrong.append("%s:%d has %s" % (path, i, word))
    check("no open ends, no places of one machine", wrong)


def unplain(text):
    """[(line, what to write)]"""
    found = [(text.count("\n", 0, m.start()) + 1, to) for word, to in PLAIN.items() for m in re.finditer(r"\b(?:%s)\b" % word, text, re.I)]
    return sorted(found)


def questions(text):
    """Lines of a header's comments that ask instead of stating."""
    return [i for i, line in lines_at(text) if re.match(r"(?:/\*| \*) .*[\w)]\?(?: [A-Z]|$| \*/)", line)]


def check_plain(files):
    wrong = []
    for path in files:
        if path.startswith(PLAIN_PLACES) and path.endswith(".h"):
            wrong += ["%s:%d: state what the question asks" % (path, i) for i in questions(read(path))]
        if path.startswith(PLAIN_PLACES) and re.search(r"\.(c|h|def|js|css|sql|md|txt|sh)$", path):
            wrong += ["%s:%d: write '%s'" % (path, i, to) for i, to in unplain(read(path))]
    if len(unplain("It begins anew.\nWhoever leads waits till it lets go of it.\nAn answer that is none, and is none of ours.\nSo many are given back; a pool gives back two.\n")) != 9:
        wrong.append("the planted words were not found")
    if questions("/* Is it due? */\n/* What for?\n * May it? Not now.\n * a * or ? of a name */\n") != [1, 2, 3]:
        wrong.append("the planted questions were not found")
    check("comments, messages and pages have plain words", wrong)


SLEEP_S = 0.5


def long_sleeps(text):
    """Lines that sleep a fixed time of SLEEP_S or more and do not say why."""
    lines = text.split("\n")
    calls = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and ast.unparse(n.func) in ("time.sleep", "sleep")]
    fixed = [n for n in calls if n.args and isinstance(n.args[0], ast.Constant) and n.args[0].value >= SLEEP_S]
    return [n.lineno for n in fixed if "#" not in lines[n.end_lineno - 1][n.end_col_offset :]]


def check_sleeps(files):
    wrong = []
    for path in files:
        if path.startswith("tests/") and path.endswith(".py") and "sleep(" in read(path):
            wrong += ["%s:%d" % (path, i) for i in long_sleeps(read(path))]
    if long_sleeps("time.sleep(1)\ntime.sleep(2)  # why\ntime.sleep(0.1)\nsleep(3)\n'time.sleep(4)'\n") != [1, 4]:
        wrong.append("the planted sleeps were not found")
    check("a test that sleeps %s s or more says why it cannot wait for a condition" % SLEEP_S, wrong)


def check_sql(c_files):
    wrong = []
    for path in c_files:
        if not path.startswith("orchestrator/"):
            continue
        text = strip_comments(read(path), strings=False)
        for m in re.finditer(r'"((?:\\.|[^"\\\n])*)"', text):
            if SQL.match(m.group(1)):
                wrong.append("%s:%d %.60s" % (path, text.count("\n", 0, m.start()) + 1, m.group(1)))
    check("SQL is in sql/ (BEGIN, COMMIT, ROLLBACK, LISTEN apart)", wrong)


def hunk_fits(hunk, text, fuzz):
    """As patch -F: the lines before, or all but some of the lines round the change, stand somewhere in the text."""
    kept = [line[1:] for line in hunk if line[:1] != "+"]
    before = next(i for i, line in enumerate(hunk) if line[:1] in "+-")
    after = next(i for i, line in enumerate(reversed(hunk)) if line[:1] in "+-")
    for f in range(fuzz + 1):
        top, end = (max(0, f + n - max(before, after)) for n in (before, after))
        if "\n" + "".join(line + "\n" for line in kept[top : len(kept) - end]) in text:
            return True
    return False


def patch_fits(path, fuzz):
    for part in re.split(r"^--- ", read(path), flags=re.M)[1:]:
        name = re.search(r"^\+\+\+ b?/?(\S+)", part, re.M)[1]
        text = "\n" + read(name) if os.path.exists(os.path.join(TOP, name)) else ""
        hunks = [re.findall(r"^[ +-].*", h, re.M) for h in re.split(r"^@@ .*\n", part, flags=re.M)[1:]]
        if not hunks or not all(hunk_fits(h, text, fuzz) for h in hunks):
            return False
    return True


def check_patches(files):
    wrong = []
    for path in files:
        if path.endswith(".patch"):
            fuzz = 1 if path.startswith("tests/unit/core/leader/") else 2  # as the scripts that apply them
            if not patch_fits(path, fuzz):
                wrong.append("%s does not apply" % path)
    known = {os.path.basename(path)[: -len(".patch")] for path in files if path.endswith(".patch")}
    for path in files:
        if re.search(r"/mutants/\w+\.txt$", path):
            wrong += ["%s: no patch %s" % (path, name) for name in read(path).splitlines() if name[:1] != "#" and name not in known]
    check("every planted bug fits the code", wrong)


def main():
    files = tree()
    c_files = [p for p in files if re.search(r"\.[ch]$", p)]
    wide_files = [p for p in files if os.path.splitext(p)[1] in WIDE_COLUMNS_MAX]
    objs = objects()
    check_sizes(c_files, wide_files, [p for p in files if p.endswith((".py", ".sh"))])
    check_space(c_files + wide_files)
    check_beginnings(c_files)
    check_arrows(c_files)
    check_tags(c_files)
    check_constants(c_files)
    check_rows(c_files)
    check_calls(c_files)
    check_headings(c_files)
    check_warnings(c_files)
    check_words(files)
    check_plain(files)
    check_sleeps(files)
    check_sql(c_files)
    check_sql_clock(files)
    check_globals(objs)
    check_collisions(objs)
    symbols = symbols_of(objs)
    check_cycles(symbols)
    check_uncalled(symbols)
    check_headers(c_files)
    check_unseen()
    check_patches(files)
    sys.exit(done())


main()
