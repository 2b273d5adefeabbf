/* When a stage ends, from how long its newest finished parts took and how many run now. No number
 * is made up before there are some. */
#include "common/clock.h"
#include "handlers.h"
#include "store/api_db.h"
#include <math.h>

#define FINISHED_MIN 5
#define Z_P90        1.2816 /* of the normal distribution: 80 % lie within */

static void forecast_none(struct json_out *w, const char *why)
{
    json_out_null(w, "ends_in_seconds");
    json_out_null(w, "ends_at");
    json_out_str(w, "reason", why);
}

/* `left` parts of mean +- sd each on `slots` at a time; the sum of many varies little, the last one
 * to end may be a long one. */
static void forecast_write(struct json_out *w, const struct apidb_durations *d, int64_t left,
                           int64_t slots)
{
    double rounds = (double)left / (double)slots;
    double wobble = Z_P90 * d->sd_s / sqrt((double)MAX(left, 1));
    double mid = rounds * d->mean_s;
    double low = MAX(rounds * (d->mean_s - wobble), 0.0);
    double high = rounds * (d->mean_s + wobble) + d->p90_s;
    json_out_i64(w, "ends_in_seconds", llround(mid));
    json_out_i64(w, "low_seconds", llround(low));
    json_out_i64(w, "high_seconds", llround(high));
    json_out_time(w, "ends_at", clock_wall_us() + llround(mid * 1e6));
    json_out_double(w, "parts_per_hour", d->mean_s > 0 ? 3600.0 * (double)slots / d->mean_s : 0.0);
}

bool forecast_get(struct api_req *r, struct err *err)
{
    int64_t id;
    struct apidb_stage_row st;
    struct apidb_durations d;
    if (!req_id(r, 0, "c-", &id, err) || !req_db(r, err) ||
        !apidb_stage_find(r->db, id, req_query(r, "stage"), &st, err) ||
        !apidb_durations(r->db, id, st.id, &d, err)) {
        return false;
    }
    int64_t ended = st.counts[TASK_DONE] + st.counts[TASK_FAILED] + st.counts[TASK_SKIPPED] +
                    st.counts[TASK_CANCELLED];
    int64_t left = st.tasks - ended, slots = st.counts[TASK_ACTIVE];
    struct json_out w;
    json_out_init(&w, &r->out);
    json_out_object(&w, NULL);
    json_out_str(&w, "stage", st.name);
    json_out_i64(&w, "finished", st.counts[TASK_DONE]);
    json_out_i64(&w, "remaining", left);
    if (left == 0) {
        forecast_none(&w, "nothing is left");
    } else if (st.counts[TASK_DONE] < FINISHED_MIN || d.n < FINISHED_MIN) {
        forecast_none(&w, "needs 5 finished parts");
    } else if (slots == 0) {
        forecast_none(&w, "nothing is running");
    } else {
        forecast_write(&w, &d, left, slots);
    }
    json_out_end_object(&w);
    r->status = 200;
    r->content_type = "application/json";
    return true;
}
