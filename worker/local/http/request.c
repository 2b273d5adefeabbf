/* Life of a request and the shapes of answers: JSON 1.1 errors, S3's and STS' XML errors. */
#include "request.h"
#include "common/clock.h"
#include "common/xml.h"
#include "local/app.h"
#include "upload.h"
#include <stdarg.h>
#include <stdio.h>

#define REPLY_HEADERS_MAX 16384

struct request *request_new(struct app *app, const char *uri)
{
    struct request *r = xcalloc(1, sizeof *r);
    r->app = app;
    r->arrival = clock_wall_us();
    r->uri = xstrdup(uri);
    r->service = "";
    r->operation = "";
    const char *q = strchr(r->uri, '?');
    r->path = (struct str){r->uri, q != NULL ? (size_t)(q - r->uri) : strlen(r->uri)};
    r->query = q != NULL ? str_of(q + 1) : (struct str){"", 0};
    buf_init(&r->body, REQUEST_BODY_BYTES_MAX);
    buf_init(&r->reply.body, REPLY_BODY_BYTES_MAX);
    buf_init(&r->reply.headers, REPLY_HEADERS_MAX);
    r->reply.fd = -1;
    return r;
}

void request_free(struct request *r)
{
    if (r == NULL) {
        return;
    }
    upload_free(r->upload);
    json_decref(r->input);
    buf_done(&r->body);
    buf_done(&r->reply.body);
    buf_done(&r->reply.headers);
    fd_closep(&r->reply.fd);
    free(r->uri);
    free(r->forward_to);
    free(r);
}

struct str request_header(const struct request *r, const char *name)
{
    for (size_t i = 0; i < r->headers_n; i++) {
        if (str_ieq_cstr(r->headers[i].name, name)) {
            return r->headers[i].value;
        }
    }
    return (struct str){NULL, 0};
}

static bool query_find(const struct request *r, const char *name, struct str *ret)
{
    struct str rest = r->query;
    while (rest.n > 0) {
        struct str item = str_split(&rest, '&');
        struct str key = str_split(&item, '=');
        if (str_eq_cstr(key, name)) {
            *ret = item;
            return true;
        }
    }
    return false;
}

bool request_query(const struct request *r, const char *name, struct buf *out)
{
    struct str v;
    buf_reset(out);
    return query_find(r, name, &v) && str_url_decode(out, v, true);
}

bool request_has_query(const struct request *r, const char *name)
{
    struct str v;
    return query_find(r, name, &v);
}

bool request_form(const struct request *r, const char *name, struct buf *out)
{
    struct str rest = buf_str(&r->body);
    while (rest.n > 0) {
        struct str value = str_split(&rest, '&');
        struct str key = str_split(&value, '=');
        if (str_eq_cstr(key, name)) {
            return str_url_decode(out, value, true) && !out->overflow;
        }
    }
    return false;
}

bool request_is_query(const struct request *r)
{
    bool cloudwatch = strcmp(r->service, "monitoring") == 0;
    return strcmp(r->service, "sts") == 0 || strcmp(r->service, "ec2") == 0 ||
           (cloudwatch && request_header(r, "x-amz-target").p == NULL);
}

/* CloudWatch and SQS speak JSON 1.0, the others 1.1. */
static const char *type_of_json(const struct request *r)
{
    bool old = strcmp(r->service, "monitoring") == 0 || strcmp(r->service, "sqs") == 0;
    return old ? "application/x-amz-json-1.0" : "application/x-amz-json-1.1";
}

void reply_header(struct request *r, const char *name, const char *value)
{
    buf_add(&r->reply.headers, name, strlen(name) + 1);
    buf_add(&r->reply.headers, value, strlen(value) + 1);
}

void reply_json(struct request *r, json_t *take)
{
    char *text = json_dumps(take, JSON_COMPACT | JSON_REAL_PRECISION(16));
    json_decref(take);
    ASSERT(text != NULL);
    r->reply.status = 200;
    r->reply.content_type = type_of_json(r);
    buf_reset(&r->reply.body);
    buf_add_cstr(&r->reply.body, text);
    free(text);
}

void reply_xml(struct request *r)
{
    r->reply.status = 200;
    r->reply.content_type = strcmp(r->service, "s3") == 0 ? "application/xml" : "text/xml";
}

static void error_xml(struct request *r, const char *code, const char *message)
{
    struct buf *b = &r->reply.body;
    bool s3 = strcmp(r->service, "s3") == 0;
    char id[24];
    (void)snprintf(id, sizeof id, "%016llX", (unsigned long long)r->id);
    buf_add_cstr(b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    if (strcmp(r->service, "ec2") == 0) {
        buf_addf(b, "<Response><Errors><Error><Code>%s</Code><Message>", code);
        xml_escape(b, str_of(message));
        buf_addf(b, "</Message></Error></Errors><RequestID>%s</RequestID></Response>", id);
        return;
    }
    if (!s3) {
        buf_add_cstr(b, "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">");
    }
    buf_addf(b, "<Error>%s<Code>%s</Code><Message>", s3 ? "" : "<Type>Sender</Type>", code);
    xml_escape(b, str_of(message));
    buf_add_cstr(b, "</Message>");
    if (s3) {
        buf_add_cstr(b, "<Resource>");
        xml_escape(b, r->path);
        buf_addf(b, "</Resource><RequestId>%s</RequestId><HostId>drover-local</HostId></Error>",
                 id);
    } else {
        buf_addf(b, "</Error><RequestId>%s</RequestId></ErrorResponse>", id);
    }
}

void reply_error(struct request *r, int status, const char *code, const char *fmt, ...)
{
    char message[ERROR_TEXT_BYTES_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    fd_closep(&r->reply.fd);
    r->reply.fd = -1;
    r->reply.status = status;
    (void)snprintf(r->reply.error, sizeof r->reply.error, "%s", code);
    buf_reset(&r->reply.body);
    if (strcmp(r->service, "s3") == 0 || request_is_query(r)) {
        error_xml(r, code, message);
        r->reply.content_type = strcmp(r->service, "s3") == 0 ? "application/xml" : "text/xml";
        return;
    }
    bool capital = strcmp(r->service, "sagemaker") == 0;
    AUTO_JSON json_t *o =
        json_pack("{s:s, s:s}", "__type", code, capital ? "Message" : "message", message);
    if (o == NULL) { /* the text was cut inside a character */
        o = json_pack("{s:s}", "__type", code);
    }
    AUTO_FREE char *text = json_text(o);
    buf_add_cstr(&r->reply.body, text);
    r->reply.content_type = type_of_json(r);
}
