/* The audit trail of requests; see audit.h. */
#include "audit.h"
#include "auth.h"
#include "store/api/audit.h"

bool req_audit_both(struct api_req *r, const char *action, const char *subject,
                    const char *before_json, const char *detail_json, struct err *err)
{
    const struct apidb_audit_row row = {
        .token_id = r->who.token_id,
        .role = role_name(r->who.role),
        .action = action,
        .subject = subject,
        .request_id = r->request_id,
        .before_json = before_json,
        .detail_json = detail_json,
    };
    return apidb_audit(r->db, &row, err);
}

bool req_audit(struct api_req *r, const char *action, const char *subject, const char *detail_json,
               struct err *err)
{
    return req_audit_both(r, action, subject, NULL, detail_json, err);
}

/* The members of an object that another object has too; the object as it is when none is. */
static json_t *common_members(json_t *of, const json_t *with)
{
    const char *key;
    json_t *v, *ret = json_object();
    json_object_foreach(of, key, v)
    {
        const json_t *other = json_object_get(with, key);
        if (json_is_object(v) && json_is_object(other)) {
            (void)json_object_set_new(ret, key, common_members(v, other));
        } else if (other != NULL) {
            (void)json_object_set(ret, key, v);
        }
    }
    if (json_object_size(ret) > 0) {
        return ret;
    }
    json_decref(ret);
    return json_incref(of);
}

bool req_audit_change(struct api_req *r, const char *action, const char *subject,
                      const char *was_json, const json_t *asked, struct err *err)
{
    const char *key;
    json_t *v;
    AUTO_JSON json_t *was = json_loads(was_json, 0, NULL);
    json_t *one = json_is_array(was) ? json_array_get(was, 0) : was;
    AUTO_JSON json_t *before = json_object();
    json_object_foreach(one, key, v)
    {
        const json_t *to = json_object_get(asked, key);
        if (to != NULL) {
            (void)json_object_set_new(before, key, common_members(v, to));
        }
    }
    AUTO_FREE char *before_json = json_text(before);
    AUTO_FREE char *detail = json_text(asked);
    return req_audit_both(r, action, subject, before_json, detail, err);
}
