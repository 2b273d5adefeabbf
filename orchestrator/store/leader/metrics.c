/* See metrics.h. */
#include "metrics.h"
#include "queries.h"
#include "store/pg/connection_private.h"
#include "store/pg/query.h"
#include "store/pg/tx.h"

#define NOTE_CHARS_MAX 300
#define NAMES_MAX      64

bool view_metric_sources(struct store *s, struct metric_source_row **ret, size_t *ret_n,
                         struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_METRIC_SOURCES), NULL, &r, err)) {
        return false;
    }
    *ret_n = (size_t)row_count(r);
    *ret = xcalloc(*ret_n + 1, sizeof **ret);
    for (int i = 0; i < row_count(r); i++) {
        struct metric_source_row *m = &(*ret)[i];
        m->attempt_id = row_i64(r, i, 0);
        m->campaign_id = row_i64(r, i, 1);
        row_text_into(r, i, 2, m->job.s, sizeof m->job.s);
        row_text_into(r, i, 3, m->place.stream, sizeof m->place.stream);
        row_text_into(r, i, 4, m->place.token, sizeof m->place.token);
        m->place.token_lines = row_i64(r, i, 5);
        m->place.lines = row_i64(r, i, 6);
        m->step = row_i64(r, i, 7);
        m->metrics_json = row_text_dup(r, i, 8);
    }
    return true;
}

bool store_metric_points(struct store *s, int64_t attempt_id, const struct metric_points *p,
                         struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params series = PARAMS_INIT;
    AUTO_PARAMS struct params points = PARAMS_INIT;
    AUTO_FREE int64_t *which = xcalloc(p->n + 1, sizeof *which);
    const char *found[NAMES_MAX];
    bool has[NAMES_MAX] = {false};
    size_t found_n = 0;
    ASSERT(p->names_n <= NAMES_MAX);
    for (size_t i = 0; i < p->n; i++) {
        ASSERT(p->name_i[i] >= 0 && p->name_i[i] < (int64_t)p->names_n);
        which[i] = p->name_i[i] + 1;
        if (!has[p->name_i[i]]) {
            has[p->name_i[i]] = true;
            found[found_n++] = p->names[p->name_i[i]];
        }
    }
    param_i64(&series, attempt_id);
    param_text_array(&series, found, found_n);
    param_i64(PARAM(&points, METRIC_POINTS_PUT, ATTEMPT), attempt_id);
    param_text_array(PARAM(&points, METRIC_POINTS_PUT, NAMES), p->names, p->names_n);
    param_i64_array(PARAM(&points, METRIC_POINTS_PUT, WHICH), which, p->n);
    param_i64_array(PARAM(&points, METRIC_POINTS_PUT, TIMES), p->at_us, p->n);
    param_i64_array(PARAM(&points, METRIC_POINTS_PUT, STEPS), p->step, p->n);
    param_f64_array(PARAM(&points, METRIC_POINTS_PUT, POINTS), p->value, p->n);
    return store_run(s, QUERY(METRIC_SERIES_PUT), &series, NULL, err) &&
           store_run(s, QUERY(METRIC_POINTS_PUT), &points, NULL, err);
}

bool store_metric_source(struct store *s, int64_t attempt_id, const struct metric_place *place,
                         int64_t step, const char *note, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, attempt_id);
    param_outside_text(&p, place->stream, sizeof place->stream);
    param_outside_text(&p, place->token, sizeof place->token);
    param_i64(&p, place->token_lines);
    param_i64(&p, place->lines);
    param_i64(&p, step);
    param_outside_text(&p, note, NOTE_CHARS_MAX);
    return store_run(s, QUERY(METRIC_SOURCE_PUT), &p, NULL, err);
}

bool store_metric_close(struct store *s, int64_t attempt_id, const char *const *names,
                        const double *values, size_t n, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, attempt_id);
    param_text_array(&p, names, n);
    param_f64_array(&p, values, n);
    return store_run(s, QUERY(METRIC_CLOSE), &p, NULL, err);
}

bool view_gate_values(struct store *s, int64_t stage_id, const char *metric, struct gate_run *ret,
                      size_t n, size_t *ret_n, bool *ret_complete, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, stage_id);
    param_text(&p, metric);
    param_i64(&p, (int64_t)n);
    if (!store_exec(s, QUERY(VIEW_GATE_VALUES), &p, &r, err)) {
        return false;
    }
    *ret_n = (size_t)row_count(r);
    *ret_complete = true;
    for (int i = 0; i < row_count(r); i++) {
        bool known = !row_null(r, i, 2);
        *ret_complete = *ret_complete && !row_bool(r, i, 1);
        ret[i] = (struct gate_run){.seq = row_i64(r, i, 0),
                                   .known = known,
                                   .value = known ? row_f64(r, i, 2) : 0,
                                   .step = row_i64(r, i, 3),
                                   .partly_read = row_bool(r, i, 4)};
    }
    return true;
}
