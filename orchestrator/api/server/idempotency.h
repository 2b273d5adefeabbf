/* Idempotency keys: a request repeated with its key gets its first answer again. */
#pragma once
#include "request.h"

/* A request with its key. Call keyed_begin, then unless replayed keyed_store inside the
 * transaction, and keyed_end in any case. */
struct keyed {
    struct api_req *r;
    char key[256]; /* "": the request has no key */
    uint8_t hash[32];
    bool locked;
};
/* Reads the key; `required`: a missing key is ERR_MALFORMED. *ret_replayed: r already holds the
 * first answer. ERR_KEY_IN_USE: the first request still runs. ERR_KEY_REUSED: the key belongs to
 * another request. */
bool keyed_begin(struct api_req *r, bool required, struct keyed *ret, bool *ret_replayed,
                 struct err *err) MUST_CHECK;
/* Store r's answer for replay; location may be "". */
bool keyed_store(struct keyed *k, const char *location, struct err *err) MUST_CHECK;
/* For an answer whose secret is kept nowhere else: stores the name of what was made only. */
bool keyed_store_secret(struct keyed *k, const char *id, const char *location,
                        struct err *err) MUST_CHECK;
/* r holds what keyed_begin has replayed. ERR_CONFLICT, with the name of what was made, when that
 * is all that is left of the first answer; `then`: what to do. */
bool keyed_told(struct api_req *r, const char *then, struct err *err) MUST_CHECK;
void keyed_end(struct keyed *k); /* cleanup function */
