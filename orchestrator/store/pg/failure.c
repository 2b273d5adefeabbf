/* What a failed statement means: each SQLSTATE as an error code, and whether the connection is lost
 * with it. */
#include "connection_private.h"
#include "query.h"
#include <libpq-fe.h>
#include <stdio.h>

/* Classes and codes of appendix A of PostgreSQL's manual; the longest matching prefix wins. */
static const struct state_row {
    const char *prefix;
    enum err_code code;
} state_rows[] = {
    {"23505", ERR_CONFLICT}, {"40P01", ERR_TIMEOUT},     {"55P03", ERR_TIMEOUT},
    {"57014", ERR_TIMEOUT},  {"57P", ERR_UNAVAILABLE},   {"53", ERR_UNAVAILABLE},
    {"08", ERR_UNAVAILABLE}, {"25006", ERR_UNAVAILABLE}, {"25P03", ERR_UNAVAILABLE},
};

static enum err_code code_of_state(const char *state, enum store_role role)
{
    if (strcmp(state, "40001") == 0) {
        return role == STORE_LEADER ? ERR_NOT_LEADER : ERR_TIMEOUT;
    }
    for (size_t i = 0; i < ARRAY_LEN(state_rows); i++) {
        if (strncmp(state, state_rows[i].prefix, strlen(state_rows[i].prefix)) == 0) {
            return state_rows[i].code;
        }
    }
    return ERR_DATABASE;
}

bool store_fail(struct store *s, const PGresult *res, const char *what, struct err *err)
{
    const char *state = res == NULL ? NULL : PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *text = res == NULL ? NULL : PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    if (PQstatus(s->conn) == CONNECTION_BAD) {
        s->dead = true;
    }
    if (state == NULL) {
        struct str m = str_trim(str_of(PQerrorMessage(s->conn)));
        s->dead = true; /* an error of libpq itself: the connection is unusable */
        return err_set(err, ERR_UNAVAILABLE, "database: %s: " STR_FMT, what, STR_ARG(m));
    }
    (void)err_set(err, s->dead ? ERR_UNAVAILABLE : code_of_state(state, s->role),
                  "database: %s: %s", what, text == NULL ? "failed" : text);
    if (err != NULL) {
        (void)snprintf(err->sqlstate, sizeof err->sqlstate, "%s", state);
    }
    return false;
}
