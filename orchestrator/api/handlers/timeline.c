/* The attempts of a stage by slot and time. AWS does not number slots: an attempt is placed on the
 * first slot of its instance type that is free, so that a row shows what followed what. */
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "remembered_answer.h"
#include "store/api/parts.h"
#include "store/api/reports.h"

struct timeline_wanted {
    struct store *db;
    int64_t campaign_id, limit;
    struct apidb_stage_row stage;
};

static bool same_slots(const struct apidb_bar *a, const struct apidb_bar *b)
{
    return a->market == b->market && strcmp(a->instance_type, b->instance_type) == 0;
}

/* slot[n] of bars in order of type and intent; free_at[n] is scratch. Appends {type, market, slots}
 * for each type to w. */
static void place(const struct apidb_bar *bars, size_t n, size_t *slot, usec_t *free_at,
                  struct json_out *w)
{
    size_t base = 0, used = 0; /* slots of the types before; of this type */
    for (size_t i = 0; i < n; i++) {
        const struct apidb_bar *b = &bars[i];
        size_t k = 0;
        while (k < used && free_at[k] > b->intended_at) {
            k++;
        }
        used = MAX(used, k + 1);
        free_at[k] = b->ended_at != 0 ? MAX(b->ended_at, b->intended_at + 1) : INT64_MAX;
        slot[i] = base + k;
        if (i + 1 == n || !same_slots(b, &bars[i + 1])) {
            json_out_object(w, NULL);
            json_out_str(w, "instance_type", b->instance_type);
            json_out_str(w, "market", market_name(b->market));
            json_out_i64(w, "slots", (int64_t)used);
            json_out_end_object(w);
            base += used;
            used = 0;
        }
    }
}

static void names_out(struct json_out *w)
{
    json_out_array(w, "states");
    for (int s = 0; s < ATTEMPT_STATE_COUNT; s++) {
        json_out_str(w, NULL, attempt_state_name((enum attempt_state)s));
    }
    json_out_end_array(w);
    json_out_array(w, "causes");
    for (int c = 0; c < CAUSE_COUNT; c++) {
        json_out_str(w, NULL, cause_name((enum cause)c));
    }
    json_out_end_array(w);
}

static int64_t since_ms(usec_t from, usec_t at)
{
    return at == 0 ? -1 : MAX(at - from, 0) / USEC_PER_MSEC;
}

static void bar_out(struct json_out *w, const struct apidb_bar *b, size_t slot, usec_t from)
{
    const int64_t v[] = {(int64_t)slot,
                         b->part,
                         b->n,
                         b->state,
                         b->cause,
                         since_ms(from, b->intended_at),
                         since_ms(from, b->started_at),
                         since_ms(from, b->ended_at),
                         b->warm};
    json_out_array(w, NULL);
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        json_out_i64(w, NULL, v[i]);
    }
    json_out_end_array(w);
}

static bool timeline_make(void *ctx, struct buf *out, struct err *err)
{
    const struct timeline_wanted *of = ctx;
    AUTO_FREE struct apidb_bar *bars = NULL;
    size_t n;
    if (!apidb_timeline(of->db, of->campaign_id, of->stage.id, of->limit, &bars, &n, err)) {
        return false;
    }
    AUTO_FREE size_t *slot = xcalloc(n + 1, sizeof *slot);
    AUTO_FREE usec_t *free_at = xcalloc(n + 1, sizeof *free_at);
    usec_t from = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        from = MIN(from, bars[i].intended_at);
    }
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_str(&w, "stage", of->stage.name);
    json_out_time(&w, "from_at", n > 0 ? from : 0);
    json_out_bool(&w, "more", (int64_t)n == of->limit);
    json_out_array(&w, "slots");
    place(bars, n, slot, free_at, &w);
    json_out_end_array(&w);
    names_out(&w);
    json_out_array(&w, "attempts");
    for (size_t i = 0; i < n; i++) {
        bar_out(&w, &bars[i], slot[i], from);
    }
    json_out_end_array(&w);
    json_out_end_object(&w);
    return true;
}

bool timeline_get(struct api_req *r, struct err *err)
{
    struct timeline_wanted of = {.campaign_id = req_id(r, 0), .limit = req_number(r, "limit")};
    AUTO_FREE char *json = NULL;
    if (!req_db(r, err) ||
        !apidb_stage_find(r->db, of.campaign_id, req_query(r, "stage"), &of.stage, err)) {
        return false;
    }
    of.db = r->db;
    const char *key = arena_printf(&r->arena, "timeline %lld %lld %lld", (long long)of.campaign_id,
                                   (long long)of.stage.id, (long long)of.limit);
    return remembered_curve(r, of.campaign_id, key, timeline_make, &of, &json, err) &&
           reply_json(r, 200, str_of(json));
}
