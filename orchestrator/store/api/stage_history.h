/* Results of the newest ended attempts of a stage and sizes of its parts: input of a forecast. */
#pragma once
#include "core/model.h"
#include "store/pg/connection.h"

#define HISTORY_MAX 1000
enum apidb_end { END_DONE, END_LOST, END_OTHER }; /* LOST: its cause counts as an attempt */
struct apidb_past {
    enum apidb_end end;
    int64_t size;
    int64_t run_us, start_us; /* start_us: from intent to start; both -1: it never ran */
    enum cause cause;
};
struct apidb_history {
    struct apidb_past at[HISTORY_MAX];
    size_t n;
};
/* The newest HISTORY_MAX ended attempts, newest first. causes: those that count as an attempt. */
bool apidb_history(struct store *s, int64_t campaign_id, int64_t stage_id, const int16_t *causes,
                   size_t causes_n, struct apidb_history *ret, struct err *err) MUST_CHECK;
struct apidb_part_size {
    int64_t size; /* bytes */
    int64_t seq;
};
/* Those of these parts that are there, in the order in which they start: largest first. ret[n]. */
bool apidb_part_sizes(struct store *s, int64_t campaign_id, int64_t stage_id, const int32_t *seqs,
                      size_t n, struct apidb_part_size *ret, size_t *ret_n,
                      struct err *err) MUST_CHECK;
/* Other campaigns that run, at most `most`: those of the highest priority, in order of their ids.
 * The caller frees *ret. *ret_left_out: how many more there are. */
bool apidb_others_running(struct store *s, int64_t campaign_id, int64_t most, int64_t **ret,
                          size_t *ret_n, int64_t *ret_left_out, struct err *err) MUST_CHECK;
/* At which rate the leader sends Creates, in millionths a second; 0: it has not said. */
bool apidb_create_rate(struct store *s, int64_t *ret_per_s_u, struct err *err) MUST_CHECK;
struct apidb_part_waiting {
    int64_t stage_id; /* 0: it does not wait, or is not there */
    struct apidb_part_size part;
    usec_t not_before_us;
};
bool apidb_part_waiting(struct store *s, int64_t campaign_id, int64_t task_id,
                        struct apidb_part_waiting *ret, struct err *err) MUST_CHECK;
