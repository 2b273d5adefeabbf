/* The inside of struct store, for store.c, query.c, tx.c and lease.c only. */
#pragma once
#include "query.h"

typedef struct pg_conn PGconn; /* libpq's */

#define STORE_MAGIC    0x53544f52u
#define PREPARED_SLOTS 512 /* open addressing; more queries than half of it is our bug */

struct store {
    uint32_t magic;
    enum store_role role;
    PGconn *conn;
    bool dead;
    bool leader_lock; /* this session holds the leader's advisory lock */
    bool events;      /* this transaction wrote an event: NOTIFY at its commit */
    int64_t wait_us;  /* how long an answer may take before the connection is given up */
    size_t prepared_n;
    char *prepared[PREPARED_SLOTS]; /* names */
};

/* Read what came on a connection that waits for no answer; false: it is lost. Does not block. */
bool store_read_idle(struct store *s);
