/* See endpoint_payloads.h. */
#include "endpoint_payloads.h"

struct payload_read {
    payloads_cb cb; /* NULL: nobody waits any more */
    void *ctx;
};

static void on_object(void *ctx, const struct s3_result *r)
{
    struct payload_read *read = ctx;
    struct payloads p = {.n = 0};
    if (read->cb != NULL) {
        bool unread;
        const char *fault = payloads_of_answer(r->outcome, r->body, &p, &unread);
        read->cb(read->ctx, &p, fault, unread);
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
    s3_get(c, &at, 0, -1, SMOKE_LIST_BYTES_MAX, on_object, read);
    return read;
}

void payload_cancel(struct payload_read *r)
{
    if (r != NULL) {
        r->cb = NULL;
    }
}
