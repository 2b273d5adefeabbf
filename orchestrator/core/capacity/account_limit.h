/* What the account allows no job of any instance type: quotas without a type in their names. */
#pragma once
#include "quota_ledger.h"

struct account_limit_job { /* one job, as its stage asks for it */
    enum market market;
    int64_t instances, run_s, volume_gb;
};
/* The first of the account's quotas that the job is larger than, as a clause: "the account allows
 * 20 instances a job, one job has 24 (quota ...)". false: it fits in all that are known; ret is
 * "". */
bool account_limit_exceeded(const struct quota_ledger_account *a,
                            const struct account_limit_job *job, char *ret, size_t size);
