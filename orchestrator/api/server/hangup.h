/* Clients that have hung up, seen at once. libmicrohttpd does not look at a suspended connection:
 * without this a closed one is seen only when it is written to. One epoll set, no polling. */
#pragma once
#include "common/err.h"
#include <microhttpd.h>

/* The new set: a descriptor that poll() finds readable when hangup_take has something. The caller
 * closes it. ERR_INTERNAL. */
bool hangup_new(int *ret_set, struct err *err) MUST_CHECK;
/* Watch conn; `owner` is borrowed until hangup_forget. Also ends it when bytes stay unacknowledged
 * for 30 s: a machine that vanished. Without memory for it conn is not watched. */
void hangup_watch(int set, struct MHD_Connection *conn, void *owner);
/* Call before the connection's socket is closed; not while another thread is in hangup_take. */
void hangup_forget(int set, struct MHD_Connection *conn);
/* The owner of a connection that has changed, NULL: there is none. Each change is given once.
 * *ret_gone: reset, timed out or closed on both sides; else the client has ended its own side. */
void *hangup_take(int set, bool *ret_gone);
