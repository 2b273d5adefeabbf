/* The same for many objects, MANY_N at once. */
#pragma once
#include "common/s3.h"

#define MANY_N 32
struct many { /* value; all borrowed */
    size_t n;
    /* A thread's own connection; NULL: they need none. */
    bool (*connect)(void *ctx, struct s3_blocking **ret, struct err *err);
    /* For each i < n once, by any of the threads; the first failure ends it. s3: NULL without
     * connect. */
    bool (*one)(void *ctx, struct s3_blocking *s3, size_t i, struct err *err);
    void *ctx;
};
/* False with the first failure. */
bool many_run(const struct many *of, struct err *err) MUST_CHECK;
