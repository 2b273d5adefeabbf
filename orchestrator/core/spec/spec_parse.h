/* A campaign file from text: validated with every fault at once (line, column, what to write
 * instead). This version knows stages of kind `jobs` with `worker: download` or an `image:` of the
 * user's; the other kinds are refused by name. */
#pragma once
#include "common/arena.h"
#include "common/position.h"
#include "common/str.h"
#include "spec.h"

/* What droverd adds where a file is silent. NULL: then the file must say it. */
struct spec_defaults {
    const char *role;
    const char *worker_image;
    const char *bucket; /* {bucket} when vars does not define it */
};
/* Text (YAML or JSON) to a spec whose strings live in a. False: faults says all of them. */
bool spec_parse(struct str text, const struct spec_defaults *d, struct arena *a, struct spec **ret,
                struct faults *faults) MUST_CHECK;
/* What one attempt may cost at worst against every cap it must fit; false and a fault with both
 * numbers for each stage that cannot start even alone. price_of: false when the price is not known
 * (such a stage waits instead). */
typedef bool spec_price_fn(void *ctx, const char *instance_type, musd_t *ret_musd_per_hour);
bool spec_check_budget(const struct spec *s, spec_price_fn *price_of, void *ctx,
                       struct faults *faults) MUST_CHECK;
/* What is allowed but worth a word: an image without a digest, a download inside a VPC. */
void spec_warn(const struct spec *s, struct faults *ret);
