/* The only module that computes money: micro-USD, rounded half up once. Pure. */
#pragma once
#include "common/err.h"
#include "core/model.h"

#define COST_STOP_GRACE_S 120 /* SIGTERM to SIGKILL */
#define COST_UPLOAD_S     900 /* upload allowance */

/* price * instance_seconds / 3600. ERR_OVERFLOW. All >= 0. */
bool cost_of_seconds(musd_t price_musd_per_hour, int64_t instance_seconds, musd_t *ret,
                     struct err *err) MUST_CHECK;
/* The most one attempt may cost: price x instances x (max_runtime + grace + upload +
 * keep_alive). */
bool cost_worst_case(musd_t price_musd_per_hour, int64_t instances, int64_t max_runtime_s,
                     int64_t keep_alive_s, musd_t *ret, struct err *err) MUST_CHECK;
/* The longest run time in seconds whose worst case fits `left_musd`; 0 when not even one second
 * fits. */
int64_t cost_runtime_that_fits(musd_t price_musd_per_hour, int64_t instances, int64_t keep_alive_s,
                               musd_t left_musd);
/* Billable instance-seconds of a job of n instances: reported_s x instances (reported_s > 0, as
 * BillableTimeInSeconds counts wall time), else end - start rounded up, at least 1, x instances:
 * AWS bills no more than that (*ret_estimated; core/leader/bills.h asks for the bill). 0 when it
 * never started (started 0). Saturates at INT64_MAX. */
int64_t cost_billable_s(int64_t reported_s, usec_t started, usec_t ended, int64_t instances,
                        bool *ret_estimated);

#define COST_STORAGE_SPARE_H 2 /* of a file system after its ttl: the last export, the deletion */
/* Hours that storage is billed for: begun ones, at least 1. */
int64_t cost_storage_hours(usec_t from, usec_t to);
/* price x GiB x hours / 730 hours of a month. ERR_OVERFLOW. All >= 0. */
bool cost_of_storage(musd_t price_musd_per_gb_month, int64_t gib, int64_t hours, musd_t *ret,
                     struct err *err) MUST_CHECK;
/* The most a file system may cost that lives for ttl_s. */
bool cost_storage_worst_case(musd_t price_musd_per_gb_month, int64_t gib, int64_t ttl_s,
                             musd_t *ret, struct err *err) MUST_CHECK;
