/* Log in with a token, log out, who asks; see sessions.h. */
#include "sessions.h"
#include "auth.h"
#include "reply.h"
#include "routes.h"
#include "session_cookie.h"
#include "store/api/tokens.h"

#define MAX_AGE_S (12 * 3600)

bool session_begin(struct api_req *r, const char *token_id,
                   char ret_cookie[static SESSION_HEX_N + 1], struct err *err)
{
    uint8_t hash[32];
    session_random(ret_cookie);
    (void)session_hash(ret_cookie, hash);
    if (!apidb_session_new(r->db, hash, token_id, MAX_AGE_S, r->peer, err)) {
        return false;
    }
    reply_header(r, MHD_HTTP_HEADER_SET_COOKIE,
                 SESSION_COOKIE "=%s; HttpOnly; SameSite=Strict; Path=/; Max-Age=%d%s", ret_cookie,
                 MAX_AGE_S, session_cookie_secure(r));
    return true;
}

static bool session_answer(struct api_req *r, const struct api_principal *who, const char *cookie)
{
    char csrf[65] = "";
    if (cookie != NULL) {
        session_csrf(cookie, csrf);
    }
    AUTO_BUF struct buf b = BUF_INIT(4096);
    struct json_out w;
    json_out_init(&w, &b);
    json_out_object(&w, NULL);
    json_out_str(&w, "token_id", who->token_id);
    json_out_str(&w, "name", who->name);
    json_out_str(&w, "role", role_name(who->role));
    json_out_str(&w, "projects", who->projects[0] != '\0' ? who->projects : NULL);
    json_out_str(&w, "csrf", cookie != NULL ? csrf : NULL);
    json_out_end_object(&w);
    return reply_json(r, 200, buf_str(&b));
}

bool auth_login(struct api_req *r, struct err *err)
{
    const char *token = json_string_value(json_object_get(req_json(r), "token"));
    const char *site = req_header(r, "Sec-Fetch-Site");
    if (site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0) {
        return err_set(err, ERR_FORBIDDEN, "the request comes from another site");
    }
    struct api_principal who;
    char cookie[SESSION_HEX_N + 1];
    return auth_token(r, str_trim(str_of(token)), &who, err) && req_db(r, err) &&
           session_begin(r, who.token_id, cookie, err) && session_answer(r, &who, cookie);
}

bool auth_logout(struct api_req *r, struct err *err)
{
    const char *cookie = MHD_lookup_connection_value(r->conn, MHD_COOKIE_KIND, SESSION_COOKIE);
    uint8_t hash[32];
    struct err why = ERR_INIT;
    if (cookie != NULL && session_hash(cookie, hash)) {
        if (!req_db(r, err)) {
            return false;
        }
        if (!apidb_session_end(r->db, 0, hash, NULL, &why) && why.code != ERR_NOT_FOUND) {
            *err = why;
            return false;
        }
        req_forget_tokens(r);
    }
    reply_header(r, MHD_HTTP_HEADER_SET_COOKIE,
                 SESSION_COOKIE "=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    return reply_json(r, 200, STR("{}"));
}

/* For a reloaded page: it has its cookie but not its CSRF value. */
bool auth_session(struct api_req *r, struct err *err)
{
    (void)err;
    const char *cookie = MHD_lookup_connection_value(r->conn, MHD_COOKIE_KIND, SESSION_COOKIE);
    return session_answer(r, &r->who, r->by_cookie ? cookie : NULL);
}
