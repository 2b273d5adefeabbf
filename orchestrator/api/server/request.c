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

const json_t *req_json(const struct api_req *r)
{
    ASSERT(r->json != NULL);
    return r->json;
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

/* The caller takes it off a->asking again in any case. */
static bool ask_begin(struct api *a, struct err *err)
{
    return atomic_fetch_add(&a->asking, 1) < MAX(a->threads / 2, 1) ||
           err_set(err, ERR_UNAVAILABLE, "too many requests wait for AWS; try again");
}

bool req_bridge(struct api_req *r, const struct bridge_question *q, int64_t timeout_us,
                struct bridge_reply *ret, struct err *err)
{
    bool ok = ask_begin(r->api, err) && bridge_ask(r->api->bridge, q, timeout_us, ret, err);
    (void)atomic_fetch_sub(&r->api->asking, 1);
    return ok;
}

enum bridge_turn req_bridge_look(struct api_req *r, const struct bridge_question *q,
                                 int64_t timeout_us, struct bridge_reply *ret,
                                 struct bridge_progress *ret_progress, struct err *err)
{
    struct api *a = r->api;
    int64_t id;
    enum bridge_turn turn = BRIDGE_REFUSED;
    if (ask_begin(a, err) && bridge_begin(a->bridge, q, &id, err)) {
        turn = bridge_look(a->bridge, id, timeout_us, ret, ret_progress, err);
        if (turn == BRIDGE_WAITS) {
            bridge_leave(a->bridge, id);
        }
    }
    (void)atomic_fetch_sub(&a->asking, 1);
    return turn;
}

struct str req_openapi(const struct api_req *r)
{
    return buf_str(&r->api->openapi);
}

struct str req_campaign_schema(const struct api_req *r)
{
    return buf_str(&r->api->campaign_schema);
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
