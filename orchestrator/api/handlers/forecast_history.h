/* What a forecast learns from the newest ended attempts of a stage. */
#pragma once
#include "common/arena.h"
#include "core/forecast/forecast.h"
#include "store/pg/connection.h"

/* Tries, waits after failed ones, durations and starts of st; the rows are read into `a`. Errors:
 * those of query.h. */
bool forecast_history_load(struct store *db, struct arena *a, struct forecast_stage *st,
                           struct err *err) MUST_CHECK;
