/* Error answers: any headers and body decode to texts that are whole, bounded and UTF-8 when the
 * body was, and never class as done or refused without a code. */
#include "common/aws.h"
#include "common/aws_error.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    struct http_reply r = {.ok = true, .status = 200 + data[0] * 2};
    struct str rest = {(const char *)data + 2, size - 2};
    buf_init(&r.headers, 65536);
    buf_init(&r.body, 65536);
    buf_add_str(&r.headers, str_split(&rest, '\0'));
    buf_add_str(&r.body, rest);
    struct aws_error e;
    aws_error_decode(&r, data[1] % 2 == 0, &e);
    ASSERT(strlen(e.code) < sizeof e.code);
    ASSERT(strlen(e.message) < sizeof e.message);
    ASSERT(!str_is_utf8(rest) || str_is_utf8(str_of(e.message)));
    enum aws_outcome o = aws_classify(r.status, e.code, e.message);
    ASSERT(o != AWS_UNSENT);
    ASSERT(o != AWS_OK || r.status < 300);
    ASSERT(o != AWS_REFUSED || (e.code[0] != '\0' && r.status < 500));
    int64_t pause_us = aws_error_retry_after_us(&r);
    ASSERT(pause_us >= 0 && pause_us <= AWS_RETRY_AFTER_MAX_US);
    (void)aws_error_is_xml(rest);
    http_reply_done(&r);
    return 0;
}
