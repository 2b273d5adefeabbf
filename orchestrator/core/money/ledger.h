/* Double entry: every amount moves from one account to another, entries are only ever appended.
 * ledger.c says which entries an event of an attempt makes; the store and the simulator keep them.
 * Of each kind an attempt has one entry at most. Pure; checked arithmetic.
 *
 *   reserve            budget   -> reserved   worst case, at intent
 *   settle             reserved -> spent      what the job cost
 *     overrun          budget   -> reserved   before it, when it cost more than was reserved
 *     release          reserved -> budget     after it, but for what its pool's idle time may cost
 *   warm               reserved -> spent      what the pool's idle time cost
 *     warm_overrun, warm_release              as above
 *
 * A void is released without a settlement. */
#pragma once
#include "common/err.h"
#include "core/model.h"

enum ledger_account { LEDGER_BUDGET, LEDGER_RESERVED, LEDGER_SPENT, LEDGER_ACCOUNTS };
enum ledger_kind {
    LEDGER_RESERVE,
    LEDGER_OVERRUN,
    LEDGER_SETTLE,
    LEDGER_RELEASE,
    LEDGER_WARM_OVERRUN,
    LEDGER_WARM,
    LEDGER_WARM_RELEASE,
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
struct ledger_account_of_attempt { /* what is still open of one attempt; all zero at first */
    musd_t reserved_musd;          /* not yet given back */
    musd_t spent_musd;
    bool reserved; /* the reservation was made */
    bool job_settled;
    bool closed; /* its pool has ended too, nothing more may be booked */
};
const char *ledger_kind_name(enum ledger_kind kind);          /* as stored */
const char *ledger_account_name(enum ledger_account account); /* as stored */
/* Each of the following three writes the entries of one event, or changes nothing and gives an
 * error: ERR_INTERNAL when it is not the attempt's turn for it (a second time, after the end),
 * ERR_INVALID for a negative amount, ERR_OVERFLOW. */
/* Reservation at intent. */
bool ledger_reserve(struct ledger_account_of_attempt *a, int64_t attempt_id, musd_t musd,
                    struct ledger_entry ret[static LEDGER_ENTRIES_MAX], int *ret_n,
                    struct err *err) MUST_CHECK;
/* The job ended: book its cost and give back what is over, but for keep_musd, which stays reserved
 * for the idle time of its pool (0 without); less when less is over. */
bool ledger_settle_job(struct ledger_account_of_attempt *a, int64_t attempt_id, musd_t cost_musd,
                       int64_t seconds, bool estimated, musd_t keep_musd,
                       struct ledger_entry ret[static LEDGER_ENTRIES_MAX], int *ret_n,
                       struct err *err) MUST_CHECK;
/* Its pool ended, or it has none: book the idle time, give the rest back, close. Also for a void,
 * whose job was never settled (warm 0 then). */
bool ledger_close(struct ledger_account_of_attempt *a, int64_t attempt_id, musd_t warm_musd,
                  int64_t warm_seconds, struct ledger_entry ret[static LEDGER_ENTRIES_MAX],
                  int *ret_n, struct err *err) MUST_CHECK;
/* Balances over entries: what came in less what went out, an account. They always add up to 0 with
 * LEDGER_BUDGET. ERR_OVERFLOW, whatever the order of the entries. */
bool ledger_sum(const struct ledger_entry *e, size_t n, int64_t ret[static LEDGER_ACCOUNTS],
                struct err *err) MUST_CHECK;
