/* Checks the signature of a request: Signature Version 4 with the payload's hash, the clock window
 * and the scope. A wrong signature is answered as the service would. */
#pragma once
#include "local/settings.h"
#include "request.h"

/* Check r, whose service is set and whose body is complete. True: r->signed_ok is set. False:
 * r->reply has the refusal. */
bool auth_check(struct request *r, const struct local_settings *set);
/* Give u, the body of r, what its signed chunks are checked with: key, scope, date and first
 * signature, from the Authorization header. False: that header is missing or malformed, or the key
 * is unknown. */
bool auth_prepare_chunks(const struct request *r, const struct local_settings *set,
                         struct upload *u) MUST_CHECK;
/* Answer r as if its session token had expired. */
void auth_refuse_expired_token(struct request *r);
