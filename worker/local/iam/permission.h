/* What a request needs to be allowed, and whether the policies of who signed it allow that. A
 * principal without policies is an administrator. */
#pragma once
#include "local/http/request.h"

/* Check r, which is signed, routed and parsed, against the setting `policies`. False: it is
 * answered as the service refuses, with action and resource in the text. app->mu held. */
bool permission_check(struct request *r) MUST_CHECK;
/* True when who signed r may do one more thing, which only the handler finds; answers nothing.
 * Needs no lock. */
bool permission_allows(const struct request *r, const char *action, const char *resource);
