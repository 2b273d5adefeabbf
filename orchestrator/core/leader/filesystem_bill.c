/* See filesystem_bill.h. */
#include "filesystem_bill.h"
#include "core/money/cost.h"

bool leader_filesystem_book(const struct live_filesystem *f, const struct filesystem_row *r,
                            struct filesystem_end *end, struct err *err)
{
    struct ledger_account_of_attempt account = f->account;
    int n = 0;
    *end = (struct filesystem_end){.estimated = r->available_us > 0 && r->off_us == 0};
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
