/* Blocking calls of the API. */
#pragma once
#include "cli.h"

struct client_reply {
    int status;
    json_t *json;    /* NULL when the body is none */
    struct buf text; /* as it came */
    char etag[128];
};
void reply_done(struct client_reply *r); /* cleanup function */
bool client_new(struct client **ret, struct err *err) MUST_CHECK;
void client_free(struct client *c);
const char *client_url(const struct client *c);
struct client_call {
    const char *method, *path; /* path with its query, from /v1 or / on */
    struct str body;
    const char *type;     /* NULL: application/json */
    const char *key;      /* Idempotency-Key: the call is repeated when the server is away */
    const char *if_match; /* NULL: none */
    bool no_token;
    bool (*on_data)(void *ctx, struct str data); /* a stream */
    void *ctx;
    int64_t timeout_us; /* 0: 60 s */
};
/* True when a 2xx came. Otherwise says why on stderr (unless `quiet`) and gives the exit status in
 * *ret_exit. */
bool client_call(struct cli *cli, const struct client_call *call, struct client_reply *ret,
                 int *ret_exit) MUST_CHECK;
bool client_try(struct cli *cli, const struct client_call *call, struct client_reply *ret,
                struct err *err) MUST_CHECK;
int client_explain(const struct cli *cli,
                   const struct client_reply *r); /* exit status of a refusal */
/* GET path (printf) into *ret. */
bool client_get(struct cli *cli, struct client_reply *ret, int *ret_exit, const char *fmt,
                ...) MUST_CHECK PRINTF(4, 5);
void key_random(char ret[static 37]);
