/* What the scheduler keeps in the database: projects, durations, what a breaker has seen, promises,
 * pools, quotas over all types. Read and written by the leader; writes between leader_begin and
 * leader_commit. Arrays are malloc'd, the caller frees them. */
#pragma once
#include "leader.h"

/* --- limits above a campaign --- */
bool view_slot_limits(struct store *s, struct slot_limit_row **ret, size_t *ret_n,
                      struct err *err) MUST_CHECK;

/* --- what finished attempts of a stage tell --- */
/* The newest that succeeded, oldest first. */
bool view_durations(struct store *s, int64_t campaign_id, int64_t stage_id, size_t n_max,
                    struct duration_row **ret, size_t *ret_n, struct err *err) MUST_CHECK;
/* Ended attempts of a stage with ids above since: the first n_max and the last n_max, oldest first.
 */
bool view_breaker(struct store *s, int64_t stage_id, int64_t since, size_t n_max,
                  struct breaker_row **ret, size_t *ret_n, struct err *err) MUST_CHECK;
/* What the row keeps of a breaker. resumes: of the stage, heeded now. */
bool store_stage_breaker(struct store *s, int64_t stage_id, int64_t since, bool passed, int resumes,
                         struct err *err) MUST_CHECK;
/* Id of the newest attempt of a stage; 0 none. */
bool stage_last_attempt(struct store *s, int64_t stage_id, int64_t *ret,
                        struct err *err) MUST_CHECK;

/* --- promises to tasks of several instances --- */
bool view_promises(struct store *s, int64_t campaign_id, struct promise_row **ret, size_t *ret_n,
                   struct err *err) MUST_CHECK;
bool store_promise_put(struct store *s, const struct promise_row *p, struct err *err) MUST_CHECK;
bool store_promise_drop(struct store *s, int64_t stage_id, struct err *err) MUST_CHECK;

/* --- warm pools --- */
/* Pools whose end is not known, by id. */
bool view_pools(struct store *s, struct pool_row **ret, size_t *ret_n, struct err *err) MUST_CHECK;
/* expires_us 0, end_reason NULL: as before. */
bool store_pool_note(struct store *s, int64_t pool_id, usec_t expires_us, const char *end_reason,
                     struct err *err) MUST_CHECK;
/* Two available pools change takers (none is one too), their attempts with them. ERR_CONFLICT when
 * one is not available any more. */
bool store_pool_swap(struct store *s, int64_t pool_id, int64_t other_id,
                     struct err *err) MUST_CHECK;
/* ERR_CONFLICT when it is not available any more, or its account not as said. */
bool store_pool_end(struct store *s, const struct pool_end *e, struct err *err) MUST_CHECK;

/* --- slots, quotas, money --- */
bool store_slots_learned(struct store *s, const char *instance_type, enum market market,
                         int64_t foreign, usec_t foreign_us, int64_t refused_limit,
                         struct err *err) MUST_CHECK;
bool store_account_quota_put(struct store *s, enum account_quota kind, int64_t limit,
                             struct err *err) MUST_CHECK;
/* level: "global", "project", "campaign" or "stage". */
bool store_money_warned(struct store *s, const char *level, int64_t ref_id, int64_t ppm,
                        struct err *err) MUST_CHECK;

/* --- the sweep --- */
/* Task of a part number; 0: there is none. */
bool task_by_seq(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t seq, int64_t *ret,
                 struct err *err) MUST_CHECK;
/* When the newest intent was committed; 0: there is none. */
bool newest_intent(struct store *s, usec_t *ret, struct err *err) MUST_CHECK;
/* As an attempt of unknown outcome, slots and money held. *ret_task: 0 when its task is not there,
 * not waiting, or knows a later number: a person decides. */
bool store_adopt(struct store *s, int64_t epoch, const struct adoption *a, int64_t *ret_task,
                 struct err *err) MUST_CHECK;
