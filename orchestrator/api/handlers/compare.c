/* Two training runs side by side: in what they differ, what that made of time, cost and metrics. */
#include "api/server/reply.h"
#include "api/server/routes.h"
#include "api/server/scope.h"
#include "core/metrics/break_even.h"
#include "parts.h"
#include "runs.h"
#include "store/api/parts.h"
#include "store/api/tokens.h"

struct side { /* one of the two */
    int64_t campaign, part, attempt;
    char stage[64];
    struct apidb_run run;
    struct stage_settings *settings;
    struct apidb_series series[APIDB_RUN_SERIES_MAX];
    int series_n;
    struct pace pace;
    bool paced;
    struct metric_sample step_s; /* seconds a step, of each two neighbours */
};

struct compare_request {
    int64_t warm_up, curve; /* points of a curve; 0: no curves */
};

static bool fault(const char *name, struct err *err)
{
    return err_set(
        err, ERR_MALFORMED,
        "query parameter '%s': STAGE[/PART[/ATTEMPT]], before it c-N/ for another campaign", name);
}

/* [c-N/]STAGE[/PART[/ATTEMPT]] */
static bool place_read(const struct api_req *r, const char *name, int64_t campaign,
                       struct side *ret, struct err *err)
{
    struct str rest = str_of(req_query(r, name));
    struct str stage = str_split(&rest, '/');
    *ret = (struct side){.campaign = campaign};
    if (str_starts(stage, "c-") && rest.n > 0 &&
        parse_i64((struct str){stage.p + 2, stage.n - 2}, 1, INT64_MAX, &ret->campaign, NULL)) {
        stage = str_split(&rest, '/');
    }
    if (stage.n == 0 || stage.n >= sizeof ret->stage) {
        return fault(name, err);
    }
    memcpy(ret->stage, stage.p, stage.n);
    int64_t *const numbers[] = {&ret->part, &ret->attempt};
    for (size_t i = 0; i < ARRAY_LEN(numbers) && rest.n > 0; i++) {
        if (!parse_i64(str_split(&rest, '/'), 0, INT32_MAX, numbers[i], NULL)) {
            return fault(name, err);
        }
    }
    return rest.n == 0 || fault(name, err);
}

/* What a token may not see is not there. */
static bool may_see(struct api_req *r, const struct side *s, struct err *err)
{
    char project[128];
    return apidb_project_of(r->db, s->campaign, 0, NULL, project, err) &&
           (scope_has(r, project) || err_set(err, ERR_NOT_FOUND, "there is no such campaign"));
}

static bool run_read(struct api_req *r, struct side *s, struct err *err)
{
    int64_t task;
    struct apidb_stage_row stage;
    AUTO_JSON json_t *spec = NULL;
    if (!may_see(r, s, err) || !apidb_stage_find(r->db, s->campaign, s->stage, &stage, err) ||
        !apidb_part_id(r->db, s->campaign, stage.id, s->part, &task, err)) {
        return false;
    }
    if (!apidb_run(r->db, task, s->attempt, &s->run, err)) {
        return err_wrap(err, "c-%lld/%s/%lld", (long long)s->campaign, stage.name,
                        (long long)s->part);
    }
    if (!run_spec(r, s->campaign, &spec, err) ||
        !apidb_run_series(r->db, s->run.attempt_id, s->series, &s->series_n, err)) {
        return false;
    }
    const json_t *stored = run_stage(spec, s->stage);
    if (stored == NULL) {
        return err_set(err, ERR_NOT_FOUND, "the campaign file has no stage '%.64s'", s->stage);
    }
    s->settings = run_settings(r, stored, &s->run);
    return true;
}

/* From the series with the most points: the pace after the warm-up, the seconds of each step. */
static bool pace_read(struct api_req *r, struct side *s, int64_t warm_up, struct err *err)
{
    const struct apidb_series *most = NULL;
    AUTO_FREE struct apidb_point *p = NULL;
    size_t n = 0, values_n = 0;
    for (int i = 0; i < s->series_n; i++) {
        most = most == NULL || s->series[i].points > most->points ? &s->series[i] : most;
    }
    if (most == NULL || s->run.began_us == 0) {
        return true;
    }
    if (!apidb_run_values(r->db, most, &p, &n, err)) {
        return false;
    }
    size_t from = MAX(run_warm_n(p, n, warm_up), (size_t)1);
    AUTO_FREE double *values = xcalloc(n + 1, sizeof *values);
    for (size_t i = from; i < n; i++) {
        double steps = (double)p[i].step - (double)p[i - 1].step;
        if (steps > 0) {
            values[values_n++] = (double)(p[i].at_us - p[i - 1].at_us) / USEC_PER_SEC / steps;
        }
    }
    sample_of(values, values_n, &s->step_s);
    s->paced =
        from < n &&
        pace_of(p[from - 1].step, (double)(p[from - 1].at_us - s->run.began_us) / USEC_PER_SEC,
                p[n - 1].step, (double)(p[n - 1].at_us - s->run.began_us) / USEC_PER_SEC, &s->pace);
    return true;
}

static void side_out(struct json_out *w, const char *key, const struct side *s)
{
    json_out_object(w, key);
    AUTO_FREE char *name = xasprintf("c-%lld/%s/%lld/%lld", (long long)s->campaign, s->stage,
                                     (long long)s->run.seq, (long long)s->run.n);
    json_out_str(w, "run", name);
    json_out_bool(w, "succeeded", s->run.good);
    json_out_i64(w, "instances", s->run.instances);
    json_out_str(w, "instance_type", s->run.instance_type);
    json_out_double(w, "seconds", s->run.seconds);
    json_out_i64(w, "micro_usd", s->run.cost_musd);
    if (s->paced) {
        json_out_double(w, "overhead_seconds", s->pace.overhead_s);
    } else {
        json_out_null(w, "overhead_seconds");
    }
    json_out_end_object(w);
}

static void settings_out(struct api_req *r, struct json_out *w, const struct side *a,
                         const struct side *b)
{
    struct stage_difference *d =
        arena_alloc(&r->arena, sizeof *d * (size_t)(2 * STAGE_SETTINGS_MAX));
    int equal, n = stage_settings_differ(a->settings, b->settings, d, &equal);
    json_out_array(w, "settings");
    for (int i = 0; i < n; i++) {
        json_out_object(w, NULL);
        json_out_str(w, "key", d[i].key);
        json_out_str(w, "a", d[i].a);
        json_out_str(w, "b", d[i].b);
        json_out_end_object(w);
    }
    json_out_end_array(w);
    json_out_i64(w, "settings_equal", equal);
}

/* Both samples, the difference of their means, and whether it is more than chance. */
static void samples_out(struct json_out *w, const struct metric_sample *a,
                        const struct metric_sample *b)
{
    struct sample_test test;
    run_sample_out(w, "a", a);
    run_sample_out(w, "b", b);
    json_out_double(w, "delta", b->mean - a->mean);
    if (a->mean != 0) {
        json_out_double(w, "delta_percent",
                        100 * (b->mean - a->mean) / (a->mean < 0 ? -a->mean : a->mean));
    } else {
        json_out_null(w, "delta_percent");
    }
    if (!sample_welch(a, b, &test)) {
        json_out_null(w, "p");
        json_out_null(w, "significant");
        return;
    }
    json_out_double(w, "t", test.t);
    json_out_double(w, "df", test.df);
    json_out_double(w, "p", test.p);
    json_out_bool(w, "significant", test.p < SAMPLE_SIGNIFICANT_P);
}

static const struct apidb_series *series_of(const struct side *s, const char *name)
{
    for (int i = 0; i < s->series_n; i++) {
        if (strcmp(s->series[i].name, name) == 0) {
            return &s->series[i];
        }
    }
    return NULL;
}

/* One metric of both; curve 0: without the curves. */
static bool metric_out(struct api_req *r, struct json_out *w, const struct side *a,
                       const struct side *b, const struct apidb_series *in_a,
                       const struct apidb_series *in_b, const struct compare_request *q,
                       struct err *err)
{
    struct metric_sample sa, sb;
    if (!run_metric(r, &a->run, in_a->name, q->warm_up, &sa, err) ||
        !run_metric(r, &b->run, in_a->name, q->warm_up, &sb, err)) {
        return false;
    }
    json_out_object(w, NULL);
    json_out_str(w, "name", in_a->name);
    json_out_double(w, "last_a", in_a->last);
    json_out_double(w, "last_b", in_b->last);
    if (sa.n > 0 && sb.n > 0) {
        samples_out(w, &sa, &sb);
    }
    if (q->curve > 0 && (!run_curve_out(r, w, "curve_a", &a->run, in_a->name, q->curve, err) ||
                         !run_curve_out(r, w, "curve_b", &b->run, in_a->name, q->curve, err))) {
        return false;
    }
    json_out_end_object(w);
    return true;
}

static bool metrics_out(struct api_req *r, struct json_out *w, const struct side *a,
                        const struct side *b, const struct compare_request *q, struct err *err)
{
    json_out_array(w, "metrics");
    for (int i = 0; i < a->series_n; i++) {
        const struct apidb_series *other = series_of(b, a->series[i].name);
        if (other != NULL && !metric_out(r, w, a, b, &a->series[i], other, q, err)) {
            return false;
        }
    }
    json_out_end_array(w);
    return true;
}

/* Seconds a step of both, and from which step on the one with the quicker steps is ahead. */
static void pace_out(struct json_out *w, const struct side *a, const struct side *b)
{
    int64_t step = 0;
    if (!a->paced || !b->paced) {
        json_out_null(w, "pace");
        return;
    }
    bool b_quicker = b->pace.step_s < a->pace.step_s;
    enum ahead ahead =
        b_quicker ? break_even(&a->pace, &b->pace, &step) : break_even(&b->pace, &a->pace, &step);
    json_out_object(w, "pace");
    if (a->step_s.n > 0 && b->step_s.n > 0) {
        json_out_object(w, "step_seconds");
        samples_out(w, &a->step_s, &b->step_s);
        json_out_end_object(w);
    } else {
        json_out_null(w, "step_seconds");
    }
    json_out_str(w, "quicker", b_quicker ? "b" : "a");
    json_out_bool(w, "ahead_from_start", ahead == AHEAD_ALWAYS);
    if (ahead == AHEAD_FROM) {
        json_out_i64(w, "break_even_step", step);
    } else {
        json_out_null(w, "break_even_step");
    }
    json_out_end_object(w);
}

bool compare_get(struct api_req *r, struct err *err)
{
    int64_t campaign = req_id(r, 0);
    const struct compare_request q = {.warm_up = run_warm_up(r), .curve = req_number(r, "points")};
    struct side *a = arena_alloc(&r->arena, sizeof *a), *b = arena_alloc(&r->arena, sizeof *b);
    struct json_out w;
    if (!place_read(r, "a", campaign, a, err) || !place_read(r, "b", campaign, b, err) ||
        !req_db(r, err) || !run_read(r, a, err) || !run_read(r, b, err) ||
        !pace_read(r, a, q.warm_up, err) || !pace_read(r, b, q.warm_up, err)) {
        return false;
    }
    json_out_init(&w, &r->out);
    json_out_object(&w, NULL);
    side_out(&w, "a", a);
    side_out(&w, "b", b);
    settings_out(r, &w, a, b);
    pace_out(&w, a, b);
    if (!metrics_out(r, &w, a, b, &q, err)) {
        return false;
    }
    json_out_end_object(&w);
    buf_add_cstr(&r->out, "\n");
    return reply_out(r, 200);
}
