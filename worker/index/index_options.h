/* Settings of `index`. */
#pragma once
#include "scan.h"
#include <jansson.h>

struct index_options { /* index_options_done frees */
    char *input;       /* folder, s3:// URI or channel:NAME; "": the only channel */
    char *output_folder;
    char *path_prefix; /* "auto": the input's location */
    char *fields;
    char *require;
    char *sample;
    char *read_mode;
    int64_t shards_at_once; /* 0: by the number of processors */
    int64_t progress_interval_s;
    int64_t stop_s;
    int64_t checkpoint_s;
    bool strict;

    /* Derived from the above. */
    struct scan_config scan;
    enum source_mode mode;
};
/* See settings_load. */
bool index_options_load(const json_t *hyperparameters, int argc, char *const *argv,
                        struct index_options *ret, struct buf *faults) MUST_CHECK;
void index_options_done(struct index_options *o);
void index_options_help(struct buf *out);
