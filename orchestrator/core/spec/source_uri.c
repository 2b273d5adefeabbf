/* See source_uri.h. */
#include "source_uri.h"
#include <stdio.h>

bool source_digest_ok(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return text.n == SHA256_HEX_N - 1;
}

bool source_digest(const char *text, struct str *ret)
{
    static const char prefix[] = "sha256:";
    size_t skip = sizeof prefix - 1;
    if (strncmp(text, prefix, skip) != 0) {
        return false;
    }
    *ret = str_of(text + skip);
    return source_digest_ok(*ret);
}

bool source_uri(const char *bucket, struct str digest, char ret[static SOURCE_URI_MAX],
                struct err *err)
{
    size_t n = strlen(bucket);
    while (n > 0 && bucket[n - 1] == '/') {
        n--;
    }
    bool scheme = strncmp(bucket, S3_SCHEME, sizeof S3_SCHEME - 1) == 0;
    int written = snprintf(ret, SOURCE_URI_MAX, "%s%.*s/sources/" STR_FMT "/sourcedir.tar.gz",
                           scheme ? "" : S3_SCHEME, (int)MIN(n, (size_t)SOURCE_URI_MAX), bucket,
                           STR_ARG(digest));
    return written < SOURCE_URI_MAX ||
           err_set(err, ERR_LIMIT, "the name of the bucket is too long for a source");
}
