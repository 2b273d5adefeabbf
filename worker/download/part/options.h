/* Settings of `download`: one table, read from hyperparameters (by name) or flags (--name), with
 * img2dataset's names and defaults where it has them. All faults are reported at once. */
#pragma once
#include "common/addr.h"
#include "common/units.h"
#include "download/fetch/robots.h"
#include "download/image/image.h"
#include "download/shard/output_format.h"
#include "job/progress_report.h"
#include "sample.h"
#include <jansson.h>

struct setting; /* job/settings.h */
enum input_format { INPUT_PARQUET, INPUT_CSV, INPUT_TSV, INPUT_TXT, INPUT_JSON, INPUT_JSONL };
enum incremental_mode { MODE_INCREMENTAL, MODE_OVERWRITE, MODE_EXTEND };
struct download_options { /* free with options_done */
    char *url_list;       /* path, folder, glob, s3:// URI, channel:NAME; "": the only channel */
    char *input_format;   /* also the suffix of the files in a folder */
    char *output_folder;  /* folder or s3:// prefix */
    char *url_col;        /* "url" also finds URL */
    char *output_format;
    char *caption_col; /* "auto": TEXT, text or caption if present; "": no caption */
    char *save_additional_columns;
    char *bbox_col; /* also saved; "": no column */
    char *resize_mode;
    char *encode_format;
    char *compute_hash;
    char *verify_hash;
    char *disallowed_header_directives;
    char *user_agent_token;
    char *upscale_interpolation;
    char *downscale_interpolation;
    char *incremental_mode;
    char *allow_net;
    char *dns;
    char *progress; /* text, json, none */
    char *wandb_project;
    int64_t image_size, encode_quality, number_sample_per_shard, oom_shard_count;
    int64_t timeout_s, retries, min_image_size, thread_count, fetch_threads, processes_count,
        progress_interval_s;
    int64_t stop_s, host_patience_s, network_patience_s, s3_patience_s, hosts_patience_s;
    int64_t max_image_pixels, max_image_bytes;
    double max_image_area, max_aspect_ratio;
    int64_t host_connections;
    bool extract_exif, resize_only_if_bigger, exif_orientation, fast_decode, ignore_ssl_certificate;
    bool retry_failed, skip_reencode, disable_all_reencoding, enable_wandb;

    /* Derived from the above. */
    enum incremental_mode mode;
    enum input_format format;
    enum output_format output;
    enum progress_report_as report;
    bool gzip;
    struct addr_rules rules;
    struct robots robots;
    struct image_options image;
    char *extra_columns[COLUMNS_MAX];
    int extra_columns_n;
    char *verify_col; /* NULL: no column */
    char *lists_;     /* owned text of the lists */
};

/* Load the defaults, then hyperparameters (may be NULL), then flags argv[argc]. False: *faults has
 * every fault, one per line. */
bool options_load(const json_t *hyperparameters, int argc, char *const *argv,
                  struct download_options *ret, struct buf *faults) MUST_CHECK;
void options_done(struct download_options *o);
/* The settings that affect the output, name to text. The caller calls json_decref. */
json_t *options_shape(const struct download_options *o);
/* The table of settings, of struct download_options. */
const struct setting *options_rows(size_t *ret_n);
/* Append the table for --help. */
void options_help(struct buf *out);
