/* Idempotency keys: a request repeated with its key gets its first answer again. */
#pragma once
#include "request.h"

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
