/* Commits that are lost: the database is put back to an earlier state, as by a failover to a
 * replica that was behind or by a restore, and every session ends. AWS goes on. Only some worlds
 * have such; their people submit stages of jobs alone. What must hold: a job of ours is never let
 * go (I29): it is an attempt again, or held as a stray with its slots until its end, and its money
 * is the ledger's (I6). No task has two live jobs (I1), and none begins again whose output a job
 * has written that the rows have forgotten. The epoch may go back. */
#include "deep.h"
#include "store/pg/connection_private.h"
#include <stdio.h>

#define LOOK_US (5 * MINUTE)
#define KNOWN_S 120 /* beside rounds of Lists: until all is looked at that a leader has not known */

/* In a schema of their own, so that they stay from world to world: the rows of all tables, and the
 * attempts that were lost. */
static const char functions[] =
    "CREATE SCHEMA IF NOT EXISTS deep_kept;"
    "DO $do$ DECLARE t name; BEGIN "
    "IF to_regclass('deep_kept.known') IS NULL THEN "
    "FOR t IN SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND "
    "relnamespace = 'public'::regnamespace AND relname <> 'schema_migration' LOOP "
    "EXECUTE format('CREATE UNLOGGED TABLE deep_kept.%1$I (LIKE public.%1$I)', t); END LOOP; "
    "CREATE UNLOGGED TABLE deep_kept.sequences (name name, last bigint, called boolean); "
    "CREATE UNLOGGED TABLE deep_kept.known (name text PRIMARY KEY, identity_hash text, id bigint, "
    "task_id bigint, campaign_id bigint, nonce text, done boolean); END IF; END $do$;"
    "CREATE OR REPLACE FUNCTION deep_kept.keep() RETURNS void LANGUAGE plpgsql AS $$ DECLARE t "
    "name; BEGIN "
    "FOR t IN SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND "
    "relnamespace = 'public'::regnamespace AND relname <> 'schema_migration' LOOP "
    "EXECUTE format('DELETE FROM deep_kept.%1$I', t); "
    "EXECUTE format('INSERT INTO deep_kept.%1$I SELECT * FROM public.%1$I', t); END LOOP; "
    "DELETE FROM deep_kept.sequences; "
    "FOR t IN SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = "
    "'public'::regnamespace LOOP "
    "EXECUTE format('INSERT INTO deep_kept.sequences SELECT %1$L, last_value, is_called FROM "
    "public.%1$I', t); END LOOP; END $$;"
    "CREATE OR REPLACE FUNCTION deep_kept.put_back() RETURNS void LANGUAGE plpgsql AS $$ DECLARE t "
    "name; BEGIN "
    "INSERT INTO deep_kept.known SELECT a.name, a.identity_hash, a.id, a.task_id, a.campaign_id, "
    "c.nonce, a.state = 8 FROM attempt a JOIN campaign c ON c.id = a.campaign_id ON CONFLICT "
    "(name) DO UPDATE "
    "SET identity_hash = excluded.identity_hash, id = excluded.id, done = known.done OR "
    "excluded.done; "
    "PERFORM set_config('session_replication_role', 'replica', true); "
    "FOR t IN SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND "
    "relnamespace = 'public'::regnamespace AND relname <> 'schema_migration' LOOP "
    "EXECUTE format('DELETE FROM public.%1$I', t); "
    "EXECUTE format('INSERT INTO public.%1$I OVERRIDING SYSTEM VALUE SELECT * FROM "
    "deep_kept.%1$I', t); END LOOP; "
    "PERFORM setval(('public.' || quote_ident(name))::regclass, last, called) FROM "
    "deep_kept.sequences; END $$";

static void plan(void);

/* Nothing of it is known any more: people submit it again. Its number may be given out again. */
static void forget(struct campaign *c)
{
    trace("c-%lld is lost", (long long)c->id);
    for (size_t i = 0; i < deep->jobs_n; i++) {
        struct job *j = &deep->jobs[i];
        j->lost = j->lost || (!j->foreign && j->campaign_id == c->id);
    }
    c->lost_n++;
    people_submit_again(c);
}

static void tell_judge(void)
{
    deep->restores_n++;
    deep->restored_us = deep->now_us;
    deep->epoch = sql_i64(0, "SELECT epoch FROM lease");
    for (int t = 0; t < TYPES; t++) {
        deep->limits[t] = (struct use_limit){.now = DEEP_NEVER, .before = DEEP_NEVER};
    }
    for (int i = 0; i < deep->campaigns_n; i++) {
        struct campaign *c = &deep->campaigns[i];
        c->stopped = c->cancelled = false;
        if (c->id > 0 &&
            sql_i64(0, "SELECT count(*) FROM campaign WHERE id = %lld", (long long)c->id) == 0) {
            forget(c);
        }
    }
}

static bool is_down(void)
{
    return deep->now_us < deep->db_down_until_us;
}

static void put_back(void *ctx, int64_t arg)
{
    struct rng *r = &deep->rng_restores;
    if (deep->calm || is_down()) {
        event_at(MAX(deep->now_us, deep->db_down_until_us) + SEC, put_back, ctx, arg);
        return;
    }
    lies_disturbed();
    int64_t lost = sql_i64(0, "SELECT (SELECT count(*) FROM attempt) - (SELECT count(*) FROM "
                              "deep_kept.attempt)");
    trace("the database is put back by %lld s: %lld attempts are lost",
          (long long)((deep->now_us - deep->kept_us) / SEC), (long long)lost);
    store_sessions_end();
    sql_do("SELECT deep_kept.put_back()");
    deep->db_down_until_us = deep->now_us + between(r, 0, 60) * SEC;
    tell_judge();
    if (rng_chance(r, 0.5)) {
        plan();
    }
}

static void keep(void *ctx, int64_t arg)
{
    struct rng *r = &deep->rng_restores;
    if (deep->calm) {
        return;
    }
    if (is_down()) {
        event_at(deep->db_down_until_us + SEC, keep, ctx, arg);
        return;
    }
    sql_do("SELECT deep_kept.keep()");
    deep->kept_us = deep->now_us;
    trace("the database is as it will be again");
    int64_t us = (rng_chance(r, 0.5) ? between(r, 1, 90) : between(r, 90, 1500)) * SEC;
    if (deep->now_us + us < deep->calm_us) {
        event_at(deep->now_us + us, put_back, NULL, 0);
    }
}

static void plan(void)
{
    event_at(deep->now_us + between(&deep->rng_restores, 2, 40) * MINUTE, keep, NULL, 0);
}

static bool is_held(const struct job *j)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, j->name);
    return sql_asked_i64("restore_held",
                         "SELECT (SELECT count(*) FROM attempt WHERE name = $1 AND holds) + "
                         "(SELECT count(*) FROM stray WHERE name = $1 AND holds)",
                         &p) > 0;
}

/* A number may be given to another campaign, a job's name may not: the campaign's nonce is in
 * it. */
static void judge_names(void)
{
    AUTO_RESULT PGresult *r =
        sql_asked("restore_names",
                  "SELECT k.name FROM deep_kept.known k JOIN attempt a ON a.name = k.name JOIN "
                  "campaign c ON c.id = a.campaign_id WHERE c.nonce <> k.nonce LIMIT 1",
                  NULL);
    if (row_count(r) > 0) {
        wrong("I29", "%s was a name of a campaign that is lost, and is one of another's",
              row_text(r, 0, 0));
    }
}

/* A leader that nothing has disturbed for so long has listed every live job of ours. */
static void look(void *ctx, int64_t arg)
{
    int64_t most_us = 7 * deep->observe_us + KNOWN_S * SEC + silence_us();
    for (size_t i = 0; i < deep->jobs_n && deep->now_us - quiet_since() > most_us; i++) {
        const struct job *j = &deep->jobs[i];
        if (!j->foreign && !j->over && wall_now() - j->created > (usec_t)most_us && !is_held(j)) {
            wrong("I29", "nobody holds %s, and it runs", j->name);
        }
    }
    if (deep->restores_n > 0) {
        judge_names();
    }
    event_at(deep->now_us + LOOK_US, look, ctx, arg);
}

void restores_start(void)
{
    if (!deep->restores) {
        return;
    }
    sql_do("%s", functions);
    sql_do("DELETE FROM deep_kept.known");
    plan();
    event_at(LOOK_US, look, NULL, 0);
}

bool restores_forgot(const struct job *j)
{
    if (deep->restores_n == 0) {
        return false;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, j->name);
    param_text(&p, j->request_hash);
    param_i64(&p, j->attempt_id);
    return sql_asked_i64("restore_known",
                         "SELECT count(*) FROM deep_kept.known WHERE name = $1 AND identity_hash = "
                         "$2 AND id = $3",
                         &p) > 0;
}

/* Its intent was of a campaign that is lost. */
bool restores_lost(struct job *j)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    if (deep->restores_n == 0) {
        return false;
    }
    param_text(&p, j->name);
    j->lost = sql_asked_i64("restore_lost",
                            "SELECT count(*) FROM deep_kept.known k WHERE name = $1 AND NOT EXISTS "
                            "(SELECT FROM campaign c WHERE c.id = k.campaign_id AND c.nonce = "
                            "k.nonce) AND NOT EXISTS (SELECT FROM attempt a WHERE a.name = k.name)",
                            &p) > 0;
    return j->lost;
}

void judge_paid_twice(const struct job *j, const struct job *o)
{
    if (deep->restores_n == 0 || !o->written) {
        return;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, o->name);
    if (sql_asked_i64("restore_done",
                      "SELECT count(*) FROM deep_kept.known k WHERE name = $1 AND done AND NOT "
                      "EXISTS (SELECT FROM stray x WHERE x.name = k.name)",
                      &p) > 0) {
        wrong("I1", "%s is started, and %s had done its part before that was lost", j->name,
              o->name);
    }
}
