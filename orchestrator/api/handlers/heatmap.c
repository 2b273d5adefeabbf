/* Data of the heat map: one tile per part while they are few, else tiles of equal ranges of parts
 * with counts by state. */
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/response_cache.h"
#include "api/server/routes.h"
#include "store/api/parts.h"

#define TILES_SINGLE_MAX 4096
#define TILES_SUMS_MAX   1536
#define FRESH_US         (500 * USEC_PER_MSEC)
#define SAME_MAP_US      (10 * USEC_PER_SEC)

struct tiles_key {
    int64_t campaign_id, stage_id, first, last, per_tile;
};

static void tiles_write(const struct apidb_stage_row *stage, const struct tiles_key *key,
                        int64_t (*counts)[TASK_STATE_COUNT], int64_t tiles_n, struct buf *out)
{
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_str(&w, "stage", stage->name);
    json_out_i64(&w, "parts", stage->tasks);
    json_out_i64(&w, "first", key->first);
    json_out_i64(&w, "last", key->last);
    json_out_i64(&w, "per_tile", key->per_tile);
    json_out_array(&w, "states");
    for (int s = 0; s < TASK_STATE_COUNT; s++) {
        json_out_str(&w, NULL, task_state_name((enum task_state)s));
    }
    json_out_end_array(&w);
    json_out_array(&w, "tiles");
    for (int64_t i = 0; i < tiles_n; i++) {
        int only = 0;
        for (int s = 0; s < TASK_STATE_COUNT; s++) {
            only = counts[i][s] > 0 ? s : only;
        }
        if (key->per_tile == 1) {
            json_out_i64(&w, NULL, only);
            continue;
        }
        json_out_array(&w, NULL);
        for (int s = 0; s < TASK_STATE_COUNT; s++) {
            json_out_i64(&w, NULL, counts[i][s]);
        }
        json_out_end_array(&w);
    }
    json_out_end_array(&w);
    json_out_end_object(&w);
}

struct tiles_wanted {
    struct store *db;
    struct apidb_stage_row stage;
    struct tiles_key key;
};

static bool tiles_make(void *ctx, struct buf *out, struct err *err)
{
    const struct tiles_wanted *of = ctx;
    const struct tiles_key *key = &of->key;
    int64_t span = key->last - key->first + 1;
    int64_t tiles_n = (span + key->per_tile - 1) / key->per_tile;
    AUTO_FREE int64_t(*counts)[TASK_STATE_COUNT] = xcalloc((size_t)tiles_n + 1, sizeof *counts);
    const struct apidb_tiles_query q = {.campaign_id = key->campaign_id,
                                        .stage_id = key->stage_id,
                                        .first = key->first,
                                        .last = key->last,
                                        .per_tile = key->per_tile};
    if (!apidb_tiles(of->db, &q, counts, tiles_n, err)) {
        return false;
    }
    tiles_write(&of->stage, key, counts, tiles_n, out);
    return true;
}

/* As they are remembered; caller frees *ret. */
static bool tiles_answer(struct api_req *r, const struct apidb_stage_row *stage,
                         const struct tiles_key *key, char **ret, struct err *err)
{
    const char *name =
        arena_printf(&r->arena, "tiles %lld %lld %lld %lld %lld", (long long)key->campaign_id,
                     (long long)key->stage_id, (long long)key->first, (long long)key->last,
                     (long long)key->per_tile);
    const struct response_cache_ask ask = {
        .key = name,
        .version = response_cache_version(stage->counts, sizeof stage->counts),
        .same_us = SAME_MAP_US,
        .fresh_us = FRESH_US,
        .db = r->db};
    ASSERT(r->later == NULL);
    struct tiles_wanted of = {.db = r->db, .stage = *stage, .key = *key};
    return response_cache_answer_or_last(req_answers(r), &ask, tiles_make, &of, sizeof of, ret,
                                         &r->later, err);
}

bool tiles_get(struct api_req *r, struct err *err)
{
    struct tiles_key key;
    struct apidb_stage_row stage;
    int64_t max = req_number(r, "max"), last = req_number(r, "last");
    key.campaign_id = req_id(r, 0);
    key.first = req_number(r, "first");
    if (!req_db(r, err) ||
        !apidb_stage_find(r->db, key.campaign_id, req_query(r, "stage"), &stage, err)) {
        return false;
    }
    key.last = MAX(stage.tasks - 1, 0);
    key.last = last >= 0 ? MIN(last, key.last) : key.last;
    if (key.first > key.last) {
        return err_set(err, ERR_MALFORMED, "first is greater than last or than the last part");
    }
    key.stage_id = stage.id;
    int64_t span = stage.tasks == 0 ? 0 : key.last - key.first + 1;
    int64_t sums = MIN(max, TILES_SUMS_MAX);
    key.per_tile = span <= max ? 1 : (span + sums - 1) / sums;
    if (stage.tasks == 0) {
        key.last = key.first - 1;
    }
    AUTO_FREE char *json = NULL;
    if (!tiles_answer(r, &stage, &key, &json, err)) {
        return false;
    }
    (void)reply_json(r, 200, str_of(json));
    reply_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "private, no-cache");
    reply_etag_of_body(r, "t");
    return true;
}
