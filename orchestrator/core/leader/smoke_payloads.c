/* See smoke_payloads.h. */
#include "smoke_payloads.h"
#include "common/json.h"
#include <string.h>

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

static const char *read_list(struct str body, struct payloads *ret)
{
    AUTO_JSON json_t *list = NULL;
    struct err err = ERR_INIT;
    size_t i;
    const json_t *v;
    if (!json_parse(body, SMOKE_LIST_BYTES_MAX, &list, &err) || !json_is_array(list) ||
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

const char *payloads_of_answer(enum aws_outcome outcome, struct str body, struct payloads *ret,
                               bool *ret_unread)
{
    ret->n = 0;
    *ret_unread = outcome != AWS_OK && outcome != AWS_REFUSED;
    return outcome == AWS_OK        ? read_list(body, ret)
           : outcome == AWS_REFUSED ? "smoke test: its payloads in S3 cannot be read"
                                    : NULL;
}
