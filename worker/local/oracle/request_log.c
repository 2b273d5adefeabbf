/* Requests for the judges of tests: see request_log.h. */
#include "request_log.h"
#include "common/json.h"
#include "local/http/request.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>

#define LINE_MAX_B ((size_t)48 << 20) /* six times a body: each byte may be escaped */

bool request_log_open(struct request_log *l, const char *root, struct err *err)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/requests.log", root);
    l->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    return l->fd >= 0 || err_set_os(err, ERR_IO, errno, "cannot open '%s'", path);
}

void request_log_close(struct request_log *l)
{
    fd_closep(&l->fd);
}

static void add_text(struct buf *b, const char *key, struct str text)
{
    buf_addf(b, ",\"%s\":", key);
    json_escape(b, str_is_utf8(text) ? text : STR("?"), false);
}

static bool named(const struct header *h, const char *name)
{
    return h->name.n == strlen(name) && strncasecmp(h->name.p, name, h->name.n) == 0;
}

static void add_headers(struct buf *b, const struct request *r)
{
    bool first = true;
    buf_add_cstr(b, ",\"headers\":{");
    for (size_t i = 0; i < r->headers_n; i++) {
        const struct header *h = &r->headers[i];
        if (named(h, "authorization") || named(h, "x-amz-security-token") ||
            !str_is_utf8(h->name) || !str_is_utf8(h->value)) {
            continue;
        }
        buf_add_cstr(b, first ? "" : ",");
        json_escape(b, h->name, false);
        buf_add_cstr(b, ":");
        json_escape(b, h->value, false);
        first = false;
    }
    buf_add_cstr(b, "}");
}

void request_log_write(const struct request_log *l, const struct request *r)
{
    if (l->fd < 0 || r->service[0] == '\0' || strcmp(r->service, "metadata") == 0) {
        return;
    }
    AUTO_BUF struct buf b = BUF_INIT(LINE_MAX_B);
    buf_addf(&b, "{\"service\":\"%s\",\"operation\":\"%s\",\"status\":%d", r->service, r->operation,
             r->reply.status);
    add_text(&b, "error", str_of(r->reply.error));
    if (r->input != NULL) {
        AUTO_FREE char *text = json_dumps(r->input, JSON_COMPACT);
        buf_add_cstr(&b, ",\"body\":");
        buf_add_cstr(&b, text != NULL ? text : "null");
    } else {
        buf_addf(&b, ",\"method\":\"%s\"", r->method);
        add_text(&b, "uri", str_of(r->uri));
        add_headers(&b, r);
        bool own = strcmp(r->operation, "InvokeEndpoint") == 0;
        add_text(&b, "text", own ? STR("") : buf_str(&r->body));
    }
    buf_add_cstr(&b, "}\n");
    if (!b.overflow) {
        (void)!write(l->fd, b.p, b.n);
    }
}
