/* Logins by a provider of OpenID Connect: its people have sessions as those of tokens, each of a
 * token of its own that nobody has the secret of. */
#pragma once
#include "request.h"

struct sign_in;
/* The strings of cfg must live until sign_in_free. The caller owns what it returns. */
struct sign_in *sign_in_new(const struct sign_in_config *cfg);
void sign_in_free(struct sign_in *s); /* NULL ignored */
