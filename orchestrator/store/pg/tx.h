/* Transactions of API threads and of reads; the leader's writes use leader_begin instead. */
#pragma once
#include "connection.h"

enum tx_mode {
    TX_WRITE,    /* read committed */
    TX_SNAPSHOT, /* repeatable read, read only: several queries see one state */
};
bool tx_begin(struct store *s, enum tx_mode mode, struct err *err) MUST_CHECK;
/* A connection lost here leaves the outcome unknown: ERR_UNAVAILABLE; look before repeating. */
bool tx_commit(struct store *s, struct err *err) MUST_CHECK;
void tx_rollback(struct store *s); /* nothing when no transaction is open */
bool tx_open(const struct store *s);

/* Cleanup for a local `struct store *`: rolls back what was not committed. */
static inline void tx_rollbackp(struct store **s)
{
    if (*s != NULL) {
        tx_rollback(*s);
    }
}
#define AUTO_TX CLEANUP(tx_rollbackp)
