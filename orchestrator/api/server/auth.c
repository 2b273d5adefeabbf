/* Who asks: bearer tokens "id.secret" (their SHA-256 is stored and compared in constant time), and
 * sessions of browsers: a random value in a HttpOnly cookie, of which the database has the SHA-256,
 * with a CSRF header that is an HMAC keyed by it. What was found is remembered for a few seconds,
 * which bounds how long a revoked one still works. */
#include "auth.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/rng.h"
#include "common/token_bucket.h"
#include "metrics.h"
#include "proxy_user.h"
#include "reply.h"
#include "request.h"
#include "router.h"
#include "routes.h"
#include "scope.h"
#include "server_state.h"
#include "session_cookie.h"
#include "store/api/tokens.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#define TOKEN_TEXT_MAX     160
#define SECRET_BYTES       32
#define CACHE_N            64
#define CACHE_US           (3 * USEC_PER_SEC)
#define FAILURES_FREE      10
#define FAILURES_PEERS     256
#define FAILURES_MAX_US    (60 * USEC_PER_SEC)
#define FAILURES_FORGET_US (600 * USEC_PER_SEC)
#define CSRF_HEADER        "X-Drover-CSRF"

#define KNOWN_KEY_MAX 72

struct known_token {
    char key[KNOWN_KEY_MAX]; /* "t:" and the token's id, or "s:" and a session's hash */
    bool to_note;            /* that it is used */
    uint8_t hash[32];        /* of the token's secret */
    struct api_principal who;
    int64_t read_us;
    struct token_bucket bucket;
};
struct peer_failures { /* failed attempts by one address */
    char peer[64];
    int n;
    int64_t until_us;
};
struct auth {
    pthread_mutex_t lock;
    int64_t rate_per_s, burst;
    int64_t forget_us; /* so long after the last one an address's failures are forgotten */
    bool secure_cookie;
    struct known_token known[CACHE_N];
    struct peer_failures failures[FAILURES_PEERS];
};
struct token_text {
    char id[API_TOKEN_ID_MAX + 1];
    char secret[TOKEN_TEXT_MAX];
};

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* "id.secret", both of [A-Za-z0-9_-]; secret at least 32 characters. */
static bool token_parse(struct str text, struct token_text *ret)
{
    memset(ret, 0, sizeof *ret);
    struct str secret = text;
    struct str id = str_split(&secret, '.');
    if (id.n < 1 || id.n > API_TOKEN_ID_MAX || secret.n < 32 || secret.n >= TOKEN_TEXT_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.n; i++) {
        if (!is_token_char(text.p[i]) && i != id.n) {
            return false;
        }
    }
    memcpy(ret->id, id.p, id.n);
    memcpy(ret->secret, secret.p, secret.n);
    return true;
}

/* Makes the folders of the path that are missing, for the owner alone. */
static bool make_parents(const char *path, struct err *err)
{
    AUTO_FREE char *folder = xstrdup(path);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
            return err_set_os(err, ERR_IO, errno, "cannot make the folder '%s' of the token file",
                              folder);
        }
        *slash = '/';
    }
    return true;
}

static bool token_file_make(const char *path, char text[static TOKEN_TEXT_MAX], struct err *err)
{
    uint8_t id[4], secret[SECRET_BYTES];
    rng_secret(id, sizeof id);
    rng_secret(secret, sizeof secret);
    char id_hex[2 * sizeof id + 1], secret_hex[2 * sizeof secret + 1];
    str_hex(id, sizeof id, id_hex);
    str_hex(secret, sizeof secret, secret_hex);
    int n = snprintf(text, TOKEN_TEXT_MAX, "admin-%s.%s", id_hex, secret_hex);
    if (!make_parents(path, err)) {
        return false;
    }
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot make the token file '%s'", path);
    }
    if (write(fd, text, (size_t)n) != n || write(fd, "\n", 1) != 1 || fsync(fd) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot write the token file '%s'", path);
    }
    log_event(LOG_INFO, "token_file_created", LF_S("file", path));
    return true;
}

static bool token_file_read(const char *path, char text[static TOKEN_TEXT_MAX], bool *ret_there,
                            struct err *err)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    *ret_there = fd >= 0;
    if (fd < 0) {
        return errno == ENOENT
                   ? true
                   : err_set_os(err, ERR_IO, errno, "cannot open the token file '%s'", path);
    }
    ssize_t n = read(fd, text, TOKEN_TEXT_MAX - 1);
    if (n < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot read the token file '%s'", path);
    }
    text[n] = '\0';
    struct stat st;
    if (fstat(fd, &st) == 0 && (st.st_mode & 077) != 0) {
        log_event(LOG_WARN, "token_file_open_to_others", LF_S("file", path));
    }
    return true;
}

bool auth_new(const struct api_config *cfg, struct store *db, struct auth **ret, struct err *err)
{
    struct auth *a = xcalloc(1, sizeof *a);
    (void)pthread_mutex_init(&a->lock, NULL);
    a->rate_per_s = cfg->rate_per_s;
    a->burst = cfg->burst > 0 ? cfg->burst : 2 * cfg->rate_per_s;
    a->secure_cookie = cfg->secure_cookie;
    a->forget_us = cfg->failures_forget_us > 0 ? cfg->failures_forget_us : FAILURES_FORGET_US;
    *ret = a;
    if (cfg->token_file == NULL) {
        return true;
    }
    char text[TOKEN_TEXT_MAX] = "";
    bool there;
    if (!token_file_read(cfg->token_file, text, &there, err) ||
        (!there && !token_file_make(cfg->token_file, text, err))) {
        return false;
    }
    struct token_text t;
    if (!token_parse(str_trim(str_of(text)), &t)) {
        return err_set(err, ERR_INVALID,
                       "token file '%s' does not hold a token (id.secret); remove it to get a new "
                       "one",
                       cfg->token_file);
    }
    uint8_t hash[32];
    hash_sha256(t.secret, strlen(t.secret), hash);
    struct apidb_token row;
    struct err why = ERR_INIT;
    if (!apidb_token_put(db, t.id, hash, "token file", err)) {
        return false;
    }
    if (!apidb_token_get(db, t.id, &row, &why)) {
        log_event(LOG_WARN, "token_file_revoked", LF_S("file", cfg->token_file),
                  LF_S("remedy", "remove the file and start again: a new token is made"));
    }
    return true;
}

void auth_free(struct auth *a)
{
    if (a != NULL) {
        (void)pthread_mutex_destroy(&a->lock);
        free(a);
    }
}

enum api_role role_parse(const char *s)
{
    return strcmp(s, "admin") == 0      ? API_ADMIN
           : strcmp(s, "operator") == 0 ? API_OPERATOR
                                        : API_VIEWER;
}

const char *role_name(enum api_role role)
{
    static const char *const names[] = {"public", "viewer", "operator", "admin"};
    return names[role];
}

/* The cached token if still fresh. Call with the lock held. */
static struct known_token *known_find(struct auth *a, const char *key, int64_t now)
{
    for (size_t i = 0; i < CACHE_N; i++) {
        if (strcmp(a->known[i].key, key) == 0 && now - a->known[i].read_us < CACHE_US) {
            return &a->known[i];
        }
    }
    return NULL;
}

static void known_put(struct auth *a, const struct known_token *t, int64_t now)
{
    struct known_token *to = &a->known[0];
    for (size_t i = 0; i < CACHE_N; i++) {
        if (strcmp(a->known[i].key, t->key) == 0) {
            to = &a->known[i];
            break;
        }
        if (a->known[i].read_us < to->read_us) {
            to = &a->known[i];
        }
    }
    struct token_bucket kept = to->bucket;
    bool same = strcmp(to->key, t->key) == 0;
    *to = *t;
    if (same) {
        to->bucket = kept;
    } else {
        token_bucket_init(&to->bucket, (double)a->rate_per_s, (double)a->burst, now);
    }
}

static bool known_read(struct auth *a, const char *key, struct known_token *ret)
{
    (void)pthread_mutex_lock(&a->lock);
    const struct known_token *k = known_find(a, key, clock_mono_us());
    bool found = k != NULL;
    if (found) {
        *ret = *k;
    }
    (void)pthread_mutex_unlock(&a->lock);
    return found;
}

static void known_write(struct auth *a, const struct known_token *t)
{
    (void)pthread_mutex_lock(&a->lock);
    known_put(a, t, t->read_us);
    (void)pthread_mutex_unlock(&a->lock);
}

void req_forget_tokens(struct api_req *r)
{
    struct auth *a = r->api->auth;
    (void)pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < CACHE_N; i++) {
        a->known[i].read_us = -CACHE_US;
    }
    (void)pthread_mutex_unlock(&a->lock);
}

/* The valid token of this id, from the cache or the database. */
static bool token_get(struct auth *a, struct api_req *r, const char *id, struct known_token *ret,
                      struct err *err)
{
    struct known_token t = {.read_us = clock_mono_us()};
    struct apidb_token row;
    (void)snprintf(t.key, sizeof t.key, "t:%s", id);
    if (known_read(a, t.key, ret)) {
        return true;
    }
    if (!req_db(r, err) || !apidb_token_get(r->db, id, &row, err)) {
        return false;
    }
    memcpy(t.who.token_id, id, strlen(id));
    memcpy(t.who.projects, row.projects, sizeof t.who.projects);
    memcpy(t.who.name, row.name, sizeof t.who.name);
    memcpy(t.hash, row.hash, sizeof t.hash);
    t.who.role = role_parse(row.role);
    t.to_note = row.to_note;
    known_write(a, &t);
    *ret = t;
    return true;
}

/* The live session of a cookie. */
static bool session_check(struct auth *a, struct api_req *r, const char *cookie,
                          struct known_token *ret, struct err *err)
{
    uint8_t hash[32];
    char hex[2 * sizeof hash + 1];
    struct known_token t = {.read_us = clock_mono_us()};
    struct apidb_session row;
    if (!session_hash(cookie, hash)) {
        return err_set(err, ERR_UNAUTHENTICATED, "the session is not valid; log in");
    }
    str_hex(hash, sizeof hash, hex);
    (void)snprintf(t.key, sizeof t.key, "s:%s", hex);
    if (known_read(a, t.key, ret)) {
        return true;
    }
    struct err why = ERR_INIT;
    if (!req_db(r, err)) {
        return false;
    }
    if (!apidb_session_get(r->db, hash, &row, &why)) {
        if (why.code == ERR_NOT_FOUND) {
            return err_set(err, ERR_UNAUTHENTICATED, "the session has ended; log in");
        }
        *err = why;
        return false;
    }
    memcpy(t.who.token_id, row.token_id, sizeof t.who.token_id);
    memcpy(t.who.projects, row.projects, sizeof t.who.projects);
    memcpy(t.who.name, row.name, sizeof t.who.name);
    t.who.session_id = row.id;
    t.who.role = role_parse(row.role);
    t.to_note = row.to_note;
    known_write(a, &t);
    *ret = t;
    return true;
}

static bool rate_ok(struct auth *a, const char *key, struct err *err)
{
    if (a->rate_per_s == 0) {
        return true;
    }
    int64_t now = clock_mono_us();
    (void)pthread_mutex_lock(&a->lock);
    struct known_token *k = known_find(a, key, now);
    bool ok = k == NULL || token_bucket_take(&k->bucket, now);
    (void)pthread_mutex_unlock(&a->lock);
    return ok ? true
              : err_set(err, ERR_THROTTLED, "more than %lld requests a second with this token",
                        (long long)a->rate_per_s);
}

/* Limit attempts from addresses that keep sending wrong tokens, except the loopback address. */
static bool peer_may_try(struct auth *a, const struct api_req *r, struct err *err)
{
    if (r->loopback) {
        return true;
    }
    int64_t now = clock_mono_us();
    bool ok = true;
    (void)pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < FAILURES_PEERS; i++) {
        ok &= strcmp(a->failures[i].peer, r->peer) != 0 || a->failures[i].until_us <= now;
    }
    (void)pthread_mutex_unlock(&a->lock);
    return ok ? true
              : err_set(err, ERR_THROTTLED,
                        "too many wrong tokens or logins from your address; try again later");
}

static void peer_failed(struct auth *a, const struct api_req *r)
{
    metric_add(METRIC_HTTP_LOGIN_FAILURES, 1);
    if (r->loopback) {
        return;
    }
    int64_t now = clock_mono_us();
    (void)pthread_mutex_lock(&a->lock);
    struct peer_failures *f = &a->failures[0];
    for (size_t i = 0; i < FAILURES_PEERS; i++) {
        if (strcmp(a->failures[i].peer, r->peer) == 0) {
            f = &a->failures[i];
            break;
        }
        if (a->failures[i].until_us < f->until_us) {
            f = &a->failures[i];
        }
    }
    if (strcmp(f->peer, r->peer) != 0) {
        *f = (struct peer_failures){0};
        memcpy(f->peer, r->peer, sizeof f->peer);
    }
    f->n = now - f->until_us > a->forget_us ? 1 : f->n + 1;
    int over = MIN(f->n - FAILURES_FREE, 6);
    f->until_us = now + (over > 0 ? MIN(USEC_PER_SEC << over, FAILURES_MAX_US) : 0);
    (void)pthread_mutex_unlock(&a->lock);
}

/* A browser's request must come from our own pages. */
static bool same_site(const struct api_req *r, const char *secret, struct err *err)
{
    const char *site = req_header(r, "Sec-Fetch-Site");
    if (site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0) {
        return err_set(err, ERR_FORBIDDEN, "the request comes from another site");
    }
    const char *origin = req_header(r, "Origin"), *host = req_header(r, "Host");
    if (origin != NULL) {
        const char *at = strstr(origin, "://");
        if (at == NULL || host == NULL || strcasecmp(at + 3, host) != 0) {
            return err_set(err, ERR_FORBIDDEN, "the request comes from another origin");
        }
    }
    if (strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0) {
        return true;
    }
    char want[65];
    session_csrf(secret, want);
    const char *got = req_header(r, CSRF_HEADER);
    if (got == NULL || strlen(got) != 64 || !hash_equal(got, want, 64)) {
        return err_set(err, ERR_FORBIDDEN,
                       "the " CSRF_HEADER " header is missing or wrong; log in");
    }
    return true;
}

/* True for a token that was good when it was last read, however long ago: its owner is not kept out
 * by others who guess behind the same address. That it still is good is looked up after this. */
static bool was_good(struct auth *a, const char *key, const uint8_t hash[static 32])
{
    bool good = false;
    (void)pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < CACHE_N; i++) {
        good |= strcmp(a->known[i].key, key) == 0 &&
                hash_equal(a->known[i].hash, hash, sizeof a->known[i].hash);
    }
    (void)pthread_mutex_unlock(&a->lock);
    return good;
}

/* From now on one that was revoked is as limited as any other wrong one. */
static void known_drop(struct auth *a, const char *key)
{
    (void)pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < CACHE_N; i++) {
        if (strcmp(a->known[i].key, key) == 0) {
            a->known[i] = (struct known_token){.read_us = -CACHE_US};
        }
    }
    (void)pthread_mutex_unlock(&a->lock);
}

static bool unknown_token(struct auth *a, const struct api_req *r, struct err *err)
{
    peer_failed(a, r);
    return err_set(err, ERR_UNAUTHENTICATED, "the token is not valid; see DROVER_TOKEN_FILE");
}

static bool token_check(struct auth *a, struct api_req *r, struct str text,
                        struct token_text *ret_text, struct known_token *ret, struct err *err)
{
    char key[KNOWN_KEY_MAX];
    uint8_t hash[32];
    bool parsed = token_parse(text, ret_text);
    (void)snprintf(key, sizeof key, "t:%s", ret_text->id);
    hash_sha256(ret_text->secret, strlen(ret_text->secret), hash);
    if (!(parsed && was_good(a, key, hash)) && !peer_may_try(a, r, err)) {
        return false;
    }
    if (!parsed) {
        return unknown_token(a, r, err);
    }
    struct err why = ERR_INIT;
    if (!token_get(a, r, ret_text->id, ret, &why)) {
        if (why.code == ERR_NOT_FOUND) {
            known_drop(a, key);
            return unknown_token(a, r, err);
        }
        *err = why;
        return false;
    }
    return hash_equal(hash, ret->hash, sizeof hash) ? true : unknown_token(a, r, err);
}

bool auth_token(struct api_req *r, struct str text, struct api_principal *ret, struct err *err)
{
    struct token_text t;
    struct known_token k;
    if (!token_check(r->api->auth, r, text, &t, &k, err)) {
        return false;
    }
    *ret = k.who;
    return true;
}

bool auth_may_try(const struct api_req *r, struct err *err)
{
    return peer_may_try(r->api->auth, r, err);
}

void auth_failed(const struct api_req *r)
{
    peer_failed(r->api->auth, r);
}

/* What the route takes; a dry run takes no more than reading does. */
static enum api_role role_needed(const struct api_req *r)
{
    const char *dry = req_query(r, "dry_run");
    bool reads = (r->route->flags & ROUTE_DRY_RUN) != 0 && dry != NULL && strcmp(dry, "true") == 0;
    return reads ? API_VIEWER : r->route->role;
}

/* By token or by session: fills *ret. */
static bool who_asks(struct auth *a, struct api_req *r, struct known_token *ret, struct err *err)
{
    const char *header = req_header(r, MHD_HTTP_HEADER_AUTHORIZATION);
    const char *cookie = MHD_lookup_connection_value(r->conn, MHD_COOKIE_KIND, SESSION_COOKIE);
    if (header != NULL) {
        struct token_text t;
        return strncasecmp(header, "Bearer ", 7) == 0
                   ? token_check(a, r, str_trim(str_of(header + 7)), &t, ret, err)
                   : err_set(err, ERR_UNAUTHENTICATED, "only Bearer tokens are accepted");
    }
    if (cookie == NULL) {
        return err_set(err, ERR_UNAUTHENTICATED,
                       "no token: send Authorization: Bearer, from DROVER_TOKEN_FILE");
    }
    r->by_cookie = true;
    return session_check(a, r, cookie, ret, err) && same_site(r, cookie, err) &&
           (proxy_user_fits(r, ret->who.token_id) ||
            err_set(err, ERR_UNAUTHENTICATED, "the session is another person's; log in"));
}

/* That it cannot be noted is no reason to refuse. */
static void note_use(struct auth *a, struct api_req *r, const struct known_token *k)
{
    struct err why = ERR_INIT;
    bool first = false;
    (void)pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < CACHE_N; i++) {
        if (strcmp(a->known[i].key, k->key) == 0) {
            first |= a->known[i].to_note;
            a->known[i].to_note = false;
        }
    }
    (void)pthread_mutex_unlock(&a->lock);
    if (first && r->db != NULL &&
        !apidb_token_used(r->db, k->who.token_id, k->who.session_id, &why)) {
        log_event(LOG_DEBUG, "token_use_not_noted", LF_S("token", k->who.token_id),
                  LF_S("problem", why.message));
    }
}

/* That r->who has the role and the project that the request takes. */
static bool may_ask(struct api_req *r, struct err *err)
{
    enum api_role needed = role_needed(r);
    if (r->who.role < needed) {
        return err_set(err, ERR_FORBIDDEN, "a token of role %s may not do that; it takes %s",
                       role_name(r->who.role), role_name(needed));
    }
    return scope_check(r, err);
}

bool auth_check(struct auth *a, struct api_req *r, struct err *err)
{
    struct known_token k;
    if (!who_asks(a, r, &k, err) || !rate_ok(a, k.key, err)) {
        return false;
    }
    r->who = k.who;
    note_use(a, r, &k);
    return may_ask(r, err);
}

bool auth_check_again(struct auth *a, struct api_req *r, struct err *err)
{
    struct known_token k;
    if (!who_asks(a, r, &k, err)) {
        return false;
    }
    r->who = k.who;
    return may_ask(r, err);
}
