/* See sign_in.h. A login begins with a random value in a cookie of the browser. Its state, its
 * nonce and its verifier are HMACs keyed by that value, so the database keeps no secret of it: only
 * that it has begun, by the hash of the value, until it ends, once. */
#include "sign_in.h"
#include "audit.h"
#include "auth.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/rng.h"
#include "common/token_bucket.h"
#include "html.h"
#include "proxy_user.h"
#include "reply.h"
#include "routes.h"
#include "server_state.h"
#include "sessions.h"
#include "store/api/logins.h"
#include "store/pg/tx.h"
#include <pthread.h>

#define LOGIN_COOKIE   "drover_login"
#define LOGIN_PATH     "/login/oidc"
#define URL_BYTES      1000 /* of a header */
#define AUDITS_PER_S   1.0  /* rows of refused logins; the rest is only counted */
#define AUDITS_AT_ONCE 60.0

struct sign_in {
    struct sign_in_config cfg;
    struct oidc *oidc; /* NULL: no provider */
    pthread_mutex_t lock;
    struct token_bucket audits;
};

struct sign_in *sign_in_new(const struct sign_in_config *cfg)
{
    struct sign_in *s = xcalloc(1, sizeof *s);
    s->cfg = *cfg;
    s->oidc = cfg->oidc.issuer != NULL ? oidc_new(&cfg->oidc) : NULL;
    (void)pthread_mutex_init(&s->lock, NULL);
    token_bucket_init(&s->audits, AUDITS_PER_S, AUDITS_AT_ONCE, clock_mono_us());
    return s;
}

void sign_in_free(struct sign_in *s)
{
    if (s != NULL) {
        oidc_free(s->oidc);
        (void)pthread_mutex_destroy(&s->lock);
        free(s);
    }
}

static void way_out(struct json_out *w, const char *kind, const char *name, const char *path)
{
    json_out_object(w, NULL);
    json_out_str(w, "kind", kind);
    json_out_str(w, "name", name);
    json_out_str(w, "path", path);
    json_out_end_object(w);
}

bool login_ways(struct api_req *r, struct err *err)
{
    const struct sign_in *s = r->api->sign_in;
    struct json_out w;
    (void)err;
    json_out_init(&w, &r->out);
    json_out_object(&w, NULL);
    json_out_array(&w, "ways");
    if (proxy_user(r) != NULL) {
        way_out(&w, "proxy", proxy_user(r), "/login/proxy");
    }
    if (s->oidc != NULL) {
        way_out(&w, "oidc", s->cfg.name, LOGIN_PATH);
    }
    json_out_end_array(&w);
    json_out_end_object(&w);
    buf_add_char(&r->out, '\n');
    return reply_out(r, 200);
}

static bool redirect(struct api_req *r, const char *to)
{
    buf_reset(&r->out);
    reply_header(r, MHD_HTTP_HEADER_LOCATION, "%s", to);
    r->status = 303;
    r->content_type = "text/html; charset=utf-8";
    return true;
}

static bool refused_audit(struct api_req *r, const struct err *why, struct err *err)
{
    struct sign_in *s = r->api->sign_in;
    (void)pthread_mutex_lock(&s->lock);
    bool may = token_bucket_take(&s->audits, clock_mono_us());
    (void)pthread_mutex_unlock(&s->lock);
    if (!may) {
        return true;
    }
    AUTO_BUF struct buf detail = BUF_INIT(8192);
    struct json_out w;
    json_out_init(&w, &detail);
    json_out_object(&w, NULL);
    json_out_str(&w, "reason", why->message);
    json_out_str(&w, "address", r->peer);
    json_out_end_object(&w);
    return req_db(r, err) && req_audit(r, "token.login_refused", "", buf_cstr(&detail), err);
}

/* A page for browsers, problem+json for programs. */
static bool refused_page(struct api_req *r, const struct err *why)
{
    const char *accept = req_header(r, MHD_HTTP_HEADER_ACCEPT);
    if (accept == NULL || strstr(accept, "text/html") == NULL) {
        return false;
    }
    buf_reset(&r->out);
    html_begin(&r->out, "You are not signed in");
    buf_add_cstr(&r->out, "<p>");
    html_text(&r->out, why->message);
    buf_addf(&r->out,
             "</p>\n<p><a href=\"/\">Back to the login</a></p>\n<p>Request %s, error "
             "<a href=\"/problems/%s\">%s</a></p>\n",
             r->request_id, err_code_name(why->code), err_code_name(why->code));
    html_end(&r->out);
    r->status = err_code_http(why->code);
    r->content_type = "text/html; charset=utf-8";
    return true;
}

/* Of a login that ended here. True: a page is the answer. */
static bool refused(struct api_req *r, const struct err *why)
{
    struct err err = ERR_INIT;
    bool theirs = why->code == ERR_UNAUTHENTICATED || why->code == ERR_FORBIDDEN;
    if (theirs) {
        auth_failed(r);
    }
    log_event(LOG_WARN, "login_refused", LF_S("request_id", r->request_id), LF_S("peer", r->peer),
              LF_ERR(why));
    if (why->code != ERR_THROTTLED && !refused_audit(r, why, &err)) {
        log_event(LOG_WARN, "login_refusal_not_audited", LF_S("request_id", r->request_id),
                  LF_ERR(&err));
    }
    return refused_page(r, why);
}

static void derive(const char *cookie, const char *what, char out[static SESSION_HEX_N + 1])
{
    uint8_t mac[32];
    hash_hmac_sha256(cookie, strlen(cookie), what, strlen(what), mac);
    str_hex(mac, sizeof mac, out);
}

static bool no_provider(struct err *err)
{
    return err_set(err, ERR_NOT_FOUND,
                   "no provider of logins is set up; an admin does so by oidc_issuer");
}

static bool begin(struct api_req *r, struct err *err)
{
    struct sign_in *s = r->api->sign_in;
    const char *return_to = req_query(r, "return_to");
    char cookie[SESSION_HEX_N + 1], state[SESSION_HEX_N + 1], nonce[SESSION_HEX_N + 1];
    char verifier[SESSION_HEX_N + 1];
    uint8_t hash[32];
    AUTO_BUF struct buf url = BUF_INIT(URL_BYTES);
    session_random(cookie);
    (void)session_hash(cookie, hash);
    derive(cookie, "drover login state", state);
    derive(cookie, "drover login nonce", nonce);
    derive(cookie, "drover login verifier", verifier);
    if (!auth_may_try(r, err) || !oidc_begin(s->oidc, state, nonce, verifier, &url, err) ||
        !req_db(r, err) ||
        !apidb_login_begin(r->db, hash, return_to != NULL ? return_to : "/", r->peer, err)) {
        return false;
    }
    reply_header(r, MHD_HTTP_HEADER_SET_COOKIE,
                 LOGIN_COOKIE "=%s; HttpOnly; SameSite=Lax; Path=" LOGIN_PATH "; Max-Age=%d%s",
                 cookie, LOGIN_LIVES_S, session_cookie_secure(r));
    return redirect(r, buf_cstr(&url));
}

bool oidc_login(struct api_req *r, struct err *err)
{
    if (r->api->sign_in->oidc == NULL) {
        return no_provider(err);
    }
    return begin(r, err) || refused_page(r, err);
}

/* The answer belongs to a login of this browser, and the provider let the person in. */
static bool answer_check(const struct api_req *r, const char *cookie, struct err *err)
{
    const char *state = req_query(r, "state"), *error = req_query(r, "error");
    const char *text = req_query(r, "error_description"), *iss = req_query(r, "iss");
    char want[SESSION_HEX_N + 1];
    if (cookie == NULL || strlen(cookie) != SESSION_HEX_N) {
        return err_set(err, ERR_UNAUTHENTICATED,
                       "no login has begun in this browser, or it has taken more than %d minutes",
                       LOGIN_LIVES_S / 60);
    }
    derive(cookie, "drover login state", want);
    if (state == NULL || strlen(state) != SESSION_HEX_N ||
        !hash_equal(state, want, SESSION_HEX_N)) {
        return err_set(err, ERR_UNAUTHENTICATED, "the answer is of another login (state)");
    }
    if (iss != NULL && strcmp(iss, r->api->sign_in->cfg.oidc.issuer) != 0) {
        return err_set(err, ERR_UNAUTHENTICATED, "the answer is of another provider (iss)");
    }
    if (error != NULL) {
        return err_set(err, ERR_FORBIDDEN, "the provider refuses: %.64s%s%.200s", error,
                       text != NULL ? ": " : "", text != NULL ? text : "");
    }
    return req_query(r, "code") != NULL ||
           err_set(err, ERR_UNAUTHENTICATED, "the provider gave no code");
}

static bool person_session(struct api_req *r, const struct person *p, const char *by,
                           struct err *err)
{
    uint8_t secret[32]; /* the hash of a token that is never made */
    struct apidb_token_new t = {.id = p->id,
                                .role = p->role,
                                .name = p->name,
                                .by = by,
                                .hash = secret,
                                .projects_n = p->projects_n};
    char cookie[SESSION_HEX_N + 1];
    AUTO_TX struct store *tx = r->db;
    rng_secret(secret, sizeof secret);
    AUTO_BUF struct buf detail = BUF_INIT(8192);
    struct json_out w;
    json_out_init(&w, &detail);
    json_out_object(&w, NULL);
    json_out_str(&w, "name", p->name);
    json_out_str(&w, "role", p->role);
    json_out_array(&w, "projects");
    for (size_t i = 0; i < p->projects_n; i++) {
        t.projects[i] = p->projects[i];
        json_out_str(&w, NULL, p->projects[i]);
    }
    json_out_end_array(&w);
    json_out_str(&w, "address", r->peer);
    json_out_end_object(&w);
    memcpy(r->who.token_id, p->id, strlen(p->id) + 1); /* for the audit */
    r->who.role = role_parse(p->role);
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_person_put(tx, &t, err) ||
        !session_begin(r, p->id, cookie, err) ||
        !req_audit(r, "token.login", p->id, buf_cstr(&detail), err) || !tx_commit(tx, err)) {
        return false;
    }
    req_forget_tokens(r);
    return true;
}

static bool end(struct api_req *r, char return_to[static LOGIN_RETURN_TEXT], struct err *err)
{
    struct sign_in *s = r->api->sign_in;
    const char *cookie = MHD_lookup_connection_value(r->conn, MHD_COOKIE_KIND, LOGIN_COOKIE);
    char nonce[SESSION_HEX_N + 1], verifier[SESSION_HEX_N + 1];
    uint8_t hash[32];
    struct person person;
    AUTO_JSON json_t *claims = NULL;
    if (!auth_may_try(r, err) || !answer_check(r, cookie, err) || !req_db(r, err)) {
        return false;
    }
    (void)session_hash(cookie, hash);
    if (!apidb_login_end(r->db, hash, return_to, err)) {
        if (err->code == ERR_NOT_FOUND) {
            err->code = ERR_UNAUTHENTICATED;
        }
        return false;
    }
    derive(cookie, "drover login nonce", nonce);
    derive(cookie, "drover login verifier", verifier);
    return oidc_end(s->oidc, req_query(r, "code"), verifier, nonce, &claims, err) &&
           person_read(&s->cfg.rules, s->cfg.oidc.issuer, claims, &person, err) &&
           person_session(r, &person, "oidc", err);
}

bool oidc_callback(struct api_req *r, struct err *err)
{
    char return_to[LOGIN_RETURN_TEXT];
    if (r->api->sign_in->oidc == NULL) {
        return no_provider(err);
    }
    bool ok = end(r, return_to, err);
    if (!ok) {
        r->headers_n = 0; /* no session was begun */
        r->who = (struct api_principal){.session_id = 0};
    }
    reply_header(r, MHD_HTTP_HEADER_SET_COOKIE,
                 LOGIN_COOKIE "=; HttpOnly; SameSite=Lax; Path=" LOGIN_PATH "; Max-Age=0");
    return ok ? redirect(r, return_to) : refused(r, err);
}

static bool by_proxy(struct api_req *r, struct err *err)
{
    const struct sign_in_config *cfg = &r->api->sign_in->cfg;
    const struct person_rules rules = {
        .role_claim = PROXY_CLAIM, .roles = cfg->rules.roles, .projects_claim = ""};
    struct person person;
    AUTO_JSON json_t *claims = NULL;
    return auth_may_try(r, err) && proxy_user_claims(r, &claims, err) &&
           person_read(&rules, PROXY_ISSUER, claims, &person, err) && req_db(r, err) &&
           person_session(r, &person, "proxy", err);
}

/* A session for whom the proxy says it is; from then on it is one as any other. */
bool proxy_login(struct api_req *r, struct err *err)
{
    const char *return_to = req_query(r, "return_to");
    if (!r->by_proxy) {
        return err_set(err, ERR_NOT_FOUND, "nobody signs in here but by the proxy's socket");
    }
    if (by_proxy(r, err)) {
        return redirect(r, return_to != NULL ? return_to : "/");
    }
    r->headers_n = 0;
    r->who = (struct api_principal){.session_id = 0};
    return refused(r, err);
}
