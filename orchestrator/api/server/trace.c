/* See trace.h. */
#include "trace.h"
#include "common/rng.h"

static bool is_hex(const char *p, size_t n)
{
    return strspn(p, "0123456789abcdef") >= n;
}

/* "00-" and the ids of trace and parent, neither of them all zeros, and the flags. */
static bool is_traceparent(const char *v)
{
    return strlen(v) == API_TRACEPARENT_N && strncmp(v, "00-", 3) == 0 && is_hex(v + 3, 32) &&
           v[35] == '-' && is_hex(v + 36, 16) && v[52] == '-' && is_hex(v + 53, 2) &&
           strspn(v + 3, "0") < 32 && strspn(v + 36, "0") < 16;
}

void trace_request(struct api_req *r)
{
    static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const char *given = req_header(r, "X-Request-Id"), *parent = req_header(r, "traceparent");
    size_t n = given != NULL ? strlen(given) : 0;
    if (n > 0 && n <= API_REQUEST_ID_MAX && strspn(given, word) == n) {
        memcpy(r->request_id, given, n + 1);
    } else {
        uint8_t id[16];
        rng_secret(id, sizeof id);
        str_hex(id, sizeof id, r->request_id);
    }
    if (parent != NULL && is_traceparent(parent)) {
        memcpy(r->traceparent, parent, API_TRACEPARENT_N + 1);
    }
}
