/* Rows with figures, times and words that no droverd writes, yet the checks of sql/ let through: of
 * slots, quotas, prices, money and the lease, which all campaigns share, and of pools, endpoints,
 * file systems, series, listings, operations, promises and attempts; in some worlds (`stored`) of
 * the list of prices, what is parked, what an undo needs, points of series and archives. People
 * mend them later, and start droverd anew when what they have mended is read once only. What must
 * hold (I18): somebody leads, nobody waits for the row of another, and all comes to its end with
 * the right sums. */
#include "deep.h"
#include "store/api/campaigns.h"
#include "store/api/operations.h"
#include "store/api/parked.h"
#include "store/pg/tx.h"
#include <stdio.h>

#define BAD_N            4
#define FIRST_N          82 /* of the rows below; the others are in worlds with `stored` */
#define RETRIED_AT       (FIRST_N + 4)
#define RETRIED_N        8
#define ARCHIVES_N       4 /* the last of them: of what is being archived */
#define UNDO_MOST_S      240
#define STORED_TRIES     6
#define LATE_US          (4 * HOUR) /* of the calm: none comes later */
#define LOOK_US          (10 * MINUTE)
#define LEADERLESS_LOOKS 6
#define LEFT_MAX_US      (60 * HOUR) /* of the calm: by then everybody else has ended */
#define LATELY_US        (70 * MINUTE)
#define TAKEOVER_TRIES   1800 /* seconds: people start droverd anew no more often */
#define MOST             "9223372036854775807"
#define NEARLY           "9223372036854770000"
#define LEAST            "-9223372036854775808"
#define INT_MOST         "2147483647"
#define LATEST           "infinity"
#define EARLIEST         "-infinity"

enum figure_kind {
    WRITTEN, /* becomes as it was, unless droverd has written it since */
    SUMMED,  /* droverd adds to it meanwhile: the difference is taken away */
    LOWERED, /* a droverd that takes over counts it anew */
};
enum figure_flags {
    SPOILS = 1, /* its sums cannot be judged meanwhile */
    STAYS = 2   /* it may be left until the others have ended */
};

#define OF_SERIES "(SELECT s.campaign_id FROM metric_series s WHERE s.id = series_id)"

static const char gone[] = "gone"; /* in place of a value: the whole row is deleted */

/* owner: its campaign; NULL: all share it. */
static const struct figure_table {
    const char *name, *key, *owner;
} slots = {"slots", "instance_type || ' ' || market", NULL},
  quota = {"quota", "instance_type || ' ' || market", NULL},
  account_quota = {"account_quota", "kind", NULL}, price = {"price", "instance_type", NULL},
  lease = {"lease", "one", NULL}, money_of_all = {"money", "level || ' ' || ref_id", NULL},
  pool = {"pool", "id", "campaign_id"}, endpoint = {"endpoint", "id", "campaign_id"},
  filesystem = {"filesystem", "id", "campaign_id"}, operation = {"operation", "id", "campaign_id"},
  change = {"task_change", "task_id", "campaign_id"},
  failure = {"task_failure", "task_id", "campaign_id"}, stray = {"stray", "name", NULL},
  setting = {"setting", "name", NULL},
  slot_limit = {"slot_limit", "instance_type || ' ' || market", NULL},
  project = {"project", "id", NULL}, listing = {"input_listing", "stage_id", "campaign_id"},
  promise = {"promise", "stage_id", "campaign_id"}, attempt = {"attempt", "id", "campaign_id"},
  task_run = {"task_run", "id", "campaign_id"}, campaign = {"campaign", "id", "id"},
  campaign_run = {"campaign_run", "campaign_id", "campaign_id"},
  stage_run = {"stage_run", "stage_id", "campaign_id"},
  money = {"money", "level || ' ' || ref_id", "ref_id"},
  cap = {"cap", "level || ' ' || ref_id", "ref_id"},
  series = {"metric_series", "id", "campaign_id"},
  source = {"metric_source", "attempt_id",
            "(SELECT campaign_id FROM attempt WHERE id = attempt_id)"},
  price_list = {"price_list", "instance_type", NULL},
  parked = {"parked", "kind || ' ' || ref_id", "campaign_id"},
  retried = {"task_retried", "task_id", "campaign_id"},
  retried_change = {"task_retried", "task_id", "campaign_id"},
  point = {"metric_point", "series_id || ' ' || seq", OF_SERIES},
  bucket = {"metric_bucket", "series_id || ' ' || width || ' ' || bucket", OF_SERIES},
  archive = {"archive", "campaign_id", "campaign_id"};

static const struct figure_row {
    const struct figure_table *table;
    const char *column, *type, *where;
    enum figure_kind kind;
    int flags;
    const char *bad[BAD_N]; /* the first NULL ends them */
} rows[] = {
    {&slots, "held", "bigint", "true", SUMMED, SPOILS, {MOST, NEARLY}},
    {&slots, "warm_idle", "bigint", "true", SUMMED, SPOILS, {MOST, NEARLY}},
    {&slots, "held", "bigint", "held > 0", LOWERED, SPOILS, {"0", gone}},
    {&slots, "warm_idle", "bigint", "warm_idle > 0", LOWERED, SPOILS, {"0", gone}},
    {&slots, "foreign_n", "bigint", "true", WRITTEN, 0, {MOST, NEARLY}},
    {&slots, "foreign_us", "bigint", "true", WRITTEN, 0, {MOST}},
    {&slots, "refused_limit", "bigint", "true", WRITTEN, 0, {MOST, "0"}},
    {&quota, "limit_n", "bigint", "true", WRITTEN, 0, {MOST, "0"}},
    {&account_quota, "limit_n", "bigint", "true", WRITTEN, 0, {MOST, "0"}},
    {&price, "musd_per_hour", "bigint", "true", WRITTEN, 0, {MOST, NEARLY}},
    {&slot_limit, "limit_n", "bigint", "true", WRITTEN, SPOILS, {MOST}},
    {&setting, "value", "bigint", "true", WRITTEN, 0, {MOST}},
    {&project, "parts_limit", "int", "name <> 'default'", WRITTEN, 0, {INT_MOST}},
    {&project, "weight", "int", "name <> 'default'", WRITTEN, 0, {"10000", "1"}},
    {&stray, "price_musd_per_hour", "bigint", "holds", WRITTEN, SPOILS, {MOST}},
    {&stray, "reserved_musd", "bigint", "holds", WRITTEN, SPOILS, {MOST}},
    {&stray, "instances", "int", "holds", WRITTEN, SPOILS, {INT_MOST}},
    {&stray, "task_id", "bigint", "holds", WRITTEN, 0, {"-1", MOST}},
    {&stray, "created_at", "timestamptz", "holds", WRITTEN, 0, {LATEST, EARLIEST}},
    {&lease, "length_us", "bigint", "true", WRITTEN, 0, {MOST}},
    {&lease, "renewals", "bigint", "true", WRITTEN, 0, {MOST, LEAST}},
    {&money_of_all, "spent_musd", "bigint", "level = 'global'", SUMMED, SPOILS, {NEARLY}},
    {&money_of_all, "reserved_musd", "bigint", "level = 'project'", SUMMED, SPOILS, {NEARLY}},
    {&pool, "keep_alive_s", "bigint", "ended_at IS NULL", WRITTEN, STAYS, {MOST}},
    {&pool, "expires_at", "timestamptz", "state = 'available'", WRITTEN, STAYS, {LATEST, EARLIEST}},
    {&pool, "available_at", "timestamptz", "state = 'available'", WRITTEN, 0, {LATEST, EARLIEST}},
    {&pool, "instances", "int", "ended_at IS NULL", WRITTEN, SPOILS, {INT_MOST}},
    {&pool, "campaign_id", "bigint", "ended_at IS NULL", WRITTEN, SPOILS, {"999999", "-1"}},
    {&endpoint, "ttl_s", "bigint", "ended_at IS NULL", WRITTEN, 0, {MOST}},
    {&endpoint, "idle_s", "bigint", "ended_at IS NULL", WRITTEN, 0, {MOST}},
    {&endpoint, "extend_asked", "timestamptz", "ended_at IS NULL", WRITTEN, 0, {LATEST, EARLIEST}},
    {&endpoint, "created_at", "timestamptz", "ended_at IS NULL", WRITTEN, 0, {LATEST, EARLIEST}},
    {&endpoint, "intended_at", "timestamptz", "ended_at IS NULL", WRITTEN, 0, {LATEST, EARLIEST}},
    {&filesystem, "ttl_s", "bigint", "ended_at IS NULL", WRITTEN, 0, {MOST}},
    {&filesystem, "size_gib", "bigint", "ended_at IS NULL", WRITTEN, 0, {MOST}},
    {&filesystem, "deployment", "text", "ended_at IS NULL", WRITTEN, 0, {"", "NEWER_3"}},
    {&filesystem, "intended_at", "timestamptz", "ended_at IS NULL", WRITTEN, 0, {LATEST, EARLIEST}},
    {&filesystem, "created_at", "timestamptz", "ended_at IS NULL", WRITTEN, 0, {LATEST, EARLIEST}},
    {&source, "step", "bigint", "true", WRITTEN, STAYS, {MOST, LEAST}},
    {&series, "points", "bigint", "true", SUMMED, STAYS, {MOST}},
    {&listing, "pages", "bigint", "state = 'running'", SUMMED, STAYS, {MOST}},
    {&listing, "objects", "bigint", "state = 'running'", SUMMED, STAYS, {MOST}},
    {&operation,
     "changes",
     "jsonb",
     "state IN ('accepted', 'running')",
     WRITTEN,
     STAYS,
     {"[7]", "{\"volume_gb\": -1}", "{\"instance_type\": 7}", "{\"volume_gb\": 99999999999}"}},
    {&operation, "done", "bigint", "state IN ('accepted', 'running')", SUMMED, STAYS, {MOST}},
    {&promise, "instances", "int", "true", WRITTEN, 0, {INT_MOST}},
    {&promise, "task_id", "bigint", "true", WRITTEN, 0, {"-1", MOST}},
    {&promise, "since_at", "timestamptz", "true", WRITTEN, 0, {LATEST, EARLIEST}},
    {&promise, "promised_at", "timestamptz", "true", WRITTEN, 0, {LATEST, EARLIEST}},
    {&attempt, "started_at", "timestamptz", "state < 8", WRITTEN, 0, {LATEST, EARLIEST}},
    {&attempt, "created_at", "timestamptz", "state < 8", WRITTEN, 0, {LATEST, EARLIEST}},
    {&attempt, "intended_at", "timestamptz", "state < 8", WRITTEN, 0, {LATEST, EARLIEST}},
    {&attempt, "max_runtime_s", "bigint", "state < 8", WRITTEN, 0, {MOST, "-1"}},
    {&attempt, "keep_alive_s", "bigint", "state < 8", WRITTEN, 0, {MOST}},
    {&attempt, "instance_type_i", "int", "state < 8", WRITTEN, 0, {INT_MOST}},
    {&attempt, "subnet_i", "int", "state < 8", WRITTEN, 0, {INT_MOST}},
    {&attempt, "volume_gb", "int", "state < 8", WRITTEN, 0, {INT_MOST, "-1"}},
    {&attempt, "cost_musd", "bigint", "state < 8", SUMMED, SPOILS, {MOST}},
    {&attempt,
     "phases",
     "bigint[]",
     "settled AND estimated AND NOT bill_given_up",
     WRITTEN,
     STAYS,
     {"{NULL,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}",
      "{0," MOST ",0,0," MOST ",0,0,0,0,0,0,0,0,0,0,0,0,0}"}},
    {&change, "instance_type_i", "int", "true", WRITTEN, STAYS, {INT_MOST, "-1"}},
    {&change, "volume_gb", "int", "true", WRITTEN, 0, {INT_MOST, "-1"}},
    {&change, "max_runtime_s", "bigint", "true", WRITTEN, 0, {MOST, LEAST}},
    {&change, "same", "int", "true", WRITTEN, STAYS, {INT_MOST, "-1"}},
    {&failure, "cause", "smallint", "true", WRITTEN, STAYS, {"32767", "-1"}},
    {&failure, "lost_musd", "bigint", "true", SUMMED, STAYS, {MOST}},
    {&failure, "seq", "int", "true", WRITTEN, STAYS, {INT_MOST, "-1"}},
    {&campaign_run,
     "state",
     "text",
     "state NOT IN ('succeeded', 'failed', 'cancelled')",
     WRITTEN,
     0,
     {"planned", "draining", "held"}},
    {&stage_run, "state", "text", "state = 'running'", WRITTEN, 0, {"blocked", "held"}},
    {&series, "last_value", "float8", "true", WRITTEN, STAYS, {"NaN"}},
    {&endpoint, "price_musd_per_hour", "bigint", "ended_at IS NULL", WRITTEN, SPOILS, {MOST}},
    {&endpoint, "instances", "int", "ended_at IS NULL", WRITTEN, SPOILS, {INT_MOST}},
    {&filesystem, "price_musd_per_gb_month", "bigint", "ended_at IS NULL", WRITTEN, SPOILS, {MOST}},
    {&task_run,
     "not_before_us",
     "bigint",
     "state = 0",
     WRITTEN,
     0,
     {MOST, LEAST, "4000000000000000"}},
    {&task_run, "names", "smallint", "state IN (0, 1)", SUMMED, 0, {"32767"}},
    {&campaign, "nonce", "text", "true", WRITTEN, STAYS, {" ", "x/y", "'"}},
    {&cap,
     "warn_at_ppm",
     "bigint[]",
     "level = 'campaign'",
     WRITTEN,
     STAYS,
     {"{NULL}", "{" MOST "}"}},
    {&money, "warned_ppm", "bigint", "level = 'campaign'", WRITTEN, STAYS, {MOST, "-1"}},
    {&money, "seconds", "bigint", "level = 'campaign'", SUMMED, SPOILS, {NEARLY}},
    {&stage_run, "breaker_since", "bigint", "true", WRITTEN, STAYS, {MOST, "-1"}},
    {&stage_run, "resumes_taken", "int", "true", WRITTEN, 0, {INT_MOST, "-2147483648"}},
    {&stage_run, "wait_reason", "text", "true", WRITTEN, STAYS, {"", "cosmic"}},
    {&campaign_run, "started_at", "timestamptz", "true", WRITTEN, STAYS, {LATEST, EARLIEST}},
    {&campaign_run, "taken_version", "bigint", "true", WRITTEN, STAYS, {MOST, "-1"}},
    {&price_list, "musd", "bigint", "true", WRITTEN, 0, {MOST, NEARLY}},
    {&price_list, "read_at", "timestamptz", "true", WRITTEN, STAYS, {LATEST, EARLIEST}},
    {&parked, "times", "int", "true", WRITTEN, 0, {INT_MOST, "-1"}},
    {&parked, "campaign_id", "bigint", "true", WRITTEN, 0, {"-1", MOST}},
    {&retried, "cause", "smallint", "true", WRITTEN, STAYS, {"32767", "-1"}},
    {&retried, "lost_musd", "bigint", "true", WRITTEN, STAYS, {MOST}},
    {&retried, "at", "timestamptz", "true", WRITTEN, STAYS, {LATEST, EARLIEST}},
    {&retried_change, "instance_type_i", "int", "changed", WRITTEN, STAYS, {INT_MOST, "-1"}},
    {&retried_change, "volume_gb", "int", "changed", WRITTEN, 0, {INT_MOST, "-1"}},
    {&retried_change, "max_runtime_s", "bigint", "changed", WRITTEN, 0, {MOST, LEAST}},
    {&retried_change, "same", "int", "changed", WRITTEN, STAYS, {INT_MOST, "-1"}},
    {&retried_change,
     "cause_tries",
     "jsonb",
     "changed",
     WRITTEN,
     STAYS,
     {"[7]", "{\"cosmic\": 1}", "{\"user_code\": -1}"}},
    {&point, "value", "float8", "true", WRITTEN, STAYS, {"NaN", "infinity"}},
    {&point, "at_us", "bigint", "true", WRITTEN, STAYS, {MOST, LEAST}},
    {&bucket, "n", "bigint", "true", SUMMED, STAYS, {MOST}},
    {&bucket, "sum_value", "float8", "true", WRITTEN, STAYS, {"NaN", "1e308"}},
    {&bucket, "last_us", "bigint", "true", WRITTEN, STAYS, {MOST, LEAST}},
    {&series, "points", "bigint", "points > 0", WRITTEN, STAYS, {"0"}},
    {&archive, "phase", "smallint", "archived_at IS NULL", WRITTEN, 0, {"32767"}},
    {&archive, "attempts", "bigint", "archived_at IS NULL", SUMMED, 0, {MOST}},
    {&archive, "attempts", "bigint", "archived_at IS NULL", WRITTEN, 0, {LEAST}},
    {&archive,
     "newest_intent",
     "timestamptz",
     "archived_at IS NULL",
     WRITTEN,
     0,
     {LATEST, EARLIEST}},
};

static bool PRINTF(4, 5)
    say(const char *ref, const char *value, PGresult **ret, const char *fmt, ...)
{
    char sql[700], name[32];
    uint32_t hash = 2166136261u;
    struct err err = ERR_INIT;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(sql, sizeof sql, fmt, ap);
    va_end(ap);
    for (const char *c = sql; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    }
    (void)snprintf(name, sizeof name, "figures_%08x", hash);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, ref);
    param_text(&p, value);
    bool ok = store_exec(deep->api, name, sql, &p, ret, &err);
    if (!ok) {
        trace("it is not so: %s", err.message);
    }
    return ok;
}

/* $2: what it was, and what it is instead stands in the statement: both are constants of the table
 * above or were read from a row. */
static bool put_back(const struct figure *x)
{
    const struct figure_row *f = &rows[x->what];
    AUTO_RESULT PGresult *r = NULL;
    if (f->kind == LOWERED) { /* by the next takeover */
        return sql_i64(1, "SELECT count(*) FROM check_counters() WHERE what LIKE 'slots.%%' AND "
                          "kept < counted") == 0;
    }
    if (f->kind == SUMMED) {
        return say(x->ref, x->kept, &r,
                   "UPDATE %s SET %s = (%s::numeric - %s + $2::text::numeric)::%s WHERE (%s)::text "
                   "= $1::text AND %s > %s / 2",
                   f->table->name, f->column, f->column, x->bad, f->type, f->table->key, f->column,
                   x->bad);
    }
    /* An undo copies it under the same key. */
    const char *const of[] = {f->table->name, f->table == &retried          ? "task_failure"
                                              : f->table == &retried_change ? "task_change"
                                                                            : NULL};
    bool ok = true;
    for (size_t i = 0; i < ARRAY_LEN(of) && of[i] != NULL && ok; i++) {
        AUTO_RESULT PGresult *done = NULL;
        ok = say(
            x->ref, x->kept, &done,
            "UPDATE %s SET %s = $2::text::%s WHERE (%s)::text = $1::text AND %s = $bad$%s$bad$::%s",
            of[i], f->column, f->type, f->table->key, f->column, x->bad, f->type);
    }
    return ok;
}

/* They start droverd anew. */
static void kill_leader(void)
{
    for (int i = 0; i < deep->procs_n; i++) {
        if (deep->procs[i].up && atomic_load(&deep->procs[i].status.leading)) {
            proc_kill(&deep->procs[i]);
        }
    }
}

static void go_on(struct campaign *c)
{
    c->prods = MIN(c->prods, 1);
    c->last_job_us = MAX(c->last_job_us, deep->now_us);
}

static void mend(void *ctx, int64_t arg)
{
    struct figure *x = ctx;
    const struct figure_row *f = &rows[x->what];
    if (x->mended) {
        return;
    }
    if (deep->now_us < deep->db_down_until_us || !put_back(x)) {
        if (f->kind == LOWERED && arg++ % TAKEOVER_TRIES == 0) {
            kill_leader();
        }
        event_at(MAX(deep->now_us, deep->db_down_until_us) + SEC, mend, x, arg);
        return;
    }
    x->mended = true;
    x->mended_us = deep->now_us;
    int64_t n = 0;
    struct err err = ERR_INIT;
    for (int i = 0; i < deep->campaigns_n; i++) {
        if (x->campaign_id == 0 || x->campaign_id == deep->campaigns[i].id) {
            go_on(&deep->campaigns[i]);
        }
    }
    bool unparks =
        rng_chance(&deep->rng_figures, 0.7) && apidb_unpark(deep->api, x->campaign_id, &n, &err);
    store_notify_all();
    trace("people mend %s.%s of %s%s", f->table->name, f->column, x->ref,
          unparks ? " and unpark it" : "");
    kill_leader();
}

static bool is_bad(size_t what, const char *ref)
{
    for (int i = 0; i < deep->figures_n; i++) {
        const struct figure *x = &deep->figure[i];
        if (!x->mended && x->what == what && strcmp(x->ref, ref) == 0) {
            return true;
        }
    }
    return false;
}

static void spoil(size_t what)
{
    struct rng *r = &deep->rng_figures;
    const struct figure_row *f = &rows[what];
    struct figure *x = &deep->figure[deep->figures_n];
    AUTO_RESULT PGresult *row = NULL;
    AUTO_RESULT PGresult *done = NULL;
    char draw[24];
    size_t n = 1;
    (void)snprintf(draw, sizeof draw, "%lld", (long long)between(r, 0, 1000000));
    while (n < BAD_N && f->bad[n] != NULL) {
        n++;
    }
    const char *bad = f->bad[rng_below(r, n)];
    if (!say("", draw, &row,
             "SELECT (%s)::text, (%s)::text, (%s)::bigint FROM %s WHERE %s AND $1::text = '' ORDER "
             "BY md5((%s)::text || $2::text) LIMIT 1",
             f->table->key, f->column, f->table->owner != NULL ? f->table->owner : "0",
             f->table->name, f->where, f->table->key) ||
        row_count(row) == 0 || is_bad(what, row_text(row, 0, 0)) ||
        !(bad == gone ? say(row_text(row, 0, 0), bad, &done,
                            "DELETE FROM %s WHERE (%s)::text = $1::text AND $2::text <> ''",
                            f->table->name, f->table->key)
                      : say(row_text(row, 0, 0), bad, &done,
                            "UPDATE %s SET %s = $2::text::%s WHERE (%s)::text = $1::text",
                            f->table->name, f->column, f->type, f->table->key))) {
        return;
    }
    *x = (struct figure){.what = what,
                         .campaign_id = row_i64_or(row, 0, 2, 0),
                         .ref = xstrdup(row_text(row, 0, 0)),
                         .kept = row_text_dup(row, 0, 1),
                         .bad = bad};
    deep->figures_n++;
    x->stays = (f->flags & STAYS) != 0 && rng_chance(r, 0.4);
    trace("%s.%s of %s (c-%lld) is %s now, it was %s", f->table->name, f->column, x->ref,
          (long long)x->campaign_id, bad, x->kept != NULL ? x->kept : "null");
    if (!x->stays) {
        event_at(deep->now_us + between(r, 2, deep->calm ? 180 : 90) * MINUTE, mend, x, 0);
    }
    if (rng_chance(r, 0.6)) {
        kill_leader();
    }
}

/* Most of these tables are empty, as a rule. */
static void spoil_stored(void)
{
    int n = deep->figures_n;
    for (int tries = 0; tries < STORED_TRIES && deep->figures_n == n; tries++) {
        spoil(FIRST_N + rng_below(&deep->rng_stored, ARRAY_LEN(rows) - FIRST_N - ARCHIVES_N));
    }
}

static void strike(void *ctx, int64_t arg)
{
    struct rng *r = &deep->rng_figures;
    if (deep->now_us > deep->calm_us + LATE_US) {
        return;
    }
    size_t what = rng_below(r, FIRST_N);
    if (deep->now_us >= deep->db_down_until_us &&
        deep->figures_n < (deep->calm ? FIGURES_MAX : deep->figures_most)) {
        if (deep->stored && rng_chance(&deep->rng_stored, 0.7)) {
            spoil_stored();
        } else {
            spoil(what);
        }
    }
    event_at(deep->now_us + between(r, 1, 2 * deep->figures_us / SEC) * SEC, strike, ctx, arg);
}

void figures_archive(void)
{
    struct rng *r = &deep->rng_stored;
    if (deep->stored && deep->figures_n < FIGURES_MAX + FIGURES_LATE_MAX && rng_chance(r, 0.5)) {
        spoil(ARRAY_LEN(rows) - ARCHIVES_N + rng_below(r, ARCHIVES_N));
    }
}

/* What was kept for it is read when people undo a retry, as api/handlers/operations.c does. */
static void undo(void *ctx, int64_t arg)
{
    struct rng *r = &deep->rng_stored;
    struct err err = ERR_INIT;
    if (deep->calm) {
        return;
    }
    int64_t id =
        deep->now_us < deep->db_down_until_us
            ? 0
            : sql_asked_i64("figures_undo",
                            "SELECT max(id) FROM operation o WHERE kind = 'retry' AND "
                            "undo_asked_at IS NULL AND (state IN ('accepted', 'running') OR EXISTS "
                            "(SELECT FROM task_retried WHERE operation_id = o.id))",
                            NULL);
    if (id > 0 && rng_chance(r, 0.5) && deep->figures_n < FIGURES_MAX) {
        spoil(RETRIED_AT + rng_below(r, RETRIED_N));
    }
    if (id > 0) {
        AUTO_TX struct store *tx = deep->api;
        bool ok = tx_begin(tx, TX_WRITE, &err) && apidb_operation_undo(tx, id, "people", &err) &&
                  apidb_notify(tx, &err) && tx_commit(tx, &err);
        trace("people undo op-%lld%s%s", (long long)id, ok ? "" : ": ", ok ? "" : err.message);
    }
    event_at(deep->now_us + between(r, 10, UNDO_MOST_S) * SEC, undo, ctx, arg);
}

/* What only worlds with such rows have: a list of prices, and people who undo retries. */
static void stored_start(void)
{
    if (!deep->stored) {
        return;
    }
    deep->strength[FAULT_JOB_FAILS] = MAX(deep->strength[FAULT_JOB_FAILS], 0.3);
    sql_do("INSERT INTO price_list (instance_type, musd, read_at) SELECT instance_type, "
           "musd_per_hour, timestamptz '2026-01-01 00:00:00+00' FROM price");
    event_at(between(&deep->rng_stored, 10, UNDO_MOST_S) * SEC, undo, NULL, 0);
}

static bool unmended(int64_t campaign_id, int flags)
{
    for (int i = 0; i < deep->figures_n; i++) {
        const struct figure *x = &deep->figure[i];
        if (!x->mended && (rows[x->what].flags & flags) == flags &&
            (campaign_id == 0 || x->campaign_id == 0 || x->campaign_id == campaign_id)) {
            return true;
        }
    }
    return false;
}

bool figures_keep(int64_t campaign_id)
{
    return unmended(campaign_id, 0);
}

bool figures_kept(int64_t campaign_id)
{
    bool lately = false;
    for (int i = 0; i < deep->figures_n; i++) {
        const struct figure *x = &deep->figure[i];
        lately = lately || ((x->campaign_id == 0 || x->campaign_id == campaign_id) && x->mended &&
                            deep->now_us - x->mended_us < LATELY_US);
    }
    return lately || figures_keep(campaign_id);
}

bool figures_spoil(int64_t campaign_id)
{
    return unmended(campaign_id, SPOILS);
}

bool figures_of_lease(void)
{
    for (int i = 0; i < deep->figures_n; i++) {
        if (!deep->figure[i].mended && rows[deep->figure[i].what].table == &lease) {
            return true;
        }
    }
    return false;
}

static void mend_all(void)
{
    for (int i = 0; i < deep->figures_n; i++) {
        if (!deep->figure[i].mended) {
            mend(&deep->figure[i], 0);
        }
    }
}

static bool has_ended(const struct campaign *c)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, c->id);
    return sql_asked_i64("figures_ended",
                         "SELECT (state IN ('succeeded', 'failed', 'cancelled'))::int::bigint FROM "
                         "campaign_run WHERE campaign_id = $1",
                         &p) != 0;
}

/* What stays is mended when everybody else has ended. */
static void look(void *ctx, int64_t arg)
{
    bool leads = false, waits = false;
    for (int i = 0; i < deep->procs_n; i++) {
        leads = leads || (deep->procs[i].up && atomic_load(&deep->procs[i].status.leading));
    }
    arg = !deep->calm || leads ? 0 : arg + 1; /* faults may keep everybody */
    if (arg == LEADERLESS_LOOKS) {
        wrong("I18", "nobody can lead while a row has a figure that nobody wrote");
        return;
    }
    for (int i = 0; i < deep->campaigns_n && deep->calm; i++) {
        const struct campaign *c = &deep->campaigns[i];
        bool over = c->id > 0 && (figures_keep(c->id) || has_ended(c));
        waits = waits || !over;
        if (!over && deep->now_us > deep->calm_us + LEFT_MAX_US) {
            wrong("I18", "c-%lld has not ended, and waits for the row of another",
                  (long long)c->id);
        }
    }
    if (deep->calm && !waits) {
        mend_all();
    }
    event_at(deep->now_us + LOOK_US, look, ctx, arg);
}

void figures_start(void)
{
    struct rng *r = &deep->rng_figures;
    if (!deep->figures) {
        return;
    }
    deep->figures_most = (int)between(r, 1, FIGURES_MAX - 4);
    deep->figures_us = between(r, 3, 20) * MINUTE;
    sql_do("INSERT INTO setting (name, value) VALUES ('parts_limit', 1000000)");
    event_at(between(r, 1, deep->figures_us / SEC) * SEC, strike, NULL, 0);
    event_at(LOOK_US, look, NULL, 0);
    stored_start();
}

void figures_calm(void)
{
    for (int i = 0; i < deep->figures_n; i++) {
        if (!deep->figure[i].mended && !deep->figure[i].stays) {
            mend(&deep->figure[i], 0);
        }
    }
}

void figures_end(void)
{
    for (int i = 0; i < deep->figures_n; i++) {
        free(deep->figure[i].kept);
        free(deep->figure[i].ref);
    }
}
