/* Double entry: every amount moves from one account to another, entries are only ever appended.
 * ledger.c says which entries an event of an attempt makes; the store and the simulator keep them.
 * Pure. */
#pragma once
#include "common/err.h"
#include "model.h"

enum ledger_account { LEDGER_BUDGET, LEDGER_RESERVED, LEDGER_SPENT, LEDGER_ACCOUNTS };
enum ledger_kind {
    LEDGER_RESERVE,
    LEDGER_OVERRUN,
    LEDGER_SETTLE,
    LEDGER_WARM,
    LEDGER_RELEASE,
    LEDGER_KINDS
};

struct ledger_entry {
    int64_t attempt_id;
    enum ledger_kind kind;
    enum ledger_account from, to;
    musd_t amount_musd;
    int64_t seconds; /* instance-seconds, for SETTLE and WARM */
    bool estimated;
};
#define LEDGER_ENTRIES_MAX 4
struct ledger_account_of_attempt { /* what is still open of one attempt */
    musd_t reserved_musd;          /* not yet given back */
    musd_t spent_musd;
    bool job_settled, closed; /* closed: its pool has ended too, nothing more may be booked */
};
/* Reservation at intent. */
bool ledger_reserve(struct ledger_account_of_attempt *a, int64_t attempt_id, musd_t musd,
                    struct ledger_entry ret[static LEDGER_ENTRIES_MAX], int *ret_n,
                    struct err *err) MUST_CHECK;
/* The job ended: book its cost. keep_musd stays reserved for the idle time of its pool (0 without).
 */
bool ledger_settle_job(struct ledger_account_of_attempt *a, int64_t attempt_id, musd_t cost_musd,
                       int64_t seconds, bool estimated, musd_t keep_musd,
                       struct ledger_entry ret[static LEDGER_ENTRIES_MAX], int *ret_n,
                       struct err *err) MUST_CHECK;
/* Its pool ended: book the idle time, give the rest back, close. Also for a void (cost 0). */
bool ledger_close(struct ledger_account_of_attempt *a, int64_t attempt_id, musd_t warm_musd,
                  int64_t warm_seconds, struct ledger_entry ret[static LEDGER_ENTRIES_MAX],
                  int *ret_n, struct err *err) MUST_CHECK;
/* Balances over entries: sums per account; ERR_OVERFLOW. They always add up to 0 with
 * LEDGER_BUDGET. */
bool ledger_sum(const struct ledger_entry *e, size_t n, int64_t ret[static LEDGER_ACCOUNTS],
                struct err *err) MUST_CHECK;
