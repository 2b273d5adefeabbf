/* Connections whose head does not come: libmicrohttpd only ends silent ones, so that a byte now and
 * then would hold one for ever. A thread shuts down those past their deadline. */
#pragma once
#include "common/err.h"
#include <microhttpd.h>

#define CONN_HEAD_US (10 * USEC_PER_SEC) /* from accepted to a whole head */
#define CONN_NEXT_US (40 * USEC_PER_SEC) /* from an answer to the next whole head */

struct conns;
bool conns_new(size_t max, struct conns **ret, struct err *err) MUST_CHECK;
void conns_free(struct conns *c); /* after the daemon has stopped; NULL ignored */
/* For MHD_OPTION_NOTIFY_CONNECTION; cls is the struct conns. */
void conns_notify(void *cls, struct MHD_Connection *conn, void **socket_context,
                  enum MHD_ConnectionNotificationCode what);
void conns_head_read(struct conns *c, struct MHD_Connection *conn);
void conns_answered(struct conns *c, struct MHD_Connection *conn);
