"""Rules of sql/: what asks PostgreSQL what time it is.

Whoever leads decides by instants that are parameters: droverd's own clock, or one of AWS, whose steps the deep simulation draws. PostgreSQL's
clock, which stands still there, may write down when a row was written. Where it is compared or added to, a step of it decides something,
so each such query is named here with what the step does.
"""
import re

from tidy_base import check, read

CLOCK = r"(?:(?:clock|statement|transaction)_timestamp\(\)|\bnow\(\)|timeofday\(\)|\b(?:CURRENT|LOCAL)_?(?:TIMESTAMP|DATE|TIME)\b)"
# x_at = now(), the same in a CASE or behind coalesce, and defaults of columns.
RECORDS = re.compile(
    r"(?:\b(?:\w+_at|at|since)\s*=\s*(?:CASE\b(?:[^()]|IN \([^()]*\))*?\bTHEN\s+)?(?:coalesce\(\s*[\w.]+,\s*)?|\bDEFAULT )" + CLOCK + r"(?!\s*[-+])", re.I
)
SHOWN = "shown to people; nobody acts by it"
WRITES = "a new row's own time"
EXPIRES = "what expires was written by the same clock: a step ends it earlier or later by as much"
KEPT = "a step deletes old rows earlier or later by as much"
TOLD = "messages to people are early or late by the step; notice_forget ends waits that a clock ahead has made"
ASKS_CLOCK = {
    "api_bill": "which month is the present one, when none is asked for",
    "api_campaign_guidance": SHOWN,
    "api_endpoints": SHOWN,
    "api_filesystems": SHOWN,
    "api_key_get": KEPT,
    "api_key_put": KEPT,
    "api_lease": SHOWN,
    "api_login_begin": EXPIRES,
    "api_login_end": EXPIRES,
    "api_operation_insert": WRITES,
    "api_person_put": EXPIRES,
    "api_session_get": EXPIRES,
    "api_session_new": EXPIRES,
    "api_session_trim": KEPT,
    "api_sessions": EXPIRES,
    "api_source_put": WRITES,
    "api_strays": SHOWN,
    "api_token_change": EXPIRES,
    "api_token_get": EXPIRES,
    "api_token_new": EXPIRES,
    "api_token_used": "once a minute at most: a step writes it once more or not for as long",
    "api_tokens": SHOWN,
    "api_tokens_ended": EXPIRES,
    "delivery_done": TOLD,
    "delivery_take": TOLD,
    "events_expire": KEPT,
    "keys_expire": KEPT,
    "notice_budgets": WRITES,
    "notice_due": TOLD,
    "notice_events": TOLD,
    "notice_forget": KEPT,
    "notice_late": TOLD,
    "notice_stuck_long": TOLD,
    "notice_tell": TOLD,
    "price_list_age": "prices are read once more; what a clock ahead has written does not count",
    "price_list_put": WRITES,
    # Functions of migrations.
    "archive_hindrance": "whether logs of jobs are still read for metrics; of bills, jobs and money it asks no clock",
    "event_day_make": "which day's table is made; events of a day without one have a table of their own",
    "events_maintain": "which days have tables, and which are old",
    "input_listing_json": SHOWN,
    "partition_attach": "how long it waits for others; a step makes it give up early or wait longer",
}


def queries_of(text):
    """(name, SQL) of a file of queries."""
    parts = re.split(r"^-- name: (\w+)$", re.sub(r"(?m)--(?! name: ).*", "", text), flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def functions_of(text):
    """(name, SQL) of what a migration does, each function by its name; the rest is done once, by the name ''."""
    text = re.sub(r"(?m)--.*", "", text)
    made = re.compile(r"\bCREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE) (\w+)(.*?\$(\w*)\$.*?\$\3\$)", re.S)
    return [(m[1], m[2]) for m in made.finditer(text)] + [("", made.sub("", text))]


def asking(named):
    return {name for name, text in named if re.search(CLOCK, RECORDS.sub("", text), re.I)}


def check_sql_clock(files):
    named = []
    for path in sorted(files):
        if path.startswith("sql/queries/") and path.endswith(".sql"):
            named += queries_of(read(path))
        elif path.startswith("sql/migrations/") and path.endswith(".sql"):
            named += functions_of(read(path))
    found = asking(named)
    wrong = ["%s asks PostgreSQL's clock: give it the time as a parameter, or say in ASKS_CLOCK what a step of it does" % (name or "a migration") for name in sorted(found - set(ASKS_CLOCK))]
    wrong += ["%s of ASKS_CLOCK does not ask it" % name for name in sorted(set(ASKS_CLOCK) - found)]
    planted = asking(queries_of(
        "-- name: a\nSELECT 1 FROM attempt WHERE ended_at < now() - interval '1 day'\n-- name: b\nUPDATE x SET ended_at = CASE WHEN $1 THEN clock_timestamp() END\n"
        "-- name: c\nUPDATE x SET due_at = clock_timestamp() + interval '1 s'\n"))
    if planted != {"a", "c"}:
        wrong.append("the planted queries were not told apart: %s" % sorted(planted))
    check("PostgreSQL's clock decides nothing but what is named with a reason", wrong)
