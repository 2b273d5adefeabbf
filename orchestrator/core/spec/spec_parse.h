/* Parses a campaign file and reports every fault with line, column and what to write instead. The
 * kinds of stages are those of stage_kind.def; others are refused by name. */
#pragma once
#include "common/arena.h"
#include "common/position.h"
#include "common/str.h"
#include "spec.h"

/* droverd's settings for keys that the file leaves out. NULL: the file must have the key. */
struct spec_defaults {
    const char *role;
    const char *worker_image;
    const char *bucket;         /* {bucket} when vars does not define it */
    const char *region;         /* of the images that `framework` names, and of all others */
    bool any_region;            /* `region` is a guess: images of others are not refused */
    const char *bucket_kms_key; /* output_kms_key of our worker's stages; NULL: none */
};
/* Parses YAML or JSON. The spec and its strings live in `a`. False: `faults` has all faults. */
bool spec_parse(struct str text, const struct spec_defaults *d, struct arena *a, struct spec **ret,
                struct faults *faults) MUST_CHECK;
/* Compares the highest cost of one attempt, or of an endpoint's whole ttl, with every budget it
 * counts against. False: a stage could not start even alone; each such stage has a fault with both
 * amounts. price_of gives the price of the stage's first type, or false when it is unknown: that
 * stage waits and is not checked. */
typedef bool spec_price_fn(void *ctx, const struct spec_stage *s, musd_t *ret_musd_per_hour);
bool spec_check_budget(const struct spec *s, spec_price_fn *price_of, void *ctx,
                       struct faults *faults) MUST_CHECK;
/* Warnings for what is allowed but risky: an image without a digest, a download inside a VPC. */
void spec_warn(const struct spec *s, struct faults *ret);
