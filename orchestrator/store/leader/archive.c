/* See archive.h. archive.phase counts through `deletes`; behind them come the campaign's tables. */
#include "archive.h"
#include "queries.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"

bool store_archive_subject(struct store *s, int64_t campaign_id, struct archive_subject *ret,
                           struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, campaign_id);
    if (!store_exec(s, QUERY(ARCHIVE_SUBJECT), &p, &r, err)) {
        return false;
    }
    *ret = (struct archive_subject){.state = CAMPAIGN_STATE_COUNT};
    if (row_count(r) > 0) {
        ret->state = campaign_state_parse(row_text(r, 0, 0));
        ret->active = row_i64(r, 0, 1);
    }
    return true;
}

bool store_archive_drop(struct store *s, int64_t campaign_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    return store_run(s, QUERY(ARCHIVE_DROP), &p, NULL, err);
}

/* Each returns how many rows it has deleted; 0: the next one's turn. */
static const struct {
    const char *name, *sql;
    bool after; /* takes the last attempt that is deleted */
} deletes[] = {
    {QUERY(ARCHIVE_ATTEMPTS), true},  {QUERY(ARCHIVE_METRICS), false},
    {QUERY(ARCHIVE_FAILURES), false}, {QUERY(ARCHIVE_CHANGES), false},
    {QUERY(ARCHIVE_PARTS), false},
};

static bool delete_some(struct store *s, int phase, int64_t campaign_id, int64_t n_max,
                        int64_t after, int64_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, campaign_id);
    param_i64(&p, n_max);
    if (deletes[phase].after) {
        param_i64(&p, after);
    }
    if (!store_exec(s, deletes[phase].name, deletes[phase].sql, &p, &r, err)) {
        return false;
    }
    *ret_n = row_i64(r, 0, 0);
    return true;
}

static bool next_phase(struct store *s, int64_t campaign_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    return store_run(s, QUERY(ARCHIVE_PHASE_NEXT), &p, NULL, err);
}

static bool end(struct store *s, int64_t campaign_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_PARAMS struct params q = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&q, campaign_id);
    return store_run(s, QUERY(ARCHIVE_TABLES), &p, NULL, err) &&
           store_run(s, QUERY(ARCHIVE_END), &q, NULL, err);
}

bool store_archive_step(struct store *s, int64_t campaign_id, int64_t n_max,
                        struct archive_progress *ret, struct err *err)
{
    ASSERT(s->role == STORE_LEADER && tx_open(s) && n_max > 0);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    int64_t n = 0;
    param_i64(&p, campaign_id);
    if (!store_exec(s, QUERY(ARCHIVE_PHASE), &p, &r, err)) {
        return false;
    }
    if (row_count(r) == 0) {
        *ret = (struct archive_progress){.over = true};
        return true;
    }
    if (row_bool(r, 0, 3)) { /* a folder was named a moment ago */
        *ret = (struct archive_progress){.attempts = row_i64(r, 0, 2)};
        return true;
    }
    int phase = row_int(r, 0, 0);
    struct archive_progress progress = {.attempts = row_i64(r, 0, 2),
                                        .over = phase >= (int)ARRAY_LEN(deletes)};
    bool ok = progress.over
                  ? end(s, campaign_id, err)
                  : delete_some(s, phase, campaign_id, n_max, row_i64(r, 0, 1), &n, err) &&
                        (n > 0 || next_phase(s, campaign_id, err));
    progress.attempts += phase == 0 ? n : 0;
    if (ok) {
        *ret = progress;
    }
    return ok;
}
