/* Limits above a campaign: of its project and of the installation. */
#include "store/api/limits.h"
#include "api/server/audit.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "api/server/scope.h"
#include "common/hash.h"
#include "store/api/campaigns.h"
#include "store/api/quotas.h"
#include "store/pg/tx.h"
#include <stdio.h>

typedef bool (*tag_query)(struct store *s, struct buf *ret_text, struct err *err);

/* An ETag begins with what may be changed; the rest is of all that is shown, what is spent too. */
static bool tag_of(struct api_req *r, tag_query query, char ret[static ETAG_SIZE], struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT(API_ANSWER_MAX);
    if (!query(r->db, &text, err)) {
        return false;
    }
    (void)snprintf(ret, ETAG_SIZE, "l%08x-", hash_crc32(text.p, text.n));
    return true;
}

/* The answer with its ETag. */
static bool limits_out(struct api_req *r, tag_query query, const char *what, const struct buf *json,
                       struct err *err)
{
    char tag[ETAG_SIZE];
    if (!tag_of(r, query, tag, err)) {
        return false;
    }
    if (what != NULL) {
        buf_addf(&r->out, "{\"%s\":%s}\n", what, buf_cstr(json));
        (void)reply_out(r, 200);
    } else {
        (void)reply_json(r, 200, buf_str(json));
    }
    reply_etag_of_body(r, tag);
    return true;
}

/* If-Match must be the ETag of now, up to its "-", or "*". */
static bool if_match(struct api_req *r, tag_query query, struct err *err)
{
    char tag[ETAG_SIZE];
    const char *match = req_header(r, MHD_HTTP_HEADER_IF_MATCH);
    return tag_of(r, query, tag, err) &&
           (strcmp(match, "*") == 0 ||
            (match[0] == '"' && strncmp(match + 1, tag, strlen(tag)) == 0) ||
            err_set(err, ERR_PRECONDITION, "the limits have changed since; read them again"));
}

bool projects_get(struct api_req *r, struct err *err)
{
    AUTO_BUF struct buf json = BUF_INIT(API_ANSWER_MAX);
    return req_db(r, err) && apidb_projects(r->db, r->who.projects, &json, err) &&
           limits_out(r, apidb_projects_tag, "projects", &json, err);
}

bool limits_get(struct api_req *r, struct err *err)
{
    AUTO_BUF struct buf json = BUF_INIT(API_ANSWER_MAX);
    return req_db(r, err) && apidb_limits(r->db, &json, err) &&
           limits_out(r, apidb_limits_tag, NULL, &json, err);
}

/* {"parts": N | null, "budget": {"total": "900 USD"} | null}. */
static bool read_limits(const json_t *body, struct apidb_limits_patch *ret, struct err *err)
{
    *ret = (struct apidb_limits_patch){.weight = -1, .parts = -1, .budget_musd = -1};
    const json_t *parts = json_object_get(body, "parts");
    const json_t *budget = json_object_get(body, "budget");
    ret->set_parts = parts != NULL;
    ret->parts = json_is_integer(parts) ? json_integer_value(parts) : -1;
    ret->set_budget = budget != NULL;
    const char *total = json_string_value(json_object_get(budget, "total"));
    return total == NULL || parse_usd(str_of(total), &ret->budget_musd, err);
}

bool project_patch(struct api_req *r, struct err *err)
{
    const json_t *body = req_json(r);
    const json_t *weight = json_object_get(body, "weight");
    struct apidb_limits_patch l;
    AUTO_BUF struct buf name = BUF_INIT(256);
    AUTO_BUF struct buf json = BUF_INIT(API_ANSWER_MAX);
    if (!str_url_decode(&name, r->params[0], false) || name.overflow) {
        return err_set(err, ERR_NOT_FOUND, "there is no such project");
    }
    if (!read_limits(body, &l, err) || !req_db(r, err)) {
        return false;
    }
    l.weight = weight != NULL ? json_integer_value(weight) : -1;
    AUTO_TX struct store *tx = r->db;
    AUTO_BUF struct buf was = BUF_INIT(API_ANSWER_MAX);
    if (!scope_has(r, buf_cstr(&name))) {
        return err_set(err, ERR_NOT_FOUND, "there is no such project");
    }
    return tx_begin(tx, TX_WRITE, err) && apidb_limits_lock(tx, err) &&
           if_match(r, apidb_projects_tag, err) && apidb_projects(tx, buf_cstr(&name), &was, err) &&
           apidb_project_patch(tx, buf_cstr(&name), &l, err) &&
           req_audit_change(r, "project.change", buf_cstr(&name), buf_cstr(&was), body, err) &&
           apidb_projects(tx, r->who.projects, &json, err) && apidb_notify(tx, err) &&
           tx_commit(tx, err) && limits_out(r, apidb_projects_tag, "projects", &json, err);
}

static bool instance_limits(struct store *tx, const json_t *body, struct err *err)
{
    const char *type;
    json_t *n;
    json_object_foreach(json_object_get(body, "instances"), type, n)
    {
        if (!apidb_slot_limit(tx, type, json_is_null(n) ? -1 : json_integer_value(n), err)) {
            return false;
        }
    }
    return true;
}

bool limits_patch(struct api_req *r, struct err *err)
{
    const json_t *body = req_json(r);
    struct apidb_limits_patch l;
    AUTO_BUF struct buf json = BUF_INIT(API_ANSWER_MAX);
    if (!read_limits(body, &l, err) || !req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    AUTO_BUF struct buf was = BUF_INIT(API_ANSWER_MAX);
    return tx_begin(tx, TX_WRITE, err) && apidb_limits_lock(tx, err) &&
           if_match(r, apidb_limits_tag, err) && apidb_limits(tx, &was, err) &&
           instance_limits(tx, body, err) && apidb_limits_patch(tx, &l, err) &&
           req_audit_change(r, "limits.change", "*", buf_cstr(&was), body, err) &&
           apidb_limits(tx, &json, err) && apidb_notify(tx, err) && tx_commit(tx, err) &&
           limits_out(r, apidb_limits_tag, NULL, &json, err);
}
