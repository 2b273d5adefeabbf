/* What must hold of file systems and endpoints: an intent before each create (I2), never two of one
 * identity (I1), ended by their time (I8), no task on one that is deleted (I20), and their lines of
 * the ledger (I6). */
#include "deep.h"

/* A deletion may be late by an export, outages, freezes and leaders that come and go. */
#define LUSTRE_LATE_US   (4 * HOUR)
#define ENDPOINT_LATE_US (3 * HOUR)
#define CREATE_MAX_US    (2 * HOUR)
#define HOUR_COST_STEPS  (730 * 2)

void judge_lustre_made(const struct lustre *l)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, l->token);
    if (sql_asked_i64("judge_lustre", "SELECT count(*) FROM filesystem WHERE token = $1", &p) !=
        1) {
        wrong("I2", "a file system is made and no committed intent says so: %s", l->token);
    }
    for (size_t i = 0; i < deep->lustres_n; i++) {
        const struct lustre *o = &deep->lustres[i];
        if (o != l && !o->gone && o->campaign_id == l->campaign_id &&
            strcmp(o->stage, l->stage) == 0) {
            wrong("I1", "two file systems of one stage: %s and %s", o->token, l->token);
        }
    }
}

/* What FSx mends by itself is no failure of what was in use. */
static void judge_moment(const struct lustre *l)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, l->token);
    if (deep->imports && sql_asked_i64("judge_moment",
                                       "SELECT count(*) FROM filesystem WHERE token = $1 AND "
                                       "available_at IS NOT NULL AND failed AND "
                                       "reason LIKE 'wrong for a moment%'",
                                       &p) > 0) {
        wrong("I20", "%s is deleted since it was misconfigured for a moment", l->id);
    }
}

/* People may delete it under its jobs, and its time may be over; else its last job has ended. */
void judge_lustre_ends(const struct lustre *l)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, l->token);
    AUTO_RESULT PGresult *r =
        sql_asked("judge_lustre_ends",
                  "SELECT delete_asked OR failed, ttl_s FROM filesystem WHERE token = $1", &p);
    judge_moment(l);
    if (row_count(r) == 0 || row_bool(r, 0, 0) ||
        wall_now() - l->created + (deep->clocks ? HOUR : 20 * MINUTE) > row_i64(r, 0, 1) * SEC) {
        return;
    }
    for (size_t i = 0; i < deep->jobs_n; i++) {
        const struct job *j = &deep->jobs[i];
        if (!j->over && !j->foreign && !j->lied && strcmp(j->volume, l->id) == 0) {
            wrong("I20", "%s is deleted while %s uses it", l->id, j->name);
        }
    }
}

void judge_hosted_made(const struct hosted *h)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, h->name);
    if (sql_asked_i64("judge_hosted", "SELECT count(*) FROM endpoint WHERE name = $1", &p) != 1) {
        wrong("I2", "a thing of hosting is made and no committed intent says so: %s", h->name);
    }
    judge_model(h);
    for (size_t i = 0; i < deep->hosted_n; i++) {
        const struct hosted *o = &deep->hosted[i];
        if (o != h && !o->gone && o->kind == h->kind && o->campaign_id == h->campaign_id &&
            strcmp(o->stage, h->stage) == 0) {
            wrong("I1", "two of one stage: %s and %s", o->name, h->name);
        }
    }
}

/* Somebody asked it within `idle` before it was decided that nobody does. CloudWatch counts some
 * minutes late, and the answer may be minutes old by then; frozen droverds and clocks that step
 * see another time. */
void judge_hosted_ends(const struct hosted *h)
{
    static const enum harm blurs[] = {FAULT_FREEZE, FAULT_FREEZE_STEP, FAULT_FREEZE_SIGNED,
                                      FAULT_TAKEOVER_BREAKS, FAULT_WALL_STEP};
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, h->name);
    if (h->kind != HOSTING_ENDPOINT || h->in_service == 0 || deep->clocks) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(blurs); i++) {
        if (deep->strength[blurs[i]] > 0) {
            return;
        }
    }
    AUTO_RESULT PGresult *r =
        sql_asked("judge_idle",
                  "SELECT idle_s, (extract(epoch FROM deleting_at) * 1e6)::bigint FROM endpoint "
                  "WHERE name = $1 AND reason LIKE 'idle for %'",
                  &p);
    if (row_count(r) == 0) {
        return;
    }
    usec_t until = row_i64(r, 0, 1) - 10 * MINUTE,
           from = until - row_i64(r, 0, 0) * SEC + 6 * MINUTE;
    if (h->in_service > from || (h->used_from < until && h->used_until > from)) {
        wrong("I8", "%s is deleted as idle, and it was asked", h->name);
    }
}

bool judge_things_quiet(void)
{
    bool quiet = true;
    for (size_t i = 0; i < deep->lustres_n; i++) {
        quiet = quiet && deep->lustres[i].gone;
    }
    for (size_t i = 0; i < deep->hosted_n; i++) {
        quiet = quiet && deep->hosted[i].gone;
    }
    return quiet;
}

static int64_t ttl_us(const char *sql, const char *name, const char *query)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, name);
    return sql_asked_i64(query, sql, &p) * SEC;
}

void judge_things_time(void)
{
    for (size_t i = 0; i < deep->lustres_n; i++) {
        const struct lustre *l = &deep->lustres[i];
        if (!l->gone && l->off == 0 &&
            wall_now() > l->created + LUSTRE_LATE_US +
                             ttl_us("SELECT ttl_s FROM filesystem WHERE token = $1", l->token,
                                    "judge_lustre_ttl")) {
            wrong("I8", "the file system %s outlives its time", l->token);
        }
    }
    for (size_t i = 0; i < deep->hosted_n; i++) {
        const struct hosted *h = &deep->hosted[i];
        if (!h->gone && h->off == 0 &&
            wall_now() > MAX(h->created, h->in_service) + ENDPOINT_LATE_US +
                             ttl_us("SELECT ttl_s FROM endpoint WHERE name = $1", h->name,
                                    "judge_endpoint_ttl")) {
            wrong("I8", "%s, a thing of hosting, outlives its time", h->name);
        }
        if (!h->gone && h->off == 0 && h->in_service != 0 &&
            wall_now() > MAX(h->in_service, h->used_until) + ENDPOINT_LATE_US +
                             ttl_us("SELECT CASE WHEN idle_s = 0 THEN 1000000 ELSE idle_s END "
                                    "FROM endpoint WHERE name = $1",
                                    h->name, "judge_endpoint_idle")) {
            wrong("I8", "nobody asks %s, and it lives on", h->name);
        }
    }
}

/* A new job is asked for with a file system that is there, as far as a leader that has led for a
 * while can know. */
void judge_volume(const struct job *j, usec_t signed_us)
{
    for (size_t i = 0; i < deep->lustres_n; i++) {
        const struct lustre *l = &deep->lustres[i];
        if (strcmp(l->id, j->volume) == 0 && l->off != 0 &&
            signed_us > MAX(l->off + 10 * MINUTE, deep->led_from + 5 * MINUTE)) {
            wrong("I20", "%s is started on %s, deleted %lld s before", j->name, l->id,
                  (long long)((signed_us - l->off) / SEC));
        }
        if (strcmp(l->id, j->volume) == 0 && l->import != NULL &&
            strcmp(l->import, "SUCCEEDED") != 0) {
            wrong("I20", "%s is started on %s, which is not filled: %s", j->name, l->id, l->import);
        }
    }
}

static int64_t hours(usec_t from, usec_t to)
{
    return MAX(1, (to - from + HOUR - 1) / HOUR);
}

/* What a line says beyond what its thing was there for may come of clocks that step, and of what
 * nobody saw: then it is marked as an estimate. */
static usec_t spare_us(bool estimated)
{
    return estimated ? 2 * HOUR : deep->clocks ? 80 * MINUTE : 40 * MINUTE;
}

/* A create that came late may have made it again: then the ledger's time may go on between. False:
 * it is an earlier one, checked with the last. */
static bool last_lustre(const struct lustre *l, usec_t *ret_from, bool *ret_again)
{
    *ret_from = l->available != 0 ? l->created : 0;
    *ret_again = false;
    for (size_t i = 0; i < deep->lustres_n; i++) {
        const struct lustre *o = &deep->lustres[i];
        if (o == l || strcmp(o->token, l->token) != 0) {
            continue;
        }
        if (o > l) {
            return false;
        }
        *ret_again = true;
        *ret_from = *ret_from == 0 || (o->available != 0 && o->created < *ret_from)
                        ? (o->available != 0 ? o->created : *ret_from)
                        : *ret_from;
    }
    return true;
}

static int64_t check_lustre(const struct lustre *l)
{
    bool again;
    usec_t from;
    if (!last_lustre(l, &from, &again)) {
        return 0;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, l->token);
    AUTO_RESULT PGresult *r = sql_asked(
        "judge_storage",
        "SELECT f.hours, coalesce(sum(l.amount_musd), 0)::bigint, f.estimated, "
        "f.price_musd_per_gb_month FROM filesystem f LEFT JOIN ledger l ON l.filesystem_id = f.id "
        "AND l.entry = 'settle' WHERE f.token = $1 GROUP BY f.id",
        &p);
    if (row_count(r) == 0 || from == 0) {
        return 0;
    }
    int64_t n = row_i64(r, 0, 0), musd = row_i64(r, 0, 1);
    usec_t spare = spare_us(row_bool(r, 0, 2) || again);
    bool unseen = n == 0 && l->off - from < 35 * MINUTE; /* AVAILABLE was never seen */
    int64_t cost = (2 * n * l->size_gib * row_i64(r, 0, 3) + 730) / HOUR_COST_STEPS;
    if (!unseen && (n < hours(from, l->off - (deep->clocks ? 60 : 20) * MINUTE) - again ||
                    n > hours(from, l->off + spare) || musd != cost)) {
        wrong("I6", "%s: the invoice has %lld hours of storage, the ledger %lld for %lld", l->token,
              (long long)hours(from, l->off), (long long)n, (long long)musd);
    }
    return musd;
}

static bool last_endpoint(const struct hosted *h, int64_t *ret_s, usec_t *ret_from, bool *ret_again)
{
    *ret_s = 0;
    *ret_from = 0;
    *ret_again = false;
    for (size_t i = 0; i < deep->hosted_n; i++) {
        const struct hosted *o = &deep->hosted[i];
        if (o->kind != h->kind || strcmp(o->name, h->name) != 0) {
            continue;
        }
        if (o > h) {
            return false;
        }
        *ret_again = *ret_again || o != h;
        if (o->in_service != 0) {
            *ret_from = *ret_from == 0 ? o->in_service : *ret_from;
            *ret_s += MAX(1, (o->off - o->in_service + SEC - 1) / SEC) * o->instances;
        }
    }
    return true;
}

static int64_t check_endpoint(const struct hosted *h)
{
    int64_t exact;
    bool again;
    usec_t from;
    if (!last_endpoint(h, &exact, &from, &again)) {
        return 0;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, h->name);
    AUTO_RESULT PGresult *r = sql_asked(
        "judge_hosting",
        "SELECT e.billable_s, coalesce(sum(l.amount_musd), 0)::bigint, e.estimated, "
        "e.price_musd_per_hour, coalesce(sum(l.seconds), 0)::bigint FROM endpoint e LEFT JOIN "
        "ledger l ON l.endpoint_id = e.id AND l.entry = 'settle' WHERE e.name = $1 GROUP BY e.id",
        &p);
    if (row_count(r) == 0 || from == 0) {
        return 0;
    }
    int64_t n = row_i64(r, 0, 0), musd = row_i64(r, 0, 1);
    bool clocks_step = again || deep->clocks || deep->strength[FAULT_WALL_STEP] > 0;
    for (int i = 0; i < deep->procs_n; i++) {
        clocks_step = clocks_step || deep->procs[i].wall_ahead_us != 0;
    }
    int64_t spare = row_bool(r, 0, 2) || clocks_step ? spare_us(true) / SEC * h->instances : 0;
    int64_t cost = (2 * n * row_i64(r, 0, 3) + 3600) / 7200;
    bool unseen = n == 0 && h->off - from < 20 * MINUTE;
    if (!unseen &&
        (n < exact - spare || n > exact + spare || musd != cost || row_i64(r, 0, 4) != n)) {
        wrong("I6", "%s: the invoice has %lld seconds of hosting, the ledger %lld for %lld",
              h->name, (long long)exact, (long long)n, (long long)musd);
    }
    return musd;
}

/* No row is lost here, so a sweep takes nothing for a stray. */
static void judge_no_stray(void)
{
    AUTO_RESULT PGresult *r =
        sql_asked("judge_stray", "SELECT kind, name FROM stray WHERE kind <> 'job' LIMIT 1", NULL);
    if (row_count(r) > 0) {
        wrong("I8", "%s %s has a row and was held as a stray", row_text(r, 0, 0),
              row_text(r, 0, 1));
    }
}

int64_t judge_things(void)
{
    int64_t musd = 0;
    judge_no_stray();
    for (size_t i = 0; i < deep->lustres_n; i++) {
        const struct lustre *l = &deep->lustres[i];
        if (!l->gone) {
            wrong("I8", "the file system %s is left", l->token);
            continue;
        }
        musd += check_lustre(l);
    }
    for (size_t i = 0; i < deep->hosted_n; i++) {
        const struct hosted *h = &deep->hosted[i];
        if (!h->gone) {
            wrong("I8", "%s, a thing of hosting, is left", h->name);
        } else if (h->kind == HOSTING_ENDPOINT) {
            musd += check_endpoint(h);
        }
    }
    return musd;
}
