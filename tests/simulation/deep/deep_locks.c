/* Sessions of others that hold locks for a while: somebody's psql with an open transaction, a
 * stopped PATCH, pg_dump, an index that is being made. They are real: a session of its own holds
 * them, and what droverd asks meanwhile ends by its lock time-out, which is a few milliseconds here
 * (nothing that is waited for in this world is ever released meanwhile). What must hold (I18): the
 * leader goes on leading, jobs of others are looked after, a campaign whose parts cannot start for
 * it says so, and afterwards all goes on. A droverd that was frozen before the calm may thaw under
 * a lock: a lease that is over by then, or a transaction that the server has ended, is not lost for
 * the lock. From its next epoch on the lock must not matter. */
#include "core/protocol/protocol.h"
#include "deep.h"
#include "store/pg/connection_private.h"
#include <stdio.h>

#define LATE_US   (3 * HOUR)    /* of the calm: none comes later */
#define QUIET_US  (20 * MINUTE) /* of the calm: people lift limits then */
#define NOTICE_US (6 * MINUTE)  /* a job's end is written by then */
#define SAYS_US   (50 * USEC_PER_MSEC)

enum lock_of { ITS_ROWS, SHARED_ROWS, WHOLE_TABLE, THE_LEASE };

static const struct lock_row {
    const char *word;
    enum lock_of of;
    const char *sql; /* #: the campaign */
} rows[] = {
    {"a campaign", ITS_ROWS, "SELECT FROM campaign WHERE id = # FOR UPDATE"},
    {"a campaign", ITS_ROWS, "SELECT FROM campaign WHERE id = # FOR UPDATE"},
    {"the state of a campaign", ITS_ROWS,
     "SELECT FROM campaign_run WHERE campaign_id = # FOR UPDATE"},
    {"the counters of a campaign", ITS_ROWS,
     "SELECT FROM stage_run WHERE campaign_id = # FOR UPDATE"},
    {"parts of a campaign", ITS_ROWS,
     "SELECT FROM task_run WHERE campaign_id = # AND id % 2 = 0 FOR UPDATE"},
    {"attempts of a campaign", ITS_ROWS,
     "SELECT FROM attempt WHERE campaign_id = # AND state < 8 FOR UPDATE"},
    {"attempts of a campaign", ITS_ROWS, "SELECT FROM attempt WHERE campaign_id = # FOR KEY SHARE"},
    {"the money of a campaign", ITS_ROWS,
     "SELECT FROM money WHERE level = 'campaign' AND ref_id = # FOR UPDATE"},
    {"pools of a campaign", ITS_ROWS, "SELECT FROM pool WHERE campaign_id = # FOR UPDATE"},
    {"endpoints of a campaign", ITS_ROWS, "SELECT FROM endpoint WHERE campaign_id = # FOR UPDATE"},
    {"file systems of a campaign", ITS_ROWS,
     "SELECT FROM filesystem WHERE campaign_id = # FOR UPDATE"},
    {"operations of a campaign", ITS_ROWS,
     "SELECT FROM operation WHERE campaign_id = # FOR UPDATE"},
    {"the money of all", SHARED_ROWS,
     "SELECT FROM money WHERE level IN ('global', 'project') AND # <> 0 FOR UPDATE"},
    {"slots", SHARED_ROWS,
     "SELECT FROM slots WHERE instance_type = (SELECT min(instance_type) FROM slots) AND # <> 0 "
     "FOR UPDATE"},
    {"slots", SHARED_ROWS, "SELECT FROM slots WHERE # <> 0 FOR SHARE"},
    {"quotas", SHARED_ROWS, "SELECT FROM quota WHERE # <> 0 FOR UPDATE"},
    {"the table of parts", WHOLE_TABLE, "LOCK TABLE task_run IN EXCLUSIVE MODE; SELECT #"},
    {"the table of attempts", WHOLE_TABLE, "LOCK TABLE attempt IN SHARE MODE; SELECT #"},
    {"the table of events", WHOLE_TABLE, "LOCK TABLE event IN SHARE ROW EXCLUSIVE MODE; SELECT #"},
    {"the ledger", WHOLE_TABLE, "LOCK TABLE ledger IN SHARE MODE; SELECT #"},
    {"all tables, as pg_dump", WHOLE_TABLE,
     "LOCK TABLE campaign, task, task_run, attempt, event, lease, slots, money, parked IN ACCESS "
     "SHARE MODE; SELECT #"},
    {"the lease", THE_LEASE, "SELECT FROM lease WHERE # <> 0 FOR UPDATE"},
};

static PGconn *keeper; /* one for all worlds of this process */

static bool keeper_does(const char *sql)
{
    PGresult *r = PQexec(keeper, sql);
    ExecStatusType t = PQresultStatus(r);
    bool ok = t == PGRES_TUPLES_OK || t == PGRES_COMMAND_OK;
    PQclear(r);
    return ok;
}

static void keeper_open(void)
{
    if (keeper == NULL) {
        keeper = PQconnectdb(deep->conninfo);
        if (PQstatus(keeper) != CONNECTION_OK || !keeper_does("SET lock_timeout = 3")) {
            deep_die("a session that holds locks: %s", PQerrorMessage(keeper));
        }
        cpu_share(PQbackendPID(keeper));
    }
}

static bool leads(const struct proc *p)
{
    return p->up && atomic_load(&p->status.leading);
}

static int64_t count_of(const char *name, const char *sql, int64_t campaign_id)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    return sql_asked_i64(name, sql, &p);
}

/* Soon after an intent met the lock: does its campaign say so? Once its pause is over a plan may
 * have another reason. */
static void look(void *ctx, int64_t serial)
{
    (void)ctx;
    struct lock *l = &deep->lock;
    if (!l->held || l->serial != serial || strstr(rows[l->what].sql, "stage_run") != NULL ||
        count_of("locks_waits",
                 "SELECT count(*) FROM stage_run WHERE campaign_id = $1 AND state = 'running' AND "
                 "waiting > 0",
                 l->campaign_id) == 0) {
        return;
    }
    l->looks++;
    l->said += count_of("locks_says",
                        "SELECT count(*) FROM stage_run WHERE campaign_id = $1 AND wait_reason = "
                        "'locked'",
                        l->campaign_id) > 0;
}

/* It led when a statement of its met a lock, and nothing else happened since: the lease of one that
 * thawed in this pass may be over. */
static void leads_on(void *ctx, int64_t life)
{
    const struct proc *p = ctx;
    bool leased = protocol_may_sign(p->lease_until_us, deep->now_us);
    if (p->up && p->life == (uint32_t)life && leased && !p->stop && !leads(p)) {
        wrong("I18", "droverd %d does not lead any more for a lock of others", p->id);
    }
}

void locks_refused(const char *query, const struct err *err)
{
    if (deep == NULL || !deep->lock.held || err == NULL || strcmp(err->sqlstate, "55P03") != 0) {
        return;
    }
    deep->lock.refused++;
    if (deep->cur == NULL) {
        return;
    }
    if (strcmp(query, "intend") == 0) {
        deep->lock.intents++;
        event_at(deep->now_us + SAYS_US, look, NULL, deep->lock.serial);
    }
    if (deep->calm && rows[deep->lock.what].of != THE_LEASE && leads(deep->cur)) {
        event_at(deep->now_us + 1, leads_on, deep->cur, deep->cur->life);
    }
}

static bool anybody_leads(void)
{
    bool any = false;
    for (int i = 0; i < deep->procs_n; i++) {
        any = any || leads(&deep->procs[i]);
    }
    return any;
}

static bool is_frozen(const struct proc *p)
{
    return p->up && deep->now_us < p->frozen_until_us;
}

/* Only a lock can keep it from leading: no fault begins in the calm. */
static bool is_free(const struct proc *p)
{
    return p->up && !is_frozen(p) && !p->stop && p->step_crash == 0;
}

/* Until one that is free leads: from then on the lock must not cost that epoch. One that is frozen
 * in the middle of a takeover ends the session of whoever leads when it thaws. */
static void await_leader(void *ctx, int64_t serial)
{
    struct lock *l = &deep->lock;
    bool any_free = false, leads_free = false, midway = false;
    if (!l->held || l->serial != serial) {
        return;
    }
    l->epoch = sql_i64(0, "SELECT epoch FROM lease");
    for (int i = 0; i < deep->procs_n; i++) {
        const struct proc *p = &deep->procs[i];
        any_free = any_free || is_free(p);
        leads_free = leads_free || (is_free(p) && leads(p) && p->epoch == l->epoch);
        midway = midway || (is_frozen(p) && !p->waiting);
    }
    if (leads_free && !midway) {
        l->led_us = deep->now_us;
        return;
    }
    if (!any_free || midway) {
        l->kept_us = deep->now_us;
    }
    event_at(deep->now_us + SEC, await_leader, ctx, serial);
}

/* Whoever thaws leads at once, or when the lease of another has ended. */
static bool leadership_lost(const struct lock *l)
{
    if (l->led_us == 0) {
        return deep->now_us - l->kept_us > deep->lease_us + MINUTE;
    }
    return sql_i64(0, "SELECT epoch FROM lease") != l->epoch || !anybody_leads();
}

static bool still_held(const struct job *j)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, j->name);
    return sql_asked_i64("locks_job", "SELECT count(*) FROM attempt WHERE name = $1 AND state < 7",
                         &p) > 0;
}

/* Jobs of others that ended long enough ago, while somebody led, are known to have ended. */
static void judge_others(const struct lock *l)
{
    usec_t led = wall_now() - (deep->now_us - l->led_us);
    for (size_t i = 0; i < deep->jobs_n; i++) {
        const struct job *j = &deep->jobs[i];
        usec_t before = wall_now() - NOTICE_US - 2 * deep->tick_us - 2 * deep->observe_us;
        if (j->over && !j->foreign && j->campaign_id != l->campaign_id &&
            j->ended > DEEP_EPOCH_US + l->since_us && MAX(j->ended, led) < before &&
            still_held(j)) {
            wrong("I18", "nobody has noticed the end of %s while %s was locked", j->name,
                  rows[l->what].word);
        }
    }
}

/* While it was held in the calm, when nothing else went wrong. */
static void judge(const struct lock *l)
{
    const struct lock_row *k = &rows[l->what];
    bool alone = !deep->poisons && !deep->figures;
    if (!deep->calm || l->since_us < deep->calm_us + QUIET_US || !alone || k->of == THE_LEASE) {
        return;
    }
    if (leadership_lost(l)) {
        wrong("I18", "the leadership was lost while %s was locked by others", k->word);
    }
    if (k->of != ITS_ROWS) {
        return;
    }
    if (l->led_us > 0) {
        judge_others(l);
    }
    if (l->looks > 1 && l->said == 0) {
        wrong("I18", "c-%lld does not say that it waits for a lock of others",
              (long long)l->campaign_id);
    }
}

static void release(void)
{
    struct lock *l = &deep->lock;
    if (!l->held) {
        return;
    }
    judge(l);
    trace("%s of c-%lld: the lock of others is released, %lld statements met it, %lld intents",
          rows[l->what].word, (long long)l->campaign_id, (long long)l->refused,
          (long long)l->intents);
    (void)keeper_does("ROLLBACK");
    l->held = false;
    for (int i = 0; i < deep->campaigns_n; i++) {
        struct campaign *c = &deep->campaigns[i];
        c->prods = 0; /* what people did for it may have met the lock */
        c->last_job_us = MAX(c->last_job_us, deep->now_us);
    }
}

static void released(void *ctx, int64_t serial)
{
    (void)ctx;
    if (deep->lock.serial == serial) {
        release();
    }
}

static int64_t length_us(enum lock_of of)
{
    struct rng *r = &deep->rng_locks;
    if (of == THE_LEASE) {
        return between(r, 1, 60) * SEC;
    }
    return (rng_chance(r, 0.5) ? between(r, 1, 60) : between(r, 60, 1000)) * SEC;
}

static void take(const struct campaign *c, size_t what)
{
    char sql[300];
    struct lock *l = &deep->lock;
    keeper_open();
    size_t at = strcspn(rows[what].sql, "#");
    (void)snprintf(sql, sizeof sql, "%.*s%lld%s", (int)at, rows[what].sql, (long long)c->id,
                   rows[what].sql + at + 1);
    int64_t us = length_us(rows[what].of);
    if (!keeper_does("BEGIN") || !keeper_does(sql)) {
        (void)keeper_does("ROLLBACK");
        return;
    }
    *l = (struct lock){.held = true,
                       .what = what,
                       .campaign_id = rows[what].of == ITS_ROWS ? c->id : 0,
                       .since_us = deep->now_us,
                       .kept_us = deep->now_us,
                       .serial = l->serial + 1};
    deep->locks_n++;
    trace("%s of c-%lld: locked by others for %lld s", rows[what].word, (long long)l->campaign_id,
          (long long)(us / SEC));
    event_at(deep->now_us + us, released, NULL, l->serial);
    if (deep->calm) {
        await_leader(NULL, l->serial);
    }
}

static void strike(void *ctx, int64_t arg)
{
    struct rng *r = &deep->rng_locks;
    if (deep->now_us > deep->calm_us + LATE_US) {
        return;
    }
    const struct campaign *c = &deep->campaigns[rng_below(r, (uint64_t)deep->campaigns_n)];
    size_t what = rng_below(r, ARRAY_LEN(rows));
    bool quiet = deep->calm && deep->now_us < deep->calm_us + QUIET_US;
    if (!quiet && !deep->lock.held && c->id > 0 && deep->now_us >= deep->db_down_until_us &&
        deep->locks_n < (deep->calm ? 2 : 1) * LOCKS_MOST) {
        take(c, what);
    }
    event_at(deep->now_us + between(r, 1, 2 * deep->locks_us / SEC) * SEC, strike, ctx, arg);
}

void locks_start(void)
{
    struct rng *r = &deep->rng_locks;
    if (!deep->locks) {
        return;
    }
    deep->locks_us = between(r, 2, 15) * MINUTE;
    event_at(between(r, 1, deep->locks_us / SEC) * SEC, strike, NULL, 0);
}

void locks_calm(void)
{
    release();
}

bool locks_keep(int64_t campaign_id)
{
    const struct lock *l = &deep->lock;
    return l->held && (campaign_id == 0 || l->campaign_id == 0 || l->campaign_id == campaign_id);
}

void locks_end(void)
{
    if (deep->lock.held) {
        (void)keeper_does("ROLLBACK");
    }
}
