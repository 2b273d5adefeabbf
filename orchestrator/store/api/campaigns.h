/* Campaigns and their stages as handlers read and write them: what a person wants of a campaign,
 * never what the leader owns. Answers that are only passed on come as JSON text built by the query.
 * ERR_NOT_FOUND: there is no such row. */
#pragma once
#include "core/model.h"
#include "page.h"
#include "store/pg/connection.h"

struct apidb_campaign {
    const char *project, *name;
    struct str spec_text; /* as sent */
    const char *spec_json;
    int priority;
    int64_t weight;
    int64_t parts_limit; /* -1: none */
    musd_t cap_musd;     /* -1: none */
    const char *at_limit;
    const int64_t *warn_at_ppm; /* of the cap, rising */
    int warn_at_n;
    const char *created_by;
};
bool apidb_campaign_insert(struct store *s, const struct apidb_campaign *c, int64_t *ret_id,
                           struct err *err) MUST_CHECK;
struct apidb_stage {
    int64_t campaign_id;
    int seq;
    const char *name;
    bool closed;
    int64_t parts_limit;            /* -1: none */
    musd_t cap_musd, per_task_musd; /* -1: none */
    const char *at_limit;
    const int64_t *warn_at_ppm; /* of the cap, rising */
    int warn_at_n;
};
bool apidb_stage_insert(struct store *s, const struct apidb_stage *st, int64_t *ret_id,
                        struct err *err) MUST_CHECK;
bool apidb_campaign_get(struct store *s, int64_t id, int64_t *ret_version, struct buf *ret_json,
                        struct err *err) MUST_CHECK;
/* Newest first, behind (before_us, before_id). state NULL: all. */
bool apidb_campaign_list(struct store *s, usec_t before_us, int64_t before_id, const char *state,
                         int64_t n, struct apidb_page *ret, struct err *err) MUST_CHECK;
bool apidb_campaign_spec(struct store *s, int64_t id, struct buf *ret_json, struct buf *ret_text,
                         struct err *err) MUST_CHECK;
struct apidb_wish {
    int64_t version;
    enum wanted wanted;
    enum campaign_state state;
};
/* Inside a transaction: locks the campaign's row. */
bool apidb_campaign_lock(struct store *s, int64_t id, struct apidb_wish *ret,
                         struct err *err) MUST_CHECK;
bool apidb_campaign_want(struct store *s, int64_t id, enum wanted wanted,
                         struct err *err) MUST_CHECK;
struct apidb_patch {
    int priority;   /* -1: as it is */
    int64_t weight; /* fair share; -1: as it is */
    bool set_parts;
    int64_t parts_limit; /* -1: none */
    bool set_budget;
    musd_t budget_musd;   /* -1: none */
    const char *at_limit; /* NULL: as it is */
};
bool apidb_campaign_patch(struct store *s, int64_t id, const struct apidb_patch *p,
                          struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND: no such stage. parts < 0: no limit. */
bool apidb_stage_limit(struct store *s, int64_t campaign_id, const char *stage, int64_t parts,
                       struct err *err) MUST_CHECK;
/* Stages held by their breaker go on. */
bool apidb_stages_resume(struct store *s, int64_t campaign_id, struct err *err) MUST_CHECK;
/* The loop of the leader looks now; call before commit. */
bool apidb_notify(struct store *s, struct err *err) MUST_CHECK;
