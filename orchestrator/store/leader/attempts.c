/* Intents and their results. Each is one statement in sql/queries/attempts.sql, sent in pipelines.
 * The leader's memory proposes rows; the statement checks everything again on locked rows. */
#include "attempts.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/json.h"
#include "pg_names.h"
#include "queries.h"
#include "reason.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"
#include "store/rows/view.h"

#define SIGNATURE_CHARS_MAX 200
#define ARN_CHARS_MAX       512
#define ATTEMPT_IDS_MAX     10000
#define INTENDS_MAX         1000

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
    param_i64(PARAM(p, INTEND, CAMPAIGN), in->campaign_id);
    param_i64(PARAM(p, INTEND, STAGE), in->stage_id);
    param_i64(PARAM(p, INTEND, TASK), in->task_id);
    param_i32(PARAM(p, INTEND, N), in->n);
    param_i64(PARAM(p, INTEND, ATTEMPT), in->attempt_id);
    param_text(PARAM(p, INTEND, NAME), in->name.s);
    param_bytes(PARAM(p, INTEND, REQUEST), in->request.p, in->request.n);
    param_bytes(PARAM(p, INTEND, REQUEST_SHA256), sha256, 32);
    param_text(PARAM(p, INTEND, IDENTITY_HASH), in->identity_hash);
    param_text(PARAM(p, INTEND, INSTANCE_TYPE), in->instance_type);
    param_i32(PARAM(p, INTEND, INSTANCES), in->instances);
    param_i32(PARAM(p, INTEND, VOLUME_GB), in->volume_gb);
    param_i64(PARAM(p, INTEND, MAX_RUNTIME_S), in->max_runtime_s);
    param_i64(PARAM(p, INTEND, PRICE), in->price_musd_per_hour);
    param_i64(PARAM(p, INTEND, RESERVE), in->reserve_musd);
    param_i64(PARAM(p, INTEND, SLOT_LIMIT), in->slot_limit);
    param_i64(PARAM(p, INTEND, EPOCH), epoch);
    param_i64(PARAM(p, INTEND, NOW), now_us);
    param_i32(PARAM(p, INTEND, PART), in->seq);
    param_text(PARAM(p, INTEND, MARKET), market_name(in->market));
    param_i64(PARAM(p, INTEND, KEEP_ALIVE_S), in->keep_alive_s);
    param_i32(PARAM(p, INTEND, RUNG), in->instance_type_i);
    param_i32(PARAM(p, INTEND, SUBNET), in->subnet_i);
    param_i64(PARAM(p, INTEND, POOL_TAKEN), in->pool_id);
    param_i64(PARAM(p, INTEND, FINGERPRINT), (int64_t)in->fingerprint);
    param_bool(PARAM(p, INTEND, COLLECTS), in->collects);
    param_outside_text(PARAM(p, INTEND, REASON), in->no_request != NULL ? in->no_request : "",
                       REASON_CHARS_MAX);
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
            in[i].part_spent_musd = row_i64(results[i], 0, 2);
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

/* What `record` and `record_move` share. */
#define MOVE_PARAMS(QUERY, r, p)                                                                   \
    do {                                                                                           \
        const char *cause = (r)->cause == CAUSE_NONE ? "" : cause_name((r)->cause);                \
        param_i64(PARAM(p, QUERY, ATTEMPT), (r)->attempt_id);                                      \
        param_i16(PARAM(p, QUERY, FROM_STATE), (int16_t)(r)->from);                                \
        param_i16(PARAM(p, QUERY, TO_STATE), (int16_t)(r)->to);                                    \
        param_text(PARAM(p, QUERY, FROM_NAME), attempt_state_name((r)->from));                     \
        param_text(PARAM(p, QUERY, TO_NAME), attempt_state_name((r)->to));                         \
        param_i16(PARAM(p, QUERY, CAUSE), (int16_t)(r)->cause);                                    \
        param_text(PARAM(p, QUERY, CAUSE_NAME), cause);                                            \
        param_outside_text(PARAM(p, QUERY, REASON), (r)->reason, REASON_CHARS_MAX);                \
        param_outside_text(PARAM(p, QUERY, ARN), (r)->arn, ARN_CHARS_MAX);                         \
        param_time(PARAM(p, QUERY, CREATED), (r)->created_us);                                     \
        param_time(PARAM(p, QUERY, STARTED), (r)->started_us);                                     \
        param_time(PARAM(p, QUERY, ENDED), (r)->ended_us);                                         \
        param_json(PARAM(p, QUERY, MANIFEST), (r)->manifest_json);                                 \
    } while (0)

static void record_attempt_params(const struct attempt_record *r, struct params *p)
{
    bool ends = attempt_state_terminal(r->to);
    MOVE_PARAMS(RECORD, r, p);
    param_bool(PARAM(p, RECORD, TERMINAL), ends);
    param_bool(PARAM(p, RECORD, RELEASE), r->release || ends);
    param_bool(PARAM(p, RECORD, MONEY_BACK), r->release || r->settle || ends);
    param_bool(PARAM(p, RECORD, SETTLE), r->settle);
    param_i64(PARAM(p, RECORD, BILLABLE_S), r->billable_s);
    param_i64(PARAM(p, RECORD, COST), r->cost_musd);
    param_bool(PARAM(p, RECORD, ESTIMATED), r->estimated);
}

static void record_task_params(const struct attempt_record *r, usec_t now_us, struct buf *tries,
                               struct params *p)
{
    param_bool(PARAM(p, RECORD, TASK_MOVES), r->task_moves);
    param_i16(PARAM(p, RECORD, TASK_TO), (int16_t)r->task_to);
    param_text(PARAM(p, RECORD, TASK_TO_NAME), task_state_name(r->task_to));
    param_bool(PARAM(p, RECORD, COUNTS), r->task_counts);
    param_i64(PARAM(p, RECORD, NOT_BEFORE), r->not_before_us);
    param_i64(PARAM(p, RECORD, NOW), now_us);
    param_i64(PARAM(p, RECORD, ROWS_IN), r->rows_in);
    param_i64(PARAM(p, RECORD, SUCCESSES), r->successes);
    param_i64(PARAM(p, RECORD, FAILED_TO_DOWNLOAD), r->failed_to_download);
    param_i64(PARAM(p, RECORD, FAILED_TO_RESIZE), r->failed_to_resize);
    param_i64(PARAM(p, RECORD, BYTES), r->bytes);
    param_i64(PARAM(p, RECORD, RUN_SECONDS), r->run_seconds);
    param_outside_text(PARAM(p, RECORD, SIGNATURE), r->signature, SIGNATURE_CHARS_MAX);
    const struct task_change_row *c = r->change;
    param_i32(PARAM(p, RECORD, CHANGE_RUNG), c == NULL ? 0 : c->instance_type_i);
    param_i32(PARAM(p, RECORD, CHANGE_VOLUME_GB), c == NULL ? 0 : c->volume_gb);
    param_i64(PARAM(p, RECORD, CHANGE_MAX_RUNTIME_S), c == NULL ? 0 : c->max_runtime_s);
    if (c != NULL) {
        tries_json(c, tries);
    }
    param_json(PARAM(p, RECORD, CHANGE_TRIES), c == NULL ? NULL : buf_cstr(tries));
}

static void record_money_params(const struct attempt_record *r, struct params *p)
{
    _Static_assert(SQL_RECORD_P_ENTRY_SECONDS == SQL_RECORD_P_ENTRY_KINDS + 4, "side by side");
    param_entries(PARAM(p, RECORD, ENTRY_KINDS), r->entries, r->entries_n);
    param_i64(PARAM(p, RECORD, LEFT_OPEN), r->open_musd);
    param_text(PARAM(p, RECORD, POOL_TO), r->pool_moves ? pool_state_name(r->pool_to) : NULL);
    param_i64(PARAM(p, RECORD, RETAINED_S), r->retained_s);
    param_time(PARAM(p, RECORD, EXPIRES), r->pool_expires_us);
    param_i64(PARAM(p, RECORD, WARM_S), r->warm_s);
    param_i64(PARAM(p, RECORD, WARM_COST), r->warm_musd);
    param_i64(PARAM(p, RECORD, CHANGE_SIGNATURE),
              r->change == NULL ? 0 : (int64_t)r->change->signature_hash);
    param_i32(PARAM(p, RECORD, CHANGE_SAME), r->change == NULL ? 0 : r->change->same);
    param_i64(PARAM(p, RECORD, FREED_POOL), r->frees_pool_id);
    param_i16(PARAM(p, RECORD, FAILED_AS), (int16_t)r->failed_as);
    param_outside_text(PARAM(p, RECORD, ARTIFACTS), r->artifacts, REASON_CHARS_MAX);
    param_json(PARAM(p, RECORD, EVIDENCE), r->evidence_json);
    param_i64_array(PARAM(p, RECORD, PHASES), r->phases, r->has_phases ? PHASE_FIGURES_N : 0);
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

static bool record_some(struct store *s, struct attempt_record *r, size_t n, struct err *err)
{
    usec_t now_us = clock_wall_us();
    AUTO_FREE struct params *params = xcalloc(n, sizeof *params);
    struct buf tries[PIPELINE_MAX];
    struct statement st[PIPELINE_MAX];
    PGresult *results[PIPELINE_MAX];
    for (size_t i = 0; i < n; i++) {
        buf_init(&tries[i], TRIES_BYTES_MAX);
        if (moves_alone(&r[i])) {
            MOVE_PARAMS(RECORD_MOVE, &r[i], &params[i]);
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
        r[i].idle_again = good ? row_i64(results[i], 0, 3) : 0;
        s->events |= r[i].from != r[i].to || r[i].task_moves;
        params_done(&params[i]);
        buf_done(&tries[i]);
    }
    results_clear(results, n);
    return good;
}

bool store_record(struct store *s, struct attempt_record *r, size_t n, struct err *err)
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
