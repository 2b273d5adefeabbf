/* The waiting parts of a large stage by classes of size: some of its parts are read, not all. */
#pragma once
#include "core/forecast/forecast.h"
#include "core/rows.h"
#include "store/api/stage_history.h"
#include "store/pg/connection.h"

/* Whose stage it is. PART: of the campaign with the part whose start is asked for; people ask for
 * one part after the other. */
enum forecast_of { FORECAST_OF_OTHERS, FORECAST_OF_TARGET, FORECAST_OF_PART };
/* How many entries stand for the stage's waiting parts; 0: they are few enough to be read one by
 * one. */
size_t forecast_sizes_entries(const struct stage_row *row, enum forecast_of of);
struct forecast_sizes { /* the caller frees both */
    struct forecast_part *parts;
    uint32_t *times;
    size_t n;
};
/* The entries, as size_classes_spread gives them. `why`, of task why_task_id, stands alone among
 * them when it is of this stage; then there may be two entries more. */
bool forecast_sizes_load(struct store *db, const struct stage_row *row, size_t entries,
                         const struct apidb_part_waiting *why, int64_t why_task_id, usec_t now_us,
                         struct forecast_sizes *ret, struct err *err) MUST_CHECK;
