/* When a stage ends, from how long its newest finished parts took and how many run now. No number
 * is made up before there are some. */
#include "common/clock.h"
#include "core/eta.h"
#include "handlers.h"
#include "store/api_db.h"

static void forecast_write(struct json_out *w, const struct eta *e)
{
    json_out_i64(w, "ends_in_seconds", e->p50_us / USEC_PER_SEC);
    json_out_i64(w, "low_seconds", e->p10_us / USEC_PER_SEC);
    json_out_i64(w, "high_seconds", e->p90_us / USEC_PER_SEC);
    json_out_time(w, "ends_at", clock_wall_us() + e->p50_us);
    json_out_double(w, "parts_per_hour", e->parts_per_h);
}

static void forecast_none(struct json_out *w, const char *why)
{
    json_out_null(w, "ends_in_seconds");
    json_out_null(w, "low_seconds");
    json_out_null(w, "high_seconds");
    json_out_null(w, "ends_at");
    json_out_null(w, "parts_per_hour");
    json_out_str(w, "reason", why);
}

static void forecast(struct json_out *w, const struct apidb_stage_row *st,
                     const struct apidb_durations *d)
{
    int64_t ended = st->counts[TASK_DONE] + st->counts[TASK_FAILED] + st->counts[TASK_SKIPPED] +
                    st->counts[TASK_CANCELLED];
    int64_t left = st->tasks - ended, slots = MIN(st->counts[TASK_ACTIVE], ETA_SLOTS_MAX);
    struct eta e = {0};
    json_out_str(w, "stage", st->name);
    json_out_i64(w, "finished", st->counts[TASK_DONE]);
    json_out_i64(w, "remaining", left);
    if (left <= 0) {
        forecast_none(w, "nothing is left");
    } else if (st->counts[TASK_DONE] < ETA_PARTS_MIN || d->n < ETA_PARTS_MIN) {
        forecast_none(w, "needs 5 finished parts");
    } else if (slots == 0) {
        forecast_none(w, "nothing is running");
    } else {
        /* The seed only has to be the same for the same picture. */
        eta_estimate(d->us, d->n, left, slots, (uint64_t)ended, &e);
        if (e.known) {
            forecast_write(w, &e);
        } else {
            forecast_none(w, "needs 5 finished parts");
        }
    }
}

bool forecast_get(struct api_req *r, struct err *err)
{
    int64_t id;
    struct apidb_stage_row st;
    struct apidb_durations *d = arena_alloc(&r->arena, sizeof *d);
    if (!req_id(r, 0, "c-", &id, err) || !req_db(r, err) ||
        !apidb_stage_find(r->db, id, req_query(r, "stage"), &st, err) ||
        !apidb_durations(r->db, id, st.id, d, err)) {
        return false;
    }
    struct json_out w;
    json_out_init(&w, &r->out);
    json_out_object(&w, NULL);
    forecast(&w, &st, d);
    json_out_end_object(&w);
    r->status = 200;
    r->content_type = "application/json";
    return true;
}
