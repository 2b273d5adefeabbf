/* Answers of handlers: JSON, problem+json (RFC 9457), ETags. */
#include "reply.h"
#include "common/hash.h"
#include "common/secret_shape.h"
#include "request.h"
#include <stdarg.h>
#include <stdio.h>

void reply_header(struct api_req *r, const char *name, const char *fmt, ...)
{
    ASSERT((size_t)r->headers_n < ARRAY_LEN(r->headers));
    va_list args;
    va_start(args, fmt);
    char text[1024];
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    r->headers[r->headers_n++] =
        (struct api_header){name, arena_strndup(&r->arena, text, strlen(text))};
}

bool reply_out(struct api_req *r, int status)
{
    r->status = status;
    r->content_type = "application/json";
    return true;
}

bool reply_json(struct api_req *r, int status, struct str json)
{
    buf_reset(&r->out);
    buf_add_str(&r->out, json);
    buf_add_char(&r->out, '\n');
    return reply_out(r, status);
}

/* True when an If-None-Match list contains etag. */
static bool etag_in(const char *list, const char *etag)
{
    struct str rest = str_of(list);
    while (rest.n > 0) {
        struct str one = str_trim(str_split(&rest, ','));
        if (str_starts(one, "W/")) {
            one = (struct str){one.p + 2, one.n - 2};
        }
        if (str_eq_cstr(one, etag) || str_eq_cstr(one, "*")) {
            return true;
        }
    }
    return false;
}

bool reply_etag(struct api_req *r, const char *etag)
{
    reply_header(r, MHD_HTTP_HEADER_ETAG, "%s", etag);
    const char *list = req_header(r, MHD_HTTP_HEADER_IF_NONE_MATCH);
    bool get = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
    if (list == NULL || !get || !etag_in(list, etag)) {
        return false;
    }
    r->status = 304;
    r->content_type = NULL;
    buf_reset(&r->out);
    return true;
}

void reply_etag_of_body(struct api_req *r, const char *prefix)
{
    uint32_t a = hash_crc32(r->out.p, r->out.n);
    (void)reply_etag(r, arena_printf(&r->arena, "\"%s%08x%zx\"", prefix, a, r->out.n));
}

void reply_etag_default(struct api_req *r)
{
    bool get = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
    if (!get || r->status != 200 || r->stream != NULL || r->fixed != NULL) {
        return;
    }
    for (int i = 0; i < r->headers_n; i++) {
        if (strcmp(r->headers[i].name, MHD_HTTP_HEADER_ETAG) == 0) {
            return;
        }
    }
    reply_etag_of_body(r, "");
}

static const char *status_title(int status)
{
    static const struct {
        int status;
        const char *title;
    } titles[] = {
        {400, "the request is malformed"},
        {401, "a valid token is needed"},
        {403, "this token may not do that"},
        {404, "not found"},
        {405, "method not allowed"},
        {409, "in conflict with the current state"},
        {412, "changed since it was read"},
        {413, "the body is too large"},
        {415, "this media type is not accepted"},
        {422, "the request is not valid"},
        {424, "the model did not answer well"},
        {428, "If-Match is missing"},
        {429, "too many requests"},
        {431, "the head is too large"},
        {500, "an error inside drover"},
        {502, "AWS refused or did not answer"},
        {503, "not available now"},
        {504, "not answered in time"},
    };
    for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
        if (titles[i].status == status) {
            return titles[i].title;
        }
    }
    return "error";
}

static void problem_faults(struct json_out *w, const struct faults *f)
{
    json_out_array(w, "errors");
    for (int i = 0; i < f->n; i++) {
        const struct fault *x = &f->at[i];
        json_out_object(w, NULL);
        json_out_str(w, "pointer", x->pointer);
        if (x->pos.line > 0) {
            json_out_i64(w, "line", x->pos.line);
            json_out_i64(w, "column", x->pos.column);
        }
        json_out_str(w, "code", x->code);
        json_out_str(w, "message", x->message);
        if (x->hint[0] != '\0') {
            json_out_str(w, "hint", x->hint);
        }
        json_out_end_object(w);
    }
    json_out_end_array(w);
    if (f->dropped > 0) {
        json_out_i64(w, "errors_dropped", f->dropped);
    }
}

/* What is refused is repeated in part, so that people find it. A key is not: the answer stands on
 * terminals, in logs of proxies and of programs. */
static const char *without_keys(struct api_req *r, const char *text)
{
    char *copy = arena_strndup(&r->arena, text, strlen(text));
    secret_mask(copy);
    return copy;
}

static void mask_faults(struct faults *f)
{
    for (int i = 0; i < f->n; i++) {
        secret_mask(f->at[i].pointer);
        secret_mask(f->at[i].message);
        secret_mask(f->at[i].hint);
    }
}

static void problem(struct api_req *r, int status, const char *code, const char *detail,
                    bool retryable)
{
    r->status = status;
    r->content_type = "application/problem+json";
    buf_reset(&r->out);
    struct json_out w;
    json_out_init(&w, &r->out);
    json_out_object(&w, NULL);
    json_out_str(&w, "type", arena_printf(&r->arena, "/problems/%s", code));
    json_out_str(&w, "title", status_title(status));
    json_out_i64(&w, "status", status);
    json_out_str(&w, "code", code);
    json_out_str(&w, "detail", without_keys(r, detail));
    json_out_str(&w, "instance", str_is_utf8(str_of(r->path)) ? without_keys(r, r->path) : "");
    json_out_str(&w, "request_id", r->request_id);
    json_out_bool(&w, "retryable", retryable);
    if (r->other_campaign > 0) {
        json_out_str(&w, "campaign",
                     arena_printf(&r->arena, "c-%lld", (long long)r->other_campaign));
    }
    if (r->faults != NULL && r->faults->n > 0) {
        mask_faults(r->faults);
        problem_faults(&w, r->faults);
    }
    json_out_end_object(&w);
    buf_add_char(&r->out, '\n');
    if (status == 401) {
        reply_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"drover\"");
    }
    if (status == 429 || status == 503 || strcmp(code, err_code_name(ERR_KEY_IN_USE)) == 0) {
        reply_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
}

void reply_problem(struct api_req *r, const struct err *err)
{
    int status = err_code_http(err->code);
    if (err->code == ERR_PRECONDITION && err->http_status == 428) {
        status = 428;
    }
    problem(r, status, err_code_name(err->code), err->message,
            err_code_retry(err->code) == RETRY_BACKOFF);
}

void reply_problem_status(struct api_req *r, int status, const char *code, const char *detail)
{
    problem(r, status, code, detail, status == 503 || status == 429);
}
