/* Deadlines for request heads. libmicrohttpd only ends silent connections, so a byte now and then
 * would keep one open for ever. A thread shuts down connections past their deadline. */
#pragma once
#include "common/err.h"
#include <microhttpd.h>

#define HEAD_TIMEOUT_HEAD_US (10 * USEC_PER_SEC) /* from accept to a complete head */
#define HEAD_TIMEOUT_NEXT_US (40 * USEC_PER_SEC) /* from an answer to the next complete head */

#define HEAD_TIMEOUT_RESERVE     16
#define HEAD_TIMEOUT_RESERVE_US  (2 * USEC_PER_SEC) /* to a whole head, in the reserve */
#define HEAD_TIMEOUT_PER_ADDRESS 32

struct head_timeout;
struct proxies;
/* Watch up to `max` connections; the caller owns *ret. ERR_INTERNAL. */
/* `max` connections are watched. Those above max - HEAD_TIMEOUT_RESERVE are the reserve: they may
 * ask for probes only. More than HEAD_TIMEOUT_PER_ADDRESS from one address that is neither this
 * machine nor one of `proxies` (borrowed) are shut down at once. */
bool head_timeout_new(size_t max, const struct proxies *proxies, struct head_timeout **ret,
                      struct err *err) MUST_CHECK;
/* call after the daemon has stopped; NULL ignored */
void head_timeout_free(struct head_timeout *c);
/* For MHD_OPTION_NOTIFY_CONNECTION; cls is the struct head_timeout. */
void head_timeout_notify(void *cls, struct MHD_Connection *conn, void **socket_context,
                         enum MHD_ConnectionNotificationCode what);
/* The head of a request is complete: no deadline until it is answered. */
void head_timeout_head_read(struct head_timeout *c, struct MHD_Connection *conn);
/* The answer is complete: the deadline of the next head begins. */
void head_timeout_answered(struct head_timeout *c, struct MHD_Connection *conn);
/* True when this connection was accepted into the reserve. */
bool head_timeout_in_reserve(struct head_timeout *c, struct MHD_Connection *conn);
