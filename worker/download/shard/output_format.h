/* The values of the setting output_format, and the objects that make up a finished shard. Pure. */
#pragma once
#include "common/base.h"

#define OUTPUT_PIECES_MAX 3

enum output_format {
    OUTPUT_WEBDATASET,
    OUTPUT_FILES,
    OUTPUT_PARQUET,
    OUTPUT_TFRECORD,
    OUTPUT_DUMMY,
    OUTPUT_FORMAT_COUNT
};

struct output_pieces {
    /* Ends of the objects' names behind the shard's number, in the order in which they are written:
     * first what holds the samples (not of dummy), last "_stats.json". "/" is a folder. */
    const char *suffix[OUTPUT_PIECES_MAX];
    size_t n;
};

/* Names of the values, in order of the enum. */
extern const char *const output_format_names[OUTPUT_FORMAT_COUNT];
const struct output_pieces *output_pieces(enum output_format f);
/* True when the rows' data goes into a .parquet beside the samples. */
bool output_has_sidecar(enum output_format f);
