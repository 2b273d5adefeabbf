/* Tokens and browser sessions: list, make, let expire, revoke. */
#include "store/api/tokens.h"
#include "api/server/audit.h"
#include "api/server/auth.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "api/server/scope.h"
#include "common/hash.h"
#include "common/rng.h"
#include "store/pg/tx.h"

#define LIVES_MAX_S (INT64_C(3650) * 86400)
#define NAME_MAX_N  64

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
    const char *text;
    if (!json_get_str(body, "expires_in", NULL, &text, err)) {
        return false;
    }
    if (text == NULL) {
        return true;
    }
    return parse_duration_s(str_of(text), 1, LIVES_MAX_S, ret, err) ||
           err_wrap(err, "expires_in: write 12h or 30d");
}

static bool read_projects(const json_t *body, struct apidb_token_new *t, struct err *err)
{
    json_t *list, *one;
    size_t i;
    if (!json_get_array(body, "projects", &list, err)) {
        return false;
    }
    if (list != NULL &&
        (json_array_size(list) == 0 || json_array_size(list) > TOKEN_PROJECTS_MAX)) {
        return err_set(err, ERR_INVALID, "projects: 1 to %d names; without it, every project",
                       TOKEN_PROJECTS_MAX);
    }
    json_array_foreach(list, i, one)
    {
        const char *name = json_string_value(one);
        if (name == NULL || name[0] == '\0' || strlen(name) > NAME_MAX_N ||
            strchr(name, ',') != NULL) {
            return err_set(err, ERR_INVALID, "projects[%zu]: write the name of a project", i);
        }
        t->projects[t->projects_n++] = name;
    }
    return true;
}

static bool token_read(const json_t *body, struct apidb_token_new *t, struct err *err)
{
    static const char *const keys[] = {"name", "role", "projects", "expires_in", NULL};
    if (!json_only_keys(body, keys, err) || !json_get_required_str(body, "name", &t->name, err) ||
        !json_get_str(body, "role", "viewer", &t->role, err) ||
        !read_lives(body, &t->lives_s, err) || !read_projects(body, t, err)) {
        return false;
    }
    if (t->name[0] == '\0' || strlen(t->name) > NAME_MAX_N) {
        return err_set(err, ERR_INVALID, "name: 1 to %d bytes", NAME_MAX_N);
    }
    if (strcmp(t->role, "viewer") != 0 && strcmp(t->role, "operator") != 0 &&
        strcmp(t->role, "admin") != 0) {
        return err_set(err, ERR_INVALID, "role: viewer, operator or admin");
    }
    return true;
}

/* The secret is in this answer and nowhere else: only its hash is kept. */
bool tokens_post(struct api_req *r, struct err *err)
{
    AUTO_JSON json_t *body = NULL;
    struct apidb_token_new t = {.by = r->who.token_id};
    uint8_t raw[36], hash[32];
    char id[9], secret[65];
    if (!req_json(r, &body, err) || !token_read(body, &t, err) || !req_db(r, err)) {
        return false;
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
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_token_new(tx, &t, err) ||
        !apidb_tokens(tx, t.id, &rows, err) || !req_audit(r, "token.make", t.id, detail, err) ||
        !tx_commit(tx, err)) {
        return false;
    }
    ASSERT(rows.n > 4); /* "[{...}]" */
    buf_addf(&r->out, "{\"token\":\"%s.%s\",%.*s\n", t.id, secret, (int)rows.n - 3, rows.p + 2);
    reply_header(r, MHD_HTTP_HEADER_LOCATION, "/v1/tokens/%s", t.id);
    return reply_out(r, 201);
}

static bool token_change(struct api_req *r, bool revoke, int64_t lives_s, const char *action,
                         struct err *err)
{
    const char *id = arena_strndup(&r->arena, r->params[0].p, r->params[0].n);
    AUTO_TX struct store *tx = r->db;
    AUTO_BUF struct buf rows = BUF_INIT(4096);
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_token_change(tx, id, revoke, lives_s, err) ||
        !apidb_tokens(tx, id, &rows, err) || !req_audit(r, action, id, "{}", err) ||
        !tx_commit(tx, err)) {
        return false;
    }
    req_forget_tokens(r);
    buf_addf(&r->out, "%.*s\n", (int)rows.n - 2, rows.p + 1);
    return reply_out(r, 200);
}

bool token_patch(struct api_req *r, struct err *err)
{
    static const char *const keys[] = {"expires_in", NULL};
    AUTO_JSON json_t *body = NULL;
    int64_t lives_s = -1;
    if (!req_json(r, &body, err) || !json_only_keys(body, keys, err) ||
        !read_lives(body, &lives_s, err) || !req_db(r, err)) {
        return false;
    }
    return lives_s > 0 ? token_change(r, false, lives_s, "token.expire", err)
                       : err_set(err, ERR_INVALID, "expires_in: write 12h or 30d");
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
    return req_db(r, err) && apidb_sessions(r->db, whose(r), &rows, err) &&
           list_out(r, "sessions", &rows);
}

bool session_delete(struct api_req *r, struct err *err)
{
    int64_t id;
    if (!req_id(r, 0, "s-", &id, err) || !req_db(r, err) ||
        !apidb_session_end(r->db, id, NULL, whose(r), err)) {
        return false;
    }
    req_forget_tokens(r);
    return reply_json(r, 200, STR("{}"));
}
