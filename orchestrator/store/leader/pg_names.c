/* Names used in tables that no list of core/ has, and ledger entries as parameters. */
#include "pg_names.h"

void param_entries(struct params *p, const struct ledger_entry *e, int n)
{
    const char *kinds[2 * LEDGER_ENTRIES_MAX];
    const char *from[2 * LEDGER_ENTRIES_MAX];
    const char *to[2 * LEDGER_ENTRIES_MAX];
    int64_t amounts[2 * LEDGER_ENTRIES_MAX];
    int64_t seconds[2 * LEDGER_ENTRIES_MAX];
    ASSERT(n >= 0 && n <= 2 * LEDGER_ENTRIES_MAX);
    for (int i = 0; i < n; i++) {
        kinds[i] = ledger_kind_name(e[i].kind);
        from[i] = ledger_account_name(e[i].from);
        to[i] = ledger_account_name(e[i].to);
        amounts[i] = e[i].amount_musd;
        seconds[i] = e[i].seconds;
    }
    param_text_array(p, kinds, (size_t)n);
    param_text_array(p, from, (size_t)n);
    param_text_array(p, to, (size_t)n);
    param_i64_array(p, amounts, (size_t)n);
    param_i64_array(p, seconds, (size_t)n);
}
