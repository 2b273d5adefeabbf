/* Money of one job: price x instance-seconds / 3600 in 128 bits, rounded half up once. */
#include "cost.h"

__extension__ typedef __int128 wide;

bool cost_of_seconds(musd_t price_musd_per_hour, int64_t instance_seconds, musd_t *ret,
                     struct err *err)
{
    if (price_musd_per_hour < 0 || instance_seconds < 0) {
        return err_set(err, ERR_INVALID, "a price of %lld micro-USD for %lld s is negative",
                       (long long)price_musd_per_hour, (long long)instance_seconds);
    }
    if (!muldiv_i64(price_musd_per_hour, instance_seconds, 3600, ret)) {
        return err_set(err, ERR_OVERFLOW,
                       "%lld instance-seconds at %lld micro-USD an hour cost more than fits",
                       (long long)instance_seconds, (long long)price_musd_per_hour);
    }
    return true;
}

bool cost_worst_case(musd_t price_musd_per_hour, int64_t instances, int64_t max_runtime_s,
                     int64_t keep_alive_s, musd_t *ret, struct err *err)
{
    int64_t span;
    int64_t total;
    if (instances < 0 || max_runtime_s < 0 || keep_alive_s < 0) {
        return err_set(err, ERR_INVALID, "the worst case of %lld instances for %lld s is negative",
                       (long long)instances, (long long)max_runtime_s);
    }
    if (!add_i64(max_runtime_s, keep_alive_s, &span) ||
        !add_i64(span, COST_STOP_GRACE_S + COST_UPLOAD_S, &span) ||
        __builtin_mul_overflow(span, instances, &total)) {
        return err_set(err, ERR_OVERFLOW, "%lld instances for %lld s are more seconds than fit",
                       (long long)instances, (long long)max_runtime_s);
    }
    return cost_of_seconds(price_musd_per_hour, total, ret, err);
}

int64_t cost_runtime_that_fits(musd_t price_musd_per_hour, int64_t instances, int64_t keep_alive_s,
                               musd_t left_musd)
{
    ASSERT(instances > 0);
    ASSERT(price_musd_per_hour >= 0 && keep_alive_s >= 0);
    if (left_musd < 0) {
        return 0;
    }
    if (price_musd_per_hour == 0) {
        return INT64_MAX;
    }
    /* (2 p S + 3600) div 7200 <= left  <=>  2 p S <= 7200 left + 3599: exact inverse of rounding */
    wide seconds = ((wide)left_musd * 7200 + 3599) / ((wide)price_musd_per_hour * 2);
    wide runtime = seconds / instances - keep_alive_s - (wide)(COST_STOP_GRACE_S + COST_UPLOAD_S);
    if (runtime < 1) {
        return 0;
    }
    return runtime > INT64_MAX ? INT64_MAX : (int64_t)runtime;
}

int64_t cost_billable_s(int64_t reported_s, usec_t started, usec_t ended, int64_t instances,
                        bool *ret_estimated)
{
    ASSERT(instances > 0);
    int64_t wall_s = reported_s;
    int64_t total;
    *ret_estimated = false;
    if (reported_s <= 0) {
        if (started <= 0) {
            return 0;
        }
        *ret_estimated = true;
        int64_t span_us = ended > started ? ended - started : 0;
        wall_s = span_us / USEC_PER_SEC + (span_us % USEC_PER_SEC != 0 ? 1 : 0);
        wall_s = MAX(wall_s, 1);
    }
    return __builtin_mul_overflow(wall_s, instances, &total) ? INT64_MAX : total;
}

#define HOURS_PER_MONTH 730
#define HOUR_US         (3600 * USEC_PER_SEC)

int64_t cost_storage_hours(usec_t from, usec_t to)
{
    return to <= from ? 1 : (to - from - 1) / HOUR_US + 1;
}

bool cost_of_storage(musd_t price_musd_per_gb_month, int64_t gib, int64_t hours, musd_t *ret,
                     struct err *err)
{
    int64_t gib_hours;
    ASSERT(price_musd_per_gb_month >= 0 && gib >= 0 && hours >= 0);
    if (__builtin_mul_overflow(gib, hours, &gib_hours) ||
        !muldiv_i64(price_musd_per_gb_month, gib_hours, HOURS_PER_MONTH, ret)) {
        return err_set(err, ERR_OVERFLOW, "%lld GiB for %lld hours cost more than fits",
                       (long long)gib, (long long)hours);
    }
    return true;
}

bool cost_storage_worst_case(musd_t price_musd_per_gb_month, int64_t gib, int64_t ttl_s,
                             musd_t *ret, struct err *err)
{
    return cost_of_storage(price_musd_per_gb_month, gib,
                           cost_storage_hours(0, ttl_s * USEC_PER_SEC) + COST_STORAGE_SPARE_H, ret,
                           err);
}
