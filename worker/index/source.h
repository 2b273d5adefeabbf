/* The bytes of one archive, one window at a time. The reader requests a range; when it is not
 * within the window, the window moves. The window's size depends on the source:
 *  - a cached file is read in small windows that hold what is close together (the small members of
 *    a pair and the next headers), learned from earlier windows;
 *  - a cold file is read in order in large pieces, so that the kernel reads ahead: skipping from
 *    header to header would take ten times as long;
 *  - an S3 object is read by ranges, pinned to one version by its ETag.
 * A file is cold when most of a few sampled pages are not cached (mincore, where permitted). A
 * cached file becomes cold when too many windows are not cached (RWF_NOWAIT) or reads take long.
 *
 * Invariant: p[0..n) are the bytes from `at`, at + n <= size. One thread at a time. */
#pragma once
#include "common/s3.h"
#include <stdatomic.h>

#define SOURCE_STREAM_BYTES ((size_t)1 << 20)
#define SOURCE_RANGE_BYTES  ((size_t)4 << 20) /* of one request to S3 */
#define SOURCE_NEED_MAX     ((size_t)4 << 20) /* of one range asked for */

enum source_mode { SOURCE_AUTO, SOURCE_WALK, SOURCE_STREAM };

struct source {
    const char *p;
    int64_t at;
    size_t n;
    int64_t size; /* of the archive */

    enum source_mode mode;   /* set before open */
    struct s3_blocking *s3;  /* borrowed; set before source_open_s3 */
    const _Atomic int *stop; /* not 0: fail soon; NULL: no stop flag */
    int64_t read_bytes;      /* since init, for the rate */
    int64_t streamed_files;  /* cold files since init */

    char *buf_;
    size_t cap_;
    int fd_; /* -1: S3 or memory */
    bool streaming_, nowait_;
    int cold_;           /* measure of how cold the file is */
    int64_t used_end_;   /* of the last range asked for */
    int64_t cluster_at_; /* start of what was read since the last jump */
    int64_t walk_n_;     /* bytes of the next window of a cached file */
    size_t step_;        /* memory only: bytes of a window */
    const char *memory_;
    struct s3_uri uri_;
    char etag_[128];
};

void source_init(struct source *s, enum source_mode mode);
void source_done(struct source *s);
/* Each open closes the previous source and keeps the window's memory. */
bool source_open_file(struct source *s, const char *path, struct err *err) MUST_CHECK;
/* size and etag as listed. */
void source_open_s3(struct source *s, const struct s3_uri *u, int64_t size, const char *etag);
/* Borrowed bytes in windows of `step` bytes, each in memory of its exact size (for tests). */
void source_open_memory(struct source *s, struct str bytes, size_t step);
void source_close(struct source *s);
/* Move the window so that it holds n bytes from `at`. */
bool source_fill(struct source *s, int64_t at, size_t n, struct err *err) MUST_CHECK;

/* n <= SOURCE_NEED_MAX bytes from `at`, which must lie within the archive; valid until the next
 * call. ERR_IO, ERR_NETWORK and the like when they cannot be read, ERR_CONFLICT when the object
 * changed. */
MUST_CHECK static inline bool source_need(struct source *s, int64_t at, size_t n, const char **ret,
                                          struct err *err)
{
    if (at < s->at || at - s->at + (int64_t)n > (int64_t)s->n) {
        if (!source_fill(s, at, n, err)) {
            return false;
        }
    }
    s->used_end_ = at + (int64_t)n;
    *ret = s->p + (at - s->at);
    return true;
}
