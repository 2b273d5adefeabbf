/* The REST API and the dashboard's files. libmicrohttpd's I/O threads read requests and write
 * answers, a small pool of threads runs the handlers (each with its own database connection), one
 * thread feeds the event streams. A handler authenticates, validates, runs one transaction and
 * answers. Handlers never call AWS and never write the leader's tables. */
#pragma once
#include "bridge.h"
#include "common/err.h"
#include "common/http.h"
#include "common/units.h"
#include "core/spec/spec.h"
#include "core/spec/spec_parse.h"
#include "oidc/oidc.h"
#include "oidc/person.h"
#include "status.h"

struct listen_address;
/* Ways to sign in besides tokens. */
struct sign_in_config {
    struct oidc_config oidc; /* issuer NULL: no provider */
    const char *name;        /* of the provider, for people */
    struct person_rules rules;
    const char *proxy_socket; /* path of the socket that a proxy comes by; NULL: none */
    const char *user_header, *groups_header; /* of the proxy: who it is, and the groups by commas */
};
struct api_config {
    const struct listen_address *listen; /* NULL: 127.0.0.1 and any free port, see api_port */
    const char *conninfo;                /* of PostgreSQL */
    const char *token_file; /* first admin token "id.secret"; made with mode 0600 when absent */
    struct spec_defaults defaults;   /* added to campaign files; strings borrowed */
    const struct api_status *status; /* NULL: reported as not leading */
    const char *version;             /* shown by /livez and the CLI; NULL: "dev" */
    /* large bodies are spooled here to unlinked files; NULL: /tmp */
    const char *spool_dir;
    int threads;                 /* handler threads, 2..64; 0: 8 */
    int connections;             /* at once, including streams; 0: 1024 */
    const char *trusted_proxies; /* networks whose X-Forwarded-For counts; NULL: none */
    int streams_per_token;       /* event streams; 0: 16 */
    int streams_per_address;     /* from elsewhere than this machine; 0: 200 */
    int64_t bodies_max;          /* bytes of request bodies in memory; 0: 64 MiB */
    int64_t spooled_max;         /* the same in spool_dir; 0: 4 GiB */
    int64_t body_us; /* how long a body may take; 0: 10 minutes, 2 hours of a bulk route */
    int64_t rate_per_s, burst; /* requests per token; rate 0: no limit */
    int64_t
        failures_forget_us;  /* after which wrong tokens of an address are forgotten; 0: 10 min */
    bool secure_cookie;      /* browsers reach the server by https */
    struct mail_server mail; /* without one, url "" or NULL, mailto: is refused */
    struct sign_in_config sign_in;
};
struct api;
/* Bind, check the token file, start the threads. The strings of cfg must live until api_stop; the
 * caller owns *ret. ERR_IO (names the address) when it cannot bind, ERR_DATABASE, ERR_INVALID when
 * the token file holds no token. */
bool api_start(const struct api_config *cfg, struct bridge *bridge, struct api **ret,
               struct err *err) MUST_CHECK;
/* End the streams and wait for running handlers. Call bridge_close first, so that no handler waits
 * for AWS. Frees a. */
void api_stop(struct api *a); /* NULL ignored */
/* The port it listens on. */
uint16_t api_port(const struct api *a);
