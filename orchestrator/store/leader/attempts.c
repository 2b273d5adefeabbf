/* Intents and their results. Each is one statement in sql/queries/attempts.sql, sent in pipelines.
 * The leader's memory proposes rows; the statement checks everything again on locked rows. */
#include "common/clock.h"
#include "common/hash.h"
#include "common/json.h"
#include "leader.h"
#include "pg_names.h"
#include "queries.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"

#define REASON_CHARS_MAX    1024
#define SIGNATURE_CHARS_MAX 200
#define ARN_CHARS_MAX       512
#define ATTEMPT_IDS_MAX     10000
#define INTENDS_MAX         1000
#define TRIES_BYTES_MAX     4096

bool attempt_ids(struct store *s, size_t n, int64_t *ret, struct err *err)
{
    ASSERT(n >= 1 && n <= ATTEMPT_IDS_MAX);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i32(&p, (int32_t)n);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(ATTEMPT_IDS), &p, &r, err)) {
        return false;
    }
    ASSERT(row_count(r) == (int)n);
    for (size_t i = 0; i < n; i++) {
        ret[i] = row_i64(r, (int)i, 0);
    }
    return true;
}

static bool intend_rows(struct store *s, const struct intent *in, size_t n, struct err *err)
{
    int64_t campaigns[INTENDS_MAX];
    int64_t stages[INTENDS_MAX];
    const char *types[INTENDS_MAX];
    const char *markets[INTENDS_MAX];
    for (size_t i = 0; i < n; i++) {
        campaigns[i] = in[i].campaign_id;
        stages[i] = in[i].stage_id;
        types[i] = in[i].instance_type;
        markets[i] = market_name(in[i].market);
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64_array(&p, campaigns, n);
    param_i64_array(&p, stages, n);
    param_text_array(&p, types, n);
    param_text_array(&p, markets, n);
    return store_run(s, QUERY(INTEND_ROWS), &p, NULL, err);
}

static void intend_params(const struct intent *in, int64_t epoch, usec_t now_us,
                          uint8_t sha256[static 32], struct params *p)
{
    ASSERT(in->n >= 1 && in->instances >= 1 && in->reserve_musd >= 0);
    hash_sha256(in->request.p, in->request.n, sha256);
    param_i64(p, in->campaign_id);
    param_i64(p, in->stage_id);
    param_i64(p, in->task_id);
    param_i32(p, in->n);
    param_i64(p, in->attempt_id);
    param_text(p, in->name.s);
    param_bytes(p, in->request.p, in->request.n);
    param_bytes(p, sha256, 32);
    param_text(p, in->identity_hash);
    param_text(p, in->instance_type);
    param_i32(p, in->instances);
    param_i32(p, in->volume_gb);
    param_i64(p, in->max_runtime_s);
    param_i64(p, in->price_musd_per_hour);
    param_i64(p, in->reserve_musd);
    param_i64(p, in->slot_limit);
    param_i64(p, epoch);
    param_i64(p, now_us);
    param_i32(p, in->seq);
    param_text(p, market_name(in->market));
    param_i64(p, in->keep_alive_s);
    param_i32(p, in->instance_type_i);
    param_i32(p, in->subnet_i);
    param_i64(p, in->pool_id);
    param_i64(p, (int64_t)in->fingerprint);
}

static bool intend_some(struct store *s, int64_t epoch, struct intent *in, size_t n,
                        struct err *err)
{
    usec_t now_us = clock_wall_us();
    AUTO_FREE struct params *params = xcalloc(n, sizeof *params);
    uint8_t sha256[PIPELINE_MAX][32];
    struct statement st[PIPELINE_MAX];
    PGresult *results[PIPELINE_MAX];
    for (size_t i = 0; i < n; i++) {
        intend_params(&in[i], epoch, now_us, sha256[i], &params[i]);
        st[i] = (struct statement){QUERY(INTEND), &params[i]};
    }
    bool good = store_pipeline(s, st, n, results, err);
    for (size_t i = 0; i < n; i++) {
        params_done(&params[i]);
        if (good) {
            row_text_into(results[i], 0, 0, in[i].refused, sizeof in[i].refused);
            in[i].taken = in[i].refused[0] == '\0';
            in[i].own_pool_id = row_i64_or(results[i], 0, 1, 0);
            s->events |= in[i].taken;
        }
    }
    results_clear(results, n);
    return good;
}

bool store_intend(struct store *s, int64_t epoch, struct intent *in, size_t n, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    ASSERT(n <= INTENDS_MAX);
    if (n == 0) {
        return true;
    }
    if (!intend_rows(s, in, n, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i += PIPELINE_MAX) {
        if (!intend_some(s, epoch, in + i, MIN(n - i, PIPELINE_MAX), err)) {
            return false;
        }
    }
    return true;
}

/* {"disk_full":1}; causes never tried are omitted. */
static void tries_json(const struct task_change_row *c, struct buf *b)
{
    struct json_out w;
    json_out_init(&w, b);
    json_out_object(&w, NULL);
    for (int i = 0; i < CAUSE_COUNT; i++) {
        if (c->tries[i] != 0) {
            json_out_i64(&w, cause_name((enum cause)i), c->tries[i]);
        }
    }
    json_out_end_object(&w);
    ASSERT(!b->overflow);
}

/* All that `record` can move besides the attempt's own row stays as it is. */
static bool moves_alone(const struct attempt_record *r)
{
    return !attempt_state_terminal(r->to) && !r->release && !r->settle && !r->task_moves &&
           !r->task_counts && !r->pool_moves && r->entries_n == 0 && r->change == NULL;
}

static void move_params(const struct attempt_record *r, struct params *p)
{
    param_i64(p, r->attempt_id);
    param_i16(p, (int16_t)r->from);
    param_i16(p, (int16_t)r->to);
    param_text(p, attempt_state_name(r->from));
    param_text(p, attempt_state_name(r->to));
    param_i16(p, (int16_t)r->cause);
    param_text(p, r->cause == CAUSE_NONE ? "" : cause_name(r->cause));
    param_outside_text(p, r->reason, REASON_CHARS_MAX);
    param_outside_text(p, r->arn, ARN_CHARS_MAX);
    param_time(p, r->created_us);
    param_time(p, r->started_us);
    param_time(p, r->ended_us);
}

static void record_attempt_params(const struct attempt_record *r, struct params *p)
{
    bool ends = attempt_state_terminal(r->to);
    move_params(r, p);
    param_bool(p, ends);
    param_bool(p, r->release || ends);
    param_bool(p, r->release || r->settle || ends);
    param_bool(p, r->settle);
    param_i64(p, r->billable_s);
    param_i64(p, r->cost_musd);
    param_bool(p, r->estimated);
    param_json(p, r->manifest_json);
}

static void record_task_params(const struct attempt_record *r, usec_t now_us, struct buf *tries,
                               struct params *p)
{
    param_bool(p, r->task_moves);
    param_i16(p, (int16_t)r->task_to);
    param_text(p, task_state_name(r->task_to));
    param_bool(p, r->task_counts);
    param_i64(p, r->not_before_us);
    param_i64(p, now_us);
    param_i64(p, r->rows_in);
    param_i64(p, r->successes);
    param_i64(p, r->failed_to_download);
    param_i64(p, r->failed_to_resize);
    param_i64(p, r->bytes);
    param_i64(p, r->run_seconds);
    param_outside_text(p, r->signature, SIGNATURE_CHARS_MAX);
    const struct task_change_row *c = r->change;
    param_i32(p, c == NULL ? 0 : c->instance_type_i);
    param_i32(p, c == NULL ? 0 : c->volume_gb);
    param_i64(p, c == NULL ? 0 : c->max_runtime_s);
    if (c != NULL) {
        tries_json(c, tries);
    }
    param_json(p, c == NULL ? NULL : buf_cstr(tries));
}

static void record_money_params(const struct attempt_record *r, struct params *p)
{
    param_entries(p, r->entries, r->entries_n);
    param_i64(p, r->open_musd);
    param_text(p, r->pool_moves ? pool_state_name(r->pool_to) : NULL);
    param_i64(p, r->retained_s);
    param_time(p, r->pool_expires_us);
    param_i64(p, r->warm_s);
    param_i64(p, r->warm_musd);
    param_i64(p, r->change == NULL ? 0 : (int64_t)r->change->signature_hash);
    param_i32(p, r->change == NULL ? 0 : r->change->same);
    param_i64(p, r->frees_pool_id);
    param_i16(p, (int16_t)r->failed_as);
    param_json(p, r->evidence_json);
}

static bool record_valid(const struct attempt_record *r, struct err *err)
{
    if (r->from != r->to && !attempt_edge(r->from, r->to)) {
        return err_set(err, ERR_INTERNAL, "attempt %lld: no edge from %s to %s",
                       (long long)r->attempt_id, attempt_state_name(r->from),
                       attempt_state_name(r->to));
    }
    if (r->task_moves && !task_edge(TASK_ACTIVE, r->task_to)) {
        return err_set(err, ERR_INTERNAL, "task %lld: no edge from active to %s",
                       (long long)r->task_id, task_state_name(r->task_to));
    }
    if (r->cost_musd < 0 || r->billable_s < 0 || r->warm_musd < 0 || r->warm_s < 0) {
        return err_set(err, ERR_INTERNAL, "attempt %lld: negative cost", (long long)r->attempt_id);
    }
    return true;
}

static bool record_happened(const struct attempt_record *r, const PGresult *res, struct err *err)
{
    if (row_i64(res, 0, 0) != 1) {
        return err_set(err, ERR_CONFLICT, "attempt %lld is no longer %s", (long long)r->attempt_id,
                       attempt_state_name(r->from));
    }
    if (row_bool(res, 0, 2)) {
        return err_set(err, ERR_INTERNAL, "attempt %lld ended and its money is not settled",
                       (long long)r->attempt_id);
    }
    if ((r->task_moves || r->task_counts) && row_i64(res, 0, 1) != 1) {
        return err_set(err, ERR_CONFLICT, "task %lld of attempt %lld is no longer active",
                       (long long)r->task_id, (long long)r->attempt_id);
    }
    return true;
}

static bool record_some(struct store *s, const struct attempt_record *r, size_t n, struct err *err)
{
    usec_t now_us = clock_wall_us();
    AUTO_FREE struct params *params = xcalloc(n, sizeof *params);
    struct buf tries[PIPELINE_MAX];
    struct statement st[PIPELINE_MAX];
    PGresult *results[PIPELINE_MAX];
    for (size_t i = 0; i < n; i++) {
        buf_init(&tries[i], TRIES_BYTES_MAX);
        if (moves_alone(&r[i])) {
            move_params(&r[i], &params[i]);
            param_json(&params[i], r[i].manifest_json);
            st[i] = (struct statement){QUERY(RECORD_MOVE), &params[i]};
            continue;
        }
        record_attempt_params(&r[i], &params[i]);
        record_task_params(&r[i], now_us, &tries[i], &params[i]);
        record_money_params(&r[i], &params[i]);
        st[i] = (struct statement){QUERY(RECORD), &params[i]};
    }
    bool sent = store_pipeline(s, st, n, results, err);
    bool good = sent;
    for (size_t i = 0; i < n; i++) {
        good = good && record_happened(&r[i], results[i], err);
        s->events |= r[i].from != r[i].to || r[i].task_moves;
        params_done(&params[i]);
        buf_done(&tries[i]);
    }
    results_clear(results, n);
    return good;
}

bool store_record(struct store *s, const struct attempt_record *r, size_t n, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    for (size_t i = 0; i < n; i++) {
        if (!record_valid(&r[i], err)) {
            return false;
        }
    }
    for (size_t i = 0; i < n; i += PIPELINE_MAX) {
        if (!record_some(s, r + i, MIN(n - i, PIPELINE_MAX), err)) {
            return false;
        }
    }
    return true;
}

bool store_attempts_unwant(struct store *s, int64_t campaign_id, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, campaign_id);
    return store_exec(s, QUERY(ATTEMPTS_UNWANT), &p, &r, err);
}

bool store_attempt_hung(struct store *s, int64_t attempt_id, enum cause cause, const char *reason,
                        struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, attempt_id);
    param_i16(&p, (int16_t)cause);
    param_outside_text(&p, reason, REASON_CHARS_MAX);
    return store_run(s, QUERY(ATTEMPT_HUNG), &p, NULL, err);
}
