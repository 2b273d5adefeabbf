/* Loads a batch of parts into one stage by binary COPY, inside the caller's transaction. A large
 * batch goes into new partitions, which are indexed and attached when all is loaded. */
#include "part_load.h"
#include "common/clock.h"
#include "core/model.h"
#include "queries.h"
#include "store/pg/copy.h"
#include "store/pg/query.h"
#include "store/pg/tx.h"
#include <arpa/inet.h>
#include <assert.h>

#define COPY_CHUNK   (256 * 1024)
#define BULK_WAIT_US (330 * USEC_PER_SEC)

struct apidb_load {
    struct store *s;
    int64_t campaign_id, stage_id;
    int64_t n, done;
    int64_t first_id, first_seq;
    bool own_partition;
    bool copying;
    struct buf chunk;
};

bool apidb_bulk(struct store *s, struct err *err)
{
    store_set_wait(s, BULK_WAIT_US);
    return store_run(s, QUERY(API_BULK_TIMEOUT), NULL, NULL, err);
}

void apidb_bulk_end(struct store *s)
{
    store_set_wait(s, 0);
}

static bool ids_take(struct store *s, int64_t n, int64_t *ret_first, struct err *err)
{
    if (!store_run(s, QUERY(API_IDS_LOCK), NULL, NULL, err)) {
        return false;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, n);
    AUTO_RESULT PGresult *res = NULL;
    bool ok = store_exec(s, QUERY(API_IDS_TAKE), &p, &res, err);
    if (ok) {
        *ret_first = row_i64(res, 0, 0);
    }
    if (!ok) {
        /* a failed transaction accepts no statement, so roll back before the unlock */
        tx_rollback(s);
    }
    return store_run(s, QUERY(API_IDS_UNLOCK), NULL, NULL, ok ? err : NULL) && ok;
}

static bool has_ended(const char *state)
{
    return campaign_state_terminal(campaign_state_parse(state));
}

static bool ended(const char *state, struct err *err)
{
    return err_set(err, ERR_CONFLICT, "the campaign has ended (%s): it takes no more parts", state);
}

/* A lock of another load did not come in time. */
static bool busy(struct err *err)
{
    return err == NULL || err->code != ERR_TIMEOUT
               ? false
               : err_set(err, ERR_UNAVAILABLE,
                         "other parts of the campaign are being loaded: send these again later");
}

static bool campaign_lock(struct store *s, int64_t campaign_id, int64_t n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_bool(&p, n >= LOAD_PARTITION_MIN);
    return store_run(s, QUERY(API_LOAD_LOCK), &p, NULL, err) || busy(err);
}

static bool stage_lock(struct store *s, int64_t stage_id, int64_t *ret_tasks, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_STAGE_LOCK), &p, &res, err)) {
        return busy(err);
    }
    ASSERT(row_count(res) == 1);
    if (row_bool(res, 0, 1)) {
        return err_set(err, ERR_CONFLICT, "the stage is closed: it takes no more parts");
    }
    const char *state = row_text(res, 0, 2);
    if (has_ended(state)) {
        return ended(state, err);
    }
    *ret_tasks = row_i64(res, 0, 0);
    return true;
}

static bool partition_create(struct apidb_load *l, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, l->campaign_id);
    param_bool(&p, l->n >= LOAD_PARTITION_MIN);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(l->s, QUERY(API_PARTITION_CREATE), &p, &res, err)) {
        return false;
    }
    l->own_partition = row_bool(res, 0, 0);
    return true;
}

static bool copy_begin(struct apidb_load *l, const char *table, const char *columns,
                       struct err *err)
{
    static const uint8_t head[19] = "PGCOPY\n\377\r\n";
    char own[32] = "";
    if (l->own_partition) {
        (void)snprintf(own, sizeof own, "_c%lld", (long long)l->campaign_id);
    }
    /* Rows of a table made in this transaction may be frozen. Otherwise the first reader would
     * rewrite all pages to set hint bits. */
    char sql[192];
    (void)snprintf(sql, sizeof sql, "COPY %s%s (%s) FROM STDIN (FORMAT binary, FREEZE %s)", table,
                   own, columns, l->own_partition ? "true" : "false");
    if (!store_plain(l->s, sql, err)) {
        return false;
    }
    l->copying = true;
    buf_add(&l->chunk, head, sizeof head);
    return true;
}

bool apidb_load_begin(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t n,
                      struct apidb_load **ret, struct err *err)
{
    ASSERT(n >= 0);
    int64_t tasks, first_id = 0;
    if ((n > 0 && !campaign_lock(s, campaign_id, n, err)) ||
        !stage_lock(s, stage_id, &tasks, err)) {
        return false;
    }
    if (tasks + n > INT32_MAX) {
        return err_set(err, ERR_LIMIT, "a stage has at most %d parts", INT32_MAX);
    }
    if (n > 0 && !ids_take(s, n, &first_id, err)) {
        return false;
    }
    struct apidb_load *l = xcalloc(1, sizeof *l);
    *l = (struct apidb_load){.s = s,
                             .campaign_id = campaign_id,
                             .stage_id = stage_id,
                             .n = n,
                             .first_id = first_id,
                             .first_seq = tasks};
    buf_init(&l->chunk, 2 * COPY_CHUNK + 1024 * 1024);
    if (n > 0 && (!partition_create(l, err) ||
                  !copy_begin(l, "task", "campaign_id, id, stage_id, seq, size, uri, vars", err))) {
        apidb_load_freep(&l);
        return false;
    }
    *ret = l;
    return true;
}

int64_t apidb_load_total(const struct apidb_load *l)
{
    return l->first_seq + l->n;
}

static bool copy_flush(struct apidb_load *l, struct err *err)
{
    bool ok = store_copy_put(l->s, l->chunk.p, l->chunk.n, err);
    buf_reset(&l->chunk);
    return ok;
}

static char *put32(char *p, uint32_t v)
{
    uint32_t be = htonl(v);
    memcpy(p, &be, sizeof be);
    return p + sizeof be;
}

static char *put64(char *p, int64_t v)
{
    uint64_t be = __builtin_bswap64((uint64_t)v);
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "put64 swaps");
    p = put32(p, sizeof be);
    memcpy(p, &be, sizeof be);
    return p + sizeof be;
}

bool apidb_load_row(struct apidb_load *l, struct str uri, int64_t size, struct str vars,
                    struct err *err)
{
    ASSERT(l->copying && l->done < l->n);
    char *begin = buf_reserve(&l->chunk, 80 + uri.n + vars.n);
    ASSERT(begin != NULL);
    char *p = begin;
    *p++ = 0;
    *p++ = 7; /* number of columns */
    p = put64(p, l->campaign_id);
    p = put64(p, l->first_id + l->done);
    p = put64(p, l->stage_id);
    p = put32(p, 4);
    p = put32(p, (uint32_t)(l->first_seq + l->done));
    p = put64(p, size);
    p = put32(p, (uint32_t)uri.n);
    memcpy(p, uri.p, uri.n);
    p += uri.n;
    if (vars.n == 0) {
        p = put32(p, UINT32_MAX);
    } else {
        p = put32(p, (uint32_t)vars.n + 1);
        *p++ = 1; /* version of jsonb's binary form */
        memcpy(p, vars.p, vars.n);
        p += vars.n;
    }
    buf_commit(&l->chunk, (size_t)(p - begin));
    l->done++;
    return l->chunk.n < COPY_CHUNK || copy_flush(l, err);
}

static bool copy_end(struct apidb_load *l, struct err *err)
{
    buf_add(&l->chunk, "\377\377", 2);
    if (!copy_flush(l, err)) {
        return false;
    }
    l->copying = false;
    return store_copy_end(l->s, err);
}

/* Insert the first task_run row of each task by a second COPY, which is faster than INSERT ...
 * SELECT. */
static bool copy_runs(struct apidb_load *l, struct err *err)
{
    if (!copy_begin(l, "task_run", "campaign_id, id, stage_id, seq", err)) {
        return false;
    }
    for (int64_t i = 0; i < l->n; i++) {
        char row[2 + 3 * 12 + 8], *p = row;
        *p++ = 0;
        *p++ = 4; /* number of columns */
        p = put64(p, l->campaign_id);
        p = put64(p, l->first_id + i);
        p = put64(p, l->stage_id);
        p = put32(p, 4);
        p = put32(p, (uint32_t)(l->first_seq + i));
        ASSERT((size_t)(p - row) == sizeof row);
        buf_add(&l->chunk, row, sizeof row);
        if (l->chunk.n >= COPY_CHUNK && !copy_flush(l, err)) {
            return false;
        }
    }
    return copy_end(l, err);
}

static bool stage_grow(struct apidb_load *l, bool close, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, l->stage_id);
    param_i64(&p, l->n);
    param_bool(&p, close);
    return store_run(l->s, QUERY(API_STAGE_GROW), &p, NULL, err);
}

bool apidb_load_end(struct apidb_load *l, bool close, struct err *err)
{
    ASSERT(l->done == l->n);
    return (l->n == 0 || (copy_end(l, err) && copy_runs(l, err))) && stage_grow(l, close, err);
}

/* Parts that came with a campaign's end would wait for good: nobody looks at it any more. */
static bool still_takes(struct store *s, int64_t campaign_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_CAMPAIGN_TAKES), &p, &res, err)) {
        return false;
    }
    ASSERT(row_count(res) == 1);
    if (has_ended(row_text(res, 0, 0))) {
        return ended(row_text(res, 0, 0), err);
    }
    return strcmp(row_text(res, 0, 1), wanted_name(WANTED_CANCEL)) != 0
               ? true
               : err_set(err, ERR_CONFLICT,
                         "the campaign is being cancelled: it takes no more parts");
}

bool apidb_load_publish(struct store *s, int64_t campaign_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    return store_run(s, QUERY(API_PARTITION_ATTACH), &p, NULL, err) &&
           still_takes(s, campaign_id, err);
}

void apidb_load_freep(struct apidb_load **l)
{
    if (*l == NULL) {
        return;
    }
    if ((*l)->copying) {
        store_copy_cancel((*l)->s);
    }
    buf_done(&(*l)->chunk);
    free(*l);
    *l = NULL;
}
