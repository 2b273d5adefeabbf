/* Listings: any page is taken in whole or not at all; every key lies under the prefix, in bounds.
 */
#include "common/s3.h"
#include "common/s3_internal.h"
#include "fuzz.h"

#define KEYS_MAX 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct s3_uri u = {.bucket = "abc", .key = "p"};
    struct str rest = {(const char *)data, size};
    struct s3_pages p;
    s3_pages_init(&p, &u, KEYS_MAX);
    for (int page = 0; page < 4 && rest.n > 0 && !p.complete; page++) {
        struct str body = str_split(&rest, '\0');
        struct s3_result r = {.outcome = AWS_OK, .status = 200};
        size_t before_n = p.listing->n;
        bool ok = s3_pages_add(&p, body, &r);
        ASSERT(ok == (r.outcome == AWS_OK));
        ASSERT(ok || r.err.code != ERR_NONE);
        ASSERT(p.listing->n >= before_n && p.listing->n <= KEYS_MAX);
        if (!ok) {
            break;
        }
        struct buf query = BUF_INIT((size_t)32768);
        s3_pages_query(&p, &query);
        ASSERT(!query.overflow);
        buf_done(&query);
    }
    for (size_t i = 0; i < p.listing->n; i++) {
        struct str key = str_of(p.listing->objects[i].key);
        ASSERT(key.n > 0 && key.n <= 1024 && str_is_utf8(key) && key.p[0] == 'p');
        ASSERT(p.listing->objects[i].size >= 0);
    }
    s3_pages_done(&p);
    return 0;
}
