/* Judges whether an output is complete. Pure: the caller supplies the texts and the listing. */
#pragma once
#include "common/str.h"
#include "core/model.h"

struct verify_object { /* one object below the output folder */
    const char *key;   /* relative to it */
    int64_t size;
    const char *etag; /* "" when not known; surrounding quotes are ignored */
};
struct verify_listing { /* the objects by key; borrows them */
    const struct verify_object **at;
    size_t n;
};
void verify_listing_init(struct verify_listing *l, const struct verify_object *objects, size_t n);
const struct verify_object *verify_listing_find(const struct verify_listing *l, const char *key);
void verify_listing_done(struct verify_listing *l);
struct verify_expect {
    const char *task_id; /* decimal; NULL: any task (done_if) */
    int64_t rows_in;     /* -1: not known in advance */
};
struct verify_verdict {
    bool good;
    enum cause cause; /* CAUSE_SHORT_OUTPUT unless good */
    char text[256];   /* what is missing, for people */
    int64_t rows_in, successes, failed_to_download, failed_to_resize, bytes;
};
/* Check a manifest (worker_protocol.h) against the listing: it is of this task, every object is
 * present with its size and ETag, rows out = rows in, the checksum is right. A text that is not a
 * manifest is SHORT_OUTPUT too. */
void verify_manifest(struct str manifest, const struct verify_expect *expect,
                     const struct verify_object *objects, size_t n, struct verify_verdict *ret);
struct verify_sums { /* of the _stats.json that were added so far; all zero: of none */
    int64_t n, count, successes, failed_to_download, failed_to_resize, bytes;
    char bad[200]; /* why one of them cannot be read; "": all can */
};
void verify_sums_add(struct verify_sums *s, struct str text);
/* Check img2dataset's output by the sums of all its *_stats.json: "count" must be rows_in (>= 1
 * when not known), and successes / count at least min_success_ppm. */
void verify_img2dataset(const struct verify_sums *s, int64_t rows_in, int64_t min_success_ppm,
                        struct verify_verdict *ret);
