/* What tests of archives share: a campaign that has lived, and whole archives of it, step by step.
 * The file that includes it says how many PARTS the campaign has, and needs cmocka.h. */
#pragma once
#include "core/model.h"
#include "store/api/archive.h"
#include "store/api/cost.h"
#include "store/leader/archive.h"
#include "store/leader/attempts.h"
#include "store/leader/lease.h"
#include "tests/kit/pg_fixture.h"
#include <stdlib.h>

struct world {
    char db[600];
    struct store *s, *api;
    int64_t epoch;
    struct pg_campaign c;
};

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    pg_fixture_database(w->db, sizeof w->db);
    w->c = pg_campaign_make(w->db, PARTS);
    w->s = pg_leader(w->db, &w->epoch);
    w->api = pg_open(w->db, STORE_API);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    store_close(w->s);
    store_close(w->api);
    free(w);
    return 0;
}

static int64_t count(const struct world *w, const char *table)
{
    return pg_i64(w->db, "SELECT count(*) FROM %s WHERE campaign_id = %lld", table,
                  (long long)w->c.campaign_id);
}

static void record(struct world *w, struct attempt_record r)
{
    struct err err = ERR_INIT;
    pg_book(&r);
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_record(w->s, &r, 1, &err), &err);
    pg_good(leader_commit(w->s, &err), &err);
}

/* The first attempt of a part, from its intent to its end. */
static void attempt_ends(struct world *w, int part, enum attempt_state to, musd_t cost)
{
    struct err err = ERR_INIT;
    struct intent in = pg_intent(w->s, &w->c, part, 1);
    pg_good(leader_begin(w->s, w->epoch, &err), &err);
    pg_good(store_intend(w->s, w->epoch, &in, 1, &err), &err);
    assert_true(in.taken);
    pg_good(leader_commit(w->s, &err), &err);
    enum attempt_state from = ATTEMPT_INTENDED;
    if (to == ATTEMPT_SUCCEEDED) {
        record(w, pg_record(&in, from, ATTEMPT_SUBMITTED));
        record(w, pg_record(&in, ATTEMPT_SUBMITTED, ATTEMPT_RUNNING));
        from = ATTEMPT_RUNNING;
    }
    struct attempt_record r =
        pg_record(&in, from, to == ATTEMPT_SUCCEEDED ? ATTEMPT_VERIFYING : to);
    r.release = true;
    r.settle = cost > 0;
    r.cost_musd = cost;
    r.billable_s = cost / 100;
    r.estimated = part == 1;
    r.task_moves = to != ATTEMPT_SUCCEEDED;
    r.task_to = to == ATTEMPT_FAILED ? TASK_FAILED : TASK_WAITING;
    r.cause = to == ATTEMPT_FAILED ? CAUSE_OOM : CAUSE_NONE;
    r.signature = to == ATTEMPT_FAILED ? "out of memory" : NULL;
    record(w, r);
    if (to == ATTEMPT_SUCCEEDED) {
        r = pg_record(&in, ATTEMPT_VERIFYING, to);
        r.task_moves = true;
        r.task_to = TASK_DONE;
        record(w, r);
    }
}

/* Six parts done, three failed, one void and two never tried; a pool, a metric of 20 points and
 * what a retry changed. */
static void live_and_end(struct world *w)
{
    long long id = (long long)w->c.campaign_id, task = (long long)w->c.first_task;
    for (int i = 0; i < 9; i++) {
        attempt_ends(w, i, i < 6 ? ATTEMPT_SUCCEEDED : ATTEMPT_FAILED, 1000 * (i + 1));
    }
    attempt_ends(w, 9, ATTEMPT_VOID, 0);
    pg_sql(w->db,
           "UPDATE task_run SET state = 6 WHERE campaign_id = %lld AND state = 0;"
           "UPDATE stage_run SET cancelled = waiting, waiting = 0, state = 'failed' WHERE "
           "campaign_id = %lld;"
           "UPDATE campaign_run SET state = 'failed', ended_at = now() - interval '40 days' WHERE "
           "campaign_id = %lld;"
           "INSERT INTO pool (attempt_id, campaign_id, stage_id, state, fingerprint, "
           "instance_type, instances, keep_alive_s, ended_at) SELECT min(id), %lld, 1, "
           "'terminated', 1, 't', 1, 60, now() FROM attempt;"
           "INSERT INTO metric_series (campaign_id, stage_id, task_id, attempt_id, name, points) "
           "SELECT %lld, 1, task_id, id, 'loss', 20 FROM attempt ORDER BY id LIMIT 1;"
           "INSERT INTO metric_point SELECT s.id, g, g, g, 1.0 FROM metric_series s, "
           "generate_series(0, 19) g;"
           "INSERT INTO metric_bucket SELECT id, 8, 0, 8, 0, 7, 0, 7, 1, 1, 8 FROM metric_series;"
           "INSERT INTO metric_source (attempt_id) SELECT attempt_id FROM metric_series;"
           "INSERT INTO task_change (task_id, campaign_id) VALUES (%lld, %lld), (%lld, %lld);"
           "INSERT INTO parked (kind, ref_id, campaign_id, reason) VALUES ('part', 1, %lld, 'x');"
           "UPDATE attempt SET bill_given_up = estimated;"
           "UPDATE attempt SET phases = ARRAY(SELECT i * 1000 + id FROM generate_series(1, 18) i), "
           "keep_alive_s = id - 1 WHERE id < 4",
           id, id, id, id, id, task, id, task + 11, id, id);
}

static char *costs(struct world *w)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf total = BUF_INIT(10000);
    AUTO_BUF struct buf stages = BUF_INIT(10000);
    AUTO_BUF struct buf causes = BUF_INIT(10000);
    AUTO_FREE struct apidb_phases *phases = NULL;
    size_t n = 0;
    pg_good(apidb_cost(w->api, w->c.campaign_id, &total, &stages, &err), &err);
    pg_good(apidb_cost_by_cause(w->api, w->c.campaign_id, &causes, &err), &err);
    pg_good(apidb_cost_phases(w->api, w->c.campaign_id, &phases, &n, &err), &err);
    assert_int_equal(n, 1);
    const struct apidb_phases *p = &phases[0];
    buf_addf(&causes, " %lld %lld %d %lld %lld %lld %lld", (long long)p->attempts,
             (long long)p->measured, p->keeps, (long long)p->job_s, (long long)p->job_musd,
             (long long)p->warm_s, (long long)p->warm_musd);
    for (int i = 0; i < PHASE_FIGURES_N; i++) {
        buf_addf(&causes, " %lld", (long long)p->figures[i]);
    }
    return xasprintf("%s %s %s", buf_cstr(&total), buf_cstr(&stages), buf_cstr(&causes));
}

/* *ret_taken, which the caller frees: the folder it is written to. */
static bool ask_taken(struct world *w, const char *folder, char **ret_taken)
{
    struct err err = ERR_INIT;
    bool asked = false;
    AUTO_BUF struct buf taken = BUF_INIT(1000);
    pg_good(apidb_archive_ask(w->api, w->c.campaign_id, "me", folder, &asked, &taken, &err), &err);
    *ret_taken = xstrdup(buf_cstr(&taken));
    return asked;
}

static bool ask_to(struct world *w, const char *folder)
{
    AUTO_FREE char *taken = NULL;
    return ask_taken(w, folder, &taken);
}

static bool ask(struct world *w)
{
    return ask_to(w, "");
}

static bool step(struct world *w, struct archive_progress *p, struct err *err)
{
    pg_good(leader_begin(w->s, w->epoch, err), err);
    if (!store_archive_step(w->s, w->c.campaign_id, 4, p, err)) {
        leader_rollback(w->s);
        return false;
    }
    pg_good(leader_commit(w->s, err), err);
    return true;
}

/* Step by step; whatever is kept is as it was after each. Returns how many steps there were. */
static int archive(struct world *w)
{
    struct err err = ERR_INIT;
    struct archive_progress p = {.over = false};
    AUTO_FREE char *before = costs(w);
    int steps = 0;
    while (!p.over) {
        assert_true(++steps < 100);
        pg_good(step(w, &p, &err), &err);
        AUTO_FREE char *now = costs(w);
        assert_string_equal(now, before);
        pg_check_counters(w->db);
    }
    return steps;
}
