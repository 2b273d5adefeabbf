/* The normalised form of a campaign file, as the database keeps it. */
#pragma once
#include "common/arena.h"
#include "common/json.h"
#include "spec.h"

/* Writes and reads the normalised form. spec_from_json gives ERR_INTERNAL when the value was not
 * written by spec_to_json. */
json_t *spec_to_json(const struct spec *s);
bool spec_from_json(const json_t *v, struct arena *a, struct spec **ret,
                    struct err *err) MUST_CHECK;
