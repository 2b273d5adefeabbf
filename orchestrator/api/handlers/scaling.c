/* The scaling table of a matrix: what more instances made of the same work. */
#include "core/metrics/scaling.h"
#include "api/server/reply.h"
#include "api/server/routes.h"
#include "runs.h"
#include "store/api/parts.h"
#include <assert.h>

#define EPOCH_DEFAULT 1000000 /* units of a metric */

struct scaling_request {
    int64_t campaign;
    const char *group, *metric; /* metric NULL: by the time of whole runs */
    int64_t epoch, deadline_s, warm_up;
    struct apidb_run runs[APIDB_RUNS_MAX]; /* of the group, in the table */
    struct metric_sample rates[APIDB_RUNS_MAX];
    int n;
    struct apidb_run out[APIDB_RUNS_MAX]; /* of the group, left out */
    const char *why[APIDB_RUNS_MAX];
    int out_n;
};

static bool query_read(struct api_req *r, struct scaling_request *t, struct err *err)
{
    const char *deadline = req_query(r, "deadline");
    t->group = req_query(r, "group");
    t->metric = req_query(r, "metric");
    t->deadline_s = 0;
    t->epoch = req_number(r, "epoch");
    t->warm_up = run_warm_up(r);
    t->campaign = req_id(r, 0);
    if (deadline != NULL &&
        !parse_duration_s(str_of(deadline), 1, INT32_MAX, &t->deadline_s, err)) {
        return err_set(err, ERR_MALFORMED, "query parameter 'deadline': a time, as 90m or 10h");
    }
    if (t->metric == NULL && t->epoch > 0) {
        return err_set(
            err, ERR_MALFORMED,
            "query parameter 'epoch' counts units of a metric: metric=images_per_second");
    }
    t->epoch = t->metric != NULL && t->epoch == 0 ? EPOCH_DEFAULT : t->epoch;
    return true;
}

static const char *group_of(const json_t *spec, const char *stage)
{
    return json_string_value(json_object_get(run_stage(spec, stage), "group"));
}

/* Without ?group= the campaign's only matrix. */
static bool group_find(struct scaling_request *t, const json_t *spec, struct err *err)
{
    AUTO_BUF struct buf names = BUF_INIT(8192);
    const char *last = "";
    int n = 0;
    bool found = false;
    size_t i;
    const json_t *stage;
    json_array_foreach(json_object_get(spec, "stages"), i, stage)
    {
        const char *group = json_string_value(json_object_get(stage, "group"));
        if (group != NULL && strcmp(group, last) != 0) { /* rows stand together */
            buf_addf(&names, "%s%s", n++ > 0 ? ", " : "", group);
            found |= t->group != NULL && strcmp(group, t->group) == 0;
            last = group;
        }
    }
    if (n == 0) {
        return err_set(err, ERR_CONFLICT,
                       "c-%lld has no matrix: a scaling table is one of its rows",
                       (long long)t->campaign);
    }
    if (t->group != NULL) {
        return found || err_set(err, ERR_NOT_FOUND, "c-%lld has no matrix '%.64s', but: %.300s",
                                (long long)t->campaign, t->group, buf_cstr(&names));
    }
    t->group = last;
    return n == 1 ||
           err_set(err, ERR_INVALID, "which matrix? group= one of: %.300s", buf_cstr(&names));
}

static void leave_out(struct scaling_request *t, const struct apidb_run *run, const char *why)
{
    t->out[t->out_n] = *run;
    t->why[t->out_n++] = why;
}

static bool runs_read(struct api_req *r, struct scaling_request *t, const json_t *spec,
                      struct err *err)
{
    struct apidb_run all[APIDB_RUNS_MAX];
    int n;
    if (!apidb_runs(r->db, t->campaign, all, &n, err)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        struct metric_sample rate = {0};
        const char *group = group_of(spec, all[i].stage);
        if (group == NULL || strcmp(group, t->group) != 0) {
            continue;
        }
        if (all[i].attempt_id != 0 && t->metric != NULL &&
            !run_metric(r, &all[i], t->metric, t->warm_up, &rate, err)) {
            return false;
        }
        if (all[i].tasks != 1) {
            leave_out(t, &all[i], "it is not one run");
        } else if (all[i].attempt_id == 0) {
            leave_out(t, &all[i], "it has not succeeded yet");
        } else if (t->metric != NULL && !(rate.median > 0)) {
            leave_out(t, &all[i], "it printed no value of the metric after its warm-up");
        } else if (!(all[i].seconds > 0)) {
            leave_out(t, &all[i], "how long it ran is not known");
        } else {
            t->rates[t->n] = rate;
            t->runs[t->n++] = all[i];
        }
    }
    return t->n > 0 ||
           err_set(err, ERR_CONFLICT, "no run of c-%lld/%.64s can be in a table: %s",
                   (long long)t->campaign, t->group, t->out_n > 0 ? t->why[0] : "it has none");
}

/* May the runs of the matrix differ in that key? */
static bool scales(const json_t *stage, const char *key)
{
    size_t i;
    const json_t *v;
    if (strcmp(key, "instance_count") == 0) {
        return true;
    }
    json_array_foreach(json_object_get(stage, "scales_with"), i, v)
    {
        const char *has = json_string_value(v);
        size_t n = has != NULL ? strlen(has) : 0;
        if (n > 0 && strncmp(key, has, n) == 0 && (key[n] == '\0' || key[n] == '.')) {
            return true;
        }
    }
    return false;
}

/* Runs that differ in more than that are of two tables: all differences are named. */
static bool runs_fit(struct api_req *r, const struct scaling_request *t, const json_t *spec,
                     struct err *err)
{
    struct stage_difference *d =
        arena_alloc(&r->arena, sizeof *d * (size_t)(2 * STAGE_SETTINGS_MAX));
    const json_t *stage = run_stage(spec, t->runs[0].stage);
    const struct stage_settings *first = run_settings(r, stage, &t->runs[0]);
    for (int i = 1; i < t->n; i++) {
        const struct stage_settings *other =
            run_settings(r, run_stage(spec, t->runs[i].stage), &t->runs[i]);
        AUTO_BUF struct buf text = BUF_INIT(65536);
        int equal, n = stage_settings_differ(first, other, d, &equal);
        for (int k = 0; k < n; k++) {
            if (!scales(stage, d[k].key)) {
                buf_addf(&text, "%s%s (%.60s, %.60s)", text.n > 0 ? ", " : "", d[k].key,
                         d[k].a != NULL ? d[k].a : "none", d[k].b != NULL ? d[k].b : "none");
            }
        }
        if (text.n > 0) {
            return err_set(
                err, ERR_CONFLICT,
                "%s and %s differ in more than instances: %.400s; name it in scales_with "
                "of the matrix, or see drover compare",
                t->runs[0].stage, t->runs[i].stage, buf_cstr(&text));
        }
    }
    return true;
}

static void row_out(struct json_out *w, const struct scaling_request *t, int i,
                    const struct scaling_row *row)
{
    const struct apidb_run *run = &t->runs[i];
    json_out_object(w, NULL);
    json_out_str(w, "stage", run->stage);
    json_out_i64(w, "attempt", run->n);
    json_out_i64(w, "instances", run->instances);
    json_out_str(w, "instance_type", run->instance_type);
    json_out_double(w, "run_seconds", run->seconds);
    json_out_i64(w, "run_micro_usd", run->cost_musd);
    run_sample_out(w, "rate", &t->rates[i]);
    json_out_double(w, "speedup", row->speedup);
    json_out_double(w, "efficiency", row->efficiency);
    json_out_double(w, "epoch_seconds", row->seconds);
    json_out_i64(w, "epoch_micro_usd", row->musd);
    json_out_bool(w, "in_time", row->in_time);
    json_out_bool(w, "cheapest", row->cheapest);
    json_out_end_object(w);
}

static void table_out(struct json_out *w, const struct scaling_request *t,
                      const struct scaling_row *rows)
{
    json_out_object(w, NULL);
    json_out_str(w, "group", t->group);
    json_out_str(w, "metric", t->metric);
    if (t->epoch > 0) {
        json_out_i64(w, "epoch", t->epoch);
    } else {
        json_out_null(w, "epoch");
    }
    if (t->deadline_s > 0) {
        json_out_i64(w, "deadline_seconds", t->deadline_s);
    } else {
        json_out_null(w, "deadline_seconds");
    }
    json_out_array(w, "rows");
    for (int i = 0; i < t->n; i++) {
        row_out(w, t, i, &rows[i]);
    }
    json_out_end_array(w);
    json_out_array(w, "left_out");
    for (int i = 0; i < t->out_n; i++) {
        json_out_object(w, NULL);
        json_out_str(w, "stage", t->out[i].stage);
        json_out_str(w, "reason", t->why[i]);
        json_out_end_object(w);
    }
    json_out_end_array(w);
    json_out_end_object(w);
}

bool scaling_get(struct api_req *r, struct err *err)
{
    struct scaling_request *t = arena_alloc(&r->arena, sizeof *t);
    struct scaling_run runs[SCALING_RUNS_MAX];
    struct scaling_row rows[SCALING_RUNS_MAX];
    AUTO_JSON json_t *spec = NULL;
    static_assert(SCALING_RUNS_MAX >= APIDB_RUNS_MAX, "a table holds all stages of a campaign");
    struct apidb_stage_row any; /* an archived campaign has no runs to show */
    if (!query_read(r, t, err) || !req_db(r, err) ||
        !apidb_stage_find(r->db, t->campaign, NULL, &any, err) ||
        !run_spec(r, t->campaign, &spec, err) || !group_find(t, spec, err) ||
        !runs_read(r, t, spec, err) || !runs_fit(r, t, spec, err)) {
        return false;
    }
    for (int i = 0; i < t->n; i++) {
        runs[i] = (struct scaling_run){.instances = t->runs[i].instances,
                                       .seconds = t->runs[i].seconds,
                                       .rate = t->rates[i],
                                       .price_musd_per_hour = t->runs[i].price_musd_per_hour};
    }
    if (!scaling_table(runs, t->n, (double)t->epoch, (double)t->deadline_s, rows, err)) {
        return false;
    }
    struct json_out w;
    json_out_init(&w, &r->out);
    table_out(&w, t, rows);
    buf_add_cstr(&r->out, "\n");
    return reply_out(r, 200);
}
