/* Transactions: begin, commit with its command tag checked, roll back. */
#include "tx.h"
#include "connection_private.h"
#include <libpq-fe.h>

bool tx_open(const struct store *s)
{
    return !s->dead && PQtransactionStatus(s->conn) != PQTRANS_IDLE;
}

bool tx_begin(struct store *s, enum tx_mode mode, struct err *err)
{
    ASSERT(!tx_open(s));
    s->events = false;
    switch (mode) {
    case TX_WRITE:
        return store_plain(s, "BEGIN ISOLATION LEVEL READ COMMITTED", err);
    case TX_SNAPSHOT:
        return store_plain(s, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err);
    }
    BUG("a mode that does not exist");
}

/* COMMIT of a failed transaction is answered with ROLLBACK and no error. */
bool tx_commit(struct store *s, struct err *err)
{
    if (!s->dead && PQtransactionStatus(s->conn) == PQTRANS_INERROR) {
        tx_rollback(s);
        return err_set(err, ERR_DATABASE, "database: commit of a failed transaction");
    }
    bool events = s->events;
    s->events = false;
    return store_plain(s, events ? "NOTIFY " STORE_CHANNEL_EVENTS "; COMMIT" : "COMMIT", err);
}

void tx_rollback(struct store *s)
{
    if (tx_open(s) && !store_plain(s, "ROLLBACK", NULL)) {
        s->dead = true;
    }
    s->events = false;
}
