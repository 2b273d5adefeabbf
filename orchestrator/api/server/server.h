/* The REST API and the dashboard's files: libmicrohttpd's I/O threads read requests and write
 * answers, a small pool of workers runs the handlers (each with a database connection of its own),
 * one thread feeds the event streams. Handlers authenticate, validate, run one transaction, answer;
 * they never act on AWS and never write what the leader writes. */
#pragma once
#include "bridge.h"
#include "common/err.h"
#include "common/units.h"
#include "core/spec/spec.h"
#include "core/spec/spec_parse.h"
#include "status.h"

struct api_config {
    const char *listen;     /* address to bind; NULL: 127.0.0.1 */
    uint16_t port;          /* 0: any free one, see api_port */
    const char *conninfo;   /* PostgreSQL */
    const char *token_file; /* first admin token "id.secret"; made with mode 0600 if absent */
    struct spec_defaults defaults;   /* what droverd adds to campaign files; strings borrowed */
    const struct api_status *status; /* NULL: reported as not leading */
    const char *version;             /* shown by /livez and the CLI; NULL: "dev" */
    const char *spool_dir;           /* big bodies are spooled here, unlinked at once; NULL: /tmp */
    int threads;                     /* workers, 2..64; 0: 8 */
    int connections;                 /* at once, streams included; 0: 1024 */
    int64_t rate_per_s, burst;       /* requests a token; rate 0: off */
    bool secure_cookie;              /* the browser reaches us by https */
};
struct api;
/* Bind, check the token file, start the threads. ERR_IO naming the address when it cannot bind,
 * ERR_DATABASE, ERR_INVALID for a token file that does not hold a token. cfg's strings must live
 * until api_stop. */
bool api_start(const struct api_config *cfg, struct bridge *bridge, struct api **ret,
               struct err *err) MUST_CHECK;
/* End streams, wait for running handlers (call bridge_close first, so that none waits on AWS). */
void api_stop(struct api *a); /* NULL ignored */
uint16_t api_port(const struct api *a);
