/* The HTTP server over libmicrohttpd: a small pool of epoll threads. Bodies are collected or
 * streamed to files; answers are sent whole, late, by half or not at all, as the reply says. */
#pragma once
#include "common/err.h"

struct app;
struct server;
struct MHD_Connection;

/* Listen on "ADDR:PORT" (port 0: any) and serve. *ret_port is the port in use. */
bool server_start(struct app *app, const char *listen, struct server **ret,
                  struct err *err) MUST_CHECK;
void server_stop(struct server *s);
/* Go on with a connection that was suspended until its answer falls due (job_clock_resume_at). */
void server_resume(struct MHD_Connection *conn);
