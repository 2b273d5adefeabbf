/* See aws_kept.h. */
#include "aws_kept.h"

#define BODY_BYTES_MAX ((size_t)256 * 1024)

static char *keep_text(struct arena *a, const char *s)
{
    return s != NULL ? arena_strndup(a, s, strlen(s)) : NULL;
}

bool aws_kept_fits(const struct aws_call *call)
{
    return call->body_borrow || call->body.n <= BODY_BYTES_MAX;
}

void aws_kept(struct arena *a, const struct aws_call *call, struct aws_call *ret)
{
    struct http_header *headers = arena_alloc(a, (call->headers_n + 1) * sizeof *headers);
    for (size_t i = 0; i < call->headers_n; i++) {
        headers[i] = (struct http_header){keep_text(a, call->headers[i].name),
                                          keep_text(a, call->headers[i].value)};
    }
    *ret = *call;
    ret->service = keep_text(a, call->service);
    ret->target = keep_text(a, call->target);
    ret->content_type = keep_text(a, call->content_type);
    ret->method = keep_text(a, call->method);
    ret->path = keep_text(a, call->path);
    ret->query = keep_text(a, call->query);
    ret->bucket = keep_text(a, call->bucket);
    ret->payload_sha256 = keep_text(a, call->payload_sha256);
    ret->headers = headers;
    if (!call->body_borrow && call->body.n > 0) {
        char *body = arena_alloc(a, call->body.n);
        memcpy(body, call->body.p, call->body.n);
        ret->body.p = body;
    }
}
