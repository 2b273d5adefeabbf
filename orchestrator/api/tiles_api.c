/* The heat map's data: one tile a part while they are few, else tiles of equal stretches with
 * counts by state. Answers are remembered for as long as they are cheap to have been wrong about,
 * so that many viewers cost one query. */
#include "common/clock.h"
#include "handlers.h"
#include "store/api_db.h"
#include <pthread.h>

#define TILES_SINGLE_MAX 4096
#define TILES_SUMS_MAX   2048
#define CACHE_N          32
#define FRESH_US         (500 * USEC_PER_MSEC)
#define SAME_COUNTS_US   (10 * USEC_PER_SEC)
#define COST_FACTOR      10

struct tiles_key {
    int64_t campaign_id, stage_id, first, last, per_tile;
};
struct tiles_entry {
    struct tiles_key key;
    int64_t counts[TASK_STATE_COUNT]; /* of the stage, when the tiles were read */
    int64_t at_us, cost_us;
    char *json;
};
struct tiles_cache {
    pthread_mutex_t lock;
    struct tiles_entry at[CACHE_N];
};

struct tiles_cache *tiles_cache_new(void)
{
    struct tiles_cache *c = xcalloc(1, sizeof *c);
    (void)pthread_mutex_init(&c->lock, NULL);
    return c;
}

void tiles_cache_free(struct tiles_cache *c)
{
    if (c == NULL) {
        return;
    }
    for (size_t i = 0; i < CACHE_N; i++) {
        free(c->at[i].json);
    }
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

static bool key_equal(const struct tiles_key *a, const struct tiles_key *b)
{
    return a->campaign_id == b->campaign_id && a->stage_id == b->stage_id && a->first == b->first &&
           a->last == b->last && a->per_tile == b->per_tile;
}

/* A copy of a remembered answer that still stands; caller frees. */
static char *cache_get(struct tiles_cache *c, const struct tiles_key *key, const int64_t *counts)
{
    int64_t now = clock_mono_us();
    char *found = NULL;
    (void)pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < CACHE_N && found == NULL; i++) {
        const struct tiles_entry *e = &c->at[i];
        if (e->json != NULL && key_equal(&e->key, key)) {
            bool same = memcmp(e->counts, counts, sizeof e->counts) == 0;
            int64_t age = now - e->at_us;
            if (age < MAX(FRESH_US, COST_FACTOR * e->cost_us) || (same && age < SAME_COUNTS_US)) {
                found = xstrdup(e->json);
            }
        }
    }
    (void)pthread_mutex_unlock(&c->lock);
    return found;
}

static void cache_put(struct tiles_cache *c, const struct tiles_key *key, const int64_t *counts,
                      int64_t cost_us, const char *json)
{
    (void)pthread_mutex_lock(&c->lock);
    struct tiles_entry *to = &c->at[0];
    for (size_t i = 0; i < CACHE_N; i++) {
        if (c->at[i].json != NULL && key_equal(&c->at[i].key, key)) {
            to = &c->at[i];
            break;
        }
        if (c->at[i].at_us < to->at_us) {
            to = &c->at[i];
        }
    }
    free(to->json);
    *to = (struct tiles_entry){.key = *key, .at_us = clock_mono_us(), .cost_us = cost_us};
    memcpy(to->counts, counts, sizeof to->counts);
    to->json = xstrdup(json);
    (void)pthread_mutex_unlock(&c->lock);
}

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

static bool tiles_read(struct api_req *r, const struct apidb_stage_row *stage,
                       const struct tiles_key *key, struct buf *out, struct err *err)
{
    int64_t span = key->last - key->first + 1;
    int64_t tiles_n = (span + key->per_tile - 1) / key->per_tile;
    AUTO_FREE int64_t(*counts)[TASK_STATE_COUNT] = xcalloc((size_t)tiles_n + 1, sizeof *counts);
    const struct apidb_tiles_query q = {.campaign_id = key->campaign_id,
                                        .stage_id = key->stage_id,
                                        .first = key->first,
                                        .last = key->last,
                                        .per_tile = key->per_tile};
    if (!apidb_tiles(r->db, &q, counts, tiles_n, err)) {
        return false;
    }
    tiles_write(stage, key, counts, tiles_n, out);
    return true;
}

bool tiles_get(struct api_req *r, struct err *err)
{
    struct tiles_key key;
    struct apidb_stage_row stage;
    int64_t max;
    if (!req_id(r, 0, "c-", &key.campaign_id, err) ||
        !req_query_i64(r, "max", 1, TILES_SINGLE_MAX, TILES_SINGLE_MAX, &max, err) ||
        !req_query_i64(r, "first", 0, INT32_MAX, 0, &key.first, err) || !req_db(r, err) ||
        !apidb_stage_find(r->db, key.campaign_id, req_query(r, "stage"), &stage, err) ||
        !req_query_i64(r, "last", 0, INT32_MAX, MAX(stage.tasks - 1, 0), &key.last, err)) {
        return false;
    }
    key.last = MIN(key.last, MAX(stage.tasks - 1, 0));
    if (key.first > key.last) {
        return err_set(err, ERR_MALFORMED, "first is behind last, or behind the last part");
    }
    key.stage_id = stage.id;
    int64_t span = stage.tasks == 0 ? 0 : key.last - key.first + 1;
    int64_t sums = MIN(max, TILES_SUMS_MAX);
    key.per_tile = span <= max ? 1 : (span + sums - 1) / sums;
    if (stage.tasks == 0) {
        key.last = key.first - 1;
    }
    AUTO_FREE char *json = cache_get(r->api->tiles, &key, stage.counts);
    if (json == NULL) {
        AUTO_BUF struct buf b = BUF_INIT(API_ANSWER_MAX);
        int64_t began_us = clock_mono_us();
        if (!tiles_read(r, &stage, &key, &b, err)) {
            return false;
        }
        json = buf_take(&b);
        cache_put(r->api->tiles, &key, stage.counts, clock_mono_us() - began_us, json);
    }
    (void)reply_json(r, 200, str_of(json));
    reply_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "private, no-cache");
    reply_etag_of_body(r, "t");
    return true;
}
