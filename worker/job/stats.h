/* NNNNN_stats.json: the outcomes of a shard's rows, field by field as img2dataset writes them. Its
 * presence marks a finished shard. */
#pragma once
#include "common/buf.h"
#include "common/units.h"

#define STATS_TEXTS_MAX       100000     /* distinct texts kept, as img2dataset does ... */
#define STATS_TEXTS_BYTES_MAX (8u << 20) /* ... and their bytes, of which JSON makes six each */
#define STATS_FILE_BYTES_MAX  (64u << 20)

enum sample_status { STATUS_SUCCESS, STATUS_FAILED_TO_DOWNLOAD, STATUS_FAILED_TO_RESIZE };

struct stats_text {
    char *text;
    int64_t n;
};
struct stats {
    int64_t count;
    int64_t successes;
    int64_t failed_to_download;
    int64_t failed_to_resize;
    usec_t start_us;
    usec_t end_us;
    struct stats_text *texts; /* texts[texts_n]; after stats_sort: most frequent first */
    size_t texts_n;
    size_t texts_cap;
    size_t texts_bytes;
    uint32_t *slots_; /* hash table over texts: index + 1, 0 = free */
    size_t slots_n_;
};

void stats_done(struct stats *s);
const char *stats_status_name(enum sample_status status);
/* Count one row. text is "success" or the error text. */
void stats_add(struct stats *s, enum sample_status status, const char *text);
/* Add another's counts and texts; times are left alone. */
void stats_merge(struct stats *s, const struct stats *from);
/* Most frequent first, ties bytewise: the same counts give the same bytes. */
void stats_sort(struct stats *s);
/* The file's text: Python's json.dumps(indent=4). Sorts. */
void stats_json(struct stats *s, struct buf *out);
/* Read a file written by us or by img2dataset; *ret is the caller's. */
bool stats_parse(struct str text, struct stats *ret, struct err *err) MUST_CHECK;
