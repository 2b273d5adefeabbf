/* The waiting parts of a large stage by classes of size: some of its parts are read, not all. */
#pragma once
#include "core/forecast/forecast.h"
#include "core/rows.h"
#include "store/pg/connection.h"

/* How many entries stand for the stage's waiting parts; 0: they are few enough to be read one by
 * one. target: of the campaign that is forecast. */
size_t forecast_sizes_entries(const struct stage_row *row, bool target);
/* The entries, as size_classes_spread gives them; the caller frees both. */
bool forecast_sizes_load(struct store *db, const struct stage_row *row, size_t entries,
                         struct forecast_part **ret_parts, uint32_t **ret_times,
                         struct err *err) MUST_CHECK;
