/* Files between a file system's folder and S3. Paths are those of one machine. */
#pragma once
#include "common/err.h"
#include <limits.h>

struct fsx_link {        /* an association */
    const char *root;    /* of drover-local */
    const char *folder;  /* of the association in the file system */
    const char *s3_path; /* s3://bucket/prefix/ */
};
struct fsx_counts {
    int64_t total, failed;
};
/* ERR_NOT_FOUND: no such bucket. */
bool fsx_reachable(const struct fsx_link *l, struct err *err) MUST_CHECK;
/* Objects that are not there yet, or newer, become files. ERR_NOT_FOUND: no such bucket. */
bool fsx_import(const struct fsx_link *l, struct fsx_counts *ret, struct err *err) MUST_CHECK;
/* Files below `path` ("": all) that are not in S3 yet, or newer, become objects. */
bool fsx_export(const struct fsx_link *l, const char *path, struct fsx_counts *ret,
                struct err *err) MUST_CHECK;
