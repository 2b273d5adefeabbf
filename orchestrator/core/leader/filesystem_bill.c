/* See filesystem_bill.h. */
#include "filesystem_bill.h"
#include "core/money/cost.h"
#include "resource_sight.h"
#include <string.h>

/* As if it had been there since it was made, since when it is billed in any case. A microsecond
 * before, which tells it from what was seen. */
static bool assumed(const struct filesystem_row *r)
{
    return r->available_us > 0 && r->available_us == r->created_us - 1;
}

void leader_filesystem_unseen(const struct live_filesystem *f, struct filesystem_row *r)
{
    if (r->state == FILESYSTEM_DELETING && r->aws_id[0] != '\0' && r->available_us == 0 &&
        !r->failed && resource_sight_lost(&f->sight)) {
        r->available_us = r->created_us - 1;
    }
}

void leader_filesystem_seen_going(struct filesystem_row *r, const char *lifecycle, usec_t now_us)
{
    bool is = strcmp(lifecycle, "AVAILABLE") == 0 || strcmp(lifecycle, "UPDATING") == 0;
    if (is && (r->available_us == 0 || assumed(r))) {
        r->available_us = now_us;
    } else if (assumed(r) &&
               (strcmp(lifecycle, "FAILED") == 0 || strcmp(lifecycle, "CREATING") == 0)) {
        r->available_us = 0;
    }
}

bool leader_filesystem_book(const struct live_filesystem *f, const struct filesystem_row *r,
                            struct filesystem_end *end, struct err *err)
{
    struct ledger_account_of_attempt account = f->account;
    int n = 0;
    *end =
        (struct filesystem_end){.estimated = r->available_us > 0 && (r->off_us == 0 || assumed(r))};
    if (r->available_us > 0) {
        usec_t off = r->off_us > 0 ? r->off_us : r->ended_us;
        end->hours = cost_storage_hours(r->created_us, off);
        /* Hours of storage are no instance-seconds: none are booked. */
        if (!cost_of_storage(r->price_musd_per_gb_month, r->size_gib, end->hours, &end->cost_musd,
                             err) ||
            !ledger_settle_job(&account, 0, end->cost_musd, 0, end->estimated, 0, end->entries,
                               &end->entries_n, err)) {
            return false;
        }
    }
    bool ok = ledger_close(&account, 0, 0, 0, end->entries + end->entries_n, &n, err);
    end->entries_n += ok ? n : 0;
    return ok;
}
