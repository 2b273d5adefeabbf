/* Deadlines for request heads. libmicrohttpd only ends silent connections, so a byte now and then
 * would keep one open for ever. A thread shuts down connections past their deadline. */
#pragma once
#include "common/err.h"
#include <microhttpd.h>

#define HEAD_TIMEOUT_HEAD_US (10 * USEC_PER_SEC) /* from accept to a complete head */
#define HEAD_TIMEOUT_NEXT_US (40 * USEC_PER_SEC) /* from an answer to the next complete head */

struct head_timeout;
/* Watch up to `max` connections; the caller owns *ret. ERR_INTERNAL. */
bool head_timeout_new(size_t max, struct head_timeout **ret, struct err *err) MUST_CHECK;
/* call after the daemon has stopped; NULL ignored */
void head_timeout_free(struct head_timeout *c);
/* For MHD_OPTION_NOTIFY_CONNECTION; cls is the struct head_timeout. */
void head_timeout_notify(void *cls, struct MHD_Connection *conn, void **socket_context,
                         enum MHD_ConnectionNotificationCode what);
/* The head of a request is complete: no deadline until it is answered. */
void head_timeout_head_read(struct head_timeout *c, struct MHD_Connection *conn);
/* The answer is complete: the deadline of the next head begins. */
void head_timeout_answered(struct head_timeout *c, struct MHD_Connection *conn);
