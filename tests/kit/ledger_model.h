/* What SQL does with the ledger in the product, for tests that play it: the entry of a reservation,
 * and the balances that all entries add up to. */
#pragma once
#include "core/money/ledger.h"

/* Reservation at intent. False: the account has had one, or the amount is negative; nothing
 * changes. */
UNUSED static bool ledger_model_reserve(struct ledger_account_of_attempt *a, int64_t attempt_id,
                                        musd_t musd, struct ledger_entry *ret)
{
    if (a->reserved || a->job_settled || a->closed || musd < 0) {
        return false;
    }
    *ret = (struct ledger_entry){.attempt_id = attempt_id,
                                 .kind = LEDGER_RESERVE,
                                 .from = LEDGER_BUDGET,
                                 .to = LEDGER_RESERVED,
                                 .amount_musd = musd};
    a->reserved = true;
    a->reserved_musd = musd;
    return true;
}

/* The balance of each account: amounts in minus amounts out. All balances add up to 0. False: one
 * exceeds int64, whatever the order of the entries. */
UNUSED static bool ledger_model_sum(const struct ledger_entry *e, size_t n,
                                    int64_t ret[static LEDGER_ACCOUNTS])
{
    __extension__ typedef __int128 wide;
    wide sum[LEDGER_ACCOUNTS] = {0}; /* 2^64 entries of 2^63 fit */
    for (size_t i = 0; i < n; i++) {
        sum[e[i].from] -= e[i].amount_musd;
        sum[e[i].to] += e[i].amount_musd;
    }
    for (int i = 0; i < LEDGER_ACCOUNTS; i++) {
        if (sum[i] < INT64_MIN || sum[i] > INT64_MAX) {
            return false;
        }
    }
    for (int i = 0; i < LEDGER_ACCOUNTS; i++) {
        ret[i] = (int64_t)sum[i];
    }
    return true;
}
