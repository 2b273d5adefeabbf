/* The normalised form of a campaign file, as the database keeps it. */
#pragma once
#include "common/arena.h"
#include "common/json.h"
#include "spec.h"

/* The normalised form kept in the database, and back. spec_from_json trusts our own writing:
 * ERR_INTERNAL when it does not fit. */
json_t *spec_to_json(const struct spec *s);
bool spec_from_json(const json_t *v, struct arena *a, struct spec **ret,
                    struct err *err) MUST_CHECK;
