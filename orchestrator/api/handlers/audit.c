/* Pages of the audit: who changed what. */
#include "store/api/audit.h"
#include "api/server/paging.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"

static const char *text_of(const struct api_req *r, const char *name)
{
    const char *value = req_query(r, name);
    return value != NULL ? value : "";
}

bool audit_list(struct api_req *r, struct err *err)
{
    bool given, down = page_is_down(r, true);
    int64_t n = req_number(r, "page_size"), key[1] = {down ? INT64_MAX : 0};
    if (!page_token_read(r, key, 1, &given, err) || !req_db(r, err)) {
        return false;
    }
    const struct apidb_audit_query q = {
        .after_id = key[0],
        .down = down,
        .n = n,
        .campaign_id = MAX(req_number(r, "campaign"), INT64_C(0)),
        .who = text_of(r, "who"),
        .action = text_of(r, "action"),
        .projects = r->who.projects,
        .admin = r->who.role == API_ADMIN,
    };
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    int64_t next = 0;
    if (!apidb_audit_page(r->db, &q, &rows, &next, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"audit\":[%s],\"next_page_token\":", buf_cstr(&rows));
    if (next > 0) {
        buf_addf(&r->out, "\"%s\"}\n", page_token_make(r, &next, 1));
    } else {
        buf_add_cstr(&r->out, "null}\n");
    }
    return reply_out(r, 200);
}
