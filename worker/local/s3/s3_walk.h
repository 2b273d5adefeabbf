/* Listing a bucket in the order of its keys, without reading more folders than the answer needs. */
#pragma once
#include "s3_awkward.h"
#include "s3_store.h"

struct s3_walk {
    const char *root;
    const char *bucket;
    const char *prefix;    /* only keys with this prefix */
    const char *after;     /* only keys after this one; "": all */
    const char *delimiter; /* keys that contain it after the prefix are rolled up; "": no roll-up */
    /* One key (st set) or rolled-up prefix (st NULL). False ends the walk. */
    bool (*found)(void *ctx, const char *key, const struct stat *st, const char *path);
    void *ctx;
    char rolled[S3_KEY_MAX + 1]; /* the last rolled-up prefix */
    bool done;
    /* Of the walk: what of the awkward keys is still to come, in order. */
    struct s3_awkward *awkward;
    size_t awkward_n, awkward_at;
};
bool s3_walk_run(struct s3_walk *w, struct err *err) MUST_CHECK;
