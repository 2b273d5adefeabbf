/* Tokens and browser sessions: list, make, let expire, revoke. */
#include "store/api/tokens.h"
#include "api/server/audit.h"
#include "api/server/auth.h"
#include "api/server/idempotency.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "api/server/scope.h"
#include "common/hash.h"
#include "common/rng.h"
#include "store/pg/tx.h"

#define LIVES_MAX_S (INT64_C(3650) * 86400)

static bool list_out(struct api_req *r, const char *what, const struct buf *rows)
{
    buf_addf(&r->out, "{\"%s\":%s}\n", what, buf_cstr(rows));
    return reply_out(r, 200);
}

bool tokens_get(struct api_req *r, struct err *err)
{
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    return req_db(r, err) && apidb_tokens(r->db, NULL, &rows, err) && list_out(r, "tokens", &rows);
}

static bool read_lives(const json_t *body, int64_t *ret, struct err *err)
{
    const char *text = json_string_value(json_object_get(body, "expires_in"));
    if (text == NULL) {
        return true;
    }
    return parse_duration_s(str_of(text), 1, LIVES_MAX_S, ret, err) ||
           err_wrap(err, "expires_in: write 12h or 30d");
}

static bool token_read(const json_t *body, struct apidb_token_new *t, struct err *err)
{
    size_t i;
    const json_t *one, *role = json_object_get(body, "role");
    t->name = json_string_value(json_object_get(body, "name"));
    t->role = role != NULL ? json_string_value(role) : "viewer";
    json_array_foreach(json_object_get(body, "projects"), i, one)
    {
        ASSERT(t->projects_n < TOKEN_PROJECTS_MAX);
        t->projects[t->projects_n++] = json_string_value(one);
    }
    return read_lives(body, &t->lives_s, err);
}

/* The ETag of a token's row: of all but its last member, when it was used. */
static const char *tag_of(struct api_req *r, const struct buf *rows)
{
    const char *used = strstr(buf_cstr(rows), "\"used_at\"");
    size_t n = used != NULL ? (size_t)(used - rows->p) : rows->n;
    return arena_printf(&r->arena, "\"k%08x\"", hash_crc32(rows->p, n));
}

static bool if_match(struct api_req *r, const char *id, struct err *err)
{
    const char *match = req_header(r, MHD_HTTP_HEADER_IF_MATCH);
    AUTO_BUF struct buf rows = BUF_INIT(4096);
    return strcmp(match, "*") == 0 ||
           (apidb_tokens(r->db, id, &rows, err) &&
            (rows.n <= 2 || strcmp(match, tag_of(r, &rows)) == 0 || /* "[]": there is none */
             err_set(err, ERR_PRECONDITION, "the token has changed since; read it again")));
}

/* The secret is in this answer and nowhere else: only its hash is kept. */
bool tokens_post(struct api_req *r, struct err *err)
{
    const json_t *body = req_json(r);
    struct apidb_token_new t = {.by = r->who.token_id};
    uint8_t raw[36], hash[32];
    char id[9], secret[65];
    bool replayed;
    CLEANUP(keyed_end)
    struct keyed k = {0};
    if (!token_read(body, &t, err) || !req_db(r, err) ||
        !keyed_begin(r, false, &k, &replayed, err)) {
        return false;
    }
    if (replayed) {
        return keyed_told(r, "revoke it", err);
    }
    rng_secret(raw, sizeof raw);
    str_hex(raw, 4, id);
    str_hex(raw + 4, 32, secret);
    hash_sha256(secret, strlen(secret), hash);
    t.id = arena_printf(&r->arena, "%s-%s", t.role, id);
    t.hash = hash;
    AUTO_TX struct store *tx = r->db;
    AUTO_FREE char *detail = json_text(body);
    AUTO_BUF struct buf rows = BUF_INIT(4096);
    const char *location = arena_printf(&r->arena, "/v1/tokens/%s", t.id);
    r->status = 201;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_token_new(tx, &t, err) ||
        !apidb_tokens(tx, t.id, &rows, err) || !keyed_store_secret(&k, t.id, location, err) ||
        !req_audit(r, "token.make", t.id, detail, err) || !tx_commit(tx, err)) {
        return false;
    }
    ASSERT(rows.n > 4); /* "[{...}]" */
    buf_addf(&r->out, "{\"token\":\"%s.%s\",%.*s\n", t.id, secret, (int)rows.n - 3, rows.p + 2);
    reply_header(r, MHD_HTTP_HEADER_LOCATION, "%s", location);
    reply_header(r, MHD_HTTP_HEADER_ETAG, "%s", tag_of(r, &rows));
    return reply_out(r, 201);
}

/* That member of a token, as an object; rows: a JSON list of one token. */
static char *member_of(const struct buf *rows, const char *name)
{
    AUTO_JSON json_t *list = json_loads(buf_cstr(rows), 0, NULL);
    json_t *v = json_object_get(json_array_get(list, 0), name);
    AUTO_JSON json_t *one = json_pack("{s:O?}", name, v);
    return json_text(one);
}

static bool token_change(struct api_req *r, bool revoke, int64_t lives_s, const char *action,
                         struct err *err)
{
    const char *id = arena_strndup(&r->arena, r->params[0].p, r->params[0].n);
    AUTO_TX struct store *tx = r->db;
    AUTO_BUF struct buf rows = BUF_INIT(4096);
    AUTO_BUF struct buf was = BUF_INIT(4096);
    const char *changed = revoke ? "state" : "expires_at";
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_token_lock(tx, id, err) ||
        (!revoke && !if_match(r, id, err)) || !apidb_tokens(tx, id, &was, err) ||
        !apidb_token_change(tx, id, revoke, lives_s, err) || !apidb_tokens(tx, id, &rows, err)) {
        return false;
    }
    AUTO_FREE char *before = member_of(&was, changed);
    AUTO_FREE char *after = member_of(&rows, changed);
    if (!req_audit_both(r, action, id, before, after, err) || !tx_commit(tx, err)) {
        return false;
    }
    req_forget_tokens(r);
    buf_addf(&r->out, "%.*s\n", (int)rows.n - 2, rows.p + 1);
    reply_header(r, MHD_HTTP_HEADER_ETAG, "%s", tag_of(r, &rows));
    return reply_out(r, 200);
}

bool token_patch(struct api_req *r, struct err *err)
{
    int64_t lives_s = -1;
    return read_lives(req_json(r), &lives_s, err) && req_db(r, err) &&
           token_change(r, false, lives_s, "token.expire", err);
}

bool token_delete(struct api_req *r, struct err *err)
{
    return req_db(r, err) && token_change(r, true, -1, "token.revoke", err);
}

/* Everybody's for an admin of every project, else one's own. */
static const char *whose(const struct api_req *r)
{
    bool all = r->who.role == API_ADMIN && r->who.projects[0] == '\0';
    return all ? NULL : r->who.token_id;
}

bool sessions_get(struct api_req *r, struct err *err)
{
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    return req_db(r, err) && apidb_sessions(r->db, whose(r), r->who.session_id, &rows, err) &&
           list_out(r, "sessions", &rows);
}

bool session_delete(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    if (!req_db(r, err) || !apidb_session_end(r->db, id, NULL, whose(r), err)) {
        return false;
    }
    req_forget_tokens(r);
    return reply_json(r, 200, STR("{}"));
}
