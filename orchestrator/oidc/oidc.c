/* See oidc.h. One lock: who needs a document that another thread is asking for waits for it, and
 * for its failure, which counts for a few seconds. */
#include "oidc.h"
#include "ask.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "id_token.h"
#include <cjose/base64.h>
#include <pthread.h>

#define URL_MAX       512
#define KEYS_PAUSE_US (30 * USEC_PER_SEC) /* between two readings for unknown keys */
#define FAILED_US     (15 * USEC_PER_SEC)

struct oidc {
    struct oidc_config cfg;
    pthread_mutex_t lock;
    char *authorize_url, *token_url, *keys_url; /* of the discovery document; NULL: not read */
    bool secret_in_body;                        /* the provider takes no other way */
    json_t *jwks;                               /* NULL: not read */
    int64_t discovered_us, keys_us, keys_asked_us, failed_us; /* monotonic */
    struct err failure;
};

struct oidc *oidc_new(const struct oidc_config *cfg)
{
    struct oidc *o = xcalloc(1, sizeof *o);
    o->cfg = *cfg;
    (void)pthread_mutex_init(&o->lock, NULL);
    o->failed_us = o->keys_asked_us = INT64_MIN / 2;
    return o;
}

static void forget(struct oidc *o)
{
    free(TAKE(o->authorize_url));
    free(TAKE(o->token_url));
    free(TAKE(o->keys_url));
}

void oidc_free(struct oidc *o)
{
    if (o == NULL) {
        return;
    }
    forget(o);
    json_decref(o->jwks);
    (void)pthread_mutex_destroy(&o->lock);
    free(o);
}

static bool get_document(const struct oidc *o, const char *url, json_t **ret, struct err *err)
{
    int status;
    if (!ask_json(&o->cfg, url, NULL, NULL, &status, ret, err)) {
        return false;
    }
    if (status != 200) {
        json_decref(TAKE(*ret));
        return err_set(err, ERR_UNAVAILABLE, "the provider of logins answers %s with status %d",
                       url, status);
    }
    return true;
}

static bool is_url(const char *url)
{
    return url != NULL && strlen(url) <= URL_MAX && strpbrk(url, " \"<>\\#") == NULL &&
           (strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0);
}

bool oidc_issuer_check(const char *issuer, struct err *err)
{
    return (is_url(issuer) && strchr(issuer, '?') == NULL) ||
           err_set(err, ERR_INVALID,
                   "oidc_issuer '%.80s': write https://login.example.com/realm, as the provider's "
                   "discovery document says it",
                   issuer);
}

/* Only by http where the issuer is, too. */
static bool url_of(const struct oidc *o, const json_t *document, const char *key, char **ret,
                   struct err *err)
{
    const char *url = json_string_value(json_object_get(document, key));
    bool plain = strncmp(o->cfg.issuer, "http:", 5) == 0;
    if (!is_url(url) || (!plain && strncmp(url, "https:", 6) != 0)) {
        return err_set(err, ERR_UNAVAILABLE,
                       "the discovery document of %s has no usable %s; it must be https",
                       o->cfg.issuer, key);
    }
    *ret = xstrdup(url);
    return true;
}

static bool lists(const json_t *document, const char *key, const char *want)
{
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(document, key), i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), want) == 0) {
            return true;
        }
    }
    return false;
}

static bool document_read(struct oidc *o, struct err *err)
{
    size_t n = strlen(o->cfg.issuer);
    bool slash = n > 0 && o->cfg.issuer[n - 1] == '/';
    AUTO_FREE char *url =
        xasprintf("%s%s.well-known/openid-configuration", o->cfg.issuer, slash ? "" : "/");
    AUTO_JSON json_t *document = NULL;
    if (!get_document(o, url, &document, err)) {
        return false;
    }
    const char *issuer = json_string_value(json_object_get(document, "issuer"));
    if (issuer == NULL || strcmp(issuer, o->cfg.issuer) != 0) {
        return err_set(err, ERR_UNAVAILABLE,
                       "the discovery document at %s is of the issuer '%.200s': write that as "
                       "oidc_issuer, or correct it",
                       url, issuer != NULL ? issuer : "");
    }
    static const char methods[] = "token_endpoint_auth_methods_supported";
    o->secret_in_body = json_object_get(document, methods) != NULL &&
                        !lists(document, methods, "client_secret_basic");
    forget(o);
    bool ok = url_of(o, document, "authorization_endpoint", &o->authorize_url, err) &&
              url_of(o, document, "token_endpoint", &o->token_url, err) &&
              url_of(o, document, "jwks_uri", &o->keys_url, err);
    if (!ok) {
        forget(o);
    }
    return ok;
}

/* When it cannot be read again, what was read before stays good. */
static bool discover(struct oidc *o, struct err *err)
{
    int64_t now = clock_mono_us();
    if (o->keys_url != NULL && now - o->discovered_us < o->cfg.keep_us) {
        return true;
    }
    if (now - o->failed_us < FAILED_US) {
        *err = o->failure;
        return false;
    }
    if (!document_read(o, err)) {
        o->failed_us = clock_mono_us();
        o->failure = *err;
        if (log_allow("oidc_discovery_failed")) {
            log_event(LOG_WARN, "oidc_discovery_failed", LF_S("issuer", o->cfg.issuer),
                      LF_ERR(err));
        }
        o->discovered_us = now - o->cfg.keep_us + FAILED_US;
        return o->keys_url != NULL;
    }
    o->discovered_us = now;
    return true;
}

static bool keys_read(struct oidc *o, struct err *err)
{
    json_t *jwks = NULL;
    if (!get_document(o, o->keys_url, &jwks, err)) {
        if (log_allow("oidc_keys_failed")) {
            log_event(LOG_WARN, "oidc_keys_failed", LF_S("issuer", o->cfg.issuer), LF_ERR(err));
        }
        return false;
    }
    json_decref(o->jwks);
    o->jwks = jwks;
    o->keys_us = clock_mono_us();
    return true;
}

static bool keys_fresh(struct oidc *o, struct err *err)
{
    if ((o->jwks != NULL && clock_mono_us() - o->keys_us < o->cfg.keep_us) || keys_read(o, err)) {
        return true;
    }
    o->keys_us = clock_mono_us() - o->cfg.keep_us + FAILED_US;
    return o->jwks != NULL;
}

/* A token with a key that is not known yet makes the keys be read again, but not often: tokens that
 * people make up name any key. */
static bool token_check(struct oidc *o, struct str token, const char *nonce, json_t **ret_claims,
                        struct err *err)
{
    const struct id_token_expected expected = {.issuer = o->cfg.issuer,
                                               .client_id = o->cfg.client_id,
                                               .nonce = nonce,
                                               .now_us = clock_wall_us()};
    bool unknown_key;
    if (!keys_fresh(o, err)) {
        return false;
    }
    bool ok = id_token_check(token, o->jwks, &expected, &unknown_key, ret_claims, err);
    if (!unknown_key || clock_mono_us() - o->keys_asked_us < KEYS_PAUSE_US) {
        return ok;
    }
    o->keys_asked_us = clock_mono_us();
    return keys_read(o, err) &&
           id_token_check(token, o->jwks, &expected, &unknown_key, ret_claims, err);
}

static void add_field(struct buf *b, const char *key, const char *value)
{
    char last = b->n > 0 ? b->p[b->n - 1] : '?';
    buf_addf(b, "%s%s=", last == '?' || last == '&' ? "" : "&", key);
    str_url_encode(b, str_of(value), false);
}

/* RFC 7636: S256. */
static void add_challenge(struct buf *b, const char *verifier)
{
    uint8_t hash[32];
    char *text = NULL;
    size_t n = 0;
    cjose_err why = {.code = CJOSE_ERR_NONE};
    hash_sha256(verifier, strlen(verifier), hash);
    bool ok = cjose_base64url_encode(hash, sizeof hash, &text, &n, &why);
    ASSERT(ok);
    add_field(b, "code_challenge", text);
    free(text);
}

bool oidc_begin(struct oidc *o, const char *state, const char *nonce, const char *verifier,
                struct buf *ret_url, struct err *err)
{
    (void)pthread_mutex_lock(&o->lock);
    bool ok = discover(o, err);
    if (ok) {
        buf_add_cstr(ret_url, o->authorize_url);
    }
    (void)pthread_mutex_unlock(&o->lock);
    if (!ok) {
        return false;
    }
    buf_add_cstr(ret_url, strchr(buf_cstr(ret_url), '?') == NULL ? "?" : "");
    add_field(ret_url, "response_type", "code");
    add_field(ret_url, "client_id", o->cfg.client_id);
    add_field(ret_url, "redirect_uri", o->cfg.redirect_url);
    add_field(ret_url, "scope", o->cfg.scopes);
    add_field(ret_url, "state", state);
    add_field(ret_url, "nonce", nonce);
    add_challenge(ret_url, verifier);
    add_field(ret_url, "code_challenge_method", "S256");
    return !ret_url->overflow ||
           err_set(err, ERR_INVALID, "the address of the provider's login is too long");
}

/* RFC 6749, 2.3.1: both are encoded as a form's before they are joined. The caller frees it. */
static char *basic_of(const struct oidc_config *cfg)
{
    AUTO_BUF struct buf both = BUF_INIT(8192);
    AUTO_BUF struct buf text = BUF_INIT(16384);
    str_url_encode(&both, str_of(cfg->client_id), false);
    buf_add_char(&both, ':');
    str_url_encode(&both, str_of(cfg->client_secret), false);
    buf_add_cstr(&text, "Basic ");
    str_base64(&text, both.p, both.n);
    return buf_take(&text);
}

/* The ID token that the provider gives for a code, in *ret_answer. */
static bool exchange(const struct oidc *o, const char *url, bool secret_in_body, const char *code,
                     const char *verifier, json_t **ret_answer, struct err *err)
{
    AUTO_BUF struct buf form = BUF_INIT(16384);
    int status;
    bool secret = o->cfg.client_secret != NULL;
    add_field(&form, "grant_type", "authorization_code");
    add_field(&form, "code", code);
    add_field(&form, "redirect_uri", o->cfg.redirect_url);
    add_field(&form, "code_verifier", verifier);
    if (!secret || secret_in_body) {
        add_field(&form, "client_id", o->cfg.client_id);
    }
    if (secret && secret_in_body) {
        add_field(&form, "client_secret", o->cfg.client_secret);
    }
    AUTO_FREE char *basic = secret && !secret_in_body ? basic_of(&o->cfg) : NULL;
    if (!ask_json(&o->cfg, url, buf_cstr(&form), basic, &status, ret_answer, err)) {
        return false;
    }
    const char *why = json_string_value(json_object_get(*ret_answer, "error"));
    if (status != 200) {
        return err_set(err, ERR_UNAUTHENTICATED,
                       "the provider refused the code with status %d: %.64s", status,
                       why != NULL ? why : "it does not say why");
    }
    return true;
}

bool oidc_end(struct oidc *o, const char *code, const char *verifier, const char *nonce,
              json_t **ret_claims, struct err *err)
{
    AUTO_JSON json_t *answer = NULL;
    AUTO_FREE char *url = NULL;
    bool secret_in_body = false;
    (void)pthread_mutex_lock(&o->lock);
    bool ok = discover(o, err);
    if (ok) {
        url = xstrdup(o->token_url);
        secret_in_body = o->secret_in_body;
    }
    (void)pthread_mutex_unlock(&o->lock);
    if (!ok || !exchange(o, url, secret_in_body, code, verifier, &answer, err)) {
        return false;
    }
    const char *token = json_string_value(json_object_get(answer, "id_token"));
    if (token == NULL) {
        return err_set(err, ERR_UNAUTHENTICATED,
                       "the provider gave no ID token; is 'openid' in oidc_scopes?");
    }
    (void)pthread_mutex_lock(&o->lock);
    ok = token_check(o, str_of(token), nonce, ret_claims, err);
    (void)pthread_mutex_unlock(&o->lock);
    return ok;
}
