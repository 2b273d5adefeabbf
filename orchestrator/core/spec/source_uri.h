/* The source of a training script by its digest: `source_dir: sha256:DIGEST` in a campaign file
 * stands for the archive that PUT /v1/sources/DIGEST brought to the bucket. */
#pragma once
#include "common/err.h"
#include "common/hash.h"

#define SOURCE_URI_MAX 1025 /* with its NUL */
#define S3_SCHEME      "s3://"

/* True when text is 64 lower-case hexadecimal digits. */
bool source_digest_ok(struct str text) MUST_CHECK;
/* The digest of "sha256:DIGEST", a view into text; false when text is anything else. */
bool source_digest(const char *text, struct str *ret) MUST_CHECK;
/* Where the archive lies: bucket/sources/DIGEST/sourcedir.tar.gz. bucket: a name or s3://name, with
 * or without a folder. ERR_LIMIT when that is too long. */
bool source_uri(const char *bucket, struct str digest, char ret[static SOURCE_URI_MAX],
                struct err *err) MUST_CHECK;
