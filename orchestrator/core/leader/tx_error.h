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
