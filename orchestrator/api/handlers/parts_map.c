/* See parts_map.h. The map is kept as text: the first id, ids a range, and of each range two digits
 * of states and one of attempts, in hexadecimal. */
#include "parts_map.h"
#include "api/server/reply.h"
#include "remembered_answer.h"

#define RANGES_MAX         2048
#define LOOKS_MAX          64    /* runs of ranges that a page looks at, */
#define IDS_MAX            24000 /* and ids of all of them */
#define SEEKS_MAX          4     /* without a map */
#define DIGITS             3
#define ATTEMPTS_DIGIT_MAX 15 /* the digit's; it stands for more, too */

struct parts_map {
    int64_t first_id, per_range, n;
    const char *digits; /* borrowed */
};
struct map_wanted {
    struct store *db;
    int64_t campaign_id, stage_id;
};

static bool map_make(void *ctx, struct buf *out, struct err *err)
{
    const struct map_wanted *of = ctx;
    struct apidb_map_range at[RANGES_MAX] = {0};
    int64_t first, last;
    if (!apidb_parts_range(of->db, of->campaign_id, &first, &last, err)) {
        return false;
    }
    int64_t per_range = MAX((last - first + RANGES_MAX) / RANGES_MAX, INT64_C(1));
    int64_t n = (last - first + per_range) / per_range;
    const struct apidb_map_query q = {.campaign_id = of->campaign_id,
                                      .stage_id = of->stage_id,
                                      .first_id = first,
                                      .per_range = per_range};
    if (!apidb_parts_map(of->db, &q, at, n, err)) {
        return false;
    }
    buf_addf(out, "%lld %lld ", (long long)first, (long long)per_range);
    for (int64_t i = 0; i < n; i++) {
        buf_addf(out, "%02x%x", at[i].states, (unsigned)MIN(at[i].attempts, ATTEMPTS_DIGIT_MAX));
    }
    return true;
}

static struct parts_map map_read(const char *text)
{
    char *end;
    struct parts_map m = {.first_id = strtoll(text, &end, 10)};
    m.per_range = strtoll(end, &end, 10);
    m.digits = end + 1;
    m.n = (int64_t)strlen(m.digits) / DIGITS;
    return m;
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Whether range i may have a part of the query. The last range and what follows it always may:
 * parts may have been added. */
static bool may_have(const struct parts_map *m, const struct apidb_parts_query *q, int64_t i)
{
    if (i >= m->n - 1) {
        return true;
    }
    const char *d = m->digits + DIGITS * i;
    unsigned states = digit(d[0]) * 16 + digit(d[1]), attempts = digit(d[2]);
    unsigned wanted = q->state >= 0 ? 1U << q->state : ~0U;
    return (states & wanted) != 0 &&
           (attempts == ATTEMPTS_DIGIT_MAX || (int64_t)attempts >= q->attempts_min);
}

/* Moves the cursor to the next run of ranges that may have one. Returns how many ids that run has;
 * 0: there is none. */
static int64_t next_run(const struct parts_map *m, struct apidb_parts_query *q)
{
    int64_t step = q->down ? -1 : 1, end = q->down ? -1 : m->n + 1;
    int64_t next = MAX(q->after_id + step, m->first_id); /* the id looked at next */
    int64_t i =
        q->down && q->after_id <= m->first_id ? -1 : MIN((next - m->first_id) / m->per_range, m->n);
    while (i != end && !may_have(m, q, i)) {
        i += step;
    }
    if (i == end) {
        return 0;
    }
    int64_t from = i;
    while (i + step != end && i + step < m->n && may_have(m, q, i + step)) {
        i += step;
    }
    int64_t low = m->first_id + MIN(from, i) * m->per_range;
    int64_t high = m->first_id + (MAX(from, i) + 1) * m->per_range - 1;
    if (from == m->n) { /* what has come since */
        high = INT64_MAX - 1;
    }
    q->after_id = q->down ? MIN(q->after_id, high + 1) : MAX(q->after_id, low - 1);
    return q->down ? q->after_id - low : high - q->after_id;
}

static bool fill(struct store *db, const struct parts_map *m, struct apidb_parts_query *q,
                 struct apidb_ids *ret, struct err *err)
{
    int64_t left = apidb_parts_looks_at_each(q) ? APIDB_EACH_IDS_MAX : IDS_MAX;
    for (int i = 0; i < LOOKS_MAX && left > 0 && (int64_t)ret->n < q->n; i++) {
        int64_t look_at = MIN(next_run(m, q), left);
        if (look_at == 0) {
            ret->more = false;
            return true;
        }
        if (!apidb_parts_ids_within(db, q, look_at, ret, err)) {
            return false;
        }
        if (!ret->more) {
            return true;
        }
        left -= look_at;
    }
    return true;
}

bool parts_map_fill(struct api_req *r, struct apidb_parts_query *q, struct apidb_ids *ret,
                    struct err *err)
{
    AUTO_FREE char *text = NULL;
    struct map_wanted of = {.db = r->db, .campaign_id = q->campaign_id, .stage_id = q->stage_id};
    const char *key = arena_printf(&r->arena, "parts map %lld %lld", (long long)q->campaign_id,
                                   (long long)q->stage_id);
    if (!remembered_last(r, q->campaign_id, key, map_make, &of, sizeof of, &text, err)) {
        return false;
    }
    bool ok = true, each = apidb_parts_looks_at_each(q);
    int seeks = each || text != NULL ? 0 : SEEKS_MAX;
    for (int i = 0; ok && ret->more && (int64_t)ret->n < q->n && i < seeks; i++) {
        ok = apidb_parts_ids_seek(r->db, q, ret, err); /* the next page will have a map */
    }
    if (text == NULL || !ok) {
        return ok;
    }
    const struct parts_map m = map_read(text);
    return fill(r->db, &m, q, ret, err);
}
