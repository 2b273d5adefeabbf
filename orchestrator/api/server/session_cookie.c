/* See session_cookie.h. */
#include "session_cookie.h"
#include "common/hash.h"
#include "common/rng.h"
#include "server_state.h"

bool session_hash(const char *cookie, uint8_t ret[static 32])
{
    uint8_t raw[SESSION_HEX_N / 2];
    hash_sha256(cookie, strlen(cookie), ret);
    return str_unhex(str_of(cookie), raw, sizeof raw);
}

void session_csrf(const char *cookie, char out[static 65])
{
    uint8_t mac[32];
    hash_hmac_sha256(cookie, strlen(cookie), "drover csrf 1", 13, mac);
    str_hex(mac, sizeof mac, out);
}

void session_random(char ret[static SESSION_HEX_N + 1])
{
    uint8_t raw[SESSION_HEX_N / 2];
    rng_secret(raw, sizeof raw);
    str_hex(raw, sizeof raw, ret);
}

const char *session_cookie_secure(const struct api_req *r)
{
    return r->api->cfg.secure_cookie ? "; Secure" : "";
}
