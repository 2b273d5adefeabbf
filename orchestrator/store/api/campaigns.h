/* Campaigns and their stages, for handlers: they write what is wanted of a campaign, never what the
 * leader owns. Answers that are only passed on are JSON text built by the query, appended to
 * ret_json. ERR_NOT_FOUND: no such row. Other errors: those of query.h. */
#pragma once
#include "core/model.h"
#include "page.h"
#include "store/pg/connection.h"

struct apidb_campaign {
    const char *project, *name;
    struct str spec_text; /* as submitted */
    const char *spec_json;
    int priority;
    usec_t deadline_us; /* 0: none */
    int64_t weight;
    int64_t parts_limit; /* -1: no limit */
    musd_t cap_musd;     /* -1: no cap */
    const char *at_limit;
    const int64_t *warn_at_ppm; /* of the cap, ascending */
    int warn_at_n;
    const char *created_by;
    const char *nonce; /* random: jobs of a campaign that a restore lost have other names */
};
/* Insert a campaign and its cap inside the caller's transaction. */
bool apidb_campaign_insert(struct store *s, const struct apidb_campaign *c, int64_t *ret_id,
                           struct err *err) MUST_CHECK;
struct apidb_live {
    int64_t id; /* 0: none is live */
    char state[16];
    struct buf spec_text; /* as submitted; the caller calls buf_done */
};
/* The newest campaign of this project and name that has not ended. Inside a transaction it locks
 * the project's row as a submit does, so that nobody else submits there until the end. */
bool apidb_campaign_live(struct store *s, const char *project, const char *name,
                         struct apidb_live *ret, struct err *err) MUST_CHECK;
struct apidb_stage {
    int64_t campaign_id;
    int seq;
    const char *name;
    const char *kind; /* of stage_kind.def */
    bool closed;
    int64_t parts_limit;            /* -1: no limit */
    musd_t cap_musd, per_task_musd; /* -1: no cap */
    const char *at_limit;
    const int64_t *warn_at_ppm; /* of the cap, ascending */
    int warn_at_n;
};
/* Insert a stage and its caps inside the caller's transaction. */
bool apidb_stage_insert(struct store *s, const struct apidb_stage *st, int64_t *ret_id,
                        struct err *err) MUST_CHECK;
/* Appends the JSON array `guidance` of a campaign. facts_json: the row of api_campaign_guidance;
 * NULL: there is nothing to say. */
typedef void (*apidb_guide)(struct buf *b, int64_t campaign_id, const char *facts_json);
/* That array alone; [] also when there is no such campaign. */
bool apidb_campaign_guidance(struct store *s, int64_t id, apidb_guide guide, struct buf *ret_json,
                             struct err *err) MUST_CHECK;
/* The campaign with its stages, counters and guidance, as JSON. guide NULL: no guidance. */
bool apidb_campaign_get(struct store *s, int64_t id, apidb_guide guide, int64_t *ret_version,
                        struct buf *ret_json, struct err *err) MUST_CHECK;
/* Append a text that differs from an earlier one when a part of the campaign has changed in between
 * or an attempt has ended; of a campaign that is not there it is empty. *ret_parts: how many it
 * has; *ret_active: those with an attempt that has not ended. */
bool apidb_campaign_rows(struct store *s, int64_t id, struct buf *ret, int64_t *ret_parts,
                         int64_t *ret_active, struct err *err) MUST_CHECK;
struct apidb_campaign_query {
    usec_t after_us;
    int64_t after_id;
    bool down;                    /* newest first */
    const char *state, *projects; /* state NULL: all states; projects by commas, "": all */
    int64_t n;
};
/* A page in order of time, behind (after_us, after_id). */
bool apidb_campaign_list(struct store *s, const struct apidb_campaign_query *q, apidb_guide guide,
                         struct apidb_page *ret, struct err *err) MUST_CHECK;
/* The campaign file, normalised (JSON) and as submitted (text). */
bool apidb_campaign_spec(struct store *s, int64_t id, struct buf *ret_json, struct buf *ret_text,
                         struct err *err) MUST_CHECK;
struct apidb_wish {
    int64_t version;
    enum wanted wanted;
    enum campaign_state state;
    bool archived; /* or being archived */
};
/* Lock the campaign's row; inside a transaction. */
bool apidb_campaign_lock(struct store *s, int64_t id, struct apidb_wish *ret,
                         struct err *err) MUST_CHECK;
/* Append what PATCH changes of it, as a JSON object of the same members. */
bool apidb_campaign_limits(struct store *s, int64_t id, struct buf *ret_json,
                           struct err *err) MUST_CHECK;
/* Set what is wanted of the campaign. */
bool apidb_campaign_want(struct store *s, int64_t id, enum wanted wanted,
                         struct err *err) MUST_CHECK;
struct apidb_patch {
    int priority;   /* -1: unchanged */
    int64_t weight; /* fair share; -1: unchanged */
    bool set_parts;
    int64_t parts_limit; /* -1: no limit */
    bool set_deadline;
    usec_t deadline_us; /* 0: none */
    bool set_budget;
    musd_t budget_musd;   /* -1: no budget */
    const char *at_limit; /* NULL: unchanged */
};
bool apidb_campaign_patch(struct store *s, int64_t id, const struct apidb_patch *p,
                          struct err *err) MUST_CHECK;
/* Set the limit of parts of one stage. parts < 0: no limit. ERR_NOT_FOUND: no such stage. */
bool apidb_stage_limit(struct store *s, int64_t campaign_id, const char *stage, int64_t parts,
                       struct err *err) MUST_CHECK;
struct apidb_stage_budget {
    bool set_total, set_per_task;     /* else unchanged */
    musd_t total_musd, per_task_musd; /* -1: no cap */
};
/* Set the caps of one stage. ERR_NOT_FOUND: no such stage. */
bool apidb_stage_budget(struct store *s, int64_t campaign_id, const char *stage,
                        const struct apidb_stage_budget *b, struct err *err) MUST_CHECK;
struct apidb_gate {
    bool held, overridden;
    char stage[128];
    char reason[512];
};
/* Of a stage by its name; ERR_NOT_FOUND. */
bool apidb_stage_gate(struct store *s, int64_t campaign_id, const char *stage,
                      struct apidb_gate *ret, struct err *err) MUST_CHECK;
bool apidb_stage_gate_override(struct store *s, int64_t campaign_id, const char *stage,
                               struct err *err) MUST_CHECK;
/* The gate that keeps a resumed campaign from going on; held false: none, or something else holds
 * it as well. */
bool apidb_campaign_gate(struct store *s, int64_t campaign_id, struct apidb_gate *ret,
                         struct err *err) MUST_CHECK;
/* Resume the stages held by their breaker. */
bool apidb_stages_resume(struct store *s, int64_t campaign_id, struct err *err) MUST_CHECK;
/* Wake the leader when the transaction commits. */
bool apidb_notify(struct store *s, struct err *err) MUST_CHECK;
