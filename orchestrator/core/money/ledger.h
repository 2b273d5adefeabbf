/* Double-entry bookkeeping: every amount moves from one account to another, and entries are only
 * appended. ledger.c decides which entries an event of an attempt writes; the store and the
 * simulator keep them. An attempt has at most one entry of each kind. Pure; checked arithmetic.
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
    LEDGER_CORRECT,
    LEDGER_KINDS
};

struct ledger_entry {
    int64_t attempt_id;
    enum ledger_kind kind;
    enum ledger_account from, to;
    musd_t amount_musd;
    int64_t seconds; /* instance-seconds, for SETTLE, WARM and CORRECT; they move with the amount */
    bool estimated;
};
#define LEDGER_ENTRIES_MAX 4
/* what is still open of one attempt; all zero at the beginning */
struct ledger_account_of_attempt {
    musd_t reserved_musd; /* not yet released */
    musd_t spent_musd;
    bool reserved; /* the reservation was made */
    bool job_settled;
    bool closed; /* its pool has ended too; nothing more may be booked */
};
const char *ledger_kind_name(enum ledger_kind kind);          /* as stored */
const char *ledger_account_name(enum ledger_account account); /* as stored */
/* The reservation itself is one entry that the statement of an intent writes (sql: intend). Each of
 * the following two writes the entries of one event, or changes nothing and fails: ERR_INTERNAL
 * when the event is out of order (a second time, or after the end), ERR_INVALID for a negative
 * amount, ERR_OVERFLOW. */
/* The job ended: book its cost and release the rest except keep_musd, which stays reserved for the
 * idle time of its pool (0 without a pool); less when less is left. */
bool ledger_settle_job(struct ledger_account_of_attempt *a, int64_t attempt_id, musd_t cost_musd,
                       int64_t seconds, bool estimated, musd_t keep_musd,
                       struct ledger_entry ret[static LEDGER_ENTRIES_MAX], int *ret_n,
                       struct err *err) MUST_CHECK;
/* The pool ended, or there is no pool: book the idle time, release the rest and close the account.
 * Also for a void, whose job was never settled (warm 0 then). */
bool ledger_close(struct ledger_account_of_attempt *a, int64_t attempt_id, musd_t warm_musd,
                  int64_t warm_seconds, struct ledger_entry ret[static LEDGER_ENTRIES_MAX],
                  int *ret_n, struct err *err) MUST_CHECK;
/* The bill of a job that was settled by an estimate: the one entry that makes booked what it says,
 * also when that is no difference. Changes no reservation, so it may come before or after the
 * close. Errors as above; ERR_INTERNAL when more seconds are to cost less. */
bool ledger_correct(int64_t attempt_id, musd_t booked_musd, int64_t booked_s, musd_t cost_musd,
                    int64_t seconds, struct ledger_entry *ret, struct err *err) MUST_CHECK;
