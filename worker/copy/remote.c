/* Ranged reads over http.h and aws.h: see remote.h. */
#include "remote.h"
#include "common/cleanup.h"
#include "common/retry.h"
#include "common/version.h"
#include <ctype.h>
#include <poll.h>
#include <strings.h>

#define REDIRECTS_MAX        5
#define REMOTE_URL_BYTES_MAX ((size_t)8192)
#define TRANSFER_US          (900 * USEC_PER_SEC)
#define STREAM_US            (86400 * USEC_PER_SEC)
#define POLL_US              (200 * USEC_PER_MSEC)
#define LIST_TRIES           6
#define TOLD_TRIES           4
#define ERROR_BYTES_MAX      ((size_t)64 << 10)
#define USER_AGENT           "drover-worker/" DROVER_VERSION

struct remote {
    struct remote_config c;
    struct loop *l;
    struct http *http;
    struct aws_client *aws; /* NULL: not needed yet */
    /* of the call under way */
    bool done;
    struct remote_answer *out;
    const struct remote_ask *ask;
    bool s3;
    char location[REMOTE_URL_BYTES_MAX];
    struct s3_result told;
    struct remote_names *names;
    bool list_passing;
    struct err list_err;
    struct str list_prefix;
};

bool remote_new(const struct remote_config *c, struct remote **ret, struct err *err)
{
    struct remote *r = xcalloc(1, sizeof *r);
    r->c = *c;
    if (!loop_new(&r->l, err) || !http_new(r->l, &r->http, err)) {
        remote_free(r);
        return false;
    }
    *ret = r;
    return true;
}

void remote_free(struct remote *r)
{
    if (r == NULL) {
        return;
    }
    aws_client_free(r->aws);
    http_free(r->http);
    loop_free(r->l);
    free(r);
}

void remote_answer_done(struct remote_answer *a)
{
    buf_done(&a->body);
}

static bool aws_ready(struct remote *r, struct err *err)
{
    const struct aws_config cfg = {
        .region = r->c.region, .user_agent = USER_AGENT, .anonymous = r->c.is_unsigned};
    return r->aws != NULL || aws_client_new(r->l, &cfg, &r->aws, err);
}

static bool stopped(const struct remote *r)
{
    return r->c.stop != NULL && *r->c.stop != 0;
}

static void copy_text(struct str s, char *out, size_t n)
{
    if (s.n < n) {
        memcpy(out, s.p, s.n);
        out[s.n] = '\0';
    }
}

/* "bytes 0-99/1234" or "bytes ... / *" */
static void read_range(struct str s, struct remote_answer *a)
{
    int64_t first;
    int64_t last;
    if (!str_starts(s, "bytes ")) {
        return;
    }
    struct str total = {s.p + 6, s.n - 6};
    struct str span = str_split(&total, '/');
    struct str to = span;
    struct str from = str_split(&to, '-');
    (void)!parse_i64(str_trim(total), 0, INT64_MAX, &a->total, NULL);
    if (parse_i64(str_trim(from), 0, INT64_MAX - 1, &first, NULL) &&
        parse_i64(str_trim(to), first, INT64_MAX - 1, &last, NULL)) {
        a->from = first;
        a->to = last + 1;
    }
}

/* S3's ETag is the MD5 of an object that was sent in one piece and is not encrypted with a key of
 * KMS. */
static void read_md5(const struct http_reply *h, struct str etag, struct remote_answer *a)
{
    struct str sse = http_reply_header(h, "x-amz-server-side-encryption");
    struct str hex = etag.n == 34 ? (struct str){etag.p + 1, 32} : (struct str){"", 0};
    uint8_t bytes[16];
    if ((sse.n == 0 || str_eq_cstr(sse, "AES256")) && str_unhex(hex, bytes, sizeof bytes)) {
        for (size_t i = 0; i < hex.n; i++) {
            a->md5[i] = (char)tolower((unsigned char)hex.p[i]);
        }
    }
}

static void read_headers(struct remote *r, const struct http_reply *h)
{
    struct remote_answer *a = r->out;
    struct str etag = http_reply_header(h, "ETag");
    bool strong = etag.n > 2 && etag.p[0] == '"';
    a->status = h->status;
    copy_text(strong ? etag : http_reply_header(h, "Last-Modified"), a->validator,
              sizeof a->validator);
    read_range(http_reply_header(h, "Content-Range"), a);
    if (h->status == 200) {
        (void)!parse_i64(http_reply_header(h, "Content-Length"), 0, INT64_MAX, &a->total, NULL);
    }
    copy_text(http_reply_header(h, "Location"), r->location, sizeof r->location);
    if (r->s3) {
        read_md5(h, etag, a);
    }
}

static void on_http(void *ctx, const struct http_reply *h)
{
    struct remote *r = ctx;
    r->done = true;
    if (!h->ok) {
        r->out->err = h->err;
        return;
    }
    read_headers(r, h);
    buf_reset(&r->out->body);
    buf_add_str(&r->out->body, buf_str(&h->body));
}

static void on_aws(void *ctx, const struct aws_reply *reply)
{
    struct remote *r = ctx;
    if (reply->outcome == AWS_UNSENT || reply->http == NULL || !reply->http->ok) {
        r->done = true;
        (void)aws_reply_err(reply, "GetObject", &r->out->err);
        if (reply->http != NULL && reply->http->err.code == ERR_TOO_LARGE) {
            r->out->err = reply->http->err;
        }
        return;
    }
    on_http(ctx, reply->http);
    if (reply->outcome != AWS_OK) {
        (void)aws_reply_err(reply, "GetObject", &r->out->err);
    }
}

static bool on_data(void *ctx, struct str data)
{
    struct remote *r = ctx;
    return !stopped(r) && r->ask->on_data(r->ask->ctx, data);
}

struct wire {
    char range[64];
    struct http_header headers[4];
    size_t n;
};

static void add_header(struct wire *w, const char *name, const char *value)
{
    w->headers[w->n++] = (struct http_header){name, value};
}

/* A server that holds another version answers 412 to If-Match (S3), or with the whole to If-Range
 * (HTTP): both show that the source changed. */
static void ask_headers(const struct remote *r, struct wire *w)
{
    const struct remote_ask *ask = r->ask;
    if (ask->n > 0) {
        (void)snprintf(w->range, sizeof w->range, "bytes=%lld-%lld", (long long)ask->from,
                       (long long)ask->from + (long long)ask->n - 1);
        add_header(w, "Range", w->range);
    }
    if (ask->validator[0] == '"' && r->s3) {
        add_header(w, "If-Match", ask->validator);
    } else if (ask->validator[0] != '\0' && ask->n > 0 && !r->s3) {
        add_header(w, "If-Range", ask->validator);
    }
}

static void get_s3(struct remote *r)
{
    struct wire w = {.n = 0};
    struct s3_uri u;
    struct err *err = &r->out->err;
    if (!s3_parse_uri(str_of(r->ask->uri), &u, err) || !aws_ready(r, err)) {
        return;
    }
    AUTO_BUF struct buf path = BUF_INIT(3 * sizeof u.key + 2);
    buf_add_char(&path, '/');
    str_url_encode(&path, str_of(u.key), true);
    ask_headers(r, &w);
    const struct aws_call call = {.service = "s3",
                                  .bucket = u.bucket,
                                  .method = "GET",
                                  .path = buf_cstr(&path),
                                  .headers = w.headers,
                                  .headers_n = w.n,
                                  .reply_max = MAX(r->ask->n, ERROR_BYTES_MAX),
                                  .timeout_us = r->ask->n > 0 ? TRANSFER_US : STREAM_US,
                                  .stall_timeout_us = r->c.stall_us,
                                  .on_data = r->ask->n > 0 ? NULL : on_data};
    aws_client_await_creds(r->aws);
    struct aws_req *q = aws_send(r->aws, &call, on_aws, r);
    while (!r->done && !stopped(r)) {
        loop_run_once(r->l, POLL_US);
    }
    if (!r->done) {
        aws_cancel(q);
    }
}

/* "https://host:port" of a URL */
static struct str origin_of(const char *url)
{
    const char *host = strstr(url, "://");
    size_t n = host == NULL ? 0 : (size_t)(host + 3 - url) + strcspn(host + 3, "/?#");
    return (struct str){url, n};
}

static void get_url(struct remote *r, const char *url, bool own_host)
{
    struct wire w = {.n = 0};
    ask_headers(r, &w);
    add_header(&w, "User-Agent", USER_AGENT);
    if (own_host && r->c.auth_value != NULL) {
        add_header(&w, r->c.auth_header, r->c.auth_value);
    }
    const struct http_request q = {.method = "GET",
                                   .url = url,
                                   .headers = w.headers,
                                   .headers_n = w.n,
                                   .reply_max = MAX(r->ask->n, ERROR_BYTES_MAX),
                                   .connect_timeout_us = 20 * USEC_PER_SEC,
                                   .timeout_us = r->ask->n > 0 ? TRANSFER_US : STREAM_US,
                                   .stall_timeout_us = r->c.stall_us,
                                   .on_data = r->ask->n > 0 ? NULL : on_data};
    struct http_req *t = http_send(r->http, &q, on_http, r);
    while (!r->done && !stopped(r)) {
        loop_run_once(r->l, POLL_US);
    }
    if (!r->done) {
        http_cancel(t);
    }
}

static void answer_reset(struct remote *r)
{
    buf_reset(&r->out->body);
    r->out->status = 0;
    r->out->from = r->out->to = r->out->total = -1;
    r->out->validator[0] = r->out->md5[0] = '\0';
    r->out->err = (struct err)ERR_INIT;
    r->location[0] = '\0';
    r->done = false;
}

/* The absolute URL a Location header names. False: none that may be followed. */
static bool follow(const struct remote *r, char url[static REMOTE_URL_BYTES_MAX])
{
    char next[REMOTE_URL_BYTES_MAX];
    bool absolute =
        strncasecmp(r->location, "https://", 8) == 0 || strncasecmp(r->location, "http://", 7) == 0;
    struct str origin = origin_of(url);
    if (!absolute && (r->location[0] != '/' || r->location[1] == '/')) {
        return false;
    }
    int n = absolute ? snprintf(next, sizeof next, "%s", r->location)
                     : snprintf(next, sizeof next, STR_FMT "%s", STR_ARG(origin), r->location);
    if (n < 0 || (size_t)n >= sizeof next ||
        (strncasecmp(url, "https://", 8) == 0 && strncasecmp(next, "https://", 8) != 0)) {
        return false; /* from https to http: the bytes could be anybody's */
    }
    memcpy(url, next, (size_t)n + 1);
    return true;
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void get_http(struct remote *r)
{
    char url[REMOTE_URL_BYTES_MAX];
    (void)snprintf(url, sizeof url, "%s", r->ask->uri);
    for (int i = 0; i <= REDIRECTS_MAX; i++) {
        answer_reset(r);
        get_url(r, url, str_eq(origin_of(url), origin_of(r->ask->uri)));
        if (r->out->err.code != ERR_NONE || !is_redirect(r->out->status) || stopped(r)) {
            return;
        }
        if (!follow(r, url)) {
            (void)err_set(&r->out->err, ERR_INVALID,
                          "'%.150s' redirects to where it cannot be followed", r->ask->uri);
            return;
        }
    }
    (void)err_set(&r->out->err, ERR_INVALID, "'%.150s' redirects more than %d times", r->ask->uri,
                  REDIRECTS_MAX);
}

void remote_get(struct remote *r, const struct remote_ask *ask, struct remote_answer *ret)
{
    *ret = (struct remote_answer){.body = BUF_INIT(MAX(ask->n, ERROR_BYTES_MAX))};
    r->ask = ask;
    r->out = ret;
    r->s3 = strncmp(ask->uri, "s3://", 5) == 0;
    answer_reset(r);
    if (r->s3) {
        get_s3(r);
    } else {
        get_http(r);
    }
    if (stopped(r) && !r->done) {
        (void)err_set(&ret->err, ERR_UNAVAILABLE, "stopped");
    }
    if (ret->err.code == ERR_NONE && ret->status < 300 && ask->n > 0 && ret->body.n > ask->n) {
        (void)err_set(&ret->err, ERR_TOO_LARGE, "more bytes than were asked for");
    }
}

static void on_told(void *ctx, const struct s3_result *res)
{
    struct remote *r = ctx;
    r->done = true;
    r->told = *res;
}

bool remote_told(struct remote *r, const char *uri, const char *validator, struct s3_result *ret)
{
    static const struct retry_policy policy = {
        .base_us = 200 * USEC_PER_MSEC, .cap_us = 2 * USEC_PER_SEC, .floor_us = USEC_PER_MSEC};
    struct rng rng;
    struct s3_uri u;
    struct err ignored = ERR_INIT;
    rng_seed(&rng, (uint64_t)getpid());
    if (!s3_parse_uri(str_of(uri), &u, &ignored) || !aws_ready(r, &ignored) ||
        !aws_client_compares(r->aws)) {
        return false;
    }
    for (int i = 0; i < TOLD_TRIES && !stopped(r); i++) {
        if (i > 0) {
            (void)poll(NULL, 0, (int)(retry_delay_us(&policy, i - 1, &rng) / USEC_PER_MSEC));
        }
        aws_client_await_creds(r->aws);
        r->done = false;
        s3_head_sums(r->aws, &u, on_told, r);
        while (!r->done) {
            loop_run_once(r->l, -1);
        }
        if (r->told.outcome == AWS_OK || r->told.outcome == AWS_REFUSED) {
            break;
        }
    }
    *ret = r->told;
    return r->told.outcome == AWS_OK && strcmp(r->told.etag, validator) == 0;
}

void remote_names_done(struct remote_names *n)
{
    for (size_t i = 0; i < n->n; i++) {
        free(n->at[i].key);
    }
    free(n->at);
    *n = (struct remote_names){0};
}

static void on_list(void *ctx, const struct s3_result *res)
{
    struct remote *r = ctx;
    r->done = true;
    r->list_err = res->err;
    r->list_passing = res->outcome != AWS_OK && res->outcome != AWS_REFUSED;
    for (size_t i = 0; res->outcome == AWS_OK && i < res->listing->n; i++) {
        const struct s3_object *o = &res->listing->objects[i];
        ARRAY_ROOM(r->names->at, r->names->n, r->names->cap_);
        r->names->at[r->names->n++] = (struct remote_name){xstrdup(o->key), o->size};
    }
}

bool remote_list(struct remote *r, const struct s3_uri *u, size_t max, struct remote_names *ret,
                 struct err *err)
{
    static const struct retry_policy policy = {
        .base_us = 200 * USEC_PER_MSEC, .cap_us = 5 * USEC_PER_SEC, .floor_us = USEC_PER_MSEC};
    struct rng rng;
    rng_seed(&rng, (uint64_t)getpid());
    r->names = ret;
    r->list_passing = true;
    if (!aws_ready(r, err)) {
        return false;
    }
    for (int i = 0; i < LIST_TRIES && r->list_passing && !stopped(r); i++) {
        if (i > 0) {
            (void)poll(NULL, 0, (int)(retry_delay_us(&policy, i - 1, &rng) / USEC_PER_MSEC));
        }
        aws_client_await_creds(r->aws);
        r->done = false;
        s3_list(r->aws, u, max, on_list, r);
        while (!r->done) {
            loop_run_once(r->l, -1);
        }
    }
    if (r->list_err.code != ERR_NONE) {
        *err = r->list_err;
        return err_wrap(err, "cannot list 's3://%s/%.200s'", u->bucket, u->key);
    }
    return true;
}
