/* COPY: see copy.h. */
#include "copy.h"
#include "connection_private.h"
#include <libpq-fe.h>

bool store_copy_put(struct store *s, const void *p, size_t n, struct err *err)
{
    return PQputCopyData(s->conn, p, (int)n) == 1 || store_fail(s, NULL, "copy", err);
}

bool store_copy_end(struct store *s, struct err *err)
{
    if (PQputCopyEnd(s->conn, NULL) != 1) {
        return store_fail(s, NULL, "copy", err);
    }
    bool ok = true;
    for (PGresult *r = PQgetResult(s->conn); r != NULL; r = PQgetResult(s->conn)) {
        if (ok && PQresultStatus(r) != PGRES_COMMAND_OK) {
            ok = store_fail(s, r, "copy", err);
        }
        PQclear(r);
    }
    return ok;
}

void store_copy_cancel(struct store *s)
{
    (void)PQputCopyEnd(s->conn, "cancelled");
    for (PGresult *r = PQgetResult(s->conn); r != NULL; r = PQgetResult(s->conn)) {
        PQclear(r);
    }
}
