/* Runs statements on one connection: prepared on first use, sent one by one or in a pipeline. Every
 * wait is bounded, so a frozen server costs a connection but never a thread. */
#include "query.h"
#include "common/clock.h"
#include "connection_private.h"
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>

#define RECHECK_US (1 * USEC_PER_SEC)

static uint32_t name_hash(const char *s)
{
    uint32_t h = 2166136261u;
    for (; *s != '\0'; s++) {
        h = (h ^ (uint8_t)*s) * 16777619u;
    }
    return h;
}

/* The slot that holds this name, or a free one. */
static size_t prepared_slot(const struct store *s, const char *name)
{
    size_t i = name_hash(name) % PREPARED_SLOTS;
    while (s->prepared[i] != NULL && strcmp(s->prepared[i], name) != 0) {
        i = (i + 1) % PREPARED_SLOTS;
    }
    return i;
}

static bool lost(struct store *s, struct err *err, const char *why)
{
    s->dead = true;
    return err_set(err, ERR_UNAVAILABLE, "database: %s", why);
}

/* RECHECK_US: libpq that was out of memory for a moment says that it waits for the rest of an
 * answer it has whole, and reads it when it is asked again. */
bool store_wait_io(struct store *s, short events, int64_t deadline, struct err *err)
{
    for (;;) {
        int64_t left = deadline - clock_mono_us();
        if (left <= 0) {
            return lost(s, err, "no answer in time");
        }
        struct pollfd p = {.fd = PQsocket(s->conn), .events = events};
        int n = poll(&p, 1, (int)(MIN(left, RECHECK_US) / USEC_PER_MSEC) + 1);
        if (n >= 0) {
            return true;
        }
        if (errno != EINTR) {
            return lost(s, err, "poll failed");
        }
    }
}

bool store_next_result(struct store *s, int64_t deadline, PGresult **ret, struct err *err)
{
    while (PQisBusy(s->conn) == 1) {
        if (!store_wait_io(s, POLLIN, deadline, err)) {
            return false;
        }
        if (PQconsumeInput(s->conn) == 0) {
            return lost(s, err, PQerrorMessage(s->conn));
        }
    }
    *ret = PQgetResult(s->conn);
    return true;
}

static bool succeeded(const PGresult *r)
{
    ExecStatusType t = PQresultStatus(r);
    return t == PGRES_TUPLES_OK || t == PGRES_COMMAND_OK || t == PGRES_EMPTY_QUERY;
}

/* The one result of a statement sent outside a pipeline. */
static bool take_result(struct store *s, const char *what, PGresult **ret, struct err *err)
{
    int64_t deadline = clock_mono_us() + s->wait_us;
    AUTO_RESULT PGresult *last = NULL;
    for (;;) {
        PGresult *r = NULL;
        if (!store_next_result(s, deadline, &r, err)) {
            return false;
        }
        if (r == NULL) {
            break;
        }
        if (last != NULL && !succeeded(last)) {
            PQclear(r); /* keep the first failure */
            continue;
        }
        PQclear(last);
        last = r;
        ExecStatusType t = PQresultStatus(r);
        if (t == PGRES_COPY_IN || t == PGRES_COPY_OUT) {
            break; /* the caller continues with the rows */
        }
    }
    if (last == NULL) {
        return lost(s, err, "connection lost");
    }
    ExecStatusType t = PQresultStatus(last);
    if (!succeeded(last) && t != PGRES_COPY_IN && t != PGRES_COPY_OUT) {
        return store_fail(s, last, what, err);
    }
    *ret = TAKE(last);
    return true;
}

static bool usable(struct store *s, struct err *err)
{
    ASSERT(s != NULL && s->magic == STORE_MAGIC);
    return s->dead ? err_set(err, ERR_UNAVAILABLE, "database: connection lost before") : true;
}

static bool prepare(struct store *s, const char *name, const char *sql, const struct params *p,
                    struct err *err)
{
    size_t slot = prepared_slot(s, name);
    if (s->prepared[slot] != NULL) {
        return true;
    }
    ASSERT(s->prepared_n < PREPARED_SLOTS / 2);
    if (PQsendPrepare(s->conn, name, sql, p == NULL ? 0 : params_n(p),
                      p == NULL ? NULL : p->types) == 0) {
        return store_fail(s, NULL, name, err);
    }
    AUTO_RESULT PGresult *r = NULL;
    if (!take_result(s, name, &r, err)) {
        return false;
    }
    s->prepared[slot] = xstrdup(name);
    s->prepared_n++;
    return true;
}

static bool send_prepared(struct store *s, const char *name, const struct params *p,
                          struct err *err)
{
    int sent = p == NULL ? PQsendQueryPrepared(s->conn, name, 0, NULL, NULL, NULL, 1)
                         : PQsendQueryPrepared(s->conn, name, params_n(p), p->values, p->lengths,
                                               p->formats, 1);
    return sent == 1 ? true : store_fail(s, NULL, name, err);
}

bool store_exec(struct store *s, const char *name, const char *sql, struct params *p,
                PGresult **ret, struct err *err)
{
    return usable(s, err) && prepare(s, name, sql, p, err) && send_prepared(s, name, p, err) &&
           take_result(s, name, ret, err);
}

bool store_exec_while(struct store *s, const char *name, const char *sql, struct params *p,
                      void (*work)(void *ctx), void *ctx, PGresult **ret, struct err *err)
{
    if (!usable(s, err) || !prepare(s, name, sql, p, err) || !send_prepared(s, name, p, err)) {
        return false;
    }
    work(ctx);
    return take_result(s, name, ret, err);
}

static int64_t touched(PGresult *r)
{
    int64_t n = 0;
    struct str text = str_of(PQcmdTuples(r));
    if (text.n == 0 || !parse_i64(text, 0, INT64_MAX, &n, NULL)) {
        return 0;
    }
    return n;
}

bool store_run(struct store *s, const char *name, const char *sql, struct params *p, int64_t *ret_n,
               struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, name, sql, p, &r, err)) {
        return false;
    }
    if (ret_n != NULL) {
        *ret_n = touched(r);
    }
    return true;
}

bool store_text(struct store *s, const char *name, const char *sql, struct params *p,
                const char *what, struct buf *ret, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, name, sql, p, &r, err)) {
        return false;
    }
    if (row_count(r) == 0) {
        return err_set(err, ERR_NOT_FOUND, "there is no such %s", what);
    }
    buf_add_cstr(ret, row_text(r, 0, 0));
    return true;
}

bool store_plain(struct store *s, const char *sql, struct err *err)
{
    if (!usable(s, err)) {
        return false;
    }
    if (PQsendQuery(s->conn, sql) == 0) {
        return store_fail(s, NULL, "query", err);
    }
    AUTO_RESULT PGresult *r = NULL;
    return take_result(s, "query", &r, err);
}

static bool pipeline_send(struct store *s, const struct statement *st, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (st[i].name != NULL) {
            if (!send_prepared(s, st[i].name, st[i].params, err)) {
                return false;
            }
        } else if (PQsendQueryParams(s->conn, st[i].sql, 0, NULL, NULL, NULL, NULL, 1) == 0) {
            return store_fail(s, NULL, "query", err);
        }
    }
    return PQpipelineSync(s->conn) == 1 ? true : store_fail(s, NULL, "query", err);
}

/* Read the answers up to the sync mark. *err keeps the first failure. */
static bool pipeline_receive(struct store *s, const struct statement *st, size_t n, PGresult **ret,
                             struct err *err)
{
    int64_t deadline = clock_mono_us() + s->wait_us;
    bool good = true;
    for (size_t i = 0; i < n;) {
        PGresult *r = NULL;
        if (!store_next_result(s, deadline, &r, err)) {
            return false;
        }
        if (r == NULL) {
            if (PQstatus(s->conn) == CONNECTION_BAD) {
                return lost(s, good ? err : NULL, "connection lost");
            }
            i += ret[i] != NULL ? 1 : 0; /* the end of this statement's answers */
            continue;
        }
        if (good && !succeeded(r)) {
            (void)store_fail(s, r, st[i].name == NULL ? "query" : st[i].name, err);
            good = false;
        }
        PQclear(ret[i]);
        ret[i] = r;
    }
    AUTO_RESULT PGresult *sync = NULL;
    if (!store_next_result(s, deadline, &sync, err)) {
        return false;
    }
    if (sync == NULL || PQresultStatus(sync) != PGRES_PIPELINE_SYNC) {
        return lost(s, good ? err : NULL, "connection lost");
    }
    return good;
}

bool store_pipeline(struct store *s, const struct statement *st, size_t n, PGresult **ret,
                    struct err *err)
{
    ASSERT(n >= 1 && n <= PIPELINE_MAX);
    memset(ret, 0, n * sizeof(PGresult *));
    if (!usable(s, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (st[i].name != NULL && !prepare(s, st[i].name, st[i].sql, st[i].params, err)) {
            return false;
        }
    }
    if (PQenterPipelineMode(s->conn) == 0) {
        return store_fail(s, NULL, "pipeline", err);
    }
    bool good = pipeline_send(s, st, n, err) && pipeline_receive(s, st, n, ret, err);
    if (!s->dead && PQexitPipelineMode(s->conn) == 0) {
        good = lost(s, good ? err : NULL, "pipeline left in disorder");
    }
    if (!good) {
        for (size_t i = 0; i < n; i++) {
            PQclear(ret[i]);
            ret[i] = NULL;
        }
    }
    return good;
}
