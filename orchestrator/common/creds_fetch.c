/* Carrying out a plan for credentials: see creds_fetch.h.
 *
 * 1. One request is in flight at a time; `again` is the step that sent it.
 * 2. A step that fails in passing (no answer, 5xx, throttled, a wrong clock) is repeated, up to its
 *    tries, one second apart. What is refused is final.
 * 3. Neither a secret nor a token ever gets into an error. */
#include "creds_fetch.h"
#include "aws_error.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "creds_answer.h"
#include "creds_process.h"
#include "endpoint.h"
#include "profiles.h"

#define FETCH_BYTES_MAX     ((size_t)64 * 1024)
#define FETCH_TOKEN_MAX     ((size_t)20000)
#define FETCH_PAUSE_US      USEC_PER_SEC
#define CONTAINER_TIMEOUT_S 2
#define INSTANCE_TIMEOUT_S  1
#define STS_TIMEOUT_S       10

struct creds_fetch {
    struct loop *l;
    struct http *http;
    struct creds_plan plan;
    char *region;
    int64_t skew_us;
    struct aws_creds creds; /* what the next role is assumed with */
    size_t role_n;          /* roles assumed so far */
    struct http_req *req;
    struct creds_process *process;
    struct loop_timer *timer;
    void (*again)(struct creds_fetch *f); /* the step in progress */
    int tries_n;
    char instance_token[512];
    struct err err;
    creds_fetch_cb cb;
    void *ctx;
};

static void fetch_free(struct creds_fetch *f)
{
    if (f->req != NULL) {
        http_cancel(f->req);
    }
    if (f->process != NULL) {
        creds_process_cancel(f->process);
    }
    loop_timer_free(f->timer);
    creds_plan_done(&f->plan);
    free(f->region);
    explicit_bzero(f, sizeof *f);
    free(f);
}

static void finish(struct creds_fetch *f, bool ok)
{
    if (!ok) {
        (void)err_wrap(&f->err, "%s", f->plan.place);
    }
    f->cb(f->ctx, ok ? &f->creds : NULL, ok ? NULL : &f->err);
    fetch_free(f);
}

/* Repeat the step after a pause, or give up. */
static void retry(struct creds_fetch *f)
{
    /* The container's endpoint is there whenever its variable is; a laptop has no instance. */
    static const int tries[] = {[CREDS_KEYS] = 5,
                                [CREDS_WEB_IDENTITY] = 5,
                                [CREDS_PROCESS] = 5,
                                [CREDS_CONTAINER] = 15,
                                [CREDS_INSTANCE] = 3};
    if (f->tries_n >= tries[f->plan.source]) {
        finish(f, false);
    } else {
        loop_timer_set(f->timer, FETCH_PAUSE_US);
    }
}

static void begin(struct creds_fetch *f, void (*step)(struct creds_fetch *f))
{
    f->again = step;
    f->tries_n = 0;
    loop_timer_set(f->timer, 0);
}

static void on_timer(void *ctx)
{
    struct creds_fetch *f = ctx;
    f->tries_n++;
    f->again(f);
}

static void assume_role(struct creds_fetch *f);

/* One more set of keys is there: assume the next role with it, or finish. */
static void have_keys(struct creds_fetch *f)
{
    if (f->role_n < f->plan.roles_n) {
        begin(f, assume_role);
    } else {
        finish(f, true);
    }
}

static void fixed_keys(struct creds_fetch *f)
{
    f->creds = f->plan.keys;
    have_keys(f);
}

static int64_t metadata_timeout_us(int64_t dflt_s)
{
    int64_t s = dflt_s;
    const char *v = env_value("AWS_METADATA_SERVICE_TIMEOUT");
    (void)(v != NULL && parse_i64(str_of(v), 1, 60, &s, NULL));
    return s * USEC_PER_SEC;
}

static void send(struct creds_fetch *f, const char *method, const char *url,
                 const struct http_header *headers, size_t n, struct str body, int64_t timeout_us,
                 http_cb cb)
{
    struct http_request q = {.method = method,
                             .url = url,
                             .headers = headers,
                             .headers_n = n,
                             .body = body,
                             .reply_max = FETCH_BYTES_MAX,
                             .connect_timeout_us = timeout_us,
                             .timeout_us = timeout_us};
    f->req = http_send(f->http, &q, cb, f);
}

/* False: it is dealt with. Only 200 is an answer; the body of another may not be repeated whole. */
static bool answered(struct creds_fetch *f, const struct http_reply *h, const char *what)
{
    f->req = NULL;
    if (h->ok && h->status == 200) {
        return true;
    }
    if (!h->ok) {
        (void)err_set(&f->err, ERR_NETWORK, "no answer %s: %.200s", what, h->err.message);
    } else if (h->status >= 500) {
        (void)err_set(&f->err, ERR_UNAVAILABLE, "status %d %s", h->status, what);
    } else {
        (void)err_set(&f->err, ERR_UNAUTHENTICATED, "status %d %s", h->status, what);
    }
    if (h->ok && h->status >= 400 && h->status < 500 && h->status != 429 && h->status != 401) {
        finish(f, false);
    } else {
        retry(f);
    }
    return false;
}

static void on_keys(void *ctx, const struct http_reply *h)
{
    struct creds_fetch *f = ctx;
    if (!answered(f, h, "for the credentials")) {
        return;
    }
    if (creds_answer_json(buf_str(&h->body), f->plan.source, &f->creds, &f->err)) {
        have_keys(f);
    } else {
        retry(f);
    }
}

/* The authorization of the container's endpoint: the file is read each time, for it is rotated. */
static bool container_authorization(struct buf *out, struct err *err)
{
    const char *file = env_value("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *token = env_value("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    bool found = true;
    if (file != NULL && (!file_read_small(file, out, &found, err) || !found)) {
        return !found ? err_set(err, ERR_UNAUTHENTICATED, "cannot open '%.200s'", file) : false;
    }
    if (file == NULL && token != NULL) {
        buf_add_cstr(out, token);
    }
    while (file != NULL && out->n > 0 && strchr("\r\n", out->p[out->n - 1]) != NULL) {
        out->p[--out->n] = '\0';
    }
    for (size_t i = 0; i < out->n; i++) {
        if ((unsigned char)out->p[i] < 0x20 || (unsigned char)out->p[i] >= 0x7f) {
            return err_set(err, ERR_UNAUTHENTICATED,
                           "the authorization token has a byte that cannot be in a header");
        }
    }
    return true;
}

static void ask_container(struct creds_fetch *f)
{
    AUTO_BUF struct buf token = BUF_INIT(FETCH_TOKEN_MAX);
    if (!container_authorization(&token, &f->err)) {
        finish(f, false);
        return;
    }
    const struct http_header headers[] = {{"Accept", "application/json"},
                                          {"Authorization", buf_cstr(&token)}};
    send(f, "GET", f->plan.text, headers, token.n > 0 ? 2 : 1, (struct str){"", 0},
         metadata_timeout_us(CONTAINER_TIMEOUT_S), on_keys);
    if (token.p != NULL) {
        explicit_bzero(token.p, token.n);
    }
}

#define INSTANCE_ROLES "/latest/meta-data/iam/security-credentials/"

static void instance_get(struct creds_fetch *f, const char *path, struct str name, http_cb cb)
{
    AUTO_FREE char *url = xasprintf("%s%s%.*s", f->plan.text, path, STR_ARG(name));
    const struct http_header headers[] = {{"X-aws-ec2-metadata-token", f->instance_token}};
    send(f, "GET", url, headers, 1, (struct str){"", 0}, metadata_timeout_us(INSTANCE_TIMEOUT_S),
         cb);
}

static bool is_plain_text(struct str s, size_t max)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] >= 0x7f) {
            return false;
        }
    }
    return s.n > 0 && s.n <= max;
}

static void on_role_name(void *ctx, const struct http_reply *h)
{
    struct creds_fetch *f = ctx;
    if (!answered(f, h, "for the name of the instance's role")) {
        return;
    }
    struct str rest = str_trim(buf_str(&h->body));
    struct str name = str_trim(str_split(&rest, '\n'));
    if (!is_plain_text(name, 128) || str_find(name, STR("/")) >= 0) {
        (void)err_set(&f->err, ERR_UNAUTHENTICATED, "the instance has no role");
        finish(f, false);
        return;
    }
    instance_get(f, INSTANCE_ROLES, name, on_keys);
}

static void on_instance_token(void *ctx, const struct http_reply *h)
{
    struct creds_fetch *f = ctx;
    if (!answered(f, h,
                  "to PUT /latest/api/token (inside a container the instance's "
                  "HttpPutResponseHopLimit must be 2)")) {
        return;
    }
    struct str token = str_trim(buf_str(&h->body));
    if (!is_plain_text(token, sizeof f->instance_token - 1)) {
        (void)err_set(&f->err, ERR_UNAUTHENTICATED, "the metadata token is no text");
        retry(f);
        return;
    }
    memcpy(f->instance_token, token.p, token.n);
    f->instance_token[token.n] = '\0';
    instance_get(f, INSTANCE_ROLES, (struct str){"", 0}, on_role_name);
}

static void ask_instance(struct creds_fetch *f)
{
    static const struct http_header headers[] = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}};
    AUTO_FREE char *url = xasprintf("%s/latest/api/token", f->plan.text);
    send(f, "PUT", url, headers, 1, (struct str){"", 0}, metadata_timeout_us(INSTANCE_TIMEOUT_S),
         on_instance_token);
}

static void on_process(void *ctx, struct str out, const struct err *err)
{
    struct creds_fetch *f = ctx;
    f->process = NULL;
    if (err == NULL && creds_answer_json(out, CREDS_PROCESS, &f->creds, &f->err)) {
        have_keys(f);
        return;
    }
    if (err != NULL) {
        f->err = *err;
    }
    finish(f, false);
}

static void run_process(struct creds_fetch *f)
{
    if (!creds_process_start(f->l, f->plan.text, on_process, f, &f->process, &f->err)) {
        finish(f, false);
    }
}

/* The offset that AWS' Date header shows; the next try signs with it. */
static bool learn_skew(struct creds_fetch *f, const struct http_reply *h)
{
    AUTO_FREE char *date = str_dup(http_reply_header(h, "Date"));
    usec_t theirs;
    if (!clock_parse_http(date, &theirs, NULL)) {
        return false;
    }
    f->skew_us = theirs - clock_wall_us();
    return true;
}

static void on_sts(void *ctx, const struct http_reply *h)
{
    struct creds_fetch *f = ctx;
    bool web = f->plan.source == CREDS_WEB_IDENTITY && f->role_n == 0 && f->creds.key_id[0] == '\0';
    const struct creds_role *role = web ? &f->plan.web : &f->plan.roles[f->role_n];
    f->req = NULL;
    if (h->ok && h->status == 200) {
        if (creds_answer_xml(buf_str(&h->body), &f->creds, &f->err)) {
            f->role_n += !web;
            have_keys(f);
        } else {
            retry(f);
        }
        return;
    }
    if (!h->ok) {
        (void)err_set(&f->err, ERR_NETWORK, "STS does not answer: %.200s", h->err.message);
        retry(f);
        return;
    }
    struct aws_error e;
    aws_error_decode(h, false, &e);
    (void)err_set(&f->err, ERR_UNAUTHENTICATED, "cannot assume '%.200s': %s%s%.300s (status %d)",
                  role->arn, e.code, e.message[0] != '\0' ? ": " : "", e.message, h->status);
    bool skewed = aws_error_is_skew(e.code, e.message) && learn_skew(f, h);
    enum aws_outcome outcome = aws_classify(h->status, e.code, e.message);
    if (skewed || outcome == AWS_THROTTLED || outcome == AWS_UNKNOWN ||
        strcmp(e.code, "IDPCommunicationError") == 0) {
        retry(f);
    } else {
        finish(f, false);
    }
}

static void add_field(struct buf *b, const char *name, struct str value)
{
    buf_addf(b, "&%s=", name);
    str_url_encode(b, value, false);
}

static void add_role_fields(struct buf *b, const struct creds_role *r, bool with_duration)
{
    add_field(b, "RoleArn", str_of(r->arn));
    add_field(b, "RoleSessionName", str_of(r->session != NULL ? r->session : "drover"));
    if (r->external_id != NULL) {
        add_field(b, "ExternalId", str_of(r->external_id));
    }
    if (with_duration) {
        buf_addf(b, "&DurationSeconds=%lld", (long long)r->duration_s);
    }
}

/* POST to STS, signed unless the form carries a token of web identity. */
static void ask_sts(struct creds_fetch *f, struct str form, bool sign)
{
    bool custom;
    AUTO_FREE char *base = endpoint_url("sts", f->region, &custom);
    AUTO_FREE char *url = xasprintf("%s/", base);
    struct str host = str_of(base);
    (void)str_split(&host, ':');
    host = (struct str){host.p + MIN(host.n, (size_t)2), host.n - MIN(host.n, (size_t)2)};
    struct str path = host;
    host = str_split(&path, '/');
    AUTO_FREE char *path_text = xasprintf("%s%.*s/", path.n > 0 ? "/" : "", STR_ARG(path));
    AUTO_FREE char *host_text = str_dup(host);
    char hash[SHA256_HEX_N];
    char date[17];
    AUTO_BUF struct buf authorization = BUF_INIT(4096);
    struct http_header headers[5] = {
        {"Host", host_text}, {"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
    size_t n = 2;
    if (sign) {
        const struct sigv4_header signed_headers[] = {
            {STR("Host"), host},
            {STR("Content-Type"), STR("application/x-www-form-urlencoded; charset=utf-8")}};
        hash_sha256_hex(form.p, form.n, hash);
        struct sigv4_request q = {.method = STR("POST"),
                                  .path = str_of(path_text),
                                  .headers = signed_headers,
                                  .headers_n = ARRAY_LEN(signed_headers),
                                  .payload_hash = str_of(hash),
                                  .region = str_of(f->region),
                                  .service = STR("sts")};
        sigv4_sign(&q, &f->creds, clock_wall_us() + f->skew_us, date, &authorization);
        headers[n++] = (struct http_header){"X-Amz-Date", date};
        headers[n++] = (struct http_header){"Authorization", buf_cstr(&authorization)};
        if (f->creds.session_token[0] != '\0') {
            headers[n++] = (struct http_header){"X-Amz-Security-Token", f->creds.session_token};
        }
    }
    send(f, "POST", url, headers, n, form, STS_TIMEOUT_S * USEC_PER_SEC, on_sts);
}

static void assume_role(struct creds_fetch *f)
{
    const struct creds_role *r = &f->plan.roles[f->role_n];
    AUTO_BUF struct buf form = BUF_INIT(FETCH_BYTES_MAX);
    buf_add_cstr(&form, "Action=AssumeRole&Version=2011-06-15");
    add_role_fields(&form, r, true);
    ask_sts(f, buf_str(&form), true);
}

static void assume_role_with_web_identity(struct creds_fetch *f)
{
    AUTO_BUF struct buf token = BUF_INIT(FETCH_TOKEN_MAX);
    AUTO_BUF struct buf form = BUF_INIT(FETCH_BYTES_MAX);
    bool found = false;
    if (!file_read_small(f->plan.text, &token, &found, &f->err) || !found) {
        if (!found) {
            (void)err_set(&f->err, ERR_UNAUTHENTICATED, "cannot open '%.200s'", f->plan.text);
        }
        finish(f, false);
        return;
    }
    buf_add_cstr(&form, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
    add_role_fields(&form, &f->plan.web, false);
    add_field(&form, "WebIdentityToken", str_trim(buf_str(&token)));
    ask_sts(f, buf_str(&form), false);
    explicit_bzero(form.p, form.n);
}

struct creds_fetch *creds_fetch_start(struct loop *l, struct http *h, struct creds_plan *take_plan,
                                      const char *region, int64_t skew_us, creds_fetch_cb cb,
                                      void *ctx)
{
    static void (*const steps[])(struct creds_fetch *) = {
        [CREDS_KEYS] = fixed_keys,       [CREDS_WEB_IDENTITY] = assume_role_with_web_identity,
        [CREDS_PROCESS] = run_process,   [CREDS_CONTAINER] = ask_container,
        [CREDS_INSTANCE] = ask_instance,
    };
    struct creds_fetch *f = xcalloc(1, sizeof *f);
    *f = (struct creds_fetch){.l = l,
                              .http = h,
                              .plan = *take_plan,
                              .region = xstrdup(region),
                              .skew_us = skew_us,
                              .cb = cb,
                              .ctx = ctx};
    memset(take_plan, 0, sizeof *take_plan);
    f->timer = loop_timer_new(l, on_timer, f);
    begin(f, steps[f->plan.source]);
    return f;
}

void creds_fetch_cancel(struct creds_fetch *f)
{
    if (f != NULL) {
        fetch_free(f);
    }
}
