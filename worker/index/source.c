/* Windows over files, S3 objects and memory. */
#include "source.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define SLOW_US        50 /* a read from the page cache takes a few */
#define COLD_STEP      8  /* added per window that was not cached; a cached one subtracts 1 */
#define COLD_MAX       32
#define PROBES         8
#define PAGE_BYTES     ((size_t)4096)
#define SKIP_BYTES     (1 << 20)          /* a gap wide enough to skip in a cold read */
#define WALK_BYTES     ((int64_t)8 << 10) /* of the first window */
#define WALK_BYTES_MIN ((int64_t)2 << 10)
#define WALK_BYTES_MAX ((int64_t)32 << 10)
#define JUMP_BYTES     4096 /* a gap that ends a cluster of reads */

void source_init(struct source *s, enum source_mode mode)
{
    *s = (struct source){.mode = mode, .fd_ = -1, .walk_n_ = WALK_BYTES};
}

void source_close(struct source *s)
{
    if (s->fd_ >= 0) {
        (void)close(s->fd_);
    }
    if (s->memory_ != NULL) {
        free(TAKE(s->buf_));
        s->cap_ = 0;
    }
    s->fd_ = -1;
    s->memory_ = NULL;
    s->p = NULL;
    s->at = s->size = 0;
    s->n = 0;
    s->cold_ = 0;
    s->used_end_ = s->cluster_at_ = 0;
    s->streaming_ = false;
    s->uri_.bucket[0] = '\0';
}

void source_done(struct source *s)
{
    source_close(s);
    free(TAKE(s->buf_));
}

static void begin_stream(struct source *s)
{
    s->streaming_ = true;
    s->streamed_files++;
    (void)posix_fadvise(s->fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

/* True when most of a few sampled pages of the file are not cached. The check takes a few
 * microseconds and, unlike a read with RWF_NOWAIT, starts no I/O. Without permission the kernel
 * reports all pages as cached. */
static bool probe_cold(const struct source *s)
{
    int absent = 0;
    if (s->size == 0) {
        return false;
    }
    uint8_t *p = mmap(NULL, (size_t)s->size, PROT_READ, MAP_SHARED, s->fd_, 0);
    if (p == MAP_FAILED) {
        return false;
    }
    for (int i = 0; i < PROBES; i++) {
        unsigned char cached = 1;
        size_t at = (size_t)(s->size / PROBES * i) / PAGE_BYTES * PAGE_BYTES;
        (void)mincore(p + at, 1, &cached);
        absent += (cached & 1) == 0 ? 1 : 0;
    }
    (void)munmap(p, (size_t)s->size);
    return absent > PROBES / 2;
}

bool source_open_file(struct source *s, const char *path, struct err *err)
{
    source_close(s);
    struct stat st;
    s->fd_ = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (s->fd_ < 0 || fstat(s->fd_, &st) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot open '%s'", path);
    }
    if (!S_ISREG(st.st_mode)) {
        return err_set(err, ERR_INVALID, "'%s' is not a regular file", path);
    }
    s->size = st.st_size;
    s->nowait_ = s->mode == SOURCE_AUTO;
    if (s->mode == SOURCE_STREAM || (s->mode == SOURCE_AUTO && probe_cold(s))) {
        begin_stream(s);
    }
    return true;
}

void source_open_s3(struct source *s, const struct s3_uri *u, int64_t size, const char *etag)
{
    source_close(s);
    s->uri_ = *u;
    s->size = size;
    (void)snprintf(s->etag_, sizeof s->etag_, "%s", etag);
}

void source_open_memory(struct source *s, struct str bytes, size_t step)
{
    ASSERT(step > 0);
    source_close(s);
    s->memory_ = bytes.p != NULL ? bytes.p : "";
    s->size = (int64_t)bytes.n;
    s->step_ = step;
}

/* Page-aligned memory: the kernel copies to it twice as fast. */
static void make_room(struct source *s, size_t n)
{
    if (n > s->cap_) {
        free(s->buf_);
        s->cap_ = (n + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        s->buf_ = aligned_alloc(PAGE_BYTES, s->cap_);
        if (s->buf_ == NULL) {
            s->buf_ = xmalloc(s->cap_); /* ends the process when memory is out */
        }
    }
    s->p = s->buf_;
    s->n = 0;
}

/* Read n bytes from `at`; with nowait only those that are cached, at least one. -1 with errno;
 * EAGAIN when nowait and nothing is cached. */
static ssize_t read_at(struct source *s, int64_t at, size_t n, bool nowait)
{
    size_t got = 0;
    while (got < n) {
        struct iovec v = {s->buf_ + got, n - got};
        ssize_t r = preadv2(s->fd_, &v, 1, at + (int64_t)got, nowait ? RWF_NOWAIT : 0);
        if (r < 0 && errno == EINTR) {
            continue;
        }
        if (r < 0 && got == 0) {
            return -1;
        }
        if (r <= 0) {
            break;
        }
        got += (size_t)r;
        if (nowait) {
            break;
        }
    }
    s->read_bytes += (int64_t)got;
    return (ssize_t)got;
}

static bool took(struct source *s, int64_t at, size_t n, ssize_t got, struct err *err)
{
    if (got < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot read at byte %lld", (long long)at);
    }
    if ((size_t)got < n) {
        return err_set(err, ERR_CONFLICT, "the file became shorter while it was read");
    }
    s->at = at;
    s->n = (size_t)got;
    return true;
}

/* The window of a cached file. A few pages may be missing. When one window in nine is missing, or
 * several in a row, the file counts as cold. */
static bool walk(struct source *s, int64_t at, size_t n, struct err *err)
{
    size_t want = (size_t)MIN(MAX((int64_t)n, s->walk_n_), s->size - at);
    make_room(s, want);
    if (s->nowait_) {
        ssize_t got = read_at(s, at, want, true);
        if (got >= (ssize_t)n) {
            s->cold_ -= s->cold_ > 0 ? 1 : 0;
            return took(s, at, n, got, err);
        }
        /* otherwise the file system does not support RWF_NOWAIT */
        s->nowait_ = got >= 0 || errno == EAGAIN;
        s->cold_ += s->nowait_ ? COLD_STEP : 0;
    }
    if (s->nowait_ || s->mode == SOURCE_WALK) {
        return took(s, at, n, read_at(s, at, want, false), err);
    }
    int64_t began = clock_mono_us();
    ssize_t got = read_at(s, at, want, false);
    bool slow = clock_mono_us() - began > SLOW_US;
    s->cold_ += slow ? COLD_STEP : s->cold_ > 0 ? -1 : 0;
    return took(s, at, n, got, err);
}

/* Adapt the window to what is used between two jumps: it grows at once and shrinks slowly. */
static void learn(struct source *s, int64_t at)
{
    if (at - s->used_end_ < JUMP_BYTES && s->used_end_ - s->cluster_at_ < WALK_BYTES_MAX) {
        return;
    }
    int64_t used = (s->used_end_ - s->cluster_at_ + 511) / 512 * 512;
    s->walk_n_ = MAX(used, s->walk_n_ - s->walk_n_ / 32);
    s->walk_n_ = MIN(MAX(s->walk_n_, WALK_BYTES_MIN), WALK_BYTES_MAX);
    s->cluster_at_ = at;
}

/* The window of a cold file: all bytes in order, in whole pages, except very wide gaps. */
static bool stream(struct source *s, int64_t at, size_t n, struct err *err)
{
    int64_t end = s->at + (int64_t)s->n;
    int64_t from = s->n > 0 && at >= end && at - end < SKIP_BYTES ? end : at;
    size_t piece = MAX(n + PAGE_BYTES, SOURCE_STREAM_BYTES);
    make_room(s, piece);
    for (;;) {
        from -= from % (int64_t)PAGE_BYTES;
        size_t want = (size_t)MIN((int64_t)piece, s->size - from);
        ssize_t got = read_at(s, from, want, false);
        if (!took(s, from, want, got, err)) {
            return false;
        }
        if (at + (int64_t)n <= from + got) {
            return true;
        }
        from = at < from + got ? at : from + got;
    }
}

static bool fill_file(struct source *s, int64_t at, size_t n, struct err *err)
{
    if (s->streaming_) {
        return stream(s, at, n, err);
    }
    learn(s, at);
    if (!walk(s, at, n, err)) {
        return false;
    }
    if (s->cold_ >= COLD_MAX && s->mode == SOURCE_AUTO) {
        begin_stream(s);
    }
    return true;
}

static bool fill_s3(struct source *s, int64_t at, size_t n, struct err *err)
{
    size_t want = (size_t)MIN((int64_t)MAX(n, SOURCE_RANGE_BYTES), s->size - at);
    AUTO_BUF struct buf b = BUF_INIT(want);
    free(TAKE(s->buf_)); /* not two windows at the same time */
    s->cap_ = 0;
    s->n = 0;
    if (!s3_blocking_get_range(s->s3, &s->uri_, at, want, s->etag_, &b, err)) {
        return false;
    }
    s->buf_ = buf_take(&b);
    s->cap_ = want;
    s->read_bytes += (int64_t)want;
    s->p = s->buf_;
    s->at = at;
    s->n = want;
    return true;
}

static bool fill_memory(struct source *s, int64_t at, size_t n)
{
    size_t want = (size_t)MIN((int64_t)MAX(n, s->step_), s->size - at);
    free(s->buf_);
    s->buf_ = xmalloc(want);
    s->cap_ = want;
    memcpy(s->buf_, s->memory_ + at, want);
    s->p = s->buf_;
    s->at = at;
    s->n = want;
    return true;
}

bool source_fill(struct source *s, int64_t at, size_t n, struct err *err)
{
    ASSERT(at >= 0);
    ASSERT(n > 0 && n <= SOURCE_NEED_MAX);
    ASSERT((int64_t)n <= s->size - at);
    if (s->stop != NULL && *s->stop != 0) {
        return err_set(err, ERR_UNAVAILABLE, "stopped");
    }
    if (s->memory_ != NULL) {
        return fill_memory(s, at, n);
    }
    return s->fd_ >= 0 ? fill_file(s, at, n, err) : fill_s3(s, at, n, err);
}
