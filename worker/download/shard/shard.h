/* Names, keys and texts of a shard, exactly as img2dataset writes them. Pure. */
#pragma once
#include "download/image/image.h"
#include "download/part/sample.h"
#include "output_format.h"

#define SHARD_KEY_BYTES 40

struct shard_format { /* value */
    int64_t rows_per_shard;
    int digits;          /* oom_shard_count */
    int64_t first_shard; /* number of our shard 0 in names and keys: not 0 when extending */
    enum image_format image;
    enum image_hash hash;
    bool exif;
    enum output_format output;
};

/* Digits of the row part of a key: ceil(log10(rows_per_shard)), at least 0. */
int shard_row_digits(int64_t rows_per_shard);
/* The key of a row: shard number and row number. */
void shard_key(const struct shard_format *f, int64_t shard_i, int64_t row_i,
               char out[static SHARD_KEY_BYTES]);
/* "00012" + suffix, as ".tar", ".parquet", "_stats.json". */
void shard_name(const struct shard_format *f, int64_t shard_i, const char *suffix,
                char out[static SHARD_KEY_BYTES]);
/* Index of our shard with this name and suffix, from 0; -1 when it is not ours. */
int64_t shard_parse_name(const struct shard_format *f, const char *name, const char *suffix);
const char *shard_image_suffix(enum image_format f); /* "jpg" */
const char *shard_hash_name(enum image_hash h);      /* "sha256"; NULL for none */
/* Text of the caption, empty for null. False: the rows have no captions. */
bool shard_caption(const struct columns *columns, const struct sample *s, struct str *ret);
/* The .json member: json.dumps(meta, indent=4) with fields in img2dataset's order. */
void shard_json(const struct shard_format *f, const struct columns *columns, const struct sample *s,
                struct buf *out);
/* Append the members of one success in img2dataset's order: by extension. */
void shard_add_sample(const struct shard_format *f, const struct columns *columns,
                      const struct sample *s, int64_t mtime_s, struct buf *tar);
