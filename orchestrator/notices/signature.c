/* See signature.h. */
#include "signature.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include <inttypes.h>

#define SIGNED_BYTES_MAX ((size_t)1024 * 1024)

void signature_make(struct str secret, const char *id, int64_t timestamp_s, struct str body,
                    struct buf *ret)
{
    uint8_t mac[32];
    AUTO_BUF struct buf text = BUF_INIT(SIGNED_BYTES_MAX);
    buf_addf(&text, "%s.%" PRId64 ".", id, timestamp_s);
    buf_add_str(&text, body);
    ASSERT(!text.overflow);
    hash_hmac_sha256(secret.p, secret.n, text.p, text.n, mac);
    buf_add_cstr(ret, "v1,");
    str_base64(ret, mac, sizeof mac);
}
