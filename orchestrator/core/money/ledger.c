/* The entries that each event of an attempt writes, once each. */
#include "ledger.h"

static const char *const kind_names[LEDGER_KINDS] = {[LEDGER_RESERVE] = "reserve",
                                                     [LEDGER_OVERRUN] = "overrun",
                                                     [LEDGER_SETTLE] = "settle",
                                                     [LEDGER_RELEASE] = "release",
                                                     [LEDGER_WARM_OVERRUN] = "warm_overrun",
                                                     [LEDGER_WARM] = "warm",
                                                     [LEDGER_WARM_RELEASE] = "warm_release",
                                                     [LEDGER_CORRECT] = "correct"};
static const char *const account_names[LEDGER_ACCOUNTS] = {
    [LEDGER_BUDGET] = "budget", [LEDGER_RESERVED] = "reserved", [LEDGER_SPENT] = "spent"};

const char *ledger_kind_name(enum ledger_kind kind)
{
    ASSERT(kind >= 0 && kind < LEDGER_KINDS);
    return kind_names[kind];
}

const char *ledger_account_name(enum ledger_account account)
{
    ASSERT(account >= 0 && account < LEDGER_ACCOUNTS);
    return account_names[account];
}

/* Entries of one event, being written. */
struct pen {
    struct ledger_entry *e;
    int n;
    int64_t attempt_id;
};

static struct ledger_entry *move(struct pen *p, enum ledger_kind kind, enum ledger_account from,
                                 enum ledger_account to, musd_t musd)
{
    ASSERT(p->n < LEDGER_ENTRIES_MAX && musd >= 0);
    struct ledger_entry *e = &p->e[p->n++];
    *e = (struct ledger_entry){
        .attempt_id = p->attempt_id, .kind = kind, .from = from, .to = to, .amount_musd = musd};
    return e;
}

static bool bad_turn(int64_t attempt_id, const char *what, struct err *err)
{
    return err_set(err, ERR_INTERNAL, "attempt %lld: %s", (long long)attempt_id, what);
}

static bool negative(int64_t attempt_id, musd_t musd, struct err *err)
{
    return err_set(err, ERR_INVALID, "attempt %lld: an amount of %lld", (long long)attempt_id,
                   (long long)musd);
}

/* Book a cost from the reservation, enlarged first when it is too small, and release everything
 * above keep. */
static void book(struct ledger_account_of_attempt *a, struct pen *pen, bool warm, musd_t cost_musd,
                 int64_t seconds, bool estimated, musd_t keep_musd)
{
    if (cost_musd > a->reserved_musd) {
        (void)move(pen, warm ? LEDGER_WARM_OVERRUN : LEDGER_OVERRUN, LEDGER_BUDGET, LEDGER_RESERVED,
                   cost_musd - a->reserved_musd);
        a->reserved_musd = cost_musd;
    }
    struct ledger_entry *e =
        move(pen, warm ? LEDGER_WARM : LEDGER_SETTLE, LEDGER_RESERVED, LEDGER_SPENT, cost_musd);
    e->seconds = seconds;
    e->estimated = estimated;
    a->reserved_musd -= cost_musd;
    a->spent_musd += cost_musd;
    musd_t over = a->reserved_musd - MIN(keep_musd, a->reserved_musd);
    (void)move(pen, warm ? LEDGER_WARM_RELEASE : LEDGER_RELEASE, LEDGER_RESERVED, LEDGER_BUDGET,
               over);
    a->reserved_musd -= over;
}

bool ledger_settle_job(struct ledger_account_of_attempt *a, int64_t attempt_id, musd_t cost_musd,
                       int64_t seconds, bool estimated, musd_t keep_musd,
                       struct ledger_entry ret[static LEDGER_ENTRIES_MAX], int *ret_n,
                       struct err *err)
{
    if (!a->reserved || a->job_settled || a->closed) {
        return bad_turn(attempt_id, "settled without a reservation or a second time", err);
    }
    if (cost_musd < 0 || seconds < 0 || keep_musd < 0) {
        return negative(attempt_id, MIN(cost_musd, MIN(seconds, keep_musd)), err);
    }
    struct pen pen = {.e = ret, .attempt_id = attempt_id};
    book(a, &pen, false, cost_musd, seconds, estimated, keep_musd);
    a->job_settled = true;
    *ret_n = pen.n;
    return true;
}

bool ledger_close(struct ledger_account_of_attempt *a, int64_t attempt_id, musd_t warm_musd,
                  int64_t warm_seconds, struct ledger_entry ret[static LEDGER_ENTRIES_MAX],
                  int *ret_n, struct err *err)
{
    if (!a->reserved || a->closed) {
        return bad_turn(attempt_id, "closed without a reservation or a second time", err);
    }
    if (warm_musd < 0 || warm_seconds < 0) {
        return negative(attempt_id, MIN(warm_musd, warm_seconds), err);
    }
    if (!a->job_settled && (warm_musd > 0 || warm_seconds > 0)) {
        return bad_turn(attempt_id, "a pool of a job that was not settled", err);
    }
    musd_t spent;
    if (!add_i64(a->spent_musd, warm_musd, &spent)) {
        return err_set(err, ERR_OVERFLOW, "attempt %lld: its cost exceeds int64",
                       (long long)attempt_id);
    }
    struct pen pen = {.e = ret, .attempt_id = attempt_id};
    if (!a->job_settled) {
        (void)move(&pen, LEDGER_RELEASE, LEDGER_RESERVED, LEDGER_BUDGET, a->reserved_musd);
        a->reserved_musd = 0;
    } else if (a->reserved_musd > 0 || warm_musd > 0 || warm_seconds > 0) {
        book(a, &pen, true, warm_musd, warm_seconds, false, 0);
    }
    a->closed = true;
    *ret_n = pen.n;
    return true;
}

bool ledger_correct(int64_t attempt_id, musd_t booked_musd, int64_t booked_s, musd_t cost_musd,
                    int64_t seconds, struct ledger_entry *ret, struct err *err)
{
    if (booked_musd < 0 || booked_s < 0 || cost_musd < 0 || seconds < 0) {
        return negative(attempt_id, MIN(MIN(booked_musd, booked_s), MIN(cost_musd, seconds)), err);
    }
    musd_t musd = cost_musd - booked_musd;
    int64_t s = seconds - booked_s;
    if ((musd > 0 && s < 0) || (musd < 0 && s > 0)) {
        return bad_turn(attempt_id, "a bill of more seconds for less money, or the reverse", err);
    }
    bool less = musd < 0 || s < 0;
    struct pen pen = {.e = ret, .attempt_id = attempt_id};
    move(&pen, LEDGER_CORRECT, less ? LEDGER_SPENT : LEDGER_BUDGET,
         less ? LEDGER_BUDGET : LEDGER_SPENT, less ? -musd : musd)
        ->seconds = less ? -s : s;
    return true;
}
