/* Definition of struct store, for connection.c, query.c, copy.c, tx.c and lease.c only. */
#pragma once
#include "query.h"

typedef struct pg_conn PGconn; /* of libpq */

#define STORE_MAGIC    0x53544f52u
#define PREPARED_SLOTS 512 /* open addressing; using more than half of it is our bug */

struct store {
    uint32_t magic;
    enum store_role role;
    PGconn *conn;
    bool dead;
    bool leader_lock; /* this session holds the leader's advisory lock */
    bool events;      /* this transaction wrote an event: NOTIFY at commit */
    int64_t wait_us;  /* maximum wait for an answer before the connection is given up */
    size_t prepared_n;
    char *prepared[PREPARED_SLOTS]; /* names of prepared statements */
};

/* Read pending input of an idle connection without blocking. False: it is lost. */
bool store_read_idle(struct store *s);
/* Wait for one of poll's events, or a moment. False: the deadline has passed, the connection is
 * given up. */
bool store_wait_io(struct store *s, short events, int64_t deadline, struct err *err) MUST_CHECK;
/* The next result; NULL after a statement's last one. */
bool store_next_result(struct store *s, int64_t deadline, PGresult **ret,
                       struct err *err) MUST_CHECK;
