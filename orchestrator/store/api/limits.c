/* Limits of projects and of the installation, warm pools; see api_db.h. */
#include "api_db.h"
#include "common/banned.h"
#include "queries.h"
#include "store/pg/query.h"

static bool text_of(struct store *s, const char *name, const char *sql, struct params *p,
                    struct buf *ret, struct err *err)
{
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, name, sql, p, &res, err)) {
        return false;
    }
    buf_add_cstr(ret, row_text(res, 0, 0));
    return true;
}

bool apidb_projects(struct store *s, struct buf *ret_json, struct err *err)
{
    return text_of(s, QUERY(API_PROJECTS), NULL, ret_json, err);
}

bool apidb_limits(struct store *s, struct buf *ret_json, struct err *err)
{
    return text_of(s, QUERY(API_LIMITS), NULL, ret_json, err);
}

bool apidb_pools(struct store *s, int64_t campaign_id, int64_t n, struct buf *ret_rows,
                 struct buf *ret_sum, struct err *err)
{
    AUTO_PARAMS struct params rows = PARAMS_INIT;
    param_i64(&rows, campaign_id);
    param_i64(&rows, n);
    AUTO_PARAMS struct params sum = PARAMS_INIT;
    param_i64(&sum, campaign_id);
    return text_of(s, QUERY(API_POOLS), &rows, ret_rows, err) &&
           text_of(s, QUERY(API_POOLS_SUM), &sum, ret_sum, err);
}

static bool cap_limit(struct store *s, const char *level, int64_t ref_id, musd_t musd,
                      struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, level);
    param_i64(&p, ref_id);
    param_i64_or_null(&p, musd, -1);
    return store_run(s, QUERY(API_CAP_LIMIT), &p, NULL, err);
}

static bool touch(struct store *s, int64_t project_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, project_id);
    return store_run(s, QUERY(API_LIMITS_TOUCH), &p, NULL, err);
}

bool apidb_project_patch(struct store *s, const char *name, const struct apidb_limits_patch *l,
                         struct err *err)
{
    AUTO_PARAMS struct params find = PARAMS_INIT;
    param_text(&find, name);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PROJECT_LOCK), &find, &res, err)) {
        return false;
    }
    if (row_count(res) == 0) {
        return err_set(err, ERR_NOT_FOUND, "there is no project '%s'", name);
    }
    int64_t id = row_i64(res, 0, 0);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    param_i64_or_null(&p, l->weight, -1);
    param_bool(&p, l->set_parts);
    param_i64_or_null(&p, l->parts, -1);
    return store_run(s, QUERY(API_PROJECT_PATCH), &p, NULL, err) &&
           (!l->set_budget || cap_limit(s, "project", id, l->budget_musd, err)) &&
           touch(s, id, err);
}

bool apidb_limits_patch(struct store *s, const struct apidb_limits_patch *l, struct err *err)
{
    if (l->set_parts) {
        AUTO_PARAMS struct params p = PARAMS_INIT;
        param_text(&p, "parts_limit");
        if (l->parts >= 0) {
            param_i64(&p, l->parts);
        }
        if (!(l->parts >= 0 ? store_run(s, QUERY(API_SETTING_PUT), &p, NULL, err)
                            : store_run(s, QUERY(API_SETTING_DROP), &p, NULL, err))) {
            return false;
        }
    }
    return (!l->set_budget || cap_limit(s, "global", 0, l->budget_musd, err)) && touch(s, 0, err);
}

bool apidb_slot_limit(struct store *s, const char *instance_type, int64_t n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, instance_type);
    if (n < 0) {
        return store_run(s, QUERY(API_SLOT_LIMIT_DROP), &p, NULL, err);
    }
    param_i64(&p, n);
    return store_run(s, QUERY(API_SLOT_LIMIT_PUT), &p, NULL, err);
}

bool apidb_stage_limit(struct store *s, int64_t campaign_id, const char *stage, int64_t parts,
                       struct err *err)
{
    int64_t n = 0;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_text(&p, stage);
    param_i64_or_null(&p, parts, -1);
    if (!store_run(s, QUERY(API_STAGE_LIMIT), &p, &n, err)) {
        return false;
    }
    return n == 1 || err_set(err, ERR_NOT_FOUND, "the campaign has no stage '%s'", stage);
}

bool apidb_stages_resume(struct store *s, int64_t campaign_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    return store_run(s, QUERY(API_STAGES_RESUME), &p, NULL, err);
}
