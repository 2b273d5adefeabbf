/* The scheduler's rows: projects, durations, breaker input, promises, pools, quotas over all types.
 * Read and written by the leader; writes happen between leader_begin and leader_commit. Returned
 * arrays are malloc'd, the caller frees them. Errors: those of query.h. */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

/* Limits by instance type. */
bool view_slot_limits(struct store *s, struct slot_limit_row **ret, size_t *ret_n,
                      struct err *err) MUST_CHECK;

/* The newest n_max successful attempts, oldest first. */
bool view_durations(struct store *s, int64_t campaign_id, int64_t stage_id, size_t n_max,
                    struct duration_row **ret, size_t *ret_n, struct err *err) MUST_CHECK;
/* Ended attempts of a stage with ids above `since`: the first n_max and the last n_max, oldest
 * first. */
bool view_breaker(struct store *s, int64_t stage_id, int64_t since, size_t n_max,
                  struct breaker_row **ret, size_t *ret_n, struct err *err) MUST_CHECK;
/* Store a breaker. resumes: the stage's resume count that is now handled. */
bool store_stage_breaker(struct store *s, int64_t stage_id, int64_t since, bool passed, int resumes,
                         struct err *err) MUST_CHECK;
/* Id of the newest attempt of a stage; 0 when it has none. */
bool stage_last_attempt(struct store *s, int64_t stage_id, int64_t *ret,
                        struct err *err) MUST_CHECK;

/* Promised starts of multi-instance tasks: read, insert or replace, delete. */
bool view_promises(struct store *s, int64_t campaign_id, struct promise_row **ret, size_t *ret_n,
                   struct err *err) MUST_CHECK;
bool store_promise_put(struct store *s, const struct promise_row *p, struct err *err) MUST_CHECK;
bool store_promise_drop(struct store *s, int64_t stage_id, struct err *err) MUST_CHECK;

/* Pools whose end is not known, by id; campaign_id 0: of all. */
bool view_pools(struct store *s, int64_t campaign_id, struct pool_row **ret, size_t *ret_n,
                struct err *err) MUST_CHECK;
/* Of those the ids that people want to end; the caller frees. */
bool view_pool_ends(struct store *s, int64_t **ret, size_t *ret_n, struct err *err) MUST_CHECK;
/* expires_us 0, end_reason NULL: as before. */
bool store_pool_note(struct store *s, int64_t pool_id, usec_t expires_us, const char *end_reason,
                     struct err *err) MUST_CHECK;
/* Swap the takers of two available pools (a pool may have no taker) and update their attempts.
 * ERR_CONFLICT when one is no longer available. */
bool store_pool_swap(struct store *s, int64_t pool_id, int64_t other_id,
                     struct err *err) MUST_CHECK;
/* End a pool. ERR_CONFLICT when it is no longer available or its account differs. */
bool store_pool_end(struct store *s, const struct pool_end *e, struct err *err) MUST_CHECK;

/* Raise rows of slots that are gone or say less than what attempts, strays and idle pools hold.
 * ret_n: how many. */
bool store_slots_correct(struct store *s, int64_t *ret_n, struct err *err) MUST_CHECK;
/* Store what was learned about the slots of a type: use by others and the limit at which AWS
 * refused. */
bool store_slots_learned(struct store *s, const char *instance_type, enum market market,
                         int64_t foreign, usec_t foreign_us, int64_t refused_limit,
                         struct err *err) MUST_CHECK;
/* Store a quota over all instance types. */
bool store_account_quota_put(struct store *s, enum account_quota kind, int64_t limit,
                             struct err *err) MUST_CHECK;
/* Store that a warning threshold was reached. level: "global", "project", "campaign" or "stage". */
bool store_money_warned(struct store *s, const char *level, int64_t ref_id, int64_t ppm,
                        struct err *err) MUST_CHECK;

/* The task of a part number; 0 when there is none. */
bool task_by_seq(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t seq, int64_t *ret,
                 struct err *err) MUST_CHECK;
/* When the newest intent was committed; 0 when there is none. */
bool newest_intent(struct store *s, usec_t *ret, struct err *err) MUST_CHECK;
/* When the oldest void attempt was intended that is at most within_us older than the newest of all
 * (of the last 1,000 attempts); 0: there is none. */
bool void_intent(struct store *s, int64_t within_us, usec_t *ret, struct err *err) MUST_CHECK;
/* Insert a job found without a row as an attempt of unknown outcome that holds slots and money.
 * *ret_task: 0 when its task does not exist, is not waiting, or has a later attempt; then a person
 * must decide. */
bool store_adopt(struct store *s, int64_t epoch, const struct adoption *a, int64_t *ret_task,
                 struct err *err) MUST_CHECK;
