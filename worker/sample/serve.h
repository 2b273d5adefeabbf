/* The `serve-sample` command: the container of an endpoint. GET /ping, POST /invocations. */
#pragma once
#include "common/buf.h"

/* Run with settings from argv[argc]. Returns an exit status of worker_protocol.h. */
int serve_main(int argc, char *const *argv);
void serve_help(struct buf *out);
