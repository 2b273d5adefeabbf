/* What a look at an output said. A value. */
#pragma once
#include "core/model.h"

struct output_verdict {
    bool checked; /* false: could not be looked at; try again */
    bool good;
    enum cause cause; /* NONE when good */
    char text[256];   /* what is missing, or why it could not be looked at, for people */
    int64_t rows_in, successes, failed_to_download, failed_to_resize, bytes;
    char *manifest; /* malloc'd; the receiver's */
};
