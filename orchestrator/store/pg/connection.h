/* One PostgreSQL connection with prepared statements. Blocking calls with a statement time-out;
 * nothing here is shared between threads. */
#pragma once
#include "common/buf.h"
#include "common/err.h"
#include "common/units.h"

struct store;
enum store_role { STORE_LEADER, STORE_API, STORE_LISTEN, STORE_ADMIN };
/* conninfo: libpq string or URL. Roles set time-outs (leader: idle_in_transaction 2 s, lock 1 s,
 * statement 1 s but for the take-over's reads; API: statement 5 s). */
bool store_open(const char *conninfo, enum store_role role, struct store **ret,
                struct err *err) MUST_CHECK;
void store_close(struct store *s);
bool store_alive(const struct store *s); /* false after a lost connection: reopen */
int store_fd(const struct store *s);     /* LISTEN's socket for the loop */
/* STORE_LISTEN: drain what came; *ret_any true when something was notified. False: connection lost.
 */
bool store_notified(struct store *s, bool *ret_any, struct err *err) MUST_CHECK;
/* How long an answer may take before the connection is given up; 0: what the role says. */
void store_set_wait(struct store *s, int64_t wait_us);
#define STORE_CHANNEL_WANTED "drover_wanted" /* API: something is wanted */
#define STORE_CHANNEL_EVENTS "drover_events" /* leader: events were committed */
