/* Endpoints of stages that deploy: the list, one of them, asking it, a later end, deleting it
 * before its time. */
#include "store/api/endpoints.h"
#include "api/server/audit.h"
#include "api/server/idempotency.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/time_text.h"
#include "core/money/cost.h"
#include "store/api/campaigns.h"
#include "store/pg/tx.h"
#include <stdio.h>

#define CENT_MUSD (MUSD_PER_USD / 100)

static const char *name_of(struct api_req *r)
{
    return arena_strndup(&r->arena, r->params[0].p, r->params[0].n);
}

bool endpoints_get(struct api_req *r, struct err *err)
{
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    if (!req_db(r, err) ||
        !apidb_endpoints(r->db, req_number(r, "limit"), NULL, r->who.projects, &rows, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"endpoints\":%s}\n", buf_cstr(&rows));
    return reply_out(r, 200);
}

/* An ETag begins with what people may change; the rest is of all that is shown, its cost too. */
static void tag_of(const struct apidb_endpoint *e, char ret[static ETAG_SIZE])
{
    char text[128];
    (void)snprintf(text, sizeof text, "%d %lld %lld %d", (int)e->state, (long long)e->until_us,
                   (long long)e->extend_us, e->delete_asked);
    (void)snprintf(ret, ETAG_SIZE, "e%08x-", hash_crc32(text, strlen(text)));
}

/* The endpoint as it is in this transaction. */
static bool answer(struct api_req *r, const char *name, int status, struct err *err)
{
    AUTO_BUF struct buf rows = BUF_INIT(API_BODY_MAX);
    struct apidb_endpoint e;
    char tag[ETAG_SIZE];
    if (!apidb_endpoint_terms(r->db, name, &e, err) ||
        !apidb_endpoints(r->db, 1, name, "", &rows, err)) {
        return false;
    }
    ASSERT(rows.n > 4); /* "[{...}]" */
    buf_addf(&r->out, "%.*s\n", (int)rows.n - 2, buf_cstr(&rows) + 1);
    (void)reply_out(r, status);
    tag_of(&e, tag);
    reply_etag_of_body(r, tag);
    return true;
}

bool endpoint_get(struct api_req *r, struct err *err)
{
    return req_db(r, err) && answer(r, name_of(r), 200, err);
}

/* If-Match must be the ETag of now, up to its "-", or "*". */
static bool if_match(const struct api_req *r, const struct apidb_endpoint *e, struct err *err)
{
    char tag[ETAG_SIZE];
    const char *match = req_header(r, MHD_HTTP_HEADER_IF_MATCH);
    tag_of(e, tag);
    return strcmp(match, "*") == 0 ||
           (match[0] == '"' && strncmp(match + 1, tag, strlen(tag)) == 0) ||
           err_set(err, ERR_PRECONDITION,
                   "the endpoint was changed since you read it; read it again");
}

/* {"ttl": "2h"}: from now on. */
static bool read_ttl(const json_t *body, int64_t *ret_s, struct err *err)
{
    const char *text = json_string_value(json_object_get(body, "ttl"));
    return parse_duration_s(str_of(text), 1, SPEC_TTL_S_MAX, ret_s, err) ||
           err_wrap(err, "ttl: write 30m or 2h");
}

static const char *level_words(const char *level)
{
    return strcmp(level, "global") == 0    ? "the installation"
           : strcmp(level, "project") == 0 ? "its project"
           : strcmp(level, "stage") == 0   ? "its stage"
                                           : "its campaign";
}

/* May it live until then? The leader checks the money once more when it reserves it. */
static bool may_extend(const struct apidb_endpoint *e, usec_t until_us, struct err *err)
{
    char end[32];
    musd_t worst_musd;
    int64_t ttl_s = (until_us - e->in_service_us + USEC_PER_SEC - 1) / USEC_PER_SEC;
    if (e->state != ENDPOINT_IN_SERVICE || e->delete_asked) {
        return err_set(err, ERR_CONFLICT, "it is %s: only an endpoint in service can live longer",
                       e->delete_asked ? "being deleted" : endpoint_state_name(e->state));
    }
    if (until_us < MAX(e->until_us, e->extend_us)) {
        clock_format_rfc3339(MAX(e->until_us, e->extend_us), false, end);
        return err_set(err, ERR_CONFLICT, "it lives until %s, which is later; DELETE ends it now",
                       end);
    }
    if (!cost_worst_case(e->price_musd_per_hour, e->instances, ttl_s, 0, &worst_musd, err)) {
        return false;
    }
    musd_t more_musd = worst_musd - e->reserved_musd;
    int64_t need = more_musd / CENT_MUSD + (more_musd % CENT_MUSD > 0);
    int64_t left = MAX(0, e->left_musd) / CENT_MUSD;
    return more_musd <= e->left_musd ||
           err_set(err, ERR_BUDGET,
                   "that reserves %lld.%02lld USD more, and the budget of %s has %lld.%02lld USD "
                   "left",
                   (long long)(need / 100), (long long)(need % 100), level_words(e->level),
                   (long long)(left / 100), (long long)(left % 100));
}

static bool extend(struct api_req *r, const char *name, int64_t ttl_s, struct err *err)
{
    struct apidb_endpoint e;
    usec_t until_us = clock_wall_us() + ttl_s * USEC_PER_SEC;
    return apidb_endpoint_lock(r->db, name, err) && apidb_endpoint_terms(r->db, name, &e, err) &&
           if_match(r, &e, err) && may_extend(&e, until_us, err) &&
           apidb_endpoint_extend(r->db, name, until_us, err);
}

bool endpoint_patch(struct api_req *r, struct err *err)
{
    const char *name = name_of(r);
    int64_t ttl_s;
    if (!read_ttl(r->json, &ttl_s, err) || !req_db(r, err)) {
        return false;
    }
    CLEANUP(keyed_end)
    struct keyed k = {0};
    bool replayed; /* the reply to the first one was lost */
    if (!keyed_begin(r, false, &k, &replayed, err) || replayed) {
        return replayed;
    }
    AUTO_TX struct store *tx = r->db;
    AUTO_FREE char *detail = json_text(r->json);
    return tx_begin(tx, TX_WRITE, err) && extend(r, name, ttl_s, err) &&
           req_audit(r, "endpoint.extend", name, detail, err) && answer(r, name, 202, err) &&
           keyed_store(&k, "", err) && apidb_notify(tx, err) && tx_commit(tx, err);
}

/* The media type of what the model is asked: visible ASCII. */
static bool read_type(const struct api_req *r, char ret[static BRIDGE_TYPE_MAX], struct err *err)
{
    const char *type = req_header(r, MHD_HTTP_HEADER_CONTENT_TYPE);
    type = type != NULL ? type : "application/json";
    bool ok = strchr(type, '/') != NULL && strlen(type) < BRIDGE_TYPE_MAX;
    for (const char *c = type; ok && *c != '\0'; c++) {
        ok = *c >= ' ' && *c <= '~';
    }
    if (!ok) {
        return err_set(err, ERR_MEDIA_TYPE, "Content-Type: write that of the model's input");
    }
    (void)snprintf(ret, BRIDGE_TYPE_MAX, "%s", type);
    return true;
}

/* Only an endpoint of ours is asked. It is written down before: who asked, and how much. */
static bool note_question(struct api_req *r, const char *name, struct err *err)
{
    struct apidb_endpoint e;
    char detail[48];
    AUTO_TX struct store *tx = r->db;
    (void)snprintf(detail, sizeof detail, "{\"bytes\":%zu}", r->body.n);
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_endpoint_terms(tx, name, &e, err)) {
        return false;
    }
    if (e.state != ENDPOINT_IN_SERVICE) {
        return err_set(err, ERR_CONFLICT, "it is %s: only an endpoint in service answers",
                       endpoint_state_name(e.state));
    }
    return req_audit(r, "endpoint.invoke", name, detail, err) && tx_commit(tx, err);
}

/* The model's bytes. JSON is shown as such; what else a model may say is no page of ours. */
bool endpoint_ask(struct api_req *r, struct err *err)
{
    const char *name = name_of(r);
    struct bridge_question q = {.kind = BRIDGE_INVOKE, .body = buf_str(&r->body)};
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    if (!read_type(r, q.content_type, err) || !req_db(r, err) || !note_question(r, name, err)) {
        return false;
    }
    (void)snprintf(q.endpoint, sizeof q.endpoint, "%s", name);
    if (!req_bridge(r, &q, BRIDGE_WAIT_US_MAX, &reply, err)) {
        return false;
    }
    buf_add_str(&r->out, buf_str(&reply.json));
    (void)reply_out(r, 200);
    if (strncmp(reply.content_type, "application/json", 16) != 0) {
        r->content_type = "application/octet-stream";
    }
    return true;
}

bool endpoint_delete(struct api_req *r, struct err *err)
{
    const char *name = name_of(r);
    if (!req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    buf_addf(&r->out, "{\"name\":\"%s\",\"delete_asked\":true}\n", name);
    return tx_begin(tx, TX_WRITE, err) && apidb_endpoint_delete(tx, name, err) &&
           req_audit(r, "endpoint.delete", name, "{}", err) && reply_out(r, 202) &&
           apidb_notify(tx, err) && tx_commit(tx, err);
}
