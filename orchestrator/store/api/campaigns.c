/* Campaigns and their stages; see campaigns.h. */
#include "campaigns.h"
#include "names.h"
#include "queries.h"
#include "store/pg/query.h"
#include "store/pg/tx.h"
#include <stdio.h>

#define APIDB_SPEC_MAX (4 * 1024 * 1024) /* bytes of a campaign file */

static bool cap_put(struct store *s, const char *level, int64_t ref, musd_t limit, musd_t per_task,
                    const char *at_limit, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, level);
    param_i64(&p, ref);
    param_i64_or_null(&p, limit, -1);
    param_i64_or_null(&p, per_task, -1);
    param_text(&p, at_limit);
    return store_run(s, QUERY(API_CAP_PUT), &p, NULL, err);
}

/* Insert a cap with its warning thresholds. */
static bool cap_new(struct store *s, const char *level, int64_t ref, musd_t limit, musd_t per_task,
                    const char *at_limit, const int64_t *warn_at_ppm, int warn_at_n,
                    struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, level);
    param_i64(&p, ref);
    param_i64_array(&p, warn_at_ppm, (size_t)warn_at_n);
    return cap_put(s, level, ref, limit, per_task, at_limit, err) &&
           store_run(s, QUERY(API_CAP_WARN), &p, NULL, err);
}

static bool project_take(struct store *s, const char *name, int64_t *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, name);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PROJECT_TAKE), &p, &res, err)) {
        return false;
    }
    *ret = row_i64(res, 0, 0);
    return true;
}

bool apidb_campaign_insert(struct store *s, const struct apidb_campaign *c, int64_t *ret_id,
                           struct err *err)
{
    int64_t project;
    if (!project_take(s, c->project, &project, err)) {
        return false;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, project);
    param_text(&p, c->name);
    param_str(&p, c->spec_text);
    param_json(&p, c->spec_json);
    param_i32(&p, c->priority);
    param_i64_or_null(&p, c->parts_limit, -1);
    param_text(&p, c->created_by);
    param_i64(&p, c->weight);
    param_text(&p, c->nonce);
    param_time(&p, c->deadline_us);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_CAMPAIGN_INSERT), &p, &res, err)) {
        return false;
    }
    int64_t id = row_i64(res, 0, 0);
    AUTO_PARAMS struct params q = PARAMS_INIT;
    param_i64(&q, id);
    if (!store_run(s, QUERY(API_CAMPAIGN_RUN_INSERT), &q, NULL, err) ||
        (c->cap_musd >= 0 && !cap_new(s, "campaign", id, c->cap_musd, -1, c->at_limit,
                                      c->warn_at_ppm, c->warn_at_n, err))) {
        return false;
    }
    *ret_id = id;
    return true;
}

bool apidb_campaign_live(struct store *s, const char *project, const char *name,
                         struct apidb_live *ret, struct err *err)
{
    int64_t ignored;
    if (tx_open(s) && !project_take(s, project, &ignored, err)) {
        return false;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, project);
    param_text(&p, name);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_CAMPAIGN_LIVE), &p, &res, err)) {
        return false;
    }
    *ret = (struct apidb_live){.spec_text = BUF_INIT(APIDB_SPEC_MAX)};
    if (row_count(res) > 0) {
        ret->id = row_i64(res, 0, 0);
        (void)snprintf(ret->state, sizeof ret->state, "%s", row_text(res, 0, 1));
        buf_add_cstr(&ret->spec_text, row_text(res, 0, 2));
    }
    return true;
}

bool apidb_stage_insert(struct store *s, const struct apidb_stage *st, int64_t *ret_id,
                        struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, st->campaign_id);
    param_i32(&p, st->seq);
    param_text(&p, st->name);
    param_i64_or_null(&p, st->parts_limit, -1);
    param_text(&p, st->kind);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_STAGE_INSERT), &p, &res, err)) {
        return false;
    }
    int64_t id = row_i64(res, 0, 0);
    AUTO_PARAMS struct params in = PARAMS_INIT;
    param_i64(&in, id);
    param_i64(&in, st->campaign_id);
    AUTO_PARAMS struct params run = PARAMS_INIT;
    param_i64(&run, id);
    param_i64(&run, st->campaign_id);
    param_bool(&in, st->closed);
    bool cap = st->cap_musd >= 0 || st->per_task_musd >= 0;
    if (!store_run(s, QUERY(API_STAGE_INPUT_INSERT), &in, NULL, err) ||
        !store_run(s, QUERY(API_STAGE_RUN_INSERT), &run, NULL, err) ||
        (cap && !cap_new(s, "stage", id, st->cap_musd, st->per_task_musd, st->at_limit,
                         st->warn_at_ppm, st->warn_at_n, err))) {
        return false;
    }
    *ret_id = id;
    return true;
}

/* Facts of those of the campaigns that need a person, one row each. */
static bool guidance_read(struct store *s, const int64_t *ids, size_t n, PGresult **ret,
                          struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64_array(&p, ids, n);
    PARAM_NAMES(&p, names_wait_passing);
    return store_exec(s, QUERY(API_CAMPAIGN_GUIDANCE), &p, ret, err);
}

bool apidb_campaign_guidance(struct store *s, int64_t id, apidb_guide guide, struct buf *ret_json,
                             struct err *err)
{
    AUTO_RESULT PGresult *facts = NULL;
    if (!guidance_read(s, &id, 1, &facts, err)) {
        return false;
    }
    guide(ret_json, id, row_count(facts) > 0 ? row_text(facts, 0, 1) : NULL);
    return true;
}

/* The campaign's JSON object with `guidance` as its last member. */
static void guided_row(struct buf *b, const char *json, int64_t id, apidb_guide guide,
                       const PGresult *facts)
{
    const char *found = NULL;
    for (int i = 0; i < row_count(facts) && found == NULL; i++) {
        found = row_i64(facts, i, 0) == id ? row_text(facts, i, 1) : NULL;
    }
    size_t n = strlen(json);
    ASSERT(n > 2 && json[n - 1] == '}');
    buf_add(b, json, n - 1);
    buf_add_cstr(b, ", \"guidance\" : ");
    guide(b, id, found);
    buf_add_cstr(b, "}");
}

bool apidb_campaign_get(struct store *s, int64_t id, apidb_guide guide, int64_t *ret_version,
                        struct buf *ret_json, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    PARAM_NAMES(&p, names_wait_reason);
    PARAM_NAMES(&p, names_wait_text);
    PARAM_NAMES(&p, names_wait_passing);
    AUTO_RESULT PGresult *res = NULL;
    AUTO_RESULT PGresult *facts = NULL;
    if (!store_exec(s, QUERY(API_CAMPAIGN_GET), &p, &res, err)) {
        return false;
    }
    if (row_count(res) == 0) {
        return err_set(err, ERR_NOT_FOUND, "there is no campaign c-%lld", (long long)id);
    }
    *ret_version = row_i64(res, 0, 0);
    if (guide == NULL) {
        buf_add_cstr(ret_json, row_text(res, 0, 1));
        return true;
    }
    if (!guidance_read(s, &id, 1, &facts, err)) {
        return false;
    }
    guided_row(ret_json, row_text(res, 0, 1), id, guide, facts);
    return true;
}

bool apidb_campaign_list(struct store *s, const struct apidb_campaign_query *q, apidb_guide guide,
                         struct apidb_page *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_time(&p, q->after_us);
    param_i64(&p, q->after_id);
    param_text(&p, q->state);
    param_i64(&p, q->n);
    PARAM_NAMES(&p, names_wait_reason);
    PARAM_NAMES(&p, names_wait_text);
    param_text(&p, q->projects);
    param_bool(&p, q->down);
    PARAM_NAMES(&p, names_wait_passing);
    AUTO_RESULT PGresult *res = NULL;
    AUTO_RESULT PGresult *facts = NULL;
    if (!store_exec(s, QUERY(API_CAMPAIGN_LIST), &p, &res, err)) {
        return false;
    }
    ret->n = row_count(res);
    AUTO_FREE int64_t *ids = xcalloc((size_t)ret->n + 1, sizeof *ids);
    for (int i = 0; i < row_count(res); i++) {
        ids[i] = row_i64(res, i, 0);
    }
    if (!guidance_read(s, ids, (size_t)ret->n, &facts, err)) {
        return false;
    }
    for (int i = 0; i < row_count(res); i++) {
        ret->last_id = ids[i];
        ret->last_us = row_time(res, i, 1);
        buf_add_cstr(&ret->rows, i == 0 ? "" : ",");
        guided_row(&ret->rows, row_text(res, i, 2), ids[i], guide, facts);
    }
    return true;
}

bool apidb_campaign_rows(struct store *s, int64_t id, struct buf *ret, int64_t *ret_parts,
                         int64_t *ret_active, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *res = NULL;
    param_i64(&p, id);
    if (!store_exec(s, QUERY(API_CAMPAIGN_ROWS), &p, &res, err)) {
        return false;
    }
    buf_add_cstr(ret, row_text(res, 0, 0));
    *ret_parts = row_i64(res, 0, 1);
    *ret_active = row_i64(res, 0, 2);
    return true;
}

bool apidb_campaign_spec(struct store *s, int64_t id, struct buf *ret_json, struct buf *ret_text,
                         struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_CAMPAIGN_SPEC), &p, &res, err)) {
        return false;
    }
    if (row_count(res) == 0) {
        return err_set(err, ERR_NOT_FOUND, "there is no campaign c-%lld", (long long)id);
    }
    buf_add_cstr(ret_json, row_text(res, 0, 1));
    buf_add_cstr(ret_text, row_text(res, 0, 2));
    return true;
}

bool apidb_campaign_lock(struct store *s, int64_t id, struct apidb_wish *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_CAMPAIGN_LOCK), &p, &res, err)) {
        return false;
    }
    if (row_count(res) == 0) {
        return err_set(err, ERR_NOT_FOUND, "there is no campaign c-%lld", (long long)id);
    }
    ret->version = row_i64(res, 0, 0);
    ret->wanted = wanted_parse(row_text(res, 0, 1));
    ret->state = campaign_state_parse(row_text(res, 0, 2));
    ASSERT(ret->wanted < WANTED_COUNT); /* the table's CHECK allows no other value */
    ASSERT(ret->state < CAMPAIGN_STATE_COUNT);
    AUTO_PARAMS struct params q = PARAMS_INIT;
    AUTO_RESULT PGresult *archived = NULL;
    param_i64(&q, id);
    if (!store_exec(s, QUERY(API_CAMPAIGN_ARCHIVED), &q, &archived, err)) {
        return false;
    }
    ret->archived = row_bool(archived, 0, 0);
    return true;
}

bool apidb_campaign_want(struct store *s, int64_t id, enum wanted wanted, struct err *err)
{
    ASSERT(wanted < WANTED_COUNT);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    param_text(&p, wanted_name(wanted));
    return store_run(s, QUERY(API_CAMPAIGN_WANT), &p, NULL, err);
}

static bool patch_budget(struct store *s, int64_t id, const struct apidb_patch *patch,
                         struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, "campaign");
    param_i64(&p, id);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_CAP_GET), &p, &res, err)) {
        return false;
    }
    bool has = row_count(res) == 1;
    musd_t limit = patch->set_budget ? patch->budget_musd : has ? row_i64_or(res, 0, 0, -1) : -1;
    const char *at_limit = patch->at_limit != NULL ? patch->at_limit
                           : has                   ? row_text(res, 0, 1)
                                                   : at_limit_name(AT_LIMIT_DRAIN);
    return cap_put(s, "campaign", id, limit, -1, at_limit, err);
}

bool apidb_campaign_patch(struct store *s, int64_t id, const struct apidb_patch *patch,
                          struct err *err)
{
    if ((patch->set_budget || patch->at_limit != NULL) && !patch_budget(s, id, patch, err)) {
        return false;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    param_i64_or_null(&p, patch->priority, -1);
    param_bool(&p, patch->set_parts);
    param_i64_or_null(&p, patch->parts_limit, -1);
    param_i64_or_null(&p, patch->weight, -1);
    param_bool(&p, patch->set_deadline);
    param_time(&p, patch->deadline_us);
    return store_run(s, QUERY(API_CAMPAIGN_PATCH), &p, NULL, err);
}

bool apidb_campaign_limits(struct store *s, int64_t id, struct buf *ret_json, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    return store_text(s, QUERY(API_CAMPAIGN_LIMITS), &p, "row", ret_json, err);
}

bool apidb_notify(struct store *s, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    return store_run(s, QUERY(API_NOTIFY_WANTED), &p, NULL, err);
}

/* Runs a change of one stage. */
static bool stage_change(struct store *s, const char *query, const char *sql, struct params *p,
                         const char *stage, struct err *err)
{
    int64_t n = 0;
    return store_run(s, query, sql, p, &n, err) &&
           (n == 1 || err_set(err, ERR_NOT_FOUND, "the campaign has no stage '%s'", stage));
}

bool apidb_stage_limit(struct store *s, int64_t campaign_id, const char *stage, int64_t parts,
                       struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_text(&p, stage);
    param_i64_or_null(&p, parts, -1);
    return stage_change(s, QUERY(API_STAGE_LIMIT), &p, stage, err);
}

bool apidb_stage_budget(struct store *s, int64_t campaign_id, const char *stage,
                        const struct apidb_stage_budget *b, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_text(&p, stage);
    param_bool(&p, b->set_total);
    param_i64_or_null(&p, b->total_musd, -1);
    param_bool(&p, b->set_per_task);
    param_i64_or_null(&p, b->per_task_musd, -1);
    return stage_change(s, QUERY(API_STAGE_BUDGET), &p, stage, err);
}

bool apidb_stages_resume(struct store *s, int64_t campaign_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    return store_run(s, QUERY(API_STAGES_RESUME), &p, NULL, err);
}

bool apidb_stage_gate(struct store *s, int64_t campaign_id, const char *stage,
                      struct apidb_gate *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, campaign_id);
    param_text(&p, stage);
    if (!store_exec(s, QUERY(API_STAGE_GATE), &p, &r, err)) {
        return false;
    }
    if (row_count(r) == 0) {
        return err_set(err, ERR_NOT_FOUND, "campaign c-%lld has no stage '%.80s'",
                       (long long)campaign_id, stage);
    }
    ret->held = row_bool(r, 0, 0);
    ret->overridden = row_bool(r, 0, 1);
    row_text_into(r, 0, 2, ret->reason, sizeof ret->reason);
    return true;
}

bool apidb_campaign_gate(struct store *s, int64_t campaign_id, struct apidb_gate *ret,
                         struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, campaign_id);
    if (!store_exec(s, QUERY(API_CAMPAIGN_GATE), &p, &r, err)) {
        return false;
    }
    *ret = (struct apidb_gate){.held = row_count(r) > 0};
    if (ret->held) {
        row_text_into(r, 0, 0, ret->stage, sizeof ret->stage);
        row_text_into(r, 0, 1, ret->reason, sizeof ret->reason);
    }
    return true;
}

bool apidb_stage_gate_override(struct store *s, int64_t campaign_id, const char *stage,
                               struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_text(&p, stage);
    return store_run(s, QUERY(API_STAGE_GATE_OVERRIDE), &p, NULL, err);
}
