/* What the smoke test of an endpoint sends: payloads of the campaign file, or of a list in S3.
 * Pure. */
#pragma once
#include "common/aws_outcome.h"
#include "common/str.h"
#include "core/spec/spec.h"

#define SMOKE_LIST_BYTES_MAX (SPEC_PAYLOADS_MAX * (SPEC_PAYLOAD_BYTES_MAX + 64))

struct payloads { /* malloc'd texts */
    char *text[SPEC_PAYLOADS_MAX];
    int n;
};
void payloads_done(struct payloads *p);
/* Those of the file itself, copied. */
void payloads_of_file(const struct spec_endpoint *e, struct payloads *ret);
/* The answer to a GET of the list. A text of it is sent as it is, anything else as JSON. Returns
 * NULL, or what is wrong with the list, for people; *ret is to be done in any case. *ret_unread: S3
 * did not answer, so the list is asked for again. */
const char *payloads_of_answer(enum aws_outcome outcome, struct str body, struct payloads *ret,
                               bool *ret_unread);
