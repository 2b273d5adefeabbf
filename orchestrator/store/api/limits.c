/* Limits of projects and of the installation; see limits.h. */
#include "limits.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_limits_tag(struct store *s, struct buf *ret_text, struct err *err)
{
    return store_text(s, QUERY(API_LIMITS_TAG), NULL, "row", ret_text, err);
}

bool apidb_projects_tag(struct store *s, struct buf *ret_text, struct err *err)
{
    return store_text(s, QUERY(API_PROJECTS_TAG), NULL, "row", ret_text, err);
}

bool apidb_projects(struct store *s, const char *projects, struct buf *ret_json, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, projects);
    return store_text(s, QUERY(API_PROJECTS), &p, "row", ret_json, err);
}

bool apidb_limits(struct store *s, struct buf *ret_json, struct err *err)
{
    return store_text(s, QUERY(API_LIMITS), NULL, "row", ret_json, err);
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

bool apidb_limits_lock(struct store *s, struct err *err)
{
    return store_run(s, QUERY(API_LIMITS_LOCK), NULL, NULL, err);
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
