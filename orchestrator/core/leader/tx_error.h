/* What an error inside a transaction of the leader means for leading. Pure. */
#pragma once
#include "common/err.h"

enum tx_meaning {
    TX_DONE,
    TX_LOST,    /* fence or connection lost, COMMIT unknown: let go of the leadership */
    TX_BUSY,    /* locked, timed out, no room: nothing was written; the subject backs off */
    TX_REFUSED, /* this value will never be taken: the row is parked */
};

/* alive: the connection still works. */
enum tx_meaning tx_error_meaning(const struct err *e, bool alive);
/* What a failed COMMIT means: answered with an error it has written nothing; without an answer
 * nobody knows, and the next takeover reads what came of it. */
enum tx_meaning tx_commit_meaning(const struct err *e, bool alive);

/* What follows when several subjects' writes went into one transaction. */
enum tx_batch {
    TX_BATCH_WRITTEN,
    TX_BATCH_EACH, /* nothing was: each in one of its own, so that only those wait that are meant */
    TX_BATCH_LEFT, /* they are not ours to write any more */
};
enum tx_batch tx_batch_after(enum tx_meaning meaning);
