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
void keyed_end(struct keyed *k); /* cleanup function */
