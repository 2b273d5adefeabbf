/* Signatures: authorizations of any kind parse or not; a request made of the input verifies with
 * its secret and with no other. */
#include "common/cleanup.h"
#include "common/sigv4.h"
#include "fuzz.h"

#define NOW (INT64_C(1700000000) * USEC_PER_SEC)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, MIN(size, (size_t)16384)};
    struct sigv4_auth auth;
    (void)!sigv4_parse_authorization(rest, &auth, NULL);
    struct sigv4_header headers[] = {
        {STR("Host"), str_split(&rest, '\n')},
        {str_split(&rest, '\n'), str_split(&rest, '\n')},
    };
    struct sigv4_request r = {.headers = headers,
                              .headers_n = ARRAY_LEN(headers),
                              .payload_hash = STR(SIGV4_UNSIGNED_PAYLOAD),
                              .region = STR("us-east-1"),
                              .service = STR("s3")};
    r.method = str_split(&rest, '\n');
    r.path = str_split(&rest, '\n');
    r.query = rest;
    r.is_s3 = size % 2 == 0;
    if (str_find(headers[1].name, STR(",")) >= 0 || str_trim(headers[1].name).n == 0 ||
        str_trim(headers[1].name).n != headers[1].name.n) {
        return 0; /* not a header's name: it could not come back through the list of names */
    }
    struct aws_creds c = {.key_id = "AKID", .secret = "secret"};
    char date[17];
    AUTO_BUF struct buf out = BUF_INIT((size_t)1 << 20);
    sigv4_sign(&r, &c, NOW, date, &out);
    ASSERT(sigv4_parse_authorization(buf_str(&out), &auth, NULL));
    ASSERT(sigv4_verify(&r, &auth, "secret", date, NOW, USEC_PER_SEC, NULL));
    ASSERT(!sigv4_verify(&r, &auth, "Secret", date, NOW, USEC_PER_SEC, NULL));
    buf_reset(&out);
    sigv4_presign(&r, &c, NOW, 60, &out);
    ASSERT(!out.overflow && out.n > 64);
    return 0;
}
