/* Rows that droverd cannot read or add to: somebody or a bad disk has changed them. Later a person
 * mends them, as a rule before the calm; some stay until everybody else has ended. What must hold
 * of them (I18): nobody else waits for them, and what does not end is shown as parked. */
#include "deep_verbs.h"
#include "store/api/parked.h"
#include <stdio.h>

#define BAD_N            3
#define WHOLE_N          3  /* of the rows below: what keeps a new leader from reading the whole */
#define FIRST_N          11 /* of them all worlds have; those behind are in worlds with lost rows */
#define CARE_US          (10 * MINUTE)
#define PARKED_MAX_US    (70 * MINUTE) /* a leader looks again by then, if nobody unparks */
#define LATE_MAX         3             /* in the calm, and until so long after it began */
#define LATE_US          (5 * HOUR)
#define LEADERLESS_LOOKS 6
#define LEFT_MAX_US      (60 * HOUR) /* of the calm: by then everybody else has ended */
#define ENDED            "('succeeded', 'failed', 'cancelled')"
#define STAGE_ENDED      "('succeeded', 'failed', 'skipped', 'cancelled')"
/* Nobody puts back a part of what is archived. */
#define KEPT "NOT EXISTS (SELECT FROM archive h WHERE h.campaign_id = x.campaign_id)"

enum poison_of {
    ONE_ROW,
    ITS_CAMPAIGN, /* which no new leader can read: its jobs are not looked after */
    ITS_SUMS,     /* which cannot be judged meanwhile */
    BOTH
};

/* pick: which row of campaign $1, and the value that is kept of it; $2 draws among several. harm
 * and mend: $1 the row, $2 the bad value or the kept one. */
static const struct poison_row {
    const char *word;
    enum poison_of spoils;
    bool stays; /* it may be left until the others have ended */
    const char *pick, *harm, *mend;
    const char *bad[BAD_N];
} rows[] = {
    {"the spec",
     ONE_ROW,
     true,
     "SELECT c.id, c.spec::text FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id WHERE "
     "c.id = $1 AND r.state NOT IN " ENDED " AND $2::text <> ''",
     "UPDATE campaign SET spec = $2::text::jsonb WHERE id = $1",
     "UPDATE campaign SET spec = $2::text::jsonb WHERE id = $1",
     {"{}", "{\"stages\": 7}", "{\"stages\": {\"name\": \"try\"}}"}},
    {"the rule at the budget's end",
     ITS_CAMPAIGN,
     false,
     "SELECT c.id, coalesce(k.at_limit, 'drain') FROM campaign c LEFT JOIN cap k ON k.level = "
     "'campaign' AND k.ref_id = c.id WHERE c.id = $1 AND $2::text <> ''",
     "INSERT INTO cap (level, ref_id, at_limit) VALUES ('campaign', $1, $2::text) ON CONFLICT "
     "(level, ref_id) DO UPDATE SET at_limit = excluded.at_limit",
     "UPDATE cap SET at_limit = $2::text WHERE level = 'campaign' AND ref_id = $1",
     {"ask", "ask", "ask"}}, /* a word of a newer droverd */
    {"the input of a part",
     ITS_CAMPAIGN,
     true,
     "SELECT t.id, row_to_json(t)::text FROM task t JOIN task_run r ON r.campaign_id = "
     "t.campaign_id AND r.id = t.id WHERE t.campaign_id = $1 AND r.state = 0 ORDER BY md5(t.id || "
     "$2::text) LIMIT 1",
     "DELETE FROM task WHERE id = $1 AND $2::text = ''",
     "INSERT INTO task SELECT * FROM json_populate_record(NULL::task, $2::text::json) AS x WHERE "
     "$1 > 0 AND " KEPT,
     {"", "", ""}},
    {"the number of a stage's parts",
     ITS_CAMPAIGN,
     true,
     "SELECT i.stage_id, i.tasks::text FROM stage_input i JOIN stage_run s ON s.stage_id = "
     "i.stage_id WHERE i.campaign_id = $1 AND i.closed AND i.tasks < 1000 AND s.state NOT "
     "IN " STAGE_ENDED " ORDER BY md5(i.stage_id || $2::text) LIMIT 1",
     "UPDATE stage_input SET tasks = $2::text::bigint WHERE stage_id = $1",
     "UPDATE stage_input SET tasks = $2::text::bigint WHERE stage_id = $1",
     {"9223372036854775807", "9223372036854775800", "4000000000"}},
    {"the attempts of a part",
     ONE_ROW,
     false,
     "SELECT id, attempts::text FROM task_run WHERE campaign_id = $1 AND state IN (0, 1) AND "
     "attempts < 1000 ORDER BY state DESC, md5(id || $2::text) LIMIT 1",
     "UPDATE task_run SET attempts = $2::text::smallint WHERE id = $1",
     "UPDATE task_run SET attempts = attempts - (32767 - $2::text::int) WHERE id = $1 AND attempts "
     "> 20000",
     {"32767", "32767", "32767"}},
    {"the seconds of a stage",
     ONE_ROW,
     false,
     "SELECT stage_id, run_seconds::text FROM stage_run WHERE campaign_id = $1 AND active > 0 AND "
     "run_seconds < 1000000000 ORDER BY md5(stage_id || $2::text) LIMIT 1",
     "UPDATE stage_run SET run_seconds = $2::text::bigint WHERE stage_id = $1",
     "UPDATE stage_run SET run_seconds = run_seconds - (9223372036854775807 - $2::text::bigint) "
     "WHERE stage_id = $1",
     {"9223372036854775807", "9223372036854775807", "9223372036854775807"}},
    {"the money of a campaign",
     ITS_SUMS,
     false,
     "SELECT ref_id, '' FROM money WHERE level = 'campaign' AND ref_id = $1 AND spent_musd < "
     "1000000000000 AND $2::text <> ''",
     "UPDATE money SET spent_musd = spent_musd + $2::text::bigint WHERE level = 'campaign' AND "
     "ref_id = $1",
     "UPDATE money SET spent_musd = spent_musd - 9223370000000000000 WHERE level = 'campaign' AND "
     "ref_id = $1 AND $2::text = ''",
     {"9223370000000000000", "9223370000000000000", "9223370000000000000"}},
    {"what an operation selects",
     ONE_ROW,
     true,
     "SELECT c.id, '' FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id WHERE c.id = $1 "
     "AND c.wanted <> 'cancel' AND r.state NOT IN " ENDED " AND $2::text <> ''",
     "INSERT INTO operation (campaign_id, kind, selector, total, created_by) VALUES ($1, 'retry', "
     "$2::text::jsonb, 1, 'people')",
     "UPDATE operation SET selector = '{}' WHERE campaign_id = $1 AND state IN ('accepted', "
     "'running') AND selector <> '{}' AND $2::text = ''",
     {"{\"cause\": [\"cosmic\"]}", "{\"parts\": [-1]}", "{\"cause\": 7}"}},
    {"what retries changed for a part",
     ONE_ROW,
     true,
     "SELECT task_id, cause_tries::text FROM task_change WHERE campaign_id = $1 ORDER BY "
     "md5(task_id || $2::text) LIMIT 1",
     "UPDATE task_change SET cause_tries = $2::text::jsonb WHERE task_id = $1",
     "UPDATE task_change SET cause_tries = $2::text::jsonb WHERE task_id = $1",
     {"[7]", "{\"cosmic\": 1}", "{\"user_code\": -1}"}},
    {"the words of a part",
     ONE_ROW,
     true,
     "SELECT t.id, coalesce(t.vars::text, 'null') FROM task t JOIN task_run r ON r.campaign_id = "
     "t.campaign_id AND r.id = t.id WHERE t.campaign_id = $1 AND r.state = 0 ORDER BY md5(t.id || "
     "$2::text) LIMIT 1",
     "UPDATE task SET vars = $2::text::jsonb WHERE id = $1",
     "UPDATE task SET vars = nullif($2::text, 'null')::jsonb WHERE id = $1",
     {"[7]", "7", "{\"uris\": {}}"}},
    {"the request of an attempt",
     ONE_ROW,
     false,
     "SELECT id, encode(request, 'hex') FROM attempt WHERE campaign_id = $1 AND state < 3 AND "
     "request IS NOT NULL ORDER BY state, md5(id || $2::text) LIMIT 1",
     "UPDATE attempt SET request = NULL WHERE id = $1 AND state < 8 AND $2::text = ''",
     "UPDATE attempt SET request = decode($2::text, 'hex') WHERE id = $1 AND state < 8",
     {"", "", ""}},
    {"the name of a stage",
     ONE_ROW,
     true,
     "SELECT s.id, s.name FROM stage s JOIN stage_run r ON r.stage_id = s.id WHERE s.campaign_id = "
     "$1 AND r.state NOT IN " STAGE_ENDED " ORDER BY md5(s.id || $2::text) LIMIT 1",
     "UPDATE stage SET name = $2::text WHERE id = $1",
     "UPDATE stage SET name = $2::text WHERE id = $1",
     {"", "cosmic", "cosmic"}},
    {"the kind of a stage",
     ONE_ROW,
     true,
     "SELECT id, kind FROM stage WHERE campaign_id = $1 ORDER BY md5(id || $2::text) LIMIT 1",
     "UPDATE stage SET kind = $2::text WHERE id = $1",
     "UPDATE stage SET kind = $2::text WHERE id = $1",
     {"jobs", "lustre", "endpoint"}},
    {"the place of a stage",
     ONE_ROW,
     true,
     "SELECT id, seq::text FROM stage WHERE campaign_id = $1 ORDER BY md5(id || $2::text) LIMIT 1",
     "UPDATE stage SET seq = $2::text::int WHERE id = $1",
     "UPDATE stage SET seq = $2::text::int WHERE id = $1",
     {"2147483647", "1000000", "2147483647"}},
    {"the row of a stage's input",
     ITS_CAMPAIGN,
     true,
     "SELECT i.stage_id, row_to_json(i)::text FROM stage_input i JOIN stage_run r ON r.stage_id = "
     "i.stage_id WHERE i.campaign_id = $1 AND i.closed AND i.tasks < 1000 AND r.state NOT "
     "IN " STAGE_ENDED " ORDER BY md5(i.stage_id || $2::text) LIMIT 1",
     "DELETE FROM stage_input WHERE stage_id = $1 AND $2::text = ''",
     "INSERT INTO stage_input SELECT * FROM json_populate_record(NULL::stage_input, "
     "$2::text::json) WHERE $1 > 0",
     {"", "", ""}},
    /* Its counters are counted again when it is put back; none is taken that is spoiled already. */
    {"the counters of a stage",
     BOTH,
     true,
     "SELECT stage_id, row_to_json(r)::text FROM stage_run r WHERE campaign_id = $1 AND "
     "run_seconds < 1000000000 AND state NOT IN " STAGE_ENDED
     " ORDER BY md5(stage_id || $2::text) LIMIT 1",
     "DELETE FROM stage_run WHERE stage_id = $1 AND $2::text = ''",
     "INSERT INTO stage_run SELECT * FROM json_populate_record(NULL::stage_run, ($2::text::jsonb "
     "|| (SELECT jsonb_build_object('waiting', count(*) FILTER (WHERE state = 0), 'active', "
     "count(*) FILTER (WHERE state = 1), 'held', count(*) FILTER (WHERE state = 2), 'done', "
     "count(*) FILTER (WHERE state = 3), 'failed', count(*) FILTER (WHERE state = 4), 'skipped', "
     "count(*) FILTER (WHERE state = 5), 'cancelled', count(*) FILTER (WHERE state = 6)) FROM "
     "task_run WHERE stage_id = $1 AND seq < ($2::text::jsonb->>'taken')::bigint))::json)",
     {"", "", ""}},
    {"the row of a waiting part",
     ITS_SUMS,
     true,
     "SELECT id, row_to_json(r)::text FROM task_run r WHERE campaign_id = $1 AND state = 0 AND "
     "attempts < 1000 ORDER BY md5(id || $2::text) LIMIT 1",
     "DELETE FROM task_run WHERE id = $1 AND state = 0 AND $2::text = ''",
     "INSERT INTO task_run SELECT * FROM json_populate_record(NULL::task_run, $2::text::json) AS x "
     "WHERE $1 > 0 AND " KEPT,
     {"", "", ""}},
    {"the input of a part that runs",
     ONE_ROW,
     true,
     "SELECT t.id, row_to_json(t)::text FROM task t JOIN task_run r ON r.campaign_id = "
     "t.campaign_id AND r.id = t.id WHERE t.campaign_id = $1 AND r.state = 1 ORDER BY md5(t.id || "
     "$2::text) LIMIT 1",
     "DELETE FROM task WHERE id = $1 AND $2::text = ''",
     "INSERT INTO task SELECT * FROM json_populate_record(NULL::task, $2::text::json) AS x WHERE "
     "$1 > 0 AND " KEPT,
     {"", "", ""}},
};

static bool say(const char *sql, int64_t ref, const char *text, PGresult **ret)
{
    struct err err = ERR_INIT;
    char name[32];
    uint32_t hash = 2166136261u;
    for (const char *c = sql; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    }
    (void)snprintf(name, sizeof name, "poison_%08x", hash);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, ref);
    param_text(&p, text);
    bool ok = store_exec(deep->api, name, sql, &p, ret, &err);
    if (!ok) {
        trace("it is not so: %s", err.message);
    }
    return ok;
}

static void mend(void *ctx, int64_t arg)
{
    struct poison *x = ctx;
    AUTO_RESULT PGresult *r = NULL;
    if (x->mended) {
        return;
    }
    if (deep->now_us < deep->db_down_until_us || !say(rows[x->what].mend, x->ref, x->kept, &r)) {
        event_at(MAX(deep->now_us, deep->db_down_until_us) + SEC, mend, x, arg);
        return;
    }
    x->mended = true;
    x->mended_us = deep->now_us;
    struct campaign *c = campaign_find(x->campaign_id);
    c->prods = MIN(c->prods, 1); /* from now on it has to go on */
    c->last_job_us = MAX(c->last_job_us, deep->now_us);
    int64_t n = 0;
    struct err err = ERR_INIT;
    bool unparks =
        rng_chance(&deep->rng_poisons, 0.7) && apidb_unpark(deep->api, x->campaign_id, &n, &err);
    store_notify_all();
    trace("people mend %s of c-%lld%s", rows[x->what].word, (long long)x->campaign_id,
          unparks ? " and unpark it" : "");
}

/* The leader finds it at once, or with its next takeover. */
static void kill_leader(void)
{
    for (int i = 0; i < deep->procs_n; i++) {
        if (deep->procs[i].up && atomic_load(&deep->procs[i].status.leading)) {
            proc_kill(&deep->procs[i]);
        }
    }
}

static bool is_poisoned(const struct campaign *c, size_t what)
{
    for (int i = 0; i < deep->poisons_n; i++) {
        const struct poison *x = &deep->poison[i];
        if (!x->mended && x->campaign_id == c->id && x->what == what) {
            return true;
        }
    }
    return false;
}

static void poison(struct campaign *c, size_t what)
{
    struct rng *r = &deep->rng_poisons;
    struct poison *x = &deep->poison[deep->poisons_n];
    char draw[24];
    AUTO_RESULT PGresult *row = NULL;
    AUTO_RESULT PGresult *done = NULL;
    (void)snprintf(draw, sizeof draw, "%lld", (long long)between(r, 0, 1000000));
    const char *bad = rows[what].bad[rng_below(r, BAD_N)];
    if (!say(rows[what].pick, c->id, draw, &row) || row_count(row) == 0 ||
        !say(rows[what].harm, row_i64(row, 0, 0), bad, &done)) {
        return;
    }
    *x = (struct poison){.what = what,
                         .campaign_id = c->id,
                         .ref = row_i64(row, 0, 0),
                         .kept = row_text_dup(row, 0, 1)};
    deep->poisons_n++;
    x->stays = rows[what].stays && rng_chance(r, 0.4);
    trace("%s of c-%lld (%lld) is %s now", rows[what].word, (long long)c->id, (long long)x->ref,
          bad[0] != '\0' ? bad : "gone");
    if (!x->stays) {
        event_at(deep->now_us + between(r, 2, 90) * MINUTE, mend, x, 0);
    }
    if (rng_chance(r, 0.6)) {
        kill_leader();
    }
}

/* Runs of it are under way whose logs are read. */
static bool is_tried(const struct campaign *c)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, c->id);
    return c->pipeline && sql_asked_i64("poison_tried",
                                        "SELECT count(*) FROM attempt WHERE campaign_id = $1 AND "
                                        "collects AND state BETWEEN 3 AND 7",
                                        &p) > 0;
}

static void strike(void *ctx, int64_t arg)
{
    struct rng *r = &deep->rng_poisons;
    if (deep->now_us > deep->calm_us + LATE_US || seldom_at_end()) {
        return;
    }
    struct campaign *c = &deep->campaigns[rng_below(r, (uint64_t)deep->campaigns_n)];
    for (int i = 0; i < deep->campaigns_n && rng_chance(r, 0.7); i++) {
        c = is_tried(&deep->campaigns[i]) ? &deep->campaigns[i] : c;
    }
    /* A pipeline that a new leader cannot read loses the most. */
    bool unread = c->pipeline && rng_chance(r, is_tried(c) ? 0.9 : 0.5);
    size_t n = unread ? WHOLE_N : FIRST_N;
    size_t what = deep->lost && rng_chance(&deep->rng_lost, 0.6)
                      ? FIRST_N + rng_below(&deep->rng_lost, ARRAY_LEN(rows) - FIRST_N)
                      : rng_below(r, n);
    /* In the calm only pipelines, whose runs are late. */
    bool room = deep->calm ? c->pipeline && deep->poisons_n < POISONS_MAX
                           : deep->poisons_n < deep->poisons_most;
    if (room && c->id > 0 && deep->now_us >= deep->db_down_until_us && !is_poisoned(c, what)) {
        poison(c, what);
    }
    event_at(deep->now_us + between(r, 1, 2 * deep->poison_us / SEC) * SEC, strike, ctx, arg);
}

static void look(void *ctx, int64_t arg);

/* A world in four has some. Drawn from a stream of its own: no other world is another for it. */
void poison_start(void)
{
    struct rng *r = &deep->rng_poisons;
    if (!deep->poisons) {
        return;
    }
    deep->poisons_most = (int)between(r, 1, POISONS_MAX - LATE_MAX);
    deep->poison_us = between(r, 3, 25) * MINUTE;
    event_at(between(r, 1, deep->poison_us / SEC) * SEC, strike, NULL, 0);
    event_at(CARE_US, look, NULL, 0);
}

static bool spoils(int64_t campaign_id, enum poison_of least, enum poison_of most)
{
    for (int i = 0; i < deep->poisons_n; i++) {
        const struct poison *x = &deep->poison[i];
        if (!x->mended && (campaign_id == 0 || x->campaign_id == campaign_id) &&
            rows[x->what].spoils >= least && rows[x->what].spoils <= most) {
            return true;
        }
    }
    return false;
}

bool poison_keeps(const struct campaign *c)
{
    return spoils(c->id, ONE_ROW, BOTH) || figures_keep(c->id) || locks_keep(c->id);
}

bool poison_kept(const struct campaign *c)
{
    bool lately = false;
    for (int i = 0; i < deep->poisons_n; i++) {
        const struct poison *x = &deep->poison[i];
        lately = lately || (x->campaign_id == c->id && x->mended &&
                            deep->now_us - x->mended_us < PARKED_MAX_US);
    }
    return lately || poison_keeps(c) || figures_kept(c->id);
}

bool poison_spoils(int64_t campaign_id)
{
    return spoils(campaign_id, ITS_SUMS, BOTH) || figures_spoil(campaign_id);
}

static bool has_ended(const struct campaign *c)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, c->id);
    return sql_asked_i64("poison_ended",
                         "SELECT (state IN " ENDED ")::int::bigint FROM campaign_run WHERE "
                         "campaign_id = $1",
                         &p) != 0;
}

static bool is_shown(const struct campaign *c)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, c->id);
    return sql_asked_i64("poison_shown", "SELECT count(*) FROM parked WHERE campaign_id = $1", &p) >
           0;
}

static bool holds(const struct job *j)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, j->name);
    return sql_asked_i64("poison_holds",
                         "SELECT count(*) FROM attempt WHERE name = $1 AND (holds OR state < 7)",
                         &p) > 0;
}

/* Its jobs are looked after although nothing starts: ended ones have given their slots back. */
static bool is_looked_after(const struct campaign *c)
{
    bool unread = spoils(c->id, ITS_CAMPAIGN, ITS_CAMPAIGN) || spoils(c->id, BOTH, BOTH);
    for (size_t i = 0; i < deep->jobs_n; i++) {
        const struct job *j = &deep->jobs[i];
        if (j->campaign_id == c->id && !j->foreign && (!j->over || (holds(j) && !unread))) {
            return false;
        }
    }
    return true;
}

static void mend_all(void)
{
    for (int i = 0; i < deep->poisons_n; i++) {
        if (!deep->poison[i].mended) {
            deep->poison[i].stays = false;
            mend(&deep->poison[i], 0);
        }
    }
}

/* No row takes the leadership away from everybody. */
static bool anybody_leads(void)
{
    bool leads = false;
    for (int i = 0; i < deep->procs_n; i++) {
        leads = leads || (deep->procs[i].up && atomic_load(&deep->procs[i].status.leading));
    }
    return leads;
}

/* What stays is mended when everybody has ended or is shown as parked. */
static void look(void *ctx, int64_t arg)
{
    bool waits = false;
    arg = !deep->calm || anybody_leads() ? 0 : arg + 1; /* faults may keep everybody */
    if (arg == LEADERLESS_LOOKS) {
        wrong("I18", "nobody can lead while rows of a campaign cannot be read");
        return;
    }
    for (int i = 0; i < deep->campaigns_n && deep->calm; i++) {
        const struct campaign *c = &deep->campaigns[i];
        bool kept = c->id > 0 && poison_keeps(c);
        bool over = c->id > 0 && (has_ended(c) || (kept && is_shown(c) && is_looked_after(c)));
        waits = waits || !over;
        if (!over && deep->now_us > deep->calm_us + LEFT_MAX_US) {
            wrong("I18", "c-%lld has not ended, and %s", (long long)c->id,
                  !kept         ? "waits for another whose rows cannot be read"
                  : is_shown(c) ? "its jobs are not looked after"
                                : "is not shown as parked");
        }
    }
    if (deep->calm && !waits) {
        mend_all();
    }
    event_at(deep->now_us + CARE_US, look, ctx, arg);
}

void poison_calm(void)
{
    for (int i = 0; i < deep->poisons_n; i++) {
        if (!deep->poison[i].mended && !deep->poison[i].stays) {
            mend(&deep->poison[i], 0);
        }
    }
}

void poison_end(void)
{
    for (int i = 0; i < deep->poisons_n; i++) {
        free(deep->poison[i].kept);
    }
}
