/* See tx_error.h. Classes and codes are those of appendix A of PostgreSQL's manual. */
#include "tx_error.h"
#include <string.h>

/* The longest prefix that matches wins. What is not listed is about the data. */
static const struct meaning_row {
    const char *prefix;
    enum tx_meaning meaning;
} rows[] = {
    {"08", TX_LOST},       /* connection */
    {"0A000", TX_LOST},    /* a cached plan outlived a migration: a new session plans again */
    {"25006", TX_LOST},    /* read-only: not the primary any more */
    {"25P03", TX_LOST},    /* idle in a transaction for too long */
    {"26", TX_LOST},       /* prepared statements are gone: not the session we opened */
    {"28", TX_LOST},       /* our user is not let in any more */
    {"40", TX_BUSY},       /* serialization, deadlock; a lost lease shows at the next begin */
    {"40002", TX_REFUSED}, /* integrity constraint */
    {"40003", TX_LOST},    /* statement completion unknown */
    {"42", TX_BUSY},       /* rights, missing tables: the statements are fixed, so no row did it */
    {"53", TX_BUSY},       /* disk full, out of memory, too many connections */
    {"55", TX_BUSY},       /* lock not available, object in use */
    {"57", TX_BUSY},       /* cancelled: statement or lock time-out, an administrator */
    {"57P", TX_LOST},      /* shut down, dropped */
    {"58", TX_BUSY},       /* the server's system: I/O */
};

enum tx_meaning tx_error_meaning(const struct err *e, bool alive)
{
    const struct meaning_row *best = NULL;
    if (!alive) {
        return TX_LOST;
    }
    if (e->sqlstate[0] == '\0') {
        bool lost = e->code == ERR_NOT_LEADER || e->code == ERR_UNAVAILABLE;
        return lost ? TX_LOST : e->code == ERR_TIMEOUT ? TX_BUSY : TX_REFUSED;
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t n = strlen(rows[i].prefix);
        if (strncmp(e->sqlstate, rows[i].prefix, n) == 0 &&
            (best == NULL || n > strlen(best->prefix))) {
            best = &rows[i];
        }
    }
    return best != NULL ? best->meaning : TX_REFUSED;
}

enum tx_meaning tx_commit_meaning(const struct err *e, bool alive)
{
    return alive && e->sqlstate[0] != '\0' ? TX_BUSY : TX_LOST;
}

enum tx_batch tx_batch_after(enum tx_meaning meaning)
{
    switch (meaning) {
    case TX_DONE:
        return TX_BATCH_WRITTEN;
    case TX_BUSY:
    case TX_REFUSED:
        return TX_BATCH_EACH;
    case TX_LOST:
        break;
    }
    return TX_BATCH_LEFT;
}
