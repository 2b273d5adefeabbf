/* Blocking S3 calls for threads without a loop; each s3_blocking has its own. Transient failures
 * are retried with full jitter. Every write has a random id in the object's metadata, by which a
 * create-only write whose first reply was lost is told from another writer's. */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/retry.h"
#include "common/version.h"
#include "s3_internal.h"
#include <errno.h>

struct s3_blocking {
    struct loop *l;
    struct aws_client *c;
    struct loop_timer *timer;
    int tries;
    int64_t patience_us;       /* 0: only tries count */
    const char *kms_key;       /* NULL: as the bucket encrypts */
    _Atomic int64_t *received; /* NULL: nobody counts */
    bool answered;             /* once */
    bool failing;              /* the last call ended with a failure that may pass */
    struct rng rng;
    struct s3_kept *out; /* result of the call in progress */
    bool done;
};

/* How long a call waits for keys that do not come or are refused. */
#define S3_KEYS_PATIENCE_US (300 * USEC_PER_SEC)

static const struct retry_policy policy = {
    .base_us = 100 * USEC_PER_MSEC, .cap_us = 20 * USEC_PER_SEC, .floor_us = 10 * USEC_PER_MSEC};

static void on_pause_over(void *ctx)
{
    struct s3_blocking *s = ctx;
    s->done = true;
}

bool s3_blocking_new(int tries, struct s3_blocking **ret, struct err *err)
{
    ASSERT(tries > 0);
    struct s3_blocking *s = xcalloc(1, sizeof *s);
    s->tries = tries;
    uint64_t seed;
    rng_secret(&seed, sizeof seed);
    rng_seed(&s->rng, seed);
    struct aws_config cfg = {.user_agent = "drover-s3/" DROVER_VERSION};
    if (!loop_new(&s->l, err) || !aws_client_new(s->l, &cfg, &s->c, err)) {
        s3_blocking_free(s);
        return false;
    }
    s->timer = loop_timer_new(s->l, on_pause_over, s);
    *ret = s;
    return true;
}

void s3_blocking_free(struct s3_blocking *s)
{
    if (s == NULL) {
        return;
    }
    aws_client_free(s->c);
    loop_timer_free(s->timer);
    loop_free(s->l);
    free(s);
}

void s3_blocking_be_patient(struct s3_blocking *s, int64_t patience_us)
{
    s->patience_us = patience_us;
}

void s3_blocking_encrypt(struct s3_blocking *s, const char *kms_key)
{
    s->kms_key = kms_key;
}

const char *s3_sync_kms_key(const struct s3_blocking *s)
{
    return s->kms_key;
}

void s3_blocking_count(struct s3_blocking *s, _Atomic int64_t *bytes)
{
    s->received = bytes;
}

/* S3 that answers (5xx, SlowDown, half a body) is worth waiting for, and so is a network that has
 * led to it before; one that never answered has its tries only. What tidies up waits for none, and
 * asks an S3 that has just failed once. */
static bool may_try(const struct s3_blocking *s, const struct s3_spec *spec,
                    const struct s3_result *r, int tries_n, int64_t since_us)
{
    if (spec->tidies) {
        return !s->failing && tries_n < s->tries;
    }
    return tries_n < s->tries ||
           ((r->status != 0 || s->answered) && clock_mono_us() - since_us < s->patience_us);
}

void s3_kept_done(struct s3_kept *k)
{
    buf_done(&k->body);
}

static void wait_done(struct s3_blocking *s)
{
    while (!s->done) {
        loop_run_once(s->l, -1);
    }
    s->done = false;
}

static void on_result(void *ctx, const struct s3_result *r)
{
    struct s3_blocking *s = ctx;
    s3_kept_done(s->out);
    s->out->r = *r;
    buf_init(&s->out->body, r->body.n);
    buf_add_str(&s->out->body, r->body);
    s->out->r.body = buf_str(&s->out->body);
    s->done = true;
}

/* Keys that are renewed may be missing or refused for a while; others are read again once. */
static bool keys_may_come(const struct s3_blocking *s, const struct s3_result *r, int n,
                          int64_t since_us)
{
    bool keys = r->outcome == AWS_CREDENTIALS ||
                (r->outcome == AWS_UNSENT && r->err.code == ERR_UNAUTHENTICATED);
    return keys && (n == 0 || (aws_client_renews_creds(s->c) &&
                               clock_mono_us() - since_us < S3_KEYS_PATIENCE_US));
}

static bool may_pass(const struct s3_result *r)
{
    switch (r->outcome) {
    case AWS_OK:
    case AWS_REFUSED:
    case AWS_CREDENTIALS: /* keys_may_come */
        return false;
    case AWS_THROTTLED:
    case AWS_UNKNOWN:
    case AWS_UNSENT:
        return err_code_retry(r->err.code) == RETRY_BACKOFF;
    }
    return false;
}

bool s3_sync_call(struct s3_blocking *s, const struct s3_uri *u, struct s3_spec *spec,
                  enum s3_again (*again)(void *ctx, struct s3_spec *spec,
                                         const struct s3_result *r),
                  void *ctx, struct s3_kept *ret, struct err *err)
{
    int keys_n = 0; /* tries that failed for lack of valid keys */
    int64_t since_us = clock_mono_us();
    *ret = (struct s3_kept){.body = BUF_INIT(0)};
    for (int try = 1;; try++) {
        aws_client_await_creds(s->c);
        s->out = ret;
        s3_start(s->c, u, spec, on_result, s);
        wait_done(s);
        s->out = NULL;
        s->answered = s->answered || ret->r.status != 0;
        enum s3_again more = again != NULL ? again(ctx, spec, &ret->r) : S3_AGAIN_IF_PASSING;
        bool keys = keys_may_come(s, &ret->r, keys_n, since_us);
        bool passing = keys || may_pass(&ret->r);
        keys_n += keys;
        if (!(keys || may_try(s, spec, &ret->r, try - keys_n, since_us)) || more == S3_AGAIN_END ||
            (more == S3_AGAIN_IF_PASSING && !passing)) {
            break;
        }
        ret->unknown_n += ret->r.outcome == AWS_UNKNOWN;
        loop_timer_set(s->timer, retry_delay_us(&policy, try - 1, &s->rng));
        wait_done(s);
    }
    s->failing = may_pass(&ret->r);
    if (ret->r.outcome != AWS_OK && err != NULL) {
        *err = ret->r.err;
    }
    return ret->r.outcome == AWS_OK;
}

bool s3_blocking_get(struct s3_blocking *s, const struct s3_uri *u, size_t max_bytes,
                     struct buf *ret, struct err *err)
{
    struct s3_spec spec = {.operation = "GetObject",
                           .method = "GET",
                           .needs_length = true,
                           .is_get = true,
                           .body_max = max_bytes};
    s3_spec_compare(&spec, s->c);
    CLEANUP(s3_kept_done)
    struct s3_kept k;
    if (!s3_sync_call(s, u, &spec, NULL, NULL, &k, err)) {
        return false;
    }
    *ret = k.body;
    buf_init(&k.body, 0);
    return true;
}

struct range_bytes { /* the bytes received so far */
    struct buf *out;
    bool too_much;
};

static bool on_range(void *ctx, struct str data)
{
    struct range_bytes *g = ctx;
    g->too_much = data.n > g->out->max - g->out->n;
    if (!g->too_much) {
        buf_add_str(g->out, data);
    }
    return !g->too_much;
}

/* Each try fetches the whole range again. */
static enum s3_again range_again(void *ctx, struct s3_spec *spec, const struct s3_result *r)
{
    struct range_bytes *g = ctx;
    (void)spec;
    if (g->too_much) {
        return S3_AGAIN_END;
    }
    if (r->outcome != AWS_OK) {
        buf_reset(g->out);
    }
    return S3_AGAIN_IF_PASSING;
}

bool s3_blocking_get_range(struct s3_blocking *s, const struct s3_uri *u, int64_t from, size_t n,
                           const char *etag, struct buf *ret, struct err *err)
{
    ASSERT(from >= 0);
    ASSERT(n > 0);
    char range[64];
    (void)snprintf(range, sizeof range, "bytes=%jd-%jd", (intmax_t)from,
                   (intmax_t)from + (intmax_t)n - 1);
    AUTO_BUF struct buf body = BUF_INIT(n);
    struct range_bytes g = {.out = &body};
    (void)buf_reserve(&body, n);
    struct s3_spec spec = {.operation = "GetObject",
                           .method = "GET",
                           .needs_length = true,
                           .on_data = on_range,
                           .data_ctx = &g};
    s3_spec_header(&spec, "Range", range);
    if (etag[0] != '\0') {
        s3_spec_header(&spec, "If-Match", etag);
    }
    CLEANUP(s3_kept_done)
    struct s3_kept k;
    bool ok = s3_sync_call(s, u, &spec, range_again, &g, &k, err);
    if (g.too_much ||
        (ok ? k.r.status != 206 || body.n != n : k.r.status == 412 || k.r.status == 416)) {
        return err_set(err, ERR_CONFLICT, "'s3://%s/%.200s' changed while it was read", u->bucket,
                       u->key);
    }
    if (!ok) {
        return false;
    }
    *ret = body;
    buf_init(&body, 0);
    return true;
}

static bool head(struct s3_blocking *s, const struct s3_uri *u, bool with_checksum,
                 struct s3_kept *ret, struct err *err)
{
    struct s3_spec spec = {.operation = "HeadObject", .method = "HEAD"};
    if (with_checksum) {
        s3_spec_ask_checksum(&spec);
    }
    return s3_sync_call(s, u, &spec, NULL, NULL, ret, err);
}

bool s3_blocking_head(struct s3_blocking *s, const struct s3_uri *u, struct s3_head *ret,
                      struct err *err)
{
    CLEANUP(s3_kept_done)
    struct s3_kept k;
    bool ok = head(s, u, true, &k, err);
    if (!ok && k.r.status == 403) { /* the checksum of an encrypted object needs its key */
        s3_kept_done(&k);
        ok = head(s, u, false, &k, err);
    }
    if (!ok) {
        return false;
    }
    *ret = (struct s3_head){.size = k.r.size};
    memcpy(ret->etag, k.r.etag, sizeof ret->etag);
    memcpy(ret->checksum, k.r.checksum, sizeof ret->checksum);
    memcpy(ret->crc64nvme, k.r.crc64nvme, sizeof ret->crc64nvme);
    memcpy(ret->writer, k.r.writer, sizeof ret->writer);
    err_clear(err);
    return true;
}

enum aws_checksums s3_sync_checksums(struct s3_blocking *s)
{
    return aws_client_checksums(s->c);
}

void s3_writer_new(char out[static S3_WRITER_N])
{
    uint8_t raw[16];
    rng_secret(raw, sizeof raw);
    str_hex(raw, sizeof raw, out);
}

/* Two checksums of which either may be unknown. */
static bool same_sum(const char *a, const char *b)
{
    return a[0] == '\0' || b[0] == '\0' || strcmp(a, b) == 0;
}

/* The object is our write's; is it whole? */
static bool is_intact(const struct s3_uri *u, const struct s3_write *w, const struct s3_head *r,
                      struct err *err)
{
    if (r->size == w->size && same_sum(r->checksum, w->checksum) &&
        same_sum(r->crc64nvme, w->crc64nvme)) {
        err_clear(err);
        return true;
    }
    return err_set(err, ERR_AWS, "'s3://%s/%.200s' is not what was sent: %jd bytes, checksum %s%s",
                   u->bucket, u->key, (intmax_t)r->size, r->checksum, r->crc64nvme);
}

bool s3_sync_is_ours(struct s3_blocking *s, const struct s3_uri *u, const struct s3_write *w,
                     const struct s3_kept *k, struct err *err)
{
    struct err why = ERR_INIT;
    struct s3_head there;
    bool ok = s3_blocking_head(s, u, &there, &why);
    if (ok && strcmp(there.writer, w->writer) == 0) {
        return is_intact(u, w, &there, err);
    }
    if (!ok && why.code != ERR_NOT_FOUND && k->r.status == 412 && err != NULL) {
        *err = why;
        return err_wrap(err, "cannot tell who wrote it");
    }
    if (ok && w->create_only && k->r.status != 412) {
        (void)err_set(err, ERR_PRECONDITION, "'s3://%s/%.200s' is another writer's", u->bucket,
                      u->key);
    }
    return false;
}

bool s3_blocking_put(struct s3_blocking *s, const struct s3_uri *u, struct str body,
                     const char *content_type, bool create_only, struct err *err)
{
    struct s3_write w = {.size = (int64_t)body.n, .create_only = create_only};
    struct s3_spec spec = {.operation = "PutObject",
                           .method = "PUT",
                           .body = body,
                           .body_borrow = true,
                           .content_type =
                               content_type != NULL ? content_type : "application/octet-stream"};
    if (create_only) {
        s3_spec_header(&spec, "If-None-Match", "*");
    }
    s3_writer_new(w.writer);
    s3_spec_header(&spec, S3_WRITER_HEADER, w.writer);
    s3_spec_encrypt(&spec, s->kms_key);
    s3_spec_checksum(&spec, s3_sync_checksums(s));
    memcpy(w.checksum, spec.checksum, sizeof w.checksum);
    memcpy(w.crc64nvme, spec.crc64nvme, sizeof w.crc64nvme);
    CLEANUP(s3_kept_done)
    struct s3_kept k;
    return s3_sync_call(s, u, &spec, NULL, NULL, &k, err) ||
           (k.r.status == 412 && s3_sync_is_ours(s, u, &w, &k, err));
}

bool s3_blocking_delete(struct s3_blocking *s, const struct s3_uri *u, struct err *err)
{
    struct s3_spec spec = {.operation = "DeleteObject", .method = "DELETE"};
    CLEANUP(s3_kept_done)
    struct s3_kept k;
    return s3_sync_call(s, u, &spec, NULL, NULL, &k, err);
}

static bool next_page(struct s3_blocking *s, struct s3_pages *p, struct err *err)
{
    AUTO_BUF struct buf query = BUF_INIT(S3_QUERY_BYTES_MAX * 2);
    s3_pages_query(p, &query);
    struct s3_spec spec = {.operation = "ListObjectsV2",
                           .method = "GET",
                           .of_bucket = true,
                           .xml_root = "ListBucketResult",
                           .query = buf_cstr(&query)};
    CLEANUP(s3_kept_done)
    struct s3_kept k;
    if (!s3_sync_call(s, &p->u, &spec, NULL, NULL, &k, err)) {
        return false;
    }
    if (!s3_pages_add(p, k.r.body, &k.r)) {
        if (err != NULL) {
            *err = k.r.err;
        }
        return false;
    }
    return true;
}

static bool list(struct s3_blocking *s, const struct s3_uri *u, size_t max_keys, bool level,
                 struct s3_listing *ret, struct err *err)
{
    CLEANUP(s3_pages_done)
    struct s3_pages p;
    s3_pages_init(&p, u, max_keys);
    p.level = level;
    while (!p.complete) {
        if (!next_page(s, &p, err)) {
            return false;
        }
    }
    *ret = *p.listing;
    *p.listing = (struct s3_listing){0};
    return true;
}

bool s3_blocking_list_each(struct s3_blocking *s, const struct s3_uri *u,
                           bool (*each)(void *ctx, const struct s3_object *o, struct err *err),
                           void *ctx, struct err *err)
{
    CLEANUP(s3_pages_done)
    struct s3_pages p;
    s3_pages_init(&p, u, SIZE_MAX);
    while (!p.complete) {
        if (!next_page(s, &p, err)) {
            return false;
        }
        for (size_t i = 0; i < p.listing->n; i++) {
            if (!each(ctx, &p.listing->objects[i], err)) {
                return false;
            }
        }
        s3_pages_forget(&p, 0);
    }
    return true;
}

bool s3_blocking_list(struct s3_blocking *s, const struct s3_uri *u, size_t max_keys,
                      struct s3_listing *ret, struct err *err)
{
    return list(s, u, max_keys, false, ret, err);
}

bool s3_blocking_list_level(struct s3_blocking *s, const struct s3_uri *u, size_t max_keys,
                            struct s3_listing *ret, struct err *err)
{
    return list(s, u, max_keys, true, ret, err);
}

struct file_download {
    int fd;
    int64_t at;   /* bytes written so far */
    int os_errno; /* of the failed write; 0: no failure */
    bool resumed; /* this try requested only the rest */
    bool complete;
    bool compares;             /* with the checksum that the object has */
    _Atomic int64_t *received; /* NULL: nobody counts */
    bool damaged;              /* the bytes that came were not those of the checksum */
    struct s3_sums sums;
    struct s3_result
        told;       /* the answer about the whole, for its checksums; nothing else is valid */
    char etag[128]; /* of the object the bytes so far belong to */
    char range[48];
};

static bool on_download(void *ctx, struct str data)
{
    struct file_download *d = ctx;
    while (data.n > 0) {
        ssize_t n = pwrite(d->fd, data.p, data.n, d->at);
        if (n < 0 && errno != EINTR) {
            d->os_errno = errno;
            return false;
        }
        size_t took = n > 0 ? (size_t)n : 0;
        s3_sums_add(&d->sums, (struct str){data.p, took});
        data = (struct str){data.p + took, data.n - took};
        d->at += (int64_t)took;
        if (d->received != NULL) {
            *d->received += (int64_t)took;
        }
    }
    return true;
}

static void download_begin(struct file_download *d, struct s3_spec *spec)
{
    d->at = 0;
    d->sums = (struct s3_sums){0};
    spec->headers_n = 0;
    if (d->compares) {
        s3_spec_ask_checksum(spec);
    }
}

/* After each try: finish, or request the rest pinned to the ETag, or restart when the object has
 * changed or the range was ignored. */
static enum s3_again download_again(void *ctx, struct s3_spec *spec, const struct s3_result *r)
{
    struct file_download *d = ctx;
    if (d->os_errno != 0) {
        return S3_AGAIN_END;
    }
    bool as_asked = r->status == (d->resumed ? 206 : 200);
    if (!d->resumed && as_asked) {
        memcpy(d->etag, r->etag, sizeof d->etag);
        d->told = *r;
    }
    bool ended = r->outcome == AWS_OK && as_asked && d->at == r->size;
    d->damaged = ended && d->compares && !s3_sums_fit(&d->sums, &d->told);
    d->complete = ended && !d->damaged;
    if (d->complete) {
        return S3_AGAIN_END;
    }
    bool fresh = r->outcome == AWS_OK || r->status == 412 || r->status == 416 ||
                 (r->status / 100 == 2 && !as_asked);
    bool was_resumed = d->resumed;
    d->resumed = d->at > 0 && !fresh && d->etag[0] != '\0';
    if (!d->resumed) {
        download_begin(d, spec);
    } else {
        spec->headers_n = 0;
        (void)snprintf(d->range, sizeof d->range, "bytes=%jd-", (intmax_t)d->at);
        s3_spec_header(spec, "Range", d->range);
        s3_spec_header(spec, "If-Match", d->etag);
    }
    return d->damaged || (fresh && was_resumed) ? S3_AGAIN_YES : S3_AGAIN_IF_PASSING;
}

bool s3_blocking_get_file(struct s3_blocking *s, const struct s3_uri *u, int fd, int64_t *ret_size,
                          struct err *err)
{
    struct file_download d = {
        .fd = fd, .compares = aws_client_compares(s->c), .received = s->received};
    struct s3_spec spec = {.operation = "GetObject",
                           .method = "GET",
                           .needs_length = true,
                           .on_data = on_download,
                           .data_ctx = &d};
    download_begin(&d, &spec);
    CLEANUP(s3_kept_done)
    struct s3_kept k;
    bool ok = s3_sync_call(s, u, &spec, download_again, &d, &k, err);
    if (d.os_errno != 0) {
        return err_set_os(err, ERR_IO, d.os_errno, "cannot write what 's3://%s/%.200s' holds",
                          u->bucket, u->key);
    }
    if (!ok) {
        return false;
    }
    if (d.damaged) {
        return err_set(err, ERR_NETWORK,
                       "'s3://%s/%.200s': the bytes that came are not those of its checksum",
                       u->bucket, u->key);
    }
    if (!d.complete) {
        return err_set(err, ERR_AWS, "'s3://%s/%.200s' changed while it was read", u->bucket,
                       u->key);
    }
    if (ftruncate(fd, d.at) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot cut the file to %jd bytes", (intmax_t)d.at);
    }
    *ret_size = d.at;
    return true;
}
