/* See output_format.h. */
#include "output_format.h"

const char *const output_format_names[OUTPUT_FORMAT_COUNT] = {[OUTPUT_WEBDATASET] = "webdataset",
                                                              [OUTPUT_FILES] = "files",
                                                              [OUTPUT_PARQUET] = "parquet",
                                                              [OUTPUT_TFRECORD] = "tfrecord",
                                                              [OUTPUT_DUMMY] = "dummy"};

static const struct output_pieces pieces[OUTPUT_FORMAT_COUNT] = {
    [OUTPUT_WEBDATASET] = {{".tar", ".parquet", "_stats.json"}, 3},
    [OUTPUT_FILES] = {{"/", ".parquet", "_stats.json"}, 3},
    [OUTPUT_PARQUET] = {{".parquet", "_stats.json"}, 2},
    [OUTPUT_TFRECORD] = {{".tfrecord", ".parquet", "_stats.json"}, 3},
    [OUTPUT_DUMMY] = {{"_stats.json"}, 1}};

const struct output_pieces *output_pieces(enum output_format f)
{
    ASSERT(f >= 0 && f < OUTPUT_FORMAT_COUNT);
    return &pieces[f];
}

bool output_has_sidecar(enum output_format f)
{
    return output_pieces(f)->n == OUTPUT_PIECES_MAX;
}
