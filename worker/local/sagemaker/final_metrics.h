/* FinalMetricDataList of a job: of each of its MetricDefinitions the last value in what its hosts
 * wrote. Pure but for reading the logs. */
#pragma once
#include "common/json.h"

struct app;
struct local_job;
/* The list, owned by the caller; NULL: the job defines no metrics, or none was found. Of each log
 * the end is read. */
json_t *final_metrics(const struct app *app, const struct local_job *job);
