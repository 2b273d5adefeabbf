/* Failed parts of a campaign by cause. */
#include "store/api/failures.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "remembered_answer.h"
#include "store/api/parts.h"

struct failures_wanted {
    struct store *db;
    int64_t campaign_id, stage_id; /* stage 0: all stages */
};

static bool failures_make(void *ctx, struct buf *out, struct err *err)
{
    const struct failures_wanted *of = ctx;
    int64_t parts, final;
    AUTO_BUF struct buf groups = BUF_INIT(API_ANSWER_MAX);
    if (!apidb_failures(of->db, of->campaign_id, of->stage_id, &groups, &parts, &final, err)) {
        return false;
    }
    buf_addf(out, "{\"parts\":%lld,\"final\":%lld,\"groups\":%s}\n", (long long)parts,
             (long long) final, buf_cstr(&groups));
    return true;
}

bool failures_get(struct api_req *r, struct err *err)
{
    struct failures_wanted of;
    struct apidb_stage_row stage;
    const char *name = req_query(r, "stage");
    AUTO_FREE char *json = NULL;
    of.campaign_id = req_id(r, 0);
    if (!req_db(r, err) || !apidb_stage_find(r->db, of.campaign_id, name, &stage, err)) {
        return false;
    }
    of.db = r->db;
    of.stage_id = name != NULL ? stage.id : 0;
    const char *key = arena_printf(&r->arena, "failures %lld %lld", (long long)of.campaign_id,
                                   (long long)of.stage_id);
    if (!remembered_answer_or_last(r, of.campaign_id, key, failures_make, &of, sizeof of, &json,
                                   err)) {
        return false;
    }
    buf_add_cstr(&r->out, json);
    return reply_out(r, 200);
}
