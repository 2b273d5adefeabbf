/* The judge: checks the promises by SageMaker's log and invoice, and by the rows at the end. */
#include "core/failure/cause.h"
#include "core/model.h"
#include "deep.h"
#include <stdarg.h>
#include <stdio.h>

#define ROWS_END_US  (2 * HOUR) /* after the last campaign and job */
#define BILLS_END_US (8 * HOUR) /* where bills come hours later */
#define PATIENCE_US  (3 * HOUR) /* without a job */

void wrong(const char *what, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    trace("WRONG %s: %s", what, text);
    if (!deep->wrong) {
        (void)snprintf(deep->verdict, sizeof deep->verdict, "%s: %s", what, text);
    }
    deep->wrong = true;
}

/* I2: a request that is sent was committed before, with this name and this proof. */
void judge_create_sent(const struct job *j)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, j->name);
    param_text(&p, j->request_hash);
    param_i64(&p, j->attempt_id);
    param_i64(&p, j->task_id);
    if (sql_asked_i64("judge_intent",
                      "SELECT count(*) FROM attempt WHERE name = $1 AND identity_hash = $2 AND "
                      "id = $3 AND task_id = $4",
                      &p) != 1 &&
        !restores_forgot(j)) {
        wrong("I2", "Create of %s is on the wire and no committed intent says so", j->name);
    }
}

struct campaign *campaign_find(int64_t id)
{
    for (int i = 0; i < deep->campaigns_n; i++) {
        if (deep->campaigns[i].id == id) {
            return &deep->campaigns[i];
        }
    }
    return NULL;
}

/* I5: what a campaign has spent and reserved above its budget; below 0: room. */
static int64_t over_budget(const struct campaign *c)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, c->id);
    return sql_asked_i64("judge_budget",
                         "SELECT (m.reserved_musd + m.spent_musd - k.limit_musd)::bigint FROM "
                         "money m JOIN cap k USING (level, ref_id) WHERE level = 'campaign' AND "
                         "ref_id = $1 AND k.limit_musd IS NOT NULL",
                         &p);
}

/* A budget may be set below what is used; from then on nothing may start. */
void judge_budget_set(struct campaign *c)
{
    c->over_musd = MAX(0, over_budget(c));
}

static void check_budget(const struct campaign *c)
{
    bool unknown = poison_spoils(c->id) || deep->restores_n > 0; /* what was lost counts, too */
    int64_t over = unknown ? 0 : over_budget(c);
    if (over > c->over_musd) {
        wrong("I5", "c-%lld is %lld micro-USD above its budget, %lld when that was set",
              (long long)c->id, (long long)over, (long long)c->over_musd);
    }
}

static int64_t attempts_of(const struct campaign *c)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, c->id);
    return sql_asked_i64("judge_attempts", "SELECT count(*) FROM attempt WHERE campaign_id = $1",
                         &p);
}

/* I10: no intent commits after the answer to a pause or a cancel. */
static void check_stopped(const struct campaign *c)
{
    if (c->stopped && deep->restores_n == 0 && attempts_of(c) > c->attempts_n) {
        wrong("I10", "c-%lld has %lld attempts, it was stopped by people at %lld", (long long)c->id,
              (long long)attempts_of(c), (long long)c->attempts_n);
    }
}

void judge_wanted(struct campaign *c)
{
    check_stopped(c);
    c->stopped = false;
}

void judge_stopped(struct campaign *c)
{
    check_stopped(c);
    c->stopped = true;
    c->attempts_n = attempts_of(c);
    for (int k = 0; k < c->told_n; k++) {
        /* Resumed it has as long again to say what holds it (deep_gates.c), else people who stop
         * and resume it between any two looks are seen as one long wait. */
        c->told[k].held_us = 0;
    }
}

/* One of higher priority may take the slots of c for many hours. */
bool judge_others_first(const struct campaign *c)
{
    bool others = false;
    for (int i = 0; i < deep->campaigns_n; i++) {
        others = others || deep->now_us - deep->campaigns[i].last_job_us <= PATIENCE_US;
    }
    return others && deep->now_us - c->last_job_us > PATIENCE_US;
}

/* I18: in the calm, with limits lifted and holds resumed repeatedly, every campaign ends,
 * independently of the others. Only what keeps failing may be cancelled. */
void judge_gives_up(const struct campaign *c)
{
    int64_t used = 0;
    for (int t = 0; t < TYPES; t++) {
        used += aws_used(t, false) + aws_used(t, true);
    }
    if (used == 0 && deep->now_us - c->last_job_us > PATIENCE_US) {
        AUTO_PARAMS struct params p = PARAMS_INIT;
        param_i64(&p, c->id);
        AUTO_RESULT PGresult *r =
            sql_asked("judge_stuck",
                      "SELECT string_agg(s.name || ' ' || r.state || ' ' || r.waiting || ' ' || "
                      "r.wait_reason || ' ' || r.active || ' active', ', ' ORDER BY s.seq) FROM "
                      "stage s JOIN stage_run r ON r.stage_id = "
                      "s.id WHERE s.campaign_id = $1",
                      &p);
        wrong("I18", "c-%lld has had no job for %lld s, though nothing keeps it: %s",
              (long long)c->id, (long long)((deep->now_us - c->last_job_us) / SEC),
              row_text(r, 0, 0));
    }
}

static int64_t task_state(const struct job *j)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, j->campaign_id);
    param_i64(&p, j->task_id);
    return sql_asked_i64("judge_task",
                         "SELECT state FROM task_run WHERE campaign_id = $1 AND id = $2", &p);
}

/* A leader learns of a new limit with its next look; one that is frozen may look late. */
#define LIMIT_GRACE_US (20 * MINUTE)

void judge_limit_set(int type, int64_t n)
{
    struct use_limit *l = &deep->limits[type];
    l->before = MAX(l->before, l->now);
    l->now = n < 0 ? DEEP_NEVER : n;
    l->before = MAX(l->before, l->now);
    l->set_us = deep->now_us;
}

/* I4: never more than people allow; what ran before they allowed less may end. */
static void check_limit(int type, int64_t held)
{
    struct use_limit *l = &deep->limits[type];
    if (held > l->before) {
        wrong("I4", "our rows hold %lld instances of %s, people allow %lld", (long long)held,
              deep_types[type], (long long)l->before);
    }
    if (held <= l->now && deep->now_us - l->set_us > LIMIT_GRACE_US) {
        l->before = l->now;
    }
}

/* I1: one live job a task, and none of a part that is done or held. */
static void check_others(const struct job *j)
{
    for (size_t i = 0; i < deep->jobs_n; i++) {
        struct job *o = &deep->jobs[i];
        if (o == j || o->foreign || o->lost || o->task_id != j->task_id) {
            continue;
        }
        if (!o->over && !lies_allow_twin(o)) {
            wrong("I1", "two live jobs of one task: %s and %s", o->name, j->name);
        }
        if (o->written && !o->short_output && o->campaign_id == j->campaign_id &&
            task_state(j) == TASK_DONE) {
            wrong("I1", "%s is started for a part that is done", j->name);
        }
        judge_paid_twice(j, o);
        outputs_judge_again(j, o);
    }
    if (deep->holds && task_state(j) == TASK_HELD) {
        wrong("I1", "%s is started for a part that people hold", j->name);
    }
}

/* I1; I4: quotas; I5: budgets. */
void judge_job_created(struct job *j)
{
    if (restores_lost(j)) {
        return;
    }
    struct campaign *c = campaign_find(j->campaign_id);
    if (c == NULL) {
        wrong("I2", "%s is of no campaign", j->name);
        return;
    }
    c->last_job_us = deep->now_us;
    check_budget(c);
    judge_needs(c, j->stage, j->name);
    judge_listed(j);
    outputs_judge_job(c, j);
    check_others(j);
    int64_t used = aws_used(j->type, j->spot) - lies_unknown(j->type, j->spot);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, deep_types[j->type]);
    param_text(&p, j->spot ? "spot" : "on_demand");
    int64_t held = sql_asked_i64(
        "judge_slots",
        "SELECT held + warm_idle FROM slots WHERE instance_type = $1 AND market = $2", &p);
    if (used > held && !figures_spoil(0)) {
        wrong("I4", "%lld instances of %s run, our rows hold %lld", (long long)used,
              deep_types[j->type], (long long)held);
    }
    if (!j->spot && deep->restores_n == 0 && !figures_spoil(0)) { /* people's limits may be lost */
        check_limit(j->type, held - lies_use(j->type));
    }
}

/* P7: a stop is written before it is sent, since a part that somebody else stopped fails. */
void judge_stop_sent(const struct job *j)
{
    lies_stopped(j);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, j->name);
    bool told = deep->restores_n > 0 && deep->now_us - deep->restored_us < 3 * MINUTE; /* before */
    if (!j->foreign && !told &&
        sql_asked_i64("judge_stop",
                      "SELECT count(*) FROM attempt WHERE name = $1 AND NOT unwanted AND state < 8",
                      &p) > 0) {
        wrong("I2", "%s is stopped, and its row does not say that it is unwanted", j->name);
    }
}

static void check_rows(void)
{
    PGresult *r =
        sql_asked("judge_counters",
                  "SELECT string_agg(what || ' ' || ref || ': kept ' || kept || ', counted ' "
                  "|| counted, '; ') FROM (SELECT * FROM check_counters() LIMIT 4) AS c",
                  NULL);
    if (!row_null(r, 0, 0) && !poison_spoils(0)) {
        wrong("I7", "%s", row_text(r, 0, 0));
    }
    PQclear(r);
}

/* A pool belongs to a live attempt or to nobody, and no money is below zero. */
static void check_pools_and_money(void)
{
    AUTO_RESULT PGresult *r = sql_asked(
        "judge_taken",
        "SELECT p.id, p.taken_by FROM pool p LEFT JOIN attempt a ON a.id = p.taken_by WHERE "
        "p.state = 'available' AND p.taken_by IS NOT NULL AND a.holds IS NOT TRUE LIMIT 1",
        NULL);
    if (row_count(r) > 0) {
        wrong("I7", "pool %lld is taken by attempt %lld, which has ended",
              (long long)row_i64(r, 0, 0), (long long)row_i64(r, 0, 1));
    }
    int64_t below = sql_asked_i64("judge_below",
                                  "SELECT count(*) FROM money WHERE reserved_musd < 0 OR "
                                  "spent_musd < 0",
                                  NULL);
    if (below > 0) {
        wrong("I5", "%lld sums of money are negative", (long long)below);
    }
}

/* I13: a task whose job we stopped waits again, also under another leader; and fails when its file
 * system is gone by then. */
static void check_failed(void)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, CAUSE_BAD_INPUT);
    AUTO_RESULT PGresult *r =
        sql_asked("judge_failed",
                  "SELECT a.name FROM task_run r JOIN attempt a ON a.task_id = r.id AND a.n = "
                  "r.names WHERE r.state = 4 AND a.unwanted AND a.stop_cause = 0 AND r.cause <> $1",
                  &p);
    for (int i = 0; i < row_count(r); i++) {
        const struct job *j = job_find(row_text(r, i, 0));
        if (j != NULL && j->our_stop && strcmp(j->status, "Stopped") == 0 && !j->max_runtime_hit) {
            wrong("I13", "the part of %s failed since we stopped it", j->name);
        }
    }
}

/* Called during the run as well: every sum is right at every commit. */
void judge_now(void)
{
    check_rows();
    for (int i = 0; i < deep->campaigns_n; i++) {
        if (deep->campaigns[i].id > 0) {
            check_budget(&deep->campaigns[i]);
            check_stopped(&deep->campaigns[i]);
        }
    }
    check_pools_and_money();
    check_failed();
    judge_things_time();
    judge_gates();
    judge_listings();
}

/* The amount of an invoice line, rounded half up once. */
static int64_t line_musd(const struct job *j, int64_t instance_seconds)
{
    return (deep->price[j->type] * instance_seconds * 2 + 3600) / 7200;
}

/* What the ledger has of one job. */
struct booked {
    const char *name;
    int64_t settle_s, settle_musd, warm_s, warm_musd;
    bool stray;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct booked *)a)->name, ((const struct booked *)b)->name);
}

static void check_booked(const struct job *j, const char *entry, int64_t seconds, int64_t musd,
                         int64_t got_s, int64_t got)
{
    if (got_s != seconds || got != musd) {
        wrong("I6", "%s: the invoice has %lld %s seconds for %lld, the ledger %lld for %lld",
              j->name, (long long)seconds, entry, (long long)musd, (long long)got_s,
              (long long)got);
    }
}

/* Its attempts are deleted, its lines of the ledger are kept. */
static bool archived(int64_t campaign_id)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    return sql_asked_i64("judge_archived", "SELECT count(*) FROM archive WHERE campaign_id = $1",
                         &p) > 0;
}

static void check_job(const struct job *j, const struct booked *all, size_t n)
{
    const struct booked key = {.name = j->name};
    const struct booked *b = bsearch(&key, all, n, sizeof *all, by_name);
    if (b == NULL && deep->days > 0 && archived(j->campaign_id)) {
        return;
    }
    if (b == NULL) {
        wrong("I2", "the job %s has no attempt", j->name);
        return;
    }
    int64_t ran_s = j->billable_s * j->count, idle_s = j->retained_s * j->count;
    if (b->stray) { /* one line for both, each rounded by itself */
        check_booked(j, "settle", ran_s + idle_s, line_musd(j, ran_s) + line_musd(j, idle_s),
                     b->settle_s, b->settle_musd);
        return;
    }
    check_booked(j, "settle", ran_s, line_musd(j, ran_s), b->settle_s, b->settle_musd);
    check_booked(j, "warm", idle_s, line_musd(j, idle_s), b->warm_s, b->warm_musd);
}

static void check_invoice(void)
{
    int64_t invoice = 0;
    AUTO_RESULT PGresult *r = sql_asked(
        "judge_ledger",
        "SELECT name, coalesce(sum(CASE WHEN from_account = 'spent' THEN -seconds ELSE seconds "
        "END) "
        "FILTER (WHERE entry IN ('settle', 'correct')), 0)::bigint, "
        "coalesce(sum(CASE WHEN from_account = 'spent' THEN -amount_musd ELSE amount_musd END) "
        "FILTER (WHERE entry IN ('settle', 'correct')), 0)::bigint, "
        "coalesce(sum(seconds) FILTER (WHERE entry = 'warm'), 0)::bigint, "
        "coalesce(sum(amount_musd) FILTER (WHERE entry = 'warm'), 0)::bigint, bool_or(stray) "
        "FROM (SELECT a.name, l.entry, l.from_account, l.seconds, l.amount_musd, false AS stray "
        "FROM "
        "attempt a LEFT JOIN ledger l ON l.attempt_id = a.id UNION ALL SELECT x.name, l.entry, "
        "l.from_account, l.seconds, l.amount_musd, true FROM stray x LEFT JOIN ledger l ON l.stray "
        "= "
        "x.name) AS all_lines GROUP BY name",
        NULL);
    size_t n = (size_t)row_count(r);
    AUTO_FREE struct booked *all = xcalloc(n + 1, sizeof *all);
    for (size_t i = 0; i < n; i++) {
        int k = (int)i;
        all[i] = (struct booked){row_text(r, k, 0), row_i64(r, k, 1), row_i64(r, k, 2),
                                 row_i64(r, k, 3),  row_i64(r, k, 4), row_bool(r, k, 5)};
    }
    qsort(all, n, sizeof *all, by_name);
    for (size_t i = 0; i < deep->jobs_n; i++) {
        const struct job *j = &deep->jobs[i];
        if (j->foreign) {
            continue;
        }
        if (!j->over || j->holds) {
            wrong("I3", "the job %s outlives its campaign", j->name);
            continue;
        }
        check_job(j, all, n);
        invoice += line_musd(j, j->billable_s * j->count) + line_musd(j, j->retained_s * j->count);
    }
    invoice += judge_things();
    int64_t spent = sql_i64(0, "SELECT spent_musd FROM money WHERE level = 'global'");
    if (spent != invoice) {
        wrong("I6", "the invoice is %lld micro-USD, the ledger %lld", (long long)invoice,
              (long long)spent);
    }
}

static void check_ends(void)
{
    PGresult *r = sql_rows(
        "SELECT 'c-' || c.campaign_id || ' is ' || c.state || ' (' || c.reason || '), stage ' || "
        "s.seq || "
        "' ' || r.state || ': ' || r.waiting || ' wait (' || r.wait_reason || '), ' || r.active || "
        "' active, ' || r.held || ' held' FROM campaign_run c JOIN stage s ON s.campaign_id = "
        "c.campaign_id JOIN stage_run r ON r.stage_id = s.id WHERE c.state NOT IN ('succeeded', "
        "'failed', "
        "'cancelled') AND r.state NOT IN ('succeeded', 'failed', 'skipped', 'cancelled') LIMIT 1");
    if (PQntuples(r) > 0) {
        wrong("I18", "%s", PQgetvalue(r, 0, 0));
    }
    PQclear(r);
    r = sql_rows(
        "SELECT a.name || ' is in state ' || a.state || ', holds ' || a.holds || ', open ' || "
        "a.open_musd FROM attempt a WHERE a.state < 8 OR a.holds OR a.open_musd <> 0 UNION ALL "
        "SELECT 'the stray ' || name || ' is ' || status FROM stray WHERE holds LIMIT 1");
    if (PQntuples(r) > 0) {
        wrong("I7", "at the end %s", PQgetvalue(r, 0, 0));
    }
    PQclear(r);
    r = sql_rows(
        "SELECT t.id || ' of a ' || c.state || ' campaign ends as ' || t.state FROM task_run t "
        "JOIN "
        "campaign_run c USING (campaign_id) JOIN stage_run s ON s.stage_id = t.stage_id WHERE "
        "c.state IN ('succeeded', 'failed', 'cancelled') AND s.state NOT IN ('skipped', "
        "'cancelled') "
        "AND t.state IN (0, 1, 2) LIMIT 1");
    if (PQntuples(r) > 0) {
        wrong("I17", "task %s", PQgetvalue(r, 0, 0));
    }
    PQclear(r);
    int64_t open =
        sql_i64(0, "SELECT count(*) FROM operation WHERE state IN ('accepted', 'running')");
    if (open > 0) {
        wrong("I18", "at the end %lld operations are not done", (long long)open);
    }
    int64_t held = sql_i64(0, "SELECT coalesce(sum(held + warm_idle), 0)::bigint FROM slots");
    int64_t reserved = sql_i64(0, "SELECT coalesce(sum(reserved_musd), 0)::bigint FROM money");
    if (held != 0 || reserved != 0) {
        wrong("I7", "at the end %lld slots and %lld micro-USD are held", (long long)held,
              (long long)reserved);
    }
}

/* Nothing of ours is at AWS. */
static bool aws_quiet(void)
{
    for (size_t i = 0; i < deep->jobs_n; i++) {
        if (!deep->jobs[i].foreign && (!deep->jobs[i].over || deep->jobs[i].holds)) {
            return false;
        }
    }
    return judge_things_quiet();
}

static bool all_submitted(void)
{
    for (int i = 0; i < deep->campaigns_n; i++) {
        if (deep->campaigns[i].id == 0) {
            return false;
        }
    }
    return true;
}

/* In the calm: true when all is over. It is wrong when rows stay open although all campaigns and
 * jobs have ended. */
bool judge_over(void)
{
    if (!all_submitted() || !aws_quiet()) {
        deep->quiet_us = 0;
        return false;
    }
    AUTO_RESULT PGresult *r = sql_asked(
        "judge_over",
        "SELECT (SELECT count(*) FROM campaign_run WHERE state NOT IN ('succeeded', 'failed', "
        "'cancelled')), count(*), coalesce(string_agg(o, ', ' ORDER BY o), '') FROM (SELECT "
        "'attempt ' || id AS o FROM attempt WHERE state < 8 OR holds OR open_musd <> 0 OR "
        "(estimated AND NOT bill_given_up) UNION ALL SELECT 'stray ' || name FROM stray WHERE "
        "holds OR (estimated AND NOT bill_given_up AND kind = 'job') UNION ALL SELECT 'pool ' || "
        "id FROM pool WHERE ended_at IS NULL UNION ALL SELECT 'operation ' || id FROM operation "
        "WHERE state IN ('accepted', 'running') UNION ALL SELECT 'endpoint ' || id FROM endpoint "
        "WHERE ended_at IS NULL UNION ALL SELECT 'filesystem ' || id FROM filesystem WHERE "
        "ended_at IS NULL) AS open",
        NULL);
    int64_t live = row_i64(r, 0, 0), rows = row_i64(r, 0, 1);
    deep->quiet_us = live > 0 ? 0 : deep->quiet_us > 0 ? deep->quiet_us : deep->now_us;
    int64_t most_us = deep->late_bills ? BILLS_END_US : ROWS_END_US;
    /* A bill is asked about at times that each leader counts from its beginning. */
    int64_t from_us = MAX(deep->quiet_us, deep->late_bills ? quiet_since() : 0);
    if (live == 0 && rows > 0 && deep->now_us - from_us > most_us) {
        check_ends();
        wrong("I18", "%lld rows stay open though nothing runs: %s", (long long)rows,
              row_text(r, 0, 2));
    }
    return live == 0 && rows == 0;
}

/* I17: a done task has an output that a job of it wrote. */
static void check_done(void)
{
    PGresult *r =
        sql_rows("SELECT t.id, t.campaign_id, s.name, t.seq FROM task_run t JOIN stage s ON s.id = "
                 "t.stage_id WHERE t.state = 3");
    for (int i = 0; i < PQntuples(r); i++) {
        bool good = false;
        for (size_t k = 0; k < deep->jobs_n && !good; k++) {
            const struct job *j = &deep->jobs[k];
            good = j->task_id == strtoll(PQgetvalue(r, i, 0), NULL, 10) && j->written;
        }
        if (!good) {
            wrong("I17", "task %s is done and no job has written it", PQgetvalue(r, i, 0));
        }
    }
    PQclear(r);
}

/* I13: an attempt is free only when nothing ran, whatever the job says of itself; and quotas,
 * throttling and capacity never count. A retry asked for by people starts the count anew. */
static void check_counts(void)
{
    AUTO_RESULT PGresult *r = sql_asked(
        "judge_counts",
        "SELECT r.id, r.attempts::bigint, a.name, a.state::bigint, a.cause::bigint, a.unwanted, "
        "r.campaign_id FROM "
        "task_run r "
        "JOIN attempt a ON a.task_id = r.id WHERE NOT EXISTS (SELECT FROM operation o WHERE "
        "o.campaign_id = r.campaign_id AND o.kind = 'retry' AND o.done > 0) ORDER BY r.id",
        NULL);
    int64_t least = 0, most = 0;
    for (int i = 0; i < row_count(r); i++) {
        const struct job *j = job_find(row_text(r, i, 2));
        int64_t state = row_i64(r, i, 3), cause = row_i64(r, i, 4);
        bool ran = j != NULL && j->over && j->started != 0;
        bool never = cause == CAUSE_NONE || cause == CAUSE_QUOTA || cause == CAUSE_THROTTLED ||
                     cause == CAUSE_CAPACITY;
        bool surely = ran && state == ATTEMPT_FAILED && strcmp(j->status, "Failed") == 0 &&
                      cause != CAUSE_NONE && !row_bool(r, i, 5); /* pausing gives an attempt up */
        least += state == ATTEMPT_SUCCEEDED || surely;
        most += state == ATTEMPT_SUCCEEDED || ran || !never;
        if (i + 1 < row_count(r) && row_i64(r, i + 1, 0) == row_i64(r, i, 0)) {
            continue;
        }
        const struct campaign *c = campaign_find(row_i64(r, i, 6));
        bool spoiled = c != NULL && poison_keeps(c); /* its figure may not be ours */
        if (!spoiled && (row_i64(r, i, 1) < least || row_i64(r, i, 1) > most)) {
            wrong("I13", "task %lld counts %lld attempts, not %lld to %lld",
                  (long long)row_i64(r, i, 0), (long long)row_i64(r, i, 1), (long long)least,
                  (long long)most);
        }
        least = most = 0;
    }
}

void judge_end(void)
{
    check_counts();
    for (int i = 0; i < deep->campaigns_n; i++) {
        check_stopped(&deep->campaigns[i]);
    }
    check_ends();
    check_rows();
    check_done();
    check_failed();
    outputs_end();
    judge_gates();
    judge_listings();
    check_invoice();
}
