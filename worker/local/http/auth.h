/* Checks the signature of a request: Signature Version 4 with the payload's hash, the clock window
 * and the scope. A wrong signature is answered as the service would. */
#pragma once
#include "local/settings.h"
#include "request.h"

/* Check r, whose service is set and whose body is complete. True: r->signed_ok is set. False:
 * r->reply has the refusal. */
bool auth_check(struct request *r, const struct local_settings *set);
/* Answer r as if its session token had expired. */
void auth_refuse_expired_token(struct request *r);
/* The secret of an access key id, configured or given out; false: unknown. */
bool auth_secret(const struct local_settings *set, struct str key_id,
                 char ret[static 129]) MUST_CHECK;
