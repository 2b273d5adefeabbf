/* Objects whose keys are no paths of files: an empty segment (`a//b`, `/a`, a `/` at the end), one
 * that is too long for a file name, too many of them; and one of `a` and `a/b` when both are there,
 * since a file is no folder. Such an object is a file below ROOT/s3/.keys/<bucket>, named by the
 * hex digits of its key, so that names sort as the keys do. */
#pragma once
#include "common/err.h"
#include <limits.h>

#define S3_SEGMENTS_MAX 128

/* No path of a file at all, whatever else is there. */
bool s3_awkward_key(const char *key);
/* Where the object is when it is kept here. */
bool s3_awkward_path(const char *root, const char *bucket, const char *key,
                     char out[static PATH_MAX], struct err *err) MUST_CHECK;

struct s3_awkward {
    char *key;
    char *path;
};
/* Those of a bucket with this prefix and after this key, in key order; s3_awkward_free frees. */
size_t s3_awkward_list(const char *root, const char *bucket, const char *prefix, const char *after,
                       struct s3_awkward **ret);
void s3_awkward_free(struct s3_awkward *list, size_t n);
/* True when the bucket has any. */
bool s3_awkward_any(const char *root, const char *bucket);
