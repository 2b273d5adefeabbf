/* A blocking request on a loop of its own, and what readers of a reply use. */
#include "common/http.h"

struct str http_reply_header(const struct http_reply *r, const char *name)
{
    struct str rest = buf_str(&r->headers);
    while (rest.n > 0) {
        struct str value = str_split(&rest, '\n');
        struct str key = str_split(&value, ':');
        if (str_ieq_cstr(key, name)) {
            return str_trim(value);
        }
    }
    return (struct str){"", 0};
}

struct http_fetch {
    struct http_reply reply;
    bool done;
};

static void on_fetched(void *ctx, const struct http_reply *reply)
{
    struct http_fetch *f = ctx;
    struct buf headers = BUF_INIT(reply->headers.max);
    struct buf body = BUF_INIT(reply->body.max);
    buf_add_str(&headers, buf_str(&reply->headers));
    buf_add_str(&body, buf_str(&reply->body));
    f->reply = *reply;
    f->reply.headers = headers;
    f->reply.body = body;
    f->done = true;
}

bool http_fetch(const struct http_request *req, struct http_reply *ret, struct err *err)
{
    struct loop *l = NULL;
    struct http *h = NULL;
    struct http_fetch f = {0};
    bool ok = loop_new(&l, err) && http_new(l, &h, err);
    if (ok) {
        (void)http_send(h, req, on_fetched, &f);
        while (!f.done) {
            loop_run_once(l, -1);
        }
        if (f.reply.ok) {
            *ret = f.reply;
        } else {
            if (err != NULL) {
                *err = f.reply.err;
            }
            http_reply_done(&f.reply);
            ok = false;
        }
    }
    http_free(h);
    loop_free(l);
    return ok;
}

void http_reply_done(struct http_reply *r)
{
    buf_done(&r->headers);
    buf_done(&r->body);
}
