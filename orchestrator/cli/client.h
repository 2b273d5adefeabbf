/* Blocking calls of the API. */
#pragma once
#include "cli.h"

struct client_reply {
    int status;
    json_t *json;    /* NULL: no JSON body */
    struct buf text; /* the raw body */
    char etag[128];
};
void reply_done(struct client_reply *r); /* cleanup function */
/* Of the context of that name. With NULL: of DROVER_URL, else of the context in use, else of this
 * machine; the token of DROVER_TOKEN_FILE, else of that context, else of the file droverd made. A
 * context's token goes to its own server only. The caller owns *ret. ERR_NOT_FOUND: there is no
 * such context; ERR_INVALID. */
bool client_new(struct client **ret, const char *context, struct err *err) MUST_CHECK;
/* Of this server, with this token. The caller owns it. */
struct client *client_of(const char *url, const char *token);
/* ERR_INVALID: not the address of a server. */
bool client_check_url(const char *url, struct err *err) MUST_CHECK;
void client_free(struct client *c);
const char *client_url(const struct client *c);
struct client_call {
    const char *method, *path; /* path with its query, from /v1 or / */
    struct str body;
    const char *type; /* NULL: application/json */
    /* Idempotency-Key; a call with one is repeated while the server is unreachable or busy */
    const char *key;
    bool once;              /* not repeated, with a key either: the route may ignore keys */
    const char *if_match;   /* NULL: not sent */
    const char *last_event; /* id of the last event of a stream; NULL: not sent */
    bool no_token;
    bool (*on_data)(void *ctx, struct str data); /* called for each piece of a streamed reply */
    void *ctx;
    int64_t timeout_us; /* 0: 60 s */
};
/* True for a 2xx. Otherwise prints the reason on stderr (unless `quiet`) and sets *ret_exit to the
 * exit status. */
bool client_call(struct cli *cli, const struct client_call *call, struct client_reply *ret,
                 int *ret_exit) MUST_CHECK;
/* The same without messages: repeated as that is. True for any HTTP reply; false: none came, which
 * does not mean that the request was not carried out. */
bool client_repeat(struct cli *cli, const struct client_call *call, struct client_reply *ret,
                   struct err *err) MUST_CHECK;
/* One call without messages. True for any HTTP reply, whatever its status. */
bool client_try(struct cli *cli, const struct client_call *call, struct client_reply *ret,
                struct err *err) MUST_CHECK;
int client_explain(const struct cli *cli,
                   const struct client_reply *r); /* print a refusal; returns the exit status */
/* GET path (printf) into *ret; otherwise as client_call. */
bool client_get(struct cli *cli, struct client_reply *ret, int *ret_exit, const char *fmt,
                ...) MUST_CHECK PRINTF(4, 5);
/* POST without a body to path (printf), under an idempotency key of its own, so that it is repeated
 * safely; otherwise as client_call. */
bool client_post(struct cli *cli, struct client_reply *ret, int *ret_exit, const char *fmt,
                 ...) MUST_CHECK PRINTF(4, 5);
/* Append a parameter to a query: "?" or "&", the name, "=" and the value, URL-encoded. Nothing when
 * the value is "". */
void query_add(struct buf *query, const char *name, const char *value);
/* A random idempotency key (UUID text). */
void key_random(char ret[static 37]);
