/* Settings of `copy`. */
#pragma once
#include "common/buf.h"
#include <jansson.h>

struct copy_options {     /* copy_options_done frees */
    char *from;           /* sources, separated by white space */
    char *to;             /* template of each file's target */
    char *output_folder;  /* of manifest, receipt and state; "": the fixed folder of `to` */
    char *checksums;      /* where "SUM  NAME" lines are read; "": none */
    char *region;         /* of the sources in S3; "": the job's own */
    char *secret;         /* ARN in Secrets Manager or the Parameter Store; "": none */
    char *auth_header;    /* name of the header that carries the secret */
    char *auth_prefix;    /* text before the secret */
    int64_t expect_files; /* 0: any number */
    int64_t part;         /* {part} of the first file */
    int64_t files_at_once;
    int64_t tries; /* failures in a row without a byte of progress */
    int64_t stall_s;
    int64_t range_kb; /* of one ranged request */
    int64_t progress_interval_s;
    int64_t stop_s;
    int64_t checkpoint_s;
    bool is_unsigned; /* sources in S3 are public: requests are not signed */
};
/* See settings_load. */
bool copy_options_load(const json_t *hyperparameters, int argc, char *const *argv,
                       struct copy_options *ret, struct buf *faults) MUST_CHECK;
void copy_options_done(struct copy_options *o);
void copy_options_help(struct buf *out);
