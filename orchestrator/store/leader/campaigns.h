/* Writes of campaigns and their stages, within a transaction of the leader (lease.h). */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

/* Move a campaign from a state to another. ERR_CONFLICT when it was not in `from`. */
bool store_campaign_state(struct store *s, int64_t id, enum campaign_state from,
                          enum campaign_state to, const char *reason, int64_t taken_version,
                          struct err *err) MUST_CHECK;
/* The same for a stage. */
bool store_stage_state(struct store *s, int64_t stage_id, enum stage_state from,
                       enum stage_state to, const char *reason, struct err *err) MUST_CHECK;
/* Set the reason shown for the stage's waiting parts. */
bool store_stage_wait_reason(struct store *s, int64_t stage_id, enum wait_reason r,
                             struct err *err) MUST_CHECK;
/* The same, with what came instead of an answer about done_if ("" not known) and when it is asked
 * again (0: it is not). */
bool store_stage_unchecked(struct store *s, int64_t stage_id, enum wait_reason r,
                           const char *detail, usec_t again_us, struct err *err) MUST_CHECK;
bool store_alert(struct store *s, int64_t campaign_id, const char *text,
                 struct err *err) MUST_CHECK; /* an event of kind alert */
