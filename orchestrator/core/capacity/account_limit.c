/* See account_limit.h. */
#include "account_limit.h"
#include <stdio.h>

bool account_limit_exceeded(const struct quota_ledger_account *a,
                            const struct account_limit_job *job, char *ret, size_t size)
{
    bool spot = job->market == MARKET_SPOT;
    const struct {
        int64_t limit, wanted; /* limit below 0: not known */
        const char *what, *name;
    } each[] = {
        {a->per_job, job->instances, "instances a job",
         "Maximum number of instances per training job"},
        {a->total[job->market].limit, job->instances, "instances in all",
         spot ? "Number of instances across all spot training jobs"
              : "Number of instances across all training jobs"},
        {a->volume_gb, job->volume_gb, "GB of volume",
         "Size of EBS volume for a training job instance"},
        {a->longest_run_s, job->run_s, "s of run time", "Longest run time for a training job"},
    };
    ret[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(each); i++) {
        if (each[i].limit >= 0 && each[i].wanted > each[i].limit) {
            (void)snprintf(ret, size, "the account allows %lld %s, one job has %lld (quota \"%s\")",
                           (long long)each[i].limit, each[i].what, (long long)each[i].wanted,
                           each[i].name);
            return true;
        }
    }
    return false;
}
