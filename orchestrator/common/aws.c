/* One signed AWS call: address, sign, hand to http, decode the answer into an outcome.
 *
 * 1. aws_send signs the request and hands it to http in one step, so a signature is never older
 *    than the loop pass that made it. may_send is called after signing and again before the first
 *    byte.
 * 2. Nothing is retried here but one: until the first answer has told AWS' clock, a call that is
 *    refused for its date is signed once more by that clock. A refusal teaches the clock skew and
 *    makes the keyring renew the credentials; the caller's next call uses both. Without valid keys
 *    a call is AWS_UNSENT.
 * 3. With a pace, a call that has to wait is kept, and signed when its time comes.
 * 4. The callback runs once, from the loop, never from inside aws_send. */
#include "common/aws.h"
#include "aws_error.h"
#include "aws_kept.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/secret_shape.h"
#include "endpoint.h"
#include "keyring.h"

#define AWS_REPLY_BYTES_MAX   ((size_t)8 * 1024 * 1024)
#define AWS_TIMEOUT_US        (30 * USEC_PER_SEC)
#define AWS_HOLD_US           (10 * USEC_PER_SEC)
#define AWS_HEADERS_MAX       24
#define AWS_SKEW_TOLERATED_US (240 * USEC_PER_SEC)
#define AWS_ENDPOINTS_MAX     16
#define AWS_AUTHORIZATION_MAX ((size_t)4096)
#define AWS_URL_BYTES_MAX     ((size_t)16 * 1024)

struct aws_req {
    struct aws_client *c;
    struct aws_req *prev, *next;
    struct http_req *http; /* NULL: not handed to http; kick reports it */
    bool json, xml, head;
    bool (*may_send)(void *ctx);
    void *may_send_ctx;
    bool (*on_data)(void *ctx, struct str data);
    aws_cb cb;
    void *ctx;
    struct err err; /* why it was not handed to http */
    const char *operation;
    int64_t sent_us, due_us; /* monotonic; due_us 0: it is not held */
    int64_t retry_after_us;  /* of a call that may not be sent yet */
    struct aws_call kept;    /* to be signed later, or once more */
    bool again;              /* it may be signed once more */
    struct arena arena;      /* what `kept` points to */
    struct aws_error text;
};

struct aws_client {
    struct loop *l;
    struct http *http;
    struct loop_timer *kick;
    struct aws_req *first;
    char region[64];
    char *user_agent;
    struct keyring *keys; /* NULL: anonymous */
    bool refused;         /* the last answer refused the credentials */
    uint64_t answers;     /* with the first AWS' clock is known */
    bool closing;         /* aws_client_free is running */
    bool checksums;       /* S3 requests state them */
    bool compares;        /* what S3 sends is compared with them */
    uint64_t signed_n;
    bool (*gate)(void *ctx); /* aws_client_set_gate */
    void *gate_ctx;
    struct aws_pace pace;
    struct endpoint endpoints[AWS_ENDPOINTS_MAX];
    size_t endpoints_n;
};

static const struct endpoint *endpoint_of(struct aws_client *c, const char *service,
                                          struct err *err)
{
    for (size_t i = 0; i < c->endpoints_n; i++) {
        if (strcmp(c->endpoints[i].service, service) == 0) {
            return &c->endpoints[i];
        }
    }
    ASSERT(c->endpoints_n < AWS_ENDPOINTS_MAX);
    struct endpoint e = {0};
    e.url = endpoint_url(service, c->region, &e.custom);
    if (!endpoint_parse(&e, err)) {
        free(e.url);
        return NULL;
    }
    e.service = xstrdup(service);
    c->endpoints[c->endpoints_n] = e;
    return &c->endpoints[c->endpoints_n++];
}

static bool start(struct aws_req *r, const struct aws_call *call, struct err *err);

/* May it be signed once more? Refused for its date it had no effect. Not calls whose every
 * signature the caller counts, nor long bodies. */
static bool may_sign_again(const struct aws_client *c, const struct aws_call *call)
{
    return c->answers == 0 && c->keys != NULL && !call->fresh_connection && aws_kept_fits(call);
}

/* True: it is under way again, with the skew that its refusal has taught. */
static bool sent_again(struct aws_req *r)
{
    bool again = r->again;
    r->again = false;
    return again && start(r, &r->kept, &r->err);
}

static void learn_skew(struct aws_client *c, const struct http_reply *r, bool refused_for_skew)
{
    usec_t date;
    if (c->keys == NULL || !aws_error_date(r, &date)) {
        return;
    }
    int64_t offset_us = date - clock_wall_us();
    int64_t off_us = offset_us - keyring_skew_us(c->keys);
    if (refused_for_skew || off_us > AWS_SKEW_TOLERATED_US || off_us < -AWS_SKEW_TOLERATED_US) {
        keyring_set_skew(c->keys, offset_us);
    }
}

static void req_free(struct aws_req *r)
{
    if (r->prev != NULL) {
        r->prev->next = r->next;
    } else {
        r->c->first = r->next;
    }
    if (r->next != NULL) {
        r->next->prev = r->prev;
    }
    arena_done(&r->arena);
    free(r);
}

static void deliver(struct aws_req *r, struct aws_reply *reply)
{
    reply->code = r->text.code;
    secret_mask(r->text.message);
    reply->message = r->text.message;
    reply->request_id = r->text.request_id;
    r->cb(r->ctx, reply);
    req_free(r);
}

static void set_message(struct aws_req *r, const char *message)
{
    size_t n = MIN(strlen(message), sizeof r->text.message - 1);
    memcpy(r->text.message, message, n);
    r->text.message[n] = '\0';
}

/* Checks that the body of a 2xx is readable. An empty answer of an operation without output counts
 * as {}. */
static enum aws_outcome check_ok(struct aws_req *r, struct aws_reply *reply)
{
    if (r->json) {
        if (reply->body.n == 0) {
            reply->body = STR("{}");
        }
        AUTO_JSON json_t *v = NULL;
        struct err err = ERR_INIT;
        if (!json_parse(reply->body, reply->body.n, &v, &err) || !json_is_object(v)) {
            set_message(r, v == NULL ? err.message : "the answer is no JSON object");
            return AWS_UNKNOWN;
        }
    } else if (r->xml && !aws_error_is_xml(reply->body)) {
        set_message(r, "the answer is no XML document");
        return AWS_UNKNOWN;
    }
    return AWS_OK;
}

static void on_reply(void *ctx, const struct http_reply *h)
{
    struct aws_req *r = ctx;
    r->http = NULL;
    struct aws_reply reply = {.status = h->status, .http = h, .body = buf_str(&h->body)};
    if (!h->ok) {
        reply.outcome = h->sent ? AWS_UNKNOWN : AWS_UNSENT;
        set_message(r, h->err.message);
        deliver(r, &reply);
        return;
    }
    if (h->status >= 200 && h->status < 300) {
        aws_error_request_id(h, &r->text);
        reply.outcome = check_ok(r, &reply);
    } else {
        aws_error_decode(h, r->head, &r->text);
        reply.outcome = aws_classify(h->status, r->text.code, r->text.message);
        reply.retry_after_us = aws_error_retry_after_us(h);
    }
    bool skewed = aws_error_is_skew(r->text.code, r->text.message);
    int64_t skew_us = aws_client_skew_us(r->c);
    learn_skew(r->c, h, skewed);
    r->c->answers++;
    if (skewed && sent_again(r)) {
        return;
    }
    /* S3 answers HEAD without a code: 400 to keys that expire, 403 to a date that is far off. */
    if (r->head && ((h->status == 400 && aws_client_renews_creds(r->c)) ||
                    (h->status == 403 && aws_client_skew_us(r->c) != skew_us))) {
        reply.outcome = AWS_CREDENTIALS;
    }
    if (r->operation != NULL && reply.outcome != AWS_UNKNOWN && r->c->pace.answered != NULL) {
        r->c->pace.answered(r->c->pace.ctx, r->operation, r->sent_us, &reply);
    }
    r->c->refused = reply.outcome == AWS_CREDENTIALS;
    if (r->c->refused && !skewed && r->c->keys != NULL) {
        keyring_refused(r->c->keys);
    }
    deliver(r, &reply);
}

/* The time of a held call has come, and it is sent. */
static bool is_let_go(struct aws_req *r)
{
    r->due_us = 0;
    r->again = may_sign_again(r->c, &r->kept);
    return start(r, &r->kept, &r->err);
}

/* Sends what was held until now, and reports what could not be sent. */
static void on_kick(void *ctx)
{
    struct aws_client *c = ctx;
    int64_t now_us = clock_mono_us(), due_us = INT64_MAX;
    for (struct aws_req *r = c->first; r != NULL;) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed ones have left the list before */
        bool waits = r->http == NULL && r->due_us > now_us;
        due_us = waits ? MIN(due_us, r->due_us) : due_us;
        if (waits || r->http != NULL || (r->due_us > 0 && is_let_go(r))) {
            r = r->next;
            continue;
        }
        struct http_reply none = {.err = r->err};
        struct aws_reply reply = {.outcome = AWS_UNSENT, .http = &none, .body = {"", 0}};
        reply.retry_after_us = r->retry_after_us;
        set_message(r, r->err.message);
        deliver(r, &reply);
        r = c->first; /* the callback may have changed the list */
        due_us = INT64_MAX;
    }
    if (due_us < INT64_MAX) {
        loop_timer_set(c->kick, due_us - now_us);
    }
}

static bool on_data(void *ctx, struct str data)
{
    struct aws_req *r = ctx;
    return r->on_data(r->ctx, data);
}

static bool on_may_send(void *ctx)
{
    struct aws_req *r = ctx;
    if (r->may_send != NULL) {
        return r->may_send(r->may_send_ctx);
    }
    return r->c->gate == NULL || r->c->gate(r->c->gate_ctx);
}

void aws_client_set_gate(struct aws_client *c, bool (*may_send)(void *ctx), void *ctx)
{
    c->gate = may_send;
    c->gate_ctx = ctx;
}

void aws_client_set_pace(struct aws_client *c, const struct aws_pace *pace)
{
    c->pace = *pace;
}

struct headers { /* headers on the wire; the first `sign_n` are signed */
    struct http_header wire[AWS_HEADERS_MAX];
    size_t n;
};

static void add_header(struct headers *h, const char *name, const char *value)
{
    ASSERT(h->n < AWS_HEADERS_MAX);
    h->wire[h->n++] = (struct http_header){name, value};
}

struct target { /* where a call goes; all NUL-terminated by buf_cstr */
    struct buf host;
    struct buf path;
    struct buf url;
};

static void target_done(struct target *t)
{
    buf_done(&t->host);
    buf_done(&t->path);
    buf_done(&t->url);
}

static bool address(const struct endpoint *e, const struct aws_call *call, struct target *t,
                    struct err *err)
{
    bool in_host = call->bucket != NULL && !e->custom && strchr(call->bucket, '.') == NULL;
    if (in_host) {
        buf_addf(&t->host, "%s.", call->bucket);
    }
    buf_add_str(&t->host, e->host);
    buf_add_str(&t->path, e->base);
    if (call->bucket != NULL && !in_host) {
        buf_addf(&t->path, "/%s", call->bucket);
    }
    buf_add_cstr(&t->path, call->path != NULL ? call->path : "/");
    buf_add_str(&t->url, e->scheme);
    buf_add_str(&t->url, buf_str(&t->host));
    buf_add_str(&t->url, buf_str(&t->path));
    if (call->query != NULL && call->query[0] != '\0') {
        buf_addf(&t->url, "?%s", call->query);
    }
    return !t->url.overflow || err_set(err, ERR_TOO_LARGE, "the request's address is too long");
}

/* Sign what is in h so far and add the headers that carry the signature. */
static void sign(struct aws_client *c, const struct aws_creds *keys, const struct aws_call *call,
                 const struct target *t, const char *payload_hash, struct headers *h,
                 char date[static 17], struct buf *authorization)
{
    struct sigv4_header signed_headers[AWS_HEADERS_MAX];
    for (size_t i = 0; i < h->n; i++) {
        signed_headers[i] =
            (struct sigv4_header){str_of(h->wire[i].name), str_of(h->wire[i].value)};
    }
    struct sigv4_request q = {
        .method = str_of(call->method != NULL ? call->method : "POST"),
        .path = buf_str(&t->path),
        .query = str_of(call->query),
        .headers = signed_headers,
        .headers_n = h->n,
        .payload_hash = str_of(payload_hash),
        .region = str_of(c->region),
        .service = str_of(endpoint_signing_name(call->service)),
        .is_s3 = strcmp(call->service, "s3") == 0,
    };
    sigv4_sign(&q, keys, clock_wall_us() + keyring_skew_us(c->keys), date, authorization);
    ASSERT(!authorization->overflow);
    add_header(h, "X-Amz-Date", date);
    add_header(h, "Authorization", buf_cstr(authorization));
    if (keys->session_token[0] != '\0') {
        add_header(h, "X-Amz-Security-Token", keys->session_token);
    }
}

/* Build, sign, hand to http. False: not handed over. */
static bool start(struct aws_req *r, const struct aws_call *call, struct err *err)
{
    struct aws_client *c = r->c;
    const struct endpoint *e = endpoint_of(c, call->service, err);
    CLEANUP(target_done)
    struct target t = {BUF_INIT(512), BUF_INIT(AWS_URL_BYTES_MAX), BUF_INIT(AWS_URL_BYTES_MAX)};
    if (e == NULL || !address(e, call, &t, err)) {
        return false;
    }
    if (!on_may_send(r)) {
        return err_set(err, ERR_NETWORK, "dropped before it was signed");
    }
    if (call->headers_n + 9 > AWS_HEADERS_MAX) {
        return err_set(err, ERR_LIMIT, "more than %d headers", AWS_HEADERS_MAX - 9);
    }
    const struct aws_creds *keys = c->keys != NULL ? keyring_get(c->keys, err) : NULL;
    if (keys == NULL && c->keys != NULL) {
        return false;
    }
    char computed[SHA256_HEX_N];
    const char *hash = call->payload_sha256;
    if (hash == NULL) {
        hash_sha256_hex(call->body.p != NULL ? call->body.p : "", call->body.n, computed);
        hash = computed;
    }
    struct headers h = {.n = 0};
    add_header(&h, "Host", buf_cstr(&t.host));
    if (call->content_type != NULL) {
        add_header(&h, "Content-Type", call->content_type);
    }
    if (call->target != NULL) {
        add_header(&h, "X-Amz-Target", call->target);
    }
    if (strcmp(call->service, "s3") == 0) {
        add_header(&h, "x-amz-content-sha256", hash);
    }
    for (size_t i = 0; i < call->headers_n; i++) {
        add_header(&h, call->headers[i].name, call->headers[i].value);
    }
    char date[17];
    AUTO_BUF struct buf authorization = BUF_INIT(AWS_AUTHORIZATION_MAX);
    if (keys != NULL) {
        sign(c, keys, call, &t, hash, &h, date, &authorization);
    }
    add_header(&h, "User-Agent", c->user_agent);
    struct http_request q = {
        .method = call->method != NULL ? call->method : "POST",
        .url = buf_cstr(&t.url),
        .headers = h.wire,
        .headers_n = h.n,
        .body = call->body,
        .body_borrow = call->body_borrow,
        .reply_max = call->reply_max > 0 ? call->reply_max : AWS_REPLY_BYTES_MAX,
        .timeout_us = call->timeout_us > 0 ? call->timeout_us : AWS_TIMEOUT_US,
        .stall_timeout_us = call->stall_timeout_us,
        .fresh_connection = call->fresh_connection,
        .may_send = on_may_send,
        .on_data = call->on_data != NULL ? on_data : NULL,
    };
    if (!on_may_send(r)) {
        return err_set(err, ERR_NETWORK, "dropped before it was sent");
    }
    r->http = http_send(c->http, &q, on_reply, r);
    r->sent_us = clock_mono_us();
    c->signed_n += keys != NULL;
    return true;
}

/* False: it has to wait, or may not be sent. */
static bool pace_lets(struct aws_req *r, const struct aws_call *call)
{
    const struct aws_pace *pace = &r->c->pace;
    int64_t most_us = !call->fresh_connection && aws_kept_fits(call) ? AWS_HOLD_US : 0;
    bool paced = call->operation != NULL && pace->take != NULL;
    int64_t wait_us = paced ? pace->take(pace->ctx, call->operation, most_us) : 0;
    if (wait_us > most_us) {
        r->retry_after_us = wait_us;
        (void)err_set(&r->err, ERR_NETWORK, "not sent: AWS throttles %s", call->operation);
    } else if (wait_us > 0) {
        r->due_us = clock_mono_us() + wait_us;
        aws_kept(&r->arena, call, &r->kept);
    }
    return wait_us == 0;
}

struct aws_req *aws_send(struct aws_client *c, const struct aws_call *call, aws_cb cb, void *ctx)
{
    ASSERT(call->service != NULL);
    ASSERT(cb != NULL);
    ASSERT(!c->closing);
    struct aws_req *r = xcalloc(1, sizeof *r);
    *r = (struct aws_req){
        .c = c,
        .next = c->first,
        .json = call->target != NULL,
        .xml = strcmp(call->service, "sts") == 0 || strcmp(call->service, "ec2") == 0,
        .head = call->method != NULL && strcmp(call->method, "HEAD") == 0,
        .may_send = call->may_send,
        .may_send_ctx = call->may_send_ctx,
        .on_data = call->on_data,
        .operation = call->operation,
        .cb = cb,
        .ctx = ctx,
    };
    if (c->first != NULL) {
        c->first->prev = r;
    }
    c->first = r;
    arena_init(&r->arena, AWS_KEPT_BYTES_MAX);
    if (!pace_lets(r, call) || !start(r, call, &r->err)) {
        loop_timer_set(c->kick, 0);
    } else if (may_sign_again(c, call)) {
        r->again = true;
        aws_kept(&r->arena, call, &r->kept);
    }
    return r;
}

void aws_cancel(struct aws_req *r)
{
    if (r->http != NULL) {
        http_cancel(r->http);
    }
    req_free(r);
}

bool aws_req_sent(const struct aws_req *r)
{
    return r->http != NULL && http_req_sent(r->http);
}

bool aws_client_new(struct loop *l, const struct aws_config *cfg, struct aws_client **ret,
                    struct err *err)
{
    struct aws_client *c = xcalloc(1, sizeof *c);
    c->l = l;
    c->user_agent = xstrdup(cfg->user_agent != NULL ? cfg->user_agent : "drover");
    c->checksums = endpoint_wants_checksums();
    c->compares = endpoint_wants_compared();
    c->kick = loop_timer_new(l, on_kick, c);
    if (cfg->region != NULL) {
        if (strlen(cfg->region) >= sizeof c->region) {
            (void)err_set(err, ERR_INVALID, "region '%.64s' is too long", cfg->region);
            goto fail;
        }
        memcpy(c->region, cfg->region, strlen(cfg->region) + 1);
    } else if (!endpoint_region(c->region, sizeof c->region, err)) {
        goto fail;
    }
    if (cfg->sibling != NULL) {
        c->keys = keyring_ref(cfg->sibling->keys);
    } else if (!cfg->anonymous && !keyring_new(l, c->region, &c->keys, err)) {
        goto fail;
    }
    if (!http_new(l, &c->http, err)) {
        goto fail;
    }
    *ret = c;
    return true;
fail:
    aws_client_free(c);
    return false;
}

/* Ends a call whose result is no longer wanted. */
static void give_back(struct aws_req *r)
{
    struct http_reply none = {0};
    struct aws_reply reply = {
        .outcome = aws_req_sent(r) ? AWS_UNKNOWN : AWS_UNSENT, .http = &none, .body = {"", 0}};
    if (r->http != NULL) {
        http_cancel(TAKE(r->http));
    }
    (void)err_set(&none.err, ERR_NETWORK, "the client was closed");
    set_message(r, none.err.message);
    deliver(r, &reply);
}

void aws_client_free(struct aws_client *c)
{
    if (c == NULL) {
        return;
    }
    c->closing = true;
    while (c->first != NULL) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the one released has left the list */
        give_back(c->first);
    }
    for (size_t i = 0; i < c->endpoints_n; i++) {
        free(c->endpoints[i].service);
        free(c->endpoints[i].url);
    }
    http_free(c->http);
    loop_timer_free(c->kick);
    free(c->user_agent);
    keyring_unref(c->keys);
    free(c);
}

const char *aws_client_region(const struct aws_client *c)
{
    return c->region;
}

struct http *aws_client_http(struct aws_client *c)
{
    return c->http;
}

bool aws_client_renews_creds(const struct aws_client *c)
{
    return c->keys != NULL && keyring_renews(c->keys);
}

void aws_client_await_creds(struct aws_client *c)
{
    if (c->keys != NULL && (keyring_get(c->keys, NULL) == NULL || c->refused)) {
        while (keyring_is_renewing(c->keys)) {
            loop_run_once(c->l, -1);
        }
    }
}

int64_t aws_client_skew_us(const struct aws_client *c)
{
    return c->keys != NULL ? keyring_skew_us(c->keys) : 0;
}

uint64_t aws_client_answers(const struct aws_client *c)
{
    return c->answers;
}

uint64_t aws_client_signed_n(const struct aws_client *c)
{
    return c->signed_n;
}

bool aws_client_compares(const struct aws_client *c)
{
    return c->compares;
}

enum aws_checksums aws_client_checksums(struct aws_client *c)
{
    struct err err = ERR_INIT;
    const struct endpoint *e = endpoint_of(c, "s3", &err);
    bool own = e == NULL || !e->custom || endpoint_is_aws_host(e->host);
    return !c->checksums ? AWS_CHECKSUMS_OFF : own ? AWS_CHECKSUMS_REQUIRED : AWS_CHECKSUMS_SENT;
}
