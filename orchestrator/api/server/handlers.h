/* Every handler of routes.def, and the parts of the server that have a life of their own. */
#pragma once
#include "request.h"

#define X(method, pattern, role, flags, handler, query, summary)                                   \
    bool handler(struct api_req *r, struct err *err) MUST_CHECK;
#include "routes.def"
#undef X

/* Event streams: one thread reads the table, all streams are suspended between events. */
bool stream_hub_new(const char *conninfo, struct stream_hub **ret, struct err *err) MUST_CHECK;
void stream_hub_stop(struct stream_hub *h); /* ends every stream; NULL ignored */
void stream_hub_free(struct stream_hub *h);

/* Take a keyed request: *ret_replayed when the first answer was given again (or the key refused by
 * *err). Otherwise carry out, then keyed_store inside the transaction, keyed_end in any case. */
struct keyed {
    struct api_req *r;
    char key[256]; /* "": the request has none */
    uint8_t hash[32];
    bool locked;
};
bool keyed_begin(struct api_req *r, bool required, struct keyed *ret, bool *ret_replayed,
                 struct err *err) MUST_CHECK;
/* r's answer so far, to be replayed. location may be "". */
bool keyed_store(struct keyed *k, const char *location, struct err *err) MUST_CHECK;
void keyed_end(struct keyed *k); /* cleanup function */

/* Write an audit row for r. */
bool req_audit(struct api_req *r, const char *action, const char *subject, const char *detail_json,
               struct err *err) MUST_CHECK;
/* The campaign as JSON into r's answer. */
bool campaign_answer(struct api_req *r, int64_t id, int status, struct err *err) MUST_CHECK;
/* Page tokens: opaque to clients, numbers inside. */
char *page_token_make(struct api_req *r, const int64_t *v, int n);
bool page_token_read(struct api_req *r, int64_t *v, int n, bool *ret_given,
                     struct err *err) MUST_CHECK;
/* The part that path parameters 0 (c-<number>) and 1 (its number) and `stage` name. Opens the
 * database. */
bool part_find(struct api_req *r, int64_t *ret_campaign, int64_t *ret_task,
               struct err *err) MUST_CHECK;
