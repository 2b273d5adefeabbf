/* Signatures of webhooks as https://www.standardwebhooks.com has them. */
#pragma once
#include "common/buf.h"

/* Appends "v1,BASE64" of HMAC-SHA-256 over "id.timestamp.body". Pure. */
void signature_make(struct str secret, const char *id, int64_t timestamp_s, struct str body,
                    struct buf *ret);
