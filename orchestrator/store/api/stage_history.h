/* How the newest ended attempts of a stage went: what a forecast learns from. */
#pragma once
#include "core/model.h"
#include "store/pg/connection.h"

/* The newest ended attempts of a stage. */
#define HISTORY_MAX 1000
enum apidb_end { END_DONE, END_LOST, END_OTHER }; /* LOST: its cause counts as a try */
struct apidb_past {
    enum apidb_end end;
    int64_t size;
    int64_t run_us, start_us; /* intent to start; both -1: it never ran */
};
struct apidb_history {
    struct apidb_past at[HISTORY_MAX];
    size_t n;
};
bool apidb_history(struct store *s, int64_t campaign_id, int64_t stage_id, const int16_t *causes,
                   size_t causes_n, struct apidb_history *ret, struct err *err) MUST_CHECK;
