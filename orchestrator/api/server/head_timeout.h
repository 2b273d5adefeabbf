/* Connections whose head does not come: libmicrohttpd only ends silent ones, so that a byte now and
 * then would hold one for ever. A thread shuts down those past their deadline. */
#pragma once
#include "common/err.h"
#include <microhttpd.h>

#define HEAD_TIMEOUT_HEAD_US (10 * USEC_PER_SEC) /* from accepted to a whole head */
#define HEAD_TIMEOUT_NEXT_US (40 * USEC_PER_SEC) /* from an answer to the next whole head */

struct head_timeout;
bool head_timeout_new(size_t max, struct head_timeout **ret, struct err *err) MUST_CHECK;
void head_timeout_free(struct head_timeout *c); /* after the daemon has stopped; NULL ignored */
/* For MHD_OPTION_NOTIFY_CONNECTION; cls is the struct head_timeout. */
void head_timeout_notify(void *cls, struct MHD_Connection *conn, void **socket_context,
                         enum MHD_ConnectionNotificationCode what);
void head_timeout_head_read(struct head_timeout *c, struct MHD_Connection *conn);
void head_timeout_answered(struct head_timeout *c, struct MHD_Connection *conn);
