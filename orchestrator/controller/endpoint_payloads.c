/* See endpoint_payloads.h. */
#include "endpoint_payloads.h"
#include "common/json.h"
#include <stdio.h>

#define LIST_BYTES_MAX (SPEC_PAYLOADS_MAX * (SPEC_PAYLOAD_BYTES_MAX + 64))

struct payload_read {
    payloads_cb cb; /* NULL: nobody waits any more */
    void *ctx;
};

void payloads_done(struct payloads *p)
{
    for (int i = 0; i < p->n; i++) {
        free(p->text[i]);
    }
    p->n = 0;
}

void payloads_of_file(const struct spec_endpoint *e, struct payloads *ret)
{
    ret->n = e->payloads_n;
    for (int i = 0; i < e->payloads_n; i++) {
        ret->text[i] = xstrdup(e->payloads[i]);
    }
}

/* A text is sent as it is, anything else as JSON. NULL: a good list. */
static const char *read_list(struct str body, struct payloads *ret)
{
    AUTO_JSON json_t *list = NULL;
    struct err err = ERR_INIT;
    size_t i;
    const json_t *v;
    if (!json_parse(body, LIST_BYTES_MAX, &list, &err) || !json_is_array(list) ||
        json_array_size(list) == 0 || json_array_size(list) > SPEC_PAYLOADS_MAX) {
        return "smoke test: its payloads in S3 are no JSON list of 1 to 100";
    }
    json_array_foreach(list, i, v)
    {
        char *text = json_is_string(v) ? xstrdup(json_string_value(v)) : json_text(v);
        ret->text[ret->n++] = text;
        if (strlen(text) > SPEC_PAYLOAD_BYTES_MAX) {
            return "smoke test: a payload in S3 is longer than 4,096 bytes";
        }
    }
    return NULL;
}

static void on_object(void *ctx, const struct s3_result *r)
{
    struct payload_read *read = ctx;
    struct payloads p = {.n = 0};
    if (read->cb != NULL) {
        bool refused = r->outcome == AWS_REFUSED;
        const char *fault = r->outcome == AWS_OK ? read_list(r->body, &p)
                            : refused            ? "smoke test: its payloads in S3 cannot be read"
                                                 : NULL;
        read->cb(read->ctx, &p, fault, r->outcome != AWS_OK && !refused);
        payloads_done(&p);
    }
    free(read);
}

struct payload_read *payload_read_start(struct aws_client *c, const char *uri, payloads_cb cb,
                                        void *ctx)
{
    struct payload_read *read = xcalloc(1, sizeof *read);
    struct s3_uri at;
    struct err err = ERR_INIT;
    *read = (struct payload_read){cb, ctx};
    ASSERT(s3_parse_uri(str_of(uri), &at, &err)); /* the file was checked */
    s3_get(c, &at, 0, -1, LIST_BYTES_MAX, on_object, read);
    return read;
}

void payload_cancel(struct payload_read *r)
{
    if (r != NULL) {
        r->cb = NULL;
    }
}
