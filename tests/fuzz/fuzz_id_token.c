/* ID tokens and key sets of a provider of logins: what is taken is signed by a key of the set and
 * says what was expected. The input is a token, or, when it begins with a brace, a set of keys that
 * a good token is checked with. */
#include "common/cleanup.h"
#include "fuzz.h"
#include "oidc/id_token.h"

static const char keys_text[] =
    "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"up5Vars8RliBSYjPdaNui-M_xS8Z5YT2e76Tp27t4ZmMyDTQtMLW"
    "qztaow1W0rwBmpds22fs-DzfIO0FdyOnCdFtRk9XdjyUWuv3RkFkOaZNrzxB1eAPXVuE4kpJudPFtUIE5ZZq7sqP"
    "YWPIpXWk44kSnDLNvt57DlBQkPhotxS_aqloBoPdFmNdpTn1Hbyr4_62d2S7nXi2GUo9XPMV2QryDMhDWb9HUjFD"
    "8hcnBdtDZLCXoOyRFW4cVZbTX0FMlmiL6zRGPzMf_wNEQ-FHGkhq_udh3HEk-nodRisj3ztPPVHtn8GlOfK7U7lI"
    "D-OVVlrHdQcsUOL6eb6143OXPQ\",\"e\":\"AQAB\",\"kid\":\"rsa-1\",\"use\":\"sig\",\"alg\":\""
    "RS256\"},{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"B2jgwQi5wGbPEeWAnJdcojqUyAuMnIveS5AQI"
    "tZGRhE\",\"y\":\"IIfo7Ue0IidniHvKwwIVxMAgYbD24s_RHUuG4m1-cYM\",\"kid\":\"ec-1\",\"use\":"
    "\"sig\",\"alg\":\"ES256\"}]}";
static const char good_token[] =
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYS0xIn0.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUuY29tIiwi"
    "c3ViIjoidS0xIiwiYXVkIjoiZHJvdmVyIiwiZXhwIjoxODAwMDAwMzAwLCJpYXQiOjE4MDAwMDAwMDAsIm5vbmNl"
    "Ijoibi0xIn0.LDmx1jKUI8CbsKPuwFMxcA_wolDzI9l5VXmEfqCjmVzns46HpKkeJ3G88cI9c9gOyc9DwgxAY-q4"
    "83QVEDieRVQ94sXHWcNOjUC-FEkOLkZAfnLTf1la_wDupQqkBTy-XPMiiOaMzSdAJwjwC838XYckULLp31kivnNx"
    "aQfVweO6qDdRuqoxBiNIaWLzYLVnOKL6MYVjemPfsD-0-yDw22xiv8PrXgiCWTviCbT6wIQfxZ9Nb63BV6Xs6MAM"
    "DgFh1k-qgHKVSDDclMTeFflPyPevnz-z9YIOOJXaAph3H1ibk-JithYloxMX6CmZKveO9hbAWJzRDxz0aWPECzRF"
    "cA";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct id_token_expected expected = {.issuer = "https://login.example.com",
                                               .client_id = "drover",
                                               .nonce = "n-1",
                                               .now_us = INT64_C(1800000060) * USEC_PER_SEC};
    struct str in = {(const char *)data, size};
    struct err err = ERR_INIT;
    bool of_keys = size > 0 && data[0] == '{', unknown_key;
    AUTO_JSON json_t *keys = NULL;
    AUTO_JSON json_t *claims = NULL;
    if (!json_parse(of_keys ? in : str_of(keys_text), 65536, &keys, &err) ||
        !id_token_check(of_keys ? str_of(good_token) : in, keys, &expected, &unknown_key, &claims,
                        &err)) {
        ASSERT(err.message[0] != '\0' && claims == NULL && !str_eq_cstr(in, good_token));
        return 0;
    }
    ASSERT(strcmp(json_string_value(json_object_get(claims, "iss")), expected.issuer) == 0);
    ASSERT(strcmp(json_string_value(json_object_get(claims, "nonce")), expected.nonce) == 0);
    return 0;
}
