/* Transactions of handlers and of reads. The leader's writes use leader_begin instead. */
#pragma once
#include "connection.h"

enum tx_mode {
    TX_WRITE,    /* read committed */
    TX_SNAPSHOT, /* repeatable read, read only: all queries see one state */
};
/* Begin; false leaves no transaction open. */
bool tx_begin(struct store *s, enum tx_mode mode, struct err *err) MUST_CHECK;
/* Commit. ERR_UNAVAILABLE: the connection was lost and the outcome is unknown; check before
 * repeating. */
bool tx_commit(struct store *s, struct err *err) MUST_CHECK;
void tx_rollback(struct store *s); /* no effect when no transaction is open */
bool tx_open(const struct store *s);

/* Cleanup for a local `struct store *`: rolls back unless committed. */
static inline void tx_rollbackp(struct store **s)
{
    if (*s != NULL) {
        tx_rollback(*s);
    }
}
#define AUTO_TX CLEANUP(tx_rollbackp)
