/* One PostgreSQL connection with prepared statements. Calls block, bounded by a statement time-out.
 * A connection belongs to one thread. */
#pragma once
#include "common/buf.h"
#include "common/err.h"
#include "common/units.h"

struct store;
/* STORE_INPUTS is a leader's second one, for large reads. STORE_LISTEN hears both channels,
 * STORE_LISTEN_WANTED only what the API wants: a leader's own events must not wake it. */
enum store_role {
    STORE_LEADER,
    STORE_INPUTS,
    STORE_API,
    STORE_LISTEN,
    STORE_LISTEN_WANTED,
    STORE_ADMIN,
    STORE_MAINTENANCE,
    STORE_NOTICES
};
/* Open a connection; the caller owns *ret. conninfo: libpq string or URL. The role sets time-outs
 * (leader and inputs: idle_in_transaction 2 s, lock 1 s, statement 1 s; API: statement 5 s;
 * notices: the same, lock 1 s; maintenance: lock 50 ms, statement 1 s). ERR_UNAVAILABLE,
 * ERR_DATABASE. */
bool store_open(const char *conninfo, enum store_role role, struct store **ret,
                struct err *err) MUST_CHECK;
/* Blocks until the server answers, or ERR_UNAVAILABLE after wait_us. A server that answers but
 * refuses (no such database, a wrong password) counts as there: store_open says why. */
bool store_wait(const char *conninfo, int64_t wait_us, struct err *err) MUST_CHECK;
void store_close(struct store *s);
bool store_alive(const struct store *s); /* false after a lost connection: open a new one */
int store_fd(const struct store *s);     /* the socket of a listening one, for the loop */
/* A listening one: read all pending notifications; *ret_any: there was one. False: connection
 * lost. */
bool store_notified(struct store *s, bool *ret_any, struct err *err) MUST_CHECK;
/* How long a statement of this session waits for a lock from now on. */
bool store_lock_wait(struct store *s, int64_t wait_us, struct err *err) MUST_CHECK;
/* How long a statement of this session may take from now on; 0: as its role has it. A server that
 * says nothing for five seconds more loses the connection. */
bool store_statement_limit(struct store *s, int64_t limit_us, struct err *err) MUST_CHECK;
/* Maximum wait for an answer before the connection is given up; 0: the role's default. */
void store_set_wait(struct store *s, int64_t wait_us);
#define STORE_CHANNEL_WANTED "drover_wanted" /* API: something wanted has changed */
#define STORE_CHANNEL_EVENTS "drover_events" /* leader: events were committed */
