/* What the world itself asks of its database, on the connection of people and the judge; and the
 * database as it is at the beginning of a world. */
#include "common/cleanup.h"
#include "deep.h"
#include "store/pg/connection_private.h"
#include <stdarg.h>
#include <stdio.h>

bool __real_store_exec(struct store *s, const char *name, const char *sql, struct params *p,
                       PGresult **ret, struct err *err);

PRINTF(1, 0) static PGresult *query(const char *fmt, va_list ap)
{
    char sql[4096];
    int n = vsnprintf(sql, sizeof sql, fmt, ap);
    ASSERT(n > 0 && (size_t)n < sizeof sql);
    PGresult *r = PQexec(deep->api->conn, sql);
    ExecStatusType t = PQresultStatus(r);
    if (t != PGRES_TUPLES_OK && t != PGRES_COMMAND_OK) {
        deep_die("%s %s", PQresultErrorMessage(r), sql);
    }
    return r;
}

int64_t sql_i64(int64_t def, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    PGresult *r = query(fmt, ap);
    va_end(ap);
    int64_t v = def;
    if (PQntuples(r) > 0 && !PQgetisnull(r, 0, 0)) {
        v = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    }
    PQclear(r);
    return v;
}

PGresult *sql_rows(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    PGresult *r = query(fmt, ap);
    va_end(ap);
    return r;
}

void sql_do(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    PQclear(query(fmt, ap));
    va_end(ap);
}

PGresult *sql_asked(const char *name, const char *sql, struct params *p)
{
    struct err err = ERR_INIT;
    PGresult *r = NULL;
    if (!__real_store_exec(deep->api, name, sql, p, &r, &err)) {
        deep_die("%s: %s", name, err.message);
    }
    return r;
}

int64_t sql_asked_i64(const char *name, const char *sql, struct params *p)
{
    AUTO_RESULT PGresult *r = sql_asked(name, sql, p);
    return row_count(r) > 0 ? row_i64_or(r, 0, 0, 0) : 0;
}

/* Removes what earlier seeds left and resets identities. Rows made by migrations are inserted
 * again. TRUNCATE discards the plans of every session, so it runs once a process; later the rows
 * are deleted. */
void store_world_reset(void)
{
    static char deletes[4096];
    if (deletes[0] == '\0') {
        AUTO_RESULT PGresult *r = sql_rows(
            "SELECT string_agg(format('%%I', relname), ', '), string_agg(format('DELETE FROM %%I', "
            "relname), '; ') FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND "
            "relnamespace = 'public'::regnamespace AND relname <> 'schema_migration'");
        (void)snprintf(deletes, sizeof deletes, "%s", PQgetvalue(r, 0, 1));
        sql_do("SET session_replication_role = replica; TRUNCATE %s RESTART IDENTITY; "
               "SET session_replication_role = origin",
               PQgetvalue(r, 0, 0));
    } else {
        sql_do("SET session_replication_role = replica; %s; SET session_replication_role = origin",
               deletes);
    }
    sql_do(
        "SELECT setval(c.oid::regclass, s.seqstart, false) FROM pg_class c JOIN pg_sequence s ON "
        "s.seqrelid = c.oid WHERE c.relnamespace = 'public'::regnamespace");
    sql_do("INSERT INTO install (id) VALUES ('00000000-0000-4000-8000-00000000d3e9')");
    sql_do("INSERT INTO lease DEFAULT VALUES; INSERT INTO project (name) VALUES ('default')");
}
