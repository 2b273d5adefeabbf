/* See account_limit.h. */
#include "account_limit.h"
#include <stdio.h>

bool account_limit_exceeded(const struct quota_ledger_account *a,
                            const struct account_limit_job *job, char *ret, size_t size)
{
    const struct {
        int64_t limit, wanted; /* limit below 0: not known */
        const char *what;
        enum quota_ledger_quota quota;
        enum market market;
    } each[] = {
        {a->per_job, job->instances, "instances a job", QUOTA_LEDGER_QUOTA_PER_JOB,
         MARKET_ON_DEMAND},
        {a->total[job->market].limit, job->instances, "instances in all", QUOTA_LEDGER_QUOTA_TOTAL,
         job->market},
        {a->volume_gb, job->volume_gb, "GB of volume", QUOTA_LEDGER_QUOTA_VOLUME, MARKET_ON_DEMAND},
        {a->longest_run_s, job->run_s, "s of run time", QUOTA_LEDGER_QUOTA_RUN_TIME,
         MARKET_ON_DEMAND},
    };
    ret[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(each); i++) {
        if (each[i].limit >= 0 && each[i].wanted > each[i].limit) {
            (void)snprintf(ret, size, "the account allows %lld %s, one job has %lld (quota \"%s\")",
                           (long long)each[i].limit, each[i].what, (long long)each[i].wanted,
                           quota_ledger_quota_name(each[i].quota, each[i].market));
            return true;
        }
    }
    return false;
}
