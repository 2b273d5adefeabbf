/* Reading a request in handlers. */
#include "request.h"
#include "common/clock.h"
#include "server_state.h"

const char *req_header(const struct api_req *r, const char *name)
{
    return MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, name);
}

const char *req_query(const struct api_req *r, const char *name)
{
    return MHD_lookup_connection_value(r->conn, MHD_GET_ARGUMENT_KIND, name);
}

bool req_query_i64(const struct api_req *r, const char *name, int64_t min, int64_t max,
                   int64_t dflt, int64_t *ret, struct err *err)
{
    const char *v = req_query(r, name);
    if (v == NULL) {
        *ret = dflt;
        return true;
    }
    return parse_i64(str_of(v), min, max, ret, err) ||
           err_set(err, ERR_MALFORMED, "query parameter '%s': a whole number from %lld to %lld",
                   name, (long long)min, (long long)max);
}

bool req_query_bool(const struct api_req *r, const char *name, bool *ret, struct err *err)
{
    const char *v = req_query(r, name);
    if (v == NULL || strcmp(v, "false") == 0) {
        *ret = false;
        return true;
    }
    if (strcmp(v, "true") != 0) {
        return err_set(err, ERR_MALFORMED, "query parameter '%s': true or false", name);
    }
    *ret = true;
    return true;
}

bool req_id(const struct api_req *r, int i, const char *prefix, int64_t *ret, struct err *err)
{
    struct str s = r->params[i];
    size_t n = strlen(prefix);
    struct str digits = {s.p + n, s.n - n};
    if (s.n <= n || memcmp(s.p, prefix, n) != 0 || digits.p[0] == '-' ||
        !parse_i64(digits, 0, INT64_MAX, ret, NULL)) {
        return err_set(err, ERR_NOT_FOUND, "'%.64s' is not an id; they look like %s1",
                       arena_strndup((struct arena *)(uintptr_t)&r->arena, s.p, MIN(s.n, 64)),
                       prefix[0] == '\0' ? "" : prefix);
    }
    return true;
}

bool req_json(const struct api_req *r, json_t **ret, struct err *err)
{
    struct str text = str_trim(buf_str(&r->body));
    if (text.n == 0) {
        *ret = json_object();
        return true;
    }
    const char *type = req_header(r, MHD_HTTP_HEADER_CONTENT_TYPE);
    if (type != NULL && strncmp(type, "application/json", 16) != 0) {
        return err_set(err, ERR_MEDIA_TYPE,
                       "content type '%.64s' is not accepted here; send "
                       "application/json",
                       type);
    }
    AUTO_JSON json_t *v = NULL;
    if (!json_parse(text, API_BODY_MAX, &v, err)) {
        return false;
    }
    if (!json_is_object(v)) {
        return err_set(err, ERR_MALFORMED, "the body must be a JSON object");
    }
    *ret = TAKE(v);
    return true;
}

bool req_no_body(const struct api_req *r, struct err *err)
{
    static const char *const no_keys[] = {NULL};
    AUTO_JSON json_t *body = NULL;
    return req_json(r, &body, err) && json_only_keys(body, no_keys, err);
}

bool req_db(struct api_req *r, struct err *err)
{
    if (r->db != NULL && store_alive(r->db)) {
        return true;
    }
    store_close(r->db);
    r->db = NULL;
    return store_open(r->api->cfg.conninfo, STORE_API, &r->db, err);
}

bool req_bridge(struct api_req *r, const struct bridge_question *q, int64_t timeout_us,
                struct bridge_reply *ret, struct err *err)
{
    struct api *a = r->api;
    bool ok = atomic_fetch_add(&a->asking, 1) < MAX(a->threads / 2, 1);
    ok = ok ? bridge_ask(a->bridge, q, timeout_us, ret, err)
            : err_set(err, ERR_UNAVAILABLE, "too many requests wait for AWS; try again");
    (void)atomic_fetch_sub(&a->asking, 1);
    return ok;
}

const struct api_config *req_config(const struct api_req *r)
{
    return &r->api->cfg;
}

struct response_cache *req_answers(const struct api_req *r)
{
    return r->api->answers;
}

usec_t req_server_started_us(const struct api_req *r)
{
    return r->api->started_us;
}
