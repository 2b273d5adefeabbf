/* COPY: see copy.h. Sends without blocking, so that a frozen server costs a connection but never a
 * thread. */
#include "copy.h"
#include "common/clock.h"
#include "connection_private.h"
#include <libpq-fe.h>
#include <poll.h>

/* Hands on what libpq keeps. Reads, too: a server that has something to say takes nothing before
 * that is read. */
static bool flush(struct store *s, int64_t deadline, struct err *err)
{
    for (;;) {
        int left = PQflush(s->conn);
        if (left <= 0) {
            return left == 0 || store_fail(s, NULL, "copy", err);
        }
        if (!store_wait_io(s, POLLIN | POLLOUT, deadline, err)) {
            return false;
        }
        if (PQconsumeInput(s->conn) == 0) {
            return store_fail(s, NULL, "copy", err);
        }
    }
}

/* libpq keeps what the server does not take yet, however much: each piece goes out before the next
 * one is taken. The connection blocks for all other statements. */
bool store_copy_put(struct store *s, const void *p, size_t n, struct err *err)
{
    int64_t deadline = clock_mono_us() + s->wait_us;
    if (s->dead || PQsetnonblocking(s->conn, 1) != 0) {
        return store_fail(s, NULL, "copy", err);
    }
    bool ok = PQputCopyData(s->conn, p, (int)n) == 1 ? flush(s, deadline, err)
                                                     : store_fail(s, NULL, "copy", err);
    if (ok && PQsetnonblocking(s->conn, 0) != 0) {
        return store_fail(s, NULL, "copy", err);
    }
    return ok;
}

/* Ends the copy, and reads all that is answered. */
static bool end(struct store *s, const char *cancelled, struct err *err)
{
    int64_t deadline = clock_mono_us() + s->wait_us;
    if (s->dead) {
        return err_set(err, ERR_UNAVAILABLE, "database: connection lost before");
    }
    if (PQsetnonblocking(s->conn, 1) != 0 || PQputCopyEnd(s->conn, cancelled) != 1) {
        return store_fail(s, NULL, "copy", err);
    }
    bool ok = true;
    if (!flush(s, deadline, err)) {
        return false;
    }
    for (PGresult *r = NULL;;) {
        if (!store_next_result(s, deadline, &r, err)) {
            return false;
        }
        if (r == NULL) {
            break;
        }
        if (ok && PQresultStatus(r) != PGRES_COMMAND_OK) {
            ok = store_fail(s, r, "copy", err);
        }
        PQclear(r);
    }
    return PQsetnonblocking(s->conn, 0) == 0 ? ok : store_fail(s, NULL, "copy", err);
}

bool store_copy_end(struct store *s, struct err *err)
{
    return end(s, NULL, err);
}

void store_copy_cancel(struct store *s)
{
    (void)end(s, "cancelled", NULL);
}
