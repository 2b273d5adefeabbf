/* Which image a tag means now: ECR's BatchGetImage, the call that the policies of AWS's own
 * registries grant. Source: Amazon ECR API reference. */
#pragma once
#include "json_call.h"

#define IMAGE_DIGEST_N 72 /* "sha256:", 64 digits and NUL */

/* digest: "sha256:..."; NULL without a failure: there is no such image. */
typedef void (*image_digest_cb)(void *ctx, const char *digest, const struct aws_failure *failure);
/* tag: or a digest, which is looked for. cb runs once. */
void image_digest(struct aws_client *c, const char *registry, const char *repository,
                  const char *tag, image_digest_cb cb, void *ctx);
