/* The scheduler's rows: limits above a campaign, results of finished attempts, promises, use by
 * others, quotas over all types, and jobs found without a row. */
#include "scheduler.h"
#include "common/clock.h"
#include "common/hash.h"
#include "pg_names.h"
#include "queries.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"
#include "store/rows/words.h"

bool view_slot_limits(struct store *s, struct slot_limit_row **ret, size_t *ret_n, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_SLOT_LIMITS), NULL, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    struct slot_limit_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        row_text_into(r, (int)i, 0, rows[i].instance_type, sizeof rows[i].instance_type);
        rows[i].market = market_parse(row_text(r, (int)i, 1));
        rows[i].limit = row_i64(r, (int)i, 2);
    }
    *ret = rows;
    *ret_n = n;
    return true;
}

bool view_durations(struct store *s, int64_t campaign_id, int64_t stage_id, size_t n_max,
                    struct duration_row **ret, size_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    param_i32(&p, (int32_t)n_max);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_DURATIONS), &p, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    struct duration_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) { /* rows come newest first */
        rows[n - 1 - i] =
            (struct duration_row){.size = row_i64(r, (int)i, 0), .run_us = row_i64(r, (int)i, 1)};
    }
    *ret = rows;
    *ret_n = n;
    return true;
}

bool view_breaker(struct store *s, int64_t stage_id, int64_t since, size_t n_max,
                  struct breaker_row **ret, size_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    param_i64(&p, since);
    param_i32(&p, (int32_t)n_max);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_BREAKER), &p, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    struct breaker_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        rows[i].attempt_id = row_i64(r, (int)i, 0);
        rows[i].state = (enum attempt_state)row_int(r, (int)i, 1);
        rows[i].cause = (enum cause)row_int(r, (int)i, 2);
        row_text_into(r, (int)i, 3, rows[i].reason, sizeof rows[i].reason);
        rows[i].ran = row_bool(r, (int)i, 4);
        ASSERT(rows[i].state < ATTEMPT_STATE_COUNT && rows[i].cause < CAUSE_COUNT);
    }
    *ret = rows;
    *ret_n = n;
    return true;
}

bool store_stage_breaker(struct store *s, int64_t stage_id, int64_t since, bool passed, int resumes,
                         struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    param_i64(&p, since);
    param_bool(&p, passed);
    param_i32(&p, resumes);
    return store_run(s, QUERY(STAGE_BREAKER), &p, NULL, err);
}

bool stage_last_attempt(struct store *s, int64_t stage_id, int64_t *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(STAGE_LAST_ATTEMPT), &p, &r, err)) {
        return false;
    }
    *ret = row_i64(r, 0, 0);
    return true;
}

bool view_promises(struct store *s, int64_t campaign_id, struct promise_row **ret, size_t *ret_n,
                   struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_PROMISES), &p, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    struct promise_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        int k = (int)i;
        rows[i] = (struct promise_row){.campaign_id = campaign_id,
                                       .stage_id = row_i64(r, k, 0),
                                       .task_id = row_i64(r, k, 1),
                                       .instances = row_int(r, k, 2),
                                       .since_us = row_time(r, k, 3),
                                       .promised_us = row_time(r, k, 4),
                                       .expected_us = row_time(r, k, 5),
                                       .latest_us = row_time(r, k, 6)};
    }
    *ret = rows;
    *ret_n = n;
    return true;
}

bool store_promise_put(struct store *s, const struct promise_row *row, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    ASSERT(row->since_us > 0);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, row->stage_id);
    param_i64(&p, row->campaign_id);
    param_i64(&p, row->task_id);
    param_i32(&p, row->instances);
    param_time(&p, row->since_us);
    param_time(&p, row->promised_us);
    param_time(&p, row->expected_us);
    param_time(&p, row->latest_us);
    return store_run(s, QUERY(PROMISE_PUT), &p, NULL, err);
}

bool store_promise_drop(struct store *s, int64_t stage_id, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    return store_run(s, QUERY(PROMISE_DROP), &p, NULL, err);
}

bool store_slots_correct(struct store *s, int64_t *ret_n, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    return store_run(s, QUERY(SLOTS_CORRECT), &p, ret_n, err);
}

bool store_slots_learned(struct store *s, const char *instance_type, enum market market,
                         int64_t foreign, usec_t foreign_us, int64_t refused_limit, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, instance_type);
    param_text(&p, market_name(market));
    param_i64(&p, foreign);
    param_i64(&p, foreign_us);
    param_i64_or_null(&p, refused_limit, -1);
    return store_run(s, QUERY(SLOTS_LEARNED), &p, NULL, err);
}

bool store_account_quota_put(struct store *s, enum account_quota kind, int64_t limit,
                             struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    ASSERT((unsigned)kind < ACCOUNT_QUOTA_COUNT);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, account_quota_word(kind));
    param_i64_or_null(&p, limit, -1);
    return store_run(s, QUERY(ACCOUNT_QUOTA_PUT), &p, NULL, err);
}

bool store_money_warned(struct store *s, const char *level, int64_t ref_id, int64_t ppm,
                        struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, level);
    param_i64(&p, ref_id);
    param_i64(&p, ppm);
    return store_run(s, QUERY(MONEY_WARNED), &p, NULL, err);
}

static void adopt_params(const struct adoption *a, int64_t epoch, uint8_t sha256[static 32],
                         struct params *p)
{
    const struct intent *in = &a->intent;
    hash_sha256(in->request.p, in->request.n, sha256);
    param_i64(PARAM(p, ATTEMPT_ADOPT, CAMPAIGN), in->campaign_id);
    param_i64(PARAM(p, ATTEMPT_ADOPT, STAGE), in->stage_id);
    param_i32(PARAM(p, ATTEMPT_ADOPT, SEQ), in->seq);
    param_i32(PARAM(p, ATTEMPT_ADOPT, N), in->n);
    param_i64(PARAM(p, ATTEMPT_ADOPT, EPOCH), epoch);
    param_text(PARAM(p, ATTEMPT_ADOPT, NAME), in->name.s);
    param_text(PARAM(p, ATTEMPT_ADOPT, IDENTITY_HASH), in->identity_hash);
    param_text(PARAM(p, ATTEMPT_ADOPT, INSTANCE_TYPE), in->instance_type);
    param_i32(PARAM(p, ATTEMPT_ADOPT, INSTANCES), in->instances);
    param_i32(PARAM(p, ATTEMPT_ADOPT, VOLUME_GB), in->volume_gb);
    param_i64(PARAM(p, ATTEMPT_ADOPT, MAX_RUNTIME_S), in->max_runtime_s);
    param_i64(PARAM(p, ATTEMPT_ADOPT, PRICE), in->price_musd_per_hour);
    param_i64(PARAM(p, ATTEMPT_ADOPT, RESERVE), in->reserve_musd);
    param_bytes(PARAM(p, ATTEMPT_ADOPT, REQUEST), in->request.p, in->request.n);
    param_bytes(PARAM(p, ATTEMPT_ADOPT, REQUEST_SHA256), sha256, 32);
    param_i64(PARAM(p, ATTEMPT_ADOPT, NOW), clock_wall_us());
    param_i64(PARAM(p, ATTEMPT_ADOPT, ATTEMPT), in->attempt_id);
    param_time(PARAM(p, ATTEMPT_ADOPT, CREATED), a->created_us);
    param_i64(PARAM(p, ATTEMPT_ADOPT, KEEP_ALIVE_S), in->keep_alive_s);
    param_text(PARAM(p, ATTEMPT_ADOPT, MARKET), market_name(in->market));
}

bool store_adopt(struct store *s, int64_t epoch, const struct adoption *a, int64_t *ret_task,
                 struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    ASSERT(a->intent.market == MARKET_ON_DEMAND || a->intent.keep_alive_s == 0);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    uint8_t sha256[32];
    adopt_params(a, epoch, sha256, &p);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(ATTEMPT_ADOPT), &p, &r, err)) {
        return false;
    }
    *ret_task = row_count(r) == 1 ? row_i64(r, 0, 0) : 0;
    s->events |= *ret_task != 0;
    AUTO_PARAMS struct params past = PARAMS_INIT;
    param_i64(&past, a->intent.attempt_id);
    return *ret_task == 0 || store_run(s, QUERY(ATTEMPT_IDS_PAST), &past, NULL, err);
}

bool newest_intent(struct store *s, usec_t *ret, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(NEWEST_INTENT), NULL, &r, err)) {
        return false;
    }
    *ret = row_count(r) == 1 ? row_time(r, 0, 0) : 0;
    return true;
}

bool void_intent(struct store *s, int64_t within_us, usec_t *ret, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, within_us);
    if (!store_exec(s, QUERY(VOID_INTENT), &p, &r, err)) {
        return false;
    }
    *ret = row_count(r) == 1 ? row_time(r, 0, 0) : 0;
    return true;
}

bool task_by_seq(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t seq, int64_t *ret,
                 struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    param_i32(&p, (int32_t)seq);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(TASK_BY_SEQ), &p, &r, err)) {
        return false;
    }
    *ret = row_count(r) == 1 ? row_i64(r, 0, 0) : 0;
    return true;
}
